/* sample.c - draws with a tensor as parameter: bernoulli, multinomial, the slopes of rrelu.
 *
 *   with replacement:   index = count of c_j < u, c the cumulated weights over their sum, u uniform (53 bits)
 *   one, or without:    the n largest of p_j / e_j, e_j exponential with rate 1
 *
 * Weights are cumulated in f32 (halves, too) or f64, one after the other, and divided in the dtype: PyTorch's
 * numbers. */
#include "device/half.h"
#include "draw.h"
#include "random_state.h"

#include <math.h>

enum { MOST_CATEGORIES = 1 << 24 }; /* PyTorch's limit: a float counts no further */

/* ---- bernoulli ------------------------------------------------------------------------------- */

static bool all_probabilities(const Tensor *p)
{
    const float *p32 = p->data;
    const double *p64 = p->data;
    bool ok = true;
    if (p->dtype == TENSOR_F32)
        for (int64_t i = 0; i < p->numel; i++) ok &= p32[i] >= 0 && p32[i] <= 1;
    else
        for (int64_t i = 0; i < p->numel; i++) ok &= p64[i] >= 0 && p64[i] <= 1;
    return ok;
}

Tensor *draw_bernoulli(const char *op, const Tensor *p)
{
    Tensor *host = own(draw_operand(p, p->dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32));
    if (!host) return NULL;
    if (!all_probabilities(host))
        return fail(TENSOR_EVALUE, op, "a probability in %s is not within 0 and 1", S(p)), NULL;
    Tensor *drawn = own(new_tensor(shape_of(p), host->dtype, &cpu_place));
    if (!drawn) return NULL;
    Mt19937 *g = &random_generator()->mt;
    if (host->dtype == TENSOR_F32) mt_bernoulli_each_f32(g, drawn->data, host->data, p->numel);
    else mt_bernoulli_each_f64(g, drawn->data, host->data, p->numel);
    if (p->dtype == drawn->dtype && on_host(p->place)) return drawn;
    Tensor *y = own(new_tensor(shape_of(p), p->dtype, p->place));
    return y && !raw_copy(y, drawn) ? y : NULL;
}

/* ---- slopes of rrelu ------------------------------------------------------------------------- */

Tensor *draw_slopes(const Tensor *x, const char *op, double lower, double upper)
{
    Tensor *host = own(draw_operand(x, x->dtype)),
           *slope = own(new_tensor(shape_of(x), x->dtype, &cpu_place)), *there = slope;
    if (!host || !slope) return NULL;
    Mt19937 *g = &random_generator()->mt;
    const bool wide = x->dtype == TENSOR_F64;
    if (!wide) lower = (float)lower, upper = (float)upper; /* as PyTorch */
    for (int64_t i = 0; i < x->numel; i++) {
        const double value = wide ? ((const double *)host->data)[i] : (double)((const float *)host->data)[i];
        const double drawn = value <= 0 ? mt_unit_f64(g) * (upper - lower) + lower : 1;
        if (wide) ((double *)slope->data)[i] = drawn;
        else ((float *)slope->data)[i] = (float)drawn;
    }
    if (x->place == &cpu_place) return slope;
    there = own(new_tensor(shape_of(x), x->dtype, x->place));
    if (!there) return NULL;
    return raw_copy(there, slope) ? fail(TENSOR_EDEVICE, op, "slopes to %s", x->place->name), NULL : there;
}

/* ---- multinomial: checks --------------------------------------------------------------------- */

typedef struct Rows { /* of weights or their quotients, in host memory */
    const Tensor *x;  /* f32 or f64, dense */
    int64_t rows, m;
} Rows;

static double weight(const Rows *p, int64_t i)
{
    return p->x->dtype == TENSOR_F32 ? (double)((const float *)p->x->data)[i]
                                     : ((const double *)p->x->data)[i];
}

static int check_weights(const char *op, const Rows *p)
{
    for (int64_t r = 0; r < p->rows; r++) {
        double sum = 0;
        for (int64_t j = 0; j < p->m; j++) {
            double w = weight(p, r * p->m + j);
            if (!(w >= 0) || !isfinite(w))
                return fail(TENSOR_EVALUE, op, "weight %lld of row %lld is %g: want finite ones, not below 0",
                            (long long)j, (long long)r, w);
            sum += w;
        }
        if (!(sum > 0))
            return fail(TENSOR_EVALUE, op, "the weights of row %lld sum to %g", (long long)r, sum);
    }
    return 0;
}

int draw_check_multinomial(const char *op, const Tensor *p, int64_t n, bool replacement)
{
    if (!dtype_is_float(p->dtype))
        return fail(TENSOR_EDTYPE, op, "weights are %s %s: want a floating dtype",
                    tensor_dtype_name((TensorDtype)p->dtype), S(p));
    if (p->ndim != 1 && p->ndim != 2)
        return fail(TENSOR_ESHAPE, op, "weights %s: want [m] or [rows, m]", S(p));
    int64_t m = p->shape[p->ndim - 1];
    if (m == 0 || m > MOST_CATEGORIES)
        return fail(TENSOR_EVALUE, op, "weights %s: want 1 to %d in a row", S(p), MOST_CATEGORIES);
    if (n < 1) return fail(TENSOR_EVALUE, op, "%lld draws: want at least 1", (long long)n);
    if (!replacement && n > m)
        return fail(TENSOR_EVALUE, op, "%lld draws without replacement from %s: want at most %lld",
                    (long long)n, S(p), (long long)m);
    return 0;
}

