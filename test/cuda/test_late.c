/* test_late.c - values that ops check on a device: nothing waits for them, and the next wait tells which is
 * wrong, in the name of the function that the program called, and where.  On the device of
 * TAPEGRAD_TEST_DEVICE. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "emulator.h"
#include <tapegrad/cmocka.h>

static Tensor *there(Tensor *x) { return tensor_to_device(x, test_device()); }
static Tensor *floats(TensorShape shape) { return there(tensor_ones(shape, TENSOR_F32)); }

static Tensor *numbers(const int64_t *value, int64_t n)
{
    return there(tensor_from_data(value, SHAPE(n), TENSOR_I64));
}
#define NUMBERS(...) \
    numbers((const int64_t[]){ __VA_ARGS__ }, (int64_t)(sizeof(int64_t[]){ __VA_ARGS__ } / sizeof(int64_t)))

typedef struct Late {
    const char *name;
    Tensor *(*call)(void);
    TensorStatus code;
    const char *text; /* NULL: nothing is wrong */
} Late;

#define CALL(name, ...) \
    static Tensor *name(void) { return __VA_ARGS__; }

CALL(index_low, tensor_index(floats(SHAPE(3, 2)), "rows, 0", NUMBERS(0, -4)))
CALL(index_high, tensor_index_tensors(floats(SHAPE(3, 2)), TENSORS(NULL, NUMBERS(-2, 1, 2))))
CALL(index_fine, tensor_index_tensors(floats(SHAPE(3, 2)), TENSORS(NUMBERS(-3, 2), NUMBERS(-2, 1))))
CALL(index_put, tensor_index_put(floats(SHAPE(3, 2)), TENSORS(NUMBERS(3)), floats(SHAPE())))
CALL(index_put_fine, tensor_index_put(floats(SHAPE(3, 2)), TENSORS(NUMBERS(-1, -1)), floats(SHAPE())))
CALL(take, tensor_take(floats(SHAPE(3)), NUMBERS(2, -4)))
CALL(put, tensor_put(floats(SHAPE(3)), NUMBERS(2, 3), floats(SHAPE(2))))
CALL(scatter, tensor_scatter(floats(SHAPE(3)), 0, NUMBERS(0, 3), floats(SHAPE(2))))
CALL(scatter_fine, tensor_scatter(floats(SHAPE(3)), 0, NUMBERS(2, 2), floats(SHAPE(2))))
CALL(scatter_value, tensor_scatter_value(floats(SHAPE(3)), 0, NUMBERS(-1), 2))
CALL(index_copy, tensor_index_copy(floats(SHAPE(3)), 0, NUMBERS(1, 5), floats(SHAPE(2))))
CALL(index_fill, tensor_index_fill(floats(SHAPE(3)), 0, NUMBERS(1, 5), 2))
CALL(masked_scatter,
     tensor_masked_scatter(floats(SHAPE(3)), tensor_gt_scalar(floats(SHAPE(3)), 0), floats(SHAPE(2))))
CALL(masked_fine,
     tensor_masked_scatter(floats(SHAPE(3)), tensor_gt_scalar(floats(SHAPE(3)), 2), floats(SHAPE(2))))
CALL(quantile, tensor_quantile(floats(SHAPE(3)), .qs = tensor_mul_scalar(floats(SHAPE(2)), 1.5)))
CALL(quantile_fine, tensor_quantile(floats(SHAPE(3)), .qs = floats(SHAPE(2))))
CALL(cov, tensor_cov(floats(SHAPE(2, 3)), .fweights = NUMBERS(1, 2, -3)))
CALL(cov_fine, tensor_cov(floats(SHAPE(2, 3)), .aweights = floats(SHAPE(3))))
CALL(sorter, tensor_searchsorted(floats(SHAPE(2)), floats(SHAPE(2)), .sorter = NUMBERS(0, 2)))
CALL(isin_fine, tensor_isin(floats(SHAPE(2)), floats(SHAPE(2))))
CALL(unravel, ({ /* one result of two */
                 Tensor *part[2];
                 tensor_unravel_index(NUMBERS(5, 6), SHAPE(2, 3), part) < 0 ? NULL : part[0];
     }))
