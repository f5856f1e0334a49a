#!/bin/sh
# run.sh BENCH - one thread, then all (THREADS="1 2").  JSON=results-%.json: % becomes the number of threads;
# with FIGURE=steps.png, the ratios of the steps among them are drawn, which needs matplotlib.
set -eu
cd "$(dirname "$0")/.."
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
for threads in ${THREADS:-1 $(nproc)}; do
    "${PYTHON:-python3}" bench/side_by_side.py "$1" "$threads"
done
[ -z "${FIGURE:-}" ] || "${PYTHON:-python3}" bench/figure.py "$FIGURE" \
    $(for threads in ${THREADS:-1 $(nproc)}; do printf '%s\n' "$JSON" | sed "s/%/$threads/"; done)
