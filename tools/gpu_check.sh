#!/bin/sh
# gpu_check.sh [SECONDS [suite...]] - what an NVIDIA GPU is good for, in one command that ends after so many
# seconds (default 900): does cuda:0 open, do the suites pass there, how fast are the steps beside PyTorch.
# It runs what `make gpu-kit` built, from the kit's folder or from a tree that has it; where that does not
# load, or is not there, it builds for the chip at hand.  Each result is written as it comes, to
# gpu_check.txt in the build folder as well; the table comes last.  0: nothing failed, and test_ops ran.
# gpu_check.sh --dry BUILD - the same where there is no GPU, with the emulated device's plugin: cuda:0 must
# not open, a part of the ops runs in one order, and the benchmark is ours alone.
#
#   B=folder   the build folder (default build/gpu)      PYTHON=   an interpreter that has PyTorch
cd "$(dirname "$0")/.." || exit 1
B=${B:-build/gpu} dry='' device=cuda:0
if [ "${1:-}" = --dry ]; then
    dry=1 device=emu:0 B=${2:?usage: gpu_check.sh --dry BUILD}
    export CUEMU_ORDER=fwd CUEMU_GUARD=8 TAPEGRAD_SHARD=1/32
    shift 2
fi
until=$(($(date +%s) + ${1:-900}))
[ $# = 0 ] || shift
export TAPEGRAD_TEST_DEVICE=$device
table='' failed=0 ops_ran=
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mkdir -p "$B"
: > "$B/gpu_check.txt"

row() {
    line=$(printf '%-28s %-8s %s' "$1" "$2" "$3")
    echo "$line" | tee -a "$B/gpu_check.txt"
    table="$table$line
"
}

# step NAME LIMIT COMMAND... - runs it for at most LIMIT seconds; on failure shows the end of what it said.
step() {
    name=$1 limit=$2 began=$(date +%s)
    shift 2
    [ "$limit" -lt $((until - began)) ] || limit=$((until - began))
    if [ "$limit" -lt 1 ]; then row "$name" "not run" "no time was left"; failed=1; return 1; fi
    timeout -k 5 "$limit" "$@" > "$log" 2>&1
    status=$?
    if [ "$status" = 0 ]; then
        row "$name" ok "$(($(date +%s) - began)) s"
        return 0
    fi
    [ "$status" = 124 ] && echo "stopped after $limit s" >> "$log"
    tail -n 40 "$log"
    row "$name" FAILED "$(tail -n 1 "$log" | cut -c 1-90)"
    failed=1
    return 1
}

chip() {
    if [ "$dry" ]; then echo 90; return; fi
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -n 1 | tr -d .
}
name() {
    if [ "$dry" ]; then echo "none: emulated"; return; fi
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1
}

finish() {
    if [ -z "$ops_ran" ]; then row "test_ops" FAILED "it did not run"; failed=1; fi
    printf '\n%-28s %-8s %s\n%s' step result note "$table"
    exit "$failed"
}

CHIP=$(chip)
if [ -z "$CHIP" ]; then
    row GPU FAILED "nvidia-smi names no GPU"
    failed=1
    finish
fi
row GPU "$CHIP" "$(name)"

# ---- the programs: carried, or built here --------------------------------------------------------------
kit=
for folder in bin build/gpu-kit/bin; do
    if [ -x "$folder/suites" ] && "$folder/suites" > /dev/null 2>&1 && [ -z "$dry" ]; then kit=$folder; fi
done
MAKE="make -j$(nproc) B=$B"
[ "$dry" ] || MAKE="$MAKE CUDA_ARCHS=$CHIP WITHOUT_BLIS=1"
if [ "$kit" ]; then
    row programs ok "in $kit"
    export TAPEGRAD_PLUGIN_DIR="$kit/.."
    bench=$kit/bench tapegrad=$kit/tapegrad suite="$kit/suites "
else
    step library 900 $MAKE "$B/libtapegrad.a" || finish
    step plugin 900 $MAKE "$([ "$dry" ] && echo emu || echo cuda)" || finish
    step "the kit's programs" 900 $MAKE "$B/kit/suites" "$B/kit/bench" "$B/kit/tapegrad" || finish
    export TAPEGRAD_PLUGIN_DIR="$B"
    bench=$B/kit/bench tapegrad=$B/kit/tapegrad suite="$B/kit/suites "
fi

# ---- does it open, do the suites pass ------------------------------------------------------------------
if [ "$dry" ]; then
    step "cuda:0 does not open" 60 sh -c "$tapegrad info | grep '^cuda:0' | grep 'not available'"
else
    step "cuda:0 opens" 60 sh -c "$tapegrad info | grep '^cuda:0' | grep -v 'not available'" || finish
fi
all="test_ops test_device test_device_memory"
[ "$dry" ] || all="$all test_streams test_list test_queue test_slots test_late test_nets test_golden"
[ "$dry" ] || all="$all test_ops_grad test_ops_layout test_ops_memory"
for name in ${*:-$all}; do
    step "$name" 300 sh -c "$suite$name" && [ "$name" = test_ops ] && ops_ran=1
done

# Bit for bit, and what ends a capture.
for name in test_graph test_graph_ends; do
    step "captured against eager: ${name#test_}" 120 sh -c "$suite$name"
done

# ---- how fast ------------------------------------------------------------------------------------------
python=${PYTHON:-python3}
# by_cudnn CASE... - one case by our own kernels, by cuDNN as it is by default, and by cuDNN alone.
by_cudnn() {
    for case in "$@"; do
        note=
        for asked in 0 1 all; do
            step "$case, TAPEGRAD_CUDNN=$asked" 60 sh -c "echo $seconds | CUEMU_CUDNN=1 \
                TAPEGRAD_CUDNN=$asked DEVICE=$device $bench $case 1 | tail -n 1 | grep ." &&
                note="$note $asked: $(tail -n 1 "$log" | cut -d' ' -f1) ns;"
        done
        row "$case" ok "$note"
    done
}
if [ "$dry" ]; then seconds=.001 && by_cudnn attention_bf16_both_1x1x24x16
else
    seconds=.3
    by_cudnn attention_bf16_forward_32x12x1024x64 attention_bf16_both_32x12x1024x64 \
        attention_bf16_both_8x16x2048x128 nanogpt_bf16_step resnet18_bf16_step
fi
if [ "$dry" ]; then
    for graph in 0 1; do
        step "a step of the benchmark$([ "$graph" = 0 ] || echo ", captured")" 60 sh -c \
            "echo .01 | GRAPH=$graph DEVICE=$device $bench mlp_step 1 | tail -n 1 | grep ."
    done
elif "$python" -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; then
    step ceilings 60 "$python" bench/gpu_ceiling.py
    cat "$log" | tee -a "$B/gpu_check.txt"
    step "beside PyTorch" 400 env DEVICE=$device CASES="_step" FORMS="eager channels_last compiled fused" \
        ROUNDS=5 SECONDS=0.3 JSON="$B/gpu-steps-%.json" "$python" bench/side_by_side.py "$bench" 1
    cat "$log" | tee -a "$B/gpu_check.txt"
    step "captured beside PyTorch" 200 env GRAPH=1 DEVICE=$device \
        CASES="^(mlp|mnist_cnn|lstm|nanogpt|gpt2_block)_step" FORMS="eager compiled fused" \
        ROUNDS=5 SECONDS=0.3 JSON="$B/gpu-captured-%.json" "$python" bench/side_by_side.py "$bench" 1
    cat "$log" | tee -a "$B/gpu_check.txt"
else
    row "beside PyTorch" "not run" "$python has no PyTorch with CUDA"
fi
if [ "$dry" ] || ! command -v compute-sanitizer > /dev/null; then
    row sanitizer "not run" "no compute-sanitizer"
else
    step sanitizer 300 compute-sanitizer --error-exitcode 1 sh -c "TAPEGRAD_SHARD=1/64 ${suite}test_ops"
fi
finish
