/* test_rng.c - the generators against PyTorch's numbers (oracle/rng_golden.h) and Philox against its
 * published ones.
 *
 * Numbers that go through libm are compared within 2 ulp, all others to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "oracle/rng_golden.h"
#include "random/engine.h"
#include "random/philox.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))

enum { MOST = 70000 };

static float x32[MOST];
static double x64[MOST];
static int64_t xi[MOST];
static uint8_t x8[MOST];

static Mt19937 seeded(uint64_t seed)
{
    Mt19937 g;
    mt_seed(&g, seed);
    return g;
}

static uint64_t step(uint64_t h, uint64_t word) { return (h ^ word) * UINT64_C(0x100000001b3); }
static const uint64_t start = UINT64_C(0xcbf29ce484222325);

static uint64_t digest32(const float *x, int64_t n)
{
    uint64_t h = start;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        h = step(h, bits);
    }
    return h;
}

static uint64_t digest64(const double *x, int64_t n)
{
    uint64_t h = start;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        h = step(h, bits);
    }
    return h;
}

static uint64_t digest_i64(const int64_t *x, int64_t n)
{
    uint64_t h = start;
    for (int64_t i = 0; i < n; i++) h = step(h, (uint64_t)x[i]);
    return h;
}

static uint64_t digest8(const uint8_t *x, int64_t n)
{
    uint64_t h = start;
    for (int64_t i = 0; i < n; i++) h = step(h, x[i]);
    return h;
}

static void same_f32(const float *got, const float *want, int64_t n)
{
    assert_memory_equal(got, want, (size_t)n * sizeof *want);
}

static void same_f64(const double *got, const double *want, int64_t n)
{
    assert_memory_equal(got, want, (size_t)n * sizeof *want);
}

static void near_f32(const float *got, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) assert_true(fabsf(got[i] - want[i]) <= 0x1p-22f * fabsf(want[i]));
}

static void near_f64(const double *got, const double *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) assert_true(fabs(got[i] - want[i]) <= 0x1p-51 * fabs(want[i]));
}

static void test_engine(void **state)
{
    (void)state;
    Mt19937 g = seeded(5489);
    uint32_t word = 0;
    for (int i = 0; i < 10000; i++) word = mt_u32(&g);
    assert_int_equal(word, UINT32_C(4123659995)); /* the C++ standard's check of mt19937 */
    assert_true(MT_DEFAULT_SEED == golden_default_seed);

    Mt19937 a = seeded(7), b = seeded(7);
    uint64_t high = mt_u32(&a);
    assert_true(mt_u64(&b) == (high << 32 | mt_u32(&a)));
    assert_true(mt_valid(&a));
    memset(a.mt, 0, sizeof a.mt);
    assert_false(mt_valid(&a));
    b.index = MT_WORDS + 1;
    assert_false(mt_valid(&b));
}

static void test_rand(void **state)
{
    (void)state;
    Mt19937 g = seeded(0);
    mt_uniform_f32(&g, x32, COUNT(golden_rand_f32), 0, 1);
    same_f32(x32, golden_rand_f32, COUNT(golden_rand_f32));
    g = seeded(0);
    mt_uniform_f64(&g, x64, COUNT(golden_rand_f64), 0, 1);
    same_f64(x64, golden_rand_f64, COUNT(golden_rand_f64));

    g = seeded(0);
    mt_uniform_f32(&g, x32, 3, 0, 1);
    mt_uniform_f32(&g, x32, 1000, 0, 1);
    assert_true(digest32(x32, 1000) == golden_rand_f32_digest);
    g = seeded(0);
    mt_uniform_f32(&g, x32, 3, 0, 1); /* f64 draws then straddle the state's end */
    mt_uniform_f64(&g, x64, 1000, 0, 1);
    assert_true(digest64(x64, 1000) == golden_rand_f64_digest);
    g = seeded((UINT64_C(1) << 32) + 5);
    mt_uniform_f32(&g, x32, 1000, 0, 1);
    assert_true(digest32(x32, 1000) == golden_rand_seed_digest);
}

