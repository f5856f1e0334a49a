/* gemm_amx.c - products on AMX, whose tiles add 16 x 16 sums of 32 products of bf16 an instruction.
 *
 *   c = alpha a b + beta c + bias      a [m, k], b [k, n]
 *
 * An f32 operand is x = h + m + l, each of bf16: h is x rounded to 8 bits, m the rest rounded, l what is
 * left, at most 8 bits.  Of the nine products of parts, m l, l m and l l are below 2^-24 of x y, and left
 * out; the other six go into the same sum, so an f32 product takes six of bf16.  A prototype of this kernel
 * reached on a core of a Sapphire Rapids, at 1024^3: 249 GFLOP/s by parts, 833 in bf16; AVX-512 141 in f32.
 *
 * Both operands are packed into panels of 32 lines (rows of a, columns of b): for each 32 of k and each part
 * two tiles of 16 lines.  Pair i of a tile is (k = i, k = i + 16).  A kernel keeps 32 x 32 sums in four tiles
 * over a block of k; the blocks' sums are added in order.  The length of a block follows from k alone, so the
 * bits of a sum depend on its operands alone, not on strides, threads or its place.
 *
 * Tiles read and write numbers below 2^-126 as 0, and the first part of x near FLT_MAX rounds to infinity,
 * which the sums show.  So the smallest |x| is found while packing, and the smallest and largest sum; outside
 * of what is safe the whole product is declined (`safe`), which depends on values alone. */
#define _GNU_SOURCE
#include "gemm_amx.h"

#ifdef HAS_GEMM_AMX
#include <stdatomic.h>
#include <string.h>
#include <tapegrad/device.h>
#include "cpu/cpu.h"
#include "cpu/vectors.h"
#include "device/half.h"

#ifndef TILE_LOAD                   /* a test has its own */
enum { WORK_PER_THREAD = 1 << 20 }; /* multiply-adds: about 10 us */
/* Not the intrinsics: gcc 12's do not tell the compiler which memory they read. */
#define TILE_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")))
#define TILE_ON(shape) __asm__ volatile("ldtilecfg %0" : : "m"(*(shape)))
#define TILE_OFF() __asm__ volatile("tilerelease" : :)
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : :)
#define TILE_LOAD(t, from) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(from), "r"((int64_t)64) : "memory")
#define TILE_STORE(t, to) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(to), "r"((int64_t)128) : "memory")
#define TILE_DOT(sum, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : :)
#endif

enum { HALF = 16, WIDE = 32, DEEP = 32, TILE_BYTES = 1024, MOST_PARTS = 3 };
/* Panels of a in the second cache, those of b in the third. */
enum { PANELS_OF_A = 8, COLUMNS_OF_B = 1024 };

typedef struct TileShape {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} TileShape;

typedef uint32_t Words __attribute__((vector_size(64), may_alias));
typedef float Floats __attribute__((vector_size(64), may_alias));
typedef uint16_t Halves __attribute__((vector_size(32)));

/* Of sums: the largest and the smallest size seen, as bits.  Of operands only the smallest but 0, less 1: so
 * 0 becomes the largest. */
typedef struct Extent {
    _Atomic uint32_t most, least;
} Extent;

