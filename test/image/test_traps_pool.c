/* test_traps_pool.c - pooling, interpolation and grids where implementations go wrong: one test a trap.
 * Values are PyTorch's, or follow from the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>

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

#define VALUES(...) \
    (const double[]){ __VA_ARGS__ }, (int)(sizeof(const double[]){ __VA_ARGS__ } / sizeof(double))

static Tensor *leaf(Tensor *x) { return tensor_requires_grad_(tensor_detach(x), true); }
static Tensor *of(TensorShape shape, const double *v, int n)
{
    assert_int_equal(n, tensor_numel(tensor_zeros(shape, TENSOR_F64)));
    return leaf(tensor_from_data(v, shape, TENSOR_F64));
}
static Tensor *count_to(int64_t n)
{
    return leaf(tensor_reshape(tensor_to(tensor_arange(1, (double)n + 1, 1, TENSOR_F64), TENSOR_F64),
                               SHAPE(1, 1, n)));
}

static void assert_values(Tensor *x, const double *want, int n)
{
    double got[64];
    if (!x) fail_msg("%s", tensor_error());
    assert_int_equal(tensor_numel(x), n);
    assert_int_equal(tensor_copy_to(tensor_to(tensor_detach(x), TENSOR_F64), got, (size_t)n * sizeof *got),
                     0);
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) < 1e-9 || (isnan(got[i]) && isnan(want[i])) || got[i] == want[i]))
            fail_msg("element %d: %.12g, not %.12g", i, got[i], want[i]);
}

static Tensor *gradient(Tensor *y, Tensor *x)
{
    return tensor_gradients(y, x, .grad_output = tensor_ones_like(y));
}
static double dot_of(Tensor *a, Tensor *b)
{
    return tensor_item(tensor_sum(tensor_mul(tensor_detach(a), tensor_detach(b))));
}

static void assert_refused(Tensor *y, TensorStatus code)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

/* ---- max pools ------------------------------------------------------------------------------- */

static void test_max_pool_padding_is_minus_infinity(void **state)
{
    (void)state;
    Tensor *below = tensor_full(SHAPE(1, 2, 3), -5, TENSOR_F64),
           *cube = tensor_full(SHAPE(1, 2, 2, 2), -5, TENSOR_F64);
    assert_values(tensor_max_pool1d(tensor_select(below, 1, 0), 3, 1, 1), VALUES(-5, -5, -5));
    assert_values(tensor_max_pool2d(below, 3, 2, 1), VALUES(-5, -5));
    assert_values(tensor_max_pool3d(cube, 2, 2, 1), VALUES(-5, -5, -5, -5, -5, -5, -5, -5));
}

static void test_max_pool_nan_wins(void **state)
{
    (void)state;
    Tensor *at, *x = of(SHAPE(1, 1, 6), VALUES(1, NAN, 7, 3, 9, 2));
    assert_values(tensor_max_pool1d(x, 3, .indices = &at), VALUES(NAN, 9));
    assert_values(at, VALUES(1, 4));
    assert_values(tensor_adaptive_max_pool1d(x, SHAPE(2), &at), VALUES(NAN, 9));
    assert_values(at, VALUES(1, 4));
    Tensor *cube = tensor_reshape(of(SHAPE(8), VALUES(1, 2, 3, NAN, INFINITY, 6, 7, 8)), SHAPE(1, 2, 2, 2));
    assert_values(tensor_max_pool3d(cube, 2, .indices = &at), VALUES(NAN));
    assert_values(at, VALUES(3));
}

static void test_max_pool_ties_go_to_the_first_in_window_order(void **state)
{
    (void)state;
    Tensor *at, *x = of(SHAPE(1, 2, 2, 2), VALUES(0, 4, 4, 4, 4, 0, 4, 4));
    Tensor *y = tensor_max_pool3d(x, 2, .indices = &at);
    assert_values(at, VALUES(1));
    assert_values(gradient(y, x), VALUES(0, 1, 0, 0, 0, 0, 0, 0));
    y = tensor_adaptive_max_pool3d(x, SHAPE(1), &at);
    assert_values(at, VALUES(1));
    assert_values(gradient(y, x), VALUES(0, 1, 0, 0, 0, 0, 0, 0));
}

