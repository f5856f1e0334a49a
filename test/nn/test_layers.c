/* test_layers.c - what the generated tests of modules cannot say in a text: weights of losses, rows that are
 * given, results of pools, stacks of layers, packed sequences. */
#include <math.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>

static Tensor *wave(TensorShape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    return tensor_reshape(tensor_sin(tensor_mul_scalar(tensor_arange(0, (double)n, 1, TENSOR_F32), 0.7)),
                          shape);
}

#define INTS(shape, ...) tensor_from_data((int64_t[]){ __VA_ARGS__ }, shape, TENSOR_I64)
#define FLOATS(shape, ...) tensor_from_data((float[]){ __VA_ARGS__ }, shape, TENSOR_F32)

/* The loss with its weights; they are in the state dict, survive where they came from, and move along. */
static void weighted(Module *m, Tensor *x, Tensor *target, Tensor *want, const char *names)
{
    if (!m) fail_msg("%s", tensor_error());
    assert_true(tensor_equal(nn_forward(m, x, target), want));
    char text[64] = "";
    TensorDict dict = nn_state_dict(m);
    for (int i = 0; i < dict.count; i++) strcat(strcat(text, dict.item[i].name), " ");
    assert_string_equal(text, names);
    Module *copy = nn_clone(m);
    nn_free(m);
    assert_true(tensor_equal(nn_forward(copy, x, target), want));
    nn_free(copy);
}

static void weights_of_losses(void **state)
{
    (void)state;
    Tensor *w = FLOATS(SHAPE(3), 1, 0.5, 2), *p = FLOATS(SHAPE(3), 2, 1, 0.5), *x = wave(SHAPE(4, 3));
    Tensor *classes = INTS(SHAPE(4), 0, 2, 1, 2), *unit = tensor_sigmoid(wave(SHAPE(4, 3)));
    weighted(nn_cross_entropy_loss(.weight = w, .label_smoothing = 0.1), x, classes,
             tensor_cross_entropy(x, classes, .weight = w, .label_smoothing = 0.1), "weight ");
    weighted(nn_nll_loss(w), x, classes, tensor_nll_loss(x, classes, .weight = w), "weight ");
    weighted(nn_bce_loss(.weight = w), unit, unit, tensor_binary_cross_entropy(unit, unit, .weight = w),
             "weight ");
    weighted(nn_bce_with_logits_loss(.weight = w, .pos_weight = p), x, unit,
             tensor_binary_cross_entropy_with_logits(x, unit, .weight = w, .pos_weight = p),
             "weight pos_weight ");
    weighted(nn_bce_with_logits_loss(.pos_weight = p), x, unit,
             tensor_binary_cross_entropy_with_logits(x, unit, .pos_weight = p), "pos_weight ");
    weighted(nn_multi_margin_loss(.weight = w), x, classes, tensor_multi_margin_loss(x, classes, .weight = w),
             "weight ");
    weighted(nn_multilabel_soft_margin_loss(.weight = w), x, tensor_round(unit),
             tensor_multilabel_soft_margin_loss(x, tensor_round(unit), .weight = w), "weight ");
    weighted(nn_mse_loss(.reduction = TENSOR_SUM), x, unit, tensor_mse_loss(x, unit, .reduction = TENSOR_SUM),
             "");
    weighted(nn_mse_loss(.weight = unit), x, x, tensor_mse_loss(x, x, .weight = unit), "weight ");
    weighted(nn_l1_loss(.weight = unit), x, unit, tensor_l1_loss(x, unit, .weight = unit), "weight ");
    weighted(nn_huber_loss(.delta = 0.5, .weight = unit), x, unit,
             tensor_huber_loss(x, unit, .delta = 0.5, .weight = unit), "weight ");
    Module *loss = nn_mse_loss();
    assert_tensor_error(nn_forward(loss, x), TENSOR_ENULL);
    nn_free(loss);
}

static Tensor *city_block(Tensor *x, Tensor *y, void *ctx)
{
    (void)ctx;
    return tensor_sum(tensor_abs(tensor_sub(x, y)), 1);
}

