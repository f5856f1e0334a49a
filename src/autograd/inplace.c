/* inplace.c - ops with a trailing underscore, and the history of views.
 *
 * An in-place op on x is the same op out of place; its result is copied into x's memory, and x takes its
 * place in the graph.  So backward never reads overwritten memory, and a failed op leaves x unchanged.  If no
 * graph is recorded, rows write directly (op/elementwise/row_apply.c).
 *
 * When x is a view of a base, the write changes the base's history too.  With v = the view's geometry on b:
 *   b' = view_write(b, t)    value: b with the region replaced by t;
 *                            db = g with zeros there, dt = the region of g
 *   x' = as_strided(b')      the view, read from the new base
 * Other views of the base notice the new epoch, and are read from the new base at their next use
 * (view_refresh). */
#include "tensor/core.h"
#include "graph_ops.h"
#include "modes.h"
#include "tape.h"

typedef struct Region { /* of a view within its base: strides and offset in elements of the base's storage */
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS], offset;
} Region;

static Region region_of(const Tensor *view, const Tensor *base)
{
    Region r = { .ndim = view->ndim };
    for (int d = 0; d < view->ndim; d++) r.shape[d] = view->shape[d], r.stride[d] = view->stride[d];
    r.offset = ((const char *)view->data - (const char *)base->data) / (int64_t)dtype_size(base->dtype);
    return r;
}

/* The region of a dense tensor of the base's shape. */
static Tensor *region_view(const Tensor *dense, const Region *r)
{
    return new_view(dense, r->ndim, r->shape, r->stride, r->offset);
}

/* ---- as_strided: read a region; its gradient adds the pieces back ---------------------------- */

static int strided_shape(OpCall *c)
{
    (void)c;
    return 0;
}

static int strided_forward(OpCall *c)
{
    return op_set_result(c, 0, own(region_view(c->input[0], op_params(c))));
}

static const TensorOp op_region_write, op_region_add;

static int strided_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const Region *r = op_params(c);
    const TensorOp *put = strides_overlap(r->ndim, r->shape, r->stride) ? &op_region_add : &op_region_write;
    Tensor *zero = own(new_tensor(op_input_shape(c, 0), op_input_dtype(c, 0), dy->place));
    if (!zero || raw_fill(zero, 0)) return -1;
    dx[0] = op_apply1(put, (Tensor *[]){ zero, dy }, 2, r, SITE);
    return dx[0] ? 0 : -1;
}

static const TensorOp op_region = { .name = "as_strided",
                                    .summary = "a view's region of its base",
                                    .arity = 1,
                                    .params = sizeof(Region),
                                    .shape = strided_shape,
                                    .forward = strided_forward,
                                    .backward = strided_backward,
                                    .flags = OP_VIEW | OP_ANY_DEVICE };

/* ---- view_write: b with a region replaced ---------------------------------------------------- */

static int write_shape(OpCall *c)
{
    return op_set_output(c, 0, shape_of(c->input[0]), (TensorDtype)c->input[0]->dtype);
}

static int write_forward(OpCall *c)
{
    if (raw_copy(c->output[0], c->input[0])) return -1;
    Tensor *region = own(region_view(c->output[0], op_params(c)));
    return region ? raw_copy(region, c->input[1]) : -1;
}

static int write_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const Region *r = op_params(c);
    Tensor *g = graph_ops.contiguous(dy);
    if (op_wants(c, 0)) {
        Tensor *zero = own(new_tensor(op_input_shape(c, 1), op_input_dtype(c, 1), dy->place));
        if (!zero || raw_fill(zero, 0)) return -1;
        dx[0] = op_apply1(&op_region_write, (Tensor *[]){ g, zero }, 2, r, SITE);
        if (!dx[0]) return -1;
    }
    if (op_wants(c, 1)) {
        dx[1] = op_apply1(&op_region, (Tensor *[]){ g }, 1, r, SITE);
        if (!dx[1]) return -1;
    }
    return 0;
}

static const TensorOp op_region_write = { .name = "view_write",
                                          .summary = "a tensor with a view's region replaced",
                                          .arity = 2,
                                          .params = sizeof(Region),
                                          .shape = write_shape,
                                          .forward = write_forward,
                                          .backward = write_backward,
                                          .flags = OP_ANY_DEVICE };

/* ---- view_add: b with t added to a region, where elements may lie on each other -------------- */

