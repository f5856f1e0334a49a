/* transformer.c - transformer layers (attention and two linear layers), stacks of them, encoder and
 * decoder. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../module.h"

enum { ENCODER, DECODER }; /* kind->form */

/* ---- a layer --------------------------------------------------------------------------------- */

const NNTransformerLayerArgs nn_transformer_layer_defaults = { NN_TRANSFORMER_LAYER_DEFAULTS };
static const char *const activations[] = { "relu", "gelu", NULL };
static const OpField layer_fields[] = { OP_REQUIRED(NNTransformerLayerArgs, d_model, nhead),
                                        OP_OPTION(NNTransformerLayerArgs, dim_feedforward, dropout),
                                        OP_CHOICE(NNTransformerLayerArgs, activation, activations),
                                        OP_OPTION(NNTransformerLayerArgs, layer_norm_eps, batch_first,
                                                  norm_first, bias, dtype),
                                        { 0 } };

/* Its children, of a decoder with what comes between. */
enum { SELF_ATTENTION, CROSS_ATTENTION, LINEAR1 = CROSS_ATTENTION, DROPOUT, LINEAR2, NORM1 };

static void add_numbered(Module *m, const char *what, int i, Module *child)
{
    char name[16];
    snprintf(name, sizeof name, "%s%d", what, i);
    nn_child(m, name, child);
}

static int layer_init(Module *m, const void *args)
{
    const NNTransformerLayerArgs *a = args;
    const int attentions = m->kind->form == DECODER ? 2 : 1;
    if (a->dim_feedforward < 1)
        return nn_refuse(m, "dim_feedforward %lld: want 1 or more", (long long)a->dim_feedforward);
    const char *outer = tensor_compose_begin(m->kind->function);
    for (int i = 0; i < attentions && !m->failed; i++)
        nn_child(m, i ? "multihead_attn" : "self_attn",
                 nn_multihead_attention(a->d_model, a->nhead, .dropout = a->dropout, .bias = a->bias,
                                        .batch_first = a->batch_first, .dtype = a->dtype));
    tensor_compose_end(outer);
    if (m->failed) return -1;
    nn_child(m, "linear1", nn_linear(a->d_model, a->dim_feedforward, .bias = a->bias, .dtype = a->dtype));
    nn_child(m, "dropout", nn_dropout(a->dropout));
    nn_child(m, "linear2", nn_linear(a->dim_feedforward, a->d_model, .bias = a->bias, .dtype = a->dtype));
    for (int i = 1; i <= attentions + 1; i++)
        add_numbered(m, "norm", i,
                     nn_layer_norm(a->d_model, a->layer_norm_eps, .bias = a->bias, .dtype = a->dtype));
    for (int i = 1; i <= attentions + 1; i++) add_numbered(m, "dropout", i, nn_dropout(a->dropout));
    return m->failed ? -1 : 0;
}

/* What a call says besides its inputs. */
typedef struct Causal {
    bool self, memory, encoder; /* of the decoder's two attentions, or the layer's only one; of the encoder */
} Causal;
static const Causal not_causal;

static const Causal *causal_of(const NNCall *c) { return c->options ? c->options : &not_causal; }

static Tensor *attend(Module *attention, Tensor *x, Tensor *to, Tensor *mask, Tensor *padding, bool causal)
{
    NNAttentionCallArgs how = nn_multihead_attention_forward_defaults;
    how.is_causal = causal;
    NNCall c = { .in = { x, to, to, padding, mask }, .results = 1, .options = &how };
    nn_run(attention, &c);
    return c.out[0];
}

static Tensor *feed_forward(Module *m, Tensor *x)
{
    const NNTransformerLayerArgs *a = m->args;
    const ModuleChild *child = m->children + (m->kind->form == DECODER);
    const bool gelu = a->activation == NN_TRANSFORMER_GELU;
    const int activation = a->activation_fn ? -1 : gelu ? TENSOR_ACT_GELU : TENSOR_ACT_RELU;
    bool done;
    Tensor *h = nn_linear_act(child[LINEAR1].module, x, activation, &done);
    if (!done) {
        h = nn_forward(child[LINEAR1].module, x);
        h = a->activation_fn ? a->activation_fn(h) : gelu ? tensor_gelu(h) : tensor_relu(h);
    }
    return nn_forward(child[LINEAR2].module, nn_forward(child[DROPOUT].module, h));
}

