/* lu.c - linear systems, factors and determinants by LU with row exchanges (linalg.h). */
#include "linalg.h"
#include <math.h>
#include "block_matrix.h"
#include "small_matrix.h"
#include "device/host.h"

/* ---- a x = b --------------------------------------------------------------------------------- */

/* a [m, n] becomes its factors; pivots count from 0.  1 + the first pivot that is 0, or 0, or -1. */
static int64_t factor(REAL *a, int64_t m, int64_t n, int *pivots)
{
    const bool small = m <= SMALL_MATRIX && n <= SMALL_MATRIX;
    return small ? TYPED(small_lu)(a, m, n, pivots) : TYPED(block_lu)(a, m, n, pivots);
}

static int substitute(const REAL *lu, int64_t n, const int *pivots, REAL *x, int64_t columns)
{
    if (n <= SMALL_MATRIX) {
        TYPED(small_lu_solve)(lu, n, pivots, x, columns);
        return 0;
    }
    for (int64_t k = 0; k < n; k++) TYPED(exchange_lines)(x + k * columns, x + pivots[k] * columns, columns);
    return TYPED(block_triangular)(lu, x, n, columns, false, true, true) ||
                   TYPED(block_triangular)(lu, x, n, columns, true, true, false)
               ? -1
               : 0;
}

int TYPED(linalg_solve)(const char *op, Matrices s, const REAL *a, const REAL *b, REAL *x, int32_t *info,
                        MatrixFault *fault)
{
    for (int64_t i = 0; i < s.batch; i++) info[i] = 0;
    if (s.batch == 0 || s.m == 0) return 0; /* k = 0 is not skipped: a singular matrix is refused */
    const size_t doubles = (size_t)(s.m * s.m), bytes = doubles * sizeof(REAL) + (size_t)s.m * sizeof(int);
    REAL *lu = tg_alloc(bytes);
    if (!lu) return fail_memory(op);
    int *pivots = (int *)(lu + doubles), status = 0;
    for (int64_t i = 0; i < s.batch && !status; i++, a += s.m * s.m, x += s.m * s.n) {
        memcpy(lu, a, doubles * sizeof *lu);
        if (b) memcpy(x, b + i * s.m * s.n, (size_t)(s.m * s.n) * sizeof *x);
        else TYPED(put_identity)(x, s.m);
        const int64_t zero = factor(lu, s.m, s.m, pivots);
        if (zero < 0 || (!zero && substitute(lu, s.m, pivots, x, s.n))) status = fail_memory(op);
        if (zero <= 0) continue;
        for (int64_t k = 0; k < s.m * s.n; k++) x[k] = (REAL)NAN;
        info[i] = (int32_t)zero;
        if (fault) *fault = (MatrixFault){ MATRIX_SINGULAR, i, zero }, status = -1;
    }
    tg_free(lu, bytes);
    return status;
}

/* ---- factors --------------------------------------------------------------------------------- */

#ifndef LINALG_F32
int linalg_rows(Matrices s, const int32_t *pivots, int64_t *rows)
{
    const int64_t k = s.m < s.n ? s.m : s.n;
    for (int64_t i = 0; i < s.batch; i++, pivots += k, rows += s.m) {
        for (int64_t r = 0; r < s.m; r++) rows[r] = r;
        for (int64_t r = 0; r < k; r++) {
            if (pivots[r] < 1 || pivots[r] > s.m) return -1;
            const int64_t was = rows[r];
            rows[r] = rows[pivots[r] - 1], rows[pivots[r] - 1] = was;
        }
    }
    return 0;
}
#endif

int TYPED(linalg_lu)(const char *op, Matrices s, const REAL *a, REAL *lu, int32_t *pivots, int64_t *rows,
                     MatrixFault *fault)
{
    const int64_t k = s.m < s.n ? s.m : s.n;
    if (s.batch == 0 || k == 0) return linalg_rows(s, pivots, rows);
    memcpy(lu, a, (size_t)(s.batch * s.m * s.n) * sizeof *lu);
    for (int64_t i = 0; i < s.batch; i++) {
        const int64_t zero = factor(lu + i * s.m * s.n, s.m, s.n, pivots + i * k);
        if (zero < 0) return fail_memory(op);
        if (zero && fault && !fault->flaw) *fault = (MatrixFault){ MATRIX_SINGULAR, i, zero };
    }
    for (int64_t i = 0; i < s.batch * k; i++) pivots[i]++;
    linalg_rows(s, pivots, rows);
    return fault && fault->flaw ? -1 : 0;
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* What to do with the diagonal of u, of matrix i, whose row exchanges have this sign. */
typedef void Diagonal(void *results, int64_t i, const REAL *u, int64_t n, double sign);

/* Of the transposes, whose systems the gradients are: their roundings are then the same, and cancel where a
 * is nearly singular. */
static int each_diagonal(const char *op, Matrices s, const REAL *a, Diagonal *use, void *results)
{
    const int64_t square = s.m * s.m;
    const size_t bytes = (size_t)(square + 1) * sizeof(REAL) + (size_t)s.m * sizeof(int);
    REAL *lu = tg_alloc(bytes);
    if (!lu) return fail_memory(op);
    int *pivots = (int *)(lu + square + 1), status = 0;
    for (int64_t i = 0; i < s.batch && !status; i++, a += square) {
        double sign = 1;
        TYPED(transpose_into)(lu, a, s.m, s.m);
        if (factor(lu, s.m, s.m, pivots) < 0) status = fail_memory(op);
        for (int64_t k = 0; k < s.m; k++)
            if (pivots[k] != k) sign = -sign;
        use(results, i, lu, s.m, sign);
    }
    tg_free(lu, bytes);
    return status;
}

/* Infinite pivots say nothing.  In f32 a regular matrix of some hundred rows comes near the bound of f64. */
enum { SINGULAR = sizeof(REAL) == 8 ? 100 : 4 };

static bool numerically_singular(const REAL *u, int64_t n)
{
    double least = INFINITY, most = 0;
    for (int64_t k = 0; k < n; k++) {
        least = fmin(least, fabs((double)u[k * (n + 1)]));
        most = fmax(most, fabs((double)u[k * (n + 1)]));
    }
    return n && most < INFINITY && least <= SINGULAR * (double)n * REAL_EPSILON * most;
}

typedef struct DetResults {
    REAL *det;
    uint8_t *singular;
} DetResults;

static void put_det(void *results, int64_t i, const REAL *u, int64_t n, double sign)
{
    const DetResults *r = results;
    for (int64_t k = 0; k < n; k++) sign *= (double)u[k * (n + 1)];
    r->det[i] = (REAL)sign;
    r->singular[i] = numerically_singular(u, n);
}

int TYPED(linalg_det)(const char *op, Matrices s, const REAL *a, REAL *det, uint8_t *singular)
{
    return each_diagonal(op, s, a, put_det, &(DetResults){ det, singular });
}

typedef struct LogResults {
    REAL *sign, *log;
} LogResults;

static void put_log(void *results, int64_t i, const REAL *u, int64_t n, double sign)
{
    const LogResults *r = results;
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        const double v = (double)u[k * (n + 1)];
        sum += log(fabs(v));
        sign *= v > 0 ? 1 : v < 0 ? -1 : v; /* 0 and NaN stay */
    }
    r->sign[i] = (REAL)sign;
    r->log[i] = (REAL)sum;
}

int TYPED(linalg_slogdet)(const char *op, Matrices s, const REAL *a, REAL *sign, REAL *log)
{
    return each_diagonal(op, s, a, put_log, &(LogResults){ sign, log });
}
