/* block_matrix.c - recursive LU and triangular systems (block_matrix.h).
 *
 *   [a11 a12]    columns 1: l11, u11, l21 by exchanges of whole rows
 *   [a21 a22]    u12 = l11^-1 a12;  a22 -= l21 u12;  then columns 2
 *
 * A triangular system of two halves solves the first, subtracts its product with the square between them from
 * the second, and solves that.  Cholesky: l11 of a11;  l21 = a21 l11^-T;  a22 -= l21 l21^T;  l22 of a22.  The
 * blocks depend on sizes alone, and products do not on threads: the same
 * bits always. */
#include "block_matrix.h"
#include <math.h>
#include "cpu/product/gemm.h"
#include "cpu/cpu.h"
#include "small_matrix.h"

enum { LEAF = 8, CHOLESKY_LEAF = 16 };

/* c -= a b; c is [m, n], k is summed over; ld: the distance of rows, b_col: of b's columns. */
static int subtract_strided(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, const double *b,
                            int64_t ldb, int64_t b_col, double *c, int64_t ldc)
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
                            .b_col = b_col,
                            .c = c,
                            .c_row = ldc,
                            .c_col = 1,
                            .alpha = -1,
                            .beta = 1 };
    return m && n ? gemm_cpu(&call, cpu_threads(m * n * k)) : 0;
}

static int subtract_product(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, const double *b,
                            int64_t ldb, double *c, int64_t ldc)
{
    return subtract_strided(m, n, k, a, lda, b, ldb, 1, c, ldc);
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
    double *panel; /* LEAF columns of m: a leaf, one column behind the other, so that loops are vectors */
} Whole;

/* The first of the largest |x|; 0 where x[0] is NaN. */
static int64_t largest(const double *x, int64_t n)
{
    enum { LANES = 8 };
    double most[LANES];
    int64_t i = 0;
    for (int l = 0; l < LANES; l++) most[l] = fabs(x[0]);
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) most[l] = fabs(x[i + l]) > most[l] ? fabs(x[i + l]) : most[l];
    for (; i < n; i++) most[0] = fabs(x[i]) > most[0] ? fabs(x[i]) : most[0];
    for (int l = 1; l < LANES; l++) most[0] = most[l] > most[0] ? most[l] : most[0];
    for (i = 0; i < n; i++)
        if (fabs(x[i]) == most[0]) return i;
    return 0;
}

static void exchange(double *x, double *y, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++, x += step, y += step) {
        const double was = *x;
        *x = *y, *y = was;
    }
}

static void factor_panel(Whole *w, int64_t begin, int64_t width, int64_t rows)
{
    for (int64_t k = 0; k < width; k++) {
        double *column = w->panel + k * rows;
        const int64_t left = rows - k - 1, best = k + largest(column + k, rows - k);
        w->pivots[begin + k] = (int)(begin + best);
        if (best != k) {
            exchange(w->a + (begin + k) * w->n, w->a + (begin + best) * w->n, w->n, 1);
            exchange(w->panel + k, w->panel + best, width, rows);
        }
        const double pivot = column[k];
        if (pivot == 0) {
            if (!w->zero) w->zero = begin + k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < rows; i++) column[i] /= pivot;
        for (int64_t j = k + 1; j < width; j++) {
            double *later = w->panel + j * rows + k;
            subtract(later + 1, column + k + 1, *later, left);
        }
    }
}

static void factor_leaf(Whole *w, int64_t begin, int64_t end)
{
    const int64_t width = end - begin, rows = w->m - begin;
    double *corner = w->a + begin * (w->n + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) w->panel[j * rows + i] = corner[i * w->n + j];
    factor_panel(w, begin, width, rows);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) corner[i * w->n + j] = w->panel[j * rows + i];
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
    const size_t bytes = (size_t)m * LEAF * sizeof(double);
    Whole w = { a, m, n, 0, pivots, tg_alloc(bytes) };
    const Triangle l = { .left = true, .unit = true, .ld = n };
    const int status = w.panel ? factor_columns(&w, 0, m < n ? m : n) : -1;
    if (w.panel) tg_free(w.panel, bytes);
    if (status) return -1;
    if (n > m && solve(&l, a, a + m, n, m, n - m)) return -1;
    return w.zero;
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* room: for the transpose of half of the factor, so that solve reads it along rows.  As block_cholesky. */
static int64_t factor_square(double *a, int64_t n, int64_t ld, double *room)
{
    if (n <= CHOLESKY_LEAF) return small_cholesky(a, n, ld);
    const int64_t half = n / 2, rest = n - half;
    const Triangle transposed = { .upper = true, .ld = half };
    double *below = a + half * ld, *corner = below + half;
    int64_t order = factor_square(a, half, ld, room);
    if (order) return order;
    for (int64_t i = 0; i < half; i++)
        for (int64_t j = 0; j <= i; j++) room[j * half + i] = a[i * ld + j];
    if (solve(&transposed, room, below, ld, half, rest) ||
        subtract_strided(rest, rest, half, below, ld, below, 1, ld, corner, ld))
        return -1;
    order = factor_square(corner, rest, ld, room);
    return order > 0 ? half + order : order;
}

int64_t block_cholesky(double *a, int64_t n)
{
    const size_t bytes = (size_t)((n / 2) * (n / 2)) * sizeof(double);
    double *room = tg_alloc(bytes);
    if (!room) return -1;
    const int64_t order = factor_square(a, n, n, room);
    tg_free(room, bytes);
    return order;
}
