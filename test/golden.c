#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "golden.h"

enum { HEADER = 16 };

/* ---- the file ---------------------------------------------------------------------------------- */

static unsigned char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    unsigned char *bytes = length > 0 ? malloc((size_t)length) : NULL;
    *size = bytes ? fread(bytes, 1, (size_t)length, file) : 0;
    fclose(file);
    return bytes;
}

static unsigned char *unpack(const unsigned char *file, size_t size, size_t *unpacked)
{
    uint64_t length;
    if (size < HEADER || memcmp(file, "TGOLD3\0\0", 8) != 0) return NULL;
    memcpy(&length, file + 8, sizeof length);
    uLongf got = (uLongf)length;
    unsigned char *stream = malloc(length + 1);
    if (stream && uncompress(stream, &got, file + HEADER, (uLong)(size - HEADER)) == Z_OK && got == length) {
        *unpacked = length;
        return stream;
    }
    free(stream);
    return NULL;
}

/* ---- the stream -------------------------------------------------------------------------------- */

static const unsigned char *take(Golden *g, size_t bytes)
{
    static const unsigned char nothing[8];
    if (bytes > g->size - g->at) {
        g->at = g->size + 1; /* golden_next sees it */
        g->size = g->at;
        return bytes <= sizeof nothing ? nothing : NULL;
    }
    g->at += bytes;
    return g->stream + g->at - bytes;
}

#define TAKE(g, type) (*(type *)memcpy(&(type){ 0 }, take(g, sizeof(type)), sizeof(type)))

static void take_text(Golden *g, char *to, size_t size)
{
    size_t length = TAKE(g, uint16_t);
    const unsigned char *text = take(g, length);
    snprintf(to, size, "%.*s", text ? (int)length : 0, text ? (const char *)text : "");
}

/* The sections of one stream, behind those of the streams before it. */
static int add_sections(Golden *g, size_t size)
{
    char torch[sizeof g->torch];
    g->stream = g->streams[g->files - 1], g->size = size, g->at = 0;
    take_text(g, torch, sizeof torch);
    if (g->files > 1 && strcmp(torch, g->torch) != 0)
        return print_error("values of PyTorch %s beside %s: draw all of them again\n", torch, g->torch), -1;
    snprintf(g->torch, sizeof g->torch, "%s", torch);
    for (uint32_t n = TAKE(g, uint32_t); n > 0; n--) {
        if (g->sections == GOLDEN_OPS) return print_error("more than %d ops\n", GOLDEN_OPS), -1;
        GoldenSection *to = &g->section[g->sections++];
        take_text(g, to->op, sizeof to->op);
        to->cases = TAKE(g, uint32_t);
        to->size = TAKE(g, uint32_t);
        to->begin = take(g, to->size);
        if (g->at > g->size) return print_error("the section of %s ends too early\n", to->op), -1;
        g->cases += to->cases;
    }
    return 0;
}

static int add_file(Golden *g, const char *path)
{
    size_t size = 0, unpacked = 0;
    unsigned char *file = read_file(path, &size), *stream = file ? unpack(file, size, &unpacked) : NULL;
    free(file);
    if (!stream || g->files == GOLDEN_FILES) {
        free(stream);
        return print_error("%s cannot be read: %s\n", path,
                           file ? "damaged, or of another format" : "no such file"),
               -1;
    }
    g->streams[g->files++] = stream;
    return add_sections(g, unpacked);
}

int golden_open(Golden *g, const char *path)
{
    glob_t found;
    char pattern[4096];
    memset(g, 0, sizeof *g);
    snprintf(pattern, sizeof pattern, "%s/*.golden", path);
    if (glob(pattern, 0, NULL, &found) != 0) return add_file(g, path);
    int status = 0;
    for (size_t i = 0; i < found.gl_pathc && !status; i++) status = add_file(g, found.gl_pathv[i]);
    globfree(&found);
    if (status) golden_close(g);
    return status;
}

void golden_begin(Golden *g, const TensorOp *op)
{
    g->op = op, g->read = 0, g->stream = NULL, g->size = g->at = 0, g->of_op = 0;
    for (int i = 0; i < g->sections; i++) {
        if (strcmp(g->section[i].op, op->name) != 0) continue;
        g->stream = (unsigned char *)(uintptr_t)g->section[i].begin;
        g->size = g->section[i].size, g->of_op = g->section[i].cases;
    }
}

void golden_close(Golden *g)
{
    for (int i = 0; i < g->files; i++) free(g->streams[i]);
    memset(g, 0, sizeof *g);
}

