/* test_linalg.c - linear algebra by LAPACK: that it is found or its absence said, what a factorisation
 * multiplies back to, what must be refused, the gradients of symmetric matrices (which the generated tests
 * cannot perturb element by element). */
#include <stdio.h>
#include <tapegrad/debug.h>
#include "linalg_checks.h"

/* ---- matrices -------------------------------------------------------------------------------- */

static Tensor *definite(Tensor *x)
{
    const int64_t n = tensor_size(x, -1);
    return tensor_add(tensor_matmul(x, tensor_mT(x)), tensor_eye(n, n, TENSOR_F64));
}

static Tensor *symmetric(Tensor *x) { return tensor_add(x, tensor_mT(x)); }

/* ---- LAPACK itself: the first test, for once found it stays ---------------------------------- */

static void test_without_lapack_the_error_says_what_to_install(void **state)
{
    (void)state;
    const char *was = getenv("TAPEGRAD_LAPACK");
    char *copy = was ? strdup(was) : NULL;
    Tensor *a = definite(noise(SHAPE(70, 70), 1));
    setenv("TAPEGRAD_LAPACK", "/nowhere/liblapack.so", 1);
    assert_null(tensor_svd(a).u);
    assert_non_null(strstr(tensor_error(), "needs LAPACK: TAPEGRAD_LAPACK is /nowhere/liblapack.so"));
    tensor_error_clear();
    assert_identity(tensor_matmul(tensor_inv(a), a)); /* systems, QR and Cholesky do without */
    assert_non_null(tensor_qr(a).r);
    assert_tensor_close(tensor_cholesky(a, .upper = true), tensor_mT(tensor_cholesky(a)), 0, 1e-11);
    setenv("TAPEGRAD_LAPACK", "libm.so.6", 1);
    assert_null(tensor_eigh(a).values);
    assert_non_null(strstr(tensor_error(), "libm.so.6 has no dgesdd_"));
    assert_tensor_error(tensor_svdvals(a), TENSOR_EDEVICE);
    if (copy) setenv("TAPEGRAD_LAPACK", copy, 1);
    else unsetenv("TAPEGRAD_LAPACK");
    free(copy);
    assert_identity(tensor_matmul(tensor_inv(a), a));
}

/* ---- identities ------------------------------------------------------------------------------ */

static const int64_t sizes[][2] = { { 1, 1 },   { 2, 2 },   { 5, 3 },   { 3, 5 },  { 40, 40 },
                                    { 70, 33 }, { 33, 70 }, { 45, 33 }, { 33, 45 } };
enum { SIZES = sizeof sizes / sizeof *sizes };

static void test_factors_multiply_back(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1];
        Tensor *a = noise(SHAPE(2, m, n), 3);
        for (int full = 0; full < 2; full++) {
            TensorSvd f = tensor_svd(a, .full_matrices = full);
            const int64_t k = tensor_size(f.s, -1);
            Tensor *us = tensor_mul(tensor_narrow(f.u, -1, 0, k), tensor_unsqueeze(f.s, -2));
            assert_tensor_close(tensor_matmul(us, tensor_narrow(f.vh, -2, 0, k)), a, 0, 1e-11);
            assert_identity(tensor_matmul(tensor_mT(f.u), f.u));
            assert_identity(tensor_matmul(f.vh, tensor_mT(f.vh)));
            assert_int_equal(tensor_size(f.u, -1), full ? m : k);
            assert_true(tensor_allclose(f.s, tensor_sort(f.s, .descending = true), 0, 0, false));
            TensorQr q = tensor_qr(a, .mode = full ? TENSOR_QR_COMPLETE : TENSOR_QR_REDUCED);
            assert_tensor_close(tensor_matmul(q.q, q.r), a, 0, 1e-11);
            assert_identity(tensor_matmul(tensor_mT(q.q), q.q));
            assert_true(tensor_equal(q.r, tensor_triu(q.r)));
        }
    }
}

