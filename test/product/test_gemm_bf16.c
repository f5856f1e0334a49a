/* test_gemm_bf16.c - products of bf16 by AVX512-BF16, and the same code by instructions of any AVX-512,
 * against sums in double; the layouts, the threads and the place of a value change no bit. */
#include "sane.h"
#include <math.h>
#include "cpu/cpu.h"
#include "cpu/product/gemm_bf16.h"
#include "device/half.h"

#if HAS_GEMM_BF16
#define BF16_BY_AVX512
#define gemm_bf16 by_avx512
int by_avx512(const GemmArgs *g);
#include "cpu/product/gemm_bf16.c"
#undef gemm_bf16
#undef gemm_bf16_here

#include "gemm_numbers.h"

enum { LAYOUTS = 3, SIDE = 70, ROOM = 4 * SIDE * SIDE };

static int (*product)(const GemmArgs *g);

static void fill(uint16_t *x, int64_t rows, int64_t cols, int64_t row, int64_t col, bool whole, uint64_t seed)
{
    state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) x[i * row + j * col] = bf16_from_f32(drawn_float(whole));
}

static void not_so(const int64_t at[3], double found, double want)
{
    print_error("[%d, %d, %d]: %g, want %g\n", (int)at[0], (int)at[1], (int)at[2], found, want);
    assert_true(false);
}

typedef struct Case {
    int64_t m, n, k, batch;
    int layout[3], to;
    double alpha, beta;
    bool bias, whole, b_shared;
} Case;

static uint16_t a[2 * ROOM], b[2 * ROOM], bias[2 * SIDE], c[4 * ROOM], was[4 * ROOM];

static GemmArgs make(const Case *t)
{
    GemmArgs g = { .dtype = TENSOR_BF16,
                   .to = TENSOR_BF16,
                   .batch = t->batch,
                   .m = t->m,
                   .n = t->n,
                   .k = t->k,
                   .a = a,
                   .b = b,
                   .c = c,
                   .alpha = t->alpha,
                   .beta = t->beta,
                   .bias = t->bias ? bias : NULL };
    steps(t->layout[0], t->m, t->k, &g.a_row, &g.a_col);
    steps(t->layout[1], t->k, t->n, &g.b_row, &g.b_col);
    steps(t->layout[2], t->m, t->n, &g.c_row, &g.c_col);
    g.a_batch = ROOM / 4, g.b_batch = t->b_shared ? 0 : ROOM / 4, g.c_batch = ROOM / 4;
    for (int64_t s = 0; s < t->batch; s++) {
        fill(a + s * g.a_batch, t->m, t->k, g.a_row, g.a_col, t->whole, 1 + (uint64_t)s);
        fill(b + s * g.b_batch, t->k, t->n, g.b_row, g.b_col, t->whole, 11 + (t->b_shared ? 0 : (uint64_t)s));
    }
    fill(bias, 1, t->n, t->n, 1, t->whole, 21);
    for (int64_t i = 0; i < 4 * ROOM; i++) c[i] = bf16_from_f32((float)(i % 7) - 3);
    memcpy(was, c, sizeof c);
    return g;
}

/* One element in double, and what rounding may make of it. */
static double expected(const GemmArgs *g, int64_t s, int64_t i, int64_t j, double *error)
{
    double sum = 0, size = 0;
    for (int64_t p = 0; p < g->k; p++) {
        const double x = get(TENSOR_BF16, g->a, s * g->a_batch + i * g->a_row + p * g->a_col) *
                         get(TENSOR_BF16, g->b, s * g->b_batch + p * g->b_row + j * g->b_col);
        sum += x, size += fabs(x);
    }
    const int64_t at = s * g->c_batch + i * g->c_row + j * g->c_col;
    double y = g->alpha * sum;
    if (g->beta != 0) y += g->beta * get(TENSOR_BF16, was, at);
    if (g->bias) y += get(TENSOR_BF16, g->bias, j);
    *error = fabs(y) * 0x1.01p-8 + (double)g->k * 0x1p-23 * (size * fabs(g->alpha) + fabs(y)) + 1e-37;
    return y;
}

static void assert_right(const Case *t, const GemmArgs *g)
{
    bool written[ROOM] = { false };
    for (int64_t s = 0; s < t->batch; s++)
        for (int64_t i = 0; i < t->m; i++)
            for (int64_t j = 0; j < t->n; j++) {
                const int64_t at = s * g->c_batch + i * g->c_row + j * g->c_col;
                double error;
                const double y = expected(g, s, i, j, &error), found = get(TENSOR_BF16, c, at);
                written[at] = true;
                if (t->whole && found != (double)bf16_to_f32(bf16_from_f32((float)y)))
                    not_so((int64_t[]){ s, i, j }, found, y);
                if (!(fabs(found - y) <= error)) not_so((int64_t[]){ s, i, j }, found, y);
            }
    for (int64_t i = 0; i < ROOM; i++)
        if (!written[i]) assert_int_equal(c[i], was[i]);
}

