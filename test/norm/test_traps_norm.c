/* test_traps_norm.c - where normalisation, softmax, dropout and gates go wrong elsewhere: one test for each
 * such place.  Numbers with many digits are PyTorch's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/debug.h>

static TensorScope scope;
static int setup(void **state)
{
    (void)state;
    return tensor_error_clear(), tensor_manual_seed(3), scope = tensor_scope_open(), 0;
}
static int teardown(void **state)
{
    (void)state;
    return tensor_scope_close(scope), 0;
}

/* ---- helpers --------------------------------------------------------------------------------- */

#define F64(shape, ...) tensor_from_data((double[]){ __VA_ARGS__ }, shape, TENSOR_F64)
static Tensor *leaf(Tensor *x) { return tensor_requires_grad_(tensor_detach(x), true); }

/* sin(0), sin(1), ... */
static Tensor *wave(TensorShape shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++) n *= shape.dim[i];
    return tensor_reshape(tensor_sin(tensor_arange(0, (double)n, 1, TENSOR_F64)), shape);
}

static double value(Tensor *x, int64_t i)
{
    return tensor_item(tensor_select(tensor_flatten(tensor_to(x, TENSOR_F64)), 0, i));
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12 * (1 + fabs(b))) && !(isnan(a) && isnan(b)) && a != b)
        fail_msg("%.17g, wanted %.17g", a, b);
}

static void assert_close(Tensor *a, Tensor *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(tensor_numel(a), tensor_numel(b));
    for (int64_t i = 0; i < tensor_numel(b); i++) assert_near(value(a, i), value(b, i));
}

static void assert_values(Tensor *x, const double *want, int64_t n)
{
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) assert_near(value(x, i), want[i]);
}
#define ASSERT_VALUES(x, ...) \
    assert_values(x, (double[]){ __VA_ARGS__ }, sizeof(double[]){ __VA_ARGS__ } / sizeof(double))

static void assert_refused(Tensor *y, TensorStatus code)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

static void assert_all(Tensor *x, double want)
{
    for (int64_t i = 0; i < tensor_numel(x); i++) assert_near(value(x, i), want);
}

/* Does f draw numbers? */
static bool draws(Tensor *(*f)(TensorDropoutArgs), Tensor *x, double p, bool training)
{
    Tensor *before = tensor_get_rng_state(),
           *y = f((TensorDropoutArgs){ x, p, training, TENSOR_FROM_DEFAULTS }),
           *after = tensor_get_rng_state();
    assert_non_null(y);
    return tensor_item(tensor_all(tensor_eq(before, after))) == 0;
}

/* ---- batch_norm ------------------------------------------------------------------------------ */

static void test_batch_norm_normalises_with_biased_variance(void **state)
{
    (void)state;
    Tensor *x = F64(SHAPE(2, 1), 1, 3); /* mean 2, biased variance 1, unbiased 2 */
    ASSERT_VALUES(tensor_batch_norm(x, NULL, NULL, NULL, NULL, true, .eps = 1e-15), -1, 1);
    assert_refused(tensor_batch_norm(x, NULL, NULL, NULL, NULL, true, .eps = 0), TENSOR_EVALUE);
    assert_refused(tensor_batch_norm(x, F64(SHAPE(1), 0), F64(SHAPE(1), 1), NULL, NULL, .eps = -1e-9),
                   TENSOR_EVALUE);
}

static void test_batch_norm_running_var_is_unbiased(void **state)
{
    (void)state;
    Tensor *x = tensor_cos(tensor_reshape(tensor_arange(0, 12, 1, TENSOR_F64), SHAPE(3, 2, 2)));
    Tensor *mean = F64(SHAPE(2), .5, -.5), *var = F64(SHAPE(2), 1, 2);
    Tensor *y = tensor_batch_norm(x, mean, var, NULL, NULL, true);
    ASSERT_VALUES(mean, 0.4518948429129077, -0.4587785437207053);
    ASSERT_VALUES(var, 0.9529763031289097, 1.8660276368231823);
    ASSERT_VALUES(y, 1.4765111047967197, 0.7846527250862807, -0.4426657260069524);
}

