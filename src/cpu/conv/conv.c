/* conv.c - convolution of one to three dimensions: unfolded a panel at a time, and multiplied by gemm.
 *
 *   y = weight panel       dx = fold(weight^T dy)       dweight = dy panel^T
 *
 * for each image and group, where the panel holds the patches of some positions, so small that it stays in
 * L2.  A 1 x 1 kernel of stride 1 needs no panel: its patches are x.  Images of few positions share a panel.
 * Groups of one channel (depthwise) have loops of their own.
 *
 * A kernel that covers the map, and a transposed one of a map of one pixel, is one product for all images.
 *
 * With stride 1 the panel is as narrow as gemm's own panels (a slab): each row is a few masked loads of x,
 * and gemm packs nothing. There dx is a convolution too, of dy with the window turned round: no fold.
 *
 * Threads take images (weight gradient: channels and runs of images); the pieces, and the order in which they
 * are added, follow from the sizes alone. */
#include "device/host.h"
#include "conv_kernel.h"
#include "cpu/product/gemm.h"
#include "direct.h"
#include "winograd.h"

enum { PANEL_BYTES = 1 << 18, FEW_POSITIONS = 128, MIN_COLUMNS = 64, WEIGHT_ROWS = 192, WEIGHT_PIECES = 8 };

typedef struct Plan {
    const ConvArgs *a;
    const ConvKernel *loops;
    size_t size;                   /* of an element */
    int64_t in, out;               /* channels of a group */
    int64_t taps, rows, positions; /* rows: in * taps, of a whole panel */
    int64_t images;                /* that share a panel */
    int64_t columns;               /* of a panel, for each of them */
    int64_t slab;                  /* columns of a slab; 0: panels are unfolded at full width */
    bool pointwise, depthwise;
} Plan;

static const ConvKernel *loops_for(int dtype) { return &ISA_PICK_AVX2(conv_kernel)[dtype == TENSOR_F64]; }

static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Does it pay to unfold by slabs, which gemm takes as they are?  Rows of y so short that many meet in a slab,
 * few channels, and weights whose rows fall on the same cache sets, so that gemm copies them, do not. */
static bool by_slabs(const ConvArgs *a, const Plan *p)
{
    enum { LEAST_COLUMNS = 10, LEAST_CHANNELS = 8, CROWDED = 2048 };
    return a->stride_h == 1 && a->stride_w == 1 && !p->pointwise && !p->depthwise && a->ow >= LEAST_COLUMNS &&
           p->images == 1 && p->in >= LEAST_CHANNELS && p->out >= LEAST_CHANNELS &&
           p->rows * (int64_t)p->size % CROWDED != 0;
}

static Plan plan_for(const ConvArgs *a, int64_t panel_rows)
{
    Plan p = { .a = a,
               .loops = loops_for(a->dtype),
               .size = dtype_size(a->dtype),
               .in = a->in / a->groups,
               .out = a->out / a->groups,
               .taps = a->kd * a->kh * a->kw,
               .positions = a->od * a->oh * a->ow,
               .images = 1 };
    p.rows = p.in * p.taps;
    p.pointwise = p.taps == 1 && a->stride_d == 1 && a->stride_h == 1 && a->stride_w == 1 && a->pad_d == 0 &&
                  a->pad_h == 0 && a->pad_w == 0 && a->d == a->od && a->h == a->oh && a->w == a->ow;
    p.depthwise = p.in == 1 && a->groups > 1;
    if (panel_rows == 0) panel_rows = p.rows;
    const int64_t fit = PANEL_BYTES / (int64_t)p.size / (panel_rows ? panel_rows : 1);
    p.columns = least(p.positions, fit > MIN_COLUMNS ? fit : MIN_COLUMNS);
    if (p.positions < FEW_POSITIONS && p.columns == p.positions && p.positions > 0)
        p.images = least(a->batch, up(FEW_POSITIONS, p.positions));
    if (p.images < 1) p.images = 1;
    return p;
}

