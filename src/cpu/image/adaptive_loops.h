/* adaptive_loops.h - adaptive_pool.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

/* The larger one of two maxima and their places, the first where they are equal; NaN is the largest, and the
 * last one counts. */
FORCE_INLINE void N(merge)(T *best, int64_t *at, T v, int64_t i)
{
    const bool nan = v != v, was_nan = *best != *best;
    const bool other = nan || was_nan ? nan && (!was_nan || i > *at) : v > *best || (v == *best && i < *at);
    *best = other ? v : *best, *at = other ? i : *at;
}

typedef T N(V) __attribute__((vector_size(16), aligned(4), may_alias));
typedef TAG N(I) __attribute__((vector_size(16)));
enum { N(ONE) = 16 / sizeof(T), N(LANES) = VECTORS * N(ONE) };

/* Maxima in vectors, none of which waits for another's, places as wide as T. */
static void N(max_box)(const PoolArgs *a, const T *x, const Along *d, const Along *h, const Along *w, T *y,
                       int64_t *index)
{
    const int64_t first = (d->from * a->in[H] + h->from) * a->in[W] + w->from,
                  size = a->in[D] * a->in[H] * a->in[W], lanes = (TAG)size == size ? N(LANES) : INT64_MAX / 2;
    N(V) best[VECTORS];
    N(I) at[VECTORS], number;
    for (int l = 0; l < N(ONE); l++) number[l] = (TAG)l;
    for (int k = 0; k < VECTORS; k++) best[k] = -(T)INFINITY - (N(V)){ 0 }, at[k] = (TAG)first - (N(I)){ 0 };
    T most = -(T)INFINITY;
    int64_t most_at = first;
    for (int64_t t = d->from; t < d->to; t++)
        for (int64_t r = h->from; r < h->to; r++) {
            const int64_t row = (t * a->in[H] + r) * a->in[W];
            int64_t s = w->from;
            for (; s + lanes <= w->to; s += N(LANES)) UNROLL
            for (int k = 0; k < VECTORS; k++) {
                const N(V) v = *(const N(V) *)(x + row + s + k * N(ONE));
                const N(I) larger = (v > best[k]) | (v != v), here = (TAG)(row + s + k * N(ONE)) + number;
                best[k] = (N(V))((larger & (N(I))v) | (~larger & (N(I))best[k]));
                at[k] = (larger & here) | (~larger & at[k]);
            }
            for (; s < w->to; s++) {
                const T v = x[row + s];
                const bool larger = v > most || v != v; /* no branch, which random values would mislead */
                most = larger ? v : most, most_at = larger ? row + s : most_at;
            }
        }
    for (int k = 0; k < VECTORS; k++)
        for (int l = 0; l < N(ONE); l++) N(merge)(&most, &most_at, best[k][l], at[k][l]);
    *y = most, *index = most_at;
}

/* A few are added in T, their sums in double. */
static T N(avg_box)(const PoolArgs *a, const T *x, const Along *d, const Along *h, const Along *w)
{
    enum { STEPS = 8 };
    double sum = 0;
    for (int64_t t = d->from; t < d->to; t++)
        for (int64_t r = h->from; r < h->to; r++) {
            const T *row = x + (t * a->in[H] + r) * a->in[W];
            int64_t s = w->from;
            while (s + N(LANES) <= w->to) {
                N(V) part[VECTORS] = { 0 };
                for (int step = 0; step < STEPS && s + N(LANES) <= w->to; step++, s += N(LANES)) UNROLL
                for (int k = 0; k < VECTORS; k++) part[k] += *(const N(V) *)(row + s + k * N(ONE));
                for (int k = 1; k < VECTORS; k++) part[0] += part[k];
                for (int l = 0; l < N(ONE); l++) sum += (double)part[0][l];
            }
            for (; s < w->to; s++) sum += (double)row[s];
        }
    return (T)(sum / (double)count_of(d, h, w));
}

static void N(spread_box)(const PoolArgs *a, T *x, const Along *d, const Along *h, const Along *w, T dy)
{
    const T part = (T)((double)dy / (double)count_of(d, h, w));
    for (int64_t t = d->from; t < d->to; t++)
        for (int64_t r = h->from; r < h->to; r++) {
            T *row = x + (t * a->in[H] + r) * a->in[W];
            for (int64_t s = w->from; s < w->to; s++) row[s] += part;
        }
}

/* Each window of a plane: y and index its maxima, or y its means where there is no index, or, x given as dx,
 * y spread over it. */
static void N(each)(const PoolArgs *a, const void *x, void *dx, void *out, int64_t *index)
{
    Along d = first_window(a, D);
    T *y = out;
    for (int64_t i = 0; i < a->out[D]; i++, advance(&d)) {
        Along h = first_window(a, H);
        for (int64_t j = 0; j < a->out[H]; j++, advance(&h)) {
            Along w = first_window(a, W);
            for (int64_t k = 0; k < a->out[W]; k++, advance(&w), y++) {
                if (index) N(max_box)(a, x, &d, &h, &w, y, index++);
                else if (dx) N(spread_box)(a, dx, &d, &h, &w, *y);
                else *y = N(avg_box)(a, x, &d, &h, &w);
            }
        }
    }
}

static void N(avg_grad)(const PoolArgs *a, void *dx, const void *dy)
{
    for (int64_t i = 0; i < a->in[D] * a->in[H] * a->in[W]; i++) ((T *)dx)[i] = 0;
    N(each)(a, NULL, dx, (void *)(uintptr_t)dy, NULL);
}

#undef N
