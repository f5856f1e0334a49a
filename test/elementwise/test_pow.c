/* test_pow.c - tensor_pow of f64 is within one ulp, as ops.h says: bases near 1 and of 128 orders, exponents
 * that take the result up to e^-700 and e^700. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <tapegrad.h>

enum { COUNT = 1031, ROUNDS = 60 };

static uint64_t random_bits(void)
{
    static uint64_t state = 3;
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static double base(int kind)
{
    const uint64_t u = random_bits();
    const double t = (double)(int32_t)u * 0x1p-31;
    if (kind == 0) return 1 + ldexp(t, -1 - (int)(u >> 32 & 31));
    if (kind == 1) return 1 + t / 4;
    return ldexp(1.5 + t / 2, (int)(u >> 32 & 127) - 64);
}

static void test_ulps_of_f64(void **state)
{
    (void)state;
    static double x[COUNT], y[COUNT];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            const double t = (double)(int64_t)random_bits() * 0x1p-63;
            x[i] = base(i % 3);
            y[i] = x[i] == 1 ? t : (i % 2 ? copysign(700, t) : 700 * t) / log(x[i]);
        }
        TensorScope scope = tensor_scope_open();
        Tensor *power = tensor_pow(tensor_from_data(x, SHAPE(COUNT), TENSOR_F64),
                                   tensor_from_data(y, SHAPE(COUNT), TENSOR_F64));
        assert_non_null(power);
        for (int i = 0; i < COUNT; i++) {
            const double got = ((const double *)tensor_data(power))[i];
            const long double want = powl(x[i], y[i]);
            int exponent;
            frexpl(want, &exponent);
            const double ulps = (double)(fabsl(got - want) / ldexpl(1, exponent - 53));
            if (!(ulps <= 1)) fail_msg("pow(%a, %a) = %a: %g ulp", x[i], y[i], got, ulps);
        }
        tensor_scope_close(scope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ulps_of_f64) };
    return cmocka_run_group_tests_name("pow", tests, NULL, NULL);
}
