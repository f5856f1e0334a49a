/* test_error_texts.c - an error names the function that was called, in place with its underscore, and tells
 * the shapes as they were given. */
#include <math.h>
#include "sane.h"

static Tensor *f32(TensorShape shape) { return tensor_ones(shape, TENSOR_F32); }
static Tensor *indices(void) { return tensor_from_data((int64_t[]){ 0, 1 }, SHAPE(2), TENSOR_I64); }

/* y is what was refused; the text begins so. */
static void says(const Tensor *y, const char *begin)
{
    assert_null(y);
    assert_non_null(tensor_error());
    const bool so = strncmp(tensor_error(), begin, strlen(begin)) == 0;
    if (!so) print_error("\"%s\" does not begin with \"%s\"\n", tensor_error(), begin);
    assert_true(so);
    tensor_error_clear();
}

static void test_creation_names_itself(void **state)
{
    (void)state;
    says(tensor_zeros(SHAPE(2, -1), TENSOR_F32), "tensor_zeros: [2, -1]");
    says(tensor_ones(SHAPE(-1), TENSOR_F32), "tensor_ones: [-1]");
    says(tensor_full(SHAPE(2), 1, TENSOR_DTYPES), "tensor_full: no such dtype");
    says(tensor_eye(-1, 2, TENSOR_F32), "tensor_eye: [-1, 2]");
    says(tensor_rand(SHAPE(-3), TENSOR_F32), "tensor_rand: [-3]");
    says(tensor_randint(0, 3, SHAPE(-3)), "tensor_randint: [-3]");
    says(tensor_new_zeros(f32(SHAPE(1)), SHAPE(-3)), "tensor_new_zeros: [-3]");
    says(tensor_from_data("", SHAPE(-3), TENSOR_F32), "tensor_from_data: [-3]");
    says(tensor_linspace(0, 1, INT64_MAX / 2, TENSOR_F32), "tensor_linspace: [");
}

static void test_in_place_ends_in_an_underscore(void **state)
{
    (void)state;
    Tensor *x = f32(SHAPE(2, 3)), *v = f32(SHAPE(4)), *leaf = tensor_requires_grad_(f32(SHAPE(2)), true),
           *i = indices();
    says(tensor_add_(x, v), "tensor_add_: [2, 3] and [4]");
    says(tensor_add_(f32(SHAPE(3)), x), "tensor_add_: in place: the result [2, 3]");
    says(tensor_mul_(x, NULL), "tensor_mul_: operand 2 is NULL (a number goes to tensor_mul_scalar_)");
    says(tensor_relu_(leaf), "tensor_relu_: in place on the leaf");
    says(tensor_clamp_(leaf, 0, 1), "tensor_clamp_: ");
    says(tensor_gt_scalar_(leaf, 0), "tensor_gt_scalar_: ");
    says(tensor_gt_scalar(NULL, 0), "tensor_gt_scalar: ");
    says(tensor_addmm_(v, x, f32(SHAPE(3, 3))), "tensor_addmm_: ");
    says(tensor_index_add_(x, 0, i, v, 1), "tensor_index_add_: ");
    says(tensor_index_put_(x, TENSORS(v), v, false), "tensor_index_put_: ");
    says(tensor_add(x, v), "tensor_add: "); /* and not after it */
    says(tensor_gt(x, 0), "tensor_gt: operand 2 is NULL (a number goes to tensor_gt_scalar)");
}

static void test_setters_tell_what_the_index_picks(void **state)
{
    (void)state;
    Tensor *x = f32(SHAPE(2, 3)), *v = f32(SHAPE(4)), *i = indices();
    says(tensor_index_set_(x, v, "0"), "tensor_index_set_: tensor_copy_: [4] does not broadcast to [3]");
    says(tensor_index_set_(x, v, "i", i),
         "tensor_index_set_: tensor_index_put_: values [4] do not broadcast to [2, 3], "
         "what the indices pick of [2, 3]");
    says(tensor_index_set_(x, v, "7"), "tensor_index_set_: \"7\" at position 0");
    says(tensor_index_set_scalar_(x, 0, "0, 3"), "tensor_index_set_scalar_: ");
    says(tensor_index_tensors(x, TENSORS(v)), "tensor_index_tensors: ");
    says(tensor_index(x, "v", tensor_add_scalar(i, 1)), "tensor_index: index 2");
}

