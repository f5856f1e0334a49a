/* train.h - training, evaluation and prediction in one call each.
 *
 *     Module *net = nn_sequential(nn_flatten(), nn_linear(784, 128), nn_relu(), nn_linear(128, 10));
 *     Optimizer *opt = optim_adam(nn_parameters(net));
 *     DataLoader *train = data_loader(data_mnist(NULL, DATA_TRAIN), .batch_size = 64, .shuffle = true);
 *     DataLoader *test = data_loader(data_mnist(NULL, DATA_TEST), .batch_size = 500);
 *     nn_fit(net, train, nn_cross_entropy_loss(), opt, .epochs = 5, .validate = test);
 *
 * A loss is a module of (output, target); these functions take it over: nn_retain it to use it again.  They
 * borrow all other arguments.  They use only public functions: their source is an example of a training
 * loop. */
#ifndef TAPEGRAD_TRAIN_H
#define TAPEGRAD_TRAIN_H

#include <tapegrad/checkpoint.h>
#include <tapegrad/grad_scaler.h>
#include <tapegrad/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NN_METRICS(accuracy, f1) - a list of metrics, for .metrics. */
#define NN_METRICS(...) ((Metric *const[]){ __VA_ARGS__, NULL })

/* Computes the loss of a batch where it is not loss(net(x), y): returns the batch's mean loss, or NULL after
 * an error.  May set *output, the output for the metrics and nn_predict. */
typedef Tensor *(*NNStepFn)(Module *net, const Batch *batch, Tensor **output, void *ctx);

/* ---- fit ----------------------------------------------------------------------------------------- */

/* The record of a run, a row for each epoch of this call.  Columns: "loss", each metric by its name, with
 * .validate the same with "val_" before the name, and "lr".
 * nn_history_get - the value of a column in an epoch, counted from 0, or from -1 at the end; NaN if none.
 * nn_history_free - frees the arrays. */
typedef struct NNHistory {
    char (*name)[56];
    double *value; /* [epochs, columns] */
    int64_t epochs, steps;
    int columns;
    int64_t best_epoch; /* by .monitor, counted over all calls; -1: none yet */
    double best;
    bool stopped_early, interrupted, resumed, diverged;
} NNHistory;
TAPEGRAD_API double nn_history_get(const NNHistory *history, const char *name, int64_t epoch);
TAPEGRAD_API void nn_history_free(NNHistory *history);

/* Events that callbacks receive.  NN_FIT_END also follows a run that was stopped or interrupted, but not one
 * that failed. */
typedef enum NNEvent { NN_FIT_BEGIN, NN_EPOCH_BEGIN, NN_BATCH_END, NN_EPOCH_END, NN_FIT_END } NNEvent;

typedef struct NNFit {
    Module *module;
    Optimizer *optimizer;
    DataLoader *train, *validate;
    const Batch *batch;       /* in NN_BATCH_END */
    int64_t epoch, epochs;    /* from 0 */
    int64_t step;             /* steps of the optimizer so far */
    const NNHistory *history; /* in NN_EPOCH_END its last row is this epoch's */
    bool stop;                /* set it to end after this event */
} NNFit;

/* nn_fit_loss - the mean loss of this epoch so far; nn_fit_batch_loss - the loss of the last batch.  Both
 * wait for a device: call them seldom, so that it keeps computing. */
TAPEGRAD_API double nn_fit_loss(NNFit *fit);
TAPEGRAD_API double nn_fit_batch_loss(NNFit *fit);

/* fn returns 0; or -1 after an error, which fails nn_fit. */
typedef struct NNCallback {
    int (*fn)(NNFit *fit, NNEvent event, void *ctx);
    void *ctx;
} NNCallback;

/* What nn_fit does when the loss of a batch or of a validation is NaN or infinite. */
typedef enum NNOnNan {
    NN_NAN_FAIL, /* fails; the error names epoch and batch */
    NN_NAN_STOP, /* stops the run and sets NNHistory.diverged (Keras' TerminateOnNaN) */
    NN_NAN_GO_ON /* goes on (for f16 with a .scaler, which skips such steps) */
} NNOnNan;

