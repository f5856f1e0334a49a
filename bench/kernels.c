/* kernels.c - products, convolutions by pass, attention, recurrent layers, elementwise ops and reductions at
 * sizes that fit a cache and that do not, checkpoints, data loading. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cases.h"
#include <tapegrad.h>

static Tensor *x, *y, *w, *cotangent;

static Tensor *keep(Tensor *t) { return tensor_retain(t); }
static Tensor *leaf(TensorShape shape)
{
    return keep(tensor_requires_grad_(tensor_randn(shape, TENSOR_F32), true));
}

#define IN_SCOPE(name, ...)                            \
    static void name(void)                             \
    {                                                  \
        const TensorScope scope = tensor_scope_open(); \
        __VA_ARGS__;                                   \
        tensor_scope_close(scope);                     \
    }

/* ---- products, convolutions, attention, LSTM ------------------------------------------------- */

/* product_64x256x784_NT: 64 rows, 256 columns, sums of 784; the second operand transposed.  product_medium_:
 * in the precision of that name. */
static void product_setup(const char *sizes)
{
    long m = 1, n = 1, k = 1;
    char a = 'N', b = 'N';
    if (strncmp(sizes, "medium_", 7) == 0) {
        tensor_set_float32_matmul_precision(TENSOR_MATMUL_MEDIUM);
        sizes += 7;
    }
    if (sscanf(sizes, "%ldx%ldx%ld_%c%c", &m, &n, &k, &a, &b) != 5) abort();
    x = tensor_randn(a == 'T' ? SHAPE(k, m) : SHAPE(m, k), TENSOR_F32);
    w = tensor_randn(b == 'T' ? SHAPE(n, k) : SHAPE(k, n), TENSOR_F32);
    x = keep(a == 'T' ? tensor_transpose(x, 0, 1) : x), w = keep(b == 'T' ? tensor_transpose(w, 0, 1) : w);
}
IN_SCOPE(product, tensor_matmul(x, w))

/* conv_dx_32x64x56_64_3_1: images, channels and side; results, window, stride. */
static int64_t stride, padding;
static void conv_setup(const char *sizes)
{
    long n, c, side, k, size, by;
    if (sscanf(sizes, "%ldx%ldx%ld_%ld_%ld_%ld", &n, &c, &side, &k, &size, &by) != 6) abort();
    stride = by, padding = size / 2;
    x = leaf(SHAPE(n, c, side, side)), w = leaf(SHAPE(k, c, size, size));
    y = keep(tensor_conv2d(x, w, NULL, .stride = stride, .padding = padding));
    cotangent = keep(tensor_randn_like(y));
}
IN_SCOPE(
    conv_forward, TENSOR_NO_GRAD { tensor_conv2d(x, w, NULL, .stride = stride, .padding = padding); })

static void gradient_of(Tensor *of)
{
    const TensorScope scope = tensor_scope_open();
    tensor_gradients(y, of, .grad_output = cotangent, .retain_graph = true);
    tensor_scope_close(scope);
}
static void gradient_of_x(void) { gradient_of(x); }
static void gradient_of_w(void) { gradient_of(w); }

/* attention_12x4x256x64: batch, heads, positions, width of a head. */
static Tensor *q, *k, *v;
static void attention_setup(const char *sizes)
{
    long n, heads, t, width;
    if (sscanf(sizes, "%ldx%ldx%ldx%ld", &n, &heads, &t, &width) != 4) abort();
    q = leaf(SHAPE(n, heads, t, width)), k = leaf(SHAPE(n, heads, t, width)),
    v = leaf(SHAPE(n, heads, t, width));
    cotangent = keep(tensor_randn_like(q));
}
static Tensor *halved(Tensor *t) { return tensor_requires_grad_(keep(tensor_to(t, TENSOR_BF16)), true); }
static void attention_bf16_setup(const char *sizes)
{
    attention_setup(sizes);
    q = halved(tensor_detach(q)), k = halved(tensor_detach(k)), v = halved(tensor_detach(v));
    cotangent = keep(tensor_to(cotangent, TENSOR_BF16));
}
IN_SCOPE(
    attention_forward, TENSOR_NO_GRAD { tensor_scaled_dot_product_attention(q, k, v, .is_causal = true); })

static void attention_both(void)
{
    Tensor *found[3];
    const TensorScope scope = tensor_scope_open();
    y = tensor_scaled_dot_product_attention(q, k, v, .is_causal = true);
    tensor_gradients_many(TENSORS(y), TENSORS(q, k, v), found, .grad_outputs = TENSORS(cotangent));
    tensor_scope_close(scope);
}

static Module *layer;
static void recurrent_input(Module *m)
{
    layer = m, x = leaf(SHAPE(32, 32, 256)), cotangent = keep(tensor_randn(SHAPE(32, 32, 256), TENSOR_F32));
}
static void lstm_setup(const char *sizes) { (void)sizes, recurrent_input(nn_lstm(256, 256)); }
static void gru_setup(const char *sizes) { (void)sizes, recurrent_input(nn_gru(256, 256)); }
static void rnn_setup(const char *sizes) { (void)sizes, recurrent_input(nn_rnn(256, 256)); }
IN_SCOPE(recurrent, tensor_backward(nn_forward(layer, x), cotangent); nn_zero_grad(layer))

/* ---- elementwise ops and reductions ---------------------------------------------------------- */

