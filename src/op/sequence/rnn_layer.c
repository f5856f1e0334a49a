/* rnn_layer.c - one layer of a recurrent net in one direction: rnn, gru and lstm as fused ops.
 *
 *   a = x w_ih^T + b        for all steps at once: one product          [T N, in] -> [T, N, G H]
 *   each step               a_t += h w_hh^T, then the gates: rnn_step   (gru: beside a_t, for r)
 *
 *   da_t = rnn_step_grad(dh_t),  dh_{t-1} += da_t w_hh                  from the last step to the first
 *   dx = da w_ih,  dw_ih = da^T x,  dw_hh = da^T h_prev,  db = sum da   again one product each
 *
 * With projections h = w_hr o, where o are an lstm's H results of a step.  The gradient of w_hr is dh^T o.
 * Kept for backward: the gates (extra 0), and of an lstm c (1) and o (2, where projected), of a gru w_hn h +
 * b_hn (1). */
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"
#include "rnn.h"

typedef struct Layer {
    const char *name;
    const Place *place;
    int kind, dtype; /* dtype: of the computation */
    bool reverse;
    int64_t steps, batch, in, hidden, out, gates; /* out: of h, P; gates: G H */
} Layer;

static Tensor *input(const OpCall *c, int role) { return op_input(c, rnn_slot(c->op->variant, role)); }

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool is_matrix(const Tensor *x, int64_t rows, int64_t cols)
{
    return x->ndim == 2 && x->shape[0] == rows && x->shape[1] == cols;
}

static int check_weights(OpCall *c, int gates)
{
    const Tensor *x = input(c, X), *w_ih = input(c, W_IH), *w_hh = input(c, W_HH), *w_hr = input(c, W_HR);
    if (w_ih->ndim != 2 || w_ih->shape[0] % gates)
        return op_fail(c, TENSOR_ESHAPE, "w_ih %s: want [%d hidden, in]", S(w_ih), gates);
    if (x->ndim != 3 || x->shape[2] != w_ih->shape[1])
        return op_fail(c, TENSOR_ESHAPE, "input %s, w_ih %s: want [steps, batch, %lld]", S(x), S(w_ih),
                       (long long)w_ih->shape[1]);
    if (x->shape[0] == 0) return op_fail(c, TENSOR_ESHAPE, "input %s: a sequence of no steps", S(x));
    const int64_t rows = w_ih->shape[0], hidden = rows / gates;
    if (w_hh->ndim != 2 || w_hh->shape[0] != rows)
        return op_fail(c, TENSOR_ESHAPE, "w_hh %s, w_ih %s: want as many rows", S(w_hh), S(w_ih));
    const int64_t out = w_hh->shape[1];
    if (w_hr && !is_matrix(w_hr, out, hidden))
        return op_fail(c, TENSOR_ESHAPE, "w_hr %s, w_hh %s: want [%lld, %lld]", S(w_hr), S(w_hh),
                       (long long)out, (long long)hidden);
    if (!w_hr && out != hidden)
        return op_fail(c, TENSOR_ESHAPE, "w_hh %s: want %lld columns, the hidden size", S(w_hh),
                       (long long)hidden);
    return 0;
}

static int check_operands(OpCall *c, int gates)
{
    if (check_weights(c, gates)) return -1;
    const Tensor *x = input(c, X), *w_ih = input(c, W_IH), *w_hh = input(c, W_HH), *h0 = input(c, H0),
                 *c0 = input(c, C0);
    const int64_t batch = x->shape[1], rows = w_ih->shape[0], hidden = rows / gates, out = w_hh->shape[1];
    if (h0 && !is_matrix(h0, batch, out))
        return op_fail(c, TENSOR_ESHAPE, "h0 %s, input %s: want [%lld, %lld]", S(h0), S(x), (long long)batch,
                       (long long)out);
    if (c0 && !is_matrix(c0, batch, hidden))
        return op_fail(c, TENSOR_ESHAPE, "c0 %s, input %s: want [%lld, %lld]", S(c0), S(x), (long long)batch,
                       (long long)hidden);
    for (int role = B_IH; role <= B_HH; role++) {
        const Tensor *b = input(c, role);
        if (b && (b->ndim != 1 || b->shape[0] != rows))
            return op_fail(c, TENSOR_ESHAPE, "bias %s, w_ih %s: want [%lld]", S(b), S(w_ih), (long long)rows);
    }
    return 0;
}

