/* pool_loops.h - pool_kernel.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

/* One tap: x at it is taken where it is larger, or NaN; tap is its number, by which the index is made later. */
static inline __attribute__((always_inline)) void N(take)(const T *x, int64_t step, int64_t n, TAG tap, T *best, TAG *best_tap)
{
    for (int64_t j = 0; j < n; j++) {
        const T v = x[j * step];
        const int larger = v > best[j] || v != v;
        best[j] = larger ? v : best[j];
        best_tap[j] = larger ? tap : best_tap[j];
    }
}

static void N(max_row)(const PoolArgs *a, const T *x, int64_t i, int64_t first, int64_t n, T *y, int64_t *index)
{
    TAG tap[COLUMNS];
    for (int64_t j = 0; j < n; j++) y[j] = -(T)INFINITY, tap[j] = -1;
    for (int64_t r = 0; r < a->kh; r++) {
        const int64_t row = i * a->stride_h + r * a->dilation_h - a->pad_h;
        if (row < 0 || row >= a->h) continue;
        for (int64_t s = 0; s < a->kw; s++) {
            const int64_t offset = s * a->dilation_w - a->pad_w;
            int64_t from, to;
            inside(a->w, a->stride_w, offset, first, n, &from, &to);
            const T *at = x + row * a->w + from * a->stride_w + offset;
            const TAG t = (TAG)(r * a->kw + s);
            T *best = y + from - first;
            TAG *best_tap = tap + from - first;
            if (a->stride_w == 1) N(take)(at, 1, to - from, t, best, best_tap);
            else if (a->stride_w == 2) N(take)(at, 2, to - from, t, best, best_tap);
            else N(take)(at, a->stride_w, to - from, t, best, best_tap);
        }
    }
    for (int64_t j = 0; j < n; j++) {
        int64_t row = i * a->stride_h - a->pad_h, column = (first + j) * a->stride_w - a->pad_w;
        if (tap[j] >= 0) {
            row += tap[j] / a->kw * a->dilation_h, column += tap[j] % a->kw * a->dilation_w;
        } else {                        /* all -inf: the first that is inside; dilation may leave none, but an index there must be */
            while (row < 0) row += a->dilation_h;
            while (column < 0) column += a->dilation_w;
            if (row >= a->h) row = a->h - 1;
            if (column >= a->w) column = a->w - 1;
        }
        index[j] = row * a->w + column;
    }
}

static void N(max)(const PoolArgs *a, const void *x, void *y, int64_t *index)
{
    for (int64_t i = 0; i < a->oh; i++)
        for (int64_t j = 0; j < a->ow; j += COLUMNS) {
            const int64_t n = a->ow - j < COLUMNS ? a->ow - j : COLUMNS;
            N(max_row)(a, x, i, j, n, (T *)y + i * a->ow + j, index + i * a->ow + j);
        }
}

static void N(max_grad)(const PoolArgs *a, void *dx, const void *dy, const int64_t *index)
{
    T *x = dx;
    for (int64_t i = 0; i < a->h * a->w; i++) x[i] = 0;
    for (int64_t i = 0; i < a->oh * a->ow; i++) x[index[i]] += ((const T *)dy)[i];
}

static void N(avg_row)(const PoolArgs *a, const T *x, int64_t i, int64_t first, int64_t n, T *y)
{
    double sum[COLUMNS] = { 0 };
    for (int64_t r = 0; r < a->kh; r++) {
        const int64_t row = i * a->stride_h + r - a->pad_h;
        if (row < 0 || row >= a->h) continue;
        for (int64_t s = 0; s < a->kw; s++) {
            int64_t from, to;
            inside(a->w, a->stride_w, s - a->pad_w, first, n, &from, &to);
            const T *at = x + row * a->w + from * a->stride_w + s - a->pad_w;
            double *to_sum = sum + from - first;
            for (int64_t j = 0; j < to - from; j++) to_sum[j] += (double)at[j * a->stride_w];
        }
    }
    for (int64_t j = 0; j < n; j++) y[j] = (T)(sum[j] * scale(a, i, first + j));
}

static void N(avg)(const PoolArgs *a, const void *x, void *y)
{
    for (int64_t i = 0; i < a->oh; i++)
        for (int64_t j = 0; j < a->ow; j += COLUMNS)
            N(avg_row)(a, x, i, j, a->ow - j < COLUMNS ? a->ow - j : COLUMNS, (T *)y + i * a->ow + j);
}

static void N(avg_grad_row)(const PoolArgs *a, T *x, int64_t i, int64_t first, int64_t n, const T *y)
{
    T part[COLUMNS];
    for (int64_t j = 0; j < n; j++) part[j] = (T)((double)y[j] * scale(a, i, first + j));
    for (int64_t r = 0; r < a->kh; r++) {
        const int64_t row = i * a->stride_h + r - a->pad_h;
        if (row < 0 || row >= a->h) continue;
        for (int64_t s = 0; s < a->kw; s++) {
            int64_t from, to;
            inside(a->w, a->stride_w, s - a->pad_w, first, n, &from, &to);
            T *at = x + row * a->w + from * a->stride_w + s - a->pad_w;
            for (int64_t j = 0; j < to - from; j++) at[j * a->stride_w] += part[from - first + j];
        }
    }
}

static void N(avg_grad)(const PoolArgs *a, void *dx, const void *dy)
{
    T *x = dx;
    for (int64_t i = 0; i < a->h * a->w; i++) x[i] = 0;
    for (int64_t i = 0; i < a->oh; i++)
        for (int64_t j = 0; j < a->ow; j += COLUMNS)
            N(avg_grad_row)(a, x, i, j, a->ow - j < COLUMNS ? a->ow - j : COLUMNS, (const T *)dy + i * a->ow + j);
}

#undef N
