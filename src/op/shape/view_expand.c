/* view_expand.c - a view that repeats dimensions of size 1 without copying, by strides of 0.
 *
 *   y[..., i, ...] = x[..., 0, ...];  dx = the sum of dy over what was repeated, which is the tape's work
 *
 * and the copies made of it: repeat, tile, repeat_interleave. */
#include "cpu/shape/host_tables.h"
#include "op/index/index_plan.h"
#include "shape_op.h"

/* ---- expand ---------------------------------------------------------------------------------- */

typedef struct ExpandParams {
    TensorShape shape;
} ExpandParams;

static int expand_shape(OpCall *c)
{
    ExpandParams *p = op_params_mut(c);
    const TensorShape to = p->shape;
    Tensor *x = op_input(c, 0);
    int64_t size[TENSOR_MAX_DIMS];
    const int lead = to.ndim - x->ndim;
    if (lead < 0)
        return op_fail(c, TENSOR_ESHAPE, "%s to %s: want at least %d sizes", S(x), shape_text(to), x->ndim);
    for (int d = 0; d < to.ndim; d++) {
        const int64_t from = d < lead ? 1 : x->shape[d - lead];
        const bool keep = to.dim[d] == -1 && d >= lead;
        if (!keep && (to.dim[d] < 0 || (from != 1 && from != to.dim[d])))
            return op_fail(c, TENSOR_ESHAPE,
                           "%s to %s: aligned at the last dimension, sizes must agree, be 1 in the first, or "
                           "-1 for \"as it is\"",
                           S(x), shape_text(to));
        size[d] = keep ? from : to.dim[d];
    }
    return op_set_list(c, &p->shape, to.ndim, size);
}

static int expand_forward(OpCall *c)
{
    const TensorShape to = ((const ExpandParams *)op_params(c))->shape;
    Tensor *x = op_input(c, 0);
    int64_t stride[TENSOR_MAX_DIMS];
    if (shape_count(to) < 0)
        return op_fail(c, TENSOR_ESHAPE, "%s to %s: too many elements", S(x), shape_text(to));
    broadcast_strides(x, to, stride);
    return op_set_result(c, 0, own(new_view(x, to.ndim, to.dim, stride, 0)));
}

static int expand_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)c;
    dx[0] = dy;
    return 0;
}

static const OpField expand_fields[] = { OP_REQUIRED(ExpandParams, shape), { 0 } };
static const TensorOp op_expand = { .name = "expand",
                                    .autocast = AUTOCAST_AS_IS,
                                    .summary =
                                        "repeats dimensions of size 1, without a copy; -1 leaves a size",
                                    .gradient = "dx = sum of g over what was repeated",
                                    .arity = 1,
                                    PARAMS_GIVEN(ExpandParams, expand_fields),
                                    .shape = expand_shape,
                                    .forward = expand_forward,
                                    .backward = expand_backward,
                                    .flags = OP_VIEW | OP_ANY_DEVICE,
                                    .torch = "Tensor.expand",
                                    .samples =
                                        "3x1 {shape=[3 4]}; 1x3 {shape=[2 -1 3]}; {shape=[2 3]}; 3 "
                                        "{shape=[3]}; 1x0x3 {shape=[2 0 3]}; 1x3 {shape=[0 3]}; {shape=[]}",
                                    .errors = "3x2 {shape=[3 4]} ! ESHAPE; 3x1 {shape=[3]} ! ESHAPE; 3 "
                                              "{shape=[-1 3]} ! ESHAPE; 3 {shape=[-2]} ! ESHAPE" };
REGISTER_OPS(&op_expand);

Tensor *tensor_expand(Tensor *x, TensorShape shape) { return APPLY(&op_expand, &(ExpandParams){ shape }, x); }

Tensor *tensor_broadcast_to(Tensor *x, TensorShape shape)
{
    return APPLY_AS(&op_expand, __func__, &(ExpandParams){ shape }, x);
}

