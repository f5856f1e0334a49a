/* test_linalg_f32.c - matrices of f32 beside those of f64; QR, and pseudo-inverses by it, at their edges. */
#include <tapegrad/debug.h>
#include "linalg_checks.h"

static const int64_t sizes[][2] = { { 1, 1 },   { 2, 2 },   { 5, 3 },   { 3, 5 },  { 40, 40 },
                                    { 70, 33 }, { 33, 70 }, { 45, 33 }, { 33, 45 } };
enum { SIZES = sizeof sizes / sizeof *sizes };

static void assert_f32_near(Tensor *narrow, Tensor *wide, double off)
{
    assert_int_equal(tensor_dtype(narrow), TENSOR_F32);
    const double scale = tensor_item(tensor_amax(tensor_abs(wide)));
    assert_tensor_close(tensor_to(narrow, TENSOR_F64), wide, 0, off * scale);
}

/* f32 computes in f32: of matrices of small and of many rows it is near f64, forward and backward. */
static void test_f32_is_near_f64(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1], k = m < n ? m : n;
        Tensor *eye = tensor_eye(m, n, TENSOR_F64), *wide = tensor_add(noise(SHAPE(2, m, n), 30), eye);
        wide = tensor_add(wide, tensor_mul_scalar(eye, 2 * sqrt((double)k)));
        Tensor *a = tensor_requires_grad_(tensor_detach(tensor_to(wide, TENSOR_F32)), true),
               *b = tensor_requires_grad_(tensor_to(a, TENSOR_F64), true);
        const double off = 1e-6 * (double)(m + n);
        assert_f32_near(tensor_qr(a).r, tensor_qr(b).r, off);
        assert_f32_near(tensor_matmul(tensor_qr(a).q, tensor_qr(a).r), b, off);
        assert_f32_near(tensor_svdvals(a), tensor_svdvals(b), off);
        assert_f32_near(tensor_pinv(a), tensor_pinv(b), 10 * off);
        assert_f32_near(tensor_lu(a).u, tensor_lu(b).u, 10 * off);
        if (m == n) assert_f32_near(tensor_inv(a), tensor_inv(b), 10 * off);
        if (m == n)
            assert_f32_near(tensor_eigh(tensor_add(a, tensor_mT(a))).values,
                            tensor_eigh(tensor_add(b, tensor_mT(b))).values, off);
        Tensor *y = tensor_sum(tensor_square(tensor_pinv(a))), *z = tensor_sum(tensor_square(tensor_pinv(b)));
        assert_f32_near(tensor_gradients(y, a), tensor_gradients(z, b), 100 * off);
    }
}

/* By QR where no singular value is near the bound, each matrix of a batch for itself. */
static void test_pinv_of_a_batch_of_any_rank(void **state)
{
    (void)state;
    Tensor *full = noise(SHAPE(6, 4), 31),
           *less = tensor_matmul(noise(SHAPE(6, 2), 32), noise(SHAPE(2, 4), 33));
    Tensor *both = tensor_stack(TENSORS(full, less)), *y = tensor_pinv(both);
    assert_true(same_bits(tensor_select(y, 0, 0), tensor_pinv(full)));
    assert_true(same_bits(tensor_select(y, 0, 1), tensor_pinv(less)));
    assert_tensor_close(tensor_matmul(tensor_matmul(both, y), both), both, 0, 1e-11);
    TensorSvd f = tensor_svd(full, .full_matrices = false);
    Tensor *by_svd = tensor_matmul(tensor_div(tensor_mT(f.vh), f.s), tensor_mT(f.u));
    assert_tensor_close(tensor_pinv(full), by_svd, 0, 1e-12);
    assert_tensor_close(tensor_pinv(tensor_mT(full)), tensor_mT(by_svd), 0, 1e-12);
    Tensor *cut = tensor_pinv(full, .atol = tensor_item(tensor_select(f.s, 0, 3)) * 1.01);
    assert_int_equal(tensor_item_i64(tensor_matrix_rank(cut)), 3);
}

