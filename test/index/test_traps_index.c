/* test_traps_index.c - what goes wrong in gather, scatter, masks and embedding elsewhere, one test a trap;
 * and what the functions around their ops do. */
#include <sys/mman.h>
#include <unistd.h>
#include "traps.h"

/* ---- bags ------------------------------------------------------------------------------------ */

/* Columns in registers, and what is left of 151, add as row after row does; so do gradients. */
static void test_bags_of_wide_rows_add_as_rows_do(void **state)
{
    (void)state;
    for (int dtype = TENSOR_F32; dtype <= TENSOR_F64; dtype++) {
        Tensor *w = tensor_requires_grad_(tensor_randn(SHAPE(9, 151), (TensorDtype)dtype), true),
               *each = tensor_requires_grad_(tensor_randn(SHAPE(5, 7), (TensorDtype)dtype), true),
               *index = tensor_randint(0, 9, SHAPE(5, 7)), *list = tensor_reshape(index, SHAPE(35)),
               *bag = tensor_repeat_interleave(tensor_arange(0, 5, 1, TENSOR_I64), 7),
               *dy = tensor_randn(SHAPE(5, 151), (TensorDtype)dtype), *g[2];
        Tensor *y = tensor_embedding_bag(index, w, .mode = TENSOR_BAG_SUM),
               *rows = tensor_index_select(w, 0, list),
               *zero = tensor_zeros(SHAPE(5, 151), (TensorDtype)dtype);
        assert_true(tensor_equal(y, tensor_index_add(zero, 0, bag, rows)));
        g[0] = tensor_gradients(y, w, dy);
        zero = tensor_zeros(SHAPE(9, 151), (TensorDtype)dtype);
        assert_true(tensor_equal(g[0], tensor_index_add(zero, 0, list, tensor_index_select(dy, 0, bag))));
        y = tensor_embedding_bag(index, w, .mode = TENSOR_BAG_SUM, .per_sample_weights = each);
        g[1] = tensor_gradients(y, each, dy);
        Tensor *want = tensor_sum(tensor_mul(rows, tensor_index_select(dy, 0, bag)), 1),
               *off = tensor_sub(tensor_reshape(g[1], SHAPE(35)), want);
        assert_true(tensor_item(tensor_amax(tensor_abs(off))) < (dtype == TENSOR_F32 ? 1e-4 : 1e-12));
    }
}

static void test_far_indices_are_out_of_range(void **state)
{
    (void)state;
    const int64_t far[] = { INT64_MIN, INT64_MAX, -1, 3 };
    for (int i = 0; i < 4; i++) {
        Tensor *index = tensor_from_data(&far[i], SHAPE(1), TENSOR_I64);
        assert_refused(tensor_scatter_value(tensor_zeros(SHAPE(3), TENSOR_F32), 0, index, 1), TENSOR_EINDEX);
    }
}

/* ---- gather and scatter ---------------------------------------------------------------------- */

static void test_gather_takes_a_smaller_index_and_adds_duplicates(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 3), "0 1 2 3 4 5"), *y = tensor_gather(x, 1, indices(SHAPE(1, 2), "2 2"));
    assert_true(has(y, SHAPE(1, 2), "2 2"));
    assert_true(has(gradient(y, x), SHAPE(2, 3), "0 0 3 0 0 0"));
}

static void test_scatter_duplicates_the_last_wins_and_has_the_gradient(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(3), "1 2 3"), *src = leaf(SHAPE(3), "7 8 9"), *i = indices(SHAPE(3), "1 1 0"),
           *y = tensor_scatter(x, 0, i, src);
    assert_true(has(y, SHAPE(3), "9 8 3"));
    assert_true(has(gradient(y, x), SHAPE(3), "0 0 3"));
    assert_true(has(gradient(y, src), SHAPE(3), "0 2 1"));
    assert_true(has(gradient(tensor_scatter_value(x, 0, i, 5), x), SHAPE(3), "0 0 3"));
}

