/* embedding.c - rows of a table looked up by index; one_hot, which is a row of the identity.
 *
 *   y[..., :] = weight[index[...], :]
 *   dweight = embedding_backward(dy): zeros with row index += dy, in order
 *
 * Row padding_idx gets no gradient, in second derivatives too.  scale_grad_by_freq divides a row's gradient
 * by its count in index.  max_norm is not recorded: selected rows are used as scaled to it, and after the op
 * succeeded they are scaled in the table. */
#include <math.h>
#include "cpu/index/host_index.h"
#include "embedding.h"
#include "index_plan.h"

const TensorEmbeddingArgs tensor_embedding_defaults = { TENSOR_EMBEDDING_DEFAULTS };
const TensorOneHotArgs tensor_one_hot_defaults = { TENSOR_ONE_HOT_DEFAULTS };

typedef struct PlaceParams {
    int64_t rows; /* of the table that embedding_backward makes */
    int64_t padding_idx;
    bool scale_grad_by_freq;
} PlaceParams;
static const PlaceParams place_defaults = { .padding_idx = TENSOR_NO_PADDING };

static IndexPlan plan_of(const Tensor *index, int64_t rows, int64_t width)
{
    return (IndexPlan){ .dim = 0, .outer = 1, .n = rows, .m = index->numel, .inner = width, .shared = true };
}

/* ---- max_norm -------------------------------------------------------------------------------- */

Tensor *embedding_held(Tensor *rows, double max_norm, double norm_type)
{
    const bool was = tensor_set_grad_enabled(false);
    Tensor *norm = tensor_norm(rows, .p = norm_type, .dim = 1, .keepdim = true);
    Tensor *scale = norm ? tensor_div(tensor_full_like(norm, max_norm), tensor_add_scalar(norm, 1e-7)) : NULL;
    Tensor *held =
        scale
            ? tensor_mul(rows, tensor_where(tensor_gt_scalar(norm, max_norm), scale, tensor_ones_like(scale)))
            : NULL;
    tensor_set_grad_enabled(was);
    return held;
}

int embedding_check_norm(OpCall *c, double max_norm)
{
    return max_norm >= 0 ? 0 : op_fail(c, TENSOR_EVALUE, "max_norm = %g: want 0 (none) or more", max_norm);
}

/* The rows that index names, each once and in order; on another device than the CPU as index names them:
 * equal ones are written with equal values. */
static Tensor *rows_named(Tensor *index, int64_t rows)
{
    if (!on_host(index->place)) return tensor_reshape(tensor_to(index, TENSOR_I64), SHAPE(-1));
    Tensor *host = own(raw_cast(index, TENSOR_I64)), *named = zeros_on(SHAPE(rows), TENSOR_BOOL, &cpu_place),
           *last = zeros_on(SHAPE(rows), TENSOR_I64, &cpu_place);
    if (!host || !named || !last) return NULL;
    host_last(host->data, host->numel, named->data, last->data);
    Tensor *found = tensor_nonzero(named);
    return found ? tensor_reshape(found, SHAPE(-1)) : NULL;
}

Tensor *embedding_renorm(Tensor *y, Tensor *weight, Tensor *index, double max_norm, double norm_type)
{
    if (!y || max_norm == 0) return y;
    const TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    Tensor *list = rows_named(index, weight->shape[0]);
    Tensor *rows = list ? embedding_held(tensor_index_select(weight, 0, list), max_norm, norm_type) : NULL;
    Tensor *written = rows ? tensor_index_put_(weight, TENSORS(list), rows) : NULL;
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return written ? y : NULL;
}

/* ---- embedding ------------------------------------------------------------------------------- */

