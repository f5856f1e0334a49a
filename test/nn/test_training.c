/* test_training.c - modules and optimizers together: a net that changes its dtype between steps, what is kept
 * between forwards, clipping under create_graph, and what must be refused rather than crash. */
#include <math.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>

/* ---- another dtype between steps ------------------------------------------------------------- */

typedef struct Scaled { /* the example of nn.h: it keeps its parameter in its struct */
    Module base;
    Module *inner;
    Tensor *scale;
} Scaled;

static Tensor *scaled_forward(Module *self, Tensor *x)
{
    Scaled *s = (Scaled *)self;
    TensorScope inner = tensor_scope_open();
    return tensor_scope_return(inner, tensor_mul(nn_forward(s->inner, x), s->scale));
}

static Module *scaled(Module *inner)
{
    Scaled *s = nn_new(Scaled, "Scaled", scaled_forward);
    s->inner = nn_child(s, "inner", inner);
    s->scale = nn_register_parameter(s, "scale", tensor_ones(SHAPE(1), TENSOR_F32));
    return nn_done(s);
}

static Module *net(void)
{
    return nn_sequential(nn_linear(3, 4), nn_batch_norm1d(4), scaled(nn_linear(4, 4)), nn_tanh(),
                         nn_linear(4, 2));
}

static double train(Module *m, Optimizer *opt, int from, int to, TensorDtype dtype)
{
    double last = NAN;
    for (int t = from; t < to; t++) {
        TensorScope step = tensor_scope_open();
        Tensor *x = tensor_to(
            tensor_sin(tensor_reshape(tensor_arange(t, t + 15, 1, TENSOR_F64), SHAPE(5, 3))), dtype);
        Tensor *y = tensor_from_data((int64_t[]){ 0, 1, 1, 0, 1 }, SHAPE(5), TENSOR_I64);
        Tensor *loss = tensor_cross_entropy(nn_forward(m, x), y);
        optim_zero_grad(opt);
        tensor_backward(loss);
        nn_clip_grad_norm_(nn_parameters(m), 1.0);
        optim_step(opt);
        last = tensor_item(loss);
        tensor_scope_close(step);
    }
    return last;
}

static Optimizer *optimizer(int which, Module *m)
{
    return which == 0 ? optim_sgd(nn_parameters(m), 0.1, .momentum = 0.9)
                      : optim_adamw(nn_parameters(m), 0.05, .amsgrad = which == 2);
}

/* Train in f32, nn_to f64, train on: the bits of a fresh net in f64 that was given the same state. */
static void another_dtype(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        tensor_manual_seed(1);
        Module *m = net(), *fresh = net();
        Optimizer *opt = optimizer(which, m);
        Tensor *scale = nn_get(m, "2.scale"), *mean = nn_get(m, "1.running_mean");
        train(m, opt, 0, 5, TENSOR_F32);
        double before = tensor_item(tensor_detach(scale));
        assert_int_equal(nn_to(m, TENSOR_F64), 0);
        assert_ptr_equal(nn_get(m, "2.scale"), scale);
        assert_int_equal(tensor_dtype(mean), TENSOR_F64);
        assert_int_equal(tensor_dtype(tensor_grad(scale)), TENSOR_F64);

        assert_int_equal(nn_to(fresh, TENSOR_F64), 0);
        assert_int_equal(nn_load_state_dict(fresh, nn_state_dict(m)), 0);
        Optimizer *copy = optimizer(which, fresh);
        assert_int_equal(optim_load_state_dict(copy, optim_state_dict(opt)), 0);

        double loss = train(m, opt, 5, 10, TENSOR_F64);
        assert_true(loss > 0 && train(fresh, copy, 5, 10, TENSOR_F64) == loss);
        assert_true(tensor_item(tensor_detach(scale)) != before);
        TensorDict a = nn_state_dict(m), b = nn_state_dict(fresh);
        for (int i = 0; i < a.count; i++) assert_true(tensor_equal(a.item[i].tensor, b.item[i].tensor));
        optim_free(opt), optim_free(copy), nn_free(m), nn_free(fresh);
    }
}

/* ---- clipping -------------------------------------------------------------------------------- */

/* Gradients that have a graph are clipped all the same, and keep their direction; clipping is not recorded,
 * so their own gradient is that of what was clipped. */
