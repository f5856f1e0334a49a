#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "golden.h"

enum { HEADER = 16 };

/* ---- the file
 * ------------------------------------------------------------------------------------------------------ */

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

static int unpack(Golden *g, const unsigned char *file, size_t size)
{
    uint64_t length;
    if (size < HEADER || memcmp(file, "TGOLD2\0\0", 8) != 0) return -1;
    memcpy(&length, file + 8, sizeof length);
    uLongf got = (uLongf)length;
    g->stream = malloc(length + 1);
    if (!g->stream || uncompress(g->stream, &got, file + HEADER, (uLong)(size - HEADER)) != Z_OK ||
        got != length)
        return -1;
    g->size = length;
    return 0;
}

/* ---- the stream
 * ------------------------------------------------------------------------------------------------------ */

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

int golden_open(Golden *g, const char *path)
{
    size_t size = 0;
    memset(g, 0, sizeof *g);
    unsigned char *file = read_file(path, &size);
    int status = file ? unpack(g, file, size) : -1;
    free(file);
    if (status) {
        print_error("%s cannot be read: %s\n", path, file ? "damaged, or of another format" : "no such file");
        golden_close(g);
        return -1;
    }
    take_text(g, g->torch, sizeof g->torch);
    g->cases = TAKE(g, uint32_t);
    g->start = g->at;
    return 0;
}

void golden_rewind(Golden *g)
{
    g->at = g->start;
    g->read = 0;
}

void golden_close(Golden *g)
{
    free(g->stream);
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
    if (g->read == g->cases) return 0;
    g->read++;
    memset(c, 0, sizeof *c);
    take_text(g, c->op, sizeof c->op);
    take_text(g, text, sizeof text);
    const TensorOp *op = tensor_op_find(c->op);
    if (!op) return print_error("golden case of the unknown op %s\n", c->op), -1;
    if (sample_next(op, &list, &c->sample) < 0)
        return print_error("golden case %s %s: %s\n", c->op, text, c->sample.wrong), -1;
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

/* ---- tensors
 * -----------------------------------------------------------------------------------------------------------
 */

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
