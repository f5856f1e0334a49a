/* 07_module.c - a module of your own: a residual block with normalisation, used three times in a small
 * network that learns to add two numbers given as digits. */
#include <tapegrad.h>

typedef struct {
    Module base;
    Module *norm, *mlp;
} Block;

static Tensor *block_forward(Module *self, Tensor *x)
{
    Block *b = (Block *)self;
    TensorScope scope = tensor_scope_open();
    x = tensor_add(x, nn_forward(b->mlp, nn_forward(b->norm, x)));
    return tensor_scope_return(scope, x);
}

static Module *block(int64_t width)
{
    Block *b = nn_new(Block, "Block", block_forward);
    NN_CHILD(b, norm, nn_layer_norm(width));
    NN_CHILD(b, mlp, nn_sequential(nn_linear(width, 2 * width), nn_gelu(), nn_linear(2 * width, width)));
    return nn_done(b); /* NULL, and everything freed, if any part failed */
}

/* A batch of pairs of digits, as embeddings of the two side by side, and their sums. */
static void sample(Tensor **digits, Tensor **sums)
{
    *digits = tensor_randint(0, 10, SHAPE(128, 2));
    *sums = tensor_sum(*digits, 1);
}

int main(void)
{
    tensor_manual_seed(5);
    Module *net =
        nn_sequential(nn_embedding(10, 16), nn_flatten(), block(32), block(32), block(32), nn_linear(32, 19));
    Optimizer *opt = optim_adamw(nn_parameters(net), .lr = 3e-3);
    nn_summary(net, SHAPE(1, 2),
               .dtype = TENSOR_I64); /* of one pair of digits: each layer, the shape it gives */

    for (int step = 0; step <= 300 && !tensor_error(); step++) {
        TensorScope scope = tensor_scope_open();
        Tensor *digits, *sums;
        sample(&digits, &sums);
        Tensor *logits = nn_forward(net, digits), *loss = tensor_cross_entropy(logits, sums);
        Tensor *right = tensor_mean(tensor_to(tensor_eq(tensor_argmax(logits, 1), sums), TENSOR_F32));
        if (step % 50 == 0)
            printf("step %3d   loss %.4f   right %.0f %%\n", step, tensor_item(loss),
                   100 * tensor_item(right));
        optim_zero_grad(opt);
        tensor_backward(loss);
        nn_clip_grad_norm_(nn_parameters(net), 1.0);
        optim_step(opt);
        tensor_scope_close(scope);
    }

    optim_free(opt), nn_free(net);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}