Tensor *tensor_expand_as(Tensor *x, const Tensor *other)
{
    if (check_null(other, __func__, 2)) return NULL;
    return APPLY_AS(&op_expand, __func__, &(ExpandParams){ shape_of(other) }, x);
}

int tensor_broadcast_tensors(TensorList tensors, Tensor **results)
{
    static const char op[] = "tensor_broadcast_tensors";
    const int n = tensors.count > 0 && tensors.count <= TENSOR_MAX_DIMS && tensors.item ? tensors.count : 0;
    int64_t shape[TENSOR_MAX_DIMS], wide[TENSOR_MAX_DIMS];
    TensorShape to = { 0, shape };
    if (!n) return fail(TENSOR_EVALUE, op, "%d tensors: want 1 to %d", tensors.count, TENSOR_MAX_DIMS);
    if (!results) return fail(TENSOR_ENULL, op, "the array for the results is NULL");
    for (int i = 0; i < n; i++) {
        const Tensor *x = tensors.item[i];
        if (check_null(x, op, i + 1)) return parts_or_none(-1, results, n);
        const int ndim = shape_broadcast(to, shape_of(x), wide);
        if (ndim < 0) {
            fail(TENSOR_ESHAPE, op, "operand %d, %s, does not broadcast with those before it, %s", i + 1,
                 S(x), shape_text(to));
            return parts_or_none(-1, results, n);
        }
        to.ndim = ndim;
        memcpy(shape, wide, sizeof shape);
    }
    for (int i = 0; i < n; i++)
        if (!(results[i] = tensor_expand(tensors.item[i], to))) return parts_or_none(-1, results, n);
    return n;
}

/* ---- repeat: each repeated dimension becomes a pair [times, size], expanded in its first half ---- */

const TensorRepeatInterleaveArgs tensor_repeat_interleave_defaults = { TENSOR_REPEAT_INTERLEAVE_DEFAULTS };
const TensorRepeatInterleaveTensorArgs tensor_repeat_interleave_tensor_defaults = {
    TENSOR_REPEAT_INTERLEAVE_TENSOR_DEFAULTS
};

typedef struct RepeatParams {
    TensorShape repeats;
} RepeatParams;

static int check_repeats(OpCall *c, TensorShape repeats)
{
    for (int i = 0; i < repeats.ndim; i++)
        if (repeats.dim[i] < 0)
            return op_fail(c, TENSOR_EVALUE, "%s times: want no negative count", shape_text(repeats));
    return 0;
}

static int repeat_shape(OpCall *c)
{
    const TensorShape repeats = ((const RepeatParams *)op_params(c))->repeats;
    Tensor *x = op_input(c, 0);
    if (repeats.ndim < x->ndim)
        return op_fail(c, TENSOR_ESHAPE, "%s repeated %s times: want a count for each dimension", S(x),
                       shape_text(repeats));
    return check_repeats(c, repeats);
}

static int repeat_compose(OpCall *c)
{
    const TensorShape repeats = ((const RepeatParams *)op_params(c))->repeats;
    Tensor *x = op_input(c, 0);
    int64_t apart[2 * TENSOR_MAX_DIMS], wide[2 * TENSOR_MAX_DIMS], shape[TENSOR_MAX_DIMS];
    int n = 0, lead = repeats.ndim - x->ndim;
    for (int d = 0; d < repeats.ndim; d++) {
        int64_t times = repeats.dim[d], size = d < lead ? 1 : x->shape[d - lead];
        if (__builtin_mul_overflow(times, size, &shape[d]))
            return op_fail(c, TENSOR_ESHAPE, "too many elements");
        if (size != 1 && times != 1) apart[n] = 1, wide[n++] = times;
        apart[n] = size, wide[n++] = size == 1 ? times : size;
    }
    if (n > TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%s repeated %s times: too many dimensions", S(x),
                       shape_text(repeats));
    Tensor *y = tensor_expand(tensor_reshape(x, (TensorShape){ n, apart }), (TensorShape){ n, wide });
    y = tensor_reshape(y, (TensorShape){ repeats.ndim, shape });
    if (y && y->storage == x->storage) y = tensor_clone(y); /* once: a copy all the same */
    return op_set_result(c, 0, y);
}