static int embedding_shape(OpCall *c)
{
    TensorEmbeddingArgs *p = op_params_mut(c);
    Tensor *index = op_input(c, 0), *weight = op_input(c, 1);
    int64_t shape[TENSOR_MAX_DIMS];
    if (call_index_dtype(c, index) || embedding_check_norm(c, p->max_norm)) return -1;
    if (weight->ndim != 2) return op_fail(c, TENSOR_ESHAPE, "the table %s: want [rows, width]", S(weight));
    if (index->ndim == TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "index %s has %d dimensions already", S(index), TENSOR_MAX_DIMS);
    const int64_t rows = weight->shape[0];
    if (p->padding_idx != TENSOR_NO_PADDING) {
        if (p->padding_idx < -rows || p->padding_idx >= rows)
            return op_fail(c, TENSOR_EINDEX, "padding_idx %lld for a table of %lld rows: want one of them",
                           (long long)p->padding_idx, (long long)rows);
        if (p->padding_idx < 0) p->padding_idx += rows;
    }
    for (int d = 0; d < index->ndim; d++) shape[d] = index->shape[d];
    shape[index->ndim] = weight->shape[1];
    return op_set_output(c, 0, (TensorShape){ index->ndim + 1, shape }, (TensorDtype)weight->dtype);
}

static int embedding_forward(OpCall *c)
{
    const TensorEmbeddingArgs *p = op_params(c);
    Tensor *index = op_input(c, 0), *weight = own(raw_contiguous(op_input(c, 1))), *y = op_output(c, 0);
    if (!weight) return -1;
    IndexPlan plan = plan_of(index, weight->shape[0], weight->shape[1]);
    if (run_gather(c, &plan, weight, index, y)) return -1;
    if (p->max_norm == 0 || y->numel == 0) return 0;
    Tensor *held =
        embedding_held(tensor_reshape(y, SHAPE(index->numel, weight->shape[1])), p->max_norm, p->norm_type);
    held = held ? tensor_reshape(held, shape_of(y)) : NULL;
    return held ? raw_copy(y, held) : -1;
}

static const TensorOp op_embedding_backward;

static int embedding_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorEmbeddingArgs *p = op_params(c);
    const PlaceParams place = { op_input_shape(c, 1).dim[0], p->padding_idx, p->scale_grad_by_freq };
    Tensor *index = op_saved(c, 0);
    dx[1] = index ? tensor_apply(&op_embedding_backward, (Tensor *[]){ index, dy }, 2, &place) : NULL;
    return dx[1] ? 0 : -1;
}

static const OpField embedding_fields[] = {
    OP_OPTION(TensorEmbeddingArgs, padding_idx, max_norm, norm_type, scale_grad_by_freq), { 0 }
};
static const TensorOp op_embedding = {
    .name = "embedding",
    .autocast = AUTOCAST_AS_IS,
    .summary = "rows of a table by index; padding_idx gets no gradient",
    .arity = 2,
    .gradient = "dweight = zeros with dy added at the rows; 0 at padding_idx",
    .keep = KEEP_INPUT(0),
    .no_grad_inputs = KEEP_INPUT(0),
    PARAMS(TensorEmbeddingArgs, tensor_embedding_defaults, embedding_fields),
    .shape = embedding_shape,
    .forward = embedding_forward,
    .backward = embedding_grad,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.embedding",
    .samples =
        "2x3@i64:0..4,5x4; 6@i64:0..4,5x3; @i64:0..4,5x2; 0@i64:0..0,5x2; 2@i64:0..2,3x0; 4@i32:0..1,2x3",
    .errors = "2@i64:5..9,5x4 ! EINDEX; 2@i64:-3..-1,5x4 ! EINDEX; 2@i64:0..1,5 ! ESHAPE; 2,5x4 ! EDTYPE; "
              "2@i64:0..4,5x4 {padding_idx=5} ! EINDEX; 2@i64:0..4,5x4 {max_norm=-1} ! EVALUE; "
              "2@i64:0..4,5x4 {max_norm=nan} ! EVALUE"
};
REGISTER_OPS(&op_embedding);

Tensor *tensor_embedding_args(TensorEmbeddingArgs a)
{
    return embedding_renorm(APPLY(&op_embedding, &a, a.input, a.weight), a.weight, a.input, a.max_norm,
                            a.norm_type);
}

/* ---- embedding_backward ---------------------------------------------------------------------- */

