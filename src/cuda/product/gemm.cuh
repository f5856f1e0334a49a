/* gemm.cuh - products that cuBLAS does not have. */
#ifndef TG_CUDA_GEMM_CUH
#define TG_CUDA_GEMM_CUH

#include "cuda/cuda.cuh"

/* Of a GemmArgs with an integer dtype, m, n and batch not 0. */
int gemm_integers(const GemmArgs *g);

#endif