/* Far below eps: it is not what is left of 1 / sqrt(var + eps). */
static void test_batch_norm_running_var_of_small_values(void **state)
{
    (void)state;
    Tensor *x = tensor_to(tensor_mul_scalar(wave(SHAPE(4, 2, 8)), 1e-5), TENSOR_F32),
           *mean = tensor_zeros(SHAPE(2), TENSOR_F32);
    Tensor *var = tensor_ones(SHAPE(2), TENSOR_F32);
    tensor_batch_norm(x, mean, var, NULL, NULL, .training = true, .momentum = 1);
    Tensor *want = tensor_var(tensor_to(x, TENSOR_F64), .dims = DIMS(0, 2));
    for (int i = 0; i < 2; i++) assert_true(fabs(value(var, i) / value(want, i) - 1) < 1e-6);
}

static void test_batch_norm_momentum_weighs_the_batch(void **state)
{
    (void)state;
    Tensor *x = F64(SHAPE(2, 1), 1, 3), *mean = F64(SHAPE(1), 10), *var = F64(SHAPE(1), 100);
    tensor_batch_norm(x, mean, var, NULL, NULL, true, .momentum = .25);
    ASSERT_VALUES(mean, .75 * 10 + .25 * 2);
    ASSERT_VALUES(var, .75 * 100 + .25 * 2);
}

static void test_batch_norm_refuses_one_value_for_each_channel(void **state)
{
    (void)state;
    Tensor *x = wave(SHAPE(1, 3)), *mean = F64(SHAPE(3), 0, 0, 0), *var = F64(SHAPE(3), 1, 1, 1);
    assert_refused(tensor_batch_norm(x, mean, var, NULL, NULL, true), TENSOR_ESHAPE);
    assert_all(mean, 0);
    assert_refused(tensor_batch_norm(tensor_reshape(x, SHAPE(1, 3, 1, 1)), NULL, NULL, NULL, NULL, true),
                   TENSOR_ESHAPE);
    assert_non_null(tensor_batch_norm(x, mean, var, NULL, NULL));
}

static void test_batch_norm_without_momentum_is_cumulative(void **state)
{
    (void)state;
    Tensor *x = tensor_cos(tensor_reshape(tensor_arange(0, 12, 1, TENSOR_F64), SHAPE(3, 2, 2)));
    Module *m = nn_batch_norm1d(2, .momentum = -1, .dtype = TENSOR_F64);
    for (int k = 1; k <= 3; k++) assert_non_null(nn_forward(m, tensor_mul_scalar(x, k)));
    ASSERT_VALUES(nn_get(m, "running_mean"), 0.03789685825815452, -0.1755708744141063);
    ASSERT_VALUES(nn_get(m, "running_var"), 2.4722274793491197, 3.0812897184151753);
    nn_free(m);
}

static void test_batch_norm_counts_batches_in_training_only(void **state)
{
    (void)state;
    Module *m = nn_batch_norm1d(2, .dtype = TENSOR_F64);
    nn_forward(m, wave(SHAPE(3, 2)));
    nn_eval(m);
    nn_forward(m, wave(SHAPE(3, 2)));
    assert_int_equal(tensor_item(nn_get(m, "num_batches_tracked")), 1);
    nn_free(m);
}

static void test_batch_norm_running_statistics_are_not_on_the_tape(void **state)
{
    (void)state;
    Tensor *x = leaf(wave(SHAPE(4, 2))), *mean = F64(SHAPE(2), 0, 0), *var = F64(SHAPE(2), 1, 1);
    Tensor *y = tensor_batch_norm(x, mean, var, NULL, NULL, true);
    assert_false(tensor_requires_grad(mean) || tensor_requires_grad(var));
    tensor_batch_norm(wave(SHAPE(4, 2)), mean, var, NULL, NULL,
                      true); /* changes them again, before backward */
    assert_int_equal(tensor_backward(tensor_sum(tensor_square(y))), 0);
}

