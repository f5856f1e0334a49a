/* map_loops.h - the loops of the fast rows for one type; map_kernels.c includes it once a type, with REAL,
 * SUFFIX, FLOATING.  With NARROW those of the narrow rows, for map_narrow_kernel.c. */

#define T(name) CAT(name, SUFFIX)
#define R(c) ((REAL)(c))

/* ---- the functions that formulas call -------------------------------------------------------- */

#if FLOATING
#define VM(name) CAT(vm_##name, SUFFIX)
#define BUILTIN(name, x) \
    (sizeof(REAL) == 4 ? (REAL)__builtin_##name##f((float)(x)) : (REAL)__builtin_##name((double)(x)))
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
#define TRIG(name, x) (far && VM(trig_needs_slow)(x) ? CAT(vm_##name##_slow, SUFFIX)(x) : VM(name)(x))
#define sin(x) TRIG(sin, x)
#define cos(x) TRIG(cos, x)
#define tan(x) TRIG(tan, x)
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

/* a^b for b >= 0, modulo 2 to the width; for b < 0, as 1 / a^-b is: 0 but for a = 1 and -1. */
INLINE REAL T(pow)(REAL a, REAL b)
{
    uint64_t base = (uint64_t)a, power = 1;
    if (b < 0) return (REAL)(a == 1 ? 1 : a == (REAL)-1 ? 1 - 2 * (b & 1) : 0);
    for (uint64_t n = (uint64_t)b; n; n >>= 1, base *= base)
        if (n & 1) power *= base;
    return (REAL)power;
}
#define pow T(pow)
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

/* ---- loops: keep is a constant that says which operands there are ---------------------------- */

/* far, a constant too: the sines of the formula must be right for numbers beyond the range of the fast ones.
 */
typedef REAL (*T(Formula))(REAL a, REAL b, REAL y, REAL g, REAL p0, REAL p1, int far);

/* A parameter in the type of the computation; integers wrap.  The core has seen to it that it is one. */
INLINE REAL T(parameter)(const double *params, int i)
{
    return !params ? 0 : FLOATING ? (REAL)params[i] : (REAL)(int64_t)params[i];
}

/* Of doubles n is a multiple of MAP_UNIT, which the compiler is told by a mask: no loop has a scalar tail. */
#define WHOLE_UNITS (FLOATING && sizeof(REAL) == 8)
INLINE void T(map)(int64_t from, int64_t to, void *out_, const void *a_, const void *b_, const void *y_,
                   const void *g_, const double *params, unsigned keep, T(Formula) f, int far)
{
    REAL *out = out_;
    const REAL *a = a_, *b = b_, *y = y_, *g = g_, p0 = T(parameter)(params, 0), p1 = T(parameter)(params, 1);
    if (WHOLE_UNITS) to = from + ((to - from) & -MAP_UNIT);
    INDEPENDENT
    for (int64_t i = from; i < to; i++)
        out[i] = f(keep & KEEP_A ? a[i] : 0, keep & KEEP_B ? b[i] : 0, keep & KEEP_Y ? y[i] : 0,
                   keep & KEEP_OUTPUT(1) ? g[i] : 0, p0, p1, far);
}

#if FLOATING
/* For formulas with a sine of a: each block is looked over before it is written (out may be a).  One that has
 * a far element is computed by a scalar loop: the other elements by the operations of the vector loop, so
 * their bits do not depend on it. */
INLINE void T(map_trig)(int64_t n, void *out, const void *a, const void *b, const void *y, const void *g,
                        const double *params, unsigned keep, T(Formula) f)
{
    enum { BLOCK = 512 };
    for (int64_t from = 0; from < n; from += BLOCK) {
        int64_t to = n - from < BLOCK ? n : from + BLOCK;
        int far = 0;
        for (int64_t i = from; i < to; i++) far |= VM(trig_needs_slow)(((const REAL *)a)[i]);
        if (far) T(map)(from, to, out, a, b, y, g, params, keep, f, 1);
        else T(map)(from, to, out, a, b, y, g, params, keep, f, 0);
    }
}
#define MAP(n, out, a, b, y, g, params, keep, f, has_trig)          \
    if (has_trig) T(map_trig)(n, out, a, b, y, g, params, keep, f); \
    else T(map)(0, n, out, a, b, y, g, params, keep, f, 0)
#define HAS_TRIG(expression) (__builtin_strstr(#expression, "vm_trig_needs_slow") != NULL) /* a constant */
#else
#define MAP(n, out, a, b, y, g, params, keep, f, has_trig) T(map)(0, n, out, a, b, y, g, params, keep, f, 0)
#define HAS_TRIG(expression) 0
#endif

INLINE void T(map_bool)(int64_t n, void *out_, const void *a_, const void *b_, unsigned keep, T(Formula) f)
{
    uint8_t *out = out_;
    const REAL *a = a_, *b = b_;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = f(a[i], keep & KEEP_B ? b[i] : 0, 0, 0, 0, 0, 0) != 0;
}

#define ARGS \
    int64_t n, void *out, const void *a, const void *b, const void *y, const void *g, const double *params
#define FORMULA(name, part, first, p, q, expression)                                                    \
    INLINE REAL T(name##_##part##_formula)(REAL first, REAL b, REAL y, REAL g, REAL p, REAL q, int far) \
    {                                                                                                   \
        (void)first, (void)b, (void)y, (void)g, (void)p, (void)q, (void)far;                            \
        return (REAL)(expression);                                                                      \
    }
#define LOOP(name, part, first, p, q, expression, keep)                                          \
    FORMULA(name, part, first, p, q, expression)                                                 \
    static __attribute__((unused)) void T(name##_##part)(ARGS)                                   \
    {                                                                                            \
        MAP(n, out, a, b, y, g, params, keep, T(name##_##part##_formula), HAS_TRIG(expression)); \
    }
#define BOOL_LOOP(name, first, expression, keep)              \
    FORMULA(name, y, first, p0, p1, expression)               \
    static void T(name##_y)(ARGS)                             \
    {                                                         \
        (void)y, (void)g, (void)params;                       \
        T(map_bool)(n, out, a, b, keep, T(name##_y_formula)); \
    }

#define G KEEP_OUTPUT(1) /* the incoming gradient */
#if FLOATING
#define IF_ROW_FLOATS(...) __VA_ARGS__
#define IF_ROW_REALS(...) __VA_ARGS__
#define GRADIENT(...) LOOP(__VA_ARGS__)
#else
#define IF_ROW_FLOATS(...)
#define IF_ROW_REALS(...)
#define GRADIENT(...)
#endif
#define IF_ROW_NUMBERS(...) __VA_ARGS__
#define IF_ROW_WIDENED(...) __VA_ARGS__
#define IF_ROW_ANY(...) __VA_ARGS__

#ifdef NARROW
#define ONLY_NARROW_ROWS
#else
#define ONLY_FAST_ROWS
#endif
#if defined NARROW && !FLOATING /* the bits alone */
#define BITS1(name, types, summary, y_, ...) LOOP(row_##name, y, x, p0, p1, y_, KEEP_X)
#define BITS2(name, types, summary, y_, ...) LOOP(row_##name, y, a, p0, p1, y_, KEEP_A | KEEP_B)
#define BITSC(name, types, summary, p, pi, y_, ...) LOOP(row_##name, y, x, p, p1, y_, KEEP_X)
#else
#define UNARY(name, types, summary, y_, dx, keep, ...) \
    IF_##types(LOOP(row_##name, y, x, p0, p1, y_, KEEP_X)) GRADIENT(row_##name, a, x, p0, p1, dx, (keep) | G)
#define UNARY1(name, types, summary, p, pi, y_, dx, keep, ...) \
    IF_##types(LOOP(row_##name, y, x, p, p1, y_, KEEP_X)) GRADIENT(row_##name, a, x, p, p1, dx, (keep) | G)
#define UNARY2(name, types, summary, p, pi, q, qi, y_, dx, keep, ...) \
    IF_##types(LOOP(row_##name, y, x, p, q, y_, KEEP_X)) GRADIENT(row_##name, a, x, p, q, dx, (keep) | G)
#define BINARY(name, types, summary, y_, da, ka, db, kb, ...)       \
    IF_##types(LOOP(row_##name, y, a, p0, p1, y_, KEEP_A | KEEP_B)) \
        GRADIENT(row_##name, a, a, p0, p1, da, (ka) | G) GRADIENT(row_##name, b, a, p0, p1, db, (kb) | G)
#define BINARY1(name, types, summary, p, pi, y_, da, ka, db, kb, ...) \
    IF_##types(LOOP(row_##name, y, a, p, p1, y_, KEEP_A | KEEP_B))    \
        GRADIENT(row_##name, a, a, p, p1, da, (ka) | G) GRADIENT(row_##name, b, a, p, p1, db, (kb) | G)
#define COMPARE(name, types, summary, y_, ...) BOOL_LOOP(row_##name, a, y_, KEEP_A | KEEP_B)
#define PREDICATE(name, types, summary, y_, ...) BOOL_LOOP(row_##name, x, y_, KEEP_A)
#endif
#include <tapegrad/ops.def>

#undef IF_ROW_FLOATS
#undef IF_ROW_REALS
#undef IF_ROW_NUMBERS
#undef IF_ROW_WIDENED
#undef IF_ROW_ANY
#undef GRADIENT
#undef LOOP
#undef BOOL_LOOP
#undef FORMULA
#undef MAP
#undef WHOLE_UNITS
#undef HAS_TRIG
#undef ARGS
#undef G
#if FLOATING
#undef VM
#undef TRIG
#undef BUILTIN
#undef exp
#undef exp2
#undef expm1
#undef log
#undef log2
#undef log10
#undef log1p
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
#undef pow
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
