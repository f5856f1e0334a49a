/* cublas.cpp - stand-in for cuBLAS: column-major reference loops in double, in the order of the stream;
 * arguments are checked. */
#include "blas.h"

using namespace cuemu;

static void gemm_run(const Gemm &g)
{
    for (int64_t batch = 0; batch < g.batch; batch++)
        for (int64_t j = 0; j < g.n; j++)
            for (int64_t i = 0; i < g.m; i++) {
                const long long c = batch * g.sc + j * g.ldc + i;
                double v = g.alpha * gemm_dot(g, batch, i, j);
                if (g.beta != 0) v += g.beta * blas_load(g.c, g.ct, c);
                blas_store(g.c, g.ct, c, v);
            }
}

static cublasStatus_t gemm(cudaStream_t stream, const Gemm &g)
{
    const bool sizes = g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0;
    if (!sizes || g.lda < (g.ta ? g.k : g.m) || g.ldb < (g.tb ? g.n : g.k) || g.ldc < g.m) {
        fprintf(
            stderr,
            "cuemu: gemm: bad leading dimension (m %lld n %lld k %lld lda %lld ldb %lld ldc %lld ops %d%d)\n",
            (long long)g.m, (long long)g.n, (long long)g.k, (long long)g.lda, (long long)g.ldb,
            (long long)g.ldc, g.ta, g.tb);
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

extern "C" {
cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasCreate(cublasHandle_t *h)
{
    *h = new cuemuBlas{ nullptr };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
                                             int64_t m, int64_t n, int64_t k, const void *alpha,
                                             const void *a, cudaDataType_t at, int64_t lda, long long sa,
                                             const void *b, cudaDataType_t bt, int64_t ldb, long long sb,
                                             const void *beta, void *c, cudaDataType_t ct, int64_t ldc,
                                             long long sc, int64_t batch, cublasComputeType_t compute,
                                             cublasGemmAlgo_t)
{
    const bool f64 = compute == CUBLAS_COMPUTE_64F;
    const double x = f64 ? *(const double *)alpha : *(const float *)alpha,
                 y = f64 ? *(const double *)beta : *(const float *)beta;
    return gemm(h->stream, Gemm{ ta,  tb,  m,     n,  k,  x,  y,
                                 a,   b,   c,     at, bt, ct, lda,
                                 ldb, ldc, batch, sa, sb, sc, compute == CUBLAS_COMPUTE_32F_FAST_TF32 });
}
}
