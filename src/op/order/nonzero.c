/* nonzero.c - where elements are not zero, and the elements that a mask picks: results whose size the values
 * decide.
 *
 *   nonzero        i64 [count, rank]: the indices of elements that are not 0, in row-major order; NaN is not
 * 0 masked_select  the elements of x under the mask, in row-major order; an index_select of x flattened
 *
 * The counting is done on the host. */
#include "op/shape/shape_op.h"

static int64_t count_true(const uint8_t *mask, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += mask[i] != 0;
    return count;
}

/* ---- nonzero --------------------------------------------------------------------------------- */

static Tensor *indices_of(const Tensor *x)
{
    Tensor *host = host_copy(x, TENSOR_BOOL);
    if (!host) return NULL;
    const uint8_t *mask = host->data;
    Tensor *list = own(new_tensor(SHAPE(count_true(mask, x->numel), x->ndim), TENSOR_I64, &cpu_place));
    if (!list) return NULL;
    int64_t *at = list->data;
    for (int64_t i = 0; i < x->numel; i++) {
        if (!mask[i]) continue;
        int64_t rest = i;
        for (int d = x->ndim - 1; d >= 0; rest /= x->shape[d], d--) at[d] = rest % x->shape[d];
        at += x->ndim;
    }
    return carried(list, x->place);
}

static int nonzero_compose(OpCall *c) { return op_set_result(c, 0, indices_of(op_input(c, 0))); }

static const TensorOp op_nonzero = { .name = "nonzero",
                                     .summary = "i64 [count, rank]: the indices of elements that are not 0",
                                     .arity = 1,
                                     .compose = nonzero_compose,
                                     .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
                                     .samples = "3x4@bool; 2x3x2@i64:0..1; @bool; 0x3; 5",
                                     .errors = "3,3 ! EVALUE" };
REGISTER_OP(op_nonzero);

Tensor *tensor_nonzero(Tensor *x) { return APPLY(&op_nonzero, NULL, x); }

/* ---- masked_select --------------------------------------------------------------------------- */

/* The row-major positions that a dense mask on the host picks. */
static Tensor *positions_of(const Tensor *host)
{
    const uint8_t *mask = host->data;
    Tensor *list = own(new_tensor(SHAPE(count_true(mask, host->numel)), TENSOR_I64, &cpu_place));
    if (!list) return NULL;
    int64_t *at = list->data;
    for (int64_t i = 0; i < host->numel; i++)
        if (mask[i]) *at++ = i;
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
    Tensor *host = wide && !raw_copy(wide, mask) ? host_copy(wide, TENSOR_BOOL) : NULL,
           *list = host ? positions_of(host) : NULL;
    list = list ? carried(list, x->place) : NULL;
    return op_set_result(
        c, 0, list ? tensor_index_select(tensor_reshape(tensor_expand(x, shape), SHAPE(-1)), 0, list) : NULL);
}

static const TensorOp op_masked_select = { .name = "masked_select",
                                           .summary = "the elements under a mask, in row-major order",
                                           .gradient = "dx = zeros with g under the mask",
                                           .arity = 2,
                                           .no_grad_inputs = KEEP_INPUT(1),
                                           .compose = select_compose,
                                           .flags = OP_ANY_DEVICE,
                                           .samples =
                                               "3x4,3x4@bool; 3x1,4@bool; ,@bool; 2x3x4,3x1@bool; 0x3,3@bool",
                                           .errors = "3,4@bool ! ESHAPE; 3,3 ! EDTYPE" };
REGISTER_OP(op_masked_select);

Tensor *tensor_masked_select(Tensor *x, Tensor *mask) { return APPLY(&op_masked_select, NULL, x, mask); }