static void test_batch_norm_outside_training_updates_nothing(void **state)
{
    (void)state;
    Tensor *mean = F64(SHAPE(2), .5, -1), *var = F64(SHAPE(2), 4, .25), *x = wave(SHAPE(3, 2));
    Tensor *y = tensor_batch_norm(x, mean, var, NULL, NULL, .eps = 0);
    ASSERT_VALUES(mean, .5, -1);
    ASSERT_VALUES(var, 4, .25);
    assert_int_equal(tensor_version(mean), 0);
    ASSERT_VALUES(y, (0 - .5) / 2, (sin(1) + 1) / .5);
}

static void test_batch_norm_gradient_sums_to_0_for_each_channel(void **state)
{
    (void)state;
    const TensorShape shapes[] = { SHAPE(6, 3), SHAPE(4, 3, 5), SHAPE(2, 3, 4, 2), SHAPE(2, 3, 2, 2, 3) };
    for (int i = 0; i < 4; i++) {
        Tensor *x = leaf(wave(shapes[i])), *w = F64(SHAPE(3), 2, -1, .5);
        Tensor *y = tensor_batch_norm(x, NULL, NULL, w, NULL, true);
        assert_int_equal(tensor_backward(y, tensor_cos(wave(shapes[i]))), 0);
        Tensor *sums = tensor_sum(tensor_flatten(tensor_transpose(tensor_grad(x), 0, 1), 1), 1);
        for (int c = 0; c < 3; c++) assert_true(fabs(value(sums, c)) < 1e-12);
    }
}

static void test_batch_norm_takes_ranks_2_to_5(void **state)
{
    (void)state;
    assert_refused(tensor_batch_norm(wave(SHAPE(3)), NULL, NULL, NULL, NULL, true), TENSOR_ESHAPE);
    assert_refused(tensor_batch_norm(wave(SHAPE(2, 3, 1, 1, 1, 2)), NULL, NULL, NULL, NULL, true),
                   TENSOR_ESHAPE);
    Tensor *flat = tensor_batch_norm(wave(SHAPE(2, 3, 8)), NULL, NULL, NULL, NULL, true);
    assert_close(tensor_batch_norm(wave(SHAPE(2, 3, 2, 4)), NULL, NULL, NULL, NULL, true), flat);
    assert_close(tensor_batch_norm(wave(SHAPE(2, 3, 2, 2, 2)), NULL, NULL, NULL, NULL, true), flat);
}

static void test_batch_norm_outside_training_has_a_gradient_beside_nan(void **state)
{
    (void)state;
    for (int positions = 1; positions <= 2; positions++) { /* columns, and channels that are rows */
        Tensor *x = leaf(tensor_full(SHAPE(2, 1, positions), NAN, TENSOR_F64));
        Tensor *y = tensor_batch_norm(x, F64(SHAPE(1), 0), F64(SHAPE(1), 4), NULL, NULL, .eps = 0);
        assert_int_equal(tensor_backward(tensor_sum(y)), 0);
        assert_all(tensor_grad(x), .5);
    }
}

/* ---- layer_norm, rms_norm -------------------------------------------------------------------- */

static void test_layer_norm_takes_a_weight_without_a_bias(void **state)
{
    (void)state;
    Tensor *w = F64(SHAPE(2), 2, 3);
    ASSERT_VALUES(tensor_layer_norm(F64(SHAPE(2), 1, 3), SHAPE(2), w, NULL, 0), -2, 3);
    ASSERT_VALUES(tensor_layer_norm(F64(SHAPE(2), 1, 3), SHAPE(2), NULL, w, 0), 1, 4);
}

