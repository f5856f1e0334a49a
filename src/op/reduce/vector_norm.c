/* vector_norm.c - vector norms over dims.
 *
 *   y = (sum |x|^p)^(1/p)              dx = g sign(x) (|x| / y)^(p-1), in range where |x|^p is not
 *   p = 1: dx = g sign x.   p = 2: dx = g x / y.   p = 0: y counts x != 0, dx = 0.
 *   p = inf, -inf: the extreme of |x|, dx = g sign(x) / ties where |x| is it
 *
 * Zero traps: where y is 0 dx is 0, and where x is 0 and p < 2 so is dx; the quotients there are formed of
 * 1s, so that no gradient of a gradient meets 0 / 0 either. */
#include <math.h>
#include "reduce.h"

const TensorNormArgs tensor_norm_defaults = { TENSOR_NORM_DEFAULTS };
const TensorVectorNormArgs tensor_vector_norm_defaults = { TENSOR_VECTOR_NORM_DEFAULTS };

static ReduceOver over_of(const OpCall *c)
{
    const TensorNormArgs *p = op_params(c);
    return over_dims(p->dims, p->keepdim);
}

static int shape(OpCall *c)
{
    TensorNormArgs *a = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (isnan(a->p)) return op_fail(c, TENSOR_EVALUE, "%s: p is NaN", S(x));
    if (reduce_check(c, &a->dim, &a->dims)) return -1;
    if ((a->p < 0 || isinf(a->p)) && reduce_not_empty(c, over_of(c))) return -1;
    return reduce_shape(c, over_of(c), x->dtype);
}

static int forward(OpCall *c)
{
    return reduce_forward(c, over_of(c), REDUCE_NORM, ((const TensorNormArgs *)op_params(c))->p);
}

/* x with 1 where it is 0. */
static Tensor *ones_for_zeros(Tensor *x)
{
    return x ? tensor_where(tensor_eq_scalar(x, 0), tensor_ones_like(x), x) : NULL;
}

/* g with 0 where y is 0. */
static Tensor *zeros_for_zeros(Tensor *g, Tensor *y)
{
    return g ? tensor_where(tensor_eq_scalar(y, 0), tensor_zeros_like(g), g) : NULL;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const ReduceOver r = over_of(c);
    const TensorShape to = op_input_shape(c, 0);
    const double p = ((const TensorNormArgs *)op_params(c))->p;
    Tensor *x = op_saved(c, 0), *y = op_saved_output(c, 0);
    if (!x || !y) return -1;
    if (p == 0) dx[0] = tensor_zeros_like(x);
    else if (p == 1) dx[0] = tensor_mul(tensor_sign(x), reduce_spread(r, to, dy));
    else if (p == 2)
        dx[0] = tensor_mul(x, reduce_spread(r, to, zeros_for_zeros(tensor_div(dy, ones_for_zeros(y)), y)));
    else if (isinf(p)) dx[0] = tensor_mul(tensor_sign(x), share_evenly(r, tensor_abs(x), y, dy));
    else {
        Tensor *ratio = tensor_div(ones_for_zeros(tensor_abs(x)), reduce_spread(r, to, ones_for_zeros(y)));
        Tensor *slope = tensor_mul(tensor_sign(x), tensor_pow_scalar(ratio, p - 1));
        dx[0] = tensor_mul(slope, reduce_spread(r, to, zeros_for_zeros(dy, y)));
    }
    return dx[0] ? 0 : -1;
}

static const OpField fields[] = { OP_OPTION(TensorNormArgs, p, dim, keepdim, dims),
                                  OP_DTYPE(TensorNormArgs, dtype),
                                  { 0 } };

const TensorOp op_norm = {
    .name = "norm",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "(sum |x|^p)^(1/p) over dims; gradient 0 where it is 0",
    .gradient = "dx = g sign(x) (|x| / y)^(p - 1), 0 where y = 0; p = inf: shared by ties",
    .arity = 1,
    .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
    .params = sizeof(TensorNormArgs),
    .defaults = &tensor_norm_defaults,
    .cast_option = offsetof(TensorNormArgs, dtype),
    .fields = fields,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .lo = .5,
    .hi = 2,
    .samples = "5; 3x4 {dims=[1]}; 2x3x4 {dims=[0 2] keepdim=1}; 3x4 {p=1 dims=[1]}; 3x4 {p=3 dims=[0]}; 5 "
               "{p=1.5}; 5 {p=.5}; 5 {p=0}; 3x4 {p=inf dims=[1]}; 5 {p=-inf}; 5 {p=-1}; ; 0x3 {dims=[0]}; "
               "0x3 {dims=[1]}; 4:-2..-.5 {p=3}; 3x4 {dim=-1 dtype=f64}; 3@i64:1..3 {dtype=f64}",
    .errors = "3x4 {dims=[2]} ! EINDEX; 3@i64 ! EDTYPE; 0 {p=inf} ! ESHAPE; 3 {p=nan} ! EVALUE; 3 "
              "{dtype=i64} ! EDTYPE; 3 {dim=0 dims=[0]} ! EVALUE",
};
REGISTER_OPS(&op_norm);

Tensor *tensor_norm_args(TensorNormArgs a) { return APPLY(&op_norm, &a, a.input); }

Tensor *tensor_linalg_vector_norm_args(TensorVectorNormArgs a)
{
    const TensorNormArgs as = {
        a.input, a.ord, a.dim, a.keepdim, a.dims, a.by_name, a.dtype, a.from_defaults
    };
    return APPLY_AS(&op_norm, "tensor_linalg_vector_norm", &as, a.input);
}
