/* test_order.c - running products, searching, positions, slopes; dtype options; what is exactly 1: what
 * samples and golden cases cannot show. */
#include "../traps.h"

static bool apart(Tensor *y, Tensor *x) { return y && tensor_data(y) != tensor_data(x); }

/* ---- copies ---------------------------------------------------------------------------------- */

static void copies_share_no_memory(void **state)
{
    (void)state;
    Tensor *one = numbers(SHAPE(1), "3", TENSOR_F64), *row = numbers(SHAPE(1, 3), "1 2 3", TENSOR_F64);
    assert_true(apart(tensor_cumprod(one, 0), one) && apart(tensor_cumprod(row, 0), row));
    assert_true(apart(tensor_cumprod(tensor_select(one, 0, 0), 0), one));
    assert_true(apart(tensor_cumsum(one, 0), one) && apart(tensor_sum_to_size(row, SHAPE(1, 3)), row));
    assert_true(apart(tensor_diff(row, 0), row) && apart(tensor_rot90(row, 4), row));
    assert_true(apart(tensor_repeat(row, SHAPE(1, 1)), row) && apart(tensor_tile(row, SHAPE(1)), row));
    assert_true(apart(tensor_repeat_interleave(one, 1, .dim = 0), one));
    assert_true(apart(tensor_pad(row, DIMS(0, 0)), row) && apart(tensor_sort(one), one));
    assert_true(apart(tensor_pad(row, DIMS(0, 0), .mode = TENSOR_PAD_REPLICATE), row));
    assert_true(apart(tensor_nansum(one, 0, .keepdim = true), one));
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* A single visible element, alone or among -inf, at every place of lines of every length. */
static void a_single_visible_element_has_probability_1(void **state)
{
    (void)state;
    const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16 };
    for (size_t k = 0; k < 3; k++)
        for (int64_t n = 1; n <= 40; n += 13)
            for (int64_t columns = 1; columns <= 33; columns += 16) {
                Tensor *x = tensor_full(SHAPE(n, columns), -INFINITY, dtypes[k]);
                Tensor *visible = tensor_uniform_(tensor_empty(SHAPE(columns), dtypes[k]), -9, 9);
                assert_non_null(tensor_copy_(tensor_select(x, 0, n / 2), visible));
                for (int dim = 0; dim < 2; dim++) { /* as columns, and as rows */
                    Tensor *t = dim ? tensor_contiguous(tensor_transpose(x, 0, 1)) : x;
                    Tensor *p = tensor_softmax(t, dim), *lp = tensor_log_softmax(t, dim);
                    assert_true(tensor_item(tensor_sum(tensor_eq_scalar(p, 1))) == (double)columns);
                    assert_true(tensor_item(tensor_sum(tensor_eq_scalar(p, 0))) ==
                                (double)(columns * (n - 1)));
                    assert_true(tensor_item(tensor_sum(tensor_eq_scalar(lp, 0))) == (double)columns);
                }
            }
    /* elements that are too small to change the sum keep their own probability */
    Tensor *p = tensor_softmax(numbers(SHAPE(2), "0 -45", TENSOR_F32), 0);
    assert_true(tensor_item(tensor_select(p, 0, 0)) == 1);
    assert_true(fabs(tensor_item(tensor_select(p, 0, 1)) / exp(-45) - 1) < 1e-6);
}

/* ---- dtype ----------------------------------------------------------------------------------- */

