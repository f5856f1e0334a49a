/* tree.c - operations on a whole tree of modules: tensors, by name or not; train, apply, freeze. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "module.h"

/* ---- walking --------------------------------------------------------------------------------- */

typedef struct Path {
    char text[NN_PATH];
    size_t length;
} Path;

static int push(Path *path, const char *name, char end)
{
    size_t size = strlen(name);
    if (path->length + size + (end != 0) >= NN_PATH)
        return tensor_fail(TENSOR_EVALUE, "nn_state_dict", "a dotted name is over %d bytes: %.60s...",
                           NN_PATH - 1, path->text);
    memcpy(path->text + path->length, name, size);
    path->length += size;
    if (end) path->text[path->length++] = end;
    path->text[path->length] = 0;
    return 0;
}

static void cut(Path *path, size_t length)
{
    path->length = length;
    path->text[length] = 0;
}

static int walk_tensors(ModuleTensor *list, int count, bool buffers, Path *path, NNVisit fn, void *ctx)
{
    size_t length = path->length;
    int status = 0;
    for (int i = 0; i < count && !status; i++) {
        if (list[i].computed) continue;
        status = push(path, list[i].name, 0);
        if (!status) status = fn(ctx, path->text, &list[i], buffers);
        cut(path, length);
    }
    return status;
}

static int walk(Module *m, Path *path, NNVisit fn, void *ctx)
{
    int status = walk_tensors(m->parameters, m->parameter_count, false, path, fn, ctx);
    if (!status) status = walk_tensors(m->buffers, m->buffer_count, true, path, fn, ctx);
    size_t length = path->length;
    for (int i = 0; i < m->child_count && !status; i++) {
        status = push(path, m->children[i].name, '.');
        if (!status) status = walk(m->children[i].module, path, fn, ctx);
        cut(path, length);
    }
    return status;
}

int nn_walk(Module *m, NNVisit fn, void *ctx)
{
    Path path = { .length = 0 };
    return walk(m, &path, fn, ctx);
}

/* ---- lists of parameters --------------------------------------------------------------------- */

int nn_seen_make(NNSeen *s, int64_t most, const char *function)
{
    for (s->mask = 16; s->mask < 2 * (size_t)most; s->mask *= 2) {}
    s->slot = calloc(s->mask--, sizeof *s->slot);
    return s->slot ? 0 : tensor_fail(TENSOR_ENOMEM, function, "out of memory");
}

bool nn_seen_before(NNSeen *s, const Tensor *t)
{
    size_t at = ((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u >> 20 & s->mask;
    while (s->slot[at] && s->slot[at] != t) at = (at + 1) & s->mask;
    const bool before = s->slot[at] != NULL;
    s->slot[at] = t;
    return before;
}

typedef struct Collected {
    NNSeen seen;
    Tensor **at;
    int n;
    TensorDict *dict;
} Collected;

static int count_parameter(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)path, (void)t;
    *(int *)ctx += !is_buffer;
    return 0;
}

static int collect(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)path;
    Collected *c = ctx;
    if (!is_buffer && !nn_seen_before(&c->seen, t->tensor)) c->at[c->n++] = t->tensor;
    return 0;
}

TensorList nn_list_parameters(Module *m)
{
    int most = 0;
    if (nn_null(m, "nn_parameters") || nn_walk(m, count_parameter, &most)) return TENSOR_LIST(NULL, 0);
    if (!m->list || most > m->room) {
        Tensor **grown = realloc(m->list, (size_t)(most ? most : 1) * sizeof *grown);
        if (!grown) {
            tensor_fail(TENSOR_ENOMEM, "nn_parameters", "out of memory");
            return TENSOR_LIST(NULL, 0);
        }
        m->list = grown, m->room = most;
    }
    Collected c = { .at = m->list };
    if (nn_seen_make(&c.seen, most, "nn_parameters")) return TENSOR_LIST(NULL, 0);
    nn_walk(m, collect, &c);
    free(c.seen.slot);
    return TENSOR_LIST(m->list, c.n);
}

static const Module *find_lazy(const Module *m)
{
    const Module *lazy = m->lazy ? m : NULL;
    for (int i = 0; i < m->child_count && !lazy; i++) lazy = find_lazy(m->children[i].module);
    return lazy;
}

bool nn_unmade(const Module *m, const char *function)
{
    if (nn_null(m, function)) return true;
    const Module *lazy = find_lazy(m);
    char path[NN_PATH];
    if (!lazy) return false;
    const bool inside = nn_path(m, lazy, path);
    tensor_fail(TENSOR_EVALUE, function,
                "%s%s%s%s has no parameters before its first forward: run the net once", inside ? path : "",
                inside ? " (" : "", lazy->type, inside ? ")" : "");
    return true;
}

TensorList nn_parameters(Module *m)
{
    return nn_unmade(m, "nn_parameters") ? TENSOR_LIST(NULL, 0) : nn_list_parameters(m);
}

static int name_parameter(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    Collected *c = ctx;
    return is_buffer || nn_seen_before(&c->seen, t->tensor) ? 0 : nn_dict_append(c->dict, path, t->tensor);
}

TensorDict nn_named_parameters(Module *m)
{
    Collected c = { .dict = m ? &m->named : NULL };
    int most = 0;
    if (nn_unmade(m, "nn_named_parameters") || nn_walk(m, count_parameter, &most) ||
        nn_seen_make(&c.seen, most, "nn_named_parameters"))
        return nn_no_dict;
    nn_dict_clear(&m->named);
    const int status = nn_walk(m, name_parameter, &c);
    free(c.seen.slot);
    return status ? nn_no_dict : m->named;
}

