/* taps_loops.h - taps.c's loops over elements of type T.  A position outside [0, size) names nothing. */

static void N(sum)(Piece p, const T *x, const T *weight, T *y)
{
    for (int64_t j = 0; j < p.points; j++) y[j] = 0;
    for (int64_t k = 0; k < p.taps; k++, weight += p.points, p.index += p.points)
        for (int64_t j = 0; j < p.points; j++)
            if ((uint64_t)p.index[j] < (uint64_t)p.size) y[j] += weight[j] * x[p.index[j]];
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
    for (int64_t c = 0; c < channels; c++, x += p.size, y += p.points)
        for (int64_t j = 0; j < p.points; j++)
            if ((uint64_t)p.index[j] < (uint64_t)p.size) weight[j] += x[p.index[j]] * y[j];
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
        N(dot)(p, a->channels, x + n * a->channels * a->size, weight + i * a->points, y + n * a->channels * a->points);
    }
}
