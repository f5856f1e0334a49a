/* embedding.c - rows of a table looked up by index; one_hot, which is a row of the identity.
 *
 *   y[..., :] = weight[index[...], :]        dweight = embedding_backward(dy): zeros with row index += dy, in order
 *
 * Rows picked at padding_idx give no gradient: neither the table's row gets one, nor do its second derivatives see it. */
#include "shape_op.h"

typedef struct EmbeddingParams {
    int64_t padding_idx, rows;              /* rows: of the table that embedding_backward makes */
} EmbeddingParams;

static IndexPlan plan_of(const Tensor *index, int64_t rows, int64_t width)
{
    return (IndexPlan){ .dim = 0, .outer = 1, .n = rows, .m = index->numel, .inner = width, .shared = true };
}

/* ---- embedding ------------------------------------------------------------------------------------------------- */

static int embedding_shape(OpCall *c)
{
    EmbeddingParams *p = op_params_mut(c);
    Tensor *index = op_input(c, 0), *weight = op_input(c, 1);
    int64_t shape[TENSOR_MAX_DIMS];
    if (call_index_dtype(c, index)) return -1;
    if (weight->ndim != 2) return op_fail(c, TENSOR_ESHAPE, "the table %s: want [rows, width]", S(weight));
    if (index->ndim == TENSOR_MAX_DIMS) return op_fail(c, TENSOR_ESHAPE, "index %s has %d dimensions already", S(index), TENSOR_MAX_DIMS);
    p->rows = weight->shape[0];
    if (p->padding_idx != TENSOR_NO_PADDING) {
        if (p->padding_idx < -p->rows || p->padding_idx >= p->rows)
            return op_fail(c, TENSOR_EINDEX, "padding_idx %lld for a table of %lld rows", (long long)p->padding_idx, (long long)p->rows);
        if (p->padding_idx < 0) p->padding_idx += p->rows;
    }
    for (int d = 0; d < index->ndim; d++) shape[d] = index->shape[d];
    shape[index->ndim] = weight->shape[1];
    return op_set_output(c, 0, (TensorShape){ index->ndim + 1, shape }, (TensorDtype)weight->dtype);
}

static int embedding_forward(OpCall *c)
{
    Tensor *index = op_input(c, 0), *weight = own(raw_contiguous(op_input(c, 1)));
    if (!weight) return -1;
    IndexPlan plan = plan_of(index, weight->shape[0], weight->shape[1]);
    return run_gather(c, &plan, weight, index, op_output(c, 0));
}

static const TensorOp op_embedding_backward;

static int embedding_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *index = op_saved(c, 0);
    dx[1] = index ? tensor_apply(&op_embedding_backward, (Tensor *[]){ index, dy }, 2, op_params(c)) : NULL;
    return dx[1] ? 0 : -1;
}

#define NO_PADDING "-9223372036854775808"
static const OpField embedding_fields[] = { OP_FIELD(OP_I64, EmbeddingParams, padding_idx, NO_PADDING), { 0 } };
static const TensorOp op_embedding = { .name = "embedding", .summary = "rows of a table by index; padding_idx gets no gradient",
    .gradient = "dw = zeros with g added at the rows of the index, but at padding_idx", .arity = 2,
    .keep = KEEP_INPUT(0), .no_grad_inputs = KEEP_INPUT(0), .params = sizeof(EmbeddingParams), .fields = embedding_fields, .shape = embedding_shape,
    .forward = embedding_forward, .backward = embedding_grad, .flags = OP_ANY_DEVICE, .torch = "nn.functional.embedding",
    .samples = "2x3@i64:0..4,5x4; 6@i64:0..4,5x3; @i64:0..4,5x2; 0@i64:0..0,5x2; 2@i64:0..2,3x0; 4@i32:0..1,2x3",
    .errors = "2@i64:5..9,5x4 ! EINDEX; 2@i64:-3..-1,5x4 ! EINDEX; 2@i64:0..1,5 ! ESHAPE; 2,5x4 ! EDTYPE; 2@i64:0..4,5x4 {padding_idx=5} ! EINDEX" };
REGISTER_OP(op_embedding);

Tensor *tensor_embedding_args(TensorEmbeddingArgs args)
{
    return APPLY(&op_embedding, &((EmbeddingParams){ args.padding_idx, 0 }), args.input, args.weight);
}

/* ---- embedding_backward -------------------------------------------------------------------------------------------- */

static int place_shape(OpCall *c)
{
    const EmbeddingParams *p = op_params(c);
    Tensor *index = op_input(c, 0), *g = op_input(c, 1);
    if (call_index_dtype(c, index)) return -1;
    bool fits = g->ndim == index->ndim + 1;
    for (int d = 0; fits && d < index->ndim; d++) fits = g->shape[d] == index->shape[d];
    if (!fits) return op_fail(c, TENSOR_ESHAPE, "index %s with %s: want a row for each index", S(index), S(g));
    return op_set_output(c, 0, SHAPE(p->rows, g->shape[g->ndim - 1]), (TensorDtype)g->dtype);
}

static int place_forward(OpCall *c)
{
    const EmbeddingParams *p = op_params(c);
    Tensor *index = op_input(c, 0), *g = own(raw_contiguous(op_input(c, 1))), *y = op_output(c, 0);
    if (!g || raw_fill(y, 0)) return -1;
    IndexPlan plan = plan_of(index, p->rows, y->shape[1]);
    if (run_scatter_add(c, &plan, g, index, y)) return -1;
    if (p->padding_idx < 0 || p->padding_idx >= p->rows) return 0;
    Tensor *row = own(new_layer(y, 0, p->padding_idx));
    return row ? raw_fill(row, 0) : -1;
}

