/* test_rnn.c - what the samples of recurrent nets cannot show: the order of gates, biases, weights and states
 * by hand-made values; whole nets against their cells, layers and directions; options; long sequences;
 * halves; refusals; and the modules against torch.nn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>

#include "oracle/rnn_golden.h"

enum { TANH, RELU, GRU, LSTM, KINDS, MOST = 64 };
static const int gates_of[KINDS] = { 1, 1, 3, 4 };

static TensorScope scope;
static int64_t live;

static int setup(void **state)
{
    (void)state;
    tensor_error_clear();
    tensor_manual_seed(3);
    live = tensor_live_count();
    return scope = tensor_scope_open(), 0;
}

static int teardown(void **state)
{
    (void)state;
    tensor_scope_close(scope);
    if (tensor_error()) print_error("%s\n", tensor_error());
    return tensor_error() || tensor_live_count() != live || tensor_tape_length() != 0 ? -1 : 0;
}

static Tensor *values(TensorShape shape, const double *v) { return tensor_from_data(v, shape, TENSOR_F64); }
#define VALUES(shape, ...) values(shape, (double[]){ __VA_ARGS__ })
static Tensor *zeros(int64_t rows, int64_t cols) { return tensor_zeros(SHAPE(rows, cols), TENSOR_F64); }
static Tensor *normal(TensorShape shape) { return tensor_mul_scalar(tensor_randn(shape, TENSOR_F64), .5); }
static Tensor *leaf(Tensor *x) { return tensor_requires_grad_(tensor_detach(x), true); }
static double s(double x) { return 1 / (1 + exp(-x)); }
static double at(Tensor *x, int64_t i, int64_t j) { return tensor_get(x, SHAPE(i, j)); }
static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-13)) fail_msg("%.17g, expected %.17g", a, b);
}
static void assert_same(Tensor *a, Tensor *b) { assert_tensor_close(a, b, 1e-12, 1e-13); }

/* ---- any kind by number ---------------------------------------------------------------------- */

typedef struct Run {
    Tensor *y, *h_n, *c_n;
} Run;
typedef struct Options {
    int num_layers;
    bool no_biases, bidirectional, batch_first, eval;
    double dropout;
} Options;

static Run run(int kind, Tensor *x, Tensor *h0, Tensor *c0, TensorList w, Options o)
{
    Run r = { 0 };
    Tensor *(*const simple[])(TensorRnnArgs) = { tensor_rnn_tanh_args, tensor_rnn_relu_args,
                                                 tensor_gru_args };
    const int layers = o.num_layers ? o.num_layers : 1;
    if (kind == LSTM)
        r.y = tensor_lstm(x, h0, c0, w, !o.no_biases, layers, o.dropout, !o.eval, o.bidirectional,
                          o.batch_first, &r.h_n, &r.c_n);
    else
        r.y = simple[kind]((TensorRnnArgs){ x, h0, w, !o.no_biases, layers, o.dropout, !o.eval,
                                            o.bidirectional, o.batch_first, &r.h_n, TENSOR_FROM_DEFAULTS });
    return r;
}

/* One step; w: w_ih, w_hh, b_ih, b_hh.  *c is read and replaced. */
static Tensor *cell(int kind, Tensor *x, Tensor *h, Tensor **c, Tensor *const *w)
{
    Tensor *(*const simple[])(Tensor *, Tensor *, Tensor *, Tensor *, Tensor *,
                              Tensor *) = { tensor_rnn_tanh_cell, tensor_rnn_relu_cell, tensor_gru_cell };
    if (kind == LSTM) return tensor_lstm_cell(x, h, *c, w[0], w[1], w[2], w[3], c);
    return simple[kind](x, h, w[0], w[1], w[2], w[3]);
}

