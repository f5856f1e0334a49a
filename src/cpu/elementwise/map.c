/* map.c - elementwise rows on the CPU: one driver for any strides and dtypes, around the dense loops of
 * map_kernels.c.
 *
 * The loops get only dense arrays of the type they compute in.  An operand that is strided, broadcast or of
 * another type (halves; all but f64 and i64 in rare rows) is gathered in chunks into a buffer that stays in
 * the first-level cache; results likewise scatter.  So every element is computed by the same instructions
 * whatever the layout: the bits do not depend on it. */
#include "cast_kernel.h"
#include "map_user.h"
#include "cpu/cpu.h"
#include "map_fused.h"
#include "map_kernels.h"
#include "map_narrow.h"
#include "map_rare.h"

enum { CHUNK = 512 };

typedef struct Loop { /* one part of one row, for one type of computation */
    OpRowLoop loop;
    int compute;            /* dtype of the arrays it takes */
    size_t size, out_size;  /* bytes an element; of what the loop writes */
    int64_t unit;           /* of doubles: it takes whole multiples of so many; 0: any number */
    bool to_bool, bool_out; /* writes bytes 0/1;  stores a number as != 0 */
    OpRowLoop of_one[2];    /* with a, or b, as its parameter `one`; NULL: none */
    int one;
} Loop;

/* Each of `rows` values, `step` bytes apart, `length` times: by vectors, the last of which may reach up to
 * SPILL bytes into the row behind, which is written next. */
enum { SPILL = 16 };
#define SPREAD(type, name)                                                                                \
    static void name(const char *from, int64_t step, int64_t rows, int64_t length, char *to)              \
    {                                                                                                     \
        typedef type Spill __attribute__((vector_size(SPILL), aligned(sizeof(type)), may_alias));         \
        for (int64_t r = 0; r < rows; r++, from += step, to += length * (int64_t)sizeof(type)) {          \
            type value;                                                                                   \
            memcpy(&value, from, sizeof value);                                                           \
            const Spill all = value - (Spill){ 0 };                                                       \
            for (int64_t i = 0; i < length * (int64_t)sizeof(type); i += SPILL) *(Spill *)(to + i) = all; \
        }                                                                                                 \
    }
SPREAD(uint32_t, spread_4)
SPREAD(uint64_t, spread_8)

/* Of elements of that size; false: of another one. */
static bool spread(const char *from, int64_t step, int64_t rows, int64_t length, size_t size, char *to)
{
    if (size == 4) spread_4(from, step, rows, length, to);
    else if (size == 8) spread_8(from, step, rows, length, to);
    return size == 4 || size == 8;
}

/* n elements, stride apart, of one dtype, to a dense array of the computation's dtype. */
static void gather(void *dst, int compute, const char *src, int dtype, int64_t stride, int64_t n)
{
    if (dtype_is_half(dtype) || (dtype != compute && (compute == TENSOR_F64 || compute == TENSOR_I64))) {
        const int64_t size = (int64_t)dtype_size(compute);
        cpu_cast_line(dtype, compute)(dst, src, stride ? n : 1, size, stride * (int64_t)dtype_size(dtype));
        if (stride == 0) spread(memcpy((char[8]){ 0 }, dst, (size_t)size), 0, 1, n, (size_t)size, dst);
    } else if (dtype_size(compute) == 8) {
        uint64_t *d = dst;
        const uint64_t *s = (const uint64_t *)src, value = *s;
        if (stride == 0)
            for (int64_t i = 0; i < n; i++) d[i] = value;
        else BY_FOUR for (int64_t i = 0; i < n; i++) d[i] = s[i * stride];
    } else if (dtype_size(compute) == 4) {
        uint32_t *d = dst;
        const uint32_t *s = (const uint32_t *)src, value = *s;
        if (stride == 0)
            for (int64_t i = 0; i < n; i++) d[i] = value;
        else BY_FOUR for (int64_t i = 0; i < n; i++) d[i] = s[i * stride];
    } else {
        uint8_t *d = dst;
        const uint8_t *s = (const uint8_t *)src;
        for (int64_t i = 0; i < n; i++) d[i] = s[i * stride];
    }
}

