/* test_train_refusals.c - what checkpoints, nn_fit, nn_evaluate, nn_predict and metrics refuse, each limit
 * from both sides (answers.h). */
#include <math.h>
#include <tapegrad/checkpoint.h>
#include <tapegrad/train.h>
#include "answers.h"
#include "setting.h"

/* ---- checkpoints ------------------------------------------------------------------------------ */

static TensorDict saved; /* of the part */
static bool save_fails, load_fails;

static TensorDict save(void *ctx)
{
    (void)ctx;
    return save_fails ? (TensorDict){ .count = -1 } : saved;
}

static int load(void *ctx, TensorDict dict) { return (void)ctx, (void)dict, load_fails ? -1 : 0; }

static Checkpoint *run_with(const char *part, int64_t *i, double *d)
{
    Checkpoint *run = io_checkpoint(scratch_);
    if (part) io_checkpoint_part(run, part, save, load, &saved);
    if (i) io_checkpoint_int(run, "i", i);
    if (d) io_checkpoint_double(run, "d", d);
    return run;
}

static void parts(void)
{
    Checkpoint *run = io_checkpoint(scratch_), *kept;
    int64_t i = 1;
    double d = 2;
    ANSWER(io_checkpoint(NULL));
    ANSWER(io_checkpoint(scratch_, .keep = 0));
    ANSWER(io_checkpoint_free(kept = io_checkpoint(scratch_, .keep = 1)));
    ANSWER(io_checkpoint_part(NULL, "a", save, load, NULL));
    ANSWER(io_checkpoint_part(run, NULL, save, load, &i));
    ANSWER(io_checkpoint_part(run, "", save, load, &i));
    ANSWER(io_checkpoint_part(run, "a.b", save, load, &i));
    ANSWER(io_checkpoint_part(run, "a", NULL, load, &i));
    ANSWER(io_checkpoint_part(run, "a", save, NULL, &i));
    ANSWER(io_checkpoint_part(run, "a", save, load, NULL));
    ANSWER(io_checkpoint_part(run, "a", save, load, &i));
    ANSWER(io_checkpoint_part(run, "rng", save, load, &i));
    ANSWER(io_checkpoint_part(run, "scalars", save, load, &i));
    ANSWER(io_checkpoint_module(run, "net", NULL));
    ANSWER(io_checkpoint_int(run, "i", NULL));
    ANSWER(io_checkpoint_double(run, "d", NULL));
    ANSWER(io_checkpoint_int(run, NULL, &i));
    ANSWER(io_checkpoint_int(run, "a.b", &i));
    ANSWER(io_checkpoint_int(run, "i", &i));
    ANSWER(io_checkpoint_double(run, "i", &d));
    ANSWER(io_checkpoint_save(NULL));
    ANSWER(io_checkpoint_resume(NULL));
    ANSWER(io_checkpoint_load(run, NULL));
    ANSWER(io_checkpoint_load(run, scratch("none.safetensors")));
    io_checkpoint_free(run);
}

/* Saves a part and two numbers, and loads them as other ones. */
static void loaded(const char *part, bool with_i, bool with_d)
{
    int64_t i = 1;
    double d = 2;
    Checkpoint *first = run_with("a", &i, NULL),
               *second = run_with(part, with_i ? &i : NULL, with_d ? &d : NULL);
    save_fails = load_fails = false;
    io_checkpoint_save(first);
    const char *path = io_checkpoint_path(first);
    io_checkpoint_load(second, path ? path : "");
    io_checkpoint_free(first), io_checkpoint_free(second);
}

/* Saves a number as an integer, and loads it as the other kind, or the other way round. */
static void retyped(bool as_double)
{
    Checkpoint *first = io_checkpoint(scratch_), *second = io_checkpoint(scratch_);
    int64_t i = 1;
    double d = 2;
    io_checkpoint_int(as_double ? first : second, "n", &i);
    io_checkpoint_double(as_double ? second : first, "n", &d);
    io_checkpoint_save(first);
    io_checkpoint_load(second, io_checkpoint_path(first));
    io_checkpoint_free(first), io_checkpoint_free(second);
}