static int place_shape(OpCall *c)
{
    const PlaceParams *p = op_params(c);
    Tensor *index = op_input(c, 0), *g = op_input(c, 1);
    if (call_index_dtype(c, index)) return -1;
    bool fits = g->ndim == index->ndim + 1;
    for (int d = 0; fits && d < index->ndim; d++) fits = g->shape[d] == index->shape[d];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "index %s with %s: want a row for each index", S(index), S(g));
    return op_set_output(c, 0, SHAPE(p->rows, g->shape[g->ndim - 1]), (TensorDtype)g->dtype);
}

/* How often each index is there. */
static Tensor *frequency_here(Tensor *index, int64_t rows)
{
    Tensor *list = own(raw_cast(index, TENSOR_I64)), *count = zeros_on(SHAPE(rows), TENSOR_I64, &cpu_place);
    Tensor *each = own(new_tensor(shape_of(index), TENSOR_F64, &cpu_place));
    if (!list || !count || !each) return NULL;
    host_frequency(list->data, list->numel, rows, count->data,
                   each->data); /* what is outside, adding refuses */
    return each;
}

static Tensor *frequency_there(OpCall *c, const Tensor *index, int64_t rows)
{
    Tensor *count = zeros_on(SHAPE(rows), TENSOR_F64, index->place),
           *ones = own(new_tensor(SHAPE(index->numel), TENSOR_F64, index->place)),
           *each = own(new_tensor(shape_of(index), TENSOR_F64, index->place));
    const IndexPlan plan = plan_of(index, rows, 1);
    if (!count || !ones || !each || raw_fill(ones, 1) || run_scatter_add(c, &plan, ones, index, count) ||
        run_gather(c, &plan, count, index, each))
        return NULL;
    return each;
}

/* g with each row divided by that, halves in f32; on the graph. */
static Tensor *by_frequency(OpCall *c, Tensor *index, Tensor *g, int64_t rows)
{
    Tensor *each = on_host(g->place) ? frequency_here(index, rows) : frequency_there(c, index, rows);
    each = each ? own(raw_cast(each, g->dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32)) : NULL;
    return each ? tensor_div(g, tensor_unsqueeze(each, -1)) : NULL;
}

static int place_forward(OpCall *c)
{
    const PlaceParams *p = op_params(c);
    Tensor *index = op_input(c, 0), *g = op_input(c, 1), *y = op_output(c, 0);
    if (p->scale_grad_by_freq && p->rows) g = by_frequency(c, index, g, p->rows);
    g = g ? own(raw_contiguous(g)) : NULL;
    Tensor *sum = g && g->dtype != y->dtype ? own(new_tensor(shape_of(y), g->dtype, y->place)) : y;
    if (!g || !sum || raw_fill(sum, 0)) return -1;
    IndexPlan plan = plan_of(index, p->rows, y->shape[1]);
    if (run_scatter_add(c, &plan, g, index, sum) || (sum != y && raw_copy(y, sum))) return -1;
    if (p->padding_idx < 0 || p->padding_idx >= p->rows) return 0;
    Tensor *row = own(new_layer(y, 0, p->padding_idx));
    return row ? raw_fill(row, 0) : -1;
}

static int place_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    const PlaceParams *p = op_params(c);
    Tensor *index = op_saved(c, 0);
    dx[1] = index ? tensor_embedding(index, dy) : NULL;
    if (dx[1] && p->scale_grad_by_freq && p->rows)
        dx[1] = tensor_to(by_frequency(c, index, dx[1], p->rows), (TensorDtype)dy->dtype);
    if (!dx[1] || p->padding_idx < 0) return dx[1] ? 0 : -1;
    Tensor *padded = tensor_eq_scalar(index, (double)p->padding_idx);
    dx[1] = padded ? tensor_masked_fill(dx[1], tensor_unsqueeze(padded, -1), 0) : NULL;
    return dx[1] ? 0 : -1;
}

static const OpField place_fields[] = { OP_REQUIRED(PlaceParams, rows),
                                        OP_OPTION(PlaceParams, padding_idx, scale_grad_by_freq),
                                        { 0 } };