static void test_max_pool_ceil_mode_drops_windows_that_begin_in_the_right_padding(void **state)
{
    (void)state;
    assert_values(tensor_max_pool1d(count_to(6), 2, 2, 1, .ceil_mode = true), VALUES(1, 3, 5, 6));
    assert_values(tensor_max_pool1d(tensor_narrow(count_to(6), 2, 0, 4), 2, 3, .ceil_mode = true),
                  VALUES(2, 4));
    assert_values(tensor_max_pool1d(tensor_narrow(count_to(6), 2, 0, 5), 2, 3, 1, .ceil_mode = true),
                  VALUES(1, 4));
    assert_values(tensor_avg_pool1d(count_to(6), 4, .ceil_mode = true), VALUES(2.5, 5.5));
}

static void test_max_pool_dilation(void **state)
{
    (void)state;
    Tensor *at;
    assert_values(tensor_max_pool1d(count_to(6), 2, 1, .dilation = 2, .indices = &at), VALUES(3, 4, 5, 6));
    assert_values(at, VALUES(2, 3, 4, 5));
    Tensor *x = tensor_reshape(count_to(27), SHAPE(1, 3, 3, 3));
    assert_values(tensor_max_pool3d(x, 2, 1, .dilations = { 2, 2, 1 }, .indices = &at), VALUES(26, 27));
    assert_values(at, VALUES(25, 26));
}

static void test_pool_padding_is_at_most_half_of_the_kernel(void **state)
{
    (void)state;
    assert_refused(tensor_max_pool1d(count_to(6), 3, 1, 2), TENSOR_EVALUE);
    assert_refused(tensor_avg_pool1d(count_to(6), 2, 1, 2), TENSOR_EVALUE);
    assert_refused(tensor_max_pool3d(tensor_zeros(SHAPE(1, 4, 4, 4), TENSOR_F32), .kernel_sizes = { 2, 2, 1 },
                                     .paddings = { 1, 1, 1 }),
                   TENSOR_EVALUE);
    assert_non_null(tensor_max_pool1d(count_to(6), 3, 1, 1));
}

static void test_max_pool_overlapping_windows_add_their_gradients(void **state)
{
    (void)state;
    Tensor *x = of(SHAPE(1, 1, 5), VALUES(0, 1, 9, 1, 0));
    assert_values(gradient(tensor_max_pool1d(x, 3, 1), x), VALUES(0, 0, 3, 0, 0));
    Tensor *cube = leaf(tensor_reshape(count_to(27), SHAPE(1, 3, 3, 3)));
    Tensor *g = gradient(tensor_max_pool3d(cube, 2, 1, 1), cube);
    assert_true(tensor_item(tensor_sum(g)) == 64);
    assert_true(tensor_item(tensor_select(tensor_flatten(g, 0, -1), 0, 26)) == 8);
}

static void test_max_unpool_undoes_max_pool(void **state)
{
    (void)state;
    Tensor *at, *x = of(SHAPE(1, 1, 5), VALUES(3, 1, 4, 1, 5)), *y = tensor_max_pool1d(x, 2, .indices = &at);
    assert_values(tensor_max_unpool1d(y, at, 2), VALUES(3, 0, 4, 0));
    assert_values(tensor_max_unpool1d(y, at, 2, .output_size = SHAPE(5)), VALUES(3, 0, 4, 0, 0));
    assert_refused(tensor_max_unpool1d(y, at, 2, .output_size = SHAPE(6)), TENSOR_ESHAPE);
    Tensor *image = tensor_rand(SHAPE(2, 3, 6, 8), TENSOR_F64),
           *small = tensor_max_pool2d(image, .kernel_sizes = { 2, 4 }, .indices = &at);
    Tensor *back = tensor_max_unpool2d(small, at, .kernel_sizes = { 2, 4 });
    assert_true(tensor_allclose(tensor_max_pool2d(back, .kernel_sizes = { 2, 4 }), small, 0, 0, false));
}

/* More than a million in a line, forward and backward. */
static void test_pools_take_long_lines(void **state)
{
    (void)state;
    const int64_t n = 1100000;
    Tensor *x = leaf(tensor_ones(SHAPE(1, 1, n), TENSOR_F32));
    assert_true(tensor_item(tensor_sum(gradient(tensor_avg_pool1d(x, 2), x))) == (double)n / 2);
    assert_true(tensor_item(tensor_sum(gradient(tensor_max_pool1d(x, 2), x))) == (double)n / 2);
    assert_true(tensor_item(tensor_sum(gradient(tensor_interpolate(x, .scale_factor = 2), x))) ==
                (double)n * 2);
    assert_true(tensor_item(tensor_sum(tensor_adaptive_avg_pool1d(x, SHAPE(n + 1)))) == (double)n + 1);
}

