/* index_tensors.c - Python's x[i, :, j] with tensors of indices or masks for some dimensions.
 *
 *   index      y[k...] = x[i_k, :, j_k, ...]
 *   index_put  y = x with y[i_k, :, j_k, ...] = or += values[k...]
 *
 * A NULL operand stands for a whole dimension.  The indices become positions in the indexed dimensions,
 * joined to one; the rest is a recorded index_select, index_copy or index_add.  The dimensions of
 * the indices replace the indexed ones if these are adjacent, else they come first.  Negative indices count
 * from the end; a mask (bool, u8) stands for its nonzero indices. */
#include "cpu/index/host_index.h"
#include "index_plan.h"
#include "index_language.h"

typedef struct Rows {
    Tensor *at; /* i64: positions in the indexed dimensions as one, row-major */
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS]; /* of the indices, broadcast */
    bool permuted;                  /* the indexed dimensions are no neighbours: they go first, by order */
    int64_t order[TENSOR_MAX_DIMS];
    int before, leading;        /* dimensions before the indexed ones, and how many are indexed */
    int64_t outer, rows, width; /* x (permuted) as [outer, rows, width] */
} Rows;

/* ---- indices to positions -------------------------------------------------------------------- */

static bool is_mask(const Tensor *index) { return index->dtype == TENSOR_BOOL || index->dtype == TENSOR_U8; }

/* The index of dimension d, or of several for a mask, as i64 tensors; returns how many, or -1. */
static int unpack(OpCall *c, const Tensor *x, Tensor *index, int d, Tensor **list)
{
    if (!is_mask(index)) {
        if (call_index_dtype(c, index)) return -1;
        if (d == x->ndim) return op_fail(c, TENSOR_EINDEX, "more indices than %s has dimensions", S(x));
        return (list[d] = own(raw_cast(index, TENSOR_I64))) ? 1 : -1;
    }
    bool fits = index->ndim > 0 && d + index->ndim <= x->ndim;
    for (int i = 0; fits && i < index->ndim; i++) fits = index->shape[i] == x->shape[d + i];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "mask %s for %s from dimension %d on: want equal sizes", S(index),
                       S(x), d);
    Tensor *found = tensor_nonzero(index);
    for (int i = 0; found && i < index->ndim; i++)
        if (!(list[d + i] = own(new_layer(found, 1, i)))) return -1;
    return found ? index->ndim : -1;
}

/* Indices of x's dimension d: those from -n to n - 1 are. */
static int check_index(OpCall *c, const Tensor *x, int d, const Tensor *index)
{
    const int64_t n = x->shape[d];
    CheckArgs a = { .what = "index", .status = TENSOR_EINDEX, .low = -n, .high = n - 1 };
    const int found = call_check(c, index, &a);
    if (found != 1) return found;
    int64_t at[TENSOR_MAX_DIMS], rest = a.bad_at;
    for (int k = index->ndim - 1; k >= 0; rest /= index->shape[k], k--) at[k] = rest % index->shape[k];
    return op_fail(c, TENSOR_EINDEX,
                   "index %lld at position %s of %s, for dimension %d of %s: want %lld to %lld",
                   (long long)a.bad_value, shape_text((TensorShape){ index->ndim, at }), S(index), d, S(x),
                   (long long)-n, (long long)n - 1);
}

/* Joins them to positions in the dimensions before, if there are some. */
static int join(OpCall *c, int64_t n, const Tensor *index, TensorShape shape, bool first, Tensor *to)
{
    const Tensor *wide = index;
    if (!(index->flags & FLAG_CONTIGUOUS) || !shape_equal(shape_of(index), shape)) {
        Tensor *copy = own(new_tensor(shape, TENSOR_I64, to->place));
        if (!copy || raw_copy(copy, index)) return -1;
        wide = copy;
    }
    IndexJoinArgs args = { .count = to->numel, .n = n, .first = first, .index = wide->data, .at = to->data };
    return RUN_KERNEL(c->name, to->place, index_join, &args);
}

static int positions(OpCall *c, const Tensor *x, Tensor *const *list, const Rows *r, Tensor *to)
{
    bool first = true;
    for (int d = 0; d < x->ndim; d++) {
        if (!list[d]) continue;
        if (check_index(c, x, d, list[d]) ||
            join(c, x->shape[d], list[d], (TensorShape){ r->ndim, r->shape }, first, to))
            return -1;
        first = false;
    }
    return 0;
}

