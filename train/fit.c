/* fit.c - the loop of nn_fit.
 *
 * Checkpoints are written, and interrupted runs end, only between two steps of the optimizer. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "fit.h"

const NNFitArgs nn_fit_defaults = { NN_FIT_DEFAULTS };

static const char op[] = "nn_fit";

/* ---- interrupts ------------------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* Only if the program has no handler of its own; a second Ctrl-C gets the default action.  Blocking calls
 * in datasets and callbacks continue. */
static bool take_interrupts(const Fit *f, struct sigaction *before)
{
    struct sigaction mine = { .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART };
    if (!f->args.handle_interrupt || sigaction(SIGINT, NULL, before) || before->sa_handler != SIG_DFL)
        return false;
    interrupted = 0;
    return sigaction(SIGINT, &mine, NULL) == 0;
}

static void heed_interrupt(Fit *f)
{
    if (f->interruptible && interrupted) f->at.stop = f->history.interrupted = true;
}

/* ---- a batch --------------------------------------------------------------------------------- */

/* On the graph, so that it counts in the loss that is told. */
static Tensor *add_penalty(const Fit *f, Tensor *loss)
{
    if (f->args.l1 == 0 && f->args.l2 == 0) return loss;
    const TensorList parameters = nn_parameters(f->at.module);
    for (int i = 0; i < parameters.count && loss; i++) {
        Tensor *w = parameters.item[i];
        if (tensor_ndim(w) < 2 || !tensor_requires_grad(w)) continue;
        if (f->args.l1) loss = tensor_add(loss, tensor_mul_scalar(tensor_sum(tensor_abs(w)), f->args.l1));
        if (f->args.l2) loss = tensor_add(loss, tensor_mul_scalar(tensor_sum(tensor_square(w)), f->args.l2));
    }
    return loss;
}

static int clip(const Fit *f)
{
    const double norm = f->args.clip_grad_norm, value = f->args.clip_grad_value;
    if (norm == 0 && value == 0) return 0;
    if (f->args.scaler && optim_scaler_unscale_(f->args.scaler, f->at.optimizer)) return -1;
    TensorScope scope = tensor_scope_open();
    const TensorList parameters = nn_parameters(f->at.module); /* callbacks may have added names */
    if (norm) nn_clip_grad_norm_(parameters, norm);
    if (value) nn_clip_grad_value_(parameters, value);
    tensor_scope_close(scope);
    return tensor_error_code() ? -1 : 0;
}

static int step(Fit *f)
{
    GradScaler *scaler = f->args.scaler;
    if (clip(f)) return -1;
    if (scaler ? optim_scaler_step(scaler, f->at.optimizer) || optim_scaler_update(scaler)
               : optim_step(f->at.optimizer))
        return -1;
    f->accumulated = 0, f->at.step++;
    if (f->args.averaged && optim_averaged_update(f->args.averaged)) return -1;
    if (f->args.scheduler && f->args.schedule_steps) return optim_scheduler_step(f->args.scheduler);
    return 0;
}

/* What comes back through the graph: the loss, scaled for a mean over the batches of a step, which are fewer
 * at the end of an epoch, and for f16. */
static int backward(Fit *f, Tensor *loss)
{
    const int64_t left = data_batches(f->at.train) - (f->batch - f->accumulated);
    const int64_t together = left < f->args.accumulate ? left : f->args.accumulate;
    if (together > 1) loss = tensor_mul_scalar(loss, 1.0 / (double)together);
    if (f->args.scaler) loss = optim_scaler_scale(f->args.scaler, loss);
    if (f->accumulated == 1 && optim_zero_grad(f->at.optimizer)) return -1;
    return tensor_backward(loss);
}

static int train_batch(Fit *f, const Batch *b)
{
    Tensor *loss, *output;
    TensorScope scope = tensor_scope_open();
    int status = train_forward(&f->forward, op, b, &loss, &output);
    if (!status) loss = add_penalty(f, loss);
    f->batch++, f->accumulated++;
    if (!status) status = loss_sum_add(&f->loss, loss, b->size);
    if (!status && !fit_heed(f))
        status = backward(f, loss) || train_update_metrics(f->args.metrics, op, output, b->y) ? -1 : 0;
    tensor_scope_close(scope);
    return status;
}

/* ---- telling --------------------------------------------------------------------------------- */

static int tell(Fit *f, NNEvent event)
{
    for (const NNCallback *c = f->args.callbacks; c && c->fn; c++) {
        const int status = c->fn(&f->at, event, c->ctx);
        if (status && !tensor_error_code())
            tensor_fail(TENSOR_EUSER, op, "a callback failed without saying why");
        if (tensor_error_code()) return -1;
    }
    return 0;
}

double nn_fit_loss(NNFit *fit) { return fit ? loss_sum_read(&((Fit *)fit)->loss) : NAN; }

double nn_fit_batch_loss(NNFit *fit)
{
    if (fit) loss_sum_read(&((Fit *)fit)->loss);
    return fit ? ((Fit *)fit)->loss.last : NAN;
}

static void show(Fit *f)
{
    if (io_progress_due(f->bar)) io_progress_update(f->bar, 1, "loss %.4f", loss_sum_read(&f->loss));
    else io_progress_update(f->bar, 1, NULL);
}

static void open_bar(Fit *f)
{
    char desc[48];
    if (f->args.verbose < 1 || !isatty(STDERR_FILENO)) return;
    snprintf(desc, sizeof desc, "epoch %lld/%lld", (long long)f->at.epoch + 1, (long long)f->at.epochs);
    f->bar = io_progress(data_batches(f->at.train), .desc = desc, .unit = "batch", .leave = false);
    io_progress_update(f->bar, f->batch, NULL);
}