static void scatter(char *dst, int dtype, int64_t stride, const void *src, const Loop *loop, int64_t n)
{
    if (dtype_is_half(dtype) || (dtype != loop->compute && !loop->to_bool &&
                                 (loop->compute == TENSOR_F64 || loop->compute == TENSOR_I64))) {
        const int64_t size = (int64_t)dtype_size(dtype);
        cpu_cast_line(loop->compute, dtype)(dst, src, n, stride * size, (int64_t)dtype_size(loop->compute));
    } else if (loop->bool_out) {
        for (int64_t i = 0; i < n; i++) dst[i * stride] = ((const uint8_t *)src)[i] != 0;
    } else if (loop->out_size == 8) {
        BY_FOUR for (int64_t i = 0; i < n; i++)((uint64_t *)dst)[i * stride] = ((const uint64_t *)src)[i];
    } else if (loop->out_size == 4) {
        BY_FOUR for (int64_t i = 0; i < n; i++)((uint32_t *)dst)[i * stride] = ((const uint32_t *)src)[i];
    } else {
        for (int64_t i = 0; i < n; i++) dst[i * stride] = ((const char *)src)[i];
    }
}

/* The loop over n elements at used[0] (the result) and used[1 + ROW_A ...]; those past its last unit by way
 * of a copy, filled up with the last of them. */
static void run_dense(const Loop *loop, int64_t n, void *const used[1 + ROW_OPERANDS], const double *params)
{
    const int64_t left = loop->unit ? n % loop->unit : 0, whole = n - left;
    if (whole)
        loop->loop(whole, used[0], used[1 + ROW_A], used[1 + ROW_B], used[1 + ROW_Y], used[1 + ROW_G],
                   params);
    if (!left) return;
    _Alignas(64) double rest[1 + ROW_OPERANDS][MAP_UNIT];
    Loop last = *loop;
    void *copy[1 + ROW_OPERANDS] = { rest[0] };
    last.unit = 0;
    for (int k = 1; k <= ROW_OPERANDS; k++) {
        if (!used[k]) continue;
        const double *from = (const double *)used[k] + whole;
        for (int64_t i = 0; i < MAP_UNIT; i++) rest[k][i] = from[i < left ? i : left - 1];
        copy[k] = rest[k];
    }
    run_dense(&last, loop->unit, copy, params);
    memcpy((char *)used[0] + (size_t)whole * loop->out_size, rest[0], (size_t)left * loop->out_size);
}

/* One inner line of n elements. */
static void run_line(const Loop *loop, const MapArgs *m, char *const at[1 + ROW_OPERANDS],
                     const int64_t stride[1 + ROW_OPERANDS], int64_t n, const double *params)
{
    _Alignas(64) char buffer[1 + ROW_OPERANDS][CHUNK * 8 + 64]; /* 64: SPILL bytes */
    bool direct[1 + ROW_OPERANDS];
    void *used[1 + ROW_OPERANDS];
    const int64_t chunk = CHUNK * 8 / (int64_t)(loop->size > loop->out_size ? loop->size : loop->out_size);
    direct[0] = stride[0] == 1 && !loop->bool_out && dtype_size(m->out.dtype) == loop->out_size;
    for (int k = 0; k < ROW_OPERANDS; k++) {
        direct[1 + k] = !at[1 + k] || (stride[1 + k] == 1 && m->in[k].dtype == loop->compute);
        if (at[1 + k] && !direct[1 + k] && stride[1 + k] == 0) { /* one value for the whole line: fill once */
            const int64_t most = n < chunk ? n : chunk;
            if (m->in[k].dtype != loop->compute ||
                !spread(at[1 + k], 0, 1, most, (size_t)loop->size, buffer[1 + k]))
                gather(buffer[1 + k], loop->compute, at[1 + k], m->in[k].dtype, 0, most);
        }
    }
    bool whole = direct[0] && direct[1] && direct[2] && direct[3] && direct[4];
    int64_t step = whole ? n : chunk;
    for (int64_t i = 0; i < n; i += step) {
        int64_t count = n - i < step ? n - i : step;
        for (int k = 0; k < ROW_OPERANDS; k++) {
            char *p = at[1 + k];
            if (!p) used[1 + k] = NULL;
            else if (direct[1 + k]) used[1 + k] = p + i * (int64_t)loop->size;
            else {
                if (stride[1 + k] != 0)
                    gather(buffer[1 + k], loop->compute,
                           p + i * stride[1 + k] * (int64_t)dtype_size(m->in[k].dtype), m->in[k].dtype,
                           stride[1 + k], count);
                used[1 + k] = buffer[1 + k];
            }
        }
        char *out = at[0] + i * stride[0] * (int64_t)dtype_size(m->out.dtype);
        used[0] = direct[0] ? out : buffer[0];
        run_dense(loop, count, used, params);
        if (!direct[0]) scatter(out, m->out.dtype, stride[0], buffer[0], loop, count);
    }
}