/* The weights of a net, each a leaf; returns how many. */
static int weights(int kind, int layers, int directions, int64_t in, int64_t hidden, Tensor **w)
{
    int n = 0;
    const int64_t rows = gates_of[kind] * hidden;
    for (int k = 0; k < layers * directions; k++) {
        w[n++] = leaf(normal(SHAPE(rows, k < directions ? in : directions * hidden)));
        w[n++] = leaf(normal(SHAPE(rows, hidden)));
        w[n++] = leaf(normal(SHAPE(rows)));
        w[n++] = leaf(normal(SHAPE(rows)));
    }
    return n;
}

/* ---- traps: gates and biases ----------------------------------------------------------------- */

static void test_lstm_gate_order_is_i_f_g_o(void **state)
{
    (void)state;
    Tensor *b = VALUES(SHAPE(4), 1, 2, 3, 4), *c = VALUES(SHAPE(1, 1), .5);
    Tensor *h = tensor_lstm_cell(zeros(1, 2), NULL, c, zeros(4, 2), zeros(4, 1), b, NULL, &c);
    const double next = s(2) * .5 + s(1) * tanh(3);
    assert_near(at(c, 0, 0), next);
    assert_near(at(h, 0, 0), s(4) * tanh(next));
}

static void test_gru_gate_order_is_r_z_n_and_reset_multiplies_after_the_bias(void **state)
{
    (void)state;
    Tensor *b_ih = VALUES(SHAPE(3), .1, .2, .3), *b_hh = VALUES(SHAPE(3), .4, .5, .6),
           *w_hh = VALUES(SHAPE(3, 1), 1, 2, 3);
    Tensor *h = tensor_gru_cell(zeros(1, 2), VALUES(SHAPE(1, 1), .5), zeros(3, 2), w_hh, b_ih, b_hh);
    const double r = s(.1 + .5 + .4), z = s(.2 + 1 + .5), n = tanh(.3 + r * (1.5 + .6));
    assert_near(at(h, 0, 0), (1 - z) * n + z * .5);
}

static void test_there_are_two_biases_each_with_a_gradient(void **state)
{
    (void)state;
    Tensor *x = VALUES(SHAPE(1, 1), .2), *w = VALUES(SHAPE(1, 1), 1);
    Tensor *b_ih = leaf(VALUES(SHAPE(1), .3)), *b_hh = leaf(VALUES(SHAPE(1), .4));
    Tensor *h = tensor_rnn_tanh_cell(x, NULL, w, w, b_ih, b_hh);
    assert_near(at(h, 0, 0), tanh(.2 + .3 + .4));
    assert_int_equal(tensor_backward(h), 0);
    assert_near(tensor_item(tensor_grad(b_ih)), 1 - tanh(.9) * tanh(.9));
    assert_same(tensor_grad(b_ih), tensor_grad(b_hh));
    assert_false(tensor_shares_storage(tensor_grad(b_ih), tensor_grad(b_hh)));
}

static void test_the_two_biases_of_a_gru_are_not_the_same(void **state)
{
    (void)state;
    Tensor *x = normal(SHAPE(2, 3)), *h = normal(SHAPE(2, 2)), *w[4];
    weights(GRU, 1, 1, 3, 2, w);
    assert_int_equal(tensor_backward(tensor_sum(tensor_gru_cell(x, h, w[0], w[1], w[2], w[3]))), 0);
    Tensor *a = tensor_grad(w[2]), *b = tensor_grad(w[3]);
    assert_same(tensor_narrow(a, 0, 0, 4), tensor_narrow(b, 0, 0, 4));
    assert_false(tensor_allclose(tensor_narrow(a, 0, 4, 2), tensor_narrow(b, 0, 4, 2), 1e-3, 0, false));
}

/* ---- traps: layers and directions ------------------------------------------------------------ */