static void clipping_under_create_graph(void **state)
{
    (void)state;
    for (int create = 0; create < 2; create++) {
        Tensor *p = tensor_requires_grad_(tensor_from_data((double[]){ 3, 4 }, SHAPE(2), TENSOR_F64), true);
        assert_int_equal(tensor_backward(tensor_sum(tensor_pow_scalar(p, 2)), .create_graph = create), 0);
        assert_true(tensor_requires_grad(tensor_grad(p)) == create);
        assert_true(tensor_item(nn_clip_grad_norm_(TENSORS(p), 5)) == 10);
        assert_true(fabs(tensor_get(tensor_grad(p), DIMS(0)) - 3) < 1e-6 &&
                    fabs(tensor_get(tensor_grad(p), DIMS(1)) - 4) < 1e-6);
        assert_int_equal(nn_clip_grad_value_(TENSORS(p), 3.5), 0);
        assert_true(fabs(tensor_get(tensor_grad(p), DIMS(1)) - 3.5) < 1e-6);
        if (create) {
            Tensor *second = tensor_gradients(tensor_sum(tensor_grad(p)), p);
            assert_true(tensor_get(second, DIMS(0)) == 2 && tensor_get(second, DIMS(1)) == 2);
        }
        tensor_set_grad(p, NULL);
    }
}

/* ---- what is kept between forwards ------------------------------------------------------------ */

static void indices_of_a_pool(void **state)
{
    (void)state;
    Module *pool = nn_max_pool2d(2, .return_indices = true), *plain = nn_max_pool2d(2);
    assert_tensor_error(nn_indices(pool), TENSOR_EVALUE);
    Module *m = nn_sequential(pool, nn_relu());
    Tensor *x = tensor_reshape(tensor_arange(0, 16, 1, TENSOR_F32), SHAPE(1, 1, 4, 4)), *y = nn_forward(m, x);
    Tensor *back = tensor_max_unpool2d(y, nn_indices(pool), 2);
    assert_true(tensor_get(back, DIMS(0, 0, 1, 1)) == 5 && tensor_get(back, DIMS(0, 0, 3, 3)) == 15);
    assert_true(tensor_item(tensor_sum(back)) == 5 + 7 + 13 + 15);
    nn_forward(plain, x);
    assert_tensor_error(nn_indices(plain), TENSOR_EVALUE);
    assert_tensor_error(nn_indices(m), TENSOR_EVALUE);
    assert_tensor_error(nn_indices(NULL), TENSOR_ENULL);
    nn_free(m), nn_free(plain);
}

