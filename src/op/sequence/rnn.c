/* rnn.c - recurrent nets of several layers and directions, made of the layer ops; ops/sequence.h has the
 * equations.
 *
 *   for each layer: both directions over x, side by side; dropout between layers;
 *   h_n from the ends of their results */
#include "op/shape/shape_op.h"
#include "rnn.h"

const TensorRnnArgs tensor_rnn_defaults = { TENSOR_RNN_DEFAULTS };
const TensorLstmArgs tensor_lstm_defaults = { TENSOR_LSTM_DEFAULTS };

/* What both structs of options say, and what the operands do. */
typedef struct Form {
    int kind, layers, directions, states;
    int each; /* params of a layer and direction */
    bool biases, projected, train, batch_first;
    double dropout;
} Form;

/* Are the columns of the first w_hh another number than the hidden size? */
static bool is_projected(const OpCall *c)
{
    const Tensor *w_hh = op_inputs(c) > 4 ? op_input(c, 4) : NULL;
    return w_hh && w_hh->ndim == 2 && w_hh->shape[0] != 4 * w_hh->shape[1];
}

#define FORM(options)                                                                                      \
    {                                                                                                      \
        .layers = (options)->num_layers, .directions = (options)->bidirectional ? 2 : 1,                   \
        .biases = (options)->has_biases, .train = (options)->train, .batch_first = (options)->batch_first, \
        .dropout = (options)->dropout                                                                      \
    }