static void test_dropout_is_between_layers_and_not_on_the_last(void **state)
{
    (void)state;
    Tensor *x = normal(SHAPE(4, 3, 2)), *w[MOST];
    for (int kind = 0; kind < KINDS; kind++) {
        const int n = weights(kind, 2, 1, 2, 2, w);
        const TensorList all = TENSOR_LIST(w, n), first = TENSOR_LIST(w, 4), second = TENSOR_LIST(w + 4, 4);
        assert_same(run(kind, x, NULL, NULL, first, (Options){ .dropout = .9 }).y,
                    run(kind, x, NULL, NULL, first, (Options){ 0 }).y);
        Run dropped = run(kind, x, NULL, NULL, all, (Options){ .num_layers = 2, .dropout = 1 });
        assert_same(
            dropped.y,
            run(kind, tensor_zeros(SHAPE(4, 3, 2), TENSOR_F64), NULL, NULL, second, (Options){ 0 }).y);
        assert_same(tensor_narrow(dropped.h_n, 0, 0, 1), run(kind, x, NULL, NULL, first, (Options){ 0 }).h_n);
        assert_same(
            run(kind, x, NULL, NULL, all, (Options){ .num_layers = 2, .dropout = .5, .eval = true }).y,
            run(kind, x, NULL, NULL, all, (Options){ .num_layers = 2 }).y);
    }
}

/* layer 0 forward, layer 0 backward, layer 1 forward, ...; each direction a run of its own, the backward one
 * over the turned sequence. */
static void test_states_and_weights_go_by_layer_then_direction(void **state)
{
    (void)state;
    enum { T = 5, N = 2, H = 3, L = 2 };
    for (int kind = 0; kind < KINDS; kind++) {
        Tensor *x = normal(SHAPE(T, N, 4)), *h0 = normal(SHAPE(2 * L, N, H)),
               *c0 = normal(SHAPE(2 * L, N, H)), *w[MOST];
        const int n = weights(kind, L, 2, 4, H, w);
        Run net =
            run(kind, x, h0, c0, TENSOR_LIST(w, n), (Options){ .num_layers = L, .bidirectional = true });
        for (int k = 0; k < 2 * L; k += 2) {
            Tensor *side[2];
            for (int d = 0; d < 2; d++) {
                Run one =
                    run(kind, d ? tensor_flip(x, DIMS(0)) : x, tensor_narrow(h0, 0, k + d, 1),
                        tensor_narrow(c0, 0, k + d, 1), TENSOR_LIST(w + 4 * (k + d), 4), (Options){ 0 });
                side[d] = d ? tensor_flip(one.y, DIMS(0)) : one.y;
                assert_same(tensor_select(net.h_n, 0, k + d), tensor_select(one.y, 0, -1));
                assert_same(tensor_select(net.h_n, 0, k + d), tensor_select(one.h_n, 0, 0));
                if (kind == LSTM) assert_same(tensor_select(net.c_n, 0, k + d), tensor_select(one.c_n, 0, 0));
            }
            x = tensor_cat(TENSORS(side[0], side[1]), 2);
        }
        assert_same(net.y, x);
    }
}

static void test_batch_first_turns_input_and_output_only(void **state)
{
    (void)state;
    Tensor *x = normal(SHAPE(4, 3, 2)), *h0 = normal(SHAPE(2, 3, 5)), *c0 = normal(SHAPE(2, 3, 5)), *w[MOST];
    for (int kind = 0; kind < KINDS; kind++) {
        const TensorList list = TENSOR_LIST(w, weights(kind, 2, 1, 2, 5, w));
        Run a = run(kind, x, h0, c0, list, (Options){ .num_layers = 2 });
        Run b = run(kind, tensor_transpose(x, 0, 1), h0, c0, list,
                    (Options){ .num_layers = 2, .batch_first = true });
        assert_same(tensor_transpose(b.y, 0, 1), a.y);
        assert_same(b.h_n, a.h_n);
        assert_int_equal(tensor_size(b.y, 0), 3);
        assert_int_equal(tensor_size(b.h_n, 0), 2);
    }
}

