/* test_conv_blocks.c - convolution in f32 and bf16 by its fast kernels, over random shapes, against the
 * plain way that f64 goes; the same bits on any number of threads; where NaN and infinities get to; failing
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/debug.h>
#include "samples.h"

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

static uint64_t seed = 7;
static int64_t pick(int64_t lo, int64_t hi)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

/* ---- one convolution with its gradients ------------------------------------------------------ */

enum { RANK = 3, RESULTS = 4 }; /* y, dx, dweight, dbias */

typedef struct Shape {
    int rank;
    bool transposed;
    int64_t n, in, out, groups, size[RANK], kernel[RANK], stride[RANK], pad[RANK], dilation[RANK];
} Shape;

static Shape random_shape(void)
{
    Shape s = { .rank = (int)pick(0, 9) < 8 ? 2 : (int)pick(1, 3), .transposed = pick(0, 4) == 0 };
    s.groups = pick(0, 3) ? 1 : pick(2, 3), s.n = pick(0, 1) ? pick(1, 4) : pick(7, 30);
    s.in = s.groups * pick(4, pick(0, 1) ? 20 : 70), s.out = s.groups * pick(1, pick(0, 1) ? 20 : 70);
    if (pick(0, 4) == 0) s.groups = s.out = s.in; /* each channel alone */
    const bool same = pick(0, 1);
    for (int i = 0; i < s.rank; i++) {
        s.kernel[i] = same ? 3 : pick(1, s.rank == 3 ? 3 : 5);
        s.stride[i] = pick(0, 1) ? 1 : pick(1, 3), s.dilation[i] = pick(0, 3) ? 1 : pick(2, 3);
        s.pad[i] = pick(0, s.kernel[i]);
        const int64_t window = s.dilation[i] * (s.kernel[i] - 1) + 1;
        const int64_t least =
            s.transposed ? 1 + (2 * s.pad[i] + s.stride[i] - 1) / s.stride[i] : window - 2 * s.pad[i];
        s.size[i] = (least > 1 ? least : 1) + pick(0, s.rank == 3 ? 4 : pick(0, 1) ? 6 : 20);
    }
    return s;
}

/* One that goes by Winograd. */
static Shape winograd_shape(int64_t channels)
{
    Shape s = { .rank = 2, .transposed = pick(0, 2) == 0, .groups = 1, .n = pick(4, 13) };
    s.in = pick(32, channels), s.out = pick(32, channels);
    for (int i = 0; i < 2; i++)
        s.kernel[i] = 3, s.stride[i] = s.dilation[i] = 1, s.pad[i] = pick(0, 2), s.size[i] = pick(12, 19);
    return s;
}

static Shape any_shape(void) { return pick(0, 3) ? random_shape() : winograd_shape(70); }

static const char *text_of(const Shape *s)
{
    static char text[256];
    int n = snprintf(text, sizeof text, "%s%dd %lldx%lld->%lld g%lld", s->transposed ? "transposed " : "",
                     s->rank, (long long)s->n, (long long)s->in, (long long)s->out, (long long)s->groups);
    for (int i = 0; i < s->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %lld k%lld s%lld p%lld d%lld",
                      (long long)s->size[i], (long long)s->kernel[i], (long long)s->stride[i],
                      (long long)s->pad[i], (long long)s->dilation[i]);
    return text;
}

static Tensor *convolution(const Shape *s, Tensor *x, Tensor *w, Tensor *b)
{
    static Tensor *(*const forward[])(TensorConvArgs) = { tensor_conv1d_args, tensor_conv2d_args,
                                                          tensor_conv3d_args };
    static Tensor *(*const transposed[])(TensorConvTransposeArgs) = { tensor_conv_transpose1d_args,
                                                                      tensor_conv_transpose2d_args,
                                                                      tensor_conv_transpose3d_args };
    TensorConvArgs plain = { TENSOR_CONV_DEFAULTS, .input = x, .weight = w, .bias = b };
    TensorConvTransposeArgs turned = { TENSOR_CONV_TRANSPOSE_DEFAULTS, .input = x, .weight = w, .bias = b };
    plain.groups = turned.groups = s->groups;
    for (int i = 0; i < s->rank; i++) {
        plain.strides[i] = turned.strides[i] = s->stride[i];
        plain.paddings[i] = turned.paddings[i] = s->pad[i];
        plain.dilations[i] = turned.dilations[i] = s->dilation[i];
    }
    Tensor *y = s->transposed ? transposed[s->rank - 1](turned) : forward[s->rank - 1](plain);
    if (!y) fail_msg("%s: %s", text_of(s), tensor_error());
    return y;
}

