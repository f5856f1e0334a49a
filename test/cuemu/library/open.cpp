/* open.cpp - the libraries of CUDA are in here: dlopen of one gives the plugin itself, where its functions
 * are. */
#include <dlfcn.h>
#include "cuemu/cuemu.h"

void *cuemu_dlopen(const char *file)
{
    const char *without =
        getenv("CUEMU_WITHOUT"); /* libraries that are not there: "libcublas.so libnvrtc.so" */
    if (!without && !getenv("CUEMU_CUDNN")) without = "libcudnn.so"; /* else our own kernels would not run */
    char name[64];
    Dl_info self;
    snprintf(name, sizeof name, "%s", file);
    if (char *so = strstr(name, ".so")) so[3] = 0;
    if (without && strstr(without, name)) {
        snprintf(name, sizeof name, "absent/%s", file);
        return dlopen(name, RTLD_NOW);
    }
    return dladdr((void *)cuemu_dlopen, &self) ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
}
