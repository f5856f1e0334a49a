/* philox.c - arrays filled from the counter-based generator of philox.h.
 *
 * The loop over LANES blocks runs inside the loop over rounds, so that compilers make vector code of it (not
 * of 16 lanes and fewer: gcc -O3 then unrolls the loop and loses the vectors); the words are those of
 * philox_block.
 */
#include "philox.h"

#include "round.h"

enum { LANES = 32, GROUP = 4 * LANES };

/* Words of GROUP elements, from block `block` on: word w of block k goes to out[4 k + w]. */
FORCED_INLINE void group_body(uint32_t *out, uint64_t seed, uint64_t offset, uint64_t block)
{
    uint32_t a[LANES], b[LANES], c[LANES], d[LANES];
    for (int k = 0; k < LANES; k++) {
        a[k] = (uint32_t)(block + (uint64_t)k);
        b[k] = (uint32_t)((block + (uint64_t)k) >> 32);
        c[k] = (uint32_t)offset;
        d[k] = (uint32_t)(offset >> 32);
    }
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        for (int k = 0; k < LANES; k++) {
            uint64_t p = (uint64_t)0xd2511f53u * a[k], q = (uint64_t)0xcd9e8d57u * c[k];
            a[k] = (uint32_t)(q >> 32) ^ b[k] ^ key0;
            b[k] = (uint32_t)q;
            c[k] = (uint32_t)(p >> 32) ^ d[k] ^ key1;
            d[k] = (uint32_t)p;
        }
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    for (int k = 0; k < LANES; k++) {
        out[4 * k] = a[k];
        out[4 * k + 1] = b[k];
        out[4 * k + 2] = c[k];
        out[4 * k + 3] = d[k];
    }
}

/* count elements from element 4 block on: whole groups, the last one cut short */
FORCED_INLINE void uniform_body(float *x, int64_t count, uint64_t seed, uint64_t offset, uint64_t block)
{
    uint32_t word[GROUP];
    for (int64_t i = 0; i < count; i += GROUP, block += LANES) {
        int64_t part = count - i < GROUP ? count - i : GROUP;
        group_body(word, seed, offset, block);
        if (part == GROUP)
            for (int k = 0; k < GROUP; k++) x[i + k] = (float)(int32_t)(word[k] >> 8) * 0x1p-24f;
        else
            for (int k = 0; k < part; k++) x[i + k] = philox_unit(word[k]);
    }
}

FORCED_INLINE void mask_body(uint8_t *x, int64_t count, uint64_t seed, uint64_t offset, uint64_t block,
                             uint32_t last)
{
    uint32_t word[GROUP];
    for (int64_t i = 0; i < count; i += GROUP, block += LANES) {
        int64_t part = count - i < GROUP ? count - i : GROUP;
        group_body(word, seed, offset, block);
        for (int k = 0; k < part; k++) x[i + k] = word[k] <= last;
    }
}

WITH_FMA static void uniform_wide(float *x, int64_t count, uint64_t seed, uint64_t offset, uint64_t block)
{
    uniform_body(x, count, seed, offset, block);
}

WITH_FMA static void mask_wide(uint8_t *x, int64_t count, uint64_t seed, uint64_t offset, uint64_t block,
                               uint32_t last)
{
    mask_body(x, count, seed, offset, block, last);
}

/* How many of n elements from `first` on lie before the next whole block. */
static int64_t ragged(int64_t first, int64_t n)
{
    int64_t head = -first & 3;
    return head < n ? head : n;
}

void philox_uniform_f32(float *x, int64_t first, int64_t n, uint64_t seed, uint64_t offset)
{
    int64_t head = ragged(first, n);
    for (int64_t i = 0; i < head; i++) x[i] = philox_unit(philox_u32(seed, offset, (uint64_t)(first + i)));
    uint64_t block = (uint64_t)(first + head) / 4;
    if (has_fma()) uniform_wide(x + head, n - head, seed, offset, block);
    else uniform_body(x + head, n - head, seed, offset, block);
}

void philox_mask(uint8_t *x, int64_t first, int64_t n, uint64_t seed, uint64_t offset, double keep)
{
    uint64_t threshold = philox_threshold(keep);
    if (threshold == 0) {
        if (n > 0) memset(x, 0, (size_t)n);
        return;
    }
    int64_t head = ragged(first, n);
    for (int64_t i = 0; i < head; i++)
        x[i] = philox_keep(philox_u32(seed, offset, (uint64_t)(first + i)), threshold);
    uint64_t block = (uint64_t)(first + head) / 4;
    uint32_t last = (uint32_t)(threshold - 1);
    if (has_fma()) mask_wide(x + head, n - head, seed, offset, block, last);
    else mask_body(x + head, n - head, seed, offset, block, last);
}
