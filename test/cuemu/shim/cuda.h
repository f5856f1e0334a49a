/* cuda.h - stand-in for the driver's API (library/driver.cpp): kernels that were compiled at run time. */
#pragma once
#include "cuemu/cuemu.h"

typedef enum CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_NOT_FOUND = 500
} CUresult;
typedef struct cuemuModule *CUmodule;
typedef struct cuemuFunction *CUfunction;
typedef cudaStream_t CUstream;

#pragma GCC visibility push(default)
extern "C" {
CUresult cuGetErrorString(CUresult status, const char **text);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **params,
                        void **extra);
}
#pragma GCC visibility pop
