#!/usr/bin/env bash
# bench.sh BUILD - the benchmarks compile, and each case of `make bench` runs, but for the greatest sizes.
set -euo pipefail
cd "$(dirname "$0")/.."
make -s B="$1" "$1/bench/bench" "$1/bench/ops" "$1/bench/train" "$1/bench/scaling" "$1/bench/conv_passes.so"
greatest='_67108864|_4194304|8192x|1024x1024|x32768|gpt2|resnet18_bf16'
names=$(python3 bench/side_by_side.py --names | grep -vE "$greatest")
# What tools/gpu_check.sh measures in other sizes.
names="$names resnet50_bf16_step_2x32x4 gpt2_bf16_step_1x8x16x2x1x32 chain200_forward
    $(printf '%s_8192 ' copy_forward cross_entropy_forward cross_entropy_both adamw_update)"
for name in $names; do
    "$1/bench/bench" "$name" 1 < /dev/null | grep -x ready > /dev/null ||
        { echo "bench: $name failed" >&2; exit 1; }
done
"$1/bench/scaling" "$1/scaling.png" 1000 > "$1/scaling.txt"
[ "$(wc -l < "$1/scaling.txt")" = 12 ] || { echo "bench: scaling" >&2; cat "$1/scaling.txt" >&2; exit 1; }
# shellcheck disable=SC2046
set -- $("$1/bench/bench" ceiling)
[ $# = 4 ] || { echo "bench: no ceiling" >&2; exit 1; }
echo "bench: $(echo "$names" | wc -w) cases run"
