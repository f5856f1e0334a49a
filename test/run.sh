#!/bin/sh
# run.sh PROGRAM... - runs each test program; prints what failed, and the counts of all in the last line.
passed=0 failed=0
for program in "$@"; do
    printf '== %s\n' "$(basename "$program")"
    log=$(mktemp)
    if "$program" >"$log" 2>&1; then status=0; else status=$?; fi
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep -c '^\[  FAILED  \] [^0-9]' "$log")
    if [ "$status" -ne 0 ] || [ "$ok" -eq 0 ]; then
        [ "$bad" -gt 0 ] || bad=1
        grep -v -E '^\[ +(RUN|OK) ' "$log" | tail -n 60
        printf '   %s ended with %s\n' "$(basename "$program")" "$status"
    fi
    passed=$((passed + ok)) failed=$((failed + bad))
    rm -f "$log"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
