/* softmax_kernel.c - softmax_rows.h for both types and one instruction set.
 *
 * Compiled with -DISA=avx512, avx2 or base and the matching -march. */
#include "softmax_kernel.h"
#include "cpu/math/vecmath.h"

#define FORCE_INLINE static inline __attribute__((always_inline))
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define N(name) JOIN(name, TYPE)

#if defined __AVX512F__
enum { BYTES = 64 };
#elif defined __AVX2__
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
enum { PIECE = 512 }; /* elements that stay in the nearest cache, and that are summed in their own type */

typedef float V_f32 __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef int32_t I_f32 __attribute__((vector_size(BYTES)));
typedef double V_f64 __attribute__((vector_size(BYTES), aligned(8), may_alias));
typedef int64_t I_f64 __attribute__((vector_size(BYTES)));

#define T float
#define TYPE f32
#include "softmax_rows.h"
#undef T
#undef TYPE

#define T double
#define TYPE f64
#include "softmax_rows.h"
