/* test_conv.c - what the samples of convolution, pooling, normalisation and dropout cannot show: random
 * geometries against the definition, gradients by adjoint identities, the same bits on any number of threads,
 * NaN and ties, running statistics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
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

static uint64_t seed = 5;
static int64_t pick(int64_t lo, int64_t hi)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

static double dot_of(Tensor *a, Tensor *b) { return tensor_item(tensor_sum(tensor_mul(a, b))); }
static Tensor *leaf(Tensor *x) { return tensor_requires_grad_(tensor_detach(x), true); }

static void assert_near(double a, double b, const char *what)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(a) + fabs(b)))) fail_msg("%s: %.17g and %.17g", what, a, b);
}

static void assert_same_bits(Tensor *a, Tensor *b, const char *what)
{
    size_t bytes = (size_t)tensor_numel(a) * tensor_dtype_size(tensor_dtype(a));
    if (memcmp(tensor_data(tensor_contiguous(a)), tensor_data(tensor_contiguous(b)), bytes) != 0)
        fail_msg("%s: other bits", what);
}

/* ---- convolution against its definition ------------------------------------------------------ */

typedef struct Geometry {
    int64_t n, in, out, h, w, kh, kw, groups, stride[2], pad[2], dilation[2];
} Geometry;

static Geometry random_geometry(void)
{
    Geometry g = { .n = pick(1, 3),
                   .kh = pick(1, 4),
                   .kw = pick(1, 3),
                   .stride = { pick(1, 3), pick(1, 2) },
                   .pad = { pick(0, 3), pick(0, 2) },
                   .dilation = { pick(1, 2), pick(1, 3) } };
    const int64_t kind = pick(0, 3), each = pick(1, 3);
    g.groups = kind ? 1 : pick(2, 4);
    g.in = kind ? each : pick(0, 1) ? g.groups : each * g.groups;
    g.out = kind ? pick(1, 5) : g.groups * pick(1, 2);
    if (kind == 1) g.kh = g.kw = 1, g.pad[0] = g.pad[1] = 0, g.stride[0] = g.stride[1] = 1;
    if (kind == 2) g.stride[0] = g.stride[1] = 1;
    g.h = g.dilation[0] * (g.kh - 1) + 1 + pick(0, 9), g.w = g.dilation[1] * (g.kw - 1) + 1 + pick(0, 17);
    return g;
}

static int64_t result_size(int64_t size, int64_t pad, int64_t dilation, int64_t kernel, int64_t stride)
{
    return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
}

/* Seven loops over dense f64. */
static Tensor *definition(const Geometry *g, Tensor *x, Tensor *w)
{
    const int64_t oh = result_size(g->h, g->pad[0], g->dilation[0], g->kh, g->stride[0]),
                  in = g->in / g->groups, out = g->out / g->groups;
    const int64_t ow = result_size(g->w, g->pad[1], g->dilation[1], g->kw, g->stride[1]);
    Tensor *y = tensor_zeros(SHAPE(g->n, g->out, oh, ow), TENSOR_F64);
    const double *a = tensor_data(x), *b = tensor_data(w);
    double *c = tensor_data(y);
    for (int64_t t = 0; t < tensor_numel(y); t++) {
        const int64_t j = t % ow, i = t / ow % oh, o = t / ow / oh % g->out, n = t / ow / oh / g->out;
        for (int64_t k = 0; k < in * g->kh * g->kw; k++) {
            const int64_t s = k % g->kw, r = k / g->kw % g->kh, ch = k / g->kw / g->kh + o / out * in;
            const int64_t row = i * g->stride[0] + r * g->dilation[0] - g->pad[0],
                          col = j * g->stride[1] + s * g->dilation[1] - g->pad[1];
            if (row >= 0 && row < g->h && col >= 0 && col < g->w)
                c[t] += b[o * in * g->kh * g->kw + k] * a[((n * g->in + ch) * g->h + row) * g->w + col];
        }
    }
    return y;
}

static Tensor *conv(const Geometry *g, Tensor *x, Tensor *w, Tensor *b)
{
    Tensor *y =
        tensor_conv2d(x, w, b, .groups = g->groups, .strides = { g->stride[0], g->stride[1] },
                      .paddings = { g->pad[0], g->pad[1] }, .dilations = { g->dilation[0], g->dilation[1] });
    if (!y) fail_msg("%s", tensor_error());
    return y;
}

