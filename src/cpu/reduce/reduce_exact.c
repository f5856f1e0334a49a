/* reduce_exact.c - reductions whose order does not matter: integers, which are folded in i64 (sums wrap as in
 * C with -fwrapv, that is as in PyTorch), and argmax, argmin of any dtype.
 *
 * Each kept position gathers its elements piece by piece into a buffer of one type. */
#include <math.h>
#include <tapegrad/tensor.h>
#include "cpu/integer_kernel.h"
#include "reduce.h"
#include "reduce_kernel.h"

enum { PIECE = 1024, LINE = 16 };

typedef union Buffer {
    int64_t i64[PIECE];
    double f64[PIECE];
} Buffer;

/* Elements at base + offset[], as double or, of integer dtypes, as i64. */
#define GATHER(type, to) \
    for (int i = 0; i < n; i++) to[i] = ((const type *)src)[base + offset[i]]

static void gather(int dtype, const void *src, int64_t base, const int64_t *offset, int n, Buffer *to)
{
    switch (dtype) {
    case TENSOR_F32: GATHER(float, to->f64); break;
    case TENSOR_F64: GATHER(double, to->f64); break;
    case TENSOR_I64: GATHER(int64_t, to->i64); break;
    case TENSOR_I32: GATHER(int32_t, to->i64); break;
    default: GATHER(uint8_t, to->i64); break;
    }
}

/* The same, of integers, n from `at` on, stride apart. */
#define GATHER_STRIDED(type, to)                               \
    {                                                          \
        const type *x = (const type *)src + at;                \
        if (stride == 1)                                       \
            for (int i = 0; i < n; i++) to[i] = x[i];          \
        else                                                   \
            for (int i = 0; i < n; i++) to[i] = x[i * stride]; \
        break;                                                 \
    }

static void gather_strided(int dtype, const void *src, int64_t at, int64_t stride, int n, Buffer *to)
{
    switch (dtype) {
    case TENSOR_I64: GATHER_STRIDED(int64_t, to->i64)
    case TENSOR_I32: GATHER_STRIDED(int32_t, to->i64)
    default: GATHER_STRIDED(uint8_t, to->i64)
    }
}

/* ---- integers -------------------------------------------------------------------------------- */

static int64_t first_value(int kind)
{
    return kind == REDUCE_PROD ? 1 : kind == REDUCE_MAX ? INT64_MIN : kind == REDUCE_MIN ? INT64_MAX : 0;
}

static void put(const ReduceArgs *a, int64_t at, int64_t v)
{
    if (a->kind == REDUCE_ANY) v = v > 0;
    if (a->kind == REDUCE_ALL) v = v == a->reduced;
    if (a->out_dtype == TENSOR_I64) ((int64_t *)a->out)[at] = v;
    else if (a->out_dtype == TENSOR_I32) ((int32_t *)a->out)[at] = (int32_t)v;
    else ((uint8_t *)a->out)[at] = (uint8_t)v;
}

/* How many of n bytes are not 0: in bytes, 255 at a time (20 times as fast as in i64). */
static int64_t count_bytes(const uint8_t *x, int64_t n)
{
    int64_t count = 0;
    for (int64_t from = 0; from < n; from += 255) {
        const int64_t to = n - from < 255 ? n : from + 255;
        uint8_t some = 0;
        for (int64_t i = from; i < to; i++) some = (uint8_t)(some + (x[i] != 0));
        count += some;
    }
    return count;
}

static bool counts_bytes(const ReduceArgs *a)
{
    return (a->kind == REDUCE_ANY || a->kind == REDUCE_ALL || a->kind == REDUCE_COUNT_NONZERO) &&
           dtype_size(a->src_dtype) == 1 && a->reduced_ndim == 1 && a->reduced_stride[0] == 1;
}

/* The elements from `from` on along a dim of this stride, n of them, where they lie or in the buffer. */
static const int64_t *line_of(const ReduceArgs *a, int64_t at, int64_t stride, int n, Buffer *to)
{
    const void *src = a->src;
    if (a->src_dtype == TENSOR_I64 && stride == 1) return (const int64_t *)src + at;
    gather_strided(a->src_dtype, src, at, stride, n, to);
    return to->i64;
}

/* One result from lines of the last reduced dim; short lines together. */
static int64_t fold_lines(const ReduceArgs *a, int64_t base)
{
    const int last = a->reduced_ndim - 1;
    const int64_t length = a->reduced_shape[last], stride = a->reduced_stride[last];
    const bool whole = last == 0 || length >= LINE;
    int64_t v = first_value(a->kind), start = base;
    for (int64_t from = 0, n; from < a->reduced; from += n) {
        int64_t offset[PIECE];
        Buffer x;
        n = a->reduced - from < PIECE ? a->reduced - from : PIECE;
        if (whole) {
            const int64_t done = from % length;
            if (done == 0)
                start = base + reduce_offset(from, a->reduced_ndim, a->reduced_shape, a->reduced_stride);
            n = length - done < n ? length - done : n;
            v = ISA_PICK(integer_fold)(a->kind, v, line_of(a, start + done * stride, stride, (int)n, &x), n);
            continue;
        }
        reduce_offsets(a, from, (int)n, offset);
        gather(a->src_dtype, a->src, base, offset, (int)n, &x);
        v = ISA_PICK(integer_fold)(a->kind, v, x.i64, n);
    }
    return v;
}

static void integers_span(void *ctx, int64_t first, int64_t last)
{
    const ReduceArgs *a = ctx;
    for (int64_t k = first; k < last; k++) {
        const int64_t base = reduce_offset(k, a->kept_ndim, a->kept_shape, a->kept_stride);
        if (counts_bytes(a)) put(a, k, count_bytes((const uint8_t *)a->src + base, a->reduced));
        else put(a, k, fold_lines(a, base));
    }
}

