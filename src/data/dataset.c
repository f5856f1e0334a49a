/* dataset.c - datasets: tensors, MNIST's files, functions of the user. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>
#include <tapegrad/io.h>
#include "dataset.h"

Dataset *dataset_new(const char *op, int64_t size)
{
    Dataset *d = tg_calloc(sizeof *d);
    if (!d) return fail_memory(op), NULL;
    atomic_init(&d->refs, 1);
    d->size = size;
    return d;
}

int64_t data_size(const Dataset *data)
{
    return data ? data->size : 0;
}

Dataset *data_retain(Dataset *data)
{
    if (data) atomic_fetch_add(&data->refs, 1);
    return data;
}

void data_free(Dataset *d)
{
    if (!d || atomic_fetch_sub(&d->refs, 1) != 1) return;
    if (d->destroy_ctx) d->destroy_ctx(d->ctx);
    tensor_release(d->x);
    tensor_release(d->y);
    tg_free(d, sizeof *d);
}

/* ---- rows of tensors ---------------------------------------------------------------------------------------- */

/* Rows of a dense tensor, as they are. */
static Tensor *take_rows(const Tensor *all, const int64_t *index, int64_t n)
{
    int64_t shape[TENSOR_MAX_DIMS];
    for (int d = 0; d < all->ndim; d++) shape[d] = all->shape[d];
    shape[0] = n;
    Tensor *out = own(new_tensor((TensorShape){ all->ndim, shape }, all->dtype, &cpu_place));
    if (!out) return NULL;
    size_t row = all->shape[0] ? (size_t)(all->numel / all->shape[0]) * dtype_size(all->dtype) : 0;
    for (int64_t i = 0; i < n; i++) memcpy((char *)out->data + (size_t)i * row, (const char *)all->data + (size_t)index[i] * row, row);
    return out;
}

static int tensors_batch(Dataset *d, const int64_t *index, int64_t n, Tensor **x, Tensor **y)
{
    *x = take_rows(d->x, index, n);
    *y = d->y ? take_rows(d->y, index, n) : NULL;
    return *x && (*y || !d->y) ? 0 : -1;
}

Dataset *data_tensors(Tensor *x, Tensor *y)
{
    if (check_null(x, "data_tensors", 1)) return NULL;
    if (!y && tensor_error()) return NULL;
    if (x->ndim < 1 || (y && (y->ndim < 1 || y->shape[0] != x->shape[0])))
        return fail(TENSOR_ESHAPE, "data_tensors", "x %s and y %s: the first sizes must be there and agree", S(x), y ? S(y) : "NULL"), NULL;
    if (x->place != &cpu_place || (y && y->place != &cpu_place))
        return fail(TENSOR_EDEVICE, "data_tensors", "x and y must be on the CPU; the loader moves batches (.device)"), NULL;
    Dataset *d = dataset_new("data_tensors", x->shape[0]);
    if (!d) return NULL;
    d->batch = tensors_batch;
    d->x = raw_contiguous(x);
    d->y = y ? raw_contiguous(y) : NULL;
    if (d->x && (d->y || !y)) return d;
    data_free(d);
    return NULL;
}

/* ---- images of bytes ------------------------------------------------------------------------------------------ */

static int images_batch(Dataset *d, const int64_t *index, int64_t n, Tensor **x, Tensor **y)
{
    int64_t h = d->x->shape[1], w = d->x->shape[2];
    *x = own(new_tensor(SHAPE(n, 1, h, w), TENSOR_F32, &cpu_place));
    *y = own(new_tensor(SHAPE(n), TENSOR_I64, &cpu_place));
    if (!*x || !*y) return -1;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from = (const uint8_t *)d->x->data + index[i] * h * w;
        float *to = (float *)(*x)->data + i * h * w;
        for (int64_t k = 0; k < h * w; k++) to[k] = (float)from[k] * d->scale + d->shift;
        ((int64_t *)(*y)->data)[i] = ((const uint8_t *)d->y->data)[index[i]];
    }
    return 0;
}

/* The file under any of the names it goes by. */
static Tensor *read_mnist(const char *folder, const char *name)
{
    char path[PATH_MAX];
    for (int plain = 0; plain < 2; plain++) {
        snprintf(path, sizeof path, plain ? "%s/%s" : "%s/%s.gz", folder, name);
        if (access(path, R_OK) == 0) return io_read_idx(path);
    }
    return fail(TENSOR_EIO, "data_mnist", "neither %s/%s nor %s/%s.gz can be read", folder, name, folder, name), NULL;
}

