/* gradcheck.c - analytic against numeric gradients, element by element (autograd.h lists the checks).
 *
 * The checked function f maps n tensors to some results.  For gradgradcheck it is x, v -> the gradients of
 * sum v f(x) with respect to x, so that the same code serves both orders.  The Jacobian of result k by input
 * i is stored as [result element][input element]. */
#include <math.h>
#include <stdio.h>
#include <tapegrad/ops.h>
#include "tensor/core.h"

const GradcheckArgs tensor_gradcheck_defaults = { TENSOR_GRADCHECK_DEFAULTS };

enum { RESULTS = 64, INPUTS = 2 * OP_MAX_INPUTS };

typedef struct Check {
    GradcheckArgs args;
    char name[96];         /* "gradcheck cube" */
    Tensor *input[INPUTS]; /* aliases of the user's, as leaves */
    bool checked[INPUTS];
    int n, plain; /* inputs in all; those of f itself (the rest are cotangents) */
    GradcheckReport *report;
    uint64_t random;
} Check;

/* A small generator of its own: the checked op may use the thread's. */
static double normal(Check *c)
{
    double u[2];
    for (int i = 0; i < 2; i++) {
        c->random = c->random * 6364136223846793005u + 1442695040888963407u;
        u[i] = ((double)(c->random >> 11) + 0.5) * 0x1p-53;
    }
    return sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]);
}

static int wrong(Check *c, TensorStatus code, const char *format, ...) TAPEGRAD_PRINTF(3, 4);
static int wrong(Check *c, TensorStatus code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!c->report->what[0]) vsnprintf(c->report->what, sizeof c->report->what, format, args);
    va_end(args);
    c->report->ok = false;
    return fail(code, c->name, "%s", c->report->what);
}

/* ---- evaluating ------------------------------------------------------------------------------ */

static int evaluate_f(Check *c, Tensor **y)
{
    if (c->args.fn) {
        y[0] = c->args.fn(c->input, c->plain, c->args.ctx);
        if (!y[0] && !tensor_error_code()) wrong(c, TENSOR_EUSER, "the function returned NULL");
        return y[0] ? 1 : -1;
    }
    if (c->args.op->flags & OP_RANDOM) tensor_manual_seed(c->args.seed);
    return tensor_apply_all(c->args.op, c->input, c->plain, c->args.params, y, RESULTS);
}

static bool differentiable(const Tensor *y) { return y && dtype_is_float(y->dtype); }

/* The results of the checked function; graph: as part of the graph. */
static int evaluate(Check *c, Tensor **y, bool graph)
{
    if (!c->args.second) {
        bool was = tensor_set_grad_enabled(graph);
        int n = evaluate_f(c, y);
        tensor_set_grad_enabled(was);
        return n;
    }
    Tensor *f[RESULTS], *roots[RESULTS], *v[RESULTS], *x[INPUTS];
    bool was = tensor_set_grad_enabled(true);
    int n = evaluate_f(c, f), m = 0, k = 0, inputs = 0;
    for (int i = 0; i < n; i++)
        if (differentiable(f[i])) {
            if (on_graph(f[i])) roots[m] = f[i], v[m++] = c->input[c->plain + k];
            k++;
        }
    for (int i = 0; i < c->plain; i++)
        if (c->checked[i]) x[inputs++] = c->input[i];
    int status = n < 0 ? -1 : 0;
    if (!status && m > 0)
        status = tensor_gradients_many(TENSOR_LIST(roots, m), TENSOR_LIST(x, inputs), y,
                                       .grad_outputs = TENSOR_LIST(v, m), .create_graph = graph,
                                       .materialize_grads = true);
    for (int i = 0; !status && m == 0 && i < inputs; i++)
        if (!(y[i] = tensor_zeros_like(x[i]))) status = -1;
    tensor_set_grad_enabled(was);
    return status ? -1 : inputs;
}

/* ---- reading and writing elements ------------------------------------------------------------ */

static int64_t offset_of(const Tensor *x, int64_t index)
{
    int64_t offset = 0;
    for (int d = x->ndim - 1; d >= 0; d--) offset += index % x->shape[d] * x->stride[d], index /= x->shape[d];
    return offset;
}

