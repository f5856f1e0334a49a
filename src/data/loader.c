/* loader.c - batches in order, shuffled or not, made ahead by a thread.
 *
 *  - The caller's thread draws the order of an epoch before its first batch.
 *  - Batches go through a ring, in order: batch i of an epoch through place i modulo the places.  A place is
 * empty, then full (the worker made its batch), then spent (the caller is done with it), and empty again.
 *  - The worker releases what it made: so its memory goes back to the lists of the thread that asks for it
 * again.
 *  - An error in the worker travels in the ring, and becomes the caller's when its batch is asked for.
 *  - The worker lives from the first batch to data_loader_free, and waits between epochs.
 *  - Without a worker the caller's thread makes each batch in place 0.
 *  - Copies to a device run beside what it computes; it waits for them when their batch is asked for.
 *
 *  - The generator with which a worker made a batch travels with it: the state of a loader (loader_state.c)
 * is that after the last batch that was given, however far ahead the worker is.
 *
 * The lock guards the places' states, running, stop, busy and made.  order, worker and epoch are written by
 * the caller while the worker is idle. */
#include <tapegrad/ops.h>
#include <signal.h>
#include <stdio.h>
#include "loader.h"

const DataLoaderArgs data_loader_defaults = { DATA_LOADER_DEFAULTS };

/* ---- one batch ------------------------------------------------------------------------------- */

static const int64_t *indices(DataLoader *l, int64_t first, int64_t n)
{
    if (l->shuffle) return l->order + first;
    for (int64_t i = 0; i < n; i++) l->order[i] = first + i;
    return l->order;
}

/* To the device: *t becomes another tensor. */
static int move(Tensor **t, const char *device)
{
    if (!*t) return 0;
    TensorScope scope = tensor_scope_open();
    Tensor *there = scope_failed(scope) ? NULL : tensor_retain(tensor_to_device(*t, device));
    tensor_scope_close(scope);
    if (!there) return -1;
    tensor_release(*t);
    *t = there;
    return 0;
}

static int make(DataLoader *l, int64_t i, Ready *to)
{
    int64_t first = i * l->batch_size, left = l->data->size - first,
            n = left < l->batch_size ? left : l->batch_size;
    to->size = n;
    if (l->data->batch(l->data, indices(l, first, n), n, &to->batch)) return -1;
    if (!l->device) return 0;
    int status = 0;
    TENSOR_COPY_STREAM(l->device)
    {
        status = move(&to->batch.x, l->device) || move(&to->batch.y, l->device) ||
                 tensor_event_record(to->arrived);
    }
    if (status) dataset_drop(&to->batch);
    return status ? -1 : 0;
}

/* ---- the worker ------------------------------------------------------------------------------ */

static void fill(DataLoader *l, int64_t i, Ready *to)
{
    if (i == l->first) *tensor_default_generator() = l->worker; /* for datasets that draw */
    to->code = TENSOR_OK;
    if (make(l, i, to)) {
        to->code = tensor_error_code() ? tensor_error_code() : TENSOR_EUSER;
        snprintf(to->text, sizeof to->text, "%s",
                 tensor_error_code() ? tensor_error() : "the dataset failed without saying why");
    }
    to->after = *tensor_default_generator();
    tensor_error_clear();
}

static Ready *find_spent(const DataLoader *l)
{
    for (int i = 0; i < l->places; i++)
        if (l->ring[i].state == SPENT) return &l->ring[i];
    return NULL;
}

