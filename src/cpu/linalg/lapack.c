/* lapack.c - finds LAPACK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "cpu/product/gemm.h"
#include "device/host.h"
#include "lapack.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Lapack routines;
static bool found;
static char file[256]; /* the name under which it was found */

/* dlsym also searches what the library itself depends on: trsm lies in the BLAS below LAPACK. */
static const char *look_up(void *handle)
{
#define X(name, arguments)                                          \
    *(void **)&routines.of_f64.name = dlsym(handle, "d" #name "_"); \
    if (!routines.of_f64.name) return "d" #name "_";                \
    *(void **)&routines.of_f32.name = dlsym(handle, "s" #name "_"); \
    if (!routines.of_f32.name) return "s" #name "_";
    LAPACK_LIST(X, double)
#undef X
    return NULL;
}

static void *open_any(const char *given, const char **name)
{
    static const char *const names[] = { "liblapack.so.3", "libopenblas.so.0", "libmkl_rt.so.2",
                                         "libmkl_rt.so",   "liblapack.so",     "libopenblas.so" };
    void *handle = given ? dlopen(*name = given, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !given && !handle && i < sizeof names / sizeof *names; i++)
        handle = dlopen(*name = names[i], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* Lock held.  false: why not.  What is not found is looked for again by the next call. */
static bool find(char *why, size_t size)
{
    const char *given = secure_getenv("TAPEGRAD_LAPACK"), *name = NULL;
    blis_ready(); /* LAPACK may call the BLIS that we call: its kernels are chosen before its first use */
    void *handle = open_any(given, &name);
    if (!handle && given) snprintf(why, size, "TAPEGRAD_LAPACK is %s, which cannot be loaded", given);
    else if (!handle)
        snprintf(why, size,
                 "not installed: apt install liblapack3 (or OpenBLAS, or MKL), or name the library in "
                 "TAPEGRAD_LAPACK");
    if (!handle) return false;
    const char *missing = look_up(handle);
    if (!missing) {
        snprintf(file, sizeof file, "%s", name);
        return found = true;
    }
    snprintf(why, size, "%s has no %s", name, missing);
    dlclose(handle);
    return false;
}

const Lapack *lapack_open(const char *op)
{
    char why[512] = "";
    pthread_mutex_lock(&lock);
    bool there = found || find(why, sizeof why);
    pthread_mutex_unlock(&lock);
    if (!there) fail(TENSOR_EDEVICE, op, "needs LAPACK: %s", why);
    return there ? &routines : NULL;
}

int lapack_describe(char *text, size_t size)
{
    char why[512] = "";
    pthread_mutex_lock(&lock);
    bool there = found || find(why, sizeof why);
    pthread_mutex_unlock(&lock);
    return there ? snprintf(text, size, "lapack        %s\n", file)
                 : snprintf(text, size, "lapack        missing: %s\n", why);
}