/* ---- average pools --------------------------------------------------------------------------- */

static void test_avg_pool_count_include_pad(void **state)
{
    (void)state;
    Tensor *x = tensor_narrow(count_to(6), 2, 0, 5);
    assert_values(tensor_avg_pool1d(x, 3, 2, 1), VALUES(1, 3, 3));
    assert_values(tensor_avg_pool1d(x, 3, 2, 1, .count_include_pad = false), VALUES(1.5, 3, 4.5));
    Tensor *ones = tensor_ones(SHAPE(1, 2, 2, 2), TENSOR_F64);
    assert_values(tensor_avg_pool3d(ones, 2, 2, 1), VALUES(.125, .125, .125, .125, .125, .125, .125, .125));
    assert_values(tensor_avg_pool3d(ones, 2, 2, 1, .count_include_pad = false),
                  VALUES(1, 1, 1, 1, 1, 1, 1, 1));
}

static void test_avg_pool_divisor_override(void **state)
{
    (void)state;
    Tensor *x = of(SHAPE(1, 2, 3), VALUES(1, 2, 3, 4, 5, 6));
    Tensor *y = tensor_avg_pool2d(x, 2, .divisor_override = 3);
    assert_values(y, VALUES(4));
    assert_values(gradient(y, x), VALUES(1. / 3, 1. / 3, 0, 1. / 3, 1. / 3, 0));
    assert_values(tensor_avg_pool3d(tensor_ones(SHAPE(1, 2, 2, 2), TENSOR_F64), 2, .divisor_override = 4),
                  VALUES(2));
}

/* The padding after the input counts, what lies beyond it does not. */
static void test_avg_pool_ceil_mode_divisor_at_the_edge(void **state)
{
    (void)state;
    assert_values(tensor_avg_pool1d(count_to(6), 4, 4, 2, .ceil_mode = true), VALUES(.75, 4.5));
    assert_values(tensor_avg_pool1d(count_to(6), 4, 4, 2, .ceil_mode = true, .count_include_pad = false),
                  VALUES(1.5, 4.5));
    assert_values(tensor_avg_pool1d(count_to(6), 3, 2, 1, .ceil_mode = true), VALUES(1, 3, 5, 3));
}

static void test_adaptive_pool_windows_are_floor_to_ceil(void **state)
{
    (void)state;
    Tensor *x = count_to(6);
    assert_values(tensor_adaptive_avg_pool1d(x, SHAPE(4)),
                  VALUES(1.5, 2.5, 4.5, 5.5)); /* [0, 2) [1, 3) [3, 5) [4, 6) */
    assert_values(tensor_adaptive_max_pool1d(x, SHAPE(4)), VALUES(2, 3, 5, 6));
    assert_values(gradient(tensor_adaptive_avg_pool1d(x, SHAPE(4)), x), VALUES(.5, 1, .5, .5, 1, .5));
    Tensor *infinite = of(SHAPE(1, 1, 5), VALUES(INFINITY, 1, 2, 3, NAN));
    assert_values(tensor_adaptive_avg_pool1d(infinite, SHAPE(3)),
                  VALUES(INFINITY, 2, NAN)); /* only windows that hold them */
}

static void test_lp_pool_of_negative_sums(void **state)
{
    (void)state;
    assert_values(tensor_lp_pool1d(count_to(6), 2, 2), VALUES(sqrt(5), 5, sqrt(61)));
    assert_values(tensor_lp_pool1d(tensor_neg(count_to(6)), INFINITY, 2), VALUES(2, 4, 6));
    assert_values(tensor_lp_pool1d(of(SHAPE(1, 1, 4), VALUES(-1, -2, 3, 1)), 3, 2), VALUES(NAN, cbrt(28)));
}

/* ---- interpolate ----------------------------------------------------------------------------- */

static Tensor *powers(void) { return of(SHAPE(1, 1, 4), VALUES(1, 2, 4, 8)); }

