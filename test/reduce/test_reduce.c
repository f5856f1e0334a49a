/* test_reduce.c - what the samples of reductions cannot show: the accuracy of long sums, ties, NaN, empty
 * reductions, layouts, and the same bits on any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>

static TensorScope scope;
static int setup(void **state)
{
    (void)state;
    return tensor_error_clear(), scope = tensor_scope_open(), 0;
}
static int teardown(void **state)
{
    (void)state;
    return tensor_scope_close(scope), 0;
}

#define V(...) \
    (const double[]) { __VA_ARGS__ }
static Tensor *f64(TensorShape shape, const double *values)
{
    return tensor_from_data(values, shape, TENSOR_F64);
}
static Tensor *leaf(TensorShape shape, const double *values)
{
    return tensor_requires_grad_(f64(shape, values), true);
}
#define VECTOR(...) leaf(SHAPE(sizeof V(__VA_ARGS__) / sizeof(double)), V(__VA_ARGS__))

static void check_values(const Tensor *x, int n, const double *want)
{
    if (!x) fail_msg("%s", tensor_error());
    assert_int_equal(tensor_numel(x), n);
    Tensor *wide = tensor_to((Tensor *)x, TENSOR_F64);
    double *got = malloc((size_t)n * sizeof *got);
    assert_int_equal(tensor_copy_to(wide, got, (size_t)n * sizeof *got), 0);
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-12) && got[i] != want[i] && !(isnan(got[i]) && isnan(want[i])))
            fail_msg("element %d is %.17g, not %.17g", i, got[i], want[i]);
    free(got);
}
#define assert_values(x, ...) check_values(x, (int)(sizeof V(__VA_ARGS__) / sizeof(double)), V(__VA_ARGS__))

static Tensor *gradient(Tensor *y, Tensor *x)
{
    return tensor_gradients(tensor_sum(y), x, .retain_graph = true);
}

static void assert_code(TensorStatus code, const Tensor *y)
{
    assert_null(y);
    if (tensor_error_code() != code) fail_msg("code %d: %s", (int)tensor_error_code(), tensor_error());
    tensor_error_clear();
}

/* ---- accuracy -------------------------------------------------------------------------------- */

enum { LONG = 10000000 };

static Tensor *long_tensor(double *sum)
{
    Tensor *x = tensor_empty(SHAPE(LONG), TENSOR_F32);
    float *data = tensor_data(x);
    long double total = 0;
    uint64_t state = 1;
    for (int i = 0; i < LONG; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = (float)(state >> 40) * 0x1p-24f;
        total += data[i];
    }
    *sum = (double)total;
    return x;
}

static void long_sums(void **state)
{
    (void)state;
    double sum;
    Tensor *x = long_tensor(&sum);
    const double ulp = nextafterf((float)sum, INFINITY) - (float)sum;
    assert_true(fabs(tensor_item(tensor_sum(x)) - sum) <= ulp);
    assert_true(fabs(tensor_item(tensor_mean(x)) - sum / LONG) <= 1e-7);
    Tensor *square = tensor_reshape(x, SHAPE(1000, 10000));
    assert_true(fabs(tensor_item(tensor_sum(tensor_sum(square, 0))) - sum) <= 4 * ulp);
    assert_true(fabs(tensor_item(tensor_sum(tensor_sum(square, 1))) - sum) <= 4 * ulp);
    assert_true(fabs(tensor_item(tensor_var(x)) - 1. / 12) < 1e-4);
}

/* A mean far from 0 costs no digits of the variance. */
static void offset_variance(void **state)
{
    (void)state;
    Tensor *x = tensor_add_scalar(tensor_arange(0, 1024, 1, TENSOR_F32), 1 << 23);
    assert_true(fabs(tensor_item(tensor_var(x, .correction = 0)) - (1024. * 1024 - 1) / 12) < 1e-2);
}

/* ---- threads and layouts --------------------------------------------------------------------- */

