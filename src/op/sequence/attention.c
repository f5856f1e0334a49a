/* attention.c - scaled dot product attention.
 *
 *   s = scale q k^T + mask,  p = softmax(s),  y = D(p) v          q [..., L, E], k [..., S, E], v [..., S, V]
 *   dv = D(p)^T g,  dp = D(g v^T),  ds = p (dp - sum p dp)
 *   dq = scale ds k,  dk = scale ds^T q,  dmask = ds
 *
 * D is dropout.  A row of p whose scores are all -inf is 0, and so are its gradients.
 *
 * The kernel reads q, k and v where they lie, an item (a head of a batch) at a time; extras 0 and 1 are what
 * it keeps of each row.  Calls that a device declines, and sweeps that are recorded, form all of p by ops. */
#include <math.h>
#include "op/reduce/reduce.h"
#include "attention.h"
#include "op/elementwise/dropout.h"
#include "op/shape/shape_op.h"

const TensorAttentionArgs tensor_attention_defaults = { TENSOR_ATTENTION_DEFAULTS };

/* Of the options, masked and fused are what shape() and forward() find out for backward: is there a mask?
 * Were extras kept by the kernel? */
enum { Q, K, V, MASK, OPERANDS };

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The batch dims of x, in front of its matrices; one head of k or v serves several of q under enable_gqa. */
static int batch_dims(const TensorAttentionArgs *p, const Tensor *x, const Tensor *q, int64_t *dim)
{
    for (int i = 0; i < x->ndim - 2; i++)
        dim[i] = p->enable_gqa && i == x->ndim - 3 ? q->shape[q->ndim - 3] : x->shape[i];
    return x->ndim - 2;
}

static int check_heads(OpCall *c)
{
    const Tensor *q = op_input(c, Q), *k = op_input(c, K), *v = op_input(c, V);
    const bool heads = q->ndim > 2 && k->ndim > 2 && v->ndim > 2;
    const int64_t hq = heads ? q->shape[q->ndim - 3] : 1, hk = heads ? k->shape[k->ndim - 3] : 0,
                  hv = heads ? v->shape[v->ndim - 3] : 0;
    if (hk && hv && hq % hk == 0 && hq % hv == 0) return 0;
    return op_fail(
        c, TENSOR_ESHAPE,
        "query %s, key %s, value %s: with enable_gqa the heads of key and value divide those of query", S(q),
        S(k), S(v));
}

