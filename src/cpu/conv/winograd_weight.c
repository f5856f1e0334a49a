/* winograd_weight.c - the gradient of a 3 x 3 kernel at stride 1 by Winograd's F(2 x 2, 3 x 3): the sums of
 * winograd.c, turned over.  direct_weight.c is its reference.
 *
 *   dw = G^T [sum over tiles (A dy A^T) (B^T x B)] G     of 2 x 2 pixels of dy, 4 x 4 of x
 *
 * The 16 points are 16 products [outputs, tiles] [tiles, inputs], by the kernel of the direct sum, with 16
 * multiplications where that needs 36.
 *
 * A tile's values reach all nine taps, with rounding errors of the size of their products, also those taps
 * that they should not: where these sum little else the error shows.  It averages out where many products
 * of like size are summed.  So channels are compared first: (sum |v|)^2 / sum v^2 is the number of equal
 * values with those sums; of x and of dy, n_x and n_y of n pixels, and n_x n_y / n of them should meet.  If
 * that is below LEAST_MET for some channels, or a value is not finite or very large, the direct sum computes
 * the call.  That keeps the error within twice the direct sum's (test_conv_blocks.c). */
#include <float.h>
#include <tapegrad/device.h>
#include "direct_plan.h"
#include "winograd.h"
#include "winograd_kernel.h"

enum {
    POINTS = 16,
    TILES = 256, /* of a chunk, about */
    CHAIN = 64, /* that are summed before they are added to the sums: of 256 products far from 0 the error was
                  * twice the direct sum's */
    CONVERTED_BYTES = 1 << 20,
    LEAST_MET = 16
};

static const WinogradKernel *kernel_here(void) { return ISA_PICK(winograd_kernel); }

/* ---- are there enough values of like size? ----------------------------------------------------- */

typedef struct Compare {
    const Direct *p;
    const float *x;
    int64_t channels, pixels;
    double *alike; /* of each channel; NaN: all are 0; 0: not finite, or near the end of the range */
} Compare;

static void compare_channel(void *ctx, int64_t channel)
{
    const Compare *c = ctx;
    const int64_t lanes = c->p->k->lanes, whole = c->pixels / lanes, rest = c->pixels % lanes;
    float sums[2 * 16] = { 0 }, last[16] = { 0 };
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < c->p->batch; i++) {
        const float *x = c->x + (i * c->channels + channel) * c->pixels;
        memcpy(last, x + whole * lanes, (size_t)rest * sizeof *x);
        kernel_here()->spread(x, lanes, whole, sums), kernel_here()->spread(last, lanes, 1, sums);
    }
    for (int64_t i = 0; i < lanes; i++) sum += (double)sums[i], squares += (double)sums[lanes + i];
    c->alike[channel] = squares < (double)FLT_MAX / 4096 ? sum * sum / squares : 0;
}

static double least_alike(const Direct *p, const void *x, int64_t channels, int64_t pixels, double *room,
                          int threads)
{
    double found = DBL_MAX;
    parallel_for(channels, threads, compare_channel, &(Compare){ p, x, channels, pixels, room });
    for (int64_t i = 0; i < channels; i++)
        if (room[i] < found) found = room[i];
    return found;
}

/* -1: no memory. */
static int enough_alike(const ConvArgs *a, const Direct *p, int threads)
{
    const size_t bytes = (size_t)(a->in > a->out ? a->in : a->out) * sizeof(double);
    double *room = tg_alloc(bytes);
    if (!room) return -1;
    const double of_x = least_alike(p, a->x, a->in, p->x_pixels, room, threads),
                 of_y = least_alike(p, a->y, a->out, p->y_pixels, room, threads);
    tg_free(room, bytes);
    return of_x * of_y >= LEAST_MET * (double)(a->batch * p->y_pixels);
}

/* ---- the sums ---------------------------------------------------------------------------------- */

typedef struct WeightSums {
    const Direct *p;
    const WinogradKernel *k;
    Blocked x, y;
    int64_t rows, columns;      /* of tiles in an image */
    int64_t first, end, tiles;  /* lines of tiles, of the images at hand */
    float *points_x, *points_y; /* [group][point][block][tile][lanes] */
    float *sums;                /* [group][point][pair][block][lanes][lanes of outputs] */
    float *weight;
    atomic_bool failed;
} WeightSums;

static int64_t y_blocks(const Direct *p) { return p->pairs * 2; }
static int64_t sum_of(const Direct *p) { return 2 * p->k->lanes * p->k->lanes; } /* floats */

/* One block of x or dy. */
static void transform(void *ctx, int64_t t)
{
    const WeightSums *w = ctx;
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes, all = w->x.blocks + w->y.blocks, group = t / all, block = t % all;
    const bool of_x = block < w->x.blocks;
    const Blocked *from = of_x ? &w->x : &w->y;
    const int64_t b = of_x ? block : block - w->x.blocks, blocks = of_x ? p->blocks : y_blocks(p),
                  line = (of_x ? p->line : 2 * w->columns) * lanes;
    float *to = (of_x ? w->points_x : w->points_y) + (group * POINTS * blocks + b) * w->tiles * lanes;
    for (int64_t l = w->first; l < w->end; l++, to += w->columns * lanes)
        (of_x ? w->k->input : w->k->gradient)(direct_block(from, w->x.first + l / w->rows, group, b) +
                                                  2 * (l % w->rows) * line,
                                              line, w->columns, to, blocks * w->tiles * lanes);
}

