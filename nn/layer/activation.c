/* activation.c - layers that apply one elementwise op, or softmax: a line of the table each. */
#include "../module.h"

/* KIND - a kind without parameters: its forward is an expression of x and of its options *a. */
#define KIND(name_, type_, Args, options, expression)                                \
    static Tensor *name_##_forward(Module *self, Tensor *x)                          \
    {                                                                                \
        const Args *a = self->args;                                                  \
        (void)a;                                                                     \
        return expression;                                                           \
    }                                                                                \
    static const NNKind name_##_kind = { .name = (type_),                            \
                                         .function = "nn_" #name_,                   \
                                         UNPACK options.forward = name_##_forward }; \
    NN_REGISTER(name_##_kind);
#define UNPACK(...) __VA_ARGS__

/* MAYBE_ - the op, or its twin in place. */
#define MAYBE_(name, ...) (a->inplace ? tensor_##name##_(__VA_ARGS__) : tensor_##name(__VA_ARGS__))

/* ---- of the element alone -------------------------------------------------------------------- */

#define PLAIN(name, type)                        \
    KIND(name, type, void, (), tensor_##name(x)) \
    Module *nn_##name(void) { return nn_make(&name##_kind, NULL); }
PLAIN(tanh, "Tanh")
PLAIN(sigmoid, "Sigmoid")
PLAIN(logsigmoid, "LogSigmoid")
PLAIN(softsign, "Softsign")
PLAIN(tanhshrink, "Tanhshrink")

const NNInplaceArgs nn_inplace_defaults = { NN_INPLACE_DEFAULTS };
#define MAYBE_INPLACE(name, type)                                                             \
    KIND(name, type, NNInplaceArgs, (NN_OPTIONS(NNInplaceArgs, nn_inplace_defaults, NULL), ), \
         MAYBE_(name, x))                                                                     \
    Module *nn_##name##_args(NNInplaceArgs args) { return nn_make(&name##_kind, &args); }     \
    Module *(nn_##name)(void) { return nn_make(&name##_kind, NULL); }
MAYBE_INPLACE(relu, "ReLU")
MAYBE_INPLACE(relu6, "ReLU6")
MAYBE_INPLACE(silu, "SiLU")
MAYBE_INPLACE(mish, "Mish")
MAYBE_INPLACE(selu, "SELU")
MAYBE_INPLACE(hardsigmoid, "Hardsigmoid")
MAYBE_INPLACE(hardswish, "Hardswish")

/* ---- with options ---------------------------------------------------------------------------- */

const NNLeakyReluArgs nn_leaky_relu_defaults = { NN_LEAKY_RELU_DEFAULTS };
const NNEluArgs nn_elu_defaults = { NN_ELU_DEFAULTS };
const NNSoftplusArgs nn_softplus_defaults = { NN_SOFTPLUS_DEFAULTS };
const NNShrinkArgs nn_shrink_defaults = { NN_SHRINK_DEFAULTS };
const NNHardtanhArgs nn_hardtanh_defaults = { NN_HARDTANH_DEFAULTS };
const NNRreluArgs nn_rrelu_defaults = { NN_RRELU_DEFAULTS };
const NNGeluArgs nn_gelu_defaults = { NN_GELU_DEFAULTS };
const NNGluArgs nn_glu_defaults = { NN_GLU_DEFAULTS };

static const char *const approximations[] = { "none", "tanh", NULL };
static const OpField leaky_relu_fields[] = { OP_OPTION(NNLeakyReluArgs, negative_slope), { 0 } };
static const OpField elu_fields[] = { OP_OPTION(NNEluArgs, alpha), { 0 } };
static const OpField softplus_fields[] = { OP_OPTION(NNSoftplusArgs, beta, threshold), { 0 } };
static const OpField shrink_fields[] = { OP_OPTION(NNShrinkArgs, lambd), { 0 } };
static const OpField hardtanh_fields[] = { OP_OPTION(NNHardtanhArgs, min_val, max_val), { 0 } };
static const OpField rrelu_fields[] = { OP_OPTION(NNRreluArgs, lower, upper), { 0 } };
static const OpField gelu_fields[] = { OP_CHOICE(NNGeluArgs, approximate, approximations), { 0 } };
static const OpField glu_fields[] = { OP_OPTION(NNGluArgs, dim), { 0 } };

#define WITH(name, type, Args, set, expression)                                                 \
    KIND(name, type, Args, (NN_OPTIONS(Args, nn_##set##_defaults, set##_fields), ), expression) \
    Module *nn_##name##_args(Args args) { return nn_make(&name##_kind, &args); }
WITH(leaky_relu, "LeakyReLU", NNLeakyReluArgs, leaky_relu, MAYBE_(leaky_relu, x, a->negative_slope))
WITH(elu, "ELU", NNEluArgs, elu, MAYBE_(elu, x, a->alpha))
WITH(celu, "CELU", NNEluArgs, elu, MAYBE_(celu, x, a->alpha))
WITH(softplus, "Softplus", NNSoftplusArgs, softplus, tensor_softplus(x, a->beta, a->threshold))
WITH(softshrink, "Softshrink", NNShrinkArgs, shrink, tensor_softshrink(x, a->lambd))
WITH(hardshrink, "Hardshrink", NNShrinkArgs, shrink, tensor_hardshrink(x, a->lambd))
static int ordered(Module *self, const void *args)
{
    const NNHardtanhArgs *a = args;
    if (!(a->min_val >= a->max_val)) return 0; /* NaN, too, as PyTorch */
    return tensor_fail(TENSOR_EVALUE, self->kind->function, "min_val %g, max_val %g: want min_val < max_val",
                       a->min_val, a->max_val);
}
KIND(hardtanh, "Hardtanh", NNHardtanhArgs,
     (NN_OPTIONS(NNHardtanhArgs, nn_hardtanh_defaults, hardtanh_fields), .init = ordered, ),
     MAYBE_(hardtanh, x, a->min_val, a->max_val))
Module *nn_hardtanh_args(NNHardtanhArgs args) { return nn_make(&hardtanh_kind, &args); }
WITH(rrelu, "RReLU", NNRreluArgs, rrelu,
     MAYBE_(rrelu, x, .lower = a->lower, .upper = a->upper, .training = self->training))
WITH(gelu, "GELU", NNGeluArgs, gelu, tensor_gelu(x, .approximate = a->approximate))
WITH(glu, "GLU", NNGluArgs, glu, tensor_glu(x, a->dim))

/* ---- with required arguments ----------------------------------------------------------------- */

const NNThresholdArgs nn_threshold_defaults = { NN_THRESHOLD_DEFAULTS };
static const OpField threshold_fields[] = { OP_REQUIRED(NNThresholdArgs, threshold, value), { 0 } };
WITH(threshold, "Threshold", NNThresholdArgs, threshold, MAYBE_(threshold, x, a->threshold, a->value))
Module *(nn_threshold)(double threshold, double value)
{
    return nn_threshold_args((NNThresholdArgs){ threshold, value, false });
}

typedef struct DimArgs {
    int dim;
} DimArgs;
static const DimArgs dim_defaults;
static const OpField dim_fields[] = { OP_REQUIRED(DimArgs, dim), { 0 } };
#define ALONG(name, type, expression)                                                        \
    KIND(name, type, DimArgs, (NN_OPTIONS(DimArgs, dim_defaults, dim_fields), ), expression) \
    Module *nn_##name(int dim) { return nn_make(&name##_kind, &(DimArgs){ dim }); }
ALONG(softmax, "Softmax", tensor_softmax(x, a->dim))
ALONG(softmin, "Softmin", tensor_softmax(tensor_neg(x), a->dim))
ALONG(log_softmax, "LogSoftmax", tensor_log_softmax(x, a->dim))

static Tensor *over_channels(Tensor *x)
{
    int rank = tensor_ndim(x);
    if (rank == 3 || rank == 4) return tensor_softmax(x, -3);
    return tensor_fail(TENSOR_ESHAPE, "nn_softmax2d", "an input of rank %d: want [N, C, h, w] or [C, h, w]",
                       rank),
           NULL;
}
KIND(softmax2d, "Softmax2d", void, (), over_channels(x))
Module *nn_softmax2d(void) { return nn_make(&softmax2d_kind, NULL); }

/* ---- prelu: its slope is a parameter --------------------------------------------------------- */

const NNPreluArgs nn_prelu_defaults = { NN_PRELU_DEFAULTS };
static const OpField prelu_fields[] = { OP_OPTION(NNPreluArgs, num_parameters, init, dtype), { 0 } };

static int prelu_init(Module *m, const void *args)
{
    const NNPreluArgs *a = args;
    if (a->num_parameters < 1)
        return nn_refuse(m, "%lld parameters: want 1 or more", (long long)a->num_parameters);
    nn_new_parameter(m, "weight", SHAPE(a->num_parameters), a->dtype);
    nn_init_fill(m, 0, a->init);
    return 0;
}

KIND(prelu, "PReLU", NNPreluArgs,
     (NN_OPTIONS(NNPreluArgs, nn_prelu_defaults, prelu_fields), .init = prelu_init, ),
     tensor_prelu(x, nn_param(self, 0)))
Module *nn_prelu_args(NNPreluArgs args) { return nn_make(&prelu_kind, &args); }

/* ---- those that a product applies ------------------------------------------------------------- */

int nn_activation(const Module *m)
{
    if (m->kind == &relu_kind && m->forward == relu_forward) return TENSOR_ACT_RELU;
    if (m->kind != &gelu_kind || m->forward != gelu_forward) return -1;
    return ((const NNGeluArgs *)m->args)->approximate == TENSOR_GELU_TANH ? TENSOR_ACT_GELU_TANH
                                                                          : TENSOR_ACT_GELU;
}
