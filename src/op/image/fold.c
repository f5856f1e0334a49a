/* fold.c - images as columns of patches, and back (im2col, col2im).
 *
 *   unfold   [N, C, h, w] -> [N, C kh kw, L]: y[c kh kw + r kw + t, l] = x[c, s i + d r - p, s j + d t - p],
 *            l = i ow + j, or 0 outside
 *   fold     the adjoint: every y[...] added where unfold would read it; each is the other's gradient
 *
 * A tap (r, t) of the window is a strided part of x and one of y: one copy, or addition, for each tap. */
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"
#include "window.h"

const TensorUnfoldArgs tensor_unfold_defaults = { TENSOR_UNFOLD_DEFAULTS };
const TensorFoldArgs tensor_fold_defaults = { TENSOR_FOLD_DEFAULTS };

typedef struct Pair {
    int64_t h, w;
} Pair;

typedef struct Window {
    Pair k, dilation, pad, stride;
} Window;

enum { PLANE = 2 };

static int pair(OpCall *c, const char *what, int64_t all, const int64_t *each, int64_t least, Pair *to)
{
    Sizes s;
    if (window_sizes(c, what, all, each, PLANE, least, 1, &s)) return -1;
    *to = (Pair){ s.at[WINDOW_RANK - 2], s.at[WINDOW_RANK - 1] };
    return 0;
}

/* The options of both ops have the same names. */
#define READ_WINDOW(c, a, w)                                                          \
    (pair(c, "kernel_size", (a)->kernel_size, (a)->kernel_sizes, 1, &(w)->k) ||       \
             pair(c, "dilation", (a)->dilation, (a)->dilations, 1, &(w)->dilation) || \
             pair(c, "padding", (a)->padding, (a)->paddings, 0, &(w)->pad) ||         \
             pair(c, "stride", (a)->stride, (a)->strides, 1, &(w)->stride)            \
         ? -1                                                                         \
         : 0)

static int unfold_window(OpCall *c, Window *w)
{
    return READ_WINDOW(c, (const TensorUnfoldArgs *)op_params(c), w);
}
static int fold_window(OpCall *c, Window *w)
{
    return READ_WINDOW(c, (const TensorFoldArgs *)op_params(c), w);
}

static int64_t steps(int64_t size, int64_t kernel, int64_t dilation, int64_t pad, int64_t stride)
{
    const int64_t room = size + 2 * pad - window_reach(kernel, dilation);
    return room < 0 ? 0 : room / stride + 1;
}

/* How many places the window has over an image of that size. */
static int places(OpCall *c, const Window *w, Pair size, Pair *count)
{
    *count = (Pair){ steps(size.h, w->k.h, w->dilation.h, w->pad.h, w->stride.h),
                     steps(size.w, w->k.w, w->dilation.w, w->pad.w, w->stride.w) };
    if (size.h > 0 && size.w > 0 && count->h > 0 && count->w > 0) return 0;
    return op_fail(c, TENSOR_ESHAPE,
                   "%s: no room for a window of %lld x %lld (dilation %lld x %lld) in %lld x %lld, padded by "
                   "%lld x %lld",
                   S(op_input(c, 0)), (long long)w->k.h, (long long)w->k.w, (long long)w->dilation.h,
                   (long long)w->dilation.w, (long long)size.h, (long long)size.w, (long long)w->pad.h,
                   (long long)w->pad.w);
}

/* ---- the taps -------------------------------------------------------------------------------- */

/* The places [first, first + count) whose tap at that offset lies inside the image, in one direction. */
typedef struct Run {
    int64_t first, count;
} Run;

static Run inside(int64_t size, int64_t places_, int64_t stride, int64_t offset)
{
    const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride,
                  last = size > offset ? (size - 1 - offset) / stride : -1;
    const int64_t end = last + 1 < places_ ? last + 1 : places_;
    return (Run){ first, end > first ? end - first : 0 };
}

/* image [N, C, h, w] and columns [N, C kh kw, L], both dense: adds the columns into the image, or copies it
 * into them.  Where windows lie apart nothing meets, and copies are additions. */
static int each_tap(const Window *w, Tensor *image, Tensor *columns, Pair count, bool add)
{
    const int64_t n = window_images(shape_of(image), PLANE), *dim = image->shape + image->ndim - 3,
                  taps = w->k.h * w->k.w, line = count.h * count.w;
    const bool apart =
        w->stride.h > w->dilation.h * (w->k.h - 1) && w->stride.w > w->dilation.w * (w->k.w - 1);
    for (int64_t t = 0; t < taps; t++) {
        const int64_t row = t / w->k.w * w->dilation.h - w->pad.h,
                      column = t % w->k.w * w->dilation.w - w->pad.w;
        const Run i = inside(dim[1], count.h, w->stride.h, row),
                  j = inside(dim[2], count.w, w->stride.w, column);
        if (i.count == 0 || j.count == 0) continue;
        const int64_t shape[4] = { n, dim[0], i.count, j.count };
        const int64_t at_image[4] = { dim[0] * dim[1] * dim[2], dim[1] * dim[2], w->stride.h * dim[2],
                                      w->stride.w };
        const int64_t at_columns[4] = { dim[0] * taps * line, taps * line, count.w, 1 };
        Tensor *a = new_view(image, 4, shape, at_image,
                             (i.first * w->stride.h + row) * dim[2] + j.first * w->stride.w + column);
        Tensor *b = new_view(columns, 4, shape, at_columns, t * line + i.first * count.w + j.first);
        const int status = !a || !b ? -1
                           : !add   ? raw_copy(b, a)
                           : apart  ? raw_copy(a, b)
                                    : raw_add_into(a, b);
        tensor_release(a);
        tensor_release(b);
        if (status) return -1;
    }
    return 0;
}

