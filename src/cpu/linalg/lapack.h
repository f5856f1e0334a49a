/* lapack.h - the routines of LAPACK and BLAS that are used, looked up in a shared library at the first call.
 *
 * Matrices are column-major; the sizes after the arguments proper are the lengths of the character arguments,
 * which Fortran compilers pass so.  Arguments must be right: LAPACK stops the program on those that are not.
 */
#ifndef TG_LAPACK_H
#define TG_LAPACK_H

#include <stddef.h>

typedef const int *LapackInt;
#define LAPACK_LIST(X, R)                                                                                \
    X(gesdd, (const char *job, LapackInt m, LapackInt n, R *a, LapackInt lda, R *s, R *u, LapackInt ldu, \
              R *vt, LapackInt ldvt, R *work, LapackInt lwork, int *iwork, int *info, size_t))           \
    X(bdsdc, (const char *uplo, const char *job, LapackInt n, R *d, R *e, R *u, LapackInt ldu, R *vt,    \
              LapackInt ldvt, R *q, int *iq, R *work, int *iwork, int *info, size_t, size_t))            \
    X(syevd, (const char *job, const char *uplo, LapackInt n, R *a, LapackInt lda, R *w, R *work,        \
              LapackInt lwork, int *iwork, LapackInt liwork, int *info, size_t, size_t))

/* The routines of one type. */
#define X(name, arguments) void(*name) arguments;
typedef struct LapackF64 {
    LAPACK_LIST(X, double)
} LapackF64;
typedef struct LapackF32 {
    LAPACK_LIST(X, float)
} LapackF32;
#undef X

typedef struct Lapack {
    LapackF64 of_f64;
    LapackF32 of_f32;
} Lapack;

/* lapack_open - the routines, the same ones for the rest of the process; NULL, and EDEVICE in the name of op,
 * without any. */
const Lapack *lapack_open(const char *op);

/* lapack_describe - a line for tensor_build_info: the library, or why there is none; its length. */
int lapack_describe(char *text, size_t size);

#endif
