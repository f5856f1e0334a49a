/* test_shape_refusals.c - what functions over parts, lists of tensors and texts of indices refuse, which are
 * no ops of the registry (answers.h). */
#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include "answers.h"

static Tensor *part[300];
static Tensor *ones(TensorShape shape) { return tensor_ones(shape, TENSOR_F64); }

static void parts(void)
{
    Tensor *m = ones(SHAPE(4, 6)), *line = ones(SHAPE(6)), *long_one = ones(SHAPE(257)),
           *none = ones(SHAPE(0)), *scalar = ones(SHAPE());
    ANSWER(tensor_split(m, 2, 0, NULL, 8));
    ANSWER(tensor_split(m, 2, 0, part, 1));
    ANSWER(tensor_split(m, 2, 0, part, 2));
    ANSWER(tensor_split(m, 0, 0, part, 8));
    ANSWER(tensor_split_sizes(m, SHAPE(1, 2), 0, part));
    ANSWER(tensor_split_sizes(m, SHAPE(1, 3), 0, NULL));
    ANSWER(tensor_split_sizes(m, SHAPE(1, 3), 0, part));
    ANSWER(tensor_split_sizes(m, SHAPE(), 0, part));
    ANSWER(tensor_split_sizes(none, SHAPE(), 0, part));
    ANSWER(tensor_split_sizes(none, SHAPE(0), 0, part));
    ANSWER(tensor_split_sizes(m, (TensorShape){ 1, NULL }, 0, part));
    ANSWER(tensor_split_sizes(m, (TensorShape){ -1, NULL }, 0, part));
    ANSWER(tensor_chunk(m, 0, 0, part, 8));
    ANSWER(tensor_chunk(m, 1, 0, part, 8));
    ANSWER(tensor_chunk(m, 4, 0, part, 3));
    ANSWER(tensor_unbind(long_one, 0, part, 300));
    ANSWER(tensor_unbind(ones(SHAPE(256)), 0, part, 300));
    ANSWER(tensor_unbind(ones(SHAPE(256)), 0, part, 255));
    ANSWER(tensor_unbind(ones(SHAPE(0)), 0, part, 8));
    ANSWER(tensor_apply_text_all("unbind", &long_one, 1, "dim=0", part, 300));
    ANSWER(tensor_tensor_split(m, 0, 0, part, 8));
    ANSWER(tensor_tensor_split(m, 1, 0, part, 8));
    ANSWER(tensor_tensor_split(m, 3, 0, NULL, 8));
    ANSWER(tensor_tensor_split(m, 3, 0, part, 2));
    ANSWER(tensor_tensor_split(m, 3, 0, part, 3));
    ANSWER(tensor_tensor_split(m, 3, 2, part, 3));
    ANSWER(tensor_tensor_split_indices(m, SHAPE(1), 2, part));
    ANSWER(tensor_tensor_split_indices(m, SHAPE(1), 0, NULL));
    ANSWER(tensor_tensor_split_indices(m, (TensorShape){ 1, NULL }, 0, part));
    ANSWER(tensor_tensor_split_indices(m, SHAPE(1), 0, part));
    ANSWER(tensor_hsplit(scalar, 1, part, 8));
    ANSWER(tensor_hsplit(line, 4, part, 8));
    ANSWER(tensor_hsplit(line, 3, part, 8));
    ANSWER(tensor_vsplit(line, 1, part, 8));
    ANSWER(tensor_vsplit(m, 3, part, 8));
    ANSWER(tensor_vsplit(m, 4, part, 8));
    ANSWER(tensor_dsplit(m, 1, part, 8));
    ANSWER(tensor_dsplit(ones(SHAPE(1, 1, 3)), 2, part, 8));
}

