/* test_device_attention.c - attention by the kernels of TAPEGRAD_TEST_DEVICE, against its definition in f64
 * on the CPU: lengths on both sides of the kernels' tiles, widths, masks, shared heads, operands as they lie,
 * rows that see nothing, what is not finite; and by the calls that the device gets. */
#include "slot_calls.h" /* before cmocka.h, which has a macro fail */
#include "emulator.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <tapegrad.h>

enum { QUERY, KEY, VALUE, OPERANDS, PARTS = 4 };

/* ---- cases ----------------------------------------------------------------------------------- */

typedef enum MaskKind { NO_MASK, BOOL_MASK, SAME_MASK, F32_MASK } MaskKind;
typedef enum Lie { DENSE, HEADS_INSIDE, STEPPED } Lie; /* [B, H, T, D]; in memory [B, T, H, D]; every other */

typedef struct Case {
    int64_t heads, shared, rows, cols, width, value_width;
    bool causal;
    MaskKind mask;
    double dropout;
    Lie lie;
} Case;

static const Case cases[] = {
    { 2, 1, 64, 64, 64, 64, .causal = true },
    { 2, 1, 65, 130, 64, 64, .lie = HEADS_INSIDE },
    { 1, 1, 130, 65, 40, 64, .causal = true, .lie = HEADS_INSIDE },
    { 1, 1, 70, 97, 128, 128, .lie = HEADS_INSIDE },
    { 1, 1, 33, 33, 72, 8, .causal = true, .lie = STEPPED },
    { 4, 2, 31, 67, 64, 64, .mask = BOOL_MASK },
    { 4, 4, 66, 40, 16, 16, .causal = true, .dropout = 0.3 },
    { 4, 2, 31, 67, 64, 40, .mask = BOOL_MASK, .lie = HEADS_INSIDE },
    { 4, 4, 66, 40, 16, 16, .causal = true, .dropout = 0.3, .lie = HEADS_INSIDE },
    { 2, 1, 40, 70, 9, 5, .mask = SAME_MASK, .lie = STEPPED },
    { 2, 2, 1, 90, 64, 64, .mask = F32_MASK, .dropout = 0.2 },
    { 1, 1, 3, 1, 1, 1 },
};

/* Absolute, of values about 1: halves round the probabilities to their digits. */
static const struct {
    TensorDtype dtype;
    double value, gradient;
} precision[] = { { TENSOR_F32, 3e-6, 3e-5 }, { TENSOR_F16, 4e-3, 2e-2 }, { TENSOR_BF16, 3e-2, 1e-1 } };
enum { DTYPES = sizeof precision / sizeof *precision };

/* ---- operands -------------------------------------------------------------------------------- */

static Tensor *on_device(Tensor *x) { return tensor_to_device(x, test_device()); }
static Tensor *here(Tensor *x) { return tensor_to(tensor_to_device(x, "cpu"), TENSOR_F64); }

/* [2, heads, n, width], rounded to the dtype, on the device. */
static Tensor *lying(Lie lie, int64_t heads, int64_t n, int64_t width, TensorDtype dtype)
{
    Tensor *x;
    switch (lie) {
    case HEADS_INSIDE:
        x = tensor_transpose(on_device(tensor_to(tensor_randn(SHAPE(2, n, heads, width), TENSOR_F32), dtype)),
                             1, 2);
        break;
    case STEPPED:
        x = tensor_slice(on_device(tensor_to(tensor_randn(SHAPE(2, heads, n, 2 * width), TENSOR_F32), dtype)),
                         .dim = 3, .start = 1, .end = 2 * width, .step = 2);
        break;
    default: x = on_device(tensor_to(tensor_randn(SHAPE(2, heads, n, width), TENSOR_F32), dtype));
    }
    assert_non_null(x);
    return x;
}

static void operands(const Case *c, TensorDtype dtype, Tensor *x[OPERANDS], Tensor **mask)
{
    x[QUERY] = lying(c->lie, c->heads, c->rows, c->width, dtype);
    x[KEY] = lying(c->lie, c->heads / c->shared, c->cols, c->width, dtype);
    x[VALUE] = lying(c->lie, c->heads / c->shared, c->cols, c->value_width, dtype);
    Tensor *noise = c->mask ? tensor_randn(SHAPE(c->heads, c->rows, c->cols), TENSOR_F32) : NULL;
    *mask = !noise                 ? NULL
            : c->mask == BOOL_MASK ? on_device(tensor_gt_scalar(noise, -0.3))
                                   : on_device(tensor_to(noise, c->mask == F32_MASK ? TENSOR_F32 : dtype));
}

