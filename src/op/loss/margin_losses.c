/* margin_losses.c - losses of classes: soft_margin, multilabel_soft_margin, multi_margin, multilabel_margin.
 */
#include "loss.h"

const TensorMultilabelSoftMarginArgs tensor_multilabel_soft_margin_defaults = {
    TENSOR_MULTILABEL_SOFT_MARGIN_DEFAULTS
};
const TensorMultiMarginArgs tensor_multi_margin_defaults = { TENSOR_MULTI_MARGIN_DEFAULTS };

/* ---- of logistic curves ---------------------------------------------------------------------- */

static int soft_compose(OpCall *c)
{
    const int dtype = loss_dtype(c, KEEP_INPUT(0) | KEEP_INPUT(1));
    Tensor *right = tensor_mul(loss_input(c, 0, dtype), loss_input(c, 1, dtype));
    return finish_loss(c, tensor_neg(tensor_logsigmoid(right)), op_input(c, 0)->dtype);
}

static int multilabel_soft_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *w = op_input(c, 2);
    int64_t shape[TENSOR_MAX_DIMS];
    if (check_loss(c)) return -1;
    if (x->ndim == 0) return op_fail(c, TENSOR_ESHAPE, "input %s: want [..., C]", S(x));
    const int ndim = w ? shape_broadcast(shape_of(x), shape_of(w), shape) : x->ndim;
    if (ndim < 0 || (w && !shape_equal((TensorShape){ ndim, shape }, shape_of(x))))
        return op_fail(c, TENSOR_ESHAPE, "weight %s does not broadcast to the input's %s", S(w), S(x));
    return 0;
}

static int multilabel_soft_compose(OpCall *c)
{
    const int dtype = loss_dtype(c, KEEP_INPUT(0) | KEEP_INPUT(1) | KEEP_INPUT(2));
    Tensor *x = loss_input(c, 0, dtype), *t = loss_input(c, 1, dtype);
    Tensor *right = tensor_mul(t, tensor_logsigmoid(x)),
           *wrong = tensor_mul(tensor_rsub_scalar(t, 1), tensor_logsigmoid(tensor_neg(x)));
    Tensor *loss = tensor_neg(tensor_add(right, wrong));
    if (op_input(c, 2)) loss = tensor_mul(loss, loss_input(c, 2, dtype));
    return finish_loss(c, tensor_mean(loss, -1), dtype);
}

/* ---- of hinges: one right class -------------------------------------------------------------- */

static int check_indices(OpCall *c, const Tensor *t)
{
    if (!dtype_is_float(t->dtype) && t->dtype != TENSOR_BOOL) return 0;
    return op_fail(c, TENSOR_EDTYPE, "target is %s: want integer class indices", tensor_dtype_name(t->dtype));
}

/* [N, C] or [C], with at least one class. */
static int check_classes(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (check_floating(c, 0) || check_indices(c, op_input(c, 1))) return -1;
    if (x->ndim < 1 || x->ndim > 2 || x->shape[x->ndim - 1] == 0)
        return op_fail(c, TENSOR_ESHAPE, "input %s: want [N, C] or [C], and a class", S(x));
    return 0;
}

static int multi_shape(OpCall *c)
{
    const TensorMultiMarginArgs *p = op_params(c);
    const Tensor *x = op_input(c, 0), *t = op_input(c, 1), *w = op_input(c, 2);
    if (check_classes(c) || check_same_dtype(c, 0, 2)) return -1;
    if (!shape_equal(shape_of(t), (TensorShape){ x->ndim - 1, x->shape }))
        return op_fail(c, TENSOR_ESHAPE, "input %s, target %s: want [N, C] and [N], or [C] and []", S(x),
                       S(t));
    if (w && (w->ndim != 1 || w->shape[0] != x->shape[x->ndim - 1]))
        return op_fail(c, TENSOR_ESHAPE, "weight %s for input %s: want one weight a class", S(w), S(x));
    return p->p == 1 || p->p == 2 ? 0 : op_fail(c, TENSOR_EVALUE, "p = %d: only 1 and 2 are possible", p->p);
}

static int multi_compose(OpCall *c)
{
    const TensorMultiMarginArgs *p = op_params(c);
    const int dtype = op_input(c, 0)->dtype;
    Tensor *x = loss_input(c, 0, dtype), *t = tensor_to(op_input(c, 1), TENSOR_I64),
           *index = tensor_unsqueeze(t, -1);
    Tensor *above = tensor_add_scalar(tensor_sub(x, tensor_gather(x, -1, index)), p->margin);
    Tensor *hinge = tensor_scatter_value(tensor_relu(above), -1, index, 0);
    Tensor *loss = tensor_mean(p->p == 2 ? tensor_square(hinge) : hinge, -1);
    if (op_input(c, 2) && t) {
        Tensor *w = tensor_gather(loss_input(c, 2, dtype), 0, tensor_reshape(t, SHAPE(t->numel)));
        loss = tensor_mul(loss, tensor_reshape(w, shape_of(t)));
    }
    return finish_loss(c, loss, dtype);
}

