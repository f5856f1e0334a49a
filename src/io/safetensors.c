/* safetensors.c - reads the format of github.com/huggingface/safetensors.
 *
 *  - The header is JSON of one fixed form: an object of objects whose values are strings and arrays of
 * integers;
 *    "__metadata__" is an object of strings.
 *  - The whole header is checked before a tensor is made: its tensors cover the rest of the file without
 * holes or overlaps, so no more is allocated than the file holds. */
#include <limits.h>
#include <stdlib.h>
#include <tapegrad/io.h>
#include "../../nn/module.h"
#include "crc32c.h"
#include "input.h"
#include "json.h"
#include "safetensors.h"

const IoLoadSafetensorsArgs io_load_safetensors_defaults = { IO_LOAD_SAFETENSORS_DEFAULTS };

static const char op[] = "io_load_safetensors";
static const char *const dtype_code[TENSOR_DTYPES] = SAFETENSORS_DTYPES;

typedef struct Record {
    const char *name; /* in the header's text */
    int dtype, ndim;
    int64_t shape[TENSOR_MAX_DIMS], offset[2];
} Record;

typedef struct Header {
    Json json;
    char *text;
    int64_t text_bytes, values_bytes; /* of the header; of the file after it */
    Record *record;
    int64_t count, capacity;
    bool metadata, checked; /* seen; the file begins with a checksum */
    uint32_t crc;           /* that one */
    IoMetadata *texts;      /* NULL: not asked for */
} Header;

/* ---- one entry ------------------------------------------------------------------------------- */

static int read_dtype(Header *h, Record *r)
{
    const char *text = json_string(&h->json);
    if (!text) return -1;
    for (r->dtype = 0; r->dtype < TENSOR_DTYPES; r->dtype++)
        if (strcmp(text, dtype_code[r->dtype]) == 0) return 0;
    return fail(TENSOR_EFORMAT, op, "%s: \"%.80s\" has the dtype %.20s, which is not known here",
                h->json.path, r->name, text);
}

static int read_field(Header *h, Record *r, unsigned *seen)
{
    static const char *const keys[] = { "dtype", "shape", "data_offsets" };
    const char *key = json_string(&h->json);
    unsigned field = 0;
    if (!key) return -1;
    while (field < 3 && strcmp(key, keys[field])) field++;
    if (field == 3 || *seen & 1u << field || !json_take(&h->json, ':'))
        return json_bad(&h->json, field == 3 ? "an unknown key" : "a damaged entry");
    *seen |= 1u << field;
    if (field == 0) return read_dtype(h, r);
    if (field == 1) return (r->ndim = json_integers(&h->json, r->shape, TENSOR_MAX_DIMS)) < 0 ? -1 : 0;
    int n = json_integers(&h->json, r->offset, 2);
    return n == 2 ? 0 : n < 0 ? -1 : json_bad(&h->json, "an entry without two data_offsets");
}

static int read_record(Header *h, Record *r)
{
    unsigned seen = 0;
    if (!json_take(&h->json, '{')) return json_bad(&h->json, "an object is missing");
    do {
        if (read_field(h, r, &seen)) return -1;
    } while (json_take(&h->json, ','));
    if (!json_take(&h->json, '}')) return json_bad(&h->json, "an object that does not end");
    if (seen != 7) return json_bad(&h->json, "an entry without dtype, shape or data_offsets");
    TensorShape shape = { r->ndim, r->shape };
    int64_t bytes = input_count(shape);
    if (bytes >= 0) bytes *= (int64_t)dtype_size(r->dtype);
    if (bytes >= 0 && r->offset[0] <= r->offset[1] && r->offset[1] <= h->values_bytes &&
        r->offset[1] - r->offset[0] == bytes)
        return 0;
    return fail(TENSOR_EFORMAT, op, "%s: \"%.80s\" %s %s at bytes %lld to %lld of %lld does not fit",
                h->json.path, r->name, tensor_dtype_name((TensorDtype)r->dtype), shape_text(shape),
                (long long)r->offset[0], (long long)r->offset[1], (long long)h->values_bytes);
}

static int read_text(Header *h)
{
    Json *j = &h->json;
    const char *name = json_string(j);
    if (!name) return -1;
    if (!json_take(j, ':')) return json_bad(j, "a damaged __metadata__");
    const char *text = json_string(j);
    if (!text) return -1;
    bool stale = !h->checked && strcmp(name, "crc32c") == 0; /* not where we put it: of another file */
    return h->texts && !stale ? io_metadata_set(h->texts, name, text) : 0;
}

