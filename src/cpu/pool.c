/* pool.c - pooling on the CPU: planes are shared out to threads, so what a thread adds up is its own. */
#include "../core.h"
#include "pool_kernel.h"

typedef struct Pool {
    const PoolArgs *a;
    const PoolKernel *loops;
    int64_t in, out;                    /* bytes of a plane */
} Pool;

static Pool pool_of(const PoolArgs *a)
{
    const int64_t size = (int64_t)dtype_size(a->dtype);
    return (Pool){ a, &ISA_PICK(pool_kernel)[a->dtype == TENSOR_F64], a->h * a->w * size, a->oh * a->ow * size };
}

static int threads_for(const PoolArgs *a)
{
    return cpu_threads(a->planes * (a->h * a->w + a->oh * a->ow * (a->kh * a->kw + 1)));
}

typedef struct Planes { const PoolArgs *a; Pool pool; } Planes;

static void max_pool2d_plane(void *ctx, int64_t i)
{
    const Planes *w = ctx;
    const PoolArgs *a = w->a;
    const Pool p = w->pool;
    p.loops->max(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out, a->index + i * a->oh * a->ow);
}

int cpu_max_pool2d(PoolArgs *a)
{
    parallel_for(a->planes, threads_for(a), max_pool2d_plane, &(Planes){ a, pool_of(a) });
    return 0;
}

static void max_pool2d_grad_plane(void *ctx, int64_t i)
{
    const Planes *w = ctx;
    const PoolArgs *a = w->a;
    const Pool p = w->pool;
    p.loops->max_grad(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out, a->index + i * a->oh * a->ow);
}

int cpu_max_pool2d_grad(PoolArgs *a)
{
    parallel_for(a->planes, threads_for(a), max_pool2d_grad_plane, &(Planes){ a, pool_of(a) });
    return 0;
}

static void avg_pool2d_plane(void *ctx, int64_t i)
{
    const Planes *w = ctx;
    const PoolArgs *a = w->a;
    const Pool p = w->pool;
    p.loops->avg(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out);
}

int cpu_avg_pool2d(PoolArgs *a)
{
    parallel_for(a->planes, threads_for(a), avg_pool2d_plane, &(Planes){ a, pool_of(a) });
    return 0;
}

static void avg_pool2d_grad_plane(void *ctx, int64_t i)
{
    const Planes *w = ctx;
    const PoolArgs *a = w->a;
    const Pool p = w->pool;
    p.loops->avg_grad(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out);
}

int cpu_avg_pool2d_grad(PoolArgs *a)
{
    parallel_for(a->planes, threads_for(a), avg_pool2d_grad_plane, &(Planes){ a, pool_of(a) });
    return 0;
}
