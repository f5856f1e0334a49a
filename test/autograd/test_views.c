/* test_views.c - what samples cannot show of views, joining and indexing: shared storage, which calls copy,
 * long lists, messages, forms in place, values that must not leak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include <tapegrad/device.h>
#include <tapegrad/ops.h>

static int64_t live_before;

static int setup(void **state)
{
    (void)state;
    live_before = tensor_live_count();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (tensor_error()) print_error("%s\n", tensor_error());
    bool clean = !tensor_error() && tensor_live_count() == live_before;
    tensor_error_clear();
    return clean ? 0 : -1;
}

#define IN_SCOPE(test)                           \
    static void scoped_##test(void **state)      \
    {                                            \
        TensorScope scope = tensor_scope_open(); \
        test(state);                             \
        tensor_scope_close(scope);               \
    }

static Tensor *counted(TensorShape shape) /* 0, 1, 2, ... */
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    return tensor_reshape(tensor_arange(0, (double)n, 1, TENSOR_F64), shape);
}

static Tensor *list(int64_t n, const int64_t *values)
{
    return tensor_from_data(values, SHAPE(n), TENSOR_I64);
}
#define LIST(...) \
    list((int64_t)(sizeof(int64_t[]){ __VA_ARGS__ } / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ })

static Tensor *leaf(Tensor *x) { return tensor_requires_grad_(x, true); }

/* ---- storage --------------------------------------------------------------------------------- */

static void views_share(void **state)
{
    (void)state;
    Tensor *x = counted(SHAPE(2, 3, 4)), *part[4];
    Tensor *views[] = {
        tensor_view(x, SHAPE(6, 4)),
        tensor_reshape(x, SHAPE(-1)),
        tensor_flatten(x, 1),
        tensor_unflatten(x, 2, DIMS(2, 2)),
        tensor_squeeze(x),
        tensor_unsqueeze(x, 1),
        tensor_transpose(x, 0, 2),
        tensor_mT(x),
        tensor_permute(x, DIMS(2, 0, 1)),
        tensor_movedim(x, 0, -1),
        tensor_expand(tensor_unsqueeze(x, 0), DIMS(5, -1, -1, -1)),
        tensor_slice(x, 1, -2),
        tensor_narrow(x, 2, 1, 2),
        tensor_select(x, 0, -1),
        tensor_diagonal(x, 0, 1, 2),
        tensor_reshape(tensor_transpose(x, 0, 1), SHAPE(3, 2, 2, 2)),
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        assert_non_null(views[i]);
        assert_true(tensor_shares_storage(x, views[i]));
    }
    assert_int_equal(tensor_split(x, 2, 2, part, 4), 2);
    assert_true(tensor_shares_storage(x, part[1]));
    assert_int_equal(tensor_unbind(x, 1, part, 4), 3);
    assert_true(tensor_shares_storage(x, part[2]));
    tensor_fill_(part[2], 7);
    assert_true(tensor_get(x, DIMS(1, 2, 3)) == 7);
}
IN_SCOPE(views_share)

static void copies_do_not_share(void **state)
{
    (void)state;
    Tensor *x = counted(SHAPE(2, 3));
    Tensor *copies[] = { tensor_clone(x),
                         tensor_flip(x, DIMS(0)),
                         tensor_roll(x, DIMS(0), DIMS(0)),
                         tensor_repeat(x, DIMS(1, 1)),
                         tensor_tile(x, DIMS(1)),
                         tensor_repeat_interleave(x, 1, 0),
                         tensor_cat(TENSORS(x)),
                         tensor_rot90(x, 0, DIMS(0, 1)),
                         tensor_diag(x),
                         tensor_reshape(tensor_t(x), SHAPE(6)),
                         tensor_contiguous(tensor_t(x)) };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        assert_non_null(copies[i]);
        assert_false(tensor_shares_storage(x, copies[i]));
    }
    assert_ptr_equal(tensor_contiguous(x), x);
}
IN_SCOPE(copies_do_not_share)

