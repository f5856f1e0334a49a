/* orthogonal.c - QR, singular values and eigenvalues by LAPACK (linalg.h).
 *
 * LAPACK sees every matrix transposed: what it calls u is vh here, and the upper triangle is our lower one.
 */
#include "linalg.h"
#include <math.h>
#include "lapack.h"
#include "small_matrix.h"
#include "device/host.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static bool all_finite(const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

static void scale(double *v, int64_t n, int64_t step, double by)
{
    for (int64_t i = 0; i < n; i++) v[i * step] *= by;
}

/* The sign that makes positive, among v[0], v[step], ..., the first entry of at least 0.6 of the largest
 * magnitude: not the largest itself, which a rounding chooses where several are equal. */
static double fixed_sign(const double *v, int64_t n, int64_t step)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(v[i * step]));
    for (int64_t i = 0; i < n; i++)
        if (fabs(v[i * step]) >= 0.6 * most) return v[i * step] < 0 ? -1 : 1;
    return 1;
}

static void put_identity(double *x, int64_t n)
{
    memset(x, 0, (size_t)(n * n) * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i * (n + 1)] = 1;
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* a: a column-major matrix of m rows and enough columns for a and for q. */
typedef struct QrRoom {
    double *a, *tau, *work;
    int lwork;
} QrRoom;

static void factor_qr(const Lapack *lapack, const double *a, Matrices s, int64_t k, const QrRoom *room,
                      double *q, double *r)
{
    const int m = (int)s.m, n = (int)s.n, columns = (int)k, reflections = (int)least(s.m, s.n);
    int info;
    transpose_into(room->a, a, s.m, s.n);
    lapack->geqrf(&m, &n, room->a, &m, room->tau, room->work, &room->lwork, &info);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < s.n; j++) r[i * s.n + j] = j >= i ? room->a[j * s.m + i] : 0;
    lapack->orgqr(&m, &columns, &reflections, room->a, &m, room->tau, room->work, &room->lwork, &info);
    transpose_into(q, room->a, k, s.m);
}

int linalg_qr(const char *op, Matrices s, const double *a, bool complete, double *q, double *r)
{
    const Lapack *lapack = lapack_open(op);
    const int64_t k = complete ? s.m : least(s.m, s.n), wide = s.n > k ? s.n : k;
    if (!lapack) return -1;
    for (int64_t i = 0; s.n == 0 && complete && i < s.batch; i++) put_identity(q + i * s.m * s.m, s.m);
    if (s.m == 0 || s.n == 0 || s.batch == 0) return 0;
    const int64_t lwork = 32 * wide, doubles = s.m * wide + wide + lwork;
    double *room = tg_alloc((size_t)doubles * sizeof *room);
    if (!room) return fail_memory(op);
    const QrRoom parts = { room, room + s.m * wide, room + s.m * wide + wide, (int)lwork };
    for (int64_t i = 0; i < s.batch; i++)
        factor_qr(lapack, a + i * s.m * s.n, s, k, &parts, q + i * s.m * k, r + i * k * s.n);
    tg_free(room, (size_t)doubles * sizeof *room);
    return 0;
}

/* ---- singular values ------------------------------------------------------------------------- */

typedef struct Factors {
    double *u, *s, *vh;
    int64_t m, n, k, columns, rows;
} Factors; /* u [m, columns], vh [rows, n] */

static void fix_signs(const Factors *f)
{
    for (int64_t i = 0; i < f->columns; i++) {
        const double sign = fixed_sign(f->u + i, f->m, f->columns);
        scale(f->u + i, f->m, f->columns, sign);
        if (i < f->k) scale(f->vh + i * f->n, f->n, 1, sign);
    }
    for (int64_t i = f->k; i < f->rows; i++)
        scale(f->vh + i * f->n, f->n, 1, fixed_sign(f->vh + i * f->n, f->n, 1));
}

