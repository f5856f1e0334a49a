/* map_rows.cuh - the rows of ops.def as kernels, for one type of computation; map_*.cu instantiate it. */
#ifndef TG_CUDA_MAP_ROWS_CUH
#define TG_CUDA_MAP_ROWS_CUH

#include <tapegrad/op_row.h>
#include "cpu/math/special.h"
#include "map.cuh"

#ifdef __CUDACC__
#pragma nv_diag_suppress 186 /* x < 0 on u8: the formulas are type-generic */
#else
#pragma clang diagnostic ignored "-Wtautological-unsigned-zero-compare"
#endif

/* ---- elements: floats are stored as f32, f16 or bf16, all else as it is computed ------------- */

template <class T> __device__ inline T load(const void *p, int dtype, int64_t i)
{
    if constexpr (std::is_same_v<T, float>) {
        if (dtype == TENSOR_F16) return __half2float(((const __half *)p)[i]);
        if (dtype == TENSOR_BF16) return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
    }
    return ((const T *)p)[i];
}

template <class T> __device__ inline void store(void *p, int dtype, int64_t i, T v)
{
    if constexpr (std::is_same_v<T, float>) {
        if (dtype == TENSOR_F16) {
            ((__half *)p)[i] = __float2half_rn(v);
            return;
        }
        if (dtype == TENSOR_BF16) {
            ((__nv_bfloat16 *)p)[i] = __float2bfloat16_rn(v);
            return;
        }
    }
    if (dtype == TENSOR_BOOL) ((uint8_t *)p)[i] = v != 0;
    else ((T *)p)[i] = v;
}

/* ---- the functions that formulas call -------------------------------------------------------- */