/* <conv(u, w), g> = <u, dx>, <conv(x, v), g> = <v, dw>, db = the sum of g over all but channels. */
static void check_adjoint(const Geometry *geometry, Tensor *x, Tensor *w, bool recorded)
{
    Tensor *b = tensor_randn(SHAPE(geometry->out), TENSOR_F64), *in[3] = { leaf(x), leaf(w), leaf(b) },
           *grad[3];
    Tensor *y = conv(geometry, in[0], in[1], in[2]), *g = tensor_randn(tensor_shape(y), TENSOR_F64);
    Tensor *u = tensor_randn_like(x), *v = tensor_randn_like(w);
    if (tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 3), grad, .grad_outputs = TENSORS(g),
                              .create_graph = recorded))
        fail_msg("%s", tensor_error());
    assert_near(dot_of(conv(geometry, u, w, NULL), g), dot_of(u, grad[0]), "dx");
    assert_near(dot_of(conv(geometry, x, v, NULL), g), dot_of(v, grad[1]), "dw");
    assert_true(tensor_allclose(grad[2], tensor_sum(g, .dims = DIMS(0, 2, 3)), 1e-10, 1e-10, false));
}

static void random_convolutions(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++) {
        TensorScope inner = tensor_scope_open();
        const Geometry g = random_geometry();
        Tensor *x = tensor_randn(SHAPE(g.n, g.in, g.h, g.w), TENSOR_F64),
               *w = tensor_randn(SHAPE(g.out, g.in / g.groups, g.kh, g.kw), TENSOR_F64);
        Tensor *y = conv(&g, x, w, NULL), *want = definition(&g, x, w);
        if (!tensor_allclose(y, want, 1e-11, 1e-11, false))
            fail_msg("geometry %d: not what the definition gives", i);
        Tensor *narrow = conv(&g, tensor_to(x, TENSOR_F32), tensor_to(w, TENSOR_F32), NULL);
        if (!tensor_allclose(tensor_to(narrow, TENSOR_F64), want, 1e-4, 1e-4, false))
            fail_msg("geometry %d: f32 differs", i);
        check_adjoint(&g, x, w, false);
        check_adjoint(&g, x, w, true);
        tensor_scope_close(inner);
    }
}

/* Larger than one panel, and more images than share one: the paths that small geometries do not take. */
static void large_convolutions(void **state)
{
    (void)state;
    static const Geometry large[] = {
        { 2, 40, 12, 30, 31, 3, 3, 1, { 1, 1 }, { 1, 1 }, { 1, 1 } },
        { 19, 33, 6, 5, 4, 3, 3, 1, { 1, 1 }, { 1, 1 }, { 1, 1 } },
        { 9, 6, 4, 9, 9, 3, 3, 2, { 2, 2 }, { 1, 1 }, { 1, 1 } },
        { 3, 70, 5, 17, 16, 1, 1, 1, { 1, 1 }, { 0, 0 }, { 1, 1 } },
        { 2, 3, 20, 33, 40, 5, 5, 1, { 1, 1 }, { 2, 2 }, { 1, 1 } },
        { 21, 1, 7, 28, 28, 3, 3, 1, { 1, 1 }, { 0, 0 }, { 1, 1 } },
        { 5, 66, 64, 6, 5, 3, 2, 1, { 1, 1 }, { 1, 0 }, { 1, 2 } },
    };
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        const Geometry *g = &large[i];
        Tensor *x = tensor_randn(SHAPE(g->n, g->in, g->h, g->w), TENSOR_F64),
               *w = tensor_randn(SHAPE(g->out, g->in / g->groups, g->kh, g->kw), TENSOR_F64);
        assert_true(tensor_allclose(conv(g, x, w, NULL), definition(g, x, w), 1e-11, 1e-10, false));
        check_adjoint(g, x, w, false);
    }
}

/* Stride 1, eight channels and more, lines of ten pixels and more: the patches go to the product in slabs, of
 * which the last is not full, and the input's gradient is a convolution by the window turned round. */
