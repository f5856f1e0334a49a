/* sample_tensor.c - draws whose probabilities are a tensor: on the host (random/sample.c), or with
 * tensor_use_torch_cuda_random on the device, as PyTorch draws them there, without a wait.
 *
 *   one, or without replacement:   the n largest of p / e, e exponential
 *   with replacement:              the first j with c_j >= u, c cumulated; past the last p_j > 0 it counts as
 *                                  infinite, for u may be above what a sum of quotients rounds to */
#include <math.h>
#include "op/shape/shape_op.h"
#include "random/draw.h"
#include "random/random_state.h"

static bool is_drawn_there(const Tensor *p) { return random_torch_cuda() && !on_host(p->place) && p->numel; }

/* Values outside are a fault of the device's, found late. */
static int check_values(const char *op, const Tensor *x, const char *what, int64_t low, int64_t high,
                        const void *site)
{
    OpCall c = { .name = op, .site = site };
    CheckArgs args = { .what = what, .status = TENSOR_EVALUE, .low = low, .high = high };
    return call_check(&c, x, &args) ? -1 : 0;
}

Tensor *tensor_bernoulli(const Tensor *p)
{
    static const char op[] = "tensor_bernoulli";
    if (check_null(p, op, 1)) return NULL;
    if (!dtype_is_float(p->dtype))
        return fail(TENSOR_EDTYPE, op, "probabilities are %s %s: want a floating dtype",
                    tensor_dtype_name((TensorDtype)p->dtype), S(p)),
               NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *y = NULL;
    int status = 1;
    if (is_drawn_there(p))
        status = check_values(op, p, "a probability", 0, 1, SITE) ? -1 : draw_each_as_torch(op, p, &y);
    return tensor_scope_return(scope, status > 0 ? draw_bernoulli(op, p) : y);
}

/* ---- multinomial ----------------------------------------------------------------------------- */

static Tensor *draw_best(const char *op, Tensor *p, int64_t n)
{
    Tensor *e = draw_like(p, p->dtype,
                          (Draw){ op, fill_exponential, .torch = RANDOM_TORCH_EXPONENTIAL,
                                  .drawn = draw_wide(p->dtype), .at = { 1 } });
    Tensor *q = tensor_div(p, e), *index = NULL;
    if (n == 1) return tensor_argmax(q, -1, true);
    return tensor_topk(q, n, .dim = -1, .indices = &index) ? index : NULL;
}

/* u: a number for each draw, of a row each. */
static Tensor *draw_replacing(const char *op, Tensor *w, Tensor *sum, int64_t n)
{
    const int64_t rows = w->ndim == 2 ? w->shape[0] : 1;
    Tensor *c = tensor_cumsum(tensor_div(w, sum), -1);
    Tensor *last = tensor_narrow(c, -1, w->shape[w->ndim - 1] - 1, 1);
    c = tensor_masked_fill(c, tensor_ge(c, last), INFINITY);
    Tensor *u = c ? own(new_tensor(w->ndim == 2 ? SHAPE(rows, n) : SHAPE(n), TENSOR_F32, w->place)) : NULL;
    if (!u) return NULL;
    RandomArgs args = {
        .kind = RANDOM_TORCH_FIRST, .dtype = TENSOR_F32, .count = rows * n, .low = n, .out = u->data
    };
    const int status = random_as_torch(op, w->place, &args);
    if (status > 0) fail_declined(op, w->place, "random");
    return status ? NULL : tensor_searchsorted(c, tensor_to(u, (TensorDtype)c->dtype));
}

static Tensor *draw_there(const char *op, Tensor *p, int64_t n, bool replacement, const void *site)
{
    Tensor *w = p->dtype == TENSOR_F64 ? p : tensor_to(p, TENSOR_F32), *sum = tensor_sum(w, -1, true);
    Tensor *good = tensor_logical_and(tensor_gt_scalar(sum, 0), tensor_isfinite(sum));
    if (!good || check_values(op, p, "a weight", 0, INT64_MAX, site) ||
        check_values(op, tensor_to(good, TENSOR_I64), "weights with a sum (1) or none:", 1, 1, site))
        return NULL;
    return replacement && n > 1 ? draw_replacing(op, w, sum, n) : draw_best(op, p, n);
}

const TensorMultinomialArgs tensor_multinomial_defaults = { TENSOR_MULTINOMIAL_DEFAULTS };

Tensor *tensor_multinomial_args(TensorMultinomialArgs args)
{
    static const char op[] = "tensor_multinomial";
    const Tensor *p = args.input;
    const int64_t n = args.num_samples;
    const bool replacement = args.replacement;
    if (check_null(p, op, 1) || draw_check_multinomial(op, p, n, replacement)) return NULL;
    TensorScope scope = tensor_scope_open();
    if (!is_drawn_there(p)) return tensor_scope_return(scope, draw_multinomial(op, p, n, replacement));
    const bool graph = tensor_set_grad_enabled(false);
    const char *outer = tensor_compose_begin(op);
    Tensor *y = draw_there(op, (Tensor *)(uintptr_t)p, n, replacement, SITE);
    tensor_compose_end(outer);
    tensor_set_grad_enabled(graph);
    return tensor_scope_return(scope, y);
}
