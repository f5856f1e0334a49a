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

Module *nn_append(void *module, Module *child)
{
    Module *m = module;
    char name[16];
    snprintf(name, sizeof name, "%d", m ? m->child_count : 0);
    return nn_child(m, name, child);
}

static Module *with_children(Module *m, Module *const *modules, int n)
{
    for (int i = 0; i < n; i++) nn_append(m, modules[i]);
    return nn_done(m);
}

Module *nn_sequential_args(Module *const *modules, int n)
{
    return with_children(nn_new_size(sizeof(Module), "Sequential", sequential_forward), modules, n);
}

Module *nn_module_list_args(Module *const *modules, int n)
{
    return with_children(nn_new_size(sizeof(Module), "ModuleList", NULL), modules, n);
}

Module *nn_identity(void) { return nn_done(nn_new_size(sizeof(Module), "Identity", identity_forward)); }
