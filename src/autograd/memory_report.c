/* memory_report.c - a table of memory: tensors by the line that made them, and storages kept for backward.
 *
 * Each storage is counted once: for the first tensor that shares it, else for the op that saved it. */
#include <stdlib.h>
#include "tape.h"
#include "trace/callsite.h"

typedef struct Item {
    const Storage *storage;
    const void *site; /* of a tensor */
    const char *op;   /* that saved it; NULL: a tensor */
    int64_t bytes, count;
    size_t order; /* tensors: the latest first */
    int dtype, ndim;
    int64_t shape[TENSOR_MAX_DIMS];
} Item;

typedef struct Items {
    Item *item;
    size_t count, room;
    bool failed;
} Items;

/* Memory from the system, because it must not be counted. */
static void put(Items *list, const Item *item)
{
    if (list->count == list->room) {
        const size_t more = list->room ? 2 * list->room : 256;
        Item *grown = realloc(list->item, more * sizeof *grown);
        if (!grown) {
            list->failed = true;
            return;
        }
        list->item = grown, list->room = more;
    }
    list->item[list->count] = *item;
    list->item[list->count].order = list->count;
    list->count++;
}

static Item item_of(const Storage *s, int dtype, int ndim, const int64_t *shape)
{
    Item i = { .storage = s, .bytes = (int64_t)s->bytes, .count = 1, .dtype = dtype, .ndim = ndim };
    memcpy(i.shape, shape, (size_t)ndim * sizeof *shape);
    return i;
}

static void put_tensor(const Tensor *x, void *list)
{
    if (!x->storage) return; /* released: only its struct remains, held by a graph */
    Item i = item_of(x->storage, x->dtype, x->ndim, x->shape);
    i.site = x->site;
    put(list, &i);
}

static void put_saved(Items *list)
{
    for (int64_t k = 0; my_tape && k < my_tape->count; k++) {
        const Entry *e = my_tape->at[k];
        for (int s = 0; e && !e->freed && s < e->saves; s++) {
            const Saved *v = &e->saved[s];
            if (!v->storage) continue; /* packed */
            Item i = item_of(v->storage, v->dtype, v->ndim, v->shape);
            i.op = e->op->name;
            put(list, &i);
        }
    }
}

/* ---- counting each storage once, and equal lines together ------------------------------------ */

static int compare(const void *a, const void *b)
{
    return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static int by_storage(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    int order = compare(x->storage, y->storage);
    if (!order) order = !!x->op - !!y->op;
    return order ? order : (x->order < y->order) - (x->order > y->order);
}

static int by_line(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    int order = !!x->op - !!y->op;
    if (!order && x->op) order = strcmp(x->op, y->op);
    if (!order) order = compare(x->site, y->site);
    if (!order) order = x->dtype - y->dtype;
    if (!order) order = x->ndim - y->ndim;
    return order ? order : memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape);
}

static int by_bytes(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void sort(Items *list, int (*order)(const void *, const void *))
{
    if (list->count) qsort(list->item, list->count, sizeof *list->item, order);
}

static void join(Items *list)
{
    size_t n = 0;
    sort(list, by_storage);
    for (size_t i = 1; i < list->count; i++)
        if (list->item[i].storage == list->item[i - 1].storage) list->item[i].bytes = 0;
    for (size_t i = 0; i < list->count;
         i++) /* a storage that a tensor holds is not listed under the op that saved it */
        if (!list->item[i].op || list->item[i].bytes) list->item[n++] = list->item[i];
    list->count = n, n = 0;
    sort(list, by_line);
    for (size_t i = 0; i < list->count; i++) {
        if (n && by_line(&list->item[n - 1], &list->item[i]) == 0)
            list->item[n - 1].bytes += list->item[i].bytes, list->item[n - 1].count++;
        else list->item[n++] = list->item[i];
    }
    list->count = n;
    sort(list, by_bytes);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_device(FILE *file, const char *name, const TensorMemory *m)
{
    fprintf(file, "%s: %.3f MB in use, %.3f MB at most, %.3f MB kept for reuse\n", name,
            (double)m->in_use * 1e-6, (double)m->peak * 1e-6, (double)m->cached * 1e-6);
}

static void write_devices(FILE *file)
{
    const Place *place[32];
    TensorMemory m = tensor_memory();
    write_device(file, "cpu", &m);
    for (int i = 0, n = open_places(place, 32); i < n; i++) {
        m = tensor_device_memory(place[i]->name);
        write_device(file, place[i]->name, &m);
    }
}

static void write_line(FILE *file, const Item *i)
{
    char where[256] = "";
    if (i->site && !callsite_text(i->site, where, sizeof where)) where[0] = 0;
    fprintf(file, "%12.3f %7lld  %s %s%s%s%s%s\n", (double)i->bytes * 1e-6, (long long)i->count,
            tensor_dtype_name((TensorDtype)i->dtype), shape_text((TensorShape){ i->ndim, i->shape }),
            i->op ? ", saved by " : "", i->op ? i->op : "", *where ? ", made at " : "", where);
}

int64_t tensor_memory_report(FILE *file)
{
    static const char name[] = "tensor_memory_report";
    Items list = { NULL, 0, 0, false };
    int64_t sum[2] = { 0, 0 };
    if (!file) return fail(TENSOR_ENULL, name, "the file is NULL");
    for_each_tracked(put_tensor, &list);
    put_saved(&list);
    if (list.failed) {
        free(list.item);
        return fail_memory(name);
    }
    join(&list);
    write_devices(file);
    fprintf(file, "%12s %7s  what\n", "MB", "count");
    for (size_t i = 0; i < list.count; i++) {
        sum[list.item[i].op != NULL] += list.item[i].bytes;
        write_line(file, &list.item[i]);
    }
    fprintf(file, "%.3f MB in tensors%s, %.3f MB saved for backward alone\n", (double)sum[0] * 1e-6,
            tensors_are_tracked() ? "" : " (which are listed after tensor_track_leaks(true))",
            (double)sum[1] * 1e-6);
    free(list.item);
    return sum[0] + sum[1];
}