/* Where the indexed dimensions lie, and what x is around them. */
static void set_order(const Tensor *x, Tensor *const *list, Rows *r)
{
    int first = -1, last = -1, n = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (!list[d]) continue;
        first = first < 0 ? d : first, last = d;
        r->order[n++] = d;
        r->rows *= x->shape[d];
    }
    r->leading = n, r->permuted = last - first + 1 != n, r->before = r->permuted ? 0 : first;
    for (int d = 0; d < x->ndim; d++) {
        if (list[d]) continue;
        *(d < r->before ? &r->outer : &r->width) *= x->shape[d];
        if (r->permuted) r->order[n++] = d;
    }
}

static int make_rows(OpCall *c, const Tensor *x, int first, Rows *r)
{
    Tensor *list[TENSOR_MAX_DIMS] = { NULL };
    int d = 0;
    for (int i = first; i < op_inputs(c); i++) {
        Tensor *index = op_input(c, i);
        int taken = index ? unpack(c, x, index, d, list) : 1;
        if (taken < 0) return -1;
        d += taken;
        if (d > x->ndim) return op_fail(c, TENSOR_EINDEX, "more indices than %s has dimensions", S(x));
    }
    *r = (Rows){ .outer = 1, .rows = 1, .width = 1 };
    set_order(x, list, r);
    if (r->leading == 0) return op_fail(c, TENSOR_EINDEX, "no index given for %s", S(x));
    for (int i = 0; i < x->ndim; i++) {
        if (!list[i]) continue;
        int ndim = shape_broadcast((TensorShape){ r->ndim, r->shape }, shape_of(list[i]), r->shape);
        if (ndim < 0)
            return op_fail(c, TENSOR_ESHAPE, "index %s does not broadcast to the others", S(list[i]));
        r->ndim = ndim;
    }
    if (r->ndim + x->ndim - r->leading > TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "the result has more than %d dimensions", TENSOR_MAX_DIMS);
    r->at = own(new_tensor(SHAPE(shape_count((TensorShape){ r->ndim, r->shape })), TENSOR_I64, x->place));
    return r->at ? positions(c, x, list, r, r->at) : -1;
}

/* x's dimensions with those of the indices in the place of the indexed ones. */
static TensorShape picked_shape(const Tensor *x, const Rows *r, int64_t *dim)
{
    int n = 0;
    for (int d = 0; d < r->before; d++) dim[n++] = x->shape[d];
    for (int d = 0; d < r->ndim; d++) dim[n++] = r->shape[d];
    for (int d = r->before + r->leading; d < x->ndim; d++) dim[n++] = x->shape[r->permuted ? r->order[d] : d];
    return (TensorShape){ n, dim };
}

static Tensor *as_rows(Tensor *x, const Rows *r)
{
    if (r->permuted) x = tensor_permute(x, (TensorShape){ x->ndim, r->order });
    return tensor_reshape(x, SHAPE(r->outer, r->rows, r->width));
}

static Tensor *from_rows(Tensor *y, const Tensor *x, const Rows *r)
{
    int64_t shape[TENSOR_MAX_DIMS], back[TENSOR_MAX_DIMS];
    if (!r->permuted) return tensor_reshape(y, shape_of(x));
    for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[r->order[d]], back[r->order[d]] = d;
    return tensor_permute(tensor_reshape(y, (TensorShape){ x->ndim, shape }), (TensorShape){ x->ndim, back });
}

/* ---- index ----------------------------------------------------------------------------------- */

static int index_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    Rows r;
    int64_t dim[2 * TENSOR_MAX_DIMS];
    if (make_rows(c, x, 1, &r)) return -1;
    return op_set_result(
        c, 0, tensor_reshape(tensor_index_select(as_rows(x, &r), 1, r.at), picked_shape(x, &r, dim)));
}

