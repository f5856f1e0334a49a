/* ops/product.h - products: matmul and its kin, linear, einsum, tensordot, kron, chains and powers of
 * matrices.  Included by ops.h.
 *
 *     Tensor *h = tensor_relu(tensor_linear(x, w1, b1));                  // w1 [out, in]
 *     Tensor *s = tensor_matmul(q, tensor_mT(k));                          // [..., L, E] [..., E, S] ->
 * [..., L, S] Tensor *y = tensor_einsum("bqhd,bkhd->bhqk", TENSORS(q, k));       // attention scores Tensor
 * *z = tensor_tensordot(a, b, .dims = 1);                     // the last dim of a with the first of b Tensor
 * *p = tensor_multi_dot(TENSORS(a, b, c, d));                 // in the cheapest order
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name; what is left out
 * has PyTorch's default.  Their functions, which the macros call, end in _args.
 *
 * Floating operands of different dtypes are promoted; bool, and an integer with another dtype, are refused
 * (EDTYPE). f16 and bf16 compute in f32; integers modulo 2 to their width, by plain loops, with alpha and
 * beta integers too (EVALUE), on the CPU alone, as in PyTorch (EDEVICE). Results are the same bits on any
 * number of threads.  Optional tensors may be NULL. */
#ifndef TAPEGRAD_OPS_PRODUCT_H
#define TAPEGRAD_OPS_PRODUCT_H

#include <tapegrad/ops/shape.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- matrix products ----------------------------------------------------------------------------
 * tensor_matmul - y = a b.
 *   [m, k] [k, n] -> [m, n]      [k] [k, n] -> [n]      [m, k] [k] -> [m]      [k] [k] -> []
 *   Dimensions before the last two are batches and broadcast: [5, 1, m, k] [3, k, n] -> [5, 3, m, n].
 * k = 0 gives zeros.  Transposed and expanded operands are read where they lie.
 * ESHAPE: inner sizes differ, batches do not broadcast, or an operand has rank 0. */
TAPEGRAD_API Tensor *tensor_matmul(Tensor *a, Tensor *b);

/* The same for exactly these ranks: mm [m, k] [k, n]; bmm [B, m, k] [B, k, n], no broadcasting; mv [m, k]
 * [k]; dot [k] [k]. tensor_outer - [m] [n] -> [m, n]. */
