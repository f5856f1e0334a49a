/* test_random.c - random tensors against PyTorch's (oracle/rng_golden.h), generators and their states,
 * refusals, Philox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "random/random_state.h" /* before cmocka.h, which has a macro fail */
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <tapegrad/autograd.h>
#include <tapegrad/debug.h>
#include <tapegrad/device.h>
#include <tapegrad/ops.h>

#include "device/device.h"
#include "oracle/rng_golden.h"
#include "random/philox.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))

static TensorScope scope;
static int64_t live;

static int setup(void **state)
{
    (void)state;
    tensor_error_clear();
    live = tensor_live_count();
    scope = tensor_scope_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tensor_scope_close(scope);
    tensor_set_generator(NULL);
    tensor_manual_seed(0);
    return tensor_error() || tensor_live_count() != live ? -1 : 0;
}

/* Values in row-major order, within ulps of the dtype's f32 or f64; 0: to the bit. */
static void same_f32(Tensor *x, const float *want, int64_t n, double ulps)
{
    float got[128];
    assert_non_null(x);
    assert_int_equal(tensor_numel(x), n);
    assert_int_equal(tensor_copy_to(tensor_to(x, TENSOR_F32), got, (size_t)n * sizeof *got), 0);
    for (int64_t i = 0; i < n; i++) assert_true(fabsf(got[i] - want[i]) <= ulps * 0x1p-23 * fabsf(want[i]));
}

static void same_f64(Tensor *x, const double *want, int64_t n, double ulps)
{
    double got[128];
    assert_non_null(x);
    assert_int_equal(tensor_dtype(x), TENSOR_F64);
    assert_int_equal(tensor_copy_to(x, got, (size_t)n * sizeof *got), 0);
    for (int64_t i = 0; i < n; i++) assert_true(fabs(got[i] - want[i]) <= ulps * 0x1p-52 * fabs(want[i]));
}

static void same_i64(Tensor *x, const int64_t *want, int64_t n)
{
    int64_t got[128];
    assert_non_null(x);
    assert_int_equal(tensor_numel(x), n);
    assert_int_equal(tensor_copy_to(tensor_to(x, TENSOR_I64), got, (size_t)n * sizeof *got), 0);
    assert_memory_equal(got, want, (size_t)n * sizeof *got);
}

static void same_u8(Tensor *x, const uint8_t *want, int64_t n)
{
    uint8_t got[128];
    assert_int_equal(tensor_copy_to(tensor_to(x, TENSOR_U8), got, (size_t)n), 0);
    assert_memory_equal(got, want, (size_t)n);
}

#define SAME32(x, golden) same_f32(x, golden, COUNT(golden), 0)
#define NEAR32(x, golden) same_f32(x, golden, COUNT(golden), 2)
#define SAME64(x, golden) same_f64(x, golden, COUNT(golden), 0)
#define NEAR64(x, golden) same_f64(x, golden, COUNT(golden), 2)
#define SAMEI(x, golden) same_i64(x, golden, COUNT(golden))

static Tensor *seeded(uint64_t seed, TensorShape shape, TensorDtype dtype)
{
    tensor_manual_seed(seed);
    return tensor_empty(shape, dtype);
}

/* ---- PyTorch's numbers ----------------------------------------------------------------------- */

