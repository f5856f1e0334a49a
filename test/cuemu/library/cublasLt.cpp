/* cublasLt.cpp - stand-in for cuBLASLt; arguments are checked.  It has no algorithm for f64, nor for an
 * auxiliary matrix whose leading dimension is no multiple of 8, and chooses in no capture but in the relaxed
 * mode. */
#include <math.h>
#include "blas.h"
#include "cuemu/shim/cublasLt.h"

using namespace cuemu;

struct LtGemm {
    Gemm g;
    cuemuLtCall call;
};

static double lt_value(const LtGemm &l, int64_t i, int64_t j)
{
    double v = l.g.alpha * gemm_dot(l.g, 0, i, j);
    if (l.g.beta != 0) v += l.g.beta * blas_load(l.g.c, l.g.ct, j * l.g.ldc + i);
    if (l.call.epilogue & CUBLASLT_EPILOGUE_BIAS) v += blas_load(l.call.bias, l.call.bias_type, i);
    if (l.call.epilogue & 128) blas_store(l.call.aux, l.call.aux_type, j * l.call.aux_ld + i, v);
    if (l.call.epilogue & CUBLASLT_EPILOGUE_RELU) v = v > 0 || v != v ? v : 0;
    if (l.call.epilogue & CUBLASLT_EPILOGUE_GELU)
        v *= 0.5 * (1 + tanh(0.797884560802865355880 * (v + 0.044715 * v * v * v)));
    return v;
}

static void lt_run(const LtGemm &l)
{
    const Gemm &g = l.g;
    for (int64_t j = 0; j < g.n; j++)
        for (int64_t i = 0; i < g.m; i++) blas_store(g.c, g.ct, j * g.ldc + i, lt_value(l, i, j));
    for (int64_t j = 0; j < g.n && l.call.epilogue == CUBLASLT_EPILOGUE_BGRADB; j++) {
        double sum = 0;
        for (int64_t k = 0; k < g.k; k++) sum += blas_load(g.b, g.bt, g.tb ? k * g.ldb + j : j * g.ldb + k);
        blas_store(l.call.bias, g.ct, j, sum);
    }
}

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    *h = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t)
{
    *d = new cuemuLtCall{ compute, CUBLAS_OP_N, CUBLAS_OP_N, 1, nullptr, nullptr, 0, CUDA_R_32F, CUDA_R_32F };
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    delete d;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t size)
{
    const struct {
        int what;
        void *to;
        size_t size;
    } field[] = { { CUBLASLT_MATMUL_DESC_TRANSA, &d->first, sizeof d->first },
                  { CUBLASLT_MATMUL_DESC_TRANSB, &d->second, sizeof d->second },
                  { CUBLASLT_MATMUL_DESC_EPILOGUE, &d->epilogue, sizeof d->epilogue },
                  { CUBLASLT_MATMUL_DESC_BIAS_POINTER, &d->bias, sizeof d->bias },
                  { CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &d->bias_type, sizeof d->bias_type },
                  { CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &d->aux, sizeof d->aux },
                  { CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &d->aux_ld, sizeof d->aux_ld },
                  { CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &d->aux_type, sizeof d->aux_type } };
    for (const auto &f : field)
        if (f.what == what && f.size == size) return memcpy(f.to, value, size), CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType_t type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    *l = new cuemuLtLayout{ type, rows, cols, ld };
    return ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    *p = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t what, const void *,
                                                    size_t size)
{
    const size_t want =
        what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? sizeof(uint64_t) : sizeof(uint32_t);
    return size == want ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t *found, int *count)
{
    const uint64_t inner = d->first == CUBLAS_OP_T ? a->rows : a->cols,
                   other = d->second == CUBLAS_OP_T ? b->cols : b->rows;
    const bool aux = d->epilogue & 128;
    *count = 0;
    cuemu_chosen();
    if (cuemu_forbidden()) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (inner != other || a->type != b->type || ((d->epilogue & (4 | 512)) && !d->bias) || (aux && !d->aux))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (d->compute == CUBLAS_COMPUTE_64F || (aux && (d->aux_ld % 8 || d->aux_ld < (int64_t)c->rows)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *count = 1, found->algo.chosen = d->epilogue, found->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t al, const void *b, cublasLtMatrixLayout_t bl,
                              const void *beta, const void *, cublasLtMatrixLayout_t, void *c,
                              cublasLtMatrixLayout_t cl, const cublasLtMatmulAlgo_t *algo, void *, size_t,
                              cudaStream_t stream)
{
    const int64_t k = (int64_t)(d->first == CUBLAS_OP_T ? al->rows : al->cols);
    const LtGemm l = { { d->first,
                         d->second,
                         (int64_t)cl->rows,
                         (int64_t)cl->cols,
                         k,
                         *(const float *)alpha,
                         *(const float *)beta,
                         a,
                         b,
                         c,
                         al->type,
                         bl->type,
                         cl->type,
                         (int64_t)al->ld,
                         (int64_t)bl->ld,
                         (int64_t)cl->ld,
                         1,
                         0,
                         0,
                         0,
                         d->compute == CUBLAS_COMPUTE_32F_FAST_TF32 },
                       *d };
    if (algo->chosen != d->epilogue) return CUBLAS_STATUS_INVALID_VALUE;
    for (const void *p : { a, b, (const void *)c, (const void *)d->bias, (const void *)d->aux })
        if (p && !is_device_ptr(p)) return CUBLAS_STATUS_EXECUTION_FAILED;
    std::function<void()> f = [l] { lt_run(l); };
    cuemu_enqueue(stream, &f);
    return CUBLAS_STATUS_SUCCESS;
}
}