static int check_operands(OpCall *c)
{
    static const char *const name[] = { "query", "key", "value" };
    const Tensor *q = op_input(c, Q), *k = op_input(c, K), *v = op_input(c, V), *mask = op_input(c, MASK);
    for (int i = Q; i <= V; i++) {
        const Tensor *x = op_input(c, i);
        if (!dtype_is_float(x->dtype) || x->dtype != q->dtype)
            return op_fail(c, TENSOR_EDTYPE, "%s is %s, query %s: want one floating dtype", name[i],
                           tensor_dtype_name((TensorDtype)x->dtype),
                           tensor_dtype_name((TensorDtype)q->dtype));
        if (x->ndim < 2) return op_fail(c, TENSOR_ESHAPE, "%s %s: want [..., length, width]", name[i], S(x));
    }
    if (q->shape[q->ndim - 1] != k->shape[k->ndim - 1])
        return op_fail(c, TENSOR_ESHAPE, "query %s and key %s: the last sizes differ", S(q), S(k));
    if (k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
        return op_fail(c, TENSOR_ESHAPE, "key %s and value %s: the lengths differ", S(k), S(v));
    if (mask && mask->dtype != TENSOR_BOOL && mask->dtype != TENSOR_F32 && mask->dtype != q->dtype)
        return op_fail(c, TENSOR_EDTYPE, "attn_mask is %s, query %s: want bool, f32 or the query's dtype",
                       tensor_dtype_name((TensorDtype)mask->dtype), tensor_dtype_name((TensorDtype)q->dtype));
    return 0;
}

/* The batch, into dim; its rank or -1. */
static int batch_of(OpCall *c, int64_t *dim)
{
    const TensorAttentionArgs *p = op_params(c);
    const Tensor *q = op_input(c, Q);
    int n = batch_dims(p, q, q, dim);
    for (int i = K; i <= V; i++) {
        const Tensor *x = op_input(c, i);
        int64_t other[TENSOR_MAX_DIMS], both[TENSOR_MAX_DIMS];
        const int ndim = batch_dims(p, x, q, other);
        n = shape_broadcast((TensorShape){ n, dim }, (TensorShape){ ndim, other }, both);
        if (n < 0)
            return op_fail(c, TENSOR_ESHAPE, "query %s, key %s, value %s: the batches do not broadcast", S(q),
                           S(op_input(c, K)), S(op_input(c, V)));
        memcpy(dim, both, sizeof both);
    }
    return n;
}

static int check_mask(OpCall *c, TensorShape scores)
{
    const Tensor *mask = op_input(c, MASK);
    int64_t both[TENSOR_MAX_DIMS];
    if (!mask) return 0;
    const int n = shape_broadcast(scores, shape_of(mask), both);
    if (n >= 0 && shape_equal(scores, (TensorShape){ n, both })) return 0;
    return op_fail(c, TENSOR_ESHAPE, "attn_mask %s, scores %s: want one that broadcasts to them", S(mask),
                   shape_text(scores));
}

/* [batch, rows, cols], in dim. */
static TensorShape with_matrix(int batch, int64_t *dim, int64_t rows, int64_t cols)
{
    dim[batch] = rows, dim[batch + 1] = cols;
    return (TensorShape){ batch + 2, dim };
}

/* Do the heads lie behind the rows, as where a layer splits its features into them? */
static int64_t heads_behind(const Tensor *x)
{
    const int h = x->ndim - 3;
    return h >= 0 && x->shape[h] > 1 && x->stride[h] < x->stride[h + 1] ? x->shape[h] : 1;
}

/* New, with the heads behind the rows if heads > 1. */
static Tensor *room(TensorShape shape, int64_t heads, int dtype, const Place *place)
{
    if (heads <= 1) return own(new_tensor(shape, dtype, place));
    int64_t dim[TENSOR_MAX_DIMS];
    const int h = shape.ndim - 3;
    for (int d = 0; d < shape.ndim; d++) dim[d] = shape.dim[d];
    dim[h] = shape.dim[h + 1], dim[h + 1] = shape.dim[h];
    Tensor *dense = own(new_tensor((TensorShape){ shape.ndim, dim }, dtype, place));
    if (!dense) return NULL;
    int64_t stride[TENSOR_MAX_DIMS];
    memcpy(stride, dense->stride, sizeof *stride * (size_t)shape.ndim);
    stride[h] = dense->stride[h + 1], stride[h + 1] = dense->stride[h];
    return own(new_view(dense, shape.ndim, shape.dim, stride, 0));
}

static int shape(OpCall *c)
{
    TensorAttentionArgs *p = op_params_mut(c);
    int64_t dim[TENSOR_MAX_DIMS];
    if (!(p->dropout_p >= 0 && p->dropout_p <= 1))
        return op_fail(c, TENSOR_EVALUE, "dropout_p = %g: a probability lies in [0, 1]", p->dropout_p);
    if (p->is_causal && op_input(c, MASK))
        return op_fail(c, TENSOR_EVALUE, "is_causal and an attn_mask: one or the other");
    if (check_operands(c) || (p->enable_gqa && check_heads(c))) return -1;
    const Tensor *q = op_input(c, Q), *v = op_input(c, V);
    const int n = batch_of(c, dim);
    if (n < 0) return -1;
    const int64_t rows = q->shape[q->ndim - 2], cols = v->shape[v->ndim - 2], width = q->shape[q->ndim - 1];
    if (check_mask(c, with_matrix(n, dim, rows, cols))) return -1;
    p->masked = op_input(c, MASK) != NULL;
    if (p->scale == 0) p->scale = width ? 1 / sqrt((double)width) : 1;
    const TensorShape y = with_matrix(n, dim, rows, v->shape[v->ndim - 1]);
    const int64_t heads =
        q->ndim == y.ndim && !on_host(q->place) && TAKES(q->place, attention, q->dtype) ? heads_behind(q) : 1;
    if (heads == 1 || heads != y.dim[n - 1] || shape_count(y) < 1)
        return op_set_output(c, 0, y, (TensorDtype)q->dtype);
    return op_set_result(c, 0, room(y, heads, q->dtype, q->place));
}

/* ---- by the kernel --------------------------------------------------------------------------- */

/* Operands in dtypes that the kernel reads, and the arguments that both directions have. */
typedef struct Layout {
    AttentionArgs args;
    const Tensor *x[OPERANDS];
} Layout;

/* Items of x's batch may serve several items of the result. */
static AttentionOperand operand(const AttentionArgs *a, const Tensor *x)
{
    AttentionOperand o = { .data = x->data, .row = x->stride[x->ndim - 2], .col = x->stride[x->ndim - 1] };
    for (int d = a->ndim - 1, e = x->ndim - 3; d >= 0; d--, e--) {
        o.each[d] = e < 0 || x->shape[e] == 0 ? 1 : a->shape[d] / x->shape[e];
        o.stride[d] = e < 0 ? 0 : x->stride[e];
    }
    return o;
}

/* As it is, or a copy in the dtype that the kernel reads. */
static const Tensor *readable(const AttentionArgs *a, const Tensor *x, bool is_mask)
{
    const bool wide = is_mask && dtype_is_half(a->dtype);
    if (x->dtype == a->dtype || (is_mask && x->dtype == TENSOR_BOOL) || (wide && x->dtype == TENSOR_F32))
        return x;
    return own(raw_cast(x, wide ? TENSOR_F32 : a->dtype));
}

/* So many heads of q, one behind the other, have one gradient of k and v: the device's kernel adds them up.
 * */
static int64_t shared_heads(const TensorAttentionArgs *p, Tensor *const *in)
{
    const Tensor *q = in[Q], *k = in[K], *v = in[V];
    if (!p->enable_gqa || on_host(q->place) || k->shape[k->ndim - 3] != v->shape[v->ndim - 3]) return 1;
    return q->shape[q->ndim - 3] / k->shape[k->ndim - 3];
}

/* y: of the shape of the result. */
static int lay_out(const TensorAttentionArgs *p, Tensor *const *in, TensorShape y, Layout *l)
{
    const Tensor *q = in[Q], *v = in[V], *mask = in[MASK];
    const int dtype = TAKES(q->place, attention, q->dtype) || q->dtype == TENSOR_F64 ? q->dtype : TENSOR_F32;
    *l = (Layout){ .args = { .dtype = dtype,
                             .ndim = y.ndim - 2,
                             .batch = 1,
                             .causal = p->is_causal,
                             .scale = p->scale,
                             .rows = q->shape[q->ndim - 2],
                             .width = q->shape[q->ndim - 1],
                             .cols = v->shape[v->ndim - 2],
                             .value_width = v->shape[v->ndim - 1],
                             .heads = 1,
                             .share = shared_heads(p, in),
                             .keep_factor = p->dropout_p < 1 ? 1 / (1 - p->dropout_p) : 0 } };
    AttentionArgs *a = &l->args;
    for (int i = 0; i < a->ndim; i++) a->batch *= a->shape[i] = y.dim[i];
    for (int i = Q; i < OPERANDS; i++)
        if (in[i] && !(l->x[i] = readable(a, in[i], i == MASK))) return -1;
    a->q = operand(a, l->x[Q]), a->k = operand(a, l->x[K]), a->v = operand(a, l->x[V]);
    if (mask) {
        int64_t dim[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
        memcpy(dim, y.dim, sizeof *dim * (size_t)y.ndim);
        const TensorShape scores = with_matrix(a->ndim, dim, a->rows, a->cols);
        broadcast_strides(l->x[MASK], scores, stride);
        l->x[MASK] = own(new_view(l->x[MASK], scores.ndim, scores.dim, stride, 0));
        if (!l->x[MASK]) return -1;
        a->mask = operand(a, l->x[MASK]), a->mask_dtype = l->x[MASK]->dtype;
    }
    return 0;
}

/* Extras: shift, factor, the mask of dropout, and the result, which the kernels of devices read again. */
static int by_kernel(OpCall *c, Tensor *keep)
{
    Tensor *y = op_output(c, 0);
    Tensor *in[OPERANDS] = { op_input(c, Q), op_input(c, K), op_input(c, V), op_input(c, MASK) };
    Layout l;
    if (lay_out(op_params(c), in, shape_of(y), &l)) return -1;
    const int64_t lines = l.args.batch * l.args.rows;
    const int sums = dtype_is_half(l.args.dtype) ? TENSOR_F32 : l.args.dtype;
    Tensor *shift = room(SHAPE(lines), 1, sums, y->place), *factor = room(SHAPE(lines), 1, sums, y->place);
    Tensor *wide = y->dtype == l.args.dtype ? y : room(shape_of(y), 1, l.args.dtype, y->place);
    if (!shift || !factor || !wide) return -1;
    l.args.heads = heads_behind(wide);
    l.args.shift = shift->data, l.args.factor = factor->data, l.args.y = wide->data,
    l.args.keep = keep ? keep->data : NULL;
    if (RUN_KERNEL(c->name, y->place, attention, &l.args) || (wide != y && raw_copy(y, wide))) return -1;
    if (op_save(c, shift) || op_save(c, factor) || (keep && op_save(c, keep))) return -1;
    return on_host(y->place) ? 0 : op_save(c, own(new_view(y, y->ndim, y->shape, y->stride, 0)));
}

/* ---- by ops ---------------------------------------------------------------------------------- */

/* Heads of k or v, each as often as q has heads for it; and the sum over those of a gradient. */
static Tensor *spread_heads(const TensorAttentionArgs *p, Tensor *x, const Tensor *q)
{
    if (!p->enable_gqa || !x) return x;
    return tensor_repeat_interleave(x, q->shape[q->ndim - 3] / x->shape[x->ndim - 3], .dim = -3);
}

static Tensor *gather_heads(const TensorAttentionArgs *p, Tensor *g, TensorShape x)
{
    if (!p->enable_gqa || !g) return g;
    const int64_t heads = x.dim[x.ndim - 3];
    Tensor *split = tensor_unflatten(g, -3, SHAPE(heads, g->shape[g->ndim - 3] / heads));
    return split ? tensor_sum(split, -3) : NULL;
}

Tensor *attention_probabilities(Tensor *q, Tensor *k, Tensor *mask, double scale, bool causal)
{
    Tensor *s = tensor_matmul(tensor_mul_scalar(q, scale), tensor_transpose(k, -2, -1));
    if (causal && s) {
        Tensor *later = triangle_on(s->shape[s->ndim - 2], s->shape[s->ndim - 1], 1, false, s->place);
        s = tensor_masked_fill(s, later, -INFINITY);
    }
    if (mask && mask->dtype == TENSOR_BOOL) s = tensor_masked_fill(s, tensor_logical_not(mask), -INFINITY);
    else if (mask) s = tensor_add(s, mask);
    Tensor *dead = s ? tensor_all(tensor_eq_scalar(s, -INFINITY), -1, .keepdim = true) : NULL;
    return tensor_masked_fill(tensor_softmax(tensor_masked_fill(s, dead, 0), -1), dead, 0);
}

static Tensor *drop(const TensorAttentionArgs *p, Tensor *x, Tensor *keep)
{
    if (!keep || !x) return x;
    Tensor *zero = zeros_on(SHAPE(), x->dtype, x->place);
    return tensor_where(keep, p->dropout_p < 1 ? tensor_mul_scalar(x, 1 / (1 - p->dropout_p)) : x, zero);
}

static int forward_by_ops(OpCall *c, Tensor *keep)
{
    const TensorAttentionArgs *p = op_params(c);
    Tensor *q = wide_float(op_input(c, Q)), *k = wide_float(spread_heads(p, op_input(c, K), op_input(c, Q)));
    Tensor *v = wide_float(spread_heads(p, op_input(c, V), op_input(c, Q))), *mask = op_input(c, MASK);
    if (mask && !(mask = wide_float(mask))) return -1; /* NULL would be none */
    Tensor *y = tensor_matmul(drop(p, attention_probabilities(q, k, mask, p->scale, p->is_causal), keep), v);
    return !y || raw_copy(op_output(c, 0), y) || (keep && op_save(c, keep)) ? -1 : 0;
}

static int backward_by_ops(OpCall *c, Tensor *keep, Tensor *dy, Tensor **dx)
{
    const TensorAttentionArgs *p = op_params(c);
    Tensor *in[OPERANDS] = { NULL };
    for (int i = Q; i < OPERANDS; i++)
        if ((i < MASK || p->masked) && !(in[i] = op_saved(c, i))) return -1;
    Tensor *q = wide_float(in[Q]), *k = wide_float(spread_heads(p, in[K], in[Q])),
           *v = wide_float(spread_heads(p, in[V], in[Q]));
    Tensor *g = wide_float(dy), *mask = in[MASK];
    if (mask && !(mask = wide_float(mask))) return -1;
    Tensor *probability = attention_probabilities(q, k, mask, p->scale, p->is_causal);
    Tensor *dp = drop(p, tensor_matmul(g, tensor_transpose(v, -2, -1)), keep);
    Tensor *ds =
        tensor_mul(probability, tensor_sub(dp, tensor_sum(tensor_mul(dp, probability), -1, .keepdim = true)));
    Tensor *along = tensor_mul_scalar(ds, p->scale);
    if (op_wants(c, Q)) dx[Q] = tensor_matmul(along, k);
    if (op_wants(c, K))
        dx[K] = gather_heads(p, tensor_matmul(tensor_transpose(along, -2, -1), q), op_input_shape(c, K));
    if (op_wants(c, V))
        dx[V] = gather_heads(p, tensor_matmul(tensor_transpose(drop(p, probability, keep), -2, -1), g),
                             op_input_shape(c, V));
    if (op_wants(c, MASK)) dx[MASK] = ds;
    for (int i = Q; i < OPERANDS; i++)
        if (op_wants(c, i) && !(dx[i] = dx[i] ? tensor_to(dx[i], op_input_dtype(c, i)) : NULL)) return -1;
    return 0;
}

/* ---- forward, backward ----------------------------------------------------------------------- */

static int forward(OpCall *c)
{
    TensorAttentionArgs *p = op_params_mut(c);
    const Tensor *y = op_output(c, 0);
    int64_t dim[TENSOR_MAX_DIMS];
    for (int i = 0; i < y->ndim; i++) dim[i] = y->shape[i];
    Tensor *keep = NULL;
    if (p->dropout_p > 0) {
        const TensorShape scores = with_matrix(y->ndim - 2, dim, y->shape[y->ndim - 2],
                                               op_input(c, V)->shape[op_input(c, V)->ndim - 2]);
        keep = dropout_mask(c, scores, p->dropout_p, y->place);
        if (!keep) return -1;
    }
    p->fused = !by_kernel(c, keep);
    return p->fused ? 0 : take_decline() ? forward_by_ops(c, keep) : -1;
}

/* dy, of the dtype and in the layout of y. */
static const Tensor *as_result(const Tensor *dy, const Tensor *y)
{
    const bool fits =
        dy->dtype == y->dtype && !memcmp(dy->stride, y->stride, sizeof *y->stride * (size_t)y->ndim);
    Tensor *g = fits ? NULL : room(shape_of(dy), heads_behind(y), y->dtype, dy->place);
    return fits ? dy : g && !raw_copy(g, dy) ? g : NULL;
}

static int backward_by_kernel(OpCall *c, const Tensor *keep, Tensor *dy, Tensor **dx)
{
    const TensorAttentionArgs *p = op_params(c);
    Tensor *in[OPERANDS] = { NULL }, *made[OPERANDS] = { NULL };
    for (int i = Q; i < OPERANDS; i++)
        if ((i < MASK || p->masked) && !(in[i] = op_saved(c, i))) return -1;
    const Tensor *shift = op_saved_extra(c, 0), *factor = op_saved_extra(c, 1), *y = NULL;
    Layout l;
    if (!shift || !factor || lay_out(p, in, shape_of(dy), &l)) return -1;
    if (!on_host(dy->place) && !(y = op_saved_extra(c, keep ? 3 : 2))) return -1;
    const Tensor *g = y && heads_behind(y) > 1 ? as_result(dy, y) : DENSE_FOR(attention_grad, dy);
    if (!g) return -1;
    AttentionArgs *a = &l.args;
    a->heads = y ? heads_behind(y) : 1;
    int64_t heads[TENSOR_MAX_DIMS];
    memcpy(heads, a->shape, sizeof heads);
    if (a->share > 1) heads[a->ndim - 1] /= a->share;
    const int64_t sides[OPERANDS][2] = {
        { a->rows, a->width }, { a->cols, a->width }, { a->cols, a->value_width }, { a->rows, a->cols }
    };
    for (int i = Q; i < OPERANDS; i++) {
        int64_t *batch = i == K || i == V ? heads : a->shape;
        if (op_wants(c, i) &&
            !(made[i] = room(with_matrix(a->ndim, batch, sides[i][0], sides[i][1]),
                             i == MASK || a->heads == 1 ? 1 : batch[a->ndim - 1], a->dtype, dy->place)))
            return -1;
    }
    a->shift = shift->data, a->factor = factor->data, a->dy = g->data, a->keep = keep ? keep->data : NULL;
    a->y = y ? y->data : NULL, a->dq = made[Q] ? made[Q]->data : NULL, a->dk = made[K] ? made[K]->data : NULL;
    a->dv = made[V] ? made[V]->data : NULL, a->dmask = made[MASK] ? made[MASK]->data : NULL;
    if (RUN_KERNEL(c->name, dy->place, attention_grad, a)) return -1;
    for (int i = Q; i < OPERANDS; i++) {
        if (!made[i]) continue;
        const bool apart = (i == K || i == V) && a->share == 1;
        Tensor *d = apart ? gather_heads(p, made[i], op_input_shape(c, i)) : made[i];
        if (!d || !(dx[i] = tensor_to(d, op_input_dtype(c, i)))) return -1;
    }
    return 0;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorAttentionArgs *p = op_params(c);
    const bool drops = p->dropout_p > 0;
    Tensor *keep = drops ? op_saved_extra(c, p->fused ? 2 : 0) : NULL;
    if (drops && !keep) return -1;
    if (p->fused && !op_recording(c)) {
        const int status = backward_by_kernel(c, keep, dy, dx);
        if (!status || !take_decline()) return status;
    }
    return backward_by_ops(c, keep, dy, dx);
}

static const OpField fields[] = { OP_OPTION(TensorAttentionArgs, dropout_p, is_causal, scale, enable_gqa),
                                  { 0 } };

const TensorOp op_scaled_dot_product_attention = {
    .name = "scaled_dot_product_attention",
    .autocast = AUTOCAST_LOWER,
    .summary = "softmax(scale q k^T + mask) v; rows that see nothing are 0",
    .arity = 4,
    .gradient = "with p the probabilities, ds = p (g v^T - sum p g v^T): dq = scale ds k, dk = scale ds^T q, "
                "dv = p^T g, dmask = ds",
    .optional = KEEP_INPUT(MASK),
    .keep = KEEP_INPUT(Q) | KEEP_INPUT(K) | KEEP_INPUT(V) | KEEP_INPUT(MASK),
    PARAMS(TensorAttentionArgs, tensor_attention_defaults, fields),
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_OF_PRODUCTS | OP_RANDOM,
    .torch = "nn.functional.scaled_dot_product_attention",
    .samples = "3x4,5x4,5x2,-; 2x3x4,2x5x4,2x5x4,3x5; 2x2x3x4,2x2x3x4,2x2x3x4,- {is_causal=1}; "
               "2x3x4,2x5x4,2x5x3,3x5@bool {scale=.7}; 2x4x3x2,2x2x5x2,2x1x5x3,- {enable_gqa=1}; "
               "4x3x2,2x5x2,2x5x2,1x3x5 {enable_gqa=1}; 2x2x3x4,1x2x5x4,2x5x4,2x1x1x5; 5x3,2x3,2x3,- "
               "{is_causal=1}; 2x3,5x3,5x3,- {is_causal=1}; 2x3x4,2x5x4,2x5x2,- {dropout_p=.4}; "
               "3x4,5x4,5x2,- {dropout_p=1}; 1x2x2x3x2,1x2x2x3x2,1x2x2x3x2,3x3@bool; 0x3x4,0x3x4,0x3x4,-; "
               "2x0x4,2x3x4,2x3x4,-; 2x3x4,2x0x4,2x0x4,-; 3x0,4x0,4x2,-; 3x2,4x2,4x0,-; 3x4,5x4,5x2,5; "
               "2x3x4,2x5x4,2x5x2,5@bool; 3x4,5x4,5x2,@bool",
    .errors = "3x4,5x3,5x2,- ! ESHAPE; 3x4,5x4,4x2,- ! ESHAPE; 4,5x4,5x2,- ! ESHAPE; 2x3x4,3x5x4,3x5x4,- ! "
              "ESHAPE; 3x4,5x4,5x2,4 ! ESHAPE; 3x4,5x4,5x2,3x4 ! ESHAPE; 3x4,5x4,5x2,2x3x5 ! ESHAPE; "
              "3x4,5x4,5x2,3x5@i64 ! EDTYPE; 3x4,5x4,5x2@f64,- ! EDTYPE; 3x4@i64,5x4@i64,5x2@i64,- ! "
              "EDTYPE; 3x4,3x4,3x4,3x3 {is_causal=1} ! EVALUE; 3x4,3x4,3x4,- {dropout_p=1.5} ! EVALUE; "
              "3x4,3x4,3x4,- {enable_gqa=1} ! ESHAPE; 4x3x2,3x5x2,3x5x2,- {enable_gqa=1} ! ESHAPE",
};
REGISTER_OPS(&op_scaled_dot_product_attention);

Tensor *tensor_scaled_dot_product_attention_args(TensorAttentionArgs a)
{
    return APPLY(&op_scaled_dot_product_attention, &a, a.query, a.key, a.value, a.attn_mask);
}
