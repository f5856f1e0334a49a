/* winograd.c - convolution of a 3 x 3 window at stride 1, and the gradient of its input, by Winograd's
 * F(2 x 2, 3 x 3): 16 multiplications for 4 results where the direct sum needs 36.
 *
 *   Y = A^T [sum_c (G w G^T) (B^T x B)] A        of tiles of 4 x 4 pixels of x, 2 apart, and 2 x 2 of y
 *
 * The 16 points of a tile are 16 products over channels, by the kernels of direct convolution.  All its
 * coefficients are 0, 1 and 1/2, and an element of x reaches only results whose windows hold it, so its error
 * on ordinary data is that of the direct sum or less.  It is larger if a few values are much larger than all
 * others: a result that weights these little still gets their rounding errors.  So the direct sum computes
 * images (and, for weights, calls) for which fewer than LEAST_ALIKE equal values have the same sum and sum of
 * squares: that keeps the error within twice the direct sum's (test_conv_blocks.c).  It also computes images
 * with a result that is not finite, since infinities would cancel to NaN, and large numbers overflow. */
#include <stdlib.h>
#include <tapegrad/device.h>
#include "direct_plan.h"
#include "winograd.h"
#include "winograd_kernel.h"

enum { POINTS = 16, CHUNK_BYTES = 1 << 20, LEAST_TILES = 112, MOST_TILES = 256, L2_BYTES = 1 << 19 };
enum { LEAST_ALIKE = 4, SEGMENT = 16 /* pixels of a line, at most, whose values are compared */ };

static atomic_int switched = -1; /* by tensor_set_winograd; -1: not yet */

bool tensor_winograd(void)
{
    int on = atomic_load_explicit(&switched, memory_order_relaxed);
    if (on < 0) {
        const char *said = getenv("TAPEGRAD_WINOGRAD");
        atomic_compare_exchange_strong(&switched, &on, !said || strcmp(said, "0") != 0);
        on = atomic_load(&switched);
    }
    return on;
}

bool tensor_set_winograd(bool on)
{
    const bool was = tensor_winograd();
    atomic_store(&switched, on);
    return was;
}

static const WinogradKernel *kernel_here(void) { return ISA_PICK(winograd_kernel); }

typedef struct Winograd {
    const Direct *p;
    const WinogradKernel *k;
    Blocked x;
    int64_t rows, columns, lines; /* of tiles in an image; lines of tiles in a chunk */
    int64_t units;                /* images at hand */
    float *weights;               /* [group][point][pair][input][lanes of outputs] */
    float *sizes;                 /* [group][pair][block of inputs][half][|w|, w^2][lanes of outputs] */
    atomic_bool *spoiled;         /* images that are for the direct sum */
    atomic_bool failed;
} Winograd;

/* Floats of one point: of the weights of a pair, of x and of y of so many tiles. */
static int64_t weight_point(const Direct *p) { return p->blocks * p->k->lanes * 2 * p->k->lanes; }
static int64_t x_point(const Direct *p, int64_t tiles) { return p->blocks * tiles * p->k->lanes; }
static int64_t y_point(const Direct *p, int64_t tiles) { return p->pairs * 2 * tiles * p->k->lanes; }

static int last_channels(const Direct *p) { return (int)(p->in - (p->blocks - 1) * p->k->lanes); }

/* One block of inputs of one pair: packed as for the direct sum, then transformed. */
static void transform_weights(void *ctx, int64_t t)
{
    Winograd *w = ctx;
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes, block = t % p->blocks, q = t / p->blocks, group = q / p->pairs,
                  pair = q % p->pairs, width = direct_halves(p, pair) * lanes;
    const size_t bytes = (size_t)(p->taps * direct_tap(p, 2)) * sizeof(float);
    float *packed = tg_alloc(bytes);
    if (!packed) {
        w->failed = true;
        return;
    }
    direct_move_weights(p, group, pair, block, block + 1, packed, NULL, false);
    w->k->weights(packed, lanes * width, (block == p->blocks - 1 ? last_channels(p) : lanes) * width / lanes,
                  p->link[0].turned,
                  w->weights + (group * POINTS * p->pairs + pair) * weight_point(p) + block * lanes * width,
                  p->pairs * weight_point(p));
    for (int64_t i = 0; i < p->taps * width / lanes; i++)
        w->k->spread(packed + i % p->taps * lanes * width + i / p->taps * lanes, width,
                     least(lanes, p->in - block * lanes), w->sizes + (t * 2 + i / p->taps) * 2 * lanes);
    tg_free(packed, bytes);
}