static Tensor *one_of(int kind, Tensor *x)
{
    switch (kind) {
    case 0: return tensor_sum(x);
    case 1: return tensor_sum(x, 0);
    case 2: return tensor_sum(x, 1);
    case 3: return tensor_var(x, 0);
    case 4: return tensor_logsumexp(x, 1);
    case 5: return tensor_norm(x, 3, 0);
    case 6: return tensor_softmax(x, 1);
    case 7: return tensor_softmax(x, 0);
    case 8: return tensor_cumsum(x, 0);
    case 9: return tensor_argmax(x, 1);
    case 10: return tensor_sort(x, 1);
    case 11: return tensor_prod(tensor_add_scalar(tensor_mul_scalar(x, 1e-3), 1), 1);
    default: return NULL;
    }
}

static void same_bits_for_threads(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(700, 3001), TENSOR_F32), *y = tensor_randn(SHAPE(60000, 5), TENSOR_F64);
    const int before = tensor_num_threads();
    for (int kind = 0; kind < 12; kind++)
        for (int k = 0; k < 2; k++) {
            tensor_set_num_threads(1);
            Tensor *one = one_of(kind, k ? y : x);
            tensor_set_num_threads(2);
            Tensor *two = one_of(kind, k ? y : x);
            if (!one || !two) fail_msg("%d: %s", kind, tensor_error());
            if (!tensor_equal(one, two)) fail_msg("%d of %d differs with two threads", kind, k);
        }
    tensor_set_num_threads(before);
}

/* A row summed where it lies and down the column of a transposed copy: the same order, the same bits. */
static void same_bits_for_layouts(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(37, 523), TENSOR_F64);
    Tensor *turned = tensor_transpose(tensor_contiguous(tensor_transpose(x, 0, 1)), 0, 1);
    for (int kind = 1; kind < 12; kind++)
        if (kind != 6 && kind != 7 && !tensor_equal(one_of(kind, x), one_of(kind, turned)))
            fail_msg("%d differs for a transposed tensor", kind);
}

/* ---- ties, NaN, zeros ------------------------------------------------------------------------ */

static void ties(void **state)
{
    (void)state;
    Tensor *x = VECTOR(3, 1, 3, 2), *indices;
    assert_values(gradient(tensor_max(x), x), .5, 0, .5, 0);
    assert_values(gradient(tensor_amax(x, 0), x), .5, 0, .5, 0);
    assert_values(gradient(tensor_max_dim(x, 0, .indices = &indices), x), 1, 0, 0, 0);
    assert_int_equal(tensor_item_i64(indices), 0);
    assert_int_equal(tensor_item_i64(tensor_argmax(x)), 0);
    assert_values(gradient(tensor_norm(x, INFINITY), x), .5, 0, .5, 0);
    Tensor *y = VECTOR(5, 2, 9, 2, 2);
    assert_values(gradient(tensor_median(y), y), 0, 1. / 3, 0, 1. / 3, 1. / 3);
}

static void nan_wins(void **state)
{
    (void)state;
    Tensor *x = VECTOR(1, NAN, 5, NAN), *indices;
    assert_true(isnan(tensor_item(tensor_max(x))) && isnan(tensor_item(tensor_min(x))));
    assert_true(isnan(tensor_item(tensor_median(x))) && isnan(tensor_item(tensor_norm(x, INFINITY))));
    assert_values(gradient(tensor_max(x), x), 0, .5, 0, .5);
    assert_int_equal(tensor_item_i64(tensor_argmax(x)), 1);
    assert_int_equal(tensor_item_i64(tensor_argmin(x)), 1);
    assert_values(tensor_sort(x, .indices = &indices), 1, 5, NAN, NAN);
    assert_values(indices, 0, 2, 1, 3);
    assert_values(tensor_topk(x, 3, .indices = &indices), NAN, NAN, 5);
    assert_values(indices, 1, 3, 2);
    Tensor *wide = tensor_full(SHAPE(40), -INFINITY, TENSOR_F32);
    tensor_set(wide, DIMS(33), NAN);
    assert_true(isnan(tensor_item(tensor_max(wide))) && isnan(tensor_item(tensor_min(wide))));
    assert_true(isnan(tensor_item(tensor_sum(wide))));
}

