/* test_watch_answers.c - pictures as letters and event files field by field, as people can check them; the
 * committed file holds them to the letter (answers.h). */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <tapegrad/debug.h>
#include "answers.h"
#include "scratch.h"

/* ---- pictures: a letter a pixel, equal rows as one ------------------------------------------- */

static char letter_of(int r, int g, int b)
{
    static struct {
        int colour;
        char letter;
    } seen[20] = { { 0xffffff, ' ' }, { 0x000000, '.' } };
    static int n = 2;
    const int colour = r << 16 | g << 8 | b;
    for (int i = 0; i < n; i++)
        if (seen[i].colour == colour) return seen[i].letter;
    if (n == 20) return '?';
    seen[n].colour = colour, seen[n].letter = (char)('A' + n - 2);
    answers_about("  %c is %06x", seen[n].letter, (unsigned)colour);
    return seen[n++].letter;
}

static int byte_of(const Tensor *c, int channel, int64_t row, int64_t column)
{
    return (int)(255 * tensor_get(c, DIMS(channel, row, column)) + 0.5);
}

static void row_of(const Tensor *c, int64_t row, char *text)
{
    const int64_t w = tensor_size(c, 2);
    int64_t end = 0;
    for (int64_t k = 0; k < w; k++) {
        text[k] = letter_of(byte_of(c, 0, row, k), byte_of(c, 1, row, k), byte_of(c, 2, row, k));
        if (text[k] != ' ') end = k + 1;
    }
    text[end] = 0;
}

static void show(const char *title, Tensor *c)
{
    char text[2][400], many[24];
    int same = 1;
    const int64_t h = tensor_size(c, 1);
    answers_about("%s", title);
    for (int64_t row = 0; row < h; row++) row_of(c, row, text[0]); /* names the colours first */
    row_of(c, 0, text[0]);
    for (int64_t row = 1; row <= h; row++) {
        if (row < h) row_of(c, row, text[row % 2]);
        if (row < h && strcmp(text[0], text[1]) == 0) same++;
        else {
            *many = 0;
            if (same > 1) snprintf(many, sizeof many, " x%d", same);
            answers_about("  |%s|%s", text[(row - 1) % 2], many);
            same = 1;
        }
    }
}

static void letters(void)
{
    for (int first = ' '; first < 127; first += 16) {
        Tensor *c = io_canvas(9, 6 * 16 + 1, 0xffffff);
        char text[17] = "", title[40];
        for (int k = 0; k < 16 && first + k < 127; k++) text[k] = (char)(first + k), text[k + 1] = 0;
        DONE(io_draw_text(c, 1, 1, 1, 0x000000, text));
        snprintf(title, sizeof title, "letters %s", text);
        show(title, c);
    }
    Tensor *c = io_canvas(16, 26, 0xffffff);
    DONE(io_draw_text(c, 1, -5, 2, 0x0000ff, "Abc"));
    show("twice as large, the first one cut", c);
    c = io_canvas(9, 14, 0xffffff);
    DONE(io_draw_text(c, 3, 2, 1, 0x0000ff, "\xe9g\n"));
    show("what has no letter, and below the end", c);
}

static void shapes(void)
{
    static const double radius[] = { 0, 0.5, 1, 1.5, 2, 2.3, 3 };
    Tensor *c = io_canvas(9, 56, 0xffffff);
    for (int i = 0; i < 7; i++) DONE(io_draw_dot(c, 4, 8 * i + 4, radius[i], 0x000000));
    show("dots", c);
    c = io_canvas(7, 12, 0xffffff);
    DONE(io_draw_dot(c, 0, 0, 2, 0x000000) | io_draw_dot(c, 6, 11, 2, 0xff0000) |
         io_draw_dot(c, 6.5, 0.4, 1, 0x00ff00) | io_draw_dot(c, -1.5, 8.5, 1, 0x0000ff));
    show("dots at the edges", c);
    c = io_canvas(17, 33, 0xffffff);
    for (int i = 0; i < 16; i++) {
        const double angle = 3.14159265358979 / 8 * i;
        DONE(io_draw_line(c, 8, 16, 8 - 8 * sin(angle), 16 + 15 * cos(angle), 0x000000));
    }
    show("lines", c);
    c = io_canvas(5, 9, 0xffffff);
    DONE(io_draw_line(c, 2, 3, 2, 3, 0x000000) | io_draw_line(c, -3, 20, 9, 2, 0xff0000) |
         io_draw_line(c, 0, 0, 0.49, 1.51, 0x000000));
    show("a line of no length, one that is cut, parts of pixels", c);
    c = io_canvas(2, 3, 0x010203);
    DONE(io_draw_dot(c, 0, 0, 0, 0xfffefd));
    show("colours", c);
}

static void save_curves(const char *title, const IoSaveCurvesArgs *args)
{
    DONE(io_save_curves_args(*args));
    Tensor *bytes = io_load_png(args->path);
    show(title, tensor_div_scalar(tensor_to(bytes, TENSOR_F64), 255));
}

