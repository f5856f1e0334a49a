/* module.c - making modules and owning them.
 *
 *  - A freed module stays for a while, zeroed: functions recognize it by refs = 0.
 *  - refs counts owners; a parent is one of them, so parents <= refs.
 *  - A failed module is still a module: nn_done or the user frees it.
 *  - Without memory nn_new returns the thread's spare block, marked as failed; a constructor's writes to
 *    it are discarded. */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "module.h"

static _Thread_local union {
    Module module;
    char bytes[NN_MODULE_MAX];
} spare;

bool nn_null(const void *module, const char *function)
{
    if (module && ((const Module *)module)->refs > 0) return false;
    if (module) tensor_fail(TENSOR_EVALUE, function, "the module was freed before");
    else if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the module is NULL");
    return true;
}

int nn_refuse(const Module *m, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tensor_fail(TENSOR_EVALUE, m->kind->function, "%s", text);
}

static int no_memory(void) { return tensor_fail(TENSOR_ENOMEM, "nn_new", "out of memory"); }

Module *nn_new_size(size_t size, const char *type, Tensor *(*forward)(Module *self, Tensor *x))
{
    bool fits = size >= sizeof(Module) && size <= NN_MODULE_MAX;
    Module *m = fits ? calloc(1, size) : NULL;
    if (!m) {
        if (fits) no_memory();
        else
            tensor_fail(TENSOR_EVALUE, "nn_new", "a module of %zu bytes: want %zu to %d", size,
                        sizeof(Module), NN_MODULE_MAX);
        m = memset(&spare, 0, sizeof spare);
        m->failed = m->spare = true;
    }
    m->type = type, m->forward = forward, m->training = true, m->refs = 1, m->size = size;
    return m;
}

Module *nn_new_call(size_t size, const char *type, void (*forward)(Module *self, NNCall *call))
{
    Module *m = nn_new_size(size, type, NULL);
    m->call = forward;
    return m;
}