static const TensorOp op_index = {
    .name = "index",
    .autocast = AUTOCAST_AS_IS,
    .summary =
        "x[i, :, j, ...]: elements picked by tensors of indices or masks; an absent one is a whole dim",
    .gradient = "dx = zeros with dy added at the indices",
    .arity = OP_ANY_ARITY,
    .optional = ~(KEEP_INPUT(0)),
    .compose = index_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "ops.aten.index",
    .samples = "5x3,4@i64:-5..4; 3x4,6@i64:0..2,6@i64:-4..3; 3x4x2,2x1@i64:0..2,3@i64:0..3; 3x4,3@bool; "
               "3x4,3x4@bool; 3x2,0@i64:0..0; 3x2,@i64:0..2; 2x3x4,-,2@i64:-3..2; "
               "2x3x4,2@i64:0..1,-,2@i64:0..3; 2x3x4,-,3x4@bool; 3x2,-,0@i64:0..0; 2x3,-,@i64:0..2",
    .errors = "3x4,2@i64:4..5 ! EINDEX; 3x4,2@i64:-9..-4 ! EINDEX; 3x4,2@bool ! ESHAPE; "
              "3,2@i64:0..2,2@i64:0..1 ! EINDEX; 3x4 ! EINDEX; 3x4,2 ! EDTYPE; "
              "3x4,2@i64:0..2,3@i64:0..2 ! ESHAPE; 3x4,-,- ! EINDEX; 3,-,2@i64:0..1 ! EINDEX"
};
REGISTER_OPS(&op_index);

/* x, maybe values, then the indices, as one list of operands. */
static int operands(const char *op, Tensor **in, int n, TensorList indices)
{
    if (indices.count < 1 || indices.count > TENSOR_MAX_DIMS || !indices.item)
        return fail(TENSOR_EINDEX, op, "%d indices: want 1 to %d", indices.count, TENSOR_MAX_DIMS);
    for (int i = 0; i < indices.count; i++) in[n + i] = indices.item[i];
    return n + indices.count;
}

Tensor *index_by_tensors(const char *name, Tensor *x, TensorList indices, const void *site)
{
    Tensor *in[1 + TENSOR_MAX_DIMS] = { x };
    int n = operands(name, in, 1, indices);
    return n < 0 ? NULL : op_apply1_as(&op_index, name, in, n, NULL, site);
}

Tensor *tensor_index_tensors(Tensor *x, TensorList indices)
{
    return index_by_tensors(__func__, x, indices, SITE);
}

/* ---- index_put ------------------------------------------------------------------------------- */

const TensorIndexPutArgs tensor_index_put_defaults = { TENSOR_INDEX_PUT_DEFAULTS };

/* On another device than the CPU, where one mask alone is given for one value: a selection, for which nothing
 * is counted.  NULL: it is another case. */
static Tensor *selected(OpCall *c, Tensor *x, Tensor *value)
{
    int64_t shape[TENSOR_MAX_DIMS];
    int d = -1;
    for (int i = 2; i < op_inputs(c); i++) {
        if (!op_input(c, i)) continue;
        if (d >= 0) return NULL;
        d = i - 2;
    }
    Tensor *mask = d >= 0 ? op_input(c, d + 2) : NULL;
    if (!mask || !is_mask(mask) || on_host(x->place) || value->numel != 1 || value->dtype != x->dtype ||
        mask->ndim == 0 || d + mask->ndim > x->ndim || op_inputs(c) - 3 + mask->ndim > x->ndim)
        return NULL;
    for (int i = d; i < x->ndim; i++) {
        const bool masked = i - d < mask->ndim;
        if (masked && mask->shape[i - d] != x->shape[i]) return NULL;
        shape[i - d] = masked ? x->shape[i] : 1;
    }
    mask = tensor_reshape(mask, (TensorShape){ x->ndim - d, shape });
    return mask ? tensor_where(as_mask(mask), tensor_reshape(value, SHAPE()), x) : NULL;
}

static int put_compose(OpCall *c)
{
    const TensorIndexPutArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *values = op_inputs(c) > 1 ? op_input(c, 1) : NULL;
    Rows r;
    int64_t dim[2 * TENSOR_MAX_DIMS];
    if (!values) return op_fail(c, TENSOR_EVALUE, "no values given");
    Tensor *y = p->accumulate ? NULL : selected(c, x, values);
    if (y) return op_set_result(c, 0, y);
    if (make_rows(c, x, 2, &r)) return -1;
    TensorShape shape = picked_shape(x, &r, dim);
    values = without_lead(values, shape.ndim);
    int64_t wide[TENSOR_MAX_DIMS];
    if (shape_broadcast(shape_of(values), shape, wide) != shape.ndim ||
        !shape_equal((TensorShape){ shape.ndim, wide }, shape))
        return op_fail(c, TENSOR_ESHAPE, "values %s do not broadcast to %s, what the indices pick of %s",
                       S(values), shape_text(shape), S(x));
    Tensor *rows = as_rows(x, &r),
           *v = tensor_reshape(tensor_expand(values, shape), SHAPE(r.outer, r.at->numel, r.width));
    y = p->accumulate ? tensor_index_add(rows, 1, r.at, v) : tensor_index_copy(rows, 1, r.at, v);
    return op_set_result(c, 0, y ? from_rows(y, x, &r) : NULL);
}

