/* loader.h - a loader's struct. */
#ifndef TG_LOADER_H
#define TG_LOADER_H

#include <pthread.h>
#include "hidden.h"
#include "random/random_state.h"
#include "dataset.h"

typedef enum State { EMPTY, FULL, SPENT } State;

typedef struct Ready {
    State state;
    DatasetBatch batch;
    TensorEvent *arrived; /* behind its copies to the device; NULL: the CPU's */
    int64_t size;
    TensorGenerator after; /* the worker's */
    TensorStatus code;     /* of the error that came instead */
    char text[1024];
} Ready;

struct DataLoader {
    Dataset *data;
    int64_t batch_size, batches;
    bool shuffle, drop_last;
    const char *device;
    int64_t *order, order_count; /* shuffled: of this epoch; else the indices of one batch */
    int64_t next, epoch;         /* the batch that data_next gives next */
    Batch batch;                 /* what the caller sees */
    Ready *held;                 /* its place; NULL: none */
    Ready *ring;
    int places;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* something to do for the worker; it has done something */
    bool wants_thread, has_thread, running, stop, busy;
    int64_t made;  /* batches of this epoch made or begun by the worker */
    int64_t first; /* the first one that it makes: 0, or where a loaded state goes on */
    uint64_t base_seed;
    TensorGenerator sampler, worker; /* of this epoch: before the permutation; before batch `next` */
    TensorDict state;                /* of data_loader_state_dict */
};

HIDDEN_BEGIN
/* loader_start - an epoch, whose base_seed, sampler and worker are set, from batch first on. */
void loader_start(DataLoader *l, int64_t first);
HIDDEN_END

#endif
