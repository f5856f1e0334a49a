/* autocast.h - precision: the dtype an op computes in, and the precision of f32 products.
 *
 *     TENSOR_AUTOCAST(TENSOR_BF16) {
 *         logits = nn_forward(net, x);                       // products in bf16, f32 where PyTorch says so
 *         loss = tensor_cross_entropy(logits, target);
 *     }
 *     tensor_backward(loss);                                 // gradients of f32 parameters are f32
 *
 * As torch.autocast: inside a block each op casts its floating operands as its class says (TensorOp.autocast;
 * OpRow.autocast for rows, by default AUTOCAST_AS_IS):
 *
 *   AUTOCAST_LOWER    to the block's dtype: products, linear, convolutions, recurrent nets, attention
 *   AUTOCAST_F32      to f32: losses and, on cuda, exp, log, pow, sum, softmax, norms
 *   AUTOCAST_PROMOTE  to the widest of its operands' dtypes: cat, stack, and, on cuda, addcmul, dot, ...
 *   AUTOCAST_AS_IS    not at all: the rest runs in its operands' dtype
 *   AUTOCAST_PARTS    not at all; the ops it is composed of have their own classes: einsum, cov, ...
 *
 * PyTorch has one list for the CPU and one for CUDA (on the CPU softmax, exp and norms keep bf16).  Tensors
 * on the CPU follow the first, tensors on any other device the second (AUTOCAST_CPU_CUDA(AS_IS, F32)).
 * Differences from PyTorch: recurrent nets, their cells and inner are AUTOCAST_LOWER as a whole;
 * binary_cross_entropy runs in f32 on cuda too, where PyTorch refuses it; local_response_norm, pinv and lstsq
 * run in f32.  Never cast: f64, integers, the operands of an op whose option dtype was given, the operands
 * of in-place ops.  Your op has the class AUTOCAST_AS_IS unless it names another (as torch.amp.custom_fwd).
 *
 * Casts are recorded, so each gradient has its leaf's dtype.  The gradients of linear reach f32
 * leaves without being rounded to the block's dtype; cross_entropy reads f16 and bf16 logits without a cast
 * to f32, and gives the same loss.  An f32 leaf that requires a gradient is cast once; that cast is kept
 * until the outermost block ends or the leaf is written.  A backward sweep runs with autocast off: it uses
 * the dtypes of the forward ops. */
#ifndef TAPEGRAD_AUTOCAST_H
#define TAPEGRAD_AUTOCAST_H

#include <tapegrad/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TensorAutocastArgs {
    TensorDtype dtype;  /* TENSOR_BF16 or TENSOR_F16 */
    bool enabled;       /* false: ops inside run in their operands' dtypes */
    bool cache_enabled; /* keep the casts of leaves */
    TensorFromDefaults from_defaults;
} TensorAutocastArgs;
#define TENSOR_AUTOCAST_DEFAULTS \
    .dtype = TENSOR_BF16, .enabled = true, .cache_enabled = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorAutocastArgs tensor_autocast_defaults;

typedef struct TensorAutocast { /* autocast state of a thread */
    TensorDtype dtype;
    bool enabled, cache_enabled;
    int depth; /* nested blocks */
} TensorAutocast;

/* TENSOR_AUTOCAST(TENSOR_F16) { ... } - a block that ends however it is left; break leaves only the block.
 *     Blocks nest; TENSOR_AUTOCAST_OFF { ... } inside one switches autocast off.  With options:
 *     TENSOR_AUTOCAST(TENSOR_BF16, .enabled = mixed, .cache_enabled = false); in C++ they are positional.
 * tensor_autocast_begin - enters a block on this thread, and returns the previous state for
 *     tensor_autocast_end, which restores it.  The end of the outermost block drops the kept casts.
 *     EDTYPE: dtype is neither f16 nor bf16; the state is unchanged. */
#define tensor_autocast_begin(...)                                                         \
    TENSOR_CALL_(tensor_autocast_begin_args, TensorAutocastArgs, TENSOR_AUTOCAST_DEFAULTS, \
                 .dtype = __VA_ARGS__)