/* The operand, a or b, that is one value for a whole line and may be a parameter: nothing is filled with it
 * then (outer products 1.5 times as fast).  -1: none. */
static int one_a_line(const Loop *loop, const MapArgs *m, const int64_t stride[1 + ROW_OPERANDS])
{
    if (m->in[ROW_A].dtype != loop->compute || m->in[ROW_B].dtype != loop->compute) return -1;
    for (int k = ROW_A; k <= ROW_B; k++)
        if (loop->of_one[k] && stride[1 + k] == 0 && stride[1 + ROW_A + ROW_B - k] != 0) return k;
    return -1;
}

static double value_of(const void *x, int dtype)
{
    return dtype == TENSOR_F32 ? (double)*(const float *)x : *(const double *)x;
}

/* Are all lines what the loop takes and gives?  Then nothing more is asked of each of them: short ones are a
 * quarter faster.  one: an operand that is a parameter of each, or -1. */
static bool are_dense_lines(const Loop *loop, const MapArgs *m, const int64_t stride[1 + ROW_OPERANDS],
                            int one)
{
    bool dense = stride[0] == 1 && !loop->bool_out && dtype_size(m->out.dtype) == loop->out_size;
    for (int k = 0; k < ROW_OPERANDS; k++)
        dense &= k == one || !m->in[k].data || (stride[1 + k] == 1 && m->in[k].dtype == loop->compute);
    return dense;
}

/* Lines [from, to) of the outer index space, each of the innermost extent (or a part of it when there is one
 * line only). */
