/* map_kernels.h - the dense loops of ops.def's fast rows, by row, part and dtype, for one instruction set. */
#ifndef TG_MAP_KERNELS_H
#define TG_MAP_KERNELS_H

#include <tapegrad/op_row.h>
#include "device/device.h"
#include "device/rows.h"
#include "cpu/isa.h"

typedef struct MapKernels {
    OpRowLoop loop[ROW_FAST][3][8]; /* [row][part][dtype]; NULL: none */
    bool to_bool[ROW_FAST];         /* writes bytes 0 and 1 */
} MapKernels;

ISA_DECLARE(const MapKernels *, map_kernels, void);

#endif
