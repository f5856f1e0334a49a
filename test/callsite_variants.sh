#!/bin/sh
# callsite_variants.sh - the call site of an error, in every way that a program and the library are built.
#
#   callsite_variants.sh FOLDER       builds and runs in FOLDER (made anew); ends with 1 when a variant says a
#                                     wrong place
#
# COMPILERS ("gcc clang") are those to try.  A small library stands for tapegrad: callsite.c and what it
# needs, and one function that asks who called it; its code is renamed as the Makefile does.
set -eu
src=$(cd "$(dirname "$0")/../src" && pwd)
out=${1:?usage: callsite_variants.sh FOLDER}
compilers=${COMPILERS:-gcc clang}
for tool in $compilers objcopy strip ar; do
    command -v "$tool" >/dev/null || {
        echo "callsite_variants: $tool is not installed (COMPILERS names the compilers to try)"; exit 1; }
done
rm -rf "$out"
mkdir -p "$out/sub"
cd "$out"

# One function of every kind that compilers put outside .text; each must be found to be the library's.
cat > library.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include "trace/callsite.h"
#define API __attribute__((visibility("default"), noinline))
void tensor_probe(void);
void tensor_probe_threads(void);
void tensor_probe_back(void (*fn)(void));
static volatile int wrong, sink;
static __attribute__((noinline)) void own(void)
{
    wrong += !callsite_in_library(__builtin_return_address(0));
}
__attribute__((constructor)) static void begin(void) { own(); sink++; }
static __attribute__((cold, noinline)) void cold(void) { own(); sink++; }
static __attribute__((hot, noinline)) void hot(void) { own(); sink++; }
static __attribute__((cold, noinline)) void say(void)
{
    char text[200];
    void *site = callsite_find();
    if (!site || callsite_in_library(site) || !callsite_text(site, text, sizeof text))
        snprintf(text, sizeof text, "nothing");
    puts(text);
    sink++;
}
API void tensor_probe(void)
{
    cold(), hot();
    const char *renamed = getenv("RENAMED");
    if (wrong && renamed && *renamed) puts("a function of the library was taken for the user's");
    say();
    sink++;
}
API void tensor_probe_threads(void)
{
#pragma omp parallel for num_threads(2) schedule(static, 1)
    for (int i = 0; i < 2; i++) {
#ifdef _OPENMP
        own();
#endif
        if (i == 0) say();
    }
    sink++;
}
API void tensor_probe_back(void (*fn)(void)) { fn(); sink++; }
C
cat > program.c <<'C'
void tensor_probe(void);
void tensor_probe_threads(void);
void tensor_probe_back(void (*fn)(void));
void helper(void);
static volatile int sink;
static __attribute__((noinline)) void train(void)
{
    tensor_probe(); sink++;
}
static __attribute__((noinline)) void called_back(void)
{
    tensor_probe();

    sink--;
}
#include "sub/body.h"
int main(void)
{
    train();
    tensor_probe_threads(); sink++;
    tensor_probe_back(called_back);
    body();
    helper();
}
C
cat > sub/body.h <<'C'
static __attribute__((noinline)) void body(void)
{
    sink += 2;
    tensor_probe(); sink++;
}
C
cat > helper.c <<'C'
void helper(void);
void tensor_probe(void);
static volatile int sink;
void helper(void)
{
    tensor_probe(); sink++;
}
C
full='program.c:8 in train|program.c:20 in main|program.c:12 in called_back|sub/body.h:4 in body'
full="$full|helper.c:6 in helper"

objects() {     # objects COMPILER FLAGS: the library's, renamed unless PLAIN is set
    rm -f lib_*.o
    for f in library.c "$src"/trace/callsite.c "$src"/trace/elf_image.c "$src"/trace/dwarf_line.c; do
        o=lib_$(basename "$f" .c).o
        $1 -std=gnu11 -I"$src" -fPIC -fvisibility=hidden $2 -c "$f" -o "$o"
        [ "$PLAIN" ] || objcopy $renames "$o"
    done
    rm -f lib.a
    ar rc lib.a lib_*.o
}
PLAIN=
renames=
for name in '' .unlikely .unlikely. .hot .hot. .startup .startup. .exit .exit.; do
    renames="$renames --rename-section .text$name=tapegrad_text"
done