static void test_new(void **state)
{
    (void)state;
    tensor_manual_seed(0);
    SAME32(tensor_rand(SHAPE(3, 4), TENSOR_F32), golden_rand_f32);
    tensor_manual_seed(0);
    SAME64(tensor_rand(SHAPE(12), TENSOR_F64), golden_rand_f64);
    tensor_manual_seed(2);
    SAME32(tensor_rand(SHAPE(12), TENSOR_F16), golden_rand_f16);
    tensor_manual_seed(2);
    SAME32(tensor_rand(SHAPE(2, 6), TENSOR_BF16), golden_rand_bf16);
    tensor_manual_seed(0);
    NEAR32(tensor_randn(SHAPE(5), TENSOR_F32), golden_randn_f32_5);
    tensor_manual_seed(0);
    SAME32(tensor_randn(SHAPE(3, 11), TENSOR_F32), golden_randn_f32_33);
    tensor_manual_seed(0);
    NEAR64(tensor_randn(SHAPE(17), TENSOR_F64), golden_randn_f64_17);
    tensor_manual_seed(4);
    SAME32(tensor_randn(SHAPE(33), TENSOR_F16), golden_randn_f16_33);
    SAME32(tensor_rand(SHAPE(), TENSOR_F32), golden_after_f16_33);
    tensor_manual_seed(4);
    SAME32(tensor_randn(SHAPE(33), TENSOR_BF16), golden_randn_bf16_33);
    tensor_manual_seed(3);
    SAME32(tensor_normal(1.3, 0.37, SHAPE(20), TENSOR_F32), golden_normal_f32_20);
    tensor_manual_seed(3);
    NEAR64(tensor_normal(1.3, 0.37, SHAPE(5), TENSOR_F64), golden_normal_f64_5);
}

static void test_integers(void **state)
{
    (void)state;
    tensor_manual_seed(7);
    SAMEI(tensor_randint(-5, 5, SHAPE(6)), golden_randint_10);
    tensor_manual_seed(3); /* torch.randint_like, of a matrix and of a transposed one */
    const double want[] = { 7, 5, -2, 6, -5, 1 }, turned[] = { 7, -2, -5, 5, 6, 1 };
    Tensor *like = tensor_randint_like(tensor_zeros(SHAPE(2, 3), TENSOR_F64), -5, 9);
    assert_true(tensor_equal(like, tensor_from_data(want, SHAPE(2, 3), TENSOR_F64)));
    tensor_manual_seed(3);
    like = tensor_randint_like(tensor_transpose(tensor_zeros(SHAPE(3, 2), TENSOR_F64), 0, 1), -5, 9);
    assert_true(tensor_equal(like, tensor_from_data(turned, SHAPE(2, 3), TENSOR_F64)));
    tensor_manual_seed(7);
    SAMEI(tensor_randint(-5, (INT64_C(1) << 40) - 5, SHAPE(2, 3)), golden_randint_2_40);
    tensor_manual_seed(0);
    SAMEI(tensor_randperm(10), golden_randperm_10);
    tensor_manual_seed(9);
    SAMEI(tensor_randperm(33), golden_randperm_33);
    assert_int_equal(tensor_numel(tensor_randperm(0)), 0);
    SAMEI(tensor_random_(seeded(8, SHAPE(5), TENSOR_I64)), golden_random_i64);
    SAMEI(tensor_random_(seeded(14, SHAPE(8), TENSOR_I32)), golden_random_i32);
    SAMEI(tensor_random_(seeded(14, SHAPE(8), TENSOR_U8)), golden_random_u8);
    SAMEI(tensor_random_(seeded(14, SHAPE(8), TENSOR_BOOL)), golden_random_bool);
    SAMEI(tensor_random_(seeded(14, SHAPE(8), TENSOR_F32)), golden_random_f32);
    SAMEI(tensor_random_(seeded(14, SHAPE(8), TENSOR_F64)), golden_random_f64);
    SAMEI(tensor_random_(seeded(14, SHAPE(8), TENSOR_F16)), golden_random_f16);
    SAMEI(tensor_random_(seeded(14, SHAPE(8), TENSOR_BF16)), golden_random_bf16);
}

