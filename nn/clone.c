/* clone.c - a deep copy of a module.
 *
 * A map from originals to copies preserves sharing.  A user's struct is copied as bytes; then every pointer
 * in it that is a key of the map is replaced by its value: members that point to children and parameters. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include "module.h"

typedef struct Pair {
    const void *from;
    void *to;
} Pair;

typedef struct Map {
    Pair *pair;
    int n, capacity;
} Map;

static void *find(const Map *map, const void *from)
{
    for (int i = 0; i < map->n; i++)
        if (map->pair[i].from == from) return map->pair[i].to;
    return NULL;
}

static int put(Map *map, const void *from, void *to)
{
    if (map->n == map->capacity) {
        const int more = map->capacity ? 2 * map->capacity : 64;
        Pair *pair = realloc(map->pair, (size_t)more * sizeof *pair);
        if (!pair) return tensor_fail(TENSOR_ENOMEM, "nn_clone", "out of memory");
        map->pair = pair, map->capacity = more;
    }
    map->pair[map->n++] = (Pair){ from, to };
    return 0;
}

/* ---- tensors: the copies belong to the open scope -------------------------------------------- */

static Tensor *copied(Map *map, Tensor *t)
{
    Tensor *copy = find(map, t);
    if (copy) return copy;
    copy = tensor_clone(tensor_detach(t));
    if (copy && tensor_requires_grad(t)) copy = tensor_requires_grad_(copy, true);
    return copy && !put(map, t, copy) ? copy : NULL;
}

static int copy_tensors(Map *map, ModuleTensor **list, int *count, const ModuleTensor *from, int n)
{
    if (n) *list = calloc((size_t)n, sizeof **list);
    for (int i = 0; i < n && *list; i++) {
        Tensor *t = copied(map, from[i].tensor);
        char *name = t ? strdup(from[i].name) : NULL;
        if (!name) return -1;
        (*list)[(*count)++] = (ModuleTensor){ name, tensor_retain(t), from[i].persistent, NULL };
    }
    return n && !*list ? -1 : 0;
}

/* ---- a struct -------------------------------------------------------------------------------- */

static Module *empty_copy(const Module *m)
{
    Module *copy = nn_new_size(m->size, m->type, m->forward);
    if (copy->spare) return NULL;
    memcpy((char *)copy + sizeof *copy, (const char *)m + sizeof *m, m->size - sizeof *m);
    copy->call = m->call, copy->training = m->training, copy->lazy = m->lazy,
    copy->lazy_dtype = m->lazy_dtype, copy->kind = m->kind;
    const ptrdiff_t moved = (char *)copy - (const char *)m;
    if (m->args) copy->args = (const char *)m->args + moved;
    for (const OpField *f = m->kind ? m->kind->fields : NULL; f && f->name; f++)
        if (f->type == OP_LIST) {
            TensorShape *list = (void *)((char *)(uintptr_t)copy->args + f->offset);
            if (list->dim) list->dim = (const void *)((const char *)list->dim + moved);
        }
    return copy;
}

static void point_at_copies(const Map *map, const Module *m, Module *copy)
{
    const char *const first = (const char *)m;
    for (size_t at = sizeof *m; at + sizeof(void *) <= m->size; at += sizeof(void *)) {
        void *p;
        memcpy(&p, first + at, sizeof p);
        void *to = p ? find(map, p) : NULL;
        if (to) memcpy((char *)copy + at, &to, sizeof to);
    }
}

static void point_at_parametrizations(const Map *map, const Module *m, Module *copy)
{
    for (int i = 0; i < m->parameter_count; i++)
        if (m->parameters[i].computed) copy->parameters[i].computed = find(map, m->parameters[i].computed);
}

/* ---- a tree ---------------------------------------------------------------------------------- */

static Module *copy_module(Map *map, Module *m);

static int copy_children(Map *map, const Module *m, Module *copy)
{
    for (int i = 0; i < m->child_count; i++) {
        Module *before = find(map, m->children[i].module);
        Module *child = before ? nn_retain(before) : copy_module(map, m->children[i].module);
        if (!nn_add_child(copy, m->children[i].name, child, "nn_clone")) return -1;
    }
    return 0;
}

static Module *copy_module(Map *map, Module *m)
{
    if (m->destroy && !m->copied)
        return tensor_fail(TENSOR_EVALUE, "nn_clone", "%s has a destroy, and no copied", m->type), NULL;
    Module *copy = empty_copy(m);
    if (!copy) return NULL;
    const bool done =
        !put(map, m, copy) &&
        !copy_tensors(map, &copy->parameters, &copy->parameter_count, m->parameters, m->parameter_count) &&
        !copy_tensors(map, &copy->buffers, &copy->buffer_count, m->buffers, m->buffer_count) &&
        !copy_children(map, m, copy) && !nn_hooks_copy(copy, m);
    if (done) {
        point_at_copies(map, m, copy);
        point_at_parametrizations(map, m, copy);
        if (!m->copied || !m->copied(copy)) {
            copy->destroy = m->destroy, copy->copied = m->copied;
            return copy;
        }
    }
    if (!tensor_error_code()) tensor_fail(TENSOR_ENOMEM, "nn_clone", "out of memory");
    nn_free(copy);
    return NULL;
}

Module *nn_clone(Module *m)
{
    if (nn_null(m, "nn_clone")) return NULL;
    Map map = { .pair = NULL };
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    Module *copy = copy_module(&map, m);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    free(map.pair);
    return copy;
}
