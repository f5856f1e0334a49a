/* pool_kernel.c - the loops of pooling, for both dtypes (pool_loops.h), once an instruction set.
 *
 * Windows are passed over tap by tap, so that the innermost loops run along the rows, over up to COLUMNS windows. */
#include <math.h>
#include "pool_kernel.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

enum { COLUMNS = 128 };

/* The windows [*from, *to) of [first, first + n) whose tap at that offset lies inside a line of `size`. */
static void inside(int64_t size, int64_t stride, int64_t offset, int64_t first, int64_t n, int64_t *from, int64_t *to)
{
    int64_t lo = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    int64_t hi = size - 1 - offset < 0 ? 0 : (size - 1 - offset) / stride + 1;
    *from = lo < first ? first : lo < first + n ? lo : first + n;
    *to = hi < *from ? *from : hi < first + n ? hi : first + n;
}

/* How many positions a window counts along one direction: those inside, or those up to the padding's end too. */
static int64_t counted(int64_t i, int64_t kernel, int64_t stride, int64_t pad, int64_t size, bool padding)
{
    int64_t from = i * stride - pad, to = from + kernel < size + pad ? from + kernel : size + pad;
    if (padding) return to - from;
    return (to < size ? to : size) - (from > 0 ? from : 0);
}

static double scale(const PoolArgs *a, int64_t i, int64_t j)
{
    if (a->divisor) return 1.0 / (double)a->divisor;
    return 1.0 / (double)(counted(i, a->kh, a->stride_h, a->pad_h, a->h, a->count_include_pad) *
                          counted(j, a->kw, a->stride_w, a->pad_w, a->w, a->count_include_pad));
}

/* Of a window that is all -inf.  Dilation may leave no tap inside, but the index must be. */
static int64_t first_inside(const PoolArgs *a, int64_t i, int64_t j)
{
    int64_t row = i * a->stride_h - a->pad_h, column = j * a->stride_w - a->pad_w;
    while (row < 0) row += a->dilation_h;
    while (column < 0) column += a->dilation_w;
    return (row < a->h ? row : a->h - 1) * a->w + (column < a->w ? column : a->w - 1);
}

#define T float
#define TAG int32_t             /* an integer as wide as T, so that a vector compares both at once */
#define TYPE f32
#include "pool_loops.h"
#undef T
#undef TAG
#undef TYPE

#define T double
#define TAG int64_t
#define TYPE f64
#include "pool_loops.h"

const PoolKernel ISA_NAME(pool_kernel)[2] = {
    { max_f32, max_grad_f32, avg_f32, avg_grad_f32 },
    { max_f64, max_grad_f64, avg_f64, avg_grad_f64 },
};