static void convolutions_by_slabs(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        TensorScope inner = tensor_scope_open();
        Geometry g = { .n = pick(1, 2),
                       .kh = pick(1, 4),
                       .kw = pick(1, 5),
                       .groups = pick(1, 2),
                       .stride = { 1, 1 },
                       .dilation = { pick(1, 2), pick(1, 3) } };
        g.in = g.groups * pick(8, 10), g.out = g.groups * pick(8, 17);
        g.pad[0] = pick(0, g.dilation[0] * (g.kh - 1) + pick(0, 1)),
        g.pad[1] = pick(0, g.dilation[1] * (g.kw - 1) + pick(0, 1));
        g.h = g.dilation[0] * (g.kh - 1) + pick(1, 14), g.w = g.dilation[1] * (g.kw - 1) + pick(10, 40);
        Tensor *x = tensor_randn(SHAPE(g.n, g.in, g.h, g.w), TENSOR_F64),
               *w = tensor_randn(SHAPE(g.out, g.in / g.groups, g.kh, g.kw), TENSOR_F64);
        Tensor *want = definition(&g, x, w),
               *narrow = conv(&g, tensor_to(x, TENSOR_F32), tensor_to(w, TENSOR_F32), NULL);
        if (!tensor_allclose(conv(&g, x, w, NULL), want, 1e-11, 1e-11, false))
            fail_msg("geometry %d: not what the definition gives", i);
        if (!tensor_allclose(tensor_to(narrow, TENSOR_F64), want, 1e-4, 1e-4, false))
            fail_msg("geometry %d: f32 differs", i);
        check_adjoint(&g, x, w, false);
        tensor_scope_close(inner);
    }
}

/* A NaN reaches the windows that hold it and no others, though slabs read beyond the lines that they need. */
static void nan_stays_in_its_windows(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(2, 8, 12, 13), TENSOR_F32),
           *w = tensor_ones(SHAPE(8, 8, 3, 3), TENSOR_F32);
    for (int i = 0; i < 12 * 13; i += 31) {
        TensorScope inner = tensor_scope_open();
        Tensor *bad = tensor_clone(x);
        tensor_set(bad, DIMS(1, 3, i / 13, i % 13), NAN);
        Tensor *y = tensor_conv2d(bad, w, NULL, .padding = 1),
               *nans = tensor_sum(tensor_to(tensor_isnan(y), TENSOR_I64), .dims = DIMS(0, 1));
        for (int j = 0; j < 12 * 13; j++) {
            const bool near = abs(i / 13 - j / 13) <= 1 && abs(i % 13 - j % 13) <= 1;
            assert_int_equal((int)tensor_get(nans, DIMS(j / 13, j % 13)), near ? 8 : 0);
        }
        tensor_scope_close(inner);
    }
}

/* Over depth: the sum of the layers' convolutions. */
static void three_dimensions_are_sums_of_two(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        TensorScope inner = tensor_scope_open();
        const int64_t kd = pick(1, 3), sd = pick(1, 2), dd = pick(1, 2), pd = pick(0, kd > 1),
                      d = dd * (kd - 1) + pick(1, 4), in = pick(0, 1) ? 9 : 2, out = pick(8, 9);
        const int64_t od = result_size(d, pd, dd, kd, sd), s = pick(1, 2);
        Tensor *x = leaf(tensor_randn(SHAPE(2, in, d, 13, 14), TENSOR_F64)),
               *w = leaf(tensor_randn(SHAPE(out, in, kd, 3, 2), TENSOR_F64));
        Tensor *y = tensor_conv3d(x, w, NULL, .strides = { sd, s, s }, .paddings = { pd, 1, 0 },
                                  .dilations = { dd, 1, 1 });
        Tensor *layers[16];
        for (int64_t z = 0; z < od; z++) {
            layers[z] = tensor_zeros(SHAPE(2, out, tensor_size(y, 3), tensor_size(y, 4)), TENSOR_F64);
            for (int64_t q = 0; q < kd; q++) {
                const int64_t layer = z * sd + q * dd - pd;
                if (layer < 0 || layer >= d) continue;
                Tensor *part = tensor_conv2d(tensor_select(x, 2, layer), tensor_select(w, 2, q), NULL,
                                             .stride = s, .paddings = { 1, 0 });
                layers[z] = tensor_add(layers[z], part);
            }
        }
        Tensor *want = tensor_stack(TENSOR_LIST(layers, (int)od), 2), *g = tensor_randn_like(y),
               *in_[2] = { x, w }, *grad[2], *other[2];
        assert_true(tensor_allclose(y, want, 1e-11, 1e-11, false));
        assert_int_equal(
            tensor_gradients_many(TENSORS(y), TENSOR_LIST(in_, 2), grad, .grad_outputs = TENSORS(g)), 0);
        if (tensor_gradients_many(TENSORS(want), TENSOR_LIST(in_, 2), other, .grad_outputs = TENSORS(g)))
            fail_msg("%s", tensor_error());
        for (int k = 0; k < 2; k++) assert_true(tensor_allclose(grad[k], other[k], 1e-11, 1e-11, false));
        tensor_scope_close(inner);
    }
}