static int shape(OpCall *c)
{
    const int kind = c->op->variant;
    if (call_one_dtype(c) || check_operands(c, rnn_gates(kind))) return -1;
    const Tensor *x = input(c, X), *w_hh = input(c, W_HH);
    const int64_t batch = x->shape[1];
    if (op_set_output(c, 0, SHAPE(x->shape[0], batch, w_hh->shape[1]), (TensorDtype)x->dtype)) return -1;
    return kind == RNN_LSTM ? op_set_output(c, 1, SHAPE(batch, w_hh->shape[0] / 4), (TensorDtype)x->dtype)
                            : 0;
}

static Layer layer_of(const OpCall *c, const Place *place, int dtype)
{
    const int kind = c->op->variant;
    const TensorShape x = op_input_shape(c, 0), w_hh = op_input_shape(c, rnn_slot(kind, W_HH));
    return (Layer){ .name = c->name,
                    .place = place,
                    .kind = kind,
                    .dtype = rnn_dtype(place, dtype),
                    .reverse = ((const RnnLayerParams *)op_params(c))->reverse,
                    .steps = x.dim[0],
                    .batch = x.dim[1],
                    .in = x.dim[2],
                    .hidden = w_hh.dim[0] / rnn_gates(kind),
                    .out = w_hh.dim[1],
                    .gates = w_hh.dim[0] };
}

/* ---- what both directions share -------------------------------------------------------------- */

static Tensor *room(const Layer *l, TensorShape shape) { return own(new_tensor(shape, l->dtype, l->place)); }
static Tensor *steps_of(const Layer *l, int64_t width) { return room(l, SHAPE(l->steps, l->batch, width)); }

static Tensor *zeros(const Layer *l, int64_t width)
{
    Tensor *z = room(l, SHAPE(l->batch, width));
    return z && !raw_fill(z, 0) ? z : NULL;
}

/* x [steps, batch, width] at a step. */
static char *at(const Layer *l, const Tensor *x, int64_t step)
{
    return (char *)x->data + (size_t)(step * l->batch * x->shape[2]) * dtype_size(l->dtype);
}

/* The place in the sequence of the s-th step that is computed. */
static int64_t place_of(const Layer *l, int64_t s) { return l->reverse ? l->steps - 1 - s : s; }

/* c [m, n] = a b + beta c + bias, all dense; a_t, b_t: given transposed. */
typedef struct Dense {
    const void *data;
    bool transposed;
} Dense;

static int product(const Layer *l, int64_t m, int64_t n, int64_t k, Dense a, Dense b, void *c, double beta,
                   const void *bias)
{
    GemmArgs args = { .dtype = l->dtype,
                      .to = l->dtype,
                      .batch = 1,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = a.data,
                      .b = b.data,
                      .c = c,
                      .c_row = n,
                      .c_col = 1,
                      .alpha = 1,
                      .beta = beta,
                      .bias = bias };
    args.a_row = a.transposed ? 1 : k, args.a_col = a.transposed ? m : 1;
    args.b_row = b.transposed ? 1 : n, args.b_col = b.transposed ? k : 1;
    return RUN_KERNEL(l->name, l->place, gemm, &args);
}

static Dense plain(const void *data) { return (Dense){ data, false }; }
static Dense turned(const void *data) { return (Dense){ data, true }; }

static void *data_of(const Tensor *x) { return x ? x->data : NULL; }

