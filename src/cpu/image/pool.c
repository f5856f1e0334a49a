/* pool.c - pooling on the CPU: each thread has its own planes, so no two threads add to one element. */
#include "device/host.h"
#include "pool_kernel.h"

typedef struct Pool {
    const PoolArgs *a;
    const PoolKernel *loops;
    int64_t in, out; /* bytes of a plane */
} Pool;

static int64_t elements(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

static Pool pool_of(const PoolArgs *a)
{
    const int64_t size = (int64_t)dtype_size(a->dtype);
    return (Pool){ a, &ISA_PICK(pool_kernel)[a->dtype == TENSOR_F64], elements(a->in) * size,
                   elements(a->out) * size };
}

static int threads_for(const PoolArgs *a)
{
    const int64_t in = elements(a->in), out = elements(a->out);
    return cpu_threads(a->planes * (in + (a->adaptive ? in + out : out * (elements(a->kernel) + 1))));
}

typedef struct Planes {
    const PoolArgs *a;
    Pool pool;
} Planes;

static void max_pool_plane(void *ctx, int64_t i)
{
    const Planes *w = ctx;
    const PoolArgs *a = w->a;
    const Pool p = w->pool;
    (a->adaptive ? adaptive_max : p.loops->max)(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out,
                                                a->index + i * elements(a->out));
}

int cpu_max_pool(PoolArgs *a)
{
    if (a->layout != LAYOUT_FIRST) return KERNEL_DECLINED;
    if (!dtype_is_float(a->dtype)) return max_pool_integers(a), 0;
    parallel_for(a->planes, threads_for(a), max_pool_plane, &(Planes){ a, pool_of(a) });
    return 0;
}

static void max_pool_grad_plane(void *ctx, int64_t i)
{
    const Planes *w = ctx;
    const PoolArgs *a = w->a;
    const Pool p = w->pool;
    p.loops->max_grad(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out, a->index + i * elements(a->out));
}

int cpu_max_pool_grad(PoolArgs *a)
{
    if (a->layout != LAYOUT_FIRST) return KERNEL_DECLINED;
    parallel_for(a->planes, threads_for(a), max_pool_grad_plane, &(Planes){ a, pool_of(a) });
    return 0;
}

static void avg_pool_plane(void *ctx, int64_t i)
{
    const Planes *w = ctx;
    const PoolArgs *a = w->a;
    const Pool p = w->pool;
    (a->adaptive ? adaptive_avg : p.loops->avg)(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out);
}

int cpu_avg_pool(PoolArgs *a)
{
    if (a->layout != LAYOUT_FIRST) return KERNEL_DECLINED;
    if (!dtype_is_float(a->dtype)) return avg_pool_integers(a), 0;
    parallel_for(a->planes, threads_for(a), avg_pool_plane, &(Planes){ a, pool_of(a) });
    return 0;
}

static void avg_pool_grad_plane(void *ctx, int64_t i)
{
    const Planes *w = ctx;
    const PoolArgs *a = w->a;
    const Pool p = w->pool;
    (a->adaptive ? adaptive_avg_grad : p.loops->avg_grad)(a, (char *)a->x + i * p.in,
                                                          (char *)a->y + i * p.out);
}

int cpu_avg_pool_grad(PoolArgs *a)
{
    if (a->layout != LAYOUT_FIRST) return KERNEL_DECLINED;
    parallel_for(a->planes, threads_for(a), avg_pool_grad_plane, &(Planes){ a, pool_of(a) });
    return 0;
}
