#!/bin/sh
# run.sh BENCH - one thread and all (THREADS="1 2"), in one table.  With FIGURE=steps.png and JSON=, the
# ratios of the steps are drawn, which needs matplotlib.
set -eu
cd "$(dirname "$0")/.."
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
# shellcheck disable=SC2086
"${PYTHON:-python3}" bench/side_by_side.py "$1" ${THREADS:-1 $(nproc)}
[ -z "${FIGURE:-}" ] || "${PYTHON:-python3}" bench/figure.py "$FIGURE" "$JSON"
