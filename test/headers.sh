#!/bin/sh
# headers.sh - every public header alone, as C11 and as C++17, and every macro in use, without a warning.
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
            $compiler -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -x c++ - ||
            { echo "headers: $name as C++17 with $compiler" >&2; exit 1; }
    done
done
# Every macro as a user's program has it; the optimizer's warnings too.
uses=$(gcc -E -dD -Iinclude test/foreign/macros.c |
    python3 test/foreign/every_macro.py "gcc -Iinclude" test/foreign/macros.c)
for compiler in gcc clang; do
    { cat test/foreign/macros.c; echo "$uses"; } |
        $compiler -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -Iinclude -c -o /dev/null -x c - ||
        { echo "headers: a macro warns with $compiler" >&2; exit 1; }
done
# What must not compile: a number, or a bare array, where tensors are wanted, a number where an enum is. C
# would take them, with a warning at most.
for call in 'tensor_add(x, 2)' 'tensor_cat(parts, 1)' 'tensor_stack(parts)' \
    'nn_clip_grad_norm_(parts, 1.0)' 'tensor_lstm(x, x, x, parts)' 'optim_sgd(parts, 0.1)' \
    '(void)tensor_backward_many(parts), x' '(void)tensor_gradients_many(parts, parts, &x), x' \
    'tensor_huber_loss(x, x, 0.5)' 'tensor_smooth_l1_loss(x, x, 1.0)' \
    'tensor_pad(x, SHAPE(1, 1), 2.0)' 'tensor_kl_div(x, x, 1.f)' 'tensor_mse_loss(x, x, TENSOR_SUM)' \
    'tensor_gelu(x, 0.5)' 'tensor_gelu_(x, 1)' 'tensor_quantile(x, 0.5, 0, true, 0.1)' \
    'tensor_searchsorted(x, x, 1)' '(void)tensor_meshgrid(TENSORS(x), parts, 1.0), x' \
    '(void)tensor_qr(x, 0.5), x' 'tensor_grid_sample(x, x, 0.5)' '(void)data_mnist("", 0.13, 0.31), x' \
    '(void)optim_reduce_lr_on_plateau(NULL, 0.5), x' '(void)nn_gelu(0.5), x'; do
    for compiler in gcc clang; do
        if printf '%s\n' '#include <tapegrad.h>' \
            'Tensor *f(Tensor *x, Tensor *parts[2])' "{ return $call; }" |
            $compiler -std=c11 -Wno-unused -Iinclude -fsyntax-only -x c - 2>/dev/null; then
            echo "headers: $call compiles with $compiler" >&2
            exit 1
        fi
    done
done
# What must: the same calls as they are meant.
for compiler in gcc clang; do
    printf '%s\n' '#include <tapegrad.h>' 'Tensor *f(Tensor *x, Tensor *parts[2], int mode)' '{' \
        'Tensor *y = tensor_huber_loss(x, x, .delta = 0.5, .reduction = TENSOR_SUM);' \
        'y = tensor_pad(y, SHAPE(1, 1), .mode = mode, .value = 2);' 'y = tensor_kl_div(x, y);' \
        'return tensor_backward_many(TENSOR_LIST(parts, 2)) ? x : y;' '}' |
        $compiler -std=gnu11 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c - ||
        { echo "headers: calls that are right fail with $compiler" >&2; exit 1; }
done
gcc -E -dD -P -Iinclude include/tapegrad.h | python3 test/by_name.py
# An option that is given twice warns.
for compiler in gcc clang; do
    if echo '#include <tapegrad.h>
        Module *f(void) { return nn_hardtanh(.max_val = 2, .max_val = 3); }' |
        $compiler -std=gnu11 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c - 2>/dev/null; then
        echo "headers: an option that is given twice does not warn with $compiler" >&2
        exit 1
    fi
done
# gcc before 12 cannot read a _Pragma in a call that stands in a call: there is none for it.
printf '%s\n' '#include <tapegrad.h>' \
    'Tensor *f(Tensor *x) { return tensor_sum(tensor_sum(x, 1, .keepdim = true), .dim = 0); }' |
    gcc -std=gnu11 -U__GNUC__ -D__GNUC__=11 -Iinclude -E -x c - | sed -n '/^Tensor \*f/,$p' |
    grep '^ *#pragma' &&
    { echo "headers: a pragma in a call for gcc 11" >&2; exit 1; }
echo "headers: each compiles alone as C11 and C++17"