/* y and the gradients, of leaves that lie as x does. */
static void run(const Case *c, Tensor *const x[OPERANDS], Tensor *mask, Tensor *g, Tensor *out[PARTS])
{
    Tensor *leaf[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) leaf[i] = tensor_requires_grad_(tensor_detach(x[i]), true);
    tensor_manual_seed(5);
    out[0] =
        tensor_scaled_dot_product_attention(leaf[QUERY], leaf[KEY], leaf[VALUE], mask, .is_causal = c->causal,
                                            .dropout_p = c->dropout, .enable_gqa = c->shared > 1);
    if (!out[0]) fail_msg("%s", tensor_error());
    assert_int_equal(tensor_gradients_many(TENSORS(out[0]), TENSOR_LIST(leaf, OPERANDS), out + 1,
                                           .grad_outputs = TENSORS(g)),
                     0);
}

static double largest(Tensor *x) { return tensor_numel(x) ? tensor_item(tensor_amax(tensor_abs(x))) : 0; }

static void agree(const Case *c, TensorDtype dtype, const char *what, Tensor *got, Tensor *want, double limit)
{
    assert_int_equal(tensor_dtype(got), dtype);
    assert_string_equal(tensor_device(got), test_device());
    const double off = largest(tensor_sub(here(got), want));
    if (!(off <= limit * (1 + largest(want) / 4)))
        fail_msg("case %d, %s: %s is off by %g", (int)(c - cases), tensor_dtype_name(dtype), what, off);
}

/* ---- against the definition ------------------------------------------------------------------ */

/* One call forward, one backward; nothing is widened, made dense, or waited for; no product is asked for. */
static void only_attention(const Case *c, TensorDtype dtype)
{
    for (int s = 0; s < KERNEL_SLOTS; s++)
        if (slot_calls.calls[s] != (s == SLOT_attention || s == SLOT_attention_grad) &&
            !(c->dropout && s == SLOT_random))
            fail_msg("case %d, %s: %lld calls of %s", (int)(c - cases), tensor_dtype_name(dtype),
                     (long long)slot_calls.calls[s], slot_name[s]);
    assert_int_equal(slot_calls.from_host + slot_calls.to_host, 0);
}

static void as_defined(void **state)
{
    (void)state;
    static const char *const part[] = { "the result", "the query's gradient", "the key's gradient",
                                        "the value's gradient" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < DTYPES; d++) {
            const Case *c = &cases[i];
            const TensorDtype dtype = precision[d].dtype;
            TensorScope scope = tensor_scope_open();
            Tensor *x[OPERANDS], *wide[OPERANDS], *mask, *got[PARTS], *want[PARTS];
            tensor_manual_seed(i);
            operands(c, dtype, x, &mask);
            const Lie of_result = c->lie == HEADS_INSIDE ? HEADS_INSIDE : DENSE; /* as that of the query */
            Tensor *g = lying(of_result, c->heads, c->rows, c->value_width, dtype);
            forget_slot_calls();
            run(c, x, mask, g, got);
            only_attention(c, dtype);
            for (int k = 0; k < OPERANDS; k++) wide[k] = here(x[k]);
            Tensor *mask_here = mask ? tensor_to_device(mask, "cpu") : NULL;
            if (mask && c->mask != BOOL_MASK) mask_here = tensor_to(mask_here, TENSOR_F64);
            run(c, wide, mask_here, here(g), want);
            for (int k = 0; k < PARTS; k++)
                agree(c, dtype, part[k], got[k], want[k], k ? precision[d].gradient : precision[d].value);
            tensor_scope_close(scope);
        }
}

