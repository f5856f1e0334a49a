/* checkpoint_parts.c - what a checkpoint consists of, and how a file's content gets into it.
 *
 * Before a part is loaded all of them are copied.  Where one fails, those before it get their copies back. 
 * The numbers come last: nothing can fail then. */
#include <stdlib.h>
#include <string.h>
#include "checkpoint.h"

static const char scalars[] = "scalars";

int checkpoint_no_memory(const char *function)
{
    return tensor_fail(TENSOR_ENOMEM, function, "out of memory");
}

char *checkpoint_copy(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

int checkpoint_check(const Checkpoint *run, const char *function)
{
    if (!run && !tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the checkpoint is NULL");
    return run ? 0 : -1;
}

/* ---- naming them ----------------------------------------------------------------------------- */

static bool taken(const Checkpoint *run, const char *name)
{
    for (int i = 0; i < run->parts; i++)
        if (strcmp(run->part[i]->name, name) == 0) return true;
    return strcmp(name, scalars) == 0;
}

static int check_name(const char *name, bool used, const char *function)
{
    if (!name) return tensor_fail(TENSOR_ENULL, function, "the name is NULL");
    if (!*name || strchr(name, '.'))
        return tensor_fail(TENSOR_EVALUE, function, "\"%s\": names are not empty and have no dot", name);
    return used ? tensor_fail(TENSOR_EVALUE, function, "there is a \"%s\" already", name) : 0;
}

static Part *add(Checkpoint *run, const char *name, const void *what, const char *function)
{
    if (checkpoint_check(run, function)) return NULL;
    if (!what) {
        if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "what is to be saved is NULL");
        return NULL;
    }
    if (check_name(name, name && taken(run, name), function)) return NULL;
    Part **part = realloc(run->part, (size_t)(run->parts + 1) * sizeof *part);
    if (part) run->part = part;
    Part *p = part ? calloc(1, sizeof *p) : NULL;
    if (p) p->name = checkpoint_copy(name);
    if (p && p->name) return run->part[run->parts++] = p;
    free(p);
    checkpoint_no_memory(function);
    return NULL;
}

static int fill(Part *p, TensorDict (*save)(void *), int (*load)(void *, TensorDict), void *ctx)
{
    if (p) p->save = save, p->load = load, p->ctx = ctx;
    return p ? 0 : -1;
}

int io_checkpoint_part(Checkpoint *run, const char *name, TensorDict (*save)(void *ctx),
                       int (*load)(void *ctx, TensorDict dict), void *ctx)
{
    const char *both = save && load ? name : NULL;
    return fill(add(run, name, both, "io_checkpoint_part"), save, load, ctx);
}

/* One more kind of part: its two functions, called with their type. */
#define PART(kind, type, save, load)                                                               \
    static TensorDict save_##kind(void *ctx) { return save((type *)ctx); }                         \
    static int load_##kind(void *ctx, TensorDict dict) { return load((type *)ctx, dict); }         \
    int io_checkpoint_##kind(Checkpoint *run, const char *name, type *what)                        \
    {                                                                                              \
        return fill(add(run, name, what, "io_checkpoint_" #kind), save_##kind, load_##kind, what); \
    }
PART(module, Module, nn_state_dict, nn_load_state_dict)
PART(optimizer, Optimizer, optim_state_dict, optim_load_state_dict)
PART(scheduler, Scheduler, optim_scheduler_state_dict, optim_scheduler_load_state_dict)
PART(scaler, GradScaler, optim_scaler_state_dict, optim_scaler_load_state_dict)
PART(averaged, AveragedModel, optim_averaged_state_dict, optim_averaged_load_state_dict)

/* A net that has the averages gets its own values while it is saved or loaded. */
int checkpoint_swap_out(const Checkpoint *run)
{
    for (int i = 0; i < run->parts; i++) {
        Part *p = run->part[i];
        if (p->save != save_averaged || !optim_averaged_is_swapped(p->ctx)) continue;
        if (optim_averaged_swap(p->ctx)) return -1;
        p->swapped = true;
    }
    return 0;
}

int checkpoint_swap_in(const Checkpoint *run, int status)
{
    for (int i = 0; i < run->parts; i++)
        if (run->part[i]->swapped && optim_averaged_swap(run->part[i]->ctx)) status = -1;
        else run->part[i]->swapped = false;
    return status;
}

PART(metric, Metric, nn_metric_state_dict, nn_metric_load_state_dict)
PART(loader, DataLoader, data_loader_state_dict, data_loader_load_state_dict)

static TensorGenerator *generator_of(const Part *p)
{
    return p->generator ? p->generator : tensor_default_generator();
}

static TensorDict save_generator(void *ctx)
{
    static const TensorDict none = { .count = -1 };
    Part *p = ctx;
    TensorScope scope = tensor_scope_open();
    Tensor *state = tensor_generator_get_state(generator_of(p));
    int status = state ? nn_dict_set(&p->own, "state", state) : -1;
    tensor_scope_close(scope);
    return status ? none : p->own;
}

static int load_generator(void *ctx, TensorDict dict)
{
    Tensor *state = nn_dict_get(dict, "state");
    if (!state || dict.count != 1)
        return tensor_fail(TENSOR_EVALUE, "io_checkpoint_generator",
                           "a generator's dict has \"state\" alone");
    return tensor_generator_set_state(generator_of(ctx), state);
}

int io_checkpoint_generator(Checkpoint *run, const char *name, TensorGenerator *generator)
{
    Part *p = add(run, name, generator, "io_checkpoint_generator");
    if (p) p->generator = generator == tensor_default_generator() ? NULL : generator;
    return fill(p, save_generator, load_generator, p);
}

static int add_number(Checkpoint *run, const char *name, Number number, const char *function)
{
    if (checkpoint_check(run, function)) return -1;
    if (!number.i && !number.d) return tensor_fail(TENSOR_ENULL, function, "the number is NULL");
    bool used = false;
    for (int i = 0; name && i < run->numbers; i++) used |= strcmp(run->number[i].name, name) == 0;
    if (check_name(name, used, function)) return -1;
    Number *grown = realloc(run->number, (size_t)(run->numbers + 1) * sizeof *grown);
    if (grown) run->number = grown;
    number.name = grown ? checkpoint_copy(name) : NULL;
    if (!number.name) return checkpoint_no_memory(function);
    run->number[run->numbers++] = number;
    return 0;
}

int io_checkpoint_int(Checkpoint *run, const char *name, int64_t *number)
{
    return add_number(run, name, (Number){ .i = number }, "io_checkpoint_int");
}

int io_checkpoint_double(Checkpoint *run, const char *name, double *number)
{
    return add_number(run, name, (Number){ .d = number }, "io_checkpoint_double");
}

/* ---- a file's content ------------------------------------------------------------------------ */

static bool belongs(const char *name, const char *part)
{
    size_t n = strlen(part);
    return strncmp(name, part, n) == 0 && name[n] == '.';
}

TensorDict checkpoint_dict_of(TensorDict file, const char *part, const char *function)
{
    TensorDict dict = { .item = malloc((size_t)file.count * sizeof *dict.item + 1) };
    if (!dict.item) return checkpoint_no_memory(function), (TensorDict){ .count = -1 };
    for (int i = 0; i < file.count; i++)
        if (belongs(file.item[i].name, part))
            dict.item[dict.count++] =
                (TensorDictItem){ file.item[i].name + strlen(part) + 1, file.item[i].tensor };
    return dict;
}

/* Each entry of the file is of a part that the run has; each number is there. */
static int check_entries(const Checkpoint *run, TensorDict file, TensorDict numbers, const char *function)
{
    for (int i = 0; i < file.count; i++) {
        bool known = belongs(file.item[i].name, scalars);
        for (int k = 0; k < run->parts && !known; k++) known = belongs(file.item[i].name, run->part[k]->name);
        if (!known)
            return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is of no part of this run",
                               file.item[i].name);
    }
    for (int i = 0; i < run->numbers; i++) {
        const Number *n = &run->number[i];
        const Tensor *t = nn_dict_get(numbers, n->name);
        if (!t && tensor_error_code()) return -1;
        if (!t || tensor_numel(t) != 1 || tensor_dtype(t) != (n->i ? TENSOR_I64 : TENSOR_F64))
            return tensor_fail(TENSOR_EVALUE, function, "the number \"%s\" is %s", n->name,
                               t ? "of another type there" : "missing");
    }
    if (numbers.count == run->numbers) return 0;
    return tensor_fail(TENSOR_EVALUE, function, "%d numbers there, %d in this run", numbers.count,
                       run->numbers);
}

static void set_numbers(const Checkpoint *run, TensorDict numbers)
{
    for (int i = 0; i < run->numbers; i++) {
        const Tensor *t = nn_dict_get(numbers, run->number[i].name);
        if (run->number[i].i) *run->number[i].i = *(const int64_t *)tensor_data(t);
        else *run->number[i].d = *(const double *)tensor_data(t);
    }
}

static int load_part(const Part *p, TensorDict file, const char *function)
{
    TensorDict dict = checkpoint_dict_of(file, p->name, function);
    if (dict.count < 0) return -1;
    int status = p->load(p->ctx, dict);
    free(dict.item);
    if (status && !tensor_error_code())
        tensor_fail(TENSOR_EUSER, function, "the part \"%s\" failed without saying why", p->name);
    return status ? -1 : 0;
}

/* The error stays the first one. */
static void put_back(const Checkpoint *run, const TensorDict *before, int parts)
{
    TensorStatus code = tensor_error_code();
    char *text = checkpoint_copy(tensor_error() ? tensor_error() : "");
    char *site = text ? strstr(text, "\n    at ") : NULL; /* where it was called: the same place again */
    if (site) *site = 0;
    tensor_error_clear();
    while (parts-- > 0) run->part[parts]->load(run->part[parts]->ctx, before[parts]);
    tensor_error_clear();
    tensor_fail(code ? code : TENSOR_EUSER, NULL, "%s", text ? text : "out of memory");
    free(text);
}

static int load_parts(Checkpoint *run, TensorDict file, TensorDict *before, const char *function)
{
    int saved = 0, loaded = 0, status = 0;
    for (; saved < run->parts && !status; saved++) {
        before[saved] = nn_dict_clone(run->part[saved]->save(run->part[saved]->ctx));
        status = before[saved].count < 0 ? -1 : 0;
    }
    for (; loaded < run->parts && !status; loaded++) status = load_part(run->part[loaded], file, function);
    if (status && loaded) put_back(run, before, loaded - 1);
    for (int i = 0; i < saved; i++) nn_dict_free(before[i]);
    return status;
}

int checkpoint_apply(Checkpoint *run, TensorDict file, const char *function)
{
    TensorDict numbers = checkpoint_dict_of(file, scalars, function), *before = NULL;
    int status = numbers.count < 0 ? -1 : check_entries(run, file, numbers, function);
    if (!status && !(before = malloc((size_t)run->parts * sizeof *before + 1)))
        status = checkpoint_no_memory(function);
    if (!status) status = load_parts(run, file, before, function);
    if (!status) set_numbers(run, numbers);
    free(before), free(numbers.item);
    return status;
}
