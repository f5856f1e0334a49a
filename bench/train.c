/* train.c - a step with nn_fit and one of the loop written out, in turn in one process: CPU time of each, and
 * the ratio; a checkpoint and a file of as many bytes, written and synced.  ROUNDS=15 build/bench/train */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, STEPS = 100 };

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static Module *mlp(void)
{
    return nn_sequential(nn_flatten(), nn_linear(784, 256), nn_relu(), nn_linear(256, 128), nn_relu(),
                         nn_linear(128, 10));
}

static Module *cnn(void)
{
    return nn_sequential(nn_conv2d(1, 16, 3, .padding = 1), nn_relu(), nn_max_pool2d(2),
                         nn_conv2d(16, 32, 3, .padding = 1), nn_relu(), nn_max_pool2d(2), nn_flatten(),
                         nn_linear(32 * 7 * 7, 10));
}

static Module *tiny(void) { return nn_sequential(nn_flatten(), nn_linear(784, 10)); }

static void by_hand(Module *net, DataLoader *train, Optimizer *opt)
{
    for (Batch *b; (b = data_next(train)) != NULL;) {
        TensorScope scope = tensor_scope_open();
        Tensor *loss = tensor_cross_entropy(nn_forward(net, b->x), b->y);
        optim_zero_grad(opt);
        tensor_backward(loss);
        optim_step(opt);
        tensor_scope_close(scope);
    }
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void measure(const char *name, Module *(*make)(void), int rounds, bool accuracy)
{
    double loop[64], fit[64];
    tensor_manual_seed(1);
    TensorScope scope = tensor_scope_open();
    Module *net = make();
    Optimizer *opt = optim_sgd(nn_parameters(net), .lr = 0);
    Metric *metric = nn_metric_accuracy();
    DataLoader *train = data_loader(data_tensors(tensor_randn(SHAPE(STEPS * BATCH, 1, 28, 28), TENSOR_F32),
                                                 tensor_randint(0, 10, SHAPE(STEPS * BATCH))),
                                    .batch_size = BATCH, .shuffle = true, .prefetch = 0);
    by_hand(net, train, opt);
    for (int i = 0; i < rounds; i++) {
        double begin = cpu_seconds();
        by_hand(net, train, opt);
        loop[i] = cpu_seconds() - begin, begin = cpu_seconds();
        nn_fit(net, train, nn_cross_entropy_loss(), opt, .verbose = 0,
               .metrics = accuracy ? NN_METRICS(metric) : NULL);
        fit[i] = cpu_seconds() - begin;
    }
    qsort(loop, (size_t)rounds, sizeof *loop, ascending), qsort(fit, (size_t)rounds, sizeof *fit, ascending);
    printf("%-24s loop %8.1f us   nn_fit %8.1f us   ratio of medians %.4f, of least %.4f\n", name,
           1e6 * loop[rounds / 2] / STEPS, 1e6 * fit[rounds / 2] / STEPS, fit[rounds / 2] / loop[rounds / 2],
           fit[0] / loop[0]);
    nn_metric_free(metric), data_loader_free(train), optim_free(opt), nn_free(net);
    tensor_scope_close(scope);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static double wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The plain file: one write, one sync. */
static double write_plain(const char *path, const void *bytes, size_t n)
{
    const double begin = wall_seconds();
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fflush(f) || fsync(fileno(f)) || fclose(f)) perror(path);
    return wall_seconds() - begin;
}

static void measure_checkpoint(int rounds)
{
    enum { SIDE = 4096, COUNT = 4 };
    double plain[64], saved[64];
    char folder[] = "checkpoint-bench-XXXXXX", path[64];
    TensorScope scope = tensor_scope_open();
    Module *net = nn_module_list();
    for (int i = 0; i < COUNT; i++) nn_append(net, nn_linear(SIDE, SIDE, .bias = false));
    const size_t bytes = (size_t)SIDE * SIDE * COUNT * 4;
    void *copy = calloc(1, bytes);
    Checkpoint *run = mkdtemp(folder) ? io_checkpoint(folder, .module = net, .keep = 1) : NULL;
    snprintf(path, sizeof path, "%s/plain", folder);
    if (copy) memset(copy, 1, bytes);
    for (int i = 0; i < rounds && copy && run; i++) {
        plain[i] = write_plain(path, copy, bytes);
        const double begin = wall_seconds();
        io_checkpoint_save(run);
        saved[i] = wall_seconds() - begin;
    }
    qsort(plain, (size_t)rounds, sizeof *plain, ascending),
        qsort(saved, (size_t)rounds, sizeof *saved, ascending);
    const double megabytes = (double)(bytes >> 20);
    printf(
        "checkpoint of %.0f MB      plain file %.0f MB/s   checkpoint %.0f MB/s   ratio of medians %.2f, of "
        "best %.2f\n",
        megabytes, megabytes / plain[0], megabytes / saved[0], plain[rounds / 2] / saved[rounds / 2],
        plain[0] / saved[0]);
    if (run && io_checkpoint_path(run)) unlink(io_checkpoint_path(run));
    unlink(path), rmdir(folder);
    io_checkpoint_free(run), nn_free(net), free(copy);
    tensor_scope_close(scope);
}

int main(void)
{
    const char *given = getenv("ROUNDS");
    const int n = given ? atoi(given) : 15, rounds = n < 1 ? 1 : n > 64 ? 64 : n;
    measure("linear 784-10", tiny, rounds, false);
    measure("MLP 784-256-128-10", mlp, rounds, false);
    measure("the same, accuracy", mlp, rounds, true);
    measure("CNN 16, 32", cnn, (rounds + 2) / 3, false);
    measure_checkpoint((rounds + 2) / 3);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}
