/* interpolate.c - resizes images.
 *
 *   resample      y = M x along each of the last dimensions; M [out, in] has few weights a row; dx = M^T dy
 *   interpolate   sizes, scales and modes as in PyTorch; area is adaptive_avg_pool
 *
 * resample with `transposed` is M^T, which gathers as well: resample_table makes tables of both, and kernels
 * get only weights. */
#include <math.h>
#include "cpu/image/resample_taps.h"
#include "op/shape/shape_op.h"
#include "pool.h"

const TensorInterpolateArgs tensor_interpolate_defaults = { TENSOR_INTERPOLATE_DEFAULTS };

typedef struct ResampleParams {
    TensorShape size;        /* of the result's last dimensions */
    double scale_factors[3]; /* that positions are computed with; 0: the sizes' own */
    TensorInterpolation mode;
    bool align_corners, antialias, transposed;
} ResampleParams;

/* ---- resample -------------------------------------------------------------------------------- */

static int shape(OpCall *c)
{
    const ResampleParams *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    int64_t dim[5];
    if (x->ndim < 3 || x->ndim > 5 || p->size.ndim != x->ndim - 2)
        return op_fail(c, TENSOR_ESHAPE, "%s to %s: want [batch, channels, ...] with as many more sizes",
                       S(x), shape_text(p->size));
    if (p->mode == TENSOR_AREA) return op_fail(c, TENSOR_EVALUE, "mode area is made of adaptive_avg_pool");
    for (int i = 0; i < x->ndim; i++) {
        dim[i] = i < 2 ? x->shape[i] : p->size.dim[i - 2];
        if (i < 2 || (x->shape[i] > 0 && dim[i] > 0)) continue;
        return op_fail(c, TENSOR_ESHAPE, "%s to %s: want sizes of 1 and more", S(x), shape_text(p->size));
    }
    return op_set_output(c, 0, (TensorShape){ x->ndim, dim }, (TensorDtype)x->dtype);
}

static ResampleWeights weights_of(TensorInterpolation mode)
{
    if (mode == TENSOR_NEAREST) return RESAMPLE_NEAREST;
    if (mode == TENSOR_NEAREST_EXACT) return RESAMPLE_NEAREST_EXACT;
    return mode == TENSOR_BICUBIC ? RESAMPLE_CUBIC : RESAMPLE_LINEAR;
}

/* The kernel's view of a line, or of its transpose: a table where y lies, with weights of its dtype, in
 * memory of the open scope; none if it is a copy. */
static int axis_of(OpCall *c, const ResampleLine *line, bool transposed, const Tensor *y, ResampleAxis *to)
{
    *to = (ResampleAxis){ .in = transposed ? line->out : line->in, .out = transposed ? line->in : line->out };
    if (resample_is_copy(line)) return 0;
    const int64_t taps = resample_most_taps(line), n = line->out * taps;
    to->taps = transposed || line->antialias ? 0 : taps;
    Tensor *start = own(new_tensor(SHAPE(to->out + 1), TENSOR_I64, y->place)),
           *index = own(new_tensor(SHAPE(n), TENSOR_I64, y->place)),
           *weight = own(new_tensor(SHAPE(n), y->dtype, y->place));
    if (!start || !index || !weight) return -1;
    to->start = start->data, to->index = index->data, to->weight = weight->data;
    ResampleTableArgs args = { .line = *line,
                               .dtype = y->dtype,
                               .transposed = transposed,
                               .taps = taps,
                               .start = start->data,
                               .index = index->data,
                               .weight = weight->data };
    return RUN_KERNEL(c->name, y->place, resample_table, &args);
}

static int forward(OpCall *c)
{
    const ResampleParams *p = op_params(c);
    Tensor *x = DENSE_FOR(resample, op_input(c, 0)), *out = op_output(c, 0), *y = TARGET_FOR(resample, out);
    if (!x || !y) return -1;
    const int spatial = x->ndim - 2;
    ResampleArgs args = {
        .dtype = y->dtype, .planes = x->shape[0] * x->shape[1], .x = x->data, .y = y->data
    };
    for (int i = 0; i < WINDOW_RANK - spatial; i++) args.axis[i] = (ResampleAxis){ .in = 1, .out = 1 };
    for (int d = 0; d < spatial; d++) {
        const ResampleLine line = { .weights = weights_of(p->mode),
                                    .spatial = spatial,
                                    .align_corners = p->align_corners,
                                    .antialias = p->antialias,
                                    .in = p->transposed ? p->size.dim[d] : x->shape[2 + d],
                                    .out = p->transposed ? x->shape[2 + d] : p->size.dim[d],
                                    .scale = p->scale_factors[d] };
        if (axis_of(c, &line, p->transposed, y, &args.axis[WINDOW_RANK - spatial + d])) return -1;
    }
    return RUN_KERNEL(c->name, x->place, resample, &args) ? -1 : pool_deliver(out, y);
}

