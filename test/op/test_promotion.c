/* test_promotion.c - dtypes of results against PyTorch's (oracle/promotion_golden.h), and arithmetic of
 * integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad/autograd.h>
#include <tapegrad/ops.h>

#include "oracle/promotion_golden.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static TensorScope scope;
static int wrong;

static int open_scope(void **state)
{
    (void)state;
    tensor_error_clear();
    wrong = 0;
    scope = tensor_scope_open();
    return 0;
}

static int close_scope(void **state)
{
    (void)state;
    tensor_scope_close(scope);
    return tensor_error() || tensor_live_count() != 0 ? -1 : 0;
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* The letter of the dtype, - where the op refused the operands, with a code that says why. */
static char letter_of(const Tensor *y)
{
    if (y) return "sdhbliut"[tensor_dtype(y)];
    assert_true(tensor_error_code() == TENSOR_EDTYPE || tensor_error_code() == TENSOR_EVALUE);
    tensor_error_clear();
    return '-';
}

static void expect(const Tensor *y, char want, const char *op, const char *what)
{
    char got = letter_of(y);
    if (got == want) return;
    print_error("%s of %s: %c, in PyTorch %c\n", op, what, got, want);
    wrong++;
}

static const char *pair_text(int a, int na, int b, int nb)
{
    static char text[80];
    snprintf(text, sizeof text, "%s%s and %s%s", tensor_dtype_name((TensorDtype)a), na ? "" : " of rank 0",
             tensor_dtype_name((TensorDtype)b), nb ? "" : " of rank 0");
    return text;
}

static Tensor *ones(int dtype, int ndim)
{
    return tensor_ones((TensorShape){ ndim, (const int64_t[]){ 2 } }, (TensorDtype)dtype);
}

static void types(void **state)
{
    (void)state;
    for (int a = 0; a < TENSOR_DTYPES; a++)
        for (int b = 0; b < TENSOR_DTYPES; b++)
            assert_int_equal("sdhbliut"[tensor_promote_types((TensorDtype)a, (TensorDtype)b)],
                             promote_golden[a][b]);
}

static void pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(pair_golden); i++) {
        const char *op = pair_golden[i].op;
        int na = pair_golden[i].ndim[0], nb = pair_golden[i].ndim[1];
        for (int a = 0; a < TENSOR_DTYPES; a++)
            for (int b = 0; b < TENSOR_DTYPES; b++)
                expect(tensor_apply_text(op, (Tensor *[]){ ones(a, na), ones(b, nb) }, 2,
                                         pair_golden[i].options),
                       pair_golden[i].dtype[a][b], op, pair_text(a, na, b, nb));
    }
    assert_int_equal(wrong, 0);
}

static Tensor *ones_of(char shape, int dtype)
{
    const int ndim = shape == 's' ? 0 : shape == 'v' ? 1 : shape == 'm' ? 2 : 3;
    return tensor_ones((TensorShape){ ndim, (const int64_t[]){ 2, 2, 2 } }, (TensorDtype)dtype);
}

static Tensor *product(const char *name, Tensor **x, int n)
{
    if (strcmp(name, "einsum") == 0) return tensor_einsum("ij,jk->ik", TENSOR_LIST(x, n));
    if (strcmp(name, "tensordot") == 0) return tensor_tensordot(x[0], x[1], 1);
    if (strcmp(name, "cross") == 0) {
        Tensor *three = tensor_ones(SHAPE(3), TENSOR_F32);
        return tensor_cross(tensor_to(three, tensor_dtype(x[0])), tensor_to(three, tensor_dtype(x[1])));
    }
    Tensor *all[4] = { NULL };
    memcpy(all, x, (size_t)n * sizeof *x);
    const TensorOp *op = tensor_op_find(name);
    assert_non_null(op);
    return tensor_apply(op, all, op->arity < n ? n : op->arity, NULL);
}

