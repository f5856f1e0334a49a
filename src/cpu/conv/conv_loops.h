/* conv_loops.h - conv_kernel.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

static void N(fill)(void *y, int64_t n, const void *value)
{
    const T v = value ? *(const T *)value : 0;
    for (int64_t i = 0; i < n; i++) ((T *)y)[i] = v;
}

static void N(add)(void *y, const void *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((T *)y)[i] += ((const T *)x)[i];
}

static double N(sum)(const void *x, int64_t n)
{
    enum { LANES = 16 };
    double lane[LANES] = { 0 }, total = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += (double)((const T *)x)[i + k];
    for (; i < n; i++) total += (double)((const T *)x)[i];
    for (int k = 0; k < LANES; k++) total += lane[k];
    return total;
}

/* n outputs from column j of one output row; from..to of the row lie inside. */
static void N(unfold_row)(const T *x, int64_t stride, int64_t offset, int64_t j, int64_t n, int64_t from,
                          int64_t to, T *out)
{
    const int64_t a = from < j       ? 0
                      : from - j < n ? from - j
                                     : n,
                  b = to - j < a   ? a
                      : to - j < n ? to - j
                                   : n;
    for (int64_t i = 0; i < a; i++) out[i] = 0;
    if (stride == 1) memcpy(out + a, x + j + a + offset, (size_t)(b - a) * sizeof(T));
    else if (stride == 2)
        for (int64_t i = a; i < b; i++) out[i] = x[(j + i) * 2 + offset];
    else
        for (int64_t i = a; i < b; i++) out[i] = x[(j + i) * stride + offset];
    for (int64_t i = b; i < n; i++) out[i] = 0;
}

static void N(clear_edges)(const Run *r, int64_t w, int64_t first, T *panel)
{
    for (int64_t p = r->row + r->edge; p < r->stop && r->width; p += w)
        for (int64_t q = p < r->copy ? r->copy : p; q < p + r->width && q < r->stop; q++)
            panel[q - first] = 0;
}

static void N(unfold_run)(const Run *r, int64_t w, const T *x, int64_t first, int64_t n, T *out)
{
    memset(out, 0, (size_t)(r->copy - first) * sizeof(T));
    memcpy(out + (r->copy - first), x + r->copy + r->shift, (size_t)(r->stop - r->copy) * sizeof(T));
    memset(out + (r->stop - first), 0, (size_t)(first + n - r->stop) * sizeof(T));
    N(clear_edges)(r, w, first, out);
}

static void N(fold_run)(const Run *r, int64_t w, T *x, int64_t first, T *in)
{
    N(clear_edges)(r, w, first, in);
    const T *from = in + (r->copy - first);
    T *to = x + r->copy + r->shift;
    for (int64_t i = 0; i < r->stop - r->copy; i++) to[i] += from[i];
}

/* Lines of y, of which one begins at row i, column j; the tap reads columns [from, to) of them inside of x's.
 * Rows that windows skip hide from the CPU which come next: those are fetched ahead. */
static void N(unfold_lines)(const ConvArgs *a, const T *x, const Tap *t, int64_t i, int64_t j, int64_t n,
                            int64_t from, int64_t to, T *out)
{
    const bool skips = a->stride_h > (a->kh - 1) * a->dilation_h + 1;
    for (; n > 0; i++, j = 0) {
        const int64_t count = a->ow - j < n ? a->ow - j : n, y = i * a->stride_h + t->row;
        for (int64_t q = 0; skips && q < a->w; q += 64 / (int64_t)sizeof(T))
            __builtin_prefetch(at_place(x, ((y + ROWS_AHEAD * a->stride_h) * a->w + q) * (int64_t)sizeof(T)));
        if (y < 0 || y >= a->h) memset(out, 0, (size_t)count * sizeof(T));
        else N(unfold_row)(x + y * a->w, a->stride_w, t->column, j, count, from, to, out);
        out += count, n -= count;
    }
}

static void N(fold_lines)(const ConvArgs *a, T *x, const Tap *t, int64_t i, int64_t j, int64_t n,
                          int64_t from, int64_t to, const T *in)
{
    for (; n > 0; i++, j = 0) {
        const int64_t count = a->ow - j < n ? a->ow - j : n, y = i * a->stride_h + t->row;
        const int64_t lo = from > j ? from : j, hi = to < j + count ? to : j + count;
        T *row = x + y * a->w + t->column;
        if (y >= 0 && y < a->h) {
            if (a->stride_w == 1)
                for (int64_t q = lo; q < hi; q++) row[q] += in[q - j];
            else
                for (int64_t q = lo; q < hi; q++) row[q * a->stride_w] += in[q - j];
        }
        in += count, n -= count;
    }
}

