#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/options.h" /* before cmocka.h, which has a macro fail */
#include "samples.h"

/* ---- reading --------------------------------------------------------------------------------- */

static int unreadable(Sample *s, const char *what, const char *at)
{
    snprintf(s->wrong, sizeof s->wrong, "%s at \"%.60s\"", what, at);
    return -1;
}

static void skip_spaces(const char **at)
{
    while (**at == ' ') ++*at;
}

static bool take(const char **at, char c)
{
    skip_spaces(at);
    if (**at != c) return false;
    ++*at;
    return true;
}

static int read_dtype(Sample *s, const char **at, TensorDtype *dtype)
{
    for (int d = 0; d < TENSOR_DTYPES; d++) {
        const char *name = tensor_dtype_name((TensorDtype)d);
        size_t length = strlen(name);
        if (strncmp(*at, name, length) == 0 && !isalnum((unsigned char)(*at)[length])) {
            *dtype = (TensorDtype)d;
            *at += length;
            return 0;
        }
    }
    return unreadable(s, "no dtype", *at);
}

static int read_input(Sample *s, const char **at, SampleInput *in)
{
    char *end;
    skip_spaces(at);
    if (**at == '-' && !isdigit((unsigned char)(*at)[1])) {
        in->absent = true;
        ++*at;
        return 0;
    }
    while (isdigit((unsigned char)**at)) {
        if (in->ndim == TENSOR_MAX_DIMS) return unreadable(s, "too many dimensions", *at);
        in->shape[in->ndim++] = strtoll(*at, &end, 10);
        *at = end;
        if (**at != 'x') break;
        ++*at;
        if (!isdigit((unsigned char)**at)) return unreadable(s, "no size after x", *at);
    }
    if (take(at, '@')) {
        in->has_dtype = true;
        if (read_dtype(s, at, &in->dtype)) return -1;
    }
    if (take(at, ':')) {
        const char *dots = strstr(*at, "..");
        if (!dots) return unreadable(s, "no range lo..hi", *at);
        char low[64];
        snprintf(low, sizeof low, "%.*s", (int)(dots - *at), *at); /* "0..3": strtod would read "0." */
        in->lo = strtod(low, &end);
        if (*end || end == low) return unreadable(s, "no lower bound", *at);
        *at = dots + 2;
        in->hi = strtod(*at, &end);
        if (end == *at || in->hi < in->lo) return unreadable(s, "no upper bound", *at);
        *at = end;
        in->has_range = true;
    }
    return 0;
}

_Static_assert(sizeof(OptionRoom) <= SAMPLE_ROOM, "lists of parameters fit");

static int read_params(Sample *s, const char **at, unsigned *given)
{
    while (!take(at, '}')) {
        const char *name = *at;
        while (isalnum((unsigned char)**at) || **at == '_') ++*at;
        const OpField *f = options_find(s->op, name, (size_t)(*at - name));
        if (!f) return unreadable(s, "no such parameter", name);
        if (!take(at, '=')) return unreadable(s, "no = after a parameter", name);
        const char *end = options_read_value(f, *at, s->params, (OptionRoom *)(void *)s->room);
        if (!end) return unreadable(s, "no value", *at);
        *at = end;
        *given |= 1u << (f - s->op->fields);
        take(at, ',');
    }
    return 0;
}

static int read_code(Sample *s, const char **at)
{
    static const char *const name[] = {
#define X(code, text) #code,
        TENSOR_STATUS_LIST(X)
#undef X
    };
    skip_spaces(at);
    for (int i = 1; i < (int)(sizeof name / sizeof *name); i++) {
        const char *shown = name[i] + strlen("TENSOR_");
        if (strncmp(*at, shown, strlen(shown)) == 0) {
            s->code = (TensorStatus)i;
            *at += strlen(shown);
            return 0;
        }
    }
    return unreadable(s, "no such error code", *at);
}