static void test_uniform(void **state)
{
    (void)state;
    Mt19937 g = seeded(1);
    mt_uniform_f32(&g, x32, 3000, -0.1, 0.3);
    same_f32(x32, golden_uniform_f32, COUNT(golden_uniform_f32));
    assert_true(digest32(x32, 3000) == golden_uniform_f32_digest);
    g = seeded(1);
    mt_uniform_f32(&g, x32, COUNT(golden_uniform_end), 1e6, 1e6 + 0.5);
    same_f32(x32, golden_uniform_end, COUNT(golden_uniform_end));
    g = seeded(1);
    mt_uniform_f64(&g, x64, 100, 0x1p52, 0x1p52 + 2);
    assert_true(digest64(x64, 100) == golden_uniform_f64_end);
    g = seeded(1);
    mt_uniform_f64(&g, x64, 3000, -0.1, 0.3);
    same_f64(x64, golden_uniform_f64, COUNT(golden_uniform_f64));
    assert_true(digest64(x64, 3000) == golden_uniform_f64_digest);
}

static void check_half(int bits, const float *rand, uint64_t rand_digest, uint64_t uniform_digest,
                       uint64_t randn_digest)
{
    Mt19937 g = seeded(2);
    mt_uniform_half(&g, x32, 9000, 0, 1, bits);
    same_f32(x32, rand, 12);
    assert_true(digest32(x32, 9000) == rand_digest);
    g = seeded(2);
    mt_uniform_half(&g, x32, 9000, -0.3, 0.7, bits);
    assert_true(digest32(x32, 9000) == uniform_digest);
    g = seeded(4);
    mt_normal_half(&g, x32, 8000, 0, 1, bits);
    assert_true(digest32(x32, 8000) == randn_digest);
}

static void check_half_normal(int bits, const float *want, int64_t n, const float *after)
{
    Mt19937 g = seeded(4);
    mt_normal_half(&g, x32, n, 0, 1, bits);
    same_f32(x32, want, n);
    mt_uniform_f32(&g, x32, 1, 0, 1);
    same_f32(x32, after, 1);
}

static void test_half(void **state)
{
    (void)state;
    check_half(11, golden_rand_f16, golden_rand_f16_digest, golden_uniform_f16_digest,
               golden_randn_f16_digest);
    check_half(8, golden_rand_bf16, golden_rand_bf16_digest, golden_uniform_bf16_digest,
               golden_randn_bf16_digest);
    Mt19937 g = seeded(2);
    mt_uniform_half(&g, x32, 1000, -0x1p-13, 0x1p-13, 11);
    assert_true(digest32(x32, 1000) == golden_uniform_f16_tiny);
    g = seeded(2);
    mt_normal_half(&g, x32, 1000, 0, 60000, 11);
    assert_true(digest32(x32, 1000) == golden_normal_f16_huge);
    check_half_normal(11, golden_randn_f16_5, 5, golden_after_f16_5);
    check_half_normal(11, golden_randn_f16_16, 16, golden_after_f16_16);
    check_half_normal(11, golden_randn_f16_33, 33, golden_after_f16_33);
    check_half_normal(8, golden_randn_bf16_5, 5, golden_after_bf16_5);
    check_half_normal(8, golden_randn_bf16_16, 16, golden_after_bf16_16);
    check_half_normal(8, golden_randn_bf16_33, 33, golden_after_bf16_33);
}

static void test_randn(void **state)
{
    (void)state;
    static const struct {
        const float *want;
        int64_t n;
    } f[] = {
        { golden_randn_f32_1, 1 },   { golden_randn_f32_5, 5 },     { golden_randn_f32_15, 15 },
        { golden_randn_f32_16, 16 }, { golden_randn_f32_17, 17 },   { golden_randn_f32_31, 31 },
        { golden_randn_f32_33, 33 }, { golden_randn_f32_100, 100 },
    };
    static const struct {
        const double *want;
        int64_t n;
    } d[] = {
        { golden_randn_f64_15, 15 },
        { golden_randn_f64_16, 16 },
        { golden_randn_f64_17, 17 },
        { golden_randn_f64_33, 33 },
    };
    for (int i = 0; i < COUNT(f); i++) {
        Mt19937 g = seeded(0);
        mt_normal_f32(&g, x32, f[i].n, 0, 1);
        if (f[i].n < 16) near_f32(x32, f[i].want, f[i].n);
        else same_f32(x32, f[i].want, f[i].n);
    }
    for (int i = 0; i < COUNT(d); i++) {
        Mt19937 g = seeded(0);
        mt_normal_f64(&g, x64, d[i].n, 0, 1);
        near_f64(x64, d[i].want, d[i].n);
    }
    Mt19937 g = seeded(0);
    mt_normal_f32(&g, x32, 40009, 0, 1);
    assert_true(digest32(x32, 40009) == golden_randn_f32_digest);
}

