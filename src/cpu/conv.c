/* conv.c - two-dimensional convolution: unfolded a panel at a time, and multiplied by gemm.
 *
 *   y = weight panel       dx = fold(weight^T dy)       dweight = dy panel^T
 *
 * for each image and group, where the panel holds the patches of some positions, so small that it stays in L2.  A 1 x 1 kernel of
 * stride 1 needs no panel: its patches are x.  Images of few positions share a panel.  Groups of one channel (depthwise)
 * have loops of their own.
 *
 * Threads take images (weight gradient: channels and runs of images); the pieces, and the order in which they are added,
 * follow from the sizes alone. */
#include "../core.h"
#include "conv_kernel.h"
#include "gemm.h"

enum { PANEL_BYTES = 1 << 18, FEW_POSITIONS = 128, MIN_COLUMNS = 64, WEIGHT_ROWS = 192, WEIGHT_PIECES = 8 };

typedef struct Plan {
    const ConvArgs *a;
    const ConvKernel *loops;
    size_t size;                        /* of an element */
    int64_t in, out;                    /* channels of a group */
    int64_t taps, rows, positions;      /* rows: in * taps, of a whole panel */
    int64_t images;                     /* that share a panel */
    int64_t columns;                    /* of a panel, for each of them */
    bool pointwise, depthwise;
} Plan;

static const ConvKernel *loops_for(int dtype)
{
    return &ISA_PICK(conv_kernel)[dtype == TENSOR_F64];
}

static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static Plan plan_for(const ConvArgs *a, int64_t panel_rows)
{
    Plan p = { .a = a, .loops = loops_for(a->dtype), .size = dtype_size(a->dtype), .in = a->in / a->groups, .out = a->out / a->groups,
               .taps = a->kh * a->kw, .positions = a->oh * a->ow, .images = 1 };
    p.rows = p.in * p.taps;
    p.pointwise = p.taps == 1 && a->stride_h == 1 && a->stride_w == 1 && a->pad_h == 0 && a->pad_w == 0 && a->h == a->oh && a->w == a->ow;
    p.depthwise = p.in == 1 && a->groups > 1;
    if (panel_rows == 0) panel_rows = p.rows;
    const int64_t fit = PANEL_BYTES / (int64_t)p.size / (panel_rows ? panel_rows : 1);
    p.columns = least(p.positions, fit > MIN_COLUMNS ? fit : MIN_COLUMNS);
    if (p.positions < FEW_POSITIONS && p.columns == p.positions && p.positions > 0)
        p.images = least(a->batch, up(FEW_POSITIONS, p.positions));
    if (p.images < 1) p.images = 1;
    return p;
}

static char *at(const Plan *p, const void *base, int64_t elements) { return (char *)(uintptr_t)base + elements * (int64_t)p->size; }

static char *x_of(const Plan *p, int64_t image, int64_t channel)
{
    return at(p, p->a->x, (image * p->a->in + channel) * p->a->h * p->a->w);
}

static char *y_of(const Plan *p, int64_t image, int64_t channel)
{
    return at(p, p->a->y, (image * p->a->out + channel) * p->positions);
}

static char *weight_of(const Plan *p, int64_t group) { return at(p, p->a->weight, group * p->out * p->rows); }

/* Work in multiply-adds, for cpu_threads: a vector's worth of them counts as one operation. */
static int threads_for(const Plan *p)
{
    const double work = (double)p->a->batch * (double)p->a->out * (double)p->rows * (double)p->positions / 8;
    return cpu_threads(work > 1e15 ? (int64_t)1e15 : (int64_t)work);
}

/* What lies at the same positions of several images: y [out, positions] of each, and one matrix [out, images * positions]. */
static void gather_y(const Plan *p, int64_t image, int64_t count, int64_t group, char *to)
{
    for (int64_t c = 0; c < p->out; c++)
        for (int64_t i = 0; i < count; i++)
            memcpy(at(p, to, (c * count + i) * p->positions), y_of(p, image + i, group * p->out + c), (size_t)p->positions * p->size);
}

static void scatter_y(const Plan *p, int64_t image, int64_t count, int64_t group, const char *from)
{
    for (int64_t c = 0; c < p->out; c++)
        for (int64_t i = 0; i < count; i++)
            memcpy(y_of(p, image + i, group * p->out + c), at(p, from, (c * count + i) * p->positions), (size_t)p->positions * p->size);
}

