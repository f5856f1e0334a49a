/* grad_scaler.c - loss scaling.  The scale and the number of steps since it changed are tensors; each
 * optimizer has its own flag, found, until the next update. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad/foreach.h>
#include <tapegrad/grad_scaler.h>
#include "optim.h"
#include "rules/grad_scaler.h"

#define TEXT_(...) #__VA_ARGS__
#define TEXT(...) TEXT_(__VA_ARGS__)

typedef struct Noted { /* per optimizer, since the last update */
    const Optimizer *opt;
    Tensor *found; /* f32 of rank 0: 1 where a gradient is not finite */
    bool stepped;
} Noted;

struct GradScaler {
    OptimGradScalerArgs options;
    Tensor *scale, *tracker; /* of rank 0, f32; NULL before the first loss */
    double first_tracker;
    Noted *noted;
    int count;
    TensorDict state;
};

static bool is_null(const GradScaler *s, const char *function)
{
    if (s && !tensor_error_code()) return false;
    if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the scaler is NULL");
    return true;
}

/* ---- making ---------------------------------------------------------------------------------- */

const OptimGradScalerArgs optim_grad_scaler_defaults = { OPTIM_GRAD_SCALER_DEFAULTS };

static int check(const char *function, const OptimGradScalerArgs *o)
{
    if (o->growth_factor > 1 && o->backoff_factor > 0 && o->backoff_factor < 1 && o->growth_interval >= 1 &&
        o->init_scale > 0)
        return 0;
    return tensor_fail(
        TENSOR_EVALUE, function,
        "scale %g, growth_factor %g, backoff_factor %g, growth_interval %d: want above 0, above "
        "1, between 0 and 1, at least 1",
        o->init_scale, o->growth_factor, o->backoff_factor, o->growth_interval);
}

GradScaler *optim_grad_scaler_args(OptimGradScalerArgs args)
{
    static const char function[] = "optim_grad_scaler";
    if (TENSOR_CHECK_OPTIONS(function, args, optim_grad_scaler_defaults) || check(function, &args))
        return NULL;
    GradScaler *s = calloc(1, sizeof *s);
    if (!s) return tensor_fail(TENSOR_ENOMEM, function, "out of memory"), NULL;
    s->options = args;
    return s;
}

static void forget(GradScaler *s)
{
    while (s->count > 0) tensor_release(s->noted[--s->count].found);
}

void optim_scaler_free(GradScaler *s)
{
    if (!s) return;
    forget(s);
    free(s->noted);
    tensor_release(s->scale), tensor_release(s->tracker);
    nn_dict_free(s->state);
    free(s);
}

/* ---- a step ---------------------------------------------------------------------------------- */

static int begin(GradScaler *s, const char *device)
{
    if (s->scale) return 0;
    TensorScope scope = tensor_scope_open();
    Tensor *scale = tensor_to_device(tensor_scalar(s->options.init_scale, TENSOR_F32), device),
           *tracker = tensor_to_device(tensor_scalar(s->first_tracker, TENSOR_F32), device);
    if (scale && tracker) s->scale = tensor_retain(scale), s->tracker = tensor_retain(tracker);
    tensor_scope_close(scope);
    return s->scale ? 0 : -1;
}

Tensor *optim_scaler_scale(GradScaler *s, Tensor *loss)
{
    if (is_null(s, "optim_scaler_scale") || !s->options.enabled) return loss;
    if (!loss) return tensor_fail(TENSOR_ENULL, "optim_scaler_scale", "the loss is NULL"), NULL;
    if (begin(s, tensor_device(loss))) return NULL;
    return tensor_mul(loss, tensor_to_device(s->scale, tensor_device(loss)));
}

static Noted *note_of(const GradScaler *s, const Optimizer *opt)
{
    for (int i = 0; i < s->count; i++)
        if (s->noted[i].opt == opt) return &s->noted[i];
    return NULL;
}

/* Gradients of all groups; the caller frees .item. */
static TensorList gradients(const char *function, const Optimizer *opt)
{
    int most = 0, n = 0;
    for (int g = 0; g < opt->groups; g++) most += opt->group[g].count;
    Tensor **grad = malloc(((size_t)most + 1) * sizeof *grad);
    if (!grad) tensor_fail(TENSOR_ENOMEM, function, "out of memory");
    for (int g = 0; g < opt->groups && grad; g++)
        for (int i = 0; i < opt->group[g].count; i++) {
            grad[n] = tensor_grad(opt->group[g].param[i].tensor);
            if (grad[n] && tensor_dtype(grad[n]) == TENSOR_F16)
                tensor_fail(TENSOR_EDTYPE, function, "gradient %d of group %d is f16: it would vanish", i, g);
            n += grad[n] != NULL;
        }
    if (n == 0 && !tensor_error_code())
        tensor_fail(TENSOR_EVALUE, function, "%s has no gradients", opt->kind->function);
    return TENSOR_LIST(grad, n);
}