static void test_interpolate_align_corners(void **state)
{
    (void)state;
    assert_values(tensor_interpolate(powers(), SHAPE(7), .mode = TENSOR_LINEAR),
                  VALUES(1, 1 + 5. / 14, 2 - 1. / 14, 3, 4 + 2. / 7, 6 + 4. / 7, 8));
    assert_values(tensor_interpolate(powers(), SHAPE(7), .mode = TENSOR_LINEAR, .align_corners = true),
                  VALUES(1, 1.5, 2, 3, 4, 6, 8));
    assert_values(tensor_interpolate(powers(), SHAPE(1), .mode = TENSOR_LINEAR, .align_corners = true),
                  VALUES(1));
    assert_refused(tensor_interpolate(powers(), SHAPE(7), .align_corners = true), TENSOR_EVALUE);
    assert_refused(tensor_interpolate(powers(), SHAPE(7), .mode = TENSOR_AREA, .align_corners = true),
                   TENSOR_EVALUE);
}

static void test_interpolate_uses_the_scale_that_was_given(void **state)
{
    (void)state;
    Tensor *sizes = tensor_interpolate(powers(), SHAPE(7), .mode = TENSOR_LINEAR);
    assert_values(tensor_interpolate(powers(), .scale_factor = 1.8, .mode = TENSOR_LINEAR),
                  VALUES(1, 4. / 3, 17. / 9, 26. / 9, 4, 56. / 9, 8));
    Tensor *again = tensor_interpolate(powers(), .scale_factor = 1.8, .mode = TENSOR_LINEAR,
                                       .recompute_scale_factor = true);
    assert_true(tensor_equal(tensor_detach(again), tensor_detach(sizes)));
    assert_refused(tensor_interpolate(powers(), SHAPE(7), .scale_factor = 2), TENSOR_EVALUE);
    assert_refused(tensor_interpolate(powers()), TENSOR_EVALUE);
    assert_refused(tensor_interpolate(powers(), SHAPE(7), .recompute_scale_factor = true), TENSOR_EVALUE);
}

/* 23 * 14 / 46 is 7, and 23 * (14 / 46) a little less in f32. */
static void test_interpolate_nearest_positions_are_f32(void **state)
{
    (void)state;
    Tensor *y = tensor_interpolate(tensor_to(count_to(14), TENSOR_F32), SHAPE(46));
    assert_true(tensor_item(tensor_select(tensor_flatten(y, 0, -1), 0, 23)) == 7);
    assert_values(tensor_interpolate(powers(), SHAPE(3)), VALUES(1, 2, 4));
    assert_values(tensor_upsample(powers(), SHAPE(3), .mode = TENSOR_NEAREST_EXACT), VALUES(1, 4, 8));
    assert_values(tensor_interpolate(powers(), SHAPE(3), .mode = TENSOR_AREA), VALUES(1.5, 3, 6));
}

static void test_interpolate_bicubic_has_a_of_minus_three_quarters(void **state)
{
    (void)state;
    Tensor *x = of(SHAPE(1, 1, 1, 6), VALUES(0, 0, 1, 0, 0, 0));
    Tensor *y = tensor_interpolate(x, SHAPE(1, 12), .mode = TENSOR_BICUBIC);
    assert_values(y, VALUES(0, -.03515625, -.10546875, .26171875, .87890625, .87890625, .26171875, -.10546875,
                            -.03515625, 0, 0, 0));
}

static void test_interpolate_antialias_covers_what_an_element_stands_for(void **state)
{
    (void)state;
    Tensor *x = tensor_expand(of(SHAPE(1, 1, 1, 8), VALUES(0, 0, 1, 0, 0, 0, 0, 0)), SHAPE(1, 1, 2, 8));
    const TensorShape to = SHAPE(2, 3);
    Tensor *row = tensor_select(tensor_interpolate(x, to, .mode = TENSOR_BILINEAR, .antialias = true), 2, 0);
    assert_values(row, VALUES(4.5 / 19, 1. / 6, 0));
    row = tensor_select(tensor_interpolate(x, to, .mode = TENSOR_BILINEAR), 2, 0);
    assert_values(row, VALUES(0, 0, 0));
    row = tensor_select(tensor_interpolate(x, to, .mode = TENSOR_BICUBIC, .antialias = true), 2, 0);
    assert_true(fabs(tensor_item(tensor_flatten(tensor_narrow(row, 2, 0, 1), 0, -1)) - .261351871) <
                1e-8); /* a = -0.5 */
}