/* h is narrower than c: [N, P] beside [N, H]. */
static void test_projections_make_h_narrower(void **state)
{
    (void)state;
    enum { T = 3, N = 2, H = 4, P = 3 };
    Tensor *x = normal(SHAPE(T, N, 2)), *w_ih = normal(SHAPE(4 * H, 2)), *w_hh = normal(SHAPE(4 * H, P)),
           *w_hr = normal(SHAPE(P, H));
    Tensor *b = normal(SHAPE(4 * H)), *h = normal(SHAPE(1, N, P)), *c = normal(SHAPE(1, N, H)), *h_n, *c_n;
    Tensor *y = tensor_lstm(x, h, c, TENSORS(w_ih, w_hh, b, b, w_hr), .h_n = &h_n, .c_n = &c_n);
    h = tensor_select(h, 0, 0), c = tensor_select(c, 0, 0);
    for (int t = 0; t < T; t++) {
        Tensor *gate[4],
            *sums = tensor_add(tensor_linear(tensor_select(x, 0, t), w_ih, b), tensor_linear(h, w_hh, b));
        assert_int_equal(tensor_chunk(sums, 4, 1, gate, 4), 4);
        c = tensor_add(tensor_mul(tensor_sigmoid(gate[1]), c),
                       tensor_mul(tensor_sigmoid(gate[0]), tensor_tanh(gate[2])));
        h = tensor_linear(tensor_mul(tensor_sigmoid(gate[3]), tensor_tanh(c)), w_hr, NULL);
        assert_same(tensor_select(y, 0, t), h);
    }
    assert_same(tensor_select(h_n, 0, 0), h);
    assert_same(tensor_select(c_n, 0, 0), c);
}

/* ---- nets and their cells -------------------------------------------------------------------- */

static Tensor *by_cells(int kind, Tensor *x, Tensor *h, Tensor *c, Tensor *const *w)
{
    Tensor *y[MOST];
    const int steps = (int)tensor_size(x, 0);
    for (int t = 0; t < steps; t++) y[t] = h = cell(kind, tensor_select(x, 0, t), h, &c, w);
    return tensor_stack(TENSOR_LIST(y, steps), 0);
}

static void test_a_net_is_its_cells_one_by_one(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        Tensor *in[7] = { leaf(normal(SHAPE(6, 3, 4))), leaf(normal(SHAPE(3, 5))),
                          leaf(normal(SHAPE(3, 5))) },
               *a[7], *b[7];
        weights(kind, 1, 1, 4, 5, in + 3);
        Run net = run(kind, in[0], tensor_unsqueeze(in[1], 0), tensor_unsqueeze(in[2], 0),
                      TENSOR_LIST(in + 3, 4), (Options){ 0 });
        Tensor *cells = by_cells(kind, in[0], in[1], in[2], in + 3), *v = normal(SHAPE(6, 3, 5));
        assert_same(net.y, cells);
        assert_int_equal(tensor_gradients_many(TENSORS(net.y), TENSOR_LIST(in, 7), a,
                                               .grad_outputs = TENSORS(v), .materialize_grads = true),
                         0);
        assert_int_equal(tensor_gradients_many(TENSORS(cells), TENSOR_LIST(in, 7), b,
                                               .grad_outputs = TENSORS(v), .materialize_grads = true),
                         0);
        for (int i = 0; i < 7; i++) assert_same(a[i], b[i]);
    }
}

static void test_without_a_batch(void **state)
{
    (void)state;
    Tensor *x = normal(SHAPE(4, 3)), *h0 = normal(SHAPE(2, 5)), *c0 = normal(SHAPE(2, 5)), *w[MOST];
    for (int kind = 0; kind < KINDS; kind++) {
        const TensorList list = TENSOR_LIST(w, weights(kind, 1, 2, 3, 5, w));
        const Options o = { .bidirectional = true,
                            .batch_first = true }; /* there is no batch to come first */
        Run alone = run(kind, x, h0, c0, list, o);
        Run net =
            run(kind, tensor_unsqueeze(x, 0), tensor_unsqueeze(h0, 1), tensor_unsqueeze(c0, 1), list, o);
        assert_same(alone.y, tensor_squeeze(net.y, 0));
        assert_same(alone.h_n, tensor_squeeze(net.h_n, 1));
        if (kind == LSTM) assert_same(alone.c_n, tensor_squeeze(net.c_n, 1));
    }
}

