/* cast_kernel.c - lines of elements from one dtype to another, for each pair of them.
 *
 * To bool x != 0; float to integer drops the fraction; what does not fit, NaN included, gives the most
 * negative value, to u8 the low byte of the i64; integers wrap to narrower ones; floats round once. */
#include "device/host.h"
#include "device/half.h"
#include "cast_kernel.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

/* ---- one element ----------------------------------------------------------------------------- */

/* The conversions of C are undefined out of range; these are what x86 does, and vectorise.  Casts to i32 are
 * not compiled for AVX-512, which takes AVX2's. */
#define UNUSED __attribute__((unused))
UNUSED static inline int32_t i32_from_f32(float x)
{
    return (int32_t)(x >= -0x1p31f && x < 0x1p31f ? x : -0x1p31f);
}
UNUSED static inline int32_t i32_from_f64(double x)
{
    return (int32_t)(x > -0x1p31 - 1 && x < 0x1p31 ? x : -0x1p31);
}
UNUSED static inline int32_t i32_from_i64(int64_t x) { return (int32_t)(uint32_t)x; }
static inline int64_t i64_from_f32(float x) { return (int64_t)(x >= -0x1p63f && x < 0x1p63f ? x : -0x1p63f); }
static inline int64_t i64_from_f64(double x) { return (int64_t)(x >= -0x1p63 && x < 0x1p63 ? x : -0x1p63); }
static inline int64_t i64_from_i64(int64_t x) { return x; }
/* From 2^53 on to odd, as half_odd_f32: a double would round what is rounded again. */
static inline uint16_t bf16_from_i64(int64_t x)
{
    int64_t odd = (x & ~INT64_C(2047)) | ((x & 2047) != 0) << 11;
    return bf16_from_f64((double)(x >= INT64_C(1) << 53 || x <= -(INT64_C(1) << 53) ? odd : x));
}

#define LOAD_f32(p) (*(const float *)(p))
#define LOAD_f64(p) (*(const double *)(p))
#define LOAD_f16(p) f16_to_f32(*(const uint16_t *)(p))
#define LOAD_bf16(p) bf16_to_f32(*(const uint16_t *)(p))
#define LOAD_i64(p) (*(const int64_t *)(p))
#define LOAD_i32(p) (*(const int32_t *)(p))
#define LOAD_u8(p) ((int32_t) * (const uint8_t *)(p))
#define LOAD_b8(p) ((int32_t)(*(const uint8_t *)(p) != 0))

#define PICK(v, from_f32, from_f64, from_int) \
    _Generic((v), float : from_f32, double : from_f64, int32_t : from_int, int64_t : from_int)(v)
#define STORE_f32(p, v) (*(float *)(p) = (float)(v))
#define STORE_f64(p, v) (*(double *)(p) = (double)(v))
#define STORE_f16(p, v) (*(uint16_t *)(p) = PICK(v, f16_from_f32, f16_from_f64, f16_from_f64))
#define STORE_bf16(p, v) (*(uint16_t *)(p) = PICK(v, bf16_from_f32, bf16_from_f64, bf16_from_i64))
#define STORE_i64(p, v) (*(int64_t *)(p) = PICK(v, i64_from_f32, i64_from_f64, i64_from_i64))
#define STORE_i32(p, v) (*(int32_t *)(p) = PICK(v, i32_from_f32, i32_from_f64, i32_from_i64))
#define STORE_u8(p, v) (*(uint8_t *)(p) = (uint8_t)PICK(v, i64_from_f32, i64_from_f64, i64_from_i64))
#define STORE_b8(p, v) (*(uint8_t *)(p) = (v) != 0)

/* ---- lines ----------------------------------------------------------------------------------- */

typedef void Cast(char *dst, const char *src);

FORCE_INLINE void cast_n(char *dst, const char *src, int64_t n, int64_t ds, int64_t ss, Cast *cast, int dsize,
                         int ssize)
{
    if (ds == dsize && ss == ssize) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) cast(dst + i * dsize, src + i * ssize);
    } else {
        for (int64_t i = 0; i < n; i++) cast(dst + i * ds, src + i * ss);
    }
}

