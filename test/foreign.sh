#!/usr/bin/env bash
# foreign.sh BUILD - every function of the headers is called from C++17, through the defaults' constants
# where it has options; the macros that C++ has; a training loop in Python's ctypes gives the C program's
# losses.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
for compiler in g++ clang++; do
    gcc -E -P -Iinclude include/tapegrad.h |
        python3 test/foreign/every_function.py > "$build/every_function.cpp"
    # -S: each of its thousand errors looks for its line, and nobody reads it.
    $compiler -std=c++17 -Wall -Wextra -Werror -Wl,-S -Iinclude -Itest "$build/every_function.cpp" \
        "$build/libtapegrad.a" $(make -s print-libs) -o "$build/every_function"
    "$build/every_function"
    $compiler -std=c++17 -O2 -Wall -Wextra -Wpedantic -Werror -Iinclude test/foreign/macros.cpp \
        "$build/libtapegrad.a" $(make -s print-libs) -o "$build/foreign_macros"
    "$build/foreign_macros"
done
gcc -std=c11 -Iinclude test/foreign/train.c "$build/libtapegrad.a" $(make -s print-libs) \
    -o "$build/foreign_train"
"$build/foreign_train" > "$build/train_c.txt"
python3 test/foreign/train.py "$build/libtapegrad.so" > "$build/train_py.txt"
cmp "$build/train_c.txt" "$build/train_py.txt" || {
    echo "foreign: Python's losses (right) are not the C program's" >&2
    paste "$build/train_c.txt" "$build/train_py.txt" >&2
    exit 1
}
echo "foreign: Python trains to the bits of C: $(tail -n 1 "$build/train_c.txt")"
