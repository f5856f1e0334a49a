#!/usr/bin/env bash
# compilers.sh [COMPILER ...] - the library, the suites, the examples and the C++ tests build without a
# warning with each compiler, and with clang the emulator's plugin; of gcc 12 to 14 and clang 14 to 19 with
# those that are installed, if none is named.  Each has its folder, build/compilers/COMPILER.  CHECK=1 runs
# the suites.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# = 0 ]; then
    for compiler in gcc-{12..14} clang-{14..19}; do
        ! command -v "$compiler" > /dev/null || set -- "$@" "$compiler"
    done
fi
for compiler in "$@"; do
    build=build/compilers/$compiler cxx=${compiler/clang/clang++} cxx=${cxx/gcc/g++}
    target="all tests examples" check=${CHECK:+check}
    case $compiler in clang*) target="$target emu" ;; esac
    # shellcheck disable=SC2086
    make -s -j"$(nproc)" WERROR=1 CC="$compiler" CLANGXX="$cxx" B="$build" $target
    "$compiler" -E -P -Iinclude include/tapegrad.h |
        python3 test/foreign/every_function.py > "$build/every_function.cpp"
    for test in "$build/every_function.cpp" test/foreign/macros.cpp; do
        "$cxx" -std=c++17 -O1 -Wall -Wextra -Werror -Iinclude -Itest -S "$test" -o /dev/null
    done
    [ -z "$check" ] || make -s WERROR=1 CC="$compiler" B="$build" check
    echo "compilers: $compiler $("$compiler" -dumpfullversion -dumpversion) builds all without a warning"
done
