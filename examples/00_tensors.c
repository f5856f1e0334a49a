/* 00_tensors.c - tensors: make them, look at them, compute with them. */
#include <tapegrad.h>

int main(void)
{
    TensorScope scope = tensor_scope_open(); /* owns every tensor that is made from here on */

    Tensor *a = tensor_reshape(tensor_arange(0, 6, 1, TENSOR_F32), SHAPE(2, 3));
    Tensor *b = tensor_full(SHAPE(3), 10, TENSOR_F32);
    puts("a, and a + b with b broadcast over the rows:");
    tensor_print(a);
    tensor_print(tensor_add(a, b));

    puts("a times its transpose (a view, nothing is copied), and column means:");
    tensor_print(tensor_matmul(a, tensor_transpose(a, 0, 1)));
    tensor_print(tensor_mean(a, .dim = 0));

    tensor_manual_seed(0); /* the numbers are PyTorch's for this seed */
    puts("five normal samples, and integers promoted to floats:");
    tensor_print(tensor_randn(SHAPE(5), TENSOR_F32));
    tensor_print(tensor_mul(tensor_arange(0, 3, 1, TENSOR_I64), tensor_scalar(0.5, TENSOR_F32)));

    puts("a mistake is a value, not a crash:");
    Tensor *wrong = tensor_matmul(a, a);
    printf("%s -> %s\n", tensor_error(), wrong ? "a tensor" : "NULL");
    tensor_error_clear();

    tensor_scope_close(scope); /* everything above is gone */
    printf("tensors alive: %lld\n", (long long)tensor_live_count());
    return tensor_error() != NULL;
}