static void test_normal(void **state)
{
    (void)state;
    Mt19937 g = seeded(3);
    mt_normal_f32(&g, x32, 5, 1.3, 0.37);
    near_f32(x32, golden_normal_f32_5, 5);
    g = seeded(3);
    mt_normal_f32(&g, x32, 20, 1.3, 0.37);
    same_f32(x32, golden_normal_f32_20, 20);
    g = seeded(3);
    mt_normal_f64(&g, x64, 5, 1.3, 0.37);
    near_f64(x64, golden_normal_f64_5, 5);
    g = seeded(3);
    mt_normal_f64(&g, x64, 20, 1.3, 0.37);
    near_f64(x64, golden_normal_f64_20, 20);
    g = seeded(3);
    mt_normal_f32(&g, x32, 40000, 1.3, 0.37);
    assert_true(digest32(x32, 40000) == golden_normal_f32_digest);
}

static void test_kept(void **state)
{
    (void)state;
    Mt19937 g = seeded(5);
    mt_normal_f32(&g, x32, 3, 0, 1);
    mt_uniform_f32(&g, x32 + 3, 2, 0, 1);
    mt_normal_f32(&g, x32 + 5, 16, 0, 1);
    assert_true(g.has_normal);
    mt_normal_f32(&g, x32 + 21, 2, 0, 1);
    mt_normal_f32(&g, x32 + 23, 17, 0, 1);
    mt_uniform_f32(&g, x32 + 40, 1, 0, 1);
    near_f32(x32, golden_kept, COUNT(golden_kept));
    mt_seed(&g, 5);
    assert_false(g.has_normal);

    g = seeded(6);
    mt_normal_each(&g, x64, COUNT(golden_each), 0, 1);
    for (int i = 0; i < COUNT(golden_each); i++) x32[i] = (float)x64[i];
    near_f32(x32, golden_each, COUNT(golden_each));
}

static void check_randint(int64_t range, const int64_t *want, uint64_t want_digest)
{
    Mt19937 g = seeded(7);
    mt_randint(&g, xi, 6, -5, range - 5);
    assert_memory_equal(xi, want, 6 * sizeof *want);
    g = seeded(7);
    mt_randint(&g, xi, 1000, -5, range - 5);
    assert_true(digest_i64(xi, 1000) == want_digest);
}

static void test_integers(void **state)
{
    (void)state;
    check_randint(10, golden_randint_10, golden_randint_10_digest);
    check_randint((1 << 28) - 1, golden_randint_below, golden_randint_below_digest);
    check_randint(1 << 28, golden_randint_at, golden_randint_at_digest);
    check_randint(INT64_C(1) << 31, golden_randint_2_31, golden_randint_2_31_digest);
    check_randint(INT64_C(1) << 32, golden_randint_2_32, golden_randint_2_32_digest);
    check_randint(INT64_C(1) << 40, golden_randint_2_40, golden_randint_2_40_digest);
    check_randint(INT64_C(1) << 62, golden_randint_2_62, golden_randint_2_62_digest);
    Mt19937 g = seeded(8);
    for (int i = 0; i < COUNT(golden_random_i64); i++) assert_true(mt_random_i64(&g) == golden_random_i64[i]);
    mt_randint(&g, xi, 100, INT64_MIN, INT64_MAX); /* the widest range: no overflow */
}

static void test_randperm(void **state)
{
    (void)state;
    Mt19937 g = seeded(0);
    mt_randperm(&g, xi, 10);
    assert_memory_equal(xi, golden_randperm_10, sizeof golden_randperm_10);
    g = seeded(9);
    mt_randperm(&g, xi, 33);
    assert_memory_equal(xi, golden_randperm_33, sizeof golden_randperm_33);
    g = seeded(9);
    mt_randperm(&g, xi, 70000);
    assert_true(digest_i64(xi, 70000) == golden_randperm_digest);
    g = seeded(9);
    mt_randperm(&g, xi, 0);
    mt_randperm(&g, xi, 1);
    assert_int_equal(xi[0], 0);
    assert_int_equal(g.index, MT_WORDS); /* nothing to choose, nothing drawn */
}

