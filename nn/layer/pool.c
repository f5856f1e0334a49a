/* pool.c - pooling over one, two and three dimensions: kind->rank is the rank.  The ops check the sizes. */
#include <string.h>
#include "../module.h"

/* The list if it is given, else n in every direction. */
static void directions(int rank, int64_t n, const int64_t *list, int64_t *to)
{
    bool given = false;
    for (int d = 0; d < rank; d++) given |= list[d] != 0;
    for (int d = 0; d < rank; d++) to[d] = given ? list[d] : n;
}

static int check_kernel(const Module *m, int64_t size, const int64_t *list)
{
    int64_t kernel[3];
    directions(m->kind->rank, size, list, kernel);
    for (int d = 0; d < m->kind->rank; d++)
        if (kernel[d] < 1) return nn_refuse(m, "a kernel of size %lld: want 1 or more", (long long)kernel[d]);
    return 0;
}

#define COPY(to, a, what) memcpy((to).what, (a)->what, sizeof(to).what)

/* ---- the largest ----------------------------------------------------------------------------- */

typedef struct MaxPool {
    Module base;
    Tensor *indices; /* of the last forward, when they are kept */
} MaxPool;

static void max_pool_destroy(Module *self) { tensor_release(((MaxPool *)self)->indices); }
static int max_pool_copied(Module *self) { return ((MaxPool *)self)->indices = NULL, 0; }

static void keep_indices(Module *self, Tensor *indices)
{
    MaxPool *p = (MaxPool *)self;
    tensor_retain(indices);
    tensor_release(p->indices);
    p->indices = indices;
}

Tensor *nn_indices(Module *m)
{
    if (nn_null(m, "nn_indices")) return NULL;
    if (!m->kind || m->kind->destroy != max_pool_destroy || !((MaxPool *)m)->indices)
        return tensor_fail(TENSOR_EVALUE, "nn_indices",
                           "%s has none: want a max pool with .return_indices, after its forward", m->type),
               NULL;
    return nn_borrow(((MaxPool *)m)->indices);
}

const NNMaxPoolArgs nn_max_pool_defaults = { NN_MAX_POOL_DEFAULTS };
static const OpField max_pool_fields[] = { OP_OPTION(NNMaxPoolArgs, kernel_size, stride, padding, dilation,
                                                     return_indices, ceil_mode, kernel_sizes, strides,
                                                     paddings, dilations),
                                           { 0 } };

static int max_pool_init(Module *m, const void *args)
{
    const NNMaxPoolArgs *a = args;
    return check_kernel(m, a->kernel_size, a->kernel_sizes);
}

#define SIZES(a)                                                                     \
    .kernel_size = (a)->kernel_size, .stride = (a)->stride, .padding = (a)->padding, \
    .ceil_mode = (a)->ceil_mode

static void max_pool_forward(Module *self, NNCall *c)
{
    static Tensor *(*const run[])(TensorMaxPoolArgs) = { tensor_max_pool1d_args, tensor_max_pool2d_args,
                                                         tensor_max_pool3d_args };
    const NNMaxPoolArgs *a = self->args;
    Tensor *indices = NULL;
    TensorMaxPoolArgs p = { .input = c->in[0], SIZES(a), .dilation = a->dilation, TENSOR_FROM_DEFAULTS };
    COPY(p, a, kernel_sizes), COPY(p, a, strides), COPY(p, a, paddings), COPY(p, a, dilations);
    if (a->return_indices) p.indices = &indices;
    c->out[0] = run[self->kind->rank - 1](p);
    if (c->out[0] && a->return_indices) keep_indices(self, c->out[1] = indices);
}

/* ---- the largest of random windows ----------------------------------------------------------- */

const NNFractionalMaxPoolArgs nn_fractional_max_pool_defaults = { NN_FRACTIONAL_MAX_POOL_DEFAULTS };
static const OpField fractional_fields[] = { OP_OPTION(NNFractionalMaxPoolArgs, kernel_size, output_size,
                                                       output_ratio, return_indices, output_ratios,
                                                       kernel_sizes),
                                             { 0 } };

