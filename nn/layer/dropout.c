/* dropout.c - dropout of elements, of channels, and that for selu. */
#include "../module.h"

const NNDropoutArgs nn_dropout_defaults = { NN_DROPOUT_DEFAULTS };
static const OpField fields[] = { OP_OPTION(NNDropoutArgs, p), { 0 } };

static int init(Module *m, const void *args)
{
    double p = ((const NNDropoutArgs *)args)->p;
    return p >= 0 && p <= 1 ? 0 : nn_refuse(m, "p = %g is no probability", p);
}

/* Of channels there is no op in place. */
#define tensor_dropout1d_(x, p, training) tensor_copy_(x, tensor_dropout1d(x, p, training))
#define tensor_dropout2d_(x, p, training) tensor_copy_(x, tensor_dropout2d(x, p, training))
#define tensor_dropout3d_(x, p, training) tensor_copy_(x, tensor_dropout3d(x, p, training))

#define DROPOUT(name_, type)                                                                     \
    static Tensor *name_##_forward(Module *self, Tensor *x)                                      \
    {                                                                                            \
        const NNDropoutArgs *a = self->args;                                                     \
        return a->inplace ? tensor_##name_##_(x, a->p, self->training)                           \
                          : tensor_##name_(x, a->p, self->training);                             \
    }                                                                                            \
    static const NNKind name_##_kind = { .name = (type),                                         \
                                         .function = "nn_" #name_,                               \
                                         NN_OPTIONS(NNDropoutArgs, nn_dropout_defaults, fields), \
                                         .init = init,                                           \
                                         .forward = name_##_forward };                           \
    NN_REGISTER(name_##_kind);                                                                   \
    Module *nn_##name_##_args(NNDropoutArgs args) { return nn_make(&name_##_kind, &args); }
DROPOUT(dropout, "Dropout")
DROPOUT(dropout1d, "Dropout1d")
DROPOUT(dropout2d, "Dropout2d")
DROPOUT(dropout3d, "Dropout3d")
DROPOUT(alpha_dropout, "AlphaDropout")
DROPOUT(feature_alpha_dropout, "FeatureAlphaDropout")
