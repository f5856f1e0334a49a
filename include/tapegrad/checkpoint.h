/* checkpoint.h - a run that is killed goes on as if it had not been.
 *
 *     int64_t step = 0;
 *     Checkpoint *run = io_checkpoint("runs/mnist", .module = net, .optimizer = opt, .loader = train);
 *     io_checkpoint_int(run, "step", &step);
 *     io_checkpoint_resume(run);                              // where the last run was, if there was one
 *     for (Batch *b; step < steps && !tensor_error();) {
 *         if (!(b = data_next(train))) continue;             // the next call begins another epoch
 *         ...
 *         if (++step % 100 == 0) io_checkpoint_save(run);
 *     }
 *     io_checkpoint_free(run);
 *
 * A file holds all that decides what comes next: parameters and buffers, the states of optimizer, schedule
 * and loader, the thread's generator, the program's own numbers, and whatever else is named as a part.  The
 * run then ends in the bits of one that was never interrupted, if all else that it reads is in the files,
 * too.
 *
 * Files are folder/checkpoint-00000001.safetensors and so on: tensors by "part.name" ("model.0.weight",
 * "optimizer.state.0.exp_avg"), the format, its version and the names of the parts in the metadata, a
 * checksum over all of it.  One appears whole or not at all: what is killed at any instant leaves the ones
 * before, and a disk that is full leaves no temporary.  One process at a time writes into a folder: of two
 * each writes whole files, but nobody can say whose is the newest. */
#ifndef TAPEGRAD_CHECKPOINT_H
#define TAPEGRAD_CHECKPOINT_H

#include <tapegrad/data.h>
#include <tapegrad/grad_scaler.h>
#include <tapegrad/lr_scheduler.h>
#include <tapegrad/metrics.h>
#include <tapegrad/random.h>
#include <tapegrad/swa_utils.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Checkpoint Checkpoint;

typedef struct IoCheckpointArgs {
    const char *folder;      /* made when it is first needed */
    Module *module;          /* "model" */
    Optimizer *optimizer;    /* "optimizer" */
    Scheduler *scheduler;    /* "scheduler" */
    DataLoader *loader;      /* "loader" */
    GradScaler *scaler;      /* "scaler" */
    AveragedModel *averaged; /* "averaged" */
    int keep;                /* files: a save removes older ones that begin as its own do */
    TensorFromDefaults from_defaults;
} IoCheckpointArgs;
#define IO_CHECKPOINT_DEFAULTS .keep = 3, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoCheckpointArgs io_checkpoint_defaults;

/* io_checkpoint("runs/mnist", .module = net, .optimizer = opt, .scheduler = s, .loader = train) - what is
 * saved: those that are not NULL, and as "rng" the default generator of the thread that saves.  The
 * checkpoint borrows them: they live as long as it is used.  A net that has its averages (.averaged,
 * optim_averaged_swap) is saved and loaded with its own values.  NULL: ENULL, EVALUE (keep below 1),
 * ENOMEM. */
#define io_checkpoint(...) \
    TENSOR_CALL_(io_checkpoint_args, IoCheckpointArgs, IO_CHECKPOINT_DEFAULTS, .folder = __VA_ARGS__)
TAPEGRAD_API Checkpoint *io_checkpoint_args(IoCheckpointArgs args);

/* io_checkpoint_part - one more, by functions: save(ctx) gives its state as a dict, which stays valid until
 *     its next call; load(ctx, dict) takes such a state, all or nothing: 0, or -1 and an error.  Names are
 *     unique, not empty and without a dot (EVALUE).
 * io_checkpoint_module, _optimizer, _scheduler, _loader, _scaler, _averaged, _metric, _generator - the same
 * for one more of these.
 * io_checkpoint_int, io_checkpoint_double - a number of the program, read by a save and set by a resume: the
 *     tensor "scalars.name". */
TAPEGRAD_API int io_checkpoint_part(Checkpoint *run, const char *name, TensorDict (*save)(void *ctx),
                                    int (*load)(void *ctx, TensorDict dict), void *ctx);
TAPEGRAD_API int io_checkpoint_module(Checkpoint *run, const char *name, Module *module);
TAPEGRAD_API int io_checkpoint_optimizer(Checkpoint *run, const char *name, Optimizer *optimizer);
TAPEGRAD_API int io_checkpoint_scheduler(Checkpoint *run, const char *name, Scheduler *scheduler);
TAPEGRAD_API int io_checkpoint_loader(Checkpoint *run, const char *name, DataLoader *loader);
TAPEGRAD_API int io_checkpoint_scaler(Checkpoint *run, const char *name, GradScaler *scaler);
TAPEGRAD_API int io_checkpoint_averaged(Checkpoint *run, const char *name, AveragedModel *averaged);
TAPEGRAD_API int io_checkpoint_metric(Checkpoint *run, const char *name, Metric *metric);
TAPEGRAD_API int io_checkpoint_generator(Checkpoint *run, const char *name, TensorGenerator *generator);
TAPEGRAD_API int io_checkpoint_int(Checkpoint *run, const char *name, int64_t *number);
TAPEGRAD_API int io_checkpoint_double(Checkpoint *run, const char *name, double *number);

/* io_checkpoint_save - writes the next file, and then removes the oldest beyond .keep.  Call it between two
 * steps: gradients are not saved.  0; -1 and an error, the files as they were: EIO (the disk is full, ...).
 * While an error is pending it does nothing and returns -1. */
TAPEGRAD_API int io_checkpoint_save(Checkpoint *run);

/* io_checkpoint_probe - makes the folder and tries to write there, so that a long run need not learn at its
 *     first save that it cannot.  0, or -1 and EIO. */
TAPEGRAD_API int io_checkpoint_probe(Checkpoint *run);

/* io_checkpoint_resume - goes on from the newest file of the folder that is whole: 1; 0: there is none, and
 *     nothing is changed.  Files that are damaged, cut short, or no checkpoints are skipped
 *     (io_checkpoint_note names them, and tensor_on_error's function hears of each), and count as none of
 *     .keep.  Parts are loaded in the order in which they were named; where one fails, those before it are
 *     put back: all or nothing.  -1: EFORMAT: no file of some is whole, or one is of a newer version; EVALUE:
 *     parts or numbers are missing or unexpected; what the parts say.  The error names the file, the part and
 *     its entry.
 * io_checkpoint_load - the same from one file.  0, or -1: EIO, EFORMAT, ... */
TAPEGRAD_API int io_checkpoint_resume(Checkpoint *run);
TAPEGRAD_API int io_checkpoint_load(Checkpoint *run, const char *path);

/* io_checkpoint_path - the file that was written or read last; NULL: none yet.
 * io_checkpoint_note - what the last resume skipped, and why, a line a file; "" for nothing. */
TAPEGRAD_API const char *io_checkpoint_path(const Checkpoint *run);
TAPEGRAD_API const char *io_checkpoint_note(const Checkpoint *run);

TAPEGRAD_API void io_checkpoint_free(Checkpoint *run);

#ifdef __cplusplus
}
#endif
#endif