static void dtype_casts_first(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(3), "0.5 0.5 1.7", TENSOR_F32);
    assert_true(has(tensor_sum(x, .dtype = TENSOR_I64), SHAPE(), "1"));
    assert_true(has(tensor_prod(x, .dtype = TENSOR_I32), SHAPE(), "0"));
    assert_true(has(tensor_nansum(x, .dtype = TENSOR_I64), SHAPE(), "1"));
    assert_true(has(tensor_cumsum(x, 0, .dtype = TENSOR_I64), SHAPE(3), "0 0 1"));
    assert_int_equal(tensor_dtype(tensor_cumprod(x, 0, .dtype = TENSOR_I32)), TENSOR_I32);
    assert_int_equal(tensor_dtype(tensor_sum(x, .dtype = TENSOR_BOOL)), TENSOR_BOOL);
    Tensor *i = indices(SHAPE(2), "3 4");
    assert_true(has(tensor_mean(i, .dtype = TENSOR_F64), SHAPE(), "3.5"));
    assert_true(has(tensor_norm(i, .dtype = TENSOR_F32), SHAPE(), "5"));
    assert_true(has(tensor_linalg_vector_norm(i, .dtype = TENSOR_F64), SHAPE(), "5"));
    assert_int_equal(tensor_dtype(tensor_softmin(i, 0, .dtype = TENSOR_F16)), TENSOR_F16);
    assert_true(has(tensor_softmin(i, 0, .dtype = TENSOR_F64), SHAPE(2), "0.7310585786 0.2689414214"));
    assert_refused(tensor_softmax(i, 0), TENSOR_EDTYPE);
    assert_refused(tensor_mean(x, .dtype = TENSOR_I64), TENSOR_EDTYPE);
    assert_refused(tensor_sum(x, .dtype = (TensorDtype)9), TENSOR_EVALUE);
    /* the gradient goes back through the cast; halves are not rounded on the way */
    Tensor *h = tensor_requires_grad_(numbers(SHAPE(2), "1 2", TENSOR_F16), true);
    Tensor *y = tensor_log_softmax(h, 0, .dtype = TENSOR_F64);
    assert_int_equal(tensor_dtype(y), TENSOR_F64);
    assert_true(has(y, SHAPE(2), "-1.3132616875 -0.3132616875"));
    assert_int_equal(tensor_dtype(tensor_gradients(tensor_sum(y), h)), TENSOR_F16);
}

static void running_in_place_keeps_the_dtype(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(3), "1 2 3", TENSOR_I32);
    assert_ptr_equal(tensor_cumsum_(x, 0), x);
    assert_true(has(x, SHAPE(3), "1 3 6") && tensor_dtype(x) == TENSOR_I32);
    assert_true(has(tensor_cumprod_(x, 0), SHAPE(3), "1 3 18"));
    assert_true(has(tensor_cumsum(x, 0, .reverse = true), SHAPE(3), "22 21 18"));
}

/* ---- dims ------------------------------------------------------------------------------------ */

static void a_dim_that_must_be_given(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(3), "1 2 3", TENSOR_F64);
    assert_refused(tensor_softmax(x), TENSOR_EVALUE);
    assert_refused(tensor_cumsum(x), TENSOR_EVALUE);
    assert_refused(tensor_cummax(x), TENSOR_EVALUE);
    assert_refused(tensor_max_dim(x), TENSOR_EVALUE);
}

static void dims_of_rank_0(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(), "7", TENSOR_F64), *v = numbers(SHAPE(2), "1 2", TENSOR_F64);
    assert_refused(tensor_roll(x, DIMS(1), DIMS(0)), TENSOR_EINDEX);
    assert_true(has(tensor_roll(x, DIMS(1)), SHAPE(), "7"));
    assert_refused(tensor_flipud(x), TENSOR_ESHAPE);
    assert_refused(tensor_fliplr(v), TENSOR_ESHAPE);
    assert_true(has(tensor_flipud(v), SHAPE(2), "2 1"));
    assert_true(has(tensor_flip(x, DIMS(0)), SHAPE(), "7"));
    assert_true(has(tensor_rot90(numbers(SHAPE(1, 2), "1 2", TENSOR_F64)), SHAPE(2, 1), "2 1"));
}

static void lists_are_checked(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2), "1 2", TENSOR_F64);
    int64_t many[17] = { 0 };
    assert_refused(tensor_sum(x, .dims = { 2, NULL }), TENSOR_ENULL);
    assert_refused(tensor_sum(x, .dims = { 17, many }), TENSOR_ESHAPE);
    assert_refused(tensor_reshape(x, (TensorShape){ -1, many }), TENSOR_ESHAPE);
    assert_refused(tensor_permute(x, (TensorShape){ 1, NULL }), TENSOR_ENULL);
    assert_refused(tensor_sum(x, 0, .dims = DIMS(0)), TENSOR_EVALUE);
    assert_refused(tensor_squeeze(x, 0, .dims = DIMS(0)), TENSOR_EVALUE);
    Tensor *parts[2];
    assert_int_equal(tensor_split_sizes(x, (TensorShape){ 2, NULL }, 0, parts), -1);
    assert_refused(parts[0], TENSOR_ENULL);
}

