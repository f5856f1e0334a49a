/* graph_run.h - a net that trains, by steps as usual or by way of a graph (tapegrad/graph.h). */
#ifndef GRAPH_RUN_H
#define GRAPH_RUN_H

#include "emulator.h"
#include "nets.h"

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct Run {
    Module *net;
    Optimizer *opt;
    Scheduler *schedule;
    GradScaler *scaler;
    TensorGraph *graph; /* NULL: each step as usual */
} Run;

typedef enum Precision { PLAIN, MIXED } Precision;

static inline Run begin(Module *(*make)(void), double lr, Precision precision, bool captured)
{
    tensor_manual_seed(7);
    Run r = { .net = make() };
    assert_int_equal(nn_to_device(r.net, test_device()), 0);
    r.opt = optim_adamw(nn_parameters(r.net), .lr = lr);
    r.schedule = optim_exponential_lr(r.opt, 0.9);
    if (precision == MIXED) /* too large at first, then it grows */
        r.scaler = optim_grad_scaler(.init_scale = 0x1p22, .growth_interval = 2);
    if (captured) r.graph = tensor_graph(test_device());
    assert_null(tensor_error());
    return r;
}

static inline void end(Run *r)
{
    tensor_graph_free(r->graph), optim_scheduler_free(r->schedule), optim_scaler_free(r->scaler);
    optim_free(r->opt), nn_free(r->net);
}

static inline Tensor *descend(const Run *r, Tensor *(*of)(Module *net, Tensor **in), Tensor **in)
{
    Tensor *loss = NULL;
    optim_zero_grad(r->opt);
    TENSOR_AUTOCAST(TENSOR_F16, .enabled = r->scaler != NULL) loss = of(r->net, in);
    tensor_backward(r->scaler ? optim_scaler_scale(r->scaler, loss) : loss);
    if (r->scaler) optim_scaler_unscale_(r->scaler, r->opt);
    nn_clip_grad_norm_(nn_parameters(r->net), 1.0);
    if (!r->scaler) optim_step(r->opt);
    else if (!optim_scaler_step(r->scaler, r->opt)) optim_scaler_update(r->scaler);
    return loss;
}

/* The loss, by way of the graph where there is one. */
static inline double step(const Run *r, Tensor *(*of)(Module *net, Tensor **in), Tensor **in, int inputs)
{
    Tensor *loss = NULL, *own[INPUTS];
    if (!r->graph) loss = descend(r, of, in);
    else {
        if (tensor_graph_begin(r->graph, TENSOR_LIST(in, inputs))) {
            for (int i = 0; i < inputs; i++) own[i] = tensor_graph_input(r->graph, i);
            tensor_graph_set_output(r->graph, 0, descend(r, of, own));
        }
        if (!tensor_graph_end(r->graph)) loss = tensor_graph_output(r->graph, 0);
    }
    if (r->schedule) optim_scheduler_step(r->schedule);
    return loss ? tensor_item(loss) : NAN;
}

static inline void assert_same_tensor(const char *what, const char *name, Tensor *a, Tensor *b)
{
    if (!a != !b || (a && !tensor_equal(a, b))) fail_msg("%s: %s differs", what, name);
}

/* Parameters, gradients and states; and what comes next of both generators. */
static inline void assert_same_state(const char *what, const Run *a, const Run *b)
{
    const TensorList p = nn_parameters(a->net), q = nn_parameters(b->net);
    for (int i = 0; i < p.count; i++) {
        assert_same_tensor(what, "a parameter", p.item[i], q.item[i]);
        assert_same_tensor(what, "a gradient", tensor_grad(p.item[i]), tensor_grad(q.item[i]));
    }
    const TensorDict s = optim_state_dict(a->opt), t = optim_state_dict(b->opt);
    assert_int_equal(s.count, t.count);
    for (int i = 0; i < s.count; i++)
        assert_same_tensor(what, s.item[i].name, s.item[i].tensor, t.item[i].tensor);
    if (a->scaler) assert_true(optim_scaler_get_scale(a->scaler) == optim_scaler_get_scale(b->scaler));
    assert_null(tensor_error());
}

/* ---- a small net ------------------------------------------------------------------------------ */

static inline Module *small(void)
{
    return nn_sequential(nn_linear(6, 12), nn_batch_norm1d(12), nn_gelu(), nn_linear(12, 3));
}

static inline Tensor *small_loss(Module *net, Tensor **in)
{
    return tensor_cross_entropy(nn_forward(net, in[0]), in[1]);
}

static inline void small_batch(Tensor **in, int64_t rows)
{
    in[0] = floats(SHAPE(rows, 6), test_device()), in[1] = below(3, SHAPE(rows), test_device());
}

static inline double small_step(const Run *r, int64_t rows)
{
    Tensor *in[INPUTS] = { NULL };
    TensorScope scope = tensor_scope_open();
    small_batch(in, rows);
    const double loss = step(r, small_loss, in, 2);
    tensor_scope_close(scope);
    return loss;
}

#endif
