/* attention.c - attention on the CPU, by blocks of rows: the scores [rows, cols] never exist as a whole.
 *
 *   s = scale q k^T + mask,  p = softmax(s),  y = D(p) v
 *   dv = D(p)^T dy,  dp = D(dy v^T),  ds = p (dp - sum p dp)
 *   dq = scale ds k,  dk = scale ds^T q,  dmask = ds
 *
 * Forward keeps the shift and the factor of each row, from which backward makes p of a block again.  A causal
 * block stops at its last row's column.  Forward: a block is one thread's.  Backward: a group of blocks is,
 * as they add to the same dk and dv; where items are few, each has several groups, whose sums are added in
 * their order.  Blocks and groups depend on sizes alone, so threads change no bit. */
#include <math.h>
#include <stdatomic.h>
#include "cpu/cpu.h"
#include "cpu/product/gemm.h"
#include "cpu/reduce/softmax_kernel.h"

enum { BLOCK_ROWS = 64, LEAST_ROWS = 16, BLOCK_SCORES = 1 << 17, MOST_GROUPS = 16 };

typedef struct Work {
    const AttentionArgs *a;
    int64_t block, blocks, groups; /* rows of a block; blocks and groups of an item */
    char *sums;                    /* of several groups: dk [batch, groups, cols, width], then dv */
    _Atomic bool failed;
} Work;

/* The scores of rows [first, first + m) and columns [0, n) of an item; kept: its part of keep. */
typedef struct Block {
    const AttentionArgs *a;
    int64_t item, first, m, n;
    const uint8_t *kept;
} Block;

/* As many rows as leave a block of scores in the second cache, where columns are many. */
static int64_t block_rows(const AttentionArgs *a)
{
    const int64_t fit = BLOCK_SCORES / (a->cols + 1);
    return fit >= BLOCK_ROWS ? BLOCK_ROWS : fit <= LEAST_ROWS ? LEAST_ROWS : fit;
}

static size_t size_of(const AttentionArgs *a) { return dtype_size(a->dtype); }

static void *at(const AttentionArgs *a, const void *x, int64_t i)
{
    return (char *)(uintptr_t)x + i * (int64_t)size_of(a);
}

static Block block_of(const AttentionArgs *a, int64_t item, int64_t first, int64_t rows)
{
    Block b = { .a = a,
                .item = item,
                .first = first,
                .m = a->rows - first < rows ? a->rows - first : rows,
                .n = a->cols };
    if (a->causal && first + b.m < b.n) b.n = first + b.m;
    if (a->keep) b.kept = a->keep + (item * a->rows + first) * a->cols;
    return b;
}

/* How many columns row r of a block sees. */
static int64_t seen(const Block *b, int64_t r)
{
    return b->a->causal && b->first + r + 1 < b->n ? b->first + r + 1 : b->n;
}

/* c = alpha x y + beta c, on this thread. */
typedef struct Side {
    const void *data;
    int64_t row, col;
} Side;

static int product(const AttentionArgs *a, int64_t m, int64_t n, int64_t k, Side x, Side y, void *c,
                   int64_t c_row, double alpha, double beta)
{
    const GemmCall call = {
        .dtype = a->dtype == TENSOR_F64 ? GEMM_F64 : GEMM_F32,
        .batch = 1,
        .m = m,
        .n = n,
        .k = k,
        .a = x.data,
        .a_row = x.row,
        .a_col = x.col,
        .b = y.data,
        .b_row = y.row,
        .b_col = y.col,
        .c = c,
        .c_row = c_row,
        .c_col = 1,
        .alpha = alpha,
        .beta = beta,
    };
    return gemm_cpu(&call, 1);
}

/* Where row 0 of an item lies. */
static int64_t first_of(const AttentionArgs *a, const AttentionOperand *x, int64_t item)
{
    int64_t first = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        first += item % a->shape[d] / x->each[d] * x->stride[d];
        item /= a->shape[d];
    }
    return first;
}

static Side side(const AttentionArgs *a, const AttentionOperand *x, int64_t item, int64_t row)
{
    return (Side){ at(a, x->data, first_of(a, x, item) + row * x->row), x->row, x->col };
}

