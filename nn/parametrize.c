/* parametrize.c - parameters that modules compute.
 *
 *  - A computed parameter keeps its place in its module's list, because layers find theirs by number; walks
 *    over parameters skip it, and nn_param and nn_get compute it.
 *  - Its originals are the parameters of the module parametrizations.<name>, whose children compute it, one
 *    after the other. */
#include <stdio.h>
#include <string.h>
#include "module.h"

/* ---- one list of parametrizations ------------------------------------------------------------ */

static void compute(Module *self, NNCall *c)
{
    NNCall step = { .results = 1 };
    for (int i = 0; i < self->parameter_count; i++) step.in[i] = nn_param(self, i);
    for (int i = 0; i < self->child_count; i++) {
        if (nn_run(self->children[i].module, &step)) return;
        step = (NNCall){ .in[0] = step.out[0], .results = 1 };
    }
    c->out[0] = step.in[0];
}

static const NNKind parametrization_list = { .name = "ParametrizationList",
                                             .function = "nn_register_parametrization",
                                             .call = compute };

Tensor *nn_computed(const ModuleTensor *t)
{
    NNCall c = { .in[0] = nn_param(t->computed, 0), .results = 1 };
    nn_run(t->computed, &c);
    return c.out[0];
}

static ModuleTensor *slot_named(Module *m, const char *name, const char *function)
{
    if (nn_null(m, function)) return NULL;
    for (int i = 0; i < m->parameter_count && name; i++)
        if (strcmp(m->parameters[i].name, name) == 0) return &m->parameters[i];
    tensor_fail(TENSOR_EINDEX, function, "%s has no parameter \"%s\"%s", m->type, name ? name : "(NULL)",
                m->lazy ? " before its first forward" : "");
    return NULL;
}

static int keeps_shape(const Tensor *was, const Tensor *is, const Module *by, const char *function)
{
    if (!is) return -1;
    if (tensor_shape_equal(tensor_shape(was), tensor_shape(is)) && tensor_dtype(was) == tensor_dtype(is))
        return 0;
    return tensor_fail(TENSOR_ESHAPE, function, "%s changes the shape or dtype of the parameter", by->type);
}

/* The module `parametrizations` of m. */
static Module *dict_of(Module *m, const char *function)
{
    for (int i = 0; i < m->child_count; i++)
        if (strcmp(m->children[i].name, "parametrizations") == 0) return m->children[i].module;
    return nn_add_child(m, "parametrizations", nn_module_dict_args(NULL, 0), function);
}

/* Moves the originals into a new list with one parametrization. */
static int parametrize(Module *m, ModuleTensor *slot, Tensor *const *original, int n, Module *by,
                       const char *function)
{
    const bool wants = tensor_requires_grad(slot->tensor), failed = m->failed;
    Module *list = nn_make(&parametrization_list, NULL);
    if (!list) return nn_free(by), -1;
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, n == 1 ? "original" : "original%d", i);
        Tensor *t = nn_register_parameter(list, name, original[i]);
        if (t) tensor_requires_grad_(t, wants);
    }
    nn_add_child(list, "0", by, function);
    nn_train(list, m->training);
    if (!(list = (nn_done)(list))) return -1;
    ModuleTensor trial = { .computed = list };
    Module *dict = keeps_shape(slot->tensor, nn_computed(&trial), by, function) ? NULL : dict_of(m, function);
    if (!dict) nn_free(list);
    else list = nn_add_child(dict, slot->name, list, function);
    m->failed = failed;
    if (!dict || !list) return -1;
    tensor_retain(list->parameters[0].tensor);
    tensor_release(slot->tensor);
    slot->tensor = list->parameters[0].tensor, slot->computed = list;
    return 0;
}

/* Appends a parametrization to the list. */
static int append(ModuleTensor *slot, Module *by, const char *function)
{
    NNCall c = { .in[0] = nn_computed(slot), .results = 1 };
    nn_train(by, slot->computed->training);
    if (!c.in[0] || nn_run(by, &c) || keeps_shape(c.in[0], c.out[0], by, function)) return nn_free(by), -1;
    const int status = (nn_append)(slot->computed, by) ? 0 : -1;
    slot->computed->failed = false;
    return status;
}

