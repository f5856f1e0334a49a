#!/usr/bin/env bash
# cuda_example.sh BUILD - the example of an op with a CUDA kernel of its own: without its kernels, with them
# on the emulated device, and, where nvcc is, compiled by it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
make -s B="$build" "$build/examples/cuda/swish_emu" "$build/examples/cuda/swish"
complain() { echo "cuda_example: $*" >&2; exit 1; }
"$build/examples/cuda/swish" cpu > /dev/null || complain "it fails on the CPU"
out=$(TAPEGRAD_PLUGIN_DIR=$PWD/$build "$build/examples/cuda/swish_emu" emu:0) || complain "it fails: $out"
[[ $out == *"swish: its kernel with blocks of 4096 threads: invalid configuration argument"* ]] ||
    complain "a bad launch shape is not told as the kernel's: $out"
echo "cuda_example: runs on the CPU and by its own kernels"
