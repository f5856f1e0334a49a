/* select.c - out = cond ? a : b for any strides.  Elements not selected are never computed with: a NaN among
 * them has no effect.  Elements are moved as bits, so one loop serves all dtypes of a size. */
#include "cpu/cpu.h"

typedef void SelectLine(void *out, const uint8_t *cond, const void *a, const void *b, int64_t n, int64_t so,
                        int64_t sc, int64_t sa, int64_t sb);

#define T uint8_t
#define LINE select1
#include "select_line.h"
#undef T
#undef LINE
#define T uint16_t
#define LINE select2
#include "select_line.h"
#undef T
#undef LINE
#define T uint32_t
#define LINE select4
#include "select_line.h"
#undef T
#undef LINE
#define T uint64_t
#define LINE select8
#include "select_line.h"
#undef T
#undef LINE

static SelectLine *line_of(size_t size)
{
    return size == 4 ? select4 : size == 8 ? select8 : size == 2 ? select2 : select1;
}

/* Elements [begin, begin + length) of the lines [from, to). */
static void run_lines(const SelectArgs *s, int64_t from, int64_t to, int64_t begin, int64_t length)
{
    int inner = s->ndim - 1;
    int64_t size = (int64_t)dtype_size(s->out.dtype), index[KERNEL_MAX_DIMS] = { 0 }, rest = from;
    SelectLine *line = line_of((size_t)size);
    for (int d = inner - 1; d >= 0; d--) index[d] = rest % s->shape[d], rest /= s->shape[d];
    for (int64_t i = from; i < to; i++) {
        int64_t o = begin * s->out.stride[inner], c = begin * s->cond.stride[inner];
        int64_t a = begin * s->a.stride[inner], b = begin * s->b.stride[inner];
        for (int d = 0; d < inner; d++) {
            o += index[d] * s->out.stride[d], c += index[d] * s->cond.stride[d];
            a += index[d] * s->a.stride[d], b += index[d] * s->b.stride[d];
        }
        line((char *)s->out.data + o * size, (const uint8_t *)s->cond.data + c,
             (const char *)s->a.data + a * size, (const char *)s->b.data + b * size, length,
             s->out.stride[inner], s->cond.stride[inner], s->a.stride[inner], s->b.stride[inner]);
        for (int d = inner - 1; d >= 0 && ++index[d] == s->shape[d]; d--) index[d] = 0;
    }
}

static void some_lines(void *ctx, int64_t from, int64_t to)
{
    const SelectArgs *s = ctx;
    run_lines(s, from, to, 0, s->shape[s->ndim - 1]);
}

static void part_of_line(void *ctx, int64_t from, int64_t to) { run_lines(ctx, 0, 1, from, to - from); }

int cpu_select(SelectArgs *s)
{
    if (s->count == 0) return 0;
    int64_t length = s->shape[s->ndim - 1], lines = s->count / length;
    if (lines == 1) parallel_split(length, cpu_threads(s->count), part_of_line, s);
    else parallel_split(lines, cpu_threads(s->count), some_lines, s);
    return 0;
}
