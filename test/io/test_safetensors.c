/* test_safetensors.c - the layout byte for byte, files of the reference implementation, every kind of damage,
 * and writing that leaves the old file or the new one.  With TAPEGRAD_KEEP=FILE the tensors of
 * oracle/safetensors_file.py are written there. */
#include <pthread.h>
#include <sys/wait.h>
#include <tapegrad/debug.h>
#include <sys/resource.h>
#include <signal.h>
#include "oracle/safetensors_golden.h"
#include "scratch.h"
#include "io/atomic_file.h"

#define ODD_NAME "a \"quote\", a \\backslash\\, \n, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"

static TensorDict loaded(const char *path)
{
    TensorDict dict = io_load_safetensors(path);
    if (dict.count < 0) FAILS("%s", tensor_error());
    return dict;
}

static void add(TensorDict *dict, const char *name, Tensor *x) { DONE(nn_dict_set(dict, name, x)); }

/* Those of the oracle, in an order of their own. */
static TensorDict all_kinds(void)
{
    static const char *const names[TENSOR_DTYPES] = {
        "f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool"
    };
    TensorDict dict = { 0 };
    add(&dict, ODD_NAME, tensor_full(SHAPE(1), 7, TENSOR_U8));
    for (int d = TENSOR_DTYPES - 1; d >= 0; d--) {
        Tensor *x = d == TENSOR_BOOL ? MAT(2, 0, 1, 0, 1, 0, 1) : MAT(2, 0, 1, 2, 3, 4, 5);
        add(&dict, names[d], tensor_to(x, (TensorDtype)d));
    }
    add(&dict, "scalar", tensor_full(SHAPE(), 1.5, TENSOR_F32));
    add(&dict, "empty", tensor_zeros(SHAPE(0, 3), TENSOR_F32));
    return dict;
}

static void assert_same_dict(TensorDict a, TensorDict b, bool same_order)
{
    assert_int_equal(a.count, b.count);
    for (int i = 0; i < a.count; i++) {
        if (same_order) assert_string_equal(a.item[i].name, b.item[i].name);
        Tensor *y = nn_dict_get(b, a.item[i].name);
        if (!y) FAILS("%s is missing", a.item[i].name);
        assert_sane(y);
        assert_tensor_close(a.item[i].tensor, y, 0, 0);
    }
}

/* ---- layout and round trip ------------------------------------------------------------------- */

static void test_layout(void **state)
{
    (void)state;
    static const char header[] = "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[12,14]},\"w\":{"
                                 "\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8]},"
                                 "\"h\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[8,10]},\"g\":{"
                                 "\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[10,12]},"
                                 "\"z\":{\"dtype\":\"I64\",\"shape\":[0,2],\"data_offsets\":[8,8]}}";
    TensorDict dict = { 0 };
    add(&dict, "b", tensor_to(VEC(3, 250), TENSOR_U8));
    add(&dict, "w", MAT(1, 1.5));
    add(&dict, "h", tensor_full(SHAPE(), 1, TENSOR_BF16));
    add(&dict, "g", tensor_full(SHAPE(1), -2, TENSOR_F16));
    add(&dict, "z", tensor_zeros(SHAPE(0, 2), TENSOR_I64));
    DONE(io_save_safetensors(scratch("layout"), dict));
    nn_dict_free(dict);
    size_t n, used = strlen(header), padded = (used + 7) / 8 * 8;
    unsigned char *file = get_file(scratch("layout"), &n);
    for (int i = 0; i < 8; i++) assert_int_equal(file[i], (int)(padded >> 8 * i & 255));
    assert_memory_equal(file + 8, header, used);
    for (size_t i = used; i < padded; i++) assert_int_equal(file[8 + i], ' ');
    assert_int_equal(n, 8 + padded + 14);
    assert_memory_equal(file + 8 + padded,
                        "\0\0\0\0\0\0\xf8\x3f"
                        "\x80\x3f"
                        "\0\xc0"
                        "\x03\xfa",
                        14);
    free(file);
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *keep = getenv("TAPEGRAD_KEEP"), *path = keep ? keep : scratch("all");
    TensorDict dict = all_kinds();
    DONE(io_save_safetensors(path, dict));
    TensorDict back = loaded(path);
    assert_same_dict(dict, back, true);
    nn_dict_free(back), nn_dict_free(dict);
}

