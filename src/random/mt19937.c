/* mt19937.c - the Mersenne twister and what PyTorch draws from it.
 *
 *  - State words are untempered; `index` of them have been handed out.
 *  - A draw of n elements uses the words that n draws of one element would use, in the same order: every loop
 *    over a block of words is only a faster spelling of mt_u32 or mt_u64.
 */
#include "engine.h"
#include "round.h"

#include <math.h>
#include <string.h>

enum { SHIFT = 397, HEAD = MT_WORDS - SHIFT }; /* word i + 624 comes of words i, i + 1 and i + 397 */

void mt_seed(Mt19937 *g, uint64_t seed)
{
    memset(g, 0, sizeof *g); /* the padding too: saved states compare equal */
    g->seed = seed;
    g->index = MT_WORDS;
    g->mt[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < MT_WORDS; i++)
        g->mt[i] = UINT32_C(1812433253) * (g->mt[i - 1] ^ (g->mt[i - 1] >> 30)) + i;
}

bool mt_valid(const Mt19937 *g)
{
    uint32_t any = g->mt[0] & UINT32_C(0x80000000); /* the other 31 bits of word 0 are never read */
    for (int i = 1; i < MT_WORDS; i++) any |= g->mt[i];
    return any != 0 && g->index >= 0 && g->index <= MT_WORDS && (!g->has_normal || isfinite(g->next_normal));
}

static inline uint32_t twist(uint32_t a, uint32_t b)
{
    return (((a & UINT32_C(0x80000000)) | (b & UINT32_C(0x7fffffff))) >> 1) ^
           ((0u - (b & 1u)) & UINT32_C(0x9908b0df));
}

