/* gemm.c - who computes a product, and on how many threads.
 *
 *   k == 0 or alpha == 0        c is scaled here
 *   at most 4 x 4, k long       the kernels' dots: one chain of k additions would wait for each;
 *   or 1 x 1                    those of f32 are added in double
 *   one column, k short         the kernels' thin loop, which has the bits of their tiles
 *   one column, k long          sums by vectors
 *   large                       BLIS, where it is as fast (see by_blis)
 *   the rest                    the own kernels, c cut into pieces for the threads
 *
 * The choice looks at the type and at m, n, k only, so that neither strides nor threads change a bit. */
#include "gemm.h"
#include "gemm_kernel.h"

#include <pthread.h>
#include "device/parallel.h"

/* Fewer multiply-adds than this for one thread, and waking it costs more than it saves. */
enum { WORK_PER_THREAD = 1 << 18, DOTS_SIDE = 4, DOTS_LENGTH = 64 };

/* --- scratch memory: one block a thread, grown on demand --- */

typedef struct {
    size_t size;
    char pad[56];
} Scratch; /* the header of a block, a cache line long */

static _Thread_local Scratch *kept;
static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;
static int kept_key_failed;

static void make_key(void) { kept_key_failed = pthread_key_create(&kept_key, gemm_scratch_free) != 0; }

void gemm_release(void)
{
    if (!kept) return;
    pthread_setspecific(kept_key, NULL);
    gemm_scratch_free(kept);
    kept = NULL;
}

static void *scratch(size_t bytes)
{
    if (kept && kept->size >= bytes) return kept + 1;
    pthread_once(&kept_once, make_key);
    gemm_release();
    if (kept_key_failed) return NULL;
    Scratch *block = gemm_scratch(sizeof *block + bytes);
    if (!block) return NULL;
    block->size = bytes;
    if (pthread_setspecific(kept_key, block) != 0) {
        gemm_scratch_free(block);
        return NULL;
    }
    kept = block;
    return kept + 1;
}

/* --- pieces --- */

static const GemmKernel *kernel_for(int dtype) { return &ISA_PICK(gemm_kernel)[dtype]; }

static const char *at(const void *p, int dtype, int64_t elements)
{
    return (const char *)p + elements * (int64_t)(dtype == GEMM_F64 ? sizeof(double) : sizeof(float));
}

/* The same product as c^T = b^T a^T. */
static GemmCall transposed(const GemmCall *g)
{
    GemmCall t = *g;
    t.m = g->n, t.n = g->m;
    t.a = g->b, t.a_batch = g->b_batch, t.a_row = g->b_col, t.a_col = g->b_row;
    t.b = g->a, t.b_batch = g->a_batch, t.b_row = g->a_col, t.b_col = g->a_row;
    t.c_row = g->c_col, t.c_col = g->c_row;
    t.bias_per = g->bias_per == GEMM_BIAS_ROW ? GEMM_BIAS_COLUMN : GEMM_BIAS_ROW;
    return t;
}

/* The rows [i, i + m) and columns [j, j + n) of product number `batch`. */
static GemmCall part(const GemmCall *g, int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n)
{
    GemmCall p = *g;
    p.batch = 1, p.m = m, p.n = n;
    p.a = at(g->a, g->dtype, batch * g->a_batch + i * g->a_row);
    p.b = at(g->b, g->dtype, batch * g->b_batch + j * g->b_col);
    p.c = (void *)(uintptr_t)at(g->c, g->dtype, batch * g->c_batch + i * g->c_row + j * g->c_col);
    if (g->bias) p.bias = at(g->bias, g->dtype, g->bias_per == GEMM_BIAS_ROW ? j : i);
    return p;
}

/* c = beta c + bias, for one product. */
static void scale(const GemmCall *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t b = g->bias_per == GEMM_BIAS_ROW ? j : i, c = i * g->c_row + j * g->c_col;
            if (g->dtype == GEMM_F64) {
                double *y = (double *)g->c + c;
                *y = (g->beta != 0 ? g->beta * *y : 0) + (g->bias ? ((const double *)g->bias)[b] : 0);
            } else {
                float *y = (float *)g->c + c;
                *y = (g->beta != 0 ? (float)g->beta * *y : 0) + (g->bias ? ((const float *)g->bias)[b] : 0);
            }
        }
}

/* --- the own kernels --- */

