/* nonzero.c - where elements are not zero, and the elements that a mask picks: results whose size the values
 * decide; and the indices that positions stand for.
 *
 *   nonzero        i64 [count, rank]: the indices of the elements that are not 0, in row-major order; NaN is
 *                  not 0
 *   masked_select  the elements of x under the mask, in row-major order: an index_select of x flattened
 *   unravel_index  result d is position / (product of the sizes behind d) mod size d
 *
 * The CPU counts; another device is asked how many there are, and finds them by scan and search. */
#include "cpu/order/host_lists.h"
#include "op/index/index_plan.h"

const TensorNonzeroStaticArgs tensor_nonzero_static_defaults = { TENSOR_NONZERO_STATIC_DEFAULTS };

/* ---- nonzero --------------------------------------------------------------------------------- */

/* How many of a mask are true up to each element: i64, of the flattened mask. */
static Tensor *running_count(Tensor *mask)
{
    return tensor_cumsum(tensor_to(tensor_reshape(mask, SHAPE(mask->numel)), TENSOR_I64), 0);
}

/* The row-major positions of the first `most` elements that are true, on another device than the CPU: where
 * the running count comes to 1, 2, ...; behind the last one the number of elements.  Negative: as many as
 * there are, for which the device is asked. */
static Tensor *positions_there(Tensor *mask, int64_t most)
{
    Tensor *count = running_count(mask), *ones = NULL;
    if (count && most < 0)
        most = mask->numel ? (int64_t)tensor_item(tensor_narrow(count, 0, mask->numel - 1, 1)) : 0;
    if (!count || tensor_error_code() || !(ones = own(new_tensor(SHAPE(most), TENSOR_I64, mask->place))))
        return NULL;
    return raw_fill(ones, 1) ? NULL : tensor_searchsorted(count, tensor_cumsum(ones, 0));
}

static Tensor *indices_there(Tensor *mask, int64_t most, int64_t fill)
{
    Tensor *list = positions_there(mask, most), *rest = list, *index[TENSOR_MAX_DIMS];
    if (!list) return NULL;
    if (mask->ndim == 0) return own(new_tensor(SHAPE(list->numel, 0), TENSOR_I64, list->place));
    for (int d = mask->ndim - 1; d >= 0; d--) {
        const double n = mask->shape[d] ? (double)mask->shape[d] : 1;
        index[d] = d ? tensor_remainder_scalar(rest, n) : rest;
        if (d) rest = tensor_floor_divide_scalar(rest, n);
    }
    Tensor *y = tensor_stack(TENSOR_LIST(index, mask->ndim), 1);
    if (!y || most < 0) return y;
    Tensor *none = tensor_unsqueeze(tensor_ge_scalar(list, (double)mask->numel), 1);
    Tensor *filler = own(new_tensor(SHAPE(), TENSOR_I64, y->place));
    return filler && !raw_fill(filler, (double)fill) ? tensor_where(none, filler, y) : NULL;
}

/* most rows (negative: as many as there are); those without an element hold fill. */
static Tensor *indices_of(Tensor *x, int64_t most, int64_t fill)
{
    if (most == 0) return own(new_tensor(SHAPE(0, x->ndim), TENSOR_I64, x->place));
    Tensor *mask = own(raw_cast(x, TENSOR_BOOL));
    if (!mask || !on_host(x->place)) return mask ? indices_there(mask, most, fill) : NULL;
    if (most < 0) most = count_true(mask->data, x->numel);
    Tensor *list = own(new_tensor(SHAPE(most, x->ndim), TENSOR_I64, &cpu_place));
    if (list) indices_true(mask->data, x->ndim, x->shape, most, fill, list->data);
    return list;
}

static int nonzero_compose(OpCall *c) { return op_set_result(c, 0, indices_of(op_input(c, 0), -1, 0)); }

static const TensorOp op_nonzero = { .name = "nonzero",
                                     .autocast = AUTOCAST_AS_IS,
                                     .summary = "i64 [count, rank]: the indices of elements that are not 0",
                                     .arity = 1,
                                     .compose = nonzero_compose,
                                     .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
                                     .samples = "3x4@bool; 2x3x2@i64:0..1; @bool; 0x3; 5",
                                     .errors = "3,3 ! EVALUE" };
REGISTER_OPS(&op_nonzero);

Tensor *tensor_nonzero(Tensor *x) { return APPLY(&op_nonzero, NULL, x); }

static int static_compose(OpCall *c)
{
    const TensorNonzeroStaticArgs *p = op_params(c);
    if (p->size < 0) return op_fail(c, TENSOR_EVALUE, "size = %lld: want 0 or more", (long long)p->size);
    return op_set_result(c, 0, indices_of(op_input(c, 0), p->size, p->fill_value));
}

static const OpField static_fields[] = { OP_REQUIRED(TensorNonzeroStaticArgs, size),
                                         OP_OPTION(TensorNonzeroStaticArgs, fill_value),
                                         { 0 } };
static const TensorOp op_nonzero_static = {
    .name = "nonzero_static",
    .autocast = AUTOCAST_AS_IS,
    .summary = "i64 [size, rank]: the first indices of elements that are not 0, filled up",
    .arity = 1,
    PARAMS(TensorNonzeroStaticArgs, tensor_nonzero_static_defaults, static_fields),
    .compose = static_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples = "3x4@bool {size=3}; 2x3x2@i64:0..1 {size=20 fill_value=7}; @bool {size=2}; 0x3 {size=1}; 5 "
               "{size=0}",
    .errors = "3 {size=-1} ! EVALUE"
};
REGISTER_OPS(&op_nonzero_static);

