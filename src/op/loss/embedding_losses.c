/* embedding_losses.c - losses of pairs and triplets: hinge_embedding, margin_ranking, cosine_embedding,
 * triplet_margin. */
#include <math.h>
#include "loss.h"

const TensorHingeEmbeddingArgs tensor_hinge_embedding_defaults = { TENSOR_HINGE_EMBEDDING_DEFAULTS };
const TensorPairLossArgs tensor_pair_loss_defaults = { TENSOR_PAIR_LOSS_DEFAULTS };
const TensorTripletArgs tensor_triplet_defaults = { TENSOR_TRIPLET_DEFAULTS };

static double margin_of(const OpCall *c) { return ((const TensorPairLossArgs *)op_params(c))->margin; }

/* x where t (not) is value, else 0. */
static Tensor *where_equal(Tensor *t, double value, Tensor *x)
{
    return x ? tensor_where(tensor_eq_scalar(t, value), x, tensor_zeros_like(x)) : NULL;
}

static Tensor *where_other(Tensor *t, double value, Tensor *x)
{
    return x ? tensor_where(tensor_eq_scalar(t, value), tensor_zeros_like(x), x) : NULL;
}

/* Integers stay what they are, and cut the margin. */
static int hinge_compose(OpCall *c)
{
    const int dtype = op_input(c, 0)->dtype;
    const double margin = ((const TensorHingeEmbeddingArgs *)op_params(c))->margin;
    Tensor *x = loss_input(c, 0, dtype), *t = op_input(c, 1);
    Tensor *hinge = tensor_relu(tensor_rsub_scalar(x, dtype_is_float(dtype) ? margin : trunc(margin)));
    return finish_loss(c, tensor_add(where_other(t, 1, hinge), where_other(t, -1, x)), dtype);
}

static int hinge_shape(OpCall *c) { return check_alike(c, 0, 1); }
static int ranking_shape(OpCall *c) { return check_alike(c, 0, 1) || check_alike(c, 0, 2) ? -1 : 0; }

static int ranking_compose(OpCall *c)
{
    const int dtype = loss_float_dtype(c, KEEP_INPUT(0) | KEEP_INPUT(1) | KEEP_INPUT(2));
    Tensor *first = loss_input(c, 0, dtype), *second = loss_input(c, 1, dtype), *t = loss_input(c, 2, dtype);
    Tensor *loss = tensor_add_scalar(tensor_mul(t, tensor_sub(second, first)), margin_of(c));
    return finish_loss(c, tensor_relu(loss), dtype);
}

static int cosine_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *t = op_input(c, 2);
    if (check_alike(c, 0, 1)) return -1;
    if (x->ndim < 1 || x->ndim > 2 || !shape_equal(shape_of(t), (TensorShape){ x->ndim - 1, x->shape }))
        return op_fail(c, TENSOR_ESHAPE, "inputs %s, target %s: want [N, D] and [N], or [D] and []", S(x),
                       S(t));
    return 0;
}

static Tensor *squared_length(Tensor *x)
{
    return tensor_add_scalar(tensor_sum(tensor_square(x), -1), 1e-12);
}

static int cosine_compose(OpCall *c)
{
    const int dtype =
        (int)tensor_promote_types(loss_float_dtype(c, KEEP_INPUT(0)), loss_float_dtype(c, KEEP_INPUT(1)));
    Tensor *x = loss_input(c, 0, dtype), *y = loss_input(c, 1, dtype), *t = op_input(c, 2);
    Tensor *lengths = tensor_sqrt(tensor_mul(squared_length(x), squared_length(y)));
    Tensor *cosine = tensor_div(tensor_sum(tensor_mul(x, y), -1), lengths);
    Tensor *near = tensor_rsub_scalar(cosine, 1), *far = tensor_relu(tensor_sub_scalar(cosine, margin_of(c)));
    return finish_loss(c, tensor_add(where_equal(t, 1, near), where_equal(t, -1, far)), dtype);
}

