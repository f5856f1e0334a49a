/* test_typed_calls.c - calls with options of a kind's own, results in place, hooks of all modules, and where
 * an error of a backward was. */
#include <math.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>

static void assert_said(TensorStatus code, const char *part)
{
    assert_int_equal(tensor_error_code(), code);
    if (!strstr(tensor_error(), part)) fail_msg("%s: without \"%s\"", tensor_error(), part);
    tensor_error_clear();
}

/* (i from + step) of all elements in order. */
static Tensor *ramp(TensorShape shape, double from, double step)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    Tensor *t = tensor_mul_scalar(tensor_arange(0, (double)n, 1, TENSOR_F32), step);
    return tensor_reshape(tensor_add_scalar(t, from), shape);
}

static void fill_ramps(Module *m)
{
    TensorList all = nn_parameters(m);
    TENSOR_NO_GRAD
        for (int i = 0; i < all.count; i++)
            tensor_copy_(all.item[i], ramp(tensor_shape(all.item[i]), -1, 0.1));
}

/* ---- sizes at the call ----------------------------------------------------------------------- */

/* PyTorch's results for such weights. */
static void sizes_of_transposed_convolutions(void **state)
{
    (void)state;
    tensor_manual_seed(0);
    Module *m = nn_conv_transpose2d(2, 3, .kernel_sizes = { 3, 2 }, .strides = { 3, 2 }, .paddings = { 1, 1 },
                                    .dilations = { 2, 1 }, .output_padding = 1);
    fill_ramps(m);
    Tensor *x = ramp(SHAPE(1, 2, 3, 2), 0, 0.25);
    static const struct {
        int64_t size[4];
        int ndim;
        double sum, last;
    } of[] = { { { 9, 2 }, 2, 91.8, -0.8 },
               { { 10, 3 }, 2, 182.4, 6.95 },
               { { 1, 3, 11, 2 }, 4, 110.4, -0.8 } };
    for (int i = 0; i < 3; i++) {
        Tensor *y = nn_conv_transpose_forward(m, x, (TensorShape){ of[i].ndim, of[i].size });
        assert_int_equal(tensor_size(y, 2), of[i].size[of[i].ndim - 2]);
        assert_int_equal(tensor_size(y, 3), of[i].size[of[i].ndim - 1]);
        assert_float_equal(tensor_item(tensor_sum(y)), of[i].sum, 1e-3);
        assert_float_equal(tensor_get(y, DIMS(0, 2, -1, -1)), of[i].last, 1e-5);
        Tensor *alone = nn_conv_transpose_forward(m, tensor_select(x, 0, 0),
                                                  (TensorShape){ 2, of[i].size + of[i].ndim - 2 });
        assert_true(tensor_equal(alone, tensor_select(y, 0, 0)));
    }
    assert_int_equal(tensor_size(nn_forward(m, x), 2), 10); /* output_padding holds where no size is given */
    assert_null(nn_conv_transpose_forward(m, x, SHAPE(8, 2)));
    assert_said(TENSOR_EVALUE, "output_size 8 of dimension 2: want 9 to 11");
    assert_null(nn_conv_transpose_forward(m, x, SHAPE(9, 4)));
    assert_said(TENSOR_EVALUE, "output_size 4 of dimension 3: want 2 to 3");
    assert_null(nn_conv_transpose_forward(m, x, SHAPE(12, 2)));
    assert_said(TENSOR_EVALUE, "want 9 to 11");
    assert_null(nn_conv_transpose_forward(m, x, SHAPE(9)));
    assert_said(TENSOR_EVALUE, "output_size of 1 sizes for an input of rank 4: want 2");
    assert_null(nn_conv_transpose_forward(m, ramp(SHAPE(3), 0, 1), SHAPE(9, 2)));
    assert_said(TENSOR_EVALUE, "input of rank 1");
    assert_null(nn_conv_transpose_forward(NULL, x, SHAPE(9, 2)));
    assert_said(TENSOR_ENULL, "module is NULL");
    Module *other = nn_conv2d(2, 3, 1), *one = nn_conv_transpose1d(2, 2, 4, .stride = 4),
           *three = nn_conv_transpose3d(1, 1, 2, .stride = 2);
    assert_null(nn_conv_transpose_forward(other, x, SHAPE(9, 2)));
    assert_said(TENSOR_EVALUE, "of a module Conv2d");
    assert_null(nn_forward(m, x, x));
    assert_said(TENSOR_EVALUE, "ConvTranspose2d takes 1 input, not 2");
    assert_int_equal(tensor_size(nn_conv_transpose_forward(one, ramp(SHAPE(1, 2, 3), 0, 1), SHAPE(15)), 2),
                     15);
    Tensor *cube = nn_conv_transpose_forward(three, ramp(SHAPE(1, 1, 2, 2, 2), 0, 1), SHAPE(4, 5, 4));
    assert_int_equal(tensor_size(cube, 3), 5);
    nn_free(m), nn_free(other), nn_free(one), nn_free(three);
}