/* Each mode at the end of its reach, and of what is empty. */
static void pads(void)
{
    Tensor *three = ones(SHAPE(1, 3)), *none = ones(SHAPE(1, 0));
    ANSWER(tensor_pad(three, DIMS(2, 0), .mode = TENSOR_PAD_REFLECT));
    ANSWER(tensor_pad(three, DIMS(0, 3), .mode = TENSOR_PAD_REFLECT));
    ANSWER(tensor_pad(none, DIMS(0, 0), .mode = TENSOR_PAD_REFLECT));
    ANSWER(tensor_pad(none, DIMS(1, 0), .mode = TENSOR_PAD_REFLECT));
    ANSWER(tensor_pad(three, DIMS(3, 3), .mode = TENSOR_PAD_CIRCULAR));
    ANSWER(tensor_pad(three, DIMS(3, -1), .mode = TENSOR_PAD_CIRCULAR));
    ANSWER(tensor_pad(none, DIMS(0, 0), .mode = TENSOR_PAD_CIRCULAR));
    ANSWER(tensor_pad(none, DIMS(0, 1), .mode = TENSOR_PAD_CIRCULAR));
    ANSWER(tensor_pad(three, DIMS(-3, 0), .mode = TENSOR_PAD_REPLICATE));
    ANSWER(tensor_pad(three, DIMS(-2, 0), .mode = TENSOR_PAD_REPLICATE));
    ANSWER(tensor_pad(none, DIMS(0, 0), .mode = TENSOR_PAD_REPLICATE));
    ANSWER(tensor_pad(none, DIMS(1, 0), .mode = TENSOR_PAD_REPLICATE));
    ANSWER(tensor_pad(three, DIMS(-3, 0)));
    ANSWER(tensor_pad(three, DIMS(-4, 0)));
    ANSWER(tensor_pad(none, DIMS(0, 1)));
}

static void joins(void)
{
    Tensor *m = ones(SHAPE(2, 3)), *line = ones(SHAPE(3)), *i64 = tensor_ones(SHAPE(3), TENSOR_I64), *x[17];
    for (int i = 0; i < 17; i++) x[i] = ones(SHAPE(1));
    ANSWER(tensor_cat(TENSOR_LIST(x, 0)));
    ANSWER(tensor_cat(TENSOR_LIST(NULL, 2)));
    ANSWER(tensor_stack(TENSOR_LIST(x, -1)));
    ANSWER(tensor_hstack(TENSOR_LIST(x, 0)));
    ANSWER(tensor_vstack(TENSOR_LIST(NULL, 1)));
    ANSWER(tensor_meshgrid(TENSOR_LIST(x, 0), part));
    ANSWER(tensor_meshgrid(TENSOR_LIST(x, 16), part));
    ANSWER(tensor_meshgrid(TENSOR_LIST(x, 17), part));
    ANSWER(tensor_meshgrid(TENSORS(line, m), part));
    ANSWER(tensor_meshgrid(TENSORS(line, i64), part));
    ANSWER(tensor_meshgrid(TENSORS(line), NULL));
    ANSWER(tensor_cartesian_prod(TENSOR_LIST(x, 0)));
    ANSWER(tensor_cartesian_prod(TENSORS(m)));
    ANSWER(tensor_combinations(m));
    ANSWER(tensor_combinations(line, -1));
    ANSWER(tensor_combinations(line, 0));
    ANSWER(tensor_combinations(line, 4));
    ANSWER(tensor_combinations(tensor_ones(SHAPE(1000), TENSOR_U8), 100));
    ANSWER(tensor_broadcast_tensors(TENSOR_LIST(x, 0), part));
    ANSWER(tensor_broadcast_tensors(TENSOR_LIST(x, 16), part));
    ANSWER(tensor_broadcast_tensors(TENSOR_LIST(x, 17), part));
    ANSWER(tensor_broadcast_tensors(TENSORS(m), NULL));
    ANSWER(tensor_broadcast_tensors(TENSORS(line, m, ones(SHAPE(4))), part));
}

static void views(void)
{
    Tensor *m = ones(SHAPE(2, 3)), *turned = tensor_transpose(m, 0, 1), *one = ones(SHAPE(1));
    ANSWER(tensor_view(turned, SHAPE(6)));
    ANSWER(tensor_view(turned, SHAPE(3, 1, 2)));
    ANSWER(tensor_as_strided(turned, SHAPE(2), SHAPE(1)));
    ANSWER(tensor_as_strided(m, SHAPE(2), SHAPE(-1)));
    ANSWER(tensor_as_strided(m, SHAPE(2), SHAPE(5)));
    ANSWER(tensor_as_strided(m, SHAPE(2), SHAPE(6)));
    ANSWER(tensor_expand(one, SHAPE(INT64_MAX / 16, 32)));
    ANSWER(tensor_flipud(ones(SHAPE())));
    ANSWER(tensor_flipud(one));
    ANSWER(tensor_fliplr(one));
    ANSWER(tensor_fliplr(m));
    ANSWER(tensor_fill_diagonal_(one, 1, false));
    ANSWER(tensor_fill_diagonal_(m, 1, false));
    ANSWER(tensor_fill_diagonal_(ones(SHAPE(2, 2, 3)), 1, false));
    ANSWER(tensor_fill_diagonal_(ones(SHAPE(2, 2, 2)), 1, false));
}

