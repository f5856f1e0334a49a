/* pool_loops.h - pool_kernel.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

/* n elements, step apart; writes up to a vector beyond them. */
static void N(gather)(const T *x, int64_t step, int64_t n, T *to)
{
    if (step <= 2 && WIDE && sizeof(T) == sizeof(float)) gather_words((const float *)x, step, n, (float *)to);
    else if (step == 1) memcpy(to, x, (size_t)n * sizeof *to);
    else
        for (int64_t j = 0; j < n; j++) to[j] = x[j * step];
}

/* One tap: what it finds is taken where it is larger, or NaN; tap is its place relative to the window's
 * corner. */
static void N(take)(const T *found, int n, TAG tap, T *best, TAG *best_tap)
{
    for (int j = 0; j < n; j++) {
        const T v = found[j];
        const int larger = v > best[j] || v != v;
        best[j] = larger ? v : best[j];
        best_tap[j] = larger ? tap : best_tap[j];
    }
}

/* What a tap finds of output rows, columns [first, first + n); -inf in the padding. */
static void N(find)(const PoolArgs *a, const T *x, Tap tap, const Corner *corner, int64_t rows, int64_t first,
                    int64_t n, T *found)
{
    const int64_t offset = tap.w * a->dilation[W] - a->pad[W];
    int64_t from, to;
    inside(a->in[W], a->stride[W], offset, first, n, &from, &to);
    for (int64_t k = 0; k < rows; k++, found += n) {
        const int64_t plane = corner[k].d + tap.d * a->dilation[D],
                      row = corner[k].h + tap.h * a->dilation[H];
        const bool there = plane >= 0 && plane < a->in[D] && row >= 0 && row < a->in[H] && from < to;
        const int64_t begin = there ? from - first : n, end = there ? to - first : n;
        for (int64_t j = 0; j < begin; j++) found[j] = -(T)INFINITY;
        if (there)
            N(gather)
            (x + (plane * a->in[H] + row) * a->in[W] + from * a->stride[W] + offset, a->stride[W], to - from,
             found + begin);
        for (int64_t j = end; j < n; j++) found[j] = -(T)INFINITY;
    }
}

/* The places of n windows beside each other, of which the first begins at `corner`; returns the least tap. */
static TAG N(place)(const TAG *tap, int64_t n, int64_t corner, int64_t stride, int64_t *index)
{
    TAG least = 0;
    PLACES for (int64_t j = 0; j < n; j++)
    {
        least = tap[j] < least ? tap[j] : least;
        index[j] = corner + j * stride + tap[j];
    }
    return least;
}

/* rows * n is at most COLUMNS; rows lie one behind the other in y, so rows > 1 only for whole ones. */
static void N(max_rows)(const PoolArgs *a, const T *x, int64_t q, int64_t rows, int64_t first, int64_t n,
                        T *y, int64_t *index)
{
    T found[COLUMNS + BESIDE], best[COLUMNS + BESIDE];
    TAG tag[COLUMNS + BESIDE];
    Corner corner[COLUMNS];
    const int all = (int)(rows * n + BESIDE - 1) / BESIDE * BESIDE;
    corners(a, q, rows, corner);
    for (int j = 0; j < all; j++) found[j] = best[j] = -(T)INFINITY, tag[j] = -1;
    for (int64_t t = 0; t < a->kernel[D]; t++)
        for (int64_t r = 0; r < a->kernel[H]; r++)
            for (int64_t s = 0; s < a->kernel[W]; s++) {
                N(find)(a, x, (Tap){ t, r, s }, corner, rows, first, n, found);
                N(take)
                (found, all,
                 (TAG)((t * a->dilation[D] * a->in[H] + r * a->dilation[H]) * a->in[W] + s * a->dilation[W]),
                 best, tag);
            }
    memcpy(y, best, (size_t)(rows * n) * sizeof *y);
    for (int64_t k = 0; k < rows; k++) {
        const TAG *t = tag + k * n;
        const TAG least = N(place)(
            t, n, (corner[k].d * a->in[H] + corner[k].h) * a->in[W] + first * a->stride[W] - a->pad[W],
            a->stride[W], index + k * n);
        for (int64_t j = 0; least < 0 && j < n; j++) /* found nothing: all -inf */
            if (t[j] < 0) index[k * n + j] = first_inside(a, q + k, first + j);
    }
}

