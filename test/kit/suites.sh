#!/usr/bin/env bash
# suites.sh BUILD [all] - the suites of the kit that open files or start programs run on the emulated device
# from a copy of the kit, where what they open must be: a part of the ops, in one order of threads.  all: the
# others, too.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1") kit=$(realpath "$1")/kit-alone
make -s B="$1" KIT="$kit" kit-folder emu > /dev/null
cp "$build/libtapegrad_emu.so" "$kit"
needed=$(objdump -p "$kit/bin/suites" | awk '/NEEDED/ { print $2 }' |
    grep -vE '^(lib(c|m|dl|pthread|gcc_s)\.so|ld-linux)' || true)
[ -z "$needed" ] || { echo "kit: suites need $needed" >&2; exit 1; }
cd "$kit"
export TAPEGRAD_TEST_DEVICE=emu:0 CUEMU_ORDER=fwd CUEMU_GUARD=8
# What these need is the plugin alone, and they run beside it in CI.
alone='test_(list|device_memory|device_attention|device_conv|packs|graph|graph_ends|nets)'
failed=0 suites=$(bin/suites | grep -vxE "$([ "${2:-}" = all ] || echo "$alone")")
for suite in $suites; do
    # Each of a user's rows is compiled, twice, which takes a third of a second: CI has them here alone.
    part=1/$([ "$suite" = test_own_rows ] && echo 16 || echo 64)
    TAPEGRAD_SHARD=$part bin/suites "$suite" > "$suite.log" 2>&1 && continue
    echo "kit: $suite failed" && tail -n 40 "$suite.log"
    failed=1
done
echo "kit: $(echo "$suites" | wc -w) suites run"
exit $failed