static void has(void **state)
{
    (void)state;
    Module *m = nn_sequential(nn_linear(2, 3, .bias = false), nn_batch_norm1d(3));
    assert_true(nn_has(m, "0.weight") && nn_has(m, "1.bias") && nn_has(m, "1.running_var"));
    assert_false(nn_has(m, "0.bias"));
    assert_false(nn_has(m, "2.weight"));
    assert_null(tensor_error());
    assert_false(nn_has(NULL, "0.weight"));
    assert_status_error(-1, TENSOR_ENULL);
    nn_free(m);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void broken_lists(void **state)
{
    (void)state;
    assert_null(nn_sequential_args(NULL, 2));
    assert_status_error(-1, TENSOR_ENULL);
    assert_null(nn_module_list_args(NULL, 1));
    assert_status_error(-1, TENSOR_ENULL);
    assert_null(nn_module_list_args((Module *[]){ NULL }, -1));
    assert_status_error(-1, TENSOR_EVALUE);
    Module *m = nn_linear(1, 1);
    TensorDictItem none = { 0 };
    const TensorDict broken[] = { { NULL, 2, 2 }, { &none, 1, 1 }, { .count = -1 } };
    for (int i = 0; i < 3; i++) {
        TensorDict d = broken[i];
        assert_tensor_error(nn_dict_get(d, "weight"), TENSOR_ENULL);
        assert_status_error(nn_dict_set(&d, "weight", nn_get(m, "weight")), TENSOR_ENULL);
        assert_status_error(nn_load_state_dict(m, d), TENSOR_ENULL);
        assert_int_equal(nn_dict_clone(d).count, -1);
        assert_status_error(-1, TENSOR_ENULL);
    }
    assert_null(nn_clip_grad_norm_(TENSOR_LIST(NULL, 2), 1));
    assert_status_error(-1, TENSOR_ENULL);
    assert_status_error(nn_clip_grad_value_(TENSORS(nn_get(m, "weight"), NULL), 1), TENSOR_ENULL);
    nn_free(m);
}

typedef struct Odd {
    Module base;
    Module *inner;
} Odd;

/* What a constructor writes into the stand-in, the next one does not find. */
static void sizes_no_module_has(void **state)
{
    (void)state;
    const size_t sizes[] = { 0, 1, NN_MODULE_MAX + 1 };
    for (int i = 0; i < 3; i++) {
        Module *m = nn_new_size(sizes[i], "Odd", scaled_forward);
        assert_non_null(m);
        assert_null(((Odd *)m)->inner);
        ((Odd *)m)->inner = m;
        assert_null(nn_done(m));
        assert_status_error(-1, TENSOR_EVALUE);
    }
}

static void released_tensors(void **state)
{
    (void)state;
    Tensor *gone = tensor_ones(SHAPE(2, 2), TENSOR_F32), *again = gone;
    Tensor *keeps_it = tensor_requires_grad_(gone, true), *y = NULL;
    TensorScope inner = tensor_scope_open();
    gone = tensor_requires_grad_(tensor_ones(SHAPE(2, 2), TENSOR_F32), true);
    y = tensor_retain(tensor_square(gone)); /* its graph keeps the struct, but no data */
    tensor_scope_close(inner);
    assert_tensor_error(nn_init_zeros_(gone), TENSOR_EVALUE);
    assert_tensor_error(nn_init_xavier_uniform_(gone), TENSOR_EVALUE);
    assert_tensor_error(nn_init_kaiming_normal_(gone), TENSOR_EVALUE);
    assert_tensor_error(nn_init_orthogonal_(gone), TENSOR_EVALUE);
    assert_tensor_error(nn_init_eye_(gone), TENSOR_EVALUE);
    assert_tensor_error(nn_init_sparse_(gone, 0.5), TENSOR_EVALUE);
    assert_tensor_error(nn_parameters_to_vector(TENSORS(gone)), TENSOR_EVALUE);
    assert_status_error(nn_vector_to_parameters(tensor_ones(SHAPE(4), TENSOR_F32), TENSORS(gone)),
                        TENSOR_EVALUE);
    assert_null(nn_clip_grad_norm_(TENSORS(keeps_it, gone), 1));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_status_error(nn_clip_grad_value_(TENSORS(gone), 1), TENSOR_EVALUE);
    assert_null(optim_sgd(TENSORS(again, gone)));
    assert_status_error(-1, TENSOR_EVALUE);
    tensor_release(y);
}

/* ---- a kind of one's own: the same struct as the built-in ones --------------------------------- */

typedef struct TileArgs {
    TensorShape repeats;
    double factor;
    bool bias;
} TileArgs;
static const TileArgs tile_defaults = { .factor = 2 };
static const OpField tile_fields[] = {
    OP_REQUIRED(TileArgs, repeats), OP_OPTION(TileArgs, factor), OP_OPTION(TileArgs, bias), { 0 }
};
static int destroyed;

static int tile_init(Module *m, const void *args)
{
    const TileArgs *a = args;
    if (a->factor == 0) return tensor_fail(TENSOR_EVALUE, m->kind->function, "factor 0");
    if (a->bias) nn_register_parameter(m, "bias", tensor_ones(SHAPE(1), TENSOR_F32));
    return 0;
}

static Tensor *tile_forward(Module *self, Tensor *x)
{
    const TileArgs *a = self->args;
    Tensor *y = tensor_mul_scalar(tensor_repeat(x, a->repeats), a->factor);
    return a->bias ? tensor_add(y, self->parameters[0].tensor) : y;
}

static void tile_destroy(Module *self) { destroyed += self->training; }

static void kind_of_ones_own(void **state)
{
    (void)state;
    static const NNKind tile = { .name = "Tile",
                                 .function = "tile",
                                 .args = sizeof(TileArgs),
                                 .defaults = &tile_defaults,
                                 .fields = tile_fields,
                                 .init = tile_init,
                                 .forward = tile_forward,
                                 .destroy = tile_destroy };
    int64_t sizes[] = { 2, 1 };
    Module *m = nn_make(&tile, &(TileArgs){ .repeats = { 2, sizes }, .factor = 3, .bias = true });
    sizes[0] = 7; /* the list was copied */
    Tensor *y = nn_forward(m, tensor_ones(SHAPE(1, 2), TENSOR_F32));
    assert_true(tensor_size(y, 0) == 2 && tensor_get(y, DIMS(1, 1)) == 4 && nn_has(m, "bias"));
    assert_string_equal(m->type, "Tile");
    nn_free(m);
    assert_int_equal(destroyed, 1);
    assert_null(nn_make(&tile, &(TileArgs){ .factor = 0 }));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(nn_make(&tile, &(TileArgs){ .repeats = { 2, NULL }, .factor = 1 }));
    assert_status_error(-1, TENSOR_ENULL);
    assert_null(nn_make(&tile, &(TileArgs){ .repeats = { 17, sizes }, .factor = 1 }));
    assert_status_error(-1, TENSOR_ESHAPE);
    assert_null(nn_make(NULL, NULL));
    assert_status_error(-1, TENSOR_ENULL);
    assert_ptr_equal(nn_kind_find("nn_linear"), nn_kind_find("Linear"));
    assert_null(nn_kind_find("Tile"));
    assert_null(nn_kind_at(-1));
    assert_null(nn_kind_at(nn_kind_count()));
}

/* ---- parameters as a vector ------------------------------------------------------------------ */

static void vectors(void **state)
{
    (void)state;
    Module *m = net(), *other = net();
    const TensorList list = nn_parameters(m);
    Tensor *vec = nn_parameters_to_vector(list);
    int64_t at = 0;
    for (int i = 0; i < list.count; i++)
        for (int64_t k = 0; k < tensor_numel(list.item[i]); k++)
            assert_true(tensor_get(vec, DIMS(at++)) ==
                        tensor_item(tensor_select(tensor_flatten(list.item[i]), 0, k)));
    assert_true(tensor_shape(vec).ndim == 1 && tensor_numel(vec) == at);
    /* back, into another net, which keeps tensors and gradients of its own */
    Tensor *weight = nn_parameters(other).item[0], *x = tensor_ones(SHAPE(3, 3), TENSOR_F32);
    assert_int_equal(nn_vector_to_parameters(vec, nn_parameters(other)), 0);
    assert_true(tensor_equal(nn_parameters_to_vector(nn_parameters(other)), vec));
    assert_ptr_equal(nn_parameters(other).item[0], weight);
    assert_true(tensor_is_leaf(weight) && tensor_requires_grad(weight));
    assert_true(tensor_equal(nn_forward(m, x), nn_forward(other, x)));
    TENSOR_NO_GRAD
        tensor_fill_(weight, 9);
    assert_true(tensor_equal(nn_parameters_to_vector(list), vec));
    /* on the graph: the gradient of sum v^2 is 2 v */
    assert_int_equal(tensor_backward(tensor_sum(tensor_square(vec))), 0);
    for (int i = 0; i < list.count; i++)
        assert_true(tensor_equal(tensor_grad(list.item[i]), tensor_mul_scalar(list.item[i], 2)));
    nn_free(m);
    nn_free(other);
}

static void vectors_of_what(void **state)
{
    (void)state;
    Tensor *a = tensor_full(SHAPE(2, 2), 1, TENSOR_F32), *b = tensor_full(SHAPE(), 2, TENSOR_F64),
           *turned = tensor_t(tensor_reshape(tensor_arange(1, 5, 1, TENSOR_F32), SHAPE(2, 2)));
    Tensor *vec = nn_parameters_to_vector(TENSORS(turned, b));
    assert_true(tensor_dtype(vec) == TENSOR_F64 && tensor_numel(vec) == 5);
    assert_true(tensor_get(vec, DIMS(1)) == 3 && tensor_get(vec, DIMS(4)) == 2);
    assert_int_equal(nn_vector_to_parameters(vec, TENSORS(b, a)), 0);
    assert_true(tensor_item(b) == 1 && tensor_get(a, DIMS(0, 0)) == 3 && tensor_get(a, DIMS(1, 1)) == 2);
    assert_int_equal(nn_vector_to_parameters(vec, TENSORS(turned, b)), 0);
    assert_true(tensor_get(turned, DIMS(0, 1)) == 3 && tensor_item(b) == 2);
    Tensor *line = tensor_zeros(SHAPE(6), TENSOR_F32);
    assert_status_error(nn_vector_to_parameters(line, TENSORS(turned, b)), TENSOR_ESHAPE);
    assert_status_error(nn_vector_to_parameters(tensor_zeros(SHAPE(4), TENSOR_F32), TENSORS(turned, b)),
                        TENSOR_ESHAPE);
    assert_status_error(nn_vector_to_parameters(tensor_zeros(SHAPE(5, 1), TENSOR_F32), TENSORS(turned, b)),
                        TENSOR_ESHAPE);
    assert_status_error(nn_vector_to_parameters(NULL, TENSORS(turned)), TENSOR_ENULL);
    assert_status_error(nn_vector_to_parameters(line, TENSORS(turned, NULL)), TENSOR_ENULL);
    assert_status_error(nn_vector_to_parameters(line, TENSOR_LIST(NULL, 2)), TENSOR_ENULL);
    assert_status_error(nn_vector_to_parameters(line, TENSOR_LIST(NULL, 0)), TENSOR_EVALUE);
    assert_tensor_error(nn_parameters_to_vector(TENSORS(NULL)), TENSOR_ENULL);
    assert_tensor_error(nn_parameters_to_vector(TENSOR_LIST(NULL, -1)), TENSOR_ENULL);
    assert_tensor_error(nn_parameters_to_vector(TENSOR_LIST(NULL, 0)), TENSOR_EVALUE);
    assert_true(tensor_equal(nn_parameters_to_vector(TENSORS(turned, b)), vec)); /* nothing was written */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(another_dtype),     SCOPED(clipping_under_create_graph),
        SCOPED(indices_of_a_pool), SCOPED(has),
        SCOPED(broken_lists),      SCOPED(sizes_no_module_has),
        SCOPED(released_tensors),  SCOPED(kind_of_ones_own),
        SCOPED(vectors),           SCOPED(vectors_of_what),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
