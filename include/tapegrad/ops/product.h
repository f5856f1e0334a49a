/* ops/product.h - products: matmul, linear, einsum, tensordot, kron, chains and powers of matrices.
 * Included by ops.h.
 *
 *     Tensor *h = tensor_relu(tensor_linear(x, w1, b1));             // w1 [out, in]
 *     Tensor *s = tensor_matmul(q, tensor_mT(k));                    // [..., L, E] [..., E, S]
 *     Tensor *y = tensor_einsum("bqhd,bkhd->bhqk", TENSORS(q, k));   // attention scores
 *     Tensor *z = tensor_tensordot(a, b, .dims = 1);                 // the last dim of a with the first of b
 *     Tensor *p = tensor_multi_dot(TENSORS(a, b, c, d));             // in the cheapest order
 *
 * Functions with options are macros over a struct: arguments in PyTorch's order, or by name, with PyTorch's
 * defaults.  The functions behind the macros end in _args.
 *
 * Dtypes: operands must have one dtype (EDTYPE names both), as in PyTorch; outer, kron, addr, block_diag and
 * the elementwise parts of einsum promote, and only these accept bool (else EDTYPE).  f16 and bf16 compute in
 * f32 and round once, but on a GPU, whose tensor cores take and give them, round after each product, as in
 * PyTorch; on CPUs with AVX512-BF16, operands of bf16 and their sums below 2^-126 count as 0, as in PyTorch.
 * Integers wrap, and need whole alpha and beta (EVALUE).
 *
 * Results have the same bits with any number of threads and any layout of the operands.  Optional tensors
 * may be NULL. */
#ifndef TAPEGRAD_OPS_PRODUCT_H
#define TAPEGRAD_OPS_PRODUCT_H

#include <tapegrad/ops/shape.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- matrix products ------------------------------------------------------------------------- */

/* tensor_matmul - y = a b.
 *   [m, k] [k, n] -> [m, n]      [k] [k, n] -> [n]      [m, k] [k] -> [m]      [k] [k] -> []
 *   Dimensions before the last two are batches and broadcast: [5, 1, m, k] [3, k, n] -> [5, 3, m, n].
 * k = 0 gives zeros.  Transposed and expanded operands are not copied.
 * ESHAPE: inner sizes differ, batches do not broadcast, or an operand has rank 0. */
TAPEGRAD_API Tensor *tensor_matmul(Tensor *a, Tensor *b);

/* matmul for exactly these ranks (ESHAPE):
 *   tensor_mm     [m, k] [k, n] -> [m, n]
 *   tensor_bmm    [B, m, k] [B, k, n] -> [B, m, n], without broadcasting
 *   tensor_mv     [m, k] [k] -> [m]
 *   tensor_dot    [k] [k] -> []
 *   tensor_outer  [m] [n] -> [m, n]; dtypes are promoted */