static void test_reference_file(void **state)
{
    (void)state;
    TensorDict dict = all_kinds(),
               back = loaded(put_file("reference", golden_safetensors, sizeof golden_safetensors));
    assert_same_dict(dict, back, false);
    nn_dict_free(back), nn_dict_free(dict);
}

static void test_views_and_parameters(void **state)
{
    (void)state;
    TensorDict dict = { 0 };
    Tensor *x = LEAF_MAT(2, 1, 2, 3, 4, 5, 6);
    add(&dict, "transposed", tensor_transpose(x, 0, 1));
    add(&dict, "expanded", tensor_expand(tensor_slice(x, 0, 1, 2, 1), SHAPE(3, 3)));
    add(&dict, "leaf", x);
    DONE(io_save_safetensors(scratch("views"), dict));
    nn_dict_free(dict);
    dict = loaded(scratch("views"));
    assert_values(nn_dict_get(dict, "transposed"), 1, 4, 2, 5, 3, 6);
    assert_values(nn_dict_get(dict, "expanded"), 4, 5, 6, 4, 5, 6, 4, 5, 6);
    assert_false(tensor_requires_grad(nn_dict_get(dict, "leaf")));
    nn_dict_free(dict);
}

static void test_empty_and_long(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    char name[LONG + 1];
    TensorDict dict = { 0 };
    DONE(io_save_safetensors(scratch("e"), dict));
    assert_int_equal(loaded(scratch("e")).count, 0);
    memset(name, 'n', LONG), name[LONG] = 0;
    add(&dict, name, VEC(1));
    add(&dict, "", VEC(2));
    DONE(io_save_safetensors(scratch("e"), dict));
    TensorDict back = loaded(scratch("e"));
    assert_same_dict(dict, back, true);
    nn_dict_free(back), nn_dict_free(dict);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const char *put_header(const char *header, size_t length, const char *values, size_t bytes)
{
    unsigned char *file = malloc(8 + length + bytes);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, values, bytes);
    const char *path = put_file("made", file, 8 + length + bytes);
    free(file);
    return path;
}

static void refused(const char *path, TensorStatus code, const char *words)
{
    int64_t in_use = tensor_memory().in_use, live = tensor_live_count();
    assert_int_equal(io_load_safetensors(path).count, -1);
    assert_true(!path || strstr(tensor_error(), path));
    assert_says(code, words);
    assert_int_equal(tensor_memory().in_use, in_use);
    assert_int_equal(tensor_live_count(), live);
}

