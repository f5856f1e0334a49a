/* test_create.c - tensors from nothing, numbers and memory; sequences as PyTorch has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>

static TensorScope scope;

static int open_scope(void **state)
{
    (void)state;
    tensor_error_clear();
    scope = tensor_scope_open();
    return 0;
}

/* Nothing is left over, and no error that the test did not look at. */
static int close_scope(void **state)
{
    (void)state;
    tensor_scope_close(scope);
    return tensor_error() || tensor_live_count() != 0 ? -1 : 0;
}

static void expect_error(TensorStatus code)
{
    assert_int_equal(tensor_error_code(), code);
    assert_non_null(tensor_error());
    tensor_error_clear();
}

static void check_all(const Tensor *x, double value)
{
    TensorShape shape = tensor_shape(x);
    assert_true(tensor_is_contiguous(x));
    assert_int_equal(shape.ndim, 2);
    for (int64_t i = 0; i < shape.dim[0]; i++)
        for (int64_t j = 0; j < shape.dim[1]; j++) assert_true(tensor_get(x, SHAPE(i, j)) == value);
}

static void constants(void **state)
{
    (void)state;
    for (int d = 0; d < TENSOR_DTYPES; d++) {
        TensorDtype dtype = (TensorDtype)d;
        Tensor *x = tensor_zeros(SHAPE(3, 5), dtype);
        assert_int_equal(tensor_dtype(x), dtype);
        assert_string_equal(tensor_device(x), "cpu");
        check_all(x, 0);
        check_all(tensor_ones(SHAPE(3, 5), dtype), 1);
        check_all(tensor_full(SHAPE(2, 2), 7, dtype), dtype == TENSOR_BOOL ? 1 : 7);
        check_all(tensor_ones_like(x), 1);
        check_all(tensor_zeros_like(tensor_ones(SHAPE(2, 1), dtype)), 0);
        check_all(tensor_full_like(x, 2), dtype == TENSOR_BOOL ? 1 : 2);
        assert_true(tensor_item(tensor_scalar(1, dtype)) == 1);
        assert_int_equal(tensor_ndim(tensor_scalar(1, dtype)), 0);
        assert_int_equal(tensor_dtype(tensor_empty_like(x)), dtype);
        assert_int_equal(tensor_numel(tensor_empty(SHAPE(2, 0, 3), dtype)), 0);
        assert_int_equal(tensor_numel(tensor_full(SHAPE(0), 5, dtype)), 0);
    }
    check_all(tensor_full(SHAPE(1, 2), 2.9, TENSOR_I32), 2);
    check_all(tensor_full(SHAPE(1, 2), -2.9, TENSOR_I64), -2);
    check_all(tensor_full(SHAPE(1, 2), 0.1, TENSOR_BOOL), 1);
    check_all(tensor_full(SHAPE(1, 2), -(double)INFINITY, TENSOR_F16), -(double)INFINITY);
    assert_int_equal(tensor_item_i64(tensor_scalar(0x1p62, TENSOR_I64)), (int64_t)1 << 62);
}

static void refusals(void **state)
{
    (void)state;
    int64_t many[17] = { 1 };
    assert_null(tensor_empty(SHAPE(2, -1), TENSOR_F32));
    expect_error(TENSOR_ESHAPE);
    assert_null(tensor_zeros((TensorShape){ 17, many }, TENSOR_F32));
    expect_error(TENSOR_ESHAPE);
    assert_null(tensor_zeros(SHAPE(INT64_MAX, 4), TENSOR_F64));
    expect_error(TENSOR_ESHAPE);
    assert_null(tensor_ones(SHAPE(INT64_MAX / 2), TENSOR_F64));
    expect_error(TENSOR_ESHAPE);
    assert_null(tensor_ones(SHAPE((int64_t)1 << 50), TENSOR_F64));
    expect_error(TENSOR_ENOMEM);
    assert_null(tensor_full(SHAPE(2), 1, (TensorDtype)99));
    expect_error(TENSOR_EDTYPE);
    assert_null(tensor_scalar(1, (TensorDtype)-1));
    expect_error(TENSOR_EDTYPE);
    assert_null(tensor_zeros_like(NULL));
    expect_error(TENSOR_ENULL);
    assert_null(tensor_full_like(NULL, 1));
    expect_error(TENSOR_ENULL);
    assert_null(tensor_eye(-1, 2, TENSOR_F32));
    expect_error(TENSOR_ESHAPE);
    assert_null(tensor_from_data(NULL, SHAPE(2), TENSOR_F32));
    expect_error(TENSOR_ENULL);
}

