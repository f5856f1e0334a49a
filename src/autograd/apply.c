/* apply.c - runs an op: check, shape, forward, record.  Every op goes this way.
 *
 *  - op_apply opens a scope that owns all temporaries of the op; only results leave it.
 *  - Operands are unchanged by a failed call: an in-place op computes into new memory and copies last; rows
 * that write directly cannot fail once begun. */
#include <stdlib.h>
#include "tensor/core.h"
#include "options.h"
#include "graph_ops.h"
#include "host.h"
#include "modes.h"
#include "tape.h"

/* ---- checks ---------------------------------------------------------------------------------- */

/* The first input and one of another dtype.  no_grad_inputs are indices and masks. */
static int check_one_dtype(OpCall *c)
{
    const Tensor *first = NULL;
    for (int i = 0; i < c->n; i++) {
        const Tensor *x = c->input[i];
        if (!x || is_plain_input(c->op, i)) continue;
        if (!first) first = x;
        if (x->dtype != first->dtype)
            return op_fail(c, TENSOR_EDTYPE, "%s %s and %s %s: operands must have one dtype",
                           tensor_dtype_name((TensorDtype)first->dtype), S(first),
                           tensor_dtype_name((TensorDtype)x->dtype), S(x));
    }
    return 0;
}

static int check_inputs(OpCall *c)
{
    const TensorOp *op = c->op;
    if (op->arity != OP_ANY_ARITY && c->n != op->arity)
        return op_fail(c, TENSOR_EVALUE, "%d operands given, it takes %d", c->n, op->arity);
    if (c->n < 1 || c->n > OP_MAX_INPUTS)
        return op_fail(c, TENSOR_EVALUE, "%d operands: 1 to %d are possible", c->n, OP_MAX_INPUTS);
    const Place *place = NULL;
    for (int i = 0; i < c->n; i++) {
        Tensor *x = c->input[i];
        if (!x) {
            bool optional = i < 32 && (op->optional >> i & 1);
            if (optional && !tensor_error_code()) continue;
            if (!tensor_error_code()) op_fail(c, TENSOR_ENULL, "operand %d is NULL", i + 1);
            return -1;
        }
        if (unlikely(!x->storage)) return op_fail(c, TENSOR_EVALUE, "operand %d was released", i + 1);
        if (unlikely(x->entry && !entry_is_ours(x->entry)))
            return op_fail(c, TENSOR_EGRAD,
                           "operand %d %s is part of another thread's graph: tensor_detach it there first",
                           i + 1, S(x));
        if (place && x->place != place)
            return op_fail(c, TENSOR_EDEVICE, "operands on %s and %s: move one with tensor_to_device",
                           place->name, x->place->name);
        place = x->place;
        if ((op->flags & OP_FLOAT_INPUTS) && !is_plain_input(op, i) && !dtype_is_float(x->dtype))
            return op_fail(c, TENSOR_EDTYPE, "operand %d is %s %s: it takes floating dtypes", i + 1,
                           tensor_dtype_name(x->dtype), S(x));
    }
    return op->flags & OP_ONE_DTYPE ? check_one_dtype(c) : 0;
}

static bool wants_graph(const OpCall *c)
{
    if (grad_off || (c->op->flags & OP_NONDIFFERENTIABLE) || c->op->compose) return false;
    for (int i = 0; i < c->n; i++)
        if (on_graph(c->input[i]) && !is_plain_input(c->op, i)) return true;
    return false;
}

static bool has_part_in_promotion(const TensorOp *op, const Tensor *x, int i)
{
    return x && dtype_is_float(x->dtype) && !is_plain_input(op, i);
}

/* The widest of the floating inputs' dtypes; -1: there is none. */
static int promoted_dtype(const TensorOp *op, Tensor *const *inputs, int n)
{
    int dtype = -1;
    for (int i = 0; i < n; i++) {
        const Tensor *x = inputs[i];
        if (!has_part_in_promotion(op, x, i)) continue;
        dtype = dtype < 0 ? x->dtype : (int)tensor_promote_types((TensorDtype)dtype, (TensorDtype)x->dtype);
    }
    return dtype;
}

