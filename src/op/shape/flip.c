/* flip.c - elements in another order along some dimensions: flip, roll, rot90.
 *
 *   flip   y_i = x_(n - 1 - i) in each dim named; its own gradient
 *   roll   y_((i + shift) mod n) = x_i; the gradient rolls back
 *   rot90  a quarter turn k times, made of flip and transpose */
#include "shape_op.h"

/* ---- flip ------------------------------------------------------------------------------------ */

typedef struct FlipParams {
    TensorShape dims;
} FlipParams;

static int flip_shape(OpCall *c)
{
    FlipParams *p = op_params_mut(c);
    return call_dims(c, &p->dims, shape_of(op_input(c, 0)), TENSOR_EINDEX) ? -1 : op_same_shape(c);
}

static int flip_forward(OpCall *c)
{
    const FlipParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (x->numel == 0) return 0;
    int64_t stride[TENSOR_MAX_DIMS], offset = 0;
    for (int d = 0; d < x->ndim; d++) stride[d] = x->stride[d];
    for (int i = 0; i < p->dims.ndim && x->ndim; i++) {
        int64_t d = p->dims.dim[i];
        offset += (x->shape[d] - 1) * x->stride[d];
        stride[d] = -x->stride[d];
    }
    Tensor *backwards = own(new_view(x, x->ndim, x->shape, stride, offset));
    return backwards ? raw_copy(op_output(c, 0), backwards) : -1;
}

static int flip_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const FlipParams *p = op_params(c);
    dx[0] = tensor_flip(dy, p->dims);
    return dx[0] ? 0 : -1;
}

static const OpField flip_fields[] = { OP_REQUIRED(FlipParams, dims), { 0 } };
static const TensorOp op_flip = {
    .name = "flip",
    .autocast = AUTOCAST_AS_IS,
    .summary = "the order of elements turned round in dims",
    .gradient = "dx = flip(g)",
    .arity = 1,
    PARAMS_GIVEN(FlipParams, flip_fields),
    .shape = flip_shape,
    .forward = flip_forward,
    .backward = flip_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "5 {dims=[0]}; 2x3x4 {dims=[0 -1]}; 2x3 {dims=[]}; {dims=[]}; 0x3 {dims=[1]}; {dims=[0]}",
    .errors = "2x3 {dims=[2]} ! EINDEX; 2x3 {dims=[1 -1]} ! EINDEX"
};
REGISTER_OPS(&op_flip);

Tensor *tensor_flip(Tensor *x, TensorShape dims) { return APPLY(&op_flip, &(FlipParams){ dims }, x); }

static Tensor *flip_one(const char *op, Tensor *x, int dim, const void *site)
{
    if (check_null(x, op, 1)) return NULL;
    if (x->ndim <= dim)
        return fail_site(TENSOR_ESHAPE, op, site, "%s: want rank %d or more", S(x), dim + 1), NULL;
    return op_apply1(&op_flip, &x, 1, &(FlipParams){ DIMS(dim) }, site);
}

Tensor *tensor_flipud(Tensor *x) { return flip_one("tensor_flipud", x, 0, SITE); }
Tensor *tensor_fliplr(Tensor *x) { return flip_one("tensor_fliplr", x, 1, SITE); }

/* ---- roll ------------------------------------------------------------------------------------ */

const TensorRollArgs tensor_roll_defaults = { TENSOR_ROLL_DEFAULTS };

static int roll_shape(OpCall *c)
{
    TensorRollArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    int64_t dims[TENSOR_MAX_DIMS];
    bool flat = p->dims.ndim == 0 && p->shifts.ndim == 1;
    if (p->shifts.ndim == 0) return op_fail(c, TENSOR_EVALUE, "%s: no shifts", S(x));
    if (!flat && p->dims.ndim != p->shifts.ndim)
        return op_fail(c, TENSOR_EVALUE, "%d shifts for %d dimensions: want as many, or one shift alone",
                       p->shifts.ndim, p->dims.ndim);
    if (x->ndim == 0 && p->dims.ndim) return op_fail(c, TENSOR_EINDEX, "[] has no dimension");
    for (int i = 0; i < p->dims.ndim; i++)
        if ((dims[i] = call_dim(c, p->dims.dim[i], shape_of(x))) < 0) return -1;
    return op_set_list(c, &p->dims, p->dims.ndim, dims) ? -1 : op_same_shape(c);
}

/* y, dense, = x rolled in one dimension: two pieces change places. */
static int roll_one(Tensor *y, const Tensor *x, int dim, int64_t shift)
{
    int64_t n = x->shape[dim], cut = shift % n, shape[TENSOR_MAX_DIMS];
    if (cut < 0) cut += n;
    for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[d];
    int64_t length[2] = { n - cut, cut }, from[2] = { 0, n - cut }, to[2] = { cut, 0 };
    for (int piece = 0; piece < 2; piece++) {
        if (length[piece] == 0) continue;
        shape[dim] = length[piece];
        Tensor *source = own(new_view(x, x->ndim, shape, x->stride, from[piece] * x->stride[dim]));
        Tensor *target = own(new_view(y, y->ndim, shape, y->stride, to[piece] * y->stride[dim]));
        if (!source || !target || raw_copy(target, source)) return -1;
    }
    return 0;
}

