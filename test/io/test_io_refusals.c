/* test_io_refusals.c - what readers, writers, pictures and logs refuse, each limit from both sides
 * (answers.h).  Damaged files are test_io_answers.c's. */
#include <math.h>
#include <tapegrad/watch.h>
#include "answers.h"
#include "scratch.h"

static const char not_utf8[] = "\xc3(";

static void dictionaries(void)
{
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F32);
    char name[] = "x", reserved[] = "__metadata__", odd[] = "\xc3(", checksum[] = "crc32c";
    TensorDictItem items[] = { { name, x }, { NULL, x } }, other = { name, NULL };
    const char *path = scratch("d.safetensors");
    const TensorDict one = { .item = items, .count = 1 };
    ANSWER(io_save_safetensors(NULL, one));
    ANSWER(io_save_safetensors(path, { .count = -1 }));
    ANSWER(io_save_safetensors(path, { .count = 1 }));
    ANSWER(io_save_safetensors(path, { .item = items, .count = 2 }));
    ANSWER(io_save_safetensors(path, { .item = &other, .count = 1 }));
    items[1].name = reserved;
    ANSWER(io_save_safetensors(path, { .item = items, .count = 2 }));
    items[1].name = odd;
    ANSWER(io_save_safetensors(path, { .item = items, .count = 2 }));
    ANSWER(io_save_safetensors(path, one, .metadata.count = -1));
    ANSWER(io_save_safetensors(path, one, .metadata.count = 1));
    ANSWER(io_save_safetensors(path, one, .metadata = { &(IoText){ name, NULL }, 1 }));
    ANSWER(io_save_safetensors(path, one, .metadata = { &(IoText){ NULL, name }, 1 }));
    ANSWER(io_save_safetensors(path, one, .metadata = { &(IoText){ checksum, name }, 1 }));
    ANSWER(io_save_safetensors(path, one, .metadata = { &(IoText){ odd, name }, 1 }));
    ANSWER(io_save_safetensors(path, one, .metadata = { &(IoText){ name, odd }, 1 }));
    ANSWER(io_save_safetensors(path, one, .metadata = { &(IoText){ name, name }, 1 }));
    ANSWER(io_save_safetensors(scratch_, one));
    ANSWER(io_save_safetensors("/dev/null", one));
    ANSWER(io_save_safetensors(scratch("no/d.safetensors"), one));
}

static void checksums(void)
{
    char name[] = "x";
    TensorDictItem item = { name, tensor_ones(SHAPE(4), TENSOR_F32) };
    size_t n;
    const char *path = scratch("sum.safetensors");
    ANSWER(io_save_safetensors(path, { .item = &item, .count = 1 }, .checksum = true));
    unsigned char *bytes = get_file(path, &n);
    put_file("sum.safetensors", bytes, n - 1);
    ANSWER(nn_dict_free(io_load_safetensors(path)));
    bytes[n - 1] ^= 1;
    put_file("sum.safetensors", bytes, n);
    ANSWER(nn_dict_free(io_load_safetensors(path)));
    bytes[n - 1] ^= 1;
    put_file("sum.safetensors", bytes, n);
    ANSWER(nn_dict_free(io_load_safetensors(path)));
    free(bytes);
}

/* One tensor of which the values begin elsewhere than its header says. */
static void layouts(void)
{
    static const char header[] = "        {\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[#,@]}}...";
    for (char from = '0'; from < '3'; from++) {
        char file[sizeof header];
        memcpy(file, header, sizeof header);
        memset(file, 0, 8), file[0] = (char)(sizeof header - 1 - 8 - 3);
        *strchr(file + 8, '#') = from, *strchr(file + 8, '@') = (char)(from + 1);
        const char *path = put_file("two.safetensors", file, sizeof header - 1 - (from < '2'));
        ANSWER(nn_dict_free(io_load_safetensors(path)));
    }
}