/* Floating inputs of several dtypes: each is cast, on the graph, to the widest. */
static int promote_inputs(OpCall *c, Tensor **cast)
{
    const int dtype = promoted_dtype(c->op, c->input, c->n);
    for (int i = 0; i < c->n; i++) {
        Tensor *x = c->input[i];
        bool other = has_part_in_promotion(c->op, x, i) && x->dtype != dtype;
        cast[i] = other ? graph_ops.to(x, (TensorDtype)dtype) : x;
        if (other && !cast[i]) return -1;
    }
    c->input = cast;
    return 0;
}

/* Results that compose derives from an input without a gradient have no history: compose gets the input
 * detached. */
static int hide_plain_inputs(OpCall *c, Tensor **shown)
{
    for (int i = 0; i < c->n; i++) {
        Tensor *x = c->input[i];
        const bool hidden = on_graph(x) && is_plain_input(c->op, i);
        shown[i] = hidden ? own(new_view(x, x->ndim, x->shape, x->stride, 0)) : x;
        if (hidden && !shown[i]) return -1;
    }
    c->input = shown;
    return 0;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int set_params(OpCall *c, const void *given)
{
    const OpField *required = NULL;
    if (given) memcpy(c->params, given, c->op->params);
    else options_default(c->op, c->params, &required);
    return required ? op_fail(c, TENSOR_EVALUE, "parameter %s must be given", required->name) : 0;
}

/* An enum has one of its values. */
static int check_choices(OpCall *c)
{
    char names[300];
    for (const OpField *f = c->op->fields; f && f->name; f++) {
        if (!f->choices) continue;
        const int value = *(const int *)(const void *)((const char *)c->params + f->offset);
        if (unlikely(options_no_choice(f->choices, value, names, sizeof names)))
            return op_fail(c, TENSOR_EVALUE, "there is no %s %d: want %s", f->name, value, names);
    }
    return 0;
}

/* Lists have at most TENSOR_MAX_DIMS elements, which are there. */
static int check_lists(OpCall *c)
{
    for (const OpField *f = c->op->fields; f && f->name; f++) {
        if (f->type != OP_LIST) continue;
        const TensorShape *list = (const void *)((const char *)c->params + f->offset);
        if (list->ndim < 0 || list->ndim > TENSOR_MAX_DIMS)
            return op_fail(c, TENSOR_ESHAPE, "%s is a list of %d: at most %d", f->name, list->ndim,
                           TENSOR_MAX_DIMS);
        if (list->ndim && !list->dim)
            return op_fail(c, TENSOR_ENULL,
                           "%s is a list of %d, whose elements are NULL: write SHAPE(%d), or DIMS(%d)",
                           f->name, list->ndim, list->ndim, list->ndim);
    }
    return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static void release_staged(OpCall *c)
{
    int n = c->n + c->staged_outputs;
    for (int i = 0; i < n; i++) {
        Staged *s = &c->staged[i];
        const Tensor *x = i < c->n ? c->input[i] : c->output[i - c->n];
        if (s->f64) tg_free(s->f64, (size_t)(x->numel ? x->numel : 1) * sizeof(double));
        if (s->f32) tg_free(s->f32, (size_t)(x->numel ? x->numel : 1) * sizeof(float));
    }
}

/* A composed op may have returned its input or a view of it: copied, unless its flags allow that (OP_VIEW,
 * OP_MAY_ALIAS). */
static int own_memory(OpCall *c)
{
    if (c->op->flags & (OP_VIEW | OP_MAY_ALIAS)) return 0;
    for (int k = 0; k < c->outputs; k++)
        for (int i = 0; i < c->n && c->output[k]; i++)
            if (c->input[i] && c->input[i]->storage == c->output[k]->storage &&
                !(c->output[k] = graph_ops.clone(c->output[k])))
                return -1;
    return 0;
}

THREAD_LOCAL unsigned untold_failures;

/* A recorded backward passes NULLs on, and may omit unwanted gradients. */
int call_status(const OpCall *c, int status, unsigned before)
{
    const bool failed = c->failed || failed_since(before);
    if (failed && !status && !op_recording(c)) untold_failures++;
    return failed ? -1 : status;
}

/* Ops called inside forward are not recorded: the op's own entry is its history. */
static int run_forward(OpCall *c)
{
    const TensorOp *op = c->op;
    const unsigned before = failure_count;
    const bool off = grad_off;
    if (op->shape && call_status(c, op->shape(c), before)) return -1;
    grad_off = off || !op->compose || (op->flags & OP_NONDIFFERENTIABLE);
    if (op->compose) {
        const char *outer = compose_begin(c);
        int status = op->compose(c);
        grad_off = off;
        tensor_compose_end(outer);
        status = call_status(c, status, before);
        return status ? status : own_memory(c);
    }
    Staged staged[CALL_STAGED];
    c->staged_outputs = c->outputs;
    c->staged = c->n + c->outputs <= CALL_STAGED ? staged : NULL;
    if (c->staged) memset(staged, 0, sizeof(Staged) * (size_t)(c->n + c->outputs));
    int status = op->forward ? op->forward(c) : op_fail(c, TENSOR_EVALUE, "has no forward");
    status = call_status(c, status, before);
    if (c->staging) {
        if (!status) status = store_staged(c);
        release_staged(c);
    }
    c->staged = NULL;
    grad_off = off;
    return status;
}

static void drop_commits(OpCall *c)
{
    while (c->commits > 0) {
        tensor_release(c->commit[--c->commits].to);
        tensor_release(c->commit[c->commits].from);
    }
}

/* The call again, from the start, on copies in the host's memory. */
static COLD int run_on_host(OpCall *c, const Place *place, const void *params)
{
    Tensor *copy[OP_MAX_INPUTS], *const *inputs = c->input;
    drop_commits(c);
    c->outputs = c->extras = c->lists = c->staged_outputs = 0;
    c->failed = c->staging = false;
    if (c->op->params && set_params(c, params)) return -1;
    if (host_begin(c, place, copy) || run_forward(c)) return -1;
    return host_end(c, place, inputs);
}

/* On the device of the inputs; where that has no kernel for the call, on the host. */
static int run_somewhere(OpCall *c, const void *params)
{
    const Place *place = call_place(c);
    if (likely(c->op->compose || has_kernels(c->op, place))) {
        const int status = run_forward(c);
        if (likely(!status) || !take_decline()) return status;
    }
    return run_on_host(c, place, params);
}

static int check_results(OpCall *c)
{
    int want = c->op->outputs ? c->op->outputs : 1;
    if (c->op->outputs != OP_ANY_ARITY && c->outputs != want)
        return op_fail(c, TENSOR_EUSER, "made %d of %d results", c->outputs, want);
    return 0;
}

/* A view remembers the tensor whose history a write through it changes. */
static void set_bases(OpCall *c)
{
    Tensor *x = c->input[0], *base = x->base ? x->base : x;
    for (int i = 0; i < c->outputs; i++) {
        Tensor *y = c->output[i];
        if (y->storage != x->storage || y->base || y == x || y == base) continue;
        y->base = lend(base);
        y->base_epoch = base->epoch;
    }
}

/* Executes what op_commit asked for, after the call succeeded. */
static int settle_commits(OpCall *c, int status)
{
    for (int i = 0; i < c->commits; i++) {
        Tensor *to = c->commit[i].to, *from = c->commit[i].from;
        if (!status && !(status = raw_copy(to, from))) bump_version(to);
        tensor_release(from);
        tensor_release(to);
    }
    return status;
}

/* Closes the scope of a call and hands its `made` results to the enclosing one.  Returns made, or -1
 * without memory. */
static int leave_scope(TensorScope scope, Tensor *const *result, int made, Tensor **outputs, int count)
{
    for (int i = 0; i < made; i++) tensor_retain(result[i]);
    tensor_scope_close(scope);
    int status = made;
    for (int i = 0; i < made; i++) {
        Tensor *y = own(result[i]);
        if (!y) status = -1;
        if (i < count) outputs[i] = y;
    }
    return status;
}

static int apply(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                 const void *site, Tensor **outputs, int count)
{
    OpCall c;
    call_begin(&c, op, inputs, n, NULL, site);
    c.name = name;
    const char *fault = params ? options_fault(params, op->defaults, op->params) : NULL;
    if (unlikely(fault)) return op_fail(&c, TENSOR_EVALUE, "%s", fault);
    if (check_inputs(&c)) return -1;
    _Alignas(16) char own_params[CALL_PARAMS];
    int64_t list[CALL_LISTS][TENSOR_MAX_DIMS];
    c.list = list, c.lists = 0;
    if (op->params) {
        if (op->params > CALL_PARAMS)
            return op_fail(&c, TENSOR_EVALUE, "its parameters take more than %d bytes", CALL_PARAMS);
        c.params = own_params;
        if (set_params(&c, params)) return -1;
        if (check_choices(&c) || check_lists(&c)) return -1;
    }
    for (int i = 0; i < n; i++)
        if (inputs[i] && unlikely(inputs[i]->base != NULL) && view_refresh(inputs[i])) return -1;
    TensorScope scope = tensor_scope_open();
    Tensor *cast[OP_MAX_INPUTS];
    int status = op->flags & OP_SAME_DTYPE ? promote_inputs(&c, cast) : 0;
    if (!status && op->compose && op->no_grad_inputs) status = hide_plain_inputs(&c, cast);
    if (!status) status = run_somewhere(&c, params);
    if (!status) status = check_results(&c);
    if (!status && op->flags & OP_VIEW) set_bases(&c);
    if (!status && wants_graph(&c)) status = tape_record(&c, op->keep);
    if (!status && unlikely(anomaly_on)) status = anomaly_check_results(&c);
    if (status && !tensor_error_code()) op_fail(&c, TENSOR_EUSER, "failed without saying why");
    status = leave_scope(scope, c.output, status ? -1 : c.outputs, outputs, count);
    return settle_commits(&c, status < 0 ? -1 : 0) ? -1 : c.outputs;
}

/* Do the products of the device of the first input read it? */
static bool is_multiplied_there(Tensor *const *inputs, int n, int dtype)
{
    const Tensor *x = NULL;
    for (int i = 0; i < n && !x; i++) x = inputs[i];
    return x && x->storage && multiplied_there(x->place, dtype);
}

/* The half dtype that the floating inputs promote to, and that the op is not computed in; -1 if there is none
 * (f16 with bf16 gives f32). */
static int half_dtype(const TensorOp *op, Tensor *const *inputs, int n)
{
    const int dtype = promoted_dtype(op, inputs, n);
    if (dtype < 0 || !dtype_is_half(dtype)) return -1;
    return op->flags & OP_OF_PRODUCTS && is_multiplied_there(inputs, n, dtype) ? -1 : dtype;
}

/* OP_ROUND_ONCE on halves: the op in f32 between casts, which are on the graph too.  half < 0: the inputs,
 * integers too, are cast to `wide`, and the results stay as they are. */
static int apply_cast(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                      const void *site, Tensor **outputs, int count, TensorDtype wide, int half)
{
    Tensor *cast[OP_MAX_INPUTS], *result[CALL_MAX_OUTPUTS];
    TensorScope scope = tensor_scope_open();
    int status = 0;
    for (int i = 0; i < n && !status; i++) {
        const bool other =
            inputs[i] && (half < 0 || dtype_is_float(inputs[i]->dtype)) && inputs[i]->dtype != wide;
        cast[i] = other ? graph_ops.to(inputs[i], wide) : inputs[i];
        if (other && !cast[i]) status = -1;
    }
    int results = -1;
    if (!status && half < 0)
        results = op_apply_plain(op, name, cast, n, params, site, result, CALL_MAX_OUTPUTS);
    else if (!status) results = apply(op, name, cast, n, params, site, result, CALL_MAX_OUTPUTS);
    for (int i = 0; i < results; i++)
        if (half >= 0 && result[i]->dtype == wide &&
            !(result[i] = graph_ops.to(result[i], (TensorDtype)half)))
            results = -1;
    return leave_scope(scope, result, results, outputs, count);
}

/* The dtype that the inputs must be cast to first; -1: none has another. */
static int cast_wanted(const TensorOp *op, Tensor *const *inputs, int n, const void *params)
{
    if (!params || n > OP_MAX_INPUTS) return -1;
    const int dtype = *(const int *)(const void *)((const char *)params + op->cast_option);
    if (dtype < 0 || dtype >= TENSOR_DTYPES) return -1;
    for (int i = 0; i < n; i++)
        if (inputs[i] && inputs[i]->dtype != dtype) return dtype;
    return -1;
}

int op_apply_plain(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                   const void *site, Tensor **outputs, int count)
{
    int dtype = unlikely(op->cast_option) ? cast_wanted(op, inputs, n, params) : -1;
    if (unlikely(dtype >= 0))
        return apply_cast(op, name, inputs, n, params, site, outputs, count, (TensorDtype)dtype, -1);
    int half = unlikely(op->flags & OP_ROUND_ONCE) && n <= OP_MAX_INPUTS ? half_dtype(op, inputs, n) : -1;
    if (unlikely(half >= 0))
        return apply_cast(op, name, inputs, n, params, site, outputs, count, TENSOR_F32, half);
    return apply(op, name, inputs, n, params, site, outputs, count);
}

/* Under autocast: casts the operands as the op's class demands.  Ops called inside it cast nothing, unless
 * its class says so. */
static COLD int apply_autocast(const TensorOp *op, const char *name, Tensor *const *inputs, int n,
                               const void *params, const void *site, Tensor **outputs, int count)
{
    const int dtype = n <= OP_MAX_INPUTS ? autocast_target(op, inputs, n, params) : -1;
    const bool widens = dtype == TENSOR_F32 && (op->flags & OP_READS_HALVES);
    Tensor *cast[OP_MAX_INPUTS], *result[CALL_MAX_OUTPUTS];
    TensorScope scope = tensor_scope_open();
    int results = scope_failed(scope) ? -1 : 0;
    for (int i = 0; i < n && dtype >= 0 && results >= 0; i++) {
        cast[i] = widens && i == 0 ? inputs[0] : autocast_cast(inputs[i], dtype);
        if (inputs[i] && !cast[i]) results = -1;
    }
    const bool on = autocast_switch(autocast_is_of_parts(op, inputs, n));
    const TensorOp *outer = autocast_widen(widens ? op : NULL);
    if (results >= 0)
        results =
            op_apply_plain(op, name, dtype < 0 ? inputs : cast, n, params, site, result, CALL_MAX_OUTPUTS);
    autocast_widen(outer);
    autocast_switch(on);
    return leave_scope(scope, result, results, outputs, count);
}

static COLD int apply_in_modes(const TensorOp *op, const char *name, Tensor *const *inputs, int n,
                               const void *params, const void *site, Tensor **outputs, int count)
{
    ProfileSpan span;
    const bool measured = profile_on();
    if (graph_watches && graph_note_op(op, name, inputs, n, params)) return -1;
    if (measured) profile_enter(&span, op->name, PROFILE_FORWARD, profile_range());
    const int results = autocast_is_on() ? apply_autocast(op, name, inputs, n, params, site, outputs, count)
                                         : op_apply_plain(op, name, inputs, n, params, site, outputs, count);
    if (measured) profile_leave(&span);
    return results;
}

int op_apply_as(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                const void *site, Tensor **outputs, int count)
{
    if (modes_on()) return apply_in_modes(op, name, inputs, n, params, site, outputs, count);
    return op_apply_plain(op, name, inputs, n, params, site, outputs, count);
}

Tensor *op_apply1_as(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                     const void *site)
{
    Tensor *y = NULL;
    return op_apply_as(op, name, inputs, n, params, site, &y, 1) < 0 ? NULL : y;
}

Tensor *tensor_apply(const TensorOp *op, Tensor *const *inputs, int n, const void *params)
{
    if (!op) return fail(TENSOR_ENULL, "tensor_apply", "the op is NULL"), NULL;
    if (!inputs && n > 0)
        return fail(TENSOR_ENULL, "tensor_apply", "%d inputs, but the array is NULL", n), NULL;
    return op_apply1(op, inputs, n, params, SITE);
}

int tensor_apply_all(const TensorOp *op, Tensor *const *inputs, int n, const void *params, Tensor **outputs,
                     int count)
{
    if (!op) return fail(TENSOR_ENULL, "tensor_apply_all", "the op is NULL");
    if (!inputs && n > 0)
        return fail(TENSOR_ENULL, "tensor_apply_all", "%d inputs, but the array is NULL", n);
    if (!outputs && count > 0)
        return fail(TENSOR_ENULL, "tensor_apply_all", "room for %d results, but the array is NULL", count);
    for (int i = 0; i < count; i++) outputs[i] = NULL;
    return op_apply(op, inputs, n, params, SITE, outputs, count);
}
