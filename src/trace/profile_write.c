/* profile_write.c - writes the profiler's measurements as rows, tables and a trace. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "profile.h"

enum { PATH_TEXT = 256, PATH_DEPTH = 64 };

/* ---- rows ------------------------------------------------------------------------------------ */

static int by_self(const void *a, const void *b)
{
    const ProfileRow *x = *(const ProfileRow *const *)a, *y = *(const ProfileRow *const *)b;
    return (x->self.ns < y->self.ns) - (x->self.ns > y->self.ns);
}

/* Of all rows, sorted; NULL without memory, or without rows. */
static const ProfileRow **sorted(const ProfileLog *log)
{
    const ProfileRow **row = log->rows ? malloc((size_t)log->rows * sizeof *row) : NULL;
    for (int i = 0; row && i < log->rows; i++) row[i] = &log->row[i];
    if (row) qsort(row, (size_t)log->rows, sizeof *row, by_self);
    return row;
}

int tensor_profile_rows(TensorProfile *rows, int room)
{
    if (!rows && room > 0)
        return fail(TENSOR_ENULL, "tensor_profile_rows", "room for %d rows, but the array is NULL", room);
    const ProfileLog *log = profile_lock();
    const int n = log->rows;
    const ProfileRow **row = sorted(log);
    for (int i = 0; i < n && i < room && row; i++)
        rows[i] = (TensorProfile){ .name = row[i]->name,
                                   .backward = row[i]->kind == PROFILE_BACKWARD,
                                   .calls = row[i]->calls,
                                   .seconds = (double)row[i]->total.ns * 1e-9,
                                   .self_seconds = (double)row[i]->self.ns * 1e-9,
                                   .allocations = row[i]->self.allocations,
                                   .bytes = row[i]->self.bytes };
    profile_unlock();
    free(row);
    return !row && n && room > 0 ? fail_memory("tensor_profile_rows") : n;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *path_of(const ProfileLog *log, uint16_t range, char *text)
{
    uint16_t up[PATH_DEPTH];
    int n = 0;
    for (; range && n < PATH_DEPTH; range = log->range[range].parent) up[n++] = range;
    size_t at = 0;
    text[0] = 0;
    while (n-- > 0 && at < PATH_TEXT)
        at += (size_t)snprintf(text + at, PATH_TEXT - at, "%s%s", at ? "." : "", log->range[up[n]].name);
    return text;
}

static void print_ops(FILE *file, const ProfileLog *log, const ProfileRow **row)
{
    int64_t all = 0;
    for (int i = 0; i < log->rows; i++) all += row[i]->self.ns;
    fprintf(file, "%-34s %8s %11s %6s %11s %11s %9s %9s\n", "op", "calls", "self ms", "self", "total ms",
            "us a call", "requests", "MB");
    for (int i = 0; i < log->rows; i++) {
        const ProfileRow *r = row[i];
        char name[PROFILE_NAME + 12];
        snprintf(name, sizeof name, "%s%s", r->name, r->kind == PROFILE_BACKWARD ? " backward" : "");
        fprintf(file, "%-34s %8lld %11.3f %5.1f%% %11.3f %11.2f %9lld %9.2f\n", name, (long long)r->calls,
                (double)r->self.ns * 1e-6, all ? 100. * (double)r->self.ns / (double)all : 0,
                (double)r->total.ns * 1e-6, (double)r->total.ns * 1e-3 / (double)r->calls,
                (long long)r->self.allocations, (double)r->self.bytes * 1e-6);
    }
    fprintf(file, "%.3f ms in ops, of %.3f ms\n", (double)all * 1e-6, (double)(log->end - log->start) * 1e-6);
}

/* Depth first, in the order in which they were met. */
static void print_ranges(FILE *file, const ProfileLog *log, uint16_t range)
{
    char path[PATH_TEXT];
    const ProfileRange *r = &log->range[range];
    if (range)
        fprintf(file, "%-43s %8lld %11.3f %11.3f %9lld %9.2f\n", path_of(log, range, path),
                (long long)r->calls, (double)r->forward.ns * 1e-6, (double)r->backward_ns * 1e-6,
                (long long)r->forward.allocations, (double)r->forward.bytes * 1e-6);
    uint16_t child[PATH_TEXT];
    int n = 0;
    for (uint16_t i = r->child; i && n < PATH_TEXT; i = log->range[i].next) child[n++] = i;
    while (n-- > 0) print_ranges(file, log, child[n]);
}

int tensor_profile_print(FILE *file)
{
    if (!file) return fail(TENSOR_ENULL, "tensor_profile_print", "the file is NULL");
    const ProfileLog *log = profile_lock();
    const ProfileRow **row = sorted(log);
    const int status = !row && log->rows ? fail_memory("tensor_profile_print") : 0;
    if (!status) print_ops(file, log, row);
    if (!status && log->ranges) {
        fprintf(file, "\n%-43s %8s %11s %11s %9s %9s\n", "module", "calls", "forward ms", "backward ms",
                "requests", "MB");
        print_ranges(file, log, 0);
    }
    profile_unlock();
    free(row);
    return status;
}

/* ---- the trace ------------------------------------------------------------------------------- */

/* Bytes of the letter in UTF-8 that text begins with; 0: it is none, or was cut off. */
static int letter(const unsigned char *text)
{
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    const int more = *text < 0x80       ? 0
                     : *text >> 5 == 6  ? 1
                     : *text >> 4 == 14 ? 2
                     : *text >> 3 == 30 ? 3
                                        : -1;
    if (more < 0) return 0;
    uint32_t code = more ? *text & (0x3fu >> more) : *text;
    for (int i = 1; i <= more; i++) {
        if (text[i] >> 6 != 2) return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    return code >= least[more] && code <= 0x10ffff && code >> 11 != 0x1b ? more + 1 : 0;
}

static void write_text(FILE *file, const char *text)
{
    putc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        const int n = letter(c);
        if (*c == '"' || *c == '\\') fprintf(file, "\\%c", *c);
        else if (*c < 0x20) fprintf(file, "\\u%04x", *c);
        else if (!n) fputs("\\ufffd", file);
        else fwrite(c, 1, (size_t)n, file);
        c += n ? n : 1;
    }
    putc('"', file);
}

static void write_event(FILE *file, const ProfileLog *log, const ProfileEvent *e)
{
    static const char *const kind[PROFILE_KINDS] = { "forward", "backward", "module" };
    char path[PATH_TEXT];
    fprintf(file, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"cat\":\"%s\",\"name\":", (int)getpid(), e->thread,
            kind[e->row < 0 ? PROFILE_RANGE : log->row[e->row].kind]);
    write_text(file, e->row < 0 ? log->range[e->range].name : log->row[e->row].name);
    fprintf(file, ",\"ts\":%lld.%03d,\"dur\":%lld.%03d,\"args\":{\"bytes\":%lld",
            (long long)(e->start / 1000), (int)(e->start % 1000), (long long)(e->ns / 1000),
            (int)(e->ns % 1000), (long long)e->bytes);
    if (e->range) {
        fputs(",\"module\":", file);
        write_text(file, path_of(log, e->range, path));
    }
    fputs("}}", file);
}

int tensor_profile_save(const char *path)
{
    static const char name[] = "tensor_profile_save";
    if (!path) return fail(TENSOR_ENULL, name, "the path is NULL");
    FILE *file = fopen(path, "w");
    if (!file) return fail(TENSOR_EIO, name, "%s: %s", path, strerror(errno));
    const ProfileLog *log = profile_lock();
    fprintf(file, "{\"displayTimeUnit\":\"ms\",\"droppedEvents\":%lld,\"traceEvents\":[\n",
            (long long)log->dropped);
    for (int64_t i = 0; i < log->events; i++) {
        if (i) fputs(",\n", file);
        write_event(file, log, &log->event[i]);
    }
    fputs("\n]}\n", file);
    profile_unlock();
    const bool failed = ferror(file);
    return fclose(file) || failed ? fail(TENSOR_EIO, name, "%s: %s", path, strerror(errno)) : 0;
}
