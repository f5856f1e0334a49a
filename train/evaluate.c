/* evaluate.c - runs a net over one epoch of a loader, without gradients. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "train.h"

const NNEvaluateArgs nn_evaluate_defaults = { NN_EVALUATE_DEFAULTS };

/* ---- a batch --------------------------------------------------------------------------------- */

static Tensor *forward(const NNEvaluateArgs *args, const Batch *b, Tensor **output)
{
    if (args->step) return args->step(args->module, b, output, args->ctx);
    *output = nn_forward(args->module, b->x);
    return args->loss && *output ? nn_forward(args->loss, *output, b->y) : NULL;
}

int train_forward(const NNEvaluateArgs *args, const char *function, const Batch *b, Tensor **loss,
                  Tensor **output)
{
    const bool mixed = args->autocast != TENSOR_F32;
    TensorAutocast before = { .depth = 0 };
    *output = NULL;
    if (mixed) before = tensor_autocast_begin(args->autocast);
    *loss = forward(args, b, output);
    if (mixed) tensor_autocast_end(before);
    if (args->step && !*loss && !tensor_error_code())
        tensor_fail(TENSOR_EUSER, function, "the step gave no loss, without saying why");
    return tensor_error_code() ? -1 : 0;
}

int train_count_metrics(Metric *const *metrics)
{
    int n = 0;
    while (metrics && metrics[n]) n++;
    return n;
}

int train_update_metrics(Metric *const *metrics, const char *function, Tensor *output, Tensor *target)
{
    if (metrics && metrics[0] && !output)
        return tensor_fail(TENSOR_EUSER, function, "the step gave no output for the metrics");
    for (int i = 0; metrics && metrics[i]; i++)
        if (nn_metric_update(metrics[i], output, target)) return -1;
    return 0;
}

/* ---- the mean of losses ---------------------------------------------------------------------- */

LossSum loss_sum_begin(const char *function, const DataLoader *loader)
{
    return (LossSum){ .function = function, .behind = -1, .room = data_batches(loader) };
}

void loss_sum_end(LossSum *s)
{
    tensor_release(s->there);
    free(s->value), free(s->samples);
    *s = (LossSum){ .behind = -1 };
}

void loss_sum_reset(LossSum *s)
{
    s->sum = s->count = s->last = 0;
    s->waiting = 0, s->behind = -1;
}

static void add_value(LossSum *s, double loss, int64_t samples, int64_t behind)
{
    if (!isfinite(loss) && s->behind < 0) s->bad = loss, s->behind = behind;
    s->sum += loss * (double)samples, s->count += (double)samples;
    s->last = loss;
}

static int make_room(LossSum *s, const Tensor *loss)
{
    if (!s->value) s->value = malloc((size_t)s->room * sizeof *s->value);
    if (!s->samples) s->samples = malloc((size_t)s->room * sizeof *s->samples);
    if (!s->value || !s->samples) return tensor_fail(TENSOR_ENOMEM, s->function, "out of memory");
    if (s->there) return 0;
    return tensor_assign(&s->there,
                         tensor_to_device(tensor_empty(SHAPE(s->room), TENSOR_F64), tensor_device(loss)));
}

/* One kernel, and no wait. */
static int add_there(LossSum *s, Tensor *loss, int64_t samples)
{
    if (s->waiting == s->room) loss_sum_read(s);
    TensorScope scope = tensor_scope_open();
    const int status = make_room(s, loss) || !tensor_copy_(tensor_narrow(s->there, 0, s->waiting, 1),
                                                           tensor_detach(tensor_reshape(loss, SHAPE(1))))
                           ? -1
                           : 0;
    tensor_scope_close(scope);
    if (!status) s->samples[s->waiting++] = samples;
    return status;
}

int loss_sum_add(LossSum *s, Tensor *loss, int64_t samples)
{
    if (!loss) return tensor_error_code() ? -1 : 0;
    if (tensor_numel(loss) != 1)
        return tensor_fail(TENSOR_ESHAPE, s->function,
                           "the loss of a batch has %lld numbers: wants one, their mean",
                           (long long)tensor_numel(loss));
    if (strcmp(tensor_device(loss), "cpu") != 0) return add_there(s, loss, samples);
    add_value(s, tensor_item(loss), samples, 0);
    return tensor_error_code() ? -1 : 0;
}

