#!/usr/bin/env bash
# step.sh FOLDER NAME COMMAND... - runs one step of a test run.  FOLDER/NAME.log is what it said,
# FOLDER/NAME.result one line: tests passed, failed, seconds begun (of the epoch), seconds taken, seconds of
# CPU time.  A step in which cmocka or run.sh counts tests has their counts, any other one counts as one.
set -u
folder=$1 name=$2
shift 2
log=$folder/$name.log
mkdir -p "$(dirname "$log")"
began=$(date +%s.%N)
TIMEFORMAT='%R %U %S'
{ time "$@" > "$log" 2>&1 < /dev/null; } 2> "$log.time"
status=$?
read -r taken user system < "$log.time"
rm -f "$log.time"
cpu=$(echo "$user $system" | awk '{print $1 + $2}')

passed=$(grep -c '^\[       OK \]' "$log")
failed=$(grep -c '^\[  FAILED  \] [^0-9]' "$log")
counts=$(awk '/^[0-9]+ passed, [0-9]+ failed$/ {p += $1; f += $3} END {print p + 0, f + 0}' "$log")
passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* }))
if [ $status -ne 0 ]; then
    [ $failed -gt 0 ] || failed=1
elif [ $((passed + failed)) -eq 0 ]; then
    passed=1
fi
echo "$passed $failed $began $taken $cpu" > "$folder/$name.result"
[ $failed -eq 0 ] || status=1
if [ $status -eq 0 ]; then
    printf '  ok      %-44s %6.1f s  (%.1f s of CPU time)\n' "$name" "$taken" "$cpu"
else
    printf '\n  FAILED  %s: %s\n' "$name" "$*"
    grep -v -E '^\[ +(RUN|OK) ' "$log" | tail -n 60
    printf '  (all of it is in %s)\n\n' "$log"
fi
exit $status
