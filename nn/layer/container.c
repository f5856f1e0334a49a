/* container.c - modules composed of others only. */
#include <stdio.h>
#include "../module.h"

/* Child *i; a linear layer together with the activation behind it, which *i then is. */
static Tensor *run_child(Module *self, int *i, Tensor *x)
{
    Module *m = self->children[*i].module,
           *next = *i + 1 < self->child_count ? self->children[*i + 1].module : NULL;
    bool both = next && !nn_seen(next);
    Tensor *y = both ? nn_linear_act(m, x, nn_activation(next), &both) : NULL;
    *i += both;
    return both ? y : nn_forward(m, x);
}

/* Nothing but the current value is held, so that what no backward reads is freed on the way. */
static Tensor *sequential_forward(Module *self, Tensor *x)
{
    tensor_retain(x);
    for (int i = 0; i < self->child_count && x; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *y = tensor_retain(run_child(self, &i, x));
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
static const NNKind module_dict = { .name = "ModuleDict", .function = "nn_module_dict" };
static const NNKind parameter_list = { .name = "ParameterList", .function = "nn_parameter_list" };
static const NNKind parameter_dict = { .name = "ParameterDict", .function = "nn_parameter_dict" };
NN_REGISTER(module_dict);
NN_REGISTER(parameter_list);
NN_REGISTER(parameter_dict);
NN_REGISTER(sequential);
NN_REGISTER(module_list);
NN_REGISTER(identity);

/* A container of n items, whose list may be NULL when there are none; NULL when it is not. */
static Module *container(const NNKind *kind, const void *list, int n)
{
    if (n == 0 || (n > 0 && list)) return nn_make(kind, NULL);
    if (tensor_error_code()) return NULL;
    if (n < 0) tensor_fail(TENSOR_EVALUE, kind->function, "%d items: want 0 or more", n);
    else tensor_fail(TENSOR_ENULL, kind->function, "%d items, but their list is NULL", n);
    return NULL;
}

static Module *with_children(const NNKind *kind, Module *const *modules, int n)
{
    Module *m = container(kind, modules, n);
    for (int i = 0; i < n && modules; i++) {
        if (m) append(m, modules[i], kind->function);
        else nn_free(modules[i]);
    }
    return (nn_done)(m);
}

Module *nn_sequential_args(Module *const *modules, int n) { return with_children(&sequential, modules, n); }
Module *nn_module_list_args(Module *const *modules, int n) { return with_children(&module_list, modules, n); }

Module *nn_module_dict_args(const NNNamedModule *modules, int n)
{
    Module *m = container(&module_dict, modules, n);
    for (int i = 0; i < n && modules; i++) {
        if (m) nn_add_child(m, modules[i].name, modules[i].module, "nn_module_dict");
        else nn_free(modules[i].module);
    }
    return (nn_done)(m);
}

Module *nn_parameter_list_args(TensorList tensors)
{
    Module *m = container(&parameter_list, tensors.item, tensors.count);
    for (int i = 0; i < tensors.count && m; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        nn_register_parameter(m, name, tensors.item[i]);
    }
    return (nn_done)(m);
}

Module *nn_parameter_dict_args(const NNNamedTensor *tensors, int n)
{
    Module *m = container(&parameter_dict, tensors, n);
    for (int i = 0; i < n && m; i++) nn_register_parameter(m, tensors[i].name, tensors[i].tensor);
    return (nn_done)(m);
}

Module *nn_identity(void) { return nn_make(&identity, NULL); }