static void test_layer_norm_eps_lies_under_the_root(void **state)
{
    (void)state;
    ASSERT_VALUES(tensor_layer_norm(F64(SHAPE(2), 1, 3), SHAPE(2), .eps = 3), -.5,
                  .5); /* variance 1: sqrt(1 + 3) */
    ASSERT_VALUES(tensor_rms_norm(F64(SHAPE(2), 1, -1), SHAPE(2), .eps = 3), .5, -.5);
}

static void test_layer_norm_takes_several_dims_and_no_rows(void **state)
{
    (void)state;
    Tensor *x = wave(SHAPE(2, 3, 4));
    assert_close(tensor_layer_norm(x, SHAPE(3, 4)),
                 tensor_layer_norm(tensor_reshape(x, SHAPE(2, 12)), SHAPE(12)));
    Tensor *none = leaf(tensor_empty(SHAPE(0, 4), TENSOR_F64)), *w = leaf(F64(SHAPE(4), 1, 2, 3, 4));
    assert_int_equal(tensor_backward(tensor_sum(tensor_layer_norm(none, SHAPE(4), w))), 0);
    assert_all(tensor_grad(w), 0);
}

static void test_rms_norm_takes_any_eps_at_its_word(void **state)
{
    (void)state;
    ASSERT_VALUES(tensor_rms_norm(F64(SHAPE(2), 2, -2), SHAPE(2), .eps = -3), 2, -2);
    ASSERT_VALUES(tensor_rms_norm(F64(SHAPE(2), 2, -2), SHAPE(2), .eps = -1), 2 / sqrt(3), -2 / sqrt(3));
    assert_true(isnan(value(tensor_rms_norm(F64(SHAPE(1), 1), SHAPE(1), .eps = -2), 0)));
}

static void test_rms_norm_default_eps_is_that_of_the_computation(void **state)
{
    (void)state;
    const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F16, TENSOR_BF16 };
    for (int i = 0; i < 3; i++) { /* 2^-7 / sqrt(2^-14 + 2^-23) in all three */
        Tensor *x = tensor_full(SHAPE(1, 4), 0x1p-7, dtypes[i]), *y = tensor_rms_norm(x, SHAPE(4));
        assert_int_equal(tensor_dtype(y), dtypes[i]);
        assert_close(
            y, tensor_to(tensor_full(SHAPE(4), 0x1p-7 / sqrt(0x1p-14 + 0x1p-23), TENSOR_F32), dtypes[i]));
    }
    ASSERT_VALUES(tensor_rms_norm(F64(SHAPE(2), 0x1p-26, 0x1p-26), SHAPE(2)), sqrt(.5),
                  sqrt(.5)); /* 2^-52 + 2^-52 */
}

/* ---- group_norm, instance_norm, local_response_norm ------------------------------------------ */

static void test_group_norm_is_layer_norm_of_each_group(void **state)
{
    (void)state;
    Tensor *x = wave(SHAPE(2, 4, 3)), *y = tensor_group_norm(x, 2);
    assert_close(y, tensor_layer_norm(tensor_reshape(x, SHAPE(4, 6)), SHAPE(6)));
    ASSERT_VALUES(tensor_select(tensor_select(y, 0, 1), 0, 3), 1.1486915721381576, -0.08421694714110221,
                  -1.305258942737443);
    assert_refused(tensor_group_norm(x, 3), TENSOR_ESHAPE);
}

static void test_instance_norm_refuses_one_position(void **state)
{
    (void)state;
    Tensor *mean = F64(SHAPE(3), 0, 0, 0), *var = F64(SHAPE(3), 1, 1, 1);
    assert_refused(tensor_instance_norm(wave(SHAPE(2, 3, 1))), TENSOR_ESHAPE);
    assert_refused(tensor_instance_norm(wave(SHAPE(2, 3)), mean, var), TENSOR_ESHAPE);
    assert_all(mean, 0);
    assert_non_null(tensor_instance_norm(wave(SHAPE(2, 3)), mean, var, .use_input_stats = false));
}

