/* orthogonal.c - QR by blocks of reflections; singular values by these and LAPACK, eigenvalues by LAPACK
 * (linalg.h).
 *
 * LAPACK sees every matrix transposed: what it calls u is vh here, and the upper triangle is our lower one.
 */
#include "linalg.h"
#include <math.h>
#include "bidiagonal.h"
#include "block_matrix.h"
#include "lapack.h"
#include "small_matrix.h"
#include "device/host.h"

#ifdef LINALG_F32
typedef LapackF32 LapackReal;
#else
typedef LapackF64 LapackReal;
#endif

static const LapackReal *open_lapack(const char *op)
{
    const Lapack *lapack = lapack_open(op);
    return lapack ? &lapack->TYPED(of) : NULL;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Infinite, if one is NaN, too. */
static REAL largest_size(const REAL *v, int64_t n)
{
    REAL most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) return (REAL)INFINITY;
        most = MAGNITUDE(v[i]) > most ? MAGNITUDE(v[i]) : most;
    }
    return most;
}

static void scale(REAL *v, int64_t n, int64_t step, REAL by)
{
    for (int64_t i = 0; i < n; i++) v[i * step] *= by;
}

/* The sign that makes positive, among v[0], v[step], ..., the first entry of at least 0.6 of the largest
 * magnitude: not the largest itself, which a rounding chooses where several are equal. */
