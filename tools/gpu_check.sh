#!/bin/sh
# gpu_check.sh [SECONDS [suite...]] - what an NVIDIA GPU is good for, in one command that ends after so many
# seconds (default 900): does cuda:0 open, do the suites pass there, how do speed and memory stand to their
# targets beside PyTorch, what do sanitizers and counters say.  It runs what `make gpu-kit` built, from the
# kit's folder or from a tree that has it; where that does not load, or is not there, it builds for the chip
# at hand.  Each result is written as it comes, to gpu_check.txt in the build folder as well; the table comes
# last.  0: nothing failed, and test_ops ran.  A target that is missed ("below") is no failure.
# gpu_check.sh --dry BUILD - where there is no GPU: every branch, with the emulated device and with stand-ins
# for PyTorch and NVIDIA's programs (test/kit/dry.sh).
#
#   B=folder   the build folder (default build/gpu)      PYTHON=   an interpreter that has PyTorch
#   STAGES=suites,speed,gpt,capture,sanitizers,counters  DEVICE=   cuda:0      TINY=1   small sizes
cd "$(dirname "$0")/.." || exit 1
[ "${1:-}" != --dry ] || exec test/kit/dry.sh "${2:?usage: gpu_check.sh --dry BUILD}"
B=${B:-build/gpu} device=${DEVICE:-cuda:0} tiny=${TINY:-} python=${PYTHON:-python3}
stages=${STAGES:-suites,speed,gpt,capture,sanitizers,counters}
until=$(($(date +%s) + ${1:-900}))
[ $# = 0 ] || shift
export TAPEGRAD_TEST_DEVICE="$device"
table='' failed=0 ops_ran='' torch=''
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mkdir -p "$B"
: > "$B/gpu_check.txt"

row() {
    line=$(printf '%-36s %-8s %s' "$1" "$2" "$3")
    echo "$line" | tee -a "$B/gpu_check.txt"
    table="$table$line
"
}

# try NAME LIMIT COMMAND... - runs it for at most LIMIT seconds; on failure a row and the end of what it said.
try() {
    name=$1 limit=$2 began=$(date +%s)
    shift 2
    [ "$limit" -lt $((until - began)) ] || limit=$((until - began))
    if [ "$limit" -lt 1 ]; then row "$name" "not run" "no time was left"; failed=1; return 1; fi
    timeout -k 5 "$limit" "$@" > "$log" 2>&1
    status=$?
    took=$(($(date +%s) - began))
    [ "$status" != 0 ] || return 0
    [ "$status" != 124 ] || echo "stopped after $limit s" >> "$log"
    tail -n 40 "$log"
    row "$name" FAILED "$(tail -n 1 "$log" | cut -c 1-200)"
    failed=1
    return 1
}
step() { try "$@" && row "$1" ok "$took s"; }
keep_log() { tee -a "$B/gpu_check.txt" < "$log"; }
has_stage() { case ,$stages, in *,$1,*) ;; *) return 1 ;; esac; }
sized() { if [ "$tiny" ]; then echo "$2"; else echo "$1"; fi; }

finish() {
    if [ -z "$ops_ran" ]; then row test_ops FAILED "it did not run"; failed=1; fi
    printf '\n%-36s %-8s %s\n%s' step result note "$table"
    exit "$failed"
}

CHIP=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -n 1 | tr -d .)
if [ -z "$CHIP" ]; then
    row GPU FAILED "nvidia-smi names no GPU"
    failed=1
    finish
fi
row GPU "$CHIP" "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)"

# ---- PyTorch, and the libraries that its wheels bring ---------------------------------------------------
folders=$("$python" - 2> /dev/null << 'EOF'
import glob, importlib.util, os
site = os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin))
print(":".join(sorted(glob.glob(site + "/nvidia/*/lib")) + [site + "/torch/lib"]))
EOF
)
if [ "$folders" ]; then
    export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folders"
    row "PyTorch's libraries" ok "$(echo "$folders" | tr : '\n' | grep -c .) folders"
fi
if why=$("$python" -c 'import torch; assert torch.cuda.is_available(), "it finds no GPU"' 2>&1); then
    torch=1
