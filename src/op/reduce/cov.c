/* cov.c - covariances and correlations of variables, which are rows of observations [variables, n] (or one,
 * [n]).
 *
 *   cov = (x - m) diag(w) (x - m)^T / norm,  m = x w / sum w,  w = fweights aweights or 1
 *   norm = max(0, sum w - correction), with aweights: sum w - correction sum(w aweights) / sum w
 *   corrcoef_ij = cov_ij / sqrt(cov_ii) / sqrt(cov_jj), held to [-1, 1] */
#include "reduce.h"
#include "op/shape/shape_op.h"

const TensorCovArgs tensor_cov_defaults = { TENSOR_COV_DEFAULTS };

static int variables_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    return x->ndim <= 2
               ? 0
               : op_fail(c, TENSOR_ESHAPE, "%s: want variables in rows, [variables, n] or [n]", S(x));
}

static int check_weights(OpCall *c, int i, const char *name)
{
    const Tensor *x = op_input(c, 0), *w = op_input(c, i);
    const int64_t n = x->ndim ? x->shape[x->ndim - 1] : 1;
    if (!w) return 0;
    if (w->ndim > 1 || w->numel != n)
        return op_fail(c, TENSOR_ESHAPE, "%s %s for %s: want one of each of the %lld observations", name,
                       S(w), S(x), (long long)n);
    return 0;
}

static int check_signs(OpCall *c, int i, const char *name)
{
    CheckArgs a = { .what = name, .status = TENSOR_EVALUE, .high = INT64_MAX, .nan = true };
    const Tensor *w = op_input(c, i);
    const int found = w ? call_check(c, w, &a) : 0;
    if (found != 1) return found;
    const double bad = a.dtype == TENSOR_F64 ? a.bad_number : (double)a.bad_value;
    return op_fail(c, TENSOR_EVALUE, "%s: %g at %lld is negative", name, bad, (long long)a.bad_at);
}

static int cov_shape(OpCall *c)
{
    const Tensor *f = op_input(c, 1);
    if (variables_shape(c)) return -1;
    if (f && (dtype_is_float(f->dtype) || f->dtype == TENSOR_BOOL))
        return op_fail(c, TENSOR_EDTYPE, "fweights are %s: want integers",
                       tensor_dtype_name((TensorDtype)f->dtype));
    return check_weights(c, 1, "fweights") || check_weights(c, 2, "aweights") ? -1 : 0;
}

/* What the sums of products are divided by: a tensor of rank 0. */
static Tensor *divisor(Tensor *w, Tensor *a, double correction)
{
    Tensor *total = tensor_sum(w), *d;
    if (!total) return NULL;
    if (a && correction != 0)
        d = tensor_sub(total, tensor_mul_scalar(tensor_div(tensor_sum(tensor_mul(w, a)), total), correction));
    else d = tensor_sub_scalar(total, correction);
    return d ? tensor_where(tensor_gt_scalar(d, 0), d, tensor_zeros_like(d)) : NULL;
}

static Tensor *covariance(Tensor *x, Tensor *f, Tensor *a, double correction)
{
    if (!x) return NULL;
    if (x->ndim < 2) x = tensor_reshape(x, SHAPE(1, x->numel));
    if (!x) return NULL;
    const double n = (double)x->shape[1];
    Tensor *w = f ? tensor_to(tensor_reshape(f, SHAPE(-1)), (TensorDtype)x->dtype) : NULL;
    if (a && !(a = tensor_reshape(a, SHAPE(-1)))) return NULL;
    if (a) w = f ? tensor_mul(w, a) : a;
    if (f && !w) return NULL;
    Tensor *mean =
        w ? tensor_div(tensor_sum(tensor_mul(x, w), 1, true), tensor_sum(w)) : tensor_mean(x, 1, true);
    Tensor *d = tensor_sub(x, mean);
    Tensor *y = tensor_mm(d, tensor_t(w ? tensor_mul(d, w) : d));
    if (w) y = tensor_div(y, divisor(w, a, correction));
    else y = tensor_div_scalar(y, n - correction > 0 ? n - correction : 0);
    return tensor_squeeze(y);
}

static int cov_compose(OpCall *c)
{
    const TensorCovArgs *p = op_params(c);
    if (check_signs(c, 1, "fweights") || check_signs(c, 2, "aweights")) return -1;
    return op_set_result(c, 0, covariance(op_input(c, 0), op_input(c, 1), op_input(c, 2), p->correction));
}

/* In f64 where there is a graph: gradients are what two quotients leave of each other. */
static int corrcoef_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0);
    const TensorDtype dtype = (TensorDtype)x->dtype;
    const bool alone = dtype == TENSOR_F32 && (grad_off || !on_graph(x));
    Tensor *y = covariance(alone ? x : tensor_to(x, TENSOR_F64), NULL, NULL, 1);
    if (!y) return -1;
    if (y->ndim == 0) y = tensor_div(y, y);
    else {
        Tensor *deviation = tensor_sqrt(tensor_diagonal(y));
        y = tensor_clamp(
            tensor_div(tensor_div(y, tensor_unsqueeze(deviation, 1)), tensor_unsqueeze(deviation, 0)), -1, 1);
    }
    return op_set_result(c, 0, tensor_to(y, dtype));
}

static const OpField fields[] = { OP_OPTION(TensorCovArgs, correction), { 0 } };

const TensorOp op_cov = {
    .name = "cov",
    .autocast = AUTOCAST_PARTS,
    .summary = "covariances of the variables in rows; counts and weights of observations are optional",
    .gradient = "dx = (g + g^T) (x - m) diag(w) / norm",
    .arity = 3,
    .optional = KEEP_INPUT(1) | KEEP_INPUT(2),
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorCovArgs, tensor_cov_defaults, fields),
    .shape = cov_shape,
    .compose = cov_compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_SAME_DTYPE | OP_ROUND_ONCE,
    .samples = "3x5,-,-; 5,-,-; 3x5,-,- {correction=0}; 2x4,4@i64:1..3,-; 2x4,-,4:.5..2; "
               "2x4,4@i64:1..3,4:.5..2 {correction=0}; 2x4,4@i64:1..2,4:.5..1; 0x4,-,-",
    .errors = "2x3x4,-,- ! ESHAPE; 3x5,4@i64:1..2,- ! ESHAPE; 3x5,5,- ! EDTYPE; 3x5,-,5:-2..-1 ! EVALUE; "
              "3x5@i64,-,- ! EDTYPE",
};
const TensorOp op_corrcoef = {
    .name = "corrcoef",
    .autocast = AUTOCAST_AS_IS,
    .summary = "correlations of the variables in rows",
    .gradient = "v the diagonal of c = cov(x): dc_ij = g_ij / sqrt(v_i v_j), dv_i = -sum_j (g_ij + g_ji) "
                "y_ij / (2 v_i); dx is cov's for dc",
    .arity = 1,
    .shape = variables_shape,
    .compose = corrcoef_compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .samples = "3x5; 5; 2x4; 4x3; 0x3",
    .errors = "2x3x4 ! ESHAPE; 3@i64 ! EDTYPE",
};
REGISTER_OPS(&op_cov, &op_corrcoef);

Tensor *tensor_cov_args(TensorCovArgs a) { return APPLY(&op_cov, &a, a.input, a.fweights, a.aweights); }

Tensor *tensor_corrcoef(Tensor *x) { return APPLY(&op_corrcoef, NULL, x); }
