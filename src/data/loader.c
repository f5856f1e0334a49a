/* loader.c - batches in order, shuffled or not, made ahead by a thread.
 *
 *  - The order of an epoch is fixed by the caller's thread before the first batch: the worker draws no numbers.
 *  - Batches go through a ring of prefetch places, in order.  The worker fills a place when it is empty, the caller empties it.
 *  - An error in the worker travels in the ring, and becomes the caller's when its batch is asked for.
 *  - The worker lives from the first batch to data_loader_free, and waits between epochs. */
#include <pthread.h>
#include <stdio.h>
#include <tapegrad/random.h>
#include "dataset.h"

typedef struct Ready {
    Tensor *x, *y;
    int64_t size;
    bool full;
    TensorStatus code;
    char text[512];
} Ready;

struct DataLoader {
    Dataset *data;
    int64_t batch_size, batches;
    bool shuffle, drop_last;
    const char *device;
    int64_t *order;             /* of this epoch */
    int64_t next, epoch;        /* the batch that data_next gives next */
    bool running;               /* an epoch has begun */
    Batch batch;                /* what the caller holds */
    Ready *ring;
    int prefetch, places;       /* batches made ahead (0 when no thread can be had); places of the ring */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    bool has_thread, stop, break_off, busy;
    int64_t made;               /* batches of this epoch made or begun by the worker */
};

/* ---- one batch ------------------------------------------------------------------------------------------------- */

static int64_t size_of_batch(const DataLoader *l, int64_t i)
{
    int64_t left = l->data->size - i * l->batch_size;
    return left < l->batch_size ? left : l->batch_size;
}

static int make(DataLoader *l, int64_t i, Ready *to)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = NULL, *y = NULL;
    int64_t n = size_of_batch(l, i);
    int status = l->data->batch(l->data, l->order + i * l->batch_size, n, &x, &y);
    if (!status && l->device) {
        x = tensor_to_device(x, l->device);
        y = y ? tensor_to_device(y, l->device) : NULL;
        status = x ? 0 : -1;
    }
    if (!status) {
        to->x = tensor_retain(tensor_detach(x));
        to->y = y ? tensor_retain(tensor_detach(y)) : NULL;
        to->size = n;
        status = to->x && (to->y || !y) ? 0 : -1;
    }
    tensor_scope_close(scope);
    return status;
}

/* ---- the worker --------------------------------------------------------------------------------------------------- */