static const OpField repeat_fields[] = { OP_REQUIRED(RepeatParams, repeats), { 0 } };
static const TensorOp op_repeat = {
    .name = "repeat",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x laid beside itself, repeats[d] times along each dimension",
    .gradient = "dx = sum of g over the copies",
    .arity = 1,
    PARAMS_GIVEN(RepeatParams, repeat_fields),
    .shape = repeat_shape,
    .compose = repeat_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "Tensor.repeat",
    .samples = "2x3 {repeats=[2 3]}; 3 {repeats=[2 1 2]}; {repeats=[2]}; {repeats=[]}; 2x3 {repeats=[0 2]}; "
               "0x2 {repeats=[2 2]}; 2x3 {repeats=[1 1]}; 1x3 {repeats=[3 1]}",
    .errors = "2x3 {repeats=[2]} ! ESHAPE; 2 {repeats=[-1]} ! EVALUE"
};
REGISTER_OPS(&op_repeat);

Tensor *tensor_repeat(Tensor *x, TensorShape repeats)
{
    return APPLY(&op_repeat, &(RepeatParams){ repeats }, x);
}

/* ---- tile ------------------------------------------------------------------------------------ */

typedef struct TileParams { /* as RepeatParams, by another name */
    TensorShape dims;
} TileParams;

static int tile_shape(OpCall *c)
{
    TileParams *p = op_params_mut(c);
    const int ndim = op_input(c, 0)->ndim, lead = ndim - p->dims.ndim;
    int64_t times[TENSOR_MAX_DIMS];
    for (int d = 0; d < ndim; d++) times[d] = d < lead ? 1 : p->dims.dim[lead > 0 ? d - lead : d];
    if (lead > 0 && op_set_list(c, &p->dims, ndim, times)) return -1;
    return check_repeats(c, p->dims);
}

static const OpField tile_fields[] = { OP_REQUIRED(TileParams, dims), { 0 } };
static const TensorOp op_tile = {
    .name = "tile",
    .autocast = AUTOCAST_AS_IS,
    .summary = "repeat, where missing leading counts are 1",
    .gradient = "dx = sum of g over the copies",
    .arity = 1,
    PARAMS_GIVEN(TileParams, tile_fields),
    .shape = tile_shape,
    .compose = repeat_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "2x3 {dims=[2]}; 3 {dims=[2 2]}; 2x3 {dims=[]}; {dims=[3]}; 0x2 {dims=[2 1]}",
    .errors = "2x3 {dims=[-1]} ! EVALUE"
};
REGISTER_OPS(&op_tile);

Tensor *tensor_tile(Tensor *x, TensorShape dims) { return APPLY(&op_tile, &(TileParams){ dims }, x); }

/* ---- repeat_interleave ----------------------------------------------------------------------- */

static int interleave_shape(OpCall *c)
{
    TensorRepeatInterleaveArgs *p = op_params_mut(c);
    if (p->repeats < 0)
        return op_fail(c, TENSOR_EVALUE, "%lld times: want no negative count", (long long)p->repeats);
    return call_dim_or_all(c, &p->dim, shape_of(op_input(c, 0)));
}

static int interleave_compose(OpCall *c)
{
    const TensorRepeatInterleaveArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    if (p->dim == TENSOR_ALL || x->ndim == 0) x = tensor_flatten(x);
    if (!x) return -1;
    const int dim = p->dim == TENSOR_ALL ? 0 : p->dim;
    int64_t wide[TENSOR_MAX_DIMS + 1], shape[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) wide[d + (d > dim)] = shape[d] = x->shape[d];
    wide[dim + 1] = p->repeats;
    if (__builtin_mul_overflow(shape[dim], p->repeats, &shape[dim]))
        return op_fail(c, TENSOR_ESHAPE, "too many elements");
    Tensor *y = tensor_expand(tensor_unsqueeze(x, dim + 1), (TensorShape){ x->ndim + 1, wide });
    y = tensor_reshape(y, (TensorShape){ x->ndim, shape });
    if (y && y->storage == x->storage) y = tensor_clone(y);
    return op_set_result(c, 0, y);
}