/* A matrix [k, n] that each step multiplies its few rows with.  On the host its columns lie in panels of
 * PANEL bytes, k rows one after another, and what is left behind them: a tile of the product then reads few
 * pages and cache sets (32 x 1024 x 256: 162 us, 210 from rows of 4 KiB). */
typedef struct Recurrent {
    int64_t k, n, width, panels;
    const Tensor *data;
} Recurrent;

enum { PANEL = 128 };

/* w as [k, n], by its steps. */
static int make_recurrent(const Layer *l, const Tensor *w, int64_t k, int64_t n, int64_t down, int64_t across,
                          Recurrent *r)
{
    const int64_t width = on_host(l->place) ? PANEL / (int64_t)dtype_size(l->dtype) : n;
    const int64_t panels = on_host(l->place) ? n / width : 0, whole = panels * width, rest = n - whole;
    const bool as_it_is = panels == 0 && across == 1;
    *r = (Recurrent){ k, n, width, panels, as_it_is ? w : room(l, SHAPE(k * n)) };
    const Tensor *data = r->data;
    if (!data || as_it_is) return data ? 0 : -1;
    Tensor *to =
        own(new_view(data, 3, (int64_t[]){ panels, k, width }, (int64_t[]){ k * width, width, 1 }, 0));
    Tensor *from =
        own(new_view(w, 3, (int64_t[]){ panels, k, width }, (int64_t[]){ width * across, down, across }, 0));
    Tensor *to_rest = own(new_view(data, 2, (int64_t[]){ k, rest }, (int64_t[]){ rest, 1 }, k * whole));
    Tensor *from_rest =
        own(new_view(w, 2, (int64_t[]){ k, rest }, (int64_t[]){ down, across }, whole * across));
    return from && to && from_rest && to_rest && !raw_copy(to, from) && !raw_copy(to_rest, from_rest) ? 0
                                                                                                      : -1;
}

/* c [batch, n] = a [batch, k] w + beta c */
static int recurrent_product(const Layer *l, const void *a, const Recurrent *w, void *c, double beta)
{
    const int64_t whole = w->panels * w->width, size = (int64_t)dtype_size(l->dtype);
    GemmArgs args = { .dtype = l->dtype,
                      .to = l->dtype,
                      .batch = w->panels,
                      .m = l->batch,
                      .n = w->width,
                      .k = w->k,
                      .a = a,
                      .a_row = w->k,
                      .a_col = 1,
                      .b = w->data->data,
                      .b_batch = w->k * w->width,
                      .b_row = w->width,
                      .b_col = 1,
                      .c = c,
                      .c_batch = w->width,
                      .c_row = w->n,
                      .c_col = 1,
                      .alpha = 1,
                      .beta = beta };
    if (w->panels && RUN_KERNEL(l->name, l->place, gemm, &args)) return -1;
    if (whole == w->n) return 0;
    args.batch = 1, args.n = args.b_row = w->n - whole;
    args.b = (const char *)args.b + w->k * whole * size, args.c = (char *)c + whole * size;
    return RUN_KERNEL(l->name, l->place, gemm, &args);
}

/* The operands, dense, in the dtype of the computation; states that are absent as zeros. */
static int load(const Layer *l, Tensor *t[RNN_ROLES])
{
    for (int role = 0; role < RNN_ROLES; role++)
        if (t[role] && !(t[role] = own(raw_cast(t[role], l->dtype)))) return -1;
    if (!t[H0] && !(t[H0] = zeros(l, l->out))) return -1;
    return l->kind != RNN_LSTM || t[C0] || (t[C0] = zeros(l, l->hidden)) ? 0 : -1;
}

/* ---- forward --------------------------------------------------------------------------------- */

typedef struct Made {
    Tensor *y, *gates, *recurrent, *n_part, *c, *o;
} Made; /* each [steps, batch, ...], those of its kind */