static void N(max)(const PoolArgs *a, const void *x, void *y, int64_t *index)
{
    const int64_t all = a->out[D] * a->out[H], width = a->out[W],
                  step = width < COLUMNS ? COLUMNS / width : 1;
    for (int64_t q = 0; q < all; q += step)
        for (int64_t j = 0; j < width; j += COLUMNS) {
            const int64_t n = width - j < COLUMNS ? width - j : COLUMNS,
                          rows = all - q < step ? all - q : step;
            N(max_rows)(a, x, q, rows, j, n, (T *)y + q * width + j, index + q * width + j);
        }
}

static void N(max_grad)(const PoolArgs *a, void *dx, const void *dy, const int64_t *index)
{
    T *x = dx;
    for (int64_t i = 0; i < a->in[D] * a->in[H] * a->in[W]; i++) x[i] = 0;
    for (int64_t i = 0; i < a->out[D] * a->out[H] * a->out[W]; i++) x[index[i]] += ((const T *)dy)[i];
}

static void N(avg_row)(const PoolArgs *a, const T *x, int64_t q, int64_t first, int64_t n, T *y)
{
    double sum[COLUMNS] = { 0 };
    for (int64_t t = 0; t < a->kernel[D] * a->kernel[H]; t++) {
        const int64_t row = row_of(a, q, t / a->kernel[H], t % a->kernel[H]);
        if (row < 0) continue;
        for (int64_t s = 0; s < a->kernel[W]; s++) {
            int64_t from, to;
            inside(a->in[W], a->stride[W], s - a->pad[W], first, n, &from, &to);
            if (from == to) continue;
            const T *at = x + (row + from * a->stride[W] + s - a->pad[W]);
            double *to_sum = sum + (from - first);
            for (int64_t j = 0; j < to - from; j++) to_sum[j] += (double)at[j * a->stride[W]];
        }
    }
    const double rows = row_count(a, q);
    for (int64_t j = 0; j < n; j++) y[j] = (T)(sum[j] * column_scale(a, rows, first + j));
}

static void N(avg)(const PoolArgs *a, const void *x, void *y)
{
    const int64_t width = a->out[W];
    for (int64_t q = 0; q < a->out[D] * a->out[H]; q++)
        for (int64_t j = 0; j < width; j += COLUMNS)
            N(avg_row)(a, x, q, j, width - j < COLUMNS ? width - j : COLUMNS, (T *)y + q * width + j);
}

static void N(avg_grad_row)(const PoolArgs *a, T *x, int64_t q, int64_t first, int64_t n, const T *y)
{
    T part[COLUMNS];
    const double rows = row_count(a, q);
    for (int64_t j = 0; j < n; j++) part[j] = (T)((double)y[j] * column_scale(a, rows, first + j));
    for (int64_t t = 0; t < a->kernel[D] * a->kernel[H]; t++) {
        const int64_t row = row_of(a, q, t / a->kernel[H], t % a->kernel[H]);
        if (row < 0) continue;
        for (int64_t s = 0; s < a->kernel[W]; s++) {
            int64_t from, to;
            inside(a->in[W], a->stride[W], s - a->pad[W], first, n, &from, &to);
            if (from == to) continue;
            T *at = x + (row + from * a->stride[W] + s - a->pad[W]);
            for (int64_t j = 0; j < to - from; j++) at[j * a->stride[W]] += part[from - first + j];
        }
    }
}

static void N(avg_grad)(const PoolArgs *a, void *dx, const void *dy)
{
    T *x = dx;
    const int64_t width = a->out[W];
    for (int64_t i = 0; i < a->in[D] * a->in[H] * a->in[W]; i++) x[i] = 0;
    for (int64_t q = 0; q < a->out[D] * a->out[H]; q++)
        for (int64_t j = 0; j < width; j += COLUMNS) N(avg_grad_row)
    (a, x, q, j, width - j < COLUMNS ? width - j : COLUMNS, (const T *)dy + q * width + j);
}

#undef N
