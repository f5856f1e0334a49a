/* 01_gradients.c - gradients: of sums, of gradients, and where they stop. */
#include <tapegrad.h>

int main(void)
{
    TensorScope scope = tensor_scope_open();

    Tensor *x = tensor_requires_grad_(tensor_linspace(-1, 1, 5, TENSOR_F64), true);
    Tensor *y = tensor_sum(tensor_pow_scalar(x, 3));
    tensor_backward(y);
    puts("d/dx sum x^3 = 3 x^2 at x = -1, -0.5, 0, 0.5, 1:");
    tensor_print(tensor_grad(x));

    Tensor *s = tensor_sum(tensor_sin(x));
    Tensor *first = tensor_gradients(s, x, .create_graph = true); /* cos x, itself on the graph */
    Tensor *second = tensor_gradients(tensor_sum(first), x, .create_graph = true); /* -sin x */
    Tensor *third = tensor_gradients(tensor_sum(second), x);                       /* -cos x */
    puts("the third derivative of sin, and -cos:");
    tensor_print(third);
    tensor_print(tensor_neg(tensor_cos(tensor_detach(x))));

    TENSOR_NO_GRAD {
        tensor_sub_(x, tensor_mul_scalar(tensor_grad(x), 0.1)); /* a step of gradient descent */
    }
    puts("x after one step downhill, a leaf as before:");
    tensor_print(x);

    Tensor *h = tensor_exp(x);
    tensor_add_scalar_(h, 1); /* overwrites what exp's backward reads */
    if (tensor_backward(tensor_sum(h))) printf("refused: %s\n", tensor_error());
    tensor_error_clear();

    tensor_scope_close(scope);
    return tensor_error() != NULL;
}