/* x, weight, bias of a shape: normal. */
static void operands(const Shape *s, Tensor **in)
{
    int64_t x[RANK + 2] = { s->n, s->in }, w[RANK + 2] = { s->out, s->in / s->groups };
    if (s->transposed) w[0] = s->in, w[1] = s->out / s->groups;
    for (int i = 0; i < s->rank; i++) x[2 + i] = s->size[i], w[2 + i] = s->kernel[i];
    in[0] = tensor_randn((TensorShape){ s->rank + 2, x }, TENSOR_F32);
    in[1] = tensor_randn((TensorShape){ s->rank + 2, w }, TENSOR_F32);
    in[2] = tensor_randn(SHAPE(s->out), TENSOR_F32);
}

static void results_of(const Shape *s, Tensor *const in[3], Tensor *g, TensorDtype dtype,
                       Tensor *out[RESULTS])
{
    Tensor *leaf[3];
    for (int i = 0; i < 3; i++)
        leaf[i] = tensor_requires_grad_(tensor_clone(tensor_to(tensor_detach(in[i]), dtype)), true);
    Tensor *y = convolution(s, leaf[0], leaf[1], leaf[2]), *seed_grad = tensor_to(g, dtype);
    out[0] = y;
    if (tensor_gradients_many(TENSORS(y), TENSOR_LIST(leaf, 3), out + 1, .grad_outputs = TENSORS(seed_grad)))
        fail_msg("%s: %s", text_of(s), tensor_error());
}

static Tensor *gradient_for(const Shape *s, Tensor *const in[3])
{
    TensorScope inner = tensor_scope_open();
    return tensor_scope_return(inner, tensor_randn_like(convolution(s, in[0], in[1], in[2])));
}

static double largest(Tensor *x) { return tensor_numel(x) ? tensor_item(tensor_max(tensor_abs(x))) : 0; }

static void fast_kernels_are_as_the_plain_way(void **state)
{
    (void)state;
    static const char *const what[RESULTS] = { "y", "dx", "dweight", "dbias" };
    for (int i = 0; i < 150; i++) {
        const Shape s = any_shape();
        if (!in_shard(i)) continue;
        TensorScope inner = tensor_scope_open();
        Tensor *in[3], *fast[RESULTS], *plain[RESULTS];
        operands(&s, in);
        Tensor *g = gradient_for(&s, in);
        results_of(&s, in, g, TENSOR_F32, fast), results_of(&s, in, g, TENSOR_F64, plain);
        for (int k = 0; k < RESULTS; k++) {
            const double scale = largest(plain[k]);
            const double error = largest(tensor_sub(tensor_to(fast[k], TENSOR_F64), plain[k]));
            if (!(error <= 4e-6 * scale + 1e-6))
                fail_msg("%s of %s: off by %g of %g", what[k], text_of(&s), error, scale);
        }
        tensor_scope_close(inner);
    }
}

/* Each is off by half a unit in bf16's last place, and what f32 sums are off by. */
static void assert_rounded_once(const Shape *s, const char *what, Tensor *half, Tensor *exact)
{
    const double scale = largest(exact);
    Tensor *wide = tensor_contiguous(tensor_to(half, TENSOR_F64)), *plain = tensor_contiguous(exact);
    const double *got = tensor_data(wide), *want = tensor_data(plain);
    for (int64_t i = 0; i < tensor_numel(exact); i++)
        if (!(fabs(got[i] - want[i]) <= fabs(want[i]) / 256 + 4e-6 * scale + 1e-6))
            fail_msg("%s[%lld] of %s: %g rather than %g", what, (long long)i, text_of(s), got[i], want[i]);
}

static void bf16_is_rounded_once(void **state)
{
    (void)state;
    static const char *const what[RESULTS] = { "y", "dx", "dweight", "dbias" };
    for (int i = 0; i < 150; i++) {
        const Shape s = any_shape();
        if (!in_shard(i)) continue;
        TensorScope inner = tensor_scope_open();
        Tensor *in[3], *half[RESULTS], *plain[RESULTS];
        operands(&s, in);
        for (int k = 0; k < 3; k++) in[k] = tensor_to(in[k], TENSOR_BF16);
        Tensor *g = tensor_to(gradient_for(&s, in), TENSOR_BF16);
        results_of(&s, in, g, TENSOR_BF16, half), results_of(&s, in, g, TENSOR_F64, plain);
        for (int k = 0; k < RESULTS; k++) assert_rounded_once(&s, what[k], half[k], plain[k]);
        tensor_scope_close(inner);
    }
}

