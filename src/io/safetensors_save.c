/* safetensors_save.c - names, shapes and bytes of tensors into one file.
 *
 * The header lists the tensors in the dictionary's order.  The bytes come by element size, widest first, so
 * that every tensor lies at a multiple of its element size: readers that map the file rely on it. */
#include <tapegrad/io.h>
#include "tensor/core.h"
#include "atomic_file.h"
#include "json.h"
#include "safetensors.h"

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

static void write_header(JsonText *text, TensorDict dict)
{
    int64_t at[9] = { 0 }; /* by element size: where the next such tensor goes */
    for (int i = 0; i < dict.count; i++)
        for (int size = 1; size < (int)dtype_size(dict.item[i].tensor->dtype); size *= 2)
            at[size] += (int64_t)bytes_of(dict.item[i].tensor);
    json_put(text, "{");
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
static int make_header(TensorDict dict, JsonText *text)
{
    json_put(text, "%8s", "");
    write_header(text, dict);
    if (text->failed) return fail_memory(op);
    if (text->length > SAFETENSORS_MAX_HEADER + 8)
        return fail(TENSOR_EVALUE, op, "a header of %zu bytes: at most %d", text->length - 8,
                    SAFETENSORS_MAX_HEADER);
    for (int i = 0; i < 8; i++) text->bytes[i] = (char)((uint64_t)(text->length - 8) >> 8 * i);
    return 0;
}

static int write_values(AtomicFile *f, const Tensor *x)
{
    size_t bytes = bytes_of(x);
    if (x->place == &cpu_place && x->flags & FLAG_CONTIGUOUS) return atomic_write(f, x->data, bytes, op);
    char *dense = tg_alloc(bytes);
    int status = dense ? tensor_copy_to(x, dense, bytes) : fail_memory(op);
    if (!status) status = atomic_write(f, dense, bytes, op);
    tg_free(dense, bytes);
    return status;
}

static int write_file(AtomicFile *f, TensorDict dict, const JsonText *header)
{
    int status = atomic_write(f, header->bytes, header->length, op);
    for (size_t width = 8; width; width /= 2)
        for (int i = 0; i < dict.count && !status; i++)
            if (dtype_size(dict.item[i].tensor->dtype) == width)
                status = write_values(f, dict.item[i].tensor);
    return status;
}

int io_save_safetensors(const char *path, TensorDict dict)
{
    AtomicFile f;
    JsonText header = { 0 };
    if (tensor_error_code() || check_dict(dict)) return -1;
    int status = make_header(dict, &header);
    if (!status) status = atomic_open(&f, path, op);
    if (!status) status = atomic_close(&f, write_file(&f, dict, &header) == 0, op);
    json_text_free(&header);
    return status;
}
