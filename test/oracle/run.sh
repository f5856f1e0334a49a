#!/bin/sh
# run.sh BUILD - `make oracle`: N fresh random cases of each op (OP=pattern: of those), drawn and answered
# by PyTorch now, against ours; prints the worst case of each op, as a part of what test_golden.c allows.
# SEED repeats a run; PYTHON is the interpreter that has torch.
set -eu
cd "$(dirname "$0")/../.."
usage() { echo "make oracle: $1" >&2; exit 1; }
python=${PYTHON:-python3} n=${N:-200} seed=${SEED:-$(date +%s)} file=$1/oracle.golden log=$1/oracle.log
case $n in '' | *[!0-9]* | 0*) usage "N=$n: want how many cases an op" ;; esac
case $seed in '' | *[!0-9]*) usage "SEED=$seed: want a number" ;; esac
"$python" -c 'import torch' 2>/dev/null || usage "$python has no torch; PYTHON=... names one that has"
echo "oracle: N=$n SEED=$seed OP=${OP:-*}"
"$python" -W ignore test/oracle/ops.py --random "$n" --seed "$seed" "$file" "${OP:-*}"
TAPEGRAD_GOLDEN=$file TAPEGRAD_WORST=1 "$1/test/test_golden" "${OP:-*}" > "$log" 2>&1 && status=0 || status=1
grep -E '^[a-z_0-9]+ +[0-9]+ cases' "$log" | sort || true
rm -f "$file"
[ $status -eq 0 ] && exit 0
grep -E -A1 '^[a-z_0-9]+( "|: )' "$log" >&2 || true
echo "oracle: differences; repeat with N=$n SEED=$seed" >&2
exit 1