static Plan forward_plan(const ConvArgs *a)
{
    Plan p = plan_for(a, 0);
    if (!by_slabs(a, &p)) return p;
    p.slab = SLAB_BYTES / (int64_t)p.size;
    p.columns = least(p.positions, up(p.columns, p.slab) * p.slab);
    return p;
}

static char *at(const Plan *p, const void *base, int64_t elements)
{
    return (char *)(uintptr_t)base + elements * (int64_t)p->size;
}

static int64_t pixels(const ConvArgs *a) { return a->d * a->h * a->w; }

static char *x_of(const Plan *p, int64_t image, int64_t channel)
{
    return at(p, p->a->x, (image * p->a->in + channel) * pixels(p->a));
}

static char *y_of(const Plan *p, int64_t image, int64_t channel)
{
    return at(p, p->a->y, (image * p->a->out + channel) * p->positions);
}

static char *weight_of(const Plan *p, int64_t group) { return at(p, p->a->weight, group * p->out * p->rows); }

static const void *bias_of(const Plan *p, int64_t channel)
{
    return p->a->bias ? at(p, p->a->bias, channel) : NULL;
}

int conv_threads(const ConvArgs *a)
{
    const double work = (double)a->batch * (double)a->out *
                        (double)(a->in / a->groups * a->kd * a->kh * a->kw) *
                        (double)(a->od * a->oh * a->ow) / 8;
    return cpu_threads(work > 1e15 ? (int64_t)1e15 : (int64_t)work);
}

static int threads_for(const Plan *p) { return conv_threads(p->a); }

/* What lies at the same positions of several images: y [out, positions] of each, and one matrix [out, images
 * * positions]. */
static void gather_y(const Plan *p, int64_t image, int64_t count, int64_t group, char *to)
{
    for (int64_t c = 0; c < p->out; c++)
        for (int64_t i = 0; i < count; i++)
            memcpy(at(p, to, (c * count + i) * p->positions), y_of(p, image + i, group * p->out + c),
                   (size_t)p->positions * p->size);
}

static void scatter_y(const Plan *p, int64_t image, int64_t count, int64_t group, const char *from)
{
    for (int64_t c = 0; c < p->out; c++)
        for (int64_t i = 0; i < count; i++)
            memcpy(y_of(p, image + i, group * p->out + c), at(p, from, (c * count + i) * p->positions),
                   (size_t)p->positions * p->size);
}

/* Does it pay to sum over blocks of channels? */
static bool by_blocks(const Plan *p, DirectPass pass) { return !p->pointwise && direct_takes(p->a, pass); }

static GemmCall product_of(const Plan *p)
{
    return (GemmCall){ .dtype = p->a->dtype == TENSOR_F64 ? GEMM_F64 : GEMM_F32, .batch = 1, .alpha = 1 };
}

/* ---- one product for all images, where the kernel covers the map ----------------------------------
 *
 *   y = x weight^T + bias       dx = y weight       dweight = y^T x        x [batch, rows], y [batch, out] */

static bool covers(const Plan *p)
{
    const ConvArgs *a = p->a;
    return p->positions == 1 && !p->depthwise && a->kd == a->d && a->kh == a->h && a->kw == a->w &&
           a->pad_d == 0 && a->pad_h == 0 && a->pad_w == 0;
}

typedef struct Matrix {
    char *data;
    int64_t row, col;
} Matrix;

static Matrix x_rows(const Plan *p, int64_t group)
{
    return (Matrix){ x_of(p, 0, group * p->in), p->a->in * p->taps, 1 };
}
static Matrix y_rows(const Plan *p, int64_t group)
{
    return (Matrix){ y_of(p, 0, group * p->out), p->a->out, 1 };
}
static Matrix weight_rows(const Plan *p, int64_t group)
{
    return (Matrix){ weight_of(p, group), p->rows, 1 };
}
static Matrix turned_round(Matrix m) { return (Matrix){ m.data, m.col, m.row }; }

