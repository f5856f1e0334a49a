/* commit.c - the end of a sweep: gradients reach .grad.
 *
 * On a device those that are added to others go in one call, x + 1 g: the bits of an addition each.  Products
 * that add to .grad themselves would not have them, and would change it before the sweep has succeeded. */
#include <pthread.h>
#include <stdlib.h>
#include <tapegrad/op_row.h>
#include "graph_ops.h"
#include "slots.h"
#include "tape.h"

/* May it be added together with `first`?  A .grad that shares its memory may be part of another leaf's. */
static bool goes_with(const Slot *first, const Slot *s)
{
    const Tensor *old = s->leaf->grad, *g = s->grad;
    return s->alive && old && g && !on_host(g->place) && old->place == g->place && old->dtype == g->dtype &&
           memory_alone(old) && g->flags & FLAG_CONTIGUOUS && (!first || first->grad->dtype == g->dtype) &&
           (!first || first->grad->place == g->place);
}

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (Tensor *const *)a, y = (uintptr_t) * (Tensor *const *)b;
    return (x > y) - (x < y);
}

/* Is a tensor there twice, as the .grad of two leaves?  Sorts them. */
static bool any_twice(Tensor **x, int n)
{
    qsort(x, (size_t)n, sizeof(Tensor *), by_address);
    for (int i = 1; i < n; i++)
        if (x[i] == x[i - 1]) return true;
    return false;
}

/* Those that go together: each .grad, lent, and what is added to it, then each .grad again; *picked of them.
 * NULL: there are fewer than two, or no memory for the list. */
static Tensor **pick(Slot *slot, int64_t count, int *picked)
{
    const Slot *first = NULL;
    int n = 0;
    pthread_mutex_lock(&leaf_lock);
    for (int64_t i = 0; i < count && n < INT32_MAX / 3; i++)
        if ((slot[i].added = goes_with(first, &slot[i]))) first = first ? first : &slot[i], n++;
    Tensor **item = n > 1 ? tg_alloc((size_t)n * 3 * sizeof *item) : NULL, **at = item;
    for (int64_t i = 0; item && i < count; i++)
        if (slot[i].added) *at++ = lend(slot[i].leaf->grad), *at++ = slot[i].grad;
    pthread_mutex_unlock(&leaf_lock);
    for (int i = 0; item && i < n; i++) at[i] = item[2 * i];
    *picked = n;
    return item;
}

/* Adds those that go together; 1, 0: it was not done, or -1.  Not under the lock: it may record an error. */
static int add_together(const char *function, Slot *slot, int64_t count)
{
    int n = 0, done = 0;
    Tensor **item = tensor_error_code() ? NULL : pick(slot, count, &n);
    if (item && !any_twice(item + 2 * n, n)) {
        const double one = 1;
        const OpListRule call = { .function = function,
                                  .rule = "foreach_add", /* of optim/rules/foreach.h; else it is declined */
                                  .step = "x = x + alpha * g",
                                  .arrays = 2,
                                  .count = n,
                                  .item = item,
                                  .numbers = 1,
                                  .number = &one };
        done = op_list_rule(&call);
    }
    for (int i = 0; item && i < n; i++) take_back(item[2 * i]);
    if (item) tg_free(item, (size_t)n * 3 * sizeof *item);
    for (int64_t i = 0; i < count && done != 1; i++) slot[i].added = false;
    return done;
}

static int commit(Slot *slot, bool replace)
{
    Tensor *leaf = slot->leaf, *old = NULL;
    int status = 0;
    pthread_mutex_lock(&leaf_lock);
    if (leaf->grad && !replace) {
        status = graph_ops.add_into(leaf->grad, slot->grad);
        if (!status) bump_version(leaf->grad);
    } else {
        old = leaf->grad;
        leaf->grad = slot->grad;
        slot->grad = NULL;
    }
    pthread_mutex_unlock(&leaf_lock);
    take_back(old);
    return status;
}

int commit_slots(const char *function, Slot *slot, int64_t count, bool replace)
{
    int status = replace || add_together(function, slot, count) >= 0 ? 0 : -1;
    for (int64_t i = 0; i < count && !status; i++)
        if (slot[i].alive && !slot[i].added) status = commit(&slot[i], replace);
    return status;
}
