/* thread.h - the end of a thread: closes its root scope, frees its tape, passes its cached memory on. */
#ifndef TG_THREAD_H
#define TG_THREAD_H

#include "hidden.h"
#include "tensor/core.h"

HIDDEN_BEGIN

/* What a thread owns, in the order in which it is freed: tensors before the tape that they refer to, and
 * memory last, because the others return theirs. */
typedef enum ThreadPart {
    THREAD_AUTOCAST,
    THREAD_SAVED_HOOKS,
    THREAD_SCOPES,
    THREAD_TAPE,
    THREAD_ERROR,
    THREAD_MEMORY,
    THREAD_PARTS
} ThreadPart;

/* thread_owns - free_part is called when this thread ends, and also when others end: it must tolerate a
 * part that is not there. */
void thread_owns(ThreadPart part, void (*free_part)(void));

/* leaf_ended - of this thread: told of a tensor whose last reference goes here while something holds it;
 * NULL: nobody wants to know. */
extern THREAD_LOCAL void (*leaf_ended)(Tensor *leaf);

HIDDEN_END

#endif