static void curve(const char *title, const double *y, int64_t n, const double *x)
{
    IoSaveCurvesArgs args = io_save_curves_defaults;
    IoCurve one = { y, n, x, NULL };
    args.path = scratch("c.png"), args.curves = &one, args.count = 1;
    args.width = 160, args.height = 120;
    save_curves(title, &args);
}

#define CURVE(title, ...) \
    curve(title, (double[])__VA_ARGS__, (int64_t)(sizeof((double[])__VA_ARGS__) / sizeof(double)), NULL)

static void curves(void)
{
    IoSaveCurvesArgs args = io_save_curves_defaults;
    double y[9] = { 1, 0.5, 0.3, NAN, 0.2, INFINITY, 0.12, 0.11, 0.1 }, x[9];
    for (int i = 0; i < 9; i++) x[i] = 100 * i * i;
    IoCurve many[9] = { { y, 9, x, "train" }, { y + 1, 8, x, "" }, { y + 6, 3, NULL, "three" } };
    for (int i = 3; i < 9; i++) many[i] = (IoCurve){ y, 0, NULL, "c" };
    args.path = scratch("c.png"), args.curves = many, args.count = 9;
    args.width = 200, args.height = 190, args.title = "Loss", args.x_label = "step", args.y_label = "nll";
    save_curves("nine curves, two of them with values that are none", &args);
    CURVE("from 0 to 1", { 0, 1 });
    CURVE("from -3 to 4", { -3, 4, -3 });
    CURVE("a fifth of a power of ten", { 0, 1.9 });
    CURVE("a half", { 0, 2 });
    CURVE("a whole", { 0, 5 });
    CURVE("one value", { 7 });
    CURVE("all the same, negative", { -40, -40, -40 });
    CURVE("zeros", { 0, 0 });
    CURVE("nearly the same", { 1, 1 + 0.9e-9 });
    CURVE("hardly not the same", { 1, 1 + 1.1e-9 });
    CURVE("small", { 1e-300, 3e-300 });
    CURVE("large", { -1e300, 1e300 });
    CURVE("as large as can be", { -DBL_MAX, DBL_MAX });
    CURVE("none is finite", { NAN, -INFINITY });
    curve("against x", (double[]){ 1, 2, 3 }, 3, (double[]){ 1e-3, NAN, 3e-3 });
}

/* ---- images as files ------------------------------------------------------------------------- */

static void image(const char *title, int64_t channels, int64_t n, IoGridArgs args)
{
    Tensor *x =
        tensor_reshape(tensor_arange(0, (double)(n * channels * 6), 1, TENSOR_F32), SHAPE(n, channels, 2, 3));
    args.tensor = tensor_div_scalar(x, 255), args.path = scratch("i.png");
    DONE(io_save_image_args(args));
    Tensor *bytes = io_load_png(args.path);
    const TensorShape s = tensor_shape(bytes);
    answers_about("%s: %lld x %lld x %lld", title, (long long)s.dim[0], (long long)s.dim[1],
                  (long long)s.dim[2]);
    for (int64_t k = 0; k < s.dim[0]; k++)
        for (int64_t i = 0; i < s.dim[1]; i++) {
            char line[300] = "";
            for (int64_t j = 0; j < s.dim[2]; j++)
                snprintf(line + strlen(line), sizeof line - strlen(line), " %3.0f",
                         tensor_get(bytes, DIMS(k, i, j)));
            answers_about("  %s", line);
        }
}

static void images(void)
{
    IoGridArgs args = io_grid_defaults;
    image("one image of colours", 3, 1, args);
    args.padding = 1, args.nrow = 2;
    image("three in two columns", 3, 3, args);
    args.pad_value = 0.5;
    image("grey ones", 1, 3, args);
    args.padding = 0, args.nrow = 9, args.normalize = true;
    image("from the least to the greatest", 1, 2, args);
    args.scale_each = true;
    image("each", 1, 2, args);
    args.value_range[0] = 2 / 255., args.value_range[1] = 9 / 255.;
    image("in a range", 1, 2, args);
}

/* ---- event files: field, kind and value of each message -------------------------------------- */

static uint64_t little(const unsigned char *p, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)p[i] << 8 * i;
    return value;
}

static uint64_t varint(const unsigned char *p, size_t *at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        value |= (uint64_t)(p[*at] & 127) << shift;
        if (p[(*at)++] < 128) return value;
    }
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return isnan(value) ? NAN : value; /* whatever its sign */
}

/* What the .proto files call messages: by the path of their fields. */
static bool is_message(const char *path)
{
    static const char *const paths[] = { "5",       "5.1",       "5.1.4", "5.1.5",   "5.1.8",
                                         "5.1.8.2", "5.1.8.2.2", "5.1.9", "5.1.9.1", "7" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(paths[i], path) == 0) return true;
    return false;
}

