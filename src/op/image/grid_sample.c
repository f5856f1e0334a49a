/* grid_sample.c - samples an image at given positions.
 *
 *   tap_sum     y[n, c, p] = sum_k w[n, k, p] x[n, c, index[n, k, p]], nothing where the index is outside
 *   tap_spread  dx of it,  tap_dot  dw of it: linear in x and in w, so each one's gradients are the others
 *   grid_sample indices and weights from the grid by elementwise ops, then tap_sum: gradients of any order
 *   affine_grid y = base theta^T, base the homogeneous positions of all pixels */
#include <math.h>
#include "op/shape/shape_op.h"
#include "pool.h"

const TensorGridSampleArgs tensor_grid_sample_defaults = { TENSOR_GRID_SAMPLE_DEFAULTS };

/* ---- sums at positions ----------------------------------------------------------------------- */

typedef struct TapParams {
    int64_t size;
} TapParams; /* of x's last dimension, for tap_spread */

static int check_taps(OpCall *c, const Tensor *a, const Tensor *index, const Tensor *b)
{
    if (index->dtype != TENSOR_I64)
        return op_fail(c, TENSOR_EDTYPE, "indices of %s: want i64",
                       tensor_dtype_name((TensorDtype)index->dtype));
    if (a->ndim == 3 && index->ndim == 3 && b->ndim == 3 && a->shape[0] == index->shape[0] &&
        b->shape[0] == index->shape[0])
        return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s, indices %s, %s: want three dimensions and one batch size", S(a),
                   S(index), S(b));
}

static int check_weight(OpCall *c, const Tensor *index, const Tensor *w)
{
    if (shape_equal(shape_of(index), shape_of(w))) return 0;
    return op_fail(c, TENSOR_ESHAPE, "indices %s, weights %s: want equal shapes", S(index), S(w));
}

static int check_points(OpCall *c, const Tensor *y, const Tensor *index)
{
    if (y->shape[2] == index->shape[2]) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s, indices %s: want as many points", S(y), S(index));
}

/* Inputs (x, index, w), (y, index, w) and (y, index, x). */
static int sum_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *index = op_input(c, 1), *w = op_input(c, 2);
    if (check_taps(c, x, index, w) || check_weight(c, index, w)) return -1;
    return op_set_output(c, 0, SHAPE(x->shape[0], x->shape[1], index->shape[2]), (TensorDtype)x->dtype);
}

static int spread_shape(OpCall *c)
{
    const Tensor *y = op_input(c, 0), *index = op_input(c, 1), *w = op_input(c, 2);
    if (check_taps(c, y, index, w) || check_weight(c, index, w) || check_points(c, y, index)) return -1;
    return op_set_output(c, 0, SHAPE(y->shape[0], y->shape[1], ((const TapParams *)op_params(c))->size),
                         (TensorDtype)y->dtype);
}

static int dot_shape(OpCall *c)
{
    const Tensor *y = op_input(c, 0), *index = op_input(c, 1), *x = op_input(c, 2);
    if (check_taps(c, y, index, x) || check_points(c, y, index)) return -1;
    if (y->shape[1] != x->shape[1])
        return op_fail(c, TENSOR_ESHAPE, "%s, %s: want as many channels", S(y), S(x));
    return op_set_output(c, 0, shape_of(index), (TensorDtype)y->dtype);
}