/* ---- searching ------------------------------------------------------------------------------- */

static void search_in_lists_out_of_order(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(4), "3 1 2 2", TENSOR_F64), *order = tensor_argsort(x);
    Tensor *v = numbers(SHAPE(3), "0 2 9", TENSOR_F64);
    assert_true(has(tensor_searchsorted(x, v, .sorter = order), SHAPE(3), "0 1 4"));
    assert_true(
        has(tensor_searchsorted(x, v, .sorter = order, .side = TENSOR_SIDE_RIGHT), SHAPE(3), "0 3 4"));
    assert_int_equal(tensor_dtype(tensor_searchsorted(x, v, .out_int32 = true)), TENSOR_I32);
    assert_int_equal(tensor_dtype(tensor_bucketize(v, v, .out_int32 = true)), TENSOR_I32);
    assert_refused(tensor_searchsorted(x, v, .right = true, .side = TENSOR_SIDE_LEFT), TENSOR_EVALUE);
    assert_refused(tensor_searchsorted(x, v, .sorter = indices(SHAPE(4), "0 1 2 4")), TENSOR_EINDEX);
}

/* Several values are looked for at once: lists and values of all lengths, with equal ones. */
static void search_finds_how_many_are_less(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 20; n++)
        for (int64_t values = 1; values < 11; values += 3) {
            Tensor *list = tensor_sort(tensor_randint(0, 9, SHAPE(2, n)), 1);
            Tensor *v = tensor_randint(-1, 10, SHAPE(2, values)), *apart = tensor_unsqueeze(v, 2),
                   *all = tensor_unsqueeze(list, 1), *order = tensor_argsort(list, 1);
            Tensor *less = tensor_sum(tensor_lt(all, apart), -1),
                   *most = tensor_sum(tensor_le(all, apart), -1);
            Tensor *x = tensor_to(list, TENSOR_F64), *w = tensor_to(v, TENSOR_F64);
            assert_true(tensor_equal(tensor_searchsorted(list, v), less));
            assert_true(tensor_equal(tensor_searchsorted(list, v, .right = true), most));
            assert_true(tensor_equal(tensor_searchsorted(x, w), less));
            assert_true(tensor_equal(tensor_searchsorted(x, w, .right = true, .sorter = order), most));
        }
}

/* ---- positions ------------------------------------------------------------------------------- */

static void positions_and_indices(void **state)
{
    (void)state;
    Tensor *at[3];
    assert_int_equal(tensor_unravel_index(indices(SHAPE(2), "23 6"), SHAPE(2, 3, 4), at), 3);
    assert_true(has(at[0], SHAPE(2), "1 0") && has(at[1], SHAPE(2), "2 1") && has(at[2], SHAPE(2), "3 2"));
    assert_int_equal(tensor_unravel_index(indices(SHAPE(1), "24"), SHAPE(2, 3, 4), at), -1);
    assert_refused(at[2], TENSOR_EINDEX);
    assert_int_equal(tensor_unravel_index(indices(SHAPE(1), "0"), SHAPE(2), NULL), -1);
    assert_refused(NULL, TENSOR_ENULL);
    Tensor *x = numbers(SHAPE(2, 2), "0 1 1 0", TENSOR_F64);
    assert_true(has(tensor_nonzero_static(x, .size = 3), SHAPE(3, 2), "0 1 1 0 -1 -1"));
    assert_true(has(tensor_nonzero_static(x, .size = 1, .fill_value = 5), SHAPE(1, 2), "0 1"));
    assert_refused(tensor_nonzero_static(x), TENSOR_EVALUE);
}

