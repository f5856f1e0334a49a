/* fold_into.c - elements of a source folded into those of a target that an index names, in order. */
#include <math.h>
#include "cpu/cpu.h"
#include "fold_into.h"

/* Comparisons of one instruction, for random values mislead branches; that of NaN is nearly never taken. */
FORCE_INLINE double fold_f64(double a, double b, int how)
{
    const double most = a > b ? a : b, least = a < b ? a : b; /* b, where that is NaN */
    switch (how) {
    case INTO_PROD: return a * b;
    case INTO_AMAX: return unlikely(a != a) ? a : most;
    case INTO_AMIN: return unlikely(a != a) ? a : least;
    default: return a + b;
    }
}

FORCE_INLINE int64_t fold_i64(int64_t a, int64_t b, int how)
{
    switch (how) {
    case INTO_PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case INTO_AMAX: return a > b ? a : b;
    case INTO_AMIN: return a < b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static int64_t divide_down(int64_t a, int64_t n) { return a / n - (a % n != 0 && a < 0); }

/* Where the elements of block o go: of means, how many go to each of y. */
typedef struct Into {
    const GatherArgs *g;
    int64_t o;
    double *count;
} Into;

/* Compiled for each fold and type: the choice lies outside the loops. */
FORCE_INLINE void add_block(const Into *w, int how, int dtype)
{
    const GatherArgs *g = w->g;
    const int64_t inner = g->inner, from = w->o * g->m * inner, base = w->o * g->n * inner;
    const bool line = inner == 1; /* the rows are the inner loop */
    const int64_t rows = line ? 1 : g->m, columns = line ? g->m : inner,
                  next = line ? g->index_row : g->index_inner, apart = !line;
    double *const count = how == INTO_MEAN ? w->count : NULL;
    for (int64_t j = 0; j < rows; j++) {
        const int64_t *index = g->index + w->o * g->index_outer + j * g->index_row;
        for (int64_t i = 0; i < columns; i++) {
            const int64_t at = from + j * inner + i, to = index[i * next] * inner + i * apart;
            if (count) count[to] += 1;
            if (dtype == TENSOR_F32) {
                float *y = (float *)g->dst + base + to;
                *y = (float)fold_f64((double)*y, (double)((const float *)g->src)[at], how);
            } else if (dtype == TENSOR_F64) {
                double *y = (double *)g->dst + base + to;
                *y = fold_f64(*y, ((const double *)g->src)[at], how);
            } else {
                int64_t *y = (int64_t *)g->dst + base + to;
                *y = fold_i64(*y, ((const int64_t *)g->src)[at], how);
            }
        }
    }
}

/* Each place that elements of the block will reach takes the value that changes none of them: 1 for a
 * product, an infinity for extremes, -0 for a sum, as 0 + -0 is not -0. */
static void clear_block(const Into *w)
{
    const GatherArgs *g = w->g;
    const int how = g->fold;
    const double real = how == INTO_PROD   ? 1
                        : how == INTO_AMAX ? -INFINITY
                        : how == INTO_AMIN ? INFINITY
                                           : -0.0;
    const int64_t whole = how == INTO_PROD   ? 1
                          : how == INTO_AMAX ? INT64_MIN
                          : how == INTO_AMIN ? INT64_MAX
                                             : 0;
    const size_t size = dtype_size(g->dtype);
    char value[8];
    if (g->dtype == TENSOR_F32) memcpy(value, &(float){ (float)real }, size);
    else memcpy(value, g->dtype == TENSOR_F64 ? (const void *)&real : &whole, size);
    char *dst = (char *)g->dst + (size_t)(w->o * g->n * g->inner) * size;
    for (int64_t j = 0; j < g->m; j++) {
        const int64_t *index = g->index + w->o * g->index_outer + j * g->index_row;
        for (int64_t i = 0; i < g->inner; i++) {
            char *y = dst + (size_t)(index[i * g->index_inner] * g->inner + i) * size;
            if (size == 4) memcpy(y, value, 4);
            else memcpy(y, value, 8);
        }
    }
}

FORCE_INLINE void add_folded(const Into *w, int how)
{
    if (w->g->dtype == TENSOR_F64) add_block(w, how, TENSOR_F64);
    else add_block(w, how, TENSOR_I64);
}

static void add_each(const Into *w)
{
    switch (w->g->fold) {
    case INTO_PROD: add_folded(w, INTO_PROD); break;
    case INTO_AMAX:
        if (w->g->dtype == TENSOR_F32) add_block(w, INTO_AMAX, TENSOR_F32);
        else add_folded(w, INTO_AMAX);
        break;
    case INTO_AMIN:
        if (w->g->dtype == TENSOR_F32) add_block(w, INTO_AMIN, TENSOR_F32);
        else add_folded(w, INTO_AMIN);
        break;
    default: add_folded(w, INTO_MEAN); /* and sums, whose count is NULL */
    }
}

static void fold_block(const Into *w)
{
    const GatherArgs *g = w->g;
    const int64_t block = g->n * g->inner;
    for (int64_t k = 0; w->count && k < block; k++) w->count[k] = g->include_self;
    if (!g->include_self) clear_block(w);
    add_each(w);
    if (w->count && g->dtype == TENSOR_F64) {
        double *y = (double *)g->dst + w->o * block;
        for (int64_t k = 0; k < block; k++) y[k] /= w->count[k] > 1 ? w->count[k] : 1;
    } else if (w->count) {
        int64_t *y = (int64_t *)g->dst + w->o * block;
        for (int64_t k = 0; k < block; k++)
            if (w->count[k] > 1) y[k] = divide_down(y[k], (int64_t)w->count[k]);
    }
}

int cpu_scatter_fold(GatherArgs *g)
{
    const size_t bytes = (size_t)(g->n * g->inner) * sizeof(double);
    if (gather_check(g)) return -1;
    double *count = g->fold == INTO_MEAN && bytes ? tg_alloc(bytes) : NULL;
    if (g->fold == INTO_MEAN && bytes && !count) return fail_memory("scatter_fold");
    for (int64_t o = 0; o < g->outer; o++) fold_block(&(Into){ g, o, count });
    if (count) tg_free(count, bytes);
    return 0;
}
