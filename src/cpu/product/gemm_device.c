/* gemm_device.c - the gemm slot of the CPU device: f32 and f64 as they are, f16 and bf16 by way of f32,
 * integers by loops of their own.  A function of the result is applied to it where it lies; of halves before
 * they are rounded.
 *
 * A half operand is widened one matrix at a time, rows or columns first as it lies, and kept while the batch
 * shares it.  Operands in f32 are rounded to bf16, or taken apart into three of bf16, where the program
 * allows it and the CPU multiplies that faster. */
#include <tapegrad/device.h>
#include "cpu/elementwise/cast_kernel.h"
#include "cpu/cpu.h"
#include "gemm.h"
#include "gemm_amx.h"
#include "gemm_bf16.h"

/* A matrix, and the room for its copy in another dtype: line by line, lines being the direction in which it
 * is contiguous. */
typedef struct Wide {
    const void *from;
    int64_t lines, length, line_step, step; /* of from */
    bool by_columns;
    void *to;
} Wide;

static Wide wide_of(const void *from, int64_t rows, int64_t cols, int64_t row, int64_t col)
{
    const bool by_columns = col != 1 && row == 1;
    if (by_columns) return (Wide){ from, cols, rows, col, row, true, NULL };
    return (Wide){ from, rows, cols, row, col, false, NULL };
}

static int64_t wide_count(const Wide *w) { return w->lines * w->length; }

typedef struct Cast {
    const Wide *w;
    int from, to;
    int64_t offset;
    bool back; /* from the copy */
} Cast;

static void cast_lines(void *ctx, int64_t first, int64_t last)
{
    const Cast *c = ctx;
    const Wide *w = c->w;
    const int64_t size = (int64_t)dtype_size(c->from), copy = (int64_t)dtype_size(c->to);
    CastLine *cast = c->back ? cpu_cast_line(c->to, c->from) : cpu_cast_line(c->from, c->to);
    const bool dense = w->line_step == w->length * w->step; /* one line */
    const int64_t length = dense ? (last - first) * w->length : w->length;
    for (int64_t i = first; i < last; i = dense ? last : i + 1) {
        char *from = (char *)(uintptr_t)w->from + (c->offset + i * w->line_step) * size,
             *to = (char *)w->to + i * w->length * copy;
        if (c->back) cast(from, to, length, w->step * size, copy);
        else cast(to, from, length, copy, w->step * size);
    }
}

static void run_cast(Cast c) { parallel_split(c.w->lines, cpu_threads(wide_count(c.w)), cast_lines, &c); }
static void widen(int dtype, const Wide *w, int64_t offset)
{
    run_cast((Cast){ w, dtype, TENSOR_F32, offset, false });
}
static void narrow(int dtype, const Wide *w, int64_t offset)
{
    run_cast((Cast){ w, dtype, TENSOR_F32, offset, true });
}

static int64_t row_step(const Wide *w) { return w->by_columns ? 1 : w->length; }
static int64_t col_step(const Wide *w) { return w->by_columns ? w->length : 1; }

/* to = the call's function of the batch (or of one matrix) at `from`, which lies as `to` does. */
static int apply_function(const GemmArgs *g, int dtype, int64_t batch, const int64_t stride[3],
                          const void *from, void *to)
{
    MapArgs m = { .row = g->row,
                  .part = ROW_FORWARD,
                  .ndim = 3,
                  .count = batch * g->m * g->n,
                  .shape = { batch, g->m, g->n } };
    m.out.data = to, m.in[ROW_A].data = (void *)(uintptr_t)from;
    m.out.dtype = m.in[ROW_A].dtype = dtype;
    for (int d = 0; d < 3; d++) m.out.stride[d] = m.in[ROW_A].stride[d] = stride[d];
    m.ndim = collapse(3, m.shape, 2, (int64_t *const[]){ m.out.stride, m.in[ROW_A].stride });
    return cpu_map(&m);
}