static void distance_of_ones_own(void **state)
{
    (void)state;
    Tensor *a = wave(SHAPE(4, 3)), *b = tensor_mul_scalar(a, 0.5), *c = tensor_add_scalar(a, 1);
    Module *m = nn_triplet_margin_with_distance_loss(.distance = city_block, .margin = 2);
    assert_true(tensor_equal(nn_forward(m, a, b, c),
                             tensor_triplet_margin_loss(a, b, c, .distance = city_block, .margin = 2)));
    nn_free(m);
}

static void given_rows(void **state)
{
    (void)state;
    Tensor *rows = wave(SHAPE(5, 3)), *index = INTS(SHAPE(2), 4, 1);
    tensor_manual_seed(9);
    Tensor *next = tensor_randn(SHAPE(20), TENSOR_F32);
    tensor_manual_seed(9);
    Module *m = nn_embedding_from_pretrained(rows, .padding_idx = 1),
           *free_one = nn_embedding_from_pretrained(rows, .freeze = false);
    assert_true(tensor_equal(tensor_randn(SHAPE(20), TENSOR_F32), next)); /* nothing was drawn */
    assert_false(tensor_requires_grad(nn_get(m, "weight")));
    assert_true(tensor_requires_grad(nn_get(free_one, "weight")));
    assert_true(tensor_equal(nn_forward(m, index), tensor_index_select(rows, 0, index)));
    tensor_zero_(rows);
    assert_true(tensor_item(tensor_sum(tensor_abs(nn_forward(free_one, index)))) > 0);
    assert_tensor_error((Tensor *)nn_embedding_from_pretrained(wave(SHAPE(3))), TENSOR_ESHAPE);
    assert_tensor_error((Tensor *)nn_embedding_from_pretrained(NULL), TENSOR_ENULL);
    assert_tensor_error((Tensor *)nn_embedding_bag_from_pretrained(NULL), TENSOR_ENULL);
    assert_tensor_error((Tensor *)nn_embedding_bag(5, 2, .weight = wave(SHAPE(5, 3))), TENSOR_EVALUE);
    assert_tensor_error((Tensor *)nn_embedding(5, 2, .weight = wave(SHAPE(5, 3))), TENSOR_EVALUE);
    nn_free(m), nn_free(free_one);

    int made = 0; /* the argument stands in a macro: it is evaluated once */
    m = nn_embedding_from_pretrained((made++, wave(SHAPE(5, 3))), .freeze = false);
    assert_int_equal(made, 1);
    Module *bag =
        nn_embedding_bag_from_pretrained(tensor_to(nn_get(m, "weight"), TENSOR_F64), .mode = TENSOR_BAG_SUM);
    assert_false(tensor_requires_grad(nn_get(bag, "weight")));
    Tensor *sums = nn_forward(bag, index, INTS(SHAPE(1), 0));
    assert_int_equal(tensor_dtype(sums), TENSOR_F64);
    assert_tensor_close(tensor_to(sums, TENSOR_F32), tensor_sum(nn_forward(m, index), 0, .keepdim = true),
                        1e-6, 0);
    nn_free(m), nn_free(bag);
}

static void pools_and_back(void **state)
{
    (void)state;
    Module *pool = nn_max_pool2d(2, .return_indices = true), *unpool = nn_max_unpool2d(2);
    Tensor *x = wave(SHAPE(1, 2, 4, 6)), *indices, *y = nn_call(pool, .in = { x }, .out = { &y, &indices });
    assert_ptr_equal(indices, nn_indices(pool));
    Tensor *back = nn_forward(unpool, y, indices);
    assert_true(tensor_equal(nn_forward(pool, back), y));
    Module *adaptive = nn_adaptive_max_pool1d(2, .return_indices = true);
    nn_call(adaptive, .in = { wave(SHAPE(2, 5)) }, .out = { NULL, &indices });
    assert_true(indices && tensor_dtype(indices) == TENSOR_I64);
    nn_free(pool), nn_free(unpool), nn_free(adaptive);
}

static Tensor *fractional(Tensor **in, int n, void *ctx)
{
    (void)n;
    return tensor_fractional_max_pool2d(in[0], 2, .output_size = SHAPE(2, 3), .random_samples = ctx);
}