static int read_sample(Sample *s, const char *at)
{
    unsigned given = 0;
    if (s->op->params > SAMPLE_PARAMS) return unreadable(s, "parameters too large", "");
    options_default(s->op, s->params, NULL);
    do {
        if (s->n == OP_MAX_INPUTS) return unreadable(s, "too many inputs", at);
        if (read_input(s, &at, &s->input[s->n++])) return -1;
    } while (take(&at, ','));
    if (take(&at, '{') && read_params(s, &at, &given)) return -1;
    if (take(&at, '!') && read_code(s, &at)) return -1;
    skip_spaces(&at);
    if (*at) return unreadable(s, "something else", at);
    for (const OpField *f = s->op->fields; f && f->name; f++)
        if (!(given >> (f - s->op->fields) & 1) && (f->required || (!f->count && !f->initial)))
            return unreadable(s, "a parameter must be given", f->name);
    return 0;
}

int sample_next(const TensorOp *op, const char **list, Sample *s)
{
    if (!*list) return 0;
    const char *start = *list, *end = strchr(start, ';');
    size_t length = end ? (size_t)(end - start) : strlen(start);
    *list = end ? end + 1 : NULL;
    memset(s, 0, sizeof *s);
    s->op = op;
    while (length && *start == ' ') start++, length--;
    snprintf(s->text, sizeof s->text, "%.*s", (int)length, start);
    if (length >= sizeof s->text) return unreadable(s, "a sample that is too long", s->text);
    return read_sample(s, s->text) ? -1 : 1;
}

static int64_t elements_of(const SampleInput *in)
{
    int64_t n = 1;
    for (int d = 0; d < in->ndim; d++) n *= in->shape[d];
    return in->absent ? 0 : n;
}

static bool grows(const Sample *s, Growth growth, int i, int d)
{
    const SampleInput *in = &s->input[i];
    return in->shape[d] > 1 &&
           (growth == GROW_ALL || (d == 0 && s->input[0].ndim && in->shape[0] == s->input[0].shape[0]));
}

int64_t sample_grow(Sample *s, Growth growth, int64_t elements, int64_t memory)
{
    int64_t most = 0, all = 0;
    int dims = 0;
    for (int i = 0; i < s->n; i++)
        if (elements_of(&s->input[i]) > most && (growth == GROW_ALL || i == 0)) {
            most = elements_of(&s->input[i]);
            dims = 0;
            for (int d = 0; d < s->input[i].ndim; d++) dims += grows(s, growth, i, d);
        }
    if (dims == 0) return 0;
    const int64_t factor = (int64_t)pow((double)elements / (double)most, 1. / dims);
    for (int i = s->n - 1; i >= 0; i--) { /* input 0, which the others are compared with, last */
        for (int d = s->input[i].ndim - 1; d >= 0; d--)
            if (grows(s, growth, i, d)) s->input[i].shape[d] *= factor;
        all += elements_of(&s->input[i]);
    }
    return factor > 1 && all < memory / (int64_t)sizeof(double) ? factor : 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

double random_uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
}

static Tensor *from_doubles(const double *v, TensorShape shape, TensorDtype dtype)
{
    Tensor *x = tensor_from_data(v, shape, TENSOR_F64);
    return x && dtype != TENSOR_F64 ? tensor_to(x, dtype) : x;
}

static double draw(const Sample *s, const SampleInput *in, bool is_float, uint64_t *state)
{
    double lo = in->lo, hi = in->hi, u = random_uniform(state);
    if (!is_float) {
        if (!in->has_range) lo = 0, hi = in->dtype == TENSOR_BOOL ? 1 : 3;
        return floor(lo + u * (floor(hi) - lo + 1));
    }
    if (!in->has_range) lo = s->op->lo, hi = s->op->hi;
    if (!in->has_range && lo == 0 && hi == 0) lo = -1, hi = 1;
    return lo + u * (hi - lo);
}

