/* index.c - what brackets do in Python: x[i, j] with tensors of indices or masks for the leading dimensions.
 *
 *   index      y[k...] = x[i_k, j_k, ...]                    index_put  y = x with y[i_k, j_k, ...] = or += values[k...]
 *   index_copy, index_fill: slices of one dimension replaced
 *
 * The indices become positions in the leading dimensions taken as one, on the host; the rest is index_select, index_add or
 * scatter on the graph.  Here negative indices count from the end, as in PyTorch; a mask stands for its nonzero indices. */
#include "shape_op.h"

typedef struct Rows {
    Tensor *at;                             /* i64: positions in the leading dimensions as one, row-major */
    int leading;                            /* how many of x's dimensions are indexed */
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS];         /* of the indices, broadcast */
    int64_t rows, width;                    /* x as a matrix: [rows, width] */
} Rows;

/* Appends the index of the next dimension, or of several for a mask, as dense i64 tensors on the host. */
static int unpack(OpCall *c, const Tensor *x, Tensor *index, Tensor **list, int *n)
{
    if (index->dtype != TENSOR_BOOL) {
        if (call_index_dtype(c, index)) return -1;
        if (*n == x->ndim) return op_fail(c, TENSOR_EINDEX, "more indices than %s has dimensions", S(x));
        list[*n] = host_copy(index, TENSOR_I64);
        return list[(*n)++] ? 0 : -1;
    }
    bool fits = index->ndim > 0 && *n + index->ndim <= x->ndim;
    for (int d = 0; fits && d < index->ndim; d++) fits = index->shape[d] == x->shape[*n + d];
    if (!fits) return op_fail(c, TENSOR_ESHAPE, "mask %s for %s from dimension %d on: want equal sizes", S(index), S(x), *n);
    Tensor *found = tensor_nonzero(index), *host = found ? host_copy(found, TENSOR_I64) : NULL;
    for (int d = 0; host && d < index->ndim; d++) {
        Tensor *column = own(new_layer(host, 1, d));
        if (!column || !(list[(*n)++] = own(raw_contiguous(column)))) return -1;
    }
    return host ? 0 : -1;
}

static int positions(OpCall *c, const Tensor *x, Tensor *const *list, Rows *r, int64_t *at)
{
    int64_t count = shape_count((TensorShape){ r->ndim, r->shape });
    for (int i = 0; i < r->leading; i++) {
        Tensor *wide = own(new_tensor((TensorShape){ r->ndim, r->shape }, TENSOR_I64, &cpu_place));
        if (!wide || raw_copy(wide, list[i])) return -1;
        const int64_t *value = wide->data;
        for (int64_t k = 0; k < count; k++) {
            int64_t v = value[k] < 0 ? value[k] + x->shape[i] : value[k];
            if (v < 0 || v >= x->shape[i])
                return op_fail(c, TENSOR_EINDEX, "index %lld for dimension %d of %s", (long long)value[k], i, S(x));
            at[k] = (i ? at[k] * x->shape[i] : 0) + v;
        }
    }
    return 0;
}

static int make_rows(OpCall *c, const Tensor *x, int first, Rows *r)
{
    Tensor *list[TENSOR_MAX_DIMS];
    int n = 0;
    for (int i = first; i < op_inputs(c); i++)
        if (unpack(c, x, op_input(c, i), list, &n)) return -1;
    if (n == 0) return op_fail(c, TENSOR_EINDEX, "no index given");
    *r = (Rows){ .leading = n, .rows = 1, .width = 1 };
    for (int i = 0; i < n; i++) {
        int ndim = shape_broadcast((TensorShape){ r->ndim, r->shape }, shape_of(list[i]), r->shape);
        if (ndim < 0) return op_fail(c, TENSOR_ESHAPE, "index %s does not broadcast to the others", S(list[i]));
        r->ndim = ndim;
    }
    for (int d = 0; d < x->ndim; d++) *(d < n ? &r->rows : &r->width) *= x->shape[d];
    if (r->ndim + x->ndim - n > TENSOR_MAX_DIMS) return op_fail(c, TENSOR_ESHAPE, "the result has more than %d dimensions", TENSOR_MAX_DIMS);
    Tensor *host = own(new_tensor(SHAPE(shape_count((TensorShape){ r->ndim, r->shape })), TENSOR_I64, &cpu_place));
    if (!host || positions(c, x, list, r, host->data)) return -1;
    r->at = host;
    if (x->place == &cpu_place) return 0;
    r->at = own(new_tensor(shape_of(host), TENSOR_I64, x->place));
    return r->at ? raw_copy(r->at, host) : -1;
}

/* The indices' shape, then x's dimensions that are not indexed. */
static TensorShape picked_shape(const Tensor *x, const Rows *r, int64_t *dim)
{
    int n = 0;
    for (int d = 0; d < r->ndim; d++) dim[n++] = r->shape[d];
    for (int d = r->leading; d < x->ndim; d++) dim[n++] = x->shape[d];
    return (TensorShape){ n, dim };
}

