/* copy.c - dst = (dtype of dst) src for any strides and dtypes, and fill.
 *
 *  - The index space is put into the order of dst's strides and collapsed; then it is a list of lines along
 *    the last dim.
 *  - Where src runs densely along another dim than dst (a transpose), the plane of the two is done in tiles:
 *    cast line by line as src lies into a buffer that stays in the first-level cache, and from there line by
 *    line as dst lies.
 *  - Work is divided by the count of elements alone; no element's value depends on the division. */
#include "cast_kernel.h"
#include "cpu/cpu.h"

/* ---- lines of one dtype: n elements, strides in bytes ---------------------------------------- */

FORCE_INLINE void move_line(char *dst, const char *src, int64_t n, int64_t ds, int64_t ss, size_t size)
{
    if (ds == (int64_t)size && ss == ds) {
        memcpy(dst, src, (size_t)n * size);
    } else if (ds == (int64_t)size && ss == 0) {
        char one[8];
        memcpy(one, src, size);
        if (memcmp(one, one + 1, size - 1) == 0) { /* all bytes alike */
            memset(dst, one[0], (size_t)n * size);
            return;
        }
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * (int64_t)size, one, size);
    } else if (ds == (int64_t)size && ss == -ds) {
        ISA_PICK(move_backwards)(dst, src, n, size);
    } else {
        BY_FOUR for (int64_t i = 0; i < n; i++) memcpy(dst + i * ds, src + i * ss, size);
    }
}

static void move1(char *d, const char *s, int64_t n, int64_t ds, int64_t ss)
{
    move_line(d, s, n, ds, ss, 1);
}
static void move2(char *d, const char *s, int64_t n, int64_t ds, int64_t ss)
{
    move_line(d, s, n, ds, ss, 2);
}
static void move4(char *d, const char *s, int64_t n, int64_t ds, int64_t ss)
{
    move_line(d, s, n, ds, ss, 4);
}
static void move8(char *d, const char *s, int64_t n, int64_t ds, int64_t ss)
{
    move_line(d, s, n, ds, ss, 8);
}

static CastLine *mover(size_t size)
{
    return size == 4 ? move4 : size == 8 ? move8 : size == 2 ? move2 : move1;
}

/* ---- the plan of one copy -------------------------------------------------------------------- */

typedef struct Plan {
    CastLine *line;
    char *dst;
    const char *src;
    int ndim;
    int dsize, ssize; /* bytes an element */
    int64_t count, shape[KERNEL_MAX_DIMS];
    int64_t ds[KERNEL_MAX_DIMS], ss[KERNEL_MAX_DIMS]; /* bytes */
    int along;                                        /* the dim of src's lines, of a transpose; else -1 */
} Plan;

static int64_t size_of(int64_t stride) { return stride < 0 ? -stride : stride; }

static void sort_by_dst(Plan *p)
{
    for (int i = 1; i < p->ndim; i++) {
        int64_t n = p->shape[i], ds = p->ds[i], ss = p->ss[i];
        int at = i;
        for (; at > 0 && size_of(p->ds[at - 1]) < size_of(ds); at--)
            p->shape[at] = p->shape[at - 1], p->ds[at] = p->ds[at - 1], p->ss[at] = p->ss[at - 1];
        p->shape[at] = n, p->ds[at] = ds, p->ss[at] = ss;
    }
}

/* Lines of a few elements cost a call each: the longest dim takes their place, where it is so much longer
 * that going over memory once for each element of theirs is less. */
static void lengthen_lines(Plan *p)
{
    enum { FEW = 4, MANY = 64 };
    const int last = p->ndim - 1;
    int longest = last;
    if (p->shape[last] > FEW) return;
    for (int i = 0; i < last; i++)
        if (p->shape[i] > p->shape[longest]) longest = i;
    if (p->shape[longest] < MANY) return;
    const int64_t n = p->shape[longest], ds = p->ds[longest], ss = p->ss[longest];
    p->shape[longest] = p->shape[last], p->ds[longest] = p->ds[last], p->ss[longest] = p->ss[last];
    p->shape[last] = n, p->ds[last] = ds, p->ss[last] = ss;
}

static void make_plan(Plan *p, const CopyArgs *a)
{
    p->dst = a->dst.data, p->src = a->src.data;
    p->dsize = (int)dtype_size(a->dst.dtype), p->ssize = (int)dtype_size(a->src.dtype);
    p->line =
        a->dst.dtype == a->src.dtype ? mover((size_t)p->dsize) : cpu_cast_line(a->src.dtype, a->dst.dtype);
    p->count = a->count, p->ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++) {
        p->shape[i] = a->shape[i];
        p->ds[i] = a->dst.stride[i] * p->dsize, p->ss[i] = a->src.stride[i] * p->ssize;
    }
    if (p->ndim > 1) sort_by_dst(p);
    p->ndim = collapse(p->ndim, p->shape, 2, (int64_t *const[]){ p->ds, p->ss });
    if (p->count == 1) p->ds[0] = p->dsize, p->ss[0] = p->ssize;
    p->along = -1;
    lengthen_lines(p);
    int last = p->ndim - 1;
    if (p->ds[last] != p->dsize || p->ss[last] == p->ssize || p->ss[last] == 0) return;
    for (int i = 0; i < last; i++)
        if (size_of(p->ss[i]) == p->ssize && p->shape[i] >= 8) p->along = i;
}

/* ---- lines along the last dim ---------------------------------------------------------------- */

