/* test_gemm_amx.c - products on AMX: the same source with the tile instructions written out in C, and as it
 * is where the CPU has them.  Values, accuracy beside f32, what is declined, the same bits whatever the
 * layouts, the threads and the place, and the slot that chooses. */
#include "sane.h"
#include <float.h>
#include <math.h>
#include "cpu/cpu.h"
#include "cpu/product/gemm_amx.h"
#include "device/half.h"

#if HAS_GEMM_AMX
/* ---- the instructions, as Intel's manual has them --------------------------------------------- */

static THREAD_LOCAL struct {
    bool on;
    uint32_t word[8][16][16]; /* of a tile: rows, words */
} tiles;

static void tiles_on(const void *shape)
{
    uint8_t bytes[64];
    memcpy(bytes, shape, sizeof bytes);
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[1], 0);
    for (int t = 0; t < 8; t++) {
        assert_int_equal(bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8, 64); /* bytes of a row */
        assert_int_equal(bytes[48 + t], 16);                              /* rows */
    }
    assert_false(tiles.on);
    memset(&tiles, 0, sizeof tiles);
    tiles.on = true;
}
static void tiles_off(void) { tiles.on = false; }

static void tile_zero(int t) { memset(tiles.word[t], 0, sizeof tiles.word[t]); }
static void tile_load(int t, const void *from)
{
    assert_true(tiles.on);
    memcpy(tiles.word[t], from, sizeof tiles.word[t]);
}
static void tile_store(int t, float *to)
{
    assert_true(tiles.on);
    for (int i = 0; i < 16; i++) memcpy(to + 32 * i, tiles.word[t][i], 64);
}

/* Numbers below the normal range are read, and become, 0. */
static float flushed(float x) { return fabsf(x) < FLT_MIN ? 0 : x; }
static float upper(uint32_t word) { return flushed(half_float(word & 0xffff0000)); }

/* TDPBF16PS: the sums of the first and of the second halves of pairs, apart; then both to the tile. */
static void tile_dot(int sum, int a, int b)
{
    assert_true(tiles.on);
    for (int i = 0; i < 16; i++) {
        float two[2][16] = { { 0 } };
        for (int k = 0; k < 16; k++)
            for (int half = 0; half < 2; half++) {
                const float x = upper(tiles.word[a][i][k] << (half ? 0 : 16));
                for (int j = 0; j < 16; j++) /* in double, as one rounding but for rare ties */
                    two[half][j] =
                        flushed((float)((double)x * (double)upper(tiles.word[b][k][j] << (half ? 0 : 16)) +
                                        (double)two[half][j]));
            }
        for (int j = 0; j < 16; j++) {
            const float was = half_float(tiles.word[sum][i][j]);
            tiles.word[sum][i][j] = half_bits32(flushed(was + flushed(two[0][j] + two[1][j])));
        }
    }
}

enum { WORK_PER_THREAD = 1 << 12 }; /* threads share small products */
#define TILES_BY_HAND
#define TILE_TARGET
#define TILE_ON(shape) tiles_on(shape)
#define TILE_OFF() tiles_off()
#define TILE_ZERO(t) tile_zero(t)
#define TILE_LOAD(t, from) tile_load(t, from)
#define TILE_STORE(t, to) tile_store(t, to)
#define TILE_DOT(sum, a, b) tile_dot(sum, a, b)
#define gemm_amx by_hand
#define gemm_amx_takes takes_by_hand
#define gemm_amx_here here_by_hand
#define cpu_gemm slot_by_hand
int by_hand(const GemmArgs *g);
bool takes_by_hand(const GemmArgs *g);
static bool here_by_hand(void) { return true; }
int slot_by_hand(GemmArgs *g);
#include "cpu/product/gemm_amx.c"
#include "cpu/product/gemm_device.c"
#undef gemm_amx
#undef gemm_amx_takes
#undef gemm_amx_here
#undef cpu_gemm

/* ---- products --------------------------------------------------------------------------------- */

#include "gemm_numbers.h"

enum { LAYOUTS = 3, ROOM = 1 << 17 };

static int (*product)(const GemmArgs *g);

typedef struct Case {
    int64_t m, n, k, batch;
    int dtype, to, layout[3];
    double alpha, beta;
    bool bias, whole, b_shared;
} Case;

/* Values in f32, each of bf16 where the case is; `a` and `b` lie as the case says. */
static uint32_t a[ROOM], b[ROOM], c[ROOM], was[ROOM], bias[2048], first[ROOM];

