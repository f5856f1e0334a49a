/* taps_loops.h - taps_kernel.c's loops over elements of type T.  A position outside [0, size) names nothing:
 * element 0 is read there, and left out. */

/* y += w x[index] */
static void N(pick)(const int64_t *restrict index, int64_t size, const T *restrict x, const T *restrict w,
                    T *restrict y, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        const int there = (uint64_t)index[j] < (uint64_t)size;
        const T product = w[j] * x[there ? index[j] : 0];
        y[j] += there ? product : 0;
    }
}

static void N(sum)(Piece p, const T *x, const T *weight, T *y)
{
    for (int64_t j = 0; j < p.points; j++) y[j] = 0;
    for (int64_t k = 0; k < p.taps && p.size; k++)
        N(pick)(p.index + k * p.points, p.size, x, weight + k * p.points, y, p.points);
}

static void N(spread)(Piece p, T *x, const T *weight, const T *y)
{
    for (int64_t i = 0; i < p.size; i++) x[i] = 0;
    for (int64_t k = 0; k < p.taps; k++, weight += p.points, p.index += p.points)
        for (int64_t j = 0; j < p.points; j++)
            if ((uint64_t)p.index[j] < (uint64_t)p.size) x[p.index[j]] += weight[j] * y[j];
}

/* One tap: index and weight [points]. */
static void N(dot)(Piece p, int64_t channels, const T *x, T *weight, const T *y)
{
    for (int64_t j = 0; j < p.points; j++) weight[j] = 0;
    for (int64_t c = 0; c < channels && p.size; c++, x += p.size, y += p.points)
        N(pick)(p.index, p.size, x, y, weight, p.points);
}

static void N(run)(const TapsArgs *a, int64_t i)
{
    const int64_t n = i / (a->kind == TAPS_DOT ? a->taps : a->channels), block = a->taps * a->points;
    T *x = a->x, *weight = a->weight, *y = a->y;
    Piece p = { a->taps, a->points, a->size, a->index + n * block };
    if (a->kind == TAPS_SUM) N(sum)(p, x + i * a->size, weight + n * block, y + i * a->points);
    else if (a->kind == TAPS_SPREAD) N(spread)(p, x + i * a->size, weight + n * block, y + i * a->points);
    else {
        p.index = a->index + i * a->points;
        N(dot)
        (p, a->channels, x + n * a->channels * a->size, weight + i * a->points,
         y + n * a->channels * a->points);
    }
}
