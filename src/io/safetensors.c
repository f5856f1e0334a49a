/* safetensors.c - names, shapes and bytes of tensors in one file (github.com/huggingface/safetensors describes the format).
 *
 * The header is JSON of one fixed form, so a reader of just that form is all there is: an object of objects whose values are
 * strings and arrays of integers; "__metadata__", an object of strings, is skipped. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <tapegrad/io.h>
#include "../core.h"
#include "atomic_file.h"

enum { MAX_HEADER = 100 << 20, NAME = 1024 };

static const char *const dtype_code[TENSOR_DTYPES] = { "F32", "F64", "F16", "BF16", "I64", "I32", "U8", "BOOL" };

/* ---- writing ------------------------------------------------------------------------------------------------- */

static void write_name(FILE *f, const char *name)
{
    fputc('"', f);
    for (; *name; name++) {
        if (*name == '"' || *name == '\\') fprintf(f, "\\%c", *name);
        else if ((unsigned char)*name < 0x20) fprintf(f, "\\u%04x", *name);
        else fputc(*name, f);
    }
    fputc('"', f);
}

static void write_header(FILE *f, TensorDict dict)
{
    int64_t at = 0;
    fputc('{', f);
    for (int i = 0; i < dict.count; i++) {
        const Tensor *x = dict.item[i].tensor;
        int64_t bytes = x->numel * (int64_t)dtype_size(x->dtype);
        if (i) fputc(',', f);
        write_name(f, dict.item[i].name);
        fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", dtype_code[x->dtype]);
        for (int d = 0; d < x->ndim; d++) fprintf(f, d ? ",%lld" : "%lld", (long long)x->shape[d]);
        fprintf(f, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)(at + bytes));
        at += bytes;
    }
    fputc('}', f);
}

static int write_values(FILE *f, const Tensor *x)
{
    size_t bytes = (size_t)x->numel * dtype_size(x->dtype);
    char *dense = tg_alloc(bytes + 1);
    int status = dense ? tensor_copy_to(x, dense, bytes) : fail_memory("io_save_safetensors");
    if (!status) fwrite(dense, 1, bytes, f);            /* the stream remembers a failure */
    tg_free(dense, bytes + 1);
    return status;
}

int io_save_safetensors(const char *path, TensorDict dict)
{
    if (dict.count < 0) return tensor_error() ? -1 : fail(TENSOR_ENULL, "io_save_safetensors", "the dictionary is the result of a failed call");
    AtomicFile file;
    if (atomic_open(&file, path, "io_save_safetensors")) return -1;
    for (int i = 0; i < 8; i++) fputc(0, file.file);
    write_header(file.file, dict);
    while (ftell(file.file) % 8) fputc(' ', file.file);      /* the values begin at a multiple of 8 */
    uint64_t length = (uint64_t)ftell(file.file) - 8;
    int status = 0;
    for (int i = 0; i < dict.count && !status; i++) status = write_values(file.file, dict.item[i].tensor);
    fseek(file.file, 0, SEEK_SET);
    for (int i = 0; i < 8; i++) fputc((int)(length >> 8 * i & 255), file.file);
    return atomic_close(&file, !status, "io_save_safetensors");
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

typedef struct Json { const char *path, *at, *end; } Json;

static int bad(const Json *j, const char *what)
{
    return fail(TENSOR_EFORMAT, "io_load_safetensors", "%s: %s in the header", j->path, what);
}

static bool take(Json *j, char c)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r')) j->at++;
    if (j->at >= j->end || *j->at != c) return false;
    j->at++;
    return true;
}

static int put_utf8(char *out, unsigned code)
{
    if (code < 0x80) return out[0] = (char)code, 1;
    if (code < 0x800) return out[0] = (char)(0xc0 | code >> 6), out[1] = (char)(0x80 | (code & 63)), 2;
    return out[0] = (char)(0xe0 | code >> 12), out[1] = (char)(0x80 | (code >> 6 & 63)), out[2] = (char)(0x80 | (code & 63)), 3;
}