static void test_absent_states_are_zeros(void **state)
{
    (void)state;
    Tensor *x = normal(SHAPE(4, 2, 3)), *none = tensor_zeros(SHAPE(1, 2, 5), TENSOR_F64), *w[MOST];
    for (int kind = 0; kind < KINDS; kind++) {
        const TensorList list = TENSOR_LIST(w, weights(kind, 1, 1, 3, 5, w));
        assert_same(run(kind, x, NULL, NULL, list, (Options){ 0 }).y,
                    run(kind, x, none, none, list, (Options){ 0 }).y);
    }
}

/* More steps than an op has operands: what is recorded joins them in groups. */
static void test_recorded_gradients_of_a_long_sequence(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        Tensor *in[5] = { leaf(normal(SHAPE(70, 1, 2))) }, *a[5], *b[5];
        weights(kind, 1, 1, 2, 3, in + 1);
        Tensor *y = run(kind, in[0], NULL, NULL, TENSOR_LIST(in + 1, 4), (Options){ 0 }).y,
               *v = normal(SHAPE(70, 1, 3));
        assert_int_equal(tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 5), a, .grad_outputs = TENSORS(v),
                                               .retain_graph = true),
                         0);
        assert_int_equal(tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 5), b, .grad_outputs = TENSORS(v),
                                               .retain_graph = true, .create_graph = true),
                         0);
        for (int i = 0; i < 5; i++) assert_tensor_close(b[i], a[i], 1e-10, 1e-11);
    }
}

/* c_n alone: no gradient arrives for the output. */
static void test_gradient_of_the_last_c_alone(void **state)
{
    (void)state;
    Tensor *x = leaf(normal(SHAPE(1, 2, 3))), *c0 = leaf(normal(SHAPE(1, 2, 2))), *w[MOST], *c_n;
    const TensorList list = TENSOR_LIST(w, weights(LSTM, 1, 1, 3, 2, w));
    assert_non_null(tensor_lstm(x, NULL, c0, list, .c_n = &c_n));
    assert_int_equal(tensor_backward(tensor_sum(c_n)), 0);
    Tensor *gate =
        tensor_narrow(tensor_add(tensor_linear(tensor_detach(x), tensor_detach(w[0]), tensor_detach(w[2])),
                                 tensor_detach(w[3])),
                      2, 2, 2);
    assert_same(tensor_grad(c0), tensor_sigmoid(gate));
}

