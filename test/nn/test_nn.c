/* test_nn.c - layers: PyTorch's initial values and results, training, clipping, failing memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tapegrad.h>
#include <tapegrad/cmocka.h>

#include "oracle/nn_golden.h"

#define EXACT 5e-9 /* f32, as far as nine digits tell */
#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))

static int64_t live; /* tensors before the test */

static int remember(void **state)
{
    (void)state;
    live = tensor_live_count();
    return 0;
}

static int nothing_left(void **state)
{
    (void)state;
    if (tensor_error()) print_error("%s\n", tensor_error());
    return tensor_error() || tensor_live_count() != live ? -1 : 0;
}

/* x_i = ((7 i) mod 13 - 6) / 8, as oracle/nn.py has it. */
static Tensor *ramp(TensorShape shape, TensorDtype dtype)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    Tensor *i = tensor_arange(0, (double)n, 1, TENSOR_F64), *x = tensor_mul_scalar(i, 7);
    x = tensor_sub(x, tensor_mul_scalar(tensor_floor(tensor_div_scalar(x, 13)), 13));
    return tensor_to(tensor_reshape(tensor_div_scalar(tensor_sub_scalar(x, 6), 8), shape), dtype);
}

static void assert_values(Tensor *x, const double *want, int64_t n, double tolerance)
{
    if (!x || tensor_error()) fail_msg("%s", tensor_error() ? tensor_error() : "NULL");
    assert_int_equal(tensor_numel(x), n);
    double *found = malloc((size_t)n * sizeof *found);
    TensorScope scope = tensor_scope_open();
    assert_int_equal(
        tensor_copy_to(tensor_to(tensor_detach(x), TENSOR_F64), found, (size_t)n * sizeof *found), 0);
    tensor_scope_close(scope);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(found[i] - want[i]) <= tolerance * (1 + fabs(want[i]))))
            fail_msg("[%lld]: %.17g, wanted %.17g", (long long)i, found[i], want[i]);
    free(found);
}

/* ---- initial values -------------------------------------------------------------------------- */

static void assert_parameters(Module *m, const double *want, int64_t n, double tolerance)
{
    assert_non_null(m);
    TensorScope scope = tensor_scope_open();
    TensorList list = nn_parameters(m);
    Tensor *flat[16];
    for (int i = 0; i < list.count; i++) flat[i] = tensor_flatten(tensor_detach(list.item[i]));
    assert_values(tensor_cat(TENSOR_LIST(flat, list.count)), want, n, tolerance);
    tensor_scope_close(scope);
    nn_free(m);
}