/* room: a copy of a, LAPACK's work, its integers. */
static int svd_each(const Lapack *lapack, const double *a, int64_t batch, Factors f, double *room,
                    int64_t lwork, MatrixFault *fault)
{
    const int rows = (int)f.n, columns = (int)f.m, ldvt = (int)f.columns, work = (int)lwork;
    double *copy = room, *scratch = room + f.m * f.n;
    int info = 0, *iwork = (int *)(scratch + lwork);
    for (int64_t i = 0; i < batch; i++, a += f.m * f.n) {
        if (!all_finite(a, f.m * f.n)) {
            *fault = (MatrixFault){ MATRIX_NOT_FINITE, i, 0 };
            return -1;
        }
        memcpy(copy, a, (size_t)(f.m * f.n) * sizeof *copy);
        const char *job = !f.u ? "N" : f.columns > f.k || f.rows > f.k ? "A" : "S";
        lapack->gesdd(job, &rows, &columns, copy, &rows, f.s, f.vh, &rows, f.u, &ldvt, scratch, &work, iwork,
                      &info, 1);
        if (info) {
            *fault = (MatrixFault){ MATRIX_NO_CONVERGENCE, i, 0 };
            return -1;
        }
        f.s += f.k;
        if (!f.u) continue;
        fix_signs(&f);
        f.u += f.m * f.columns, f.vh += f.rows * f.n;
    }
    return 0;
}

int linalg_svd(const char *op, Matrices s, const double *a, bool full, double *u, double *sigma, double *vh,
               MatrixFault *fault)
{
    const Lapack *lapack = lapack_open(op);
    const int64_t k = least(s.m, s.n), most = s.m + s.n - k;
    const Factors f = { u, sigma, vh, s.m, s.n, k, full ? s.m : k, full ? s.n : k };
    if (!lapack) return -1;
    for (int64_t i = 0; k == 0 && full && i < s.batch; i++) {
        put_identity(u + i * s.m * s.m, s.m);
        put_identity(vh + i * s.n * s.n, s.n);
    }
    if (k == 0 || s.batch == 0) return 0;
    const int64_t lwork = 4 * k * k + 7 * k + 32 * most; /* gesdd's least, and blocks for its QR */
    const size_t bytes = (size_t)(s.m * s.n + lwork) * sizeof(double) + (size_t)(8 * k) * sizeof(int);
    double *room = tg_alloc(bytes);
    if (!room) return fail_memory(op);
    const int status = svd_each(lapack, a, s.batch, f, room, lwork, fault);
    tg_free(room, bytes);
    return status;
}

/* ---- eigenvalues of symmetric matrices ------------------------------------------------------- */

/* LAPACK leaves the vectors in columns of its own, our rows. */
static int eigh_each(const Lapack *lapack, Matrices s, const double *a, bool upper, double *w, double *v,
                     double *room, MatrixFault *fault)
{
    const int n = (int)s.m, lwork = 1 + 6 * n + 2 * n * n, liwork = 3 + 5 * n;
    const int64_t square = s.m * s.m;
    double *work = room + square;
    int info = 0, *iwork = (int *)(work + lwork);
    for (int64_t i = 0; i < s.batch; i++, a += square, w += s.m) {
        if (!all_finite(a, square)) {
            *fault = (MatrixFault){ MATRIX_NOT_FINITE, i, 0 };
            return -1;
        }
        memcpy(room, a, (size_t)square * sizeof *room);
        lapack->syevd(v ? "V" : "N", upper ? "L" : "U", &n, room, &n, w, work, &lwork, iwork, &liwork, &info,
                      1, 1);
        if (info) {
            *fault = (MatrixFault){ MATRIX_NO_CONVERGENCE, i, 0 };
            return -1;
        }
        if (!v) continue;
        for (int64_t k = 0; k < s.m; k++) scale(room + k * s.m, s.m, 1, fixed_sign(room + k * s.m, s.m, 1));
        transpose_into(v, room, s.m, s.m);
        v += square;
    }
    return 0;
}

int linalg_eigh(const char *op, Matrices s, const double *a, bool upper, double *w, double *v,
                MatrixFault *fault)
{
    const Lapack *lapack = lapack_open(op);
    if (!lapack) return -1;
    if (s.batch == 0 || s.m == 0) return 0;
    const size_t doubles = (size_t)(3 * s.m * s.m + 6 * s.m + 1) * sizeof(double),
                 bytes = doubles + (size_t)(3 + 5 * s.m) * sizeof(int);
    double *room = tg_alloc(bytes);
    if (!room) return fail_memory(op);
    const int status = eigh_each(lapack, s, a, upper, w, v, room, fault);
    tg_free(room, bytes);
    return status;
}