static Side flipped(Side x) { return (Side){ x.data, x.col, x.row }; }

static void mask_row(const AttentionArgs *a, int64_t from, int64_t n, void *scores)
{
    const bool is_bool = a->mask_dtype == TENSOR_BOOL;
    const int64_t step = a->mask.col;
    const uint8_t *bits = (const uint8_t *)a->mask.data + (is_bool ? from : 0);
    const float *f = (const float *)a->mask.data + (is_bool ? 0 : from);
    const double *d = (const double *)a->mask.data + (is_bool ? 0 : from);
    float *s = scores;
    double *sd = scores;
    if (a->dtype == TENSOR_F64 && is_bool)
        for (int64_t j = 0; j < n; j++) sd[j] = bits[j * step] ? sd[j] : -INFINITY;
    else if (a->dtype == TENSOR_F64)
        for (int64_t j = 0; j < n; j++) sd[j] += d[j * step];
    else if (is_bool)
        for (int64_t j = 0; j < n; j++) s[j] = bits[j * step] ? s[j] : -INFINITY;
    else
        for (int64_t j = 0; j < n; j++) s[j] += f[j * step];
}

static int score(const Block *b, void *s)
{
    const AttentionArgs *a = b->a;
    if (product(a, b->m, b->n, a->width, side(a, &a->q, b->item, b->first),
                flipped(side(a, &a->k, b->item, 0)), s, b->n, a->scale, 0))
        return -1;
    const int64_t first = a->mask.data ? first_of(a, &a->mask, b->item) : 0;
    for (int64_t r = 0; r < b->m && a->mask.data; r++)
        mask_row(a, first + (b->first + r) * a->mask.row, b->n, at(a, s, r * b->n));
    return 0;
}

/* to = from where kept, times keep_factor; 0 elsewhere. */
static void drop(const Block *b, const void *from, void *to)
{
    const AttentionArgs *a = b->a;
    const double factor = a->keep_factor;
    for (int64_t r = 0; r < b->m; r++) {
        const uint8_t *kept = b->kept + r * a->cols;
        const float *x = (const float *)from + r * b->n;
        const double *xd = (const double *)from + r * b->n;
        float *y = (float *)to + r * b->n;
        double *yd = (double *)to + r * b->n;
        if (a->dtype == TENSOR_F64)
            for (int64_t j = 0; j < b->n; j++) yd[j] = kept[j] ? xd[j] * factor : 0;
        else
            for (int64_t j = 0; j < b->n; j++) y[j] = kept[j] ? x[j] * (float)factor : 0;
    }
}

/* Rows of s, in place: e^(s - shift), 0 in the columns that are not seen. */
static void exponentials(const Block *b, void *s)
{
    const AttentionArgs *a = b->a;
    for (int64_t r = 0; r < b->m; r++) {
        const int64_t n = seen(b, r), row = b->item * a->rows + b->first + r;
        if (a->dtype == TENSOR_F64)
            ISA_PICK(exp_row_f64)(n, at(a, s, r * b->n), (double *)a->shift + row, (double *)a->factor + row);
        else ISA_PICK(exp_row_f32)(n, at(a, s, r * b->n), (float *)a->shift + row, (float *)a->factor + row);
        memset(at(a, s, r * b->n + n), 0, (size_t)(b->n - n) * size_of(a));
    }
}

/* The same from shift and factor, which forward left: probabilities. */
static void probabilities(const Block *b, void *s)
{
    const AttentionArgs *a = b->a;
    for (int64_t r = 0; r < b->m; r++) {
        const int64_t n = seen(b, r), row = b->item * a->rows + b->first + r;
        void *x = at(a, s, r * b->n);
        if (a->dtype == TENSOR_F64)
            ISA_PICK(scaled_exp_row_f64)(n, x, ((double *)a->shift)[row], ((double *)a->factor)[row], x);
        else ISA_PICK(scaled_exp_row_f32)(n, x, ((float *)a->shift)[row], ((float *)a->factor)[row], x);
        memset(at(a, s, r * b->n + n), 0, (size_t)(b->n - n) * size_of(a));
    }
}

