/* test_gemm.c - the matrix product against three loops in double, and its promises on bits.
 *
 * Links the kernels directly, and so chooses the instruction set and the memory that they get. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/product/gemm.h"
#include "unchecked.h"

static int isa, starve;

static int best_isa(void)
{
#if defined __x86_64__ && !defined ONE_ISA
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

int cpu_isa(void) { return isa; }
void *gemm_scratch(size_t bytes) { return starve ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64); }
void gemm_scratch_free(void *memory) { free(memory); }

/* --- operands --- */

static uint64_t state = 88172645463325252u;

static UNCHECKED uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static int64_t below(int64_t n) { return (int64_t)(next() % (uint64_t)n); }
static UNCHECKED double uniform(void) { return (double)(next() >> 11) * 0x1p-53 * 2 - 1; }

/* A stack of `batch` matrices somewhere in a block of memory, laid out in one of several ways. */
enum { ROWS_FIRST, COLUMNS_FIRST, SPREAD, REVERSED, PADDED, LAYOUTS };

typedef struct {
    int dtype;
    int64_t batch, rows, cols, count;
    int64_t by_batch, by_row, by_col, origin;
    void *memory;
} Matrix;

static UNCHECKED size_t width(int dtype) { return dtype == GEMM_F64 ? sizeof(double) : sizeof(float); }

static UNCHECKED Matrix matrix(int dtype, int64_t batch, int64_t rows, int64_t cols, int layout)
{
    Matrix x = { .dtype = dtype, .batch = batch, .rows = rows, .cols = cols };
    const int64_t gap = layout == SPREAD ? 3 : 1, pad = layout == PADDED ? 5 : 0;
    if (layout == COLUMNS_FIRST) {
        x.by_row = 1, x.by_col = rows + 1, x.by_batch = (rows + 1) * cols;
    } else {
        x.by_col = gap, x.by_row = (cols + pad) * gap + (layout == SPREAD), x.by_batch = x.by_row * rows;
    }
    x.count = x.by_batch * batch + 64;
    if (layout == REVERSED) {
        x.origin = x.count - 1;
        x.by_row = -x.by_row, x.by_col = -x.by_col, x.by_batch = -x.by_batch;
    }
    x.memory = malloc((size_t)x.count * width(dtype));
    assert_non_null(x.memory);
    for (int64_t i = 0; i < x.count; i++)
        if (dtype == GEMM_F64) ((double *)x.memory)[i] = NAN;
        else ((float *)x.memory)[i] = NAN;
    return x;
}

static void *start(const Matrix *x) { return (char *)x->memory + x->origin * (int64_t)width(x->dtype); }

static UNCHECKED double get(const Matrix *x, int64_t b, int64_t i, int64_t j)
{
    const int64_t at = x->origin + b * x->by_batch + i * x->by_row + j * x->by_col;
    return x->dtype == GEMM_F64 ? ((double *)x->memory)[at] : ((float *)x->memory)[at];
}

static UNCHECKED void set(const Matrix *x, int64_t b, int64_t i, int64_t j, double value)
{
    const int64_t at = x->origin + b * x->by_batch + i * x->by_row + j * x->by_col;
    if (x->dtype == GEMM_F64) ((double *)x->memory)[at] = value;
    else ((float *)x->memory)[at] = (float)value;
}

static UNCHECKED void randomize(const Matrix *x)
{
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++) set(x, b, i, j, uniform());
}

/* The same values in another layout. */
static UNCHECKED Matrix relaid(const Matrix *x, int layout)
{
    Matrix y = matrix(x->dtype, x->batch, x->rows, x->cols, layout);
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++) set(&y, b, i, j, get(x, b, i, j));
    return y;
}

/* --- one case --- */

typedef struct {
    Matrix a, b, c, bias;
    int has_bias, bias_per;
    double alpha, beta;
} Case;

static void multiply(const Case *t, const Matrix *a, const Matrix *b, const Matrix *c, int threads)
{
    const GemmCall call = {
        .dtype = c->dtype,
        .batch = c->batch,
        .m = c->rows,
        .n = c->cols,
        .k = a->cols,
        .a = start(a),
        .a_batch = a->batch == 1 ? 0 : a->by_batch,
        .a_row = a->by_row,
        .a_col = a->by_col,
        .b = start(b),
        .b_batch = b->batch == 1 ? 0 : b->by_batch,
        .b_row = b->by_row,
        .b_col = b->by_col,
        .c = start(c),
        .c_batch = c->by_batch,
        .c_row = c->by_row,
        .c_col = c->by_col,
        .alpha = t->alpha,
        .beta = t->beta,
        .bias = t->has_bias ? start(&t->bias) : NULL,
        .bias_per = t->bias_per,
    };
    assert_int_equal(gemm_cpu(&call, threads), 0);
}