static int whole_product(const Plan *p, Matrix c, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k,
                         double beta, const void *bias)
{
    GemmCall g = product_of(p);
    g.m = m, g.n = n, g.k = k, g.beta = beta, g.bias = bias, g.bias_per = GEMM_BIAS_ROW;
    g.a = a.data, g.a_row = a.row, g.a_col = a.col;
    g.b = b.data, g.b_row = b.row, g.b_col = b.col;
    g.c = c.data, g.c_row = c.row, g.c_col = c.col;
    return gemm_cpu(&g, threads_for(p));
}

static int whole_forward(const Plan *p)
{
    for (int64_t g = 0; g < p->a->groups; g++)
        if (whole_product(p, y_rows(p, g), x_rows(p, g), turned_round(weight_rows(p, g)), p->a->batch, p->out,
                          p->rows, 0, bias_of(p, g * p->out)))
            return -1;
    return 0;
}

/* A transposed convolution has a bias for each channel of x. */
static int whole_grad_input(const Plan *p)
{
    const ConvArgs *a = p->a;
    for (int64_t i = 0; i < a->batch * a->in && a->bias; i++)
        p->loops->fill(x_of(p, i / a->in, i % a->in), p->taps, bias_of(p, i % a->in));
    for (int64_t g = 0; g < a->groups; g++)
        if (whole_product(p, x_rows(p, g), y_rows(p, g), weight_rows(p, g), a->batch, p->rows, p->out,
                          a->bias ? 1 : 0, NULL))
            return -1;
    return 0;
}

static int whole_grad_weight(const Plan *p)
{
    for (int64_t g = 0; g < p->a->groups; g++)
        if (whole_product(p, weight_rows(p, g), turned_round(y_rows(p, g)), x_rows(p, g), p->out, p->rows,
                          p->a->batch, 0, NULL))
            return -1;
    return 0;
}

/* ---- forward --------------------------------------------------------------------------------- */

static int forward_piece(const Plan *p, int64_t image, int64_t count, int64_t group, int64_t first, int64_t n,
                         char *panel, char *side)
{
    const int64_t line = count * n;
    const bool direct = p->pointwise && count == 1;
    GemmCall g = product_of(p);
    for (int64_t i = 0; i < count && !direct; i++)
        p->loops->unfold(p->a, x_of(p, image + i, group * p->in), p->in, first, n, at(p, panel, i * n), line);
    g.m = p->out, g.n = line, g.k = p->rows;
    g.a = weight_of(p, group), g.a_row = p->rows, g.a_col = 1;
    g.b = direct ? at(p, x_of(p, image, group * p->in), first) : panel,
    g.b_row = direct ? p->positions : line, g.b_col = 1;
    g.c = count == 1 ? at(p, y_of(p, image, group * p->out), first) : side,
    g.c_row = count == 1 ? p->positions : line, g.c_col = 1;
    g.bias = bias_of(p, group * p->out), g.bias_per = GEMM_BIAS_COLUMN;
    if (gemm_cpu(&g, 1)) return -1;
    if (count > 1) scatter_y(p, image, count, group, side);
    return 0;
}

/* The same by slabs. */
static int forward_slabs(const Plan *p, int64_t image, int64_t group, int64_t first, int64_t n, char *slab)
{
    GemmCall g = product_of(p);
    g.m = p->out, g.k = p->rows;
    g.a = weight_of(p, group), g.a_row = p->rows, g.a_col = 1;
    g.b = slab, g.b_row = p->slab, g.b_col = 1;
    g.c_row = p->positions, g.c_col = 1;
    g.bias = bias_of(p, group * p->out), g.bias_per = GEMM_BIAS_COLUMN;
    for (const int64_t end = first + n; first < end; first += g.n) {
        g.n = least(p->slab, end - first);
        g.c = at(p, y_of(p, image, group * p->out), first);
        p->loops->slab(p->a, x_of(p, image, group * p->in), p->in, first, g.n, slab);
        if (gemm_cpu(&g, 1)) return -1;
    }
    return 0;
}

/* A plan, how it is cut, and whether memory ran out for any piece. */
typedef struct Work {
    const Plan *p;
    int64_t cuts;
    size_t panel, side;
    atomic_bool failed;
} Work;

