/* rnn.c - recurrent layers and cells: parameters in PyTorch's order, for the ops of ops/sequence.h. */
#include <math.h>
#include <stdio.h>
#include "module.h"

enum { TANH, RELU, GRU, LSTM };           /* kind->form; TANH may be RELU, by the nonlinearity */
enum { SEQUENCE, CELL };                  /* kind->rank */
enum { MOST_PARAMETERS = OP_MAX_INPUTS }; /* check() sees to it */

const NNRnnArgs nn_rnn_defaults = { NN_RNN_DEFAULTS };
const NNLstmArgs nn_lstm_defaults = { NN_LSTM_DEFAULTS };
const NNRnnCellArgs nn_rnn_cell_defaults = { NN_RNN_CELL_DEFAULTS };

static const char *const nonlinearities[] = { "tanh", "relu", NULL };
static const OpField rnn_fields[] = { OP_REQUIRED(NNRnnArgs, input_size, hidden_size),
                                      OP_OPTION(NNRnnArgs, num_layers),
                                      OP_CHOICE(NNRnnArgs, nonlinearity, nonlinearities),
                                      OP_OPTION(NNRnnArgs, bias, batch_first, dropout, bidirectional, dtype),
                                      { 0 } };
static const OpField lstm_fields[] = { OP_REQUIRED(NNLstmArgs, input_size, hidden_size),
                                       OP_OPTION(NNLstmArgs, num_layers, bias, batch_first, dropout,
                                                 bidirectional, proj_size, dtype),
                                       { 0 } };
static const OpField cell_fields[] = { OP_REQUIRED(NNRnnCellArgs, input_size, hidden_size),
                                       OP_OPTION(NNRnnCellArgs, bias),
                                       OP_CHOICE(NNRnnCellArgs, nonlinearity, nonlinearities),
                                       OP_OPTION(NNRnnCellArgs, dtype),
                                       { 0 } };

/* The options of every kind as those of an lstm, which has the most; form is the op that runs. */
typedef struct Recurrent {
    NNLstmArgs of;
    int form;
} Recurrent;

