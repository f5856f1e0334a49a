/* test_nn_refusals.c - what modules, their trees, hooks, dicts and lists of parameters refuse (answers.h). */
#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/nn/init.h>
#include <tapegrad/nn/parametrize.h>
#include "answers.h"

#define STARS7 "*.*.*.*.*.*.*"
#define STARS8 "*." STARS7 /* as many as a rule may have */
enum { PATH = 512 };       /* bytes of the longest dotted name, with the 0 at its end */

static Tensor *f32(TensorShape shape) { return tensor_ones(shape, TENSOR_F32); }
static Tensor *leaf(TensorShape shape) { return tensor_requires_grad_(f32(shape), true); }
static Module *bare(void) { return nn_new(Module, "Bare", NULL); }

/* ---- trees ------------------------------------------------------------------------------------ */

static void named(const char *name, char kind)
{
    Module *m = bare(), *child = bare();
    nn_register_parameter(m, "p", f32(SHAPE(1)));
    nn_register_buffer(m, "b", f32(SHAPE(1)));
    nn_child(m, "c", bare());
    if (kind == 'p') nn_register_parameter(m, name, f32(SHAPE(2)));
    if (kind == 'b') nn_register_buffer(m, name, f32(SHAPE(2)));
    if (kind == 'c') nn_child(m, name, child);
    else nn_free(child);
    nn_free(m);
}

static void names(void)
{
    ANSWER(named("", 'p'));
    ANSWER(named(NULL, 'b'));
    ANSWER(named("a.b", 'c'));
    ANSWER(named("p", 'p'));
    ANSWER(named("p", 'b'));
    ANSWER(named("p", 'c'));
    ANSWER(named("b", 'p'));
    ANSWER(named("b", 'b'));
    ANSWER(named("b", 'c'));
    ANSWER(named("c", 'p'));
    ANSWER(named("c", 'b'));
    ANSWER(named("c", 'c'));
}

static void trees(void)
{
    Module *m = bare(), *child = bare(), *grandchild = bare(), *gone = bare(), *other = bare();
    nn_child(child, "inner", grandchild);
    nn_child(m, "c", child);
    nn_free(gone);
    ANSWER(nn_child(m, "none", NULL));
    ANSWER(nn_child(other, "gone", gone));
    ANSWER(nn_forward(gone, f32(SHAPE(1))));
    ANSWER(nn_child(m, "again", child));
    nn_free(m), nn_free(other);
    m = bare(), child = bare();
    nn_child(m, "c", child);
    ANSWER(nn_child(child, "up", m));
    nn_retain(m);
    ANSWER(nn_free(child));
    ANSWER(nn_get(m, NULL));
    ANSWER(nn_get(m, "weight"));
    ANSWER(nn_get(m, "c.weight"));
    ANSWER(nn_get_module(m, "d"));
    ANSWER(nn_get_module(m, "c.d"));
    ANSWER(nn_get_module(m, "c"));
    ANSWER(nn_parameters(NULL));
    nn_free(m), nn_free(m);
}

/* In a module of its own, for none goes on after a failure. */
static void registered(Tensor *t, bool as_buffer)
{
    Module *m = bare();
    if (as_buffer) nn_register_buffer(m, "b", t);
    else nn_register_parameter(m, "p", t);
    nn_free(m);
}

static void nothing_more(Module *m) { (void)m; }

static void cloned(void (*destroy)(Module *))
{
    Module *m = bare();
    m->destroy = destroy;
    nn_free(nn_clone(m));
    nn_free(m);
}

