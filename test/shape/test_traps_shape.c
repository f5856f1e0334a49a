/* test_traps_shape.c - what goes wrong in creation, views, joining and splitting elsewhere, one test a trap.
 */
#include "traps.h"

/* ---- creation -------------------------------------------------------------------------------- */

static void test_arange_length_is_the_ceiling_in_double(void **state)
{
    (void)state;
    assert_int_equal(tensor_numel(tensor_arange(0, 1, 0.1, TENSOR_F32)), 10);
    assert_int_equal(tensor_numel(tensor_arange(1, 2.3, 0.1, TENSOR_F64)), 13);
    assert_true(has(tensor_arange(0, 0.3, 0.1, TENSOR_F64), SHAPE(3), "0 0.1 0.2"));
    assert_true(has(tensor_arange(5, 0, -2, TENSOR_I64), SHAPE(3), "5 3 1"));
    assert_int_equal(tensor_numel(tensor_arange(1, 1, 1, TENSOR_I64)), 0);
    assert_refused(tensor_arange(0, 1, -1, TENSOR_F32), TENSOR_EVALUE);
    assert_refused(tensor_arange(0, 1, 0, TENSOR_F32), TENSOR_EVALUE);
}

static void test_arange_of_int64_is_exact(void **state)
{
    (void)state;
    Tensor *x = tensor_arange(9007199254740990.0, 9007199254740996.0, 1, TENSOR_I64);
    for (int i = 0; i < 6; i++)
        assert_int_equal(tensor_item_i64(tensor_select(x, 0, i)), 9007199254740990 + i);
}

static void test_linspace_ends_exactly(void **state)
{
    (void)state;
    for (int steps = 2; steps < 200; steps++) {
        assert_true(tensor_item(tensor_index(tensor_linspace(-0.1, 0.7, steps, TENSOR_F64), "-1")) == 0.7);
        assert_true(tensor_item(tensor_index(tensor_linspace(0, 1, steps, TENSOR_F32), "-1")) == 1);
        assert_true(tensor_item(tensor_index(tensor_linspace(-0.1, 0.7, steps, TENSOR_F64), "0")) == -0.1);
    }
}

static void test_linspace_of_one_step_is_the_start(void **state)
{
    (void)state;
    assert_true(has(tensor_linspace(3, 9, 1, TENSOR_F32), SHAPE(1), "3"));
    assert_int_equal(tensor_numel(tensor_linspace(3, 9, 0, TENSOR_F32)), 0);
    assert_refused(tensor_linspace(3, 9, -1, TENSOR_F32), TENSOR_EVALUE);
    assert_true(has(tensor_logspace(3, 9, 1, 2, TENSOR_F32), SHAPE(1), "8"));
    assert_true(has(tensor_logspace(-1, 2, 4, 10, TENSOR_F64), SHAPE(4), "0.1 1 10 100"));
    assert_true(has(tensor_logspace(0, 5, 6, 2, TENSOR_I64), SHAPE(6), "1 2 4 8 16 32"));
}

static void test_random_draws_are_pytorchs(void **state)
{
    (void)state;
    tensor_manual_seed(3);
    assert_true(has(tensor_randperm(7), SHAPE(7), "5 3 4 6 0 2 1"));
    assert_true(has(tensor_randint(0, 10, SHAPE(5)), SHAPE(5), "0 5 1 9 4"));
    assert_true(has(tensor_normal_(tensor_empty(SHAPE(2), TENSOR_F32), 1, 2), SHAPE(2),
                    "-0.09506046772003174 1.8392666578292847"));
}

static void count_deletion(void *data, void *ctx)
{
    (void)data;
    ++*(int *)ctx;
}

static void test_from_blob_lives_as_long_as_a_view(void **state)
{
    (void)state;
    double memory[6] = { 0, 1, 2, 3, 4, 5 };
    int deleted = 0;
    TensorScope scope = tensor_scope_open();
    Tensor *view = tensor_retain(
        tensor_select(tensor_from_blob(memory, SHAPE(2, 3), TENSOR_F64, count_deletion, &deleted), 0, 1));
    tensor_scope_close(scope);
    assert_int_equal(deleted, 0);
    memory[4] = 40;
    assert_true(tensor_get(view, DIMS(1)) == 40);
    tensor_release(view);
    assert_int_equal(deleted, 1);
}

