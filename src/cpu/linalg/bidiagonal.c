/* bidiagonal.c - reduction to a bidiagonal matrix by reflections of columns and of rows in turn.
 *
 * A panel of PANEL columns and rows is reduced with what its own reflections do to the rest kept apart:
 *   a - v y^T - x u^T,  v the reflections of columns, u^T those of rows
 * so that the rest is read twice for each reflection, by two products with a vector, and written once for the
 * whole panel, by two products of matrices. */
#include "bidiagonal.h"
#include <string.h>
#include "block_matrix.h"
#include "device/host.h"
#include "lines_kernel.h"
#include "small_matrix.h"

enum { PANEL = 32 };
#define PICK(name) ISA_PICK_AVX2(name) /* of TYPED, which is to be expanded first */

/* a [m, n] of the whole, column-major; x and y have PANEL columns of m and n; row: n numbers. */
typedef struct Panel {
    REAL *a, *x, *y, *row, *inner;
    int64_t m, n, ld;
} Panel;

/* y += alpha a b, or y = that where `put`: a is [rows, k] of these steps, one of which is 1, and b a vector,
 * of at most PANEL numbers where its step is not 1. */
static void times(int64_t rows, int64_t k, REAL alpha, const REAL *a, int64_t a_row, int64_t a_col,
                  const REAL *b, int64_t b_step, bool put, REAL *y)
{
    REAL copy[PANEL];
    for (int64_t j = 0; j < k && b_step != 1; j++) copy[j] = b[j * b_step];
    if (b_step != 1) b = copy;
    if (put) memset(y, 0, (size_t)rows * sizeof *y);
    if (a_row == 1) PICK(TYPED(add_columns))(rows, k, alpha, a, a_col, b, y);
    else PICK(TYPED(add_dots))(rows, k, alpha, a, a_row, b, y);
}

/* y_i = tau (a - v y^T - x u^T)^T v_i, of the columns behind i. */
static void column_part(const Panel *p, int64_t i, REAL tau)
{
    const int64_t m = p->m - i, n = p->n - i - 1, ld = p->ld;
    const REAL *v = p->a + i * ld + i, *right = v + ld;
    REAL *to = p->y + i * p->n + i + 1;
    times(n, m, tau, right, ld, 1, v, 1, true, to);
    times(i, m, 1, p->a + i, ld, 1, v, 1, true, p->inner);
    times(n, i, -tau, p->y + i + 1, 1, p->n, p->inner, 1, false, to);
    times(i, m, 1, p->x + i, p->m, 1, v, 1, true, p->inner);
    times(n, i, -tau, p->a + (i + 1) * ld, ld, 1, p->inner, 1, false, to);
}

/* x_i = tau (a - v y^T - x u^T) u_i, of the rows below i; u_i is the room's row. */
static void row_part(const Panel *p, int64_t i, REAL tau)
{
    const int64_t m = p->m - i - 1, n = p->n - i - 1, ld = p->ld;
    const REAL *below = p->a + i + 1, *right = p->a + (i + 1) * ld;
    REAL *to = p->x + i * p->m + i + 1;
    times(m, n, tau, right + i + 1, 1, ld, p->row, 1, true, to);
    times(i + 1, n, 1, p->y + i + 1, p->n, 1, p->row, 1, true, p->inner);
    times(m, i + 1, -tau, below, 1, ld, p->inner, 1, false, to);
    times(i, n, 1, right, 1, ld, p->row, 1, true, p->inner);
    times(m, i, -tau, p->x + i + 1, 1, p->m, p->inner, 1, false, to);
}

/* Column i and row i as the reflections before them leave them, and their own. */
static void reduce_one(const Panel *p, int64_t i, const TYPED(Bands) * to)
{
    const int64_t m = p->m - i, n = p->n - i - 1, ld = p->ld;
    REAL *column = p->a + i * ld + i, *row = column + ld;
    times(m, i, -1, p->a + i, 1, ld, p->y + i, p->n, false, column);
    times(m, i, -1, p->x + i, 1, p->m, p->a + i * ld, 1, false, column);
    to->left[i] = TYPED(reflect)(column, m);
    to->d[i] = column[0], column[0] = 1;
    if (n == 0) return;
    column_part(p, i, to->left[i]);
    for (int64_t j = 0; j < n; j++) p->row[j] = row[j * ld];
    times(n, i + 1, -1, p->y + i + 1, 1, p->n, p->a + i, ld, false, p->row);
    times(n, i, -1, p->a + (i + 1) * ld, ld, 1, p->x + i, p->m, false, p->row);
    to->right[i] = TYPED(reflect)(p->row, n);
    to->e[i] = p->row[0], p->row[0] = 1;
    for (int64_t j = 0; j < n; j++) row[j * ld] = p->row[j];
    row_part(p, i, to->right[i]);
}

static int reduce_panels(Panel p, TYPED(Bands) to)
{
    while (p.n) {
        const int64_t width = p.n < PANEL ? p.n : PANEL, m = p.m - width, n = p.n - width, ld = p.ld;
        for (int64_t i = 0; i < width; i++) reduce_one(&p, i, &to);
        REAL *rest = p.a + width * (ld + 1);
        if (TYPED(block_product)(m, n, width, -1, p.a + width, 1, ld, p.y + width, p.n, 1, 1, rest, 1, ld) ||
            TYPED(block_product)(m, n, width, -1, p.x + width, 1, p.m, p.a + width * ld, 1, ld, 1, rest, 1,
                                 ld))
            return -1;
        p.a = rest, p.m = m, p.n = n;
        to.d += width, to.e += width, to.left += width, to.right += width;
    }
    return 0;
}

int TYPED(bidiagonal)(REAL *a, int64_t m, int64_t n, TYPED(Bands) to)
{
    const size_t bytes = (size_t)(PANEL * (m + n + 1) + n) * sizeof *a;
    REAL *room = tg_alloc(bytes);
    if (!room) return -1;
    const Panel p = {
        a, room, room + PANEL * m, room + PANEL * (m + n), room + PANEL * (m + n) + n, m, n, m
    };
    const int status = reduce_panels(p, to);
    tg_free(room, bytes);
    return status;
}