static int run(OpCall *c, int kind)
{
    Tensor *a = DENSE_FOR(taps, op_input(c, 0)), *index = own(raw_contiguous(op_input(c, 1))),
           *b = DENSE_FOR(taps, op_input(c, 2));
    Tensor *out = op_output(c, 0), *result = TARGET_FOR(taps, out);
    if (!a || !index || !b || !result) return -1;
    Tensor *x = kind == TAPS_SUM      ? a
                : kind == TAPS_SPREAD ? result
                                      : b,
           *y = kind == TAPS_SUM ? result : a, *w = kind == TAPS_DOT ? result : b;
    TapsArgs args = { .kind = kind,
                      .dtype = result->dtype,
                      .batch = x->shape[0],
                      .channels = x->shape[1],
                      .size = x->shape[2],
                      .taps = index->shape[1],
                      .points = index->shape[2],
                      .index = index->data,
                      .x = x->data,
                      .weight = w->data,
                      .y = y->data };
    return RUN_KERNEL(c->name, result->place, taps, &args) ? -1 : pool_deliver(out, result);
}
static int sum_forward(OpCall *c) { return run(c, TAPS_SUM); }
static int spread_forward(OpCall *c) { return run(c, TAPS_SPREAD); }
static int dot_forward(OpCall *c) { return run(c, TAPS_DOT); }

static const TensorOp op_tap_sum, op_tap_spread, op_tap_dot;

static Tensor *spread(Tensor *y, Tensor *index, Tensor *w, int64_t size)
{
    return y && w ? APPLY(&op_tap_spread, &((TapParams){ size }), y, index, w) : NULL;
}
static Tensor *sum(Tensor *x, Tensor *index, Tensor *w)
{
    return x && w ? APPLY(&op_tap_sum, NULL, x, index, w) : NULL;
}
static Tensor *dot(Tensor *y, Tensor *index, Tensor *x)
{
    return y && x ? APPLY(&op_tap_dot, NULL, y, index, x) : NULL;
}

static int done(const OpCall *c, Tensor **dx)
{
    return (op_wants(c, 0) && !dx[0]) || (op_wants(c, 2) && !dx[2]) ? -1 : 0;
}

static int sum_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    Tensor *index = op_saved(c, 1);
    if (op_wants(c, 0)) dx[0] = spread(g, index, op_saved(c, 2), op_input_shape(c, 0).dim[2]);
    if (op_wants(c, 2)) dx[2] = dot(g, index, op_saved(c, 0));
    return done(c, dx);
}

static int spread_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    Tensor *index = op_saved(c, 1);
    if (op_wants(c, 0)) dx[0] = sum(g, index, op_saved(c, 2));
    if (op_wants(c, 2)) dx[2] = dot(op_saved(c, 0), index, g);
    return done(c, dx);
}

static int dot_backward(OpCall *c, Tensor *g, Tensor **dx)
{
    Tensor *index = op_saved(c, 1);
    if (op_wants(c, 0)) dx[0] = sum(op_saved(c, 2), index, g);
    if (op_wants(c, 2)) dx[2] = spread(op_saved(c, 0), index, g, op_input_shape(c, 2).dim[2]);
    return done(c, dx);
}

static const OpField spread_fields[] = { OP_REQUIRED(TapParams, size), { 0 } };
#define TAPS                                                                                     \
    .arity = 3, .keep_for = { KEEP_INPUT(1) | KEEP_INPUT(2), 0, KEEP_INPUT(0) | KEEP_INPUT(1) }, \
    .no_grad_inputs = KEEP_INPUT(1), .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_SAME_DTYPE, .torch = "-"
