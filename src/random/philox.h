/* philox.h - random numbers without a state: Philox 4x32 with 10 rounds.
 *
 * A number is a function of (seed, offset, i) alone, so that a tensor may be filled by any count of threads,
 * in any order, on any device, and a backward pass may make its mask a second time instead of keeping it.
 *   seed     which generator; a Philox key
 *   offset   which draw of that generator: the caller adds 1 for each tensor that it fills
 *   i        which element of the tensor
 * Four neighbouring elements share a block: block b = i / 4 is Philox of the counter (b, offset), element i
 * its word i % 4.
 *
 * This header is C11, C++ and CUDA: kernels include it, so that devices agree to the bit.  (Salmon, Moraes,
 * Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.) */
#ifndef TAPEGRAD_RANDOM_PHILOX_H
#define TAPEGRAD_RANDOM_PHILOX_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PHILOX_FN static inline __host__ __device__
#else
#define PHILOX_FN static inline
#endif

typedef struct PhiloxBlock {
    uint32_t word[4];
} PhiloxBlock;

/* philox_rounds - the bijection itself: ten rounds on a counter of 128 bits under a key of 64. */
PHILOX_FN PhiloxBlock philox_rounds(PhiloxBlock counter, uint32_t key0, uint32_t key1)
{
    uint32_t a = counter.word[0], b = counter.word[1], c = counter.word[2], d = counter.word[3];
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xd2511f53u * a, q = (uint64_t)0xcd9e8d57u * c;
        a = (uint32_t)(q >> 32) ^ b ^ key0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ key1;
        d = (uint32_t)p;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    PhiloxBlock out = { { a, b, c, d } };
    return out;
}

/* philox_block - the words of elements 4 block .. 4 block + 3. */
PHILOX_FN PhiloxBlock philox_block(uint64_t seed, uint64_t offset, uint64_t block)
{
    PhiloxBlock counter = { { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)offset,
                              (uint32_t)(offset >> 32) } };
    return philox_rounds(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* philox_u32 - the word of element i; loops over many elements take whole blocks instead. */
PHILOX_FN uint32_t philox_u32(uint64_t seed, uint64_t offset, uint64_t i)
{
    PhiloxBlock block = philox_block(seed, offset, i / 4);
    return block.word[i % 4];
}

/* philox_unit - a word as a float on [0, 1): its upper 24 bits, without a rounding. */
PHILOX_FN float philox_unit(uint32_t word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }

/* philox_threshold - the 32-bit threshold of probability p; a word is kept where philox_keep says so, which
 * happens with probability p to within 2^-33, and never for p <= 0, and always for p >= 1. */
PHILOX_FN uint64_t philox_threshold(double p)
{
    if (!(p > 0)) return 0;
    return p >= 1 ? (uint64_t)1 << 32 : (uint64_t)(p * 4294967296.0 + 0.5);
}

PHILOX_FN bool philox_keep(uint32_t word, uint64_t threshold) { return word < threshold; }

#ifndef __CUDACC__
#ifdef __cplusplus
extern "C" {
#endif

/* philox_uniform_f32 - u of elements first .. first + n - 1 on [0, 1), into x[0 .. n).
 * philox_mask - 1 where the element is kept (probability keep), else 0: a dropout mask.
 * Both make element i alike whichever range it is asked in. */
void philox_uniform_f32(float *x, int64_t first, int64_t n, uint64_t seed, uint64_t offset);
void philox_mask(uint8_t *x, int64_t first, int64_t n, uint64_t seed, uint64_t offset, double keep);

#ifdef __cplusplus
}
#endif
#endif

#endif
