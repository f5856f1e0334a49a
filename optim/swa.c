/* swa.c - averages of a net's weights, update_bn and SWALR.
 *
 *  - own[i] are the tensors of the net, each once, parameters first; averages[i] are ours.
 *  - While swapped, own[i] hold the averages and averages[i] the net's values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad/foreach.h>
#include <tapegrad/swa_utils.h>
#include "optim.h"

struct AveragedModel {
    OptimAveragedModelArgs options;
    Tensor **own, **averages;
    int count, parameters;
    TensorDict named; /* the entries of the net's state dict ... */
    int *index;       /* ... and which tensor each is: tied ones have several names */
    int64_t averaged;
    bool swapped;
    TensorDict state;
};

static bool is_null(const AveragedModel *m, const char *function)
{
    if (m && !tensor_error_code()) return false;
    if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the averaged model is NULL");
    return true;
}

/* ---- making ---------------------------------------------------------------------------------- */

const OptimAveragedModelArgs optim_averaged_model_defaults = { OPTIM_AVERAGED_MODEL_DEFAULTS };

static int index_of(AveragedModel *m, Tensor *t)
{
    for (int i = 0; i < m->count; i++)
        if (m->own[i] == t) return i;
    m->own[m->count] = tensor_retain(t);
    return m->count++;
}

static int name_entry(AveragedModel *m, const char *name, Tensor *t)
{
    char text[512];
    snprintf(text, sizeof text, "module.%s", name);
    const int status = nn_dict_set(&m->named, text, t);
    if (!status) m->index[m->named.count - 1] = index_of(m, t);
    return status;
}

static int collect(AveragedModel *m, Module *module)
{
    const TensorDict dict = nn_state_dict(module);
    const TensorList parameters = nn_parameters(module);
    if (tensor_error_code()) return -1;
    const size_t most = (size_t)(dict.count + parameters.count) + 1;
    m->own = calloc(most, sizeof *m->own), m->averages = calloc(most, sizeof *m->averages);
    m->index = calloc(most, sizeof *m->index);
    if (!m->own || !m->averages || !m->index)
        return tensor_fail(TENSOR_ENOMEM, "optim_averaged_model", "out of memory");
    for (int i = 0; i < parameters.count; i++) index_of(m, parameters.item[i]);
    m->parameters = m->count;
    for (int i = 0; i < dict.count; i++)
        if (name_entry(m, dict.item[i].name, nn_get(module, dict.item[i].name))) return -1;
    for (int i = 0; i < m->count; i++) {
        m->averages[i] = tensor_retain(tensor_clone(tensor_detach(m->own[i])));
        if (!m->averages[i]) return -1;
    }
    return 0;
}

AveragedModel *optim_averaged_model_args(OptimAveragedModelArgs args)
{
    static const char function[] = "optim_averaged_model";
    if (TENSOR_CHECK_OPTIONS(function, args, optim_averaged_model_defaults)) return NULL;
    if (!args.module) return tensor_fail(TENSOR_ENULL, function, "the module is NULL"), NULL;
    if (args.ema_decay < 0 || args.ema_decay > 1 || (!isnan(args.ema_decay) && args.multi_avg_fn))
        return tensor_fail(TENSOR_EVALUE, function, "ema_decay %g%s: want one in [0, 1], or a function",
                           args.ema_decay, args.multi_avg_fn ? " and a function" : ""),
               NULL;
    AveragedModel *m = calloc(1, sizeof *m);
    if (!m) return tensor_fail(TENSOR_ENOMEM, function, "out of memory"), NULL;
    m->options = args;
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const int status = collect(m, args.module);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    if (!status) return m;
    optim_averaged_free(m);
    return NULL;
}

void optim_averaged_free(AveragedModel *m)
{
    if (!m) return;
    for (int i = 0; i < m->count; i++) tensor_release(m->own[i]), tensor_release(m->averages[i]);
    free(m->own), free(m->averages), free(m->index);
    nn_dict_free(m->named), nn_dict_free(m->state);
    free(m);
}

Module *optim_averaged_module(const AveragedModel *m) { return m ? m->options.module : NULL; }

int64_t optim_averaged_count(const AveragedModel *m)
{
    return is_null(m, "optim_averaged_count") ? -1 : m->averaged;
}

/* ---- an update ------------------------------------------------------------------------------- */

static double weight(const AveragedModel *m)
{
    return isnan(m->options.ema_decay) ? 1 / (double)(m->averaged + 1) : 1 - m->options.ema_decay;
}