static bool sums_in_one_order(Tensor *(*sum)(Tensor *index, Tensor *src))
{
    Tensor *index = tensor_randint(0, 3, SHAPE(4000)), *src = tensor_randn(SHAPE(4000), TENSOR_F32),
           *first = NULL;
    bool same = true;
    for (int threads = 1; threads <= 2; threads++) {
        tensor_set_num_threads(threads);
        Tensor *y = sum(index, src);
        same &= !first || tensor_equal(first, y);
        first = y;
    }
    return same && first;
}

static Tensor *by_scatter_add(Tensor *index, Tensor *src)
{
    return tensor_scatter_add(tensor_zeros(SHAPE(3), TENSOR_F32), 0, index, src);
}
static Tensor *by_index_add(Tensor *index, Tensor *src)
{
    return tensor_index_add(tensor_zeros(SHAPE(3), TENSOR_F32), 0, index, src);
}
static Tensor *by_index_put(Tensor *index, Tensor *src)
{
    return tensor_index_put(tensor_zeros(SHAPE(3), TENSOR_F32), TENSORS(index), src, .accumulate = true);
}

static void test_sums_have_the_same_bits_every_time(void **state)
{
    (void)state;
    assert_true(sums_in_one_order(by_scatter_add));
    assert_true(sums_in_one_order(by_index_add));
    assert_true(sums_in_one_order(by_index_put));
}

/* ---- scatter_reduce -------------------------------------------------------------------------- */

static void test_scatter_of_an_empty_index_takes_any_source(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(3, 4), TENSOR_F64), *none = tensor_zeros(SHAPE(0, 2), TENSOR_I64),
           *one = tensor_zeros(SHAPE(1, 1), TENSOR_I64), *line = tensor_ones(SHAPE(2), TENSOR_F64);
    assert_true(tensor_equal(tensor_scatter(x, 0, none, line), x));
    assert_true(tensor_equal(tensor_scatter(x, 0, none, tensor_ones(SHAPE(1, 1), TENSOR_F64)), x));
    assert_refused(tensor_scatter(x, 0, one, line), TENSOR_ESHAPE);
    assert_refused(
        tensor_scatter(x, 0, tensor_zeros(SHAPE(1, 3), TENSOR_I64), tensor_ones(SHAPE(1, 2), TENSOR_F64)),
        TENSOR_ESHAPE);
}

static void test_scatter_reduce_ties_share_evenly_with_self(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2), "5 3"), *src = leaf(SHAPE(4), "5 5 1 3"), *i = indices(SHAPE(4), "0 0 0 1");
    Tensor *y = tensor_sum(tensor_scatter_reduce(x, 0, i, src, TENSOR_INTO_AMAX));
    assert_true(has(gradient(y, x), SHAPE(2), "0.33333333333 0.5"));
    assert_true(has(gradient(y, src), SHAPE(4), "0.33333333333 0.33333333333 0 0.5"));
}

static void test_scatter_reduce_without_self_gives_it_nothing(void **state)
{
    (void)state;
    static const char *const want[] = { "11 2", "25 2", "3.66666666667 2", "5 2", "1 2" };
    for (int k = TENSOR_INTO_SUM; k <= TENSOR_INTO_AMIN; k++) {
        Tensor *x = leaf(SHAPE(2), "5 2"), *src = leaf(SHAPE(3), "5 5 1"), *i = indices(SHAPE(3), "0 0 0");
        Tensor *y = tensor_scatter_reduce(x, 0, i, src, (TensorInto)k, .include_self = false);
        assert_true(has(y, SHAPE(2), want[k]));
        assert_true(has(gradient(y, x), SHAPE(2), "0 2"));
        if (k == 3)
            assert_true(has(gradient(y, src), SHAPE(3), "0.5 0.5 0")); /* PyTorch counts x's own 5, too */
    }
    Tensor *zero = tensor_scatter_reduce(leaf(SHAPE(2), "5 2"), 0, indices(SHAPE(1), "0"),
                                         leaf(SHAPE(1), "-0"), TENSOR_INTO_SUM, .include_self = false);
    assert_true(tensor_item(tensor_reciprocal(tensor_select(zero, 0, 0))) < 0); /* not 0 + -0 */
}

