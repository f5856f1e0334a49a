/* any_all.c - logic and counts over dims; no gradients. */
#include "reduce.h"

static int bool_shape(OpCall *c) { return reduce_check(c) ? -1 : reduce_shape(c, TENSOR_BOOL); }
static int count_shape(OpCall *c) { return reduce_check(c) ? -1 : reduce_shape(c, TENSOR_I64); }
static int any_forward(OpCall *c) { return reduce_forward(c, REDUCE_ANY); }
static int all_forward(OpCall *c) { return reduce_forward(c, REDUCE_ALL); }
static int count_forward(OpCall *c) { return reduce_forward(c, REDUCE_COUNT_NONZERO); }

static const OpField fields[] = { REDUCE_FIELDS, { 0 } };

#define LOGIC                                                                                                \
    .arity = 1, .params = sizeof(ReduceParams), .fields = fields,                                            \
    .flags = OP_ANY_DEVICE | OP_NONDIFFERENTIABLE,                                                           \
    .samples = "3x4@bool; 3x4@bool {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 5@i64:0..2; ; 0x3 {dims=[0]}; " \
               "0x3 {dims=[1]}",                                                                             \
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dims=[0 0]} ! EVALUE"

const TensorOp op_any = {
    .name = "any", .summary = "is some element not 0?", .shape = bool_shape, .forward = any_forward, LOGIC
};
const TensorOp op_all = {
    .name = "all", .summary = "is every element not 0?", .shape = bool_shape, .forward = all_forward, LOGIC
};
const TensorOp op_count_nonzero = { .name = "count_nonzero",
                                    .summary = "how many elements are not 0",
                                    .shape = count_shape,
                                    .forward = count_forward,
                                    LOGIC };
REGISTER_OP(op_any);
REGISTER_OP(op_all);
REGISTER_OP(op_count_nonzero);

Tensor *tensor_any_args(TensorReduceArgs a)
{
    if (unwanted(a.dtype != TENSOR_DTYPES, "any", "dtype")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    return APPLY(&op_any, &p, a.input);
}

Tensor *tensor_all_args(TensorReduceArgs a)
{
    if (unwanted(a.dtype != TENSOR_DTYPES, "all", "dtype")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    return APPLY(&op_all, &p, a.input);
}

Tensor *tensor_count_nonzero_args(TensorReduceArgs a)
{
    if (unwanted(a.dtype != TENSOR_DTYPES, "count_nonzero", "dtype")) return NULL;
    ReduceParams p = reduce_params(a.dim, a.dims, a.keepdim, 0);
    return APPLY(&op_count_nonzero, &p, a.input);
}