static void products(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(product_golden); i++) {
        const char *shapes = product_golden[i].shapes;
        const int n = (int)strlen(shapes);
        for (int a = 0; a < TENSOR_DTYPES; a++)
            for (int b = 0; b < TENSOR_DTYPES; b++) {
                Tensor *x[4];
                char what[80];
                for (int k = 0; k < n; k++) x[k] = ones_of(shapes[k], k == product_golden[i].other ? b : a);
                snprintf(what, sizeof what, "%s, operand %d %s of %s", tensor_dtype_name((TensorDtype)a),
                         product_golden[i].other, tensor_dtype_name((TensorDtype)b), shapes);
                expect(product(product_golden[i].op, x, n), product_golden[i].dtype[a][b],
                       product_golden[i].op, what);
            }
    }
    assert_int_equal(wrong, 0);
}

/* The text names both dtypes. */
static void refusals_name_the_dtypes(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(3, 4), TENSOR_F32), *w = tensor_ones(SHAPE(5, 4), TENSOR_F64);
    assert_null(tensor_linear(x, w, NULL));
    assert_int_equal(tensor_error_code(), TENSOR_EDTYPE);
    assert_non_null(
        strstr(tensor_error(), "tensor_linear: f32 [3, 4] and f64 [5, 4]: operands must have one dtype"));
    tensor_error_clear();
}

static void alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(alone_golden); i++) {
        const TensorOp *op = tensor_op_find(alone_golden[i].op);
        assert_non_null(op);
        for (int a = 0; a < TENSOR_DTYPES; a++)
            expect(tensor_apply(op, (Tensor *[]){ ones(a, 1) }, 1, NULL), alone_golden[i].dtype[a], op->name,
                   tensor_dtype_name((TensorDtype)a));
    }
    assert_int_equal(wrong, 0);
}

static void scalars(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(scalar_golden); i++) {
        const TensorOp *op = tensor_op_find(scalar_golden[i].op);
        assert_non_null(op);
        double c = scalar_golden[i].c, params[2] = { c, c + 1 };
        for (int a = 0; a < TENSOR_DTYPES; a++) {
            char what[80];
            snprintf(what, sizeof what, "%s of rank %d and %g", tensor_dtype_name((TensorDtype)a),
                     scalar_golden[i].ndim, c);
            expect(tensor_apply(op, (Tensor *[]){ ones(a, scalar_golden[i].ndim) }, 1, params),
                   scalar_golden[i].dtype[a], op->name, what);
        }
    }
    assert_int_equal(wrong, 0);
}

/* ---- values of integers ---------------------------------------------------------------------- */

static Tensor *i32(int32_t v) { return tensor_from_data(&v, SHAPE(1), TENSOR_I32); }
static Tensor *i64(int64_t v) { return tensor_from_data(&v, SHAPE(1), TENSOR_I64); }
static Tensor *u8(uint8_t v) { return tensor_from_data(&v, SHAPE(1), TENSOR_U8); }
static Tensor *truth(bool v) { return tensor_from_data(&v, SHAPE(1), TENSOR_BOOL); }

static void is_whole(Tensor *y, TensorDtype dtype, int64_t want)
{
    assert_non_null(y);
    assert_int_equal(tensor_dtype(y), dtype);
    assert_true(tensor_item_i64(y) == want);
}

/* Modulo 2 to the width. */
static void wraps(void **state)
{
    (void)state;
    is_whole(tensor_add(i32(INT32_MAX), i32(1)), TENSOR_I32, INT32_MIN);
    is_whole(tensor_mul(i32(65536), i32(65537)), TENSOR_I32, 65536);
    is_whole(tensor_neg(i32(INT32_MIN)), TENSOR_I32, INT32_MIN);
    is_whole(tensor_abs(i32(INT32_MIN)), TENSOR_I32, INT32_MIN);
    is_whole(tensor_abs(i64(INT64_MIN)), TENSOR_I64, INT64_MIN);
    is_whole(tensor_sub(i64(INT64_MIN), i64(1)), TENSOR_I64, INT64_MAX);
    is_whole(tensor_square(i64(INT64_C(1) << 32)), TENSOR_I64, 0);
    is_whole(tensor_sub(u8(3), u8(5)), TENSOR_U8, 254);
    is_whole(tensor_neg(u8(1)), TENSOR_U8, 255);
    is_whole(tensor_abs(u8(200)), TENSOR_U8, 200);
    is_whole(tensor_add_scalar(u8(44), 300), TENSOR_U8, 88);
    is_whole(tensor_sub_scalar(u8(44), 300), TENSOR_U8, 0);
    is_whole(tensor_mul_scalar(u8(44), 300), TENSOR_U8, 144);
    is_whole(tensor_add_scalar(u8(44), -3), TENSOR_U8, 41);
    is_whole(tensor_add_scalar(i32(1), 0x1p40), TENSOR_I32, 1);
    is_whole(tensor_rsub_scalar(i32(-5), INT32_MAX), TENSOR_I32, INT32_MIN + 4);
    is_whole(tensor_add_scalar(i64(INT64_C(9007199254740993)), 2), TENSOR_I64, INT64_C(9007199254740995));
}

