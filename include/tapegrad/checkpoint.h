/* checkpoint.h - resumes a killed run as if it had not been interrupted.
 *
 *     int64_t step = 0;
 *     Checkpoint *run = io_checkpoint("runs/mnist", .module = net, .optimizer = opt, .loader = train);
 *     io_checkpoint_int(run, "step", &step);
 *     io_checkpoint_resume(run);                              // continues the last run, if there is one
 *     for (Batch *b; step < steps && !tensor_error();) {
 *         if (!(b = data_next(train))) continue;             // the next call begins another epoch
 *         ...
 *         if (++step % 100 == 0) io_checkpoint_save(run);
 *     }
 *     io_checkpoint_free(run);
 *
 * A file holds the state of a run: parameters and buffers, the states of optimizer, schedule and loader, the
 * thread's generator, the program's own numbers, and any further part that you name.  If the run depends on
 * nothing else, the resumed one ends with the bits of an uninterrupted one.
 *
 * Files are folder/checkpoint-00000001.safetensors and so on.  Each holds tensors by "part.name"
 * ("model.0.weight", "optimizer.state.0.exp_avg"), metadata (format, version, names of the parts), and a
 * checksum over all of it.  A file appears whole or not at all: a process killed at any instant leaves the
 * earlier files, and a full disk leaves no temporary file.  Let one process at a time write into a folder:
 * two would both write whole files, but their numbers would not tell which is newest. */
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
    const char *folder;      /* created when first needed */
    Module *module;          /* "model" */
    Optimizer *optimizer;    /* "optimizer" */
    Scheduler *scheduler;    /* "scheduler" */
    DataLoader *loader;      /* "loader" */
    GradScaler *scaler;      /* "scaler" */
    AveragedModel *averaged; /* "averaged" */
    int keep;                /* number of files: a save removes older ones with its prefix */
    TensorFromDefaults from_defaults;
} IoCheckpointArgs;
#define IO_CHECKPOINT_DEFAULTS .keep = 3, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoCheckpointArgs io_checkpoint_defaults;

/* io_checkpoint("runs/mnist", .module = net, .optimizer = opt, .scheduler = s, .loader = train) - saves the
 * parts that are not NULL, and as "rng" the default generator of the saving thread.  It borrows the parts:
 * they must outlive the checkpoint.  While a net holds its averages (.averaged, optim_averaged_swap), its own
 * values are saved and loaded.  NULL: ENULL, EVALUE (keep below 1), ENOMEM. */
#define io_checkpoint(...) \
    TENSOR_CALL_(io_checkpoint_args, IoCheckpointArgs, IO_CHECKPOINT_DEFAULTS, .folder = __VA_ARGS__)
TAPEGRAD_API Checkpoint *io_checkpoint_args(IoCheckpointArgs args);

/* io_checkpoint_part - adds a part by its functions: save(ctx) returns its state as a dict, valid until the
 *     next call; load(ctx, dict) takes such a state, all or nothing: 0, or -1 and an error.  EVALUE: the name
 *     is empty, taken, or contains a dot.
 * io_checkpoint_module, _optimizer, _scheduler, _loader, _scaler, _averaged, _metric, _generator - add a part
 *     of that type.
 * io_checkpoint_int, io_checkpoint_double - add a variable of the program, which a save reads and a resume
 *     sets: the tensor "scalars.name". */
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

/* io_checkpoint_save - writes the next file, then removes the oldest beyond .keep.  Call it between two
 * steps: gradients are not saved.  0; or -1, with the files unchanged: EIO (the disk is full, ...).  While an
 * error is recorded it does nothing and returns -1. */
TAPEGRAD_API int io_checkpoint_save(Checkpoint *run);

/* io_checkpoint_probe - creates the folder and tests that it is writable, before a long run starts.  0, or -1
 *     and EIO. */
TAPEGRAD_API int io_checkpoint_probe(Checkpoint *run);

/* io_checkpoint_resume - loads the newest whole file of the folder: 1; or 0, with nothing changed, if the
 *     folder has no file.  It skips files that are damaged, cut short, or no checkpoints: io_checkpoint_note
 *     names them, tensor_on_error's function is called for each, and .keep does not count them.  Parts are
 *     loaded in the order they were added; if one fails, those before it are restored: all or nothing.
 *     -1: EFORMAT: there are files but none is whole, or one has a newer version; EVALUE: parts or variables
 *     are missing or unexpected; and the errors of the parts.  The error names the file, the part and its
 *     entry.
 * io_checkpoint_load - the same from one file.  0, or -1: EIO, EFORMAT, ... */
TAPEGRAD_API int io_checkpoint_resume(Checkpoint *run);
TAPEGRAD_API int io_checkpoint_load(Checkpoint *run, const char *path);

/* io_checkpoint_path - the file written or read last; NULL: none yet.
 * io_checkpoint_note - the files that the last resume skipped, one line each with the reason; "": none. */
TAPEGRAD_API const char *io_checkpoint_path(const Checkpoint *run);
TAPEGRAD_API const char *io_checkpoint_note(const Checkpoint *run);

TAPEGRAD_API void io_checkpoint_free(Checkpoint *run);

#ifdef __cplusplus
}
#endif
#endif
