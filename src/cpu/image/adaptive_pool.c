/* adaptive_pool.c - pools over windows of different sizes that cover a plane, one after the other. */
#include <math.h>
#include "device/host.h"
#include "pool_kernel.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

enum { D, H, W };

/* Window i. */
typedef struct Box {
    int64_t from[3], to[3], count;
} Box;

static Box box(const PoolArgs *a, int64_t i)
{
    const int64_t at[3] = { i / a->out[W] / a->out[H], i / a->out[W] % a->out[H], i % a->out[W] };
    Box b = { .count = 1 };
    for (int k = 0; k < 3; k++) {
        b.from[k] = at[k] * a->in[k] / a->out[k],
        b.to[k] = ((at[k] + 1) * a->in[k] + a->out[k] - 1) / a->out[k];
        b.count *= b.to[k] - b.from[k];
    }
    return b;
}

#define T float
#define TYPE f32
#include "adaptive_loops.h"
#undef T
#undef TYPE

#define T double
#define TYPE f64
#include "adaptive_loops.h"

void adaptive_max(const PoolArgs *a, const void *x, void *y, int64_t *index)
{
    if (a->dtype == TENSOR_F64) max_f64(a, x, y, index);
    else max_f32(a, x, y, index);
}

void adaptive_avg(const PoolArgs *a, const void *x, void *y)
{
    if (a->dtype == TENSOR_F64) avg_f64(a, x, y);
    else avg_f32(a, x, y);
}

void adaptive_avg_grad(const PoolArgs *a, void *x, const void *y)
{
    if (a->dtype == TENSOR_F64) avg_grad_f64(a, x, y);
    else avg_grad_f32(a, x, y);
}
