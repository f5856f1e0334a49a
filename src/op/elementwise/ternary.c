/* ternary.c - lerp, addcmul, addcdiv: composed of rows.  Comparisons with a scalar.
 *
 *   lerp    = a + weight (b - a)         addcmul = x + value a b         addcdiv = x + value a / b */
#include "op/shape/shape_op.h"
#include "row.h"

const TensorAddcArgs tensor_addc_defaults = { TENSOR_ADDC_DEFAULTS };

typedef struct LerpParams {
    double weight;
} LerpParams;

static double weight_of(const OpCall *c) { return ((const LerpParams *)op_params(c))->weight; }
static double scalar(const OpCall *c) { return ((const TensorAddcArgs *)op_params(c))->value; }

static int lerp_shape(OpCall *c)
{
    int64_t shape[TENSOR_MAX_DIMS];
    if (shape_broadcast(shape_of(op_input(c, 0)), shape_of(op_input(c, 1)), shape) >= 0) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s and %s do not broadcast", S(op_input(c, 0)), S(op_input(c, 1)));
}

/* From the end that is nearer: the weights 0 and 1 give a and b themselves, as in PyTorch. */
static int lerp_forward(OpCall *c)
{
    Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    const double weight = weight_of(c);
    const bool from_a = fabs(weight) < 0.5;
    const double rest[FUSED_PARAMS] = { from_a ? weight : weight - 1 };
    Tensor *from = from_a ? a : b;
    if (fused_result(c, FUSED_lerp, 3, (Tensor *[]){ from, b, a }, rest)) return c->failed ? -1 : 0;
    return op_set_result(c, 0, tensor_add_scaled(from, tensor_sub(b, a), rest[0]));
}

/* Not by the ops of forward: g - weight g cancels where the weight is near 1. */
static int lerp_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (op_wants(c, 0) && !(dx[0] = tensor_mul_scalar(dy, 1 - weight_of(c)))) return -1;
    return op_wants(c, 1) && !(dx[1] = tensor_mul_scalar(dy, weight_of(c))) ? -1 : 0;
}

/* Operand i in the dtype of all three, lest the product of the others wrap or round in theirs. */
static Tensor *widened(OpCall *c, int i)
{
    Tensor *x = op_input(c, 0), *a = op_input(c, i);
    return tensor_to(a, (TensorDtype)promoted_pair(x, a));
}

static bool one_pass(OpCall *c, FusedRow row)
{
    return fused_result(c, row, 3, c->input, (double[FUSED_PARAMS]){ scalar(c) });
}

static int addcmul(OpCall *c)
{
    if (one_pass(c, FUSED_addcmul)) return 0;
    return op_set_result(
        c, 0, tensor_add_scaled(op_input(c, 0), tensor_mul(widened(c, 1), widened(c, 2)), scalar(c)));
}

static int addcdiv(OpCall *c)
{
    if (one_pass(c, FUSED_addcdiv)) return 0;
    return op_set_result(
        c, 0, tensor_add_scaled(op_input(c, 0), tensor_div(widened(c, 1), widened(c, 2)), scalar(c)));
}

static const OpField fields[] = { OP_OPTION(TensorAddcArgs, value), { 0 } };
static const OpField lerp_fields[] = { OP_REQUIRED(LerpParams, weight), { 0 } };
#define TERNARY_SAMPLES "3x4,3x4,3x4:.5..2; 3x1,4,:.5..2 {value=-0.5}; 0x2,2,0x2:.5..2; ,,:.5..2 {value=2}"

static const TensorOp op_lerp = { .name = "lerp",
                                  .autocast = AUTOCAST_AS_IS,
                                  .summary = "a + weight (b - a)",
                                  .arity = 2,
                                  .params = sizeof(LerpParams),
                                  .gradient = "da = g (1 - weight), db = g weight",
                                  .fields = lerp_fields,
                                  .shape = lerp_shape,
                                  .forward = lerp_forward,
                                  .backward = lerp_backward,
                                  .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ONE_DTYPE | OP_ROUND_ONCE,
                                  .samples = "3x4,3x4 {weight=0.3}; 3x1,4 {weight=2}; 0x2,2 {weight=0.5}",
                                  .errors = "3x4,3x5 {weight=1} ! ESHAPE; 3@i64,3@i64 {weight=1} ! EDTYPE; "
                                            "3@f32,3@f64 {weight=1} ! EDTYPE" };