static void zeros(void **state)
{
    (void)state;
    Tensor *zero = VECTOR(0, 0, 0);
    for (int k = 0; k < 5; k++)
        assert_values(gradient(tensor_norm(zero, V(1, 2, 3, 1.5, .5)[k]), zero), 0, 0, 0);
    assert_values(gradient(tensor_std(zero), zero), 0, 0, 0);
    Tensor *x = VECTOR(2, 0, 3);
    assert_values(gradient(tensor_prod(x), x), 0, 6, 0);
    assert_values(gradient(tensor_cumprod(x, 0), x), 1, 8, 0);
    Tensor *y = VECTOR(2, 0, 0);
    assert_values(gradient(tensor_prod(y), y), 0, 0, 0);
    Tensor *g = tensor_gradients(tensor_prod(x), x, .create_graph = true); /* d^2/dx_i dx_j: the third one */
    assert_values(tensor_gradients(tensor_sum(g), x), 3, 5, 2);
}

static void infinite_rows(void **state)
{
    (void)state;
    Tensor *x = VECTOR(-INFINITY, -INFINITY);
    Tensor *y = tensor_logsumexp(x);
    assert_true(tensor_item(y) == -INFINITY);
    assert_values(gradient(y, x), 0, 0);
    assert_true(isnan(tensor_get(tensor_softmax(x, 0), DIMS(0))));
    Tensor *mixed = VECTOR(-INFINITY, 0, 0);
    assert_values(tensor_softmax(mixed, 0), 0, .5, .5);
    assert_values(gradient(tensor_logsumexp(mixed), mixed), 0, .5, .5);
    assert_true(tensor_item(tensor_logsumexp(VECTOR(INFINITY, 1))) == INFINITY);
    assert_values(tensor_logsumexp(VECTOR(1000, 1000)), 1000 + log(2));
}

/* ---- nothing to reduce ----------------------------------------------------------------------- */

static void empty(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(0, 2), TENSOR_F64);
    assert_values(tensor_sum(x, 0), 0, 0);
    assert_values(tensor_prod(x, 0), 1, 1);
    assert_values(tensor_mean(x, 0), NAN, NAN);
    assert_values(tensor_var(x, 0), NAN, NAN);
    assert_values(tensor_logsumexp(x, 0), -INFINITY, -INFINITY);
    assert_values(tensor_norm(x, 2, 0), 0, 0);
    assert_values(tensor_any(x, 0), 0, 0);
    assert_values(tensor_all(x, 0), 1, 1);
    assert_int_equal(tensor_numel(tensor_amax(x, 1)), 0);
    Tensor *nowhere = tensor_from_blob(NULL, SHAPE(0), TENSOR_F32, NULL, NULL);
    assert_values(tensor_sum(nowhere), 0);
    assert_values(tensor_mean(nowhere), NAN);
    assert_code(TENSOR_ESHAPE, tensor_max(x));
    assert_code(TENSOR_ESHAPE, tensor_argmax(x, 0));
    assert_true(isnan(tensor_item(tensor_var(VECTOR(1)))) && isnan(tensor_item(tensor_std(VECTOR(1)))));
    assert_true(isinf(tensor_item(tensor_var(VECTOR(1, 2), .correction = 2))));
    assert_true(isnan(tensor_item(tensor_median(tensor_zeros(SHAPE(0), TENSOR_F32)))));
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static void integers(void **state)
{
    (void)state;
    Tensor *x = tensor_from_data((const int64_t[]){ INT64_MAX - 1, 1, INT64_MIN }, SHAPE(3), TENSOR_I64);
    assert_int_equal(tensor_item_i64(tensor_sum(x)), -1);
    assert_true(tensor_item_i64(tensor_max(x)) == INT64_MAX - 1);
    assert_true(tensor_item_i64(tensor_min(x)) == INT64_MIN);
    Tensor *b = tensor_from_data((const uint8_t[]){ 1, 0, 1 }, SHAPE(3), TENSOR_BOOL);
    assert_int_equal(tensor_dtype(tensor_sum(b)), TENSOR_I64);
    assert_int_equal(tensor_item_i64(tensor_sum(b)), 2);
    assert_int_equal(tensor_dtype(tensor_sum(b, .dtype = TENSOR_F32)), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_sum(b, .dtype = TENSOR_I32)), TENSOR_I32);
    assert_int_equal(tensor_dtype(tensor_max(b)), TENSOR_BOOL);
    assert_int_equal(tensor_dtype(tensor_cumsum(b, 0)), TENSOR_I64);
    assert_code(TENSOR_EDTYPE, tensor_mean(x));
    assert_true(tensor_item(tensor_mean(b, .dtype = TENSOR_F64)) == 2. / 3);
}

