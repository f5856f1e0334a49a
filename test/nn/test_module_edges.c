/* test_module_edges.c - the options of modules at their edges: the last that is taken, the first that is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include <tapegrad/nn.h>

static void taken(Module *m, const char *text)
{
    if (!m) fail_msg("%s: %s", text, tensor_error());
    nn_free(m);
}
static void refused(Module *m, const char *text, const char *says)
{
    if (m) fail_msg("%s was made", text);
    if (tensor_error_code() != TENSOR_EVALUE || !strstr(tensor_error(), says))
        fail_msg("%s: %s", text, tensor_error() ? tensor_error() : "no error");
    tensor_error_clear();
}
#define TAKEN(...) taken(__VA_ARGS__, #__VA_ARGS__)
#define REFUSED(says, ...) refused(__VA_ARGS__, #__VA_ARGS__, says)

static void test_layers(void **state)
{
    (void)state;
    TAKEN(nn_prelu(.num_parameters = 1));
    REFUSED("0 parameters", nn_prelu(.num_parameters = 0));
    TAKEN(nn_linear(0, 1));
    TAKEN(nn_linear(1, 0));
    REFUSED("-1 features in", nn_linear(-1, 1));
    REFUSED("-1 out", nn_linear(1, -1));
    TAKEN(nn_embedding(3, 2, .padding_idx = 2));
    TAKEN(nn_embedding(3, 2, .padding_idx = -3));
    TAKEN(nn_embedding(0, 0));
    REFUSED("padding_idx 3", nn_embedding(3, 2, .padding_idx = 3));
    REFUSED("padding_idx -4", nn_embedding(3, 2, .padding_idx = -4));
    REFUSED("-1 rows", nn_embedding(-1, 2));
    REFUSED("of -1", nn_embedding(3, -1));
    TAKEN(nn_embedding_bag(3, 2, .padding_idx = -3));
    REFUSED("padding_idx 3", nn_embedding_bag(3, 2, .padding_idx = 3));
    REFUSED("of -1", nn_embedding_bag(3));
    TAKEN(nn_bilinear(1, 0, 0));
    REFUSED("0 and 2 features in", nn_bilinear(0, 2, 1));
    REFUSED("-1 out", nn_bilinear(1, 2));
    REFUSED("1 and -1 features in", nn_bilinear(1, -1, 2));
    TAKEN(nn_dropout(.p = 0));
    TAKEN(nn_dropout2d(.p = 1));
    REFUSED("no probability", nn_dropout(.p = 1.0000001));
    REFUSED("no probability", nn_alpha_dropout(.p = -1e-9));
    REFUSED("no probability", nn_feature_alpha_dropout(.p = NAN));
    TAKEN(nn_pixel_shuffle(1));
    REFUSED("0: want 1", nn_pixel_shuffle(0));
    REFUSED("0: want 1", nn_pixel_unshuffle(0));
    TAKEN(nn_channel_shuffle(INT32_MAX));
    REFUSED("2147483648: want 1", nn_channel_shuffle((int64_t)INT32_MAX + 1));
}

/* What must be given is not 0 where it was forgotten. */
static void test_forgotten(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *p = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true);
    REFUSED("-1 out", nn_linear(3));
    REFUSED("rows of -1", nn_embedding(10));
    tensor_set_grad(p, tensor_full(SHAPE(2), 3, TENSOR_F32));
    assert_null(nn_clip_grad_norm_(TENSORS(p)));
    assert_tensor_error((Tensor *)NULL, TENSOR_EVALUE);
    assert_true(tensor_get(tensor_grad(p), DIMS(0)) == 3);
    tensor_scope_close(scope);
}

