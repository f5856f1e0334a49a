/* test_autocast.c - blocks of autocast: nesting, kept casts, gradients' dtypes, ops of the user's, what
 * fails.  (Each op's dtypes: op/test_autocast_ops.c.) */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>

#define OK assert_string_equal(tensor_error() ? tensor_error() : "", "")

static Tensor *random_f32(int64_t rows, int64_t columns, bool grad)
{
    return tensor_requires_grad_(tensor_randn(SHAPE(rows, columns), TENSOR_F32), grad);
}

static void test_products_are_lower_and_gradients_f32(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = random_f32(4, 8, false), *w = random_f32(3, 8, true), *b = random_f32(1, 3, true), *y = NULL;
    TENSOR_AUTOCAST(TENSOR_BF16)
    {
        assert_true(tensor_autocast_enabled());
        y = tensor_linear(x, w, tensor_reshape(b, SHAPE(3)));
        assert_int_equal(tensor_dtype(y), TENSOR_BF16);
        assert_int_equal(tensor_dtype(tensor_softmax(y, 1)), TENSOR_BF16); /* the CPU's list */
        assert_int_equal(tensor_dtype(tensor_mse_loss(y, tensor_zeros_like(y))), TENSOR_F32);
        assert_int_equal(tensor_dtype(tensor_add(y, x = tensor_matmul(x, tensor_t(w)))), TENSOR_BF16);
        assert_int_equal(tensor_dtype(tensor_cat(TENSORS(y, tensor_to(y, TENSOR_F32)), 0)), TENSOR_F32);
    }
    assert_false(tensor_autocast_enabled());
    assert_int_equal(tensor_backward(tensor_sum(tensor_to(y, TENSOR_F32))), 0);
    assert_int_equal(tensor_dtype(tensor_grad(w)), TENSOR_F32);
    assert_int_equal(tensor_dtype(tensor_grad(b)), TENSOR_F32);
    OK;
    tensor_scope_close(scope);
}

/* The same numbers as with casts by hand, to the bit. */
static void test_as_casts_by_hand(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = random_f32(5, 6, true), *w = random_f32(6, 4, true), *loss = NULL;
    TENSOR_AUTOCAST(TENSOR_F16)
    loss = tensor_mse_loss(tensor_tanh(tensor_matmul(x, w)), tensor_zeros(SHAPE(5, 4), TENSOR_F32));
    Tensor *hand = tensor_matmul(tensor_to(x, TENSOR_F16), tensor_to(w, TENSOR_F16));
    hand = tensor_mse_loss(tensor_to(tensor_tanh(hand), TENSOR_F32), tensor_zeros(SHAPE(5, 4), TENSOR_F32));
    assert_int_equal(tensor_dtype(loss), TENSOR_F32);
    assert_true(tensor_equal(loss, hand));
    assert_true(tensor_equal(tensor_gradients(loss, w), tensor_gradients(hand, w)));
    OK;
    tensor_scope_close(scope);
}

/* What linear makes for operands that were cast to a half is not rounded to it, unless somebody sees it. */
static void test_gradients_of_casts_are_not_rounded(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *leaf[] = { random_f32(5, 6, true), random_f32(4, 6, true), random_f32(1, 4, true) }, *half[3],
           *found[3], *seen[3];
    Tensor *g = tensor_to(tensor_randn(SHAPE(5, 4), TENSOR_F32), TENSOR_BF16);
    for (int i = 0; i < 3; i++)
        half[i] = tensor_to(i < 2 ? leaf[i] : tensor_flatten(leaf[i], 0, 1), TENSOR_BF16);
    Tensor *y = tensor_linear(half[0], half[1], half[2]), *wide = tensor_to(g, TENSOR_F32);
    assert_int_equal(tensor_gradients_many(TENSORS(y), TENSOR_LIST(leaf, 3), found,
                                           .grad_outputs = TENSORS(g), .retain_graph = true),
                     0);
    Tensor *want[] = { tensor_matmul(wide, tensor_to(half[1], TENSOR_F32)),
                       tensor_matmul(tensor_t(wide), tensor_to(half[0], TENSOR_F32)),
                       tensor_sum(wide, 0, .keepdim = true) };
    for (int i = 0; i < 3; i++) assert_true(tensor_allclose(found[i], want[i], .rtol = 1e-5, .atol = 1e-6));
    assert_int_equal(tensor_gradients_many(TENSORS(y), TENSOR_LIST(half, 3), seen, .grad_outputs = TENSORS(g),
                                           .retain_graph = true),
                     0);
    for (int i = 0; i < 3; i++) assert_int_equal(tensor_dtype(seen[i]), TENSOR_BF16);
    for (int i = 0; i < 3; i++) tensor_retain_grad(half[i]);
    assert_int_equal(tensor_backward(y, .gradient = g), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tensor_dtype(tensor_grad(half[i])), TENSOR_BF16);
        assert_true(tensor_equal(tensor_grad(half[i]), seen[i]));
        assert_int_equal(tensor_dtype(tensor_grad(leaf[i])), TENSOR_F32);
    }
    OK;
    tensor_scope_close(scope);
}