/* All layers in f32, rounded at the end: as if the halves had been f32 from the beginning. */
static void test_halves_round_once(void **state)
{
    (void)state;
    const TensorDtype dtypes[] = { TENSOR_F16, TENSOR_BF16 };
    for (int kind = 0; kind < KINDS; kind++)
        for (int d = 0; d < 2; d++) {
            Tensor *w[MOST], *wide[MOST], *x = tensor_to(normal(SHAPE(5, 3, 4)), dtypes[d]);
            const int n = weights(kind, 2, 2, 4, 6, w);
            for (int i = 0; i < n; i++) {
                w[i] = tensor_to(tensor_detach(w[i]), dtypes[d]);
                wide[i] = tensor_to(w[i], TENSOR_F32);
            }
            const Options o = { .num_layers = 2, .bidirectional = true };
            Run half = run(kind, x, NULL, NULL, TENSOR_LIST(w, n), o);
            Run full = run(kind, tensor_to(x, TENSOR_F32), NULL, NULL, TENSOR_LIST(wide, n), o);
            assert_true(tensor_equal(half.y, tensor_to(full.y, dtypes[d])));
            assert_true(tensor_equal(half.h_n, tensor_to(full.h_n, dtypes[d])));
        }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    Tensor *x = normal(SHAPE(4, 2, 3)), *w[2 * MOST], *h = x, *c = x;
    const int n = weights(LSTM, 1, 1, 3, 5, w);
    const TensorList list = TENSOR_LIST(w, n), fewer = TENSOR_LIST(w, n - 1);
    assert_tensor_error(tensor_lstm(tensor_zeros(SHAPE(0, 2, 3), TENSOR_F64), NULL, NULL, list),
                        TENSOR_ESHAPE);
    assert_tensor_error(tensor_lstm(x, NULL, NULL, fewer, .h_n = &h, .c_n = &c), TENSOR_EVALUE);
    assert_null(h);
    assert_null(c);
    assert_tensor_error(tensor_lstm(x, NULL, NULL, list, .num_layers = 2), TENSOR_EVALUE);
    assert_tensor_error(tensor_lstm(x, NULL, NULL, list, .bidirectional = true), TENSOR_EVALUE);
    assert_tensor_error(tensor_lstm(x, NULL, NULL, list, .dropout = 1.5), TENSOR_EVALUE);
    assert_tensor_error(tensor_lstm(x, tensor_zeros(SHAPE(1, 3, 5), TENSOR_F64), NULL, list), TENSOR_ESHAPE);
    assert_tensor_error(tensor_lstm(NULL, NULL, NULL, list), TENSOR_ENULL);
    assert_tensor_error(tensor_gru(x, NULL, list), TENSOR_ESHAPE);
    w[2] = NULL;
    assert_tensor_error(tensor_lstm(x, NULL, NULL, list), TENSOR_ENULL);
    for (int i = 0; i < 2 * MOST; i++) w[i] = x;
    assert_tensor_error(tensor_lstm(x, NULL, NULL, TENSOR_LIST(w, 64), .num_layers = 16), TENSOR_EVALUE);
    assert_tensor_error(tensor_lstm(x, NULL, NULL, TENSOR_LIST(NULL, -1)), TENSOR_EVALUE);
    assert_tensor_error(tensor_lstm_cell(x, NULL, NULL, x, x, NULL, NULL, NULL), TENSOR_ESHAPE);
}

/* ---- modules --------------------------------------------------------------------------------- */

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* x_i = ((7 i) mod 13 - 6) / 8, as oracle/nn.py has it. */
static Tensor *ramp(TensorShape shape)
{
    double v[MOST];
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++) v[i] = ((double)(7 * i % 13) - 6) / 8;
    return values(shape, v);
}

static void assert_names(Module *m, const char *const *want, int n)
{
    TensorDict dict = nn_state_dict(m);
    assert_int_equal(dict.count, n);
    for (int i = 0; i < n; i++) assert_string_equal(dict.item[i].name, want[i]);
    nn_free(m);
}

static void test_modules_have_the_names_of_torch(void **state)
{
    (void)state;
    assert_names(nn_lstm(3, 4, 2, .bidirectional = true, .proj_size = 2), golden_names_lstm,
                 COUNT(golden_names_lstm));
    assert_names(nn_gru(3, 4, 2, .bias = false), golden_names_gru, COUNT(golden_names_gru));
    assert_names(nn_lstm_cell(3, 4), golden_names_cell, COUNT(golden_names_cell));
}

static void assert_flat(Tensor *const *x, int n, const double *want, int count, double tolerance)
{
    Tensor *flat[MOST];
    for (int i = 0; i < n; i++) flat[i] = tensor_to(tensor_flatten(tensor_detach(x[i])), TENSOR_F64);
    assert_tensor_close(tensor_cat(TENSOR_LIST(flat, n), 0), values(SHAPE(count), want), tolerance,
                        tolerance);
}

static void assert_initial(Module *m, const double *want, int count)
{
    TensorList list = nn_parameters(m);
    assert_flat(list.item, list.count, want, count, 5e-9);
    nn_free(m);
}

static Module *seeded(uint64_t seed, Module *(*make)(void))
{
    tensor_manual_seed(seed);
    return make();
}

#define MAKER(name, call) \
    static Module *name(void) { return call; }