static void test_bernoulli(void **state)
{
    (void)state;
    Mt19937 g = seeded(10);
    mt_bernoulli(&g, x8, 5000, 0.3);
    assert_memory_equal(x8, golden_bernoulli, sizeof golden_bernoulli);
    assert_true(digest8(x8, 5000) == golden_bernoulli_digest);
    g = seeded(10);
    mt_bernoulli(&g, x8, COUNT(golden_dropout), 1 - 0.1);
    assert_memory_equal(x8, golden_dropout, sizeof golden_dropout);

    for (int i = 0; i < 17; i++) x64[i] = x32[i] = (float)i / 16;
    g = seeded(10);
    mt_bernoulli_each_f32(&g, x32, x32, 17);
    g = seeded(10);
    mt_bernoulli_each_f64(&g, x64, x64, 17);
    for (int i = 0; i < 17; i++) {
        assert_true(x32[i] == (float)golden_bernoulli_f32[i]);
        assert_true(x64[i] == (double)golden_bernoulli_f64[i]);
    }
    mt_bernoulli(&g, x8, 100, 0);
    mt_bernoulli(&g, x8 + 100, 100, 1);
    for (int i = 0; i < 200; i++) assert_int_equal(x8[i], i >= 100);
}

static void test_exponential(void **state)
{
    (void)state;
    Mt19937 g = seeded(11);
    mt_exponential_f32(&g, x32, 20, 1.5);
    near_f32(x32, golden_exponential_f32, 20);
    g = seeded(11);
    mt_exponential_f64(&g, x64, 20, 1.5);
    near_f64(x64, golden_exponential_f64, 20);
}

static void test_trunc_normal(void **state)
{
    (void)state;
    static float scratch32[3001];
    static double scratch64[20];
    Mt19937 g = seeded(12);
    mt_trunc_normal_f32(&g, x32, 20, 0, 1, -1, 1, scratch32, x8);
    same_f32(x32, golden_trunc_bell_f32, 20);
    g = seeded(12);
    mt_trunc_normal_f32(&g, x32, 20, 0, 1, 2, 3, scratch32, x8);
    same_f32(x32, golden_trunc_tail_f32, 20);
    g = seeded(12);
    mt_trunc_normal_f32(&g, x32, 3001, 0.1, 0.7, -1, 1, scratch32, x8);
    assert_true(digest32(x32, 3001) == golden_trunc_bell_digest);
    g = seeded(12);
    mt_trunc_normal_f32(&g, x32, 3001, 0, 1, 0.8, 3, scratch32, x8);
    assert_true(digest32(x32, 3001) == golden_trunc_tail_digest);
    g = seeded(12);
    mt_trunc_normal_f64(&g, x64, 20, 0, 1, -1, 1, scratch64, x8);
    near_f64(x64, golden_trunc_bell_f64, 20);
    g = seeded(12);
    mt_trunc_normal_f64(&g, x64, 20, 0, 1, 2, 3, scratch64, x8);
    near_f64(x64, golden_trunc_tail_f64, 20);
#define SLICE(name, mean, std, a, b)                                  \
    g = seeded(12);                                                   \
    mt_trunc_normal_f32(&g, x32, 12, mean, std, a, b, scratch32, x8); \
    near_f32(x32, golden_trunc_##name##_f32, 12);                     \
    g = seeded(12);                                                   \
    mt_trunc_normal_f64(&g, x64, 12, mean, std, a, b, scratch64, x8); \
    near_f64(x64, golden_trunc_##name##_f64, 12)
    SLICE(right, 0.5, 0.3, 1, 2);
    SLICE(left, -2, 3, -9, -6);
    SLICE(slice, 1, 4, 0.5, 1.25);
}

/* What one epoch of a DataLoader without workers takes from a generator. */
static void test_loader(void **state)
{
    (void)state;
    Mt19937 g = seeded(13);
    mt_random_i64(&g); /* base seed, drawn also without a shuffle */
    mt_uniform_f32(&g, x32, 1, 0, 1);
    same_f32(x32, golden_loader_plain_after, 1);

    g = seeded(13);
    mt_random_i64(&g);
    Mt19937 sampler = seeded((uint64_t)mt_random_i64(&g));
    mt_randperm(&sampler, xi, 10);
    assert_memory_equal(xi, golden_loader_order, sizeof golden_loader_order);
    mt_uniform_f32(&g, x32, 1, 0, 1);
    same_f32(x32, golden_loader_after, 1);

    g = seeded(13); /* a generator of its own serves both purposes */
    mt_random_i64(&g);
    mt_randperm(&g, xi, 10);
    assert_memory_equal(xi, golden_loader_own_order, sizeof golden_loader_own_order);
    mt_randperm(&g, xi, 10); /* the sampler's remainder of 0 elements, drawn all the same */
    mt_uniform_f32(&g, x32, 1, 0, 1);
    same_f32(x32, golden_loader_own_after, 1);
}

/* Known answers of the generator's authors (Random123, kat_vectors). */
static void test_philox_known(void **state)
{
    (void)state;
    static const struct {
        PhiloxBlock counter;
        uint32_t key0, key1;
        PhiloxBlock want;
    } known[] = {
        { { { 0, 0, 0, 0 } }, 0, 0, { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } } },
        { { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff } },
          0xffffffff,
          0xffffffff,
          { { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } } },
        { { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 } },
          0xa4093822,
          0x299f31d0,
          { { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } } },
    };
    for (int i = 0; i < COUNT(known); i++) {
        PhiloxBlock got = philox_rounds(known[i].counter, known[i].key0, known[i].key1);
        assert_memory_equal(&got, &known[i].want, sizeof got);
    }
}

