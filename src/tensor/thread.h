/* thread.h - the end of a thread: closes its root scope, frees its tape, passes its cached memory on. */
#ifndef TG_THREAD_H
#define TG_THREAD_H

#pragma GCC visibility push(hidden)
void thread_started(void); /* thread.c: once a thread, on its first use of the library */
void autocast_thread_exit(void);
void saved_thread_exit(void);
void scope_thread_exit(void);
void tape_thread_exit(void);
void error_thread_exit(void);
void alloc_thread_exit(void);
#pragma GCC visibility pop

#endif
