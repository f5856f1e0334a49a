/* direct_weight.c - the gradient of a convolution's weight as sums over pixels: each call converts x and dy,
 * some images at a time, to the layouts of direct_kernel.h.
 *
 *   dw[o, c, t] = sum_i dy[o, i] x[c, j(i, t)]
 *
 * Pieces for threads are pairs of blocks of outputs times a block of inputs; each sums over all pixels in an
 * order that follows from the shape. */
#include "direct_plan.h"

enum {
    AT_ONCE_BYTES = 4 << 20, /* of converted operands */
    SUM_PIXELS = 256         /* that a tile sums before the next one does */
};

typedef struct WeightWork {
    const Direct *p;
    Blocked x, y;
    int64_t units;
    float *weight;
    atomic_bool failed;
} WeightWork;

typedef struct WeightPiece {
    const WeightWork *w;
    int64_t group, pair, block;
    DirectWalk walk;
    float *sums;
} WeightPiece;

/* The elements of y in [from, to) that read inside of x through tap t, and where the first one does. */
static int64_t inside(const Link *l, int64_t t, int64_t *from, int64_t *to)
{
    int64_t j = 0, last;
    while (*from < *to && !reads(l, *from, t, &j)) ++*from;
    while (*from < *to && !reads(l, *to - 1, t, &last)) --*to;
    return j;
}

/* One layer of y, one of x, rows [row, row + rows): the taps of a layer of the window. */
static void sum_taps(WeightPiece *c, int64_t layer, int64_t row, int64_t rows, const float *x, const float *y,
                     int64_t images, float *sums)
{
    const Direct *p = c->w->p;
    const Link *h = &p->link[1], *l = &p->link[2];
    const int64_t lanes = p->k->lanes, each = direct_tap(p, c->walk.halves), m = p->images ? images : 1;
    DirectWalk *k = &c->walk;
    for (int64_t t = 0; t < h->taps * l->taps; t++) {
        int64_t from = row, to = row + rows, left = 0, right = l->out;
        int64_t place = (layer * h->in + inside(h, t / l->taps, &from, &to)) * p->line;
        if (p->images) {
            place += inside(l, t % l->taps, &left, &right);
            k->outer = to - from, k->middle = right - left, k->n = m;
            k->x_outer = h->stride * p->line * m * lanes, k->x_middle = l->stride * m * lanes;
            k->y_outer = l->out * m * lanes, k->y_middle = m * lanes;
        } else {
            place += p->column[t % l->taps];
            k->outer = images, k->middle = to - from, k->n = l->out;
            k->x_middle = h->stride * p->line * lanes, k->y_middle = l->out * lanes;
        }
        const float *at = x + place * m * lanes, *by = y + (from * l->out + left) * m * lanes;
        if (p->depthwise) p->k->each_weight(k, at, by, sums + t * each);
        else p->sums.weight(k, at, by, sums + t * each);
    }
}

/* `images` images from a unit on (of one unit, or of one image each). */
static void sum_images(WeightPiece *c, int64_t unit, int64_t images, int64_t row, int64_t rows)
{
    const WeightWork *w = c->w;
    const Direct *p = w->p;
    const Link *z = &p->link[0];
    const int64_t lanes = p->k->lanes, m = p->images ? images : 1, window = p->taps / z->taps;
    const float *x = direct_block(&w->x, unit, c->group, c->block),
                *y = direct_block(&w->y, unit, c->group, p->pair * c->pair);
    c->walk.y_half = m * w->y.plane * lanes;
    c->walk.x_outer = p->groups * w->x.blocks * w->x.plane * lanes;
    c->walk.y_outer = p->groups * w->y.blocks * w->y.plane * lanes;
    for (int64_t i = 0, layer; i < z->out; i++)
        for (int64_t t = 0; t < z->taps; t++)
            if (reads(z, i, t, &layer))
                sum_taps(c, layer, row, rows, x, y + i * p->link[1].out * p->link[2].out * m * lanes, images,
                         c->sums + t * window * direct_tap(p, c->walk.halves));
}

static void weight_piece(void *ctx, int64_t t)
{
    WeightWork *w = ctx;
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes, each = p->depthwise ? 1 : p->blocks, pair = t / each,
                  rows = p->link[1].out;
    const size_t bytes = (size_t)(p->taps * direct_tap(p, p->pair)) * sizeof(float);
    WeightPiece c = { .w = w, .group = pair / p->pairs, .pair = pair % p->pairs };
    c.block = p->depthwise ? c.pair : t % each;
    if (!(c.sums = tg_calloc(bytes))) {
        w->failed = true;
        return;
    }
    c.walk.halves = direct_halves(p, c.pair), c.walk.channels = (int)least(lanes, p->in - c.block * lanes);
    const int64_t area = rows * p->link[2].out, step = p->images ? 1 : most(1, SUM_PIXELS / most(area, 1));
    const int64_t lines = p->images || area <= SUM_PIXELS ? rows : most(1, SUM_PIXELS / p->link[2].out);
    for (int64_t u = 0; u < w->units; u += step)
        for (int64_t r = 0; r < rows; r += lines)
            sum_images(&c, w->x.first + u,
                       p->images ? unit_images(p, w->x.first + u) : least(step, w->units - u), r,
                       least(lines, rows - r));
    direct_move_weights(p, c.group, c.pair, c.block, c.block + 1, c.sums, w->weight, w->x.first > 0);
    tg_free(c.sums, bytes);
}

static int weight_sums(WeightWork *w, int threads)
{
    const Direct *p = w->p;
    const int64_t at_once =
        direct_units_at_once(p, direct_image_bytes(&w->x) + direct_image_bytes(&w->y), AT_ONCE_BYTES);
    for (w->x.first = 0; w->x.first < p->units && !w->failed; w->x.first += w->units) {
        w->y.first = w->x.first, w->units = least(at_once, p->units - w->x.first);
        parallel_for(w->units * p->groups * p->blocks, threads, direct_convert, &w->x);
        parallel_for(w->units * p->groups * w->y.blocks, threads, direct_convert, &w->y);
        parallel_for(p->groups * p->pairs * (p->depthwise ? 1 : p->blocks), threads, weight_piece, w);
    }
    return w->failed ? -1 : 0;
}

int direct_grad_weight(const ConvArgs *a, int threads)
{
    Direct p = direct_plan(a, DIRECT_GRAD_WEIGHT);
    if (direct_open(&p)) return -1;
    WeightWork w = { .p = &p, .x = direct_x(&p), .weight = a->weight };
    w.y = (Blocked){ .p = &p,
                     .from = a->y,
                     .channels = p.out,
                     .blocks = up(p.out, p.k->lanes),
                     .pixels = p.y_pixels,
                     .plane = p.y_pixels };
    const size_t each = direct_image_bytes(&w.x) + direct_image_bytes(&w.y),
                 bytes = direct_bytes_at_once(&p, each, AT_ONCE_BYTES);
    char *room = tg_alloc(bytes);
    int status = -1;
    if (room) {
        w.x.to = (float *)(void *)room;
        w.y.to = (float *)(void *)(room + direct_bytes_at_once(&p, each, AT_ONCE_BYTES) / each *
                                              direct_image_bytes(&w.x));
        status = weight_sums(&w, threads);
    }
    tg_free(room, bytes);
    direct_close(&p);
    return status;
}