static const TensorOp op_embedding_backward = {
    .name = "embedding_backward",
    .autocast = AUTOCAST_AS_IS,
    .summary = "zeros of [rows, width] with rows added at the index, but at padding_idx",
    .gradient = "dx = the rows of dy, 0 at padding_idx",
    .arity = 2,
    .keep = KEEP_INPUT(0),
    .no_grad_inputs = KEEP_INPUT(0),
    PARAMS(PlaceParams, place_defaults, place_fields),
    .shape = place_shape,
    .forward = place_forward,
    .backward = place_grad,
    .flags = OP_ANY_DEVICE,
    .torch = "-",
    .samples = "2x3@i64:0..4,2x3x4 {rows=5}; 6@i64:0..4,6x3 {rows=5 padding_idx=2}; 7@i64:0..3,7x2 {rows=4 "
               "scale_grad_by_freq=1}; @i64:0..1,3 {rows=2}; 0@i64:0..0,0x2 {rows=3}",
    .errors = "2@i64:5..9,2x4 {rows=5} ! EINDEX; 2@i64:0..1,3x4 {rows=5} ! ESHAPE; 2@i64:0..1,2x4 {rows=-1} "
              "! ESHAPE"
};
REGISTER_OPS(&op_embedding_backward);

/* ---- one_hot --------------------------------------------------------------------------------- */

static int one_hot_shape(OpCall *c)
{
    TensorOneHotArgs *p = op_params_mut(c);
    Tensor *index = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    if (call_index_dtype(c, index)) return -1;
    if (index->ndim == TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "index %s has %d dimensions already", S(index), TENSOR_MAX_DIMS);
    if (p->num_classes < -1 || (p->num_classes < 1 && (index->numel == 0 || p->num_classes == 0)))
        return op_fail(c, TENSOR_EVALUE, "%lld classes for %s: want 1 or more%s", (long long)p->num_classes,
                       S(index),
                       p->num_classes == -1 ? " where there is no index to count them by"
                                            : ", or -1 for the largest index plus one");
    if (p->num_classes == -1) {
        Tensor *most = tensor_max(tensor_to(index, TENSOR_I64));
        if (!most) return -1;
        p->num_classes = (int64_t)tensor_item(most) + 1;
        if (tensor_error_code()) return -1;
        if (p->num_classes < 0) p->num_classes = 0;
    }
    for (int d = 0; d < index->ndim; d++) shape[d] = index->shape[d];
    shape[index->ndim] = p->num_classes;
    return op_set_output(c, 0, (TensorShape){ index->ndim + 1, shape }, TENSOR_I64);
}

static int one_hot_forward(OpCall *c)
{
    const TensorOneHotArgs *p = op_params(c);
    Tensor *index = op_input(c, 0), *y = op_output(c, 0),
           *ones = own(new_tensor(shape_of(index), TENSOR_I64, index->place));
    if (!ones || raw_fill(ones, 1) || raw_fill(y, 0)) return -1;
    IndexPlan plan = { .dim = index->ndim, .outer = index->numel, .n = p->num_classes, .m = 1, .inner = 1 };
    return run_scatter_add(c, &plan, ones, index, y);
}

static const OpField one_hot_fields[] = { OP_OPTION(TensorOneHotArgs, num_classes), { 0 } };
static const TensorOp op_one_hot = {
    .name = "one_hot",
    .autocast = AUTOCAST_AS_IS,
    .summary = "i64: 1 at the index along a new last dimension, 0 elsewhere",
    .arity = 1,
    PARAMS(TensorOneHotArgs, tensor_one_hot_defaults, one_hot_fields),
    .shape = one_hot_shape,
    .forward = one_hot_forward,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .torch = "nn.functional.one_hot",
    .samples =
        "5@i64:0..3 {num_classes=4}; 2x3@i64:0..3; @i64:0..2 {num_classes=3}; 0@i64:0..0 {num_classes=2}",
    .errors = "3@i64:4..5 {num_classes=4} ! EINDEX; 3@i64:-2..-1 {num_classes=4} ! EINDEX; 3 ! EDTYPE; "
              "0@i64:0..0 ! EVALUE; 3@i64:0..1 {num_classes=0} ! EVALUE"
};
REGISTER_OPS(&op_one_hot);

Tensor *tensor_one_hot_args(TensorOneHotArgs args) { return APPLY(&op_one_hot, &args, args.input); }
