/* class_losses.c - losses over many classes that include the last layer: linear_cross_entropy, and the
 * adaptive softmax, with clusters of rare classes. */
#include <math.h>
#include "../module.h"

/* ---- linear and cross entropy, without all logits -------------------------------------------- */

const NNLinearCrossEntropyLossArgs nn_linear_cross_entropy_loss_defaults = {
    NN_LINEAR_CROSS_ENTROPY_LOSS_DEFAULTS
};
static const char *const reductions[] = { "mean", "sum", "none", NULL };
static const OpField linear_fields[] = { OP_REQUIRED(NNLinearCrossEntropyLossArgs, in_features, num_classes),
                                         OP_OPTION(NNLinearCrossEntropyLossArgs, out_features, bias, dtype,
                                                   ignore_index, label_smoothing),
                                         OP_CHOICE(NNLinearCrossEntropyLossArgs, reduction, reductions),
                                         { 0 } };

static int linear_init(Module *m, const void *args)
{
    const NNLinearCrossEntropyLossArgs *a = args;
    int64_t rows = a->num_classes;
    for (int d = 0; d < a->out_features.ndim; d++) rows *= a->out_features.dim[d];
    if (a->in_features < 1 || a->num_classes < 1 || rows < 1)
        return nn_refuse(m, "%lld features, %lld classes: want 1 or more", (long long)a->in_features,
                         (long long)a->num_classes);
    if (!(a->label_smoothing >= 0 && a->label_smoothing <= 1))
        return nn_refuse(m, "label_smoothing = %g is outside [0, 1]", a->label_smoothing);
    if (a->weight && !tensor_shape_equal(tensor_shape(a->weight), SHAPE(a->num_classes)))
        return nn_refuse(m, "a weight of another shape than [%lld]", (long long)a->num_classes);
    if (a->weight && !nn_register_buffer(m, "weight", a->weight)) return -1;
    return nn_child(m, "linear", nn_linear(a->in_features, rows, .bias = a->bias, .dtype = a->dtype)) ? 0
                                                                                                      : -1;
}

static void linear_call(Module *self, NNCall *c)
{
    const NNLinearCrossEntropyLossArgs *a = self->args;
    const Module *linear = self->children[0].module;
    int64_t size[TENSOR_MAX_DIMS];
    int n = 0;
    size[n++] = a->num_classes;
    for (int d = 0; d < a->out_features.ndim && n < TENSOR_MAX_DIMS - 1; d++)
        size[n++] = a->out_features.dim[d];
    Tensor *bias = nn_param(linear, 1);
    if (bias) bias = tensor_reshape(bias, ((TensorShape){ n, size }));
    size[n] = a->in_features;
    c->out[0] = tensor_linear_cross_entropy(
        c->in[0], tensor_reshape(nn_param(linear, 0), ((TensorShape){ n + 1, size })), c->in[1],
        .linear_bias = bias, .weight = nn_buffer(self, 0), .reduction = a->reduction,
        .ignore_index = a->ignore_index, .label_smoothing = a->label_smoothing);
}

static const NNKind linear_cross_entropy_loss = {
    .name = "LinearCrossEntropyLoss",
    .function = "nn_linear_cross_entropy_loss",
    NN_OPTIONS(NNLinearCrossEntropyLossArgs, nn_linear_cross_entropy_loss_defaults, linear_fields),
    .init = linear_init,
    .call = linear_call,
    .inputs = 2
};
NN_REGISTER(linear_cross_entropy_loss);
Module *nn_linear_cross_entropy_loss_args(NNLinearCrossEntropyLossArgs args)
{
    return nn_make(&linear_cross_entropy_loss, &args);
}

/* ---- adaptive softmax: the head has the frequent classes and one more for each cluster ------- */

const NNAdaptiveSoftmaxArgs nn_adaptive_log_softmax_with_loss_defaults = {
    NN_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS_DEFAULTS
};
static const OpField adaptive_fields[] = { OP_REQUIRED(NNAdaptiveSoftmaxArgs, in_features, n_classes,
                                                       cutoffs),
                                           OP_OPTION(NNAdaptiveSoftmaxArgs, div_value, head_bias, dtype),
                                           { 0 } };

/* The first class of cluster i; cluster 0 is the head's own. */
static int64_t first_class(const NNAdaptiveSoftmaxArgs *a, int i)
{
    return i == 0 ? 0 : i <= a->cutoffs.ndim ? a->cutoffs.dim[i - 1] : a->n_classes;
}

static int adaptive_init(Module *m, const void *args)
{
    const NNAdaptiveSoftmaxArgs *a = args;
    const int clusters = a->cutoffs.ndim;
    for (int i = 0; i <= clusters; i++)
        if (clusters < 1 || a->in_features < 1 || first_class(a, i + 1) <= first_class(a, i))
            return nn_refuse(m,
                             "%d cutoffs of %lld classes, %lld features: want some that rise from 1 to below "
                             "the classes",
                             clusters, (long long)a->n_classes, (long long)a->in_features);
    const int64_t in = a->in_features;
    nn_child(m, "head", nn_linear(in, a->cutoffs.dim[0] + clusters, .bias = a->head_bias, .dtype = a->dtype));
    Module *tail = nn_child(m, "tail", nn_module_list_args(NULL, 0));
    for (int i = 1; i <= clusters && tail; i++) {
        const double width = floor((double)in / pow(a->div_value, i));
        if (!(width >= 0 && width < 0x1p31))
            return nn_refuse(m, "div_value %g makes cluster %d of %lld features %g wide", a->div_value, i,
                             (long long)in, width);
        const int64_t narrow = (int64_t)width;
        Module *inner[2] = { nn_linear(in, narrow, .bias = false, .dtype = a->dtype),
                             nn_linear(narrow, first_class(a, i + 1) - first_class(a, i), .bias = false,
                                       .dtype = a->dtype) };
        if (!(nn_append)(tail, nn_sequential_args(inner, 2))) m->failed = true;
    }
    return m->failed ? -1 : 0;
}

