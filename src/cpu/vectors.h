/* vectors.h - the few operations on vectors that the compiler's extension does not express, for the
 * instruction set that a file is compiled for: fused multiply-add, masked access, interleaving. */
#ifndef TG_CPU_VECTORS_H
#define TG_CPU_VECTORS_H

#include <stdint.h>
#include <string.h>

#if defined __AVX2__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

#ifndef FORCE_INLINE
#define FORCE_INLINE static inline __attribute__((always_inline))
#endif
#ifdef NO_UNROLL /* builds under checkers: a third of the time to compile */
#define UNROLL
#define UNROLL_2
#elif defined __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_2 _Pragma("clang loop unroll_count(2)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#define UNROLL_2 _Pragma("GCC unroll 2")
#endif

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/* BYTES of a vector; PIN keeps gcc from loading one again for each use. */
#if defined __AVX512F__
enum { BYTES = 64 };
#define PIN(v) __asm__("" : "+v"(v))
#elif defined __AVX2__
enum { BYTES = 32 };
#define PIN(v) __asm__("" : "+x"(v))
#elif defined __aarch64__
enum { BYTES = 16 };
#define PIN(v) __asm__("" : "+w"(v))
#else
enum { BYTES = 16 };
#define PIN(v) (void)(v)
#endif

typedef float Vf32 __attribute__((vector_size(BYTES)));
typedef double Vf64 __attribute__((vector_size(BYTES)));
typedef float Uf32 __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef double Uf64 __attribute__((vector_size(BYTES), aligned(8), may_alias));

/* fma_: x * y + z.  all_: one value in every lane.  mask_: the first n lanes.  get_, put_: masked access to
 * one lane or more, zeros in those that are not read. */
#if defined __AVX512F__

typedef __mmask16 Mf32;
typedef __mmask8 Mf64;
FORCE_INLINE Vf32 fma_f32(Vf32 x, Vf32 y, Vf32 z) { return _mm512_fmadd_ps(x, y, z); }
FORCE_INLINE Vf64 fma_f64(Vf64 x, Vf64 y, Vf64 z) { return _mm512_fmadd_pd(x, y, z); }
FORCE_INLINE Vf32 all_f32(float x) { return _mm512_set1_ps(x); }
FORCE_INLINE Vf64 all_f64(double x) { return _mm512_set1_pd(x); }
FORCE_INLINE Mf32 mask_f32(int n) { return (Mf32)((1u << n) - 1); }
FORCE_INLINE Mf64 mask_f64(int n) { return (Mf64)((1u << n) - 1); }
FORCE_INLINE Vf32 get_f32(const float *p, Mf32 mask) { return _mm512_maskz_loadu_ps(mask, p); }
FORCE_INLINE Vf64 get_f64(const double *p, Mf64 mask) { return _mm512_maskz_loadu_pd(mask, p); }
FORCE_INLINE void put_f32(float *p, Mf32 mask, Vf32 v) { _mm512_mask_storeu_ps(p, mask, v); }
FORCE_INLINE void put_f64(double *p, Mf64 mask, Vf64 v) { _mm512_mask_storeu_pd(p, mask, v); }

#elif defined __AVX2__

typedef __m256i Mf32;
typedef __m256i Mf64;
FORCE_INLINE Vf32 fma_f32(Vf32 x, Vf32 y, Vf32 z) { return _mm256_fmadd_ps(x, y, z); }
FORCE_INLINE Vf64 fma_f64(Vf64 x, Vf64 y, Vf64 z) { return _mm256_fmadd_pd(x, y, z); }
FORCE_INLINE Vf32 all_f32(float x) { return _mm256_set1_ps(x); }
FORCE_INLINE Vf64 all_f64(double x) { return _mm256_set1_pd(x); }
FORCE_INLINE Mf32 mask_f32(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
FORCE_INLINE Mf64 mask_f64(int n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
FORCE_INLINE Vf32 get_f32(const float *p, Mf32 mask) { return _mm256_maskload_ps(p, mask); }
FORCE_INLINE Vf64 get_f64(const double *p, Mf64 mask) { return _mm256_maskload_pd(p, mask); }
FORCE_INLINE void put_f32(float *p, Mf32 mask, Vf32 v) { _mm256_maskstore_ps(p, mask, v); }
FORCE_INLINE void put_f64(double *p, Mf64 mask, Vf64 v) { _mm256_maskstore_pd(p, mask, v); }

#else

typedef int Mf32;
typedef int Mf64;
#ifdef __aarch64__
FORCE_INLINE Vf32 fma_f32(Vf32 x, Vf32 y, Vf32 z)
{
    return (Vf32)vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y);
}
FORCE_INLINE Vf64 fma_f64(Vf64 x, Vf64 y, Vf64 z)
{
    return (Vf64)vfmaq_f64((float64x2_t)z, (float64x2_t)x, (float64x2_t)y);
}
#else
FORCE_INLINE Vf32 fma_f32(Vf32 x, Vf32 y, Vf32 z) { return x * y + z; }
FORCE_INLINE Vf64 fma_f64(Vf64 x, Vf64 y, Vf64 z) { return x * y + z; }
#endif
FORCE_INLINE Vf32 all_f32(float x) { return (Vf32){ x, x, x, x }; }
FORCE_INLINE Vf64 all_f64(double x) { return (Vf64){ x, x }; }
FORCE_INLINE Mf32 mask_f32(int n) { return n; }
FORCE_INLINE Mf64 mask_f64(int n) { return n; }
FORCE_INLINE Vf32 get_f32(const float *p, Mf32 n)
{
    return (Vf32){ p[0], n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, n > 3 ? p[3] : 0 };
}
FORCE_INLINE Vf64 get_f64(const double *p, Mf64 n) { return (Vf64){ p[0], n > 1 ? p[1] : 0 }; }
FORCE_INLINE void put_f32(float *p, Mf32 n, Vf32 v) { memcpy(p, &v, (size_t)n * sizeof *p); }
FORCE_INLINE void put_f64(double *p, Mf64 n, Vf64 v) { memcpy(p, &v, (size_t)n * sizeof *p); }

#endif

/* mix_low, mix_high: the lower or upper halves of two vectors, lane by lane in turn. */
#define LOW2(x, y) __builtin_shufflevector(x, y, 0, 2)
#define HIGH2(x, y) __builtin_shufflevector(x, y, 1, 3)
#define LOW4(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define HIGH4(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#define LOW8(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH8(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW16(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH16(x, y) \
    __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* Of f32: the halves of two vectors, interleaved.  Doing so log2(lanes) times transposes a square.  EVEN: the
 * lanes of even numbers of both. */
#if defined __AVX512F__
#define MIX_LOW_F32 LOW16
#define MIX_HIGH_F32 HIGH16
#define EVEN_F32(x, y) \
    __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#elif defined __AVX2__
#define MIX_LOW_F32 LOW8
#define MIX_HIGH_F32 HIGH8
#define EVEN_F32(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
#else
#define MIX_LOW_F32 LOW4
#define MIX_HIGH_F32 HIGH4
#define EVEN_F32(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6)
#endif

/* clang 17 crashes where it makes a broadcast from memory an operand of a bf16 product. */
#if defined __clang__ && __clang_major__ == 17
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#else
#define IN_REGISTER(x) ((void)(x))
#endif

#endif