static Recurrent options(const Module *m)
{
    Recurrent r = { .form = m->kind->form };
    if (m->kind->rank == CELL) {
        const NNRnnCellArgs *a = m->args;
        r.of = (NNLstmArgs){ .input_size = a->input_size,
                             .hidden_size = a->hidden_size,
                             .num_layers = 1,
                             .bias = a->bias,
                             .dtype = a->dtype };
        if (r.form == TANH) r.form = (int)a->nonlinearity;
    } else if (r.form == TANH) {
        const NNRnnArgs *a = m->args;
        r.of = (NNLstmArgs){ .input_size = a->input_size,
                             .hidden_size = a->hidden_size,
                             .num_layers = a->num_layers,
                             .bias = a->bias,
                             .batch_first = a->batch_first,
                             .dropout = a->dropout,
                             .bidirectional = a->bidirectional,
                             .dtype = a->dtype };
        r.form = (int)a->nonlinearity;
    } else {
        r.of = *(const NNLstmArgs *)m->args;
    }
    return r;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int refuse(const Module *m, const NNLstmArgs *a)
{
    return nn_refuse(
        m,
        "input %lld, hidden %lld, proj_size %lld, %d layers, dropout %g: want sizes of 1 and more "
        "(proj_size: 0, or of an lstm below hidden), a dropout within [0, 1]",
        (long long)a->input_size, (long long)a->hidden_size, (long long)a->proj_size, a->num_layers,
        a->dropout);
}

static int check(const Module *m, const Recurrent *r)
{
    const NNLstmArgs *a = &r->of;
    const int each = 2 + 2 * a->bias + (a->proj_size > 0), states = r->form == LSTM ? 2 : 1,
              most = (OP_MAX_INPUTS - 1 - states) / (each * (a->bidirectional ? 2 : 1));
    if (a->num_layers > most) return nn_refuse(m, "%d layers: at most %d of this form", a->num_layers, most);
    if (a->input_size < (m->kind->rank == SEQUENCE) || a->hidden_size < 1 || a->num_layers < 1 ||
        !(a->dropout >= 0 && a->dropout <= 1))
        return refuse(m, a);
    if (a->proj_size < 0 || (a->proj_size && r->form != LSTM) || a->proj_size >= a->hidden_size)
        return refuse(m, a);
    return 0;
}

/* The parameters of one layer and direction. */
static void add_parameters(Module *m, const Recurrent *r, int64_t in, const char *ending)
{
    static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr" };
    static const int gates[] = { 1, 1, 3, 4 };
    const NNLstmArgs *a = &r->of;
    const int64_t out = a->proj_size ? a->proj_size : a->hidden_size, rows = gates[r->form] * a->hidden_size;
    const TensorShape shapes[] = { SHAPE(rows, in), SHAPE(rows, out), SHAPE(rows), SHAPE(rows),
                                   SHAPE(out, a->hidden_size) };
    for (int i = 0; i < 5; i++) {
        char name[64];
        if ((!a->bias && (i == 2 || i == 3)) || (!a->proj_size && i == 4)) continue;
        snprintf(name, sizeof name, "%s%s", names[i], ending);
        nn_new_parameter(m, name, shapes[i], a->dtype);
    }
}

static int init(Module *m, const void *args)
{
    (void)args;
    const Recurrent r = options(m);
    const NNLstmArgs *a = &r.of;
    if (check(m, &r)) return -1;
    const int directions = a->bidirectional ? 2 : 1;
    const int64_t out = a->proj_size ? a->proj_size : a->hidden_size;
    if (m->kind->rank == CELL) add_parameters(m, &r, a->input_size, "");
    for (int i = 0; i < a->num_layers * directions && m->kind->rank == SEQUENCE; i++) {
        char ending[32];
        snprintf(ending, sizeof ending, "_l%d%s", i / directions, i % directions ? "_reverse" : "");
        add_parameters(m, &r, i < directions ? a->input_size : directions * out, ending);
    }
    const double k = 1 / sqrt((double)a->hidden_size);
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < m->parameter_count && !m->failed; i++)
        if (!nn_init_uniform_(nn_param(m, i), -k, k)) m->failed = true;
    tensor_scope_close(scope);
    return 0;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Is m of this form?  Recorded when not. */
static bool is_other(const Module *m, int rank, bool lstm, const char *function);

static TensorList parameters(const Module *m, Tensor *at[MOST_PARAMETERS])
{
    for (int i = 0; i < m->parameter_count; i++) at[i] = nn_param(m, i);
    return TENSOR_LIST(at, m->parameter_count);
}

#define SEQUENCE_OPTIONS(m, r)                                                                        \
    .has_biases = (r).of.bias, .num_layers = (r).of.num_layers, .dropout = (r).of.dropout,            \
    .train = (m)->training, .bidirectional = (r).of.bidirectional, .batch_first = (r).of.batch_first, \
    TENSOR_FROM_DEFAULTS

Tensor *nn_rnn_forward(Module *m, Tensor *x, Tensor *h0, Tensor **h_n)
{
    static Tensor *(*const run[])(TensorRnnArgs) = { tensor_rnn_tanh_args, tensor_rnn_relu_args,
                                                     tensor_gru_args };
    Tensor *at[MOST_PARAMETERS];
    if (h_n) *h_n = NULL;
    if (is_other(m, SEQUENCE, false, "nn_rnn_forward")) return NULL;
    const Recurrent r = options(m);
    return run[r.form]((TensorRnnArgs){
        .input = x, .h0 = h0, .params = parameters(m, at), SEQUENCE_OPTIONS(m, r), .h_n = h_n });
}

Tensor *nn_lstm_forward(Module *m, Tensor *x, Tensor *h0, Tensor *c0, Tensor **h_n, Tensor **c_n)
{
    Tensor *at[MOST_PARAMETERS];
    if (h_n) *h_n = NULL;
    if (c_n) *c_n = NULL;
    if (is_other(m, SEQUENCE, true, "nn_lstm_forward")) return NULL;
    const Recurrent r = options(m);
    return tensor_lstm_args((TensorLstmArgs){ .input = x,
                                              .h0 = h0,
                                              .c0 = c0,
                                              .params = parameters(m, at),
                                              SEQUENCE_OPTIONS(m, r),
                                              .h_n = h_n,
                                              .c_n = c_n });
}

Tensor *nn_rnn_cell_forward(Module *m, Tensor *x, Tensor *hx)
{
    static Tensor *(*const run[])(Tensor *, Tensor *, Tensor *, Tensor *, Tensor *,
                                  Tensor *) = { tensor_rnn_tanh_cell, tensor_rnn_relu_cell, tensor_gru_cell };
    if (is_other(m, CELL, false, "nn_rnn_cell_forward")) return NULL;
    return run[options(m).form](x, hx, nn_param(m, 0), nn_param(m, 1), nn_param(m, 2), nn_param(m, 3));
}

Tensor *nn_lstm_cell_forward(Module *m, Tensor *x, Tensor *hx, Tensor *cx, Tensor **c_next)
{
    if (c_next) *c_next = NULL;
    if (is_other(m, CELL, true, "nn_lstm_cell_forward")) return NULL;
    return tensor_lstm_cell(x, hx, cx, nn_param(m, 0), nn_param(m, 1), nn_param(m, 2), nn_param(m, 3),
                            .c_next = c_next);
}

static Tensor *rnn_forward(Module *self, Tensor *x) { return nn_rnn_forward(self, x, NULL, NULL); }
static Tensor *lstm_forward(Module *self, Tensor *x)
{
    return nn_lstm_forward(self, x, NULL, NULL, NULL, NULL);
}
static Tensor *rnn_cell_forward(Module *self, Tensor *x) { return nn_rnn_cell_forward(self, x, NULL); }
static Tensor *lstm_cell_forward(Module *self, Tensor *x)
{
    return nn_lstm_cell_forward(self, x, NULL, NULL, NULL);
}

static bool is_other(const Module *m, int rank, bool lstm, const char *function)
{
    Tensor *(*const forward)(Module *, Tensor *) = rank == CELL ? lstm ? lstm_cell_forward : rnn_cell_forward
                                                   : lstm       ? lstm_forward
                                                                : rnn_forward;
    if (nn_null(m, function)) return true;
    if (m->forward == forward) return false;
    tensor_fail(TENSOR_EVALUE, function, "not of a module %s", m->type);
    return true;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

#define RECURRENT(name_, type, Args, set, table, rank_, form_, forward_)               \
    static const NNKind name_##_kind = { .name = (type),                               \
                                         .function = "nn_" #name_,                     \
                                         NN_OPTIONS(Args, nn_##set##_defaults, table), \
                                         .init = init,                                 \
                                         .forward = (forward_),                        \
                                         .rank = (rank_),                              \
                                         .form = (form_) };                            \
    NN_REGISTER(name_##_kind);                                                         \
    Module *nn_##name_##_args(Args args) { return nn_make(&name_##_kind, &args); }
RECURRENT(rnn, "RNN", NNRnnArgs, rnn, rnn_fields, SEQUENCE, TANH, rnn_forward)
RECURRENT(gru, "GRU", NNLstmArgs, lstm, lstm_fields, SEQUENCE, GRU, rnn_forward)
RECURRENT(lstm, "LSTM", NNLstmArgs, lstm, lstm_fields, SEQUENCE, LSTM, lstm_forward)
RECURRENT(rnn_cell, "RNNCell", NNRnnCellArgs, rnn_cell, cell_fields, CELL, TANH, rnn_cell_forward)
RECURRENT(gru_cell, "GRUCell", NNRnnCellArgs, rnn_cell, cell_fields, CELL, GRU, rnn_cell_forward)
RECURRENT(lstm_cell, "LSTMCell", NNRnnCellArgs, rnn_cell, cell_fields, CELL, LSTM, lstm_cell_forward)