static void bytes_text(const char *path, const unsigned char *p, size_t n)
{
    char text[400] = "";
    if (strcmp(path, "5.1.5.6") == 0 || strcmp(path, "5.1.5.7") == 0) { /* edges: all; counts: not 0 */
        double before = 0, sum = 0;
        for (size_t i = 0; i < n / 8; i++) {
            const double value = double_of(little(p + 8 * i, 8));
            const bool shown = path[6] == '7' ? value != 0 : i < 3 || i + 3 > n / 8;
            sum += value / (value + before + 1e-30), before = value;
            if (shown && strlen(text) < sizeof text - 40)
                snprintf(text + strlen(text), sizeof text - strlen(text), " %zu: %.15g", i, value);
        }
        answers_about("  %s: %zu numbers, by their quotients %.9g;%s", path, n / 8, sum, text);
        return;
    }
    const bool png = strcmp(path, "5.1.4.4") == 0; /* its head: the rest is zlib's */
    for (size_t i = 0; i < n && i < (png ? 26 : 60); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 p[i] >= ' ' && p[i] < 127 ? "%c" : "\\x%02x", p[i]);
    answers_about("  %s: %s", path, text);
}

static void message(const char *above, const unsigned char *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        char path[80];
        const uint64_t key = varint(p, &at);
        snprintf(path, sizeof path, "%s%s%d", above, *above ? "." : "", (int)(key >> 3));
        const int kind = (int)(key & 7);
        if (kind == 0) answers_about("  %s: %lld", path, (long long)varint(p, &at));
        else if (kind == 1 && strcmp(path, "1") == 0) at += 8; /* the time */
        else if (kind == 1) answers_about("  %s: %.17g", path, double_of(little(p + at, 8))), at += 8;
        else if (kind == 5) {
            float value;
            const uint32_t bits = (uint32_t)little(p + at, 4);
            memcpy(&value, &bits, sizeof value);
            answers_about("  %s: %.9gf", path, (double)value), at += 4;
        } else {
            const size_t length = varint(p, &at);
            if (is_message(path)) answers_about("  %s {", path), message(path, p + at, length);
            else bytes_text(path, p + at, length);
            at += length;
        }
    }
}

static void events(const char *path)
{
    size_t n;
    unsigned char *file = get_file(path, &n);
    for (size_t at = 0; at + 16 <= n;) {
        const size_t length = little(file + at, 8);
        answers_about("event");
        message("", file + at + 12, length);
        at += length + 16;
    }
    free(file);
}

static const char *event_file(void)
{
    static char path[600];
    DIR *d = opendir(scratch_);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, "tfevents")) snprintf(path, sizeof path, "%s/%s", scratch_, e->d_name);
    closedir(d);
    return path;
}

static void summaries(void)
{
    static const double edges[] = { 0, -0., 9.99e-13, 1e-12, -1e-12, 1.0999e-12, 1.1e-12, -5e-324, 1e21 };
    SummaryWriter *w = io_summary_writer(scratch_, .purge_step = 1000);
    DONE(io_summary_add_scalar(w, "loss/train", 0.1, 127));
    DONE(io_summary_add_scalar(w, "k\xc3\xb6", -INFINITY, 128));
    DONE(io_summary_add_scalar(w, "", NAN, INT64_MAX));
    DONE(io_summary_add_text(w, "notes", "*much* \xe2\x82\xac", 3));
    DONE(io_summary_add_histogram(w, "one", tensor_full(SHAPE(3), 2, TENSOR_F32), 16384));
    DONE(io_summary_add_histogram(w, "around zero", tensor_from_data(edges, SHAPE(9), TENSOR_F64), 4));
    DONE(io_summary_add_histogram(w, "whole", tensor_arange(-3, 5, 1, TENSOR_I64), 5));
    DONE(io_summary_add_histogram(
        w, "ends",
        tensor_from_data((double[]){ 1e19, 9.9e19, -9.9e19, -INFINITY, NAN }, SHAPE(5), TENSOR_F64), 6));
    DONE(io_summary_flush(w));
    io_summary_free(w);
    events(event_file());
    unlink(event_file());
    Tensor *x = tensor_to(tensor_reshape(tensor_arange(0, 24, 1, TENSOR_I64), SHAPE(4, 2, 3)), TENSOR_U8);
    w = io_summary_writer(scratch_);
    for (int channels = 1; channels <= 3; channels++)
        if (channels != 2) DONE(io_summary_add_image(w, "i", tensor_slice(x, 0, 0, channels, 1), channels));
    io_summary_free(w);
    events(event_file());
}

int main(int argc, char **argv)
{
    if (scratch_begin(NULL)) return 1;
    answers_begin(argc, argv, "test/io/watch.golden");
    TensorScope scope = tensor_scope_open();
    letters();
    shapes();
    curves();
    images();
    summaries();
    tensor_scope_close(scope);
    return scratch_end(NULL) || answers_end();
}