static const OpField put_fields[] = { OP_OPTION(TensorIndexPutArgs, accumulate), { 0 } };
static const TensorOp op_index_put = {
    .name = "index_put",
    .autocast = AUTOCAST_CUDA_PROMOTE,
    .summary = "x with values written, or added, at tensors of indices or masks; the last one wins",
    .gradient = "dx = dy, 0 where written; dvalues = dy at the indices, 0 for values that were overwritten",
    .arity = OP_ANY_ARITY,
    .optional = ~(KEEP_INPUT(0) | KEEP_INPUT(1)),
    PARAMS(TensorIndexPutArgs, tensor_index_put_defaults, put_fields),
    .compose = put_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "Tensor.index_put",
    .samples = "5x3,4x3,4@i64:-5..4; 3x4,6,6@i64:0..2,6@i64:-4..3 {accumulate=1}; "
               "3x4x2,2,2x1@i64:0..2,3@i64:0..3; 3x4,,3@bool; 3x4,,3x4@bool {accumulate=1}; "
               "3x2,0x2,0@i64:0..0; 2x3x4,4,-,2@i64:-3..2; 2x3x4,2x3,2@i64:0..1,-,2@i64:0..3 {accumulate=1}; "
               "2x3x4,3,2@i64:0..1,-,2@i64:0..3",
    .errors = "3x4,,2@i64:4..5 ! EINDEX; 3x4,3,2@i64:0..1 ! ESHAPE; 3x4,,2@bool ! ESHAPE; 3x4 ! EVALUE; 3x4, "
              "! EINDEX; 3x4,4@i64,2@i64:0..1 ! EDTYPE"
};
REGISTER_OPS(&op_index_put);

Tensor *tensor_index_put_args(TensorIndexPutArgs args)
{
    Tensor *in[2 + TENSOR_MAX_DIMS] = { args.input, args.values };
    int n = operands("index_put", in, 2, args.indices);
    return n < 0 ? NULL : op_apply1(&op_index_put, in, n, &args, SITE);
}

/* Without a copy of x, where nothing is recorded and all is dense on the CPU.  1: written; 0: it must go the
 * long way; -1: refused. */
static int write_now(OpCall *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->input[i] ? !c->input[i]->storage || c->input[i]->place != &cpu_place : i < 2) return 0;
    Tensor *x = c->input[0], *values = c->input[1];
    bool graph = !grad_off && (on_graph(x) || on_graph(values) || on_graph(x->base));
    if (graph || x->dtype != values->dtype || !(x->flags & FLAG_CONTIGUOUS) || tensor_error_code()) return 0;
    Rows r;
    int64_t dim[2 * TENSOR_MAX_DIMS], wide[TENSOR_MAX_DIMS];
    if (inplace_check(c->name, x) || make_rows(c, x, 2, &r)) return -1;
    TensorShape shape = picked_shape(x, &r, dim);
    bool fits = values->ndim <= shape.ndim && shape_broadcast(shape_of(values), shape, wide) >= 0 &&
                shape_equal((TensorShape){ shape.ndim, wide }, shape);
    if (r.permuted || !fits) return 0;
    Tensor *v = own(new_tensor(shape, x->dtype, &cpu_place));
    if (!v || raw_copy(v, values)) return -1;
    const size_t size = (size_t)r.width * dtype_size(x->dtype);
    const int64_t *at = r.at->data, m = r.at->numel;
    host_write_rows(x->data, r.rows, v->data, r.outer, at, m, size);
    note_write(x, c->op->name, c->site);
    return 1;
}

Tensor *tensor_index_put_args_(TensorIndexPutArgs args)
{
    Tensor *in[2 + TENSOR_MAX_DIMS] = { args.input, args.values };
    int n = operands("index_put_", in, 2, args.indices), written = 0;
    if (n >= 0 && !args.accumulate) {
        OpCall c;
        call_begin(&c, &op_index_put, in, n, NULL, SITE);
        c.name = "index_put_";
        TensorScope scope = tensor_scope_open();
        written = write_now(&c);
        tensor_scope_close(scope);
    }
    if (written || n < 0) return written > 0 ? borrow(args.input) : NULL;
    return op_apply_(&op_index_put, in, n, &args, SITE);
}
