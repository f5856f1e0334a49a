/* loader_state.c - a loader's position as a dict, and back.
 *
 * Loading reads all of the dict into a Position before it touches the loader. */
#include <tapegrad/autograd.h>
#include "loader.h"

enum { EPOCH, YIELDED, FINISHED, BASE_SEED, SAMPLES, BATCH_SIZE, SHUFFLE, DROP_LAST, NUMBERS };
static const char *const number_names[NUMBERS] = { "epoch",      "_num_yielded", "_iterator_finished",
                                                   "_base_seed", "samples",      "batch_size",
                                                   "shuffle",    "drop_last" };
static const char sampler_name[] = "_sampler_iter_state.generator",
                  worker_name[] = "_worker_snapshots.worker_0.generator";

typedef struct Position {
    int64_t number[NUMBERS];
    TensorGenerator sampler, worker;
} Position;

static const TensorDict no_dict = { .count = -1 };

static void read_numbers(const DataLoader *l, int64_t *number)
{
    const int64_t now[NUMBERS] = { l->epoch,      l->running ? l->next : 0,
                                   !l->running,   (int64_t)l->base_seed,
                                   l->data->size, l->batch_size,
                                   l->shuffle,    l->drop_last };
    memcpy(number, now, sizeof now);
}

/* ---- out ------------------------------------------------------------------------------------- */

static int put_generator(DataLoader *l, const char *name, const TensorGenerator *g)
{
    Tensor *state = tensor_generator_get_state(g);
    return state ? nn_dict_set(&l->state, name, state) : -1;
}

static int put_all(DataLoader *l)
{
    int64_t number[NUMBERS];
    int status = 0;
    read_numbers(l, number);
    for (int i = 0; i < NUMBERS && !status; i++) {
        Tensor *t = tensor_from_data(&number[i], SHAPE(), TENSOR_I64);
        status = t ? nn_dict_set(&l->state, number_names[i], t) : -1;
    }
    if (!status && l->running && l->shuffle) status = put_generator(l, sampler_name, &l->sampler);
    return !status && l->running ? put_generator(l, worker_name, &l->worker) : status;
}

TensorDict data_loader_state_dict(DataLoader *l)
{
    if (!l) {
        if (!tensor_error_code()) fail(TENSOR_ENULL, "data_loader_state_dict", "the loader is NULL");
        return no_dict;
    }
    nn_dict_free(l->state);
    l->state = (TensorDict){ 0 };
    TensorScope scope = tensor_scope_open();
    int status = scope_failed(scope) ? -1 : put_all(l);
    tensor_scope_close(scope);
    return status ? no_dict : l->state;
}

/* ---- in -------------------------------------------------------------------------------------- */

static int refuse(const char *name, const char *what)
{
    return fail(TENSOR_EVALUE, "data_loader_load_state_dict", "\"%s\" %s", name, what);
}

static const Tensor *get(TensorDict dict, const char *name)
{
    const Tensor *t = nn_dict_get(dict, name);
    if (!t && !tensor_error_code()) refuse(name, "is missing");
    return t;
}

static int get_numbers(TensorDict dict, Position *p)
{
    for (int i = 0; i < NUMBERS; i++) {
        const Tensor *t = get(dict, number_names[i]);
        if (!t) return -1;
        if (t->numel != 1 || t->dtype != TENSOR_I64) return refuse(number_names[i], "is not one i64");
        p->number[i] = tensor_item_i64(t);
    }
    return 0;
}

static int get_generator(TensorDict dict, const char *name, TensorGenerator *g)
{
    const Tensor *t = get(dict, name);
    char op[120];
    snprintf(op, sizeof op, "data_loader_load_state_dict: \"%s\"", name);
    return t ? random_set_state(op, g, t) : -1;
}

/* Is there an entry of that name? */
static bool has_entry(const char *name, bool sampler, bool worker)
{
    bool has = (sampler && strcmp(name, sampler_name) == 0) || (worker && strcmp(name, worker_name) == 0);
    for (int i = 0; i < NUMBERS; i++) has |= strcmp(name, number_names[i]) == 0;
    return has;
}

static int check_numbers(const DataLoader *l, const int64_t *number)
{
    int64_t mine[NUMBERS];
    read_numbers(l, mine);
    for (int i = SAMPLES; i < NUMBERS; i++)
        if (number[i] != mine[i])
            return fail(TENSOR_EVALUE, "data_loader_load_state_dict", "\"%s\" is %lld there, %lld here",
                        number_names[i], (long long)number[i], (long long)mine[i]);
    if (number[EPOCH] < 0) return refuse("epoch", "is negative");
    if (number[YIELDED] < 0 || number[YIELDED] > l->batches)
        return refuse("_num_yielded", "is no number of batches in an epoch");
    return number[FINISHED] >> 1 ? refuse("_iterator_finished", "is neither 0 nor 1") : 0;
}

static int check_dict(TensorDict dict)
{
    if (dict.count < 0 || (dict.count && !dict.item))
        return tensor_error_code()
                   ? -1
                   : fail(TENSOR_ENULL, "data_loader_load_state_dict", "the dict is of a call that failed");
    for (int i = 0; i < dict.count; i++)
        if (check_null(dict.item[i].tensor, "data_loader_load_state_dict", i + 1)) return -1;
    return 0;
}

static int read_dict(const DataLoader *l, TensorDict dict, Position *p)
{
    if (check_dict(dict) || get_numbers(dict, p) || check_numbers(l, p->number)) return -1;
    const bool running = !p->number[FINISHED];
    if (running && l->shuffle && get_generator(dict, sampler_name, &p->sampler)) return -1;
    if (running && get_generator(dict, worker_name, &p->worker)) return -1;
    for (int i = 0; i < dict.count; i++)
        if (!has_entry(dict.item[i].name, running && l->shuffle, running))
            return refuse(dict.item[i].name, "is unexpected");
    return 0;
}

int data_loader_load_state_dict(DataLoader *l, TensorDict dict)
{
    if (!l)
        return tensor_error_code() ? -1
                                   : fail(TENSOR_ENULL, "data_loader_load_state_dict", "the loader is NULL");
    Position p = { 0 };
    TensorScope scope = tensor_scope_open();
    int status = scope_failed(scope) ? -1 : read_dict(l, dict, &p);
    tensor_scope_close(scope);
    if (status) return -1;
    data_reset(l);
    l->epoch = p.number[EPOCH], l->base_seed = (uint64_t)p.number[BASE_SEED];
    if (p.number[FINISHED]) return 0;
    l->sampler = p.sampler, l->worker = p.worker;
    loader_start(l, p.number[YIELDED]);
    return 0;
}
