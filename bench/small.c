/* small.c - what a call costs: chains of ops on four numbers, the profiler, optimizers and clipping over
 * lists of parameters, single ops on many elements. */
#include <stdlib.h>
#include "cases.h"
#include <tapegrad.h>

static Tensor *x, *b, *one;

static void chain_setup(const char *sizes)
{
    (void)sizes;
    x = tensor_retain(tensor_requires_grad_(tensor_randn(SHAPE(4), TENSOR_F32), true));
    b = tensor_retain(tensor_requires_grad_(tensor_randn(SHAPE(4), TENSOR_F32), true));
    one = tensor_retain(tensor_ones(SHAPE(4), TENSOR_F32));
}

static Tensor *chain(void)
{
    Tensor *y = x;
    for (int i = 0; i < 10; i++) y = tensor_relu(tensor_add(y, b));
    return y;
}

static void chain_forward(void)
{
    TensorScope scope = tensor_scope_open();
    chain();
    tensor_scope_close(scope);
}

static void chain_backward(void)
{
    TensorScope scope = tensor_scope_open();
    tensor_backward(chain(), one);
    tensor_scope_close(scope);
}

/* As one graph, so long that its launch counts little. */
static void long_chain(void)
{
    for (int i = 0; i < 10; i++) chain_forward();
}

/* What the profiler costs an op: where it was never used, is off again, is on. */
enum { PROFILED_CHAINS = 50 };
static void many_chains(void)
{
    for (int i = 0; i < PROFILED_CHAINS; i++) chain_forward();
}

static void profiled_setup(const char *sizes)
{
    chain_setup(sizes);
    tensor_profile_begin();
    many_chains();
    tensor_profile_end();
}

static void profiled_chains(void)
{
    tensor_profile_begin();
    many_chains();
    tensor_profile_end();
}

/* ---- lists of parameters --------------------------------------------------------------------- */

/* adamw_150: so many parameters of 10^6 elements in all. */
enum { MOST = 10000 };
static Tensor *parameter[MOST];
static TensorList parameters;
static Optimizer *opt;

static void parameters_setup(const char *sizes)
{
    const int n = atoi(sizes);
    if (n < 1 || n > MOST) abort();
    for (int i = 0; i < n; i++) {
        Tensor *p = tensor_requires_grad_(tensor_randn(SHAPE(1000000 / n), TENSOR_F32), true);
        parameter[i] = tensor_retain(p);
        tensor_set_grad(p, tensor_randn(SHAPE(1000000 / n), TENSOR_F32));
    }
    parameters = TENSOR_LIST(parameter, n);
    opt = optim_adamw(parameters, .lr = 1e-3);
}
static void step_block(void) { optim_step(opt); }

/* A norm that is never above: what most steps of a run pay.  The other one scales. */
static void clip(double most)
{
    TensorScope scope = tensor_scope_open();
    nn_clip_grad_norm_(parameters, most);
    tensor_scope_close(scope);
}
static void clip_block(void) { clip(1e9); }
static void clip_and_scale_block(void) { clip(1e-3); }

/* ---- single ops on many elements, forward ---------------------------------------------------- */

static void long_vector(const char *sizes)
{
    (void)sizes, x = tensor_retain(tensor_rand(SHAPE(100000), TENSOR_F32));
}
static void long_matrix(const char *sizes)
{
    (void)sizes, x = tensor_retain(tensor_rand(SHAPE(100, 100, 100), TENSOR_F32));
}

#define OP_BLOCK(name, call)                     \
    static void name(void)                       \
    {                                            \
        TensorScope scope = tensor_scope_open(); \
        call;                                    \
        tensor_scope_close(scope);               \
    }
OP_BLOCK(sum_middle_block, tensor_sum(x, 1))
OP_BLOCK(cumsum_block, tensor_cumsum(x, 0))
OP_BLOCK(sort_block, tensor_sort(x, 0))
OP_BLOCK(lgamma_block, tensor_lgamma(x))

const BenchCase bench_small[] = {
    { "chain20_forward", chain_setup, chain_forward, 20 },
    { "chain20_both", chain_setup, chain_backward, 20 },
    { "chain200_forward", chain_setup, long_chain, 200 },
    { "profiler_never", chain_setup, many_chains, 20 * PROFILED_CHAINS },
    { "profiler_off_again", profiled_setup, many_chains, 20 * PROFILED_CHAINS },
    { "profiler_on", chain_setup, profiled_chains, 20 * PROFILED_CHAINS },
    { "adamw_", parameters_setup, step_block, 1 },
    { "clip_norm_scaling_", parameters_setup, clip_and_scale_block, 1 },
    { "clip_norm_", parameters_setup, clip_block, 1 },
    { "sum_middle_100x100x100", long_matrix, sum_middle_block, 1 },
    { "cumsum_100k", long_vector, cumsum_block, 1 },
    { "sort_100k", long_vector, sort_block, 1 },
    { "lgamma_100k", long_vector, lgamma_block, 1 },
    { 0 },
};