static void test_interpolate_modes_have_their_ranks(void **state)
{
    (void)state;
    assert_refused(tensor_interpolate(powers(), SHAPE(7), .mode = TENSOR_BILINEAR), TENSOR_ESHAPE);
    assert_refused(
        tensor_interpolate(tensor_zeros(SHAPE(1, 1, 2, 2), TENSOR_F32), SHAPE(7), .mode = TENSOR_TRILINEAR),
        TENSOR_ESHAPE);
    assert_refused(tensor_interpolate(powers(), SHAPE(7), .mode = TENSOR_LINEAR, .antialias = true),
                   TENSOR_EVALUE);
    assert_int_equal(tensor_ndim(tensor_interpolate(tensor_zeros(SHAPE(1, 1, 2, 2, 2), TENSOR_F32),
                                                    .scale_factors = { 1, 2, 3 })),
                     5);
}

/* ---- grids ----------------------------------------------------------------------------------- */

/* The derivative jumps at a pixel's center: it is that towards the next one. */
static void test_grid_sample_gradient_at_integer_coordinates(void **state)
{
    (void)state;
    Tensor *x = of(SHAPE(1, 1, 3, 3), VALUES(1, 2, 4, 8, 16, 32, 64, 128, 256)),
           *middle = of(SHAPE(1, 1, 1, 2), VALUES(0, 0));
    Tensor *y = tensor_grid_sample(x, middle, .align_corners = true);
    assert_values(y, VALUES(16));
    assert_values(gradient(y, middle), VALUES(16, 112));
    assert_values(gradient(tensor_grid_sample(x, middle), middle), VALUES(24, 168));
    assert_values(gradient(tensor_grid_sample(x, middle, .mode = TENSOR_NEAREST), middle), VALUES(0, 0));
}

static void test_grid_sample_clipped_coordinates_have_no_gradient(void **state)
{
    (void)state;
    Tensor *x = of(SHAPE(1, 1, 3, 3), VALUES(1, 2, 4, 8, 16, 32, 64, 128, 256)),
           *outside = of(SHAPE(1, 1, 2, 2), VALUES(1, 1, 3, 3));
    Tensor *y = tensor_grid_sample(x, outside, .align_corners = true);
    assert_values(y, VALUES(256, 0));
    assert_values(gradient(y, outside), VALUES(-256, -256, 0, 0));
    y = tensor_grid_sample(x, outside, .padding_mode = TENSOR_GRID_BORDER, .align_corners = true);
    assert_values(y, VALUES(256, 256));
    assert_values(gradient(y, outside), VALUES(0, 0, 0, 0));
    y = tensor_grid_sample(x, outside, .padding_mode = TENSOR_GRID_REFLECTION, .align_corners = true);
    assert_values(y, VALUES(256, 1));
    assert_values(gradient(y, outside), VALUES(0, 0, 0, 0));
}

static void test_grid_sample_nan_and_far_positions_read_nothing_outside(void **state)
{
    (void)state;
    Tensor *x = tensor_ones(SHAPE(1, 1, 3, 3), TENSOR_F64),
           *grid = of(SHAPE(1, 1, 3, 2), VALUES(NAN, 0, 1e300, INFINITY, -1e18, 1e18));
    for (int mode = 0; mode < 3; mode++)
        for (int padding = 0; padding < 3; padding++) {
            Tensor *y = tensor_grid_sample(
                x, grid,
                .mode = (TensorInterpolation[]){ TENSOR_NEAREST, TENSOR_BILINEAR, TENSOR_BICUBIC }[mode],
                .padding_mode = (TensorGridPadding)padding);
            assert_non_null(y);
            assert_non_null(gradient(y, grid));
        }
    assert_values(tensor_narrow(tensor_grid_sample(x, grid, .padding_mode = TENSOR_GRID_BORDER), 3, 0, 1),
                  VALUES(1)); /* NaN is -1 */
}

