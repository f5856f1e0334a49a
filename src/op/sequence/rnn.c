/* rnn.c - recurrent nets of several layers and directions, made of the layer ops; ops/sequence.h has the
 * equations.
 *
 *   for each layer: both directions over x, side by side; dropout between layers; h_n from the ends of their
 * results */
#include "rnn.h"

typedef struct RnnParams {
    bool has_biases, train, bidirectional, batch_first;
    int num_layers;
    double dropout;
    int kind; /* set by shape() */
    bool projected;
} RnnParams;

static const RnnParams *params_of(const OpCall *c) { return op_params(c); }
static int states(int kind) { return kind == RNN_LSTM ? 2 : 1; }
static int directions(const RnnParams *p) { return p->bidirectional ? 2 : 1; }
static int each(const RnnParams *p)
{
    return 2 + 2 * p->has_biases + p->projected;
} /* params of a layer and direction */

/* ---- checks ---------------------------------------------------------------------------------- */

/* Are the columns of the first w_hh another number than the hidden size? */
static bool is_projected(const OpCall *c, int kind)
{
    const Tensor *w_hh = op_inputs(c) > 4 ? op_input(c, 4) : NULL;
    return kind == RNN_LSTM && w_hh && w_hh->ndim == 2 && w_hh->shape[0] != 4 * w_hh->shape[1];
}

/* What the layers would find too, but here with the shapes that the user wrote: later x is turned, and a
 * batch added. */
static int check_input(OpCall *c, const Tensor *x, const Tensor *w_ih)
{
    const RnnParams *p = op_params(c);
    const char *before = x->ndim == 2 ? "steps" : p->batch_first ? "batch, steps" : "steps, batch";
    if (w_ih->ndim != 2 || w_ih->shape[0] % rnn_gates(p->kind))
        return op_fail(c, TENSOR_ESHAPE, "w_ih %s: want [%d hidden, in]", S(w_ih), rnn_gates(p->kind));
    if (x->shape[x->ndim - 1] != w_ih->shape[1])
        return op_fail(c, TENSOR_ESHAPE, "input %s, w_ih %s: want [%s, %lld]", S(x), S(w_ih), before,
                       (long long)w_ih->shape[1]);
    if (x->shape[x->ndim == 3 && p->batch_first] == 0)
        return op_fail(c, TENSOR_ESHAPE, "input %s, [%s, in]: a sequence of no steps", S(x), before);
    return 0;
}

/* h0 or c0, whose last dimension is the width. */
static int check_state(OpCall *c, const Tensor *x, const Tensor *s, const char *name, int64_t width)
{
    const RnnParams *p = op_params(c);
    const int64_t batch = x->shape[!p->batch_first];
    const TensorShape want = x->ndim == 3 ? SHAPE(p->num_layers * directions(p), batch, width)
                                          : SHAPE(p->num_layers * directions(p), width);
    if (!s || shape_equal(shape_of(s), want)) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s %s, input %s: want %s", name, S(s), S(x), shape_text(want));
}

/* Layers after the first read the results of both directions. */
static int check_deeper(OpCall *c, int first, int64_t width)
{
    const RnnParams *p = op_params(c);
    for (int k = directions(p); k < p->num_layers * directions(p); k++) {
        const Tensor *w = op_input(c, first + k * each(p));
        if (w->ndim != 2 || w->shape[1] != width * directions(p))
            return op_fail(c, TENSOR_ESHAPE,
                           "w_ih %s of layer %d: want %lld columns, as the layer before gives", S(w),
                           k / directions(p), (long long)(width * directions(p)));
    }
    return 0;
}