typedef Tensor *Reduction(Tensor *x, int dim);
static Tensor *sum_of(Tensor *x, int dim) { return tensor_sum(x, dim); }
static Tensor *prod_of(Tensor *x, int dim) { return tensor_prod(x, dim); }
static Tensor *amax_of(Tensor *x, int dim) { return tensor_amax(x, dim); }
static Tensor *amin_of(Tensor *x, int dim) { return tensor_amin(x, dim); }
static Tensor *any_of(Tensor *x, int dim) { return tensor_any(x, dim); }
static Tensor *all_of(Tensor *x, int dim) { return tensor_all(x, dim); }
static Tensor *count_of(Tensor *x, int dim) { return tensor_count_nonzero(x, dim); }
static Tensor *argmax_of(Tensor *x, int dim) { return tensor_argmax(x, dim); }
static Tensor *argmin_of(Tensor *x, int dim) { return tensor_argmin(x, dim); }

/* Along rows, down columns, and over dims that lie apart: all as in double, where they are exact. */
static void check_integers(Tensor *x)
{
    static Reduction *const reductions[] = { sum_of, prod_of,  amax_of,   amin_of,  any_of,
                                             all_of, count_of, argmax_of, argmin_of };
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        for (int dim = -1; dim < tensor_ndim(x); dim++) {
            const int over = dim < 0 ? TENSOR_ALL : dim;
            Tensor *y = reductions[i](x, over), *wide = reductions[i](tensor_to(x, TENSOR_F64), over);
            if (!tensor_equal(y, tensor_to(wide, tensor_dtype(y)))) fail_msg("reduction %zu, dim %d", i, dim);
        }
    Tensor *y = tensor_sum(x, .dims = DIMS(0, 2));
    assert_true(
        tensor_equal(tensor_to(y, TENSOR_F64), tensor_sum(tensor_to(x, TENSOR_F64), .dims = DIMS(0, 2))));
}

static void integers_of_all_sizes(void **state)
{
    (void)state;
    static const TensorDtype types[] = { TENSOR_I64, TENSOR_I32, TENSOR_U8, TENSOR_BOOL };
    static const int64_t sizes[][3] = { { 1, 1, 1 },   { 2, 3, 5 },    { 33, 2, 40 },
                                        { 3, 70, 17 }, { 2, 1, 2100 }, { 2, 17, 1100 } };
    for (int c = 0; c < 6 * 4; c++) {
        TensorScope here = tensor_scope_open();
        const int64_t *size = sizes[c / 4];
        Tensor *signs = tensor_randint(0, 2, SHAPE(size[0], size[1], size[2]));
        Tensor *x = tensor_mul(signs, tensor_randint(-1, 2, tensor_shape(signs)));
        if (types[c % 4] == TENSOR_U8 || types[c % 4] == TENSOR_BOOL) x = tensor_abs(x);
        x = tensor_to(x, types[c % 4]);
        check_integers(x);
        check_integers(tensor_permute(x, DIMS(2, 0, 1)));
        tensor_scope_close(here);
    }
}

/* Numbers of all 64 bits, none of which is 0: sums and products modulo 2^64. */
static void check_long_line(const int64_t *v, int64_t n, Tensor *line)
{
    uint64_t sum = 0, prod = 1;
    int64_t most = 0, least = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (uint64_t)v[i], prod *= (uint64_t)v[i];
        most = v[i] > v[most] ? i : most, least = v[i] < v[least] ? i : least;
    }
    assert_true(tensor_item_i64(tensor_sum(line)) == (int64_t)sum);
    assert_true(tensor_item_i64(tensor_prod(line)) == (int64_t)prod);
    assert_true(tensor_item_i64(tensor_amax(line)) == v[most]);
    assert_true(tensor_item_i64(tensor_amin(line)) == v[least]);
    assert_true(tensor_item_i64(tensor_argmax(line)) == most);
    assert_true(tensor_item_i64(tensor_argmin(line)) == least);
    assert_true(tensor_item_i64(tensor_count_nonzero(line)) == n);
}