/* The bias of the product over all steps: both where they are only added; a gru's second one belongs to the
 * other product. */
static int outer_bias(const Layer *l, Tensor *const t[RNN_ROLES], Tensor **bias)
{
    *bias = t[B_IH] || l->kind == RNN_GRU ? t[B_IH] : t[B_HH];
    if (!t[B_IH] || !t[B_HH] || l->kind == RNN_GRU) return 0;
    *bias = room(l, SHAPE(l->gates));
    return *bias && !raw_copy(*bias, t[B_IH]) && !raw_add_into(*bias, t[B_HH]) ? 0 : -1;
}

static int make_room(const Layer *l, bool projected, Tensor *y, Made *m)
{
    const bool simple = l->kind == RNN_TANH || l->kind == RNN_RELU;
    m->y = y->dtype == l->dtype ? y : steps_of(l, l->out);
    m->gates = simple ? m->y : steps_of(l, l->gates);
    if (!m->y || !m->gates) return -1;
    if (l->kind == RNN_GRU)
        return (m->recurrent = room(l, SHAPE(1, l->batch, l->gates))) && (m->n_part = steps_of(l, l->hidden))
                   ? 0
                   : -1;
    if (l->kind == RNN_LSTM && !(m->c = steps_of(l, l->hidden))) return -1;
    return !projected || (m->o = steps_of(l, l->hidden)) ? 0 : -1;
}

/* One step: h_prev to row `step` of y.  w: w_hh^T. */
static int run_step(const Layer *l, Tensor *const t[RNN_ROLES], const Recurrent *w, const Made *m,
                    int64_t step, int64_t before)
{
    const bool first = before < 0, gru = l->kind == RNN_GRU;
    const void *h_prev = first ? t[H0]->data : at(l, m->y, before);
    void *sums = gru ? m->recurrent->data : at(l, m->gates, step);
    if (gru && t[B_HH] && raw_copy(m->recurrent, t[B_HH])) return -1;
    if (recurrent_product(l, h_prev, w, sums, !gru || t[B_HH])) return -1;
    RnnArgs args = { .kind = l->kind,
                     .dtype = l->dtype,
                     .rows = l->batch,
                     .hidden = l->hidden,
                     .gates = at(l, m->gates, step),
                     .recurrent = data_of(m->recurrent),
                     .h_prev = h_prev,
                     .h = at(l, m->o ? m->o : m->y, step) };
    if (m->n_part) args.n_part = at(l, m->n_part, step);
    if (m->c) args.c = at(l, m->c, step), args.c_prev = first ? t[C0]->data : at(l, m->c, before);
    if (RUN_KERNEL(l->name, l->place, rnn_step, &args)) return -1;
    return m->o ? product(l, l->batch, l->out, l->hidden, plain(args.h), turned(t[W_HR]->data),
                          at(l, m->y, step), 0, NULL)
                : 0;
}

static int run(const Layer *l, Tensor *t[RNN_ROLES], const Made *m)
{
    Tensor *bias;
    if (outer_bias(l, t, &bias)) return -1;
    if (product(l, l->steps * l->batch, l->gates, l->in, plain(t[X]->data), turned(t[W_IH]->data),
                m->gates->data, 0, data_of(bias)))
        return -1;
    Recurrent w;
    if (make_recurrent(l, t[W_HH], l->out, l->gates, 1, l->out, &w)) return -1;
    for (int64_t s = 0; s < l->steps; s++)
        if (run_step(l, t, &w, m, place_of(l, s), s ? place_of(l, s - 1) : -1)) return -1;
    return 0;
}

/* The last c, as a result of its own. */
static int copy_last(const Layer *l, const Made *m, Tensor *c_n)
{
    Tensor *last = own(
        new_view(m->c, 2, m->c->shape + 1, m->c->stride + 1, place_of(l, l->steps - 1) * m->c->stride[0]));
    return last ? raw_copy(c_n, last) : -1;
}

