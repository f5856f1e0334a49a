/* graph.h - training steps that a GPU runs at once: captured the first time, replayed afterwards.
 *
 *     TensorGraph *g = tensor_graph("cuda:0");
 *     while (next_batch(&batch) && !tensor_error()) {
 *         if (tensor_graph_begin(g, TENSORS(batch.x, batch.y))) {          // false: it is replayed
 *             Tensor *x = tensor_graph_input(g, 0), *y = tensor_graph_input(g, 1);
 *             optim_zero_grad(opt);
 *             Tensor *loss = tensor_cross_entropy(nn_forward(net, x), y);
 *             if (!tensor_backward(loss) && !optim_step(opt)) tensor_graph_set_output(g, 0, loss);
 *         }
 *         if (!tensor_graph_end(g)) printf("%g\n", tensor_item(tensor_graph_output(g, 0)));
 *     }
 *     tensor_graph_free(g);
 *
 * A step of many small kernels is limited by the time that the host takes to launch them.  The code between
 * tensor_graph_begin and tensor_graph_end runs a few times as usual; then once while its kernels are captured
 * into a CUDA graph, which is launched at the end; from then on tensor_graph_begin returns false, the code is
 * left out, and one launch does all of it: torch.cuda.graph, without a warm-up or a capture of your own.  The
 * values are those of the eager step to the bit: losses, parameters, states, masks of dropout.  On the CPU,
 * and on a device that cannot capture, tensor_graph_begin always returns true.
 *
 * What a replay takes from the host:
 *   - the inputs: copied into the graph's own tensors, which are what the code must use;
 *   - learning rates and all other numbers in the options of the built-in optimizers, and their counts of
 *     steps, which go on;
 *   - the thread's generator: seed and offset of the masks of dropout;
 *   - the values of all other tensors that the code reads, such as parameters, buffers, a GradScaler's scale.
 *     They are read in place: write into them, but keep the tensors.
 *
 * What must be equal at each step, or it is not replayed but runs as usual, and is captured again once it has
 * been equal several times in a row: shapes and dtypes of the inputs, .key, grad mode, autocast, the default
 * device, the precision of products; modes and structure of modules (nn_train, nn_to, hooks, ...) and groups
 * of optimizers; address, shape and dtype of each tensor that the code uses and did not make, whether it
 * requires a gradient, and the .grad that it adds to.  What the code itself does must be equal, too: it is
 * captured only if it has called the same ops, with the same shapes, layouts and options, several times in a
 * row.  A replay cannot see what only the code knows: give a number that chooses what it does as .key, and
 * change numbers that it computes with as tensors.  As with torch.cuda.graph, work of the host is not
 * repeated: printing, counters, schedules and what hooks do besides belong outside.
 *
 * The host must not wait for the device within the code.  A call that does (tensor_item, tensor_print, a copy
 * from or to the host, an event, an op that the host computes, random numbers other than dropout's) ends the
 * capture: what was captured so far is launched, and the rest of the step runs as usual, so nothing is lost.
 * tensor_graph_info names the call and its line, and the first time stderr does; after three such steps in a
 * row no more are captured.  With .fallback = false the call fails instead (EDEVICE).
 *
 * Memory that the step allocates is the graph's own, and is used again by each replay: results, gradients
 * too, are valid until the next step with the same graph; clone what must stay.  A tensor may outlive the
 * graph. */
#ifndef TAPEGRAD_GRAPH_H
#define TAPEGRAD_GRAPH_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TensorGraph TensorGraph;

typedef struct TensorGraphArgs {
    const char *device;
    int warmup;    /* equal steps in a row before one is captured */
    bool fallback; /* false: what cannot be captured is an error */
    TensorFromDefaults from_defaults;
} TensorGraphArgs;
#define TENSOR_GRAPH_DEFAULTS .warmup = 2, .fallback = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorGraphArgs tensor_graph_defaults;

/* tensor_graph("cuda:0", .warmup = 3) - a graph for one step, of one thread.  NULL: EDEVICE: no such device;
 *     EVALUE: warmup below 1; ENULL, ENOMEM.
 * tensor_graph_free - frees it; memory that tensors still use becomes the device's.  Inside a step it ends
 *     that. */
#define tensor_graph(...) \
    TENSOR_CALL_(tensor_graph_args, TensorGraphArgs, TENSOR_GRAPH_DEFAULTS, .device = __VA_ARGS__)
TAPEGRAD_API TensorGraph *tensor_graph_args(TensorGraphArgs args);
TAPEGRAD_API void tensor_graph_free(TensorGraph *graph);