/* Logits in a half stay so: the same loss and gradients as of their cast. */
static void test_cross_entropy_reads_halves(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to(random_f32(7, 9, false), TENSOR_BF16), *loss = NULL,
           *t = tensor_arange(1, 8, 1, TENSOR_I64), *v = tensor_arange(1, 10, 1, TENSOR_F32);
    tensor_requires_grad_(x, true);
    for (int i = 0; i < 3; i++) {
        const TensorReduction how = (TensorReduction)i;
        TENSOR_AUTOCAST(TENSOR_BF16)
        loss = tensor_cross_entropy(x, t, .weight = v, .reduction = how, .label_smoothing = .1);
        Tensor *hand = tensor_cross_entropy(tensor_to(x, TENSOR_F32), t, .weight = v, .reduction = how,
                                            .label_smoothing = .1);
        assert_int_equal(tensor_dtype(loss), TENSOR_F32);
        assert_true(tensor_equal(loss, hand));
        assert_true(
            tensor_equal(tensor_gradients(tensor_sum(loss), x), tensor_gradients(tensor_sum(hand), x)));
        TENSOR_AUTOCAST(TENSOR_BF16) loss = tensor_cross_entropy(x, t, .reduction = how);
        Tensor *dx = tensor_gradients(tensor_sum(loss), x, .create_graph = true);
        assert_int_equal(tensor_dtype(dx), TENSOR_BF16);
    }
    OK;
    tensor_scope_close(scope);
}

/* linear_cross_entropy is linear and cross_entropy there, too; its gradients round to bf16 on their way. */
static void test_the_fused_loss(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(0);
    Tensor *leaf[] = { random_f32(40, 16, true), random_f32(9, 16, true), random_f32(1, 9, true) };
    Tensor *t = tensor_remainder_scalar(tensor_arange(0, 40, 1, TENSOR_I64), 9),
           *v = tensor_arange(1, 10, 1, TENSOR_F32);
    Tensor *soft = tensor_softmax(tensor_randn(SHAPE(40, 9), TENSOR_F32), 1);
    for (int form = 0; form < 8; form++) { /* x in bf16, probabilities, several chunks */
        Tensor *got = NULL, *want = NULL, *grad[6], *target = form & 2 ? soft : t;
        const int64_t chunk = form & 4 ? 7 : 0;
        TENSOR_AUTOCAST(TENSOR_BF16)
        {
            Tensor *b = tensor_reshape(leaf[2], SHAPE(9)), *x = leaf[0];
            if (form & 1) x = tensor_to(x, TENSOR_BF16);
            got = tensor_linear_cross_entropy(x, leaf[1], target, b, .weight = v, .label_smoothing = 0.1,
                                              .chunk = chunk);
            want = tensor_cross_entropy(tensor_linear(x, leaf[1], b), target, .weight = v,
                                        .label_smoothing = 0.1);
        }
        OK;
        assert_int_equal(tensor_dtype(got), TENSOR_F32);
        assert_true(fabs(tensor_item(got) - tensor_item(want)) <= 1e-6 * tensor_item(want));
        tensor_gradients_many(TENSORS(got), TENSORS(leaf[0], leaf[1], leaf[2]), grad);
        tensor_gradients_many(TENSORS(want), TENSORS(leaf[0], leaf[1], leaf[2]), grad + 3);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(tensor_dtype(grad[k]), TENSOR_F32);
            assert_true(tensor_allclose(grad[k], grad[3 + k], .rtol = 0.01, .atol = 5e-3));
        }
    }
    /* the numbers of PyTorch 2.15 for both of its ways */
    Tensor *x = tensor_requires_grad_(
        tensor_reshape(tensor_div_scalar(tensor_arange(0, 32, 1, TENSOR_F32), 7), SHAPE(4, 8)), true);
    Tensor *w = tensor_requires_grad_(
        tensor_reshape(tensor_sin(tensor_arange(0, 40, 1, TENSOR_F32)), SHAPE(5, 8)), true);
    Tensor *loss = NULL, *target = tensor_from_data((int64_t[]){ 0, 1, 4, 2 }, SHAPE(4), TENSOR_I64);
    TENSOR_AUTOCAST(TENSOR_BF16) loss = tensor_linear_cross_entropy(x, w, target);
    assert_float_equal(tensor_item(loss), 3.2864630, 2e-5);
    Tensor *g = tensor_gradients(loss, w);
    assert_float_equal(tensor_item(tensor_select(tensor_select(g, 0, 1), 0, 2)), 1.015625, 4e-3);
    OK;
    tensor_scope_close(scope);
}

