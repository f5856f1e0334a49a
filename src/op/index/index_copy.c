/* index_copy.c - slices of one dimension replaced: by those of a source, or by a number.
 *
 *   index_copy   y = x with slice index_k = source_k; the last one wins
 *                dx = dy, 0 where written; dsource = dy there, 0 for losers
 *   index_fill   y = x with slice index_k = value, a number or a tensor of rank 0
 *                dx = dy, 0 where written; dvalue = the sum of dy there
 *
 * Computed first, for each slice of x: whether it is written and by which slice of source.  The rest is a
 * recorded selection between x and slices of source. */
#include "cpu/index/host_index.h"
#include "index_plan.h"

typedef struct FillParams {
    int dim;
    double value;
} FillParams;

/* The same on another device than the CPU, by a fold of the places in index. */
static int settle_there(OpCall *c, int64_t n, TensorShape line, Tensor **written, Tensor **from)
{
    const Tensor *index = op_input(c, 1);
    const IndexPlan plan = { .outer = 1, .n = n, .m = index->numel, .inner = 1, .shared = true };
    Tensor *last = last_writers(c, &plan, index, SHAPE(n));
    if (!last) return -1;
    *written = tensor_reshape(tensor_ge_scalar(last, 0), line);
    *from = tensor_clamp(last, 0, 0x1p62);
    return *written && *from ? 0 : -1;
}

/* Of x's slices in dim: written as a bool of shape [1, ..., n, ..., 1], and from which position of index. */
static int settle(OpCall *c, int *dim, Tensor **written, Tensor **from)
{
    Tensor *x = op_input(c, 0), *index = op_input(c, 1);
    if (index->ndim > 1) return op_fail(c, TENSOR_ESHAPE, "index %s: want a list, one dimension", S(index));
    if (call_index_dtype(c, index) || (*dim = call_dim(c, *dim, shape_of(x))) < 0) return -1;
    int64_t n = x->ndim ? x->shape[*dim] : 1, size[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) size[d] = d == *dim ? n : 1;
    const TensorShape line = { x->ndim, size };
    if (!on_host(x->place)) return settle_there(c, n, line, written, from);
    Tensor *list = own(raw_cast(index, TENSOR_I64));
    *written = zeros_on(line, TENSOR_BOOL, &cpu_place), *from = zeros_on(SHAPE(n), TENSOR_I64, &cpu_place);
    if (!list || !*written || !*from || check_indices(c, list, n)) return -1;
    host_last(list->data, list->numel, (*written)->data, (*from)->data);
    return 0;
}

static int copy_compose(OpCall *c)
{
    int dim = ((const FillParams *)op_params(c))->dim;
    Tensor *x = op_input(c, 0), *index = op_input(c, 1), *src = op_input(c, 2), *written, *from;
    if (settle(c, &dim, &written, &from)) return -1;
    bool fits = src->ndim == x->ndim || (x->ndim == 0 && src->numel == index->numel) ||
                (src->ndim == 0 && x->ndim == 1 && index->numel == 1);
    for (int d = 0; fits && d < x->ndim && d < src->ndim; d++)
        fits = src->shape[d] == (d == dim ? index->numel : x->shape[d]);
    if (!fits)
        return op_fail(
            c, TENSOR_ESHAPE,
            "index %s and source %s for %s: want x's sizes, and as many slices as indices in dimension %d",
            S(index), S(src), S(x), dim);
    if (call_source_dtype(c, src, x)) return -1;
    if (index->numel == 0) return op_set_result(c, 0, tensor_clone(x));
    if (x->ndim == 0 || src->ndim == 0) src = tensor_reshape(src, SHAPE(-1));
    Tensor *picked = tensor_index_select(src, dim, from);
    return op_set_result(c, 0, tensor_where(written, picked ? tensor_reshape(picked, shape_of(x)) : NULL, x));
}

/* The value in x's dtype, whatever its own. */
static int fill_tensor_compose(OpCall *c)
{
    int dim = ((const FillParams *)op_params(c))->dim;
    Tensor *x = op_input(c, 0), *value = op_input(c, 2), *written, *from;
    if (value->ndim) return op_fail(c, TENSOR_ESHAPE, "value %s: want a tensor of rank 0", S(value));
    if (settle(c, &dim, &written, &from)) return -1;
    value = tensor_to(value, (TensorDtype)x->dtype);
    return op_set_result(c, 0, value ? tensor_where(written, value, x) : NULL);
}

static int fill_compose(OpCall *c)
{
    const FillParams *p = op_params(c);
    int dim = p->dim;
    Tensor *written, *from;
    if (settle(c, &dim, &written, &from)) return -1;
    return op_set_result(c, 0, tensor_masked_fill(op_input(c, 0), written, p->value));
}