static const TensorOp op_tap_sum = {
    .name = "tap_sum",
    .autocast = AUTOCAST_AS_IS,
    .summary =
        "y[n, c, p] = sum over k of w[n, k, p] x[n, c, index[n, k, p]]; nothing where the index is outside",
    .gradient = "dx = tap_spread(g, index, w), dw = tap_dot(g, index, x)",
    TAPS,
    .shape = sum_shape,
    .forward = sum_forward,
    .backward = sum_backward,
    .samples = "2x3x5,2x2x4@i64:-1..5,2x2x4; 1x1x3,1x1x2@i64:0..2,1x1x2; 0x2x3,0x1x2@i64:0..2,0x1x2; "
               "1x2x3,1x0x2@i64:0..2,1x0x2",
    .errors = "2x3x5,2x2x4@i64:0..4,2x2x3 ! ESHAPE; 2x3x5,1x2x4@i64:0..4,1x2x4 ! ESHAPE; 2x3x5,2x2x4,2x2x4 ! "
              "EDTYPE; 3x5,2x4@i64:0..4,2x4 ! ESHAPE",
};
static const TensorOp op_tap_spread = {
    .name = "tap_spread",
    .autocast = AUTOCAST_AS_IS,
    .summary = "zeros [n, c, size] with w[n, k, p] y[n, c, p] added at index[n, k, p]",
    .gradient = "dy = tap_sum(g, index, w), dw = tap_dot(y, index, g)",
    TAPS,
    PARAMS_GIVEN(TapParams, spread_fields),
    .shape = spread_shape,
    .forward = spread_forward,
    .backward = spread_backward,
    .samples = "2x3x4,2x2x4@i64:-1..5,2x2x4 {size=5}; 1x1x2,1x1x2@i64:0..2,1x1x2 {size=3}; "
               "0x2x2,0x1x2@i64:0..2,0x1x2 {size=3}",
    .errors = "2x3x5,2x2x4@i64:0..4,2x2x4 {size=5} ! ESHAPE; 2x3x4,2x2x4@i64:0..4,2x2x4 {size=-1} ! ESHAPE; "
              "2x3x4,2x2x4,2x2x4 {size=5} ! EDTYPE",
};
static const TensorOp op_tap_dot = {
    .name = "tap_dot",
    .autocast = AUTOCAST_AS_IS,
    .summary = "w[n, k, p] = sum over c of y[n, c, p] x[n, c, index[n, k, p]]; 0 where the index is outside",
    .gradient = "dy = tap_sum(x, index, g), dx = tap_spread(y, index, g)",
    TAPS,
    .shape = dot_shape,
    .forward = dot_forward,
    .backward = dot_backward,
    .samples = "2x3x4,2x2x4@i64:-1..5,2x3x5; 1x1x2,1x1x2@i64:0..2,1x1x3; 0x2x2,0x1x2@i64:0..2,0x2x3",
    .errors = "2x3x5,2x2x4@i64:0..4,2x3x5 ! ESHAPE; 2x3x4,2x2x4@i64:0..4,2x2x5 ! ESHAPE; 2x3x4,2x2x4,2x3x5 ! "
              "EDTYPE",
};
REGISTER_OPS(&op_tap_sum, &op_tap_spread, &op_tap_dot);

/* ---- coordinates of one dimension, [batch, points] ------------------------------------------- */

/* From [-1, 1] to [0, size - 1], or to the outer edges of the first and last pixel. */
static Tensor *unnormalize(Tensor *g, int64_t size, bool align_corners)
{
    Tensor *up = tensor_add_scalar(g, 1);
    if (align_corners) return tensor_mul_scalar(up, (double)(size - 1) / 2);
    return tensor_mul_scalar(tensor_add_scalar(tensor_mul_scalar(up, (double)size), -1), 0.5);
}

/* To [0, size - 1]; the gradient is 0 at the ends too. */
static Tensor *clip(Tensor *at, int64_t size)
{
    Tensor *fixed = tensor_detach(at),
           *inside =
               tensor_logical_and(tensor_gt_scalar(fixed, 0), tensor_lt_scalar(fixed, (double)(size - 1)));
    return tensor_where(inside, at, tensor_clamp(fixed, 0, (double)(size - 1)));
}

/* Back and forth between the first and the last pixel, or between their outer edges. */
static Tensor *reflect(Tensor *at, int64_t size, bool align_corners)
{
    const double low = align_corners ? 0 : -0.5, span = (double)(align_corners ? size - 1 : size);
    if (span == 0) return at ? tensor_zeros_like(at) : NULL;
    Tensor *above = tensor_add_scalar(at, -low);
    above = tensor_where(tensor_lt_scalar(above, 0), tensor_neg(above), above);
    Tensor *flips = tensor_floor(tensor_mul_scalar(tensor_detach(above), 1 / span)),
           *half = tensor_mul_scalar(flips, 0.5);
    Tensor *extra = tensor_sub(above, tensor_mul_scalar(flips, span)),
           *even = tensor_eq(tensor_floor(half), half);
    return tensor_add_scalar(tensor_where(even, extra, tensor_add_scalar(tensor_neg(extra), span)), low);
}