static const TensorOp op_addcmul = { .name = "addcmul",
                                     .autocast = AUTOCAST_CUDA_PROMOTE,
                                     .summary = "x + value a b",
                                     .gradient = "dx = g, da = value g b, db = value g a",
                                     .arity = 3,
                                     PARAMS(TensorAddcArgs, tensor_addc_defaults, fields),
                                     .compose = addcmul,
                                     .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
                                     .samples = TERNARY_SAMPLES "; 3@i64,3@u8:0..255,3@u8:0..255",
                                     .errors = "3x4,3x5,3x4 ! ESHAPE" };
static const TensorOp op_addcdiv = { .name = "addcdiv",
                                     .autocast = AUTOCAST_CUDA_PROMOTE,
                                     .summary = "x + value a / b",
                                     .gradient = "dx = g, da = value g / b, db = -value g (a / b) / b",
                                     .arity = 3,
                                     PARAMS(TensorAddcArgs, tensor_addc_defaults, fields),
                                     .compose = addcdiv,
                                     .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
                                     .samples = TERNARY_SAMPLES,
                                     .errors = "3x4,3x5,3x4 ! ESHAPE" };
REGISTER_OPS(&op_lerp, &op_addcmul, &op_addcdiv);

Tensor *tensor_lerp(Tensor *a, Tensor *b, double weight)
{
    return APPLY(&op_lerp, &(LerpParams){ weight }, a, b);
}
Tensor *tensor_lerp_(Tensor *a, Tensor *b, double weight)
{
    return APPLY_(&op_lerp, &(LerpParams){ weight }, a, b);
}

#define ADDC(name)                                                    \
    Tensor *tensor_##name##_args(TensorAddcArgs a)                    \
    {                                                                 \
        return APPLY(&op_##name, &a, a.input, a.tensor1, a.tensor2);  \
    }                                                                 \
    Tensor *tensor_##name##_args_(TensorAddcArgs a)                   \
    {                                                                 \
        return APPLY_(&op_##name, &a, a.input, a.tensor1, a.tensor2); \
    }
ADDC(addcmul)
ADDC(addcdiv)

/* ---- comparisons with a scalar: floats in their own dtype, as PyTorch does; integers as numbers, whatever
 * they hold ---- */

#define LOGIC(...)
#define COMPARE(name, ...) HIDDEN extern const TensorOp op_##name;
#include <tapegrad/ops.def>

/* A dtype that holds both the elements of x and the value. */
static int compare_dtype(const Tensor *x, double value)
{
    static const double low[TENSOR_DTYPES] = { [TENSOR_I32] = -0x1p31, [TENSOR_I64] = -0x1p63 };
    static const double end[TENSOR_DTYPES] = {
        [TENSOR_BOOL] = 2, [TENSOR_U8] = 256, [TENSOR_I32] = 0x1p31, [TENSOR_I64] = 0x1p63
    };
    if (dtype_is_float(x->dtype)) return x->dtype;
    if (!is_integral(value)) return TENSOR_F64;
    return value >= low[x->dtype] && value < end[x->dtype] ? x->dtype : TENSOR_I64;
}

static Tensor *compare_scalar(const TensorOp *op, const char *function, Tensor *x, double value,
                              const void *site)
{
    if (check_null(x, function, 1)) return NULL;
    TensorScope scope = tensor_scope_open();
    int dtype = compare_dtype(x, value);
    Tensor *c = own(new_tensor(SHAPE(), dtype, x->place));
    if (c && raw_fill(c, value)) c = NULL;
    if (c && x->dtype != dtype) x = tensor_to(x, (TensorDtype)dtype);
    Tensor *y = c ? row_apply_as(op, function, x, c, NULL, site) : NULL;
    return tensor_scope_return(scope, y);
}

static Tensor *compare_scalar_(const TensorOp *op, const char *function, Tensor *x, double value,
                               const void *site)
{
    if (check_null(x, function, 1) || inplace_check(function, x)) return NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *y = compare_scalar(op, function, x, value, site);
    return tensor_scope_return(scope, y ? tensor_copy_(x, y) : NULL);
}

#define LOGIC(...)
#define COMPARE(name, ...)                                        \
    Tensor *tensor_##name##_scalar(Tensor *x, double c)           \
    {                                                             \
        return compare_scalar(&op_##name, __func__, x, c, SITE);  \
    }                                                             \
    Tensor *tensor_##name##_scalar_(Tensor *x, double c)          \
    {                                                             \
        return compare_scalar_(&op_##name, __func__, x, c, SITE); \
    }
#include <tapegrad/ops.def>
