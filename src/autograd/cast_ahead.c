/* cast_ahead.c - casts of a block's leaves on a device, in one launch.
 *
 *  - A training step casts the same parameters as the one before.  A block of autocast remembers which leaves
 *    it cast; the first cast of the next block casts all of them, and op `to` then takes the results.
 *  - The list holds the leaves' structs, so that no address is reused, and keeps no data of theirs alive.
 *    A leaf that ends in this thread leaves it.
 *  - It holds at most MOST leaves: those behind are cast one by one.
 *  - A result is taken only if its leaf has still the storage and the version that were cast. */
#include "modes.h"
#include "tensor/thread.h"

enum { MOST = 4096 };

typedef struct Ahead {
    Tensor *leaf; /* held */
    Tensor *cast; /* lent; NULL: none, or taken */
    const Storage *storage;
    uint32_t version;
    bool used; /* in this block */
} Ahead;

static THREAD_LOCAL struct {
    Ahead *at; /* in the order of their casts */
    int64_t count, room, next;
    int ready;     /* casts that wait to be taken */
    bool launched; /* in this block */
} list;

static uint32_t version_of(const Tensor *x)
{
    return atomic_load_explicit(&x->storage->version, memory_order_relaxed);
}

/* Mostly the one behind the last that was found. */
static Ahead *find(const Tensor *leaf)
{
    for (int64_t i = 0; i < list.count; i++, list.next++) {
        if (list.next >= list.count) list.next = 0;
        if (list.at[list.next].leaf == leaf) return &list.at[list.next++];
    }
    return NULL;
}

static void drop_cast(Ahead *a)
{
    if (a->cast) list.ready--;
    take_back(a->cast);
    a->cast = NULL;
}

static void forget_leaf(Tensor *leaf)
{
    Ahead *a = find(leaf);
    if (!a) return;
    drop_cast(a);
    const int64_t behind = list.count - (a - list.at) - 1;
    memmove(a, a + 1, (size_t)behind * sizeof *a);
    list.count--;
    drop_leaf(leaf);
}

/* Without memory for it the leaf is not remembered, which is no error. */
static void remember(Tensor *leaf)
{
    Ahead *a = find(leaf);
    if (a) {
        a->used = true;
        return;
    }
    if (list.count == MOST) return;
    if (list.count == list.room) {
        const int64_t more = list.room ? 2 * list.room : 64;
        Ahead *grown = tg_grow(list.at, (size_t)list.room * sizeof *grown, (size_t)more * sizeof *grown);
        if (!grown) return;
        list.at = grown, list.room = more;
    }
    hold_leaf(leaf);
    list.at[list.count++] = (Ahead){ .leaf = leaf, .used = true };
    leaf_ended = forget_leaf;
}

/* Does the list's leaf lie there as a cast reads it? */
static bool may_cast(const Tensor *x, const Place *place)
{
    return x->storage && x->place == place && x->dtype == TENSOR_F32 && (x->flags & FLAG_CONTIGUOUS) &&
           !x->entry && x->numel > 0;
}

static int cast_all(const Place *place, int dtype, void **array, int64_t *count)
{
    ListCastArgs args = { .from = TENSOR_F32, .to = dtype, .array = array, .count = count };
    for (int64_t i = 0; i < list.count; i++) {
        Ahead *a = &list.at[i];
        Tensor *leaf = lend_living(a->leaf);
        if (!leaf) continue;
        Tensor *cast = may_cast(leaf, place) ? new_tensor(shape_of(leaf), dtype, place) : NULL;
        if (cast) {
            a->cast = lend(cast), a->storage = leaf->storage, a->version = version_of(leaf);
            tensor_release(cast);
            list.ready++;
            array[2 * args.n] = leaf->data, array[2 * args.n + 1] = a->cast->data;
            count[args.n++] = leaf->numel;
        }
        take_back(leaf);
        if (tensor_error_code()) return -1;
    }
    return args.n < 2 ? 1 : RUN_KERNEL("to", place, list_cast, &args);
}

static int launch(const Place *place, int dtype)
{
    const size_t words = (size_t)list.count * 3 * sizeof(int64_t);
    int64_t *count = tg_alloc(words);
    if (!count) return fail_memory("to");
    const int status = cast_all(place, dtype, (void **)(count + list.count), count);
    tg_free(count, words);
    for (int64_t i = 0; i < list.count && status; i++) drop_cast(&list.at[i]);
    return status > 0 || (status && take_decline()) ? 0 : status;
}

int cast_ahead(Tensor *leaf, int dtype)
{
    if (on_host(leaf->place) || !TAKES(leaf->place, list_cast, TENSOR_F32)) return 0;
    if (!list.launched && list.count > 1 && launch(leaf->place, dtype)) return -1;
    list.launched = true;
    remember(leaf);
    return 0;
}

Tensor *cast_ahead_take(const Tensor *x, int dtype)
{
    if (likely(!list.ready) || x->entry) return NULL;
    Ahead *a = find(x);
    if (!a || !a->cast || a->cast->dtype != dtype) return NULL;
    Tensor *cast = a->storage == x->storage && a->version == version_of(x) ? borrow(a->cast) : NULL;
    drop_cast(a);
    return cast;
}

void cast_ahead_end_block(void)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < list.count; i++) {
        Ahead *a = &list.at[i];
        drop_cast(a);
        if (!a->used) {
            drop_leaf(a->leaf);
            continue;
        }
        a->used = false;
        list.at[kept++] = *a;
    }
    list.count = kept, list.next = 0, list.launched = false;
}

void cast_ahead_forget(void)
{
    for (int64_t i = 0; i < list.count; i++) list.at[i].used = false;
    cast_ahead_end_block();
    tg_free(list.at, (size_t)list.room * sizeof *list.at);
    list.at = NULL, list.room = 0, leaf_ended = NULL;
}