static void fractional_pools(void **state)
{
    (void)state;
    /* u = 0: windows begin at 0, a and in - kernel; every window of a ramp ends at its largest */
    Tensor *x = tensor_reshape(tensor_arange(0, 35, 1, TENSOR_F32), SHAPE(1, 5, 7)), *at,
           *u = tensor_zeros(SHAPE(1, 1, 2), TENSOR_F32),
           *y = tensor_fractional_max_pool2d(x, 2, SHAPE(3, 3), .random_samples = u, .indices = &at);
    assert_true(tensor_equal(y, FLOATS(SHAPE(1, 3, 3), 8, 10, 13, 15, 17, 20, 29, 31, 34)));
    assert_true(tensor_equal(tensor_to(at, TENSOR_F32), y));
    Tensor *z = tensor_reshape(tensor_arange(0, 24, 1, TENSOR_F32), SHAPE(1, 2, 3, 4));
    assert_true(tensor_item(tensor_sum(tensor_fractional_max_pool3d(z, .kernel_sizes = { 2, 3, 4 },
                                                                    .output_size = SHAPE(1)))) == 23);
    Tensor *in = tensor_requires_grad_(tensor_to(wave(SHAPE(2, 2, 5, 6)), TENSOR_F64), true),
           *samples = tensor_rand(SHAPE(2, 2, 2), TENSOR_F64);
    if (tensor_gradcheck_with(.fn = fractional, .ctx = samples, .inputs = TENSORS(in)))
        fail_msg("%s", tensor_error());
    assert_tensor_error(tensor_fractional_max_pool2d(x, 2), TENSOR_EVALUE);
    assert_tensor_error(tensor_fractional_max_pool2d(x, 2, SHAPE(2, 2), .output_ratio = 0.5), TENSOR_EVALUE);
    assert_tensor_error(tensor_fractional_max_pool2d(x, 2, .output_ratio = 1), TENSOR_EVALUE);
    assert_tensor_error(tensor_fractional_max_pool2d(x, 2, SHAPE(5, 3)), TENSOR_EVALUE);
    assert_tensor_error(tensor_fractional_max_pool2d(x, 0, SHAPE(2, 2)), TENSOR_EVALUE);
    assert_tensor_error(tensor_fractional_max_pool2d(x, 2, SHAPE(2, 2), .random_samples = x), TENSOR_ESHAPE);
    assert_tensor_error(tensor_fractional_max_pool3d(x, 2, SHAPE(2)), TENSOR_ESHAPE);
    assert_tensor_error(tensor_fractional_max_pool2d(NULL, 2, SHAPE(2)), TENSOR_ENULL);
    assert_tensor_error((Tensor *)nn_fractional_max_pool2d(2), TENSOR_EVALUE);
    Module *m = nn_fractional_max_pool2d(2, SHAPE(3, 3), .random_samples = u);
    assert_true(tensor_equal(nn_forward(m, x), y));
    assert_tensor_error(nn_indices(m), TENSOR_EVALUE);
    nn_free(m);
    Module *net = nn_sequential(
        m = nn_fractional_max_pool2d(2, SHAPE(3, 3), .return_indices = true, .random_samples = u));
    assert_true(tensor_equal(nn_forward(net, x), y));
    assert_true(tensor_equal(nn_indices(m), at));
    nn_free(net);
}

static void names_of_paddings(void **state)
{
    (void)state;
    Tensor *x = wave(SHAPE(1, 2, 3, 4)), *z = wave(SHAPE(1, 1, 2, 3, 4));
    struct {
        Module *made;
        Tensor *input, *want;
    } pads[] = {
        { nn_zero_pad2d(1), x, tensor_pad(x, SHAPE(1, 1, 1, 1)) },
        { nn_constant_pad1d(2, 3.5), x, tensor_pad(x, SHAPE(2, 2), .value = 3.5) },
        { nn_reflection_pad2d(2), x, tensor_pad(x, SHAPE(2, 2, 2, 2), .mode = TENSOR_PAD_REFLECT) },
        { nn_replication_pad3d(1), z, tensor_pad(z, SHAPE(1, 1, 1, 1, 1, 1), .mode = TENSOR_PAD_REPLICATE) },
        { nn_circular_pad2d(1), x, tensor_pad(x, SHAPE(1, 1, 1, 1), .mode = TENSOR_PAD_CIRCULAR) },
        { nn_upsampling_nearest2d(.scale_factor = 2), x, tensor_interpolate(x, .scale_factor = 2) },
        { nn_upsampling_bilinear2d(.size = SHAPE(5, 5)), x,
          tensor_interpolate(x, .size = SHAPE(5, 5), .mode = TENSOR_BILINEAR, .align_corners = true) },
    };
    for (size_t i = 0; i < sizeof pads / sizeof *pads; i++) {
        assert_true(tensor_equal(nn_forward(pads[i].made, pads[i].input), pads[i].want));
        nn_free(pads[i].made);
    }
}