#define A "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}"
#define ENTRY(name, shape, offsets) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int bytes;
        const char *words;
    } cases[] = {
        /* words NULL: good */
        { "{" A "}", 2, NULL },
        { "{" A "} \n\t ", 2, NULL },
        { "{ \"__metadata__\" : { \"x\" : \"y\", \"z\":\"\" } , " A "}", 2, NULL },
        { "{" ENTRY("b", "[1]", "[2,3]") "," A "," ENTRY("c", "[0]", "[2,2]") "}", 3, NULL },
        { "{\"\\ud83d\\ude00\\u00e9\\/\\b\":{ \"shape\" : [ 2 , 1 ] , "
          "\"data_offsets\":[0,2],\"dtype\":\"U8\"}}",
          2, NULL },
        { "{}", 1, "1 bytes after the last tensor" },
        { "{" A "}", 3, "1 bytes after the last tensor" },
        { "{" A "}", 1, "at bytes 0 to 2 of 1 does not fit" },
        { "{" A "," A "}", 2, "\"a\" is there twice" },
        { "{" A "," ENTRY("a", "[1]", "[2,3]") "}", 3, "\"a\" is there twice" },
        { "{" A "," ENTRY("\\u0061", "[1]", "[2,3]") "}", 3, "\"a\" is there twice" },
        { "{" A "," ENTRY("b", "[2]", "[0,2]") "}", 2,
          "\"b\" begins at byte 0 of the values, where 2 is due" },
        { "{" A "," ENTRY("b", "[2]", "[1,3]") "}", 3, "begins at byte 1" },
        { "{" A "," ENTRY("b", "[1]", "[3,4]") "}", 4, "begins at byte 3" },
        { "{" A "," ENTRY("b", "[0]", "[1,1]") "}", 2, "begins at byte" },
        { "{" ENTRY("a", "[2]", "[1,3]") "}", 3, "\"a\" begins at byte 1 of the values, where 0 is due" },
        { "{" ENTRY("a", "[2]", "[2,0]") "}", 2, "does not fit" },
        { "{" ENTRY("a", "[2]", "[0,1]") "}", 1, "does not fit" },
        { "{" ENTRY("a", "[-2]", "[0,2]") "}", 2, "missing or negative" },
        { "{" ENTRY("a", "[2]", "[-2,0]") "}", 2, "missing or negative" },
        { "{" ENTRY("a", "[02]", "[0,2]") "}", 2, "leading zero" },
        { "{" ENTRY("a", "[2.0]", "[0,2]") "}", 2, "an array that does not end" },
        { "{" ENTRY("a", "[2e0]", "[0,2]") "}", 2, "an array that does not end" },
        { "{" ENTRY("a", "[2,]", "[0,2]") "}", 2, "a number is missing" },
        { "{" ENTRY("a", "[9223372036854775808]", "[0,2]") "}", 2, "too big" },
        { "{" ENTRY("a", "[18446744073709551618]", "[0,2]") "}", 2, "too big" },
        { "{" ENTRY("a", "[4294967296,4294967296,2]", "[0,2]") "}", 2, "does not fit" },
        { "{" ENTRY("a", "[0,4611686018427387904,4611686018427387904]", "[0,0]") "}", 0, "does not fit" },
        { "{" ENTRY("a", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "too long" },
        { "{" ENTRY("a", "[2]", "[0,2,2]") "}", 2, "too long" },
        { "{" ENTRY("a", "[2]", "[0]") "}", 2, "without two data_offsets" },
        { "{" ENTRY("a", "2", "[0,2]") "}", 2, "an array is missing" },
        { "{\"a\":{\"dtype\":\"C64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8, "has the dtype C64" },
        { "{\"a\":{\"dtype\":\"f32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "not known here" },
        { "{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "a string is missing" },
        { "{\"a\":{\"shape\":[2],\"data_offsets\":[0,2]}}", 2, "without dtype" },
        { "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,2]}}", 2, "without dtype, shape" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2]}}", 2, "without dtype, shape or data_offsets" },
        { "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2,
          "a damaged entry" },
        { "{\"a\":{\"dtype\":\"U8\",\"x\":1,\"shape\":[2],\"data_offsets\":[0,2]}}", 2, "an unknown key" },
        { "{\"a\":{}}", 0, "a string is missing" },
        { "{\"a\":[]}", 0, "an object is missing" },
        { "{\"a\" {}}", 0, "a colon is missing" },
        { "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0, "an object is missing" },
        { "{\"a\":{\"a\":{\"a\":{\"a\":{", 0, "an unknown key" },
        { "{" A ",}", 2, "a string is missing" },
        { "{" A "}}", 2, "bytes after its object" },
        { "{" A "}x", 2, "bytes after its object" },
        { "{" A "", 2, "an object that does not end" },
        { "[]", 0, "an object is missing" },
        { "{x}", 0, "a string is missing" },
        { "{\"a", 0, "a string does not end" },
        /* a block of the allocator in full: AddressSanitizer sees what is read behind it */
        { "{\"33333333333333333333333333333333333333333333333333333333333333", 0, "a string does not end" },
        { "{\"a\\", 0, "a damaged escape" },
        { "{\"\\q\":{}}", 0, "a damaged escape" },
        { "{\"\\u12g4\":{}}", 0, "a damaged escape" },
        { "{\"\\u12\x14\x14\":{}}", 0, "a damaged escape" },
        { "{\"\\u0000\":{}}", 0, "a damaged escape" },
        { "{\"\\ud83d\":{}}", 0, "a damaged escape" },
        { "{\"\\ud83d\\u0041\":{}}", 0, "a damaged escape" },
        { "{\"\\ude00\":{}}", 0, "a damaged escape" },
        { "{\"a\n\":{}}", 0, "a control character" },
        { "{\"\xff\":{}}", 0, "no UTF-8" },
        { "{\"\xc0\x80\":{}}", 0, "no UTF-8" },
        { "{\"\xe0\x80\x80\":{}}", 0, "no UTF-8" },
        { "{\"\xed\xa0\x80\":{}}", 0, "no UTF-8" },
        { "{\"\xf4\x90\x80\x80\":{}}", 0, "no UTF-8" },
        { "{\"\xf0\x8f\x80\x80\":{}}", 0, "no UTF-8" },
        { "{\"\xe2\x82\":{}}", 0, "no UTF-8" },
        { "{\"\x80\":{}}", 0, "no UTF-8" },
        { "{\"__metadata__\":1}", 0, "__metadata__" },
        { "{\"__metadata__\":{\"x\":1}}", 0, "a string is missing" },
        { "{\"__metadata__\":{\"x\":{}}}", 0, "a string is missing" },
        { "{\"__metadata__\":{\"x\" \"y\"}}", 0, "a damaged __metadata__" },
        { "{\"__metadata__\":{\"x\":\"y\"", 0, "a __metadata__ that does not end" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "a second __metadata__" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path =
            put_header(cases[i].header, strlen(cases[i].header), "abcdefgh", (size_t)cases[i].bytes);
        if (cases[i].words) refused(path, TENSOR_EFORMAT, cases[i].words);
        else nn_dict_free(loaded(path));
    }
    refused(put_header("{\"a\0\":{}}", 9, "", 0), TENSOR_EFORMAT, "a control character");
    refused(put_header("{}\0\0", 4, "", 0), TENSOR_EFORMAT, "bytes after its object");
}

static void test_decoded(void **state)
{
    (void)state;
    static const char header[] =
        "{\"\\ud83d\\uDE00\\u00e9\\/\\b\\n\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}";
    TensorDict dict = loaded(put_header(header, sizeof header - 1, "\0\1\2", 3));
    assert_string_equal(dict.item[0].name, "\xf0\x9f\x98\x80\xc3\xa9/\b\n");
    assert_memory_equal(tensor_data(dict.item[0].tensor), "\0\1\1", 3);
    nn_dict_free(dict);
}

static void test_lengths(void **state)
{
    (void)state;
    refused(put_file("short", "1234567", 7), TENSOR_EFORMAT, "shorter than 8 bytes");
    refused(put_file("short", "", 0), TENSOR_EFORMAT, "shorter than 8 bytes");
    refused(put_file("length", "\0\0\0\0\0\0\0\0{}", 10), TENSOR_EFORMAT, "a header of 0 bytes");
    refused(put_file("length", "\3\0\0\0\0\0\0\0{}", 10), TENSOR_EFORMAT,
            "no safetensors file, or cut short: a header of 3 bytes in 10");
    refused(put_file("length", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), TENSOR_EFORMAT,
            "18446744073709551615 bytes in 10");
    refused(put_file("length", "\2\0\0\0\0\0\0\x80{}", 10), TENSOR_EFORMAT, "cut short");
    refused(put_file("length", "\0\x10\xa5\xd4\xe8\0\0\0{}", 10), TENSOR_EFORMAT, "cut short");
    refused(NULL, TENSOR_ENULL, "the path is NULL");
    refused(scratch("nowhere"), TENSOR_EIO, "No such file");
    refused(scratch_, TENSOR_EIO, "is a directory");
    refused("/dev/zero", TENSOR_EIO, "is no plain file");
    for (size_t n = 0; n < sizeof golden_safetensors; n++)
        refused(put_file("cut", golden_safetensors, n), TENSOR_EFORMAT, "cut");
}

/* A header of many entries is read in a time that grows with its length, not with its square. */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    char *header = malloc(MANY * 80), *at = header;
    *at++ = '{';
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "%s\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "",
                      i == MANY - 1 ? 0 : i);
    *at++ = '}';
    refused(put_header(header, (size_t)(at - header), "", 0), TENSOR_EFORMAT, "\"0\" is there twice");
    free(header);
}

/* The last that is taken and the first that is refused: surrogates, dimensions. */
static void test_edges(void **state)
{
    (void)state;
    static const struct {
        const char *escape, *utf8; /* NULL: refused */
    } names[] = { { "\\ud7ff", "\xed\x9f\xbf" },
                  { "\\ue000", "\xee\x80\x80" },
                  { "\\ud800\\udc00", "\xf0\x90\x80\x80" },
                  { "\\udbff\\udfff", "\xf4\x8f\xbf\xbf" },
                  { "\\ud800\\udbff", NULL },
                  { "\\ud800\\ue000", NULL },
                  { "\\udbff", NULL },
                  { "\\udc00", NULL },
                  { "\\udfff\\udc00", NULL },
                  { "\\u0001", "\1" } };
    char header[600];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int n = snprintf(header, sizeof header,
                         "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", names[i].escape);
        const char *path = put_header(header, (size_t)n, "\7", 1);
        if (!names[i].utf8) {
            refused(path, TENSOR_EFORMAT, "a damaged escape");
            continue;
        }
        TensorDict dict = loaded(path);
        assert_string_equal(dict.item[0].name, names[i].utf8);
        nn_dict_free(dict);
    }
    for (int ndim = TENSOR_MAX_DIMS; ndim <= TENSOR_MAX_DIMS + 1; ndim++) {
        int n = snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[");
        for (int d = 0; d < ndim; d++) n += snprintf(header + n, sizeof header - (size_t)n, d ? ",1" : "1");
        n += snprintf(header + n, sizeof header - (size_t)n, "],\"data_offsets\":[0,1]}}");
        const char *path = put_header(header, (size_t)n, "\7", 1);
        if (ndim > TENSOR_MAX_DIMS) {
            refused(path, TENSOR_EFORMAT, "an array that is too long");
            continue;
        }
        TensorDict dict = loaded(path);
        assert_int_equal(tensor_ndim(dict.item[0].tensor), TENSOR_MAX_DIMS);
        nn_dict_free(dict);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void test_save_refusals(void **state)
{
    (void)state;
    TensorDict dict = { 0 }, none = { .count = -1 };
    TensorDictItem item = { NULL, NULL };
    assert_status_error(io_save_safetensors(scratch("no"), none), TENSOR_ENULL);
    assert_status_error(io_save_safetensors(scratch("no"), (TensorDict){ .item = &item, .count = 1 }),
                        TENSOR_ENULL);
    assert_status_error(io_save_safetensors(NULL, dict), TENSOR_ENULL);
    add(&dict, "__metadata__", VEC(1));
    assert_status_error(io_save_safetensors(scratch("no"), dict), TENSOR_EVALUE);
    nn_dict_free(dict), dict = (TensorDict){ 0 };
    add(&dict, "\xff", VEC(1));
    assert_status_error(io_save_safetensors(scratch("no"), dict), TENSOR_EVALUE);
    nn_dict_free(dict), dict = (TensorDict){ 0 };
    add(&dict, "x", VEC(1));
    tensor_fail(TENSOR_EUSER, "test", "the run failed");
    assert_status_error(io_save_safetensors(scratch("no"), dict), TENSOR_EUSER); /* replaces no file */
    nn_dict_free(dict);
    assert_int_equal(scratch_count("no"), 0);
}

static void same_file(const char *path, const unsigned char *old, size_t n)
{
    size_t found;
    unsigned char *now = get_file(path, &found);
    assert_int_equal(found, n);
    assert_memory_equal(now, old, n);
    free(now);
    assert_int_equal(scratch_count(".tmp"), 0);
}

static void test_atomic(void **state)
{
    (void)state;
    size_t n;
    struct stat s;
    TensorDict dict = { 0 }, large = { 0 };
    const char *path = scratch("kept");
    add(&dict, "a", VEC(1, 2)), add(&large, "b", tensor_zeros(SHAPE(100000), TENSOR_F32));
    DONE(io_save_safetensors(path, dict));
    unsigned char *old = get_file(path, &n);
    assert_status_error(io_save_safetensors(scratch("no/folder"), dict), TENSOR_EIO);
    assert_status_error(io_save_safetensors(scratch_, dict), TENSOR_EIO);

    struct rlimit before, small = { 4096, RLIM_INFINITY }; /* a disk that is full after 4096 bytes */
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    int status = io_save_safetensors(path, large);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, -1);
    assert_says(TENSOR_EIO, "cannot be written: File too large");
    same_file(path, old, n);

    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink(path, scratch("link")), 0);
    DONE(io_save_safetensors(scratch("link"), large)); /* writes the file that the link names */
    assert_int_equal(lstat(scratch("link"), &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0640);
    assert_true((size_t)s.st_size > 400000);
    free(old);
    nn_dict_free(dict), nn_dict_free(large);
}

/* A pipe without a reader would make the save wait for ever. */
static void test_only_plain_files(void **state)
{
    (void)state;
    struct stat s;
    TensorDict dict = { 0 };
    add(&dict, "a", VEC(1, 2));
    assert_int_equal(mkfifo(scratch("pipe"), 0600), 0);
    const char *const paths[] = { scratch("pipe"), "/dev/null", "/dev/full" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (stat(paths[i], &s)) continue;
        assert_int_equal(io_save_safetensors(paths[i], dict), -1);
        assert_says(TENSOR_EIO, "is no plain file");
        assert_int_equal(stat(paths[i], &s), 0);
        assert_false(S_ISREG(s.st_mode));
    }
    nn_dict_free(dict);
}

/* ---- temporary files ------------------------------------------------------------------------- */

static void write_until_killed(const char *path)
{
    AtomicFile f;
    if (atomic_open(&f, path, "test") || atomic_write(&f, "half", 4, "test")) _exit(1);
    fflush(f.file);
    kill(getpid(), SIGKILL);
}

static void test_left_over_is_removed(void **state)
{
    (void)state;
    int status;
    TensorDict dict = { 0 };
    add(&dict, "a", VEC(1, 2));
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) write_until_killed(scratch("left"));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(scratch_count("left"), 1 + i);
        assert_int_equal(scratch_count(".tmp"), 1);
        DONE(io_save_safetensors(scratch("left"), dict));
        assert_int_equal(scratch_count("left"), 1);
        assert_int_equal(scratch_count(".tmp"), 0);
    }
    nn_dict_free(dict);
}