static int read_metadata(Header *h)
{
    Json *j = &h->json;
    if (h->metadata || !json_take(j, '{'))
        return json_bad(j, "a second __metadata__, or one that is no object");
    h->metadata = true;
    if (json_take(j, '}')) return 0;
    do {
        if (read_text(h)) return -1;
    } while (json_take(j, ','));
    return json_take(j, '}') ? 0 : json_bad(j, "a __metadata__ that does not end");
}

/* ---- the header ------------------------------------------------------------------------------ */

static int read_entry(Header *h)
{
    const char *name = json_string(&h->json);
    if (!name) return -1;
    if (!json_take(&h->json, ':')) return json_bad(&h->json, "a colon is missing");
    if (strcmp(name, "__metadata__") == 0) return read_metadata(h);
    if (h->count == h->capacity) {
        int64_t more = h->capacity ? 2 * h->capacity : 64;
        Record *grown = tg_grow(h->record, (size_t)h->capacity * sizeof *grown, (size_t)more * sizeof *grown);
        if (!grown) return fail_memory(op);
        h->record = grown, h->capacity = more;
    }
    h->record[h->count] = (Record){ .name = name };
    return read_record(h, &h->record[h->count++]);
}

static int read_entries(Header *h)
{
    Json *j = &h->json;
    if (!json_is_utf8(h->text, (size_t)h->text_bytes)) return json_bad(j, "bytes that are no UTF-8");
    if (!json_take(j, '{')) return json_bad(j, "an object is missing");
    if (!json_take(j, '}')) {
        do {
            if (read_entry(h)) return -1;
        } while (json_take(j, ','));
        if (!json_take(j, '}')) return json_bad(j, "an object that does not end");
    }
    json_take(j, ' '); /* the padding */
    return j->at == j->end ? 0 : json_bad(j, "bytes after its object");
}

static int by_offset(const void *a, const void *b)
{
    const Record *x = *(Record *const *)a, *y = *(Record *const *)b;
    int side = x->offset[0] == y->offset[0];
    return (x->offset[side] > y->offset[side]) - (x->offset[side] < y->offset[side]);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(Record *const *)a)->name, (*(Record *const *)b)->name);
}

static int check_sorted(Header *h, Record **sorted)
{
    int64_t at = 0;
    size_t n = (size_t)h->count;
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return fail(TENSOR_EFORMAT, op, "%s: \"%.80s\" is there twice", h->json.path, sorted[i]->name);
    qsort(sorted, n, sizeof *sorted, by_offset);
    for (size_t i = 0; i < n; at = sorted[i++]->offset[1])
        if (sorted[i]->offset[0] != at)
            return fail(TENSOR_EFORMAT, op,
                        "%s: \"%.80s\" begins at byte %lld of the values, where %lld is due", h->json.path,
                        sorted[i]->name, (long long)sorted[i]->offset[0], (long long)at);
    if (at == h->values_bytes) return 0;
    return fail(TENSOR_EFORMAT, op, "%s: %lld bytes after the last tensor", h->json.path,
                (long long)(h->values_bytes - at));
}

