#!/usr/bin/env bash
# all.sh - `make test`: the steps of mk/ci.mk, beside each other; then what each took, and the counts of all.
# JOBS is how many at a time (default: one a core); ONLY names groups or steps ("asan fuzz").
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${TAPEGRAD_DATA:-}" ] && [ -d ../shared/data ]; then export TAPEGRAD_DATA=$PWD/../shared/data; fi
unset MAKEFLAGS MFLAGS MAKELEVEL
results=build/results
jobs=${JOBS:-$(nproc)}
make=(make --no-print-directory ONLY="${ONLY:-}")
began=$(date +%s)

tools/setup.sh test
for tool in gcc g++ clang clang++ ld.lld clang-format objcopy pkg-config cmake valgrind python3 strip \
    readelf doxygen aarch64-linux-gnu-gcc arm-linux-gnueabihf-gcc musl-gcc qemu-aarch64; do
    command -v "$tool" > /dev/null || {
        echo "make test: $tool is missing; tools/setup.sh test installs it on Debian and Ubuntu" >&2
        exit 1
    }
done

rm -rf "$results"
mkdir -p "$results"
steps=$("${make[@]}" ci-steps)
[ -n "$steps" ] || { echo "make test: no step is called ${ONLY:-}" >&2; exit 1; }
"${make[@]}" -k -j"$jobs" ci 2> "$results/make.log" || true

# A group a line: its steps, from when to when, CPU time, tests; a step without a result did not run.
missing=
for step in $steps; do [ -f "$results/$step.result" ] || missing="$missing $step"; done
printf '\n%-12s %6s %8s %8s %8s %8s %8s\n' group steps begins ends CPU passed failed
for group in $(printf '%s\n' $steps | cut -d/ -f1 | sort -u); do
    cat "$results/$group"/*.result 2> /dev/null | awk -v group="$group" -v zero="$began" '
        { passed += $1; failed += $2; cpu += $5; begins = NR == 1 || $3 < begins ? $3 : begins
          if ($3 + $4 > ends) ends = $3 + $4 }
        END { if (NR) printf "%-12s %6d %6d s %6d s %6d s %8d %8d\n",
                             group, NR, begins - zero, ends - zero, cpu, passed, failed }'
done
printf '\nthe longest:\n'
(cd "$results" && grep -H . */*.result) | sed 's/\.result:/ /' | sort -k6 -rn |
    awk 'NR <= 12 {printf "  %-40s %6.0f s of CPU time in %.0f s\n", $1, $6, $5}'
[ -z "$missing" ] || printf '\ndid not run, for a step before them failed:%s\n' "$missing"
failing=$(cd "$results" && awk '$2 {sub(/\.result$/, "", FILENAME); print FILENAME}' */*.result)
[ -z "$failing" ] || { printf '\nfailed:\n'; printf '  %s\n' $failing; }

seconds=$(($(date +%s) - began))
printf '\n%d steps in %d min %d s\n' "$(echo "$steps" | wc -l)" $((seconds / 60)) $((seconds % 60))
cat "$results"/*/*.result | awk -v missing="$(echo "$missing" | wc -w)" '
    { passed += $1; failed += $2 }
    END { failed += missing; print passed " passed, " failed " failed"; exit failed > 0 }'