/* Encoder: (src, mask, padding); decoder: (tgt, memory, tgt_mask, memory_mask, tgt_padding,
 * memory_padding). */
static void layer_call(Module *m, NNCall *c)
{
    const bool decoder = m->kind->form == DECODER,
               first = ((const NNTransformerLayerArgs *)m->args)->norm_first;
    const int terms = decoder ? 3 : 2;
    const ModuleChild *norm = m->children + NORM1 + decoder, *dropout = norm + terms;
    const Causal *causal = causal_of(c);
    Tensor *x = c->in[0];
    if (decoder && !c->in[1]) {
        tensor_fail(TENSOR_ENULL, "nn_transformer_decoder_layer", "the memory is NULL");
        return;
    }
    Tensor *from = first ? nn_forward(norm[0].module, x) : x, *y;
    for (int i = 0; i < terms && x; i++) {
        if (i == terms - 1) y = feed_forward(m, from);
        else if (i == 1)
            y = attend(m->children[1].module, from, c->in[1], c->in[3], c->in[5], causal->memory);
        else
            y = attend(m->children[0].module, from, from, c->in[decoder ? 2 : 1], c->in[decoder ? 4 : 2],
                       causal->self);
        y = nn_forward(dropout[i].module, y);
        if (!first) from = x = nn_add_norm(norm[i].module, x, y, &y);
        else if (i < terms - 1) from = nn_add_norm(norm[i + 1].module, x, y, &x);
        else x = tensor_add(x, y);
    }
    c->out[0] = x;
}

