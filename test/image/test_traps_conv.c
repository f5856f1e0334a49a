/* test_traps_conv.c - what goes wrong easily in convolution, padding and patches, each by name; their
 * adjoints; the options of the functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>

static TensorScope scope;
static int setup(void **state)
{
    (void)state;
    return tensor_error_clear(), tensor_manual_seed(11), scope = tensor_scope_open(), 0;
}
static int teardown(void **state)
{
    (void)state;
    return tensor_scope_close(scope), 0;
}

/* 0, 1, 2, ... */
static Tensor *count(TensorShape shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++) n *= shape.dim[i];
    return tensor_reshape(tensor_arange(0, (double)n, 1, TENSOR_F64), shape);
}

static void assert_values_(Tensor *x, TensorShape shape, const double *want, int n, const char *file,
                           int line)
{
    double got[256];
    if (!x) _fail(file, line);
    bool same = tensor_ndim(x) == shape.ndim && tensor_numel(x) == n;
    for (int i = 0; same && i < shape.ndim; i++) same = tensor_size(x, i) == shape.dim[i];
    if (!same)
        print_error("another shape, or %s\n", tensor_error() ? tensor_error() : "another count"),
            _fail(file, line);
    tensor_copy_to(tensor_to(tensor_detach(x), TENSOR_F64), got, (size_t)n * sizeof *got);
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            print_error("element %d is %g, not %g\n", i, got[i], want[i]), _fail(file, line);
}
#define ASSERT_VALUES(x, shape, ...)                          \
    assert_values_(x, shape, (const double[]){ __VA_ARGS__ }, \
                   (int)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double)), __FILE__, __LINE__)

static void assert_refused_(Tensor *x, TensorStatus code, const char *text, const char *file, int line)
{
    const char *error = tensor_error();
    if (x || !error || tensor_error_code() != code || !strstr(error, text))
        print_error("error: %s\n", error ? error : "none"), _fail(file, line);
    tensor_error_clear();
}
#define ASSERT_REFUSED(x, code, text) assert_refused_(x, code, text, __FILE__, __LINE__)

static Tensor *random_of(TensorShape shape) { return tensor_randn(shape, TENSOR_F64); }
static Tensor *leaf(Tensor *x) { return tensor_requires_grad_(x, true); }
static double dot(Tensor *a, Tensor *b)
{
    return tensor_item(tensor_sum(tensor_mul(tensor_detach(a), tensor_detach(b))));
}

/* y = A x is linear in the leaf x: <A x, g> = <x, A^T g> for the gradient A^T g, and the transposed map,
 * where it is given. */
static void assert_adjoint_(Tensor *x, Tensor *y, Tensor *g, Tensor *transposed, const char *file, int line)
{
    if (!y || !g) print_error("%s\n", tensor_error() ? tensor_error() : "nothing"), _fail(file, line);
    Tensor *back = tensor_gradients(y, x, .grad_output = g);
    const double a = dot(y, g), b = dot(x, back);
    if (!(fabs(a - b) <= 1e-12 * (1 + fabs(a)))) print_error("%.17g and %.17g\n", a, b), _fail(file, line);
    if (transposed && !tensor_allclose(back, transposed, 1e-12, 1e-12, false))
        print_error("another transpose\n"), _fail(file, line);
}
#define ASSERT_ADJOINT(x, y, g, transposed) assert_adjoint_(x, y, g, transposed, __FILE__, __LINE__)

/* ---- convolution ----------------------------------------------------------------------------- */

static void test_conv_stride_that_does_not_divide_leaves_the_end_unread(void **state)
{
    (void)state;
    Tensor *x = leaf(count(SHAPE(1, 1, 6))), *w = tensor_ones(SHAPE(1, 1, 2), TENSOR_F64);
    ASSERT_VALUES(tensor_conv1d(x, w, .stride = 3), SHAPE(1, 1, 2), 1, 7);
    ASSERT_VALUES(tensor_gradients(tensor_sum(tensor_conv1d(x, w, .stride = 3)), x), SHAPE(1, 1, 6), 1, 1, 0,
                  1, 1, 0);
    Tensor *image = leaf(count(SHAPE(1, 4, 4))), *k = tensor_ones(SHAPE(1, 1, 3, 3), TENSOR_F64);
    Tensor *y = tensor_conv2d(image, k, .stride = 2);
    ASSERT_VALUES(y, SHAPE(1, 1, 1), 45);
    ASSERT_VALUES(tensor_gradients(y, image), SHAPE(1, 4, 4), 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0);
}

