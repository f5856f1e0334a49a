/* test_random_torch.c - PyTorch's numbers on a GPU for a seed (tensor_use_torch_cuda_random), on the device
 * of TAPEGRAD_TEST_DEVICE: against numbers that PyTorch is known to draw, and its rules written out. */
#include <tapegrad.h> /* before cmocka.h, which has a macro fail */
#include "emulator.h"
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "random/philox.h"

enum { BLOCK = 256, FEW = 1000, MANY = 40000, EMULATED = 4 * 1536 };

static double values[MANY];

static const double *numbers_of(Tensor *x)
{
    assert_null(tensor_error());
    Tensor *host = tensor_to(tensor_to_device(x, "cpu"), TENSOR_F64);
    assert_int_equal(tensor_copy_to(host, values, (size_t)tensor_numel(host) * sizeof *values), 0);
    return values;
}

/* The device's own number of threads is known of the emulated one; no GPU has fewer than FEW. */
static int64_t most(void) { return is_emulated() ? MANY : FEW; }
static int64_t threads_for(int64_t count)
{
    const int64_t blocks = (count + BLOCK - 1) / BLOCK * BLOCK;
    return blocks < EMULATED ? blocks : EMULATED;
}

static uint32_t word(uint64_t seed, int64_t thread, int64_t call, int which)
{
    const PhiloxBlock counter = { { (uint32_t)call, 0, (uint32_t)thread, 0 } };
    return philox_rounds(counter, (uint32_t)seed, (uint32_t)(seed >> 32)).word[which];
}

/* torch.manual_seed(0); torch.rand(6, device="cuda"), torch.randn(6, device="cuda") */
static void as_published(void **state)
{
    (void)state;
    static const double uniform[6] = { 0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967 },
                        normal[6] = { -0.9247, -0.4253, -2.6438, 0.1452, -0.1209, -0.5797 };
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(0);
    const double *x = numbers_of(tensor_rand(SHAPE(2, 3), TENSOR_F32));
    for (int i = 0; i < 6; i++) assert_true(fabs(x[i] - uniform[i]) <= 0.5e-4);
    tensor_manual_seed(0);
    x = numbers_of(tensor_randn(SHAPE(6), TENSOR_F32));
    for (int i = 0; i < 6; i++) assert_true(fabs(x[i] - normal[i]) <= 0.5e-4);
    tensor_scope_close(scope);
}

/* Elements are a thread's calls apart; the offset goes on by four for each call. */
static void uniforms(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const uint64_t seed = UINT64_C(0x123456789abcdef);
    const int64_t n = most(), t = threads_for(n), calls = (n - 1) / (4 * t) + 1;
    tensor_manual_seed(seed);
    const double *x = numbers_of(tensor_rand(SHAPE(n), TENSOR_F32));
    for (int64_t i = 0; i < n; i++) {
        const float u =
            fmaf((float)word(seed, i % t, i / (4 * t), (int)(i % (4 * t) / t)), 0x1p-32f, 0x1p-33f);
        assert_true(x[i] == (u == 1 ? 0 : (double)u));
    }
    x = numbers_of(tensor_uniform_(tensor_empty(SHAPE(FEW), TENSOR_F32), -2, 3));
    for (int64_t i = 0; i < FEW; i++) {
        const float u = fmaf((float)word(seed, i, calls, 0), 0x1p-32f, 0x1p-33f), y = fmaf(u, 5, -2);
        assert_true(x[i] == (y == 3 ? -2 : (double)y));
    }
    x = numbers_of(tensor_rand(SHAPE(FEW), TENSOR_F64));
    for (int64_t i = 0; i < FEW; i++) {
        const uint64_t z = word(seed, i, calls + 1, 0) ^ (uint64_t)word(seed, i, calls + 1, 1) << 21;
        assert_true(x[i] == (double)z * 0x1p-53 + 0x1p-54);
    }
    x = numbers_of(tensor_rand(SHAPE(FEW), TENSOR_BF16));
    for (int64_t i = 0; i < FEW; i++)
        assert_true(fabs(x[i] - word(seed, i, calls + 2, 0) * 0x1p-32) <= 0x1p-8 || x[i] == 0);
    tensor_scope_close(scope);
}