static void view_refuses_what_reshape_copies(void **state)
{
    (void)state;
    Tensor *x = tensor_t(counted(SHAPE(2, 3)));
    assert_null(tensor_view(x, SHAPE(6)));
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    assert_non_null(strstr(tensor_error(), "use reshape"));
    tensor_error_clear();
    const double want[] = { 0, 3, 1, 4, 2, 5 };
    assert_tensor_close(tensor_reshape(x, SHAPE(6)), tensor_from_data(want, SHAPE(6), TENSOR_F64), 0, 0);
    assert_true(tensor_shares_storage(
                    tensor_view(tensor_expand(tensor_ones(SHAPE(1), TENSOR_F32), SHAPE(6)), SHAPE(2, 3)),
                    x) == false);
    assert_tensor_error(tensor_fill_(tensor_expand(tensor_ones(SHAPE(1), TENSOR_F32), SHAPE(6)), 1),
                        TENSOR_EVALUE);
}
IN_SCOPE(view_refuses_what_reshape_copies)

/* ---- long lists ------------------------------------------------------------------------------ */

enum { MANY = 300 };

static void many_parts(void **state)
{
    (void)state;
    Tensor *x = leaf(counted(SHAPE(MANY, 2))), *part[MANY];
    assert_int_equal(tensor_unbind(x, 0, part, MANY), MANY);
    Tensor *y = tensor_stack(TENSOR_LIST(part, MANY), -1);
    assert_int_equal(tensor_size(y, 0), 2);
    assert_tensor_close(tensor_detach(tensor_t(y)), tensor_detach(x), 0, 0);
    assert_int_equal(tensor_split(x, 1, 0, part, MANY), MANY);
    Tensor *z = tensor_cat(TENSOR_LIST(part, MANY));
    assert_tensor_close(tensor_detach(z), tensor_detach(x), 0, 0);
    Tensor *w = counted(SHAPE(MANY, 2));
    assert_int_equal(tensor_backward(tensor_sum(tensor_add(tensor_mul(tensor_t(y), w), tensor_mul(z, w)))),
                     0);
    assert_tensor_close(tensor_grad(x), tensor_mul_scalar(w, 2), 0, 0);
    assert_status_error(tensor_split(x, 1, 0, part, 7), TENSOR_ESHAPE);
}
IN_SCOPE(many_parts)

static void chunks(void **state)
{
    (void)state;
    Tensor *part[8];
    Tensor *x = leaf(counted(SHAPE(7, 2)));
    assert_int_equal(tensor_chunk(x, 3, 0, part, 8), 3);
    assert_int_equal(tensor_size(part[2], 0), 1);
    assert_int_equal(tensor_backward(tensor_sum(part[1])), 0); /* the others' gradients are zero */
    const double want[] = { 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0 };
    assert_tensor_close(tensor_grad(x), tensor_from_data(want, SHAPE(7, 2), TENSOR_F64), 0, 0);
    assert_int_equal(tensor_chunk(x, 5, 0, part, 8), 4);
    assert_int_equal(tensor_chunk(tensor_zeros(SHAPE(2, 0), TENSOR_F32), 3, 1, part, 8), 3);
    assert_int_equal(tensor_split_sizes(x, DIMS(3, 0, 4), 0, part), 3);
    assert_int_equal(tensor_size(part[2], 0), 4);
    assert_int_equal(tensor_unbind(tensor_zeros(SHAPE(0, 2), TENSOR_F32), 0, part, 8), 0);
    assert_status_error(tensor_chunk(x, 0, 0, part, 8), TENSOR_EVALUE);
}
IN_SCOPE(chunks)

/* ---- indexing -------------------------------------------------------------------------------- */

static void messages_name_the_index(void **state)
{
    (void)state;
    Tensor *table = tensor_zeros(SHAPE(10, 3), TENSOR_F32),
           *tokens = tensor_reshape(LIST(1, 2, 3, 4, 5, 12), SHAPE(2, 3));
    assert_null(tensor_embedding(tokens, table));
    assert_int_equal(tensor_error_code(), TENSOR_EINDEX);
    assert_non_null(strstr(tensor_error(), "index 12 at position [1, 2] of [2, 3]"));
    assert_non_null(strstr(tensor_error(), "0 to 9"));
    tensor_error_clear();
    Tensor *x = tensor_zeros(SHAPE(4), TENSOR_F32);
    assert_tensor_error(tensor_index_add_(x, 0, LIST(0, 1, 4), tensor_ones(SHAPE(3), TENSOR_F32), 1),
                        TENSOR_EINDEX);
    assert_tensor_error(tensor_scatter_add_(x, 0, LIST(0, -1), tensor_ones(SHAPE(2), TENSOR_F32)),
                        TENSOR_EINDEX);
    assert_true(tensor_item(tensor_sum(x)) == 0); /* nothing was written */
}
IN_SCOPE(messages_name_the_index)

