/* dataset.c - datasets: tensors, MNIST's files, functions of the user. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <tapegrad/io.h>
#include "dataset.h"

const DataMnistArgs data_mnist_defaults = { DATA_MNIST_DEFAULTS };

static Dataset *new_dataset(const char *op, int64_t size)
{
    Dataset *d = tg_calloc(sizeof *d);
    if (!d) return fail_memory(op), NULL;
    atomic_init(&d->refs, 1);
    d->size = size;
    return d;
}

void dataset_drop(DatasetBatch *batch)
{
    tensor_release(batch->x);
    tensor_release(batch->y);
    *batch = (DatasetBatch){ NULL, NULL };
}

int64_t data_size(const Dataset *data) { return data ? data->size : 0; }

Dataset *data_retain(Dataset *data)
{
    if (data) atomic_fetch_add(&data->refs, 1);
    return data;
}

void data_free(Dataset *d)
{
    if (!d || atomic_fetch_sub(&d->refs, 1) != 1) return;
    if (d->destroy) d->destroy(d->ctx);
    tensor_release(d->x);
    tensor_release(d->y);
    tg_free(d, sizeof *d);
}

/* ---- rows of tensors ------------------------------------------------------------------------- */

/* Rows of a dense tensor, as they are. */
static Tensor *take_rows(const Tensor *all, const int64_t *index, int64_t n)
{
    int64_t shape[TENSOR_MAX_DIMS];
    for (int d = 0; d < all->ndim; d++) shape[d] = all->shape[d];
    shape[0] = n;
    Tensor *out = new_tensor((TensorShape){ all->ndim, shape }, all->dtype, &cpu_place);
    size_t row = all->numel ? (size_t)(all->numel / all->shape[0]) * dtype_size(all->dtype) : 0;
    for (int64_t i = 0; out && row && i < n; i++)
        memcpy((char *)out->data + (size_t)i * row, (const char *)all->data + (size_t)index[i] * row, row);
    return out;
}

static int tensors_batch(const Dataset *d, const int64_t *index, int64_t n, DatasetBatch *out)
{
    out->x = take_rows(d->x, index, n);
    out->y = out->x && d->y ? take_rows(d->y, index, n) : NULL;
    if (out->x && (out->y || !d->y)) return 0;
    dataset_drop(out);
    return -1;
}

Dataset *data_tensors(Tensor *x, Tensor *y)
{
    if (check_null(x, "data_tensors", 1)) return NULL;
    if (y ? check_null(y, "data_tensors", 2) : tensor_error_code() != TENSOR_OK) return NULL;
    if (x->ndim < 1 || (y && (y->ndim < 1 || y->shape[0] != x->shape[0])))
        return fail(TENSOR_ESHAPE, "data_tensors", "x %s and y %s: the first sizes must be there and agree",
                    S(x), y ? S(y) : "NULL"),
               NULL;
    if (x->place != &cpu_place || (y && y->place != &cpu_place))
        return fail(TENSOR_EDEVICE, "data_tensors",
                    "x and y must be on the CPU; the loader moves batches (.device)"),
               NULL;
    Dataset *d = new_dataset("data_tensors", x->shape[0]);
    if (!d) return NULL;
    d->batch = tensors_batch;
    d->x = raw_contiguous(x);
    d->y = y ? raw_contiguous(y) : NULL;
    if (d->x && (d->y || !y)) return d;
    data_free(d);
    return NULL;
}

/* ---- images of bytes ------------------------------------------------------------------------- */

static int images_batch(const Dataset *d, const int64_t *index, int64_t n, DatasetBatch *out)
{
    int64_t h = d->x->shape[1], w = d->x->shape[2];
    out->x = new_tensor(SHAPE(n, 1, h, w), TENSOR_F32, &cpu_place);
    out->y = out->x ? new_tensor(SHAPE(n), TENSOR_I64, &cpu_place) : NULL;
    if (!out->y) {
        dataset_drop(out);
        return -1;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from = (const uint8_t *)d->x->data + index[i] * h * w;
        float *to = (float *)out->x->data + i * h * w;
        for (int64_t k = 0; k < h * w; k++) to[k] = d->value[from[k]];
        ((int64_t *)out->y->data)[i] = ((const uint8_t *)d->y->data)[index[i]];
    }
    return 0;
}

/* The path of the file under any of the names it goes by. */
static bool find_file(char *path, const char *folder, const char *name)
{
    for (int plain = 0; plain < 2; plain++) {
        int length = snprintf(path, PATH_MAX, "%s/%s%s", folder, name, plain ? "" : ".gz");
        if (length < PATH_MAX && access(path, R_OK) == 0) return true;
    }
    return false;
}

/* Where MNIST is looked for when no folder is named; NULL and EIO: nowhere. */
static const char *find_mnist(char *folder, const char *name)
{
    static const char *const below[] = { "/mnist", "" };
    const char *roots[] = { getenv("TAPEGRAD_DATA"), "data" };
    char path[PATH_MAX];
    for (int i = 0; i < 4; i++) {
        if (!roots[i / 2] || snprintf(folder, PATH_MAX, "%s%s", roots[i / 2], below[i % 2]) >= PATH_MAX)
            continue;
        if (find_file(path, folder, name)) return folder;
    }
    fail(TENSOR_EIO, "data_mnist", "no %s in $TAPEGRAD_DATA (%s) nor in data: name the folder", name,
         roots[0] ? roots[0] : "not set");
    return NULL;
}

static Tensor *read_mnist(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (find_file(path, folder, name)) return io_read_idx(path);
    return fail(TENSOR_EIO, "data_mnist", "neither %s/%s nor %s/%s.gz can be read", folder, name, folder,
                name),
           NULL;
}