static int64_t count_of(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
}

static size_t stored_size(TensorDtype dtype, size_t float_size)
{
    if (tensor_dtype_is_float(dtype)) return float_size;
    return tensor_dtype_size(dtype) == 1 ? 1 : 8;
}

static void take_result(Golden *g, GoldenValue *v)
{
    v->there = true;
    v->dtype = (TensorDtype)TAKE(g, uint8_t);
    v->ndim = TAKE(g, uint8_t);
    for (int d = 0; d < v->ndim && d < TENSOR_MAX_DIMS; d++) v->shape[d] = TAKE(g, uint32_t);
    v->count = count_of(v->ndim, v->shape);
    v->values = take(g, (size_t)v->count * stored_size(v->dtype, 8));
    if (!tensor_dtype_is_float(v->dtype)) return;
    v->error = TAKE(g, double);
    if (TAKE(g, uint8_t)) v->cotangent = take(g, (size_t)v->count * 4);
}

static void take_gradient(Golden *g, const SampleInput *in, GoldenValue *v)
{
    v->there = TAKE(g, uint8_t);
    if (!v->there) return;
    v->dtype = TENSOR_F64;
    v->ndim = in->ndim;
    memcpy(v->shape, in->shape, sizeof v->shape);
    v->count = count_of(v->ndim, v->shape);
    v->values = take(g, (size_t)v->count * 8);
    v->error = TAKE(g, double);
}

int golden_next(Golden *g, GoldenCase *c)
{
    char text[SAMPLE_TEXT];
    const char *list = text;
    if (g->read == g->of_op) return 0;
    g->read++;
    memset(c, 0, sizeof *c);
    take_text(g, text, sizeof text);
    if (sample_next(g->op, &list, &c->sample) < 0)
        return print_error("golden case %s %s: %s\n", g->op->name, text, c->sample.wrong), -1;
    c->narrow = TAKE(g, uint8_t);
    for (int i = 0; i < c->sample.n; i++) {
        const SampleInput *in = &c->sample.input[i];
        TensorDtype dtype = in->has_dtype ? in->dtype : TENSOR_F32;
        if (!in->absent) c->input[i] = take(g, (size_t)count_of(in->ndim, in->shape) * stored_size(dtype, 4));
    }
    c->results = TAKE(g, uint8_t);
    for (int k = 0; k < c->results && k < SAMPLE_RESULTS; k++) take_result(g, &c->result[k]);
    for (int i = 0; i < c->sample.n; i++) take_gradient(g, &c->sample.input[i], &c->gradient[i]);
    return g->at <= g->size && c->results <= SAMPLE_RESULTS
               ? 1
               : (print_error("the golden values end too early\n"), -1);
}

/* ---- tensors ----------------------------------------------------------------------------------- */

static Tensor *tensor_of(const void *bytes, int64_t count, TensorShape shape, TensorDtype stored,
                         TensorDtype dtype)
{
    size_t size = (size_t)count * tensor_dtype_size(stored);
    void *aligned = malloc(size + 1);
    assert_non_null(aligned);
    memcpy(aligned, bytes, size);
    Tensor *x = tensor_from_data(aligned, shape, stored);
    free(aligned);
    return stored == dtype ? x : tensor_to(x, dtype);
}

Tensor *golden_input(const GoldenCase *c, int i, TensorDtype dtype)
{
    const SampleInput *in = &c->sample.input[i];
    if (in->absent) return NULL;
    TensorShape shape = { in->ndim, in->shape };
    int64_t count = count_of(in->ndim, in->shape);
    if (!in->has_dtype) return tensor_of(c->input[i], count, shape, TENSOR_F32, dtype);
    return tensor_of(c->input[i], count, shape, in->dtype == TENSOR_I32 ? TENSOR_I64 : in->dtype, in->dtype);
}

Tensor *golden_value(const GoldenValue *v)
{
    TensorShape shape = { v->ndim, v->shape };
    if (tensor_dtype_is_float(v->dtype)) return tensor_of(v->values, v->count, shape, TENSOR_F64, TENSOR_F64);
    return tensor_of(v->values, v->count, shape, tensor_dtype_size(v->dtype) == 1 ? v->dtype : TENSOR_I64,
                     v->dtype);
}

Tensor *golden_cotangent(const GoldenValue *v, TensorDtype dtype)
{
    return tensor_of(v->cotangent, v->count, (TensorShape){ v->ndim, v->shape }, TENSOR_F32, dtype);
}
