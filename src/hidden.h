/* hidden.h - HIDDEN marks what files of the library share and its users do not see; HIDDEN_BEGIN and
 * HIDDEN_END stand around a run of it.  Suites see it: they are compiled with SEE_HIDDEN, against a library
 * that hides nothing (mk/tests.mk). */
#ifndef TG_HIDDEN_H
#define TG_HIDDEN_H

#ifdef SEE_HIDDEN
#define HIDDEN
#define HIDDEN_BEGIN
#define HIDDEN_END
#else
#define HIDDEN __attribute__((visibility("hidden")))
#define HIDDEN_BEGIN _Pragma("GCC visibility push(hidden)")
#define HIDDEN_END _Pragma("GCC visibility pop")
#endif

#endif