typedef struct {
    int64_t rows, cols, down, across;
} Grid; /* pieces of rows x cols: down x across of them */

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Cut c into about `pieces`, of whole tiles, across first: a piece then packs only its own part of b. */
static Grid grid(const GemmCall *g, const GemmKernel *kernel, int64_t pieces)
{
    const int64_t panels = divide_up(g->n, kernel->cols), tiles = divide_up(g->m, kernel->rows);
    int64_t across = pieces;
    while (across > 1 && (pieces % across != 0 || panels < 2 * across)) across--;
    int64_t down = pieces / across;
    if (down > tiles) down = tiles;
    Grid cut = { .rows = divide_up(tiles, down) * kernel->rows,
                 .cols = divide_up(panels, across) * kernel->cols };
    cut.down = divide_up(g->m, cut.rows);
    cut.across = divide_up(g->n, cut.cols);
    return cut;
}

static void run_piece(const GemmCall *g, const GemmKernel *kernel, const Grid *cut, int64_t piece,
                      void *memory)
{
    const int64_t each = cut->down * cut->across, batch = piece / each;
    const int64_t i = piece % each / cut->across * cut->rows, j = piece % cut->across * cut->cols;
    const int64_t m = g->m - i < cut->rows ? g->m - i : cut->rows;
    const int64_t n = g->n - j < cut->cols ? g->n - j : cut->cols;
    const GemmCall own = part(g, batch, i, m, j, n);
    kernel->run(&own, memory);
}

/* Rows of c become its vectors' direction when they are the contiguous one.  And with a and b both contiguous
 * along k, one of them must be transposed while it is packed: let it be the smaller one, where that outweighs
 * writing c across its rows (64 x 256 x 784 in f32: from 78 to 82 % of the peak, 32 x 1024 x 256 from 67 to
 * 83). */
static int better_transposed(const GemmCall *g)
{
    if (g->c_col != 1) return g->c_row == 1;
    return g->a_col == 1 && g->b_row == 1 && g->b_col != 1 && g->m >= 16 && g->n >= 2 * g->m && g->k >= 64;
}

static int on_one_thread(GemmCall one, const GemmKernel *kernel)
{
    const size_t bytes = kernel->scratch(&one);
    void *memory = bytes ? scratch(bytes) : NULL;
    if (bytes && !memory) return -1;
    for (int64_t b = 0; b < one.batch; b++) {
        kernel->run(&one, memory);
        one.a = at(one.a, one.dtype, one.a_batch);
        one.b = at(one.b, one.dtype, one.b_batch);
        one.c = (void *)(uintptr_t)at(one.c, one.dtype, one.c_batch);
    }
    return 0;
}

typedef struct {
    const GemmCall *g;
    const GemmKernel *kernel;
    const Grid *cut;
    char *memory;
    size_t bytes;
} Shared;

static void shared_piece(void *ctx, int64_t piece)
{
    const Shared *s = ctx;
    run_piece(s->g, s->kernel, s->cut, piece,
              s->memory ? s->memory + s->bytes * (size_t)parallel_slot() : NULL);
}

/* Threads take the pieces as they come: which one computes a piece does not matter to its bits. */
static int on_threads(const GemmCall *g, const GemmKernel *kernel, int threads)
{
    Grid cut = { g->m, g->n, 1, 1 };
    if (g->batch % threads != 0 && g->batch < 4 * threads) cut = grid(g, kernel, threads);
    const int64_t pieces = g->batch * cut.down * cut.across;
    GemmCall largest = *g;
    if (cut.rows < g->m) largest.m = cut.rows;
    if (cut.cols < g->n) largest.n = cut.cols;
    const size_t bytes = kernel->scratch(&largest);
    char *memory = bytes ? scratch(bytes * (size_t)threads) : NULL;
    if (bytes && !memory) return -1;

    parallel_for(pieces, threads, shared_piece, &(Shared){ g, kernel, &cut, memory, bytes });
    return 0;
}

/* As many of the threads as have WORK_PER_THREAD to do. */
static int enough_work(const GemmCall *g, int threads)
{
    if (threads == 1) return 1;
    const double useful = (double)g->batch * (double)g->m * (double)g->n * (double)g->k / WORK_PER_THREAD;
    return useful >= threads ? threads : useful < 1 ? 1 : (int)useful;
}

static int by_kernel(const GemmCall *call, int threads)
{
    const GemmKernel *kernel = kernel_for(call->dtype);
    const GemmCall g = better_transposed(call) ? transposed(call) : *call;
    threads = enough_work(&g, threads);
    return threads > 1 ? on_threads(&g, kernel, threads) : on_one_thread(g, kernel);
}

static void dots_span(void *ctx, int64_t from, int64_t to)
{
    const GemmCall *call = ctx;
    for (int64_t b = from; b < to; b++) {
        const GemmCall one = part(call, b, 0, call->m, 0, call->n);
        kernel_for(call->dtype)->dots(&one);
    }
}

