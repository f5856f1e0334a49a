#!/usr/bin/env bash
# snippets.sh BUILD - every ```c block of README.md and HACKING.md compiles; those with a main are linked, too.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
out=$build/snippets
mkdir -p "$out"
count=0
for page in README.md HACKING.md; do
    name=$(basename "$page" .md)
    rm -f "$out/$name".*.c
    awk -v base="$out/$name" '/^```c$/ {n++; file = base "." n ".c"; printf "" > file; next} /^```/ {file = ""} file {print > file}' "$page"
    for snippet in "$out/$name".*.c; do
        [ -e "$snippet" ] || continue
        count=$((count + 1))
        text=$(cat "$snippet")
        if grep -q 'int main' "$snippet"; then
            gcc -std=gnu11 -Wall -Wextra -Werror -Wno-missing-field-initializers -Iinclude "$snippet" "$build/libtapegrad.a" $(make -s print-libs) -fopenmp -lcmocka -o "$snippet.out"
        else
            printf '#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <cmocka.h>\n#include <tapegrad.h>\n#include <tapegrad/cmocka.h>\n%s\n' "$text" |
                gcc -std=gnu11 -Wall -Wextra -Werror -Wno-unused -Wno-missing-field-initializers -Iinclude -fsyntax-only -x c - || { echo "snippets: $snippet" >&2; exit 1; }
        fi
    done
done
[ "$count" -gt 0 ] || { echo "snippets: none found" >&2; exit 1; }
echo "snippets: $count compile"