static void sizes_of_unpooling(void **state)
{
    (void)state;
    Module *pool = nn_max_pool2d(2, .return_indices = true), *unpool = nn_max_unpool2d(2);
    Tensor *x = ramp(SHAPE(1, 2, 5, 5), 0, 1), *y = nn_forward(pool, x), *index = nn_indices(pool);
    for (int whole = 0; whole < 2; whole++) {
        Tensor *back = nn_max_unpool_forward(unpool, y, index, whole ? SHAPE(1, 2, 5, 5) : SHAPE(5, 5));
        assert_int_equal(tensor_size(back, 3), 5);
        assert_true(tensor_equal(nn_forward(pool, back), y));
        assert_true(tensor_get(back, DIMS(0, 1, 1, 1)) == 31 && tensor_get(back, DIMS(0, 1, 4, 4)) == 0);
    }
    Module *line = nn_max_pool1d(2, .return_indices = true), *unpool1 = nn_max_unpool1d(2);
    Tensor *kept = nn_forward(line, ramp(SHAPE(1, 2, 5), 0, 1));
    Tensor *back = nn_max_unpool_forward(unpool1, kept, nn_indices(line), SHAPE(5));
    assert_true(tensor_size(back, 2) == 5 && tensor_get(back, DIMS(0, 1, 3)) == 8);
    assert_null(nn_max_unpool_forward(unpool, y, index, SHAPE(7, 7)));
    assert_said(TENSOR_ESHAPE, "max_unpool2d");
    assert_null(nn_max_unpool_forward(pool, y, index, SHAPE(5, 5)));
    assert_said(TENSOR_EVALUE, "of a module MaxPool2d");
    assert_null(nn_forward(unpool, y, index, index));
    assert_said(TENSOR_EVALUE, "MaxUnpool2d takes 2 inputs, not 3");
    Module *gru = nn_gru(2, 2);
    Tensor *steps = ramp(SHAPE(3, 1, 2), 0, 1), *h = tensor_zeros(SHAPE(1, 1, 2), TENSOR_F32);
    assert_null(nn_forward(gru, steps, h, h));
    assert_said(TENSOR_EVALUE, "GRU takes 2 inputs, not 3");
    nn_free(pool), nn_free(unpool), nn_free(line), nn_free(unpool1), nn_free(gru);
}

/* ---- causal ---------------------------------------------------------------------------------- */

static Tensor *negated(Module *m, Tensor *x) { return (void)m, tensor_neg(x); }

