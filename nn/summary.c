/* summary.c - prints a net as a table: runs it once, with an observer in nn_run that records each module's
 * begin and end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "module.h"

enum { NAME = 200, LAYER_WIDTH = 41, SHAPE_WIDTH = 24 };

typedef struct Row {
    char name[NAME];
    char shapes[NAME];  /* of the results */
    int64_t parameters; /* of the module itself; -1: it has only children */
    int depth;
    bool again; /* it ran before: its parameters are counted there */
} Row;

typedef struct Table {
    Row *row;
    int n, capacity, depth;
    int open[NN_PATH];     /* rows of the modules that are running, */
    Module *path[NN_PATH]; /* and those modules */
    Module **seen;
    int seen_count;
    bool no_memory;
} Table;

/* ---- names ----------------------------------------------------------------------------------- */

static int64_t own_parameters(const Module *m)
{
    int64_t sum = 0;
    for (int i = 0; i < m->parameter_count; i++) sum += tensor_numel(m->parameters[i].tensor);
    return m->parameter_count || !m->child_count ? sum : -1;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int room(Table *t)
{
    if (t->n < t->capacity) return 0;
    int more = t->capacity ? 2 * t->capacity : 32;
    Row *row = realloc(t->row, (size_t)more * sizeof *row);
    if (row) t->row = row;
    Module **seen = row ? realloc(t->seen, (size_t)more * sizeof *seen) : NULL;
    if (seen) t->seen = seen;
    if (!seen) return -1;
    t->capacity = more;
    return 0;
}

static bool seen_before(Table *t, Module *m)
{
    for (int i = 0; i < t->seen_count; i++)
        if (t->seen[i] == m) return true;
    t->seen[t->seen_count++] = m;
    return false;
}

static void begin(Table *t, Module *m)
{
    if (t->depth >= NN_PATH || room(t)) {
        t->no_memory = true;
        return;
    }
    Row *row = &t->row[t->n];
    char name[NN_PATH];
    *row = (Row){
        .depth = t->depth, .parameters = own_parameters(m), .again = seen_before(t, m), .shapes = "--"
    };
    if (t->depth && nn_path(t->path[t->depth - 1], m, name))
        snprintf(row->name, NAME, "%.100s (%s)", name, m->type);
    else snprintf(row->name, NAME, "%s", m->type);
    t->open[t->depth] = t->n++;
    t->path[t->depth++] = m;
}

static void end(Table *t, const NNCall *done)
{
    if (t->depth == 0) return;
    Row *row = &t->row[t->open[--t->depth]];
    char *text = row->shapes;
    size_t n = 0;
    row->parameters = own_parameters(t->path[t->depth]); /* a lazy module has its own now */
    for (int i = 0; i < NN_VALUES && done->out[i]; i++) {
        TensorShape shape = tensor_shape(done->out[i]);
        n += (size_t)snprintf(text + n, NAME - n, "%s[", i ? ", " : "");
        for (int d = 0; d < shape.ndim && n < NAME - 60; d++)
            n += (size_t)snprintf(text + n, NAME - n, "%s%lld", d ? ", " : "", (long long)shape.dim[d]);
        n += (size_t)snprintf(text + n, NAME - n, "]");
        if (n >= NAME - 60) break;
    }
}

static void observe(void *ctx, Module *m, const NNCall *done)
{
    Table *t = ctx;
    if (t->no_memory) return;
    if (done) end(t, done);
    else begin(t, m);
}

/* ---- numbers and lines ----------------------------------------------------------------------- */

static const char *grouped(int64_t n, char text[32]) /* 1,234,567 */
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n), k = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) text[k++] = ',';
        text[k++] = digits[i];
    }
    text[k] = 0;
    return text;
}

static void rule(FILE *file, char c)
{
    for (int i = 0; i < LAYER_WIDTH + SHAPE_WIDTH + 15; i++) fputc(c, file);
    fputc('\n', file);
}

static void print_row(FILE *file, const Row *row)
{
    char number[32];
    fprintf(file, "%*s%-*s ", 2 * row->depth, "",
            LAYER_WIDTH - 2 * row->depth > 0 ? LAYER_WIDTH - 2 * row->depth : 0, row->name);
    fprintf(file, "%-*s %13s\n", SHAPE_WIDTH, row->shapes,
            row->again            ? "(again)"
            : row->parameters < 0 ? "--"
                                  : grouped(row->parameters, number));
}

static int print_totals(FILE *file, Module *m)
{
    int64_t trained = 0, all = 0, bytes = 0;
    TensorList list = nn_list_parameters(m);
    if (!list.item) return -1;
    for (int i = 0; i < list.count; i++) {
        int64_t n = tensor_numel(list.item[i]);
        all += n, bytes += n * (int64_t)tensor_dtype_size(tensor_dtype(list.item[i]));
        if (tensor_requires_grad(list.item[i])) trained += n;
    }
    char number[32];
    fprintf(file, "Total parameters: %s\n", grouped(all, number));
    fprintf(file, "Trainable: %s\n", grouped(trained, number));
    fprintf(file, "Not trainable: %s\n", grouped(all - trained, number));
    fprintf(file, "Size: %.2f MB\n", (double)bytes / 1e6);
    rule(file, '=');
    return ferror(file) ? tensor_fail(TENSOR_EIO, "nn_summary", "cannot write") : 0;
}

