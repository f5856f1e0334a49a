/* distance.c - normalisation of vectors, and distances and similarities of pairs: composed of norms.
 *
 *   normalize           x / max(|x|_p, eps)
 *   renorm              each slice along dim with |x|_p > maxnorm times maxnorm / (|x|_p + 1e-7)
 *   dist                |a - b|_p of all elements
 *   pairwise_distance   |a - b + eps|_p along the last dim
 *   cosine_similarity   a . b / (max(|a|, eps) max(|b|, eps)) along dim */
#include <math.h>
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

const TensorNormalizeArgs tensor_normalize_defaults = { TENSOR_NORMALIZE_DEFAULTS };
const TensorDistArgs tensor_dist_defaults = { TENSOR_DIST_DEFAULTS };
const TensorPairwiseDistanceArgs tensor_pairwise_distance_defaults = { TENSOR_PAIRWISE_DISTANCE_DEFAULTS };
const TensorCosineArgs tensor_cosine_defaults = { TENSOR_COSINE_DEFAULTS };

typedef struct RenormParams {
    double p;
    int dim;
    double maxnorm;
} RenormParams;

static int wrap(OpCall *c, int *dim, TensorShape shape)
{
    *dim = call_dim(c, *dim, shape);
    return *dim < 0 ? -1 : 0;
}

/* The shape that a and b broadcast to; -1: none, recorded. */
static int joint_shape(OpCall *c, int64_t *dim)
{
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    int ndim = shape_broadcast(shape_of(a), shape_of(b), dim);
    if (ndim < 0)
        op_fail(c, TENSOR_ESHAPE,
                "%s and %s do not broadcast: aligned at the last dimension, sizes must agree or be 1", S(a),
                S(b));
    return ndim;
}

/* ---- of one tensor --------------------------------------------------------------------------- */

static int normalize_shape(OpCall *c)
{
    return wrap(c, &((TensorNormalizeArgs *)op_params_mut(c))->dim, shape_of(op_input(c, 0)));
}

static int normalize(OpCall *c)
{
    const TensorNormalizeArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *length = tensor_norm(x, p->p, p->dim, true);
    return op_set_result(c, 0, tensor_div(x, tensor_clamp(length, p->eps, INFINITY)));
}

static int renorm_shape(OpCall *c)
{
    RenormParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (x->ndim < 2) return op_fail(c, TENSOR_ESHAPE, "%s: want at least 2 dimensions", S(x));
    if (!(p->p > 0)) return op_fail(c, TENSOR_EVALUE, "p = %g must be positive", p->p);
    if (!(p->maxnorm >= 0)) return op_fail(c, TENSOR_EVALUE, "maxnorm = %g must not be negative", p->maxnorm);
    return wrap(c, &p->dim, shape_of(x));
}

static int renorm(OpCall *c)
{
    const RenormParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t others[TENSOR_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < x->ndim; i++)
        if (i != p->dim) others[n++] = i;
    Tensor *length = tensor_norm(x, p->p, .dims = (TensorShape){ n, others }, .keepdim = true);
    Tensor *factor = tensor_mul_scalar(tensor_reciprocal(tensor_add_scalar(length, 1e-7)), p->maxnorm);
    factor =
        factor ? tensor_where(tensor_gt_scalar(length, p->maxnorm), factor, tensor_ones_like(factor)) : NULL;
    return op_set_result(c, 0, tensor_mul(x, factor));
}

/* ---- of two ---------------------------------------------------------------------------------- */

static int dist_shape(OpCall *c)
{
    int64_t dim[TENSOR_MAX_DIMS];
    return joint_shape(c, dim) < 0 ? -1 : 0;
}

static int dist(OpCall *c)
{
    const TensorDistArgs *p = op_params(c);
    return op_set_result(c, 0, tensor_norm(tensor_sub(op_input(c, 0), op_input(c, 1)), p->p));
}

static int last_shape(OpCall *c)
{
    int64_t dim[TENSOR_MAX_DIMS];
    int ndim = joint_shape(c, dim);
    if (ndim == 0) op_fail(c, TENSOR_ESHAPE, "operands of rank 0: want vectors along the last dimension");
    return ndim <= 0 ? -1 : 0;
}