/* A hint is the causal mask. */
static void causal_transformers(void **state)
{
    (void)state;
    Tensor *src = tensor_randn(SHAPE(4, 2, 8), TENSOR_F32), *tgt = tensor_randn(SHAPE(3, 2, 8), TENSOR_F32);
    Tensor *mask = nn_generate_square_subsequent_mask(4), *mask3 = nn_generate_square_subsequent_mask(3);
    Tensor *memory_mask = tensor_narrow(mask, 0, 0, 3); /* [3, 4] */
    Module *net = nn_transformer(.d_model = 8, .nhead = 2, .num_encoder_layers = 2, .num_decoder_layers = 2,
                                 .dim_feedforward = 12, .dropout = 0);
    Module *encoder = nn_get_module(net, "encoder"), *decoder = nn_get_module(net, "decoder");
    Module *layer = nn_get_module(net, "encoder.layers.0"), *below = nn_get_module(net, "decoder.layers.1");
    Tensor *plain = nn_forward(net, src, tgt), *y = nn_transformer_forward(net, src, tgt);
    assert_true(tensor_equal(plain, y));
    y = nn_transformer_forward(net, src, tgt, .src_is_causal = true);
    assert_tensor_close(y, nn_forward(net, src, tgt, mask), 1e-5, 1e-6);
    y = nn_transformer_forward(net, src, tgt, .tgt_is_causal = true);
    assert_tensor_close(y, nn_forward(net, src, tgt, NULL, mask3), 1e-5, 1e-6);
    y = nn_transformer_forward(net, src, tgt, .memory_is_causal = true, .tgt_mask = mask3);
    Tensor *want = nn_forward(net, src, tgt, NULL, mask3, memory_mask);
    assert_tensor_close(y, want, 1e-5, 1e-6);
    assert_false(tensor_allclose(want, plain));
    y = nn_transformer_forward(net, src, tgt, .memory_is_causal = true, .tgt_is_causal = true,
                               .tgt_mask = mask3, .memory_mask = memory_mask); /* PyTorch's hints */
    assert_tensor_close(y, want, 1e-5, 1e-6);
    Tensor *causal = nn_forward(encoder, src, mask);
    assert_tensor_close(nn_transformer_encoder_forward(encoder, src, .is_causal = true), causal, 1e-5, 1e-6);
    assert_tensor_close(nn_transformer_encoder_forward(encoder, src, mask, .is_causal = true), causal, 1e-5,
                        1e-6);
    assert_tensor_close(nn_transformer_encoder_forward(layer, src, .is_causal = true),
                        nn_forward(layer, src, mask), 1e-5, 1e-6);
    assert_tensor_close(nn_transformer_decoder_forward(decoder, tgt, src, .tgt_is_causal = true),
                        nn_forward(decoder, tgt, src, mask3), 1e-5, 1e-6);
    assert_tensor_close(nn_transformer_decoder_forward(below, tgt, src, .memory_is_causal = true),
                        nn_forward(below, tgt, src, NULL, memory_mask), 1e-5, 1e-6);
    assert_null(nn_transformer_encoder_forward(decoder, src));
    assert_said(TENSOR_EVALUE, "of a module TransformerDecoder");
    assert_null(nn_transformer_decoder_forward(net, tgt, src));
    assert_said(TENSOR_EVALUE, "of a module Transformer");
    assert_null(nn_transformer_forward(NULL, src, tgt));
    assert_said(TENSOR_ENULL, "module is NULL");
    Module *own = nn_transformer_encoder(nn_done(nn_new(Module, "Own", negated)), 2);
    assert_true(tensor_equal(nn_transformer_encoder_forward(own, src), src));
    assert_null(nn_transformer_encoder_forward(own, src, .is_causal = true));
    assert_said(TENSOR_EVALUE, "is_causal, and a layer Own");
    nn_free(net), nn_free(own);
}

/* ---- in place -------------------------------------------------------------------------------- */

