/* test_op_answers.c - what every op of the registry answers to its error samples, and to its first sample
 * with one option, size, rank or dtype changed (answers.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "answers.h"
#include "check/sample.h"

static const char *run(const Sample *s)
{
    static char text[2000];
    Tensor *x[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
    sample_inputs(s, AS_WRITTEN, 1, x);
    const int n = sample_apply(s, x, y);
    size_t used = 0;
    char name[80];
    snprintf(name, sizeof name, "tensor_%s", s->op->name);
    if (n < 0) return answers_error(name);
    snprintf(text, sizeof text, "%s", n ? "" : "nothing");
    for (int i = 0; i < n && used + 2 < sizeof text; i++) {
        if (i) used += (size_t)snprintf(text + used, sizeof text - used, ", ");
        if (used < sizeof text && !(s->op->flags & OP_RANDOM))
            used += answers_result(text + used, sizeof text - used, y[i]);
    }
    return text;
}

static void error_samples(const TensorOp *op)
{
    const char *list = op_errors(op);
    Sample s;
    while (sample_next(op, &list, &s) > 0) {
        TensorScope scope = tensor_scope_open();
        answer("refuses", s.text, run(&s));
        tensor_scope_close(scope);
    }
}

static const char *with_params(const void *params, void *ctx)
{
    Sample s = *(const Sample *)ctx;
    memcpy(s.params, params, s.op->params);
    return run(&s);
}

static void ask(const Sample *s, const char *thing, int input, const char *value)
{
    char whole[80];
    snprintf(whole, sizeof whole, "input %d %s", input, thing);
    TensorScope scope = tensor_scope_open();
    answer(whole, value, run(s));
    tensor_scope_close(scope);
}

static void sizes(const Sample *first, int i)
{
    for (int d = 0; d < first->input[i].ndim; d++) {
        const int64_t size = first->input[i].shape[d], tried[] = { 0, 1, size - 1, size, size + 1 };
        char thing[32];
        snprintf(thing, sizeof thing, "size %d", d);
        for (int k = 0; k < 5; k++) {
            if ((k == 1 && size < 2) || (k == 2 && size < 3)) continue;
            Sample s = *first;
            s.input[i].shape[d] = tried[k];
            char value[24];
            snprintf(value, sizeof value, "%lld", (long long)tried[k]);
            ask(&s, thing, i, value);
        }
    }
}

/* One dimension less, one more, and as many as there may be, at which lists of dimensions are full. */
static void ranks(const Sample *first, int i)
{
    const int most = TENSOR_MAX_DIMS - first->input[i].ndim, tried[] = { -1, 1, most - 1, most };
    for (int k = 0; k < 4; k++) {
        Sample s = *first;
        SampleInput *in = &s.input[i];
        char value[24];
        const int more = tried[k], less = more < 0;
        if (in->ndim + more < 0) continue;
        memmove(in->shape + (less ? 0 : more), in->shape + less,
                (size_t)(in->ndim - less) * sizeof *in->shape);
        for (int d = 0; d < more; d++) in->shape[d] = k == 1 ? 2 : 1;
        snprintf(value, sizeof value, "%d", in->ndim += more);
        ask(&s, "rank", i, value);
    }
}

/* The gradients of the results, computed once for good and once on the graph. */
static const char *run_back(const Sample *s)
{
    static char text[2000];
    Tensor *x[OP_MAX_INPUTS];
    SampleRun r[2];
    size_t used = 0;
    char name[80];
    snprintf(name, sizeof name, "tensor_%s", s->op->name);
    sample_inputs(s, AS_WRITTEN, 1, x);
    for (int graph = 0; graph < 2; graph++)
        if (sample_run(s, x, graph, LAYOUT_DENSE, &r[graph]) < 0) return answers_error(name);
    snprintf(text, sizeof text, "none");
    for (int i = 0; i < s->n && used + 40 < sizeof text; i++) {
        if (!r[0].g[i] || !r[1].g[i]) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d ", used ? ", " : "", i);
        used += answers_result(text + used, sizeof text - used, r[0].g[i]);
        if (!tensor_shape_equal(tensor_shape(r[0].g[i]), tensor_shape(r[1].g[i])))
            used += (size_t)snprintf(text + used, sizeof text - used, " and another shape on the graph");
    }
    return text;
}

static void both_ways(const Sample *s, const char *thing)
{
    char back[80];
    snprintf(back, sizeof back, "gradients %s", thing);
    TensorScope scope = tensor_scope_open();
    const char *forward = run(s);
    const bool refused = *forward == '!';
    answer(thing, "16", forward);
    if (!refused) answer(back, "16", run_back(s));
    tensor_scope_close(scope);
}

