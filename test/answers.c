/* answers.c - see answers.h. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include <unistd.h>
#include "answers.h"
#include "tensor/scope.h"

enum { TEXT = 2000, SHOWN = 12 };

static const char *file_name;
static bool writing;
static FILE *out;
static char *text;
static size_t length;
static const char *hidden;
static char last_thing[80], last_answer[TEXT]; /* the line that is open */

void answers_begin(int argc, char **argv, const char *path)
{
    file_name = path;
    writing = argc > 1 && strcmp(argv[1], "--write") == 0;
    out = open_memstream(&text, &length);
    if (!out) abort();
}

static void end_line(void)
{
    if (*last_thing) fprintf(out, ": %s\n", last_answer);
    *last_thing = 0;
}

void answers_about(const char *format, ...)
{
    va_list args;
    end_line();
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fputc('\n', out);
}

/* The value stands alone: not in a longer number or name. */
static bool alone(const char *from, const char *at, size_t n)
{
    static const char *const inside = "0123456789abcdefghijklmnopqrstuvwxyz_.-";
    return (at == from || !strchr(inside, at[-1])) && (!at[n] || !strchr(inside, at[n]) || at[n] == '.');
}

static void marked(char *to, const char *from, const char *value)
{
    const size_t n = strlen(value);
    size_t used = 0;
    for (const char *at = from; *at && used + 2 < TEXT;) {
        const bool here = n && strncmp(at, value, n) == 0 && alone(from, at, n);
        to[used++] = here ? '#' : *at == '\n' ? ' ' : *at;
        at += here ? n : 1;
    }
    to[used] = 0;
}

void answer(const char *thing, const char *value, const char *given)
{
    char shown[TEXT];
    marked(shown, given, value);
    if (strcmp(thing, last_thing) != 0 || strcmp(shown, last_answer) != 0) {
        end_line();
        fprintf(out, "  %s", thing);
        snprintf(last_thing, sizeof last_thing, "%s", thing);
        snprintf(last_answer, sizeof last_answer, "%s", shown);
    }
    fprintf(out, " %s", value);
}

const char *answers_error(const char *name)
{
    static char line[TEXT];
    const char *error = tensor_error() ? tensor_error() : "NO ERROR";
    const size_t n = strlen(name);
    if (strncmp(error, name, n) == 0 && error[n] == ':') error += n + 2;
    snprintf(line, sizeof line, "! %.*s", (int)strcspn(error, "\n"), error);
    tensor_error_clear();
    return line;
}

void answers_hide(const char *folder) { hidden = folder; }

/* A line of this program is not told by its number, for that changes with what stands above. */
static void put_error(const char *error)
{
    const size_t folder = hidden ? strlen(hidden) : 0;
    for (const char *at = error; *at && *at != '\n'; at++)
        if (folder && strncmp(at, hidden, folder) == 0) fputs("FOLDER", out), at += folder - 1;
        else if (strncmp(at, ".c:", 3) == 0) fputs(".c:#", out), at += 2 + strspn(at + 3, "0123456789");
        else fputc(*at, out);
}

void answer_call(const char *call)
{
#define NAME(code, text) #code,
    static const char *const names[] = { TENSOR_STATUS_LIST(NAME) };
    const int code = tensor_error_code();
    end_line();
    fprintf(out, "  %s: %s%s", call, code ? names[code] + strlen("TENSOR_") : "fine", code ? " " : "");
    if (code) put_error(tensor_error());
    fputc('\n', out);
    tensor_error_clear();
}

void answers_of(const char *about, void (*calls)(void))
{
    answers_about("%s", about);
    TensorScope scope = tensor_scope_open();
    const int depth = scope_depth();
    calls();
    if (scope_depth() != depth) fprintf(out, "  %d scopes are left open\n", scope_depth() - depth);
    tensor_scope_close(scope);
}

static double checksum(const Tensor *y)
{
    Tensor *flat = tensor_to(tensor_reshape((Tensor *)(uintptr_t)y, SHAPE(-1)), TENSOR_I64);
    Tensor *places = tensor_arange(1, (double)tensor_numel(y) + 1, 1, TENSOR_I64);
    return tensor_numel(y) ? tensor_item(tensor_sum(tensor_mul(flat, places))) : 0;
}

