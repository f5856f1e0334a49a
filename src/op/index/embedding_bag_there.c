/* embedding_bag_there.c - embedding_bag where nothing is to be read: on another device than the CPU.
 *
 * An index that belongs to no bag, the padding or one behind the last offset, belongs to one more, which is
 * left out of the result.  The bag of a place in the list is found by search among the offsets. */
#include <math.h>
#include "embedding.h"
#include "index_plan.h"

typedef struct Bags {
    int64_t n, m;  /* bags, indices */
    Tensor *index; /* i64 [m] */
    Tensor *bag;   /* i64 [m], n for those that do not count */
    Tensor *count; /* f64 [n]: how many in each */
} Bags;

/* ---- bags ------------------------------------------------------------------------------------ */

static int check_value(OpCall *c, const Tensor *x, const char *what, int64_t low, int64_t high)
{
    CheckArgs a = { .what = what, .status = TENSOR_EVALUE, .low = low, .high = high };
    const int found = call_check(c, x, &a);
    if (found != 1) return found;
    return op_fail(c, TENSOR_EVALUE,
                   "%s %lld of %s: want 0 first, none smaller than the one before, and none above %lld", what,
                   (long long)a.bad_value, S(op_input(c, 2)), (long long)op_input(c, 0)->numel);
}

static int check_offsets(OpCall *c, Tensor *offsets, int64_t m)
{
    const int64_t n = offsets->numel;
    if (n == 0) return 0;
    if (check_value(c, tensor_narrow(offsets, 0, 0, 1), "the first offset", 0, 0) ||
        check_value(c, tensor_narrow(offsets, 0, n - 1, 1), "the last offset", 0, m))
        return -1;
    if (n == 1) return 0;
    Tensor *step = tensor_sub(tensor_narrow(offsets, 0, 1, n - 1), tensor_narrow(offsets, 0, 0, n - 1));
    return check_value(c, step, "a difference of offsets", 0, INT64_MAX);
}

/* Which bag the offsets, or the rows of a matrix, put each place in. */
static Tensor *bags_by_place(OpCall *c, Bags *s)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    const Tensor *index = op_input(c, 0);
    Tensor *given = op_input(c, 2), *place = numbers_on(s->m, TENSOR_I64, index->place);
    if (!given) {
        const double each = index->shape[1] ? (double)index->shape[1] : 1;
        s->n = index->shape[0];
        return tensor_floor_divide_scalar(place, each);
    }
    Tensor *offsets = tensor_to(given, TENSOR_I64);
    s->n = given->numel - p->include_last_offset;
    if (!place || !offsets || check_offsets(c, offsets, s->m)) return NULL;
    Tensor *bag = tensor_sub_scalar(tensor_searchsorted(offsets, place, .right = true), 1);
    return tensor_clamp(bag, 0, (double)s->n);
}

static int make_bags(OpCall *c, Bags *s)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    const Tensor *weight = op_input(c, 1);
    s->m = op_input(c, 0)->numel;
    s->index = tensor_reshape(tensor_to(op_input(c, 0), TENSOR_I64), SHAPE(s->m));
    s->bag = bags_by_place(c, s);
    if (!s->index || !s->bag || check_indices(c, op_input(c, 0), weight->shape[0])) return -1;
    if (p->padding_idx != TENSOR_NO_PADDING) {
        const int64_t rows = weight->shape[0], padding = p->padding_idx + (p->padding_idx < 0 ? rows : 0);
        Tensor *none = own(new_tensor(SHAPE(), TENSOR_I64, weight->place));
        if (!none || raw_fill(none, (double)s->n)) return -1;
        s->bag = tensor_where(tensor_eq_scalar(s->index, (double)padding), none, s->bag);
    }
    Tensor *zero = zeros_on(SHAPE(s->n + 1), TENSOR_F64, weight->place),
           *one = own(new_tensor(SHAPE(s->m), TENSOR_F64, weight->place));
    if (!s->bag || !zero || !one || raw_fill(one, 1)) return -1;
    s->count = tensor_narrow(tensor_index_add(zero, 0, s->bag, one), 0, 0, s->n);
    return s->count ? 0 : -1;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* rows with their gradient divided by how many of the indices that count are equal: the value stays. */
static Tensor *with_frequency(const Bags *s, Tensor *rows, int64_t table)
{
    Tensor *counts = tensor_to(tensor_lt_scalar(s->bag, (double)s->n), TENSOR_F64),
           *zero = zeros_on(SHAPE(table), TENSOR_F64, rows->place);
    if (!counts || !zero) return NULL;
    Tensor *each = tensor_index_select(tensor_index_add(zero, 0, s->index, counts), 0, s->index);
    each = each ? tensor_to(tensor_clamp(each, 1, 0x1p62), (TensorDtype)rows->dtype) : NULL;
    Tensor *scaled = tensor_div(rows, tensor_unsqueeze(each, 1));
    return scaled ? tensor_add(tensor_detach(rows), tensor_sub(scaled, tensor_detach(scaled))) : NULL;
}

