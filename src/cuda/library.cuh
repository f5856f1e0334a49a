/* library.cuh - CUDA's libraries, opened when a call first needs one: the plugin links none, and loads
 * where they are not.
 *
 * A library is one list of its functions.  From it come a struct of pointers, here, and what fills it, in
 * library.cu; a header that renames a function (cublasCreate to cublasCreate_v2) renames both. */
#ifndef TG_CUDA_LIBRARY_CUH
#define TG_CUDA_LIBRARY_CUH

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <nvrtc.h>
#include "cuda/cudnn.cuh"

#define CUBLAS_FUNCTIONS(F) \
    F(cublasCreate)         \
    F(cublasDestroy)        \
    F(cublasSetStream)      \
    F(cublasSetWorkspace)   \
    F(cublasGemmStridedBatchedEx_64)
#define CUBLASLT_FUNCTIONS(F)               \
    F(cublasLtCreate)                       \
    F(cublasLtMatmulDescCreate)             \
    F(cublasLtMatmulDescDestroy)            \
    F(cublasLtMatmulDescSetAttribute)       \
    F(cublasLtMatrixLayoutCreate)           \
    F(cublasLtMatrixLayoutDestroy)          \
    F(cublasLtMatmulPreferenceCreate)       \
    F(cublasLtMatmulPreferenceDestroy)      \
    F(cublasLtMatmulPreferenceSetAttribute) \
    F(cublasLtMatmulAlgoGetHeuristic)       \
    F(cublasLtMatmul)

#define CUDNN_FUNCTIONS(F)           \
    F(cudnnGetVersion)               \
    F(cudnnCreate)                   \
    F(cudnnDestroy)                  \
    F(cudnnSetStream)                \
    F(cudnnBackendCreateDescriptor)  \
    F(cudnnBackendDestroyDescriptor) \
    F(cudnnBackendFinalize)          \
    F(cudnnBackendSetAttribute)      \
    F(cudnnBackendGetAttribute)      \
    F(cudnnBackendExecute)

#define NVRTC_FUNCTIONS(F)       \
    F(nvrtcGetErrorString)       \
    F(nvrtcGetNumSupportedArchs) \
    F(nvrtcGetSupportedArchs)    \
    F(nvrtcCreateProgram)        \
    F(nvrtcDestroyProgram)       \
    F(nvrtcCompileProgram)       \
    F(nvrtcGetProgramLogSize)    \
    F(nvrtcGetProgramLog)        \
    F(nvrtcGetCUBINSize)         \
    F(nvrtcGetCUBIN)             \
    F(nvrtcGetPTXSize)           \
    F(nvrtcGetPTX)
#define DRIVER_FUNCTIONS(F) \
    F(cuGetErrorString)     \
    F(cuModuleLoadData)     \
    F(cuModuleGetFunction)  \
    F(cuLaunchKernel)

#define POINTER(function) decltype(&::function) function;
struct Cublas {
    CUBLAS_FUNCTIONS(POINTER)
};
struct CublasLt {
    CUBLASLT_FUNCTIONS(POINTER)
};
struct Cudnn {
    CUDNN_FUNCTIONS(POINTER)
};
struct Nvrtc {
    NVRTC_FUNCTIONS(POINTER)
};
struct Driver {
    DRIVER_FUNCTIONS(POINTER)
};

/* Its functions; nullptr, and the sentence recorded: it could not be opened, or lacks one of them. */
const Cublas *gpu_cublas();
const CublasLt *gpu_cublas_lt();
const Cudnn *gpu_cudnn();
const Nvrtc *gpu_nvrtc();
const Driver *gpu_driver();

#endif