static void test_scatter_reduce_mean_divides_by_the_count(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2), "5 3"), *src = leaf(SHAPE(3), "5 5 1"), *i = indices(SHAPE(3), "0 0 0"),
           *y = tensor_scatter_reduce(x, 0, i, src, TENSOR_INTO_MEAN);
    assert_true(has(y, SHAPE(2), "4 3"));
    assert_true(has(gradient(y, x), SHAPE(2), "0.25 2"));
    assert_true(has(gradient(y, src), SHAPE(3), "0.25 0.25 0.25"));
    Tensor *whole = tensor_scatter_reduce(indices(SHAPE(2), "5 3"), 0, indices(SHAPE(2), "0 1"),
                                          indices(SHAPE(2), "-8 -4"), TENSOR_INTO_MEAN);
    assert_true(has(whole, SHAPE(2), "-2 -1"));
}

static void test_scatter_reduce_products_with_zeros(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(3), "2 0 3"), *src = leaf(SHAPE(5), "0 4 5 0 0"),
           *i = indices(SHAPE(5), "0 0 1 2 2");
    Tensor *y = tensor_scatter_reduce(x, 0, i, src, TENSOR_INTO_PROD);
    assert_true(has(y, SHAPE(3), "0 0 0"));
    assert_true(has(tensor_gradients(tensor_sum(y), x, .retain_graph = true), SHAPE(3), "0 5 0"));
    assert_true(has(tensor_gradients(tensor_sum(y), src, .retain_graph = true), SHAPE(5), "8 0 0 0 0"));
}

static void test_scatter_reduce_refuses_second_derivatives_of_several_zeros(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(1), "2"), *src = leaf(SHAPE(2), "0 0"),
           *y = tensor_scatter_reduce(x, 0, indices(SHAPE(2), "0 0"), src, TENSOR_INTO_PROD);
    assert_refused(tensor_gradients(tensor_sum(y), src, .create_graph = true), TENSOR_EGRAD);
}

static void reductions_in_place(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2), "1 2", TENSOR_F64), *src = numbers(SHAPE(3), "3 4 5", TENSOR_F64),
           *i = indices(SHAPE(3), "0 0 1");
    assert_refused(tensor_scatter_reduce(x, 0, i, src, (TensorInto)5), TENSOR_EVALUE);
    assert_refused(tensor_scatter_reduce(x, 0, i, src), TENSOR_EVALUE); /* which must be said */
    assert_refused(tensor_index_reduce(x, 0, i, src, TENSOR_INTO_SUM), TENSOR_EVALUE);
    assert_true(tensor_scatter_reduce_(x, 0, i, src, TENSOR_INTO_AMAX) == x && has(x, SHAPE(2), "4 5"));
    assert_true(tensor_index_reduce_(x, 0, i, src, TENSOR_INTO_MEAN, .include_self = false) == x &&
                has(x, SHAPE(2), "3.5 5"));
}

static void test_index_fill_takes_a_tensor(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(3), "1 2 3"), *v = leaf(SHAPE(), "7"), *i = indices(SHAPE(3), "0 2 0");
    Tensor *y = tensor_index_fill_tensor(x, 0, i, v);
    assert_true(has(y, SHAPE(3), "7 2 7"));
    assert_true(has(tensor_gradients(tensor_sum(y), v, .retain_graph = true), SHAPE(), "2"));
    assert_true(has(gradient(y, x), SHAPE(3), "0 2 0"));
    Tensor *whole = indices(SHAPE(2), "1 2");
    assert_true(
        has(tensor_index_fill_tensor_(whole, 0, indices(SHAPE(1), "1"), numbers(SHAPE(), "9.5", TENSOR_F32)),
            SHAPE(2), "1 9"));
    assert_refused(tensor_index_fill_tensor(x, 0, i, x), TENSOR_ESHAPE);
    assert_refused(tensor_index_fill_tensor(x, 0, i, NULL), TENSOR_ENULL);
}

/* ---- slices and brackets --------------------------------------------------------------------- */