Tensor *tensor_nonzero_static_args(TensorNonzeroStaticArgs a)
{
    return APPLY(&op_nonzero_static, &a, a.input);
}

/* ---- masked_select --------------------------------------------------------------------------- */

/* The row-major positions that a dense mask on the CPU picks. */
static Tensor *positions_of(const Tensor *mask)
{
    Tensor *list = own(new_tensor(SHAPE(count_true(mask->data, mask->numel)), TENSOR_I64, &cpu_place));
    if (list) positions_true(mask->data, mask->numel, list->data);
    return list;
}

static int select_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0), *mask = op_input(c, 1);
    int64_t dim[TENSOR_MAX_DIMS];
    if (call_mask_dtype(c, mask)) return -1;
    int ndim = shape_broadcast(shape_of(x), shape_of(mask), dim);
    if (ndim < 0)
        return op_fail(
            c, TENSOR_ESHAPE,
            "%s and mask %s do not broadcast: aligned at the last dimension, sizes must agree or be 1", S(x),
            S(mask));
    TensorShape shape = { ndim, dim };
    Tensor *wide = own(new_tensor(shape, TENSOR_BOOL, mask->place));
    if (!wide || raw_copy(wide, mask)) return -1;
    Tensor *list = on_host(mask->place) ? positions_of(wide) : positions_there(wide, -1);
    if (!list) return -1;
    Tensor *flat = tensor_reshape(tensor_expand(x, shape), SHAPE(-1));
    return op_set_result(c, 0, tensor_index_select(flat, 0, list));
}

static const TensorOp op_masked_select = { .name = "masked_select",
                                           .autocast = AUTOCAST_AS_IS,
                                           .summary = "the elements under a mask, in row-major order",
                                           .gradient = "dx = zeros with g under the mask",
                                           .arity = 2,
                                           .no_grad_inputs = KEEP_INPUT(1),
                                           .compose = select_compose,
                                           .flags = OP_ANY_DEVICE,
                                           .samples =
                                               "3x4,3x4@bool; 3x1,4@bool; ,@bool; 2x3x4,3x1@bool; 0x3,3@bool",
                                           .errors = "3,4@bool ! ESHAPE; 3,3 ! EDTYPE" };
REGISTER_OPS(&op_masked_select);

Tensor *tensor_masked_select(Tensor *x, Tensor *mask) { return APPLY(&op_masked_select, NULL, x, mask); }

/* ---- unravel_index --------------------------------------------------------------------------- */

typedef struct UnravelParams {
    TensorShape shape;
} UnravelParams;

static int unravel_check(OpCall *c)
{
    const TensorShape shape = ((const UnravelParams *)op_params(c))->shape;
    const Tensor *x = op_input(c, 0);
    const int64_t count = shape_count(shape);
    if (call_index_dtype(c, x)) return -1;
    if (count < 0 || shape.ndim == 0)
        return op_fail(c, TENSOR_ESHAPE, "%s in %s: want one size or more, none negative", S(x),
                       shape_text(shape));
    return 0;
}

static int unravel_compose(OpCall *c)
{
    const TensorShape shape = ((const UnravelParams *)op_params(c))->shape;
    if (check_indices(c, op_input(c, 0), shape_count(shape))) return -1;
    Tensor *rest = tensor_to(op_input(c, 0), TENSOR_I64), *index[TENSOR_MAX_DIMS];
    for (int d = shape.ndim - 1; d >= 0; d--) {
        const double n = shape.dim[d] ? (double)shape.dim[d] : 1; /* 0: there are no positions */
        index[d] = tensor_remainder_scalar(rest, n);
        if (d) rest = tensor_floor_divide_scalar(rest, n);
    }
    for (int d = 0; d < shape.ndim; d++)
        if (op_set_result(c, d, index[d])) return -1;
    return 0;
}

static const OpField unravel_fields[] = { OP_REQUIRED(UnravelParams, shape), { 0 } };
static const TensorOp op_unravel_index = {
    .name = "unravel_index",
    .autocast = AUTOCAST_AS_IS,
    .summary = "i64: the index in each dim of a shape that row-major positions stand for",
    .arity = 1,
    .outputs = OP_ANY_ARITY,
    PARAMS_GIVEN(UnravelParams, unravel_fields),
    .shape = unravel_check,
    .compose = unravel_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples = "5@i64:0..11 {shape=[3 4]}; 2x3@i32:0..23 {shape=[2 3 4]}; @u8:0..5 {shape=[6]}; 0@i64 "
               "{shape=[2 0]}; 4@i64:0..5 {shape=[1 6 1]}",
    .errors = "3@i64:6..9 {shape=[2 3]} ! EINDEX; 3@i64:-2..-1 {shape=[2 3]} ! EINDEX; 3 {shape=[2 3]} ! "
              "EDTYPE; 3@i64:0..0 {shape=[]} ! ESHAPE; 3@i64:0..0 {shape=[-1]} ! ESHAPE; "
              "1@i64:0..0 {shape=[0]} ! EINDEX"
};
REGISTER_OPS(&op_unravel_index);

int tensor_unravel_index(Tensor *indices, TensorShape shape, Tensor **results)
{
    static const char op[] = "tensor_unravel_index";
    const int room = shape.ndim < TENSOR_MAX_DIMS ? shape.ndim : TENSOR_MAX_DIMS;
    parts_or_none(-1, results, room); /* until they are there */
    if (!results) return fail(TENSOR_ENULL, op, "the array for the results is NULL");
    return op_apply(&op_unravel_index, &indices, 1, &(UnravelParams){ shape }, SITE, results, room);
}