static void failing(bool in_save, bool before_load, bool in_load)
{
    Checkpoint *run = run_with("a", NULL, NULL);
    save_fails = in_save, load_fails = false;
    if (!io_checkpoint_save(run)) {
        save_fails = before_load, load_fails = in_load;
        io_checkpoint_load(run, io_checkpoint_path(run));
    }
    io_checkpoint_free(run);
}

/* A file of another format or version: NULL takes the text away. */
static void rewritten(const char *key, const char *text, bool checksum)
{
    Checkpoint *run = run_with("a", NULL, NULL);
    IoMetadata m = { 0 }, other = { 0 };
    save_fails = load_fails = false;
    io_checkpoint_save(run);
    TensorDict d = io_load_safetensors(io_checkpoint_path(run), .metadata = &m);
    for (int i = 0; i < m.count; i++)
        if (strcmp(m.item[i].name, key) != 0 && strcmp(m.item[i].name, "crc32c") != 0)
            io_metadata_set(&other, m.item[i].name, m.item[i].text);
    if (text) io_metadata_set(&other, key, text);
    io_save_safetensors(scratch("other.safetensors"), d, .metadata = other, .checksum = checksum);
    io_checkpoint_load(run, scratch("other.safetensors"));
    nn_dict_free(d);
    io_metadata_free(m), io_metadata_free(other);
    io_checkpoint_free(run);
}

static void none_is_whole(void)
{
    Checkpoint *run = run_with("a", NULL, NULL);
    scratch_empty(NULL), tensor_scope_close(test_scope_);
    put_file("checkpoint-00000001.safetensors", "", 0);
    io_checkpoint_resume(run);
    io_checkpoint_free(run);
}

static void generator(Tensor *state, bool named)
{
    Checkpoint *first = run_with(NULL, NULL, NULL), *second = run_with(NULL, NULL, NULL);
    TensorGenerator *g = tensor_generator(1);
    io_checkpoint_part(first, "g", save, load, &saved);
    io_checkpoint_generator(second, "g", g);
    saved = (TensorDict){ 0 };
    if (state) nn_dict_set(&saved, "state", state);
    if (named) nn_dict_set(&saved, "more", tensor_ones(SHAPE(1), TENSOR_U8));
    save_fails = load_fails = false;
    io_checkpoint_save(first);
    io_checkpoint_load(second, io_checkpoint_path(first));
    nn_dict_free(saved), saved = (TensorDict){ 0 };
    io_checkpoint_free(first), io_checkpoint_free(second), tensor_generator_free(g);
}

static void files(void)
{
    ANSWER(loaded("a", true, false));
    ANSWER(loaded("b", true, false));
    ANSWER(loaded(NULL, true, false));
    ANSWER(loaded("a", false, false));
    ANSWER(loaded("a", true, true));
    ANSWER(retyped(false));
    ANSWER(retyped(true));
    ANSWER(failing(true, false, false));
    ANSWER(failing(false, true, true)); /* nothing was loaded, and nothing is put back */
    ANSWER(failing(false, false, true));
    ANSWER(failing(false, false, false));
    ANSWER(rewritten("format", NULL, true));
    ANSWER(rewritten("format", "another", true));
    ANSWER(rewritten("version", NULL, true));
    ANSWER(rewritten("version", "x", true));
    ANSWER(rewritten("version", "1x", true));
    ANSWER(rewritten("version", "0", true));
    ANSWER(rewritten("version", "1", true));
    ANSWER(rewritten("version", "2", true));
    ANSWER(rewritten("version", "1", false));
    ANSWER(none_is_whole());
    ANSWER(generator(NULL, false));
    ANSWER(generator(tensor_get_rng_state(), true));
    ANSWER(generator(tensor_ones(SHAPE(1), TENSOR_U8), false));
    ANSWER(generator(tensor_get_rng_state(), false));
}

/* ---- training --------------------------------------------------------------------------------- */

static Setting s;

static Tensor *no_loss(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    return (void)net, (void)b, (void)output, (void)ctx, NULL;
}

static Tensor *two_losses(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    (void)output, (void)ctx;
    return tensor_narrow(nn_forward(net, b->x), 0, 0, 2);
}

static Tensor *no_output(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    (void)output, (void)ctx;
    return tensor_cross_entropy(nn_forward(net, b->x), b->y);
}

static Tensor *not_a_number(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    return tensor_mul_scalar(no_output(net, b, output, ctx), NAN);
}