static void test_indices_are_int64(void **state)
{
    (void)state;
    assert_int_equal(tensor_dtype(tensor_nonzero(tensor_ones(SHAPE(2), TENSOR_F32))), TENSOR_I64);
    assert_int_equal(tensor_dtype(tensor_argsort(tensor_ones(SHAPE(2), TENSOR_F32))), TENSOR_I64);
    assert_int_equal(tensor_dtype(tensor_tril_indices(2, 2, 0)), TENSOR_I64);
    assert_int_equal(tensor_dtype(tensor_randperm(2)), TENSOR_I64);
}

static void triangles_and_copies_of_a_kind(void **state)
{
    (void)state;
    assert_true(has(tensor_tril_indices(3, 4, -1), SHAPE(2, 3), "1 2 2 0 0 1"));
    assert_true(has(tensor_triu_indices(3, 4, 1), SHAPE(2, 6), "0 0 0 1 1 2 1 2 3 2 3 3"));
    assert_true(has(tensor_tril_indices(2, 2, INT64_MAX), SHAPE(2, 4), "0 0 1 1 0 1 0 1"));
    assert_true(has(tensor_triu_indices(2, 2, INT64_MIN), SHAPE(2, 4), "0 0 1 1 0 1 0 1"));
    assert_true(has(tensor_tril_indices(2, 2, INT64_MIN), SHAPE(2, 0), ""));
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F16);
    assert_true(has(tensor_new_full(x, SHAPE(2, 1), 3), SHAPE(2, 1), "3 3"));
    assert_int_equal(tensor_dtype(tensor_new_zeros(x, SHAPE(3))), TENSOR_F16);
    assert_int_equal(tensor_dtype(tensor_new_ones(x, SHAPE(3))), TENSOR_F16);
    assert_int_equal(tensor_dtype(tensor_new_empty(x, SHAPE(3))), TENSOR_F16);
    assert_true(has(tensor_new_tensor(tensor_ones(SHAPE(), TENSOR_I32), (int32_t[]){ 5, -6 }, SHAPE(2)),
                    SHAPE(2), "5 -6"));
}

/* ---- view, reshape, squeeze, transpose ------------------------------------------------------- */

static void test_reshape_copies_what_is_no_view(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 3), "0 1 2 3 4 5"), *turned = tensor_transpose(x, 0, 1),
           *y = tensor_reshape(turned, SHAPE(6));
    assert_false(tensor_shares_storage(x, y));
    assert_true(has(y, SHAPE(6), "0 3 1 4 2 5"));
    assert_true(has(gradient(y, x), SHAPE(2, 3), "1 3 5 2 4 6"));
    assert_true(tensor_shares_storage(x, tensor_reshape(x, SHAPE(3, -1))));
}

static void test_view_refuses_strides_that_do_not_fit(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(2, 3), TENSOR_F32);
    assert_refused(tensor_view(tensor_transpose(x, 0, 1), SHAPE(6)), TENSOR_ESHAPE);
    assert_refused(tensor_view(tensor_slice(x, 1, 0, 2), SHAPE(4)), TENSOR_ESHAPE);
}

static void test_reshape_infers_one_size_but_not_beside_zero(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(0, 3), TENSOR_F32);
    assert_refused(tensor_reshape(tensor_zeros(SHAPE(4), TENSOR_F32), SHAPE(-1, -1)), TENSOR_ESHAPE);
    assert_refused(tensor_reshape(x, SHAPE(0, -1)), TENSOR_ESHAPE);
    assert_refused(tensor_reshape(x, SHAPE(-1, 0)), TENSOR_ESHAPE);
    assert_true(has(tensor_reshape(x, SHAPE(-1, 3)), SHAPE(0, 3), ""));
}

static void test_squeeze_leaves_other_sizes(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(1, 2, 1), TENSOR_F32);
    assert_int_equal(tensor_ndim(tensor_squeeze(x, 1)), 3);
    assert_int_equal(tensor_ndim(tensor_squeeze(x, -1)), 2);
    assert_int_equal(tensor_ndim(tensor_squeeze(x, -3)), 2);
    assert_int_equal(tensor_ndim(tensor_squeeze(x)), 1);
    assert_refused(tensor_squeeze(x, 3), TENSOR_EINDEX);
}

