/* events.c - TensorBoard's event files: records of length, checksum, bytes, checksum (TFRecord), each an
 * Event in protocol buffers (tensorflow/core/util/event.proto, framework/summary.proto), of which a few
 * fields are written here. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tapegrad/watch.h>
#include <time.h>
#include <unistd.h>
#include "tensor/core.h"
#include "crc32c.h"
#include "json.h"
#include "png_encode.h"

const IoSummaryWriterArgs io_summary_writer_defaults = { IO_SUMMARY_WRITER_DEFAULTS };

struct SummaryWriter {
    FILE *file;     /* NULL: to be opened again */
    double flushed; /* when */
    off_t whole;    /* bytes that were in the file then */
    char path[PATH_MAX];
};

/* ---- protocol buffers ------------------------------------------------------------------------ */

typedef enum Wire { VARINT, FIXED64, BYTES, FIXED32 = 5 } Wire;

static void put_varint(JsonText *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) json_put_bytes(m, &(char){ (char)(value | 0x80) }, 1);
    json_put_bytes(m, &(char){ (char)value }, 1);
}

static void put_key(JsonText *m, int field, Wire wire) { put_varint(m, (uint64_t)field << 3 | wire); }

static void put_int(JsonText *m, int field, int64_t value)
{
    put_key(m, field, VARINT);
    put_varint(m, (uint64_t)value);
}

/* Little-endian, whatever the machine. */
static void put_fixed(JsonText *m, uint64_t bits, int bytes)
{
    for (int i = 0; i < bytes; i++) json_put_bytes(m, &(char){ (char)(bits >> 8 * i) }, 1);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void put_double(JsonText *m, int field, double value)
{
    put_key(m, field, FIXED64);
    put_fixed(m, bits_of(value), 8);
}

static void put_float(JsonText *m, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED32);
    put_fixed(m, bits, 4);
}

static void put_bytes(JsonText *m, int field, const void *bytes, size_t n)
{
    put_key(m, field, BYTES);
    put_varint(m, n);
    json_put_bytes(m, bytes, n);
}

static void put_text(JsonText *m, int field, const char *text) { put_bytes(m, field, text, strlen(text)); }

/* A message inside: it is freed. */
static void put_message(JsonText *m, int field, JsonText *inner)
{
    m->failed |= inner->failed;
    put_bytes(m, field, inner->bytes, inner->failed ? 0 : inner->length);
    json_text_free(inner);
}

static void put_doubles(JsonText *m, int field, const double *values, int n)
{
    put_key(m, field, BYTES);
    put_varint(m, (uint64_t)n * 8);
    for (int i = 0; i < n; i++) put_fixed(m, bits_of(values[i]), 8);
}

/* ---- records --------------------------------------------------------------------------------- */

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int cannot(const SummaryWriter *w, const char *op)
{
    return fail(TENSOR_EIO, op, "%s cannot be written: %s", w->path, strerror(errno));
}

/* Readers stop at a record that was cut off: the file is again what it was. */
static int give_up(SummaryWriter *w, const char *op)
{
    cannot(w, op);
    fclose(w->file);
    w->file = NULL;
    const int undone = truncate(w->path, w->whole);
    (void)undone; /* the first error stands */
    return -1;
}

static int flush(SummaryWriter *w, const char *op)
{
    if (w->file && fflush(w->file)) return give_up(w, op);
    if (w->file) w->whole = ftello(w->file);
    w->flushed = seconds(CLOCK_MONOTONIC);
    return 0;
}

