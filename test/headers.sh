#!/bin/sh
# headers.sh - every public header alone, as C11 and as C++17, and every macro in use, without a warning.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
headers="include/tapegrad.h include/tapegrad/*.h include/tapegrad/*/*.h"
strict="-Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only"
cmocka='#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>'
for header in $headers; do
    name=${header#include/}
    before=
    [ "$name" != tapegrad/cmocka.h ] || before=$cmocka
    printf '%s\n#include <%s>\nint main(void) { return 0; }\n' "$before" "$name" |
        gcc -std=c11 $strict -x c - || { echo "headers: $name alone as C11" >&2; exit 1; }
    [ "$name" != tapegrad/cmocka.h ] || continue        # cmocka's own header is C
    # C's library must do for them: C++'s own <math.h> takes five times as long to read as they do.
    printf '#include <%s>\nint main() { return 0; }\n' "$name" |
        g++ -std=c++17 -nostdinc++ $strict -x c++ - || { echo "headers: $name alone as C++17" >&2; exit 1; }
done
# All of them by each compiler, with the libraries' headers that a program has.
all() { for header in $headers; do echo "#include <${header#include/}>"; done; }
for compiler in gcc clang; do
    { echo "$cmocka"; all; } | $compiler -std=c11 $strict -x c - ||
        { echo "headers: as C11 with $compiler" >&2; exit 1; }
done
for compiler in g++ clang++; do
    all | grep -v /cmocka.h | $compiler -std=c++17 $strict -x c++ - ||
        { echo "headers: as C++17 with $compiler" >&2; exit 1; }
done
# Every macro as a user's program has it; the optimizer's warnings too (clang's has none).
uses=$(gcc -E -dD -Iinclude test/foreign/macros.c |
    python3 test/foreign/every_macro.py "gcc -Iinclude" test/foreign/macros.c)
for compiler in "gcc -O2 -c" "clang -fsyntax-only"; do
    { cat test/foreign/macros.c; echo "$uses"; } |
        $compiler -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -o /dev/null -x c - ||
        { echo "headers: a macro warns with $compiler" >&2; exit 1; }
done
# What must not compile: a number, or a bare array, where tensors are wanted, a number where an enum is. C
# would take them, with a warning at most.
wrong() {
    printf '%s\n' \
    'tensor_add(x, 2)' 'tensor_cat(parts, 1)' 'tensor_stack(parts)' \
    'nn_clip_grad_norm_(parts, 1.0)' 'tensor_lstm(x, x, x, parts)' 'optim_sgd(parts, 0.1)' \
    '(void)tensor_backward_many(parts), x' '(void)tensor_gradients_many(parts, parts, &x), x' \
    'tensor_huber_loss(x, x, 0.5)' 'tensor_smooth_l1_loss(x, x, 1.0)' \
    'tensor_pad(x, SHAPE(1, 1), 2.0)' 'tensor_kl_div(x, x, 1.f)' 'tensor_mse_loss(x, x, TENSOR_SUM)' \
    'tensor_gelu(x, 0.5)' 'tensor_gelu_(x, 1)' 'tensor_quantile(x, 0.5, 0, true, 0.1)' \
    'tensor_searchsorted(x, x, 1)' '(void)tensor_meshgrid(TENSORS(x), parts, 1.0), x' \
    '(void)tensor_qr(x, 0.5), x' 'tensor_grid_sample(x, x, 0.5)' '(void)data_mnist("", 0.13, 0.31), x' \
    '(void)optim_reduce_lr_on_plateau(NULL, 0.5), x' '(void)nn_gelu(0.5), x'
}
for compiler in "gcc -fmax-errors=0" "clang -ferror-limit=0"; do
    # A call a line; errors must name each.
    { echo '#include <tapegrad.h>'
      wrong | awk '{ print "Tensor *f" NR "(Tensor *x, Tensor *parts[2]) { return " $0 "; }" }'; } |
        $compiler -std=c11 -Wno-unused -Iinclude -fsyntax-only -x c - 2>&1 |
        sed -n 's/^<stdin>:\([0-9]*\):.* error: .*/\1/p' | sort -un > "$folder/refused"
    line=1
    wrong | while read -r call; do
        line=$((line + 1))
        grep -qx $line "$folder/refused" || {
            echo "headers: $call compiles with $compiler" >&2; exit 1; }
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