static double peek(const Tensor *x, int64_t index)
{
    double value = 0;
    const char *at = (const char *)x->data + offset_of(x, index) * 8;
    x->place->device->to_host(x->place->context, &value, at, sizeof value);
    return value;
}

static void poke(Tensor *x, int64_t index, double value)
{
    x->place->device->to_device(x->place->context, (char *)x->data + offset_of(x, index) * 8, &value,
                                sizeof value);
}

/* All values, row-major, as doubles in memory of tg_alloc. */
static double *values(const Tensor *x)
{
    double *v = tg_alloc((size_t)(x->numel ? x->numel : 1) * sizeof *v);
    if (!v) return fail_memory("gradcheck"), NULL;
    Tensor *host = tensor_from_blob(v, shape_of(x), TENSOR_F64, NULL, NULL);
    if (host && !raw_copy(host, x)) return v;
    tg_free(v, (size_t)(x->numel ? x->numel : 1) * sizeof *v);
    return NULL;
}

static void free_values(double *v, int64_t n) { tg_free(v, (size_t)(n ? n : 1) * sizeof *v); }

static void text_of(TensorShape shape, int64_t index, char *text, size_t size)
{
    int64_t at[TENSOR_MAX_DIMS];
    for (int d = shape.ndim - 1; d >= 0; d--) at[d] = index % shape.dim[d], index /= shape.dim[d];
    snprintf(text, size, "%s", shape_text((TensorShape){ shape.ndim, at }));
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

/* The gradients of sum(v y_k) by every checked input, into g; missing ones are NULL. */
static int gradients(Check *c, Tensor *y, Tensor *v, Tensor **g)
{
    Tensor *x[INPUTS], *found[INPUTS];
    int m = 0;
    for (int i = 0; i < c->n; i++) {
        g[i] = NULL;
        if (c->checked[i]) x[m++] = c->input[i];
    }
    if (!on_graph(y)) return 0;
    if (tensor_gradients_many(TENSORS(y), TENSOR_LIST(x, m), found, .grad_outputs = TENSORS(v),
                              .retain_graph = true, .allow_unused = true))
        return -1;
    for (int i = 0, k = 0; i < c->n; i++)
        if (c->checked[i]) g[i] = found[k++];
    return 0;
}

static int check_gradient_form(Check *c, const Tensor *g, int i)
{
    const Tensor *x = c->input[i];
    if (!shape_equal(shape_of(g), shape_of(x)))
        return wrong(c, TENSOR_ESHAPE, "the gradient of input %d %s has the shape %s", i + 1, S(x), S(g));
    if (g->dtype != x->dtype || g->place != x->place)
        return wrong(c, TENSOR_EDTYPE, "the gradient of input %d is %s on %s", i + 1,
                     tensor_dtype_name((TensorDtype)g->dtype), g->place->name);
    return 0;
}

/* Zero cotangents give exact zeros, and the same cotangents the same bits. */
static int check_sweeps(Check *c, Tensor *y, int k)
{
    Tensor *first[INPUTS], *again[INPUTS], *zero[INPUTS];
    Tensor *v = own(new_tensor(shape_of(y), y->dtype, y->place)), *none = tensor_zeros_like(y);
    if (!v || !none) return -1;
    for (int64_t j = 0; j < v->numel; j++) poke(v, j, normal(c));
    if (gradients(c, y, v, first) || gradients(c, y, v, again) || gradients(c, y, none, zero)) return -1;
    for (int i = 0; i < c->n; i++) {
        if (!first[i]) continue;
        if (check_gradient_form(c, first[i], i)) return -1;
        for (int64_t j = 0; j < first[i]->numel; j++) {
            double a = peek(first[i], j), b = peek(again[i], j), z = peek(zero[i], j);
            if (memcmp(&a, &b, sizeof a) != 0)
                return wrong(c, TENSOR_EVALUE,
                             "backward run twice gave %.17g and %.17g for input %d: it is not deterministic",
                             a, b, i + 1);
            if (z != 0)
                return wrong(c, TENSOR_EVALUE,
                             "backward with the cotangent 0 of result %d gave %g for input %d: it does not "
                             "multiply by it",
                             k + 1, z, i + 1);
        }
    }
    return 0;
}

/* ---- full Jacobians -------------------------------------------------------------------------- */

/* numeric[k][j * inputs' numel + i] for one input, all results. */
static int numeric_jacobian(Check *c, int input, double **numeric, Tensor *const *shape_like, int results)
{
    Tensor *x = c->input[input];
    for (int64_t i = 0; i < x->numel; i++) {
        double was = peek(x, i), eps = c->args.eps;
        double *side[2][RESULTS] = { { NULL } };
        int status = 0;
        for (int s = 0; s < 2 && !status; s++) {
            TensorScope scope = tensor_scope_open();
            Tensor *y[RESULTS];
            poke(x, i, was + (s ? -eps : eps));
            int n = evaluate(c, y, false);
            if (n != results)
                status = n < 0 ? -1
                               : wrong(c, TENSOR_EVALUE, "makes %d results near a point where it makes %d", n,
                                       results);
            for (int k = 0; k < results && !status; k++) {
                if (!differentiable(shape_like[k])) continue;
                if (!shape_equal(shape_of(y[k]), shape_of(shape_like[k])) ||
                    y[k]->dtype != shape_like[k]->dtype)
                    status = wrong(c, TENSOR_ESHAPE, "result %d is %s near a point where it is %s", k + 1,
                                   S(y[k]), S(shape_like[k]));
                else if (!(side[s][k] = values(y[k]))) status = -1;
            }
            poke(x, i, was); /* only now: y may be a view of x */
            tensor_scope_close(scope);
        }
        for (int k = 0; k < results; k++) {
            int64_t count = differentiable(shape_like[k]) ? shape_like[k]->numel : 0;
            for (int64_t j = 0; j < count && !status; j++)
                numeric[k][j * x->numel + i] = (side[0][k][j] - side[1][k][j]) / (2 * eps);
            for (int s = 0; s < 2; s++)
                if (side[s][k]) free_values(side[s][k], count);
        }
        if (status) return -1;
    }
    return 0;
}

/* analytic[i][j * inputs' numel + .] for one result, all inputs: one sweep an element of the result. */
static int analytic_jacobian(Check *c, Tensor *y, double **analytic)
{
    for (int64_t j = 0; j < y->numel; j++) {
        TensorScope scope = tensor_scope_open();
        Tensor *g[INPUTS], *v = tensor_zeros_like(y);
        int status = v ? 0 : -1;
        if (v) poke(v, j, 1);
        if (!status) status = gradients(c, y, v, g);
        for (int i = 0; i < c->n && !status; i++) {
            if (!c->checked[i] || !g[i]) continue;
            if ((status = check_gradient_form(c, g[i], i))) break;
            for (int64_t e = 0; e < g[i]->numel; e++) analytic[i][j * g[i]->numel + e] = peek(g[i], e);
        }
        tensor_scope_close(scope);
        if (status) return -1;
    }
    return 0;
}

static bool close_enough(Check *c, double analytic, double numeric, double *excess)
{
    GradcheckReport *r = c->report;
    double off = fabs(analytic - numeric), ratio = off / (r->atol + r->rtol * fabs(numeric));
    *excess = isnan(ratio) ? (isnan(analytic) && isnan(numeric) ? 0 : INFINITY) : ratio;
    if (analytic == numeric) *excess = 0;
    if (*excess > r->worst) r->worst = *excess;
    return *excess <= 1;
}

/* Input elements of one (result, input) block whose worst entry is off. */
static void compare_block(Check *c, int k, const Tensor *y, int i, const double *analytic,
                          const double *numeric, bool *bad)
{
    GradcheckReport *r = c->report;
    const Tensor *x = c->input[i];
    for (int64_t e = 0; e < x->numel; e++) {
        double worst = 1, excess;
        int64_t at = -1;
        for (int64_t j = 0; j < y->numel; j++)
            if (!close_enough(c, analytic[j * x->numel + e], numeric[j * x->numel + e], &excess) &&
                excess > worst)
                worst = excess, at = j;
        if (at < 0 || bad[e]) continue;
        bad[e] = true;
        r->wrong++;
        if (r->count == GRADCHECK_REPORTED) continue;
        GradcheckElement *el = &r->element[r->count++];
        *el = (GradcheckElement){ .input = i,
                                  .output = k,
                                  .input_index = e,
                                  .output_index = at,
                                  .analytic = analytic[at * x->numel + e],
                                  .numeric = numeric[at * x->numel + e] };
        text_of(shape_of(x), e, el->input_at, sizeof el->input_at);
        text_of(shape_of(y), at, el->output_at, sizeof el->output_at);
    }
}

typedef struct Blocks {
    double *at[RESULTS][INPUTS];
    int64_t size[RESULTS][INPUTS];
} Blocks;

static int make_blocks(Check *c, Blocks *b, Tensor *const *y, int results)
{
    memset(b, 0, sizeof *b);
    for (int k = 0; k < results; k++)
        for (int i = 0; i < c->n; i++) {
            if (!c->checked[i] || !differentiable(y[k])) continue;
            b->size[k][i] = (y[k]->numel * c->input[i]->numel + 1) * (int64_t)sizeof(double);
            if (!(b->at[k][i] = tg_calloc((size_t)b->size[k][i]))) return fail_memory("gradcheck");
        }
    return 0;
}

static void free_blocks(Blocks *b)
{
    for (int k = 0; k < RESULTS; k++)
        for (int i = 0; i < INPUTS; i++) tg_free(b->at[k][i], (size_t)b->size[k][i]);
}

static int compare_jacobians(Check *c, Tensor *const *y, int results, Blocks *analytic, Blocks *numeric)
{
    int status = make_blocks(c, analytic, y, results) | make_blocks(c, numeric, y, results);
    for (int i = 0; i < c->n && !status; i++) {
        double *column[RESULTS];
        for (int k = 0; k < results; k++) column[k] = numeric->at[k][i];
        if (c->checked[i]) status = numeric_jacobian(c, i, column, y, results);
    }
    for (int k = 0; k < results && !status; k++)
        if (differentiable(y[k])) status = analytic_jacobian(c, y[k], analytic->at[k]);
    for (int i = 0; i < c->n && !status; i++) {
        if (!c->checked[i]) continue;
        size_t n = (size_t)c->input[i]->numel + 1;
        bool *bad = tg_calloc(n);
        if (!bad) return fail_memory("gradcheck");
        c->report->checked += c->input[i]->numel;
        for (int k = 0; k < results; k++)
            if (differentiable(y[k]))
                compare_block(c, k, y[k], i, analytic->at[k][i], numeric->at[k][i], bad);
        tg_free(bad, n);
    }
    return status;
}

static int check_elements(Check *c, Tensor *const *y, int results)
{
    Blocks *b = tg_calloc(2 * sizeof *b);
    if (!b) return fail_memory("gradcheck");
    int status = compare_jacobians(c, y, results, &b[0], &b[1]);
    free_blocks(&b[0]);
    free_blocks(&b[1]);
    tg_free(b, 2 * sizeof *b);
    return status;
}

/* ---- random directions, for big inputs ------------------------------------------------------- */

/* v' J u, once by a sweep and once by differences along u (normalised), for one input and one result. */
static int check_direction(Check *c, int k, Tensor *y, int i, int results)
{
    Tensor *x = c->input[i], *g[INPUTS], *v = own(new_tensor(shape_of(y), y->dtype, y->place));
    Tensor *u = own(new_tensor(shape_of(x), x->dtype, x->place)), *start = own(raw_cast(x, TENSOR_F64));
    if (start && start->storage == x->storage) start = tensor_clone(tensor_detach(x));
    if (!v || !u || !start) return -1;
    double norm = 0, numeric = 0, analytic = 0;
    for (int64_t j = 0; j < v->numel; j++) poke(v, j, normal(c));
    for (int64_t e = 0; e < u->numel; e++) {
        double value = normal(c);
        poke(u, e, value), norm += value * value;
    }
    norm = norm > 0 ? sqrt(norm) : 1;
    for (int s = 0; s < 2; s++) {
        Tensor *near[RESULTS];
        for (int64_t e = 0; e < x->numel; e++)
            poke(x, e, peek(start, e) + (s ? -1 : 1) * c->args.eps * peek(u, e) / norm);
        int n = evaluate(c, near, false);
        for (int64_t j = 0; n == results && j < v->numel; j++)
            numeric += (s ? -1 : 1) * peek(v, j) * peek(near[k], j) / (2 * c->args.eps);
        for (int64_t e = 0; e < x->numel; e++) poke(x, e, peek(start, e));
        if (n != results)
            return n < 0 ? -1
                         : wrong(c, TENSOR_EVALUE, "makes %d results near a point where it makes %d", n,
                                 results);
    }
    if (gradients(c, y, v, g)) return -1;
    for (int64_t e = 0; g[i] && e < x->numel; e++) analytic += peek(g[i], e) * peek(u, e) / norm;
    double excess;
    c->report->checked++;
    if (close_enough(c, analytic, numeric, &excess)) return 0;
    c->report->wrong++;
    if (c->report->count < GRADCHECK_REPORTED)
        c->report->element[c->report->count++] = (GradcheckElement){ .input = i,
                                                                     .output = k,
                                                                     .input_index = -1,
                                                                     .output_index = -1,
                                                                     .input_at = "along a random direction",
                                                                     .analytic = analytic,
                                                                     .numeric = numeric };
    return 0;
}

static int check_directions(Check *c, Tensor *const *y, int results)
{
    enum { DIRECTIONS = 4 };
    int status = 0;
    for (int d = 0; d < DIRECTIONS; d++)
        for (int k = 0; k < results; k++)
            for (int i = 0; i < c->n && !status; i++) {
                if (!c->checked[i] || !differentiable(y[k])) continue;
                TensorScope scope = tensor_scope_open();
                status = check_direction(c, k, y[k], i, results);
                tensor_scope_close(scope);
            }
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int prepare_input(Check *c, Tensor *x, int i, bool check)
{
    if (!check) {
        c->input[i] = x ? tensor_detach(x) : NULL;
        return x && !c->input[i] ? -1 : 0;
    }
    if (x->dtype != TENSOR_F64)
        return wrong(c, TENSOR_EDTYPE, "input %d is %s: finite differences need f64", i + 1,
                     tensor_dtype_name((TensorDtype)x->dtype));
    if (overlaps_itself(x))
        return wrong(c, TENSOR_EVALUE,
                     "input %d %s overlaps itself (expanded?): elements must be free to move alone", i + 1,
                     S(x));
    c->checked[i] = true;
    c->input[i] = tensor_detach(x);
    return c->input[i] && tensor_requires_grad_(c->input[i], true) ? 0 : -1;
}

static int prepare(Check *c)
{
    bool any = false;
    for (int i = 0; i < c->plain; i++) any |= c->args.inputs.item[i] && on_graph(c->args.inputs.item[i]);
    for (int i = 0; i < c->plain; i++) {
        Tensor *x = c->args.inputs.item[i];
        bool optional = c->args.op && i < 32 && (c->args.op->optional >> i & 1);
        if (!x && !optional)
            return tensor_error_code() ? -1 : wrong(c, TENSOR_ENULL, "input %d is NULL", i + 1);
        if (x && check_null(x, "tensor_gradcheck", i + 1)) return -1;
        bool free_input =
            x && dtype_is_float(x->dtype) && !(c->args.op && i < 32 && (c->args.op->no_grad_inputs >> i & 1));
        if (prepare_input(c, x, i, free_input && (!any || on_graph(x)))) return -1;
    }
    bool checks = false;
    for (int i = 0; i < c->plain; i++) checks |= c->checked[i];
    if (!checks) return wrong(c, TENSOR_EDTYPE, "no input has a gradient: nothing to check");
    if (!c->args.second) return 0;
    Tensor *y[RESULTS];
    bool second = c->args.second;
    c->args.second = false;
    int n = evaluate(c, y, false);
    c->args.second = second;
    for (int k = 0; k < n; k++) {
        if (!differentiable(y[k])) continue;
        Tensor *v = own(new_tensor(shape_of(y[k]), y[k]->dtype, y[k]->place));
        if (!v) return -1;
        for (int64_t j = 0; j < v->numel; j++) poke(v, j, normal(c));
        if (c->n == INPUTS || prepare_input(c, v, c->n++, true)) return -1;
    }
    return n < 0 ? -1 : 0;
}

static int run(Check *c)
{
    if (prepare(c)) return -1;
    Tensor *y[RESULTS];
    int64_t elements = 0;
    int results = evaluate(c, y, true);
    if (results < 0) return -1;
    if (results > RESULTS)
        return wrong(c, TENSOR_EVALUE, "%d results: at most %d can be checked", results, RESULTS);
    for (int i = 0; i < c->n; i++) elements += c->checked[i] ? c->input[i]->numel : 0;
    for (int k = 0; k < results; k++) {
        if (!differentiable(y[k])) continue;
        if (y[k]->dtype != TENSOR_F64)
            return wrong(c, TENSOR_EDTYPE, "result %d is %s", k + 1,
                         tensor_dtype_name((TensorDtype)y[k]->dtype));
        elements += y[k]->numel;
        if (check_sweeps(c, y[k], k)) return -1;
    }
    int status =
        elements <= c->args.max_elements ? check_elements(c, y, results) : check_directions(c, y, results);
    GradcheckReport *r = c->report;
    if (status || r->wrong == 0) return status;
    const GradcheckElement *e = &r->element[0];
    return wrong(c, TENSOR_EVALUE,
                 "%s%lld of %lld elements wrong (atol %g, rtol %g): input %d %s   analytic %.8g   numeric "
                 "%.8g   off by %.8g",
                 c->args.second ? "the gradient's gradient has " : "", (long long)r->wrong,
                 (long long)r->checked, r->atol, r->rtol, e->input + 1, e->input_at, e->analytic, e->numeric,
                 fabs(e->analytic - e->numeric));
}

int tensor_gradcheck_args(GradcheckArgs args)
{
    if (TENSOR_CHECK_OPTIONS("tensor_gradcheck", args, tensor_gradcheck_defaults)) return -1;
    GradcheckReport *report = args.report ? args.report : tg_alloc(sizeof *report);
    Check *c = tg_calloc(sizeof *c);
    int status = -1;
    if (!report || !c) {
        fail_memory("gradcheck");
    } else {
        memset(report, 0, sizeof *report);
        report->ok = true, report->atol = args.atol, report->rtol = args.rtol;
        report->name = args.op ? args.op->name : "function";
        c->args = args, c->report = report, c->n = c->plain = args.inputs.count, c->random = args.seed;
        snprintf(c->name, sizeof c->name, "%s %.64s", args.second ? "gradgradcheck" : "gradcheck",
                 report->name);
        TensorScope scope = tensor_scope_open();
        bool was = tensor_set_grad_enabled(true);
        if (!args.op == !args.fn) wrong(c, TENSOR_EVALUE, "either an op or a function must be given");
        else if (args.inputs.count < 1 || args.inputs.count > OP_MAX_INPUTS || !args.inputs.item)
            wrong(c, TENSOR_EVALUE, "%d inputs: 1 to %d are possible", args.inputs.count, OP_MAX_INPUTS);
        else if (!(args.eps > 0 && args.atol >= 0 && args.rtol >= 0))
            wrong(c, TENSOR_EVALUE, "eps %g, atol %g, rtol %g: eps must be above 0, the others not negative",
                  args.eps, args.atol, args.rtol);
        else status = run(c);
        tensor_set_grad_enabled(was);
        tensor_scope_close(scope);
        if (status && report->ok) { /* the function itself failed */
            report->ok = false;
            snprintf(report->what, sizeof report->what, "%.250s", tensor_error() ? tensor_error() : "failed");
        }
    }
    if (!args.report) tg_free(report, sizeof *report);
    tg_free(c, sizeof *c);
    return status;
}

void tensor_gradcheck_print(FILE *file, const GradcheckReport *r)
{
    if (!file || !r) return;
    if (r->ok) {
        fprintf(file, "gradcheck %s: %lld elements right (atol %g, rtol %g)\n", r->name,
                (long long)r->checked, r->atol, r->rtol);
        return;
    }
    if (r->wrong == 0) {
        fprintf(file, "gradcheck %s: %s\n", r->name, r->what);
        return;
    }
    fprintf(file, "gradcheck %s: %lld of %lld elements wrong (atol %g, rtol %g)\n", r->name,
            (long long)r->wrong, (long long)r->checked, r->atol, r->rtol);
    for (int i = 0; i < r->count; i++) {
        const GradcheckElement *e = &r->element[i];
        fprintf(file, "    input %d %s   analytic %.8g   numeric %.8g   off by %.8g", e->input + 1,
                e->input_at, e->analytic, e->numeric, fabs(e->analytic - e->numeric));
        fprintf(file, strlen(e->output_at) > 2 ? "   at result %d %s\n" : "\n", e->output + 1, e->output_at);
    }
    if (r->wrong > r->count) fprintf(file, "    ... and %lld more\n", (long long)(r->wrong - r->count));
}