typedef struct Product {
    const GemmArgs *g;
    const char *a, *b; /* of this batch */
    char *c;
    int parts, threads;
    int64_t k0, depth, j0, columns; /* the block of k, and the columns, that are packed */
    int64_t rows_at_once, groups;   /* a piece: so many panels of a, one of so many groups of b's */
    char *of_a, *of_b;              /* packed: a's, so many bytes a thread; b's */
    size_t bytes_of_a;
    bool later;     /* c may still be wanted: alpha sum + beta c + bias when all sums are there */
    float *sums;    /* of this batch, of blocks of k so far: in c, or aside; NULL: one block only */
    int64_t ld;     /* of sums */
    float *bias;    /* n, in f32; NULL: none */
    Extent *extent; /* three: of a, of b, of the sums */
} Product;

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* Of f32: 48 KiB a panel and part; of bf16 twice as long. */
static int64_t block_of(int64_t k, int parts)
{
    const int64_t most = parts > 1 ? 512 : 1024;
    return divide_up(divide_up(k, divide_up(k, most)), DEEP) * DEEP;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* One operand: element (line, k) at x + (line * across + k * down) * size. */
typedef struct Lines {
    const char *x;
    int64_t across, down, count, k;
    bool half, by_pair; /* by_pair: a row of a tile is a pair, not a line */
} Lines;

typedef struct Seen { /* an Extent of each lane */
    Words most, least;
} Seen;

#define none_seen() ((Seen){ .least = ~(Words){ 0 } })

FORCE_INLINE TILE_TARGET void see(Seen *seen, const Words *x, bool sum)
{
    const Words size = *x & 0x7fffffff, low = size - (uint32_t)!sum, below = (Words)(low < seen->least);
    seen->least = (low & below) | (seen->least & ~below);
    if (!sum) return;
    const Words above = (Words)(size > seen->most);
    seen->most = (size & above) | (seen->most & ~above);
}

static void widen_extent(Extent *e, const Seen *seen)
{
    uint32_t lanes[2][HALF];
    memcpy(lanes, seen, sizeof lanes);
    for (int i = 0; i < HALF; i++) {
        uint32_t was = atomic_load_explicit(&e->most, memory_order_relaxed);
        while (lanes[0][i] > was && !atomic_compare_exchange_weak(&e->most, &was, lanes[0][i])) {}
        was = atomic_load_explicit(&e->least, memory_order_relaxed);
        while (lanes[1][i] < was && !atomic_compare_exchange_weak(&e->least, &was, lanes[1][i])) {}
    }
}

/* A transposed square: the four times that its halves are interleaved. */
static TILE_TARGET void transpose(Words r[HALF])
{
    for (int turn = 0; turn < 4; turn++) {
        Words t[HALF];
        UNROLL for (int i = 0; i < HALF / 2; i++)
        {
            t[2 * i] = LOW16(r[i], r[HALF / 2 + i]);
            t[2 * i + 1] = HIGH16(r[i], r[HALF / 2 + i]);
        }
        memcpy(r, t, sizeof t);
    }
}

FORCE_INLINE TILE_TARGET void load16(const char *x, bool half, Words *to)
{
    Halves h;
    if (half) {
        memcpy(&h, x, sizeof h);
        *to = __builtin_convertvector(h, Words) << 16;
    } else memcpy(to, x, sizeof *to);
}

/* The 16 lines from `line`, 32 of k, in f32: by lines, with zeros where there are none. */
static void gather(const Lines *o, int64_t line, int64_t k, uint32_t to[HALF][DEEP])
{
    const int64_t size = o->half ? 2 : 4;
    memset(to, 0, sizeof(uint32_t) * HALF * DEEP);
    for (int64_t i = 0; i < HALF && line + i < o->count; i++)
        for (int64_t p = 0; p < DEEP && k + p < o->k; p++) {
            const char *x = o->x + ((line + i) * o->across + (k + p) * o->down) * size;
            uint16_t h;
            if (o->half) {
                memcpy(&h, x, sizeof h);
                to[i][p] = (uint32_t)h << 16;
            } else memcpy(&to[i][p], x, sizeof to[i][p]);
        }
}

/* A tile of each part. */
static TILE_TARGET void pack_tile(const Lines *o, int parts, int64_t line, int64_t k, char *to, Seen *seen)
{
    uint32_t room[HALF][DEEP];
    Words part[MOST_PARTS][HALF];
    const char *x = (const char *)room;
    int64_t step = DEEP * 4, ahead = HALF * 4; /* from row to row, and to the other half of pairs */
    bool half = false, by_line = true;         /* a vector is of one line */
    if (line + HALF <= o->count && k + DEEP <= o->k && (o->down == 1 || o->across == 1)) {
        const int64_t size = o->half ? 2 : 4;
        x = o->x + (line * o->across + k * o->down) * size, half = o->half, by_line = o->down == 1;
        step = (by_line ? o->across : o->down) * size, ahead = HALF * size * o->down;
    } else gather(o, line, k, room);
    for (int i = 0; i < HALF; i++, x += step) {
        Words pair[2];
        load16(x, half, &pair[0]), load16(x + ahead, half, &pair[1]);
        if (parts > 1) see(seen, &pair[0], false), see(seen, &pair[1], false);
        for (int p = 0; p < parts; p++) { /* the nearest of bf16; of two, the one away from 0 */
            const Words near0 = (pair[0] + 0x8000) & 0xffff0000, near1 = (pair[1] + 0x8000) & 0xffff0000;
            part[p][i] = near0 >> 16 | near1;
            if (p + 1 == parts) break;
            pair[0] = (Words)((Floats)pair[0] - (Floats)near0);
            pair[1] = (Words)((Floats)pair[1] - (Floats)near1);
        }
    }
    for (int p = 0; p < parts; p++) {
        if (by_line == o->by_pair) transpose(part[p]);
        memcpy(to + p * 2 * TILE_BYTES, part[p], TILE_BYTES);
    }
}

/* The panels [from, to) of lines, over the block of k. */
static TILE_TARGET void pack_panels(const Product *p, const Lines *o, int64_t from, int64_t last, char *to,
                                    Extent *extent)
{
    Seen seen = none_seen();
    for (int64_t q = from; q < last; q++)
        for (int64_t k = 0; k < p->depth; k += DEEP, to += p->parts * 2 * TILE_BYTES)
            for (int half = 0; half < 2; half++)
                pack_tile(o, p->parts, q * WIDE + half * HALF, p->k0 + k, to + half * TILE_BYTES, &seen);
    if (p->parts > 1) widen_extent(extent, &seen);
}

static int64_t panel_bytes(const Product *p) { return p->depth / DEEP * p->parts * 2 * TILE_BYTES; }

static void pack_b(void *ctx, int64_t from, int64_t to)
{
    const Product *p = ctx;
    const GemmArgs *g = p->g;
    const bool half = g->dtype == TENSOR_BF16;
    const Lines o = {
        p->b + p->j0 * g->b_col * (half ? 2 : 4), g->b_col, g->b_row, p->columns, g->k, half, true
    };
    pack_panels(p, &o, from, to, p->of_b + from * panel_bytes(p), &p->extent[1]);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* The products of the parts at hand, each after the load of the tile that is new. */
#define LOAD_A(t, part) TILE_LOAD(t, a + ((part)*2 + ((t)-4)) * TILE_BYTES)
#define LOAD_B(t, part) TILE_LOAD(t, b + ((part)*2 + ((t)-6)) * TILE_BYTES)
#define NEW_BOTH(part_a, part_b) \
    LOAD_A(4, part_a);           \
    LOAD_B(6, part_b);           \
    TILE_DOT(0, 4, 6);           \
    LOAD_A(5, part_a);           \
    TILE_DOT(2, 5, 6);           \
    LOAD_B(7, part_b);           \
    TILE_DOT(1, 4, 7);           \
    TILE_DOT(3, 5, 7)
#define NEW_A(part)    \
    LOAD_A(4, part);   \
    TILE_DOT(0, 4, 6); \
    TILE_DOT(1, 4, 7); \
    LOAD_A(5, part);   \
    TILE_DOT(2, 5, 6); \
    TILE_DOT(3, 5, 7)
#define NEW_B(part)    \
    LOAD_B(6, part);   \
    TILE_DOT(0, 4, 6); \
    TILE_DOT(2, 5, 6); \
    LOAD_B(7, part);   \
    TILE_DOT(1, 4, 7); \
    TILE_DOT(3, 5, 7)

/* sum [WIDE, WIDE] = panel a times panel b, both `depth` deep. */
static TILE_TARGET void multiply_panels(const char *a, const char *b, int64_t depth, int parts, float *sum)
{
    const int64_t step = (int64_t)parts * 2 * TILE_BYTES;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t k = 0; k < depth; k += DEEP, a += step, b += step) {
        if (parts == 1) {
            NEW_BOTH(0, 0);
            continue;
        }
        NEW_BOTH(2, 0); /* part 0 is the largest */
        NEW_A(1);
        NEW_B(1);
        NEW_A(0);
        NEW_B(0);
        NEW_B(2);
    }
    TILE_STORE(0, sum);
    TILE_STORE(1, sum + HALF);
    TILE_STORE(2, sum + HALF * WIDE);
    TILE_STORE(3, sum + HALF * WIDE + HALF);
}

/* ---- sums to c ------------------------------------------------------------------------------- */

/* c = alpha sum + beta c + bias, `count` of a row. */
static TILE_TARGET void finish_line(const Product *p, const float *sum, int64_t i, int64_t j, int count)
{
    const GemmArgs *g = p->g;
    const bool half = g->to == TENSOR_BF16;
    const size_t bytes = (size_t)count * sizeof(float);
    char *c = p->c + (i * g->c_row + j * g->c_col) * (half ? 2 : 4);
    _Alignas(64) float y[WIDE] = { 0 }, was[WIDE] = { 0 };
    Floats *v = (Floats *)y, *w = (Floats *)was;
    memcpy(y, sum, bytes);
    v[0] *= (float)g->alpha, v[1] *= (float)g->alpha;
    if (g->beta != 0) {
        for (int q = 0; q < count; q++)
            was[q] = half ? bf16_to_f32(((uint16_t *)c)[q * g->c_col]) : ((float *)c)[q * g->c_col];
        v[0] += w[0] * (float)g->beta, v[1] += w[1] * (float)g->beta;
    }
    if (p->bias) {
        memcpy(was, p->bias + j, bytes);
        v[0] += w[0], v[1] += w[1];
    }
    if (half)
        for (int q = 0; q < count; q++) ((uint16_t *)c)[q * g->c_col] = bf16_from_f32(y[q]);
    else if (g->c_col == 1) memcpy(c, y, bytes);
    else
        for (int q = 0; q < count; q++) ((float *)c)[q * g->c_col] = y[q];
}

static TILE_TARGET void finish_tile(const Product *p, float *sum, int64_t i, int64_t j)
{
    const int rows = (int)least_of(p->g->m - i, WIDE), count = (int)least_of(p->g->n - j, WIDE);
    const size_t bytes = (size_t)count * sizeof *sum;
    const bool last = p->k0 + p->depth >= p->g->k;
    _Alignas(64) float before[WIDE] = { 0 };
    Seen seen = none_seen();
    for (int r = 0; r < rows; r++, sum += WIDE) {
        float *so_far = p->sums ? p->sums + (i + r) * p->ld + j : NULL;
        Floats *v = (Floats *)sum, *w = (Floats *)before;
        if (p->k0) {
            memcpy(before, so_far, bytes);
            v[0] += w[0], v[1] += w[1];
        }
        if (last && p->parts > 1) {
            for (int q = count; q < WIDE; q++) sum[q] = *sum; /* or columns that are not there would count */
            see(&seen, (Words *)sum, true), see(&seen, (Words *)sum + 1, true);
        }
        if (last && !p->later) finish_line(p, sum, i + r, j, count);
        else memcpy(so_far, sum, bytes);
    }
    if (last && p->parts > 1) widen_extent(&p->extent[2], &seen);
}

/* ---- a product ------------------------------------------------------------------------------- */

static float number(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* No part of an element is below 2^-126. */
static bool safe_operand(const Extent *e) { return e->least == UINT32_MAX || e->least + 1 >= 0x0c800000; }

/* And what tiles take for 0, 2^-126 for each of 7 k additions, is below 2^-25 |a| |b|: if no product of two
 * elements is below 2^-98, or no sum below 2^-98 k. */
static bool safe(const Product *p)
{
    const Extent *a = &p->extent[0], *b = &p->extent[1], *sum = &p->extent[2];
    if (!safe_operand(a) || !safe_operand(b) || sum->most >= 0x7f800000) return false;
    if (a->least == UINT32_MAX || b->least == UINT32_MAX) return true; /* all of one is 0 */
    return (double)number(a->least + 1) * (double)number(b->least + 1) >= 0x1p-98 ||
           (double)number(sum->least) >= 0x1p-98 * (double)p->g->k;
}

static void run_piece(void *ctx, int64_t piece)
{
    const Product *p = ctx;
    const GemmArgs *g = p->g;
    const bool half = g->dtype == TENSOR_BF16;
    const Lines o = { p->a, g->a_row, g->a_col, g->m, g->k, half, false };
    const int64_t bytes = panel_bytes(p), i = piece / p->groups * p->rows_at_once,
                  last = least_of(i + p->rows_at_once, divide_up(g->m, WIDE)),
                  panels = divide_up(p->columns, WIDE), group = piece % p->groups;
    char *a = p->of_a + (p->threads > 1 ? (size_t)parallel_slot() : 0) * p->bytes_of_a;
    _Alignas(64) float sum[WIDE * WIDE];
    _Alignas(64) TileShape shape = { .palette = 1 };
    if (!(safe_operand(&p->extent[0]) && safe_operand(&p->extent[1]))) return;
    pack_panels(p, &o, i, last, a, &p->extent[0]);
    for (int t = 0; t < 8; t++) shape.row_bytes[t] = 64, shape.rows[t] = HALF;
    TILE_ON(&shape);
    for (int64_t j = panels * group / p->groups; j < panels * (group + 1) / p->groups; j++)
        for (int64_t q = i; q < last; q++) {
            multiply_panels(a + (q - i) * bytes, p->of_b + j * bytes, p->depth, p->parts, sum);
            finish_tile(p, sum, q * WIDE, p->j0 + j * WIDE);
        }
    TILE_OFF();
}

static void run_block(Product *p)
{
    const int64_t panels = divide_up(p->g->m, WIDE), of_b = divide_up(p->columns, WIDE);
    const int64_t down = divide_up(panels, p->rows_at_once), pieces = down * p->groups;
    if (p->threads == 1) {
        pack_b(p, 0, of_b);
        for (int64_t i = 0; i < pieces; i++) run_piece(p, i);
    } else {
        parallel_split(of_b, p->threads, pack_b, p);
        parallel_for(pieces, p->threads, run_piece, p);
    }
}

static Product of_batch(const Product *all, int64_t batch)
{
    const GemmArgs *g = all->g;
    const int64_t size = g->dtype == TENSOR_BF16 ? 2 : 4;
    Product p = *all;
    p.a += batch * g->a_batch * size, p.b += batch * g->b_batch * size;
    p.c += batch * g->c_batch * (g->to == TENSOR_BF16 ? 2 : 4);
    if (p.sums == g->c) p.sums += batch * g->c_batch;
    else if (p.sums) p.sums += batch * g->m * g->n;
    return p;
}

static void run_batch(const Product *all, int64_t batch)
{
    Product p = of_batch(all, batch);
    for (p.j0 = 0; p.j0 < p.g->n; p.j0 += COLUMNS_OF_B)
        for (p.k0 = 0; p.k0 < p.g->k; p.k0 += p.depth) {
            p.columns = least_of(COLUMNS_OF_B, p.g->n - p.j0);
            run_block(&p);
        }
}

static void finish_rows(void *ctx, int64_t from, int64_t to)
{
    const Product *p = ctx;
    for (int64_t i = from; i < to; i++)
        for (int64_t j = 0; j < p->g->n; j += WIDE)
            finish_line(p, p->sums + i * p->ld + j, i, j, (int)least_of(WIDE, p->g->n - j));
}

static int run_all(Product *p)
{
    const GemmArgs *g = p->g;
    for (int64_t batch = 0; batch < g->batch; batch++) run_batch(p, batch);
    if (p->parts > 1 && !safe(p)) return GEMM_AMX_NOT;
    for (int64_t batch = 0; p->later && batch < g->batch; batch++) {
        Product one = of_batch(p, batch);
        parallel_split(g->m, p->threads, finish_rows, &one);
    }
    return 0;
}

bool gemm_amx_takes(const GemmArgs *g)
{
    /* Rows that share b may come as a batch or as one matrix: alike. */
    const double m = (double)(g->b_batch ? g->m : g->m * g->batch), n = (double)g->n,
                 least = g->dtype == TENSOR_F32 ? 40 : 8;
    return g->k >= DEEP && m * n >= least * (m + n);
}

int gemm_amx(const GemmArgs *g)
{
    const double work = (double)g->m * (double)g->n * (double)g->k / WORK_PER_THREAD;
    const int most = parallel_inside() ? 1 : tensor_num_threads(), parts = g->dtype == TENSOR_BF16 ? 1 : 3,
              threads = work >= most ? most
                        : work < 1   ? 1
                                     : (int)work;
    const bool half = g->to == TENSOR_BF16, in_c = !half && g->c_col == 1 && g->beta == 0;
    const int64_t depth = block_of(g->k, parts), panels = divide_up(g->m, WIDE),
                  at_once = least_of(PANELS_OF_A, divide_up(panels, threads)),
                  panel = depth / DEEP * parts * 2 * TILE_BYTES,
                  of_b = divide_up(least_of(COLUMNS_OF_B, g->n), WIDE) * panel;
    const bool later = parts > 1 && !in_c, aside = !in_c && (later || depth < g->k);
    const size_t bytes_of_a = (size_t)(at_once * panel),
                 of_sums = aside ? (size_t)(g->batch * g->m * g->n) : 0,
                 bytes =
                     bytes_of_a * (size_t)threads + (size_t)of_b + (of_sums + (size_t)g->n) * sizeof(float);
    char *room = tg_alloc(bytes);
    if (!room) return -1;
    float *sums = (float *)(void *)(room + bytes_of_a * (size_t)threads + of_b), *bias = sums + of_sums;
    Extent extent[3] = { { 0, UINT32_MAX }, { 0, UINT32_MAX }, { 0, UINT32_MAX } };
    Product p = { .g = g,
                  .a = g->a,
                  .b = g->b,
                  .c = g->c,
                  .parts = parts,
                  .threads = threads,
                  .depth = depth,
                  .rows_at_once = at_once,
                  .groups = divide_up(threads, divide_up(panels, at_once)),
                  .of_a = room,
                  .of_b = room + bytes_of_a * (size_t)threads,
                  .bytes_of_a = bytes_of_a,
                  .later = later,
                  .extent = extent,
                  .sums = aside  ? sums
                          : in_c ? g->c
                                 : NULL,
                  .ld = aside ? g->n : g->c_row };
    for (int64_t j = 0; g->bias && j < g->n; j++)
        bias[j] = half ? bf16_to_f32(((const uint16_t *)g->bias)[j]) : ((const float *)g->bias)[j];
    if (g->bias) p.bias = bias;
    const int status = run_all(&p);
    tg_free(room, bytes);
    return status;
}

/* ---- may it be used? ------------------------------------------------------------------------- */

#ifndef TILES_BY_HAND
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the instructions, of the system that saves the tiles, and of Linux, which keeps 8 KiB more a thread for
 * a process that asks (ARCH_REQ_XCOMP_PERM, XTILEDATA): for all its threads, at once. */
static bool ask(void)
{
    enum { TILES = 1 << 24 | 1 << 22, SAVED = 3 << 17, OSXSAVE = 1 << 27, REQUEST = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d, low, high;
    if (cpu_isa() < 2 || !__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & TILES) != TILES) return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & SAVED) == SAVED && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

bool gemm_amx_here(void)
{
    static atomic_int known = -1;
    int here = atomic_load_explicit(&known, memory_order_relaxed);
    if (here < 0) atomic_store(&known, here = ask());
    return here;
}
#endif
#else

bool gemm_amx_here(void) { return false; }
bool gemm_amx_takes(const GemmArgs *g) { return (void)g, false; }
int gemm_amx(const GemmArgs *g) { return (void)g, -1; }
#endif
