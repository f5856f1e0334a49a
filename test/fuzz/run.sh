#!/usr/bin/env bash
# run.sh BUILD LIMIT - fuzzes each reader of files, on a corpus made here.  LIMIT is libFuzzer's:
# -runs=20000, or -max_total_time=60 (seconds); `make fuzz TIME=` calls it so.
#
# BUILD holds the library; the readers, and the allocator of the memory they write, are compiled again with
# sanitizers and take the place of its objects.  A file that breaks a reader is left in BUILD/fuzz, with the
# command that shows it again.
set -euo pipefail
cd "$(dirname "$0")/../.."
library=$1/libtapegrad.a limit=$2 folder=$1/fuzz
[ -f "$library" ] || { echo "fuzz: $library is missing" >&2; exit 1; }
for tool in clang python3; do
    command -v "$tool" > /dev/null || { echo "fuzzing needs $tool" >&2; exit 1; }
done
sanitize="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
flags="-std=gnu11 -Iinclude -Isrc -Itest/fuzz -fvisibility=hidden -Wall -Wextra -Werror
    -Wno-missing-field-initializers -Wno-initializer-overrides"
mkdir -p "$folder"
objects=
for source in src/io/*.c src/tensor/alloc.c; do
    object=$folder/$(basename "$source" .c).o
    # shellcheck disable=SC2086
    clang $flags $sanitize -fsanitize=fuzzer-no-link -c "$source" -o "$object"
    objects="$objects $object"
done
rm -rf "$folder/corpus"
python3 test/fuzz/corpus.py "$folder/corpus"
libs=$(make -s print-libs)
for target in test/fuzz/fuzz_*.c; do
    name=$(basename "$target" .c)
    # shellcheck disable=SC2086
    clang $flags -D_GNU_SOURCE $sanitize -fsanitize=fuzzer "$target" $objects "$library" $libs \
        -o "$folder/$name"
    log=$folder/$name.log
    echo "== $name, $limit"
    if ! "$folder/$name" "$limit" -seed=1 -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
        -artifact_prefix="$folder/$name-" "$folder/corpus/${name#fuzz_}" > "$log" 2>&1; then
        tail -n 40 "$log"
        echo "failed: $folder/$name $folder/$name-*" >&2
        exit 1
    fi
    tail -n 1 "$log"
done