/* ---- of hinges: several right classes -----------------------------------------------------------
 * Each row's loss is linear in x as long as no hinge opens or shuts: forward counts the open ones of each
 * class, and these counts, over C, are the gradient. */

static int labels_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    return op_set_output(c, 0, (TensorShape){ x->ndim - 1, x->shape }, (TensorDtype)x->dtype);
}

static int labels_forward(OpCall *c)
{
    const Tensor *x = own(raw_cast(op_input(c, 0), TENSOR_F64)),
                 *t = own(raw_cast(op_input(c, 1), TENSOR_I64));
    Tensor *y = op_output(c, 0), *slope = own(new_tensor(shape_of(op_input(c, 0)), TENSOR_F64, y->place)),
           *loss = y->dtype == TENSOR_F64 ? y : own(new_tensor(shape_of(y), TENSOR_F64, y->place));
    if (!x || !t || !slope || !loss) return -1;
    const int64_t classes = x->shape[x->ndim - 1];
    ClassMarginArgs args = { .op = c->name,
                             .site = c->site,
                             .rows = x->numel / classes,
                             .classes = classes,
                             .x = x->data,
                             .target = t->data,
                             .loss = loss->data,
                             .slope = slope->data,
                             .bad_at = -1 };
    const int status = KERNEL_STATUS(y->place, class_margin, &args);
    if (status == KERNEL_FAILED && args.bad_at >= 0)
        return op_fail(c, TENSOR_EINDEX, "target %s: %lld at position %lld is outside [-1, %lld)", S(t),
                       (long long)args.bad_value, (long long)args.bad_at, (long long)classes);
    if (kernel_status(status, c->name, y->place, "class_margin")) return -1;
    return loss != y && raw_copy(y, loss) ? -1 : op_save(c, slope);
}

static int labels_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *slope = op_saved_extra(c, 0);
    dx[0] =
        slope && dy ? tensor_mul(tensor_unsqueeze(dy, -1), tensor_to(slope, (TensorDtype)dy->dtype)) : NULL;
    return dx[0] ? 0 : -1;
}

static const TensorOp core_labels = { .name = "multilabel_margin_loss",
                                      .autocast = AUTOCAST_F32,
                                      .arity = 2,
                                      .no_grad_inputs = KEEP_INPUT(1),
                                      .shape = labels_shape,
                                      .forward = labels_forward,
                                      .backward = labels_backward,
                                      .flags = OP_ANY_DEVICE };

static int multilabel_shape(OpCall *c) { return check_classes(c) || check_alike(c, 0, 1) ? -1 : 0; }

static int multilabel_compose(OpCall *c)
{
    const int dtype = op_input(c, 0)->dtype;
    return finish_loss(c, APPLY(&core_labels, NULL, loss_input(c, 0, dtype), op_input(c, 1)), dtype);
}

/* ---- the ops --------------------------------------------------------------------------------- */

static const OpField plain_fields[] = { OP_REDUCTION(TensorLossArgs), { 0 } };
static const OpField multilabel_soft_fields[] = { OP_REDUCTION(TensorMultilabelSoftMarginArgs), { 0 } };
static const OpField multi_fields[] = { OP_REDUCTION(TensorMultiMarginArgs),
                                        OP_OPTION(TensorMultiMarginArgs, p, margin),
                                        { 0 } };

