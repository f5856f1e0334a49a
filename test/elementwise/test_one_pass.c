/* test_one_pass.c - ops of three operands run in one pass where nothing is recorded, and as rows where a
 * graph is: both give the same bits, in f32 and f64, dense, transposed and broadcast, on special values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>

enum { ROWS = 37, COLUMNS = 53, OPERANDS = 3 };

static const struct {
    const char *op, *options;
    int operands;
} calls[] = {
    { "addcmul", "value=-0.3", 3 },
    { "addcmul", "value=1", 3 },
    { "addcdiv", "value=0.7", 3 },
    { "lerp", "weight=0.3", 2 },
    { "lerp", "weight=0.8", 2 },
    { "lerp", "weight=1", 2 },
    { "lerp_tensor", "", 3 },
    { "clamp_tensor", "", 3 },
    { "nan_to_num", "", 1 },
    { "nan_to_num", "nan=0.1 posinf=3", 1 },
    { "nan_to_num", "neginf=-0.7", 1 },
};

/* Every pair of special values among ordinary ones of several orders. */
static Tensor *draw(int k, TensorDtype dtype)
{
    static const double special[] = { 0, -0., 1, -1, .5, INFINITY, -INFINITY, NAN, 1e-42, 3e38 };
    enum { SPECIAL = sizeof special / sizeof *special };
    double x[ROWS * COLUMNS];
    uint64_t seed = 11 + (uint64_t)k;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double u = ldexp((double)(int64_t)seed * 0x1p-62, -(int)(seed >> 20 & 7));
        const int pair = k == 0 ? i % SPECIAL : k == 1 ? i / SPECIAL % SPECIAL : i / SPECIAL / SPECIAL;
        x[i] = i < SPECIAL * SPECIAL * SPECIAL ? special[pair % SPECIAL] : u;
    }
    return tensor_to(tensor_from_data(x, SHAPE(ROWS, COLUMNS), TENSOR_F64), dtype);
}

static void same_bits(const char *what, Tensor *y, Tensor *want)
{
    y = tensor_to(y, TENSOR_F64), want = tensor_to(want, TENSOR_F64);
    const double *a = tensor_data(tensor_contiguous(y)), *b = tensor_data(tensor_contiguous(want));
    assert_true(tensor_numel(y) == tensor_numel(want));
    for (int64_t i = 0; i < tensor_numel(y); i++)
        if (!(isnan(a[i]) && isnan(b[i])) && memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s, element %lld: %a in one pass, %a as rows", what, (long long)i, a[i], b[i]);
}

/* As they lie, transposed, and the last one or the first one broadcast. */
enum { DENSE, TURNED, LAST_ROW, FIRST_COLUMN, LAYOUTS };

static Tensor *laid(Tensor *x, int layout, bool last, bool first)
{
    switch (layout) {
    case TURNED: return tensor_transpose(tensor_contiguous(tensor_transpose(x, 0, 1)), 0, 1);
    case LAST_ROW: return last ? tensor_select(x, 0, 3) : x;
    case FIRST_COLUMN: return first ? tensor_narrow(x, 1, 5, 1) : x;
    default: return x;
    }
}

static void both_ways(const char *op, const char *options, int n, TensorDtype dtype, int layout, Tensor **y)
{
    Tensor *x[OPERANDS];
    for (int graph = 0; graph < 2; graph++) {
        for (int k = 0; k < n; k++) {
            x[k] = laid(draw(k, dtype), layout, k == n - 1, k == 0);
            if (graph) tensor_requires_grad_(x[k], true);
        }
        y[graph] = tensor_apply_text(op, x, n, options);
        assert_non_null(y[graph]);
        assert_true(tensor_requires_grad(y[graph]) == (graph == 1));
    }
}

static void test_one_pass_has_the_bits_of_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int wide = 0; wide < 2; wide++) {
                TensorScope scope = tensor_scope_open();
                Tensor *y[2];
                both_ways(calls[i].op, calls[i].options, calls[i].operands, wide ? TENSOR_F64 : TENSOR_F32,
                          layout, y);
                same_bits(calls[i].op, y[0], y[1]);
                tensor_scope_close(scope);
            }
}

static Tensor *vector(Tensor *x, int dim, int64_t at) { return tensor_contiguous(tensor_select(x, dim, at)); }

