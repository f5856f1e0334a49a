/* draw.c - dots, lines and letters on a picture. */
#include <ctype.h>
#include <math.h>
#include <tapegrad/watch.h>
#include "tensor/core.h"

/* ---- letters: 5 x 7 dots, a row a number, the leftmost dot its highest bit ------------------- */

static const struct {
    char c;
    unsigned char row[7];
} font[] = {
    { '0', { 14, 17, 19, 21, 25, 17, 14 } }, { '1', { 4, 12, 4, 4, 4, 4, 14 } },
    { '2', { 14, 17, 1, 2, 4, 8, 31 } },     { '3', { 31, 2, 4, 2, 1, 17, 14 } },
    { '4', { 2, 6, 10, 18, 31, 2, 2 } },     { '5', { 31, 16, 30, 1, 1, 17, 14 } },
    { '6', { 6, 8, 16, 30, 17, 17, 14 } },   { '7', { 31, 1, 2, 4, 8, 8, 8 } },
    { '8', { 14, 17, 17, 14, 17, 17, 14 } }, { '9', { 14, 17, 17, 15, 1, 2, 12 } },
    { '.', { 0, 0, 0, 0, 0, 12, 12 } },      { '%', { 24, 25, 2, 4, 8, 19, 3 } },
    { '-', { 0, 0, 0, 31, 0, 0, 0 } },       { '/', { 0, 1, 2, 4, 8, 16, 0 } },
    { ':', { 0, 12, 12, 0, 12, 12, 0 } },    { 'a', { 0, 0, 14, 1, 15, 17, 15 } },
    { 'b', { 16, 16, 22, 25, 17, 17, 30 } }, { 'c', { 0, 0, 14, 16, 16, 17, 14 } },
    { 'd', { 1, 1, 13, 19, 17, 17, 15 } },   { 'e', { 0, 0, 14, 17, 31, 16, 14 } },
    { 'f', { 6, 9, 8, 28, 8, 8, 8 } },       { 'g', { 0, 15, 17, 17, 15, 1, 14 } },
    { 'h', { 16, 16, 22, 25, 17, 17, 17 } }, { 'i', { 4, 0, 12, 4, 4, 4, 14 } },
    { 'j', { 2, 0, 6, 2, 2, 18, 12 } },      { 'k', { 16, 16, 18, 20, 24, 20, 18 } },
    { 'l', { 12, 4, 4, 4, 4, 4, 14 } },      { 'm', { 0, 0, 26, 21, 21, 17, 17 } },
    { 'n', { 0, 0, 22, 25, 17, 17, 17 } },   { 'o', { 0, 0, 14, 17, 17, 17, 14 } },
    { 'p', { 0, 0, 30, 17, 30, 16, 16 } },   { 'q', { 0, 0, 13, 19, 15, 1, 1 } },
    { 'r', { 0, 0, 22, 25, 16, 16, 16 } },   { 's', { 0, 0, 14, 16, 14, 1, 30 } },
    { 't', { 8, 8, 28, 8, 8, 9, 6 } },       { 'u', { 0, 0, 17, 17, 17, 19, 13 } },
    { 'v', { 0, 0, 17, 17, 17, 10, 4 } },    { 'w', { 0, 0, 17, 17, 21, 21, 10 } },
    { 'x', { 0, 0, 17, 10, 4, 10, 17 } },    { 'y', { 0, 0, 17, 17, 15, 1, 14 } },
    { 'z', { 0, 0, 31, 2, 4, 8, 31 } },      { '+', { 0, 4, 4, 31, 4, 4, 0 } },
    { '_', { 0, 0, 0, 0, 0, 0, 31 } },       { '=', { 0, 0, 31, 0, 31, 0, 0 } },
    { '(', { 2, 4, 8, 8, 8, 4, 2 } },        { ')', { 8, 4, 2, 2, 2, 4, 8 } },
    { ',', { 0, 0, 0, 0, 12, 4, 8 } },
};