/* Above 64 rows by halves: what multiplies back, and singular matrices are found out. */
static void test_larger_matrices_by_blocks(void **state)
{
    static const int64_t large[][2] = { { 65, 65 },  { 131, 131 }, { 131, 70 },
                                        { 70, 131 }, { 9, 90 },    { 90, 9 } };
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        const int64_t m = large[i][0], n = large[i][1];
        Tensor *a = noise(SHAPE(2, m, n), 6);
        TensorLu f = tensor_lu(a);
        assert_tensor_close(tensor_matmul(f.p, tensor_matmul(f.l, f.u)), a, 0, 1e-12);
        assert_true(tensor_item(tensor_amax(tensor_abs(f.l))) <= 1);
    }
    Tensor *a = noise(SHAPE(2, 97, 97), 7), *b = noise(SHAPE(2, 97, 5), 8), *zero = tensor_clone(a);
    assert_tensor_close(tensor_matmul(a, tensor_solve(a, b)), b, 0, 1e-9);
    assert_identity(tensor_matmul(a, tensor_inv(a)));
    assert_tensor_close(tensor_slogdet(a).logabsdet, tensor_log(tensor_abs(tensor_det(a))), 1e-10, 1e-10);
    Tensor *eye = tensor_eye(97, 97, TENSOR_F64);
    for (int way = 0; way < 8; way++) {
        const bool upper = way & 1, left = way & 2, unit = way & 4;
        Tensor *t = tensor_add(tensor_mul_scalar(a, .1), eye), *x = left ? b : tensor_mT(b);
        t = upper ? tensor_triu(t) : tensor_tril(t);
        Tensor *y = tensor_solve_triangular(t, x, .upper = upper, .left = left, .unitriangular = unit);
        if (unit) t = tensor_add(upper ? tensor_triu(t, .diagonal = 1) : tensor_tril(t, .diagonal = -1), eye);
        assert_tensor_close(left ? tensor_matmul(t, y) : tensor_matmul(y, t), x, 0, 1e-9);
    }
    assert_non_null(tensor_zero_(tensor_select(tensor_select(zero, 0, 1), -1, 80)));
    assert_null(tensor_solve(zero, b));
    assert_non_null(strstr(tensor_error(), "81"));
    tensor_error_clear();
    assert_true(tensor_item(tensor_select(tensor_det(zero), 0, 1)) == 0);
}

static void test_square_factors_multiply_back(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 80; n += 13) { /* Cholesky: up to 64 by loops, then by blocks */
        Tensor *x = noise(SHAPE(2, n, n), 4), *d = definite(x), *s = symmetric(x);
        Tensor *l = tensor_cholesky(d), *u = tensor_cholesky(d, .upper = true);
        assert_true(tensor_equal(l, tensor_tril(l)));
        assert_tensor_close(tensor_matmul(l, tensor_mT(l)), d, 0, 1e-11);
        assert_tensor_close(u, tensor_mT(l), 0, 1e-11);
        assert_tensor_close(tensor_cholesky_solve(tensor_matmul(d, x), l), x, 0, 1e-9);
        assert_tensor_close(tensor_cholesky_solve(tensor_matmul(d, x), u, .upper = true), x, 0, 1e-9);
        TensorEigh e = tensor_eigh(s);
        assert_tensor_close(
            tensor_matmul(tensor_mul(e.vectors, tensor_unsqueeze(e.values, -2)), tensor_mT(e.vectors)), s, 0,
            1e-11);
        assert_identity(tensor_matmul(tensor_mT(e.vectors), e.vectors));
        assert_true(tensor_equal(e.values, tensor_sort(e.values)));
        assert_tensor_close(tensor_eigvalsh(s), e.values, 0, tight);
        assert_tensor_close(tensor_det(d), tensor_exp(tensor_logdet(d)), 1e-9, 0);
        assert_tensor_close(tensor_prod(tensor_svdvals(d), -1), tensor_det(d), 1e-9, 0);
        assert_tensor_close(tensor_matmul(d, tensor_solve(d, x)), x, 0, 1e-10);
        assert_tensor_close(tensor_matmul(tensor_solve(d, x, .left = false), d), x, 0, 1e-10);
    }
}

