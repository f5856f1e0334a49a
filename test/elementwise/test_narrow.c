/* test_narrow.c - narrow rows (ops.def) have loops in f32, i64 and i32: they are held to what widening gives,
 * f32 to the same op in f64, bits to shifts of one number in C, on ordinary and on special values, at a
 * length that ends within a vector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <tapegrad.h>
#include "cpu/isa.h"

enum { COUNT = 1031, ULPS = 3 };

static double values[2][COUNT];

/* Of both signs and 40 binary orders, with every pair of special values first. */
static void draw(double most)
{
    static const double special[] = { 0, -0., 1, -1, .5, INFINITY, -INFINITY, NAN };
    enum { SPECIAL = sizeof special / sizeof *special };
    uint64_t seed = 5;
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 2; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const double u = (double)(int64_t)seed * 0x1p-63;
            const double v = ldexp(u, -(int)(seed >> 20 & 31));
            values[k][i] = i < SPECIAL * SPECIAL ? special[k ? i % SPECIAL : i / SPECIAL]
                                                 : (double)(float)(i % 2 ? u * most : v);
        }
}

/* ULPS of f32 at the wide result, or at 1 where the formula cancels; else both are the same special value. */
static void compare(const char *name, const char *part, Tensor *narrow, Tensor *wide)
{
    assert_non_null(narrow);
    assert_non_null(wide);
    narrow = tensor_to(narrow, TENSOR_F64), wide = tensor_to(wide, TENSOR_F64);
    const double *a = tensor_data(narrow), *b = tensor_data(wide);
    for (int i = 0; i < COUNT; i++) {
        const double want = (double)(float)b[i], most = fmax(fabs(want), 1);
        if (isnan(want) ? isnan(a[i]) : a[i] == want) continue;
        if (isfinite(want) && fabs(a[i] - b[i]) <= ULPS * most * FLT_EPSILON) continue;
        if (fabs(want) > .999 * (double)FLT_MAX && fabs(a[i]) > .999 * (double)FLT_MAX) continue;
        fail_msg("%s, %s of %g and %g: %.9g, in f64 %.9g", name, part, values[0][i], values[1][i], a[i],
                 b[i]);
    }
}

static void test_floats_are_what_f64_rounds_to(void **state)
{
    static const char *const names[] = {
        "frac",
        "sgn",
        "deg2rad",
        "rad2deg",
        "celu",
        "rpow_scalar",
        "hypot",
        "logaddexp",
        "logaddexp2",
        "clamp_min_tensor",
        "clamp_max_tensor",
        "huber_elements",
        "binary_cross_entropy_logits",
        "bernoulli_log_prob",
        "bernoulli_entropy",
    };
    static const char *const parts[] = { "y", "da", "db" };
    (void)state;
    for (size_t r = 0; r < sizeof names / sizeof *names; r++) {
        const TensorOp *op = tensor_op_find(names[r]);
        Tensor *found[2][3] = { { NULL } };
        TensorScope scope = tensor_scope_open();
        assert_non_null(op);
        draw(20);
        for (int wide = 0; wide < 2; wide++) {
            const TensorDtype dtype = wide ? TENSOR_F64 : TENSOR_F32;
            Tensor *in[2];
            for (int k = 0; k < op->arity; k++)
                in[k] = tensor_requires_grad_(
                    tensor_clone(tensor_to(tensor_from_data(values[k], SHAPE(COUNT), TENSOR_F64), dtype)),
                    true);
            Tensor *y = tensor_apply(op, in, op->arity, NULL);
            found[wide][0] = tensor_detach(y);
            assert_int_equal(tensor_backward(tensor_sum(y)), 0);
            for (int k = 0; k < op->arity; k++) found[wide][1 + k] = tensor_grad(in[k]);
        }
        for (int part = 0; part <= op->arity; part++)
            compare(names[r], parts[part], found[0][part], found[1][part]);
        tensor_scope_close(scope);
    }
}

