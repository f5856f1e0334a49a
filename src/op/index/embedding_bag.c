/* embedding_bag.c - the sum, mean or max of rows of a table over bags of indices.
 *
 *   sum   y_b = sum of w_k weight[i_k] over the bag
 *   mean  the same by the bag's count, without weights
 *   max   y_bd = the largest weight[i_k, d]; the first one, for the gradient
 *
 * The CPU assigns each index to a bag; indices equal to padding_idx belong to none.  Empty bags give 0.
 * embedding_bag_there.c does it on another device. */
#include "cpu/index/bags.h"
#include "cpu/index/host_index.h"
#include "embedding.h"
#include "index_plan.h"

const TensorEmbeddingBagArgs tensor_embedding_bag_defaults = { TENSOR_EMBEDDING_BAG_DEFAULTS };

typedef struct Bags {
    int64_t n, kept;                /* bags; indices that count */
    Tensor *index, *bag, *position; /* i64: the kept indices, the bag and the place of each */
    Tensor *count;                  /* i64: how many in each bag */
} Bags;

/* ---- bags ------------------------------------------------------------------------------------ */

static int check(OpCall *c)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    Tensor *index = op_input(c, 0), *weight = op_input(c, 1), *offsets = op_input(c, 2),
           *each = op_input(c, 3);
    if (p->scale_grad_by_freq && p->mode == TENSOR_BAG_MAX)
        return op_fail(c, TENSOR_EVALUE, "scale_grad_by_freq with the mode max");
    if (embedding_check_norm(c, p->max_norm)) return -1;
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
    if (each && p->mode != TENSOR_BAG_SUM)
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

static int check_offsets(OpCall *c, const Tensor *offsets, int64_t m)
{
    const int64_t *at = offsets->data, b = bags_bad_offset(at, offsets->numel, m);
    return b < 0 ? 0
                 : op_fail(c, TENSOR_EVALUE,
                           "offset %lld at position %lld of %s: want 0 first, none smaller than the one "
                           "before, and none above %lld",
                           (long long)at[b], (long long)b, S(offsets), (long long)m);
}

static Tensor *list_of(int64_t n) { return own(new_tensor(SHAPE(n), TENSOR_I64, &cpu_place)); }

static int make_bags(OpCall *c, Bags *s)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    Tensor *index = op_input(c, 0), *given = op_input(c, 2),
           *offsets = given ? own(raw_cast(given, TENSOR_I64)) : NULL;
    Tensor *list = own(raw_cast(index, TENSOR_I64));
    const int64_t m = index->numel, rows = op_input(c, 1)->shape[0],
                  padding = p->padding_idx < 0 ? p->padding_idx + rows : p->padding_idx;
    if (!list || (given && (!offsets || check_offsets(c, offsets, m)))) return -1;
    s->n = given ? offsets->numel - p->include_last_offset : index->shape[0], s->kept = 0;
    s->index = list_of(m), s->bag = list_of(m), s->position = list_of(m),
    s->count = zeros_on(SHAPE(s->n), TENSOR_I64, &cpu_place);
    if (!s->index || !s->bag || !s->position || !s->count) return -1;
    if (check_indices(c, list, rows)) return -1;
    s->kept = bags_sort(&(BagIndex){ .index = list->data,
                                     .offsets = offsets ? offsets->data : NULL,
                                     .m = m,
                                     .n = s->n,
                                     .each = given ? 0 : index->shape[1],
                                     .last = offsets ? offsets->numel : 0,
                                     .padding = p->padding_idx == TENSOR_NO_PADDING ? -1 : padding,
                                     .kept = s->index->data,
                                     .bag = s->bag->data,
                                     .position = s->position->data,
                                     .count = s->count->data });
    Tensor **const part[] = { &s->index, &s->bag, &s->position };
    for (int i = 0; i < 3; i++)
        if (!(*part[i] = tensor_narrow(*part[i], 0, 0, s->kept))) return -1;
    return 0;
}

