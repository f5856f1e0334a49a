/* data.h - datasets and loaders.
 *
 *     Dataset *digits = data_mnist("data/mnist", DATA_TRAIN);
 *     DataLoader *train = data_loader(digits, .batch_size = 64, .shuffle = true);      // takes digits over
 *     for (Batch *b; (b = data_next(train)) != NULL;) use(b->x, b->y);                 // one epoch
 *     data_loader_free(train);
 *
 * A Dataset is counted: the loader keeps one reference, so that data_loader(data_mnist(...)) needs no name,
 * and a dataset that is shared is data_retain'ed by whoever also wants it. */
#ifndef TAPEGRAD_DATA_H
#define TAPEGRAD_DATA_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Dataset Dataset;
typedef enum DataSplit { DATA_TRAIN, DATA_TEST } DataSplit;

TAPEGRAD_API int64_t data_size(const Dataset *data); /* samples; 0 for NULL */
TAPEGRAD_API Dataset *data_retain(Dataset *data);    /* one reference more; returns data */
TAPEGRAD_API void data_free(Dataset *data);          /* gives one reference back */

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
 * Fashion-MNIST), plain or .gz, by their usual names in the folder.  NULL: the first of $TAPEGRAD_DATA/mnist,
 * $TAPEGRAD_DATA, data/mnist and data that has them.  x [n, 1, h, w] f32, rounded as PyTorch's
 * ToTensor and Normalize do; y [n] i64. EIO: a file is missing.  EFORMAT: it is damaged, or images and labels
 * differ in number.  EVALUE: std not above 0. */
#define data_mnist(...) \
    TENSOR_CALL_(data_mnist_args, DataMnistArgs, DATA_MNIST_DEFAULTS, .folder = __VA_ARGS__)
TAPEGRAD_API Dataset *data_mnist_args(DataMnistArgs args);

/* data_tensors - sample i is x[i], y[i]; both are retained, on the CPU, of equal first size (ESHAPE).  y may
 * be NULL. */
TAPEGRAD_API Dataset *data_tensors(Tensor *x, Tensor *y);

/* data_custom - samples by a function of yours: get(ctx, i, &x, &y) makes the tensors of sample i (y may stay
 * NULL) and returns 0, or -1 after an error.  Batches stack them (ESHAPE, if they differ or if only some have
 * a y).  get runs in a scope of its own for each sample, and in the loader's thread when it prefetches; where
 * two loaders share the dataset, in both threads at once.  That thread's generator is seeded in each epoch
 * with the base seed (see data_loader), so what get draws there repeats with tensor_manual_seed.
 * destroy(ctx), if not NULL, is called with the last data_free; not when data_custom fails. */
TAPEGRAD_API Dataset *data_custom(int64_t size, int (*get)(void *ctx, int64_t i, Tensor **x, Tensor **y),
                                  void (*destroy)(void *ctx), void *ctx);

typedef struct Batch {
    Tensor *x, *y;        /* the loader's; retain them to keep them beyond the next data_next */
    int64_t size;         /* samples in it */
    int64_t index, epoch; /* from 0 */
} Batch;

typedef struct DataLoader DataLoader;

typedef struct DataLoaderArgs {
    Dataset *dataset; /* the loader takes over the caller's reference, also when it fails */
    int64_t batch_size;
    bool shuffle, drop_last;
    int prefetch;       /* batches made ahead by a thread; 0: none */
    const char *device; /* where batches go; NULL: the CPU */
    TensorFromDefaults from_defaults;
} DataLoaderArgs;
#define DATA_LOADER_DEFAULTS \
    .batch_size = 1, .shuffle = false, .drop_last = false, .prefetch = 2, .device = NULL, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const DataLoaderArgs data_loader_defaults;

/* data_loader(dataset, .batch_size = 64, .shuffle = true)
 * Each epoch draws a base seed (i64) from the thread's generator, and a shuffling one a second seed, with
 * which a new generator makes the permutation: PyTorch's own order for the same tensor_manual_seed.  EVALUE:
 * batch_size below 1, prefetch below 0. */
#define data_loader(...) \
    TENSOR_CALL_(data_loader_args, DataLoaderArgs, DATA_LOADER_DEFAULTS, .dataset = __VA_ARGS__)
TAPEGRAD_API DataLoader *data_loader_args(DataLoaderArgs args);

/* data_next - the next batch, valid until the next call; NULL at the end of an epoch, after which the next
 * call begins another; NULL also while an error is recorded, so that a loop over batches ends at the first
 * one, and on error, whether in this thread or in the loader's, after which the epoch is over, too. A loader
 * serves one thread at a time. */
TAPEGRAD_API Batch *data_next(DataLoader *loader);
TAPEGRAD_API int64_t data_batches(const DataLoader *loader); /* in one epoch */
TAPEGRAD_API int64_t data_samples(const DataLoader *loader);
/* data_reset - breaks the epoch off, and ends the batch: the next one is the first of another. */
TAPEGRAD_API void data_reset(DataLoader *loader);
TAPEGRAD_API void data_loader_free(DataLoader *loader);

/* data_loader_state_dict - where the loader is, under the names of torchdata's StatefulDataLoader: epochs
 *     given ("epoch"), batches given of this one ("_num_yielded"), whether it is over ("_iterator_finished"),
 *     its base seed, the generator of its permutation ("_sampler_iter_state.generator") and that of its
 *     thread after the last batch given ("_worker_snapshots.worker_0.generator"), however far ahead the
 *     thread is; and what must agree: "samples", "batch_size", "shuffle", "drop_last".  The loader's until
 *     the next call.
 * data_loader_load_state_dict - goes on from there: the next data_next gives the batch that would have come
 *     next, to the bit, if the dataset depends on the index and the thread's generator alone.  (The generator
 *     from which epochs draw their seeds is the program's: tensor_get_rng_state.)  The batch at hand ends.
 *     EVALUE: names are missing or unexpected, a number out of range, of another loader; all or nothing. */
TAPEGRAD_API TensorDict data_loader_state_dict(DataLoader *loader);
TAPEGRAD_API int data_loader_load_state_dict(DataLoader *loader, TensorDict dict);

#ifdef __cplusplus
}
#endif
#endif