static void tensors(void)
{
    Module *m = bare();
    ANSWER(nn_register_parameter((Module *)NULL, "p", f32(SHAPE(1))));
    ANSWER(registered(NULL, false));
    ANSWER(registered(tensor_ones(SHAPE(1), TENSOR_I64), false));
    ANSWER(registered(tensor_exp(leaf(SHAPE(1))), false));
    ANSWER(registered(leaf(SHAPE(1)), false));
    ANSWER(registered(NULL, true));
    ANSWER(registered(tensor_ones(SHAPE(1), TENSOR_I64), true));
    ANSWER(nn_to(m, TENSOR_I64));
    ANSWER(nn_to(m, TENSOR_F64));
    ANSWER(nn_to_device(m, NULL));
    nn_free(m);
    ANSWER(nn_free(nn_new_size(sizeof(Module) - 1, "Small", NULL)));
    ANSWER(nn_free(nn_new_size(sizeof(Module), "Small", NULL)));
    ANSWER(nn_free(nn_new_size(NN_MODULE_MAX, "Big", NULL)));
    ANSWER(nn_free(nn_new_size(NN_MODULE_MAX + 1, "Big", NULL)));
    ANSWER(nn_make(NULL, NULL));
    ANSWER(cloned(NULL));
    ANSWER(cloned(nothing_more));
}

/* A name of n parts of 9 letters and a dot. */
static void deep(int parts, int more)
{
    Module *top = bare(), *m = top;
    char last[16] = "aaaaaaaaa";
    last[more] = 0;
    for (int i = 1; i < parts; i++) m = nn_child(m, "aaaaaaaaa", bare());
    nn_register_parameter(m, last, f32(SHAPE(1)));
    nn_state_dict(top);
    nn_free(top);
}

static void depths(void)
{
    ANSWER(deep(PATH / 10, 9));
    ANSWER(deep(PATH / 10 + 1, PATH % 10 - 1));
    ANSWER(deep(PATH / 10 + 1, PATH % 10));
    ANSWER(deep(PATH / 10 + 1, 9));
}

/* ---- forwards and hooks ----------------------------------------------------------------------- */

static Tensor *none(Module *self, Tensor *x) { return (void)self, (void)x, NULL; }
static int quiet(Module *m, NNCall *c, void *ctx) { return (void)m, (void)c, (void)ctx, -1; }
static int takes_input(Module *m, NNCall *c, void *ctx) { return (void)m, (void)ctx, c->in[0] = NULL, 0; }
static int takes_result(Module *m, NNCall *c, void *ctx) { return (void)m, (void)ctx, c->out[0] = NULL, 0; }

static int other_gradient(Module *m, NNCall *c, void *ctx)
{
    (void)m, (void)ctx;
    c->in[0] = f32(SHAPE(7));
    return 0;
}

static void hooked(int (*add)(Module *, NNHookFn, void *), NNHookFn fn)
{
    Module *m = nn_linear(2, 2);
    add(m, fn, NULL);
    Tensor *y = nn_forward(m, leaf(SHAPE(1, 2)));
    if (y) tensor_backward(tensor_sum(y));
    nn_free(m);
}

static void forwards(void)
{
    Module *linear = nn_linear(2, 2), *plain = bare(), *nothing = nn_new(Module, "Nothing", none);
    Tensor *x = f32(SHAPE(1, 2));
    ANSWER(nn_run(linear, NULL));
    ANSWER(nn_forward(NULL, x));
    ANSWER(nn_forward(plain, x));
    ANSWER(nn_forward(linear, NULL));
    ANSWER(nn_forward(nothing, x));
    ANSWER(nn_call(linear, .in = { x, x }));
    ANSWER(nn_register_forward_hook(linear, NULL, NULL));
    ANSWER(nn_register_module_forward_hook(NULL, NULL));
    ANSWER(nn_remove_hook(linear, 3));
    ANSWER(nn_remove_module_hook(3));
    ANSWER(hooked(nn_register_forward_pre_hook, quiet));
    ANSWER(hooked(nn_register_forward_hook, quiet));
    ANSWER(hooked(nn_register_full_backward_pre_hook, quiet));
    ANSWER(hooked(nn_register_full_backward_hook, quiet));
    ANSWER(hooked(nn_register_forward_pre_hook, takes_input));
    ANSWER(hooked(nn_register_forward_hook, takes_result));
    ANSWER(hooked(nn_register_full_backward_hook, other_gradient));
    ANSWER(nn_summary(NULL, SHAPE(1, 2)));
    nn_free(linear), nn_free(plain), nn_free(nothing);
}