static void initial_values(void **state)
{
    (void)state;
#define CHECK(name, tolerance, module) \
    tensor_manual_seed(0);             \
    assert_parameters(module, golden_init_##name, COUNT(golden_init_##name), tolerance)
    CHECK(linear, EXACT, nn_linear(3, 2));
    CHECK(linear_f64, 1e-16, nn_linear(3, 2, .dtype = TENSOR_F64));
    CHECK(conv2d, EXACT, nn_conv2d(4, 2, .kernel_sizes = { 2, 1 }, .groups = 2));
    CHECK(embedding, 2e-7, nn_embedding(3, 2, .padding_idx = 1));
    CHECK(attention, EXACT, nn_multihead_attention(4, 2));
    CHECK(net, EXACT,
          nn_sequential(nn_linear(2, 2), nn_batch_norm1d(2), nn_relu(), nn_layer_norm(2, .bias = false),
                        nn_linear(2, 1, .bias = false)));
#undef CHECK
}

static void init_functions(void **state)
{
    (void)state;
#define CHECK(name, tolerance, shape, call)                                         \
    do {                                                                            \
        TensorScope scope = tensor_scope_open();                                    \
        Tensor *x = tensor_requires_grad_(tensor_empty(shape, TENSOR_F32), true);   \
        tensor_manual_seed(0);                                                      \
        assert_ptr_equal(call, x);                                                  \
        assert_values(x, golden_init_##name, COUNT(golden_init_##name), tolerance); \
        assert_true(tensor_grad_enabled() && tensor_is_leaf(x));                    \
        tensor_scope_close(scope);                                                  \
    } while (0)
    CHECK(xavier_uniform, EXACT, SHAPE(2, 3),
          nn_init_xavier_uniform_(x, .gain = nn_calculate_gain(NN_GAIN_TANH, 0)));
    CHECK(xavier_normal, 2e-7, SHAPE(2, 3, 2), nn_init_xavier_normal_(x));
    CHECK(kaiming_uniform, EXACT, SHAPE(2, 3), nn_init_kaiming_uniform_(x, 0.2));
    CHECK(kaiming_normal, 2e-7, SHAPE(2, 3, 2),
          nn_init_kaiming_normal_(x, .mode = NN_FAN_OUT, .nonlinearity = NN_GAIN_RELU));
    CHECK(trunc_normal, 2e-7, SHAPE(6), nn_init_trunc_normal_(x, .std = 0.02));
    CHECK(orthogonal_wide, 1e-6, SHAPE(2, 3), nn_init_orthogonal_(x));
    CHECK(orthogonal_tall, 1e-6, SHAPE(3, 2), nn_init_orthogonal_(x, .gain = 2));
    CHECK(eye_wide, EXACT, SHAPE(2, 4), nn_init_eye_(x));
    CHECK(eye_tall, EXACT, SHAPE(4, 2), nn_init_eye_(x));
    CHECK(dirac1d, EXACT, SHAPE(3, 2, 4), nn_init_dirac_(x));
    CHECK(dirac2d, EXACT, SHAPE(4, 3, 3, 2), nn_init_dirac_(x, .groups = 2));
    CHECK(dirac3d, EXACT, SHAPE(3, 1, 2, 1, 3), nn_init_dirac_(x, .groups = 3));
    CHECK(sparse, 2e-7, SHAPE(5, 4), nn_init_sparse_(x, 0.3));
    CHECK(sparse_wide, 2e-7, SHAPE(3, 6), nn_init_sparse_(x, 1. / 3, .std = 2));
    CHECK(sparse_turned, 2e-7, SHAPE(5, 4), (nn_init_sparse_(tensor_t(x), 0.5), x));
#undef CHECK
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_empty(SHAPE(3), TENSOR_F32);
    assert_true(tensor_item(tensor_sum(nn_init_ones_(x))) == 3 &&
                tensor_item(tensor_sum(nn_init_constant_(x, -2))) == -6);
    assert_true(tensor_item(tensor_sum(nn_init_zeros_(x))) == 0);
    assert_true(tensor_item(tensor_amax(nn_init_uniform_(x, 2, 3))) < 3);
    assert_true(fabs(nn_calculate_gain(NN_GAIN_LEAKY_RELU, 0.2) - sqrt(2 / 1.04)) < 1e-15 &&
                nn_calculate_gain(NN_GAIN_LINEAR, 0) == 1);
    assert_true(isnan(nn_calculate_gain((NNGain)9, 0)));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_tensor_error(nn_init_xavier_uniform_(x), TENSOR_ESHAPE);
    assert_tensor_error(nn_init_kaiming_normal_(x, .nonlinearity = (NNGain)9), TENSOR_ESHAPE);
    assert_tensor_error(nn_init_orthogonal_(NULL), TENSOR_ENULL);
    tensor_scope_close(scope);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static void ramps(Module *m, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < m->parameter_count; i++)
        TENSOR_NO_GRAD {
            TensorScope scope = tensor_scope_open();
            Tensor *p = m->parameters[i].tensor;
            tensor_copy_(p, tensor_div_scalar(ramp(tensor_shape(p), TENSOR_F64), 2));
            tensor_scope_close(scope);
        }
}

static void check_attention(bool causal, bool batch_first, const double *want, int64_t n)
{
    TensorScope scope = tensor_scope_open();
    Module *m =
        nn_multihead_attention(4, 2, .causal = causal, .batch_first = batch_first, .dtype = TENSOR_F64);
    nn_apply(m, ramps, NULL);
    Tensor *x = ramp(SHAPE(3, 2, 4), TENSOR_F64);
    Tensor *y = nn_forward(m, batch_first ? tensor_transpose(x, 0, 1) : x);
    assert_values(batch_first ? tensor_transpose(y, 0, 1) : y, want, n, 1e-14);
    Tensor *alone = nn_forward(m, tensor_select(x, 1, 0));
    assert_tensor_close(alone, tensor_select(y, batch_first ? 0 : 1, 0), 1e-14, 1e-14);
    assert_tensor_error(nn_forward(m, tensor_ones(SHAPE(3, 2, 5), TENSOR_F64)), TENSOR_ESHAPE);
    nn_free(m);
    tensor_scope_close(scope);
}

static void attention(void **state)
{
    (void)state;
    for (int batch_first = 0; batch_first < 2; batch_first++) {
        check_attention(false, batch_first, golden_attention, COUNT(golden_attention));
        check_attention(true, batch_first, golden_attention_causal, COUNT(golden_attention_causal));
    }
    assert_null(nn_multihead_attention(5, 2));
    assert_status_error(-1, TENSOR_EVALUE);
}

static void check_batch_norm(double momentum, const double *want)
{
    TensorScope scope = tensor_scope_open();
    Module *m = nn_batch_norm1d(3, .momentum = momentum, .dtype = TENSOR_F64);
    Tensor *y = NULL;
    for (int k = 1; k <= 3; k++)
        y = nn_forward(m, tensor_add_scalar(tensor_mul_scalar(ramp(SHAPE(4, 3), TENSOR_F64), k), k));
    assert_values(y, want, 12, 1e-13);
    assert_values(nn_get(m, "running_mean"), want + 12, 3, 1e-13);
    assert_values(nn_get(m, "running_var"), want + 15, 3, 1e-13);
    assert_int_equal(tensor_item_i64(nn_get(m, "num_batches_tracked")), 3);
    nn_eval(m);
    assert_values(nn_forward(m, ramp(SHAPE(4, 3), TENSOR_F64)), want + 18, 12, 1e-13);
    assert_int_equal(tensor_item_i64(nn_get(m, "num_batches_tracked")), 3);
    assert_false(tensor_requires_grad(nn_get(m, "running_mean")));
    nn_free(m);
    tensor_scope_close(scope);
}

static void batch_norm(void **state)
{
    (void)state;
    check_batch_norm(0.1, golden_batch_norm);
    check_batch_norm(-1, golden_batch_norm_cumulative);
    TensorScope scope = tensor_scope_open();
    Module *m = nn_batch_norm2d(2, .affine = false, .track_running_stats = false);
    assert_int_equal(nn_num_parameters(m), 0);
    Tensor *x = tensor_randn(SHAPE(3, 2, 2, 2), TENSOR_F32), *y = nn_forward(m, x);
    nn_eval(m);
    assert_tensor_close(nn_forward(m, x), y, 0, 0); /* no running statistics: the batch's */
    assert_tensor_error(nn_forward(m, tensor_ones(SHAPE(3, 2), TENSOR_F32)), TENSOR_ESHAPE);
    nn_free(m);
    m = nn_batch_norm1d(2);
    assert_tensor_error(nn_forward(m, tensor_ones(SHAPE(1, 2), TENSOR_F32)), TENSOR_ESHAPE);
    assert_int_equal(tensor_item_i64(nn_get(m, "num_batches_tracked")), 0);
    nn_free(m);
    tensor_scope_close(scope);
}

/* Every layer is its op. */
static void layers_are_ops(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_randn(SHAPE(2, 4, 6, 6), TENSOR_F64), *w, *b;
#define CHECK(module, input, y)                                      \
    do {                                                             \
        Module *m = module;                                          \
        assert_non_null(m);                                          \
        w = m->parameter_count > 0 ? m->parameters[0].tensor : NULL, \
        b = m->parameter_count > 1 ? m->parameters[1].tensor : NULL; \
        assert_tensor_close(nn_forward(m, input), y, 0, 0);          \
        (void)w, (void)b;                                            \
        nn_free(m);                                                  \
    } while (0)
    CHECK(nn_identity(), x, x);
    CHECK(nn_relu(), x, tensor_relu(x));
    CHECK(nn_silu(), x, tensor_silu(x));
    CHECK(nn_tanh(), x, tensor_tanh(x));
    CHECK(nn_sigmoid(), x, tensor_sigmoid(x));
    CHECK(nn_leaky_relu(), x, tensor_leaky_relu(x, 0.01));
    CHECK(nn_leaky_relu(0.2), x, tensor_leaky_relu(x, 0.2));
    CHECK(nn_elu(), x, tensor_elu(x, 1));
    CHECK(nn_elu(0.5), x, tensor_elu(x, 0.5));
    CHECK(nn_gelu(), x, tensor_gelu(x));
    CHECK(nn_gelu(.approximate = TENSOR_GELU_TANH), x, tensor_gelu_tanh(x));
    CHECK(nn_softmax(1), x, tensor_softmax(x, 1));
    CHECK(nn_log_softmax(-1), x, tensor_log_softmax(x, -1));
    CHECK(nn_flatten(), x, tensor_flatten(x, 1));
    CHECK(nn_flatten(0, 1), x, tensor_flatten(x, 0, 1));
    CHECK(nn_flatten(.start_dim = 2), x, tensor_flatten(x, 2));
    CHECK(nn_max_pool2d(2), x, tensor_max_pool2d(x, 2));
    CHECK(nn_max_pool2d(3, 2, 1, .dilation = 1, .ceil_mode = true), x,
          tensor_max_pool2d(x, 3, 2, 1, .ceil_mode = true));
    CHECK(nn_avg_pool2d(.kernel_sizes = { 3, 3 }, .padding = 1, .count_include_pad = false), x,
          tensor_avg_pool2d(x, 3, .padding = 1, .count_include_pad = false));
    CHECK(nn_adaptive_avg_pool2d(1, 2), x, tensor_adaptive_avg_pool2d(x, SHAPE(1, 2)));
    CHECK(nn_linear(6, 3, .dtype = TENSOR_F64), x, tensor_linear(x, w, b));
    CHECK(nn_linear(6, 3, .bias = false, .dtype = TENSOR_F64), x, tensor_linear(x, w, NULL));
    CHECK(nn_conv2d(4, 6, 3, 2, 1, .groups = 2, .dtype = TENSOR_F64), x,
          tensor_conv2d(x, w, b, .stride = 2, .padding = 1, .groups = 2));
    CHECK(nn_conv2d(4, 2, 3, .padding = TENSOR_SAME, .bias = false, .dtype = TENSOR_F64), x,
          tensor_conv2d(x, w, NULL, .padding = TENSOR_SAME));
    CHECK(nn_layer_norm(6, .dtype = TENSOR_F64), x, tensor_layer_norm(x, SHAPE(6), w, b));
    CHECK(nn_layer_norm(.normalized_shape = SHAPE(6, 6), .bias = false, .eps = 0.1, .dtype = TENSOR_F64), x,
          tensor_layer_norm(x, SHAPE(6, 6), w, NULL, 0.1));
    CHECK(nn_layer_norm(6, .elementwise_affine = false), x, tensor_layer_norm(x, SHAPE(6)));
    Tensor *index = tensor_randint(0, 5, SHAPE(2, 3));
    CHECK(nn_embedding(5, 4), index, tensor_embedding(index, w));
#undef CHECK
    tensor_scope_close(scope);
}

static void dropouts(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m = nn_sequential(nn_dropout(0.25), nn_dropout2d());
    Tensor *x = tensor_ones(SHAPE(40, 50, 2), TENSOR_F32);
    tensor_manual_seed(1);
    Tensor *y = nn_forward(m->children[0].module, x);
    assert_true(fabs(tensor_item(tensor_mean(y)) - 1) < 0.05 &&
                fabs((double)tensor_item_i64(tensor_count_nonzero(y)) / 4000 - 0.75) < 0.03);
    y = nn_forward(m->children[1].module, x);
    assert_tensor_close(tensor_select(y, 2, 0), tensor_select(y, 2, 1), 0, 0);
    nn_eval(m);
    assert_true(tensor_equal(nn_forward(m, x), x));
    nn_train(m, true);
    assert_false(tensor_equal(nn_forward(m, x), x));
    nn_free(m);
    assert_null(nn_dropout(1.5));
    assert_status_error(-1, TENSOR_EVALUE);
    tensor_scope_close(scope);
}

static void refused_layers(void **state)
{
    (void)state;
#define CHECK(module, code) \
    assert_null(module);    \
    assert_status_error(-1, code)
    CHECK(nn_linear(-1, 2), TENSOR_EVALUE);
    CHECK(nn_linear(3, 2, .dtype = TENSOR_I64), TENSOR_EDTYPE);
    CHECK(nn_conv2d(0, 2, 3), TENSOR_EVALUE);
    CHECK(nn_conv2d(3, 4, 3, .groups = 2), TENSOR_EVALUE);
    CHECK(nn_conv2d(3, 4, 0), TENSOR_EVALUE);
    CHECK(nn_max_pool2d(0), TENSOR_EVALUE);
    CHECK(nn_avg_pool2d(-1), TENSOR_EVALUE);
    CHECK(nn_adaptive_avg_pool2d(-1, 1), TENSOR_EVALUE);
    CHECK(nn_embedding(3, 2, .padding_idx = 3), TENSOR_EVALUE);
    CHECK(nn_batch_norm2d(-1), TENSOR_EVALUE);
    CHECK(nn_layer_norm(0), TENSOR_EVALUE);
    CHECK(nn_gelu(.approximate = (TensorGelu)7), TENSOR_EVALUE);
    CHECK(nn_sequential(nn_relu(), NULL, nn_linear(2, 2)), TENSOR_ENULL);
    CHECK(nn_sequential(nn_relu(), nn_linear(-2, 2), nn_linear(2, 2)), TENSOR_EVALUE);
#undef CHECK
}

/* ---- training, as a user writes it ----------------------------------------------------------- */

static void mlp(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(0);
    Module *net =
        nn_sequential(nn_linear(4, 8, .dtype = TENSOR_F64), nn_tanh(), nn_linear(8, 3, .dtype = TENSOR_F64));
    Optimizer *opt = optim_adam(nn_parameters(net), .lr = 0.05);
    Tensor *x = ramp(SHAPE(5, 4), TENSOR_F64),
           *y = tensor_from_data((int64_t[]){ 0, 1, 2, 0, 1 }, SHAPE(5), TENSOR_I64);
    double losses[COUNT(golden_mlp_losses)];
    for (int i = 0; i < COUNT(golden_mlp_losses); i++) {
        TensorScope step = tensor_scope_open();
        Tensor *loss = tensor_cross_entropy(nn_forward(net, x), y);
        optim_zero_grad(opt);
        tensor_backward(loss);
        optim_step(opt);
        losses[i] = tensor_item(loss);
        tensor_scope_close(step);
    }
    assert_values(tensor_from_data(losses, SHAPE(COUNT(losses)), TENSOR_F64), golden_mlp_losses,
                  COUNT(losses), 1e-12);
    optim_free(opt), nn_free(net);
    tensor_scope_close(scope);
}

typedef struct {
    Module base;
    Module *norm1, *attention, *norm2, *mlp;
} Block;

static Tensor *block_forward(Module *self, Tensor *x)
{
    Block *b = (Block *)self;
    TensorScope scope = tensor_scope_open();
    x = tensor_add(x, nn_forward(b->attention, nn_forward(b->norm1, x)));
    x = tensor_add(x, nn_forward(b->mlp, nn_forward(b->norm2, x)));
    return tensor_scope_return(scope, x);
}

static Module *block(int64_t width, int heads)
{
    Block *b = nn_new(Block, "Block", block_forward);
    b->norm1 = nn_child(b, "norm1", nn_layer_norm(width));
    b->attention = nn_child(b, "attention", nn_multihead_attention(width, heads, .causal = true));
    b->norm2 = nn_child(b, "norm2", nn_layer_norm(width));
    b->mlp = nn_child(b, "mlp",
                      nn_sequential(nn_linear(width, 4 * width), nn_gelu(), nn_linear(4 * width, width)));
    return nn_done(b); /* NULL, and everything freed, if any part failed */
}

static Tensor *run_block(Tensor **inputs, int n, void *ctx)
{
    (void)n;
    return nn_forward(ctx, inputs[0]);
}

static void block_of_ones_own(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m = block(8, 2);
    assert_non_null(m);
    assert_int_equal(nn_to(m, TENSOR_F64), 0);
    TensorDict named = nn_named_parameters(m);
    assert_int_equal(named.count, 12);
    assert_string_equal(named.item[2].name, "attention.in_proj_weight");
    assert_string_equal(named.item[11].name, "mlp.2.bias");
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(3, 2, 8), TENSOR_F64), true);
    assert_gradcheck_with(.fn = run_block, .ctx = m, .inputs = TENSORS(x));
    tensor_backward(tensor_sum(nn_forward(m, x)));
    for (int i = 0; i < named.count; i++) assert_non_null(tensor_grad(named.item[i].tensor));
    nn_free(m);
    assert_null(block(8, 3)); /* 3 heads do not divide 8 */
    assert_status_error(-1, TENSOR_EVALUE);
    tensor_scope_close(scope);
}