static void divides(void **state)
{
    (void)state;
    assert_true(tensor_item(tensor_div(i64(7), i64(0))) == INFINITY);
    assert_true(tensor_item(tensor_div(i64(-7), i64(0))) == -INFINITY);
    assert_true(isnan(tensor_item(tensor_div_scalar(i32(0), 0))));
    assert_true(tensor_item(tensor_div(i32(7), u8(2))) == 3.5);
    assert_true(tensor_item(tensor_reciprocal(u8(0))) == INFINITY);
    assert_true(tensor_item(tensor_div_scalar(truth(true), 2)) == .5);
}

static void powers(void **state)
{
    (void)state;
    is_whole(tensor_pow_scalar(i64(-3), 3), TENSOR_I64, -27);
    is_whole(tensor_pow_scalar(i64(3), 39), TENSOR_I64, INT64_C(4052555153018976267));
    is_whole(tensor_pow_scalar(i64(3), 70), TENSOR_I64, INT64_C(2293070008301402073));
    is_whole(tensor_pow_scalar(i64(0), 0), TENSOR_I64, 1);
    is_whole(tensor_pow_scalar(i32(-2), 31), TENSOR_I32, INT32_MIN);
    is_whole(tensor_pow_scalar(u8(3), 5), TENSOR_U8, 243);
    is_whole(tensor_pow_scalar(u8(3), 6), TENSOR_U8, 729 - 512);
    is_whole(tensor_pow_scalar(truth(true), 2), TENSOR_I64, 1);
    static const int64_t negative[][3] = { { 2, -1, 0 },  { 1, -1, 1 }, { -1, -1, -1 },
                                           { -1, -2, 1 }, { 0, -1, 0 }, { 1, INT64_MIN, 1 } };
    for (size_t i = 0; i < COUNT(negative); i++)
        is_whole(tensor_pow(i64(negative[i][0]), i64(negative[i][1])), TENSOR_I64, negative[i][2]);
    is_whole(tensor_pow(u8(255), u8(1)), TENSOR_U8, 255);
    is_whole(tensor_pow(i32(7), u8(3)), TENSOR_I32, 343);
    assert_true(tensor_item(tensor_pow_scalar(i32(2), .5)) == (double)sqrtf(2));
    assert_null(tensor_pow_scalar(i32(2), -1));
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
    assert_null(tensor_pow_scalar(u8(2), 300));
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
}

static void bounds(void **state)
{
    (void)state;
    is_whole(tensor_clamp(i32(5), 0, 2), TENSOR_I32, 2);
    is_whole(tensor_clamp(u8(200), -5, 300), TENSOR_U8, 200);
    is_whole(tensor_clamp(i32(100), 0, 0x1p40), TENSOR_I32, 100);
    is_whole(tensor_clamp(i64(INT64_MAX), 0, 0x1p40), TENSOR_I64, INT64_C(1) << 40);
    is_whole(tensor_clamp(truth(true), 2, 3), TENSOR_I64, 2);
    assert_true(tensor_item(tensor_clamp(i32(5), .5, 2.5)) == 2.5);
    assert_true(tensor_item(tensor_clamp(i32(5), 0, INFINITY)) == 5);
    assert_true(isnan(tensor_item(tensor_clamp(i32(5), 0, NAN))) &&
                isnan(tensor_item(tensor_clamp(i32(5), NAN, 9))));
}

/* Casts round once: what lies beside a tie is no tie, though a double would have it. */
static void casts(void **state)
{
    (void)state;
    const int64_t tie = INT64_C(0x101) << 47;
    for (int64_t by = -1; by <= 1; by++)
        for (int64_t sign = -1; sign <= 1; sign += 2)
            assert_true(tensor_item(tensor_to(i64(sign * (tie + by)), TENSOR_BF16)) ==
                        (double)(sign * (by > 0 ? INT64_C(0x102) << 47 : INT64_C(0x100) << 47)));
    assert_true(tensor_item(tensor_to(i64(65519), TENSOR_F16)) == 65504 &&
                tensor_item(tensor_to(i64(-65520), TENSOR_F16)) == -INFINITY);
}