/* Any range of elements, from anywhere, is a part of the whole. */
static void test_philox_ranges(void **state)
{
    (void)state;
    static const int64_t first[] = { 0, 1, 2, 3, 4, 63, 64, 65, 1000, (INT64_C(1) << 34) - 7 };
    static const int64_t n[] = { 0, 1, 2, 5, 64, 129, 1000 };
    const uint64_t seed = UINT64_C(0x123456789abcdef0), offset = (UINT64_C(3) << 32) + 9;
    for (int a = 0; a < COUNT(first); a++)
        for (int b = 0; b < COUNT(n); b++) {
            x32[n[b]] = 7;
            x8[n[b]] = 7;
            philox_uniform_f32(x32, first[a], n[b], seed, offset);
            philox_mask(x8, first[a], n[b], seed, offset, 0.7);
            assert_true(x32[n[b]] == 7 && x8[n[b]] == 7);
            for (int64_t i = 0; i < n[b]; i++) {
                uint32_t word = philox_u32(seed, offset, (uint64_t)(first[a] + i));
                assert_true(x32[i] == philox_unit(word));
                assert_int_equal(x8[i], philox_keep(word, philox_threshold(0.7)));
            }
        }
}

static double kept(double keep, uint64_t seed, uint64_t offset)
{
    int64_t sum = 0;
    philox_mask(x8, 0, MOST, seed, offset, keep);
    for (int64_t i = 0; i < MOST; i++) sum += x8[i];
    return (double)sum / MOST;
}

static void test_philox_mask(void **state)
{
    (void)state;
    assert_true(kept(0, 1, 0) == 0 && kept(-1, 1, 0) == 0 && kept(NAN, 1, 0) == 0);
    assert_true(kept(1, 1, 0) == 1 && kept(2, 1, 0) == 1);
    for (double p = 0.1; p < 1; p += 0.1) /* five standard deviations */
        assert_true(fabs(kept(p, 42, 1) - p) < 5 * sqrt(p * (1 - p) / MOST));
    philox_uniform_f32(x32, 0, 1000, 1, 0);
    uint64_t first = digest32(x32, 1000);
    philox_uniform_f32(x32, 0, 1000, 1, 1);
    assert_true(digest32(x32, 1000) != first);
    philox_uniform_f32(x32, 0, 1000, 2, 0);
    assert_true(digest32(x32, 1000) != first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine),        cmocka_unit_test(test_rand),
        cmocka_unit_test(test_uniform),       cmocka_unit_test(test_half),
        cmocka_unit_test(test_randn),         cmocka_unit_test(test_normal),
        cmocka_unit_test(test_kept),          cmocka_unit_test(test_integers),
        cmocka_unit_test(test_randperm),      cmocka_unit_test(test_bernoulli),
        cmocka_unit_test(test_exponential),   cmocka_unit_test(test_trunc_normal),
        cmocka_unit_test(test_loader),        cmocka_unit_test(test_philox_known),
        cmocka_unit_test(test_philox_ranges), cmocka_unit_test(test_philox_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
