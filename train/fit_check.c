/* fit_check.c - checks nn_fit's arguments before training. */
#include "fit.h"

static const char op[] = "nn_fit";

static int check_numbers(const NNFitArgs *a)
{
    const struct {
        const char *name;
        double value, least;
    } number[] = { { "epochs", (double)a->epochs, 0 },
                   { "accumulate", a->accumulate, 1 },
                   { "clip_grad_norm", a->clip_grad_norm, 0 },
                   { "clip_grad_value", a->clip_grad_value, 0 },
                   { "l1", a->l1, 0 },
                   { "l2", a->l2, 0 },
                   { "patience", (double)a->patience, 0 },
                   { "min_delta", a->min_delta, 0 },
                   { "save_every", (double)a->save_every, 0 },
                   { "keep", a->keep, 1 } };
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (!(number[i].value >= number[i].least))
            return tensor_fail(TENSOR_EVALUE, op, "%s %.9g: at least %g", number[i].name, number[i].value,
                               number[i].least);
    static const char *const modes[] = { "auto", "min", "max", NULL };
    static const char *const on_nan[] = { "fail", "stop", "go on", NULL };
    return tensor_check_choice(op, "mode", (int)a->mode, modes) ||
                   tensor_check_choice(op, "on_nan", (int)a->on_nan, on_nan)
               ? -1
               : 0;
}

/* Refuses an option whose prerequisite is missing. */
static int check_together(const NNFitArgs *a)
{
    const struct {
        bool lacks;
        const char *option, *wants;
    } pair[] = { { a->save_every && !a->checkpoint, "save_every", "a .checkpoint" },
                 { a->parts && !a->checkpoint, "parts", "a .checkpoint" },
                 { a->schedule_steps && !a->scheduler, "schedule_steps", "a .scheduler" },
                 { a->ctx && !a->step && !a->parts, "ctx", ".step or .parts: callbacks have their own" },
                 { a->step && a->loss, "step", "no loss beside it: it gives its own" },
                 { a->schedule_steps && optim_scheduler_plateau(a->scheduler), "schedule_steps",
                   "another scheduler: optim_reduce_lr_on_plateau goes by the number of an epoch" } };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        if (pair[i].lacks)
            return tensor_fail(TENSOR_EVALUE, op, ".%s wants %s", pair[i].option, pair[i].wants);
    return 0;
}

static int check_loader(const DataLoader *loader, const char *name)
{
    if (data_batches(loader) > 0) return 0;
    return tensor_fail(TENSOR_EVALUE, op, "the loader of .%s gives no batches: %lld samples", name,
                       (long long)data_samples(loader));
}

static bool has(TensorList list, const Tensor *t)
{
    for (int i = 0; i < list.count; i++)
        if (list.item[i] == t) return true;
    return false;
}

/* Does it step a parameter of the net, or of the loss? */
static bool trains(const Optimizer *opt, Module *net, Module *loss)
{
    const TensorList own = nn_parameters(net), more = nn_parameters(loss);
    for (int g = 0; g < opt->groups; g++)
        for (int i = 0; i < opt->group[g].count; i++)
            if (has(own, opt->group[g].param[i].tensor) || has(more, opt->group[g].param[i].tensor))
                return true;
    return false;
}

static bool share(Module *a, Module *b)
{
    if (a == b) return true;
    const TensorList in_a = nn_parameters(a), in_b = nn_parameters(b);
    for (int i = 0; i < in_a.count; i++)
        if (has(in_b, in_a.item[i])) return true;
    return false;
}

static int check_owners(const NNFitArgs *a)
{
    const char *text = NULL;
    const OptimKind *kind = a->optimizer->kind;
    if (!kind->step && !kind->step_all && !kind->rule)
        return tensor_fail(TENSOR_EVALUE, op,
                           "%s steps with a closure, in a loop of one's own: "
                           "optim_step_closure",
                           kind->name);
    if (!a->step && !trains(a->optimizer, a->module, a->loss))
        text = "the optimizer has no parameter of the net: it belongs to another one";
    else if (a->scheduler && optim_scheduler_optimizer(a->scheduler) != a->optimizer)
        text = "the scheduler belongs to another optimizer";
    else if (a->averaged && !share(optim_averaged_module(a->averaged), a->module))
        text = "the averages (.averaged) are those of another net";
    else if (a->averaged && optim_averaged_is_swapped(a->averaged))
        text = "the net has its averages, and not its own weights: optim_averaged_swap";
    return text ? tensor_fail(TENSOR_EVALUE, op, "%s", text) : 0;
}

int fit_check(const NNFitArgs *a)
{
    if (tensor_error_code()) return -1;
    const char *missing = !a->module             ? "module"
                          : !a->train            ? "loader"
                          : !a->loss && !a->step ? "loss"
                          : !a->optimizer        ? "optimizer"
                                                 : NULL;
    if (missing) return tensor_fail(TENSOR_ENULL, op, "the %s is NULL", missing);
    if (check_numbers(a) || check_together(a) || check_owners(a) || check_loader(a->train, "train"))
        return -1;
    return a->validate ? check_loader(a->validate, "validate") : 0;
}
