/* lu.c - linear systems, factors and determinants by LU with row exchanges (linalg.h). */
#include "linalg.h"
#include <math.h>
#include "cpu/product/gemm.h"
#include "lapack.h"
#include "small_matrix.h"
#include "device/host.h"

/* ---- a x = b --------------------------------------------------------------------------------- */

/* room: the factors, and by LAPACK b as columns.  0, or the pivot that is 0. */
static int64_t solve_one(const Lapack *lapack, Matrices s, const double *a, const double *b, double *x,
                         double *room, int *pivots)
{
    const int n = (int)s.m, k = (int)s.n;
    double *lu = room, *columns = room + s.m * s.m;
    int info = 0;
    if (!lapack) {
        memcpy(lu, a, (size_t)(s.m * s.m) * sizeof *lu);
        memcpy(x, b, (size_t)(s.m * s.n) * sizeof *x);
        const int64_t zero = small_lu(lu, s.m, s.m, pivots);
        if (!zero) small_lu_solve(lu, s.m, pivots, x, s.n);
        return zero;
    }
    transpose_into(lu, a, s.m, s.m);
    transpose_into(columns, b, s.m, s.n);
    lapack->gesv(&n, &k, lu, &n, pivots, columns, &n, &info);
    transpose_into(x, columns, s.n, s.m);
    return info;
}

int linalg_solve(const char *op, Matrices s, const double *a, const double *b, double *x, int32_t *info,
                 MatrixFault *fault)
{
    const Lapack *lapack = s.m > SMALL_MATRIX ? lapack_open(op) : NULL;
    if (s.m > SMALL_MATRIX && !lapack) return -1;
    for (int64_t i = 0; i < s.batch; i++) info[i] = 0;
    if (s.batch == 0 || s.m == 0) return 0; /* k = 0 is not skipped: a singular matrix is refused */
    const size_t doubles = (size_t)(s.m * (s.m + s.n)) * sizeof(double),
                 bytes = doubles + (size_t)s.m * sizeof(int);
    double *room = tg_alloc(bytes);
    if (!room) return fail_memory(op);
    int status = 0;
    for (int64_t i = 0; i < s.batch && !status; i++, a += s.m * s.m, b += s.m * s.n, x += s.m * s.n) {
        const int64_t zero = solve_one(lapack, s, a, b, x, room, (int *)(room + s.m * (s.m + s.n)));
        if (!zero) continue;
        for (int64_t k = 0; k < s.m * s.n; k++) x[k] = NAN;
        info[i] = (int32_t)zero;
        if (fault) *fault = (MatrixFault){ MATRIX_SINGULAR, i, zero }, status = -1;
    }
    tg_free(room, bytes);
    return status;
}

/* ---- factors --------------------------------------------------------------------------------- */

/* a [m, n], row-major, becomes its factors; pivots count from 0.  room: m n doubles, for LAPACK. */
static void factor(const Lapack *lapack, double *a, int64_t m, int64_t n, int *pivots, double *room)
{
    const int rows = (int)m, columns = (int)n;
    int info;
    if (!lapack) {
        small_lu(a, m, n, pivots);
        return;
    }
    transpose_into(room, a, m, n);
    lapack->getrf(&rows, &columns, room, &rows, pivots, &info);
    transpose_into(a, room, n, m);
    for (int64_t k = 0; k < (m < n ? m : n); k++) pivots[k]--;
}

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

static int64_t first_zero(const double *lu, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        if (lu[i * (n + 1)] == 0) return i + 1;
    return 0;
}

