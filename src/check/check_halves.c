/* check_halves.c - checks that f16 and bf16 are computed wide and rounded once: at the op's samples,
 *
 *  - a result has the bits of f32's result at the same values, rounded; of f64's, where a rare row computes;
 *  - a gradient is f32's, rounded, to a unit of its largest element, recorded or not.  Backward may read the
 *    rounded result, as PyTorch's does: there only a bound in units is held. */
#include <math.h>
#include <string.h>
#include "report.h"

enum { WIDE = 2, UNITS = 1, UNITS_OF_KEPT = 6 };

typedef struct Run {
    Tensor *y[SAMPLE_RESULTS], *g[OP_MAX_INPUTS];
    int results, gradients;
} Run;

/* Sweeps back from all floating results with the cotangents v, made of the first run's dtype and cast for the
 * others. */
static int run(const Sample *s, Tensor *const *x, bool record, Tensor **v, Run *r)
{
    Tensor *leaf[OP_MAX_INPUTS], *wanted[OP_MAX_INPUTS], *root[SAMPLE_RESULTS], *cotangent[SAMPLE_RESULTS];
    int roots = 0;
    memset(r, 0, sizeof *r);
    sample_leaves(s, x, leaf);
    r->results = sample_apply(s, leaf, r->y);
    if (r->results < 0) return -1;
    for (int k = 0; k < r->results; k++) {
        if (!tensor_requires_grad(r->y[k])) continue;
        if (!v[k]) v[k] = random_like(r->y[k], 11 + (uint64_t)k);
        root[roots] = r->y[k], cotangent[roots++] = tensor_to(v[k], tensor_dtype(r->y[k]));
    }
    for (int i = 0; i < s->n && roots; i++)
        if (sample_differentiable(s, i, x[i])) wanted[r->gradients++] = leaf[i];
    return roots && r->gradients
               ? tensor_gradients_many(TENSOR_LIST(root, roots), TENSOR_LIST(wanted, r->gradients), r->g,
                                       .grad_outputs = TENSOR_LIST(cotangent, roots), .create_graph = record,
                                       .materialize_grads = true)
               : 0;
}

static bool is_rounded(const Tensor *y, Tensor *const *wide)
{
    for (int i = 0; i < WIDE; i++)
        if (wide[i] && off_by(y, tensor_to(wide[i], tensor_dtype(y)), 1) == 0) return true;
    return false;
}

static void check_rounding(const Sample *s, TensorDtype half, bool record)
{
    static const TensorDtype wider[WIDE] = { TENSOR_F32, TENSOR_F64 };
    const char *name = tensor_dtype_name(half);
    const double unit = half == TENSOR_F16 ? 0x1p-10 : 0x1p-7;
    const bool kept = s->op->keep >> 16 || !s->op->backward;
    Tensor *x[OP_MAX_INPUTS], *wide[OP_MAX_INPUTS], *v[SAMPLE_RESULTS] = { NULL };
    Run narrow, exact[WIDE];
    bool any = false;
    sample_inputs(s, (int)half, 1, x);
    for (int i = 0; i < s->n; i++) any |= x[i] && tensor_dtype(x[i]) == half;
    if (!any) return;
    int status = run(s, x, record, v, &narrow);
    for (int w = 0; w < WIDE && !status; w++) {
        for (int i = 0; i < s->n; i++)
            wide[i] = x[i] && tensor_dtype(x[i]) == half ? tensor_to(x[i], wider[w]) : x[i];
        status = run(s, wide, record, v, &exact[w]);
        if (!status && (exact[w].results != narrow.results || exact[w].gradients != narrow.gradients))
            complain(s, "in %s has other results", name);
    }
    if (status) {
        complain(s, "fails in %s", name);
        return;
    }
    for (int k = 0; k < narrow.results; k++)
        if (!is_rounded(narrow.y[k], (Tensor *[]){ exact[0].y[k], exact[1].y[k] }))
            complain(s, "result %d in %s is not f32's, rounded", k + 1, name);
    for (int i = 0; i < narrow.gradients; i++) {
        Tensor *g = narrow.g[i];
        if (is_rounded(g, (Tensor *[]){ exact[0].g[i], exact[1].g[i] })) continue;
        double off = off_by(g, tensor_to(exact[0].g[i], half), kept ? 1. / 8 : 0) / unit;
        if (!(off <= (kept ? UNITS_OF_KEPT : UNITS)))
            complain(s, "gradient %d in %s%s is off by %.2g units%s", i, name, record ? ", recorded," : "",
                     off, s->op->flags & OP_ROUND_ONCE ? "" : ": OP_ROUND_ONCE lets it be made in f32");
    }
}

static void check_sample(const Sample *s)
{
    for (int record = 0; record < (s->op->flags & OP_FIRST_ORDER ? 1 : 2); record++) {
        check_rounding(s, TENSOR_F16, record);
        check_rounding(s, TENSOR_BF16, record);
    }
}

void check_op_halves(const TensorOp *op) { each_sample(op, check_sample); }
