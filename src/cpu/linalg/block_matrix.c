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
#include "cpu/vectors.h"
#include "small_matrix.h"

enum { LEAF = 8, CHOLESKY_LEAF = 16 };

int TYPED(block_product)(int64_t m, int64_t n, int64_t k, REAL alpha, const REAL *a, int64_t a_row,
                         int64_t a_col, const REAL *b, int64_t b_row, int64_t b_col, REAL beta, REAL *c,
                         int64_t c_row, int64_t c_col)
{
    const GemmCall call = { .dtype = sizeof(REAL) == 8 ? GEMM_F64 : GEMM_F32,
                            .batch = 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .a = a,
                            .a_row = a_row,
                            .a_col = a_col,
                            .b = b,
                            .b_row = b_row,
                            .b_col = b_col,
                            .c = c,
                            .c_row = c_row,
                            .c_col = c_col,
                            .alpha = alpha,
                            .beta = beta };
    return m && n ? gemm_cpu(&call, cpu_threads(m * n * k)) : 0;
}

/* c -= a b; c is [m, n], k is summed over; ld: the distance of rows, b_col: of b's columns. */
static int subtract_strided(int64_t m, int64_t n, int64_t k, const REAL *a, int64_t lda, const REAL *b,
                            int64_t ldb, int64_t b_col, REAL *c, int64_t ldc)
{
    return TYPED(block_product)(m, n, k, -1, a, lda, 1, b, ldb, b_col, 1, c, ldc, 1);
}

static int subtract_product(int64_t m, int64_t n, int64_t k, const REAL *a, int64_t lda, const REAL *b,
                            int64_t ldb, REAL *c, int64_t ldc)
{
    return subtract_strided(m, n, k, a, lda, b, ldb, 1, c, ldc);
}

/* ---- triangles ------------------------------------------------------------------------------- */

typedef struct Triangle {
    bool upper, left, unit;
    int64_t ld; /* of the triangle */
} Triangle;

/* n rows of b: each from those before it, in the order of the triangle. */
static void leaf_left(const Triangle *t, const REAL *a, REAL *b, int64_t ldb, int64_t n, int64_t columns)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = t->upper ? n - 1 - step : step;
        REAL *row = b + i * ldb;
        for (int64_t k = t->upper ? i + 1 : 0; k < (t->upper ? n : i); k++)
            TYPED(subtract_line)(row, b + k * ldb, a[i * t->ld + k], columns);
        if (!t->unit) TYPED(divide_line)(row, a[i * t->ld + i], columns);
    }
}

/* n columns of b: each element, once known, is taken off those after it. */
static void leaf_right(const Triangle *t, const REAL *a, REAL *b, int64_t ldb, int64_t n, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++, b += ldb)
        for (int64_t step = 0; step < n; step++) {
            const int64_t j = t->upper ? step : n - 1 - step, from = t->upper ? j + 1 : 0;
            if (!t->unit) b[j] /= a[j * t->ld + j];
            TYPED(subtract_line)(b + from, a + j * t->ld + from, b[j], t->upper ? n - j - 1 : j);
        }
}

/* b has n rows, or n columns where the triangle stands right of it, and `others` of the other. */
static int solve_halves(const Triangle *t, const REAL *a, REAL *b, int64_t ldb, int64_t n, int64_t others)
{
    if (n <= LEAF) {
        (t->left ? leaf_left : leaf_right)(t, a, b, ldb, n, others);
        return 0;
    }
    const int64_t half = n / 2, rest = n - half, ld = t->ld;
    const bool second = t->upper == t->left; /* is solved first */
    const REAL *low = a + half * (ld + 1), *square = t->upper ? a + half : a + half * ld;
    REAL *tail = t->left ? b + half * ldb : b + half;
    if (second ? solve_halves(t, low, tail, ldb, rest, others) : solve_halves(t, a, b, ldb, half, others))
        return -1;
    REAL *known = second ? tail : b, *next = second ? b : tail;
    const int64_t from = second ? rest : half, to = second ? half : rest;
    if (t->left ? subtract_product(to, others, from, square, ld, known, ldb, next, ldb)
                : subtract_product(others, to, from, known, ldb, square, ld, next, ldb))
        return -1;
    return second ? solve_halves(t, a, b, ldb, half, others) : solve_halves(t, low, tail, ldb, rest, others);
}

int TYPED(block_triangular)(const REAL *a, REAL *b, int64_t rows, int64_t columns, bool upper, bool left,
                            bool unit)
{
    const Triangle t = { upper, left, unit, left ? rows : columns };
    return solve_halves(&t, a, b, columns, t.ld, left ? columns : rows);
}

/* ---- LU -------------------------------------------------------------------------------------- */

typedef struct Whole { /* a [m, n]; zero: 1 + the first pivot that is 0 */
    REAL *a;
    int64_t m, n, zero;
    int *pivots;
    REAL *panel; /* LEAF columns of m: a leaf, one column behind the other, so that loops are vectors */
} Whole;