/* The corner of the factor is the factor of the corner: up to 64 rows the plain loops. */
static void test_cholesky_by_blocks_is_that_by_loops(void **state)
{
    (void)state;
    Tensor *d = definite(noise(SHAPE(131, 131), 14)), *l = tensor_cholesky(d);
    Tensor *corner = tensor_narrow(tensor_narrow(d, 0, 0, 64), 1, 0, 64);
    assert_tensor_close(tensor_narrow(tensor_narrow(l, 0, 0, 64), 1, 0, 64), tensor_cholesky(corner), 0,
                        1e-12);
    assert_tensor_close(tensor_matmul(l, tensor_mT(l)), d, 0, 1e-11);
    assert_true(tensor_equal(tensor_triu(l, .diagonal = 1), tensor_zeros_like(l)));
    assert_non_null(tensor_fill_(tensor_narrow(tensor_select(d, 0, 99), 0, 99, 1), -1));
    assert_null(tensor_cholesky(d));
    assert_says(TENSOR_EVALUE, "its leading minor of order 100 is not positive");
}

static void test_moore_penrose(void **state)
{
    (void)state;
    Tensor *a = tensor_matmul(noise(SHAPE(2, 6, 3), 5), noise(SHAPE(2, 3, 4), 6)), *y = tensor_pinv(a);
    assert_tensor_close(tensor_matmul(tensor_matmul(a, y), a), a, 0, 1e-11);
    assert_tensor_close(tensor_matmul(tensor_matmul(y, a), y), y, 0, 1e-11);
    assert_tensor_close(tensor_mT(tensor_matmul(a, y)), tensor_matmul(a, y), 0, 1e-11);
    assert_tensor_close(tensor_mT(tensor_matmul(y, a)), tensor_matmul(y, a), 0, 1e-11);
    Tensor *rank = tensor_matrix_rank(a);
    assert_int_equal(tensor_dtype(rank), TENSOR_I64);
    assert_int_equal(tensor_item_i64(tensor_select(rank, 0, 1)), 3);
    Tensor *b = noise(SHAPE(2, 6, 1), 7), *off = tensor_sub(tensor_matmul(a, tensor_lstsq(a, b)), b);
    assert_tensor_close(tensor_matmul(tensor_mT(a), off), tensor_zeros(SHAPE(2, 4, 1), TENSOR_F64), 0, 1e-11);
}

static void test_any_strides_give_the_same_bits(void **state)
{
    (void)state;
    Tensor *a = noise(SHAPE(2, 5, 5), 8), *b = noise(SHAPE(2, 5, 5), 9), *d = definite(a);
    Tensor *at = tensor_mT(tensor_contiguous(tensor_mT(a))), *bt = tensor_mT(tensor_contiguous(tensor_mT(b)));
    Tensor *dt = tensor_mT(tensor_contiguous(tensor_mT(d)));
    assert_false(tensor_is_contiguous(at));
    assert_true(same_bits(tensor_solve(a, b), tensor_solve(at, bt)));
    assert_true(same_bits(tensor_solve_triangular(a, b, .upper = true),
                          tensor_solve_triangular(at, bt, .upper = true)));
    assert_true(same_bits(tensor_cholesky(d), tensor_cholesky(dt)));
    assert_true(same_bits(tensor_det(a), tensor_det(at)));
    assert_true(same_bits(tensor_qr(a).q, tensor_qr(at).q));
    assert_true(same_bits(tensor_svd(a).vh, tensor_svd(at).vh));
    assert_true(same_bits(tensor_eigh(d).vectors, tensor_eigh(dt).vectors));
    Tensor *one = tensor_select(a, 0, 1); /* each matrix of a batch as if it were alone */
    assert_true(same_bits(tensor_inv(one), tensor_select(tensor_inv(a), 0, 1)));
    assert_true(same_bits(tensor_svdvals(one), tensor_select(tensor_svdvals(a), 0, 1)));
}