/* A plane of y, and one of x that a layer of the window reads for it: where they begin.  false: it lies in
 * the padding. */
typedef struct Layer {
    int64_t x, weight, y;
} Layer;

static bool layer_of(const ConvArgs *a, int64_t t, Layer *l)
{
    const int64_t z = t / a->kd, q = t % a->kd, layer = z * a->stride_d + q * a->dilation_d - a->pad_d;
    *l = (Layer){ layer * a->h * a->w, q * a->kh * a->kw, z * a->oh * a->ow };
    return layer >= 0 && layer < a->d;
}

static void forward_plane(void *ctx, int64_t t)
{
    const Plan *p = ((Work *)ctx)->p;
    const int64_t image = t / p->a->out, o = t % p->a->out;
    char *x = x_of(p, image, o / p->out), *weight = at(p, p->a->weight, o * p->taps), *y = y_of(p, image, o);
    p->loops->fill(y, p->positions, bias_of(p, o));
    for (int64_t k = 0; k < p->a->od * p->a->kd; k++) {
        Layer l;
        if (layer_of(p->a, k, &l))
            p->loops->plane(p->a, at(p, x, l.x), at(p, weight, l.weight), at(p, y, l.y));
    }
}

static void forward_cut(void *ctx, int64_t t)
{
    Work *w = ctx;
    const Plan *p = w->p;
    const int64_t image = t / w->cuts / p->a->groups * p->images, group = t / w->cuts % p->a->groups,
                  first = t % w->cuts * p->columns;
    const int64_t count = least(p->images, p->a->batch - image), n = least(p->columns, p->positions - first);
    const size_t bytes = w->panel + (count > 1 ? w->side : 0) + 64;
    char *room = tg_alloc(bytes);
    if (!room) w->failed = true;
    else if (p->slab ? forward_slabs(p, image, group, first, n, room)
                     : forward_piece(p, image, count, group, first, n, room, room + w->panel))
        w->failed = true;
    tg_free(room, bytes);
}

static int forward(const ConvArgs *a)
{
    const Plan p = forward_plan(a);
    if (a->batch == 0 || a->out == 0 || p.positions == 0) return 0;
    if (covers(&p)) return whole_forward(&p);
    if (winograd_takes(a, DIRECT_FORWARD)) return winograd_forward(a, threads_for(&p));
    if (by_blocks(&p, DIRECT_FORWARD)) return direct_forward(a, threads_for(&p));
    Work w = { .p = &p,
               .cuts = up(p.positions, p.columns),
               .panel = (size_t)(p.rows * (p.slab ? p.slab : p.columns * p.images)) * p.size,
               .side = (size_t)(p.out * p.positions * p.images) * p.size };
    if (p.depthwise) parallel_for(a->batch * a->out, threads_for(&p), forward_plane, &w);
    else parallel_for(up(a->batch, p.images) * a->groups * w.cuts, threads_for(&p), forward_cut, &w);
    return w.failed ? -1 : 0;
}

int cpu_conv2d(ConvArgs *a)
{
    if (a->layout != LAYOUT_FIRST) return KERNEL_DECLINED;
    if (!dtype_is_float(a->dtype)) return conv_integers(a);
    if (a->dtype == TENSOR_BF16) return conv_bf16(a, DIRECT_FORWARD);
    return forward(a) ? fail_memory("conv2d") : 0;
}

/* ---- gradient of the input ------------------------------------------------------------------- */

static int input_piece(const Plan *p, int64_t image, int64_t count, int64_t group, int64_t first, int64_t n,
                       char *panel, char *side)
{
    const int64_t line = count * n;
    const bool direct = p->pointwise && count == 1;
    GemmCall g = product_of(p);
    if (count > 1) gather_y(p, image, count, group, side);
    g.m = p->rows, g.n = line, g.k = p->out;
    g.a = weight_of(p, group), g.a_row = 1, g.a_col = p->rows;
    g.b = count == 1 ? at(p, y_of(p, image, group * p->out), first) : side,
    g.b_row = count == 1 ? p->positions : line, g.b_col = 1;
    g.c = direct ? at(p, x_of(p, image, group * p->in), first) : panel,
    g.c_row = direct ? p->positions : line, g.c_col = 1;
    if (direct) g.bias = bias_of(p, group * p->in), g.bias_per = GEMM_BIAS_COLUMN;
    if (gemm_cpu(&g, 1)) return -1;
    for (int64_t i = 0; i < count && !direct; i++)
        p->loops->fold(p->a, x_of(p, image + i, group * p->in), p->in, first, n, at(p, panel, i * n), line);
    return 0;
}

