/* map_rare.c - the rare rows of ops.def: floats in double, integers in int64_t, one scalar loop each.
 *
 * The driver, map.c, converts.  In double the result of f32 operands is right to its last bit nearly always, and a function of the
 * C library serves both. */
#include "../special.h"
#include "map_rare.h"

#define R(c) ((REAL)(c))

/* ---- the functions that formulas call, for both types ------------------------------------------------------------------- */

static double sign_f64(double x) { return (double)(x > 0) - (double)(x < 0); }
static double sigmoid_f64(double x) { return 1 / (1 + exp(-x)); }
static double trunc_divide_f64(double a, double b) { return trunc(a / b); }
static double xlogy_f64(double a, double b) { return b != b ? b : a == 0 ? 0 : a * log(b); }
static double xlog1py_f64(double a, double b) { return b != b ? b : a == 0 ? 0 : a * log1p(b); }

/* lgamma writes the global signgam, a race between threads; lgamma_r does not. */
static double lgamma_f64(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

static double remainder_f64(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* As Python's //: from the remainder, because a / b may round up to an integer that is too large. */
static double floor_divide_f64(double a, double b)
{
    if (b == 0) return a / b;
    double r = fmod(a, b), q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) q -= 1;
    if (q == 0) return copysign(0, a / b);
    return q - floor(q) > .5 ? floor(q) + 1 : floor(q);
}

/* Divisors are not 0: rows.c has seen to it.  -1 is set apart, because the least number divided by it traps. */
static int64_t fmod_i64(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
static int64_t trunc_divide_i64(int64_t a, int64_t b) { return b == -1 ? (int64_t)-(uint64_t)a : a / b; }

static int64_t remainder_i64(int64_t a, int64_t b)
{
    int64_t r = fmod_i64(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t floor_divide_i64(int64_t a, int64_t b)
{
    int64_t r = fmod_i64(a, b);
    return trunc_divide_i64(a, b) - (r != 0 && (r < 0) != (b < 0));
}

static int64_t gcd_i64(int64_t a, int64_t b)
{
    uint64_t u = a < 0 ? -(uint64_t)a : (uint64_t)a, v = b < 0 ? -(uint64_t)b : (uint64_t)b;
    while (v) {
        const uint64_t r = u % v;
        u = v, v = r;
    }
    return (int64_t)u;
}

static int64_t lcm_i64(int64_t a, int64_t b)
{
    if (a == 0 || b == 0) return 0;
    const uint64_t u = a < 0 ? -(uint64_t)a : (uint64_t)a, v = b < 0 ? -(uint64_t)b : (uint64_t)b;
    return (int64_t)(u / (uint64_t)gcd_i64(a, b) * v);
}

static int64_t shift_left_i64(int64_t a, int64_t b) { return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b); }
static int64_t shift_right_i64(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

/* ---- loops: keep is a constant that says which operands there are ----------------------------------------------------------- */

#define INLINE static inline __attribute__((always_inline))
#define ARGS int64_t n, void *out, const void *a, const void *b, const void *y, const void *g, const double *params
typedef double Formula(double a, double b, double y, double g, double p, double q);
typedef int64_t IntFormula(int64_t a, int64_t b, int64_t p);

INLINE void map_f64(ARGS, unsigned keep, int count, Formula *f)
{
    const double p = count > 0 ? params[0] : 0, q = count > 1 ? params[1] : 0;
    const double *x = a, *z = b, *result = y, *gradient = g;
    for (int64_t i = 0; i < n; i++)
        ((double *)out)[i] = f(keep & KEEP_A ? x[i] : 0, keep & KEEP_B ? z[i] : 0, keep & KEEP_Y ? result[i] : 0,
                               keep & KEEP_OUTPUT(1) ? gradient[i] : 0, p, q);
}

INLINE void map_i64(ARGS, unsigned keep, int count, IntFormula *f)
{
    (void)y, (void)g;
    const int64_t p = count > 0 ? (int64_t)params[0] : 0, *x = a, *z = b;
    for (int64_t i = 0; i < n; i++) ((int64_t *)out)[i] = f(x[i], keep & KEEP_B ? z[i] : 0, p);
}

INLINE void bool_f64(ARGS, Formula *f)
{
    (void)b, (void)y, (void)g, (void)params;
    for (int64_t i = 0; i < n; i++) ((uint8_t *)out)[i] = f(((const double *)a)[i], 0, 0, 0, 0, 0) != 0;
}

INLINE void bool_i64(ARGS, IntFormula *f)
{
    (void)b, (void)y, (void)g, (void)params;
    for (int64_t i = 0; i < n; i++) ((uint8_t *)out)[i] = f(((const int64_t *)a)[i], 0, 0) != 0;
}

#define CALL n, out, a, b, y, g, params
#define FLOAT_FORMULA(name, part, first, p, expression)                                                                  \
    INLINE double name##_##part##_f64_formula(double first, double b, double y, double g, double p, double q)            \
    {                                                                                                                     \
        (void)first, (void)b, (void)y, (void)g, (void)p, (void)q;                                                         \
        return (double)(expression);                                                                                      \
    }
#define INT_FORMULA(name, first, p, expression)                                                                          \
    INLINE int64_t name##_y_i64_formula(int64_t first, int64_t b, int64_t p)                                              \
    {                                                                                                                     \
        (void)first, (void)b, (void)p;                                                                                    \
        return (int64_t)(expression);                                                                                     \
    }
#define FLOAT_LOOP(name, part, first, p, count, expression, keep)                                                        \
    FLOAT_FORMULA(name, part, first, p, expression)                                                                       \
    static void name##_##part##_f64(ARGS) { map_f64(CALL, keep, count, name##_##part##_f64_formula); }
#define INT_LOOP(name, first, p, count, expression, keep)                                                                \
    INT_FORMULA(name, first, p, expression)                                                                               \
    static void name##_y_i64(ARGS) { map_i64(CALL, keep, count, name##_y_i64_formula); }

/* ---- in double -------------------------------------------------------------------------------------------------------------- */

#define REAL double
#define sign sign_f64
#define sigmoid sigmoid_f64
#define lgamma lgamma_f64
#define digamma special_digamma
#define polygamma special_polygamma
#define erfinv special_erfinv
#define remainder remainder_f64
#define floor_divide floor_divide_f64
#define trunc_divide trunc_divide_f64
#define xlogy xlogy_f64
#define xlog1py xlog1py_f64
#define isinf_(x) (__builtin_isinf(x) != 0)
#define signbit_(x) (__builtin_signbit(x) != 0)
#define G KEEP_OUTPUT(1)            /* the incoming gradient */

#define ONLY_RARE_ROWS
#define UNARY(name, types, summary, y_, dx, keep, lo, hi) \
    FLOAT_LOOP(row_##name, y, x, p0, 0, y_, KEEP_X) FLOAT_LOOP(row_##name, a, x, p0, 0, dx, (keep) | G)
#define UNARY1(name, types, summary, p, pi, y_, dx, keep, lo, hi) \
    FLOAT_LOOP(row_##name, y, x, p, 1, y_, KEEP_X) FLOAT_LOOP(row_##name, a, x, p, 1, dx, (keep) | G)
#define BINARY(name, types, summary, y_, da, ka, db, kb, lo, hi) \
    FLOAT_LOOP(row_##name, y, a, p0, 0, y_, KEEP_A | KEEP_B) FLOAT_LOOP(row_##name, a, a, p0, 0, da, (ka) | G) FLOAT_LOOP(row_##name, b, a, p0, 0, db, (kb) | G)
#define PREDICATE(name, types, summary, y_) \
    FLOAT_FORMULA(row_##name, y, x, p0, y_) static void row_##name##_y_f64(ARGS) { bool_f64(CALL, row_##name##_y_f64_formula); }
#include <tapegrad/ops.def>

/* ---- in int64_t ---------------------------------------------------------------------------------------------------------------- */

#undef REAL
#undef sign
#undef remainder
#undef floor_divide
#undef trunc_divide
#undef isinf_
#undef signbit_
#define REAL int64_t
#define sign(x) (((x) > 0) - ((x) < 0))
#define fmod fmod_i64
#define remainder remainder_i64
#define floor_divide floor_divide_i64
#define trunc_divide trunc_divide_i64
#define gcd gcd_i64
#define lcm lcm_i64
#define shift_left shift_left_i64
#define shift_right shift_right_i64
#define isinf_(x) ((void)(x), 0)
#define signbit_(x) ((x) < 0)
#define IF_ROW_FLOATS(...)
#define IF_ROW_REALS(...)
#define IF_ROW_NUMBERS(...) __VA_ARGS__
#define IF_ROW_WIDENED(...) __VA_ARGS__
#define IF_ROW_ANY(...) __VA_ARGS__

#define ONLY_RARE_ROWS
#define UNARY(name, types, summary, y_, ...) IF_##types(INT_LOOP(row_##name, x, p0, 0, y_, KEEP_X))
#define UNARY1(name, types, summary, p, pi, y_, ...) IF_##types(INT_LOOP(row_##name, x, p, 1, y_, KEEP_X))
#define BINARY(name, types, summary, y_, ...) IF_##types(INT_LOOP(row_##name, a, p0, 0, y_, KEEP_A | KEEP_B))
#define PREDICATE(name, types, summary, y_) \
    INT_FORMULA(row_##name, x, p0, y_) static void row_##name##_y_i64(ARGS) { bool_i64(CALL, row_##name##_y_i64_formula); }
#define BITS1(name, types, summary, y_) INT_LOOP(row_##name, x, p0, 0, y_, KEEP_X)
#define BITS2(name, types, summary, y_) INT_LOOP(row_##name, a, p0, 0, y_, KEEP_A | KEEP_B)
#include <tapegrad/ops.def>

/* ---- the table -------------------------------------------------------------------------------------------------------------------- */

#define OF_ROW_FLOATS(name)
#define OF_ROW_REALS(name)
#define OF_ROW_NUMBERS(name) .i64 = name##_y_i64,
#define OF_ROW_WIDENED(name) .i64 = name##_y_i64,
#define OF_ROW_ANY(name) .i64 = name##_y_i64,

static const RareRow rows[ROW_COUNT - ROW_FAST] = {
#define ONLY_RARE_ROWS
#define UNARY(name, types, ...) [ROW_##name - ROW_FAST] = { .f64 = { row_##name##_y_f64, row_##name##_a_f64 }, OF_##types(row_##name) },
#define UNARY1(name, types, ...) [ROW_##name - ROW_FAST] = { .f64 = { row_##name##_y_f64, row_##name##_a_f64 }, OF_##types(row_##name) .params = 1 },
#define BINARY(name, types, ...) [ROW_##name - ROW_FAST] = { .f64 = { row_##name##_y_f64, row_##name##_a_f64, row_##name##_b_f64 }, OF_##types(row_##name) },
#define PREDICATE(name, types, ...) [ROW_##name - ROW_FAST] = { .f64 = { row_##name##_y_f64 }, OF_##types(row_##name) .to_bool = true },
#define BITS1(name, ...) [ROW_##name - ROW_FAST] = { .i64 = row_##name##_y_i64 },
#define BITS2(name, ...) [ROW_##name - ROW_FAST] = { .i64 = row_##name##_y_i64 },
#include <tapegrad/ops.def>
};

const RareRow *rare_row(int row)
{
    return &rows[row - ROW_FAST];
}
