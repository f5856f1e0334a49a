/* triangular.c - triangular systems, and Cholesky's factor (linalg.h): of up to SMALL_MATRIX rows by plain
 * loops, which are the reference of the blocks that larger ones are cut into. */
#include "linalg.h"
#include "block_matrix.h"
#include "small_matrix.h"
#include "device/host.h"

int TYPED(linalg_triangular)(const char *op, Matrices s, const REAL *a, REAL *x, bool upper, bool left,
                             bool unit)
{
    const int64_t n = left ? s.m : s.n;
    if (s.m == 0 || s.n == 0) return 0;
    for (int64_t i = 0; i < s.batch; i++, a += n * n, x += s.m * s.n) {
        if (n <= SMALL_MATRIX) TYPED(small_triangular)(a, x, s.m, s.n, upper, left, unit);
        else if (TYPED(block_triangular)(a, x, s.m, s.n, upper, left, unit)) return fail_memory(op);
    }
    return 0;
}

static void clear_triangle(REAL *l, int64_t n, bool lower)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); j++) l[i * n + j] = 0;
}

/* The upper factor is the lower one of the transpose, transposed. */
static int64_t factor_triangle(const REAL *a, REAL *l, int64_t n, bool upper, REAL *room)
{
    REAL *lower = upper ? room : l;
    if (upper) TYPED(transpose_into)(lower, a, n, n);
    else memcpy(lower, a, (size_t)(n * n) * sizeof *l);
    const int64_t order =
        n <= SMALL_MATRIX ? TYPED(small_cholesky)(lower, n, n) : TYPED(block_cholesky)(lower, n);
    if (upper) TYPED(transpose_into)(l, lower, n, n);
    return order;
}

static int factor_each(const char *op, Matrices s, const REAL *a, REAL *l, bool upper, REAL *room,
                       MatrixFault *fault)
{
    for (int64_t i = 0; i < s.batch; i++, a += s.m * s.m, l += s.m * s.m) {
        const int64_t order = factor_triangle(a, l, s.m, upper, room);
        if (order < 0) return fail_memory(op);
        if (order) {
            *fault = (MatrixFault){ MATRIX_INDEFINITE, i, order };
            return -1;
        }
        clear_triangle(l, s.m, upper);
    }
    return 0;
}

int TYPED(linalg_cholesky)(const char *op, Matrices s, const REAL *a, REAL *l, bool upper, MatrixFault *fault)
{
    const size_t bytes = (size_t)(s.m * s.m) * sizeof *l;
    REAL *room = upper && s.m ? tg_alloc(bytes) : NULL;
    if (s.m == 0) return 0;
    if (upper && !room) return fail_memory(op);
    const int status = factor_each(op, s, a, l, upper, room, fault);
    if (room) tg_free(room, bytes);
    return status;
}
