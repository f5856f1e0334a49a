/* block_matrix.c - LU and triangular systems by halves (block_matrix.h).
 *
 *   [a11 a12]    columns 1: l11, u11, l21 by exchanges of whole rows
 *   [a21 a22]    u12 = l11^-1 a12;  a22 -= l21 u12;  then columns 2
 *
 * A triangle of two halves solves one, takes its product with the square between them off the other, and
 * solves that.  The blocks depend on sizes alone, and products do not on threads: the same bits always. */
#include "block_matrix.h"
#include <math.h>
#include "cpu/product/gemm.h"
#include "cpu/cpu.h"

enum { LEAF = 8 };

/* c -= a b; c is [m, n], k is summed over; ld, the distance of rows. */
static int subtract_product(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, const double *b,
                            int64_t ldb, double *c, int64_t ldc)
{
    const GemmCall call = { .dtype = GEMM_F64,
                            .batch = 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .a = a,
                            .a_row = lda,
                            .a_col = 1,
                            .b = b,
                            .b_row = ldb,
                            .b_col = 1,
                            .c = c,
                            .c_row = ldc,
                            .c_col = 1,
                            .alpha = -1,
                            .beta = 1 };
    return m && n ? gemm_cpu(&call, cpu_threads(m * n * k)) : 0;
}

static void subtract(double *y, const double *x, double c, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] -= c * x[i];
}

/* ---- triangles ------------------------------------------------------------------------------- */

typedef struct Triangle {
    bool upper, left, unit;
    int64_t ld; /* of the triangle */
} Triangle;

/* n rows of b: each from those before it, in the order of the triangle. */
static void leaf_left(const Triangle *t, const double *a, double *b, int64_t ldb, int64_t n, int64_t columns)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = t->upper ? n - 1 - step : step;
        double *row = b + i * ldb;
        for (int64_t k = t->upper ? i + 1 : 0; k < (t->upper ? n : i); k++)
            subtract(row, b + k * ldb, a[i * t->ld + k], columns);
        for (int64_t k = 0; !t->unit && k < columns; k++) row[k] /= a[i * t->ld + i];
    }
}

/* n columns of b: each element, once known, is taken off those after it. */
static void leaf_right(const Triangle *t, const double *a, double *b, int64_t ldb, int64_t n, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++, b += ldb)
        for (int64_t step = 0; step < n; step++) {
            const int64_t j = t->upper ? step : n - 1 - step, from = t->upper ? j + 1 : 0;
            if (!t->unit) b[j] /= a[j * t->ld + j];
            subtract(b + from, a + j * t->ld + from, b[j], t->upper ? n - j - 1 : j);
        }
}

/* b has n rows, or n columns where the triangle stands right of it, and `others` of the other. */
static int solve(const Triangle *t, const double *a, double *b, int64_t ldb, int64_t n, int64_t others)
{
    if (n <= LEAF) {
        (t->left ? leaf_left : leaf_right)(t, a, b, ldb, n, others);
        return 0;
    }
    const int64_t half = n / 2, rest = n - half, ld = t->ld;
    const bool second = t->upper == t->left; /* is solved first */
    const double *low = a + half * (ld + 1), *square = t->upper ? a + half : a + half * ld;
    double *tail = t->left ? b + half * ldb : b + half;
    if (second ? solve(t, low, tail, ldb, rest, others) : solve(t, a, b, ldb, half, others)) return -1;
    double *known = second ? tail : b, *next = second ? b : tail;
    const int64_t from = second ? rest : half, to = second ? half : rest;
    if (t->left ? subtract_product(to, others, from, square, ld, known, ldb, next, ldb)
                : subtract_product(others, to, from, known, ldb, square, ld, next, ldb))
        return -1;
    return second ? solve(t, a, b, ldb, half, others) : solve(t, low, tail, ldb, rest, others);
}

int block_triangular(const double *a, double *b, int64_t rows, int64_t columns, bool upper, bool left,
                     bool unit)
{
    const Triangle t = { upper, left, unit, left ? rows : columns };
    return solve(&t, a, b, columns, t.ld, left ? columns : rows);
}

/* ---- LU -------------------------------------------------------------------------------------- */

typedef struct Whole { /* a [m, n]; zero: 1 + the first pivot that is 0 */
    double *a;
    int64_t m, n, zero;
    int *pivots;
} Whole;

static void factor_leaf(Whole *w, int64_t begin, int64_t end)
{
    double *a = w->a;
    const int64_t n = w->n;
    for (int64_t k = begin; k < end; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < w->m; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        w->pivots[k] = (int)best;
        for (int64_t j = 0; j < n && best != k; j++) {
            const double was = a[k * n + j];
            a[k * n + j] = a[best * n + j], a[best * n + j] = was;
        }
        const double pivot = a[k * n + k];
        if (pivot == 0) {
            if (!w->zero) w->zero = k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < w->m; i++) {
            a[i * n + k] /= pivot;
            subtract(a + i * n + k + 1, a + k * n + k + 1, a[i * n + k], end - k - 1);
        }
    }
}

/* Columns from begin to end, at most m, from the diagonal down. */
static int factor_columns(Whole *w, int64_t begin, int64_t end)
{
    if (end - begin <= LEAF) {
        factor_leaf(w, begin, end);
        return 0;
    }
    const int64_t n = w->n, half = (begin + end) / 2, done = half - begin;
    const Triangle l = { .left = true, .unit = true, .ld = n };
    double *corner = w->a + begin * (n + 1), *right = corner + done, *below = corner + done * n;
    if (factor_columns(w, begin, half) || solve(&l, corner, right, n, done, end - half)) return -1;
    if (subtract_product(w->m - half, end - half, done, below, n, right, n, below + done, n)) return -1;
    return factor_columns(w, half, end);
}

int64_t block_lu(double *a, int64_t m, int64_t n, int *pivots)
{
    Whole w = { a, m, n, 0, pivots };
    const Triangle l = { .left = true, .unit = true, .ld = n };
    if (factor_columns(&w, 0, m < n ? m : n)) return -1;
    if (n > m && solve(&l, a, a + m, n, m, n - m)) return -1;
    return w.zero;
}
