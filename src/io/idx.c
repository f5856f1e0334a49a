/* idx.c - the IDX format, plain or gzip: zlib reads both.
 *
 * Wrong sizes are found before memory is allocated: a plain file has a known length, and deflate compresses
 * at most 1032 to 1. */
#include <errno.h>
#include <unistd.h>
#include <zlib.h>
#include <tapegrad/io.h>
#include "input.h"

enum { UNKNOWN = -1, DEFLATE_MOST = 1032 };

typedef struct Idx {
    gzFile file;
    const char *path;
    int64_t file_bytes;
    int code, dtype, bytes, ndim; /* bytes: of a value in the file */
    int64_t shape[TENSOR_MAX_DIMS];
} Idx;

static int idx_dtype(int code, int *bytes)
{
    static const struct {
        int code, bytes, dtype;
    } table[] = { { 0x08, 1, TENSOR_U8 },  { 0x09, 1, TENSOR_I32 }, { 0x0B, 2, TENSOR_I32 },
                  { 0x0C, 4, TENSOR_I32 }, { 0x0D, 4, TENSOR_F32 }, { 0x0E, 8, TENSOR_F64 } };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code) return *bytes = table[i].bytes, table[i].dtype;
    return UNKNOWN;
}

/* What zlib has to complain about; 0: nothing. */
static int check_stream(const Idx *x)
{
    int code;
    const char *text = gzerror(x->file, &code), *after = strstr(text, ">: "); /* "<fd:3>: ..." */
    if (code == Z_OK || code == Z_STREAM_END) return 0;
    if (code == Z_MEM_ERROR) return fail_memory("io_read_idx");
    if (code == Z_ERRNO)
        return fail(TENSOR_EIO, "io_read_idx", "%s cannot be read: %s", x->path, strerror(errno));
    return fail(TENSOR_EFORMAT, "io_read_idx", "%s: damaged: %s", x->path, after ? after + 3 : text);
}

/* Exactly n bytes; fewer is an error that says how many there were. */
static int read_bytes(const Idx *x, void *to, int64_t n, const char *what)
{
    for (int64_t have = 0; have < n;) {
        unsigned piece = n - have > 1 << 30 ? 1u << 30 : (unsigned)(n - have);
        int got = gzread(x->file, (char *)to + have, piece);
        if (got < 0) return check_stream(x);
        if (got == 0)
            return fail(TENSOR_EFORMAT, "io_read_idx", "%s: ends after %lld of %lld bytes of %s", x->path,
                        (long long)have, (long long)n, what);
        have += got;
    }
    return 0;
}

/* Big-endian values of the file, in place of the tensor's. */
static void swap_values(Tensor *x, int code, int bytes)
{
    unsigned char *p = x->data;
    if (bytes < 4 && code != 0x08) { /* i8, i16: widened from the back, where nothing is overwritten */
        int32_t *out = x->data;
        for (int64_t i = x->numel - 1; i >= 0; i--)
            out[i] = bytes == 1 ? (int8_t)p[i] : (int16_t)(p[2 * i] << 8 | p[2 * i + 1]);
        return;
    }
    for (int64_t i = 0; bytes > 1 && i < x->numel; i++, p += bytes)
        for (int a = 0, b = bytes - 1; a < b; a++, b--) {
            unsigned char t = p[a];
            p[a] = p[b], p[b] = t;
        }
}

static int read_header(Idx *x)
{
    unsigned char magic[4], size[4];
    if (read_bytes(x, magic, 4, "the magic number")) return -1;
    x->code = magic[2], x->ndim = magic[3], x->dtype = idx_dtype(x->code, &x->bytes);
    if (magic[0] || magic[1] || x->dtype == UNKNOWN || x->ndim > TENSOR_MAX_DIMS)
        return fail(TENSOR_EFORMAT, "io_read_idx", "%s: no IDX file: it begins with %02x %02x %02x %02x",
                    x->path, magic[0], magic[1], magic[2], magic[3]);
    for (int d = 0; d < x->ndim; d++) {
        if (read_bytes(x, size, 4, "the sizes")) return -1;
        x->shape[d] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
    }
    return 0;
}

/* The tensor that the header asks for, when the file can hold its values. */
static Tensor *make_tensor(const Idx *x)
{
    TensorShape shape = { x->ndim, x->shape };
    int64_t count = input_count(shape), held = x->file_bytes, header = 4 + 4 * x->ndim;
    if (gzdirect(x->file)) held -= header;
    else if (__builtin_mul_overflow(held, DEFLATE_MOST, &held)) held = INT64_MAX;
    if (count < 0 || count > held / x->bytes)
        return fail(TENSOR_EFORMAT, "io_read_idx",
                    "%s: says %s values of %d bytes, more than its %lld bytes can hold", x->path,
                    shape_text(shape), x->bytes, (long long)x->file_bytes),
               NULL;
    return new_tensor(shape, x->dtype, &cpu_place);
}

/* After the values: nothing, and a checksum that agrees. */
static int check_end(const Idx *x, int64_t count)
{
    unsigned char more;
    if (gzread(x->file, &more, 1) > 0)
        return fail(TENSOR_EFORMAT, "io_read_idx", "%s: goes on after the %lld values that its sizes %s say",
                    x->path, (long long)count, shape_text((TensorShape){ x->ndim, x->shape }));
    return check_stream(x);
}

static Tensor *read_idx(Idx *x)
{
    if (read_header(x)) return NULL;
    Tensor *t = make_tensor(x);
    if (t && !read_bytes(x, t->data, t->numel * x->bytes, "the values") && !check_end(x, t->numel)) {
        swap_values(t, x->code, x->bytes);
        return t;
    }
    tensor_release(t);
    return NULL;
}

Tensor *io_read_idx(const char *path)
{
    Idx x = { .path = path };
    int fd = input_open(path, "io_read_idx", &x.file_bytes);
    if (fd < 0) return NULL;
    x.file = gzdopen(fd, "rb");
    if (!x.file) {
        close(fd);
        return fail_memory("io_read_idx"), NULL;
    }
    gzbuffer(x.file, 1 << 17);
    Tensor *t = read_idx(&x);
    gzclose(x.file);
    return own(t);
}