static void same_bits_for_threads(void **state)
{
    (void)state;
    const int threads = tensor_num_threads();
    for (int i = 0; i < 40; i++) {
        const TensorDtype dtype = i % 2 ? TENSOR_F32 : TENSOR_BF16;
        Shape s = any_shape();
        if (!in_shard(i / 2)) continue;
        TensorScope inner = tensor_scope_open();
        Tensor *in[3], *one[RESULTS], *many[RESULTS];
        if (s.rank == 2) s.size[0] += 20, s.size[1] += 20, s.n += 3;
        operands(&s, in);
        Tensor *g = gradient_for(&s, in);
        tensor_set_num_threads(1), results_of(&s, in, g, dtype, one);
        tensor_set_num_threads((int)pick(2, 7)), results_of(&s, in, g, dtype, many);
        for (int k = 0; k < RESULTS; k++)
            if (memcmp(tensor_data(tensor_contiguous(one[k])), tensor_data(tensor_contiguous(many[k])),
                       (size_t)tensor_numel(one[k]) * (dtype == TENSOR_F32 ? 4 : 2)) != 0)
                fail_msg("result %d of %s: other bits", k, text_of(&s));
        tensor_scope_close(inner);
    }
    tensor_set_num_threads(threads);
}

/* ---- Winograd -------------------------------------------------------------------------------- */

/* RMS of the errors in y, dx and dweight, each in units of the sum of the magnitudes that it is a sum of. */
static void rms_errors(const Shape *s, Tensor *const in[3], Tensor *g, double rms[3])
{
    Tensor *got[RESULTS], *exact[RESULTS], *bound[RESULTS], *sizes[3];
    for (int i = 0; i < 3; i++) sizes[i] = tensor_abs(in[i]);
    results_of(s, in, g, TENSOR_F32, got), results_of(s, in, g, TENSOR_F64, exact);
    results_of(s, sizes, tensor_abs(g), TENSOR_F64, bound);
    for (int k = 0; k < 3; k++) {
        Tensor *error = tensor_sub(tensor_to(got[k], TENSOR_F64), exact[k]);
        rms[k] = sqrt(tensor_item(tensor_mean(tensor_square(tensor_div(error, bound[k])))));
    }
}

/* CPUs without AVX2 have no kernels for it. */
static bool has_winograd(void) { return !strstr(tensor_build_info(), "baseline"); }

/* kind 1: a few large elements in x and the cotangent; 2: in the weight; 3: clipped at 0; 4: far from 0. */
static void change(Tensor *x, int kind, bool is_weight)
{
    float *at = tensor_data(x);
    const int64_t every = pick(50, 5000);
    for (int64_t i = 0, n = tensor_numel(x); i < n; i++) {
        if (kind == (is_weight ? 2 : 1) && i % every == 0) at[i] *= (float)pow(10, (double)pick(1, 6));
        if (kind == 3 && !is_weight && at[i] < 0) at[i] = 0;
        if (kind == 4 && !is_weight) at[i] += 10;
    }
}

static void winograd_rounds_as_the_direct_sum(void **state)
{
    (void)state;
    static const char *const what[] = { "y", "dx", "dweight" };
    for (int i = 0; i < 20; i++) {
        const Shape s = winograd_shape(i < 15 ? 70 : 200);
        if (!in_shard(i)) continue;
        TensorScope inner = tensor_scope_open();
        Tensor *in[3];
        double fast[3], direct[3];
        operands(&s, in);
        tensor_fill_(in[2], 0);
        Tensor *g = gradient_for(&s, in);
        change(in[0], i % 5, false), change(in[1], i % 5, true), change(g, i % 5, false);
        assert_true(tensor_set_winograd(false));
        rms_errors(&s, in, g, direct);
        assert_false(tensor_set_winograd(true));
        rms_errors(&s, in, g, fast);
        for (int k = 0; k < 3; k++)
            if (!(fast[k] <= 2 * direct[k]))
                fail_msg("%s of %s, kind %d: RMS error %g, by the direct sum %g", what[k], text_of(&s), i % 5,
                         fast[k], direct[k]);
        for (int k = 0; k < 3 && has_winograd(); k++)
            if (i % 5 != 1 && (i % 5 != 2 || k == 2) && fast[k] == direct[k])
                fail_msg("%s of %s does not go by Winograd", what[k], text_of(&s));
        tensor_scope_close(inner);
    }
}