/* ---- transformers ---------------------------------------------------------------------------- */

static void stacks(void **state)
{
    (void)state;
    Module *layer = nn_transformer_encoder_layer(4, 2, .dim_feedforward = 6, .dropout = 0);
    Module *stack = nn_transformer_encoder(nn_clone(layer), 2, .norm = nn_layer_norm(4));
    assert_true(nn_has(stack, "layers.0.self_attn.in_proj_weight") && nn_has(stack, "layers.1.norm2.bias"));
    assert_true(nn_has(stack, "norm.weight") &&
                !nn_get_module(stack, "layers")->children[2 - 1].module->forward);
    Tensor *x = wave(SHAPE(3, 2, 4)), *mask = nn_generate_square_subsequent_mask(3);
    assert_true(tensor_get(mask, DIMS(0, 1)) == -INFINITY && tensor_get(mask, DIMS(1, 1)) == 0);
    Tensor *want = nn_forward(layer, nn_forward(layer, x, mask), mask);
    want = tensor_layer_norm(want, SHAPE(4), NULL, NULL, 1e-5);
    assert_tensor_close(nn_forward(stack, x, mask), want, 1e-5, 1e-6);
    /* what a position sees does not depend on those behind it */
    Tensor *other = tensor_clone(x);
    tensor_zero_(tensor_select(other, 0, 2));
    assert_true(tensor_equal(tensor_narrow(nn_forward(stack, x, mask), 0, 0, 2),
                             tensor_narrow(nn_forward(stack, other, mask), 0, 0, 2)));
    Module *decoder = nn_transformer_decoder(nn_transformer_decoder_layer(4, 2, .dim_feedforward = 6), 1),
           *net =
               nn_transformer(.d_model = 4, .nhead = 2, .custom_encoder = stack, .custom_decoder = decoder);
    nn_eval(net);
    assert_true(nn_has(net, "encoder.layers.1.linear1.weight") && nn_has(net, "decoder.layers.0.norm3.bias"));
    Tensor *y = nn_forward(net, x, wave(SHAPE(2, 2, 4)));
    assert_true(tensor_size(y, 0) == 2 && tensor_size(y, 2) == 4);
    assert_tensor_error(nn_forward(net, x), TENSOR_ENULL);
    assert_tensor_error(nn_forward(decoder, x), TENSOR_ENULL);
    assert_tensor_error((Tensor *)nn_transformer_encoder(nn_clone(layer)), TENSOR_EVALUE);
    assert_tensor_error((Tensor *)nn_transformer_encoder(NULL, 2), TENSOR_ENULL);
    assert_tensor_error((Tensor *)nn_transformer_encoder_layer(4, 3), TENSOR_EVALUE);
    assert_tensor_error((Tensor *)nn_transformer_encoder_layer(4, 2, .dim_feedforward = 0), TENSOR_EVALUE);
    assert_tensor_error((Tensor *)nn_transformer_decoder_layer(4, 2, .dropout = 2), TENSOR_EVALUE);
    Module *none = nn_transformer_encoder(nn_relu(), 0);
    assert_true(tensor_equal(nn_forward(none, x), x));
    nn_free(none), nn_free(net), nn_free(layer);
}

static int look_on(Module *m, NNCall *call, void *ctx)
{
    (void)m, (void)call, (void)ctx;
    return 0;
}

