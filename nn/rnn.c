/* rnn.c - recurrent layers and cells: parameters in PyTorch's order, for the ops of ops/sequence.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "module.h"

typedef enum Kind { TANH, RELU, GRU, LSTM } Kind;
enum { MOST_PARAMETERS = OP_MAX_INPUTS }; /* check() sees to it */

typedef struct Recurrent {
    Module base;
    Kind kind;
    bool bias, batch_first, bidirectional;
    int num_layers;
    double dropout;
} Recurrent;

/* ---- parameters ------------------------------------------------------------------------------ */

/* "tanh" or "relu"; -1 for another. */
static int kind_of(const char *nonlinearity)
{
    if (nonlinearity && strcmp(nonlinearity, "tanh") == 0) return TANH;
    return nonlinearity && strcmp(nonlinearity, "relu") == 0 ? RELU : -1;
}

static int refuse(const char *function, const NNLstmArgs *a)
{
    return tensor_fail(
        TENSOR_EVALUE, function,
        "input %lld, hidden %lld, proj_size %lld, %d layers, dropout %g: want sizes of 1 and more "
        "(proj_size: 0, or of an lstm below hidden), a dropout within [0, 1]",
        (long long)a->input_size, (long long)a->hidden_size, (long long)a->proj_size, a->num_layers,
        a->dropout);
}

static int check(const char *function, const NNLstmArgs *a, Kind kind)
{
    const int each = 2 + 2 * a->bias + (a->proj_size > 0), states = kind == LSTM ? 2 : 1,
              directions = a->bidirectional ? 2 : 1;
    if (a->num_layers > (OP_MAX_INPUTS - 1 - states) / (each * directions))
        return tensor_fail(TENSOR_EVALUE, function, "%d layers: at most %d of this form", a->num_layers,
                           (OP_MAX_INPUTS - 1 - states) / (each * directions));
    if (a->input_size < 0 || a->hidden_size < 1 || a->num_layers < 1 || !(a->dropout >= 0 && a->dropout <= 1))
        return refuse(function, a);
    if (a->proj_size < 0 || (a->proj_size && kind != LSTM) || a->proj_size >= a->hidden_size)
        return refuse(function, a);
    return 0;
}

/* The parameters of one layer and direction. */
static void add_parameters(Recurrent *r, const NNLstmArgs *a, int64_t in, const char *ending)
{
    static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr" };
    const int64_t out = a->proj_size ? a->proj_size : a->hidden_size, rows = (r->kind == LSTM  ? 4
                                                                              : r->kind == GRU ? 3
                                                                                               : 1) *
                                                                             a->hidden_size;
    const TensorShape shapes[] = { SHAPE(rows, in), SHAPE(rows, out), SHAPE(rows), SHAPE(rows),
                                   SHAPE(out, a->hidden_size) };
    for (int i = 0; i < 5; i++) {
        char name[64];
        if ((!a->bias && (i == 2 || i == 3)) || (!a->proj_size && i == 4)) continue;
        snprintf(name, sizeof name, "%s%s", names[i], ending);
        nn_new_parameter(r, name, shapes[i], a->dtype);
    }
}

static Module *init(Recurrent *r, int64_t hidden)
{
    const double k = 1 / sqrt((double)hidden);
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < r->base.parameter_count && !r->base.failed; i++)
        if (!nn_init_uniform_(nn_param(&r->base, i), -k, k)) r->base.failed = true;
    tensor_scope_close(scope);
    return nn_done(r);
}

static Module *make(const char *function, const char *type, Tensor *(*forward)(Module *, Tensor *),
                    const NNLstmArgs *a, Kind kind)
{
    if (check(function, a, kind)) return NULL;
    if (a->input_size == 0) return refuse(function, a), NULL;
    Recurrent *r = nn_new(Recurrent, type, forward);
    r->kind = kind, r->bias = a->bias, r->batch_first = a->batch_first, r->bidirectional = a->bidirectional;
    r->num_layers = a->num_layers, r->dropout = a->dropout;
    const int directions = a->bidirectional ? 2 : 1;
    const int64_t out = a->proj_size ? a->proj_size : a->hidden_size;
    for (int layer = 0; layer < a->num_layers && !r->base.failed; layer++)
        for (int d = 0; d < directions; d++) {
            char ending[32];
            snprintf(ending, sizeof ending, "_l%d%s", layer, d ? "_reverse" : "");
            add_parameters(r, a, layer ? directions * out : a->input_size, ending);
        }
    return init(r, a->hidden_size);
}