static int pairwise(OpCall *c)
{
    const TensorPairwiseDistanceArgs *p = op_params(c);
    Tensor *d = tensor_sub(op_input(c, 0), op_input(c, 1));
    if (d && !dtype_is_float(d->dtype)) d = tensor_to(d, TENSOR_F32);
    return op_set_result(c, 0, tensor_norm(tensor_add_scalar(d, p->eps), p->p, -1, p->keepdim));
}

static int cosine_shape(OpCall *c)
{
    int64_t dim[TENSOR_MAX_DIMS];
    int ndim = joint_shape(c, dim);
    return ndim < 0 ? -1 : wrap(c, &((TensorCosineArgs *)op_params_mut(c))->dim, (TensorShape){ ndim, dim });
}

/* max(|x|, eps), with the gradient of |x| even below eps, as in PyTorch. */
static Tensor *length_of(Tensor *x, int dim, double eps)
{
    Tensor *n = tensor_norm(x, 2, dim, true);
    if (!n) return NULL;
    Tensor *apart = tensor_detach(n);
    return tensor_add(n, tensor_sub(tensor_clamp(apart, eps, INFINITY), apart));
}

static int cosine(OpCall *c)
{
    const TensorCosineArgs *p = op_params(c);
    int64_t dim[TENSOR_MAX_DIMS];
    Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    const TensorShape to = { joint_shape(c, dim), dim };
    const TensorDtype dtype = (TensorDtype)promoted_pair(a, b);
    if (!dtype_is_float(dtype))
        return op_fail(c, TENSOR_EDTYPE, "%s %s and %s %s: want a float among them",
                       tensor_dtype_name((TensorDtype)a->dtype), S(a),
                       tensor_dtype_name((TensorDtype)b->dtype), S(b));
    a = tensor_expand(tensor_to(a, dtype), to), b = tensor_expand(tensor_to(b, dtype), to);
    Tensor *u = tensor_div(a, length_of(a, p->dim, p->eps)), *v = tensor_div(b, length_of(b, p->dim, p->eps));
    return op_set_result(c, 0, tensor_sum(tensor_mul(u, v), p->dim));
}

/* ---- ops ------------------------------------------------------------------------------------- */

static const OpField normalize_fields[] = { OP_OPTION(TensorNormalizeArgs, p, dim, eps), { 0 } };
static const OpField renorm_fields[] = { OP_REQUIRED(RenormParams, p, dim, maxnorm), { 0 } };
static const OpField dist_fields[] = { OP_OPTION(TensorDistArgs, p), { 0 } };
static const OpField pairwise_fields[] = { OP_OPTION(TensorPairwiseDistanceArgs, p, eps, keepdim), { 0 } };
static const OpField cosine_fields[] = { OP_OPTION(TensorCosineArgs, dim, eps), { 0 } };
#define ONE .arity = 1, .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS | OP_ROUND_ONCE
#define TWO .arity = 2, .flags = OP_ANY_DEVICE | OP_ROUND_ONCE
#define OPTIONS(options, defaults_) .params = sizeof(options), .defaults = &(defaults_)