static void run_lines(const Loop *loop, const MapArgs *m, int64_t from, int64_t to, int64_t begin,
                      int64_t length)
{
    int inner = m->ndim - 1;
    int64_t stride[1 + ROW_OPERANDS], index[KERNEL_MAX_DIMS] = { 0 };
    const Strided *operand[1 + ROW_OPERANDS] = { &m->out, &m->in[0], &m->in[1], &m->in[2], &m->in[3] };
    for (int k = 0; k <= ROW_OPERANDS; k++) stride[k] = operand[k]->data ? operand[k]->stride[inner] : 0;
    const int one = one_a_line(loop, m, stride), other = ROW_A + ROW_B - one;
    Loop of_one = *loop;
    if (one >= 0) of_one.loop = loop->of_one[one], stride[1 + ROW_A] = stride[1 + other];
    const bool dense = are_dense_lines(loop, m, stride, one);
    int64_t rest = from, step[1 + ROW_OPERANDS], later = 0; /* lines behind the first */
    char *first[1 + ROW_OPERANDS], *at[1 + ROW_OPERANDS];   /* at: of this line */
    bool known = false;
    for (int d = inner - 1; d >= 0; d--) index[d] = rest % m->shape[d], rest /= m->shape[d];
    for (int64_t line = from; line < to; line++) {
        later = known ? later + 1 : 0;
        for (int k = 0; k <= ROW_OPERANDS && !known; k++) {
            const int64_t size = (int64_t)dtype_size(operand[k]->dtype);
            first[k] = operand[k]->data, step[k] = 0;
            if (!first[k]) continue; /* and its strides are not set */
            int64_t offset = begin * operand[k]->stride[inner];
            for (int d = 0; d < inner; d++) offset += index[d] * operand[k]->stride[d];
            first[k] += offset * size, step[k] = inner ? operand[k]->stride[inner - 1] * size : 0;
        }
        for (int k = 0; k <= ROW_OPERANDS; k++) at[k] = first[k] ? first[k] + later * step[k] : NULL;
        if (one >= 0) {
            double params[FUSED_PARAMS] = { loop->one ? m->params[0] : 0 };
            params[loop->one] = value_of(at[1 + one], loop->compute);
            at[1 + ROW_A] = at[1 + other], at[1 + ROW_B] = NULL;
            if (dense) run_dense(&of_one, length, (void *const *)at, params);
            else run_line(&of_one, m, at, stride, length, params);
        } else if (dense) run_dense(loop, length, (void *const *)at, m->params);
        else run_line(loop, m, at, stride, length, m->params);
        known = inner && index[inner - 1] + 1 < m->shape[inner - 1];
        for (int d = inner - 1; d >= 0 && ++index[d] == m->shape[d]; d--) index[d] = 0;
    }
}

/* ---- short lines: several of them are one chunk, 3 to 8 times as fast ------------------------- */

enum { SHORT = 128 };

/* The lines of rows that follow each other in memory are one dense array. */
static bool lies_dense(const Strided *s, int inner, int64_t length, int dtype)
{
    return s->dtype == dtype && s->stride[inner] == 1 && s->stride[inner - 1] == length;
}

/* Rows of the last two dims, dense; of one row that is repeated, one. */
static void gather_rows(const Loop *loop, const Strided *s, const char *from, const MapArgs *m, int64_t rows,
                        char *to)
{
    const int inner = m->ndim - 1;
    const int64_t length = m->shape[inner], step = s->stride[inner - 1] * (int64_t)dtype_size(s->dtype);
    const size_t bytes = (size_t)length * loop->size;
    const int64_t own_rows = step ? rows : 1;
    if (step && s->stride[inner] == 0 && s->dtype == loop->compute && /* a column */
        spread(from, step, rows, length, (size_t)loop->size, to))
        return;
    for (int64_t r = 0; r < own_rows; r++)
        gather(to + (size_t)r * bytes, loop->compute, from + r * step, s->dtype, s->stride[inner], length);
    for (int64_t r = own_rows; r < rows; r *= 2)
        memcpy(to + (size_t)r * bytes, to, (size_t)(2 * r < rows ? r : rows - r) * bytes);
}

/* `rows` lines from `line` on, all of one index of the dims before the last two. */
static void run_rows(const Loop *loop, const MapArgs *m, int64_t line, int64_t rows)
{
    _Alignas(64) char buffer[1 + ROW_OPERANDS][CHUNK * 8 + 64]; /* 64: SPILL bytes */
    const int inner = m->ndim - 1;
    const int64_t length = m->shape[inner];
    const Strided *operand[1 + ROW_OPERANDS] = { &m->out, &m->in[0], &m->in[1], &m->in[2], &m->in[3] };
    char *at[1 + ROW_OPERANDS];
    void *used[1 + ROW_OPERANDS];
    int64_t index[KERNEL_MAX_DIMS];
    for (int d = inner - 1; d >= 0; d--) index[d] = line % m->shape[d], line /= m->shape[d];
    for (int k = 0; k <= ROW_OPERANDS; k++) {
        const Strided *s = operand[k];
        const int64_t size = s->data ? (int64_t)dtype_size(s->dtype) : 0;
        int64_t offset = 0;
        at[k] = used[k] = NULL;
        if (!s->data) continue;
        for (int d = inner - 1; d >= 0; d--) offset += index[d] * s->stride[d];
        at[k] = used[k] = (char *)s->data + offset * size;
        if (k == 0
                ? !loop->bool_out && (size_t)size == loop->out_size && lies_dense(s, inner, length, s->dtype)
                : lies_dense(s, inner, length, loop->compute))
            continue;
        used[k] = buffer[k];
        if (k > 0) gather_rows(loop, s, at[k], m, rows, buffer[k]);
    }
    run_dense(loop, rows * length, used, m->params);
    for (int64_t r = 0; used[0] != at[0] && r < rows; r++)
        scatter(at[0] + r * m->out.stride[inner - 1] * (int64_t)dtype_size(m->out.dtype), m->out.dtype,
                m->out.stride[inner], buffer[0] + (size_t)(r * length) * loop->out_size, loop, length);
}