static REAL fixed_sign(const REAL *v, int64_t n, int64_t step)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)v[i * step]));
    for (int64_t i = 0; i < n; i++)
        if (fabs((double)v[i * step]) >= 0.6 * most) return v[i * step] < 0 ? -1 : 1;
    return 1;
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* Reflections H = 1 - tau v v^T, v[0] = 1, in blocks of WIDE: H1 H2 ... = 1 - V t V^T, t upper triangular.
 * Matrices are column-major here, as LAPACK's would be; nearly all of the work is products, by our own
 * kernels (1.5 to 2 times as fast as LAPACK's on BLIS). */

enum { WIDE = 32 };

/* a: m rows, as many columns as a and q need.  v: a block's reflections, m x WIDE, and beside them zeros and
 * ones.  t, p, s: WIDE x WIDE, two of WIDE x columns. */
typedef struct QrRoom {
    REAL *a, *tau, *v, *t, *p, *s;
    int64_t m;
} QrRoom;

/* Numbers in the room of m rows and so many columns, and how they lie. */
static int64_t qr_numbers(int64_t m, int64_t columns)
{
    return m * columns + columns + WIDE * (m + WIDE + 2 * (columns > WIDE ? columns : WIDE));
}

static QrRoom qr_room(int64_t m, int64_t columns, REAL *next)
{
    QrRoom room = { .m = m };
    room.a = next, next += m * columns;
    room.tau = next, next += columns;
    room.v = next, next += WIDE * m;
    room.t = next, next += WIDE * WIDE;
    room.p = next, next += WIDE * (columns > WIDE ? columns : WIDE);
    room.s = next;
    return room;
}

/* c = alpha a b + beta c, c column-major. */
static int product(int64_t m, int64_t n, int64_t k, REAL alpha, const REAL *a, int64_t a_row, int64_t a_col,
                   const REAL *b, int64_t b_row, int64_t b_col, REAL beta, REAL *c, int64_t c_col)
{
    return TYPED(block_product)(m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, 1, c_col);
}

/* Columns [from, from + width) of the room's a, from its diagonal down, one after the other. */
static void factor_block(const QrRoom *room, int64_t from, int64_t width)
{
    const int64_t m = room->m;
    for (int64_t j = from; j < from + width; j++) {
        REAL *x = room->a + j * m + j;
        room->tau[j] = TYPED(reflect)(x, m - j);
        for (int64_t k = j + 1; k < from + width; k++) {
            REAL *y = room->a + k * m + j;
            const REAL by = room->tau[j] * (y[0] + TYPED(dot_line)(x + 1, y + 1, m - j - 1));
            y[0] -= by;
            TYPED(subtract_line)(y + 1, x + 1, by, m - j - 1);
        }
    }
}

/* v and t of the block. */
static int make_block(const QrRoom *room, int64_t from, int64_t width)
{
    const int64_t m = room->m, rows = m - from;
    for (int64_t j = 0; j < width; j++) {
        REAL *v = room->v + j * m;
        memset(v, 0, (size_t)j * sizeof *v);
        v[j] = 1;
        memcpy(v + j + 1, room->a + (from + j) * m + from + j + 1, (size_t)(rows - j - 1) * sizeof *v);
    }
    if (product(width, width, rows, 1, room->v, m, 1, room->v, 1, m, 0, room->p, WIDE)) return -1;
    for (int64_t j = 0; j < width; j++) { /* t[:, j] = -tau t (V^T v_j) above the diagonal */
        REAL *t = room->t + j * WIDE;
        for (int64_t i = 0; i < j; i++) {
            REAL sum = 0;
            for (int64_t k = i; k < j; k++) sum += room->t[k * WIDE + i] * room->p[j * WIDE + k];
            t[i] = -room->tau[from + j] * sum;
        }
        t[j] = room->tau[from + j];
        memset(t + j + 1, 0, (size_t)(WIDE - j - 1) * sizeof *t);
    }
    return 0;
}

/* c -= V t^T V^T c, turned: of H1 H2 ... transposed, or V t V^T c; c has its rows from the block's on. */
static int apply_block(const QrRoom *room, int64_t from, int64_t width, bool turned, REAL *c, int64_t columns)
{
    const int64_t m = room->m, rows = m - from;
    return product(width, columns, rows, 1, room->v, m, 1, c, 1, m, 0, room->p, WIDE) ||
                   product(width, columns, width, 1, room->t, turned ? WIDE : 1, turned ? 1 : WIDE, room->p,
                           1, WIDE, 0, room->s, WIDE) ||
                   product(rows, columns, width, -1, room->v, 1, m, room->s, 1, WIDE, 1, c, m)
               ? -1
               : 0;
}

/* c [m, columns] = all reflections of the room times c, or times the identity, which c is to become: the last
 * block first. */
static int apply_all(const QrRoom *room, int64_t reflections, REAL *c, int64_t columns, bool identity)
{
    const int64_t m = room->m;
    for (int64_t end = reflections, width; end > 0; end -= width) {
        width = (end - 1) % WIDE + 1;
        const int64_t from = end - width, first = identity ? from : 0;
        if (make_block(room, from, width)) return -1;
        for (int64_t j = from; identity && j < end; j++)
            memset(c + j * m, 0, (size_t)m * sizeof *c), c[j * m + j] = 1;
        if (apply_block(room, from, width, false, c + first * m + from, columns - first)) return -1;
    }
    return 0;
}

/* The room's a [m, n] becomes r and, below its diagonal, the reflections. */
static int reduce_to_r(const QrRoom *room, int64_t n)
{
    const int64_t m = room->m, reflections = least(m, n);
    for (int64_t j = 0; j < reflections; j += WIDE) {
        const int64_t width = least(WIDE, reflections - j);
        factor_block(room, j, width);
        if (j + width < n &&
            (make_block(room, j, width) ||
             apply_block(room, j, width, true, room->a + (j + width) * m + j, n - j - width)))
            return -1;
    }
    return 0;
}

/* q [m, k] and r [k, n] of a [m, n]; q may be a's columns in the room turned. */
static int factor_qr(const REAL *a, Matrices s, int64_t k, const QrRoom *room, REAL *q, REAL *r)
{
    const int64_t m = s.m, reflections = least(s.m, s.n);
    TYPED(transpose_into)(room->a, a, m, s.n);
    if (reduce_to_r(room, s.n)) return -1;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < s.n; j++) r[i * s.n + j] = j >= i ? room->a[j * m + i] : 0;
    for (int64_t j = reflections; j < k; j++)
        memset(room->a + j * m, 0, (size_t)m * sizeof *a), room->a[j * m + j] = 1;
    if (apply_all(room, reflections, room->a, k, true)) return -1;
    TYPED(transpose_into)(q, room->a, k, m);
    return 0;
}

int TYPED(linalg_qr)(const char *op, Matrices s, const REAL *a, bool complete, REAL *q, REAL *r)
{
    const int64_t k = complete ? s.m : least(s.m, s.n), wide = s.n > k ? s.n : k;
    for (int64_t i = 0; s.n == 0 && complete && i < s.batch; i++) TYPED(put_identity)(q + i * s.m * s.m, s.m);
    if (s.m == 0 || s.n == 0 || s.batch == 0) return 0;
    const size_t bytes = (size_t)qr_numbers(s.m, wide) * sizeof *a;
    REAL *memory = tg_alloc(bytes);
    if (!memory) return fail_memory(op);
    const QrRoom room = qr_room(s.m, wide, memory);
    int status = 0;
    for (int64_t i = 0; i < s.batch && !status; i++)
        if (factor_qr(a + i * s.m * s.n, s, k, &room, q + i * s.m * k, r + i * k * s.n))
            status = fail_memory(op);
    tg_free(memory, bytes);
    return status;
}