static void test_transpose_is_a_view_and_takes_strided_gradients(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 3), "0 1 2 3 4 5"), *y = tensor_transpose(x, 0, 1);
    assert_true(tensor_shares_storage(x, y));
    assert_true(tensor_shares_storage(x, tensor_swapaxes(x, 0, 1)));
    Tensor *g = tensor_transpose(numbers(SHAPE(2, 3), "1 2 3 4 5 6", TENSOR_F64), 0, 1);
    assert_true(
        has(tensor_gradients(tensor_exp(y), x, .grad_output = tensor_div(g, tensor_exp(tensor_detach(y)))),
            SHAPE(2, 3), "1 2 3 4 5 6"));
    assert_true(
        has(tensor_gradients(tensor_transpose(x, 0, 1), x, .grad_output = g), SHAPE(2, 3), "1 2 3 4 5 6"));
}

/* ---- expand, repeat -------------------------------------------------------------------------- */

static void test_expand_refuses_writes_and_gradcheck(void **state)
{
    (void)state;
    Tensor *wide = tensor_expand(tensor_ones(SHAPE(1, 3), TENSOR_F64), SHAPE(2, 3));
    assert_int_equal(tensor_stride(wide, 0), 0);
    assert_refused(tensor_add_scalar_(wide, 1), TENSOR_EVALUE);
    assert_refused(tensor_index_set_scalar_(wide, 1, "0"), TENSOR_EVALUE);
    assert_int_equal(tensor_gradcheck(tensor_op_find("exp"), wide), -1);
    tensor_error_clear();
}

static void test_expand_gradient_is_the_sum(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 1), "1 2");
    assert_true(has(gradient(tensor_expand(x, SHAPE(2, 2, 3)), x), SHAPE(2, 1), "30 48"));
}

static void test_repeat_zero_times_is_empty_with_a_zero_gradient(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2), "1 2"), *y = tensor_repeat(x, SHAPE(0));
    assert_true(has(y, SHAPE(0), ""));
    assert_true(has(gradient(y, x), SHAPE(2), "0 0"));
}

static void test_repeat_may_add_dims(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2), "1 2"), *y = tensor_repeat(x, SHAPE(2, 2));
    assert_true(has(y, SHAPE(2, 4), "1 2 1 2 1 2 1 2"));
    assert_true(has(gradient(y, x), SHAPE(2), "16 20"));
    assert_refused(tensor_repeat(tensor_ones(SHAPE(2, 2), TENSOR_F64), SHAPE(2)), TENSOR_ESHAPE);
}

static void test_repeat_interleave_sums_in_one_order(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(50, 3), TENSOR_F32), true),
           *y = tensor_repeat_interleave(x, 40, .dim = 0);
    Tensor *g = tensor_randn(tensor_shape(y), TENSOR_F32), *first = NULL;
    for (int threads = 1; threads <= 2; threads++) {
        tensor_set_num_threads(threads);
        Tensor *dx = tensor_gradients(y, x, .grad_output = g, .retain_graph = true);
        assert_true(!first || tensor_equal(first, dx));
        first = dx;
    }
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void test_slice_clamps_its_bounds(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(5), "0 1 2 3 4");
    assert_true(has(tensor_slice(x, 0, -100, 100, 2), SHAPE(3), "0 2 4"));
    assert_true(has(tensor_slice(x, 0, -2), SHAPE(2), "3 4"));
    assert_true(has(tensor_slice(x, 0, 4, 1), SHAPE(0), ""));
    assert_true(has(gradient(tensor_slice(x, 0, 4, 1), x), SHAPE(5), "0 0 0 0 0"));
    assert_true(has(gradient(tensor_slice(x, 0, 1, 5, 3), x), SHAPE(5), "0 1 0 0 2"));
}

static void test_every_second_column_is_assigned(void **state)
{
    (void)state;
    Tensor *pe = tensor_zeros(SHAPE(2, 4), TENSOR_F64), *v = leaf(SHAPE(2, 2), "1 2 3 4");
    tensor_index_set_(pe, v, ":, 0::2");
    tensor_copy_(tensor_slice(pe, 1, 1, INT64_MAX, 2), tensor_neg(v));
    assert_true(has(pe, SHAPE(2, 4), "1 -1 2 -2 3 -3 4 -4"));
    assert_true(has(gradient(pe, v), SHAPE(2, 2), "-1 -1 -1 -1"));
}

static void test_select_counts_from_the_end_and_checks(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(3), "5 6 7");
    assert_true(has(tensor_select(x, 0, -1), SHAPE(), "7"));
    assert_refused(tensor_select(x, 0, 3), TENSOR_EINDEX);
    assert_refused(tensor_select(x, 0, -4), TENSOR_EINDEX);
}

