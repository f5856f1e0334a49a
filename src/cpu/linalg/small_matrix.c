/* small_matrix.c - LU, Cholesky and triangular systems of small matrices (small_matrix.h). */
#include <math.h>
#include "linalg.h"
#include "small_matrix.h"

/* y -= c x */
static void subtract(double *y, const double *x, double c, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] -= c * x[i];
}

static void divide(double *y, double c, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] /= c;
}

static void exchange(double *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n && x != y; i++) {
        const double was = x[i];
        x[i] = y[i], y[i] = was;
    }
}

/* ---- LU -------------------------------------------------------------------------------------- */

void transpose_into(double *to, const double *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
}

int64_t small_lu(double *a, int64_t m, int64_t n, int *pivots)
{
    int64_t zero = 0;
    for (int64_t k = 0; k < (m < n ? m : n); k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < m; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        pivots[k] = (int)best;
        exchange(a + k * n, a + best * n, n);
        const double pivot = a[k * n + k];
        if (pivot == 0) {
            if (!zero) zero = k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < m; i++) {
            a[i * n + k] /= pivot;
            subtract(a + i * n + k + 1, a + k * n + k + 1, a[i * n + k], n - k - 1);
        }
    }
    return zero;
}

void small_lu_solve(const double *lu, int64_t n, const int *pivots, double *b, int64_t columns)
{
    for (int64_t k = 0; k < n; k++) exchange(b + k * columns, b + pivots[k] * columns, columns);
    small_triangular(lu, b, n, columns, false, true, true);
    small_triangular(lu, b, n, columns, true, true, false);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

int64_t small_cholesky(double *a, int64_t n, int64_t ld)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = a[i * ld + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * ld + k] * a[j * ld + k];
            if (i == j && !(sum > 0)) return i + 1;
            a[i * ld + j] = i == j ? sqrt(sum) : sum / a[j * ld + j];
        }
    return 0;
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* Row i of x from those before it, in the order of the triangle. */
static void solve_left(const double *a, double *b, int64_t n, int64_t columns, bool upper, bool unit)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = upper ? n - 1 - step : step;
        for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); k++)
            subtract(b + i * columns, b + k * columns, a[i * n + k], columns);
        if (!unit) divide(b + i * columns, a[i * n + i], columns);
    }
}

/* One row x of x a = b: each element, once known, is taken off those after it. */
static void solve_right(const double *a, double *b, int64_t n, bool upper, bool unit)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t j = upper ? step : n - 1 - step, from = upper ? j + 1 : 0;
        if (!unit) b[j] /= a[j * n + j];
        subtract(b + from, a + j * n + from, b[j], upper ? n - j - 1 : j);
    }
}

void small_triangular(const double *a, double *b, int64_t rows, int64_t columns, bool upper, bool left,
                      bool unit)
{
    if (left) solve_left(a, b, rows, columns, upper, unit);
    for (int64_t i = 0; !left && i < rows; i++) solve_right(a, b + i * columns, columns, upper, unit);
}

/* ---- norms ----------------------------------------------------------------------------------- */

int linalg_halvings(double *norm, int64_t n)
{
    int most = 0;
    for (int64_t i = 0; i < n; i++) {
        const int s = norm[i] > 0.5 && isfinite(norm[i]) ? (int)ceil(log2(norm[i])) + 1 : 0;
        norm[i] = ldexp(1, -s);
        if (s > most) most = s;
    }
    return most;
}
