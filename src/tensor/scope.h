/* scope.h - the state of a thread's scopes. */
#ifndef TG_SCOPE_H
#define TG_SCOPE_H

#include "hidden.h"

HIDDEN_BEGIN
int scope_depth(void);        /* how many scopes of the thread are open */
void scope_thread_exit(void); /* closes the root scope */
HIDDEN_END

#endif
