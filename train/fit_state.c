/* fit_state.c - the state of nn_fit besides the net: history, the best epoch, checkpoints and logs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fit.h"

static const char op[] = "nn_fit";

/* ---- history --------------------------------------------------------------------------------- */

static int find_column(const NNHistory *h, const char *name)
{
    for (int i = 0; i < h->columns; i++)
        if (strcmp(h->name[i], name) == 0) return i;
    return -1;
}

double nn_history_get(const NNHistory *h, const char *name, int64_t epoch)
{
    const int column = h && name ? find_column(h, name) : -1;
    if (column >= 0 && epoch < 0) epoch += h->epochs;
    if (column < 0 || epoch < 0 || epoch >= h->epochs) return NAN;
    return h->value[epoch * h->columns + column];
}

void nn_history_free(NNHistory *h)
{
    if (!h) return;
    free(h->name), free(h->value);
    *h = (NNHistory){ .best_epoch = -1 };
}

/* Of each side's columns the first is a loss; the rate belongs to neither. */
static NNMode mode_of(const Fit *f, int column)
{
    const int metric = column % (1 + train_count_metrics(f->args.metrics)) - 1;
    if (f->args.mode != NN_AUTO) return f->args.mode;
    if (column == f->history.columns - 1) return NN_AUTO;
    return metric < 0 ? NN_MIN : nn_metric_mode(f->args.metrics[metric]);
}

/* ReduceLROnPlateau receives the watched number, and must expect the same direction. */
static int check_plateau(const Fit *f, const char *monitor)
{
    const OptimReduceLrOnPlateauArgs *plateau = optim_scheduler_plateau(f->args.scheduler);
    if (!plateau || (plateau->mode == SCHEDULER_MAX) == f->maximize) return 0;
    return tensor_fail(TENSOR_EVALUE, op, "scheduler: it waits for a %s \"%s\", and %s is better: .mode = %s",
                       f->maximize ? "lower" : "higher", monitor, f->maximize ? "higher" : "lower",
                       f->maximize ? "SCHEDULER_MAX" : "SCHEDULER_MIN");
}

int fit_columns(Fit *f)
{
    NNHistory *h = &f->history;
    const int metrics = train_count_metrics(f->args.metrics), sides = f->args.validate ? 2 : 1;
    h->name = calloc((size_t)(sides * (1 + metrics) + 1), sizeof *h->name);
    if (!h->name) return tensor_fail(TENSOR_ENOMEM, op, "out of memory");
    for (int side = 0; side < sides; side++)
        for (int i = -1; i < metrics; i++)
            snprintf(h->name[h->columns++], sizeof *h->name, "%s%s", side ? "val_" : "",
                     i < 0 ? "loss" : nn_metric_name(f->args.metrics[i]));
    strcpy(h->name[h->columns++], "lr");
    for (int i = 0; i < h->columns; i++)
        if (find_column(h, h->name[i]) != i || strpbrk(h->name[i], ",\n\r"))
            return tensor_fail(TENSOR_EVALUE, op,
                               "metrics: \"%s\" is there twice, or has a comma: give it another .name",
                               h->name[i]);
    const char *monitor = f->args.monitor ? f->args.monitor : f->args.validate ? "val_loss" : "loss";
    f->monitored = find_column(h, monitor);
    if (f->monitored < 0)
        return tensor_fail(TENSOR_EVALUE, op, "monitor: \"%s\" is none of the numbers (\"%s\", ...)", monitor,
                           h->name[0]);
    const NNMode mode = mode_of(f, f->monitored);
    if (mode == NN_AUTO)
        return tensor_fail(TENSOR_EVALUE, op,
                           "monitor: is a lower or a higher \"%s\" better?  Say .mode = NN_MIN or NN_MAX, "
                           "here or where the metric is made",
                           monitor);
    f->maximize = mode == NN_MAX;
    h->best = f->maximize ? -INFINITY : INFINITY;
    return check_plateau(f, monitor);
}

/* ---- losses that are not finite -------------------------------------------------------------- */

