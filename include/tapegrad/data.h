/* data.h - datasets and loaders.
 *
 *     Dataset *digits = data_mnist("data/mnist", DATA_TRAIN);
 *     DataLoader *train = data_loader(digits, .batch_size = 64, .shuffle = true);      // takes digits over
 *     for (Batch *b; (b = data_next(train)) != NULL;) use(b->x, b->y);                 // one epoch
 *     data_loader_free(train);
 *
 * A Dataset is reference-counted.  data_loader takes over the caller's reference, so
 * data_loader(data_mnist(...)) needs no variable; call data_retain on a dataset that you also use
 * elsewhere. */
#ifndef TAPEGRAD_DATA_H
#define TAPEGRAD_DATA_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Dataset Dataset;
typedef enum DataSplit { DATA_TRAIN, DATA_TEST } DataSplit;

TAPEGRAD_API int64_t data_size(const Dataset *data); /* samples; 0 for NULL */
TAPEGRAD_API Dataset *data_retain(Dataset *data);    /* takes a reference; returns data */
TAPEGRAD_API void data_free(Dataset *data);          /* drops a reference */

typedef struct DataMnistArgs {
    const char *folder;
    DataSplit split;
    TensorByName by_name;
    double mean, std; /* pixels become (value / 255 - mean) / std */
    TensorFromDefaults from_defaults;
} DataMnistArgs;
#define DATA_MNIST_DEFAULTS .split = DATA_TRAIN, .mean = 0, .std = 1, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const DataMnistArgs data_mnist_defaults;

/* data_mnist("data/mnist", DATA_TRAIN, .mean = 0.1307, .std = 0.3081) - the four IDX files of MNIST (or
 * Fashion-MNIST), plain or .gz, by their usual names in the folder.  NULL: the first folder of
 * $TAPEGRAD_DATA/mnist, $TAPEGRAD_DATA, data/mnist and data that holds them.  x [n, 1, h, w] f32, rounded as
 * PyTorch's ToTensor and Normalize do; y [n] i64.  EIO: a file is missing.  EFORMAT: it is damaged, or images
 * and labels differ in number.  EVALUE: std not above 0. */
#define data_mnist(...) \
    TENSOR_CALL_(data_mnist_args, DataMnistArgs, DATA_MNIST_DEFAULTS, .folder = __VA_ARGS__)
TAPEGRAD_API Dataset *data_mnist_args(DataMnistArgs args);

/* data_tensors - sample i is x[i] and y[i].  Retains x [n, ...] and y [n, ...] or NULL, on the CPU.  ESHAPE:
 * different first sizes. */
TAPEGRAD_API Dataset *data_tensors(Tensor *x, Tensor *y);

/* data_custom - samples from your function: get(ctx, i, &x, &y) makes the tensors of sample i (y may stay
 * NULL) and returns 0, or -1 after an error.  Batches stack them (ESHAPE: shapes differ, or only some samples
 * have a y).  Each call of get has its own scope.  A prefetching loader calls get on its thread; two loaders
 * of one dataset may call it at once.  Each epoch seeds that thread's generator with the base seed (see
 * data_loader), so random numbers in get repeat after tensor_manual_seed.  destroy(ctx), if not NULL, runs at
 * the last data_free; not if data_custom fails. */
TAPEGRAD_API Dataset *data_custom(int64_t size, int (*get)(void *ctx, int64_t i, Tensor **x, Tensor **y),
                                  void (*destroy)(void *ctx), void *ctx);

typedef struct Batch {
    Tensor *x, *y;        /* owned by the loader until the next data_next: retain them to keep them */
    int64_t size;         /* samples in it */
    int64_t index, epoch; /* from 0 */
} Batch;

typedef struct DataLoader DataLoader;

typedef struct DataLoaderArgs {
    Dataset *dataset; /* the loader takes over the caller's reference, even if data_loader fails */
    int64_t batch_size;
    bool shuffle, drop_last;
    int prefetch;       /* batches prepared ahead by a thread; 0: no thread */
    const char *device; /* where batches go; NULL: the CPU */
    TensorFromDefaults from_defaults;
} DataLoaderArgs;
#define DATA_LOADER_DEFAULTS \
    .batch_size = 1, .shuffle = false, .drop_last = false, .prefetch = 2, .device = NULL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const DataLoaderArgs data_loader_defaults;

/* data_loader(dataset, .batch_size = 64, .shuffle = true)
 * Each epoch draws a base seed (i64) from the thread's generator.  With .shuffle it draws a second seed, for
 * the generator of the permutation: the same tensor_manual_seed gives PyTorch's order.  EVALUE: batch_size
 * below 1, prefetch below 0. */
#define data_loader(...) \
    TENSOR_CALL_(data_loader_args, DataLoaderArgs, DATA_LOADER_DEFAULTS, .dataset = __VA_ARGS__)
TAPEGRAD_API DataLoader *data_loader_args(DataLoaderArgs args);

/* data_next - the next batch, valid until the next call.  NULL at the end of an epoch; the next call begins
 * another.  NULL also while an error is recorded, so a loop over batches ends at the first error, and on an
 * error in this thread or the loader's, which ends the epoch.  A loader serves one thread at a time. */
TAPEGRAD_API Batch *data_next(DataLoader *loader);
TAPEGRAD_API int64_t data_batches(const DataLoader *loader); /* in one epoch */
TAPEGRAD_API int64_t data_samples(const DataLoader *loader);
/* data_reset - ends the batch and the epoch: the next data_next begins another epoch. */
TAPEGRAD_API void data_reset(DataLoader *loader);
TAPEGRAD_API void data_loader_free(DataLoader *loader);

/* data_loader_state_dict - the position of the loader, under the names of torchdata's StatefulDataLoader: the
 *     epochs done ("epoch"), the batches given in this one ("_num_yielded"), whether it is over
 *     ("_iterator_finished"), its base seed, the generator of its permutation
 *     ("_sampler_iter_state.generator"), its thread's generator as it was after the last batch given
 *     ("_worker_snapshots.worker_0.generator"); and "samples", "batch_size", "shuffle", "drop_last", which
 *     must agree on loading.  Owned by the loader, valid until the next call.
 * data_loader_load_state_dict - continues from there: the next data_next gives the batch that would have come
 *     next, to the bit, if get depends only on the index and the thread's generator.  Ends the current batch.
 *     Save the program's generator too, from which epochs draw their seeds (tensor_get_rng_state).
 *     EVALUE: names are missing or unexpected, a number is out of range, or the state is of another loader;
 *     all or nothing. */
TAPEGRAD_API TensorDict data_loader_state_dict(DataLoader *loader);
TAPEGRAD_API int data_loader_load_state_dict(DataLoader *loader, TensorDict dict);

#ifdef __cplusplus
}
#endif
#endif
