/* gather.c - gathers elements by index, and adds gradients back.
 *
 *  - Every index is checked before anything is written.
 *  - scatter_add adds in the order of the index rows to each element, whoever does it: threads divide the
 *    destination (outer blocks, columns, or rows), never the source.  The bits do not depend on how many
 *    there are. */
#include "cpu/cpu.h"
#include "fold_into.h"

/* ---- the check ------------------------------------------------------------------------------- */

/* Is one of n indices not in [0, most]?  Without a branch, so that it runs in vectors. */
static bool any_beyond(const int64_t *index, int64_t n, int64_t stride, int64_t most)
{
    uint64_t bits = 0;
    if (stride == 1)
        for (int64_t i = 0; i < n; i++) bits |= (uint64_t)index[i] | ((uint64_t)most - (uint64_t)index[i]);
    else
        for (int64_t i = 0; i < n; i++)
            bits |= (uint64_t)index[i * stride] | ((uint64_t)most - (uint64_t)index[i * stride]);
    return bits >> 63;
}

/* The first bad one in row-major order is reported.  Steps of stride 0 repeat indices already seen. */
static int check_each(GatherArgs *g, int64_t outer, int64_t rows, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t j = 0; j < rows; j++)
            for (int64_t i = 0; i < inner; i++) {
                int64_t value = g->index[o * g->index_outer + j * g->index_row + i * g->index_inner];
                if (likely((uint64_t)value < (uint64_t)g->n)) continue;
                g->bad_at = (o * rows + j) * inner + i, g->bad_value = value;
                return cpu_fail("index %lld at position %lld is out of range: want 0 to %lld",
                                (long long)value, (long long)g->bad_at, (long long)g->n - 1);
            }
    return 0;
}

int gather_check(GatherArgs *g)
{
    const int64_t outer = g->index_outer ? g->outer : 1, rows = g->index_row ? g->m : 1,
                  inner = g->index_inner ? g->inner : 1;
    const bool one = inner == 1 || (rows > 1 && g->index_row == inner * g->index_inner); /* a block a line */
    const bool all = inner == 1 && g->index_outer == rows * g->index_row; /* outer blocks side by side */
    if (all)
        return any_beyond(g->index, outer * rows, g->index_row, g->n - 1) ? check_each(g, outer, rows, inner)
                                                                          : 0;
    const int64_t length = one ? rows * inner : inner, stride = inner == 1 ? g->index_row : g->index_inner;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t j = 0; j < (one ? 1 : rows); j++)
            if (any_beyond(g->index + o * g->index_outer + j * g->index_row, length, stride, g->n - 1))
                return check_each(g, outer, rows, inner);
    return 0;
}

/* ---- gather ---------------------------------------------------------------------------------- */

/* Elements j of one block along the indexed dimension, where it is the last: the tight loop of
 * log-probabilities and the like. */
FORCE_INLINE void gather_line(char *dst, const char *src, const int64_t *index, int64_t stride, int64_t n,
                              size_t size)
{
    BY_FOUR for (int64_t j = 0; j < n; j++)
        memcpy(dst + (size_t)j * size, src + (size_t)index[j * stride] * size, size);
}

/* Rows [begin, end) of the outer * m rows of the result. */
FORCE_INLINE void gather_elements(const GatherArgs *g, int64_t begin, int64_t end, size_t size)
{
    int64_t o = begin / g->m, j = begin % g->m;
    for (int64_t r = begin, next; r < end; r = next, o++, j = 0) {
        const int64_t rows = g->m - j < end - r ? g->m - j : end - r;
        const int64_t *index = g->index + o * g->index_outer + j * g->index_row;
        const char *src = (const char *)g->src + (size_t)(o * g->n * g->inner) * size;
        char *dst = (char *)g->dst + (size_t)(r * g->inner) * size;
        next = r + rows;
        if (g->inner == 1) {
            gather_line(dst, src, index, g->index_row, rows, size);
            continue;
        }
        for (; r < next; r++, index += g->index_row, dst += (size_t)g->inner * size)
            for (int64_t i = 0; i < g->inner; i++)
                memcpy(dst + (size_t)i * size,
                       src + (size_t)(index[i * g->index_inner] * g->inner + i) * size, size);
    }
}

static void gather_rows(const GatherArgs *g, int64_t begin, int64_t end, size_t size)
{
    size_t bytes = (size_t)g->inner * size;
    for (int64_t r = begin; r < end; r++) {
        int64_t o = r / g->m, j = r % g->m;
        int64_t row = o * g->n + g->index[o * g->index_outer + j * g->index_row];
        memcpy((char *)g->dst + (size_t)r * bytes, (const char *)g->src + (size_t)row * bytes, bytes);
    }
}

static void gather_part(const GatherArgs *g, int64_t begin, int64_t end)
{
    size_t size = dtype_size(g->dtype);
    if (g->index_inner == 0 && g->inner > 1) gather_rows(g, begin, end, size);
    else if (size == 4) gather_elements(g, begin, end, 4);
    else if (size == 8) gather_elements(g, begin, end, 8);
    else if (size == 2) gather_elements(g, begin, end, 2);
    else gather_elements(g, begin, end, 1);
}