static int add(Module *m, const char *name, Module *by, Tensor *const *original, int n, const char *function)
{
    ModuleTensor *slot = by ? slot_named(m, name, function) : NULL;
    if (!by) nn_null(by, function);
    if (!slot) return nn_free(by), -1;
    TensorScope scope = tensor_scope_open();
    const int status = slot->computed
                           ? append(slot, by, function)
                           : parametrize(m, slot, original ? original : &slot->tensor, n, by, function);
    tensor_scope_close(scope);
    return status;
}

int nn_register_parametrization(Module *m, const char *name, Module *by)
{
    return add(m, name, by, NULL, 1, "nn_register_parametrization");
}

bool nn_is_parametrized(const Module *m, const char *name)
{
    for (int i = 0; m && i < m->parameter_count; i++)
        if (m->parameters[i].computed && (!name || strcmp(m->parameters[i].name, name) == 0)) return true;
    return false;
}

int nn_remove_parametrizations(Module *m, const char *name)
{
    ModuleTensor *slot = slot_named(m, name, "nn_remove_parametrizations");
    if (!slot) return -1;
    if (!slot->computed)
        return tensor_fail(TENSOR_EVALUE, "nn_remove_parametrizations", "\"%s\" of %s is not computed", name,
                           m->type);
    TensorScope scope = tensor_scope_open();
    const bool wants = tensor_requires_grad(slot->tensor);
    Tensor *value = tensor_clone(tensor_detach(nn_computed(slot))), *t = value;
    if (slot->computed->parameter_count == 1) { /* the same tensor: an optimizer holds it */
        t = slot->tensor;
        if (value && (tensor_set_grad(t, NULL) || tensor_set_data(t, value))) value = NULL;
    }
    if (value) {
        Module *dict = dict_of(m, "nn_remove_parametrizations");
        tensor_retain(tensor_requires_grad_(t, wants));
        tensor_release(slot->tensor);
        slot->tensor = t, slot->computed = NULL;
        nn_remove_child(dict, name);
        if (!dict->child_count) nn_remove_child(m, "parametrizations");
    }
    tensor_scope_close(scope);
    return value ? 0 : -1;
}

/* m, if status is 0; else it is freed. */
static Module *finished(Module *m, int status)
{
    if (!status) return m;
    nn_free(m);
    return NULL;
}

/* ---- weight norm: g v / |v| ------------------------------------------------------------------ */

typedef struct WeightNormArgs {
    int dim;
} WeightNormArgs;
static const WeightNormArgs norm_defaults;

static void weight_norm_call(Module *self, NNCall *c)
{
    c->out[0] = tensor_weight_norm(c->in[1], c->in[0], ((const WeightNormArgs *)self->args)->dim);
}

static const NNKind weight_norm = { .name = "_WeightNorm",
                                    .function = "nn_weight_norm",
                                    NN_OPTIONS(WeightNormArgs, norm_defaults, NULL),
                                    .call = weight_norm_call };

const NNWeightNormArgs nn_weight_norm_defaults = { NN_WEIGHT_NORM_DEFAULTS };

Module *nn_weight_norm_args(NNWeightNormArgs a)
{
    static const char function[] = "nn_weight_norm";
    if (TENSOR_CHECK_OPTIONS(function, a, nn_weight_norm_defaults)) return finished(a.module, -1);
    const ModuleTensor *slot = slot_named(a.module, a.name, function);
    if (!slot) return finished(a.module, -1);
    TensorScope scope = tensor_scope_open();
    Tensor *v = tensor_clone(tensor_detach(slot->computed ? nn_computed(slot) : slot->tensor)),
           *g = tensor_norm_except_dim(v, 2, a.dim);
    int status = -1;
    if (slot->computed)
        tensor_fail(TENSOR_EVALUE, function, "\"%s\" of %s is computed already", a.name, a.module->type);
    else if (g)
        status = add(a.module, a.name, nn_make(&weight_norm, &(WeightNormArgs){ a.dim }),
                     (Tensor *[]){ g, v }, 2, function);
    tensor_scope_close(scope);
    return finished(a.module, status);
}

/* ---- spectral norm: W / (u^T W v) ------------------------------------------------------------ */