/* As the direct sum has them: the same elements are NaN, +inf, -inf; the others are as near as rounding. */
static void assert_as_direct(const Shape *s, Tensor *fast, Tensor *direct)
{
    const float *a = tensor_data(tensor_contiguous(fast)), *b = tensor_data(tensor_contiguous(direct));
    int64_t bad = 0;
    for (int64_t i = 0, n = tensor_numel(fast); i < n; i++) {
        bad += !isfinite(b[i]);
        if (isnan(a[i]) != isnan(b[i]) || isinf(a[i]) != isinf(b[i]) || (isinf(a[i]) && a[i] != b[i]) ||
            (isfinite(a[i]) && fabsf(a[i] - b[i]) > 1e-3f))
            fail_msg("%s: element %lld is %g, by the direct sum %g", text_of(s), (long long)i, a[i], b[i]);
    }
    assert_true(bad > 0 && bad < tensor_numel(fast));
}

static void nan_and_infinities_reach_what_they_should(void **state)
{
    (void)state;
    static const float odd[] = { NAN, INFINITY, -INFINITY };
    for (int i = 0; i < 12; i++) {
        TensorScope inner = tensor_scope_open();
        const Shape s = winograd_shape(40);
        Tensor *in[3], *fast[RESULTS], *direct[RESULTS];
        operands(&s, in);
        Tensor *g = gradient_for(&s, in);
        for (int k = 0; k < 2; k++) {
            ((float *)tensor_data(in[0]))[pick(0, tensor_numel(in[0]) - 1)] = odd[i % 3];
            ((float *)tensor_data(g))[pick(0, tensor_numel(g) - 1)] = odd[i % 3];
        }
        tensor_set_winograd(false), results_of(&s, in, g, TENSOR_F32, direct);
        tensor_set_winograd(true), results_of(&s, in, g, TENSOR_F32, fast);
        for (int k = 0; k < 3; k++) assert_as_direct(&s, fast[k], direct[k]);
        tensor_scope_close(inner);
    }
}

/* ---- failing memory -------------------------------------------------------------------------- */

static void fail_each(const Shape *s, TensorDtype dtype)
{
    Tensor *in[3];
    operands(s, in);
    for (int i = 0; i < 3; i++) in[i] = tensor_requires_grad_(tensor_detach(tensor_to(in[i], dtype)), true);
    Tensor *g = gradient_for(s, in);
    const int64_t live = tensor_memory().in_use;
    for (int64_t n = 1, failed = 1; failed; n++) {
        TensorScope inner = tensor_scope_open();
        tensor_debug_fail_allocation(n, false);
        Tensor *y = tensor_conv2d(in[0], in[1], in[2], .padding = 1), *out[3] = { 0 };
        const int status =
            y ? tensor_gradients_many(TENSORS(y), TENSOR_LIST(in, 3), out, .grad_outputs = TENSORS(g)) : -1;
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        if (status) assert_int_equal(tensor_error_code(), TENSOR_ENOMEM);
        else assert_non_null(out[2]);
        tensor_error_clear();
        tensor_scope_close(inner);
        assert_int_equal(tensor_memory().in_use, live);
    }
}

static void memory_that_runs_out(void **state)
{
    (void)state;
    Shape s = { .rank = 2, .n = 9, .in = 20, .out = 24, .groups = 1 };
    for (int i = 0; i < 2; i++) s.size[i] = 9, s.kernel[i] = 3, s.stride[i] = s.pad[i] = s.dilation[i] = 1;
    fail_each(&s, TENSOR_F32), fail_each(&s, TENSOR_BF16);
    s.in = s.out = 32;
    fail_each(&s, TENSOR_F32);
    s.in = 3;
    fail_each(&s, TENSOR_BF16);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(fast_kernels_are_as_the_plain_way),
        TEST(bf16_is_rounded_once),
        TEST(same_bits_for_threads),
        TEST(winograd_rounds_as_the_direct_sum),
        TEST(nan_and_infinities_reach_what_they_should),
        TEST(memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
