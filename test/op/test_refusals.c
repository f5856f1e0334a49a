/* test_refusals.c - refusals that no sample of an op reaches: the most dims, parts and elements, lists that
 * are NULL, options of which only one may be given.  Where cheap, the last that is taken stands beside. */
#include <stdio.h>
#include "traps.h"

/* Refused with this code, and the text says this. */
#define SAYS(code, words, ...)                                                              \
    do {                                                                                    \
        if (!!(__VA_ARGS__)) fail_msg("taken: %s", #__VA_ARGS__);                           \
        if (tensor_error_code() != (code) || !strstr(tensor_error(), words))                \
            fail_msg("%s: %s", #__VA_ARGS__, tensor_error() ? tensor_error() : "no error"); \
        tensor_error_clear();                                                               \
    } while (0)
#define COUNT_SAYS(code, words, ...) SAYS(code, words, (__VA_ARGS__) >= 0)

/* Ones of n dims, all of size 1. */
static Tensor *dims(int n, TensorDtype dtype)
{
    static const int64_t ones[TENSOR_MAX_DIMS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    return tensor_ones((TensorShape){ n, ones }, dtype);
}

static void test_the_most_dims(void **state)
{
    (void)state;
    Tensor *x = dims(16, TENSOR_F64), *less = dims(15, TENSOR_F64),
           *table = tensor_ones(SHAPE(2, 2), TENSOR_F64), *g = tensor_ones(SHAPE(1), TENSOR_F64),
           *q = tensor_full(SHAPE(1), 0.5, TENSOR_F64);
    assert_int_equal(tensor_ndim(tensor_embedding(dims(15, TENSOR_I64), table)), 16);
    SAYS(TENSOR_ESHAPE, "16 dimensions already", tensor_embedding(dims(16, TENSOR_I64), table));
    assert_int_equal(tensor_ndim(tensor_unfold_dim(less, 0, 1, 1)), 16);
    SAYS(TENSOR_ESHAPE, "16 dimensions already", tensor_unfold_dim(x, 0, 1, 1));
    assert_int_equal(tensor_ndim(tensor_quantile(less, .qs = q, .dim = 0)), 15);
    SAYS(TENSOR_ESHAPE, "16 dimensions already", tensor_quantile(x, .qs = q, .dim = 0));
    assert_int_equal(tensor_ndim(tensor_weight_norm(less, tensor_ones_like(less), 0)), 15);
    SAYS(TENSOR_ESHAPE, "at most 15 dimensions", tensor_norm_except_dim(x, 2, 0));
    SAYS(TENSOR_ESHAPE, "at most 15 dimensions", tensor_weight_norm(x, g, 0));
    assert_int_equal(tensor_ndim(tensor_index(x, "0")), 15);
    assert_int_equal(tensor_ndim(tensor_index(less, "None")), 16);
    SAYS(TENSOR_ESHAPE, "too many dimensions", tensor_index(x, "None"));
    SAYS(TENSOR_ESHAPE, "16 dimensions", tensor_tensordot(less, less, .dims = 0));
    assert_int_equal(tensor_ndim(tensor_stack(TENSORS(less, less), -1)), 16);
    SAYS(TENSOR_ESHAPE, "", tensor_stack(TENSORS(x, x), 0));
    Tensor *pick = tensor_zeros(SHAPE(1, 1), TENSOR_I64);
    SAYS(TENSOR_ESHAPE, "more than 16 dimensions", tensor_index_tensors(x, TENSORS(pick)));
    assert_int_equal(tensor_ndim(tensor_index_tensors(less, TENSORS(pick))), 16);
    Tensor *wide = tensor_ones(
        (TensorShape){ 16, (int64_t[]){ 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1 } }, TENSOR_F32);
    SAYS(TENSOR_ESHAPE, "too many dimensions",
         tensor_repeat(wide,
                       (TensorShape){ 16, (int64_t[]){ 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1 } }));
}

static void test_the_most_elements(void **state)
{
    (void)state;
    const int64_t half = INT64_MAX / 2 + 1;
    Tensor *none = tensor_zeros(SHAPE(0, 4), TENSOR_F32),
           *many = tensor_expand(tensor_zeros(SHAPE(0, 1), TENSOR_F32), SHAPE(0, half));
    SAYS(TENSOR_ESHAPE, "too many elements", tensor_cat(TENSORS(many, many), 1));
    SAYS(TENSOR_ESHAPE, "too many elements", tensor_repeat(none, SHAPE(1, half)));
    SAYS(TENSOR_ESHAPE, "too many elements", tensor_repeat_interleave(none, half, .dim = 1));
    Tensor *counts = tensor_from_data((int64_t[]){ half, half }, SHAPE(2), TENSOR_I64);
    SAYS(TENSOR_ESHAPE, "too many elements",
         tensor_repeat_interleave_tensor(tensor_ones(SHAPE(2), TENSOR_F32), counts));
    static Tensor *part[257];
    Tensor *line = tensor_ones(SHAPE(257), TENSOR_F32);
    assert_int_equal(tensor_split(tensor_narrow(line, 0, 0, 256), 1, 0, part, 257), 256);
    COUNT_SAYS(TENSOR_ESHAPE, "257 parts: at most 256",
               tensor_apply_text_all("split", &line, 1, "size=1", part, 257));
    assert_int_equal(tensor_unbind(tensor_narrow(line, 0, 0, 256), 0, part, 257), 256);
    COUNT_SAYS(TENSOR_ESHAPE, "at most 256 parts",
               tensor_apply_text_all("unbind", &line, 1, "dim=0", part, 257));
}

static void test_lists(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(4), TENSOR_F64), *i = tensor_zeros(SHAPE(2), TENSOR_I64), *y[17];
    SAYS(TENSOR_EINDEX, "0 indices: want 1 to 16", tensor_index_tensors(x, TENSOR_LIST(NULL, 0)));
    SAYS(TENSOR_EINDEX, "want 1 to 16", tensor_index_tensors(x, TENSOR_LIST(NULL, 2)));
    SAYS(TENSOR_EINDEX, "17 indices: want 1 to 16", tensor_index_tensors(x, TENSOR_LIST(y, 17)));
    SAYS(TENSOR_ENULL, "the list of tensors is NULL", tensor_block_diag(TENSOR_LIST(NULL, 2)));
    SAYS(TENSOR_ENULL, "the list of tensors is NULL", tensor_multi_dot(TENSOR_LIST(NULL, 2)));
    SAYS(TENSOR_EVALUE, "0 lists: want 1", tensor_cartesian_prod(TENSOR_LIST(NULL, 0)));
    SAYS(TENSOR_EVALUE, "2 lists: want 1", tensor_cartesian_prod(TENSOR_LIST(NULL, 2)));
    SAYS(TENSOR_EDTYPE, "i64 beside f64: want one dtype", tensor_cartesian_prod(TENSORS(x, i)));
    COUNT_SAYS(TENSOR_EDTYPE, "i64 beside f64: want one dtype", tensor_meshgrid(TENSORS(x, i), y));
    COUNT_SAYS(TENSOR_ENULL, "are NULL", tensor_tensor_split_indices(x, (TensorShape){ 2, NULL }, 0, y));
    COUNT_SAYS(TENSOR_ENULL, "are NULL", tensor_tensor_split_indices(x, SHAPE(1, 2), 0, NULL));
    assert_int_equal(tensor_tensor_split_indices(x, (TensorShape){ 0, NULL }, 0, y), 1);
    SAYS(TENSOR_ENULL, "dims_a is a list of 2", tensor_tensordot(x, x, .dims_a = (TensorShape){ 2, NULL }));
    COUNT_SAYS(TENSOR_ESHAPE, "hsplit_indices",
               tensor_hsplit_indices(tensor_ones(SHAPE(), TENSOR_F32), SHAPE(1), y));
    COUNT_SAYS(TENSOR_ESHAPE, "vsplit_indices", tensor_vsplit_indices(x, SHAPE(1), y));
    COUNT_SAYS(TENSOR_ESHAPE, "dsplit_indices",
               tensor_dsplit_indices(tensor_ones(SHAPE(2, 2), TENSOR_F32), SHAPE(1), y));
    assert_int_equal(tensor_split(tensor_zeros(SHAPE(0), TENSOR_F32), 0, 0, y, 17), 1);
    COUNT_SAYS(TENSOR_EVALUE, "", tensor_split(x, 0, 0, y, 17));
    Tensor *nothing_at_all = tensor_zeros(SHAPE(0), TENSOR_F32);
    assert_int_equal(tensor_numel(tensor_cat(TENSORS(nothing_at_all), 5)), 0); /* any dim, as in PyTorch */
    Tensor *cube = tensor_ones(SHAPE(1, 2, 3), TENSOR_F32);
    assert_ptr_equal(tensor_atleast_3d(cube), cube);
    COUNT_SAYS(TENSOR_EVALUE, "both .dim and .dims", tensor_gradient(x, y, .dim = 0, .dims = SHAPE(0)));
}

static void test_options(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(1, 1, 3), TENSOR_F64), *index = tensor_zeros(SHAPE(1, 2), TENSOR_I64),
           *table = tensor_ones(SHAPE(2, 2), TENSOR_F64), *list = tensor_zeros(SHAPE(2), TENSOR_I64);
    SAYS(TENSOR_EVALUE, "only convolutions have it",
         tensor_conv_transpose1d(x, x, NULL, .padding = TENSOR_SAME));
    SAYS(TENSOR_EVALUE, "include_last_offset without offsets",
         tensor_embedding_bag(index, table, NULL, .include_last_offset = true));
    SAYS(TENSOR_EVALUE, "include_last_offset without offsets",
         tensor_embedding_bag(list, table, tensor_zeros(SHAPE(0), TENSOR_I64), .include_last_offset = true));
    SAYS(TENSOR_ESHAPE, "want one", tensor_index_select(tensor_ones(SHAPE(), TENSOR_F64), 0, list));
    assert_int_equal(tensor_ndim(tensor_index_select(tensor_ones(SHAPE(), TENSOR_F64), 0,
                                                     tensor_zeros(SHAPE(1), TENSOR_I64))),
                     0);
    Tensor *whole = tensor_ones(SHAPE(2), TENSOR_I64);
    SAYS(TENSOR_EVALUE, "alpha 0.5 on i64", tensor_index_add(whole, 0, list, whole, .alpha = 0.5));
    SAYS(TENSOR_EVALUE, "is NaN", tensor_hardtanh(whole, NAN, 1));
    SAYS(TENSOR_EVALUE, "is NaN", tensor_hardtanh(whole, -1, NAN));
    const double ends[] = { INFINITY, -INFINITY, NAN };
    for (int i = 0; i < 3; i++) {
        Tensor *y = tensor_from_data((double[]){ 1, ends[i], 3 }, SHAPE(3), TENSOR_F64);
        SAYS(TENSOR_EVALUE, "not all finite", tensor_histc(y, 4));
        assert_true(tensor_item(tensor_sum(tensor_histc(y, 4, 0, 4))) == 2);
    }
    /* a value that nothing is filled with may be any */
    Tensor *bytes = tensor_ones(SHAPE(4), TENSOR_U8);
    assert_int_equal(tensor_numel(tensor_pad(bytes, SHAPE(-1, 0), .value = 300)), 3);
    SAYS(TENSOR_EVALUE, "", tensor_pad(bytes, SHAPE(-1, 1), .value = 300));
    SAYS(TENSOR_ESHAPE, "of [-1, 2]", tensor_tril_indices(-1, 2, 0));
    SAYS(TENSOR_ESHAPE, "of [2, -1]", tensor_triu_indices(2, -1, 0));
    SAYS(TENSOR_EDTYPE, "no such dtype", tensor_logspace(0, 1, 2, 10, TENSOR_DTYPES));
    SAYS(TENSOR_EVALUE, "-1 steps", tensor_logspace(0, 1, -1, 10, TENSOR_F32));
}

/* ---- calls by descriptor and by name ------------------------------------------------------------ */

static int three(OpCall *c)
{
    for (int i = 0; i < 3; i++)
        if (op_set_output(c, i, SHAPE(1), TENSOR_F32)) return -1;
    return 0;
}
static int nothing(OpCall *c) { return (void)c, 0; }

static void test_calls(void **state)
{
    (void)state;
    const TensorOp *add = tensor_op_find("add"), *select = tensor_op_find("select");
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F32), *in[65], *out[3];
    for (int i = 0; i < 65; i++) in[i] = x;
    SAYS(TENSOR_ENULL, "2 inputs, but the array is NULL", tensor_apply(add, NULL, 2, NULL));
    COUNT_SAYS(TENSOR_ENULL, "2 inputs, but the array is NULL", tensor_apply_all(add, NULL, 2, NULL, out, 1));
    COUNT_SAYS(TENSOR_ENULL, "room for 1 results, but the array is NULL",
               tensor_apply_all(add, in, 2, NULL, NULL, 1));
    assert_int_equal(tensor_apply_all(add, in, 2, NULL, NULL, 0), 1);
    SAYS(TENSOR_ENULL, "want the target first", tensor_apply_(add, NULL, 2, NULL));
    SAYS(TENSOR_ENULL, "want the target first", tensor_apply_(add, in, 0, NULL));
    if (select) SAYS(TENSOR_EVALUE, "gives a view", tensor_apply_(select, in, 1, NULL));
    Tensor *m = tensor_ones(SHAPE(2, 3), TENSOR_F32);
    assert_int_equal(tensor_numel(tensor_apply_text("sum", &m, 1, "  dim=1  keepdim=true ")), 2);
    SAYS(TENSOR_ENULL, "the array of inputs is NULL", tensor_apply_text("add", NULL, 2, ""));
    COUNT_SAYS(TENSOR_ENULL, "the array of results is NULL",
               tensor_apply_text_all("add", in, 2, "", NULL, 1));
    TensorOp op = { .name = "three", .arity = OP_ANY_ARITY, .shape = three, .forward = nothing };
    SAYS(TENSOR_EUSER, "made 3 of 1 results", tensor_apply(&op, in, 1, NULL));
    op.outputs = 2;
    SAYS(TENSOR_EUSER, "made 3 of 2 results", tensor_apply(&op, in, 1, NULL));
    op.outputs = 3;
    assert_non_null(tensor_apply(&op, in, 64, NULL));
    SAYS(TENSOR_EVALUE, "65 operands: 1 to 64", tensor_apply(&op, in, 65, NULL));
    SAYS(TENSOR_EVALUE, "0 operands: 1 to 64", tensor_apply(&op, in, 0, NULL));
}

static void test_assign(void **state)
{
    (void)state;
    Tensor *held = NULL, *x = tensor_ones(SHAPE(2), TENSOR_F32);
    const int64_t live = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < 3; i++) assert_int_equal(tensor_assign(&held, tensor_add_scalar(x, i)), 0);
    COUNT_SAYS(TENSOR_ENULL, "the handle is NULL", tensor_assign(NULL, x));
    COUNT_SAYS(TENSOR_ENULL, "operand 2 is NULL", tensor_assign(&held, NULL));
    tensor_scope_close(scope);
    assert_int_equal(tensor_live_count(), live + 1);
    assert_true(tensor_get(held, SHAPE(1)) == 3);
    tensor_release(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_most_dims), TEST(test_the_most_elements),
        TEST(test_lists),         TEST(test_options),
        TEST(test_calls),         TEST(test_assign),
    };
    return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
