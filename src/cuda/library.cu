/* library.cu - opens CUDA's libraries: by the name that the version of the headers has, beside the plugin,
 * where the plugin was built, and by the rules of the system; one that the program has loaded serves. */
#include "library.cuh"
#include <dlfcn.h>
#include <stdio.h>
#include "cuda/cuda.cuh"

#ifdef __CUDACC__
#define OPEN_LIBRARY(file) dlopen(file, RTLD_NOW | RTLD_LOCAL)
#else
#define OPEN_LIBRARY(file) cuemu_dlopen(file)
#endif

/* Fills functions with the n that are named.  Why not is a sentence in why, which is "" otherwise. */
static void open_library(const char *file, const char *use, const char *const *name, size_t n,
                         void **functions, char *why, size_t size)
{
    void *library = OPEN_LIBRARY(file);
    const char *cause = library ? nullptr : dlerror();
    if (!library) {
        snprintf(why, size, "%s needs %s: %s", use, file, cause ? cause : "it could not be opened");
        return;
    }
    *why = 0;
    for (size_t i = 0; i < n; i++) {
        if ((functions[i] = dlsym(library, name[i]))) continue;
        snprintf(why, size, "%s needs %s of %s, which is not there", use, name[i], file);
        dlclose(library);
        return;
    }
}

template <class Functions> struct Library {
    union {
        Functions functions;
        void *pointer[sizeof(Functions) / sizeof(void *)];
    };
    char why[512];
    Library(const char *file, const char *use, const char *const (&name)[sizeof pointer / sizeof *pointer])
    {
        open_library(file, use, name, sizeof pointer / sizeof *pointer, pointer, why, sizeof why);
    }
    const Functions *get() { return *why ? (gpu_fail("%s", why), nullptr) : &functions; }
};

/* The first call opens it; what came of that stays. */
#define TEXT_OF(x) #x
#define NAME_OF(function) TEXT_OF(function),
#define MAJOR(version) TEXT_OF(version)
#define LIBRARY(get_, Functions, FUNCTIONS, file, use)            \
    const Functions *get_()                                       \
    {                                                             \
        static const char *const name[] = { FUNCTIONS(NAME_OF) }; \
        static Library<Functions> library(file, use, name);       \
        return library.get();                                     \
    }

LIBRARY(gpu_cublas, Cublas, CUBLAS_FUNCTIONS, "libcublas.so." MAJOR(CUBLAS_VER_MAJOR), "a product")
LIBRARY(gpu_cublas_lt, CublasLt, CUBLASLT_FUNCTIONS, "libcublasLt.so." MAJOR(CUBLAS_VER_MAJOR), "a product")
LIBRARY(gpu_cudnn, Cudnn, CUDNN_FUNCTIONS, "libcudnn.so." MAJOR(CUDNN_MAJOR), "cuDNN")
LIBRARY(gpu_nvrtc, Nvrtc, NVRTC_FUNCTIONS, "libnvrtc.so." MAJOR(CUBLAS_VER_MAJOR),
        "a formula of the program's")
LIBRARY(gpu_driver, Driver, DRIVER_FUNCTIONS, "libcuda.so.1", "a formula of the program's")
