/* conv.c - convolution and its transpose over one, two and three dimensions: one family; kind->rank is the
 * rank. */
#include <string.h>
#include "../module.h"

/* The list if it is given, else n in every direction. */
static void directions(int rank, int64_t n, const int64_t *list, int64_t *to)
{
    bool given = false;
    for (int d = 0; d < rank; d++) given |= list[d] != 0;
    for (int d = 0; d < rank; d++) to[d] = given ? list[d] : n;
}

static int check(const Module *m, int64_t in, int64_t out, int64_t groups, const int64_t *kernel)
{
    bool positive = in > 0 && out > 0;
    for (int d = 0; d < m->kind->rank; d++) positive &= kernel[d] > 0;
    if (!positive)
        return nn_refuse(m, "%lld channels in, %lld out, a kernel of size %lld: all must be positive",
                         (long long)in, (long long)out, (long long)kernel[0]);
    if (groups < 1 || in % groups || out % groups)
        return nn_refuse(m, "%lld groups do not divide %lld channels in and %lld out", (long long)groups,
                         (long long)in, (long long)out);
    return 0;
}

static void add_parameters(Module *m, int64_t rows, int64_t columns, const int64_t *kernel, int64_t bias,
                           TensorDtype dtype)
{
    int64_t dim[5] = { rows, columns };
    memcpy(dim + 2, kernel, (size_t)m->kind->rank * sizeof *dim);
    nn_new_parameter(m, "weight", (TensorShape){ 2 + m->kind->rank, dim }, dtype);
    if (bias) nn_new_parameter(m, "bias", SHAPE(bias), dtype);
    nn_init_default(m, bias != 0);
}

/* ---- convolution ----------------------------------------------------------------------------- */

const NNConvArgs nn_conv_defaults = { NN_CONV_DEFAULTS };
static const char *const padding_modes[] = { "zeros", "reflect", "replicate", "circular", NULL };
static const OpField conv_fields[] = {
    OP_REQUIRED(NNConvArgs, in_channels, out_channels),
    OP_OPTION(NNConvArgs, kernel_size, stride, padding, dilation, groups, bias),
    OP_CHOICE(NNConvArgs, padding_mode, padding_modes),
    OP_OPTION(NNConvArgs, dtype, kernel_sizes, strides, paddings, dilations),
    { 0 }
};

static int conv_init(Module *m, const void *args)
{
    const NNConvArgs *a = args;
    int64_t kernel[3], stride[3], padding[3];
    directions(m->kind->rank, a->kernel_size, a->kernel_sizes, kernel);
    directions(m->kind->rank, a->stride, a->strides, stride);
    directions(m->kind->rank, a->padding, a->paddings, padding);
    if (check(m, a->in_channels, a->out_channels, a->groups, kernel)) return -1;
    for (int d = 0; d < m->kind->rank; d++)
        if (padding[0] == TENSOR_SAME && stride[d] != 1)
            return nn_refuse(m, "padding that keeps the size needs stride 1, not %lld", (long long)stride[d]);
    add_parameters(m, a->out_channels, a->in_channels / a->groups, kernel, a->bias ? a->out_channels : 0,
                   a->dtype);
    return 0;
}

/* x padded as padding_mode says, so that the convolution itself pads no more. */
static Tensor *padded(const Module *m, const NNConvArgs *a, Tensor *x)
{
    int rank = m->kind->rank;
    int64_t pad[3], kernel[3], dilation[3], both[6];
    directions(rank, a->padding, a->paddings, pad);
    directions(rank, a->kernel_size, a->kernel_sizes, kernel);
    directions(rank, a->dilation, a->dilations, dilation);
    for (int d = 0; d < rank; d++) {
        int64_t same = dilation[d] * (kernel[d] - 1), before = pad[d] == TENSOR_SAME ? same / 2 : pad[d];
        both[2 * (rank - 1 - d)] = before;
        both[2 * (rank - 1 - d) + 1] = pad[d] == TENSOR_SAME ? same - before : pad[d];
    }
    return tensor_pad(x, ((TensorShape){ 2 * rank, both }), .mode = a->padding_mode);
}

#define SIZES(a) .stride = (a)->stride, .dilation = (a)->dilation, .groups = (a)->groups
#define COPY(to, a, what) memcpy((to).what, (a)->what, sizeof(to).what)

static Tensor *conv_forward(Module *self, Tensor *x)
{
    static Tensor *(*const run[])(TensorConvArgs) = { tensor_conv1d_args, tensor_conv2d_args,
                                                      tensor_conv3d_args };
    const NNConvArgs *a = self->args;
    TensorConvArgs c = {
        .weight = nn_param(self, 0), .bias = nn_param(self, 1), SIZES(a), TENSOR_FROM_DEFAULTS
    };
    COPY(c, a, strides), COPY(c, a, dilations);
    TensorScope scope = tensor_scope_open();
    if (a->padding_mode == TENSOR_PAD_CONSTANT) c.input = x, c.padding = a->padding, COPY(c, a, paddings);
    else c.input = padded(self, a, x);
    return tensor_scope_return(scope, run[self->kind->rank - 1](c));
}

/* ---- transposed ------------------------------------------------------------------------------ */