static int read_string(Json *j, char *out, size_t size)
{
    size_t n = 0;
    if (!take(j, '"')) return bad(j, "a string is missing");
    while (j->at < j->end && *j->at != '"') {
        if (n + 4 >= size) return bad(j, "a string is too long");
        char c = *j->at++;
        if (c != '\\') {
            out[n++] = c;
            continue;
        }
        if (j->at >= j->end) break;
        c = *j->at++;
        if (c == 'u') {
            unsigned code = 0;
            for (int i = 0; i < 4; i++, j->at++) {
                const char *hex = "0123456789abcdef", *digit = j->at < j->end ? strchr(hex, *j->at | 0x20) : NULL;
                if (!digit || !*digit) return bad(j, "a \\u escape is damaged");
                code = code * 16 + (unsigned)(digit - hex);
            }
            n += (size_t)put_utf8(out + n, code);
        } else {
            const char *from = "nrtbf", *to = "\n\r\t\b\f", *found = strchr(from, c);
            out[n++] = found && c ? to[found - from] : c;
        }
    }
    if (!take(j, '"')) return bad(j, "a string does not end");
    out[n] = 0;
    return strlen(out) == n ? 0 : bad(j, "a string holds a zero byte");
}

/* [1, 2, 3]: their number, or -1. */
static int read_integers(Json *j, int64_t *out, int max)
{
    int n = 0;
    if (!take(j, '[')) return bad(j, "an array is missing");
    if (take(j, ']')) return 0;
    do {
        int64_t value = 0;
        const char *first;
        take(j, ' ');
        for (first = j->at; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *j->at - '0', &value)) return bad(j, "a number is too big");
        if (j->at == first) return bad(j, "a number is missing");
        if (n == max) return bad(j, "an array is too long");
        out[n++] = value;
    } while (take(j, ','));
    return take(j, ']') ? n : bad(j, "an array does not end");
}

typedef struct Record { int dtype, ndim, offsets; int64_t shape[TENSOR_MAX_DIMS], offset[2]; } Record;

static int read_record(Json *j, Record *r)
{
    char key[64], text[64];
    *r = (Record){ .dtype = -1, .ndim = -1 };
    if (!take(j, '{')) return bad(j, "an object is missing");
    do {
        if (read_string(j, key, sizeof key) || !take(j, ':')) return bad(j, "a key is damaged");
        if (strcmp(key, "dtype") == 0) {
            if (read_string(j, text, sizeof text)) return -1;
            for (int d = 0; d < TENSOR_DTYPES; d++)
                if (strcmp(text, dtype_code[d]) == 0) r->dtype = d;
            if (r->dtype < 0) return fail(TENSOR_EFORMAT, "io_load_safetensors", "%s: the dtype %s is not known here", j->path, text);
        } else if (strcmp(key, "shape") == 0) {
            if ((r->ndim = read_integers(j, r->shape, TENSOR_MAX_DIMS)) < 0) return -1;
        } else if (strcmp(key, "data_offsets") == 0) {
            if ((r->offsets = read_integers(j, r->offset, 2)) < 0) return -1;
        } else {
            return bad(j, "an unknown key");
        }
    } while (take(j, ','));
    if (!take(j, '}')) return bad(j, "an object does not end");
    return r->dtype < 0 || r->ndim < 0 || r->offsets != 2 ? bad(j, "dtype, shape or data_offsets is missing") : 0;
}

static int skip_metadata(Json *j)
{
    char text[NAME];
    if (!take(j, '{')) return bad(j, "__metadata__ is no object");
    if (take(j, '}')) return 0;
    do {
        if (read_string(j, text, sizeof text) || !take(j, ':') || read_string(j, text, sizeof text)) return bad(j, "__metadata__ is damaged");
    } while (take(j, ','));
    return take(j, '}') ? 0 : bad(j, "__metadata__ does not end");
}