static void lazy(void)
{
    Module *m = nn_sequential(nn_linear(NN_LAZY, 2), nn_relu()), *alone = nn_linear(NN_LAZY, 2),
           *conv = nn_conv2d(NN_LAZY, 2, 3);
    ANSWER(nn_state_dict(m));
    ANSWER(nn_named_parameters(alone));
    ANSWER(nn_forward(alone, f32(SHAPE())));
    ANSWER(nn_forward(conv, f32(SHAPE(2))));
    ANSWER(nn_forward(conv, f32(SHAPE(3, 5, 5))));
    ANSWER(alone = nn_weight_norm(alone, "weight"));
    nn_free(m), nn_free(alone), nn_free(conv);
}

/* ---- dicts ------------------------------------------------------------------------------------ */

static void load(TensorDict given, const NNRename *names, bool lenient)
{
    Module *m = nn_linear(2, 2);
    nn_load_state_dict(m, given, .strict = !lenient, .names = names);
    nn_free(m);
}

/* The parameter 1.2.3.4.5.6.7.8, given as 0.2.3.4.5.6.7.8 or under its name. */
static void load_eighth(const NNRename *names)
{
    static char zero[] = "0.2.3.4.5.6.7.8", one[] = "1.2.3.4.5.6.7.8";
    Module *top = bare(), *m = top;
    for (char name[] = "1"; *name < '8'; ++*name) m = nn_child(m, name, bare());
    nn_register_parameter(m, "8", f32(SHAPE(1)));
    TensorDictItem item = { *names->from == '0' ? zero : one, f32(SHAPE(1)) };
    nn_load_state_dict(top, (TensorDict){ .count = 1, .item = &item }, .names = names);
    nn_free(top);
}

static void dicts(void)
{
    static char weight[] = "weight", bias[] = "bias", other[] = "other";
    static char fits[PATH], over[PATH + 1];
    Tensor *w = f32(SHAPE(2, 2)), *b = f32(SHAPE(2)), *three = f32(SHAPE(3));
    TensorDictItem both[] = { { weight, w }, { bias, b } }, wrong[] = { { weight, w }, { bias, three } },
                   more[] = { { weight, w }, { bias, b }, { other, b } },
                   gap[] = { { weight, w }, { bias, NULL } };
    TensorDictItem eight[] = { { (char[]){ "1.2.3.4.5.6.7.8" }, w } },
                   nine[] = { { (char[]){ "1.2.3.4.5.6.7.8.9" }, w } };
    TensorDict built = { 0 };
    memset(fits, 'a', PATH - 1), memset(over, 'a', PATH);
    ANSWER(nn_dict_set(NULL, "a", w));
    ANSWER(nn_dict_set(&built, NULL, w));
    ANSWER(nn_dict_set(&built, "a", NULL));
    ANSWER(nn_dict_get((TensorDict){ .count = -1 }, "a"));
    ANSWER(nn_dict_get((TensorDict){ .count = 1 }, "a"));
    ANSWER(nn_dict_get((TensorDict){ .count = 2, .item = gap }, "a"));
    ANSWER(nn_dict_clone((TensorDict){ .count = 2, .item = gap }));
    ANSWER(load((TensorDict){ .count = 2, .item = both }, NULL, false));
    ANSWER(load((TensorDict){ .count = 1, .item = both }, NULL, false));
    ANSWER(load((TensorDict){ .count = 1, .item = both }, NULL, true));
    ANSWER(load((TensorDict){ .count = 3, .item = more }, NULL, false));
    ANSWER(load((TensorDict){ .count = 3, .item = more }, NULL, true));
    ANSWER(load((TensorDict){ .count = 2, .item = wrong }, NULL, true));
    ANSWER(load((TensorDict){ .count = 2, .item = both }, NN_NAMES(NN_RENAME("bias", "weight")), false));
    ANSWER(load((TensorDict){ .count = 2, .item = both }, NN_NAMES(NN_RENAME("x*", "y*")), false));
    ANSWER(load((TensorDict){ .count = 1, .item = eight }, NN_NAMES(NN_RENAME(STARS8, "weight")), true));
    ANSWER(load_eighth(NN_NAMES(NN_RENAME("0." STARS7, "1." STARS7))));
    ANSWER(load_eighth(NN_NAMES(NN_RENAME(STARS8, STARS8))));
    ANSWER(load_eighth(NN_NAMES(NN_RENAME(STARS8, STARS8 ".*"))));
    ANSWER(load((TensorDict){ .count = 1, .item = nine }, NN_NAMES(NN_RENAME(STARS8 ".*", "weight")), true));
    ANSWER(load((TensorDict){ .count = 1, .item = both }, NN_NAMES(NN_RENAME("weight", fits)), false));
    ANSWER(load((TensorDict){ .count = 1, .item = both }, NN_NAMES(NN_RENAME("weight", over)), false));
    nn_dict_free(built);
}

