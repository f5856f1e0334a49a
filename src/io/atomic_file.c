/* atomic_file.c - write beside, sync, rename, sync the folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tensor/core.h"
#include "atomic_file.h"

enum { SUFFIX = 32, TRIES = 1000 };

static int cannot(const AtomicFile *f, const char *op, int why)
{
    return fail(TENSOR_EIO, op, "%s cannot be written: %s", f->path, strerror(why));
}

/* Is the open file still the one of that name? */
static bool is_named(int fd, const char *name)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(name, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* A save holds a lock on its temporary file until that has its final name.  A file without the lock was left
 * by a process that is gone. */
static void remove_left_over(const char *name)
{
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_named(fd, name)) unlink(name);
    close(fd);
}

/* path.tmp; path.1.tmp while another save to the same path writes that; and so on. */
static int open_temporary(AtomicFile *f)
{
    for (int i = 0; i < TRIES; i++) {
        char number[16] = "";
        if (i / 2) snprintf(number, sizeof number, ".%d", i / 2); /* each twice: again after it was removed */
        snprintf(f->temporary, sizeof f->temporary, "%.*s%s.tmp", (int)sizeof f->temporary - SUFFIX, f->path,
                 number);
        int fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd < 0) {
            remove_left_over(f->temporary);
            continue;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_named(fd, f->temporary)) return fd;
        close(fd); /* removed by another save between the two calls */
    }
    errno = EEXIST;
    return -1;
}

static int open_target(AtomicFile *f)
{
    struct stat s;
    bool there = stat(f->path, &s) == 0;
    if (there && !S_ISREG(s.st_mode)) {
        errno = S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
        return -1;
    }
    int fd = open_temporary(f);
    if (fd >= 0 && there && fchmod(fd, s.st_mode & 07777)) { /* a private file stays private */
        int why = errno;
        unlink(f->temporary);
        close(fd);
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
    if (fd < 0 && errno == EINVAL) return fail(TENSOR_EIO, op, "%s is no plain file", f->path);
    if (fd < 0) return cannot(f, op, errno);
    f->file = fdopen(fd, "wb");
    if (f->file) return 0;
    unlink(f->temporary);
    close(fd);
    return fail_memory(op);
}

int atomic_write(AtomicFile *f, const void *data, size_t n, const char *op)
{
    return fwrite(data, 1, n, f->file) == n ? 0 : cannot(f, op, errno);
}

int atomic_write_at(AtomicFile *f, int64_t offset, const void *data, size_t n, const char *op)
{
    if (fseek(f->file, (long)offset, SEEK_SET)) return cannot(f, op, errno);
    return atomic_write(f, data, n, op);
}

static int sync_file(int fd)
{
    int status;
    do status = fsync(fd);
    while (status && errno == EINTR);
    return status;
}

static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    sync_file(fd);
    close(fd);
}

int atomic_close(AtomicFile *f, bool keep, const char *op)
{
    bool good =
        keep && fflush(f->file) == 0 && sync_file(fileno(f->file)) == 0 && rename(f->temporary, f->path) == 0;
    int why = errno;
    if (!good) unlink(f->temporary);
    fclose(f->file); /* gives up the lock: not before the file has its name */
    if (good) {
        sync_folder(f->path);
        return 0;
    }
    return keep ? cannot(f, op, why) : -1;
}
