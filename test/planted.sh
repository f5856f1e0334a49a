#!/usr/bin/env bash
# planted.sh BUILD - the emulator of GPUs (test/cuemu) finds the bugs that are planted for it, by the means
# that planted.txt names, and nothing in kernels that are right.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1/planted compile="${CLANGXX:-clang++} -std=c++20 -Itest -Itest/cuemu/shim -g -Wall -Wextra -Werror"
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" TSAN_OPTIONS="${TSAN_OPTIONS-}:halt_on_error=1"
mkdir -p "$folder"
emulator=()
for file in test/cuemu/*.cpp; do emulator+=("$1/emu/$(basename "$file" .cpp).o"); done
make -s B="$1" "${emulator[@]}"
for how in plain address thread; do
    $compile -O1 "$([ $how = plain ] && echo -g || echo -fsanitize=$how)" -x c++ test/cuemu/planted.cu \
        -x none "${emulator[@]}" -lpthread -ldl -o "$folder/$how"
done

# notices HOW ORDER [BUG] - does the program end with a failure?
notices() {
    local program=$1 order=$2
    shift 2
    local status=0
    CUEMU_ORDER=$order timeout 100 "$folder/$program" "$@" > "$folder/log" 2>&1 || status=$?
    [ $status != 3 ] || { cat "$folder/log" >&2 && exit 1; } # no such bug
    [ $status != 0 ]
}
for order in fwd rev rand:1 rand:2; do
    for how in plain address thread; do
        if notices $how $order; then
            echo "planted: $how, $order: a finding where nothing is wrong:" >&2
            cat "$folder/log" >&2
            exit 1
        fi
    done
done
{
    found=0
    while read -r bug means; do
        [ "$bug" != "#" ] || continue
        for how in $means; do
            case $how in
            plain) ways="plain:fwd plain:rev plain:rand:3" ;;
            asan) ways="address:fwd" ;;
            tsan) ways="thread:fwd" ;;
            *) echo "planted.txt: $bug: $how" >&2 && exit 1 ;;
            esac
            for way in $ways; do
                notices "${way%%:*}" "${way#*:}" "$bug" || {
                    echo "planted: $bug is not noticed by $way" >&2
                    exit 1
                }
                found=$((found + 1))
            done
        done
    done
    echo "planted: $(grep -vc '^#' test/cuemu/planted.txt) bugs found, $found times"
} < test/cuemu/planted.txt 2> >(grep -v 'Segmentation fault' >&2)