static Dataset *mnist(DataMnistArgs args)
{
    char name[64], found[PATH_MAX];
    const char *part = args.split == DATA_TRAIN ? "train" : "t10k";
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    if (!args.folder && !(args.folder = find_mnist(found, name))) return NULL;
    Tensor *images = read_mnist(args.folder, name);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    Tensor *labels = images ? read_mnist(args.folder, name) : NULL;
    if (!labels) return NULL;
    if (images->dtype != TENSOR_U8 || images->ndim != 3 || labels->dtype != TENSOR_U8 || labels->ndim != 1 ||
        images->shape[0] != labels->shape[0])
        return fail(TENSOR_EFORMAT, "data_mnist", "%s: images %s %s and labels %s %s do not belong together",
                    args.folder, tensor_dtype_name((TensorDtype)images->dtype), S(images),
                    tensor_dtype_name((TensorDtype)labels->dtype), S(labels)),
               NULL;
    Dataset *d = new_dataset("data_mnist", images->shape[0]);
    if (!d) return NULL;
    d->batch = images_batch;
    d->x = tensor_retain(images), d->y = tensor_retain(labels);
    for (int i = 0; i < 256; i++)
        d->value[i] = ((float)i / 255 - (float)args.mean) / (float)args.std; /* PyTorch's roundings */
    return d;
}

Dataset *data_mnist_args(DataMnistArgs args)
{
    static const char *const splits[] = { "train", "test", NULL };
    if (TENSOR_CHECK_OPTIONS("data_mnist", args, data_mnist_defaults)) return NULL;
    if (!(args.std > 0) || !isfinite(args.std) || !isfinite(args.mean))
        return fail(TENSOR_EVALUE, "data_mnist", "mean %g, std %g: finite, and std above 0", args.mean,
                    args.std),
               NULL;
    if (tensor_check_choice("data_mnist", "split", (int)args.split, splits)) return NULL;
    TensorScope scope = tensor_scope_open();
    Dataset *d = scope_failed(scope) ? NULL : mnist(args);
    tensor_scope_close(scope);
    return d;
}

/* ---- a function of the user's ---------------------------------------------------------------- */

/* Puts sample i of n into its place of the batch, which takes shape and dtype from the first one; all have it
 * or none. */
static int put_sample(Tensor **batch, Tensor *sample, int64_t i, int64_t n, const char *what)
{
    if (!sample && (i == 0 || !*batch)) return 0;
    if (!sample || (i > 0 && !*batch))
        return fail(TENSOR_ESHAPE, "data_next", "sample %lld of a batch has %s %s, the first has %s",
                    (long long)i, sample ? "a" : "no", what, sample ? "none" : "one");
    if (i == 0) {
        int64_t shape[TENSOR_MAX_DIMS];
        if (sample->ndim == TENSOR_MAX_DIMS)
            return fail(TENSOR_ESHAPE, "data_next", "%s %s has no room for the batch dimension", what,
                        S(sample));
        shape[0] = n;
        for (int d = 0; d < sample->ndim; d++) shape[d + 1] = sample->shape[d];
        *batch = new_tensor((TensorShape){ sample->ndim + 1, shape }, sample->dtype, &cpu_place);
        if (!*batch) return -1;
    }
    TensorShape row = { (*batch)->ndim - 1, (*batch)->shape + 1 };
    if (!shape_equal(shape_of(sample), row) || sample->dtype != (*batch)->dtype)
        return fail(TENSOR_ESHAPE, "data_next",
                    "%s of sample %lld of a batch is %s %s, that of the first %s %s", what, (long long)i,
                    tensor_dtype_name((TensorDtype)sample->dtype), S(sample),
                    tensor_dtype_name((TensorDtype)(*batch)->dtype), shape_text(row));
    Tensor *at = new_view(*batch, row.ndim, row.dim, (*batch)->stride + 1, i * (*batch)->stride[0]);
    int status = at ? raw_copy(at, sample) : -1;
    tensor_release(at);
    return status;
}

/* One sample, in a scope of its own: its temporaries are gone before the next one is made. */
static int add_sample(const Dataset *d, int64_t index, int64_t i, int64_t n, DatasetBatch *out)
{
    Tensor *x = NULL, *y = NULL;
    TensorScope scope = tensor_scope_open();
    int status = scope_failed(scope) ? -1 : d->get(d->ctx, index, &x, &y);
    if (status || !x ||
        (!y && tensor_error_code())) { /* a y that could not be made is no sample without one */
        status = -1;
        if (!tensor_error_code())
            fail(TENSOR_EUSER, "data_next", "the dataset's function failed for sample %lld",
                 (long long)index);
    } else {
        status = put_sample(&out->x, x, i, n, "x") || put_sample(&out->y, y, i, n, "y") ? -1 : 0;
    }
    tensor_scope_close(scope);
    return status;
}

static int custom_batch(const Dataset *d, const int64_t *index, int64_t n, DatasetBatch *out)
{
    for (int64_t i = 0; i < n; i++)
        if (add_sample(d, index[i], i, n, out)) {
            dataset_drop(out);
            return -1;
        }
    return 0;
}

Dataset *data_custom(int64_t size, int (*get)(void *, int64_t, Tensor **, Tensor **), void (*destroy)(void *),
                     void *ctx)
{
    if (!get) return fail(TENSOR_ENULL, "data_custom", "the function is NULL"), NULL;
    if (size < 0) return fail(TENSOR_EVALUE, "data_custom", "%lld samples", (long long)size), NULL;
    Dataset *d = new_dataset("data_custom", size);
    if (!d) return NULL;
    d->batch = custom_batch, d->get = get, d->destroy = destroy, d->ctx = ctx;
    return d;
}
