/* idx.c - the IDX format, plain or gzip: zlib reads both. */
#include <errno.h>
#include <stdio.h>
#include <zlib.h>
#include <tapegrad/io.h>
#include "../core.h"

enum { UNKNOWN = -1 };

static int idx_dtype(int code, int *bytes)
{
    static const struct { int code, bytes, dtype; } table[] = {
        { 0x08, 1, TENSOR_U8 }, { 0x09, 1, TENSOR_I32 }, { 0x0B, 2, TENSOR_I32 }, { 0x0C, 4, TENSOR_I32 },
        { 0x0D, 4, TENSOR_F32 }, { 0x0E, 8, TENSOR_F64 } };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code) return *bytes = table[i].bytes, table[i].dtype;
    return UNKNOWN;
}

/* Exactly n bytes; fewer is an error that says how many there were. */
static int read_bytes(gzFile file, const char *path, void *to, int64_t n, const char *what)
{
    int64_t have = 0;
    while (have < n) {
        unsigned piece = n - have > 1 << 20 ? 1u << 20 : (unsigned)(n - have);
        int got = gzread(file, (char *)to + have, piece);
        if (got < 0) {
            int code;
            return fail(TENSOR_EFORMAT, "io_read_idx", "%s: damaged: %s", path, gzerror(file, &code));
        }
        if (got == 0) return fail(TENSOR_EFORMAT, "io_read_idx", "%s: ends after %lld of %lld bytes of %s", path, (long long)have, (long long)n, what);
        have += got;
    }
    return 0;
}

/* Big-endian values of the file, in place of the tensor's. */
static void swap_values(Tensor *x, int code, int bytes)
{
    unsigned char *p = x->data;
    if (bytes < 4 && code != 0x08) {                    /* i8, i16: widened from the back, where nothing is overwritten */
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

/* The values, into memory that grows with what the file really holds: sizes that lie cost nothing. */
static Tensor *read_values(gzFile file, const char *path, TensorShape shape, int dtype, int64_t bytes)
{
    enum { FIRST = 1 << 20 };
    int64_t room = bytes < FIRST ? bytes : FIRST, have = 0;
    char *values = tg_alloc((size_t)room + 1);
    if (!values) return fail_memory("io_read_idx"), NULL;
    int status = read_bytes(file, path, values, room, "the values");
    for (have = room; !status && have < bytes;) {
        int64_t more = have < bytes - have ? 2 * have : bytes;
        char *grown = tg_grow(values, (size_t)room + 1, (size_t)more + 1);
        if (!grown) {
            status = fail_memory("io_read_idx");
            break;
        }
        values = grown, room = more;
        status = read_bytes(file, path, values + have, room - have, "the values");
        have = room;
    }
    Tensor *x = status ? NULL : own(new_tensor(shape, dtype, &cpu_place));
    if (x) memcpy(x->data, values, (size_t)bytes);
    tg_free(values, (size_t)room + 1);
    return x;
}

static Tensor *read_idx(gzFile file, const char *path)
{
    unsigned char magic[4], size[4];
    int64_t shape[TENSOR_MAX_DIMS], count = 1;
    int bytes = 0;
    if (read_bytes(file, path, magic, 4, "the magic number")) return NULL;
    int dtype = idx_dtype(magic[2], &bytes), ndim = magic[3];
    if (magic[0] || magic[1] || dtype == UNKNOWN || ndim > TENSOR_MAX_DIMS)
        return fail(TENSOR_EFORMAT, "io_read_idx", "%s: no IDX file: it begins with %02x %02x %02x %02x", path, magic[0], magic[1], magic[2], magic[3]), NULL;
    for (int d = 0; d < ndim; d++) {
        if (read_bytes(file, path, size, 4, "the sizes")) return NULL;
        shape[d] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (__builtin_mul_overflow(count, shape[d], &count) || count > INT64_MAX / 16)
            return fail(TENSOR_EFORMAT, "io_read_idx", "%s: says %s, more than can be", path, shape_text((TensorShape){ d + 1, shape })), NULL;
    }
    Tensor *x = read_values(file, path, (TensorShape){ ndim, shape }, dtype, count * bytes);
    if (!x) return NULL;
    unsigned char more;
    int extra = gzread(file, &more, 1);
    if (extra > 0) return fail(TENSOR_EFORMAT, "io_read_idx", "%s: goes on after the %lld values that its sizes %s say", path, (long long)count, S(x)), NULL;
    if (extra < 0) return fail(TENSOR_EFORMAT, "io_read_idx", "%s: damaged at its end", path), NULL;
    swap_values(x, magic[2], bytes);
    return x;
}

Tensor *io_read_idx(const char *path)
{
    if (!path) return fail(TENSOR_ENULL, "io_read_idx", "the path is NULL"), NULL;
    gzFile file = gzopen(path, "rb");
    if (!file) return fail(TENSOR_EIO, "io_read_idx", "%s cannot be opened: %s", path, strerror(errno)), NULL;
    gzbuffer(file, 1 << 17);
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_scope_return(scope, read_idx(file, path));
    gzclose(file);
    return x;
}