/* Patches overlap, so one thread adds those of an image, from the first position to the last. */
static int input_images(const Plan *p, int64_t image, int64_t count, int64_t group)
{
    const size_t panel = (size_t)(p->rows * p->columns * count) * p->size,
                 side = (size_t)(p->out * p->positions * count) * p->size;
    char *room = tg_alloc(panel + side + 64);
    if (!room) return -1;
    int status = 0;
    for (int64_t i = 0; i < count * p->in; i++)
        p->loops->fill(x_of(p, image + i / p->in, group * p->in + i % p->in), pixels(p->a),
                       bias_of(p, group * p->in + i % p->in));
    for (int64_t first = 0; first < p->positions && !status; first += p->columns)
        status = input_piece(p, image, count, group, first, least(p->columns, p->positions - first), room,
                             room + panel);
    tg_free(room, panel + side + 64);
    return status;
}

static void input_plane(void *ctx, int64_t t)
{
    const Plan *p = ((Work *)ctx)->p;
    const int64_t image = t / p->a->in, c = t % p->a->in;
    char *x = x_of(p, image, c);
    p->loops->fill(x, pixels(p->a), bias_of(p, c));
    for (int64_t o = c * p->out; o < (c + 1) * p->out; o++)
        for (int64_t k = 0; k < p->a->od * p->a->kd; k++) {
            Layer l;
            if (layer_of(p->a, k, &l))
                p->loops->plane_grad_input(p->a, at(p, x, l.x), at(p, p->a->weight, o * p->taps + l.weight),
                                           at(p, y_of(p, image, o), l.y));
        }
}

static void input_block(void *ctx, int64_t t)
{
    Work *w = ctx;
    const Plan *p = w->p;
    const int64_t image = t / p->a->groups * p->images;
    if (input_images(p, image, least(p->images, p->a->batch - image), t % p->a->groups)) w->failed = true;
}

/* With stride 1 it is a convolution of y with the window turned round, padded by what the window reaches
 * beyond its first tap. */
static ConvArgs turned(const ConvArgs *a)
{
    ConvArgs t = *a;
    t.in = a->out, t.d = a->od, t.h = a->oh, t.w = a->ow, t.x = a->y;
    t.out = a->in, t.od = a->d, t.oh = a->h, t.ow = a->w, t.y = a->x;
    t.pad_d = a->dilation_d * (a->kd - 1) - a->pad_d;
    t.pad_h = a->dilation_h * (a->kh - 1) - a->pad_h;
    t.pad_w = a->dilation_w * (a->kw - 1) - a->pad_w;
    return t;
}

/* It pays by slabs; and where channels are many, so that a panel to be folded would not stay in L2.  It works
 * for every pixel of x, where the product and its fold work for every position of y: not for a window that
 * nearly covers the map, as that of a transposed convolution of a few pixels does. */
static bool by_turning(const Plan *p, const ConvArgs *t)
{
    enum { MANY_CHANNELS = 64 };
    const ConvArgs *a = p->a;
    return a->stride_d == 1 && a->stride_h == 1 && a->stride_w == 1 && t->pad_d >= 0 && t->pad_h >= 0 &&
           t->pad_w >= 0 && !p->pointwise && !p->depthwise && pixels(a) <= 2 * p->positions &&
           ((p->in >= MANY_CHANNELS && p->out >= MANY_CHANNELS) || forward_plan(t).slab > 0);
}