static int run_halves(const GemmArgs *g, Wide *a, Wide *b, Wide *c, float *bias)
{
    const bool wide = g->to == TENSOR_F32;
    Wide before = *c;
    GemmCall call = { .dtype = GEMM_F32,
                      .batch = 1,
                      .m = g->m,
                      .n = g->n,
                      .k = g->k,
                      .a = a->to,
                      .b = b->to,
                      .c = c->to,
                      .a_row = row_step(a),
                      .a_col = col_step(a),
                      .b_row = row_step(b),
                      .b_col = col_step(b),
                      .c_row = wide ? g->c_row : row_step(c),
                      .c_col = wide ? g->c_col : col_step(c),
                      .alpha = g->alpha,
                      .beta = g->beta,
                      .bias = !g->bias || wide ? g->bias : bias,
                      .bias_per = GEMM_BIAS_ROW };
    const int64_t dense[3] = { 0, call.c_row, call.c_col };
    before.from = g->before;
    if (g->bias && !wide) widen(g->dtype, &(Wide){ g->bias, 1, g->n, g->n, 1, false, bias }, 0);
    for (int64_t i = 0; i < g->batch; i++) {
        if (i == 0 || g->a_batch) widen(g->dtype, a, i * g->a_batch);
        if (i == 0 || g->b_batch) widen(g->dtype, b, i * g->b_batch);
        if (wide) call.c = (float *)g->c + i * g->c_batch;
        else if (g->beta != 0) widen(g->dtype, c, i * g->c_batch);
        if (gemm_cpu(&call, tensor_num_threads())) return -1;
        if (wide) continue;
        if (g->before) narrow(g->dtype, &before, i * g->c_batch);
        if (g->function && apply_function(g, TENSOR_F32, 1, dense, c->to, c->to)) return -1;
        narrow(g->dtype, c, i * g->c_batch);
    }
    return 0;
}

static int halves(const GemmArgs *g)
{
    Wide a = wide_of(g->a, g->m, g->k, g->a_row, g->a_col), b = wide_of(g->b, g->k, g->n, g->b_row, g->b_col);
    Wide c = wide_of(g->c, g->m, g->n, g->c_row, g->c_col);
    const int64_t of_a = wide_count(&a), of_b = wide_count(&b), of_c = wide_count(&c);
    const size_t bytes = (size_t)(of_a + of_b + (g->to == g->dtype ? of_c + g->n : 0)) * sizeof(float);
    float *room = tg_alloc(bytes);
    if (!room) return -1;
    a.to = room, b.to = room + of_a, c.to = room + of_a + of_b;
    int status = run_halves(g, &a, &b, &c, room + of_a + of_b + of_c);
    tg_free(room, bytes);
    return status;
}

/* ---- few rows or columns of halves: a tile would be mostly padding (dot: 20 times as slow) ---------- */

/* PIECE: elements whose copy stays in the second-level cache; SIDE: of a square piece, so that its lines are
 * long in either direction. */
enum { FEW = 4, LONG = 64, PIECE = 1 << 16, SIDE = 1 << 8 };

static bool is_thin(const GemmArgs *g)
{
    return (g->m <= FEW || g->n <= FEW || g->k <= FEW) && (g->m >= LONG || g->n >= LONG || g->k >= LONG);
}

typedef struct Pieces {
    const GemmArgs *g;
    int64_t lines, chunk; /* rows of c, or columns; and steps of k */
    bool down;
    int _Atomic failed;
} Pieces;