/* A part of the panel's rows that are of tap t, one for each channel. */
static void N(unfold_part)(const ConvArgs *a, const T *x, int64_t channels, const Tap *t, const Part *p,
                           T *out, int64_t line)
{
    const int64_t pixels = a->d * a->h * a->w;
    int64_t from, to;
    if (p->plane < 0) {
        for (int64_t c = 0; c < channels; c++) memset(out + c * line, 0, (size_t)p->count * sizeof(T));
    } else if (one_run(a)) {
        const Run r = run_of(a, t->row, t->column, p->first, p->count);
        for (int64_t c = 0; c < channels; c++)
            N(unfold_run)(&r, a->w, x + c * pixels + p->plane, p->first, p->count, out + c * line);
    } else {
        const int64_t i = p->first / a->ow, j = p->first % a->ow;
        inside(a->w, a->ow, a->stride_w, t->column, &from, &to);
        for (int64_t c = 0; c < channels; c++)
            N(unfold_lines)(a, x + c * pixels + p->plane, t, i, j, p->count, from, to, out + c * line);
    }
}

static void N(fold_part)(const ConvArgs *a, T *x, int64_t channels, const Tap *t, const Part *p, T *in,
                         int64_t line)
{
    const int64_t pixels = a->d * a->h * a->w;
    int64_t from, to;
    if (p->plane < 0) return;
    if (one_run(a)) {
        const Run r = run_of(a, t->row, t->column, p->first, p->count);
        for (int64_t c = 0; c < channels; c++)
            N(fold_run)(&r, a->w, x + c * pixels + p->plane, p->first, in + c * line);
    } else {
        const int64_t i = p->first / a->ow, j = p->first % a->ow;
        inside(a->w, a->ow, a->stride_w, t->column, &from, &to);
        for (int64_t c = 0; c < channels; c++)
            N(fold_lines)(a, x + c * pixels + p->plane, t, i, j, p->count, from, to, in + c * line);
    }
}

static void N(unfold)(const ConvArgs *a, const void *x, int64_t channels, int64_t first, int64_t n,
                      void *panel, int64_t line)
{
    const int64_t taps = a->kd * a->kh * a->kw;
    for (int64_t k = 0; k < taps; k++) {
        const Tap t = tap_of(a, k);
        Part part;
        for (int64_t p = first; p < first + n; p += part.count) {
            part = part_of(a, &t, p, first + n);
            N(unfold_part)(a, x, channels, &t, &part, (T *)panel + k * line + (p - first), taps * line);
        }
    }
}

static void N(fold)(const ConvArgs *a, void *x, int64_t channels, int64_t first, int64_t n, void *panel,
                    int64_t line)
{
    const int64_t taps = a->kd * a->kh * a->kw;
    for (int64_t k = 0; k < taps; k++) {
        const Tap t = tap_of(a, k);
        Part part;
        for (int64_t p = first; p < first + n; p += part.count) {
            part = part_of(a, &t, p, first + n);
            N(fold_part)(a, x, channels, &t, &part, (T *)panel + k * line + (p - first), taps * line);
        }
    }
}

/* ---- slabs: unfold of SLAB_BYTES a row, stride 1 --------------------------------------------- */

/* Some lanes of a row of a slab, which one row of x holds: lane i is x[from + i], where bits[i] is all ones.
 */
typedef struct N(Lanes) {
    int64_t from;
    BITS bits[SLAB_BYTES / sizeof(T)];
} N(Lanes);

/* The lanes of tap t; returns how many rows of x hold them. */
static int N(lanes_of)(const ConvArgs *a, const Tap *t, const Stretch *s, int stretches, N(Lanes) * lanes)
{
    enum { SLAB = SLAB_BYTES / sizeof(T) };
    int count = 0;
    for (const Stretch *end = s + stretches; s < end; s++) {
        const int64_t layer = s->layer + t->layer, row = s->row + t->row, column = s->column + t->column;
        const int64_t from = column < 0 ? -column : 0,
                      to = a->w - column < s->count ? a->w - column : s->count;
        if (layer < 0 || layer >= a->d || row < 0 || row >= a->h || from >= to) continue;
        N(Lanes) *l = &lanes[count++];
        const BITS first = (BITS)(s->lane + from), width = (BITS)(to - from);
        l->from = (layer * a->h + row) * a->w + column - s->lane;
        for (int i = 0; i < SLAB; i++) l->bits[i] = (BITS) - (BITS)((BITS)i - first < width);
    }
    return count;
}

/* The row of a slab, by what the rows of x hold of it.  Lanes without a bit are read too, where the tensor
 * has something there: from `low` to `high`, relative to x. */
static void N(put_lanes)(const BITS *x, const N(Lanes) * lanes, int count, int64_t low, int64_t high,
                         BITS *out)
{
    enum { SLAB = SLAB_BYTES / sizeof(T) };
    bool begun = false;
    for (const N(Lanes) *l = lanes; l < lanes + count; l++) {
        const BITS *from = x + l->from, *bits = l->bits;
        if (l->from < low || l->from + SLAB > high) {
            for (int i = 0; i < SLAB; i++) out[i] = bits[i] ? from[i] : begun ? out[i] : 0;
        } else if (!begun) {
#pragma omp simd
            for (int i = 0; i < SLAB; i++) out[i] = from[i] & bits[i];
        } else {
#pragma omp simd
            for (int i = 0; i < SLAB; i++) out[i] |= from[i] & bits[i];
        }
        begun = true;
    }
    if (!begun) memset(out, 0, SLAB_BYTES);
}