static int input_by_turning(const Plan *p, ConvArgs *t)
{
    const size_t bytes = (size_t)(p->a->out * p->rows) * p->size;
    if (!(t->weight = tg_alloc(bytes))) return -1;
    for (int64_t g = 0; g < p->a->groups; g++)
        p->loops->turn(weight_of(p, g), p->out, p->in, p->taps, at(p, t->weight, g * p->out * p->rows));
    const int status = forward(t);
    tg_free(t->weight, bytes);
    return status;
}

int cpu_conv2d_grad_input(ConvArgs *a)
{
    if (a->layout != LAYOUT_FIRST) return KERNEL_DECLINED;
    if (!dtype_is_float(a->dtype)) return conv_integers_grad_input(a);
    if (a->dtype == TENSOR_BF16) return conv_bf16(a, DIRECT_GRAD_INPUT);
    const Plan p = plan_for(a, 0);
    ConvArgs t = turned(a);
    if (a->batch == 0 || a->in * pixels(a) == 0) return 0;
    if (covers(&p)) return whole_grad_input(&p) ? fail_memory("conv2d_grad_input") : 0;
    if (winograd_takes(a, DIRECT_GRAD_INPUT))
        return winograd_grad_input(a, threads_for(&p)) ? fail_memory("conv2d_grad_input") : 0;
    if (by_blocks(&p, DIRECT_GRAD_INPUT))
        return direct_grad_input(a, threads_for(&p)) ? fail_memory("conv2d_grad_input") : 0;
    if (by_turning(&p, &t)) return input_by_turning(&p, &t) ? fail_memory("conv2d_grad_input") : 0;
    Work w = { .p = &p };
    if (p.depthwise) parallel_for(a->batch * a->in, threads_for(&p), input_plane, &w);
    else parallel_for(up(a->batch, p.images) * a->groups, threads_for(&p), input_block, &w);
    return w.failed ? fail_memory("conv2d_grad_input") : 0;
}

/* ---- gradient of the weight ------------------------------------------------------------------ */

/* How the weight gradient is cut: blocks of a group's input channels, and runs of image blocks whose sums are
 * added in order. */
typedef struct Cut {
    int64_t channels, blocks; /* in a block; blocks in a group */
    int64_t run, runs;        /* images in a run */
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
static int weight_run(const Plan *p, int64_t image, int64_t end, int64_t group, int64_t channel,
                      int64_t channels, char *sums, int64_t line, char *panel, char *side)
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
                p->loops->unfold(p->a, x_of(p, image + i, group * p->in + channel), channels, first, n,
                                 at(p, panel, i * n), count * n);
            g.k = count * n;
            g.a = count == 1 ? at(p, y_of(p, image, group * p->out), first) : side,
            g.a_row = count == 1 ? p->positions : g.k, g.a_col = 1;
            g.b = direct ? at(p, x_of(p, image, group * p->in + channel), first) : panel;
            g.b_row = 1, g.b_col = direct ? p->positions : g.k;
            if (gemm_cpu(&g, 1)) return -1;
        }
    }
    return 0;
}

typedef struct WeightWork {
    const Plan *p;
    const Cut *cut;
    char *partial;
    atomic_bool failed;
} WeightWork;

static void weight_piece(void *ctx, int64_t t)
{
    WeightWork *w = ctx;
    const Plan *p = w->p;
    const Cut *cut = w->cut;
    const int64_t run = t / cut->blocks / p->a->groups, group = t / cut->blocks % p->a->groups,
                  channel = t % cut->blocks * cut->channels;
    const int64_t channels = least(cut->channels, p->in - channel), image = run * cut->run;
    const size_t panel = (size_t)(channels * p->taps * p->columns * p->images) * p->size;
    const size_t side = (size_t)(p->out * p->positions * p->images) * p->size;
    char *sums = run == 0 ? weight_of(p, group)
                          : at(p, w->partial, (run - 1) * p->a->out * p->rows + group * p->out * p->rows);
    char *room = tg_alloc(panel + side + 64);
    if (!room || weight_run(p, image, least(image + cut->run, p->a->batch), group, channel, channels,
                            at(p, sums, channel * p->taps), p->rows, room, room + panel))
        w->failed = true;
    tg_free(room, panel + side + 64);
}

