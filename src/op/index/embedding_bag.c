/* embedding_bag.c - the sum, mean or max of rows of a table over bags of indices.
 *
 *   sum   y_b = sum of w_k weight[i_k] over the bag           mean  the same by the bag's count, without
 * weights max   y_bd = the largest weight[i_k, d]; the first one, for the gradient
 *
 * Which bag each index belongs to is settled on the host; indices at padding_idx belong to none.  Empty bags
 * are 0. */
#include "embedding.h"
#include "op/shape/shape_op.h"

typedef enum BagMode { BAG_SUM, BAG_MEAN, BAG_MAX, BAG_MODES } BagMode;

typedef struct BagParams {
    int mode;
    bool include_last_offset, scale_grad_by_freq;
    int64_t padding_idx;
} BagParams;

typedef struct Bags {
    int64_t n, kept; /* bags; indices that count */
    Tensor *index, *bag, *position,
        *count; /* i64 on the host: the kept indices, the bag and the place of each; how many in each bag */
} Bags;

/* ---- bags ------------------------------------------------------------------------------------ */

static int check(OpCall *c)
{
    const BagParams *p = op_params(c);
    Tensor *index = op_input(c, 0), *weight = op_input(c, 1), *offsets = op_input(c, 2),
           *each = op_input(c, 3);
    if (p->mode < 0 || p->mode >= BAG_MODES) return op_fail(c, TENSOR_EVALUE, "no such mode: %d", p->mode);
    if (call_index_dtype(c, index) || (offsets && call_index_dtype(c, offsets))) return -1;
    if (weight->ndim != 2 || !dtype_is_float(weight->dtype))
        return op_fail(c, weight->ndim != 2 ? TENSOR_ESHAPE : TENSOR_EDTYPE,
                       "the table %s of %s: want floats [rows, width]", S(weight),
                       tensor_dtype_name((TensorDtype)weight->dtype));
    if (index->ndim != (offsets ? 1 : 2) || (offsets && offsets->ndim != 1))
        return op_fail(c, TENSOR_ESHAPE,
                       "index %s with offsets %s: want a matrix without offsets, or two lists", S(index),
                       offsets ? S(offsets) : "(none)");
    if (p->include_last_offset && (!offsets || offsets->numel == 0))
        return op_fail(c, TENSOR_EVALUE, "include_last_offset without offsets for index %s", S(index));
    if (each && p->mode != BAG_SUM)
        return op_fail(c, TENSOR_EVALUE, "per_sample_weights %s: want the mode sum", S(each));
    if (each && !shape_equal(shape_of(each), shape_of(index)))
        return op_fail(c, TENSOR_ESHAPE, "per_sample_weights %s for index %s: want equal shapes", S(each),
                       S(index));
    if (p->padding_idx != TENSOR_NO_PADDING &&
        (p->padding_idx < -weight->shape[0] || p->padding_idx >= weight->shape[0]))
        return op_fail(c, TENSOR_EINDEX, "padding_idx %lld for a table of %lld rows: want one of them",
                       (long long)p->padding_idx, (long long)weight->shape[0]);
    return 0;
}

/* Where bag b ends. */
static int64_t end_of(const Tensor *index, const Tensor *offsets, int64_t b, int64_t m)
{
    if (!offsets) return (b + 1) * index->shape[1];
    return b + 1 < offsets->numel ? ((const int64_t *)offsets->data)[b + 1] : m;
}

static int check_offsets(OpCall *c, const Tensor *offsets, int64_t m)
{
    const int64_t *at = offsets->data;
    for (int64_t b = 0; b < offsets->numel; b++) {
        bool right = b ? at[b] >= at[b - 1] && at[b] <= m : at[0] == 0;
        if (!right)
            return op_fail(c, TENSOR_EVALUE,
                           "offset %lld at position %lld of %s: want 0 first, none smaller than the one "
                           "before, and none above %lld",
                           (long long)at[b], (long long)b, S(offsets), (long long)m);
    }
    return 0;
}

static Tensor *list_of(int64_t n) { return own(new_tensor(SHAPE(n), TENSOR_I64, &cpu_place)); }

