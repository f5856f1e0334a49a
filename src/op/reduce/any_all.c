/* any_all.c - logic and counts over dims; no gradients. */
#include "reduce.h"

const TensorDimsArgs tensor_dims_defaults = { TENSOR_DIMS_DEFAULTS };

static int shape(OpCall *c, int dtype)
{
    TensorDimsArgs *p = op_params_mut(c);
    return reduce_check(c, &p->dim, &p->dims) ? -1 : reduce_shape(c, over_dims(p->dims, p->keepdim), dtype);
}

static int forward(OpCall *c, int kind)
{
    const TensorDimsArgs *p = op_params(c);
    return reduce_forward(c, over_dims(p->dims, p->keepdim), kind, 0);
}

static int bool_shape(OpCall *c) { return shape(c, TENSOR_BOOL); }
static int count_shape(OpCall *c) { return shape(c, TENSOR_I64); }
static int any_forward(OpCall *c) { return forward(c, REDUCE_ANY); }
static int all_forward(OpCall *c) { return forward(c, REDUCE_ALL); }
static int count_forward(OpCall *c) { return forward(c, REDUCE_COUNT_NONZERO); }

static const OpField fields[] = { OP_OPTION(TensorDimsArgs, dim, keepdim, dims), { 0 } };

#define LOGIC                                                                                             \
    .arity = 1, .params = sizeof(TensorDimsArgs), .defaults = &tensor_dims_defaults, .fields = fields,    \
    .flags = OP_ANY_DEVICE | OP_NONDIFFERENTIABLE,                                                        \
    .samples = "3x4@bool; 3x4@bool {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 5@i64:0..2; ; 0x3 {dim=0}; " \
               "0x3 {dims=[1]}; 2x3 {dim=-1 keepdim=true}",                                               \
    .errors = "3x4 {dims=[2]} ! EINDEX; 3x4 {dim=-3} ! EINDEX; 3x4 {dims=[0 0]} ! EVALUE; "               \
              "3x4 {dim=0 dims=[1]} ! EVALUE"

const TensorOp op_any = { .name = "any",
                          .autocast = AUTOCAST_AS_IS,
                          .summary = "is some element not 0?",
                          .shape = bool_shape,
                          .forward = any_forward,
                          LOGIC };
const TensorOp op_all = { .name = "all",
                          .autocast = AUTOCAST_AS_IS,
                          .summary = "is every element not 0?",
                          .shape = bool_shape,
                          .forward = all_forward,
                          LOGIC };
const TensorOp op_count_nonzero = { .name = "count_nonzero",
                                    .autocast = AUTOCAST_AS_IS,
                                    .summary = "how many elements are not 0",
                                    .shape = count_shape,
                                    .forward = count_forward,
                                    LOGIC };
REGISTER_OPS(&op_any, &op_all, &op_count_nonzero);

Tensor *tensor_any_args(TensorDimsArgs a) { return APPLY(&op_any, &a, a.input); }
Tensor *tensor_all_args(TensorDimsArgs a) { return APPLY(&op_all, &a, a.input); }
Tensor *tensor_count_nonzero_args(TensorDimsArgs a) { return APPLY(&op_count_nonzero, &a, a.input); }