static void test_conv_dilation_spreads_the_taps(void **state)
{
    (void)state;
    const double taps[] = { 1, 10, 100 };
    Tensor *x = count(SHAPE(1, 7)), *w = tensor_from_data(taps, SHAPE(1, 1, 3), TENSOR_F64);
    ASSERT_VALUES(tensor_conv1d(x, w, .dilation = 3), SHAPE(1, 1), 630);
    ASSERT_VALUES(tensor_conv1d(x, w, .dilation = 2, .padding = 1), SHAPE(1, 5), 310, 420, 531, 642, 53);
    Tensor *cube = count(SHAPE(1, 3, 3, 3)), *corners = tensor_ones(SHAPE(1, 1, 2, 2, 2), TENSOR_F64);
    ASSERT_VALUES(tensor_conv3d(cube, corners, .dilation = 2), SHAPE(1, 1, 1, 1), 8 * 13);
}

static void test_conv_groups_see_their_own_channels(void **state)
{
    (void)state;
    const double taps[] = { 1, 10, 100, 1000 };
    Tensor *x = count(SHAPE(4, 1)), *w = tensor_from_data(taps, SHAPE(2, 2, 1), TENSOR_F64);
    ASSERT_VALUES(tensor_conv1d(x, w, .groups = 2), SHAPE(2, 1), 10, 3200);
    Tensor *wide = random_of(SHAPE(2, 6, 5, 6)), *k = random_of(SHAPE(4, 3, 3, 2)),
           *y = tensor_conv2d(wide, k, .groups = 2);
    for (int i = 0; i < 2; i++) {
        Tensor *part = tensor_conv2d(tensor_narrow(wide, 1, 3 * i, 3), tensor_narrow(k, 0, 2 * i, 2));
        assert_true(tensor_allclose(part, tensor_narrow(y, 1, 2 * i, 2), 1e-12, 1e-12, false));
    }
}

static void test_conv_depthwise_with_several_results_a_channel(void **state)
{
    (void)state;
    const double taps[] = { 1, 2, 3, 4 };
    Tensor *x = count(SHAPE(2, 2)), *w = tensor_from_data(taps, SHAPE(4, 1, 1), TENSOR_F64);
    ASSERT_VALUES(tensor_conv1d(x, w, .groups = 2), SHAPE(4, 2), 0, 1, 0, 2, 6, 9, 8, 12);
    Tensor *cube = random_of(SHAPE(2, 3, 4, 3, 5)), *k = random_of(SHAPE(6, 1, 2, 3, 2));
    Tensor *y = tensor_conv3d(cube, k, .groups = 3, .padding = 1, .strides = { 1, 2, 1 });
    for (int i = 0; i < 3; i++) {
        Tensor *part = tensor_conv3d(tensor_narrow(cube, 1, i, 1), tensor_narrow(k, 0, 2 * i, 2),
                                     .padding = 1, .strides = { 1, 2, 1 });
        assert_true(tensor_allclose(part, tensor_narrow(y, 1, 2 * i, 2), 1e-12, 1e-12, false));
    }
}

static void test_conv_same_padding_is_asymmetric_for_even_kernels(void **state)
{
    (void)state;
    Tensor *x = leaf(tensor_add_scalar(count(SHAPE(1, 4)), 1)),
           *two = tensor_ones(SHAPE(1, 1, 2), TENSOR_F64);
    ASSERT_VALUES(tensor_conv1d(x, two, .padding = TENSOR_SAME), SHAPE(1, 4), 3, 5, 7,
                  4); /* the zero is at the end */
    ASSERT_VALUES(tensor_gradients(tensor_sum(tensor_conv1d(x, two, .padding = TENSOR_SAME)), x), SHAPE(1, 4),
                  1, 2, 2, 2);
    Tensor *four = tensor_ones(SHAPE(1, 1, 4), TENSOR_F64);
    ASSERT_VALUES(tensor_conv1d(x, four, .padding = TENSOR_SAME), SHAPE(1, 4), 6, 10, 9, 7);
    Tensor *spread = tensor_conv1d(x, two, .padding = TENSOR_SAME, .dilation = 3); /* 1 before, 2 after */
    ASSERT_VALUES(spread, SHAPE(1, 4), 3, 5, 2, 3);
    ASSERT_REFUSED(tensor_conv1d(x, two, .padding = TENSOR_SAME, .stride = 2), TENSOR_EVALUE,
                   "needs stride 1, not [2]");
}

