/* test_emu_libraries.c - what the device asks of cuBLASLt and cuDNN, on stand-ins for both that count: an
 * algorithm is chosen once for a shape; convolutions by cuDNN against those of the CPU in f64. */
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
    bool transposed, last;
    int64_t batch, in, out, groups, size[3], kernel, stride, padding, dilation;
} Case;

static const Case cases[] = {
    { 2, false, false, 2, 3, 4, 1, { 7, 6 }, 3, 1, 1, 1 },
    { 2, false, true, 2, 4, 6, 1, { 7, 6 }, 3, 2, 1, 1 },
    { 2, false, true, 1, 5, 3, 1, { 4, 5 }, 1, 1, 0, 1 },
    { 2, false, false, 2, 4, 6, 2, { 8, 7 }, 3, 1, 2, 2 },
    { 1, false, false, 2, 3, 4, 1, { 17 }, 4, 2, 1, 2 },
    { 3, false, false, 1, 2, 3, 1, { 3, 4, 5 }, 2, 1, 1, 1 },
    { 3, false, true, 1, 3, 2, 1, { 4, 3, 5 }, 2, 1, 0, 1 },
    { 2, true, false, 2, 3, 4, 1, { 4, 5 }, 4, 2, 1, 1 },
};
static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
static const double half_ulp[] = { 0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8 };

/* ---- operands -------------------------------------------------------------------------------- */

static Tensor *here(Tensor *x) { return tensor_to(tensor_to_device(x, "cpu"), TENSOR_F64); }

static Tensor *noise(TensorShape shape, TensorDtype dtype, bool last)
{
    Tensor *x = tensor_to(tensor_randn(shape, TENSOR_F32), dtype);
    if (last) x = tensor_movedim(tensor_contiguous(tensor_movedim(x, 1, -1)), -1, 1);
    return tensor_to_device(x, test_device());
}

static Tensor *convolve(const Case *c, Tensor *x, Tensor *w, Tensor *b)
{
    if (c->transposed) return tensor_conv_transpose2d(x, w, b, .stride = c->stride, .padding = c->padding);
#define CONV(rank)                                                                                     \
    tensor_conv##rank##d(x, w, b, .stride = c->stride, .padding = c->padding, .dilation = c->dilation, \
                         .groups = c->groups)
    return c->rank == 1 ? CONV(1) : c->rank == 2 ? CONV(2) : CONV(3);
}

static void operands(const Case *c, TensorDtype dtype, Tensor *x[3])
{
    int64_t dim[5] = { c->batch, c->in }, kernel[5] = { c->out, c->in / c->groups };
    if (c->transposed) kernel[0] = c->in, kernel[1] = c->out;
    for (int i = 0; i < c->rank; i++) dim[2 + i] = c->size[i], kernel[2 + i] = c->kernel;
    x[0] = noise((TensorShape){ c->rank + 2, dim }, dtype, c->last);
    x[1] = noise((TensorShape){ c->rank + 2, kernel }, dtype, false);
    x[2] = noise(SHAPE(c->out), dtype, false);
}

/* The result and the gradients of its sum, weighted. */
static void run(const Case *c, Tensor *const *given, Tensor *weights, Tensor *part[PARTS])
{
    Tensor *x[3];
    for (int i = 0; i < 3; i++) x[i] = tensor_requires_grad_(tensor_detach(given[i]), true);
    part[0] = convolve(c, x[0], x[1], x[2]);
    assert_null(tensor_error());
    const TensorList leaves = TENSOR_LIST(x, 3), outputs = TENSORS(part[0]), grads = TENSORS(weights);
    assert_int_equal(tensor_gradients_many(outputs, leaves, part + 1, .grad_outputs = grads), 0);
}

static double distance(Tensor *a, Tensor *b)
{
    return tensor_item(tensor_max(tensor_abs(tensor_sub(here(a), here(b)))));
}

/* Sums of at most a few hundred products, in f32 or f64, and one rounding, or two where a bias follows. */
static void compare(const Case *c, int d)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x[3], *wide[3], *part[PARTS], *want[PARTS];
    operands(c, dtypes[d], x);
    for (int i = 0; i < 3; i++) wide[i] = here(x[i]);
    Tensor *g = noise(tensor_shape(convolve(c, wide[0], wide[1], wide[2])), dtypes[d], c->last);
    const CuemuCounts before = counts_now();
    run(c, x, g, part);
    const CuemuCounts after = counts_now();
    const bool none = dtypes[d] == TENSOR_F64 && c->groups > 1; /* the stand-in has no engine for it */
    assert_int_equal(after.executed - before.executed, none ? 0 : 3);
    assert_int_equal(after.heuristics - before.heuristics, none ? 6 : 3);
    run(c, wide, here(g), want);
    for (int i = 0; i < PARTS; i++) {
        const double size = tensor_item(tensor_max(tensor_abs(here(want[i]))));
        assert_true(distance(part[i], want[i]) <= (8 + size) * half_ulp[d] * 4);
    }
    run(c, x, g, want); /* the plans are kept, and give the same bits */
    assert_int_equal(counts_now().heuristics, after.heuristics);
    for (int i = 0; i < PARTS; i++) assert_true(distance(part[i], want[i]) == 0);
    tensor_scope_close(scope);
}