static void test_index_select_of_duplicates_and_of_a_scalar(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 2), "1 2 3 4"), *s = leaf(SHAPE(), "9");
    assert_true(
        has(gradient(tensor_index_select(x, 0, indices(SHAPE(3), "1 1 0")), x), SHAPE(2, 2), "5 6 4 6"));
    Tensor *y = tensor_index_select(s, 0, indices(SHAPE(1), "0"));
    assert_true(has(y, SHAPE(), "9"));
    assert_true(has(gradient(y, s), SHAPE(), "1"));
}

static void test_index_copy_duplicates_the_last_wins(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 2), "1 2 3 4"), *src = leaf(SHAPE(2, 2), "5 6 7 8"),
           *i = indices(SHAPE(2), "1 1"), *y = tensor_index_copy(x, 0, i, src);
    assert_true(has(y, SHAPE(2, 2), "1 2 7 8"));
    assert_true(has(gradient(y, x), SHAPE(2, 2), "1 2 0 0"));
    assert_true(has(gradient(y, src), SHAPE(2, 2), "0 0 3 4"));
    Tensor *z = tensor_mul_scalar(x, 1);
    assert_true(tensor_index_copy_(z, 0, i, src) == z && has(z, SHAPE(2, 2), "1 2 7 8"));
    assert_true(tensor_index_fill_(z, 1, indices(SHAPE(1), "0"), 0) == z && has(z, SHAPE(2, 2), "0 2 0 8"));
    assert_true(has(gradient(z, x), SHAPE(2, 2), "0 2 0 0"));
}

static void test_indices_in_brackets_repeat_and_count_from_the_end(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(3), "1 2 3"),
           *y = tensor_index_tensors(x, TENSORS(indices(SHAPE(4), "-1 0 -3 2")));
    assert_true(has(y, SHAPE(4), "3 1 1 3"));
    assert_true(has(gradient(y, x), SHAPE(3), "5 0 5"));
    assert_refused(tensor_index_tensors(x, TENSORS(indices(SHAPE(1), "-4"))), TENSOR_EINDEX);
}

static void test_masks_pick_as_many_as_are_true(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 2), "1 -2 3 -4"), *y = tensor_index(x, "mask", tensor_gt_scalar(x, 0));
    assert_true(has(y, SHAPE(2), "1 3"));
    assert_true(has(gradient(y, x), SHAPE(2, 2), "1 0 2 0"));
    assert_true(has(tensor_index(x, "mask", tensor_gt_scalar(x, 9)), SHAPE(0), ""));
}

/* ---- masks ----------------------------------------------------------------------------------- */

static void test_masked_fill_broadcasts_and_sums_the_values_gradient(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 2), "1 2 3 4"), *v = leaf(SHAPE(), "9"),
           *mask = numbers(SHAPE(2), "0 1", TENSOR_BOOL);
    Tensor *y = tensor_masked_fill_tensor(x, mask, v);
    assert_true(has(y, SHAPE(2, 2), "1 9 3 9"));
    assert_true(has(gradient(y, x), SHAPE(2, 2), "1 0 3 0"));
    assert_true(has(gradient(y, v), SHAPE(), "6"));
}

static void test_masked_select_and_masked_scatter_are_opposites(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 2), "1 2 3 4"), *mask = numbers(SHAPE(2, 2), "1 0 1 1", TENSOR_BOOL),
           *src = leaf(SHAPE(4), "7 8 9 10");
    assert_true(has(gradient(tensor_masked_select(x, mask), x), SHAPE(2, 2), "1 0 2 3"));
    Tensor *y = tensor_masked_scatter(x, mask, src);
    assert_true(has(y, SHAPE(2, 2), "7 2 8 9"));
    assert_true(has(gradient(y, x), SHAPE(2, 2), "0 2 0 0"));
    assert_true(has(gradient(y, src), SHAPE(4), "1 3 4 0"));
    Tensor *z = tensor_clone(tensor_detach(x));
    assert_true(tensor_masked_scatter_(z, mask, tensor_detach(src)) == z && has(z, SHAPE(2, 2), "7 2 8 9"));
}