typedef struct TensorGraphBeginArgs {
    TensorGraph *graph;
    TensorList inputs;
    int64_t key;
    TensorFromDefaults from_defaults;
} TensorGraphBeginArgs;
#define TENSOR_GRAPH_BEGIN_DEFAULTS TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorGraphBeginArgs tensor_graph_begin_defaults;

enum { TENSOR_GRAPH_TENSORS = 64 }; /* most inputs, and most outputs */

/* tensor_graph_begin(g, TENSORS(x, y), .key = accumulates) - begins a step.  true: run the code; false: the
 *     step is replayed, or an error is recorded, which tensor_graph_end returns.  Inputs may be on the host
 *     or the device; no gradient flows to them.  ENULL: an input is NULL; EVALUE: more than
 *     TENSOR_GRAPH_TENSORS, or a step of this thread has not ended; ENOMEM, EDEVICE.
 * tensor_graph_end - ends it, on the same thread.  Each begin needs an end.  -1: an error is recorded, also
 *     by the code; EVALUE: no step of g has begun.
 * tensor_graph_input - input i as the code must use it, on the graph's device, dense.  EINDEX.
 * tensor_graph_set_output - in the code: what tensor_graph_output(g, i) returns after each step, without a
 *     graph of autograd; x must be on the graph's device.  EVALUE: outside of a step; EDEVICE; EINDEX; ENULL.
 * tensor_graph_output - output i of the last step.  EINDEX: the step has set none. */
#define tensor_graph_begin(...)                                                              \
    TENSOR_CALL_(tensor_graph_begin_args, TensorGraphBeginArgs, TENSOR_GRAPH_BEGIN_DEFAULTS, \
                 .graph = __VA_ARGS__)
TAPEGRAD_API bool tensor_graph_begin_args(TensorGraphBeginArgs args);
TAPEGRAD_API int tensor_graph_end(TensorGraph *graph);
TAPEGRAD_API Tensor *tensor_graph_input(TensorGraph *graph, int i);
TAPEGRAD_API int tensor_graph_set_output(TensorGraph *graph, int i, Tensor *x);
TAPEGRAD_API Tensor *tensor_graph_output(TensorGraph *graph, int i);

/* tensor_graph_info - how many steps ran in which way; why the last one that was not replayed was not, a
 *     sentence, or "" (valid until the next call with g).  Zeros for NULL. */
typedef struct TensorGraphInfo {
    int64_t eager, captured, replayed;
    const char *why;
} TensorGraphInfo;
TAPEGRAD_API TensorGraphInfo tensor_graph_info(const TensorGraph *graph);

/* ---- for optimizers and modules of your own --------------------------------------------------------
 * A number that the host computes anew at each step, such as a learning rate, must lie on the device.
 *
 * op_graph_capturing - is a step on that device being captured by this thread?  NULL: on any.
 * op_graph_numbers - n numbers on the device, f32 or f64, which must be in a step that is captured:
 *     fill(ctx, values) computes them, now and before each replay.  NULL: an error.
 * op_graph_on_replay - has fn(ctx, phase) called at each replay, in the order of registration:
 *     OP_GRAPH_CHECK  may the step be replayed?  0, or -1: it runs as usual.  Changes nothing.
 *     OP_GRAPH_NEXT   before fill: counts the step.
 *     OP_GRAPH_DONE   it was launched.
 *     drop(ctx), unless NULL, is called once, when the capture is no longer used.  -1: ENOMEM, and dropped.
 * op_graph_break - ends the capture, if there is one, as a call does that waits: what cannot be captured
 *     follows.  why: a sentence about `function`.  -1: an error is recorded (.fallback = false).
 * op_graph_compare - compares the calls that follow with those of the step before, or does not (false): they
 *     may differ from step to step where OP_GRAPH_CHECK checks what matters.  Returns what it was.
 * op_graph_changed - captured steps must not be replayed: something has changed that their code depends on,
 *     such as a mode or a list of parameters. */
typedef enum OpGraphPhase { OP_GRAPH_CHECK, OP_GRAPH_NEXT, OP_GRAPH_DONE } OpGraphPhase;
TAPEGRAD_API bool op_graph_capturing(const char *device);
TAPEGRAD_API Tensor *op_graph_numbers(int n, TensorDtype dtype, void (*fill)(void *ctx, double *values),
                                      void *ctx);
TAPEGRAD_API int op_graph_on_replay(int (*fn)(void *ctx, OpGraphPhase phase), void *ctx,
                                    void (*drop)(void *ctx));
TAPEGRAD_API int op_graph_break(const char *function, const char *why);
TAPEGRAD_API bool op_graph_compare(bool on);
TAPEGRAD_API void op_graph_changed(void);

#ifdef __cplusplus
}
#endif
#endif