static int read_tensor(FILE *f, Json *j, const char *name, int64_t begin, int64_t size, TensorDict *dict)
{
    Record r;
    if (read_record(j, &r)) return -1;
    TensorShape shape = { r.ndim, r.shape };
    int64_t count = shape_count(shape), bytes;
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)dtype_size(r.dtype), &bytes) || r.offset[0] < 0 || r.offset[1] < r.offset[0] ||
        r.offset[1] > size || r.offset[1] - r.offset[0] != bytes)
        return fail(TENSOR_EFORMAT, "io_load_safetensors", "%s: \"%.80s\" %s %s at bytes %lld to %lld of %lld does not fit", j->path, name,
                    tensor_dtype_name((TensorDtype)r.dtype), shape_text(shape), (long long)r.offset[0], (long long)r.offset[1], (long long)size);
    if (nn_dict_get(*dict, name)) return fail(TENSOR_EFORMAT, "io_load_safetensors", "%s: \"%.80s\" is there twice", j->path, name);
    Tensor *x = new_tensor(shape, r.dtype, &cpu_place);
    int status = x ? 0 : -1;
    if (x && (fseek(f, (long)(begin + r.offset[0]), SEEK_SET) || fread(x->data, 1, (size_t)bytes, f) != (size_t)bytes))
        status = fail(TENSOR_EIO, "io_load_safetensors", "%s: \"%.80s\" cannot be read", j->path, name);
    if (!status) status = nn_dict_set(dict, name, x);
    tensor_release(x);
    return status;
}

static int read_all(FILE *f, Json *j, int64_t begin, int64_t size, TensorDict *dict)
{
    char name[NAME];
    if (!take(j, '{')) return bad(j, "an object is missing");
    if (take(j, '}')) return 0;
    do {
        if (read_string(j, name, sizeof name) || !take(j, ':')) return bad(j, "a name is damaged");
        if (strcmp(name, "__metadata__") == 0 ? skip_metadata(j) : read_tensor(f, j, name, begin, size, dict)) return -1;
    } while (take(j, ','));
    return take(j, '}') ? 0 : bad(j, "the object does not end");
}

static int read_file(FILE *f, const char *path, TensorDict *dict)
{
    unsigned char length[8];
    int64_t header = 0, total;
    if (fseek(f, 0, SEEK_END) || (total = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
        return fail(TENSOR_EIO, "io_load_safetensors", "%s: its size cannot be told", path);
    if (fread(length, 1, 8, f) != 8) return fail(TENSOR_EFORMAT, "io_load_safetensors", "%s: shorter than 8 bytes", path);
    for (int i = 7; i >= 0; i--) header = (int64_t)((uint64_t)header << 8 | length[i]);
    if (header < 2 || header > MAX_HEADER || header > total - 8)
        return fail(TENSOR_EFORMAT, "io_load_safetensors", "%s: says a header of %lld bytes in a file of %lld", path, (long long)header, (long long)total);
    char *text = tg_alloc((size_t)header);
    if (!text) return fail_memory("io_load_safetensors");
    Json j = { path, text, text + header };
    int status = fread(text, 1, (size_t)header, f) == (size_t)header ? read_all(f, &j, 8 + header, total - 8 - header, dict)
                                                                      : fail(TENSOR_EIO, "io_load_safetensors", "%s: cannot be read", path);
    tg_free(text, (size_t)header);
    return status;
}

TensorDict io_load_safetensors(const char *path)
{
    TensorDict dict = { 0 }, none = { .count = -1 };
    if (!path) return fail(TENSOR_ENULL, "io_load_safetensors", "the path is NULL"), none;
    FILE *f = fopen(path, "rb");
    if (!f) return fail(TENSOR_EIO, "io_load_safetensors", "%s cannot be opened: %s", path, strerror(errno)), none;
    int status = read_file(f, path, &dict);
    fclose(f);
    if (!status) return dict;
    nn_dict_free(dict);
    return none;
}