/* Of the largest gradient: found, and the inverse of the scale; by one launch where there is a kernel. */
static int look(const GradScaler *s, const char *function, Tensor *most, Tensor **found, Tensor **inverse)
{
    if (most && tensor_dtype(most) == TENSOR_F64) most = tensor_sub(most, most); /* finite in f32, too */
    most = tensor_to_device(tensor_to(most, TENSOR_F32), tensor_device(s->scale));
    Tensor *item[] = { tensor_empty_like(s->scale), most, s->scale, tensor_empty_like(s->scale) };
    const OpListRule call = { .function = function,
                              .rule = "grad_scaler_found",
                              .step = TEXT(grad_scaler_found_STEP),
                              .arrays = 4,
                              .count = 1,
                              .item = item };
    const int done = item[3] ? op_list_rule(&call) : -1;
    *found = done ? item[0] : tensor_to(tensor_logical_not(tensor_isfinite(most)), TENSOR_F32);
    *inverse = done ? item[3] : tensor_reciprocal(s->scale);
    return done < 0 || !*found || !*inverse ? -1 : 0;
}

static Tensor *unscale(const GradScaler *s, const char *function, TensorList grads)
{
    Tensor *found, *inverse, *most = tensor_amax(tensor_foreach_norm(grads, (double)INFINITY));
    if (look(s, function, most, &found, &inverse) || tensor_foreach_mul_(grads, inverse)) return NULL;
    return found;
}

static int note(GradScaler *s, const char *function, const Optimizer *opt)
{
    Noted *more = realloc(s->noted, ((size_t)s->count + 1) * sizeof *more);
    if (!more) return tensor_fail(TENSOR_ENOMEM, function, "out of memory");
    s->noted = more;
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const char *outer = tensor_compose_begin(function);
    const TensorList grads = gradients(function, opt);
    Tensor *found = NULL;
    if (!tensor_error_code() && begin(s, tensor_device(grads.item[0])) == 0)
        found = unscale(s, function, grads);
    if (found) more[s->count++] = (Noted){ opt, tensor_retain(found), false };
    free((void *)(uintptr_t)grads.item);
    tensor_compose_end(outer);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return found ? 0 : -1;
}

int optim_scaler_unscale_(GradScaler *s, Optimizer *opt)
{
    static const char function[] = "optim_scaler_unscale_";
    if (is_null(s, function) || optim_null(opt, function)) return -1;
    if (!s->options.enabled) return 0;
    const Noted *noted = note_of(s, opt);
    if (noted)
        return tensor_fail(TENSOR_EVALUE, function, "it was %s since the last update",
                           noted->stepped ? "stepped" : "unscaled");
    return note(s, function, opt);
}

int optim_scaler_step(GradScaler *s, Optimizer *opt)
{
    static const char function[] = "optim_scaler_step";
    if (is_null(s, function) || optim_null(opt, function)) return -1;
    if (!s->options.enabled) return optim_step(opt);
    const Noted *noted = note_of(s, opt);
    if (noted && noted->stepped)
        return tensor_fail(TENSOR_EVALUE, function, "it was stepped since the last update");
    if (!noted && note(s, function, opt)) return -1;
    if (optim_step_unless(opt, note_of(s, opt)->found)) return -1;
    note_of(s, opt)->stepped = true;
    return 0;
}

/* ---- the next scale -------------------------------------------------------------------------- */

#define NAME(name) #name,
static const OptimRule rule = { .name = "grad_scaler",
                                .step = TEXT(grad_scaler_STEP),
                                .number = { grad_scaler_NUMBERS(NAME) },
                                .state = { grad_scaler_STATES(NAME) } };

/* One launch on a device with a kernel for the rule; elsewhere ops. */
static int next_scale(GradScaler *s, const char *function)
{
    const OptimGradScalerArgs *o = &s->options;
    const double k[] = { o->growth_factor, o->backoff_factor, o->growth_interval, (double)INFINITY };
    Tensor *found = s->noted[0].found, *scale = s->scale, *tracker = s->tracker;
    for (int i = 1; i < s->count; i++) found = tensor_add(found, s->noted[i].found);
    const OpListRule call = { .function = function,
                              .rule = rule.name,
                              .step = rule.step,
                              .arrays = 3,
                              .count = 1,
                              .numbers = sizeof k / sizeof *k,
                              .item = (Tensor *[]){ scale, found, tracker },
                              .number = k };
    const int done = op_list_rule(&call);
    if (done) return done < 0 ? -1 : 0;
    if (optim_evaluate(function, &rule, k, NULL, &scale, found, &tracker, 1)) return -1;
    return tensor_copy_(s->scale, scale) && tensor_copy_(s->tracker, tracker) ? 0 : -1;
}