static void test_left_over_of_others_stays(void **state)
{
    (void)state;
    size_t n;
    TensorDict dict = { 0 };
    add(&dict, "a", VEC(1, 2));
    put_file("victim", "precious", 8);
    assert_int_equal(symlink(scratch("victim"), scratch("linked.tmp")), 0);
    DONE(io_save_safetensors(scratch("linked"), dict)); /* not through the link, under another name */
    unsigned char *bytes = get_file(scratch("victim"), &n);
    assert_int_equal(n, 8);
    assert_memory_equal(bytes, "precious", 8);
    free(bytes);
    unlink(scratch("linked.tmp"));
    nn_dict_free(dict);
}

typedef struct Saver {
    const char *path;
    double value;
    int failures;
} Saver;

static void *saves(void *ctx)
{
    Saver *saver = ctx;
    TensorScope scope = tensor_scope_open();
    TensorDict dict = { 0 };
    nn_dict_set(&dict, "a", tensor_full(SHAPE(3000), saver->value, TENSOR_F64));
    for (int i = 0; i < 50; i++) saver->failures += io_save_safetensors(saver->path, dict) != 0;
    nn_dict_free(dict);
    tensor_scope_close(scope);
    return NULL;
}

static void test_savers_of_one_path(void **state)
{
    (void)state;
    enum { SAVERS = 4 };
    pthread_t thread[SAVERS];
    Saver saver[SAVERS];
    const char *path = scratch("shared");
    for (int i = 0; i < SAVERS; i++) {
        saver[i] = (Saver){ .path = path, .value = i };
        assert_int_equal(pthread_create(&thread[i], NULL, saves, &saver[i]), 0);
    }
    for (int i = 0; i < SAVERS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(saver[i].failures, 0);
    }
    TensorDict back = io_load_safetensors(path);
    assert_int_equal(back.count, 1);
    Tensor *a = nn_dict_get(back, "a");
    assert_true(tensor_equal(a, tensor_full(SHAPE(3000), tensor_get(a, DIMS(0)), TENSOR_F64)));
    assert_int_equal(scratch_count(".tmp"), 0);
    nn_dict_free(back);
}