static void test_conv_kernel_larger_than_the_input_is_an_error_with_sizes(void **state)
{
    (void)state;
    Tensor *x = random_of(SHAPE(1, 2, 3, 4)), *w = random_of(SHAPE(1, 2, 3, 2));
    ASSERT_REFUSED(tensor_conv2d(x, w, .dilations = { 3, 1 }), TENSOR_ESHAPE,
                   "[1, 2, 3, 4], [1, 2, 3, 2]: a kernel of [3, 2] (dilated [7, 2]) is larger than the "
                   "padded input of [3, 4]");
    assert_non_null(tensor_conv2d(x, w, .dilations = { 3, 1 }, .paddings = { 2, 0 }));
    ASSERT_REFUSED(tensor_conv1d(random_of(SHAPE(2, 4)), random_of(SHAPE(3, 2, 7)), .padding = 1),
                   TENSOR_ESHAPE, "a kernel of [7] (dilated [7]) is larger than the padded input of [6]");
}

static void test_conv_batch_of_none_has_zero_gradients(void **state)
{
    (void)state;
    Tensor *x = leaf(random_of(SHAPE(0, 2, 4, 4))), *w = leaf(random_of(SHAPE(3, 2, 3, 3))),
           *b = leaf(random_of(SHAPE(3)));
    Tensor *y = tensor_conv2d(x, w, b);
    assert_true(tensor_numel(y) == 0 && tensor_size(y, 1) == 3 && tensor_size(y, 2) == 2);
    assert_int_equal(tensor_backward(tensor_sum(y)), 0);
    assert_true(tensor_equal(tensor_grad(w), tensor_zeros_like(w)) &&
                tensor_equal(tensor_grad(b), tensor_zeros_like(b)));
    assert_int_equal(tensor_numel(tensor_grad(x)), 0);
    Tensor *up = tensor_conv_transpose3d(tensor_empty(SHAPE(0, 2, 2, 2, 2), TENSOR_F32),
                                         tensor_empty(SHAPE(2, 5, 2, 2, 2), TENSOR_F32), .stride = 2);
    assert_true(tensor_size(up, 0) == 0 && tensor_size(up, 1) == 5 && tensor_size(up, 4) == 4);
}

static void test_conv_without_batch_is_the_batch_of_one(void **state)
{
    (void)state;
    Tensor *x = random_of(SHAPE(2, 4, 5, 3)), *w = random_of(SHAPE(3, 2, 2, 3, 2)), *b = random_of(SHAPE(3)),
           *v = random_of(SHAPE(2, 3, 2, 3, 2));
    Tensor *one = tensor_unsqueeze(x, 0);
    assert_true(tensor_equal(tensor_conv3d(x, w, b), tensor_squeeze(tensor_conv3d(one, w, b), 0)));
    assert_true(tensor_equal(tensor_conv_transpose3d(x, v, b),
                             tensor_squeeze(tensor_conv_transpose3d(one, v, b), 0)));
    assert_int_equal(tensor_ndim(tensor_conv1d(random_of(SHAPE(2, 9)), random_of(SHAPE(3, 2, 2)))), 2);
    ASSERT_REFUSED(tensor_conv1d(random_of(SHAPE(9)), random_of(SHAPE(3, 2, 2))), TENSOR_ESHAPE,
                   "input [9]: want [batch, channels, width]");
    ASSERT_REFUSED(tensor_conv3d(tensor_unsqueeze(one, 0), w), TENSOR_ESHAPE,
                   "want [batch, channels, depth, height, width]");
}

/* ---- transposed convolution ------------------------------------------------------------------ */

static void test_conv_transpose_output_padding_is_below_stride_or_dilation(void **state)
{
    (void)state;
    Tensor *x = leaf(count(SHAPE(1, 3))), *w = leaf(tensor_ones(SHAPE(1, 1, 2), TENSOR_F64));
    ASSERT_VALUES(tensor_conv_transpose1d(x, w, .stride = 3), SHAPE(1, 8), 0, 0, 0, 1, 1, 0, 2, 2);
    ASSERT_VALUES(tensor_conv_transpose1d(x, w, .stride = 3, .output_padding = 2), SHAPE(1, 10), 0, 0, 0, 1,
                  1, 0, 2, 2, 0, 0);
    ASSERT_REFUSED(tensor_conv_transpose1d(x, w, .stride = 3, .output_padding = 3), TENSOR_EVALUE,
                   "output_padding [3], stride [3], dilation [1]");
    ASSERT_REFUSED(tensor_conv_transpose1d(x, w, .output_padding = 1), TENSOR_EVALUE,
                   "want it smaller than one of them");
    /* Allowed by the dilation alone: it brings padded places back, and their gradient, which conv has at more
     * places than x. */
    Tensor *y = tensor_conv_transpose1d(x, w, .dilation = 3, .output_padding = 2, .padding = 2);
    ASSERT_VALUES(y, SHAPE(1, 4), 2, 0, 1, 2);
    Tensor *in[2] = { x, w }, *g = count(SHAPE(1, 4)), *grad[2];
    assert_int_equal(tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 2), grad, .grad_outputs = TENSORS(g)),
                     0);
    ASSERT_VALUES(grad[0], SHAPE(1, 3), 1, 2, 3);
    ASSERT_VALUES(grad[1], SHAPE(1, 1, 2), 0, 8);
}