/* Rare rows with a fast form for f32: so many ulp from what f64 has, also where f32 overflows. */
static void test_fast_forms_round_to_the_nearest(void **state)
{
    const struct {
        const char *name;
        double ulp;
    } rows[] = {
        { "i0", .51 },       { "i1", .51 },    { "erfcx", .51 }, { "ndtr", cpu_isa() < 2 ? .53 : 1.2 },
        { "log_ndtr", .51 }, { "erfinv", .6 },
    };
    static const double special[] = { 0, -0., INFINITY, -INFINITY, NAN, 1e-30, -1e-38, 3e38, -3e38, 8, -8 };
    enum { N = 40000, SPECIAL = sizeof special / sizeof *special };
    static float x[N];
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = i < SPECIAL ? (float)special[i]
               : i < N / 4 ? (float)(90. * (i - N / 8) / (N / 8))
               : i < N / 2 ? (float)ldexp(1 + i % 97 / 97., i % 160 - 140) * (i % 2 ? 1 : -1)
                           : (float)(12. * (i - 3 * N / 4) / (N / 4));
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        TensorScope scope = tensor_scope_open();
        Tensor *narrow = tensor_from_data(x, SHAPE(N), TENSOR_F32), *wide = tensor_to(narrow, TENSOR_F64);
        const float *y = tensor_data(tensor_apply_text(rows[r].name, &narrow, 1, ""));
        const double *want = tensor_data(tensor_apply_text(rows[r].name, &wide, 1, ""));
        for (int i = 0; i < N; i++) {
            const float nearest = (float)want[i];
            if (isnan(nearest) ? isnan(y[i]) : y[i] == nearest) continue;
            const double ulp = (double)(nextafterf(fabsf(nearest), INFINITY) - fabsf(nearest));
            if (!(fabs((double)y[i] - want[i]) <= rows[r].ulp * ulp))
                fail_msg("%s of %a: %a, in f64 %a", rows[r].name, (double)x[i], (double)y[i], want[i]);
        }
        tensor_scope_close(scope);
    }
}

/* The quotient is rounded to f32 before it is cut off, as in PyTorch. */
static void test_quotients(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    draw(9);
    Tensor *x[2];
    for (int k = 0; k < 2; k++)
        x[k] = tensor_to(tensor_from_data(values[k], SHAPE(COUNT), TENSOR_F64), TENSOR_F32);
    const float *y = tensor_data(tensor_trunc_divide(x[0], x[1]));
    for (int i = 0; i < COUNT; i++) {
        const float want = truncf((float)values[0][i] / (float)values[1][i]);
        assert_true(isnan(want) ? isnan(y[i]) : y[i] == want);
    }
    tensor_scope_close(scope);
}

/* Bases that are no positive number go another way than those that are. */
static void test_powers_of_any_base(void **state)
{
    static const double bases[] = { 2, .25, 1, 0, -0., -2, 1e-40, INFINITY, -INFINITY, NAN };
    (void)state;
    draw(9);
    for (size_t k = 0; k < sizeof bases / sizeof *bases; k++) {
        TensorScope scope = tensor_scope_open();
        const double c = (double)(float)bases[k];
        Tensor *x = tensor_from_data(values[0], SHAPE(COUNT), TENSOR_F64);
        compare("rpow_scalar", "y", tensor_rpow_scalar(tensor_to(x, TENSOR_F32), c),
                tensor_rpow_scalar(x, c));
        tensor_scope_close(scope);
    }
}

static void test_predicates(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    draw(9);
    Tensor *x = tensor_to(tensor_from_data(values[0], SHAPE(COUNT), TENSOR_F64), TENSOR_F32);
    const bool *negative = tensor_data(tensor_signbit(x)), *up = tensor_data(tensor_isposinf(x)),
               *down = tensor_data(tensor_isneginf(x));
    for (int i = 0; i < COUNT; i++) {
        const double v = values[0][i];
        if (!isnan(v)) assert_int_equal(negative[i], signbit(v) != 0);
        assert_int_equal(up[i], v == INFINITY);
        assert_int_equal(down[i], v == -INFINITY);
    }
    tensor_scope_close(scope);
}

