#!/usr/bin/env bash
# exports.sh BUILD - the shared library exports what the headers declare, all of it and nothing else; it is small, and needs only
# the libraries that the README names.
set -euo pipefail
cd "$(dirname "$0")/.."
lib=$1/libtapegrad.so.0
nm -D --defined-only "$lib" | awk '{print $3}' | sort -u > "$1/exported"
# A public function is declared with TAPEGRAD_API, which preprocessing turns into its attribute.
for h in include/tapegrad/*.h; do echo "#include <tapegrad/${h##*/}>"; done | grep -v cmocka | gcc -E -P -Iinclude -x c - |
    tr '\n' ' ' | grep -oE '__attribute__\(\(visibility\("default"\)\)\)[^;{]*' | grep -oE '[a-zA-Z_0-9]+ *\(' | tr -d ' (' |
    grep -E '^(tensor|nn|optim|data|io|op|tapegrad|gradcheck)_' | sort -u > "$1/declared"
diff "$1/declared" "$1/exported" > "$1/exports.diff" || { echo "exports: headers (<) and library (>) differ:" >&2; cat "$1/exports.diff" >&2; exit 1; }
cp "$lib" "$1/stripped.so"
strip "$1/stripped.so"
size=$(stat -c %s "$1/stripped.so")
[ "$size" -lt 3000000 ] || { echo "exports: the library takes $size bytes stripped, over 3 MB" >&2; exit 1; }
others=$(readelf -d "$lib" | awk -F'[][]' '/NEEDED/ {print $2}' | grep -vE '^(libc|libm|libdl|libpthread|libblis|libgomp|libomp|libz|libpng16|libgcc_s|ld-linux.*)\.?[-.so0-9]*' || true)
[ -z "$others" ] || { echo "exports: the library needs $others" >&2; exit 1; }
echo "exports: $(wc -l < "$1/exported") functions as declared, $size bytes stripped"