static void is_refused(Tensor *y, TensorStatus code)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

static Tensor *norm_of(int k, Tensor *x, Tensor *w)
{
    if (k == 0) return tensor_layer_norm(x, SHAPE(4), w);
    if (k == 1) return tensor_layer_norm(x, SHAPE(4), NULL, w);
    if (k == 2) return tensor_group_norm(x, 2, w);
    if (k == 3) return tensor_batch_norm(x, NULL, NULL, w, .training = true);
    if (k == 4) return tensor_batch_norm(x, tensor_detach(w), w);
    if (k == 5) return tensor_instance_norm(x, NULL, NULL, w);
    return tensor_rms_norm(x, SHAPE(4), w);
}

/* The places are in the dtype of x, or f32 beside a half; a weight of rank 0 is a number. */
static void quantiles_and_weights(void **state)
{
    (void)state;
    for (TensorDtype a = TENSOR_F32; a <= TENSOR_BF16; a++)
        for (TensorDtype b = TENSOR_F32; b < TENSOR_DTYPES; b++) {
            Tensor *x = tensor_ones(SHAPE(3), a), *q = tensor_ones(SHAPE(2), b);
            const bool fits = a == b || (b == TENSOR_F32 && a != TENSOR_F64);
            Tensor *y = tensor_quantile(x, .qs = q);
            if (fits) assert_int_equal(tensor_dtype(y), a);
            else is_refused(y, TENSOR_EDTYPE);
            y = tensor_nanquantile(x, .qs = q);
            if (!fits) is_refused(y, TENSOR_EDTYPE);
            assert_int_equal(tensor_dtype(tensor_lerp_tensor(x, x, tensor_ones(SHAPE(), b))), a);
            if (a != b) is_refused(tensor_lerp_tensor(x, x, tensor_ones(SHAPE(3), b)), TENSOR_EDTYPE);
        }
}

/* As PyTorch: the input's dtype, or f32 beside a half; only rms_norm takes any. */
static void norms(void **state)
{
    (void)state;
    for (int k = 0; k < 7; k++)
        for (TensorDtype a = TENSOR_F32; a <= TENSOR_BF16; a++)
            for (TensorDtype b = TENSOR_F32; b <= TENSOR_BF16; b++) {
                const bool fits = a == b || (a >= TENSOR_F16 && b == TENSOR_F32) || k == 6;
                Tensor *x = tensor_randn(SHAPE(2, 4, 4), a), *y = norm_of(k, x, tensor_ones(SHAPE(4), b));
                if (!y != !fits) fail_msg("%d: %s and %s", k, tensor_dtype_name(a), tensor_dtype_name(b));
                if (fits) assert_int_equal(tensor_dtype(y), a);
                else is_refused(y, TENSOR_EDTYPE);
            }
    Tensor *x = tensor_randn(SHAPE(2, 4), TENSOR_F16), *f = tensor_ones(SHAPE(4), TENSOR_F32),
           *h = tensor_ones(SHAPE(4), TENSOR_F16);
    is_refused(tensor_layer_norm(x, SHAPE(4), f, h), TENSOR_EDTYPE);
}

/* Nothing is written that the dtype does not hold. */
static void fills(void **state)
{
    (void)state;
    Tensor *mask = truth(true), *x = i32(5);
    is_refused(tensor_full(SHAPE(2), 1e10, TENSOR_I32), TENSOR_EVALUE);
    is_refused(tensor_full(SHAPE(2), NAN, TENSOR_I64), TENSOR_EVALUE);
    is_refused(tensor_fill_(x, 1e10), TENSOR_EVALUE);
    is_refused(tensor_masked_fill(u8(1), mask, 300), TENSOR_EVALUE);
    is_refused(tensor_masked_fill_(x, mask, -1e10), TENSOR_EVALUE);
    is_whole(x, TENSOR_I32, 5);
    is_whole(tensor_masked_fill(u8(1), mask, -1), TENSOR_U8, 255);
    is_whole(tensor_full(SHAPE(1), -0x1p63, TENSOR_I64), TENSOR_I64, INT64_MIN);
    assert_true(tensor_item(tensor_full(SHAPE(1), 1e10, TENSOR_F16)) == INFINITY);
}

