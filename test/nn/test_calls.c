/* test_calls.c - modules of several inputs and results, hooks, where an error was, copies, computed
 * parameters. */
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>

static Tensor *ramp(TensorShape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    return tensor_reshape(tensor_mul_scalar(tensor_arange(-1, (double)n - 1, 1, TENSOR_F32), 0.25), shape);
}

static Tensor *tokens(void)
{
    return tensor_from_data((int64_t[]){ 1, 4, 0, 2, 3, 1 }, SHAPE(2, 3), TENSOR_I64);
}

#define IN_SCOPE(name)                                                      \
    for (TensorScope name = tensor_scope_open(), *name##_ = &name; name##_; \
         name##_ = NULL, tensor_scope_close(name))

/* ---- several inputs and results -------------------------------------------------------------- */

typedef struct {
    Module base;
    Module *embedding, *blocks, *head;
    Tensor *scale, *mask;
} GPT;

static void gpt_forward(Module *self, NNCall *c)
{
    GPT *g = (GPT *)self;
    Tensor *x = nn_forward(g->embedding, c->in[0]);
    for (int i = 0; i < g->blocks->child_count; i++)
        x = tensor_add(x, nn_forward(g->blocks->children[i].module, x));
    c->out[0] = nn_forward(g->head, tensor_mul(x, g->scale));
    if (c->in[1])
        c->out[1] = tensor_cross_entropy(tensor_flatten(c->out[0], 0, 1), tensor_flatten(c->in[1], 0, 1));
}

static Module *gpt(int64_t width)
{
    GPT *g = nn_new(GPT, "GPT", gpt_forward);
    NN_CHILD(g, embedding, nn_embedding(5, 4));
    NN_CHILD(g, blocks, nn_module_list(nn_linear(4, 4), nn_sequential(nn_linear(4, width), nn_linear(4, 4))));
    NN_CHILD(g, head, nn_linear(4, 5));
    NN_PARAMETER(g, scale, tensor_ones(SHAPE(4), TENSOR_F32));
    NN_BUFFER(g, mask, tensor_ones(SHAPE(2), TENSOR_F32), .persistent = false);
    return nn_done(g);
}

static void several_values(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = gpt(4);
        Tensor *logits, *loss, *third = net->parameters[0].tensor;
        Tensor *first = nn_call(net, .in = { tokens(), tokens() }, .out = { &logits, &loss, &third });
        assert_ptr_equal(first, logits);
        assert_non_null(loss);
        assert_null(third);
        assert_true(tensor_ndim(loss) == 0 && tensor_size(logits, 2) == 5);
        assert_true(tensor_equal(nn_forward(net, tokens()), logits));
        assert_ptr_not_equal(nn_forward(net, tokens(), tokens()), NULL);
        NNCall wanted = { .in = { tokens() } };
        assert_int_equal(nn_run(net, &wanted), 0);
        assert_true(wanted.inputs == 1 && wanted.results == 1 && wanted.out[0] && !wanted.out[1]);
        assert_int_equal(tensor_backward(loss), 0);
        TensorList all = nn_parameters(net);
        for (int i = 0; i < all.count; i++) assert_non_null(tensor_grad(all.item[i]));
        nn_free(net);
    }
}

static void what_is_no_result_is_gone(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = gpt(4);
        Tensor *in = tokens();
        TENSOR_NO_GRAD {
            const int64_t before = tensor_live_count();
            nn_forward(net, in);
            assert_int_equal(tensor_live_count(), before + 1);
        }
        nn_free(net);
    }
}

static void failed_calls_have_no_results(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = gpt(4), *plain = nn_relu(), *list = nn_module_list(nn_relu());
        Tensor *logits = tokens(), *loss = logits, *bad = tensor_full(SHAPE(2, 3), 7, TENSOR_I64);
        assert_tensor_error(nn_call(net, .in = { tokens(), bad }, .out = { &logits, &loss }), TENSOR_EINDEX);
        assert_true(!logits && !loss);
        assert_tensor_error(nn_call(net, .in = { NULL, bad }), TENSOR_ENULL);
        assert_tensor_error(nn_call(NULL, .in = { bad }), TENSOR_ENULL);
        assert_tensor_error(nn_forward(plain, bad, bad), TENSOR_EVALUE);
        assert_tensor_error(nn_forward(list, bad), TENSOR_EVALUE);
        assert_status_error(nn_run(net, NULL), TENSOR_ENULL);
        nn_free(net), nn_free(plain), nn_free(list);
    }
}