static Case drawn(int number_of)
{
    const uint64_t seed = (uint64_t)number_of * 7919 + 3;
    state = seed;
    for (int i = 0; i < 20; i++) next();
    return (Case){ .m = 1 + below(45),
                   .n = 1 + below(45),
                   .k = 1 + below(45),
                   .batch = 1 + below(3),
                   .layout = { (int)below(LAYOUTS), (int)below(LAYOUTS), (int)below(LAYOUTS) },
                   .alpha = below(2) ? 1 : .5,
                   .beta = below(3) ? 0 : .5,
                   .bias = below(2) == 0,
                   .whole = below(2) == 0,
                   .b_shared = below(2) == 0 };
}

static void test_values(void **unused)
{
    (void)unused;
    for (int i = 0; i < 400; i++) {
        const Case t = drawn(i);
        const GemmArgs g = make(&t);
        assert_int_equal(product(&g), 0);
        assert_right(&t, &g);
    }
}

static void test_bits(void **unused)
{
    (void)unused;
    static uint16_t first[SIDE * SIDE];
    for (int layout = 0; layout < LAYOUTS * LAYOUTS; layout++)
        for (int threads = 1; threads <= 3; threads += 2) {
            const Case t = { .m = 69,
                             .n = 67,
                             .k = 41,
                             .batch = 1,
                             .layout = { layout / 3, layout % 3, 0 },
                             .alpha = .3,
                             .bias = true };
            GemmArgs g = make(&t);
            tensor_set_num_threads(threads);
            assert_int_equal(product(&g), 0);
            if (layout == 0 && threads == 1) memcpy(first, c, sizeof first);
            assert_memory_equal(c, first, (size_t)(t.m * t.n) * sizeof *c);
            g.m = 1, g.a = a + 37 * g.a_row; /* one of its rows alone */
            assert_int_equal(product(&g), 0);
            assert_memory_equal(c, first + 37 * t.n, (size_t)t.n * sizeof *c);
        }
    tensor_set_num_threads(2);
}

/* NaN and infinity reach their own row or column, and zeros that fill up reach nothing. */
static void test_not_finite(void **unused)
{
    (void)unused;
    const Case t = { .m = 17, .n = 35, .k = 7, .batch = 1, .alpha = 1 };
    for (int which = 0; which < 2; which++) {
        GemmArgs g = make(&t);
        a[5 * g.a_row + 6] = bf16_from_f32(which ? (float)INFINITY : (float)NAN);
        assert_int_equal(product(&g), 0);
        for (int64_t i = 0; i < t.m; i++)
            for (int64_t j = 0; j < t.n; j++)
                assert_int_equal(!isfinite(get(TENSOR_BF16, c, i * t.n + j)), i == 5);
        g = make(&t);
        b[3 * g.b_row + 34] = bf16_from_f32(which ? (float)INFINITY : (float)NAN);
        assert_int_equal(product(&g), 0);
        for (int64_t i = 0; i < t.m; i++)
            for (int64_t j = 0; j < t.n; j++)
                assert_int_equal(!isfinite(get(TENSOR_BF16, c, i * t.n + j)), j == 34);
    }
}

static void test_many(void **unused) /* a batch that threads share */
{
    (void)unused;
    for (int shared = 0; shared < 2; shared++) {
        const Case t = {
            .m = 29, .n = 33, .k = 35, .batch = 4, .alpha = 1, .whole = true, .b_shared = shared
        };
        for (int threads = 1; threads <= 4; threads++) {
            const GemmArgs g = make(&t);
            tensor_set_num_threads(threads);
            assert_int_equal(product(&g), 0);
            assert_right(&t, &g);
        }
    }
    tensor_set_num_threads(2);
}

static void test_starved(void **unused)
{
    (void)unused;
    const Case t = { .m = 3, .n = 3, .k = 3, .batch = 1, .alpha = 1 };
    const GemmArgs g = make(&t);
    tensor_debug_fail_allocation(1, true);
    assert_int_equal(product(&g), -1);
    tensor_debug_fail_allocation(0, false);
    assert_memory_equal(c, was, sizeof c);
}