static void run_short(const Loop *loop, const MapArgs *m, int64_t from, int64_t to)
{
    const int64_t length = m->shape[m->ndim - 1], size = m->shape[m->ndim - 2], most = CHUNK / length;
    for (int64_t line = from, rows; line < to; line += rows) {
        const int64_t left = size - line % size;
        rows = left < to - line ? left : to - line;
        rows = rows < most ? rows : most;
        run_rows(loop, m, line, rows);
    }
}

typedef struct Job {
    const Loop *loop;
    const MapArgs *m;
} Job;

static void some_lines(void *ctx, int64_t from, int64_t to)
{
    const Job *j = ctx;
    if (j->m->ndim > 1 && j->m->shape[j->m->ndim - 1] <= SHORT && j->m->shape[j->m->ndim - 2] > 3) {
        run_short(j->loop, j->m, from, to);
        return;
    }
    run_lines(j->loop, j->m, from, to, 0, j->m->shape[j->m->ndim - 1]);
}

static void part_of_line(void *ctx, int64_t from, int64_t to)
{
    const Job *j = ctx;
    run_lines(j->loop, j->m, 0, 1, from, to - from);
}

static int run(const Loop *loop, const MapArgs *m)
{
    int64_t length = m->shape[m->ndim - 1], lines = length ? m->count / length : 0;
    Job job = { loop, m };
    if (lines == 1) parallel_split(length, cpu_threads(m->count), part_of_line, &job);
    else parallel_split(lines, cpu_threads(m->count), some_lines, &job);
    return 0;
}

/* The dtype that the arrays are computed in. */
static int compute_dtype(const MapArgs *m)
{
    int dtype = m->in[ROW_A].data   ? m->in[ROW_A].dtype
                : m->in[ROW_B].data ? m->in[ROW_B].dtype
                : m->in[ROW_Y].data ? m->in[ROW_Y].dtype
                : m->in[ROW_G].data ? m->in[ROW_G].dtype
                                    : m->out.dtype;
    return dtype == TENSOR_F16 || dtype == TENSOR_BF16 ? TENSOR_F32 : dtype;
}

/* A parameter as the dtype of the arrays holds it; integers wrap. */
static double held(double c, int dtype)
{
    if (dtype == TENSOR_F32) return (double)(float)c;
    if (dtype == TENSOR_F64 || dtype == TENSOR_I64) return c;
    return dtype == TENSOR_I32 ? (double)(int32_t)(int64_t)c : (double)(uint8_t)(int64_t)c;
}

static OpRowLoop narrow_loop(const MapArgs *m, int compute)
{
    const int row = m->row - ROW_FAST;
    const NarrowRow *rows = ISA_PICK(map_narrow_rows)();
    if (row >= NARROW_ROWS) return NULL;
    return compute == TENSOR_F32   ? rows[row].f32[m->part]
           : compute == TENSOR_I64 ? rows[row].i64
           : compute == TENSOR_I32 ? rows[row].i32
                                   : NULL;
}