static void summary_of_several(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = gpt(4);
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        assert_int_equal(nn_summary(net, .file = file, .inputs = TENSORS(tokens(), tokens())), 0);
        fclose(file);
        assert_non_null(strstr(text, "[2, 3, 5], []"));
        assert_non_null(strstr(text, "blocks.1 (Sequential)"));
        free(text);
        assert_status_error(nn_summary(net, .inputs = TENSOR_LIST(NULL, 2)), TENSOR_EVALUE);
        assert_status_error(nn_summary(net, .inputs = TENSOR_LIST(NULL, NN_VALUES + 1)), TENSOR_EVALUE);
        nn_free(net);
    }
}

/* ---- where an error was ---------------------------------------------------------------------- */

static void fails_in(Module *net, Tensor *x, const char *where)
{
    assert_null(nn_forward(net, x));
    const char *note = strstr(tensor_error(), "\n    in ");
    while (note && strstr(note + 1, "\n    in ")) note = strstr(note + 1, "\n    in ");
    if (!where) assert_null(note);
    else if (!note || strcmp(note + 8, where) != 0) fail_msg("%s: not \"%s\"", tensor_error(), where);
    tensor_error_clear();
}

static Module *borrowed;
static Tensor *borrows(Module *self, Tensor *x) { return (void)self, nn_forward(borrowed, x); }

static void errors_tell_where(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = gpt(3), *linear = nn_linear(2, 2), *outer = nn_sequential(nn_relu(), gpt(3));
        fails_in(net, tokens(), "blocks.1.1 (Linear)");
        fails_in(outer->children[1].module, tokens(), "blocks.1.1 (Linear)");
        fails_in(linear, ramp(SHAPE(2, 3)), NULL);
        Module *block = nn_module_dict({ "b1", nn_batch_norm2d(2) }, { "relu", nn_relu() });
        Module *made = nn_sequential(nn_relu(), block);
        block->forward = NULL;
        Module *chain = nn_sequential(nn_relu(), nn_sequential(nn_relu()));
        nn_child(chain->children[1].module, "b1", nn_batch_norm2d(2));
        fails_in(chain, ramp(SHAPE(2, 3)), "1.b1 (BatchNorm2d)");
        /* one that is no part of who runs it begins anew */
        borrowed = nn_sequential(nn_linear(2, 2));
        Module *lender = nn_sequential(nn_done(nn_new(Module, "Lender", borrows)));
        fails_in(lender, ramp(SHAPE(2, 3)), "0 (Linear)");
        nn_free(lender), nn_free(borrowed), nn_free(chain), nn_free(made), nn_free(outer), nn_free(linear);
        nn_free(net);
    }
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static char order[64];
static char letters[] = "abcdex";
static int note(Module *m, NNCall *c, void *ctx) { return (void)m, (void)c, strncat(order, ctx, 1), 0; }

static int doubles_input(Module *m, NNCall *c, void *ctx)
{
    (void)m, (void)ctx;
    assert_null(c->out[0]);
    c->in[0] = tensor_mul_scalar(c->in[0], 2);
    return c->in[0] ? 0 : -1;
}

static int adds_one(Module *m, NNCall *c, void *ctx)
{
    (void)m, (void)ctx;
    c->out[0] = tensor_add_scalar(c->out[0], 1);
    return c->out[0] ? 0 : -1;
}

static int fails(Module *m, NNCall *c, void *ctx) { return (void)m, (void)c, (void)ctx, -1; }
static int takes_away(Module *m, NNCall *c, void *ctx)
{
    (void)m, (void)ctx;
    c->in[0] = c->out[0] = NULL;
    return 0;
}