namespace rows {

#define R(c) ((T)(c))
#define REALS(name)                                                       \
    static __device__ inline float name(float x) { return ::name##f(x); } \
    static __device__ inline double name(double x) { return ::name(x); }
REALS(exp)
REALS(exp2)
REALS(expm1)
REALS(log)
REALS(log2)
REALS(log10) REALS(log1p) REALS(sin) REALS(cos) REALS(tan) REALS(asin) REALS(acos) REALS(atan) REALS(sinh)
    REALS(cosh) REALS(tanh) REALS(asinh) REALS(acosh) REALS(atanh) REALS(lgamma) REALS(erf) REALS(erfc)
        REALS(sqrt) REALS(fabs) REALS(floor) REALS(ceil) REALS(rint) REALS(trunc)
#define REALS2(name)                                                                  \
    static __device__ inline float name(float a, float b) { return ::name##f(a, b); } \
    static __device__ inline double name(double a, double b) { return ::name(a, b); }
            REALS2(pow) REALS2(atan2) REALS2(hypot) REALS2(fmod) REALS2(copysign)
    /* In double for both types: rare, and right to the last bit of a float. */
    template <class T>
    __device__ inline T digamma(T x)
{
    return (T)special_digamma((double)x);
}
template <class T> __device__ inline T polygamma(T x, T n)
{
    return (T)special_polygamma((double)x, (double)n);
}
template <class T> __device__ inline T erfinv(T x) { return (T)special_erfinv((double)x); }
template <class T> __device__ inline T i0(T x) { return (T)special_i0((double)x); }
template <class T> __device__ inline T i1(T x) { return (T)special_i1((double)x); }
template <class T> __device__ inline T erfcx(T x) { return (T)special_erfcx((double)x); }
template <class T> __device__ inline T ndtr(T x) { return (T)special_ndtr((double)x); }
template <class T> __device__ inline T log_ndtr(T x) { return (T)special_log_ndtr((double)x); }
template <class T> __device__ inline T ndtri(T p) { return (T)special_ndtri((double)p); }

/* Integers: modulo 2 to the width; b < 0 as 1 / a^-b is. */
template <class T> __device__ inline T pow(T a, T b)
{
    unsigned long long base = (unsigned long long)a, power = 1;
    if (b < 0) return (T)(a == 1 ? 1 : a == (T)-1 ? 1 - 2 * (b & 1) : 0);
    for (unsigned long long n = (unsigned long long)b; n; n >>= 1, base *= base)
        if (n & 1) power *= base;
    return (T)power;
}
/* By 0, which is told late, 0; the least number by -1 is modulo 2 to the width. */
template <class T> __device__ inline T fmod(T a, T b)
{
    return b == 0 || (b == (T)-1 && std::is_signed_v<T>) ? (T)0 : (T)(a % b);
}
template <class T> __device__ inline T trunc_divide(T a, T b)
{
    if constexpr (std::is_floating_point_v<T>) return trunc(a / b);
    else if (b == 0) return 0;
    else if (b == (T)-1 && std::is_signed_v<T>) return (T)(0 - (unsigned long long)a);
    else return (T)(a / b);
}
template <class T> __device__ inline T remainder(T a, T b)
{
    T r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
template <class T> __device__ inline T floor_divide(T a, T b)
{
    T r = b == 0 ? b : fmod(a, b);
    bool down = r != 0 && (r < 0) != (b < 0);
    if constexpr (std::is_floating_point_v<T>) {
        if (b == 0) return a / b;
        T q = (a - r) / b - (T)down;
        if (q == 0) return copysign((T)0, a / b);
        return q - floor(q) > R(0.5) ? floor(q) + R(1) : floor(q);
    } else return (T)(trunc_divide(a, b) - (T)down);
}
template <class T> __device__ inline unsigned long long magnitude(T a)
{
    return a < 0 ? 0 - (unsigned long long)a : (unsigned long long)a;
}
template <class T> __device__ inline T gcd(T a, T b)
{
    unsigned long long u = magnitude(a), v = magnitude(b);
    while (v) {
        const unsigned long long r = u % v;
        u = v, v = r;
    }
    return (T)u;
}
template <class T> __device__ inline T lcm(T a, T b)
{
    return a == 0 || b == 0 ? (T)0 : (T)(magnitude(a) / magnitude(gcd(a, b)) * magnitude(b));
}
template <class T> __device__ inline T shift_left(T a, T b)
{
    return b < 0 || b >= (T)(8 * sizeof(T)) ? (T)0 : (T)((unsigned long long)a << b);
}
template <class T> __device__ inline T shift_right(T a, T b)
{
    if (b >= 0 && b < (T)(8 * sizeof(T))) return (T)(a >> b);
    return a < 0 ? (T)-1 : (T)0;
}
template <class T> __device__ inline T fabs(T x) { return (T)(x < 0 ? -x : x); }
template <class T> __device__ inline T floor(T x) { return x; }
template <class T> __device__ inline T ceil(T x) { return x; }
template <class T> __device__ inline T rint(T x) { return x; }
template <class T> __device__ inline T trunc(T x) { return x; }
template <class T> __device__ inline T sign(T x) { return (T)((x > 0) - (x < 0)); }
template <class T> __device__ inline T square(T x) { return (T)(x * x); }
template <class T> __device__ inline T sigmoid(T x) { return R(1) / (R(1) + exp(-x)); }
template <class T> __device__ inline bool isfinite_(T x)
{
    if constexpr (std::is_floating_point_v<T>)
        return fabs(x) <= (sizeof(T) == 4 ? (T)3.402823466e38f : (T)1.7976931348623157e308);
    else return true;
}
template <class T> __device__ inline bool isinf_(T x) { return x == x && !isfinite_(x); }

template <class T> __device__ inline bool signbit_(T x)
{
    if constexpr (std::is_floating_point_v<T>) return copysign(R(1), x) < 0;
    else return x < 0;
}
template <class T> __device__ inline T log_rest(T x) { return log1p(exp(-fabs(x))); }
template <class T> __device__ inline T xlogy(T a, T b) { return b != b ? b : a == 0 ? R(0) : a * log(b); }
template <class T> __device__ inline T xlog1py(T a, T b) { return b != b ? b : a == 0 ? R(0) : a * log1p(b); }

/* ---- formulas -------------------------------------------------------------------------------- */

#define G KEEP_OUTPUT(1) /* the incoming gradient */
#define FORMULA(name, part, first, p, q, expression, keep_)             \
    template <class T> struct name##_##part {                           \
        static constexpr unsigned keep = keep_;                         \
        static __device__ inline T of(T first, T b, T y, T g, T p, T q) \
        {                                                               \
            (void)first, (void)b, (void)y, (void)g, (void)p, (void)q;   \
            return (T)(expression);                                     \
        }                                                               \
    };
#define UNARY(name, t, summary, y_, dx, keep, ...) \
    FORMULA(name, y, x, p0, p1, y_, KEEP_X) FORMULA(name, a, x, p0, p1, dx, (keep) | G)
#define UNARY1(name, t, summary, p, pi, y_, dx, keep, ...) \
    FORMULA(name, y, x, p, p1, y_, KEEP_X) FORMULA(name, a, x, p, p1, dx, (keep) | G)
#define UNARY2(name, t, summary, p, pi, q, qi, y_, dx, keep, ...) \
    FORMULA(name, y, x, p, q, y_, KEEP_X) FORMULA(name, a, x, p, q, dx, (keep) | G)
#define BINARY(name, t, summary, y_, da, ka, db, kb, ...) \
    FORMULA(name, y, a, p0, p1, y_, KEEP_A | KEEP_B)      \
    FORMULA(name, a, a, p0, p1, da, (ka) | G) FORMULA(name, b, a, p0, p1, db, (kb) | G)
#define BINARY1(name, t, summary, p, pi, y_, da, ka, db, kb, ...) \
    FORMULA(name, y, a, p, p1, y_, KEEP_A | KEEP_B)               \
    FORMULA(name, a, a, p, p1, da, (ka) | G) FORMULA(name, b, a, p, p1, db, (kb) | G)
#define COMPARE(name, t, summary, y_, ...) FORMULA(name, y, a, p0, p1, y_, KEEP_A | KEEP_B)
#define PREDICATE(name, t, summary, y_, ...) FORMULA(name, y, x, p0, p1, y_, KEEP_X)
#define BITS1(name, t, summary, y_, ...) FORMULA(name, y, x, p0, p1, y_, KEEP_X)
#define BITS2(name, t, summary, y_, ...) FORMULA(name, y, a, p0, p1, y_, KEEP_A | KEEP_B)
#define BITSC(name, t, summary, p, pi, y_, ...) FORMULA(name, y, x, p, p1, y_, KEEP_X)
#include <tapegrad/ops.def>

/* ---- the kernel ------------------------------------------------------------------------------ */

/* The same element for all of a pack where the stride is 0. */
static __device__ inline void load_run(const MapCall &m, int k, int64_t at, float (&v)[MAP_PACK])
{
    const int dtype = m.in_dtype[k];
    if (m.space.stride[1 + k][m.space.ndim - 1] == 0) {
        const float x = load<float>(m.in[k], dtype, at);
        for (float &each : v) each = x;
    } else if (dtype == TENSOR_F32) {
        const auto x = load_pack<Pack<float, MAP_PACK>>((const float *)m.in[k] + at);
        for (int j = 0; j < MAP_PACK; j++) v[j] = x.v[j];
    } else if (dtype == TENSOR_F16) {
        const auto x = load_pack<Pack<__half, MAP_PACK>>((const __half *)m.in[k] + at);
        for (int j = 0; j < MAP_PACK; j++) v[j] = value_of(x.v[j]);
    } else {
        const auto x = load_pack<Pack<__nv_bfloat16, MAP_PACK>>((const __nv_bfloat16 *)m.in[k] + at);
        for (int j = 0; j < MAP_PACK; j++) v[j] = value_of(x.v[j]);
    }
}

template <class T> static __device__ inline void store_as(T *p, const float (&v)[MAP_PACK])
{
    Pack<T, MAP_PACK> x;
    for (int j = 0; j < MAP_PACK; j++) {
        if constexpr (std::is_same_v<T, uint8_t>) x.v[j] = v[j] != 0;
        else put(&x.v[j], v[j]);
    }
    store_pack(p, x);
}

static __device__ inline void store_run(const MapCall &m, int64_t at, const float (&v)[MAP_PACK])
{
    switch (m.out_dtype) {
    case TENSOR_F32: store_as((float *)m.out + at, v); break;
    case TENSOR_F16: store_as((__half *)m.out + at, v); break;
    case TENSOR_BF16: store_as((__nv_bfloat16 *)m.out + at, v); break;
    default: store_as((uint8_t *)m.out + at, v);
    }
}

template <class F> static __device__ inline void map_packs(const MapCall &m, float p, float q)
{
    for (int64_t i = first_item(); i < m.space.count; i += item_step()) {
        int64_t at[1 + ROW_OPERANDS];
        float a[MAP_PACK] = {}, b[MAP_PACK] = {}, y[MAP_PACK] = {}, g[MAP_PACK] = {};
        offsets(m.space, i, at);
        if (F::keep & KEEP_A) load_run(m, ROW_A, at[1 + ROW_A], a);
        if (F::keep & KEEP_B) load_run(m, ROW_B, at[1 + ROW_B], b);
        if (F::keep & KEEP_Y) load_run(m, ROW_Y, at[1 + ROW_Y], y);
        if (F::keep & G) load_run(m, ROW_G, at[1 + ROW_G], g);
#pragma unroll
        for (int j = 0; j < MAP_PACK; j++) a[j] = F::of(a[j], b[j], y[j], g[j], p, q);
        store_run(m, at[0], a);
    }
}

template <class T, class F>
static __device__ inline void map_one(const MapCall &m, const int64_t (&at)[1 + ROW_OPERANDS], T p, T q)
{
    const T a = F::keep & KEEP_A ? load<T>(m.in[ROW_A], m.in_dtype[ROW_A], at[1 + ROW_A]) : (T)0;
    const T b = F::keep & KEEP_B ? load<T>(m.in[ROW_B], m.in_dtype[ROW_B], at[1 + ROW_B]) : (T)0;
    const T y = F::keep & KEEP_Y ? load<T>(m.in[ROW_Y], m.in_dtype[ROW_Y], at[1 + ROW_Y]) : (T)0;
    const T g = F::keep & G ? load<T>(m.in[ROW_G], m.in_dtype[ROW_G], at[1 + ROW_G]) : (T)0;
    store<T>(m.out, m.out_dtype, at[0], F::of(a, b, y, g, p, q));
}

/* By packs, and then what the one dimension has behind them; or all by element. */
template <class T, class F, bool fast> __global__ void map_kernel(MapCall m)
{
    const T p = (T)m.p, q = (T)m.q;
    int64_t at[1 + ROW_OPERANDS];
    const bool packs = fast && m.packs;
    if constexpr (fast && std::is_same_v<T, float>)
        if (packs) map_packs<F>(m, p, q);
    for (int64_t i = first_item(); i < (packs ? m.tail : m.space.count); i += item_step()) {
        if (!packs) offsets(m.space, i, at);
        for (int k = 0; k <= ROW_OPERANDS && packs; k++)
            at[k] = m.space.stride[k][0] ? m.space.count * MAP_PACK + i : 0;
        map_one<T, F>(m, at, p, q);
    }
}

template <class T, class F, bool fast> int launch_row(const MapCall *m)
{
    auto kernel = &map_kernel<T, F, fast>;
    LAUNCH(kernel, gpu_blocks(m->space.count), THREADS, *m);
    return gpu_launched("map");
}

/* ---- from a row's number to its kernel; NULL: the row is not for this type ------------------- */

template <class T> constexpr bool is_real = std::is_floating_point_v<T>;
#define PART(name, suffix, part, has)                                                          \
    case 3 * ROW_##name + part:                                                                \
        if constexpr (has) return &launch_row<T, name##_##suffix<T>, (ROW_##name < ROW_FAST)>; \
        else return nullptr;
#define HAS_ROW_FLOATS is_real<T>
#define HAS_ROW_NUMBERS true
#define HAS_ROW_WIDENED true
#define HAS_ROW_ANY true
#define HAS_ROW_REALS is_real<T>
#define HAS_INTEGERS (!is_real<T>)
#define ONE(name, types, ...) PART(name, y, ROW_FORWARD, HAS_##types) PART(name, a, ROW_GRAD_A, is_real<T>)
#define TWO(name, types, ...) ONE(name, types) PART(name, b, ROW_GRAD_B, is_real<T>)

template <class T> MapLauncher *launcher_of(int row, int part)
{
    switch (3 * row + part) {
#define UNARY(...) ONE(__VA_ARGS__)
#define UNARY1(...) ONE(__VA_ARGS__)
#define UNARY2(...) ONE(__VA_ARGS__)
#define BINARY(...) TWO(__VA_ARGS__)
#define BINARY1(...) TWO(__VA_ARGS__)
#define COMPARE(name, ...) PART(name, y, ROW_FORWARD, true)
#define PREDICATE(name, ...) PART(name, y, ROW_FORWARD, true)
#define BITS1(name, ...) PART(name, y, ROW_FORWARD, HAS_INTEGERS)
#define BITS2(name, ...) PART(name, y, ROW_FORWARD, HAS_INTEGERS)
#define BITSC(name, ...) PART(name, y, ROW_FORWARD, HAS_INTEGERS)
#include <tapegrad/ops.def>
    default: return nullptr;
    }
}

} // namespace rows
#endif