static int make_bags(OpCall *c, Bags *s)
{
    const BagParams *p = op_params(c);
    Tensor *index = op_input(c, 0), *given = op_input(c, 2),
           *offsets = given ? host_copy(given, TENSOR_I64) : NULL;
    Tensor *host = host_copy(index, TENSOR_I64);
    const int64_t m = index->numel, rows = op_input(c, 1)->shape[0],
                  padding = p->padding_idx < 0 ? p->padding_idx + rows : p->padding_idx;
    const bool pads = p->padding_idx != TENSOR_NO_PADDING;
    if (!host || (given && (!offsets || check_offsets(c, offsets, m)))) return -1;
    s->n = given ? offsets->numel - p->include_last_offset : index->shape[0], s->kept = 0;
    s->index = list_of(m), s->bag = list_of(m), s->position = list_of(m),
    s->count = zeros_on(SHAPE(s->n), TENSOR_I64, &cpu_place);
    if (!s->index || !s->bag || !s->position || !s->count) return -1;
    int64_t k = 0;
    for (int64_t b = 0; b < s->n; b++)
        for (int64_t end = end_of(index, offsets, b, m); k < end; k++) {
            int64_t v = ((const int64_t *)host->data)[k];
            if (v < 0 || v >= rows) return fail_index(c, index, k, v, rows);
            if (pads && v == padding) continue;
            ((int64_t *)s->index->data)[s->kept] = v, ((int64_t *)s->bag->data)[s->kept] = b,
                      ((int64_t *)s->position->data)[s->kept++] = k;
            ((int64_t *)s->count->data)[b]++;
        }
    Tensor **const list[] = { &s->index, &s->bag, &s->position };
    for (int i = 0; i < 3; i++)
        if (!(*list[i] = carried(tensor_narrow(*list[i], 0, 0, s->kept), op_input(c, 1)->place))) return -1;
    return 0;
}

/* ---- sum, mean, max -------------------------------------------------------------------------- */

/* Halves are summed in f32, and rounded once. */
static Tensor *summed(OpCall *c, const Bags *s)
{
    const BagParams *p = op_params(c);
    Tensor *weight = op_input(c, 1), *each = op_input(c, 3);
    int dtype = weight->dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    Tensor *rows = tensor_to(tensor_embedding(s->index, weight, .scale_grad_by_freq = p->scale_grad_by_freq),
                             (TensorDtype)dtype);
    if (each) {
        Tensor *list = tensor_index_select(tensor_reshape(each, SHAPE(each->numel)), 0, s->position);
        rows = tensor_mul(rows, tensor_unsqueeze(tensor_to(list, (TensorDtype)dtype), 1));
    }
    Tensor *zero = zeros_on(SHAPE(s->n, weight->shape[1]), dtype, weight->place);
    Tensor *y = zero && rows ? tensor_index_add(zero, 0, s->bag, rows) : NULL;
    if (p->mode == BAG_MEAN && y) {
        Tensor *count = carried(own(raw_cast(s->count, dtype)), weight->place);
        y = count ? tensor_div(y, tensor_unsqueeze(tensor_clamp(count, 1, 0x1p62), 1)) : NULL;
    }
    return y ? tensor_to(y, (TensorDtype)weight->dtype) : NULL;
}

/* For each bag and column the row of the first largest element; 0 for empty bags.  Of the table only the rows
 * named are read. */
static Tensor *winners(const Bags *s, Tensor *weight)
{
    const int64_t width = weight->shape[1];
    Tensor *rows = tensor_index_select(tensor_detach(weight), 0, s->index),
           *w = rows ? host_copy(rows, TENSOR_F64) : NULL;
    Tensor *at = zeros_on(SHAPE(s->n, width), TENSOR_I64, &cpu_place),
           *index = host_copy(s->index, TENSOR_I64), *bag = host_copy(s->bag, TENSOR_I64);
    if (!w || !at || !index || !bag) return NULL;
    const double *value = w->data;
    const int64_t *b = bag->data;
    int64_t *best = at->data;
    for (int64_t k = 0; k < s->kept; k++) {
        const bool first = k == 0 || b[k] != b[k - 1];
        for (int64_t d = 0; d < width; d++)
            if (first || value[k * width + d] > value[best[b[k] * width + d] * width + d])
                best[b[k] * width + d] = k;
    }
    for (int64_t i = 0; i < at->numel && s->kept; i++) best[i] = ((const int64_t *)index->data)[best[i]];
    return carried(at, weight->place);
}