static int place_grad(OpCall *c, Tensor *dy, Tensor **dx)
{
    const EmbeddingParams *p = op_params(c);
    Tensor *index = op_saved(c, 0);
    dx[1] = index ? tensor_embedding(index, dy) : NULL;
    if (!dx[1] || p->padding_idx < 0) return dx[1] ? 0 : -1;
    Tensor *padded = tensor_eq_scalar(index, (double)p->padding_idx);
    dx[1] = padded ? tensor_masked_fill(dx[1], tensor_unsqueeze(padded, -1), 0) : NULL;
    return dx[1] ? 0 : -1;
}

static const OpField place_fields[] = { OP_FIELD(OP_I64, EmbeddingParams, padding_idx, NO_PADDING), OP_FIELD(OP_I64, EmbeddingParams, rows, NULL), { 0 } };
static const TensorOp op_embedding_backward = { .name = "embedding_backward", .summary = "zeros of [rows, width] with rows added at the index, but at padding_idx",
    .gradient = "dx = embedding(index, g)",
    .arity = 2, .keep = KEEP_INPUT(0), .no_grad_inputs = KEEP_INPUT(0), .params = sizeof(EmbeddingParams), .fields = place_fields, .shape = place_shape,
    .forward = place_forward, .backward = place_grad, .flags = OP_ANY_DEVICE, .torch = "-",
    .samples = "2x3@i64:0..4,2x3x4 {rows=5}; 6@i64:0..4,6x3 {rows=5 padding_idx=2}; @i64:0..1,3 {rows=2}; 0@i64:0..0,0x2 {rows=3}",
    .errors = "2@i64:5..9,2x4 {rows=5} ! EINDEX; 2@i64:0..1,3x4 {rows=5} ! ESHAPE; 2@i64:0..1,2x4 {rows=-1} ! ESHAPE" };
REGISTER_OP(op_embedding_backward);

/* ---- one_hot -------------------------------------------------------------------------------------------------------- */

typedef struct OneHotParams { int64_t num_classes; } OneHotParams;

/* The largest index plus one; all on the host. */
static int64_t count_classes(const Tensor *index)
{
    const int64_t *value = index->data;
    int64_t most = -1;
    for (int64_t i = 0; i < index->numel; i++)
        if (value[i] > most) most = value[i];
    return most + 1;
}

static int one_hot_shape(OpCall *c)
{
    OneHotParams *p = op_params_mut(c);
    Tensor *index = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    if (call_index_dtype(c, index)) return -1;
    if (index->ndim == TENSOR_MAX_DIMS) return op_fail(c, TENSOR_ESHAPE, "index %s has %d dimensions already", S(index), TENSOR_MAX_DIMS);
    if (p->num_classes < -1 || (p->num_classes < 1 && (index->numel == 0 || p->num_classes == 0)))
        return op_fail(c, TENSOR_EVALUE, "%lld classes for %s: want 1 or more%s", (long long)p->num_classes, S(index),
                       p->num_classes == -1 ? " where there is no index to count them by" : ", or -1 for the largest index plus one");
    if (p->num_classes == -1) {
        Tensor *host = host_copy(index, TENSOR_I64);
        if (!host) return -1;
        p->num_classes = count_classes(host);
    }
    for (int d = 0; d < index->ndim; d++) shape[d] = index->shape[d];
    shape[index->ndim] = p->num_classes;
    return op_set_output(c, 0, (TensorShape){ index->ndim + 1, shape }, TENSOR_I64);
}

static int one_hot_forward(OpCall *c)
{
    const OneHotParams *p = op_params(c);
    Tensor *index = op_input(c, 0), *y = op_output(c, 0), *ones = own(new_tensor(shape_of(index), TENSOR_I64, index->place));
    if (!ones || raw_fill(ones, 1) || raw_fill(y, 0)) return -1;
    IndexPlan plan = { .dim = index->ndim, .outer = index->numel, .n = p->num_classes, .m = 1, .inner = 1 };
    return run_scatter_add(c, &plan, ones, index, y);
}

static const OpField one_hot_fields[] = { OP_FIELD(OP_I64, OneHotParams, num_classes, "-1"), { 0 } };
static const TensorOp op_one_hot = { .name = "one_hot", .summary = "i64: 1 at the index along a new last dimension, 0 elsewhere", .arity = 1,
    .params = sizeof(OneHotParams), .fields = one_hot_fields, .shape = one_hot_shape, .forward = one_hot_forward,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE, .torch = "nn.functional.one_hot",
    .samples = "5@i64:0..3 {num_classes=4}; 2x3@i64:0..3; @i64:0..2 {num_classes=3}; 0@i64:0..0 {num_classes=2}",
    .errors = "3@i64:4..5 {num_classes=4} ! EINDEX; 3@i64:-2..-1 {num_classes=4} ! EINDEX; 3 ! EDTYPE; 0@i64:0..0 ! EVALUE; 3@i64:0..1 {num_classes=0} ! EVALUE" };
REGISTER_OP(op_one_hot);

Tensor *tensor_one_hot_args(TensorOneHotArgs args)
{
    return APPLY(&op_one_hot, &((OneHotParams){ args.num_classes }), args.input);
}