CALL(repeats, tensor_repeat_interleave_tensor(floats(SHAPE(2)), NUMBERS(1, -1), .dim = 0, .output_size = 0))
CALL(repeated, tensor_repeat_interleave_tensor(floats(SHAPE(2)), NUMBERS(1, 2), .dim = 0, .output_size = 2))
CALL(repeated_fine,
     tensor_repeat_interleave_tensor(floats(SHAPE(2)), NUMBERS(1, 2), .dim = 0, .output_size = 3))
CALL(bag_first, tensor_embedding_bag(NUMBERS(0, 1), floats(SHAPE(2, 3)), NUMBERS(1)))
CALL(bag_falls, tensor_embedding_bag(NUMBERS(0, 1), floats(SHAPE(2, 3)), NUMBERS(0, 2, 1)))
CALL(bag_ends, tensor_embedding_bag(NUMBERS(0, 1), floats(SHAPE(2, 3)), NUMBERS(0, 3)))
CALL(bag_index, tensor_embedding_bag(NUMBERS(0, 2), floats(SHAPE(2, 3)), NUMBERS(0)))
CALL(bag_fine, tensor_embedding_bag(NUMBERS(0, 1), floats(SHAPE(2, 3)), NUMBERS(0, 2), .max_norm = 1,
                                    .mode = TENSOR_BAG_MAX))
CALL(margin, tensor_multi_margin_loss(floats(SHAPE(2, 3)), NUMBERS(0, 3)))
CALL(ctc_times, tensor_ctc_loss(floats(SHAPE(4, 1, 3)), tensor_reshape(NUMBERS(1, 2), SHAPE(1, 2)),
                                NUMBERS(5), NUMBERS(2)))
CALL(ctc_sizes, tensor_ctc_loss(floats(SHAPE(4, 1, 3)), tensor_reshape(NUMBERS(1, 2), SHAPE(1, 2)),
                                NUMBERS(4), NUMBERS(3)))
CALL(ctc_label, tensor_ctc_loss(floats(SHAPE(4, 1, 3)), tensor_reshape(NUMBERS(1, 3), SHAPE(1, 2)),
                                NUMBERS(4), NUMBERS(2)))
CALL(ctc_blank, tensor_ctc_loss(floats(SHAPE(4, 1, 3)), tensor_reshape(NUMBERS(1, 0), SHAPE(1, 2)),
                                NUMBERS(4), NUMBERS(2)))
CALL(ctc_fine, tensor_ctc_loss(floats(SHAPE(4, 1, 3)), tensor_reshape(NUMBERS(1, 7), SHAPE(1, 2)), NUMBERS(4),
                               NUMBERS(1)))
CALL(gumbel_fine, tensor_gumbel_softmax(floats(SHAPE(4)), .hard = true))
CALL(rrelu_fine, tensor_rrelu(floats(SHAPE(4)), .training = true))
CALL(resize_fine, tensor_interpolate(floats(SHAPE(1, 1, 4)), SHAPE(7), .mode = TENSOR_LINEAR))
CALL(grid_fine, tensor_affine_grid(floats(SHAPE(1, 2, 3)), SHAPE(1, 1, 2, 3), false))
CALL(static_fine, tensor_nonzero_static(floats(SHAPE(2, 2)), .size = 3))

CALL(masked_put_fine, tensor_index_put(floats(SHAPE(3, 2)), TENSORS(tensor_gt_scalar(floats(SHAPE(3)), 0)),
                                       floats(SHAPE(1, 1))))
CALL(fractional_fine, tensor_fractional_max_pool2d(floats(SHAPE(1, 2, 5, 5)), 2, .output_size = SHAPE(3)))
CALL(combinations_fine, tensor_combinations(floats(SHAPE(5)), .r = 3))
CALL(divide, tensor_floor_divide(NUMBERS(6, 7), NUMBERS(2, 0)))
CALL(divide_in_place, tensor_remainder_(NUMBERS(6, 7), NUMBERS(0, 2)))
CALL(divide_fine, tensor_fmod(NUMBERS(6, 7), NUMBERS(-2, 3)))