static int weight_by_products(const Plan *p)
{
    const Cut cut = cut_for(p);
    const int64_t weights = p->a->out * p->rows;
    const size_t bytes = (size_t)((cut.runs - 1) * weights) * p->size;
    char *partial = bytes ? tg_alloc(bytes) : NULL;
    if (bytes && !partial) return -1;
    WeightWork w = { .p = p, .cut = &cut, .partial = partial };
    parallel_for(cut.runs * p->a->groups * cut.blocks, threads_for(p), weight_piece, &w);
    for (int64_t run = 1; run < cut.runs && !w.failed; run++)
        p->loops->add(p->a->weight, at(p, partial, (run - 1) * weights), weights);
    tg_free(partial, bytes);
    return w.failed ? -1 : 0;
}

static void weight_plane(void *ctx, int64_t o)
{
    Work *w = ctx;
    const Plan *p = w->p;
    const size_t bytes = (size_t)p->taps * sizeof(double);
    double *sums = tg_calloc(bytes);
    if (!sums) {
        w->failed = true;
        return;
    }
    for (int64_t image = 0; image < p->a->batch; image++)
        for (int64_t k = 0; k < p->a->od * p->a->kd; k++) {
            Layer l;
            if (layer_of(p->a, k, &l))
                p->loops->plane_grad_weight(p->a, at(p, x_of(p, image, o / p->out), l.x), sums + l.weight,
                                            at(p, y_of(p, image, o), l.y));
        }
    for (int64_t k = 0; k < p->taps; k++) {
        if (p->size == sizeof(float)) ((float *)p->a->weight)[o * p->taps + k] = (float)sums[k];
        else ((double *)p->a->weight)[o * p->taps + k] = sums[k];
    }
    tg_free(sums, bytes);
}

static int weight_planes(const Plan *p)
{
    Work w = { .p = p };
    parallel_for(p->a->out, threads_for(p), weight_plane, &w);
    return w.failed ? -1 : 0;
}

static void bias_sum(void *ctx, int64_t o)
{
    const Plan *p = ((Work *)ctx)->p;
    double sum = 0;
    for (int64_t image = 0; image < p->a->batch; image++)
        sum += p->loops->sum(y_of(p, image, o), p->positions);
    if (p->size == sizeof(float)) ((float *)p->a->bias)[o] = (float)sum;
    else ((double *)p->a->bias)[o] = sum;
}

static void bias_sums(const Plan *p)
{
    Work w = { .p = p };
    parallel_for(p->a->out, cpu_threads(p->a->batch * p->a->out * p->positions), bias_sum, &w);
}

int cpu_conv2d_grad_weight(ConvArgs *a)
{
    if (a->layout != LAYOUT_FIRST) return KERNEL_DECLINED;
    if (a->dtype == TENSOR_BF16) return conv_bf16(a, DIRECT_GRAD_WEIGHT);
    Plan p = plan_for(a, 0);
    if (a->bias) bias_sums(&p);
    if (a->out * p.rows == 0) return 0;
    if (a->batch == 0 || p.positions == 0) return p.loops->fill(a->weight, a->out * p.rows, NULL), 0;
    if (covers(&p)) return whole_grad_weight(&p) ? fail_memory("conv2d_grad_weight") : 0;
    if (winograd_takes(a, DIRECT_GRAD_WEIGHT))
        return winograd_grad_weight(a, threads_for(&p)) ? fail_memory("conv2d_grad_weight") : 0;
    if (by_blocks(&p, DIRECT_GRAD_WEIGHT))
        return direct_grad_weight(a, threads_for(&p)) ? fail_memory("conv2d_grad_weight") : 0;
    if (!p.depthwise) p = plan_for(a, cut_for(&p).channels * p.taps);
    return (p.depthwise ? weight_planes(&p) : weight_by_products(&p)) ? fail_memory("conv2d_grad_weight") : 0;
}