static void forward_hooks(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = nn_sequential(nn_linear(3, 2), nn_relu()), *linear = nn_get_module(net, "0");
        Tensor *x = ramp(SHAPE(4, 3)), *plain = nn_forward(linear, tensor_mul_scalar(x, 2));
        const int pre = nn_register_forward_pre_hook(linear, doubles_input, NULL),
                  after = nn_register_forward_hook(linear, adds_one, NULL);
        assert_true(pre >= 0 && after >= 0 && pre != after);
        assert_true(tensor_equal(nn_forward(linear, x), tensor_add_scalar(plain, 1)));
        assert_true(tensor_equal(nn_forward(net, x), tensor_relu(tensor_add_scalar(plain, 1))));
        assert_int_equal(nn_remove_hook(linear, after), 0);
        assert_status_error(nn_remove_hook(linear, after), TENSOR_EVALUE);
        assert_true(tensor_equal(nn_forward(linear, x), plain));
        assert_int_equal(nn_remove_hook(linear, pre), 0);
        order[0] = 0;
        nn_register_forward_hook(net, note, &letters[3]),
            nn_register_forward_pre_hook(net, note, &letters[0]);
        nn_register_forward_hook(linear, note, &letters[2]),
            nn_register_forward_pre_hook(linear, note, &letters[1]);
        nn_register_forward_hook(net, note, &letters[4]);
        nn_forward(net, x);
        assert_string_equal(order, "abcde");
        const int64_t before = tensor_live_count();
        for (int k = 0; k < 4; k++) {
            const int id = k % 2 ? nn_register_forward_hook(linear, k < 2 ? fails : takes_away, NULL)
                                 : nn_register_forward_pre_hook(linear, k < 2 ? fails : takes_away, NULL);
            IN_SCOPE(inner)
            {
                assert_null(nn_forward(net, x));
                assert_non_null(strstr(tensor_error(),
                                       k % 2 ? "a forward hook of Linear" : "a forward pre-hook of Linear"));
                assert_non_null(strstr(tensor_error(), "\n    in 0 (Linear)"));
                tensor_error_clear();
            }
            nn_remove_hook(linear, id);
        }
        assert_int_equal(tensor_live_count(), before);
        assert_status_error(nn_register_forward_hook(NULL, fails, NULL), TENSOR_ENULL);
        assert_status_error(nn_register_full_backward_hook(net, NULL, NULL), TENSOR_ENULL);
        assert_status_error(nn_remove_hook(net, -1), TENSOR_EVALUE);
        nn_free(net);
    }
}

typedef struct Seen {
    Tensor *in[NN_VALUES], *out[NN_VALUES];
    int times, inputs, results;
} Seen;

static int sees(Module *m, NNCall *c, void *ctx)
{
    (void)m;
    Seen *s = ctx;
    for (int i = 0; i < NN_VALUES; i++) {
        tensor_release(s->in[i]), tensor_release(s->out[i]);
        s->in[i] = tensor_retain(c->in[i]), s->out[i] = tensor_retain(c->out[i]);
    }
    s->times++, s->inputs = c->inputs, s->results = c->results;
    return 0;
}

static void forget(Seen *s)
{
    for (int i = 0; i < NN_VALUES; i++) tensor_release(s->in[i]), tensor_release(s->out[i]);
    *s = (Seen){ .times = 0 };
}

static int triples(Module *m, NNCall *c, void *ctx)
{
    (void)m;
    Tensor **at = *(bool *)ctx ? &c->in[0] : &c->out[0];
    *at = tensor_mul_scalar(*at, 3);
    return *at ? 0 : -1;
}