/* ---- index -------------------------------------------------------------------------------------------------------- */

static int index_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    Rows r;
    int64_t dim[2 * TENSOR_MAX_DIMS];
    if (make_rows(c, x, 1, &r)) return -1;
    Tensor *y = tensor_index_select(tensor_reshape(x, SHAPE(r.rows, r.width)), 0, r.at);
    return op_set_result(c, 0, tensor_reshape(y, picked_shape(x, &r, dim)));
}

static const TensorOp op_index = { .name = "index", .summary = "x[i, j, ...]: elements picked by tensors of indices or masks for the leading dims",
    .gradient = "dx = zeros with g added at the indices",
    .arity = OP_ANY_ARITY, .compose = index_compose, .flags = OP_ANY_DEVICE, .torch = "ops.aten.index",
    .samples = "5x3,4@i64:-5..4; 3x4,6@i64:0..2,6@i64:-4..3; 3x4x2,2x1@i64:0..2,3@i64:0..3; 3x4,3@bool; 3x4,3x4@bool; 3x2,0@i64:0..0; 3x2,@i64:0..2",
    .errors = "3x4,2@i64:3..5 ! EINDEX; 3x4,2@i64:-9..-4 ! EINDEX; 3x4,2@bool ! ESHAPE; 3,2@i64:0..2,2@i64:0..1 ! EINDEX; 3x4 ! EINDEX; 3x4,2 ! EDTYPE; "
              "3x4,2@i64:0..2,3@i64:0..2 ! ESHAPE" };
REGISTER_OP(op_index);

/* x, maybe values, then the indices, as one list of operands. */
static int operands(const char *op, Tensor **in, int n, TensorList indices)
{
    if (indices.n < 1 || indices.n > TENSOR_MAX_DIMS || !indices.at)
        return fail(TENSOR_EINDEX, op, "%d indices: want 1 to %d", indices.n, TENSOR_MAX_DIMS);
    for (int i = 0; i < indices.n; i++) in[n + i] = indices.at[i];
    return n + indices.n;
}

Tensor *tensor_index(Tensor *x, TensorList indices)
{
    Tensor *in[1 + TENSOR_MAX_DIMS] = { x };
    int n = operands("index", in, 1, indices);
    return n < 0 ? NULL : op_apply1(&op_index, in, n, NULL, SITE);
}

/* ---- index_put ------------------------------------------------------------------------------------------------------ */

typedef struct PutParams { bool accumulate; } PutParams;

static int put_compose(OpCall *c)
{
    const PutParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *values = op_inputs(c) > 1 ? op_input(c, 1) : NULL;
    Rows r;
    int64_t dim[2 * TENSOR_MAX_DIMS];
    if (!values) return op_fail(c, TENSOR_EVALUE, "no values given");
    if (make_rows(c, x, 2, &r)) return -1;
    TensorShape flat = { 2, (int64_t[]){ r.at->numel, r.width } };
    Tensor *matrix = tensor_reshape(x, SHAPE(r.rows, r.width)), *v = tensor_reshape(tensor_expand(values, picked_shape(x, &r, dim)), flat);
    Tensor *y = p->accumulate ? tensor_index_add(matrix, 0, r.at, v) : tensor_scatter(matrix, 0, tensor_expand(tensor_unsqueeze(r.at, 1), flat), v);
    return op_set_result(c, 0, tensor_reshape(y, shape_of(x)));
}

static const OpField put_fields[] = { OP_FIELD(OP_BOOL, PutParams, accumulate, "0"), { 0 } };
static const TensorOp op_index_put = { .name = "index_put", .summary = "x with values written, or added, at tensors of indices or masks; the last one wins",
    .gradient = "dx = g, with 0 at the indices unless added; dvalues = g[indices]",
    .arity = OP_ANY_ARITY, .params = sizeof(PutParams), .fields = put_fields, .compose = put_compose, .flags = OP_ANY_DEVICE, .torch = "Tensor.index_put",
    .samples = "5x3,4x3,4@i64:-5..4; 3x4,6,6@i64:0..2,6@i64:-4..3 {accumulate=1}; 3x4x2,2,2x1@i64:0..2,3@i64:0..3; 3x4,,3@bool; 3x4,,3x4@bool {accumulate=1}; "
               "3x2,0x2,0@i64:0..0",
    .errors = "3x4,,2@i64:3..5 ! EINDEX; 3x4,3,2@i64:0..1 ! ESHAPE; 3x4,,2@bool ! ESHAPE; 3x4 ! EVALUE; 3x4, ! EINDEX" };
REGISTER_OP(op_index_put);