static uint32_t masked(const void *bytes, size_t n)
{
    uint32_t crc = crc32c(0, bytes, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* event: what comes after time and step; it is freed. */
static int write_event(SummaryWriter *w, int64_t step, JsonText *event, const char *op)
{
    JsonText data = { 0 }, record = { 0 };
    put_double(&data, 1, seconds(CLOCK_REALTIME));
    put_int(&data, 2, step);
    data.failed |= event->failed;
    if (!data.failed) json_put_bytes(&data, event->bytes, event->length);
    put_fixed(&record, data.length, 8);
    if (!record.failed) put_fixed(&record, masked(record.bytes, 8), 4);
    if (!data.failed) json_put_bytes(&record, data.bytes, data.length);
    if (!data.failed) put_fixed(&record, masked(data.bytes, data.length), 4);
    int status = data.failed || record.failed ? fail_memory(op) : 0;
    if (!status && !w->file && !(w->file = fopen(w->path, "ab"))) status = cannot(w, op);
    if (!status && fwrite(record.bytes, 1, record.length, w->file) != record.length) status = give_up(w, op);
    json_text_free(event), json_text_free(&data), json_text_free(&record);
    if (status || seconds(CLOCK_MONOTONIC) - w->flushed < 2) return status;
    return flush(w, op);
}

/* value: fields of a Summary.Value beside its tag; it is freed. */
static int write_value(SummaryWriter *w, const char *tag, int64_t step, JsonText *value, const char *op)
{
    JsonText with_tag = { 0 }, summary = { 0 }, event = { 0 };
    put_text(&with_tag, 1, tag);
    with_tag.failed |= value->failed;
    if (!with_tag.failed) json_put_bytes(&with_tag, value->bytes, value->length);
    json_text_free(value);
    put_message(&summary, 1, &with_tag);
    put_message(&event, 5, &summary);
    return write_event(w, step, &event, op);
}

/* 0: go on; 1: there is no writer; -1. */
static int check(const SummaryWriter *w, const char *tag, const char *op)
{
    if (!w) return 1;
    if (!tag) return fail(TENSOR_ENULL, op, "the tag is NULL");
    return json_is_utf8(tag, strlen(tag)) ? 0 : fail(TENSOR_EVALUE, op, "the tag is no UTF-8");
}

/* ---- the file -------------------------------------------------------------------------------- */

static int open_file(SummaryWriter *w, const char *folder, const char *op)
{
    static atomic_int count;
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof host);
    int n = snprintf(w->path, sizeof w->path, "%s/events.out.tfevents.%010lld.%s.%d.%d", folder,
                     (long long)time(NULL), host, (int)getpid(), atomic_fetch_add(&count, 1));
    const char *outer = tensor_compose_begin(op);
    const int made = io_make_folder(folder);
    tensor_compose_end(outer);
    if (made) return -1;
    if (n >= PATH_MAX) errno = ENAMETOOLONG;
    w->file = n >= PATH_MAX ? NULL : fopen(w->path, "wbx");
    return w->file ? 0 : cannot(w, op);
}

static int write_start(SummaryWriter *w, int64_t purge_step, const char *op)
{
    JsonText version = { 0 }, session = { 0 }, start = { 0 };
    put_text(&version, 3, "brain.Event:2");
    if (write_event(w, 0, &version, op)) return -1;
    if (purge_step < 0) return 0;
    put_int(&session, 1, 1); /* SessionLog.START */
    put_message(&start, 7, &session);
    return write_event(w, purge_step, &start, op);
}

SummaryWriter *io_summary_writer_args(IoSummaryWriterArgs args)
{
    static const char op[] = "io_summary_writer";
    if (TENSOR_CHECK_OPTIONS(op, args, io_summary_writer_defaults)) return NULL;
    if (!args.log_dir) return fail(TENSOR_ENULL, op, "the folder is NULL"), NULL;
    SummaryWriter *w = tg_calloc(sizeof *w);
    if (!w) return fail_memory(op), NULL;
    if (!open_file(w, args.log_dir, op) && !write_start(w, args.purge_step, op) && !io_summary_flush(w))
        return w;
    io_summary_free(w);
    return NULL;
}

int io_summary_flush(SummaryWriter *w) { return w ? flush(w, "io_summary_flush") : 0; }

void io_summary_free(SummaryWriter *w)
{
    if (!w) return;
    flush(w, "io_summary_free");
    if (w->file) fclose(w->file);
    tg_free(w, sizeof *w);
}

/* ---- what is added --------------------------------------------------------------------------- */

int io_summary_add_scalar(SummaryWriter *w, const char *tag, double value, int64_t step)
{
    static const char op[] = "io_summary_add_scalar";
    JsonText v = { 0 };
    int status = check(w, tag, op);
    if (status) return status < 0 ? -1 : 0;
    put_float(&v, 2, (float)value);
    return write_value(w, tag, step, &v, op);
}

int io_summary_add_image(SummaryWriter *w, const char *tag, const Tensor *x, int64_t step)
{
    static const char op[] = "io_summary_add_image";
    JsonText v = { 0 }, image = { 0 };
    Png png;
    int status = check(w, tag, op);
    if (status || check_null(x, op, 3) || png_encode(x, op, &png)) return status > 0 ? 0 : -1;
    put_int(&image, 1, png.h), put_int(&image, 2, png.w), put_int(&image, 3, png.channels);
    put_bytes(&image, 4, png.bytes, png.n);
    tg_free(png.bytes, png.capacity);
    put_message(&v, 4, &image);
    return write_value(w, tag, step, &v, op);
}

/* A tensor of one string, for the plugin of that name. */
int io_summary_add_text(SummaryWriter *w, const char *tag, const char *text, int64_t step)
{
    static const char op[] = "io_summary_add_text";
    JsonText v = { 0 }, plugin = { 0 }, metadata = { 0 }, size = { 0 }, shape = { 0 }, tensor = { 0 };
    char full[300];
    int status = check(w, tag, op);
    if (status) return status < 0 ? -1 : 0;
    if (!text || !json_is_utf8(text, strlen(text)))
        return fail(text ? TENSOR_EVALUE : TENSOR_ENULL, op,
                    text ? "the text is no UTF-8" : "the text is NULL");
    snprintf(full, sizeof full, "%s/text_summary", tag);
    put_text(&plugin, 1, "text");
    put_message(&metadata, 1, &plugin);
    put_message(&v, 9, &metadata);
    put_int(&size, 1, 1);
    put_message(&shape, 2, &size);
    put_int(&tensor, 1, 7); /* DT_STRING */
    put_message(&tensor, 2, &shape);
    put_text(&tensor, 8, text);
    put_message(&v, 8, &tensor);
    return write_value(w, full, step, &v, op);
}

/* ---- histograms ------------------------------------------------------------------------------ */

enum { HALF = 774, BINS = 2 * HALF, EDGES = BINS + 1 }; /* 1e-12 1.1^k below 1e20, on either side of 0 */

static void make_edges(double *edge)
{
    double v = 1e-12;
    edge[HALF] = 0;
    for (int k = 1; k <= HALF; k++, v *= 1.1) edge[HALF + k] = v, edge[HALF - k] = -v;
}

/* Bins hold their lower edge, the last one both; -1: beyond all. */
static int bin_of(const double *edge, double value)
{
    int low = 0, high = BINS;
    if (!(value >= edge[0] && value <= edge[BINS])) return -1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (value >= edge[middle]) low = middle;
        else high = middle;
    }
    return low;
}