static void test_in_place(void **state)
{
    (void)state;
    SAME32(tensor_uniform_(seeded(1, SHAPE(12), TENSOR_F32), -0.1, 0.3), golden_uniform_f32);
    SAME64(tensor_uniform_(seeded(1, SHAPE(2, 4), TENSOR_F64), -0.1, 0.3), golden_uniform_f64);
    SAME32(tensor_normal_(seeded(3, SHAPE(20), TENSOR_F32), 1.3, 0.37), golden_normal_f32_20);
    NEAR32(tensor_exponential_(seeded(11, SHAPE(20), TENSOR_F32), 1.5), golden_exponential_f32);
    NEAR64(tensor_exponential_(seeded(11, SHAPE(20), TENSOR_F64), 1.5), golden_exponential_f64);
    SAME32(tensor_exponential_(seeded(11, SHAPE(20), TENSOR_F16), 1.5), golden_exponential_f16);
    SAME32(tensor_exponential_(seeded(11, SHAPE(20), TENSOR_BF16), 1.5), golden_exponential_bf16);
    NEAR32(tensor_trunc_normal_(seeded(12, SHAPE(20), TENSOR_F32), 0, 1, -1, 1), golden_trunc_bell_f32);
    NEAR32(tensor_trunc_normal_(seeded(12, SHAPE(20), TENSOR_F32), 0, 1, 2, 3), golden_trunc_tail_f32);
    NEAR64(tensor_trunc_normal_(seeded(12, SHAPE(4, 5), TENSOR_F64), 0, 1, 2, 3), golden_trunc_tail_f64);
    static const TensorDtype some[] = { TENSOR_BOOL, TENSOR_F32, TENSOR_I64, TENSOR_BF16 };
    for (int i = 0; i < 4; i++)
        same_u8(tensor_bernoulli_(seeded(10, SHAPE(60), some[i]), 0.3), golden_bernoulli, 60);
}

static void test_samples(void **state)
{
    (void)state;
    Tensor *p = tensor_div(tensor_arange(0, 17, 1, TENSOR_F32), tensor_scalar(16, TENSOR_F32));
    tensor_manual_seed(10);
    same_u8(tensor_bernoulli(p), golden_bernoulli_f32, 17);
    tensor_manual_seed(10);
    same_u8(tensor_bernoulli(tensor_to(p, TENSOR_F64)), golden_bernoulli_f64, 17);
    tensor_manual_seed(10);
    Tensor *half = tensor_bernoulli(tensor_to(p, TENSOR_F16));
    assert_int_equal(tensor_dtype(half), TENSOR_F16);
    same_u8(half, golden_bernoulli_f32, 17);

    double weight[60];
    for (int k = 0; k < 60; k++) weight[k] = k % 5 + 1;
    Tensor *w64 = tensor_from_data(weight, SHAPE(3, 20), TENSOR_F64), *w32 = tensor_to(w64, TENSOR_F32);
    tensor_manual_seed(16);
    Tensor *drawn = tensor_multinomial(w32, 8, true);
    assert_true(tensor_ndim(drawn) == 2 && tensor_size(drawn, 0) == 3 && tensor_size(drawn, 1) == 8);
    SAMEI(drawn, golden_multinomial_f32);
    tensor_manual_seed(16);
    SAMEI(tensor_multinomial(w32, 8, false), golden_multinomial_apart_f32);
    tensor_manual_seed(16);
    SAMEI(tensor_multinomial(w32, 1, true), golden_multinomial_one_f32);
    tensor_manual_seed(16);
    SAMEI(tensor_multinomial(w64, 8, true), golden_multinomial_f64);
    tensor_manual_seed(16);
    SAMEI(tensor_multinomial(w64, 8, false), golden_multinomial_apart_f64);
}

/* Draws follow the weights, and weight 0 is drawn only when nothing else is left. */
static void test_multinomial_weights(void **state)
{
    (void)state;
    enum { N = 100000 };
    tensor_manual_seed(1);
    static const float weight[4] = { 1, 0, 2, 5 };
    static int64_t draw[N];
    Tensor *p = tensor_from_data(weight, SHAPE(4), TENSOR_F32);
    assert_int_equal(tensor_copy_to(tensor_multinomial(p, N, true), draw, sizeof draw), 0);
    int64_t count[4] = { 0 };
    for (int i = 0; i < N; i++) count[draw[i]]++;
    for (int j = 0; j < 4; j++) {
        double q = weight[j] / 8;
        assert_true(fabs(count[j] - N * q) <= 5 * sqrt(N * q * (1 - q)));
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(tensor_copy_to(tensor_multinomial(p, 4, false), draw, 4 * sizeof *draw), 0);
        assert_int_equal(draw[3], 1);
        assert_int_equal(draw[0] + draw[1] + draw[2], 5);
    }
    assert_int_equal(tensor_numel(tensor_multinomial(tensor_zeros(SHAPE(0, 3), TENSOR_F32), 2, true)), 0);
}

