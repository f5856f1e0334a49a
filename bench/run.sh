#!/bin/sh
# run.sh BENCH - one thread, then two.  PYTHON chooses the interpreter that has PyTorch.
set -eu
cd "$(dirname "$0")/.."
for threads in 1 2; do
    OMP_NUM_THREADS=$threads "${PYTHON:-python3}" bench/side_by_side.py "$1" $threads
done
