/* lapack.c - finds LAPACK. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include "op/op.h"
#include "cpu/product/gemm.h"
#include "lapack.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Lapack routines;
static bool found;

/* dlsym also searches what the library itself depends on: trsm lies in the BLAS below LAPACK. */
static const char *look_up(void *handle)
{
#define X(name, arguments)                                   \
    *(void **)&routines.name = dlsym(handle, "d" #name "_"); \
    if (!routines.name) return "d" #name "_";
    LAPACK_LIST(X)
#undef X
    return NULL;
}

static void *open_any(const char *given)
{
    static const char *const names[] = { "liblapack.so.3", "libopenblas.so.0", "libmkl_rt.so.2",
                                         "libmkl_rt.so",   "liblapack.so",     "libopenblas.so" };
    void *handle = given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !given && !handle && i < sizeof names / sizeof *names; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* What is not found is looked for again by the next call. */
static int find(const char *op)
{
    const char *given = getenv("TAPEGRAD_LAPACK");
    blis_ready(); /* LAPACK may well call the BLIS that we call: its kernels are chosen before its first use
                   */
    void *handle = open_any(given);
    if (!handle && given)
        return fail(TENSOR_EDEVICE, op, "needs LAPACK, and TAPEGRAD_LAPACK is %s, which cannot be loaded",
                    given);
    if (!handle)
        return fail(
            TENSOR_EDEVICE, op,
            "needs LAPACK, which is not installed: apt install liblapack3 (or OpenBLAS, or MKL), or name the "
            "library in TAPEGRAD_LAPACK");
    const char *missing = look_up(handle);
    if (!missing) return 0;
    fail(TENSOR_EDEVICE, op, "needs LAPACK: %s has no %s", given ? given : "the library found", missing);
    dlclose(handle);
    return -1;
}

const Lapack *lapack_open(const char *op)
{
    pthread_mutex_lock(&lock);
    if (!found) found = find(op) == 0;
    pthread_mutex_unlock(&lock);
    return found ? &routines : NULL;
}