static void copy_lines(const Plan *p, int64_t begin, int64_t end)
{
    int last = p->ndim - 1;
    int64_t n = p->shape[last], at[KERNEL_MAX_DIMS], rest = begin;
    char *dst = p->dst;
    const char *src = p->src;
    for (int i = last; i >= 0; rest /= p->shape[i], i--) {
        at[i] = rest % p->shape[i];
        dst += at[i] * p->ds[i], src += at[i] * p->ss[i];
    }
    for (int64_t skip = at[last]; begin < end; skip = 0) {
        int64_t length = n - skip < end - begin ? n - skip : end - begin;
        p->line(dst, src, length, p->ds[last], p->ss[last]);
        begin += length;
        dst -= skip * p->ds[last], src -= skip * p->ss[last];
        for (int i = last - 1; i >= 0; i--) {
            dst += p->ds[i], src += p->ss[i];
            if (++at[i] < p->shape[i]) break;
            dst -= at[i] * p->ds[i], src -= at[i] * p->ss[i], at[i] = 0;
        }
    }
}

/* ---- transposes: tiles of [rows along src's line dim] x [columns along dst's] ---------------- */

enum { TILE_BYTES = 16384 };

typedef struct Tiles {
    int64_t rows, columns;       /* of one tile */
    int64_t down, across, count; /* tiles in a plane; in all */
} Tiles;

static Tiles make_tiles(const Plan *p)
{
    int64_t most = TILE_BYTES / p->dsize, side = p->dsize == 8 ? 32 : 64;
    int64_t rows = p->shape[p->along], columns = p->shape[p->ndim - 1];
    Tiles t = { .columns = columns < side ? columns : side, .rows = side };
    if (t.columns < side) t.rows = most / t.columns;
    if (t.rows > rows) t.rows = rows;
    t.down = (rows + t.rows - 1) / t.rows, t.across = (columns + t.columns - 1) / t.columns;
    t.count = p->count / (rows * columns) * t.down * t.across;
    return t;
}

/* buffer is [columns][rows]; dst's rows are written whole */
FORCE_INLINE void untile(char *dst, int64_t ds, const char *buffer, int64_t rows, int64_t columns,
                         size_t size)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            memcpy(dst + i * ds + j * (int64_t)size, buffer + (j * rows + i) * (int64_t)size, size);
}

static void copy_tile(const Plan *p, const Tiles *t, int64_t index)
{
    char buffer[TILE_BYTES] __attribute__((aligned(64)));
    int last = p->ndim - 1;
    int64_t column = index % t->across * t->columns, row = index / t->across % t->down * t->rows;
    int64_t rest = index / t->across / t->down;
    int64_t rows = p->shape[p->along] - row < t->rows ? p->shape[p->along] - row : t->rows;
    int64_t columns = p->shape[last] - column < t->columns ? p->shape[last] - column : t->columns;
    char *dst = p->dst + row * p->ds[p->along] + column * p->ds[last];
    const char *src = p->src + row * p->ss[p->along] + column * p->ss[last];
    for (int i = last - 1; i >= 0; i--) {
        if (i == p->along) continue;
        dst += rest % p->shape[i] * p->ds[i], src += rest % p->shape[i] * p->ss[i];
        rest /= p->shape[i];
    }
    for (int64_t j = 0; j < columns; j++)
        p->line(buffer + j * rows * p->dsize, src + j * p->ss[last], rows, p->dsize, p->ss[p->along]);
    int64_t ds = p->ds[p->along];
    if (p->dsize == 4) untile(dst, ds, buffer, rows, columns, 4);
    else if (p->dsize == 8) untile(dst, ds, buffer, rows, columns, 8);
    else if (p->dsize == 2) untile(dst, ds, buffer, rows, columns, 2);
    else untile(dst, ds, buffer, rows, columns, 1);
}

/* ---- the kernels ----------------------------------------------------------------------------- */

typedef struct Tiled {
    const Plan *plan;
    Tiles tiles;
} Tiled;

static void copy_piece(void *ctx, int64_t i)
{
    const Tiled *t = ctx;
    copy_tile(t->plan, &t->tiles, i);
}

static void copy_span(void *ctx, int64_t from, int64_t to) { copy_lines(ctx, from, to); }

int cpu_copy(CopyArgs *args)
{
    if (args->count == 0) return 0;
    Plan plan;
    make_plan(&plan, args);
    const Plan *p = &plan;
    int threads = cpu_threads(p->count);
    if (p->along >= 0) {
        Tiled t = { p, make_tiles(p) };
        parallel_for(t.tiles.count, threads, copy_piece, &t);
    } else {
        parallel_split(p->count, threads, copy_span, &plan);
    }
    return 0;
}

/* A copy from one element whose strides are 0. */
int cpu_fill(FillArgs *args)
{
    char value[8];
    if (args->kind != FILL_VALUE) return KERNEL_DECLINED;
    if (args->dst.dtype == TENSOR_I64) memcpy(value, &args->value_i64, 8);
    else if (args->dst.dtype == TENSOR_F64) memcpy(value, &args->value, 8);
    else cpu_cast_line(TENSOR_F64, args->dst.dtype)(value, (const char *)&args->value, 1, 8, 8);
    CopyArgs copy;
    copy.ndim = args->ndim, copy.count = args->count;
    copy.dst = args->dst;
    copy.src.data = value, copy.src.dtype = args->dst.dtype;
    for (int i = 0; i < args->ndim; i++) copy.shape[i] = args->shape[i], copy.src.stride[i] = 0;
    return cpu_copy(&copy);
}
