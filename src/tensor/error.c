/* error.c - the first error of a thread stays recorded, with the source line of the call.
 *
 * The text lives in a fixed buffer of the thread: recording an error needs no memory.  A longer one is
 * allocated, or cut if there is no memory. */
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include "trace/callsite.h"
#include "core.h"
#include "thread.h"

enum {
    TEXT = 1024,
    LINE = 256, /* of the call */
    LONGEST = 1 << 16,
    NOTES = 1024 /* room after a long text */
};

static THREAD_LOCAL struct {
    TensorStatus code;
    Callsite site; /* of the call that failed, until its line is found */
    bool placed;   /* the line is in the text */
    char text[TEXT];
    char *longer; /* instead of it */
    size_t room;  /* of longer */
} error;

static char *error_text(void) { return error.longer ? error.longer : error.text; }
static size_t error_room(void) { return error.longer ? error.room : TEXT; }

static THREAD_LOCAL const char *composing;        /* the outermost composed function that runs now, */
static THREAD_LOCAL const TensorOp *composing_op; /* and its op, if it is one, */
static THREAD_LOCAL const void *composing_site;   /* and where that was called */
THREAD_LOCAL unsigned failure_count;

const char *tensor_compose_begin(const char *name)
{
    const char *outer = composing;
    if (!outer) composing = name, composing_op = NULL;
    return outer;
}

const char *compose_begin(const OpCall *call)
{
    const char *outer = tensor_compose_begin(call->name);
    if (!outer) composing_op = call->op, composing_site = call->site;
    return outer;
}

void outermost_call(const OpCall *call, const char **op, const void **site)
{
    const bool inner = composing && composing_op;
    *op = composing ? composing : call->name;
    *site = inner && composing_site ? composing_site : call->site;
}

void tensor_compose_end(const char *outer) { composing = outer; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*handler)(const char *, TensorStatus, void *);
static void *handler_ctx;

/* Looking up the line in the program's file is slow: done only when the text is asked for. */
static void place(void)
{
    char *text = error_text();
    const size_t n = strlen(text), room = error_room();
    const void *site = callsite_of(&error.site);
    char where[LINE];
    error.placed = true;
    if (n + 1 < room && site && callsite_text(site, where, sizeof where))
        snprintf(text + n, room - n, strncmp(where, "in ", 3) == 0 ? "\n    %s" : "\n    at %s", where);
}

const char *tensor_error(void)
{
    if (!error.code) return NULL;
    if (!error.placed) place();
    return error_text();
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
    free(error.longer), error.longer = NULL;
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

/* An op of the user's program may bear the name of one of ours. */
static bool is_users(const TensorOp *op)
{
    if (!op || tensor_op_find(op->name) == op) return false;
    const void *code = op->compose ? (const void *)op->compose : (const void *)op->forward;
    return op->row ? op->row->id < 0 : !callsite_in_library(code);
}

/* Public functions are named as the user called them: "matmul" is tensor_matmul, "nn_linear" itself. */
static size_t put_name(size_t n, const char *name, const TensorOp *op)
{
    if (n >= TEXT) return n;
    return n + (size_t)snprintf(error.text + n, TEXT - n,
                                "%s%s: ", is_users(op) || !in_registry(name) ? "" : "tensor_", name);
}

/* Appends after n characters.  The fixed buffer holds what fits with the line of the call, a longer one
 * everything. */
static void put_text(size_t n, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int more = n < TEXT ? vsnprintf(error.text + n, TEXT - n, format, args) : 0;
    if (more > 0 && n + (size_t)more + LINE >= TEXT) {
        error.room = n + ((size_t)more < LONGEST ? (size_t)more : LONGEST) + NOTES;
        error.longer = malloc(error.room);
        thread_owns(THREAD_ERROR, tensor_error_clear);
    }
    if (error.longer) {
        memcpy(error.longer, error.text, n);
        vsnprintf(error.longer + n, error.room - NOTES - n + 1, format, again);
    }
    va_end(again);
}

/* The sign of a NaN, which x86 sets for 0 / 0, says nothing. */
static void unsign_nans(char *text)
{
    for (char *at = text; (at = strstr(at, " -nan")) != NULL; at++) memmove(at + 1, at + 2, strlen(at + 1));
}

static void record(TensorStatus code, const char *name, const TensorOp *op, const void *site,
                   const char *format, va_list args)
{
    if (unlikely(declined)) return; /* see RUN_KERNEL in device/place.h */
    failure_count++;
    if (error.code) return;
    const bool again =
        composing && name && strcmp(name, composing) == 0 && is_users(op) == is_users(composing_op);
    size_t n = composing && !again ? put_name(0, composing, composing_op) : 0;
    if (name) n = put_name(n, name, op);
    put_text(n, format, args);
    unsign_nans(error_text());
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
    record(code, op, NULL, NULL, format, args);
    va_end(args);
    return -1;
}

int fail_site(TensorStatus code, const char *op, const void *site, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(code, op, NULL, site, format, args);
    va_end(args);
    return -1;
}

int fail_op(TensorStatus code, const TensorOp *op, const char *name, const void *site, const char *format,
            ...)
{
    va_list args;
    va_start(args, format);
    record(code, name, op, site, format, args);
    va_end(args);
    return -1;
}

void tensor_error_note(const char *format, ...)
{
    if (!tensor_error()) return;
    char *text = error_text();
    const size_t n = strlen(text), room = error_room();
    if (n + 8 > room) return;
    va_list args;
    va_start(args, format);
    memcpy(text + n, "\n    ", 6);
    vsnprintf(text + n + 5, room - n - 5, format, args);
    va_end(args);
}

int tensor_fail(TensorStatus code, const char *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(code ? code : TENSOR_EUSER, op, NULL, NULL, format, args);
    va_end(args);
    return -1;
}

int op_fail(OpCall *call, TensorStatus code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(code, call->name, call->op, call->site, format, args);
    va_end(args);
    call->failed = true;
    return -1;
}

int fail_memory(const char *op) { return fail(TENSOR_ENOMEM, op, "out of memory"); }

bool check_null_for(const TensorOp *op, const Tensor *x, const char *name, int position)
{
    if (likely(x && x->storage)) return false;
    if (x) fail_op(TENSOR_EVALUE, op, name, NULL, "operand %d was released", position);
    else if (!error.code) fail_op(TENSOR_ENULL, op, name, NULL, "operand %d is NULL", position);
    return true;
}

bool check_null(const Tensor *x, const char *name, int position)
{
    return check_null_for(NULL, x, name, position);
}