/* Integers first, into copies; then floats in one pass, which changes all or nothing. */
static int average(const AveragedModel *m, int n)
{
    Tensor **list = malloc(3 * ((size_t)n + 1) * sizeof *list), **own = list + n, **made = own + n;
    int floats = 0, status = list ? 0 : tensor_fail(TENSOR_ENOMEM, "optim_averaged_update", "out of memory");
    for (int i = 0; i < n && !status; i++) {
        made[i] = NULL;
        if (tensor_dtype_is_float(tensor_dtype(m->own[i])))
            list[floats] = m->averages[i], own[floats++] = m->own[i];
        else {
            Tensor *a = tensor_to(m->averages[i], TENSOR_F64), *w = tensor_to(m->own[i], TENSOR_F64);
            made[i] = tensor_to(tensor_lerp(a, w, weight(m)), tensor_dtype(m->own[i]));
            if (!made[i]) status = -1;
        }
    }
    if (!status)
        status = tensor_foreach_lerp_(TENSOR_LIST(list, floats), TENSOR_LIST(own, floats), weight(m));
    for (int i = 0; i < n && !status; i++)
        if (made[i] && !tensor_copy_(m->averages[i], made[i])) status = -1;
    free(list);
    return status;
}

static int update(AveragedModel *m)
{
    const int n = m->averaged == 0         ? 0
                  : m->options.use_buffers ? m->count
                                           : m->parameters,
              rest = m->count - n;
    int status = 0;
    if (n && m->options.multi_avg_fn)
        status = m->options.multi_avg_fn(TENSOR_LIST(m->averages, n), TENSOR_LIST(m->own, n), m->averaged,
                                         m->options.ctx);
    else if (n) status = average(m, n);
    if (status && !tensor_error_code())
        tensor_fail(TENSOR_EUSER, "optim_averaged_update", "multi_avg_fn failed without saying why");
    if (status || tensor_error_code()) return -1;
    return tensor_foreach_copy_(TENSOR_LIST(m->averages + n, rest), TENSOR_LIST(m->own + n, rest));
}

int optim_averaged_update(AveragedModel *m)
{
    static const char function[] = "optim_averaged_update";
    if (is_null(m, function)) return -1;
    if (m->swapped)
        return tensor_fail(TENSOR_EVALUE, function, "the net has the averages: optim_averaged_swap first");
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const char *outer = tensor_compose_begin(function);
    const int status = update(m);
    tensor_compose_end(outer);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    if (!status) m->averaged++;
    return status;
}

/* ---- turns in the net ------------------------------------------------------------------------ */

/* Both handles of pair i change their data; data of one first, in a handle that keeps it. */
static int exchange(const AveragedModel *m, int i, Tensor *kept)
{
    if (tensor_set_data(m->own[i], m->averages[i])) return -1;
    return tensor_set_data(m->averages[i], kept);
}

int optim_averaged_swap(AveragedModel *m)
{
    static const char function[] = "optim_averaged_swap";
    if (is_null(m, function)) return -1;
    TensorScope scope = tensor_scope_open();
    const char *outer = tensor_compose_begin(function);
    Tensor **kept = calloc((size_t)m->count + 1, sizeof *kept);
    int status = kept ? 0 : tensor_fail(TENSOR_ENOMEM, function, "out of memory"), done = 0;
    for (int i = 0; i < m->count && !status; i++)
        if (!(kept[i] = tensor_detach(m->own[i]))) status = -1;
    while (done < m->count && !status) {
        status = exchange(m, done, kept[done]);
        if (!status) done++;
    }
    for (int i = 0; i < done && status; i++) { /* undo: the averages are in own now */
        tensor_set_data(m->averages[i], m->own[i]);
        tensor_set_data(m->own[i], kept[i]);
    }
    free(kept);
    tensor_compose_end(outer);
    tensor_scope_close(scope);
    if (!status) m->swapped = !m->swapped;
    return status;
}

bool optim_averaged_is_swapped(const AveragedModel *m) { return m && m->swapped; }

/* ---- state ----------------------------------------------------------------------------------- */

static Tensor *averages_of(const AveragedModel *m, int entry)
{
    return (m->swapped ? m->own : m->averages)[m->index[entry]];
}

TensorDict optim_averaged_state_dict(AveragedModel *m)
{
    const TensorDict none = { .count = -1 };
    if (is_null(m, "optim_averaged_state_dict")) return none;
    TensorScope scope = tensor_scope_open();
    nn_dict_free(m->state);
    m->state = (TensorDict){ 0 };
    Tensor *count = tensor_full(SHAPE(), (double)m->averaged, TENSOR_I64);
    int status = count ? nn_dict_set(&m->state, "n_averaged", count) : -1;
    for (int i = 0; i < m->named.count && !status; i++) {
        Tensor *t = tensor_detach(averages_of(m, i));
        status = t ? nn_dict_set(&m->state, m->named.item[i].name, t) : -1;
    }
    tensor_scope_close(scope);
    return status ? none : m->state;
}

