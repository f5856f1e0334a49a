/* input.c - opens a file, checks that it is a regular one, returns its size. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "input.h"

int input_open(const char *path, const char *op, int64_t *size)
{
    struct stat s;
    if (!path) return fail(TENSOR_ENULL, op, "the path is NULL");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe shall be refused, not waited for */
    if (fd < 0) return fail(TENSOR_EIO, op, "%s cannot be opened: %s", path, strerror(errno));
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) {
        *size = s.st_size;
        return fd;
    }
    close(fd);
    return fail(TENSOR_EIO, op, "%s is %s", path, S_ISDIR(s.st_mode) ? "a directory" : "no plain file");
}

FILE *input_stream(const char *path, const char *op, int64_t *size)
{
    int fd = input_open(path, op, size);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (fd >= 0 && !file) {
        close(fd);
        fail_memory(op);
    }
    return file;
}

int64_t input_count(TensorShape shape)
{
    int64_t n = 1;
    bool empty = false;
    for (int d = 0; d < shape.ndim; d++) {
        if (shape.dim[d] == 0) empty = true;
        else if (__builtin_mul_overflow(n, shape.dim[d], &n) || n > INT64_MAX / 16) return -1;
    }
    return empty ? 0 : n;
}