static const OpField interleave_fields[] = { OP_REQUIRED(TensorRepeatInterleaveArgs, repeats),
                                             OP_OPTION(TensorRepeatInterleaveArgs, dim),
                                             { 0 } };
static const TensorOp op_repeat_interleave = {
    .name = "repeat_interleave",
    .autocast = AUTOCAST_AS_IS,
    .summary = "each element repeats times along dim; without dim, of x flattened",
    .gradient = "dx = sum of g over the copies",
    .arity = 1,
    PARAMS(TensorRepeatInterleaveArgs, tensor_repeat_interleave_defaults, interleave_fields),
    .shape = interleave_shape,
    .compose = interleave_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "2x3 {repeats=2 dim=0}; 2x3 {repeats=3 dim=-1}; 2x3 {repeats=2}; {repeats=2}; 2x3 "
               "{repeats=0 dim=1}; 0x3 {repeats=2 dim=0}; 3 {repeats=1}",
    .errors = "2x3 {repeats=-1} ! EVALUE; 2x3 {repeats=2 dim=2} ! EINDEX"
};
REGISTER_OPS(&op_repeat_interleave);

Tensor *tensor_repeat_interleave_args(TensorRepeatInterleaveArgs a)
{
    return APPLY(&op_repeat_interleave, &a, a.input);
}

/* ---- repeat_interleave by a list of counts --------------------------------------------------- */

static int wrong_size(OpCall *c, int64_t total)
{
    return op_fail(c, TENSOR_EVALUE, "output_size %lld, repeats that sum to %lld: want the sum",
                   (long long)((const TensorRepeatInterleaveTensorArgs *)op_params(c))->output_size,
                   (long long)total);
}

static int wrong_count(OpCall *c, int64_t count, int64_t position)
{
    return op_fail(c, TENSOR_EVALUE, "%lld times at position %lld: want no negative count", (long long)count,
                   (long long)position);
}

/* The index that repeats k of n as often as the list says; a list of one count serves all. */
static Tensor *index_here(OpCall *c, Tensor *repeats, int64_t n, int64_t size)
{
    Tensor *list = own(raw_cast(repeats, TENSOR_I64));
    if (!list) return NULL;
    int64_t bad = 0;
    const int64_t *count = list->data, step = repeats->numel > 1, total = host_repeats(count, step, n, &bad);
    if (total == -1) return wrong_count(c, count[bad * step], bad), NULL;
    if (total < 0) return op_fail(c, TENSOR_ESHAPE, "too many elements"), NULL;
    if (size >= 0 && size != total) return wrong_size(c, total), NULL;
    Tensor *index = own(new_tensor(SHAPE(total), TENSOR_I64, &cpu_place));
    if (index) host_repeat(index->data, count, step, n);
    return index;
}