static const OpField copy_fields[] = { OP_REQUIRED(FillParams, dim), { 0 } };
static const OpField fill_fields[] = { OP_REQUIRED(FillParams, dim, value), { 0 } };
static const TensorOp op_index_copy = {
    .name = "index_copy",
    .autocast = AUTOCAST_CPU_CUDA(PROMOTE, AS_IS),
    .summary = "x with slices of dim replaced by those of a source; the last one wins",
    .arity = 3,
    .gradient = "dx = dy, 0 where written; dsource = dy at the index, 0 for slices that were overwritten",
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(FillParams, copy_fields),
    .compose = copy_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "5x3,4@i64:0..4,4x3 {dim=0}; 2x3x4,2@i64:0..2,2x2x4 {dim=-2}; 3,0@i64:0..0,0 {dim=0}; "
               ",1@i64:0..0, {dim=0}; ,@i64:0..0, {dim=0}; 3,@i64:0..2, {dim=0}; 2x0,2@i64:0..1,2x0 {dim=0}",
    .errors = "5x3,2@i64:5..6,2x3 {dim=0} ! EINDEX; 5x3,2@i64:0..4,3x3 {dim=0} ! ESHAPE; 5x3,2,2x3 {dim=0} ! "
              "EDTYPE; 5x3,2@i64:0..4,2x3@i64 {dim=0} ! EDTYPE"
};
static const TensorOp op_index_fill = {
    .name = "index_fill",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with slices of dim set to a number",
    .arity = 2,
    .gradient = "dx = dy, 0 where written",
    PARAMS_GIVEN(FillParams, fill_fields),
    .compose = fill_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "5x3,4@i64:0..4 {dim=0 value=2}; 2x3x4,2@i64:0..2 {dim=-2 value=-1}; 3,0@i64:0..0 {dim=0 "
               "value=1}; ,1@i64:0..0 {dim=0 value=3}",
    .errors = "5x3,2@i64:5..6 {dim=0 value=1} ! EINDEX; 5x3,2x2@i64:0..4 {dim=0 value=1} ! ESHAPE; 5x3,2 "
              "{dim=0 value=1} ! EDTYPE"
};
static const TensorOp op_index_fill_tensor = {
    .name = "index_fill_tensor",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with slices of dim set to a tensor of rank 0",
    .arity = 3,
    .gradient = "dx = dy, 0 where written; dvalue = the sum of dy there",
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS_GIVEN(FillParams, copy_fields),
    .compose = fill_tensor_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "index_fill",
    .samples =
        "5x3,4@i64:0..4, {dim=0}; 2x3x4,2@i64:0..2, {dim=-2}; 3,0@i64:0..0, {dim=0}; ,1@i64:0..0, {dim=0}; "
        "3x0,2@i64:0..2, {dim=0}; 4@i64,2@i64:0..3,@i64:0..9 {dim=0}",
    .errors = "5x3,2@i64:5..6, {dim=0} ! EINDEX; 5x3,2@i64:0..4,1 {dim=0} ! ESHAPE; 5x3,2, {dim=0} ! EDTYPE; "
              "5x3,2x2@i64:0..4, {dim=0} ! ESHAPE"
};
REGISTER_OPS(&op_index_copy, &op_index_fill, &op_index_fill_tensor);

Tensor *tensor_index_copy(Tensor *x, int dim, Tensor *index, Tensor *source)
{
    return APPLY(&op_index_copy, &((FillParams){ dim, 0 }), x, index, source);
}

Tensor *tensor_index_copy_(Tensor *x, int dim, Tensor *index, Tensor *source)
{
    return APPLY_(&op_index_copy, &((FillParams){ dim, 0 }), x, index, source);
}

Tensor *tensor_index_fill(Tensor *x, int dim, Tensor *index, double value)
{
    return APPLY(&op_index_fill, &((FillParams){ dim, value }), x, index);
}

Tensor *tensor_index_fill_(Tensor *x, int dim, Tensor *index, double value)
{
    return APPLY_(&op_index_fill, &((FillParams){ dim, value }), x, index);
}

Tensor *tensor_index_fill_tensor(Tensor *x, int dim, Tensor *index, Tensor *value)
{
    return APPLY(&op_index_fill_tensor, &((FillParams){ dim, 0 }), x, index, value);
}

Tensor *tensor_index_fill_tensor_(Tensor *x, int dim, Tensor *index, Tensor *value)
{
    return APPLY_(&op_index_fill_tensor, &((FillParams){ dim, 0 }), x, index, value);
}
