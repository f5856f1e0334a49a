/* map_rare.c - the rare rows of ops.def on integers, in int64_t, one scalar loop each; and what their loops
 * on floats call (map_rare_kernel.c).  The driver, map.c, converts. */
#include "cpu/math/special.h"
#include "map_rare.h"

/* ---- functions of floats --------------------------------------------------------------------- */

/* lgamma writes the global signgam, a race between threads; lgamma_r does not. */
double rare_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double rare_digamma(double x) { return special_digamma(x); }
double rare_polygamma(double x, double n) { return special_polygamma(x, n); }
double rare_erfinv(double y) { return special_erfinv(y); }
double rare_i0(double x) { return special_i0(x); }
double rare_i1(double x) { return special_i1(x); }
double rare_erfcx(double x) { return special_erfcx(x); }
double rare_ndtr(double x) { return special_ndtr(x); }
double rare_log_ndtr(double x) { return special_log_ndtr(x); }
double rare_ndtri(double p) { return special_ndtri(p); }

/* ---- the functions that formulas call -------------------------------------------------------- */

/* Divisors are not 0: rows.c has seen to it.  -1 is set apart, because the least number divided by it traps.
 */
static int64_t fmod_i64(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
static int64_t trunc_divide_i64(int64_t a, int64_t b) { return b == -1 ? (int64_t) - (uint64_t)a : a / b; }

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

/* a^b modulo 2^64; for b < 0 as 1 / a^-b is: 0 but for a = 1 and -1. */
static int64_t pow_i64(int64_t a, int64_t b)
{
    uint64_t base = (uint64_t)a, power = 1;
    if (b < 0) return a == 1 ? 1 : a == -1 ? 1 - 2 * (b & 1) : 0;
    for (uint64_t n = (uint64_t)b; n; n >>= 1, base *= base)
        if (n & 1) power *= base;
    return (int64_t)power;
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

static int64_t shift_left_i64(int64_t a, int64_t b)
{
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}
static int64_t shift_right_i64(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

/* ---- loops: keep is a constant that says which operands there are ---------------------------- */

#define INLINE static inline __attribute__((always_inline))
#define ARGS \
    int64_t n, void *out, const void *a, const void *b, const void *y, const void *g, const double *params
typedef int64_t Formula(int64_t a, int64_t b, int64_t p);

INLINE void map_i64(ARGS, unsigned keep, int count, Formula *f)
{
    (void)y, (void)g;
    const int64_t p = count ? (int64_t)params[0] : 0, *x = a, *z = b;
    for (int64_t i = 0; i < n; i++) ((int64_t *)out)[i] = f(x[i], keep & KEEP_B ? z[i] : 0, p);
}

INLINE void bool_i64(ARGS, Formula *f)
{
    (void)b, (void)y, (void)g, (void)params;
    for (int64_t i = 0; i < n; i++) ((uint8_t *)out)[i] = f(((const int64_t *)a)[i], 0, 0) != 0;
}

#define CALL n, out, a, b, y, g, params
#define FORMULA(name, first, p, expression)                            \
    INLINE int64_t name##_formula(int64_t first, int64_t b, int64_t p) \
    {                                                                  \
        (void)first, (void)b, (void)p;                                 \
        return (int64_t)(expression);                                  \
    }
#define LOOP(name, first, p, count, expression, keep) \
    FORMULA(name, first, p, expression)               \
    static void name(ARGS) { map_i64(CALL, keep, count, name##_formula); }

/* ---- the rows -------------------------------------------------------------------------------- */

#define R(c) ((int64_t)(c))
#define sign(x) (((x) > 0) - ((x) < 0))
#define fmod fmod_i64
#define remainder remainder_i64
#define floor_divide floor_divide_i64
#define trunc_divide trunc_divide_i64
#define pow pow_i64
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
#define UNARY(name, types, summary, y_, ...) IF_##types(LOOP(row_##name, x, p0, 0, y_, KEEP_X))
#define UNARY1(name, types, summary, p, pi, y_, ...) IF_##types(LOOP(row_##name, x, p, 1, y_, KEEP_X))
#define BINARY(name, types, summary, y_, ...) IF_##types(LOOP(row_##name, a, p0, 0, y_, KEEP_A | KEEP_B))
#define BINARY1(name, types, summary, p, pi, y_, ...) \
    IF_##types(LOOP(row_##name, a, p, 1, y_, KEEP_A | KEEP_B))
#define PREDICATE(name, types, summary, y_, ...) \
    FORMULA(row_##name, x, p0, y_) static void row_##name(ARGS) { bool_i64(CALL, row_##name##_formula); }
#define BITS1(name, types, summary, y_, ...) LOOP(row_##name, x, p0, 0, y_, KEEP_X)
#define BITS2(name, types, summary, y_, ...) LOOP(row_##name, a, p0, 0, y_, KEEP_A | KEEP_B)
#define BITSC(name, types, summary, p, pi, y_, ...) LOOP(row_##name, x, p, 1, y_, KEEP_X)
#include <tapegrad/ops.def>

static const RareRow rows[ROW_COUNT - ROW_FAST] = {
#define ONLY_RARE_ROWS
#define UNARY(name, types, ...) [ROW_##name - ROW_FAST] = { IF_##types(.i64 = row_##name) },
#define UNARY1(name, types, ...) [ROW_##name - ROW_FAST] = { IF_##types(.i64 = row_##name, ).params = 1 },
#define BINARY UNARY
#define BINARY1 UNARY1
#define PREDICATE(name, types, ...) \
    [ROW_##name - ROW_FAST] = { IF_##types(.i64 = row_##name, ).to_bool = true },
#define BITS1(name, ...) [ROW_##name - ROW_FAST] = { .i64 = row_##name },
#define BITS2 BITS1
#define BITSC(name, ...) [ROW_##name - ROW_FAST] = { .i64 = row_##name, .params = 1 },
#include <tapegrad/ops.def>
};

const RareRow *rare_row(int row) { return &rows[row - ROW_FAST]; }