TAPEGRAD_API Tensor *tensor_mm(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_bmm(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_mv(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_dot(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_outer(Tensor *a, Tensor *b);

typedef struct TensorAddmmArgs {
    Tensor *input, *a, *b;
    double beta, alpha;
    TensorFromDefaults from_defaults;
} TensorAddmmArgs;
#define TENSOR_ADDMM_DEFAULTS .beta = 1, .alpha = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorAddmmArgs tensor_addmm_defaults;

/* beta input + alpha a b; input broadcasts to the product's shape.
 *   tensor_addmm    a [m, k],    b [k, n]    -> [m, n]
 *   tensor_baddbmm  a [B, m, k], b [B, k, n] -> [B, m, n]
 *   tensor_addmv    a [m, k],    b [k]       -> [m]
 *   tensor_addr     a [m],       b [n]       -> [m, n], the outer product; dtypes are promoted
 *   tensor_addbmm   a [B, m, k], b [B, k, n] -> [m, n], the sum of the products of the batch
 * beta = 0: input is not read, so a NaN in it has no effect.  alpha = 0: addmm, addmv and addbmm do not read
 * a and b; baddbmm and addr multiply, so NaN and infinity in a or b give NaN.
 * In place, tensor_addmm_(x, a, b, .beta = 0): x has the result's shape and dtype.
 * ESHAPE: other ranks, inner sizes that differ, an input that does not broadcast. */
#define tensor_addmm(...) \
    TENSOR_CALL_(tensor_addmm_args, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_baddbmm(...) \
    TENSOR_CALL_(tensor_baddbmm_args, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_addmv(...) \
    TENSOR_CALL_(tensor_addmv_args, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_addr(...) \
    TENSOR_CALL_(tensor_addr_args, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_addbmm(...) \
    TENSOR_CALL_(tensor_addbmm_args, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_addmm_(...) \
    TENSOR_CALL_(tensor_addmm_args_, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_baddbmm_(...) \
    TENSOR_CALL_(tensor_baddbmm_args_, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_addmv_(...) \
    TENSOR_CALL_(tensor_addmv_args_, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_addr_(...) \
    TENSOR_CALL_(tensor_addr_args_, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
#define tensor_addbmm_(...) \
    TENSOR_CALL_(tensor_addbmm_args_, TensorAddmmArgs, TENSOR_ADDMM_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_addmm_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_baddbmm_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addmv_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addr_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addbmm_args(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addmm_args_(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_baddbmm_args_(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addmv_args_(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addr_args_(TensorAddmmArgs args);
TAPEGRAD_API Tensor *tensor_addbmm_args_(TensorAddmmArgs args);

/* tensor_linear - y = x weight^T + bias; bias may be NULL.
 *   x [..., in], weight [out, in], bias [out] -> [..., out]
 *   x [..., in], weight [in],      bias []    -> [...]
 * x has rank 1 or more.  ESHAPE: other ranks, or features of x and weight that differ. */
TAPEGRAD_API Tensor *tensor_linear(Tensor *x, Tensor *weight, Tensor *bias);

/* tensor_linear_act - f(tensor_linear(x, weight, bias)), f is relu, gelu, or gelu by tanh; in one pass over
 * the result if the device has one.  Floats only; f16 and bf16 round once.  EVALUE: no such activation. */
typedef enum TensorActivation { TENSOR_ACT_RELU, TENSOR_ACT_GELU, TENSOR_ACT_GELU_TANH } TensorActivation;
TAPEGRAD_API Tensor *tensor_linear_act(Tensor *x, Tensor *weight, Tensor *bias, TensorActivation activation);

/* tensor_bilinear - y_o = x1^T weight_o x2 + bias_o: x1 [..., in1], x2 [..., in2], weight [out, in1, in2],
 * bias [out] or NULL -> [..., out]. */
TAPEGRAD_API Tensor *tensor_bilinear(Tensor *x1, Tensor *x2, Tensor *weight, Tensor *bias);

/* ---- sums over named dimensions -------------------------------------------------------------- */

/* tensor_einsum - a sum of products: the equation lists each operand's indices, a letter for each dimension,
 * separated by commas; then "->" and the indices of the result.
 *   "ij,jk->ik"    a matrix product: sums over indices that the result lacks
 *   "ii->i", "ii"  an index twice in one operand: its diagonal, its trace
 *   "ij,jk"        without "->" the result has the indices that occur once, alphabetically, capitals first
 *   "...ij,...jk"  "..." stands for any dimensions, which broadcast; without "->" the result begins with them
 * Spaces are ignored.  Sizes of an index must agree, or be 1 (not within one operand).
 *
 * Operands are multiplied from left to right.  With one operand and no sum the result is a view: "ij->ji",
 * and "ij->ij", share its memory.  A sum over integers of one operand is i64.
 * EVALUE: the equation cannot be parsed, has not one part for each operand, or its result has an index twice
 * or one that no operand has.  ESHAPE: an operand has another rank, or sizes differ; the error names operand
 * and index.  EDTYPE: two dtypes in one matrix product. */
TAPEGRAD_API Tensor *tensor_einsum(const char *equation, TensorList operands);

typedef struct TensorTensordotArgs {
    Tensor *a, *b;
    int dims;                   /* sums over this many last dims of a and first dims of b ... */
    TensorShape dims_a, dims_b; /* ... unless these are given, in pairs */
    TensorFromDefaults from_defaults;
} TensorTensordotArgs;
#define TENSOR_TENSORDOT_DEFAULTS .dims = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorTensordotArgs tensor_tensordot_defaults;

/* tensor_tensordot - the sum of products over pairs of dims; the result has a's other dims, then b's.
 *     tensor_tensordot(a, b, 1)
 *     tensor_tensordot(a, b, .dims_a = DIMS(1, 0), .dims_b = DIMS(0, 1))
 * ESHAPE: sizes of a pair differ, and neither is 1.  EINDEX: no such dim.  EVALUE: a repeated dim, lists of
 * different lengths, more dims than an operand has. */
#define tensor_tensordot(...) \
    TENSOR_CALL_(tensor_tensordot_args, TensorTensordotArgs, TENSOR_TENSORDOT_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_tensordot_args(TensorTensordotArgs args);

typedef struct TensorVecdotArgs {
    Tensor *a, *b;
    int dim;
    TensorFromDefaults from_defaults;
} TensorVecdotArgs;
#define TENSOR_VECDOT_DEFAULTS .dim = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorVecdotArgs tensor_vecdot_defaults;

/* tensor_vecdot - sum of a b along dim, of floating operands that broadcast (torch.linalg.vecdot).
 * tensor_inner  - sum of a b over the last dim of both, [..., k] [..., k] -> a's other dims, then b's; with
 *                 an operand of rank 0 their product, dtypes promoted
 * tensor_vdot   - another name of tensor_dot */
#define tensor_vecdot(...) \
    TENSOR_CALL_(tensor_vecdot_args, TensorVecdotArgs, TENSOR_VECDOT_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_vecdot_args(TensorVecdotArgs args);
TAPEGRAD_API Tensor *tensor_inner(Tensor *a, Tensor *b);
TAPEGRAD_API Tensor *tensor_vdot(Tensor *a, Tensor *b);

/* tensor_kron - every element of a times all of b; sizes multiply, dtypes are promoted.  The operand of lower
 * rank gets leading dims of 1.  ESHAPE: more than 8 dims. */
TAPEGRAD_API Tensor *tensor_kron(Tensor *a, Tensor *b);

typedef struct TensorCrossArgs {
    Tensor *a, *b;
    int dim; /* TENSOR_ALL: the first one of size 3 */
    TensorFromDefaults from_defaults;
} TensorCrossArgs;
#define TENSOR_CROSS_DEFAULTS .dim = TENSOR_ALL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCrossArgs tensor_cross_defaults;

/* tensor_cross - a x b of vectors of 3 along dim; operands of one rank, whose other dims broadcast. */
#define tensor_cross(...) \
    TENSOR_CALL_(tensor_cross_args, TensorCrossArgs, TENSOR_CROSS_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_cross_args(TensorCrossArgs args);

/* ---- chains, powers, blocks ------------------------------------------------------------------ */

/* tensor_multi_dot - the product of 2 or more matrices, in the order with the fewest multiplications; the
 * first may be a vector (a row), and the last one (a column).
 * tensor_chain_matmul - another name of it. */
TAPEGRAD_API Tensor *tensor_multi_dot(TensorList tensors);
TAPEGRAD_API Tensor *tensor_chain_matmul(TensorList tensors);

/* tensor_matrix_power - x^n of square matrices [..., m, m], by squaring; n = 0: the identity; n < 0: the
 * inverse to the power -n (EVALUE: singular; EDTYPE: integers). */
TAPEGRAD_API Tensor *tensor_matrix_power(Tensor *x, int64_t n);

/* tensor_matrix_exp - e^x = sum over k of x^k / k!, of square floating matrices [..., m, m]; in f64. */
TAPEGRAD_API Tensor *tensor_matrix_exp(Tensor *x);

/* tensor_trace - the sum of the diagonal of a matrix [m, n]; i64 for integers. */
TAPEGRAD_API Tensor *tensor_trace(Tensor *x);

/* tensor_block_diag - a matrix with the given ones (a vector is a row, a scalar 1 x 1) along its diagonal, 0
 * elsewhere; dtypes are promoted. */
TAPEGRAD_API Tensor *tensor_block_diag(TensorList tensors);

typedef struct TensorVanderArgs {
    Tensor *input;
    int64_t n; /* powers; -1: as many as input's last size */
    bool increasing;
    TensorFromDefaults from_defaults;
} TensorVanderArgs;
#define TENSOR_VANDER_DEFAULTS .n = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorVanderArgs tensor_vander_defaults;

/* tensor_vander - powers of each element, [..., m] -> [..., m, n]: from n - 1 down to 0, or, .increasing,
 * from 0 up to n - 1, which is torch.linalg.vander and takes rank 0 as [1].  Integers and bool give i64.
 * ESHAPE: rank 0. */
#define tensor_vander(...) \
    TENSOR_CALL_(tensor_vander_args, TensorVanderArgs, TENSOR_VANDER_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_vander_args(TensorVanderArgs args);

#ifdef __cplusplus
}
#endif
#endif
