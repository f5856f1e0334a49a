/* test_device_conv.c - convolutions of f16 and bf16 whose channels lie last, by the tensor cores of
 * TAPEGRAD_TEST_DEVICE, against those of the same values in f64 on the CPU: sizes on both sides of the
 * kernels' tiles, strides, dilations, groups, one to three dimensions; and by the launches they take. */
#include <tapegrad.h> /* before cmocka.h, which has a macro fail */
#include "emulator.h"
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

enum { PARTS = 4 };

typedef struct Case {
    int rank;
    bool transposed;
    int64_t batch, in, out, groups, size[3], kernel, stride, padding, dilation;
} Case;

static const Case cases[] = {
    { 2, false, 3, 16, 24, 1, { 9, 8 }, 3, 1, 1, 1 },   { 2, false, 1, 72, 136, 1, { 7, 5 }, 1, 1, 0, 1 },
    { 2, false, 2, 40, 8, 1, { 13, 11 }, 3, 2, 1, 1 },  { 2, false, 2, 32, 48, 2, { 8, 9 }, 3, 1, 2, 2 },
    { 2, false, 5, 8, 8, 1, { 23, 20 }, 5, 3, 2, 1 },   { 1, false, 2, 16, 8, 1, { 300 }, 4, 2, 0, 3 },
    { 3, false, 1, 8, 16, 1, { 4, 5, 6 }, 3, 1, 1, 1 }, { 2, true, 2, 24, 16, 1, { 5, 6 }, 4, 2, 1, 1 },
    { 2, false, 1, 8, 8, 1, { 3, 3 }, 1, 4, 0, 1 },
};
static const TensorDtype dtypes[] = { TENSOR_F16, TENSOR_BF16 };
static const double half_ulp[] = { 0x1p-11, 0x1p-8 };

/* ---- operands -------------------------------------------------------------------------------- */

static Tensor *on_device(Tensor *x) { return tensor_to_device(x, test_device()); }
static Tensor *here(Tensor *x) { return tensor_to(tensor_to_device(x, "cpu"), TENSOR_F64); }

static Tensor *channels_last(Tensor *x)
{
    Tensor *moved = tensor_contiguous(tensor_movedim(x, 1, -1));
    return tensor_movedim(moved, -1, 1);
}

static Tensor *noise(TensorShape shape, TensorDtype dtype)
{
    return on_device(tensor_to(tensor_randn(shape, TENSOR_F32), dtype));
}

static Tensor *convolve(const Case *c, Tensor *x, Tensor *w, Tensor *b)
{
    if (c->transposed) return tensor_conv_transpose2d(x, w, b, .stride = c->stride, .padding = c->padding);
    switch (c->rank) {
    case 1:
        return tensor_conv1d(x, w, b, .stride = c->stride, .padding = c->padding, .dilation = c->dilation,
                             .groups = c->groups);
    case 2:
        return tensor_conv2d(x, w, b, .stride = c->stride, .padding = c->padding, .dilation = c->dilation,
                             .groups = c->groups);
    default:
        return tensor_conv3d(x, w, b, .stride = c->stride, .padding = c->padding, .dilation = c->dilation,
                             .groups = c->groups);
    }
}

static void operands(const Case *c, TensorDtype dtype, Tensor *x[3])
{
    int64_t dim[5] = { c->batch, c->in }, kernel[5] = { c->out, c->in / c->groups };
    if (c->transposed) kernel[0] = c->in, kernel[1] = c->out;
    for (int i = 0; i < c->rank; i++) dim[2 + i] = c->size[i], kernel[2 + i] = c->kernel;
    x[0] = channels_last(noise((TensorShape){ c->rank + 2, dim }, dtype));
    x[1] = noise((TensorShape){ c->rank + 2, kernel }, dtype);
    x[2] = noise(SHAPE(c->out), dtype);
}