static void test_instance_norm_running_statistics_are_means_over_samples(void **state)
{
    (void)state;
    Tensor *mean = F64(SHAPE(2), .5, -.5), *var = F64(SHAPE(2), 1, 2);
    assert_non_null(tensor_instance_norm(wave(SHAPE(2, 2, 4)), mean, var, .momentum = .25));
    ASSERT_VALUES(mean, 0.42966730731620345, -0.3691770735866565);
    ASSERT_VALUES(var, 0.8791471407727781, 1.6184140070745603);
    assert_int_equal(tensor_version(mean), 1);
}

static void test_local_response_norm_window_of_even_size(void **state)
{
    (void)state;
    Tensor *y = tensor_local_response_norm(wave(SHAPE(2, 4, 3)), 2, .alpha = .5);
    ASSERT_VALUES(tensor_select(tensor_select(y, 0, 0), 0, 1), 0.140595346073495, -0.6144708901995942,
                  -0.7307769170545124);
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void test_softmax_subtracts_the_maximum(void **state)
{
    (void)state;
    ASSERT_VALUES(tensor_softmax(F64(SHAPE(2), 1e300, 1e300), 0), .5, .5);
    ASSERT_VALUES(tensor_log_softmax(F64(SHAPE(2), -1e300, -1e300), 0), -log(2), -log(2));
    ASSERT_VALUES(tensor_softmin(F64(SHAPE(2), 1e300, -1e300), 0), 0, 1);
}

static void test_softmax_of_infinities(void **state)
{
    (void)state;
    ASSERT_VALUES(tensor_softmax(F64(SHAPE(3), -INFINITY, 0, 0), 0), 0, .5, .5);
    ASSERT_VALUES(tensor_log_softmax(F64(SHAPE(3), -INFINITY, 0, 0), 0), -INFINITY, -log(2), -log(2));
    Tensor *y = tensor_softmax(F64(SHAPE(2), INFINITY, 0), 0);
    assert_true(isnan(value(y, 0)));
}

static void test_softmax_of_a_row_of_minus_infinity_is_nan_but_0_in_attention(void **state)
{
    (void)state;
    assert_all(tensor_softmax(F64(SHAPE(2), -INFINITY, -INFINITY), 0), NAN);
    Tensor *x = wave(SHAPE(2, 3)), *mask = tensor_full(SHAPE(2, 2), -INFINITY, TENSOR_F64);
    assert_all(tensor_scaled_dot_product_attention(x, x, x, mask), 0);
}

/* ---- gates ----------------------------------------------------------------------------------- */

static void test_gumbel_softmax_draws_as_pytorch(void **state)
{
    (void)state;
    Tensor *x = F64(SHAPE(4), .5, -1, 2, 0);
    tensor_manual_seed(7);
    ASSERT_VALUES(tensor_gumbel_softmax(x, .8), 0.5081728336659453, 0.08033261826864853, 0.34947214951988875,
                  0.06202239854551723);
}

static void test_gumbel_softmax_hard_is_exact_and_has_the_soft_gradient(void **state)
{
    (void)state;
    Tensor *x = leaf(wave(SHAPE(5, 7))), *g = tensor_cos(wave(SHAPE(5, 7))), *grad[2];
    for (int hard = 0; hard < 2; hard++) {
        tensor_manual_seed(7);
        Tensor *y = tensor_gumbel_softmax(x, .tau = .3, .hard = hard);
        for (int64_t i = 0; hard && i < 35; i++) assert_true(value(y, i) == 0 || value(y, i) == 1);
        if (hard) assert_all(tensor_sum(y, 1), 1);
        grad[hard] = tensor_gradients(y, x, .grad_output = g);
    }
    assert_close(grad[0], grad[1]);
}

static void test_glu_halves(void **state)
{
    (void)state;
    ASSERT_VALUES(tensor_glu(F64(SHAPE(4), 2, -3, 0, 0)), 1, -1.5);
    assert_int_equal(tensor_size(tensor_glu(wave(SHAPE(4, 3)), 0), 0), 2);
    assert_refused(tensor_glu(wave(SHAPE(3))), TENSOR_ESHAPE);
}

/* ---- state ----------------------------------------------------------------------------------- */

static Tensor *normalised(int instance, Tensor *x, Tensor *mean, Tensor *var, Tensor *w)
{
    return instance ? tensor_instance_norm(x, mean, var, w, w)
                    : tensor_batch_norm(x, mean, var, w, w, .training = true);
}

/* A call that fails leaves the running statistics as they were, both of them; one that succeeds changes both.
 */
static void test_failed_norms_leave_the_running_statistics(void **state)
{
    (void)state;
    static const TensorDtype dtypes[][2] = { { TENSOR_F64, TENSOR_F64 },
                                             { TENSOR_F32, TENSOR_F32 },
                                             { TENSOR_F16, TENSOR_F16 },
                                             { TENSOR_F16, TENSOR_F32 } };
    for (int k = 0; k < 8; k++) {
        const TensorDtype dtype = dtypes[k / 2][1];
        Tensor *x = leaf(tensor_to(wave(SHAPE(3, 2, 4)), dtypes[k / 2][0])),
               *w = leaf(tensor_to(wave(SHAPE(2)), dtype));
        bool failed = true;
        for (int64_t n = 1; failed && n < 2000; n++) {
            TensorScope inner = tensor_scope_open();
            Tensor *mean = tensor_zeros(SHAPE(2), dtype), *var = tensor_ones(SHAPE(2), dtype);
            tensor_debug_fail_allocation(n, false);
            Tensor *y = normalised(k % 2, x, mean, var, w);
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            assert_int_equal(y == NULL, failed);
            tensor_error_clear();
            assert_int_equal(failed, tensor_equal(mean, tensor_zeros_like(mean)));
            assert_int_equal(failed, tensor_equal(var, tensor_ones_like(var)));
            tensor_scope_close(inner);
        }
        assert_false(failed);
    }
}

/* ---- dropout --------------------------------------------------------------------------------- */

typedef Tensor *(*Dropout)(TensorDropoutArgs);
static const struct {
    Dropout f;
    int rank;
} dropouts[] = { { tensor_dropout_args, 1 },       { tensor_dropout1d_args, 3 },
                 { tensor_dropout2d_args, 4 },     { tensor_dropout3d_args, 5 },
                 { tensor_alpha_dropout_args, 1 }, { tensor_feature_alpha_dropout_args, 3 } };
enum { DROPOUTS = sizeof dropouts / sizeof *dropouts };
static const int64_t sizes[] = { 8, 4, 3, 2, 2 };
static Tensor *input_of(int i) { return wave((TensorShape){ dropouts[i].rank, sizes }); }

static void test_dropout_gradient_has_the_same_mask(void **state)
{
    (void)state;
    for (int i = 0; i < DROPOUTS; i++) {
        Tensor *x = leaf(tensor_add_scalar(input_of(i), 3)),
               *y = dropouts[i].f((TensorDropoutArgs){ x, .5, true, TENSOR_FROM_DEFAULTS }),
               *g = tensor_gradients(tensor_sum(y), x);
        const bool alpha = i >= 4;
        const double a = alpha ? 1 / sqrt(.5 * (1 + .5 * 1.7580993408473766 * 1.7580993408473766)) : 2;
        for (int64_t k = 0; k < tensor_numel(x); k++) {
            const bool kept = value(g, k) != 0;
            assert_near(value(g, k), kept ? a : 0);
            const double shift = alpha ? a * .5 * 1.7580993408473766 : 0;
            assert_near(value(y, k), kept ? a * value(x, k) + shift : -shift);
        }
    }
}

static void test_dropout_of_nothing_leaves_the_generator_alone(void **state)
{
    (void)state;
    for (int i = 0; i < DROPOUTS; i++) {
        Tensor *x = input_of(i);
        assert_false(draws(dropouts[i].f, x, 0, true));
        assert_false(draws(dropouts[i].f, x, .5, false));
        assert_false(draws(dropouts[i].f, x, 1, false));
        assert_true(draws(dropouts[i].f, x, .5, true));
        assert_ptr_equal(dropouts[i].f((TensorDropoutArgs){ x, 0, true, TENSOR_FROM_DEFAULTS }), x);
        assert_ptr_equal(dropouts[i].f((TensorDropoutArgs){ x, .5, false, TENSOR_FROM_DEFAULTS }), x);
    }
}

static void test_dropout_of_everything_is_0_whatever_was_there(void **state)
{
    (void)state;
    for (int i = 0; i < DROPOUTS; i++) {
        const TensorShape shape = { dropouts[i].rank, sizes };
        Tensor *x = leaf(tensor_full(shape, i % 2 ? INFINITY : NAN, TENSOR_F64)),
               *y = dropouts[i].f((TensorDropoutArgs){ x, 1, true, TENSOR_FROM_DEFAULTS });
        assert_all(y, 0);
        assert_all(tensor_gradients(tensor_sum(y), x), 0);
    }
}

static void test_dropout_mask_is_bytes(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    Tensor *x = leaf(tensor_ones(SHAPE(N), TENSOR_F32));
    const int64_t before = tensor_tape_bytes();
    Tensor *y = tensor_dropout(x, .5, true);
    assert_non_null(y);
    assert_true(tensor_tape_bytes() - before < N + N / 2);
}

static void test_dropout_is_replayed_by_a_checkpoint(void **state)
{
    (void)state;
    for (int i = 0; i < DROPOUTS; i++) {
        Tensor *x = tensor_add_scalar(input_of(i), 3), *saved = tensor_get_rng_state(),
               *first = dropouts[i].f((TensorDropoutArgs){ x, .5, true, TENSOR_FROM_DEFAULTS });
        dropouts[i].f((TensorDropoutArgs){ x, .5, true, TENSOR_FROM_DEFAULTS });
        assert_int_equal(tensor_set_rng_state(saved), 0);
        assert_close(dropouts[i].f((TensorDropoutArgs){ x, .5, true, TENSOR_FROM_DEFAULTS }), first);
    }
}

/* Every slice behind the first `leading` dims is kept or dropped as one, and both happen. */
static void check_slices(Tensor *y, int64_t slices)
{
    Tensor *rows = tensor_reshape(y, SHAPE(slices, -1)), *dropped = tensor_eq_scalar(rows, 0);
    Tensor *all = tensor_all(dropped, 1), *any = tensor_any(dropped, 1);
    assert_int_equal(tensor_item(tensor_all(tensor_eq(all, any))), 1);
    const double count = tensor_item(tensor_sum(all));
    assert_true(count > .25 * (double)slices && count < .75 * (double)slices);
}

static void test_dropout2d_of_rank_2_drops_elements(void **state)
{
    (void)state;
    check_slices(tensor_dropout2d(tensor_ones(SHAPE(16, 16), TENSOR_F64), .5, true), 256);
    check_slices(tensor_dropout2d(tensor_ones(SHAPE(16, 16, 2, 2), TENSOR_F64), .5, true), 256);
}

static void test_dropout_channels_with_and_without_a_batch(void **state)
{
    (void)state;
    check_slices(tensor_dropout1d(tensor_ones(SHAPE(16, 16, 3), TENSOR_F64), .5, true), 256);
    check_slices(tensor_dropout1d(tensor_ones(SHAPE(128, 5), TENSOR_F64), .5, true), 128);
    check_slices(tensor_dropout3d(tensor_ones(SHAPE(16, 16, 1, 2, 2), TENSOR_F64), .5, true), 256);
    check_slices(tensor_dropout3d(tensor_ones(SHAPE(128, 2, 2, 2), TENSOR_F64), .5, true), 128);
    assert_refused(tensor_dropout1d(wave(SHAPE(3)), .5, true), TENSOR_ESHAPE);
    check_slices(tensor_dropout3d(tensor_ones(SHAPE(128, 2, 2), TENSOR_F64), .5, true), 128);
    assert_refused(tensor_dropout3d(wave(SHAPE()), .5, true), TENSOR_ESHAPE);
}

static void test_alpha_dropout_keeps_mean_and_variance(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(200000), TENSOR_F64), *y = tensor_alpha_dropout(x, .3, true);
    assert_true(fabs(tensor_item(tensor_mean(y))) < .02 && fabs(tensor_item(tensor_var(y)) - 1) < .02);
}

