/* test_half.c - f16 and bf16: every value there and back, every tie, and one rounding from f64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "cpu/elementwise/cast_kernel.h"
#include "device/half.h"
#include <tapegrad/tensor.h>

typedef struct Format {
    const char *name;
    int exponent_bits, mantissa_bits;
    float (*wide)(uint16_t);
    uint16_t (*from_f32)(float);
    uint16_t (*from_f64)(double);
} Format;

static const Format formats[] = {
    { "f16", 5, 10, f16_to_f32, f16_from_f32, f16_from_f64 },
    { "bf16", 8, 7, bf16_to_f32, bf16_from_f32, bf16_from_f64 },
};

/* The definition: sign, exponent, mantissa. */
static double value_of(const Format *f, uint16_t h)
{
    int bias = (1 << (f->exponent_bits - 1)) - 1, top = (1 << f->exponent_bits) - 1;
    int exponent = (h & 0x7fff) >> f->mantissa_bits, mantissa = h & ((1 << f->mantissa_bits) - 1);
    double size = exponent == top ? (mantissa ? (double)NAN : (double)INFINITY)
                  : exponent == 0
                      ? ldexp(mantissa, 1 - bias - f->mantissa_bits)
                      : ldexp(mantissa + (1 << f->mantissa_bits), exponent - bias - f->mantissa_bits);
    return copysign(size, h & 0x8000 ? -1.0 : 1.0);
}

static uint16_t infinity_of(const Format *f)
{
    return (uint16_t)(((1 << f->exponent_bits) - 1) << f->mantissa_bits);
}

static void there_and_back(void **state)
{
    (void)state;
    for (const Format *f = formats; f < formats + 2; f++)
        for (uint32_t u = 0; u < 65536; u++) {
            uint16_t h = (uint16_t)u, quiet = (uint16_t)(1u << (f->mantissa_bits - 1));
            double want = value_of(f, h);
            float x = f->wide(h);
            if (isnan(want)) {
                assert_true(isnan(x));
                assert_int_equal(!!signbit(x), h >> 15);
                assert_int_equal(f->from_f32(x), h | quiet);
                assert_int_equal(f->from_f64((double)x), h | quiet);
                continue;
            }
            assert_true((double)x == want && !signbit(x) == !signbit(want));
            assert_int_equal(f->from_f32(x), h);
            assert_int_equal(f->from_f64((double)x), h);
        }
}

/* Between neighbours h and h + 1: their middle goes to the even one, all else to the nearer one.  The last
 * pair is the largest finite value and what would follow it, which is infinity. */
static void rounding(void **state)
{
    (void)state;
    for (const Format *f = formats; f < formats + 2; f++) {
        uint16_t top = infinity_of(f);
        double beyond = ldexp(1, 1 << (f->exponent_bits - 1));
        for (uint16_t h = 0; h < top; h++) {
            uint16_t next = (uint16_t)(h + 1), even = h % 2 ? next : h;
            double middle = (value_of(f, h) + (next == top ? beyond : value_of(f, next))) / 2;
            for (int negative = 0; negative < 2; negative++) {
                double s = negative ? -1 : 1;
                uint16_t bit = (uint16_t)(negative << 15);
                assert_int_equal(f->from_f64(s * middle), even | bit);
                assert_int_equal(f->from_f64(s * nextafter(middle, 0)), h | bit);
                assert_int_equal(f->from_f64(s * nextafter(middle, INFINITY)), next | bit);
                float single = (float)middle; /* exact, but for the smallest bf16 */
                if ((double)single != middle) continue;
                assert_int_equal(f->from_f32((float)s * single), even | bit);
                assert_int_equal(f->from_f32((float)s * nextafterf(single, 0)), h | bit);
                assert_int_equal(f->from_f32((float)s * nextafterf(single, INFINITY)), next | bit);
            }
        }
    }
}

