/* scope.h - the state of a thread's scopes, for checks before and after a call. */
#ifndef TG_SCOPE_H
#define TG_SCOPE_H

/* scope_depth - how many scopes of the thread are open. */
int scope_depth(void);

#endif
