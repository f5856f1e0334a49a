/* flip.c - elements in another order along some dimensions: flip, roll, rot90.
 *
 *   flip   y_i = x_(n - 1 - i) in each dim named; its own gradient
 *   roll   y_((i + shift) mod n) = x_i; the gradient rolls back
 *   rot90  a quarter turn k times, made of flip and transpose */
#include "shape_op.h"

/* ---- flip ------------------------------------------------------------------------------------ */

typedef struct FlipParams {
    OpDims dims;
} FlipParams;

static int flip_shape(OpCall *c)
{
    FlipParams *p = op_params_mut(c);
    TensorShape shape = shape_of(op_input(c, 0));
    for (int i = 0; i < p->dims.n; i++) {
        p->dims.at[i] = call_dim(c, p->dims.at[i], shape);
        if (p->dims.at[i] < 0) return -1;
        for (int k = 0; k < i; k++)
            if (p->dims.at[k] == p->dims.at[i])
                return op_fail(c, TENSOR_EINDEX, "dimension %lld is named twice", (long long)p->dims.at[i]);
    }
    return op_same_shape(c);
}

static int flip_forward(OpCall *c)
{
    const FlipParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (x->numel == 0) return 0;
    int64_t stride[TENSOR_MAX_DIMS], offset = 0;
    for (int d = 0; d < x->ndim; d++) stride[d] = x->stride[d];
    for (int i = 0; i < p->dims.n && x->ndim; i++) {
        int64_t d = p->dims.at[i];
        offset += (x->shape[d] - 1) * x->stride[d];
        stride[d] = -x->stride[d];
    }
    Tensor *backwards = own(new_view(x, x->ndim, x->shape, stride, offset));
    return backwards ? raw_copy(op_output(c, 0), backwards) : -1;
}

static int flip_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const FlipParams *p = op_params(c);
    dx[0] = tensor_flip(dy, dims_shape(&p->dims));
    return dx[0] ? 0 : -1;
}

static const OpField flip_fields[] = { OP_FIELD(OP_DIMS, FlipParams, dims, NULL), { 0 } };
static const TensorOp op_flip = {
    .name = "flip",
    .summary = "the order of elements turned round in dims",
    .gradient = "dx = flip(g)",
    .arity = 1,
    .params = sizeof(FlipParams),
    .fields = flip_fields,
    .shape = flip_shape,
    .forward = flip_forward,
    .backward = flip_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "5 {dims=[0]}; 2x3x4 {dims=[0 -1]}; 2x3 {dims=[]}; {dims=[]}; 0x3 {dims=[1]}; {dims=[0]}",
    .errors = "2x3 {dims=[2]} ! EINDEX; 2x3 {dims=[1 -1]} ! EINDEX"
};
REGISTER_OP(op_flip);

Tensor *tensor_flip(Tensor *x, TensorShape dims)
{
    FlipParams p;
    return shape_to_dims("flip", dims, &p.dims) ? NULL : APPLY(&op_flip, &p, x);
}

/* ---- roll ------------------------------------------------------------------------------------ */

typedef struct RollParams {
    OpDims shifts, dims;
} RollParams;

static int roll_shape(OpCall *c)
{
    RollParams *p = op_params_mut(c);
    TensorShape shape = shape_of(op_input(c, 0));
    bool flat = p->dims.n == 0 && p->shifts.n == 1;
    if (!flat && p->dims.n != p->shifts.n)
        return op_fail(c, TENSOR_EVALUE, "%d shifts for %d dimensions: want as many, or one shift alone",
                       p->shifts.n, p->dims.n);
    for (int i = 0; i < p->dims.n; i++)
        if ((p->dims.at[i] = call_dim(c, p->dims.at[i], shape)) < 0) return -1;
    return op_same_shape(c);
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
    const RollParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *y = op_output(c, 0);
    if (x->numel == 0) return 0;
    if (x->ndim == 0 || p->shifts.n == 0) return raw_copy(y, x);
    if (p->dims.n == 0) {
        Tensor *dense = own(raw_contiguous(x));
        Tensor *flat = dense ? own(new_view(dense, 1, &x->numel, (int64_t[]){ 1 }, 0)) : NULL;
        Tensor *line = own(new_view(y, 1, &x->numel, (int64_t[]){ 1 }, 0));
        return flat && line ? roll_one(line, flat, 0, p->shifts.at[0]) : -1;
    }
    for (int i = 0; i < p->dims.n; i++) {
        bool last = i == p->dims.n - 1;
        Tensor *to = last ? y : own(new_tensor(shape_of(x), x->dtype, x->place));
        if (!to || roll_one(to, x, (int)p->dims.at[i], p->shifts.at[i])) return -1;
        x = to;
    }
    return 0;
}