static const char *name_of(double value) { return isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

bool fit_heed(Fit *f)
{
    if (f->loss.behind < 0 || f->args.on_nan == NN_NAN_GO_ON || f->history.diverged)
        return f->history.diverged;
    snprintf(f->diverged, sizeof f->diverged, "the loss of epoch %lld, batch %lld of %lld is %s",
             (long long)f->at.epoch + 1, (long long)(f->batch - f->loss.behind),
             (long long)data_batches(f->at.train), name_of(f->loss.bad));
    return f->at.stop = f->history.diverged = true;
}

bool fit_heed_validation(Fit *f, double loss)
{
    if (isfinite(loss) || f->args.on_nan == NN_NAN_GO_ON) return false;
    snprintf(f->diverged, sizeof f->diverged, "the loss of the validation after epoch %lld is %s",
             (long long)f->at.epoch + 1, name_of(loss));
    return f->at.stop = f->history.diverged = true;
}

static double *row_of(const Fit *f)
{
    return f->history.value + (f->history.epochs - 1) * f->history.columns;
}

static void fill_row(Fit *f, double *row, double loss)
{
    *row++ = isnan(loss) ? NAN : loss; /* without the sign that 0 / 0 has */
    for (int i = 0; f->args.metrics && f->args.metrics[i]; i++)
        *row++ = nn_metric_compute(f->args.metrics[i]);
}

int fit_begin_row(Fit *f)
{
    NNHistory *h = &f->history;
    double *grown = realloc(h->value, (size_t)((h->epochs + 1) * h->columns) * sizeof *grown);
    if (!grown) return tensor_fail(TENSOR_ENOMEM, op, "out of memory");
    h->value = grown, h->epochs++;
    fill_row(f, row_of(f), loss_sum_read(&f->loss));
    return tensor_error_code() ? -1 : 0;
}

void fit_end_row(Fit *f, double val_loss)
{
    double *row = row_of(f);
    if (f->args.validate) fill_row(f, row + 1 + train_count_metrics(f->args.metrics), val_loss);
    row[f->history.columns - 1] = optim_lr(f->at.optimizer);
}

double fit_monitored(const Fit *f) { return row_of(f)[f->monitored]; }

int fit_watch_best(Fit *f)
{
    const double value = fit_monitored(f),
                 gain = f->maximize ? value - f->history.best : f->history.best - value;
    const bool better = gain > f->args.min_delta; /* NaN is not */
    f->waited = better ? 0 : f->waited + 1;
    if (!better) return 0;
    if (f->args.restore_best) {
        TensorDict copy = nn_dict_clone(nn_state_dict(f->at.module));
        if (copy.count < 0) return -1;
        nn_dict_free(f->best);
        f->best = copy;
    }
    f->history.best = value, f->history.best_epoch = f->at.epoch;
    return 0;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static TensorDict save_best(void *ctx) { return ((Fit *)ctx)->best; }

static int load_best(void *ctx, TensorDict dict)
{
    Fit *f = ctx;
    TensorDict copy = nn_dict_clone(dict);
    if (copy.count < 0) return -1;
    nn_dict_free(f->best);
    f->best = copy;
    return 0;
}

static int add_parts(Fit *f)
{
    char name[24];
    int status =
        io_checkpoint_int(f->run, "epoch", &f->at.epoch) | io_checkpoint_int(f->run, "batch", &f->batch) |
        io_checkpoint_int(f->run, "step", &f->at.step) | io_checkpoint_int(f->run, "waited", &f->waited) |
        io_checkpoint_int(f->run, "best_epoch", &f->history.best_epoch) |
        io_checkpoint_double(f->run, "best", &f->history.best) |
        io_checkpoint_double(f->run, "loss_sum", &f->loss.sum) |
        io_checkpoint_double(f->run, "loss_count", &f->loss.count);
    for (int i = 0; f->args.metrics && f->args.metrics[i] && !status; i++) {
        snprintf(name, sizeof name, "metric_%d", i);
        status = io_checkpoint_metric(f->run, name, f->args.metrics[i]);
    }
    if (!status && f->args.restore_best) status = io_checkpoint_part(f->run, "best", save_best, load_best, f);
    if (!status && f->args.parts) f->args.parts(f->run, f->args.ctx);
    return status || tensor_error_code() ? -1 : 0;
}

static FILE *output(const Fit *f) { return f->args.file ? f->args.file : stdout; }

static int resume(Fit *f)
{
    const int found = io_checkpoint_resume(f->run);
    f->history.resumed = found > 0;
    if (found > 0 && f->args.verbose > 0) {
        const bool done = f->at.epoch >= f->at.epochs;
        fprintf(output(f), "%sgoes on from %s: %s%lld, step %lld\n", io_checkpoint_note(f->run),
                io_checkpoint_path(f->run), done ? "nothing to do after epoch " : "epoch ",
                (long long)f->at.epoch + !done, (long long)f->at.step);
    }
    return found < 0 ? -1 : 0;
}

static int open_checkpoint(Fit *f)
{
    const NNFitArgs *a = &f->args;
    if (!a->checkpoint) return 0;
    f->run = io_checkpoint(a->checkpoint, .module = a->module, .optimizer = a->optimizer,
                           .scheduler = a->scheduler, .loader = a->train, .scaler = a->scaler,
                           .averaged = a->averaged, .keep = a->keep);
    return f->run && !add_parts(f) ? resume(f) : -1;
}

int fit_save(Fit *f)
{
    if (!f->run) return 0;
    loss_sum_read(&f->loss);
    return fit_heed(f) ? 0 : io_checkpoint_save(f->run);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static int open_csv(Fit *f)
{
    const NNHistory *h = &f->history;
    const size_t size = sizeof "epoch" + (size_t)h->columns * (sizeof *h->name + 1);
    char *columns = malloc(size);
    if (!columns) return tensor_fail(TENSOR_ENOMEM, op, "out of memory");
    size_t n = (size_t)snprintf(columns, size, "epoch");
    for (int i = 0; i < h->columns; i++) n += (size_t)snprintf(columns + n, size - n, ",%s", h->name[i]);
    f->csv = io_csv_log(f->args.csv, columns, .resume = h->resumed, .before = (double)f->at.epoch + 1);
    free(columns);
    return f->csv ? 0 : -1;
}

int fit_open_files(Fit *f)
{
    if (open_checkpoint(f) || (f->args.csv && open_csv(f))) return -1;
    if (!f->args.log_dir) return 0;
    f->board = io_summary_writer(f->args.log_dir, .purge_step = f->history.resumed ? f->at.epoch + 1 : -1);
    return f->board ? 0 : -1;
}

static int log_csv(Fit *f)
{
    const int columns = f->history.columns;
    double *values = malloc((size_t)(columns + 1) * sizeof *values);
    if (!values) return tensor_fail(TENSOR_ENOMEM, op, "out of memory");
    values[0] = (double)f->at.epoch + 1;
    memcpy(values + 1, row_of(f), (size_t)columns * sizeof *values);
    int status = io_csv_log_write(f->csv, values, columns + 1);
    free(values);
    return status;
}

/* TensorBoard shows loss/train and loss/val in one group. */
static int log_board(Fit *f)
{
    for (int i = 0; i < f->history.columns; i++) {
        char tag[80];
        const char *name = f->history.name[i];
        const bool val = i > 0 && strncmp(name, "val_", 4) == 0 && f->args.validate;
        snprintf(tag, sizeof tag, "%s/%s", name + 4 * val, val ? "val" : "train");
        if (io_summary_add_scalar(f->board, i == f->history.columns - 1 ? name : tag, row_of(f)[i],
                                  f->at.epoch + 1))
            return -1;
    }
    return io_summary_flush(f->board);
}

static void print_row(const Fit *f)
{
    fprintf(output(f), "epoch %lld/%lld", (long long)f->at.epoch + 1, (long long)f->at.epochs);
    for (int i = 0; i < f->history.columns - 1; i++)
        fprintf(output(f), "  %s %.4f", f->history.name[i], row_of(f)[i]);
    fprintf(output(f), "  %.1f s\n", train_now() - f->began);
    fflush(output(f));
}

int fit_log(Fit *f)
{
    if (f->args.verbose > 0) print_row(f);
    return (f->csv && log_csv(f)) || (f->board && log_board(f)) ? -1 : 0;
}

void fit_close(Fit *f)
{
    io_progress_free(f->bar), io_checkpoint_free(f->run), io_csv_log_free(f->csv), io_summary_free(f->board);
    loss_sum_end(&f->loss);
    nn_dict_free(f->best);
}