/* Rows of y times their factors; without a score they are 0, whatever v is. */
static void finish(const Block *b, void *y)
{
    const AttentionArgs *a = b->a;
    for (int64_t r = 0; r < b->m; r++) {
        const int64_t row = b->item * a->rows + b->first + r, n = a->value_width;
        const bool f64 = a->dtype == TENSOR_F64;
        const double factor = f64 ? ((double *)a->factor)[row] : (double)((float *)a->factor)[row];
        if (factor == 0) memset(at(a, y, r * n), 0, (size_t)n * size_of(a));
        else if (f64)
            for (int64_t j = 0; j < n; j++) ((double *)y)[r * n + j] *= factor;
        else
            for (int64_t j = 0; j < n; j++) ((float *)y)[r * n + j] *= (float)factor;
    }
}

static int forward_block(const Block *b, void *s)
{
    const AttentionArgs *a = b->a;
    void *y = at(a, a->y, (b->item * a->rows + b->first) * a->value_width);
    if (score(b, s)) return -1;
    exponentials(b, s);
    if (b->kept) drop(b, s, s);
    if (product(a, b->m, a->value_width, b->n, (Side){ s, b->n, 1 }, side(a, &a->v, b->item, 0), y,
                a->value_width, 1, 0))
        return -1;
    finish(b, y);
    return 0;
}

static size_t scores_bytes(const Work *w) { return (size_t)(w->block * w->a->cols + 1) * size_of(w->a); }

static void forward_piece(void *ctx, int64_t i)
{
    Work *w = ctx;
    const Block b = block_of(w->a, i / w->blocks, i % w->blocks * w->block, w->block);
    const size_t bytes = scores_bytes(w);
    void *s = tg_alloc(bytes);
    if (!s || forward_block(&b, s)) atomic_store(&w->failed, true);
    if (s) tg_free(s, bytes);
}

/* ---- backward -------------------------------------------------------------------------------- */

static void softmax_gradient(const Block *b, const void *p, void *dp)
{
    if (b->a->dtype == TENSOR_F64) ISA_PICK(softmax_grad_rows_f64)(false, b->m, b->n, p, dp, dp);
    else ISA_PICK(softmax_grad_rows_f32)(false, b->m, b->n, p, dp, dp);
}

/* Adds to dk and dv (NULL: not wanted) of the item. */
static int backward_block(const Block *b, void *p, void *dp, void *dk, void *dv)
{
    const AttentionArgs *a = b->a;
    const int64_t row = b->item * a->rows + b->first, e = a->width, ev = a->value_width;
    const Side dy = { at(a, a->dy, row * ev), ev, 1 }, scores = { dp, b->n, 1 };
    if (score(b, p)) return -1;
    probabilities(b, p);
    if (b->kept) drop(b, p, dp);
    if (dv && product(a, b->n, ev, b->m, flipped((Side){ b->kept ? dp : p, b->n, 1 }), dy, dv, ev, 1, 1))
        return -1;
    if (!a->dq && !dk && !a->dmask) return 0;
    if (product(a, b->m, b->n, ev, dy, flipped(side(a, &a->v, b->item, 0)), dp, b->n, 1, 0)) return -1;
    if (b->kept) drop(b, dp, dp);
    softmax_gradient(b, p, dp);
    if (a->dmask) memcpy(at(a, a->dmask, row * a->cols), dp, (size_t)(b->m * b->n) * size_of(a));
    if (a->dq &&
        product(a, b->m, e, b->n, scores, side(a, &a->k, b->item, 0), at(a, a->dq, row * e), e, a->scale, 0))
        return -1;
    return dk ? product(a, b->n, e, b->m, flipped(scores), side(a, &a->q, b->item, b->first), dk, e, a->scale,
                        1)
              : 0;
}

static int64_t dk_bytes(const AttentionArgs *a) { return a->cols * a->width * (int64_t)size_of(a); }
static int64_t dv_bytes(const AttentionArgs *a) { return a->cols * a->value_width * (int64_t)size_of(a); }