static void *work(void *ctx)
{
    DataLoader *l = ctx;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        Ready *to = &l->ring[l->made % l->prefetch];
        if (!l->running || l->break_off || l->made >= l->batches || to->full) {
            pthread_cond_wait(&l->emptied, &l->lock);
            continue;
        }
        int64_t i = l->made++;
        l->busy = true;
        pthread_mutex_unlock(&l->lock);
        *to = (Ready){ .code = TENSOR_OK };
        if (make(l, i, to)) {
            to->code = tensor_error_code() ? tensor_error_code() : TENSOR_EUSER;
            snprintf(to->text, sizeof to->text, "%s", tensor_error() ? tensor_error() : "the dataset failed without saying why");
            tensor_error_clear();
        }
        pthread_mutex_lock(&l->lock);
        to->full = true, l->busy = false;
        pthread_cond_broadcast(&l->filled);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void empty(Ready *r)
{
    tensor_release(r->x);
    tensor_release(r->y);
    *r = (Ready){ .code = TENSOR_OK };
}

/* The next place of the ring, moved out. */
static int take(DataLoader *l, Ready *out)
{
    pthread_mutex_lock(&l->lock);
    Ready *from = &l->ring[l->next % l->prefetch];
    while (!from->full) pthread_cond_wait(&l->filled, &l->lock);
    *out = *from;
    *from = (Ready){ .code = TENSOR_OK };
    pthread_cond_broadcast(&l->emptied);
    pthread_mutex_unlock(&l->lock);
    if (!out->code) return 0;
    tensor_fail(out->code, NULL, "%s", out->text);
    empty(out);
    return -1;
}

/* ---- epochs ---------------------------------------------------------------------------------------------------------- */

static int draw_seed(uint64_t *seed)
{
    Tensor *t = tensor_empty(SHAPE(), TENSOR_I64);
    if (!t || !tensor_random_(t)) return -1;
    *seed = (uint64_t)tensor_item_i64(t);
    return 0;
}

static int shuffle(DataLoader *l)
{
    uint64_t seed;
    if (draw_seed(&seed)) return -1;
    TensorGenerator *g = tensor_generator(seed);
    if (!g) return -1;
    TensorGenerator *before = tensor_set_generator(g);
    Tensor *permutation = tensor_randperm(l->data->size);
    tensor_set_generator(before);
    tensor_generator_free(g);
    return permutation ? tensor_copy_to(permutation, l->order, (size_t)l->data->size * sizeof *l->order) : -1;
}

static int begin_epoch(DataLoader *l)
{
    uint64_t base;              /* PyTorch's iterator draws it whether or not workers use it */
    TensorScope scope = tensor_scope_open();
    const char *device = tensor_default_device();
    if (strcmp(device, "cpu") != 0) tensor_set_default_device("cpu");
    int status = draw_seed(&base);
    for (int64_t i = 0; i < l->data->size; i++) l->order[i] = i;
    if (!status && l->shuffle) status = shuffle(l);
    if (strcmp(device, "cpu") != 0) tensor_set_default_device(device);
    tensor_scope_close(scope);
    if (status) return -1;
    pthread_mutex_lock(&l->lock);
    l->next = l->made = 0, l->running = true, l->break_off = false;
    if (l->prefetch && !l->has_thread) l->has_thread = pthread_create(&l->thread, NULL, work, l) == 0;
    if (!l->has_thread) l->prefetch = 0;
    pthread_cond_broadcast(&l->emptied);
    pthread_mutex_unlock(&l->lock);
    return 0;
}

void data_reset(DataLoader *l)
{
    if (!l || !l->running) return;
    pthread_mutex_lock(&l->lock);
    l->break_off = true;
    while (l->busy) pthread_cond_wait(&l->filled, &l->lock);
    for (int i = 0; i < l->prefetch; i++) empty(&l->ring[i]);
    l->running = false;
    pthread_mutex_unlock(&l->lock);
    l->epoch++;
}

static void let_go(DataLoader *l)
{
    tensor_release(l->batch.x);
    tensor_release(l->batch.y);
    l->batch.x = l->batch.y = NULL;
}

Batch *data_next(DataLoader *l)
{
    if (!l) {
        if (!tensor_error()) fail(TENSOR_ENULL, "data_next", "the loader is NULL");
        return NULL;
    }
    let_go(l);
    if (!l->running && begin_epoch(l)) return NULL;
    if (l->next == l->batches) {
        l->running = false, l->epoch++;
        return NULL;
    }
    Ready ready = { .code = TENSOR_OK };
    if (l->prefetch ? take(l, &ready) : make(l, l->next, &ready)) {
        data_reset(l);
        return NULL;
    }
    l->batch = (Batch){ ready.x, ready.y, ready.size, l->next++, l->epoch };
    return &l->batch;
}

/* ---- making and freeing ------------------------------------------------------------------------------------------------ */

int64_t data_batches(const DataLoader *l) { return l ? l->batches : 0; }
int64_t data_samples(const DataLoader *l) { return l ? l->data->size : 0; }

static DataLoader *new_loader(DataLoaderArgs args)
{
    int64_t n = args.dataset->size;
    DataLoader *l = tg_calloc(sizeof *l);
    if (!l) return NULL;
    l->batch_size = args.batch_size, l->shuffle = args.shuffle, l->drop_last = args.drop_last;
    l->prefetch = l->places = args.prefetch;
    l->batches = args.drop_last ? n / args.batch_size : (n + args.batch_size - 1) / args.batch_size;
    l->order = tg_alloc((size_t)(n + 1) * sizeof *l->order);
    l->ring = tg_calloc((size_t)(args.prefetch + 1) * sizeof *l->ring);
    if (l->order && l->ring) return l;
    tg_free(l->order, (size_t)(n + 1) * sizeof *l->order);
    tg_free(l->ring, (size_t)(args.prefetch + 1) * sizeof *l->ring);
    tg_free(l, sizeof *l);
    return NULL;
}

DataLoader *data_loader_args(DataLoaderArgs args)
{
    const char *device = NULL;
    DataLoader *l = NULL;
    if (!args.dataset) {
        if (!tensor_error()) fail(TENSOR_ENULL, "data_loader", "the dataset is NULL");
    } else if (args.batch_size < 1 || args.prefetch < 0 || args.prefetch > 1024) {
        fail(TENSOR_EVALUE, "data_loader", "batch_size %lld, prefetch %d: at least 1; 0 to 1024", (long long)args.batch_size, args.prefetch);
    } else if (!args.device || (device = args.device, find_place(device, "data_loader"))) {
        l = new_loader(args);
        if (!l) fail_memory("data_loader");
    }
    if (!l) {
        data_free(args.dataset);
        return NULL;
    }
    l->data = args.dataset;
    l->device = device ? find_place(device, "data_loader")->name : NULL;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->emptied, NULL);
    return l;
}

void data_loader_free(DataLoader *l)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->emptied);
    pthread_mutex_unlock(&l->lock);
    if (l->has_thread) pthread_join(l->thread, NULL);
    int64_t n = l->data->size;
    for (int i = 0; i < l->places; i++) empty(&l->ring[i]);
    let_go(l);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->filled);
    pthread_cond_destroy(&l->emptied);
    tg_free(l->order, (size_t)(n + 1) * sizeof *l->order);
    tg_free(l->ring, (size_t)(l->places + 1) * sizeof *l->ring);
    data_free(l->data);
    tg_free(l, sizeof *l);
}