static size_t size_of(int dtype) { return dtype == TENSOR_BF16 ? 2 : 4; }
static void put(int dtype, void *x, int64_t i, float value)
{
    if (dtype == TENSOR_BF16) ((uint16_t *)x)[i] = bf16_from_f32(value);
    else ((float *)x)[i] = value;
}

static GemmArgs make(const Case *t)
{
    GemmArgs g = { .dtype = t->dtype,
                   .to = t->to,
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
    g.a_batch = g.c_batch = ROOM / 2, g.b_batch = t->b_shared ? 0 : ROOM / 2;
    state = 3;
    for (int64_t s = 0; s < t->batch; s++) {
        for (int64_t i = 0; i < t->m; i++)
            for (int64_t p = 0; p < t->k; p++)
                put(t->dtype, a, s * g.a_batch + i * g.a_row + p * g.a_col, drawn_float(t->whole));
        for (int64_t p = 0; p < t->k; p++)
            for (int64_t j = 0; j < t->n; j++)
                put(t->dtype, b, s * g.b_batch + p * g.b_row + j * g.b_col, drawn_float(t->whole));
    }
    for (int64_t j = 0; j < t->n; j++) put(t->to, bias, j, (float)below(9) - 4);
    for (int64_t i = 0; i < ROOM; i++) put(t->to, c, i, (float)(i % 7) - 3);
    memcpy(was, c, sizeof c);
    return g;
}

static int64_t at(const GemmArgs *g, int64_t s, int64_t i, int64_t j)
{
    return s * g->c_batch + i * g->c_row + j * g->c_col;
}

/* One sum in double, and that of the sizes. */
static double sum_of(const GemmArgs *g, int64_t s, int64_t i, int64_t j, double *size)
{
    double sum = 0;
    *size = 0;
    for (int64_t p = 0; p < g->k; p++) {
        const double x = get(g->dtype, g->a, s * g->a_batch + i * g->a_row + p * g->a_col) *
                         get(g->dtype, g->b, s * g->b_batch + p * g->b_row + j * g->b_col);
        sum += x, *size += fabs(x);
    }
    return sum;
}

static void assert_right(const Case *t, const GemmArgs *g)
{
    static bool written[ROOM];
    memset(written, 0, sizeof written);
    for (int64_t s = 0; s < t->batch; s++)
        for (int64_t i = 0; i < t->m; i++)
            for (int64_t j = 0; j < t->n; j++) {
                double size, y = g->alpha * sum_of(g, s, i, j, &size);
                if (g->beta != 0) y += g->beta * get(t->to, was, at(g, s, i, j));
                if (g->bias) y += get(t->to, bias, j);
                const double found = get(t->to, c, at(g, s, i, j)),
                             error = (double)(t->k + 8) * 0x1p-24 * size * fabs(g->alpha) +
                                     fabs(y) * (t->to == TENSOR_BF16 ? 0x1.01p-8 : 0x1p-22) + 1e-37;
                written[at(g, s, i, j)] = true;
                if (!(fabs(found - y) <= (t->whole && t->to == TENSOR_F32 ? 0 : error)))
                    print_error("[%d, %d, %d]: %g, want %g\n", (int)s, (int)i, (int)j, found, y);
                assert_true(fabs(found - y) <= (t->whole && t->to == TENSOR_F32 ? 0 : error));
            }
    for (int64_t i = 0; i < ROOM; i++)
        if (!written[i]) assert_true(get(t->to, c, i) == get(t->to, was, i));
}

static void test_values(void **unused)
{
    (void)unused;
    for (int i = 0; i < 40; i++) {
        state = (uint64_t)i * 7919 + 3;
        for (int skip = 0; skip < 20; skip++) next();
        const int dtype = below(2) ? TENSOR_BF16 : TENSOR_F32;
        const Case t = { .m = 1 + below(70),
                         .n = 1 + below(70),
                         .k = 1 + below(100),
                         .batch = 1 + below(2),
                         .dtype = dtype,
                         .to = below(2) ? TENSOR_F32 : dtype,
                         .layout = { (int)below(LAYOUTS), (int)below(LAYOUTS), (int)below(LAYOUTS) },
                         .alpha = below(2) ? 1 : .5,
                         .beta = below(3) ? 0 : .5,
                         .bias = below(2) == 0,
                         .whole = below(2) == 0,
                         .b_shared = below(2) == 0 };
        const GemmArgs g = make(&t);
        assert_int_equal(product(&g), 0);
        assert_right(&t, &g);
    }
}

/* More than one block of k, of columns and of rows; sums in c, and aside. */
static void test_blocks(void **unused)
{
    (void)unused;
    const Case sizes[] = { { .m = 9, .n = 33, .k = 1100 },
                           { .m = 34, .n = 1061, .k = 35 },
                           { .m = 290, .n = 5, .k = 70 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int form = 0; form < 4; form++) {
            Case t = sizes[i];
            t.batch = 1, t.alpha = 1, t.beta = form & 1 ? .5 : 0, t.whole = true;
            t.dtype = form & 2 ? TENSOR_BF16 : TENSOR_F32, t.to = TENSOR_F32;
            const GemmArgs g = make(&t);
            for (int threads = 1; threads <= 4; threads += 3) {
                tensor_set_num_threads(threads);
                memcpy(c, was, sizeof c);
                assert_int_equal(product(&g), 0);
                assert_right(&t, &g);
            }
        }
    tensor_set_num_threads(2);
}

static void test_bits(void **unused)
{
    (void)unused;
    for (int dtype = 0; dtype < 2; dtype++)
        for (int layout = 0; layout < LAYOUTS * LAYOUTS; layout++)
            for (int threads = 1; threads <= 3; threads += 2) {
                const Case t = { .m = 70,
                                 .n = 40,
                                 .k = 97,
                                 .batch = 2,
                                 .dtype = dtype ? TENSOR_BF16 : TENSOR_F32,
                                 .to = TENSOR_F32,
                                 .layout = { layout / 3, layout % 3, 0 },
                                 .alpha = .3 };
                if (layout % 4 && threads == 1) continue;
                GemmArgs g = make(&t);
                tensor_set_num_threads(threads);
                assert_int_equal(product(&g), 0);
                if (layout == 0 && threads == 1) memcpy(first, c, sizeof first);
                assert_memory_equal(c, first, sizeof c);
                g.m = g.batch = 1, g.a = (const char *)a + 67 * g.a_row * (int64_t)size_of(t.dtype);
                assert_int_equal(product(&g), 0); /* one of its rows alone */
                assert_memory_equal(c, first + 67 * t.n, (size_t)t.n * sizeof *c);
            }
    tensor_set_num_threads(2);
}

/* ---- accuracy of f32 by parts ----------------------------------------------------------------- */

/* One chain of fused multiply-adds. */
static double chain(const GemmArgs *g, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t p = 0; p < g->k; p++)
        sum = (float)(get(TENSOR_F32, g->a, i * g->a_row + p) * get(TENSOR_F32, g->b, p * g->b_row + j) +
                      (double)sum);
    return sum;
}

/* 0: as they are.  1: rows of a and columns of b scaled apart.  2: elements over 40 binary places.  3: whole
 * matrices near the ends of the range.  4: positive, where errors add up. */
static void spread(const GemmArgs *g, int kind)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t p = 0; p < g->k; p++) {
            float *x = (float *)a + i * g->a_row + p;
            if (kind == 1) *x = ldexpf(*x, (int)(i % 21) * 4 - 40);
            if (kind == 2) *x = ldexpf(*x, (int)below(41) - 20);
            if (kind == 3) *x = ldexpf(*x, -60);
            if (kind == 4) *x = fabsf(*x);
        }
    for (int64_t p = 0; p < g->k; p++)
        for (int64_t j = 0; j < g->n; j++) {
            float *x = (float *)b + p * g->b_row + j;
            if (kind == 1) *x = ldexpf(*x, (int)(j % 17) * 4 - 20);
            if (kind == 2) *x = ldexpf(*x, (int)below(41) - 20);
            if (kind == 3) *x = ldexpf(*x, 120);
            if (kind == 4) *x = fabsf(*x);
        }
}