static void padding_that_keeps_the_size(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(2, 3, 7, 6), TENSOR_F64), *w = tensor_randn(SHAPE(4, 3, 4, 3), TENSOR_F64);
    Tensor *y = tensor_conv2d(x, w, NULL, .padding = TENSOR_SAME);
    Tensor *wide = tensor_zeros(SHAPE(2, 3, 10, 8), TENSOR_F64); /* 1 above and 2 below, 1 on either side */
    tensor_copy_(tensor_narrow(tensor_narrow(wide, 2, 1, 7), 3, 1, 6), x);
    assert_true(tensor_allclose(y, tensor_conv2d(wide, w, NULL), 1e-12, 1e-12, false));
    assert_int_equal(tensor_size(y, 2), 7);
    assert_null(tensor_conv2d(x, w, NULL, .padding = TENSOR_SAME, .stride = 2));
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
}

/* ---- pooling --------------------------------------------------------------------------------- */

static void extremes_of_windows(void **state)
{
    (void)state;
    const float v[] = {
        1, 1, -INFINITY, -INFINITY, 0, 1, -INFINITY, -INFINITY, 2, NAN, -1, -2, NAN, 3, -3, -1
    };
    Tensor *x = leaf(tensor_from_data(v, SHAPE(1, 4, 4), TENSOR_F32)), *at;
    Tensor *y = tensor_max_pool2d(x, 2, .indices = &at);
    assert_true(tensor_get(y, DIMS(0, 0, 0)) == 1 && tensor_get(y, DIMS(0, 0, 1)) == -INFINITY);
    assert_true(isnan(tensor_get(y, DIMS(0, 1, 0))) && tensor_get(y, DIMS(0, 1, 1)) == -1);
    const int64_t want[] = { 0, 2, 12, 10 }; /* first on ties, as PyTorch the last NaN */
    for (int i = 0; i < 4; i++) assert_int_equal(tensor_get(at, DIMS(0, i / 2, i % 2)), want[i]);
    Tensor *dx = tensor_gradients(tensor_sum(y), x);
    assert_true(tensor_item(tensor_sum(dx)) == 4 && tensor_get(dx, DIMS(0, 0, 0)) == 1 &&
                tensor_get(dx, DIMS(0, 3, 0)) == 1);
    Tensor *below =
        tensor_max_pool2d(tensor_full(SHAPE(1, 3, 3), -5, TENSOR_F32), 3, .stride = 2, .padding = 1);
    assert_true(tensor_equal(below, tensor_full(SHAPE(1, 2, 2), -5, TENSOR_F32))); /* not the padding's 0 */
}