int optim_scaler_update(GradScaler *s)
{
    static const char function[] = "optim_scaler_update";
    if (is_null(s, function)) return -1;
    if (!s->options.enabled) return 0;
    if (s->count == 0) return tensor_fail(TENSOR_EVALUE, function, "no optimizer was unscaled or stepped");
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const char *outer = tensor_compose_begin(function);
    const int status = next_scale(s, function);
    tensor_compose_end(outer);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    if (!status) forget(s);
    return status;
}

double optim_scaler_get_scale(const GradScaler *s)
{
    if (is_null(s, "optim_scaler_get_scale")) return NAN;
    return !s->options.enabled ? 1 : s->scale ? tensor_item(s->scale) : s->options.init_scale;
}

int optim_scaler_set_scale(GradScaler *s, double scale)
{
    static const char function[] = "optim_scaler_set_scale";
    if (is_null(s, function)) return -1;
    if (!(scale > 0)) return tensor_fail(TENSOR_EVALUE, function, "scale %g: want above 0", scale);
    if (!s->options.enabled) return 0;
    TensorScope scope = tensor_scope_open();
    const int status = s->scale && !tensor_fill_(s->scale, scale) ? -1 : 0;
    tensor_scope_close(scope);
    if (!status) s->options.init_scale = scale, forget(s);
    return status;
}

/* ---- state ----------------------------------------------------------------------------------- */

static const char *const names[] = { "scale", "growth_factor", "backoff_factor", "growth_interval",
                                     "_growth_tracker" };
enum { NAMES = sizeof names / sizeof *names };

TensorDict optim_scaler_state_dict(GradScaler *s)
{
    const TensorDict none = { .count = -1 };
    if (is_null(s, "optim_scaler_state_dict")) return none;
    const double tracker = s->tracker ? tensor_item(s->tracker) : s->first_tracker;
    const double value[NAMES] = { optim_scaler_get_scale(s), s->options.growth_factor,
                                  s->options.backoff_factor, s->options.growth_interval, tracker };
    TensorScope scope = tensor_scope_open();
    nn_dict_free(s->state);
    s->state = (TensorDict){ 0 };
    int status = 0;
    for (int i = 0; i < NAMES && s->options.enabled && !status; i++) {
        Tensor *x = tensor_scalar(value[i], TENSOR_F64);
        status = x ? nn_dict_set(&s->state, names[i], x) : -1;
    }
    tensor_scope_close(scope);
    return status ? none : s->state;
}

static int read_state(TensorDict dict, double *value)
{
    static const char function[] = "optim_scaler_load_state_dict";
    for (int i = 0; i < NAMES; i++) {
        const Tensor *x = nn_dict_get(dict, names[i]);
        if (!x && tensor_error_code()) return -1;
        if (!x) return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is missing", names[i]);
        if (tensor_numel(x) != 1)
            return tensor_fail(TENSOR_ESHAPE, function, "\"%s\" is not one number", names[i]);
        value[i] = tensor_item(x);
    }
    for (int i = 0; i < dict.count; i++) {
        bool known = false;
        for (int k = 0; k < NAMES; k++) known |= strcmp(dict.item[i].name, names[k]) == 0;
        if (!known) return tensor_fail(TENSOR_EVALUE, function, "\"%s\" is unexpected", dict.item[i].name);
    }
    if (!(value[3] >= 1 && value[3] <= 1e9 && value[4] >= 0 && value[4] <= 1e9))
        return tensor_fail(TENSOR_EVALUE, function,
                           "growth_interval %g, tracker %g: want 1 to 1e9, and 0 to 1e9", value[3], value[4]);
    return tensor_error_code() ? -1 : 0;
}

int optim_scaler_load_state_dict(GradScaler *s, TensorDict dict)
{
    static const char function[] = "optim_scaler_load_state_dict";
    double value[NAMES];
    if (is_null(s, function)) return -1;
    if (!s->options.enabled) return 0;
    if (read_state(dict, value)) return -1;
    const OptimGradScalerArgs made = {
        value[0], value[1], value[2], (int)value[3], true, TENSOR_DEFAULTS_MARK
    };
    if (check(function, &made)) return -1;
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const char *device = s->scale ? tensor_device(s->scale) : "cpu";
    Tensor *scale = tensor_to_device(tensor_scalar(made.init_scale, TENSOR_F32), device),
           *tracker = tensor_to_device(tensor_scalar(value[4], TENSOR_F32), device);
    int status = scale && tracker ? 0 : -1;
    if (!status && s->scale && (!tensor_copy_(s->scale, scale) || !tensor_copy_(s->tracker, tracker)))
        status = -1;
    if (!status) s->options = made, s->first_tracker = value[4], forget(s);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}