static GemmCall product_of(const Plan *p)
{
    return (GemmCall){ .dtype = p->a->dtype == TENSOR_F64 ? GEMM_F64 : GEMM_F32, .batch = 1, .alpha = 1 };
}

/* ---- forward ------------------------------------------------------------------------------------------------ */

static int forward_piece(const Plan *p, int64_t image, int64_t count, int64_t group, int64_t first, int64_t n, char *panel, char *side)
{
    const int64_t line = count * n;
    const bool direct = p->pointwise && count == 1;
    GemmCall g = product_of(p);
    for (int64_t i = 0; i < count && !direct; i++)
        p->loops->unfold(p->a, x_of(p, image + i, group * p->in), p->in, first, n, at(p, panel, i * n), line);
    g.m = p->out, g.n = line, g.k = p->rows;
    g.a = weight_of(p, group), g.a_row = p->rows, g.a_col = 1;
    g.b = direct ? at(p, x_of(p, image, group * p->in), first) : panel, g.b_row = direct ? p->positions : line, g.b_col = 1;
    g.c = count == 1 ? at(p, y_of(p, image, group * p->out), first) : side, g.c_row = count == 1 ? p->positions : line, g.c_col = 1;
    g.bias = p->a->bias ? at(p, p->a->bias, group * p->out) : NULL, g.bias_per = GEMM_BIAS_COLUMN;
    if (gemm_cpu(&g, 1)) return -1;
    if (count > 1) scatter_y(p, image, count, group, side);
    return 0;
}

static void forward_planes(const Plan *p)
{
    const int64_t out = p->a->out;
#pragma omp parallel for num_threads(threads_for(p)) schedule(static)
    for (int64_t t = 0; t < p->a->batch * out; t++) {
        const int64_t image = t / out, o = t % out;
        char *y = y_of(p, image, o);
        p->loops->fill(y, p->positions, p->a->bias ? at(p, p->a->bias, o) : NULL);
        p->loops->plane(p->a, x_of(p, image, o / p->out), at(p, p->a->weight, o * p->taps), y);
    }
}

int cpu_conv2d(ConvArgs *a)
{
    const Plan p = plan_for(a, 0);
    if (a->batch == 0 || a->out == 0 || p.positions == 0) return 0;
    if (p.depthwise) return forward_planes(&p), 0;
    const int64_t cuts = up(p.positions, p.columns), blocks = up(a->batch, p.images);
    const size_t panel = (size_t)(p.rows * p.columns * p.images) * p.size, side = (size_t)(p.out * p.positions * p.images) * p.size;
    int failed = 0;
#pragma omp parallel for num_threads(threads_for(&p)) schedule(static) reduction(|:failed)
    for (int64_t t = 0; t < blocks * a->groups * cuts; t++) {
        const int64_t image = t / cuts / a->groups * p.images, group = t / cuts % a->groups, first = t % cuts * p.columns;
        const int64_t count = least(p.images, a->batch - image), n = least(p.columns, p.positions - first);
        char *room = tg_alloc(panel + (count > 1 ? side : 0) + 64);
        failed |= !room || forward_piece(&p, image, count, group, first, n, room, room + panel);
        if (room) tg_free(room, panel + (count > 1 ? side : 0) + 64);
    }
    return failed ? fail_memory("conv2d") : 0;
}

/* ---- gradient of the input ---------------------------------------------------------------------------------- */

static int input_piece(const Plan *p, int64_t image, int64_t count, int64_t group, int64_t first, int64_t n, char *panel, char *side)
{
    const int64_t line = count * n;
    const bool direct = p->pointwise && count == 1;
    GemmCall g = product_of(p);
    if (count > 1) gather_y(p, image, count, group, side);
    g.m = p->rows, g.n = line, g.k = p->out;
    g.a = weight_of(p, group), g.a_row = 1, g.a_col = p->rows;
    g.b = count == 1 ? at(p, y_of(p, image, group * p->out), first) : side, g.b_row = count == 1 ? p->positions : line, g.b_col = 1;
    g.c = direct ? at(p, x_of(p, image, group * p->in), first) : panel, g.c_row = direct ? p->positions : line, g.c_col = 1;
    if (gemm_cpu(&g, 1)) return -1;
    for (int64_t i = 0; i < count && !direct; i++)
        p->loops->fold(p->a, x_of(p, image + i, group * p->in), p->in, first, n, at(p, panel, i * n), line);
    return 0;
}