/* Where group i of all adds to dk; dv. */
static char *dk_of(const Work *w, int64_t i)
{
    return !w->a->dk ? NULL : (w->sums ? w->sums : (char *)w->a->dk) + i * dk_bytes(w->a);
}

static char *dv_of(const Work *w, int64_t i)
{
    if (!w->a->dv) return NULL;
    return (w->sums ? w->sums + w->a->batch * w->groups * dk_bytes(w->a) : (char *)w->a->dv) +
           i * dv_bytes(w->a);
}

static void backward_group(void *ctx, int64_t i)
{
    Work *w = ctx;
    const AttentionArgs *a = w->a;
    const size_t bytes = scores_bytes(w);
    const int64_t item = i / w->groups, g = i % w->groups, to = (g + 1) * w->blocks / w->groups;
    char *dk = dk_of(w, i), *dv = dv_of(w, i);
    void *p = tg_alloc(bytes), *dp = tg_alloc(bytes);
    int status = p && dp ? 0 : -1;
    if (dk) memset(dk, 0, (size_t)dk_bytes(a));
    if (dv) memset(dv, 0, (size_t)dv_bytes(a));
    for (int64_t k = g * w->blocks / w->groups; k < to && !status; k++) {
        const Block b = block_of(a, item, k * w->block, w->block);
        status = backward_block(&b, p, dp, dk, dv);
    }
    if (status) atomic_store(&w->failed, true);
    if (p) tg_free(p, bytes);
    if (dp) tg_free(dp, bytes);
}

/* y = the sum of n arrays of `bytes`, one behind the other. */
static void add_groups(const AttentionArgs *a, const char *x, int64_t n, int64_t bytes, char *y)
{
    const int64_t count = bytes / (int64_t)size_of(a);
    memcpy(y, x, (size_t)bytes);
    for (int64_t g = 1; g < n; g++) {
        const float *f = (const float *)(const void *)(x + g * bytes);
        const double *d = (const double *)(const void *)(x + g * bytes);
        if (a->dtype == TENSOR_F64)
            for (int64_t i = 0; i < count; i++) ((double *)(void *)y)[i] += d[i];
        else
            for (int64_t i = 0; i < count; i++) ((float *)(void *)y)[i] += f[i];
    }
}

static void backward_sums(void *ctx, int64_t item)
{
    const Work *w = ctx;
    const AttentionArgs *a = w->a;
    const int64_t k = dk_bytes(a), v = dv_bytes(a), first = item * w->groups;
    if (a->dk) add_groups(a, dk_of(w, first), w->groups, k, (char *)a->dk + item * k);
    if (a->dv) add_groups(a, dv_of(w, first), w->groups, v, (char *)a->dv + item * v);
}

static void backward(Work *w, int threads)
{
    const AttentionArgs *a = w->a;
    const int64_t wanted = a->batch ? (MOST_GROUPS + a->batch - 1) / a->batch : 1;
    w->groups = w->blocks == 0 ? 1 : wanted < w->blocks ? wanted : w->blocks;
    const size_t bytes = w->groups > 1 ? (size_t)(a->batch * w->groups * (dk_bytes(a) + dv_bytes(a)) + 1) : 0;
    if (bytes && !(w->sums = tg_alloc(bytes))) {
        w->failed = true;
        return;
    }
    parallel_for(a->batch * w->groups, threads, backward_group, w);
    if (w->sums) parallel_for(a->batch, threads, backward_sums, w);
    if (w->sums) tg_free(w->sums, bytes);
}

/* ---- the slots ------------------------------------------------------------------------------- */

static int run(const AttentionArgs *a, bool gradients)
{
    const int64_t block = block_rows(a);
    Work w = { .a = a, .block = block, .blocks = (a->rows + block - 1) / block };
    const int threads = cpu_threads(a->batch * a->rows * a->cols * (a->width + a->value_width + 1));
    if (gradients) backward(&w, threads);
    else parallel_for(a->batch * w.blocks, threads, forward_piece, &w);
    return w.failed ? fail_memory("attention") : 0;
}

int cpu_attention(AttentionArgs *a) { return run(a, false); }
int cpu_attention_grad(AttentionArgs *a) { return run(a, true); }
