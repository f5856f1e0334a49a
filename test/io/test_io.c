/* test_io.c - IDX and PNG files: what is read and written, what is refused and in which words, and that
 * nothing is left. */
#include <png.h>
#include <zlib.h>
#include <tapegrad/debug.h>
#include "scratch.h"

/* ---- IDX ------------------------------------------------------------------------------------- */

static const char *put_gzip(const char *name, const void *bytes, size_t n)
{
    const char *path = scratch(name);
    gzFile f = gzopen(path, "wb");
    assert_int_equal(gzwrite(f, bytes, (unsigned)n), (int)n);
    assert_int_equal(gzclose(f), Z_OK);
    return path;
}

typedef struct Bytes {
    const char *bytes;
    size_t n;
} Bytes;
#define BYTES(text) ((Bytes){ text, sizeof text - 1 })

#define U8_FILE "\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\xfd\xfe\xff"

static void test_idx_types(void **state)
{
    (void)state;
    static const struct {
        Bytes file;
        int dtype, ndim;
        double value[2];
    } cases[] = {
        { { "\0\0\x08\x01\0\0\0\x02\x07\xff", 10 }, TENSOR_U8, 1, { 7, 255 } },
        { { "\0\0\x09\x01\0\0\0\x02\x07\xff", 10 }, TENSOR_I32, 1, { 7, -1 } },
        { { "\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe", 12 }, TENSOR_I32, 1, { 258, -2 } },
        { { "\0\0\x0c\x01\0\0\0\x02\x01\x02\x03\x04\xff\xff\xff\xfd", 16 }, TENSOR_I32, 1, { 16909060, -3 } },
        { { "\0\0\x0d\x01\0\0\0\x02\x3f\xc0\0\0\xc0\0\0\0", 16 }, TENSOR_F32, 1, { 1.5, -2 } },
        { { "\0\0\x0e\x01\0\0\0\x02\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 24 },
          TENSOR_F64,
          1,
          { 1.5, -2 } },
        { { "\0\0\x0e\x03\0\0\0\x01\0\0\0\x02\0\0\0\x01\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 32 },
          TENSOR_F64,
          3,
          { 1.5, -2 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int zipped = 0; zipped < 2; zipped++) {
            const char *path = (zipped ? put_gzip : put_file)("types", cases[i].file.bytes, cases[i].file.n);
            Tensor *x = OK(io_read_idx(path));
            assert_sane(x);
            assert_int_equal(tensor_dtype(x), cases[i].dtype);
            assert_int_equal(tensor_ndim(x), cases[i].ndim);
            assert_values(x, cases[i].value[0], cases[i].value[1]);
        }
}

static void test_idx_shapes(void **state)
{
    (void)state;
    Tensor *x = OK(io_read_idx(put_file("a", U8_FILE, sizeof U8_FILE - 1)));
    assert_true(shape_equal(shape_of(x), SHAPE(2, 3)));
    assert_values(x, 1, 2, 3, 253, 254, 255);
    assert_values(io_read_idx(put_file("rank0", "\0\0\x08\0\x2a", 5)), 42);
    x = OK(io_read_idx(put_file("empty", "\0\0\x0d\x02\0\0\0\0\0\0\0\x03", 12)));
    assert_true(shape_equal(shape_of(x), SHAPE(0, 3)));
}

/* Larger than one read, and a gzip file of two members. */
static void test_idx_large(void **state)
{
    (void)state;
    enum { N = 700000 };
    unsigned char *file = malloc(8 + 2 * N);
    memcpy(file, "\0\0\x0b\x01\0\x0a\xae\x60", 8);
    for (int i = 0; i < N; i++) file[8 + 2 * i] = (unsigned char)(i >> 8), file[9 + 2 * i] = (unsigned char)i;
    const char *path = scratch("large");
    gzFile f = gzopen(path, "wb");
    assert_int_equal(gzwrite(f, file, 1000001), 1000001);
    gzclose(f);
    f = gzopen(path, "ab");
    assert_int_equal(gzwrite(f, file + 1000001, 8 + 2 * N - 1000001), 8 + 2 * N - 1000001);
    gzclose(f);
    for (int plain = 0; plain < 2; plain++) {
        Tensor *x = OK(io_read_idx(plain ? put_file("large", file, 8 + 2 * N) : path));
        const int32_t *v = tensor_data(x);
        assert_int_equal(tensor_numel(x), N);
        for (int i = 0; i < N; i++)
            if (v[i] != (int16_t)i) FAILS("element %d is %d", i, v[i]);
    }
    free(file);
}

static void assert_refused(const char *path, TensorStatus code, const char *words)
{
    int64_t in_use = tensor_memory().in_use, live = tensor_live_count();
    tensor_memory_reset_peak();
    assert_null(io_read_idx(path));
    if (path && !strstr(tensor_error() ? tensor_error() : "", path))
        FAILS("the error does not name the file: %s", tensor_error());
    assert_says(code, words);
    assert_int_equal(tensor_memory().in_use, in_use);
    assert_int_equal(tensor_live_count(), live);
    assert_true(tensor_memory().peak - in_use < 1 << 20);
}

static void test_idx_refusals(void **state)
{
    (void)state;
    static const struct {
        Bytes file;
        const char *words;
    } cases[] = {
        { { "", 0 }, "ends after 0 of 4 bytes of the magic number" },
        { { "\0\0\x08", 3 }, "ends after 3 of 4 bytes of the magic number" },
        { { "\0\1\x08\x01\0\0\0\0", 8 }, "begins with 00 01 08 01" },
        { { "\1\0\x08\x01\0\0\0\0", 8 }, "no IDX file" },
        { { "\0\0\x0a\x01\0\0\0\0", 8 }, "no IDX file" },
        { { "\0\0\x08\x11\0\0\0\0", 8 }, "no IDX file" },
        { { "\0\0\x08\x02\0\0\0\x01\0\0", 10 }, "ends after 2 of 4 bytes of the sizes" },
        { { "\0\0\x08\x02\0\0\0\x01", 8 }, "ends after 0 of 4 bytes of the sizes" },
        { { "\0\0\x08\x01\0\0\0\x03\1\2", 10 },
          "says [3] values of 1 bytes, more than its 10 bytes can hold" },
        { { "\0\0\x0e\x01\0\0\0\x01\1\2\3\4\5\6\7", 15 }, "more than" },
        { { "\0\0\x08\x03\x80\0\0\0\0\0\0\x1c\0\0\0\x1c"
            "0123456789",
            26 },
          "says [2147483648, 28, 28]" },
        { { "\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16 }, "more than" },
        { { "\0\0\x0e\x03\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16 }, "more than" },
        { { "\0\0\x08\x01\0\0\0\x02\1\2\3", 11 }, "goes on after the 2 values that its sizes [2] say" },
        { { "\0\0\x08\x01\0\0\0\0\1", 9 }, "goes on after the 0 values" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(put_file("bad", cases[i].file.bytes, cases[i].file.n), TENSOR_EFORMAT, cases[i].words);
    assert_refused(put_gzip("bad", "\0\0\x08\x01\0\0\0\x03\1\2", 10), TENSOR_EFORMAT,
                   "ends after 2 of 3 bytes of the values");
    assert_refused(put_gzip("bad", "\0\0\x08\x01\x80\0\0\0\1\2", 10), TENSOR_EFORMAT, "more than");
    assert_refused(put_gzip("bad", "\0\0\x08\x01\0\0\0\x02\1\2\3", 11), TENSOR_EFORMAT, "goes on");
}

static void test_idx_no_file(void **state)
{
    (void)state;
    assert_refused(NULL, TENSOR_ENULL, "the path is NULL");
    assert_refused(scratch("nowhere"), TENSOR_EIO, "No such file");
    assert_refused(scratch_, TENSOR_EIO, "is a directory");
    assert_refused("/dev/null", TENSOR_EIO, "is no plain file");
    assert_int_equal(mkfifo(scratch("pipe"), 0600), 0);
    assert_refused(scratch("pipe"), TENSOR_EIO, "is no plain file");
}

/* A gzip file cut at every byte, and with every byte changed: an error, or the right values. */
static void test_idx_damaged_gzip(void **state)
{
    (void)state;
    unsigned char file[8 + 200] = "\0\0\x08\x01\0\0\0\xc8";
    size_t n;
    for (int i = 0; i < 200; i++) file[8 + i] = (unsigned char)(i * i);
    unsigned char *zipped = get_file(put_gzip("whole", file, sizeof file), &n);
    for (size_t i = 0; i < n; i++) {
        assert_null(io_read_idx(put_file("cut", zipped, i)));
        assert_int_equal(tensor_error_code(), TENSOR_EFORMAT);
        tensor_error_clear();
        zipped[i] ^= 0x10;
        Tensor *x = io_read_idx(put_file("changed", zipped, n));
        zipped[i] ^= 0x10;
        if (x && memcmp(x->data, file + 8, 200)) FAILS("byte %d changed: other values, no error", (int)i);
        if (!x && tensor_error_code() != TENSOR_EFORMAT) FAILS("byte %d changed: %s", (int)i, tensor_error());
        tensor_error_clear();
    }
    free(zipped);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

static void test_png_bytes(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2) {
        Tensor *x = tensor_empty(SHAPE(channels, 5, 7), TENSOR_U8);
        for (int64_t i = 0; i < x->numel; i++) ((uint8_t *)x->data)[i] = (uint8_t)(i * 37);
        DONE(io_save_png(scratch("a.png"), x));
        assert_tensor_close(OK(io_load_png(scratch("a.png"))), x, 0, 0);
        DONE(io_save_png(scratch("a.png"), tensor_transpose(x, 1, 2)));
        assert_tensor_close(OK(io_load_png(scratch("a.png"))), tensor_contiguous(tensor_transpose(x, 1, 2)),
                            0, 0);
        DONE(io_save_png(scratch("a.png"), tensor_select(x, 0, 0)));
        assert_tensor_close(OK(io_load_png(scratch("a.png"))), tensor_slice(x, 0, 0, 1, 1), 0, 0);
    }
    assert_int_equal(scratch_count("a.png"), 1);
}

/* Colours of more than one buffer of rows: channels come last in the file, and first in the tensor. */
static void test_png_of_many_rows(void **state)
{
    (void)state;
    Tensor *x = tensor_empty(SHAPE(3, 64, 64), TENSOR_U8);
    for (int64_t i = 0; i < x->numel; i++) ((uint8_t *)x->data)[i] = (uint8_t)(i * 7 ^ i >> 6);
    DONE(io_save_png(scratch("rows.png"), x));
    Tensor *y = OK(io_load_png(scratch("rows.png")));
    assert_true(tensor_equal(x, y));
    DONE(io_save_png(scratch("rows.png"), tensor_div_scalar(tensor_to(y, TENSOR_F32), 255)));
    assert_true(tensor_equal(x, OK(io_load_png(scratch("rows.png")))));
}

static void test_png_floats(void **state)
{
    (void)state;
    Tensor *x = MAT(2, 0, 1, 0.5, 0.25, -3, 7, NAN, INFINITY, -INFINITY, 1e-9, 254.5 / 255, 254.4 / 255);
    for (int d = TENSOR_F32; d <= TENSOR_BF16; d++) {
        DONE(io_save_png(scratch("f.png"), tensor_to(x, (TensorDtype)d)));
        Tensor *y = OK(io_load_png(scratch("f.png")));
        assert_true(shape_equal(shape_of(y), SHAPE(1, 2, 6)));
        if (d == TENSOR_F64) assert_values(y, 0, 255, 128, 64, 0, 255, 0, 255, 0, 0, 255, 254);
    }
}

static void test_png_refusals(void **state)
{
    (void)state;
    const char *path = scratch("r.png");
    assert_status_error(io_save_png(path, NULL), TENSOR_ENULL);
    assert_status_error(io_save_png(NULL, MAT(1, 1)), TENSOR_ENULL);
    assert_status_error(io_save_png(path, VEC(1, 2)), TENSOR_ESHAPE);
    assert_status_error(io_save_png(path, tensor_zeros(SHAPE(), TENSOR_F32)), TENSOR_ESHAPE);
    assert_status_error(io_save_png(path, tensor_zeros(SHAPE(2, 3, 4), TENSOR_F32)), TENSOR_ESHAPE);
    assert_status_error(io_save_png(path, tensor_zeros(SHAPE(1, 3, 4, 5), TENSOR_F32)), TENSOR_ESHAPE);
    assert_status_error(io_save_png(path, tensor_zeros(SHAPE(3, 0, 4), TENSOR_F32)), TENSOR_ESHAPE);
    assert_status_error(
        io_save_png(path, tensor_expand(tensor_zeros(SHAPE(1, 1), TENSOR_U8), SHAPE(1000001, 2))),
        TENSOR_ESHAPE);
    assert_status_error(io_save_png(path, tensor_expand(tensor_zeros(SHAPE(1, 1, 1), TENSOR_U8),
                                                        SHAPE((1LL << 32) + 1, 1, 1))),
                        TENSOR_ESHAPE);
    assert_status_error(io_save_png(path, tensor_zeros(SHAPE(3, 4), TENSOR_I64)), TENSOR_EDTYPE);
    assert_status_error(io_save_png(scratch("no/such.png"), MAT(1, 1)), TENSOR_EIO);
    assert_status_error(io_save_png(scratch_, MAT(1, 1)), TENSOR_EIO);
    assert_int_equal(scratch_count("r.png"), 0);
    assert_tensor_error(io_load_png(NULL), TENSOR_ENULL);
    assert_tensor_error(io_load_png(scratch("nowhere")), TENSOR_EIO);
    assert_tensor_error(io_load_png(scratch_), TENSOR_EIO);
    assert_tensor_error(io_load_png(put_file("none.png", "", 0)), TENSOR_EFORMAT);
    assert_tensor_error(io_load_png(put_file("text.png", "no picture at all", 17)), TENSOR_EFORMAT);
}

/* Cut or changed anywhere: EFORMAT, or a picture; the pixels' own checksums leave no other pixels. */
static void test_png_damaged(void **state)
{
    (void)state;
    size_t n;
    Tensor *x = tensor_zeros(SHAPE(3, 4, 4), TENSOR_U8);
    DONE(io_save_png(scratch("d.png"), x));
    unsigned char *file = get_file(scratch("d.png"), &n);
    for (size_t i = 0; i < n; i++) {
        int64_t in_use = tensor_memory().in_use;
        Tensor *cut = io_load_png(put_file("d.png", file, i));
        if (!cut) assert_says(TENSOR_EFORMAT, "d.png");
        else if (i < n - 12) FAILS("cut at byte %d, read without an error", (int)i); /* 12: the end mark */
        file[i] ^= 0x41;
        Tensor *y = io_load_png(put_file("d.png", file, n));
        file[i] ^= 0x41;
        if (!y) assert_says(TENSOR_EFORMAT, "d.png");
        if (!y && !cut) assert_int_equal(tensor_memory().in_use, in_use);
    }
    memcpy(file + 16, "\0\x0f\x42\x40\0\x0f\x42\x40", 8); /* a million by a million */
    uint32_t crc = (uint32_t)crc32(0, file + 12, 17);
    for (int i = 0; i < 4; i++) file[29 + i] = (unsigned char)(crc >> (24 - 8 * i));
    tensor_memory_reset_peak();
    int64_t in_use = tensor_memory().in_use;
    assert_null(io_load_png(put_file("d.png", file, n)));
    assert_says(TENSOR_EFORMAT, "1000000 x 1000000 pixels, more than");
    assert_true(tensor_memory().peak - in_use < 1 << 20);
    free(file);
}

static const char *put_png(int type, int depth, const unsigned char *row, int width)
{
    const char *path = scratch("made.png");
    FILE *f = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_color palette[2] = { { 10, 20, 30 }, { 200, 100, 50 } };
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)width, 1, depth, type, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 2);
    png_write_info(png, info);
    png_write_row(png, row);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    fclose(f);
    return path;
}

static void test_png_kinds(void **state)
{
    (void)state;
    static const unsigned char rgba[] = { 1, 2, 3, 0, 4, 5, 6, 128, 7, 8, 9, 255 },
                               deep[] = { 0, 0, 0x80, 0x80, 0xff, 0xff, 0x40, 0x40 };
    Tensor *x = OK(io_load_png(put_png(PNG_COLOR_TYPE_RGB_ALPHA, 8, rgba, 3)));
    assert_true(shape_equal(shape_of(x), SHAPE(3, 1, 3)));
    assert_values(x, 1, 4, 7, 2, 5, 8, 3, 6, 9);
    assert_values(OK(io_load_png(put_png(PNG_COLOR_TYPE_GRAY_ALPHA, 8, rgba, 2))), 1, 3);
    assert_values(OK(io_load_png(put_png(PNG_COLOR_TYPE_GRAY, 16, deep, 4))), 0, 128, 255, 64);
    assert_values(OK(io_load_png(put_png(PNG_COLOR_TYPE_GRAY, 1, (const unsigned char *)"\xa0", 4))), 255, 0,
                  255, 0);
    x = OK(io_load_png(put_png(PNG_COLOR_TYPE_PALETTE, 8, (const unsigned char *)"\1\0", 2)));
    assert_true(shape_equal(shape_of(x), SHAPE(3, 1, 2)));
    assert_values(x, 200, 10, 100, 20, 50, 30);
}

/* ---- failing memory -------------------------------------------------------------------------- */

static void test_failing_memory(void **state)
{
    (void)state;
    const char *idx = put_gzip("m.idx", U8_FILE, sizeof U8_FILE - 1), *png = scratch("m.png");
    Tensor *x = MAT(2, 0, 0.5, 1, 0);
    int failures = 0;
    for (int what = 0; what < 3; what++)
        for (int n = 1;; n++) {
            int64_t live = tensor_live_count(), in_use = tensor_memory().in_use;
            TensorScope scope = tensor_scope_open();
            tensor_debug_fail_allocation(n, n & 1);
            bool good = what == 0   ? io_read_idx(idx) != NULL
                        : what == 1 ? io_save_png(png, x) == 0
                                    : io_load_png(png) != NULL;
            bool failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            tensor_scope_close(scope);
            if (!failed) {
                assert_true(good);
                break;
            }
            failures++;
            assert_false(good);
            assert_says(TENSOR_ENOMEM, "");
            assert_int_equal(tensor_live_count(), live);
            assert_int_equal(tensor_memory().in_use, in_use);
        }
    assert_true(failures >= 6);
    assert_int_equal(scratch_count("tmp"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_idx_types),      TEST(test_idx_shapes),       TEST(test_idx_large),
        TEST(test_idx_refusals),   TEST(test_idx_no_file),      TEST(test_idx_damaged_gzip),
        TEST(test_png_bytes),      TEST(test_png_of_many_rows), TEST(test_png_floats),
        TEST(test_png_refusals),   TEST(test_png_damaged),      TEST(test_png_kinds),
        TEST(test_failing_memory),
    };
    return cmocka_run_group_tests_name("files", tests, scratch_begin, scratch_end);
}