static void test_attention(void **state)
{
    (void)state;
    TAKEN(nn_multihead_attention(6, 6, .dropout = 1, .kdim = 1, .vdim = 1));
    REFUSED("4 heads", nn_multihead_attention(6, 4));
    REFUSED("0 heads", nn_multihead_attention(6, 0));
    REFUSED("width 0", nn_multihead_attention(0, 1));
    REFUSED("kdim -1", nn_multihead_attention(6, 2, .kdim = -1));
    REFUSED("vdim -1", nn_multihead_attention(6, 2, .vdim = -1));
    REFUSED("no probability", nn_multihead_attention(6, 2, .dropout = 1.01));
    REFUSED("no probability", nn_multihead_attention(6, 2, .dropout = -0.01));
    Module *m = nn_multihead_attention(4, 2), *other = nn_relu();
    Tensor *x = tensor_ones(SHAPE(3, 4), TENSOR_F32);
    assert_tensor_error(nn_multihead_attention_forward(m, NULL, x, x), TENSOR_ENULL);
    assert_tensor_error(nn_multihead_attention_forward(m, x, NULL, x), TENSOR_ENULL);
    assert_tensor_error(nn_multihead_attention_forward(m, x, x, NULL), TENSOR_ENULL);
    assert_tensor_error(nn_multihead_attention_forward(NULL, x, x, x), TENSOR_ENULL);
    assert_tensor_error(nn_multihead_attention_forward(other, x, x, x), TENSOR_EVALUE);
    Tensor *bad[] = { tensor_ones(SHAPE(4), TENSOR_F32), tensor_ones(SHAPE(1, 1, 3, 4), TENSOR_F32),
                      tensor_ones(SHAPE(3, 5), TENSOR_F32) };
    for (int i = 0; i < 3; i++) {
        assert_tensor_error(nn_multihead_attention_forward(m, bad[i], x, x), TENSOR_ESHAPE);
        assert_tensor_error(nn_multihead_attention_forward(m, x, bad[i], x), TENSOR_ESHAPE);
        assert_tensor_error(nn_multihead_attention_forward(m, x, x, bad[i]), TENSOR_ESHAPE);
    }
    nn_free(m), nn_free(other);
}

static void test_transformers(void **state)
{
    (void)state;
    TAKEN(nn_transformer_encoder_layer(2, 2, .dim_feedforward = 1, .dropout = 1));
    REFUSED("dim_feedforward 0", nn_transformer_encoder_layer(2, 2, .dim_feedforward = 0));
    REFUSED("nn_transformer_decoder_layer: nn_multihead_attention: width 3, 2 heads",
            nn_transformer_decoder_layer(3, 2));
    REFUSED("no probability", nn_transformer_encoder_layer(2, 2, .dim_feedforward = 1, .dropout = 1.1));
    TAKEN(nn_transformer_encoder(nn_relu(), 0));
    TAKEN(nn_transformer_decoder(nn_relu(), 1));
    REFUSED("-1 layers", nn_transformer_encoder(nn_relu(), -1));
    REFUSED("-1 layers", nn_transformer(.d_model = 2, .nhead = 1, .num_decoder_layers = -1));
    REFUSED("0 steps", nn_spectral_norm(nn_linear(1, 1), .n_power_iterations = 0));
}

static void test_convolutions(void **state)
{
    (void)state;
    TAKEN(nn_conv1d(1, 1, 1));
    TAKEN(nn_conv3d(4, 8, 2, .groups = 4));
    TAKEN(nn_conv2d(1, 1, .kernel_sizes = { 1, 2 }));
    REFUSED("0 channels in", nn_conv1d(0, 1, 1));
    REFUSED("0 out", nn_conv_transpose2d(1, 0, 1));
    REFUSED("size 0", nn_conv3d(1, 1, 0));
    REFUSED("all must be positive", nn_conv2d(1, 1, .kernel_sizes = { 1, -1 }));
    REFUSED("3 groups", nn_conv2d(3, 4, 1, .groups = 3));
    REFUSED("3 groups", nn_conv_transpose1d(4, 3, 1, .groups = 3));
    REFUSED("0 groups", nn_conv2d(3, 4, 1, .groups = 0));
}

static void test_norms(void **state)
{
    (void)state;
    TAKEN(nn_batch_norm1d(0));
    REFUSED("-1 features", nn_batch_norm1d(-1));
    REFUSED("-1 features", nn_instance_norm3d(-1));
    TAKEN(nn_layer_norm(1));
    REFUSED("a size of 0", nn_layer_norm(0));
    REFUSED("a size of 0", nn_layer_norm(.normalized_shape = SHAPE(2, 0)));
    REFUSED("a size of 0", nn_rms_norm(0));
    REFUSED("rms_norm has none", nn_rms_norm(2, .bias = true));
    TAKEN(nn_group_norm(3, 3));
    REFUSED("2 groups of 3", nn_group_norm(2, 3));
    REFUSED("0 groups", nn_group_norm(0, 3));
    REFUSED("of 0 channels", nn_group_norm(1, 0));
    TAKEN(nn_local_response_norm(1));
    REFUSED("a size of 0", nn_local_response_norm(0));
}