static bool dot_of(char c, int row, int column)
{
    for (size_t i = 0; i < sizeof font / sizeof *font; i++)
        if (font[i].c == c) return font[i].row[row] >> (4 - column) & 1;
    return false;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static int check_canvas(const Tensor *c, const char *op)
{
    if (check_null(c, op, 1)) return -1;
    if (c->ndim == 3 && c->shape[0] == 3 && c->dtype == TENSOR_F32 && c->flags & FLAG_CONTIGUOUS &&
        c->place == &cpu_place)
        return 0;
    return fail(TENSOR_ESHAPE, op, "%s %s: wants a canvas, dense f32 [3, h, w] on the CPU",
                tensor_dtype_name((TensorDtype)c->dtype), S(c));
}

static float part_of(unsigned colour, int channel)
{
    return (float)(colour >> (16 - 8 * channel) & 255) / 255;
}

static void put(Tensor *c, int64_t row, int64_t column, unsigned colour)
{
    int64_t h = c->shape[1], w = c->shape[2];
    if (row < 0 || row >= h || column < 0 || column >= w) return;
    for (int i = 0; i < 3; i++) ((float *)c->data)[i * h * w + row * w + column] = part_of(colour, i);
}

Tensor *io_canvas(int64_t height, int64_t width, unsigned colour)
{
    if (height < 1 || width < 1)
        return fail(TENSOR_ESHAPE, "io_canvas", "%lld x %lld: at least 1 x 1", (long long)height,
                    (long long)width),
               NULL;
    Tensor *c = new_tensor(SHAPE(3, height, width), TENSOR_F32, &cpu_place);
    for (int64_t i = 0; c && i < 3; i++)
        for (int64_t k = 0; k < height * width; k++)
            ((float *)c->data)[i * height * width + k] = part_of(colour, (int)i);
    return own(c);
}

/* Far away is not visible: such a number fits in an integer. */
static double within(double at) { return at < -1e6 ? -1e6 : at > 1e6 ? 1e6 : at; }

int io_draw_dot(Tensor *c, double row, double column, double radius, unsigned colour)
{
    if (check_canvas(c, "io_draw_dot")) return -1;
    if (isnan(row) || isnan(column) || !(radius >= 0)) return 0;
    const int64_t r = (int64_t)ceil(within(radius)), y = (int64_t)floor(within(row) + 0.5),
                  x = (int64_t)floor(within(column) + 0.5);
    for (int64_t i = y - r < 0 ? -y : -r; i <= r && y + i < c->shape[1]; i++)
        for (int64_t j = x - r < 0 ? -x : -r; j <= r && x + j < c->shape[2]; j++)
            if ((double)(i * i + j * j) <= radius * radius) put(c, y + i, x + j, colour);
    return 0;
}

int io_draw_line(Tensor *c, double row0, double column0, double row1, double column1, unsigned colour)
{
    if (check_canvas(c, "io_draw_line")) return -1;
    if (isnan(row0 + row1) || isnan(column0 + column1)) return 0;
    row0 = within(row0), row1 = within(row1), column0 = within(column0), column1 = within(column1);
    const int64_t steps = (int64_t)(fmax(fabs(row1 - row0), fabs(column1 - column0)) + 1);
    for (int64_t i = 0; i <= steps; i++) {
        const double t = (double)i / (double)steps;
        put(c, (int64_t)floor(row0 + t * (row1 - row0) + 0.5),
            (int64_t)floor(column0 + t * (column1 - column0) + 0.5), colour);
    }
    return 0;
}

int io_draw_text(Tensor *c, int64_t row, int64_t column, int size, unsigned colour, const char *text)
{
    if (check_canvas(c, "io_draw_text")) return -1;
    if (!text || size < 1 || size > 1000)
        return fail(TENSOR_EVALUE, "io_draw_text", "text %s, size %d: 1 to 1000", text ? text : "NULL", size);
    for (; *text; text++, column += 6 * size)
        for (int r = 0; r < 7 * size; r++)
            for (int k = 0; k < 5 * size; k++)
                if (dot_of((char)tolower((unsigned char)*text), r / size, k / size))
                    put(c, row + r, column + k, colour);
    return 0;
}