static void long_integers(void **state)
{
    (void)state;
    enum { MOST = 1100, WIDE = 20 };
    static int64_t v[MOST];
    static const int64_t sizes[] = { 1, 7, 33, 1100 };
    uint64_t bits = 1;
    for (int c = 0; c < 4; c++) {
        const int64_t n = sizes[c];
        for (int64_t i = 0; i < n; i++) v[i] = (int64_t)((bits = bits * 6364136223846793005u + 1) | 1);
        Tensor *x = tensor_from_data(v, SHAPE(n), TENSOR_I64);
        Tensor *y = tensor_contiguous(tensor_expand(tensor_unsqueeze(x, 1), SHAPE(n, WIDE)));
        check_long_line(v, n, x);
        check_long_line(v, n, tensor_select(y, 1, 3));
        assert_true(tensor_equal(tensor_sum(y, 0), tensor_expand(tensor_sum(x), SHAPE(WIDE))));
        assert_true(tensor_equal(tensor_prod(y, 0), tensor_expand(tensor_prod(x), SHAPE(WIDE))));
        assert_true(tensor_equal(tensor_amax(y, 0), tensor_expand(tensor_amax(x), SHAPE(WIDE))));
        assert_true(tensor_equal(tensor_amin(y, 0), tensor_expand(tensor_amin(x), SHAPE(WIDE))));
    }
}

static void halves(void **state)
{
    (void)state;
    Tensor *x = tensor_full(SHAPE(4096), 1, TENSOR_BF16);
    assert_int_equal(tensor_dtype(tensor_sum(x)), TENSOR_BF16);
    assert_true(tensor_item(tensor_sum(x)) == 4096); /* summed in bf16 it would stop at 256 */
    assert_int_equal(tensor_dtype(tensor_softmax(x, 0)), TENSOR_BF16);
    assert_true(tensor_item(tensor_norm(x)) == 64);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void order(void **state)
{
    (void)state;
    Tensor *x = VECTOR(2, -0., 1, 0., 2), *indices;
    assert_values(tensor_sort(x, .descending = true, .indices = &indices), 2, 2, 1, 0, 0);
    assert_values(indices, 0, 4, 2, 1, 3);
    assert_values(tensor_mode(x, .indices = &indices), 0);
    assert_int_equal(tensor_item_i64(indices), 3);
    assert_values(tensor_kthvalue(x, 4), 2);
    assert_values(tensor_median_dim(x), 1);
    Tensor *many = tensor_randn(SHAPE(5000), TENSOR_F32), *sorted = tensor_sort(many, .descending = true);
    assert_true(tensor_equal(tensor_topk(many, 40), tensor_narrow(sorted, 0, 0, 40)));
    assert_true(tensor_equal(tensor_gather(many, 0, tensor_argsort(many, .descending = true)), sorted));
}

/* ---- losses ---------------------------------------------------------------------------------- */

static Tensor *classes(TensorShape shape, const int64_t *values)
{
    return tensor_from_data(values, shape, TENSOR_I64);
}

static void class_losses(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 3), V(1, 2, 3, 0, 0, 0)), *w = f64(SHAPE(3), V(1, 2, 4));
    Tensor *t = classes(SHAPE(2), (const int64_t[]){ 2, 1 });
    const double first = log(1 + exp(-1) + exp(-2)), second = log(3);
    assert_values(tensor_cross_entropy(x, t), (first + second) / 2);
    assert_values(tensor_cross_entropy(x, t, w), (4 * first + 2 * second) / 6);
    assert_values(tensor_cross_entropy(x, t, .ignore_index = 2), second);
    assert_values(tensor_nll_loss(tensor_log_softmax(x, 1), t, w), (4 * first + 2 * second) / 6);
    assert_values(tensor_nll_loss(tensor_log_softmax(x, 1), t, .reduction = TENSOR_NONE), first, second);
    Tensor *none = classes(SHAPE(2), (const int64_t[]){ -100, -100 });
    assert_true(isnan(tensor_item(tensor_cross_entropy(x, none))) &&
                isnan(tensor_item(tensor_nll_loss(x, none))));
    assert_values(tensor_cross_entropy(x, none, .reduction = TENSOR_SUM), 0);
    Tensor *bad = classes(SHAPE(2), (const int64_t[]){ 0, 7 });
    assert_null(tensor_cross_entropy(x, bad));
    assert_non_null(strstr(tensor_error(), "7 at position 1"));
    assert_code(TENSOR_EINDEX, NULL);
    assert_null(tensor_nll_loss(x, bad));
    assert_non_null(strstr(tensor_error(), "7 at position 1"));
    assert_code(TENSOR_EINDEX, NULL);
    assert_code(TENSOR_ESHAPE, tensor_cross_entropy(x, tensor_zeros(SHAPE(2), TENSOR_F64)));
    assert_code(TENSOR_ESHAPE, tensor_mse_loss(x, tensor_zeros(SHAPE(3), TENSOR_F64)));
}