static int print_table(FILE *file, const Table *t, Module *m)
{
    rule(file, '=');
    fprintf(file, "%-*s %-*s %13s\n", LAYER_WIDTH, "Layer (type)", SHAPE_WIDTH, "Output shape", "Parameters");
    rule(file, '=');
    for (int i = 0; i < t->n; i++) print_row(file, &t->row[i]);
    rule(file, '=');
    return print_totals(file, m);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* State that a forward may change: modes, buffers, the generator.  If the forward made tensors, as a lazy
 * module's first one does, the generator is not reset, for it drew their values. */
typedef struct Before {
    bool *modes;
    Tensor **buffer, **copy, *random;
    int buffers, tensors;
} Before;

static void count_tensors(Module *m, void *ctx)
{
    Before *b = ctx;
    b->buffers += m->buffer_count, b->tensors += m->buffer_count + m->parameter_count;
}
static void note(Module *m, void *ctx)
{
    Before *b = ctx;
    for (int i = 0; i < m->buffer_count; i++) {
        b->buffer[b->buffers] = tensor_retain(m->buffers[i].tensor);
        b->copy[b->buffers++] = tensor_clone(m->buffers[i].tensor);
    }
}

static int restore(const Before *b, Module *m)
{
    Before now = { 0 };
    int status = 0;
    for (int i = 0; i < b->buffers; i++)
        if (tensor_copy_(b->buffer[i], b->copy[i]) == NULL) status = -1;
    nn_apply(m, count_tensors, &now);
    if (now.tensors == b->tensors && tensor_set_rng_state(b->random)) status = -1;
    return status;
}

static Tensor *input_for(Module *m, const NNSummaryArgs *args)
{
    TensorList list = nn_list_parameters(m);
    if (!list.item) return NULL;
    TensorDtype dtype = args->dtype != TENSOR_DTYPES ? args->dtype
                        : list.count                 ? tensor_dtype(list.item[0])
                                                     : TENSOR_F32;
    Tensor *x = tensor_zeros(args->shape, dtype);
    return list.count ? tensor_to_device(x, tensor_device(list.item[0])) : x;
}

static int run(Table *t, Module *m, const NNSummaryArgs *args)
{
    TensorScope scope = tensor_scope_open();
    bool was = tensor_set_grad_enabled(false);
    NNCall c = { .in[0] = args->inputs.count ? args->inputs.item[0] : input_for(m, args),
                 .results = NN_VALUES };
    for (int i = 1; i < args->inputs.count; i++) c.in[i] = args->inputs.item[i];
    nn_observe(observe, t);
    const int status = nn_run(m, &c);
    nn_observe(NULL, NULL);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}

static int run_in_eval(Table *t, Module *m, const NNSummaryArgs *args)
{
    Before b = { 0 };
    nn_apply(m, count_tensors, &b);
    b.modes = nn_modes(m);
    b.buffer = calloc(2 * (size_t)b.buffers + 1, sizeof(Tensor *));
    b.copy = b.buffer + b.buffers;
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    int status = b.modes && b.buffer ? 0 : tensor_fail(TENSOR_ENOMEM, "nn_summary", "out of memory");
    b.buffers = 0;
    if (!status) nn_apply(m, note, &b);
    b.random = status ? NULL : tensor_get_rng_state();
    for (int i = 0; i < b.buffers && !status; i++) status = b.copy[i] ? 0 : -1;
    if (!status && !b.random) status = -1;
    if (!status) {
        nn_eval(m);
        status = run(t, m, args);
        if (restore(&b, m)) status = -1;
    }
    for (int i = 0; i < b.buffers; i++) tensor_release(b.buffer[i]);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    nn_restore_modes(m, b.modes), free(b.buffer);
    return status;
}

/* Without an input: the modules as they are nested. */
static void list(Table *t, Module *m)
{
    observe(t, m, NULL);
    for (int i = 0; i < m->child_count && !t->no_memory; i++) list(t, m->children[i].module);
    if (t->depth) t->depth--;
}

static bool no_input(TensorShape shape)
{
    if (!shape.dim) return true;
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] == 0) return true;
    return shape.ndim == 0;
}

const NNSummaryArgs nn_summary_defaults = { NN_SUMMARY_DEFAULTS };

int nn_summary_args(NNSummaryArgs args)
{
    Module *m = args.module;
    if (TENSOR_CHECK_OPTIONS("nn_summary", args, nn_summary_defaults) || nn_null(m, "nn_summary")) return -1;
    Table t = { .row = NULL };
    int status = 0;
    if (args.inputs.count < 0 || args.inputs.count > NN_VALUES || (args.inputs.count && !args.inputs.item))
        return tensor_fail(TENSOR_EVALUE, "nn_summary", "%d inputs: want 1 to %d", args.inputs.count,
                           NN_VALUES);
    if (!args.inputs.count && no_input(args.shape)) list(&t, m);
    else status = run_in_eval(&t, m, &args);
    if (t.no_memory) status = tensor_fail(TENSOR_ENOMEM, "nn_summary", "out of memory");
    if (!status) status = print_table(args.file ? args.file : stdout, &t, m);
    free(t.row), free(t.seen);
    return status;
}
