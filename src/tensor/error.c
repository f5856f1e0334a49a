/* error.c - the first error sticks, per thread, and leads back to the line that made the call.
 *
 * The text lives in a fixed buffer of the thread: recording an error needs no memory. */
#include <stdio.h>
#include <pthread.h>
#include "trace/callsite.h"
#include "core.h"
#include "thread.h"

enum { TEXT = 1024 };

static THREAD_LOCAL struct {
    TensorStatus code;
    char text[TEXT];
} error;

THREAD_LOCAL const char *composing;
THREAD_LOCAL Naming naming;
THREAD_LOCAL unsigned failure_count;

Naming name_as(const char *op, const char *as)
{
    Naming before = naming;
    naming = (Naming){ op, as };
    return before;
}

Tensor *named_result(Naming before, Tensor *y)
{
    naming = before;
    return y;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*handler)(const char *, TensorStatus, void *);
static void *handler_ctx;

const char *tensor_error(void) { return error.code ? error.text : NULL; }

TensorStatus tensor_error_code(void) { return error.code; }

const char *tensor_status_text(TensorStatus code)
{
    static const char *const text[] = {
#define X(name, text) text,
        TENSOR_STATUS_LIST(X)
#undef X
    };
    return (unsigned)code < sizeof text / sizeof *text ? text[code] : "no such status";
}

void tensor_error_clear(void)
{
    error.code = TENSOR_OK;
    error.text[0] = 0;
}

void tensor_on_error(void (*fn)(const char *, TensorStatus, void *), void *ctx)
{
    pthread_mutex_lock(&lock);
    handler = fn, handler_ctx = ctx;
    pthread_mutex_unlock(&lock);
}

/* Public functions are named as the user called them: "matmul" is tensor_matmul, "nn_linear" itself. */
static int put_name(char *text, size_t size, const char *op)
{
    static const char *const prefix[] = { "tensor_", "nn_",      "optim_",    "data_",        "io_",
                                          "op_",     "tapegrad", "gradcheck", "gradgradcheck" };
    const bool told = naming.op && strcmp(op, naming.op) == 0;
    const char *ending = told && !naming.as ? "_" : "";
    if (told && naming.as) op = naming.as;
    for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
        if (strncmp(op, prefix[i], strlen(prefix[i])) == 0) return snprintf(text, size, "%s%s: ", op, ending);
    return snprintf(text, size, tensor_op_find(op) ? "tensor_%s%s: " : "%s%s: ", op, ending);
}

static void record(TensorStatus code, const char *op, const void *site, const char *format, va_list args)
{
    failure_count++;
    if (error.code) return;
    int n = composing && (!op || strcmp(op, composing) != 0) ? put_name(error.text, TEXT, composing) : 0;
    if (op && n < TEXT) n += put_name(error.text + n, TEXT - (size_t)n, op);
    if (n < TEXT) n += vsnprintf(error.text + n, TEXT - (size_t)n, format, args);
    if (!site || callsite_in_library(site)) site = callsite_find();
    char where[256];
    if (n < TEXT && site && callsite_text(site, where, sizeof where))
        snprintf(error.text + n, TEXT - (size_t)n, strncmp(where, "in ", 3) == 0 ? "\n    %s" : "\n    at %s",
                 where);
    error.code = code;
    pthread_mutex_lock(&lock);
    void (*fn)(const char *, TensorStatus, void *) = handler;
    void *ctx = handler_ctx;
    pthread_mutex_unlock(&lock);
    if (fn) fn(error.text, code, ctx);
}

int fail(TensorStatus code, const char *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(code, op, NULL, format, args);
    va_end(args);
    return -1;
}

int fail_site(TensorStatus code, const char *op, const void *site, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(code, op, site, format, args);
    va_end(args);
    return -1;
}

void tensor_error_note(const char *format, ...)
{
    size_t n = strlen(error.text);
    if (!error.code || n + 8 > TEXT) return;
    va_list args;
    va_start(args, format);
    memcpy(error.text + n, "\n    ", 6);
    vsnprintf(error.text + n + 5, TEXT - n - 5, format, args);
    va_end(args);
}

int tensor_fail(TensorStatus code, const char *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(code ? code : TENSOR_EUSER, op, NULL, format, args);
    va_end(args);
    return -1;
}

int op_fail(OpCall *call, TensorStatus code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(code, call->op->name, call->site, format, args);
    va_end(args);
    call->failed = true;
    return -1;
}

int fail_memory(const char *op) { return fail(TENSOR_ENOMEM, op, "out of memory"); }

bool check_null(const Tensor *x, const char *op, int position)
{
    if (likely(x && x->storage)) return false;
    if (x) fail(TENSOR_EVALUE, op, "operand %d was released", position);
    else if (!error.code) fail(TENSOR_ENULL, op, "operand %d is NULL", position);
    return true;
}

void error_thread_exit(void) { tensor_error_clear(); }