static void normals(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const int64_t n = most(), t = threads_for(n);
    tensor_manual_seed(7);
    const double *x = numbers_of(tensor_normal(1, 2, SHAPE(n), TENSOR_F32));
    for (int64_t i = 0; i < n; i++) {
        const int u = (int)(i % (4 * t) / t);
        const int64_t call = i / (4 * t);
        const double r = sqrt(-2 * log((word(7, i % t, call, u & 2) + .5) * 0x1p-32)),
                     a = 2 * 3.14159265358979323846 * (word(7, i % t, call, u | 1) + .5) * 0x1p-32;
        assert_true(fabs(x[i] - (1 + 2 * r * (u & 1 ? cos(a) : sin(a)))) <= 2e-5);
    }
    tensor_scope_close(scope);
}

/* A word of each thread's, of a large range two, the first one above. */
static void integers(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const uint64_t seed = 9, large = UINT64_C(1) << 28;
    const int64_t n = most(), t = threads_for(n), calls = (n - 1) / (4 * t) + 1,
                  pairs = (n - 1) / (2 * t) + 1;
    tensor_manual_seed(seed);
    const double *x = numbers_of(tensor_randint(-3, 8, SHAPE(n)));
    for (int64_t i = 0; i < n; i++)
        assert_true(x[i] == word(seed, i % t, i / (4 * t), (int)(i % (4 * t) / t)) % 11 - 3.0);
    x = numbers_of(tensor_randint(0, (int64_t)large, SHAPE(n)));
    for (int64_t i = 0; i < n; i++) {
        const int u = 2 * (int)(i % (2 * t) / t);
        const int64_t at = calls + i / (2 * t);
        const uint64_t w = (uint64_t)word(seed, i % t, at, u) << 32 | word(seed, i % t, at, u + 1);
        assert_true(x[i] == (double)(w % large));
    }
    x = numbers_of(tensor_randint(5, 4 + (int64_t)large, SHAPE(FEW)));
    for (int64_t i = 0; i < FEW; i++)
        assert_true(x[i] == word(seed, i, calls + pairs, 0) % (large - 1) + 5.0);
    Tensor *all = tensor_to_device(tensor_randint(INT64_MIN, INT64_MAX, SHAPE(3)), "cpu");
    for (int64_t i = 0; i < 3; i++) {
        const uint64_t w =
            (uint64_t)word(seed, i, calls + pairs + 1, 0) << 32 | word(seed, i, calls + pairs + 1, 1);
        assert_true(((int64_t *)tensor_data(all))[i] == (int64_t)(w % UINT64_MAX + (UINT64_C(1) << 63)));
    }
    tensor_scope_close(scope);
}

