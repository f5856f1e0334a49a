/* rnn_recorded.c - the gradient of a recurrent layer as ops, for sweeps that are recorded themselves.
 *
 * Forward is run again by ops, so that every value of a step hangs on the inputs; then, from the last step to
 * the first, s' = s (1 - s):
 *
 *   rnn     da = dh (1 - h^2), or where h > 0 dh
 *   gru     dz = dh (h_prev - n) z',  dn = dh (1 - z) (1 - n^2),  dr = dn q r'  with q = w_hn h_prev + b_hn
 *           da = [dr dz dn],  beside w_hh [dr dz dn r],  dh_prev = dh z + ...
 *   lstm    e = dc + dh o (1 - tanh^2 c):  da = [e g i'  e c_prev f'  e i (1 - g^2)  dh tanh(c) o']
 *           dc_prev = e f,  dh_prev = da w_hh + ...;  projected: dh w_hr in the place of dh */
#include "rnn.h"

typedef struct Step {
    Tensor *h_prev, *c_prev, *h, *made; /* made: h before its projection */
    Tensor *gate[4], *q, *tanh_c;
    Tensor *dh, *da, *drecurrent;
} Step;

typedef struct Run {
    int kind;
    bool reverse;
    int64_t steps;
    Tensor *t[RNN_ROLES];
    Step *step; /* in the order of computation */
} Run;

/* ---- forward, again -------------------------------------------------------------------------- */

static void split_gates(const Run *r, Tensor *a, Tensor *part[4])
{
    const int n = rnn_gates(r->kind);
    if (!a || tensor_chunk(a, n, 1, part, n) != n) /* of hidden size 0 there are fewer */
        for (int i = 0; i < n; i++)
            part[i] = a ? tensor_narrow(a, 1, i * a->shape[1] / n, a->shape[1] / n) : NULL;
}

static Tensor *gru_step(const Run *r, Step *s, Tensor *a, Tensor *recurrent)
{
    Tensor *x[4], *h[4];
    split_gates(r, a, x), split_gates(r, recurrent, h);
    for (int i = 0; i < 2; i++) s->gate[i] = tensor_sigmoid(tensor_add(x[i], h[i]));
    s->q = h[2];
    s->gate[2] = tensor_tanh(tensor_add(x[2], tensor_mul(s->gate[0], s->q)));
    return tensor_add(s->gate[2], tensor_mul(s->gate[1], tensor_sub(s->h_prev, s->gate[2])));
}

static Tensor *lstm_step(const Run *r, Step *s, Tensor *a, Tensor **c)
{
    Tensor *x[4];
    split_gates(r, a, x);
    for (int i = 0; i < 4; i++) s->gate[i] = i == 2 ? tensor_tanh(x[i]) : tensor_sigmoid(x[i]);
    s->c_prev = *c;
    *c = tensor_add(tensor_mul(s->gate[1], *c), tensor_mul(s->gate[0], s->gate[2]));
    s->tanh_c = tensor_tanh(*c);
    return tensor_mul(s->gate[3], s->tanh_c);
}

static int64_t place_of(const Run *r, int64_t s) { return r->reverse ? r->steps - 1 - s : s; }

static int run_steps(Run *r)
{
    Tensor *const *t = r->t, *h = t[H0], *c = t[C0];
    Tensor *sums = tensor_linear(t[X], t[W_IH], t[B_IH]);
    for (int64_t i = 0; i < r->steps; i++) {
        Step *s = &r->step[i];
        s->h_prev = h;
        Tensor *a = tensor_select(sums, 0, place_of(r, i)), *recurrent = tensor_linear(h, t[W_HH], t[B_HH]);
        if (r->kind == RNN_TANH) s->made = tensor_tanh(tensor_add(a, recurrent));
        else if (r->kind == RNN_RELU) s->made = tensor_relu(tensor_add(a, recurrent));
        else if (r->kind == RNN_GRU) s->made = gru_step(r, s, a, recurrent);
        else s->made = lstm_step(r, s, tensor_add(a, recurrent), &c);
        s->h = h = t[W_HR] ? tensor_linear(s->made, t[W_HR], NULL) : s->made;
        if (!h) return -1;
    }
    return 0;
}

/* ---- backward -------------------------------------------------------------------------------- */

static Tensor *one_minus(Tensor *x) { return tensor_add_scalar(tensor_neg(x), 1); }
static Tensor *slope(Tensor *s) { return tensor_mul(s, one_minus(s)); } /* of a sigmoid s */
static Tensor *tanh_slope(Tensor *t) { return one_minus(tensor_square(t)); }
static Tensor *mul3(Tensor *a, Tensor *b, Tensor *c) { return tensor_mul(tensor_mul(a, b), c); }

/* Each gives da, drecurrent, and what reaches the states before by other ways than w_hh (NULL: nothing). */
static Tensor *gru_back(Step *s, Tensor *dh)
{
    Tensor *r = s->gate[0], *z = s->gate[1], *n = s->gate[2];
    Tensor *dz = mul3(dh, tensor_sub(s->h_prev, n), slope(z)), *dn = mul3(dh, one_minus(z), tanh_slope(n));
    Tensor *dr = mul3(dn, s->q, slope(r));
    s->da = tensor_cat(TENSORS(dr, dz, dn), 1);
    s->drecurrent = tensor_cat(TENSORS(dr, dz, tensor_mul(dn, r)), 1);
    return tensor_mul(dh, z);
}