static void test_alpha_dropout_has_pytorchs_values(void **state)
{
    (void)state;
    const double kept = 0.4540920681370629, gone = -1.0595481589864801;
    ASSERT_VALUES(tensor_alpha_dropout(tensor_zeros(SHAPE(8), TENSOR_F64), .3, true), kept, kept, gone, kept,
                  gone, kept, kept, kept);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_batch_norm_normalises_with_biased_variance),
        TEST(test_batch_norm_running_var_is_unbiased),
        TEST(test_batch_norm_running_var_of_small_values),
        TEST(test_batch_norm_momentum_weighs_the_batch),
        TEST(test_batch_norm_refuses_one_value_for_each_channel),
        TEST(test_batch_norm_without_momentum_is_cumulative),
        TEST(test_batch_norm_counts_batches_in_training_only),
        TEST(test_batch_norm_running_statistics_are_not_on_the_tape),
        TEST(test_batch_norm_outside_training_updates_nothing),
        TEST(test_batch_norm_gradient_sums_to_0_for_each_channel),
        TEST(test_batch_norm_takes_ranks_2_to_5),
        TEST(test_batch_norm_outside_training_has_a_gradient_beside_nan),
        TEST(test_layer_norm_takes_a_weight_without_a_bias),
        TEST(test_layer_norm_eps_lies_under_the_root),
        TEST(test_layer_norm_takes_several_dims_and_no_rows),
        TEST(test_rms_norm_takes_any_eps_at_its_word),
        TEST(test_rms_norm_default_eps_is_that_of_the_computation),
        TEST(test_group_norm_is_layer_norm_of_each_group),
        TEST(test_instance_norm_refuses_one_position),
        TEST(test_instance_norm_running_statistics_are_means_over_samples),
        TEST(test_local_response_norm_window_of_even_size),
        TEST(test_softmax_subtracts_the_maximum),
        TEST(test_softmax_of_infinities),
        TEST(test_softmax_of_a_row_of_minus_infinity_is_nan_but_0_in_attention),
        TEST(test_gumbel_softmax_draws_as_pytorch),
        TEST(test_gumbel_softmax_hard_is_exact_and_has_the_soft_gradient),
        TEST(test_glu_halves),
        TEST(test_failed_norms_leave_the_running_statistics),
        TEST(test_dropout_gradient_has_the_same_mask),
        TEST(test_dropout_of_nothing_leaves_the_generator_alone),
        TEST(test_dropout_of_everything_is_0_whatever_was_there),
        TEST(test_dropout_mask_is_bytes),
        TEST(test_dropout_is_replayed_by_a_checkpoint),
        TEST(test_dropout2d_of_rank_2_drops_elements),
        TEST(test_dropout_channels_with_and_without_a_batch),
        TEST(test_alpha_dropout_keeps_mean_and_variance),
        TEST(test_alpha_dropout_has_pytorchs_values),
    };
    return cmocka_run_group_tests_name("normalisation, dropout", tests, NULL, NULL);
}