/* Random samples of the caller's are a buffer, as in PyTorch. */
static int fractional_init(Module *m, const void *args)
{
    const NNFractionalMaxPoolArgs *a = args;
    bool given = false, inside = true;
    for (int d = 0; d < m->kind->rank; d++) given |= a->output_ratios[d] != 0;
    for (int d = 0; d < m->kind->rank; d++) {
        const double ratio = given ? a->output_ratios[d] : a->output_ratio;
        inside &= ratio > 0 && ratio < 1;
    }
    given |= a->output_ratio != 0;
    if ((a->output_size.ndim != 0) == given || (given && !inside))
        return nn_refuse(m, "want one of output_size and output_ratio, which is between 0 and 1");
    if (check_kernel(m, a->kernel_size, a->kernel_sizes)) return -1;
    return !a->random_samples || nn_register_buffer(m, "_random_samples", a->random_samples) ? 0 : -1;
}

static void fractional_forward(Module *self, NNCall *c)
{
    static Tensor *(*const run[])(TensorFractionalMaxPoolArgs) = { tensor_fractional_max_pool2d_args,
                                                                   tensor_fractional_max_pool3d_args };
    const NNFractionalMaxPoolArgs *a = self->args;
    Tensor *indices = NULL;
    TensorFractionalMaxPoolArgs p = { .input = c->in[0],
                                      .kernel_size = a->kernel_size,
                                      .output_size = a->output_size,
                                      .output_ratio = a->output_ratio,
                                      .random_samples = nn_buffer(self, 0) };
    COPY(p, a, output_ratios), COPY(p, a, kernel_sizes);
    if (a->return_indices) p.indices = &indices;
    c->out[0] = run[self->kind->rank - 2](p);
    if (c->out[0] && a->return_indices) keep_indices(self, c->out[1] = indices);
}

/* ---- the mean -------------------------------------------------------------------------------- */

const NNAvgPoolArgs nn_avg_pool_defaults = { NN_AVG_POOL_DEFAULTS };
static const OpField avg_pool_fields[] = { OP_OPTION(NNAvgPoolArgs, kernel_size, stride, padding, ceil_mode,
                                                     count_include_pad, divisor_override, kernel_sizes,
                                                     strides, paddings),
                                           { 0 } };

static int avg_pool_init(Module *m, const void *args)
{
    const NNAvgPoolArgs *a = args;
    if (m->kind->rank == 1 && a->divisor_override)
        return nn_refuse(m, "divisor_override %lld: pools over two and three dimensions take one",
                         (long long)a->divisor_override);
    return check_kernel(m, a->kernel_size, a->kernel_sizes);
}

static Tensor *avg_pool_forward(Module *self, Tensor *x)
{
    static Tensor *(*const run[])(TensorAvgPoolArgs) = { tensor_avg_pool1d_args, tensor_avg_pool2d_args,
                                                         tensor_avg_pool3d_args };
    const NNAvgPoolArgs *a = self->args;
    TensorAvgPoolArgs p = { .input = x,
                            SIZES(a),
                            .count_include_pad = a->count_include_pad,
                            .divisor_override = a->divisor_override,
                            TENSOR_FROM_DEFAULTS };
    COPY(p, a, kernel_sizes), COPY(p, a, strides), COPY(p, a, paddings);
    return run[self->kind->rank - 1](p);
}

/* ---- adaptive -------------------------------------------------------------------------------- */

const NNAdaptiveMaxPoolArgs nn_adaptive_max_pool_defaults = { NN_ADAPTIVE_MAX_POOL_DEFAULTS };
static const OpField adaptive_fields[] = { OP_REQUIRED(NNAdaptiveMaxPoolArgs, size),
                                           OP_OPTION(NNAdaptiveMaxPoolArgs, return_indices),
                                           { 0 } };

