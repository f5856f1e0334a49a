/* map_loops.h - the loops of every row for one type; map_kernels.c includes it once a type, with REAL, SUFFIX, FLOATING. */

#define T(name) CAT(name, SUFFIX)
#define R(c) ((REAL)(c))

/* ---- the functions that formulas call ------------------------------------------------------------------------ */

#if FLOATING
#define VM(name) CAT(vm_##name, SUFFIX)
#define BUILTIN(name, x) (sizeof(REAL) == 4 ? (REAL)__builtin_##name##f((float)(x)) : (REAL)__builtin_##name((double)(x)))
INLINE REAL T(sign)(REAL x) { return (REAL)(x > 0) - (REAL)(x < 0); }
INLINE REAL T(sigmoid)(REAL x) { return R(1) / (R(1) + VM(exp)(-x)); }
INLINE REAL T(square)(REAL x) { return x * x; }
INLINE REAL T(fabs)(REAL x) { return BUILTIN(fabs, x); }
INLINE REAL T(sqrt)(REAL x) { return BUILTIN(sqrt, x); }
INLINE REAL T(floor)(REAL x) { return BUILTIN(floor, x); }
INLINE REAL T(ceil)(REAL x) { return BUILTIN(ceil, x); }
INLINE REAL T(rint)(REAL x) { return BUILTIN(rint, x); }
INLINE REAL T(trunc)(REAL x) { return BUILTIN(trunc, x); }
INLINE int T(isinf_)(REAL x) { return T(fabs)(x) == (REAL)__builtin_inf(); }
INLINE int T(isfinite_)(REAL x) { return T(fabs)(x) < (REAL)__builtin_inf(); }
#define exp VM(exp)
#define exp2 VM(exp2)
#define expm1 VM(expm1)
#define log VM(log)
#define log2 VM(log2)
#define log10 VM(log10)
#define log1p VM(log1p)
#define pow VM(pow)
#define sin VM(sin)
#define cos VM(cos)
#define tan VM(tan)
#define asin VM(asin)
#define acos VM(acos)
#define atan VM(atan)
#define sinh VM(sinh)
#define cosh VM(cosh)
#define tanh VM(tanh)
#define asinh VM(asinh)
#define acosh VM(acosh)
#define atanh VM(atanh)
#define erf VM(erf)
#define erfc VM(erfc)
#else
INLINE REAL T(sign)(REAL x) { return (REAL)((x > 0) - (x < 0)); }
INLINE REAL T(fabs)(REAL x) { return (REAL)(x < 0 ? -x : x); }
INLINE REAL T(floor)(REAL x) { return x; }
INLINE REAL T(ceil)(REAL x) { return x; }
INLINE REAL T(rint)(REAL x) { return x; }
INLINE REAL T(trunc)(REAL x) { return x; }
INLINE int T(isinf_)(REAL x) { return (void)x, 0; }
INLINE int T(isfinite_)(REAL x) { return (void)x, 1; }
#endif
#define sign T(sign)
#define sigmoid T(sigmoid)
#define square T(square)
#define fabs T(fabs)
#define sqrt T(sqrt)
#define floor T(floor)
#define ceil T(ceil)
#define rint T(rint)
#define trunc T(trunc)
#define isinf_ T(isinf_)
#define isfinite_ T(isfinite_)

/* ---- loops: keep is a constant that says which operands there are ---------------------------------------------- */

typedef REAL (*T(Formula))(REAL a, REAL b, REAL y, REAL g, REAL p0, REAL p1);

INLINE void T(map)(int64_t n, void *out_, const void *a_, const void *b_, const void *y_, const void *g_, const double *params,
                   unsigned keep, T(Formula) f)
{
    REAL *out = out_;
    const REAL *a = a_, *b = b_, *y = y_, *g = g_, p0 = params ? (REAL)params[0] : 0, p1 = params ? (REAL)params[1] : 0;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = f(keep & KEEP_A ? a[i] : 0, keep & KEEP_B ? b[i] : 0, keep & KEEP_Y ? y[i] : 0, keep & KEEP_OUTPUT(1) ? g[i] : 0, p0, p1);
}

INLINE void T(map_bool)(int64_t n, void *out_, const void *a_, const void *b_, unsigned keep, T(Formula) f)
{
    uint8_t *out = out_;
    const REAL *a = a_, *b = b_;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = f(a[i], keep & KEEP_B ? b[i] : 0, 0, 0, 0, 0) != 0;
}

