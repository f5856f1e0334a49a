/* rnn.c - recurrent layers and cells: parameters in PyTorch's order, for the ops of ops/sequence.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../module.h"

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

static TensorList parameters(const Module *m, Tensor *at[MOST_PARAMETERS])
{
    for (int i = 0; i < m->parameter_count; i++) at[i] = nn_param(m, i);
    return TENSOR_LIST(at, m->parameter_count);
}

#define SEQUENCE_OPTIONS(m, r)                                                                        \
    .has_biases = (r).of.bias, .num_layers = (r).of.num_layers, .dropout = (r).of.dropout,            \
    .train = (m)->training, .bidirectional = (r).of.bidirectional, .batch_first = (r).of.batch_first, \
    TENSOR_FROM_DEFAULTS

/* ---- packed sequences: (data, h0, c0, batch_sizes, sorted, unsorted) ---------------------------
 * Layer by layer and direction by direction, a segment of steps of the same sequences at a time: the states
 * of those that end are put aside, backward those that begin there join. */

typedef struct States {
    Tensor *at[2]; /* h and c, [n, H] */
    int count;     /* 2 of an lstm */
} States;

/* A segment of n sequences from the states of the first n. */
static Tensor *run_segment(const Module *m, const Recurrent *r, TensorList params, Tensor *x, States *s)
{
    static Tensor *(*const run[])(TensorRnnArgs) = { tensor_rnn_tanh_args, tensor_rnn_relu_args,
                                                     tensor_gru_args };
    Tensor *h = tensor_unsqueeze(s->at[0], 0), *y;
    if (r->form == LSTM)
        y = tensor_lstm(x, h, tensor_unsqueeze(s->at[1], 0), params, .has_biases = r->of.bias,
                        .train = m->training, .h_n = &s->at[0], .c_n = &s->at[1]);
    else
        y = run[r->form]((TensorRnnArgs){ .input = x,
                                          .h0 = h,
                                          .params = params,
                                          .has_biases = r->of.bias,
                                          .num_layers = 1,
                                          .train = m->training,
                                          .h_n = &s->at[0],
                                          TENSOR_FROM_DEFAULTS });
    for (int i = 0; i < s->count; i++) s->at[i] = y ? tensor_squeeze(s->at[i], 0) : NULL;
    return y;
}

static void rows(States *to, const States *from, int64_t first, int64_t n)
{
    to->count = from->count;
    for (int i = 0; i < from->count; i++) to->at[i] = tensor_narrow(from->at[i], 0, first, n);
}

static void join(States *to, const States *more)
{
    for (int i = 0; i < to->count; i++) to->at[i] = tensor_cat(TENSORS(to->at[i], more->at[i]));
}

typedef struct Packed {
    const int64_t *size; /* of the batch at each step */
    int64_t steps;
    Tensor **part; /* room for the result of each segment */
} Packed;

/* Adjusts the states to the n sequences of the next segment: forward, some have ended; backward, some
 * begin. */
static void change_batch(States *s, States *ended, const States *first, int64_t before, int64_t n)
{
    States more;
    if (before == 0) {
        rows(s, first, 0, n);
    } else if (n > before) {
        rows(&more, first, before, n - before);
        join(s, &more);
    } else {
        rows(&more, s, n, before - n);
        if (ended->count) join(&more, ended);
        *ended = more;
        rows(s, s, 0, n);
    }
}

/* The segment that ends before step t backward, or begins there: steps, and where the next one is. */
static int64_t segment(const Packed *p, int64_t *t, bool backward)
{
    const int64_t from = *t, n = p->size[backward ? from - 1 : from];
    while (backward ? *t > 0 && p->size[*t - 1] == n : *t < p->steps && p->size[*t] == n)
        *t += backward ? -1 : 1;
    return backward ? from - *t : *t - from;
}