static void results_in_place(void **state)
{
    (void)state;
    Module *pair[][2] = { { nn_relu(true), nn_relu() },
                          { nn_relu6(.inplace = true), nn_relu6() },
                          { nn_silu(.inplace = true), nn_silu() },
                          { nn_mish(.inplace = true), nn_mish() },
                          { nn_selu(.inplace = true), nn_selu() },
                          { nn_hardsigmoid(.inplace = true), nn_hardsigmoid() },
                          { nn_hardswish(.inplace = true), nn_hardswish() },
                          { nn_threshold(0.3, 2, true), nn_threshold(0.3, 2) },
                          { nn_leaky_relu(0.2, true), nn_leaky_relu(0.2) },
                          { nn_elu(.inplace = true), nn_elu() },
                          { nn_celu(.inplace = true), nn_celu() },
                          { nn_hardtanh(-1, 2, true), nn_hardtanh(-1, 2) },
                          { nn_rrelu(.inplace = true), nn_rrelu() },
                          { nn_dropout(0.3, true), nn_dropout(0.3) },
                          { nn_dropout1d(0.3, true), nn_dropout1d(0.3) },
                          { nn_dropout2d(0.3, true), nn_dropout2d(0.3) },
                          { nn_dropout3d(0.3, true), nn_dropout3d(0.3) },
                          { nn_alpha_dropout(0.3, true), nn_alpha_dropout(0.3) },
                          { nn_feature_alpha_dropout(0.3, true), nn_feature_alpha_dropout(0.3) } };
    Tensor *leaf = tensor_requires_grad_(ramp(SHAPE(2, 3, 4, 1, 2), -2, 0.1), true);
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        const bool channels = strcmp(pair[i][0]->type, "Dropout1d") == 0;
        Tensor *y[2], *g[2];
        for (int k = 0; k < 2; k++) {
            tensor_manual_seed(5);
            Tensor *x = tensor_mul_scalar(channels ? tensor_reshape(leaf, SHAPE(2, 3, 8)) : leaf, 1.5);
            if (strcmp(pair[i][0]->type, "Dropout2d") == 0) x = tensor_reshape(x, SHAPE(2, 3, 4, 2));
            y[k] = nn_forward(pair[i][k], x);
            if ((y[k] == x) != (k == 0)) fail_msg("%s", pair[i][0]->type);
            g[k] = tensor_gradients(tensor_sum(tensor_square(y[k])), leaf);
        }
        if (!tensor_equal(y[0], y[1]) || !tensor_equal(g[0], g[1])) fail_msg("%s", pair[i][0]->type);
        assert_null(nn_forward(
            pair[i][0],
            channels ? tensor_requires_grad_(tensor_zeros(SHAPE(1, 2, 3), TENSOR_F32), true) : leaf));
        tensor_error_clear();
        nn_free(pair[i][0]), nn_free(pair[i][1]);
    }
    /* what a gradient reads is not overwritten unseen */
    Module *m = nn_relu(.inplace = true), *plain = (nn_relu)(), *limit = (nn_threshold)(0, 1);
    Tensor *s = tensor_sigmoid(tensor_flatten(leaf, 0, -1)), *loss = tensor_sum(nn_forward(m, s));
    assert_int_equal(tensor_backward(loss), -1);
    assert_said(TENSOR_EGRAD, "tensor_sigmoid: backward needs its result 1");
    TENSOR_NO_GRAD
        assert_ptr_equal(nn_forward(m, leaf), leaf);
    assert_true(tensor_item(tensor_min(tensor_detach(leaf))) == 0);
    assert_true(tensor_item(tensor_min(nn_forward(plain, ramp(SHAPE(3), -1, 1)))) == 0);
    assert_true(tensor_item(tensor_sum(nn_forward(limit, ramp(SHAPE(3), -1, 1)))) == 3);
    nn_free(m), nn_free(plain), nn_free(limit);
}

/* ---- hooks of all modules -------------------------------------------------------------------- */

static char order[200];
static int notes(Module *m, NNCall *c, void *ctx)
{
    (void)c;
    strncat(order, ctx, 1), strncat(order, m->type, 1);
    return 0;
}
static int doubles(Module *m, NNCall *c, void *ctx)
{
    (void)ctx;
    if (strcmp(m->type, "Linear") == 0) c->out[0] = tensor_mul_scalar(c->out[0], 2);
    return c->out[0] ? 0 : -1;
}
static int fails(Module *m, NNCall *c, void *ctx) { return (void)m, (void)c, (void)ctx, -1; }