static const Late late[] = {
    { "tensor_floor_divide", divide, TENSOR_EVALUE,
      "the size of an integer divisor 0 at position 1 is out of range: want 1 or more" },
    { "tensor_remainder_", divide_in_place, TENSOR_EVALUE,
      "the size of an integer divisor 0 at position 0 is out of range: want 1 or more" },
    { "tensor_fmod", divide_fine, TENSOR_OK, NULL },
    { "tensor_fractional_max_pool2d", fractional_fine, TENSOR_OK, NULL },
    { "tensor_combinations", combinations_fine, TENSOR_OK, NULL },
    { "tensor_index_put", masked_put_fine, TENSOR_OK, NULL },
    { "tensor_index", index_low, TENSOR_EINDEX, "index -4 at position 1 is out of range: want -3 to 2" },
    { "tensor_index_tensors", index_high, TENSOR_EINDEX,
      "index 2 at position 2 is out of range: want -2 to 1" },
    { "tensor_index_tensors", index_fine, TENSOR_OK, NULL },
    { "tensor_index_put", index_put, TENSOR_EINDEX, "index 3 at position 0 is out of range: want -3 to 2" },
    { "tensor_index_put", index_put_fine, TENSOR_OK, NULL },
    { "tensor_take", take, TENSOR_EINDEX, "index -4 at position 1 is out of range: want -3 to 2" },
    { "tensor_put", put, TENSOR_EINDEX, "index 3 at position 1 is out of range: want -3 to 2" },
    { "tensor_scatter", scatter, TENSOR_EINDEX, "index 3 at position 1 is out of range: want 0 to 2" },
    { "tensor_scatter", scatter_fine, TENSOR_OK, NULL },
    { "tensor_scatter_value", scatter_value, TENSOR_EINDEX,
      "index -1 at position 0 is out of range: want 0 to 2" },
    { "tensor_index_copy", index_copy, TENSOR_EINDEX, "index 5 at position 1 is out of range: want 0 to 2" },
    { "tensor_index_fill", index_fill, TENSOR_EINDEX, "index 5 at position 1 is out of range: want 0 to 2" },
    { "tensor_masked_scatter", masked_scatter, TENSOR_ESHAPE,
      "the number of places under the mask 3 at position 0 is out of range: want 0 to 2" },
    { "tensor_masked_scatter", masked_fine, TENSOR_OK, NULL },
    { "tensor_quantile", quantile, TENSOR_EVALUE, "q 1.5 at position 0 is out of range: want 0 to 1" },
    { "tensor_quantile", quantile_fine, TENSOR_OK, NULL },
    { "tensor_cov", cov, TENSOR_EVALUE, "fweights -3 at position 2 is out of range: want 0 or more" },
    { "tensor_cov", cov_fine, TENSOR_OK, NULL },
    { "tensor_searchsorted", sorter, TENSOR_EINDEX, "index 2 at position 1 is out of range: want 0 to 1" },
    { "tensor_isin", isin_fine, TENSOR_OK, NULL },
    { "tensor_unravel_index", unravel, TENSOR_EINDEX, "index 6 at position 1 is out of range: want 0 to 5" },
    { "tensor_repeat_interleave_tensor", repeats, TENSOR_EVALUE,
      "the count -1 at position 1 is out of range: want 0 or more" },
    { "tensor_repeat_interleave_tensor", repeated, TENSOR_EVALUE,
      "the sum of repeats 3 at position 0 is out of range: want 2 to 2" },
    { "tensor_repeat_interleave_tensor", repeated_fine, TENSOR_OK, NULL },
    { "tensor_embedding_bag", bag_first, TENSOR_EVALUE,
      "the first offset 1 at position 0 is out of range: want 0 to 0" },
    { "tensor_embedding_bag", bag_falls, TENSOR_EVALUE,
      "a difference of offsets -1 at position 1 is out of range: want 0 or more" },
    { "tensor_embedding_bag", bag_ends, TENSOR_EVALUE,
      "the last offset 3 at position 0 is out of range: want 0 to 2" },
    { "tensor_embedding_bag", bag_index, TENSOR_EINDEX,
      "index 2 at position 1 is out of range: want 0 to 1" },
    { "tensor_embedding_bag", bag_fine, TENSOR_OK, NULL },
    { "tensor_multi_margin_loss", margin, TENSOR_EINDEX,
      "index 3 at position 1 is out of range: want 0 to 2" },
    { "tensor_ctc_loss", ctc_times, TENSOR_EINDEX,
      "input_lengths 5 at position 0 is out of range: want 0 to 4" },
    { "tensor_ctc_loss", ctc_sizes, TENSOR_EINDEX,
      "target_lengths 3 at position 0 is out of range: want 0 to 2" },
    { "tensor_ctc_loss", ctc_label, TENSOR_EINDEX, "targets 3 at position 1 is out of range: want 0 to 2" },
    { "tensor_ctc_loss", ctc_blank, TENSOR_EINDEX,
      "the number of blanks in targets 1 at position 1 is out of range: want 0 to 0" },
    { "tensor_ctc_loss", ctc_fine, TENSOR_OK, NULL },
    { "tensor_gumbel_softmax", gumbel_fine, TENSOR_OK, NULL },
    { "tensor_rrelu", rrelu_fine, TENSOR_OK, NULL },
    { "tensor_interpolate", resize_fine, TENSOR_OK, NULL },
    { "tensor_affine_grid", grid_fine, TENSOR_OK, NULL },
    { "tensor_nonzero_static", static_fine, TENSOR_OK, NULL },
};
enum { CALLS = sizeof late / sizeof *late };