/* One layer in one direction over data [sum, in]: [sum, H]; s: the first states, and then the last. */
static Tensor *run_direction(const Module *m, const Recurrent *r, TensorList params, bool backward,
                             const Packed *p, Tensor *data, States *s)
{
    const States first = *s;
    States ended = { .count = 0 };
    int segments = 0, k = 0;
    for (int64_t t = 0; t < p->steps; t++) segments += t == 0 || p->size[t] != p->size[t - 1];
    int64_t row = backward ? tensor_size(data, 0) : 0, t = backward ? p->steps : 0, before = 0;
    for (; k < segments; k++) {
        const int64_t n = p->size[backward ? t - 1 : t], steps = segment(p, &t, backward), size = steps * n;
        change_batch(s, &ended, &first, before, n);
        if (backward) row -= size;
        Tensor *x = tensor_unflatten(tensor_narrow(data, 0, row, size), 0, SHAPE(steps, n));
        Tensor *y = run_segment(m, r, params, backward ? tensor_flip(x, DIMS(0)) : x, s);
        y = tensor_flatten(backward ? tensor_flip(y, DIMS(0)) : y, 0, 1);
        if (!y) return NULL;
        p->part[backward ? segments - 1 - k : k] = y;
        if (!backward) row += size;
        before = n;
    }
    if (ended.count) join(s, &ended);
    return tensor_cat_args((TensorJoinArgs){ { segments, p->part }, 0 });
}

/* Given states, or zeros, of all layers and directions: [L D, N, width], in the order of the packing. */
static Tensor *first_states(Tensor *given, const NNCall *c, int64_t all, int64_t n, int64_t width)
{
    if (!given)
        return tensor_to_device(tensor_zeros(SHAPE(all, n, width), tensor_dtype(c->in[0])),
                                tensor_device(c->in[0]));
    if (tensor_ndim(given) != 3 || tensor_size(given, 0) != all || tensor_size(given, 1) != n ||
        tensor_size(given, 2) != width)
        return tensor_fail(TENSOR_ESHAPE, "nn_rnn_forward_packed",
                           "states of another shape than [%lld, %lld, %lld]", (long long)all, (long long)n,
                           (long long)width),
               NULL;
    return c->in[4] ? tensor_index_select(given, 1, c->in[4]) : given;
}

static Tensor *all_states(Tensor *const *of, int n, const NNCall *c)
{
    Tensor *all = tensor_stack_args((TensorJoinArgs){ { n, of }, 0 });
    return c->in[5] ? tensor_index_select(all, 1, c->in[5]) : all;
}

static void run_packed(const Module *m, NNCall *c, const Packed *p)
{
    const Recurrent r = options(m);
    const NNLstmArgs *a = &r.of;
    const int directions = a->bidirectional ? 2 : 1, all = a->num_layers * directions,
              each = 2 + 2 * a->bias + (a->proj_size > 0), states = r.form == LSTM ? 2 : 1;
    Tensor *at[MOST_PARAMETERS], *last[2][MOST_PARAMETERS], *data = c->in[0], *first[2] = { NULL };
    const TensorList params = parameters(m, at);
    for (int i = 0; i < states; i++) {
        first[i] = first_states(c->in[1 + i], c, all, p->size[0],
                                i == 0 && a->proj_size ? a->proj_size : a->hidden_size);
        if (!first[i]) return;
    }
    for (int layer = 0; layer < a->num_layers && data; layer++) {
        Tensor *y[2] = { NULL };
        for (int d = 0; d < directions; d++) {
            const int k = layer * directions + d;
            States s = { .count = states };
            for (int i = 0; i < states; i++) s.at[i] = tensor_select(first[i], 0, k);
            y[d] = run_direction(m, &r, TENSOR_LIST(params.item + k * each, each), d, p, data, &s);
            for (int i = 0; i < states; i++) last[i][k] = s.at[i];
            if (!y[d]) return;
        }
        data = directions == 2 ? tensor_cat(TENSORS(y[0], y[1]), -1) : y[0];
        if (layer < a->num_layers - 1) data = tensor_dropout(data, a->dropout, m->training);
    }
    c->out[0] = data;
    for (int i = 0; i < states && data && c->results > 1 + i; i++)
        c->out[1 + i] = all_states(last[i], all, c);
}

