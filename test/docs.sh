#!/usr/bin/env bash
# docs.sh BUILD - docs/ops.md is what the descriptors say; what is made of ops has a test; golden files are
# small.
set -euo pipefail
cd "$(dirname "$0")/.."
make -s --no-print-directory B="$1" "$1/ops.md"
# What is being worked on is written; what was committed must have been.
if ! diff "$1/ops.md" docs/ops.md > "$1/ops.diff"; then
    if [ -n "$(git status --porcelain -- include src 2> /dev/null)" ]; then
        cp "$1/ops.md" docs/ops.md
        echo "docs/ops.md is written anew: look at the diff"
    else
        echo "docs/ops.md is not what the descriptors say: make docs/ops.md" >&2
        head -n 5 "$1/ops.diff" >&2
        exit 1
    fi
fi
for name in $(sed -n 's/^\([a-z_0-9A-Z]*\) | .*/\1/p' test/composed.txt); do
    grep -qE "tensor_${name}_?(_args)?\(" test/*/test_*.c || {
        echo "tensor_$name, which is made of ops, has no test" >&2; exit 1; }
done
size=$(find test/oracle -name '*golden*' -type f -print0 | xargs -0 cat | wc -c)
[ "$size" -lt 6000000 ] || { echo "the golden files take $size bytes, over 6 MB" >&2; exit 1; }
python3 docs/contract.py --missing include/tapegrad/*.h include/tapegrad/*/*.h || {
    echo "these public names have no words in their header" >&2; exit 1; }
