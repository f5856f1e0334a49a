#!/usr/bin/env bash
# style.sh - what HACKING.md says of the sources: files of at most 600 lines, lines of at most 110 columns,
# the layout of clang-format 14, no path of somebody's machine.  Without git, of all files that git would
# list.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
complain() { echo "style: $*" >&2; failed=1; }
list() {
    git ls-files --cached --others --exclude-standard -- "$@" |
        while read -r f; do [ ! -f "$f" ] || echo "$f"; done
}
golden='golden\.h$'
sources=$(list '*.c' '*.h' '*.hpp' '*.cpp' '*.cu' '*.cuh' | grep -vE "$golden")
scripts=$(list '*.sh' '*.py' '*.mk' Makefile .ci/run)
pages=$(list '*.md' | grep -v '^docs/ops.md$')

# Rows of tables in pages, and texts in Python, are as long as they must be; so are the tables of cases for
# PyTorch, and the lines that test_callsite.c counts.
for f in $sources $scripts include/tapegrad/ops.def; do
    case $f in test/oracle/cases_*.py) continue ;; esac
    lines=$(wc -l < "$f")
    [ "$lines" -le 600 ] || complain "$f has $lines lines, over 600"
done
export LC_ALL=C.UTF-8
# shellcheck disable=SC2086
exempt='\.md:[0-9]+:\||\.py:[0-9]+: *[fbr]*["'"'"'].*["'"'"'][])},]*$'
wide=$(grep -nHE '^.{111,}' $sources $scripts $pages include/tapegrad/ops.def .clang-format |
    grep -vE "$exempt|^test/trace/test_callsite.c:" | cut -d: -f1,2 || true)
[ -z "$wide" ] || complain "lines over 110 columns:
$wide"

# What is special of a row stands in ops.def; no file names one.
# shellcheck disable=SC2086
rows=$(grep -nHE '\bROW_[a-z]' $sources | grep -v 'ROW_add, ROW_exp' | cut -d: -f1,2 || true)
[ -z "$rows" ] || complain "a row of ops.def is named by its number:
$rows"

# test_callsite.c counts its own lines; for the others clang-format 14 has no layout that it leaves alone,
# for they use macros as statements and as names.
as_they_are="test/trace/test_callsite.c include/tapegrad/op_row.h src/cpu/elementwise/cast_kernel.c
    src/cpu/reduce/cross_entropy.c src/cpu/conv/direct_kernel.c src/cpu/image/pool_loops.h
    src/cpu/product/gemm_tile.h src/cpu/sequence/rnn_loops.h src/cuda/elementwise/map_rows.cuh
    test/cpu/test_vecmath.c test/cuemu/runtime.cpp"
formatted=$(echo "$sources" | grep -vxF "$(printf '%s\n' $as_they_are)")
other=$(echo "$formatted" | xargs clang-format --dry-run -Werror 2>&1) ||
    complain "not as clang-format -i leaves it:
$(echo "$other" | sed -n 's/^\([^ :]*\):[0-9].*/\1/p' | sort -u)"
path='(^|[^a-zA-Z0-9_.$}"])/(home|root|work|Users)/[a-z]'
paths=$(list | grep -vE "$golden|\.golden$" | xargs grep -nIE "$path" |
    grep -v '^test/style.sh:' || true)
[ -z "$paths" ] || complain "paths of a machine:
$paths"
[ "$failed" = 0 ] && echo "style: $(echo "$sources" | wc -l) sources, $(echo "$scripts" | wc -l) scripts"
exit $failed
