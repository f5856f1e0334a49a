/* pixel_shuffle.c - channels to pixels and back.
 *
 *   pixel_shuffle    [..., C r^2, H, W] -> [..., C, H r, W r]:
 *                    y[c, h r + i, w r + j] = x[c r^2 + i r + j, h, w]
 *   pixel_unshuffle  the inverse
 *   channel_shuffle  channels [g, C / g] -> [C / g, g] */
#include "op/shape/shape_op.h"

typedef struct ShuffleParams {
    int64_t upscale_factor;
} ShuffleParams;

typedef struct UnshuffleParams {
    int64_t downscale_factor;
} UnshuffleParams;

/* y in the shape of the result, and never in the memory of the input: where nothing moves, reshape would
 * share it. */
static int finish(OpCall *c, Tensor *y, TensorShape shape)
{
    Tensor *result = tensor_reshape(y, shape);
    if (result && result->storage == op_input(c, 0)->storage) result = tensor_clone(result);
    return op_set_result(c, 0, result);
}

static int check(OpCall *c, int64_t r)
{
    Tensor *x = op_input(c, 0);
    if (r < 1 || r > INT32_MAX)
        return op_fail(c, TENSOR_EVALUE, "a factor of %lld: want 1 or more", (long long)r);
    if (x->ndim < 3 || x->ndim > TENSOR_MAX_DIMS - 2)
        return op_fail(c, TENSOR_ESHAPE, "%s: want [..., channels, height, width]", S(x));
    return 0;
}

/* x as shape of n more sizes than its leading dims, permuted, as its result's shape. */
static int rearranged(OpCall *c, const int64_t apart[5], const int order[5], const int64_t result[3])
{
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS], dims[TENSOR_MAX_DIMS], to[TENSOR_MAX_DIMS];
    int lead = x->ndim - 3;
    for (int d = 0; d < lead; d++) shape[d] = to[d] = x->shape[d], dims[d] = d;
    for (int i = 0; i < 5; i++) shape[lead + i] = apart[i], dims[lead + i] = lead + order[i];
    for (int i = 0; i < 3; i++) to[lead + i] = result[i];
    Tensor *y =
        tensor_permute(tensor_reshape(x, (TensorShape){ lead + 5, shape }), (TensorShape){ lead + 5, dims });
    return finish(c, y, (TensorShape){ lead + 3, to });
}

static int shuffle_compose(OpCall *c)
{
    int64_t r = ((const ShuffleParams *)op_params(c))->upscale_factor;
    if (check(c, r)) return -1;
    Tensor *x = op_input(c, 0);
    const int64_t *s = x->shape + x->ndim - 3;
    if (s[0] % (r * r))
        return op_fail(c, TENSOR_ESHAPE, "%lld channels of %s: want a multiple of %lld", (long long)s[0],
                       S(x), (long long)(r * r));
    return rearranged(c, (int64_t[]){ s[0] / (r * r), r, r, s[1], s[2] }, (int[]){ 0, 3, 1, 4, 2 },
                      (int64_t[]){ s[0] / (r * r), s[1] * r, s[2] * r });
}

static int unshuffle_compose(OpCall *c)
{
    int64_t r = ((const UnshuffleParams *)op_params(c))->downscale_factor;
    if (check(c, r)) return -1;
    Tensor *x = op_input(c, 0);
    const int64_t *s = x->shape + x->ndim - 3;
    if (s[1] % r || s[2] % r)
        return op_fail(c, TENSOR_ESHAPE, "%s: want height and width to be multiples of %lld", S(x),
                       (long long)r);
    return rearranged(c, (int64_t[]){ s[0], s[1] / r, r, s[2] / r, r }, (int[]){ 0, 2, 4, 1, 3 },
                      (int64_t[]){ s[0] * r * r, s[1] / r, s[2] / r });
}