/* f16 and bf16 compute in f64: the result is the f64 one, rounded once. */
static void test_narrow_dtypes_are_rounded_once(void **state)
{
    (void)state;
    Tensor *narrow = tensor_to(noise(SHAPE(6, 6), 10), TENSOR_F16), *wide = tensor_to(narrow, TENSOR_F64);
    assert_true(same_bits(tensor_inv(narrow), tensor_to(tensor_inv(wide), TENSOR_F16)));
    assert_true(same_bits(tensor_svd(narrow).u, tensor_to(tensor_svd(wide).u, TENSOR_F16)));
    assert_true(same_bits(tensor_det(narrow), tensor_to(tensor_det(wide), TENSOR_F16)));
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void test_argument_orders_and_defaults(void **state)
{
    (void)state;
    Tensor *a = definite(noise(SHAPE(3, 3), 11)), *b = noise(SHAPE(3, 2), 12);
    Tensor *upper = tensor_triu(a), *lower = tensor_tril(a);
    assert_tensor_close(tensor_matmul(lower, tensor_solve_triangular(a, b)), b, 0, tight);
    assert_tensor_close(tensor_matmul(upper, tensor_triangular_solve(b, a)), b, 0, tight);
    assert_tensor_close(tensor_matmul(tensor_mT(upper), tensor_triangular_solve(b, a, .transpose = true)), b,
                        0, tight);
    assert_tensor_close(tensor_matmul(lower, tensor_triangular_solve(b, a, false)), b, 0, tight);
    assert_true(same_bits(tensor_inverse(a), tensor_inv(a)));
    assert_int_equal(tensor_size(tensor_svd(b).u, 1), 3); /* full by default, as torch.linalg.svd */
    TensorQr r = tensor_qr(b, .mode = TENSOR_QR_R);
    assert_null(r.q);
    assert_true(same_bits(r.r, tensor_qr(b).r));
    TensorSlogdet s = tensor_slogdet(tensor_neg(a));
    assert_true(tensor_item(s.sign) == -1);
    assert_true(fabs(exp(tensor_item(s.logabsdet)) + tensor_item(tensor_det(tensor_neg(a)))) < 1e-9);
    assert_true(isnan(tensor_item(tensor_logdet(tensor_neg(a)))));
}

static void test_vectors_or_matrices(void **state)
{
    (void)state;
    Tensor *a = definite(noise(SHAPE(2, 2, 2), 13)),
           *b = noise(SHAPE(2, 2), 14); /* a vector for each matrix */
    Tensor *x = tensor_solve(a, b);
    assert_int_equal(tensor_ndim(x), 2);
    assert_tensor_close(tensor_squeeze(tensor_matmul(a, tensor_unsqueeze(x, -1)), -1), b, 0, tight);
    x = tensor_solve(a, tensor_select(b, 0, 0)); /* one for all */
    assert_tensor_close(tensor_squeeze(tensor_matmul(a, tensor_unsqueeze(x, -1)), -1),
                        tensor_expand(tensor_select(b, 0, 0), SHAPE(2, 2)), 0, tight);
}

/* PyTorch's inverse of a singular matrix is what its division leaves; here it is NaN, so nobody takes it for
 * one. */
static void test_info_tells_singular_matrices(void **state)
{
    (void)state;
    Tensor *a = tensor_stack(TENSORS(MAT(2, 2, 0, 0, 1), MAT(2, 1, 2, 2, 4), MAT(2, 0, 1, 0, 1)));
    const TensorInvEx y = tensor_inv_ex(a);
    const int32_t want[3] = { 0, 2, 1 };
    Tensor *info = tensor_from_data(want, SHAPE(3), TENSOR_I32);
    assert_true(tensor_equal(y.info, info));
    assert_tensor_close(tensor_select(y.inverse, 0, 0), MAT(2, .5, 0, 0, 1), 0, 0);
    assert_true(isnan(tensor_get(y.inverse, DIMS(1, 0, 0))) && isnan(tensor_get(y.inverse, DIMS(2, 1, 1))));
    const TensorSolveEx x = tensor_solve_ex(a, tensor_ones(SHAPE(4, 1, 2, 1), TENSOR_F64));
    assert_true(tensor_equal(x.info, info)); /* of a's batch, not of the joint one */
    assert_int_equal(tensor_ndim(x.result), 4);
    const TensorSolveEx one =
        tensor_solve_ex(tensor_select(a, 0, 1), tensor_ones(SHAPE(3, 2, 1), TENSOR_F64));
    assert_true(tensor_ndim(one.info) == 0 && tensor_item(one.info) == 2);
    Tensor *alone = tensor_narrow(a, 0, 1, 1), *column = tensor_unsqueeze(a, 1);
    Tensor *found = tensor_solve_ex(alone, tensor_ones(SHAPE(3, 2, 1), TENSOR_F64)).info;
    assert_true(tensor_ndim(found) == 1 && tensor_numel(found) == 1 && tensor_item(found) == 2);
    found = tensor_solve_ex(alone, tensor_ones(SHAPE(0, 2, 1), TENSOR_F64)).info;
    assert_true(tensor_ndim(found) == 1 && tensor_numel(found) == 1 && tensor_item(found) == 0);
    found = tensor_solve_ex(column, tensor_ones(SHAPE(3, 4, 2, 1), TENSOR_F64)).info;
    assert_true(tensor_equal(found, tensor_unsqueeze(info, 1)));
    Tensor *leaf = tensor_requires_grad_(tensor_clone(a), true),
           *g = tensor_gradients(tensor_sum(tensor_inv_ex(leaf).inverse), leaf);
    assert_true(isfinite(tensor_get(g, DIMS(0, 0, 0))) && isnan(tensor_get(g, DIMS(1, 0, 0))));
}

static void test_lu_at_any_size(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = { { 3, 3 }, { 70, 70 }, { 70, 20 }, { 20, 70 }, { 64, 64 } };
    for (int i = 0; i < 5; i++) {
        Tensor *a = noise(SHAPE(2, shapes[i][0], shapes[i][1]), 7);
        const TensorLu f = tensor_lu(a);
        assert_tensor_close(tensor_matmul(f.p, tensor_matmul(f.l, f.u)), a, 0, 1e-12);
        if (shapes[i][0] != shapes[i][1]) continue;
        const TensorLuFactor packed = tensor_lu_factor(a);
        Tensor *b = noise(SHAPE(2, shapes[i][0], 3), 8);
        assert_tensor_close(tensor_lu_solve(packed.lu, packed.pivots, b), tensor_solve(a, b), 1e-9, 1e-9);
    }
    Tensor *singular = MAT(2, 1, 2, 2, 4);
    assert_true(tensor_get(tensor_lu(singular).u, DIMS(1, 1)) == 0);
    assert_null(tensor_lu_factor(singular).lu);
    assert_says(TENSOR_EVALUE, "[2, 2] is singular: pivot 2 is zero");
}

static void test_cond_of_a_singular_matrix_is_infinite(void **state)
{
    (void)state;
    Tensor *singular = MAT(2, 1, 2, 2, 4), *zero = tensor_zeros(SHAPE(2, 2), TENSOR_F64);
    static const double inverse[] = { TENSOR_FRO, 1, -1, INFINITY, -INFINITY };
    for (int i = 0; i < 5; i++) {
        assert_true(isinf(tensor_item(tensor_cond(singular, inverse[i]))));
        assert_true(isinf(tensor_item(tensor_cond(zero, inverse[i]))));
    }
    assert_true(tensor_item(tensor_cond(singular)) > 1e15);
    assert_true(isnan(tensor_item(tensor_cond(zero))));
}

/* ---- what cannot be done --------------------------------------------------------------------- */

static void test_errors_name_the_matrix_of_the_batch(void **state)
{
    (void)state;
    Tensor *a = tensor_stack(TENSORS(MAT(2, 2, 0, 0, 1), MAT(2, 1, 2, 2, 4), MAT(2, 1, 0, 0, -1)));
    assert_null(tensor_inv(a));
    assert_says(TENSOR_EVALUE,
                "tensor_inv: tensor_solve: matrix 1 of [3, 2, 2] is singular: pivot 2 is zero");
    assert_null(tensor_solve(a, tensor_ones(SHAPE(3, 2, 1), TENSOR_F64)));
    assert_says(TENSOR_EVALUE, "matrix 1 of [3, 2, 2] is singular");
    assert_null(tensor_cholesky(a));
    assert_says(TENSOR_EVALUE,
                "matrix 1 of [3, 2, 2] is not positive-definite: its leading minor of order 2");
    assert_null(tensor_cholesky(MAT(2, -1, 0, 0, 1)));
    assert_says(TENSOR_EVALUE, "[2, 2] is not positive-definite: its leading minor of order 1");
    Tensor *hole = tensor_stack(TENSORS(MAT(2, 2, 0, 0, 1), MAT(2, 1, 2, (double)NAN, 4)));
    assert_null(tensor_svd(hole).u);
    assert_says(TENSOR_EVALUE, "matrix 1 of [2, 2, 2] is not finite");
    assert_null(tensor_eigh(hole).values);
    assert_says(TENSOR_EVALUE, "matrix 1 of [2, 2, 2] is not finite");
    assert_true(isnan(tensor_item(tensor_select(tensor_det(hole), 0, 1))));
}

static void test_qr_complete_of_a_tall_matrix_has_no_gradient(void **state)
{
    (void)state;
    Tensor *a = tensor_requires_grad_(noise(SHAPE(4, 2), 15), true);
    TensorQr f = tensor_qr(a, .mode = TENSOR_QR_COMPLETE);
    assert_status_error(tensor_backward(tensor_sum(f.r)), TENSOR_EGRAD);
    assert_null(tensor_grad(a));
}

/* ---- traps ----------------------------------------------------------------------------------- */

static Tensor *gradient(Tensor *y, Tensor *x)
{
    return tensor_gradients(tensor_sum(y), x, .create_graph = true);
}

static void test_det_of_a_singular_matrix_has_its_cofactors_as_gradient(void **state)
{
    (void)state;
    Tensor *a = LEAF_MAT(2, 1, 2, 2, 4);
    assert_true(tensor_item(tensor_det(a)) == 0);
    assert_tensor_close(gradient(tensor_det(a), a), MAT(2, 4, -2, -2, 1), 0, tight);
    a = LEAF_MAT(3, 1, 2, 3, 4, 5, 6, 7, 8, 9); /* singular, but for rounding */
    assert_tensor_close(gradient(tensor_det(a), a), MAT(3, -3, 6, -3, 6, -12, 6, -3, 6, -3), 0, 1e-12);
    a = tensor_requires_grad_(tensor_zeros(SHAPE(2, 3, 3), TENSOR_F64), true); /* of rank 0: no cofactor */
    assert_tensor_close(gradient(tensor_det(a), a), tensor_zeros(SHAPE(2, 3, 3), TENSOR_F64), 0, 0);
    a = tensor_requires_grad_(tensor_stack(TENSORS(MAT(2, 1, 2, 2, 4), MAT(2, 1, 0, 0, 3))),
                              true); /* beside a regular one */
    assert_tensor_close(gradient(tensor_det(a), a),
                        tensor_stack(TENSORS(MAT(2, 4, -2, -2, 1), MAT(2, 3, 0, 0, 1))), 0, tight);
    assert_gradgradcheck(tensor_op_find("det"), MAT(3, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

static void test_slogdet_of_a_singular_matrix(void **state)
{
    (void)state;
    TensorSlogdet s = tensor_slogdet(MAT(2, 1, 2, 2, 4));
    assert_true(tensor_item(s.sign) == 0 && tensor_item(s.logabsdet) == -INFINITY);
    Tensor *a = LEAF_MAT(2, 0, 1, 1, 0); /* a negative determinant: log is NaN, gradient 0 */
    Tensor *y = tensor_logdet(a);
    assert_true(isnan(tensor_item(y)));
    assert_tensor_close(gradient(y, a), tensor_zeros(SHAPE(2, 2), TENSOR_F64), 0, 0);
}

static void test_svd_gradients_need_distinct_singular_values(void **state)
{
    (void)state;
    Tensor *a = tensor_requires_grad_(tensor_eye(3, 3, TENSOR_F64), true);
    assert_identity(gradient(tensor_svdvals(a), a)); /* values alone need nothing */
    Tensor *g = gradient(tensor_mul(tensor_svd(a).u, noise(SHAPE(3, 3), 16)), a);
    assert_true(tensor_item(tensor_all(tensor_isfinite(g))) == 0);
}

static void test_eigh_gradients_need_distinct_eigenvalues(void **state)
{
    (void)state;
    Tensor *a = tensor_requires_grad_(tensor_eye(3, 3, TENSOR_F64), true);
    assert_identity(gradient(tensor_eigvalsh(a), a));
    Tensor *g = gradient(tensor_mul(tensor_eigh(a).vectors, noise(SHAPE(3, 3), 17)), a);
    assert_true(tensor_item(tensor_all(tensor_isfinite(g))) == 0);
}

static void test_signs_of_vectors_are_fixed(void **state)
{
    (void)state;
    Tensor *s = MAT(2, 1, -1, -1, 1); /* (1, 1) and (1, -1), each over the root of 2 */
    const double r = sqrt(.5);
    assert_tensor_close(tensor_eigh(s).vectors, MAT(2, r, r, r, -r), 0, tight);
    assert_tensor_close(tensor_svd(tensor_neg(s)).u, MAT(2, r, r, -r, r), 0, tight);
    assert_tensor_close(tensor_svd(tensor_neg(s)).vh, MAT(2, -r, r, r, r), 0, 2); /* rows: signs follow u */
}

static void test_triangles_that_are_not_read_have_no_gradient(void **state)
{
    (void)state;
    Tensor *a = LEAF_MAT(2, 2, (double)NAN, 1, 3),
           *x = tensor_solve_triangular(a, tensor_ones(SHAPE(2, 1), TENSOR_F64));
    assert_true(tensor_item(tensor_all(tensor_isfinite(x))) == 1);
    Tensor *g = gradient(x, a);
    assert_true(tensor_get(g, DIMS(0, 1)) == 0 && tensor_get(g, DIMS(1, 0)) != 0);
    g = gradient(tensor_solve_triangular(a, tensor_ones(SHAPE(2, 1), TENSOR_F64), .unitriangular = true), a);
    assert_true(tensor_get(g, DIMS(0, 0)) == 0 && tensor_get(g, DIMS(1, 1)) == 0);
}

/* ---- gradients of symmetric matrices --------------------------------------------------------- */

static Tensor *of_cholesky(Tensor **x, int n, void *ctx)
{
    (void)n;
    return tensor_cholesky(definite(x[0]), .upper = ctx != NULL);
}

static Tensor *of_vectors(Tensor **x, int n, void *ctx)
{
    (void)n;
    return tensor_eigh(symmetric(x[0]), .upper = ctx != NULL).vectors;
}

static Tensor *of_values(Tensor **x, int n, void *ctx)
{
    (void)n;
    return tensor_eigvalsh(symmetric(x[0]), .upper = ctx != NULL);
}

static Tensor *of_logdet(Tensor **x, int n, void *ctx)
{
    (void)n, (void)ctx;
    return tensor_logdet(definite(x[0]));
}

static void test_gradients_of_symmetric_matrices(void **state)
{
    (void)state;
    static const TensorFunction functions[] = { of_cholesky, of_vectors, of_values, of_logdet };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int upper = 0; upper < 2; upper++)
            for (int second = 0; second < 2; second++) {
                Tensor *x = noise(SHAPE(2, 3, 3), 18);
                assert_gradcheck_with(.fn = functions[i], .ctx = upper ? &upper : NULL, .inputs = TENSORS(x),
                                      .second = second, .atol = 1e-4);
            }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static Tensor *everything(Tensor *a)
{
    Tensor *b = definite(a);
    TensorSvd s = tensor_svd(a);
    TensorQr q = tensor_qr(a), wide = tensor_qr(tensor_narrow(a, 0, 0, 2));
    Tensor *y = tensor_sum(
        tensor_mul(tensor_matmul(wide.q, wide.r), tensor_svd(tensor_narrow(a, 0, 0, 2), false).vh));
    y = tensor_add(y, tensor_add(tensor_sum(tensor_mul(s.u, s.vh)), tensor_sum(tensor_mul(q.q, q.r))));
    y = tensor_add(y, tensor_sum(tensor_mul(tensor_eigh(b).vectors, tensor_cholesky(b))));
    y = tensor_add(y, tensor_sum(tensor_mul(tensor_solve(b, a), tensor_lstsq(a, b))));
    return tensor_add(y, tensor_mul(tensor_det(tensor_sub(b, b)), tensor_logdet(b)));
}

static void test_every_failing_allocation_is_survived(void **state)
{
    (void)state;
    Tensor *a = noise(SHAPE(3, 3), 19);
    bool failed = true;
    for (int64_t n = 1; failed && n < 20000; n++) {
        Tensor *leaf = tensor_requires_grad_(tensor_clone(a), true);
        TensorScope scope = tensor_scope_open();
        tensor_debug_fail_allocation(n, false);
        Tensor *y = everything(leaf);
        const int status = y ? tensor_backward(y) : -1;
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_int_equal(status, failed ? -1 : 0);
        if (failed) {
            assert_null(tensor_grad(leaf));
            assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        }
        tensor_error_clear();
        tensor_scope_close(scope);
    }
    assert_false(failed);
}

/* Neither the largest of a batch nor one that is not finite says how another is scaled. */
static void test_matrix_exp_takes_each_matrix_for_itself(void **state)
{
    (void)state;
    const double values[] = { 1e-3, 2e-3, 0, -1e-3, 0, 20, -20, 0, -1e6, 0, 0, -1e6, NAN, 0, 0, 1 };
    Tensor *x = tensor_requires_grad_(tensor_from_data(values, SHAPE(4, 2, 2), TENSOR_F64), true),
           *y = tensor_matrix_exp(x);
    Tensor *dx = tensor_gradients(y, x, tensor_ones_like(y));
    for (int i = 0; i < 3; i++) {
        Tensor *alone = tensor_requires_grad_(tensor_detach(tensor_select(x, 0, i)), true),
               *want = tensor_matrix_exp(alone);
        assert_tensor_close(tensor_select(y, 0, i), want, 0, 1e-15);
        assert_tensor_close(tensor_select(dx, 0, i), tensor_gradients(want, alone, tensor_ones_like(want)), 0,
                            1e-15);
    }
    assert_tensor_close(tensor_select(tensor_select(y, 0, 1), 0, 0),
                        tensor_from_data((double[]){ cos(20), sin(20) }, SHAPE(2), TENSOR_F64), 0, tight);
    assert_true(isnan(tensor_item(tensor_amax(tensor_select(y, 0, 3)))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_without_lapack_the_error_says_what_to_install),
        TEST(test_factors_multiply_back),
        TEST(test_larger_matrices_by_blocks),
        TEST(test_square_factors_multiply_back),
        TEST(test_cholesky_by_blocks_is_that_by_loops),
        TEST(test_moore_penrose),
        TEST(test_any_strides_give_the_same_bits),
        TEST(test_narrow_dtypes_are_rounded_once),
        TEST(test_argument_orders_and_defaults),
        TEST(test_vectors_or_matrices),
        TEST(test_info_tells_singular_matrices),
        TEST(test_lu_at_any_size),
        TEST(test_cond_of_a_singular_matrix_is_infinite),
        TEST(test_errors_name_the_matrix_of_the_batch),
        TEST(test_qr_complete_of_a_tall_matrix_has_no_gradient),
        TEST(test_det_of_a_singular_matrix_has_its_cofactors_as_gradient),
        TEST(test_slogdet_of_a_singular_matrix),
        TEST(test_svd_gradients_need_distinct_singular_values),
        TEST(test_eigh_gradients_need_distinct_eigenvalues),
        TEST(test_signs_of_vectors_are_fixed),
        TEST(test_triangles_that_are_not_read_have_no_gradient),
        TEST(test_gradients_of_symmetric_matrices),
        TEST(test_matrix_exp_takes_each_matrix_for_itself),
        TEST(test_every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
