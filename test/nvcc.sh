#!/usr/bin/env bash
# nvcc.sh BUILD - the CUDA sources compile, without optimisation but for the files of hot kernels, to PTX
# where there are many kernels.  Most files are compiled together; the emulator's build compiles each alone.
# The plugin exports one function and links neither driver nor libraries of CUDA's; the library links no CUDA.
#
# The machine code of hot kernels for one chip: none spills, all load 16 bytes at once.  It follows from PTX
# and ptxas alone; test/cuda/examined.txt has the digests of what passed.  PTX with another digest is examined
# anew and named at the end, to be written down there; the rest is not assembled again.
set -euo pipefail
cd "$(dirname "$0")/.."
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null || true)
if ldd "$1/libtapegrad.so" | grep cuda > /dev/null; then echo "cuda: the library links CUDA" >&2; exit 1; fi
if [ -z "$nvcc" ]; then
    echo "no nvcc on this machine: the plugin is not compiled, only run on the CPU by the suites of emu:0"
    exit 0
fi
mkdir -p "$1/hot"
ptx="-gencode arch=compute_90,code=compute_90"
make -s B="$1" CUDA_ARCHS=90 NVCC="$nvcc" CUDA_UNITS=1 CUDA_SQUEEZE=none \
    CUDA_OPT="-O1 -Xcicc -O1 -Xptxas -O0" CUDA_ROWS="$ptx" \
    CUDA_HOT_CODE="$ptx" CUDA_HOT="-O1 --keep --keep-dir $1/hot" cuda hot
plugin=$1/libtapegrad_cuda.so
exported=$(nm -D --defined-only "$plugin" | awk '{print $3}')
[ "$exported" = tensor_device_plugin ] || { echo "cuda: the plugin exports $exported" >&2; exit 1; }
if readelf -d "$plugin" | grep NEEDED | grep -E 'cuda|cublas|nvrtc'; then
    echo "cuda: the plugin links that, which it shall open when it is needed" >&2
    exit 1
fi

build=$1 examined=test/cuda/examined.txt
tool() { command -v "$1" || ls "$(dirname "$nvcc")/$1" 2> /dev/null || true; }
ptxas=$(tool ptxas) cuobjdump=$(tool cuobjdump) new=
version=$("$ptxas" --version | tail -n 1)
of_path='_GLOBAL__N__[0-9a-f]{8}' # in names of a nameless namespace: where the source lies
rm -f "$build"/hot/*.cubin
for file in "$build"/hot/*.ptx; do
    digest=$( (echo "$version"; grep -v '^//' "$file" | sed -E "s/$of_path//g") | sha256sum | cut -d' ' -f1)
    grep -q "^$digest " "$examined" && continue
    "$ptxas" -arch=sm_90 -warn-spills -warn-lmem-usage -Werror "$file" -o "${file%.ptx}.cubin"
    new+="$digest $(basename "$file")"$'\n'
done

# count FILE WHAT - how often each kernel has it: in the machine code, where it was made and there is a tool
# to read it, else in the PTX, whose loads are those of the machine code one for one.
wide='LDG(STS)?\.E[.A-Z0-9]*\.128|ld\.global(\.nc)?\.(v4\.[bfu]32|v2\.[bfu]64)|cp\.async\.cg\..*, 16,'
cores='HMMA|mma\.sync'
count() {
    local code=${1%.ptx}.cubin
    if [ -n "$cuobjdump" ] && [ -f "$code" ]; then "$cuobjdump" -sass "$code"; else cat "$1"; fi |
        what=$2 awk '
            /Function : |\.entry / { name = $NF; sub(/\($/, "", name); all[name] = 0 }
            $0 ~ ENVIRON["what"] { all[name]++ }
            END { for (n in all) print all[n], n }'
}

hot=(softmax_kernelI8T softmax_grad_kernelI8T loss_kernelI8T entropy_grad_kernelI8T norm_kernelI8T
    norm_grad_kernelI8T layer_grad_kernel group_part_kernelI8T batch_part_kernelI8T batch_dx_kernelI8T
    norm_of_chunks run_rule fold_kernelI8Togetherf 'copy_kernelI.*Lb1E' map_kernelIf)
tensor=('7forwardI[^L]+Li' '12grad_of_rowsI[^L]+Li' '15grad_of_columnsI[^L]+Li' conv_meetI conv_weightsI)
hot+=(row_dots '7forwardILi' '12grad_of_rowsILi' '15grad_of_columnsILi' "${tensor[@]}")

# all_have WHAT SENTENCE KERNEL... - or the sentence is told.
all_have() {
    local what=$1 sentence=$2 all kernel
    shift 2
    all=$(for file in "$build"/hot/*.ptx; do count "$file" "$what"; done | grep -v foreach_zero)
    for kernel; do
        grep -qE "$kernel" <<< "$all" || { echo "cuda: there is no kernel $kernel" >&2; exit 1; }
        if grep -E "^0 .*$kernel" <<< "$all"; then echo "cuda: $sentence" >&2; exit 1; fi
    done
}
all_have "$wide" "loads no 16 bytes at once" "${hot[@]}"
all_have "$cores" "leaves tensor cores alone" "${tensor[@]}"
echo "cuda: the kernels ${hot[*]} load 16 bytes at once, and do not spill; ${tensor[*]} use tensor cores"
[ -z "$new" ] || printf 'cuda: examined anew, not in %s:\n%s' "$examined" "$new"