/* Are there enough values of like size among those of a sum and a sum of squares?  Not if one is a NaN. */
static bool alike(double sum, double squares) { return sum * sum >= LEAST_ALIKE * squares; }

/* The weights of each output. */
static bool weights_alike(const Winograd *w)
{
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes;
    for (int64_t i = 0; i < p->groups * p->pairs * 2 * lanes; i++) {
        const float *at =
            w->sizes + i / (2 * lanes) * p->blocks * 4 * lanes + i / lanes % 2 * 2 * lanes + i % lanes;
        float sum = 0, squares = 0;
        for (int64_t b = 0; b < p->blocks; b++)
            sum += at[b * 4 * lanes], squares += at[b * 4 * lanes + lanes];
        if (!alike(sum, squares)) return false;
    }
    return true;
}

static bool segment_alike(const Winograd *w, int64_t image, int64_t group, int64_t place, int64_t n)
{
    const Direct *p = w->p;
    const int lanes = p->k->lanes;
    float sums[2 * 16] = { 0 }, sum = 0, squares = 0;
    for (int64_t b = 0; b < p->blocks; b++)
        w->k->spread(direct_block(&w->x, image, group, b) + place * lanes, lanes, n, sums);
    for (int i = 0; i < lanes; i++) sum += sums[i], squares += sums[lanes + i];
    return alike(sum, squares);
}

static void compare_image(void *ctx, int64_t t)
{
    Winograd *w = ctx;
    const Direct *p = w->p;
    const int64_t image = w->x.first + t / p->groups;
    const int64_t wide = p->link[2].in, pieces = up(wide, SEGMENT);
    for (int64_t i = 0; i < p->link[1].in * pieces && !w->spoiled[image]; i++) {
        const int64_t from = i % pieces * wide / pieces, to = (i % pieces + 1) * wide / pieces;
        if (!segment_alike(w, image, t % p->groups, p->place[i / pieces * wide + from], to - from))
            w->spoiled[image] = true;
    }
}

/* Lines of tiles [first, end) of the images at hand, `tiles` in all, of one group. */
typedef struct Chunk {
    int64_t group, first, end, tiles;
    float *x, *y, *side; /* points of x and of y; lines of y of one block */
} Chunk;

static void points_of_x(const Winograd *w, const Chunk *c)
{
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes;
    for (int64_t b = 0; b < p->blocks; b++)
        for (int64_t l = c->first; l < c->end; l++)
            w->k->input(direct_block(&w->x, w->x.first + l / w->rows, c->group, b) +
                            2 * (l % w->rows) * p->line * lanes,
                        p->line * lanes, w->columns,
                        c->x + (b * c->tiles + (l - c->first) * w->columns) * lanes, x_point(p, c->tiles));
}

static void products(const Winograd *w, const Chunk *c)
{
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes;
    const DirectTap here = { 0, 0 };
    DirectSum sum = { .tap = &here, .taps = 1, .blocks = p->blocks, .last = last_channels(p) };
    sum.x_block = c->tiles * lanes;
    for (int64_t q = 0; q < POINTS; q++)
        for (int64_t pair = 0; pair < p->pairs; pair++) {
            sum.halves = direct_halves(p, pair), sum.w_block = lanes * sum.halves * lanes;
            p->k->sums.run(&sum, c->tiles, c->x + q * x_point(p, c->tiles),
                           w->weights + ((c->group * POINTS + q) * p->pairs + pair) * weight_point(p),
                           c->y + q * y_point(p, c->tiles) + pair * 2 * c->tiles * lanes, lanes,
                           c->tiles * lanes);
        }
}

