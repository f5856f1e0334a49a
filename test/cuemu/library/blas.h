/* blas.h - what the stand-ins for cuBLAS and cuBLASLt share: loops in double over column-major matrices. */
#pragma once
#include "cuemu/shim/cublas_v2.h"

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
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    cudaDataType_t at, bt, ct;
    int64_t lda, ldb, ldc, batch;
    long long sa, sb, sc;
    bool tf32;
};

inline double gemm_dot(const Gemm &g, int64_t batch, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t l = 0; l < g.k; l++) {
        const long long a = g.ta ? i * g.lda + l : l * g.lda + i;
        const long long b = g.tb ? l * g.ldb + j : j * g.ldb + l;
        const double x = blas_load(g.a, g.at, batch * g.sa + a), y = blas_load(g.b, g.bt, batch * g.sb + b);
        sum += g.tf32 ? tf32(x) * tf32(y) : x * y;
    }
    return sum;
}

} // namespace cuemu