static void pictures(void)
{
    static const unsigned char vast[] = { /* 100000 x 100000 pixels of a bit, and no data */
                                          0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0, 0,    13,
                                          'I',  'H', 'D', 'R', 0,    1,    0x86, 0xa0, 0,    1, 0x86, 0xa0,
                                          1,    0,   0,   0,   0,    0x80, 0x29, 0x36, 0x65, 0, 0,    0,
                                          0,    'I', 'D', 'A', 'T',  0x35, 0xaf, 0x06, 0x1e
    };
    Tensor *grey = tensor_ones(SHAPE(2, 3), TENSOR_F32), *four = tensor_ones(SHAPE(4, 2, 3), TENSOR_F32),
           *dot = tensor_ones(SHAPE(1, 1), TENSOR_U8), *line = tensor_expand(dot, SHAPE(1, 1 << 20)),
           *long_line = tensor_expand(dot, SHAPE(1, 1 << 21));
    ANSWER(io_save_png(NULL, grey));
    ANSWER(io_save_png(scratch("a.png"), NULL));
    ANSWER(io_save_png(scratch("a.png"), grey));
    ANSWER(io_save_png(scratch("a.png"), four));
    ANSWER(io_save_png(scratch("a.png"), tensor_narrow(four, 0, 0, 2)));
    ANSWER(io_save_png(scratch("a.png"), tensor_narrow(four, 0, 0, 3)));
    ANSWER(io_save_png(scratch("a.png"), tensor_ones(SHAPE(1, 1, 2, 3), TENSOR_F32)));
    ANSWER(io_save_png(scratch("a.png"), tensor_ones(SHAPE(3), TENSOR_F32)));
    ANSWER(io_save_png(scratch("a.png"), tensor_ones(SHAPE(0, 3), TENSOR_F32)));
    ANSWER(io_save_png(scratch("a.png"), tensor_ones(SHAPE(3, 0), TENSOR_F32)));
    ANSWER(io_save_png(scratch("a.png"), tensor_ones(SHAPE(2, 3), TENSOR_I64)));
    ANSWER(io_save_png(scratch("a.png"), tensor_ones(SHAPE(2, 3), TENSOR_BOOL)));
    ANSWER(io_save_png(scratch("a.png"), long_line));
    ANSWER(io_save_png(scratch("a.png"), tensor_transpose(long_line, 0, 1)));
    ANSWER(io_save_png(scratch("a.png"), tensor_expand(line, SHAPE(4096, 1 << 20))));
    ANSWER(io_save_png(scratch_, grey));
    ANSWER(io_load_png(NULL));
    ANSWER(io_load_png(scratch("none.png")));
    ANSWER(io_load_png(put_file("text.png", "no picture", 10)));
    ANSWER(io_load_png(put_file("vast.png", vast, sizeof vast)));
}

static void grids(void)
{
    Tensor *images = tensor_ones(SHAPE(2, 1, 3, 3), TENSOR_F32), *bytes = tensor_ones(SHAPE(3, 3), TENSOR_U8);
    ANSWER(io_make_grid(NULL));
    ANSWER(io_make_grid(tensor_ones(SHAPE(3), TENSOR_F32)));
    ANSWER(io_make_grid(tensor_ones(SHAPE(1, 1, 1, 3, 3), TENSOR_F32)));
    ANSWER(io_make_grid(tensor_ones(SHAPE(0, 1, 3, 3), TENSOR_F32)));
    ANSWER(io_make_grid(images, 0));
    ANSWER(io_make_grid(images, 1));
    ANSWER(io_make_grid(images, 1, -1));
    ANSWER(io_make_grid(images, 1, 0));
    ANSWER(io_make_grid(images, 1, (1 << 20) + 1));
    ANSWER(io_make_grid(images, .normalize = true, .value_range = { 1, 0.5 }));
    ANSWER(io_make_grid(images, .normalize = true, .value_range = { 0.5, 0.5 }));
    ANSWER(io_make_grid(bytes, .normalize = true));
    ANSWER(io_make_grid(bytes));
    ANSWER(io_save_image(images, NULL));
    ANSWER(io_save_image(images, ".png"));
    ANSWER(io_save_image(images, "grid.jpg"));
    ANSWER(io_save_image(NULL, scratch("grid.png")));
    ANSWER(io_save_image(images, scratch("grid.PNG")));
}

static void drawings(void)
{
    Tensor *c = io_canvas(10, 10, 0), *grey = tensor_ones(SHAPE(1, 10, 10), TENSOR_F32),
           *wide = tensor_ones(SHAPE(3, 10, 10), TENSOR_F64);
    ANSWER(io_canvas(0, 1, 0));
    ANSWER(io_canvas(1, 0, 0));
    ANSWER(io_canvas(1, 1, 0));
    ANSWER(io_draw_dot(NULL, 0, 0, 1, 0));
    ANSWER(io_draw_dot(grey, 0, 0, 1, 0));
    ANSWER(io_draw_line(wide, 0, 0, 1, 1, 0));
    ANSWER(io_draw_line(tensor_transpose(c, 1, 2), 0, 0, 1, 1, 0));
    ANSWER(io_draw_text(tensor_select(c, 0, 0), 0, 0, 1, 0, "a"));
    ANSWER(io_draw_text(c, 0, 0, 0, 0, "a"));
    ANSWER(io_draw_text(c, 0, 0, 1001, 0, "a"));
    ANSWER(io_draw_text(c, 0, 0, 1000, 0, "a"));
    ANSWER(io_draw_text(c, 0, 0, 1, 0, NULL));
}

