/* direct_bf16_kernel.c - the kernels of direct convolution for bf16, by AVX512-BF16 (direct_kernel.h): twice
 * the multiply-adds of f32 an instruction. */
#include "direct_kernel.h"
#include "cpu/vectors.h"

#ifndef __AVX512BF16__
const DirectBf16 ISA_NAME(direct_bf16)[1] = { { .pair = 0 } };
#else

FORCE_INLINE Vf32 multiply_add(Vf32 a, Vf32 b, Vf32 sum)
{
    IN_REGISTER(a);
    IN_REGISTER(b);
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
#include "direct_tiles.h"

FORCE_INLINE __m512i widened(const uint16_t *x, Mf32 mask)
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, x));
}

static void pair(const uint16_t *x, int64_t line, int64_t second, int lines, int whole, int64_t n, float *to,
                 int64_t to_line)
{
    for (int l = 0; l < lines; l++, x += line, to += to_line)
        for (int64_t i = 0; i < n; i += LANES) {
            const Mf32 mask = n - i < LANES ? mask_f32((int)(n - i)) : 0xffff;
            __m512i word = widened(x + i, mask);
            if (l < whole) word = _mm512_or_si512(word, _mm512_slli_epi32(widened(x + second + i, mask), 16));
            _mm512_mask_storeu_epi32(to + i, mask, word);
        }
}

static void narrow(const float *from, int64_t n, uint16_t *to)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const Mf32 mask = n - i < LANES ? mask_f32((int)(n - i)) : 0xffff;
        _mm256_mask_storeu_epi16(to + i, mask, (__m256i)_mm512_cvtneps_pbh(get_f32(from + i, mask)));
    }
}

const DirectBf16 ISA_NAME(direct_bf16)[1] = { { { run, weight }, pair, narrow } };
#endif