static Tensor *pad(Tensor *at, int64_t size, const TensorGridSampleArgs *p)
{
    if (p->padding_mode == TENSOR_GRID_REFLECTION) at = reflect(at, size, p->align_corners);
    return p->padding_mode == TENSOR_GRID_ZEROS ? at : clip(at, size);
}

/* ---- taps of one dimension ------------------------------------------------------------------- */

enum { MOST_TAPS = 4 };
typedef struct AxisTaps {
    int n;
    Tensor *offset[MOST_TAPS], *weight[MOST_TAPS]; /* of the element; about -2^50 where there is none */
} AxisTaps;

/* Masked before the cast, which has no value for the largest numbers. */
static Tensor *offset_of(Tensor *at, int64_t size, int64_t stride)
{
    Tensor *inside = tensor_logical_and(tensor_ge_scalar(at, 0), tensor_le_scalar(at, (double)(size - 1)));
    Tensor *nowhere = at ? own(new_tensor(SHAPE(), at->dtype, at->place)) : NULL;
    if (!nowhere || raw_fill(nowhere, -0x1p50 / (double)stride)) return NULL;
    return tensor_mul_scalar(tensor_to(tensor_where(inside, at, nowhere), TENSOR_I64), (double)stride);
}

/* c3 t^3 + c2 t^2 + c1 t + c0 */
static Tensor *polynomial(Tensor *t, double c3, double c2, double c1, double c0)
{
    Tensor *y = tensor_add_scalar(tensor_mul_scalar(t, c3), c2);
    y = tensor_add_scalar(tensor_mul(y, t), c1);
    return tensor_add_scalar(tensor_mul(y, t), c0);
}

/* Keys' cubic with a = -0.75 at the distances 1 + t, t, 1 - t and 2 - t. */
static void cubic_weights(Tensor *t, Tensor *weight[4])
{
    const double a = -0.75;
    weight[0] = polynomial(t, a, -2 * a, a, 0);
    weight[1] = polynomial(t, a + 2, -(a + 3), 0, 1);
    weight[2] = polynomial(t, -(a + 2), 2 * a + 3, -a, 0);
    weight[3] = polynomial(t, -a, a, 0, 0);
}

static AxisTaps taps_of(Tensor *grid, const TensorGridSampleArgs *p, int64_t size, int64_t stride)
{
    AxisTaps t = { .n = p->mode == TENSOR_NEAREST ? 1 : p->mode == TENSOR_BILINEAR ? 2 : 4 };
    Tensor *at = unnormalize(grid, size, p->align_corners);
    if (t.n < 4) at = pad(at, size, p);
    Tensor *fixed = at ? tensor_detach(at) : NULL;
    if (!fixed) return t;
    if (t.n == 1) {
        t.offset[0] = offset_of(tensor_round(fixed), size, stride);
        t.weight[0] = tensor_where(tensor_eq(fixed, fixed), tensor_ones_like(fixed),
                                   at); /* 1, but on the graph: the gradient is 0 */
        return t;
    }
    Tensor *below = tensor_floor(fixed), *behind = tensor_sub(at, below);
    for (int k = 0; k < t.n; k++) {
        const int step = t.n == 2 ? k : k - 1;
        Tensor *tap = tensor_add_scalar(below, step);
        t.offset[k] = offset_of(t.n == 4 ? pad(tap, size, p) : tap, size, stride);
    }
    if (t.n == 4) cubic_weights(behind, t.weight);
    else t.weight[0] = tensor_sub(tensor_add_scalar(below, 1), at), t.weight[1] = behind;
    return t;
}

