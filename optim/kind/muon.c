/* muon.c - Muon: momentum, orthogonalized by the Newton-Schulz iteration.
 *
 *   b += (1 - momentum) (g - b);   u = nesterov ? g + momentum (b - g) : b
 *   X = u / |u|, in bf16 and transposed where it has more rows than columns;
 *   A = X X^T;   X = ns_a X + (ns_b A + ns_c A A) X, ns_steps times
 *   p = (1 - lr weight_decay) p - (adjusted lr) X */
#include <math.h>
#include "../optim.h"

static Tensor *orthogonal(const OptimMuonArgs *o, Tensor *u)
{
    const bool tall = tensor_size(u, 0) > tensor_size(u, 1);
    Tensor *x = tensor_to(u, TENSOR_BF16);
    if (tall) x = tensor_t(x);
    x = tensor_div(x, tensor_clamp_min(tensor_norm(x), o->eps));
    for (int i = 0; i < o->ns_steps && x; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *gram = tensor_matmul(x, tensor_t(x));
        Tensor *update = tensor_addmm(gram, gram, gram, .beta = o->ns_b, .alpha = o->ns_c);
        x = tensor_scope_return(scope, tensor_addmm(x, update, x, .beta = o->ns_a));
    }
    return tall ? tensor_t(x) : x;
}

static double adjusted_lr(const OptimMuonArgs *o, const Tensor *p)
{
    const double a = (double)tensor_size(p, 0), b = (double)tensor_size(p, 1);
    if (o->adjust_lr_fn == OPTIM_MATCH_RMS_ADAMW) return o->lr * 0.2 * sqrt(fmax(a, b));
    return o->lr * sqrt(o->adjust_lr_fn == OPTIM_SPECTRAL_UNCLAMPED ? a / b : fmax(1, a / b));
}

static int step(const void *options, OptimParam *p, Tensor *grad)
{
    const OptimMuonArgs *o = options;
    if (tensor_numel(grad) == 0) return 0;
    Tensor *g = o->maximize ? tensor_neg(optim_wider(grad)) : optim_wider(grad);
    Tensor *buf = tensor_lerp(optim_wider(p->state[0]), g, 1 - o->momentum);
    Tensor *u = o->nesterov ? tensor_lerp(g, buf, o->momentum) : buf;
    Tensor *x = tensor_mul_scalar(optim_wider(p->tensor), 1 - o->lr * o->weight_decay);
    u = orthogonal(o, u);
    x = u ? tensor_add_scaled(x, tensor_to(u, tensor_dtype(x)), -adjusted_lr(o, p->tensor)) : NULL;
    return x && tensor_copy_(p->state[0], buf) && tensor_copy_(p->tensor, x) ? 0 : -1;
}

/* ---- kind ------------------------------------------------------------------------------------ */

const OptimMuonArgs optim_muon_defaults = { OPTIM_MUON_DEFAULTS };
static const char *const adjustments[] = { "original", "match_rms_adamw", "spectral_unclamped", NULL };
static const OpField fields[] = { OP_OPTION(OptimMuonArgs, lr, weight_decay, momentum, nesterov, ns_a, ns_b,
                                            ns_c, eps, ns_steps),
                                  OP_CHOICE(OptimMuonArgs, adjust_lr_fn, adjustments),
                                  OP_OPTION(OptimMuonArgs, maximize),
                                  { 0 } };

static int check(const void *options, const char *function)
{
    const OptimMuonArgs *o = options;
    if (optim_check_common(o->lr, o->weight_decay, function)) return -1;
    if (!(o->momentum >= 0 && o->eps >= 0))
        return tensor_fail(TENSOR_EVALUE, function, "momentum %g, eps %g: want 0 or more", o->momentum,
                           o->eps);
    if (o->ns_steps < 0 || o->ns_steps >= 100 || !isfinite(o->ns_a + o->ns_b + o->ns_c))
        return tensor_fail(
            TENSOR_EVALUE, function,
            "ns_steps %d, ns_a %g, ns_b %g, ns_c %g: want 0 to 99 steps and finite coefficients", o->ns_steps,
            o->ns_a, o->ns_b, o->ns_c);
    return 0;
}

static int check_param(const Tensor *p, const char *function)
{
    if (tensor_ndim(p) == 2) return 0;
    return tensor_fail(TENSOR_ESHAPE, function, "a parameter of rank %d: want matrices; others want AdamW",
                       tensor_ndim(p));
}

OPTIM_DEFINE(muon, OptimMuonArgs, .name = "Muon", .uncounted = true, .ours = "maximize", .fields = fields,
             .state = { "momentum_buffer" }, .check = check, .check_param = check_param, .step = step,
             .skips = true, .samples = "maximize=true|lr=0.002")