static void test_outer_sums(void **state)
{
    static const char *const options[] = { "", "alpha=0.3", "beta=-0.7", "beta=0 alpha=2", "alpha=0" };
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x[3] = { draw(0, TENSOR_F32), vector(draw(1, TENSOR_F32), 1, 2),
                         vector(draw(2, TENSOR_F32), 0, 2) };
        Tensor *y = tensor_apply_text("addr", x, 3, options[i]);
        for (int k = 0; k < 3; k++) tensor_requires_grad_(x[k], true);
        same_bits("addr", y, tensor_apply_text("addr", x, 3, options[i]));
        tensor_scope_close(scope);
    }
}

static void test_cross_products(void **state)
{
    (void)state;
    for (int dim = 0; dim < 2; dim++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x[2];
        for (int k = 0; k < 2; k++) x[k] = tensor_narrow(draw(k, TENSOR_F32), dim, 4, 3);
        const char *options = dim ? "dim=1" : "dim=0";
        Tensor *y = tensor_apply_text("cross", x, 2, options);
        for (int k = 0; k < 2; k++) x[k] = tensor_requires_grad_(tensor_clone(x[k]), true);
        same_bits("cross", y, tensor_apply_text("cross", x, 2, options));
        tensor_scope_close(scope);
    }
}

/* Gradients of outer products are products of a matrix and a vector: as the definition in f64. */
static void test_gradients_of_outer_products(void **state)
{
    (void)state;
    static const int64_t shapes[][2][4] = { { { 1, 70, 1, 1 }, { 1, 1, 1, 90 } },
                                            { { 9, 1, 11, 1 }, { 1, 8, 1, 13 } },
                                            { { 1, 5, 1, 30 }, { 40, 1, 3, 1 } } };
    for (int c = 0; c < 3 * 2 * 2; c++) {
        TensorScope scope = tensor_scope_open();
        const TensorDtype dtype = c % 2 ? TENSOR_F64 : TENSOR_F32;
        Tensor *x[2], *d[2], *want;
        for (int k = 0; k < 2; k++)
            x[k] = tensor_requires_grad_(tensor_randn((TensorShape){ 4, shapes[c / 4][k] }, dtype), true);
        Tensor *y = tensor_mul(x[0], x[1]), *g = tensor_randn(tensor_shape(y), dtype);
        if (c / 2 % 2) g = tensor_transpose(tensor_contiguous(tensor_transpose(g, 1, 3)), 1, 3);
        assert_int_equal(tensor_gradients_many({ 1, &y }, { 2, x }, d, .grad_outputs = { 1, &g }), 0);
        for (int k = 0; k < 2; k++) {
            want = tensor_mul(tensor_to(g, TENSOR_F64), tensor_to(tensor_detach(x[1 - k]), TENSOR_F64));
            want = tensor_sum_to_size(want, tensor_shape(x[k]));
            assert_true(tensor_allclose(tensor_to(d[k], TENSOR_F64), want, 1e-5, 1e-5, false));
            assert_true(dtype == TENSOR_F32 || tensor_allclose(d[k], want, 1e-13, 1e-13, false));
        }
        tensor_scope_close(scope);
    }
}

/* One dtype, on the host, no graph: anything else goes by the rows. */
static void test_what_one_pass_does_not_take(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = draw(0, TENSOR_F32), *half = tensor_to(x, TENSOR_F16), *wide = draw(1, TENSOR_F64);
    assert_true(tensor_dtype(tensor_addcmul(x, wide, wide)) == TENSOR_F64);
    assert_true(tensor_dtype(tensor_nan_to_num(half)) == TENSOR_F16);
    assert_true(tensor_dtype(tensor_addcdiv(half, half, half)) == TENSOR_F16);
    assert_null(tensor_addcmul(x, x, tensor_narrow(x, 0, 0, 5)));
    assert_non_null(strstr(tensor_error(), "broadcast"));
    tensor_error_clear();
    tensor_scope_close(scope);
}

static int no_error(void **state)
{
    (void)state;
    assert_null(tensor_error());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_one_pass_has_the_bits_of_rows, no_error),
        cmocka_unit_test_teardown(test_outer_sums, no_error),
        cmocka_unit_test_teardown(test_gradients_of_outer_products, no_error),
        cmocka_unit_test_teardown(test_cross_products, no_error),
        cmocka_unit_test_teardown(test_what_one_pass_does_not_take, no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
