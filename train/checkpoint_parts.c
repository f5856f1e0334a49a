/* checkpoint_parts.c - the parts of a checkpoint, and loading them from a file.
 *
 * All parts are copied before the first is loaded.  If one fails, those before it are restored. 
 * The numbers come last: nothing can fail then. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include "checkpoint.h"

static const char scalars[] = "scalars";

int checkpoint_no_memory(const char *function)
{
    return tensor_fail(TENSOR_ENOMEM, function, "out of memory");
}

char *checkpoint_take_error(TensorStatus *code)
{
    char *text = strdup(tensor_error() ? tensor_error() : "");
    char *site = text ? strstr(text, "\n    at ") : NULL; /* from the same call as the next error */
    if (site) *site = 0;
    *code = tensor_error_code();
    tensor_error_clear();
    return text;
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
    if (p) p->name = strdup(name);
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
    static const char op[] = "io_checkpoint_generator";
    Tensor *state = nn_dict_get(dict, "state");
    if (!state) return tensor_fail(TENSOR_EVALUE, op, "\"state\" is missing");
    for (int i = 0; i < dict.count; i++)
        if (strcmp(dict.item[i].name, "state") != 0)
            return tensor_fail(TENSOR_EVALUE, op, "\"%s\" is unexpected", dict.item[i].name);
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
    number.name = grown ? strdup(name) : NULL;
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

/* The dict of a file as one of a part: names begin after "part.".  The items are to be freed, what they point
 * to is the file's.  count -1: no memory. */
static TensorDict dict_of(const CheckpointFile *file, const char *part, const char *function)
{
    TensorDict dict = { .item = malloc((size_t)file->dict.count * sizeof *dict.item + 1) };
    if (!dict.item) return checkpoint_no_memory(function), (TensorDict){ .count = -1 };
    for (int i = 0; i < file->dict.count; i++) {
        const TensorDictItem *item = &file->dict.item[i];
        if (belongs(item->name, part))
            dict.item[dict.count++] = (TensorDictItem){ item->name + strlen(part) + 1, item->tensor };
    }
    return dict;
}

/* ---- which parts it has ---------------------------------------------------------------------- */

typedef struct Names {
    char text[1000];
    size_t length;
} Names;

static void put_name(Names *names, const char *name, size_t length)
{
    char text[200];
    const int n = snprintf(text, sizeof text, "\"%.*s\"", length < 160 ? (int)length : 160, name);
    if (strstr(names->text, text) || names->length + (size_t)n + 3 > sizeof names->text) return;
    names->length += (size_t)sprintf(names->text + names->length, "%s%s", names->length ? ", " : " ", text);
}

static bool has_part(const CheckpointFile *file, const char *part)
{
    const size_t n = strlen(part);
    for (const char *at = file->parts; at && *at; at += strcspn(at, "."), at += *at == '.')
        if (strcspn(at, ".") == n && memcmp(at, part, n) == 0) return true;
    for (int i = 0; i < file->dict.count; i++)
        if (belongs(file->dict.item[i].name, part)) return true;
    return false;
}

/* Is the part one of this run's?  length: up to the dot. */
static bool is_part(const Checkpoint *run, const char *name, size_t length)
{
    for (int i = 0; i < run->parts; i++)
        if (strlen(run->part[i]->name) == length && memcmp(run->part[i]->name, name, length) == 0)
            return true;
    return sizeof scalars - 1 == length && memcmp(scalars, name, length) == 0;
}

/* Checks that the file's parts are those of the run. */
static int check_parts(const Checkpoint *run, const CheckpointFile *file, const char *function)
{
    Names missing = { .length = 0 }, unexpected = { .length = 0 };
    for (int i = 0; i < run->parts; i++)
        if (!has_part(file, run->part[i]->name))
            put_name(&missing, run->part[i]->name, strlen(run->part[i]->name));
    for (const char *at = file->parts; at && *at; at += strcspn(at, "."), at += *at == '.')
        if (!is_part(run, at, strcspn(at, "."))) put_name(&unexpected, at, strcspn(at, "."));
    for (int i = 0; i < file->dict.count; i++) {
        const char *name = file->dict.item[i].name;
        const size_t length = strcspn(name, ".");
        if (name[length] != '.' || !is_part(run, name, length)) put_name(&unexpected, name, length);
    }
    if (!missing.length && !unexpected.length) return 0;
    return tensor_fail(TENSOR_EVALUE, function, "%s has other parts than this run%s%s%s%s", file->path,
                       missing.length ? "; missing:" : "", missing.text,
                       unexpected.length ? "; unexpected:" : "", unexpected.text);
}