#define ARGS int64_t n, void *out, const void *a, const void *b, const void *y, const void *g, const double *params
#define FORMULA(name, part, first, p, q, expression)                                                          \
    INLINE REAL T(name##_##part##_formula)(REAL first, REAL b, REAL y, REAL g, REAL p, REAL q)                 \
    {                                                                                                          \
        (void)first, (void)b, (void)y, (void)g, (void)p, (void)q;                                              \
        return (REAL)(expression);                                                                             \
    }
#define LOOP(name, part, first, p, q, expression, keep)                                                       \
    FORMULA(name, part, first, p, q, expression)                                                               \
    static void T(name##_##part)(ARGS) { T(map)(n, out, a, b, y, g, params, keep, T(name##_##part##_formula)); }
#define BOOL_LOOP(name, first, expression, keep)                                                              \
    FORMULA(name, y, first, p0, p1, expression)                                                                \
    static void T(name##_y)(ARGS)                                                                              \
    {                                                                                                          \
        (void)y, (void)g, (void)params;                                                                        \
        T(map_bool)(n, out, a, b, keep, T(name##_y_formula));                                                  \
    }

#define G KEEP_OUTPUT(1)            /* the incoming gradient */
#if FLOATING
#define IF_ROW_FLOATS(...) __VA_ARGS__
#define GRADIENT(...) LOOP(__VA_ARGS__)
#else
#define IF_ROW_FLOATS(...)
#define GRADIENT(...)
#endif
#define IF_ROW_NUMBERS(...) __VA_ARGS__
#define IF_ROW_ANY(...) __VA_ARGS__

#define UNARY(name, types, summary, y_, dx, keep, lo, hi) \
    IF_##types(LOOP(row_##name, y, x, p0, p1, y_, KEEP_X)) GRADIENT(row_##name, a, x, p0, p1, dx, (keep) | G)
#define UNARY1(name, types, summary, p, pi, y_, dx, keep, lo, hi) \
    IF_##types(LOOP(row_##name, y, x, p, p1, y_, KEEP_X)) GRADIENT(row_##name, a, x, p, p1, dx, (keep) | G)
#define UNARY2(name, types, summary, p, pi, q, qi, y_, dx, keep, lo, hi) \
    IF_##types(LOOP(row_##name, y, x, p, q, y_, KEEP_X)) GRADIENT(row_##name, a, x, p, q, dx, (keep) | G)
#define BINARY(name, types, summary, y_, da, ka, db, kb, lo, hi) \
    IF_##types(LOOP(row_##name, y, a, p0, p1, y_, KEEP_A | KEEP_B)) \
    GRADIENT(row_##name, a, a, p0, p1, da, (ka) | G) GRADIENT(row_##name, b, a, p0, p1, db, (kb) | G)
#define BINARY1(name, types, summary, p, pi, y_, da, ka, db, kb, lo, hi) \
    IF_##types(LOOP(row_##name, y, a, p, p1, y_, KEEP_A | KEEP_B)) \
    GRADIENT(row_##name, a, a, p, p1, da, (ka) | G) GRADIENT(row_##name, b, a, p, p1, db, (kb) | G)
#define COMPARE(name, types, summary, y_) BOOL_LOOP(row_##name, a, y_, KEEP_A | KEEP_B)
#define PREDICATE(name, types, summary, y_) BOOL_LOOP(row_##name, x, y_, KEEP_A)
#include <tapegrad/ops.def>

#undef IF_ROW_FLOATS
#undef IF_ROW_NUMBERS
#undef IF_ROW_ANY
#undef GRADIENT
#undef LOOP
#undef BOOL_LOOP
#undef FORMULA
#undef ARGS
#undef G
#if FLOATING
#undef VM
#undef BUILTIN
#undef exp
#undef exp2
#undef expm1
#undef log
#undef log2
#undef log10
#undef log1p
#undef pow
#undef sin
#undef cos
#undef tan
#undef asin
#undef acos
#undef atan
#undef sinh
#undef cosh
#undef tanh
#undef asinh
#undef acosh
#undef atanh
#undef erf
#undef erfc
#endif
#undef sign
#undef sigmoid
#undef square
#undef fabs
#undef sqrt
#undef floor
#undef ceil
#undef rint
#undef trunc
#undef isinf_
#undef isfinite_
#undef R
#undef T
#undef REAL
#undef SUFFIX
#undef FLOATING
