#!/bin/sh
# headers.sh - every public header alone, as C11 and as C++17, without a warning.
set -eu
cd "$(dirname "$0")/.."
for header in include/tapegrad.h include/tapegrad/*.h include/tapegrad/*/*.h; do
    name=${header#include/}
    before=
    [ "$name" != tapegrad/cmocka.h ] || before='#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>'
    for compiler in gcc clang; do
        printf '%s\n#include <%s>\nint main(void) { return 0; }\n' "$before" "$name" |
            $compiler -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -x c - ||
            { echo "headers: $name as C11 with $compiler" >&2; exit 1; }
    done
    [ "$name" != tapegrad/cmocka.h ] || continue        # cmocka's own header is C
    for compiler in g++ clang++; do
        printf '#include <%s>\nint main() { return 0; }\n' "$name" |
            $compiler -std=c++17 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ - ||
            { echo "headers: $name as C++17 with $compiler" >&2; exit 1; }
    done
done
# A number, or a bare array, where tensors are wanted: C would take them, with a warning at most.
for call in 'tensor_add(x, 2)' 'tensor_cat(parts, 1)' 'tensor_stack(parts)' \
    'nn_clip_grad_norm_(parts, 1.0)' 'tensor_lstm(x, x, x, parts)' 'optim_sgd(parts, 0.1)'; do
    for compiler in gcc clang; do
        if printf '%s\n' '#include <tapegrad.h>' \
            'Tensor *f(Tensor *x, Tensor *parts[2])' "{ return $call; }" |
            $compiler -std=c11 -Wno-unused -Iinclude -fsyntax-only -x c - 2>/dev/null; then
            echo "headers: $call compiles with $compiler" >&2
            exit 1
        fi
    done
done
echo "headers: each compiles alone as C11 and C++17"
