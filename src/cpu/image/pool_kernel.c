/* pool_kernel.c - the loops of pooling, for both dtypes (pool_loops.h), once an instruction set.
 *
 * Windows are passed over tap by tap, so that the innermost loops run along the rows, over up to COLUMNS
 * windows. Rows are counted through all depths: row q is (q / height, q % height). */
#include <math.h>
#include "pool_kernel.h"
#include "cpu/vectors.h"

enum { COLUMNS = 128, BESIDE = 16, D = 0, H = 1, W = 2, LANES = BYTES / 4, WIDE = BYTES > 16 };

/* The windows [*from, *to) of [first, first + n) whose tap at that offset lies inside a line of `size`. */
static void inside(int64_t size, int64_t stride, int64_t offset, int64_t first, int64_t n, int64_t *from,
                   int64_t *to)
{
    int64_t lo = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    int64_t hi = size - 1 - offset < 0 ? 0 : (size - 1 - offset) / stride + 1;
    *from = lo < first ? first : lo < first + n ? lo : first + n;
    *to = hi < *from ? *from : hi < first + n ? hi : first + n;
}

/* How many positions a window counts along one direction: those inside, or those up to the padding's end too.
 */
static int64_t counted(int64_t i, int64_t kernel, int64_t stride, int64_t pad, int64_t size, bool padding)
{
    int64_t from = i * stride - pad, to = from + kernel < size + pad ? from + kernel : size + pad;
    if (padding) return to - from;
    return (to < size ? to : size) - (from > 0 ? from : 0);
}

static int64_t counted_along(const PoolArgs *a, int axis, int64_t i)
{
    return counted(i, a->kernel[axis], a->stride[axis], a->pad[axis], a->in[axis], a->count_include_pad);
}

/* Depths times heights that the windows of row q count. */
static double row_count(const PoolArgs *a, int64_t q)
{
    return (double)(counted_along(a, D, q / a->out[H]) * counted_along(a, H, q % a->out[H]));
}

/* 1 / divisor of window j of a row.  A call: vectorised, its cases are most of the code. */
static __attribute__((noinline)) double column_scale(const PoolArgs *a, double rows, int64_t j)
{
    return a->divisor ? 1.0 / (double)a->divisor : 1.0 / (rows * (double)counted_along(a, W, j));
}

/* The place of the input's row that the tap at a depth and height finds for row q of the output; -1: in the
 * padding. */
static int64_t row_of(const PoolArgs *a, int64_t q, int64_t depth, int64_t height)
{
    const int64_t plane = q / a->out[H] * a->stride[D] + depth * a->dilation[D] - a->pad[D];
    const int64_t row = q % a->out[H] * a->stride[H] + height * a->dilation[H] - a->pad[H];
    if (plane < 0 || plane >= a->in[D] || row < 0 || row >= a->in[H]) return -1;
    return (plane * a->in[H] + row) * a->in[W];
}

/* Index reported for an all -inf window; always inside the input, even if no dilated tap is. */
static int64_t first_along(const PoolArgs *a, int axis, int64_t i)
{
    int64_t at = i * a->stride[axis] - a->pad[axis];
    while (at < 0) at += a->dilation[axis];
    return at < a->in[axis] ? at : a->in[axis] - 1;
}

static int64_t first_inside(const PoolArgs *a, int64_t q, int64_t j)
{
    return (first_along(a, D, q / a->out[H]) * a->in[H] + first_along(a, H, q % a->out[H])) * a->in[W] +
           first_along(a, W, j);
}

typedef struct Tap {
    int64_t d, h, w;
} Tap;

/* Where the windows of a row begin. */
typedef struct Corner {
    int64_t d, h;
} Corner;

static void corners(const PoolArgs *a, int64_t q, int64_t rows, Corner *to)
{
    int64_t d = q / a->out[H], h = q % a->out[H];
    for (int64_t k = 0; k < rows; k++, h++) {
        if (h == a->out[H]) d++, h = 0;
        to[k] = (Corner){ d * a->stride[D] - a->pad[D], h * a->stride[H] - a->pad[H] };
    }
}

/* n words, or every second of them; reads none beyond, writes whole vectors. */
static void gather_words(const float *x, int64_t step, int64_t n, float *to)
{
    for (int64_t j = 0; j < n; j += LANES) {
        const int64_t rest = (n - j - 1) * step + 1;
        const float *at = x + j * step;
        Vf32 v = get_f32(at, mask_f32(rest < LANES ? (int)rest : LANES));
        if (step == 2)
            v = EVEN_F32(v, rest > LANES
                                ? get_f32(at + LANES, mask_f32(rest < 2 * LANES ? (int)rest - LANES : LANES))
                                : (Vf32){ 0 });
        *(Uf32 *)(to + j) = v;
    }
}

/* So few at a time that short rows have no scalar tail. */
#define PLACES _Pragma("omp simd safelen(4) reduction(min : least)")

#define T float
#define TAG int32_t /* an integer as wide as T, so that a vector compares both at once */
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