static void indices(void)
{
    char most[2 * (3 * TENSOR_MAX_DIMS + 1)]; /* one item more than may be */
    Tensor *m = ones(SHAPE(2, 3)), *i = tensor_zeros(SHAPE(2), TENSOR_I64),
           *full = ones((TensorShape){ 16, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } });
    ANSWER(tensor_index(m, NULL));
    ANSWER(tensor_index(m, "2"));
    ANSWER(tensor_index(m, "-3"));
    ANSWER(tensor_index(m, "-2"));
    ANSWER(tensor_index(m, "0, 3"));
    ANSWER(tensor_index(m, "0, 0, 0"));
    ANSWER(tensor_index(m, "..., ..."));
    ANSWER(tensor_index(m, "::0"));
    ANSWER(tensor_index(m, "::-1"));
    ANSWER(tensor_index(m, "::1"));
    ANSWER(tensor_index(m, "x"));
    ANSWER(tensor_index(m, "x", NULL));
    ANSWER(tensor_index(m, "x", m));
    ANSWER(tensor_index(m, "x", i));
    ANSWER(tensor_index(m, "x", i, i));
    ANSWER(tensor_index(m, "$"));
    ANSWER(tensor_index(m, "[0"));
    ANSWER(tensor_index(m, "0]"));
    ANSWER(tensor_index(m, "99999999999999999999"));
    ANSWER(tensor_index(full, "None"));
    ANSWER(tensor_index(full, "0, None"));
    most[sizeof most - 1] = 0;
    memset(most, ':', sizeof most - 1);
    for (size_t k = 1; k < sizeof most - 1; k += 2) most[k] = ',';
    ANSWER(tensor_index(m, most));
    most[sizeof most - 3] = 0;
    ANSWER(tensor_index(m, most));
    ANSWER(tensor_index_select(ones(SHAPE()), 0, i));
    ANSWER(tensor_index_select(ones(SHAPE()), 0, tensor_zeros(SHAPE(1), TENSOR_I64)));
    ANSWER(tensor_unravel_index(i, SHAPE(2, 3), NULL));
    ANSWER(tensor_unravel_index(i, SHAPE(2, 3), part));
}

