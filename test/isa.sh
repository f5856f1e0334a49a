#!/usr/bin/env bash
# isa.sh BUILD SET... - the suites of the kernels on instruction sets (base avx2 avx512) below the machine's
# best; the best itself is what all suites run on.
#
# TAPEGRAD_ISA lowers the library's choice.  test_vecmath has the functions in itself: it is compiled for
# each set, with the flags of the kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: isa.sh BUILD SET...}
shift
suites="test_ops test_ops_layout test_golden test_specials test_promotion test_reduce test_narrow
    test_lengths test_pow test_traps_index"
[ "$(gcc -dumpmachine | cut -d- -f1)" = x86_64 ] || { echo "isa.sh: x86-64 only"; exit 0; }
best=$("$build/tapegrad" info | sed -n 's/^cpu  *//p')
programs=
for suite in $suites; do programs="$programs $build/test/$suite"; done
status=0
for isa in "$@"; do
    case $isa in
    base) march= name=baseline ;;
    avx2) march=-march=x86-64-v3 name="AVX2 + FMA" ;;
    avx512) march=-march=x86-64-v4 name=AVX-512 ;;
    *) echo "isa.sh: $isa is none of base, avx2, avx512" >&2; exit 1 ;;
    esac
    echo "#### $isa"
    below=$programs
    if [ "$name" = "$best" ]; then
        echo "is this machine's best: the suites ran on it, but for what they have in themselves"
        below=
    elif [ "$best" = baseline ] || [ "$isa" = avx512 ]; then
        echo "this machine lacks it"
        continue
    fi
    vecmath=$build/test/test_vecmath_$isa
    # shellcheck disable=SC2046,SC2086
    ${CC:-gcc} -std=gnu11 -O3 -fwrapv -ffp-contract=off -fno-math-errno -fno-trapping-math $march \
        -Iinclude -Isrc -Itest test/cpu/test_vecmath.c \
        -Wl,--whole-archive "$build/libtapegrad.a" -Wl,--no-whole-archive \
        $(make -s print-libs) -lcmocka -o "$vecmath"
    # shellcheck disable=SC2086
    TAPEGRAD_ISA=$isa test/run.sh $below "$vecmath" || status=1
done
exit $status
