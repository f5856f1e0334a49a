/* adaptive_pool.c - pools over windows of different sizes that cover a plane, one after the other. */
#include <math.h>
#include "cpu/vectors.h"
#include "device/host.h"
#include "pool_kernel.h"

enum { D, H, W, VECTORS = 4 };

/* The windows along one direction, one after the other: [from, to) of window i is [floor(i in / out),
 * ceil((i + 1) in / out)), without a division for each. */
typedef struct Along {
    int64_t whole, part, out; /* in / out, in % out */
    int64_t from, to, next, rest;
} Along;

static void advance(Along *w)
{
    w->from = w->next;
    w->next += w->whole, w->rest += w->part;
    if (w->rest >= w->out) w->rest -= w->out, w->next++;
    w->to = w->next + (w->rest > 0);
}

static Along first_window(const PoolArgs *a, int axis)
{
    const int64_t out = a->out[axis];
    Along w = { .whole = out ? a->in[axis] / out : 0, .part = out ? a->in[axis] % out : 0, .out = out };
    advance(&w);
    return w;
}

static int64_t count_of(const Along *d, const Along *h, const Along *w)
{
    return (d->to - d->from) * (h->to - h->from) * (w->to - w->from);
}

#define T float
#define TAG int32_t /* an integer as wide as T */
#define TYPE f32
#include "adaptive_loops.h"
#undef T
#undef TAG
#undef TYPE

#define T double
#define TAG int64_t
#define TYPE f64
#include "adaptive_loops.h"

void adaptive_max(const PoolArgs *a, const void *x, void *y, int64_t *index)
{
    if (a->dtype == TENSOR_F64) each_f64(a, x, NULL, y, index);
    else each_f32(a, x, NULL, y, index);
}

void adaptive_avg(const PoolArgs *a, const void *x, void *y)
{
    if (a->dtype == TENSOR_F64) each_f64(a, x, NULL, y, NULL);
    else each_f32(a, x, NULL, y, NULL);
}

void adaptive_avg_grad(const PoolArgs *a, void *x, const void *y)
{
    if (a->dtype == TENSOR_F64) avg_grad_f64(a, x, y);
    else avg_grad_f32(a, x, y);
}