void sample_inputs(const Sample *s, int floats, uint64_t seed, Tensor **x)
{
    for (int i = 0; i < s->n; i++) {
        const SampleInput *in = &s->input[i];
        uint64_t state = seed * 1000003 + (uint64_t)i;
        x[i] = NULL;
        if (in->absent) continue;
        bool is_float = !in->has_dtype || tensor_dtype_is_float(in->dtype);
        int64_t n = 1;
        for (int d = 0; d < in->ndim; d++) n *= in->shape[d];
        double *v = malloc((size_t)(n ? n : 1) * sizeof *v);
        assert_non_null(v);
        for (int64_t k = 0; k < n; k++) v[k] = draw(s, in, is_float, &state);
        TensorDtype dtype = in->has_dtype ? in->dtype : TENSOR_F32;
        x[i] = from_doubles(v, (TensorShape){ in->ndim, in->shape },
                            is_float && floats != AS_WRITTEN ? (TensorDtype)floats : dtype);
        free(v);
        assert_non_null(x[i]);
    }
}

Tensor *random_like(const Tensor *y, uint64_t seed)
{
    int64_t n = tensor_numel(y);
    double *v = malloc((size_t)(n ? n : 1) * sizeof *v);
    assert_non_null(v);
    for (int64_t k = 0; k < n; k++)
        v[k] = sqrt(-2 * log(random_uniform(&seed))) * cos(6.283185307179586 * random_uniform(&seed));
    Tensor *x = from_doubles(v, tensor_shape(y), tensor_dtype(y));
    free(v);
    return x;
}

/* ---- running --------------------------------------------------------------------------------- */

bool sample_differentiable(const Sample *s, int i, const Tensor *x)
{
    return x && tensor_dtype_is_float(tensor_dtype(x)) && !(s->op->flags & OP_NONDIFFERENTIABLE) &&
           !(i < 32 && (s->op->no_grad_inputs >> i & 1));
}

int sample_leaves(const Sample *s, Tensor *const *x, Tensor **leaf)
{
    int wanting = 0;
    for (int i = 0; i < s->n; i++) {
        leaf[i] = x[i] ? tensor_detach(x[i]) : NULL;
        if (!sample_differentiable(s, i, x[i])) continue;
        tensor_requires_grad_(leaf[i], true);
        wanting++;
    }
    return wanting;
}

int sample_apply(const Sample *s, Tensor *const *x, Tensor **y)
{
    if (s->op->flags & OP_RANDOM) tensor_manual_seed(7);
    int n = tensor_apply_all(s->op, x, s->n, s->op->params ? s->params : NULL, y, SAMPLE_RESULTS);
    return n < SAMPLE_RESULTS ? n : SAMPLE_RESULTS;
}

/* One value for each index of dim 0. */
static Tensor *repeated(Tensor *v, bool expanded)
{
    Tensor *first = v;
    for (int d = 1; first && d < v->ndim; d++)
        if (v->shape[d] > 1) first = tensor_narrow(first, d, 0, 1);
    if (first && v->ndim == 1 && v->shape[0] > 1) first = tensor_narrow(first, 0, 0, 1);
    Tensor *wide = first ? tensor_expand(first, shape_of(v)) : NULL;
    return wide && !expanded ? tensor_clone(wide) : wide;
}

static Tensor *laid_out(Tensor *v, int cotangents)
{
    if (!v || cotangents < LAYOUTS) return v ? strided_copy(v, (Layout)cotangents) : NULL;
    return repeated(v, cotangents == COTANGENTS_EXPANDED);
}

