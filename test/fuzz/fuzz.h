/* fuzz.h - hands the fuzzer's bytes to a reader of files, and checks what every reader promises: a result or
 * one of the errors of files, and nothing left behind. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <tapegrad.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define MUST(condition)                                                                 \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, \
                    tensor_error() ? tensor_error() : "no error");                      \
            abort();                                                                    \
        }                                                                               \
    } while (0)

/* A file in memory; the path is valid until the next call. */
static const char *file_of(const uint8_t *bytes, size_t size)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    MUST(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
    return path;
}

static void check_error(int failed)
{
    TensorStatus code = tensor_error_code();
    MUST(failed ? code == TENSOR_EFORMAT || code == TENSOR_ENOMEM : code == TENSOR_OK);
    tensor_error_clear();
}

/* Reads every byte, so that the sanitizers see them. */
static void touch(const Tensor *x)
{
    const unsigned char *p = tensor_data(x);
    unsigned sum = 0;
    for (int64_t i = 0, n = tensor_numel(x) * (int64_t)tensor_dtype_size(tensor_dtype(x)); i < n; i++)
        sum += p[i];
    __asm__ volatile("" : : "r"(sum));
}

/* A reader of one tensor. */
static inline int fuzz_tensor(Tensor *(*read)(const char *), const uint8_t *bytes, size_t size)
{
    int64_t live = tensor_live_count();
    TensorScope scope = tensor_scope_open();
    Tensor *x = read(file_of(bytes, size));
    if (x) touch(x);
    tensor_scope_close(scope);
    check_error(!x);
    MUST(tensor_live_count() == live);
    return 0;
}

#endif