static void padding_gets_no_gradient(void **state)
{
    (void)state;
    Tensor *table = leaf(counted(SHAPE(4, 2))), *index = LIST(1, 3, 1, 2);
    Tensor *y = tensor_embedding(index, table, .padding_idx = -3); /* row 1 */
    assert_true(tensor_get(y, DIMS(0, 1)) == 3);
    Tensor *g = tensor_gradients(tensor_sum(tensor_square(y)), table, .create_graph = true);
    const double want[] = { 0, 0, 0, 0, 8, 10, 12, 14 };
    assert_tensor_close(tensor_detach(g), tensor_from_data(want, SHAPE(4, 2), TENSOR_F64), 0, 0);
    Tensor *h = tensor_gradients(tensor_sum(g), table);
    const double second[] = { 0, 0, 0, 0, 2, 2, 2, 2 };
    assert_tensor_close(h, tensor_from_data(second, SHAPE(4, 2), TENSOR_F64), 0, 0);
}
IN_SCOPE(padding_gets_no_gradient)

static void last_write_wins(void **state)
{
    (void)state;
    Tensor *x = leaf(tensor_zeros(SHAPE(3), TENSOR_F64)), *src = leaf(tensor_neg(counted(SHAPE(4)))),
           *index = LIST(0, 2, 2, 0);
    src = leaf(tensor_detach(src));
    Tensor *y = tensor_scatter(x, 0, index, src);
    const double want[] = { -3, 0, -2 }, dx[] = { 0, 1, 0 }, dsrc[] = { 0, 0, 1, 1 };
    assert_tensor_close(tensor_detach(y), tensor_from_data(want, SHAPE(3), TENSOR_F64), 0, 0);
    assert_int_equal(tensor_backward(tensor_sum(y)), 0);
    assert_tensor_close(tensor_grad(x), tensor_from_data(dx, SHAPE(3), TENSOR_F64), 0, 0);
    assert_tensor_close(tensor_grad(src), tensor_from_data(dsrc, SHAPE(4), TENSOR_F64), 0, 0);
    Tensor *zero = tensor_scatter(tensor_ones(SHAPE(1), TENSOR_F32), 0, LIST(0),
                                  tensor_full(SHAPE(1), -0.0, TENSOR_F32));
    assert_true(signbit(tensor_item(zero)));
}
IN_SCOPE(last_write_wins)

static void every_dtype_moves(void **state)
{
    (void)state;
    Tensor *index = LIST(2, 0, 2);
    for (int dtype = 0; dtype < TENSOR_DTYPES; dtype++) {
        Tensor *x = tensor_to(counted(SHAPE(3, 2)), (TensorDtype)dtype);
        Tensor *y = tensor_index_select(x, 0, index),
               *z = tensor_index_add(tensor_zeros_like(x), 0, index, y);
        assert_int_equal(tensor_dtype(z), dtype);
        bool logic = dtype == TENSOR_BOOL;
        assert_true(tensor_get(y, DIMS(0, 1)) == (logic ? 1 : 5));
        assert_true(tensor_get(z, DIMS(2, 1)) == (logic ? 1 : 10));
        assert_true(tensor_get(z, DIMS(0, 1)) == 1);
        Tensor *w = tensor_where(tensor_gt_scalar(counted(SHAPE(3, 2)), 2), x, tensor_zeros_like(x));
        assert_true(tensor_get(w, DIMS(1, 1)) == (logic ? 1 : 3) && tensor_get(w, DIMS(0, 1)) == 0);
    }
}
IN_SCOPE(every_dtype_moves)

static void halves_sum_wide(void **state)
{
    (void)state;
    enum { N = 4096 };
    Tensor *index = tensor_zeros(SHAPE(N), TENSOR_I64), *ones = tensor_ones(SHAPE(N), TENSOR_F16);
    assert_true(tensor_item(tensor_index_add(tensor_zeros(SHAPE(1), TENSOR_F16), 0, index, ones)) ==
                N); /* f16 alone stops at 2048 */
}
IN_SCOPE(halves_sum_wide)

