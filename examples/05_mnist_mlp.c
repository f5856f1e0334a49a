/* 05_mnist_mlp.c - digits with a plain network: one epoch of MNIST, a loader, an optimizer, accuracy. */
#include "example.h"

int main(void)
{
    tensor_manual_seed(1);
    Module *net = nn_sequential(nn_flatten(), nn_linear(784, 256), nn_relu(), nn_linear(256, 128), nn_relu(),
                                nn_linear(128, 10));
    Optimizer *opt = optim_sgd(nn_parameters(net), .lr = 0.1, .momentum = 0.9);
    DataLoader *train = data_loader(example_mnist(NULL, DATA_TRAIN), .batch_size = 64, .shuffle = true);
    DataLoader *test = data_loader(example_mnist(NULL, DATA_TEST), .batch_size = 500);

    for (Batch *b; !tensor_error() && (b = data_next(train)) != NULL;) {
        TensorScope scope = tensor_scope_open();
        Tensor *loss = tensor_cross_entropy(nn_forward(net, b->x), b->y);
        optim_zero_grad(opt);
        tensor_backward(loss);
        optim_step(opt);
        if (b->index % 200 == 0)
            printf("batch %3lld of %lld   loss %.4f\n", (long long)b->index, (long long)data_batches(train),
                   tensor_item(loss));
        tensor_scope_close(scope);
    }
    Metric *accuracy = nn_metric_accuracy();
    nn_evaluate(net, test, NULL, .metrics = NN_METRICS(accuracy));
    if (!tensor_error()) printf("test accuracy %.4f\n", nn_metric_compute(accuracy));

    nn_metric_free(accuracy), data_loader_free(train), data_loader_free(test), optim_free(opt), nn_free(net);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}