MAKER(small_lstm, nn_lstm(2, 3, .bidirectional = true, .proj_size = 2))
MAKER(small_gru, nn_gru(2, 2, 2))
MAKER(small_rnn, nn_rnn(3, 2, .bias = false))
MAKER(small_gru_cell, nn_gru_cell(3, 2))

static void test_modules_begin_as_in_torch(void **state)
{
    (void)state;
    assert_initial(seeded(0, small_lstm), golden_init_lstm, COUNT(golden_init_lstm));
    assert_initial(seeded(0, small_gru), golden_init_gru, COUNT(golden_init_gru));
    assert_initial(seeded(0, small_rnn), golden_init_rnn, COUNT(golden_init_rnn));
    assert_initial(seeded(0, small_gru_cell), golden_init_gru_cell, COUNT(golden_init_gru_cell));
}

MAKER(lstm, nn_lstm(3, 4, 2, .bidirectional = true, .dtype = TENSOR_F64))
MAKER(lstm_proj, nn_lstm(3, 4, .proj_size = 2, .dtype = TENSOR_F64))
MAKER(gru, nn_gru(3, 2, 2, .batch_first = true, .dtype = TENSOR_F64))
MAKER(rnn, nn_rnn(3, 2, .nonlinearity = NN_RECURRENCE_RELU, .dtype = TENSOR_F64))

