/* pool_loops.h - pool_kernel.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

/* n elements, step apart. */
static void N(gather)(const T *x, int64_t step, int64_t n, T *to)
{
    if (step == 1)
        for (int64_t j = 0; j < n; j++) to[j] = x[j];
    else if (step == 2)
        for (int64_t j = 0; j < n; j++) to[j] = x[2 * j];
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

/* What a tap finds of output rows [q, q + rows), columns [first, first + n); -inf in the padding. */
static void N(find)(const PoolArgs *a, const T *x, Tap tap, int64_t q, int64_t rows, int64_t first, int64_t n,
                    T *found)
{
    const int64_t offset = tap.w * a->dilation[W] - a->pad[W];
    int64_t from, to;
    inside(a->in[W], a->stride[W], offset, first, n, &from, &to);
    for (int64_t k = 0; k < rows; k++, found += n) {
        const int64_t row = row_of(a, q + k, tap.d, tap.h);
        const bool there = row >= 0 && from < to;
        const int64_t begin = there ? from - first : n, end = there ? to - first : n;
        for (int64_t j = 0; j < begin; j++) found[j] = -(T)INFINITY;
        if (there)
            N(gather)(x + (row + from * a->stride[W] + offset), a->stride[W], to - from, found + begin);
        for (int64_t j = end; j < n; j++) found[j] = -(T)INFINITY;
    }
}

/* rows * n is at most COLUMNS; rows lie one behind the other in y, so rows > 1 only for whole ones. */
static void N(max_rows)(const PoolArgs *a, const T *x, int64_t q, int64_t rows, int64_t first, int64_t n,
                        T *y, int64_t *index)
{
    T found[COLUMNS], best[COLUMNS];
    TAG tag[COLUMNS];
    const int all = (int)(rows * n);
    for (int j = 0; j < all; j++) best[j] = -(T)INFINITY, tag[j] = -1;
    for (int64_t t = 0; t < a->kernel[D]; t++)
        for (int64_t r = 0; r < a->kernel[H]; r++)
            for (int64_t s = 0; s < a->kernel[W]; s++) {
                N(find)(a, x, (Tap){ t, r, s }, q, rows, first, n, found);
                N(take)
                (found, all,
                 (TAG)((t * a->dilation[D] * a->in[H] + r * a->dilation[H]) * a->in[W] + s * a->dilation[W]),
                 best, tag);
            }
    for (int64_t k = 0; k < rows; k++) {
        const int64_t depth = (q + k) / a->out[H] * a->stride[D] - a->pad[D],
                      row = (q + k) % a->out[H] * a->stride[H] - a->pad[H];
        const int64_t corner = (depth * a->in[H] + row) * a->in[W] + first * a->stride[W] - a->pad[W];
        const TAG *t = tag + k * n;
        TAG least = 0;
        memcpy(y + k * n, best + k * n, (size_t)n * sizeof *y);
        for (int64_t j = 0; j < n; j++) {
            least = t[j] < least ? t[j] : least;
            index[k * n + j] = corner + j * a->stride[W] + t[j];
        }
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