static void lstm_back(Step *s, Tensor *dh, Tensor **dc)
{
    Tensor *i = s->gate[0], *f = s->gate[1], *g = s->gate[2], *o = s->gate[3];
    Tensor *e = tensor_add(*dc, mul3(dh, o, tanh_slope(s->tanh_c)));
    s->da = tensor_cat(TENSORS(mul3(e, g, slope(i)), mul3(e, s->c_prev, slope(f)), mul3(e, i, tanh_slope(g)),
                               mul3(dh, s->tanh_c, slope(o))),
                       1);
    s->drecurrent = s->da;
    *dc = tensor_mul(e, f);
}

static Tensor *step_back(const Run *r, Step *s, Tensor **dc)
{
    Tensor *dh = r->t[W_HR] ? tensor_matmul(s->dh, r->t[W_HR]) : s->dh, *direct = NULL;
    if (r->kind == RNN_GRU) direct = gru_back(s, dh);
    else if (r->kind == RNN_LSTM) lstm_back(s, dh, dc);
    else if (r->kind == RNN_TANH) s->da = s->drecurrent = tensor_mul(dh, tanh_slope(s->made));
    else s->da = s->drecurrent = tensor_where(tensor_le_scalar(s->made, 0), tensor_zeros_like(dh), dh);
    Tensor *by_weight = tensor_matmul(s->drecurrent, r->t[W_HH]);
    return r->kind == RNN_GRU ? tensor_add(by_weight, direct) : by_weight;
}

/* The same value of all steps, in the order of the sequence, as rows. */
static Tensor *rows(const Run *r, size_t offset)
{
    Tensor **list = tg_alloc((size_t)r->steps * sizeof *list);
    if (!list) return fail_memory("rnn"), NULL;
    for (int64_t i = 0; i < r->steps; i++)
        list[place_of(r, i)] = *(Tensor **)(void *)((char *)&r->step[i] + offset);
    Tensor *all = tensor_cat(TENSOR_LIST(list, (int)r->steps), 0);
    tg_free(list, (size_t)r->steps * sizeof *list);
    return all;
}

static Tensor *transposed(Tensor *x) { return tensor_transpose(x, 0, 1); }

static Tensor *gradient_of(const Run *r, int role, Tensor *da, Tensor *drecurrent)
{
    Tensor *x = r->t[X];
    if (role == X) return tensor_reshape(tensor_matmul(da, r->t[W_IH]), shape_of(x));
    if (role == W_IH)
        return tensor_matmul(transposed(da),
                             tensor_reshape(x, SHAPE(x->shape[0] * x->shape[1], x->shape[2])));
    if (role == W_HH) return tensor_matmul(transposed(drecurrent), rows(r, offsetof(Step, h_prev)));
    if (role == W_HR)
        return tensor_matmul(transposed(rows(r, offsetof(Step, dh))), rows(r, offsetof(Step, made)));
    return tensor_sum(role == B_IH ? da : drecurrent, 0);
}

static int run_back(OpCall *c, Run *r, Tensor **dx)
{
    Tensor *dy = tensor_to(op_grad(c, 0), (TensorDtype)r->t[X]->dtype), *dh = NULL, *dc = NULL;
    if (r->kind == RNN_LSTM && !(dc = tensor_to(op_grad(c, 1), (TensorDtype)r->t[X]->dtype))) return -1;
    for (int64_t i = r->steps - 1; i >= 0; i--) {
        Step *s = &r->step[i];
        Tensor *own_dh = tensor_select(dy, 0, place_of(r, i));
        s->dh = dh ? tensor_add(own_dh, dh) : own_dh;
        dh = step_back(r, s, &dc);
        if (!dh) return -1;
    }
    Tensor *da = rows(r, offsetof(Step, da)),
           *drecurrent = r->kind == RNN_GRU ? rows(r, offsetof(Step, drecurrent)) : da;
    for (int role = 0; role < RNN_ROLES; role++) {
        const int slot = rnn_slot(r->kind, role);
        if (!op_wants(c, slot)) continue;
        dx[slot] = role == H0 ? dh : role == C0 ? dc : gradient_of(r, role, da, drecurrent);
        if (!dx[slot]) return -1;
    }
    return 0;
}

/* The operands on the graph, halves as f32; states that are absent as zeros. */
static int recall(OpCall *c, Run *r)
{
    for (int role = 0; role < RNN_ROLES; role++) {
        const int slot = rnn_slot(r->kind, role);
        if (slot < 0 || op_input_shape(c, slot).ndim == 0) continue;
        Tensor *x = op_saved(c, slot);
        r->t[role] = x ? tensor_to(x, x->dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32) : NULL;
        if (!r->t[role]) return -1;
    }
    const Tensor *x = r->t[X], *w_hh = r->t[W_HH];
    for (int role = H0; role <= C0; role++) {
        const int64_t width = role == H0 ? w_hh->shape[1] : w_hh->shape[0] / rnn_gates(r->kind);
        if (r->t[role] || rnn_slot(r->kind, role) < 0) continue;
        r->t[role] = own(new_tensor(SHAPE(x->shape[1], width), x->dtype, x->place));
        if (!r->t[role] || raw_fill(r->t[role], 0)) return -1;
    }
    return 0;
}

int rnn_recorded(OpCall *c, Tensor **dx)
{
    const RnnLayerParams *p = op_params(c);
    Run r = { .kind = c->op->variant, .reverse = p->reverse, .steps = op_input_shape(c, 0).dim[0] };
    if (recall(c, &r)) return -1;
    const size_t bytes = (size_t)r.steps * sizeof *r.step;
    if (!(r.step = tg_calloc(bytes))) return fail_memory(c->name);
    const int status = run_steps(&r) || run_back(c, &r, dx) ? -1 : 0;
    tg_free(r.step, bytes);
    return status;
}
