/* lapack.h - the routines of LAPACK and BLAS that are used, looked up in a shared library at the first call.
 *
 * Matrices are column-major; the sizes after the arguments proper are the lengths of the character arguments,
 * which Fortran compilers pass so.  Arguments must be right: LAPACK stops the program on those that are not.
 */
#ifndef TG_LAPACK_H
#define TG_LAPACK_H

#include <stddef.h>

typedef const int *LapackInt;
#define LAPACK_LIST(X)                                                                                   \
    X(geqrf, (LapackInt m, LapackInt n, double *a, LapackInt lda, double *tau, double *work,             \
              LapackInt lwork, int *info))                                                               \
    X(orgqr, (LapackInt m, LapackInt n, LapackInt k, double *a, LapackInt lda, const double *tau,        \
              double *work, LapackInt lwork, int *info))                                                 \
    X(gesdd, (const char *job, LapackInt m, LapackInt n, double *a, LapackInt lda, double *s, double *u, \
              LapackInt ldu, double *vt, LapackInt ldvt, double *work, LapackInt lwork, int *iwork,      \
              int *info, size_t))                                                                        \
    X(syevd, (const char *job, const char *uplo, LapackInt n, double *a, LapackInt lda, double *w,       \
              double *work, LapackInt lwork, int *iwork, LapackInt liwork, int *info, size_t, size_t))

typedef struct Lapack {
#define X(name, arguments) void(*name) arguments;
    LAPACK_LIST(X)
#undef X
} Lapack;

/* lapack_open - the routines, the same ones for the rest of the process; NULL, and EDEVICE in the name of op,
 * without any. */
const Lapack *lapack_open(const char *op);

/* lapack_describe - a line for tensor_build_info: the library, or why there is none; its length. */
int lapack_describe(char *text, size_t size);

#endif
