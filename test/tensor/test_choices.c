/* test_choices.c - options that are enums: a value of none is refused, and the error lists the choices. */
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>

static const int none = 99;

static void refused(bool failed, const char *call, const char *choices)
{
    const char *text = tensor_error() ? tensor_error() : "no error";
    if (!failed || tensor_error_code() != TENSOR_EVALUE || !strstr(text, choices))
        fail_msg("%s: %s: want \"%s\"", call, failed ? text : "taken", choices);
    tensor_error_clear();
}
#define REFUSED(call, choices) refused(!(call), #call, choices)

static void ops(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(1, 1, 4, 4), TENSOR_F32), *at = tensor_zeros(SHAPE(1, 4, 4, 2), TENSOR_F32),
           *m = tensor_ones(SHAPE(3, 3), TENSOR_F32), *v = tensor_ones(SHAPE(4), TENSOR_F32),
           *i = tensor_zeros(SHAPE(4), TENSOR_I64), *grids[2];
    REFUSED(tensor_gelu(x, .approximate = none), "no approximate 99: want none or tanh");
    REFUSED(tensor_gelu_(x, .approximate = -1), "no approximate -1: want none or tanh");
    REFUSED(tensor_qr(m, .mode = 3).q, "no mode 3: want reduced, complete or r");
    /* What gcc makes of an enum of value 0, given by place; clang warns. */
    REFUSED(tensor_grid_sample(x, at, NULL), "goes by name");
    REFUSED(tensor_sum(m, 0, false, DIMS(), NULL), "goes by name");
    REFUSED(tensor_grid_sample(x, at, .mode = none), "no mode 99: want nearest, ");
    REFUSED(tensor_grid_sample(x, at, .padding_mode = none),
            "padding_mode 99: want zeros, border or reflection");
    REFUSED(tensor_interpolate(x, .scale_factor = 2, .mode = none), "no mode 99: want nearest, ");
    REFUSED(tensor_quantile(v, 0.5, .interpolation = none), "no interpolation 99: want linear, ");
    REFUSED(tensor_searchsorted(v, v, .side = none), "no side 99: want ");
    REFUSED(tensor_pad(x, SHAPE(1, 1), .mode = none), "no mode 99: want constant, ");
    REFUSED(tensor_scatter_reduce(v, 0, i, v, none), "no reduce 99: want sum, ");
    REFUSED(tensor_embedding_bag(i, m, .offsets = i, .mode = 3), "no mode 3: want sum, mean or max");
    REFUSED(tensor_div_rounding(v, v, none), "no rounding 99: want floor or trunc");
    REFUSED(tensor_mse_loss(v, v, .reduction = 3), "no reduction 3: want mean, sum or none");
    REFUSED(tensor_sum(v, .dtype = none), "no dtype 99: want f32, ");
    REFUSED(tensor_meshgrid(TENSORS(v, v), grids, .indexing = none) + 1, "no indexing 99: want ij or xy");
    REFUSED(!tensor_set_float32_matmul_precision(none), "no precision 99: want highest, high or medium");
    REFUSED(data_mnist("/nowhere", none), "no split 99: want train or test");
}

static void modules(void **state)
{
    (void)state;
    Tensor *w = tensor_ones(SHAPE(3, 3), TENSOR_F32);
    REFUSED(nn_gelu(.approximate = none), "nn_gelu: there is no approximate 99: want none or tanh");
    REFUSED(nn_rnn(2, 3, .nonlinearity = 2), "no nonlinearity 2: want tanh or relu");
    REFUSED(nn_conv2d(1, 1, 3, .padding_mode = none), "no padding_mode 99: want ");
    REFUSED(nn_mse_loss(.reduction = 3), "no reduction 3: want mean, sum or none");
    REFUSED(nn_init_kaiming_uniform_(w, .mode = 2), "no mode 2: want fan_in or fan_out");
    REFUSED(nn_init_kaiming_normal_(w, .nonlinearity = none),
            "no nonlinearity 99: want linear, tanh, relu, ");
    REFUSED(nn_pad_sequence(TENSORS(w, w), .padding_side = 2), "no padding_side 2: want right or left");
    REFUSED(nn_metric_f1(3, .average = none), "no average 99: want macro, micro, weighted or binary");
}

static void optimizers(void **state)
{
    (void)state;
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(3, 3), TENSOR_F32), true);
    Optimizer *o = optim_sgd(TENSORS(w), 0.1, .momentum = 0.5);
    REFUSED(optim_muon(TENSORS(w), .adjust_lr_fn = 3), "no adjust_lr_fn 3: want original, ");
    REFUSED(optim_lbfgs(TENSORS(w), .line_search_fn = 2), "no line_search_fn 2: want none or strong_wolfe");
    REFUSED(optim_reduce_lr_on_plateau(o, .mode = 2), "no mode 2: want min or max");
    REFUSED(optim_reduce_lr_on_plateau(o, .threshold_mode = 2), "no threshold_mode 2: want rel or abs");
    REFUSED(optim_cyclic_lr(o, 0.1, 0.2, .mode = 3), "no mode 3: want triangular, triangular2 or exp_range");
    REFUSED(optim_one_cycle_lr(o, 0.1, 10, .anneal_strategy = 2), "no anneal_strategy 2: want cos or linear");
    REFUSED(optim_swa_lr(o, 0.1, .anneal_strategy = 2), "no anneal_strategy 2: want cos or linear");
    optim_free(o);
}

/* For functions of one's own. */
static void ones_own(void **state)
{
    (void)state;
    static const char *const sides[] = { "left", "right", NULL }, *const one[] = { "only", NULL };
    for (int side = 0; side < 2; side++)
        assert_int_equal(tensor_check_choice("mine", "side", side, sides), 0);
    assert_int_equal(tensor_check_choice("mine", "side", 2, sides), -1);
    assert_memory_equal(tensor_error(), "mine: there is no side 2: want left or right\n", 45);
    tensor_error_clear();
    assert_int_equal(tensor_check_choice("mine", "kind", 1, one), -1);
    assert_memory_equal(tensor_error(), "mine: there is no kind 1: want only\n", 36);
    tensor_error_clear();
    assert_int_equal(tensor_check_choice("mine", "kind", 1, NULL), 0);
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F32);
    assert_null(tensor_apply_text("mse_loss", (Tensor *[]){ x, x }, 2, "reduction=most"));
    assert_non_null(strstr(tensor_error(), "\"most\" is no value of it: want mean, sum or none"));
    tensor_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = { SCOPED(ops), SCOPED(modules), SCOPED(optimizers), SCOPED(ones_own) };
    return cmocka_run_group_tests_name("choices", tests, NULL, NULL);
}
