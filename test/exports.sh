#!/usr/bin/env bash
# exports.sh BUILD - the shared library exports what the headers declare, all and nothing else, under the
# version of the ABI; it is small, and needs only the libraries that the README names.
set -euo pipefail
cd "$(dirname "$0")/.."
lib=$1/libtapegrad.so.0.1 version=TAPEGRAD_0.1
nm -D --defined-only "$lib" | awk '$2 != "A" {print $3}' | sort -u > "$1/versioned"
! grep -v "@@$version\$" "$1/versioned" || { echo "exports: these have no version" >&2; exit 1; }
sed "s/@.*//" "$1/versioned" | sort -u > "$1/exported"

# What is public is declared with TAPEGRAD_API, which preprocessing turns into its attribute: functions, whose
# name stands before a parenthesis, and constants, whose name ends the declaration.
declarations() {
    ls include/tapegrad/*.h include/tapegrad/*/*.h | grep -v cmocka | sed 's/.*/#include "&"/' |
        gcc -E -P -Iinclude -I. -x c - | tr '\n' ' ' |
        grep -oE '__attribute__\(\(visibility\("default"\)\)\)[^;{]*;?'
}
prefixes='(tensor|nn|optim|data|io|op|tapegrad)_[a-zA-Z_0-9]+ *[[(;]'
! declarations | grep -vE "$prefixes" || {
    echo "exports: these names have none of the prefixes" >&2
    exit 1
}
declarations | grep -oE "$prefixes" | tr -d ' [(;' |
    sort -u > "$1/declared"
diff "$1/declared" "$1/exported" > "$1/exports.diff" || {
    echo "exports: headers (<) and library (>) differ:" >&2
    cat "$1/exports.diff" >&2
    exit 1
}
cp "$lib" "$1/stripped.so"
strip "$1/stripped.so"
size=$(stat -c %s "$1/stripped.so")
most=3200000
[ "$size" -lt $most ] || { echo "exports: the library takes $size bytes stripped, over $most" >&2; exit 1; }
usual='^(libc|libm|libdl|libpthread|libblis|libgomp|libomp|libz|libpng16|libgcc_s|ld-linux.*)\.?[-.so0-9]*'
others=$(readelf -d "$lib" | awk -F'[][]' '/NEEDED/ {print $2}' | grep -vE "$usual" || true)
[ -z "$others" ] || { echo "exports: the library needs $others" >&2; exit 1; }
echo "exports: $(wc -l < "$1/exported") names as declared, $size bytes stripped"