static void by_dots(const GemmCall *call, int threads)
{
    GemmCall own = *call;
    parallel_split(call->batch, enough_work(call, threads), dots_span, &own);
}

static void column_span(void *ctx, int64_t from, int64_t to)
{
    const GemmCall *call = ctx;
    const GemmKernel *kernel = kernel_for(call->dtype);
    for (int64_t b = 0; b < call->batch; b++) {
        const GemmCall one = part(call, b, from, to - from, 0, 1);
        if (call->k <= THIN) kernel->thin(&one);
        else kernel->column(&one);
    }
}

/* Between the two a tile is faster.  A thin row whose vectors are not contiguous is a column. */
static int is_column(GemmCall *g)
{
    if (g->m == 1 && g->n > 1 && g->b_col != 1 && g->k <= THIN) *g = transposed(g);
    return g->n == 1 && (g->k <= THIN || g->k >= DOTS_LENGTH);
}

/* --- BLIS --- */

/* BLIS where it is as fast as the own kernels.  Measured on one thread of a Xeon with AVX-512, f32, percent
 * of the FMA peak, own / BLIS 0.9.0 skx: 64^3 82/30, 128^3 84/61, 256^3 93/79, 64x256x784 82/49, 32x1024x256
 * 83/36, 768x128x512 89/73, 512^3 80/79, 1024^3 84/85, 8192x1536x384 86/87.  Below the bounds BLIS loses to
 * its packing, its edges and its 2.5 us a call.  Where it runs narrower kernels than the CPU has (haswell on
 * the same machine: 48 at any size), blis_ready says no. */
static int for_blis(const GemmCall *g)
{
    const double work = (double)g->m * (double)g->n * (double)g->k;
    return work >= 5e8 && g->m >= 256 && g->n >= 256 && g->k >= 256 && blis_ready();
}

/* c = beta c + bias + p, p dense. */
static void add_to(const GemmCall *g, const void *p)
{
    scale(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t at = i * g->n + j, c = i * g->c_row + j * g->c_col;
            if (g->dtype == GEMM_F64) ((double *)g->c)[c] += ((const double *)p)[at];
            else ((float *)g->c)[c] += ((const float *)p)[at];
        }
}

/* On arm64 BLIS rounds alpha a b + c once in whole tiles and twice at edges, and where its tiles lie depends
 * on the layout; with alpha 1 or -1, and without c, both are the same.  Otherwise alpha a b is made aside,
 * and added here. */
static void blis_aside(const GemmCall *g, void *room, int threads)
{
    GemmCall product = *g;
    product.c = room, product.c_row = g->n, product.c_col = 1, product.beta = 0;
    blis_gemm(&product, threads);
    add_to(g, room);
}

static void blis_into(GemmCall *g, int threads)
{
    if (g->bias || (g->beta != 0 && g->beta != 1)) {
        scale(g);
        g->beta = 1;
    }
    blis_gemm(g, threads);
}

static int by_blis(const GemmCall *call, int threads)
{
    const int aside = (call->bias || call->beta != 0) && call->alpha != 1 && call->alpha != -1;
    const size_t size = call->dtype == GEMM_F64 ? sizeof(double) : sizeof(float);
    void *room = aside ? gemm_scratch((size_t)(call->m * call->n) * size) : NULL; /* too large to be kept */
    if (aside && !room) return -1;
    for (int64_t b = 0; b < call->batch; b++) {
        GemmCall one = part(call, b, 0, call->m, 0, call->n);
        if (aside) blis_aside(&one, room, threads);
        else blis_into(&one, threads);
    }
    gemm_scratch_free(room);
    return 0;
}

int gemm_cpu(const GemmCall *call, int threads)
{
    if (call->batch == 0 || call->m == 0 || call->n == 0) return 0;
    if (threads < 1 || parallel_inside()) threads = 1;
    if (call->k == 0 || call->alpha == 0) {
        for (int64_t b = 0; b < call->batch; b++) {
            const GemmCall one = part(call, b, 0, call->m, 0, call->n);
            scale(&one);
        }
        return 0;
    }
    const bool single = call->m == 1 && call->n == 1;
    if (single || (call->m <= DOTS_SIDE && call->n <= DOTS_SIDE && call->k >= DOTS_LENGTH)) {
        by_dots(call, threads);
        return 0;
    }
    GemmCall column = *call;
    if (is_column(&column)) {
        parallel_split(column.m, enough_work(call, threads), column_span, &column);
        return 0;
    }
    if (for_blis(call)) return by_blis(call, threads);
    return by_kernel(call, threads);
}
