/* small_matrix.c - LU, Cholesky and triangular systems of small matrices (small_matrix.h). */
#include <math.h>
#include "linalg.h"
#include "cpu/vectors.h"
#include "small_matrix.h"

/* Vectors by hand: this room is compiled for size. */
typedef REAL V __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));
enum { ONE = 16 / sizeof(REAL), STEP = 4 * ONE };

void TYPED(put_identity)(REAL *x, int64_t n)
{
    memset(x, 0, (size_t)(n * n) * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i * (n + 1)] = 1;
}

void TYPED(subtract_line)(REAL *y, const REAL *x, REAL c, int64_t n)
{
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) UNROLL
    for (int k = 0; k < STEP; k += ONE) *(V *)(y + i + k) -= c * *(const V *)(x + i + k);
    for (; i < n; i++) y[i] -= c * x[i];
}

REAL TYPED(dot_line)(const REAL *x, const REAL *y, int64_t n)
{
    V lane[4] = { { 0 } };
    REAL sum = 0;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) UNROLL
    for (int k = 0; k < 4; k++) lane[k] += *(const V *)(x + i + k * ONE) * *(const V *)(y + i + k * ONE);
    for (; i < n; i++) sum += x[i] * y[i];
    lane[0] = (lane[0] + lane[1]) + (lane[2] + lane[3]);
    for (int k = 0; k < ONE; k++) sum += lane[0][k];
    return sum;
}

void TYPED(divide_line)(REAL *y, REAL c, int64_t n)
{
    int64_t i = 0;
    for (; i + ONE <= n; i += ONE) *(V *)(y + i) /= c;
    for (; i < n; i++) y[i] /= c;
}

void TYPED(exchange_lines)(REAL *x, REAL *y, int64_t n)
{
    int64_t i = x == y ? n : 0;
    for (; i + ONE <= n; i += ONE) {
        const V was = *(V *)(x + i);
        *(V *)(x + i) = *(V *)(y + i), *(V *)(y + i) = was;
    }
    for (; i < n; i++) {
        const REAL was = x[i];
        x[i] = y[i], y[i] = was;
    }
}

/* ---- LU -------------------------------------------------------------------------------------- */

/* to [ONE, ONE] = the transpose of from. */
FORCE_INLINE void transpose_square(REAL *to, int64_t to_ld, const REAL *from, int64_t from_ld)
{
    V x[ONE];
    UNROLL
    for (int i = 0; i < ONE; i++) x[i] = *(const V *)(from + i * from_ld);
#ifdef LINALG_F32
    const V a = __builtin_shufflevector(x[0], x[2], 0, 4, 1, 5),
            b = __builtin_shufflevector(x[1], x[3], 0, 4, 1, 5),
            c = __builtin_shufflevector(x[0], x[2], 2, 6, 3, 7),
            d = __builtin_shufflevector(x[1], x[3], 2, 6, 3, 7);
    x[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5), x[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    x[2] = __builtin_shufflevector(c, d, 0, 4, 1, 5), x[3] = __builtin_shufflevector(c, d, 2, 6, 3, 7);
#else
    const V a = x[0];
    x[0] = __builtin_shufflevector(a, x[1], 0, 2), x[1] = __builtin_shufflevector(a, x[1], 1, 3);
#endif
    UNROLL
    for (int i = 0; i < ONE; i++) *(V *)(to + i * to_ld) = x[i];
}

/* In squares: lines of memory that are read or written again are still in the cache. */
void TYPED(transpose_part)(REAL *to, int64_t to_ld, const REAL *from, int64_t from_ld, int64_t rows,
                           int64_t columns)
{
    enum { SIDE = 8 };
    for (int64_t above = 0; above < rows; above += SIDE) {
        const int64_t below = above + SIDE < rows ? above + SIDE : rows;
        for (int64_t left = 0, width; left < columns; left += width) {
            width = left + ONE <= columns ? ONE : 1;
            int64_t i = above;
            for (; width == ONE && i + ONE <= below; i += ONE)
                transpose_square(to + left * to_ld + i, to_ld, from + i * from_ld + left, from_ld);
            for (; i < below; i++)
                for (int64_t j = left; j < left + width; j++) to[j * to_ld + i] = from[i * from_ld + j];
        }
    }
}

void TYPED(transpose_into)(REAL *to, const REAL *from, int64_t rows, int64_t columns)
{
    TYPED(transpose_part)(to, rows, from, columns, rows, columns);
}

int64_t TYPED(small_lu)(REAL *a, int64_t m, int64_t n, int *pivots)
{
    int64_t zero = 0;
    for (int64_t k = 0; k < (m < n ? m : n); k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < m; i++)
            if (MAGNITUDE(a[i * n + k]) > MAGNITUDE(a[best * n + k])) best = i;
        pivots[k] = (int)best;
        TYPED(exchange_lines)(a + k * n, a + best * n, n);
        const REAL pivot = a[k * n + k];
        if (pivot == 0) {
            if (!zero) zero = k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < m; i++) {
            a[i * n + k] /= pivot;
            TYPED(subtract_line)(a + i * n + k + 1, a + k * n + k + 1, a[i * n + k], n - k - 1);
        }
    }
    return zero;
}