TAPEGRAD_API Tensor *tensor_mm(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_bmm(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_mv(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_dot(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_outer(Tensor *a, Tensor *b);

typedef struct TensorAddmmArgs {
    Tensor *input, *a, *b;
    double beta, alpha; /* both 1 */
} TensorAddmmArgs;

/* tensor_addmm - beta input + alpha a b for a [m, k], b [k, n]; input broadcasts to [m, n].
 * tensor_baddbmm - the same for a [B, m, k], b [B, k, n].  beta = 0: input is not read, so a NaN in it does
 * no harm. In place, tensor_addmm_(x, a, b, .beta = 0), x has the result's shape. */
#define tensor_addmm(...) tensor_addmm_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_baddbmm(...) \
    tensor_baddbmm_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_addmm_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_baddbmm_args(TensorAddmmArgs args);
#define tensor_addmm_(...) \
    tensor_addmm_args_((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_baddbmm_(...) \
    tensor_baddbmm_args_((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_addmm_args_(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_baddbmm_args_(TensorAddmmArgs args);

/* tensor_linear - y = x weight^T + bias: x [..., in], weight [out, in], bias [out] or NULL -> [..., out].
 * x may have rank 1. */
TAPEGRAD_API Tensor *tensor_linear(Tensor *x, Tensor *weight, Tensor *bias);

/* ---- other products -------------------------------------------------------------------------- */

/* tensor_einsum - the sum of products that the equation says:
 *
 *   equation   operands by commas, each its indices, a letter a dimension; then "->" and the indices of the
 * result "ij,jk->ik"    a product of matrices: indices that the result lacks are summed over "ii->i", "ii" an
 * index twice in one operand: its diagonal "ij,jk"        without "->": the indices that are named once, in
 * alphabetical order, capitals first
 *     "...ij,...jk"  "..." stands for any dimensions, which broadcast; without "->" the result begins with
 * them Spaces mean nothing.  Sizes of an index must agree, or be 1 (not within one operand).
 *
 * Operands are multiplied from left to right.  EVALUE: an equation that cannot be read, or for another number
 * of operands, or whose result names an index twice or one that no operand has.  ESHAPE: another number of
 * dimensions, or sizes that differ; the text names the operand and the index. */
TAPEGRAD_API Tensor *tensor_einsum(const char *equation, TensorList operands);

typedef struct TensorTensordotArgs {
    Tensor *a, *b;
    int dims;                   /* so many last dims of a with the first ones of b: 2 */
    TensorShape dims_a, dims_b; /* or these, in pairs */
} TensorTensordotArgs;

/* tensor_tensordot(a, b, 1), tensor_tensordot(a, b, .dims_a = DIMS(1, 0), .dims_b = DIMS(0, 1)) - summed over
 * pairs of dims; the result has a's other dims, then b's.  ESHAPE: sizes of a pair differ, and none is 1.
 * EINDEX: no such dim. tensor_inner - over the last dim of both; with an operand of rank 0 their product.
 * tensor_vdot - another name of tensor_dot. */
#define tensor_tensordot(...) tensor_tensordot_args((TensorTensordotArgs){ .dims = 2, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_tensordot_args(TensorTensordotArgs args);
TAPEGRAD_API Tensor *tensor_inner(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_vdot(Tensor *a, Tensor *b);

/* tensor_kron - every element of a times all of b, of any dtypes: sizes multiply; the operand of lower rank
 * gets leading dims of 1. At most 8 dims. */
TAPEGRAD_API Tensor *tensor_kron(Tensor *a, Tensor *b);

typedef struct TensorCrossArgs {
    Tensor *a, *b;
    int dim; /* the first one of size 3 */
} TensorCrossArgs;

/* tensor_cross - a x b of vectors of 3 along dim, also of integers; operands of one rank, whose other dims
 * broadcast. */
#define tensor_cross(...) tensor_cross_args((TensorCrossArgs){ .dim = TENSOR_ALL, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cross_args(TensorCrossArgs args);

/* tensor_bilinear - y_o = x1^T weight_o x2 + bias_o: x1 [..., in1], x2 [..., in2], weight [out, in1, in2],
 * bias [out] or NULL. */
TAPEGRAD_API Tensor *tensor_bilinear(Tensor *x1, Tensor *x2, Tensor *weight, Tensor *bias);

/* beta input + alpha product, input broadcast to the product's shape; beta = 0: input is not read.
 *   tensor_addmv   a [m, k], b [k] -> [m]             tensor_addr   a [m], b [n] -> [m, n], their outer
 * product tensor_addbmm  a [B, m, k], b [B, k, n] -> [m, n], the products of the batch summed */
#define tensor_addmv(...) tensor_addmv_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_addr(...) tensor_addr_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_addbmm(...) \
    tensor_addbmm_args((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_addmv_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addr_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addbmm_args(TensorAddmmArgs args);
#define tensor_addmv_(...) \
    tensor_addmv_args_((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_addr_(...) tensor_addr_args_((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
#define tensor_addbmm_(...) \
    tensor_addbmm_args_((TensorAddmmArgs){ .beta = 1, .alpha = 1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_addmv_args_(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addr_args_(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addbmm_args_(TensorAddmmArgs args);

/* tensor_multi_dot - the product of a chain of matrices, in the order that takes the fewest multiplications;
 * the first and the last may be vectors, a row and a column.   tensor_chain_matmul - another name of it. */
TAPEGRAD_API Tensor *tensor_multi_dot(TensorList tensors);
TAPEGRAD_API Tensor *tensor_chain_matmul(TensorList tensors);

/* tensor_matrix_power - x n times, of square matrices [..., m, m], by squaring; n = 0: the identity; n < 0:
 * the inverse -n times (EVALUE: singular). */
TAPEGRAD_API Tensor *tensor_matrix_power(Tensor *x, int64_t n);

/* tensor_matrix_exp - e^x = sum of x^k / k!, k = 0, 1, ..., of square matrices [..., m, m]; computed in f64.
 */
TAPEGRAD_API Tensor *tensor_matrix_exp(Tensor *x);

/* tensor_trace - the sum of a matrix's diagonal; i64 for integers. */
TAPEGRAD_API Tensor *tensor_trace(Tensor *x);

/* tensor_block_diag - matrices (vectors are rows, numbers 1 x 1) one after the other down the diagonal, 0
 * elsewhere. */
TAPEGRAD_API Tensor *tensor_block_diag(TensorList tensors);

typedef struct TensorVanderArgs {
    Tensor *input;
    int64_t n; /* columns; as many as rows unless given */
    bool increasing;
} TensorVanderArgs;

/* tensor_vander - powers of a vector's elements in rows, [size, n]: n - 1 down to 0, or 0 up to n - 1. */
#define tensor_vander(...) tensor_vander_args((TensorVanderArgs){ .n = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_vander_args(TensorVanderArgs args);

#ifdef __cplusplus
}
#endif
#endif