/* Every tap of one dimension with every one of the others: [batch, taps, points]. */
static int combine(const AxisTaps *axis, int axes, Tensor **index, Tensor **weight)
{
    enum { MOST = 16 };
    Tensor *offsets[MOST], *weights[MOST];
    int n = 1;
    for (int d = 0; d < axes; d++) n *= axis[d].n;
    for (int i = 0; i < n; i++) {
        offsets[i] = weights[i] = NULL;
        for (int d = 0, rest = i, below = n; d < axes; d++) {
            below /= axis[d].n;
            Tensor *offset = axis[d].offset[rest / below], *w = axis[d].weight[rest / below];
            rest %= below;
            offsets[i] = d == 0 ? offset : tensor_add(offsets[i], offset);
            weights[i] = d == 0 ? w : tensor_mul(weights[i], w);
        }
    }
    *index = tensor_stack(TENSOR_LIST(offsets, n), 1);
    *weight = tensor_stack(TENSOR_LIST(weights, n), 1);
    return *index && *weight ? 0 : -1;
}

/* ---- grid_sample ----------------------------------------------------------------------------- */

static const char *const modes[] = { "nearest",   "nearest-exact", "linear", "bilinear",
                                     "trilinear", "bicubic",       "area",   NULL };
static const char *const padding_modes[] = { "zeros", "border", "reflection", NULL };

static int check_grid(OpCall *c, const TensorGridSampleArgs *p, const Tensor *x, const Tensor *grid)
{
    const int n = x->ndim - 2;
    if (call_one_dtype(c)) return -1;
    if ((n != 2 && n != 3) || grid->ndim != x->ndim || grid->shape[n + 1] != n)
        return op_fail(c, TENSOR_ESHAPE,
                       "input %s, grid %s: want [N, C, h, w] and [N, oh, ow, 2], or [N, C, d, h, w] and [N, "
                       "od, oh, ow, 3]",
                       S(x), S(grid));
    if (x->shape[0] != grid->shape[0])
        return op_fail(c, TENSOR_ESHAPE, "input %s, grid %s: want one batch size", S(x), S(grid));
    for (int d = 2; d < x->ndim; d++)
        if (x->shape[d] == 0) return op_fail(c, TENSOR_ESHAPE, "input %s: nothing to sample", S(x));
    if (p->mode != TENSOR_NEAREST && p->mode != TENSOR_BILINEAR && (p->mode != TENSOR_BICUBIC || n == 3))
        return op_fail(c, TENSOR_EVALUE,
                       "mode %s for %s: want nearest, bilinear, or bicubic on two dimensions", modes[p->mode],
                       S(x));
    return 0;
}

static Tensor *sample(Tensor *x, Tensor *grid, const TensorGridSampleArgs *p)
{
    const int n = x->ndim - 2;
    int64_t points = 1, positions = 1, shape[5] = { x->shape[0], x->shape[1] };
    AxisTaps axis[3];
    for (int d = 0; d < n; d++) points *= shape[2 + d] = grid->shape[1 + d];
    grid = tensor_reshape(grid, SHAPE(grid->shape[0], points, n));
    grid = tensor_where(tensor_isnan(grid), grid ? tensor_full_like(grid, -1) : NULL, grid);
    for (int d = n - 1; d >= 0; d--) { /* the grid's last number is of the first dimension */
        axis[d] = taps_of(tensor_select(grid, 2, n - 1 - d), p, x->shape[2 + d], positions);
        positions *= x->shape[2 + d];
    }
    Tensor *index, *weight;
    if (!grid || combine(axis, n, &index, &weight)) return NULL;
    Tensor *y = sum(tensor_reshape(x, SHAPE(x->shape[0], x->shape[1], positions)), index, weight);
    return tensor_reshape(y, (TensorShape){ n + 2, shape });
}

static int compose(OpCall *c)
{
    const TensorGridSampleArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *grid = op_input(c, 1);
    if (check_grid(c, p, x, grid)) return -1;
    const TensorDtype dtype = (TensorDtype)x->dtype, wide = dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    x = tensor_to(x, wide), grid = tensor_to(grid, wide);
    return op_set_result(c, 0, x && grid ? tensor_to(sample(x, grid, p), dtype) : NULL);
}

