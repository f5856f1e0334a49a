/* test_watch.c - progress, CSV, event files, grids, curves: what other programs and people look at.  What
 * they make of it is test/interop's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <tapegrad/debug.h>
#include "io/crc32c.h"
#include "scratch.h"

static char *text_of(const char *path)
{
    size_t n;
    char *text = (char *)get_file(path, &n);
    text[n] = 0;
    return text;
}

static void assert_text(const char *path, const char *want)
{
    char *found = text_of(path);
    assert_string_equal(found, want);
    free(found);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void test_csv_rows(void **state)
{
    (void)state;
    CsvLog *log = io_csv_log(scratch("log.csv"), "step,loss,note");
    DONE(io_csv_log_row(log, 0, 0.1, 1e300));
    DONE(io_csv_log_row(log, 1, 1.0 / 3, -INFINITY));
    assert_text(scratch("log.csv"),
                "step,loss,note\n0,0.1,1e+300\n1,0.3333333333333333,-inf\n"); /* at once */
    DONE(io_csv_log_row(log, 2, NAN, 5e-324));
    assert_int_equal(io_csv_log_row(log, 1, 2), -1);
    assert_says(TENSOR_EVALUE, "io_csv_log_row: 2 numbers for 3 columns");
    io_csv_log_free(log);
    char *text = text_of(scratch("log.csv"));
    assert_non_null(strstr(text, "\n2,nan,4.94065645841247e-324\n"));
    free(text);
    DONE(io_csv_log_row((CsvLog *)NULL, 1));
}

static void test_csv_goes_on(void **state)
{
    (void)state;
    static const char old[] = "step,loss\n0,1\n10,0.5\n20,0.25\n30,0.12", *path;
    path = put_file("log.csv", old, sizeof old - 1);
    CsvLog *log = io_csv_log(path, "step,loss", .resume = true, .before = 20);
    DONE(io_csv_log_row(log, 20, 0.3));
    io_csv_log_free(log);
    assert_text(path, "step,loss\n0,1\n10,0.5\n20,0.3\n");
    put_file("log.csv", old, sizeof old - 1);
    log = io_csv_log(path, "step,loss", .resume = true); /* all whole rows */
    io_csv_log_free(log);
    assert_text(path, "step,loss\n0,1\n10,0.5\n20,0.25\n");
    log = io_csv_log(path, "step,loss,lr", .resume = true);
    assert_null(log);
    assert_says(TENSOR_EFORMAT, "has the columns step,loss, not step,loss,lr");
    assert_text(path, "step,loss\n0,1\n10,0.5\n20,0.25\n");
    put_file("log.csv", "ste", 3); /* killed in its first line */
    assert_null(io_csv_log(scratch("no/folder.csv"), "a"));
    assert_says(TENSOR_EIO, "folder.csv cannot be written");
    log = io_csv_log(path, "step,loss", .resume = true);
    DONE(io_csv_log_row(log, 1, 2));
    io_csv_log_free(log);
    assert_text(path, "step,loss\n1,2\n");
    log = io_csv_log(path, "a"); /* anew */
    io_csv_log_free(log);
    assert_text(path, "a\n");
    log = io_csv_log(scratch("new.csv"), "a", .resume = true);
    io_csv_log_free(log);
    assert_text(scratch("new.csv"), "a\n");
    assert_null(io_csv_log(NULL, "a"));
    assert_says(TENSOR_ENULL, "io_csv_log: path or columns are NULL");
    assert_null(io_csv_log(path, "a\nb"));
    assert_says(TENSOR_EVALUE, "names on one line");
}

static void test_csv_on_a_full_disk(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK)) return;
    assert_null(io_csv_log("/dev/full", "a"));
    assert_says(TENSOR_EIO, "/dev/full cannot be written");
}

/* ---- event files ----------------------------------------------------------------------------- */

static uint64_t little(const unsigned char *p, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)p[i] << 8 * i;
    return value;
}

