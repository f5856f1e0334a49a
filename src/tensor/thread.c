/* thread.c - the end of a thread. */
#include <pthread.h>
#include <stdatomic.h>
#include "thread.h"

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

typedef void (*FreePart)(void);
static _Atomic(FreePart) parts[THREAD_PARTS];

static void ended(void *unused)
{
    (void)unused;
    for (int i = 0; i < THREAD_PARTS; i++) {
        const FreePart free_part = atomic_load(&parts[i]);
        if (free_part) free_part();
    }
}

static void make_key(void) { pthread_key_create(&key, ended); }

void thread_owns(ThreadPart part, void (*free_part)(void))
{
    atomic_store(&parts[part], free_part);
    pthread_once(&once, make_key);
    pthread_setspecific(key, &key);
}