/* ---- unfold ---------------------------------------------------------------------------------- */

static int unfold_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    Window w;
    Pair count;
    if (unfold_window(c, &w) || window_rank(c, x, "input", PLANE)) return -1;
    const int64_t *image = x->shape + x->ndim - 3;
    if (places(c, &w, (Pair){ image[1], image[2] }, &count)) return -1;
    const int64_t dim[3] = { window_images(shape_of(x), PLANE), image[0] * w.k.h * w.k.w, count.h * count.w };
    return op_set_output(c, 0, (TensorShape){ x->ndim - 1, &dim[4 - x->ndim] }, (TensorDtype)x->dtype);
}

static int unfold_forward(OpCall *c)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0))), *y = op_output(c, 0);
    Window w;
    Pair count;
    if (!x || x->numel == 0) return x ? 0 : -1;
    if (unfold_window(c, &w) || places(c, &w, (Pair){ x->shape[x->ndim - 2], x->shape[x->ndim - 1] }, &count))
        return -1;
    if ((w.pad.h || w.pad.w) && raw_fill(y, 0)) return -1;
    return each_tap(&w, x, y, count, false);
}

static const TensorOp op_fold;

static int unfold_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorUnfoldArgs *a = op_params(c);
    const TensorShape x = op_input_shape(c, 0);
    TensorFoldArgs p = { .output_size = { PLANE, x.dim + x.ndim - PLANE },
                         .kernel_size = a->kernel_size,
                         .dilation = a->dilation,
                         .padding = a->padding,
                         .stride = a->stride,
                         TENSOR_FROM_DEFAULTS };
    memcpy(p.kernel_sizes, a->kernel_sizes, sizeof p.kernel_sizes);
    memcpy(p.dilations, a->dilations, sizeof p.dilations);
    memcpy(p.paddings, a->paddings, sizeof p.paddings);
    memcpy(p.strides, a->strides, sizeof p.strides);
    dx[0] = APPLY(&op_fold, &p, dy);
    return dx[0] ? 0 : -1;
}

/* ---- fold ------------------------------------------------------------------------------------ */

static int fold_shape(OpCall *c)
{
    const TensorFoldArgs *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    Window w;
    Sizes last;
    Pair count;
    if (fold_window(c, &w) || window_list(c, "output_size", p->output_size, PLANE, 1, &last)) return -1;
    const Pair size = { last.at[WINDOW_RANK - 2], last.at[WINDOW_RANK - 1] };
    if (x->ndim != 2 && x->ndim != 3)
        return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels * window, places], or that without batch",
                       S(x));
    if (places(c, &w, size, &count)) return -1;
    const int64_t rows = x->shape[x->ndim - 2], taps = w.k.h * w.k.w;
    if (rows % taps || x->shape[x->ndim - 1] != count.h * count.w)
        return op_fail(c, TENSOR_ESHAPE,
                       "%s: a window of %lld x %lld over %lld x %lld makes columns of a multiple of %lld, in "
                       "%lld x %lld places",
                       S(x), (long long)w.k.h, (long long)w.k.w, (long long)size.h, (long long)size.w,
                       (long long)taps, (long long)count.h, (long long)count.w);
    const int64_t dim[4] = { x->shape[0], rows / taps, size.h, size.w };
    return op_set_output(c, 0, x->ndim == 3 ? (TensorShape){ 4, dim } : (TensorShape){ 3, dim + 1 },
                         (TensorDtype)x->dtype);
}

static int fold_forward(OpCall *c)
{
    Tensor *x = dense_float(op_input(c, 0)), *out = op_output(c, 0);
    Window w;
    Pair count;
    if (!x) return -1;
    Tensor *y = x->dtype == out->dtype
                    ? out
                    : own(new_tensor(shape_of(out), x->dtype, out->place)); /* f32 for a half */
    if (!y || raw_fill(y, 0)) return -1;
    if (y->numel == 0) return 0;
    if (fold_window(c, &w) || places(c, &w, (Pair){ y->shape[y->ndim - 2], y->shape[y->ndim - 1] }, &count))
        return -1;
    if (each_tap(&w, y, x, count, true)) return -1;
    return y == out ? 0 : raw_copy(out, y);
}

static const TensorOp op_unfold;