static void test_pools(void **state)
{
    (void)state;
    TAKEN(nn_max_pool3d(1));
    REFUSED("a kernel of size 0", nn_max_pool1d(0));
    REFUSED("a kernel of size -1", nn_max_pool3d(.kernel_sizes = { 1, 1, -1 }));
    REFUSED("a kernel of size 0", nn_avg_pool2d(0));
    TAKEN(nn_avg_pool2d(1, .divisor_override = 1));
    REFUSED("divisor_override 1", nn_avg_pool1d(1, .divisor_override = 1));
    TAKEN(nn_adaptive_avg_pool3d(0, 0, 0));
    TAKEN(nn_adaptive_max_pool1d(0));
    REFUSED("a size of -1", nn_adaptive_avg_pool3d(1, 1, -1));
    REFUSED("a size of -1", nn_adaptive_max_pool2d(-1, 1));
    TAKEN(nn_lp_pool1d(-1, 1));
    REFUSED("norm_type 0", nn_lp_pool2d(0, 1));
    REFUSED("a kernel of size 0", nn_lp_pool2d(2, 0));
    TAKEN(nn_lp_pool3d(1, 1));
    REFUSED("norm_type 0", nn_lp_pool3d(0, 1));
}

static void test_recurrent(void **state)
{
    (void)state;
    TAKEN(nn_gru(1, 1, .dropout = 1));
    REFUSED("input 0", nn_rnn(0, 1));
    REFUSED("hidden 0", nn_gru(1, 0));
    REFUSED("0 layers", nn_lstm(1, 1, .num_layers = 0));
    REFUSED("dropout 1.5", nn_lstm(1, 1, .dropout = 1.5));
    REFUSED("dropout -0.5", nn_rnn(1, 1, .dropout = -0.5));
    TAKEN(nn_lstm(1, 3, .proj_size = 2));
    REFUSED("proj_size 3", nn_lstm(1, 3, .proj_size = 3));
    REFUSED("proj_size -1", nn_lstm(1, 3, .proj_size = -1));
    REFUSED("proj_size 1", nn_gru(1, 3, .proj_size = 1));
    TAKEN(nn_gru_cell(0, 1));
    REFUSED("input -1", nn_rnn_cell(-1, 1));
    REFUSED("hidden 0", nn_lstm_cell(1, 0));
    /* the most layers: their parameters, with input and states, are OP_MAX_INPUTS */
    TAKEN(nn_gru(1, 1, .num_layers = 15));
    REFUSED("at most 15", nn_gru(1, 1, .num_layers = 16));
    TAKEN(nn_rnn(1, 1, .num_layers = 31, .bias = false));
    REFUSED("at most 31", nn_rnn(1, 1, .num_layers = 32, .bias = false));
    TAKEN(nn_lstm(1, 1, .num_layers = 7, .bidirectional = true));
    REFUSED("at most 7", nn_lstm(1, 1, .num_layers = 8, .bidirectional = true));
    TAKEN(nn_lstm(1, 2, .num_layers = 12, .proj_size = 1));
    REFUSED("at most 12", nn_lstm(1, 2, .num_layers = 13, .proj_size = 1));
}