/* Tensors that are not contiguous are filled in the order of memory. */
static void test_layouts(void **state)
{
    (void)state;
    Tensor *memory = seeded(6, SHAPE(4, 5), TENSOR_F32);
    tensor_normal_(tensor_transpose(memory, 0, 1), 0, 1);
    NEAR32(memory, golden_each);
    SAME32(tensor_rand(SHAPE(3), TENSOR_F32), golden_each_after);
    memory = seeded(1, SHAPE(3, 4), TENSOR_F32);
    tensor_uniform_(tensor_transpose(memory, 0, 1), -0.1, 0.3);
    SAME32(memory, golden_uniform_f32);
    Tensor *like = tensor_transpose(tensor_empty(SHAPE(6, 4), TENSOR_F32), 0, 1);
    tensor_manual_seed(15);
    SAME32(tensor_rand_like(like), golden_rand_like);
    tensor_manual_seed(15);
    Tensor *x = tensor_randn_like(like);
    NEAR32(x, golden_randn_like);
    assert_true(tensor_is_contiguous(x) && tensor_size(x, 0) == 4 && tensor_size(x, 1) == 6);
}

/* ---- in-place rules -------------------------------------------------------------------------- */

static void refused(TensorStatus code, const char *words)
{
    assert_int_equal(tensor_error_code(), code);
    assert_non_null(strstr(tensor_error(), words));
    tensor_error_clear();
}

static void test_inplace_rules(void **state)
{
    (void)state;
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(2, 3), TENSOR_F32), true);
    uint32_t version = tensor_version(w);
    assert_null(tensor_uniform_(w, 0, 1));
    refused(TENSOR_EGRAD, "tensor_uniform_");
    assert_true(tensor_version(w) == version && tensor_get(w, DIMS(0, 0)) == 1);
    TENSOR_NO_GRAD
        assert_ptr_equal(tensor_uniform_(w, 2, 3), w);
    assert_true(tensor_version(w) == version + 1 && tensor_get(w, DIMS(0, 0)) >= 2);
    assert_true(tensor_requires_grad(w));

    Tensor *y = tensor_exp(w);
    assert_ptr_equal(tensor_normal_(y, 0, 1), y);
    assert_false(tensor_requires_grad(y));

    y = tensor_neg(w);
    Tensor *column = tensor_transpose(y, 0, 1);
    assert_non_null(tensor_uniform_(column, 0, 1));
    assert_true(tensor_requires_grad(y));
    assert_int_equal(tensor_backward(tensor_sum(y)), 0);
    assert_true(tensor_equal(tensor_grad(w), tensor_zeros(SHAPE(2, 3), TENSOR_F32)));

    assert_null(tensor_uniform_(tensor_expand(tensor_ones(SHAPE(1), TENSOR_F32), SHAPE(3)), 0, 1));
    refused(TENSOR_EVALUE, "share memory");
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define REFUSED(code, call)       \
    do {                          \
        assert_null(call);        \
        refused(code, "tensor_"); \
    } while (0)