static void test_conv_transpose_weight_has_in_first(void **state)
{
    (void)state;
    const double taps[] = { 1, 10, 100, 2, 20, 200 };
    Tensor *x = count(SHAPE(2, 1)), *w = tensor_from_data(taps, SHAPE(2, 3, 1), TENSOR_F64),
           *b = tensor_full(SHAPE(3), .5, TENSOR_F64);
    ASSERT_VALUES(tensor_conv_transpose1d(tensor_add_scalar(x, 1), w, b), SHAPE(3, 1), 5.5, 50.5, 500.5);
    Tensor *wide = random_of(SHAPE(4, 3, 3)), *grouped = random_of(SHAPE(4, 3, 2, 2)),
           *y = tensor_conv_transpose2d(wide, grouped, .groups = 2);
    assert_int_equal(tensor_size(y, 0), 6);
    for (int i = 0; i < 2; i++) {
        Tensor *part =
            tensor_conv_transpose2d(tensor_narrow(wide, 0, 2 * i, 2), tensor_narrow(grouped, 0, 2 * i, 2));
        assert_true(tensor_allclose(part, tensor_narrow(y, 0, 3 * i, 3), 1e-12, 1e-12, false));
    }
    ASSERT_REFUSED(tensor_conv_transpose1d(x, tensor_ones(SHAPE(3, 2, 1), TENSOR_F64)), TENSOR_ESHAPE,
                   "input [2, 1], weight [3, 2, 1]: 2 and 3 channels");
}

/* One rounding: the bias is added before it. */
static void test_conv_transpose_of_halves_rounds_once(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(3, 8, 5, 5), TENSOR_BF16),
           *w = tensor_randn(SHAPE(8, 4, 3, 3), TENSOR_BF16), *b = tensor_randn(SHAPE(4), TENSOR_BF16);
    Tensor *wide = tensor_conv_transpose2d(tensor_to(x, TENSOR_F32), tensor_to(w, TENSOR_F32),
                                           tensor_to(b, TENSOR_F32), .stride = 2);
    assert_true(tensor_equal(tensor_conv_transpose2d(x, w, b, .stride = 2), tensor_to(wide, TENSOR_BF16)));
}

/* ---- padding --------------------------------------------------------------------------------- */

static void test_pad_negative_crops(void **state)
{
    (void)state;
    Tensor *x = leaf(count(SHAPE(2, 4)));
    ASSERT_VALUES(tensor_pad(x, DIMS(-1, 1), .value = 9), SHAPE(2, 4), 1, 2, 3, 9, 5, 6, 7, 9);
    ASSERT_VALUES(tensor_gradients(tensor_sum(tensor_pad(x, DIMS(-1, 1), .value = 9)), x), SHAPE(2, 4), 0, 1,
                  1, 1, 0, 1, 1, 1);
    Tensor *nothing = tensor_pad(x, DIMS(-3, -1));
    assert_true(tensor_size(nothing, 0) == 2 && tensor_size(nothing, 1) == 0);
    ASSERT_VALUES(tensor_pad(x, DIMS(-1, 2), .mode = TENSOR_PAD_REFLECT), SHAPE(2, 5), 1, 2, 3, 2, 1, 5, 6, 7,
                  6, 5);
    ASSERT_VALUES(tensor_pad(x, DIMS(2, -3), .mode = TENSOR_PAD_REFLECT), SHAPE(2, 3), 2, 1, 0, 6, 5, 4);
    ASSERT_VALUES(tensor_pad(x, DIMS(-1, 2), .mode = TENSOR_PAD_CIRCULAR), SHAPE(2, 5), 1, 2, 3, 1, 2, 5, 6,
                  7, 5, 6);
    ASSERT_REFUSED(tensor_pad(x, DIMS(-3, -2)), TENSOR_ESHAPE,
                   "[2, 4] by -3 and -2 in dimension 1: there are 4 elements");
}