/* The same by scan and search on another device, which is asked for the size unless that is given. */
static Tensor *index_there(OpCall *c, Tensor *repeats, int64_t n, int64_t size)
{
    Tensor *counts = tensor_expand(tensor_reshape(tensor_to(repeats, TENSOR_I64), SHAPE(-1)), SHAPE(n)),
           *end = tensor_cumsum(counts, 0), *total = end && n ? tensor_narrow(end, 0, n - 1, 1) : NULL;
    CheckArgs least = { .what = "the count", .status = TENSOR_EVALUE, .high = INT64_MAX };
    CheckArgs sum = { .what = "the sum of repeats", .status = TENSOR_EVALUE, .low = size, .high = size };
    if (!n && size > 0) return wrong_size(c, 0), NULL;
    int found = call_check(c, counts, &least);
    if (found) return found == 1 ? wrong_count(c, least.bad_value, least.bad_at), NULL : NULL;
    if (size < 0) size = total ? (int64_t)tensor_item(total) : 0;
    else if (total && (found = call_check(c, total, &sum)) != 0)
        return found == 1 ? wrong_size(c, sum.bad_value), NULL : NULL;
    if (tensor_error_code()) return NULL;
    Tensor *index = tensor_searchsorted(end, numbers_on(size, TENSOR_I64, end->place), .right = true);
    return n ? tensor_clamp(index, 0, (double)(n - 1)) : index;
}

static Tensor *index_of_counts(OpCall *c, Tensor *repeats, int64_t n)
{
    const int64_t size = ((const TensorRepeatInterleaveTensorArgs *)op_params(c))->output_size;
    if (repeats->ndim > 1 || (repeats->numel != n && repeats->numel != 1))
        return op_fail(c, TENSOR_ESHAPE, "repeats %s for %lld slices: want a list of as many, or one",
                       S(repeats), (long long)n),
               NULL;
    if (size < -1)
        return op_fail(c, TENSOR_EVALUE, "output_size %lld: want 0 or more", (long long)size), NULL;
    return on_host(repeats->place) ? index_here(c, repeats, n, size) : index_there(c, repeats, n, size);
}

static int counts_compose(OpCall *c)
{
    int dim = ((const TensorRepeatInterleaveTensorArgs *)op_params(c))->dim;
    Tensor *x = op_input(c, 0), *repeats = op_input(c, 1);
    if (call_index_dtype(c, repeats)) return -1;
    if (dim == TENSOR_ALL || x->ndim == 0) x = tensor_flatten(x);
    if (!x) return -1;
    dim = dim == TENSOR_ALL ? 0 : call_dim(c, dim, shape_of(x));
    Tensor *index = dim >= 0 ? index_of_counts(c, repeats, x->shape[dim]) : NULL;
    return index ? op_set_result(c, 0, tensor_index_select(x, dim, index)) : -1;
}

static const OpField counts_fields[] = { OP_OPTION(TensorRepeatInterleaveTensorArgs, dim, output_size),
                                         { 0 } };
static const TensorOp op_repeat_interleave_tensor = {
    .name = "repeat_interleave_tensor",
    .autocast = AUTOCAST_AS_IS,
    .summary = "slice k of dim repeats[k] times in a row; without dim, of x flattened",
    .gradient = "dx = sum of g over the copies",
    .arity = 2,
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorRepeatInterleaveTensorArgs, tensor_repeat_interleave_tensor_defaults, counts_fields),
    .compose = counts_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "repeat_interleave",
    .samples = "2x3,2@i64:0..3 {dim=0}; 2x3,3@i32:0..3 {dim=-1}; 2x3,6@u8:0..2; ,1@i64:2..2; "
               "2x3,@i64:2..2 {dim=1}; 0x3,0@i64 {dim=0}; 2x3,2@i64:2..2 {dim=0 output_size=4}",
    .errors = "2x3,2@i64:-1..-1 {dim=0} ! EVALUE; 2x3,4@i64:1..1 {dim=0} ! ESHAPE; 2x3,2@i64:1..1 "
              "{dim=2} ! EINDEX; 2x3,2 {dim=0} ! EDTYPE; 2x3,2@i64:1..1 {dim=0 output_size=3} ! EVALUE; "
              "2x3,2@i64:1..1 {dim=0 output_size=-2} ! EVALUE"
};
REGISTER_OPS(&op_repeat_interleave_tensor);

Tensor *tensor_repeat_interleave_tensor_args(TensorRepeatInterleaveTensorArgs a)
{
    return APPLY(&op_repeat_interleave_tensor, &a, a.input, a.repeats);
}
