/* host_index.c - see host_index.h. */
#include <string.h>
#include "cpu/cpu.h"
#include "host_index.h"

/* Is one of n values outside?  By the signs of differences, so that it runs in vectors. */
static bool any_outside(const int64_t *value, int64_t n, int64_t low, int64_t end)
{
    const uint64_t from = (uint64_t)low, most = (uint64_t)end - 1;
    uint64_t bits = 0, far = 0; /* far: where a difference may overflow */
    for (int64_t i = 0; i < n; i++) {
        const uint64_t v = (uint64_t)value[i];
        bits |= (v - from) | (most - v), far |= v ^ v << 1;
    }
    return (bits | far) >> 63;
}

int64_t host_outside(const int64_t *value, int64_t count, int64_t low, int64_t end)
{
    if (!any_outside(value, count, low, end)) return -1;
    for (int64_t i = 0; i < count; i++)
        if (value[i] < low || value[i] >= end) return i;
    return -1;
}

int64_t host_bad_class(const int64_t *value, int64_t count, int64_t classes, int64_t ignored)
{
    for (int64_t i = 0; i < count; i++)
        if ((value[i] < 0 || value[i] >= classes) && value[i] != ignored) return i;
    return -1;
}

int64_t host_count(const int64_t *value, int64_t count, int64_t v)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) found += value[i] == v;
    return found;
}

int64_t host_beyond(const double *value, int64_t count, double low, double high)
{
    for (int64_t i = 0; i < count; i++)
        if (value[i] < low || value[i] > high) return i;
    return -1;
}

/* The position in the target of element i of index, whose value is v. */
static int64_t position(int64_t i, int64_t v, int ndim, const int64_t *shape, int dim, const int64_t *stride)
{
    int64_t rest = i, at = 0;
    for (int d = ndim - 1; d >= 0; rest /= shape[d], d--) at += (d == dim ? v : rest % shape[d]) * stride[d];
    return at;
}

static int64_t product(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= shape[d];
    return count;
}

/* From the last to the first: who comes to an element first wins. */
void host_winners(const int64_t *index, int64_t count, int ndim, const int64_t *shape, int dim,
                  const int64_t *stride, uint8_t *written, uint8_t *wins)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        uint8_t *target = written + position(i, index[i], ndim, shape, dim, stride);
        wins[i] = !*target;
        *target = 1;
    }
}

/* One line of the last dim, whose elements lie `step` apart in y, or at the index. */
FORCE_INLINE void scatter_line(const HostScatter *s, char *y, const char *src, const int64_t *index,
                               size_t size)
{
    const int last = s->ndim - 1;
    const int64_t n = s->ndim ? s->shape[last] : 1, along = s->ndim ? s->y_stride[s->dim] : 0,
                  step = s->ndim && s->dim != last ? s->y_stride[last] : 0,
                  from = s->ndim ? s->src_stride[last] : 0;
    for (int64_t i = 0; i < n; i++)
        memcpy(y + (size_t)(i * step + index[i] * along) * size, src + (size_t)(i * from) * size, size);
}

void host_scatter(const HostScatter *s)
{
    const int64_t n = s->ndim ? s->shape[s->ndim - 1] : 1,
                  lines = s->ndim ? product(s->ndim - 1, s->shape) : 1;
    for (int64_t line = 0; line < lines; line++) {
        int64_t rest = line, to = 0, from = 0;
        for (int d = s->ndim - 2; d >= 0; rest /= s->shape[d], d--) {
            to += d == s->dim ? 0 : rest % s->shape[d] * s->y_stride[d];
            from += rest % s->shape[d] * s->src_stride[d];
        }
        char *y = (char *)s->y + (size_t)to * s->size;
        const char *src = (const char *)s->src + (size_t)from * s->size;
        const int64_t *index = s->index + line * n;
        if (s->size == 4) scatter_line(s, y, src, index, 4);
        else if (s->size == 8) scatter_line(s, y, src, index, 8);
        else if (s->size == 2) scatter_line(s, y, src, index, 2);
        else scatter_line(s, y, src, index, 1);
    }
}

void host_last(const int64_t *list, int64_t count, uint8_t *written, int64_t *from)
{
    for (int64_t k = 0; k < count; k++) {
        written[list[k]] = 1;
        from[list[k]] = k;
    }
}

int64_t host_ranks(const uint8_t *mask, int64_t count, int64_t *rank)
{
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t here = mask[i] != 0; /* no branch, which random masks would mislead */
        rank[i] = n & -here;
        n += here;
    }
    return n;
}

void host_frequency(const int64_t *index, int64_t n, int64_t rows, int64_t *count, double *each)
{
    for (int64_t i = 0; i < n; i++) count[index[i] < 0 || index[i] >= rows ? 0 : index[i]]++;
    for (int64_t i = 0; i < n; i++) each[i] = (double)count[index[i] < 0 || index[i] >= rows ? 0 : index[i]];
}

void host_write_rows(void *target, int64_t rows, const void *source, int64_t outer, const int64_t *at,
                     int64_t m, size_t size)
{
    for (int64_t i = 0; i < outer * m; i++)
        memcpy((char *)target + (size_t)(i / m * rows + at[i % m]) * size,
               (const char *)source + (size_t)i * size, size);
}

/* ---- unpooling ------------------------------------------------------------------------------- */

typedef struct Unpool {
    size_t size;
    int64_t n, m;
    const char *x;
    const int64_t *index;
    char *y;
} Unpool;

FORCE_INLINE void unpool_sized(const Unpool *u, int64_t from, int64_t to, size_t size)
{
    memset(u->y + (size_t)(from * u->n) * size, 0, (size_t)((to - from) * u->n) * size);
    for (int64_t p = from, k = from * u->m; p < to; p++)
        for (int64_t j = 0; j < u->m; j++, k++)
            memcpy(u->y + (size_t)(p * u->n + u->index[k]) * size, u->x + (size_t)k * size, size);
}

static void unpool_planes(void *ctx, int64_t from, int64_t to)
{
    const Unpool *u = ctx;
    if (u->size == 4) unpool_sized(u, from, to, 4);
    else if (u->size == 8) unpool_sized(u, from, to, 8);
    else unpool_sized(u, from, to, 2);
}

bool host_unpool(size_t size, int64_t planes, int64_t n, int64_t m, const void *x, const int64_t *index,
                 void *y)
{
    Unpool u = { size, n, m, x, index, y };
    uint64_t bits = 0;
    for (int64_t k = 0; k < planes * m; k++)
        bits |= (uint64_t)index[k] | ((uint64_t)n - 1 - (uint64_t)index[k]);
    if (bits >> 63) return false;
    parallel_split(planes, cpu_threads(planes * (n + m)), unpool_planes, &u);
    return true;
}