static void test_other_names_are_the_called_ones(void **state)
{
    (void)state;
    Tensor *x = f32(SHAPE(2, 3)), *v = f32(SHAPE(4)), *part[2];
    says(tensor_cross_entropy(x, v), "tensor_cross_entropy: input [2, 3], floating target [4]");
    says(tensor_cross_entropy(x, x, .weight = v), "tensor_cross_entropy: weight [4]");
    says(tensor_max(f32(SHAPE(0, 3))), "tensor_max: ");
    says(tensor_min(f32(SHAPE(0, 3))), "tensor_min: ");
    says(tensor_linalg_vector_norm(x, 2, 4), "tensor_linalg_vector_norm: ");
    says(tensor_vdot(x, x), "tensor_vdot: ");
    says(tensor_inverse(x), "tensor_inverse: ");
    says(tensor_inverse(tensor_zeros(SHAPE(2, 2), TENSOR_F32)),
         "tensor_inverse: tensor_solve: [2, 2] is singular");
    says(tensor_triangular_solve(x, x), "tensor_triangular_solve: ");
    says(tensor_broadcast_to(x, SHAPE(2, 4)), "tensor_broadcast_to: ");
    says(tensor_expand_as(x, v), "tensor_expand_as: ");
    says(tensor_movedims(x, DIMS(0), DIMS(0, 1)), "tensor_movedims: ");
    says(tensor_vstack(TENSORS(x, v)), "tensor_vstack: tensor_cat: ");
    assert_int_equal(tensor_split_sizes(x, SHAPE(1, 1), 1, part), -1);
    says(NULL, "tensor_split_sizes: ");
    says(tensor_addmv(v, x, v), "tensor_addmv: [2, 3] times [4]: the inner sizes 3 and 4 differ");
    says(tensor_addr(x, v, v),
         "tensor_addr: [2, 3] does not broadcast to [4, 4], the shape of [4] times [4]");
    says(tensor_div_rounding(x, x, (TensorRounding)9), "tensor_div_rounding: there is no rounding 9");
}

static void test_line_of_a_macro(void **state)
{
    (void)state;
    char text[160];
    const int line = __LINE__ + 1;
    const Tensor *none = tensor_from_data(NULL, SHAPE(2), TENSOR_F32);
    snprintf(text, sizeof text, "tensor_from_data: data is NULL\n    at %s:%d in %s", __FILE__, line,
             __func__);
    says(none, text);
}

static void test_fills_name_who_wrote(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(2, 2), TENSOR_I32), *mask = tensor_ones(SHAPE(2), TENSOR_BOOL),
           *i = tensor_zeros(SHAPE(1, 1), TENSOR_I64);
    says(tensor_full(SHAPE(2), 1e10, TENSOR_I32), "tensor_full: 1e+10 is beyond the dtype of i32 [2]");
    says(tensor_full(SHAPE(2), -256, TENSOR_U8), "tensor_full: -256 is beyond the dtype of u8 [2]");
    says(tensor_full_like(x, NAN), "tensor_full_like: nan is beyond");
    says(tensor_full_like(x, -NAN), "tensor_full_like: nan is beyond"); /* as 0.0 / 0 is on x86 */
    says(tensor_linspace(0, INFINITY, 3, TENSOR_I64), "tensor_linspace: from 0 to inf: integers want finite");
    says(tensor_fill_(x, 1e10), "tensor_fill_: 1e+10 is beyond");
    says(tensor_masked_fill_(x, mask, 1e10), "tensor_masked_fill_: 1e+10 is beyond");
    says(tensor_fill_diagonal_(x, 1e10, false), "tensor_fill_diagonal_: 1e+10 is beyond");
    says(tensor_scatter_value(x, 0, i, 1e10), "tensor_scatter_value: 1e+10 is beyond");
    says(tensor_constant_pad_nd(x, DIMS(1, 0), 1e10), "tensor_constant_pad_nd: 1e+10 is beyond");
    says(tensor_index_set_scalar_(x, 1e10, "0"), "tensor_index_set_scalar_: 1e+10 is beyond");
}

static void test_recurrent_nets_tell_shapes_as_given(void **state)
{
    (void)state;
    Tensor *w_ih = f32(SHAPE(8, 3)), *w_hh = f32(SHAPE(8, 2)), *x = f32(SHAPE(5, 2, 3));
    TensorList net = TENSORS(w_ih, w_hh, f32(SHAPE(8)), f32(SHAPE(8)));
    says(tensor_lstm(f32(SHAPE(5, 2, 4)), NULL, NULL, net, .batch_first = true),
         "tensor_lstm: input [5, 2, 4], w_ih [8, 3]: want [batch, steps, 3]");
    says(tensor_lstm(f32(SHAPE(5, 4)), NULL, NULL, net),
         "tensor_lstm: input [5, 4], w_ih [8, 3]: want [steps, 3]");
    says(tensor_lstm(x, f32(SHAPE(1, 2, 2)), NULL, net, .batch_first = true),
         "tensor_lstm: h0 [1, 2, 2], input [5, 2, 3]: want [1, 5, 2]");
    says(tensor_lstm(x, NULL, f32(SHAPE(1, 2, 3)), net),
         "tensor_lstm: c0 [1, 2, 3], input [5, 2, 3]: want [1, 2, 2]");
    says(tensor_lstm(f32(SHAPE(5, 0, 3)), NULL, NULL, net, .batch_first = true),
         "tensor_lstm: input [5, 0, 3], [batch, steps, in]");
    TensorList two = TENSORS(w_ih, w_hh, w_ih, w_hh);
    says(tensor_lstm(x, NULL, NULL, two, .has_biases = false, .num_layers = 2),
         "tensor_lstm: w_ih [8, 3] of layer 1: want 2 columns");
}