static const OpField grid_fields[] = { OP_CHOICE(TensorGridSampleArgs, mode, modes),
                                       OP_CHOICE(TensorGridSampleArgs, padding_mode, padding_modes),
                                       OP_OPTION(TensorGridSampleArgs, align_corners),
                                       { 0 } };
static const TensorOp op_grid_sample = {
    .name = "grid_sample",
    .autocast = AUTOCAST_CPU_CUDA(F32, PROMOTE),
    .summary = "an image at the positions of a grid, in [-1, 1]; no gradient is right at pixels' centers: "
               "the one behind is taken",
    .gradient = "dx = g weights added at the taps, dgrid = sum over channels of g x weights'",
    .arity = 2,
    PARAMS(TensorGridSampleArgs, tensor_grid_sample_defaults, grid_fields),
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.grid_sample",
    .samples =
        "1x2x3x4,1x2x2x2:-0.99..0.99; 2x1x3x3,2x1x2x2:-1.7..1.7 {align_corners=1}; 1x2x4x3,1x2x1x2:-1.6..1.6 "
        "{padding_mode=border}; 1x2x3x4,1x2x2x2:-1.9..1.9 {padding_mode=reflection}; "
        "1x1x3x3,1x2x2x2:-2.8..2.8 {padding_mode=reflection align_corners=1}; 1x2x3x4,1x1x3x2 "
        "{mode=nearest}; 1x2x4x4,1x2x1x2:-0.9..0.9 {mode=bicubic}; 1x1x4x5,1x1x2x2:-1.5..1.5 {mode=bicubic "
        "padding_mode=border align_corners=1}; 1x1x4x3,1x2x1x2:-1.5..1.5 {mode=bicubic "
        "padding_mode=reflection}; 1x2x2x3x2,1x1x2x1x3:-0.99..0.99; 1x1x2x3x2,1x1x1x2x3 {mode=nearest "
        "padding_mode=border}; 0x2x3x3,0x2x2x2; 1x2x3x3,1x0x2x2; 1x1x1x3,1x1x2x2:-0.9..0.9 "
        "{padding_mode=reflection align_corners=1}",
    .errors = "1x2x3x4,2x2x2x2 ! ESHAPE; 1x2x3x4,1x2x2x3 ! ESHAPE; 1x2x3,1x2x1 ! ESHAPE; 1x2x0x4,1x2x2x2 ! "
              "ESHAPE; 1x2x3x4,1x2x2x2 {mode=linear} ! EVALUE; 1x2x3x4x4,1x2x2x2x3 {mode=bicubic} ! EVALUE; "
              "1x2x3x4,1x2x2x2 {padding_mode=3} ! EVALUE; 1x2x3x4@i64,1x2x2x2 ! EDTYPE",
};
REGISTER_OPS(&op_grid_sample);

Tensor *tensor_grid_sample_args(TensorGridSampleArgs a)
{
    return APPLY(&op_grid_sample, &a, a.input, a.grid);
}

/* ---- affine_grid ----------------------------------------------------------------------------- */

typedef struct AffineParams {
    TensorShape size;
    bool align_corners;
} AffineParams;

/* The centers of n pixels in a row, f64. */
static Tensor *line_of_centers(int64_t n, bool align_corners, const Place *place)
{
    if (n == 1) return zeros_on(SHAPE(1), TENSOR_F64, place);
    Tensor *i = tensor_mul_scalar(numbers_on(n, TENSOR_F64, place), 2);
    i = align_corners ? tensor_div_scalar(i, (double)(n - 1))
                      : tensor_div_scalar(tensor_add_scalar(i, 1), (double)n);
    return tensor_sub_scalar(i, 1);
}

/* [pixels, n + 1]: x, y(, z), 1 of the center of each pixel, in [-1, 1], where -1 and 1 are the first and the
 * last center, or their outer edges. */
