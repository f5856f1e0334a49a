#!/usr/bin/env bash
# all.sh - everything that `make test` promises, in order; stops at the first failure and says which step it was.
#
#   1 set-up   2 gcc: library, suites, also without AVX-512 and without AVX2   3 clang: library with strict warnings, headers as C11 and C++17   4 README's snippets
#   5 docs/ops.md, sizes, exported symbols, installed package   6 sanitizers, valgrind   7 failing memory   8 without BLIS   9 CUDA sources: nvcc
#   where it is, cuemu always   10 examples, briefly
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${TAPEGRAD_DATA:-}" ] && [ -d ../shared/data ]; then export TAPEGRAD_DATA=$PWD/../shared/data; fi
jobs=${JOBS:-$(nproc)}
make="make -s -j$jobs"
current=
began=$(date +%s)
step() { current=$1; printf '\n#### %s (%d s)\n' "$1" "$(($(date +%s) - began))"; }
trap 'code=$?; [ $code -eq 0 ] || printf "\nmake test: failed in: %s\n" "$current" >&2; exit $code' EXIT

step "set-up"
tools/setup.sh test
for tool in gcc clang clang++ g++ pkg-config objcopy valgrind; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: tools/setup.sh test installs it on Debian and Ubuntu" >&2; exit 1; }
done

step "gcc: the library, all suites"
$make all
$make check

step "older instruction sets: the suites of the kernels"
test/isa.sh build

step "clang: the library with its warnings as errors, the suites of the core"
$make B=build/clang CC=clang all
$make B=build/clang CC=clang SUITES="test_tape test_ops test_ops_grad test_nn" check

step "headers as C11 and as C++17; README's snippets"
test/headers.sh
test/snippets.sh build

step "docs/ops.md is what the descriptors say; golden files are small"
$make build/tools/ops_table
build/tools/ops_table test/oracle/torch_names.txt test/composed.txt include/tapegrad/*.h | diff - docs/ops.md > build/ops.diff || {
    echo "docs/ops.md is not what the descriptors say: make docs/ops.md" >&2; head -5 build/ops.diff >&2; exit 1; }
for name in $(sed -n 's/^\([a-z_0-9A-Z]*\) | .*/\1/p' test/composed.txt); do
    grep -qE "tensor_${name}_?(_args)?\(" test/*/test_*.c || { echo "tensor_$name, which is made of ops, has no test" >&2; exit 1; }
done
[ "$(cat test/oracle/golden/*.golden test/oracle/*_golden.h | wc -c)" -lt 6000000 ] || { echo "the golden files take over 6 MB" >&2; exit 1; }

step "exports, installation"
test/exports.sh build
test/install.sh build

step "AddressSanitizer and UndefinedBehaviorSanitizer: all suites"
$make asan

step "ThreadSanitizer: threads"
$make tsan

step "valgrind: the tape"
$make valgrind

step "failing memory at every point"
$make faults

step "a build without BLIS"
$make B=build/noblis WITHOUT_BLIS=1 SUITES="test_gemm test_matmul" check

step "CUDA sources"
test/cuda.sh build

step "examples"
test/examples.sh build

printf '\nmake test: all passed in %d s\n' "$(($(date +%s) - began))"
