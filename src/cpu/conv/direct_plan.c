/* direct_plan.c - the layouts of direct convolution, by the shape, and the conversion to and from them. */
#include <limits.h>
#include "direct_plan.h"

static const DirectKernel *kernel_here(void) { return ISA_PICK(direct_kernel); }

/* ---- layouts --------------------------------------------------------------------------------- */

/* Columns: [phase of x][zeros, columns of that phase, zeros]. */
static void lay_columns(Direct *p)
{
    const Link *l = &p->link[2];
    const int64_t in_phases = l->turned ? 1 : least(l->stride, (l->taps - 1) * l->dilation + 1);
    int64_t lo = l->turned ? 0 : l->pad, wide = 0;
    for (int64_t a = 0; a < p->phases && l->turned; a++)
        for (int64_t t = 0; t < l->taps; t++)
            if ((a + l->pad - t * l->dilation) % l->stride == 0)
                lo = most(lo, -((a + l->pad - t * l->dilation) / l->stride));
    for (int64_t a = 0; a < p->phases; a++)
        for (int64_t t = 0; t < l->taps; t++) {
            const int64_t at = a + l->pad - t * l->dilation, n = up(l->out - a, p->phases);
            const int64_t start = l->turned ? at / l->stride + lo : t * l->dilation / l->stride;
            if (l->turned && at % l->stride != 0) continue;
            wide = most(wide, start + n);
        }
    p->lo = lo, wide = most(wide, l->turned ? lo + l->in : up(lo + l->in, l->stride));
    p->line = wide * in_phases;
    for (int64_t a = 0; a < p->phases; a++)
        for (int64_t t = 0; t < l->taps; t++) {
            const int64_t at = a + l->pad - t * l->dilation, far = t * l->dilation;
            p->column[a * l->taps + t] = !l->turned ? (int32_t)(far % l->stride * wide + far / l->stride)
                                         : at % l->stride != 0 ? -1
                                                               : (int32_t)(at / l->stride + lo);
        }
    for (int64_t j = 0; j < l->in; j++) {
        const int64_t at = j + lo, phase = l->turned ? 0 : at % l->stride;
        p->place[j] = phase >= in_phases ? -1 : (int32_t)(phase * wide + (l->turned ? at : at / l->stride));
    }
}

/* Is element j of x read at all? */
static bool is_read(const Link *l, int64_t j)
{
    const Link back = { l->out, l->in, l->taps, l->stride, l->pad, l->dilation, !l->turned };
    int64_t i;
    for (int64_t t = 0; t < l->taps; t++)
        if (reads(&back, j, t, &i)) return true;
    return false;
}

static void lay_out(Direct *p)
{
    const Link *l = &p->link[2], *h = &p->link[1];
    const int64_t rows = p->x_pixels / l->in;
    p->line = l->in;
    for (int64_t j = 0; j < l->in && p->images; j++) p->place[j] = is_read(l, j) ? (int32_t)j : -1;
    if (!p->images) lay_columns(p);
    for (int64_t r = rows - 1; r >= 0; r--) {
        const bool used = is_read(h, r % h->in);
        for (int64_t j = 0; j < l->in; j++)
            p->place[r * l->in + j] = !used || p->place[j] < 0 ? -1 : (int32_t)(r * p->line) + p->place[j];
    }
    p->plane = p->line * rows;
}

/* Images side by side pay where rows are short, which is where padding weighs most, if there are enough. */
static bool by_images(const Direct *p)
{
    const int64_t tile = p->k->pixels, wide = up(p->link[2].out, p->phases);
    return p->batch >= tile / 2 && wide <= tile && p->y_pixels <= 512;
}

/* y of the larger side for turned. */
/* One input channel and one output channel a group. */
static bool is_depthwise(const ConvArgs *a) { return a->groups > 1 && a->groups == a->in && a->in == a->out; }