static void check_list(const Tensor *x, int n, const double *want)
{
    assert_int_equal(tensor_ndim(x), 1);
    assert_int_equal(tensor_numel(x), n);
    for (int i = 0; i < n; i++) assert_true(tensor_get(x, SHAPE(i)) == want[i]);
}
#define LIST(...) \
    (int)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double)), (double[]) { __VA_ARGS__ }

static void aranges(void **state)
{
    (void)state;
    check_list(tensor_arange(0, 5, 1, TENSOR_F32), LIST(0, 1, 2, 3, 4));
    check_list(tensor_arange(5, 0, -2, TENSOR_I64), LIST(5, 3, 1));
    check_list(tensor_arange(0.5, 5, 1.5, TENSOR_I64), LIST(0, 2, 3));
    check_list(tensor_arange(0, 1, 0.1, TENSOR_F64), LIST(0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5,
                                                          0.6000000000000001, 0.7000000000000001, 0.8, 0.9));
    check_list(tensor_arange(0, 3, 1, TENSOR_BF16), LIST(0, 1, 2));
    check_list(tensor_arange(250, 253, 1, TENSOR_U8), LIST(250, 251, 252));
    assert_int_equal(tensor_numel(tensor_arange(1, 1, 1, TENSOR_F32)), 0);
    assert_int_equal(tensor_numel(tensor_arange(1, 1, -1, TENSOR_F32)), 0);
    Tensor *large = tensor_arange(0x1p60, 0x1p60 + 1024, 1023, TENSOR_I64); /* beyond what f64 counts */
    int64_t values[2];
    assert_int_equal(tensor_copy_to(large, values, sizeof values), 0);
    assert_int_equal(values[1] - values[0], 1023);

    static const double refused[][3] = { { 0, 1, 0 },           { 0, 1, -1 },
                                         { 1, 0, 1 },           { 0, (double)INFINITY, 1 },
                                         { (double)NAN, 1, 1 }, { 0, 1, (double)NAN } };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_null(tensor_arange(refused[i][0], refused[i][1], refused[i][2], TENSOR_F32));
        expect_error(TENSOR_EVALUE);
    }
    assert_null(tensor_arange(0, 1e30, 1, TENSOR_F32));
    expect_error(TENSOR_ESHAPE);
    assert_null(tensor_arange(0, 1, 1, TENSOR_DTYPES));
    expect_error(TENSOR_EDTYPE);
}

static void linspaces(void **state)
{
    (void)state;
    check_list(tensor_linspace(0, 1, 7, TENSOR_F32),
               LIST(0, 0x1.555556p-3, 0x1.555556p-2, 0x1p-1, 0x1.555554p-1, 0x1.aaaaaap-1, 1));
    check_list(tensor_linspace(-3.3, 9.1, 10, TENSOR_F32),
               LIST(-0x1.a66666p+1, -0x1.ec16cp+0, -0x1.16c168p-1, 0x1.aaaabp-1, 0x1.1b05b2p+1, 0x1.cb60b8p+1,
                    0x1.3ddde0p+2, 0x1.960b62p+2, 0x1.ee38e4p+2, 0x1.233334p+3));
    check_list(tensor_linspace(5, -2, 4, TENSOR_F32), LIST(5, 0x1.555556p+1, 0x1.55555p-2, -2));
    check_list(tensor_linspace(1, 1, 3, TENSOR_F32), LIST(1, 1, 1));
    check_list(tensor_linspace(0, 1, 7, TENSOR_F64),
               LIST(0, 0x1.5555555555555p-3, 0x1.5555555555555p-2, 0x1p-1, 0x1.5555555555556p-1,
                    0x1.aaaaaaaaaaaabp-1, 1));
    check_list(tensor_linspace(-3.3, 9.1, 10, TENSOR_F64),
               LIST(-0x1.a666666666666p+1, -0x1.ec16c16c16c17p+0, -0x1.16c16c16c16c4p-1, 0x1.aaaaaaaaaaaa6p-1,
                    0x1.1b05b05b05b04p+1, 0x1.cb60b60b60b62p+1, 0x1.3dddddddddddep+2, 0x1.960b60b60b60cp+2,
                    0x1.ee38e38e38e39p+2, 0x1.2333333333333p+3));
    check_list(tensor_linspace(0, 10, 5, TENSOR_I64), LIST(0, 2, 5, 7, 10));
    check_list(tensor_linspace(-5.9, 5.9, 4, TENSOR_I64), LIST(-5, -1, 1, 5));
    check_list(tensor_linspace(10, -10, 7, TENSOR_I32), LIST(10, 6, 3, 0, -3, -6, -10));
    check_list(tensor_linspace(0, 255, 4, TENSOR_U8), LIST(0, 85, 170, 255));
    check_list(tensor_linspace(0, 1, 5, TENSOR_F16), LIST(0, 0.25, 0.5, 0.75, 1));
    check_list(tensor_linspace(3, 9, 1, TENSOR_F32), LIST(3));
    assert_int_equal(tensor_numel(tensor_linspace(3, 9, 0, TENSOR_F32)), 0);
    assert_null(tensor_linspace(0, 1, -1, TENSOR_F32));
    expect_error(TENSOR_EVALUE);
    assert_null(tensor_linspace(0, 1, 2, TENSOR_DTYPES));
    expect_error(TENSOR_EDTYPE);
}

