/* 03_xor.c - a network of nine numbers learns exclusive or. */
#include <tapegrad.h>

int main(void)
{
    static const float inputs[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } },
                       wanted[4][1] = { { 0 }, { 1 }, { 1 }, { 0 } };
    tensor_manual_seed(3);
    Tensor *x = tensor_retain(tensor_from_data(inputs, SHAPE(4, 2), TENSOR_F32));
    Tensor *y = tensor_retain(tensor_from_data(wanted, SHAPE(4, 1), TENSOR_F32));
    Module *net = nn_sequential(nn_linear(2, 4), nn_tanh(), nn_linear(4, 1), nn_sigmoid());
    Optimizer *opt = optim_adam(nn_parameters(net), .lr = 0.05);

    for (int step = 0; step <= 500 && !tensor_error(); step++) {
        TensorScope scope = tensor_scope_open();
        Tensor *loss = tensor_mse_loss(nn_forward(net, x), y);
        if (step % 100 == 0) printf("step %3d   loss %.5f\n", step, tensor_item(loss));
        optim_zero_grad(opt);
        tensor_backward(loss);
        optim_step(opt);
        tensor_scope_close(scope);
    }

    TensorScope scope = tensor_scope_open();
    Tensor *p = nn_forward(net, x);
    for (int i = 0; i < 4 && !tensor_error(); i++)
        printf("%g xor %g = %.3f\n", inputs[i][0], inputs[i][1], tensor_get(p, DIMS(i, 0)));
    tensor_scope_close(scope);

    optim_free(opt), nn_free(net);
    tensor_release(x), tensor_release(y);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}
