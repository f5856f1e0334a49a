/* split.c - a tensor in several views along one dimension: split by a size or a list of sizes, chunk, unbind.
 *
 *   part_k = x[..., its range of dim, ...]
 *   dx     = the parts of dy one behind the other, zeros where none arrived
 *
 * One entry on the tape holds all parts.  More parts than one call can have are narrow and select views of
 * their own. */
#include "shape_op.h"

typedef struct SplitParams {
    int dim;
    int64_t size; /* of each part but the last; 0: sizes says */
    TensorShape sizes;
} SplitParams;

/* ---- parts ----------------------------------------------------------------------------------- */

static int64_t part_count(const SplitParams *p, int64_t length)
{
    return !p->size ? p->sizes.ndim : length ? (length - 1) / p->size + 1 : 1;
}

static int64_t part_size(const SplitParams *p, int64_t length, int64_t k)
{
    if (!p->size) return p->sizes.dim[k];
    int64_t rest = length - k * p->size;
    return rest < 0 ? 0 : rest < p->size ? rest : p->size;
}

/* ---- split ----------------------------------------------------------------------------------- */

static int split_shape(OpCall *c)
{
    SplitParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0);
    if (call_real_dim(c, &p->dim)) return -1;
    int64_t length = x->shape[p->dim], total = 0;
    if (p->size < 0 || (p->size == 0 && p->sizes.ndim == 0 && length > 0))
        return op_fail(c, TENSOR_EVALUE, "parts of %lld: want 1 or more", (long long)p->size);
    if (p->size == 0 && p->sizes.ndim == 0) p->size = 1;
    for (int i = 0; i < p->sizes.ndim && !p->size; i++) {
        if (p->sizes.dim[i] < 0 || __builtin_add_overflow(total, p->sizes.dim[i], &total))
            total = -1, i = p->sizes.ndim;
    }
    if (!p->size && total != length)
        return op_fail(c, TENSOR_ESHAPE, "parts of %s of dimension %d of %s: want sizes that sum to %lld",
                       shape_text(p->sizes), p->dim, S(x), (long long)length);
    if (part_count(p, length) > CALL_MAX_OUTPUTS)
        return op_fail(c, TENSOR_ESHAPE, "%lld parts: at most %d", (long long)part_count(p, length),
                       CALL_MAX_OUTPUTS);
    return 0;
}

static int split_forward(OpCall *c)
{
    const SplitParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t length = x->shape[p->dim], at = 0;
    for (int64_t k = 0; k < part_count(p, length); at += part_size(p, length, k), k++)
        if (op_set_result(c, (int)k, own(new_part(x, p->dim, at, part_size(p, length, k), 1)))) return -1;
    return 0;
}

/* The parts' gradients, copied to their places. */
static Tensor *gathered(OpCall *c, int count, int dim, bool layers, const Tensor *dy)
{
    const TensorShape shape = op_input_shape(c, 0);
    int64_t at = 0;
    bool all = true;
    for (int k = 0; k < count; k++) all &= op_has_grad(c, k);
    Tensor *dx = all ? own(new_tensor(shape, dy->dtype, dy->place)) : zeros_on(shape, dy->dtype, dy->place);
    for (int k = 0; dx && k < count; k++) {
        int64_t length = layers ? 1 : op_output_shape(c, k).dim[dim];
        if (op_has_grad(c, k)) {
            Tensor *part = own(layers ? new_layer(dx, dim, k) : new_part(dx, dim, at, length, 1));
            if (!part || raw_copy(part, op_grad(c, k))) return NULL;
        }
        at += length;
    }
    return dx;
}

/* The same on the graph. */
static Tensor *joined(OpCall *c, int count, int dim, bool layers)
{
    Tensor *parts[CALL_MAX_OUTPUTS];
    for (int k = 0; k < count; k++)
        if (!(parts[k] = op_grad(c, k))) return NULL;
    return layers ? tensor_stack(TENSOR_LIST(parts, count), dim) : tensor_cat(TENSOR_LIST(parts, count), dim);
}