static Module *make_cell(const char *function, const char *type, Tensor *(*forward)(Module *, Tensor *),
                         const NNRnnCellArgs *a, Kind kind)
{
    const NNLstmArgs same = { .input_size = a->input_size,
                              .hidden_size = a->hidden_size,
                              .num_layers = 1,
                              .bias = a->bias,
                              .dtype = a->dtype };
    if (check(function, &same, kind)) return NULL;
    Recurrent *r = nn_new(Recurrent, type, forward);
    r->kind = kind, r->bias = a->bias;
    add_parameters(r, &same, a->input_size, "");
    return init(r, a->hidden_size);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Is m one of ours, of this form?  Recorded when not. */
static const Recurrent *of_kind(Module *m, bool cell, bool lstm, const char *function);

static TensorList parameters(const Recurrent *r, Tensor *at[MOST_PARAMETERS])
{
    const int n = r->base.parameter_count;
    for (int i = 0; i < n; i++) at[i] = nn_param(&r->base, i);
    return TENSOR_LIST(at, n);
}

Tensor *nn_rnn_forward(Module *module, Tensor *x, Tensor *h0, Tensor **h_n)
{
    static Tensor *(*const run[])(TensorRnnArgs) = { tensor_rnn_tanh_args, tensor_rnn_relu_args,
                                                     tensor_gru_args };
    Tensor *at[MOST_PARAMETERS];
    if (h_n) *h_n = NULL;
    const Recurrent *r = of_kind(module, false, false, "nn_rnn_forward");
    if (!r) return NULL;
    return run[r->kind]((TensorRnnArgs){ .input = x,
                                         .h0 = h0,
                                         .params = parameters(r, at),
                                         .has_biases = r->bias,
                                         .num_layers = r->num_layers,
                                         .dropout = r->dropout,
                                         .train = r->base.training,
                                         .bidirectional = r->bidirectional,
                                         .batch_first = r->batch_first,
                                         .h_n = h_n });
}

Tensor *nn_lstm_forward(Module *module, Tensor *x, Tensor *h0, Tensor *c0, Tensor **h_n, Tensor **c_n)
{
    Tensor *at[MOST_PARAMETERS];
    if (h_n) *h_n = NULL;
    if (c_n) *c_n = NULL;
    const Recurrent *r = of_kind(module, false, true, "nn_lstm_forward");
    if (!r) return NULL;
    return tensor_lstm_args((TensorLstmArgs){ .input = x,
                                              .h0 = h0,
                                              .c0 = c0,
                                              .params = parameters(r, at),
                                              .has_biases = r->bias,
                                              .num_layers = r->num_layers,
                                              .dropout = r->dropout,
                                              .train = r->base.training,
                                              .bidirectional = r->bidirectional,
                                              .batch_first = r->batch_first,
                                              .h_n = h_n,
                                              .c_n = c_n });
}

Tensor *nn_rnn_cell_forward(Module *module, Tensor *x, Tensor *hx)
{
    static Tensor *(*const run[])(Tensor *, Tensor *, Tensor *, Tensor *, Tensor *,
                                  Tensor *) = { tensor_rnn_tanh_cell, tensor_rnn_relu_cell, tensor_gru_cell };
    const Recurrent *r = of_kind(module, true, false, "nn_rnn_cell_forward");
    if (!r) return NULL;
    const Module *m = &r->base;
    return run[r->kind](x, hx, nn_param(m, 0), nn_param(m, 1), nn_param(m, 2), nn_param(m, 3));
}

Tensor *nn_lstm_cell_forward(Module *module, Tensor *x, Tensor *hx, Tensor *cx, Tensor **c_next)
{
    if (c_next) *c_next = NULL;
    const Recurrent *r = of_kind(module, true, true, "nn_lstm_cell_forward");
    if (!r) return NULL;
    const Module *m = &r->base;
    return tensor_lstm_cell(x, hx, cx, nn_param(m, 0), nn_param(m, 1), nn_param(m, 2), nn_param(m, 3),
                            c_next);
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

static const Recurrent *of_kind(Module *m, bool cell, bool lstm, const char *function)
{
    Tensor *(*const forward)(Module *, Tensor *) = cell   ? lstm ? lstm_cell_forward : rnn_cell_forward
                                                   : lstm ? lstm_forward
                                                          : rnn_forward;
    if (nn_null(m, function)) return NULL;
    if (m->forward == forward) return (const Recurrent *)m;
    return tensor_fail(TENSOR_EVALUE, function, "not of a module %s", m->type), NULL;
}

/* ---- constructors ---------------------------------------------------------------------------- */

static Module *refuse_nonlinearity(const char *function, const char *name)
{
    return tensor_fail(TENSOR_EVALUE, function, "nonlinearity \"%s\": want \"tanh\" or \"relu\"",
                       name ? name : "(NULL)"),
           NULL;
}

Module *nn_rnn_args(NNRnnArgs a)
{
    const int kind = kind_of(a.nonlinearity);
    if (kind < 0) return refuse_nonlinearity("nn_rnn", a.nonlinearity);
    const NNLstmArgs same = { .input_size = a.input_size,
                              .hidden_size = a.hidden_size,
                              .num_layers = a.num_layers,
                              .bias = a.bias,
                              .batch_first = a.batch_first,
                              .dropout = a.dropout,
                              .bidirectional = a.bidirectional,
                              .dtype = a.dtype };
    return make("nn_rnn", "RNN", rnn_forward, &same, (Kind)kind);
}

Module *nn_gru_args(NNLstmArgs a) { return make("nn_gru", "GRU", rnn_forward, &a, GRU); }
Module *nn_lstm_args(NNLstmArgs a) { return make("nn_lstm", "LSTM", lstm_forward, &a, LSTM); }

Module *nn_rnn_cell_args(NNRnnCellArgs a)
{
    const int kind = kind_of(a.nonlinearity);
    if (kind < 0) return refuse_nonlinearity("nn_rnn_cell", a.nonlinearity);
    return make_cell("nn_rnn_cell", "RNNCell", rnn_cell_forward, &a, (Kind)kind);
}

Module *nn_gru_cell_args(NNRnnCellArgs a)
{
    return make_cell("nn_gru_cell", "GRUCell", rnn_cell_forward, &a, GRU);
}
Module *nn_lstm_cell_args(NNRnnCellArgs a)
{
    return make_cell("nn_lstm_cell", "LSTMCell", lstm_cell_forward, &a, LSTM);
}