static void test_no_items(void **state)
{
    (void)state;
    assert_int_equal(io_save_safetensors(scratch("no"), (TensorDict){ .item = NULL, .count = 2 }), -1);
    assert_says(TENSOR_ENULL, "2 items");
}

/* ---- failing memory -------------------------------------------------------------------------- */

static void test_failing_memory(void **state)
{
    (void)state;
    TensorDict dict = { 0 };
    int failures = 0;
    add(&dict, "a", tensor_transpose(MAT(2, 1, 2, 3, 4), 0, 1)), add(&dict, "b", VEC(5));
    DONE(io_save_safetensors(scratch("m"), dict));
    for (int load = 0; load < 2; load++)
        for (int n = 1;; n++) {
            int64_t live = tensor_live_count(), in_use = tensor_memory().in_use;
            tensor_debug_fail_allocation(n, n & 1);
            TensorDict back = { 0 };
            int status = load ? (back = io_load_safetensors(scratch("m"))).count
                              : io_save_safetensors(scratch("m"), dict);
            bool failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            if (!failed) {
                assert_int_equal(status, load ? 2 : 0);
                nn_dict_free(back);
                break;
            }
            failures++;
            assert_int_equal(status, -1);
            assert_says(TENSOR_ENOMEM, "");
            assert_int_equal(tensor_live_count(), live);
            assert_int_equal(tensor_memory().in_use, in_use);
            assert_int_equal(scratch_count(".tmp"), 0);
        }
    assert_true(failures >= 6);
    nn_dict_free(dict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_layout),
        TEST(test_round_trip),
        TEST(test_reference_file),
        TEST(test_views_and_parameters),
        TEST(test_empty_and_long),
        TEST(test_headers),
        TEST(test_decoded),
        TEST(test_lengths),
        TEST(test_many),
        TEST(test_edges),
        TEST(test_save_refusals),
        TEST(test_atomic),
        TEST(test_only_plain_files),
        TEST(test_left_over_is_removed),
        TEST(test_left_over_of_others_stays),
        TEST(test_savers_of_one_path),
        TEST(test_no_items),
        TEST(test_failing_memory),
    };
    return cmocka_run_group_tests_name("safetensors", tests, scratch_begin, scratch_end);
}