static void test_identity_affine_grid_reads_the_image(void **state)
{
    (void)state;
    for (int align = 0; align < 2; align++) {
        Tensor *flat = tensor_reshape(of(SHAPE(6), VALUES(1, 0, 0, 0, 1, 0)), SHAPE(1, 2, 3)),
               *x = tensor_rand(SHAPE(1, 2, 4, 5), TENSOR_F64);
        Tensor *grid = tensor_affine_grid(flat, SHAPE(1, 2, 4, 5), align);
        assert_true(tensor_allclose(tensor_detach(tensor_grid_sample(x, grid, .align_corners = align)), x,
                                    1e-12, 1e-12, false));
        Tensor *deep =
            tensor_reshape(of(SHAPE(12), VALUES(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)), SHAPE(1, 3, 4));
        x = tensor_rand(SHAPE(1, 2, 4, 5, 3), TENSOR_F64),
        grid = tensor_affine_grid(deep, SHAPE(1, 2, 4, 5, 3), align);
        assert_true(tensor_allclose(tensor_detach(tensor_grid_sample(x, grid, .align_corners = align)), x,
                                    1e-12, 1e-12, false));
    }
}

/* A place that is named twice holds the last value; each of its values gets its gradient, as in PyTorch. */
static void test_max_unpool_of_a_place_named_twice(void **state)
{
    (void)state;
    Tensor *y = of(SHAPE(1, 1, 3), VALUES(3, 4, 5)),
           *at = tensor_from_data((const int64_t[]){ 1, 4, 1 }, SHAPE(1, 1, 3), TENSOR_I64);
    Tensor *x = tensor_max_unpool1d(y, at, 2);
    assert_values(x, VALUES(0, 5, 0, 0, 4, 0));
    Tensor *g = of(SHAPE(1, 1, 6), VALUES(10, 20, 30, 40, 50, 60));
    assert_values(tensor_gradients(x, y, .grad_output = g), VALUES(20, 50, 20));
}

static void test_adaptive_pools_keep_a_direction(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(2, 3, 4, 6), TENSOR_F64), *at;
    Tensor *y = tensor_adaptive_avg_pool2d(x, SHAPE(TENSOR_KEEP, 2));
    assert_true(tensor_equal(y, tensor_adaptive_avg_pool2d(x, SHAPE(4, 2))));
    assert_true(
        tensor_equal(tensor_adaptive_avg_pool2d(x, SHAPE(2)), tensor_adaptive_avg_pool2d(x, SHAPE(2, 2))));
    y = tensor_adaptive_max_pool2d(x, SHAPE(TENSOR_KEEP), &at);
    assert_true(tensor_equal(y, x));
    assert_false(tensor_shares_storage(y, x));
    assert_int_equal(tensor_get(at, DIMS(1, 2, 3, 5)), 23);
    assert_refused(tensor_adaptive_avg_pool2d(x, SHAPE(1, 1, 1)), TENSOR_EVALUE);
    assert_refused(tensor_adaptive_avg_pool2d(x, SHAPE(-1, 1)), TENSOR_EVALUE);
}

static void test_shuffles_of_nothing_copy(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(2, 4, 3, 3), TENSOR_F32);
    Tensor *const y[] = { tensor_pixel_shuffle(x, 1), tensor_pixel_unshuffle(x, 1),
                          tensor_channel_shuffle(x, 1), tensor_channel_shuffle(x, 4) };
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
        assert_true(tensor_equal(y[i], x));
        assert_false(tensor_shares_storage(y[i], x));
    }
}

static void test_pools_of_integers(void **state)
{
    (void)state;
    const int64_t big = INT64_C(1) << 60;
    Tensor *x =
               tensor_from_data((const int64_t[]){ big, big + 1, -3, -4, -8, 9 }, SHAPE(1, 1, 6), TENSOR_I64),
           *at;
    Tensor *y = tensor_max_pool1d(x, 2, .indices = &at);
    assert_true(
        tensor_equal(y, tensor_from_data((const int64_t[]){ big + 1, -3, 9 }, SHAPE(1, 1, 3), TENSOR_I64)));
    assert_true(tensor_equal(at, tensor_from_data((const int64_t[]){ 1, 2, 5 }, SHAPE(1, 1, 3), TENSOR_I64)));
    y = tensor_avg_pool1d(x, 2);
    assert_true(
        tensor_equal(y, tensor_from_data((const int64_t[]){ big, -3, 0 }, SHAPE(1, 1, 3), TENSOR_I64)));
    y = tensor_max_pool1d(tensor_to(tensor_narrow(x, 2, 2, 4), TENSOR_U8), 3, 1, 1);
    assert_values(y, VALUES(253, 253, 252, 248));
    assert_refused(tensor_max_pool1d(tensor_to(x, TENSOR_BOOL), 2), TENSOR_EDTYPE);
    assert_refused(tensor_avg_pool1d(tensor_to(x, TENSOR_I32), 2), TENSOR_EDTYPE);
}