double loss_sum_read(LossSum *s)
{
    if (s->waiting) {
        TensorScope scope = tensor_scope_open();
        if (!tensor_copy_to(tensor_narrow(s->there, 0, 0, s->waiting), s->value,
                            (size_t)s->waiting * sizeof *s->value))
            for (int64_t i = 0; i < s->waiting; i++)
                add_value(s, s->value[i], s->samples[i], s->waiting - 1 - i);
        tensor_scope_close(scope);
        s->waiting = 0;
    }
    return s->count > 0 ? s->sum / s->count : 0;
}

/* ---- over an epoch --------------------------------------------------------------------------- */

static int check(const NNEvaluateArgs *args, const char *function)
{
    if (tensor_error_code()) return -1;
    if (!args->module || !args->loader)
        return tensor_fail(TENSOR_ENULL, function, "the %s is NULL", args->module ? "loader" : "module");
    if (args->loss && args->step)
        return tensor_fail(TENSOR_EVALUE, function, "a loss and .step are there: wants one of them");
    if (data_batches(args->loader) > 0) return 0;
    return tensor_fail(TENSOR_EVALUE, function, "the loader gives no batches: %lld samples",
                       (long long)data_samples(args->loader));
}

/* each(ctx, batch, loss, output), in a scope of its own, for all batches. */
static int over_epoch(const NNEvaluateArgs *args, const char *function,
                      int (*each)(void *ctx, const Batch *b, Tensor *loss, Tensor *output), void *ctx)
{
    bool *modes = check(args, function) ? NULL : nn_modes(args->module);
    if (!modes) return -1;
    nn_eval(args->module);
    const bool was = tensor_set_grad_enabled(false);
    int status = 0;
    data_reset(args->loader);
    for (Batch *b; !status && (b = data_next(args->loader)) != NULL;) {
        Tensor *loss, *output;
        TensorScope scope = tensor_scope_open();
        status = train_forward(args, function, b, &loss, &output) || each(ctx, b, loss, output) ? -1 : 0;
        tensor_scope_close(scope);
    }
    if (status) data_reset(args->loader);
    tensor_set_grad_enabled(was);
    nn_restore_modes(args->module, modes);
    return status || tensor_error_code() ? -1 : 0;
}

typedef struct Evaluation {
    Metric *const *metrics;
    LossSum loss;
} Evaluation;

static int evaluate_batch(void *ctx, const Batch *b, Tensor *loss, Tensor *output)
{
    Evaluation *e = ctx;
    return loss_sum_add(&e->loss, loss, b->size) ||
           train_update_metrics(e->metrics, e->loss.function, output, b->y);
}

double nn_evaluate_args(NNEvaluateArgs args)
{
    Evaluation e = { .metrics = args.metrics };
    const bool good = !check(&args, "nn_evaluate"); /* a refused call does not change the metrics */
    if (good) e.loss = loss_sum_begin("nn_evaluate", args.loader);
    for (int i = 0; good && args.metrics && args.metrics[i]; i++) nn_metric_reset(args.metrics[i]);
    int status = over_epoch(&args, "nn_evaluate", evaluate_batch, &e);
    const double mean = loss_sum_read(&e.loss);
    loss_sum_end(&e.loss);
    nn_free(args.loss);
    return status || tensor_error_code() ? NAN : mean;
}

/* ---- predictions ----------------------------------------------------------------------------- */

typedef struct Outputs {
    Tensor **item;
    int count, capacity;
} Outputs;

static int keep_output(void *ctx, const Batch *b, Tensor *loss, Tensor *output)
{
    Outputs *o = ctx;
    (void)b, (void)loss;
    if (!output) return tensor_fail(TENSOR_EUSER, "nn_predict", "the step gave no output");
    if (o->count == o->capacity) {
        int more = o->capacity ? 2 * o->capacity : 64;
        Tensor **grown = realloc(o->item, (size_t)more * sizeof *grown);
        if (!grown) return tensor_fail(TENSOR_ENOMEM, "nn_predict", "out of memory");
        o->item = grown, o->capacity = more;
    }
    o->item[o->count++] = tensor_retain(output);
    return 0;
}

Tensor *nn_predict_args(NNEvaluateArgs args)
{
    Outputs o = { 0 };
    Tensor *all = NULL;
    if ((args.loss || args.metrics) && !tensor_error_code())
        tensor_fail(TENSOR_EVALUE, "nn_predict", "a loss or .metrics: nn_evaluate has a use for them");
    if (!over_epoch(&args, "nn_predict", keep_output, &o)) {
        const char *outer = tensor_compose_begin("nn_predict");
        all = tensor_cat(TENSOR_LIST(o.item, o.count), 0);
        tensor_compose_end(outer);
    }
    for (int i = 0; i < o.count; i++) tensor_release(o.item[i]);
    free(o.item);
    nn_free(args.loss);
    return all;
}
