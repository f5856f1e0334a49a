#!/usr/bin/env bash
# run.sh BUILD [--if-reachable] - what the library writes is read by Python's safetensors and TensorBoard's
# own reader, installed from PyPI into BUILD/interop, and by the PyTorch of PYTHON (python3).  Fails where
# they cannot be installed or it is not there; with --if-reachable it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 mode=${2:-} here=$1/interop python=${PYTHON:-python3}
packages="tensorboard safetensors numpy pillow"
mkdir -p "$here/files"
if ! PYTHONPATH=$here/site "$python" -c "import tensorboard, safetensors, PIL" 2> /dev/null; then
    rm -rf "$here/site"
    install="$python -m pip install -q --retries 1 --timeout 20 --target $here/site $packages"
    if ! $install > "$here/pip.log" 2>&1; then
        [ "$mode" != --if-reachable ] || { echo "interop: not run, for it cannot be installed"; exit 0; }
        cat "$here/pip.log" >&2
        echo "interop: failed: $install" >&2
        exit 1
    fi
fi
# shellcheck disable=SC2046
gcc -std=gnu11 -Wall -Wextra -Werror -Wno-missing-field-initializers -Iinclude test/interop/write.c \
    "$build/libtapegrad.a" $(make -s print-libs) -o "$here/write"
rm -rf "$here/files"
mkdir -p "$here/files"
"$here/write" "$here/files"
PYTHONPATH=$here/site "$python" -W ignore test/interop/read.py "$here/files" "$mode" 2> "$here/err" || {
    cat "$here/err" >&2
    exit 1
}
