#!/usr/bin/env bash
# rebuild.sh BUILD - what a change compiles again: no less than what reads the changed file, and no more.
#
# Works in a copy of the tree and of BUILD, which must be up to date, the emulator too; nearly all by
# "make -n", so it takes seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: rebuild.sh BUILD}
copy=$build/rebuild
failed=0
unset MAKEFLAGS MFLAGS MAKEOVERRIDES
again=$(make --no-print-directory -n "B=$build" emu | grep -c 'echo "  EMU' || true)
[ "$again" = 0 ] || { echo "rebuild: no change compiles $again objects of the emulator" >&2; failed=1; }

# headers FOLDER... - what the objects in them read of ours, as the compiler told.
headers() {
    find "$@" -name '*.d' -exec cat {} + | tr -s ' \\:' '\n' | grep -E '^(include|src|optim)/.*\.(h|def)$' |
        sort -u | xargs realpath --relative-to=. | sort -u
}
shared=$(comm -12 <(headers "$build/emu") <(headers "$build"/{src,nn,optim,train}))
[ "$(wc -w <<< "$shared")" -gt 10 ] || { echo "rebuild: plugins read only: $shared" >&2; failed=1; }
rm -rf "$copy"
mkdir -p "$copy/build"
cp -a Makefile mk src nn optim train include tools docs test "$copy/"
for part in flags flags.blis flags.classes flags.link include; do cp -a "$build/$part" "$copy/build/"; done
for part in src nn optim train libtapegrad.a libtapegrad.so.0.1 tapegrad; do
    cp -al "$build/$part" "$copy/build/" # links: nothing is built here
done
cd "$copy"
make=(make --no-print-directory B=build)
digested=$("${make[@]}" print-digest)

objects() { { "${make[@]}" -n "$@" all || echo "make failed"; } | grep -cE 'echo "  CC   [^"]*\.o"' || true; }

# expect WHAT COUNT MAKE_ARGUMENTS...
expect() {
    local what=$1 wanted=$2 found
    shift 2
    found=$(objects "$@")
    if [ "$found" = "$wanted" ]; then printf '%4d objects: %s\n' "$found" "$what"; return; fi
    printf 'rebuild: %s compiles %s objects, expected %s\n' "$what" "$found" "$wanted" >&2
    failed=1
}

# readers FILE - the objects whose compilation reads it, as the compiler told, or the digest of it.
readers() {
    local names=$1
    ! grep -w "$1" <<< "$digested" > /dev/null || names="($1|build/include/ops_digest.h)"
    grep -lrE --include='*.d' "(^| )$names( |\$)" build/src build/nn build/optim build/train | wc -l
}

# changed FILE - a change of this file compiles its readers; then it is as before.
changed() {
    local file=$1 count
    count=$(readers "$file")
    [ "$count" -gt 0 ] || { echo "rebuild: nothing reads $file" >&2; failed=1; }
    cp -p "$file" kept
    printf '\n/* changed */\n' >> "$file"
    expect "a change of $file" "$count"
    mv kept "$file"
}

sets=$(find build/src -name 'gemm_kernel.*.o' | wc -l)
all=$(find build/src build/nn build/optim build/train -name '*.o' | wc -l)
expect "no change" 0
expect "other flags" "$all" CFLAGS=-DOTHER
"${make[@]}" -n CFLAGS=-DOTHER all > /dev/null
make --no-print-directory -n CC=clang all > /dev/null
expect "no change, after make -n with other flags and with clang" 0
expect "no compiler named" 0 CC=
expect "WITHOUT_BLIS=1" 1 WITHOUT_BLIS=1
expect "LDFLAGS=-Wl,-O1" 0 LDFLAGS=-Wl,-O1
expect "WERROR=1" 0 WERROR=1
cp -p Makefile kept
sed -i 's|%/ctc\.c ||' Makefile
expect "ctc.c in no list of the Makefile" 1
mv kept Makefile
changed src/op/reduce/softmax.c
changed src/cpu/product/gemm_kernel.c
changed src/io/json.h
changed src/cpu/math/vecmath.h
changed src/device/device.h
changed include/tapegrad/ops.def
[ "$(readers src/op/reduce/softmax.c)" = 1 ] || { echo "rebuild: softmax.c is not one object" >&2; failed=1; }
[ "$(readers src/cpu/product/gemm_kernel.c)" = "$sets" ] || { echo "rebuild: gemm_kernel.c" >&2; failed=1; }

# The digest follows what plugins compile, and nothing else does.
digest() { "${make[@]}" -s build/include/ops_digest.h && cat build/include/ops_digest.h; }
before=$(digest)
echo '/* changed */' >> src/op/reduce/softmax.c
[ "$(digest)" = "$before" ] || { echo "rebuild: the digest depends on an op's file" >&2; failed=1; }
echo '/* changed */' >> src/device/device.h
[ "$(digest)" != "$before" ] || { echo "rebuild: the digest does not see device.h" >&2; failed=1; }
for header in $shared; do
    grep -xF "$header" <<< "${digested// /$'\n'}" > /dev/null || {
        echo "rebuild: library and plugins compile $header, which is not in DIGEST_OF of the Makefile" >&2
        failed=1; }
done
rm -rf "$PWD/build" "$PWD"/{src,test}
[ "$failed" = 0 ] && echo "rebuild: what depends on a change is compiled, nothing else"
exit "$failed"