static void test_accuracy(void **unused)
{
    (void)unused;
    const int64_t lengths[] = { 32, 256, 700 };
    for (int kind = 0; kind < 5; kind++)
        for (int length = 0; length < 3; length++) {
            const Case t = { .m = 45,
                             .n = 50,
                             .k = lengths[length],
                             .batch = 1,
                             .dtype = TENSOR_F32,
                             .to = TENSOR_F32,
                             .alpha = 1 };
            const GemmArgs g = make(&t);
            double most = 0, ours = 0, theirs = 0;
            spread(&g, kind);
            assert_int_equal(product(&g), 0);
            for (int64_t i = 0; i < t.m; i++)
                for (int64_t j = 0; j < t.n; j++) {
                    double size, y = sum_of(&g, 0, i, j, &size), unit = size * 0x1p-24;
                    const double error = fabs(get(TENSOR_F32, c, at(&g, 0, i, j)) - y) / unit,
                                 of_chain = fabs(chain(&g, i, j) - y) / unit;
                    most = error > most ? error : most;
                    ours += error * error, theirs += of_chain * of_chain;
                }
            assert_true(most <= (double)t.k + 8);
            assert_true(ours <= theirs); /* RMS: f32's at most */
        }
}

/* ---- what is declined ------------------------------------------------------------------------- */

