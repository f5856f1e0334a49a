/* callsite.h - which line of the user's program made a call.
 *
 * An error's text ends with "    at train.c:21 in main".  The return address is found on the stack when the
 * error is made, or was noted by the op (callsite_note); callsite_text reads the program's own ELF file and
 * the line table of its debug information.  Nothing here allocates from the heap (but zlib, for compressed
 * debug sections) or prints.  A search takes milliseconds; what it found is kept for later calls.  Any thread
 * may call.
 *
 * The library's own code is recognized by its section: the Makefile renames .text of every object to
 * tapegrad_text, and the linker bounds what it links, static or shared, with __start_tapegrad_text and
 * __stop_tapegrad_text.  In a build without that, the shared object which holds this code is the library, or
 * else the functions whose symbol has one of the library's prefixes (the user's functions of such names then
 * pass for the library's).
 *
 * Other systems than Linux with ELF are not supported: NULL, 0, false. */
#ifndef TG_CALLSITE_H
#define TG_CALLSITE_H

#include <stdbool.h>
#include <stddef.h>
#include "hidden.h"

HIDDEN_BEGIN

enum { CALLSITE_FRAMES = 32 };

typedef struct Callsite {
    const void *site; /* NULL: among the frames */
    const void *frame[CALLSITE_FRAMES];
    int frames;
} Callsite;

/* callsite_note - remembers where the user's program is: site, a return address, or, where that is NULL or
 * in the library, the frames of this thread's stack outside the library.  Some microseconds.
 *
 * callsite_of - the return address that was noted: of the frames, the innermost one that is neither in the
 * library nor in what calls back on its behalf (libc, the OpenMP runtime, BLIS, the sanitizers); NULL when
 * none. */
void callsite_note(Callsite *c, const void *site);
const void *callsite_of(const Callsite *c);

/* callsite_find - both at once, from here. */
void *callsite_find(void);

/* callsite_text - "train.c:21 in main" for a return address, into buf; the length, 0 (and "") when nothing is
 * known. The file is as the compiler was given it, without directories when that was absolute.  "in main"
 * when only the function is known, "train.c:21" when only the line is.  What does not fit is cut; a clone's
 * suffix (".constprop.0") is left out. */
int callsite_text(const void *address, char *buf, size_t size);

/* callsite_in_library - whether a return address is in the library's own code (its plugins' included). */
bool callsite_in_library(const void *address);

HIDDEN_END
#endif
