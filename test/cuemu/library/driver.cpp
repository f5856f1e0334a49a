/* driver.cpp - stand-in for the driver's API: loads what nvrtc.cpp made, and launches it. */
#include <dlfcn.h>
#include <memory>
#include <string>
#include <stdlib.h>
#include <unistd.h>
#include "cuemu/shim/cuda.h"
#include "jit.h"

using namespace cuemu;

struct cuemuFunction {
    std::string name;
    unsigned long bytes;
    void (*call)(const Exec *thread, const void *argument);
};

extern "C" {
CUresult cuGetErrorString(CUresult status, const char **text)
{
    *text = status == CUDA_ERROR_INVALID_IMAGE ? "device kernel image is invalid"
            : status == CUDA_ERROR_NOT_FOUND   ? "named symbol not found"
                                               : cudaGetErrorString((cudaError_t)status);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    const cuemuImage *head = (const cuemuImage *)image;
    char path[] = "/tmp/cuemu_XXXXXX"; /* a name of its own: dlopen knows those that are loaded by theirs */
    if (strcmp(head->magic, "cuemu")) return CUDA_ERROR_INVALID_IMAGE;
    const int file = mkstemp(path);
    const bool written = file >= 0 && write(file, head + 1, head->size) == (ssize_t)head->size;
    if (file >= 0) close(file);
    *module = written ? (CUmodule)dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (file >= 0) unlink(path);
    return *module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    const std::string of = name;
    const auto *bytes = (const unsigned long *)dlsym((void *)module, (CUEMU_BYTES + of).c_str());
    void *call = dlsym((void *)module, (CUEMU_CALL + of).c_str());
    if (!bytes || !call) return CUDA_ERROR_NOT_FOUND;
    *function = new cuemuFunction{ of, *bytes, (void (*)(const Exec *, const void *))call };
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **params,
                        void **)
{
    std::shared_ptr<void> argument(malloc(f->bytes), free);
    memcpy(argument.get(), params[0], f->bytes);
    const auto call = f->call;
    return (CUresult)launch_(Launch{ f->name.c_str(), dim3(grid_x, grid_y, grid_z),
                                     dim3(block_x, block_y, block_z), shared, (const void *)call,
                                     [call, argument] { call(&X, argument.get()); } },
                             stream, nullptr, 0);
}
}
