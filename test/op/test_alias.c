/* test_alias.c - PyTorch's other names are the ops that they stand for (ops/alias.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tapegrad.h>

static void same(Tensor *a, Tensor *b)
{
    assert_non_null(a);
    assert_true(tensor_dtype(a) == tensor_dtype(b) && tensor_equal(a, b));
}

static void test_elementwise(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3, 4), TENSOR_F32), *y = tensor_rand(SHAPE(4), TENSOR_F32),
           *more = tensor_add_scalar(x, 1);
    same(tensor_absolute(x), tensor_abs(x));
    same(tensor_arccos(x), tensor_acos(x));
    same(tensor_arccosh(more), tensor_acosh(more));
    same(tensor_arcsin(x), tensor_asin(x));
    same(tensor_arcsinh(x), tensor_asinh(x));
    same(tensor_arctan(x), tensor_atan(x));
    same(tensor_arctan2(x, y), tensor_atan2(x, y));
    same(tensor_arctanh(x), tensor_atanh(x));
    same(tensor_clip(x, .2, .7), tensor_clamp(x, .2, .7));
    same(tensor_clip_(tensor_clone(x), .2, .7), tensor_clamp(x, .2, .7));
    same(tensor_divide(x, y), tensor_div(x, y));
    same(tensor_true_divide(x, y), tensor_div(x, y));
    same(tensor_expit(x), tensor_sigmoid(x));
    same(tensor_fix(more), tensor_trunc(more));
    same(tensor_gammaln(more), tensor_lgamma(more));
    same(tensor_log_sigmoid(x), tensor_logsigmoid(x));
    same(tensor_multiply(x, y), tensor_mul(x, y));
    same(tensor_negative(x), tensor_neg(x));
    same(tensor_psi(more), tensor_digamma(more));
    same(tensor_rsub(x, y), tensor_sub(y, x));
    same(tensor_subtract(x, y), tensor_sub(x, y));
    same(tensor_greater(x, y), tensor_gt(x, y));
    same(tensor_greater_equal(x, y), tensor_ge(x, y));
    same(tensor_less(x, y), tensor_lt(x, y));
    same(tensor_less_equal(x, y), tensor_le(x, y));
    same(tensor_not_equal(x, y), tensor_ne(x, y));
}

static Tensor *halved_l1(Tensor *a, Tensor *b, void *ctx)
{
    (void)ctx;
    return tensor_mul_scalar(tensor_sum(tensor_abs(tensor_sub(a, b)), -1), .5);
}

static void test_shapes_and_products(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3, 4), TENSOR_F32), *part[4], *again[4];
    same(tensor_adjoint(x), tensor_mT(x));
    same(tensor_triplet_margin_with_distance_loss(x, x, x, .margin = 2, .distance = halved_l1),
         tensor_full(SHAPE(), 2, TENSOR_F32));
    same(tensor_argwhere(x), tensor_nonzero(x));
    same(tensor_concat(TENSORS(x, x), 1), tensor_cat(TENSORS(x, x), 1));
    same(tensor_concatenate(TENSORS(x, x), .dim = 1), tensor_cat(TENSORS(x, x), 1));
    same(tensor_moveaxis(x, 0, 1), tensor_movedim(x, 0, 1));
    same(tensor_swapaxes(x, 0, 1), tensor_transpose(x, 0, 1));
    same(tensor_swapdims(x, 0, 1), tensor_transpose(x, 0, 1));
    same(tensor_row_stack(TENSORS(x, x)), tensor_vstack(TENSORS(x, x)));
    same(tensor_fliplr(x), tensor_flip(x, DIMS(1)));
    same(tensor_flipud(x), tensor_flip(x, DIMS(0)));
    assert_int_equal(tensor_split_with_sizes(x, DIMS(1, 3), 1, part),
                     tensor_split_sizes(x, DIMS(1, 3), 1, again));
    same(part[1], again[1]);
    same(tensor_ger(tensor_select(x, 1, 0), tensor_select(x, 0, 0)),
         tensor_outer(tensor_select(x, 1, 0), tensor_select(x, 0, 0)));
    same(tensor_pinverse(x), tensor_pinv(x));
    same(tensor_pinverse(x, .6), tensor_pinv(x, .rtol = .6));
    same(tensor_trapz(x), tensor_trapezoid(x));
    assert_int_equal(tensor_dim(x), 2);
    assert_int_equal(tensor_ndimension(x), 2);
    assert_int_equal(tensor_nelement(x), 12);
    assert_true(tensor_is_floating_point(x) && !tensor_is_floating_point(tensor_long(x)));
    assert_ptr_equal(tensor_data_ptr(x), tensor_data(x));
    assert_ptr_equal(tensor_cpu(x), x);
    same(tensor_scalar_tensor(2, TENSOR_F32), tensor_scalar(2, TENSOR_F32));
    assert_int_equal(tensor_element_size(x), 4);
}

static void test_casts(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_double(x)), TENSOR_F64);
    assert_int_equal(tensor_dtype(tensor_float(tensor_double(x))), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_half(x)), TENSOR_F16);
    assert_int_equal(tensor_dtype(tensor_bfloat16(x)), TENSOR_BF16);
    assert_int_equal(tensor_dtype(tensor_long(x)), TENSOR_I64);
    assert_int_equal(tensor_dtype(tensor_int(x)), TENSOR_I32);
    assert_int_equal(tensor_dtype(tensor_byte(x)), TENSOR_U8);
    assert_int_equal(tensor_dtype(tensor_bool(x)), TENSOR_BOOL);
    assert_int_equal(tensor_dtype(tensor_type_as(x, tensor_long(x))), TENSOR_I64);
}

static void test_in_place(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3, 4), TENSOR_F32), *y = tensor_rand(SHAPE(4), TENSOR_F32),
           *more = tensor_add_scalar(x, 1);
#define SAME_(alias, name, from, ...) \
    same(tensor_##alias(tensor_clone(from), __VA_ARGS__), tensor_##name(from, __VA_ARGS__))
#define SAME1_(alias, name, from) same(tensor_##alias(tensor_clone(from)), tensor_##name(from))
    SAME1_(absolute_, abs, x);
    SAME1_(arccos_, acos, x);
    SAME1_(arccosh_, acosh, more);
    SAME1_(arcsin_, asin, x);
    SAME1_(arcsinh_, asinh, x);
    SAME1_(arctan_, atan, x);
    SAME1_(arctanh_, atanh, x);
    SAME1_(fix_, trunc, more);
    SAME1_(negative_, neg, x);
    SAME_(arctan2_, atan2, x, y);
    SAME_(divide_, div, x, y);
    SAME_(true_divide_, div, x, y);
    SAME_(multiply_, mul, x, y);
    SAME_(subtract_, sub, x, y);
    SAME_(divide_scalar_, div_scalar, x, 3);
    SAME_(true_divide_scalar_, div_scalar, x, 3);
    SAME_(multiply_scalar_, mul_scalar, x, 3);
    SAME_(subtract_scalar_, sub_scalar, x, 3);
    same(tensor_clip_tensor_(tensor_clone(x), y), tensor_clamp_tensor(x, y));
    same(tensor_clip_tensor(x, .max = y), tensor_clamp_tensor(x, .max = y));
#define AS_FLOAT_(alias, name, other) \
    same(tensor_##alias(tensor_clone(x), other), tensor_float(tensor_##name(x, other)))
    AS_FLOAT_(greater_, gt, y);
    AS_FLOAT_(greater_equal_, ge, y);
    AS_FLOAT_(less_, lt, y);
    AS_FLOAT_(less_equal_, le, y);
    AS_FLOAT_(not_equal_, ne, y);
    AS_FLOAT_(greater_scalar_, gt_scalar, .5);
    AS_FLOAT_(greater_equal_scalar_, ge_scalar, .5);
    AS_FLOAT_(less_scalar_, lt_scalar, .5);
    AS_FLOAT_(less_equal_scalar_, le_scalar, .5);
    AS_FLOAT_(not_equal_scalar_, ne_scalar, .5);
    same(tensor_greater_scalar(x, .5), tensor_gt_scalar(x, .5));
    same(tensor_greater_equal_scalar(x, .5), tensor_ge_scalar(x, .5));
    same(tensor_less_scalar(x, .5), tensor_lt_scalar(x, .5));
    same(tensor_less_equal_scalar(x, .5), tensor_le_scalar(x, .5));
    same(tensor_not_equal_scalar(x, .5), tensor_ne_scalar(x, .5));
    same(tensor_divide_scalar(x, 3), tensor_div_scalar(x, 3));
    same(tensor_true_divide_scalar(x, 3), tensor_div_scalar(x, 3));
    same(tensor_multiply_scalar(x, 3), tensor_mul_scalar(x, 3));
    same(tensor_subtract_scalar(x, 3), tensor_sub_scalar(x, 3));
}

static void test_linalg(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3, 3), TENSOR_F64), *b = tensor_rand(SHAPE(3, 2), TENSOR_F64);
    Tensor *a = tensor_add(tensor_matmul(x, tensor_mT(x)), tensor_eye(3, 3, TENSOR_F64)),
           *v = tensor_select(x, 0, 0);
    same(tensor_linalg_cholesky(a), tensor_cholesky(a));
    same(tensor_linalg_cross(x, a), tensor_cross(x, a, .dim = -1));
    same(tensor_linalg_det(a), tensor_det(a));
    same(tensor_linalg_diagonal(x, 1), tensor_diagonal(x, 1));
    same(tensor_linalg_inv(a), tensor_inv(a));
    same(tensor_linalg_matmul(a, b), tensor_matmul(a, b));
    same(tensor_linalg_matrix_power(a, 3), tensor_matrix_power(a, 3));
    same(tensor_linalg_multi_dot(TENSORS(a, x, b)), tensor_multi_dot(TENSORS(a, x, b)));
    same(tensor_linalg_slogdet(a).logabsdet, tensor_slogdet(a).logabsdet);
    same(tensor_linalg_solve(a, b), tensor_solve(a, b));
    same(tensor_linalg_solve_triangular(a, b, .upper = true), tensor_solve_triangular(a, b, .upper = true));
    same(tensor_linalg_vander(v), tensor_vander(v, .increasing = true));
    same(tensor_linalg_vecdot(x, a), tensor_vecdot(x, a));
    same(tensor_linalg_inv_ex(a).inverse, tensor_inv(a));
    same(tensor_linalg_solve_ex(a, b).result, tensor_solve(a, b));
    same(tensor_linalg_lu(a).u, tensor_lu(a).u);
    const TensorLuFactor lu = tensor_linalg_lu_factor(a);
    same(tensor_linalg_lu_solve(lu.lu, lu.pivots, b), tensor_lu_solve(lu.lu, lu.pivots, b));
    same(tensor_linalg_cond(a, 1), tensor_cond(a, 1));
    if (tensor_svdvals(a)) { /* LAPACK is there */
        same(tensor_linalg_eigh(a).values, tensor_eigh(a).values);
        same(tensor_linalg_eigvalsh(a), tensor_eigvalsh(a));
        same(tensor_linalg_lstsq(a, b), tensor_lstsq(a, b));
        same(tensor_linalg_matrix_rank(a), tensor_matrix_rank(a));
        same(tensor_linalg_pinv(a), tensor_pinv(a));
        same(tensor_linalg_qr(a).r, tensor_qr(a).r);
        same(tensor_linalg_svd(a, .full_matrices = false).s, tensor_svd(a, .full_matrices = false).s);
        same(tensor_linalg_svdvals(a), tensor_svdvals(a));
    } else tensor_error_clear();
}