static void extremes(void **state)
{
    (void)state;
    for (const Format *f = formats; f < formats + 2; f++) {
        uint16_t inf = infinity_of(f);
        assert_int_equal(f->from_f32(INFINITY), inf);
        assert_int_equal(f->from_f64(-(double)INFINITY), inf | 0x8000);
        assert_int_equal(f->from_f64(1e308), inf);
        assert_int_equal(f->from_f64(-0x1p-1074), 0x8000);
        assert_int_equal(f->from_f32(-0.0f), 0x8000);
        assert_int_equal(f->from_f32(half_float(1)), 0); /* the smallest f32 */
        double payload_in_the_last_bit = half_double(UINT64_C(0x7ff0000000000001));
        assert_true(isnan(f->wide(f->from_f64(payload_in_the_last_bit))));
        assert_true(isnan(f->wide(f->from_f32(half_float(0xff800001)))));
    }
    assert_int_equal(f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(f16_from_f32(65520), 0x7c00);
}

/* ---- lines: whatever instructions cast them, the bits are those of half.h --------------------- */

enum { LINE = 65536 };
static uint16_t halves[LINE + 2], back[2 * LINE];
static float floats[2 * LINE];

/* Every f16 and bf16 to f32, from a dense line, from one with steps, and from lines of every short length. */
static void wide_lines(CastLine *line, float (*wide)(uint16_t))
{
    for (int i = 0; i < LINE + 2; i++) halves[i] = (uint16_t)i;
    line((char *)floats, (const char *)halves, LINE, 4, 2);
    for (int i = 0; i < LINE; i++) assert_int_equal(half_bits32(floats[i]), half_bits32(wide((uint16_t)i)));
    line((char *)floats, (const char *)halves, LINE / 2, 8, 4);
    for (int i = 0; i < LINE / 2; i++)
        assert_int_equal(half_bits32(floats[2 * i]), half_bits32(wide((uint16_t)(2 * i))));
    for (int n = 0; n < 40; n++) {
        floats[n] = -7;
        line((char *)floats, (const char *)(halves + 1000), n, 4, 2);
        for (int i = 0; i < n; i++)
            assert_int_equal(half_bits32(floats[i]), half_bits32(wide((uint16_t)(1000 + i))));
        assert_true(floats[n] == -7);
    }
}

/* The floats of every upper half of bits with that lower half: ties, one beside them, payloads of NaNs. */
static void narrow_lines(CastLine *line, uint16_t (*narrow)(float), uint32_t low)
{
    for (uint32_t i = 0; i < LINE; i++) floats[i] = half_float(i << 16 | low);
    line((char *)back, (const char *)floats, LINE, 2, 4);
    for (int i = 0; i < LINE; i++) assert_int_equal(back[i], narrow(floats[i]));
    line((char *)back, (const char *)floats, LINE / 2, 4, 8);
    for (int i = 0; i < LINE / 2; i++) assert_int_equal(back[2 * i], narrow(floats[2 * i]));
}

/* The line gives `want`, from a dense line and from and to one with steps, and writes nothing between. */
static void gives(CastLine *line, const void *from, size_t from_size, const void *want, size_t size)
{
    static char result[16 * LINE], wide[16 * LINE];
    if (!line) return; /* another set's */
    line(result, from, LINE, (int64_t)size, (int64_t)from_size);
    assert_memory_equal(result, want, LINE * size);
    for (size_t i = 0; i < LINE; i++)
        memcpy(wide + 2 * i * from_size, (const char *)from + i * from_size, from_size);
    memset(result, 7, sizeof result);
    line(result, wide, 1000, 2 * (int64_t)size, 2 * (int64_t)from_size);
    for (size_t i = 0; i < 1000; i++) {
        assert_memory_equal(result + 2 * i * size, (const char *)want + i * size, size);
        assert_int_equal(result[(2 * i + 1) * size], 7);
    }
}

/* Those that are brought together of two: every f16, and numbers of every length to both halves. */
static void lines_of_two(CastLine *(*pick)(int, int))
{
    static double f64[LINE];
    static int64_t i64[LINE];
    static int32_t i32[LINE];
    static uint8_t u8[LINE], b8[LINE];
    static uint16_t bf16[LINE], f16[LINE];
    for (int i = 0; i < LINE; i++) {
        const float x = f16_to_f32(halves[i] = (uint16_t)i);
        const bool fits = x - x == 0;
        f64[i] = (double)x, i64[i] = fits ? (int64_t)x : INT64_MIN, i32[i] = fits ? (int32_t)x : INT32_MIN;
        u8[i] = (uint8_t)i64[i], b8[i] = x != 0, bf16[i] = bf16_from_f32(x);
    }
    gives(pick(TENSOR_F16, TENSOR_F64), halves, 2, f64, 8);
    gives(pick(TENSOR_F16, TENSOR_I64), halves, 2, i64, 8);
    gives(pick(TENSOR_F16, TENSOR_I32), halves, 2, i32, 4);
    gives(pick(TENSOR_F16, TENSOR_U8), halves, 2, u8, 1);
    gives(pick(TENSOR_F16, TENSOR_BOOL), halves, 2, b8, 1);
    gives(pick(TENSOR_F16, TENSOR_BF16), halves, 2, bf16, 2);
    for (int i = 0; i < LINE; i++) f16[i] = f16_from_f32(bf16_to_f32((uint16_t)i));
    gives(pick(TENSOR_BF16, TENSOR_F16), halves, 2, f16, 2);
    for (int i = 0; i < LINE; i++) {
        const int64_t bits = (int64_t)(UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(i + 1));
        i64[i] = bits >> i % 63, i32[i] = (int32_t)(bits >> (32 + i % 31)), u8[i] = (uint8_t)i,
        b8[i] = i % 3 == 0;
    }
    for (int i = 0; i < LINE; i++) f16[i] = f16_from_f64((double)i64[i]);
    gives(pick(TENSOR_I64, TENSOR_F16), i64, 8, f16, 2);
    for (int i = 0; i < LINE; i++) f16[i] = f16_from_f64(i32[i]), bf16[i] = bf16_from_f64(i32[i]);
    gives(pick(TENSOR_I32, TENSOR_F16), i32, 4, f16, 2);
    gives(pick(TENSOR_I32, TENSOR_BF16), i32, 4, bf16, 2);
    for (int i = 0; i < LINE; i++) f16[i] = f16_from_f64(u8[i]), bf16[i] = f16_from_f64(b8[i]);
    gives(pick(TENSOR_U8, TENSOR_F16), u8, 1, f16, 2);
    gives(pick(TENSOR_BOOL, TENSOR_F16), b8, 1, bf16, 2);
}

static void lines(void **state)
{
    (void)state;
    static const uint32_t low[] = { 0,      1,      0x0fff, 0x1000, 0x1001, 0x2000, 0x2fff, 0x3000, 0x3001,
                                    0x7fff, 0x8000, 0x8001, 0xefff, 0xf000, 0xf001, 0xffff, 0x5555, 0xe000 };
#if defined(__x86_64__) && !defined(ONE_ISA)
    CastLine *(*const pick[])(int, int) = { cast_line_base, cast_line_avx2, cast_line_avx512 };
#else
    CastLine *(*const pick[])(int, int) = { ISA_PICK(cast_line) };
#endif
    for (size_t isa = 0; isa <= (size_t)cpu_isa() && isa < sizeof pick / sizeof *pick; isa++) {
        wide_lines(pick[isa](TENSOR_F16, TENSOR_F32), f16_to_f32);
        wide_lines(pick[isa](TENSOR_BF16, TENSOR_F32), bf16_to_f32);
        for (size_t i = 0; i < sizeof low / sizeof *low; i++) {
            narrow_lines(pick[isa](TENSOR_F32, TENSOR_F16), f16_from_f32, low[i]);
            narrow_lines(pick[isa](TENSOR_F32, TENSOR_BF16), bf16_from_f32, low[i]);
        }
        lines_of_two(pick[isa]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(rounding),
        cmocka_unit_test(extremes),
        cmocka_unit_test(lines),
    };
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