static void N(slab)(const ConvArgs *a, const void *x, int64_t channels, int64_t first, int64_t n, void *slab)
{
    enum { SLAB = SLAB_BYTES / sizeof(T) };
    const int64_t taps = a->kd * a->kh * a->kw, pixels = a->d * a->h * a->w;
    const int64_t low = (const T *)a->x - (const T *)x, high = low + a->batch * a->in * pixels;
    Stretch stretch[SLAB];
    N(Lanes) lanes[SLAB];
    const int stretches = stretches_of(a, first, n, stretch);
    for (int64_t k = 0; k < taps; k++) {
        const Tap t = tap_of(a, k);
        const int count = N(lanes_of)(a, &t, stretch, stretches, lanes);
        for (int64_t c = 0; c < channels; c++) {
            const int64_t plane = c * pixels;
            N(put_lanes)
            ((const BITS *)x + plane, lanes, count, low - plane, high - plane,
             (BITS *)slab + (c * taps + k) * SLAB);
        }
    }
}

static void N(turn)(const void *weight, int64_t out, int64_t in, int64_t taps, void *to)
{
    T *next = to;
    for (int64_t c = 0; c < in; c++)
        for (int64_t o = 0; o < out; o++, next += taps)
            for (int64_t k = 0; k < taps; k++)
                next[k] = ((const T *)weight)[(o * in + c) * taps + taps - 1 - k];
}

/* ---- one plane, one window: depthwise convolution -------------------------------------------- */

static void N(plane)(const ConvArgs *a, const void *x, const void *weight, void *y)
{
    const int64_t step = a->stride_w;
    for (int64_t i = 0; i < a->oh; i++) {
        T *out = (T *)y + i * a->ow;
        for (int64_t k = 0; k < a->kh * a->kw; k++) {
            const int64_t row = i * a->stride_h + k / a->kw * a->dilation_h - a->pad_h,
                          s = k % a->kw * a->dilation_w - a->pad_w;
            const T w = ((const T *)weight)[k];
            int64_t from, to;
            if (row < 0 || row >= a->h) continue;
            inside(a->w, a->ow, step, s, &from, &to);
            const T *in = (const T *)x + row * a->w + s;
            if (step == 1)
                for (int64_t j = from; j < to; j++) out[j] += w * in[j];
            else
                for (int64_t j = from; j < to; j++) out[j] += w * in[j * step];
        }
    }
}

static void N(plane_grad_input)(const ConvArgs *a, void *x, const void *weight, const void *y)
{
    const int64_t step = a->stride_w;
    for (int64_t i = 0; i < a->oh; i++) {
        const T *in = (const T *)y + i * a->ow;
        for (int64_t k = 0; k < a->kh * a->kw; k++) {
            const int64_t row = i * a->stride_h + k / a->kw * a->dilation_h - a->pad_h,
                          s = k % a->kw * a->dilation_w - a->pad_w;
            const T w = ((const T *)weight)[k];
            int64_t from, to;
            if (row < 0 || row >= a->h) continue;
            inside(a->w, a->ow, step, s, &from, &to);
            T *out = (T *)x + row * a->w + s;
            if (step == 1)
                for (int64_t j = from; j < to; j++) out[j] += w * in[j];
            else
                for (int64_t j = from; j < to; j++) out[j * step] += w * in[j];
        }
    }
}

static void N(plane_grad_weight)(const ConvArgs *a, const void *x, double *weight, const void *y)
{
    enum { LANES = 8 };
    const int64_t step = a->stride_w;
    for (int64_t k = 0; k < a->kh * a->kw; k++) {
        const int64_t r = k / a->kw * a->dilation_h - a->pad_h, s = k % a->kw * a->dilation_w - a->pad_w;
        double lane[LANES] = { 0 };
        int64_t from, to, top, bottom;
        inside(a->w, a->ow, step, s, &from, &to);
        inside(a->h, a->oh, a->stride_h, r, &top, &bottom);
        for (int64_t i = top; i < bottom; i++) {
            const T *in = (const T *)x + (i * a->stride_h + r) * a->w + s, *g = (const T *)y + i * a->ow;
            int64_t j = from;
            for (; j + LANES <= to; j += LANES)
                for (int q = 0; q < LANES; q++) lane[q] += (double)g[j + q] * (double)in[(j + q) * step];
            for (; j < to; j++) lane[(j - from) % LANES] += (double)g[j] * (double)in[j * step];
        }
        for (int q = 0; q < LANES; q++) weight[k] += lane[q];
    }
}

#undef N