/* ---- slopes ---------------------------------------------------------------------------------- */

static void slopes_along_all_dims(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2, 3), "1 2 4 2 4 8", TENSOR_F64), *g[2];
    assert_int_equal(tensor_gradient(x, g), 2);
    assert_true(has(g[0], SHAPE(2, 3), "1 2 4 1 2 4") && has(g[1], SHAPE(2, 3), "1 1.5 2 2 3 4"));
    assert_int_equal(tensor_gradient(x, g, .spacing = 2, .dim = -1), 1);
    assert_true(has(g[0], SHAPE(2, 3), "0.5 0.75 1 1 1.5 2"));
    assert_int_equal(tensor_gradient(x, g, .spacings = (double[]){ 2, 1 }, .dims = DIMS(1, 0)), 2);
    assert_true(has(g[0], SHAPE(2, 3), "0.5 0.75 1 1 1.5 2") && has(g[1], SHAPE(2, 3), "1 2 4 1 2 4"));
    Tensor *at = numbers(SHAPE(3), "0 1 3", TENSOR_F64);
    assert_int_equal(tensor_gradient(x, g, .coordinates = TENSORS(at), .dim = 1), 1);
    assert_true(has(g[0], SHAPE(2, 3), "1 1 1 2 2 2"));
    assert_int_equal(tensor_gradient(indices(SHAPE(3), "1 2 4"), g), 1); /* of integers in f32 */
    assert_true(has(g[0], SHAPE(3), "1 1.5 2") && tensor_dtype(g[0]) == TENSOR_F32);
    assert_int_equal(tensor_gradient(indices(SHAPE(3), "16777216 16777217 16777218"), g), 1);
    assert_true(has(g[0], SHAPE(3), "1 1 1")); /* f32 does not hold the second */
    assert_int_equal(tensor_gradient(indices(SHAPE(3), "1 2 4"), g, .coordinates = TENSORS(at)), 1);
    assert_true(has(g[0], SHAPE(3), "1 1 1"));
    assert_int_equal(tensor_gradient(x, g, .spacing = 2, .coordinates = TENSORS(at), .dim = 1), -1);
    assert_refused(g[0], TENSOR_EVALUE);
    assert_int_equal(tensor_gradient(x, g, .coordinates = TENSORS(at)), -1);
    assert_refused(g[1], TENSOR_EVALUE);
    assert_int_equal(tensor_gradient(x, g, .edge_order = 2), -1);
    assert_refused(g[0], TENSOR_ESHAPE);
    assert_int_equal(tensor_gradient(x, g, .dims = DIMS(0, -2)), -1);
    assert_refused(NULL, TENSOR_EVALUE);
}

/* ---- products -------------------------------------------------------------------------------- */

static void products_of_others_on_several_threads(void **state)
{
    (void)state;
    Tensor *x =
        tensor_requires_grad_(tensor_uniform_(tensor_empty(SHAPE(300, 7, 40), TENSOR_F64), .5, 2), true);
    const int threads = tensor_num_threads();
    tensor_set_num_threads(1);
    Tensor *one = tensor_gradients(tensor_sum(tensor_prod(x, 1)), x);
    tensor_set_num_threads(2);
    Tensor *two = tensor_gradients(tensor_sum(tensor_prod(x, 1)), x);
    tensor_set_num_threads(threads);
    assert_true(tensor_equal(one, two));
    assert_true(tensor_allclose(one, tensor_div(tensor_prod(x, 1, .keepdim = true), x), 1e-12, 0, false));
}

/* ---- long lists ------------------------------------------------------------------------------ */

/* What sort does for a list of doubles, by insertion: NaN behind all (descending: before), equal ones as they
 * were. */
static bool stands_before(double a, double b, bool descending)
{
    if (a != a || b != b) return descending ? a != a && b == b : a == a && b != b;
    return descending ? a > b : a < b;
}

static void plain_order(const double *v, int64_t n, bool descending, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (; j > 0 && stands_before(v[i], v[order[j - 1]], descending); j--) order[j] = order[j - 1];
        order[j] = i;
    }
}