static UNCHECKED void agrees(const Case *t, const Matrix *c)
{
    const double unit = c->dtype == GEMM_F64 ? 0x1p-53 : 0x1p-24;
    const int64_t k = t->a.cols;
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t i = 0; i < c->rows; i++)
            for (int64_t j = 0; j < c->cols; j++) {
                double sum = 0, size = 0;
                for (int64_t p = 0; p < k; p++) {
                    const int64_t at_a = t->a.batch == 1 ? 0 : b, at_b = t->b.batch == 1 ? 0 : b;
                    const double term = get(&t->a, at_a, i, p) * get(&t->b, at_b, p, j);
                    sum += term, size += fabs(term);
                }
                const double old = t->beta != 0 ? t->beta * get(&t->c, b, i, j) : 0;
                const double bias =
                    t->has_bias ? get(&t->bias, 0, 0, t->bias_per == GEMM_BIAS_ROW ? j : i) : 0;
                const double want = t->alpha * sum + old + bias, got = get(c, b, i, j);
                const double bound =
                    unit * ((double)k + 8) * (fabs(t->alpha) * size + fabs(old) + fabs(bias));
                if (!(fabs(got - want) <= bound))
                    fail_msg("isa %d dtype %d %dx%dx%d batch %d at %d,%d,%d: %.9g, want %.9g within %.2g",
                             isa, c->dtype, (int)c->rows, (int)c->cols, (int)k, (int)c->batch, (int)b, (int)i,
                             (int)j, got, want, bound);
            }
}

static UNCHECKED void same_bits(const Matrix *x, const Matrix *y)
{
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++) {
                const double p = get(x, b, i, j), q = get(y, b, i, j);
                if (memcmp(&p, &q, sizeof p) != 0)
                    fail_msg("isa %d dtype %d %dx%d at %d,%d,%d: %.17g and %.17g", isa, x->dtype,
                             (int)x->rows, (int)x->cols, (int)b, (int)i, (int)j, p, q);
            }
}

/* Memory that is not part of c keeps the NaN it was filled with. */
static UNCHECKED void untouched_around(const Matrix *x)
{
    int64_t numbers = 0;
    for (int64_t i = 0; i < x->count; i++)
        numbers += x->dtype == GEMM_F64 ? !isnan(((double *)x->memory)[i]) : !isnan(((float *)x->memory)[i]);
    assert_int_equal(numbers, x->batch * x->rows * x->cols);
}

/* The product in a random layout against the loops, then again with other layouts and two threads. */
static void check(int dtype, int64_t batch, int64_t m, int64_t n, int64_t k, int compare)
{
    static const double factors[] = { 1, 1, -0.75, 2.5, 0 };
    Case t = { .alpha = factors[below(5)],
               .beta = factors[below(5)],
               .has_bias = (int)below(2),
               .bias_per = (int)below(2) };
    if (below(2)) t.beta = 0;
    const int64_t one = below(4) == 0;
    t.a = matrix(dtype, one ? 1 : batch, m, k, (int)below(LAYOUTS));
    t.b = matrix(dtype, below(4) == 0 ? 1 : batch, k, n, (int)below(LAYOUTS));
    t.c = matrix(dtype, batch, m, n, ROWS_FIRST);
    t.bias = matrix(dtype, 1, 1, m + n, ROWS_FIRST);
    randomize(&t.a), randomize(&t.b), randomize(&t.bias);
    if (t.beta != 0) randomize(&t.c); /* otherwise all NaN, which must not survive */
    Matrix first = relaid(&t.c, (int)below(LAYOUTS));
    multiply(&t, &t.a, &t.b, &first, 1);
    if (compare) agrees(&t, &first);
    if (batch * m * n > 0) untouched_around(&first);
    for (int i = 0; i < 3; i++) {
        Matrix a = relaid(&t.a, (int)below(LAYOUTS)), b = relaid(&t.b, (int)below(LAYOUTS));
        Matrix c = relaid(&t.c, (int)below(LAYOUTS));
        multiply(&t, &a, &b, &c, 1 + i);
        same_bits(&first, &c);
        free(a.memory), free(b.memory), free(c.memory);
    }
    free(t.a.memory), free(t.b.memory), free(t.c.memory), free(t.bias.memory), free(first.memory);
}

