#!/usr/bin/env bash
# nvcc.sh BUILD - the CUDA sources compile, without optimisation, which checks as much; to PTX where there are
# many kernels.  Most files are compiled together; the emulator's build compiles each alone.  The plugin
# exports one function and links neither driver nor libraries of CUDA's; the library links no CUDA.
#
# The machine code of hot kernels for one chip: none spills, all load 16 bytes at once.  It follows from nvcc
# and the preprocessed source; test/cuda/examined.txt has the digests of what passed.  A file with
# another digest is examined anew and named at the end, to be written down there.
set -euo pipefail
cd "$(dirname "$0")/.."
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null || true)
if ldd "$1/libtapegrad.so" | grep cuda > /dev/null; then echo "cuda: the library links CUDA" >&2; exit 1; fi
if [ -z "$nvcc" ]; then
    echo "no nvcc on this machine: the plugin is not compiled, only run on the CPU by the suites of emu:0"
    exit 0
fi
mkdir -p "$1/hot"
ptx="-gencode arch=compute_90,code=compute_90" quick="-O0 -Xcicc -O0 -Xptxas -O0"
make -s B="$1" CUDA_ARCHS=90 NVCC="$nvcc" CUDA_UNITS=1 CUDA_SQUEEZE=none CUDA_OPT="$quick" CUDA_ROWS="$ptx" \
    CUDA_HOT_CODE="$ptx" CUDA_HOT="$quick --keep --keep-dir $1/hot" cuda hot
plugin=$1/libtapegrad_cuda.so
exported=$(nm -D --defined-only "$plugin" | awk '{print $3}')
[ "$exported" = tensor_device_plugin ] || { echo "cuda: the plugin exports $exported" >&2; exit 1; }
if readelf -d "$plugin" | grep NEEDED | grep -E 'cuda|cublas|nvrtc'; then
    echo "cuda: the plugin links that, which it shall open when it is needed" >&2
    exit 1
fi

# What the kernels must have, in machine code or PTX, and which kernels.
wide='LDG(STS)?\.E[.A-Z0-9]*\.128|ld\.global(\.nc)?\.(v4\.[bfu]32|v2\.[bfu]64)|cp\.async\.cg\..*, 16,'
cores='HMMA|mma\.sync'
hot=(softmax_kernelI8T softmax_grad_kernelI8T loss_kernelI8T entropy_grad_kernelI8T norm_kernelI8T
    norm_grad_kernelI8T layer_grad_kernel group_part_kernelI8T batch_part_kernelI8T batch_dx_kernelI8T
    norm_of_chunks run_rule fold_kernelI8Togetherf 'copy_kernelI.*Lb1E' map_kernelIf)
tensor=('7forwardI[^L]+Li' '12grad_of_rowsI[^L]+Li' '15grad_of_columnsI[^L]+Li' conv_meetI conv_weightsI)
hot+=(row_dots '7forwardILi' '12grad_of_rowsILi' '15grad_of_columnsILi' "${tensor[@]}")

build=$1 examined=test/cuda/examined.txt new=
rm -rf "$build/examined" && mkdir "$build/examined"
examine="-std=c++20 -Iinclude -Isrc -I. -arch=sm_90 -Werror all-warnings"
examine+=" -Xptxas -warn-spills,-warn-lmem-usage"
version=$("$nvcc" --version | tail -n 1) what="$examine $wide $cores ${hot[*]} ${tensor[*]}"
for text in "$build"/hot/*.cpp1.ii; do
    name=$(basename "$text" .cpp1.ii)
    digest=$( (echo "$version $what"; grep -v '^#' "$text") | sha256sum | cut -d' ' -f1)
    grep -q "^$digest " "$examined" && continue
    # shellcheck disable=SC2086
    "$nvcc" $examine -cubin --keep --keep-dir "$build/examined" -o "$build/examined/$name.cubin" \
        "$(find src/cuda test/cuda "$build/units" -name "$name.cu")"
    new+="$digest $name.cu"$'\n'
done

# count FILE WHAT - how often each kernel has it: in the machine code, where there is a tool to read it, else
# in the compiler's text, whose loads are those of the machine code one for one.
tool=$(command -v cuobjdump || ls "$(dirname "$nvcc")/cuobjdump" 2> /dev/null || true)
count() {
    if [ -n "$tool" ]; then "$tool" -sass "$1"; else cat "${1%.cubin}.ptx"; fi | what=$2 awk '
        /Function : |\.entry / { name = $NF; sub(/\($/, "", name); all[name] = 0 }
        $0 ~ ENVIRON["what"] { all[name]++ }
        END { for (n in all) print all[n], n }'
}

# all_have WHAT SENTENCE KERNEL... - or the sentence is told.
names=$(sed -n 's/.*\.entry \([^ (]*\).*/\1/p' "$build"/hot/*.ptx)
all_have() {
    local what=$1 sentence=$2 all kernel
    shift 2
    all=$(for file in $(find "$build/examined" -name '*.cubin' ! -name '*.sm_90.*'); do count "$file" "$what"
        done | grep -v foreach_zero || true)
    for kernel; do
        grep -qE "$kernel" <<< "$names" || { echo "cuda: there is no kernel $kernel" >&2; exit 1; }
        if grep -E "^0 .*$kernel" <<< "$all"; then echo "cuda: $sentence" >&2; exit 1; fi
    done
}
all_have "$wide" "loads no 16 bytes at once" "${hot[@]}"
all_have "$cores" "leaves tensor cores alone" "${tensor[@]}"
echo "cuda: the kernels ${hot[*]} load 16 bytes at once, and do not spill; ${tensor[*]} use tensor cores"
[ -z "$new" ] || printf 'cuda: examined anew, not in %s:\n%s' "$examined" "$new"