size_t answers_result(char *to, size_t room, const Tensor *y)
{
    const TensorShape shape = tensor_shape(y);
    size_t n = 0;
    for (int d = 0; d < shape.ndim && n < room; d++)
        n += (size_t)snprintf(to + n, room - n, "%s%lld", d ? ", " : "[", (long long)shape.dim[d]);
    if (n < room)
        n += (size_t)snprintf(to + n, room - n, "%s %s", shape.ndim ? "]" : "[]",
                              tensor_dtype_name(tensor_dtype(y)));
    if (n < room && !tensor_dtype_is_float(tensor_dtype(y)))
        n += (size_t)snprintf(to + n, room - n, " =%.0f", checksum(y));
    return n;
}

/* ---- options --------------------------------------------------------------------------------- */

typedef struct Caller {
    const OpField *field;
    char *params;
    const char *(*call)(const void *params, void *ctx);
    void *ctx;
    int element;
} Caller;

static void ask(const Caller *c, const char *value)
{
    char thing[80];
    if (c->field->count > 1) snprintf(thing, sizeof thing, "%s[%d]", c->field->name, c->element);
    else snprintf(thing, sizeof thing, "%s", c->field->name);
    TensorScope scope = tensor_scope_open();
    answer(thing, value, c->call(c->params, c->ctx));
    tensor_scope_close(scope);
}

static void ask_integers(const Caller *c, void *at)
{
    int last = 5, first = -3;
    if (c->field->choices)
        for (first = -1, last = 0; c->field->choices[last];) last++;
    for (int v = first; v <= last; v++) {
        char value[16];
        snprintf(value, sizeof value, "%d", v);
        if (c->field->type == OP_INT) *(int *)at = v;
        else *(int64_t *)at = v;
        ask(c, value);
    }
}

static void ask_doubles(const Caller *c, double *at)
{
    static const double values[] = { -INFINITY, -2, -1, -.5, -1e-9, 0, 1e-9, .5, 1, 1.5, 2, INFINITY };
    for (size_t k = 0; k <= sizeof values / sizeof *values; k++) {
        char value[32];
        *at = k < sizeof values / sizeof *values ? values[k] : (double)NAN;
        snprintf(value, sizeof value, "%g", fabs(*at));
        if (*at < 0) snprintf(value, sizeof value, "%g", *at);
        ask(c, value);
    }
}

static void ask_lists(const Caller *c, TensorShape *at)
{
    static const struct {
        const char *text;
        int n;
        int64_t dim[4];
    } lists[] = { { "[]", 0, { 0 } },
                  { "[-3]", 1, { -3 } },
                  { "[-1]", 1, { -1 } },
                  { "[0]", 1, { 0 } },
                  { "[1]", 1, { 1 } },
                  { "[2]", 1, { 2 } },
                  { "[3]", 1, { 3 } },
                  { "[0, 0]", 2, { 0, 0 } },
                  { "[0, 1]", 2, { 0, 1 } },
                  { "[1, 0]", 2, { 1, 0 } },
                  { "[-1, 2]", 2, { -1, 2 } },
                  { "[2, 3]", 2, { 2, 3 } },
                  { "[3, 4]", 2, { 3, 4 } },
                  { "[1, 1, 2]", 3, { 1, 1, 2 } },
                  { "[0, 1, 2]", 3, { 0, 1, 2 } },
                  { "[2, 1, 3, 2]", 4, { 2, 1, 3, 2 } } };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        *at = (TensorShape){ lists[k].n, lists[k].dim };
        ask(c, lists[k].text);
    }
}

static void ask_field(const Caller *c, void *at)
{
    switch (c->field->type) {
    case OP_INT:
    case OP_I64: ask_integers(c, at); break;
    case OP_DOUBLE: ask_doubles(c, at); break;
    case OP_LIST: ask_lists(c, at); break;
    case OP_BOOL:
        for (int v = 0; v < 2; v++) *(bool *)at = v, ask(c, v ? "true" : "false");
        break;
    case OP_STRING:
        *(const char **)at = "", ask(c, "\"\"");
        *(const char **)at = "no such", ask(c, "\"no such\"");
        break;
    }
}

