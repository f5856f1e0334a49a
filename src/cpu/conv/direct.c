/* direct.c - convolution and the gradient of its input as sums over blocks of channels: each call converts
 * its operands, a few images at a time, to the layouts of direct_kernel.h, and its result back.
 *
 * One loop over the pixels of y serves both, with the taps that reach x from there, and only those.  Pieces
 * for threads are runs of pixels times one or two blocks of outputs.  Each element is summed in one order,
 * which follows from the shape. */
#include "direct_plan.h"

enum {
    PAIRS_BYTES = 3 << 19, /* of x in all: as many meet all weights, pair by pair */
    L2_BYTES = 1 << 19,    /* of x at a time, where all weights come to it */
    CHUNK_PIXELS = 1024    /* of a result that is converted back while in L2 */
};

typedef struct Work {
    const Direct *p;
    Blocked x;
    float *packed; /* of all pairs; NULL: each piece packs its own */
    int64_t units, rows, chunks,
        parts;       /* units at hand, rows of a chunk, chunks of a unit, pieces of a pair */
    int64_t at_once; /* bytes of converted operands */
    bool by_pairs;   /* a pair for all chunks, or a chunk for all pairs */
    atomic_bool failed;
} Work;

static void pack_pair(void *ctx, int64_t t)
{
    const Work *w = ctx;
    direct_move_weights(w->p, t / w->p->pairs, t % w->p->pairs, 0, w->p->blocks,
                        w->packed + t * direct_slice(w->p), NULL, false);
}

/* What a piece works on. */
typedef struct Piece {
    const Work *w;
    int64_t group, pair, unit, images;
    const float *weight;
    float *side; /* y of a chunk: [half][pixel][image][lanes] */
    int64_t half;
    DirectTap *tap, *row; /* of a pixel; of a row: those of its first column */
    DirectSum sum;
} Piece;

/* Row `row` of y: which rows of x it reads.  Returns how many. */
static int64_t rows_read(const Direct *p, int64_t row, DirectTap *to)
{
    const Link *z = &p->link[0], *y = &p->link[1];
    int64_t n = 0, layer, line;
    for (int64_t t = 0; t < z->taps; t++)
        for (int64_t r = 0; r < y->taps && reads(z, row / y->out, t, &layer); r++)
            if (reads(y, row % y->out, r, &line))
                to[n++] =
                    (DirectTap){ (layer * y->in + line) * p->line, (t * y->taps + r) * p->link[2].taps };
    return n;
}

static void add_tap(Piece *c, const DirectTap *row, int64_t column, int64_t t)
{
    const Direct *p = c->w->p;
    c->tap[c->sum.taps++] = (DirectTap){ (row->x + column) * c->images * p->k->lanes,
                                         (row->w + t) * direct_tap(p, c->sum.halves) };
}

static void run(const Piece *c, int64_t n, const float *x, float *y, int64_t y_step)
{
    const Direct *p = c->w->p;
    if (p->depthwise) p->k->each(&c->sum, n, x, c->weight, y, y_step);
    else p->sums.run(&c->sum, n, x, c->weight, y, y_step, c->half);
}

static void row_of_columns(Piece *c, int64_t rows, const float *x, float *y)
{
    const Direct *p = c->w->p;
    const Link *l = &p->link[2];
    for (int64_t a = 0; a < p->phases; a++) {
        c->sum.taps = 0;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t t = 0; t < l->taps; t++)
                if (p->column[a * l->taps + t] >= 0) add_tap(c, &c->row[r], p->column[a * l->taps + t], t);
        run(c, up(l->out - a, p->phases), x, y + a * p->k->lanes, p->phases * p->k->lanes);
    }
}

static void row_of_images(Piece *c, int64_t rows, const float *x, float *y)
{
    const Direct *p = c->w->p;
    const Link *l = &p->link[2];
    for (int64_t i = 0, j; i < l->out; i++, y += c->images * p->k->lanes) {
        c->sum.taps = 0;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t t = 0; t < l->taps; t++)
                if (reads(l, i, t, &j)) add_tap(c, &c->row[r], j, t);
        run(c, c->images, x, y, p->k->lanes);
    }
}

static void deliver(const Piece *c, int64_t row, int64_t rows)
{
    const Direct *p = c->w->p;
    const int64_t lanes = p->k->lanes, wide = p->link[2].out;
    for (int64_t i = 0; i < c->images; i++)
        for (int64_t h = 0; h < c->sum.halves; h++) {
            const int64_t o = (c->pair * p->pair + h) * lanes, channel = c->group * p->out + o,
                          image = unit_start(p, c->unit) + i;
            direct_deliver(p, c->side + h * c->half + i * lanes, c->images * lanes, rows * wide,
                           (int)least(lanes, p->out - o), image, channel, row * wide);
        }
}

static void chunk(Piece *c, int64_t row, int64_t rows)
{
    const Direct *p = c->w->p;
    const float *x = direct_block(&c->w->x, c->unit, c->group, p->depthwise ? c->pair : 0);
    const int64_t line = p->link[2].out * c->images * p->k->lanes;
    c->half = rows * line;
    c->sum.x_block = c->images * p->plane * p->k->lanes;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t n = rows_read(p, row + r, c->row);
        (p->images ? row_of_images : row_of_columns)(c, n, x, c->side + r * line);
    }
    deliver(c, row, rows);
}