static void linear_pools(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        TensorScope inner = tensor_scope_open();
        const int64_t kh = pick(1, 4), kw = pick(1, 3), sh = pick(1, 3), sw = pick(1, 3),
                      ph = pick(0, kh / 2), pw = pick(0, kw / 2);
        Tensor *x = leaf(tensor_randn(SHAPE(2, kh + pick(0, 8), kw + pick(0, 150)), TENSOR_F64));
        Tensor *y =
            tensor_avg_pool2d(x, .kernel_sizes = { kh, kw }, .strides = { sh, sw }, .paddings = { ph, pw },
                              .ceil_mode = pick(0, 1), .count_include_pad = pick(0, 1));
        Tensor *g = tensor_randn_like(y);
        assert_near(dot_of(tensor_detach(y), g),
                    dot_of(tensor_detach(x), tensor_gradients(y, x, .grad_output = g)), "avg_pool2d");
        tensor_scope_close(inner);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { RESULTS = 12 };

static void all_results(Tensor *x, Tensor *w, Tensor *d, Tensor *b, Tensor **out)
{
    Tensor *in[] = { leaf(x), leaf(w), leaf(b), leaf(d) },
           *y = tensor_conv2d(in[0], in[1], in[2], .padding = 1);
    Tensor *z = tensor_conv2d(y, in[3], NULL, .padding = 1, .groups = tensor_size(y, 1)),
           *g = tensor_detach(y);
    out[0] = y, out[1] = z;
    tensor_gradients_many(TENSORS(z), TENSOR_LIST(in, 4), out + 2, .grad_outputs = TENSORS(g),
                          .retain_graph = true);
    Tensor *x2 = leaf(x), *pooled = tensor_max_pool2d(x2, 3, .stride = 2), *mean = tensor_avg_pool2d(x2, 3);
    out[6] = tensor_gradients(pooled, x2, .grad_output = tensor_detach(pooled));
    out[7] = tensor_gradients(mean, x2, .grad_output = tensor_detach(mean));
    Tensor *weight = leaf(tensor_ones(SHAPE(tensor_size(x, 1)), TENSOR_F32)),
           *last = leaf(tensor_ones(SHAPE(tensor_size(x, 3)), TENSOR_F32));
    Tensor *batch = tensor_batch_norm(x2, NULL, NULL, weight, NULL, .training = true);
    Tensor *layer = tensor_layer_norm(x2, SHAPE(tensor_size(x, 3)), last);
    out[8] = tensor_gradients(batch, weight, .grad_output = x, .retain_graph = true),
    out[9] = tensor_gradients(batch, x2, .grad_output = x);
    out[10] = tensor_gradients(layer, last, .grad_output = x, .retain_graph = true),
    out[11] = tensor_gradients(layer, x2, .grad_output = x);
}

static void same_bits_for_threads(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(13, 9, 30, 29), TENSOR_F32),
           *w = tensor_randn(SHAPE(16, 9, 3, 3), TENSOR_F32);
    Tensor *d = tensor_randn(SHAPE(16, 1, 3, 3), TENSOR_F32), *b = tensor_randn(SHAPE(16), TENSOR_F32),
           *out[2][RESULTS];
    const int threads = tensor_num_threads();
    for (int i = 0; i < 2; i++) {
        tensor_set_num_threads(i ? 5 : 1);
        all_results(x, w, d, b, out[i]);
    }
    tensor_set_num_threads(threads);
    char what[32];
    for (int k = 0; k < RESULTS; k++) {
        if (!out[0][k] || !out[1][k]) fail_msg("%s", tensor_error());
        snprintf(what, sizeof what, "result %d", k);
        assert_same_bits(out[0][k], out[1][k], what);
    }
}

/* ---- normalisation --------------------------------------------------------------------------- */