static void test_pixel_unshuffle_inverts_pixel_shuffle(void **state)
{
    (void)state;
    Tensor *x = tensor_rand(SHAPE(2, 18, 3, 4), TENSOR_F32);
    assert_true(tensor_equal(tensor_pixel_unshuffle(tensor_pixel_shuffle(x, 3), 3), x));
}

/* ---- identities ------------------------------------------------------------------------------ */

typedef Tensor *Linear(Tensor *x);
static Tensor *avg1(Tensor *x)
{
    return tensor_avg_pool1d(tensor_flatten(x, 2, -1), 5, 3, 2, .ceil_mode = true);
}
static Tensor *avg2(Tensor *x)
{
    return tensor_avg_pool2d(tensor_flatten(x, 2, 3), 3, 2, 1, .ceil_mode = true, .count_include_pad = false);
}
static Tensor *avg3(Tensor *x)
{
    return tensor_avg_pool3d(x, .kernel_sizes = { 2, 3, 4 }, .strides = { 1, 2, 3 }, .padding = 1,
                             .divisor_override = 7);
}
static Tensor *adaptive1(Tensor *x)
{
    return tensor_adaptive_avg_pool1d(tensor_flatten(x, 2, -1), SHAPE(50));
}
static Tensor *adaptive2(Tensor *x)
{
    return tensor_adaptive_avg_pool2d(tensor_flatten(x, 2, 3), SHAPE(7, 4));
}
static Tensor *adaptive3(Tensor *x) { return tensor_adaptive_avg_pool3d(x, SHAPE(3, 8, 2)); }
static Tensor *nearest3(Tensor *x) { return tensor_interpolate(x, SHAPE(3, 11, 20)); }
static Tensor *exact2(Tensor *x)
{
    return tensor_interpolate(tensor_flatten(x, 2, 3), SHAPE(41, 5), .mode = TENSOR_NEAREST_EXACT);
}
static Tensor *linear1(Tensor *x)
{
    return tensor_interpolate(tensor_flatten(x, 2, -1), .scale_factor = 1.37, .mode = TENSOR_LINEAR);
}
static Tensor *bilinear(Tensor *x)
{
    return tensor_interpolate(tensor_flatten(x, 2, 3), SHAPE(50, 4), .mode = TENSOR_BILINEAR,
                              .align_corners = true);
}
static Tensor *trilinear(Tensor *x)
{
    return tensor_interpolate(x, SHAPE(9, 3, 14), .mode = TENSOR_TRILINEAR);
}
static Tensor *bicubic(Tensor *x)
{
    return tensor_interpolate(tensor_flatten(x, 2, 3), SHAPE(21, 33), .mode = TENSOR_BICUBIC);
}
static Tensor *smooth(Tensor *x)
{
    return tensor_interpolate(tensor_flatten(x, 2, 3), SHAPE(11, 30), .mode = TENSOR_BICUBIC,
                              .antialias = true);
}
static Tensor *area(Tensor *x) { return tensor_interpolate(x, SHAPE(2, 3, 5), .mode = TENSOR_AREA); }

static Linear *const linear[] = { avg1,   avg2,    avg3,     adaptive1, adaptive2, adaptive3, nearest3,
                                  exact2, linear1, bilinear, trilinear, bicubic,   smooth,    area };
enum { LINEAR = sizeof linear / sizeof *linear };

/* <A x, y> = <x, A^T y>, where A^T is the backward. */
static void test_adjoints_of_linear_pools_and_interpolate(void **state)
{
    (void)state;
    for (int i = 0; i < LINEAR; i++) {
        Tensor *x = leaf(tensor_randn(SHAPE(2, 3, 4, 7, 9), TENSOR_F64)), *y = linear[i](x),
               *v = y ? tensor_randn_like(y) : NULL;
        if (!v) fail_msg("%d: %s", i, tensor_error());
        double a = dot_of(y, v), b = dot_of(x, tensor_gradients(y, x, .grad_output = v));
        if (!(fabs(a - b) <= 1e-13 * (1 + fabs(a)) * (double)tensor_numel(y)))
            fail_msg("%d: %.17g and %.17g", i, a, b);
    }
}