static size_t size_of(OpFieldType type)
{
    return type == OP_DOUBLE ? sizeof(double) : type == OP_I64 ? sizeof(int64_t) : sizeof(int);
}

void answers_options(const OpField *fields, const void *base, size_t size,
                     const char *(*call)(const void *params, void *ctx), void *ctx)
{
    _Alignas(16) char params[1024];
    if (size > sizeof params) abort();
    for (const OpField *f = fields; f && f->name; f++)
        for (int k = 0; k < (f->count > 2 ? 2 : f->count); k++) {
            memcpy(params, base, size);
            ask_field(&(Caller){ f, params, call, ctx, k },
                      params + f->offset + (size_t)k * size_of(f->type));
        }
}

/* ---- the file -------------------------------------------------------------------------------- */

static char *read_all(void)
{
    FILE *f = fopen(file_name, "r");
    char *all = NULL;
    size_t room = 0;
    if (f && getdelim(&all, &room, 0, f) < 0) free(all), all = NULL;
    if (f) fclose(f);
    return all ? all : strdup("");
}

static size_t line(const char *at) { return strcspn(at, "\n"); }

static const char *next(const char *at)
{
    at += line(at);
    return at + (*at != 0);
}

/* From `all` on, what stands about the same as at `about`; NULL: nothing. */
static const char *section(const char *all, const char *about)
{
    const size_t n = line(about);
    for (; *all; all = next(all))
        if (line(all) == n && strncmp(all, about, n) == 0) return all;
    return NULL;
}

static int differ(const char *about, const char *want, const char *found, int before)
{
    const int a = (int)line(want), b = (int)line(found);
    if (a == b && strncmp(want, found, (size_t)a) == 0) return 0;
    if (before < SHOWN) fprintf(stderr, "%.*s\n- %.*s\n+ %.*s\n", (int)line(about), about, a, want, b, found);
    return 1;
}

static int compare_sections(const char *about, const char *want, const char *found, int wrong)
{
    while (*want == ' ' || *found == ' ') {
        wrong += differ(about, *want == ' ' ? want : "", *found == ' ' ? found : "", wrong);
        if (*want == ' ') want = next(want);
        if (*found == ' ') found = next(found);
    }
    return wrong;
}

/* The lines that differ, below what they are about; added: sections that the file does not have. */
static int compare(const char *want, const char *found, int *added)
{
    int wrong = 0, left = 0;
    const char *from = want;
    for (const char *about = want; *about; about = next(about)) {
        if (*about == ' ') continue;
        left++;
        if (!section(found, about)) wrong += differ(about, about, "", wrong);
    }
    for (const char *about = found; *about; about = next(about)) {
        if (*about == ' ') continue;
        const char *in = section(from, about);
        if (!in) in = section(want, about);
        if (!in) ++*added;
        if (!in) continue;
        wrong = compare_sections(about, next(in), next(about), wrong);
        from = next(in), left--;
    }
    return wrong ? wrong : abs(left);
}

/* As a whole or not at all: other builds' suites may read it. */
static int write_all(void)
{
    char other[200];
    snprintf(other, sizeof other, "%s.%d", file_name, (int)getpid());
    FILE *f = fopen(other, "w");
    return !f || fwrite(text, 1, length, f) != length || fclose(f) || rename(other, file_name);
}

int answers_end(void)
{
    end_line();
    fclose(out);
    char *want = read_all();
    int added = 0, wrong = writing ? write_all() : compare(want, text, &added);
    if (wrong)
        fprintf(stderr, "%s: %d lines differ (after a change that is meant: --write)\n", file_name, wrong);
    else if (added)
        printf("%s: answers about %d new things, %s\n", file_name, added,
               write_all() ? "cannot be written" : "written: look at the diff");
    printf("[  %s ] %s\n", wrong ? "FAILED " : "     OK", file_name); /* as cmocka says it */
    free(want), free(text);
    return wrong ? 1 : 0;
}
