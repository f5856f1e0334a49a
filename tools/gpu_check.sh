#!/bin/sh
# gpu_check.sh [suite...] - one command on a machine with an NVIDIA GPU: builds for the chip that is there
# and runs the suites against cuda:0 (TAPEGRAD_TEST_DEVICE).  The last thing printed is a table, one line a
# step, also after a failure; 0 when nothing failed.  gpu_check.sh --dry BUILD - the same steps where there is
# no GPU, with the emulated device's plugin: cuda:0 must not open, and of the shorter suites a part of the ops
# runs in one order.
#
#   B=folder   the build folder (default build/gpu)
cd "$(dirname "$0")/.." || exit 1
B=${B:-build/gpu} dry= device=cuda:0
if [ "${1:-}" = --dry ]; then
    dry=1 device=emu:0 B=${2:?usage: gpu_check.sh --dry BUILD}
    export CUEMU_ORDER=fwd TAPEGRAD_SHARD=1/32
    shift 2
fi
export TAPEGRAD_TEST_DEVICE=$device
table='' failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

row() { table="$table$(printf '%-28s %-8s %s' "$1" "$2" "$3")
"; }

# step NAME COMMAND... - runs it; on failure shows the end of what it said.
step() {
    name=$1 began=$(date +%s)
    shift
    if "$@" >"$log" 2>&1; then
        row "$name" ok "$(($(date +%s) - began)) s"
    else
        row "$name" FAILED "$(tail -n 1 "$log" | cut -c 1-90)"
        tail -n 40 "$log"
        failed=1
        return 1
    fi
}

skip() { row "$1" "not run" "$2"; }

chip() {
    if [ "$dry" ]; then echo 90; return; fi
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .
}
name() {
    if [ "$dry" ]; then echo "none: emulated"; return; fi
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1
}

finish() {
    printf '\n%-28s %-8s %s\n%s' step result note "$table"
    exit "$failed"
}

# Can a program that uses this header and library be built?
has() { printf '%s\nint main(void) { return 0; }\n' "$1" | ${CC:-gcc} -x c - -o /dev/null "$2" 2>/dev/null; }

CHIP=$(chip)
if [ -z "$CHIP" ]; then
    row GPU FAILED "nvidia-smi names no GPU"
    failed=1
    finish
fi
row GPU "$CHIP" "$(name)"
MAKE="make -j$(nproc) B=$B"
[ "$dry" ] || MAKE="$MAKE CUDA_ARCHS=$CHIP WITHOUT_BLIS=1"
step "library" $MAKE "$B/libtapegrad.a" "$B/tapegrad" || finish
step "plugin" $MAKE $([ "$dry" ] && echo emu || echo cuda) || finish
opens() {
    TAPEGRAD_PLUGIN_DIR=$B "$B/tapegrad" info | grep '^cuda:0' | grep $([ "$dry" ] || echo -v) 'not available'
}
step "cuda:0 $([ "$dry" ] && echo 'does not open' || echo opens)" opens

CMOCKA_TEST='#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>'
all="test_cuda test_device test_list test_queue test_streams test_device_memory test_nets"
all="$all test_golden test_ops"
[ "$dry" ] || all="$all test_ops_grad test_ops_layout test_ops_memory"
for suite in ${*:-$all}; do
    if ! has "$CMOCKA_TEST" -lcmocka; then skip "$suite" "cmocka is not installed"
    else step "$suite" sh -c "$MAKE $B/test/$suite && $B/test/$suite"
    fi
done
finish