static void test_special(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3, 4), TENSOR_F32), *y = tensor_rand(SHAPE(4), TENSOR_F32);
    same(tensor_special_digamma(x), tensor_digamma(x));
    same(tensor_special_entr(x), tensor_entr(x));
    same(tensor_special_erfcx(x), tensor_erfcx(x));
    same(tensor_special_gammainc(x, y), tensor_igamma(x, y));
    same(tensor_special_gammaincc(x, y), tensor_igammac(x, y));
    same(tensor_special_i0(x), tensor_i0(x));
    same(tensor_special_i1(x), tensor_i1(x));
    same(tensor_special_log_ndtr(x), tensor_log_ndtr(x));
    same(tensor_special_ndtr(x), tensor_ndtr(x));
    same(tensor_special_ndtri(x), tensor_ndtri(x));
    same(tensor_special_zeta(tensor_add_scalar(x, 2), y), tensor_zeta(tensor_add_scalar(x, 2), y));
    same(tensor_special_erf(x), tensor_erf(x));
    same(tensor_special_erfc(x), tensor_erfc(x));
    same(tensor_special_erfinv(x), tensor_erfinv(x));
    same(tensor_special_exp2(x), tensor_exp2(x));
    same(tensor_special_expit(x), tensor_sigmoid(x));
    same(tensor_special_expm1(x), tensor_expm1(x));
    same(tensor_special_gammaln(x), tensor_lgamma(x));
    same(tensor_special_log1p(x), tensor_log1p(x));
    same(tensor_special_log_softmax(x, 1), tensor_log_softmax(x, 1));
    same(tensor_special_logit(x, -1), tensor_logit(x, -1));
    same(tensor_special_logsumexp(x, 1), tensor_logsumexp(x, 1));
    same(tensor_special_polygamma(2, x), tensor_polygamma(x, 2));
    same(tensor_special_psi(x), tensor_digamma(x));
    same(tensor_special_round(x), tensor_round(x));
    same(tensor_special_sinc(x), tensor_sinc(x));
    same(tensor_special_softmax(x, 1), tensor_softmax(x, 1));
    same(tensor_special_xlog1py(x, y), tensor_xlog1py(x, y));
    same(tensor_special_xlogy(x, y), tensor_xlogy(x, y));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_shapes_and_products),
        cmocka_unit_test(test_casts),       cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_linalg),      cmocka_unit_test(test_special)
    };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("other names", tests, NULL, NULL);
    if (tensor_error()) print_error("%s\n", tensor_error());
    tensor_scope_close(scope);
    return failed;
}