typedef struct Bad {
    const char *what;
    float in_a, in_b, all;
} Bad;

static const Bad bad[] = {
    { "infinity in a", INFINITY, 1, 1 },      { "NaN in b", 1, NAN, 1 },
    { "near FLT_MAX", -3.4e38f, 1, 1 },       { "overflow of the sum", 0x1p100f, 0x1p28f, 1 },
    { "a denormal number", 0x1p-130f, 1, 1 }, { "a part below the normal range", 1, 0x1.fffffep-103f, 1 },
    { "small products", 1, 1, 0x1p-51f },
};

static void test_declined(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int form = 0; form < 3; form++) { /* beta; the number of threads */
            const Case t = { .m = 90,
                             .n = 41,
                             .k = 110,
                             .batch = 1,
                             .dtype = TENSOR_F32,
                             .to = TENSOR_F32,
                             .alpha = 1,
                             .beta = form == 1 };
            const GemmArgs g = make(&t);
            for (int64_t p = 0; p < t.m * t.k; p++) ((float *)a)[p] = bad[i].all;
            for (int64_t p = 0; p < t.n * t.k; p++) ((float *)b)[p] = bad[i].all;
            ((float *)a)[77 * g.a_row + 100] = bad[i].in_a * bad[i].all;
            ((float *)b)[100 * g.b_row + 40] = bad[i].in_b * bad[i].all;
            tensor_set_num_threads(form == 2 ? 3 : 1);
            const int status = product(&g);
            if (status != GEMM_AMX_NOT) print_error("%s: %d\n", bad[i].what, status);
            assert_int_equal(status, GEMM_AMX_NOT);
            if (form == 1) assert_memory_equal(c, was, sizeof c);
        }
    tensor_set_num_threads(2);
}

/* On the near side of the limits, and zeros: not declined, and right. */
static void test_taken(void **unused)
{
    (void)unused;
    const Bad good[] = { { "", 0x1.fdp127f, 0x1p-3f, 0 },
                         { "", 0x1p-102f, 0x1p50f, 0 },
                         { "", 0, 0, 0 },
                         { "", 0x1.000002p-49f, 0x1p-49f, 0 },
                         { "", 0x1p-80f, 0x1p-19f, 1 } }; /* a small product in sums that are large */
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const Case t = {
            .m = 40, .n = 40, .k = 40, .batch = 1, .dtype = TENSOR_F32, .to = TENSOR_F32, .alpha = 1
        };
        const GemmArgs g = make(&t);
        for (int64_t p = 0; p < t.m * t.k; p++) ((float *)a)[p] = good[i].all + (p % 41 ? 0 : good[i].in_a);
        for (int64_t p = 0; p < t.n * t.k; p++) ((float *)b)[p] = good[i].all + (p % 41 ? 0 : good[i].in_b);
        if (i == 4) ((float *)a)[0] = good[i].in_a, ((float *)b)[0] = good[i].in_b;
        assert_int_equal(product(&g), 0);
        assert_right(&t, &g);
    }
}

/* bf16 is taken as it is: NaN and infinity reach their own row or column. */
static void test_not_finite(void **unused)
{
    (void)unused;
    const Case t = {
        .m = 37, .n = 35, .k = 40, .batch = 1, .dtype = TENSOR_BF16, .to = TENSOR_BF16, .alpha = 1
    };
    for (int which = 0; which < 4; which++) {
        const GemmArgs g = make(&t);
        const float x = which & 1 ? INFINITY : NAN;
        if (which & 2) put(TENSOR_BF16, b, 3 * g.b_row + 34, x);
        else put(TENSOR_BF16, a, 5 * g.a_row + 6, x);
        assert_int_equal(product(&g), 0);
        for (int64_t i = 0; i < t.m; i++)
            for (int64_t j = 0; j < t.n; j++)
                assert_int_equal(!isfinite(get(TENSOR_BF16, c, i * t.n + j)), which & 2 ? j == 34 : i == 5);
    }
}

