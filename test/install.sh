#!/usr/bin/env bash
# install.sh BUILD - installs into a folder, builds a program of ten lines against it in every way that a
# user has, uninstalls, and looks for what is left.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD build=$(cd "$1" && pwd)
root=$build/root prefix=/opt/tapegrad work=$build/ten
libdir=$prefix/lib/$(gcc -dumpmachine)
rm -rf "$root" "$work"
mkdir -p "$work"
install() {
    make -s --no-print-directory B="$1" DESTDIR="$root" PREFIX=$prefix LIBDIR=$libdir "$2" > /dev/null
}
install "$1" install-strip
lib=$root$libdir
cd "$work"
cat > ten.c <<'C'
#include <math.h>
#include <tapegrad.h>

int main(void)
{
    Tensor *x = tensor_requires_grad_(tensor_full(SHAPE(2, 2), 3, TENSOR_F32), true);
    tensor_backward(tensor_sum(tensor_mul_scalar(tensor_square(x), exp(tensor_item(tensor_sum(x)) - 12))));
    tensor_print(tensor_grad(x));
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() || tensor_get(tensor_grad(x), DIMS(1, 1)) != 6;
}
C
cat > ten.cpp <<'C'
#include <cmath>
#include <tapegrad.h>

int main()
{
    const int64_t three = 3;
    TensorShape shape{};
    shape.ndim = 1, shape.dim = &three;
    Tensor *x = tensor_full(shape, std::exp(0.0), TENSOR_F32);
    return x && tensor_numel(x) == 3 && !tensor_error() ? 0 : 1;
}
C
ways=0
# built WAY PROGRAM - runs the program, which must know the way.
built() {
    LD_LIBRARY_PATH=$lib "$2" > out || {
        echo "install: the program fails, built by $1" >&2; cat out >&2; exit 1; }
    ways=$((ways + 1))
}
strict="-std=c11 -Wall -Wextra -Wpedantic -Werror"
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
# shellcheck disable=SC2046,SC2086
{
    gcc $strict ten.c $(pkg-config --cflags --libs tapegrad) -o shared
    built "pkg-config" ./shared
    gcc $strict ten.c $(pkg-config --cflags --libs-only-L tapegrad) -Wl,-Bstatic -ltapegrad -Wl,-Bdynamic \
        $(pkg-config --static --libs tapegrad | sed 's/-ltapegrad//') -o archive
    built "the archive" ./archive
    gcc $strict -static ten.c $(pkg-config --static --cflags --libs tapegrad) -o static 2> static.log ||
        { echo "install: pkg-config --static" >&2; cat static.log >&2; exit 1; }
    built "pkg-config --static" ./static
    gcc -std=c11 ten.c -I"$root$prefix/include" -L"$lib" -ltapegrad -lm -o plain
    built "-ltapegrad" ./plain
    g++ -std=c++17 -Wall -Wextra -Werror ten.cpp $(pkg-config --cflags --libs tapegrad) -o cpp
    built "g++" ./cpp
}
# Every function and constant of the library is declared in the installed headers.
{
    (cd "$root$prefix/include" && find tapegrad -name '*.h' ! -name cmocka.h) | sed 's/.*/#include <&>/'
    echo 'const void *const all[] = {'
    nm -D --defined-only "$lib/libtapegrad.so" | sed -n 's/.* [TRDB] \([a-z]\w*\)@@.*/    \&\1,/p'
    echo '};'
} > all.c
# shellcheck disable=SC2046
gcc -std=c11 -fsyntax-only $(pkg-config --cflags tapegrad) all.c 2> all.log || {
    echo "install: not in the installed headers:" >&2; grep error all.log | head >&2; exit 1; }
readelf -d shared | grep 'libtapegrad\.so\.0\.1\]' > /dev/null || { echo "install: the soname" >&2; exit 1; }
readelf -V shared | grep 'TAPEGRAD_0\.1' > /dev/null ||
    { echo "install: the version of symbols" >&2; exit 1; }

cat > CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.13)
project(ten C)
find_package(tapegrad 0.1 REQUIRED)
add_executable(by_cmake ten.c)
target_link_libraries(by_cmake tapegrad::tapegrad)
add_executable(by_cmake_static ten.c)
target_link_libraries(by_cmake_static tapegrad::static)
C
cmake -S . -B by_cmake -DCMAKE_PREFIX_PATH="$root$prefix" -DCMAKE_C_COMPILER=gcc > cmake.log
cmake --build by_cmake >> cmake.log || { cat cmake.log >&2; exit 1; }
built "CMake" by_cmake/by_cmake
built "CMake, static" by_cmake/by_cmake_static
mkdir other
sed 's/0.1 REQUIRED/0.2 REQUIRED/' CMakeLists.txt > other/CMakeLists.txt
if cmake -S other -B by_other -DCMAKE_PREFIX_PATH="$root$prefix" > cmake.log 2>&1; then
    echo "install: CMake takes 0.1 for 0.2" >&2; exit 1
fi

for program in shared archive; do
    LD_LIBRARY_PATH=$lib TAPEGRAD_NO_CACHE=1 valgrind -q --leak-check=full --error-exitcode=1 \
        --errors-for-leak-kinds=definite,possible --suppressions="$root$prefix/share/tapegrad/tapegrad.supp" \
        ./$program > valgrind.log 2>&1 || { echo "install: valgrind" >&2; cat valgrind.log >&2; exit 1; }
done
"$root$prefix/bin/tapegrad" info > /dev/null
[ -s "$root$prefix/share/man/man1/tapegrad.1" ]
cd "$tree"
install "$1" uninstall
[ -z "$(find "$root" -type f -o -type l)" ] || {
    echo "install: uninstall left files:" >&2; find "$root" -type f -o -type l >&2; exit 1; }
echo "install: a program of ten lines builds in $ways ways"