/* ---- the pseudo-inverse ---------------------------------------------------------------------- */

/* At least the largest singular value of x [n, n]. */
static double norm_of(const REAL *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n * n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* y [n, m] of a [m, n], m >= n, with q [m, n], r [n, n], inverse [n, n] and one [n, m] as room. */
static int invert_tall(const REAL *q, const REAL *r, int64_t m, int64_t n, double atol, double rtol,
                       REAL *inverse, REAL *y)
{
    TYPED(put_identity)(inverse, n);
    if (TYPED(block_triangular)(r, inverse, n, n, true, true, false)) return -1;
    const double least_value = 1 / norm_of(inverse, n), bound = rtol * norm_of(r, n);
    if (!(least_value > 2 * (atol > bound ? atol : bound))) return 1;
    return product(m, n, n, 1, q, n, 1, inverse, 1, n, 0, y, m);
}

/* a^+ = r^-1 q^T of a = q r, or its transpose of a^T = q r.  1: a singular value may not count. */
static int invert_by_qr(const char *op, Matrices s, const REAL *a, double atol, double rtol, REAL *room,
                        REAL *y)
{
    const bool wide = s.m < s.n;
    const int64_t m = wide ? s.n : s.m, n = wide ? s.m : s.n;
    REAL *turned = room, *q = turned + m * n, *r = q + m * n, *inverse = r + n * n;
    if (wide) TYPED(transpose_into)(turned, a, s.m, s.n);
    if (TYPED(linalg_qr)(op, (Matrices){ 1, m, n }, wide ? turned : a, false, q, r)) return -1;
    const int status = invert_tall(q, r, m, n, atol, rtol, inverse, wide ? turned : y);
    if (status < 0) return fail_memory(op);
    if (!status && wide) TYPED(transpose_into)(y, turned, n, m);
    return status;
}

int TYPED(linalg_pinv)(const char *op, Matrices s, const REAL *a, double atol, double rtol, REAL *y,
                       uint8_t *found)
{
    const int64_t n = least(s.m, s.n), count = s.m * s.n;
    const size_t bytes = (size_t)(2 * count + 2 * n * n) * sizeof *a;
    memset(found, 0, (size_t)s.batch);
    if (s.batch == 0 || count == 0) return 0;
    REAL *room = tg_alloc(bytes);
    if (!room) return fail_memory(op);
    int status = 0;
    for (int64_t i = 0; i < s.batch && status >= 0; i++, a += count, y += count) {
        status = invert_by_qr(op, s, a, atol, rtol, room, y);
        found[i] = status == 0;
    }
    tg_free(room, bytes);
    return status < 0 ? -1 : 0;
}

/* ---- singular values ------------------------------------------------------------------------- */

typedef struct Factors {
    REAL *u, *s, *vh;
    int64_t m, n, k, columns, rows;
} Factors; /* u [m, columns], vh [rows, n] */

static void fix_signs(const Factors *f)
{
    for (int64_t i = 0; i < f->columns; i++) {
        const REAL sign = fixed_sign(f->u + i, f->m, f->columns);
        scale(f->u + i, f->m, f->columns, sign);
        if (i < f->k) scale(f->vh + i * f->n, f->n, 1, sign);
    }
    for (int64_t i = f->k; i < f->rows; i++)
        scale(f->vh + i * f->n, f->n, 1, fixed_sign(f->vh + i * f->n, f->n, 1));
}

/* LAPACK scales what is near the ends of the range. */
static bool in_range(REAL size)
{
    const REAL far = sizeof size == 8 ? (REAL)0x1p400 : (REAL)0x1p40;
    return size > 1 / far && size < far;
}

/* One size is much the larger: QR comes first, LAPACK's or, for the values alone, ours. */
static bool is_long(int64_t m, int64_t n) { return m + n >= 3 * least(m, n); }

/* Is the matrix better reduced by our own loops? */
static bool suits_reduction(const Factors *f, REAL size)
{
    return !is_long(f->m, f->n) && f->k > 16 && in_range(size);
}

/* x = q b p^T of x [m, n], column-major, m >= n: a, or its transpose; b = bu diag(s) bvt by LAPACK, which
 * takes a fifth longer for the whole, on BLIS.  q bu has `columns`, more than n: those that complete it. */
typedef struct Reduction {
    int64_t m, n, columns;
    REAL *x, *turned, *left, *right, *bvt, *e, *work;
    QrRoom room;
} Reduction;

static int64_t numbers_for(const Reduction *r)
{
    const int64_t side = r->columns > WIDE ? r->columns : WIDE;
    return r->m * (r->n + r->columns + WIDE) + 6 * r->n * r->n + 7 * r->n + WIDE * (WIDE + 2 * side);
}

static void lay_out(Reduction *r, REAL *next)
{
    const int64_t square = r->n * r->n, side = r->columns > WIDE ? r->columns : WIDE;
    r->x = next, next += r->m * r->n;
    r->turned = next, next += square;
    r->left = next, next += r->m * r->columns;
    r->right = next, next += square;
    r->bvt = next, next += square;
    r->e = next, next += r->n;
    r->work = next, next += 3 * square + 4 * r->n;
    r->room.tau = next, next += 2 * r->n;
    r->room.v = next, next += WIDE * r->m;
    r->room.t = next, next += WIDE * WIDE;
    r->room.p = next, next += WIDE * side;
    r->room.s = next;
}

/* left = q bu, right = p bvt^T: p's reflections are the columns of x's transpose, one further right. */
static int both_sides(const Reduction *r)
{
    const int64_t m = r->m, n = r->n;
    QrRoom room = r->room;
    for (int64_t j = n; j < r->columns; j++) r->left[j * (m + 1)] = 1;
    room.a = r->x, room.m = m;
    if (apply_all(&room, n, r->left, r->columns, false)) return -1;
    TYPED(transpose_part)(r->turned + n, n, r->x, m, n, n - 1);
    TYPED(transpose_into)(r->right, r->bvt, n, n);
    room.a = r->turned, room.m = n, room.tau += n;
    room.tau[0] = 0, memset(r->turned, 0, (size_t)n * sizeof *r->turned);
    return apply_all(&room, n, r->right, n, false);
}

static int svd_by_reduction(const LapackReal *lapack, const REAL *a, const Factors *f, const Reduction *r,
                            int *iwork, int *info)
{
    const bool wide = f->m < f->n;
    const int n = (int)r->n, ld = (int)r->m;
    REAL *tau = r->room.tau;
    int unused = 0;
    if (wide) memcpy(r->x, a, (size_t)(f->m * f->n) * sizeof *a);
    else TYPED(transpose_into)(r->x, a, f->m, f->n);
    if (TYPED(bidiagonal)(r->x, r->m, r->n, (TYPED(Bands)){ f->s, r->e, tau, tau + r->n + 1 })) return -1;
    if (f->u) memset(r->left, 0, (size_t)(r->m * r->columns) * sizeof *a);
    lapack->bdsdc("U", f->u ? "I" : "N", &n, f->s, r->e, r->left, &ld, r->bvt, &n, r->work, &unused, r->work,
                  iwork, info, 1, 1);
    if (!f->u || *info) return 0;
    if (both_sides(r)) return -1;
    memcpy(f->vh, wide ? r->left : r->right, (size_t)(f->rows * f->n) * sizeof *a);
    if (wide) TYPED(transpose_into)(f->u, r->right, r->n, r->n);
    else TYPED(transpose_into)(f->u, r->left, r->columns, r->m);
    return 0;
}

/* gesdd's least, and blocks for its QR. */
static int64_t gesdd_work(int64_t k, int64_t most) { return 4 * k * k + 7 * k + 32 * most; }

/* r [k, k] of a long matrix, which has its singular values. */
static int put_r(const REAL *a, const Factors *f, REAL *memory, REAL *r)
{
    const int64_t k = f->k, most = f->m + f->n - k;
    const QrRoom room = qr_room(most, k, memory);
    if (f->m < f->n) memcpy(room.a, a, (size_t)(most * k) * sizeof *a);
    else TYPED(transpose_into)(room.a, a, f->m, f->n);
    if (reduce_to_r(&room, k)) return -1;
    for (int64_t j = 0; j < k; j++)
        for (int64_t i = 0; i < k; i++) r[j * k + i] = i <= j ? room.a[j * most + i] : 0;
    return 0;
}

/* room: a copy of a and LAPACK's work, or what a reduction takes; and LAPACK's integers. */
static int svd_each(const char *op, const LapackReal *lapack, const REAL *a, int64_t batch, Factors f,
                    REAL *room, int64_t lwork, Reduction *r, int *iwork, MatrixFault *fault)
{
    const int rows = (int)f.n, columns = (int)f.m, ldvt = (int)f.columns, work = (int)lwork;
    const char *job = !f.u ? "N" : f.columns > f.k || f.rows > f.k ? "A" : "S";
    int info = 0;
    for (int64_t i = 0; i < batch; i++, a += f.m * f.n) {
        const REAL size = largest_size(a, f.m * f.n);
        if (!isfinite(size)) {
            *fault = (MatrixFault){ MATRIX_NOT_FINITE, i, 0 };
            return -1;
        }
        if (!f.u && is_long(f.m, f.n) && in_range(size)) {
            REAL *square = room + qr_numbers(r->m, f.k);
            const Factors inner = { NULL, f.s, NULL, f.k, f.k, f.k, f.k, f.k };
            Reduction of_r = { .m = f.k, .n = f.k };
            if (put_r(a, &f, room, square)) return fail_memory(op);
            if (svd_each(op, lapack, square, 1, inner, square + f.k * f.k, gesdd_work(f.k, f.k), &of_r, iwork,
                         fault)) {
                fault->at = i;
                return -1;
            }
        } else if (suits_reduction(&f, size)) {
            lay_out(r, room);
            if (svd_by_reduction(lapack, a, &f, r, iwork, &info)) return fail_memory(op);
        } else {
            memcpy(room, a, (size_t)(f.m * f.n) * sizeof *room);
            lapack->gesdd(job, &rows, &columns, room, &rows, f.s, f.vh, &rows, f.u, &ldvt, room + f.m * f.n,
                          &work, iwork, &info, 1);
        }
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

int TYPED(linalg_svd)(const char *op, Matrices s, const REAL *a, bool full, REAL *u, REAL *sigma, REAL *vh,
                      MatrixFault *fault)
{
    const LapackReal *lapack = open_lapack(op);
    const int64_t k = least(s.m, s.n), most = s.m + s.n - k;
    const Factors f = { u, sigma, vh, s.m, s.n, k, full ? s.m : k, full ? s.n : k };
    if (!lapack) return -1;
    for (int64_t i = 0; k == 0 && full && i < s.batch; i++) {
        TYPED(put_identity)(u + i * s.m * s.m, s.m);
        TYPED(put_identity)(vh + i * s.n * s.n, s.n);
    }
    if (k == 0 || s.batch == 0) return 0;
    Reduction r = { .m = most, .n = k, .columns = !u ? 0 : s.m < s.n ? f.rows : f.columns };
    const int64_t lwork = gesdd_work(k, most), by_gesdd = s.m * s.n + lwork;
    int64_t count = by_gesdd > numbers_for(&r) ? by_gesdd : numbers_for(&r);
    if (!u && is_long(s.m, s.n)) {
        const Reduction of_r = { .m = k, .n = k };
        const int64_t by_qr = qr_numbers(most, k) + 2 * k * k + gesdd_work(k, k) + numbers_for(&of_r);
        count = count > by_qr ? count : by_qr;
    }
    const size_t bytes = (size_t)count * sizeof(REAL) + (size_t)(8 * k) * sizeof(int);
    REAL *room = tg_alloc(bytes);
    if (!room) return fail_memory(op);
    const int status = svd_each(op, lapack, a, s.batch, f, room, lwork, &r, (int *)(room + count), fault);
    tg_free(room, bytes);
    return status;
}

/* ---- eigenvalues of symmetric matrices ------------------------------------------------------- */

/* LAPACK leaves the vectors in columns of its own, our rows. */
static int eigh_each(const LapackReal *lapack, Matrices s, const REAL *a, bool upper, REAL *w, REAL *v,
                     REAL *room, MatrixFault *fault)
{
    const int n = (int)s.m, lwork = 1 + 6 * n + 2 * n * n, liwork = 3 + 5 * n;
    const int64_t square = s.m * s.m;
    REAL *work = room + square;
    int info = 0, *iwork = (int *)(work + lwork);
    for (int64_t i = 0; i < s.batch; i++, a += square, w += s.m) {
        if (!isfinite(largest_size(a, square))) {
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
        TYPED(transpose_into)(v, room, s.m, s.m);
        v += square;
    }
    return 0;
}

int TYPED(linalg_eigh)(const char *op, Matrices s, const REAL *a, bool upper, REAL *w, REAL *v,
                       MatrixFault *fault)
{
    const LapackReal *lapack = open_lapack(op);
    if (!lapack) return -1;
    if (s.batch == 0 || s.m == 0) return 0;
    const size_t doubles = (size_t)(3 * s.m * s.m + 6 * s.m + 1) * sizeof(REAL),
                 bytes = doubles + (size_t)(3 + 5 * s.m) * sizeof(int);
    REAL *room = tg_alloc(bytes);
    if (!room) return fail_memory(op);
    const int status = eigh_each(lapack, s, a, upper, w, v, room, fault);
    tg_free(room, bytes);
    return status;
}