#define LINE(S, ssize, D, dsize)                                                          \
    FORCE_INLINE void cast_##S##_##D(char *d, const char *s)                              \
    {                                                                                     \
        if (__builtin_strcmp(#S, #D) == 0) memcpy(d, s, dsize); /* no way through f32 */  \
        else STORE_##D(d, LOAD_##S(s));                                                   \
    }                                                                                     \
    static void line_##S##_##D(char *d, const char *s, int64_t n, int64_t ds, int64_t ss) \
    {                                                                                     \
        cast_n(d, s, n, ds, ss, cast_##S##_##D, dsize, ssize);                            \
    }
#define LINES(S, ssize)    \
    LINE(S, ssize, f32, 4) \
    LINE(S, ssize, f64, 8) \
    LINE(S, ssize, i64, 8) \
    NARROW(S, ssize)
/* On AVX-512 what does not gain by it is AVX2's (cpu_cast_line). */
#if defined __AVX512F__ && !defined ONE_ISA
#define NARROW(S, ssize)
#define NARROW_LINES(S)
#define NARROW_ROWS
#else
#define NARROW(S, ssize) LINE(S, ssize, i32, 4) LINE(S, ssize, u8, 1) LINE(S, ssize, b8, 1)
#define NARROW_LINES(S) line_##S##_i32, line_##S##_u8, line_##S##_b8
#define NARROW_ROWS ROW(i32), ROW(u8), ROW(b8)
LINES(i32, 4)
LINES(u8, 1)
LINES(b8, 1)
LINE(u8, 1, bf16, 2)
LINE(b8, 1, bf16, 2)
#endif
LINES(f32, 4)
LINES(f64, 8)
LINES(bf16, 2)
LINES(i64, 8)
LINE(f32, 4, bf16, 2)
LINE(f64, 8, bf16, 2)
LINE(bf16, 2, bf16, 2)
LINE(i64, 8, bf16, 2)
LINE(f16, 2, f32, 4)
LINE(f32, 4, f16, 2)
LINE(f64, 8, f16, 2)
LINE(f16, 2, f16, 2)

/* ---- f16 by the CPU's own instructions: the same bits ---------------------------------------- */

#if defined(__F16C__)
static void line_from_f16(char *dst, const char *src, int64_t n, int64_t ds, int64_t ss)
{
    int64_t i = 0;
    if (ds != 4 || ss != 2) {
        line_f16_f32(dst, src, n, ds, ss);
        return;
    }
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + 4 * i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(src + 2 * i))));
#endif
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps((float *)(dst + 4 * i),
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + 2 * i))));
    line_f16_f32(dst + 4 * i, src + 2 * i, n - i, ds, ss);
}

static void line_to_f16(char *dst, const char *src, int64_t n, int64_t ds, int64_t ss)
{
    int64_t i = 0;
    if (ds != 2 || ss != 4) {
        line_f32_f16(dst, src, n, ds, ss);
        return;
    }
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(dst + 2 * i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(src + 4 * i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(
            (__m128i *)(dst + 2 * i),
            _mm256_cvtps_ph(_mm256_loadu_ps((const float *)(src + 4 * i)), _MM_FROUND_TO_NEAREST_INT));
    line_f32_f16(dst + 2 * i, src + 4 * i, n - i, ds, ss);
}
#else
#define line_from_f16 line_f16_f32
#define line_to_f16 line_f32_f16
#endif

/* ---- bf16 by vectors: the same bits, in half the time of what compilers make of the plain form -------- */

#if defined(__AVX512F__)
enum { BF16S = 32 };
static inline void bf16s_to_f32(const char *src, char *dst)
{
    for (int i = 0; i < BF16S; i += 16) {
        const __m512i h = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(src + 2 * i))),
                      x = _mm512_slli_epi32(h, 16);
        const __mmask16 nan =
            _mm512_cmp_ps_mask(_mm512_castsi512_ps(x), _mm512_castsi512_ps(x), _CMP_UNORD_Q);
        _mm512_storeu_si512(dst + 4 * i, _mm512_mask_or_epi32(x, nan, x, _mm512_set1_epi32(0x400000)));
    }
}

static inline __m512i rounded_bf16(const char *src)
{
    const __m512i x = _mm512_loadu_si512(src), y = _mm512_add_epi32(x, _mm512_set1_epi32(0x7fff));
    const __mmask16 odd = _mm512_test_epi32_mask(x, _mm512_set1_epi32(0x10000)),
                    nan = _mm512_cmp_ps_mask(_mm512_castsi512_ps(x), _mm512_castsi512_ps(x), _CMP_UNORD_Q);
    const __m512i even = _mm512_mask_add_epi32(y, odd, x, _mm512_set1_epi32(0x8000));
    return _mm512_srli_epi32(_mm512_mask_or_epi32(even, nan, x, _mm512_set1_epi32(0x400000)), 16);
}

static inline void f32s_to_bf16(const char *src, char *dst)
{
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                  y = _mm512_packus_epi32(rounded_bf16(src), rounded_bf16(src + 64));
    _mm512_storeu_si512(dst, _mm512_permutexvar_epi64(order, y));
}
#elif defined(__AVX2__)
enum { BF16S = 16 };
static inline void bf16s_to_f32(const char *src, char *dst)
{
    for (int i = 0; i < BF16S; i += 8) {
        const __m256i h = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(src + 2 * i))),
                      x = _mm256_slli_epi32(h, 16);
        const __m256 v = _mm256_castsi256_ps(x), nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
        const __m256i quiet = _mm256_and_si256(_mm256_castps_si256(nan), _mm256_set1_epi32(0x400000));
        _mm256_storeu_si256((__m256i *)(dst + 4 * i), _mm256_or_si256(x, quiet));
    }
}

static inline __m256i rounded_bf16(const char *src)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)src),
                  odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1)),
                  y = _mm256_add_epi32(x, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
                  quiet = _mm256_or_si256(x, _mm256_set1_epi32(0x400000));
    const __m256 v = _mm256_castsi256_ps(x), nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    return _mm256_srli_epi32(_mm256_blendv_epi8(y, quiet, _mm256_castps_si256(nan)), 16);
}