static Dataset *mnist(DataMnistArgs args)
{
    char name[64];
    const char *part = args.split == DATA_TRAIN ? "train" : "t10k";
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    Tensor *images = read_mnist(args.folder, name);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    Tensor *labels = images ? read_mnist(args.folder, name) : NULL;
    if (!labels) return NULL;
    if (images->dtype != TENSOR_U8 || images->ndim != 3 || labels->dtype != TENSOR_U8 || labels->ndim != 1 || images->shape[0] != labels->shape[0])
        return fail(TENSOR_EFORMAT, "data_mnist", "%s: images %s %s and labels %s %s do not belong together", args.folder,
                    tensor_dtype_name((TensorDtype)images->dtype), S(images), tensor_dtype_name((TensorDtype)labels->dtype), S(labels)), NULL;
    Dataset *d = dataset_new("data_mnist", images->shape[0]);
    if (!d) return NULL;
    d->batch = images_batch;
    d->x = tensor_retain(images), d->y = tensor_retain(labels);
    d->scale = (float)(1 / (255 * args.std)), d->shift = (float)(-args.mean / args.std);
    return d;
}

Dataset *data_mnist_args(DataMnistArgs args)
{
    if (!args.folder) return fail(TENSOR_ENULL, "data_mnist", "the folder is NULL"), NULL;
    if (!(args.std > 0)) return fail(TENSOR_EVALUE, "data_mnist", "std %g: above 0", args.std), NULL;
    TensorScope scope = tensor_scope_open();
    Dataset *d = mnist(args);
    tensor_scope_close(scope);
    return d;
}

/* ---- a function of the user's ------------------------------------------------------------------------------------ */

/* Puts a sample into its place of the batch, which takes shape and dtype from the first one. */
static int put_sample(Tensor **batch, Tensor *sample, int64_t i, int64_t n, const char *what)
{
    if (!*batch) {
        int64_t shape[TENSOR_MAX_DIMS];
        if (sample->ndim == TENSOR_MAX_DIMS) return fail(TENSOR_ESHAPE, "data_next", "%s %s has no room for the batch dimension", what, S(sample));
        shape[0] = n;
        for (int d = 0; d < sample->ndim; d++) shape[d + 1] = sample->shape[d];
        *batch = own(new_tensor((TensorShape){ sample->ndim + 1, shape }, sample->dtype, &cpu_place));
        if (!*batch) return -1;
    }
    TensorShape row = { (*batch)->ndim - 1, (*batch)->shape + 1 };
    if (!shape_equal(shape_of(sample), row) || sample->dtype != (*batch)->dtype)
        return fail(TENSOR_ESHAPE, "data_next", "%s of sample %lld of a batch is %s %s, that of the first %s %s", what, (long long)i,
                    tensor_dtype_name((TensorDtype)sample->dtype), S(sample), tensor_dtype_name((TensorDtype)(*batch)->dtype), shape_text(row));
    Tensor *at = new_view(*batch, row.ndim, row.dim, (*batch)->stride + 1, i * (*batch)->stride[0]);
    int status = at ? raw_copy(at, sample) : -1;
    tensor_release(at);
    return status;
}

static int custom_batch(Dataset *d, const int64_t *index, int64_t n, Tensor **x, Tensor **y)
{
    *x = *y = NULL;
    for (int64_t i = 0; i < n; i++) {
        Tensor *sx = NULL, *sy = NULL;
        if (d->get(d->ctx, index[i], &sx, &sy) || !sx)
            return tensor_error() ? -1 : fail(TENSOR_EUSER, "data_next", "the dataset's function failed for sample %lld", (long long)index[i]);
        if (put_sample(x, sx, i, n, "x") || (sy && put_sample(y, sy, i, n, "y"))) return -1;
    }
    return 0;
}

Dataset *data_custom(int64_t size, int (*get)(void *, int64_t, Tensor **, Tensor **), void (*destroy)(void *), void *ctx)
{
    if (!get) return fail(TENSOR_ENULL, "data_custom", "the function is NULL"), NULL;
    if (size < 0) return fail(TENSOR_EVALUE, "data_custom", "%lld samples", (long long)size), NULL;
    Dataset *d = dataset_new("data_custom", size);
    if (!d) return NULL;
    d->batch = custom_batch, d->get = get, d->destroy_ctx = destroy, d->ctx = ctx;
    return d;
}