const TensorOp op_soft_margin_loss = {
    .name = "soft_margin_loss",
    .autocast = AUTOCAST_F32,
    .summary = "log(1 + e^(-t x)), without overflow",
    .gradient = "dx = -g t sigmoid(-t x)",
    .arity = 2,
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorLossArgs, tensor_loss_defaults, plain_fields),
    .shape = check_loss,
    .compose = soft_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.soft_margin_loss",
    .samples =
        "5,5@i64:-1..1; 3x4,3x4@i64:-1..-1 {reduction=sum}; 2x3,2x3:1..1 {reduction=none}; ,@i64:-1..-1; "
        "0x3,0x3@i64 {reduction=none}",
    .errors = "3,4 ! ESHAPE; 3,3x1 ! ESHAPE; 3,3 {reduction=3} ! EVALUE; 3@i64,3 ! EDTYPE",
};
const TensorOp op_multilabel_soft_margin_loss = {
    .name = "multilabel_soft_margin_loss",
    .autocast = AUTOCAST_PARTS,
    .summary = "mean over the last dim of -t log sigmoid(x) - (1 - t) log sigmoid(-x)",
    .gradient = "dx = g w (sigmoid(x) - t) / C, dt = -g w x / C, dw = sum of g l(x, t) / C",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    PARAMS(TensorMultilabelSoftMarginArgs, tensor_multilabel_soft_margin_defaults, multilabel_soft_fields),
    .shape = multilabel_soft_shape,
    .compose = multilabel_soft_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.multilabel_soft_margin_loss",
    .samples = "5,5:0..1,-; 3x4,3x4:0..1,4 {reduction=sum}; 3x4,3x4@i64:0..1,3x1 {reduction=none}; "
               "2x3x2,2x3x2:0..1,-; 0x3,0x3,- {reduction=none}",
    .errors =
        "3,4,- ! ESHAPE; 3,3,4 ! ESHAPE; ,,- ! ESHAPE; 3,3,- {reduction=3} ! EVALUE; 3@i64,3,- ! EDTYPE",
};
const TensorOp op_multi_margin_loss = {
    .name = "multi_margin_loss",
    .autocast = AUTOCAST_F32,
    .summary = "w_t sum_(i != t) relu(margin - x_t + x_i)^p / C; gradient 0 at the kinks",
    .gradient = "dx_i = g w_t p m_i^(p - 1) / C where m_i = margin - x_t + x_i > 0, dx_t = -sum of those",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    .no_grad_inputs = KEEP_INPUT(1) | KEEP_INPUT(2),
    PARAMS(TensorMultiMarginArgs, tensor_multi_margin_defaults, multi_fields),
    .shape = multi_shape,
    .compose = multi_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.multi_margin_loss",
    .samples =
        "3x4,3@i64:0..3,-; 3x4,3@i64:0..3,4:.5..2 {reduction=sum p=2}; 2x3,2@i64:0..2,- {reduction=none "
        "margin=.3}; 4,@i64:0..3,-; "
        "4,@i64:0..3,4 {p=2 margin=3}; 2x1,2@i64:0..0,-; 0x3,0@i64,- {reduction=sum}",
    .errors = "3x4,3@i64:4..9,- ! EINDEX; 3x4,4@i64,- ! ESHAPE; 3x4,3,- ! EDTYPE; 3x4,3@i64,3 ! ESHAPE; "
              "3x4,3@i64,- {p=3} ! EVALUE; "
              "3x0,3@i64,- ! ESHAPE; ,@i64,- ! ESHAPE; 3x4,3@i64,- {reduction=3} ! EVALUE; 3x4@i64,3@i64,- ! "
              "EDTYPE; 3x4@f64,3@i64,4@f32 ! EDTYPE; 3x4@f16,3@i64,4@f32 ! EDTYPE",
};
const TensorOp op_multilabel_margin_loss = {
    .name = "multilabel_margin_loss",
    .autocast = AUTOCAST_F32,
    .summary = "sum of relu(1 - (x_j - x_i)) / C over right classes j and wrong i",
    .gradient = "dx_i = g / C times its open hinges, dx_j = -g / C times its; 0 at the kinks",
    .arity = 2,
    .no_grad_inputs = KEEP_INPUT(1),
    PARAMS(TensorLossArgs, tensor_loss_defaults, plain_fields),
    .shape = multilabel_shape,
    .compose = multilabel_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.multilabel_margin_loss",
    .samples = "3x4,3x4@i64:-1..3; 3x4,3x4@i64:0..3 {reduction=sum}; 2x3,2x3@i64:-1..2 {reduction=none}; "
               "4,4@i64:-1..3; 2x3,2x3@i64:-1..-1; 0x3,0x3@i64 {reduction=none}",
    .errors = "3x4,3x4@i64:4..9 ! EINDEX; 3x4,3x4@i64:-3..-2 ! EINDEX; 3x4,3@i64 ! ESHAPE; 3x4,3x4 ! EDTYPE; "
              "3x0,3x0@i64 ! ESHAPE; "
              "2x3x4,2x3x4@i64 ! ESHAPE; 3x4,3x4@i64 {reduction=3} ! EVALUE; 3x4@i64,3x4@i64 ! EDTYPE",
};
REGISTER_OPS(&op_soft_margin_loss, &op_multilabel_soft_margin_loss, &op_multi_margin_loss,
             &op_multilabel_margin_loss);

Tensor *tensor_soft_margin_loss_args(TensorLossArgs a)
{
    return APPLY(&op_soft_margin_loss, &a, a.input, a.target);
}

Tensor *tensor_multilabel_margin_loss_args(TensorLossArgs a)
{
    return APPLY(&op_multilabel_margin_loss, &a, a.input, a.target);
}

Tensor *tensor_multilabel_soft_margin_loss_args(TensorMultilabelSoftMarginArgs a)
{
    return APPLY(&op_multilabel_soft_margin_loss, &a, a.input, a.target, a.weight);
}

Tensor *tensor_multi_margin_loss_args(TensorMultiMarginArgs a)
{
    return APPLY(&op_multi_margin_loss, &a, a.input, a.target, a.weight);
}
