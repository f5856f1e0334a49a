/* map_fused_kernel.c - the loops of map_fused.h for one instruction set. */
#include <math.h>
#include "map_fused.h"

#define INLINE static inline __attribute__((always_inline))
#define ARGS \
    int64_t n, void *out, const void *a, const void *b, const void *y, const void *g, const double *params
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define N(name) JOIN(name, SUFFIX)

/* Operands that there are not read as a. */
#define LOOP(name, formula)                                                                                \
    static void N(name)(ARGS)                                                                              \
    {                                                                                                      \
        const T *a_ = a, *b_ = b ? b : a, *y_ = y ? y : a, *g_ = g ? g : a, p = N(param)(params, 0),       \
                q = N(param)(params, 1), r = N(param)(params, 2);                                          \
        (void)p, (void)q, (void)r, (void)b_, (void)y_, (void)g_;                                           \
        INDEPENDENT                                                                                        \
        for (int64_t i = 0; i < n; i++) ((T *)out)[i] = N(name##_of)(a_[i], b_[i], y_[i], g_[i], p, q, r); \
    }
#define FORMULA(name, formula)                                \
    INLINE T N(name##_of)(T a, T b, T y, T g, T p, T q, T r)  \
    {                                                         \
        (void)b, (void)y, (void)g, (void)p, (void)q, (void)r; \
        return formula;                                       \
    }                                                         \
    LOOP(name, formula)

/* One choice after the other: as one expression it would be branches. */
#define REPLACED(T, suffix)                        \
    INLINE T replaced_##suffix(T a, T p, T q, T r) \
    {                                              \
        T z = a == -(T)INFINITY ? r : a;           \
        z = a == (T)INFINITY ? q : z;              \
        return a != a ? p : z;                     \
    }
REPLACED(float, f32)
REPLACED(double, f64)

#define half ((T).5)
#define replaced N(replaced)
#define T float
#define SUFFIX f32
#define fabs __builtin_fabsf
INLINE T N(param)(const double *params, int i) { return params ? (T)params[i] : 0; }
FUSED_LIST(FORMULA)
#undef T
#undef SUFFIX
#undef fabs
#define T double
#define SUFFIX f64
#define fabs __builtin_fabs
INLINE T N(param)(const double *params, int i) { return params ? (T)params[i] : 0; }
FUSED_LIST(FORMULA)

static const FusedLoops loops = {
#define X(name, formula) [FUSED_##name] = { name##_f32, name##_f64 },
    FUSED_LIST(X)
};

const FusedLoops *ISA_NAME(map_fused_loops)(void) { return &loops; }
