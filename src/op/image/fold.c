/* fold.c - images as columns of patches, and back (im2col, col2im).
 *
 *   unfold   [N, C, h, w] -> [N, C kh kw, L]: y[c kh kw + r kw + t, l] = x[c, s i + d r - p, s j + d t - p],
 * l = i ow + j, or 0 outside fold     the adjoint: every y[...] added where unfold would read it; each is the
 * other's gradient
 *
 * A tap (r, t) of the window is one strided part of x, and one of y: as many copies, or additions, as there
 * are taps. */
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"
#include "window.h"

typedef struct FoldParams {
    OpDims output_size; /* fold only */
    OpDims kernel, dilation, padding, stride;
} FoldParams;

typedef struct Window {
    Pair k, dilation, pad, stride;
} Window;

static int check_pair(OpCall *c, const char *what, const OpDims *d, Pair otherwise, int64_t least, Pair *pair)
{
    *pair = pair_of(d, otherwise);
    if (d->n <= 2 && within(*pair, least)) return 0;
    return op_fail(c, TENSOR_EVALUE, "%s %s: want one number or two, at least %lld", what,
                   shape_text(dims_shape(d)), (long long)least);
}

static int check(OpCall *c, const FoldParams *p, Window *w)
{
    return check_pair(c, "kernel", &p->kernel, (Pair){ 0, 0 }, 1, &w->k) ||
           check_pair(c, "dilation", &p->dilation, (Pair){ 1, 1 }, 1, &w->dilation) ||
           check_pair(c, "padding", &p->padding, (Pair){ 0, 0 }, 0, &w->pad) ||
           check_pair(c, "stride", &p->stride, (Pair){ 1, 1 }, 1, &w->stride);
}

static int64_t steps(int64_t size, int64_t kernel, int64_t dilation, int64_t pad, int64_t stride)
{
    const int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1;
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
    const int64_t n = batch_of(shape_of(image)), *dim = image_of(shape_of(image)), taps = w->k.h * w->k.w,
                  line = count.h * count.w;
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
    if (check(c, op_params(c), &w)) return -1;
    if (x->ndim != 3 && x->ndim != 4)
        return op_fail(c, TENSOR_ESHAPE, "%s: want [batch, channels, height, width], or that without batch",
                       S(x));
    const int64_t *image = image_of(shape_of(x));
    if (places(c, &w, (Pair){ image[1], image[2] }, &count)) return -1;
    const int64_t dim[3] = { batch_of(shape_of(x)), image[0] * w.k.h * w.k.w, count.h * count.w };
    return op_set_output(c, 0, (TensorShape){ x->ndim - 1, dim + 4 - x->ndim }, (TensorDtype)x->dtype);
}

static int unfold_forward(OpCall *c)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0))), *y = op_output(c, 0);
    Window w;
    Pair count;
    if (!x || x->numel == 0) return x ? 0 : -1;
    if (check(c, op_params(c), &w) ||
        places(c, &w, (Pair){ x->shape[x->ndim - 2], x->shape[x->ndim - 1] }, &count))
        return -1;
    if ((w.pad.h || w.pad.w) && raw_fill(y, 0)) return -1;
    return each_tap(&w, x, y, count, false);
}

static const TensorOp op_fold;

static int unfold_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    FoldParams p = *(const FoldParams *)op_params(c);
    const int64_t *image = image_of(op_input_shape(c, 0));
    p.output_size = (OpDims){ 2, { image[1], image[2] } };
    dx[0] = APPLY(&op_fold, &p, dy);
    return dx[0] ? 0 : -1;
}

/* ---- fold ------------------------------------------------------------------------------------ */

static int fold_shape(OpCall *c)
{
    const FoldParams *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    Window w;
    Pair size, count;
    if (check(c, p, &w) || check_pair(c, "output_size", &p->output_size, (Pair){ 0, 0 }, 1, &size)) return -1;
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
    if (check(c, op_params(c), &w) ||
        places(c, &w, (Pair){ y->shape[y->ndim - 2], y->shape[y->ndim - 1] }, &count))
        return -1;
    if (each_tap(&w, y, x, count, true)) return -1;
    return y == out ? 0 : raw_copy(out, y);
}

static const TensorOp op_unfold;

static int fold_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = APPLY(&op_unfold, op_params(c), dy);
    return dx[0] ? 0 : -1;
}

/* ---- ops ------------------------------------------------------------------------------------- */

#define WINDOW_FIELDS                                                                           \
    OP_FIELD(OP_DIMS, FoldParams, kernel, NULL), OP_FIELD(OP_DIMS, FoldParams, dilation, "[]"), \
        OP_FIELD(OP_DIMS, FoldParams, padding, "[]"), OP_FIELD(OP_DIMS, FoldParams, stride, "[]")