/* The same bits for any number of threads, whichever way the work is divided. */
static void threads_do_not_matter(void **state)
{
    (void)state;
    const int64_t shapes[][3] = { { 1, 50, 4096 },
                                  { 64, 50, 64 },
                                  { 1, 5000, 1 } }; /* by columns, blocks, rows */
    int before = tensor_num_threads();
    for (size_t s = 0; s < 3; s++) {
        const int64_t *n = shapes[s];
        int64_t m = s == 2 ? 400000 : 200;
        Tensor *index = tensor_empty(SHAPE(m), TENSOR_I64),
               *src = tensor_empty(SHAPE(n[0], m, n[2]), TENSOR_F32);
        for (int64_t i = 0; i < m; i++) ((int64_t *)tensor_data(index))[i] = i * 7919 % n[1];
        for (int64_t i = 0; i < tensor_numel(src); i++) ((float *)tensor_data(src))[i] = sinf((float)i);
        Tensor *zero = tensor_zeros(SHAPE(n[0], n[1], n[2]), TENSOR_F32);
        tensor_set_num_threads(1);
        Tensor *one = tensor_index_add(zero, 1, index, src), *pick = tensor_index_select(one, 1, index);
        tensor_set_num_threads(3);
        assert_true(tensor_equal(one, tensor_index_add(zero, 1, index, src)));
        assert_true(tensor_equal(pick, tensor_index_select(one, 1, index)));
        Tensor *mask = tensor_gt_scalar(src, 0), *chosen = tensor_where(mask, src, tensor_neg(src));
        assert_true(tensor_equal(chosen, tensor_abs(src)));
        tensor_set_num_threads(before);
    }
}
IN_SCOPE(threads_do_not_matter)

/* ---- selection, not products ----------------------------------------------------------------- */

static void nothing_leaks(void **state)
{
    (void)state;
    const double bad[] = { NAN, INFINITY, 1 };
    Tensor *x = leaf(tensor_from_data(bad, SHAPE(3), TENSOR_F64)), *mask = tensor_isfinite(x);
    Tensor *y = tensor_where(mask, x, tensor_zeros_like(x)),
           *z = tensor_masked_fill(x, tensor_logical_not(mask), 0);
    assert_true(tensor_item(tensor_sum(y)) == 1 && tensor_item(tensor_sum(z)) == 1);
    assert_int_equal(tensor_backward_many(TENSORS(y, z), TENSORS(tensor_detach(x), tensor_detach(x))), 0);
    const double want[] = { 0, 0, 2 };
    assert_tensor_close(tensor_grad(x), tensor_from_data(want, SHAPE(3), TENSOR_F64), 0, 0);
    Tensor *square = tensor_full(SHAPE(2, 2), INFINITY, TENSOR_F32);
    assert_true(tensor_get(tensor_tril(square), DIMS(0, 1)) == 0 &&
                tensor_get(tensor_triu(square, 1), DIMS(0, 0)) == 0);
}
IN_SCOPE(nothing_leaks)

/* ---- in place -------------------------------------------------------------------------------- */

static void in_place_forms(void **state)
{
    (void)state;
    Tensor *x = leaf(counted(SHAPE(3, 3)));
    Tensor *y = tensor_mul_scalar(x, 1), *mask = tensor_gt_scalar(tensor_detach(x), 6);
    assert_ptr_equal(tensor_masked_fill_(y, mask, 0), y);
    assert_ptr_equal(tensor_tril_(y, 0), y);
    Tensor *column = tensor_select(y, 1, 0);
    assert_non_null(tensor_index_add_(column, 0, LIST(1, 1), tensor_ones(SHAPE(2), TENSOR_F64), 0.5));
    const double want[] = { 0, 0, 0, 4, 4, 0, 6, 0, 0 }, grad[] = { 1, 0, 0, 1, 1, 0, 1, 0, 0 };
    assert_tensor_close(tensor_detach(y), tensor_from_data(want, SHAPE(3, 3), TENSOR_F64), 0, 0);
    assert_int_equal(tensor_backward(tensor_sum(y)), 0);
    assert_tensor_close(tensor_grad(x), tensor_from_data(grad, SHAPE(3, 3), TENSOR_F64), 0, 0);
    assert_tensor_error(
        tensor_masked_fill_(tensor_zeros(SHAPE(3), TENSOR_F32), tensor_ones(SHAPE(2, 3), TENSOR_BOOL), 1),
        TENSOR_ESHAPE);
    assert_tensor_error(tensor_tril_(x, 0), TENSOR_EGRAD);
}
IN_SCOPE(in_place_forms)