static void hooks_of_all_modules(void **state)
{
    (void)state;
    static char letters[] = "pfbBo";
    Module *net = nn_sequential(nn_linear(2, 2), nn_tanh()), *inner = nn_get_module(net, "0");
    Tensor *x = tensor_requires_grad_(ramp(SHAPE(3, 2), 0, 1), true), *plain = nn_forward(net, x);
    nn_register_forward_hook(inner, notes, letters + 4);
    int id[4] = { nn_register_module_forward_pre_hook(notes, letters),
                  nn_register_module_forward_hook(notes, letters + 1),
                  nn_register_module_full_backward_pre_hook(notes, letters + 2),
                  nn_register_module_full_backward_hook(notes, letters + 3) };
    order[0] = 0;
    Tensor *y = nn_forward(net, x);
    assert_string_equal(order, "pSpLfLoLpTfTfS"); /* a module's own come last */
    order[0] = 0;
    tensor_backward(tensor_sum(y));
    assert_string_equal(order, "bSbTBTbLBLBS");
    assert_true(tensor_equal(y, plain));
    for (int i = 0; i < 4; i++) assert_int_equal(nn_remove_module_hook(id[i]), 0);
    order[0] = 0;
    tensor_backward(tensor_sum(nn_forward(net, x)));
    assert_string_equal(order, "oL");
    assert_int_equal(nn_remove_module_hook(id[0]), -1);
    assert_said(TENSOR_EVALUE, "there is no hook");
    assert_int_equal(nn_register_module_forward_hook(NULL, NULL), -1);
    assert_said(TENSOR_ENULL, "nn_register_module_forward_hook: the hook is NULL");
    id[0] = nn_register_module_forward_hook(doubles, NULL);
    y = nn_forward(net, x);
    assert_int_equal(nn_remove_module_hook(id[0]), 0);
    assert_true(tensor_equal(y, tensor_tanh(tensor_mul_scalar(nn_forward(inner, x), 2))));
    id[0] = nn_register_module_full_backward_hook(fails, NULL);
    y = nn_forward(net, x);
    assert_int_equal(tensor_backward(tensor_sum(y)), -1);
    assert_said(TENSOR_EUSER, "a backward hook of Tanh failed");
    id[1] = nn_register_module_forward_pre_hook(fails, NULL);
    assert_null(nn_forward(net, x));
    assert_said(TENSOR_EUSER, "a forward pre-hook of Sequential failed");
    nn_remove_module_hook(id[0]), nn_remove_module_hook(id[1]);
    nn_free(net);
}

static int misshapes(Module *m, NNCall *call, void *ctx)
{
    (void)m;
    Tensor **g = ctx ? call->out : call->in;
    if (g[0]) g[0] = tensor_ones(SHAPE(1, 2), TENSOR_F32);
    return 0;
}

/* A gradient of another shape is the hook's mistake, and the error says whose. */
static void misshapen_gradients(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_linear(2, 2), nn_relu());
    Tensor *x = ramp(SHAPE(3, 2), 0, 1);
    for (int k = 0; k < 2; k++) {
        Module *relu = nn_get_module(net, "1");
        const int id = k ? nn_register_full_backward_pre_hook(relu, misshapes, net)
                         : nn_register_full_backward_hook(relu, misshapes, NULL);
        assert_int_equal(tensor_backward(tensor_sum(nn_forward(net, x))), -1);
        assert_null(tensor_grad(nn_get(net, "0.weight")));
        assert_said(TENSOR_ESHAPE,
                    k ? "a backward pre-hook of ReLU set a gradient of shape [1, 2]: want [3, 2]"
                      : "a backward hook of ReLU set a gradient of shape [1, 2]: want [3, 2]");
        nn_remove_hook(relu, id);
    }
    nn_free(net);
}

/* ---- where a backward failed ----------------------------------------------------------------- */

static void backward_tells_where(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_linear(2, 2), nn_sequential(nn_linear(2, 2), nn_sigmoid()));
    nn_child(nn_get_module(net, "1"), "b1", nn_batch_norm1d(2));
    Tensor *x = ramp(SHAPE(3, 2), 0, 1), *y = nn_forward(net, x);
    TENSOR_NO_GRAD
        tensor_zero_(nn_get(net, "1.b1.weight"));
    assert_int_equal(tensor_backward(tensor_sum(y)), -1);
    assert_said(TENSOR_EGRAD, "\n    in 1.b1 (BatchNorm1d)");
    nn_register_full_backward_hook(nn_get_module(net, "1.0"), fails, NULL);
    assert_int_equal(tensor_backward(tensor_sum(nn_forward(net, x))), -1);
    const char *first = strstr(tensor_error(), "in 1.0 (Linear)");
    assert_true(first && !strstr(first + 1, " in "));
    assert_said(TENSOR_EUSER, "a backward hook of Linear failed");
    /* an earlier error is left as it is, and so is what was recorded outside */
    y = nn_forward(net, x);
    tensor_fail(TENSOR_EUSER, "mine", "an earlier one");
    assert_int_equal(tensor_backward(tensor_sum(y)), -1);
    assert_null(strstr(tensor_error(), "Linear"));
    tensor_error_clear();
    Tensor *w = tensor_requires_grad_(ramp(SHAPE(2), 1, 1), true), *z = tensor_square(tensor_exp(w));
    y = tensor_mul(z, z);
    tensor_zero_(tensor_detach(z));
    assert_int_equal(tensor_backward(tensor_sum(y)), -1);
    assert_null(strstr(tensor_error(), "\n    in "));
    tensor_error_clear();
    nn_free(net);
}