/* ---- its numbers ----------------------------------------------------------------------------- */

static int refuse_number(const CheckpointFile *file, const char *name, const char *what, const char *function)
{
    return tensor_fail(TENSOR_EVALUE, function, "%s, scalars: \"%s\" %s", file->path, name, what);
}

/* Checks that the file has each number of the run, and no other. */
static int check_numbers(const Checkpoint *run, const CheckpointFile *file, TensorDict numbers,
                         const char *function)
{
    for (int i = 0; i < run->numbers; i++) {
        const Number *n = &run->number[i];
        const Tensor *t = nn_dict_get(numbers, n->name);
        if (!t && tensor_error_code()) return -1;
        if (!t) return refuse_number(file, n->name, "is missing", function);
        if (tensor_numel(t) != 1 || tensor_dtype(t) != (n->i ? TENSOR_I64 : TENSOR_F64))
            return refuse_number(file, n->name, n->i ? "is not one i64" : "is not one f64", function);
    }
    for (int i = 0; i < numbers.count; i++) {
        bool known = false;
        for (int k = 0; k < run->numbers; k++)
            known |= strcmp(run->number[k].name, numbers.item[i].name) == 0;
        if (!known) return refuse_number(file, numbers.item[i].name, "is unexpected", function);
    }
    return 0;
}

static void set_numbers(const Checkpoint *run, TensorDict numbers)
{
    for (int i = 0; i < run->numbers; i++) {
        const Tensor *t = nn_dict_get(numbers, run->number[i].name);
        if (run->number[i].i) *run->number[i].i = *(const int64_t *)tensor_data(t);
        else *run->number[i].d = *(const double *)tensor_data(t);
    }
}

/* ---- its parts ------------------------------------------------------------------------------- */

static int load_part(const Part *p, const CheckpointFile *file, const char *function)
{
    TensorDict dict = dict_of(file, p->name, function);
    if (dict.count < 0) return -1;
    int status = p->load(p->ctx, dict);
    free(dict.item);
    if (status && !tensor_error_code())
        tensor_fail(TENSOR_EUSER, NULL, "its load function failed without saying why");
    return status ? -1 : 0;
}

/* The error of part `failed` becomes the function's, with the names of file and part.  Those that were loaded
 * before it get their copies back. */
static int fail_part(const Checkpoint *run, const CheckpointFile *file, const TensorDict *before, int loaded,
                     int failed, const char *function)
{
    TensorStatus code;
    char *text = checkpoint_take_error(&code);
    const char *stuck = NULL;
    for (; loaded-- > 0; tensor_error_clear())
        if (run->part[loaded]->load(run->part[loaded]->ctx, before[loaded])) stuck = run->part[loaded]->name;
    tensor_fail(code, function, "%s, part \"%s\": %s%s%s%s", file->path, run->part[failed]->name,
                text ? text : "out of memory",
                stuck ? "; and it failed to put back what there was of \"" : "", stuck ? stuck : "",
                stuck ? "\"" : "");
    free(text);
    return -1;
}

static int load_parts(Checkpoint *run, const CheckpointFile *file, TensorDict *before, const char *function)
{
    int saved = 0, status = 0;
    for (int i = 0; i < run->parts && !status; i++, saved++) {
        before[i] = nn_dict_clone(run->part[i]->save(run->part[i]->ctx));
        if (before[i].count < 0) status = fail_part(run, file, before, 0, i, function);
    }
    for (int i = 0; i < run->parts && !status; i++)
        if (load_part(run->part[i], file, function)) status = fail_part(run, file, before, i, i, function);
    for (int i = 0; i < saved; i++) nn_dict_free(before[i]);
    return status;
}

int checkpoint_apply(Checkpoint *run, const CheckpointFile *file, const char *function)
{
    TensorDict numbers = { .count = -1 }, *before = NULL;
    int status = check_parts(run, file, function);
    if (!status) numbers = dict_of(file, scalars, function);
    if (!status) status = numbers.count < 0 ? -1 : check_numbers(run, file, numbers, function);
    if (!status && !(before = malloc((size_t)run->parts * sizeof *before + 1)))
        status = checkpoint_no_memory(function);
    if (!status) status = load_parts(run, file, before, function);
    if (!status) set_numbers(run, numbers);
    free(before), free(numbers.item);
    return status;
}
