/* take.c - elements by their row-major positions, and elements under a mask, read and written.
 *
 *   take            y_k = flat(x)_(i_k)                          an index of x flattened
 *   put             y = x with flat(y)_(i_k) = or += source_k    an index_put of x flattened
 *   masked_scatter  y = x with the first elements of source where the mask is true, in row-major order
 *                   dx = dy, 0 under the mask; dsource = dy under the mask, 0 for what was not used */
#include "cpu/index/host_index.h"
#include "index_plan.h"
#include "index_language.h"

/* ---- take, put ------------------------------------------------------------------------------- */

static Tensor *as_index(OpCall *c, Tensor *index)
{
    return call_index_dtype(c, index) ? NULL : tensor_to(index, TENSOR_I64); /* u8 too: not a mask here */
}

static int take_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0), *index = as_index(c, op_input(c, 1));
    if (!index) return -1;
    return op_set_result(
        c, 0, index_by_tensors(c->name, tensor_reshape(x, SHAPE(x->numel)), TENSORS(index), c->site));
}

static const TensorOp op_take = {
    .name = "take",
    .autocast = AUTOCAST_AS_IS,
    .summary = "elements by their row-major positions, which may count from the end",
    .arity = 2,
    .gradient = "dx = zeros with dy added at the positions",
    .no_grad_inputs = KEEP_INPUT(1),
    .compose = take_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4,5@i64:-12..11; 3x4,2x1x2@i64:0..11; 3x4,@i64:0..11; ,2@i64:-1..0; 3x4,0@i64:0..0; "
               "0x3,0@i64:0..0; 5,3@i32:0..4",
    .errors =
        "3x4,2@i64:12..20 ! EINDEX; 3x4,2@i64:-30..-13 ! EINDEX; 3x4,2 ! EDTYPE; 0x3,2@i64:0..0 ! EINDEX"
};
REGISTER_OPS(&op_take);

Tensor *tensor_take(Tensor *x, Tensor *index) { return APPLY(&op_take, NULL, x, index); }

const TensorPutArgs tensor_put_defaults = { TENSOR_PUT_DEFAULTS };

static int put_compose(OpCall *c)
{
    const TensorPutArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *index = as_index(c, op_input(c, 1)), *source = op_input(c, 2);
    if (!index) return -1;
    if (source->numel != index->numel)
        return op_fail(c, TENSOR_ESHAPE, "index %s and source %s: want as many elements", S(index),
                       S(source));
    if (index->numel == 0) return op_set_result(c, 0, tensor_clone(x));
    Tensor *list = tensor_reshape(index, SHAPE(-1));
    if (!list) return -1;
    Tensor *y = tensor_index_put(tensor_reshape(x, SHAPE(x->numel)), TENSORS(list),
                                 tensor_reshape(source, SHAPE(-1)), p->accumulate);
    return op_set_result(c, 0, y ? tensor_reshape(y, shape_of(x)) : NULL);
}

static const OpField put_fields[] = { OP_OPTION(TensorPutArgs, accumulate), { 0 } };
static const TensorOp op_put = {
    .name = "put",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with elements written, or added, at row-major positions; the last one wins",
    .arity = 3,
    .gradient = "dx = dy, 0 where written; dsource = dy at the positions, 0 for what was overwritten",
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorPutArgs, tensor_put_defaults, put_fields),
    .compose = put_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "Tensor.put",
    .samples = "3x4,5@i64:-12..11,5; 3x4,2x3@i64:0..11,3x2 {accumulate=1}; 3x4,@i64:0..11,; ,2@i64:-1..0,2; "
               "3x4,0@i64:0..0,0",
    .errors = "3x4,2@i64:12..20,2 ! EINDEX; 3x4,2,2 ! EDTYPE; 3x4,2@i64:0..3,3 ! ESHAPE; "
              "3x4,2@i64:0..3,2@i64 ! EDTYPE"
};
REGISTER_OPS(&op_put);

Tensor *tensor_put_args(TensorPutArgs args)
{
    return APPLY(&op_put, &args, args.input, args.index, args.source);
}