tried=0 failed=0
check() {       # check TITLE PROGRAM WANTED, "|" between the lines
    tried=$((tried + 1))
    got=$(RENAMED=$([ "$PLAIN" ] || echo 1) "$2" 2>&1 | paste -sd'|') || true
    [ "$got" = "$3" ] && return
    failed=$((failed + 1))
    printf 'FAILED %s\n   wanted %s\n   got    %s\n' "$1" "$3" "$got"
}

for cc in $compilers; do
    openmp=
    ! printf 'int main(void) { return 0; }' | $cc -fopenmp -x c - -o openmp 2>/dev/null || openmp=-fopenmp
    [ "$openmp" ] || echo "callsite_variants: $cc has no OpenMP here; its threads are not tried"
    for level in -O0 -O2; do
        objects "$cc" "$level $openmp"
        for dwarf in -gdwarf-2 -gdwarf-3 -gdwarf-4 -gdwarf-5; do
            $cc $level $dwarf program.c helper.c lib.a $openmp -lz -o static
            check "$cc $level $dwarf static" ./static "$full"
        done
    done
    user="$cc -O1 -g program.c helper.c"
    links="-pie|-no-pie|-Wl,--gc-sections -ffunction-sections|-gz=zlib"
    [ "$cc" = clang ] || links="$links|-static"             # clang's OpenMP has no archive
    ! command -v ld.gold >/dev/null || links="$links|-fuse-ld=gold"
    ! command -v ld.lld >/dev/null || links="$links|-fuse-ld=lld|-fuse-ld=lld -Wl,--gc-sections"
    while [ "$links" ]; do
        link=${links%%"|"*}
        links=${links#"$link"} links=${links#"|"}
        $user $link lib.a $openmp -lz -o linked 2>linked.log || { cat linked.log; exit 1; }
        check "$cc $link" ./linked "$full"
    done
    $user -gdwarf-5 -gdwarf64 lib.a $openmp -lz -o wide
    check "$cc 64-bit DWARF" ./wide "$full"
    $cc -g "$PWD/program.c" "$PWD/helper.c" lib.a $openmp -lz -o absolute
    # clang still knows body.h as the program named it
    printf '#!/bin/sh\n./absolute | sed s:sub/::\n' >bare.sh
    chmod +x bare.sh
    check "$cc absolute paths" ./bare.sh "$(echo "$full" | sed s:sub/::)"

    # The linker's one relocatable object with hidden names made local, as an archive may be packed.
    ld -r lib_*.o -o one_lib.o && objcopy --localize-hidden one_lib.o
    $user one_lib.o $openmp -lz -o one
    check "$cc one object" ./one "$full"

    $cc -shared lib_*.o $openmp -lz -Wl,-z,defs -o libprobe.so
    $cc -O1 -g -fPIC -shared helper.c -o libhelper.so -L. -lprobe
    $cc -O1 -g program.c -L. -lhelper -lprobe -Wl,-rpath,'$ORIGIN' -o shared
    check "$cc shared" ./shared "$full"
    strip -o stripped ./shared
    check "$cc shared, stripped program" ./stripped 'nothing|nothing|nothing|nothing|helper.c:6 in helper'
    $cc -O1 -g program.c -rdynamic -s -L. -lhelper -lprobe -Wl,-rpath,'$ORIGIN' -o stripped
    check "$cc shared, stripped program with dynamic symbols" ./stripped \
        'nothing|in main|nothing|nothing|helper.c:6 in helper'
    cp libhelper.so kept.so && strip libhelper.so
    check "$cc stripped shared object" ./shared "${full%|*}|in helper"
    cp kept.so libhelper.so

    for san in address,undefined thread; do
        objects "$cc" "-O1 -g -fsanitize=$san"
        $user -fsanitize=$san lib.a -lz -o san 2>/dev/null || {
            echo "callsite_variants: $cc cannot link -fsanitize=$san here"; exit 1; }
        check "$cc -fsanitize=$san" ./san "$full"
    done

    PLAIN=1
    objects "$cc" -O0
    $user lib.a -lz -o plain
    check "$cc without the renaming, static" ./plain "$full"
    $cc -shared lib_*.o -lz -o libprobe.so
    check "$cc without the renaming, shared" ./shared "$full"
    PLAIN=
done
echo "callsite_variants: $tried tried, $failed failed"
[ "$failed" = 0 ]