/* ---- sum, mean, max -------------------------------------------------------------------------- */

/* The rows of the indices that count, [kept, width]: on the graph, as if max_norm had not changed them. */
static Tensor *picked(OpCall *c, const Bags *s)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    Tensor *rows = tensor_embedding(s->index, op_input(c, 1), .scale_grad_by_freq = p->scale_grad_by_freq);
    if (!rows || p->max_norm == 0 || rows->numel == 0) return rows;
    Tensor *held = embedding_held(rows, p->max_norm, p->norm_type);
    return held ? tensor_add(held, tensor_sub(rows, tensor_detach(rows))) : NULL;
}

/* added: rows of x, [., width], added to `size` rows of zeros as they come, not laid side by side first: row
 * to_k of y += w_k times row from_k of x (w NULL: 1).  dx is the same with `from` and `to` exchanged.  In f32
 * or f64. */
typedef struct AddedParams {
    int64_t size;
    bool weighted; /* w is given */
} AddedParams;

static int added_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    const AddedParams *p = op_params(c);
    return op_set_output(c, 0, SHAPE(p->size, x->shape[1]), (TensorDtype)x->dtype);
}

static int added_forward(OpCall *c)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0))), *y = op_output(c, 0), *w = op_input(c, 3);
    if (!x || (w && !(w = own(raw_contiguous(w)))) || raw_fill(y, 0)) return -1;
    const BagSum sum = { .index = op_input(c, 1)->data,
                         .bag = op_input(c, 2)->data,
                         .kept = op_input(c, 1)->numel,
                         .width = x->shape[1],
                         .weight = x->data,
                         .each = w ? w->data : NULL,
                         .y = y->data };
    if (x->dtype == TENSOR_F32) ISA_PICK(bags_sum_f32)(&sum);
    else ISA_PICK(bags_sum_f64)(&sum);
    return 0;
}

static Tensor *added(Tensor *x, Tensor *from, Tensor *to, Tensor *w, int64_t size);

/* A tenth of the time of the ops that a recorded sweep is made of: the rows are not laid side by side. */
static Tensor *dots(Tensor *x, Tensor *dy, const Tensor *from, const Tensor *to)
{
    Tensor *dw = own(new_tensor(shape_of(from), x->dtype, x->place));
    if (!dw || !(x = own(raw_contiguous(x))) || !(dy = own(raw_contiguous(dy)))) return NULL;
    const BagDot dot = { .index = from->data,
                         .bag = to->data,
                         .kept = from->numel,
                         .width = x->shape[1],
                         .x = x->data,
                         .dy = dy->data,
                         .dw = dw->data };
    if (x->dtype == TENSOR_F32) ISA_PICK(bags_dot_f32)(&dot);
    else ISA_PICK(bags_dot_f64)(&dot);
    return dw;
}

static int added_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const bool weighted = ((const AddedParams *)op_params(c))->weighted;
    Tensor *from = op_saved(c, 1), *to = op_saved(c, 2), *x = op_wants(c, 3) ? op_saved(c, 0) : NULL;
    if (!from || !to || (op_wants(c, 3) && !x)) return -1;
    if (op_wants(c, 0))
        dx[0] = added(dy, to, from, weighted ? op_saved(c, 3) : NULL, op_input_shape(c, 0).dim[0]);
    if (op_wants(c, 3) && op_recording(c))
        dx[3] = tensor_sum(tensor_mul(tensor_index_select(x, 0, from), tensor_index_select(dy, 0, to)), 1);
    else if (op_wants(c, 3)) dx[3] = dots(x, dy, from, to);
    return (op_wants(c, 0) && !dx[0]) || (op_wants(c, 3) && !dx[3]) ? -1 : 0;
}

