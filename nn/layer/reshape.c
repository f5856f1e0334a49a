/* reshape.c - layers that change the shape: flatten, unflatten, shuffles, padding. */
#include "../module.h"

#define KIND(name_, type_, Args, defaults_, fields_, init_, expression)        \
    static Tensor *name_##_forward(Module *self, Tensor *x)                    \
    {                                                                          \
        const Args *a = self->args;                                            \
        return expression;                                                     \
    }                                                                          \
    static const NNKind name_##_kind = { .name = (type_),                      \
                                         .function = "nn_" #name_,             \
                                         NN_OPTIONS(Args, defaults_, fields_), \
                                         .init = (init_),                      \
                                         .forward = name_##_forward };         \
    NN_REGISTER(name_##_kind);

const NNFlattenArgs nn_flatten_defaults = { NN_FLATTEN_DEFAULTS };
static const OpField flatten_fields[] = { OP_OPTION(NNFlattenArgs, start_dim, end_dim), { 0 } };
KIND(flatten, "Flatten", NNFlattenArgs, nn_flatten_defaults, flatten_fields, NULL,
     tensor_flatten(x, a->start_dim, a->end_dim))
Module *nn_flatten_args(NNFlattenArgs args) { return nn_make(&flatten_kind, &args); }

typedef struct UnflattenArgs {
    int dim;
    TensorShape unflattened_size;
} UnflattenArgs;
static const UnflattenArgs unflatten_defaults;
static const OpField unflatten_fields[] = { OP_REQUIRED(UnflattenArgs, dim, unflattened_size), { 0 } };
KIND(unflatten, "Unflatten", UnflattenArgs, unflatten_defaults, unflatten_fields, NULL,
     tensor_unflatten(x, a->dim, a->unflattened_size))
Module *nn_unflatten(int dim, TensorShape sizes)
{
    return nn_make(&unflatten_kind, &(UnflattenArgs){ dim, sizes });
}

/* ---- shuffles: one count of 1 or more -------------------------------------------------------- */

typedef union CountArgs {
    int64_t upscale_factor, downscale_factor, groups;
} CountArgs;
static const CountArgs count_defaults;

static int init_count(Module *m, const void *args)
{
    int64_t n = ((const CountArgs *)args)->groups;
    return n >= 1 && n <= INT32_MAX ? 0 : nn_refuse(m, "%lld: want 1 or more", (long long)n);
}

#define SHUFFLE(name, type, Number, option)                                           \
    static const OpField name##_fields[] = { OP_REQUIRED(CountArgs, option), { 0 } }; \
    KIND(name, type, CountArgs, count_defaults, name##_fields, init_count,            \
         tensor_##name(x, (Number)a->option))                                         \
    Module *nn_##name(Number option) { return nn_make(&name##_kind, &(CountArgs){ .option = option }); }
SHUFFLE(pixel_shuffle, "PixelShuffle", int, upscale_factor)
SHUFFLE(pixel_unshuffle, "PixelUnshuffle", int, downscale_factor)
SHUFFLE(channel_shuffle, "ChannelShuffle", int64_t, groups)

/* ---- images ---------------------------------------------------------------------------------- */

const NNPadArgs nn_pad_defaults = { NN_PAD_DEFAULTS };
static const char *const pad_modes[] = { "constant", "reflect", "replicate", "circular", NULL };
static const OpField pad_fields[] = {
    OP_REQUIRED(NNPadArgs, padding), OP_CHOICE(NNPadArgs, mode, pad_modes), OP_OPTION(NNPadArgs, value), { 0 }
};
KIND(pad, "Pad", NNPadArgs, nn_pad_defaults, pad_fields, NULL,
     tensor_pad(x, a->padding, .mode = a->mode, .value = a->value))
Module *nn_pad_args(NNPadArgs args) { return nn_make(&pad_kind, &args); }