static int load(AveragedModel *m, TensorDict dict, Tensor **to, Tensor **from)
{
    static const char function[] = "optim_averaged_load_state_dict";
    const Tensor *count = nn_dict_get(dict, "n_averaged");
    const double averaged = count && tensor_numel(count) == 1 ? tensor_item(count) : -1;
    if (tensor_error_code()) return -1;
    if (!(averaged >= 0 && averaged <= 0x1p53 && averaged == floor(averaged)))
        return tensor_fail(TENSOR_EVALUE, function, "\"n_averaged\" is missing, or no count");
    for (int i = 0; i < dict.count; i++) {
        const char *name = dict.item[i].name;
        if (strcmp(name, "n_averaged") != 0 && !nn_dict_get(m->named, name))
            return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is unexpected", name);
    }
    for (int i = 0; i < m->named.count; i++) {
        const char *name = m->named.item[i].name;
        to[i] = averages_of(m, i), from[i] = nn_dict_get(dict, name);
        if (!from[i]) return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is missing", name);
        const TensorShape a = tensor_shape(to[i]), b = tensor_shape(from[i]);
        if (!tensor_shape_equal(a, b))
            return tensor_fail(TENSOR_ESHAPE, function, "\"%s\" has another shape", name);
    }
    if (tensor_foreach_copy_(TENSOR_LIST(to, m->named.count), TENSOR_LIST(from, m->named.count))) return -1;
    m->averaged = (int64_t)averaged;
    return 0;
}

int optim_averaged_load_state_dict(AveragedModel *m, TensorDict dict)
{
    static const char function[] = "optim_averaged_load_state_dict";
    if (is_null(m, function)) return -1;
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const char *outer = tensor_compose_begin(function);
    const size_t n = (size_t)m->named.count + 1;
    Tensor **lists = malloc(2 * n * sizeof *lists);
    const int status =
        lists ? load(m, dict, lists, lists + n) : tensor_fail(TENSOR_ENOMEM, function, "out of memory");
    free(lists);
    tensor_compose_end(outer);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}

/* ---- batch norms ----------------------------------------------------------------------------- */

typedef struct Norms {
    Module **module;
    double *momentum; /* as they were */
    int count, most;
    TensorDict buffers; /* as they were */
} Norms;

static bool is_batch_norm(const Module *m)
{
    return m->kind && strncmp(m->kind->name, "BatchNorm", 9) == 0 && m->buffer_count > 0;
}

static double *momentum_of(Module *m) { return &((NNBatchNormArgs *)(uintptr_t)m->args)->momentum; }

static void note(Module *m, void *ctx)
{
    Norms *n = ctx;
    if (is_batch_norm(m) && n->module && n->count < n->most)
        n->momentum[n->count] = *momentum_of(m), n->module[n->count++] = m;
    else if (is_batch_norm(m)) n->most++; /* the first round counts */
}

static int reset(Module *m)
{
    return nn_init_zeros_(nn_get(m, "running_mean")) && nn_init_ones_(nn_get(m, "running_var")) &&
                   nn_init_zeros_(nn_get(m, "num_batches_tracked"))
               ? 0
               : -1;
}

static int pass_all(DataLoader *loader, Module *module, const Norms *n)
{
    for (int i = 0; i < n->count; i++) {
        if (reset(n->module[i])) return -1;
        *momentum_of(n->module[i]) = -1; /* the mean over all batches */
    }
    data_reset(loader);
    bool any = false;
    for (const Batch *b; (b = data_next(loader)) != NULL; any = true) {
        TensorScope scope = tensor_scope_open();
        const Tensor *y = nn_forward(module, b->x);
        tensor_scope_close(scope);
        if (!y) return -1;
    }
    if (!any && !tensor_error_code())
        tensor_fail(TENSOR_EVALUE, "optim_update_bn", "the loader gives no batch");
    return tensor_error_code() ? -1 : 0;
}

static int with_copies(DataLoader *loader, Module *module, Norms *n)
{
    n->buffers = nn_dict_clone(nn_state_dict(module));
    if (n->buffers.count < 0) return -1;
    const bool training = module->training;
    nn_train(module, true);
    const int status = pass_all(loader, module, n);
    nn_train(module, training);
    for (int i = 0; i < n->count; i++) *momentum_of(n->module[i]) = n->momentum[i];
    for (int i = 0; i < n->buffers.count && status; i++) /* of one dtype: copies that cannot fail */
        tensor_copy_(nn_get(module, n->buffers.item[i].name), n->buffers.item[i].tensor);
    nn_dict_free(n->buffers);
    return status;
}

int optim_update_bn(DataLoader *loader, Module *module)
{
    static const char function[] = "optim_update_bn";
    Norms n = { 0 };
    if (tensor_error_code()) return -1;
    if (!loader || !module) return tensor_fail(TENSOR_ENULL, function, "the loader or the module is NULL");
    nn_apply(module, note, &n);
    if (n.most == 0) return 0;
    n.module = malloc((size_t)n.most * (sizeof *n.module + sizeof *n.momentum));
    if (!n.module) return tensor_fail(TENSOR_ENOMEM, function, "out of memory");
    n.momentum = (double *)(void *)(n.module + n.most);
    nn_apply(module, note, &n);
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const int status = with_copies(loader, module, &n);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    free(n.module);
    return status;
}