const NNConvTransposeArgs nn_conv_transpose_defaults = { NN_CONV_TRANSPOSE_DEFAULTS };
static const OpField conv_transpose_fields[] = {
    OP_REQUIRED(NNConvTransposeArgs, in_channels, out_channels),
    OP_OPTION(NNConvTransposeArgs, kernel_size, stride, padding, output_padding, groups, bias, dilation,
              dtype, kernel_sizes, strides, paddings, dilations, output_paddings),
    { 0 }
};

static int transpose_init(Module *m, const void *args)
{
    const NNConvTransposeArgs *a = args;
    int64_t kernel[3];
    directions(m->kind->rank, a->kernel_size, a->kernel_sizes, kernel);
    if (check(m, a->in_channels, a->out_channels, a->groups, kernel)) return -1;
    add_parameters(m, a->in_channels, a->out_channels / a->groups, kernel, a->bias ? a->out_channels : 0,
                   a->dtype);
    return 0;
}

/* The output padding that gives the result this size. */
static int padding_for(const Module *m, const NNConvTransposeArgs *a, const Tensor *x, TensorShape size,
                       int64_t *output_padding)
{
    const int rank = m->kind->rank, first = tensor_ndim(x) - rank;
    int64_t kernel[3], stride[3], pad[3], dilation[3];
    directions(rank, a->kernel_size, a->kernel_sizes, kernel),
        directions(rank, a->stride, a->strides, stride);
    directions(rank, a->padding, a->paddings, pad), directions(rank, a->dilation, a->dilations, dilation);
    if (size.ndim == tensor_ndim(x)) size.dim += first, size.ndim = rank;
    if (size.ndim != rank || first < 1 || first > 2 || !size.dim)
        return nn_refuse(m, "output_size of %d sizes for an input of rank %d: want %d", size.ndim,
                         tensor_ndim(x), rank);
    for (int d = 0; d < rank; d++) {
        const int64_t least =
            (tensor_size(x, first + d) - 1) * stride[d] - 2 * pad[d] + dilation[d] * (kernel[d] - 1) + 1;
        output_padding[d] = size.dim[d] - least;
        if (output_padding[d] < 0 || output_padding[d] >= stride[d])
            return nn_refuse(m, "output_size %lld of dimension %d: want %lld to %lld", (long long)size.dim[d],
                             first + d, (long long)least, (long long)(least + stride[d] - 1));
    }
    return 0;
}

static void transpose_call(Module *self, NNCall *call)
{
    static Tensor *(*const run[])(TensorConvTransposeArgs) = { tensor_conv_transpose1d_args,
                                                               tensor_conv_transpose2d_args,
                                                               tensor_conv_transpose3d_args };
    const NNConvTransposeArgs *a = self->args;
    TensorConvTransposeArgs c = { call->in[0],           nn_param(self, 0),
                                  nn_param(self, 1),     SIZES(a),
                                  .padding = a->padding, .output_padding = a->output_padding,
                                  TENSOR_FROM_DEFAULTS };
    COPY(c, a, strides), COPY(c, a, paddings), COPY(c, a, output_paddings), COPY(c, a, dilations);
    if (call->options) {
        c.output_padding = 0;
        if (padding_for(self, a, call->in[0], *(const TensorShape *)call->options, c.output_paddings)) return;
    }
    call->out[0] = run[self->kind->rank - 1](c);
}

Tensor *nn_conv_transpose_forward(Module *m, Tensor *x, TensorShape output_size)
{
    if (nn_null(m, __func__)) return NULL;
    if (m->call != transpose_call)
        return tensor_fail(TENSOR_EVALUE, __func__, "not of a module %s", m->type), NULL;
    NNCall c = { .in = { x }, .results = 1, .options = &output_size };
    nn_run(m, &c);
    return c.out[0];
}

/* ---- kinds ----------------------------------------------------------------------------------- */

#define CONV(name_, type, rank_, Args, set, how, run)                                         \
    static const NNKind name_##_kind = { .name = (type),                                      \
                                         .function = "nn_" #name_,                            \
                                         NN_OPTIONS(Args, nn_##set##_defaults, set##_fields), \
                                         .init = how##_init,                                  \
                                         .run = how##_##run,                                  \
                                         .inputs = 1,                                         \
                                         .rank = (rank_),                                     \
                                         .lazy_dim = -1 - (rank_) };                          \
    NN_REGISTER(name_##_kind);                                                                \
    Module *nn_##name_##_args(Args args) { return nn_make(&name_##_kind, &args); }
CONV(conv1d, "Conv1d", 1, NNConvArgs, conv, conv, forward)
CONV(conv2d, "Conv2d", 2, NNConvArgs, conv, conv, forward)
CONV(conv3d, "Conv3d", 3, NNConvArgs, conv, conv, forward)
CONV(conv_transpose1d, "ConvTranspose1d", 1, NNConvTransposeArgs, conv_transpose, transpose, call)
CONV(conv_transpose2d, "ConvTranspose2d", 2, NNConvTransposeArgs, conv_transpose, transpose, call)
CONV(conv_transpose3d, "ConvTranspose3d", 3, NNConvTransposeArgs, conv_transpose, transpose, call)
