/* curves.c - curves over two axes, each with round numbers. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <tapegrad/watch.h>
#include "tensor/core.h"
#include "tensor/numbers.h"
#include "png_encode.h"

const IoSaveCurvesArgs io_save_curves_defaults = { IO_SAVE_CURVES_DEFAULTS };

enum { LEFT = 76, RIGHT = 24, TOP = 40, BOTTOM = 52, INK = 0x222222, LINE = 0x888888, FAINT = 0xe4e4e4 };
static const unsigned colours[] = { 0x1f6fb4, 0xd6641e, 0x2c8c3c, 0xb02a30, 0x7a52a8, 0x7a5548 };

typedef struct Axis {
    double low, high, step; /* ticks at multiples of step */
    double from, to;        /* pixels of low and high */
} Axis;

static double at(const Axis *a, double value)
{
    return a->from + (value - a->low) / (a->high - a->low) * (a->to - a->from);
}

/* Room for values that are all the same, or nearly so, or too far apart for their difference. */
static void make_room(Axis *a)
{
    enum { NEARLY = 1000000000 };
    if (!(a->high >= a->low)) a->low = 0, a->high = 1;
    a->low = fmax(a->low, -DBL_MAX / 4), a->high = fmin(a->high, DBL_MAX / 4);
    const double size = fmax(fabs(a->low), fabs(a->high));
    if (a->high - a->low > size / NEARLY && size > 1e-290) return;
    const double half = size > 1e-290 ? size / 10 : 0.5, middle = (a->low + a->high) / 2;
    a->low = middle - half, a->high = middle + half;
}

/* Between 4 and 10 steps of 1, 2 or 5 times a power of ten. */
static void round_numbers(Axis *a)
{
    make_room(a);
    const double width = a->high - a->low, power = pow(10, floor(log10(width)));
    a->step = width / power < 2 ? power / 5 : width / power < 5 ? power / 2 : power;
}

/* Of all that can be drawn. */
static void measure(const IoSaveCurvesArgs *args, Axis *x, Axis *y)
{
    x->low = y->low = INFINITY, x->high = y->high = -INFINITY;
    for (int c = 0; c < args->count; c++)
        for (int64_t i = 0; i < args->curves[c].count; i++) {
            const double u = args->curves[c].x ? args->curves[c].x[i] : (double)i, v = args->curves[c].y[i];
            if (!isfinite(u) || !isfinite(v)) continue;
            x->low = fmin(x->low, u), x->high = fmax(x->high, u);
            y->low = fmin(y->low, v), y->high = fmax(y->high, v);
        }
    round_numbers(x), round_numbers(y);
}

static void draw_axis(Tensor *c, const Axis *a, const Axis *other, bool across)
{
    char text[32];
    const double first = ceil(a->low / a->step - 1e-9), last = floor(a->high / a->step + 1e-9);
    for (double i = first; i <= last; i++) {
        const double value = i * a->step, p = at(a, value);
        snprintf(text, sizeof text, "%.6g", fabs(value) < a->step / 2 ? 0 : value);
        const int64_t length = 6 * (int64_t)strlen(text);
        if (across) {
            io_draw_line(c, other->from, p, other->from + 4, p, LINE);
            io_draw_text(c, (int64_t)other->from + 8, (int64_t)p - length / 2, 1, INK, text);
        } else {
            io_draw_line(c, p, other->from, p, other->to, FAINT);
            io_draw_text(c, (int64_t)p - 3, (int64_t)other->from - 8 - length, 1, INK, text);
        }
    }
}

static void draw_curve(Tensor *c, const IoCurve *curve, const Axis *x, const Axis *y, unsigned colour)
{
    double row = NAN, column = NAN;
    for (int64_t i = 0; i < curve->count; i++) {
        const double u = curve->x ? curve->x[i] : (double)i;
        const bool good = isfinite(u) && isfinite(curve->y[i]);
        const double next_row = good ? at(y, curve->y[i]) : NAN, next_column = good ? at(x, u) : NAN;
        if (isnan(row)) io_draw_dot(c, next_row, next_column, 1, colour);
        else io_draw_line(c, row, column, next_row, next_column, colour);
        row = next_row, column = next_column;
    }
}

static void draw_legend(Tensor *c, const IoSaveCurvesArgs *args)
{
    int64_t row = TOP + 6;
    for (int i = 0; i < args->count; i++) {
        const char *name = args->curves[i].name;
        if (!name || !*name) continue;
        const int64_t column = args->width - RIGHT - 6 - 6 * (int64_t)strlen(name);
        const unsigned colour = colours[(size_t)i % (sizeof colours / sizeof *colours)];
        io_draw_line(c, (double)row + 3, (double)column - 18, (double)row + 3, (double)column - 6, colour);
        io_draw_text(c, row, column, 1, INK, name);
        row += 12;
    }
}

static Tensor *draw(const IoSaveCurvesArgs *args)
{
    Axis x = { .from = LEFT, .to = args->width - RIGHT }, y = { .from = args->height - BOTTOM, .to = TOP };
    const int64_t middle = (LEFT + args->width - RIGHT) / 2;
    Tensor *c = io_canvas(args->height, args->width, 0xffffff);
    if (!c) return NULL;
    measure(args, &x, &y);
    draw_axis(c, &y, &x, false), draw_axis(c, &x, &y, true);
    io_draw_line(c, y.from, x.from, y.to, x.from, LINE), io_draw_line(c, y.from, x.from, y.from, x.to, LINE);
    io_draw_text(c, 10, middle - 6 * (int64_t)strlen(args->title), 2, INK, args->title);
    io_draw_text(c, args->height - BOTTOM + 26, middle - 6 * (int64_t)strlen(args->x_label), 2, INK,
                 args->x_label);
    io_draw_text(c, 10, 8, 2, INK, args->y_label);
    for (int i = 0; i < args->count; i++)
        draw_curve(c, &args->curves[i], &x, &y, colours[(size_t)i % (sizeof colours / sizeof *colours)]);
    draw_legend(c, args);
    return c;
}

static int check(const IoSaveCurvesArgs *args, const char *op)
{
    if (!args->path || !args->curves || !args->title || !args->x_label || !args->y_label)
        return fail(TENSOR_ENULL, op, "path, curves, title or a label is NULL");
    if (png_check_name(args->path, op)) return -1;
    if (args->count < 1) return fail(TENSOR_EVALUE, op, "%d curves", args->count);
    for (int i = 0; i < args->count; i++)
        if (args->curves[i].count < 0 || (args->curves[i].count && !args->curves[i].y))
            return fail(TENSOR_ENULL, op, "curve %d has no values", i);
    if (args->width >= 160 && args->height >= 120 && args->width <= 10000 && args->height <= 10000) return 0;
    return fail(TENSOR_EVALUE, op, "%d x %d: sides of 160 x 120 to 10000", args->width, args->height);
}

int io_save_curves_args(IoSaveCurvesArgs args)
{
    static const char op[] = "io_save_curves";
    if (TENSOR_CHECK_OPTIONS(op, args, io_save_curves_defaults) || check(&args, op)) return -1;
    TensorScope scope = tensor_scope_open();
    const char *outer = tensor_compose_begin(op);
    const locale_t was = numbers_begin();
    Tensor *picture = scope_failed(scope) ? NULL : draw(&args);
    numbers_end(was);
    int status = picture ? io_save_png(args.path, picture) : -1;
    tensor_compose_end(outer);
    tensor_scope_close(scope);
    return status;
}