static void test_refusals(void **state)
{
    (void)state;
    tensor_manual_seed(0);
    Tensor *before = tensor_get_rng_state();
    Tensor *x = tensor_zeros(SHAPE(3), TENSOR_F32), *h = tensor_zeros(SHAPE(3), TENSOR_F16),
           *i = tensor_zeros(SHAPE(3), TENSOR_I64);
    REFUSED(TENSOR_EDTYPE, tensor_rand(SHAPE(2), TENSOR_I64));
    REFUSED(TENSOR_EDTYPE, tensor_randn(SHAPE(2), (TensorDtype)99));
    REFUSED(TENSOR_EVALUE, tensor_normal(0, -1, SHAPE(2), TENSOR_F32));
    REFUSED(TENSOR_EVALUE, tensor_normal(0, NAN, SHAPE(2), TENSOR_F32));
    REFUSED(TENSOR_EVALUE, tensor_randint(3, 3, SHAPE(2)));
    REFUSED(TENSOR_EVALUE, tensor_randint_like(tensor_zeros(SHAPE(2), TENSOR_U8), 0, 257));
    REFUSED(TENSOR_EVALUE, tensor_randint_like(tensor_zeros(SHAPE(2), TENSOR_F16), -4096, 0));
    REFUSED(TENSOR_EVALUE, tensor_randperm(-1));
    REFUSED(TENSOR_EDTYPE, tensor_rand_like(i));
    REFUSED(TENSOR_EDTYPE, tensor_uniform_(i, 0, 1));
    REFUSED(TENSOR_EVALUE, tensor_uniform_(x, 1, 0));
    REFUSED(TENSOR_EVALUE, tensor_uniform_(x, NAN, 0));
    REFUSED(TENSOR_EVALUE, tensor_uniform_(x, -INFINITY, 0));
    REFUSED(TENSOR_EVALUE, tensor_uniform_(h, -40000, 40000));
    REFUSED(TENSOR_EVALUE, tensor_uniform_(h, 0, 70000));
    REFUSED(TENSOR_EVALUE, tensor_normal_(x, 0, -1));
    REFUSED(TENSOR_EVALUE, tensor_bernoulli_(x, 1.5));
    REFUSED(TENSOR_EVALUE, tensor_bernoulli_(x, NAN));
    REFUSED(TENSOR_EVALUE, tensor_exponential_(x, 0));
    REFUSED(TENSOR_EVALUE, tensor_exponential_(x, NAN));
    REFUSED(TENSOR_EVALUE, tensor_trunc_normal_(x, 0, 0, -1, 1));
    REFUSED(TENSOR_EVALUE, tensor_trunc_normal_(x, 0, 1, 1, 1));
    REFUSED(TENSOR_EVALUE, tensor_trunc_normal_(x, 0, 1, 2, INFINITY));
    REFUSED(TENSOR_EVALUE, tensor_trunc_normal_(x, 1, 1e-9, 1 + 1e-10, 2));
    REFUSED(TENSOR_EDTYPE, tensor_bernoulli(i));
    REFUSED(TENSOR_EVALUE, tensor_bernoulli(tensor_full(SHAPE(3), 1.5, TENSOR_F64)));
    REFUSED(TENSOR_EVALUE, tensor_bernoulli(tensor_full(SHAPE(3), NAN, TENSOR_F32)));
    REFUSED(TENSOR_EDTYPE, tensor_multinomial(i, 1, false));
    REFUSED(TENSOR_ESHAPE, tensor_multinomial(tensor_ones(SHAPE(), TENSOR_F32), 1, false));
    REFUSED(TENSOR_EVALUE, tensor_multinomial(tensor_ones(SHAPE(3), TENSOR_F32), 0, true));
    REFUSED(TENSOR_EVALUE, tensor_multinomial(tensor_ones(SHAPE(3), TENSOR_F32), 4, false));
    REFUSED(TENSOR_EVALUE, tensor_multinomial(tensor_ones(SHAPE(3, 0), TENSOR_F32), 1, true));
    Tensor *many = tensor_expand(tensor_ones(SHAPE(1), TENSOR_F32), SHAPE((1 << 24) + 1));
    assert_null(tensor_multinomial(many, 1, true));
    refused(TENSOR_EVALUE, "want 1 to 16777216 in a row");
    REFUSED(TENSOR_EVALUE, tensor_multinomial(x, 2, true));
    REFUSED(TENSOR_EVALUE, tensor_multinomial(tensor_full(SHAPE(3), -1, TENSOR_F32), 2, true));
    REFUSED(TENSOR_EVALUE, tensor_multinomial(tensor_full(SHAPE(3), INFINITY, TENSOR_F32), 2, false));
    assert_true(tensor_equal(before, tensor_get_rng_state())); /* nothing was drawn */
    assert_true(tensor_equal(x, tensor_zeros(SHAPE(3), TENSOR_F32)));
    assert_null(tensor_rand(SHAPE(-1), TENSOR_F32));
    refused(TENSOR_ESHAPE, "[-1]");
    assert_null(tensor_uniform_(NULL, 0, 1));
    refused(TENSOR_ENULL, "NULL");
    assert_null(tensor_multinomial(NULL, 1, true));
    refused(TENSOR_ENULL, "NULL");
}