TAPEGRAD_API TensorAutocast tensor_autocast_begin_args(TensorAutocastArgs args);
TAPEGRAD_API void tensor_autocast_end(TensorAutocast before);
#ifdef __cplusplus /* options by place */
static inline TensorAutocast tensor_autocast_begin_(TensorDtype dtype, bool enabled = true,
                                                    bool cache_enabled = true)
{
    TensorAutocastArgs args = tensor_autocast_defaults;
    args.dtype = dtype, args.enabled = enabled, args.cache_enabled = cache_enabled;
    return tensor_autocast_begin_args(args);
}
#undef tensor_autocast_begin
#define tensor_autocast_begin(...) tensor_autocast_begin_(__VA_ARGS__)
#endif
static inline void tensor_autocast_end_(const TensorAutocast *before) { tensor_autocast_end(*before); }
#define TENSOR_AUTOCAST_NAMED_(n, ...)                                                                    \
    for (TensorAutocast TENSOR_PASTE_(tensor_before_, n)                                                  \
             __attribute__((unused, cleanup(tensor_autocast_end_))) = tensor_autocast_begin(__VA_ARGS__), \
                                    *TENSOR_PASTE_(tensor_go_, n) = &TENSOR_PASTE_(tensor_before_, n);    \
         TENSOR_PASTE_(tensor_go_, n); TENSOR_PASTE_(tensor_go_, n) = NULL)
#define TENSOR_AUTOCAST(...) TENSOR_AUTOCAST_NAMED_(__COUNTER__, __VA_ARGS__)
#define TENSOR_AUTOCAST_OFF TENSOR_AUTOCAST_NAMED_(__COUNTER__, TENSOR_BF16, false)

/* tensor_autocast_enabled - is autocast on in this thread?
 * tensor_autocast_dtype - the block's dtype; TENSOR_BF16 outside any block.
 * tensor_clear_autocast_cache - drops the kept casts. */
TAPEGRAD_API bool tensor_autocast_enabled(void);
TAPEGRAD_API TensorDtype tensor_autocast_dtype(void);
TAPEGRAD_API void tensor_clear_autocast_cache(void);

/* tensor_set_float32_matmul_precision - the precision of matrix products of f32 tensors, in all threads:
 *
 *   HIGHEST   (default) operands, products and sums are f32
 *   HIGH      a device may use TF32 (10 bits of fraction).  A CPU with AMX may add the six largest products
 *             of operands taken apart into three numbers of bf16: |y - a b| <= (k + 8) 2^-24 |a| |b|, as f32.
 *             A product with an infinity, a NaN, an operand below 2^-102 or a sum that overflows is computed
 *             in f32, all of it; so is one whose sums are too small for that bound.  Other CPUs compute in
 *             f32, as PyTorch's does.
 *   MEDIUM    a device may use TF32; a CPU with AMX or AVX512-BF16 may round the operands to bf16 (7 bits of
 *             fraction) and add the products in f32: |y - a b| <= 2^-7 |a| |b|, about; finite values above
 *             3.39e38 become infinite, those below 2^-126 count as 0.  Other CPUs compute in f32.
 *
 * It applies to matmul, mm, bmm, linear, the ops composed of them, and their gradients; to convolutions only
 * on a GPU by cuDNN, and to recurrent layers not at all.  Small products stay in f32: by HIGH on a CPU those
 * of k < 32 or m n < 40 (m + n).  Products of f16 and bf16 always accumulate in f32.
 * EVALUE: another value. */
typedef enum TensorMatmulPrecision {
    TENSOR_MATMUL_HIGHEST,
    TENSOR_MATMUL_HIGH,
    TENSOR_MATMUL_MEDIUM
} TensorMatmulPrecision;
TAPEGRAD_API int tensor_set_float32_matmul_precision(TensorMatmulPrecision precision);
TAPEGRAD_API TensorMatmulPrecision tensor_get_float32_matmul_precision(void);

#ifdef __cplusplus
}
#endif
#endif
