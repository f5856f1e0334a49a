/* thread.c - the end of a thread: frees what it owns, in the order of ownership. */
#include <pthread.h>
#include "thread.h"

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void ended(void *unused)
{
    (void)unused;
    autocast_thread_exit();
    saved_thread_exit();
    scope_thread_exit(); /* tensors first: they refer to the tape */
    tape_thread_exit();
    error_thread_exit();
    alloc_thread_exit(); /* memory last: the others give theirs back */
}

static void make_key(void) { pthread_key_create(&key, ended); }

void thread_started(void)
{
    pthread_once(&once, make_key);
    pthread_setspecific(key, &key);
}
