/* example.c - data, pictures and time for the examples. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "example.h"

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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
    { 'z', { 0, 0, 31, 2, 4, 8, 31 } },
};

static bool dot_of(char c, int row, int column)
{
    for (size_t i = 0; i < sizeof font / sizeof *font; i++)
        if (font[i].c == c) return font[i].row[row] >> (4 - column) & 1;
    return false;
}

/* ---- pictures -------------------------------------------------------------------------------- */

Tensor *canvas(int64_t height, int64_t width, unsigned colour)
{
    Tensor *c = tensor_empty(SHAPE(3, height, width), TENSOR_F32);
    for (int64_t i = 0; c && i < 3; i++)
        tensor_fill_(tensor_select(c, 0, i), (double)(colour >> (16 - 8 * i) & 255) / 255);
    return c;
}

static void put(Tensor *c, int64_t row, int64_t column, unsigned colour)
{
    int64_t h = tensor_size(c, 1), w = tensor_size(c, 2);
    float *p = tensor_data(c);
    if (row < 0 || row >= h || column < 0 || column >= w) return;
    for (int i = 0; i < 3; i++) p[i * h * w + row * w + column] = (float)(colour >> (16 - 8 * i) & 255) / 255;
}

void draw_dot(Tensor *c, double row, double column, double radius, unsigned colour)
{
    int64_t r = (int64_t)ceil(radius);
    for (int64_t i = -r; c && i <= r; i++)
        for (int64_t j = -r; j <= r; j++)
            if ((double)(i * i + j * j) <= radius * radius)
                put(c, (int64_t)(row + 0.5) + i, (int64_t)(column + 0.5) + j, colour);
}

void draw_line(Tensor *c, double row0, double column0, double row1, double column1, unsigned colour)
{
    int64_t steps = (int64_t)(fmax(fabs(row1 - row0), fabs(column1 - column0)) + 1);
    for (int64_t i = 0; c && i <= steps; i++) {
        double t = (double)i / (double)steps;
        put(c, (int64_t)(row0 + t * (row1 - row0) + 0.5), (int64_t)(column0 + t * (column1 - column0) + 0.5),
            colour);
    }
}

void draw_text(Tensor *c, int64_t row, int64_t column, int size, unsigned colour, const char *text)
{
    for (; c && *text; text++, column += 6 * size)
        for (int r = 0; r < 7 * size; r++)
            for (int k = 0; k < 5 * size; k++)
                if (dot_of(*text, r / size, k / size)) put(c, row + r, column + k, colour);
}

enum { PLOT_HEIGHT = 360, PLOT_WIDTH = 640, LEFT = 76, RIGHT = 24, TOP = 40, BOTTOM = 52 };

static double across(double part) { return LEFT + part * (PLOT_WIDTH - LEFT - RIGHT); }
static double up(double part) { return PLOT_HEIGHT - BOTTOM - part * (PLOT_HEIGHT - BOTTOM - TOP); }

/* Both axes with five ticks each, their values, and what they count. */
static void draw_axes(Tensor *c, const char *x_label, double last, const char *y_label, double low,
                      double high)
{
    char text[32];
    for (int i = 0; i <= 4; i++) {
        const double x = across(i / 4.0), y = up(i / 4.0);
        if (i) draw_line(c, y, LEFT + 1, y, PLOT_WIDTH - RIGHT, 0xe4e4e4);
        draw_line(c, up(0), x, up(0) + 4, x, 0x888888);
        snprintf(text, sizeof text, "%.3g", low + (high - low) * i / 4);
        draw_text(c, (int64_t)y - 3, LEFT - 8 - 6 * (int64_t)strlen(text), 1, 0x222222, text);
        snprintf(text, sizeof text, "%.0f", last * i / 4);
        draw_text(c, (int64_t)up(0) + 8, (int64_t)x - 3 * (int64_t)strlen(text), 1, 0x222222, text);
    }
    draw_line(c, up(1), LEFT, up(0), LEFT, 0x888888);
    draw_line(c, up(0), LEFT, up(0), across(1), 0x888888);
    draw_text(c, (int64_t)up(0) + 26, (int64_t)across(0.5) - 6 * (int64_t)strlen(x_label), 2, 0x222222,
              x_label);
    draw_text(c, 10, 8, 2, 0x222222, y_label);
}

