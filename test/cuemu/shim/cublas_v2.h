/* cublas_v2.h - stand-in for cuBLAS over cuemu: column-major reference loops in double, stream-ordered, with
 * the names and the argument order of the real one; arguments are checked. */
#pragma once
#include "cuemu/cuemu.h"

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 } cublasOperation_t;
typedef enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 } cudaDataType_t;
typedef enum {
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;
struct cuemuBlas {
    cudaStream_t stream;
};
typedef cuemuBlas *cublasHandle_t;

namespace cuemu {

inline double blas_load(const void *p, cudaDataType_t type, long long i)
{
    switch (type) {
    case CUDA_R_64F: return ((const double *)p)[i];
    case CUDA_R_32F: return ((const float *)p)[i];
    case CUDA_R_16F: return __half2float(((const __half *)p)[i]);
    default: return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
    }
}

inline void blas_store(void *p, cudaDataType_t type, long long i, double v)
{
    switch (type) {
    case CUDA_R_64F: ((double *)p)[i] = v; break;
    case CUDA_R_32F: ((float *)p)[i] = (float)v; break;
    case CUDA_R_16F: ((__half *)p)[i] = __float2half_rn((float)v); break;
    default: ((__nv_bfloat16 *)p)[i] = __float2bfloat16_rn((float)v);
    }
}

/* 10 bits of mantissa, as tensor cores read f32. */
inline double tf32(double v)
{
    const float x = (float)v;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return rounded;
}

struct Gemm {
    cublasOperation_t ta, tb;
    int m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    cudaDataType_t at, bt, ct;
    int lda, ldb, ldc, batch;
    long long sa, sb, sc;
    bool tf32;
};

inline double gemm_dot(const Gemm &g, int batch, int i, int j)
{
    double sum = 0;
    for (int l = 0; l < g.k; l++) {
        const long long a = g.ta ? (long long)i * g.lda + l : (long long)l * g.lda + i;
        const long long b = g.tb ? (long long)l * g.ldb + j : (long long)j * g.ldb + l;
        const double x = blas_load(g.a, g.at, batch * g.sa + a), y = blas_load(g.b, g.bt, batch * g.sb + b);
        sum += g.tf32 ? tf32(x) * tf32(y) : x * y;
    }
    return sum;
}

inline void gemm_run(const Gemm &g)
{
    for (int batch = 0; batch < g.batch; batch++)
        for (int j = 0; j < g.n; j++)
            for (int i = 0; i < g.m; i++) {
                const long long c = batch * g.sc + (long long)j * g.ldc + i;
                double v = g.alpha * gemm_dot(g, batch, i, j);
                if (g.beta != 0) v += g.beta * blas_load(g.c, g.ct, c);
                blas_store(g.c, g.ct, c, v);
            }
}

inline cublasStatus_t gemm(cudaStream_t stream, const Gemm &g)
{
    const bool sizes = g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0;
    if (!sizes || g.lda < (g.ta ? g.k : g.m) || g.ldb < (g.tb ? g.n : g.k) || g.ldc < g.m) {
        fprintf(stderr, "cuemu: gemm: bad leading dimension (m %d n %d k %d lda %d ldb %d ldc %d ops %d%d)\n",
                g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.ta, g.tb);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!g.m || !g.n || !g.batch) return CUBLAS_STATUS_SUCCESS;
    if (!is_device_ptr(g.a) || !is_device_ptr(g.b) || !is_device_ptr(g.c)) {
        fprintf(stderr, "cuemu: gemm: an operand is not device memory\n");
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    std::function<void()> f = [g] { gemm_run(g); };
    cuemu_enqueue(stream, &f);
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace cuemu

static inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }

static inline cublasStatus_t cublasCreate(cublasHandle_t *h)
{
    *h = new cuemuBlas{ nullptr };
    return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
    const void *a, cudaDataType_t at, int lda, long long sa, const void *b, cudaDataType_t bt, int ldb,
    long long sb, const void *beta, void *c, cudaDataType_t ct, int ldc, long long sc, int batch,
    cublasComputeType_t compute, cublasGemmAlgo_t)
{
    const bool f64 = compute == CUBLAS_COMPUTE_64F;
    const double x = f64 ? *(const double *)alpha : *(const float *)alpha,
                 y = f64 ? *(const double *)beta : *(const float *)beta;
    return cuemu::gemm(h->stream,
                       cuemu::Gemm{ ta,  tb,  m,     n,  k,  x,  y,
                                    a,   b,   c,     at, bt, ct, lda,
                                    ldb, ldc, batch, sa, sb, sc, compute == CUBLAS_COMPUTE_32F_FAST_TF32 });
}