static void test_pad_reflect_reaches_less_than_the_dimension(void **state)
{
    (void)state;
    Tensor *x = count(SHAPE(1, 3));
    ASSERT_VALUES(tensor_pad(x, DIMS(2, 2), .mode = TENSOR_PAD_REFLECT), SHAPE(1, 7), 2, 1, 0, 1, 2, 1, 0);
    ASSERT_REFUSED(tensor_pad(x, DIMS(0, 3), .mode = TENSOR_PAD_REFLECT), TENSOR_ESHAPE,
                   "reflection reaches 2 elements at most");
    ASSERT_VALUES(tensor_pad(x, DIMS(3, 3), .mode = TENSOR_PAD_CIRCULAR), SHAPE(1, 9), 0, 1, 2, 0, 1, 2, 0, 1,
                  2);
    ASSERT_REFUSED(tensor_pad(x, DIMS(4, 0), .mode = TENSOR_PAD_CIRCULAR), TENSOR_ESHAPE,
                   "it may go round once, by 3 elements at most");
    ASSERT_VALUES(tensor_pad(x, DIMS(4, 0), .mode = TENSOR_PAD_REPLICATE), SHAPE(1, 7), 0, 0, 0, 0, 0, 1, 2);
}

static void test_pad_corners_add_in_the_gradient(void **state)
{
    (void)state;
    Tensor *x = leaf(tensor_zeros(SHAPE(1, 2, 2), TENSOR_F64)), *y[3];
    for (int mode = TENSOR_PAD_REFLECT; mode <= TENSOR_PAD_CIRCULAR; mode++)
        y[mode - 1] =
            tensor_gradients(tensor_sum(tensor_pad(x, DIMS(1, 0, 1, 0), .mode = (TensorPadMode)mode)), x);
    ASSERT_VALUES(y[0], SHAPE(1, 2, 2), 1, 2, 2, 4);
    ASSERT_VALUES(y[1], SHAPE(1, 2, 2), 4, 2, 2, 1);
    ASSERT_VALUES(y[2], SHAPE(1, 2, 2), 1, 2, 2, 4);
    Tensor *g = count(SHAPE(1, 3, 3)); /* of x[0, 0]: both rows and columns, and the corner */
    ASSERT_VALUES(
        tensor_gradients(tensor_pad(x, DIMS(1, 0, 1, 0), .mode = TENSOR_PAD_REPLICATE), x, .grad_output = g),
        SHAPE(1, 2, 2), 8, 7, 13, 8);
}

static void test_pad_starts_with_the_last_dimension(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(2, 3, 4), TENSOR_F32), *y = tensor_pad(x, DIMS(1, 2, 0, 5));
    assert_true(tensor_size(y, 0) == 2 && tensor_size(y, 1) == 8 && tensor_size(y, 2) == 7);
    ASSERT_REFUSED(tensor_pad(x, DIMS(1)), TENSOR_EVALUE,
                   "want two numbers for each of the last dimensions, 6 at most");
    ASSERT_REFUSED(tensor_pad(x, DIMS(1, 1), .mode = TENSOR_PAD_REFLECT, .value = 1), TENSOR_EVALUE,
                   "only constant padding has one");
    ASSERT_REFUSED(tensor_pad(x, DIMS(1, 1, 1, 1, 1, 1), .mode = TENSOR_PAD_REFLECT), TENSOR_ESHAPE,
                   "for three dimensions at most");
}

static void test_pad_of_other_dtypes(void **state)
{
    (void)state;
    const bool bits[] = { true, false };
    Tensor *x = tensor_pad(tensor_from_data(bits, SHAPE(2), TENSOR_BOOL), DIMS(1, 1), .value = 1);
    assert_int_equal(tensor_dtype(x), TENSOR_BOOL);
    ASSERT_VALUES(x, SHAPE(4), 1, 1, 0, 1);
    ASSERT_VALUES(
        tensor_pad(tensor_to(count(SHAPE(1, 3)), TENSOR_I64), DIMS(1, 0), .mode = TENSOR_PAD_REFLECT),
        SHAPE(1, 4), 1, 0, 1, 2);
    ASSERT_VALUES(tensor_constant_pad_nd(tensor_to(count(SHAPE(2)), TENSOR_I32), DIMS(0, 1), -1.75), SHAPE(3),
                  0, 1, -1);
}

/* ---- patches --------------------------------------------------------------------------------- */