/* The result, the gradients of both inputs and of all parameters, and how long the tape is. */
static int64_t run_layer(Module *m, Tensor *const in[2], bool half, Tensor **out)
{
    Tensor *x[2], *y = NULL;
    tensor_manual_seed(3); /* for dropout */
    for (int i = 0; i < 2; i++) x[i] = tensor_requires_grad_(tensor_detach(in[i]), true);
    nn_zero_grad(m);
    const int64_t before = tensor_tape_length();
    TENSOR_AUTOCAST(TENSOR_BF16, .enabled = half) y = nn_forward(m, x[0], m->kind->inputs > 3 ? x[1] : NULL);
    const int64_t length = tensor_tape_length() - before;
    if (!y || tensor_backward(tensor_sum(tensor_mul(y, x[0])))) fail_msg("%s", tensor_error());
    out[0] = y, out[1] = tensor_grad(x[0]), out[2] = tensor_grad(x[1]);
    const TensorList all = nn_parameters(m);
    for (int i = 0; i < all.count; i++) out[3 + i] = tensor_clone(tensor_grad(all.item[i]));
    return length;
}

/* A residual and the norm behind it are one op, with the bits of both, unless somebody looks at the norm. */
static void residual_norms(void **state)
{
    (void)state;
    static const char *const norms[] = { "norm1", "norm2", "norm3" };
    for (int turn = 0; turn < 32; turn++) {
        const bool decoder = turn & 1, first = turn & 2, half = turn & 4, drops = turn & 8;
        const TensorDtype dtype = turn & 16 ? half ? TENSOR_BF16 : TENSOR_F64 : TENSOR_F32;
        TensorScope scope = tensor_scope_open();
        NNTransformerLayerArgs how = nn_transformer_layer_defaults;
        how.d_model = 8, how.nhead = 2, how.dim_feedforward = 12, how.dropout = drops ? 0.3 : 0;
        how.norm_first = first, how.dtype = dtype;
        Module *m = decoder ? nn_transformer_decoder_layer_args(how) : nn_transformer_encoder_layer_args(how);
        Tensor *in[] = { tensor_to(wave(SHAPE(5, 3, 8)), dtype), tensor_to(wave(SHAPE(4, 3, 8)), dtype) };
        Tensor *got[40] = { NULL }, *want[40] = { NULL };
        const int64_t length = run_layer(m, in, half, got);
        for (int i = 0; i < 2 + decoder; i++)
            assert_true(nn_register_forward_hook(nn_get_module(m, norms[i]), look_on, NULL) >= 0);
        const int64_t apart = run_layer(m, in, half, want) - length;
        /* each is two entries, and autocast's branch was cast before */
        assert_int_equal(apart, dtype == TENSOR_BF16 ? 0 : (1 + half) * (2 + decoder - first));
        for (int i = 0; i < 40; i++)
            if (!got[i] != !want[i] || (got[i] && !tensor_equal(got[i], want[i])))
                fail_msg("turn %d: value %d differs", turn, i);
        nn_free(m);
        tensor_scope_close(scope);
    }
}

/* Options of a caller's own say nothing to a layer norm. */
static void norms_take_no_options(void **state)
{
    (void)state;
    Module *m = nn_layer_norm(8);
    Tensor *x = wave(SHAPE(3, 8));
    const int own = 7;
    NNCall c = { .in = { x }, .results = 2, .options = &own };
    assert_int_equal(nn_run(m, &c), 0);
    assert_true(tensor_equal(c.out[0], nn_forward(m, x)));
    assert_null(c.out[1]);
    nn_free(m);
}