static void test_split_leaves_an_uneven_last_part(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(5), "0 1 2 3 4"), *part[3];
    assert_int_equal(tensor_split(x, 2, 0, part, 3), 3);
    assert_true(has(part[2], SHAPE(1), "4"));
    assert_true(has(gradient(tensor_cat(TENSORS(part[2], part[0])), x), SHAPE(5),
                    "2 3 0 0 1")); /* part 1 has no gradient: zeros */
    assert_int_equal(tensor_chunk(x, 4, 0, part, 3), 3);
}

/* PyTorch forbids it; here the base's history is written as for any view. */
static void test_a_part_of_a_split_may_be_written(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(4), "1 2 3 4"), *y = tensor_mul_scalar(x, 1), *part[2];
    assert_int_equal(tensor_split(y, 2, 0, part, 2), 2);
    tensor_mul_scalar_(part[0], 10);
    assert_true(has(y, SHAPE(4), "10 20 3 4"));
    assert_true(has(gradient(y, x), SHAPE(4), "10 20 3 4"));
    assert_true(has(gradient(part[1], x), SHAPE(4), "0 0 1 2"));
    assert_true(has(gradient(part[0], x), SHAPE(4), "10 20 0 0"));
}

/* ---- joining --------------------------------------------------------------------------------- */

static void test_cat_of_nothing_and_of_one_tensor_twice(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(1, 2), "1 2"), *none = tensor_zeros(SHAPE(1, 0), TENSOR_F64),
           *old = tensor_zeros(SHAPE(0), TENSOR_F64);
    Tensor *y = tensor_cat(TENSORS(x, none, old, x), -1);
    assert_true(has(y, SHAPE(1, 4), "1 2 1 2"));
    assert_true(has(gradient(y, x), SHAPE(1, 2), "4 6"));
    assert_true(has(tensor_cat(TENSORS(old, old), 1), SHAPE(0), ""));
}

static void test_stack_takes_scalars(void **state)
{
    (void)state;
    Tensor *a = leaf(SHAPE(), "1"), *b = leaf(SHAPE(), "2"), *y = tensor_stack(TENSORS(a, b, a));
    assert_true(has(y, SHAPE(3), "1 2 1"));
    assert_true(has(gradient(y, a), SHAPE(), "4"));
}

static void stacks_by_rank(void **state)
{
    (void)state;
    Tensor *v = leaf(SHAPE(2), "1 2"), *m = numbers(SHAPE(2, 1), "3 4", TENSOR_F64),
           *s = numbers(SHAPE(), "9", TENSOR_F64);
    assert_true(has(tensor_hstack(TENSORS(v, s, v)), SHAPE(5), "1 2 9 1 2"));
    assert_true(has(tensor_hstack(TENSORS(m, m)), SHAPE(2, 2), "3 3 4 4"));
    assert_true(has(tensor_vstack(TENSORS(v, v)), SHAPE(2, 2), "1 2 1 2"));
    assert_true(has(tensor_dstack(TENSORS(v, v)), SHAPE(1, 2, 2), "1 1 2 2"));
    assert_true(has(tensor_column_stack(TENSORS(v, m)), SHAPE(2, 2), "1 3 2 4"));
    assert_true(has(gradient(tensor_column_stack(TENSORS(v, m, v)), v), SHAPE(2), "4 10"));
    assert_refused(tensor_hstack(TENSOR_LIST(NULL, 0)), TENSOR_EVALUE);
    assert_refused(tensor_vstack(TENSORS(v, numbers(SHAPE(3), "0 0 0", TENSOR_F64))), TENSOR_ESHAPE);
    assert_true(has(tensor_atleast_1d(s), SHAPE(1), "9"));
    assert_true(has(tensor_atleast_2d(v), SHAPE(1, 2), "1 2"));
    assert_true(has(tensor_atleast_3d(v), SHAPE(1, 2, 1), "1 2"));
    assert_true(has(tensor_atleast_3d(m), SHAPE(2, 1, 1), "3 4"));
    assert_true(tensor_atleast_2d(m) == m);
    assert_true(has(tensor_ravel(m), SHAPE(2), "3 4"));
    enum { MANY = 200 };
    Tensor *many[MANY];
    for (int i = 0; i < MANY; i++) many[i] = v;
    assert_int_equal(tensor_numel(tensor_hstack(TENSOR_LIST(many, MANY))), 2 * MANY);
}

