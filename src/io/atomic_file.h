/* atomic_file.h - a file that appears whole or not at all. */
#ifndef TG_ATOMIC_FILE_H
#define TG_ATOMIC_FILE_H

#include <limits.h>
#include <stdio.h>

#pragma GCC visibility push(hidden)
typedef struct AtomicFile {
    FILE *file;
    char path[PATH_MAX], temporary[PATH_MAX];
} AtomicFile;

/* open: beside the target, under a name of its own; -1 and EIO recorded for op.
 * close: keep: sync, rename over the target, sync the folder; else (or when anything failed) remove.  -1 and EIO. */
int atomic_open(AtomicFile *f, const char *path, const char *op);
int atomic_close(AtomicFile *f, int keep, const char *op);
#pragma GCC visibility pop

#endif