static void eyes(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = { { 3, 3 }, { 2, 5 }, { 5, 2 }, { 1, 1 }, { 0, 3 }, { 3, 0 } };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int d = 0; d < TENSOR_DTYPES; d++) {
            Tensor *x = tensor_eye(sizes[s][0], sizes[s][1], (TensorDtype)d);
            assert_int_equal(tensor_size(x, 0), sizes[s][0]);
            assert_int_equal(tensor_size(x, 1), sizes[s][1]);
            for (int64_t i = 0; i < sizes[s][0]; i++)
                for (int64_t j = 0; j < sizes[s][1]; j++) assert_true(tensor_get(x, SHAPE(i, j)) == (i == j));
        }
}

static void from_data(void **state)
{
    (void)state;
    const float f[] = { 1, 2, 3, 4, 5, 6 };
    const int64_t n[] = { INT64_MAX, INT64_MIN };
    const bool b[] = { true, false, true };
    Tensor *x = tensor_from_data(f, SHAPE(2, 3), TENSOR_F32);
    assert_true(tensor_data(x) != f);
    assert_memory_equal(tensor_data(x), f, sizeof f);
    assert_memory_equal(tensor_data(tensor_from_data(n, SHAPE(2), TENSOR_I64)), n, sizeof n);
    assert_memory_equal(tensor_data(tensor_from_data(b, SHAPE(3), TENSOR_BOOL)), b, sizeof b);
    assert_int_equal(tensor_numel(tensor_from_data(NULL, SHAPE(0, 2), TENSOR_F32)), 0);
}

/* Too few bytes at an address are noticed where they are known. */
static void short_arrays(void **state)
{
    (void)state;
    int i[] = { 0, 2, 1 };
    assert_tensor_error(tensor_from_data_sized(i, sizeof i, SHAPE(3), TENSOR_I64), TENSOR_EDTYPE);
    assert_tensor_error(tensor_from_data_sized(i, sizeof i, SHAPE(4), TENSOR_I32), TENSOR_EDTYPE);
    assert_true(tensor_item(tensor_sum(tensor_from_data_sized(i, sizeof i, SHAPE(3), TENSOR_I32))) == 3);
    assert_true(tensor_item(tensor_sum(tensor_from_data_sized(i, SIZE_MAX, SHAPE(3), TENSOR_I32))) == 3);
    assert_int_equal(tensor_numel(tensor_from_data_sized(i, 0, SHAPE(0), TENSOR_I64)), 0);
#ifdef __OPTIMIZE__
    assert_tensor_error(tensor_from_data(i, SHAPE(3), TENSOR_I64), TENSOR_EDTYPE);
    assert_tensor_error(tensor_from_data((int[]){ 0, 2, 1 }, SHAPE(3), TENSOR_I64), TENSOR_EDTYPE);
    assert_tensor_error(tensor_from_data((float[]){ 0, 2, 1 }, SHAPE(1, 3), TENSOR_F64), TENSOR_EDTYPE);
    assert_tensor_error(tensor_from_data(&i[1], SHAPE(3), TENSOR_I32), TENSOR_EDTYPE);
#endif
    assert_true(tensor_item(tensor_sum(tensor_from_data(&i[1], SHAPE(2), TENSOR_I32))) == 3);
    assert_true(tensor_item(tensor_sum((tensor_from_data)(i, SHAPE(3), TENSOR_I32))) == 3);
}

