/* dwarf_line.h - from an address to a source line, by DWARF's .debug_line (versions 2 to 5, 32- and 64-bit).
 *
 * Only the line tables are read; .debug_info is not needed.  Each read is checked against the bounds of its
 * section: damaged bytes give a wrong answer or none, never a crash.  Bytes are in this machine's order. */
#ifndef TG_DWARF_LINE_H
#define TG_DWARF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hidden.h"

typedef struct Bytes {
    const uint8_t *data;
    size_t size;
} Bytes;

typedef struct LineTables {
    Bytes line, line_str, str; /* .debug_line, .debug_line_str, .debug_str; absent ones are empty */
} LineTables;

typedef struct LinePlace { /* the texts end with NUL and lie in the tables */
    const char *directory; /* NULL: the directory of compilation */
    const char *file;
    unsigned line;
} LinePlace;

HIDDEN_BEGIN

/* dwarf_line_find - the place of address (as linked).  Sequences that begin outside [low, high), the segment
 * of address, are those of functions that the linker dropped.  Code that the compiler gave no line has that
 * of the code before it. */
bool dwarf_line_find(const LineTables *tables, uint64_t address, uint64_t low, uint64_t high,
                     LinePlace *place);

HIDDEN_END
#endif
