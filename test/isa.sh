#!/usr/bin/env bash
# isa.sh BUILD [INSTRUCTION SETS] - the suites of the kernels on each instruction set below the machine's best.
#
# TAPEGRAD_ISA lowers the library's choice.  test_vecmath has the functions in itself: it is compiled for each set, with the flags
# of the kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: isa.sh BUILD [base avx2]}
shift
sets=${*:-base avx2}
suites="test_ops test_ops_layout test_golden test_gemm test_specials test_promotion test_reduce"
[ "$(uname -m)" = x86_64 ] || { echo "isa.sh: one instruction set only on $(uname -m)"; exit 0; }

programs=
for suite in $suites; do
    [ -x "$build/test/$suite" ] || { echo "isa.sh: $build/test/$suite is missing: make B=$build $build/test/$suite" >&2; exit 1; }
    programs="$programs $build/test/$suite"
done
status=0
for isa in $sets; do
    case $isa in
    base) march=; needs= ;;
    avx2) march=-march=x86-64-v3; needs=avx2 ;;
    avx512) march=-march=x86-64-v4; needs=avx512dq ;;
    *) echo "isa.sh: $isa is none of base, avx2, avx512" >&2; exit 1 ;;
    esac
    if [ -n "$needs" ] && ! grep -qw "$needs" /proc/cpuinfo; then echo "#### $isa: this machine lacks it"; continue; fi
    echo "#### $isa"
    vecmath=$build/test/test_vecmath_$isa
    # shellcheck disable=SC2046,SC2086
    ${CC:-gcc} -std=gnu11 -O3 -fwrapv -ffp-contract=off -fno-math-errno -fno-trapping-math $march -Iinclude -Isrc test/test_vecmath.c \
        -Wl,--whole-archive "$build/libtapegrad.a" -Wl,--no-whole-archive $(make -s print-libs) -lcmocka -o "$vecmath"
    TAPEGRAD_ISA=$isa test/run.sh $programs "$vecmath" || status=1
done
exit $status