static int forward(OpCall *c)
{
    Tensor *y = op_output(c, 0), *t[RNN_ROLES];
    const Layer l = layer_of(c, y->place, y->dtype);
    Made m = { 0 };
    for (int role = 0; role < RNN_ROLES; role++) t[role] = input(c, role);
    const bool projected = t[W_HR] != NULL;
    if (load(&l, t) || make_room(&l, projected, y, &m) || run(&l, t, &m)) return -1;
    if (m.y != y && raw_copy(y, m.y)) return -1;
    if (l.kind == RNN_LSTM && copy_last(&l, &m, op_output(c, 1))) return -1;
    Tensor *const extra[] = { m.gates, m.n_part ? m.n_part : m.c, m.o };
    for (int i = 0; i < 3 && extra[i]; i++)
        if (op_save(c, extra[i])) return -1;
    return 0;
}

/* ---- backward -------------------------------------------------------------------------------- */

/* dh [steps, batch, out]: dy, and what comes back from the step after it.  da and drecurrent: of the sums of
 * the gates; they differ for a gru. */
typedef struct Grads {
    Tensor *dh, *dh0, *dc, *da, *drecurrent, *projected;
} Grads;

static int begin(const Layer *l, OpCall *c, bool projected, Grads *g)
{
    g->dh = steps_of(l, l->out), g->dh0 = zeros(l, l->out), g->da = steps_of(l, l->gates);
    g->drecurrent = l->kind == RNN_GRU ? steps_of(l, l->gates) : g->da;
    if (!g->dh || !g->dh0 || !g->da || !g->drecurrent) return -1;
    if (projected && !(g->projected = room(l, SHAPE(l->batch, l->hidden)))) return -1;
    if (l->kind == RNN_LSTM && !(g->dc = zeros(l, l->hidden))) return -1;
    if (op_has_grad(c, 0) ? raw_copy(g->dh, op_grad(c, 0)) : raw_fill(g->dh, 0)) return -1;
    return l->kind == RNN_LSTM && op_has_grad(c, 1) ? raw_copy(g->dc, op_grad(c, 1)) : 0;
}

static int step_back(const Layer *l, Tensor *const t[RNN_ROLES], const Recurrent *w, const Made *m,
                     const Grads *g, int64_t step, int64_t before)
{
    const bool first = before < 0;
    void *to = first ? g->dh0->data : at(l, g->dh, before);
    RnnArgs args = { .kind = l->kind,
                     .dtype = l->dtype,
                     .rows = l->batch,
                     .hidden = l->hidden,
                     .gates = at(l, m->gates, step),
                     .h_prev = first ? t[H0]->data : at(l, m->y, before),
                     .dh = at(l, g->dh, step),
                     .dh_prev = to,
                     .dgates = at(l, g->da, step),
                     .drecurrent = at(l, g->drecurrent, step),
                     .dc = data_of(g->dc) };
    if (m->n_part) args.n_part = at(l, m->n_part, step);
    if (m->c) args.c = at(l, m->c, step), args.c_prev = first ? t[C0]->data : at(l, m->c, before);
    if (g->projected) {
        if (product(l, l->batch, l->hidden, l->out, plain(args.dh), plain(t[W_HR]->data), g->projected->data,
                    0, NULL))
            return -1;
        args.dh = g->projected->data;
    }
    if (RUN_KERNEL(l->name, l->place, rnn_step_grad, &args)) return -1;
    return recurrent_product(l, args.drecurrent, w, to, 1);
}

/* Of w_hh: all steps but the first one read h from y, the first one h0. */
static int recurrent_gradient(const Layer *l, Tensor *const t[RNN_ROLES], const Made *m, const Grads *g,
                              void *dw)
{
    const int64_t rest = l->steps - 1, first = place_of(l, 0);
    const Tensor *d = g->drecurrent;
    if (product(l, l->gates, l->out, rest * l->batch, turned(at(l, d, l->reverse ? 0 : 1)),
                plain(at(l, m->y, l->reverse ? 1 : 0)), dw, 0, NULL))
        return -1;
    return product(l, l->gates, l->out, l->batch, turned(at(l, d, first)), plain(t[H0]->data), dw, 1, NULL);
}