static void grids_and_choices(void **state)
{
    (void)state;
    Tensor *a = numbers(SHAPE(3), "1 2 3", TENSOR_F64), *b = leaf(SHAPE(2), "4 5"), *grid[2];
    assert_int_equal(tensor_meshgrid(TENSORS(a, b), grid), 2);
    assert_true(has(grid[0], SHAPE(3, 2), "1 1 2 2 3 3"));
    assert_true(has(gradient(grid[1], b), SHAPE(2), "9 12"));
    assert_int_equal(tensor_meshgrid(TENSORS(a, b), grid, .indexing = TENSOR_INDEXING_XY), 2);
    assert_true(has(grid[0], SHAPE(2, 3), "1 2 3 1 2 3"));
    assert_true(has(grid[1], SHAPE(2, 3), "4 4 4 5 5 5"));
    assert_int_equal(tensor_meshgrid(TENSORS(a, b), grid, .indexing = (TensorIndexing)7), -1);
    assert_refused(NULL, TENSOR_EVALUE);
    assert_true(has(tensor_cartesian_prod(TENSORS(b, a)), SHAPE(6, 2), "4 1 4 2 4 3 5 1 5 2 5 3"));
    assert_true(has(gradient(tensor_cartesian_prod(TENSORS(b, a)), b), SHAPE(2), "9 27"));
    assert_true(has(tensor_cartesian_prod(TENSORS(a)), SHAPE(3), "1 2 3"));
    assert_true(has(tensor_combinations(a), SHAPE(3, 2), "1 2 1 3 2 3"));
    assert_true(
        has(tensor_combinations(a, 2, .with_replacement = true), SHAPE(6, 2), "1 1 1 2 1 3 2 2 2 3 3 3"));
    assert_true(has(tensor_combinations(b, 3), SHAPE(0, 3), ""));
    assert_true(has(tensor_combinations(b, 0), SHAPE(0), ""));
    assert_true(has(tensor_combinations(a, 3), SHAPE(1, 3), "1 2 3"));
    assert_refused(tensor_combinations(tensor_zeros(SHAPE(2, 2), TENSOR_F64)), TENSOR_ESHAPE);
    assert_refused(tensor_combinations(tensor_zeros(SHAPE(1000), TENSOR_F64), 100), TENSOR_ESHAPE);
}