/* The sum stays f32, and what the next linear reads is rounded once. */
static void test_a_branch_is_added_and_normalized(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_randn(SHAPE(4, 8), TENSOR_F32), *w = tensor_randn(SHAPE(8), TENSOR_F32);
    Tensor *branch = tensor_to(tensor_randn(SHAPE(4, 8), TENSOR_F32), TENSOR_BF16);
    const TensorAddLayerNorm plain = tensor_add_layer_norm(x, branch, SHAPE(8), w);
    TensorAddLayerNorm cast = { NULL, NULL };
    TENSOR_AUTOCAST(TENSOR_BF16) cast = tensor_add_layer_norm(x, branch, SHAPE(8), w);
    assert_int_equal(tensor_dtype(plain.result), TENSOR_F32);
    assert_true(tensor_equal(plain.sum, tensor_add(x, branch)) && tensor_equal(cast.sum, plain.sum));
    assert_true(tensor_equal(cast.result, tensor_to(plain.result, TENSOR_BF16)));
    TENSOR_AUTOCAST(TENSOR_BF16) cast = tensor_add_layer_norm(x, branch, SHAPE(8), w, .dtype = TENSOR_F32);
    assert_true(tensor_equal(cast.result, plain.result));
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

static void test_blocks_nest(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *a = random_f32(2, 2, false);
    TENSOR_AUTOCAST(TENSOR_BF16)
    {
        TENSOR_AUTOCAST_OFF
        {
            assert_false(tensor_autocast_enabled());
            assert_int_equal(tensor_dtype(tensor_mm(a, a)), TENSOR_F32);
            TENSOR_AUTOCAST(TENSOR_F16)
            {
                assert_int_equal(tensor_autocast_dtype(), TENSOR_F16);
                assert_int_equal(tensor_dtype(tensor_mm(a, a)), TENSOR_F16);
                break;
            }
        }
        assert_int_equal(tensor_autocast_dtype(), TENSOR_BF16);
        assert_int_equal(tensor_dtype(tensor_mm(a, a)), TENSOR_BF16);
        TENSOR_AUTOCAST(TENSOR_F16, .enabled = false) assert_false(tensor_autocast_enabled());
    }
    TensorAutocast outer = tensor_autocast_begin(TENSOR_BF16), inner = tensor_autocast_begin(TENSOR_F16);
    tensor_autocast_end(outer); /* closes the inner one too */
    assert_false(tensor_autocast_enabled());
    tensor_autocast_end(inner); /* closed before: nothing */
    assert_false(tensor_autocast_enabled());
    assert_int_equal(tensor_dtype(tensor_mm(a, a)), TENSOR_F32);
    OK;
    tensor_scope_close(scope);
}

static void *dtype_elsewhere(void *unused)
{
    (void)unused;
    static int dtype[2];
    TensorScope scope = tensor_scope_open();
    Tensor *a = random_f32(2, 2, true);
    dtype[0] = (int)tensor_dtype(tensor_mm(a, a));
    tensor_autocast_begin(TENSOR_F16); /* never ended: the thread's end does */
    dtype[1] = (int)tensor_dtype(tensor_mm(a, a));
    tensor_scope_close(scope);
    return dtype;
}

static void test_a_block_is_the_threads(void **unused)
{
    (void)unused;
    const int64_t live = tensor_live_count();
    pthread_t thread;
    void *dtype = NULL;
    TENSOR_AUTOCAST(TENSOR_BF16)
    {
        assert_int_equal(pthread_create(&thread, NULL, dtype_elsewhere, NULL), 0);
        assert_int_equal(pthread_join(thread, &dtype), 0);
    }
    assert_int_equal(((int *)dtype)[0], TENSOR_F32);
    assert_int_equal(((int *)dtype)[1], TENSOR_F16);
    assert_int_equal(tensor_live_count(), live);
}

/* ---- kept casts ------------------------------------------------------------------------------ */

static int64_t casts(Tensor *x, Tensor *w, bool cached)
{
    const int64_t before = tensor_tape_length();
    TENSOR_AUTOCAST(TENSOR_BF16, .cache_enabled = cached)
    for (int i = 0; i < 5; i++) tensor_matmul(x, w);
    return tensor_tape_length() - before - 5; /* entries of products apart */
}

static void test_casts_of_parameters_are_kept(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to(random_f32(2, 3, false), TENSOR_BF16), *w = random_f32(3, 3, true);
    assert_int_equal(casts(x, w, true), 1);
    assert_int_equal(casts(x, w, false), 5);
    const int64_t live = tensor_live_count();
    TensorAutocast outer = tensor_autocast_begin(TENSOR_BF16);
    TensorScope inside = tensor_scope_open();
    for (int i = 0; i < 3; i++) TENSOR_AUTOCAST(TENSOR_BF16) tensor_matmul(x, w);
    tensor_scope_close(inside);
    assert_int_equal(tensor_live_count(), live + 1); /* it outlives the scope and the inner blocks ... */
    tensor_clear_autocast_cache();
    assert_int_equal(tensor_live_count(), live);
    tensor_autocast_end(outer);
    OK;
    tensor_scope_close(scope);
}

static void test_casts_of_many_parameters_are_kept(void **unused)
{
    (void)unused;
    enum { MANY = 150 }; /* the table begins with 64 places */
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to(random_f32(2, 3, false), TENSOR_BF16), *w[MANY];
    for (int i = 0; i < MANY; i++) w[i] = random_f32(3, 3, true);
    const int64_t before = tensor_tape_length();
    TENSOR_AUTOCAST(TENSOR_BF16)
    for (int i = 0; i < 2 * MANY; i++) tensor_matmul(x, w[i % MANY]);
    assert_int_equal(tensor_tape_length() - before, MANY + 2 * MANY);
    OK;
    tensor_scope_close(scope);
}

static void test_a_kept_cast_notices_writes(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_ones(SHAPE(1, 1), TENSOR_BF16), *w = tensor_ones(SHAPE(1, 1), TENSOR_F32);
    tensor_requires_grad_(w, true);
    TENSOR_AUTOCAST(TENSOR_BF16)
    {
        assert_true(tensor_item(tensor_matmul(x, w)) == 1);
        TENSOR_NO_GRAD {
            tensor_mul_scalar_(w, 3);
            Tensor *y = tensor_matmul(x, w);
            assert_true(tensor_item(y) == 3);
            assert_false(tensor_requires_grad(y));
        }
        Tensor *y = tensor_matmul(x, w); /* the one kept without a graph does not serve */
        assert_int_equal(tensor_backward(tensor_sum(y)), 0);
        assert_true(tensor_item(tensor_grad(w)) == 1);
        assert_int_equal(tensor_backward(tensor_sum(tensor_matmul(x, w))), 0); /* through the same cast */
        assert_true(tensor_item(tensor_grad(w)) == 2);
        assert_int_equal(tensor_set_data(w, tensor_full(SHAPE(1, 1), 5, TENSOR_F32)), 0);
        assert_true(tensor_item(tensor_matmul(x, w)) == 5);
    }
    OK;
    tensor_scope_close(scope);
}

/* ---- other ways in --------------------------------------------------------------------------- */

static int doubled(OpCall *c)
{
    const float *x = op_input_f32(c, 0);
    float *y = op_output_f32(c, 0);
    for (int64_t i = 0; i < op_count(c, 0); i++) y[i] = 2 * x[i];
    return 0;
}

static int no_halves(OpCall *c)
{
    if (op_input_dtype(c, 0) == TENSOR_F32) return op_same_shape(c);
    return op_fail(c, TENSOR_EDTYPE, "it has no form for %s", tensor_dtype_name(op_input_dtype(c, 0)));
}

static void test_ops_of_the_users(void **unused)
{
    (void)unused;
    static const TensorOp as_is = { .name = "doubled",
                                    .arity = 1,
                                    .shape = op_same_shape,
                                    .forward = doubled },
                          lower = { .name = "doubled",
                                    .arity = 1,
                                    .shape = op_same_shape,
                                    .forward = doubled,
                                    .autocast = AUTOCAST_LOWER },
                          f32 = { .name = "doubled",
                                  .arity = 1,
                                  .shape = no_halves,
                                  .forward = doubled,
                                  .autocast = AUTOCAST_F32 },
                          refuses = { .name = "doubled",
                                      .arity = 1,
                                      .shape = no_halves,
                                      .forward = doubled,
                                      .autocast = AUTOCAST_LOWER };
    TensorScope scope = tensor_scope_open();
    Tensor *x = random_f32(2, 2, false), *h = tensor_to(x, TENSOR_BF16), *i = tensor_to(x, TENSOR_I64),
           *d = tensor_to(x, TENSOR_F64);
    TENSOR_AUTOCAST(TENSOR_BF16)
    {
        assert_int_equal(tensor_dtype(tensor_apply(&as_is, &x, 1, NULL)), TENSOR_F32);
        assert_int_equal(tensor_dtype(tensor_apply(&as_is, &h, 1, NULL)), TENSOR_BF16);
        assert_int_equal(tensor_dtype(tensor_apply(&lower, &x, 1, NULL)), TENSOR_BF16);
        assert_int_equal(tensor_dtype(tensor_apply(&lower, &i, 1, NULL)), TENSOR_I64);
        assert_int_equal(tensor_dtype(tensor_apply(&lower, &d, 1, NULL)), TENSOR_F64);
        assert_int_equal(tensor_dtype(tensor_apply(&f32, &h, 1, NULL)), TENSOR_F32);
        OK;
        assert_null(tensor_apply(&refuses, &x, 1, NULL));
        assert_int_equal(tensor_error_code(), TENSOR_EDTYPE);
        assert_non_null(strstr(tensor_error(), "doubled: it has no form for bf16"));
        assert_true(tensor_autocast_enabled()); /* a failed call leaves the block as it was */
        tensor_error_clear();
    }
    tensor_scope_close(scope);
}

static void test_in_place_casts_nothing(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = random_f32(2, 2, false), *w = random_f32(2, 2, false), *want = tensor_clone(x);
    want = tensor_addmm(want, w, w);
    TENSOR_AUTOCAST(TENSOR_BF16)
    {
        assert_ptr_equal(tensor_addmm_(x, w, w), x);
        tensor_add_(x, tensor_zeros(SHAPE(2, 2), TENSOR_F32));
    }
    assert_int_equal(tensor_dtype(x), TENSOR_F32);
    assert_true(tensor_equal(x, want));
    OK;
    tensor_scope_close(scope);
}

/* A sweep's own ops run in the dtypes of the forward ones, inside a block too. */
static void test_backward_inside_a_block(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *w = random_f32(3, 3, true), *x = random_f32(3, 3, false);
    Tensor *y = tensor_sum(tensor_matmul(x, w)), *want = tensor_gradients(y, w, .retain_graph = true),
           *got = NULL;
    TENSOR_AUTOCAST(TENSOR_BF16) got = tensor_gradients(y, w, .create_graph = true);
    assert_true(tensor_equal(got, want));
    OK;
    tensor_scope_close(scope);
}

/* A sum of 4096 ones, which bf16 would stop at 256 and f16 at 2048. */
static void test_products_of_halves_add_up_in_f32(void **unused)
{
    (void)unused;
    static const TensorDtype half[] = { TENSOR_BF16, TENSOR_F16 };
    TensorScope scope = tensor_scope_open();
    Tensor *a = tensor_ones(SHAPE(2, 4096), TENSOR_F32), *b = tensor_ones(SHAPE(4096, 2), TENSOR_F32);
    Tensor *image = tensor_ones(SHAPE(1, 1024, 2, 2), TENSOR_F32),
           *filter = tensor_ones(SHAPE(1, 1024, 2, 2), TENSOR_F32);
    for (int i = 0; i < 2; i++) TENSOR_AUTOCAST(half[i])
        {
            Tensor *y[] = { tensor_matmul(a, b), tensor_linear(a, tensor_t(b), NULL),
                            tensor_bmm(tensor_unsqueeze(a, 0), tensor_unsqueeze(b, 0)),
                            tensor_addmm(tensor_zeros(SHAPE(2, 2), TENSOR_F32), a, b),
                            tensor_conv2d(image, filter, NULL) };
            for (int k = 0; k < 5; k++) {
                assert_int_equal(tensor_dtype(y[k]), half[i]);
                assert_true(tensor_item(tensor_amax(tensor_to(y[k], TENSOR_F32))) == 4096);
            }
        }
    OK;
    tensor_scope_close(scope);
}

/* ---- what fails ------------------------------------------------------------------------------ */

static void test_bad_input(void **unused)
{
    (void)unused;
    static const TensorDtype wrong[] = { TENSOR_F32, TENSOR_F64, TENSOR_I64, (TensorDtype)77 };
    TensorScope scope = tensor_scope_open();
    Tensor *a = random_f32(2, 2, false);
    for (int i = 0; i < 4; i++) {
        TENSOR_AUTOCAST(wrong[i])
        {
            assert_false(tensor_autocast_enabled());
            assert_int_equal(tensor_error_code(), TENSOR_EDTYPE);
            tensor_error_clear();
            TENSOR_AUTOCAST(TENSOR_BF16) assert_int_equal(tensor_dtype(tensor_mm(a, a)), TENSOR_BF16);
        }
    }
    tensor_autocast_begin_args((TensorAutocastArgs){ .dtype = TENSOR_BF16, .enabled = true });
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE); /* no struct that starts from the defaults */
    assert_false(tensor_autocast_enabled());
    tensor_error_clear();
    tensor_autocast_end((TensorAutocast){ .depth = 3, .enabled = true });
    assert_false(tensor_autocast_enabled());
    assert_int_equal(tensor_set_float32_matmul_precision((TensorMatmulPrecision)3), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
    tensor_scope_close(scope);
}

static void test_matmul_precision(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *a = random_f32(20, 30, false), *b = random_f32(30, 20, false), *y = tensor_mm(a, b);
    assert_int_equal(tensor_get_float32_matmul_precision(), TENSOR_MATMUL_HIGHEST);
    for (int p = TENSOR_MATMUL_MEDIUM; p >= TENSOR_MATMUL_HIGHEST; p--) {
        assert_int_equal(tensor_set_float32_matmul_precision((TensorMatmulPrecision)p), 0);
        assert_int_equal(tensor_get_float32_matmul_precision(), p);
        assert_true(tensor_equal(tensor_mm(a, b), y)); /* small: f32 */
    }
    OK;
    tensor_scope_close(scope);
}

static double step(Tensor *x, Tensor *w)
{
    double loss = 0;
    TensorScope scope = tensor_scope_open();
    TENSOR_AUTOCAST(TENSOR_BF16)
    {
        Tensor *h = tensor_exp(tensor_matmul(tensor_cat(TENSORS(x, x), 0), w));
        Tensor *y = tensor_mse_loss(tensor_matmul(h, w), tensor_ones(SHAPE(4, 2), TENSOR_F32));
        if (!tensor_backward(y)) loss = tensor_item(y);
    }
    tensor_scope_close(scope);
    return loss;
}

static void test_every_allocation_may_fail(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = random_f32(2, 2, false), *w = random_f32(2, 2, true);
    const double want = step(x, w);
    tensor_set_grad(w, NULL);
    OK;
    const int64_t live = tensor_live_count();
    bool failed = true;
    for (int n = 1; failed; n++) {
        assert_true(n < 2000);
        tensor_debug_fail_allocation(n, false);
        const double got = step(x, w);
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_false(tensor_autocast_enabled());
        assert_true(tensor_error() ? !tensor_grad(w) : got == want); /* a cast that is not kept is no error */
        if (tensor_error()) assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        tensor_error_clear();
        tensor_set_grad(w, NULL);
        assert_int_equal(tensor_live_count(), live);
    }
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_are_lower_and_gradients_f32),
        cmocka_unit_test(test_as_casts_by_hand),
        cmocka_unit_test(test_gradients_of_casts_are_not_rounded),
        cmocka_unit_test(test_cross_entropy_reads_halves),
        cmocka_unit_test(test_the_fused_loss),
        cmocka_unit_test(test_a_branch_is_added_and_normalized),
        cmocka_unit_test(test_blocks_nest),
        cmocka_unit_test(test_a_block_is_the_threads),
        cmocka_unit_test(test_casts_of_parameters_are_kept),
        cmocka_unit_test(test_casts_of_many_parameters_are_kept),
        cmocka_unit_test(test_a_kept_cast_notices_writes),
        cmocka_unit_test(test_ops_of_the_users),
        cmocka_unit_test(test_in_place_casts_nothing),
        cmocka_unit_test(test_backward_inside_a_block),
        cmocka_unit_test(test_products_of_halves_add_up_in_f32),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_matmul_precision),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