static void numbers(void)
{
    Tensor *m = ones(SHAPE(4, 4)), *line = ones(SHAPE(4)), *far = tensor_full(SHAPE(3), INFINITY, TENSOR_F64),
           *q = tensor_full(SHAPE(2), 0.5, TENSOR_F64), *x[65], *w_ih = ones(SHAPE(8, 3)),
           *w_hh = ones(SHAPE(8, 2)), *image = ones(SHAPE(1, 1, 1, 1)), *one = ones(SHAPE(1, 1)),
           *nine = ones(SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1));
    static int64_t dims[17];
    for (int k = 0; k < 65; k++) x[k] = line;
    ANSWER(tensor_gradient(m, NULL));
    ANSWER(tensor_gradient(tensor_to(m, TENSOR_U8), part));
    ANSWER(tensor_gradient(tensor_to(m, TENSOR_BOOL), part));
    ANSWER(tensor_gradient(m, part, .dims = { 17, dims }));
    ANSWER(tensor_gradient(m, part, .dim = 0, .dims = DIMS(1)));
    ANSWER(tensor_gradient(m, part, .dim = 2));
    ANSWER(tensor_gradient(m, part, .dims = DIMS(1, -1)));
    ANSWER(tensor_gradient(m, part, .coordinates = TENSORS(line)));
    ANSWER(tensor_gradient(m, part, .coordinates = TENSORS(line, line), .spacing = 2));
    ANSWER(tensor_gradient(m, part, .spacings = (double[]){ 1, 2 }, .spacing = 2));
    ANSWER(tensor_gradient(m, part, .spacing = 2));
    ANSWER(tensor_quantile(m, .q = 0.5, .qs = q));
    ANSWER(tensor_nanquantile(m, .q = 0.5, .qs = q));
    ANSWER(tensor_histc(far));
    ANSWER(tensor_histc(tensor_mul_scalar(far, NAN), 10));
    ANSWER(tensor_histc(far, 10, 0, 1));
    ANSWER(tensor_einsum(NULL, TENSORS(m)));
    ANSWER(tensor_einsum("ij", TENSOR_LIST(NULL, 1)));
    ANSWER(tensor_einsum("abcdefgh,ijklmnop->abcdefghijklmnop",
                         TENSORS(ones(SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), ones(SHAPE(1, 1, 1, 1, 1, 1, 1, 1)))));
    ANSWER(
        tensor_einsum("abcdefgh,ijklmnopq->abcdefghijklmnopq",
                      TENSORS(ones(SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), ones(SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)))));
    ANSWER(tensor_linalg_norm(ones(SHAPE(2, 2, 2)), 2));
    ANSWER(tensor_linalg_norm(ones(SHAPE(2, 2, 2)), 2, .dims = DIMS(0, 1, 2)));
    ANSWER(tensor_linalg_norm(line, TENSOR_FRO));
    ANSWER(tensor_linalg_norm(m, TENSOR_NUC, .dim = 0));
    ANSWER(tensor_linalg_norm(m, TENSOR_NUC));
    ANSWER(tensor_rnn_tanh(ones(SHAPE(1, 1, 1)), NULL, TENSOR_LIST(x, 63)));
    ANSWER(tensor_rnn_tanh(ones(SHAPE(1, 1, 1)), NULL, TENSOR_LIST(x, -1)));
    ANSWER(tensor_lstm(ones(SHAPE(1, 1, 3)), NULL, NULL, TENSORS(w_ih, w_hh, w_ih, w_hh), .has_biases = false,
                       .num_layers = 2));
    ANSWER(tensor_conv_transpose2d(image, image, .padding = TENSOR_SAME));
    ANSWER(tensor_max_pool2d(tensor_expand(image, SHAPE(1, 1, 1 << 16, 1 << 16)), 1 << 15, .indices = part));
    ANSWER(tensor_svd(tensor_expand(one, SHAPE(1, INT64_C(1) << 31))));
    ANSWER(tensor_eigh(tensor_expand(one, SHAPE(16001, 16001))));
    ANSWER(tensor_einsum("abcdefghi,jklmnopqr,abcdefghi->jklmnopqr", TENSORS(nine, nine, nine)));
    ANSWER(tensor_fractional_max_pool2d(NULL, 2, SHAPE(2, 2)));
    ANSWER(tensor_fractional_max_pool2d(ones(SHAPE(1, 1, 4, 4)), 2, SHAPE(2, 2), .random_samples = q));
    ANSWER(tensor_fractional_max_pool2d(ones(SHAPE(1, 1, 4, 4)), 2, SHAPE(2, 2)));
}

/* Gradients that do not exist. */
static void gradients(void)
{
    Tensor *tall = tensor_requires_grad_(tensor_rand(SHAPE(4, 2), TENSOR_F64), true),
           *x = tensor_requires_grad_(ones(SHAPE(1)), true),
           *src = tensor_requires_grad_(tensor_zeros(SHAPE(2), TENSOR_F64), true),
           *at = tensor_zeros(SHAPE(2), TENSOR_I64);
    ANSWER(tensor_backward(tensor_sum(tensor_qr(tall, .mode = TENSOR_QR_COMPLETE).q)));
    ANSWER(tensor_backward(tensor_sum(tensor_qr(tall).q)));
    ANSWER(tensor_backward(tensor_sum(tensor_scatter_reduce(x, 0, at, src, TENSOR_INTO_PROD)),
                           .create_graph = true));
    ANSWER(tensor_backward(tensor_sum(tensor_scatter_reduce(x, 0, at, src, TENSOR_INTO_PROD))));
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/shape/refusals.golden");
    answers_of("parts", parts);
    answers_of("pads", pads);
    answers_of("joins", joins);
    answers_of("views", views);
    answers_of("indices", indices);
    answers_of("numbers", numbers);
    answers_of("gradients", gradients);
    return answers_end();
}
