/* gemm.cuh - what the files of products share. */
#ifndef TG_CUDA_GEMM_CUH
#define TG_CUDA_GEMM_CUH

#include "cuda/cuda.cuh"
#include "cuda/library.cuh"
#include "cuda/plans.cuh"

struct Matrix { /* rows x columns, batch of them */
    const void *data;
    int64_t rows, columns, batch_stride, row, column;
    bool transposed; /* once expressed: columns are dense, not rows; ld apart */
    int64_t ld;
};

struct Blas { /* of a GPU, made when first needed */
    enum { WORKSPACE = 32 << 20 };
    const Cublas *cublas;
    const CublasLt *lt;
    cublasHandle_t handle;
    cublasLtHandle_t fused;
    void *workspace;
    cudaStream_t stream; /* that of handle now */
    Plans plans;         /* of gemm_fused.cu */
};
Blas *blas_of_gpu(); /* nullptr, and the sentence recorded */
int blas_check(cublasStatus_t status, const char *what);
cudaDataType_t blas_type(int dtype);
cublasComputeType_t blas_compute(const GemmArgs *g);

/* gemm_fused.cu: the product with its bias, function or sums in one kernel; KERNEL_DECLINED where cuBLASLt
 * has none.  The matrices are expressed, c's rows dense. */
int gemm_fused(const GemmArgs *g, const Matrix *a, const Matrix *b, const Matrix *c);

/* Of a GemmArgs with an integer dtype, m, n and batch not 0. */
int gemm_integers(const GemmArgs *g);

#endif