static void says(const Late *l, const char *part)
{
    if (tensor_error_code() != l->code || !tensor_error() || !strstr(tensor_error(), part))
        fail_msg("%s: code %d, \"%s\": want %d and \"%s\"", l->name, (int)tensor_error_code(),
                 tensor_error() ? tensor_error() : "", (int)l->code, part);
}

static void told_by_the_next_wait(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        const Late *l = &late[i];
        TensorScope scope = tensor_scope_open();
        const struct CuemuCounts before = counts_now();
        if (!l->call()) fail_msg("%s: %s", l->name, tensor_error());
        const struct CuemuCounts after = counts_now();
        if (after.waits != before.waits) fail_msg("%s waits", l->name);
        assert_int_equal(tensor_synchronize(test_device()), l->text ? -1 : 0);
        if (l->text) {
            says(l, l->text);
            char name[80];
            snprintf(name, sizeof name, "%s: ", l->name);
            says(l, name);
            says(l, "test_late.c");
        }
        tensor_error_clear();
        assert_int_equal(tensor_synchronize(test_device()), 0);
        tensor_scope_close(scope);
    }
}

static void told_at_once(void **state)
{
    (void)state;
    setenv("TAPEGRAD_CUDA_SYNC", "1", 1);
    for (int i = 0; i < CALLS; i++) {
        const Late *l = &late[i];
        TensorScope scope = tensor_scope_open();
        Tensor *y = l->call();
        if ((y != NULL) == (l->text != NULL)) fail_msg("%s: %s", l->name, y ? "is fine" : tensor_error());
        if (l->text) says(l, l->name);
        tensor_error_clear();
        assert_int_equal(tensor_synchronize(test_device()), 0);
        tensor_scope_close(scope);
    }
    unsetenv("TAPEGRAD_CUDA_SYNC");
}

/* The last of many writes wins, whatever the order of threads, and gets the gradient alone. */
static void the_last_write_wins(void **state)
{
    (void)state;
    enum { N = 7, M = 300 };
    TensorScope scope = tensor_scope_open();
    Tensor *index = tensor_remainder_scalar(tensor_arange(0, M, 1, TENSOR_I64), N - 2),
           *src = tensor_arange(0, M, 1, TENSOR_F32), *x = tensor_full(SHAPE(N), -1, TENSOR_F32), *y[2],
           *g[2];
    for (int far = 0; far < 2; far++) {
        Tensor *at = far ? there(index) : index,
               *from = tensor_requires_grad_(tensor_detach(far ? there(src) : src), true);
        y[far] = tensor_scatter(far ? there(x) : x, 0, at, from);
        g[far] = tensor_gradients(tensor_sum(tensor_square(y[far])), from);
        assert_non_null(g[far]);
    }
    assert_true(tensor_equal(tensor_to_device(y[1], "cpu"), y[0]));
    assert_true(tensor_equal(tensor_to_device(g[1], "cpu"), g[0]));
    assert_true(tensor_item(tensor_narrow(y[0], 0, 0, 1)) == M - 5);
    tensor_scope_close(scope);
}

static void same(Tensor *far, Tensor *near)
{
    assert_non_null(far);
    assert_true(tensor_equal(tensor_to_device(far, "cpu"), near));
}