static void adaptive_softmax(void **state)
{
    (void)state;
    Module *m = nn_adaptive_log_softmax_with_loss(8, 7, SHAPE(2, 4));
    Tensor *x = wave(SHAPE(5, 8)), *target = INTS(SHAPE(5), 0, 6, 3, 1, 4), *loss,
           *y = nn_call(m, .in = { x, target }, .out = { &y, &loss }), *all = nn_adaptive_log_prob(m, x);
    assert_true(tensor_size(all, 1) == 7);
    assert_tensor_close(tensor_sum(tensor_exp(all), 1), tensor_ones(SHAPE(5), TENSOR_F32), 1e-5, 1e-5);
    assert_tensor_close(tensor_squeeze(tensor_gather(all, 1, tensor_unsqueeze(target, 1)), 1), y, 1e-5, 1e-5);
    Tensor *one = nn_forward(m, tensor_select(x, 0, 1), tensor_select(target, 0, 1));
    assert_tensor_close(one, tensor_select(y, 0, 1), 1e-5, 1e-5);
    assert_tensor_error(nn_forward(m, x, INTS(SHAPE(5), 0, 7, 3, 1, 4)), TENSOR_EINDEX);
    assert_tensor_error(nn_forward(m, x, INTS(SHAPE(2), 0, 1)), TENSOR_ESHAPE);
    assert_tensor_error(nn_forward(m, x), TENSOR_ENULL);
    Module *relu = nn_relu();
    assert_tensor_error(nn_adaptive_log_prob(relu, x), TENSOR_EVALUE);
    assert_tensor_error((Tensor *)nn_adaptive_log_softmax_with_loss(8, 7, SHAPE(4, 2)), TENSOR_EVALUE);
    assert_tensor_error((Tensor *)nn_adaptive_log_softmax_with_loss(8, 7, SHAPE(7)), TENSOR_EVALUE);
    assert_tensor_error((Tensor *)nn_adaptive_log_softmax_with_loss(8, 7), TENSOR_EVALUE);
    nn_free(m), nn_free(relu);
    /* weights of classes */
    Tensor *w = FLOATS(SHAPE(3), 1, 0.5, 2), *classes = INTS(SHAPE(5), 0, 2, 1, 2, 0);
    m = nn_linear_cross_entropy_loss(8, 3, .weight = w, .bias = true);
    assert_tensor_close(nn_forward(m, x, classes),
                        tensor_cross_entropy(nn_forward(nn_get_module(m, "linear"), x), classes, .weight = w),
                        1e-5, 1e-6);
    assert_true(nn_has(m, "weight") && nn_has(m, "linear.bias"));
    nn_free(m);
}

static Tensor *squared(Tensor *x) { return tensor_square(x); }

static void activation_of_ones_own(void **state)
{
    (void)state;
    Module *a = nn_transformer_encoder_layer(4, 2, .dim_feedforward = 6, .dropout = 0), *b;
    tensor_manual_seed(1);
    b = nn_transformer_encoder_layer(4, 2, .dim_feedforward = 6, .dropout = 0, .activation_fn = squared);
    assert_int_equal(nn_load_state_dict(a, nn_state_dict(b)), 0);
    Tensor *x = wave(SHAPE(3, 4));
    assert_false(tensor_allclose(nn_forward(a, x), nn_forward(b, x)));
    nn_free(a), nn_free(b);
}

static int count(Module *m, NNCall *c, void *ctx) { return (void)m, (void)c, ++*(int *)ctx, 0; }

/* Where a hook looks at the first product, its activation is an op of its own. */
static void activations_behind_a_hook(void **state)
{
    (void)state;
    for (int gelu = 0; gelu < 2; gelu++) {
        int calls = 0;
        Module *m =
            nn_transformer_encoder_layer(4, 2, .dim_feedforward = 6, .dropout = 0,
                                         .activation = gelu ? NN_TRANSFORMER_GELU : NN_TRANSFORMER_RELU);
        Tensor *x = wave(SHAPE(3, 4)), *y = nn_forward(m, x);
        nn_register_forward_hook(nn_get_module(m, "linear1"), count, &calls);
        assert_tensor_close(nn_forward(m, x), y, 1e-6, 1e-6);
        assert_int_equal(calls, 1);
        nn_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(weights_of_losses),
        SCOPED(distance_of_ones_own),
        SCOPED(given_rows),
        SCOPED(pools_and_back),
        SCOPED(fractional_pools),
        SCOPED(names_of_paddings),
        SCOPED(stacks),
        SCOPED(residual_norms),
        SCOPED(norms_take_no_options),
        SCOPED(activation_of_ones_own),
        SCOPED(activations_behind_a_hook),
        SCOPED(adaptive_softmax),
    };
    return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