void TYPED(small_lu_solve)(const REAL *lu, int64_t n, const int *pivots, REAL *b, int64_t columns)
{
    for (int64_t k = 0; k < n; k++) TYPED(exchange_lines)(b + k * columns, b + pivots[k] * columns, columns);
    TYPED(small_triangular)(lu, b, n, columns, false, true, true);
    TYPED(small_triangular)(lu, b, n, columns, true, true, false);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

int64_t TYPED(small_cholesky)(REAL *a, int64_t n, int64_t ld)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            REAL sum = a[i * ld + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * ld + k] * a[j * ld + k];
            if (i == j && !(sum > 0)) return i + 1;
            a[i * ld + j] = i == j ? (REAL)sqrt((double)sum) : sum / a[j * ld + j];
        }
    return 0;
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* Row i of x from those before it, in the order of the triangle. */
static void solve_left(const REAL *a, REAL *b, int64_t n, int64_t columns, bool upper, bool unit)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = upper ? n - 1 - step : step;
        for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); k++)
            TYPED(subtract_line)(b + i * columns, b + k * columns, a[i * n + k], columns);
        if (!unit) TYPED(divide_line)(b + i * columns, a[i * n + i], columns);
    }
}

/* One row x of x a = b: each element, once known, is taken off those after it. */
static void solve_right(const REAL *a, REAL *b, int64_t n, bool upper, bool unit)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t j = upper ? step : n - 1 - step, from = upper ? j + 1 : 0;
        if (!unit) b[j] /= a[j * n + j];
        TYPED(subtract_line)(b + from, a + j * n + from, b[j], upper ? n - j - 1 : j);
    }
}

void TYPED(small_triangular)(const REAL *a, REAL *b, int64_t rows, int64_t columns, bool upper, bool left,
                             bool unit)
{
    if (left) solve_left(a, b, rows, columns, upper, unit);
    for (int64_t i = 0; !left && i < rows; i++) solve_right(a, b + i * columns, columns, upper, unit);
}

/* ---- norms ----------------------------------------------------------------------------------- */

int TYPED(linalg_halvings)(REAL *norm, int64_t n, double bound)
{
    int most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double size = (double)norm[i] / bound;
        const int s = size > 1 && isfinite(norm[i]) ? (int)ceil(log2(size)) : 0;
        norm[i] = (REAL)ldexp(1, -s);
        if (s > most) most = s;
    }
    return most;
}

/* ---- reflections ---------------------------------------------------------------------------- */

/* Scaled so that the largest is about 1, or no longer tiny.  0: all but the first are 0. */
static double near_one(REAL *x, int64_t n)
{
    double most = MAGNITUDE(x[0]), unit = 1;
    bool any = false;
    for (int64_t i = 1; i < n; i++) {
        most = fmax(most, (double)MAGNITUDE(x[i]));
        any |= !(x[i] == 0); /* NaN, too */
    }
    if (!any) return 0;
    if (most > 0 && most < INFINITY) unit = ldexp(1, most < 0x1p-1000 ? 1000 : -ilogb(most));
    for (int64_t i = 0; i < n; i++) x[i] = (REAL)((double)x[i] * unit);
    return unit;
}

REAL TYPED(reflect)(REAL *x, int64_t n)
{
    const REAL safe = sizeof safe == 8 ? (REAL)0x1p500 : (REAL)0x1p80;
    REAL squares = TYPED(dot_line)(x + 1, x + 1, n - 1);
    double unit = 1;
    if (!(squares > 1 / safe && squares < safe && MAGNITUDE(x[0]) < safe)) {
        unit = near_one(x, n);
        if (unit == 0) return 0;
        squares = TYPED(dot_line)(x + 1, x + 1, n - 1);
    }
    const double first = (double)x[0], size = sqrt((double)squares + first * first),
                 beta = first > 0 ? -size : size;
    TYPED(divide_line)(x + 1, (REAL)(first - beta), n - 1);
    x[0] = (REAL)(beta / unit);
    return (REAL)((beta - first) / beta);
}