/* All inputs of 16 dimensions, and then all lists of 16 numbers, too: each dim once, or 1. */
static void fullest(const Sample *first)
{
    static const int64_t ones[TENSOR_MAX_DIMS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
                         dims[TENSOR_MAX_DIMS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    Sample s = *first;
    for (int i = 0; i < s.n; i++) {
        SampleInput *in = &s.input[i];
        if (in->absent) continue;
        const int more = TENSOR_MAX_DIMS - in->ndim;
        memmove(in->shape + more, in->shape, (size_t)in->ndim * sizeof *in->shape);
        for (int d = 0; d < more; d++) in->shape[d] = 1;
        in->ndim = TENSOR_MAX_DIMS;
    }
    both_ways(&s, "all of rank");
    bool lists = false;
    for (const OpField *f = s.op->fields; f && f->name; f++) {
        if (f->type != OP_LIST) continue;
        const bool of_dims = strstr(f->name, "dim") != NULL;
        *(TensorShape *)(void *)(s.params + f->offset) =
            (TensorShape){ TENSOR_MAX_DIMS, of_dims ? dims : ones };
        lists = true;
    }
    if (lists) both_ways(&s, "with lists of");
}

/* Numbers at the limits of integers, where the op takes integers. */
static void integer_limits(const Sample *first)
{
    static const struct {
        TensorDtype dtype;
        double value[5];
    } tried[] = { { TENSOR_U8, { -1, 0, 0.5, 255, 256 } },
                  { TENSOR_I32, { -2147483649., -2147483648., 2147483647., 2147483648., 1e300 } },
                  { TENSOR_I64, { -0x1p63, -0x1p64, 0x1p62, 0x1p63, NAN } } };
    for (const OpField *f = first->op->fields; f && f->name; f++)
        for (int k = 0; f->type == OP_DOUBLE && k < 15; k++) {
            Sample s = *first;
            for (int i = 0; i < s.n; i++)
                if (!sample_is_plain(&s, i) && !s.input[i].has_dtype)
                    s.input[i].has_dtype = true, s.input[i].dtype = tried[k / 5].dtype,
                    s.input[i].has_range &= s.input[i].lo >= 0;
            *(double *)(void *)(s.params + f->offset) = tried[k / 5].value[k % 5];
            char thing[80], value[32];
            snprintf(thing, sizeof thing, "%s of %s", f->name, tensor_dtype_name(tried[k / 5].dtype));
            snprintf(value, sizeof value, "%g", fabs(tried[k / 5].value[k % 5]));
            if (tried[k / 5].value[k % 5] < 0) snprintf(value, sizeof value, "%g", tried[k / 5].value[k % 5]);
            TensorScope scope = tensor_scope_open();
            answer(thing, value, run(&s));
            tensor_scope_close(scope);
        }
}

/* One input of each dtype, or, i < 0, all that have none of their own. */
static void dtypes(const Sample *first, int i)
{
    for (int d = 0; d < TENSOR_DTYPES; d++) {
        Sample s = *first;
        for (int k = 0; k < s.n; k++) {
            if (i >= 0 ? k != i : sample_is_plain(&s, k) || s.input[k].has_dtype) continue;
            s.input[k].has_dtype = true, s.input[k].dtype = (TensorDtype)d;
            if (!tensor_dtype_is_float((TensorDtype)d)) s.input[k].has_range &= s.input[k].lo >= 0;
        }
        if (i >= 0) ask(&s, "as", i, tensor_dtype_name((TensorDtype)d));
        else {
            TensorScope scope = tensor_scope_open();
            answer("all as", tensor_dtype_name((TensorDtype)d), run(&s));
            tensor_scope_close(scope);
        }
    }
}

static void variations(const TensorOp *op)
{
    const char *list = op_samples(op);
    Sample s;
    if (sample_next(op, &list, &s) <= 0) return;
    answers_about("%s %s", op->name, s.text);
    error_samples(op);
    answers_options(op->fields, s.params, op->params, with_params, &s);
    integer_limits(&s);
    dtypes(&s, -1);
    if (!op->row) fullest(&s);
    for (int i = 0; i < s.n && !op->row; i++) { /* rows share the rule of their shapes */
        if (s.input[i].absent) continue;
        if (s.n > 1) dtypes(&s, i);
        sizes(&s, i);
        ranks(&s, i);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const TensorOp *const *)a)->name, (*(const TensorOp *const *)b)->name);
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/op/answers.golden");
    const int n = tensor_op_count();
    const TensorOp **op = calloc((size_t)n, sizeof *op);
    if (!op) return 1;
    for (int i = 0; i < n; i++) op[i] = tensor_op_at(i);
    qsort(op, (size_t)n, sizeof *op, by_name);
    for (int i = 0; i < n; i++) variations(op[i]);
    free(op);
    return answers_end();
}