static int adaptive_init(Module *m, const void *args)
{
    const int64_t *size = ((const NNAdaptiveMaxPoolArgs *)args)->size;
    for (int d = 0; d < m->kind->rank; d++)
        if (size[d] < 0 && size[d] != TENSOR_KEEP)
            return nn_refuse(m, "to a size of %lld: want 0 or more, or TENSOR_KEEP", (long long)size[d]);
    for (int d = m->kind->rank; d < 3; d++)
        if (size[d]) return nn_refuse(m, "more sizes than the %d of its rank", m->kind->rank);
    return 0;
}

static Tensor *adaptive_avg_forward(Module *self, Tensor *x)
{
    static Tensor *(*const run[])(Tensor *, TensorShape) = { tensor_adaptive_avg_pool1d,
                                                             tensor_adaptive_avg_pool2d,
                                                             tensor_adaptive_avg_pool3d };
    const int rank = self->kind->rank;
    return run[rank - 1](x, (TensorShape){ rank, ((const NNAdaptiveMaxPoolArgs *)self->args)->size });
}

static void adaptive_max_forward(Module *self, NNCall *c)
{
    static Tensor *(*const run[])(TensorAdaptiveMaxPoolArgs) = { tensor_adaptive_max_pool1d_args,
                                                                 tensor_adaptive_max_pool2d_args,
                                                                 tensor_adaptive_max_pool3d_args };
    const NNAdaptiveMaxPoolArgs *a = self->args;
    const int rank = self->kind->rank;
    Tensor *indices = NULL;
    TensorAdaptiveMaxPoolArgs p = { .input = c->in[0], .output_size = { rank, a->size } };
    if (a->return_indices) p.indices = &indices;
    c->out[0] = run[rank - 1](p);
    if (c->out[0] && a->return_indices) keep_indices(self, c->out[1] = indices);
}

/* ---- power means ----------------------------------------------------------------------------- */

const NNLpPoolArgs nn_lp_pool_defaults = { NN_LP_POOL_DEFAULTS };
static const OpField lp_fields[] = { OP_REQUIRED(NNLpPoolArgs, norm_type),
                                     OP_OPTION(NNLpPoolArgs, kernel_size, stride, ceil_mode, kernel_sizes,
                                               strides),
                                     { 0 } };

static int lp_init(Module *m, const void *args)
{
    const NNLpPoolArgs *a = args;
    if (a->norm_type == 0) return nn_refuse(m, "norm_type 0: want another power");
    return check_kernel(m, a->kernel_size, a->kernel_sizes);
}