static void *work(void *ctx)
{
    DataLoader *l = ctx;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        Ready *place = find_spent(l);
        int64_t i = -1;
        if (!place && l->running && l->made < l->batches && l->ring[l->made % l->places].state == EMPTY)
            i = l->made++, place = &l->ring[i % l->places];
        if (!place) {
            pthread_cond_wait(&l->work, &l->lock);
            continue;
        }
        l->busy = true;
        pthread_mutex_unlock(&l->lock);
        if (i < 0) dataset_drop(&place->batch);
        else fill(l, i, place);
        pthread_mutex_lock(&l->lock);
        place->state = i < 0 ? EMPTY : FULL, l->busy = false;
        pthread_cond_broadcast(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Signals are for the program's own threads.  Without a thread the caller makes the batches. */
static void start_worker(DataLoader *l)
{
    sigset_t all, before;
    if (!l->wants_thread || l->has_thread) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    l->has_thread = pthread_create(&l->thread, NULL, work, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->wants_thread = l->has_thread;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

void loader_start(DataLoader *l, int64_t first)
{
    if (l->shuffle) {
        Mt19937 sampler = l->sampler.mt;
        mt_randperm(&sampler, l->order, l->data->size);
    }
    start_worker(l);
    pthread_mutex_lock(&l->lock);
    l->next = l->made = l->first = first, l->running = true;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
}

static void begin_epoch(DataLoader *l)
{
    TensorGenerator *g = random_generator();
    l->base_seed = (uint64_t)mt_random_i64(&g->mt); /* PyTorch draws it also where nothing uses it */
    if (l->shuffle) tensor_generator_manual_seed(&l->sampler, (uint64_t)mt_random_i64(&g->mt));
    tensor_generator_manual_seed(&l->worker, l->base_seed);
    loader_start(l, 0);
}

/* The caller is done with what it held. */
static void let_go(DataLoader *l)
{
    if (!l->held) return;
    if (!l->has_thread) dataset_drop(&l->held->batch);
    pthread_mutex_lock(&l->lock);
    l->held->state = l->has_thread ? SPENT : EMPTY;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
    l->held = NULL, l->batch.x = l->batch.y = NULL;
}

static void end_epoch(DataLoader *l)
{
    pthread_mutex_lock(&l->lock);
    l->running = false;
    while (l->busy) pthread_cond_wait(&l->done, &l->lock);
    for (int i = 0; i < l->places; i++)
        if (l->ring[i].state == FULL) l->ring[i].state = SPENT;
    pthread_cond_signal(&l->work);
    while (l->has_thread && find_spent(l))
        pthread_cond_wait(&l->done, &l->lock); /* the next epoch begins with empty places */
    pthread_mutex_unlock(&l->lock);
    l->epoch++;
}

void data_reset(DataLoader *l)
{
    if (!l || !l->running) return;
    let_go(l);
    end_epoch(l);
}

/* The place of the next batch, full. */
static Ready *next_place(DataLoader *l)
{
    if (!l->has_thread) {
        l->ring->code = TENSOR_OK;
        if (make(l, l->next, l->ring)) return NULL;
        l->ring->state = FULL;
        return l->ring;
    }
    Ready *place = &l->ring[l->next % l->places];
    pthread_mutex_lock(&l->lock);
    while (place->state != FULL) pthread_cond_wait(&l->done, &l->lock);
    pthread_mutex_unlock(&l->lock);
    if (!place->code) return place;
    tensor_fail(place->code, NULL, "%s", place->text);
    return NULL;
}

Batch *data_next(DataLoader *l)
{
    if (!l) {
        if (!tensor_error_code()) fail(TENSOR_ENULL, "data_next", "the loader is NULL");
        return NULL;
    }
    let_go(l);
    if (tensor_error_code()) return NULL; /* a loop over batches ends at the first error */
    if (!l->running) begin_epoch(l);
    Ready *place = l->next < l->batches ? next_place(l) : NULL;
    if (!place) {
        end_epoch(l);
        return NULL;
    }
    if (l->has_thread) l->worker = place->after;
    l->held = place;
    if (place->arrived && tensor_event_wait(place->arrived)) return NULL;
    l->batch = (Batch){ place->batch.x, place->batch.y, place->size, l->next++, l->epoch };
    return &l->batch;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

int64_t data_batches(const DataLoader *l) { return l ? l->batches : 0; }
int64_t data_samples(const DataLoader *l) { return l ? l->data->size : 0; }

static void free_loader(DataLoader *l)
{
    tg_free(l->order, (size_t)l->order_count * sizeof *l->order);
    tg_free(l->ring, (size_t)l->places * sizeof *l->ring);
    tg_free(l, sizeof *l);
}

/* One place more than batches are made ahead: the caller holds one. */
static DataLoader *new_loader(DataLoaderArgs args)
{
    int64_t n = args.dataset->size, b = args.batch_size;
    DataLoader *l = tg_calloc(sizeof *l);
    if (!l) return NULL;
    l->batch_size = b, l->shuffle = args.shuffle, l->drop_last = args.drop_last,
    l->wants_thread = args.prefetch > 0;
    l->batches = n / b + (n % b && !args.drop_last);
    l->order_count = args.shuffle || n < b ? n : b, l->places = args.prefetch + 1;
    if (l->order_count < INT64_MAX / 16) l->order = tg_alloc((size_t)l->order_count * sizeof *l->order);
    if (l->order) l->ring = tg_calloc((size_t)l->places * sizeof *l->ring);
    if (l->ring) return l;
    free_loader(l);
    return NULL;
}

DataLoader *data_loader_args(DataLoaderArgs args)
{
    DataLoader *l = NULL;
    const Place *place = NULL;
    if (TENSOR_CHECK_OPTIONS("data_loader", args, data_loader_defaults)) return NULL;
    if (!args.dataset) {
        if (!tensor_error_code()) fail(TENSOR_ENULL, "data_loader", "the dataset is NULL");
    } else if (args.batch_size < 1 || args.prefetch < 0 || args.prefetch > 1024) {
        fail(TENSOR_EVALUE, "data_loader", "batch_size %lld, prefetch %d: at least 1; 0 to 1024",
             (long long)args.batch_size, args.prefetch);
    } else if (!args.device || (place = find_place(args.device, "data_loader"))) {
        l = new_loader(args);
        if (!l) fail_memory("data_loader");
    }
    if (!l) {
        data_free(args.dataset);
        return NULL;
    }
    l->data = args.dataset;
    l->device = place && place != &cpu_place ? place->name : NULL;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->done, NULL);
    for (int i = 0; l->device && i < l->places; i++)
        if (!(l->ring[i].arrived = tensor_event(l->device, false))) {
            data_loader_free(l);
            return NULL;
        }
    return l;
}

void data_loader_free(DataLoader *l)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
    if (l->has_thread) pthread_join(l->thread, NULL);
    for (int i = 0; i < l->places; i++) {
        dataset_drop(&l->ring[i].batch);
        tensor_event_free(l->ring[i].arrived);
    }
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->done);
    data_free(l->data);
    nn_dict_free(l->state);
    free_loader(l);
}
