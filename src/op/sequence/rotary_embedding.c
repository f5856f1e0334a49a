/* rotary_embedding.c - pairs of columns turned by angles.
 *
 *   (a, b) -> (a cos - b sin, a sin + b cos)           da = ga cos + gb sin,  db = gb cos - ga sin
 *
 * The first R columns of x [..., T, E], for cos and sin [..., T, R / 2], are [a b], or with interleaved a and
 * b in turn. */
#include "op/elementwise/dropout.h"

const TensorRotaryArgs tensor_rotary_defaults = { TENSOR_ROTARY_DEFAULTS };

static int shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *cosine = op_input(c, 1), *sine = op_input(c, 2);
    int64_t pairs[TENSOR_MAX_DIMS], both[TENSOR_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) pairs[i] = x->shape[i];
    if (x->ndim && cosine->ndim) pairs[x->ndim - 1] = cosine->shape[cosine->ndim - 1];
    const TensorShape halves = { x->ndim, pairs };
    const bool fits = x->ndim && cosine->ndim && shape_equal(shape_of(cosine), shape_of(sine)) &&
                      2 * pairs[x->ndim - 1] <= x->shape[x->ndim - 1];
    const int n = fits ? shape_broadcast(halves, shape_of(cosine), both) : -1;
    if (n >= 0 && shape_equal(halves, (TensorShape){ n, both })) return 0;
    return op_fail(
        c, TENSOR_ESHAPE,
        "input %s, cos %s, sin %s: want [..., T, E], and [..., T, R / 2] with R <= E that broadcast to it",
        S(x), S(cosine), S(sine));
}

static int compose(OpCall *c)
{
    const bool interleaved = ((const TensorRotaryArgs *)op_params(c))->interleaved;
    Tensor *x = op_input(c, 0), *wide = wide_float(x), *cosine = wide_float(op_input(c, 1)),
           *sine = wide_float(op_input(c, 2));
    if (!wide || !cosine || !sine) return -1;
    const int64_t half = cosine->shape[cosine->ndim - 1], width = x->shape[x->ndim - 1],
                  rest = width - 2 * half;
    Tensor *part[2] = { wide, NULL }, *pair[2];
    if (rest && tensor_split_sizes(wide, SHAPE(2 * half, rest), -1, part) < 0) return -1;
    Tensor *turned = tensor_unflatten(part[0], -1, interleaved ? SHAPE(half, 2) : SHAPE(2, half));
    const int dim = interleaved ? -1 : -2;
    if (!turned || tensor_unbind(turned, dim, pair, 2) < 0) return -1;
    Tensor *first = tensor_sub(tensor_mul(pair[0], cosine), tensor_mul(pair[1], sine));
    Tensor *second = tensor_add(tensor_mul(pair[0], sine), tensor_mul(pair[1], cosine));
    Tensor *y = tensor_flatten(tensor_stack(TENSORS(first, second), dim), -2, -1);
    if (rest) y = tensor_cat(TENSORS(y, part[1]), -1);
    return op_set_result(c, 0, y ? tensor_to(y, (TensorDtype)x->dtype) : NULL);
}

static const OpField fields[] = { OP_OPTION(TensorRotaryArgs, interleaved), { 0 } };

const TensorOp op_rotary_embedding = {
    .name = "rotary_embedding",
    .autocast = AUTOCAST_AS_IS,
    .summary = "pairs of columns (a, b) turned: (a cos - b sin, a sin + b cos)",
    .arity = 3,
    .gradient = "da = ga cos + gb sin, db = gb cos - ga sin; dcos = a ga + b gb, dsin = a gb - b ga",
    PARAMS(TensorRotaryArgs, tensor_rotary_defaults, fields),
    .shape = shape,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "onnx.ops.rotary_embedding",
    .samples =
        "3x4,3x2,3x2; 3x4,3x2,3x2 {interleaved=1}; 2x2x3x6,3x2,3x2; 2x3x5,3x2,3x2 {interleaved=1}; 4,2,2; "
        "2x3x4,2x1x2,2x1x2; 0x4,0x2,0x2; 3x2,0,0",
    .errors = "3x4,3x3,3x3 ! ESHAPE; 3x4,3x2,3x1 ! ESHAPE; 3x4,2x2,2x2 ! ESHAPE; ,2,2 ! ESHAPE; 3x4,,  ! "
              "ESHAPE; 3x4@i64,3x2,3x2 ! EDTYPE; 3x4,2x3x2,2x3x2 ! ESHAPE",
};
REGISTER_OPS(&op_rotary_embedding);

Tensor *tensor_rotary_embedding_args(TensorRotaryArgs a)
{
    return APPLY(&op_rotary_embedding, &a, a.input, a.cos, a.sin);
}