static const OpField shuffle_fields[] = { OP_REQUIRED(ShuffleParams, upscale_factor), { 0 } };
static const OpField unshuffle_fields[] = { OP_REQUIRED(UnshuffleParams, downscale_factor), { 0 } };
static const TensorOp op_pixel_shuffle = { .name = "pixel_shuffle",
                                           .autocast = AUTOCAST_AS_IS,
                                           .summary = "[..., C r^2, H, W] to [..., C, H r, W r]",
                                           .gradient = "dx = pixel_unshuffle(g)",
                                           .arity = 1,
                                           PARAMS_GIVEN(ShuffleParams, shuffle_fields),
                                           .compose = shuffle_compose,
                                           .flags = OP_ANY_DEVICE,
                                           .torch = "nn.functional.pixel_shuffle",
                                           .samples = "2x8x2x3 {upscale_factor=2}; 9x1x2 {upscale_factor=3}; "
                                                      "0x4x2x2 {upscale_factor=2}; 2x3x3 {upscale_factor=1}",
                                           .errors =
                                               "3x2x2 {upscale_factor=2} ! ESHAPE; 4x4 {upscale_factor=2} ! "
                                               "ESHAPE; 4x2x2 {upscale_factor=0} ! EVALUE" };
static const TensorOp op_pixel_unshuffle = {
    .name = "pixel_unshuffle",
    .autocast = AUTOCAST_AS_IS,
    .summary = "[..., C, H r, W r] to [..., C r^2, H, W]",
    .gradient = "dx = pixel_shuffle(g)",
    .arity = 1,
    PARAMS_GIVEN(UnshuffleParams, unshuffle_fields),
    .compose = unshuffle_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.pixel_unshuffle",
    .samples = "2x2x4x6 {downscale_factor=2}; 1x3x6 {downscale_factor=3}",
    .errors = "1x3x4 {downscale_factor=2} ! ESHAPE; 4x4 {downscale_factor=2} ! ESHAPE; 1x2x2 "
              "{downscale_factor=-1} ! EVALUE"
};
REGISTER_OPS(&op_pixel_shuffle, &op_pixel_unshuffle);

Tensor *tensor_pixel_shuffle(Tensor *x, int upscale_factor)
{
    return APPLY(&op_pixel_shuffle, &((ShuffleParams){ upscale_factor }), x);
}
Tensor *tensor_pixel_unshuffle(Tensor *x, int downscale_factor)
{
    return APPLY(&op_pixel_unshuffle, &((UnshuffleParams){ downscale_factor }), x);
}

/* ---- channel_shuffle ------------------------------------------------------------------------- */

typedef struct GroupParams {
    int64_t groups;
} GroupParams;

static int channels_compose(OpCall *c)
{
    const GroupParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (x->ndim < 3) return op_fail(c, TENSOR_ESHAPE, "%s: want [N, C, ...], three dimensions or more", S(x));
    if (p->groups < 1) return op_fail(c, TENSOR_EVALUE, "%lld groups: want 1 or more", (long long)p->groups);
    if (x->shape[1] % p->groups)
        return op_fail(c, TENSOR_ESHAPE, "%lld groups of the channels of %s: want a divisor",
                       (long long)p->groups, S(x));
    int64_t rest = 1;
    for (int d = 2; d < x->ndim; d++) rest *= x->shape[d];
    Tensor *split = tensor_reshape(x, SHAPE(x->shape[0], p->groups, x->shape[1] / p->groups, rest));
    return finish(c, tensor_transpose(split, 1, 2), shape_of(x));
}

static const OpField group_fields[] = { OP_REQUIRED(GroupParams, groups), { 0 } };
static const TensorOp op_channel_shuffle = {
    .name = "channel_shuffle",
    .autocast = AUTOCAST_AS_IS,
    .summary = "channels [g, C/g] as [C/g, g]: one of each group after the other",
    .arity = 1,
    .gradient = "dx = channel_shuffle(dy, C/g)",
    PARAMS_GIVEN(GroupParams, group_fields),
    .compose = channels_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "2x6x3 {groups=2}; 1x4x2x2 {groups=4}; 2x4x0 {groups=2}; 2x3x1x1x2 {groups=1}",
    .errors = "2x4 {groups=2} ! ESHAPE; 2x4x2 {groups=3} ! ESHAPE; 2x4x2 {groups=0} ! EVALUE"
};
REGISTER_OPS(&op_channel_shuffle);

Tensor *tensor_channel_shuffle(Tensor *x, int64_t groups)
{
    return APPLY(&op_channel_shuffle, &((GroupParams){ groups }), x);
}