static uint32_t masked(const unsigned char *p, size_t n)
{
    uint32_t crc = crc32c(0, p, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The records, their checksums checked; of the last one the bytes after the time. */
static int records(const char *path, unsigned char last[256])
{
    size_t n;
    int count = 0;
    unsigned char *file = get_file(path, &n);
    for (size_t at = 0; at < n; count++) {
        assert_true(at + 16 <= n);
        size_t length = little(file + at, 8);
        assert_int_equal(little(file + at + 8, 4), masked(file + at, 8));
        assert_true(at + 16 + length <= n);
        assert_int_equal(little(file + at + 12 + length, 4), masked(file + at + 12, length));
        assert_int_equal(file[at + 12], 1 << 3 | 1);
        memset(last, 0, 256);
        memcpy(last, file + at + 12 + 9, length - 9 < 256 ? length - 9 : 256);
        at += length + 16;
    }
    free(file);
    return count;
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

static void clear_events(void)
{
    for (const char *path = event_file(); unlink(path) == 0;) path = event_file();
}

/* A disk that is full: the file that was there stays, the error says why, and the run can go on. */
static void test_pictures_on_a_full_disk(void **state)
{
    (void)state;
    size_t n;
    Tensor *x = tensor_rand(SHAPE(4, 3, 40, 40), TENSOR_F32);
    DONE(io_save_image(x, scratch("kept.png")));
    unsigned char *old = get_file(scratch("kept.png"), &n);
    SummaryWriter *writer = io_summary_writer(scratch_);
    DONE(io_summary_add_scalar(writer, "loss", 1, 0));
    DONE(io_summary_flush(writer));
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){ 1000, before.rlim_max };
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const int image = io_save_image(tensor_rsub_scalar(x, 1), scratch("kept.png"));
    char text[1000];
    snprintf(text, sizeof text, "%s", tensor_error());
    tensor_error_clear();
    const int event = io_summary_add_image(writer, "x", tensor_select(x, 0, 0), 1);
    const int flush = event ? -1 : io_summary_flush(writer);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(flush, -1);
    assert_says(TENSOR_EIO, "cannot be written: File too large");
    assert_int_equal(image, -1);
    assert_non_null(strstr(text, "kept.png cannot be written: File too large"));
    unsigned char *now = get_file(scratch("kept.png"), &n);
    assert_memory_equal(old, now, n);
    free(old), free(now);
    /* what comes later is not behind half a record */
    unsigned char last[256];
    assert_int_equal(records(event_file(), last), 2);
    DONE(io_summary_add_scalar(writer, "a", 0.5, 1));
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 20, before.rlim_max });
    signal(SIGXFSZ, SIG_IGN);
    io_summary_free(writer);
    signal(SIGXFSZ, handler);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_says(TENSOR_EIO, "io_summary_free: ");
    writer = io_summary_writer(scratch_);
    DONE(io_summary_add_scalar(writer, "a", 0.5, 1));
    io_summary_free(writer);
    assert_int_equal(records(event_file(), last), 2);
    clear_events();
}

static void test_events(void **state)
{
    (void)state;
    unsigned char last[256];
    SummaryWriter *w = io_summary_writer(scratch_, .purge_step = 300);
    assert_int_equal(records(event_file(), last), 2); /* the version, the purge */
    assert_memory_equal(last, "\x10\xac\x02\x3a\x02\x08\x01", 8);
    DONE(io_summary_add_scalar(w, "a", 0.5, 1));
    DONE(io_summary_flush(w));
    assert_int_equal(records(event_file(), last), 3);
    assert_memory_equal(last,
                        "\x10\x01\x2a\x0a\x0a\x08\x0a\x01"
                        "a"
                        "\x15\0\0\0\x3f",
                        15);
    DONE(io_summary_add_image(w, "i", tensor_zeros(SHAPE(3, 4), TENSOR_U8), 2));
    DONE(io_summary_add_text(w, "t", "x", 3));
    DONE(io_summary_add_histogram(w, "h", VEC(1, 2, 2, -1e30, NAN), 4));
    io_summary_free(w);
    assert_int_equal(records(event_file(), last), 6);
    unlink(event_file());
}