static void backward_hooks(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = nn_sequential(nn_linear(3, 2), nn_tanh(), nn_linear(2, 1));
        Module *first = nn_get_module(net, "0"), *last = nn_get_module(net, "2");
        Tensor *x = ramp(SHAPE(4, 3)), *hidden = nn_forward(nn_get_module(net, "1"), nn_forward(first, x));
        Seen at_first = { .times = 0 }, at_last = { .times = 0 };
        nn_register_full_backward_hook(first, sees, &at_first);
        nn_register_full_backward_hook(last, sees, &at_last);
        tensor_backward(tensor_sum(nn_forward(net, x)));
        assert_true(at_first.times == 1 && at_last.times == 1);
        assert_null(at_first.in[0]); /* x wants no gradient */
        assert_true(at_first.inputs == 0 && at_first.results == 1);
        assert_true(at_last.inputs == 1 && at_last.results == 1);
        assert_true(tensor_equal(at_last.out[0], tensor_ones(SHAPE(4, 1), TENSOR_F32)));
        Tensor *w = tensor_detach(nn_get(last, "weight"));
        assert_true(tensor_equal(at_last.in[0], tensor_expand(w, SHAPE(4, 2))));
        Tensor *slope = tensor_rsub_scalar(tensor_square(tensor_detach(hidden)), 1);
        assert_tensor_close(at_first.out[0], tensor_mul(slope, w), 1e-6, 1e-6);
        Tensor *grad = tensor_clone(tensor_grad(nn_get(first, "weight")));
        /* a hook that changes gradients, of inputs or of results */
        bool of_input = true, of_result = false;
        int id = nn_register_full_backward_hook(last, triples, &of_input);
        nn_zero_grad(net);
        tensor_backward(tensor_sum(nn_forward(net, x)));
        assert_tensor_close(tensor_grad(nn_get(first, "weight")), tensor_mul_scalar(grad, 3), 1e-6, 1e-6);
        nn_remove_hook(last, id);
        id = nn_register_full_backward_pre_hook(first, triples, &of_result);
        nn_zero_grad(net);
        tensor_backward(tensor_sum(nn_forward(net, x)));
        assert_tensor_close(tensor_grad(nn_get(first, "weight")), tensor_mul_scalar(grad, 3), 1e-6, 1e-6);
        assert_tensor_close(at_first.out[0], tensor_mul_scalar(tensor_mul(slope, w), 3), 1e-6, 1e-6);
        nn_remove_hook(first, id);
        /* recorded sweeps, and gradients of gradients */
        Tensor *z = tensor_requires_grad_(ramp(SHAPE(4, 3)), true);
        Tensor *g = tensor_gradients(tensor_sum(nn_forward(net, z)), z, .create_graph = true);
        assert_tensor_close(tensor_detach(at_first.in[0]), tensor_detach(g), 1e-6, 1e-6);
        tensor_backward(tensor_sum(tensor_square(g)));
        assert_non_null(tensor_grad(z));
        forget(&at_first), forget(&at_last);
        nn_free(net);
    }
}

static void backward_hooks_that_fail(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = nn_sequential(nn_linear(3, 2), nn_relu(), nn_linear(2, 1));
        Tensor *x = ramp(SHAPE(4, 3));
        for (int k = 0; k < 2; k++) {
            Module *last = nn_get_module(net, "2");
            const int id = k ? nn_register_full_backward_hook(last, fails, NULL)
                             : nn_register_full_backward_pre_hook(last, fails, NULL);
            assert_status_error(tensor_backward(tensor_sum(nn_forward(net, x))), TENSOR_EUSER);
            assert_null(tensor_grad(nn_get(net, "2.weight"))); /* all gradients or none */
            nn_remove_hook(last, id);
        }
        /* one module twice in a graph, inputs of two kinds, and a graph that outlives the module */
        Seen seen = { .times = 0 };
        Module *shared = nn_sequential(nn_linear(1, 1, .dtype = TENSOR_F64));
        nn_register_full_backward_hook(shared, sees, &seen);
        Tensor *z = tensor_requires_grad_(tensor_full(SHAPE(1), 0.5, TENSOR_F64), true);
        Tensor *y = nn_forward(shared, nn_forward(shared, z)), *later = nn_forward(shared, z);
        tensor_backward(tensor_sum(y));
        assert_int_equal(seen.times, 2);
        assert_true(tensor_equal(seen.in[0], tensor_grad(z)));
        tensor_backward(tensor_sum(tensor_relu_(nn_forward(shared, nn_forward(shared, z)))));
        assert_int_equal(seen.times, 4);
        nn_free(shared);
        assert_int_equal(tensor_backward(tensor_sum(later)), 0);
        assert_int_equal(seen.times, 4);
        forget(&seen);
        nn_free(net);
    }
}

/* A sweep that does not reach the inputs of a module leaves nothing behind, recorded or not, failed or not.
 */
