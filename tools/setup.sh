#!/bin/sh
# setup.sh [test] - installs what building (and testing) needs, on Debian and Ubuntu; elsewhere it says what
# to install.
set -eu
packages="gcc make binutils libblis-dev zlib1g-dev libpng-dev curl ca-certificates"
if [ "${1:-}" = test ]; then
    packages="$packages clang libclang-rt-dev clang-format lld g++ libcmocka-dev pkg-config cmake valgrind"
    packages="$packages liblapack3 python3 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
    packages="$packages gcc-arm-linux-gnueabihf libc6-dev-armhf-cross musl-tools doxygen"
fi
missing=
for p in $packages; do
    if command -v dpkg-query >/dev/null 2>&1; then
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' ||
            missing="$missing $p"
    else
        missing="$missing $p"
    fi
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    # Not Debian: judge by what is there, and say what is not.
    ok=1
    for tool in gcc make objcopy; do
        command -v $tool >/dev/null 2>&1 || { echo "setup: $tool is missing" >&2; ok=0; }
    done
    for header in blis.h zlib.h png.h; do
        printf '#include <stdio.h>\n#include <%s>\n' "$header" |
            gcc -E -I/usr/include/blis -x c - >/dev/null 2>&1 ||
            { echo "setup: <$header> is missing" >&2; ok=0; }
    done
    [ "$ok" = 1 ] || {
        echo "setup: install a C compiler, make, binutils, BLIS, zlib and libpng with their headers" >&2
        exit 1
    }
    exit 0
fi
echo "setup: installing$missing"
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# shellcheck disable=SC2086
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
