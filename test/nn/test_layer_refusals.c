/* test_layer_refusals.c - what functions of one kind of module, packed sequences and tables of rows refuse
 * (answers.h).  Options of each kind are test_nn_answers.c's. */
#include <tapegrad.h>
#include "answers.h"

static Tensor *f32(TensorShape shape) { return tensor_ones(shape, TENSOR_F32); }
static Tensor *i64(int64_t value, TensorShape shape) { return tensor_full(shape, (double)value, TENSOR_I64); }

static void lists(void)
{
    Tensor *rows = f32(SHAPE(4, 3));
    Module *m;
    static const int64_t sizes[TENSOR_MAX_DIMS + 1] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    ANSWER(nn_sequential_args(NULL, -1));
    ANSWER(nn_sequential_args(NULL, 2));
    ANSWER(nn_module_list_args(NULL, 1));
    ANSWER(nn_module_dict_args(NULL, 1));
    ANSWER(nn_free(nn_layer_norm(.normalized_shape = (TensorShape){ TENSOR_MAX_DIMS, sizes })));
    ANSWER(nn_layer_norm(.normalized_shape = (TensorShape){ TENSOR_MAX_DIMS + 1, sizes }));
    ANSWER(nn_layer_norm(.normalized_shape = (TensorShape){ 2, NULL }));
    ANSWER(nn_embedding_from_pretrained(NULL));
    ANSWER(nn_embedding_from_pretrained(f32(SHAPE(4))));
    ANSWER(nn_embedding_from_pretrained(f32(SHAPE(1, 4, 3))));
    ANSWER(nn_embedding_from_pretrained(rows, .padding_idx = 4));
    ANSWER(nn_embedding_from_pretrained(rows, .padding_idx = -5));
    ANSWER(m = nn_embedding_from_pretrained(rows, .padding_idx = -4));
    nn_free(m);
    ANSWER(nn_embedding(4, 3, .weight = f32(SHAPE(3, 4))));
    ANSWER(nn_embedding_bag_from_pretrained(f32(SHAPE(4))));
    ANSWER(nn_hardtanh(1, 1));
    ANSWER(nn_hardtanh(2, 1));
    ANSWER(nn_hardtanh(.max_val = -INFINITY));
    ANSWER(nn_conv2d(1, 1, 3, .stride = 2, .padding = TENSOR_SAME));
    ANSWER(nn_conv2d(1, 1, 3, .strides = { 1, 2 }, .padding = TENSOR_SAME));
    ANSWER(nn_free(nn_conv2d(1, 1, 3, .stride = 2, .padding = TENSOR_SAME, .paddings = { 1, 1 })));
    ANSWER(nn_free(nn_conv1d(1, 1, 3, .strides = { 1, 2 }, .padding = TENSOR_SAME)));
    ANSWER(nn_multi_margin_loss(.weight = rows));
    ANSWER(nn_multi_margin_loss(.weight = f32(SHAPE())));
    ANSWER(nn_linear_cross_entropy_loss(3, 4, .weight = rows));
    ANSWER(nn_linear_cross_entropy_loss(3, 4, .weight = f32(SHAPE(3))));
    ANSWER(nn_free(nn_linear_cross_entropy_loss(3, 4, .weight = f32(SHAPE(4)))));
    ANSWER(nn_fractional_max_pool2d(2, .output_ratios = { 0.5 }));
    ANSWER(nn_fractional_max_pool2d(2, .output_ratios = { 0, 0.5 }));
    ANSWER(nn_free(nn_fractional_max_pool2d(2, .output_ratios = { 0.5, 0.5 })));
    ANSWER(nn_fractional_max_pool3d(2, .output_ratios = { 0.5, 0.5 }));
}

static void attention(void)
{
    Module *linear = nn_linear(4, 4), *heads = nn_multihead_attention(4, 2);
    Tensor *x = f32(SHAPE(3, 2, 4));
    ANSWER(nn_multihead_attention_forward(NULL, x, x, x));
    ANSWER(nn_multihead_attention_forward(linear, x, x, x));
    ANSWER(nn_multihead_attention_forward(heads, NULL, x, x));
    ANSWER(nn_multihead_attention_forward(heads, x, NULL, x));
    ANSWER(nn_multihead_attention_forward(heads, x, x, NULL));
    ANSWER(nn_multihead_attention_forward(heads, f32(SHAPE(4)), x, x));
    ANSWER(nn_multihead_attention_forward(heads, f32(SHAPE(1, 3, 2, 4)), x, x));
    ANSWER(nn_multihead_attention_forward(heads, x, f32(SHAPE(3, 2, 5)), x));
    ANSWER(nn_multihead_attention_forward(heads, x, x, f32(SHAPE())));
    ANSWER(nn_multihead_attention_forward(heads, x, x, x));
    nn_free(linear), nn_free(heads);
}