Tensor *tensor_index_put_args(TensorIndexPutArgs args)
{
    Tensor *in[2 + TENSOR_MAX_DIMS] = { args.input, args.values };
    int n = operands("index_put", in, 2, args.indices);
    return n < 0 ? NULL : op_apply1(&op_index_put, in, n, &(PutParams){ args.accumulate }, SITE);
}

Tensor *tensor_index_put_(Tensor *x, TensorList indices, Tensor *values, bool accumulate)
{
    Tensor *in[2 + TENSOR_MAX_DIMS] = { x, values };
    int n = operands("index_put", in, 2, indices);
    return n < 0 ? NULL : op_apply_(&op_index_put, in, n, &(PutParams){ accumulate }, SITE);
}

/* ---- index_copy, index_fill ------------------------------------------------------------------------------------------- */

typedef struct FillParams { int dim; double value; } FillParams;

/* The list of indices of dim as an index for each element of those slices. */
static Tensor *spread(OpCall *c, Tensor *x, Tensor *index, int *dim)
{
    int64_t shape[TENSOR_MAX_DIMS], line[TENSOR_MAX_DIMS];
    if (index->ndim > 1) return op_fail(c, TENSOR_ESHAPE, "index %s: want a list, one dimension", S(index)), NULL;
    if (call_index_dtype(c, index) || (*dim = call_dim(c, *dim, shape_of(x))) < 0) return NULL;
    for (int d = 0; d < x->ndim; d++) shape[d] = d == *dim ? index->numel : x->shape[d], line[d] = d == *dim ? index->numel : 1;
    return tensor_expand(tensor_reshape(index, (TensorShape){ x->ndim, line }), (TensorShape){ x->ndim, shape });
}

static int copy_compose(OpCall *c)
{
    int dim = ((const FillParams *)op_params(c))->dim;
    Tensor *x = op_input(c, 0), *src = op_input(c, 2), *index = spread(c, x, op_input(c, 1), &dim);
    if (!index) return -1;
    if (!shape_equal(shape_of(index), shape_of(src)))
        return op_fail(c, TENSOR_ESHAPE, "source %s for %s and index %s: want %s", S(src), S(x), S(op_input(c, 1)), S(index));
    return op_set_result(c, 0, tensor_scatter(x, dim, index, src));
}

static int fill_compose(OpCall *c)
{
    const FillParams *p = op_params(c);
    int dim = p->dim;
    Tensor *x = op_input(c, 0), *index = spread(c, x, op_input(c, 1), &dim);
    return index ? op_set_result(c, 0, tensor_scatter_value(x, dim, index, p->value)) : -1;
}

static const OpField copy_fields[] = { OP_FIELD(OP_INT, FillParams, dim, NULL), { 0 } };
static const OpField fill_fields[] = { OP_FIELD(OP_INT, FillParams, dim, NULL), OP_FIELD(OP_DOUBLE, FillParams, value, NULL), { 0 } };
static const TensorOp op_index_copy = { .name = "index_copy", .summary = "x with slices of dim replaced by those of a source; the last one wins",
    .gradient = "dx = g with 0 in the slices, dsource = index_select(g)", .arity = 3,
    .params = sizeof(FillParams), .fields = copy_fields, .compose = copy_compose, .flags = OP_ANY_DEVICE,
    .samples = "5x3,4@i64:0..4,4x3 {dim=0}; 2x3x4,2@i64:0..2,2x2x4 {dim=-2}; 3,0@i64:0..0,0 {dim=0}; ,1@i64:0..0, {dim=0}",
    .errors = "5x3,2@i64:5..6,2x3 {dim=0} ! EINDEX; 5x3,2@i64:0..4,3x3 {dim=0} ! ESHAPE; 5x3,2,2x3 {dim=0} ! EDTYPE" };
static const TensorOp op_index_fill = { .name = "index_fill", .summary = "x with slices of dim set to a number",
    .gradient = "dx = g with 0 in the slices", .arity = 2,
    .params = sizeof(FillParams), .fields = fill_fields, .compose = fill_compose, .flags = OP_ANY_DEVICE,
    .samples = "5x3,4@i64:0..4 {dim=0 value=2}; 2x3x4,2@i64:0..2 {dim=-2 value=-1}; 3,0@i64:0..0 {dim=0 value=1}; ,1@i64:0..0 {dim=0 value=3}",
    .errors = "5x3,2@i64:5..6 {dim=0 value=1} ! EINDEX; 5x3,2x2@i64:0..4 {dim=0 value=1} ! ESHAPE; 5x3,2 {dim=0 value=1} ! EDTYPE" };
REGISTER_OP(op_index_copy);
REGISTER_OP(op_index_fill);

Tensor *tensor_index_copy(Tensor *x, int dim, Tensor *index, Tensor *source) { return APPLY(&op_index_copy, &((FillParams){ dim, 0 }), x, index, source); }
Tensor *tensor_index_fill(Tensor *x, int dim, Tensor *index, double value) { return APPLY(&op_index_fill, &((FillParams){ dim, value }), x, index); }
