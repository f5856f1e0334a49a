/* test_special.c - special functions against values that are right to the last bit (oracle/special_golden.h):
 * errors in ulp of the result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include "cpu/elementwise/special_pairs.h"
#include "cpu/math/special.h"

#include "oracle/special_golden.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *name;
    double (*unary)(double);
    double (*binary)(double, double);
    double most; /* ulp; ops.h says so too */
} functions[] = {
    { "i0", special_i0, NULL, 10 },
    { "i1", special_i1, NULL, 10 },
    { "erfcx", special_erfcx, NULL, 4 },
    { "ndtr", special_ndtr, NULL, 4 },
    { "log_ndtr", special_log_ndtr, NULL, 4 },
    { "ndtri", special_ndtri, NULL, 8 },
    { "zeta", NULL, special_hurwitz, 12 },
    { "igamma", NULL, special_igamma, 60 },
    { "igammac", NULL, special_igammac, 60 },
};

static double ulps(double got, double want)
{
    return fabs(got - want) / (nextafter(fabs(want), INFINITY) - fabs(want));
}

static void digits(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t k = 0; k < COUNT(functions); k++) {
        double worst = 0, at[2] = { 0 };
        int tried = 0;
        for (size_t i = 0; functions[k].unary && i < COUNT(unary_golden); i++) {
            if (strcmp(unary_golden[i].name, functions[k].name) != 0) continue;
            const double x = unary_golden[i].x[0], off = ulps(functions[k].unary(x), unary_golden[i].y);
            tried++;
            if (!(off <= worst)) worst = off, at[0] = x;
        }
        for (size_t i = 0; functions[k].binary && i < COUNT(binary_golden); i++) {
            if (strcmp(binary_golden[i].name, functions[k].name) != 0) continue;
            const double *x = binary_golden[i].x;
            const double off = ulps(functions[k].binary(x[0], x[1]), binary_golden[i].y);
            tried++;
            if (!(off <= worst)) worst = off, at[0] = x[0], at[1] = x[1];
        }
        assert_true(tried >= 36);
        if (worst <= functions[k].most) continue;
        print_error("%s(%.17g, %.17g): %.1f ulp, at most %g\n", functions[k].name, at[0], at[1], worst,
                    functions[k].most);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* The rows of these functions in f64, beside the plain ones: of the golden arguments, and from -45 to 45. */
static void rows(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        Tensor *(*row)(Tensor *x);
    } of[] = { { "i0", tensor_i0 },
               { "i1", tensor_i1 },
               { "erfcx", tensor_erfcx },
               { "ndtr", tensor_ndtr },
               { "log_ndtr", tensor_log_ndtr } };
    enum { STEPS = 9001 };
    int wrong = 0;
    for (size_t k = 0; k < COUNT(of); k++) {
        double x[STEPS], y[STEPS], exact[STEPS];
        int n = 0;
        for (size_t i = 0; i < COUNT(unary_golden); i++)
            if (strcmp(unary_golden[i].name, of[k].name) == 0)
                x[n] = unary_golden[i].x[0], exact[n++] = unary_golden[i].y;
        const int golden = n;
        for (; n < STEPS; n++) x[n] = n * .01 - 45, exact[n] = functions[k].unary(x[n]);
        TensorScope scope = tensor_scope_open();
        assert_int_equal(
            tensor_copy_to(of[k].row(tensor_from_data(x, SHAPE(STEPS), TENSOR_F64)), y, sizeof y), 0);
        tensor_scope_close(scope);
        for (int i = 0; i < STEPS; i++) {
            const double most = functions[k].most * (i < golden ? 1 : 2);
            if (y[i] == exact[i] || ulps(y[i], exact[i]) <= most) continue;
            print_error("row %s(%.17g): %.1f ulp, at most %g\n", of[k].name, x[i], ulps(y[i], exact[i]),
                        most);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* In f64, in a vector and alone. */
static double row_of(Tensor *(*row)(Tensor *x), double x)
{
    double many[16], y[16], one;
    for (int i = 0; i < 16; i++) many[i] = x;
    TensorScope scope = tensor_scope_open();
    assert_int_equal(tensor_copy_to(row(tensor_from_data(many, SHAPE(16), TENSOR_F64)), y, sizeof y), 0);
    assert_int_equal(tensor_copy_to(row(tensor_from_data(many, SHAPE(1), TENSOR_F64)), &one, sizeof one), 0);
    tensor_scope_close(scope);
    for (int i = 0; i < 16; i++)
        assert_true(memcmp(y + i, &one, sizeof one) == 0 || (y[i] != y[i] && one != one));
    return one;
}

static void ends_of_rows(void **state)
{
    (void)state;
    assert_true(row_of(tensor_i0, 0) == 1 && row_of(tensor_i1, 0) == 0 && isinf(row_of(tensor_i0, -800)));
    assert_true(row_of(tensor_i1, -800) == -INFINITY && isnan(row_of(tensor_i0, NAN)));
    assert_true(row_of(tensor_i0, INFINITY) == INFINITY && row_of(tensor_i1, -INFINITY) == -INFINITY);
    assert_true(row_of(tensor_erfcx, INFINITY) == 0 && isinf(row_of(tensor_erfcx, -30)));
    assert_true(row_of(tensor_erfcx, 0) == 1 && isinf(row_of(tensor_erfcx, -INFINITY)));
    assert_true(row_of(tensor_erfcx, 1e300) > 0 && isnan(row_of(tensor_erfcx, NAN)));
    assert_true(row_of(tensor_ndtr, -INFINITY) == 0 && row_of(tensor_ndtr, INFINITY) == 1);
    assert_true(row_of(tensor_ndtr, 0) == .5 && isnan(row_of(tensor_ndtr, NAN)));
    assert_true(row_of(tensor_log_ndtr, -INFINITY) == -INFINITY && row_of(tensor_log_ndtr, INFINITY) == 0);
    assert_true(row_of(tensor_log_ndtr, -1e160) == -INFINITY && isnan(row_of(tensor_log_ndtr, NAN)));
    assert_true(fabs(row_of(tensor_log_ndtr, 0) + 0.69314718055994531) < 1e-15);
}

static void ends(void **state)
{
    (void)state;
    assert_true(special_i0(0) == 1 && special_i1(0) == 0 && isinf(special_i0(-800)) &&
                special_i1(-800) == -INFINITY);
    assert_true(special_erfcx(INFINITY) == 0 && isinf(special_erfcx(-30)) && isinf(special_erfcx(-INFINITY)));
    assert_true(special_erfcx(1e300) > 0 && isnan(special_erfcx(NAN)));
    assert_true(special_ndtr(-INFINITY) == 0 && special_ndtr(INFINITY) == 1 && special_ndtr(0) == .5);
    assert_true(special_log_ndtr(-INFINITY) == -INFINITY && special_log_ndtr(INFINITY) == 0);
    assert_true(special_ndtri(0) == -INFINITY && special_ndtri(1) == INFINITY && special_ndtri(.5) == 0);
    assert_true(isnan(special_ndtri(-.1)) && isnan(special_ndtri(1.1)) && isnan(special_ndtri(NAN)));
    assert_true(isnan(special_i0(NAN)) && isnan(special_ndtr(NAN)) && isnan(special_log_ndtr(NAN)));
    assert_true(special_hurwitz(INFINITY, 2) == 0 && special_hurwitz(INFINITY, 1) == 1);
}

/* Of very large a, by Temme's expansion: half on either side, and the sum is 1. */
static void incomplete_gamma_of_large_numbers(void **state)
{
    (void)state;
    static const double large[] = { 1e8, 2e9, 1e12, 1e15 };
    for (int i = 0; i < 4; i++) {
        const double a = large[i], step = sqrt(a);
        for (int k = -3; k <= 3; k++) {
            const double p = special_igamma(a, a + k * step), q = special_igammac(a, a + k * step);
            assert_true(fabs(p + q - 1) < 1e-12);
            assert_true(fabs(p - special_ndtr(k)) < 1 / step);
        }
        assert_true(special_igamma(a, a / 2) == 0 && special_igammac(a, a / 2) == 1);
        assert_true(special_igamma(a, 2 * a) == 1 && special_igammac(a, 2 * a) == 0);
    }
}

/* By vectors, for results that are rounded to f32: right to 2^-29 of the plain form, also beyond what they
 * take. */
static void incomplete_gamma_by_vectors(void **state)
{
    (void)state;
    enum { SIDE = 40, COUNT_ = SIDE * SIDE + 3 };
    static double a[COUNT_], x[COUNT_], y[COUNT_];
    for (int i = 0; i < COUNT_; i++)
        a[i] = exp2(i / SIDE % SIDE * .5 - 11), x[i] = exp2(i % SIDE * .6 - 13.3);
    a[0] = NAN, x[1] = -1, x[2] = INFINITY, a[3] = 0, x[4] = 0;
    for (int kind = SPECIAL_IGAMMA; kind <= SPECIAL_IGAMMAC; kind++) {
        const SpecialArgs args = { .kind = kind, .rounded = true, .count = COUNT_, .a = a, .b = x, .y = y };
        ISA_PICK_AVX2(special_rounded)(&args, 0, COUNT_);
        for (int i = 0; i < COUNT_; i++) {
            const double want = special_pair(kind, a[i], x[i]);
            if (isnan(want) ? isnan(y[i]) : fabs(y[i] - want) <= 0x1p-29 * fabs(want) + 1e-300) continue;
            print_error("kind %d of %.17g, %.17g: %.17g, want %.17g\n", kind, a[i], x[i], y[i], want);
            assert_true(false);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(digits),
                                        cmocka_unit_test(rows),
                                        cmocka_unit_test(ends_of_rows),
                                        cmocka_unit_test(ends),
                                        cmocka_unit_test(incomplete_gamma_of_large_numbers),
                                        cmocka_unit_test(incomplete_gamma_by_vectors) };
    return cmocka_run_group_tests_name("special", tests, NULL, NULL);
}