static void test_unfold_orders_channels_taps_and_places(void **state)
{
    (void)state;
    Tensor *x = count(SHAPE(2, 2, 3));
    ASSERT_VALUES(tensor_unfold(x, .kernel_sizes = { 1, 2 }), SHAPE(4, 4), 0, 1, 3, 4, 1, 2, 4, 5, 6, 7, 9,
                  10, 7, 8, 10, 11);
    Tensor *image = random_of(SHAPE(2, 3, 6, 5)), *w = random_of(SHAPE(4, 3, 3, 2));
    Tensor *columns = tensor_unfold(image, .kernel_sizes = { 3, 2 }, .paddings = { 1, 0 }, .stride = 2,
                                    .dilations = { 1, 2 });
    Tensor *y = tensor_conv2d(image, w, .paddings = { 1, 0 }, .stride = 2, .dilations = { 1, 2 });
    Tensor *product = tensor_matmul(tensor_reshape(w, SHAPE(4, 18)), columns);
    assert_true(tensor_allclose(tensor_reshape(product, tensor_shape(y)), y, 1e-12, 1e-12, false));
}

static void test_fold_of_unfold_counts_the_windows(void **state)
{
    (void)state;
    Tensor *ones = tensor_ones(SHAPE(1, 1, 3, 3), TENSOR_F64);
    ASSERT_VALUES(tensor_fold(tensor_unfold(ones, 2), SHAPE(3), 2), SHAPE(1, 1, 3, 3), 1, 2, 1, 2, 4, 2, 1, 2,
                  1);
    ASSERT_VALUES(tensor_fold(tensor_unfold(ones, 2, .stride = 2), SHAPE(3, 3), 2, .stride = 2),
                  SHAPE(1, 1, 3, 3), 1, 1, 0, 1, 1, 0, 0, 0, 0);
    ASSERT_REFUSED(tensor_fold(random_of(SHAPE(8, 5)), SHAPE(3, 3), 2), TENSOR_ESHAPE,
                   "columns of a multiple of 4, in 2 x 2 places");
    ASSERT_REFUSED(tensor_unfold(random_of(SHAPE(1, 1, 3, 3)), 4), TENSOR_ESHAPE,
                   "no room for a window of 4 x 4");
}

/* ---- adjoints -------------------------------------------------------------------------------- */

static void test_conv_and_conv_transpose_are_adjoint(void **state)
{
    (void)state;
    Tensor *x1 = leaf(random_of(SHAPE(2, 4, 11))), *w1 = random_of(SHAPE(6, 2, 3));
    Tensor *y1 = tensor_conv1d(x1, w1, .stride = 2, .padding = 1, .dilation = 2, .groups = 2),
           *g1 = tensor_randn_like(y1);
    ASSERT_ADJOINT(x1, y1, g1,
                   tensor_conv_transpose1d(g1, w1, .stride = 2, .padding = 1, .dilation = 2, .groups = 2));
    Tensor *x2 = leaf(random_of(SHAPE(3, 2, 8, 7))), *w2 = random_of(SHAPE(5, 2, 3, 4));
    Tensor *y2 = tensor_conv2d(x2, w2, .strides = { 2, 3 }, .padding = 1), *g2 = tensor_randn_like(y2);
    ASSERT_ADJOINT(
        x2, y2, g2,
        tensor_conv_transpose2d(g2, w2, .strides = { 2, 3 }, .padding = 1, .output_paddings = { 1, 2 }));
    Tensor *x3 = leaf(random_of(SHAPE(2, 2, 5, 4, 6))), *w3 = random_of(SHAPE(3, 2, 2, 3, 2));
    Tensor *y3 = tensor_conv3d(x3, w3, .strides = { 2, 1, 2 }, .paddings = { 0, 2, 1 }),
           *g3 = tensor_randn_like(y3);
    ASSERT_ADJOINT(x3, y3, g3,
                   tensor_conv_transpose3d(g3, w3, .strides = { 2, 1, 2 }, .paddings = { 0, 2, 1 },
                                           .output_paddings = { 1, 0, 0 }));

    Tensor *z = leaf(random_of(SHAPE(2, 3, 4, 5))), *v = random_of(SHAPE(3, 2, 3, 2));
    Tensor *up = tensor_conv_transpose2d(z, v, .stride = 2, .padding = 1, .output_padding = 1),
           *g = tensor_randn_like(up);
    ASSERT_ADJOINT(z, up, g, tensor_conv2d(g, v, .stride = 2, .padding = 1));
    Tensor *wide = tensor_conv_transpose2d(z, v, .dilation = 3, .padding = 2, .output_padding = 2);
    ASSERT_ADJOINT(z, wide, tensor_randn_like(wide), NULL);
    Tensor *kernel = leaf(random_of(SHAPE(3, 2, 3, 2))),
           *of_kernel = tensor_conv_transpose2d(tensor_detach(z), kernel, .dilation = 3, .padding = 2,
                                                .output_padding = 2);
    ASSERT_ADJOINT(kernel, of_kernel, tensor_randn_like(of_kernel), NULL);
}