/* The first of the largest |x|; 0 where x[0] is NaN. */
static int64_t largest(const REAL *x, int64_t n)
{
    enum { LANES = 16 / sizeof(REAL), FOUR = 4 * LANES };
    typedef REAL Lane __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));
    typedef REAL_BITS Bits __attribute__((vector_size(16)));
    Lane most[4];
    int64_t i = 0;
    for (int l = 0; l < 4; l++) most[l] = MAGNITUDE(x[0]) - (Lane){ 0 };
    for (; i + FOUR <= n; i += FOUR) UNROLL
    for (int l = 0; l < 4; l++) {
        const Lane v = *(const Lane *)(x + i + l * LANES), size = (Lane)((Bits)v & ~SIGN_BIT);
        const Bits more = size > most[l];
        most[l] = (Lane)((more & (Bits)size) | (~more & (Bits)most[l]));
    }
    REAL all = most[0][0];
    for (int l = 0; l < 4 * LANES; l++)
        all = most[l / LANES][l % LANES] > all ? most[l / LANES][l % LANES] : all;
    for (; i < n; i++) all = MAGNITUDE(x[i]) > all ? MAGNITUDE(x[i]) : all;
    for (i = 0; i < n; i++)
        if (MAGNITUDE(x[i]) == all) return i;
    return 0;
}

static void factor_panel(Whole *w, int64_t begin, int64_t width, int64_t rows)
{
    for (int64_t k = 0; k < width; k++) {
        REAL *column = w->panel + k * rows;
        const int64_t left = rows - k - 1, best = k + largest(column + k, rows - k);
        w->pivots[begin + k] = (int)(begin + best);
        if (best != k) {
            TYPED(exchange_lines)(w->a + (begin + k) * w->n, w->a + (begin + best) * w->n, w->n);
            for (int64_t j = 0; j < width; j++)
                TYPED(exchange_lines)(w->panel + j * rows + k, w->panel + j * rows + best, 1);
        }
        const REAL pivot = column[k];
        if (pivot == 0) {
            if (!w->zero) w->zero = begin + k + 1;
            continue;
        }
        TYPED(divide_line)(column + k + 1, pivot, left);
        for (int64_t j = k + 1; j < width; j++) {
            REAL *later = w->panel + j * rows + k;
            TYPED(subtract_line)(later + 1, column + k + 1, *later, left);
        }
    }
}

static void factor_leaf(Whole *w, int64_t begin, int64_t end)
{
    const int64_t width = end - begin, rows = w->m - begin;
    REAL *corner = w->a + begin * (w->n + 1);
    TYPED(transpose_part)(w->panel, rows, corner, w->n, rows, width);
    factor_panel(w, begin, width, rows);
    TYPED(transpose_part)(corner, w->n, w->panel, rows, width, rows);
}

/* Columns from begin to end, at most m, from the diagonal down: in halves of whole leaves. */
static int factor_columns(Whole *w, int64_t begin, int64_t end)
{
    if (end - begin <= LEAF) {
        factor_leaf(w, begin, end);
        return 0;
    }
    const int64_t n = w->n, done = ((end - begin) / 2 + LEAF - 1) / LEAF * LEAF, half = begin + done;
    const Triangle l = { .left = true, .unit = true, .ld = n };
    REAL *corner = w->a + begin * (n + 1), *right = corner + done, *below = corner + done * n;
    if (factor_columns(w, begin, half) || solve_halves(&l, corner, right, n, done, end - half)) return -1;
    if (subtract_product(w->m - half, end - half, done, below, n, right, n, below + done, n)) return -1;
    return factor_columns(w, half, end);
}

int64_t TYPED(block_lu)(REAL *a, int64_t m, int64_t n, int *pivots)
{
    const size_t bytes = (size_t)m * LEAF * sizeof(REAL);
    Whole w = { a, m, n, 0, pivots, tg_alloc(bytes) };
    const Triangle l = { .left = true, .unit = true, .ld = n };
    const int status = w.panel ? factor_columns(&w, 0, m < n ? m : n) : -1;
    if (w.panel) tg_free(w.panel, bytes);
    if (status) return -1;
    if (n > m && solve_halves(&l, a, a + m, n, m, n - m)) return -1;
    return w.zero;
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* room: for the transpose of half of the factor, so that solve reads it along rows.  As block_cholesky. */
static int64_t factor_square(REAL *a, int64_t n, int64_t ld, REAL *room)
{
    if (n <= CHOLESKY_LEAF) return TYPED(small_cholesky)(a, n, ld);
    const int64_t half = n / 2, rest = n - half;
    const Triangle transposed = { .upper = true, .ld = half };
    REAL *below = a + half * ld, *corner = below + half;
    int64_t order = factor_square(a, half, ld, room);
    if (order) return order;
    for (int64_t i = 0; i < half; i++)
        for (int64_t j = 0; j <= i; j++) room[j * half + i] = a[i * ld + j];
    if (solve_halves(&transposed, room, below, ld, half, rest) ||
        subtract_strided(rest, rest, half, below, ld, below, 1, ld, corner, ld))
        return -1;
    order = factor_square(corner, rest, ld, room);
    return order > 0 ? half + order : order;
}

int64_t TYPED(block_cholesky)(REAL *a, int64_t n)
{
    const size_t bytes = (size_t)((n / 2) * (n / 2)) * sizeof(REAL);
    REAL *room = tg_alloc(bytes);
    if (!room) return -1;
    const int64_t order = factor_square(a, n, n, room);
    tg_free(room, bytes);
    return order;
}
