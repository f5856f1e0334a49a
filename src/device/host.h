/* host.h - what the library offers the built-in CPU device: memory, dtypes, errors.  The CPU's files need
 * this and device.h, and do not know tensors. */
#ifndef TG_HOST_H
#define TG_HOST_H

#include <stdatomic.h>
#include <string.h>
#include <tapegrad/tensor.h>
#include "hidden.h"

#define FORCE_INLINE static inline __attribute__((always_inline))
#define COLD __attribute__((cold, noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define THREAD_LOCAL _Thread_local

HIDDEN_BEGIN

/* EVALUE for a limit below 0. */
int alloc_check_limit(const char *function, int64_t bytes);

/* tensor/alloc.c: all memory of the library; the n-th request can be made to fail (debug.h).
 * tg_alloc - 64-byte aligned, from the thread's cache; NULL: no memory, nothing recorded.
 * tg_grow - NULL: block is untouched.
 * tg_free - bytes as asked for. */
void *tg_alloc(size_t bytes);
void *tg_calloc(size_t bytes);
void *tg_grow(void *block, size_t old_bytes, size_t new_bytes);
void tg_free(void *block, size_t bytes);
/* tg_alloc_must_fail - is this request, of a device (NULL: of the host), the one that a test makes fail?
 * tg_fail_allocation - the n-th request of a device, of the host (NULL) or of all_devices. */
struct DeviceContext;
bool tg_alloc_must_fail(const struct DeviceContext *of);
void tg_fail_allocation(const void *of, int64_t n, bool all_after);
extern const char all_devices[1];

/* tensor/error.c: each records an error and returns -1.  fail_site - of the call at site. */
int fail(TensorStatus code, const char *op, const char *format, ...) TAPEGRAD_PRINTF(3, 4) COLD;
int fail_site(TensorStatus code, const char *op, const void *site, const char *format, ...)
    TAPEGRAD_PRINTF(4, 5) COLD;
int fail_memory(const char *op) COLD;

FORCE_INLINE size_t dtype_size(int dtype)
{
    static const uint8_t size[TENSOR_DTYPES] = { 4, 8, 2, 2, 8, 4, 1, 1 };
    return size[dtype];
}
FORCE_INLINE bool dtype_is_float(int dtype) { return dtype <= TENSOR_BF16; }
FORCE_INLINE bool dtype_is_half(int dtype) { return dtype == TENSOR_F16 || dtype == TENSOR_BF16; }
/* A C scalar stands for an integer when it is one, and an i64 holds it. */
FORCE_INLINE bool is_integral(double c) { return c >= -0x1p63 && c < 0x1p63 && c == (double)(int64_t)c; }

/* tensor/shape.c: drops dims of size 1 and merges neighbours over n arrays of strides at once; returns the
 * new rank, at least 1 where there are elements.  The last dim is the innermost. */
int collapse(int ndim, int64_t *shape, int n, int64_t *const stride[]);

HIDDEN_END

#endif