static Tensor *cluster(const Module *m, int i, Tensor *x)
{
    return tensor_log_softmax(nn_forward(m->children[1].module->children[i - 1].module, x), 1);
}

/* The targets of cluster i: their rows; *index: which entry of the head each row reads. */
static int64_t add_cluster(const Module *m, int i, Tensor *x, Tensor *target, Tensor **y, Tensor **index)
{
    const NNAdaptiveSoftmaxArgs *a = m->args;
    const int64_t low = first_class(a, i), high = first_class(a, i + 1);
    Tensor *mask = tensor_logical_and(tensor_ge_scalar(target, (double)low),
                                      tensor_lt_scalar(target, (double)high)),
           *rows = tensor_flatten(tensor_nonzero(mask));
    const int64_t n = rows ? tensor_numel(rows) : 0;
    if (n == 0) return 0;
    Tensor *own = tensor_index_select(target, 0, rows);
    if (i > 0) {
        Tensor *relative = tensor_unsqueeze(tensor_sub_scalar(own, (double)low), 1);
        Tensor *found = tensor_gather(cluster(m, i, tensor_index_select(x, 0, rows)), 1, relative);
        *y = tensor_index_copy(*y, 0, rows, tensor_squeeze(found, 1));
        own = tensor_full_like(own, (double)(first_class(a, 1) + i - 1));
    }
    *index = tensor_index_copy(*index, 0, rows, own);
    return n;
}

/* (x, target) -> (log-probability of each target, loss) */
static void adaptive_call(Module *self, NNCall *c)
{
    const NNAdaptiveSoftmaxArgs *a = self->args;
    static const char function[] = "nn_adaptive_log_softmax_with_loss";
    Tensor *x = c->in[0], *target = c->in[1];
    if (!target || tensor_ndim(target) > 1 || tensor_ndim(x) != tensor_ndim(target) + 1 ||
        tensor_size(x, -1) != a->in_features ||
        (tensor_ndim(target) && tensor_size(x, 0) != tensor_size(target, 0))) {
        tensor_fail(target ? TENSOR_ESHAPE : TENSOR_ENULL, function,
                    "want x [N, %lld] and a target [N], or [%lld] "
                    "and []",
                    (long long)a->in_features, (long long)a->in_features);
        return;
    }
    const bool alone = tensor_ndim(target) == 0;
    if (alone) x = tensor_unsqueeze(x, 0), target = tensor_unsqueeze(target, 0);
    target = tensor_to(target, TENSOR_I64);
    Tensor *y = tensor_to(tensor_mul_scalar(target, 0), tensor_dtype(x)), *index = tensor_zeros_like(target);
    int64_t used = 0;
    for (int i = 0; i <= a->cutoffs.ndim && y && index; i++)
        used += add_cluster(self, i, x, target, &y, &index);
    if (!y || !index) return;
    if (used != tensor_numel(target)) {
        tensor_fail(TENSOR_EINDEX, function, "a target outside [0, %lld)", (long long)a->n_classes);
        return;
    }
    Tensor *head = tensor_log_softmax(nn_forward(self->children[0].module, x), 1);
    y = tensor_add(y, tensor_squeeze(tensor_gather(head, 1, tensor_unsqueeze(index, 1)), 1));
    c->out[0] = alone ? tensor_squeeze(y, 0) : y;
    c->out[1] = tensor_neg(tensor_mean(y));
}

static const NNKind adaptive_softmax = {
    .name = "AdaptiveLogSoftmaxWithLoss",
    .function = "nn_adaptive_log_softmax_with_loss",
    NN_OPTIONS(NNAdaptiveSoftmaxArgs, nn_adaptive_log_softmax_with_loss_defaults, adaptive_fields),
    .init = adaptive_init,
    .call = adaptive_call,
    .inputs = 2
};
NN_REGISTER(adaptive_softmax);
Module *nn_adaptive_log_softmax_with_loss_args(NNAdaptiveSoftmaxArgs args)
{
    return nn_make(&adaptive_softmax, &args);
}

Tensor *nn_adaptive_log_prob(Module *m, Tensor *x)
{
    if (nn_null(m, "nn_adaptive_log_prob")) return NULL;
    if (m->call != adaptive_call)
        return tensor_fail(TENSOR_EVALUE, "nn_adaptive_log_prob", "not of a module %s", m->type), NULL;
    const NNAdaptiveSoftmaxArgs *a = m->args;
    Tensor *part[1 + TENSOR_MAX_DIMS];
    const char *outer = tensor_compose_begin("nn_adaptive_log_prob");
    TensorScope scope = tensor_scope_open();
    Tensor *head = tensor_log_softmax(nn_forward(m->children[0].module, x), 1);
    part[0] = tensor_narrow(head, 1, 0, first_class(a, 1));
    for (int i = 1; i <= a->cutoffs.ndim; i++)
        part[i] = tensor_add(cluster(m, i, x), tensor_narrow(head, 1, first_class(a, 1) + i - 1, 1));
    Tensor *y = tensor_cat_args((TensorJoinArgs){ { 1 + a->cutoffs.ndim, part }, 1 });
    y = tensor_scope_return(scope, y);
    tensor_compose_end(outer);
    return y;
}