static int triplet_shape(OpCall *c)
{
    const TensorTripletArgs *p = op_params(c);
    if (check_alike(c, 0, 1) || check_alike(c, 0, 2)) return -1;
    if (!p->distance && op_input(c, 0)->ndim == 0)
        return op_fail(c, TENSOR_ESHAPE, "%s: want [..., D]", S(op_input(c, 0)));
    return p->margin > 0 ? 0 : op_fail(c, TENSOR_EVALUE, "margin = %g must be positive", p->margin);
}

static Tensor *distance(Tensor *x, Tensor *y, const TensorTripletArgs *p)
{
    if (p->distance) return x && y ? p->distance(x, y, p->ctx) : NULL;
    return tensor_norm(tensor_add_scalar(tensor_sub(x, y), p->eps), p->p, -1);
}

/* What the differences promote to, each a float. */
static int triplet_dtype(const OpCall *c, bool swap)
{
    const int near = loss_float_dtype(c, KEEP_INPUT(0) | KEEP_INPUT(1)),
              far = loss_float_dtype(c, KEEP_INPUT(0) | KEEP_INPUT(2)),
              other = swap ? loss_float_dtype(c, KEEP_INPUT(1) | KEEP_INPUT(2)) : far;
    return (int)tensor_promote_types(tensor_promote_types(near, far), other);
}

static int triplet_compose(OpCall *c)
{
    const TensorTripletArgs *p = op_params(c);
    const int dtype = triplet_dtype(c, p->swap);
    Tensor *a = loss_input(c, 0, dtype), *positive = loss_input(c, 1, dtype),
           *negative = loss_input(c, 2, dtype);
    Tensor *far = distance(a, negative, p);
    if (p->swap) far = tensor_minimum(far, distance(positive, negative, p));
    Tensor *loss = tensor_add_scalar(tensor_sub(distance(a, positive, p), far), p->margin);
    return finish_loss(c, tensor_relu(loss), dtype);
}

/* ---- the ops --------------------------------------------------------------------------------- */

static const OpField hinge_fields[] = { OP_REDUCTION(TensorHingeEmbeddingArgs),
                                        OP_OPTION(TensorHingeEmbeddingArgs, margin),
                                        { 0 } };
static const OpField pair_fields[] = { OP_REDUCTION(TensorPairLossArgs),
                                       OP_OPTION(TensorPairLossArgs, margin),
                                       { 0 } };
static const OpField triplet_fields[] = { OP_REDUCTION(TensorTripletArgs),
                                          OP_OPTION(TensorTripletArgs, margin, p, eps, swap),
                                          { 0 } };