static void set_item(void **state)
{
    (void)state;
    Tensor *pe = tensor_zeros(SHAPE(2, 5), TENSOR_F32);
    assert_non_null(tensor_copy_(tensor_slice(pe, 1, 0, INT64_MAX, 2), tensor_ones(SHAPE(3), TENSOR_F32)));
    const float want[] = { 1, 0, 1, 0, 1, 1, 0, 1, 0, 1 };
    assert_tensor_close(pe, tensor_from_data(want, SHAPE(2, 5), TENSOR_F32), 0, 0);
}
IN_SCOPE(set_item)

static void squeeze_of_no_dims(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(1, 3, 1), TENSOR_F32);
    assert_int_equal(tensor_ndim(tensor_squeeze(x, .dims = DIMS())), 3); /* PyTorch's squeeze(x, ()) */
    assert_int_equal(tensor_ndim(tensor_squeeze(x)), 1);
}
IN_SCOPE(squeeze_of_no_dims)

/* A view whose base was written takes the base's history when it is next used: with memory, or not at all. */
static void history_without_memory(void **state)
{
    (void)state;
    static Tensor *(*const read[])(Tensor *) = { tensor_exp, tensor_clone, tensor_contiguous };
    for (int k = 0, n = 1; k < 3; n++) {
        Tensor *x = tensor_mul_scalar(tensor_requires_grad_(tensor_ones(SHAPE(3, 2), TENSOR_F64), true), 2),
               *view = tensor_select(x, 1, 0);
        tensor_mul_scalar_(x, 3);
        tensor_debug_fail_allocation(n, false);
        const Tensor *y = read[k](view);
        const bool failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_int_equal(tensor_error_code(), y ? TENSOR_OK : TENSOR_ENOMEM);
        assert_true(!y || tensor_requires_grad(y));
        tensor_error_clear();
        if (!failed) k++, n = 0;
    }
}
IN_SCOPE(history_without_memory)

/* ---- limits ---------------------------------------------------------------------------------- */

static void sixteen_dims(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2), TENSOR_F32);
    assert_tensor_error(tensor_unsqueeze(x, 0), TENSOR_ESHAPE);
    assert_tensor_error(tensor_stack(TENSORS(x, x)), TENSOR_ESHAPE);
    assert_tensor_error(tensor_diag_embed(x), TENSOR_ESHAPE);
    assert_tensor_error(tensor_expand(x, (TensorShape){ 17, NULL }), TENSOR_ESHAPE);
    assert_tensor_error(tensor_unflatten(x, -1, DIMS(1, 2)), TENSOR_ESHAPE);
    assert_tensor_error(tensor_one_hot(tensor_to(x, TENSOR_I64), 3), TENSOR_ESHAPE);
    assert_int_equal(tensor_size(tensor_repeat(x, DIMS(2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)), 0),
                     2);
    assert_tensor_error(tensor_expand(tensor_ones(SHAPE(1), TENSOR_F32), SHAPE(INT64_MAX / 2, 8)),
                        TENSOR_ESHAPE);
    assert_tensor_error(tensor_cat(TENSOR_LIST(NULL, 0)), TENSOR_EVALUE);
    assert_null(tensor_reshape(NULL, SHAPE(1)));
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
}
IN_SCOPE(sixteen_dims)

#define TEST(name) cmocka_unit_test_setup_teardown(scoped_##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(views_share),
        TEST(copies_do_not_share),
        TEST(view_refuses_what_reshape_copies),
        TEST(many_parts),
        TEST(chunks),
        TEST(messages_name_the_index),
        TEST(padding_gets_no_gradient),
        TEST(last_write_wins),
        TEST(every_dtype_moves),
        TEST(halves_sum_wide),
        TEST(threads_do_not_matter),
        TEST(nothing_leaks),
        TEST(in_place_forms),
        TEST(set_item),
        TEST(history_without_memory),
        TEST(sixteen_dims),
        TEST(squeeze_of_no_dims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