/* ---- an epoch -------------------------------------------------------------------------------- */

/* After a batch: a step, if it is time for one, and what may happen between steps only. */
static int after_batch(Fit *f, const Batch *b)
{
    const bool steps = f->accumulated == f->args.accumulate;
    if (f->history.diverged) return 0;
    if (steps && step(f)) return -1;
    show(f);
    f->at.batch = b;
    if (tell(f, NN_BATCH_END)) return -1;
    f->at.batch = NULL;
    heed_interrupt(f), fit_heed(f);
    const bool due = f->args.save_every && f->at.step % f->args.save_every == 0;
    return steps && (due || f->at.stop) ? fit_save(f) : 0;
}

static void begin_epoch(Fit *f)
{
    for (int i = 0; f->args.metrics && f->args.metrics[i]; i++) nn_metric_reset(f->args.metrics[i]);
    loss_sum_reset(&f->loss);
}

static bool stops_here(const Fit *f)
{
    return f->history.diverged || (f->at.stop && !f->accumulated && f->batch < data_batches(f->at.train));
}

/* *over: the epoch ended without being stopped.  Its remaining batches make a step. */
static int train_epoch(Fit *f, bool *over)
{
    int status = 0;
    if (f->batch == 0) begin_epoch(f); /* else it goes on in the middle */
    for (*over = false; !status && !*over && !stops_here(f);) {
        Batch *b = data_next(f->at.train);
        *over = !b;
        status = tensor_error_code() || (b && (train_batch(f, b) || after_batch(f, b))) ? -1 : 0;
    }
    return !status && f->accumulated && !f->history.diverged ? step(f) : status;
}

static int validate(Fit *f, double *loss)
{
    *loss = 0;
    if (!f->args.validate) return 0;
    NNEvaluateArgs args = f->forward;
    args.loader = f->args.validate, args.loss = nn_retain(args.loss);
    *loss = nn_evaluate_args(args);
    return tensor_error_code() ? -1 : 0;
}

static int schedule(Fit *f)
{
    if (!f->args.scheduler || f->args.schedule_steps) return 0;
    return optim_scheduler_step_metric(f->args.scheduler, fit_monitored(f));
}

static int end_epoch(Fit *f)
{
    double val_loss;
    loss_sum_read(&f->loss);
    if (fit_heed(f)) return tensor_error_code() ? -1 : 0;
    if (fit_begin_row(f) || validate(f, &val_loss)) return -1; /* which resets the metrics */
    fit_end_row(f, val_loss), fit_heed_validation(f, val_loss);
    if (fit_watch_best(f) || tell(f, NN_EPOCH_END) || fit_log(f) || schedule(f)) return -1;
    heed_interrupt(f);
    f->at.epoch++, f->batch = 0;
    return f->history.diverged ? 0 : fit_save(f);
}

static int run_epoch(Fit *f)
{
    bool over;
    f->began = train_now();
    if (tell(f, NN_EPOCH_BEGIN)) return -1;
    open_bar(f);
    int status = train_epoch(f, &over);
    io_progress_free(f->bar), f->bar = NULL;
    return status || !over ? status : end_epoch(f);
}

/* ---- the run --------------------------------------------------------------------------------- */

static bool is_over(Fit *f)
{
    const bool early = f->args.patience && f->waited >= f->args.patience;
    f->history.stopped_early |= early && f->at.epoch < f->at.epochs;
    return early || f->at.stop || f->at.epoch >= f->at.epochs;
}

static int run(Fit *f)
{
    struct sigaction before;
    if (!f->history.resumed) data_reset(f->at.train);
    if (f->run && !is_over(f) && io_checkpoint_probe(f->run)) return -1;
    f->interruptible = take_interrupts(f, &before);
    int status = tell(f, NN_FIT_BEGIN);
    while (!status && !is_over(f)) status = run_epoch(f);
    const bool fails = f->history.diverged && f->args.on_nan == NN_NAN_FAIL;
    if (!status && !fails) status = tell(f, NN_FIT_END);
    heed_interrupt(f);
    if (f->interruptible) sigaction(SIGINT, &before, NULL);
    if (!status && f->args.restore_best && f->best.count) status = nn_load_state_dict(f->at.module, f->best);
    if (status || !fails) return status;
    return tensor_fail(TENSOR_EVALUE, op,
                       "%s: .on_nan = NN_NAN_STOP ends there without an error, and "
                       "tensor_set_detect_anomaly(true) names the op",
                       f->diverged);
}

static Fit begin(const NNFitArgs *a)
{
    return (Fit){ .at = { .module = a->module,
                          .optimizer = a->optimizer,
                          .train = a->train,
                          .validate = a->validate,
                          .epochs = a->epochs },
                  .args = *a,
                  .forward = { .module = a->module,
                               .loss = a->loss,
                               .metrics = a->metrics,
                               .step = a->step,
                               .ctx = a->ctx,
                               .autocast = a->autocast },
                  .loss = loss_sum_begin(op, a->train),
                  .history = { .best_epoch = -1 } };
}

int nn_fit_args(NNFitArgs args)
{
    if (args.history) *args.history = (NNHistory){ .best_epoch = -1 };
    if (TENSOR_CHECK_OPTIONS(op, args, nn_fit_defaults) || fit_check(&args)) {
        nn_free(args.loss);
        return -1;
    }
    Fit f = begin(&args);
    f.at.history = &f.history;
    nn_train(args.module, true);
    int status = fit_columns(&f) || fit_open_files(&f) || run(&f) ? -1 : 0;
    f.history.steps = f.at.step;
    fit_close(&f);
    if (args.history) *args.history = f.history;
    else nn_history_free(&f.history);
    nn_free(args.loss);
    return status;
}