/* ---- bits ------------------------------------------------------------------------------------ */

static int64_t shifted_left(int64_t a, int64_t b, int width)
{
    const int64_t y = b < 0 || b >= width ? 0 : (int64_t)((uint64_t)a << b);
    return width == 64 ? y : (int32_t)y;
}

static int64_t shifted_right(int64_t a, int64_t b, int width)
{
    for (int64_t i = 0; i < (b < 0 || b >= width ? width : b); i++) a = a < 0 ? ~(~a / 2) : a / 2;
    return a;
}

static void check_bits(const char *name, Tensor *y, const int64_t *want)
{
    y = tensor_to(y, TENSOR_I64);
    assert_non_null(y);
    const int64_t *at = tensor_data(y);
    for (int i = 0; i < COUNT; i++)
        if (at[i] != want[i])
            fail_msg("%s, element %d: %lld, not %lld", name, i, (long long)at[i], (long long)want[i]);
}

static void test_bits_of_each_width(void **state)
{
    static int64_t a[COUNT], b[COUNT], want[COUNT];
    (void)state;
    for (int width = 64; width >= 32; width -= 32) {
        TensorScope scope = tensor_scope_open();
        uint64_t seed = 11;
        for (int i = 0; i < COUNT; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            a[i] = (int64_t)seed >> (i % 50);
            if (width == 32) a[i] = (int32_t)a[i];
            b[i] = i % 3 ? (int64_t)(seed >> 40) % (width + 6) - 3 : i % 2 ? INT32_MIN : INT32_MAX;
        }
        const TensorDtype dtype = width == 32 ? TENSOR_I32 : TENSOR_I64;
        Tensor *x = tensor_to(tensor_from_data(a, SHAPE(COUNT), TENSOR_I64), dtype);
        Tensor *by = tensor_to(tensor_from_data(b, SHAPE(COUNT), TENSOR_I64), dtype);
#define CHECK(call, expression)                                      \
    for (int i = 0; i < COUNT; i++) want[i] = (int64_t)(expression); \
    check_bits(#call, call, want)
        CHECK(tensor_bitwise_left_shift(x, by), shifted_left(a[i], b[i], width));
        CHECK(tensor_bitwise_right_shift(x, by), shifted_right(a[i], b[i], width));
        CHECK(tensor_bitwise_left_shift_scalar(x, 5), shifted_left(a[i], 5, width));
        CHECK(tensor_bitwise_left_shift_scalar(x, width), 0);
        CHECK(tensor_bitwise_right_shift_scalar(x, 5), shifted_right(a[i], 5, width));
        CHECK(tensor_bitwise_right_shift_scalar(x, -1), a[i] < 0 ? -1 : 0);
        CHECK(tensor_bitwise_not(x), ~a[i]);
        CHECK(tensor_bitwise_and(x, by), a[i] & b[i]);
        CHECK(tensor_bitwise_or(x, by), a[i] | b[i]);
        CHECK(tensor_bitwise_xor(x, by), a[i] ^ b[i]);
        CHECK(tensor_bitwise_and_scalar(x, 12), a[i] & 12);
        CHECK(tensor_bitwise_or_scalar(x, 12), a[i] | 12);
        CHECK(tensor_bitwise_xor_scalar(x, 12), a[i] ^ 12);
        tensor_scope_close(scope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats_are_what_f64_rounds_to),
        cmocka_unit_test(test_fast_forms_round_to_the_nearest),
        cmocka_unit_test(test_quotients),
        cmocka_unit_test(test_powers_of_any_base),
        cmocka_unit_test(test_predicates),
        cmocka_unit_test(test_bits_of_each_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