/* Twice the same bits, and those of the same operands in dense memory. */
static void repeats_itself(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPES; d++) {
        const Case c = { 4, 2, 70, 67, 24, 24, .causal = true, .dropout = 0.2, .lie = HEADS_INSIDE };
        TensorScope scope = tensor_scope_open();
        Tensor *x[OPERANDS], *mask, *first[PARTS], *again[PARTS];
        operands(&c, precision[d].dtype, x, &mask);
        Tensor *g = lying(DENSE, c.heads, c.rows, c.value_width, precision[d].dtype);
        run(&c, x, mask, g, first);
        for (int turn = 0; turn < 2; turn++) {
            run(&c, x, mask, g, again);
            for (int k = 0; k < PARTS; k++) assert_true(tensor_equal(first[k], again[k]));
            for (int k = 0; k < OPERANDS; k++) x[k] = tensor_contiguous(x[k]);
        }
        tensor_scope_close(scope);
    }
}

/* ---- rows that see nothing, and what is not finite ------------------------------------------- */

static Tensor *row_of(Tensor *x, int64_t i) { return here(tensor_select(x, 2, i)); }

static void a_row_that_sees_nothing(void **state)
{
    (void)state;
    for (int d = 0; d < 2 * DTYPES; d++) {
        const Case c = { 1, 1, 5, 70, 16, 16 };
        const TensorDtype dtype = precision[d / 2].dtype;
        TensorScope scope = tensor_scope_open();
        Tensor *x[OPERANDS], *mask, *out[PARTS];
        operands(&c, dtype, x, &mask);
        Tensor *open = tensor_ne_scalar(tensor_unsqueeze(tensor_arange(0, 5, 1, TENSOR_F32), 1), 2);
        mask = d % 2 ? tensor_log(tensor_to(open, TENSOR_F32)) : open; /* 0 and -inf, or true and false */
        run(&c, x, on_device(tensor_to(mask, d % 2 ? dtype : TENSOR_BOOL)),
            lying(DENSE, c.heads, c.rows, c.value_width, dtype), out);
        for (int k = 0; k < 2; k++)
            assert_true(largest(row_of(out[k], 2)) == 0 && largest(row_of(out[k], 1)) > 0);
        for (int k = 0; k < PARTS; k++) assert_true(tensor_item(tensor_all(tensor_isfinite(here(out[k])))));
        tensor_scope_close(scope);
    }
}

