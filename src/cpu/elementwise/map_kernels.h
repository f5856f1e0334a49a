/* map_kernels.h - the dense loops of ops.def's fast rows, by row, part and type, for one instruction set. */
#ifndef TG_MAP_KERNELS_H
#define TG_MAP_KERNELS_H

#include <tapegrad/op_row.h>
#include "device/device.h"
#include "device/row_ids.h"
#include "cpu/isa.h"

/* The types of computation in the order of TensorDtype.  Halves compute in f32; bools as u8. */
enum { MAP_F32, MAP_F64, MAP_I64, MAP_I32, MAP_U8, MAP_TYPES };

/* The loops on doubles, those of rare rows too, take whole multiples of so many elements. */
enum { MAP_UNIT = 8 };

typedef struct MapKernels {                                                     /* NULL: none */
    OpRowLoop forward[ROW_FAST][MAP_TYPES], gradient[ROW_FAST][2][MAP_F64 + 1]; /* of a and of b */
    bool to_bool[ROW_FAST]; /* forward writes bytes 0 and 1 */
} MapKernels;

ISA_DECLARE(const MapKernels *, map_kernels, void);

#if defined ISA && defined __AVX512F__
/* out[i] = a[i step_a]^b[i step_b]; steps are 0 or 1 */
void ISA_NAME(pow_lines)(int64_t n, double *out, const double *a, int step_a, const double *b,
                         int step_b) HIDDEN;
#endif

#endif