static Tensor *largest(OpCall *c, const Bags *s)
{
    Tensor *weight = op_input(c, 1);
    if (weight->shape[0] == 0) return zeros_on(SHAPE(s->n, weight->shape[1]), weight->dtype, weight->place);
    Tensor *at = winners(s, weight), *empty = carried(own(raw_cast(s->count, TENSOR_BOOL)), weight->place);
    Tensor *y = at && empty ? tensor_gather(weight, 0, at) : NULL;
    return y ? tensor_masked_fill(y, tensor_unsqueeze(tensor_logical_not(empty), 1), 0) : NULL;
}

static int compose(OpCall *c)
{
    Bags s;
    if (check(c) || make_bags(c, &s)) return -1;
    return op_set_result(c, 0,
                         ((const BagParams *)op_params(c))->mode == BAG_MAX ? largest(c, &s) : summed(c, &s));
}

static const OpField fields[] = { OP_FIELD(OP_INT, BagParams, mode, "1"),
                                  OP_FIELD(OP_BOOL, BagParams, include_last_offset, "0"),
                                  OP_FIELD(OP_BOOL, BagParams, scale_grad_by_freq, "0"),
                                  OP_FIELD(OP_I64, BagParams, padding_idx, "-9223372036854775808"),
                                  { 0 } };
static const TensorOp op_embedding_bag = {
    .name = "embedding_bag",
    .summary = "the sum, mean or max of rows of a table over bags of indices",
    .arity = 4,
    .gradient = "sum: dweight = zeros with w_k dy_b added at the rows, dw_k = dy_b weight[i_k]; mean: over "
                "the bag's count; max: at the first largest",
    .optional = KEEP_INPUT(2) | KEEP_INPUT(3),
    .no_grad_inputs = KEEP_INPUT(0) | KEEP_INPUT(2),
    .params = sizeof(BagParams),
    .fields = fields,
    .compose = compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.embedding_bag",
    .samples = "2x3@i64:0..4,5x4,-,-; 2x3@i64:0..4,5x4,-,2x3 {mode=0}; 6@i64:0..4,5x2,1@i64:0..0,6 {mode=0}; "
               "3x2@i64:0..4,5x3,-,- {mode=2}; "
               "0@i64:0..0,5x2,3@i64:0..0,-; 4@i32:0..4,5x3,2@i64:0..0,- {mode=2}; "
               "4@i64:0..2,3x2,2@i64:0..0,- {mode=0 include_last_offset=1}; 2x0@i64,3x2,-,- {mode=0}; "
               "0x2@i64,3x2,-,-; 2x2@i64:0..2,3x0,-,-",
    .errors = "2x3@i64:5..9,5x4,-,- ! EINDEX; 6@i64:0..4,5x4,-,- ! ESHAPE; 2x3@i64:0..4,5x4,1@i64:0..0,- ! "
              "ESHAPE; 2x3@i64:0..4,5x4,-,2x3 ! EVALUE; "
              "6@i64:0..4,5x4,2@i64:1..1,- ! EVALUE; 2x3@i64:0..4,5x4,-,3 {mode=0} ! ESHAPE; 2x3,5x4,-,- ! "
              "EDTYPE; 2x3@i64:0..4,5,-,- ! ESHAPE; "
              "2x3@i64:0..4,5x4,-,- {mode=3} ! EVALUE; 2x3@i64:0..4,5x4,-,- {padding_idx=5} ! EINDEX"
};
REGISTER_OP(op_embedding_bag);

Tensor *tensor_embedding_bag_args(TensorEmbeddingBagArgs args)
{
    static const char *const names[BAG_MODES] = { "sum", "mean", "max" };
    BagParams p = { BAG_MODES, args.include_last_offset, args.scale_grad_by_freq, args.padding_idx };
    for (int i = 0; args.mode && i < BAG_MODES; i++)
        if (strcmp(args.mode, names[i]) == 0) p.mode = i;
    if (p.mode == BAG_MODES)
        return fail(TENSOR_EVALUE, "embedding_bag", "mode \"%s\": want sum, mean or max",
                    args.mode ? args.mode : "(NULL)"),
               NULL;
    if (args.scale_grad_by_freq && p.mode == BAG_MAX)
        return fail(TENSOR_EVALUE, "embedding_bag", "scale_grad_by_freq with the mode max"), NULL;
    if (embedding_renorm(args.weight, args.input, args.max_norm, args.norm_type)) return NULL;
    return APPLY(&op_embedding_bag, &p, args.input, args.weight, args.offsets, args.per_sample_weights);
}