static void running_statistics(void **state)
{
    (void)state;
    const double v[] = { 1, 2, 3, 6, 10, 20, 30, 60 }; /* channel 0: 1 2 10 20, channel 1: 3 6 30 60 */
    Tensor *x = leaf(tensor_from_data(v, SHAPE(2, 2, 2), TENSOR_F64));
    Tensor *mean = tensor_zeros(SHAPE(2), TENSOR_F64), *var = tensor_ones(SHAPE(2), TENSOR_F64);
    const uint32_t version = tensor_version(mean);
    Tensor *y = tensor_batch_norm(x, mean, var, NULL, NULL, true, .momentum = 0.25);
    assert_near(tensor_get(mean, DIMS(0)), .25 * 8.25, "mean");
    assert_near(tensor_get(mean, DIMS(1)), .25 * 24.75, "mean");
    const double unbiased = ((1 - 8.25) * (1 - 8.25) + (2 - 8.25) * (2 - 8.25) + (10 - 8.25) * (10 - 8.25) +
                             (20 - 8.25) * (20 - 8.25)) /
                            3;
    assert_near(tensor_get(var, DIMS(0)), .75 + .25 * unbiased, "var");
    assert_near(tensor_get(var, DIMS(1)), .75 + .25 * 9 * unbiased, "var");
    assert_true(tensor_version(mean) != version && !tensor_requires_grad(mean) && !tensor_requires_grad(var));
    Tensor *eval = tensor_batch_norm(x, mean, var, NULL, NULL, false);
    Tensor *dx = tensor_gradients(eval, x, .grad_output = tensor_ones_like(eval), .retain_graph = true);
    assert_near(tensor_get(dx, DIMS(1, 1, 0)), 1 / sqrt(tensor_get(var, DIMS(1)) + 1e-5), "dx, eval");
    tensor_batch_norm(x, mean, var, NULL, NULL, true); /* the statistics move on; those of eval were kept */
    assert_true(tensor_equal(dx, tensor_gradients(eval, x, .grad_output = tensor_ones_like(eval))));
    dx = tensor_gradients(y, x, .grad_output = tensor_randn_like(y));
    assert_near(tensor_item(tensor_sum(dx)), 0, "the sum of dx");

    Tensor *kept = tensor_clone(mean), *single = tensor_ones(SHAPE(1, 2, 1), TENSOR_F64);
    assert_null(tensor_batch_norm(single, mean, var, NULL, NULL, true));
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    tensor_error_clear();
    assert_true(tensor_equal(mean, kept));
    assert_non_null(tensor_batch_norm(tensor_empty(SHAPE(0, 2, 3), TENSOR_F64), mean, var, NULL, NULL, true));
    assert_true(tensor_equal(mean, kept));
}