else
    row PyTorch "not run" "$python: $(echo "$why" | tail -n 1)"
fi

# ---- the programs: carried, or built here --------------------------------------------------------------
kit=
for folder in . build/gpu-kit; do
    if "$folder/bin/suites" > /dev/null 2>&1; then kit=$folder && break; fi
done
if [ "$kit" ]; then
    row programs ok "in $kit"
    programs=$kit/bin
else
    MAKE="make -j$(nproc) B=$B CUDA_ARCHS=$CHIP WITHOUT_BLIS=1"
    programs=$B/kit kit=$B
    step "the kit's programs" 900 $MAKE "$programs/suites" "$programs/bench" "$programs/tapegrad" || finish
    step plugin 900 $MAKE "$(sized cuda emu)" || finish
fi
export TAPEGRAD_PLUGIN_DIR="$kit"
bench=$programs/bench suites=$programs/suites

# ---- does it open, do the suites pass ------------------------------------------------------------------
# The first line of what a program says is the reason; `tapegrad info` names the GPU.
DEVICE="$device" try "$device opens" 60 sh -c "'$bench' chain20_forward 1 < /dev/null > '$B/opens' 2>&1 ||
    { head -n 1 '$B/opens'; exit 1; }" || finish
row "$device opens" ok "$("$programs/tapegrad" info | sed -n "s/^$device *//p" | cut -c 1-100)"
if has_stage suites; then
    all="$("$suites" | grep -v '^test_ops$\|^test_nets$\|^test_graph')"
    for name in ${*:-test_ops test_nets $all}; do
        step "$name" 300 "$suites" "$name" && [ "$name" = test_ops ] && ops_ran=1
    done
fi

# ---- how fast, in how much memory ----------------------------------------------------------------------
rounds=$(sized 5 1) seconds=$(sized 0.3 0.001)

# compare WHAT LIMIT CASE FORMS SETTINGS TARGET... - a case beside PyTorch (targets: bench/gpu_row.py).
compare() {
    what=$1 case=$3 forms=$4 settings=$5
    json=$B/gpu-$(echo "$what" | tr -c 'a-zA-Z0-9\n' -).json
    if [ -z "$torch" ]; then
        # shellcheck disable=SC2086
        try "$what" "$2" env $settings DEVICE="$device" sh -c \
            "echo $seconds | $bench $case 1 | tail -n 1 | grep '^[0-9]'" || return
        row "$what, alone" ok "$(awk '{ printf "%.2f us, %.0f MB", $1 / 1e3, $2 / 1024 }' "$log")"
        return
    fi
    # shellcheck disable=SC2086
    try "$what" "$2" env $settings DEVICE="$device" ONLY="$case" FORMS="$forms" ROUNDS="$rounds" \
        SECONDS="$seconds" JSON="$json" "$python" bench/side_by_side.py "$bench" 1 || return
    keep_log
    shift 5
    verdict=$("$python" bench/gpu_row.py "$json" "$@")
    row "$what" "${verdict%% *}" "${verdict#* }"
}

# by_cudnn CASE - by our own kernels, by cuDNN as it is by default, and by cuDNN alone.
by_cudnn() {
    note=
    for asked in 0 1 all; do
        try "$1, TAPEGRAD_CUDNN=$asked" 60 sh -c "echo $seconds | CUEMU_CUDNN=1 TAPEGRAD_CUDNN=$asked \
            DEVICE=$device $bench $1 1 | tail -n 1 | grep '^[0-9]'" || return
        note="$note $asked: $(awk '{ printf "%.1f us", $1 / 1e3 }' "$log");"
    done
    row "$1 by TAPEGRAD_CUDNN" ok "$note"
}

gpt() {
    gpt_failed=$failed
    for batch in $(sized "32 16 8" "2 1"); do # what fits
        case=gpt2_bf16_step_${batch}x$(sized 1024x768x12x12x50257 8x16x2x1x32)
        if compare "GPT-2, batch $batch" 150 "$case" eager GRAPH=0 eager=1.5 memory=1; then
            failed=$gpt_failed
            compare "GPT-2, batch $batch, captured" 150 "$case" "eager graph" GRAPH=1 eager=1.5
            break
        fi
    done
}