static const OpField unfold_fields[] = { WINDOW_FIELDS, { 0 } };
static const OpField fold_fields[] = { OP_FIELD(OP_DIMS, FoldParams, output_size, NULL),
                                       WINDOW_FIELDS,
                                       { 0 } };

static const TensorOp op_unfold = {
    .name = "unfold",
    .summary = "patches of images as columns (im2col): [N, C, h, w] to [N, C kh kw, places]",
    .arity = 1,
    .gradient = "dx = fold(g)",
    .params = sizeof(FoldParams),
    .fields = unfold_fields,
    .shape = unfold_shape,
    .forward = unfold_forward,
    .backward = unfold_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.unfold",
    .samples =
        "2x3x4x5 {kernel=[2 3]}; 1x2x5x4 {kernel=[3] padding=[1 2] stride=[2 1]}; 2x6x5 {kernel=[2] "
        "dilation=[3 2] padding=[1]}; 0x2x3x3 {kernel=[2]}; "
        "1x1x4x4 {kernel=[2] stride=[3]}; 2x0x3x3 {kernel=[2]}; 1x1x2x1 {kernel=[2] padding=[3] stride=[4]}",
    .errors = "3x3 {kernel=[2]} ! ESHAPE; 1x2x3x3 {kernel=[4]} ! ESHAPE; 1x2x3x3 {kernel=[0]} ! EVALUE; "
              "1x2x3x3 {kernel=[2] stride=[0]} ! EVALUE; "
              "1x2x3x3 {kernel=[2] padding=[-1]} ! EVALUE; 1x2x3x3 {kernel=[2] dilation=[0]} ! EVALUE; "
              "1x2x0x3 {kernel=[1] padding=[1]} ! ESHAPE; "
              "1x2x3x3 {kernel=[2 2 2]} ! EVALUE; 1x2x3x3@i64 {kernel=[2]} ! EDTYPE"
};
static const TensorOp op_fold = {
    .name = "fold",
    .summary = "columns added up where they came from (col2im): [N, C kh kw, places] to [N, C, h, w]",
    .arity = 1,
    .gradient = "dx = unfold(g)",
    .params = sizeof(FoldParams),
    .fields = fold_fields,
    .shape = fold_shape,
    .forward = fold_forward,
    .backward = fold_backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.fold",
    .samples = "2x12x9 {output_size=[4 4] kernel=[2]}; 1x18x6 {output_size=[5 4] kernel=[3] padding=[1] "
               "stride=[2]}; 8x25 {output_size=[6 5] kernel=[2] dilation=[3 2] padding=[1]}; "
               "0x4x4 {output_size=[3] kernel=[2]}; 1x4x4 {output_size=[4] kernel=[2] stride=[2]}; 2x0x4 "
               "{output_size=[3] kernel=[2]}",
    .errors = "2x12x8 {output_size=[4 4] kernel=[2]} ! ESHAPE; 2x11x9 {output_size=[4 4] kernel=[2]} ! "
              "ESHAPE; 4 {output_size=[4 4] kernel=[2]} ! ESHAPE; "
              "2x12x9 {output_size=[0 4] kernel=[2]} ! EVALUE; 2x12x9 {output_size=[4 4] kernel=[5]} ! "
              "ESHAPE; 2x12x9 {output_size=[4 4] kernel=[2] stride=[0]} ! EVALUE; "
              "2x12x9@i64 {output_size=[4 4] kernel=[2]} ! EDTYPE"
};
REGISTER_OP(op_unfold);
REGISTER_OP(op_fold);

Tensor *tensor_unfold_args(TensorUnfoldArgs a)
{
    const FoldParams p = { .kernel = dims_pair(a.kernel_size, a.kernel_hw),
                           .dilation = dims_pair(a.dilation, a.dilation_hw),
                           .padding = dims_pair(a.padding, a.padding_hw),
                           .stride = dims_pair(a.stride, a.stride_hw) };
    return APPLY(&op_unfold, &p, a.input);
}

Tensor *tensor_fold_args(TensorFoldArgs a)
{
    FoldParams p = { .kernel = dims_pair(a.kernel_size, a.kernel_hw),
                     .dilation = dims_pair(a.dilation, a.dilation_hw),
                     .padding = dims_pair(a.padding, a.padding_hw),
                     .stride = dims_pair(a.stride, a.stride_hw) };
    return shape_to_dims("fold", a.output_size, &p.output_size) ? NULL : APPLY(&op_fold, &p, a.input);
}
