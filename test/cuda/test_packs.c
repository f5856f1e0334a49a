/* test_packs.c - kernels that read 16 bytes at once, against the CPU: sizes around those of packs, views that
 * begin at any element, operands that are broadcast, nothing at all; and norms whose gradients are sums over
 * what many blocks did. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include "emulator.h"

static const TensorDtype floats[] = { TENSOR_F32, TENSOR_BF16, TENSOR_F16, TENSOR_F64 };
static const int64_t sizes[] = { 0, 1, 7, 8, 9, 33, 64, 129, 3001 };
static const int64_t begins[] = { 0, 1, 3, 4, 8 };
enum { DTYPES = 4, SIZES = sizeof sizes / sizeof *sizes, BEGINS = sizeof begins / sizeof *begins };

static double tolerance(const Tensor *x) /* of one rounding */
{
    static const double of[] = {
        [TENSOR_F32] = 2e-6, [TENSOR_F64] = 1e-12, [TENSOR_F16] = 1e-3, [TENSOR_BF16] = 8e-3
    };
    return tensor_dtype_is_float(tensor_dtype(x)) ? of[tensor_dtype(x)] : 0;
}

static void expect(Tensor *far, Tensor *near)
{
    assert_non_null(far);
    assert_non_null(near);
    assert_int_equal(tensor_dtype(far), tensor_dtype(near));
    assert_tensor_close(tensor_to_device(far, "cpu"), near, tolerance(near), tolerance(near));
}

/* The last dimension begins at an element of a larger one's memory, there as here. */
static Tensor *begun_at(Tensor *x, int64_t begin, const char *device)
{
    const int last = tensor_ndim(x) - 1;
    Tensor *room = tensor_to_device(tensor_cat(TENSORS(tensor_narrow(x, last, 0, 0), x), last), device);
    if (begin == 0) return room;
    int64_t shape[2] = { begin + tensor_numel(x) };
    Tensor *flat = tensor_to_device(tensor_zeros((TensorShape){ 1, shape }, tensor_dtype(x)), device);
    Tensor *part = tensor_narrow(flat, 0, begin, tensor_numel(x));
    TENSOR_NO_GRAD
        assert_non_null(tensor_copy_(part, tensor_flatten(room, 0, last)));
    return tensor_reshape(part, tensor_shape(x));
}

static Tensor *random_of(TensorShape shape, TensorDtype dtype)
{
    return tensor_to(tensor_randn(shape, TENSOR_F64), dtype);
}

/* ---- maps and copies ------------------------------------------------------------------------- */

static void check_map(TensorDtype dtype, int64_t n, int64_t begin)
{
    Tensor *x = random_of(SHAPE(n), dtype), *y = random_of(SHAPE(n), dtype),
           *one = random_of(SHAPE(1), dtype);
    Tensor *x_far = begun_at(x, begin, test_device()), *y_far = begun_at(y, begin, test_device()),
           *aside = begun_at(y, 8 - begin, test_device()), *one_far = begun_at(one, begin, test_device());
    expect(tensor_add(x_far, y_far), tensor_add(x, y));
    expect(tensor_add(x_far, aside), tensor_add(x, y));
    expect(tensor_mul(one_far, y_far), tensor_mul(one, y));
    expect(tensor_lt(x_far, y_far), tensor_lt(x, y));
    expect(tensor_tanh(x_far), tensor_tanh(x));
    for (int to = 0; to < DTYPES; to++) expect(tensor_to(x_far, floats[to]), tensor_to(x, floats[to]));
    TENSOR_NO_GRAD
        assert_non_null(tensor_add_(y_far, x_far));
    expect(y_far, tensor_add(x, y));
}

/* Rows that are broadcast over, columns, heads that are put side by side. */
static void check_strides(TensorDtype dtype, int64_t n, int64_t begin)
{
    Tensor *x = random_of(SHAPE(3, 4, n), dtype), *row = random_of(SHAPE(n), dtype),
           *column = random_of(SHAPE(4, 1), dtype);
    Tensor *far = begun_at(x, begin, test_device()), *row_far = begun_at(row, begin, test_device()),
           *column_far = begun_at(column, begin, test_device());
    expect(tensor_add(far, row_far), tensor_add(x, row));
    expect(tensor_mul(far, column_far), tensor_mul(x, column));
    expect(tensor_contiguous(tensor_transpose(far, 0, 1)), tensor_contiguous(tensor_transpose(x, 0, 1)));
    expect(tensor_to(tensor_transpose(far, 0, 1), TENSOR_F32),
           tensor_to(tensor_transpose(x, 0, 1), TENSOR_F32));
    expect(tensor_neg(tensor_transpose(far, 1, 2)), tensor_neg(tensor_transpose(x, 1, 2)));
}

