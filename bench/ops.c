/* ops.c - our side of `make bench-ops`: a program that bench/ops.py asks, line by line, and that answers each
 * line with one of JSON.
 *
 *     ops                                    the names of all ops
 *     take OP ELEMENTS DTYPE SHAPES RANK     makes inputs of about so many elements (the largest of them)
 *     time BACKWARD SECONDS                  nanoseconds of one call of what was taken
 *
 * Inputs are samples of the op's descriptor with their sizes multiplied: every size by one factor, or only
 * the first; sizes among the parameters grow along where the op takes that.  SHAPES 0 takes the sample that
 * has most elements then; a seed takes any, and multiplies equal sizes by a factor of their own.  RANK n
 * takes the n-th best that runs; samples all of whose sizes grow, and that do not broadcast, are better.
 *
 * On one thread times are CPU time: other work on the machine counts less. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "check/sample.h"

enum { MOST_SAMPLES = 64, FEWER = 16 };
static const int64_t MEMORY = (int64_t)1 << 31;
static const double LONGEST = 0.1; /* seconds of a call on 1/FEWER of the elements */

static clockid_t clock_of = CLOCK_MONOTONIC;
static double now(void)
{
    struct timespec t;
    clock_gettime(clock_of, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- samples, grown -------------------------------------------------------------------------- */

typedef struct Grown {
    Sample sample;
    double elements; /* of all inputs */
    int64_t sizes;   /* factor of the sizes among the parameters */
} Grown;

/* Equal sizes above 1 get one random factor; several draws come near the wanted number of elements. */
static void grow_at_random(Sample *s, int64_t elements, uint64_t *seed)
{
    enum { SIZES = 64, TRIES = 20 };
    Sample best = *s;
    double nearest = INFINITY;
    for (int k = 0; k < TRIES; k++) {
        Sample drawn = *s;
        double factor[SIZES], most = 0, power = random_uniform(seed) * log((double)elements);
        for (int i = 0; i < SIZES; i++) factor[i] = exp(power * random_uniform(seed));
        for (int i = 0; i < s->n; i++) {
            SampleInput *in = &drawn.input[i];
            double count = !in->absent;
            for (int d = 0; d < in->ndim; d++) {
                if (in->shape[d] > 1)
                    in->shape[d] = (int64_t)((double)in->shape[d] * factor[in->shape[d] % SIZES]);
                count *= (double)in->shape[d];
            }
            most = fmax(most, count);
        }
        const double off = fabs(log(most / (double)elements));
        if (off < nearest) nearest = off, best = drawn;
    }
    memcpy(s->input, best.input, sizeof s->input);
}

/* An index from 0 to the last of some size goes to the last of the grown size. */
static void grow_ranges(Sample *s, const Sample *small)
{
    for (int i = 0; i < s->n; i++) {
        SampleInput *in = &s->input[i];
        if (!in->has_range || !in->has_dtype || in->lo != 0 || tensor_dtype_is_float(in->dtype)) continue;
        for (int k = 0; k < s->n; k++)
            for (int d = 0; k != i && d < small->input[k].ndim; d++)
                if (in->hi + 1 == (double)small->input[k].shape[d]) {
                    in->hi = (double)s->input[k].shape[d] - 1;
                    k = s->n;
                    break;
                }
    }
}

static double count_of(const Sample *s, double *most)
{
    double all = 0;
    *most = 0;
    for (int i = 0; i < s->n; i++) {
        double count = !s->input[i].absent;
        for (int d = 0; d < s->input[i].ndim; d++) count *= (double)s->input[i].shape[d];
        all += count, *most = fmax(*most, count);
    }
    return all;
}

static bool is_empty(const Sample *s)
{
    for (int i = 0; i < s->n; i++)
        for (int d = 0; d < s->input[i].ndim; d++)
            if (s->input[i].shape[d] == 0) return true;
    return false;
}

static bool is_sizes(const OpField *f)
{
    static const char *const names[] = { "shape", "size", "sizes", "length", "rows", "chunk" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(f->name, names[i]) == 0) return true;
    return false;
}

static bool has_sizes(const Sample *s)
{
    for (const OpField *f = s->op->fields; f && f->name; f++)
        if (is_sizes(f)) return true;
    return false;
}

/* Operands of size 1 make a result that is larger than all of them. */
static bool is_odd(const Sample *s)
{
    for (int i = 0; i < s->n; i++) {
        if (s->n > 1 && s->input[i].ndim == 0 && !s->input[i].absent) return true;
        for (int d = 0; d < s->input[i].ndim; d++)
            if (s->n > 1 && s->input[i].shape[d] == 1) return true;
    }
    return false;
}

static bool any_of_any_dtype(const Sample *s)
{
    for (int i = 0; i < s->n; i++)
        if (!s->input[i].absent && !s->input[i].has_dtype) return true;
    return false;
}

static int more_elements(const void *p, const void *q)
{
    const Grown *a = p, *b = q;
    return (a->elements < b->elements) - (a->elements > b->elements);
}

/* The samples of an op at about so many elements, most first. */
static int grow_samples(const TensorOp *op, int64_t elements, uint64_t seed, Grown *grown)
{
    const char *list = op_samples(op);
    int n = 0;
    for (Sample small; list && n < MOST_SAMPLES && sample_next(op, &list, &small) > 0;)
        for (int growth = 0; growth < (seed ? 1 : GROWTHS + 1) && n < MOST_SAMPLES; growth++)
            for (int ranges = 1; ranges >= 0 && n < MOST_SAMPLES; ranges--) {
                Grown *g = &grown[n];
                double most;
                g->sample = small, g->sizes = 1;
                if (seed) grow_at_random(&g->sample, elements, &seed);
                else if (growth == GROWTHS && !has_sizes(&small)) continue;
                else {
                    const Growth inputs = growth < GROWTHS ? (Growth)growth : GROW_ALL;
                    const int64_t factor = sample_grow(&g->sample, inputs, elements, MEMORY);
                    if (!factor) continue;
                    if (growth == GROWTHS) g->sizes = factor;
                }
                if (ranges) grow_ranges(&g->sample, &small);
                g->elements = count_of(&g->sample, &most);
                if (is_empty(&g->sample) || most < (double)elements / 4 || most > (double)elements * 4)
                    continue;
                if (growth == GROW_FIRST || is_odd(&g->sample)) g->elements /= 2;
                if (growth == GROWTHS) g->elements *= 1.5;
                if (!any_of_any_dtype(&g->sample)) g->elements /= 4;
                g->elements *= seed ? random_uniform(&seed) : 1 - n * 1e-6;
                n++;
            }
    qsort(grown, (size_t)n, sizeof *grown, more_elements);
    return n;
}

/* ---- what is timed --------------------------------------------------------------------------- */

static Sample taken;
static Tensor *x[OP_MAX_INPUTS], *leaf[OP_MAX_INPUTS], *wanted[OP_MAX_INPUTS], *v[SAMPLE_RESULTS];
static int results, wanting;
static TensorScope keeping;

static int call(Tensor *const *inputs, Tensor **y)
{
    const int n = tensor_apply_all(taken.op, inputs, taken.n, taken.op->params ? taken.params : NULL, y,
                                   SAMPLE_RESULTS);
    return n < SAMPLE_RESULTS ? n : SAMPLE_RESULTS;
}

static bool call_once(bool backward)
{
    Tensor *y[SAMPLE_RESULTS], *root[SAMPLE_RESULTS], *with[SAMPLE_RESULTS], *g[OP_MAX_INPUTS];
    TensorScope scope = tensor_scope_open();
    int n = call(backward ? leaf : x, y), roots = 0;
    for (int i = 0; i < n && backward; i++)
        if (tensor_requires_grad(y[i])) with[roots] = v[i], root[roots++] = y[i];
    if (roots)
        tensor_gradients_many({ roots, root }, { wanting, wanted }, g, .grad_outputs = { roots, with },
                              .allow_unused = true);
    tensor_scope_close(scope);
    return n >= 0 && !tensor_error() && (!backward || roots);
}

/* One call: the seconds, or -1. */
static double timed(bool backward)
{
    const double t = now();
    return call_once(backward) ? now() - t : -1;
}

static void release(void)
{
    for (int i = 0; i < SAMPLE_RESULTS; i++)
        if (v[i]) tensor_release(v[i]), v[i] = NULL;
    tensor_scope_close(keeping);
    tensor_error_clear();
    tensor_memory_release();
    keeping = tensor_scope_open();
}

/* Lists among the parameters point into their sample, so they are read again. */
static void take_sample(const Grown *g)
{
    const char *text = g->sample.text;
    sample_next(g->sample.op, &text, &taken);
    memcpy(taken.input, g->sample.input, sizeof taken.input);
    for (const OpField *f = taken.op->fields; f && f->name; f++) {
        void *at = taken.params + f->offset;
        if (!is_sizes(f) || g->sizes == 1) continue;
        if (f->type == OP_I64 && *(int64_t *)at > 1) *(int64_t *)at *= g->sizes;
        if (f->type != OP_LIST) continue;
        const TensorShape *list = at;
        for (int i = 0; i < list->ndim; i++)
            if (list->dim[i] > 1) ((int64_t *)list->dim)[i] *= g->sizes;
    }
}

/* Inputs and, for backward, one gradient for each result. */
static bool make(const Grown *g, int dtype)
{
    Tensor *y[SAMPLE_RESULTS];
    release();
    take_sample(g);
    const bool integers = dtype != AS_WRITTEN && !tensor_dtype_is_float((TensorDtype)dtype);
    for (int i = 0; integers && i < taken.n; i++)
        if (!taken.input[i].has_dtype) {
            taken.input[i].has_dtype = taken.input[i].has_range = true;
            taken.input[i].dtype = (TensorDtype)dtype;
            taken.input[i].lo = -9, taken.input[i].hi = 9;
        }
    sample_inputs(&taken, integers ? AS_WRITTEN : dtype, 3, x);
    wanting = 0;
    sample_leaves(&taken, x, leaf);
    for (int i = 0; i < taken.n; i++)
        if (leaf[i] && tensor_requires_grad(leaf[i])) wanted[wanting++] = leaf[i];
    TensorScope scope = tensor_scope_open();
    results = call(leaf, y);
    for (int i = 0; i < results; i++)
        v[i] = tensor_requires_grad(y[i]) ? tensor_retain(random_like(y[i], 11)) : NULL;
    tensor_scope_close(scope);
    return results > 0 && !tensor_error();
}

static bool fits(const Grown *g, const TensorOp *op, int64_t elements, int dtype)
{
    static Grown fewer[MOST_SAMPLES];
    if (elements > 4096) { /* a call on fewer elements must be short, and not make much */
        const int n = grow_samples(op, elements / FEWER, 0, fewer);
        double longest = -1;
        for (int i = 0; i < n; i++)
            if (strcmp(fewer[i].sample.text, g->sample.text) == 0 && make(&fewer[i], dtype)) {
                longest = timed(false);
                for (int k = 0; k < results; k++)
                    if (v[k] && (double)tensor_numel(v[k]) * FEWER * FEWER > 1e9) longest = 1;
                break;
            }
        if (longest > LONGEST) return false;
    }
    return make(g, dtype) && call_once(false);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void print_shape(const Tensor *t)
{
    printf("[");
    for (int d = 0; d < tensor_ndim(t); d++) printf("%s%lld", d ? "," : "", (long long)tensor_size(t, d));
    printf("]");
}

static void print_input(int i)
{
    const SampleInput *in = &taken.input[i];
    if (in->absent) {
        printf("null");
        return;
    }
    const bool is_float = tensor_dtype_is_float(tensor_dtype(x[i]));
    double lo = in->lo, hi = in->hi;
    if (!in->has_range && is_float) {
        lo = taken.op->row ? taken.op->row->lo : taken.op->lo;
        hi = taken.op->row ? taken.op->row->hi : taken.op->hi;
        if (lo == 0 && hi == 0) lo = -1, hi = 1;
    } else if (!in->has_range) hi = tensor_dtype(x[i]) == TENSOR_BOOL ? 1 : 3;
    printf("{\"dtype\":\"%s\",\"lo\":%.17g,\"hi\":%.17g,\"grad\":%s,\"shape\":",
           tensor_dtype_name(tensor_dtype(x[i])), lo, hi, tensor_requires_grad(leaf[i]) ? "true" : "false");
    print_shape(x[i]);
    printf("}");
}

/* As Python reads it. */
static void print_double(double number)
{
    if (isnan(number)) printf("NaN");
    else if (isinf(number)) printf(number < 0 ? "-Infinity" : "Infinity");
    else printf("%.17g", number);
}

static void print_integer(const OpField *f, const void *at)
{
    const int number = *(const int *)at;
    int choices = 0;
    while (f->choices && f->choices[choices]) choices++;
    if (number >= 0 && number < choices) printf("\"%s\"", f->choices[number]);
    else printf("%d", number);
}

static void print_value(const OpField *f, const char *at)
{
    switch (f->type) {
    case OP_DOUBLE: print_double(*(const double *)at); break;
    case OP_INT: print_integer(f, at); break;
    case OP_I64: printf("%lld", (long long)*(const int64_t *)at); break;
    case OP_BOOL: printf(*(const bool *)at ? "true" : "false"); break;
    case OP_STRING: printf("\"%s\"", *(char *const *)at ? *(char *const *)at : ""); break;
    case OP_LIST: {
        const TensorShape *list = (const void *)at;
        printf("[");
        for (int i = 0; i < list->ndim; i++) printf("%s%lld", i ? "," : "", (long long)list->dim[i]);
        printf("]");
    }
    }
}

/* All parameters, as JSON. */
static void print_params(void)
{
    const char *comma = "";
    printf("{");
    for (const OpField *f = taken.op->fields; f && f->name; f++, comma = ",") {
        const size_t each = f->type == OP_INT ? sizeof(int) : sizeof(int64_t);
        printf("%s\"%s\":%s", comma, f->name, f->count > 1 ? "[" : "");
        for (int i = 0; i < f->count; i++) {
            printf(i ? "," : "");
            print_value(f, taken.params + f->offset + (size_t)i * each);
        }
        printf(f->count > 1 ? "]" : "");
    }
    printf("}");
}

static void answer_take(const char *name, int64_t elements, int dtype, uint64_t seed, int rank)
{
    static Grown grown[MOST_SAMPLES];
    const TensorOp *op = tensor_op_find(name);
    const int n = op ? grow_samples(op, elements, seed, grown) : 0;
    int at = 0;
    for (; at < n; at++)
        if (fits(&grown[at], op, elements, dtype) && rank-- == 0) break;
    if (at == n) {
        printf("{}\n");
        return;
    }
    const char *torch = op_torch(op), *brace = strchr(taken.text, '{');
    Tensor *y[SAMPLE_RESULTS];
    TensorScope scope = tensor_scope_open();
    call(x, y);
    printf("{\"torch\":\"%s\",\"params\":\"%.*s\",\"backward\":%s,\"all\":", torch ? torch : name,
           brace ? (int)strcspn(brace + 1, "}") : 0, brace ? brace + 1 : "",
           wanting && v[0] ? "true" : "false");
    print_params();
    printf(",\"inputs\":[");
    for (int i = 0; i < taken.n; i++) {
        printf(i ? "," : "");
        print_input(i);
    }
    printf("],\"result\":");
    print_shape(y[0]);
    printf("}\n");
    tensor_scope_close(scope);
}

static void answer_time(int backward, double seconds)
{
    const double first = timed(backward);
    if (first < 0) {
        printf("{}\n");
        tensor_error_clear();
        return;
    }
    const int calls = (int)fmin(1e6, seconds / fmax(first, 1e-8)) + 1;
    const double start = now();
    for (int i = 0; i < calls; i++) call_once(backward);
    printf("{\"ns\":%.3f}\n", (now() - start) / calls * 1e9);
}

static int dtype_of(const char *name)
{
    for (int d = 0; d < TENSOR_DTYPES; d++)
        if (strcmp(tensor_dtype_name((TensorDtype)d), name) == 0) return d;
    return AS_WRITTEN;
}

int main(int argc, char **argv)
{
    char line[256], name[128], dtype[16];
    if (argc > 1) tensor_set_num_threads(atoi(argv[1]));
    if (argc > 1 && atoi(argv[1]) == 1) clock_of = CLOCK_PROCESS_CPUTIME_ID;
    tensor_memory_set_limit(4 * MEMORY);
    keeping = tensor_scope_open();
    while (fgets(line, sizeof line, stdin)) {
        long long elements;
        unsigned long long seed;
        int rank, backward;
        double seconds;
        if (sscanf(line, "take %127s %lld %15s %llu %d", name, &elements, dtype, &seed, &rank) == 5)
            answer_take(name, elements, dtype_of(dtype), seed, rank);
        else if (taken.op && sscanf(line, "time %d %lf", &backward, &seconds) == 2)
            answer_time(backward, seconds);
        else if (strncmp(line, "ops", 3) == 0) {
            printf("[");
            for (int i = 0; i < tensor_op_count(); i++)
                printf("%s\"%s\"", i ? "," : "", tensor_op_at(i)->name);
            printf("]\n");
        } else printf("{}\n");
        fflush(stdout);
    }
    return 0;
}
