/* container.c - modules that are made of others only. */
#include <stdio.h>
#include "module.h"

/* Nothing but the current value is held, so that what no backward reads is freed on the way. */
static Tensor *sequential_forward(Module *self, Tensor *x)
{
    tensor_retain(x);
    for (int i = 0; i < self->child_count && x; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *y = tensor_retain(nn_forward(self->children[i].module, x));
        tensor_scope_close(scope);
        tensor_release(x);
        x = y;
    }
    Tensor *y = nn_borrow(x);
    tensor_release(x);
    return y;
}

static Tensor *identity_forward(Module *self, Tensor *x)
{
    (void)self;
    return nn_borrow(x);
}

static Module *append(Module *m, Module *child, const char *function)
{
    char name[16];
    snprintf(name, sizeof name, "%d", m ? m->child_count : 0);
    return nn_add_child(m, name, child, function);
}

Module *(nn_append)(Module *m, Module *child) { return append(m, child, "nn_append"); }

static const NNKind sequential = { .name = "Sequential",
                                   .function = "nn_sequential",
                                   .forward = sequential_forward };
static const NNKind module_list = { .name = "ModuleList", .function = "nn_module_list" };
static const NNKind identity = { .name = "Identity", .function = "nn_identity", .forward = identity_forward };
NN_REGISTER(sequential);
NN_REGISTER(module_list);
NN_REGISTER(identity);

static Module *with_children(const NNKind *kind, Module *const *modules, int n)
{
    if (n > 0 && !modules) {
        if (!tensor_error_code())
            tensor_fail(TENSOR_ENULL, kind->function, "%d modules, but their list is NULL", n);
        return NULL;
    }
    Module *m = nn_make(kind, NULL);
    for (int i = 0; i < n; i++) {
        if (m) append(m, modules[i], kind->function);
        else nn_free(modules[i]);
    }
    return (nn_done)(m);
}

Module *nn_sequential_args(Module *const *modules, int n) { return with_children(&sequential, modules, n); }
Module *nn_module_list_args(Module *const *modules, int n) { return with_children(&module_list, modules, n); }
Module *nn_identity(void) { return nn_make(&identity, NULL); }