static Tensor *lp_forward(Module *self, Tensor *x)
{
    const NNLpPoolArgs *a = self->args;
    TensorLpPoolArgs p = { .input = x,
                           .norm_type = a->norm_type,
                           .kernel_size = a->kernel_size,
                           .stride = a->stride,
                           .ceil_mode = a->ceil_mode };
    COPY(p, a, kernel_sizes), COPY(p, a, strides);
    static Tensor *(*const run[])(TensorLpPoolArgs) = { tensor_lp_pool1d_args, tensor_lp_pool2d_args,
                                                        tensor_lp_pool3d_args };
    return run[self->kind->rank - 1](p);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

#define POOL(name_, type, rank_, Args, defaults, fields, how, ...)           \
    static const NNKind name_##_kind = { .name = (type),                     \
                                         .function = "nn_" #name_,           \
                                         NN_OPTIONS(Args, defaults, fields), \
                                         .init = how##_init,                 \
                                         .rank = (rank_),                    \
                                         __VA_ARGS__ };                      \
    NN_REGISTER(name_##_kind);
#define POOL_ARGS(name, type, rank, Args, defaults, fields, how, ...) \
    POOL(name, type, rank, Args, defaults, fields, how, __VA_ARGS__)  \
    Module *nn_##name##_args(Args args) { return nn_make(&name##_kind, &args); }
#define EXPAND(macro, ...) macro(__VA_ARGS__)
#define KEEPS(forward)                                                                    \
    .call = (forward), .inputs = 1, .size = sizeof(MaxPool), .destroy = max_pool_destroy, \
    .copied = max_pool_copied
POOL_ARGS(max_pool1d, "MaxPool1d", 1, NNMaxPoolArgs, nn_max_pool_defaults, max_pool_fields, max_pool,
          KEEPS(max_pool_forward))
POOL_ARGS(max_pool2d, "MaxPool2d", 2, NNMaxPoolArgs, nn_max_pool_defaults, max_pool_fields, max_pool,
          KEEPS(max_pool_forward))
POOL_ARGS(max_pool3d, "MaxPool3d", 3, NNMaxPoolArgs, nn_max_pool_defaults, max_pool_fields, max_pool,
          KEEPS(max_pool_forward))
#define FRACTIONAL NNFractionalMaxPoolArgs, nn_fractional_max_pool_defaults, fractional_fields, fractional
EXPAND(POOL_ARGS, fractional_max_pool2d, "FractionalMaxPool2d", 2, FRACTIONAL, KEEPS(fractional_forward))
EXPAND(POOL_ARGS, fractional_max_pool3d, "FractionalMaxPool3d", 3, FRACTIONAL, KEEPS(fractional_forward))
POOL_ARGS(avg_pool1d, "AvgPool1d", 1, NNAvgPoolArgs, nn_avg_pool_defaults, avg_pool_fields, avg_pool,
          .forward = avg_pool_forward)
POOL_ARGS(avg_pool2d, "AvgPool2d", 2, NNAvgPoolArgs, nn_avg_pool_defaults, avg_pool_fields, avg_pool,
          .forward = avg_pool_forward)
POOL_ARGS(avg_pool3d, "AvgPool3d", 3, NNAvgPoolArgs, nn_avg_pool_defaults, avg_pool_fields, avg_pool,
          .forward = avg_pool_forward)
POOL_ARGS(lp_pool1d, "LPPool1d", 1, NNLpPoolArgs, nn_lp_pool_defaults, lp_fields, lp, .forward = lp_forward)
POOL_ARGS(lp_pool2d, "LPPool2d", 2, NNLpPoolArgs, nn_lp_pool_defaults, lp_fields, lp, .forward = lp_forward)
POOL_ARGS(lp_pool3d, "LPPool3d", 3, NNLpPoolArgs, nn_lp_pool_defaults, lp_fields, lp, .forward = lp_forward)

#define adaptive_max_init adaptive_init
#define adaptive_avg_init adaptive_init
#define ADAPTIVE NNAdaptiveMaxPoolArgs, nn_adaptive_max_pool_defaults, adaptive_fields
#define ADAPTIVE_MAX(name, type, rank) \
    EXPAND(POOL_ARGS, name, type, rank, ADAPTIVE, adaptive_max, KEEPS(adaptive_max_forward))
ADAPTIVE_MAX(adaptive_max_pool1d, "AdaptiveMaxPool1d", 1)
ADAPTIVE_MAX(adaptive_max_pool2d, "AdaptiveMaxPool2d", 2)
ADAPTIVE_MAX(adaptive_max_pool3d, "AdaptiveMaxPool3d", 3)
EXPAND(POOL, adaptive_avg_pool1d, "AdaptiveAvgPool1d", 1, ADAPTIVE, adaptive_avg,
       .forward = adaptive_avg_forward)
EXPAND(POOL, adaptive_avg_pool2d, "AdaptiveAvgPool2d", 2, ADAPTIVE, adaptive_avg,
       .forward = adaptive_avg_forward)
EXPAND(POOL, adaptive_avg_pool3d, "AdaptiveAvgPool3d", 3, ADAPTIVE, adaptive_avg,
       .forward = adaptive_avg_forward)

Module *nn_adaptive_avg_pool1d(int64_t length)
{
    return nn_make(&adaptive_avg_pool1d_kind, &(NNAdaptiveMaxPoolArgs){ .size = { length } });
}
Module *nn_adaptive_avg_pool2d(int64_t height, int64_t width)
{
    return nn_make(&adaptive_avg_pool2d_kind, &(NNAdaptiveMaxPoolArgs){ .size = { height, width } });
}
Module *nn_adaptive_avg_pool3d(int64_t depth, int64_t height, int64_t width)
{
    return nn_make(&adaptive_avg_pool3d_kind, &(NNAdaptiveMaxPoolArgs){ .size = { depth, height, width } });
}