static void test_starved(void **unused)
{
    (void)unused;
    const Case t = { .m = 3, .n = 3, .k = 3, .batch = 1, .dtype = TENSOR_F32, .to = TENSOR_F32, .alpha = 1 };
    const GemmArgs g = make(&t);
    tensor_debug_fail_allocation(1, true);
    assert_int_equal(product(&g), -1);
    tensor_debug_fail_allocation(0, false);
    assert_memory_equal(c, was, sizeof c);
}

/* ---- the slot ---------------------------------------------------------------------------------- */

static int exact(const GemmArgs *g)
{
    GemmArgs copy = *g;
    copy.precision = GEMM_EXACT;
    memcpy(c, was, sizeof c);
    return slot_by_hand(&copy);
}
static int high(const GemmArgs *g)
{
    GemmArgs copy = *g;
    copy.precision = GEMM_TF32;
    memcpy(c, was, sizeof c);
    return slot_by_hand(&copy);
}

/* "high" is by parts where the product is large enough, and f32 to the bit where it is not, or cannot be:
 * then all of it, with what c was. */
static void test_slot(void **unused)
{
    (void)unused;
    for (int form = 0; form < 12; form++) {
        const Case t = { .m = 90,
                         .n = form % 3 == 1 ? 60 : 80, /* 36, or 42, sums for each line */
                         .k = 96,
                         .batch = 2,
                         .dtype = TENSOR_F32,
                         .to = TENSOR_F32,
                         .alpha = .7,
                         .beta = form / 3 & 1 ? .3 : 0,
                         .bias = form / 6 };
        const GemmArgs g = make(&t);
        if (form % 3 == 2) ((float *)a)[g.a_batch + 50] = INFINITY;
        assert_int_equal(exact(&g), 0);
        memcpy(first, c, sizeof first);
        assert_int_equal(high(&g), 0);
        assert_int_equal(memcmp(first, c, sizeof c) != 0, form % 3 == 0);
        if (form % 3 == 0) assert_right(&t, &g);
    }
}

/* "medium", and bf16 itself, are the product of rounded operands. */
static void test_slot_bf16(void **unused)
{
    (void)unused;
    const Case t = {
        .m = 70, .n = 40, .k = 64, .batch = 1, .dtype = TENSOR_F32, .to = TENSOR_F32, .alpha = 1
    };
    GemmArgs g = make(&t);
    for (int64_t i = 0; i < ROOM; i++) put(TENSOR_F32, a, i, bf16_to_f32(bf16_from_f32(((float *)a)[i])));
    for (int64_t i = 0; i < ROOM; i++) put(TENSOR_F32, b, i, bf16_to_f32(bf16_from_f32(((float *)b)[i])));
    g.precision = GEMM_BF16;
    assert_int_equal(slot_by_hand(&g), 0);
    assert_right(&t, &g);
}

static void test_sizes(void **unused) /* those that are taken, alike for a batch and for its rows in one */
{
    (void)unused;
    GemmArgs g = { .dtype = TENSOR_F32, .batch = 1, .m = 80, .n = 80, .k = 32, .b_batch = 7 };
    assert_true(takes_by_hand(&g));
    g.m = 79;
    assert_false(takes_by_hand(&g));
    g.m = 80, g.k = 31;
    assert_false(takes_by_hand(&g));
    g.k = 32, g.m = 40, g.batch = 2;
    assert_false(takes_by_hand(&g));
    g.b_batch = 0;
    assert_true(takes_by_hand(&g));
}

static int by_tiles(void **unused)
{
    (void)unused;
    product = gemm_amx;
    return 0;
}
static int in_c(void **unused)
{
    (void)unused;
    product = by_hand;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_values),     cmocka_unit_test(test_blocks),
                                        cmocka_unit_test(test_bits),       cmocka_unit_test(test_accuracy),
                                        cmocka_unit_test(test_declined),   cmocka_unit_test(test_taken),
                                        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_starved) };
    const struct CMUnitTest slot[] = { cmocka_unit_test(test_slot), cmocka_unit_test(test_slot_bf16),
                                       cmocka_unit_test(test_sizes) };
    int failed = cmocka_run_group_tests_name("tiles by hand", tests, in_c, NULL);
    failed += cmocka_run_group_tests_name("the slot", slot, NULL, NULL);
    if (gemm_amx_here()) failed += cmocka_run_group_tests_name("AMX", tests, by_tiles, NULL);
    else print_message("test_gemm_amx: this CPU has no AMX\n");
    return failed;
}
#else
int main(void) { return 0; }
#endif