/* Without a gradient to record only the current activation lives, also in nested containers. */
static int64_t most_alive;

static Tensor *count_forward(Module *self, Tensor *x)
{
    (void)self;
    Tensor *y = tensor_add_scalar(x, 1);
    if (tensor_live_count() > most_alive) most_alive = tensor_live_count();
    return y;
}

static Module *counting(void) { return nn_done(nn_new_size(sizeof(Module), "Counting", count_forward)); }

static void activations_are_freed(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m =
        nn_sequential(counting(), nn_sequential(counting(), counting(), counting()), counting(), counting());
    Tensor *x = tensor_zeros(SHAPE(2), TENSOR_F32);
    int64_t before = tensor_live_count();
    most_alive = 0;
    assert_true(tensor_item(tensor_sum(nn_forward(m, x))) == 12);
    assert_true(most_alive <= before + 3);
    nn_free(m);
    tensor_scope_close(scope);
}

/* ---- clipping -------------------------------------------------------------------------------- */

static void clipping(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *a = tensor_zeros(SHAPE(2), TENSOR_F32), *b = tensor_zeros(SHAPE(1), TENSOR_F32),
           *none = tensor_zeros(SHAPE(1), TENSOR_F32);
    TensorList list = TENSORS(a, none, b);
    tensor_set_grad(a, tensor_from_data((float[]){ 3, 0 }, SHAPE(2), TENSOR_F32));
    tensor_set_grad(b, tensor_from_data((float[]){ -4 }, SHAPE(1), TENSOR_F32));
    assert_true(tensor_item(nn_clip_grad_norm_(list, 10)) == 5 && tensor_get(tensor_grad(a), DIMS(0)) == 3);
    assert_true(tensor_item(nn_clip_grad_norm_(list, 2, .norm_type = INFINITY)) == 4);
    assert_true(fabs(tensor_get(tensor_grad(a), DIMS(0)) - 1.5) < 1e-6 &&
                fabs(tensor_get(tensor_grad(b), DIMS(0)) + 2) < 1e-6);
    assert_true(fabs(tensor_item(nn_clip_grad_norm_(list, 1)) - 2.5) < 1e-6 &&
                fabs(tensor_item(nn_clip_grad_norm_(list, 1)) - 1) < 1e-6);
    assert_true(fabs(tensor_item(nn_clip_grad_norm_(list, 100, 1)) - 1.4) < 1e-5);
    assert_int_equal(nn_clip_grad_value_(list, 0.5), 0);
    assert_true(tensor_get(tensor_grad(a), DIMS(0)) == 0.5 && tensor_get(tensor_grad(b), DIMS(0)) == -0.5);
    assert_null(tensor_grad(none));
    tensor_set_grad(b, tensor_full(SHAPE(1), INFINITY, TENSOR_F32));
    assert_null(nn_clip_grad_norm_(list, 1, .error_if_nonfinite = true));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_true(tensor_get(tensor_grad(a), DIMS(0)) == 0.5);
    assert_true(isinf(tensor_item(nn_clip_grad_norm_(list, 1))) && tensor_get(tensor_grad(a), DIMS(0)) == 0);
    assert_null(nn_clip_grad_norm_(list, -1));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_true(tensor_item(nn_clip_grad_norm_(TENSOR_LIST(NULL, 0), 1)) == 0);
    tensor_set_grad(a, tensor_from_data((float[]){ 3, 0 }, SHAPE(2), TENSOR_F32));
    tensor_set_grad(b, tensor_from_data((float[]){ -4 }, SHAPE(1), TENSOR_F32));
    Tensor *norm = nn_get_total_norm(TENSORS(tensor_grad(a), tensor_grad(b)), 1);
    assert_true(tensor_item(norm) == 7);
    assert_int_equal(nn_clip_grads_with_norm_(TENSORS(b), 3.5, norm), 0);
    assert_true(fabs(tensor_get(tensor_grad(b), DIMS(0)) + 2) < 1e-6 &&
                tensor_get(tensor_grad(a), DIMS(0)) == 3);
    assert_status_error(nn_clip_grads_with_norm_(TENSORS(b), -1, norm), TENSOR_EVALUE);
    assert_status_error(nn_clip_grads_with_norm_(TENSORS(b), 1, NULL), TENSOR_ENULL);
    tensor_scope_close(scope);
}