/* Lines of tiles [first, end) of one image, one block of outputs. */
static void deliver(Winograd *w, const Chunk *c, int64_t first, int64_t end, int64_t block)
{
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes, wide = p->link[2].out, high = p->link[1].out,
                  row = first % w->rows * 2;
    const int64_t image = w->x.first + first / w->rows, channel = c->group * p->out + block * lanes;
    int64_t rows = 0;
    for (int64_t l = first; l < end; l++) {
        const int64_t here = least(2, high - row - rows);
        if (!w->k->output(c->y + (block * c->tiles + (l - c->first) * w->columns) * lanes,
                          y_point(p, c->tiles), w->columns, c->side + rows * wide * lanes, wide, here))
            w->spoiled[image] = true;
        rows += here;
    }
    direct_deliver(p, c->side, lanes, rows * wide, (int)least(lanes, p->out - block * lanes), image, channel,
                   row * wide);
}

static void chunk_piece(void *ctx, int64_t t)
{
    Winograd *w = ctx;
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes, chunk = t / p->groups, all = w->units * w->rows;
    Chunk c = { .group = t % p->groups,
                .first = chunk * w->lines,
                .end = least(all, (chunk + 1) * w->lines) };
    c.tiles = (c.end - c.first) * w->columns;
    bool any = false;
    for (int64_t l = c.first; l < c.end; l++) any = any || !w->spoiled[w->x.first + l / w->rows];
    if (!any) return;
    const int64_t x = POINTS * x_point(p, c.tiles), y = POINTS * y_point(p, c.tiles);
    const size_t bytes = (size_t)(x + y + w->lines * 2 * p->link[2].out * lanes) * sizeof(float);
    if (!(c.x = tg_alloc(bytes))) {
        w->failed = true;
        return;
    }
    c.y = c.x + x, c.side = c.y + y;
    points_of_x(w, &c);
    products(w, &c);
    for (int64_t l = c.first, end; l < c.end; l = end) {
        end = least(c.end, (l / w->rows + 1) * w->rows);
        for (int64_t b = 0; b < up(p->out, lanes); b++) deliver(w, &c, l, end, b);
    }
    tg_free(c.x, bytes);
}

/* Images whose results are not all finite, again: one run after the other. */
static int repair(const Winograd *w, const ConvArgs *a, int threads)
{
    int status = 0;
    for (int64_t i = 0, end; i < a->batch && !status; i = end) {
        for (end = i; end < a->batch && w->spoiled[end];) end++;
        ConvArgs part = *a;
        part.batch = end - i;
        part.x = (float *)a->x + i * a->in * a->h * a->w, part.y = (float *)a->y + i * a->out * a->oh * a->ow;
        if (part.batch == 0) end++;
        else
            status =
                w->p->link[0].turned ? direct_grad_input(&part, threads) : direct_forward(&part, threads);
    }
    return status;
}

static int all_chunks(Winograd *w, const ConvArgs *a, int64_t at_once, int threads)
{
    const Direct *p = w->p;
    parallel_for(p->groups * p->pairs * p->blocks, threads, transform_weights, w);
    const bool direct = !w->failed && !weights_alike(w);
    for (int64_t i = 0; i < p->batch && direct; i++) w->spoiled[i] = true;
    if (direct) return repair(w, a, threads);
    for (w->x.first = 0; w->x.first < p->batch && !w->failed; w->x.first += w->units) {
        w->units = least(at_once, p->batch - w->x.first);
        parallel_for(w->units * p->groups * p->blocks, threads, direct_convert, &w->x);
        parallel_for(w->units * p->groups, threads, compare_image, w);
        parallel_for(up(w->units * w->rows, w->lines) * p->groups, threads, chunk_piece, w);
    }
    return w->failed ? -1 : repair(w, a, threads);
}

