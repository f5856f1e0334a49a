#!/usr/bin/env bash
# run.sh [SECONDS] - builds the fuzz targets with clang and runs each for so long (default 20) on a corpus made here.
# B is the build folder (default build/fuzz).  A file that breaks a reader is left there, with the command that shows it again.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20}
build=${B:-build/fuzz}
for tool in clang python3; do
    command -v "$tool" >/dev/null || { echo "fuzzing needs $tool" >&2; exit 1; }
done
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
make -s -j"${JOBS:-$(nproc)}" B="$build" CC=clang OPT="-O1 -g" SAN="$sanitize -fsanitize=fuzzer-no-link" "$build/libtapegrad.a"
libs=$(make -s print-libs)
rm -rf "$build/corpus"
python3 test/fuzz/corpus.py "$build/corpus"
for format in idx png safetensors; do
    target=$build/fuzz_$format
    # shellcheck disable=SC2086
    clang -Iinclude -D_GNU_SOURCE -std=gnu11 -O1 -g -Wall -Wextra -Werror $sanitize -fsanitize=fuzzer "test/fuzz/fuzz_$format.c" "$build/libtapegrad.a" $libs -o "$target"
    echo "== $format, $seconds s"
    log=$build/$format.log
    if ! "$target" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 -artifact_prefix="$build/$format-" "$build/corpus/$format" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "failed: $target $build/$format-*" >&2
        exit 1
    fi
    tail -n 1 "$log"
done