/* ---- multinomial: with replacement ----------------------------------------------------------- */

/* c gets the cumulated weights of row r over their sum, held in f64 but rounded as the dtype rounds. */
static void cumulate(const Rows *p, int64_t r, double *c)
{
    if (p->x->dtype == TENSOR_F32) {
        const float *w = (const float *)p->x->data + r * p->m;
        float sum = 0;
        for (int64_t j = 0; j < p->m; j++) c[j] = (double)(sum += w[j]);
        for (int64_t j = 0; j < p->m; j++) c[j] = (double)((float)c[j] / sum);
    } else {
        const double *w = (const double *)p->x->data + r * p->m;
        double sum = 0;
        for (int64_t j = 0; j < p->m; j++) c[j] = sum += w[j];
        for (int64_t j = 0; j < p->m; j++) c[j] /= sum;
    }
    c[p->m - 1] = 1;
}

static int64_t count_below(const double *c, int64_t m, double u)
{
    int64_t left = 0, right = m;
    while (left < right) {
        int64_t middle = left + (right - left) / 2;
        if (c[middle] < u) left = middle + 1;
        else right = middle;
    }
    return left;
}

static int draw_replacing(const char *op, const Rows *p, int64_t *out, int64_t n)
{
    size_t bytes = (size_t)p->m * sizeof(double);
    double *c = tg_alloc(bytes);
    if (!c) return fail_memory(op);
    Mt19937 *g = &random_generator()->mt;
    for (int64_t r = 0; r < p->rows; r++) {
        cumulate(p, r, c);
        for (int64_t k = 0; k < n; k++) out[r * n + k] = count_below(c, p->m, mt_unit_f64(g));
    }
    tg_free(c, bytes);
    return 0;
}

/* ---- multinomial: without -------------------------------------------------------------------- */

typedef struct Candidate {
    double value;
    int64_t index;
} Candidate;

static bool worse(Candidate a, Candidate b)
{
    return a.value != b.value ? a.value < b.value : a.index > b.index;
}

/* The heap's root is its worst candidate; moves what stands at i down to its place. */
static void sift(Candidate *heap, int64_t n, int64_t i)
{
    Candidate moving = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && worse(heap[child + 1], heap[child])) child++;
        if (!worse(heap[child], moving)) break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

/* Indices of the n best quotients of a row, best first. */
static void select_best(const Rows *q, int64_t r, int64_t *out, int64_t n, Candidate *heap)
{
    for (int64_t j = 0; j < q->m; j++) {
        Candidate c = { weight(q, r * q->m + j), j };
        if (j < n) {
            heap[j] = c;
            if (j == n - 1)
                for (int64_t i = n / 2; i-- > 0;) sift(heap, n, i);
        } else if (worse(heap[0], c)) {
            heap[0] = c;
            sift(heap, n, 0);
        }
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        out[k] = heap[0].index;
        heap[0] = heap[k];
        sift(heap, k, 0);
    }
}

/* p / e in the dtype of the weights; e becomes the quotient.  0 / 0 counts as weight 0. */
static void divide(const Rows *p, Tensor *e, int dtype)
{
    int64_t count = e->numel;
    if (e->dtype == TENSOR_F64) {
        const double *w = p->x->data;
        double *q = e->data;
        for (int64_t i = 0; i < count; i++) q[i] = w[i] == 0 ? 0 : w[i] / q[i];
        return;
    }
    const float *w = p->x->data;
    float *q = e->data;
    for (int64_t i = 0; i < count; i++) {
        q[i] = w[i] == 0 ? 0 : w[i] / q[i];
        if (dtype == TENSOR_F16) q[i] = f16_to_f32(f16_from_f32(q[i]));
        if (dtype == TENSOR_BF16) q[i] = bf16_to_f32(bf16_from_f32(q[i]));
    }
}

static int draw_apart(const char *op, const Tensor *p, const Rows *w, int64_t *out, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(Candidate);
    Tensor *e = draw_like(p, p->dtype, (Draw){ op, fill_exponential, .drawn = w->x->dtype, .at = { 1 } });
    e = e ? own(draw_operand(e, w->x->dtype)) : NULL;
    Candidate *heap = e ? tg_alloc(bytes) : NULL;
    if (e && !heap) fail_memory(op);
    if (!heap) return -1;
    divide(w, e, p->dtype);
    Rows q = { e, w->rows, w->m };
    for (int64_t r = 0; r < w->rows; r++) select_best(&q, r, out + r * n, n, heap);
    tg_free(heap, bytes);
    return 0;
}

Tensor *draw_multinomial(const char *op, const Tensor *p, int64_t n, bool replacement)
{
    Tensor *host = own(draw_operand(p, p->dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32));
    if (!host) return NULL;
    Rows w = { host, p->ndim == 2 ? p->shape[0] : 1, p->shape[p->ndim - 1] };
    if (check_weights(op, &w)) return NULL;
    Tensor *y = own(new_tensor(p->ndim == 2 ? SHAPE(w.rows, n) : SHAPE(n), TENSOR_I64, &cpu_place));
    int status = !y                     ? -1
                 : !w.rows              ? 0
                 : replacement && n > 1 ? draw_replacing(op, &w, y->data, n)
                                        : draw_apart(op, p, &w, y->data, n);
    if (status || on_host(p->place)) return status ? NULL : y;
    Tensor *there = own(new_tensor(shape_of(y), TENSOR_I64, p->place));
    return there && !raw_copy(there, y) ? there : NULL;
}
