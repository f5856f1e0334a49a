/* autocast.h - precision: ops that choose their dtype, and that of f32 products.
 *
 *     TENSOR_AUTOCAST(TENSOR_BF16) {
 *         logits = nn_forward(net, x);                       // products in bf16, f32 where PyTorch says so
 *         loss = tensor_cross_entropy(logits, target);
 *     }
 *     tensor_backward(loss);                                 // gradients of f32 parameters are f32
 *
 * As torch.autocast: inside a block each op casts its floating operands by its class, which its descriptor
 * states (TensorOp.autocast; OpRow.autocast for rows, where none means AUTOCAST_AS_IS):
 *
 *   AUTOCAST_LOWER    to the block's dtype: products, linear, convolutions, recurrent nets, attention
 *   AUTOCAST_F32      to f32: losses and, on cuda, exp, log, pow, sum, softmax, norms
 *   AUTOCAST_PROMOTE  to the widest of its operands' dtypes: cat, stack, and, on cuda, addcmul, dot, ...
 *   AUTOCAST_AS_IS    not at all: the rest runs in its operands' dtype
 *   AUTOCAST_PARTS    not at all, but the ops that it is made of choose for themselves: einsum, cov, ...
 *
 * PyTorch has one list for the CPU and one for CUDA (on the CPU softmax, exp and norms keep bf16); tensors on
 * the CPU follow the first, on any other device the second (AUTOCAST_CPU_CUDA(AS_IS, F32)).  Other than
 * there: recurrent nets, their cells and inner are AUTOCAST_LOWER as a whole; binary_cross_entropy runs in
 * f32 on cuda too, where PyTorch refuses it; local_response_norm, pinv and lstsq run in f32.  f64 and
 * integers are never cast; nor are operands where the op's option dtype was
 * given, nor those of ops in place.  An op of yours has the class AUTOCAST_AS_IS unless it says another (as
 * torch.amp.custom_fwd).
 *
 * Casts are on the graph, so each gradient has its leaf's dtype; what linear makes for a leaf in f32 is not
 * rounded on its way there, and cross_entropy reads logits in a half as they are: the same loss.  The cast
 * of a leaf in f32 that requires a gradient is made once and kept until the outermost block ends, or the
 * leaf is written.  A sweep itself runs with autocast off: its ops take the dtypes that the forward ones
 * chose. */
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

typedef struct TensorAutocast { /* the state of a thread */
    TensorDtype dtype;
    bool enabled, cache_enabled;
    int depth; /* of blocks */
} TensorAutocast;

/* TENSOR_AUTOCAST(TENSOR_F16) { ... } - a block, however it is left; break leaves the block alone.  Blocks
 *     nest; TENSOR_AUTOCAST_OFF { ... } inside one is a block without autocast.  With options:
 *     TENSOR_AUTOCAST(TENSOR_BF16, .enabled = mixed, .cache_enabled = false); in C++ by place, without names.
 * tensor_autocast_begin - enters, for this thread, and returns the state before, which tensor_autocast_end
 *     restores; when no block is left the kept casts are dropped.  EDTYPE: another dtype than f16 and bf16;
 *     then nothing is entered, and the block runs as the code around it does. */
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

/* tensor_autocast_enabled - do ops of this thread cast now?  tensor_autocast_dtype - to what; TENSOR_BF16
 * outside any block. tensor_clear_autocast_cache - drops the kept casts. */
TAPEGRAD_API bool tensor_autocast_enabled(void);
TAPEGRAD_API TensorDtype tensor_autocast_dtype(void);
TAPEGRAD_API void tensor_clear_autocast_cache(void);

/* tensor_set_float32_matmul_precision - what matrix products of f32 tensors may lose, in all threads:
 *
 *   HIGHEST   (default) operands, products and sums are f32
 *   HIGH      a device may use TF32 (10 bits of fraction); the CPU computes in f32, as PyTorch's does
 *   MEDIUM    a device may use TF32; a CPU with AVX512-BF16 may round the operands to bf16 (7 bits of
 *             fraction) and add the products up in f32: |y - a b| <= 2^-7 |a| |b|, about; finite values above
 *             3.39e38 become infinite, those below 2^-126 count as 0.  Other CPUs compute in f32.
 *
 * So are matmul, mm, bmm, linear and what is made of them, with their gradients; convolutions and recurrent
 * layers are not.  A small product stays in f32: a device may always lose less.  Products of halves add up in
 * f32 always.  EVALUE: none of them. */
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