speed() {
    if [ "$torch" ] && try ceilings 60 "$python" bench/gpu_ceiling.py; then
        keep_log
        row ceilings ok "$(paste -sd ';' "$log")"
    fi
    small=gpt2_bf16_step_1x8x16x2x1x32
    compare "CPU time of an op" 60 chain20_forward eager CLOCK=issue us=3.5 eager=1
    compare "CPU time of an op, with backward" 60 chain20_both eager CLOCK=issue us=7 eager=1
    compare "CPU time of a captured node" 60 chain200_forward "eager graph" "CLOCK=issue GRAPH=1" \
        us=1.5 graph=1
    compare "a captured node" 60 chain200_forward "eager graph" GRAPH=1 us=1.5 graph=1
    for case in "$(sized mlp_step $small)" "$(sized nanogpt_step chain20_both)"; do
        compare "$case" 90 "$case" "eager" GRAPH=0 eager=1.3 memory=1
        compare "$case, captured" 180 "$case" "eager graph reduced" GRAPH=1 eager=1.3 graph=1 reduced=1
    done
    case=$(sized lstm_step chain20_both)
    compare "LSTM: $case" 90 "$case" "eager" GRAPH=0 eager=1.3 memory=1
    compare "LSTM: $case, captured" 90 "$case" "eager graph" GRAPH=1 eager=1.3 graph=1
    case=resnet50_bf16_step_$(sized 128x224x64 2x32x1)
    compare "ResNet-50" 150 "$case" channels_last GRAPH=0 channels_last=1 memory=1
    size=$(sized 268435456 8192)
    for op in $(sized "add relu gelu softmax layer_norm sum cross_entropy" "add cross_entropy"); do
        compare "$op, $size bytes" 45 "${op}_forward_$size" eager GRAPH=0 copy=0.85 memory=1
    done
    compare "AdamW, $size bytes" 45 "adamw_update_$size" fused GRAPH=0 copy=0.85 memory=1
    for case in $(sized "attention_bf16_forward_32x12x1024x64 attention_bf16_both_32x12x1024x64
            attention_bf16_both_8x16x2048x128 nanogpt_bf16_step resnet18_bf16_step" \
            attention_bf16_both_1x1x24x16); do
        by_cudnn "$case"
    done
}
! has_stage speed || speed
! has_stage gpt || gpt

# ---- bit for bit, and what ends a capture --------------------------------------------------------------
if has_stage capture; then
    for name in test_graph $(sized test_graph_ends ""); do
        step "captured against eager: ${name#test_}" 120 "$suites" "$name"
    done
fi

# ---- sanitizers: each op, small; those that are refused on purpose are no errors ------------------------
if has_stage sanitizers; then
    if command -v compute-sanitizer > /dev/null; then
        for tool in memcheck racecheck synccheck initcheck; do
            step "sanitizer: $tool" 150 env TAPEGRAD_SHARD="$(sized 1/64 2/256)" compute-sanitizer \
                --tool "$tool" --report-api-errors no --error-exitcode 9 "$suites" test_device
        done
    else
        row sanitizers skipped "no compute-sanitizer"
    fi
fi

# ---- counters ------------------------------------------------------------------------------------------
metrics=gpu__time_duration.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed
metrics=$metrics,sm__throughput.avg.pct_of_peak_sustained_elapsed
counters() {
    for case in "$(sized softmax_forward_268435456 softmax_forward_8192)" \
        "$(sized layer_norm_both_268435456 add_forward_8192)" "$(sized nanogpt_bf16_step chain20_forward)"; do
        before=$failed
        if DEVICE="$device" try "counters: $case" 60 ncu --metrics "$metrics" --launch-skip 20 \
            --launch-count 60 "$bench" "$case" 1 < /dev/null; then
            keep_log
            row "counters: $case" ok "$(grep -c gpu__time_duration "$log") kernels"
        elif grep -q ERR_NVGPUCTRPERM "$log"; then
            failed=$before
            row "counters: $case" skipped "this user may not read them (ERR_NVGPUCTRPERM)"
            return
        fi
    done
}
if has_stage counters; then
    if command -v ncu > /dev/null; then counters; else row counters skipped "no ncu"; fi
fi
finish
