/* atomic_file.c - write beside, sync, rename, sync the folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tensor/core.h"
#include "atomic_file.h"

enum { SUFFIX = 32, TRIES = 1000 };

static int cannot(const AtomicFile *f, const char *op, int why)
{
    return fail(TENSOR_EIO, op, "%s cannot be written: %s", f->path, strerror(why));
}

/* Names differ by process and by file; one that a crash left over is passed by. */
static int open_temporary(AtomicFile *f)
{
    static atomic_uint serial;
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        unsigned n = atomic_fetch_add(&serial, 1);
        snprintf(f->temporary, sizeof f->temporary, "%.*s.%ld-%u.tmp", (int)sizeof f->temporary - SUFFIX,
                 f->path, (long)getpid(), n);
        fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

static int open_target(AtomicFile *f)
{
    struct stat s;
    bool there = stat(f->path, &s) == 0;
    *f->temporary = 0;
    if (there && !S_ISREG(s.st_mode)) return open(f->path, O_WRONLY | O_CLOEXEC);
    int fd = open_temporary(f);
    if (fd >= 0 && there && fchmod(fd, s.st_mode & 07777)) { /* a private file stays private */
        int why = errno;
        close(fd);
        unlink(f->temporary);
        errno = why;
        return -1;
    }
    return fd;
}

int atomic_open(AtomicFile *f, const char *path, const char *op)
{
    if (!path) return fail(TENSOR_ENULL, op, "the path is NULL");
    if (strlen(path) < sizeof f->path && !realpath(path, f->path))
        snprintf(f->path, sizeof f->path, "%s", path);
    if (strlen(path) >= sizeof f->path || strlen(f->path) + SUFFIX >= sizeof f->path)
        return fail(TENSOR_EIO, op, "%.60s... cannot be written: %s", path, strerror(ENAMETOOLONG));
    int fd = open_target(f);
    if (fd < 0) return cannot(f, op, errno);
    f->file = fdopen(fd, "wb");
    if (f->file) return 0;
    close(fd);
    if (*f->temporary) unlink(f->temporary);
    return fail_memory(op);
}

int atomic_write(AtomicFile *f, const void *data, size_t n, const char *op)
{
    return fwrite(data, 1, n, f->file) == n ? 0 : cannot(f, op, errno);
}

static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

int atomic_close(AtomicFile *f, bool keep, const char *op)
{
    bool beside = *f->temporary != 0;
    bool good = keep && fflush(f->file) == 0 &&
                (!beside || fsync(fileno(f->file)) == 0); /* a device may know no sync */
    int why = errno;
    if (fclose(f->file) != 0 && good) good = false, why = errno;
    if (good && beside && rename(f->temporary, f->path) != 0) good = false, why = errno;
    if (good) {
        if (beside) sync_folder(f->path);
        return 0;
    }
    if (beside) unlink(f->temporary);
    return keep ? cannot(f, op, why) : -1;
}