#define LAYER(name_, type, form_)                                                                          \
    static const NNKind name_##_kind = { .name = (type),                                                   \
                                         .function = "nn_" #name_,                                         \
                                         NN_OPTIONS(NNTransformerLayerArgs, nn_transformer_layer_defaults, \
                                                    layer_fields),                                         \
                                         .init = layer_init,                                               \
                                         .call = layer_call,                                               \
                                         .inputs = (form_) == DECODER ? 6 : 3,                             \
                                         .form = (form_) };                                                \
    NN_REGISTER(name_##_kind);                                                                             \
    Module *nn_##name_##_args(NNTransformerLayerArgs args) { return nn_make(&name_##_kind, &args); }
LAYER(transformer_encoder_layer, "TransformerEncoderLayer", ENCODER)
LAYER(transformer_decoder_layer, "TransformerDecoderLayer", DECODER)

/* ---- a stack: the first input passes through all layers, the others go to each --------------- */

const NNTransformerStackArgs nn_transformer_stack_defaults = { NN_TRANSFORMER_STACK_DEFAULTS };

/* A user's layer cannot take such options. */
static bool may_run(const Module *layer, const NNCall *c, const Module *stack)
{
    const Causal *causal = causal_of(c);
    if (layer->call == layer_call || !(causal->self || causal->memory)) return true;
    tensor_fail(TENSOR_EVALUE, stack->kind->function, "is_causal, and a layer %s: give it the mask instead",
                layer->type);
    return false;
}

static void stack_call(Module *m, NNCall *c)
{
    const Module *layers = m->children[0].module;
    Tensor *x = c->in[0];
    for (int i = 0; i < layers->child_count && x; i++) {
        Module *one = layers->children[i].module;
        NNCall layer = *c;
        layer.in[0] = x, layer.results = 1;
        if (!may_run(one, c, m)) return;
        if (one->call != layer_call) layer.options = NULL;
        nn_run(one, &layer);
        x = layer.out[0];
    }
    c->out[0] = m->child_count > 1 ? nn_forward(m->children[1].module, x) : x;
}

static const NNKind encoder_stack = {
    .name = "TransformerEncoder", .function = "nn_transformer_encoder", .call = stack_call, .inputs = 3
};
static const NNKind decoder_stack = {
    .name = "TransformerDecoder", .function = "nn_transformer_decoder", .call = stack_call, .inputs = 6
};

/* Takes the layer over. */
static Module *copies(Module *layer, int n, const NNKind *kind)
{
    if (n < 0) tensor_fail(TENSOR_EVALUE, kind->function, "%d layers: want 0 or more", n);
    Module *list = n >= 0 ? nn_module_list_args(NULL, 0) : NULL;
    for (int i = 1; i < n && list && layer; i++) {
        Module *copy = nn_clone(layer);
        if (i == 1) nn_add_child(list, "0", layer, kind->function);
        if (!copy || !(nn_append)(list, copy)) list->failed = true;
    }
    if (n == 1 && list) nn_add_child(list, "0", layer, kind->function);
    else if (n < 1 || !list) nn_free(layer);
    return (nn_done)(list);
}

static Module *stack(const NNKind *kind, NNTransformerStackArgs a)
{
    const bool refused = TENSOR_CHECK_OPTIONS(kind->function, a, nn_transformer_stack_defaults);
    if (refused || nn_null(a.layer, kind->function)) return nn_free(a.layer), nn_free(a.norm), NULL;
    Module *m = nn_make(kind, NULL);
    Module *list = copies(a.layer, a.num_layers, kind);
    if (m) nn_add_child(m, "layers", list, kind->function);
    else nn_free(list);
    if (a.norm && m) nn_add_child(m, "norm", a.norm, kind->function);
    else nn_free(a.norm);
    return (nn_done)(m);
}

Module *nn_transformer_encoder_args(NNTransformerStackArgs args) { return stack(&encoder_stack, args); }
Module *nn_transformer_decoder_args(NNTransformerStackArgs args) { return stack(&decoder_stack, args); }

/* ---- both ------------------------------------------------------------------------------------ */

const NNTransformerArgs nn_transformer_defaults = { NN_TRANSFORMER_DEFAULTS };
static const OpField transformer_fields[] = { OP_OPTION(NNTransformerArgs, d_model, nhead, num_encoder_layers,
                                                        num_decoder_layers, dim_feedforward, dropout),
                                              OP_CHOICE(NNTransformerArgs, activation, activations),
                                              OP_OPTION(NNTransformerArgs, layer_norm_eps, batch_first,
                                                        norm_first, bias, dtype),
                                              { 0 } };

static Module *side(const NNTransformerArgs *a, int form)
{
    NNTransformerLayerArgs layer; /* its bytes are copied, and nn_clone looks for pointers in all of them */
    memcpy(&layer, &nn_transformer_layer_defaults, sizeof layer);
    layer.d_model = a->d_model, layer.nhead = a->nhead, layer.dim_feedforward = a->dim_feedforward;
    layer.dropout = a->dropout, layer.layer_norm_eps = a->layer_norm_eps, layer.bias = a->bias;
    layer.activation = a->activation, layer.activation_fn = a->activation_fn;
    layer.batch_first = a->batch_first, layer.norm_first = a->norm_first, layer.dtype = a->dtype;
    Module *one =
        nn_make(form == DECODER ? &transformer_decoder_layer_kind : &transformer_encoder_layer_kind, &layer);
    Module *norm =
        one ? nn_layer_norm(a->d_model, a->layer_norm_eps, .bias = a->bias, .dtype = a->dtype) : NULL;
    if (!norm) return nn_free(one), NULL;
    return stack(form == DECODER ? &decoder_stack : &encoder_stack,
                 (NNTransformerStackArgs){ .layer = one,
                                           .num_layers = form == DECODER ? a->num_decoder_layers
                                                                         : a->num_encoder_layers,
                                           .norm = norm,
                                           TENSOR_FROM_DEFAULTS });
}

static int transformer_init(Module *m, const void *args)
{
    const NNTransformerArgs *a = args;
    const char *outer = tensor_compose_begin("nn_transformer");
    nn_child(m, "encoder", a->custom_encoder ? a->custom_encoder : side(a, ENCODER));
    nn_child(m, "decoder", a->custom_decoder ? a->custom_decoder : side(a, DECODER));
    tensor_compose_end(outer);
    if (m->failed) return -1;
    TensorScope scope = tensor_scope_open();
    const TensorList all = nn_parameters(m);
    int status = all.item ? 0 : -1;
    for (int i = 0; i < all.count && !status; i++)
        if (tensor_ndim(all.item[i]) > 1 && !nn_init_xavier_uniform_(all.item[i])) status = -1;
    tensor_scope_close(scope);
    return status;
}

/* (src, tgt, src_mask, tgt_mask, memory_mask, src_padding, tgt_padding, memory_padding) */
static void transformer_call(Module *m, NNCall *c)
{
    const Causal *causal = causal_of(c), of_encoder = { .self = causal->encoder };
    NNCall encoder = { .in = { c->in[0], c->in[2], c->in[5] }, .options = &of_encoder };
    if (!c->in[1]) {
        tensor_fail(TENSOR_ENULL, "nn_transformer", "the target is NULL");
        return;
    }
    if (nn_run(m->children[0].module, &encoder)) return;
    NNCall decoder = { .in = { c->in[1], encoder.out[0], c->in[3], c->in[4], c->in[6], c->in[7] },
                       .options = causal };
    nn_run(m->children[1].module, &decoder);
    c->out[0] = decoder.out[0];
}

static const NNKind transformer = { .name = "Transformer",
                                    .function = "nn_transformer",
                                    NN_OPTIONS(NNTransformerArgs, nn_transformer_defaults,
                                               transformer_fields),
                                    .init = transformer_init,
                                    .call = transformer_call,
                                    .inputs = 8 };
NN_REGISTER(transformer);
Module *nn_transformer_args(NNTransformerArgs args) { return nn_make(&transformer, &args); }

/* ---- calls with options ---------------------------------------------------------------------- */

const NNEncoderCallArgs nn_transformer_encoder_forward_defaults = { NN_TRANSFORMER_ENCODER_FORWARD_DEFAULTS };
const NNDecoderCallArgs nn_transformer_decoder_forward_defaults = { NN_TRANSFORMER_DECODER_FORWARD_DEFAULTS };
const NNTransformerCallArgs nn_transformer_forward_defaults = { NN_TRANSFORMER_FORWARD_DEFAULTS };

static Tensor *run(Module *m, const NNKind *kind, const NNKind * or, NNCall c, const char *function)
{
    if (nn_null(m, function)) return NULL;
    if (m->kind != kind && m->kind != or)
        return tensor_fail(TENSOR_EVALUE, function, "not of a module %s", m->type), NULL;
    nn_run(m, &c);
    return c.out[0];
}

Tensor *nn_transformer_encoder_forward_args(NNEncoderCallArgs a)
{
    const NNCall c = { .in = { a.src, a.mask, a.src_key_padding_mask },
                       .options = &(Causal){ .self = a.is_causal } };
    return run(a.module, &encoder_stack, &transformer_encoder_layer_kind, c,
               "nn_transformer_encoder_forward");
}

Tensor *nn_transformer_decoder_forward_args(NNDecoderCallArgs a)
{
    const NNCall c = { .in = { a.tgt, a.memory, a.tgt_mask, a.memory_mask, a.tgt_key_padding_mask,
                               a.memory_key_padding_mask },
                       .options = &(Causal){ a.tgt_is_causal, a.memory_is_causal, false } };
    return run(a.module, &decoder_stack, &transformer_decoder_layer_kind, c,
               "nn_transformer_decoder_forward");
}

Tensor *nn_transformer_forward_args(NNTransformerCallArgs a)
{
    const NNCall c = { .in = { a.src, a.tgt, a.src_mask, a.tgt_mask, a.memory_mask, a.src_key_padding_mask,
                               a.tgt_key_padding_mask, a.memory_key_padding_mask },
                       .options = &(Causal){ a.tgt_is_causal, a.memory_is_causal, a.src_is_causal } };
    return run(a.module, &transformer, NULL, c, "nn_transformer_forward");
}

Tensor *nn_generate_square_subsequent_mask(int64_t n)
{
    const char *outer = tensor_compose_begin("nn_generate_square_subsequent_mask");
    TensorScope scope = tensor_scope_open();
    Tensor *mask = tensor_triu(tensor_full(SHAPE(n, n), -INFINITY, TENSOR_F32), 1);
    mask = tensor_scope_return(scope, mask);
    tensor_compose_end(outer);
    return mask;
}