/* A NaN in a row of q stays in that row; one in a row of k reaches those that see it. */
static void what_is_not_finite(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPES; d++) {
        const Case c = { 1, 1, 70, 70, 16, 16, .causal = true };
        const TensorDtype dtype = precision[d].dtype;
        TensorScope scope = tensor_scope_open();
        Tensor *x[OPERANDS], *mask;
        operands(&c, dtype, x, &mask);
        for (int which = QUERY; which <= KEY; which++)
            for (int infinite = 0; infinite < 2; infinite++) {
                Tensor *bad = here(x[which]);
                tensor_fill_(tensor_select(bad, 2, 66), infinite ? INFINITY : NAN);
                bad = on_device(tensor_to(bad, dtype));
                Tensor *y = tensor_scaled_dot_product_attention(which == QUERY ? bad : x[QUERY],
                                                                which == KEY ? bad : x[KEY], x[VALUE],
                                                                .is_causal = true);
                Tensor *finite = tensor_all(tensor_isfinite(here(y)), 3);
                for (int64_t r = 0; r < c.rows; r++) {
                    const bool spoiled = which == QUERY ? r == 66 : r >= 66;
                    const bool is =
                        tensor_item(tensor_select(tensor_select(tensor_select(finite, 0, 0), 0, 0), 0, r));
                    if (!infinite && is == spoiled) fail_msg("row %d is wrong", (int)r);
                    if (infinite && !spoiled) assert_true(is);
                }
            }
        tensor_scope_close(scope);
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void nothing_to_do(void **state)
{
    (void)state;
    static const Case empty[] = { { 2, 1, 0, 5, 8, 8 },
                                  { 2, 1, 5, 0, 8, 8 },
                                  { 2, 1, 3, 4, 0, 8 },
                                  { 2, 1, 3, 4, 8, 0 },
                                  { 0, 1, 3, 4, 8, 8 } };
    for (size_t i = 0; i < DTYPES * sizeof empty / sizeof *empty; i++) {
        const Case *c = &empty[i / DTYPES];
        TensorScope scope = tensor_scope_open();
        Tensor *x[OPERANDS], *mask, *out[PARTS];
        operands(c, precision[i % DTYPES].dtype, x, &mask);
        run(c, x, mask, lying(DENSE, c->heads, c->rows, c->value_width, precision[i % DTYPES].dtype), out);
        for (int k = 0; k < PARTS; k++) {
            const bool mean = k == 0 || k == 3; /* without a width all scores are 0 */
            assert_true(largest(here(out[k])) == 0 || (mean && c->width == 0));
        }
        tensor_scope_close(scope);
    }
}

/* What the kernels decline is composed, on the device: f64, wide heads, the gradient of a mask. */
static void what_is_declined(void **state)
{
    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        const TensorDtype dtype = turn == 0 ? TENSOR_F64 : TENSOR_F32;
        const Case c = { 2, 1, 9, 7, turn == 1 ? 200 : 8, 8, .mask = turn == 2 ? F32_MASK : NO_MASK };
        TensorScope scope = tensor_scope_open();
        Tensor *x[OPERANDS], *mask, *wide[OPERANDS], *got[PARTS], *want[PARTS];
        operands(&c, dtype, x, &mask);
        if (mask) mask = tensor_requires_grad_(mask, true);
        Tensor *g = lying(DENSE, c.heads, c.rows, c.value_width, dtype);
        const int64_t by_host = tensor_host_fallbacks();
        run(&c, x, mask, g, got);
        assert_int_equal(tensor_host_fallbacks(), by_host);
        for (int k = 0; k < OPERANDS; k++) wide[k] = here(x[k]);
        run(&c, wide, mask ? here(mask) : NULL, here(g), want);
        for (int k = 0; k < PARTS; k++) agree(&c, dtype, "a part", got[k], want[k], 3e-5);
        if (mask) {
            Tensor *leaf[] = { mask, tensor_requires_grad_(here(mask), true) }, *dmask[2];
            dmask[0] = tensor_gradients(tensor_sum(tensor_square(tensor_scaled_dot_product_attention(
                                            x[QUERY], x[KEY], x[VALUE], leaf[0]))),
                                        leaf[0]);
            dmask[1] = tensor_gradients(tensor_sum(tensor_square(tensor_scaled_dot_product_attention(
                                            wide[QUERY], wide[KEY], wide[VALUE], leaf[1]))),
                                        leaf[1]);
            agree(&c, dtype, "the mask's gradient", dmask[0], dmask[1], 3e-5);
        }
        tensor_scope_close(scope);
    }
}

/* Kernels that run: one forward; three backward, of sum dy y, of q, of k and v.  Besides the result a row
 * keeps two numbers, and no room for scores is asked for. */
static void launches_and_memory(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPES; d++) {
        const Case c = { 1, 1, 300, 300, 8, 8, .causal = true };
        TensorScope scope = tensor_scope_open();
        Tensor *x[OPERANDS], *mask, *out[PARTS];
        operands(&c, precision[d].dtype, x, &mask);
        Tensor *g = lying(DENSE, c.heads, c.rows, c.value_width, precision[d].dtype);
        tensor_synchronize(test_device());
        tensor_device_memory_reset_peak(test_device());
        const int64_t before = tensor_device_memory(test_device()).in_use;
        const struct CuemuCounts first = counts_now();
        run(&c, x, mask, g, out);
        const struct CuemuCounts last = counts_now();
        if (is_emulated()) assert_int_equal(last.launches - first.launches, 4);
        assert_true(tensor_device_memory(test_device()).peak - before < 2 * c.rows * c.cols);
        tensor_scope_close(scope);
    }
}

static int run_all(int argc, char **argv)
{
    if (!test_device_opens()) return 1;
    tensor_use_torch_dropout(false);
    watch_device(test_device());
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_defined),
                                        cmocka_unit_test(repeats_itself),
                                        cmocka_unit_test(a_row_that_sees_nothing),
                                        cmocka_unit_test(what_is_not_finite),
                                        cmocka_unit_test(nothing_to_do),
                                        cmocka_unit_test(what_is_declined),
                                        cmocka_unit_test(launches_and_memory) };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const int failed = cmocka_run_group_tests_name("attention on a device", tests, NULL, NULL);
    tensor_use_torch_dropout(true);
    return failed;
}

int main(int argc, char **argv) { return in_each_order(argc, argv, run_all); }