/* Walks a dim along which indices overlap: its layers are added one by one. */
static int add_region(Tensor *dst, const Region *r, const Tensor *src)
{
    int walked = -1;
    if (strides_overlap(r->ndim, r->shape, r->stride))
        for (int d = 0; d < r->ndim; d++)
            if (r->shape[d] > 1 && (walked < 0 || r->shape[d] < r->shape[walked])) walked = d;
    if (walked < 0) {
        Tensor *to = region_view(dst, r);
        int status = to ? graph_ops.add_into(to, src) : -1;
        tensor_release(to);
        return status;
    }
    Region layer = *r;
    layer.shape[walked] = 1;
    Tensor *from = new_view(src, src->ndim, layer.shape, src->stride, 0);
    int status = from ? 0 : -1;
    for (int64_t i = 0; i < r->shape[walked] && !status; i++) {
        status = add_region(dst, &layer, from);
        layer.offset += r->stride[walked];
        from->data = (char *)from->data + src->stride[walked] * (int64_t)dtype_size(src->dtype);
    }
    tensor_release(from);
    return status;
}

/* Gradients along an expanded dim are summed first, halves in f32, rounded once. */
static int add_forward(OpCall *c)
{
    const Region *r = op_params(c);
    Region once = *r;
    Tensor *y = c->output[0];
    for (int d = 0; d < r->ndim; d++)
        if (r->stride[d] == 0 && r->shape[d] > 1) once.shape[d] = 1;
    int dtype = dtype_is_half(y->dtype) ? TENSOR_F32 : y->dtype;
    Tensor *sum = dtype == y->dtype ? y : own(new_tensor(shape_of(y), dtype, y->place));
    Tensor *part = own(raw_cast(c->input[1], dtype));
    if (part) part = own(raw_sum_to(part, (TensorShape){ once.ndim, once.shape }));
    if (!sum || !part || raw_copy(sum, c->input[0]) || add_region(sum, &once, part)) return -1;
    return sum == y ? 0 : raw_copy(y, sum);
}

static int add_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    dx[0] = dy;
    if (!op_wants(c, 1)) return 0;
    dx[1] = op_apply1(&op_region, (Tensor *[]){ graph_ops.contiguous(dy) }, 1, op_params(c), SITE);
    return dx[1] ? 0 : -1;
}

static const TensorOp op_region_add = { .name = "view_add",
                                        .summary = "a tensor with values added to a view's region",
                                        .arity = 2,
                                        .params = sizeof(Region),
                                        .shape = write_shape,
                                        .forward = add_forward,
                                        .backward = add_backward,
                                        .flags = OP_ANY_DEVICE };

/* ---- histories ------------------------------------------------------------------------------- */

/* A region is described in the base's layout, and gradients are dense, so the base must be dense.  Results
 * of ops are; only a detached view can be a base that is not. */
static int no_dense_base(const char *op, const Tensor *base)
{
    return fail(TENSOR_EGRAD, op,
                "in place on a view of %s, which is not contiguous, with a gradient to record", S(base));
}

/* Records an entry of op without running it; its result takes the layout of `like`. */
static Entry *record_only(const TensorOp *op, Tensor *const *inputs, int n, Region *r, Tensor *like,
                          const void *site)
{
    OpCall c;
    call_begin(&c, op, inputs, n, r, site);
    c.outputs = 1, c.output[0] = like;
    return entry_new(&c, 0);
}

int view_refresh(Tensor *x)
{
    Tensor *base = x->base;
    if (!base || x->base_epoch == base->epoch) return 0;
    if (base->storage != x->storage) { /* tensor_set_data: no longer a view of it */
        x->base = NULL;
        take_back(base);
        return 0;
    }
    if (!on_graph(base)) { /* overwritten by something without a graph */
        Entry *old = x->entry;
        x->entry = NULL;
        if (old) entry_release_result(old, x);
        x->base_epoch = base->epoch;
        return 0;
    }
    if (!(base->flags & FLAG_CONTIGUOUS)) return no_dense_base("view", base);
    Region r = region_of(x, base);
    Entry *e = record_only(&op_region, (Tensor *[]){ base }, 1, &r, x, SITE);
    if (!e) return -1;
    entry_attach(e, 0, x);
    entry_unref(e);
    x->base_epoch = base->epoch;
    return 0;
}

int history_of(Tensor *x)
{
    if (view_refresh(x)) return -1;
    return on_graph(x);
}

/* May x be written in place? */
int inplace_check(const char *op, Tensor *x)
{
    if (scope_room() || view_refresh(x)) return -1;
    if (!grad_off && !x->entry && (x->flags & FLAG_REQUIRES_GRAD))
        return fail(TENSOR_EGRAD, op,
                    "in place on the leaf %s that requires a gradient: do it under TENSOR_NO_GRAD", S(x));
    if (!grad_off && x->base && !x->base->entry && (x->base->flags & FLAG_REQUIRES_GRAD))
        return fail(TENSOR_EGRAD, op,
                    "in place on a view of the leaf %s that requires a gradient: do it under TENSOR_NO_GRAD",
                    S(x->base));
    const Entry *entry = x->entry ? x->entry : x->base ? x->base->entry : NULL;
    if (unlikely(entry && !entry_is_ours(entry)))
        return fail(TENSOR_EGRAD, op,
                    "in place on %s, which is part of another thread's graph: tensor_detach it there first",
                    S(x));
    if (overlaps_itself(x))
        return fail(TENSOR_EVALUE, op,
                    "in place on %s whose elements share memory (expanded?): tensor_clone it first", S(x));
    return 0;
}