static void test_where_keeps_nan_in_the_branch_not_taken(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2), "0 4"),
           *y = tensor_where(tensor_gt_scalar(x, 0), tensor_sqrt(x), tensor_zeros(SHAPE(2), TENSOR_F64));
    assert_true(
        has(gradient(tensor_where(numbers(SHAPE(2), "1 0", TENSOR_BOOL), leaf(SHAPE(2), "1 nan"), x), x),
            SHAPE(2), "0 2"));
    Tensor *a = leaf(SHAPE(2), "nan inf"),
           *chosen = tensor_where(numbers(SHAPE(2), "0 0", TENSOR_BOOL), a, x);
    assert_true(has(gradient(chosen, a), SHAPE(2), "0 0"));
    assert_true(has(y, SHAPE(2), "0 2"));
}

/* ---- embedding ------------------------------------------------------------------------------- */

static void test_embedding_duplicates_add(void **state)
{
    (void)state;
    Tensor *w = leaf(SHAPE(3, 1), "1 2 3");
    assert_true(has(gradient(tensor_embedding(indices(SHAPE(3), "2 0 2"), w), w), SHAPE(3, 1), "2 0 4"));
}

static void test_embedding_padding_has_no_gradient(void **state)
{
    (void)state;
    Tensor *w = leaf(SHAPE(3, 1), "1 2 3"),
           *y = tensor_embedding(indices(SHAPE(3), "2 0 2"), w, .padding_idx = -1);
    assert_true(has(y, SHAPE(3, 1), "3 1 3"));
    assert_true(has(gradient(y, w), SHAPE(3, 1), "2 0 0"));
}

static void test_embedding_scales_the_gradient_by_frequency(void **state)
{
    (void)state;
    Tensor *w = leaf(SHAPE(3, 1), "1 2 3"),
           *y = tensor_embedding(indices(SHAPE(4), "0 1 1 1"), w, .scale_grad_by_freq = true);
    assert_true(has(gradient(y, w), SHAPE(3, 1), "1 3 0"));
}

static void test_embedding_max_norm_scales_each_row_once(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        Tensor *w = tensor_requires_grad_(numbers(SHAPE(3, 2), "3 4 6 8 .3 .4", TENSOR_F32), recorded);
        Tensor *y = tensor_embedding(indices(SHAPE(4), "0 2 0 0"), w, .max_norm = 1);
        assert_true(has(w, SHAPE(3, 2), "0.6000000238418579 0.800000011920929 6 8 .3 .4"));
        assert_true(has(tensor_select(y, 0, 2), SHAPE(2), "0.6000000238418579 0.800000011920929"));
        tensor_embedding(indices(SHAPE(1), "1"), w, .max_norm = 1, .norm_type = 1);
        assert_true(has(w, SHAPE(3, 2),
                        "0.6000000238418579 0.800000011920929 0.4285714626312256 0.5714285969734192 .3 .4"));
        if (recorded) assert_true(has(gradient(y, w), SHAPE(3, 2), "13 16 0 0 3 4"));
    }
}

static void test_embedding_checks_its_indices(void **state)
{
    (void)state;
    Tensor *w = tensor_full(SHAPE(3, 1), 5, TENSOR_F64);
    assert_refused(tensor_embedding(indices(SHAPE(1), "3"), w), TENSOR_EINDEX);
    assert_refused(tensor_embedding(indices(SHAPE(1), "-1"), w), TENSOR_EINDEX);
    assert_refused(tensor_embedding(indices(SHAPE(2), "0 3"), w, .max_norm = 1), TENSOR_EINDEX);
    assert_refused(tensor_embedding(indices(SHAPE(1), "0"), w, .max_norm = -1), TENSOR_EVALUE);
    assert_true(has(w, SHAPE(3, 1), "5 5 5"));
}