/* Every constructor makes the kind that bears its name. */
static void test_constructors(void **state)
{
    (void)state;
#define MAKES(type_, call)                              \
    do {                                                \
        Module *m = call;                               \
        assert_non_null(m);                             \
        assert_string_equal(m->type, type_);            \
        assert_ptr_equal(m->kind, nn_kind_find(type_)); \
        nn_free(m);                                     \
    } while (0)
    MAKES("ReLU6", nn_relu6());
    MAKES("Mish", nn_mish());
    MAKES("SELU", nn_selu());
    MAKES("LogSigmoid", nn_logsigmoid());
    MAKES("Softsign", nn_softsign());
    MAKES("Tanhshrink", nn_tanhshrink());
    MAKES("Hardsigmoid", nn_hardsigmoid());
    MAKES("Hardswish", nn_hardswish());
    MAKES("ELU", nn_elu());
    MAKES("CELU", nn_celu());
    MAKES("Softplus", nn_softplus());
    MAKES("Softshrink", nn_softshrink());
    MAKES("Hardshrink", nn_hardshrink());
    MAKES("Hardtanh", nn_hardtanh());
    MAKES("RReLU", nn_rrelu());
    MAKES("GLU", nn_glu());
    MAKES("Threshold", nn_threshold(0.5, 7));
    MAKES("Softmin", nn_softmin(1));
    MAKES("Softmax2d", nn_softmax2d());
    MAKES("Dropout1d", nn_dropout1d());
    MAKES("Dropout3d", nn_dropout3d());
    MAKES("BatchNorm3d", nn_batch_norm3d(2));
    MAKES("InstanceNorm1d", nn_instance_norm1d(2));
    MAKES("InstanceNorm2d", nn_instance_norm2d(2));
    MAKES("ConvTranspose3d", nn_conv_transpose3d(1, 1, 1));
    MAKES("AvgPool3d", nn_avg_pool3d(1));
    MAKES("AdaptiveMaxPool3d", nn_adaptive_max_pool3d(1, 1, 1));
    MAKES("AdaptiveAvgPool1d", nn_adaptive_avg_pool1d(1));
    MAKES("Unflatten", nn_unflatten(1, SHAPE(2, 3)));
    MAKES("Pad", nn_pad(SHAPE(1, 1)));
    MAKES("Upsample", nn_upsample(.scale_factor = 2));
    Tensor *x = tensor_from_data((double[]){ 0.5, 0.75 }, SHAPE(2), TENSOR_F64);
    Module *threshold = nn_threshold(0.5, 7), *channels = nn_softmax2d();
    Tensor *y = nn_forward(threshold, x);
    assert_true(tensor_get(y, DIMS(0)) == 7 && tensor_get(y, DIMS(1)) == 0.75);
    assert_tensor_error(nn_forward(channels, tensor_ones(SHAPE(2, 2), TENSOR_F32)), TENSOR_ESHAPE);
    assert_tensor_error(nn_forward(channels, tensor_ones(SHAPE(1, 1, 1, 2, 2), TENSOR_F32)), TENSOR_ESHAPE);
    assert_true(tensor_item(nn_forward(channels, tensor_ones(SHAPE(1, 1, 1), TENSOR_F32))) == 1);
    const NNLoadArgs zeroed = { .module = threshold };
    assert_status_error(nn_load_state_dict_args(zeroed), TENSOR_EVALUE);
    nn_free(threshold), nn_free(channels);
    assert_int_equal(nn_clip_grad_value_(TENSORS(x), 0), 0);
    assert_status_error(nn_clip_grad_value_(TENSORS(x), -1e-9), TENSOR_EVALUE);
    assert_status_error(nn_clip_grad_value_(TENSORS(x), NAN), TENSOR_EVALUE);
}

static Tensor *itself(Module *self, Tensor *x) { return (void)self, x; }

/* The longest dotted name has 511 bytes. */
static void test_names(void **state)
{
    (void)state;
    static char name[513];
    for (int size = 511; size <= 512; size++) {
        memset(name, 'n', (size_t)size);
        for (int inner = 0; inner < 2; inner++) {
            Module *leaf = nn_new_size(sizeof(Module), "Leaf", itself);
            nn_register_buffer(leaf, name + (inner ? 4 : 0), tensor_ones(SHAPE(1), TENSOR_F32));
            Module *m = nn_done(leaf);
            if (inner) {
                Module *box = nn_new_size(sizeof(Module), "Box", itself);
                nn_child(box, "box", m);
                m = nn_done(box);
            }
            assert_non_null(m);
            const TensorDict dict = nn_state_dict(m);
            if (size == 511) assert_true(dict.count == 1 && strlen(dict.item[0].name) == 511);
            else assert_tensor_error(dict.item ? dict.item[0].tensor : NULL, TENSOR_EVALUE);
            tensor_error_clear();
            nn_free(m);
        }
    }
}

typedef struct {
    Module base;
    Tensor *seen;
} Counter;