/* Results without elements, of PyTorch's shapes, of the functions that have no samples. */
static void functions_of_nothing(void **state)
{
    (void)state;
    Tensor *e = tensor_zeros(SHAPE(0), TENSOR_F64), *m = tensor_zeros(SHAPE(0, 3), TENSOR_F64),
           *t = tensor_zeros(SHAPE(3, 0), TENSOR_F64), *v = tensor_zeros(SHAPE(2), TENSOR_F64),
           *q = tensor_zeros(SHAPE(0, 0), TENSOR_F64), *part[4];
    assert_true(has(tensor_combinations(e), SHAPE(0, 2), ""));
    assert_true(has(tensor_combinations(e, .with_replacement = true), SHAPE(0, 2), ""));
    assert_true(has(tensor_combinations(e, 0, .with_replacement = true), SHAPE(0), ""));
    assert_true(has(tensor_combinations(e, 1), SHAPE(0, 1), ""));
    assert_true(has(tensor_cartesian_prod(TENSORS(e, v)), SHAPE(0, 2), ""));
    assert_true(has(tensor_cartesian_prod(TENSORS(e)), SHAPE(0), ""));
    assert_true(has(tensor_hstack(TENSORS(e, v)), SHAPE(2), "0 0"));
    assert_true(has(tensor_vstack(TENSORS(m, m)), SHAPE(0, 3), ""));
    assert_true(has(tensor_dstack(TENSORS(m, m)), SHAPE(0, 3, 2), ""));
    assert_true(has(tensor_column_stack(TENSORS(e, e)), SHAPE(0, 2), ""));
    assert_true(has(tensor_atleast_2d(e), SHAPE(1, 0), ""));
    assert_true(has(tensor_atleast_3d(e), SHAPE(1, 0, 1), ""));
    assert_true(has(tensor_atleast_3d(m), SHAPE(0, 3, 1), ""));
    assert_true(has(tensor_diagflat(e), SHAPE(0, 0), ""));
    assert_true(has(tensor_diagflat(e, -1), SHAPE(1, 1), "0"));
    assert_true(has(tensor_fill_diagonal_(m, 1), SHAPE(0, 3), ""));
    assert_true(has(tensor_flipud(m), SHAPE(0, 3), ""));
    assert_true(has(tensor_fliplr(t), SHAPE(3, 0), ""));
    assert_true(has(tensor_ravel(t), SHAPE(0), ""));
    assert_true(has(tensor_softmin(m, 1), SHAPE(0, 3), ""));
    assert_true(has(tensor_msort(m), SHAPE(0, 3), ""));
    assert_true(has(tensor_inverse(q), SHAPE(0, 0), ""));
    assert_true(has(tensor_cholesky_inverse(q), SHAPE(0, 0), ""));
    assert_true(has(tensor_pinverse(m), SHAPE(3, 0), ""));
    assert_true(has(tensor_linalg_norm(m), SHAPE(), "0"));
    assert_true(has(tensor_linalg_vector_norm(m), SHAPE(), "0"));
    assert_true(has(tensor_vdot(e, e), SHAPE(), "0"));
    assert_true(has(tensor_chain_matmul(TENSORS(t, m)), SHAPE(3, 3), "0 0 0 0 0 0 0 0 0"));
#define PARTS(n, shape, ...)                                              \
    do {                                                                  \
        assert_int_equal(tensor_##__VA_ARGS__, n);                        \
        for (int i = 0; i < n; i++) assert_true(has(part[i], shape, "")); \
    } while (0)
    PARTS(2, SHAPE(0, 2), meshgrid(TENSORS(e, v), part));
    PARTS(2, SHAPE(0, 2), meshgrid(TENSORS(v, e), part, .indexing = TENSOR_INDEXING_XY));
    PARTS(3, SHAPE(0, 3), chunk(m, 3, 0, part, 4));
    PARTS(3, SHAPE(3, 0), chunk(t, 3, 1, part, 4));
    PARTS(3, SHAPE(0), tensor_split(e, 3, 0, part, 4));
    PARTS(3, SHAPE(0), tensor_split_indices(e, DIMS(1, 2), 0, part));
    PARTS(2, SHAPE(3, 0), hsplit(t, 2, part, 4));
    PARTS(2, SHAPE(0, 3), vsplit(m, 2, part, 4));
    PARTS(2, SHAPE(0), split_sizes(e, DIMS(0, 0), 0, part));
    assert_int_equal(tensor_split_sizes(e, SHAPE(), 0, part), 0);
    PARTS(2, SHAPE(0, 3), broadcast_tensors(TENSORS(m, tensor_zeros(SHAPE(1, 3), TENSOR_F64)), part));
    assert_refused(tensor_max(e), TENSOR_ESHAPE);
}

/* ---- turned, diagonal, triangles ------------------------------------------------------------- */

static void test_flip_roll_rot90_of_several_dims(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 3), "0 1 2 3 4 5");
    assert_true(has(tensor_flip(x, DIMS(0, -1)), SHAPE(2, 3), "5 4 3 2 1 0"));
    assert_true(has(tensor_roll(x, SHAPE(1, -1), DIMS(0, 1)), SHAPE(2, 3), "4 5 3 1 2 0"));
    assert_true(has(gradient(tensor_roll(x, SHAPE(1, -1), DIMS(0, 1)), x), SHAPE(2, 3), "6 4 5 3 1 2"));
    assert_true(has(tensor_roll(x, SHAPE(7), DIMS()), SHAPE(2, 3), "5 0 1 2 3 4"));
    assert_true(has(tensor_rot90(x, -1, DIMS(0, 1)), SHAPE(3, 2), "3 0 4 1 5 2"));
    assert_true(has(tensor_rot90(x, 6, DIMS(0, 1)), SHAPE(2, 3), "5 4 3 2 1 0"));
}

static void test_diagonals_of_no_squares(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2, 3), "0 1 2 3 4 5");
    assert_true(has(tensor_diagonal(x, 1), SHAPE(2), "1 5"));
    assert_true(has(tensor_diagonal(x, -1), SHAPE(1), "3"));
    assert_true(has(tensor_diagonal(x, 9), SHAPE(0), ""));
    assert_true(has(gradient(tensor_diagonal(x, 1), x), SHAPE(2, 3), "0 1 0 0 0 2"));
    assert_true(
        has(tensor_diag_embed(numbers(SHAPE(2), "7 8", TENSOR_F64), -1), SHAPE(3, 3), "0 0 0 7 0 0 0 8 0"));
}

