#!/usr/bin/env bash
# portable.sh - every source of the library compiles, without a warning, where pointers have 32 bits and
# with musl; -fsyntax-only, so it takes seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# png.h and zlib.h are the same for all machines.
mkdir "$folder/include"
for header in png pngconf pnglibconf zlib zconf; do
    ln -s "$(printf '#include <%s.h>\n' $header | gcc -E -x c - 2> /dev/null |
        sed -n "s|^# 1 \"\(/.*/$header\.h\)\".*|\1|p" | sed -n 1p)" "$folder/include/$header.h"
done
printf '#define TAPEGRAD_OPS_DIGEST ""\n' > "$folder/include/ops_digest.h"
warnings="-Wall -Wextra -Wno-override-init -Wno-missing-field-initializers -Werror"
kernels=$(find src -name '*_kernel.c' -o -name '*_kernels.c')
core=$(find src -name '*.c' -not -path 'src/check/*' | grep -vxF "$kernels")
users=$(find src/check nn optim train -name '*.c')
for compiler in arm-linux-gnueabihf-gcc musl-gcc; do
    command="$compiler -std=gnu11 -fsyntax-only $warnings -fopenmp-simd -DWITHOUT_BLIS -DONE_ISA=base
        -Iinclude -Isrc -idirafter $folder/include"
    # What most files include is compiled once.
    # shellcheck disable=SC2086
    { ${command/-fsyntax-only/} -D_GNU_SOURCE= -x c-header src/op/shape/shape_op.h -o "$folder/core.h.gch"
      ${command/-fsyntax-only/} -D_GNU_SOURCE= -x c-header include/tapegrad.h -o "$folder/user.h.gch"
      echo "$core" | xargs -n 20 -P "$(nproc)" $command -D_GNU_SOURCE= -include "$folder/core.h"
      echo "$users" | xargs -n 20 -P "$(nproc)" $command -D_GNU_SOURCE= -include "$folder/user.h"
      echo "$kernels" | xargs -n 3 -P "$(nproc)" $command -DISA=base; }
    echo "portable: compiles with $compiler"
done

# The build by clang is for one instruction set; the kernels of the others compile, too.
for isa in base "avx512 -march=x86-64-v4"; do
    # shellcheck disable=SC2086
    echo "$kernels" | xargs -n 3 -P "$(nproc)" clang -std=gnu11 -fsyntax-only -Wall -Wextra -Werror \
        -Wno-initializer-overrides -Wno-missing-field-initializers -Wno-gnu-folding-constant \
        -Wno-missing-braces -fopenmp-simd -Iinclude -Isrc -DISA=${isa}
done
echo "portable: the kernels compile with clang"