/* Functions that are no ops of the registry: the CPU's results. */
static void windows_and_choices(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_sin(tensor_arange(0, 2 * 7 * 6, 1, TENSOR_F32)), *list = tensor_narrow(x, 0, 0, 6);
    Tensor *image = tensor_reshape(x, SHAPE(1, 2, 7, 6)), *solid = tensor_reshape(x, SHAPE(1, 2, 3, 2, 7)),
           *at[2];
    for (int f64 = 0; f64 < 2; f64++) {
        if (f64) image = tensor_to(image, TENSOR_F64), solid = tensor_to(solid, TENSOR_F64);
        for (int rank = 2; rank <= 3; rank++) {
            Tensor *u = tensor_abs(tensor_narrow(x, 0, 3, 2 * rank)), *y[2];
            u = tensor_to(tensor_reshape(u, SHAPE(1, 2, rank)), f64 ? TENSOR_F64 : TENSOR_F32);
            for (int far = 0; far < 2; far++) {
                Tensor *in = rank == 2 ? image : solid, *r = far ? there(u) : u;
                if (far) in = there(in);
                y[far] = rank == 2 ? tensor_fractional_max_pool2d(in, 2, .output_size = SHAPE(4, 3),
                                                                  .random_samples = r, .indices = &at[far])
                                   : tensor_fractional_max_pool3d(in, .kernel_sizes = { 2, 1, 3 },
                                                                  .output_size = SHAPE(1, 2, 4),
                                                                  .random_samples = r, .indices = &at[far]);
            }
            same(y[1], y[0]);
            same(at[1], at[0]);
        }
    }
    for (int n = 0; n < 3; n++) { /* one number is the first */
        Tensor *near[3], *far[3];
        for (int there = 0; there < 2; there++) {
            tensor_set_default_device(there ? test_device() : "cpu");
            Tensor **y = there ? far : near;
            y[0] = tensor_linspace(2, 5, n, TENSOR_F32), y[1] = tensor_linspace(2, 5, n, TENSOR_I64);
            y[2] = tensor_arange(2, 2 + 3 * n, 3, TENSOR_F64);
        }
        tensor_set_default_device("cpu");
        for (int i = 0; i < 3; i++) same(far[i], near[i]);
    }
    for (int r = 0; r < 6; r++)
        for (int again = 0; again < 2; again++)
            same(tensor_combinations(there(list), .r = r, .with_replacement = again),
                 tensor_combinations(list, .r = r, .with_replacement = again));
    tensor_scope_close(scope);
}

/* Gradients that are none of the value, which no sample may have: each index as often as it counts, and
 * padding, empty bags and repeats among them. */
static void gradients_by_frequency(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *index = tensor_from_data((int64_t[]){ 1, 0, 1, 2, 2, 2, 1, 0 }, SHAPE(8), TENSOR_I64),
           *offsets = tensor_from_data((int64_t[]){ 0, 3, 3, 6 }, SHAPE(4), TENSOR_I64), *g[2][2];
    for (int far = 0; far < 2; far++)
        for (int bag = 0; bag < 2; bag++) {
            Tensor *w = tensor_reshape(tensor_arange(1, 9, 1, TENSOR_F32), SHAPE(4, 2)), *i = index;
            if (far) w = there(w), i = there(i);
            tensor_requires_grad_(w, true);
            Tensor *y =
                bag ? tensor_embedding_bag(i, w, far ? there(offsets) : offsets, .mode = TENSOR_BAG_SUM,
                                           .padding_idx = 1, .scale_grad_by_freq = true)
                    : tensor_embedding(i, w, .padding_idx = 1, .scale_grad_by_freq = true);
            g[far][bag] = tensor_gradients(tensor_sum(tensor_square(y)), w);
        }
    for (int bag = 0; bag < 2; bag++) same(g[1][bag], g[0][bag]);
    tensor_scope_close(scope);
}

int main(void)
{
    if (!test_device_opens()) return 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(told_by_the_next_wait),
                                        cmocka_unit_test(told_at_once), cmocka_unit_test(the_last_write_wins),
                                        cmocka_unit_test(windows_and_choices),
                                        cmocka_unit_test(gradients_by_frequency) };
    return cmocka_run_group_tests_name("told late", tests, NULL, NULL);
}