static int check(OpCall *c, int kind)
{
    RnnParams *p = op_params_mut(c);
    p->kind = kind, p->projected = is_projected(c, kind);
    if (!(p->dropout >= 0 && p->dropout <= 1))
        return op_fail(c, TENSOR_EVALUE, "dropout %g: a probability lies in [0, 1]", p->dropout);
    if (p->num_layers < 1 || p->num_layers > OP_MAX_INPUTS)
        return op_fail(c, TENSOR_EVALUE, "%d layers: want 1 to %d", p->num_layers, OP_MAX_INPUTS);
    const int given = op_inputs(c) - 1 - states(kind), wanted = p->num_layers * directions(p) * each(p);
    if (given != wanted)
        return op_fail(c, TENSOR_EVALUE, "%d params: want %d, %d for each of %d layers%s", given, wanted,
                       each(p), p->num_layers, p->bidirectional ? " and 2 directions" : "");
    const Tensor *x = op_input(c, 0);
    if (x->ndim != 2 && x->ndim != 3)
        return op_fail(c, TENSOR_ESHAPE, "input %s: want [steps, batch, in] or [steps, in]", S(x));
    const Tensor *w_ih = op_input(c, 1 + states(kind)), *w_hh = op_input(c, 2 + states(kind));
    if (check_input(c, x, w_ih)) return -1;
    const int64_t hidden = w_ih->shape[0] / rnn_gates(kind), out = p->projected ? w_hh->shape[1] : hidden;
    if (check_state(c, x, op_input(c, 1), "h0", out) ||
        (kind == RNN_LSTM && check_state(c, x, op_input(c, 2), "c0", hidden)))
        return -1;
    if (check_deeper(c, 1 + states(kind), out)) return -1;
    const int first = 2 + states(kind);
    for (int i = first + each(p); i < op_inputs(c); i += each(p))
        if (!shape_equal(shape_of(op_input(c, i)), shape_of(op_input(c, first))))
            return op_fail(c, TENSOR_ESHAPE, "w_hh %s after %s: want one hidden size", S(op_input(c, i)),
                           S(op_input(c, first)));
    return 0;
}

static int tanh_check(OpCall *c) { return check(c, RNN_TANH); }
static int relu_check(OpCall *c) { return check(c, RNN_RELU); }
static int gru_check(OpCall *c) { return check(c, RNN_GRU); }
static int lstm_check(OpCall *c) { return check(c, RNN_LSTM); }

/* ---- the net --------------------------------------------------------------------------------- */

/* Halves are f32 until the end. */
static Tensor *wide(OpCall *c, int i)
{
    Tensor *x = op_input(c, i);
    return x && x->dtype != TENSOR_F64 ? tensor_to(x, TENSOR_F32) : x;
}

typedef struct Net {
    const RnnParams *p;
    bool alone;                    /* without a batch */
    Tensor *state[2];              /* h0, c0 */
    Tensor *end[2][OP_MAX_INPUTS]; /* of each layer and direction: h, c */
} Net;

/* Number k of the layers and directions, over x. */
static Tensor *run_direction(OpCall *c, Net *net, int k, Tensor *x)
{
    const RnnParams *p = net->p;
    const bool reverse = k % directions(p) == 1;
    const int first = 1 + states(p->kind) + k * each(p);
    Tensor *operand[RNN_ROLES] = { [X] = x, [W_IH] = wide(c, first), [W_HH] = wide(c, first + 1) }, *y;
    for (int i = 0; i < states(p->kind); i++)
        if (net->state[i] && !(operand[H0 + i] = tensor_select(net->state[i], 0, k))) return NULL;
    if (p->has_biases) operand[B_IH] = wide(c, first + 2), operand[B_HH] = wide(c, first + 3);
    if (p->projected) operand[W_HR] = wide(c, first + each(p) - 1);
    if (rnn_layer(p->kind, operand, reverse, c->site, &y, &net->end[1][k])) return NULL;
    net->end[0][k] = tensor_select(y, 0, reverse ? 0 : -1);
    return y;
}

static Tensor *run_layers(OpCall *c, Net *net, Tensor *x)
{
    const RnnParams *p = net->p;
    for (int layer = 0; layer < p->num_layers; layer++) {
        Tensor *y[2] = { NULL, NULL };
        for (int d = 0; d < directions(p); d++)
            if (!(y[d] = run_direction(c, net, layer * directions(p) + d, x))) return NULL;
        x = y[1] ? tensor_cat(TENSORS(y[0], y[1]), 2) : y[0];
        if (layer < p->num_layers - 1) x = tensor_dropout(x, p->dropout, p->train);
    }
    return x;
}