/* Patches overlap, so one thread adds those of an image, from the first position to the last. */
static int input_images(const Plan *p, int64_t image, int64_t count, int64_t group)
{
    const size_t panel = (size_t)(p->rows * p->columns * count) * p->size, side = (size_t)(p->out * p->positions * count) * p->size;
    char *room = tg_alloc(panel + side + 64);
    if (!room) return -1;
    int status = 0;
    for (int64_t i = 0; i < count; i++) p->loops->fill(x_of(p, image + i, group * p->in), p->in * p->a->h * p->a->w, NULL);
    for (int64_t first = 0; first < p->positions && !status; first += p->columns)
        status = input_piece(p, image, count, group, first, least(p->columns, p->positions - first), room, room + panel);
    tg_free(room, panel + side + 64);
    return status;
}

static void input_planes(const Plan *p)
{
    const int64_t in = p->a->in;
#pragma omp parallel for num_threads(threads_for(p)) schedule(static)
    for (int64_t t = 0; t < p->a->batch * in; t++) {
        const int64_t image = t / in, c = t % in;
        p->loops->fill(x_of(p, image, c), p->a->h * p->a->w, NULL);
        for (int64_t o = c * p->out; o < (c + 1) * p->out; o++)
            p->loops->plane_grad_input(p->a, x_of(p, image, c), at(p, p->a->weight, o * p->taps), y_of(p, image, o));
    }
}

int cpu_conv2d_grad_input(ConvArgs *a)
{
    const Plan p = plan_for(a, 0);
    if (a->batch == 0 || a->in * a->h * a->w == 0) return 0;
    if (p.depthwise) return input_planes(&p), 0;
    const int64_t blocks = up(a->batch, p.images);
    int failed = 0;
#pragma omp parallel for num_threads(threads_for(&p)) schedule(static) reduction(|:failed)
    for (int64_t t = 0; t < blocks * a->groups; t++) {
        const int64_t image = t / a->groups * p.images;
        failed |= input_images(&p, image, least(p.images, a->batch - image), t % a->groups) != 0;
    }
    return failed ? fail_memory("conv2d_grad_input") : 0;
}

/* ---- gradient of the weight --------------------------------------------------------------------------------- */

/* How the weight gradient is cut: blocks of a group's input channels, and runs of image blocks whose sums are added in order. */
typedef struct Cut {
    int64_t channels, blocks;           /* in a block; blocks in a group */
    int64_t run, runs;                  /* images in a run */
} Cut;

static Cut cut_for(const Plan *p)
{
    Cut c = { .channels = least(p->in, WEIGHT_ROWS / p->taps > 1 ? WEIGHT_ROWS / p->taps : 1) };
    c.blocks = up(p->in, c.channels);
    const int64_t image_blocks = up(p->a->batch, p->images), pieces = c.blocks * p->a->groups;
    c.runs = least(image_blocks, up(WEIGHT_PIECES, pieces));
    c.run = up(image_blocks, c.runs) * p->images;
    c.runs = up(p->a->batch, c.run);
    return c;
}

/* sums [out, rows of the block] (line apart) of one run. */
static int weight_run(const Plan *p, int64_t image, int64_t end, int64_t group, int64_t channel, int64_t channels, char *sums, int64_t line,
                      char *panel, char *side)
{
    GemmCall g = product_of(p);
    g.m = p->out, g.n = channels * p->taps, g.c = sums, g.c_row = line, g.c_col = 1;
    for (; image < end; image += p->images) {
        const int64_t count = least(p->images, end - image);
        if (count > 1) gather_y(p, image, count, group, side);
        for (int64_t first = 0; first < p->positions; first += p->columns, g.beta = 1) {
            const int64_t n = least(p->columns, p->positions - first);
            const bool direct = p->pointwise && count == 1;
            for (int64_t i = 0; i < count && !direct; i++)
                p->loops->unfold(p->a, x_of(p, image + i, group * p->in + channel), channels, first, n, at(p, panel, i * n), count * n);
            g.k = count * n;
            g.a = count == 1 ? at(p, y_of(p, image, group * p->out), first) : side, g.a_row = count == 1 ? p->positions : g.k, g.a_col = 1;
            g.b = direct ? at(p, x_of(p, image, group * p->in + channel), first) : panel;
            g.b_row = 1, g.b_col = direct ? p->positions : g.k;
            if (gemm_cpu(&g, 1)) return -1;
        }
    }
    return 0;
}