/* The result, and the gradients of x, w and b for a cotangent. */
static void run(const Case *c, Tensor *const x[3], Tensor *(*cotangent)(Tensor *y), Tensor *out[PARTS])
{
    Tensor *leaf[3];
    for (int i = 0; i < 3; i++) leaf[i] = tensor_requires_grad_(tensor_detach(x[i]), true);
    out[0] = convolve(c, leaf[0], leaf[1], leaf[2]);
    if (!out[0]) fail_msg("%s", tensor_error());
    assert_int_equal(tensor_gradients_many(TENSORS(out[0]), TENSOR_LIST(leaf, 3), out + 1,
                                           .grad_outputs = TENSORS(cotangent(out[0]))),
                     0);
}

/* Exact in halves: -1, 0 and 1 by the position. */
static Tensor *pattern(Tensor *y)
{
    Tensor *n = tensor_arange(0, (double)tensor_numel(y), 1, TENSOR_F64);
    Tensor *third = tensor_sub_scalar(tensor_remainder_scalar(n, 3), 1);
    third = tensor_reshape(third, tensor_shape(y));
    return channels_last(tensor_to_device(tensor_to(third, tensor_dtype(y)), tensor_device(y)));
}

static double largest(Tensor *x) { return tensor_item(tensor_amax(tensor_abs(x))); }

/* ---- tests ----------------------------------------------------------------------------------- */

static void as_in_f64(void **state)
{
    (void)state;
    static const char *const part[] = { "the result", "the input's gradient", "the weight's gradient",
                                        "the bias' gradient" };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i / 2];
        TensorScope scope = tensor_scope_open();
        Tensor *x[3], *wide[3], *got[PARTS], *want[PARTS];
        tensor_manual_seed(i);
        operands(c, dtypes[i % 2], x);
        run(c, x, pattern, got);
        for (int k = 0; k < 3; k++) wide[k] = here(x[k]);
        run(c, wide, pattern, want);
        assert_int_equal(tensor_stride(got[0], 1), 1);
        for (int k = 0; k < PARTS; k++) {
            const double off = largest(tensor_sub(here(got[k]), want[k])),
                         limit = half_ulp[i % 2] * (1 + 1. / 64) * largest(want[k]);
            if (!(off <= limit))
                fail_msg("case %d, %s: %s is off by %g of %g", (int)(i / 2), tensor_dtype_name(dtypes[i % 2]),
                         part[k], off, limit);
        }
        tensor_scope_close(scope);
    }
}

static void repeats_itself(void **state)
{
    (void)state;
    const Case *c = &cases[4];
    TensorScope scope = tensor_scope_open();
    Tensor *x[3], *first[PARTS], *again[PARTS];
    operands(c, TENSOR_BF16, x);
    run(c, x, pattern, first), run(c, x, pattern, again);
    for (int k = 0; k < PARTS; k++) assert_true(tensor_equal(first[k], again[k]));
    tensor_scope_close(scope);
}

/* Forward: the weight is laid out, a product.  A sweep: the same, a product for each class of pixels; a
 * product for the weight, and its sums; and those of the bias, which are left out here. */
static void launches(void **state)
{
    (void)state;
    const Case *c = &cases[2];
    TensorScope scope = tensor_scope_open();
    Tensor *x[3];
    operands(c, TENSOR_BF16, x);
    for (int i = 0; i < 2; i++) x[i] = tensor_requires_grad_(x[i], true);
    const struct CuemuCounts first = counts_now();
    Tensor *y = convolve(c, x[0], x[1], NULL);
    const struct CuemuCounts forward = counts_now();
    Tensor *g = tensor_detach(pattern(y));
    const struct CuemuCounts second = counts_now();
    Tensor *found[2];
    assert_int_equal(tensor_gradients_many(TENSORS(y), TENSOR_LIST(x, 2), found, .grad_outputs = TENSORS(g)),
                     0);
    const struct CuemuCounts last = counts_now();
    if (is_emulated()) {
        assert_int_equal(forward.launches - first.launches, 2);
        assert_int_equal(last.launches - second.launches, 1 + c->stride * c->stride + 2);
    }
    tensor_scope_close(scope);
}

static int run_all(int argc, char **argv)
{
    if (!test_device_opens()) return 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_in_f64), cmocka_unit_test(repeats_itself),
                                        cmocka_unit_test(launches) };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("convolutions of halves on a device", tests, NULL, NULL);
}

int main(int argc, char **argv) { return in_each_order(argc, argv, run_all); }