/* No name twice, no hole, no overlap. */
static int check_records(Header *h)
{
    size_t bytes = (size_t)h->count * sizeof(Record *);
    Record **sorted = tg_alloc(bytes);
    if (!sorted) return fail_memory(op);
    for (int64_t i = 0; i < h->count; i++) sorted[i] = &h->record[i];
    int status = check_sorted(h, sorted);
    tg_free(sorted, bytes);
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/* Takes the checksum out of the text, for what was summed has zeros there. */
static void find_checksum(Header *h)
{
    char *digits = h->text + SAFETENSORS_CHECKED_AT, copy[SAFETENSORS_DIGITS + 1] = "";
    if (h->text_bytes < SAFETENSORS_CHECKED_AT + SAFETENSORS_DIGITS ||
        memcmp(h->text, SAFETENSORS_CHECKED, SAFETENSORS_CHECKED_AT))
        return;
    for (int i = 0; i < SAFETENSORS_DIGITS; i++)
        if (!is_hex(digits[i])) return;
    memcpy(copy, digits, SAFETENSORS_DIGITS);
    h->crc = (uint32_t)strtoul(copy, NULL, 16), h->checked = true;
    memset(digits, '0', SAFETENSORS_DIGITS);
}

/* What is wrong with a file whose checksum is wrong: the header, or too few bytes, or other ones. */
static int explain(const char *path, Header *h, uint32_t crc)
{
    char damaged[PATH_MAX + 16];
    int64_t there = h->values_bytes, due = 0;
    snprintf(damaged, sizeof damaged, "%s is damaged", path);
    h->values_bytes = INT64_MAX;
    h->json.path = damaged;
    if (read_entries(h)) return -1;
    for (int64_t i = 0; i < h->count; i++)
        if (h->record[i].offset[1] > due) due = h->record[i].offset[1];
    if (due > there)
        return fail(TENSOR_EFORMAT, op, "%s is cut short: %lld of %lld bytes of values", path,
                    (long long)there, (long long)due);
    return fail(TENSOR_EFORMAT, op, "%s is damaged: its checksum is %08x, it says %08x", path, (unsigned)crc,
                (unsigned)h->crc);
}

/* Before anything is made of the file. */
static int verify(FILE *f, const char *path, Header *h)
{
    enum { PIECE = 1 << 16 };
    uint32_t crc = crc32c(0, h->text, (size_t)h->text_bytes);
    char *piece = tg_alloc(PIECE);
    if (!piece) return fail_memory(op);
    for (size_t n; (n = fread(piece, 1, PIECE, f)) > 0;) crc = crc32c(crc, piece, n);
    tg_free(piece, PIECE);
    if (ferror(f)) return fail(TENSOR_EIO, op, "%s cannot be read", path);
    return crc == h->crc ? 0 : explain(path, h, crc);
}

static int read_header(FILE *f, const char *path, int64_t total, Header *h)
{
    unsigned char length[8];
    uint64_t bytes = 0;
    if (fread(length, 1, 8, f) != 8) return fail(TENSOR_EFORMAT, op, "%s: shorter than 8 bytes", path);
    for (int i = 7; i >= 0; i--) bytes = bytes << 8 | length[i];
    if (bytes < 2 || bytes > SAFETENSORS_MAX_HEADER || (int64_t)bytes > total - 8)
        return fail(TENSOR_EFORMAT, op,
                    "%s: no safetensors file, or cut short: a header of %llu bytes in %lld", path,
                    (unsigned long long)bytes, (long long)total);
    h->text_bytes = (int64_t)bytes, h->values_bytes = total - 8 - h->text_bytes;
    h->text = tg_alloc(bytes);
    if (!h->text) return fail_memory(op);
    if (fread(h->text, 1, bytes, f) != bytes) return fail(TENSOR_EIO, op, "%s cannot be read", path);
    find_checksum(h);
    h->json = (Json){ op, path, h->text, h->text + bytes };
    if (h->checked && verify(f, path, h)) return -1;
    return read_entries(h) || check_records(h) ? -1 : 0;
}

static Tensor *read_tensor(FILE *f, const Header *h, const Record *r)
{
    Tensor *x = new_tensor((TensorShape){ r->ndim, r->shape }, r->dtype, &cpu_place);
    if (!x) return NULL;
    size_t bytes = (size_t)(r->offset[1] - r->offset[0]);
    if (fseek(f, (long)(8 + h->text_bytes + r->offset[0]), SEEK_SET) ||
        fread(x->data, 1, bytes, f) != bytes) {
        fail(TENSOR_EIO, op, "%s: \"%.80s\" cannot be read", h->json.path, r->name);
        tensor_release(x);
        return NULL;
    }
    uint8_t *truth = x->data;
    for (size_t i = 0; x->dtype == TENSOR_BOOL && i < bytes; i++) truth[i] = truth[i] != 0;
    return x;
}

static int read_file(FILE *f, const char *path, int64_t total, Header *h, TensorDict *dict)
{
    int status = read_header(f, path, total, h);
    for (int64_t i = 0; i < h->count && !status; i++) {
        Tensor *x = read_tensor(f, h, &h->record[i]);
        status = x ? nn_dict_append(dict, h->record[i].name, x) : -1;
        tensor_release(x);
    }
    return status;
}

TensorDict io_load_safetensors_args(IoLoadSafetensorsArgs args)
{
    TensorDict dict = { 0 };
    IoMetadata texts = { 0 };
    Header h = { .texts = args.metadata ? &texts : NULL };
    int64_t total;
    FILE *f = input_stream(args.path, op, &total);
    if (!f) return nn_no_dict;
    int status = read_file(f, args.path, total, &h, &dict);
    fclose(f);
    tg_free(h.record, (size_t)h.capacity * sizeof *h.record);
    tg_free(h.text, (size_t)h.text_bytes);
    if (!status) {
        if (args.metadata) *args.metadata = texts;
        return dict;
    }
    io_metadata_free(texts);
    nn_dict_free(dict);
    return nn_no_dict;
}