static void test_events_refused(void **state)
{
    (void)state;
    SummaryWriter *w = io_summary_writer(scratch_), *none = NULL;
    assert_int_equal(io_summary_add_scalar(w, NULL, 1, 1), -1);
    assert_says(TENSOR_ENULL, "io_summary_add_scalar: the tag is NULL");
    assert_int_equal(io_summary_add_text(w, "\xff", "x", 1), -1);
    assert_says(TENSOR_EVALUE, "no UTF-8");
    assert_int_equal(io_summary_add_image(w, "i", tensor_zeros(SHAPE(2, 3, 4), TENSOR_F32), 1), -1);
    assert_says(TENSOR_ESHAPE, "io_summary_add_image: [2, 3, 4]");
    assert_int_equal(io_summary_add_histogram(w, "h", tensor_zeros(SHAPE(0), TENSOR_F32), 1), -1);
    assert_says(TENSOR_ESHAPE, "has no elements");
    io_summary_free(w);
    unlink(event_file());
    DONE(io_summary_add_scalar(none, "a", 1, 1) | io_summary_add_text(none, "a", "b", 1) |
         io_summary_add_image(none, "a", NULL, 1) | io_summary_add_histogram(none, "a", NULL, 1));
    put_file("file", "", 0);
    assert_null(io_summary_writer(scratch("file/folder")));
    assert_says(TENSOR_EIO, "io_summary_writer: ");
    assert_int_equal(io_make_folder(scratch("file/folder")), -1);
    assert_says(TENSOR_EIO, "cannot be made: ");
    assert_int_equal(io_make_folder(NULL), -1);
    assert_says(TENSOR_ENULL, "io_make_folder: the path is NULL");
    DONE(io_make_folder(scratch(""))), DONE(io_make_folder("/"));
}

/* ---- progress -------------------------------------------------------------------------------- */

static void test_progress_is_quiet_elsewhere(void **state)
{
    (void)state;
    FILE *f = fopen(scratch("bar"), "w");
    Progress *bar = io_progress(10, .file = f, .interval = 0);
    for (int i = 0; i < 10; i++) io_progress_update(bar, 1, "loss %.2f", 0.5);
    assert_false(io_progress_due(bar)); /* nobody sees it */
    io_progress_free(bar);
    fclose(f);
    assert_text(scratch("bar"), "");
    io_progress_update(NULL, 1, NULL), io_progress_free(NULL);
    assert_null(io_progress(-1));
    assert_says(TENSOR_EVALUE, "io_progress: total -1");
}