static void gather_span(void *ctx, int64_t from, int64_t to) { gather_part(ctx, from, to); }

int cpu_gather(GatherArgs *g)
{
    if (gather_check(g)) return -1;
    parallel_split(g->outer * g->m, cpu_threads(g->outer * g->m * g->inner), gather_span, g);
    return 0;
}

/* ---- scatter_add ----------------------------------------------------------------------------- */

/* The part of the destination that one thread writes: blocks, rows and columns of [outer, n, inner]. */
typedef struct Part {
    int64_t outer_begin, outer_end, row_begin, row_end, inner_begin, inner_end;
} Part;

typedef void Add(char *dst, const char *src);

/* The indexed dimension is the last one. */
FORCE_INLINE void add_line(const GatherArgs *g, const Part *p, int64_t o, Add *add, size_t size)
{
    const int64_t *index = g->index + o * g->index_outer;
    const char *src = (const char *)g->src + (size_t)(o * g->m) * size;
    char *dst = (char *)g->dst + (size_t)(o * g->n) * size;
    for (int64_t j = 0; j < g->m; j++) {
        int64_t row = index[j * g->index_row];
        if (row >= p->row_begin && row < p->row_end) add(dst + (size_t)row * size, src + (size_t)j * size);
    }
}

FORCE_INLINE void add_part(const GatherArgs *g, const Part *p, Add *add, size_t size)
{
    if (g->inner == 1) {
        for (int64_t o = p->outer_begin; o < p->outer_end; o++) add_line(g, p, o, add, size);
        return;
    }
    for (int64_t o = p->outer_begin; o < p->outer_end; o++)
        for (int64_t j = 0; j < g->m; j++) {
            const int64_t *index = g->index + o * g->index_outer + j * g->index_row;
            const char *src = (const char *)g->src + (size_t)((o * g->m + j) * g->inner) * size;
            char *dst = (char *)g->dst + (size_t)(o * g->n * g->inner) * size;
            if (g->index_inner == 0) {
                if (*index < p->row_begin || *index >= p->row_end) continue;
                dst += (size_t)(*index * g->inner) * size;
                for (int64_t i = p->inner_begin; i < p->inner_end; i++)
                    add(dst + (size_t)i * size, src + (size_t)i * size);
            } else {
                for (int64_t i = p->inner_begin; i < p->inner_end; i++) {
                    int64_t row = index[i * g->index_inner];
                    if (row < p->row_begin || row >= p->row_end) continue;
                    add(dst + (size_t)(row * g->inner + i) * size, src + (size_t)i * size);
                }
            }
        }
}

FORCE_INLINE void add_f32(char *d, const char *s) { *(float *)d += *(const float *)s; }
FORCE_INLINE void add_f64(char *d, const char *s) { *(double *)d += *(const double *)s; }
FORCE_INLINE void add_i64(char *d, const char *s) { *(uint64_t *)d += *(const uint64_t *)s; }
FORCE_INLINE void add_i32(char *d, const char *s) { *(uint32_t *)d += *(const uint32_t *)s; }
FORCE_INLINE void add_u8(char *d, const char *s)
{
    *(uint8_t *)d = (uint8_t)(*(uint8_t *)d + *(const uint8_t *)s);
}
FORCE_INLINE void add_bool(char *d, const char *s) { *(uint8_t *)d |= *(const uint8_t *)s; }

static void scatter_part(const GatherArgs *g, const Part *p)
{
    switch (g->dtype) {
    case TENSOR_F32: add_part(g, p, add_f32, 4); break;
    case TENSOR_F64: add_part(g, p, add_f64, 8); break;
    case TENSOR_I64: add_part(g, p, add_i64, 8); break;
    case TENSOR_I32: add_part(g, p, add_i32, 4); break;
    case TENSOR_U8: add_part(g, p, add_u8, 1); break;
    default: add_part(g, p, add_bool, 1); break;
    }
}

typedef struct Scatter {
    const GatherArgs *g;
    Part all;
    int threads;
    bool by_outer, by_inner;
} Scatter;

static void scatter_piece(void *ctx, int64_t t)
{
    const Scatter *s = ctx;
    const GatherArgs *g = s->g;
    Part p = s->all;
    if (s->by_outer) p.outer_begin = g->outer * t / s->threads, p.outer_end = g->outer * (t + 1) / s->threads;
    else if (s->by_inner)
        p.inner_begin = g->inner * t / s->threads, p.inner_end = g->inner * (t + 1) / s->threads;
    else p.row_begin = g->n * t / s->threads, p.row_end = g->n * (t + 1) / s->threads;
    scatter_part(g, &p);
}

int cpu_scatter_add(GatherArgs *g)
{
    enum { LINE = 64 }; /* columns a thread takes at least */
    if (gather_check(g)) return -1;
    const Part all = { 0, g->outer, 0, g->n, 0, g->inner };
    int threads = cpu_threads(g->outer * g->m * g->inner);
    Scatter s = { g, all, threads, g->outer >= threads, false };
    s.by_inner = !s.by_outer && g->inner >= (int64_t)LINE * threads;
    parallel_for(threads, threads, scatter_piece, &s);
    return 0;
}