static int stops(NNFit *at, NNEvent event, void *ctx) { return (void)at, (void)event, (void)ctx, -1; }

static DataLoader *empty(void)
{
    return data_loader(data_tensors(tensor_ones(SHAPE(1, 5), TENSOR_F32), NULL), .batch_size = 2,
                       .drop_last = true);
}

static void evaluating(void)
{
    DataLoader *none = empty();
    Metric *accuracy = nn_metric_accuracy();
    ANSWER(nn_evaluate(NULL, s.test, NULL));
    ANSWER(nn_evaluate(s.net, NULL, NULL));
    ANSWER(nn_evaluate(s.net, none, NULL));
    ANSWER(nn_evaluate(s.net, s.test, ce(), .step = no_loss));
    ANSWER(nn_evaluate(s.net, s.test, NULL, .step = no_loss));
    ANSWER(nn_evaluate(s.net, s.test, NULL, .step = two_losses));
    ANSWER(nn_evaluate(s.net, s.test, NULL, .step = no_output, .metrics = NN_METRICS(accuracy)));
    ANSWER(nn_evaluate(s.net, s.test, ce(), .metrics = NN_METRICS(accuracy)));
    ANSWER(nn_predict(s.net, s.test, ce()));
    ANSWER(nn_predict(s.net, s.test, .metrics = NN_METRICS(accuracy)));
    ANSWER(nn_predict(s.net, s.test, .step = no_output));
    ANSWER(nn_predict(s.net, none));
    ANSWER(nn_predict(s.net, s.test));
    data_loader_free(none), nn_metric_free(accuracy);
}

#define FIT(...) nn_fit(s.net, s.train, __VA_ARGS__, .verbose = 0)

static void fitting(void)
{
    DataLoader *none = empty();
    Metric *mean = nn_metric_mean("mean"), *accuracy = nn_metric_accuracy(), *again = nn_metric_accuracy();
    Optimizer *lbfgs = optim_lbfgs(nn_parameters(s.net)), *other = optim_sgd(TENSORS(LEAF(1)), 0.1);
    Scheduler *low = optim_reduce_lr_on_plateau(s.opt),
              *high = optim_reduce_lr_on_plateau(s.opt, .mode = SCHEDULER_MAX);
    const NNCallback callbacks[] = { { .fn = stops }, { .fn = NULL } };
    ANSWER(nn_fit(NULL, s.train, ce(), s.opt, 1, .verbose = 0));
    ANSWER(nn_fit(s.net, NULL, ce(), s.opt, 1, .verbose = 0));
    ANSWER(FIT(NULL, s.opt, 1));
    ANSWER(FIT(ce(), NULL, 1));
    ANSWER(FIT(ce(), s.opt, -1));
    ANSWER(FIT(ce(), s.opt, 0));
    ANSWER(FIT(ce(), lbfgs, 1));
    ANSWER(FIT(ce(), other, 1));
    ANSWER(FIT(ce(), s.opt, 1, .step = no_loss));
    ANSWER(FIT(NULL, s.opt, 1, .step = no_loss));
    ANSWER(FIT(NULL, s.opt, 1, .step = two_losses));
    ANSWER(FIT(NULL, s.opt, 1, .step = not_a_number));
    ANSWER(FIT(NULL, s.opt, 1, .step = not_a_number, .on_nan = NN_NAN_STOP));
    ANSWER(FIT(ce(), s.opt, 1, .callbacks = callbacks));
    ANSWER(FIT(ce(), s.opt, 1, .validate = none));
    ANSWER(FIT(ce(), s.opt, 1, .monitor = "val_loss"));
    ANSWER(FIT(ce(), s.opt, 1, .monitor = "loss"));
    ANSWER(FIT(ce(), s.opt, 1, .monitor = "mean", .metrics = NN_METRICS(mean)));
    ANSWER(FIT(ce(), s.opt, 1, .monitor = "mean", .metrics = NN_METRICS(mean), .mode = NN_MAX));
    ANSWER(FIT(ce(), s.opt, 1, .metrics = NN_METRICS(accuracy, again)));
    ANSWER(FIT(ce(), s.opt, 1, .metrics = NN_METRICS(accuracy)));
    ANSWER(FIT(ce(), s.opt, 1, .scheduler = low));
    ANSWER(FIT(ce(), s.opt, 1, .scheduler = high));
    ANSWER(FIT(ce(), s.opt, 1, .scheduler = low, .monitor = "accuracy", .metrics = NN_METRICS(accuracy)));
    ANSWER(FIT(ce(), s.opt, 1, .scheduler = high, .monitor = "accuracy", .metrics = NN_METRICS(accuracy)));
    optim_scheduler_free(low), optim_scheduler_free(high), optim_free(lbfgs), optim_free(other);
    nn_metric_free(mean), nn_metric_free(accuracy), nn_metric_free(again), data_loader_free(none);
}

