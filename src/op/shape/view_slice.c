/* view_slice.c - views of a part of one dimension: slice, narrow, select.
 *
 *   y_k = x_(start + k step)                  dx = zeros of x's shape with dy at those places
 *
 * That gradient is an op, slice_backward, whose own gradient is the slice.  select is a slice of one without
 * its dimension. */
#include "shape_op.h"

typedef struct SliceParams {
    int dim;
    int64_t start, end, step; /* start and length (in end) after shape has run: see set_range */
    int64_t size;             /* of x in dim: what slice_backward makes */
} SliceParams;

static int64_t bound(int64_t at, int64_t size)
{
    if (at < 0) at += size;
    return at < 0 ? 0 : at > size ? size : at;
}

static int64_t length_of(const SliceParams *p)
{
    return p->end > p->start ? (p->end - p->start - 1) / p->step + 1 : 0;
}

/* ---- slice ----------------------------------------------------------------------------------- */

static int check_dim(OpCall *c, int *dim)
{
    Tensor *x = op_input(c, 0);
    if (x->ndim == 0) return op_fail(c, TENSOR_EINDEX, "[] has no dimension");
    *dim = call_dim(c, *dim, shape_of(x));
    return *dim < 0 ? -1 : 0;
}

static int slice_shape(OpCall *c)
{
    SliceParams *p = op_params_mut(c);
    if (check_dim(c, &p->dim)) return -1;
    if (p->step < 1) return op_fail(c, TENSOR_EVALUE, "by steps of %lld: want 1 or more", (long long)p->step);
    p->size = op_input(c, 0)->shape[p->dim];
    p->start = bound(p->start, p->size), p->end = bound(p->end, p->size);
    return 0;
}

static int slice_forward(OpCall *c)
{
    const SliceParams *p = op_params(c);
    return op_set_result(c, 0, own(new_part(op_input(c, 0), p->dim, p->start, length_of(p), p->step)));
}

static const TensorOp op_slice_backward;

static int slice_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_apply(&op_slice_backward, &dy, 1, op_params(c));
    return dx[0] ? 0 : -1;
}

#define SLICE_LAST "9223372036854775807"
static const OpField slice_fields[] = { OP_FIELD(OP_INT, SliceParams, dim, "0"),
                                        OP_FIELD(OP_I64, SliceParams, start, "0"),
                                        OP_FIELD(OP_I64, SliceParams, end, SLICE_LAST),
                                        OP_FIELD(OP_I64, SliceParams, step, "1"),
                                        { 0 } };
static const TensorOp op_slice = {
    .name = "slice",
    .summary = "x[..., start:end:step, ...] in dim; bounds are clamped, negative ones count from the end",
    .gradient = "dx = zeros with g in the slice",
    .arity = 1,
    .params = sizeof(SliceParams),
    .fields = slice_fields,
    .shape = slice_shape,
    .forward = slice_forward,
    .backward = slice_grad,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .torch = "ops.aten.slice",
    .samples = "5x3 {start=1 end=4}; 2x7 {dim=1 start=0 end=7 step=3}; 6 {start=-3}; 6 {start=-100 end=100 "
               "step=2}; 4 {start=3 end=1}; "
               "2x3x4 {dim=-2 start=1 end=-1}; 0x3 {start=0}; 5 {start=5}",
    .errors = "{start=0} ! EINDEX; 3 {dim=1} ! EINDEX; 3 {step=0} ! EVALUE; 3 {step=-1} ! EVALUE"
};
REGISTER_OP(op_slice);

Tensor *tensor_slice_args(TensorSliceArgs args)
{
    return APPLY(&op_slice, &((SliceParams){ args.dim, args.start, args.end, args.step, 0 }), args.input);
}

/* ---- slice_backward: zeros with a slice set -------------------------------------------------- */

static int embed_shape(OpCall *c)
{
    SliceParams *p = op_params_mut(c);
    Tensor *g = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    if (check_dim(c, &p->dim)) return -1;
    if (p->step < 1 || p->size < 0)
        return op_fail(c, TENSOR_EVALUE, "steps of %lld in a size of %lld", (long long)p->step,
                       (long long)p->size);
    p->start = bound(p->start, p->size), p->end = bound(p->end, p->size);
    if (g->shape[p->dim] != length_of(p))
        return op_fail(c, TENSOR_ESHAPE, "%s in dimension %d: the slice has %lld", S(g), p->dim,
                       (long long)length_of(p));
    for (int d = 0; d < g->ndim; d++) shape[d] = d == p->dim ? p->size : g->shape[d];
    return op_set_output(c, 0, (TensorShape){ g->ndim, shape }, g->dtype);
}

static int embed_forward(OpCall *c)
{
    const SliceParams *p = op_params(c);
    Tensor *y = op_output(c, 0);
    if (raw_fill(y, 0)) return -1;
    Tensor *part = own(new_part(y, p->dim, p->start, length_of(p), p->step));
    return part ? raw_copy(part, op_input(c, 0)) : -1;
}

static int embed_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = tensor_apply(&op_slice, &dy, 1, op_params(c));
    return dx[0] ? 0 : -1;
}