static inline uint32_t temper(uint32_t y)
{
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

static void refill(Mt19937 *g)
{
    uint32_t *m = g->mt;
    for (int i = 0; i < HEAD; i++) m[i] = m[i + SHIFT] ^ twist(m[i], m[i + 1]);
    for (int i = HEAD; i < MT_WORDS - 1; i++) m[i] = m[i - HEAD] ^ twist(m[i], m[i + 1]);
    m[MT_WORDS - 1] = m[SHIFT - 1] ^ twist(m[MT_WORDS - 1], m[0]);
    g->index = 0;
}

static inline uint32_t next32(Mt19937 *g)
{
    if (g->index == MT_WORDS) refill(g);
    return temper(g->mt[g->index++]);
}

static inline uint64_t next64(Mt19937 *g)
{
    uint64_t high = next32(g);
    return high << 32 | next32(g);
}

static inline float unit32(uint32_t word) { return (float)(int32_t)(word & 0xffffffu) * 0x1p-24f; }
static inline int64_t low53(uint64_t word) { return (int64_t)(word & ((UINT64_C(1) << 53) - 1)); }
static inline double unit64(uint64_t word) { return (double)low53(word) * 0x1p-53; }

uint32_t mt_u32(Mt19937 *g) { return next32(g); }
uint64_t mt_u64(Mt19937 *g) { return next64(g); }
double mt_unit_f64(Mt19937 *g) { return unit64(next64(g)); }

/* The next words of the state as they stand, at most `most` of them and at least one; they count as handed
 * out. */
static const uint32_t *take(Mt19937 *g, int64_t most, int *count)
{
    if (g->index == MT_WORDS) refill(g);
    const uint32_t *from = g->mt + g->index;
    int left = MT_WORDS - g->index;
    *count = most < left ? (int)most : left;
    g->index += *count;
    return from;
}

static void fill_unit32(Mt19937 *g, float *x, int64_t n)
{
    while (n > 0) {
        int count;
        const uint32_t *w = take(g, n, &count);
        for (int i = 0; i < count; i++) x[i] = unit32(temper(w[i]));
        x += count;
        n -= count;
    }
}

enum { PAIRS = MT_WORDS / 2 };

/* The next n numbers of two words, or fewer, at least one. */
static int take64(Mt19937 *g, int64_t n, uint64_t to[PAIRS])
{
    uint32_t word[MT_WORDS];
    int count;
    const uint32_t *w = take(g, 2 * n, &count);
    const int pairs = count / 2;
    for (int i = 0; i < count; i++) word[i] = temper(w[i]);
    for (int i = 0; i < pairs; i++) to[i] = (uint64_t)word[2 * i] << 32 | word[2 * i + 1];
    if (count % 2 == 0) return pairs;
    to[pairs] = (uint64_t)word[count - 1] << 32;
    to[pairs] |= next32(g);
    return pairs + 1;
}

static void fill_unit64(Mt19937 *g, double *x, int64_t n)
{
    uint64_t word[PAIRS];
    for (int count; n > 0; x += count, n -= count) {
        count = take64(g, n, word);
        for (int i = 0; i < count; i++) x[i] = unit64(word[i]);
    }
}

void mt_uniform_f32(Mt19937 *g, float *x, int64_t n, double lo, double hi)
{
    float from = (float)lo, to = (float)hi, range = to - from;
    fill_unit32(g, x, n);
    if (from == 0 && to == 1) return;
    scale_f32(x, n, range, from);
    for (int64_t i = 0; i < n; i++) x[i] = x[i] == to ? from : x[i];
}

void mt_uniform_f64(Mt19937 *g, double *x, int64_t n, double lo, double hi)
{
    fill_unit64(g, x, n);
    if (lo == 0 && hi == 1) return;
    scale_f64(x, n, hi - lo, lo);
    for (int64_t i = 0; i < n; i++) x[i] = x[i] == hi ? lo : x[i];
}

void mt_uniform_half(Mt19937 *g, float *x, int64_t n, double lo, double hi, int bits)
{
    float from = (float)lo, to = (float)hi;
    float first = round_half(from, bits), last = round_half(to, bits);
    fill_unit32(g, x, n);
    scale_f32(x, n, to - from, from);
    for (int64_t i = 0; i < n; i++) {
        float value = round_half(x[i], bits);
        x[i] = value == last ? first : value;
    }
}

/* Below 2^28 one word is even enough: PyTorch's own limit. */
void mt_randint(Mt19937 *g, int64_t *x, int64_t n, int64_t lo, int64_t hi)
{
    uint64_t range = (uint64_t)hi - (uint64_t)lo, base = (uint64_t)lo;
    if (range < UINT64_C(1) << 28) {
        uint32_t small = (uint32_t)range;
        for (int64_t i = 0; i < n; i++) x[i] = (int64_t)(next32(g) % small + base);
    } else {
        for (int64_t i = 0; i < n; i++) x[i] = (int64_t)(next64(g) % range + base);
    }
}

int64_t mt_random_i64(Mt19937 *g) { return (int64_t)(next64(g) & INT64_MAX); }

static void shuffle(Mt19937 *g, int64_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = i;
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t j = i + next32(g) % (uint32_t)(n - i), kept = x[i];
        x[i] = x[j];
        x[j] = kept;
    }
}

static void shuffle_inside_out(Mt19937 *g, int64_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = (int64_t)(next64(g) % (uint64_t)(i + 1));
        x[i] = i;
        x[i] = x[j];
        x[j] = i;
    }
}

void mt_randperm(Mt19937 *g, int64_t *x, int64_t n)
{
    if (n < UINT32_MAX / 20) shuffle(g, x, n);
    else shuffle_inside_out(g, x, n); /* one word would favour the front visibly */
}

void mt_bernoulli(Mt19937 *g, uint8_t *x, int64_t n, double p)
{
    int64_t below = (int64_t)ceil(p * 0x1p53); /* u < p, without the rounding of either */
    uint64_t word[PAIRS];
    for (int count; n > 0; x += count, n -= count) {
        count = take64(g, n, word);
        for (int i = 0; i < count; i++) x[i] = low53(word[i]) < below;
    }
}

void mt_bernoulli_each_f32(Mt19937 *g, float *x, const float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = unit32(next32(g)) < p[i];
}

void mt_bernoulli_each_f64(Mt19937 *g, double *x, const double *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = unit64(next64(g)) < p[i];
}

void mt_exponential_f32(Mt19937 *g, float *x, int64_t n, double rate)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)(-1.0 / rate * log1p(-unit64(next64(g))));
}

void mt_exponential_f64(Mt19937 *g, double *x, int64_t n, double rate)
{
    for (int64_t i = 0; i < n; i++) x[i] = -1.0 / rate * log1p(-unit64(next64(g)));
}