static void test_triangles_never_multiply_infinity_by_zero(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_full(SHAPE(2, 2), -(double)INFINITY, TENSOR_F64), true),
           *y = tensor_triu(x, 1);
    assert_true(has(y, SHAPE(2, 2), "0 -inf 0 0"));
    Tensor *g = tensor_full(SHAPE(2, 2), (double)NAN, TENSOR_F64);
    assert_true(has(tensor_gradients(y, x, .grad_output = g), SHAPE(2, 2), "0 nan 0 0"));
}

static void test_overlapping_windows_add(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(4), "0 1 2 3"), *y = tensor_unfold_dim(x, 0, 3, 1);
    assert_true(tensor_shares_storage(x, y));
    assert_true(has(y, SHAPE(2, 3), "0 1 2 1 2 3"));
    assert_true(has(gradient(y, x), SHAPE(4), "1 6 8 6"));
    assert_refused(tensor_fill_(tensor_detach(y), 0), TENSOR_EVALUE);
    assert_true(has(gradient(tensor_as_strided(x, SHAPE(2, 3), SHAPE(1, 1)), x), SHAPE(4), "1 6 8 6"));
    assert_true(
        has(gradient(tensor_as_strided(x, SHAPE(3), SHAPE(0), .storage_offset = 2), x), SHAPE(4), "0 0 6 0"));
    assert_refused(tensor_as_strided(x, SHAPE(2), SHAPE(1), 3), TENSOR_EINDEX);
    assert_refused(tensor_as_strided(tensor_slice(x, 0, 0, 4, 2), SHAPE(2), SHAPE(1)), TENSOR_ESHAPE);
}

/* Short lines are added element by element, in floats; of integers, and from 16 on, by the loops of rows. */
static void test_short_lines_are_added_as_long_ones(void **state)
{
    (void)state;
    for (int64_t width = 3; width < 20; width += 14) {
        Tensor *g = tensor_remainder_scalar(tensor_arange(0, 6 * 5 * (double)width * 3, 1, TENSOR_F32), 97);
        Tensor *windows = tensor_reshape(g, SHAPE(6, 5, width, 3)), *sum = NULL;
        const char *where = "dimension=1 size=3 step=2 length=11";
        for (int dtype = TENSOR_F32; dtype <= TENSOR_I64; dtype++) {
            if (tensor_dtype_is_float((TensorDtype)dtype) && dtype > TENSOR_F64) continue;
            Tensor *x = tensor_to(windows, (TensorDtype)dtype),
                   *y = tensor_to(tensor_apply_text("unfold_dim_backward", &x, 1, where), TENSOR_F64);
            assert_non_null(y);
            if (sum) assert_true(tensor_equal(y, sum));
            sum = y;
        }
        assert_non_null(sum);
    }
}

static void test_shuffles_are_undone(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(2, 12, 2, 3), TENSOR_F32);
    assert_true(tensor_equal(tensor_channel_shuffle(tensor_channel_shuffle(x, 3), 4), x));
    assert_true(tensor_equal(tensor_pixel_unshuffle(tensor_pixel_shuffle(x, 2), 2), x));
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void test_contiguous_of_contiguous_is_the_same_tensor(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F32);
    assert_true(tensor_contiguous(x) == x);
    Tensor *kept = tensor_retain(tensor_contiguous(x));
    tensor_scope_close(scope);
    assert_true(has(kept, SHAPE(2), "1 1"));
    tensor_release(kept);
}

static void test_copy_broadcasts_and_sums_the_gradient(void **state)
{
    (void)state;
    Tensor *v = leaf(SHAPE(2), "7 8"), *x = leaf(SHAPE(2, 2), "1 2 3 4"),
           *y = tensor_copy_(tensor_mul_scalar(x, 2), v);
    assert_true(has(y, SHAPE(2, 2), "7 8 7 8"));
    assert_true(has(gradient(y, v), SHAPE(2), "4 6"));
    assert_true(has(gradient(y, x), SHAPE(2, 2), "0 0 0 0"));
}

static void test_detach_shares_storage_and_version(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2), "1 2"), *y = tensor_exp(x), *d = tensor_detach(y);
    assert_true(tensor_shares_storage(y, d) && !tensor_requires_grad(d));
    tensor_add_scalar_(d, 1);
    assert_int_equal(tensor_version(y), 1);
    assert_int_equal(tensor_backward(tensor_sum(y)), -1); /* exp's backward reads its result */
    assert_refused(NULL, TENSOR_EGRAD);
}