static void count_call(void *data, void *ctx)
{
    assert_non_null(data);
    ++*(int *)ctx;
}

static void from_blob(void **state)
{
    (void)state;
    float memory[6] = { 1, 2, 3, 4, 5, 6 };
    int calls = 0;
    TensorScope inner = tensor_scope_open();
    Tensor *x = tensor_from_blob(memory, SHAPE(2, 3), TENSOR_F32, count_call, &calls);
    assert_ptr_equal(tensor_data(x), memory);
    memory[4] = 50;
    assert_true(tensor_get(x, SHAPE(1, 1)) == 50);
    assert_int_equal(tensor_set(x, SHAPE(0, 0), 7), 0);
    assert_true(memory[0] == 7);
    tensor_scope_close(inner);
    assert_int_equal(calls, 1);
    assert_null(tensor_from_blob(NULL, SHAPE(2), TENSOR_F32, count_call, &calls));
    expect_error(TENSOR_ENULL);
    assert_null(tensor_from_blob(memory, SHAPE(-2), TENSOR_F32, count_call, &calls));
    expect_error(TENSOR_ESHAPE);
    assert_int_equal(calls, 1);
    assert_int_equal(tensor_numel(tensor_from_blob(NULL, SHAPE(0), TENSOR_F32, NULL, NULL)), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)

static void beyond_an_integer_dtype(void **state)
{
    (void)state;
    const double inf = INFINITY;
    for (TensorDtype dtype = TENSOR_I64; dtype <= TENSOR_U8; dtype++) {
        assert_null(tensor_arange(0, 1e30, 1e29, dtype));
        expect_error(TENSOR_EVALUE);
        assert_null(tensor_arange(0.5, 1e30, 1e29, dtype));
        expect_error(TENSOR_EVALUE);
        assert_null(tensor_linspace(0, inf, 3, dtype));
        expect_error(TENSOR_EVALUE);
        assert_null(tensor_linspace(NAN, 1, 1, dtype));
        expect_error(TENSOR_EVALUE);
        assert_null(tensor_logspace(0, 400, 2, 10, dtype));
        expect_error(TENSOR_EVALUE);
    }
    assert_null(
        tensor_arange(0, 1e20, 0x1p62, TENSOR_I64)); /* each of the numbers fits, the third value not */
    expect_error(TENSOR_EVALUE);
    check_list(tensor_arange(-0x1p63, 0x1p63, 0x1p62, TENSOR_I64), LIST(-0x1p63, -0x1p62, 0, 0x1p62));
    assert_null(tensor_arange(0, 257, 1, TENSOR_U8));
    expect_error(TENSOR_EVALUE);
    assert_int_equal(tensor_numel(tensor_arange(0, 256, 1, TENSOR_U8)), 256);
    assert_null(tensor_arange(0x1p31, 0x1p31 + 1, 1, TENSOR_I32));
    expect_error(TENSOR_EVALUE);
    check_list(tensor_arange(0x1p31 - 1, 0x1p31, 1, TENSOR_I32), LIST(0x1p31 - 1));
    check_list(tensor_logspace(0, 3, 4, 2.5, TENSOR_I64),
               LIST(1, 2, 6, 15)); /* the base keeps its fraction */
    check_list(tensor_arange(0, 3, 1, TENSOR_BOOL), LIST(0, 1, 1));
}

/* Counted without a walk over the rows: [MAX, MAX] returns at once. */
static void triangles_of_any_size(void **state)
{
    (void)state;
    static const int64_t offsets[] = { -6, -5, -2, -1, 0, 1, 2, 5, 6, INT64_MAX, INT64_MIN };
    for (int64_t rows = 0; rows < 5; rows++)
        for (int64_t columns = 0; columns < 5; columns++)
            for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++)
                for (int upper = 0; upper < 2; upper++) {
                    Tensor *t = upper ? tensor_triu_indices(rows, columns, offsets[k])
                                      : tensor_tril_indices(rows, columns, offsets[k]);
                    const int64_t *at = tensor_data(t), count = tensor_size(t, 1);
                    int64_t n = 0;
                    for (int64_t i = 0; i < rows; i++)
                        for (int64_t j = 0; j < columns; j++) {
                            int64_t o = offsets[k] < -9 ? -9 : offsets[k] > 9 ? 9 : offsets[k];
                            if (upper ? j - i < o : j - i > o) continue;
                            assert_true(n < count && at[n] == i && at[count + n] == j);
                            n++;
                        }
                    assert_int_equal(n, count);
                }
    const int64_t most = INT64_MAX;
    static const int64_t empty[][3] = { { INT64_MAX, 0, 0 },
                                        { 0, INT64_MAX, 0 },
                                        { INT64_MAX, 3, -INT64_MAX } };
    for (size_t k = 0; k < sizeof empty / sizeof *empty; k++)
        assert_int_equal(tensor_size(tensor_tril_indices(empty[k][0], empty[k][1], empty[k][2]), 1), 0);
    assert_int_equal(tensor_size(tensor_triu_indices(most, 3, 0), 1), 6);
    assert_int_equal(tensor_size(tensor_tril_indices(3, most, 0), 1), 6);
    for (int k = 0; k < 8; k++) {
        int64_t offset = k & 1 ? most : k & 2 ? 0 : -5, other = k & 4 ? most : 4;
        assert_null(tensor_tril_indices(most, other, offset));
        expect_error(TENSOR_ESHAPE);
        assert_null(tensor_triu_indices(other, most, -offset));
        expect_error(TENSOR_ESHAPE);
    }
}