static int roll_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    RollParams back = *(const RollParams *)op_params(c);
    for (int i = 0; i < back.shifts.n; i++)
        back.shifts.at[i] = back.shifts.at[i] == INT64_MIN ? INT64_MIN : -back.shifts.at[i];
    dx[0] = tensor_roll(dy, dims_shape(&back.shifts), dims_shape(&back.dims));
    return dx[0] ? 0 : -1;
}

static const OpField roll_fields[] = { OP_FIELD(OP_DIMS, RollParams, shifts, NULL),
                                       OP_FIELD(OP_DIMS, RollParams, dims, ""),
                                       { 0 } };
static const TensorOp op_roll = {
    .name = "roll",
    .summary = "elements moved round by shifts along dims; without dims, of x flattened",
    .gradient = "dx = roll(g, -shifts)",
    .arity = 1,
    .params = sizeof(RollParams),
    .fields = roll_fields,
    .shape = roll_shape,
    .forward = roll_forward,
    .backward = roll_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "5 {shifts=[2] dims=[0]}; 3x4 {shifts=[-1 6] dims=[1 0]}; 2x3 {shifts=[4]}; 0x3 {shifts=[1] "
               "dims=[1]}; {shifts=[1]}; "
               "3x4 {shifts=[1 1] dims=[0 0]}",
    .errors = "3 {shifts=[1 2] dims=[0]} ! EVALUE; 3 {shifts=[1] dims=[1]} ! EINDEX; 3 {shifts=[]  dims=[0]} "
              "! EVALUE"
};
REGISTER_OP(op_roll);

Tensor *tensor_roll(Tensor *x, TensorShape shifts, TensorShape dims)
{
    RollParams p;
    return shape_to_dims("roll", shifts, &p.shifts) || shape_to_dims("roll", dims, &p.dims)
               ? NULL
               : APPLY(&op_roll, &p, x);
}

/* ---- rot90 ----------------------------------------------------------------------------------- */

typedef struct RotParams {
    int k;
    OpDims dims;
} RotParams;

static int rot_compose(OpCall *c)
{
    const RotParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (p->dims.n != 2) return op_fail(c, TENSOR_EVALUE, "%d dimensions given: want 2", p->dims.n);
    int from = call_dim(c, p->dims.at[0], shape_of(x)),
        to = from < 0 ? -1 : call_dim(c, p->dims.at[1], shape_of(x));
    if (to < 0) return -1;
    if (from == to) return op_fail(c, TENSOR_EINDEX, "dimension %d is named twice", from);
    int turns = ((p->k % 4) + 4) % 4;
    Tensor *y = turns == 0   ? tensor_clone(x)
                : turns == 2 ? tensor_flip(x, DIMS(from, to))
                : turns == 1 ? tensor_transpose(tensor_flip(x, DIMS(to)), from, to)
                             : tensor_flip(tensor_transpose(x, from, to), DIMS(to));
    return op_set_result(c, 0, y);
}

static const OpField rot_fields[] = { OP_FIELD(OP_INT, RotParams, k, "1"),
                                      OP_FIELD(OP_DIMS, RotParams, dims, NULL),
                                      { 0 } };
static const TensorOp op_rot90 = {
    .name = "rot90",
    .summary = "k quarter turns in the plane of two dims, from the first towards the second",
    .gradient = "dx = rot90(g, -k)",
    .arity = 1,
    .params = sizeof(RotParams),
    .fields = rot_fields,
    .compose = rot_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "2x3 {dims=[0 1]}; 2x3 {k=2 dims=[0 1]}; 2x3x4 {k=-1 dims=[0 -1]}; 2x3 {k=4 dims=[1 0]}; 0x3 "
               "{dims=[0 1]}",
    .errors = "2x3 {dims=[0]} ! EVALUE; 2x3 {dims=[0 0]} ! EINDEX; 2x3 {dims=[0 2]} ! EINDEX"
};
REGISTER_OP(op_rot90);

Tensor *tensor_rot90(Tensor *x, int k, TensorShape dims)
{
    RotParams p = { .k = k };
    return shape_to_dims("rot90", dims, &p.dims) ? NULL : APPLY(&op_rot90, &p, x);
}