/* x in planes of as many lines and columns as the tiles read, zeros around it. */
static void lay_out(Direct *p, const Winograd *w, int64_t pad_h, int64_t pad_w)
{
    p->images = false, p->units = p->batch;
    p->line = 2 * w->columns + 2, p->plane = p->line * (2 * w->rows + 2);
    for (int64_t i = 0; i < p->x_pixels; i++)
        p->place[i] = (int32_t)((i / p->link[2].in + pad_h) * p->line + i % p->link[2].in + pad_w);
}

static int convolve(const ConvArgs *a, bool turned, int threads)
{
    Direct p = direct_plan(a, turned ? DIRECT_GRAD_INPUT : DIRECT_FORWARD);
    Winograd w = {
        .p = &p, .k = kernel_here(), .rows = up(p.link[1].out, 2), .columns = up(p.link[2].out, 2)
    };
    const int64_t tiles = CHUNK_BYTES / (POINTS * (int64_t)sizeof(float) * (p.in + p.out));
    w.lines = most(1, least(MOST_TILES, most(LEAST_TILES, tiles)) / w.columns);
    const size_t table = (size_t)p.x_pixels * sizeof *p.place, flags = (size_t)p.batch * sizeof *w.spoiled,
                 weights = (size_t)(p.groups * POINTS * p.pairs * weight_point(&p)) * sizeof(float),
                 sizes = (size_t)(p.groups * p.pairs * p.blocks * 4 * p.k->lanes) * sizeof(float);
    size_t bytes = 0;
    int status = -1;
    p.place = tg_alloc(table), w.spoiled = tg_calloc(flags), w.weights = tg_alloc(weights);
    w.sizes = tg_calloc(sizes);
    if (p.place && w.spoiled && w.weights && w.sizes) {
        lay_out(&p, &w, turned ? 2 - a->pad_h : a->pad_h, turned ? 2 - a->pad_w : a->pad_w);
        w.x = direct_x(&p);
        const int64_t l2 = threads == 1 ? L2_BYTES : 4 * L2_BYTES * threads,
                      least_images = up(2 * w.lines, w.rows) * (int64_t)direct_image_bytes(&w.x);
        const int64_t at_once = direct_units_at_once(&p, direct_image_bytes(&w.x), most(l2, least_images));
        bytes = direct_image_bytes(&w.x) * (size_t)at_once;
        if ((w.x.to = tg_alloc(bytes))) status = all_chunks(&w, a, at_once, threads);
    }
    tg_free(w.x.to, bytes);
    tg_free(w.sizes, sizes), tg_free(w.weights, weights), tg_free(w.spoiled, flags), tg_free(p.place, table);
    return status;
}

int winograd_forward(const ConvArgs *a, int threads) { return convolve(a, false, threads); }
int winograd_grad_input(const ConvArgs *a, int threads) { return convolve(a, true, threads); }

/* It takes enough channels to pay for the transforms, enough tiles for those of the weights, and maps of
 * which padding and half tiles are no large part. */
bool winograd_takes(const ConvArgs *a, DirectPass pass)
{
    enum { LEAST_CHANNELS = 32, LEAST_ALL_TILES = 96 };
    const bool turned = pass == DIRECT_GRAD_INPUT;
    const int64_t least_size = pass == DIRECT_GRAD_WEIGHT ? 4 : 6;
    const int64_t high = turned ? a->h : a->oh, wide = turned ? a->w : a->ow;
    return kernel_here()->input && direct_takes(a, pass) && tensor_winograd() && a->kd == 1 && a->kh == 3 &&
           a->kw == 3 && a->d == 1 && a->od == 1 && a->pad_d == 0 && a->stride_h == 1 && a->stride_w == 1 &&
           a->dilation_h == 1 && a->dilation_w == 1 && a->pad_h <= 2 && a->pad_w <= 2 &&
           a->in / a->groups >= LEAST_CHANNELS && a->out / a->groups >= LEAST_CHANNELS &&
           high >= least_size && wide >= least_size &&
           a->batch * up(high, 2) * up(wide, 2) >= LEAST_ALL_TILES;
}