#define GOLDEN(name, ...)                                                                                 \
    assert_flat((Tensor *[]){ __VA_ARGS__ }, (int)(sizeof(Tensor *[]){ __VA_ARGS__ } / sizeof(Tensor *)), \
                golden_##name, COUNT(golden_##name), 1e-12)

static void test_modules_give_the_results_of_torch(void **state)
{
    (void)state;
    Tensor *x = ramp(SHAPE(4, 2, 3)), *c0 = tensor_mul_scalar(ramp(SHAPE(4, 2, 4)), .5), *y,
           *h = ramp(SHAPE(4, 2, 4)), *c;
    Module *m = seeded(0, lstm);
    y = nn_lstm_forward(m, x, h, c0, &h, &c);
    GOLDEN(lstm, y, h, c);
    assert_true(tensor_equal(nn_forward(m, x), nn_lstm_forward(m, x, NULL, NULL, NULL, NULL)));
    nn_free(m);

    m = seeded(0, lstm_proj);
    y = nn_lstm_forward(m, x, NULL, NULL, &h, &c);
    GOLDEN(lstm_proj, y, h, c);
    nn_free(m);

    m = seeded(0, gru);
    y = nn_rnn_forward(m, ramp(SHAPE(2, 4, 3)), ramp(SHAPE(2, 2, 2)), &h);
    GOLDEN(gru, y, h);
    nn_free(m);

    m = seeded(0, rnn);
    y = nn_rnn_forward(m, x, ramp(SHAPE(1, 2, 2)), &h);
    GOLDEN(rnn, y, h);
    assert_true(tensor_equal(nn_forward(m, x), nn_rnn_forward(m, x, NULL, NULL)));
    nn_free(m);
}

MAKER(lstm_cell, nn_lstm_cell(3, 2, .dtype = TENSOR_F64))
MAKER(gru_cell, nn_gru_cell(3, 2, .dtype = TENSOR_F64))
MAKER(rnn_cell, nn_rnn_cell(3, 2, .dtype = TENSOR_F64))

static void test_cell_modules_give_the_results_of_torch(void **state)
{
    (void)state;
    Tensor *x = ramp(SHAPE(2, 3)), *h = ramp(SHAPE(2, 2)), *c = tensor_mul_scalar(h, .5), *y;
    Module *m = seeded(0, lstm_cell);
    y = nn_lstm_cell_forward(m, x, h, c, &c);
    GOLDEN(lstm_cell, y, c);
    assert_true(tensor_equal(nn_forward(m, x), nn_lstm_cell_forward(m, x, NULL, NULL, NULL)));
    nn_free(m);
    m = seeded(0, gru_cell);
    GOLDEN(gru_cell, nn_rnn_cell_forward(m, x, h));
    nn_free(m);
    m = seeded(0, rnn_cell);
    GOLDEN(rnn_cell, nn_rnn_cell_forward(m, x, h));
    assert_true(tensor_equal(nn_forward(m, x), nn_rnn_cell_forward(m, x, NULL)));
    nn_free(m);
}

static void test_modules_drop_in_training_only(void **state)
{
    (void)state;
    Module *m = nn_lstm(3, 4, 2, .dropout = .5), *none = nn_lstm(3, 4, 2);
    Tensor *x = tensor_randn(SHAPE(4, 2, 3), TENSOR_F32);
    assert_int_equal(nn_load_state_dict(none, nn_state_dict(m)), 0);
    assert_false(tensor_equal(nn_forward(m, x), nn_forward(none, x)));
    nn_eval(m);
    assert_true(tensor_equal(nn_forward(m, x), nn_forward(none, x)));
    nn_free(m);
    nn_free(none);
}

static void test_modules_refuse(void **state)
{
    (void)state;
    Module *cell = nn_gru_cell(3, 2), *net = nn_gru(3, 2);
    Tensor *x = tensor_zeros(SHAPE(2, 3), TENSOR_F32), *h = x, *c = x;
    assert_tensor_error(nn_lstm_forward(net, x, NULL, NULL, &h, &c), TENSOR_EVALUE);
    assert_true(!h && !c);
    assert_tensor_error(nn_rnn_forward(cell, x, NULL, NULL), TENSOR_EVALUE);
    assert_tensor_error(nn_rnn_cell_forward(net, x, NULL), TENSOR_EVALUE);
    assert_tensor_error(nn_lstm_cell_forward(cell, x, NULL, NULL, NULL), TENSOR_EVALUE);
    assert_tensor_error(nn_rnn_forward(NULL, x, NULL, NULL), TENSOR_ENULL);
    nn_free(cell);
    nn_free(net);
    assert_tensor_error((void *)nn_lstm(0, 2), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_lstm(3, 0), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_lstm(3, 2, 0), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_lstm(3, 2, 16), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_lstm(3, 2, .proj_size = 2), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_gru(3, 2, .proj_size = 1), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_gru(3, 2, .dropout = 2), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_rnn(3, 2, .nonlinearity = (NNRecurrence)2), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_rnn_cell(3, 2, .nonlinearity = (NNRecurrence)-1), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_gru_cell(3, 0), TENSOR_EVALUE);
    assert_tensor_error((void *)nn_gru_cell(3, 2, .dtype = TENSOR_I64), TENSOR_EDTYPE);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_lstm_gate_order_is_i_f_g_o),
        TEST(test_gru_gate_order_is_r_z_n_and_reset_multiplies_after_the_bias),
        TEST(test_there_are_two_biases_each_with_a_gradient),
        TEST(test_the_two_biases_of_a_gru_are_not_the_same),
        TEST(test_dropout_is_between_layers_and_not_on_the_last),
        TEST(test_states_and_weights_go_by_layer_then_direction),
        TEST(test_batch_first_turns_input_and_output_only),
        TEST(test_projections_make_h_narrower),
        TEST(test_a_net_is_its_cells_one_by_one),
        TEST(test_without_a_batch),
        TEST(test_absent_states_are_zeros),
        TEST(test_recorded_gradients_of_a_long_sequence),
        TEST(test_gradient_of_the_last_c_alone),
        TEST(test_halves_round_once),
        TEST(test_refusals),
        TEST(test_modules_have_the_names_of_torch),
        TEST(test_modules_begin_as_in_torch),
        TEST(test_modules_give_the_results_of_torch),
        TEST(test_cell_modules_give_the_results_of_torch),
        TEST(test_modules_drop_in_training_only),
        TEST(test_modules_refuse),
    };
    return cmocka_run_group_tests_name("recurrent nets", tests, NULL, NULL);
}
