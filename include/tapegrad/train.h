/* train.h - training in one call.
 *
 *     Module *net = nn_sequential(nn_flatten(), nn_linear(784, 128), nn_relu(), nn_linear(128, 10));
 *     Optimizer *opt = optim_adam(nn_parameters(net));
 *     DataLoader *train = data_loader(data_mnist(NULL, DATA_TRAIN), .batch_size = 64, .shuffle = true);
 *     DataLoader *test = data_loader(data_mnist(NULL, DATA_TEST), .batch_size = 500);
 *     nn_fit(net, train, nn_cross_entropy_loss(), opt, .epochs = 5, .validate = test);
 *
 * A loss is a module of (output, target); these functions take it over: nn_retain it to use it again.  All
 * else is borrowed.  They are written on the public functions, and read as an example of a loop. */
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

/* How to come from a batch to its loss, where it is not loss(net(x), y): returns the mean loss of the batch,
 * and sets *output to what metrics shall see (and nn_predict gives), if anything.  NULL: an error. */
typedef Tensor *(*NNStepFn)(Module *net, const Batch *batch, Tensor **output, void *ctx);

/* ---- fit ----------------------------------------------------------------------------------------- */

/* What was measured, a row an epoch of this call: "loss", each metric by its name, with .validate the same
 * after "val_", and "lr".
 * nn_history_get - of an epoch, counted from 0, or from -1 at the end; NaN where there is none.
 * nn_history_free - frees what nn_fit made. */
typedef struct NNHistory {
    char (*name)[56];
    double *value; /* [epochs, columns] */
    int64_t epochs, steps;
    int columns;
    int64_t best_epoch; /* of .monitor, counted over all calls; -1: none yet */
    double best;
    bool stopped_early, interrupted, resumed, diverged;
} NNHistory;
TAPEGRAD_API double nn_history_get(const NNHistory *history, const char *name, int64_t epoch);
TAPEGRAD_API void nn_history_free(NNHistory *history);

/* What callbacks are told, and when.  NN_FIT_END comes after a run that was stopped or interrupted, too, but
 * not after one that failed. */
typedef enum NNEvent { NN_FIT_BEGIN, NN_EPOCH_BEGIN, NN_BATCH_END, NN_EPOCH_END, NN_FIT_END } NNEvent;

typedef struct NNFit {
    Module *module;
    Optimizer *optimizer;
    DataLoader *train, *validate;
    const Batch *batch;       /* in NN_BATCH_END */
    int64_t epoch, epochs;    /* from 0 */
    int64_t step;             /* steps of the optimizer so far */
    const NNHistory *history; /* its last row is that of the epoch, in NN_EPOCH_END */
    bool stop;                /* set it to end after this event */
} NNFit;

/* nn_fit_loss - the mean loss of this epoch so far; nn_fit_batch_loss - that of the last batch.  They wait
 * for a device: what calls them once in many batches leaves it at work. */
TAPEGRAD_API double nn_fit_loss(NNFit *fit);
TAPEGRAD_API double nn_fit_batch_loss(NNFit *fit);

/* fn returns 0, or -1 and an error, with which nn_fit fails. */
typedef struct NNCallback {
    int (*fn)(NNFit *fit, NNEvent event, void *ctx);
    void *ctx;
} NNCallback;

/* What a run does when a loss, of a batch or of a validation, is NaN or infinite. */
typedef enum NNOnNan {
    NN_NAN_FAIL, /* ends, with an error that names epoch and batch */
    NN_NAN_STOP, /* ends as a run that was stopped; NNHistory.diverged says why (Keras' TerminateOnNaN) */
    NN_NAN_GO_ON /* trains on (f16 with a .scaler, which skips such steps) */
} NNOnNan;