/* A call that fails leaves the table as it was; one that succeeds has scaled the rows that it named. */
static void test_failed_embeddings_leave_the_table(void **state)
{
    (void)state;
    Tensor *i = indices(SHAPE(2), "0 2"), *before = numbers(SHAPE(3, 2), "3 4 6 8 0 5", TENSOR_F64);
    for (int bag = 0; bag < 4; bag++) {
        bool failed = true;
        for (int64_t n = 1; failed && n < 5000; n++) {
            TensorScope inner = tensor_scope_open();
            Tensor *w = tensor_requires_grad_(tensor_clone(before), true), *offsets = indices(SHAPE(1), "0");
            tensor_debug_fail_allocation(n, false);
            Tensor *y =
                bag ? tensor_embedding_bag(i, w, offsets, .mode = (TensorBagMode)(bag - 1), .max_norm = 1)
                    : tensor_embedding(i, w, .max_norm = 1);
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            assert_int_equal(y == NULL, failed);
            tensor_error_clear();
            if (failed) assert_true(tensor_equal(tensor_detach(w), before));
            else assert_true(has(tensor_detach(w), SHAPE(3, 2), "0.599999988 0.799999984 6 8 0 0.99999998"));
            tensor_scope_close(inner);
        }
        assert_false(failed);
    }
}

static void test_max_norm_is_no_part_of_the_graph(void **state)
{
    (void)state;
    for (int bag = 0; bag < 4; bag++) {
        Tensor *w = leaf(SHAPE(3, 2), "3 4 6 8 0 5"), *i = indices(SHAPE(1, 2), "0 0");
        Tensor *y = bag ? tensor_embedding_bag(i, w, .mode = (TensorBagMode)(bag - 1), .max_norm = 1)
                        : tensor_embedding(i, w, .max_norm = 1);
        Tensor *one = tensor_reshape(tensor_detach(y), SHAPE(-1));
        const double times = bag == 1 ? 2 : 1;
        assert_true(fabs(tensor_get(one, DIMS(0)) - .6 * times) < 1e-7 * times);
        static const char *const want[] = { "4 6 0 0 0 0", "2 4 0 0 0 0", "1 2 0 0 0 0", "1 2 0 0 0 0" };
        assert_true(has(gradient(y, w), SHAPE(3, 2), want[bag])); /* of the cotangent 1, 2, ... */
    }
}

static void test_embedding_bags_may_be_empty(void **state)
{
    (void)state;
    static const char *const want[] = { "0 3 0 2", "0 1.5 0 2", "0 2 0 2" };
    for (int k = TENSOR_BAG_SUM; k <= TENSOR_BAG_MAX; k++) {
        Tensor *w = leaf(SHAPE(2, 1), "1 2");
        Tensor *y = tensor_embedding_bag(indices(SHAPE(3), "0 1 1"), w, indices(SHAPE(4), "0 0 2 2"),
                                         .mode = (TensorBagMode)k);
        assert_true(has(y, SHAPE(4, 1), want[k]));
        assert_true(has(gradient(y, w), SHAPE(2, 1), k == 0 ? "2 6" : k == 1 ? "1 5" : "0 6"));
    }
}

static void test_embedding_bag_offsets_and_weights(void **state)
{
    (void)state;
    Tensor *w = leaf(SHAPE(3, 1), "1 2 3"), *i = indices(SHAPE(3), "0 1 2"),
           *each = leaf(SHAPE(3), "10 20 30");
    Tensor *y = tensor_embedding_bag(i, w, indices(SHAPE(3), "0 2 3"), .mode = TENSOR_BAG_SUM,
                                     .per_sample_weights = each, .include_last_offset = true);
    assert_true(has(y, SHAPE(2, 1), "50 90"));
    assert_true(has(gradient(y, each), SHAPE(3), "1 2 6"));
    assert_true(has(gradient(y, w), SHAPE(3, 1), "10 20 60"));
    assert_true(
        has(tensor_embedding_bag(i, w, indices(SHAPE(2), "0 2"), .padding_idx = 1), SHAPE(2, 1), "1 3"));
    assert_refused(tensor_embedding_bag(i, w, indices(SHAPE(2), "1 2")), TENSOR_EVALUE);
    assert_refused(tensor_embedding_bag(i, w, indices(SHAPE(3), "0 2 1")), TENSOR_EVALUE);
    assert_refused(tensor_embedding_bag(i, w, indices(SHAPE(2), "0 4")), TENSOR_EVALUE);
    assert_refused(tensor_embedding_bag(i, w, indices(SHAPE(1), "0"), .mode = (TensorBagMode)3),
                   TENSOR_EVALUE);
    assert_refused(tensor_embedding_bag(i, w, indices(SHAPE(1), "0"), .per_sample_weights = each),
                   TENSOR_EVALUE);
}

