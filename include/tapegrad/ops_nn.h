/* ops_nn.h - matrix products.  Included by ops.h; ops_product.h has einsum and the other ones.
 *
 *     Tensor *h = tensor_relu(tensor_linear(x, w1, b1));                  // w1 [out, in]
 *     Tensor *s = tensor_matmul(q, tensor_mT(k));                          // [..., L, E] [..., E, S] -> [..., L, S]
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name; what is left out has
 * PyTorch's default.  Their functions, which the macros call, end in _args.
 *
 * Floating operands of different dtypes are promoted; bool, and an integer with another dtype, are refused (EDTYPE).
 * f16 and bf16 compute in f32; integers modulo 2 to their width, by plain loops, with alpha and beta integers too (EVALUE), on the
 * CPU alone, as in PyTorch (EDEVICE).
 * Results are the same bits on any number of threads.  Optional tensors may be NULL. */
#ifndef TAPEGRAD_OPS_NN_H
#define TAPEGRAD_OPS_NN_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- matrix products ---------------------------------------------------------------------------------
 * tensor_matmul - y = a b.
 *   [m, k] [k, n] -> [m, n]      [k] [k, n] -> [n]      [m, k] [k] -> [m]      [k] [k] -> []
 *   Dimensions before the last two are batches and broadcast: [5, 1, m, k] [3, k, n] -> [5, 3, m, n].
 * k = 0 gives zeros.  Transposed and expanded operands are read where they lie.
 * ESHAPE: inner sizes differ, batches do not broadcast, or an operand has rank 0. */
TAPEGRAD_API Tensor *tensor_matmul(Tensor *a, Tensor *b);

/* The same for exactly these ranks: mm [m, k] [k, n]; bmm [B, m, k] [B, k, n], no broadcasting; mv [m, k] [k]; dot [k] [k].
 * tensor_outer - [m] [n] -> [m, n]. */
TAPEGRAD_API Tensor *tensor_mm(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_bmm(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_mv(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_dot(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_outer(Tensor *a, Tensor *b);

typedef struct TensorAddmmArgs {
    Tensor *input, *a, *b;
    double beta, alpha;                     /* both 1 */
} TensorAddmmArgs;

/* tensor_addmm - beta input + alpha a b for a [m, k], b [k, n]; input broadcasts to [m, n].
 * tensor_baddbmm - the same for a [B, m, k], b [B, k, n].  beta = 0: input is not read, so a NaN in it does no harm.
 * In place, tensor_addmm_(x, a, b, .beta = 0), x has the result's shape. */
#define tensor_addmm(...) tensor_addmm_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_baddbmm(...) tensor_baddbmm_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_addmm_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_baddbmm_args(TensorAddmmArgs args);
#define tensor_addmm_(...) tensor_addmm_args_((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_baddbmm_(...) tensor_baddbmm_args_((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_addmm_args_(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_baddbmm_args_(TensorAddmmArgs args);

/* tensor_linear - y = x weight^T + bias: x [..., in], weight [out, in], bias [out] or NULL -> [..., out].
 * x may have rank 1. */
TAPEGRAD_API Tensor *tensor_linear(Tensor *x, Tensor *weight, Tensor *bias);

#ifdef __cplusplus
}
#endif
#endif