/* ---- parametrizations ------------------------------------------------------------------------- */

static Tensor *doubled(Module *m, Tensor *x) { return (void)m, tensor_cat(TENSORS(x, x)); }
static Tensor *widened(Module *m, Tensor *x) { return (void)m, tensor_to(x, TENSOR_F64); }
static Tensor *same(Module *m, Tensor *x) { return (void)m, tensor_clone(x); }

static void parametrized(Tensor *(*fn)(Module *, Tensor *))
{
    Module *m = nn_linear(2, 2);
    nn_register_parametrization(m, "weight", nn_done(nn_new(Module, "By", fn)));
    nn_free(m);
}

static void parametrizations(void)
{
    Module *m = nn_linear(2, 2);
    ANSWER(nn_remove_parametrizations(m, "weight"));
    ANSWER(nn_remove_parametrizations(m, NULL));
    ANSWER(nn_remove_parametrizations(m, "no"));
    ANSWER(parametrized(doubled));
    ANSWER(parametrized(widened));
    ANSWER(parametrized(same));
    ANSWER(nn_register_parametrization(m, "weight", NULL));
    m = nn_weight_norm(m, "weight");
    ANSWER(m = nn_weight_norm(m, "weight"));
    m = nn_linear(2, 2);
    ANSWER(nn_spectral_norm(m, .n_power_iterations = 0));
    m = nn_linear(2, 2);
    ANSWER(m = nn_spectral_norm(m, .n_power_iterations = 1));
    nn_free(m);
}

/* ---- lists of parameters ---------------------------------------------------------------------- */

static void vectors(void)
{
    Tensor *p = leaf(SHAPE(2)), *q = leaf(SHAPE(1, 3)), *list[] = { p, NULL };
    ANSWER(nn_parameters_to_vector(TENSOR_LIST(NULL, 1)));
    ANSWER(nn_parameters_to_vector(TENSOR_LIST(list, -1)));
    ANSWER(nn_parameters_to_vector(TENSOR_LIST(list, 0)));
    ANSWER(nn_parameters_to_vector(TENSOR_LIST(list, 1)));
    ANSWER(nn_parameters_to_vector(TENSOR_LIST(list, 2)));
    ANSWER(nn_vector_to_parameters(NULL, TENSORS(p, q)));
    ANSWER(nn_vector_to_parameters(f32(SHAPE(4)), TENSORS(p, q)));
    ANSWER(nn_vector_to_parameters(f32(SHAPE(5)), TENSORS(p, q)));
    ANSWER(nn_vector_to_parameters(f32(SHAPE(6)), TENSORS(p, q)));
    ANSWER(nn_vector_to_parameters(f32(SHAPE(1, 5)), TENSORS(p, q)));
}