static void test_one_hot_checks_its_range(void **state)
{
    (void)state;
    assert_true(has(tensor_one_hot(indices(SHAPE(2), "1 0")), SHAPE(2, 2), "0 1 1 0"));
    assert_refused(tensor_one_hot(indices(SHAPE(1), "3"), 3), TENSOR_EINDEX);
    assert_refused(tensor_one_hot(indices(SHAPE(1), "-1"), 3), TENSOR_EINDEX);
}

/* ---- positions, sets, counts ----------------------------------------------------------------- */

static void positions_taken_and_put(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 2), "1 2 3 4"), *i = indices(SHAPE(3), "-1 0 3"),
           *src = leaf(SHAPE(3), "7 8 9");
    assert_true(has(gradient(tensor_take(x, i), x), SHAPE(2, 2), "2 0 0 4"));
    Tensor *y = tensor_put(x, i, src);
    assert_true(has(y, SHAPE(2, 2), "8 2 3 9"));
    assert_true(has(gradient(y, src), SHAPE(3), "0 1 4"));
    Tensor *z = tensor_clone(tensor_detach(x));
    assert_true(tensor_put_(z, i, tensor_detach(src), .accumulate = true) == z &&
                has(z, SHAPE(2, 2), "9 2 3 20"));
}

static void parts_replaced(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 3), "0 1 2 3 4 5"), *v = leaf(SHAPE(2), "8 9"),
           *y = tensor_select_scatter(x, v, 1, -1);
    assert_true(has(y, SHAPE(2, 3), "0 1 8 3 4 9"));
    assert_true(has(gradient(y, v), SHAPE(2), "3 6"));
    assert_true(has(gradient(y, x), SHAPE(2, 3), "1 2 0 4 5 0"));
    assert_true(
        has(tensor_slice_scatter(x, tensor_reshape(v, SHAPE(2, 1)), 1, 0, 1), SHAPE(2, 3), "8 1 2 9 4 5"));
    assert_true(has(tensor_diagonal_scatter(x, v, 1), SHAPE(2, 3), "0 8 2 3 4 9"));
    assert_true(has(x, SHAPE(2, 3), "0 1 2 3 4 5"));
}

static void sets(void **state)
{
    (void)state;
    Tensor *x = numbers(SHAPE(2, 3), "2 1 2 5 5 1", TENSOR_F64), *inverse, *counts;
    assert_true(
        has(tensor_unique(x, .return_inverse = &inverse, .return_counts = &counts), SHAPE(3), "1 2 5"));
    assert_true(has(inverse, SHAPE(2, 3), "1 0 1 2 2 0"));
    assert_true(has(counts, SHAPE(3), "2 2 2"));
    assert_true(has(tensor_unique_consecutive(x, .return_counts = &counts), SHAPE(5), "2 1 2 5 1"));
    assert_true(has(counts, SHAPE(5), "1 1 1 2 1"));
    Tensor *rows = numbers(SHAPE(3, 2), "1 2 0 9 1 2", TENSOR_F64);
    assert_true(has(tensor_unique(rows, .dim = 0, .return_inverse = &inverse), SHAPE(2, 2), "0 9 1 2"));
    assert_true(has(inverse, SHAPE(3), "1 0 1"));
    assert_true(has(tensor_isin(x, numbers(SHAPE(2), "5 1", TENSOR_F64), .invert = true), SHAPE(2, 3),
                    "1 0 1 0 0 0"));
}