static int compose(OpCall *c)
{
    Net net = { .p = params_of(c), .alone = op_input(c, 0)->ndim == 2 };
    const TensorDtype dtype = tensor_dtype(op_input(c, 0));
    const bool swap = net.p->batch_first && !net.alone;
    Tensor *x = wide(c, 0);
    if (net.alone) x = tensor_unsqueeze(x, 1);
    if (swap) x = tensor_transpose(x, 0, 1);
    for (int i = 0; i < states(net.p->kind); i++) {
        net.state[i] = wide(c, 1 + i);
        if (net.state[i] && net.alone) net.state[i] = tensor_unsqueeze(net.state[i], 1);
    }
    Tensor *y = x ? run_layers(c, &net, x) : NULL;
    if (net.alone) y = tensor_squeeze(y, 1);
    if (swap) y = tensor_transpose(y, 0, 1);
    if (op_set_result(c, 0, tensor_to(y, dtype))) return -1;
    for (int i = 0; i < states(net.p->kind); i++) {
        Tensor *ends = tensor_stack(TENSOR_LIST(net.end[i], net.p->num_layers * directions(net.p)), 0);
        if (net.alone) ends = tensor_squeeze(ends, 1);
        if (op_set_result(c, 1 + i, tensor_to(ends, dtype))) return -1;
    }
    return 0;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static const OpField fields[] = { OP_FIELD(OP_BOOL, RnnParams, has_biases, "1"),
                                  OP_FIELD(OP_INT, RnnParams, num_layers, "1"),
                                  OP_FIELD(OP_DOUBLE, RnnParams, dropout, "0"),
                                  OP_FIELD(OP_BOOL, RnnParams, train, "1"),
                                  OP_FIELD(OP_BOOL, RnnParams, bidirectional, "0"),
                                  OP_FIELD(OP_BOOL, RnnParams, batch_first, "0"),
                                  { 0 } };

#define NET                                                                                   \
    .arity = OP_ANY_ARITY, .compose = compose, .params = sizeof(RnnParams), .fields = fields, \
    .flags = OP_FLOAT_INPUTS | OP_SAME_DTYPE | OP_RANDOM
#define GRADIENT      \
    "by its layers: " \
    "da_t of the gates' sums and dh_t from dh_t+1, step by step; dw = da^T of what w multiplies"
#define SIMPLE_NET                                                                                        \
    NET, .outputs = 2, .optional = KEEP_INPUT(1), .gradient = GRADIENT,                                   \
         .errors = "2x2x3,-,2x3,2x2,2 ! EVALUE; 2x2x3,-,2x3,2x2 ! EVALUE; 2x2x3,-,2x3,2x2 {has_biases=0 " \
                   "num_layers=2} ! EVALUE; "                                                             \
                   "2x2x3,-,2x3,2x2 {has_biases=0 num_layers=0} ! EVALUE; 2x2x3,-,2x3,2x2 {has_biases=0 " \
                   "dropout=1.5} ! EVALUE; "                                                              \
                   "2x2x3,-,2x3,2x2,1x2,1x1 {has_biases=0 num_layers=2} ! ESHAPE; "                       \
                   "2x2x3,1x2,2x3,2x2 {has_biases=0} ! ESHAPE; 2x2x3,2x2x2,2x3,2x2 {has_biases=0} ! "     \
                   "ESHAPE; 3,-,2x3,2x2 {has_biases=0} ! ESHAPE; "                                        \
                   "0x2x3,-,2x3,2x2 {has_biases=0} ! ESHAPE; 2x2x3,-,2x3,4x2 {has_biases=0} ! ESHAPE; "   \
                   "2x2x3@i64,-,2x3,2x2 {has_biases=0} ! EDTYPE"
#define RNN_SAMPLES                                                                                       \
    "3x2x3,1x2x2,2x3,2x2,2,2; 2x3,-,2x3,2x2 {has_biases=0}; 2x2x1,4x2x1,1x1,1x1,1x1,1x1,1x2,1x1,1x2,1x1 " \
    "{has_biases=0 num_layers=2 bidirectional=1}; "                                                       \
    "2x3x1,1x2x2,2x1,2x2,2,2 {batch_first=1}; 2x2x2,-,1x2,1x1,1x1,1x1 {has_biases=0 num_layers=2 "        \
    "dropout=.5}; 2x0x3,-,2x3,2x2 {has_biases=0}"

static const TensorOp op_rnn_tanh = {
    .name = "rnn_tanh",
    .summary = "recurrent net with tanh over a sequence: output and h_n",
    .shape = tanh_check,
    SIMPLE_NET,
    .samples = RNN_SAMPLES,
};
static const TensorOp op_rnn_relu = {
    .name = "rnn_relu",
    .summary = "recurrent net with relu over a sequence: output and h_n",
    .shape = relu_check,
    SIMPLE_NET,
    .samples = RNN_SAMPLES,
};
static const TensorOp op_gru = {
    .name = "gru",
    .summary = "gated recurrent units over a sequence: output and h_n",
    .shape = gru_check,
    SIMPLE_NET,
    .samples =
        "3x2x3,1x2x2,6x3,6x2,6,6; 2x3,1x1,3x3,3x1 {has_biases=0}; "
        "2x2x1,4x2x1,3x1,3x1,3x1,3x1,3x2,3x1,3x2,3x1 {has_biases=0 num_layers=2 bidirectional=1}; "
        "2x3x1,-,6x1,6x2,6,6 {batch_first=1}; "
        "2x2x2,-,3x2,3x1,3x1,3x1 {has_biases=0 num_layers=2 dropout=.5}; 2x0x3,-,6x3,6x2 {has_biases=0}",
};
static const TensorOp op_lstm = {
    .name = "lstm",
    .summary = "long short-term memory over a sequence: output, h_n and c_n",
    .shape = lstm_check,
    NET,
    .outputs = 3,
    .optional = KEEP_INPUT(1) | KEEP_INPUT(2),
    .gradient = GRADIENT,
    .samples =
        "3x2x3,1x2x2,1x2x2,8x3,8x2,8,8; 2x3,1x1,1x1,4x3,4x1 {has_biases=0}; "
        "2x2x1,4x2x1,4x2x1,4x1,4x1,4x1,4x1,4x2,4x1,4x2,4x1 {has_biases=0 num_layers=2 bidirectional=1}; "
        "2x3x1,-,-,8x1,8x2,8,8 {batch_first=1}; 2x2x2,-,-,4x2,4x1,4x1,4x1 {has_biases=0 num_layers=2 "
        "dropout=.5}; "
        "2x2x1,2x2x1,2x2x2,8x1,8x1,8,8,1x2,8x1,8x1,8,8,1x2 {bidirectional=1}; 2x0x3,-,-,8x3,8x2 "
        "{has_biases=0}",
    .errors =
        "2x2x3,-,-,8x3,8x2,8 ! EVALUE; 2x2x3,-,-,8x3,8x2 ! EVALUE; 2x2x3,-,-,8x3,8x1 {has_biases=0} ! "
        "EVALUE; "
        "2x2x3,1x2x2,2x2x2,8x3,8x2 {has_biases=0} ! ESHAPE; 2x2x3,1x2x2,1x2,8x3,8x2 {has_biases=0} ! ESHAPE; "
        "0x2x3,-,-,8x3,8x2 {has_biases=0} ! ESHAPE; 2x2x3,-,-,8x3,8x2 {has_biases=0 dropout=-1} ! EVALUE; "
        "2x2x3@i64,-,-,8x3,8x2 {has_biases=0} ! EDTYPE",
};
REGISTER_OP(op_rnn_tanh);
REGISTER_OP(op_rnn_relu);
REGISTER_OP(op_gru);
REGISTER_OP(op_lstm);

/* ---- public ---------------------------------------------------------------------------------- */

/* in holds input and states, n of them, and has room for the params. */
static Tensor *apply(const TensorOp *op, Tensor *in[OP_MAX_INPUTS], int n, TensorList params,
                     const RnnParams *p, Tensor **h_n, Tensor **c_n, const void *site)
{
    Tensor *y[3] = { NULL, NULL, NULL };
    if (params.count > 0 && !params.item) {
        fail_site(TENSOR_ENULL, op->name, site, "the list of params is NULL");
    } else if (params.count < 0 || params.count > OP_MAX_INPUTS - n) {
        fail_site(TENSOR_EVALUE, op->name, site, "%d params: at most %d are possible", params.count,
                  OP_MAX_INPUTS - n);
    } else {
        for (int i = 0; i < params.count; i++) in[n + i] = params.item[i];
        op_apply(op, in, n + params.count, p, site, y, 3);
    }
    if (h_n) *h_n = y[1];
    if (c_n) *c_n = y[2];
    return y[0];
}

static Tensor *apply_rnn(const TensorOp *op, const TensorRnnArgs *a, const void *site)
{
    Tensor *in[OP_MAX_INPUTS] = { a->input, a->h0 };
    const RnnParams p = { .has_biases = a->has_biases,
                          .train = a->train,
                          .bidirectional = a->bidirectional,
                          .batch_first = a->batch_first,
                          .num_layers = a->num_layers,
                          .dropout = a->dropout };
    return apply(op, in, 2, a->params, &p, a->h_n, NULL, site);
}

Tensor *tensor_rnn_tanh_args(TensorRnnArgs a) { return apply_rnn(&op_rnn_tanh, &a, SITE); }
Tensor *tensor_rnn_relu_args(TensorRnnArgs a) { return apply_rnn(&op_rnn_relu, &a, SITE); }
Tensor *tensor_gru_args(TensorRnnArgs a) { return apply_rnn(&op_gru, &a, SITE); }

Tensor *tensor_lstm_args(TensorLstmArgs a)
{
    Tensor *in[OP_MAX_INPUTS] = { a.input, a.h0, a.c0 };
    const RnnParams p = { .has_biases = a.has_biases,
                          .train = a.train,
                          .bidirectional = a.bidirectional,
                          .batch_first = a.batch_first,
                          .num_layers = a.num_layers,
                          .dropout = a.dropout };
    return apply(&op_lstm, in, 3, a.params, &p, a.h_n, a.c_n, SITE);
}