static void each_size(void (*check)(TensorDtype dtype, int64_t n, int64_t begin), int64_t most)
{
    for (int d = 0; d < DTYPES; d++)
        for (int s = 0; s < SIZES; s++)
            for (int b = 0; b < BEGINS && sizes[s] <= most; b++) {
                TensorScope scope = tensor_scope_open();
                tensor_manual_seed(10 + (uint64_t)s);
                check(floats[d], sizes[s], begins[b]);
                assert_null(tensor_error());
                tensor_scope_close(scope);
            }
}

static void maps(void **state)
{
    (void)state;
    each_size(check_map, INT64_MAX);
    each_size(check_strides, 129);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void gradients(Tensor *far, Tensor *near, Tensor *x_far, Tensor *x)
{
    Tensor *g = random_of(tensor_shape(near), tensor_dtype(near));
    expect(far, near);
    expect(tensor_gradients(far, x_far, .grad_output = tensor_to_device(g, test_device())),
           tensor_gradients(near, x, .grad_output = g));
}

static void check_rows(TensorDtype dtype, int64_t n, int64_t begin)
{
    Tensor *x = random_of(SHAPE(3, n), dtype), *far = begun_at(x, begin, test_device());
    Tensor *target = tensor_randint(0, n ? n : 1, SHAPE(3)),
           *target_far = tensor_to_device(target, test_device());
    tensor_requires_grad_(x, true), tensor_requires_grad_(far = tensor_detach(far), true);
    gradients(tensor_softmax(far, 1), tensor_softmax(x, 1), far, x);
    gradients(tensor_log_softmax(far, 1), tensor_log_softmax(x, 1), far, x);
    if (n == 0) return;
    expect(tensor_amax(far, 1), tensor_amax(x, 1));
    expect(tensor_mean(far, 1), tensor_mean(x, 1));
    expect(tensor_logsumexp(far, 1), tensor_logsumexp(x, 1));
    expect(tensor_norm(far, 1), tensor_norm(x, 1));
    for (int smooth = 0; smooth < 2; smooth++)
        gradients(
            tensor_cross_entropy(far, target_far, .reduction = TENSOR_NONE, .label_smoothing = .1 * smooth),
            tensor_cross_entropy(x, target, .reduction = TENSOR_NONE, .label_smoothing = .1 * smooth), far,
            x);
}

static void rows(void **state)
{
    (void)state;
    each_size(check_rows, INT64_MAX);
}

/* ---- norms ----------------------------------------------------------------------------------- */

typedef enum Kind { LAYER, RMS, GROUP, BATCH, KINDS } Kind;

static Tensor *normed(Kind kind, Tensor *const *in)
{
    switch (kind) {
    case LAYER:
        return tensor_layer_norm(in[0], SHAPE(tensor_size(in[0], -1)), .weight = in[1], .bias = in[2]);
    case RMS: return tensor_rms_norm(in[0], SHAPE(tensor_size(in[0], -1)), .weight = in[1]);
    case GROUP: return tensor_group_norm(in[0], 2, .weight = in[1], .bias = in[2]);
    default: return tensor_batch_norm(in[0], NULL, NULL, .weight = in[1], .bias = in[2], .training = true);
    }
}

static void check_norm(Kind kind, TensorShape shape, TensorDtype dtype, int64_t begin)
{
    TensorScope scope = tensor_scope_open();
    const int64_t weights = shape.dim[kind == LAYER || kind == RMS ? shape.ndim - 1 : 1];
    const int operands = kind == RMS ? 2 : 3;
    Tensor *near[3] = { random_of(shape, dtype), random_of(SHAPE(weights), dtype),
                        random_of(SHAPE(weights), dtype) },
           *far[3], *found[2][3];
    for (int i = 0; i < 3; i++) {
        far[i] = tensor_requires_grad_(tensor_detach(begun_at(near[i], begin, test_device())), true);
        tensor_requires_grad_(near[i], true);
    }
    Tensor *g = random_of(shape, dtype), *y = normed(kind, near), *y_far = normed(kind, far);
    assert_null(tensor_error());
    expect(y_far, y);
    tensor_gradients_many(TENSORS(y), TENSOR_LIST(near, operands), found[0], .grad_outputs = TENSORS(g));
    tensor_gradients_many(TENSORS(y_far), TENSOR_LIST(far, operands), found[1],
                          .grad_outputs = TENSORS(tensor_to_device(g, test_device())));
    for (int i = 0; i < operands; i++) {
        const double off = tolerance(near[0]) * (i ? 30 : 3); /* sums over many rows */
        assert_tensor_close(tensor_to_device(found[1][i], "cpu"), found[0][i], off, off);
    }
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

/* Rows in packs and not, fewer and more than blocks leave parts for, wider than a block has sums of. */
static void norms(void **state)
{
    (void)state;
    static const int64_t rows_of[][2] = { { 5, 64 }, { 700, 24 }, { 3, 33 }, { 70, 5000 }, { 1, 8 } };
    static const int64_t images[][4] = { { 3, 4, 8, 8 }, { 5, 6, 7, 5 }, { 2, 2, 64, 66 }, { 9, 4, 32, 16 } };
    for (int d = 0; d < DTYPES; d++)
        for (int b = 0; b < 2; b++) {
            for (size_t i = 0; i < sizeof rows_of / sizeof *rows_of; i++)
                for (Kind kind = LAYER; kind <= RMS; kind++)
                    check_norm(kind, (TensorShape){ 2, rows_of[i] }, floats[d], begins[b]);
            for (size_t i = 0; i < sizeof images / sizeof *images; i++)
                for (Kind kind = GROUP; kind <= BATCH; kind++)
                    check_norm(kind, (TensorShape){ 4, images[i] }, floats[d], begins[b]);
        }
    check_norm(BATCH, SHAPE(5000, 3), TENSOR_F32, 0);
    check_norm(BATCH, SHAPE(40, 70), TENSOR_F32, 1);
}

/* No rows: the gradients of weight and bias are zeros. */
static void norms_of_nothing(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *in[3] = { tensor_zeros(SHAPE(0, 6), TENSOR_F32), tensor_ones(SHAPE(6), TENSOR_F32),
                      tensor_ones(SHAPE(6), TENSOR_F32) },
           *found[3];
    for (int i = 0; i < 3; i++) in[i] = tensor_requires_grad_(tensor_to_device(in[i], test_device()), true);
    Tensor *y = normed(LAYER, in);
    assert_int_equal(tensor_gradients_many(TENSORS(tensor_sum(y)), TENSOR_LIST(in, 3), found), 0);
    for (int i = 1; i < 3; i++) expect(found[i], tensor_zeros(SHAPE(6), TENSOR_F32));
    tensor_scope_close(scope);
}

/* ---- dropout: the mask, the result and the gradient ---------------------------------------------- */

typedef struct Dropped {
    Tensor *y, *dx;
    int64_t launches[2];
} Dropped;

static Dropped dropped(Tensor *x, Tensor *weight)
{
    Dropped d;
    tensor_manual_seed(5);
    x = tensor_requires_grad_(x, true);
    const int64_t before = counts_now().launches;
    d.y = tensor_dropout(x, .p = 0.3);
    const int64_t between = counts_now().launches;
    d.dx = tensor_gradients(d.y, x, .grad_output = weight);
    if (!d.dx) fail_msg("%s", tensor_error());
    d.launches[0] = between - before, d.launches[1] = counts_now().launches - between;
    return d;
}

static void check_dropout(TensorDtype dtype, int64_t n, int64_t begin)
{
    Tensor *x = random_of(SHAPE(n), dtype), *w = random_of(SHAPE(n), dtype);
    Tensor *far_w = begun_at(w, begin, test_device());
    Dropped far = dropped(begun_at(x, begin, test_device()), far_w);
    const Dropped near = dropped(x, w);
    for (int i = 0; i < 2 && is_emulated() && n; i++) assert_int_equal(far.launches[i], 1);
    assert_true(tensor_equal(tensor_to_device(far.y, "cpu"), near.y));
    assert_true(tensor_equal(tensor_to_device(far.dx, "cpu"), near.dx));
    tensor_use_torch_cuda_random(true); /* PyTorch's on a GPU do not depend on where x begins */
    far = dropped(begun_at(x, begin, test_device()), far_w);
    const Dropped dense = dropped(begun_at(x, 0, test_device()), far_w);
    tensor_use_torch_cuda_random(false);
    for (int i = 0; i < 2 && is_emulated() && n; i++) assert_int_equal(far.launches[i], 1);
    assert_true(tensor_equal(far.y, dense.y) && tensor_equal(far.dx, dense.dx));
}

static void dropouts(void **state)
{
    (void)state;
    tensor_use_torch_dropout(false);
    for (int d = 0; d < DTYPES; d++)
        for (int s = 0; s < SIZES; s++)
            for (int b = 0; b < BEGINS; b++) {
                TensorScope scope = tensor_scope_open();
                check_dropout(floats[d], sizes[s], begins[b]);
                tensor_scope_close(scope);
            }
    tensor_use_torch_dropout(true);
}

/* Gradients of gradients, and no number of what is dropped. */
static void gradients_of_dropout(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to_device(tensor_full(SHAPE(100), NAN, TENSOR_F32), test_device());
    Tensor *w = tensor_to_device(tensor_ones(SHAPE(100), TENSOR_F32), test_device());
    tensor_requires_grad_(x, true), tensor_requires_grad_(w, true);
    Tensor *y = tensor_dropout(x, .p = 0.25), *g = NULL;
    g = tensor_gradients(y, x, .grad_output = w, .create_graph = true);
    assert_true(tensor_equal(tensor_gradients(tensor_sum(g), w, .retain_graph = true), g));
    assert_true(tensor_equal(tensor_isnan(y), tensor_gt_scalar(g, 0)));
    const int64_t kept = tensor_item_i64(tensor_sum(tensor_gt_scalar(g, 0)));
    assert_true(kept > 50 && kept < 95);
    tensor_scope_close(scope);
}

/* ---- sequences: made on the device, with the CPU's bits ------------------------------------------- */

static Tensor *sequence(int which, TensorDtype dtype)
{
    switch (which) {
    case 0: return tensor_arange(0, 300, 1, dtype);
    case 1: return tensor_arange(100, -3, -7, dtype);
    case 2: return tensor_arange(0.1, 90, 0.3, dtype);
    case 3: return tensor_linspace(-1, 2, 1001, dtype);
    case 4: return tensor_linspace(7, 100, 13, dtype);
    case 5: return tensor_linspace(3, 9, 1, dtype);
    case 6: return tensor_arange(0, 70000, 0.7, dtype);
    case 7: return tensor_linspace(1e-9, 0.1, 5000, dtype);
    case 8: return tensor_linspace(1.00048828126, 5, 1, dtype); /* of f16: f32's would be rounded down */
    default: return tensor_arange(0, 0, 1, dtype);
    }
}

static void sequences(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < TENSOR_DTYPES; dtype++)
        for (int which = 0; which < 10; which++) {
            TensorScope scope = tensor_scope_open();
            tensor_set_default_device("cpu");
            Tensor *near = sequence(which, (TensorDtype)dtype);
            const TensorStatus code = tensor_error_code();
            tensor_error_clear();
            tensor_set_default_device(test_device());
            const struct CuemuCounts before = counts_now();
            Tensor *far = sequence(which, (TensorDtype)dtype);
            const struct CuemuCounts now = counts_now();
            tensor_set_default_device("cpu");
            assert_int_equal(tensor_error_code(), code);
            tensor_error_clear();
            if (near) {
                assert_string_equal(tensor_device(far), test_device());
                assert_int_equal(now.to_device, before.to_device);
                assert_true(now.launches <= before.launches + 1);
                far = tensor_to_device(far, "cpu");
                if (!tensor_equal(far, near)) fail_msg("sequence %d of dtype %d", which, dtype);
            }
            tensor_scope_close(scope);
        }
}

static int run_all(int argc, char **argv)
{
    if (!test_device_opens()) return 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(maps),     cmocka_unit_test(rows),
                                        cmocka_unit_test(norms),    cmocka_unit_test(norms_of_nothing),
                                        cmocka_unit_test(dropouts), cmocka_unit_test(gradients_of_dropout),
                                        cmocka_unit_test(sequences) };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("16 bytes at once", tests, NULL, NULL);
}

int main(int argc, char **argv) { return run_all(argc, argv); }
