/* pool_loops.h - pool_kernel.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

/* n elements, step apart. */
static void N(gather)(const T *x, int64_t step, int64_t n, T *to)
{
    if (step == 1) for (int64_t j = 0; j < n; j++) to[j] = x[j];
    else if (step == 2) for (int64_t j = 0; j < n; j++) to[j] = x[2 * j];
    else for (int64_t j = 0; j < n; j++) to[j] = x[j * step];
}

/* One tap: what it finds is taken where it is larger, or NaN; tap is its place relative to the window's corner. */
static void N(take)(const T *found, int n, TAG tap, T *best, TAG *best_tap)
{
    for (int j = 0; j < n; j++) {
        const T v = found[j];
        const int larger = v > best[j] || v != v;
        best[j] = larger ? v : best[j];
        best_tap[j] = larger ? tap : best_tap[j];
    }
}

/* What the tap (r, s) finds of rows [i, i + rows), columns [first, first + n); -inf in the padding. */
static void N(find)(const PoolArgs *a, const T *x, int64_t r, int64_t s, int64_t i, int64_t rows, int64_t first, int64_t n, T *found)
{
    const int64_t offset = s * a->dilation_w - a->pad_w;
    int64_t from, to;
    inside(a->w, a->stride_w, offset, first, n, &from, &to);
    for (int64_t k = 0; k < rows; k++, found += n) {
        const int64_t row = (i + k) * a->stride_h + r * a->dilation_h - a->pad_h;
        const bool there = row >= 0 && row < a->h && from < to;
        const int64_t begin = there ? from - first : n, end = there ? to - first : n;
        for (int64_t j = 0; j < begin; j++) found[j] = -(T)INFINITY;
        if (there) N(gather)(x + row * a->w + from * a->stride_w + offset, a->stride_w, to - from, found + begin);
        for (int64_t j = end; j < n; j++) found[j] = -(T)INFINITY;
    }
}

/* rows * n is at most COLUMNS; rows lie one behind the other in y, so rows > 1 only for whole ones. */
static void N(max_rows)(const PoolArgs *a, const T *x, int64_t i, int64_t rows, int64_t first, int64_t n, T *y, int64_t *index)
{
    T found[COLUMNS], best[COLUMNS];
    TAG tap[COLUMNS];
    const int all = (int)(rows * n);
    for (int j = 0; j < all; j++) best[j] = -(T)INFINITY, tap[j] = -1;
    for (int64_t r = 0; r < a->kh; r++)
        for (int64_t s = 0; s < a->kw; s++) {
            N(find)(a, x, r, s, i, rows, first, n, found);
            N(take)(found, all, (TAG)(r * a->dilation_h * a->w + s * a->dilation_w), best, tap);
        }
    for (int64_t k = 0; k < rows; k++) {
        const int64_t corner = ((i + k) * a->stride_h - a->pad_h) * a->w + first * a->stride_w - a->pad_w;
        for (int64_t j = 0; j < n; j++) {
            const TAG t = tap[k * n + j];
            y[k * n + j] = best[k * n + j];
            index[k * n + j] = t >= 0 ? corner + j * a->stride_w + t : first_inside(a, i + k, first + j);
        }
    }
}

static void N(max)(const PoolArgs *a, const void *x, void *y, int64_t *index)
{
    const int64_t step = a->ow < COLUMNS ? COLUMNS / a->ow : 1;
    for (int64_t i = 0; i < a->oh; i += step)
        for (int64_t j = 0; j < a->ow; j += COLUMNS) {
            const int64_t n = a->ow - j < COLUMNS ? a->ow - j : COLUMNS, rows = a->oh - i < step ? a->oh - i : step;
            N(max_rows)(a, x, i, rows, j, n, (T *)y + i * a->ow + j, index + i * a->ow + j);
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