static void both_bits(Linear *f, Tensor *x, int i)
{
    void *bytes[2][2];
    size_t size[2];
    for (int threads = 1; threads <= 2; threads++) {
        tensor_set_num_threads(threads);
        Tensor *in = leaf(x), *y = f(in), *g = y ? gradient(y, in) : NULL;
        if (!g) fail_msg("%d: %s", i, tensor_error());
        y = tensor_contiguous(tensor_detach(y)), g = tensor_contiguous(g);
        bytes[0][threads - 1] = tensor_data(y), bytes[1][threads - 1] = tensor_data(g);
        size[0] = (size_t)tensor_numel(y) * 4, size[1] = (size_t)tensor_numel(g) * 4;
    }
    for (int k = 0; k < 2; k++)
        if (memcmp(bytes[k][0], bytes[k][1], size[k]) != 0) fail_msg("%d: other bits with two threads", i);
}

static Tensor *max3(Tensor *x) { return tensor_max_pool3d(x, 3, 1, 1); }
static Tensor *adaptive_max3(Tensor *x) { return tensor_adaptive_max_pool3d(x, SHAPE(3, 8, 5)); }
static Tensor *unpool(Tensor *x)
{
    Tensor *at, *y = tensor_max_pool2d(tensor_flatten(x, 2, 3), 2, .indices = &at);
    return tensor_max_unpool2d(y, at, 2);
}
static Tensor *at_grid(Tensor *x)
{
    tensor_manual_seed(4);
    Tensor *grid = tensor_mul_scalar(tensor_randn(SHAPE(tensor_size(x, 0), 3, 40, 50, 3), TENSOR_F32), 0.5);
    return tensor_grid_sample(x, grid, .padding_mode = TENSOR_GRID_REFLECTION);
}

/* PyTorch has no deterministic backward for most of these on a GPU. */
static void test_pools_and_resampling_are_deterministic(void **state)
{
    (void)state;
    Linear *const more[] = { max3, adaptive_max3, unpool, at_grid };
    const int before = tensor_num_threads();
    Tensor *x = tensor_randn(SHAPE(2, 6, 8, 24, 22), TENSOR_F32);
    for (int i = 0; i < LINEAR + 4; i++) {
        TensorScope inner = tensor_scope_open();
        both_bits(i < LINEAR ? linear[i] : more[i - LINEAR], x, i);
        tensor_scope_close(inner);
    }
    tensor_set_num_threads(before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_max_pool_padding_is_minus_infinity),
        TEST(test_max_pool_nan_wins),
        TEST(test_max_pool_ties_go_to_the_first_in_window_order),
        TEST(test_max_pool_ceil_mode_drops_windows_that_begin_in_the_right_padding),
        TEST(test_max_pool_dilation),
        TEST(test_pool_padding_is_at_most_half_of_the_kernel),
        TEST(test_max_pool_overlapping_windows_add_their_gradients),
        TEST(test_max_unpool_undoes_max_pool),
        TEST(test_pools_take_long_lines),
        TEST(test_avg_pool_count_include_pad),
        TEST(test_avg_pool_divisor_override),
        TEST(test_avg_pool_ceil_mode_divisor_at_the_edge),
        TEST(test_adaptive_pool_windows_are_floor_to_ceil),
        TEST(test_lp_pool_of_negative_sums),
        TEST(test_interpolate_align_corners),
        TEST(test_interpolate_uses_the_scale_that_was_given),
        TEST(test_interpolate_nearest_positions_are_f32),
        TEST(test_interpolate_bicubic_has_a_of_minus_three_quarters),
        TEST(test_interpolate_antialias_covers_what_an_element_stands_for),
        TEST(test_interpolate_modes_have_their_ranks),
        TEST(test_grid_sample_gradient_at_integer_coordinates),
        TEST(test_grid_sample_clipped_coordinates_have_no_gradient),
        TEST(test_grid_sample_nan_and_far_positions_read_nothing_outside),
        TEST(test_identity_affine_grid_reads_the_image),
        TEST(test_pixel_unshuffle_inverts_pixel_shuffle),
        TEST(test_max_unpool_of_a_place_named_twice),
        TEST(test_adaptive_pools_keep_a_direction),
        TEST(test_shuffles_of_nothing_copy),
        TEST(test_pools_of_integers),
        TEST(test_adjoints_of_linear_pools_and_interpolate),
        TEST(test_pools_and_resampling_are_deterministic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