enum { LISTS = KEEP_INPUT(1) | KEEP_INPUT(2) };
static const TensorOp op_added = { .name = "embedding_bag",
                                   .autocast = AUTOCAST_AS_IS,
                                   .arity = 4,
                                   .optional = KEEP_INPUT(3),
                                   .no_grad_inputs = LISTS,
                                   .keep = LISTS | KEEP_INPUT(0) | KEEP_INPUT(3),
                                   .keep_for = { LISTS | KEEP_INPUT(3), 0, 0, LISTS | KEEP_INPUT(0) },
                                   .params = sizeof(AddedParams),
                                   .shape = added_shape,
                                   .forward = added_forward,
                                   .backward = added_backward };

static Tensor *added(Tensor *x, Tensor *from, Tensor *to, Tensor *w, int64_t size)
{
    return APPLY(&op_added, &((AddedParams){ size, w != NULL }), x, from, to, w);
}

/* The rows laid side by side: with max_norm or scale_grad_by_freq, and for halves of few indices. */
static Tensor *laid_out(OpCall *c, const Bags *s, Tensor *each, int dtype)
{
    Tensor *rows = picked(c, s);
    rows = rows ? tensor_to(rows, (TensorDtype)dtype) : NULL;
    if (each) rows = tensor_mul(rows, tensor_unsqueeze(tensor_to(each, (TensorDtype)dtype), 1));
    const Tensor *weight = op_input(c, 1);
    Tensor *zero = zeros_on(SHAPE(s->n, weight->shape[1]), dtype, weight->place);
    return zero && rows ? tensor_index_add(zero, 0, s->bag, rows) : NULL;
}

/* Halves are summed in f32, and rounded once. */
static Tensor *summed(OpCall *c, const Bags *s)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    Tensor *weight = op_input(c, 1), *each = op_input(c, 3);
    const int dtype = weight->dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
    const bool as_they_come = p->max_norm == 0 && !p->scale_grad_by_freq &&
                              (weight->dtype == dtype || s->kept >= weight->shape[0]); /* a table widened */
    if (each && !(each = tensor_index_select(tensor_reshape(each, SHAPE(each->numel)), 0, s->position)))
        return NULL;
    Tensor *table = as_they_come ? tensor_to(weight, (TensorDtype)dtype) : NULL;
    if (as_they_come && each) each = tensor_to(each, (TensorDtype)dtype);
    if (as_they_come && (!table || (op_input(c, 3) && !each))) return NULL;
    Tensor *y = as_they_come ? added(table, s->index, s->bag, each, s->n) : laid_out(c, s, each, dtype);
    if (p->mode == TENSOR_BAG_MEAN && y) {
        Tensor *count = own(raw_cast(s->count, dtype));
        y = count ? tensor_div(y, tensor_unsqueeze(tensor_clamp(count, 1, 0x1p62), 1)) : NULL;
    }
    return y ? tensor_to(y, (TensorDtype)weight->dtype) : NULL;
}

/* For each bag and column the number of the first largest of rows; 0 for empty bags. */
static Tensor *winners(const Bags *s, Tensor *rows)
{
    Tensor *w = own(raw_cast(rows, TENSOR_F64)), *bag = own(raw_contiguous(s->bag)),
           *at = zeros_on(SHAPE(s->n, rows->shape[1]), TENSOR_I64, &cpu_place);
    if (!w || !at || !bag) return NULL;
    bags_largest(w->data, bag->data, s->kept, rows->shape[1], at->data);
    return at;
}

static Tensor *largest(OpCall *c, const Bags *s)
{
    Tensor *weight = op_input(c, 1);
    if (s->kept == 0) {
        Tensor *none = tensor_narrow(weight, 0, 0, 0);
        Tensor *zero = zeros_on(SHAPE(s->n, weight->shape[1]), weight->dtype, weight->place);
        return zero && none ? tensor_add(zero, tensor_sum(none, 0)) : NULL; /* on the graph, as others are */
    }
    Tensor *rows = picked(c, s);
    Tensor *at = rows ? winners(s, rows) : NULL, *some = own(raw_cast(s->count, TENSOR_BOOL));
    Tensor *y = at && some ? tensor_gather(rows, 0, at) : NULL;
    return y ? tensor_masked_fill(y, tensor_unsqueeze(tensor_logical_not(some), 1), 0) : NULL;
}