/* x takes the value of t, a tensor of its shape, and, where grad mode is on, t's history. */
int inplace_take(const char *name, const char *writer, Tensor *x, Tensor *t, const void *site)
{
    bool graph =
        !grad_off && dtype_is_float(x->dtype) && (t->entry || x->entry || (x->base && x->base->entry));
    Entry *write = NULL, *read = NULL;
    Tensor *base = x->base;
    if (graph && base) {
        if (!(base->flags & FLAG_CONTIGUOUS)) return no_dense_base(name, base);
        Region r = region_of(x, base);
        write = record_only(&op_region_write, (Tensor *[]){ base, t }, 2, &r, base, site);
        if (!write) return -1;
        Tensor *as_base =
            new_alias(base->storage, base->data, base->dtype, base->ndim, base->shape, base->stride);
        if (as_base) {
            entry_attach(write, 0, as_base);
            read = record_only(&op_region, &as_base, 1, &r, x, site);
            tensor_release(as_base);
        }
        if (!read) {
            entry_unref(write);
            return -1;
        }
    }
    if (raw_copy(x, t)) {
        if (write) entry_unref(write);
        if (read) entry_unref(read);
        return -1;
    }
    note_write(x, writer, site);
    if (write) {
        entry_attach(write, 0, base);
        entry_attach(read, 0, x);
        base->epoch++;
        x->base_epoch = base->epoch;
        entry_unref(write);
        entry_unref(read);
    } else if (graph && t->entry) {
        entry_attach(t->entry, t->slot, x);
    } else if (x->entry && !grad_off) { /* overwritten by something without a graph */
        Entry *old = x->entry;
        x->entry = NULL;
        entry_release_result(old, x);
    }
    if (!base) x->epoch++;
    return 0;
}

/* Will backward read the value to be overwritten?  The ops of a composed one may. */
static bool backward_reads_target(const TensorOp *op, Tensor *const *inputs, int n)
{
    for (int i = 0; i < n && !grad_off; i++)
        if (on_graph(inputs[i]) && (op->compose || (keep_of_input(op, i, op->keep) & KEEP_INPUT(0))))
            return true;
    return false;
}

Tensor *op_apply_as_(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                     const void *site)
{
    Tensor *x = n > 0 ? inputs[0] : NULL, *in[OP_MAX_INPUTS];
    if (check_null(x, name, 1) || inplace_check(name, x)) return NULL;
    TensorScope scope = tensor_scope_open();
    if (n <= OP_MAX_INPUTS && backward_reads_target(op, inputs, n)) {
        Tensor *old = graph_ops.clone(x); /* as PyTorch: backward reads a copy of it */
        for (int i = 0; i < n; i++) in[i] = inputs[i] == x ? old : inputs[i];
        inputs = in;
    }
    const bool autocast = autocast_switch(false);
    Tensor *t = op_apply1_as(op, name, inputs, n, params, site);
    autocast_switch(autocast);
    int status = t ? 0 : -1;
    if (t && !shape_equal(shape_of(t), shape_of(x)))
        status =
            fail_site(TENSOR_ESHAPE, name, site, "in place: the result %s does not fit into %s", S(t), S(x));
    if (!status && t->dtype != x->dtype) {
        if (dtype_is_float(t->dtype) > dtype_is_float(x->dtype) || (x->dtype == TENSOR_BOOL))
            status =
                fail_site(TENSOR_EDTYPE, name, site, "in place: the result is %s and does not fit into %s",
                          tensor_dtype_name(t->dtype), tensor_dtype_name(x->dtype));
        else if (!(t = graph_ops.to(t, x->dtype))) status = -1;
    }
    if (!status) status = inplace_take(name, op->name, x, t, site);
    tensor_scope_close(scope);
    return status ? NULL : borrow(x);
}

Tensor *op_apply_(const TensorOp *op, Tensor *const *inputs, int n, const void *params, const void *site)
{
    char name[80];
    snprintf(name, sizeof name, "%s_", op->name);
    return op_apply_as_(op, name, inputs, n, params, site);
}

Tensor *tensor_apply_(const TensorOp *op, Tensor *const *inputs, int n, const void *params)
{
    if (!op) return fail(TENSOR_ENULL, "tensor_apply_", "the op is NULL"), NULL;
    if (!inputs || n < 1)
        return fail(TENSOR_ENULL, "tensor_apply_", "%d inputs: want the target first", n), NULL;
    if (op->flags & OP_VIEW)
        return fail(TENSOR_EVALUE, op->name, "gives a view of its input: there is nothing to write in place"),
               NULL;
    return op_apply_(op, inputs, n, params, SITE);
}
