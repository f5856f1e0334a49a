/* triangular.c - triangular systems, and Cholesky's factor (linalg.h), which large ones leave to LAPACK: our
 * rows are its columns, so it sees every matrix transposed, and is asked accordingly. */
#include "linalg.h"
#include "block_matrix.h"
#include "lapack.h"
#include "small_matrix.h"
#include "device/host.h"

int linalg_triangular(const char *op, Matrices s, const double *a, double *x, bool upper, bool left,
                      bool unit)
{
    const int64_t n = left ? s.m : s.n;
    if (s.m == 0 || s.n == 0) return 0;
    for (int64_t i = 0; i < s.batch; i++, a += n * n, x += s.m * s.n) {
        if (n <= SMALL_MATRIX) small_triangular(a, x, s.m, s.n, upper, left, unit);
        else if (block_triangular(a, x, s.m, s.n, upper, left, unit)) return fail_memory(op);
    }
    return 0;
}

static void clear_triangle(double *l, int64_t n, bool lower)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); j++) l[i * n + j] = 0;
}

/* The upper factor is the lower one of the transpose, transposed. */
static int64_t factor(const Lapack *lapack, const double *a, double *l, int64_t rows, bool upper,
                      double *room)
{
    const int n = (int)rows;
    int info = 0;
    if (lapack) {
        memcpy(l, a, (size_t)(rows * rows) * sizeof *l);
        lapack->potrf(upper ? "L" : "U", &n, l, &n, &info, 1);
        return info;
    }
    if (upper) transpose_into(room, a, rows, rows);
    else memcpy(room, a, (size_t)(rows * rows) * sizeof *l);
    const int64_t order = small_cholesky(room, rows);
    if (upper) transpose_into(l, room, rows, rows);
    else memcpy(l, room, (size_t)(rows * rows) * sizeof *l);
    return order;
}

int linalg_cholesky(const char *op, Matrices s, const double *a, double *l, bool upper, MatrixFault *fault)
{
    const Lapack *lapack = s.m > SMALL_MATRIX ? lapack_open(op) : NULL;
    double room[SMALL_MATRIX * SMALL_MATRIX];
    if (s.m > SMALL_MATRIX && !lapack) return -1;
    for (int64_t i = 0; i < s.batch && s.m; i++, a += s.m * s.m, l += s.m * s.m) {
        const int64_t order = factor(lapack, a, l, s.m, upper, room);
        if (order) {
            *fault = (MatrixFault){ MATRIX_INDEFINITE, i, order };
            return -1;
        }
        clear_triangle(l, s.m, upper);
    }
    return 0;
}