/* --- tests --- */

static void random_shapes(void **unused)
{
    (void)unused;
    for (isa = best_isa(); isa >= 0; isa--)
        for (int round = 0; round < 400; round++) {
            const int64_t side = round % 3 == 0 ? 8 : round % 3 == 1 ? 40 : 100;
            check(round % 2, 1 + below(3), below(side), below(side), below(side), 1);
        }
}

static void shapes_at_the_seams(void **unused)
{
    (void)unused;
    static const int64_t shapes[][4] = {
        { 1, 1, 1, 5000 },  { 2, 4, 4, 64 },     { 1, 3, 2, 1025 },   { 1, 4, 5, 64 },    { 1, 1, 300, 70 },
        { 1, 300, 1, 70 },  { 1, 2, 200, 33 },   { 1, 3, 140, 400 },  { 1, 15, 33, 385 }, { 1, 64, 256, 784 },
        { 1, 64, 10, 128 }, { 1, 400, 140, 9 },  { 1, 30, 300, 769 }, { 1, 29, 2100, 5 }, { 1, 350, 300, 20 },
        { 7, 16, 16, 64 },  { 1, 512, 256, 24 }, { 2, 0, 3, 2 },      { 2, 3, 0, 2 },     { 2, 3, 5, 0 },
        { 0, 3, 5, 4 },
    };
    for (isa = best_isa(); isa >= 0; isa--)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int dtype = 0; dtype < 2; dtype++)
                check(dtype, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 1);
}

/* Sums by chains and by vectors, of rows across and down memory, whole vectors of them and parts, with one
 * chunk of k and several. */
static void columns(void **unused)
{
    (void)unused;
    static const int64_t rows[] = { 5, 8, 16, 19, 64, 70, 131 },
                         lengths[] = { 1, 4, 32, 33, 63, 64, 65, 200, 1024, 2300 };
    for (isa = best_isa(); isa >= 0; isa--)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++)
                for (int dtype = 0; dtype < 2; dtype++) {
                    check(dtype, 1 + below(2), rows[i], 1, lengths[j], 1);
                    check(dtype, 1, 1, rows[i], lengths[j], 1);
                }
}

static void threads_share_large_ones(void **unused)
{
    (void)unused;
    for (isa = best_isa(); isa >= 0; isa--)
        for (int dtype = 0; dtype < 2; dtype++) {
            check(dtype, 1, 200, 210, 150, 1);
            check(dtype, 1, 400, 20, 300, 1);
            check(dtype, 3, 130, 70, 190, 1);
            check(dtype, 500, 2, 3, 700, 1);
            check(dtype, 1, 5000, 1, 300, 1);
            check(dtype, 1, 1030, 150, 40, 0); /* the last piece is cut otherwise than the first */
            check(dtype, 1, 340, 4100, 8, 0);
        }
}

static void large_enough_for_blis(void **unused)
{
    (void)unused;
    isa = best_isa();
    for (int dtype = 0; dtype < 2; dtype++) {
        check(dtype, 1, 773, 811, 801, 0);
        check(dtype, 1, 300, 1900, 900, 0);
    }
    Case t = { .alpha = 1 };
    t.a = matrix(GEMM_F32, 1, 800, 820, ROWS_FIRST), t.b = matrix(GEMM_F32, 1, 820, 790, ROWS_FIRST);
    t.c = matrix(GEMM_F32, 1, 800, 790, ROWS_FIRST);
    randomize(&t.a), randomize(&t.b);
    multiply(&t, &t.a, &t.b, &t.c, 2);
    agrees(&t, &t.c);
    free(t.a.memory), free(t.b.memory), free(t.c.memory);
    assert_true(strlen(blis_version()) > 0);
    assert_true(strlen(blis_config()) > 0);
}

static void both_operands_the_same_memory(void **unused)
{
    (void)unused;
    for (isa = best_isa(); isa >= 0; isa--) {
        Case t = { .alpha = 1 };
        t.a = matrix(GEMM_F64, 1, 70, 70, ROWS_FIRST);
        randomize(&t.a);
        t.b = t.a;
        t.b.by_row = t.a.by_col, t.b.by_col = t.a.by_row;
        t.c = matrix(GEMM_F64, 1, 70, 70, ROWS_FIRST);
        multiply(&t, &t.a, &t.b, &t.c, 2);
        agrees(&t, &t.c);
        free(t.a.memory), free(t.c.memory);
    }
}