/* The gradient of x^0.5 at 0 times 0: NaN. */
static Tensor *root(Module *m, Tensor *x) { return (void)m, tensor_sqrt(tensor_relu(x)); }

static void anomalies_tell_where(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_linear(2, 2), nn_sequential(nn_done(nn_new(Module, "Root", root))));
    TENSOR_NO_GRAD
        tensor_zero_(nn_get(net, "0.weight")), tensor_zero_(nn_get(net, "0.bias"));
    Tensor *x = ramp(SHAPE(3, 2), 0, 1);
    const bool was = tensor_set_detect_anomaly(true);
    for (int twice = 0; twice < 2; twice++) { /* the place is remembered */
        assert_int_equal(tensor_backward(tensor_mul_scalar(tensor_sum(nn_forward(net, x)), 0)), -1);
        assert_said(TENSOR_EVALUE, "\n    in 1.0 (Root)");
    }
    /* the same module in another place, and under another name */
    Module *part = nn_retain(nn_get_module(net, "1.0")), *other = nn_sequential(nn_linear(2, 2));
    TENSOR_NO_GRAD
        tensor_zero_(nn_get(other, "0.weight")), tensor_zero_(nn_get(other, "0.bias"));
    nn_child(other, "tail", part);
    assert_int_equal(tensor_backward(tensor_mul_scalar(tensor_sum(nn_forward(other, x)), 0)), -1);
    assert_said(TENSOR_EVALUE, "\n    in tail (Root)");
    assert_int_equal(tensor_backward(tensor_mul_scalar(tensor_sum(nn_forward(net, x)), 0)), -1);
    assert_said(TENSOR_EVALUE, "\n    in 1.0 (Root)");
    Tensor *alone = tensor_requires_grad_(tensor_zeros(SHAPE(2), TENSOR_F32), true);
    assert_int_equal(tensor_backward(tensor_mul_scalar(tensor_sum(nn_forward(part, alone)), 0)), -1);
    assert_null(strstr(tensor_error(), "\n    in "));
    tensor_error_clear();
    /* gradients of gradients are of the module, too */
    Module *cube = nn_sequential(nn_sequential(nn_done(nn_new(Module, "Root", root))));
    Tensor *v = tensor_requires_grad_(tensor_full(SHAPE(1), 4, TENSOR_F32), true);
    Tensor *g = tensor_gradients(tensor_sum(nn_forward(cube, v)), v, .create_graph = true);
    assert_float_equal(tensor_item(tensor_detach(g)), 0.25, 1e-6);
    int id = tensor_tape_note("mine") == NULL;
    assert_true(id);
    Tensor *h = tensor_sqrt(tensor_mul_scalar(v, 0));
    assert_string_equal(tensor_tape_note(NULL), "mine");
    assert_int_equal(tensor_backward(tensor_sum(tensor_mul_scalar(h, 0))), -1);
    assert_said(TENSOR_EVALUE, "\n    in mine");
    tensor_set_detect_anomaly(was);
    nn_free(net), nn_free(other), nn_free(cube);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(sizes_of_transposed_convolutions),
        SCOPED(sizes_of_unpooling),
        SCOPED(causal_transformers),
        SCOPED(results_in_place),
        SCOPED(hooks_of_all_modules),
        SCOPED(misshapen_gradients),
        SCOPED(backward_tells_where),
        SCOPED(anomalies_tell_where),
    };
    return cmocka_run_group_tests_name("typed calls", tests, NULL, NULL);
}