/* By dtype: of 8 bytes two words, else one. */
static void whole_numbers(void **state)
{
    (void)state;
    static const struct {
        TensorDtype dtype;
        uint64_t range;
    } cases[] = { { TENSOR_F32, (1 << 24) + 1 },
                  { TENSOR_F64, (UINT64_C(1) << 53) + 1 },
                  { TENSOR_F16, 2049 },
                  { TENSOR_BF16, 257 },
                  { TENSOR_I64, UINT64_C(1) << 63 },
                  { TENSOR_U8, 256 },
                  { TENSOR_I32, UINT64_C(1) << 31 },
                  { TENSOR_BOOL, 2 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        TensorScope scope = tensor_scope_open();
        const bool wide = cases[k].dtype == TENSOR_F64 || cases[k].dtype == TENSOR_I64;
        tensor_manual_seed(21);
        const double *x = numbers_of(tensor_random_(tensor_empty(SHAPE(FEW), cases[k].dtype)));
        for (int64_t i = 0; i < FEW; i++) {
            const uint64_t w =
                wide ? (uint64_t)word(21, i, 0, 0) << 32 | word(21, i, 0, 1) : word(21, i, 0, 0);
            assert_true(x[i] == (double)(w % cases[k].range));
        }
        tensor_scope_close(scope);
    }
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(21);
    const double *x = numbers_of(tensor_randint_like(tensor_empty(SHAPE(FEW), TENSOR_BF16), -8, 9));
    for (int64_t i = 0; i < FEW; i++) assert_true(x[i] == word(21, i, 0, 0) % 17 - 8.0);
    tensor_scope_close(scope);
}

static void exponentials(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    const int64_t n = most(), t = threads_for(n), calls = (n - 1) / (4 * t) + 1;
    tensor_manual_seed(4);
    const double *x = numbers_of(tensor_exponential_(tensor_empty(SHAPE(n), TENSOR_F32), 2));
    for (int64_t i = 0; i < n; i++) {
        const float u = fmaf((float)word(4, i % t, i / (4 * t), (int)(i % (4 * t) / t)), 0x1p-32f, 0x1p-33f);
        const double want = u >= 1 - 0x1p-24f ? 0x1p-25 : -log((double)u) / 2;
        assert_true(x[i] > 0 && fabs(x[i] - want) <= 2e-6 * (1 + want));
    }
    x = numbers_of(tensor_exponential_(tensor_empty(SHAPE(FEW), TENSOR_F64), 0.5));
    for (int64_t i = 0; i < FEW; i++) {
        const uint64_t z = word(4, i, calls, 0) ^ (uint64_t)word(4, i, calls, 1) << 21;
        const double want = -2 * log((double)z * 0x1p-53 + 0x1p-54);
        assert_true(fabs(x[i] - want) <= 1e-14 * want);
    }
    tensor_scope_close(scope);
}

/* A transposed tensor is filled in the order of its memory. */
static void layouts(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(3);
    Tensor *plain = tensor_uniform_(tensor_empty(SHAPE(5, 7), TENSOR_F32), 0, 1);
    tensor_manual_seed(3);
    Tensor *turned = tensor_uniform_(tensor_transpose(tensor_empty(SHAPE(5, 7), TENSOR_F32), 0, 1), 0, 1);
    assert_true(tensor_item(tensor_max(tensor_abs(tensor_sub(tensor_transpose(turned, 0, 1), plain)))) == 0);
    tensor_scope_close(scope);
}

/* A thread has `width` neighbours: 16 bytes, or as many as divide the count. */
static void masks(void **state)
{
    (void)state;
    static const struct {
        TensorDtype dtype;
        int64_t n;
        int width;
    } cases[] = { { TENSOR_F32, 800, 4 },   { TENSOR_F32, 802, 2 },   { TENSOR_F32, 803, 1 },
                  { TENSOR_F64, 800, 2 },   { TENSOR_BF16, 800, 8 },  { TENSOR_BF16, 804, 4 },
                  { TENSOR_F32, 39996, 4 }, { TENSOR_BF16, 39992, 8 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int64_t n = cases[k].n, width = cases[k].width, t = threads_for(n);
        if (n > most()) continue;
        TensorScope scope = tensor_scope_open();
        tensor_manual_seed(11);
        const double *y = numbers_of(tensor_dropout(tensor_ones(SHAPE(n), cases[k].dtype), 0.3));
        for (int64_t i = 0; i < n; i++) {
            const int64_t turn = i / width;
            const int at = (int)(i % width);
            const uint32_t w = width > 1 ? word(11, turn % t, turn / t * ((width + 3) / 4) + at / 4, at % 4)
                                         : word(11, i % t, i / (4 * t), (int)(i % (4 * t) / t));
            const float u = fmaf((float)w, 0x1p-32f, 0x1p-33f);
            assert_true((y[i] != 0) ==
                        (cases[k].dtype == TENSOR_F64 ? (double)u < 1 - 0.3 : u < (float)(1 - 0.3)));
        }
        y = numbers_of(tensor_rand(SHAPE(4), TENSOR_F32));
        const int64_t calls = (n - 1) / (4 * t) + 1;
        for (int i = 0; i < 4; i++) assert_true(fabs(y[i] - word(11, i, calls, 0) * 0x1p-32) < 1e-6);
        tensor_scope_close(scope);
    }
}

static void bernoulli(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(5);
    const double *y = numbers_of(tensor_bernoulli_(tensor_empty(SHAPE(FEW), TENSOR_F32), 0.25));
    for (int64_t i = 0; i < FEW; i++)
        assert_true(y[i] == (fmaf((float)word(5, i, 0, 0), 0x1p-32f, 0x1p-33f) < 0.25));
    tensor_scope_close(scope);
}

/* ---- parameters that are tensors: nothing waits, or comes back to the host ------------------------ */

static float unit_of(uint32_t w) { return fmaf((float)w, 0x1p-32f, 0x1p-33f); }

static void assert_stayed_there(struct CuemuCounts before)
{
    const struct CuemuCounts now = counts_now();
    assert_int_equal(now.to_host, before.to_host);
    assert_int_equal(now.waits, before.waits);
}

/* Four neighbours are those of a thread's call; 12 numbers are reserved for it. */
static void bernoulli_of_probabilities(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    static double want[FEW];
    for (int k = 0; k < 4; k++) {
        TensorScope scope = tensor_scope_open();
        Tensor *p = tensor_to(tensor_div_scalar(tensor_arange(0, FEW, 1, TENSOR_F64), FEW), dtypes[k]);
        memcpy(want, numbers_of(p), sizeof want);
        for (int turned = 0; turned < 2; turned++) { /* in the order of memory */
            Tensor *x = turned ? tensor_transpose(tensor_reshape(p, SHAPE(10, FEW / 10)), 0, 1) : p;
            tensor_manual_seed(5);
            const struct CuemuCounts before = counts_now();
            Tensor *y = tensor_bernoulli(x);
            assert_stayed_there(before);
            assert_int_equal(tensor_dtype(y), dtypes[k]);
            const double *drawn = numbers_of(turned ? tensor_transpose(y, 0, 1) : y);
            for (int64_t i = 0; i < FEW; i++)
                assert_true(drawn[i] == ((double)unit_of(word(5, i / 4, 0, (int)(i % 4))) <= want[i]));
            assert_true(fabs(numbers_of(tensor_rand(SHAPE(1), TENSOR_F32))[0] - word(5, 0, 3, 0) * 0x1p-32) <
                        1e-6);
        }
        tensor_scope_close(scope);
    }
}

static void normals_of_tensors(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *mean = tensor_linspace(-1, 1, FEW, TENSOR_F32), *std = tensor_linspace(0, 2, FEW, TENSOR_F32);
    for (int which = 0; which < 3; which++) {
        tensor_manual_seed(8);
        Tensor *z = tensor_randn(SHAPE(FEW), TENSOR_F32);
        Tensor *want = which == 0   ? tensor_add(tensor_mul(z, std), mean)
                       : which == 1 ? tensor_add(tensor_mul_scalar(z, 3), mean)
                                    : tensor_add_scalar(tensor_mul(z, std), 4);
        tensor_manual_seed(8);
        const struct CuemuCounts before = counts_now();
        Tensor *y = which == 0   ? tensor_normal_tensor(mean, std)
                    : which == 1 ? tensor_normal_tensor_scalar(mean, 3)
                                 : tensor_normal_scalar_tensor(4, std);
        assert_stayed_there(before);
        assert_true(tensor_allclose(y, want, .rtol = 1e-6, .atol = 1e-6));
    }
    tensor_scope_close(scope);
}

enum { LINES = 3, KINDS = 40, DRAWS = 200 };

/* Weights, some of them 0, the last one too; on the device. */
static Tensor *weights(TensorDtype dtype)
{
    Tensor *x = tensor_reshape(tensor_arange(0, LINES * KINDS, 1, TENSOR_F64), SHAPE(LINES, KINDS));
    return tensor_to(tensor_relu(tensor_add_scalar(tensor_sin(tensor_mul_scalar(x, 1.3)), 0.2)), dtype);
}

static void best_of_weights(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16 };
    for (int k = 0; k < 6; k++) {
        TensorScope scope = tensor_scope_open();
        const int n = k < 3 ? 1 : 7;
        Tensor *w = weights(dtypes[k % 3]), *want = NULL;
        tensor_manual_seed(31);
        Tensor *q = tensor_div(w, tensor_exponential_(tensor_empty_like(w), 1));
        tensor_topk(tensor_to_device(q, "cpu"), n, .indices = &want);
        tensor_manual_seed(31);
        const struct CuemuCounts before = counts_now();
        Tensor *y = tensor_multinomial(w, n);
        assert_stayed_there(before);
        assert_true(tensor_equal(tensor_to_device(y, "cpu"), want));
        tensor_scope_close(scope);
    }
}

/* A thread in rows of blocks of 128 draws each: the cumulated weights meet its number there. */
static void with_replacement(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16 };
    static double c[LINES * KINDS];
    for (int k = 0; k < 3; k++) {
        TensorScope scope = tensor_scope_open();
        Tensor *w = weights(dtypes[k]);
        memcpy(c, numbers_of(w), sizeof c);
        for (int r = 0; r < LINES; r++) {
            for (int j = 1; j < KINDS; j++) c[r * KINDS + j] += c[r * KINDS + j - 1];
            for (int j = 0; j < KINDS; j++) c[r * KINDS + j] /= c[r * KINDS + KINDS - 1];
        }
        tensor_manual_seed(13);
        const struct CuemuCounts before = counts_now();
        Tensor *y = tensor_multinomial(w, DRAWS, .replacement = true);
        assert_stayed_there(before);
        const double *drawn = numbers_of(y);
        for (int64_t i = 0; i < LINES * DRAWS; i++) {
            const double u = unit_of(word(13, i / DRAWS * 256 + i % DRAWS, 0, 0)),
                         *at = c + i / DRAWS * KINDS + (int64_t)drawn[i];
            assert_true(u <= *at + 1e-6 && (drawn[i] == 0 || u >= at[-1] - 1e-6));
            assert_true(drawn[i] == 0 || *at > at[-1]);
        }
        assert_true(fabs(numbers_of(tensor_rand(SHAPE(1), TENSOR_F32))[0] - word(13, 0, 1, 0) * 0x1p-32) <
                    1e-6);
        tensor_scope_close(scope);
    }
}

