/* sample.c - parses sample lists and makes their tensors. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/options.h"
#include "sample.h"

/* ---- the lists ------------------------------------------------------------------------------- */

static bool takes_floats(const TensorOp *op) { return op->row->types < ROW_BITS; }

const char *op_samples(const TensorOp *op)
{
    if (op->samples || !op->row) return op->samples;
    if (op->row->samples) return op->row->samples;
    if (!takes_floats(op))
        return op->arity == 2
                   ? "3x4@i64:-9..9,4@i64:-9..9; 5x1@i32:-9..9,4@u8:0..9; @u8:0..255,3@u8:0..9; 0x3@i32,3@i64"
                   : "3x4@i64:-9..9; 5@i32:-9..9; @u8:0..255; 0x3@u8";
    return op->arity == 2
               ? ",; 5,; 5x1,5; 3x2,; 2x3x2,3x2; 2x3x2,2x3x2; 3x1x2,3x2; 3x1x2,1x3x2; 0x1x3,0x4x3; 1x3,2x1"
               : "20; 1x0x3; ; 3x4; 2x3x2";
}

const char *op_errors(const TensorOp *op)
{
    if (op->errors || !op->row) return op->errors;
    if (op->row->errors) return op->row->errors;
    if (!takes_floats(op))
        return op->arity == 2 ? "3@i64,3 ! EDTYPE; 3,3 ! EDTYPE; 2x3@i64,3x2@i64 ! ESHAPE" : "3x4 ! EDTYPE";
    return op->arity == 2 ? "2x3,3x2 ! ESHAPE; 4,5 ! ESHAPE" : "3,3 ! EVALUE";
}

const char *op_torch(const TensorOp *op) { return op->torch || !op->row ? op->torch : op->row->torch; }

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

static int read_params(Sample *s, const char **at)
{
    static const char *const fault[] = { [OPTION_UNKNOWN] = "no such parameter",
                                         [OPTION_NO_VALUE] = "no = after a parameter",
                                         [OPTION_BAD] = "no value",
                                         [OPTION_TWICE] = "a parameter is given twice",
                                         [OPTION_MISSING] = "a parameter must be given" };
    const char *name = "", *none = "";
    int length;
    const OptionFault found = options_read(s->op, take(at, '{') ? at : &none, '}', s->params,
                                           (OptionRoom *)(void *)s->room, &name, &length);
    return found ? unreadable(s, fault[found], found == OPTION_MISSING ? name : *at) : 0;
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
    if (s->op->params > SAMPLE_PARAMS) return unreadable(s, "parameters too large", "");
    do {
        if (s->n == OP_MAX_INPUTS) return unreadable(s, "too many inputs", at);
        if (read_input(s, &at, &s->input[s->n++])) return -1;
    } while (take(&at, ','));
    if (read_params(s, &at)) return -1;
    if (take(&at, '!') && read_code(s, &at)) return -1;
    skip_spaces(&at);
    return *at ? unreadable(s, "something else", at) : 0;
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

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double random_uniform(uint64_t *state) { return ((double)(random_bits(state) >> 11) + 0.5) * 0x1p-53; }

/* A tensor of doubles to be filled at *v, then cast by finished(). */
static Tensor *unfilled(TensorShape shape, double **v)
{
    Tensor *x = tensor_empty(shape, TENSOR_F64);
    *v = x ? tensor_data(x) : NULL;
    return x;
}

static Tensor *finished(Tensor *x, TensorDtype dtype)
{
    return dtype == TENSOR_F64 ? x : tensor_to(x, dtype);
}

const char *sample_device;
Tensor *on_sample_device(Tensor *x) { return x && sample_device ? tensor_to_device(x, sample_device) : x; }
bool sample_rounds_more(const TensorOp *op)
{
    return op->flags & OP_OF_PRODUCTS && sample_device && strcmp(sample_device, "cpu") != 0;
}

static double draw(const Sample *s, const SampleInput *in, bool is_float, uint64_t *state)
{
    double lo = in->lo, hi = in->hi, u = random_uniform(state);
    if (!is_float) {
        if (!in->has_range) lo = 0, hi = in->dtype == TENSOR_BOOL ? 1 : 3;
        return floor(lo + u * (floor(hi) - lo + 1));
    }
    if (!in->has_range)
        lo = s->op->row ? s->op->row->lo : s->op->lo, hi = s->op->row ? s->op->row->hi : s->op->hi;
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
        double *v;
        Tensor *wide = unfilled((TensorShape){ in->ndim, in->shape }, &v);
        for (int64_t k = 0, n = wide ? tensor_numel(wide) : 0; k < n; k++)
            v[k] = draw(s, in, is_float, &state);
        const TensorDtype dtype = in->has_dtype ? in->dtype : TENSOR_F32;
        if (wide) wide = finished(wide, is_float && floats != AS_WRITTEN ? (TensorDtype)floats : dtype);
        x[i] = on_sample_device(wide);
    }
}

Tensor *random_like(const Tensor *y, uint64_t seed)
{
    double *v;
    Tensor *wide = unfilled(tensor_shape(y), &v);
    for (int64_t k = 0, n = wide ? tensor_numel(wide) : 0; k < n; k++) {
        /* the sum of four draws among 0 ... 65535, whose mean is 131070 and whose variance is 2^32 / 3 */
        const uint64_t z = random_bits(&seed), of_four = (z & 65535) + (z >> 16 & 65535) + (z >> 32 & 65535);
        v[k] = ((double)(of_four + (z >> 48)) - 131070) * 0x1.bb67ae8584caap-16;
    }
    return wide ? tensor_to_device(finished(wide, tensor_dtype(y)), tensor_device(y)) : NULL;
}
