#!/usr/bin/env bash
# install.sh BUILD - installs into a folder, builds a program of ten lines against it by pkg-config alone, uninstalls.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(cd "$1" && pwd)/root
rm -rf "$root"
make -s B="$1" install DESTDIR="$root" PREFIX=/opt/tapegrad >/dev/null
cat > "$1/ten.c" <<'C'
#include <tapegrad.h>
int main(void)
{
    Tensor *x = tensor_requires_grad_(tensor_full(SHAPE(2, 2), 3, TENSOR_F32), true);
    tensor_backward(tensor_sum(tensor_square(x)));
    tensor_print(tensor_grad(x));
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() || tensor_get(tensor_grad(x), DIMS(1, 1)) != 6;
}
C
export PKG_CONFIG_PATH=$root/opt/tapegrad/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror "$1/ten.c" $(pkg-config --cflags --libs tapegrad) -o "$1/ten"
LD_LIBRARY_PATH=$root/opt/tapegrad/lib "$1/ten" | grep -q 6
gcc -std=c11 "$1/ten.c" $(pkg-config --cflags tapegrad) "$root/opt/tapegrad/lib/libtapegrad.a" $(pkg-config --libs --static tapegrad | sed 's/-ltapegrad//') -o "$1/ten_static"
"$1/ten_static" | grep -q 6
"$root/opt/tapegrad/bin/tapegrad" info >/dev/null
make -s B="$1" uninstall DESTDIR="$root" PREFIX=/opt/tapegrad >/dev/null
[ -z "$(find "$root" -type f -o -type l)" ] || { echo "install: uninstall left files:" >&2; find "$root" -type f -o -type l >&2; exit 1; }
echo "install: a program of ten lines builds by pkg-config, shared and static"
