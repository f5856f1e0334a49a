/* 06_mnist_cnn.c - the training program of the README: a small convolutional network, saved at the end. */
#include "example.h"

int main(void)
{
    tensor_manual_seed(1);
    Module *net = nn_sequential(nn_conv2d(1, 16, 3, .padding = 1), nn_relu(), nn_max_pool2d(2),
                                nn_conv2d(16, 32, 3, .padding = 1), nn_relu(), nn_max_pool2d(2), nn_flatten(),
                                nn_linear(32 * 7 * 7, 10));
    nn_summary(net, SHAPE(64, 1, 28, 28), stdout);
    Optimizer *opt = optim_adam(nn_parameters(net), .lr = 1e-3);
    DataLoader *train = data_loader(example_mnist(NULL, DATA_TRAIN), .batch_size = 64, .shuffle = true);

    for (Batch *b; !tensor_error() && (b = data_next(train)) != NULL;) {
        TensorScope step = tensor_scope_open();
        Tensor *loss = tensor_cross_entropy(nn_forward(net, b->x), b->y);
        optim_zero_grad(opt);
        tensor_backward(loss);
        optim_step(opt);
        if (b->index % 100 == 0) printf("batch %3lld   loss %.4f\n", (long long)b->index, tensor_item(loss));
        tensor_scope_close(step);
    }
    io_save_safetensors("net.safetensors", nn_state_dict(net));
    if (!tensor_error()) puts("the weights are in net.safetensors");

    data_loader_free(train), optim_free(opt), nn_free(net);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}