/* Householder's columns may hold zeros, NaN, and numbers whose squares overflow or vanish. */
static void test_qr_of_extreme_columns(void **state)
{
    (void)state;
    static const double sizes_of[] = { 1e300, 1e-300, 1 };
    for (int i = 0; i < 3; i++) {
        Tensor *a = tensor_mul_scalar(noise(SHAPE(7, 5), 34), sizes_of[i]);
        TensorQr f = tensor_qr(a);
        assert_tensor_close(tensor_div_scalar(tensor_matmul(f.q, f.r), sizes_of[i]),
                            tensor_div_scalar(a, sizes_of[i]), 0, 1e-13);
        assert_identity(tensor_matmul(tensor_mT(f.q), f.q));
    }
    for (int i = 0; i < 2; i++) { /* one element far larger than the others of its column */
        Tensor *a = noise(SHAPE(4, 3), 37);
        ((double *)tensor_data(a))[0] = i ? 1e160 : 1e240;
        TensorQr f = tensor_qr(a);
        assert_identity(tensor_matmul(tensor_mT(f.q), f.q));
    }
    assert_identity(tensor_matmul(tensor_mT(tensor_qr(tensor_zeros(SHAPE(4, 3), TENSOR_F64)).q),
                                  tensor_qr(tensor_zeros(SHAPE(4, 3), TENSOR_F64)).q));
    assert_true(isnan(tensor_item(tensor_sum(tensor_qr(MAT(2, 1, 0, (double)NAN, 1)).r))));
}

/* What is left of a dependent column may be so small that its inverse is infinite. */
static void test_qr_of_tiny_matrices(void **state)
{
    (void)state;
    static const double sizes_of[] = { 1e-30, 1e-40, 1e-300, 1e-310 };
    for (int i = 0; i < 4; i++) {
        const TensorQr f = tensor_qr(tensor_full(SHAPE(3, 2), sizes_of[i], i < 2 ? TENSOR_F32 : TENSOR_F64));
        Tensor *q = tensor_to(f.q, TENSOR_F64);
        assert_tensor_close(tensor_matmul(tensor_mT(q), q), tensor_eye(2, 2, TENSOR_F64), 0,
                            i < 2 ? 1e-6 : 1e-12);
    }
}

/* Reflections of what is 0, and sizes near the ends of the range, which only LAPACK scales. */
static void test_svd_of_low_rank_and_extreme_sizes(void **state)
{
    (void)state;
    static const double sizes_of[] = { 0, 1e-300, 1e-150, 1, 1e150, 1e300 };
    for (int i = 0; i < 12; i++) {
        const int64_t m = i % 2 ? 40 : 30, n = i % 2 ? 30 : 40;
        Tensor *a = tensor_matmul(noise(SHAPE(m, 2), 35), noise(SHAPE(2, n), 36));
        TensorSvd f = tensor_svd(tensor_mul_scalar(a, sizes_of[i / 2]), .full_matrices = true);
        assert_identity(tensor_matmul(tensor_mT(f.u), f.u));
        assert_identity(tensor_matmul(f.vh, tensor_mT(f.vh)));
        if (i < 2) continue;
        Tensor *s = tensor_div_scalar(f.s, sizes_of[i / 2]), *u = tensor_narrow(f.u, 1, 0, 30);
        assert_tensor_close(tensor_matmul(tensor_mul(u, s), tensor_narrow(f.vh, 0, 0, 30)), a, 0, 1e-11);
        assert_tensor_close(tensor_narrow(s, 0, 2, 28), tensor_zeros(SHAPE(28), TENSOR_F64), 0, 1e-12);
    }
}

/* In memory that held NaN before. */
static void test_svd_in_used_memory(void **state)
{
    (void)state;
    static const int64_t sizes_of[][2] = { { 40, 30 }, { 40, 40 }, { 33, 45 }, { 100, 100 } };
    for (int i = 0; i < 8; i++) {
        const int64_t m = sizes_of[i / 2][0], n = sizes_of[i / 2][1];
        Tensor *a = tensor_to(noise(SHAPE(m, n), 38), i % 2 ? TENSOR_F32 : TENSOR_F64);
        TensorScope scope = tensor_scope_open();
        for (int64_t k = 64; k <= 1 << 17; k += k / 2) tensor_full(SHAPE(k), (double)NAN, TENSOR_F64);
        tensor_scope_close(scope);
        TensorSvd f = tensor_svd(a, .full_matrices = false);
        assert_tensor_close(tensor_matmul(tensor_mul(f.u, f.s), f.vh), a, 0, i % 2 ? 1e-4 : 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(test_f32_is_near_f64),
                                        TEST(test_pinv_of_a_batch_of_any_rank),
                                        TEST(test_qr_of_extreme_columns),
                                        TEST(test_qr_of_tiny_matrices),
                                        TEST(test_svd_of_low_rank_and_extreme_sizes),
                                        TEST(test_svd_in_used_memory) };
    return cmocka_run_group_tests_name("linalg f32", tests, NULL, NULL);
}