/* ---- no memory ------------------------------------------------------------------------------- */

static int everything(void)
{
    TensorScope scope = tensor_scope_open();
    Module *net = nn_sequential(nn_conv2d(1, 2, 3), nn_batch_norm2d(2), nn_flatten(), nn_layer_norm(8),
                                nn_linear(8, 4)),
           *b = block(4, 2), *e = nn_embedding(4, 4, .padding_idx = 0);
    Tensor *y = nn_forward(net, tensor_ones(SHAPE(2, 1, 4, 4), TENSOR_F32));
    y = tensor_add(nn_forward(b, y), nn_forward(e, tensor_zeros(SHAPE(2), TENSOR_I64)));
    TensorDict copy = nn_dict_clone(nn_state_dict(net));
    int status = nn_load_state_dict(net, copy);
    nn_to(net, TENSOR_F64);
    if (!y || tensor_error()) status = -1;
    nn_dict_free(copy);
    nn_free(net), nn_free(b), nn_free(e);
    tensor_scope_close(scope);
    return status;
}

static void failing_memory(void **state)
{
    (void)state;
    int64_t before = tensor_live_count();
    for (int n = 1, failed = 1; failed; n++) {
        tensor_debug_fail_allocation(n, false);
        int status = everything();
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        if (status) assert_status_error(status, TENSOR_ENOMEM);
        assert_null(tensor_error());
        assert_int_equal(tensor_live_count(), before);
        assert_true(tensor_grad_enabled());
    }
}