static void test_casts_have_gradients_between_floats_only(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(2), "1.5 2"), *narrow = tensor_to(x, TENSOR_F32);
    Tensor *g = gradient(narrow, x);
    assert_int_equal(tensor_dtype(g), TENSOR_F64);
    assert_true(has(g, SHAPE(2), "1 2"));
    assert_false(tensor_requires_grad(tensor_to(x, TENSOR_I64)));
    assert_false(tensor_requires_grad(tensor_to(tensor_to(x, TENSOR_I64), TENSOR_F64)));
}

/* ---- x[...] = -------------------------------------------------------------------------------- */

static void test_infinities_are_masked_away(void **state)
{
    (void)state;
    Tensor *w = leaf(SHAPE(3), "1 2 3"), *x = tensor_mul(w, numbers(SHAPE(3), "1 inf 2", TENSOR_F64));
    tensor_index_set_scalar_(x, 0, "mask", tensor_isinf(x)); /* x[x == inf] = 0 */
    assert_true(has(x, SHAPE(3), "1 0 6"));
    Tensor *logits = leaf(SHAPE(2, 3), "1 5 3 4 2 6"), *y = tensor_mul_scalar(logits, 1),
           *v = tensor_topk(tensor_detach(y), 2);
    tensor_index_set_scalar_(y, -(double)INFINITY, "mask", tensor_lt(y, tensor_index(v, ":, -1:")));
    assert_true(has(y, SHAPE(2, 3), "-inf 5 3 4 -inf 6"));
    assert_true(has(gradient(tensor_softmax(y, 1), logits), SHAPE(2, 3),
                    "0 -0.1049935854 0.1049935854 -0.2099871708 0 0.2099871708"));
}

static void test_set_values_of_every_kind(void **state)
{
    (void)state;
    Tensor *x = leaf(SHAPE(3), "1 2 3"), *v = leaf(SHAPE(), "9"), *y = tensor_mul_scalar(x, 2);
    tensor_index_set_(y, v, "1:");
    tensor_index_set_(y, v, "i", indices(SHAPE(1), "-3"));
    assert_true(has(y, SHAPE(3), "9 9 9"));
    assert_true(has(gradient(y, v), SHAPE(), "6"));
    assert_true(has(gradient(y, x), SHAPE(3), "0 0 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_arange_length_is_the_ceiling_in_double),
        TEST(test_arange_of_int64_is_exact),
        TEST(test_linspace_ends_exactly),
        TEST(test_linspace_of_one_step_is_the_start),
        TEST(test_random_draws_are_pytorchs),
        TEST(test_from_blob_lives_as_long_as_a_view),
        TEST(test_indices_are_int64),
        TEST(triangles_and_copies_of_a_kind),
        TEST(test_reshape_copies_what_is_no_view),
        TEST(test_view_refuses_strides_that_do_not_fit),
        TEST(test_reshape_infers_one_size_but_not_beside_zero),
        TEST(test_squeeze_leaves_other_sizes),
        TEST(test_transpose_is_a_view_and_takes_strided_gradients),
        TEST(test_expand_refuses_writes_and_gradcheck),
        TEST(test_expand_gradient_is_the_sum),
        TEST(test_repeat_zero_times_is_empty_with_a_zero_gradient),
        TEST(test_repeat_may_add_dims),
        TEST(test_repeat_interleave_sums_in_one_order),
        TEST(test_slice_clamps_its_bounds),
        TEST(test_every_second_column_is_assigned),
        TEST(test_select_counts_from_the_end_and_checks),
        TEST(test_split_leaves_an_uneven_last_part),
        TEST(test_a_part_of_a_split_may_be_written),
        TEST(test_cat_of_nothing_and_of_one_tensor_twice),
        TEST(test_stack_takes_scalars),
        TEST(stacks_by_rank),
        TEST(grids_and_choices),
        TEST(functions_of_nothing),
        TEST(test_flip_roll_rot90_of_several_dims),
        TEST(test_diagonals_of_no_squares),
        TEST(test_triangles_never_multiply_infinity_by_zero),
        TEST(test_overlapping_windows_add),
        TEST(test_short_lines_are_added_as_long_ones),
        TEST(test_shuffles_are_undone),
        TEST(test_contiguous_of_contiguous_is_the_same_tensor),
        TEST(test_copy_broadcasts_and_sums_the_gradient),
        TEST(test_detach_shares_storage_and_version),
        TEST(test_casts_have_gradients_between_floats_only),
        TEST(test_infinities_are_masked_away),
        TEST(test_set_values_of_every_kind),
    };
    return cmocka_run_group_tests_name("traps of shapes", tests, NULL, NULL);
}