static void test_edges(void **state)
{
    (void)state;
    tensor_manual_seed(0);
    Tensor *before = tensor_get_rng_state(), *x = tensor_zeros(SHAPE(100), TENSOR_F32);
    assert_int_equal(tensor_numel(tensor_randn(SHAPE(3, 0), TENSOR_F32)), 0);
    assert_non_null(tensor_normal_(tensor_empty(SHAPE(0), TENSOR_F64), 0, 1));
    assert_true(tensor_equal(before, tensor_get_rng_state()));
    assert_true(tensor_equal(tensor_uniform_(x, 2, 2), tensor_full_like(x, 2)));
    assert_true(tensor_equal(tensor_normal_(x, 3, 0), tensor_full_like(x, 3)));
    assert_true(tensor_equal(tensor_bernoulli_(x, 0), tensor_zeros_like(x)));
    assert_true(tensor_equal(tensor_bernoulli_(x, 1), tensor_ones_like(x)));
    assert_true(tensor_equal(tensor_exponential_(x, INFINITY), tensor_zeros_like(x)));
    Tensor *half = tensor_trunc_normal_(tensor_empty(SHAPE(50), TENSOR_BF16), 0, 1, -1, 1);
    for (int i = 0; i < 50; i++) assert_true(fabs(tensor_get(half, DIMS(i))) <= 1);
}

/* Every kind of draw, with and without a copy, in and out of a graph. */
static bool draw_all(Tensor *w)
{
    TensorScope inner = tensor_scope_open();
    Tensor *wide = tensor_empty(SHAPE(300, 9), TENSOR_F32), *half = tensor_rand(SHAPE(300), TENSOR_BF16);
    bool ok = wide && half && tensor_trunc_normal_(wide, 0, 1, -2, 2) && tensor_bernoulli(half) &&
              tensor_rand_like(half);
    ok = ok && tensor_multinomial(half, 5, true) && tensor_multinomial(half, 5, false) &&
         tensor_normal_(tensor_neg(w), 0, 1);
    TensorGenerator *g = ok ? tensor_generator(1) : NULL;
    ok = ok && g && tensor_generator_get_state(g);
    tensor_generator_free(g);
    tensor_scope_close(inner);
    return ok;
}

static void test_no_memory(void **state)
{
    (void)state;
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(40), TENSOR_F32), true);
    assert_true(draw_all(w));
    int64_t before = tensor_live_count(), n = 0;
    for (bool failed = true; failed;) {
        tensor_debug_fail_allocation(++n, false);
        bool ok = draw_all(w);
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_true(ok == !failed);
        assert_int_equal(tensor_error_code(), failed ? TENSOR_ENOMEM : TENSOR_OK);
        tensor_error_clear();
        assert_int_equal(tensor_live_count(), before);
    }
    assert_true(n > 20);
}

/* ---- generators ------------------------------------------------------------------------------ */

static void *ask_seed(void *seed)
{
    *(uint64_t *)seed = tensor_initial_seed();
    tensor_manual_seed(1); /* not this thread's */
    return NULL;
}