/* One product, steps of k by chunks, whose sums are added in f32. */
static int sum_chunks(const GemmArgs *g, int64_t chunk, float *room)
{
    const int64_t size = (int64_t)dtype_size(g->dtype);
    const bool rounds = g->to != TENSOR_F32;
    Wide c = wide_of(g->c, g->m, g->n, g->c_row, g->c_col), bias = { g->bias, 1, g->n, g->n, 1, false, NULL };
    GemmArgs part = *g;
    c.to = room, bias.to = room + g->m * g->n;
    if (rounds) part.to = TENSOR_F32, part.c = room, part.c_row = row_step(&c), part.c_col = col_step(&c);
    if (rounds && g->beta != 0) widen(g->to, &c, 0);
    if (rounds && g->bias) widen(g->to, &bias, 0), part.bias = bias.to;
    for (int64_t p = 0; p < g->k; p += chunk, part.beta = 1, part.bias = NULL) {
        part.k = g->k - p < chunk ? g->k - p : chunk;
        part.a = (const char *)g->a + p * g->a_col * size, part.b = (const char *)g->b + p * g->b_row * size;
        if (halves(&part)) return -1;
    }
    if (rounds) narrow(g->to, &c, 0);
    return 0;
}

static int each_by_chunks(const GemmArgs *g, int64_t chunk)
{
    const int64_t size = (int64_t)dtype_size(g->dtype), out = (int64_t)dtype_size(g->to);
    const size_t bytes = (size_t)(g->m * g->n + g->n) * sizeof(float);
    float *room = tg_alloc(bytes);
    int status = room ? 0 : -1;
    for (int64_t i = 0; i < g->batch && !status; i++) {
        GemmArgs one = *g;
        one.batch = 1, one.a = (const char *)g->a + i * g->a_batch * size;
        one.b = (const char *)g->b + i * g->b_batch * size, one.c = (char *)g->c + i * g->c_batch * out;
        status = sum_chunks(&one, chunk, room);
    }
    tg_free(room, bytes);
    return status;
}

static void thin_piece(void *ctx, int64_t i)
{
    Pieces *p = ctx;
    GemmArgs g = *p->g;
    const int64_t size = (int64_t)dtype_size(g.dtype), out = (int64_t)dtype_size(g.to), from = i * p->lines;
    if (p->down) {
        g.m = g.m - from < p->lines ? g.m - from : p->lines;
        g.a = (const char *)g.a + from * g.a_row * size;
    } else {
        g.n = g.n - from < p->lines ? g.n - from : p->lines;
        g.b = (const char *)g.b + from * g.b_col * size;
        if (g.bias) g.bias = (const char *)g.bias + from * out;
    }
    g.c = (char *)g.c + from * (p->down ? g.c_row : g.c_col) * out;
    if (g.k <= p->chunk ? halves(&g) : each_by_chunks(&g, p->chunk)) p->failed = 1;
}

/* How it is cut follows from the sizes alone. */
static int thin_halves(const GemmArgs *g)
{
    const bool down = g->m >= g->n;
    const int64_t lines = down ? g->m : g->n, other = down ? g->n : g->m;
    Pieces p = { g, lines, g->k, down, 0 };
    if (g->k <= SIDE) p.lines = PIECE / (g->k + other) > 16 ? PIECE / (g->k + other) : 16;
    else if (lines <= SIDE) p.chunk = PIECE / lines;
    else p.lines = p.chunk = SIDE;
    const int64_t work = g->batch * g->m * g->n * g->k;
    parallel_for((lines + p.lines - 1) / p.lines, cpu_threads(work), thin_piece, &p);
    return p.failed ? -1 : 0;
}

static int plain(const GemmArgs *g)
{
    const GemmCall call = {
        .dtype = g->dtype == TENSOR_F64 ? GEMM_F64 : GEMM_F32,
        .batch = g->batch,
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .a = g->a,
        .a_batch = g->a_batch,
        .a_row = g->a_row,
        .a_col = g->a_col,
        .b = g->b,
        .b_batch = g->b_batch,
        .b_row = g->b_row,
        .b_col = g->b_col,
        .c = g->c,
        .c_batch = g->c_batch,
        .c_row = g->c_row,
        .c_col = g->c_col,
        .alpha = g->alpha,
        .beta = g->beta,
        .bias = g->bias,
        .bias_per = GEMM_BIAS_ROW,
    };
    return gemm_cpu(&call, tensor_num_threads());
}

/* ---- bf16, and f32 that may be rounded to it or taken apart ---------------------------------- */