static const TensorOp op_resample;

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    ResampleParams p = *(const ResampleParams *)op_params(c);
    const TensorShape x = op_input_shape(c, 0);
    p.transposed = !p.transposed;
    p.size.dim = x.dim + 2;
    dx[0] = APPLY(&op_resample, &p, dy);
    return dx[0] ? 0 : -1;
}

static const char *const modes[] = { "nearest",   "nearest-exact", "linear", "bilinear",
                                     "trilinear", "bicubic",       "area",   NULL };
static const OpField fields[] = { OP_REQUIRED(ResampleParams, size),
                                  OP_OPTION(ResampleParams, scale_factors),
                                  OP_CHOICE(ResampleParams, mode, modes),
                                  OP_OPTION(ResampleParams, align_corners, antialias, transposed),
                                  { 0 } };
static const TensorOp op_resample = {
    .name = "resample",
    .autocast = AUTOCAST_AS_IS,
    .summary = "M x along each of the last dimensions, for interpolate's weights M of a mode and sizes; "
               "transposed: M^T x",
    .gradient = "dx = M^T g along each",
    .arity = 1,
    PARAMS_GIVEN(ResampleParams, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "-",
    .samples = "2x3x4 {size=[7] mode=linear}; 1x2x3x5 {size=[5 2] mode=bilinear align_corners=1}; 1x2x3x5 "
               "{size=[5 2] mode=bicubic antialias=1}; 1x2x5x3 {size=[2 6] mode=bilinear transposed=1}; "
               "1x1x2x3x2 {size=[3 3 5] mode=trilinear}; 0x2x3 {size=[2] mode=linear}; 1x2x7 {size=[3] "
               "transposed=1}",
    .errors = "2x3x4 {size=[7 2]} ! ESHAPE; 2x3 {size=[]} ! ESHAPE; 2x3x4 {size=[0]} ! ESHAPE; 2x3x0 "
              "{size=[2]} ! ESHAPE; 2x3x4 {size=[2] mode=area} ! EVALUE",
};
REGISTER_OPS(&op_resample);

/* ---- interpolate ----------------------------------------------------------------------------- */

static int check_mode(OpCall *c, const TensorInterpolateArgs *p, const Tensor *x)
{
    static const int dims[] = { 0, 0, 1, 2, 3, 2, 0 };
    const char *name = modes[p->mode];
    const int want = dims[p->mode];
    if (x->ndim < 3 || x->ndim > 5 || (want && x->ndim != want + 2))
        return op_fail(c, TENSOR_ESHAPE, "%s by %s: want [batch, channels] and %s%d more dimensions", S(x),
                       name, want ? "" : "1 to ", want ? want : 3);
    if (p->align_corners && want == 0)
        return op_fail(c, TENSOR_EVALUE,
                       "align_corners with mode %s: for linear, bilinear, trilinear, bicubic", name);
    if (p->antialias && want != 2)
        return op_fail(c, TENSOR_EVALUE, "antialias with mode %s: for bilinear, bicubic", name);
    return 0;
}

/* The scales given, by direction: 0 for none.  Their number, 0 or that of the directions, or -1. */
static int scales_of(OpCall *c, const TensorInterpolateArgs *p, const Tensor *x, double scale[3])
{
    const int n = x->ndim - 2;
    int given = 3;
    while (given > 0 && p->scale_factors[given - 1] == 0) given--;
    if (given && p->scale_factor != 0)
        return op_fail(c, TENSOR_EVALUE, "both scale_factor and scale_factors: want one of them");
    if (given && given != n)
        return op_fail(c, TENSOR_EVALUE, "scale_factors of %d number%s for %s: want %d", given,
                       given == 1 ? "" : "s", S(x), n);
    for (int i = 0; i < 3; i++) scale[i] = given ? p->scale_factors[i] : p->scale_factor;
    return given || p->scale_factor != 0 ? n : 0;
}

/* Sizes, and the scales that positions are computed with. */
static int check_sizes(OpCall *c, const TensorInterpolateArgs *p, const Tensor *x, int64_t size[3],
                       double scale[3])
{
    const int n = x->ndim - 2, scaled = scales_of(c, p, x, scale);
    Sizes asked;
    if (scaled < 0) return -1;
    if ((p->size.ndim > 0) == (scaled > 0))
        return op_fail(c, TENSOR_EVALUE, "%s of size and scale_factor: want one of them",
                       scaled ? "both" : "neither");
    if (p->size.ndim && p->recompute_scale_factor)
        return op_fail(c, TENSOR_EVALUE, "recompute_scale_factor with a size");
    if (!scaled && window_list(c, "size", p->size, n, 0, &asked)) return -1;
    for (int i = 0; i < n; i++) {
        const double wide = floor((double)x->shape[2 + i] * scale[i]);
        if (scaled && !(scale[i] > 0 && wide <= LINE_LIMIT))
            return op_fail(c, TENSOR_EVALUE, "%s by scale_factor %g: want a positive one, and sizes up to %d",
                           S(x), scale[i], LINE_LIMIT);
        size[i] = scaled ? (int64_t)wide : asked.at[WINDOW_RANK - n + i];
        if (p->recompute_scale_factor) scale[i] = 0;
        if (x->shape[2 + i] > 0 && size[i] > 0) continue;
        return op_fail(c, TENSOR_ESHAPE, "%s to %lld in dimension %d: want sizes of 1 and more", S(x),
                       (long long)size[i], 2 + i);
    }
    return 0;
}

static int compose(OpCall *c)
{
    const TensorInterpolateArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t size[3];
    ResampleParams r = { .mode = p->mode, .align_corners = p->align_corners, .antialias = p->antialias };
    if (check_mode(c, p, x) || check_sizes(c, p, x, size, r.scale_factors)) return -1;
    r.size = (TensorShape){ x->ndim - 2, size };
    if (p->mode != TENSOR_AREA) return op_set_result(c, 0, APPLY(&op_resample, &r, x));
    return op_set_result(c, 0,
                         x->ndim == 3   ? tensor_adaptive_avg_pool1d(x, r.size)
                         : x->ndim == 4 ? tensor_adaptive_avg_pool2d(x, r.size)
                                        : tensor_adaptive_avg_pool3d(x, r.size));
}

static const OpField interpolate_fields[] = { OP_OPTION(TensorInterpolateArgs, size, scale_factor),
                                              OP_CHOICE(TensorInterpolateArgs, mode, modes),
                                              OP_OPTION(TensorInterpolateArgs, align_corners,
                                                        recompute_scale_factor, antialias, scale_factors),
                                              { 0 } };
static const TensorOp op_interpolate = {
    .name = "interpolate",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "images of another size: nearest, linear, cubic or area means",
    .gradient = "dx = M^T g, for y = M x along each dimension",
    .arity = 1,
    PARAMS(TensorInterpolateArgs, tensor_interpolate_defaults, interpolate_fields),
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.interpolate",
    .samples =
        "2x3x4 {size=[7]}; 1x2x3x4 {scale_factor=2}; 1x1x2x3x2 {size=[3] mode=nearest-exact}; 2x1x4 "
        "{scale_factor=1.7 mode=linear}; 1x2x3x4 {size=[5 2] mode=bilinear}; 1x2x3x4 {scale_factors=[.6 2.3] "
        "mode=bilinear}; 1x2x3x4 {size=[5 6] mode=bilinear align_corners=1}; 1x1x2x3x2 {scale_factor=1.6 "
        "mode=trilinear}; 1x2x3x4 {size=[5 6] mode=bicubic}; 1x2x5x4 {scale_factor=1.3 mode=bicubic "
        "recompute_scale_factor=1}; 1x1x7x6 {size=[3 4] mode=bilinear antialias=1}; 1x1x7x6 {size=[9 2] "
        "mode=bicubic antialias=1}; 1x2x5x4 {size=[3 2] mode=area}; 0x2x3x3 {size=[5] mode=bilinear}",
    .errors =
        "2x3x4 {} ! EVALUE; 2x3x4 {size=[7] scale_factor=2} ! EVALUE; 2x3x4 {size=[7] mode=bilinear} ! "
        "ESHAPE; 2x3x4x4 {size=[7] mode=linear} ! ESHAPE; 2x3x4x4 {size=[7] mode=trilinear} ! ESHAPE; 3x4 "
        "{size=[7]} ! ESHAPE; 2x3x4 {size=[7] align_corners=1} ! EVALUE; 2x3x4 {size=[7] mode=area "
        "align_corners=1} ! EVALUE; 2x3x4 {size=[7] mode=linear antialias=1} ! EVALUE; 2x3x4 {size=[7 7]} ! "
        "EVALUE; 2x3x4 {size=[0]} ! ESHAPE; 2x3x4 {scale_factor=0.1} ! ESHAPE; 2x3x4 {scale_factor=-1} ! "
        "EVALUE; 2x3x4 {size=[5] recompute_scale_factor=1} ! EVALUE; 2x3x0 {size=[3]} ! ESHAPE; 2x3x4 "
        "{size=[7] mode=7} ! EVALUE; 2x3x4x4 {scale_factors=[2 0 1]} ! EVALUE; 2x3x4x4 {scale_factors=[2 2 "
        "2]} ! EVALUE; 2x3x4 {scale_factors=[2 2]} ! EVALUE; 2x3x4@i64 {size=[7]} ! EDTYPE; 2x3x4 "
        "{scale_factor=2 scale_factors=[2]} ! EVALUE; 2x3x4x4 {scale_factors=[2]} ! EVALUE",
};
REGISTER_OPS(&op_interpolate);

Tensor *tensor_interpolate_args(TensorInterpolateArgs a) { return APPLY(&op_interpolate, &a, a.input); }