static void test_progress_on_a_terminal(void **state)
{
    (void)state;
    char text[4096] = "";
    int other = posix_openpt(O_RDWR | O_NOCTTY);
    if (other < 0 || grantpt(other) || unlockpt(other)) skip(); /* no terminals here */
    FILE *f = fopen(ptsname(other), "w");
    assert_non_null(f);
    Progress *bar = io_progress(8, .desc = "epoch", .file = f, .interval = 0);
    assert_true(io_progress_due(bar));
    io_progress_update(bar, 2, "loss %.2f", 0.5);
    io_progress_update(bar, 4, NULL);
    io_progress_free(bar);
    Progress *open_end = io_progress(0, .unit = "b", .file = f);
    io_progress_update(open_end, 3, NULL);
    io_progress_free(open_end);
    Progress *gone = io_progress(2, .file = f, .interval = 1e9, .leave = false);
    io_progress_update(gone, 1, NULL);
    io_progress_free(gone);
    Progress *rare = io_progress(3, .desc = "last", .file = f, .interval = 1e9);
    io_progress_update(rare, 1, "first text");
    assert_false(io_progress_due(rare) || io_progress_due(NULL));
    io_progress_update(rare, 2, "last text");
    io_progress_free(rare);
    for (size_t n = 0; n < sizeof text - 1 && !strstr(text, "last: 100%");) {
        ssize_t got = read(other, text + n, sizeof text - 1 - n);
        if (got <= 0) break;
        n += (size_t)got;
    }
    fclose(f), close(other);
    assert_non_null(strstr(text, "\repoch:  25%|######..................| 2/8 [00:00<"));
    assert_non_null(strstr(text, "it/s, loss 0.50]"));
    assert_non_null(strstr(text, "epoch:  75%|##################......| 6/8"));
    assert_non_null(strstr(text, "\033[K\r\n\r3b [00:00, ")); /* the last one stays */
    assert_non_null(strstr(text, "\r\033[K\rlast: "));        /* this one does not */
    assert_non_null(strstr(text, ", last text]"));
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void test_grid(void **state)
{
    (void)state;
    Tensor *x = tensor_reshape(tensor_arange(1, 4, 1, TENSOR_F64), SHAPE(3, 1, 1, 1));
    Tensor *grid = io_make_grid(x, 2, 1, .pad_value = -1);
    assert_true(shape_equal(shape_of(grid), SHAPE(3, 5, 5)));
    assert_values(tensor_select(grid, 0, 1), -1, -1, -1, -1, -1, -1, 1, -1, 2, -1, -1, -1, -1, -1, -1, -1, 3,
                  -1, -1, -1, -1, -1, -1, -1, -1); /* the last place stays empty */
    assert_values(tensor_select(io_make_grid(x, .padding = 0, .normalize = true), 0, 2), 0, 0.5, 1);
    assert_values(io_make_grid(tensor_select(x, 0, 2)), 3, 3, 3); /* one: as it is, in RGB */
    assert_values(x, 1, 2, 3);
    Tensor *leaf = LEAF_MAT(2, 1, 2, 3, 4);
    assert_false(tensor_requires_grad(io_make_grid(leaf)));
    assert_int_equal(tensor_dtype(io_make_grid(tensor_to(x, TENSOR_U8))), TENSOR_U8);
}

static void test_grid_refused(void **state)
{
    (void)state;
    Tensor *x = tensor_zeros(SHAPE(2, 3, 4, 4), TENSOR_F32);
    assert_null(io_make_grid(x, 0));
    assert_says(TENSOR_EVALUE, "io_make_grid: nrow 0, padding 2");
    assert_null(io_make_grid(tensor_to(x, TENSOR_I64), .normalize = true));
    assert_says(TENSOR_EVALUE, "normalize: wants floats (found i64)");
    assert_null(io_make_grid(x, .normalize = true, .value_range = { 1, 0 }));
    assert_says(TENSOR_EVALUE, "value_range");
    assert_null(io_make_grid(VEC(1)));
    assert_says(TENSOR_ESHAPE, "io_make_grid: [1]: wants images");
    assert_null(io_make_grid(tensor_zeros(SHAPE(0, 3, 4, 4), TENSOR_F32)));
    assert_says(TENSOR_ESHAPE, "[0, 3, 4, 4]");
    assert_int_equal(io_save_image(tensor_zeros(SHAPE(2, 5, 4, 4), TENSOR_F32), scratch("no.png")), -1);
    assert_says(TENSOR_ESHAPE, "io_save_image: ");
    assert_null(io_make_grid(NULL));
    assert_says(TENSOR_ENULL, "io_make_grid: ");
}

static void test_save_image(void **state)
{
    (void)state;
    Tensor *x = tensor_from_data((float[]){ -1, 0.5f, 0.002f, 7 }, SHAPE(1, 1, 2, 2), TENSOR_F32);
    DONE(io_save_image(x, scratch("i.png")));
    assert_values(tensor_select(io_load_png(scratch("i.png")), 0, 0), 0, 128, 1, 255);
    DONE(io_save_image(tensor_to(tensor_full(SHAPE(2, 1, 1, 1), 9, TENSOR_F32), TENSOR_U8), scratch("i.png"),
                       .padding = 0));
    assert_values(tensor_select(io_load_png(scratch("i.png")), 0, 0), 9, 9);
}

static double ink(Tensor *c)
{
    return tensor_item(tensor_sum(tensor_to(tensor_ne_scalar(c, 0), TENSOR_F64)));
}

static void test_drawing(void **state)
{
    (void)state;
    Tensor *c = io_canvas(10, 12, 0);
    assert_near(ink(c), 0, 0);
    DONE(io_draw_dot(c, 0, 0, 1, 0xff0000)); /* three of five are inside */
    assert_near(ink(c), 3, 0);
    DONE(io_draw_line(c, 5, -100, 5, 1e300, 0x00ff00));
    assert_near(ink(c), 3 + 12, 0);
    DONE(io_draw_dot(c, NAN, 1, 3, 0xffffff) | io_draw_line(c, 0, 0, 1, NAN, 0xffffff));
    DONE(io_draw_dot(c, 1e12, -1e12, 3, 0xffffff) | io_draw_text(c, -100, -100, 3, 0xffffff, "far"));
    assert_near(ink(c), 15, 0);
    Tensor *text = io_canvas(7, 12, 0), *upper = io_canvas(7, 12, 0);
    DONE(io_draw_text(text, 0, 0, 1, 0x0000ff, "i-") | io_draw_text(upper, 0, 0, 1, 0x0000ff, "I-"));
    assert_near(ink(text), 9 + 5, 0);
    assert_true(tensor_equal(text, upper));
    DONE(io_draw_dot(c, 5, 5, 1e9, 0xffffff)); /* all of it, in a moment */
    assert_near(ink(c), 360, 0);
    assert_int_equal(io_draw_dot(VEC(1), 0, 0, 1, 0), -1);
    assert_says(TENSOR_ESHAPE, "io_draw_dot: f64 [1]: wants a canvas");
    assert_int_equal(io_draw_text(c, 0, 0, 0, 0, "x"), -1);
    assert_says(TENSOR_EVALUE, "size 0");
    assert_null(io_canvas(0, 5, 0));
    assert_says(TENSOR_ESHAPE, "io_canvas: 0 x 5");
}

static Tensor *curves(const double *y, int64_t n, const double *x)
{
    DONE(io_save_curves(scratch("c.png"), &(IoCurve){ y, n, x, "name" }, 1, .title = "t", .y_label = "l"));
    return io_load_png(scratch("c.png"));
}

static void test_curves(void **state)
{
    (void)state;
    Tensor *picture = curves((double[]){ 1, 3, 2 }, 3, NULL);
    assert_true(shape_equal(shape_of(picture), SHAPE(3, 360, 640)));
    assert_near(tensor_get(picture, DIMS(0, 308, 76)), 0x1f, 0); /* the first point: least of both axes */
    assert_near(tensor_get(picture, DIMS(0, 40, 346)), 0x1f, 0); /* the second: in the middle, at the top */
    assert_near(tensor_get(picture, DIMS(0, 174, 616)), 0x1f, 0);
    assert_true(tensor_equal(picture, curves((double[]){ 1, 3, 2 }, 3, (double[]){ 0, 1, 2 })));
    /* numbers that no axis would fit: nothing, one value, all the same, none finite, huge */
    curves(NULL, 0, NULL), curves((double[]){ 5 }, 1, NULL), curves((double[]){ 0, 0 }, 2, NULL);
    curves((double[]){ NAN, INFINITY }, 2, NULL), curves((double[]){ -1e300, NAN, 1e300 }, 3, NULL);
    curves((double[]){ -DBL_MAX, DBL_MAX }, 2, NULL), curves((double[]){ 0, 5e-324 }, 2, NULL);
    curves((double[]){ 1, 1 + 2e-16 }, 2, (double[]){ 1e300, 2e300 });
    static const char *const names[] = { "c.jpg", "c", "png", ".png.bmp", "" };
    for (int i = 0; i < 5; i++) {
        assert_int_equal(io_save_curves(names[i], &(IoCurve){ (double[]){ 1 }, 1 }, 1), -1);
        assert_says(TENSOR_EVALUE, "io_save_curves: ");
        assert_int_equal(io_save_image(tensor_zeros(SHAPE(4, 4), TENSOR_F32), names[i]), -1);
        assert_says(TENSOR_EVALUE, "only PNG is written, to a name that ends in .png");
        assert_true(access(names[i], F_OK) != 0 || !*names[i]);
    }
    DONE(io_save_image(tensor_zeros(SHAPE(4, 4), TENSOR_F32), scratch("i.PNG")));
    assert_int_equal(io_save_image(tensor_zeros(SHAPE(4, 4), TENSOR_F32), NULL), -1);
    assert_says(TENSOR_ENULL, "io_save_image: the path is NULL");
    assert_int_equal(io_save_curves(scratch("c.png"), NULL, 1), -1);
    assert_says(TENSOR_ENULL, "io_save_curves: ");
    assert_int_equal(io_save_curves(scratch("c.png"), &(IoCurve){ NULL, 3 }, 1), -1);
    assert_says(TENSOR_ENULL, "curve 0 has no values");
    assert_int_equal(io_save_curves(scratch("c.png"), &(IoCurve){ NULL, 0 }, 1, .width = 20), -1);
    assert_says(TENSOR_EVALUE, "20 x 360");
}

/* ---- failing memory -------------------------------------------------------------------------- */

static int each_in_turn(int what)
{
    CsvLog *log;
    SummaryWriter *w;
    int status = -1;
    switch (what) {
    case 0:
        log = io_csv_log(scratch("m.csv"), "a");
        status = log ? io_csv_log_row(log, 1) : -1;
        io_csv_log_free(log);
        return status;
    case 1:
        w = io_summary_writer(scratch_);
        status = w ? io_summary_add_scalar(w, "a", 1, 1) | io_summary_add_text(w, "t", "x", 1) |
                         io_summary_add_image(w, "i", tensor_zeros(SHAPE(3, 4), TENSOR_F32), 1) |
                         io_summary_add_histogram(w, "h", tensor_zeros(SHAPE(3), TENSOR_F32), 1)
                   : -1;
        if (w) unlink(event_file());
        io_summary_free(w);
        return status;
    case 2:
        return io_save_image(tensor_zeros(SHAPE(3, 1, 2, 2), TENSOR_F32), scratch("m.png"),
                             .normalize = true);
    default: return io_save_curves(scratch("m.png"), &(IoCurve){ (double[]){ 1, 2 }, 2 }, 1);
    }
}

static void test_failing_memory(void **state)
{
    (void)state;
    for (int what = 0; what < 4; what++)
        for (int k = 1;; k++) {
            int64_t live = tensor_live_count();
            TensorScope scope = tensor_scope_open();
            tensor_debug_fail_allocation(k, false);
            int status = each_in_turn(what);
            bool failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            tensor_scope_close(scope);
            assert_int_equal(tensor_live_count(), live);
            assert_int_equal(status, failed ? -1 : 0);
            if (!failed) break;
            assert_says(TENSOR_ENOMEM, "");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_csv_rows),
        TEST(test_csv_goes_on),
        TEST(test_csv_on_a_full_disk),
        TEST(test_pictures_on_a_full_disk),
        TEST(test_events),
        TEST(test_events_refused),
        TEST(test_progress_is_quiet_elsewhere),
        TEST(test_progress_on_a_terminal),
        TEST(test_grid),
        TEST(test_grid_refused),
        TEST(test_save_image),
        TEST(test_drawing),
        TEST(test_curves),
        TEST(test_failing_memory),
    };
    return cmocka_run_group_tests_name("watch", tests, scratch_begin, scratch_end);
}