static int split_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const SplitParams *p = op_params(c);
    int count = (int)part_count(p, op_input_shape(c, 0).dim[p->dim]);
    dx[0] = op_recording(c) ? joined(c, count, p->dim, false) : gathered(c, count, p->dim, false, dy);
    return dx[0] ? 0 : -1;
}

static const OpField split_fields[] = { OP_OPTION(SplitParams, dim, size, sizes), { 0 } };
static const TensorOp op_split = {
    .name = "split",
    .autocast = AUTOCAST_AS_IS,
    .summary = "views of dim in parts of a size, the last one smaller, or of a list of sizes",
    .gradient = "dx = the parts of g joined",
    .arity = 1,
    .outputs = OP_ANY_ARITY,
    PARAMS_GIVEN(SplitParams, split_fields),
    .shape = split_shape,
    .forward = split_forward,
    .backward = split_backward,
    .flags = OP_VIEW | OP_ANY_DEVICE,
    .samples = "5x2 {size=2}; 2x6 {dim=-1 size=3}; 5 {sizes=[2 0 3]}; 2x3x4 {dim=1 sizes=[1 2]}; 0x3 "
               "{size=2}; 3 {size=7}",
    .errors = "5 {size=-1} ! EVALUE; 5 {size=0} ! EVALUE; 5 {sizes=[2 2]} ! ESHAPE; 5 {sizes=[6 -1]} ! "
              "ESHAPE; 5 {size=1 dim=1} ! EINDEX; "
              "{size=1} ! EINDEX"
};
REGISTER_OPS(&op_split);

/* ---- unbind ---------------------------------------------------------------------------------- */

typedef struct UnbindParams {
    int dim;
} UnbindParams;

static int unbind_shape(OpCall *c)
{
    UnbindParams *p = op_params_mut(c);
    Tensor *x = op_input(c, 0);
    if (call_real_dim(c, &p->dim)) return -1;
    if (x->shape[p->dim] > CALL_MAX_OUTPUTS)
        return op_fail(c, TENSOR_ESHAPE, "dimension %d of %s: at most %d parts", p->dim, S(x),
                       CALL_MAX_OUTPUTS);
    return x->shape[p->dim] ? 0 : op_fail(c, TENSOR_ESHAPE, "dimension %d of %s has no parts", p->dim, S(x));
}

static int unbind_forward(OpCall *c)
{
    const UnbindParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    for (int64_t k = 0; k < x->shape[p->dim]; k++)
        if (op_set_result(c, (int)k, own(new_layer(x, p->dim, k)))) return -1;
    return 0;
}

static int unbind_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const UnbindParams *p = op_params(c);
    int count = (int)op_input_shape(c, 0).dim[p->dim];
    dx[0] = op_recording(c) ? joined(c, count, p->dim, true) : gathered(c, count, p->dim, true, dy);
    return dx[0] ? 0 : -1;
}

static const OpField unbind_fields[] = { OP_OPTION(UnbindParams, dim), { 0 } };
static const TensorOp op_unbind = { .name = "unbind",
                                    .autocast = AUTOCAST_AS_IS,
                                    .summary = "a view for each index of dim, which vanishes",
                                    .gradient = "dx = the slices of g joined",
                                    .arity = 1,
                                    .outputs = OP_ANY_ARITY,
                                    PARAMS_GIVEN(UnbindParams, unbind_fields),
                                    .shape = unbind_shape,
                                    .forward = unbind_forward,
                                    .backward = unbind_backward,
                                    .flags = OP_VIEW | OP_ANY_DEVICE,
                                    .samples = "3x2; 2x3x4 {dim=1}; 2x3 {dim=-1}; 3; 2x0",
                                    .errors = "! EINDEX; 3 {dim=1} ! EINDEX; 0x3 ! ESHAPE" };
REGISTER_OPS(&op_unbind);

/* ---- public: parts go to the caller's array -------------------------------------------------- */

static int check_room(const char *op, int64_t count, Tensor **parts, int max, const void *site)
{
    if (!parts && count > 0) return fail_site(TENSOR_ENULL, op, site, "the array for the parts is NULL");
    if (count <= max) return 0;
    return fail_site(TENSOR_ESHAPE, op, site, "%lld parts, and room for %d", (long long)count, max);
}

