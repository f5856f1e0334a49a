/* real.h - the type of the elements of matrices.  The files of linear algebra are compiled twice: each by
 * itself in f64, and all together in f32 (linalg_f32.c). */
#ifndef TG_LINALG_REAL_H
#define TG_LINALG_REAL_H

#ifdef LINALG_F32
#define REAL float
#define TYPED(name) name##_f32
#define REAL_EPSILON 0x1p-23
#define REAL_BITS int32_t
#define SIGN_BIT INT32_MIN
#else
#define REAL double
#define TYPED(name) name##_f64
#define REAL_EPSILON 0x1p-52
#define REAL_BITS int64_t
#define SIGN_BIT INT64_MIN
#endif
#define MAGNITUDE(x) ((REAL)__builtin_fabs((double)(x)))

#endif