int linalg_lu(const char *op, Matrices s, const double *a, double *lu, int32_t *pivots, int64_t *rows,
              MatrixFault *fault)
{
    const int64_t k = s.m < s.n ? s.m : s.n;
    const bool small = s.m <= SMALL_MATRIX && s.n <= SMALL_MATRIX;
    const Lapack *lapack = small ? NULL : lapack_open(op);
    if (!small && !lapack) return -1;
    if (s.batch == 0 || k == 0) return linalg_rows(s, pivots, rows);
    const size_t bytes = (size_t)(s.m * s.n) * sizeof(double);
    double *room = lapack ? tg_alloc(bytes) : NULL;
    if (lapack && !room) return fail_memory(op);
    memcpy(lu, a, (size_t)s.batch * bytes);
    for (int64_t i = 0; i < s.batch; i++) {
        double *one = lu + i * s.m * s.n;
        factor(lapack, one, s.m, s.n, pivots + i * k, room);
        const int64_t zero = fault && !fault->flaw ? first_zero(one, s.n, k) : 0;
        if (zero) *fault = (MatrixFault){ MATRIX_SINGULAR, i, zero };
    }
    if (room) tg_free(room, bytes);
    for (int64_t i = 0; i < s.batch * k; i++) pivots[i]++;
    linalg_rows(s, pivots, rows);
    return fault && fault->flaw ? -1 : 0;
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* What to do with the diagonal of u, of matrix i, whose row exchanges have this sign. */
typedef void Diagonal(void *results, int64_t i, const double *u, int64_t n, double sign);

/* Of the transposes, whose systems the gradients are: their roundings are then the same, and cancel where a
 * is nearly singular. */
static int each_diagonal(const char *op, Matrices s, const double *a, Diagonal *use, void *results)
{
    const Lapack *lapack = s.m > SMALL_MATRIX ? lapack_open(op) : NULL;
    if (s.m > SMALL_MATRIX && !lapack) return -1;
    const int64_t square = s.m * s.m;
    const size_t bytes = (size_t)(2 * square + 1) * sizeof(double) + (size_t)s.m * sizeof(int);
    double *lu = tg_alloc(bytes);
    if (!lu) return fail_memory(op);
    int *pivots = (int *)(lu + 2 * square + 1);
    for (int64_t i = 0; i < s.batch; i++, a += square) {
        double sign = 1;
        transpose_into(lu, a, s.m, s.m);
        factor(lapack, lu, s.m, s.m, pivots, lu + square);
        for (int64_t k = 0; k < s.m; k++)
            if (pivots[k] != k) sign = -sign;
        use(results, i, lu, s.m, sign);
    }
    tg_free(lu, bytes);
    return 0;
}

/* Infinite pivots say nothing. */
static bool numerically_singular(const double *u, int64_t n)
{
    double least = INFINITY, most = 0;
    for (int64_t k = 0; k < n; k++) {
        least = fmin(least, fabs(u[k * (n + 1)]));
        most = fmax(most, fabs(u[k * (n + 1)]));
    }
    return n && most < INFINITY && least <= 100 * (double)n * 0x1p-52 * most;
}

typedef struct DetResults {
    double *det;
    uint8_t *singular;
} DetResults;

static void put_det(void *results, int64_t i, const double *u, int64_t n, double sign)
{
    const DetResults *r = results;
    for (int64_t k = 0; k < n; k++) sign *= u[k * (n + 1)];
    r->det[i] = sign;
    r->singular[i] = numerically_singular(u, n);
}

int linalg_det(const char *op, Matrices s, const double *a, double *det, uint8_t *singular)
{
    return each_diagonal(op, s, a, put_det, &(DetResults){ det, singular });
}

typedef struct LogResults {
    double *sign, *log;
} LogResults;

static void put_log(void *results, int64_t i, const double *u, int64_t n, double sign)
{
    const LogResults *r = results;
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        const double v = u[k * (n + 1)];
        sum += log(fabs(v));
        sign *= v > 0 ? 1 : v < 0 ? -1 : v; /* 0 and NaN stay */
    }
    r->sign[i] = sign;
    r->log[i] = sum;
}

int linalg_slogdet(const char *op, Matrices s, const double *a, double *sign, double *log)
{
    return each_diagonal(op, s, a, put_log, &(LogResults){ sign, log });
}
