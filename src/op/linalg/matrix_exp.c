/* matrix_exp.c - e^x = sum x^k / k! of square matrices.
 *
 * Scaling and squaring (Higham 2005): e^x = (e^(x / 2^s))^(2^s), s so that the 1-norm of x / 2^s is at most
 * 1/2, where the 16 terms below are exact to 1/2^17 / 17! = 2e-20; in f32 at most 1, exact to 3e-15, for each
 * squaring doubles the error.  Their polynomial takes 6 products (Paterson and Stockmeyer 1973),
 * ((b3 x^4 + b2) x^4 + b1) x^4 + b0, each b of degree 3, the first of degree 4.  It is made of ops, in f64 or
 * f32, and so is its gradient. */
#include "cpu/linalg/linalg.h"
#include "matrices.h"

static int shape(OpCall *c) { return check_square(c, 0); }

static double bound_of(const Tensor *x) { return x->dtype == TENSOR_F32 ? 1 : .5; }

/* The same as linalg_halvings on another device than the CPU, which is asked for the largest s: so many are
 * the squarings. */
static Tensor *scales_there(Tensor *norm, int *most)
{
    Tensor *large = tensor_logical_and(tensor_gt_scalar(norm, bound_of(norm)), tensor_isfinite(norm)),
           *s = tensor_ceil(tensor_log2(tensor_div_scalar(norm, bound_of(norm))));
    s = large ? tensor_where(large, s, tensor_zeros_like(norm)) : NULL;
    const double largest = s ? tensor_item(tensor_max(s)) : 0;
    *most = largest > 0 ? (int)largest : 0;
    return s && !tensor_error_code() ? tensor_exp2(tensor_neg(s)) : NULL;
}

/* 2^-s of each matrix as [..., 1, 1], 1 for one that is not finite; *most is the largest s.  Each has its
 * own: halved more often than it needs, a matrix loses a digit for every three squarings. */
static Tensor *scales(Tensor *x, int *most)
{
    Tensor *by = NULL;
    TENSOR_NO_GRAD
        by = tensor_amax(tensor_sum(tensor_abs(x), .dim = -2, .keepdim = true), .dim = -1, .keepdim = true);
    if (!by || !on_host(x->place)) return by ? scales_there(by, most) : NULL;
    *most = LINALG(by->dtype, halvings, by->data, by->numel, bound_of(by));
    return by;
}

/* c_0 + c_1 x + ... of the terms k, k + 1, ... of the series. */
static Tensor *terms(Tensor *const power[5], int k, int n)
{
    Tensor *sum = NULL;
    for (int i = 0; i < n; i++) {
        Tensor *term = tensor_mul_scalar(power[i], 1 / tgamma(k + i + 1));
        sum = i ? tensor_add(sum, term) : term;
    }
    return sum;
}

static int matrix_exp(OpCall *c)
{
    Tensor *x = in_wide(c, 0), *power[5];
    if (!x) return -1;
    int most = 0;
    Tensor *by = x->numel ? scales(x, &most) : tensor_ones_like(x);
    power[0] = identity_like(x);
    power[1] = tensor_mul(x, by);
    power[2] = tensor_matmul(power[1], power[1]);
    power[3] = tensor_matmul(power[2], power[1]);
    power[4] = tensor_matmul(power[2], power[2]);
    Tensor *y = terms(power, 12, 5);
    for (int k = 8; k >= 0; k -= 4) y = tensor_add(tensor_matmul(y, power[4]), terms(power, k, 4));
    for (int i = 0; i < most && y; i++)
        y = tensor_where(tensor_lt_scalar(by, ldexp(1, -i)), tensor_matmul(y, y), y);
    return set_rounded(c, 0, y);
}

const TensorOp op_matrix_exp = {
    .name = "matrix_exp",
    .autocast = AUTOCAST_AS_IS,
    .summary = "e^x = sum x^k / k! of square matrices",
    .gradient = "dx = sum over i, j of (x^i)^T g (x^j)^T / (i + j + 1)!",
    .arity = 1,
    .shape = shape,
    .compose = matrix_exp,
    .flags = OP_FLOAT_INPUTS | OP_ROUND_ONCE,
    .torch = "linalg.matrix_exp",
    .samples = "3x3; 2x3x3; 1x1; 0x0; 0x2x2; 2x2:2..4",
    .errors = "3x4 ! ESHAPE; 3 ! ESHAPE; 3x3@i64 ! EDTYPE",
};
REGISTER_OPS(&op_matrix_exp);

Tensor *tensor_matrix_exp(Tensor *x) { return APPLY(&op_matrix_exp, NULL, x); }