int plot_curve(const char *path, const char *title, const char *x_label, const char *y_label, const double *v,
               int64_t n)
{
    TensorScope scope = tensor_scope_open();
    Tensor *c = canvas(PLOT_HEIGHT, PLOT_WIDTH, 0xffffff);
    double low = INFINITY, high = -INFINITY, last = n > 1 ? (double)(n - 1) : 1;
    for (int64_t i = 0; i < n; i++) low = fmin(low, v[i]), high = fmax(high, v[i]);
    if (!(high > low)) high = low + 1;
    draw_text(c, 10, (int64_t)across(0.5) - 6 * (int64_t)strlen(title), 2, 0x222222, title);
    draw_axes(c, x_label, last, y_label, low, high);
    for (int64_t i = 1; i < n; i++)
        draw_line(c, up((v[i - 1] - low) / (high - low)), across((double)(i - 1) / last),
                  up((v[i] - low) / (high - low)), across((double)i / last), 0x1f6fb4);
    int status = c ? io_save_png(path, c) : -1;
    tensor_scope_close(scope);
    return status;
}

/* ---- MNIST, or digits of our own ------------------------------------------------------------- */

/* A 28 x 28 digit from the font: three times its size, moved, with grey levels and noise, from a small
 * generator that depends on the sample alone. */
static int drawn_digit(void *ctx, int64_t i, Tensor **x, Tensor **y)
{
    uint64_t s = (uint64_t)i * 2 + (ctx != NULL) + 88172645463325252u;
    int digit = (int)(i % 10);
    float pixel[28][28];
    for (int k = 0; k < 4; k++) s = s * 6364136223846793005u + 1442695040888963407u;
    int top = 1 + (int)(s >> 33) % 6, left = 3 + (int)(s >> 40) % 8;
    for (int r = 0; r < 28; r++)
        for (int c = 0; c < 28; c++) {
            s = s * 6364136223846793005u + 1442695040888963407u;
            float noise = (float)(s >> 40) / (float)(1 << 24);
            int row = (r - top) / 3, column = (c - left) / 3;
            bool on =
                r >= top && c >= left && row < 7 && column < 5 && dot_of((char)('0' + digit), row, column);
            pixel[r][c] = on ? 0.6f + 0.4f * noise : 0.25f * noise * noise;
        }
    int64_t label = digit;
    *x = tensor_from_data(pixel, SHAPE(1, 28, 28), TENSOR_F32);
    *y = tensor_from_data(&label, SHAPE(), TENSOR_I64);
    return *x && *y ? 0 : -1;
}

static bool there(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", folder);
    if (access(path, R_OK) == 0) return true;
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte.gz", folder);
    return access(path, R_OK) == 0;
}

static bool drawn;

/* Where MNIST lies; NULL: nowhere.  Looks, and tries a download, once. */
static const char *find_mnist(void)
{
    static char buffer[4096];
    static bool looked;
    static const char *found;
    if (looked) return found;
    looked = true;
    const char *given = getenv("TAPEGRAD_DATA");
    if (given) snprintf(buffer, sizeof buffer, "%s/mnist", given);
    if (given && there(buffer)) found = buffer;
    else if (there("data/mnist") || (access("tools/get_mnist.sh", X_OK) == 0 &&
                                     system("tools/get_mnist.sh data/mnist") == 0 && there("data/mnist")))
        found = "data/mnist";
    if (!found)
        fputs("MNIST was not found and cannot be downloaded: using synthetic digits instead\n", stderr);
    return found;
}

Dataset *example_mnist(const char *folder, DataSplit split)
{
    static char test_digits;            /* a context that is not NULL draws other ones */
    if (!folder) folder = find_mnist(); /* named by the caller: it is there, or an error */
    if (folder) return data_mnist(folder, split, .mean = 0.1307, .std = 0.3081);
    drawn = true;
    return data_custom(split == DATA_TRAIN ? 10000 : 2000, drawn_digit, NULL,
                       split == DATA_TRAIN ? NULL : &test_digits);
}

const char *example_mnist_note(void) { return drawn ? " (synthetic digits)" : ""; }
