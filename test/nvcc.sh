#!/usr/bin/env bash
# nvcc.sh BUILD - the CUDA sources compile for one chip (all of them is for releases), without optimisation,
# which checks as much; the plugin exports one function and links neither driver nor libraries of CUDA's; the
# library links no CUDA.
set -euo pipefail
cd "$(dirname "$0")/.."
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null || true)
if ldd "$1/libtapegrad.so" | grep cuda > /dev/null; then echo "cuda: the library links CUDA" >&2; exit 1; fi
if [ -z "$nvcc" ]; then
    echo "no nvcc on this machine: the plugin is not compiled, only run on the CPU by the suites of emu:0"
    exit 0
fi
make -s B="$1" CUDA_ARCHS=90 CUDA_OPT="-O1 -Xcicc -O1 -Xptxas -O0" NVCC="$nvcc" cuda
plugin=$1/libtapegrad_cuda.so
exported=$(nm -D --defined-only "$plugin" | awk '{print $3}')
[ "$exported" = tensor_device_plugin ] || { echo "cuda: the plugin exports $exported" >&2; exit 1; }
if readelf -d "$plugin" | grep NEEDED | grep -E 'cuda|cublas|nvrtc'; then
    echo "cuda: the plugin links that, which it shall open when it is needed" >&2
    exit 1
fi