static void convolutions_go_by_cudnn(void **state)
{
    (void)state;
    tensor_manual_seed(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < 4; d++) compare(&cases[i], d);
}

/* Memory that begins anywhere, integers and empty images are for our own kernels. */
static void some_calls_are_not_for_it(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_narrow(noise(SHAPE(1000), TENSOR_F32, false), 0, 1, 98),
           *w = noise(SHAPE(2, 2, 3), TENSOR_F32, false);
    Tensor *whole = tensor_to(noise(SHAPE(1, 2, 8), TENSOR_F32, false), TENSOR_I64),
           *taps = tensor_to(w, TENSOR_I64);
    const CuemuCounts before = counts_now();
    assert_non_null(tensor_conv1d(tensor_view(x, SHAPE(1, 2, 49)), w));
    assert_non_null(tensor_conv1d(whole, taps));
    assert_non_null(tensor_conv1d(noise(SHAPE(0, 2, 8), TENSOR_F32, false), w));
    assert_int_equal(counts_now().executed, before.executed);
    tensor_scope_close(scope);
}

/* f32 is f32 unless the program says otherwise. */
static void tf32_where_it_was_asked_for(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = noise(SHAPE(1, 8, 6, 6), TENSOR_F32, false), *w = noise(SHAPE(4, 8, 3, 3), TENSOR_F32, false);
    Tensor *want = tensor_conv2d(here(x), here(w));
    const double size = tensor_item(tensor_max(tensor_abs(want))),
                 exact = distance(tensor_conv2d(x, w), want);
    tensor_set_float32_matmul_precision(TENSOR_MATMUL_HIGH);
    const double tf32 = distance(tensor_conv2d(x, w), want);
    tensor_set_float32_matmul_precision(TENSOR_MATMUL_HIGHEST);
    assert_true(exact <= 0x1p-22 * size);
    assert_true(tf32 > 0x1p-16 * size && tf32 < 0x1p-7 * size);
    tensor_scope_close(scope);
}

/* ---- without it ------------------------------------------------------------------------------ */

static void a_switch_leaves_it_out(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = noise(SHAPE(1, 3, 5, 5), TENSOR_F32, false), *w = noise(SHAPE(4, 3, 3, 3), TENSOR_F32, false);
    assert_true(distance(tensor_conv2d(x, w), tensor_conv2d(here(x), here(w))) < 1e-4);
    assert_int_equal(counts_now().executed, 0);
    tensor_scope_close(scope);
}

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

static Tensor *linear(int64_t rows, bool last_too)
{
    Tensor *x = noise(SHAPE(rows, 24), TENSOR_BF16, false), *w = noise(SHAPE(16, 24), TENSOR_BF16, false);
    Tensor *b = last_too ? noise(SHAPE(16), TENSOR_BF16, false) : NULL;
    return tensor_linear(x, w, b);
}

static void an_algorithm_is_chosen_once_for_a_shape(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const int64_t before = counts_now().heuristics;
    assert_non_null(linear(8, true));
    const int64_t first = counts_now().heuristics;
    assert_int_equal(first - before, 1);
    for (int i = 0; i < 5; i++) assert_non_null(linear(8, true));
    assert_int_equal(counts_now().heuristics, first);
    assert_non_null(linear(9, true));
    assert_int_equal(counts_now().heuristics, first + 1);
    assert_non_null(linear(9, true));
    assert_int_equal(counts_now().heuristics, first + 1);
    tensor_scope_close(scope);
}

/* cuDNN is asked for once in a process: one of its own goes without it. */
static int without(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_switch_leaves_it_out) };
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv("TAPEGRAD_CUDNN", "0", 1);
        exit(!test_device_opens() || cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0);
    }
    int status = 1;
    return child < 0 || waitpid(child, &status, 0) != child || status ? 1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_go_by_cudnn),
        cmocka_unit_test(some_calls_are_not_for_it),
        cmocka_unit_test(tf32_where_it_was_asked_for),
        cmocka_unit_test(an_algorithm_is_chosen_once_for_a_shape),
    };
    if (!is_emulated()) return 0; /* only stand-ins count */
    setenv("CUEMU_CUDNN", "1", 1);
    const int failed = without();
    return !test_device_opens() || failed ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