static void dims_at_the_most(void **state)
{
    (void)state;
    int64_t ones[TENSOR_MAX_DIMS + 1];
    float data = 5;
    for (int d = 0; d <= TENSOR_MAX_DIMS; d++) ones[d] = 1;
    for (int ndim = TENSOR_MAX_DIMS; ndim <= TENSOR_MAX_DIMS + 1; ndim++) {
        TensorShape shape = { ndim, ones };
        Tensor *made[] = { tensor_zeros(shape, TENSOR_F32), tensor_from_data(&data, shape, TENSOR_F32),
                           tensor_from_blob(&data, shape, TENSOR_F32, NULL, NULL) };
        for (int k = 0; k < 3; k++) assert_int_equal(made[k] != NULL, ndim == TENSOR_MAX_DIMS);
        if (ndim > TENSOR_MAX_DIMS) expect_error(TENSOR_ESHAPE);
    }
}

static void blob_without_sizes(void **state)
{
    (void)state;
    float data[4] = { 0 };
    assert_null(tensor_from_blob(data, (TensorShape){ 2, NULL }, TENSOR_F32, NULL, NULL));
    expect_error(TENSOR_ENULL);
    assert_null(tensor_from_blob(data, (TensorShape){ TENSOR_MAX_DIMS + 1, NULL }, TENSOR_F32, NULL, NULL));
    expect_error(TENSOR_ESHAPE);
    assert_null(tensor_from_blob(data, (TensorShape){ -1, NULL }, TENSOR_F32, NULL, NULL));
    expect_error(TENSOR_ESHAPE);
    assert_null(tensor_from_blob(data, SHAPE(4), TENSOR_DTYPES, NULL, NULL));
    expect_error(TENSOR_EDTYPE);
    assert_null(tensor_zeros((TensorShape){ 2, NULL }, TENSOR_F32));
    expect_error(TENSOR_ENULL);
    assert_non_null(tensor_from_blob(data, (TensorShape){ 0, NULL }, TENSOR_F32, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(constants),
        TEST(refusals),
        TEST(aranges),
        TEST(beyond_an_integer_dtype),
        TEST(triangles_of_any_size),
        TEST(dims_at_the_most),
        TEST(blob_without_sizes),
        TEST(linspaces),
        TEST(eyes),
        TEST(from_data),
        TEST(short_arrays),
        TEST(from_blob),
    };
    return cmocka_run_group_tests_name("create", tests, NULL, NULL);
}