/* Few values, so that many are equal, among them both zeros, and NaN now and then; as a dtype holds them. */
static Tensor *with_ties(int64_t n, TensorDtype dtype, double *v)
{
    const bool floats = tensor_dtype_is_float(dtype);
    Tensor *x = tensor_empty(SHAPE(n), TENSOR_F64);
    uint32_t u = 12345;
    for (int64_t i = 0; i < n; i++) {
        u = u * 1664525 + 1013904223;
        v[i] = floats ? ((int)(u >> 24) - 128) * (u & 4096 ? .25 : -.25) : (double)(u >> 26);
        if (floats && u >> 25 == 77) v[i] = NAN;
        if (dtype == TENSOR_BOOL) v[i] = u >> 31;
    }
    memcpy(tensor_data(x), v, (size_t)n * sizeof *v);
    return tensor_to(x, dtype);
}

static void compare_order(int64_t n, TensorDtype dtype)
{
    enum { MOST = 3000 };
    static double v[MOST];
    static int64_t order[MOST];
    Tensor *x = with_ties(n, dtype, v), *at = NULL;
    for (int descending = 1; descending >= 0; descending--) {
        plain_order(v, n, descending, order);
        assert_non_null(tensor_sort(x, .descending = descending, .stable = true, .indices = &at));
        assert_memory_equal(tensor_data(at), order, (size_t)n * sizeof *order);
        for (int64_t k = 1; k <= n; k = k == n ? n + 1 : k * 6 < n ? k * 6 : n) {
            assert_non_null(tensor_topk(x, k, .largest = descending, .indices = &at));
            assert_memory_equal(tensor_data(at), order, (size_t)k * sizeof *order);
        }
    }
    for (int64_t k = 1; k <= n; k += n / 7 + 1) {
        assert_non_null(tensor_kthvalue(x, k, .indices = &at));
        assert_int_equal(tensor_item(at), order[k - 1]);
    }
}

/* By insertion, merging, counting bytes, and selection. */
static void lists_of_any_length_are_in_order(void **state)
{
    (void)state;
    const int64_t lengths[] = { 1, 12, 13, 159, 160, 701, 3000 };
    for (int dtype = 0; dtype < TENSOR_DTYPES; dtype++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            compare_order(lengths[k], (TensorDtype)dtype);
}

/* Distinct keys in every byte. */
static void long_numbers_are_in_order(void **state)
{
    (void)state;
    enum { N = 5000 };
    Tensor *x = tensor_randint(INT64_MIN / 2, INT64_MAX / 2, SHAPE(N)), *y = tensor_sort(x);
    Tensor *z = tensor_uniform_(tensor_empty(SHAPE(N), TENSOR_F32), -1e30, 1e30), *w = tensor_sort(z);
    const int64_t *v = tensor_data(y);
    const float *f = tensor_data(w);
    for (int i = 1; i < N; i++) assert_true(v[i - 1] <= v[i] && f[i - 1] <= f[i]);
    assert_true(tensor_equal(tensor_kthvalue(z, N / 3), tensor_select(w, 0, N / 3 - 1)));
    assert_true(tensor_equal(tensor_kthvalue(x, N - 5), tensor_select(y, 0, N - 6)));
    assert_true(tensor_equal(tensor_median(z), tensor_select(w, 0, (N - 1) / 2)));
}

/* Around the widest range whose keys share a word with the place, at both ends of i64; strided lines too. */
static void ranges_of_long_numbers(void **state)
{
    (void)state;
    enum { N = 400 };
    static const uint64_t ranges[] = { 0, 1, 77, UINT32_MAX, UINT64_C(1) << 32 };
    for (int c = 0; c < 5 * 2 * 2; c++) {
        const uint64_t range = ranges[c % 5], low = c / 5 % 2 ? (uint64_t)INT64_MIN : INT64_MAX - range;
        int64_t v[N][2];
        for (uint64_t i = 0; i < N; i++)
            for (uint64_t k = 0; k < 2; k++) v[i][k] = (int64_t)(low + (i * 7 + k) % 11 * range / 10);
        const bool descending = c / 10;
        Tensor *at = NULL, *x = tensor_from_data(v, SHAPE(N, 2), TENSOR_I64),
               *y = tensor_sort(x, 0, .descending = descending, .stable = true, .indices = &at);
        const int64_t *sorted = tensor_data(y), *place = tensor_data(at);
        for (int i = 2; i < 2 * N; i++) {
            const int64_t a = sorted[i - 2], b = sorted[i];
            assert_true(b == v[place[i]][i % 2]);
            assert_true(a == b ? place[i - 2] < place[i] : (a < b) != descending);
        }
        Tensor *rows = tensor_contiguous(tensor_transpose(x, 0, 1));
        assert_true(tensor_equal(tensor_kthvalue(rows, N / 3, 1), tensor_kthvalue(x, N / 3, 0)));
        assert_true(descending ||
                    tensor_equal(tensor_kthvalue(rows, N / 3, 1), tensor_select(y, 0, N / 3 - 1)));
    }
}

/* The place of the first NaN, or else of the first extreme. */
static int64_t plain_extreme(const double *v, int64_t n, bool max)
{
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (v[i] != v[i]) return i;
        if (max ? v[i] > v[at] : v[i] < v[at]) at = i;
    }
    return at;
}