/* Through the slot: what the instructions give is what f32 gives, but for the last place. */
static void test_slot(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_to(tensor_randn(SHAPE(33, 65), TENSOR_F32), TENSOR_BF16),
           *w = tensor_to(tensor_randn(SHAPE(47, 65), TENSOR_F32), TENSOR_BF16);
    Tensor *y = tensor_to(tensor_linear(x, w, NULL), TENSOR_F32),
           *z = tensor_linear(tensor_to(x, TENSOR_F32), tensor_to(w, TENSOR_F32), NULL);
    assert_true(tensor_allclose(y, z, .rtol = 0x1p-8, .atol = 1e-3));
    tensor_scope_close(scope);
}

/* "medium": products of f32 are those of operands rounded to bf16 where the CPU has instructions for them. */
static Tensor *to_bf16_and_back(Tensor *x) { return tensor_to(tensor_to(x, TENSOR_BF16), TENSOR_F64); }

static Tensor *product_of(int form, Tensor *x, Tensor *w, Tensor *offset)
{
    Tensor *t = tensor_transpose(tensor_contiguous(tensor_transpose(w, -1, -2)), -1, -2);
    switch (form) {
    case 0: return tensor_matmul(x, w);
    case 1: return tensor_matmul(x, t);
    case 2: return tensor_matmul(x, tensor_select(w, 0, 1)); /* shared by the batch */
    case 3: return tensor_matmul(tensor_select(x, 0, 0), w);
    case 4: return tensor_linear(x, tensor_transpose(tensor_select(w, 0, 0), 0, 1), offset);
    default:
        return tensor_linear_act(x, tensor_transpose(tensor_select(w, 0, 0), 0, 1), offset, TENSOR_ACT_RELU);
    }
}

static void test_medium(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(3);
    Tensor *x = tensor_randn(SHAPE(3, 45, 70), TENSOR_F32), *w = tensor_randn(SHAPE(3, 70, 51), TENSOR_F32),
           *offset = tensor_randn(SHAPE(51), TENSOR_F32);
    for (int form = 0; form < 6; form++) {
        Tensor *exact = product_of(form, x, w, offset),
               *want =
                   product_of(form, to_bf16_and_back(x), to_bf16_and_back(w), tensor_to(offset, TENSOR_F64));
        tensor_set_float32_matmul_precision(TENSOR_MATMUL_HIGH);
        assert_true(tensor_equal(product_of(form, x, w, offset), exact));
        tensor_set_float32_matmul_precision(TENSOR_MATMUL_MEDIUM);
        Tensor *y = product_of(form, x, w, offset);
        assert_int_equal(tensor_equal(y, exact), !gemm_bf16_here());
        if (gemm_bf16_here())
            assert_true(tensor_allclose(tensor_to(y, TENSOR_F64), want, .rtol = 1e-5, .atol = 1e-4));
        Tensor *rounded =
            product_of(form, to_bf16_and_back(x), to_bf16_and_back(w), tensor_to(offset, TENSOR_F64));
        assert_true(tensor_equal(rounded, want)); /* f64 stays */
        tensor_set_float32_matmul_precision(TENSOR_MATMUL_HIGHEST);
    }
    tensor_scope_close(scope);
}

static void test_medium_starved(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_randn(SHAPE(40, 40), TENSOR_F32);
    tensor_set_float32_matmul_precision(TENSOR_MATMUL_MEDIUM);
    Tensor *y = tensor_matmul(x, x), *again = NULL;
    for (int n = 1; n < 20 && !again; n++) {
        tensor_debug_fail_allocation(n, false);
        again = tensor_matmul(x, x);
        tensor_debug_fail_allocation(0, false);
        assert_true(again || tensor_error_code() == TENSOR_ENOMEM);
        tensor_error_clear();
    }
    assert_true(tensor_equal(again, y));
    tensor_set_float32_matmul_precision(TENSOR_MATMUL_HIGHEST);
    tensor_scope_close(scope);
}

static int here(void **unused)
{
    (void)unused;
    __builtin_cpu_init();
    product = gemm_bf16;
    return 0;
}
static int anywhere(void **unused)
{
    (void)unused;
    product = by_avx512;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_values),     cmocka_unit_test(test_bits),
                                        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_many),
                                        cmocka_unit_test(test_starved),    cmocka_unit_test(test_slot) };
    const struct CMUnitTest medium[] = { cmocka_unit_test(test_medium),
                                         cmocka_unit_test(test_medium_starved) };
    int failed = cmocka_run_group_tests_name("medium", medium, NULL, NULL);
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bf16"))
        failed += cmocka_run_group_tests_name("AVX512-BF16", tests, here, NULL);
    else print_message("test_gemm_bf16: this CPU has no AVX512-BF16\n");
    if (__builtin_cpu_supports("avx512bw"))
        failed += cmocka_run_group_tests_name("AVX-512", tests, anywhere, NULL);
    else print_message("test_gemm_bf16: this CPU has no AVX-512\n");
    return failed;
}
#else
int main(void) { return 0; }
#endif