typedef struct NNFitArgs {
    Module *module;
    DataLoader *train;
    Module *loss;
    Optimizer *optimizer;
    int64_t epochs; /* in all, those of a resumed run included */
    DataLoader *validate;
    Metric *const *metrics;                 /* NN_METRICS(...) */
    NNStepFn step;                          /* instead of loss, which is NULL then */
    void *ctx;                              /* of step and parts */
    Scheduler *scheduler;                   /* steps after each epoch, with the monitored number ... */
    bool schedule_steps;                    /* ... or after each step of the optimizer */
    int accumulate;                         /* batches to a step, which has the mean of their losses */
    double clip_grad_norm, clip_grad_value; /* 0: not */
    double l1, l2; /* l1 sum |w| + l2 sum w^2 is added to the loss, over parameters of rank 2 and above */
    TensorByName by_name;
    TensorDtype autocast; /* TENSOR_BF16, TENSOR_F16; TENSOR_F32: none */
    GradScaler *scaler;
    AveragedModel *averaged; /* EMA or SWA: updated after each step */
    const char *monitor;     /* a column of the history; NULL: "val_loss", or "loss" without .validate */
    NNMode mode;             /* NN_AUTO: NN_MIN for the losses, nn_metric_mode for a metric */
    int64_t patience;        /* ends after so many epochs that were no better; 0: never */
    double min_delta;        /* what is better by no more is no better */
    bool restore_best;       /* ends with the parameters and buffers of the best epoch, if there was one */
    NNOnNan on_nan;
    const char *checkpoint; /* a folder: goes on from what is there, and writes after each epoch ... */
    int64_t save_every;     /* ... and after so many steps; 0: not */
    int keep;               /* files of it */
    void (*parts)(Checkpoint *run, void *ctx); /* may add parts to the checkpoint */
    const char *csv, *log_dir;                 /* a CSV file, a folder for TensorBoard: the history */
    const NNCallback *callbacks;               /* ended by one whose fn is NULL */
    int verbose;                               /* 1: a bar on a terminal, a line an epoch; 0: nothing */
    FILE *file;                                /* of the lines; NULL: stdout */
    bool handle_interrupt;                     /* Ctrl-C ends the run between two steps, with a checkpoint */
    NNHistory *history;                        /* may be NULL; else the caller frees it */
    TensorFromDefaults from_defaults;
} NNFitArgs;
#define NN_FIT_DEFAULTS                                                                                      \
    .epochs = 1, .accumulate = 1, .keep = 3, .verbose = 1, .handle_interrupt = true, .autocast = TENSOR_F32, \
    TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNFitArgs nn_fit_defaults;

/* nn_fit(net, train, nn_mse_loss(), opt, .epochs = 20, .validate = test, .patience = 3, .restore_best = true)
 * - trains.  Per batch: forward, loss, zero_grad, backward; per step: clipping, step, schedule; per epoch:
 * validation (nn_evaluate), schedule, callbacks, logs, checkpoint.  The net is switched to training at first
 * (a callback at NN_FIT_BEGIN may switch parts of it back), and the loader begins an epoch.  Batches that are
 * left at the end of one make a step, too, with the mean of their own losses.
 *
 * With .checkpoint a run that was killed goes on where its last checkpoint was, and ends in the bits of one
 * that was not, if the same call is made again; with one that has ended, nothing is left to do.  Ctrl-C is
 * taken where SIGINT has its default action; a second one kills.
 *
 * A loss that is NaN or infinite ends the run (.on_nan), and no checkpoint is written of it.  Where losses
 * are on the CPU, the parameters are those before that batch; a device tells late (the bar, a checkpoint, the
 * end of the epoch, nn_fit_loss), and the parameters may be NaN by then.  Those of the best epoch come back
 * with .restore_best, those of the last checkpoint with io_checkpoint_resume.
 *
 * The optimizer is one that steps without a closure: LBFGS cannot be fitted.
 *
 * 0, also when it was stopped or interrupted; -1 and an error, with the parameters of the last step: ENULL;
 * EVALUE: a loader that gives no batches; options out of range, or one that another one is missing for
 * (.save_every and .parts: .checkpoint; .schedule_steps: .scheduler); an optimizer that has no parameter of
 * the net (unless there is a .step), a scheduler of another optimizer, averages of another net; a .monitor
 * that is no column, or of which nobody has said what is better; a loss (above).  EIO: no file can be written
 * into the folder of .checkpoint, as is tried before the first batch.  EUSER: a callback failed without an
 * error, a step gave no output for .metrics.  What modules, metrics and files say. */
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

/* nn_evaluate(net, test, nn_mse_loss(), .metrics = NN_METRICS(accuracy)) - one epoch in eval mode without
 *     gradients: the mean loss over samples (0 without one); the metrics are begun anew and hold theirs.  NaN
 *     and an error as nn_fit.
 * nn_predict(net, test) - the outputs of one epoch, one behind the other along dim 0; targets are not looked
 *     at.  EVALUE: a loss, .metrics.
 * Both leave each module in the mode that it had. */
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
