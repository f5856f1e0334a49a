#!/usr/bin/env bash
# snippets.sh BUILD - every ```c block of README.md and HACKING.md compiles; those with a main are linked,
# too.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
out=$build/snippets
mkdir -p "$out"
flags="-std=gnu11 -Wall -Wextra -Werror -Wno-missing-field-initializers -Iinclude"
count=0
for page in README.md HACKING.md; do
    name=$(basename "$page" .md)
    rm -f "$out/$name".*.c
    awk -v base="$out/$name" '
        /^```c$/ { n++; file = base "." n ".c"; printf "" > file; next }
        /^```/ { file = "" }
        file { print > file }' "$page"
    for snippet in "$out/$name".*.c; do
        [ -e "$snippet" ] || continue
        count=$((count + 1))
        text=$(cat "$snippet")
        if grep -q 'int main' "$snippet"; then
            # shellcheck disable=SC2046
            gcc $flags "$snippet" "$build/libtapegrad.a" $(make -s print-libs) -fopenmp -lcmocka \
                -o "$snippet.out"
        else
            { printf '#include <%s>\n' stdarg.h stddef.h setjmp.h stdint.h cmocka.h tapegrad.h \
                tapegrad/cmocka.h
              echo "$text"; } | gcc $flags -Wno-unused -fsyntax-only -x c - ||
                { echo "snippets: $snippet" >&2; exit 1; }
        fi
    done
done
[ "$count" -gt 0 ] || { echo "snippets: none found" >&2; exit 1; }
echo "snippets: $count compile"