Tensor *tensor_put_args_(TensorPutArgs args)
{
    return APPLY_(&op_put, &args, args.input, args.index, args.source);
}

/* ---- masked_scatter -------------------------------------------------------------------------- */

static int too_few(OpCall *c, int64_t count)
{
    return op_fail(c, TENSOR_ESHAPE, "a source %s for %lld places of mask %s: want as many elements",
                   S(op_input(c, 2)), (long long)count, S(op_input(c, 1)));
}

/* For each element of a dense mask, how many are true before it: the element of source that it takes.  NULL
 * and none: source has no element. */
static Tensor *ranks(OpCall *c, const Tensor *mask, int64_t source, bool *none)
{
    Tensor *list = own(new_tensor(SHAPE(mask->numel), TENSOR_I64, mask->place));
    if (!list) return NULL;
    if (on_host(mask->place)) {
        const int64_t count = host_ranks(mask->data, mask->numel, list->data);
        *none = count == 0;
        return count > source ? too_few(c, count), NULL : list;
    }
    Tensor *whole = own(new_view(mask, 1, &mask->numel, (int64_t[]){ 1 }, 0)),
           *count = tensor_cumsum(tensor_to(whole, TENSOR_I64), 0);
    CheckArgs a = { .what = "the number of places under the mask", .status = TENSOR_ESHAPE, .high = source };
    const int found = call_check(c, tensor_narrow(count, 0, mask->numel - 1, 1), &a);
    if (found) return found == 1 ? too_few(c, a.bad_value), NULL : NULL;
    *none = source == 0;
    return tensor_clamp(tensor_sub_scalar(count, 1), 0, (double)(source ? source - 1 : 0));
}

static int masked_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0), *mask = op_input(c, 1), *source = op_input(c, 2);
    int64_t dim[TENSOR_MAX_DIMS];
    bool none = false;
    if (call_mask_dtype(c, mask)) return -1;
    if (call_source_dtype(c, source, x)) return -1;
    TensorShape shape = { shape_broadcast(shape_of(x), shape_of(mask), dim), dim };
    if (shape.ndim < 0)
        return op_fail(
            c, TENSOR_ESHAPE,
            "%s and mask %s do not broadcast: aligned at the last dimension, sizes must agree or be 1", S(x),
            S(mask));
    Tensor *wide = own(new_tensor(shape, TENSOR_BOOL, x->place));
    if (!wide || raw_copy(wide, mask)) return -1;
    Tensor *list = wide->numel ? ranks(c, wide, source->numel, &none) : NULL;
    if (wide->numel && !list) return -1;
    if (!list || none) return op_set_result(c, 0, tensor_clone(tensor_expand(x, shape)));
    Tensor *picked = tensor_reshape(tensor_index_select(tensor_reshape(source, SHAPE(-1)), 0, list), shape);
    return op_set_result(c, 0, tensor_where(wide, picked, x));
}

static const TensorOp op_masked_scatter = {
    .name = "masked_scatter",
    .autocast = AUTOCAST_AS_IS,
    .summary = "x with the first elements of source where the mask is true",
    .arity = 3,
    .gradient = "dx = dy, 0 under the mask; dsource = dy under the mask in order, then 0",
    .no_grad_inputs = KEEP_INPUT(1),
    .compose = masked_compose,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4,3x4@bool,12; 2x3x4,3x1@bool,5x5; 4,3x4@bool,3x4; ,@bool,; 0x3,3@bool,2; 3,3@bool:0..0,0",
    .errors = "3,4@bool,5 ! ESHAPE; 3,3,3 ! EDTYPE; 3,3@bool:1..1,2 ! ESHAPE; 3,3@bool,3@i64 ! EDTYPE"
};
REGISTER_OPS(&op_masked_scatter);

Tensor *tensor_masked_scatter(Tensor *x, Tensor *mask, Tensor *source)
{
    return APPLY(&op_masked_scatter, NULL, x, mask, source);
}

Tensor *tensor_masked_scatter_(Tensor *x, Tensor *mask, Tensor *source)
{
    return APPLY_(&op_masked_scatter, NULL, x, mask, source);
}