static void backward_hooks_of_a_part(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = nn_sequential(nn_linear(3, 2), nn_linear(2, 2), nn_linear(2, 1));
        Module *middle = nn_get_module(net, "1");
        Seen seen = { .times = 0 };
        nn_register_full_backward_hook(middle, sees, &seen);
        const int64_t before = tensor_live_count();
        for (int i = 0; i < 6; i++) {
            const int k = i / 2;
            const int fails_at = k == 2 ? nn_register_full_backward_hook(middle, fails, NULL) : -1;
            IN_SCOPE(inner)
            {
                Tensor *x = ramp(SHAPE(4, 3)), *y = tensor_sum(nn_forward(net, x));
                Tensor *w = nn_get(net, k == 2 ? "0.weight" : "1.weight");
                Tensor *g = tensor_gradients(y, w, .retain_graph = true, .create_graph = k == 1);
                assert_int_equal(g == NULL, k == 2);
                if (k == 2) assert_int_equal(tensor_error_code(), TENSOR_EUSER);
                tensor_error_clear();
                assert_int_equal(seen.times, k == 2); /* the first hook of it ran */
                if (fails_at >= 0) nn_remove_hook(middle, fails_at);
                if (i % 2) continue;
                /* the whole of the same graph: the gradients are those of this sweep */
                assert_int_equal(tensor_backward(tensor_mul_scalar(y, 2)), 0);
                assert_tensor_close(
                    seen.out[0],
                    tensor_expand(tensor_mul_scalar(tensor_detach(nn_get(net, "2.weight")), 2), SHAPE(4, 2)),
                    1e-6, 1e-6);
                nn_zero_grad(net);
            }
            forget(&seen);
            assert_int_equal(tensor_live_count(), before);
        }
        nn_free(net);
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void no_destroy(Module *self) { (void)self; }
static int copied_modules, copied_status;
static int copied(Module *self)
{
    assert_false(tensor_grad_enabled());
    assert_string_equal(self->type, "Odd");
    copied_modules++;
    return copied_status;
}
static Tensor *itself(Module *self, Tensor *x) { return (void)self, x; }

static void clones(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *net = gpt(4);
        nn_register_parameter(nn_get_module(net, "head"), "weight", nn_get(net, "embedding.weight"));
        nn_requires_grad_(nn_get_module(net, "blocks"), false);
        nn_eval(net);
        order[0] = 0;
        nn_register_forward_hook(net, note, &letters[5]);
        Module *copy = nn_clone(net);
        GPT *a = (GPT *)net, *b = (GPT *)copy;
        assert_true(b->embedding == nn_get_module(copy, "embedding") && b->scale == nn_get(copy, "scale"));
        assert_true(b->mask == nn_get(copy, "mask") && a->mask != b->mask && a->scale != b->scale);
        assert_false(copy->training);
        assert_ptr_equal(nn_get(copy, "head.weight"), nn_get(copy, "embedding.weight")); /* tied, as before */
        assert_false(tensor_requires_grad(nn_get(copy, "blocks.0.weight")));
        assert_true(tensor_requires_grad(nn_get(copy, "head.weight")));
        assert_true(tensor_equal(nn_forward(net, tokens()), nn_forward(copy, tokens())));
        assert_string_equal(order, "xx");
        TENSOR_NO_GRAD
            tensor_zero_(nn_get(net, "embedding.weight"));
        nn_free(net);
        assert_true(tensor_item(tensor_sum(tensor_abs(nn_forward(copy, tokens())))) > 0);
        nn_free(copy);
        /* options with lists, state behind a destroy, one module in two places */
        Module *pool = nn_max_pool2d(2, .return_indices = true);
        Module *twice = nn_sequential(pool, nn_layer_norm(.normalized_shape = SHAPE(2, 2)), nn_retain(pool));
        nn_forward(pool, ramp(SHAPE(1, 2, 4, 4)));
        copy = nn_clone(twice);
        assert_ptr_equal(copy->children[0].module, copy->children[2].module);
        assert_tensor_error(nn_indices(copy->children[0].module), TENSOR_EVALUE);
        nn_free(twice);
        assert_int_equal(tensor_size(nn_forward(copy, ramp(SHAPE(1, 2, 4, 4))), 2), 1);
        nn_free(copy);
        Module *odd = nn_new_size(sizeof(Module), "Odd", itself);
        odd->destroy = no_destroy;
        Module *holder = nn_sequential(nn_linear(2, 2), nn_done(odd));
        assert_tensor_error((Tensor *)nn_clone(holder), TENSOR_EVALUE);
        assert_tensor_error((Tensor *)nn_clone(NULL), TENSOR_ENULL);
        odd->copied = copied;
        nn_free(nn_clone(holder));
        assert_int_equal(copied_modules, 1);
        copied_status = -1;
        assert_tensor_error((Tensor *)nn_clone(holder), TENSOR_ENOMEM);
        nn_free(holder);
    }
}