static void test_pad_and_its_gradient_are_adjoint(void **state)
{
    (void)state;
    for (int mode = TENSOR_PAD_CONSTANT; mode <= TENSOR_PAD_CIRCULAR; mode++) {
        Tensor *x = leaf(random_of(SHAPE(2, 3, 5, 6))),
               *y = tensor_pad(x, DIMS(3, 2, -1, 3), .mode = (TensorPadMode)mode);
        ASSERT_ADJOINT(x, y, tensor_randn_like(y), NULL);
    }
    Tensor *x = leaf(random_of(SHAPE(3, 4))), *y = tensor_pad(x, DIMS(2, -1, -1, 3)),
           *g = tensor_randn_like(y);
    ASSERT_ADJOINT(x, y, g, tensor_pad(g, DIMS(-2, 1, 1, -3)));
}

static void test_unfold_and_fold_are_adjoint(void **state)
{
    (void)state;
    Tensor *x = leaf(random_of(SHAPE(2, 3, 7, 6))),
           *y = tensor_unfold(x, .kernel_sizes = { 3, 2 }, .dilations = { 1, 2 }, .padding = 1,
                              .strides = { 2, 1 });
    Tensor *g = tensor_randn_like(y);
    ASSERT_ADJOINT(x, y, g,
                   tensor_fold(g, SHAPE(7, 6), .kernel_sizes = { 3, 2 }, .dilations = { 1, 2 }, .padding = 1,
                               .strides = { 2, 1 }));
    Tensor *columns = leaf(random_of(SHAPE(2, 8, 12))), *image = tensor_fold(columns, SHAPE(4, 5), 2),
           *h = tensor_randn_like(image);
    ASSERT_ADJOINT(columns, image, h, tensor_unfold(h, 2));
}

/* ---- options --------------------------------------------------------------------------------- */

static void test_operands_of_different_dtypes_are_refused(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(1, 2, 4, 4), TENSOR_F32), *w = tensor_ones(SHAPE(2, 2, 3, 3), TENSOR_F64);
    ASSERT_REFUSED(tensor_conv2d(x, w), TENSOR_EDTYPE,
                   "tensor_conv2d: operand 1 is f32 [1, 2, 4, 4], operand 2 f64 [2, 2, 3, 3]");
    ASSERT_REFUSED(tensor_conv_transpose2d(tensor_to(x, TENSOR_F64), tensor_to(w, TENSOR_F32)), TENSOR_EDTYPE,
                   "tensor_conv_transpose2d: operand 1 is f64 [1, 2, 4, 4], operand 2 f32 [2, 2, 3, 3]");
    ASSERT_REFUSED(tensor_conv2d(x, tensor_to(w, TENSOR_F32), tensor_ones(SHAPE(2), TENSOR_BF16)),
                   TENSOR_EDTYPE, "operand 3 bf16 [2]");
    ASSERT_REFUSED(tensor_conv2d(tensor_to(x, TENSOR_BOOL), tensor_to(w, TENSOR_BOOL)), TENSOR_EDTYPE,
                   "bool");
    assert_non_null(tensor_conv2d(x, tensor_to(w, TENSOR_F32)));
}

/* Modulo 2 to the width, as products of integers. */
static void test_convolutions_of_integers(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_I64, TENSOR_I32, TENSOR_U8 };
    Tensor *x = tensor_randint(0, 9, SHAPE(2, 4, 5, 6)), *w = tensor_randint(0, 9, SHAPE(6, 2, 2, 3)),
           *b = tensor_randint(0, 9, SHAPE(6)), *up = tensor_randint(0, 9, SHAPE(4, 3, 2, 3));
    Tensor *wide = tensor_conv2d(tensor_to(x, TENSOR_F64), tensor_to(w, TENSOR_F64), tensor_to(b, TENSOR_F64),
                                 .strides = { 2, 1 }, .padding = 1, .dilations = { 1, 2 }, .groups = 2);
    Tensor *higher =
        tensor_conv_transpose2d(tensor_to(x, TENSOR_F64), tensor_to(up, TENSOR_F64), tensor_to(b, TENSOR_F64),
                                .strides = { 2, 1 }, .padding = 1, .groups = 2, .output_paddings = { 1, 0 });
    for (size_t i = 0; i < 3; i++) {
        const TensorDtype d = dtypes[i];
        Tensor *y = tensor_conv2d(tensor_to(x, d), tensor_to(w, d), tensor_to(b, d), .strides = { 2, 1 },
                                  .padding = 1, .dilations = { 1, 2 }, .groups = 2);
        assert_true(tensor_equal(y, tensor_to(tensor_to(wide, TENSOR_I64), d)));
        y = tensor_conv_transpose2d(tensor_to(x, d), tensor_to(up, d), tensor_to(b, d), .strides = { 2, 1 },
                                    .padding = 1, .groups = 2, .output_paddings = { 1, 0 });
        assert_true(tensor_equal(y, tensor_to(tensor_to(higher, TENSOR_I64), d)));
    }
    /* more than a tile of each, and three dimensions */
    x = tensor_randint(-9, 9, SHAPE(2, 19, 3, 9, 7)), w = tensor_randint(-9, 9, SHAPE(21, 19, 2, 3, 2));
    wide = tensor_conv3d(tensor_to(x, TENSOR_F64), tensor_to(w, TENSOR_F64), .padding = 1);
    assert_true(tensor_equal(tensor_conv3d(x, w, .padding = 1), tensor_to(wide, TENSOR_I64)));
    w = tensor_contiguous(tensor_transpose(w, 0, 1));
    wide = tensor_conv_transpose3d(tensor_to(x, TENSOR_F64), tensor_to(w, TENSOR_F64));
    assert_true(tensor_equal(tensor_conv_transpose3d(x, w), tensor_to(wide, TENSOR_I64)));
}