static void counts_and_places(void **state)
{
    (void)state;
    Tensor *x = indices(SHAPE(3), "1 3 1"), *list = numbers(SHAPE(4), "1 2 2 3", TENSOR_F64),
           *v = numbers(SHAPE(3), "2 0 nan", TENSOR_F64);
    assert_true(has(tensor_bincount(x), SHAPE(4), "0 2 0 1"));
    assert_true(has(tensor_bincount(x, numbers(SHAPE(3), ".5 1 2", TENSOR_F32), .minlength = 5), SHAPE(5),
                    "0 2.5 0 1 0"));
    assert_true(has(tensor_histc(list, 2, 1, 3), SHAPE(2), "1 3"));
    assert_true(has(tensor_searchsorted(list, v), SHAPE(3), "1 0 4"));
    assert_true(has(tensor_searchsorted(list, v, .right = true), SHAPE(3), "3 0 4"));
    assert_true(has(tensor_bucketize(v, list), SHAPE(3), "1 0 4"));
}

/* A table that ends where memory does, of widths around those of vectors. */
static void test_bags_read_nothing_behind_the_table(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
    for (int dtype = TENSOR_F32; dtype <= TENSOR_F64; dtype++)
        for (int64_t width = 1; width < 70; width++) {
            TensorScope scope = tensor_scope_open();
            const size_t bytes = 3 * (size_t)width * (dtype == TENSOR_F32 ? 4 : 8);
            Tensor *w =
                tensor_from_blob(memory + page - bytes, SHAPE(3, width), (TensorDtype)dtype, NULL, NULL);
            tensor_fill_(w, 2);
            Tensor *index = tensor_full(SHAPE(1, 2), 2, TENSOR_I64);
            Tensor *y = tensor_embedding_bag(index, w, .mode = TENSOR_BAG_SUM);
            assert_true(tensor_item(tensor_amin(y)) == 4 && tensor_item(tensor_amax(y)) == 4);
            tensor_scope_close(scope);
        }
    munmap(memory, 2 * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_gather_takes_a_smaller_index_and_adds_duplicates),
        TEST(test_scatter_duplicates_the_last_wins_and_has_the_gradient),
        TEST(test_sums_have_the_same_bits_every_time),
        TEST(test_scatter_of_an_empty_index_takes_any_source),
        TEST(test_scatter_reduce_ties_share_evenly_with_self),
        TEST(test_scatter_reduce_without_self_gives_it_nothing),
        TEST(test_scatter_reduce_mean_divides_by_the_count),
        TEST(test_scatter_reduce_products_with_zeros),
        TEST(test_scatter_reduce_refuses_second_derivatives_of_several_zeros),
        TEST(reductions_in_place),
        TEST(test_index_select_of_duplicates_and_of_a_scalar),
        TEST(test_index_copy_duplicates_the_last_wins),
        TEST(test_indices_in_brackets_repeat_and_count_from_the_end),
        TEST(test_masks_pick_as_many_as_are_true),
        TEST(test_masked_fill_broadcasts_and_sums_the_values_gradient),
        TEST(test_masked_select_and_masked_scatter_are_opposites),
        TEST(test_where_keeps_nan_in_the_branch_not_taken),
        TEST(test_embedding_duplicates_add),
        TEST(test_embedding_padding_has_no_gradient),
        TEST(test_embedding_scales_the_gradient_by_frequency),
        TEST(test_embedding_max_norm_scales_each_row_once),
        TEST(test_embedding_checks_its_indices),
        TEST(test_index_fill_takes_a_tensor),
        TEST(test_failed_embeddings_leave_the_table),
        TEST(test_max_norm_is_no_part_of_the_graph),
        TEST(test_embedding_bags_may_be_empty),
        TEST(test_bags_of_wide_rows_add_as_rows_do),
        TEST(test_bags_read_nothing_behind_the_table),
        TEST(test_far_indices_are_out_of_range),
        TEST(test_embedding_bag_offsets_and_weights),
        TEST(test_one_hot_checks_its_range),
        TEST(positions_taken_and_put),
        TEST(parts_replaced),
        TEST(sets),
        TEST(counts_and_places),
    };
    return cmocka_run_group_tests_name("traps of indices", tests, NULL, NULL);
}
