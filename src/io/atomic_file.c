/* atomic_file.c - write beside, sync, rename, sync the folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../core.h"
#include "atomic_file.h"

int atomic_open(AtomicFile *f, const char *path, const char *op)
{
    if (!path) return fail(TENSOR_ENULL, op, "the path is NULL");
    if (strlen(path) + 16 > sizeof f->path) return fail(TENSOR_EIO, op, "%.60s...: the path is too long", path);
    snprintf(f->path, sizeof f->path, "%s", path);
    snprintf(f->temporary, sizeof f->temporary, "%.*s.XXXXXX", (int)sizeof f->temporary - 16, path);
    int fd = mkstemp(f->temporary);
    if (fd < 0) return fail(TENSOR_EIO, op, "%s cannot be written: %s", path, strerror(errno));
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    f->file = fdopen(fd, "wb");
    if (f->file) return 0;
    close(fd);
    unlink(f->temporary);
    return fail(TENSOR_EIO, op, "%s cannot be written: %s", path, strerror(errno));
}

static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

int atomic_close(AtomicFile *f, int keep, const char *op)
{
    bool good = keep && fflush(f->file) == 0 && !ferror(f->file) && fsync(fileno(f->file)) == 0;
    int why = errno;
    if (fclose(f->file) != 0 && good) good = false, why = errno;
    if (good && rename(f->temporary, f->path) != 0) good = false, why = errno;
    if (good) {
        sync_folder(f->path);
        return 0;
    }
    unlink(f->temporary);
    return keep ? fail(TENSOR_EIO, op, "%s cannot be written: %s", f->path, strerror(why)) : -1;
}
