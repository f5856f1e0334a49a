/* row_apply.c - runs every elementwise row, out of place and in place.
 *
 * row_apply is hot: no scope, one allocation for the result, one for the entry. */
#include "op/op.h"
#include "autograd/tape.h"
#include "autograd/modes.h"
#include "row.h"

/* Operands cast to the dtype of the computation, on the graph.  NULL and -1 on failure. */
static int cast_operands(Tensor **a, Tensor **b, int dtype)
{
    if ((*a)->dtype != dtype && !(*a = tensor_to(*a, (TensorDtype)dtype))) return -1;
    if (*b && (*b)->dtype != dtype && !(*b = tensor_to(*b, (TensorDtype)dtype))) return -1;
    return 0;
}

static int check_operand(const TensorOp *op, const char *name, const Tensor *x, int position)
{
    if (check_null_for(op, x, name, position)) return -1;
    if (unlikely(x->entry && !entry_is_ours(x->entry)))
        return fail_op(TENSOR_EGRAD, op, name, NULL,
                       "operand %d %s is part of another thread's graph: tensor_detach it there first",
                       position, S(x));
    if (unlikely(x->base != NULL)) return view_refresh((Tensor *)(uintptr_t)x);
    return 0;
}

/* 0 for a tensor compiles, and is NULL. */
static COLD int refuse_null(const TensorOp *op, const char *name)
{
    if (op->row->scalar && !tensor_error_code())
        return fail_op(TENSOR_ENULL, op, name, NULL,
                       "operand 2 is NULL (a number goes to tensor_%s_scalar%s)", op->name,
                       strcmp(op->name, name) ? "_" : "");
    check_null_for(op, NULL, name, 2);
    return -1;
}

static int check_second(const TensorOp *op, const char *name, const Tensor *b)
{
    return unlikely(!b) ? refuse_null(op, name) : check_operand(op, name, b, 2);
}

static int check_places(const TensorOp *op, const char *name, const Tensor *a, const Tensor *b)
{
    return a->place == b->place ? 0
                                : fail_op(TENSOR_EDEVICE, op, name, NULL,
                                          "operands on %s and %s: move one with tensor_to_device",
                                          a->place->name, b->place->name);
}

static int broadcast_shape(const TensorOp *op, const char *name, const Tensor *a, const Tensor *b,
                           int64_t *shape)
{
    int ndim = shape_broadcast(shape_of(a), shape_of(b), shape);
    if (ndim < 0)
        return fail_op(TENSOR_ESHAPE, op, name, NULL,
                       "%s and %s do not broadcast: aligned at the last dimension, sizes must agree or be 1",
                       S(a), S(b));
    return ndim;
}

static Tensor *row_run(const TensorOp *op, const char *name, Tensor *a, Tensor *b, const double *params,
                       const void *site);

static Tensor *row_slow(const TensorOp *op, const char *name, Tensor *a, Tensor *b, const double *params,
                        int dtype, const void *site)
{
    TensorScope scope = tensor_scope_open();
    if (cast_operands(&a, &b, dtype)) return tensor_scope_return(scope, NULL);
    return tensor_scope_return(scope, row_run(op, name, a, b, params, site));
}

static void row_call(OpCall *c, const TensorOp *op, const char *name, Tensor *const inputs[2],
                     const double *params, Tensor *y, const void *site)
{
    call_begin(c, op, inputs, inputs[1] ? 2 : 1, (void *)(uintptr_t)params, site);
    c->name = name;
    c->outputs = 1, c->output[0] = y;
}

static int row_record(const TensorOp *op, const char *name, Tensor *const inputs[2], const double *params,
                      Tensor *y, const void *site)
{
    OpCall c;
    row_call(&c, op, name, inputs, params, y, site);
    return tape_record(&c, op->keep);
}

/* NULL with a decline pending (core.h) where the device has no kernel for it. */
static Tensor *row_run(const TensorOp *op, const char *name, Tensor *a, Tensor *b, const double *params,
                       const void *site)
{
    if (unlikely(check_operand(op, name, a, 1))) return NULL;
    if (op->arity == 2 && unlikely(check_second(op, name, b) || check_places(op, name, a, b))) return NULL;
    int dtype = row_dtype(op, name, a, b, params, site);
    if (unlikely(dtype < 0)) return NULL;
    if (unlikely(a->dtype != dtype || (b && b->dtype != dtype)))
        return row_slow(op, name, a, b, params, dtype, site);
    int64_t shape[TENSOR_MAX_DIMS];
    TensorShape out = shape_of(a);
    if (b && !shape_equal(shape_of(a), shape_of(b))) {
        int ndim = broadcast_shape(op, name, a, b, shape);
        if (unlikely(ndim < 0)) return NULL;
        out = (TensorShape){ ndim, shape };
    }
    Tensor *y = new_tensor(out, op->row->to_bool ? TENSOR_BOOL : dtype, a->place);
    if (unlikely(!y)) return NULL;
    Tensor *in[ROW_OPERANDS] = { a, b };
    bool graph = !grad_off && !(op->flags & OP_NONDIFFERENTIABLE) && dtype_is_float(dtype) &&
                 (on_graph(a) || (b && on_graph(b)));
    if (unlikely(row_map(op, name, ROW_FORWARD, y, in, params)) ||
        (graph && unlikely(row_record(op, name, in, params, y, site)))) {
        tensor_release(y);
        return NULL;
    }
    if (unlikely(anomaly_on)) {
        OpCall c;
        row_call(&c, op, name, in, params, y, site);
        if (anomaly_check_results(&c)) {
            tensor_release(y);
            return NULL;
        }
    }
    return own(y);
}