const TensorOp op_normalize = {
    .name = "normalize",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "x / max(|x|_p, eps) along dim; at |x| = 0 the gradient is g / eps",
    ONE,
    OPTIONS(TensorNormalizeArgs, tensor_normalize_defaults),
    .fields = normalize_fields,
    .gradient = "p = 2: dx = (g - y sum(g y)) / |x|",
    .shape = normalize_shape,
    .compose = normalize,
    .torch = "nn.functional.normalize",
    .samples = "3x4; 5 {dim=0}; 2x3x4 {dim=-1 p=1}; 3x4:.5..2 {p=3}; 2x3:.5..2 {p=2 eps=10}; {dim=0}; 0x3; "
               "3x0; 3x4 {p=inf}",
    .errors = "3 ! EINDEX; 3x4@i64 ! EDTYPE",
};
const TensorOp op_renorm = {
    .name = "renorm",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "slices along dim scaled down to |x|_p = maxnorm where they are longer",
    ONE,
    .params = sizeof(RenormParams),
    .fields = renorm_fields,
    .gradient = "n = |x|_p + 1e-7, s = maxnorm / n where |x|_p > maxnorm: dx = s g - s / n sum(g x) sign(x) "
                "(|x| / |x|_p)^(p - 1); else g",
    .shape = renorm_shape,
    .compose = renorm,
    .samples = "3x4 {p=2 dim=0 maxnorm=.5}; 3x4 {p=2 dim=-1 maxnorm=9}; 2x3x4 {p=1 dim=1 maxnorm=1}; "
               "2x3:.5..2 {p=3 dim=0 maxnorm=1}; "
               "0x3 {p=2 dim=0 maxnorm=1}; 3x0 {p=2 dim=0 maxnorm=1}; 2x3 {p=inf dim=1 maxnorm=.1}",
    .errors = "3 {p=2 dim=0 maxnorm=1} ! ESHAPE; 2x3 {p=0 dim=0 maxnorm=1} ! EVALUE; 2x3 {p=2 dim=0 "
              "maxnorm=-1} ! EVALUE; 2x3 {p=2 dim=2 maxnorm=1} ! EINDEX",
};
const TensorOp op_dist = {
    .name = "dist",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "|a - b|_p of all elements; gradient 0 where it is 0",
    TWO,
    OPTIONS(TensorDistArgs, tensor_dist_defaults),
    .fields = dist_fields,
    .gradient = "d = a - b: da = g sign(d) (|d| / y)^(p - 1), db = -da; p = inf: shared by ties",
    .shape = dist_shape,
    .compose = dist,
    .samples = "5,5; 3x4,4; 3x1,4 {p=1}; 3:1..2,3:-2..-1 {p=3}; ,; 0,0; 5,5 {p=inf}; 3,3 {p=0}",
    .errors = "3,4 ! ESHAPE; 3@i64,3@i64 ! EDTYPE; 3@bool,3 ! EDTYPE",
};
const TensorOp op_pairwise_distance = {
    .name = "pairwise_distance",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "|a - b + eps|_p along the last dim",
    TWO,
    OPTIONS(TensorPairwiseDistanceArgs, tensor_pairwise_distance_defaults),
    .fields = pairwise_fields,
    .gradient = "d = a - b + eps: da = g sign(d) (|d| / y)^(p - 1), db = -da; p = inf: shared by ties",
    .shape = last_shape,
    .compose = pairwise,
    .torch = "nn.functional.pairwise_distance",
    .samples = "3x4,3x4; 3x4,4 {keepdim=1}; 5,5 {p=1}; 2x3x4:1..2,3x4:-1..0 {p=3}; 0x3,0x3; 3x0,3x0; 3x4,3x4 "
               "{eps=.5}",
    .errors = "3x4,3x5 ! ESHAPE; , ! ESHAPE; 3@bool,3 ! EDTYPE",
};
const TensorOp op_cosine_similarity = {
    .name = "cosine_similarity",
    .autocast = AUTOCAST_CUDA_F32,
    .summary = "a . b / (max(|a|, eps) max(|b|, eps)) along dim",
    TWO,
    OPTIONS(TensorCosineArgs, tensor_cosine_defaults),
    .fields = cosine_fields,
    .gradient = "da = g (b / |b| - y a / |a|) / |a|, db likewise",
    .shape = cosine_shape,
    .compose = cosine,
    .torch = "nn.functional.cosine_similarity",
    .samples = "3x4,3x4; 5,5 {dim=0}; 2x3x4,3x1 {dim=-1}; 3x4,1x4 {dim=0}; ,  {dim=0}; 0x3,0x3; 3x0,3x0",
    .errors = "3x4,3x5 ! ESHAPE; 3,3 ! EINDEX; 3x4@i64,3x4@i64 ! EDTYPE",
};
REGISTER_OPS(&op_normalize, &op_renorm, &op_dist, &op_pairwise_distance, &op_cosine_similarity);

Tensor *tensor_normalize_args(TensorNormalizeArgs a) { return APPLY(&op_normalize, &a, a.input); }

Tensor *tensor_renorm(Tensor *x, double p, int dim, double maxnorm)
{
    return APPLY(&op_renorm, &((RenormParams){ p, dim, maxnorm }), x);
}

Tensor *tensor_renorm_(Tensor *x, double p, int dim, double maxnorm)
{
    return APPLY_(&op_renorm, &((RenormParams){ p, dim, maxnorm }), x);
}

Tensor *tensor_dist_args(TensorDistArgs a) { return APPLY(&op_dist, &a, a.a, a.b); }

Tensor *tensor_pairwise_distance_args(TensorPairwiseDistanceArgs a)
{
    return APPLY(&op_pairwise_distance, &a, a.a, a.b);
}

Tensor *tensor_cosine_similarity_args(TensorCosineArgs a)
{
    return APPLY(&op_cosine_similarity, &a, a.a, a.b);
}
