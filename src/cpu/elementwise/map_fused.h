/* map_fused.h - elementwise ops of three operands, or of three parameters, in one pass over memory: what is
 * otherwise two to five rows.  Each rounds where those rows do, so their bits are the same; where a graph is
 * recorded, and for other dtypes and devices, the rows serve, which are the plain form (test_one_pass.c).
 *
 *   a, b, y, g   operands        p, q, r   parameters */
#ifndef TG_MAP_FUSED_H
#define TG_MAP_FUSED_H

#include <tapegrad/op_row.h>
#include "device/device.h"
#include "cpu/isa.h"
#include "hidden.h"

#define FUSED_LIST(X)                                                                        \
    X(addcmul, a + p * (b * y))                                                              \
    X(addcdiv, a + p * (b / y))                                                              \
    X(addr, a *p + b * y)                                                                    \
    X(addr_one, a *p + q * y) /* addr where b is one value for a line: as a parameter */     \
    X(cross, a *b - y * g)                                                                   \
    X(lerp, a + p * (b - y))                                                                 \
    X(lerp_tensor, (fabs(y) < half ? a : b) + (fabs(y) < half ? y : y - 1) * (b - a))        \
    X(clamp_tensor, (a < b || b != b ? b : a) > y || y != y ? y : (a < b || b != b ? b : a)) \
    X(nan_to_num, replaced(a, p, q, r))

typedef enum FusedRow {
#define X(name, formula) FUSED_##name,
    FUSED_LIST(X)
#undef X
        FUSED_ROWS
} FusedRow;

enum { FUSED_PARAMS = 3 };

typedef OpRowLoop FusedLoops[FUSED_ROWS][2]; /* of f32 and of f64; params: FUSED_PARAMS of them, or NULL */
ISA_DECLARE(const FusedLoops *, map_fused_loops, void);

HIDDEN_BEGIN
int map_fused(MapArgs *args); /* args->row is a FusedRow; all operands have one dtype, f32 or f64 */
HIDDEN_END

#endif