/* From the bin before the first that has values to the last that has. */
static void put_buckets(JsonText *m, const double *edge, const double *count)
{
    double shown[BINS + 1];
    int first = 0, last = BINS - 1, n = 0;
    while (first < BINS - 1 && count[first] == 0) first++;
    while (last > first && count[last] == 0) last--;
    shown[n++] = first ? count[first - 1] : 0;
    for (int i = first; i <= last; i++) shown[n++] = count[i];
    put_doubles(m, 6, edge + first, n);
    put_doubles(m, 7, shown, n);
}

static void put_histogram(JsonText *m, const double *x, int64_t n)
{
    double edge[EDGES], count[BINS] = { 0 }, least = INFINITY, most = -INFINITY, sum = 0, squares = 0;
    make_edges(edge);
    for (int64_t i = 0; i < n; i++) {
        const int bin = bin_of(edge, x[i]);
        if (bin >= 0) count[bin]++;
        least = fmin(least, x[i]), most = fmax(most, x[i]);
        sum += x[i], squares += x[i] * x[i];
    }
    put_double(m, 1, least), put_double(m, 2, most), put_double(m, 3, (double)n);
    put_double(m, 4, sum), put_double(m, 5, squares);
    put_buckets(m, edge, count);
}

int io_summary_add_histogram(SummaryWriter *w, const char *tag, const Tensor *x, int64_t step)
{
    static const char op[] = "io_summary_add_histogram";
    JsonText v = { 0 }, histogram = { 0 };
    int status = check(w, tag, op);
    if (status) return status < 0 ? -1 : 0;
    if (check_null(x, op, 3)) return -1;
    if (x->numel == 0) return fail(TENSOR_ESHAPE, op, "%s: has no elements", S(x));
    TensorScope scope = tensor_scope_open();
    const char *outer = tensor_compose_begin(op);
    Tensor *values = scope_failed(scope) ? NULL : tensor_to_device(tensor_detach((Tensor *)x), "cpu");
    Tensor *dense = values ? raw_cast(values, TENSOR_F64) : NULL;
    tensor_compose_end(outer);
    if (dense) put_histogram(&histogram, dense->data, dense->numel);
    tensor_release(dense);
    tensor_scope_close(scope);
    if (!dense) return -1;
    put_message(&v, 5, &histogram);
    return write_value(w, tag, step, &v, op);
}
