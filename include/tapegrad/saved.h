/* saved.h - what backward keeps, and ways to keep less: checkpointing, hooks of saved values.
 *
 *     static Tensor *block(Tensor **in, int n, void *ctx) { return nn_forward(ctx, in[0]); }
 *     ...
 *     Tensor *y = tensor_checkpoint(block, layer, x);      // y is nn_forward(layer, x); of what lies between
 *                                                          // x and y backward keeps nothing
 *     TENSOR_SAVED_HOOKS(tensor_save_in(TENSOR_BF16)) loss = nn_forward(net, x);   // half the bytes
 *
 * An op keeps the operands and results that its backward reads (TensorOp.keep).  Leaves that require a
 * gradient are kept as they are, whatever is said here: they live anyway. */
#ifndef TAPEGRAD_SAVED_H
#define TAPEGRAD_SAVED_H

#include <tapegrad/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- checkpointing ---------------------------------------------------------------------------
 * As torch.utils.checkpoint.checkpoint(use_reentrant=False).
 *
 * tensor_checkpoint(fn, ctx, x, y, ...) - fn(inputs, n, ctx), recorded without the values that its ops would
 *     save.  When backward needs the first of them fn runs once more, from the inputs, with the generator and
 *     the autocast state of the first time: gradients have the same bits as without it, those of parameters
 *     that fn reaches through ctx too.  fn must do the same both times, and ctx live until backward is over.
 *     Checkpoints nest, and work under create_graph.  Where no gradient is recorded fn is just called.
 *     An input may be NULL.
 * tensor_checkpoint_many(fn, ctx, TENSORS(x, y), outputs, m) - the same for m results: fn puts them into
 *     outputs and returns 0, or -1.
 *
 * Errors are fn's.  In backward: EGRAD where an input was written since, or where fn saved other values than
 * the first time. */
typedef int (*TensorSegment)(Tensor *const *inputs, int n, Tensor **outputs, int m, void *ctx);
#define tensor_checkpoint(fn, ctx, ...) tensor_checkpoint_list(fn, ctx, TENSORS(__VA_ARGS__))
TAPEGRAD_API Tensor *tensor_checkpoint_list(TensorFunction fn, void *ctx, TensorList inputs);
TAPEGRAD_API int tensor_checkpoint_many(TensorSegment fn, void *ctx, TensorList inputs, Tensor **outputs,
                                        int m);

/* ---- hooks of saved values -------------------------------------------------------------------
 * As torch.autograd.graph.saved_tensors_hooks.  While a block runs, each value that an op of this thread
 * saves goes through pack; the op keeps what pack returned instead of the value.
 *
 *   pack(x, ctx)         x is outside any graph, and gone afterwards: retain it to keep it.  NULL fails the
 *                        op.
 *   unpack(packed, ctx)  when the op's backward runs: a tensor of x's shape; its dtype and device are brought
 *                        back to x's.  It belongs to the open scope, as what any function returns.  NULL, or
 *                        another shape (ESHAPE), fails the sweep.
 *   drop(packed, ctx)    once, when nobody will unpack it again; NULL: nothing is to do.
 *
 * Hooks run without a graph, autocast or hooks.  ctx must live as long as what was packed. */
typedef struct TensorSavedHooks {
    void *(*pack)(Tensor *x, void *ctx);
    Tensor *(*unpack)(void *packed, void *ctx);
    void (*drop)(void *packed, void *ctx);
    void *ctx;
} TensorSavedHooks;

/* TENSOR_SAVED_HOOKS(hooks) { ... } - a block, however it is left; break leaves the block alone.  The
 *     innermost block counts; hooks of NULLs switch them off inside.
 * tensor_saved_hooks_begin - the same, for this thread; returns what was there, for tensor_saved_hooks_end.
 *     EVALUE, and no change: one of pack and unpack without the other. */
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

/* Hooks that are there already:
 * tensor_save_in - floats that are wider than dtype are kept in it, rounded: gradients are close, not equal.
 *     EDTYPE, in the op that saves: no floating dtype.
 * tensor_save_on_cpu - in the host's memory, as torch.autograd.graph.save_on_cpu.
 * tensor_save_on_disk - each in a file in folder, a text that must live as long as they do; the file goes
 *     with the value.  EIO: it cannot be written or read. */
TAPEGRAD_API TensorSavedHooks tensor_save_in(TensorDtype dtype);
TAPEGRAD_API TensorSavedHooks tensor_save_on_cpu(void);
TAPEGRAD_API TensorSavedHooks tensor_save_on_disk(const char *folder);

#ifdef __cplusplus
}
#endif
#endif