static void means_and_sums(void **state)
{
    (void)state;
    is_refused(tensor_mean(i32(5)), TENSOR_EDTYPE);
    is_refused(tensor_mean(tensor_scalar(5, TENSOR_F32), .dtype = TENSOR_I32), TENSOR_EDTYPE);
    assert_true(tensor_item(tensor_mean(i32(5), .dtype = TENSOR_F64)) == 5);
    is_whole(tensor_sum(truth(true)), TENSOR_I64, 1);
    is_whole(tensor_outer(i32(5), truth(true)), TENSOR_I32, 5);
    is_whole(tensor_kron(u8(5), i64(3)), TENSOR_I64, 15);
    assert_int_equal(tensor_dtype(tensor_logsumexp(i64(3))), TENSOR_F32);
    assert_true(tensor_item(tensor_logsumexp(i64(3))) == 3);
    is_whole(tensor_bucketize(tensor_scalar(2.5, TENSOR_F32), i64(2)), TENSOR_I64, 1);
}

/* Comparisons take integers and numbers as what they are: no value is wrapped or rounded first. */
static void compares(void **state)
{
    (void)state;
    is_whole(tensor_eq_scalar(u8(44), 300), TENSOR_BOOL, 0);
    is_whole(tensor_lt_scalar(u8(200), 300), TENSOR_BOOL, 1);
    is_whole(tensor_gt_scalar(u8(0), -1), TENSOR_BOOL, 1);
    is_whole(tensor_gt_scalar(i32(1), 0x1p40), TENSOR_BOOL, 0);
    is_whole(tensor_gt_scalar(i32(16777217), 16777216.5), TENSOR_BOOL, 1);
    is_whole(tensor_lt_scalar(i64(INT64_MAX), INFINITY), TENSOR_BOOL, 1);
    is_whole(tensor_eq_scalar(i64(3), NAN), TENSOR_BOOL, 0);
    is_whole(tensor_eq_scalar(truth(true), 2), TENSOR_BOOL, 0);
    is_whole(tensor_eq_scalar(truth(true), 1), TENSOR_BOOL, 1);
    is_whole(tensor_eq_scalar(tensor_full(SHAPE(1), .1, TENSOR_F16), .1), TENSOR_BOOL, 1);
    is_whole(tensor_eq_scalar(tensor_full(SHAPE(), .1, TENSOR_BF16), .1), TENSOR_BOOL, 1);
    is_whole(tensor_eq_scalar(tensor_full(SHAPE(), .1, TENSOR_F32), .1), TENSOR_BOOL, 1);
}

static void rounds(void **state)
{
    (void)state;
    const double x[6] = { .5, 1.5, 2.5, -.5, -1.5, 4503599627370497.5 },
                 want[6] = { 0, 2, 2, -0., -2, 4503599627370498. };
    const double *y = tensor_data(tensor_round(tensor_from_data(x, SHAPE(6), TENSOR_F64)));
    for (int i = 0; i < 6; i++) assert_true(y[i] == want[i] && !signbit(y[i]) == !signbit(want[i]));
    assert_true(tensor_item(tensor_sign(tensor_scalar(NAN, TENSOR_F32))) == 0);
    is_whole(tensor_sign(i64(INT64_MIN)), TENSOR_I64, -1);
    is_whole(tensor_sign(truth(true)), TENSOR_BOOL, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)
    const struct CMUnitTest tests[] = { TEST(types),
                                        TEST(pairs),
                                        TEST(products),
                                        TEST(refusals_name_the_dtypes),
                                        TEST(alone),
                                        TEST(scalars),
                                        TEST(wraps),
                                        TEST(divides),
                                        TEST(powers),
                                        TEST(bounds),
                                        TEST(casts),
                                        TEST(fills),
                                        TEST(means_and_sums),
                                        TEST(compares),
                                        TEST(rounds),
                                        TEST(norms),
                                        TEST(quantiles_and_weights) };
    return cmocka_run_group_tests_name("promotion", tests, NULL, NULL);
}