/* ---- containers, and computed parameters ----------------------------------------------------- */

static void containers(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *dict =
            nn_module_dict({ "wte", nn_embedding(3, 2) }, { "h", nn_module_list(nn_linear(2, 2)) });
        assert_string_equal(dict->type, "ModuleDict");
        assert_true(nn_has(dict, "h.0.bias") && nn_named_parameters(dict).count == 3);
        Module *list = nn_parameter_list(ramp(SHAPE(2)), ramp(SHAPE(3))),
               *named = nn_parameter_dict({ "scale", ramp(SHAPE(2)) }, { "shift", ramp(SHAPE(2)) });
        assert_true(tensor_size(nn_get(list, "1"), 0) == 3 && nn_has(named, "shift"));
        assert_true(tensor_requires_grad(nn_get(named, "scale")));
        assert_tensor_error((Tensor *)nn_module_dict({ "a.b", nn_relu() }, { "c", nn_relu() }),
                            TENSOR_EVALUE);
        assert_tensor_error((Tensor *)nn_module_dict_args(NULL, 1), TENSOR_ENULL);
        assert_tensor_error((Tensor *)nn_parameter_list_args(TENSOR_LIST(NULL, 2)), TENSOR_ENULL);
        assert_tensor_error((Tensor *)nn_parameter_dict({ "a", tokens() }), TENSOR_EDTYPE);
        nn_free(dict), nn_free(list), nn_free(named);
    }
}