/* One-hot probabilities are class indices, smoothed or not. */
static void soft_targets(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, 3, 2), TENSOR_F64), true);
    Tensor *t = classes(SHAPE(4, 2), (const int64_t[]){ 0, 1, 2, 0, 1, 2, 2, 1 });
    Tensor *hot = tensor_scatter_add(tensor_zeros(SHAPE(4, 3, 2), TENSOR_F64), 1, tensor_unsqueeze(t, 1),
                                     tensor_ones(SHAPE(4, 1, 2), TENSOR_F64));
    for (int k = 0; k < 2; k++) {
        Tensor *a = tensor_cross_entropy(x, t, .label_smoothing = k * .3),
               *b = tensor_cross_entropy(x, hot, .label_smoothing = k * .3);
        assert_true(tensor_allclose(a, b, 1e-12, 1e-12, false));
        assert_true(tensor_allclose(gradient(a, x), gradient(b, x), 1e-12, 1e-12, false));
    }
}

static void binary_losses(void **state)
{
    (void)state;
    Tensor *p = VECTOR(0, 1, .5), *t = f64(SHAPE(3), V(1, 0, 1));
    assert_values(tensor_binary_cross_entropy(p, t, .reduction = TENSOR_NONE), 100, 100, log(2));
    assert_values(gradient(tensor_binary_cross_entropy(p, t, .reduction = TENSOR_SUM), p), -1e12, 1e12, -2);
    assert_code(TENSOR_EVALUE, tensor_binary_cross_entropy(VECTOR(1.5), f64(SHAPE(1), V(1))));
    Tensor *x = VECTOR(0, 800, -800), *z = f64(SHAPE(3), V(1, 0, 0));
    assert_values(tensor_binary_cross_entropy_with_logits(x, z, .reduction = TENSOR_NONE), log(2), 800, 0);
    assert_values(gradient(tensor_binary_cross_entropy_with_logits(x, z, .reduction = TENSOR_SUM), x), -.5, 1,
                  0);
    Tensor *q = VECTOR(0, .5);
    assert_values(tensor_kl_div(f64(SHAPE(2), V(-1, -1)), q, .reduction = TENSOR_NONE), 0,
                  .5 * (log(.5) + 1));
}

/* As in PyTorch |x|, of numbers whose powers are infinite or 0, too; in any layout. */
static void lengths_of_one_element(void **state)
{
    (void)state;
    const double order[] = { 2, 3, .5, 1, -1, INFINITY };
    Tensor *x = f64(SHAPE(2, 3), V(1e200, -3e-200, -2, 0, -5e-324, 1e308));
    Tensor *dense = tensor_unsqueeze(x, 1), *turned = tensor_unsqueeze(tensor_transpose(x, 0, 1), -1);
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        Tensor *y = tensor_norm(dense, order[k], 1), *z = tensor_norm(turned, order[k], -1);
        assert_true(tensor_equal(y, tensor_abs(x)));
        assert_true(tensor_equal(z, tensor_abs(tensor_transpose(x, 0, 1))));
    }
    assert_values(tensor_norm(VECTOR(0, -2), 0, .dims = { 0 }), 1);
    assert_values(tensor_norm(tensor_unsqueeze(VECTOR(0, -2), 1), 0, 1), 0, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(long_sums),
        TEST(lengths_of_one_element),
        TEST(offset_variance),
        TEST(same_bits_for_threads),
        TEST(same_bits_for_layouts),
        TEST(ties),
        TEST(nan_wins),
        TEST(zeros),
        TEST(infinite_rows),
        TEST(empty),
        TEST(integers),
        TEST(integers_of_all_sizes),
        TEST(long_integers),
        TEST(halves),
        TEST(order),
        TEST(class_losses),
        TEST(soft_targets),
        TEST(binary_losses),
    };
    return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