static void transformers(void)
{
    Module *relu = nn_transformer_encoder(nn_relu(), 1), *linear = nn_linear(4, 4),
           *encoder = nn_transformer_encoder_layer(4, 2, .dim_feedforward = 4),
           *decoder = nn_transformer_decoder_layer(4, 2, .dim_feedforward = 4),
           *net =
               nn_transformer(4, 2, .num_encoder_layers = 1, .num_decoder_layers = 1, .dim_feedforward = 4);
    Tensor *x = f32(SHAPE(3, 2, 4));
    ANSWER(nn_transformer_encoder_forward(relu, x, .is_causal = true));
    ANSWER(nn_transformer_encoder_forward(relu, x));
    ANSWER(nn_transformer_encoder_forward(linear, x));
    ANSWER(nn_transformer_encoder_forward(encoder, x));
    ANSWER(nn_transformer_decoder_forward(encoder, x, x));
    ANSWER(nn_transformer_decoder_forward(decoder, x, NULL));
    ANSWER(nn_transformer_decoder_forward(decoder, x, x));
    ANSWER(nn_transformer_forward(linear, x, x));
    ANSWER(nn_transformer_forward(net, x, NULL));
    ANSWER(nn_transformer_forward(net, x, x));
    ANSWER(nn_transformer_encoder(nn_relu(), -1));
    ANSWER(nn_transformer_encoder(nn_relu()));
    ANSWER(nn_transformer_encoder(NULL, 1));
    nn_free(relu), nn_free(linear), nn_free(encoder), nn_free(decoder), nn_free(net);
}

static void recurrent(void)
{
    Module *lstm = nn_lstm(3, 2), *gru = nn_gru(3, 2), *cell = nn_lstm_cell(3, 2), *m;
    Tensor *x = f32(SHAPE(4, 2, 3)), *h = f32(SHAPE(1, 2, 2));
    ANSWER(nn_rnn_forward(lstm, x, h, NULL));
    ANSWER(nn_rnn_forward(NULL, x, h, NULL));
    ANSWER(nn_lstm_forward(gru, x, h, h, NULL, NULL));
    ANSWER(nn_rnn_cell_forward(cell, f32(SHAPE(2, 3)), NULL));
    ANSWER(nn_lstm_cell_forward(gru, f32(SHAPE(2, 3)), NULL, NULL, NULL));
    ANSWER(nn_call(gru, .in = { x, h, h }));
    ANSWER(nn_free(m = nn_lstm(3, 2, 15)));
    ANSWER(nn_lstm(3, 2, 16));
    ANSWER(nn_free(m = nn_gru(3, 2, 7, .bidirectional = true)));
    ANSWER(nn_gru(3, 2, 8, .bidirectional = true));
    ANSWER(nn_free(m = nn_rnn(3, 2, 31, .bias = false)));
    ANSWER(nn_rnn(3, 2, 32, .bias = false));
    nn_free(lstm), nn_free(gru), nn_free(cell);
}

static Tensor *lengths_of(int64_t a, int64_t b)
{
    return tensor_from_data(((int64_t[]){ a, b }), SHAPE(2), TENSOR_I64);
}

static void packing(void)
{
    Tensor *x = f32(SHAPE(4, 2, 3)), *two = lengths_of(4, 2), *list[] = { x, NULL }, *part[2];
    ANSWER(nn_pack_padded_sequence(NULL, two));
    ANSWER(nn_pack_padded_sequence(x, NULL));
    ANSWER(nn_pack_padded_sequence(f32(SHAPE(4)), two));
    ANSWER(nn_pack_padded_sequence(x, f32(SHAPE(2))));
    ANSWER(nn_pack_padded_sequence(x, tensor_ones(SHAPE(2), TENSOR_BOOL)));
    ANSWER(nn_pack_padded_sequence(x, i64(1, SHAPE(3))));
    ANSWER(nn_pack_padded_sequence(x, i64(1, SHAPE(1, 2))));
    ANSWER(nn_pack_padded_sequence(x, lengths_of(4, 0)));
    ANSWER(nn_pack_padded_sequence(x, lengths_of(4, 1)));
    ANSWER(nn_pack_padded_sequence(x, lengths_of(5, 1)));
    ANSWER(nn_pack_padded_sequence(x, lengths_of(3, 4)));
    ANSWER(nn_pack_padded_sequence(x, lengths_of(3, 4), .enforce_sorted = false));
    ANSWER(nn_pack_padded_sequence(f32(SHAPE(4, 0, 3)), i64(1, SHAPE(0))));
    ANSWER(nn_pad_sequence(TENSOR_LIST(NULL, 1)));
    ANSWER(nn_pad_sequence(TENSOR_LIST(list, 0)));
    ANSWER(nn_pad_sequence(TENSOR_LIST(list, 2)));
    ANSWER(nn_pad_sequence(TENSORS(x, f32(SHAPE()))));
    ANSWER(nn_pad_sequence(TENSORS(x), .padding_side = (NNPaddingSide)2));
    ANSWER(nn_unpad_sequence(NULL, two, false, part));
    ANSWER(nn_unpad_sequence(x, two, false, NULL));
    ANSWER(nn_unpad_sequence(x, lengths_of(5, 1), false, part));
    ANSWER(nn_unpad_sequence(x, two, false, part));
}