Direct direct_plan(const ConvArgs *a, bool turned)
{
    Direct p = { .k = kernel_here(),
                 .batch = a->batch,
                 .depthwise = is_depthwise(a),
                 .taps = a->kd * a->kh * a->kw,
                 .x = turned ? a->y : a->x,
                 .y = turned ? a->x : a->y,
                 .weight = a->weight,
                 .bias = a->bias };
    const int64_t size[3][6] = { { a->d, a->od, a->kd, a->stride_d, a->pad_d, a->dilation_d },
                                 { a->h, a->oh, a->kh, a->stride_h, a->pad_h, a->dilation_h },
                                 { a->w, a->ow, a->kw, a->stride_w, a->pad_w, a->dilation_w } };
    for (int i = 0; i < 3; i++)
        p.link[i] = (Link){ .in = size[i][turned],
                            .out = size[i][!turned],
                            .taps = size[i][2],
                            .stride = size[i][3],
                            .pad = size[i][4],
                            .dilation = size[i][5],
                            .turned = turned };
    p.groups = p.depthwise ? 1 : a->groups, p.pair = p.depthwise ? 1 : 2;
    p.in = (turned ? a->out : a->in) / p.groups, p.out = (turned ? a->in : a->out) / p.groups;
    p.blocks = up(p.in, p.k->lanes), p.pairs = up(p.out, p.pair * p.k->lanes);
    p.x_pixels = p.link[0].in * p.link[1].in * p.link[2].in;
    p.y_pixels = p.link[0].out * p.link[1].out * p.link[2].out;
    p.phases = turned ? least(a->stride_w, p.link[2].out) : 1;
    p.w_out = turned ? p.taps : p.in * p.taps, p.w_in = turned ? p.out * p.taps : p.taps;
    p.images = by_images(&p);
    p.units = p.images ? up(p.batch, p.k->pixels) : p.batch;
    return p;
}

static size_t table_bytes(const Direct *p)
{
    return (size_t)(p->x_pixels + p->phases * p->link[2].taps) * sizeof(int32_t);
}

int direct_open(Direct *p)
{
    if (!(p->place = tg_alloc(table_bytes(p)))) return -1;
    p->column = p->place + p->x_pixels;
    lay_out(p);
    return 0;
}

void direct_close(const Direct *p) { tg_free(p->place, table_bytes(p)); }

/* ---- operands -------------------------------------------------------------------------------- */

float *direct_block(const Blocked *b, int64_t unit, int64_t group, int64_t block)
{
    const Direct *p = b->p;
    const int64_t before = unit_start(p, unit) - unit_start(p, b->first), m = unit_images(p, unit);
    return b->to +
           (before * p->groups * b->blocks + (group * b->blocks + block) * m) * b->plane * p->k->lanes;
}

/* One block of one unit. */
void direct_convert(void *ctx, int64_t t)
{
    const Blocked *b = ctx;
    const Direct *p = b->p;
    const int64_t all = p->groups * b->blocks, unit = b->first + t / all, group = t % all / b->blocks,
                  block = t % b->blocks, m = unit_images(p, unit), lanes = p->k->lanes;
    float *to = direct_block(b, unit, group, block);
    if (b->place && !p->images) memset(to, 0, (size_t)(b->plane * lanes) * sizeof(float));
    for (int64_t i = 0; i < m; i++) {
        const int64_t channel = group * b->channels + block * lanes;
        p->k->block(b->from + ((unit_start(p, unit) + i) * p->groups * b->channels + channel) * b->pixels,
                    b->pixels, (int)least(lanes, b->channels - block * lanes), b->pixels, b->place, m * lanes,
                    to + i * lanes);
    }
}

Blocked direct_x(const Direct *p)
{
    return (Blocked){ .p = p,
                      .from = p->x,
                      .channels = p->in,
                      .blocks = p->blocks,
                      .pixels = p->x_pixels,
                      .plane = p->plane,
                      .place = p->place };
}

size_t direct_image_bytes(const Blocked *b)
{
    return (size_t)(b->p->groups * b->blocks * b->plane * b->p->k->lanes) * sizeof(float);
}