static Tensor *bias_gradient(const Tensor *d)
{
    const bool reduced[3] = { true, true, false };
    return own(raw_reduce(d, REDUCE_SUM, reduced, false, d->dtype, 0));
}

static Tensor *gradient_of(const Layer *l, OpCall *c, int role, Tensor *const t[RNN_ROLES], const Made *m,
                           const Grads *g)
{
    const int64_t rows = l->steps * l->batch;
    if (role == H0) return g->dh0;
    if (role == C0) return g->dc;
    if (role == B_IH || role == B_HH) return bias_gradient(role == B_IH ? g->da : g->drecurrent);
    Tensor *d = room(l, op_input_shape(c, rnn_slot(l->kind, role)));
    int status = -1;
    if (!d) return NULL;
    if (role == X)
        status =
            product(l, rows, l->in, l->gates, plain(g->da->data), plain(t[W_IH]->data), d->data, 0, NULL);
    if (role == W_IH)
        status = product(l, l->gates, l->in, rows, turned(g->da->data), plain(t[X]->data), d->data, 0, NULL);
    if (role == W_HH) status = recurrent_gradient(l, t, m, g, d->data);
    if (role == W_HR)
        status =
            product(l, l->out, l->hidden, rows, turned(g->dh->data), plain(m->o->data), d->data, 0, NULL);
    return status ? NULL : d;
}