int sample_run(const Sample *s, Tensor *const *x, bool create_graph, int cotangents, SampleRun *run)
{
    Tensor *leaf[OP_MAX_INPUTS], *wanted[OP_MAX_INPUTS], *found[OP_MAX_INPUTS], *root[SAMPLE_RESULTS],
        *v[SAMPLE_RESULTS];
    memset(run, 0, sizeof *run);
    int m = sample_leaves(s, x, leaf), k = 0, roots = 0;
    run->results = sample_apply(s, leaf, run->y);
    if (run->results < 0) return -1;
    for (int i = 0; i < run->results; i++)
        if (tensor_requires_grad(run->y[i])) {
            root[roots] = run->y[i];
            v[roots] = laid_out(random_like(run->y[i], 11 + (uint64_t)i), cotangents);
            if (!v[roots++]) return run->results = -1;
        }
    if (!m || !roots) return run->results;
    for (int i = 0; i < s->n; i++)
        if (sample_differentiable(s, i, x[i])) wanted[k++] = leaf[i];
    TensorGradientsArgs args = { .create_graph = create_graph, .materialize_grads = true };
    if (tensor_gradients_many(root, v, roots, wanted, m, found, args)) return run->results = -1;
    for (int i = 0, j = 0; i < s->n; i++)
        if (sample_differentiable(s, i, x[i])) run->g[i] = found[j++];
    return run->results;
}

/* ---- layouts --------------------------------------------------------------------------------- */

const char *const layout_name[LAYOUTS] = { "dense", "transposed", "stride 2", "offset", "from the end" };

static double unreadable_value(const Tensor *x)
{
    return tensor_dtype_is_float(tensor_dtype(x)) ? (double)NAN : 101;
}

static Tensor *from_the_end(const Tensor *x)
{
    Tensor *room = tensor_full(SHAPE(x->numel + 5), unreadable_value(x), tensor_dtype(x));
    Tensor *view = tensor_detach(tensor_view(tensor_slice(room, 0, x->numel ? -x->numel : 5), shape_of(x)));
    return view && !raw_copy(view, x) ? view : NULL;
}