typedef struct SpectralNormArgs {
    int dim, steps;
    double eps;
} SpectralNormArgs;
static const SpectralNormArgs spectral_defaults;
enum { U, V }; /* its buffers */

static Tensor *as_matrix(Tensor *weight, int dim)
{
    return tensor_flatten(dim ? tensor_movedim(weight, dim, 0) : weight, 1, -1);
}

static int power_method(Module *m, Tensor *matrix, int steps)
{
    const double eps = ((const SpectralNormArgs *)m->args)->eps;
    const bool was = tensor_set_grad_enabled(false);
    Tensor *u = nn_buffer(m, U), *v = nn_buffer(m, V), *done = u;
    for (int i = 0; i < steps && done; i++) {
        done = tensor_copy_(u, tensor_normalize(tensor_matmul(matrix, v), .dim = 0, .eps = eps));
        if (done)
            done =
                tensor_copy_(v, tensor_normalize(tensor_matmul(tensor_t(matrix), u), .dim = 0, .eps = eps));
    }
    tensor_set_grad_enabled(was);
    return done ? 0 : -1;
}

static Tensor *spectral_norm_forward(Module *self, Tensor *weight)
{
    const SpectralNormArgs *a = self->args;
    if (tensor_ndim(weight) < 2) return tensor_normalize(weight, .dim = 0, .eps = a->eps);
    TensorScope scope = tensor_scope_open();
    Tensor *matrix = as_matrix(weight, a->dim), *y = NULL;
    if (matrix && (!self->training || !power_method(self, tensor_detach(matrix), a->steps))) {
        Tensor *u = tensor_clone(nn_buffer(self, U)), *v = tensor_clone(nn_buffer(self, V));
        y = tensor_div(weight, tensor_dot(u, tensor_matmul(matrix, v)));
    }
    return tensor_scope_return(scope, y);
}

static const NNKind spectral_norm = { .name = "_SpectralNorm",
                                      .function = "nn_spectral_norm",
                                      NN_OPTIONS(SpectralNormArgs, spectral_defaults, NULL),
                                      .forward = spectral_norm_forward };

static Tensor *direction(int64_t n, const Tensor *like, double eps)
{
    return tensor_normalize(tensor_randn(SHAPE(n), tensor_dtype(like)), .dim = 0, .eps = eps);
}

static Module *make_spectral(const NNSpectralNormArgs *a, Tensor *weight)
{
    int dim = a->dim;
    if (dim == -1) dim = strncmp(a->module->type, "ConvTranspose", 13) == 0;
    if (dim < 0) dim += tensor_ndim(weight);
    Module *m = nn_make(&spectral_norm, &(SpectralNormArgs){ dim, a->n_power_iterations, a->eps });
    if (tensor_ndim(weight) < 2 || !m) return m;
    Tensor *matrix = as_matrix(tensor_detach(weight), dim);
    if (matrix) {
        nn_register_buffer(m, "_u", direction(tensor_size(matrix, 0), weight, a->eps));
        nn_register_buffer(m, "_v", direction(tensor_size(matrix, 1), weight, a->eps));
    }
    if (!matrix || m->failed || nn_to_device(m, tensor_device(weight)) || power_method(m, matrix, 15))
        m->failed = true;
    return (nn_done)(m);
}

const NNSpectralNormArgs nn_spectral_norm_defaults = { NN_SPECTRAL_NORM_DEFAULTS };

Module *nn_spectral_norm_args(NNSpectralNormArgs a)
{
    static const char function[] = "nn_spectral_norm";
    if (TENSOR_CHECK_OPTIONS(function, a, nn_spectral_norm_defaults)) return finished(a.module, -1);
    const ModuleTensor *slot = slot_named(a.module, a.name, function);
    if (!slot) return finished(a.module, -1);
    if (a.n_power_iterations < 1) {
        tensor_fail(TENSOR_EVALUE, function, "%d steps: want 1 or more", a.n_power_iterations);
        return finished(a.module, -1);
    }
    TensorScope scope = tensor_scope_open();
    Tensor *weight = slot->computed ? nn_computed(slot) : slot->tensor;
    Module *by = weight ? make_spectral(&a, weight) : NULL;
    const int status = by ? add(a.module, a.name, by, NULL, 1, function) : -1;
    tensor_scope_close(scope);
    return finished(a.module, status);
}
