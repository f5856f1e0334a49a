/* bags_loops.h - bags_kernel.c's loops over rows of type T. */
#define N(name) JOIN(name, TYPE)

/* Columns [d, d + block) of one bag, whose rows are k from `from` to `to`: they stay in registers while all
 * rows are added, 1.5 times as fast as row after row, with the same bits. */
FORCE_INLINE void N(add_block)(const BagSum *b, int64_t from, int64_t to, int64_t d, T *at)
{
    V *y = (V *)at, sum[VECTORS];
    UNROLL
    for (int v = 0; v < VECTORS; v++) sum[v] = y[v];
    for (int64_t k = from; k < to; k++) {
        const V *row = (const V *)((const T *)b->weight + b->index[k] * b->width + d);
        const T w = b->each ? ((const T *)b->each)[k] : 1;
        UNROLL
        for (int v = 0; v < VECTORS; v++) sum[v] += w * row[v];
    }
    UNROLL
    for (int v = 0; v < VECTORS; v++) y[v] = sum[v];
}

/* Up to two vectors of the columns that are left, n of them, likewise. */
FORCE_INLINE void N(add_rest)(const BagSum *b, int64_t from, int64_t to, int64_t d, int64_t n, T *y)
{
    const int one = (int)(sizeof(V) / sizeof(T)), second = n <= one ? 0 : one;
    const N(M) mask = N(mask)((int)(n < one ? n : one)),
               last = N(mask)((int)(n - second < one ? n - second : one));
    N(W) sum = N(get)(y, mask), more = N(get)(y + second, last);
    for (int64_t k = from; k < to; k++) {
        const T w = b->each ? ((const T *)b->each)[k] : 1,
                *row = (const T *)b->weight + b->index[k] * b->width + d;
        sum += w * N(get)(row, mask);
        more += w * N(get)(row + second, last);
    }
    N(put)(y, mask, sum);
    N(put)(y + second, last, more);
}

/* Row k, which its bag has alone. */
static void N(add_row)(const BagSum *b, int64_t k, T *y)
{
    const T *row = (const T *)b->weight + b->index[k] * b->width;
    const T w = b->each ? ((const T *)b->each)[k] : 1;
    INDEPENDENT
    for (int64_t i = 0; i < b->width; i++) y[i] += w * row[i];
}

void ISA_NAME(N(bags_sum))(const BagSum *b)
{
    const int64_t one = (int64_t)(sizeof(V) / sizeof(T)), block = one * VECTORS;
    for (int64_t from = 0, to = 0; from < b->kept; from = to) {
        while (to < b->kept && b->bag[to] == b->bag[from]) to++;
        T *y = (T *)b->y + b->bag[from] * b->width;
        int64_t d = 0;
        const int64_t end = to - from > 1 ? b->width : 0;
        if (end == 0) N(add_row)(b, from, y);
        for (; d + block <= end; d += block) N(add_block)(b, from, to, d, y + d);
        for (; d < end; d += 2 * one) N(add_rest)(b, from, to, d, end - d, y + d);
    }
}

void ISA_NAME(N(bags_dot))(const BagDot *b)
{
    for (int64_t k = 0; k < b->kept; k++) {
        const T *p = (const T *)b->x + b->index[k] * b->width, *q = (const T *)b->dy + b->bag[k] * b->width;
        double sum = 0;
        int64_t d = 0;
        while (d + LANES <= b->width) {
            T part[LANES] = { 0 };
            for (int step = 0; step < STEPS && d + LANES <= b->width; step++, d += LANES)
                for (int l = 0; l < LANES; l++) part[l] += p[d + l] * q[d + l];
            for (int l = 0; l < LANES; l++) sum += (double)part[l];
        }
        for (; d < b->width; d++) sum += (double)p[d] * (double)q[d];
        ((T *)b->dw)[k] = (T)sum;
    }
}

#undef N