/* One point of one pair of blocks of outputs. */
static void add_products(void *ctx, int64_t t)
{
    const WeightSums *w = ctx;
    const Direct *p = w->p;
    const int64_t size = w->tiles * p->k->lanes, point = t / p->pairs, pair = t % p->pairs;
    DirectWalk walk = { .outer = 1, .middle = 1, .y_half = size, .halves = direct_halves(p, pair) };
    for (int64_t b = 0; b < p->blocks; b++) {
        walk.channels = (int)least(p->k->lanes, p->in - b * p->k->lanes);
        for (int64_t i = 0; i < w->tiles; i += CHAIN) {
            walk.n = least(CHAIN, w->tiles - i);
            p->k->sums.weight(&walk, w->points_x + (point * p->blocks + b) * size + i * p->k->lanes,
                              w->points_y + (point * y_blocks(p) + 2 * pair) * size + i * p->k->lanes,
                              w->sums + (t * p->blocks + b) * sum_of(p));
        }
    }
}

/* The taps of one pair of blocks of outputs and one block of inputs. */
static void deliver(void *ctx, int64_t t)
{
    WeightSums *w = ctx;
    const Direct *p = w->p;
    const int64_t b = t % p->blocks, pair = t / p->blocks % p->pairs, group = t / p->blocks / p->pairs,
                  each = direct_tap(p, direct_halves(p, pair));
    const size_t bytes = (size_t)(p->taps * each) * sizeof(float);
    float *packed = tg_alloc(bytes);
    if (!packed) {
        w->failed = true;
        return;
    }
    w->k->taps(w->sums + ((group * POINTS * p->pairs + pair) * p->blocks + b) * sum_of(p),
               p->pairs * p->blocks * sum_of(p), each / p->k->lanes, packed, each);
    direct_move_weights(p, group, pair, b, b + 1, packed, w->weight, false);
    tg_free(packed, bytes);
}

static int sum_images(WeightSums *w, int64_t at_once, int64_t lines, int threads)
{
    const Direct *p = w->p;
    for (w->x.first = 0; w->x.first < p->batch; w->x.first += at_once) {
        const int64_t images = least(at_once, p->batch - w->x.first), all = images * w->rows;
        w->y.first = w->x.first;
        parallel_for(images * p->groups * p->blocks, threads, direct_convert, &w->x);
        parallel_for(images * p->groups * w->y.blocks, threads, direct_convert, &w->y);
        for (w->first = 0; w->first < all; w->first = w->end) {
            w->end = least(all, w->first + lines), w->tiles = (w->end - w->first) * w->columns;
            parallel_for(p->groups * (w->x.blocks + w->y.blocks), threads, transform, w);
            parallel_for(p->groups * POINTS * p->pairs, threads, add_products, w);
        }
    }
    parallel_for(p->groups * p->pairs * p->blocks, threads, deliver, w);
    return w->failed ? -1 : 0;
}

/* Both in planes of as many lines and columns as the tiles read, zeros around them. */
static void lay_out(const ConvArgs *a, Direct *p, const WeightSums *w, int32_t *place_of_y)
{
    p->images = false, p->units = p->batch;
    p->line = 2 * w->columns + 2, p->plane = p->line * (2 * w->rows + 2);
    for (int64_t i = 0; i < p->x_pixels; i++)
        p->place[i] = (int32_t)((i / a->w + a->pad_h) * p->line + i % a->w + a->pad_w);
    for (int64_t i = 0; i < p->y_pixels; i++)
        place_of_y[i] = (int32_t)(i / a->ow * 2 * w->columns + i % a->ow);
}

static int run(const ConvArgs *a, Direct *p, int threads)
{
    WeightSums w = { .p = p, .k = kernel_here(), .rows = up(a->oh, 2), .columns = up(a->ow, 2) };
    const size_t table = (size_t)(p->x_pixels + p->y_pixels) * sizeof *p->place;
    size_t bytes = 0;
    int status = -1;
    if (!(p->place = tg_alloc(table))) return -1;
    lay_out(a, p, &w, p->place + p->x_pixels);
    w.x = direct_x(p), w.weight = a->weight;
    w.y = (Blocked){ .p = p,
                     .from = a->y,
                     .channels = p->out,
                     .blocks = up(p->out, p->k->lanes),
                     .pixels = p->y_pixels,
                     .plane = 4 * w.rows * w.columns,
                     .place = p->place + p->x_pixels };
    const int64_t of_x = (int64_t)direct_image_bytes(&w.x), of_y = (int64_t)direct_image_bytes(&w.y),
                  lines = most(1, TILES / w.columns),
                  at_once = direct_units_at_once(p, (size_t)(of_x + of_y),
                                                 most(CONVERTED_BYTES, up(lines, w.rows) * (of_x + of_y))),
                  tiles = least(lines, at_once * w.rows) * w.columns * POINTS * p->groups * p->k->lanes,
                  points = tiles * (p->blocks + y_blocks(p)),
                  sums = p->groups * POINTS * p->pairs * p->blocks * sum_of(p);
    bytes = (size_t)(at_once * (of_x + of_y)) + (size_t)(points + sums) * sizeof(float);
    if ((w.sums = tg_alloc(bytes))) {
        memset(w.sums, 0, (size_t)sums * sizeof(float));
        w.points_x = w.sums + sums, w.points_y = w.points_x + tiles * p->blocks;
        w.x.to = w.points_x + points, w.y.to = w.x.to + at_once * of_x / (int64_t)sizeof(float);
        status = sum_images(&w, at_once, lines, threads);
    }
    tg_free(w.sums, bytes), tg_free(p->place, table);
    return status;
}

int winograd_grad_weight(const ConvArgs *a, int threads)
{
    Direct p = direct_plan(a, DIRECT_GRAD_WEIGHT);
    const int enough = enough_alike(a, &p, threads);
    return enough < 0 ? -1 : enough ? run(a, &p, threads) : direct_grad_weight(a, threads);
}