/* Counts, draws, and fails where its input has rank 1. */
static Tensor *counter_forward(Module *self, Tensor *x)
{
    Counter *c = (Counter *)self;
    tensor_add_scalar_(c->seen, 1);
    return tensor_add(x, tensor_select(tensor_rand(tensor_shape(x), TENSOR_F32), -2, 0));
}

static void test_summary_changes_nothing(void **state)
{
    (void)state;
    FILE *nowhere = tmpfile();
    Counter *c = nn_new(Counter, "Counter", counter_forward);
    c->seen = nn_register_buffer(c, "seen", tensor_full(SHAPE(2), 5, TENSOR_F32));
    Module *m = nn_done(c);
    Tensor *before = tensor_get_rng_state();
    assert_int_equal(nn_summary(m, SHAPE(2, 3), nowhere), 0);
    assert_status_error(nn_summary(m, SHAPE(3), nowhere), TENSOR_EINDEX);
    assert_true(tensor_item(tensor_max(c->seen)) == 5 && tensor_item(tensor_min(c->seen)) == 5);
    assert_true(tensor_equal(before, tensor_get_rng_state()) && m->training);
    nn_free(m);
    fclose(nowhere);
}

/* Whatever is asked of a module that was freed fails and says so; nothing is freed twice. */
static void test_freed(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(1, 2), TENSOR_F32);
    for (int which = 0; which < 12; which++) {
        Module *inner = nn_linear(2, 2), *m = nn_sequential(inner, nn_relu());
        nn_free(m);
        if (which % 2) m = inner; /* it went with its parent */
        const int64_t live = tensor_live_count();
        switch (which / 2) {
        case 0: assert_null(nn_forward(m, x)); break;
        case 1: nn_free(m); break;
        case 2: assert_null(nn_retain(m)); break;
        case 3: assert_null(nn_sequential(nn_relu(), m)); break;
        case 4: assert_int_equal(nn_parameters(m).count, 0); break;
        default: assert_null(nn_append(m, nn_relu()));
        }
        assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
        if (!strstr(tensor_error(), "freed before")) fail_msg("%d: %s", which, tensor_error());
        tensor_error_clear();
        assert_int_equal(tensor_live_count(), live);
    }
    Module *shared = nn_retain(nn_relu());
    nn_free(shared);
    assert_non_null(nn_forward(shared, x));
    nn_free(shared);
    assert_status_error(nn_to(shared, TENSOR_F64), TENSOR_EVALUE);
}

/* ---- forwards that give nothing -------------------------------------------------------------- */

struct Plain {
    Module base;
};
static Tensor *gives_null(Module *self, Tensor *x) { return (void)self, (void)x, NULL; }

static Module *borrowed;
static Tensor *borrows(Module *self, Tensor *x) { return (void)self, nn_forward(borrowed, x); }

/* Goes on after an error inside, which was cleared, and then fails itself; or says nothing about its own. */
static Tensor *fails_later(Module *self, Tensor *x)
{
    assert_null(nn_forward(self->children[0].module, x));
    tensor_error_clear();
    return tensor_matmul(x, x);
}

static Tensor *gives_nothing(Module *self, Tensor *x)
{
    assert_null(nn_forward(self->children[0].module, x));
    tensor_error_clear();
    return NULL;
}

static Tensor *goes_on(Module *self, Tensor *x) { return (void)self, tensor_matmul(x, x), x; }

static void errors_of_its_own_tell_where(void **state)
{
    (void)state;
    Tensor *(*const forwards[])(Module *, Tensor *) = { fails_later, gives_nothing, goes_on, borrows };
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < 4; i++) {
        Module *own = nn_new(Module, "Own", forwards[i]);
        nn_child(own, "inner", nn_linear(2, 2));
        Module *net = nn_sequential(nn_relu(), nn_done(own));
        borrowed = nn_linear(2, 2); /* no part of a net, and so without a name */
        Tensor *y = nn_forward(net, tensor_ones(SHAPE(2, 3), TENSOR_F32));
        assert_true((y != NULL) == (forwards[i] == goes_on));
        const char *note = tensor_error() ? strstr(tensor_error(), "\n    in ") : NULL;
        if (!note) fail_msg("forward %d: %s", i, tensor_error());
        assert_string_equal(note, "\n    in 1 (Own)");
        tensor_error_clear();
        nn_free(net), nn_free(borrowed);
    }
    tensor_scope_close(scope);
}