/* ---- metrics ---------------------------------------------------------------------------------- */

static void update(Metric *m, TensorShape output, TensorShape target)
{
    nn_metric_update(m, tensor_ones(output, TENSOR_F32), tensor_zeros(target, TENSOR_I64));
}

static void metrics(void)
{
    Metric *accuracy = nn_metric_accuracy(), *f1 = nn_metric_f1(3), *perplexity = nn_metric_perplexity(), *m;
    Tensor *scores = tensor_ones(SHAPE(2, 3), TENSOR_F32);
    TensorDict d = { 0 };
    ANSWER(nn_metric_f1(1));
    ANSWER(nn_metric_free(m = nn_metric_f1(2)));
    ANSWER(nn_metric_free(m = nn_metric_f1(10000)));
    ANSWER(nn_metric_f1(10001));
    ANSWER(nn_metric_f1(3, .average = (NNAverage)4));
    ANSWER(nn_metric_f1(3, .top_k = 2));
    ANSWER(nn_metric_accuracy(.top_k = 0));
    ANSWER(nn_metric_free(m = nn_metric_accuracy(.top_k = 2)));
    ANSWER(nn_metric_accuracy(.threshold = NAN));
    ANSWER(nn_metric_accuracy(.mode = (NNMode)3));
    ANSWER(nn_metric_custom("own", NULL, NULL));
    ANSWER(nn_metric_update(NULL, scores, scores));
    ANSWER(nn_metric_update(accuracy, NULL, scores));
    ANSWER(update(accuracy, SHAPE(2, 3), SHAPE(2)));
    ANSWER(update(accuracy, SHAPE(2, 3), SHAPE(3)));
    ANSWER(update(accuracy, SHAPE(2, 3, 4), SHAPE(2)));
    ANSWER(update(accuracy, SHAPE(3), SHAPE()));
    ANSWER(update(f1, SHAPE(2, 3), SHAPE(2, 3, 1)));
    ANSWER(update(perplexity, SHAPE(2, 3), SHAPE(2, 3)));
    ANSWER(update(perplexity, SHAPE(2, 3), SHAPE(2)));
    ANSWER(nn_metric_update(f1, scores, tensor_full(SHAPE(2), 3, TENSOR_I64)));
    ANSWER(nn_metric_update(f1, scores, tensor_full(SHAPE(2), -1, TENSOR_I64)));
    ANSWER(nn_metric_update(f1, scores, tensor_full(SHAPE(2), 2, TENSOR_I64)));
    ANSWER(nn_metric_update(f1, scores, tensor_full(SHAPE(2), 0.5, TENSOR_F32)));
    ANSWER(nn_metric_state_dict(NULL));
    ANSWER(nn_metric_load_state_dict(NULL, d));
    ANSWER(nn_metric_load_state_dict(accuracy, d));
    nn_dict_set(&d, "accuracy", tensor_ones(SHAPE(2), TENSOR_F32));
    ANSWER(nn_metric_load_state_dict(accuracy, d));
    nn_dict_set(&d, "other", scores);
    ANSWER(nn_metric_load_state_dict(accuracy, d));
    nn_dict_free(d);
    nn_metric_free(accuracy), nn_metric_free(f1), nn_metric_free(perplexity);
}

int main(int argc, char **argv)
{
    if (scratch_begin(NULL)) return 1;
    answers_begin(argc, argv, "test/train/refusals.golden");
    answers_hide(scratch_);
    TensorScope scope = tensor_scope_open();
    s = setting();
    answers_of("parts", parts);
    answers_of("files", files);
    answers_of("evaluating", evaluating);
    answers_of("fitting", fitting);
    answers_of("metrics", metrics);
    drop(&s);
    tensor_scope_close(scope);
    return scratch_end(NULL) || answers_end();
}
