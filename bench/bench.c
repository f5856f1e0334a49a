/* bench.c - our side of the benchmarks: bench CASE SECONDS prints the median time of a block, in nanoseconds
 * per op or per step. bench/side_by_side.py runs it in turn with PyTorch. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tapegrad.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- cases: each runs one block of `per` units ----------------------------------------------- */

static Tensor *x, *b, *one, *batch, *labels;
static Module *net;
static Optimizer *opt;

static void chain_setup(void)
{
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

/* What the profiler costs an op: where it was never used, is off again, is on. */
enum { PROFILED_CHAINS = 50 };
static void many_chains(void)
{
    for (int i = 0; i < PROFILED_CHAINS; i++) chain_forward();
}

static void profiled_setup(void)
{
    chain_setup();
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

static void mlp_setup(void)
{
    net = nn_sequential(nn_linear(784, 256), nn_relu(), nn_linear(256, 128), nn_relu(), nn_linear(128, 10));
    opt = optim_sgd(nn_parameters(net), .lr = 0.01);
    batch = tensor_retain(tensor_rand(SHAPE(64, 784), TENSOR_F32));
    labels = tensor_retain(tensor_randint(0, 10, SHAPE(64)));
}

static void train_step(void)
{
    TensorScope scope = tensor_scope_open();
    optim_zero_grad(opt);
    tensor_backward(tensor_cross_entropy(nn_forward(net, batch), labels));
    optim_step(opt);
    tensor_scope_close(scope);
}

static void cnn_setup(void)
{
    net = nn_sequential(nn_conv2d(1, 32, 3), nn_relu(), nn_conv2d(32, 64, 3), nn_relu(), nn_max_pool2d(2),
                        nn_dropout(0.25), nn_flatten(), nn_linear(9216, 128), nn_relu(), nn_dropout(0.5),
                        nn_linear(128, 10));
    opt = optim_adam(nn_parameters(net), .lr = 1e-3);
    batch = tensor_retain(tensor_rand(SHAPE(64, 1, 28, 28), TENSOR_F32));
    labels = tensor_retain(tensor_randint(0, 10, SHAPE(64)));
}

/* n parameters of 10^6 elements in all. */
enum { MOST = 10000 };
static Tensor *parameter[MOST];
static TensorList parameters;

static void parameters_setup(int n)
{
    for (int i = 0; i < n; i++) {
        Tensor *p = tensor_requires_grad_(tensor_randn(SHAPE(1000000 / n), TENSOR_F32), true);
        parameter[i] = tensor_retain(p);
        tensor_set_grad(p, tensor_randn(SHAPE(1000000 / n), TENSOR_F32));
    }
    parameters = TENSOR_LIST(parameter, n);
    opt = optim_adamw(parameters, .lr = 1e-3);
}
static void parameters_1(void) { parameters_setup(1); }
static void parameters_150(void) { parameters_setup(150); }
static void parameters_10000(void) { parameters_setup(10000); }
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

/* Single ops on many elements, forward: where others are faster too. */
static void long_vector(void) { x = tensor_retain(tensor_rand(SHAPE(100000), TENSOR_F32)); }
static void long_matrix(void) { x = tensor_retain(tensor_rand(SHAPE(100, 100, 100), TENSOR_F32)); }

#define OP_BLOCK(name, call)                     \
    static void name(void)                       \
    {                                            \
        TensorScope scope = tensor_scope_open(); \
        call;                                    \
        tensor_scope_close(scope);               \
    }
OP_BLOCK(add_block, tensor_add(x, x))
OP_BLOCK(exp_block, tensor_exp(x))
OP_BLOCK(sum_middle_block, tensor_sum(x, 1))
OP_BLOCK(cumsum_block, tensor_cumsum(x, 0))
OP_BLOCK(sort_block, tensor_sort(x, 0))
OP_BLOCK(lgamma_block, tensor_lgamma(x))

static const struct {
    const char *name;
    void (*setup)(void), (*block)(void);
    double per;
} cases[] = {
    { "chain20_forward", chain_setup, chain_forward, 20 },
    { "chain20_forward_backward", chain_setup, chain_backward, 20 },
    { "profiler_never", chain_setup, many_chains, 20 * PROFILED_CHAINS },
    { "profiler_off_again", profiled_setup, many_chains, 20 * PROFILED_CHAINS },
    { "profiler_on", chain_setup, profiled_chains, 20 * PROFILED_CHAINS },
    { "mlp_sgd_b64", mlp_setup, train_step, 1 },
    { "mnist_cnn_adam_b64", cnn_setup, train_step, 1 },
    { "adamw_1", parameters_1, step_block, 1 },
    { "adamw_150", parameters_150, step_block, 1 },
    { "adamw_10000", parameters_10000, step_block, 1 },
    { "clip_norm_150", parameters_150, clip_block, 1 },
    { "clip_norm_scaling_150", parameters_150, clip_and_scale_block, 1 },
    { "clip_norm_10000", parameters_10000, clip_block, 1 },
    { "add_100k", long_vector, add_block, 1 },
    { "exp_100k", long_vector, exp_block, 1 },
    { "sum_middle_100x100x100", long_matrix, sum_middle_block, 1 },
    { "cumsum_100k", long_vector, cumsum_block, 1 },
    { "sort_100k", long_vector, sort_block, 1 },
    { "lgamma_100k", long_vector, lgamma_block, 1 },
};

static int ascending(const void *p, const void *q)
{
    double a = *(const double *)p, c = *(const double *)q;
    return (a > c) - (a < c);
}

int main(int argc, char **argv)
{
    enum { BLOCKS = 9 };
    double median[BLOCKS], budget = argc > 2 ? atof(argv[2]) : 1;
    if (argc > 3) tensor_set_num_threads(atoi(argv[3]));
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0) continue;
        tensor_manual_seed(0);
        cases[i].setup();
        for (int k = 0; k < 5; k++) cases[i].block();
        double t = now();
        cases[i].block();
        long n = (long)(budget / BLOCKS / (now() - t + 1e-9)) + 1;
        for (int k = 0; k < BLOCKS; k++) {
            t = now();
            for (long j = 0; j < n; j++) cases[i].block();
            median[k] = (now() - t) / (double)n / cases[i].per * 1e9;
        }
        qsort(median, BLOCKS, sizeof *median, ascending);
        if (tensor_error()) return fprintf(stderr, "%s\n", tensor_error()), 1;
        printf("%.2f\n", median[BLOCKS / 2]);
        return 0;
    }
    fprintf(stderr, "usage: bench CASE SECONDS [THREADS]\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) fprintf(stderr, "    %s\n", cases[i].name);
    return 2;
}