static void clipping(void)
{
    Tensor *p = leaf(SHAPE(2)), *far = leaf(SHAPE(1)), *list[] = { p, NULL };
    tensor_set_grad(p, f32(SHAPE(2)));
    tensor_set_grad(far, tensor_full(SHAPE(1), INFINITY, TENSOR_F32));
    ANSWER(nn_clip_grad_norm_(TENSOR_LIST(NULL, 1), 1));
    ANSWER(nn_clip_grad_norm_(TENSOR_LIST(list, -1), 1));
    ANSWER(nn_clip_grad_norm_(TENSOR_LIST(list, 2), 1));
    ANSWER(nn_clip_grad_norm_(TENSORS(p), -1));
    ANSWER(nn_clip_grad_norm_(TENSORS(p), NAN));
    ANSWER(nn_clip_grad_norm_(TENSORS(p), 0));
    ANSWER(nn_clip_grad_norm_(TENSORS(p), 1, .norm_type = 0));
    ANSWER(nn_clip_grad_norm_(TENSORS(p), 1, .norm_type = NAN));
    ANSWER(nn_clip_grad_norm_(TENSORS(p), 1, .norm_type = 1e-3));
    ANSWER(nn_clip_grad_norm_(TENSORS(far), 1));
    ANSWER(nn_clip_grad_norm_(TENSORS(far), 1, .error_if_nonfinite = true));
    ANSWER(nn_clip_grads_with_norm_(TENSORS(p), 1, NULL));
    ANSWER(nn_clip_grads_with_norm_(TENSORS(p), -1, f32(SHAPE())));
    ANSWER(nn_clip_grads_with_norm_(TENSORS(p), 0, f32(SHAPE())));
    ANSWER(nn_clip_grad_value_(TENSORS(p), -1e-300));
    ANSWER(nn_clip_grad_value_(TENSORS(p), 0));
    ANSWER(nn_clip_grad_value_(TENSORS(p), NAN));
    ANSWER(nn_get_total_norm(TENSOR_LIST(NULL, 1)));
    ANSWER(nn_get_total_norm(TENSORS(p), 0));
}

static void initial(void)
{
    Tensor *line = f32(SHAPE(3)), *matrix = f32(SHAPE(2, 3)), *cube = f32(SHAPE(2, 3, 4)),
           *rank5 = f32(SHAPE(2, 1, 1, 1, 1)), *rank6 = f32(SHAPE(2, 1, 1, 1, 1, 1));
    ANSWER(nn_init_xavier_uniform_(NULL));
    ANSWER(nn_init_xavier_uniform_(line));
    ANSWER(nn_init_xavier_normal_(line));
    ANSWER(nn_init_kaiming_uniform_(line));
    ANSWER(nn_init_kaiming_normal_(line));
    ANSWER(nn_init_kaiming_normal_(matrix));
    ANSWER(nn_init_orthogonal_(line));
    ANSWER(nn_init_eye_(NULL));
    ANSWER(nn_init_eye_(line));
    ANSWER(nn_init_eye_(cube));
    ANSWER(nn_init_eye_(matrix));
    ANSWER(nn_init_dirac_(matrix));
    ANSWER(nn_init_dirac_(cube));
    ANSWER(nn_init_dirac_(rank5));
    ANSWER(nn_init_dirac_(rank6));
    ANSWER(nn_init_dirac_(cube, .groups = 0));
    ANSWER(nn_init_dirac_(cube, .groups = 2));
    ANSWER(nn_init_dirac_(cube, .groups = 3));
    ANSWER(nn_init_sparse_(matrix, -0.1));
    ANSWER(nn_init_sparse_(matrix, 0));
    ANSWER(nn_init_sparse_(matrix, 1));
    ANSWER(nn_init_sparse_(matrix, 1.1));
    ANSWER(nn_init_sparse_(cube, 0.5));
    ANSWER(nn_init_trunc_normal_(matrix, .std = 0));
    ANSWER(nn_init_uniform_(matrix, 1, 0));
    ANSWER(nn_calculate_gain((NNGain)-1, 0));
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/nn/refusals.golden");
    answers_of("names", names);
    answers_of("trees", trees);
    answers_of("tensors", tensors);
    answers_of("depths", depths);
    answers_of("forwards", forwards);
    answers_of("lazy modules", lazy);
    answers_of("dicts", dicts);
    answers_of("parametrizations", parametrizations);
    answers_of("vectors", vectors);
    answers_of("clipping", clipping);
    answers_of("initial values", initial);
    return answers_end();
}
