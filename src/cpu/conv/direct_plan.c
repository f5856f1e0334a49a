/* direct_plan.c - the layouts of direct convolution, by the shape, and the conversion to and from them. */
#include <limits.h>
#include "direct_plan.h"
#include "cpu/product/gemm_bf16.h"

enum { DIRECT_BF16_TAPS = 80 /* at most, so that words of weights lie on the stack */ };

static const DirectKernel *kernel_here(void) { return ISA_PICK(direct_kernel); }

static const DirectBf16 *bf16_here(void)
{
    const DirectBf16 *here = ISA_PICK(direct_bf16);
    return here->pair && gemm_bf16_here() ? here : NULL;
}

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

/* One input channel and one output channel a group. */
static bool is_depthwise(const ConvArgs *a) { return a->groups > 1 && a->groups == a->in && a->in == a->out; }

static DirectWord word_of(const ConvArgs *a, DirectPass pass)
{
    if (a->dtype != TENSOR_BF16) return WORD_IS_F32;
    return pass == DIRECT_GRAD_WEIGHT ? WORD_IS_IMAGES : WORD_IS_CHANNELS;
}

/* y of the larger side for turned. */
Direct direct_plan(const ConvArgs *a, DirectPass pass)
{
    const bool turned = pass == DIRECT_GRAD_INPUT;
    const DirectWord word = word_of(a, pass);
    Direct p = { .k = kernel_here(),
                 .bf16 = bf16_here(),
                 .sums = word == WORD_IS_F32 ? kernel_here()->sums : bf16_here()->sums,
                 .word = word,
                 .images_x = a->batch,
                 .batch = word == WORD_IS_IMAGES ? up(a->batch, 2) : a->batch,
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
    p.channels = (turned ? a->out : a->in) / p.groups, p.out = (turned ? a->in : a->out) / p.groups;
    p.in = word == WORD_IS_CHANNELS ? up(p.channels, 2) : p.channels;
    p.blocks = up(p.in, p.k->lanes), p.pairs = up(p.out, p.pair * p.k->lanes);
    p.x_pixels = p.link[0].in * p.link[1].in * p.link[2].in;
    p.y_pixels = p.link[0].out * p.link[1].out * p.link[2].out;
    p.phases = turned ? least(a->stride_w, p.link[2].out) : 1;
    p.w_out = turned ? p.taps : p.channels * p.taps, p.w_in = turned ? p.out * p.taps : p.taps;
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

/* Lines of n words, of which the first `whole` have a second half, `second` behind the first. */
static void block_pairs(const Direct *p, const uint16_t *from, int64_t line, int64_t second, int lines,
                        int whole, int64_t n, const int32_t *place, int64_t step, float *to)
{
    enum { AT_ONCE = 64, MOST_LANES = 16 };
    float words[MOST_LANES * AT_ONCE];
    for (int64_t i = 0; i < n; i += AT_ONCE, from += AT_ONCE) {
        const int64_t here = least(AT_ONCE, n - i);
        p->bf16->pair(from, line, second, lines, whole, here, words, AT_ONCE);
        p->k->block(words, AT_ONCE, lines, here, place ? place + i : NULL, step, place ? to : to + i * step);
    }
}

/* One block of one image, or of two. */
static void block_image(const Blocked *b, int64_t image, int64_t group, int64_t block, int64_t step,
                        float *to)
{
    const Direct *p = b->p;
    const int64_t lanes = p->k->lanes, all = p->groups * b->channels * b->pixels;
    const int64_t channel = block * lanes * (p->word == WORD_IS_CHANNELS ? 2 : 1),
                  left = b->channels - channel, at = (group * b->channels + channel) * b->pixels;
    const uint16_t *halves = b->from;
    if (p->word == WORD_IS_F32)
        p->k->block((const float *)b->from + image * all + at, b->pixels, (int)least(lanes, left), b->pixels,
                    b->place, step, to);
    else if (p->word == WORD_IS_CHANNELS)
        block_pairs(p, halves + image * all + at, 2 * b->pixels, b->pixels, (int)least(lanes, up(left, 2)),
                    (int)least(lanes, left / 2), b->pixels, b->place, step, to);
    else
        block_pairs(p, halves + 2 * image * all + at, b->pixels, all, (int)least(lanes, left),
                    2 * image + 1 < p->images_x ? (int)lanes : 0, b->pixels, b->place, step, to);
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
    for (int64_t i = 0; i < m; i++)
        block_image(b, unit_start(p, unit) + i, group, block, m * lanes, to + i * lanes);
}

void direct_deliver(const Direct *p, const float *from, int64_t step, int64_t n, int channels, int64_t image,
                    int64_t channel, int64_t pixel)
{
    enum { AT_ONCE = 64, MOST_LANES = 16 };
    const float *bias = p->bias ? p->bias + channel : NULL;
    const int64_t at = (image * p->groups * p->out + channel) * p->y_pixels + pixel;
    float lines[MOST_LANES * AT_ONCE];
    if (p->word == WORD_IS_F32) p->k->unblock(from, step, n, channels, bias, (float *)p->y + at, p->y_pixels);
    else
        for (int64_t i = 0, here; i < n; i += here) {
            here = least(AT_ONCE, n - i);
            p->k->unblock(from + i * step, step, here, channels, bias, lines, AT_ONCE);
            for (int c = 0; c < channels; c++)
                p->bf16->narrow(lines + c * AT_ONCE, here, (uint16_t *)p->y + at + c * p->y_pixels + i);
        }
}

Blocked direct_x(const Direct *p)
{
    return (Blocked){ .p = p,
                      .from = p->x,
                      .channels = p->channels,
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
            if (!unpacked) *to = c < p->out ? ((const float *)p->weight)[c * p->taps + t] : 0;
            else if (c < p->out) unpacked[c * p->taps + t] = (add ? unpacked[c * p->taps + t] : 0) + *to;
        }
}

/* Weights of outputs and words of inputs, a few words at a time. */
static void pack_pairs(const Direct *p, const DirectWeights *d, const uint16_t *w, int64_t channels,
                       float *to)
{
    enum { MOST_LANES = 16 };
    float words[MOST_LANES * 2 * DIRECT_BF16_TAPS];
    const int at_once = (int)(DIRECT_BF16_TAPS / d->taps * 2);
    DirectWeights part = *d;
    for (int c = 0; c < d->ins; c += at_once, w += part.ins * 2 * d->in) {
        part.ins = d->ins - c < at_once ? d->ins - c : at_once;
        part.out = part.ins * d->taps, part.in = d->taps;
        for (int o = 0; o < d->outs; o++)
            p->bf16->pair(w + o * d->out, 2 * d->in, d->in, part.ins, (int)(channels / 2 - c), d->taps,
                          words + o * part.out, d->taps);
        p->k->pack(&part, words, to + c * d->width);
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
            const int64_t first = p->word == WORD_IS_CHANNELS ? 2 * c : c,
                          at = group * p->out * p->channels * p->taps + o * p->w_out + first * p->w_in;
            if (unpacked) p->k->unpack(&d, packed + h * lanes, unpacked + at, add);
            else if (p->word == WORD_IS_F32)
                p->k->pack(&d, (const float *)p->weight + at, packed + h * lanes);
            else pack_pairs(p, &d, (const uint16_t *)p->weight + at, p->channels - first, packed + h * lanes);
        }
}

/* ---- which shapes ---------------------------------------------------------------------------- */

/* Of bf16, channels alone and products of whole maps are left to f32. */
static bool dtype_taken(const ConvArgs *a)
{
    const int64_t taps = a->kd * a->kh * a->kw;
    if (a->dtype != TENSOR_BF16) return a->dtype == TENSOR_F32;
    return bf16_here() && !is_depthwise(a) && taps <= DIRECT_BF16_TAPS && a->od * a->oh * a->ow > 1;
}

/* A map much narrower than the window, transposed: a row of columns reads little but zeros beside it. */
static bool is_mostly_padding(const ConvArgs *a, DirectPass pass)
{
    return pass == DIRECT_GRAD_INPUT && a->w > 2 * a->ow * a->stride_w && !direct_plan(a, pass).images;
}

/* With few channels of x it is faster to unfold them; where an element of dx or a channel meets one tap, and
 * where few pixels are summed, too. */
bool direct_takes(const ConvArgs *a, DirectPass pass)
{
    enum { LEAST_CHANNELS = 8, MANY_CHANNELS = 16, LEAST_PIXELS = 100, PANEL_PIXELS = 128 };
    const int64_t in = a->in / a->groups, out = a->out / a->groups, pixels = a->od * a->oh * a->ow;
    const int64_t vectors = a->d * a->h * (a->w + 2 * a->pad_w + a->kw * a->dilation_w) * a->stride_w;
    const bool point = a->kd * a->kh * a->kw == 1;
    if (kernel_here()->lanes == 0 || a->batch == 0 || !dtype_taken(a)) return false;
    if (vectors >= INT_MAX || vectors == 0 || pixels == 0) return false;
    if (is_depthwise(a)) return a->in >= LEAST_CHANNELS && !point;
    /* One tap, with a stride or padding, whose pixels fill a panel: a product converts only what is read. */
    if (point && a->dtype == TENSOR_F32 && pixels >= PANEL_PIXELS) return false;
    if (pass == DIRECT_GRAD_WEIGHT ? a->batch * pixels < LEAST_PIXELS : pass == DIRECT_GRAD_INPUT && point)
        return false;
    if (is_mostly_padding(a, pass)) return false;
    return in >= MANY_CHANNELS || (in >= LEAST_CHANNELS && out >= LEAST_CHANNELS);
}
