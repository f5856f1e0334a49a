/* safetensors_save.c - names, shapes and bytes of tensors into one file.
 *
 * The header lists the tensors in the dictionary's order.  The bytes come by element size, widest first, so
 * that every tensor lies at a multiple of its element size: readers that map the file rely on it. */
#include <tapegrad/io.h>
#include "tensor/core.h"
#include "atomic_file.h"
#include "crc32c.h"
#include "json.h"
#include "safetensors.h"

const IoSaveSafetensorsArgs io_save_safetensors_defaults = { IO_SAVE_SAFETENSORS_DEFAULTS };

static const char op[] = "io_save_safetensors";
static const char *const dtype_code[TENSOR_DTYPES] = SAFETENSORS_DTYPES;

static size_t bytes_of(const Tensor *x) { return (size_t)x->numel * dtype_size(x->dtype); }

static int check_dict(TensorDict dict)
{
    if (dict.count < 0)
        return tensor_error_code() ? -1
                                   : fail(TENSOR_ENULL, op, "the dictionary is the result of a failed call");
    if (dict.count && !dict.item)
        return fail(TENSOR_ENULL, op, "%d items, but their list is NULL", dict.count);
    for (int i = 0; i < dict.count; i++) {
        const char *name = dict.item[i].name;
        if (!name || !dict.item[i].tensor)
            return fail(TENSOR_ENULL, op, "item %d of the dictionary has no %s", i, name ? "tensor" : "name");
        if (check_null(dict.item[i].tensor, op, i + 1)) return -1;
        if (strcmp(name, "__metadata__") == 0)
            return fail(TENSOR_EVALUE, op, "__metadata__ cannot be the name of a tensor");
        if (!json_is_utf8(name, strlen(name)))
            return fail(TENSOR_EVALUE, op, "the name of item %d of the dictionary is no UTF-8", i);
    }
    return 0;
}

static int check_metadata(IoMetadata m)
{
    if (m.count < 0 || (m.count && !m.item)) return fail(TENSOR_ENULL, op, "the metadata have no items");
    for (int i = 0; i < m.count; i++) {
        const char *name = m.item[i].name, *text = m.item[i].text;
        if (!name || !text) return fail(TENSOR_ENULL, op, "item %d of the metadata is NULL", i);
        if (strcmp(name, "crc32c") == 0)
            return fail(TENSOR_EVALUE, op, "metadata \"crc32c\": .checksum = true writes it");
        if (!json_is_utf8(name, strlen(name)) || !json_is_utf8(text, strlen(text)))
            return fail(TENSOR_EVALUE, op, "item %d of the metadata is no UTF-8", i);
    }
    return 0;
}

static void write_metadata(JsonText *text, const IoSaveSafetensorsArgs *args)
{
    const char *comma = "";
    if (!args->checksum && !args->metadata.count) return;
    json_put(text, "\"__metadata__\":{");
    if (args->checksum) json_put(text, "\"crc32c\":\"%08x\"", 0u), comma = ",";
    for (int i = 0; i < args->metadata.count; i++, comma = ",") {
        json_put(text, "%s", comma);
        json_put_string(text, args->metadata.item[i].name);
        json_put(text, ":");
        json_put_string(text, args->metadata.item[i].text);
    }
    json_put(text, args->dict.count ? "}," : "}");
}

static void write_header(JsonText *text, const IoSaveSafetensorsArgs *args)
{
    const TensorDict dict = args->dict;
    int64_t at[9] = { 0 }; /* by element size: where the next such tensor goes */
    for (int i = 0; i < dict.count; i++)
        for (int size = 1; size < (int)dtype_size(dict.item[i].tensor->dtype); size *= 2)
            at[size] += (int64_t)bytes_of(dict.item[i].tensor);
    json_put(text, "{");
    write_metadata(text, args);
    for (int i = 0; i < dict.count; i++) {
        const Tensor *x = dict.item[i].tensor;
        int64_t begin = at[dtype_size(x->dtype)], end = at[dtype_size(x->dtype)] += (int64_t)bytes_of(x);
        if (i) json_put(text, ",");
        json_put_string(text, dict.item[i].name);
        json_put(text, ":{\"dtype\":\"%s\",\"shape\":[", dtype_code[x->dtype]);
        for (int d = 0; d < x->ndim; d++) json_put(text, d ? ",%lld" : "%lld", (long long)x->shape[d]);
        json_put(text, "],\"data_offsets\":[%lld,%lld]}", (long long)begin, (long long)end);
    }
    json_put(text, "}");
    while (text->length % 8 && !text->failed) json_put(text, " ");
}

/* The header's length, in 8 bytes, and the header.  The caller frees it, also on failure. */
static int make_header(const IoSaveSafetensorsArgs *args, JsonText *text)
{
    json_put(text, "%8s", "");
    write_header(text, args);
    if (text->failed) return fail_memory(op);
    if (text->length > SAFETENSORS_MAX_HEADER + 8)
        return fail(TENSOR_EVALUE, op, "a header of %zu bytes: at most %d", text->length - 8,
                    SAFETENSORS_MAX_HEADER);
    for (int i = 0; i < 8; i++) text->bytes[i] = (char)((uint64_t)(text->length - 8) >> 8 * i);
    return 0;
}

typedef struct Output {
    AtomicFile file;
    bool checksum;
    uint32_t crc;
} Output;

static int write_bytes(Output *out, const void *bytes, size_t n)
{
    if (out->checksum) out->crc = crc32c(out->crc, bytes, n);
    return atomic_write(&out->file, bytes, n, op);
}

static int write_values(Output *out, const Tensor *x)
{
    size_t bytes = bytes_of(x);
    if (x->place == &cpu_place && x->flags & FLAG_CONTIGUOUS) return write_bytes(out, x->data, bytes);
    char *dense = tg_alloc(bytes);
    int status = dense ? tensor_copy_to(x, dense, bytes) : fail_memory(op);
    if (!status) status = write_bytes(out, dense, bytes);
    tg_free(dense, bytes);
    return status;
}

/* Over the zeros that stand for it. */
static int write_checksum(Output *out)
{
    char digits[SAFETENSORS_DIGITS + 1];
    snprintf(digits, sizeof digits, "%08x", (unsigned)out->crc);
    return atomic_write_at(&out->file, 8 + SAFETENSORS_CHECKED_AT, digits, SAFETENSORS_DIGITS, op);
}

static int write_file(Output *out, TensorDict dict, const JsonText *header)
{
    int status = atomic_write(&out->file, header->bytes, 8, op);
    if (!status) status = write_bytes(out, header->bytes + 8, header->length - 8);
    for (size_t width = 8; width; width /= 2)
        for (int i = 0; i < dict.count && !status; i++)
            if (dtype_size(dict.item[i].tensor->dtype) == width)
                status = write_values(out, dict.item[i].tensor);
    return !status && out->checksum ? write_checksum(out) : status;
}

int io_save_safetensors_args(IoSaveSafetensorsArgs args)
{
    Output out = { .checksum = args.checksum };
    JsonText header = { 0 };
    if (tensor_error_code() || check_dict(args.dict) || check_metadata(args.metadata)) return -1;
    int status = make_header(&args, &header);
    if (!status) status = atomic_open(&out.file, args.path, op);
    if (!status) status = atomic_close(&out.file, write_file(&out, args.dict, &header) == 0, op);
    json_text_free(&header);
    return status;
}
