#!/usr/bin/env bash
# cuda.sh BUILD - the CUDA sources: compiled by nvcc where it is (one chip: all of them is for releases), run on the CPU through cuemu
# in several orders of threads; cuda:0 without a driver answers with its sentence.
set -euo pipefail
cd "$(dirname "$0")/.."
make="make -s -j$(nproc) B=$1"
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -n "$nvcc" ]; then
    $make cuda CUDA_ARCHS=90 NVCC="$nvcc"
    exported=$(nm -D --defined-only "$1/libtapegrad_cuda.so" | awk '{print $3}')
    [ "$exported" = tensor_device_plugin ] || { echo "cuda: the plugin exports $exported" >&2; exit 1; }
    if readelf -d "$1/libtapegrad_cuda.so" | grep -q 'libcuda\.so'; then echo "cuda: the plugin links the driver" >&2; exit 1; fi
else
    echo "cuda: no nvcc on this machine: the plugin is not compiled, only run through cuemu"
fi
$make NVCC="$nvcc" CUDA_ARCHS=90 check-cuda
for order in rev rand:1; do
    echo "== test_emu, CUEMU_ORDER=$order"
    CUEMU_ORDER=$order "$1/test/test_emu" > "$1/emu.log" 2>&1 || { tail -n 40 "$1/emu.log"; exit 1; }
done
if ldd "$1/libtapegrad.so" | grep -q cuda; then echo "cuda: the core links CUDA" >&2; exit 1; fi