typedef struct NNFitArgs {
    Module *module;
    DataLoader *train;
    Module *loss;
    Optimizer *optimizer;
    int64_t epochs; /* in total, those before a resume included */
    DataLoader *validate;
    Metric *const *metrics;                 /* NN_METRICS(...) */
    NNStepFn step;                          /* instead of loss, which must be NULL */
    void *ctx;                              /* of step and parts */
    Scheduler *scheduler;                   /* steps after each epoch, with the monitored value ... */
    bool schedule_steps;                    /* ... or after each step of the optimizer */
    int accumulate;                         /* batches for each optimizer step; their losses are averaged */
    double clip_grad_norm, clip_grad_value; /* 0: not */
    double l1, l2; /* adds l1 sum |w| + l2 sum w^2 to the loss, over parameters of rank 2 and above */
    TensorByName by_name;
    TensorDtype autocast; /* TENSOR_BF16, TENSOR_F16; TENSOR_F32: none */
    GradScaler *scaler;
    AveragedModel *averaged; /* EMA or SWA: updated after each step */
    const char *monitor;     /* a column of the history; NULL: "val_loss", or "loss" without .validate */
    NNMode mode;             /* NN_AUTO: NN_MIN for the losses, nn_metric_mode for a metric */
    int64_t patience;        /* stops after this many epochs without improvement; 0: never */
    double min_delta;        /* smaller improvements do not count */
    bool restore_best;       /* at the end, restore parameters and buffers of the best epoch, if any */
    NNOnNan on_nan;
    const char *checkpoint; /* a folder: resumes from its files, and saves after each epoch ... */
    int64_t save_every;     /* ... and after this many steps; 0: not */
    int keep;               /* checkpoint files kept */
    void (*parts)(Checkpoint *run, void *ctx); /* may add parts to the checkpoint */
    const char *csv, *log_dir;   /* writes the history to a CSV file, to a folder for TensorBoard */
    const NNCallback *callbacks; /* ended by one whose fn is NULL */
    int verbose;                 /* 1: a bar on a terminal, and a line an epoch; 0: no output */
    FILE *file;                  /* for the lines; NULL: stdout */
    bool handle_interrupt;       /* Ctrl-C ends the run between two steps, and saves a checkpoint */
    NNHistory *history;          /* NULL, or receives the history, which the caller frees */
    TensorFromDefaults from_defaults;
} NNFitArgs;
#define NN_FIT_DEFAULTS                                                                                      \
    .epochs = 1, .accumulate = 1, .keep = 3, .verbose = 1, .handle_interrupt = true, .autocast = TENSOR_F32, \
    TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNFitArgs nn_fit_defaults;

/* nn_fit(net, train, nn_mse_loss(), opt, .epochs = 20, .validate = test, .patience = 3, .restore_best = true)
 * - trains.  Per batch: forward, loss, zero_grad, backward; per step: clipping, step, schedule; per epoch:
 * validation (nn_evaluate), schedule, callbacks, logs, checkpoint.  The net is set to training mode at the
 * start (a callback at NN_FIT_BEGIN may change parts of it back), and the loader begins an epoch.  With
 * .accumulate, the remaining batches of an epoch make a step too, with the mean of their losses.
 *
 * With .checkpoint the same call resumes a killed run from its last checkpoint, and ends with the bits of an
 * uninterrupted run; after a finished run it has nothing to do.  Ctrl-C is handled only if SIGINT has its
 * default action; a second one kills the process.
 *
 * A NaN or infinite loss ends the run (.on_nan) without a checkpoint.  If losses are on the CPU, the
 * parameters are then those before that batch.  On a device the loss is read late (for the bar, a checkpoint,
 * nn_fit_loss, or at the end of the epoch), and the parameters may be NaN by then: .restore_best restores the
 * best epoch, io_checkpoint_resume the last checkpoint.
 *
 * The optimizer must step without a closure: LBFGS is refused.
 *
 * Returns 0, even if stopped or interrupted; or -1, with the parameters of the last step.  ENULL.  EVALUE: a
 * loader without batches; options out of range, or without the option they need (.save_every and .parts:
 * .checkpoint; .schedule_steps: .scheduler); an optimizer without a parameter of the net (unless .step is
 * given), a scheduler of another optimizer, averages of another net; a .monitor that is no column, or without
 * a mode; a NaN or infinite loss (.on_nan).  EIO: the folder of .checkpoint is not writable, which is tested
 * before the first batch.  EUSER: a callback failed without an error, or .step set no output for .metrics.
 * Also the errors of modules, metrics and files. */
#define nn_fit(module_, train_, loss_, ...)                                                                  \
    TENSOR_CALL_(nn_fit_args, NNFitArgs, NN_FIT_DEFAULTS, .module = module_, .train = train_, .loss = loss_, \
                 .optimizer = __VA_ARGS__)
TAPEGRAD_API int nn_fit_args(NNFitArgs args);

/* ---- evaluate, predict --------------------------------------------------------------------------- */

typedef struct NNEvaluateArgs {
    Module *module;
    DataLoader *loader;
    Module *loss; /* may be NULL */
    Metric *const *metrics;
    NNStepFn step;
    void *ctx;
    TensorByName by_name;
    TensorDtype autocast;
} NNEvaluateArgs;
#define NN_EVALUATE_DEFAULTS .autocast = TENSOR_F32
TAPEGRAD_API extern const NNEvaluateArgs nn_evaluate_defaults;

/* nn_evaluate(net, test, nn_mse_loss(), .metrics = NN_METRICS(accuracy)) - runs one epoch in eval mode
 *     without gradients; returns the mean loss over samples (0 without a loss).  The metrics are reset first
 *     and then hold the epoch's values.  NaN and an error as nn_fit.
 * nn_predict(net, test) - the outputs of one epoch, concatenated along dim 0; ignores targets.  EVALUE: a
 *     loss or .metrics is given.
 * Both restore each module's mode. */
#define nn_evaluate(module_, loader_, ...)                                                  \
    TENSOR_CALL_(nn_evaluate_args, NNEvaluateArgs, NN_EVALUATE_DEFAULTS, .module = module_, \
                 .loader = loader_, .loss = __VA_ARGS__)
#define nn_predict(module_, ...)                                                           \
    TENSOR_CALL_(nn_predict_args, NNEvaluateArgs, NN_EVALUATE_DEFAULTS, .module = module_, \
                 .loader = __VA_ARGS__)
TAPEGRAD_API double nn_evaluate_args(NNEvaluateArgs args);
TAPEGRAD_API Tensor *nn_predict_args(NNEvaluateArgs args);

#ifdef __cplusplus
}
#endif
#endif
