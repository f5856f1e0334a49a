/* adaptive_loops.h - adaptive_pool.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

static void N(max_box)(const PoolArgs *a, const T *x, const Along *d, const Along *h, const Along *w, T *y,
                       int64_t *index)
{
    int64_t at = (d->from * a->in[H] + h->from) * a->in[W] + w->from;
    T best = -(T)INFINITY;
    for (int64_t t = d->from; t < d->to; t++)
        for (int64_t r = h->from; r < h->to; r++)
            for (int64_t s = w->from, row = (t * a->in[H] + r) * a->in[W]; s < w->to; s++) {
                const T v = x[row + s];
                const bool larger = v > best || v != v; /* no branch, which random values would mislead */
                best = larger ? v : best, at = larger ? row + s : at;
            }
    *y = best, *index = at;
}

static T N(avg_box)(const PoolArgs *a, const T *x, const Along *d, const Along *h, const Along *w)
{
    enum { LANES = 8 };
    double sum = 0, lane[LANES] = { 0 };
    for (int64_t t = d->from; t < d->to; t++)
        for (int64_t r = h->from; r < h->to; r++) {
            const T *row = x + (t * a->in[H] + r) * a->in[W];
            int64_t s = w->from;
            for (; s + LANES <= w->to; s += LANES)
                for (int l = 0; l < LANES; l++) lane[l] += (double)row[s + l];
            for (; s < w->to; s++) sum += (double)row[s];
        }
    for (int l = 0; l < LANES; l++) sum += lane[l];
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
