/* formula_source.cuh - what a row of the program's own is compiled from at run time: these lines, then its
 * formulas, then the kernels.  NVRTC has no headers; all names begin with tg_, as formulas may use any other.
 *
 *   tg_E   what the operands are stored as      tg_T   what is computed in
 *   F      one part of the row                  in     a, b, y, g: NULL where the part does not read it */
#ifndef TG_CUDA_FORMULA_SOURCE_CUH
#define TG_CUDA_FORMULA_SOURCE_CUH

static const char formula_begin[] = R"(
typedef unsigned short tg_bits;
struct tg_f16 { tg_bits v; };
struct tg_bf16 { tg_bits v; };
#ifdef __CUDACC_RTC__
static __device__ float tg_wide(tg_f16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.v));
    return y;
}
static __device__ tg_f16 tg_half(float x)
{
    tg_f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.v) : "f"(x));
    return y;
}
#else
static float tg_wide(tg_f16 x)
{
    __fp16 y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
}
static tg_f16 tg_half(float x)
{
    const __fp16 y = x;
    tg_f16 z;
    __builtin_memcpy(&z, &y, sizeof z);
    return z;
}
#endif
static __device__ float tg_wide(tg_bf16 x) { return __uint_as_float((unsigned)x.v << 16); }
static __device__ tg_bf16 tg_bhalf(float x)
{
    const unsigned u = __float_as_uint(x);
    return { x != x ? (tg_bits)0x7fff : (tg_bits)((u + 0x7fff + (u >> 16 & 1)) >> 16) };
}
static __device__ float tg_wide(float x) { return x; }
static __device__ double tg_wide(double x) { return x; }
static __device__ void tg_put(float *p, float x) { *p = x; }
static __device__ void tg_put(double *p, double x) { *p = x; }
static __device__ void tg_put(tg_f16 *p, float x) { *p = tg_half(x); }
static __device__ void tg_put(tg_bf16 *p, float x) { *p = tg_bhalf(x); }

/* C's functions take what converts to double. */
#define tg_ONE(f) template <class A> static __device__ double f(A x) { return f((double)x); }
tg_ONE(exp) tg_ONE(exp2) tg_ONE(expm1) tg_ONE(log) tg_ONE(log2) tg_ONE(log10) tg_ONE(log1p) tg_ONE(sin)
tg_ONE(cos) tg_ONE(tan) tg_ONE(asin) tg_ONE(acos) tg_ONE(atan) tg_ONE(sinh) tg_ONE(cosh) tg_ONE(tanh)
tg_ONE(asinh) tg_ONE(acosh) tg_ONE(atanh) tg_ONE(lgamma) tg_ONE(tgamma) tg_ONE(erf) tg_ONE(erfc) tg_ONE(sqrt)
tg_ONE(cbrt) tg_ONE(fabs) tg_ONE(floor) tg_ONE(ceil) tg_ONE(rint) tg_ONE(round) tg_ONE(trunc)
#define tg_TWO(f) \
    template <class A, class B> static __device__ double f(A a, B b) { return f((double)a, (double)b); }
tg_TWO(pow) tg_TWO(atan2) tg_TWO(hypot) tg_TWO(fmod) tg_TWO(copysign) tg_TWO(fmin) tg_TWO(fmax)
tg_TWO(remainder) tg_TWO(fdim)

#define INFINITY __uint_as_float(0x7f800000u)
#define NAN __uint_as_float(0x7fc00000u)
#define FLT_MAX 3.40282346638528859812e+38f
#define FLT_MIN 1.17549435082228750797e-38f
#define FLT_EPSILON 1.1920928955078125e-07f
#define DBL_MAX 1.79769313486231570815e+308
#define DBL_MIN 2.22507385850720138309e-308
#define DBL_EPSILON 2.22044604925031308085e-16
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
)";

/* Compiled here and there. */
#define ON_BOTH_SIDES(...) \
    __VA_ARGS__            \
    static const char formula_call[] = #__VA_ARGS__;
ON_BOTH_SIDES(struct tg_Call {
    long long count, shape[16], stride[5][16];
    void *out;
    const void *in[4];
    double p, q;
    int ndim, out_dtype, in_dtype[4];
};)

static const char formula_kernels[] = R"(
enum { tg_n = 16 / sizeof(tg_E) };
struct alignas(16) tg_Pack { tg_E v[tg_n]; };

template <class F> static __device__ void tg_dense(const tg_Call &c)
{
    const tg_T p = (tg_T)c.p, q = (tg_T)c.q;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, packs = c.count / tg_n,
                    step = (long long)gridDim.x * blockDim.x;
    for (long long i = first; i < packs; i += step) {
        tg_Pack in[4] = {}, out;
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (c.in[k]) in[k] = ((const tg_Pack *)c.in[k])[i];
#pragma unroll
        for (int j = 0; j < tg_n; j++)
            tg_put(&out.v[j], F::of(tg_wide(in[0].v[j]), tg_wide(in[1].v[j]), tg_wide(in[2].v[j]),
                                    tg_wide(in[3].v[j]), p, q));
        ((tg_Pack *)c.out)[i] = out;
    }
    for (long long i = packs * tg_n + first; i < c.count; i += step) {
        tg_E in[4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (c.in[k]) in[k] = ((const tg_E *)c.in[k])[i];
        tg_put((tg_E *)c.out + i,
               F::of(tg_wide(in[0]), tg_wide(in[1]), tg_wide(in[2]), tg_wide(in[3]), p, q));
    }
}

static __device__ tg_T tg_load(const void *x, int dtype, long long i)
{
    if (!x) return 0;
    switch (dtype) {
    case tg_F64: return (tg_T)((const double *)x)[i];
    case tg_F16: return tg_wide(((const tg_f16 *)x)[i]);
    case tg_BF16: return tg_wide(((const tg_bf16 *)x)[i]);
    default: return ((const float *)x)[i];
    }
}

template <class F> static __device__ void tg_strided(const tg_Call &c)
{
    const tg_T p = (tg_T)c.p, q = (tg_T)c.q;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < c.count; i += step) {
        long long rest = i, at[5] = {};
        for (int d = c.ndim - 1; d >= 0; d--) {
            const long long size = c.shape[d];
            const bool narrow = !((unsigned long long)(rest | size) >> 32);
            const long long whole = narrow ? (long long)((unsigned)rest / (unsigned)size) : rest / size;
#pragma unroll
            for (int k = 0; k < 5; k++) at[k] += (rest - whole * size) * c.stride[k][d];
            rest = whole;
        }
        const tg_T y = F::of(tg_load(c.in[0], c.in_dtype[0], at[1]), tg_load(c.in[1], c.in_dtype[1], at[2]),
                             tg_load(c.in[2], c.in_dtype[2], at[3]), tg_load(c.in[3], c.in_dtype[3], at[4]),
                             p, q);
        switch (c.out_dtype) {
        case tg_F64: ((double *)c.out)[at[0]] = y; break;
        case tg_F16: tg_put((tg_f16 *)c.out + at[0], (float)y); break;
        case tg_BF16: tg_put((tg_bf16 *)c.out + at[0], (float)y); break;
        default: ((float *)c.out)[at[0]] = (float)y;
        }
    }
}
)";

#endif
