/* adafactor.c - Adafactor: the mean of squares of a matrix from those of its rows and columns.
 *
 *   w = t^beta2_decay;   r += w (rowmean g^2 - r);   c += w (columnmean g^2 - c);   v = r c / mean r
 *   u = g / sqrt(v);   p -= max(eps2, rms p) min(lr, 1 / sqrt t) u / max(1, rms u / d)
 *
 * The last two dimensions are the matrix; vectors keep v itself. */
#include <float.h>
#include <math.h>
#include "../optim.h"

enum { ROW, COL, VARIANCE };

static int shape(const Tensor *p, int s, int64_t *dim)
{
    const int ndim = tensor_ndim(p);
    if ((ndim > 1) != (s != VARIANCE)) return -1;
    for (int d = 0; d < ndim; d++) dim[d] = tensor_size(p, d);
    if (s != VARIANCE) dim[s == ROW ? ndim - 1 : ndim - 2] = 1;
    return ndim;
}

static double epsilon(const OptimAdafactorArgs *o, const Tensor *p)
{
    if (!isnan(o->eps1)) return o->eps1;
    switch (tensor_dtype(p)) {
    case TENSOR_F64: return DBL_EPSILON;
    case TENSOR_F16: return 0x1p-10;
    case TENSOR_BF16: return 0x1p-7;
    default: return FLT_EPSILON;
    }
}

static double weight_of(const void *options, const OptimParam *p)
{
    return pow((double)p->step, ((const OptimAdafactorArgs *)options)->beta2_decay);
}

static double rate_of(const void *options, const OptimParam *p)
{
    return fmin(((const OptimAdafactorArgs *)options)->lr, 1 / sqrt((double)p->step));
}

/* state += weight (mean of squares along dim - state); returns it, wide. */
static Tensor *follow(Tensor *state, Tensor *squares, int dim, Tensor *weight)
{
    Tensor *mean = dim ? tensor_mean(squares, dim, true) : squares;
    Tensor *now = tensor_lerp_tensor(optim_wider(state), mean, weight);
    return tensor_copy_(state, now) ? now : NULL;
}

static Tensor *estimate(OptimParam *p, Tensor *squares, Tensor *weight, double eps)
{
    if (!p->state[ROW]) return follow(p->state[VARIANCE], squares, 0, weight);
    Tensor *row = follow(p->state[ROW], squares, -1, weight),
           *col = follow(p->state[COL], squares, -2, weight);
    return tensor_div(tensor_mul(row, col), tensor_clamp_min(tensor_mean(row, -2, true), eps));
}

static Tensor *rms(Tensor *x) { return tensor_mul_scalar(tensor_norm(x), 1 / sqrt((double)tensor_numel(x))); }

static int step(const void *options, OptimParam *p, Tensor *grad)
{
    const OptimAdafactorArgs *o = options;
    const double eps = epsilon(o, p->tensor);
    if (tensor_numel(grad) == 0) return 0;
    Tensor *x = optim_wider(p->tensor), *g = optim_wider(grad);
    if (o->maximize) g = tensor_neg(g);
    Tensor *rate = tensor_mul(tensor_clamp_min(rms(x), o->eps2), optim_of_step(p, rate_of, o));
    if (o->weight_decay != 0) x = tensor_mul_scalar(x, 1 - o->lr * o->weight_decay);
    Tensor *v = estimate(p, tensor_square(g), optim_of_step(p, weight_of, o), eps);
    Tensor *u = tensor_mul(tensor_rsqrt(tensor_clamp_min(v, eps * eps)), g);
    rate = tensor_div(rate, tensor_clamp_min(tensor_mul_scalar(rms(u), 1 / o->d), 1));
    return tensor_copy_(p->tensor, tensor_sub(x, tensor_mul(u, rate))) ? 0 : -1;
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimAdafactorArgs optim_adafactor_defaults = { OPTIM_ADAFACTOR_DEFAULTS };
static const OpField fields[] = {
    OP_OPTION(OptimAdafactorArgs, lr, beta2_decay, eps1, eps2, d, weight_decay, maximize), { 0 }
};

static int check(const void *options, const char *function)
{
    const OptimAdafactorArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    if (o->beta2_decay <= 0 && !(o->eps1 < 0) && o->eps2 >= 0 && o->d >= 1) return 0;
    return tensor_fail(TENSOR_EVALUE, function,
                       "beta2_decay %g, eps1 %g, eps2 %g, d %g: want at most 0, 0 or more twice, 1 or more",
                       o->beta2_decay, o->eps1, o->eps2, o->d);
}

OPTIM_DEFINE(adafactor, OptimAdafactorArgs, .name = "Adafactor", .fields = fields,
             .state = { "row_var", "col_var", "variance" }, .shape = shape, .check = check, .step = step,
             .skips = true)