static void packed(void)
{
    Module *gru = nn_gru(3, 2);
    Tensor *x = f32(SHAPE(4, 2, 3)), *two = lengths_of(4, 2), *one = lengths_of(1, 1);
    const PackedSequence good = nn_pack_padded_sequence(x, two), none = { NULL },
                         rising = { f32(SHAPE(3, 3)), lengths_of(1, 2), NULL, NULL },
                         fewer = { f32(SHAPE(3, 3)), lengths_of(1, 1), NULL, NULL },
                         other = { good.data, good.batch_sizes, i64(0, SHAPE(3)), i64(0, SHAPE(3)) };
    ANSWER(nn_rnn_forward_packed(gru, none, NULL, NULL));
    ANSWER(nn_rnn_forward_packed(gru, rising, NULL, NULL));
    ANSWER(nn_rnn_forward_packed(gru, fewer, NULL, NULL));
    ANSWER(nn_rnn_forward_packed(gru, good, f32(SHAPE(1, 3, 2)), NULL));
    ANSWER(nn_rnn_forward_packed(gru, good, f32(SHAPE(2, 2, 2)), NULL));
    ANSWER(nn_rnn_forward_packed(gru, good, f32(SHAPE(1, 2, 3)), NULL));
    ANSWER(nn_rnn_forward_packed(gru, good, f32(SHAPE(2, 2)), NULL));
    ANSWER(nn_rnn_forward_packed(gru, good, f32(SHAPE(1, 2, 2)), NULL));
    ANSWER(nn_lstm_forward_packed(gru, good, NULL, NULL, NULL, NULL));
    ANSWER(nn_pad_packed_sequence(none));
    ANSWER(nn_pad_packed_sequence(rising));
    ANSWER(nn_pad_packed_sequence(good, .total_length = 3));
    ANSWER(nn_pad_packed_sequence(good, .total_length = 4));
    ANSWER(nn_pad_packed_sequence(good, .total_length = -1));
    ANSWER(nn_pad_packed_sequence(other));
    ANSWER(nn_pad_packed_sequence((PackedSequence){ f32(SHAPE(2, 3)), one, NULL, NULL }));
    nn_free(gru);
}

static void pools(void)
{
    Module *plain = nn_max_pool2d(2), *pool = nn_max_pool2d(2, .return_indices = true),
           *avg = nn_avg_pool2d(2);
    Tensor *x = f32(SHAPE(1, 1, 4, 4));
    ANSWER(nn_indices(NULL));
    ANSWER(nn_indices(avg));
    ANSWER(nn_indices(plain));
    ANSWER(nn_indices(pool));
    ANSWER(nn_forward(pool, x));
    ANSWER(nn_indices(pool));
    ANSWER(nn_conv_transpose_forward(pool, x, SHAPE(4, 4)));
    ANSWER(nn_max_unpool_forward(pool, x, x, SHAPE(4, 4)));
    nn_free(plain), nn_free(pool), nn_free(avg);
}

static void adaptive_softmax(void)
{
    Module *m = nn_adaptive_log_softmax_with_loss(4, 6, SHAPE(2, 4)), *linear = nn_linear(4, 4);
    Tensor *x = f32(SHAPE(3, 4));
    ANSWER(nn_call(m, .in = { x }));
    ANSWER(nn_call(m, .in = { x, i64(0, SHAPE(2)) }));
    ANSWER(nn_call(m, .in = { x, i64(0, SHAPE(3, 1)) }));
    ANSWER(nn_call(m, .in = { f32(SHAPE(3, 5)), i64(0, SHAPE(3)) }));
    ANSWER(nn_call(m, .in = { x, i64(-1, SHAPE(3)) }));
    ANSWER(nn_call(m, .in = { x, i64(6, SHAPE(3)) }));
    ANSWER(nn_call(m, .in = { x, i64(5, SHAPE(3)) }));
    ANSWER(nn_adaptive_log_prob(linear, x));
    ANSWER(nn_adaptive_log_prob(m, x));
    ANSWER(nn_adaptive_log_softmax_with_loss(4, 6, SHAPE(2, 4), .div_value = 1e-10));
    nn_free(m), nn_free(linear);
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/nn/layer_refusals.golden");
    answers_of("lists", lists);
    answers_of("attention", attention);
    answers_of("transformers", transformers);
    answers_of("recurrent", recurrent);
    answers_of("packing", packing);
    answers_of("packed", packed);
    answers_of("pools", pools);
    answers_of("adaptive softmax", adaptive_softmax);
    return answers_end();
}