/* A mean of 10^4 standard deviations costs no digits of the variance. */
static void far_from_zero(void **state)
{
    (void)state;
    Tensor *z = tensor_randn(SHAPE(4, 3, 500), TENSOR_F64),
           *x = tensor_to(tensor_add_scalar(z, 1e4), TENSOR_F32), *wide = tensor_to(x, TENSOR_F64);
    Tensor *layer = tensor_layer_norm(x, SHAPE(500)),
           *batch = tensor_batch_norm(x, NULL, NULL, NULL, NULL, true);
    Tensor *rows = tensor_sub(wide, tensor_mean(wide, -1, .keepdim = true)),
           *root = tensor_std(wide, -1, .correction = 0, .keepdim = true);
    assert_true(tensor_allclose(tensor_to(layer, TENSOR_F64), tensor_div(rows, root), 1e-3, 1e-3, false));
    Tensor *mean = tensor_mean(wide, .dims = DIMS(0, 2), .keepdim = true);
    root = tensor_std(wide, .dims = DIMS(0, 2), .correction = 0, .keepdim = true);
    assert_true(tensor_allclose(tensor_to(batch, TENSOR_F64), tensor_div(tensor_sub(wide, mean), root), 1e-3,
                                1e-3, false));
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void masks(void **state)
{
    (void)state;
    Tensor *x = leaf(tensor_full(SHAPE(100, 200), 3, TENSOR_F32)), *before = tensor_get_rng_state();
    assert_ptr_equal(tensor_dropout(x, .5, false), x);
    assert_ptr_equal(tensor_dropout(x, 0, true), x);
    assert_true(tensor_equal(before, tensor_get_rng_state()));
    Tensor *y = tensor_dropout(x, .25, true),
           *dx = tensor_gradients(y, x, .grad_output = tensor_full_like(y, 3));
    assert_true(tensor_equal(tensor_detach(y), dx)); /* the mask of forward, and its factor */
    const double kept = tensor_item(tensor_count_nonzero(y)) / 20000;
    assert_true(kept > .73 && kept < .77);
    assert_near(tensor_item(tensor_max(y)), 4, "what is kept");
    assert_false(tensor_equal(y, tensor_dropout(x, .25, true)));
    Tensor *none = tensor_dropout(tensor_full(SHAPE(4), INFINITY, TENSOR_F32), 1, true);
    assert_true(tensor_equal(none, tensor_zeros(SHAPE(4), TENSOR_F32)));
    Tensor *planes = tensor_sum(tensor_dropout2d(tensor_ones(SHAPE(20, 30, 2, 2), TENSOR_F32), .5, true),
                                .dims = DIMS(2, 3));
    assert_true(tensor_item(tensor_all(
                    tensor_logical_or(tensor_eq_scalar(planes, 0), tensor_eq_scalar(planes, 8)))) != 0);
    tensor_manual_seed(9);
    Tensor *one = tensor_dropout(x, .5, true);
    tensor_manual_seed(9);
    assert_true(tensor_equal(one, tensor_dropout(x, .5, true)));
}

/* ---- whole maps: one product for all images --------------------------------------------------- */

/* The same convolution of maps that are one row of zeros higher, and of kernels likewise, or of maps of two
 * pixels whose second one is 0, goes the plain way. */
static void whole_maps_are_as_the_plain_path(void **state)
{
    (void)state;
    static const int64_t shape[][6] = { /* batch, in, out, groups, height, width */
                                        { 3, 4, 6, 1, 2, 3 },
                                        { 2, 4, 6, 2, 3, 1 },
                                        { 5, 1, 2, 1, 4, 4 },
                                        { 1, 33, 17, 1, 1, 2 },
                                        { 130, 2, 3, 1, 2, 2 }
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        const int64_t *s = shape[i], groups = s[3];
        Tensor *x = leaf(tensor_randn(SHAPE(s[0], s[1], s[4], s[5]), TENSOR_F64)),
               *w = leaf(tensor_randn(SHAPE(s[2], s[1] / groups, s[4], s[5]), TENSOR_F64)),
               *b = leaf(tensor_randn(SHAPE(s[2]), TENSOR_F64)), *in[3] = { x, w, b }, *got[3], *want[3];
        Tensor *y = tensor_conv2d(x, w, b, .groups = groups), *g = tensor_randn_like(y);
        Tensor *plain = tensor_conv2d(tensor_pad(x, DIMS(0, 0, 0, 1)), w, b, .groups = groups);
        plain = tensor_narrow(plain, 2, 0, 1);
        assert_int_equal(
            tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 3), got, .grad_outputs = TENSORS(g)), 0);
        assert_int_equal(
            tensor_gradients_many(TENSORS(plain), TENSOR_LIST(in, 3), want, .grad_outputs = TENSORS(g)), 0);
        assert_true(tensor_allclose(y, plain, 1e-11, 1e-11, false));
        for (int k = 0; k < 3; k++) assert_true(tensor_allclose(got[k], want[k], 1e-11, 1e-11, false));

        Tensor *dot = leaf(tensor_randn(SHAPE(s[0], s[2], 1, 1), TENSOR_F64)),
               *up = leaf(tensor_randn(SHAPE(s[2], s[1] / groups, s[4], s[5]), TENSOR_F64)),
               *bias = leaf(tensor_randn(SHAPE(s[1]), TENSOR_F64));
        Tensor *of[3] = { dot, up, bias };
        y = tensor_conv_transpose2d(dot, up, bias, .groups = groups), g = tensor_randn_like(y);
        plain = tensor_conv_transpose2d(tensor_pad(dot, DIMS(0, 1)), up, bias, .groups = groups);
        plain = tensor_narrow(plain, 3, 0, s[5]);
        assert_int_equal(
            tensor_gradients_many(TENSORS(y), TENSOR_LIST(of, 3), got, .grad_outputs = TENSORS(g)), 0);
        assert_int_equal(
            tensor_gradients_many(TENSORS(plain), TENSOR_LIST(of, 3), want, .grad_outputs = TENSORS(g)), 0);
        assert_true(tensor_allclose(y, plain, 1e-11, 1e-11, false));
        for (int k = 0; k < 3; k++) assert_true(tensor_allclose(got[k], want[k], 1e-11, 1e-11, false));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(random_convolutions),
        TEST(large_convolutions),
        TEST(whole_maps_are_as_the_plain_path),
        TEST(convolutions_by_slabs),
        TEST(nan_stays_in_its_windows),
        TEST(three_dimensions_are_sums_of_two),
        TEST(padding_that_keeps_the_size),
        TEST(extremes_of_windows),
        TEST(linear_pools),
        TEST(same_bits_for_threads),
        TEST(running_statistics),
        TEST(far_from_zero),
        TEST(masks),
    };
    return cmocka_run_group_tests_name("conv", tests, NULL, NULL);
}
