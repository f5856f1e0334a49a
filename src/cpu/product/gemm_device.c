/* gemm_device.c - the gemm slot of the CPU device: f32 and f64 as they are, f16 and bf16 by way of f32,
 * integers by loops of their own.  A function of the result is applied to it where it lies; of halves before
 * they are rounded.
 *
 * A half operand is widened one matrix at a time, rows or columns first as it lies, and kept while the batch
 * shares it. */
#include <tapegrad/device.h>
#include "cpu/elementwise/cast_kernel.h"
#include "cpu/cpu.h"
#include "gemm.h"
#include "gemm_bf16.h"

/* A half matrix, and the room for its f32 copy: line by line, lines being the direction in which it is
 * contiguous. */
typedef struct Wide {
    const uint16_t *from;
    int64_t lines, length, line_step, step; /* of from */
    bool by_columns;
    float *to;
} Wide;

static Wide wide_of(const void *from, int64_t rows, int64_t cols, int64_t row, int64_t col)
{
    const bool by_columns = col != 1 && row == 1;
    if (by_columns) return (Wide){ from, cols, rows, col, row, true, NULL };
    return (Wide){ from, rows, cols, row, col, false, NULL };
}

static size_t wide_bytes(const Wide *w) { return (size_t)(w->lines * w->length) * sizeof(float); }

typedef struct Cast {
    int dtype;
    const Wide *w;
    int64_t offset;
} Cast;

static void widen_lines(void *ctx, int64_t first, int64_t last)
{
    const Cast *c = ctx;
    const Wide *w = c->w;
    CastLine *cast = cpu_cast_line(c->dtype, TENSOR_F32);
    for (int64_t i = first; i < last; i++) {
        const uint16_t *from = w->from + c->offset + i * w->line_step;
        float *to = w->to + i * w->length;
        cast((char *)to, (const char *)from, w->length, sizeof *to, w->step * (int64_t)sizeof *from);
    }
}

static void widen(int dtype, const Wide *w, int64_t offset)
{
    Cast c = { dtype, w, offset };
    parallel_split(w->lines, cpu_threads(w->lines * w->length), widen_lines, &c);
}

static void narrow_lines(void *ctx, int64_t first, int64_t last)
{
    const Cast *c = ctx;
    const Wide *w = c->w;
    CastLine *cast = cpu_cast_line(TENSOR_F32, c->dtype);
    for (int64_t i = first; i < last; i++) {
        uint16_t *to = (uint16_t *)(uintptr_t)w->from + c->offset + i * w->line_step;
        const float *from = w->to + i * w->length;
        cast((char *)to, (const char *)from, w->length, w->step * (int64_t)sizeof *to, sizeof *from);
    }
}

static void narrow(int dtype, const Wide *w, int64_t offset)
{
    Cast c = { dtype, w, offset };
    parallel_split(w->lines, cpu_threads(w->lines * w->length), narrow_lines, &c);
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
    const size_t bias = (size_t)g->n * sizeof(float),
                 bytes = wide_bytes(&a) + wide_bytes(&b) + (g->to == g->dtype ? wide_bytes(&c) + bias : 0);
    char *room = tg_alloc(bytes);
    if (!room) return -1;
    a.to = (float *)(void *)room;
    b.to = a.to + a.lines * a.length;
    c.to = b.to + b.lines * b.length;
    int status = run_halves(g, &a, &b, &c, c.to + c.lines * c.length);
    tg_free(room, bytes);
    return status;
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
        return gemm_bf16(g) ? fail_memory("gemm") : 0;
    }
    const bool rounds = dtype_is_half(g->to);
    GemmArgs product = *g;
    if (g->before && !rounds) product.c = g->before;
    if (dtype_is_half(g->dtype) ? halves(&product) : plain(&product)) return fail_memory("gemm");
    if (g->function == GEMM_IDENTITY || rounds) return 0;
    const int64_t stride[3] = { g->c_batch, g->c_row, g->c_col };
    return apply_function(g, g->to, g->batch, stride, product.c, g->c);
}