static void test_options_by_position_and_by_name(void **state)
{
    (void)state;
    Tensor *x = random_of(SHAPE(1, 4, 9, 8)), *w = random_of(SHAPE(4, 2, 3, 3)), *b = random_of(SHAPE(4));
    Tensor *y = tensor_conv2d(x, w, b, .stride = 2, .padding = 1, .dilation = 2, .groups = 2);
    assert_true(tensor_equal(y, tensor_conv2d(x, w, b, 2, 1, 2, 2)));
    assert_true(tensor_equal(y, tensor_conv2d(x, w, b, .strides = { 2, 2 }, .paddings = { 1, 1 },
                                              .dilations = { 2, 2 }, .groups = 2)));
    Tensor *up = tensor_conv_transpose2d(x, w, b, .stride = 3, .padding = 1, .output_padding = 2, .groups = 2,
                                         .dilation = 2);
    assert_true(tensor_equal(up, tensor_conv_transpose2d(x, w, b, 3, 1, 2, 2, 2)));
    assert_true(tensor_equal(up, tensor_conv_transpose2d(x, w, b, .strides = { 3, 3 }, .paddings = { 1, 1 },
                                                         .output_paddings = { 2, 2 }, .groups = 2,
                                                         .dilations = { 2, 2 })));
    assert_true(tensor_equal(tensor_unfold(x, 3, 1, 1, 2),
                             tensor_unfold(x, .kernel_size = 3, .padding = 1, .stride = 2)));
    assert_true(tensor_equal(tensor_pad(x, DIMS(1, 1, 0, 2), .value = 3),
                             tensor_constant_pad_nd(x, DIMS(1, 1, 0, 2), 3)));
    ASSERT_REFUSED(tensor_conv2d(x, NULL), TENSOR_ENULL, "conv2d");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_conv_stride_that_does_not_divide_leaves_the_end_unread),
        TEST(test_conv_dilation_spreads_the_taps),
        TEST(test_conv_groups_see_their_own_channels),
        TEST(test_conv_depthwise_with_several_results_a_channel),
        TEST(test_conv_same_padding_is_asymmetric_for_even_kernels),
        TEST(test_conv_kernel_larger_than_the_input_is_an_error_with_sizes),
        TEST(test_conv_batch_of_none_has_zero_gradients),
        TEST(test_conv_without_batch_is_the_batch_of_one),
        TEST(test_conv_transpose_output_padding_is_below_stride_or_dilation),
        TEST(test_conv_transpose_weight_has_in_first),
        TEST(test_conv_transpose_of_halves_rounds_once),
        TEST(test_pad_negative_crops),
        TEST(test_pad_reflect_reaches_less_than_the_dimension),
        TEST(test_pad_corners_add_in_the_gradient),
        TEST(test_pad_starts_with_the_last_dimension),
        TEST(test_pad_of_other_dtypes),
        TEST(test_unfold_orders_channels_taps_and_places),
        TEST(test_fold_of_unfold_counts_the_windows),
        TEST(test_conv_and_conv_transpose_are_adjoint),
        TEST(test_pad_and_its_gradient_are_adjoint),
        TEST(test_unfold_and_fold_are_adjoint),
        TEST(test_options_by_position_and_by_name),
        TEST(test_operands_of_different_dtypes_are_refused),
        TEST(test_convolutions_of_integers),
    };
    return cmocka_run_group_tests_name("traps of convolution", tests, NULL, NULL);
}