static int weight_pieces(const Plan *p, const Cut *cut, char *partial)
{
    const ConvArgs *a = p->a;
    const int64_t weights = a->out * p->rows;
    int failed = 0;
#pragma omp parallel for num_threads(threads_for(p)) schedule(static) reduction(|:failed)
    for (int64_t t = 0; t < cut->runs * a->groups * cut->blocks; t++) {
        const int64_t run = t / cut->blocks / a->groups, group = t / cut->blocks % a->groups, channel = t % cut->blocks * cut->channels;
        const int64_t channels = least(cut->channels, p->in - channel), image = run * cut->run;
        const size_t panel = (size_t)(channels * p->taps * p->columns * p->images) * p->size;
        const size_t side = (size_t)(p->out * p->positions * p->images) * p->size;
        char *sums = run == 0 ? weight_of(p, group) : at(p, partial, (run - 1) * weights + group * p->out * p->rows);
        char *room = tg_alloc(panel + side + 64);
        failed |= !room || weight_run(p, image, least(image + cut->run, a->batch), group, channel, channels,
                                      at(p, sums, channel * p->taps), p->rows, room, room + panel);
        if (room) tg_free(room, panel + side + 64);
    }
    return failed ? -1 : 0;
}

static int weight_by_products(const Plan *p)
{
    const Cut cut = cut_for(p);
    const int64_t weights = p->a->out * p->rows;
    const size_t bytes = (size_t)((cut.runs - 1) * weights) * p->size;
    char *partial = bytes ? tg_alloc(bytes) : NULL;
    if (bytes && !partial) return -1;
    int status = weight_pieces(p, &cut, partial);
    for (int64_t run = 1; run < cut.runs && !status; run++)
        p->loops->add(p->a->weight, at(p, partial, (run - 1) * weights), weights);
    if (partial) tg_free(partial, bytes);
    return status;
}

static int weight_planes(const Plan *p)
{
    const size_t bytes = (size_t)p->taps * sizeof(double);
    int failed = 0;
#pragma omp parallel for num_threads(threads_for(p)) schedule(static) reduction(|:failed)
    for (int64_t o = 0; o < p->a->out; o++) {
        double *sums = tg_calloc(bytes);
        failed |= !sums;
        if (!sums) continue;
        for (int64_t image = 0; image < p->a->batch; image++)
            p->loops->plane_grad_weight(p->a, x_of(p, image, o / p->out), sums, y_of(p, image, o));
        for (int64_t k = 0; k < p->taps; k++) {
            if (p->size == sizeof(float)) ((float *)p->a->weight)[o * p->taps + k] = (float)sums[k];
            else ((double *)p->a->weight)[o * p->taps + k] = sums[k];
        }
        tg_free(sums, bytes);
    }
    return failed ? -1 : 0;
}

static void bias_sums(const Plan *p)
{
    const ConvArgs *a = p->a;
#pragma omp parallel for num_threads(cpu_threads(a->batch * a->out * p->positions)) schedule(static)
    for (int64_t o = 0; o < a->out; o++) {
        double sum = 0;
        for (int64_t image = 0; image < a->batch; image++) sum += p->loops->sum(y_of(p, image, o), p->positions);
        if (p->size == sizeof(float)) ((float *)a->bias)[o] = (float)sum;
        else ((double *)a->bias)[o] = sum;
    }
}

int cpu_conv2d_grad_weight(ConvArgs *a)
{
    Plan p = plan_for(a, 0);
    if (a->bias) bias_sums(&p);
    if (a->out * p.rows == 0) return 0;
    if (a->batch == 0 || p.positions == 0) return p.loops->fill(a->weight, a->out * p.rows, NULL), 0;
    if (!p.depthwise) p = plan_for(a, cut_for(&p).channels * p.taps);
    return (p.depthwise ? weight_planes(&p) : weight_by_products(&p)) ? fail_memory("conv2d_grad_weight") : 0;
}