static void test_generators(void **state)
{
    (void)state;
    tensor_manual_seed(0);
    Tensor *first = tensor_rand(SHAPE(4), TENSOR_F32), *second = tensor_rand(SHAPE(4), TENSOR_F32);
    TensorGenerator *g = tensor_generator(0), *own = tensor_default_generator();
    assert_ptr_equal(tensor_set_generator(g), own);
    assert_true(tensor_equal(tensor_rand(SHAPE(4), TENSOR_F32), first));
    tensor_manual_seed(0); /* the default one, which is not in use */
    assert_true(tensor_equal(tensor_rand(SHAPE(4), TENSOR_F32), second));
    assert_int_equal(tensor_generator_manual_seed(g, 0), 0);
    assert_true(tensor_equal(tensor_rand(SHAPE(4), TENSOR_F32), first));
    tensor_generator_free(g); /* in use: the default one takes its place */
    assert_true(tensor_equal(tensor_rand(SHAPE(4), TENSOR_F32), first));
    assert_ptr_equal(tensor_set_generator(NULL), own);
    tensor_generator_free(NULL);

    uint64_t seed = tensor_seed();
    assert_true(seed == tensor_initial_seed() && seed < UINT64_C(1) << 53);
    assert_true(seed != tensor_seed());
    tensor_manual_seed(5);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_seed, &seed), 0);
    pthread_join(thread, NULL);
    assert_true(seed == golden_default_seed && tensor_initial_seed() == 5);

    assert_int_equal(tensor_generator_manual_seed(NULL, 0), -1);
    refused(TENSOR_ENULL, "generator");
    assert_null(tensor_generator_get_state(NULL));
    refused(TENSOR_ENULL, "generator");
}

static uint64_t digest(const uint8_t *x, int64_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < n; i++) h = (h ^ x[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void test_state(void **state)
{
    (void)state;
    tensor_manual_seed((UINT64_C(1) << 40) + 5);
    tensor_randn(SHAPE(3), TENSOR_F32);
    tensor_rand(SHAPE(700), TENSOR_F32);
    Tensor *saved = tensor_get_rng_state();
    assert_int_equal(tensor_numel(saved), 5072);
    assert_true(digest(tensor_data(saved), 5056) == golden_state_digest);
    TensorGenerator *g = tensor_generator(1);
    Tensor *torch = tensor_from_data(tensor_data(saved), SHAPE(5056), TENSOR_U8);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tensor_generator_set_state(g, i ? torch : saved), 0);
        assert_true(tensor_generator_initial_seed(g) == (UINT64_C(1) << 40) + 5);
        TensorGenerator *before = tensor_set_generator(g);
        same_f32(tensor_randn(SHAPE(1), TENSOR_F32), golden_state_next, 1, 2);
        same_f32(tensor_rand(SHAPE(3), TENSOR_F32), golden_state_next + 1, 3, 0);
        tensor_set_generator(before);
    }
    assert_true(tensor_equal(saved, tensor_get_rng_state()));
    tensor_generator_free(g);
}

static void damage(int at, uint8_t value)
{
    Tensor *bad = tensor_get_rng_state();
    ((uint8_t *)tensor_data(bad))[at] = value;
    assert_int_equal(tensor_set_rng_state(bad), -1);
    refused(TENSOR_EFORMAT, "state");
}

static void test_bad_states(void **state)
{
    (void)state;
    tensor_manual_seed(3);
    Tensor *before = tensor_get_rng_state();
    damage(8, 0);    /* left: 0 */
    damage(9, 3);    /* left: 769 */
    damage(12, 0);   /* not seeded */
    damage(28, 1);   /* word 0 has a 33rd bit */
    damage(5040, 2); /* has_normal */
    assert_int_equal(tensor_set_rng_state(tensor_zeros(SHAPE(5072), TENSOR_U8)), -1);
    refused(TENSOR_EFORMAT, "state");
    assert_int_equal(tensor_set_rng_state(tensor_zeros(SHAPE(5071), TENSOR_U8)), -1);
    refused(TENSOR_ESHAPE, "5071");
    assert_int_equal(tensor_set_rng_state(tensor_zeros(SHAPE(5072), TENSOR_I64)), -1);
    refused(TENSOR_EDTYPE, "u8");
    assert_int_equal(tensor_set_rng_state(NULL), -1);
    refused(TENSOR_ENULL, "NULL");
    assert_true(tensor_equal(before, tensor_get_rng_state()));
}

/* ---- masks and Philox ------------------------------------------------------------------------ */

