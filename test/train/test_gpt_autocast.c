/* test_gpt_autocast.c - a small GPT over characters, trained in f32 and inside TENSOR_AUTOCAST: bf16 ends
 * within 0.02 of the loss of f32, on the same batches.
 *
 *     TAPEGRAD_TEXT=../shared/data/text/tinyshakespeare.txt TAPEGRAD_STEPS=500 build/test/test_gpt_autocast
 *
 * trains longer; by itself it reads a text that it makes.  The last losses are printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>

#define OK assert_string_equal(tensor_error() ? tensor_error() : "", "")

enum { WIDTH = 32, HEADS = 4, LAYERS = 2, TIME = 32, BATCH = 8, CHARACTERS = 128, LAST = 10 };

static unsigned char *text;
static int64_t length;
static int steps = 60;

/* Sentences of a few words, drawn by a fixed rule. */
static void make_text(void)
{
    static const char *const who[] = { "the miller", "a fox", "my sister", "the old king", "nobody" };
    static const char *const does[] = { "sees", "carries", "forgets", "paints", "sells" };
    static const char *const what[] = { "a river", "the bread", "seven stones", "her letter", "this house" };
    uint64_t draw = 7;
    while (length < 20000) {
        int at[3];
        for (int i = 0; i < 3; i++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            at[i] = (int)((draw >> 33) % 5);
        }
        length += sprintf((char *)text + length, "%s %s %s.\n", who[at[0]], does[at[1]], what[at[2]]);
    }
}

static void read_text(void)
{
    const char *path = getenv("TAPEGRAD_TEXT"), *n = getenv("TAPEGRAD_STEPS");
    text = malloc(1 << 20);
    assert_non_null(text);
    if (path) {
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        length = (int64_t)fread(text, 1, 1 << 20, file);
        fclose(file);
    } else make_text();
    assert_true(length > 1000);
    if (n) steps = atoi(n);
}

typedef struct GPT {
    Module base, *wte, *wpe, *blocks, *head;
    Tensor *mask, *position;
} GPT;

static Tensor *gpt_forward(Module *self, Tensor *tokens)
{
    GPT *g = (GPT *)self;
    Tensor *x = tensor_add(nn_forward(g->wte, tokens), nn_forward(g->wpe, g->position));
    return nn_forward(g->head, nn_forward(g->blocks, x, g->mask));
}

static Module *gpt_new(void)
{
    GPT *g = nn_new(GPT, "GPT", gpt_forward);
    Module *layer = nn_transformer_encoder_layer(WIDTH, HEADS, .dim_feedforward = 4 * WIDTH, .dropout = 0,
                                                 .activation = NN_TRANSFORMER_GELU, .batch_first = true,
                                                 .norm_first = true);
    NN_CHILD(g, wte, nn_embedding(CHARACTERS, WIDTH));
    NN_CHILD(g, wpe, nn_embedding(TIME, WIDTH));
    NN_CHILD(g, blocks, nn_transformer_encoder(layer, LAYERS, .norm = nn_layer_norm(WIDTH)));
    NN_CHILD(g, head, nn_linear(WIDTH, CHARACTERS));
    g->mask = tensor_retain(nn_generate_square_subsequent_mask(TIME));
    g->position = tensor_retain(tensor_arange(0, TIME, 1, TENSOR_I64));
    return &g->base;
}

static void gpt_free(Module *m)
{
    tensor_release(((GPT *)m)->mask);
    tensor_release(((GPT *)m)->position);
    nn_free(m);
}

/* The same places in the text in every run. */
static void batch_of(uint64_t *state, Tensor **tokens, Tensor **targets)
{
    int64_t from[BATCH][TIME], to[BATCH][TIME];
    for (int b = 0; b < BATCH; b++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const int64_t at = (int64_t)((*state >> 33) % (uint64_t)(length - TIME - 1));
        for (int t = 0; t < TIME; t++)
            from[b][t] = text[at + t] % CHARACTERS, to[b][t] = text[at + t + 1] % CHARACTERS;
    }
    *tokens = tensor_from_data(from, SHAPE(BATCH, TIME), TENSOR_I64);
    *targets = tensor_from_data(to, SHAPE(BATCH * TIME), TENSOR_I64);
}

static Tensor *run_net(Tensor **in, int n, void *net)
{
    (void)n;
    return nn_forward((Module *)net, in[0]);
}

typedef struct Result {
    double first, last; /* losses: the first, and the mean of the last ones */
    Tensor *weight;     /* at the end */
} Result;

static Result train(bool autocast, TensorDtype dtype, bool checkpoint)
{
    Result r = { 0, 0, NULL };
    uint64_t state = 1;
    tensor_manual_seed(7);
    Module *net = gpt_new();
    Optimizer *adam = optim_adamw(nn_parameters(net), .lr = 3e-3);
    for (int i = 0; i < steps; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *tokens, *targets, *loss = NULL;
        batch_of(&state, &tokens, &targets);
        TENSOR_AUTOCAST(dtype, .enabled = autocast)
        {
            Tensor *logits = checkpoint ? tensor_checkpoint(run_net, net, tokens) : nn_forward(net, tokens);
            if (autocast) assert_int_equal(tensor_dtype(logits), dtype);
            loss = tensor_cross_entropy(tensor_reshape(logits, SHAPE(BATCH * TIME, CHARACTERS)), targets);
            assert_int_equal(tensor_dtype(loss), TENSOR_F32);
        }
        optim_zero_grad(adam);
        tensor_backward(loss);
        optim_step(adam);
        OK;
        if (i == 0) r.first = tensor_item(loss);
        if (i >= steps - LAST) r.last += tensor_item(loss) / LAST;
        tensor_scope_close(scope);
    }
    r.weight = tensor_clone(nn_parameters(net).item[0]);
    optim_free(adam);
    gpt_free(net);
    return r;
}

static void test_bf16_ends_where_f32_does(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    const Result f32 = train(false, TENSOR_BF16, false), bf16 = train(true, TENSOR_BF16, false),
                 again = train(true, TENSOR_BF16, true);
    printf("%d steps: f32 %.4f to %.4f, bf16 %.4f to %.4f\n", steps, f32.first, f32.last, bf16.first,
           bf16.last);
    assert_true(f32.last < f32.first - 1);
    assert_true(fabs(bf16.last - f32.last) < 0.02);
    assert_true(bf16.last != f32.last);
    assert_true(tensor_equal(bf16.weight, again.weight)); /* with a checkpoint, to the bit */
    assert_int_equal(tensor_dtype(bf16.weight), TENSOR_F32);
    tensor_scope_close(scope);
}

int main(void)
{
    read_text();
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bf16_ends_where_f32_does) };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(text);
    return failed;
}