static const OpField embed_fields[] = {
    OP_FIELD(OP_INT, SliceParams, dim, "0"),        OP_FIELD(OP_I64, SliceParams, start, "0"),
    OP_FIELD(OP_I64, SliceParams, end, SLICE_LAST), OP_FIELD(OP_I64, SliceParams, step, "1"),
    OP_FIELD(OP_I64, SliceParams, size, NULL),      { 0 }
};
static const TensorOp op_slice_backward = {
    .name = "slice_backward",
    .summary = "zeros of the given size in dim, where a slice of them is x",
    .gradient = "dx = slice(g)",
    .arity = 1,
    .params = sizeof(SliceParams),
    .fields = embed_fields,
    .shape = embed_shape,
    .forward = embed_forward,
    .backward = embed_backward,
    .flags = OP_ANY_DEVICE,
    .torch = "-",
    .samples = "3x2 {start=1 end=4 size=5}; 2x3 {dim=1 step=3 size=7}; 0x3 {start=2 end=1 size=4}; 2 "
               "{start=-2 size=4}",
    .errors = "3 {start=1 end=3 size=5} ! ESHAPE; 3 {step=0 size=3} ! EVALUE; {size=1} ! EINDEX"
};
REGISTER_OP(op_slice_backward);

Tensor *embed_part(Tensor *g, int dim, int64_t start, int64_t size)
{
    SliceParams p = { dim, start, start + g->shape[dim], 1, size };
    return tensor_apply(&op_slice_backward, &g, 1, &p);
}

/* ---- narrow ---------------------------------------------------------------------------------- */

/* The fields start and end hold start and length until shape has run. */
static int narrow_shape(OpCall *c)
{
    SliceParams *p = op_params_mut(c);
    if (check_dim(c, &p->dim)) return -1;
    int64_t size = op_input(c, 0)->shape[p->dim], start = p->start < 0 ? p->start + size : p->start,
            length = p->end;
    if (length < 0 || start < 0 || start > size || length > size - start)
        return op_fail(c, TENSOR_EINDEX,
                       "%lld elements from %lld on in dimension %d of %s: it does not have them",
                       (long long)length, (long long)p->start, p->dim, S(op_input(c, 0)));
    p->start = start, p->end = start + length, p->step = 1, p->size = size;
    return 0;
}

static const OpField narrow_fields[] = { OP_FIELD(OP_INT, SliceParams, dim, NULL),
                                         OP_FIELD(OP_I64, SliceParams, start, NULL),
                                         { "length", OP_I64, offsetof(SliceParams, end), NULL },
                                         { 0 } };
static const TensorOp op_narrow = { .name = "narrow",
                                    .summary = "length elements of dim from start on",
                                    .gradient = "dx = zeros with g in the slice",
                                    .arity = 1,
                                    .params = sizeof(SliceParams),
                                    .fields = narrow_fields,
                                    .shape = narrow_shape,
                                    .forward = slice_forward,
                                    .backward = slice_grad,
                                    .flags = OP_VIEW | OP_ANY_DEVICE,
                                    .samples =
                                        "5x3 {dim=0 start=1 length=3}; 2x7 {dim=-1 start=-2 length=2}; 3 "
                                        "{dim=0 start=3 length=0}; 3 {dim=0 start=0 length=3}",
                                    .errors = "3 {dim=0 start=2 length=2} ! EINDEX; 3 {dim=0 start=-4 "
                                              "length=1} ! EINDEX; 3 {dim=0 start=0 length=-1} ! EINDEX; "
                                              "{dim=0 start=0 length=1} ! EINDEX" };
REGISTER_OP(op_narrow);

Tensor *tensor_narrow(Tensor *x, int dim, int64_t start, int64_t length)
{
    return APPLY(&op_narrow, &((SliceParams){ dim, start, length, 1, 0 }), x);
}

/* ---- select ---------------------------------------------------------------------------------- */

typedef struct SelectParams {
    int dim;
    int64_t index;
} SelectParams;

static int select_shape(OpCall *c)
{
    SelectParams *p = op_params_mut(c);
    if (check_dim(c, &p->dim)) return -1;
    int64_t size = op_input(c, 0)->shape[p->dim];
    if (p->index < -size || p->index >= size)
        return op_fail(c, TENSOR_EINDEX, "index %lld in dimension %d of %s: want %lld to %lld",
                       (long long)p->index, p->dim, S(op_input(c, 0)), -(long long)size, (long long)size - 1);
    if (p->index < 0) p->index += size;
    return 0;
}

static int select_forward(OpCall *c)
{
    const SelectParams *p = op_params(c);
    return op_set_result(c, 0, own(new_layer(op_input(c, 0), p->dim, p->index)));
}

static int select_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const SelectParams *p = op_params(c);
    Tensor *part = tensor_unsqueeze(dy, p->dim);
    dx[0] = part ? embed_part(part, p->dim, p->index, op_input_shape(c, 0).dim[p->dim]) : NULL;
    return dx[0] ? 0 : -1;
}

static const OpField select_fields[] = { OP_FIELD(OP_INT, SelectParams, dim, NULL),
                                         OP_FIELD(OP_I64, SelectParams, index, NULL),
                                         { 0 } };
static const TensorOp op_select = {
    .name = "select",
    .summary = "x[..., index, ...]: one index of dim, which vanishes",
    .gradient = "dx = zeros with g at the index",
    .arity = 1,
    .params = sizeof(SelectParams),
    .fields = select_fields,
    .shape = select_shape,
    .forward = select_forward,
    .backward = select_backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "5x3 {dim=0 index=1}; 2x3x4 {dim=-1 index=-1}; 3 {dim=0 index=2}; 2x0 {dim=0 index=1}",
    .errors = "3 {dim=0 index=3} ! EINDEX; 3 {dim=0 index=-4} ! EINDEX; {dim=0 index=0} ! EINDEX; 3 {dim=1 "
              "index=0} ! EINDEX; "
              "0x3 {dim=0 index=0} ! EINDEX"
};
REGISTER_OP(op_select);

Tensor *tensor_select(Tensor *x, int dim, int64_t index)
{
    return APPLY(&op_select, &((SelectParams){ dim, index }), x);
}
