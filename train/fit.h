/* fit.h - a run of nn_fit. */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "hidden.h"
#include "train.h"

#if defined(__GNUC__)
HIDDEN_BEGIN
#endif

typedef struct Fit {
    NNFit at; /* what callbacks see */
    NNFitArgs args;
    NNEvaluateArgs forward;
    LossSum loss;
    int64_t batch;   /* batches done of this epoch */
    int accumulated; /* of them since the last step */
    int64_t waited;  /* epochs since the best one */
    int monitored;   /* which column */
    bool maximize;
    TensorDict best; /* restore_best */
    NNHistory history;
    double began; /* the epoch, for the line about it */
    bool interruptible;
    char diverged[120]; /* which loss was not finite */
    Progress *bar;
    Checkpoint *run;
    CsvLog *csv;
    SummaryWriter *board;
} Fit;

/* fit_check - refuses what cannot be trained, or would do nothing.
 * fit_columns - names the columns of the history and finds the one to watch.
 * fit_open_files - the checkpoint, from which the run goes on, and the logs.
 * fit_heed - has a loss been read that is not finite?  The run ends then, unless it is to go on.
 * fit_save - a checkpoint, if there are to be any.
 * fit_begin_row, fit_end_row - a row of the history, its numbers of training and then those of
 *     validation; fit_monitored - its number that is watched; fit_log - writes it to the
 *     logs, and the line about the epoch.
 * fit_watch_best - keeps count of epochs that were no better, and a copy of the best one's state.
 * fit_close - frees what all of them made. */
int fit_check(const NNFitArgs *a);
int fit_columns(Fit *f);
int fit_open_files(Fit *f);
bool fit_heed(Fit *f);
bool fit_heed_validation(Fit *f, double loss);
int fit_save(Fit *f);
int fit_begin_row(Fit *f);
void fit_end_row(Fit *f, double val_loss);
int fit_log(Fit *f);
int fit_watch_best(Fit *f);
double fit_monitored(const Fit *f);
void fit_close(Fit *f);

#if defined(__GNUC__)
HIDDEN_END
#endif
#endif