static void parametrizations(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *m = nn_linear(3, 2);
        Tensor *was = tensor_clone(tensor_detach(nn_get(m, "weight"))), *x = ramp(SHAPE(4, 3));
        Tensor *y = nn_forward(m, x);
        assert_ptr_equal(nn_weight_norm(m), m);
        assert_true(nn_is_parametrized(m, "weight") && !nn_is_parametrized(m, "bias"));
        assert_true(nn_is_parametrized(m, NULL));
        assert_tensor_close(nn_forward(m, x), y, 1e-6, 1e-6);
        static const char *const names[] = { "bias", "parametrizations.weight.original0",
                                             "parametrizations.weight.original1" };
        TensorDict dict = nn_state_dict(m);
        assert_int_equal(dict.count, 3);
        for (int i = 0; i < 3; i++) assert_string_equal(dict.item[i].name, names[i]);
        tensor_backward(tensor_sum(nn_forward(m, x)));
        assert_non_null(tensor_grad(nn_get(m, names[1])));
        assert_non_null(tensor_grad(nn_get(m, names[2])));
        assert_int_equal(nn_remove_parametrizations(m, "weight"), 0);
        assert_false(nn_is_parametrized(m, NULL));
        assert_tensor_close(nn_get(m, "weight"), was, 1e-6, 1e-6);
        assert_int_equal(nn_state_dict(m).count, 2);
        /* one of one's own, two after each other; the same tensor is a parameter again */
        Tensor *bias = nn_get(m, "bias"), *start = tensor_clone(tensor_detach(bias));
        assert_int_equal(nn_register_parametrization(m, "bias", nn_tanh()), 0);
        assert_int_equal(nn_register_parametrization(m, "bias", nn_softplus()), 0);
        assert_tensor_close(nn_get(m, "bias"), tensor_softplus(tensor_tanh(start), 1, 20), 1e-6, 1e-6);
        assert_true(nn_has(m, "parametrizations.bias.original"));
        assert_status_error(nn_register_parametrization(m, "bias", nn_unflatten(0, SHAPE(1, 2))),
                            TENSOR_ESHAPE);
        assert_int_equal(nn_remove_parametrizations(m, "bias"), 0);
        assert_ptr_equal(nn_get(m, "bias"), bias);
        assert_tensor_close(bias, tensor_softplus(tensor_tanh(start), 1, 20), 1e-6, 1e-6);
        /* in the mode that the module is in */
        nn_eval(m);
        for (int i = 0; i < 2; i++)
            assert_int_equal(nn_register_parametrization(m, "bias", nn_dropout(1)), 0);
        assert_tensor_close(nn_get(m, "bias"), tensor_softplus(tensor_tanh(start), 1, 20), 1e-6, 1e-6);
        nn_train(m, true);
        assert_true(tensor_item(tensor_amax(nn_get(m, "bias"))) == 0);
        nn_eval(m);
        assert_int_equal(nn_remove_parametrizations(m, "bias"), 0);
        nn_train(m, true);
        /* refused, and nothing has changed */
        assert_status_error(nn_register_parametrization(m, "bias", nn_unflatten(0, SHAPE(1, 2))),
                            TENSOR_ESHAPE);
        assert_status_error(nn_register_parametrization(m, "mask", nn_tanh()), TENSOR_EINDEX);
        assert_status_error(nn_register_parametrization(m, "bias", NULL), TENSOR_ENULL);
        assert_status_error(nn_remove_parametrizations(m, "bias"), TENSOR_EVALUE);
        assert_int_equal(nn_state_dict(m).count, 2);
        assert_tensor_error((Tensor *)nn_weight_norm(nn_relu()), TENSOR_EINDEX);
        assert_tensor_error((Tensor *)nn_weight_norm(nn_weight_norm(nn_linear(2, 2))), TENSOR_EVALUE);
        assert_tensor_error((Tensor *)nn_spectral_norm(nn_linear(2, 2), .n_power_iterations = 0),
                            TENSOR_EVALUE);
        assert_tensor_error((Tensor *)nn_weight_norm(NULL), TENSOR_ENULL);
        nn_free(m);
    }
}

static void spectral_norm(void **state)
{
    (void)state;
    IN_SCOPE(scope)
    {
        Module *m = nn_spectral_norm(nn_conv_transpose2d(2, 3, 2)), *copy = nn_clone(m);
        Tensor *x = ramp(SHAPE(1, 2, 3, 3));
        for (int i = 0; i < 30; i++) nn_get(m, "weight");
        Tensor *matrix = tensor_flatten(tensor_transpose(nn_get(m, "weight"), 0, 1), 1, -1);
        Tensor *largest = tensor_select(tensor_linalg_svdvals(matrix), 0, 0);
        assert_true(tensor_item(tensor_abs(tensor_sub_scalar(largest, 1))) < 1e-4);
        nn_eval(m);
        assert_true(tensor_equal(nn_forward(m, x), nn_forward(m, x))); /* no step in eval */
        assert_true(nn_has(m, "parametrizations.weight.0._u") && nn_has(m, "parametrizations.weight.0._v"));
        nn_eval(copy);
        assert_int_equal(nn_load_state_dict(copy, nn_state_dict(m)), 0);
        assert_true(tensor_equal(nn_forward(m, x), nn_forward(copy, x)));
        nn_free(m), nn_free(copy);
        m = nn_spectral_norm(nn_linear(4, 3), "bias"); /* of a vector: its length */
        assert_tensor_close(tensor_norm(nn_get(m, "bias")), tensor_scalar(1, TENSOR_F32), 1e-6, 0);
        assert_false(nn_has(m, "parametrizations.bias.0._u"));
        nn_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(several_values),
        TEST(what_is_no_result_is_gone),
        TEST(failed_calls_have_no_results),
        TEST(summary_of_several),
        TEST(errors_tell_where),
        TEST(forward_hooks),
        TEST(backward_hooks),
        TEST(backward_hooks_that_fail),
        TEST(backward_hooks_of_a_part),
        TEST(clones),
        TEST(containers),
        TEST(parametrizations),
        TEST(spectral_norm),
    };
    return cmocka_run_group_tests_name("calls of modules", tests, NULL, NULL);
}