/* In their own type where there is a loop of it, else floats in double and integers in int64_t. */
static int map_rare(MapArgs *m)
{
    const RareRow *row = rare_row(m->row);
    Loop loop = { .compute = compute_dtype(m), .to_bool = row->to_bool };
    loop.loop = narrow_loop(m, loop.compute);
    loop.size = loop.loop ? dtype_size(loop.compute) : 8;
    loop.out_size = loop.to_bool ? 1 : loop.size;
    if (loop.loop) return run(&loop, m);
    bool real = loop.compute == TENSOR_F32 || loop.compute == TENSOR_F64;
    double param[2] = { row->params ? held(m->params[0], loop.compute) : 0, loop.compute == TENSOR_F32 };
    loop.loop = real ? (*ISA_PICK(map_rare_loops)())[m->row - ROW_FAST][m->part] : row->i64;
    if (!loop.loop) return cpu_fail("no loop for %s", tensor_dtype_name((TensorDtype)loop.compute));
    loop.compute = real ? TENSOR_F64 : TENSOR_I64;
    loop.unit = real ? MAP_UNIT : 0;
    m->params = param;
    return run(&loop, m);
}

static OpRowLoop fast_loop(const MapKernels *kernels, const MapArgs *m, int compute)
{
    const int type = compute <= TENSOR_F64    ? compute
                     : compute == TENSOR_BOOL ? MAP_U8
                                              : compute - TENSOR_I64 + MAP_I64;
    if (m->part == ROW_FORWARD) return kernels->forward[m->row][type];
    return type <= MAP_F64 ? kernels->gradient[m->row][m->part - 1][type] : NULL;
}

int cpu_map(MapArgs *m)
{
    if (m->row >= ROW_FAST) return map_rare(m);
    Loop loop = { .compute = compute_dtype(m) };
    const bool real = loop.compute == TENSOR_F32 || loop.compute == TENSOR_F64;
    const MapKernels *kernels = real ? ISA_PICK(map_kernels)() : ISA_PICK_AVX2(map_kernels)();
    loop.loop = fast_loop(kernels, m, loop.compute);
    if (!loop.loop) return cpu_fail("no loop for %s", tensor_dtype_name((TensorDtype)loop.compute));
    loop.size = dtype_size(loop.compute), loop.unit = loop.compute == TENSOR_F64 ? MAP_UNIT : 0;
    loop.to_bool = kernels->to_bool[m->row];
    loop.out_size = loop.to_bool ? 1 : loop.size;
    loop.bool_out = m->out.dtype == TENSOR_BOOL && !loop.to_bool;
    for (int k = ROW_A; k <= ROW_B && real && m->part == ROW_FORWARD; k++)
        if (m->by_one[k]) loop.of_one[k] = kernels->forward[m->by_one[k]][loop.compute];
    return run(&loop, m);
}

int map_fused(MapArgs *m)
{
    Loop loop = { .compute = compute_dtype(m) };
    loop.size = loop.out_size = dtype_size(loop.compute);
    const bool wide = loop.compute == TENSOR_F64;
    const OpRowLoop(*loops)[2] = *ISA_PICK(map_fused_loops)();
    loop.loop = loops[m->row][wide];
    if (m->row == FUSED_addr) loop.one = 1, loop.of_one[ROW_B] = loops[FUSED_addr_one][wide];
    return run(&loop, m);
}

int map_user_row(const TensorOp *op, MapArgs *m)
{
    Loop loop = { .compute = compute_dtype(m) };
    loop.size = loop.out_size = dtype_size(loop.compute);
    loop.loop = loop.compute == TENSOR_F64   ? op->row->f64[m->part]
                : loop.compute == TENSOR_F32 ? op->row->f32[m->part]
                                             : NULL;
    if (!loop.loop)
        return fail(TENSOR_EDTYPE, op->name, "has no loop for %s",
                    tensor_dtype_name((TensorDtype)loop.compute));
    return run(&loop, m);
}
