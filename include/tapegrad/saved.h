/* saved.h - less memory for values saved for backward: checkpointing, hooks of saved values.
 *
 *     static Tensor *block(Tensor **in, int n, void *ctx) { return nn_forward(ctx, in[0]); }
 *     ...
 *     Tensor *y = tensor_checkpoint(block, layer, x);      // y is nn_forward(layer, x); of what lies between
 *                                                          // x and y backward keeps nothing
 *     TENSOR_SAVED_HOOKS(tensor_save_in(TENSOR_BF16)) loss = nn_forward(net, x);   // half the bytes
 *
 * An op keeps the operands and results that its backward reads (TensorOp.keep).  Checkpoints and hooks do not
 * apply to leaves that require a gradient: these stay in memory anyway. */
#ifndef TAPEGRAD_SAVED_H
#define TAPEGRAD_SAVED_H

#include <tapegrad/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- checkpointing ---------------------------------------------------------------------------
 * As torch.utils.checkpoint.checkpoint(use_reentrant=False).
 *
 * tensor_checkpoint(fn, ctx, x, y, ...) - calls fn(inputs, n, ctx) and records its ops without the values
 *     they would save.  When backward needs the first of these, fn runs again on the inputs, with the
 *     generator and the autocast state of the first run: all gradients, those of parameters reached through
 *     ctx too, have the bits they would have without the checkpoint.  fn must do the same both times, and ctx
 *     must live until backward is over.  Checkpoints nest, and work under create_graph.  If nothing is to be
 *     recorded, fn is just called.  An input may be NULL.
 * tensor_checkpoint_many(fn, ctx, TENSORS(x, y), outputs, m) - the same for m results: fn sets outputs and
 *     returns 0, or -1.
 *
 * Errors are fn's.  In backward, EGRAD: an input was written since, or fn saved other values than in its
 * first run. */
typedef int (*TensorSegment)(Tensor *const *inputs, int n, Tensor **outputs, int m, void *ctx);
#define tensor_checkpoint(fn, ctx, ...) tensor_checkpoint_list(fn, ctx, TENSORS(__VA_ARGS__))
TAPEGRAD_API Tensor *tensor_checkpoint_list(TensorFunction fn, void *ctx, TensorList inputs);
TAPEGRAD_API int tensor_checkpoint_many(TensorSegment fn, void *ctx, TensorList inputs, Tensor **outputs,
                                        int m);

/* ---- hooks of saved values -------------------------------------------------------------------
 * As torch.autograd.graph.saved_tensors_hooks.  In a block, each value that an op of this thread saves goes
 * through pack; the op keeps pack's result instead.
 *
 *   pack(x, ctx)         x is outside any graph; retain it to keep it.  NULL fails the op.
 *   unpack(packed, ctx)  runs in the op's backward: returns a tensor of x's shape, which is then cast and
 *                        moved to x's dtype and device.  The open scope owns it, as any function's result.
 *                        NULL, or another shape (ESHAPE), fails the sweep.
 *   drop(packed, ctx)    runs once, after the last unpack; may be NULL.
 *
 * Hooks run with grad mode, autocast and hooks off.  ctx must outlive the packed values. */
typedef struct TensorSavedHooks {
    void *(*pack)(Tensor *x, void *ctx);
    Tensor *(*unpack)(void *packed, void *ctx);
    void (*drop)(void *packed, void *ctx);
    void *ctx;
} TensorSavedHooks;

/* TENSOR_SAVED_HOOKS(hooks) { ... } - a block that ends however it is left; break leaves only the block.  The
 *     innermost block's hooks apply; hooks of NULLs switch them off.
 * tensor_saved_hooks_begin - begins such a block on this thread; returns the previous hooks, for
 *     tensor_saved_hooks_end.  EVALUE, and no change: pack without unpack, or unpack without pack. */
TAPEGRAD_API TensorSavedHooks tensor_saved_hooks_begin(TensorSavedHooks hooks);
TAPEGRAD_API void tensor_saved_hooks_end(TensorSavedHooks before);
static inline void tensor_saved_hooks_end_(const TensorSavedHooks *before)
{
    tensor_saved_hooks_end(*before);
}
#define TENSOR_SAVED_HOOKS_NAMED_(n, ...)                                                              \
    for (TensorSavedHooks TENSOR_PASTE_(tensor_before_, n)                                             \
             __attribute__((unused, cleanup(tensor_saved_hooks_end_))) =                               \
                 tensor_saved_hooks_begin(__VA_ARGS__),                                                \
                                    *TENSOR_PASTE_(tensor_go_, n) = &TENSOR_PASTE_(tensor_before_, n); \
         TENSOR_PASTE_(tensor_go_, n); TENSOR_PASTE_(tensor_go_, n) = NULL)
#define TENSOR_SAVED_HOOKS(...) TENSOR_SAVED_HOOKS_NAMED_(__COUNTER__, __VA_ARGS__)

/* Built-in hooks:
 * tensor_save_in - keeps wider floats rounded to dtype: gradients are close, not equal.  EDTYPE, from the op
 *     that saves: dtype is not floating.
 * tensor_save_on_cpu - keeps values in host memory, as torch.autograd.graph.save_on_cpu.
 * tensor_save_on_disk - keeps each value in a file in folder, deleted with the value; the string folder must
 *     outlive them.  EIO: a file cannot be written or read. */
TAPEGRAD_API TensorSavedHooks tensor_save_in(TensorDtype dtype);
TAPEGRAD_API TensorSavedHooks tensor_save_on_cpu(void);
TAPEGRAD_API TensorSavedHooks tensor_save_on_disk(const char *folder);

#ifdef __cplusplus
}
#endif
#endif
