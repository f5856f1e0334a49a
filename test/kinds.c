/* kinds.c - see kinds.h. */
#include "autograd/options.h" /* before cmocka.h, which has a macro `fail` */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