static Form form_of(const OpCall *c)
{
    const bool lstm = c->op->variant == RNN_LSTM;
    Form f;
    if (lstm) f = (Form)FORM((const TensorLstmArgs *)op_params(c));
    else f = (Form)FORM((const TensorRnnArgs *)op_params(c));
    f.kind = c->op->variant, f.states = lstm ? 2 : 1, f.projected = lstm && is_projected(c);
    f.each = 2 + 2 * f.biases + f.projected;
    return f;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* What the layers would find too, but here with the shapes that the user wrote: later x is turned, and a
 * batch added. */
static int check_input(OpCall *c, const Form *f, const Tensor *x, const Tensor *w_ih)
{
    const char *before = x->ndim == 2 ? "steps" : f->batch_first ? "batch, steps" : "steps, batch";
    if (w_ih->ndim != 2 || w_ih->shape[0] % rnn_gates(f->kind))
        return op_fail(c, TENSOR_ESHAPE, "w_ih %s: want [%d hidden, in]", S(w_ih), rnn_gates(f->kind));
    if (x->shape[x->ndim - 1] != w_ih->shape[1])
        return op_fail(c, TENSOR_ESHAPE, "input %s, w_ih %s: want [%s, %lld]", S(x), S(w_ih), before,
                       (long long)w_ih->shape[1]);
    if (x->shape[x->ndim == 3 && f->batch_first] == 0)
        return op_fail(c, TENSOR_ESHAPE, "input %s, [%s, in]: a sequence of no steps", S(x), before);
    return 0;
}

/* h0 or c0, whose last dimension is the width. */
static int check_state(OpCall *c, const Form *f, const Tensor *x, const Tensor *s, const char *name,
                       int64_t width)
{
    const int64_t batch = x->shape[!f->batch_first];
    const TensorShape want = x->ndim == 3 ? SHAPE(f->layers * f->directions, batch, width)
                                          : SHAPE(f->layers * f->directions, width);
    if (!s || shape_equal(shape_of(s), want)) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s %s, input %s: want %s", name, S(s), S(x), shape_text(want));
}

/* Layers after the first read the results of both directions. */
static int check_deeper(OpCall *c, const Form *f, int first, int64_t width)
{
    for (int k = f->directions; k < f->layers * f->directions; k++) {
        const Tensor *w = op_input(c, first + k * f->each);
        if (w->ndim != 2 || w->shape[1] != width * f->directions)
            return op_fail(c, TENSOR_ESHAPE,
                           "w_ih %s of layer %d: want %lld columns, as the layer before gives", S(w),
                           k / f->directions, (long long)(width * f->directions));
    }
    return 0;
}

static int check_params(OpCall *c, const Form *f)
{
    if (!(f->dropout >= 0 && f->dropout <= 1))
        return op_fail(c, TENSOR_EVALUE, "dropout %g: a probability lies in [0, 1]", f->dropout);
    if (f->layers < 1 || f->layers > OP_MAX_INPUTS)
        return op_fail(c, TENSOR_EVALUE, "%d layers: want 1 to %d", f->layers, OP_MAX_INPUTS);
    const int given = op_inputs(c) - 1 - f->states, wanted = f->layers * f->directions * f->each;
    if (given == wanted) return 0;
    return op_fail(c, TENSOR_EVALUE, "%d params: want %d, %d for each of %d layers%s", given, wanted, f->each,
                   f->layers, f->directions == 2 ? " and 2 directions" : "");
}

static int check(OpCall *c)
{
    const Form f = form_of(c);
    if (check_params(c, &f) || call_one_dtype(c)) return -1;
    const Tensor *x = op_input(c, 0);
    if (x->ndim != 2 && x->ndim != 3)
        return op_fail(c, TENSOR_ESHAPE, "input %s: want [steps, batch, in] or [steps, in]", S(x));
    const int first = 1 + f.states;
    const Tensor *w_ih = op_input(c, first), *w_hh = op_input(c, first + 1);
    if (check_input(c, &f, x, w_ih)) return -1;
    const int64_t hidden = w_ih->shape[0] / rnn_gates(f.kind), out = f.projected ? w_hh->shape[1] : hidden;
    if (check_state(c, &f, x, op_input(c, 1), "h0", out) ||
        (f.kind == RNN_LSTM && check_state(c, &f, x, op_input(c, 2), "c0", hidden)))
        return -1;
    if (check_deeper(c, &f, first, out)) return -1;
    for (int i = first + 1 + f.each; i < op_inputs(c); i += f.each)
        if (!shape_equal(shape_of(op_input(c, i)), shape_of(w_hh)))
            return op_fail(c, TENSOR_ESHAPE, "w_hh %s after %s: want one hidden size", S(op_input(c, i)),
                           S(w_hh));
    return 0;
}

/* ---- the net --------------------------------------------------------------------------------- */

/* Halves that a layer computes in f32 are f32 until the end. */
static Tensor *wide(OpCall *c, int i)
{
    Tensor *x = op_input(c, i);
    return x ? tensor_to(x, (TensorDtype)rnn_dtype(x->place, x->dtype)) : NULL;
}

typedef struct Net {
    Form f;
    bool alone;                    /* without a batch */
    Tensor *state[2];              /* h0, c0 */
    Tensor *end[2][OP_MAX_INPUTS]; /* of each layer and direction: h, c */
} Net;

/* Number k of the layers and directions, over x. */
static Tensor *run_direction(OpCall *c, Net *net, int k, Tensor *x)
{
    const Form *f = &net->f;
    const bool reverse = k % f->directions == 1;
    const int first = 1 + f->states + k * f->each;
    Tensor *operand[RNN_ROLES] = { [X] = x, [W_IH] = wide(c, first), [W_HH] = wide(c, first + 1) }, *y;
    for (int i = 0; i < f->states; i++)
        if (net->state[i] && !(operand[H0 + i] = tensor_select(net->state[i], 0, k))) return NULL;
    if (f->biases) operand[B_IH] = wide(c, first + 2), operand[B_HH] = wide(c, first + 3);
    if (f->projected) operand[W_HR] = wide(c, first + f->each - 1);
    if (rnn_layer(f->kind, operand, reverse, c->site, &y, &net->end[1][k])) return NULL;
    net->end[0][k] = tensor_select(y, 0, reverse ? 0 : -1);
    return y;
}

static Tensor *run_layers(OpCall *c, Net *net, Tensor *x)
{
    const Form *f = &net->f;
    for (int layer = 0; layer < f->layers; layer++) {
        Tensor *y[2] = { NULL, NULL };
        for (int d = 0; d < f->directions; d++)
            if (!(y[d] = run_direction(c, net, layer * f->directions + d, x))) return NULL;
        x = y[1] ? tensor_cat(TENSORS(y[0], y[1]), 2) : y[0];
        if (layer < f->layers - 1) x = tensor_dropout(x, f->dropout, f->train);
    }
    return x;
}

static int compose(OpCall *c)
{
    Net net = { .f = form_of(c), .alone = op_input(c, 0)->ndim == 2 };
    const TensorDtype dtype = tensor_dtype(op_input(c, 0));
    const bool swap = net.f.batch_first && !net.alone;
    Tensor *x = wide(c, 0);
    if (net.alone) x = tensor_unsqueeze(x, 1);
    if (swap) x = tensor_transpose(x, 0, 1);
    for (int i = 0; i < net.f.states; i++) {
        net.state[i] = wide(c, 1 + i);
        if (net.state[i] && net.alone) net.state[i] = tensor_unsqueeze(net.state[i], 1);
    }
    Tensor *y = x ? run_layers(c, &net, x) : NULL;
    if (net.alone) y = tensor_squeeze(y, 1);
    if (swap) y = tensor_transpose(y, 0, 1);
    if (op_set_result(c, 0, tensor_to(y, dtype))) return -1;
    for (int i = 0; i < net.f.states; i++) {
        Tensor *ends = tensor_stack(TENSOR_LIST(net.end[i], net.f.layers * net.f.directions), 0);
        if (net.alone) ends = tensor_squeeze(ends, 1);
        if (op_set_result(c, 1 + i, tensor_to(ends, dtype))) return -1;
    }
    return 0;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

#define FIELDS(S)                                                                                   \
    OP_OPTION(S, has_biases), OP_OPTION(S, num_layers), OP_OPTION(S, dropout), OP_OPTION(S, train), \
        OP_OPTION(S, bidirectional), OP_OPTION(S, batch_first)
static const OpField fields[] = { FIELDS(TensorRnnArgs), { 0 } };
static const OpField lstm_fields[] = { FIELDS(TensorLstmArgs), { 0 } };

#define NET                                                    \
    .arity = OP_ANY_ARITY, .shape = check, .compose = compose, \
    .flags = OP_ANY_DEVICE | OP_OF_PRODUCTS | OP_FLOAT_INPUTS | OP_RANDOM
#define GRADIENT      \
    "by its layers: " \
    "da_t of the gates' sums and dh_t from dh_t+1, step by step; dw = da^T of what w multiplies"
#define SIMPLE_NET                                                                                          \
    NET, .params = sizeof(TensorRnnArgs), .defaults = &tensor_rnn_defaults, .fields = fields, .outputs = 2, \
         .optional = KEEP_INPUT(1), .gradient = GRADIENT,                                                   \
         .errors = "2x2x3,-,2x3,2x2,2 ! EVALUE; 2x2x3,-,2x3,2x2 ! EVALUE; 2x2x3,-,2x3,2x2 {has_biases=0 "   \
                   "num_layers=2} ! EVALUE; "                                                               \
                   "2x2x3,-,2x3,2x2 {has_biases=0 num_layers=0} ! EVALUE; 2x2x3,-,2x3,2x2 {has_biases=0 "   \
                   "dropout=1.5} ! EVALUE; "                                                                \
                   "2x2x3,-,2x3,2x2,1x2,1x1 {has_biases=0 num_layers=2} ! ESHAPE; "                         \
                   "2x2x3,1x2,2x3,2x2 {has_biases=0} ! ESHAPE; 2x2x3,2x2x2,2x3,2x2 {has_biases=0} ! "       \
                   "ESHAPE; 3,-,2x3,2x2 {has_biases=0} ! ESHAPE; "                                          \
                   "0x2x3,-,2x3,2x2 {has_biases=0} ! ESHAPE; 2x2x3,-,2x3,4x2 {has_biases=0} ! ESHAPE; "     \
                   "2x2x3@i64,-,2x3,2x2 {has_biases=0} ! EDTYPE"
#define RNN_SAMPLES                                                                                       \
    "3x2x3,1x2x2,2x3,2x2,2,2; 2x3,-,2x3,2x2 {has_biases=0}; 2x2x1,4x2x1,1x1,1x1,1x1,1x1,1x2,1x1,1x2,1x1 " \
    "{has_biases=0 num_layers=2 bidirectional=1}; "                                                       \
    "2x3x1,1x2x2,2x1,2x2,2,2 {batch_first=1}; 2x2x2,-,1x2,1x1,1x1,1x1 {has_biases=0 num_layers=2 "        \
    "dropout=.5}; 2x0x3,-,2x3,2x2 {has_biases=0}"

static const TensorOp op_rnn_tanh = {
    .name = "rnn_tanh",
    .autocast = AUTOCAST_LOWER,
    .summary = "recurrent net with tanh over a sequence: output and h_n",
    .variant = RNN_TANH,
    SIMPLE_NET,
    .samples = RNN_SAMPLES,
};
static const TensorOp op_rnn_relu = {
    .name = "rnn_relu",
    .autocast = AUTOCAST_LOWER,
    .summary = "recurrent net with relu over a sequence: output and h_n",
    .variant = RNN_RELU,
    SIMPLE_NET,
    .samples = RNN_SAMPLES,
};
static const TensorOp op_gru = {
    .name = "gru",
    .autocast = AUTOCAST_LOWER,
    .summary = "gated recurrent units over a sequence: output and h_n",
    .variant = RNN_GRU,
    SIMPLE_NET,
    .samples =
        "3x2x3,1x2x2,6x3,6x2,6,6; 2x3,1x1,3x3,3x1 {has_biases=0}; "
        "2x2x1,4x2x1,3x1,3x1,3x1,3x1,3x2,3x1,3x2,3x1 {has_biases=0 num_layers=2 bidirectional=1}; "
        "2x3x1,-,6x1,6x2,6,6 {batch_first=1}; "
        "2x2x2,-,3x2,3x1,3x1,3x1 {has_biases=0 num_layers=2 dropout=.5}; 2x0x3,-,6x3,6x2 {has_biases=0}",
};
static const TensorOp op_lstm = {
    .name = "lstm",
    .autocast = AUTOCAST_LOWER,
    .summary = "long short-term memory over a sequence: output, h_n and c_n",
    .variant = RNN_LSTM,
    NET,
    PARAMS(TensorLstmArgs, tensor_lstm_defaults, lstm_fields),
    .outputs = 3,
    .optional = KEEP_INPUT(1) | KEEP_INPUT(2),
    .gradient = GRADIENT,
    .samples = "3x2x3,1x2x2,1x2x2,8x3,8x2,8,8; 2x3,1x1,1x1,4x3,4x1 {has_biases=0}; "
               "2x2x1,4x2x1,4x2x1,4x1,4x1,4x1,4x1,4x2,4x1,4x2,4x1 {has_biases=0 num_layers=2 "
               "bidirectional=1}; 2x3x1,-,-,8x1,8x2,8,8 {batch_first=1}; 2x2x2,-,-,4x2,4x1,4x1,4x1 "
               "{has_biases=0 num_layers=2 dropout=.5}; 2x2x1,2x2x1,2x2x2,8x1,8x1,8,8,1x2,8x1,8x1,8,8,1x2 "
               "{bidirectional=1}; 2x0x3,-,-,8x3,8x2 {has_biases=0}",
    .errors = "2x2x3,-,-,8x3,8x2,8 ! EVALUE; 2x2x3,-,-,8x3,8x2 ! EVALUE; 2x2x3,-,-,8x3,8x1 {has_biases=0} ! "
              "EVALUE; 2x2x3,1x2x2,2x2x2,8x3,8x2 {has_biases=0} ! ESHAPE; 2x2x3,1x2x2,1x2,8x3,8x2 "
              "{has_biases=0} ! ESHAPE; 0x2x3,-,-,8x3,8x2 {has_biases=0} ! ESHAPE; 2x2x3,-,-,8x3,8x2 "
              "{has_biases=0 dropout=-1} ! EVALUE; 2x2x3@i64,-,-,8x3,8x2 {has_biases=0} ! EDTYPE",
};
REGISTER_OPS(&op_rnn_tanh, &op_rnn_relu, &op_gru, &op_lstm);

/* ---- public ---------------------------------------------------------------------------------- */

/* in holds input and states, n of them, and has room for the params. */
static Tensor *apply(const TensorOp *op, Tensor *in[OP_MAX_INPUTS], int n, TensorList params,
                     const void *options, Tensor **h_n, Tensor **c_n, const void *site)
{
    Tensor *y[3] = { NULL, NULL, NULL };
    if (params.count > 0 && !params.item) {
        fail_site(TENSOR_ENULL, op->name, site, "the list of params is NULL");
    } else if (params.count < 0 || params.count > OP_MAX_INPUTS - n) {
        fail_site(TENSOR_EVALUE, op->name, site, "%d params: at most %d are possible", params.count,
                  OP_MAX_INPUTS - n);
    } else {
        for (int i = 0; i < params.count; i++) in[n + i] = params.item[i];
        op_apply(op, in, n + params.count, options, site, y, 3);
    }
    if (h_n) *h_n = y[1];
    if (c_n) *c_n = y[2];
    return y[0];
}

static Tensor *apply_rnn(const TensorOp *op, const TensorRnnArgs *a, const void *site)
{
    Tensor *in[OP_MAX_INPUTS] = { a->input, a->h0 };
    return apply(op, in, 2, a->params, a, a->h_n, NULL, site);
}

Tensor *tensor_rnn_tanh_args(TensorRnnArgs a) { return apply_rnn(&op_rnn_tanh, &a, SITE); }
Tensor *tensor_rnn_relu_args(TensorRnnArgs a) { return apply_rnn(&op_rnn_relu, &a, SITE); }
Tensor *tensor_gru_args(TensorRnnArgs a) { return apply_rnn(&op_gru, &a, SITE); }

Tensor *tensor_lstm_args(TensorLstmArgs a)
{
    Tensor *in[OP_MAX_INPUTS] = { a.input, a.h0, a.c0 };
    return apply(&op_lstm, in, 3, a.params, &a, a.h_n, a.c_n, SITE);
}
