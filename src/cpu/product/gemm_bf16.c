/* gemm_bf16.c - products of bf16 on CPUs that multiply pairs of them (AVX512-BF16): twice the multiply-adds
 * of f32 an instruction, and no f32 copy of an operand.  gemm_device.c has the plain way, through f32.
 *
 *   c = alpha a b + beta c + bias      a [m, k], b [k, n] bf16, sums in f32, c bf16 or f32
 *
 * b is packed into panels of 32 columns: for each two of k a row of 32 pairs, so that one instruction adds
 * 16 sums of two products.  a is read in place where its pairs lie side by side, else a tile of it is packed.
 * A tile of c, 14 x 32 at most, stays in registers over all of k: a sum is one chain, whose bits depend on
 * its operands alone, not on strides, threads or its place.  As in oneDNN, operands and sums below the normal
 * range (2^-126) count as 0. */
#include "gemm_bf16.h"

#ifdef HAS_GEMM_BF16
#include <immintrin.h>
#include <string.h>
#include <tapegrad/device.h>
#include "cpu/cpu.h"
#include "cpu/vectors.h"
#include "device/half.h"

#define TARGET_BF16 __attribute__((target(BF16_TARGET)))
#ifdef BF16_BY_AVX512 /* the same by instructions of every AVX-512, for a test */
#define BF16_TARGET "avx512f,avx512bw,avx512vl,avx512dq"
static inline TARGET_BF16 __m512 upper(__m512i pairs)
{
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
}
static inline TARGET_BF16 __m512 add_products(__m512 sum, __m512i a, __m512i b)
{
    sum = _mm512_fmadd_ps(upper(_mm512_slli_epi32(a, 16)), upper(_mm512_slli_epi32(b, 16)), sum);
    return _mm512_fmadd_ps(upper(a), upper(b), sum);
}
static inline TARGET_BF16 __m256i narrow(__m512 y)
{
    float f[16];
    uint16_t h[16];
    _mm512_storeu_ps(f, y);
    for (int i = 0; i < 16; i++) h[i] = bf16_from_f32(f[i]);
    return _mm256_loadu_si256((const __m256i *)h);
}
#else
#define BF16_TARGET "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"
FORCE_INLINE TARGET_BF16 __m512 add_products(__m512 sum, __m512i a, __m512i b)
{
    IN_REGISTER(a);
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
FORCE_INLINE TARGET_BF16 __m256i narrow(__m512 y) { return (__m256i)_mm512_cvtneps_pbh(y); }
#endif

enum { TALL = 14, LANES = 16, WIDE = 2 * LANES, GROUP_BYTES = 1 << 18, WORK_PER_THREAD = 1 << 19 };

typedef struct Product {
    const GemmArgs *g;
    const uint16_t *a, *b; /* of this batch */
    char *c;
    int to;           /* c and bias: TENSOR_BF16 or TENSOR_F32 */
    int64_t pairs;    /* of k */
    uint32_t *packed; /* b: panels [pairs, WIDE]; where threads take whole products, one b a thread */
    uint32_t *tiles;  /* room for [pairs, TALL] of a, one a thread */
    float *bias;      /* n, in f32; NULL: none */
} Product;

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- packing: element (p, j) at x + p * down + j * across becomes half p % 2 of pair (p / 2, j) ------- */

static uint32_t pair_at(const uint16_t *x, int64_t down, int64_t left)
{
    return x[0] | (left > 1 ? (uint32_t)x[down] << 16 : 0);
}

/* to[pair * width + j], zeros for j >= count and past k. */
static void pack_plain(const uint16_t *x, int64_t down, int64_t across, int64_t k, int count, int width,
                       uint32_t *to)
{
    for (int64_t p = 0; p < k; p += 2, to += width)
        for (int j = 0; j < width; j++)
            to[j] = j < count ? pair_at(x + p * down + j * across, down, k - p) : 0;
}

/* Columns side by side: two rows become one of pairs. */
static TARGET_BF16 void pack_rows(const uint16_t *x, int64_t down, int64_t k, int count, int width,
                                  uint32_t *to)
{
    for (int64_t p = 0; p < k; p += 2, to += width)
        for (int j = 0; j < width; j += LANES) {
            const int here = count - j < 0 ? 0 : count - j > LANES ? LANES : count - j;
            const __mmask16 of = (__mmask16)((1u << here) - 1),
                            to_mask = (__mmask16)((1u << (width - j < LANES ? width - j : LANES)) - 1);
            const __m256i low = _mm256_maskz_loadu_epi16(of, x + p * down + j);
            const __m256i high = _mm256_maskz_loadu_epi16(k - p > 1 ? of : 0, x + (p + 1) * down + j);
            const __m512i pairs = _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                                                  _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
            _mm512_mask_storeu_epi32(to + j, to_mask, pairs);
        }
}

/* Pairs side by side: squares of 16 columns and 16 pairs are transposed. */
static TARGET_BF16 void transpose(__m512i r[LANES])
{
    __m512i t[LANES];
    UNROLL for (int i = 0; i < 8; i++)
    {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
        t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
        r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
        r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
        r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
    }
}

static TARGET_BF16 void pack_columns(const uint16_t *x, int64_t across, int64_t k, int count, int width,
                                     uint32_t *to)
{
    for (int64_t p = 0; p < k; p += 2 * LANES)
        for (int j = 0; j < width; j += LANES) {
            const int64_t left = k - p < 2 * LANES ? k - p : 2 * LANES;
            const __mmask32 mask = (__mmask32)(left == 32 ? ~0u : (1u << left) - 1);
            const int lines = width - j < LANES ? width - j : LANES;
            const __mmask16 to_mask = (__mmask16)((1u << lines) - 1);
            __m512i r[LANES];
            for (int i = 0; i < LANES; i++)
                r[i] = j + i < count ? _mm512_maskz_loadu_epi16(mask, x + (j + i) * across + p)
                                     : _mm512_setzero_si512();
            transpose(r);
            for (int64_t i = 0; 2 * i < left; i++)
                _mm512_mask_storeu_epi32(to + (p / 2 + i) * width + j, to_mask, r[i]);
        }
}

static void pack(const uint16_t *x, int64_t down, int64_t across, int64_t k, int count, int width,
                 uint32_t *to)
{
    if (across == 1) pack_rows(x, down, k, count, width, to);
    else if (down == 1) pack_columns(x, across, k, count, width, to);
    else pack_plain(x, down, across, k, count, width, to);
}

static void pack_panels(void *ctx, int64_t from, int64_t to)
{
    const Product *p = ctx;
    const GemmArgs *g = p->g;
    for (int64_t q = from; q < to; q++) {
        const int64_t j = q * WIDE, left = g->n - j;
        pack(p->b + j * g->b_col, g->b_row, g->b_col, g->k, left < WIDE ? (int)left : WIDE, WIDE,
             p->packed + q * p->pairs * WIDE);
    }
}

/* ---- a tile ---------------------------------------------------------------------------------- */

typedef struct Tile {
    const char *a; /* pair p of row i at a + i * row + p * step, in bytes */
    int64_t row, step, pairs;
    const uint32_t *b;
    float *sum; /* [rows, WIDE] */
} Tile;

FORCE_INLINE TARGET_BF16 void tile(const Tile *t, const int rows)
{
    __m512 sum[TALL][2];
    const char *a[(TALL + 2) / 3]; /* rows hang in threes on one pointer, as in gemm_tile.h */
    const int64_t row = t->row, step = t->step;
    const uint32_t *b = t->b;
    UNROLL for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    UNROLL for (int i = 0; i < (rows + 2) / 3; i++) a[i] = t->a + 3 * i * row;
    for (int64_t p = 0; p < t->pairs; p++, b += WIDE) {
        __m512i low = _mm512_load_si512(b), high = _mm512_load_si512(b + LANES);
        __asm__("" : "+v"(low), "+v"(high)); /* or gcc loads them again for every row */
        UNROLL for (int i = 0; i < rows; i++)
        {
            int pair;
            memcpy(&pair, a[i / 3] + i % 3 * row, sizeof pair);
            const __m512i x = _mm512_set1_epi32(pair);
            sum[i][0] = add_products(sum[i][0], x, low);
            sum[i][1] = add_products(sum[i][1], x, high);
        }
        UNROLL for (int i = 0; i < (rows + 2) / 3; i++) a[i] += step;
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        _mm512_store_ps(t->sum + i * WIDE, sum[i][0]);
        _mm512_store_ps(t->sum + i * WIDE + LANES, sum[i][1]);
    }
}

#define TILE(rows) \
    static TARGET_BF16 void tile_##rows(const Tile *t) { tile(t, rows); }
TILE(2)
TILE(4)
TILE(6)
TILE(8)
TILE(10)
TILE(12)
TILE(14)

static void (*const tiles[])(const Tile *) = { tile_2, tile_4, tile_6, tile_8, tile_10, tile_12, tile_14 };

/* ---- sums to c ------------------------------------------------------------------------------- */

static TARGET_BF16 __m512 widen(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* alpha sum + beta c + bias, up to 16 of a row, whose columns lie side by side. */
static TARGET_BF16 void finish_line(const Product *p, const float *sum, const float *bias, char *c, int count)
{
    const __mmask16 mask = (__mmask16)((1u << count) - 1);
    const bool half = p->to == TENSOR_BF16;
    __m512 y = _mm512_mul_ps(_mm512_set1_ps((float)p->g->alpha), _mm512_load_ps(sum));
    if (p->g->beta != 0) {
        const __m512 was = half ? widen(_mm256_maskz_loadu_epi16(mask, c)) : _mm512_maskz_loadu_ps(mask, c);
        y = _mm512_fmadd_ps(_mm512_set1_ps((float)p->g->beta), was, y);
    }
    if (bias) y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(mask, bias));
    if (half) _mm256_mask_storeu_epi16(c, mask, narrow(y));
    else _mm512_mask_storeu_ps(c, mask, y);
}

static void finish(const Product *p, const float *sum, int64_t i, int rows, int64_t j, int cols)
{
    const GemmArgs *g = p->g;
    const int64_t size = p->to == TENSOR_BF16 ? 2 : 4;
    for (int r = 0; r < rows; r++, sum += WIDE)
        for (int q = 0; q < cols; q += LANES) {
            const int here = cols - q < LANES ? cols - q : LANES;
            char *c = p->c + ((i + r) * g->c_row + (j + q) * g->c_col) * size;
            const float *bias = p->bias ? p->bias + j + q : NULL;
            if (g->c_col == 1) {
                finish_line(p, sum + q, bias, c, here);
                continue;
            }
            char line[LANES * sizeof(float)];
            for (int s = 0; s < here; s++) memcpy(line + s * size, c + s * g->c_col * size, (size_t)size);
            finish_line(p, sum + q, bias, line, here);
            for (int s = 0; s < here; s++) memcpy(c + s * g->c_col * size, line + s * size, (size_t)size);
        }
}

/* ---- a product ------------------------------------------------------------------------------- */

/* The rows of one tile, against all panels from q to `last`. */
static void run_tile(const Product *p, int64_t i, int rows, int64_t q, int64_t last, uint32_t *room)
{
    const GemmArgs *g = p->g;
    _Alignas(64) float sum[TALL * WIDE];
    const int even = rows + rows % 2;
    const uint16_t *a = p->a + i * g->a_row;
    Tile t = { (const char *)a, g->a_row * 2, 4, p->pairs, NULL, sum };
    if (g->a_col != 1 || g->k % 2 || even != rows) {
        pack(a, g->a_col, g->a_row, g->k, rows, even, room);
        t = (Tile){ (const char *)room, 4, 4 * even, p->pairs, NULL, sum };
    }
    for (; q < last; q++) {
        const int64_t left = g->n - q * WIDE;
        t.b = p->packed + q * p->pairs * WIDE;
        tiles[even / 2 - 1](&t);
        finish(p, sum, i, rows, q * WIDE, left < WIDE ? (int)left : WIDE);
    }
}

/* The tiles from `from`, all of one height: the panels in groups that stay in the second cache. */
static void run_tiles(const Product *p, int64_t from, int64_t to, uint32_t *room)
{
    const GemmArgs *g = p->g;
    const int64_t panels = divide_up(g->n, WIDE), count = divide_up(g->m, TALL),
                  tall = divide_up(divide_up(g->m, count), 2) * 2, bytes = p->pairs * WIDE * 4,
                  group = bytes < GROUP_BYTES ? GROUP_BYTES / bytes : 1;
    for (int64_t q = 0; q < panels; q += group)
        for (int64_t i = from * tall; i < to * tall && i < g->m; i += tall)
            run_tile(p, i, g->m - i < tall ? (int)(g->m - i) : (int)tall, q,
                     q + group < panels ? q + group : panels, room);
}

static void run_span(void *ctx, int64_t from, int64_t to)
{
    const Product *p = ctx;
    run_tiles(p, from, to, p->tiles + parallel_slot() * p->pairs * TALL);
}

static Product of_batch(const Product *p, int64_t batch)
{
    const GemmArgs *g = p->g;
    Product one = *p;
    one.a += batch * g->a_batch, one.b += batch * g->b_batch;
    one.c += batch * g->c_batch * (p->to == TENSOR_BF16 ? 2 : 4);
    return one;
}

/* One of many, by one thread, with a packed b of its own. */
static void run_batch(void *ctx, int64_t batch)
{
    const Product *all = ctx;
    Product p = of_batch(all, batch);
    const int64_t panels = divide_up(p.g->n, WIDE), slot = parallel_slot();
    p.packed += slot * panels * p.pairs * WIDE;
    pack_panels(&p, 0, panels);
    run_tiles(&p, 0, divide_up(p.g->m, TALL), p.tiles + slot * p.pairs * TALL);
}

static void run_all(Product *p, int threads)
{
    const GemmArgs *g = p->g;
    for (int64_t batch = 0; batch < g->batch; batch++) {
        Product one = of_batch(p, batch);
        if (batch == 0 || g->b_batch) parallel_split(divide_up(g->n, WIDE), threads, pack_panels, &one);
        parallel_split(divide_up(g->m, TALL), threads, run_span, &one);
    }
}

static void widen_bias(const GemmArgs *g, int dtype, float *to)
{
    for (int64_t j = 0; j < g->n && g->bias; j++)
        to[j] =
            dtype == TENSOR_BF16 ? bf16_to_f32(((const uint16_t *)g->bias)[j]) : ((const float *)g->bias)[j];
}

static int threads_for(const GemmArgs *g)
{
    const double work = (double)g->batch * (double)g->m * (double)g->n * (double)g->k / WORK_PER_THREAD;
    const int most = parallel_inside() ? 1 : tensor_num_threads();
    return work >= most ? most : work < 1 ? 1 : (int)work;
}

int gemm_bf16(const GemmArgs *g)
{
    const int threads = threads_for(g);
    const bool apart = g->batch >= threads && (g->b_batch || threads > 1); /* each thread takes products */
    const int64_t pairs = divide_up(g->k, 2), b = divide_up(g->n, WIDE) * pairs * WIDE;
    const size_t of_b = (size_t)(b * (apart ? threads : 1)), of_a = (size_t)(threads * pairs * TALL),
                 bytes = (of_b + of_a + (size_t)g->n) * sizeof(uint32_t);
    uint32_t *room = tg_alloc(bytes);
    if (!room) return -1;
    Product p = { g, g->a, g->b, g->c, g->to, pairs, room, room + of_b, NULL };
    if (g->bias) widen_bias(g, p.to, p.bias = (float *)(void *)(room + of_b + of_a));
    if (apart) parallel_for(g->batch, threads, run_batch, &p);
    else run_all(&p, threads);
    tg_free(room, bytes);
    return 0;
}

#ifndef BF16_BY_AVX512
bool gemm_bf16_here(void)
{
    __builtin_cpu_init();
    return cpu_isa() == 2 && __builtin_cpu_supports("avx512bf16");
}
#endif
#else

bool gemm_bf16_here(void) { return false; }
int gemm_bf16(const GemmArgs *g) { return (void)g, -1; }
#endif
