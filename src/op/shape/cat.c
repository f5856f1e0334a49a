/* cat.c - joining tensors: cat along a dimension that they have, stack along a new one.
 *
 *   y = the x_i one behind the other in dim                  dx_i = its part of dy, a view
 *
 * Operands of several dtypes are promoted.  More than OP_MAX_INPUTS of them are joined in groups, then the
 * groups. */
#include "shape_op.h"

const TensorJoinArgs tensor_join_defaults = { TENSOR_JOIN_DEFAULTS };

/* A vector of no elements fits anywhere, as in PyTorch: it is left out. */
static bool left_out(TensorShape shape) { return shape.ndim == 1 && shape.dim[0] == 0; }

static int joined_dtype(const OpCall *c)
{
    int dtype = op_input(c, 0)->dtype;
    for (int i = 1; i < op_inputs(c); i++)
        dtype = (int)tensor_promote_types((TensorDtype)dtype, (TensorDtype)op_input(c, i)->dtype);
    return dtype;
}

/* ---- cat ------------------------------------------------------------------------------------- */

static int cat_shape(OpCall *c)
{
    TensorJoinArgs *p = op_params_mut(c);
    Tensor *first = NULL;
    int64_t shape[TENSOR_MAX_DIMS], total = 0;
    for (int i = 0; i < op_inputs(c) && !first; i++)
        if (!left_out(shape_of(op_input(c, i)))) first = op_input(c, i);
    if (!first) first = op_input(c, 0), p->dim = 0; /* nothing else: any dim, as in PyTorch */
    if (first->ndim == 0)
        return op_fail(c, TENSOR_ESHAPE, "a tensor of rank 0 has no dimension to join along: use stack");
    p->dim = call_dim(c, p->dim, shape_of(first));
    if (p->dim < 0) return -1;
    for (int i = 0; i < op_inputs(c); i++) {
        const Tensor *x = op_input(c, i);
        if (left_out(shape_of(x))) continue;
        bool fits = x->ndim == first->ndim;
        for (int d = 0; fits && d < x->ndim; d++) fits = d == p->dim || x->shape[d] == first->shape[d];
        if (!fits)
            return op_fail(c, TENSOR_ESHAPE, "%s beside %s: want equal sizes in all dimensions but %d", S(x),
                           S(first), p->dim);
        if (__builtin_add_overflow(total, x->shape[p->dim], &total))
            return op_fail(c, TENSOR_ESHAPE, "too many elements");
    }
    for (int d = 0; d < first->ndim; d++) shape[d] = d == p->dim ? total : first->shape[d];
    return op_set_output(c, 0, (TensorShape){ first->ndim, shape }, (TensorDtype)joined_dtype(c));
}

static int cat_forward(OpCall *c)
{
    const TensorJoinArgs *p = op_params(c);
    int64_t at = 0;
    for (int i = 0; i < op_inputs(c); i++) {
        const Tensor *x = op_input(c, i);
        if (left_out(shape_of(x))) continue;
        Tensor *part = new_part(op_output(c, 0), p->dim, at, x->shape[p->dim], 1);
        int status = part ? raw_copy(part, x) : -1;
        tensor_release(part);
        if (status) return -1;
        at += x->shape[p->dim];
    }
    return 0;
}

static int cat_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorJoinArgs *p = op_params(c);
    int64_t at = 0;
    for (int i = 0; i < op_inputs(c); i++) {
        TensorShape shape = op_input_shape(c, i);
        int64_t length = left_out(shape) ? 0 : shape.dim[p->dim];
        if (op_wants(c, i)) {
            if (left_out(shape)) dx[i] = zeros_on(shape, dy->dtype, dy->place);
            else if (op_recording(c)) dx[i] = tensor_narrow(dy, p->dim, at, length);
            else dx[i] = own(new_part(dy, p->dim, at, length, 1));
            if (!dx[i]) return -1;
        }
        at += length;
    }
    return 0;
}

static const OpField fields[] = { OP_OPTION(TensorJoinArgs, dim), { 0 } };
static const TensorOp op_cat = {
    .name = "cat",
    .autocast = AUTOCAST_PROMOTE,
    .summary = "tensors one behind the other along dim",
    .gradient = "dx_i = its part of g",
    .arity = OP_ANY_ARITY,
    PARAMS(TensorJoinArgs, tensor_join_defaults, fields),
    .shape = cat_shape,
    .forward = cat_forward,
    .backward = cat_backward,
    .flags = OP_ANY_DEVICE,
    .samples =
        "2x3,4x3; 2x3,2x1,2x2 {dim=1}; 2x3x2,2x1x2 {dim=-2}; 3; 0x3,2x3; 0,2x3 {dim=1}; 0,0; 2x0,2x0 {dim=1}",
    .errors = "2x3,2x4 ! ESHAPE; 2x3,3 ! ESHAPE; 2x3,2x3 {dim=2} ! EINDEX; , ! ESHAPE"
};
REGISTER_OPS(&op_cat);

