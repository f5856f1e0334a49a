/* report.c - complaints about an op, as text. */
#include <stdio.h>
#include <stdlib.h>
#include "autograd/tape.h"
#include "report.h"

static THREAD_LOCAL OpReport *current;

void report_begin(OpReport *report, const TensorOp *op)
{
    current = report;
    *report = (OpReport){ .ok = true, .name = op->name };
}

int report_end(void)
{
    const int wrong = current->wrong;
    current = NULL;
    return wrong;
}

static void add(const char *text, size_t n)
{
    const size_t used = strlen(current->text), room = sizeof current->text - used - 1;
    snprintf(current->text + used, room + 1, "%.*s", (int)(n < room ? n : room), text);
}

static void complain_text(const TensorOp *op, const char *sample, const char *format, va_list args)
{
    enum { SHOWN = 8 };
    char what[512], line[1400];
    vsnprintf(what, sizeof what, format, args);
    current->ok = false;
    if (++current->wrong <= SHOWN) {
        int n = snprintf(line, sizeof line, "%s%s%s%s: %s\n", op->name, sample ? " \"" : "",
                         sample ? sample : "", sample ? "\"" : "", what);
        if (tensor_error_code() && n > 0 && n < (int)sizeof line)
            snprintf(line + n, sizeof line - (size_t)n, "    the library says: %.500s\n", tensor_error());
        add(line, strlen(line));
    }
    tensor_error_clear();
}

void complain(const Sample *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain_text(s->op, s->text, format, args);
    va_end(args);
}

void complain_op(const TensorOp *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain_text(op, NULL, format, args);
    va_end(args);
}

unsigned untold(const TensorOp *op)
{
    static THREAD_LOCAL unsigned before;
    const unsigned n = untold_failures - before;
    before = untold_failures;
    return tensor_op_find(op->name) == op ? n : 0;
}

void each_sample(const TensorOp *op, void (*check)(const Sample *s))
{
    const char *list = op_samples(op);
    Sample *s = malloc(sizeof *s);
    if (!s) {
        complain_op(op, "no memory for a sample");
        return;
    }
    for (int status; (status = sample_next(op, &list, s)) != 0;) {
        TensorScope scope = tensor_scope_open();
        if (status < 0) complain(s, "%s", s->wrong);
        else check(s);
        tensor_scope_close(scope);
        if (tensor_error_code()) complain(s, "left an error behind");
    }
    free(s);
}