static void failed_memory_is_told_and_c_kept(void **unused)
{
    (void)unused;
    isa = best_isa();
    gemm_release();
    float a[100 * 100] = { 0 }, b[100 * 100] = { 0 }, c[100 * 100];
    for (int i = 0; i < 100 * 100; i++) c[i] = 7;
    const GemmCall call = { .batch = 1,
                            .m = 100,
                            .n = 100,
                            .k = 100,
                            .a = a,
                            .a_row = 100,
                            .a_col = 1,
                            .b = b,
                            .b_row = 1,
                            .b_col = 100,
                            .c = c,
                            .c_row = 100,
                            .c_col = 1,
                            .alpha = 1 };
    starve = 1;
    assert_int_equal(gemm_cpu(&call, 1), -1);
    assert_int_equal(gemm_cpu(&call, 2), -1);
    for (int i = 0; i < 100 * 100; i++) assert_true(c[i] == 7);
    starve = 0;
    assert_int_equal(gemm_cpu(&call, 2), 0);
    assert_true(c[99] == 0);
}

static int release(void **unused)
{
    (void)unused;
    gemm_release();
    return 0;
}

/* --- one column --- */

/* A short k: the loop for one column gives the bits that a product of two columns, made of tiles, has. */
static void column_and_pair(int dtype, int64_t m, int64_t k, int across, double alpha, double beta)
{
    enum { MOST = 80 * 40 };
    static double a[MOST], b[MOST], bias[MOST], one[MOST], two[2 * MOST];
    const size_t size = width(dtype);
    for (int64_t i = 0; i < MOST; i++) {
        double x[3] = { uniform(), uniform(), uniform() };
        if (dtype == GEMM_F64)
            a[i] = x[0], b[i] = x[1], bias[i] = one[i] = two[2 * i] = two[2 * i + 1] = x[2];
        else {
            ((float *)a)[i] = (float)x[0], ((float *)b)[i] = (float)x[1];
            ((float *)bias)[i] = ((float *)one)[i] = (float)x[2];
            ((float *)two)[2 * i] = ((float *)two)[2 * i + 1] = (float)x[2];
        }
    }
    GemmCall g = { .dtype = dtype,
                   .batch = 1,
                   .m = m,
                   .n = 1,
                   .k = k,
                   .a = a,
                   .b = b,
                   .c = one,
                   .a_row = across ? 1 : k,
                   .a_col = across ? m : 1,
                   .b_row = 1,
                   .b_col = 0,
                   .c_row = 1,
                   .c_col = 1,
                   .alpha = alpha,
                   .beta = beta,
                   .bias = beta == 0 ? bias : NULL,
                   .bias_per = GEMM_BIAS_COLUMN };
    assert_int_equal(gemm_cpu(&g, 1), 0);
    g.n = 2, g.c = two, g.c_row = 2;
    assert_int_equal(gemm_cpu(&g, 1), 0);
    for (int64_t i = 0; i < m; i++)
        assert_memory_equal((char *)one + (size_t)i * size, (char *)two + (size_t)(2 * i) * size, size);
}

static void a_column_has_the_bits_of_tiles(void **unused)
{
    static const int64_t rows[] = { 5, 16, 77 }, lengths[] = { 1, 2, 7, 31, 32 };
    (void)unused;
    for (isa = 0; isa <= best_isa(); isa++)
        for (int dtype = 0; dtype < 2; dtype++)
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 5; j++)
                    for (int across = 0; across < 2; across++) {
                        column_and_pair(dtype, rows[i], lengths[j], across, 1, 0);
                        column_and_pair(dtype, rows[i], lengths[j], across, .7, -.3);
                    }
    isa = best_isa();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(shapes_at_the_seams),
        cmocka_unit_test(columns),
        cmocka_unit_test(a_column_has_the_bits_of_tiles),
        cmocka_unit_test(threads_share_large_ones),
        cmocka_unit_test(large_enough_for_blis),
        cmocka_unit_test(both_operands_the_same_memory),
        cmocka_unit_test(failed_memory_is_told_and_c_kept),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