static void extremes_of_long_lines(void **state)
{
    (void)state;
    static double v[700];
    for (int dtype = 0; dtype < TENSOR_DTYPES; dtype++)
        for (int64_t n = 1; n <= 700; n = n * 3 / 2 + 1) {
            Tensor *x = with_ties(n, (TensorDtype)dtype, v);
            for (int max = 0; max < 2; max++) {
                const int64_t at = plain_extreme(v, n, max);
                Tensor *place = max ? tensor_argmax(x) : tensor_argmin(x),
                       *most = max ? tensor_amax(x) : tensor_amin(x);
                assert_int_equal(tensor_item(place), at);
                assert_true(tensor_item(most) == v[at] || (v[at] != v[at] && isnan(tensor_item(most))));
            }
            int64_t some = 0;
            for (int64_t i = 0; i < n; i++) some += v[i] != 0;
            assert_int_equal(tensor_item(tensor_count_nonzero(x)), some);
            assert_int_equal(tensor_item(tensor_any(x)), some > 0);
            assert_int_equal(tensor_item(tensor_all(x)), some == n);
        }
}

/* Many of few bins are added up in two lists: thirds, so that each sum is rounded. */
static void weights_of_few_bins(void **state)
{
    (void)state;
    for (int64_t n = 40; n <= 41; n++)
        for (int64_t bins = 1; bins <= 20; bins += 3) {
            Tensor *x = tensor_zeros(SHAPE(n), TENSOR_I64), *w = tensor_zeros(SHAPE(n), TENSOR_F64);
            int64_t *at = tensor_data(x);
            double *weight = tensor_data(w), sum[20] = { 0 };
            for (int64_t i = 0; i < n; i++) {
                at[i] = i * i % bins, weight[i] = (double)(i + 1) / 3;
                sum[at[i]] += weight[i];
            }
            Tensor *y = tensor_bincount(x, w, .minlength = bins);
            assert_non_null(y);
            for (int64_t k = 0; k < bins; k++)
                assert_true(fabs(((double *)tensor_data(y))[k] - sum[k]) <= 1e-14 * sum[k]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(copies_share_no_memory),
        TEST(a_single_visible_element_has_probability_1),
        TEST(dtype_casts_first),
        TEST(running_in_place_keeps_the_dtype),
        TEST(a_dim_that_must_be_given),
        TEST(dims_of_rank_0),
        TEST(lists_are_checked),
        TEST(search_in_lists_out_of_order),
        TEST(search_finds_how_many_are_less),
        TEST(positions_and_indices),
        TEST(slopes_along_all_dims),
        TEST(products_of_others_on_several_threads),
        TEST(lists_of_any_length_are_in_order),
        TEST(long_numbers_are_in_order),
        TEST(ranges_of_long_numbers),
        TEST(extremes_of_long_lines),
        TEST(weights_of_few_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
