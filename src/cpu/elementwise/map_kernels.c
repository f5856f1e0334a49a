/* map_kernels.c - ops.def's fast rows as dense loops, for one instruction set. */
#include <math.h>
#include <tapegrad/op_row.h>
#include "map_kernels.h"
#include "vecmath.h"

#pragma GCC diagnostic ignored "-Wtype-limits" /* x < 0 on u8: the formulas are type-generic */

#define INLINE static inline __attribute__((always_inline))
#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)

#define REAL float
#define SUFFIX f32
#define FLOATING 1
#include "map_loops.h"
#define REAL double
#define SUFFIX f64
#define FLOATING 1
#include "map_loops.h"
#define REAL int64_t
#define SUFFIX i64
#define FLOATING 0
#include "map_loops.h"
#define REAL int32_t
#define SUFFIX i32
#define FLOATING 0
#include "map_loops.h"
#define REAL uint8_t
#define SUFFIX u8
#define FLOATING 0
#include "map_loops.h"

/* In the order of TensorDtype: f32 f64 f16 bf16 i64 i32 u8 bool.  Halves compute in f32; bools as u8. */
#define LOOPS_ROW_FLOATS(f) \
    {                       \
        f##_f32, f##_f64    \
    }
#define LOOPS_ROW_REALS(f) LOOPS_ROW_FLOATS(f)
#define LOOPS_ROW_NUMBERS(f)                                     \
    {                                                            \
        f##_f32, f##_f64, 0, 0, f##_i64, f##_i32, f##_u8, f##_u8 \
    }
#define LOOPS_ROW_WIDENED(f) LOOPS_ROW_NUMBERS(f)
#define LOOPS_ROW_ANY(f) LOOPS_ROW_NUMBERS(f)

static const MapKernels kernels = {
    .loop = {
#define ONLY_FAST_ROWS
#define UNARY(name, types, ...) \
    [ROW_##name] = { LOOPS_##types(row_##name##_y), LOOPS_ROW_FLOATS(row_##name##_a) },
#define UNARY1(name, types, ...) \
    [ROW_##name] = { LOOPS_##types(row_##name##_y), LOOPS_ROW_FLOATS(row_##name##_a) },
#define UNARY2(name, types, ...) \
    [ROW_##name] = { LOOPS_##types(row_##name##_y), LOOPS_ROW_FLOATS(row_##name##_a) },
#define BINARY(name, types, ...)                                                      \
    [ROW_##name] = { LOOPS_##types(row_##name##_y), LOOPS_ROW_FLOATS(row_##name##_a), \
                     LOOPS_ROW_FLOATS(row_##name##_b) },
#define BINARY1(name, types, ...)                                                     \
    [ROW_##name] = { LOOPS_##types(row_##name##_y), LOOPS_ROW_FLOATS(row_##name##_a), \
                     LOOPS_ROW_FLOATS(row_##name##_b) },
#define COMPARE(name, ...) [ROW_##name] = { LOOPS_ROW_ANY(row_##name##_y) },
#define PREDICATE(name, ...) [ROW_##name] = { LOOPS_ROW_ANY(row_##name##_y) },
#include <tapegrad/ops.def>
    },
    .to_bool = {
#define ONLY_FAST_ROWS
#define COMPARE(name, ...) [ROW_##name] = true,
#define PREDICATE(name, ...) [ROW_##name] = true,
#include <tapegrad/ops.def>
    },
};

const MapKernels *ISA_NAME(map_kernels)(void) { return &kernels; }
