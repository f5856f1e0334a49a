/* 04_spiral.c - three interleaved spirals, and a picture of where the network draws the line: spiral.png. */
#include <math.h>
#include "example.h"

enum { CLASSES = 3, EACH = 100, SIDE = 256 };
static const unsigned strong[CLASSES] = { 0xc0392b, 0x2471a3, 0x1e8449 };

static void make_spirals(Tensor *x, Tensor *y)
{
    float *xy = tensor_data(x);
    int64_t *label = tensor_data(y);
    const float *noise = tensor_data(tensor_randn(SHAPE(CLASSES * EACH), TENSOR_F32));
    for (int64_t i = 0; i < CLASSES * EACH; i++) {
        double r = (double)(i % EACH) / EACH, angle = (double)(i / EACH) * 2.0944 + 4 * r + 0.15 * noise[i];
        xy[2 * i] = (float)(r * sin(angle)), xy[2 * i + 1] = (float)(r * cos(angle));
        label[i] = i / EACH;
    }
}

/* Every pixel is classified; then the samples are drawn over it. */
static int picture(const char *path, Module *net, Tensor *x, Tensor *y)
{
    TensorScope scope = tensor_scope_open();
    Tensor *grid = tensor_empty(SHAPE(SIDE * SIDE, 2), TENSOR_F32), *c = io_canvas(SIDE, SIDE, 0xffffff);
    float *g = tensor_data(grid), *pixel = tensor_data(c);
    const float *xy = tensor_data(x);
    for (int64_t i = 0; i < SIDE * SIDE; i++)
        g[2 * i] = (float)(i % SIDE) / (SIDE / 2.4f) - 1.2f,
              g[2 * i + 1] = (float)(i / SIDE) / (SIDE / 2.4f) - 1.2f;
    Tensor *p = tensor_contiguous(tensor_softmax(nn_forward(net, grid), 1));
    const float *probability = tensor_data(p);
    for (int64_t i = 0; p && i < SIDE * SIDE; i++)
        for (int k = 0; k < 3; k++) {
            float colour = 0;
            for (int j = 0; j < CLASSES; j++)
                colour += probability[i * CLASSES + j] * (float)(strong[j] >> (16 - 8 * k) & 255) / 255;
            pixel[k * SIDE * SIDE + i] = 0.55f + 0.45f * colour;
        }
    for (int64_t i = 0; p && i < CLASSES * EACH; i++)
        io_draw_dot(c, (xy[2 * i + 1] + 1.2) * (SIDE / 2.4), (xy[2 * i] + 1.2) * (SIDE / 2.4), 2.2,
                    strong[((int64_t *)tensor_data(y))[i]]);
    int status = p ? io_save_png(path, c) : -1;
    tensor_scope_close(scope);
    return status;
}

int main(void)
{
    TensorScope all = tensor_scope_open();
    tensor_manual_seed(0);
    Tensor *x = tensor_empty(SHAPE(CLASSES * EACH, 2), TENSOR_F32),
           *y = tensor_empty(SHAPE(CLASSES * EACH), TENSOR_I64);
    make_spirals(x, y);
    Module *net =
        nn_sequential(nn_linear(2, 64), nn_relu(), nn_linear(64, 64), nn_relu(), nn_linear(64, CLASSES));
    Optimizer *opt = optim_adam(nn_parameters(net), .lr = 1e-2);

    for (int step = 0; step <= 500 && !tensor_error(); step++) {
        TensorScope scope = tensor_scope_open();
        Tensor *logits = nn_forward(net, x), *loss = tensor_cross_entropy(logits, y);
        Tensor *right = tensor_eq(tensor_argmax(logits, 1), y);
        if (step % 100 == 0)
            printf("step %3d   loss %.4f   right %.1f %%\n", step, tensor_item(loss),
                   100 * tensor_item(tensor_mean(tensor_to(right, TENSOR_F32))));
        optim_zero_grad(opt);
        tensor_backward(loss);
        optim_step(opt);
        tensor_scope_close(scope);
    }
    if (picture("spiral.png", net, x, y) == 0) puts("the decision boundary is in spiral.png");

    optim_free(opt), nn_free(net);
    tensor_scope_close(all);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}
