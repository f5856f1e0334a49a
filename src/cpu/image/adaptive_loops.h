/* adaptive_loops.h - adaptive_pool.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

static void N(max)(const PoolArgs *a, const void *in, void *y, int64_t *index)
{
    const T *x = in;
    for (int64_t i = 0; i < a->out[D] * a->out[H] * a->out[W]; i++) {
        const Box b = box(a, i);
        int64_t at = (b.from[D] * a->in[H] + b.from[H]) * a->in[W] + b.from[W];
        T best = -(T)INFINITY;
        for (int64_t t = b.from[D]; t < b.to[D]; t++)
            for (int64_t r = b.from[H]; r < b.to[H]; r++)
                for (int64_t s = b.from[W], row = (t * a->in[H] + r) * a->in[W]; s < b.to[W]; s++) {
                    const T v = x[row + s];
                    if (v > best || v != v) best = v, at = row + s;
                }
        ((T *)y)[i] = best, index[i] = at;
    }
}

static void N(avg)(const PoolArgs *a, const void *in, void *y)
{
    for (int64_t i = 0; i < a->out[D] * a->out[H] * a->out[W]; i++) {
        const Box b = box(a, i);
        double sum = 0;
        for (int64_t t = b.from[D]; t < b.to[D]; t++)
            for (int64_t r = b.from[H]; r < b.to[H]; r++) {
                const T *row = (const T *)in + (t * a->in[H] + r) * a->in[W];
                for (int64_t s = b.from[W]; s < b.to[W]; s++) sum += (double)row[s];
            }
        ((T *)y)[i] = (T)(sum / (double)b.count);
    }
}

static void N(avg_grad)(const PoolArgs *a, void *dx, const void *dy)
{
    T *x = dx;
    for (int64_t i = 0; i < a->in[D] * a->in[H] * a->in[W]; i++) x[i] = 0;
    for (int64_t i = 0; i < a->out[D] * a->out[H] * a->out[W]; i++) {
        const Box b = box(a, i);
        const T part = (T)((double)((const T *)dy)[i] / (double)b.count);
        for (int64_t t = b.from[D]; t < b.to[D]; t++)
            for (int64_t r = b.from[H]; r < b.to[H]; r++) {
                T *row = x + (t * a->in[H] + r) * a->in[W];
                for (int64_t s = b.from[W]; s < b.to[W]; s++) row[s] += part;
            }
    }
}

#undef N