static int compose(OpCall *c)
{
    Bags s;
    if (check(c)) return -1;
    if (!on_host(op_input(c, 1)->place)) return op_set_result(c, 0, embedding_bag_there(c));
    if (make_bags(c, &s)) return -1;
    return op_set_result(c, 0,
                         ((const TensorEmbeddingBagArgs *)op_params(c))->mode == TENSOR_BAG_MAX
                             ? largest(c, &s)
                             : summed(c, &s));
}

static const char *const modes[] = { "sum", "mean", "max", NULL };
static const OpField fields[] = { OP_CHOICE(TensorEmbeddingBagArgs, mode, modes),
                                  OP_OPTION(TensorEmbeddingBagArgs, include_last_offset, scale_grad_by_freq,
                                            padding_idx, max_norm, norm_type),
                                  { 0 } };
static const TensorOp op_embedding_bag = {
    .name = "embedding_bag",
    .autocast = AUTOCAST_AS_IS,
    .summary = "the sum, mean or max of rows of a table over bags of indices",
    .arity = 4,
    .gradient = "sum: dweight = zeros with w_k dy_b added at the rows, dw_k = dy_b weight[i_k]; mean: over "
                "the bag's count; max: at the first largest",
    .optional = KEEP_INPUT(2) | KEEP_INPUT(3),
    .no_grad_inputs = KEEP_INPUT(0) | KEEP_INPUT(2),
    PARAMS(TensorEmbeddingBagArgs, tensor_embedding_bag_defaults, fields),
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE,
    .torch = "nn.functional.embedding_bag",
    .samples = "2x3@i64:0..4,5x4,-,-; 2x3@i64:0..4,5x4,-,2x3 {mode=sum}; 6@i64:0..4,5x2,1@i64:0..0,6 "
               "{mode=sum}; 3x2@i64:0..4,5x3,-,- {mode=max}; 0@i64:0..0,5x2,3@i64:0..0,-; "
               "4@i32:0..4,5x3,2@i64:0..0,- {mode=max}; 4@i64:0..2,3x2,2@i64:0..0,- {mode=sum "
               "include_last_offset=1}; 2x0@i64,3x2,-,- {mode=sum}; 0x2@i64,3x2,-,-; 2x2@i64:0..2,3x0,-,-",
    .errors = "2x3@i64:5..9,5x4,-,- ! EINDEX; 6@i64:0..4,5x4,-,- ! ESHAPE; 2x3@i64:0..4,5x4,1@i64:0..0,- ! "
              "ESHAPE; 2x3@i64:0..4,5x4,-,2x3 ! EVALUE; "
              "6@i64:0..4,5x4,2@i64:1..1,- ! EVALUE; 2x3@i64:0..4,5x4,-,3 {mode=sum} ! ESHAPE; 2x3,5x4,-,- ! "
              "EDTYPE; 2x3@i64:0..4,5,-,- ! ESHAPE; "
              "2x3@i64:0..4,5x4,-,- {mode=3} ! EVALUE; 2x3@i64:0..4,5x4,-,- {padding_idx=5} ! EINDEX; "
              "2x3@i64:0..4,5x4,-,- {mode=max scale_grad_by_freq=1} ! EVALUE; "
              "2x3@i64:0..4,5x4@f32,-,2x3@f64 {mode=sum} ! EDTYPE"
};
REGISTER_OPS(&op_embedding_bag);

Tensor *tensor_embedding_bag_args(TensorEmbeddingBagArgs a)
{
    Tensor *y = APPLY(&op_embedding_bag, &a, a.input, a.weight, a.offsets, a.per_sample_weights);
    return embedding_renorm(y, a.weight, a.input, a.max_norm, a.norm_type);
}
