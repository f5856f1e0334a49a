#!/usr/bin/env bash
# arm64.sh FOLDER build SUITES - cross-builds library and suites for arm64, without BLIS, into FOLDER.
# arm64.sh FOLDER run PROGRAM    runs one of them under qemu.
#
# The libraries that they link are Debian's for arm64, fetched by apt into FOLDER/root: nothing is
# installed, and the machine's own list of architectures stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 root=$PWD/$1/root
libs=$root/usr/lib/aarch64-linux-gnu
compiler=aarch64-linux-gnu-gcc
packages="libcmocka-dev libcmocka0 libpng-dev libpng16-16 zlib1g-dev zlib1g liblapack3 libblas3 libgfortran5"

fetch() {
    local apt=$PWD/$folder/apt
    [ -f "$libs/libcmocka.so" ] && return
    rm -rf "$apt" "$root"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
    touch "$apt/status"
    local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Debug::NoLocking=1
        -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache"
        -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update
    # shellcheck disable=SC2086
    (cd "$apt/debs" && apt-get "${options[@]}" download $packages)
    for package in "$apt"/debs/*.deb; do dpkg -x "$package" "$root"; done
    cp -P "$root"/lib/aarch64-linux-gnu/* "$libs/" 2> /dev/null || true
}

case $2 in
build)
    fetch
    make -s --no-print-directory B="$folder" CC="${CCACHE:+ccache }$compiler" WERROR=1 WITHOUT_BLIS=1 \
        OPT="-O1 -g1" FAST=-O1 CPPFLAGS="-I$root/usr/include" LDFLAGS="-L$libs -Wl,-rpath-link,$libs" \
        SUITES="$3" tests
    ;;
run) exec qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$libs:$libs/lapack:$libs/blas" "$3" ;;
*) echo "arm64.sh: $2 is neither build nor run" >&2; exit 1 ;;
esac