static int roll_forward(OpCall *c)
{
    const TensorRollArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *y = op_output(c, 0);
    if (x->numel == 0) return 0;
    if (x->ndim == 0) return raw_copy(y, x);
    if (p->dims.ndim == 0) {
        Tensor *dense = own(raw_contiguous(x));
        Tensor *flat = dense ? own(new_view(dense, 1, &x->numel, (int64_t[]){ 1 }, 0)) : NULL;
        Tensor *line = own(new_view(y, 1, &x->numel, (int64_t[]){ 1 }, 0));
        return flat && line ? roll_one(line, flat, 0, p->shifts.dim[0]) : -1;
    }
    for (int i = 0; i < p->dims.ndim; i++) {
        bool last = i == p->dims.ndim - 1;
        Tensor *to = last ? y : own(new_tensor(shape_of(x), x->dtype, x->place));
        if (!to || roll_one(to, x, (int)p->dims.dim[i], p->shifts.dim[i])) return -1;
        x = to;
    }
    return 0;
}

static int roll_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorRollArgs *p = op_params(c);
    int64_t back[TENSOR_MAX_DIMS];
    for (int i = 0; i < p->shifts.ndim; i++)
        back[i] = p->shifts.dim[i] == INT64_MIN ? INT64_MIN : -p->shifts.dim[i];
    dx[0] = tensor_roll(dy, { p->shifts.ndim, back }, p->dims);
    return dx[0] ? 0 : -1;
}

static const OpField roll_fields[] = { OP_REQUIRED(TensorRollArgs, shifts),
                                       OP_OPTION(TensorRollArgs, dims),
                                       { 0 } };
static const TensorOp op_roll = {
    .name = "roll",
    .autocast = AUTOCAST_AS_IS,
    .summary = "elements moved round by shifts along dims; without dims, of x flattened",
    .gradient = "dx = roll(g, -shifts)",
    .arity = 1,
    PARAMS(TensorRollArgs, tensor_roll_defaults, roll_fields),
    .shape = roll_shape,
    .forward = roll_forward,
    .backward = roll_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "5 {shifts=[2] dims=[0]}; 3x4 {shifts=[-1 6] dims=[1 0]}; 2x3 {shifts=[4]}; 0x3 {shifts=[1] "
               "dims=[1]}; {shifts=[1]}; 3x4 {shifts=[1 1] dims=[0 0]}",
    .errors = "3 {shifts=[1 2] dims=[0]} ! EVALUE; 3 {shifts=[1] dims=[1]} ! EINDEX; 3 {shifts=[]  dims=[0]} "
              "! EVALUE; {shifts=[1] dims=[0]} ! EINDEX; 3 {shifts=[]} ! EVALUE"
};
REGISTER_OPS(&op_roll);

Tensor *tensor_roll_args(TensorRollArgs a) { return APPLY(&op_roll, &a, a.input); }

/* ---- rot90 ----------------------------------------------------------------------------------- */

const TensorRot90Args tensor_rot90_defaults = { TENSOR_ROT90_DEFAULTS };

static int rot_compose(OpCall *c)
{
    const TensorRot90Args *p = op_params(c);
    Tensor *x = op_input(c, 0);
    const TensorShape dims = p->dims.ndim ? p->dims : DIMS(0, 1);
    if (dims.ndim != 2) return op_fail(c, TENSOR_EVALUE, "%d dimensions given: want 2", dims.ndim);
    int from = call_dim(c, dims.dim[0], shape_of(x)),
        to = from < 0 ? -1 : call_dim(c, dims.dim[1], shape_of(x));
    if (to < 0) return -1;
    if (from == to) return op_fail(c, TENSOR_EINDEX, "dimension %d is named twice", from);
    int turns = ((p->k % 4) + 4) % 4;
    Tensor *y = turns == 0   ? tensor_clone(x)
                : turns == 2 ? tensor_flip(x, DIMS(from, to))
                : turns == 1 ? tensor_transpose(tensor_flip(x, DIMS(to)), from, to)
                             : tensor_flip(tensor_transpose(x, from, to), DIMS(to));
    return op_set_result(c, 0, y);
}

static const OpField rot_fields[] = { OP_OPTION(TensorRot90Args, k, dims), { 0 } };
static const TensorOp op_rot90 = {
    .name = "rot90",
    .autocast = AUTOCAST_AS_IS,
    .summary = "k quarter turns in the plane of two dims, from the first towards the second",
    .gradient = "dx = rot90(g, -k)",
    .arity = 1,
    PARAMS(TensorRot90Args, tensor_rot90_defaults, rot_fields),
    .compose = rot_compose,
    .flags = OP_ANY_DEVICE,
    .samples =
        "2x3; 2x3 {dims=[0 1]}; 2x3 {k=2 dims=[0 1]}; 2x3x4 {k=-1 dims=[0 -1]}; 2x3 {k=4 dims=[1 0]}; 0x3 "
        "{dims=[0 1]}",
    .errors = "2x3 {dims=[0]} ! EVALUE; 2x3 {dims=[0 0]} ! EINDEX; 2x3 {dims=[0 2]} ! EINDEX"
};
REGISTER_OPS(&op_rot90);

Tensor *tensor_rot90_args(TensorRot90Args a) { return APPLY(&op_rot90, &a, a.input); }
