/* atomic_file.h - a file that appears whole or not at all. */
#ifndef TG_ATOMIC_FILE_H
#define TG_ATOMIC_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "hidden.h"

HIDDEN_BEGIN
typedef struct AtomicFile {
    FILE *file;
    char path[PATH_MAX];      /* the target, symbolic links followed */
    char temporary[PATH_MAX]; /* what is written, locked as long as it is open */
} AtomicFile;

/* open: a temporary file beside the target, with the target's permissions.  What a save left there whose
 * process was killed is removed.  A target that exists and is no plain file is refused.
 * write: n bytes; write_at: n bytes over those at an offset, after the last write.
 * close: keep: sync, rename over the target, sync the folder; else (or when anything failed) remove.
 * -1 and EIO recorded for op; open also ENULL. */
int atomic_open(AtomicFile *f, const char *path, const char *op);
int atomic_write(AtomicFile *f, const void *data, size_t n, const char *op);
int atomic_write_at(AtomicFile *f, int64_t offset, const void *data, size_t n, const char *op);
int atomic_close(AtomicFile *f, bool keep, const char *op);
HIDDEN_END

#endif