static void test_counts_that_do_not_fit(void **state)
{
    (void)state;
    Tensor *x = f32(SHAPE(1, 1, 4, 4)), *m = f32(SHAPE(2, 3));
    says(tensor_interpolate(x, .scale_factors = { 2, 2, 2 }),
         "tensor_interpolate: scale_factors of 3 numbers for [1, 1, 4, 4]: want 2");
    says(tensor_interpolate(x, .scale_factors = { 2 }),
         "tensor_interpolate: scale_factors of 1 number for [1, 1, 4, 4]: want 2");
    says(tensor_interpolate(x, .scale_factor = 2, .scale_factors = { 2, 2 }), "tensor_interpolate: both");
    says(tensor_einsum("ij,jk", TENSORS(m)), "tensor_einsum: operands in the equation: 2 or more, given: 1");
    says(tensor_einsum("ij", TENSORS(m, m)), "tensor_einsum: operands in the equation: 1, given: 2");
}

static void test_what_was_left_out(void **state)
{
    (void)state;
    Tensor *m = f32(SHAPE(2, 3));
    says(tensor_max_dim(m), "tensor_max_dim: dim must be given");
    says(tensor_cummin(m), "tensor_cummin: dim must be given");
    says(tensor_lstm(f32(SHAPE(5, 2, 3)), NULL, NULL, TENSOR_LIST(NULL, 4)),
         "tensor_lstm: the list of params is NULL");
    says(isnan(tensor_get(m, (TensorShape){ .ndim = 2 })) ? NULL : m,
         "tensor_get: 2 indices, whose list is NULL");
}

/* A write, or an operand that is added to a product, is never wider than what it goes to. */
static void test_nothing_is_widened(void **state)
{
    (void)state;
    Tensor *one = f32(SHAPE(1)), *three = f32(SHAPE(3)), *matrix = f32(SHAPE(1, 3)),
           *i = tensor_zeros(SHAPE(1), TENSOR_I64);
    says(tensor_copy_(one, three), "tensor_copy_: [3] does not broadcast to [1]");
    says(tensor_copy_(three, matrix), "tensor_copy_: [1, 3] does not broadcast to [3]");
    says(tensor_index_put_(f32(SHAPE(4)), TENSORS(i), three, false),
         "tensor_index_put_: values [3] do not broadcast to [1]");
    says(tensor_index_put(f32(SHAPE(4)), TENSORS(i), three, false),
         "tensor_index_put: values [3] do not broadcast to [1]");
    says(tensor_addmm(f32(SHAPE(2, 3)), matrix, f32(SHAPE(3, 3))),
         "tensor_addmm: [2, 3] does not broadcast to [1, 3], the shape of [1, 3] times [3, 3]");
}

static void test_sizes_that_differ_are_told(void **state)
{
    (void)state;
    says(tensor_cdist(f32(SHAPE(2, 3)), f32(SHAPE(2, 4))),
         "tensor_cdist: [2, 3] and [2, 4]: the vectors are 3 and 4 long");
    says(tensor_addmv(f32(SHAPE(2)), f32(SHAPE(2, 3)), f32(SHAPE(4))),
         "tensor_addmv: [2, 3] times [4]: the inner sizes 3 and 4 differ");
    Tensor *x = f32(SHAPE(2, 3)), *two = f32(SHAPE(2));
    says(tensor_batch_norm(x, .weight = two), "tensor_batch_norm: weight [2], input [2, 3]: want [3]");
    says(tensor_batch_norm(x, .running_mean = two, .running_var = f32(SHAPE(3))),
         "tensor_batch_norm: running_mean [2], input [2, 3]: want [3]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_creation_names_itself),
        TEST(test_in_place_ends_in_an_underscore),
        TEST(test_setters_tell_what_the_index_picks),
        TEST(test_other_names_are_the_called_ones),
        TEST(test_recurrent_nets_tell_shapes_as_given),
        TEST(test_counts_that_do_not_fit),
        TEST(test_what_was_left_out),
        TEST(test_line_of_a_macro),
        TEST(test_fills_name_who_wrote),
        TEST(test_nothing_is_widened),
        TEST(test_sizes_that_differ_are_told),
    };
    return cmocka_run_group_tests_name("texts of errors", tests, NULL, NULL);
}
