/* fold_into.c - elements of a source folded into those of a target that an index names, in order. */
#include "cpu/cpu.h"
#include "fold_into.h"

FORCE_INLINE double fold_f64(double a, double b, int how)
{
    switch (how) {
    case INTO_PROD: return a * b;
    case INTO_AMAX: return a != a || a > b ? a : b;
    case INTO_AMIN: return a != a || a < b ? a : b;
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

/* Where the elements of block o go: of each of y whether it is of any element yet; of means, how many. */
typedef struct Into {
    const GatherArgs *g;
    int64_t o, *count;
    uint8_t *seen;
} Into;

/* Compiled for each fold and type: the choice lies outside the loops. */
FORCE_INLINE void add_block(const Into *w, int how, int dtype)
{
    const GatherArgs *g = w->g;
    const int64_t inner = g->inner, from = w->o * g->m * inner, base = w->o * g->n * inner;
    for (int64_t j = 0; j < g->m; j++) {
        const int64_t *index = g->index + w->o * g->index_outer + j * g->index_row;
        for (int64_t i = 0; i < inner; i++) {
            const int64_t at = from + j * inner + i, to = index[i * g->index_inner] * inner + i;
            const bool first = !w->seen[to];
            w->seen[to] = 1;
            if (how == INTO_MEAN && w->count) w->count[to]++;
            if (dtype == TENSOR_F32) {
                const float x = ((const float *)g->src)[at];
                float *y = (float *)g->dst + base + to;
                *y = first ? x : (float)fold_f64((double)*y, (double)x, how);
            } else if (dtype == TENSOR_F64) {
                const double x = ((const double *)g->src)[at];
                double *y = (double *)g->dst + base + to;
                *y = first ? x : fold_f64(*y, x, how);
            } else {
                const int64_t x = ((const int64_t *)g->src)[at];
                int64_t *y = (int64_t *)g->dst + base + to;
                *y = first ? x : fold_i64(*y, x, how);
            }
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
    memset(w->seen, g->include_self, (size_t)block);
    for (int64_t k = 0; w->count && k < block; k++) w->count[k] = g->include_self;
    add_each(w);
    for (int64_t k = 0, at = w->o * block; w->count && k < block; k++, at++) {
        if (w->count[k] < 2) continue;
        if (g->dtype == TENSOR_F64) ((double *)g->dst)[at] /= (double)w->count[k];
        else ((int64_t *)g->dst)[at] = divide_down(((int64_t *)g->dst)[at], w->count[k]);
    }
}

int cpu_scatter_fold(GatherArgs *g)
{
    const size_t block = (size_t)(g->n * g->inner),
                 counts = g->fold == INTO_MEAN ? block * sizeof(int64_t) : 0, bytes = counts + block + 1;
    if (gather_check(g)) return -1;
    char *room = tg_alloc(bytes);
    if (!room) return fail_memory("scatter_fold");
    for (int64_t o = 0; o < g->outer; o++)
        fold_block(&(Into){ g, o, counts ? (int64_t *)(void *)room : NULL, (uint8_t *)room + counts });
    tg_free(room, bytes);
    return 0;
}
