/* kinds.c - see kinds.h. */
#include "autograd/options.h" /* before cmocka.h, which has a macro `fail` */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad/ops.h>
#include "kinds.h"

_Static_assert(sizeof(OptionRoom) <= sizeof(KindRoom), "room for the options of one module");

static const OpField *field_named(const OpField *fields, const char *name, size_t length)
{
    for (const OpField *f = fields; f && f->name; f++)
        if (strlen(f->name) == length && strncmp(f->name, name, length) == 0) return f;
    return NULL;
}

void kind_options(const OpField *fields, const void *defaults, size_t size, const char *text, void *to,
                  KindRoom *room)
{
    memcpy(to, defaults, size);
    memset(room, 0, sizeof *room);
    for (const char *at = text; *(at += strspn(at, " "));) {
        size_t length = strcspn(at, "=");
        const OpField *f = field_named(fields, at, length);
        const char *end = f && at[length] ? options_read_value(f, at + length + 1, to, (void *)room) : NULL;
        if (!end || (*end && *end != ' ')) fail_msg("\"%s\": cannot be read at \"%s\"", text, at);
        at = end;
    }
}

KindFile kind_open(const char *path)
{
    KindFile f = { .file = fopen(path, "r") };
    if (!f.file) fail_msg("%s: cannot be read", path);
    return f;
}

char *kind_line(KindFile *f, const char **rest)
{
    ssize_t n = getline(&f->line, &f->size, f->file);
    if (n <= 0) return NULL;
    if (f->line[n - 1] == '\n') f->line[n - 1] = 0;
    char *space = strchr(f->line, ' ');
    *rest = space ? space + 1 : "";
    if (space) *space = 0;
    return f->line;
}

void kind_close(KindFile *f)
{
    fclose(f->file);
    free(f->line);
}

void kind_samples(const char *name, const char *samples, void (*fn)(const char *text))
{
    for (const char *at = samples ? samples : ""; *(at += strspn(at, " ;"));) {
        char text[400];
        const int length = (int)strcspn(at, ";");
        assert_true(snprintf(text, sizeof text, "%s|%.*s", name, length, at) < (int)sizeof text);
        fn(text);
        at += length;
    }
}

double *kind_numbers(const char *text, int64_t *count)
{
    int64_t room = 16;
    double *values = malloc((size_t)room * sizeof *values);
    assert_non_null(values);
    char *end;
    for (*count = 0;; text = end) {
        double value = strtod(text, &end);
        if (end == text) break;
        if (*count == room) {
            values = realloc(values, (size_t)(room *= 2) * sizeof *values);
            assert_non_null(values);
        }
        values[(*count)++] = value;
    }
    if (text[strspn(text, " ")]) fail_msg("\"%.40s\" is no number", text);
    return values;
}

static void declared_in(const char *path, const char *type, const char *prefix,
                        void (*fn)(void *, const char *), void *ctx)
{
    char start[80], line[512];
    int n = snprintf(start, sizeof start, "TAPEGRAD_API %s *%s", type, prefix);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s: cannot be read", path);
    while (fgets(line, sizeof line, file)) {
        char *open = strchr(line, '(');
        if (strncmp(line, start, (size_t)n) != 0 || !open) continue;
        *open = 0;
        char *name = line + n - strlen(prefix), *args = strstr(name, "_args");
        if (args && !args[5]) *args = 0;
        fn(ctx, name);
    }
    fclose(file);
}

void kind_declared(const char *header, const char *folder, const char *type, const char *prefix,
                   void (*fn)(void *, const char *), void *ctx)
{
    declared_in(header, type, prefix, fn, ctx);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        char path[512];
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".h") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        declared_in(path, type, prefix, fn, ctx);
    }
    if (dir) closedir(dir);
}

static TensorShape read_shape(const char *text, int64_t dim[TENSOR_MAX_DIMS])
{
    int n = 0;
    for (char *end; *text >= '0' && *text <= '9'; text = *end == 'x' ? end + 1 : end)
        dim[n++] = strtoll(text, &end, 10);
    return (TensorShape){ n, dim };
}

void kind_golden(KindGolden *g, const char *text, bool named)
{
    const char *space = strchr(text, ' ');
    assert_non_null(space);
    if (named) {
        g->name = strndup(text, (size_t)(space - text));
        text = space + 1;
        space = strchr(text, ' ');
        assert_non_null(space);
    }
    g->shape = read_shape(text, g->dim);
    int64_t n, want = 1;
    g->values = kind_numbers(space, &n);
    for (int d = 0; d < g->shape.ndim; d++) want *= g->dim[d];
    assert_int_equal(n, want);
}

void kind_golden_free(KindGolden *g) { free(g->name), free(g->values); }

Tensor *kind_input(const char *text, int k, TensorDtype dtype)
{
    int64_t dim[TENSOR_MAX_DIMS], n = 1;
    const TensorShape shape = read_shape(text, dim);
    const size_t size = strcspn(text, ",");
    const char *kind = memchr(text, '@', size), *bounds = memchr(text, ':', size);
    if (*text == '-') return NULL;
    for (int d = 0; d < shape.ndim; d++) n *= dim[d];
    double *x = malloc((size_t)n * sizeof *x), low = -1.5, high = 1.5;
    assert_non_null(x);
    if (bounds) low = strtod(bounds + 1, NULL), high = strtod(strstr(bounds, "..") + 2, NULL);
    const bool is_bool = kind && kind[1] == 'b';
    int64_t first = 0, most = 0;
    if (kind && !is_bool) {
        char *end;
        most = strtoll(kind + 1, &end, 10);
        if (*end == '.') first = most, most = strtoll(end + 2, NULL, 10);
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = is_bool ? i % 3 == 1
               : kind  ? (double)(first + 7 * i % (most - first))
                       : low + (high - low) * (0.5 + 0.5 * sin(0.7 * (double)i + 0.3 + k));
    Tensor *t = tensor_to(tensor_from_data(x, shape, TENSOR_F64), is_bool ? TENSOR_BOOL
                                                                  : kind  ? TENSOR_I64
                                                                          : dtype);
    free(x);
    return t;
}