static void packed_call(const Module *m, NNCall *c)
{
    const PackedSequence x = { c->in[0], c->in[3], c->in[4], c->in[5] };
    Packed p;
    p.size = nn_batch_sizes(&x, &p.steps, "nn_rnn_forward_packed");
    if (!p.size) return;
    p.part = malloc((size_t)p.steps * sizeof(Tensor *));
    if (p.part) run_packed(m, c, &p);
    else tensor_fail(TENSOR_ENOMEM, "nn_rnn_forward_packed", "out of memory");
    free(p.part);
}

/* (x, h0) -> (y, h_n) */
static void rnn_call(Module *m, NNCall *c)
{
    static Tensor *(*const run[])(TensorRnnArgs) = { tensor_rnn_tanh_args, tensor_rnn_relu_args,
                                                     tensor_gru_args };
    Tensor *at[MOST_PARAMETERS];
    const Recurrent r = options(m);
    if (c->in[2]) tensor_fail(TENSOR_EVALUE, m->kind->function, "%s takes 2 inputs, not 3", m->type);
    else if (c->in[3]) packed_call(m, c);
    else
        c->out[0] = run[r.form]((TensorRnnArgs){ .input = c->in[0],
                                                 .h0 = c->in[1],
                                                 .params = parameters(m, at),
                                                 SEQUENCE_OPTIONS(m, r),
                                                 .h_n = c->results > 1 ? &c->out[1] : NULL });
}

/* (x, h0, c0) -> (y, h_n, c_n) */
static void lstm_call(Module *m, NNCall *c)
{
    Tensor *at[MOST_PARAMETERS];
    const Recurrent r = options(m);
    if (c->in[3]) packed_call(m, c);
    else
        c->out[0] = tensor_lstm_args((TensorLstmArgs){ .input = c->in[0],
                                                       .h0 = c->in[1],
                                                       .c0 = c->in[2],
                                                       .params = parameters(m, at),
                                                       SEQUENCE_OPTIONS(m, r),
                                                       .h_n = c->results > 1 ? &c->out[1] : NULL,
                                                       .c_n = c->results > 2 ? &c->out[2] : NULL });
}

/* (x, h) -> h' */
static void rnn_cell_call(Module *m, NNCall *c)
{
    static Tensor *(*const run[])(Tensor *, Tensor *, Tensor *, Tensor *, Tensor *,
                                  Tensor *) = { tensor_rnn_tanh_cell, tensor_rnn_relu_cell, tensor_gru_cell };
    c->out[0] = run[options(m).form](c->in[0], c->in[1], nn_param(m, 0), nn_param(m, 1), nn_param(m, 2),
                                     nn_param(m, 3));
}

/* (x, h, c) -> (h', c') */
static void lstm_cell_call(Module *m, NNCall *c)
{
    c->out[0] = tensor_lstm_cell(c->in[0], c->in[1], c->in[2], nn_param(m, 0), nn_param(m, 1), nn_param(m, 2),
                                 nn_param(m, 3), .c_next = c->results > 1 ? &c->out[1] : NULL);
}

/* m, if it runs this call, else NULL and recorded. */
static Tensor *run(Module *m, void (*call)(Module *, NNCall *), NNCallArgs args, const char *function)
{
    for (int i = 0; i < NN_VALUES; i++)
        if (args.out[i]) *args.out[i] = NULL;
    if (nn_null(m, function)) return NULL;
    if (m->call != call) return tensor_fail(TENSOR_EVALUE, function, "not of a module %s", m->type), NULL;
    args.module = m;
    return nn_call_args(args);
}