const TensorOp op_hinge_embedding_loss = {
    .name = "hinge_embedding_loss",
    .autocast = AUTOCAST_F32,
    .summary = "x where t is 1, relu(margin - x) where it is -1; gradient 0 at the kink",
    .gradient = "dx = g where t is 1, -g where t is -1 and x < margin",
    .arity = 2,
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorHingeEmbeddingArgs, tensor_hinge_embedding_defaults, hinge_fields),
    .shape = hinge_shape,
    .compose = hinge_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.hinge_embedding_loss",
    .samples = "5,5@i64:-1..1; 3x4,3x4@i64:-1..-1 {reduction=sum margin=2}; 2x3,2x3:1..1 {reduction=none}; "
               ",@i64:-1..-1; 0x3,0x3@i64 {reduction=none}",
    .errors = "3,4 ! ESHAPE; 3,3x1 ! ESHAPE; 3,3 {reduction=3} ! EVALUE; 3@i64,3 ! EDTYPE",
};
const TensorOp op_margin_ranking_loss = {
    .name = "margin_ranking_loss",
    .autocast = AUTOCAST_F32,
    .summary = "relu(-t (x1 - x2) + margin); gradient 0 at the kink",
    .gradient = "dx1 = -g t, dx2 = g t, dt = -g (x1 - x2), where the loss is not 0",
    .arity = 3,
    PARAMS(TensorPairLossArgs, tensor_pair_loss_defaults, pair_fields),
    .shape = ranking_shape,
    .compose = ranking_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.margin_ranking_loss",
    .samples = "5,5,5@i64:-1..1 {margin=.5}; 3x4,3x4,3x4 {reduction=sum margin=2}; 2x3,2x3,2x3@i64:-1..-1 "
               "{reduction=none margin=.7}; ,,:1..2 {margin=3}; 0x3,0x3,0x3 {reduction=none}",
    .errors = "3,4,3 ! ESHAPE; 3,3,3x1 ! ESHAPE; 3,3,3 {reduction=3} ! EVALUE",
};
const TensorOp op_cosine_embedding_loss = {
    .name = "cosine_embedding_loss",
    .autocast = AUTOCAST_F32,
    .summary = "1 - cos(x1, x2) where t is 1, relu(cos - margin) where it is -1",
    .gradient = "h = -g where t is 1, g where t is -1 and cos > margin: dx1 = h (x2 / |x2| - cos x1 / |x1|) "
                "/ |x1|, dx2 likewise",
    .arity = 3,
    .no_grad_inputs = KEEP_INPUT(2),
    PARAMS(TensorPairLossArgs, tensor_pair_loss_defaults, pair_fields),
    .shape = cosine_shape,
    .compose = cosine_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.cosine_embedding_loss",
    .samples = "3x4,3x4,3@i64:-1..1 {margin=.05}; 3x4:.1..1,3x4:.1..1,3@i64:-1..-1 {reduction=sum}; "
               "2x3,2x3,2@i64:1..1 {reduction=none}; 4:.1..1,4,@i64:1..1; 0x3,0x3,0@i64 {reduction=none}",
    .errors = "3x4,4,3 ! ESHAPE; 3x4,3x4,4 ! ESHAPE; 3x4,3x4,3x1 ! ESHAPE; ,, ! ESHAPE; 3x4,3x4,3 "
              "{reduction=3} ! EVALUE",
};
const TensorOp op_triplet_margin_loss = {
    .name = "triplet_margin_loss",
    .autocast = AUTOCAST_F32,
    .summary = "relu(|a - p| - |a - n| + margin), p-norms over the last dim",
    .gradient = "u(d) = sign(d) (|d| / |d|_p)^(p - 1), 0 where the loss is: da = g (u(a - p) - u(a - n)), "
                "dp = -g u(a - p), dn = g u(a - n); swap: of the lesser distance, half to each on ties",
    .arity = 3,
    PARAMS(TensorTripletArgs, tensor_triplet_defaults, triplet_fields),
    .shape = triplet_shape,
    .compose = triplet_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.triplet_margin_loss",
    .samples = "3x4,3x4,3x4 {margin=3}; 3x4,3x4,3x4 {reduction=sum margin=3 swap=1}; 2x2x3,2x2x3,2x2x3 "
               "{reduction=none p=3 margin=4}; 4,4,4 {margin=2 eps=0.1}; 0x3,0x3,0x3 {reduction=none}",
    .errors = "3x4,4,3x4 ! ESHAPE; 3x4,3x4,4 ! ESHAPE; ,, ! ESHAPE; 3x4,3x4,3x4 {margin=0} ! EVALUE; "
              "3x4,3x4,3x4 {reduction=3} ! EVALUE",
};
REGISTER_OPS(&op_hinge_embedding_loss, &op_margin_ranking_loss, &op_cosine_embedding_loss,
             &op_triplet_margin_loss);

Tensor *tensor_hinge_embedding_loss_args(TensorHingeEmbeddingArgs a)
{
    return APPLY(&op_hinge_embedding_loss, &a, a.input, a.target);
}

Tensor *tensor_margin_ranking_loss_args(TensorPairLossArgs a)
{
    return APPLY(&op_margin_ranking_loss, &a, a.input1, a.input2, a.target);
}

Tensor *tensor_cosine_embedding_loss_args(TensorPairLossArgs a)
{
    return APPLY(&op_cosine_embedding_loss, &a, a.input1, a.input2, a.target);
}

Tensor *tensor_triplet_margin_loss_args(TensorTripletArgs a)
{
    return APPLY(&op_triplet_margin_loss, &a, a.anchor, a.positive, a.negative);
}