static Tensor *centers(const int64_t *size, int n, bool align_corners, int dtype, const Place *place)
{
    int64_t shape[4];
    for (int d = 0; d < n; d++) shape[d] = size[d];
    shape[n] = n + 1;
    Tensor *base = own(new_tensor((TensorShape){ n + 1, shape }, dtype, place));
    for (int d = 0; base && d <= n; d++) {
        Tensor *column = own(new_layer(base, n, d)), *line;
        if (!column || (d == n && raw_fill(column, 1))) return NULL;
        if (d == n) break;
        int64_t along[3] = { 1, 1, 1 };
        const int from = n - 1 - d;
        along[from] = size[from];
        line = tensor_reshape(line_of_centers(size[from], align_corners, place), (TensorShape){ n, along });
        if (!line || raw_copy(column, line)) return NULL;
    }
    return tensor_reshape(base, SHAPE(-1, n + 1));
}

static int affine_compose(OpCall *c)
{
    const AffineParams *p = op_params(c);
    Tensor *theta = op_input(c, 0);
    const int n = p->size.ndim - 2;
    const int64_t *size = p->size.dim;
    int64_t shape[5];
    if (n != 2 && n != 3)
        return op_fail(c, TENSOR_EVALUE, "size %s: want [N, C, h, w] or [N, C, d, h, w]",
                       shape_text(p->size));
    if (theta->ndim != 3 || theta->shape[0] != size[0] || theta->shape[1] != n || theta->shape[2] != n + 1)
        return op_fail(c, TENSOR_ESHAPE, "theta %s: want [%lld, %d, %d]", S(theta), (long long)size[0], n,
                       n + 1);
    for (int d = 1; d < p->size.ndim; d++)
        if (size[d] < 1 || size[d] > WINDOW_LIMIT)
            return op_fail(c, TENSOR_EVALUE, "a size of %s", shape_text(p->size));
    const TensorDtype dtype = (TensorDtype)theta->dtype, wide = dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    Tensor *base = centers(size + 2, n, p->align_corners, wide, theta->place);
    Tensor *y = base ? tensor_matmul(base, tensor_transpose(tensor_to(theta, wide), 1, 2)) : NULL;
    shape[0] = size[0], shape[n + 1] = n;
    for (int d = 0; d < n; d++) shape[1 + d] = size[2 + d];
    return op_set_result(c, 0, tensor_to(tensor_reshape(y, (TensorShape){ n + 2, shape }), dtype));
}

static const OpField affine_fields[] = { OP_REQUIRED(AffineParams, size),
                                         OP_OPTION(AffineParams, align_corners),
                                         { 0 } };
static const TensorOp op_affine_grid = {
    .name = "affine_grid",
    .autocast = AUTOCAST_CPU_CUDA(LOWER, AS_IS),
    .summary = "theta applied to the centers of an image's pixels, in [-1, 1]",
    .gradient = "dtheta = g^T centers",
    .arity = 1,
    PARAMS_GIVEN(AffineParams, affine_fields),
    .compose = affine_compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.affine_grid",
    .samples = "2x2x3 {size=[2 3 4 5]}; 1x2x3 {size=[1 1 3 1] align_corners=1}; 1x3x4 {size=[1 2 2 3 2]}; "
               "2x3x4 {size=[2 1 1 2 3] align_corners=1}; 0x2x3 {size=[0 1 2 2]}",
    .errors = "2x2x3 {size=[3 3 4 5]} ! ESHAPE; 2x2x2 {size=[2 3 4 5]} ! ESHAPE; 2x3 {size=[2 3 4 5]} ! "
              "ESHAPE; 2x2x3 {size=[2 3 4]} ! EVALUE; "
              "2x2x3 {size=[2 3 0 5]} ! EVALUE; 2x2x3 {size=[2 3 4 5 6]} ! ESHAPE",
};
REGISTER_OPS(&op_affine_grid);

Tensor *tensor_affine_grid(Tensor *theta, TensorShape size, bool align_corners)
{
    return APPLY(&op_affine_grid, &((AffineParams){ size, align_corners }), theta);
}
