#!/usr/bin/env bash
# dry.sh BUILD - tools/gpu_check.sh without a GPU, from a copy of the kit that has the emulated device's
# plugin: each of its branches, also those of failures, with stand-ins for PyTorch and NVIDIA's programs.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1") root=$PWD
kit=$build/dry/kit out=$build/dry/out
make -s B="$1" KIT="$kit" kit-folder emu > /dev/null
cp "$build/libtapegrad_emu.so" "$kit"
mkdir -p "$build/dry/site/nvidia/cublas/lib"
cp -r test/kit/standins/site/torch "$build/dry/site"
cp test/kit/standins/bench/*.py "$kit/bench"
standins=$root/test/kit/standins
export TINY=1 DEVICE=emu:0 TAPEGRAD_SHARD=1/64 CUEMU_ORDER=fwd CUEMU_GUARD=8 PYTHONPATH=$build/dry/site
export PATH=$standins/smi:$standins/tools:$PATH
# The interpreter itself, not what chooses one: it starts a hundred times.
PYTHON=$(python3 -c 'import sys; print(sys.executable)')
export PYTHON
unset STAGES B
failed=0 runs=0

# run STATUS FOLDER "SETTINGS" [SECONDS suite...] - and what its table must have, a pattern a line of stdin.
run() {
    local want=$1 folder=$2 settings=$3 status=0
    shift 3
    runs=$((runs + 1))
    # shellcheck disable=SC2086
    (cd "$folder" && env $settings sh tools/gpu_check.sh "${@:-60}") > "$out" 2>&1 || status=$?
    local table complaint=
    table=$(sed -n '/^step  *result  *note/,$p' "$out")
    [ "$status" = "$want" ] || complaint="exit status $status"
    while read -r pattern; do
        grep -qE -- "$pattern" <<< "$table" || complaint="$complaint; no \"$pattern\""
    done
    [ -z "$complaint" ] && return
    echo "dry run with \"$settings\": $complaint; it said:" && cat "$out"
    failed=1
}

# All is there, and nothing fails.
run 0 "$kit" "" 80 test_ops test_slots << 'EOF'
^GPU +90 +a stand-in
^PyTorch's libraries +ok +2 folders
^programs +ok
^emu:0 opens +ok
^test_ops +ok
^test_slots +ok
^ceilings +ok
^CPU time of an op +(ok|below) .*us \(want 3.5\)
^CPU time of a captured node +(ok|below)
captured +ok .* x eager .* x graph .* x reduced
^GPT-2, batch 2 +(ok|below) .*tokens/s
^ResNet-50 +(ok|below) .* x channels_last .*images/s
^add, 8192 bytes +(ok|below) .* of the copy rate
^AdamW, 8192 bytes +(ok|below) .* of its memory
by TAPEGRAD_CUDNN +ok +0: .* all:
^captured against eager: graph +ok
^sanitizer: memcheck +ok
^sanitizer: racecheck +ok
^sanitizer: synccheck +ok
^sanitizer: initcheck +ok
^counters: softmax.* +ok +1 kernels
EOF

# What is missing, or fails.
run 1 "$kit" STANDIN_GPU=none << 'EOF'
^GPU +FAILED
^test_ops +FAILED +it did not run
EOF
run 1 "$kit" "DEVICE=cuda:0" << 'EOF'
^cuda:0 opens +FAILED .*could not be opened: libtapegrad_cuda
^test_ops +FAILED +it did not run
EOF
run 1 "$kit" "STANDIN_RACES=1 STANDIN_COUNTERS=refused STANDIN_TORCH=cpu STAGES=suites,sanitizers,counters" \
    60 test_ops << 'EOF'
^PyTorch +not run .*it finds no GPU
^sanitizer: racecheck +FAILED +1 hazard
^counters: .*skipped .*ERR_NVGPUCTRPERM
EOF
run 1 "$kit" "STANDIN_COUNTERS=broken STAGES=suites,counters" 60 test_ops << 'EOF'
^test_ops +ok
^counters: .*FAILED .*too old
EOF
run 0 "$kit" "STANDIN_TORCH=full STAGES=suites,gpt" 60 test_ops << 'EOF'
^GPT-2, batch 2 +FAILED
^GPT-2, batch 1 +(ok|below)
EOF
run 0 "$kit" "STANDIN_TORCH=no_graph STAGES=suites,gpt" 60 test_ops << 'EOF'
^GPT-2, batch 2, captured +(ok|below) .* x eager
EOF
run 0 "$kit" "STANDIN_TORCH=cpu STAGES=suites,gpt PATH=$standins/smi:/usr/bin:/bin" 60 test_ops << 'EOF'
^GPT-2, batch 2, alone +ok .* us
EOF
run 0 "$kit" "STAGES=suites,sanitizers,counters PATH=$standins/smi:/usr/bin:/bin" 60 test_ops << 'EOF'
^sanitizers +skipped
^counters +skipped
EOF

# A suite that fails or does not end, and no time.
broken=$build/dry/broken
rm -rf "$broken" && mkdir -p "$broken/bin" "$broken/tools"
cp tools/gpu_check.sh "$broken/tools" && cp -r bench "$broken" && cp "$kit/libtapegrad_emu.so" "$broken"
ln -s "$kit/bin/tapegrad" "$kit/bin/bench" "$broken/bin"
cat > "$broken/bin/suites" << 'EOF'
#!/bin/sh
case ${1:-} in '') echo test_ops ;; test_ops) echo "add: 1 != 2" && exit 1 ;; *) sleep 60 ;; esac
EOF
chmod +x "$broken/bin/suites"
run 1 "$broken" "STAGES=suites" 4 test_ops test_device test_slots << 'EOF'
^test_ops +FAILED +add: 1 != 2
^test_device +FAILED +stopped after
^test_slots +not run +no time was left
^test_ops +FAILED +it did not run
EOF

# No programs that load: built here, or not.
rm "$broken/bin/suites"
run 1 "$broken" "STAGES=suites PATH=$standins/make:$PATH" << 'EOF'
^the kit's programs +FAILED .*no nvcc
EOF
run 0 "$broken" "STAGES=suites STANDIN_BUILT=$kit PATH=$standins/make:$PATH" 60 test_ops << 'EOF'
^the kit's programs +ok
^plugin +ok
^test_ops +ok
EOF
echo "gpu_check: $runs dry runs"
exit $failed