/* What forward had and made. */
static int recall(const Layer *l, OpCall *c, Tensor *t[RNN_ROLES], Made *m)
{
    for (int role = 0; role < RNN_ROLES; role++) {
        const int slot = rnn_slot(l->kind, role);
        t[role] = NULL;
        if (slot >= 0 && op_input_shape(c, slot).ndim && !(t[role] = op_saved(c, slot))) return -1;
    }
    const bool projected = t[W_HR] != NULL, simple = l->kind == RNN_TANH || l->kind == RNN_RELU;
    if (load(l, t) || !(m->y = op_saved_output(c, 0)) || !(m->y = own(raw_cast(m->y, l->dtype)))) return -1;
    if (!(m->gates = op_saved_extra(c, 0))) return -1;
    if (l->kind == RNN_GRU) m->n_part = op_saved_extra(c, 1);
    if (l->kind == RNN_LSTM) m->c = op_saved_extra(c, 1);
    if (projected) m->o = op_saved_extra(c, 2);
    return (simple || m->n_part || m->c) && (!projected || m->o) ? 0 : -1;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (op_recording(c)) return rnn_recorded(c, dx);
    const Layer l = layer_of(c, dy->place, dy->dtype);
    Tensor *t[RNN_ROLES];
    Made m = { 0 };
    Grads g = { 0 };
    Recurrent w;
    if (recall(&l, c, t, &m) || begin(&l, c, m.o != NULL, &g)) return -1;
    if (make_recurrent(&l, t[W_HH], l.gates, l.out, l.out, 1, &w)) return -1;
    for (int64_t s = l.steps - 1; s >= 0; s--)
        if (step_back(&l, t, &w, &m, &g, place_of(&l, s), s ? place_of(&l, s - 1) : -1)) return -1;
    for (int role = 0; role < RNN_ROLES; role++) {
        const int slot = rnn_slot(l.kind, role);
        if (!op_wants(c, slot)) continue;
        if (role == B_HH && l.kind != RNN_GRU) dx[slot] = dx[slot - 1]; /* that of b_ih, if it was wanted */
        if (!dx[slot] && !(dx[slot] = gradient_of(&l, c, role, t, &m, &g))) return -1;
    }
    return 0;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static const OpField fields[] = { OP_OPTION(RnnLayerParams, reverse), { 0 } };

#define LAYER                                                                                   \
    .shape = shape, .backward = backward, .forward = forward, .params = sizeof(RnnLayerParams), \
    .fields = fields, .flags = OP_ANY_DEVICE | OP_OF_PRODUCTS | OP_FLOAT_INPUTS
#define SIMPLE_LAYER                                                                                      \
    .arity = 6, .optional = KEEP_INPUT(1) | KEEP_INPUT(4) | KEEP_INPUT(5), .keep = 0x3f | KEEP_OUTPUT(0), \
    LAYER
#define ERRORS(w)                                                                                        \
    "0x2x3,-," w "x3," w "x2,-,- ! ESHAPE; 3x3,-," w "x3," w "x2,-,- ! ESHAPE; 1x2x4,-," w "x3," w       \
    "x2,-,- ! ESHAPE; "                                                                                  \
    "1x2x3,-," w "," w "x2,-,- ! ESHAPE; 1x2x3,-," w "x3,5x2,-,- ! ESHAPE; 1x2x3,-," w "x3," w           \
    "x1,-,- ! ESHAPE; "                                                                                  \
    "1x2x3,3x2," w "x3," w "x2,-,- ! ESHAPE; 1x2x3,2x3," w "x3," w "x2,-,- ! ESHAPE; 1x2x3,-," w "x3," w \
    "x2,5,- ! ESHAPE; "                                                                                  \
    "1x2x3,-," w "x3," w "x2,-," w "x1 ! ESHAPE; 1x2x3@i64,-," w "x3," w "x2,-,- ! EDTYPE"
#define SIMPLE_SAMPLES                                                                                     \
    "3x2x3,2x2,2x3,2x2,2,2; 3x2x3,2x2,2x3,2x2,2,2 {reverse=1}; 2x2x1,-,2x1,2x2,-,-; 1x2x3,-,2x3,2x2,2,-; " \
    "2x1x2,1x3,3x2,3x3,-,3; "                                                                              \
    "2x1x1,1x1,1x1,1x1,-,- {reverse=1}; 2x0x3,0x2,2x3,2x2,2,2; 2x3x0,3x2,2x0,2x2,2,2; "                    \
    "1x17x2,-,18x2,18x18,-,-"
#define GRADIENT                                                                                         \
    "da_t of the gates' sums and dh_t from dh_t+1, step by step; dx = da w_ih, dw_ih = da^T x, dw_hh = " \
    "da^T h_prev, db = sum da"

static const TensorOp op_rnn_tanh_layer = {
    .name = "rnn_tanh_layer",
    .autocast = AUTOCAST_LOWER,
    .summary = "one layer and direction: h_t = tanh(w_ih x_t + b_ih + w_hh h_t-1 + b_hh)",
    .gradient = GRADIENT,
    .variant = RNN_TANH,
    SIMPLE_LAYER,
    .samples = SIMPLE_SAMPLES,
    .errors = ERRORS("2") "; 1x2x3,-,3x3,2x2,-,- ! ESHAPE",
    .torch = "rnn_tanh",
};
static const TensorOp op_rnn_relu_layer = {
    .name = "rnn_relu_layer",
    .autocast = AUTOCAST_LOWER,
    .summary = "one layer and direction: h_t = relu(w_ih x_t + b_ih + w_hh h_t-1 + b_hh)",
    .gradient = GRADIENT,
    .variant = RNN_RELU,
    SIMPLE_LAYER,
    .samples = SIMPLE_SAMPLES,
    .errors = ERRORS("2"),
    .torch = "rnn_relu",
};
static const TensorOp op_gru_layer = {
    .name = "gru_layer",
    .autocast = AUTOCAST_LOWER,
    .summary = "one layer and direction of a gru; gates r, z, n below each other",
    .gradient = GRADIENT,
    .variant = RNN_GRU,
    SIMPLE_LAYER,
    .errors = ERRORS("6") "; 1x2x3,-,7x3,7x2,-,- ! ESHAPE",
    .torch = "gru",
    .samples = "3x2x3,2x2,6x3,6x2,6,6; 3x2x3,2x2,6x3,6x2,6,6 {reverse=1}; 2x2x1,-,6x1,6x2,-,-; "
               "1x2x3,-,6x3,6x2,6,-; 2x1x2,1x1,3x2,3x1,-,3; "
               "2x1x1,-,3x1,3x1,-,-; 2x0x3,0x2,6x3,6x2,6,6; 2x3x0,3x2,6x0,6x2,6,6; 1x3x2,-,54x2,54x18,-,-",
};
static const TensorOp op_lstm_layer = {
    .name = "lstm_layer",
    .autocast = AUTOCAST_LOWER,
    .summary = "one layer and direction of an lstm, and its last c; gates i, f, g, o below each other",
    .gradient = GRADIENT,
    .arity = 8,
    .outputs = 2,
    .optional = KEEP_INPUT(H0) | KEEP_INPUT(C0) | KEEP_INPUT(B_IH) | KEEP_INPUT(B_HH) | KEEP_INPUT(W_HR),
    .keep = 0xff | KEEP_OUTPUT(0),
    .variant = RNN_LSTM,
    LAYER,
    .torch = "lstm",
    .samples =
        "3x2x3,2x2,2x2,8x3,8x2,8,8,-; 3x2x3,2x2,2x2,8x3,8x2,8,8,- {reverse=1}; 2x2x1,-,2x2,8x1,8x2,-,-,-; "
        "1x2x3,2x2,-,8x3,8x2,8,-,-; "
        "2x1x1,-,-,4x1,4x1,-,-,-; 2x2x2,2x1,2x3,12x2,12x1,-,12,1x3; 2x2x2,-,2x2,8x2,8x1,8,8,1x2 {reverse=1}; "
        "2x0x3,0x2,0x2,8x3,8x2,8,8,-; 2x3x0,3x2,3x2,8x0,8x2,8,8,-; 1x3x2,-,-,72x2,72x18,-,-,-",
    .errors = "0x2x3,-,-,8x3,8x2,-,-,- ! ESHAPE; 1x2x3,-,2x1,8x3,8x2,-,-,- ! ESHAPE; "
              "1x2x3,2x1,-,8x3,8x2,-,-,- ! ESHAPE; 1x2x3,-,-,8x3,8x1,-,-,- ! ESHAPE; "
              "1x2x3,-,-,8x3,8x1,-,-,2x1 ! ESHAPE; 1x2x3,-,-,9x3,9x2,-,-,- ! ESHAPE; "
              "1x2x3,-,-,8x3,8x2,8x1,-,- ! ESHAPE; 1x2x3@i64,-,-,8x3,8x2,-,-,- ! EDTYPE",
};
REGISTER_OPS(&op_rnn_tanh_layer, &op_rnn_relu_layer, &op_gru_layer, &op_lstm_layer);

int rnn_layer(int kind, Tensor *const operand[RNN_ROLES], bool reverse, const void *site, Tensor **y,
              Tensor **c_n)
{
    static const TensorOp *const op[] = { &op_rnn_tanh_layer, &op_rnn_relu_layer, &op_gru_layer,
                                          &op_lstm_layer };
    Tensor *in[RNN_ROLES], *out[2] = { NULL, NULL };
    for (int role = 0; role < RNN_ROLES; role++)
        if (rnn_slot(kind, role) >= 0) in[rnn_slot(kind, role)] = operand[role];
    const int made =
        op_apply(op[kind], in, rnn_slots(kind), &(RnnLayerParams){ .reverse = reverse }, site, out, 2);
    *y = out[0], *c_n = out[1];
    return made < 0 ? -1 : 0;
}
