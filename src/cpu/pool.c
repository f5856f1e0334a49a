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

int cpu_max_pool2d(PoolArgs *a)
{
    const Pool p = pool_of(a);
#pragma omp parallel for num_threads(threads_for(a)) schedule(static)
    for (int64_t i = 0; i < a->planes; i++)
        p.loops->max(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out, a->index + i * a->oh * a->ow);
    return 0;
}

int cpu_max_pool2d_grad(PoolArgs *a)
{
    const Pool p = pool_of(a);
#pragma omp parallel for num_threads(threads_for(a)) schedule(static)
    for (int64_t i = 0; i < a->planes; i++)
        p.loops->max_grad(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out, a->index + i * a->oh * a->ow);
    return 0;
}

int cpu_avg_pool2d(PoolArgs *a)
{
    const Pool p = pool_of(a);
#pragma omp parallel for num_threads(threads_for(a)) schedule(static)
    for (int64_t i = 0; i < a->planes; i++) p.loops->avg(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out);
    return 0;
}

int cpu_avg_pool2d_grad(PoolArgs *a)
{
    const Pool p = pool_of(a);
#pragma omp parallel for num_threads(threads_for(a)) schedule(static)
    for (int64_t i = 0; i < a->planes; i++) p.loops->avg_grad(a, (char *)a->x + i * p.in, (char *)a->y + i * p.out);
    return 0;
}