/* add_4096: so many bytes of f32, in rows of 512 (fewer, in all, are one row). */
static void vector_setup(const char *sizes)
{
    const long n = atol(sizes) / 4, row = n < 512 ? n : 512;
    x = leaf(SHAPE(n / row, row)), y = keep(tensor_randn(SHAPE(n / row, row), TENSOR_F32));
    w = keep(tensor_ones(SHAPE(row), TENSOR_F32)), cotangent = keep(tensor_ones_like(y));
}

#define ELEMENTWISE(name, call)         \
    IN_SCOPE(                           \
        name, TENSOR_NO_GRAD { call; }) \
    IN_SCOPE(name##_both, tensor_backward(call); tensor_set_grad(x, NULL))
#define MAPPED(name, call)              \
    IN_SCOPE(                           \
        name, TENSOR_NO_GRAD { call; }) \
    IN_SCOPE(name##_both, tensor_backward(call, cotangent); tensor_set_grad(x, NULL))
MAPPED(add, tensor_add(x, y))
MAPPED(relu, tensor_relu(x))
MAPPED(exponential, tensor_exp(x))
MAPPED(gelu, tensor_gelu(x))
MAPPED(tangent, tensor_tanh(x))
MAPPED(softmax, tensor_softmax(x, 1))
MAPPED(layer_norm, tensor_layer_norm(x, SHAPE(tensor_size(w, 0)), .weight = w))
IN_SCOPE(
    copy, TENSOR_NO_GRAD { tensor_copy_(y, x); })
ELEMENTWISE(sum, tensor_sum(x))
ELEMENTWISE(sum_columns, tensor_sum(tensor_sum(x, 0)))

static void classes_setup(const char *sizes)
{
    vector_setup(sizes);
    y = keep(tensor_randint(0, tensor_size(x, 1), SHAPE(tensor_size(x, 0))));
}
ELEMENTWISE(cross_entropy, tensor_cross_entropy(x, y))

/* One parameter of so many bytes. */
static Optimizer *opt;
static void update_setup(const char *sizes)
{
    vector_setup(sizes);
    tensor_set_grad(x, y);
    opt = optim_adamw(TENSORS(x), .lr = 1e-3);
}
static void update(void) { optim_step(opt); }

/* ---- files and data -------------------------------------------------------------------------- */

static char file[64];
static void remove_file(void) { unlink(file); }
static Module *saved;
static void state_setup(const char *sizes)
{
    (void)sizes;
    snprintf(file, sizeof file, "bench-%ld.safetensors", (long)getpid());
    atexit(remove_file);
    saved = nn_sequential(nn_linear(2048, 2048), nn_linear(2048, 2048), nn_linear(2048, 2048));
    io_save_safetensors(file, nn_state_dict(saved));
}
static void state_write(void) { io_save_safetensors(file, nn_state_dict(saved)); }
/* Read and summed: PyTorch maps the file, and reads it where it is used. */
static void state_read(void)
{
    const TensorScope scope = tensor_scope_open();
    TensorDict read = io_load_safetensors(file);
    for (int i = 0; i < read.count; i++) tensor_sum(read.item[i].tensor);
    nn_dict_free(read);
    tensor_scope_close(scope);
}

static DataLoader *loader;
static void loader_setup(const char *sizes)
{
    (void)sizes;
    const TensorScope scope = tensor_scope_open();
    loader = data_loader(
        data_tensors(tensor_rand(SHAPE(6400, 1, 28, 28), TENSOR_F32), tensor_randint(0, 10, SHAPE(6400))),
        .batch_size = 64, .shuffle = true);
    tensor_scope_close(scope);
}
static void loader_epoch(void)
{
    for (Batch *b; (b = data_next(loader)) != NULL;) (void)b;
}

#define SIZES(name) \
    { #name "_forward_", vector_setup, name, 1 }, { #name "_both_", vector_setup, name##_both, 1 }
const BenchCase bench_kernels[] = {
    { "product_", product_setup, product, 1 },
    { "conv_forward_", conv_setup, conv_forward, 1 },
    { "conv_dx_", conv_setup, gradient_of_x, 1 },
    { "conv_dw_", conv_setup, gradient_of_w, 1 },
    { "attention_forward_", attention_setup, attention_forward, 1 },
    { "attention_both_", attention_setup, attention_both, 1 },
    { "attention_bf16_forward_", attention_bf16_setup, attention_forward, 1 },
    { "attention_bf16_both_", attention_bf16_setup, attention_both, 1 },
    { "lstm_layer_both", lstm_setup, recurrent, 1 },
    { "gru_layer_both", gru_setup, recurrent, 1 },
    { "rnn_layer_both", rnn_setup, recurrent, 1 },
    SIZES(add),
    SIZES(relu),
    SIZES(exponential),
    SIZES(gelu),
    SIZES(tangent),
    SIZES(softmax),
    SIZES(layer_norm),
    SIZES(sum),
    SIZES(sum_columns),
    { "copy_forward_", vector_setup, copy, 1 },
    { "cross_entropy_forward_", classes_setup, cross_entropy, 1 },
    { "cross_entropy_both_", classes_setup, cross_entropy_both, 1 },
    { "adamw_update_", update_setup, update, 1 },
    { "state_dict_write", state_setup, state_write, 1 },
    { "state_dict_read", state_setup, state_read, 1 },
    { "loader_batch", loader_setup, loader_epoch, 100 },
    { 0 },
};