/* Units that are converted at once. */
int64_t direct_units_at_once(const Direct *p, size_t bytes_of_image, int64_t at_once)
{
    const int64_t bytes = (int64_t)bytes_of_image * up(p->batch, p->units);
    return most(1, least(p->units, at_once / bytes));
}

size_t direct_bytes_at_once(const Direct *p, size_t bytes_of_image, int64_t at_once)
{
    return bytes_of_image *
           (size_t)(direct_units_at_once(p, bytes_of_image, at_once) * up(p->batch, p->units));
}

int direct_halves(const Direct *p, int64_t pair)
{
    return p->out - pair * p->pair * p->k->lanes > p->k->lanes ? (int)p->pair : 1;
}

int64_t direct_tap(const Direct *p, int64_t halves)
{
    return p->depthwise ? p->k->lanes : p->k->lanes * halves * p->k->lanes;
}

int64_t direct_slice(const Direct *p)
{
    return (p->depthwise ? 1 : p->blocks) * p->taps * direct_tap(p, p->pair);
}

/* [channel, tap] to [tap][lanes], or back. */
static void move_alone(const Direct *p, int64_t block, float *packed, float *unpacked, bool add)
{
    const int64_t lanes = p->k->lanes;
    for (int64_t c = block * lanes, i = 0; i < lanes; i++, c++)
        for (int64_t t = 0; t < p->taps; t++) {
            float *to = packed + t * lanes + i;
            if (!unpacked) *to = c < p->out ? p->weight[c * p->taps + t] : 0;
            else if (c < p->out) unpacked[c * p->taps + t] = (add ? unpacked[c * p->taps + t] : 0) + *to;
        }
}

void direct_move_weights(const Direct *p, int64_t group, int64_t pair, int64_t b, int64_t end, float *packed,
                         float *unpacked, bool add)
{
    const int64_t lanes = p->k->lanes, halves = direct_halves(p, pair);
    if (p->depthwise) {
        move_alone(p, pair, packed, unpacked, add);
        return;
    }
    for (; b < end; b++, packed += p->taps * direct_tap(p, halves))
        for (int64_t h = 0; h < halves; h++) {
            const int64_t o = (pair * 2 + h) * lanes, c = b * lanes;
            const DirectWeights d = { p->w_out,
                                      p->w_in,
                                      p->taps,
                                      (int)least(lanes, p->out - o),
                                      (int)least(lanes, p->in - c),
                                      (int)(halves * lanes) };
            const int64_t at = group * p->out * p->in * p->taps + o * p->w_out + c * p->w_in;
            if (unpacked) p->k->unpack(&d, packed + h * lanes, unpacked + at, add);
            else p->k->pack(&d, p->weight + at, packed + h * lanes);
        }
}

/* ---- which shapes ---------------------------------------------------------------------------- */

/* With few channels of x it is faster to unfold them; where an element of dx or a channel meets one tap, and
 * where few pixels are summed, too. */
bool direct_takes(const ConvArgs *a, DirectPass pass)
{
    enum { LEAST_CHANNELS = 8, MANY_CHANNELS = 16, LEAST_PIXELS = 100 };
    const int64_t in = a->in / a->groups, out = a->out / a->groups, pixels = a->od * a->oh * a->ow;
    const int64_t vectors = a->d * a->h * (a->w + 2 * a->pad_w + a->kw * a->dilation_w) * a->stride_w;
    const bool point = a->kd * a->kh * a->kw == 1;
    if (a->dtype != TENSOR_F32 || kernel_here()->lanes == 0 || a->batch == 0) return false;
    if (vectors >= INT_MAX || vectors == 0 || pixels == 0) return false;
    if (is_depthwise(a)) return a->in >= LEAST_CHANNELS && !point;
    if (pass == DIRECT_GRAD_WEIGHT ? a->batch * pixels < LEAST_PIXELS : pass == DIRECT_GRAD_INPUT && point)
        return false;
    return in >= MANY_CHANNELS || (in >= LEAST_CHANNELS && out >= LEAST_CHANNELS);
}