static int of_bf16(const GemmArgs *g)
{
    return gemm_amx_takes(g) && gemm_amx_here() ? gemm_amx(g) : gemm_bf16(g);
}

/* By parts, as accurate as f32; what they cannot hold, and all that is too small for them, in f32. */
static int by_parts(const GemmArgs *g)
{
    const bool may = g->dtype == TENSOR_F32 && g->precision == GEMM_TF32 && g->alpha != 0;
    const int status = may && gemm_amx_takes(g) && gemm_amx_here() ? gemm_amx(g) : GEMM_AMX_NOT;
    return status == GEMM_AMX_NOT ? plain(g) : status;
}

/* Worth it where an element is multiplied more than 16 times. */
static bool may_round(const GemmArgs *g)
{
    return g->dtype == TENSOR_F32 && g->precision == GEMM_BF16 && g->k > 1 && g->alpha != 0 &&
           g->m * g->n >= 16 * (g->m + g->n) && gemm_bf16_here();
}

/* The matrices of all batches, as lines of one. */
static void round_all(const Wide *w, int64_t batch, int64_t batch_step)
{
    for (int64_t i = 0; i < batch; i++) {
        Wide one = *w;
        one.to = (uint16_t *)w->to + i * wide_count(w);
        run_cast((Cast){ &one, TENSOR_F32, TENSOR_BF16, i * batch_step, false });
    }
}

static int rounded(const GemmArgs *g)
{
    Wide a = wide_of(g->a, g->m, g->k, g->a_row, g->a_col), b = wide_of(g->b, g->k, g->n, g->b_row, g->b_col);
    const int64_t as = g->a_batch ? g->batch : 1, bs = g->b_batch ? g->batch : 1;
    const size_t bytes = (size_t)(as * wide_count(&a) + bs * wide_count(&b)) * sizeof(uint16_t);
    uint16_t *room = tg_alloc(bytes);
    if (!room) return -1;
    a.to = room, b.to = room + as * wide_count(&a);
    round_all(&a, as, g->a_batch), round_all(&b, bs, g->b_batch);
    GemmArgs p = *g;
    p.dtype = TENSOR_BF16, p.a = a.to, p.b = b.to;
    p.a_row = row_step(&a), p.a_col = col_step(&a), p.b_row = row_step(&b), p.b_col = col_step(&b);
    p.a_batch = g->a_batch ? wide_count(&a) : 0, p.b_batch = g->b_batch ? wide_count(&b) : 0;
    int status = of_bf16(&p);
    tg_free(room, bytes);
    return status;
}

/* ---- the slot -------------------------------------------------------------------------------- */

int cpu_gemm(GemmArgs *g)
{
    if (g->sums) return KERNEL_DECLINED;
    if (g->batch == 0 || g->m == 0 || g->n == 0) return 0;
    if (!dtype_is_float(g->dtype)) {
        gemm_integers(g);
        return 0;
    }
    if (g->dtype == TENSOR_BF16 && g->k && g->alpha != 0 && gemm_bf16_here()) {
        if (g->function) return KERNEL_DECLINED;
        return (is_thin(g) ? thin_halves(g) : of_bf16(g)) ? fail_memory("gemm") : 0;
    }
    const bool rounds = dtype_is_half(g->to);
    GemmArgs product = *g;
    if (g->before && !rounds) product.c = g->before;
    const bool in_halves = dtype_is_half(g->dtype);
    const int failed = in_halves && !g->function && g->k && is_thin(g) ? thin_halves(&product)
                       : in_halves                                     ? halves(&product)
                       : may_round(g)                                  ? rounded(&product)
                                                                       : by_parts(&product);
    if (failed) return fail_memory("gemm");
    if (g->function == GEMM_IDENTITY || rounds) return 0;
    const int64_t stride[3] = { g->c_batch, g->c_row, g->c_col };
    return apply_function(g, g->to, g->batch, stride, product.c, g->c);
}
