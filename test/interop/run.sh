#!/usr/bin/env bash
# run.sh BUILD [--if-reachable] - what the library writes is read by Python's safetensors, TensorBoard's own
# reader and PyTorch, and nets take files of published layouts.  What PYTHON (python3) lacks is installed from
# PyPI into BUILD/interop: PyTorch takes gigabytes, the others a hundred MB.  Fails where that cannot be done;
# with --if-reachable it says so and passes, and does without PyTorch where PYTHON has none.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 mode=${2:-} here=$1/interop python=${PYTHON:-python3}
export PYTHONPATH=$here/site:$here/torch
mkdir -p "$here/files"

# install FOLDER PACKAGE...: afresh.  1: it cannot be done, and pip.log says why.
install() {
    rm -rf "${here:?}/$1"
    local pip="$python -m pip install -q --retries 1 --timeout 20"
    $pip --target "$here/$1" "${@:2}" > "$here/pip.log" 2>&1 || { rm -rf "${here:?}/$1"; return 1; }
}
give_up() {
    [ "$mode" != --if-reachable ] || { echo "interop: not run, for $1 cannot be installed"; exit 0; }
    cat "$here/pip.log" >&2
    echo "interop: failed: pip cannot install $1" >&2
    exit 1
}

packages="tensorboard safetensors numpy pillow"
if ! "$python" -c "import tensorboard, safetensors, PIL" 2> /dev/null; then
    # shellcheck disable=SC2086
    install site $packages || give_up "$packages"
fi
if [ "$mode" != --if-reachable ] && ! "$python" -c "import torch" 2> /dev/null; then
    echo "interop: PyTorch is installed into $here/torch: gigabytes; PYTHON= names a Python that has it"
    install torch torch || give_up torch
fi
libraries=$(make -s print-libs)
for program in write published; do
    # shellcheck disable=SC2086
    gcc -std=gnu11 -Wall -Wextra -Werror -Wno-missing-field-initializers -Iinclude "test/interop/$program.c" \
        "$build/libtapegrad.a" $libraries -o "$here/$program"
done
rm -rf "$here/files"
mkdir -p "$here/files"
"$here/write" "$here/files"
"$python" test/interop/published.py write "$here/files"
"$here/published" "$here/files"
"$python" test/interop/published.py read "$here/files"
"$python" -W ignore test/interop/read.py "$here/files" "$mode" 2> "$here/err" || {
    cat "$here/err" >&2
    exit 1
}