static inline void f32s_to_bf16(const char *src, char *dst)
{
    const __m256i y = _mm256_packus_epi32(rounded_bf16(src), rounded_bf16(src + 32));
    _mm256_storeu_si256((__m256i *)dst, _mm256_permute4x64_epi64(y, 0xd8));
}
#endif

#if defined(__AVX2__)
static void line_from_bf16(char *dst, const char *src, int64_t n, int64_t ds, int64_t ss)
{
    int64_t i = 0;
    for (; ds == 4 && ss == 2 && i + BF16S <= n; i += BF16S) bf16s_to_f32(src + 2 * i, dst + 4 * i);
    line_bf16_f32(dst + i * ds, src + i * ss, n - i, ds, ss);
}

static void line_to_bf16(char *dst, const char *src, int64_t n, int64_t ds, int64_t ss)
{
    int64_t i = 0;
    for (; ds == 2 && ss == 4 && i + BF16S <= n; i += BF16S) f32s_to_bf16(src + 4 * i, dst + 2 * i);
    line_f32_bf16(dst + i * ds, src + i * ss, n - i, ds, ss);
}
#endif

/* ---- by way of a float that holds each value, or what rounds alike ----------------------------- */

static void pass_through(char *dst, const char *src, int64_t n, int64_t ds, int64_t ss, CastLine *in,
                         CastLine *out, int size)
{
    enum { PIECE = 256 };
    double wide[PIECE];
    for (int64_t m; n > 0; n -= m, src += m * ss, dst += m * ds) {
        m = n < PIECE ? n : PIECE;
        in((char *)wide, src, m, size, ss);
        out(dst, (const char *)wide, m, ds, size);
    }
}

#define THROUGH(S, D, in, out, size)                                                      \
    static void line_##S##_##D(char *d, const char *s, int64_t n, int64_t ds, int64_t ss) \
    {                                                                                     \
        pass_through(d, s, n, ds, ss, in, out, size);                                     \
    }
THROUGH(f16, f64, line_from_f16, line_f32_f64, 4)
THROUGH(f16, bf16, line_from_f16, line_f32_bf16, 4)
THROUGH(f16, i64, line_from_f16, line_f32_i64, 4)
THROUGH(bf16, f16, line_bf16_f32, line_to_f16, 4)
THROUGH(i64, f16, line_i64_f32, line_to_f16, 4) /* what f32 rounds is beyond f16 */
#if !defined __AVX512F__ || defined ONE_ISA
THROUGH(f16, i32, line_from_f16, line_f32_i32, 4)
THROUGH(f16, u8, line_from_f16, line_f32_u8, 4)
THROUGH(f16, b8, line_from_f16, line_f32_b8, 4)
THROUGH(i32, f16, line_i32_f32, line_to_f16, 4)
THROUGH(u8, f16, line_u8_f32, line_to_f16, 4)
THROUGH(b8, f16, line_b8_f32, line_to_f16, 4)
THROUGH(i32, bf16, line_i32_f64, line_f64_bf16, 8)
#endif

#define ROW(S)                                                                                           \
    {                                                                                                    \
        line_##S##_f32, line_##S##_f64, line_##S##_f16, line_##S##_bf16, line_##S##_i64, NARROW_LINES(S) \
    }
/* [src][dst], in the order of TensorDtype */
static CastLine *const lines[TENSOR_DTYPES][TENSOR_DTYPES] = { ROW(f32),  ROW(f64), ROW(f16),
                                                               ROW(bf16), ROW(i64), NARROW_ROWS };

/* In the elements' type, so that it runs in vectors. */
void ISA_NAME(move_backwards)(char *dst, const char *src, int64_t n, size_t size)
{
    uint16_t *d2 = (uint16_t *)(void *)dst;
    const uint16_t *s2 = (const uint16_t *)(const void *)src;
    uint32_t *d4 = (uint32_t *)(void *)dst;
    const uint32_t *s4 = (const uint32_t *)(const void *)src;
    uint64_t *d8 = (uint64_t *)(void *)dst;
    const uint64_t *s8 = (const uint64_t *)(const void *)src;
    if (size == 2)
        for (int64_t i = 0; i < n; i++) d2[i] = s2[-i];
    else if (size == 4)
        for (int64_t i = 0; i < n; i++) d4[i] = s4[-i];
    else if (size == 8)
        for (int64_t i = 0; i < n; i++) d8[i] = s8[-i];
    else
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * (int64_t)size, src - i * (int64_t)size, size);
}

CastLine *ISA_NAME(cast_line)(int from, int to)
{
#if defined(__AVX2__)
    if (from == TENSOR_BF16 && to == TENSOR_F32) return line_from_bf16;
    if (from == TENSOR_F32 && to == TENSOR_BF16) return line_to_bf16;
#endif
#if defined(__F16C__)
    if (from == TENSOR_F16 && to == TENSOR_F32) return line_from_f16;
    if (from == TENSOR_F32 && to == TENSOR_F16) return line_to_f16;
#endif
    return lines[from][to];
}