FORCE_INLINE Tensor *row_plain(const TensorOp *op, const char *name, Tensor *a, Tensor *b,
                               const double *params, const void *site)
{
    Tensor *y = row_run(op, name, a, b, params, site);
    if (likely(y) || !take_decline()) return y;
    return op_apply_plain(op, name, (Tensor *[]){ a, b }, op->arity, params, site, &y, 1) < 0 ? NULL : y;
}

static COLD Tensor *row_autocast(const TensorOp *op, const char *name, Tensor *a, Tensor *b,
                                 const double *params, const void *site)
{
    const int dtype = autocast_target(op, (Tensor *[]){ a, b }, op->arity, NULL);
    if (dtype < 0) return row_plain(op, name, a, b, params, site);
    TensorScope scope = tensor_scope_open();
    Tensor *a1 = autocast_cast(a, dtype), *b1 = autocast_cast(b, dtype);
    const bool failed = (a && !a1) || (b && !b1);
    return tensor_scope_return(scope, failed ? NULL : row_plain(op, name, a1, b1, params, site));
}

static COLD Tensor *row_in_modes(const TensorOp *op, const char *name, Tensor *a, Tensor *b,
                                 const double *params, const void *site)
{
    ProfileSpan span;
    const bool measured = profile_on();
    if (graph_watches && graph_note_op(op, name, (Tensor *[]){ a, b }, op->arity, params)) return NULL;
    if (measured) profile_enter(&span, op->name, PROFILE_FORWARD, profile_range());
    Tensor *y = autocast_is_on() ? row_autocast(op, name, a, b, params, site)
                                 : row_plain(op, name, a, b, params, site);
    if (measured) profile_leave(&span);
    return y;
}

Tensor *row_apply_as(const TensorOp *op, const char *name, Tensor *a, Tensor *b, const double *params,
                     const void *site)
{
    if (modes_on()) return row_in_modes(op, name, a, b, params, site);
    return row_plain(op, name, a, b, params, site);
}

/* In place without a graph: straight into x, where nothing can fail once the values change. */
static bool writes_directly(const TensorOp *op, const char *name, const Tensor *x, const Tensor *b,
                            const double *params, const void *site)
{
    if (op->row->to_bool || !x->storage || (x->base && x->base_epoch != x->base->epoch)) return false;
    bool graph = !grad_off && (on_graph(x) || (b && on_graph(b)) || (x->base && on_graph(x->base)));
    if (graph || (b && b->dtype != x->dtype) || row_dtype(op, name, x, b, params, site) != x->dtype)
        return false;
    if (b && b->storage == x->storage && b != x) return false;
    int64_t shape[TENSOR_MAX_DIMS];
    return !b || shape_equal(shape_of(b), shape_of(x)) ||
           (shape_broadcast(shape_of(x), shape_of(b), shape) == x->ndim &&
            shape_equal((TensorShape){ x->ndim, shape }, shape_of(x)));
}

Tensor *row_apply_(const TensorOp *op, const char *name, Tensor *x, Tensor *b, const double *params,
                   const void *site)
{
    if (check_operand(op, name, x, 1) || inplace_check(name, x)) return NULL;
    if (op->arity == 2 && (check_second(op, name, b) || check_places(op, name, x, b))) return NULL;
    if (writes_directly(op, name, x, b, params, site) && !anomaly_on) {
        Tensor *in[ROW_OPERANDS] = { x, b };
        ProfileSpan span;
        if (unlikely(graph_watches) && graph_note_op(op, name, in, op->arity, params)) return NULL;
        const bool measured = modes_on() && profile_on();
        if (measured) profile_enter(&span, op->name, PROFILE_FORWARD, profile_range());
        const int status = row_map(op, name, ROW_FORWARD, x, in, params);
        if (measured) profile_leave(&span);
        if (!status) {
            note_write(x, op->name, site);
            return borrow(x);
        }
        if (!take_decline()) return NULL;
    }
    return op_apply_as_(op, name, (Tensor *[]){ x, b }, op->arity, params, site);
}

/* ---- the same through tensor_apply: descriptors alone ---------------------------------------- */

int op_row_shape(OpCall *c)
{
    (void)c;
    return 0;
}

int op_row_forward(OpCall *c)
{
    Tensor *a = c->input[0], *b = c->n > 1 ? c->input[1] : NULL;
    bool was = tensor_set_grad_enabled(false); /* op_apply records the call itself */
    Tensor *y = NULL;
    int dtype = row_dtype(c->op, c->name, a, b, c->params, c->site);
    if (dtype >= 0 && !cast_operands(&a, &b, dtype)) y = row_run(c->op, c->name, a, b, c->params, c->site);
    tensor_set_grad_enabled(was);
    return y ? op_set_result(c, 0, y) : -1;
}