static void test_masks(void **state)
{
    (void)state;
    assert_true(random_torch_masks());
    Tensor *ones = tensor_ones(SHAPE(80), TENSOR_F32);
    uint8_t keep[80];
    for (int again = 0; again < 2; again++) {
        tensor_manual_seed(10);
        assert_int_equal(tensor_copy_to(tensor_to(tensor_dropout(ones, 0.1), TENSOR_BOOL), keep, 80), 0);
        assert_int_equal(memcmp(keep, golden_dropout, 80) == 0, !again);
        assert_int_equal(tensor_use_torch_dropout(again), !again); /* off, and on again */
    }

    uint64_t seed, offset;
    tensor_manual_seed(UINT64_C(1) << 50 | 7);
    for (uint64_t i = 0; i < 3; i++) {
        random_next_philox(&seed, &offset, 10);
        assert_true(seed == (UINT64_C(1) << 50 | 7) && offset == i);
        random_next_philox(&seed, &offset, 0);
    }
    TensorGenerator kept;
    random_save(&kept);
    Tensor *x = tensor_rand(SHAPE(5), TENSOR_F32);
    random_next_philox(&seed, &offset, 1);
    random_restore(&kept);
    assert_true(tensor_equal(x, tensor_rand(SHAPE(5), TENSOR_F32)));
    random_next_philox(&seed, &offset, 1);
    assert_true(offset == 3);
}

static void run(Tensor *x, int kind, double p)
{
    RandomArgs args = { .kind = kind,
                        .dtype = (int)tensor_dtype(x),
                        .count = tensor_numel(x),
                        .seed = 42,
                        .offset = 9,
                        .p = p,
                        .out = tensor_data(x) };
    assert_int_equal(cpu_device.random(NULL, &args), 0);
}

static void test_kernel(void **state)
{
    (void)state;
    enum { N = 300001 };
    int threads = tensor_num_threads();
    static const TensorDtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    for (int kind = RANDOM_UNIFORM; kind <= RANDOM_NORMAL; kind++)
        for (int d = 0; d < 4; d++) {
            Tensor *one = tensor_empty(SHAPE(N), floats[d]), *many = tensor_empty(SHAPE(N), floats[d]);
            tensor_set_num_threads(1);
            run(one, kind, 0);
            tensor_set_num_threads(3);
            run(many, kind, 0);
            assert_true(tensor_equal(one, many));
            double sum = 0, squares = 0;
            double *x = tensor_data(tensor_to(one, TENSOR_F64));
            for (int i = 0; i < N; i++) {
                sum += x[i], squares += x[i] * x[i];
                if (kind == RANDOM_UNIFORM) assert_true(x[i] >= 0 && x[i] < 1);
            }
            double mean = kind == RANDOM_UNIFORM ? 0.5 : 0, square = kind == RANDOM_UNIFORM ? 1 / 3.0 : 1;
            double grain =
                kind == RANDOM_UNIFORM && floats[d] == TENSOR_BF16 ? 0x1p-9 : 0; /* cut off, not rounded */
            assert_true(fabs(sum / N - mean) < 0.01 + grain && fabs(squares / N - square) < 0.02 + grain);
        }
    static uint8_t want[N];
    philox_mask(want, 0, N, 42, 9, 1 - 0.3);
    Tensor *mask = tensor_empty(SHAPE(N), TENSOR_BOOL);
    run(mask, RANDOM_DROPOUT_MASK, 0.3);
    assert_memory_equal(tensor_data(mask), want, N);
    run(mask, RANDOM_DROPOUT_MASK, 0);
    assert_true(tensor_equal(mask, tensor_ones_like(mask)));
    run(mask, RANDOM_DROPOUT_MASK, 1);
    assert_true(tensor_equal(mask, tensor_zeros_like(mask)));
    tensor_set_num_threads(threads);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_new),
        TEST(test_integers),
        TEST(test_in_place),
        TEST(test_samples),
        TEST(test_multinomial_weights),
        TEST(test_layouts),
        TEST(test_inplace_rules),
        TEST(test_refusals),
        TEST(test_edges),
        TEST(test_no_memory),
        TEST(test_generators),
        TEST(test_state),
        TEST(test_bad_states),
        TEST(test_masks),
        TEST(test_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