Tensor *nn_rnn_forward(Module *m, Tensor *x, Tensor *h0, Tensor **h_n)
{
    return run(m, rnn_call, (NNCallArgs){ .in = { x, h0 }, .out = { [1] = h_n } }, __func__);
}

Tensor *nn_lstm_forward(Module *m, Tensor *x, Tensor *h0, Tensor *c0, Tensor **h_n, Tensor **c_n)
{
    return run(m, lstm_call, (NNCallArgs){ .in = { x, h0, c0 }, .out = { [1] = h_n, c_n } }, __func__);
}

static PackedSequence run_on(Module *m, void (*call)(Module *, NNCall *), PackedSequence x, NNCallArgs args,
                             const char *function)
{
    for (int i = 0; i < NN_VALUES; i++)
        if (args.out[i]) *args.out[i] = NULL;
    if (!x.data || !x.batch_sizes) {
        if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the sequence has no data");
        return (PackedSequence){ NULL };
    }
    args.in[0] = x.data, args.in[3] = x.batch_sizes, args.in[4] = x.sorted_indices,
    args.in[5] = x.unsorted_indices;
    x.data = run(m, call, args, function);
    return x.data ? x : (PackedSequence){ NULL };
}

PackedSequence nn_rnn_forward_packed(Module *m, PackedSequence x, Tensor *h0, Tensor **h_n)
{
    return run_on(m, rnn_call, x, (NNCallArgs){ .in = { [1] = h0 }, .out = { [1] = h_n } }, __func__);
}

PackedSequence nn_lstm_forward_packed(Module *m, PackedSequence x, Tensor *h0, Tensor *c0, Tensor **h_n,
                                      Tensor **c_n)
{
    return run_on(m, lstm_call, x, (NNCallArgs){ .in = { [1] = h0, c0 }, .out = { [1] = h_n, c_n } },
                  __func__);
}

Tensor *nn_rnn_cell_forward(Module *m, Tensor *x, Tensor *hx)
{
    return run(m, rnn_cell_call, (NNCallArgs){ .in = { x, hx } }, __func__);
}

Tensor *nn_lstm_cell_forward(Module *m, Tensor *x, Tensor *hx, Tensor *cx, Tensor **c_next)
{
    return run(m, lstm_cell_call, (NNCallArgs){ .in = { x, hx, cx }, .out = { [1] = c_next } }, __func__);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Also accepts a packed sequence (packed_call). */
#define RECURRENT(name_, type, Args, set, table, rank_, form_, call_, inputs_)         \
    static const NNKind name_##_kind = { .name = (type),                               \
                                         .function = "nn_" #name_,                     \
                                         NN_OPTIONS(Args, nn_##set##_defaults, table), \
                                         .init = init,                                 \
                                         .call = (call_),                              \
                                         .inputs = (inputs_),                          \
                                         .rank = (rank_),                              \
                                         .form = (form_) };                            \
    NN_REGISTER(name_##_kind);                                                         \
    Module *nn_##name_##_args(Args args) { return nn_make(&name_##_kind, &args); }
RECURRENT(rnn, "RNN", NNRnnArgs, rnn, rnn_fields, SEQUENCE, TANH, rnn_call, 6)
RECURRENT(gru, "GRU", NNLstmArgs, lstm, lstm_fields, SEQUENCE, GRU, rnn_call, 6)
RECURRENT(lstm, "LSTM", NNLstmArgs, lstm, lstm_fields, SEQUENCE, LSTM, lstm_call, 6)
RECURRENT(rnn_cell, "RNNCell", NNRnnCellArgs, rnn_cell, cell_fields, CELL, TANH, rnn_cell_call, 2)
RECURRENT(gru_cell, "GRUCell", NNRnnCellArgs, rnn_cell, cell_fields, CELL, GRU, rnn_cell_call, 2)
RECURRENT(lstm_cell, "LSTMCell", NNRnnCellArgs, rnn_cell, cell_fields, CELL, LSTM, lstm_cell_call, 3)