static void curves(void)
{
    const double y[] = { 1, 2 };
    const IoCurve two = { .y = y, .count = 2 }, none = { .count = 1 }, less = { .y = y, .count = -1 };
    const char *path = scratch("c.png");
    ANSWER(io_save_curves(NULL, &two, 1));
    ANSWER(io_save_curves(path, NULL, 1));
    ANSWER(io_save_curves(path, &two, 1, .title = NULL));
    ANSWER(io_save_curves(path, &two, 1, .x_label = NULL));
    ANSWER(io_save_curves(path, &two, 1, .y_label = NULL));
    ANSWER(io_save_curves("c.gif", &two, 1));
    ANSWER(io_save_curves(path, &two, 0));
    ANSWER(io_save_curves(path, &none, 1));
    ANSWER(io_save_curves(path, &less, 1));
    ANSWER(io_save_curves(path, &two, 1, .width = 159));
    ANSWER(io_save_curves(path, &two, 1, .width = 160));
    ANSWER(io_save_curves(path, &two, 1, .width = 10000, .height = 120));
    ANSWER(io_save_curves(path, &two, 1, .width = 10001));
    ANSWER(io_save_curves(path, &two, 1, .height = 119));
    ANSWER(io_save_curves(path, &two, 1, .width = 160, .height = 10000));
    ANSWER(io_save_curves(path, &two, 1, .height = 10001));
}

static void logs(void)
{
    const char *path = scratch("log.csv");
    CsvLog *log = io_csv_log(path, "step,loss");
    ANSWER(io_csv_log(NULL, "step"));
    ANSWER(io_csv_log(path, NULL));
    ANSWER(io_csv_log(path, ""));
    ANSWER(io_csv_log(path, "step\nloss"));
    ANSWER(io_csv_log(path, "step\rloss"));
    ANSWER(io_csv_log_row(log, 1));
    ANSWER(io_csv_log_row(log, 1, 2));
    ANSWER(io_csv_log_row(log, 1, 2, 3));
    ANSWER(io_csv_log_write(log, NULL, 2));
    ANSWER(io_csv_log(path, "step,accuracy", .resume = true));
    ANSWER(io_csv_log(path, "step", .resume = true));
    ANSWER(io_csv_log(scratch_, "step"));
    io_csv_log_free(log);
}

static void events(void)
{
    SummaryWriter *w = io_summary_writer(scratch_);
    Tensor *x = tensor_ones(SHAPE(2, 2), TENSOR_F32), *none = tensor_ones(SHAPE(2, 0), TENSOR_F32);
    ANSWER(io_summary_writer(NULL));
    ANSWER(io_summary_writer(put_file("file", "", 0)));
    ANSWER(io_summary_add_scalar(w, NULL, 1, 0));
    ANSWER(io_summary_add_scalar(w, not_utf8, 1, 0));
    ANSWER(io_summary_add_scalar(w, "a", 1, 0));
    ANSWER(io_summary_add_text(w, "a", NULL, 0));
    ANSWER(io_summary_add_text(w, "a", not_utf8, 0));
    ANSWER(io_summary_add_text(w, NULL, "b", 0));
    ANSWER(io_summary_add_histogram(w, not_utf8, x, 0));
    ANSWER(io_summary_add_histogram(w, "a", NULL, 0));
    ANSWER(io_summary_add_histogram(w, "a", none, 0));
    ANSWER(io_summary_add_image(w, NULL, x, 0));
    ANSWER(io_summary_add_image(w, "a", NULL, 0));
    ANSWER(io_summary_add_image(w, "a", none, 0));
    ANSWER(io_summary_add_image(w, "a", tensor_ones(SHAPE(2, 2), TENSOR_I32), 0));
    io_summary_free(w);
}

static void readers(void)
{
    IoMetadata m = { 0 };
    ANSWER(io_read_idx(NULL));
    ANSWER(io_read_idx(scratch("none")));
    ANSWER(io_read_idx(scratch_));
    ANSWER(io_read_idx(put_file("broken.gz", "\x1f\x8b\x08\0\0\0\0\0\0\x03\x07", 11)));
    ANSWER(nn_dict_free(io_load_safetensors(NULL)));
    ANSWER(nn_dict_free(io_load_safetensors(scratch("none"))));
    ANSWER(io_metadata_set(NULL, "a", "b"));
    ANSWER(io_metadata_set(&m, NULL, "b"));
    ANSWER(io_metadata_set(&m, "a", NULL));
    ANSWER(io_make_folder(NULL));
    ANSWER(io_make_folder(put_file("file", "", 0)));
    ANSWER(io_progress(1, .desc = NULL));
    ANSWER(io_progress(1, .unit = NULL));
    ANSWER(io_progress(-1));
}

int main(int argc, char **argv)
{
    if (scratch_begin(NULL)) return 1;
    answers_begin(argc, argv, "test/io/refusals.golden");
    answers_hide(scratch_);
    answers_of("dictionaries", dictionaries);
    answers_of("checksums", checksums);
    answers_of("layouts", layouts);
    answers_of("pictures", pictures);
    answers_of("grids", grids);
    answers_of("drawings", drawings);
    answers_of("curves", curves);
    answers_of("logs", logs);
    answers_of("events", events);
    answers_of("readers", readers);
    return scratch_end(NULL) || answers_end();
}