static int64_t y_rows(const Direct *p) { return p->link[0].out * p->link[1].out; }

/* Chunks [first, end) of pairs [pair, last). */
static void work_on(Piece *c, int64_t first, int64_t end, int64_t pair, int64_t last, float *own)
{
    const Work *w = c->w;
    const Direct *p = w->p;
    for (int64_t i = first; i < end; i++)
        for (int64_t q = pair; q < last; q++) {
            const int64_t row = i % w->chunks * w->rows;
            c->unit = w->x.first + i / w->chunks, c->images = unit_images(p, c->unit);
            c->group = q / p->pairs, c->pair = q % p->pairs;
            c->sum.halves = direct_halves(p, c->pair);
            c->sum.w_block = p->taps * direct_tap(p, c->sum.halves);
            c->weight = w->packed ? w->packed + q * direct_slice(p) : own;
            if (!w->packed && i == first)
                direct_move_weights(p, c->group, c->pair, 0, p->blocks, own, NULL, false);
            chunk(c, row, least(w->rows, y_rows(p) - row));
        }
}

static void forward_piece(void *ctx, int64_t t)
{
    Work *w = ctx;
    const Direct *p = w->p;
    const int64_t lanes = p->k->lanes, part = t % w->parts, all = w->units * w->chunks;
    const int64_t side = w->rows * p->link[2].out * up(p->batch, p->units) * 2 * lanes,
                  slice = w->packed ? 0 : direct_slice(p);
    const size_t bytes = (size_t)(side + slice) * sizeof(float) + (size_t)(2 * p->taps) * sizeof(DirectTap);
    char *room = tg_alloc(bytes);
    if (!room) {
        w->failed = true;
        return;
    }
    float *own = (float *)(void *)room + side;
    DirectTap *tap = (DirectTap *)(void *)(own + slice);
    Piece c = { .w = w, .side = (float *)(void *)room, .tap = tap, .row = tap + p->taps };
    c.sum = (DirectSum){ .tap = c.tap, .blocks = p->blocks, .last = (int)(p->in - (p->blocks - 1) * lanes) };
    work_on(&c, part * all / w->parts, (part + 1) * all / w->parts, w->by_pairs ? t / w->parts : 0,
            w->by_pairs ? t / w->parts + 1 : p->groups * p->pairs, own);
    tg_free(room, bytes);
}

static int64_t rows_of_chunk(const Direct *p)
{
    const int64_t line = p->link[2].out * up(p->batch, p->units);
    return most(1, least(y_rows(p), CHUNK_PIXELS / line));
}

/* A few pixels meet all weights, which then are packed just before their use; else all weights come to a few
 * pixels, which are in L2. */
static int all_pieces(Work *w, int threads)
{
    const Direct *p = w->p;
    const int64_t at_once = direct_units_at_once(p, direct_image_bytes(&w->x), w->at_once),
                  pairs = p->groups * p->pairs;
    w->rows = rows_of_chunk(p), w->chunks = up(y_rows(p), w->rows);
    w->parts = threads == 1 ? 1 : least(at_once * w->chunks, up(4 * threads, w->by_pairs ? pairs : 1));
    const size_t bytes = w->parts > 1 || !w->by_pairs ? (size_t)(pairs * direct_slice(p)) * sizeof(float) : 0;
    if (bytes && !(w->packed = tg_alloc(bytes))) return -1;
    if (bytes) parallel_for(pairs, threads, pack_pair, w);
    for (w->x.first = 0; w->x.first < p->units && !w->failed; w->x.first += w->units) {
        w->units = least(at_once, p->units - w->x.first);
        parallel_for(w->units * p->groups * p->blocks, threads, direct_convert, &w->x);
        parallel_for((w->by_pairs ? pairs : 1) * w->parts, threads, forward_piece, w);
    }
    tg_free(w->packed, bytes);
    return w->failed ? -1 : 0;
}

static int forward(Direct *p, int threads)
{
    if (direct_open(p)) return -1;
    Work w = { .p = p, .x = direct_x(p) };
    w.by_pairs = direct_image_bytes(&w.x) * (size_t)p->batch <= PAIRS_BYTES;
    w.at_once = w.by_pairs ? PAIRS_BYTES : threads == 1 ? L2_BYTES : 4 * L2_BYTES * threads;
    const size_t bytes = direct_bytes_at_once(p, direct_image_bytes(&w.x), w.at_once);
    const int status = (w.x.to = tg_alloc(bytes)) ? all_pieces(&w, threads) : -1;
    tg_free(w.x.to, bytes);
    direct_close(p);
    return status;
}

int direct_forward(const ConvArgs *a, int threads)
{
    Direct p = direct_plan(a, DIRECT_FORWARD);
    return forward(&p, threads);
}

int direct_grad_input(const ConvArgs *a, int threads)
{
    Direct p = direct_plan(a, DIRECT_GRAD_INPUT);
    return forward(&p, threads);
}
