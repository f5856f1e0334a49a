/* train.c - what train.py does through ctypes, in C: the same losses, to the last bit. */
#include <stdio.h>
#include <tapegrad.h>

int main(void)
{
    tensor_manual_seed(1);
    Module *net = nn_sequential(nn_linear(2, 8), nn_tanh(), nn_linear(8, 1, .bias = false));
    Optimizer *opt = optim_sgd(nn_parameters(net), .lr = 0.1, .momentum = 0.9);
    Tensor *x = tensor_randn(SHAPE(16, 2), TENSOR_F32);
    Tensor *target = tensor_sum(tensor_square(x), 1, .keepdim = true);
    for (int step = 0; step < 20 && !tensor_error(); step++) {
        TensorScope scope = tensor_scope_open();
        Tensor *loss = tensor_huber_loss(nn_forward(net, x), target, .delta = 0.5);
        optim_zero_grad(opt);
        tensor_backward(loss);
        optim_step(opt);
        printf("%.17g\n", tensor_item(loss));
        tensor_scope_close(scope);
    }
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    optim_free(opt), nn_free(net);
    return tensor_error() != NULL;
}