/* The row of each index, in `dtype`: on the graph, as if max_norm had not changed them. */
static Tensor *picked(OpCall *c, const Bags *s, int dtype)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    Tensor *weight = op_input(c, 1), *rows = tensor_embedding(s->index, weight);
    if (rows && p->max_norm != 0 && rows->numel) {
        Tensor *held = embedding_held(rows, p->max_norm, p->norm_type);
        rows = held ? tensor_add(held, tensor_sub(rows, tensor_detach(rows))) : NULL;
    }
    rows = rows ? tensor_to(rows, (TensorDtype)dtype) : NULL;
    return rows && p->scale_grad_by_freq ? with_frequency(s, rows, weight->shape[0]) : rows;
}

/* Halves are summed in f32, and rounded once. */
static Tensor *summed(OpCall *c, const Bags *s, int dtype)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    Tensor *weight = op_input(c, 1), *each = op_input(c, 3), *rows = picked(c, s, dtype);
    if (each)
        rows = tensor_mul(
            rows, tensor_unsqueeze(tensor_to(tensor_reshape(each, SHAPE(s->m)), (TensorDtype)dtype), 1));
    Tensor *zero = zeros_on(SHAPE(s->n + 1, weight->shape[1]), dtype, weight->place);
    Tensor *y = zero && rows ? tensor_narrow(tensor_index_add(zero, 0, s->bag, rows), 0, 0, s->n) : NULL;
    if (!y || p->mode != TENSOR_BAG_MEAN) return y;
    return tensor_div(y,
                      tensor_unsqueeze(tensor_to(tensor_clamp(s->count, 1, 0x1p62), (TensorDtype)dtype), 1));
}

/* ---- the largest ----------------------------------------------------------------------------- */

/* Folds x [m, width] by bags: [n + 1, width], `none` where no row is. */
static Tensor *folded(OpCall *c, const Bags *s, FoldKind how, Tensor *x, double none)
{
    Tensor *from = x ? own(raw_contiguous(x)) : NULL;
    Tensor *y = from ? own(new_tensor(SHAPE(s->n + 1, x->shape[1]), x->dtype, x->place)) : NULL;
    const IndexPlan plan = {
        .outer = 1, .n = s->n + 1, .m = s->m, .inner = y ? x->shape[1] : 0, .shared = true
    };
    if (!y || raw_fill(y, none)) return NULL;
    return run_scatter_fold(c, &plan, how, false, from, s->bag, y) ? NULL : y;
}

/* For each bag and column the number of the first largest of rows.  A NaN is one only if it is the first. */
static Tensor *winners(OpCall *c, const Bags *s, Tensor *rows)
{
    Tensor *x = rows ? own(raw_cast(rows, TENSOR_F64)) : NULL;
    if (!x) return NULL;
    Tensor *number = numbers_on(s->m, TENSOR_I64, rows->place),
           *behind = own(new_tensor(SHAPE(), TENSOR_I64, rows->place));
    if (!number || !behind || raw_fill(behind, (double)s->m)) return NULL;
    number = tensor_expand(tensor_unsqueeze(number, 1), shape_of(x));
    Tensor *nan = tensor_isnan(x), *held = tensor_masked_fill(x, nan, -(double)INFINITY),
           *first = folded(c, s, INTO_AMIN, number, (double)s->m),
           *most = folded(c, s, INTO_AMAX, held, -(double)INFINITY);
    if (!first || !most) return NULL;
    Tensor *largest = tensor_eq(held, tensor_index_select(most, 0, s->bag)),
           *begins = tensor_eq(number, tensor_index_select(first, 0, s->bag));
    Tensor *at = folded(c, s, INTO_AMIN, tensor_where(largest, number, behind), (double)s->m),
           *led = folded(c, s, INTO_AMIN, tensor_where(tensor_logical_and(begins, nan), number, behind),
                         (double)s->m);
    return tensor_clamp(tensor_where(tensor_lt(led, behind), led, at), 0, (double)(s->m - 1));
}

static Tensor *largest(OpCall *c, const Bags *s)
{
    Tensor *weight = op_input(c, 1);
    if (s->m == 0) {
        Tensor *none = tensor_narrow(weight, 0, 0, 0);
        Tensor *zero = zeros_on(SHAPE(s->n, weight->shape[1]), weight->dtype, weight->place);
        return zero && none ? tensor_add(zero, tensor_sum(none, 0)) : NULL; /* on the graph, as others are */
    }
    Tensor *rows = picked(c, s, weight->dtype), *at = rows ? winners(c, s, tensor_detach(rows)) : NULL;
    Tensor *y = tensor_gather(rows, 0, tensor_narrow(at, 0, 0, s->n));
    return y ? tensor_masked_fill(y, tensor_unsqueeze(tensor_eq_scalar(s->count, 0), 1), 0) : NULL;
}

Tensor *embedding_bag_there(OpCall *c)
{
    const TensorEmbeddingBagArgs *p = op_params(c);
    const int dtype = op_input(c, 1)->dtype;
    Bags s;
    if (make_bags(c, &s)) return NULL;
    if (p->mode == TENSOR_BAG_MAX) return largest(c, &s);
    Tensor *y = summed(c, &s, dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32);
    return y ? tensor_to(y, (TensorDtype)dtype) : NULL;
}
