/* dict.c - names and tensors in order. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include "module.h"

const TensorDict nn_no_dict = { .count = -1 };

Tensor *nn_borrow(Tensor *t) { return t ? tensor_scope_return(tensor_scope_open(), t) : NULL; }

/* ---- places by name -------------------------------------------------------------------------- */

/* Open addressing: slot[hash of the name, or the next free slot] is the item's position + 1.  Among equal
 * names the first in order is found.  A dict made by hand has no index and is searched. */
struct TensorDictIndex {
    unsigned mask;
    int count; /* of items when the index was built */
    int slot[];
};

enum { SEARCHED = 16 }; /* dicts with at most so many items have no index */

/* FNV-1a, 32 bits. */
static unsigned hash(const char *name)
{
    unsigned h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static bool indexed(TensorDict dict) { return dict.index && dict.index->count == dict.count; }

static void enter(struct TensorDictIndex *index, const char *name, int place)
{
    unsigned at = hash(name) & index->mask;
    while (index->slot[at]) at = (at + 1) & index->mask;
    index->slot[at] = place + 1, index->count++;
}

/* An index for so many items; NULL without memory. */
static struct TensorDictIndex *new_index(TensorDict dict, int capacity)
{
    unsigned slots = 64;
    while (slots < 2 * (unsigned)capacity) slots *= 2;
    struct TensorDictIndex *index = calloc(1, sizeof *index + slots * sizeof *index->slot);
    if (!index) return NULL;
    index->mask = slots - 1;
    for (int i = 0; i < dict.count; i++) enter(index, dict.item[i].name, i);
    return index;
}

static int find_indexed(TensorDict dict, const char *name)
{
    const struct TensorDictIndex *index = dict.index;
    for (unsigned at = hash(name) & index->mask; index->slot[at]; at = (at + 1) & index->mask)
        if (strcmp(dict.item[index->slot[at] - 1].name, name) == 0) return index->slot[at] - 1;
    return -1;
}

/* ---- dicts ----------------------------------------------------------------------------------- */

bool nn_dict_broken(TensorDict dict, const char *function)
{
    const char *what = dict.count < 0             ? "of a call that failed"
                       : dict.count && !dict.item ? "without items"
                                                  : NULL;
    for (int i = 0; i < dict.count && !what && !indexed(dict); i++)
        if (!dict.item[i].name || !dict.item[i].tensor) what = "with an item that is NULL";
    if (what && !tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the dict is %s", what);
    return what != NULL;
}

void nn_dict_clear(TensorDict *dict)
{
    for (int i = 0; dict->item && i < dict->count; i++) {
        tensor_release(dict->item[i].tensor);
        free(dict->item[i].name);
    }
    dict->count = 0;
    if (!dict->index) return;
    memset(dict->index->slot, 0, (dict->index->mask + 1u) * sizeof *dict->index->slot);
    dict->index->count = 0;
}

void nn_dict_free(TensorDict dict)
{
    nn_dict_clear(&dict);
    free(dict.item), free(dict.index);
}

/* hint: index to try first; dicts of one module share their order. */
int nn_dict_find(TensorDict dict, const char *name, int hint)
{
    if (indexed(dict) && !(hint < dict.count && strcmp(dict.item[hint].name, name) == 0))
        return find_indexed(dict, name);
    for (int k = 0; k < dict.count; k++) {
        int i = (int)(((int64_t)hint + k) % dict.count);
        if (strcmp(dict.item[i].name, name) == 0) return i;
    }
    return -1;
}

static int no_memory(void) { return tensor_fail(TENSOR_ENOMEM, "nn_dict_set", "out of memory"); }

static int grow(TensorDict *dict)
{
    if (dict->count < dict->capacity) return 0;
    int more = dict->capacity ? 2 * dict->capacity : SEARCHED;
    struct TensorDictIndex *index = more > SEARCHED ? new_index(*dict, more) : NULL;
    if (more > SEARCHED && !index) return no_memory();
    TensorDictItem *item = realloc(dict->item, (size_t)more * sizeof *item);
    if (!item) return free(index), no_memory();
    free(dict->index);
    dict->item = item, dict->capacity = more, dict->index = index;
    return 0;
}

int nn_dict_append(TensorDict *dict, const char *name, Tensor *t)
{
    if (grow(dict)) return -1;
    char *copy = strdup(name);
    if (!copy) return no_memory();
    if (indexed(*dict)) enter(dict->index, copy, dict->count);
    else free(dict->index), dict->index = NULL; /* the caller changed the items directly */
    dict->item[dict->count++] = (TensorDictItem){ copy, tensor_retain(t) };
    return 0;
}

int nn_dict_set(TensorDict *dict, const char *name, Tensor *t)
{
    if (!dict || !name || !t) {
        const char *what = !dict ? "dict" : !name ? "name" : "tensor";
        if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, "nn_dict_set", "the %s is NULL", what);
        return -1;
    }
    if (nn_dict_broken(*dict, "nn_dict_set")) return -1;
    int i = nn_dict_find(*dict, name, 0);
    if (i < 0) return nn_dict_append(dict, name, t);
    tensor_retain(t);
    tensor_release(dict->item[i].tensor);
    dict->item[i].tensor = t;
    return 0;
}

Tensor *nn_dict_get(TensorDict dict, const char *name)
{
    if (nn_dict_broken(dict, "nn_dict_get")) return NULL;
    int i = name ? nn_dict_find(dict, name, 0) : -1;
    return i < 0 ? NULL : nn_borrow(dict.item[i].tensor);
}

static int append_copy(TensorDict *copy, const TensorDictItem *item)
{
    TensorScope scope = tensor_scope_open();
    Tensor *t = tensor_clone(tensor_detach(item->tensor));
    int status = t ? nn_dict_append(copy, item->name, t) : -1;
    tensor_scope_close(scope);
    return status;
}

TensorDict nn_dict_clone(TensorDict dict)
{
    TensorDict copy = { 0 };
    if (nn_dict_broken(dict, "nn_dict_clone")) return nn_no_dict;
    for (int i = 0; i < dict.count; i++)
        if (append_copy(&copy, &dict.item[i])) {
            nn_dict_free(copy);
            return nn_no_dict;
        }
    return copy;
}
