/* bidiagonal.h - d and e of q^T a p = bidiagonal, the first step to singular values. */
#ifndef TG_BIDIAGONAL_H
#define TG_BIDIAGONAL_H

#include <stdint.h>
#include "hidden.h"
#include "real.h"

HIDDEN_BEGIN

/* d [n] is the diagonal, e [n - 1] lies right of it; left [n] and right [n - 1] are the taus of q's and p's
 * reflections. */
typedef struct TYPED(Bands) {
    REAL *d, *e, *left, *right;
} TYPED(Bands);

/* a [m, n], column-major, m >= n, receives the reflections: q's in its columns from the diagonal down, p's in
 * its rows right of that.  -1: no memory. */
int TYPED(bidiagonal)(REAL *a, int64_t m, int64_t n, TYPED(Bands) to);

HIDDEN_END
#endif