static int add_state(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    if (is_buffer && !t->persistent) return 0;
    TensorScope scope = tensor_scope_open();
    Tensor *value = tensor_detach(t->tensor);
    int status = value ? nn_dict_append(ctx, path, value) : -1;
    tensor_scope_close(scope);
    return status;
}

TensorDict nn_state_dict(Module *m)
{
    if (nn_unmade(m, "nn_state_dict")) return nn_no_dict;
    nn_dict_clear(&m->state);
    return nn_walk(m, add_state, &m->state) ? nn_no_dict : m->state;
}

/* ---- by name --------------------------------------------------------------------------------- */

static Module *child_named(const Module *m, const char *name, size_t length)
{
    for (int i = 0; i < m->child_count; i++)
        if (strlen(m->children[i].name) == length && memcmp(m->children[i].name, name, length) == 0)
            return m->children[i].module;
    return NULL;
}

/* Follows the dots of path from *m; returns its last part, or NULL. */
static const char *descend(Module **m, const char *path)
{
    for (const char *dot; *m && (dot = strchr(path, '.')) != NULL; path = dot + 1)
        *m = child_named(*m, path, (size_t)(dot - path));
    return *m ? path : NULL;
}

static Tensor *tensor_named(const ModuleTensor *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].computed ? nn_computed(&list[i]) : list[i].tensor;
    return NULL;
}

static bool no_path(const void *module, const char *path, const char *function)
{
    if (nn_null(module, function)) return true;
    if (!path && !tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the name is NULL");
    return !path;
}

Tensor *nn_own(const Module *m, const char *name)
{
    return tensor_named(m->parameters, m->parameter_count, name);
}

static Tensor *tensor_at(Module *m, const char *path)
{
    const char *name = descend(&m, path);
    Tensor *t = name ? nn_own(m, name) : NULL;
    return name && !t ? tensor_named(m->buffers, m->buffer_count, name) : t;
}

bool nn_has(Module *m, const char *path) { return !no_path(m, path, "nn_has") && tensor_at(m, path) != NULL; }

Tensor *nn_get(Module *m, const char *path)
{
    if (no_path(m, path, "nn_get")) return NULL;
    Tensor *t = tensor_at(m, path);
    if (!t) tensor_fail(TENSOR_EINDEX, "nn_get", "%s has no parameter or buffer \"%s\"", m->type, path);
    return nn_borrow(t);
}

Module *nn_get_module(Module *m, const char *path)
{
    if (no_path(m, path, "nn_get_module")) return NULL;
    Module *at = m;
    const char *name = descend(&at, path);
    if (name && *name) at = child_named(at, name, strlen(name));
    if (!at) tensor_fail(TENSOR_EINDEX, "nn_get_module", "%s has no module \"%s\"", m->type, path);
    return at;
}

/* ---- to all of them -------------------------------------------------------------------------- */

void nn_apply(Module *m, void (*fn)(Module *m, void *ctx), void *ctx)
{
    if (nn_null(m, "nn_apply")) return;
    for (int i = 0; i < m->child_count; i++) nn_apply(m->children[i].module, fn, ctx);
    fn(m, ctx);
}

static void set_to(Module *m, bool training)
{
    if (m->training != training) op_graph_changed();
    m->training = training;
}

static void set_training(Module *m, void *ctx) { set_to(m, *(bool *)ctx); }

void nn_train(Module *module, bool training)
{
    if (!nn_null(module, "nn_train")) nn_apply(module, set_training, &training);
}

typedef struct Modes {
    bool *mode;
    size_t count;
} Modes;

static void count_mode(Module *m, void *ctx)
{
    Modes *modes = ctx;
    if (modes->mode) modes->mode[modes->count] = m->training;
    modes->count++;
}

static void set_mode(Module *m, void *ctx)
{
    Modes *modes = ctx;
    set_to(m, modes->mode[modes->count++]);
}

bool *nn_modes(Module *module)
{
    if (nn_null(module, "nn_modes")) return NULL;
    Modes modes = { .mode = NULL };
    nn_apply(module, count_mode, &modes);
    if (tensor_error_code()) return NULL;
    modes.mode = malloc(modes.count * sizeof *modes.mode + 1);
    if (!modes.mode) return tensor_fail(TENSOR_ENOMEM, "nn_modes", "out of memory"), NULL;
    modes.count = 0;
    nn_apply(module, count_mode, &modes);
    return modes.mode;
}

void nn_restore_modes(Module *module, bool *modes)
{
    if (modes) nn_apply(module, set_mode, &(Modes){ .mode = modes });
    free(modes);
}

void nn_eval(Module *module)
{
    if (!nn_null(module, "nn_eval")) nn_train(module, false);
}

static int drop_grad(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)ctx, (void)path;
    return is_buffer ? 0 : tensor_set_grad(t->tensor, NULL);
}

void nn_zero_grad(Module *module)
{
    if (!nn_null(module, "nn_zero_grad")) nn_walk(module, drop_grad, NULL);
}

static int want_grad(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)path;
    return is_buffer || tensor_requires_grad_(t->tensor, *(bool *)ctx) ? 0 : -1;
}

void nn_requires_grad_(Module *module, bool requires_grad)
{
    if (nn_null(module, "nn_requires_grad_")) return;
    TensorScope scope = tensor_scope_open();
    nn_walk(module, want_grad, &requires_grad);
    tensor_scope_close(scope);
}

int64_t nn_num_parameters(Module *module)
{
    int64_t sum = 0;
    const char *outer = tensor_compose_begin("nn_num_parameters");
    const TensorList list = nn_list_parameters(module);
    tensor_compose_end(outer);
    for (int i = 0; i < list.count; i++) sum += tensor_numel(list.item[i]);
    return sum;
}
