/* fold_into.c - elements of a source folded into those of a target that an index names, in order. */
#include "cpu/cpu.h"
#include "fold_into.h"

static double fold_f64(double a, double b, int how)
{
    switch (how) {
    case INTO_PROD: return a * b;
    case INTO_AMAX: return a != a || a > b ? a : b;
    case INTO_AMIN: return a != a || a < b ? a : b;
    default: return a + b;
    }
}

static int64_t fold_i64(int64_t a, int64_t b, int how)
{
    switch (how) {
    case INTO_PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case INTO_AMAX: return a > b ? a : b;
    case INTO_AMIN: return a < b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static int64_t divide_down(int64_t a, int64_t n) { return a / n - (a % n != 0 && a < 0); }

/* count: how many elements each of y is of. */
static void add_row(const GatherArgs *g, int64_t o, int64_t j, int64_t *count)
{
    const int64_t *index = g->index + o * g->index_outer + j * g->index_row;
    for (int64_t i = 0; i < g->inner; i++) {
        const int64_t from = (o * g->m + j) * g->inner + i, to = index[i * g->index_inner] * g->inner + i;
        const bool first = count[to]++ == 0;
        if (g->dtype == TENSOR_F64) {
            const double *x = g->src;
            double *y = (double *)g->dst + o * g->n * g->inner;
            y[to] = first ? x[from] : fold_f64(y[to], x[from], g->fold);
        } else {
            const int64_t *x = g->src;
            int64_t *y = (int64_t *)g->dst + o * g->n * g->inner;
            y[to] = first ? x[from] : fold_i64(y[to], x[from], g->fold);
        }
    }
}

int cpu_scatter_fold(GatherArgs *g)
{
    const int64_t block = g->n * g->inner;
    if (gather_check(g)) return -1;
    int64_t *count = tg_alloc((size_t)(block ? block : 1) * sizeof *count);
    if (!count) return fail_memory("scatter_fold");
    for (int64_t o = 0; o < g->outer; o++) {
        for (int64_t k = 0; k < block; k++) count[k] = g->include_self;
        for (int64_t j = 0; j < g->m; j++) add_row(g, o, j, count);
        for (int64_t k = 0; g->fold == INTO_MEAN && k < block; k++) {
            if (count[k] < 2) continue;
            if (g->dtype == TENSOR_F64) ((double *)g->dst)[o * block + k] /= (double)count[k];
            else
                ((int64_t *)g->dst)[o * block + k] =
                    divide_down(((int64_t *)g->dst)[o * block + k], count[k]);
        }
    }
    tg_free(count, (size_t)(block ? block : 1) * sizeof *count);
    return 0;
}