static void assert_found_late(const Tensor *made, const char *what)
{
    assert_non_null(made);
    assert_int_equal(tensor_synchronize(test_device()), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    if (!strstr(tensor_error(), what)) fail_msg("%s: %s", what, tensor_error());
    tensor_error_clear();
}

static void bad_parameters_are_found_late(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_linspace(-0.5, 1, 4, TENSOR_F32), *zeros = tensor_zeros(SHAPE(4), TENSOR_F32);
    assert_found_late(tensor_bernoulli(x), "tensor_bernoulli: a probability -0.5 at position 0");
    assert_found_late(tensor_multinomial(x, 2), "tensor_multinomial: a weight -0.5 at position 0");
    assert_found_late(tensor_multinomial(zeros, 2, true), "weights with a sum (1) or none");
    assert_found_late(tensor_normal_scalar_tensor(0, x), "tensor_normal_scalar_tensor: std -0.5");
    tensor_scope_close(scope);
}

/* Without the switch the numbers are the CPU's; with it what is not known still is. */
static void what_is_not_known(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(0);
    double first = numbers_of(tensor_randperm(9))[0];
    tensor_set_default_device("cpu");
    tensor_manual_seed(0);
    assert_true(numbers_of(tensor_randperm(9))[0] == first);
    tensor_set_default_device(test_device());
    assert_true(tensor_use_torch_cuda_random(false));
    tensor_manual_seed(0);
    assert_true(fabs(numbers_of(tensor_randn(SHAPE(5), TENSOR_F32))[0] - 1.5410) < 1e-4);
    assert_false(tensor_use_torch_cuda_random(true));
    tensor_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_published),
        cmocka_unit_test(uniforms),
        cmocka_unit_test(normals),
        cmocka_unit_test(layouts),
        cmocka_unit_test(masks),
        cmocka_unit_test(bernoulli),
        cmocka_unit_test(integers),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(exponentials),
        cmocka_unit_test(what_is_not_known),
        cmocka_unit_test(bernoulli_of_probabilities),
        cmocka_unit_test(normals_of_tensors),
        cmocka_unit_test(best_of_weights),
        cmocka_unit_test(with_replacement),
        cmocka_unit_test(bad_parameters_are_found_late),
    };
    if (!test_device_opens() || tensor_set_default_device(test_device())) return 1;
    tensor_use_torch_cuda_random(true);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tensor_use_torch_cuda_random(false);
    return failed;
}