/* Past the buffers of the first layers too. */
static void gradients_are_dropped(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_sequential(nn_linear(3, 2), nn_batch_norm1d(2), nn_linear(2, 2), nn_batch_norm1d(2));
    tensor_backward(tensor_sum(tensor_square(nn_forward(net, tensor_randn(SHAPE(4, 3), TENSOR_F32)))));
    TensorList p = nn_parameters(net);
    assert_int_equal(p.count, 8);
    for (int i = 0; i < p.count; i++) assert_non_null(tensor_grad(p.item[i]));
    nn_zero_grad(net);
    for (int i = 0; i < p.count; i++) assert_null(tensor_grad(p.item[i]));
    nn_free(net);
    tensor_scope_close(scope);
}

/* make valgrind runs it: a copy looks through whole structs, and what lies between members is set, too. */
static void copied_transformers(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *m = nn_transformer(.d_model = 8, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 2,
                               .dim_feedforward = 8, .dtype = TENSOR_F64),
           *copy = nn_clone(m);
    assert_non_null(copy);
    nn_eval(m), nn_eval(copy);
    Tensor *x = tensor_randn(SHAPE(3, 2, 8), TENSOR_F64), *y = tensor_randn(SHAPE(2, 2, 8), TENSOR_F64);
    assert_true(tensor_equal(nn_transformer_forward(m, x, y), nn_transformer_forward(copy, x, y)));
    nn_free(m), nn_free(copy);
    tensor_scope_close(scope);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, remember, nothing_left)
    const struct CMUnitTest tests[] = {
        TEST(initial_values),
        TEST(init_functions),
        TEST(attention),
        TEST(batch_norm),
        TEST(layers_are_ops),
        TEST(dropouts),
        TEST(refused_layers),
        TEST(mlp),
        TEST(block_of_ones_own),
        TEST(activations_are_freed),
        TEST(clipping),
        TEST(failing_memory),
        TEST(gradients_are_dropped),
        TEST(copied_transformers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
