#!/usr/bin/env bash
# examples.sh BUILD - every example runs; the demo, with options, on a terminal and not, interrupted, and
# with bad input.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -z "${TAPEGRAD_DATA:-}" ] || TAPEGRAD_DATA=$(cd "$TAPEGRAD_DATA" && pwd)
make -s -j"$(nproc)" B="$1" examples
bin=$(cd "$1" && pwd)/examples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# MNIST's first images do: a tenth of them, in files of the same kind.
if [ -d "${TAPEGRAD_DATA:-/}/mnist" ]; then
    python3 - "$TAPEGRAD_DATA/mnist" "$work/tenth/mnist" <<'EOF'
import gzip, os, sys
os.makedirs(sys.argv[2])
for name in [n for n in os.listdir(sys.argv[1]) if "ubyte" in n]:
    opened = gzip.open if name.endswith(".gz") else open
    with opened(os.path.join(sys.argv[1], name), "rb") as file:
        data = file.read()
    header, each = (16, 28 * 28) if data[3] == 3 else (8, 1)
    count = int.from_bytes(data[4:8], "big") // 10
    with opened(os.path.join(sys.argv[2], name), "wb") as file:
        file.write(data[:4] + count.to_bytes(4, "big") + data[8:header + count * each])
EOF
    export TAPEGRAD_DATA=$work/tenth
fi
for example in 00_tensors 01_gradients 02_custom_op 03_xor 04_spiral 05_mnist_mlp 06_mnist_cnn 07_module \
    08_fit; do
    "$bin/$example" > out 2> err || { echo "examples: $example failed" >&2; cat out err >&2; exit 1; }
done
[ -s spiral.png ] && [ -s net.safetensors ] || { echo "examples: a file is missing" >&2; exit 1; }
"$bin/mnist" --help | grep -- --epochs > /dev/null
"$bin/mnist" --epochs 1 --batch 128 --save w.safetensors > out
note=' \(synthetic digits\)'
[ -d "${TAPEGRAD_DATA:-/}/mnist" ] && drawn= || drawn=$note
accuracy='^test accuracy [01]\.[0-9]{4} \([0-9]+ images\), [0-9.]+ s'
grep -qE "$accuracy$drawn\$" out || { cat out >&2; exit 1; }
env -u TAPEGRAD_DATA "$bin/mnist" --epochs 0 2> err | grep -E "$accuracy$note\$" > /dev/null &&
    grep -q synthetic err || {
    echo "examples: without MNIST the demo does not say that it drew its digits" >&2; exit 1; }
[ -s mnist_curve.png ] && [ -s mnist_misread.png ] || { echo "examples: a picture is missing" >&2; exit 1; }
"$bin/mnist" --epochs 0 --load w.safetensors | tail -n 1 | cut -d' ' -f3 > again
[ "$(tail -n 1 out | cut -d' ' -f3)" = "$(cat again)" ] || {
    echo "examples: the loaded weights test differently" >&2; exit 1; }
for bad in "--epochs x" "--batch 0" "--nonsense 1" "--lr"; do
    if "$bin/mnist" $bad > /dev/null 2> err; then echo "examples: mnist $bad was accepted" >&2; exit 1; fi
    [ -s err ]
done
for bad in "--data $work/nowhere" "--load $work/nothing" "--device cuda:7"; do
    if "$bin/mnist" --epochs 1 $bad > /dev/null 2> err; then
        echo "examples: mnist $bad was accepted" >&2; exit 1
    fi
    grep -q mnist err
done
"$bin/mnist" --epochs 50 > out & pid=$!
sleep 2; kill -INT $pid; wait $pid || { echo "examples: an interrupted run failed" >&2; cat out >&2; exit 1; }
tail -n 1 out | grep '^test accuracy' > /dev/null
echo "examples: all run"
