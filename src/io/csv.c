/* csv.c - CSV logs, to which a resumed run appends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <tapegrad/watch.h>
#include <unistd.h>
#include "tensor/core.h"
#include "tensor/numbers.h"

const IoCsvLogArgs io_csv_log_defaults = { IO_CSV_LOG_DEFAULTS };

struct CsvLog {
    FILE *file;
    int columns;
    char path[1024];
};

static const char op[] = "io_csv_log";

static int cannot(const CsvLog *log)
{
    return fail(TENSOR_EIO, op, "%s cannot be written: %s", log->path, strerror(errno));
}

/* Where the rows end that stay; 0: there is no whole line; -1: it is another one's. */
static int64_t find_end(const CsvLog *log, const IoCsvLogArgs *args, const char *text)
{
    const size_t names = strlen(args->columns);
    const char *end = strchr(text, '\n'), *line;
    char *after;
    if (!end) return 0;
    if ((size_t)(end - text) != names || memcmp(text, args->columns, names))
        return fail(TENSOR_EFORMAT, op, "%s has the columns %.*s, not %s", log->path, (int)(end - text), text,
                    args->columns);
    for (line = end + 1; (end = strchr(line, '\n')) != NULL; line = end + 1)
        if (!(read_double(line, &after) < args->before) || after == line) break;
    return line - text;
}

static int64_t find_end_in_file(const CsvLog *log, const IoCsvLogArgs *args)
{
    int64_t end = -1;
    const long n = fseek(log->file, 0, SEEK_END) ? -1 : ftell(log->file);
    if (n < 0) return cannot(log);
    char *text = tg_calloc((size_t)n + 1);
    rewind(log->file);
    if (!text) fail_memory(op);
    else if (fread(text, 1, (size_t)n, log->file) != (size_t)n) cannot(log);
    else end = find_end(log, args, text);
    tg_free(text, (size_t)n + 1);
    return end;
}

static int open_old(CsvLog *log, const IoCsvLogArgs *args)
{
    log->file = fopen(log->path, "r+");
    if (!log->file) return errno == ENOENT ? 0 : cannot(log);
    int64_t end = find_end_in_file(log, args);
    if (end < 0) return -1;
    if (fseek(log->file, (long)end, SEEK_SET) || ftruncate(fileno(log->file), end)) return cannot(log);
    return end > 0;
}

static int open_log(CsvLog *log, const IoCsvLogArgs *args)
{
    int has_names = args->resume ? open_old(log, args) : 0;
    if (has_names) return has_names < 0 ? -1 : 0;
    if (!log->file && !(log->file = fopen(log->path, "w"))) return cannot(log);
    return fprintf(log->file, "%s\n", args->columns) < 0 || fflush(log->file) ? cannot(log) : 0;
}

CsvLog *io_csv_log_args(IoCsvLogArgs args)
{
    if (TENSOR_CHECK_OPTIONS(op, args, io_csv_log_defaults)) return NULL;
    if (!args.path || !args.columns) return fail(TENSOR_ENULL, op, "path or columns are NULL"), NULL;
    if (!*args.columns || strpbrk(args.columns, "\n\r"))
        return fail(TENSOR_EVALUE, op, "columns: want names on one line"), NULL;
    CsvLog *log = tg_calloc(sizeof *log);
    if (!log) return fail_memory(op), NULL;
    log->columns = 1;
    for (const char *c = args.columns; (c = strchr(c, ',')) != NULL; c++) log->columns++;
    int n = snprintf(log->path, sizeof log->path, "%s", args.path);
    if (n < (int)sizeof log->path && !open_log(log, &args)) return log;
    if (n >= (int)sizeof log->path) fail(TENSOR_EIO, op, "%.60s...: %s", args.path, strerror(ENAMETOOLONG));
    io_csv_log_free(log);
    return NULL;
}

/* As few digits as read back the same. */
static void write_number(FILE *f, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, f);
}

int io_csv_log_write(CsvLog *log, const double *values, int count)
{
    if (!log) return 0;
    if (!values) return fail(TENSOR_ENULL, "io_csv_log_row", "the values are NULL");
    if (count != log->columns)
        return fail(TENSOR_EVALUE, "io_csv_log_row", "%d numbers for %d columns", count, log->columns);
    const locale_t was = numbers_begin();
    for (int i = 0; i < count; i++) {
        if (i) fputc(',', log->file);
        write_number(log->file, values[i]);
    }
    numbers_end(was);
    return fputc('\n', log->file) == EOF || fflush(log->file) || ferror(log->file) ? cannot(log) : 0;
}

void io_csv_log_free(CsvLog *log)
{
    if (!log) return;
    if (log->file) fclose(log->file);
    tg_free(log, sizeof *log);
}
