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
    Callsite site; /* of the call that failed, until its line is found */
    bool placed;   /* the line is in the text */
    char text[TEXT];
} error;

static THREAD_LOCAL const char *composing; /* the outermost function that is being made of others now */
THREAD_LOCAL unsigned failure_count;

const char *tensor_compose_begin(const char *name)
{
    const char *outer = composing;
    if (!outer) composing = name;
    return outer;
}

void tensor_compose_end(const char *outer) { composing = outer; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*handler)(const char *, TensorStatus, void *);
static void *handler_ctx;

/* The line is looked up in the program's file, which takes a while: when the text is asked for. */
static void place(void)
{
    const size_t n = strlen(error.text);
    const void *site = callsite_of(&error.site);
    char where[256];
    error.placed = true;
    if (n + 1 < TEXT && site && callsite_text(site, where, sizeof where))
        snprintf(error.text + n, TEXT - n, strncmp(where, "in ", 3) == 0 ? "\n    %s" : "\n    at %s", where);
}

const char *tensor_error(void)
{
    if (!error.code) return NULL;
    if (!error.placed) place();
    return error.text;
}

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

/* Is it an op of the registry, or one in place? */
static bool in_registry(const char *name)
{
    char plain[80];
    const size_t n = strlen(name);
    if (tensor_op_find(name)) return true;
    if (n < 2 || n > sizeof plain || name[n - 1] != '_') return false;
    memcpy(plain, name, n - 1);
    plain[n - 1] = 0;
    return tensor_op_find(plain) != NULL;
}

/* Public functions are named as the user called them: "matmul" is tensor_matmul, "nn_linear" itself. */
static size_t put_name(size_t n, const char *name)
{
    static const char *const prefix[] = { "tensor_", "nn_",      "optim_",    "data_",        "io_",
                                          "op_",     "tapegrad", "gradcheck", "gradgradcheck" };
    bool whole = false;
    for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
        whole |= strncmp(name, prefix[i], strlen(prefix[i])) == 0;
    if (n >= TEXT) return n;
    return n + (size_t)snprintf(error.text + n, TEXT - n,
                                "%s%s: ", whole || !in_registry(name) ? "" : "tensor_", name);
}

static void record(TensorStatus code, const char *name, const void *site, const char *format, va_list args)
{
    failure_count++;
    if (error.code) return;
    size_t n = composing && (!name || strcmp(name, composing) != 0) ? put_name(0, composing) : 0;
    if (name) n = put_name(n, name);
    if (n < TEXT) vsnprintf(error.text + n, TEXT - n, format, args);
    callsite_note(&error.site, site);
    error.code = code, error.placed = false;
    pthread_mutex_lock(&lock);
    void (*fn)(const char *, TensorStatus, void *) = handler;
    void *ctx = handler_ctx;
    pthread_mutex_unlock(&lock);
    if (fn) fn(tensor_error(), code, ctx);
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
    if (!tensor_error()) return;
    size_t n = strlen(error.text);
    if (n + 8 > TEXT) return;
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
    record(code, call->name, call->site, format, args);
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