/* Results that are neighbours in memory, up to PIECE: row by row. */
static void columns_span(void *ctx, int64_t first, int64_t last)
{
    const ReduceArgs *a = ctx;
    const int64_t inner = a->kept_shape[a->kept_ndim - 1];
    for (int64_t k = first, n; k < last; k += n) {
        const int64_t base = reduce_offset(k, a->kept_ndim, a->kept_shape, a->kept_stride),
                      left = inner - k % inner;
        int64_t offset[LINE], v[PIECE];
        Buffer x;
        n = left < last - k ? left : last - k;
        n = n < PIECE ? n : PIECE;
        for (int64_t i = 0; i < n; i++) v[i] = first_value(a->kind);
        for (int64_t from = 0; from < a->reduced; from++) {
            if (from % LINE == 0)
                reduce_offsets(a, from, a->reduced - from < LINE ? (int)(a->reduced - from) : LINE, offset);
            ISA_PICK(integer_fold_row)(a->kind, v, line_of(a, base + offset[from % LINE], 1, (int)n, &x), n);
        }
        for (int64_t i = 0; i < n; i++) put(a, k + i, v[i]);
    }
}

void reduce_integers(ReduceArgs *a)
{
    const int inner = a->kept_ndim - 1;
    const bool columns = a->kept_stride[inner] == 1 && a->kept_shape[inner] >= LINE &&
                         a->reduced_stride[a->reduced_ndim - 1] != 1;
    parallel_split(a->kept, cpu_threads(a->kept * a->reduced), columns ? columns_span : integers_span, a);
}

/* ---- argmax, argmin -------------------------------------------------------------------------- */

typedef struct Best {
    double f64;
    int64_t i64, at;
} Best;

/* Both return true when nothing can follow that would be better. */
static bool search_floats(Best *b, bool max, const double *x, int n, int64_t from)
{
    for (int i = 0; i < n; i++) {
        bool better = b->at < 0 || (max ? x[i] > b->f64 : x[i] < b->f64) || x[i] != x[i];
        if (!better) continue;
        b->f64 = x[i], b->at = from + i;
        if (x[i] != x[i]) return true; /* the first NaN wins */
    }
    return false;
}

static bool search_integers(Best *b, bool max, const int64_t *x, int n, int64_t from)
{
    for (int i = 0; i < n; i++)
        if (b->at < 0 || (max ? x[i] > b->i64 : x[i] < b->i64)) b->i64 = x[i], b->at = from + i;
    return false;
}

/* A dense line of floats or i64: its extreme by the vector loop, then the first place that holds it (10 times
 * as fast).  A NaN is not equal to itself. */
static int64_t search_dense(const ReduceArgs *a, int64_t base)
{
    const bool max = a->kind == REDUCE_ARGMAX, narrow = a->src_dtype == TENSOR_F32;
    if (a->src_dtype == TENSOR_I64) {
        const int64_t *i64 = (const int64_t *)a->src + base;
        const int kind = max ? REDUCE_MAX : REDUCE_MIN;
        const int64_t most = ISA_PICK(integer_fold)(kind, first_value(kind), i64, a->reduced);
        int64_t place = 0;
        while (i64[place] != most) place++;
        return place;
    }
    const int fold = max ? FOLD_MAX : FOLD_MIN;
    const float *x = (const float *)a->src + base;
    const double *xd = (const double *)a->src + base;
    double lanes[FOLD_LANES];
    for (int i = 0; i < FOLD_LANES; i++) lanes[i] = max ? -INFINITY : INFINITY;
    if (narrow) ISA_PICK(fold_line_f32)(fold, lanes, x, a->reduced, 0);
    else ISA_PICK(fold_line_f64)(fold, lanes, xd, a->reduced, 0);
    const double best = ISA_PICK(fold_lanes)(fold, lanes);
    int64_t at = 0;
    if (best != best)
        while (narrow ? x[at] == x[at] : xd[at] == xd[at]) at++;
    else
        while (narrow ? (double)x[at] != best : xd[at] != best) at++;
    return at;
}

static void index_span(void *ctx, int64_t first, int64_t last)
{
    const ReduceArgs *a = ctx;
    const bool max = a->kind == REDUCE_ARGMAX,
               floats = a->src_dtype == TENSOR_F32 || a->src_dtype == TENSOR_F64;
    int64_t offset[PIECE], known = -1; /* offset[] holds the piece that begins at known */
    Buffer x;
    for (int64_t k = first; k < last; k++) {
        int64_t base = reduce_offset(k, a->kept_ndim, a->kept_shape, a->kept_stride);
        Best best = { 0, 0, -1 };
        bool done = false;
        if ((floats || a->src_dtype == TENSOR_I64) && a->reduced_ndim == 1 && a->reduced_stride[0] == 1 &&
            a->reduced >= FOLD_LANES) {
            ((int64_t *)a->out)[k] = search_dense(a, base);
            continue;
        }
        for (int64_t from = 0; from < a->reduced && !done; from += PIECE) {
            int n = a->reduced - from < PIECE ? (int)(a->reduced - from) : PIECE;
            if (known != from) reduce_offsets(a, from, n, offset), known = from;
            gather(a->src_dtype, a->src, base, offset, n, &x);
            done = floats ? search_floats(&best, max, x.f64, n, from)
                          : search_integers(&best, max, x.i64, n, from);
        }
        ((int64_t *)a->out)[k] = best.at;
    }
}

void reduce_index(ReduceArgs *a)
{
    parallel_split(a->kept, cpu_threads(2 * a->kept * a->reduced), index_span, a);
}