/* The gaps hold what must not be read: NaN, or a big index. */
Tensor *strided_copy(const Tensor *x, Layout layout)
{
    int ndim = x->ndim;
    int64_t shape[TENSOR_MAX_DIMS] = { 0 }, stride[TENSOR_MAX_DIMS] = { 0 },
            step = layout == LAYOUT_STEP ? 2 : 1, count = 5 + step;
    for (int d = 0; d < ndim; d++) shape[d] = x->shape[d];
    if (layout == LAYOUT_DENSE) return tensor_clone(tensor_detach((Tensor *)(uintptr_t)x));
    if (layout == LAYOUT_END) return from_the_end(x);
    for (int d = 0; d < ndim; d++) {
        int at =
            layout == LAYOUT_TRANSPOSED ? d : ndim - 1 - d; /* transposed: the first dim is the innermost */
        stride[at] = step;
        step *= shape[at] > 1 ? shape[at] : 1;
        count *= shape[at] > 1 ? shape[at] : 1;
    }
    Tensor *room = tensor_full(SHAPE(count), unreadable_value(x), tensor_dtype(x));
    Tensor *view = room ? own(new_view(room, ndim, shape, stride, 3)) : NULL;
    return view && !raw_copy(view, x) ? view : NULL;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void *bytes_of(const Tensor *x, size_t *size)
{
    *size = (size_t)tensor_numel(x) * tensor_dtype_size(tensor_dtype(x));
    void *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    if (tensor_copy_to(x, bytes, *size)) *size = (size_t)-1;
    return bytes;
}

bool same_bits(const Tensor *a, const Tensor *b)
{
    if (!a || !b) return a == b;
    if (!shape_equal(shape_of(a), shape_of(b)) || a->dtype != b->dtype) return false;
    size_t na, nb;
    void *pa = bytes_of(a, &na), *pb = bytes_of(b, &nb);
    bool same = na == nb && na != (size_t)-1 && memcmp(pa, pb, na) == 0;
    free(pa);
    free(pb);
    return same;
}

static double *doubles_of(const Tensor *x)
{
    double *v = malloc(((size_t)tensor_numel(x) + 1) * sizeof *v);
    assert_non_null(v);
    Tensor *host = tensor_from_blob(v, tensor_shape(x), TENSOR_F64, NULL, NULL);
    assert_true(host && raw_copy(host, x) == 0);
    return v;
}

double off_by(const Tensor *a, const Tensor *b, double floor)
{
    if (!a || !b || !shape_equal(shape_of(a), shape_of(b))) return a == b ? 0 : (double)INFINITY;
    double *va = doubles_of(a), *vb = doubles_of(b), scale = floor, worst = 0;
    for (int64_t i = 0; i < b->numel; i++) {
        if (isfinite(vb[i]) && fabs(vb[i]) > scale) scale = fabs(vb[i]);
        if (va[i] == vb[i] || (isnan(va[i]) && isnan(vb[i]))) continue;
        double off = fabs(va[i] - vb[i]);
        worst = isfinite(off) ? fmax(worst, off) : (double)INFINITY;
    }
    free(va);
    free(vb);
    return worst / (scale > 0 ? scale : 1);
}

/* ---- the registry ---------------------------------------------------------------------------- */

static int complaints;
static void (*op_check)(const TensorOp *op);

static void complain_text(const TensorOp *op, const char *sample, const char *format, va_list args)
{
    enum { SHOWN = 8 };
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    if (++complaints <= SHOWN) {
        print_error("%s%s%s%s: %s\n", op->name, sample ? " \"" : "", sample ? sample : "", sample ? "\"" : "",
                    text);
        if (tensor_error()) print_error("    the library says: %s\n", tensor_error());
    }
    tensor_error_clear();
}

void complain(const Sample *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain_text(s->op, s->text, format, args);
    va_end(args);
}

void complain_op(const TensorOp *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain_text(op, NULL, format, args);
    va_end(args);
}

void each_sample(const TensorOp *op, void (*check)(const Sample *s))
{
    const char *list = op->samples;
    Sample *s = malloc(sizeof *s);
    assert_non_null(s);
    for (int status; (status = sample_next(op, &list, s)) != 0;) {
        TensorScope scope = tensor_scope_open();
        if (status < 0) complain(s, "%s", s->wrong);
        else check(s);
        tensor_scope_close(scope);
        if (tensor_error()) complain(s, "left an error behind");
    }
    free(s);
}

static void test_one(void **state)
{
    TensorScope scope = tensor_scope_open();
    complaints = 0;
    tensor_error_clear();
    tensor_set_grad_enabled(true);
    op_check(*state);
    tensor_scope_close(scope);
    if (complaints) fail_msg("%d complaints", complaints);
}

/* TAPEGRAD_SHARD=k/n. */
static void read_shard(int *k, int *n)
{
    const char *shard = getenv("TAPEGRAD_SHARD");
    *k = *n = 1;
    if (shard && (sscanf(shard, "%d/%d", k, n) != 2 || *k < 1 || *k > *n)) {
        fprintf(stderr, "TAPEGRAD_SHARD=%s: want k/n, the k-th of n parts\n", shard);
        exit(2);
    }
}

int shards(void)
{
    int k, n;
    read_shard(&k, &n);
    return n;
}

/* Neighbours, which are alike, fall into different parts. */
bool in_shard(int i)
{
    int k, n;
    read_shard(&k, &n);
    return i % n == k - 1;
}

int run_registry(int argc, char **argv, const char *group, void (*check)(const TensorOp *op))
{
    int n = tensor_op_count(), taken = 0;
    struct CMUnitTest *tests = calloc((size_t)n, sizeof *tests);
    if (!tests) return 1;
    op_check = check;
    for (int i = 0; i < n; i++) {
        const TensorOp *op = tensor_op_at(i);
        if (in_shard(i))
            tests[taken++] = (struct CMUnitTest){ .name = op->name,
                                                  .test_func = test_one,
                                                  .initial_state = (void *)(uintptr_t)op };
    }
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    int failed = _cmocka_run_group_tests(group, tests, (size_t)taken, NULL, NULL);
    free(tests);
    return failed;
}