static int fold_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorFoldArgs *a = op_params(c);
    TensorUnfoldArgs p = { .kernel_size = a->kernel_size,
                           .dilation = a->dilation,
                           .padding = a->padding,
                           .stride = a->stride,
                           TENSOR_FROM_DEFAULTS };
    memcpy(p.kernel_sizes, a->kernel_sizes, sizeof p.kernel_sizes);
    memcpy(p.dilations, a->dilations, sizeof p.dilations);
    memcpy(p.paddings, a->paddings, sizeof p.paddings);
    memcpy(p.strides, a->strides, sizeof p.strides);
    dx[0] = APPLY(&op_unfold, &p, dy);
    return dx[0] ? 0 : -1;
}

/* ---- ops ------------------------------------------------------------------------------------- */

#define WINDOW_FIELDS(S)                                                                            \
    OP_OPTION(S, kernel_size), OP_OPTION(S, dilation), OP_OPTION(S, padding), OP_OPTION(S, stride), \
        OP_OPTION(S, kernel_sizes), OP_OPTION(S, dilations), OP_OPTION(S, paddings), OP_OPTION(S, strides)
static const OpField unfold_fields[] = { WINDOW_FIELDS(TensorUnfoldArgs), { 0 } };
static const OpField fold_fields[] = { OP_REQUIRED(TensorFoldArgs, output_size),
                                       WINDOW_FIELDS(TensorFoldArgs),
                                       { 0 } };

static const TensorOp op_unfold = {
    .name = "unfold",
    .autocast = AUTOCAST_AS_IS,
    .summary = "patches of images as columns (im2col): [N, C, h, w] to [N, C kh kw, places]",
    .arity = 1,
    .gradient = "dx = fold(g)",
    PARAMS(TensorUnfoldArgs, tensor_unfold_defaults, unfold_fields),
    .shape = unfold_shape,
    .forward = unfold_forward,
    .backward = unfold_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.unfold",
    .samples = "2x3x4x5 {kernel_sizes=[2 3]}; 1x2x5x4 {kernel_size=3 paddings=[1 2] strides=[2 1]}; 2x6x5 "
               "{kernel_size=2 dilations=[3 2] padding=1}; 0x2x3x3 {kernel_size=2}; 1x1x4x4 {kernel_size=2 "
               "stride=3}; 2x0x3x3 {kernel_size=2}; 1x1x2x1 {kernel_size=2 padding=3 stride=4}",
    .errors = "3x3 {kernel_size=2} ! ESHAPE; 1x2x3x3 {kernel_size=4} ! ESHAPE; 1x2x3x3 {kernel_size=0} ! "
              "EVALUE; 1x2x3x3 {kernel_size=2 stride=0} ! EVALUE; 1x2x3x3 {kernel_size=2 padding=-1} ! "
              "EVALUE; 1x2x3x3 {kernel_size=2 dilation=0} ! EVALUE; 1x2x0x3 {kernel_size=1 padding=1} ! "
              "ESHAPE; 1x2x3x3 {kernel_sizes=[2 2 2]} ! EVALUE; 1x2x3x3@i64 {kernel_size=2} ! EDTYPE"
};
static const TensorOp op_fold = {
    .name = "fold",
    .autocast = AUTOCAST_AS_IS,
    .summary = "columns added up where they came from (col2im): [N, C kh kw, places] to [N, C, h, w]",
    .arity = 1,
    .gradient = "dx = unfold(g)",
    PARAMS(TensorFoldArgs, tensor_fold_defaults, fold_fields),
    .shape = fold_shape,
    .forward = fold_forward,
    .backward = fold_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.fold",
    .samples = "2x12x9 {output_size=[4 4] kernel_size=2}; 1x18x6 {output_size=[5 4] kernel_size=3 padding=1 "
               "stride=2}; 8x25 {output_size=[6 5] kernel_size=2 dilations=[3 2] padding=1}; 0x4x4 "
               "{output_size=[3] kernel_size=2}; 1x4x4 {output_size=[4] kernel_size=2 stride=2}; 2x0x4 "
               "{output_size=[3] kernel_size=2}",
    .errors =
        "2x12x8 {output_size=[4 4] kernel_size=2} ! ESHAPE; 2x11x9 {output_size=[4 4] kernel_size=2} ! "
        "ESHAPE; 4 {output_size=[4 4] kernel_size=2} ! ESHAPE; 2x12x9 {output_size=[0 4] kernel_size=2} ! "
        "EVALUE; 2x12x9 {output_size=[4 4] kernel_size=5} ! ESHAPE; 2x12x9 {output_size=[4 4] kernel_size=2 "
        "stride=0} ! EVALUE; 2x12x9@i64 {output_size=[4 4] kernel_size=2} ! EDTYPE"
};
REGISTER_OPS(&op_unfold, &op_fold);

Tensor *tensor_unfold_args(TensorUnfoldArgs a) { return APPLY(&op_unfold, &a, a.input); }
Tensor *tensor_fold_args(TensorFoldArgs a) { return APPLY(&op_fold, &a, a.input); }