static void sets_the_second(Module *self, NNCall *c) { (void)self, c->out[1] = tensor_relu(c->in[0]); }

static void forwards_without_a_result(void **state)
{
    (void)state;
    Module *const bad[] = { nn_done(nn_new(struct Plain, "Empty", gives_null)),
                            nn_done(nn_new(struct Plain, "Second", sets_the_second)) };
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F32), *second = x;
    for (int i = 0; i < 2; i++) {
        Module *net = nn_sequential(nn_relu(), nn_sequential(nn_retain(bad[i])));
        char where[60];
        snprintf(where, sizeof where, "in 1.0 (%s)", bad[i]->type);
        assert_null(nn_call(bad[i], .in = { x }, .out = { NULL, &second }));
        assert_null(second);
        assert_non_null(strstr(tensor_error(), bad[i]->type));
        assert_status_error(-1, TENSOR_EVALUE);
        assert_null(nn_forward(net, x));
        assert_non_null(strstr(tensor_error(), where));
        assert_status_error(-1, TENSOR_EVALUE);
        nn_free(net), nn_free(bad[i]);
    }
}

/* nn_fit and others ask for the list of a net whose caller holds it. */
static void the_list_of_parameters_stays(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_linear(2, 3), nn_linear(3, 1));
    const TensorList held = nn_parameters(net);
    Tensor *first = nn_get(net, "0.weight");
    for (int i = 0; i < 3; i++) {
        const TensorList again = nn_parameters(net);
        assert_ptr_equal(again.item, held.item);
        assert_int_equal(again.count, 4);
    }
    assert_ptr_equal(held.item[0], first);
    nn_append(net, nn_linear(1, 1));
    assert_int_equal(nn_parameters(net).count, 6);
    nn_free(net);
}

static Module *relu(void) { return nn_relu(); }
static Module *gelu(void) { return nn_gelu(); }
static Tensor *doubled(Module *self, Tensor *x) { return (void)self, tensor_mul_scalar(x, 2); }

/* A forward of the user's own is run, also where the layer before would apply the activation. */
static void forwards_in_the_place_of_activations(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *(*const make[])(void) = { relu, gelu };
    for (int i = 0; i < 2; i++) {
        Module *act = make[i](), *net = nn_sequential(nn_linear(3, 4), act);
        Tensor *x = tensor_randn(SHAPE(2, 3), TENSOR_F32), *y = nn_forward(nn_get_module(net, "0"), x);
        act->forward = doubled;
        assert_true(tensor_equal(nn_forward(net, x), tensor_mul_scalar(y, 2)));
        nn_free(net);
    }
    tensor_scope_close(scope);
}

/* A child has one parent, also where it took another's place, and the other then has none. */
static void children_in_the_place_of_others(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_relu()), *other = nn_sequential(nn_relu()), *old = nn_get_module(net, "0"),
           *child = nn_gelu();
    nn_retain(old);
    assert_ptr_equal(nn_child(net, "0", child), child);
    assert_null(nn_child(other, "0", child));
    assert_tensor_error((Tensor *)NULL, TENSOR_EVALUE);
    nn_free(other), other = nn_sequential(nn_relu());
    assert_ptr_equal(nn_child(other, "1", old), old);
    nn_free(other), nn_free(net);
}

static void summaries_of_one_parameter(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    Module *net = nn_prelu(.dtype = TENSOR_F64);
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(nn_summary(net, SHAPE(2, 3), file), 0);
    fclose(file);
    assert_non_null(strstr(text, "Total parameters: 1\n"));
    free(text), nn_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_of_parameters_stays),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_constructors),
        cmocka_unit_test(test_summary_changes_nothing),
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_freed),
        cmocka_unit_test(forwards_without_a_result),
        cmocka_unit_test(forwards_in_the_place_of_activations),
        cmocka_unit_test(children_in_the_place_of_others),
        cmocka_unit_test(summaries_of_one_parameter),
        cmocka_unit_test(errors_of_its_own_tell_where),
    };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("modules at their edges", tests, NULL, NULL);
    tensor_scope_close(scope);
    return failed;
}