/* ---- stack ----------------------------------------------------------------------------------- */

static int stack_shape(OpCall *c)
{
    TensorJoinArgs *p = op_params_mut(c);
    const Tensor *first = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    int ndim = first->ndim + 1;
    if (ndim > TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%s has %d dimensions already", S(first), TENSOR_MAX_DIMS);
    if (p->dim < -ndim || p->dim >= ndim)
        return op_fail(c, TENSOR_EINDEX, "dimension %d of %s with one more: want %d to %d", p->dim, S(first),
                       -ndim, ndim - 1);
    if (p->dim < 0) p->dim += ndim;
    for (int i = 1; i < op_inputs(c); i++)
        if (!shape_equal(shape_of(first), shape_of(op_input(c, i))))
            return op_fail(c, TENSOR_ESHAPE, "%s beside %s: want equal shapes", S(op_input(c, i)), S(first));
    for (int d = 0; d < ndim; d++)
        shape[d] = d == p->dim ? op_inputs(c) : first->shape[d > p->dim ? d - 1 : d];
    return op_set_output(c, 0, (TensorShape){ ndim, shape }, (TensorDtype)joined_dtype(c));
}

static int stack_forward(OpCall *c)
{
    const TensorJoinArgs *p = op_params(c);
    for (int i = 0; i < op_inputs(c); i++) {
        Tensor *layer = new_layer(op_output(c, 0), p->dim, i);
        int status = layer ? raw_copy(layer, op_input(c, i)) : -1;
        tensor_release(layer);
        if (status) return -1;
    }
    return 0;
}

static int stack_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorJoinArgs *p = op_params(c);
    for (int i = 0; i < op_inputs(c); i++) {
        if (!op_wants(c, i)) continue;
        dx[i] = op_recording(c) ? tensor_select(dy, p->dim, i) : own(new_layer(dy, p->dim, i));
        if (!dx[i]) return -1;
    }
    return 0;
}

static const TensorOp op_stack = {
    .name = "stack",
    .autocast = AUTOCAST_PROMOTE,
    .summary = "tensors of one shape side by side in a new dimension",
    .gradient = "dx_i = its slice of g",
    .arity = OP_ANY_ARITY,
    PARAMS(TensorJoinArgs, tensor_join_defaults, fields),
    .shape = stack_shape,
    .forward = stack_forward,
    .backward = stack_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "2x3,2x3; 2x3,2x3,2x3 {dim=1}; 2x3,2x3 {dim=-1}; ,,; 3; 0x3,0x3 {dim=2}",
    .errors = "2x3,3x2 ! ESHAPE; 2x3,2x3 {dim=3} ! EINDEX"
};
REGISTER_OPS(&op_stack);

/* ---- any number of operands ------------------------------------------------------------------ */

static Tensor *join(const TensorOp *op, Tensor *const *x, int n, int dim, const void *site)
{
    TensorJoinArgs p = { .dim = dim };
    Tensor *groups[OP_MAX_INPUTS];
    if (n <= 0 || !x) return fail_site(TENSOR_EVALUE, op->name, site, "no tensors given"), NULL;
    if (n <= OP_MAX_INPUTS) return op_apply1(op, x, n, &p, site);
    int count = 0, each = (n + OP_MAX_INPUTS - 1) / OP_MAX_INPUTS;
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < n; i += each) {
        Tensor *part = join(op, x + i, n - i < each ? n - i : each, dim, site);
        if (!part) return tensor_scope_return(scope, NULL);
        groups[count++] = part;
    }
    if (op == &op_stack && dim < 0) p.dim = dim + groups[0]->ndim; /* the groups have the new dimension */
    return tensor_scope_return(scope, op_apply1(&op_cat, groups, count, &p, site));
}

Tensor *tensor_cat_args(TensorJoinArgs args)
{
    return join(&op_cat, args.tensors.item, args.tensors.count, args.dim, SITE);
}

Tensor *tensor_stack_args(TensorJoinArgs args)
{
    return join(&op_stack, args.tensors.item, args.tensors.count, args.dim, SITE);
}