Module *(nn_done)(Module *m)
{
    if (!m || !m->failed) return m;
    nn_free(m);
    return NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int find_tensor(const ModuleTensor *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return i;
    return -1;
}

static int find_child(const Module *m, const char *name)
{
    for (int i = 0; i < m->child_count; i++)
        if (strcmp(m->children[i].name, name) == 0) return i;
    return -1;
}

/* May name be that of a parameter ('p'), buffer ('b') or child ('c')? */
static int check_name(const Module *m, const char *name, char kind, const char *function)
{
    if (!name || !*name || strchr(name, '.'))
        return tensor_fail(TENSOR_EVALUE, function, "\"%s\" in %s: a name is not empty and has no dot",
                           name ? name : "(NULL)", m->type);
    bool taken = (kind != 'p' && find_tensor(m->parameters, m->parameter_count, name) >= 0) ||
                 (kind != 'b' && find_tensor(m->buffers, m->buffer_count, name) >= 0) ||
                 (kind != 'c' && find_child(m, name) >= 0);
    if (taken)
        return tensor_fail(TENSOR_EVALUE, function, "%s has something else under the name \"%s\"", m->type,
                           name);
    return 0;
}

/* ---- children -------------------------------------------------------------------------------- */

static bool contains(const Module *m, const Module *wanted)
{
    if (m == wanted) return true;
    for (int i = 0; i < m->child_count; i++)
        if (contains(m->children[i].module, wanted)) return true;
    return false;
}

static _Atomic unsigned tree_changes;
unsigned nn_tree_changes(void) { return tree_changes; }

static void drop_child(Module *child)
{
    tree_changes++;
    op_graph_changed();
    child->parents--;
    nn_free(child);
}

static int add_child(Module *m, const char *name, Module *child, const char *function)
{
    if (check_name(m, name, 'c', function)) return -1;
    tree_changes++;
    op_graph_changed();
    int i = find_child(m, name);
    if (i >= 0) {
        Module *old = m->children[i].module;
        m->children[i].module = child;
        child->parents++;
        drop_child(old);
        return 0;
    }
    char *copy = strdup(name);
    ModuleChild *more = copy ? realloc(m->children, (size_t)(m->child_count + 1) * sizeof *more) : NULL;
    if (!more) {
        free(copy);
        return no_memory();
    }
    m->children = more;
    m->children[m->child_count++] = (ModuleChild){ copy, child };
    child->parents++;
    return 0;
}

/* Does the caller own child?  If not, it must not be freed. */
static bool is_given(const Module *m, const char *name, const Module *child, const char *function)
{
    if (!name) name = "(NULL)";
    if (!child) {
        if (!tensor_error_code())
            tensor_fail(TENSOR_ENULL, function, "\"%s\" in %s is NULL", name, m ? m->type : "NULL");
    } else if (child->refs == 0) {
        tensor_fail(TENSOR_EVALUE, function, "\"%s\" is a module that was freed before", name);
    } else if (child->parents >= child->refs) {
        tensor_fail(TENSOR_EVALUE, function,
                    "%s is a child already: pass nn_retain of it to use it as \"%s\" too", child->type, name);
    } else if (m && contains(child, m)) {
        tensor_fail(TENSOR_EVALUE, function, "\"%s\", a %s, contains the %s that it shall be part of", name,
                    child->type, m->type);
    } else {
        return true;
    }
    return false;
}

Module *nn_add_child(Module *m, const char *name, Module *child, const char *function)
{
    if (!is_given(m, name, child, function)) child = NULL;
    if (child && !nn_null(m, function) && !m->failed && add_child(m, name, child, function) == 0)
        return child;
    nn_free(child);
    if (m) m->failed = true;
    return NULL;
}

void nn_remove_child(Module *m, const char *name)
{
    const int i = find_child(m, name);
    if (i < 0) return;
    const ModuleChild gone = m->children[i];
    memmove(m->children + i, m->children + i + 1, (size_t)(--m->child_count - i) * sizeof *m->children);
    drop_child(gone.module);
    free(gone.name);
}

Module *(nn_child)(Module *m, const char *name, Module *child)
{
    return nn_add_child(m, name, child, "nn_child");
}

/* ---- parameters and buffers ------------------------------------------------------------------ */

static int put_tensor(ModuleTensor **list, int *count, const char *name, Tensor *t, bool persistent)
{
    int i = find_tensor(*list, *count, name);
    if (i >= 0) {
        tensor_retain(t);
        tensor_release((*list)[i].tensor);
        (*list)[i].tensor = t, (*list)[i].persistent = persistent;
        return 0;
    }
    char *copy = strdup(name);
    ModuleTensor *more = copy ? realloc(*list, (size_t)(*count + 1) * sizeof *more) : NULL;
    if (!more) {
        free(copy);
        return no_memory();
    }
    *list = more;
    more[(*count)++] = (ModuleTensor){ copy, tensor_retain(t), persistent, NULL };
    return 0;
}

static int check_tensor(const Module *m, const char *name, const Tensor *t, char kind, const char *function)
{
    if (!t) {
        if (!tensor_error_code())
            tensor_fail(TENSOR_ENULL, function, "\"%s\" of %s is NULL", name ? name : "(NULL)", m->type);
        return -1;
    }
    return check_name(m, name, kind, function);
}

static int check_parameter(const Module *m, const char *name, const Tensor *t)
{
    static const char function[] = "nn_register_parameter";
    if (check_tensor(m, name, t, 'p', function)) return -1;
    if (!tensor_dtype_is_float(tensor_dtype(t)))
        return tensor_fail(TENSOR_EDTYPE, function, "\"%s\" of %s is %s: register it as a buffer", name,
                           m->type, tensor_dtype_name(tensor_dtype(t)));
    if (!tensor_is_leaf(t))
        return tensor_fail(TENSOR_EGRAD, function, "\"%s\" of %s is the result of an op: tensor_detach it",
                           name, m->type);
    return 0;
}

Tensor *(nn_register_parameter)(Module *m, const char *name, Tensor *t)
{
    if (nn_null(m, "nn_register_parameter")) return NULL;
    if (!m->failed && !check_parameter(m, name, t) && tensor_requires_grad_(t, true) &&
        !put_tensor(&m->parameters, &m->parameter_count, name, t, true))
        return t;
    m->failed = true;
    return NULL;
}

const NNBufferArgs nn_buffer_defaults = { NN_BUFFER_DEFAULTS };

Tensor *nn_register_buffer_args(NNBufferArgs args)
{
    Module *m = args.module;
    if (TENSOR_CHECK_OPTIONS("nn_register_buffer", args, nn_buffer_defaults) ||
        nn_null(m, "nn_register_buffer"))
        return NULL;
    if (!m->failed && !check_tensor(m, args.name, args.tensor, 'b', "nn_register_buffer") &&
        !put_tensor(&m->buffers, &m->buffer_count, args.name, args.tensor, args.persistent))
        return args.tensor;
    m->failed = true;
    return NULL;
}

Tensor *nn_new_parameter(Module *m, const char *name, TensorShape shape, TensorDtype dtype)
{
    if (m->failed) return NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *t = nn_register_parameter(m, name, tensor_empty(shape, dtype));
    tensor_scope_close(scope); /* the module retains it */
    return t;
}

/* ---- kinds: a linker section that each file adds to ------------------------------------------ */

extern const NNKind *const __start_tapegrad_modules[] __attribute__((weak, visibility("hidden"))),
    *const __stop_tapegrad_modules[] __attribute__((weak, visibility("hidden")));

int nn_kind_count(void) { return (int)(__stop_tapegrad_modules - __start_tapegrad_modules); }

const NNKind *nn_kind_at(int i) { return i >= 0 && i < nn_kind_count() ? __start_tapegrad_modules[i] : NULL; }

const NNKind *nn_kind_find(const char *name)
{
    for (int i = 0; name && i < nn_kind_count(); i++) {
        const NNKind *kind = nn_kind_at(i);
        if (strcmp(kind->name, name) == 0 || strcmp(kind->function, name) == 0) return kind;
    }
    return NULL;
}

static size_t aligned(size_t bytes) { return (bytes + 15) / 16 * 16; }

static int lists_of(const NNKind *kind)
{
    int n = 0;
    for (const OpField *f = kind->fields; f && f->name; f++) n += f->type == OP_LIST;
    return n;
}

/* The options lie behind the module's struct, the sizes of their lists behind them. */
static int keep_args(Module *m, const NNKind *kind, size_t at, const void *args)
{
    char *to = (char *)m + at;
    int64_t(*list)[TENSOR_MAX_DIMS] = (void *)(to + aligned(kind->args));
    memcpy(to, args, kind->args);
    m->args = to;
    for (const OpField *f = kind->fields; f && f->name; f++) {
        const int *value = (void *)(to + f->offset);
        if (f->choices && tensor_check_choice(kind->function, f->name, *value, f->choices)) return -1;
        if (f->type != OP_LIST) continue;
        TensorShape *shape = (void *)(to + f->offset);
        if (shape->ndim < 0 || shape->ndim > TENSOR_MAX_DIMS)
            return tensor_fail(TENSOR_ESHAPE, kind->function, "%s: %d sizes: at most %d", f->name,
                               shape->ndim, TENSOR_MAX_DIMS);
        if (shape->ndim && !shape->dim)
            return tensor_fail(TENSOR_ENULL, kind->function, "%s: %d sizes, but they are NULL", f->name,
                               shape->ndim);
        for (int d = 0; d < shape->ndim; d++) (*list)[d] = shape->dim[d];
        shape->dim = *list++;
    }
    return 0;
}

static void free_tensors(ModuleTensor *list, int count)
{
    for (int i = 0; i < count; i++) {
        tensor_release(list[i].tensor);
        free(list[i].name);
    }
    free(list);
}

/* ---- sizes that the first input tells ---- */

static int64_t *lazy_option(const Module *m)
{
    return (int64_t *)(void *)((char *)(uintptr_t)m->args + m->kind->lazy);
}

int nn_infer(Module *m, const Tensor *x)
{
    const int dim = m->kind->lazy_dim, rank = tensor_ndim(x);
    if (dim < 0 ? -dim > rank : dim >= rank)
        return tensor_fail(TENSOR_ESHAPE, m->kind->function, "a first input of rank %d: want %d or more",
                           rank, dim < 0 ? -dim : dim + 1);
    *lazy_option(m) = tensor_size(x, dim);
    if (!m->kind->init(m, m->args) && !m->failed && !nn_to(m, m->lazy_dtype) &&
        !nn_to_device(m, tensor_device(x))) {
        m->lazy = false;
        return 0;
    }
    *lazy_option(m) = NN_LAZY, m->failed = false;
    free_tensors(m->parameters, m->parameter_count), free_tensors(m->buffers, m->buffer_count);
    m->parameters = m->buffers = NULL, m->parameter_count = m->buffer_count = 0;
    return -1;
}

Module *nn_make(const NNKind *kind, const void *args)
{
    if (!kind) return nn_null(NULL, "nn_make"), NULL;
    size_t at = aligned(kind->size ? kind->size : sizeof(Module)),
           lists = (size_t)lists_of(kind) * TENSOR_MAX_DIMS * sizeof(int64_t);
    Module *m = nn_new_size(at + aligned(kind->args) + lists, kind->name, kind->forward);
    m->kind = kind;
    if (!args) args = kind->defaults;
    if (kind->args && args && tensor_check_options(kind->function, args, kind->defaults, kind->args))
        m->failed = true;
    if (!m->failed && kind->args && keep_args(m, kind, at, args)) m->failed = true;
    m->lazy = !m->failed && kind->lazy_dim && *lazy_option(m) == NN_LAZY;
    if (!m->failed && !m->lazy && kind->init && kind->init(m, m->args)) m->failed = true;
    m->call = kind->call, m->destroy = kind->destroy, m->copied = kind->copied;
    return (nn_done)(m);
}

/* ---- the end --------------------------------------------------------------------------------- */

Module *nn_retain(Module *module)
{
    if (module && nn_null(module, "nn_retain")) return NULL;
    if (module) module->refs++;
    return module;
}

enum { GONE = 64 };
static _Atomic(Module *) gone[GONE];
static atomic_uint went;

static void destroy(Module *m)
{
    if (m->destroy) m->destroy(m);
    for (int i = 0; i < m->child_count; i++) {
        drop_child(m->children[i].module);
        free(m->children[i].name);
    }
    free(m->children);
    free_tensors(m->parameters, m->parameter_count);
    free_tensors(m->buffers, m->buffer_count);
    free(m->list);
    nn_hooks_free(m);
    nn_dict_free(m->named);
    nn_dict_free(m->state);
    memset(m, 0, m->size);
    free(atomic_exchange(&gone[atomic_fetch_add(&went, 1) % GONE], m));
}

void nn_free(Module *m)
{
    if (!m || m->spare || nn_null(m, "nn_free")) return;
    if (m->parents > 0 && m->parents >= m->refs) {
        tensor_fail(TENSOR_EVALUE, "nn_free", "%s is a child: it is freed with its parent", m->type);
        return;
    }
    if (m->refs == 1) destroy(m);
    else m->refs--;
}