static int apart(const SplitParams *p, Tensor *x, Tensor **parts, int count)
{
    int64_t length = x->shape[p->dim], at = 0;
    for (int k = 0; k < count; k++) {
        int64_t n = part_size(p, length, k);
        if (!(parts[k] = tensor_narrow(x, p->dim, at, n))) return -1;
        at += n;
    }
    return count;
}

static int split(const char *name, Tensor *x, SplitParams *p, Tensor **parts, int max, const void *site)
{
    if (check_null(x, name, 1)) return -1;
    int dim = x->ndim ? wrap_dim(p->dim, x->ndim) : -1;
    int64_t count = dim >= 0 && (p->size > 0 || p->sizes.ndim) ? part_count(p, x->shape[dim]) : 1;
    if (check_room(name, count, parts, max, site)) return -1;
    if (count <= CALL_MAX_OUTPUTS) return op_apply_as(&op_split, name, &x, 1, p, site, parts, max);
    p->dim = dim;
    return apart(p, x, parts, (int)count);
}

int tensor_split(Tensor *x, int64_t size, int dim, Tensor **parts, int max)
{
    if (size == 0 && x && x->ndim && wrap_dim(dim, x->ndim) >= 0 && x->shape[wrap_dim(dim, x->ndim)] == 0)
        size = 1;
    SplitParams p = { .dim = dim, .size = size };
    return parts_or_none(split(__func__, x, &p, parts, max, SITE), parts, max);
}

int tensor_split_sizes(Tensor *x, TensorShape sizes, int dim, Tensor **parts)
{
    const bool list = sizes.ndim > 0 && sizes.ndim <= TENSOR_MAX_DIMS && sizes.dim, none = sizes.ndim == 0;
    SplitParams p = { .dim = dim, .sizes = sizes };
    const int count = list ? split(__func__, x, &p, parts, sizes.ndim, SITE)
                           : op_apply_as(&op_split, __func__, &x, 1, &p, SITE, NULL, 0);
    return parts_or_none(none && count > 0 ? 0 : count, parts, sizes.ndim);
}

static int chunk(Tensor *x, int chunks, int dim, Tensor **parts, int max, const void *site)
{
    if (check_null(x, "tensor_chunk", 1)) return -1;
    if (chunks < 1) return fail(TENSOR_EVALUE, "tensor_chunk", "%d chunks: want 1 or more", chunks);
    int d = x->ndim ? wrap_dim(dim, x->ndim) : -1;
    int64_t length = d >= 0 ? x->shape[d] : 1, size = (length + chunks - 1) / chunks;
    if (length) return split("tensor_chunk", x, &(SplitParams){ .dim = dim, .size = size }, parts, max, site);
    if (check_room("chunk", chunks, parts, max, site)) return -1;
    return apart(&(SplitParams){ .dim = d, .size = 1 }, x, parts, chunks);
}

int tensor_chunk(Tensor *x, int chunks, int dim, Tensor **parts, int max)
{
    return parts_or_none(chunk(x, chunks, dim, parts, max, SITE), parts, max);
}

static int unbind(Tensor *x, int dim, Tensor **parts, int max, const void *site)
{
    if (check_null(x, "tensor_unbind", 1)) return -1;
    int d = x->ndim ? wrap_dim(dim, x->ndim) : -1;
    int64_t count = d >= 0 ? x->shape[d] : 1;
    if (check_room("unbind", count, parts, max, site)) return -1;
    if (d >= 0 && count == 0) return 0;
    if (count <= CALL_MAX_OUTPUTS)
        return op_apply(&op_unbind, &x, 1, &(UnbindParams){ dim }, site, parts, max);
    for (int64_t k = 0; k < count; k++)
        if (!(parts[k] = tensor_select(x, d, k))) return -1;
    return (int)count;
}

int tensor_unbind(Tensor *x, int dim, Tensor **parts, int max)
{
    return parts_or_none(unbind(x, dim, parts, max, SITE), parts, max);
}
