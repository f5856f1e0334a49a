/* gemm_fused.cu - a product with its bias, a function of the result, or the sums of an operand, in one kernel
 * of cuBLASLt's.
 *
 *  - cuBLASLt is column-major, too: b goes first, c's rows are its columns, and a bias a value for each row
 *    of its.
 *  - Its gelu is the approximation by tanh.  What relu keeps for backward are bits: who wants what was before
 *    takes another way.
 *  - A plan is what it chose for sizes, strides, types and alignments, or that it has nothing. */
#include "gemm.cuh"

struct FusedKey {
    int64_t m, n, k, a_ld, b_ld, c_ld;
    int dtype, to, compute, epilogue, a_turned, b_turned;
    int a_align, b_align, c_align, side_align, before_align, with_beta;
};

struct FusedPlan : Plan {
    const CublasLt *lt;
    bool served;
    cublasLtMatmulDesc_t call;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
    ~FusedPlan() override
    {
        if (a) lt->cublasLtMatrixLayoutDestroy(a);
        if (b) lt->cublasLtMatrixLayoutDestroy(b);
        if (c) lt->cublasLtMatrixLayoutDestroy(c);
        if (call) lt->cublasLtMatmulDescDestroy(call);
    }
};

/* -1: there is none. */
static int epilogue_of(const GemmArgs *g)
{
    if (g->sums) return g->function || g->bias ? -1 : CUBLASLT_EPILOGUE_BGRADB;
    switch (g->function) {
    case GEMM_IDENTITY: return CUBLASLT_EPILOGUE_BIAS;
    case GEMM_RELU: return g->before ? -1 : g->bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case GEMM_GELU_TANH:
        if (g->before) return g->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        return g->bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default: return -1;
    }
}

/* Bytes that an address is a multiple of, up to 256. */
static int alignment(const void *data) { return (int)(((uintptr_t)data | 256) & -((uintptr_t)data | 256)); }

template <class T> static bool set(FusedPlan *p, cublasLtMatmulDescAttributes_t what, const T &value)
{
    return p->lt->cublasLtMatmulDescSetAttribute(p->call, what, &value, sizeof value) ==
           CUBLAS_STATUS_SUCCESS;
}

static bool limit(const CublasLt *lt, cublasLtMatmulPreference_t of,
                  cublasLtMatmulPreferenceAttributes_t what, uint32_t value)
{
    return lt->cublasLtMatmulPreferenceSetAttribute(of, what, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
}

static bool set_pointers(FusedPlan *p, const GemmArgs *g)
{
    const void *const side = g->sums ? g->sums : g->bias;
    return (!side || set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, side)) &&
           (!g->before || set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, g->before));
}

static bool describe(FusedPlan *p, const FusedKey &k, const GemmArgs *g)
{
    const CublasLt *lt = p->lt;
    const cudaDataType_t type = blas_type(k.dtype), to = blas_type(k.to);
    const cublasOperation_t first = k.b_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                            second = k.a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const auto compute = (cublasComputeType_t)k.compute;
    const auto epilogue = (cublasLtEpilogue_t)k.epilogue;
    return lt->cublasLtMatmulDescCreate(&p->call, compute, k.dtype == TENSOR_F64 ? CUDA_R_64F : CUDA_R_32F) ==
               CUBLAS_STATUS_SUCCESS &&
           set(p, CUBLASLT_MATMUL_DESC_TRANSA, first) && set(p, CUBLASLT_MATMUL_DESC_TRANSB, second) &&
           set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) && set_pointers(p, g) &&
           (!g->bias || set(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, to)) &&
           (!g->before || (set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, k.c_ld) &&
                           set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, to))) &&
           lt->cublasLtMatrixLayoutCreate(&p->b, type, (uint64_t)(k.b_turned ? k.k : k.n),
                                          (uint64_t)(k.b_turned ? k.n : k.k),
                                          k.b_ld) == CUBLAS_STATUS_SUCCESS &&
           lt->cublasLtMatrixLayoutCreate(&p->a, type, (uint64_t)(k.a_turned ? k.m : k.k),
                                          (uint64_t)(k.a_turned ? k.k : k.m),
                                          k.a_ld) == CUBLAS_STATUS_SUCCESS &&
           lt->cublasLtMatrixLayoutCreate(&p->c, to, (uint64_t)k.n, (uint64_t)k.m, k.c_ld) ==
               CUBLAS_STATUS_SUCCESS;
}

/* Its algorithm; false: it has none. */
static bool choose(const Blas *blas, FusedPlan *p, const FusedKey &key)
{
    const size_t room = Blas::WORKSPACE;
    const CublasLt *lt = blas->lt;
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    if (lt->cublasLtMatmulPreferenceCreate(&wish) != CUBLAS_STATUS_SUCCESS) return false;
    const bool asked =
        lt->cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                                 sizeof room) == CUBLAS_STATUS_SUCCESS &&
        limit(lt, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, (uint32_t)key.b_align) &&
        limit(lt, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, (uint32_t)key.a_align) &&
        limit(lt, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, (uint32_t)key.c_align) &&
        limit(lt, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, (uint32_t)key.c_align) &&
        lt->cublasLtMatmulAlgoGetHeuristic(blas->fused, p->call, p->b, p->a, p->c, p->c, wish, 1, &found,
                                           &count) == CUBLAS_STATUS_SUCCESS;
    lt->cublasLtMatmulPreferenceDestroy(wish);
    p->algo = found.algo;
    return asked && count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
}

int gemm_fused(const GemmArgs *g, const Matrix *a, const Matrix *b, const Matrix *c)
{
    const int epilogue = epilogue_of(g);
    Blas *const blas = epilogue < 0 ? nullptr : blas_of_gpu();
    if (!blas) return epilogue < 0 ? KERNEL_DECLINED : KERNEL_FAILED;
    FusedKey key;
    memset(&key, 0, sizeof key); /* its gaps are compared, too */
    key.m = g->m, key.n = g->n, key.k = g->k, key.a_ld = a->ld, key.b_ld = b->ld, key.c_ld = c->ld;
    key.dtype = g->dtype, key.to = g->to, key.compute = blas_compute(g), key.epilogue = epilogue;
    key.a_turned = a->transposed, key.b_turned = b->transposed, key.with_beta = g->beta != 0;
    key.side_align = alignment(g->sums ? g->sums : g->bias), key.before_align = alignment(g->before);
    key.a_align = alignment(a->data), key.b_align = alignment(b->data), key.c_align = alignment(c->data);
    FusedPlan *p = gpu_plan<FusedPlan>(&blas->plans, &key, sizeof key, [&](FusedPlan *made) {
        made->lt = blas->lt;
        made->served = describe(made, key, g) && choose(blas, made, key);
    });
    if (!p) return KERNEL_FAILED;
    if (!p->served || !set_pointers(p, g)) return KERNEL_DECLINED;
    const float alpha32 = (float)g->alpha, beta32 = (float)g->beta;
    const bool f64 = g->dtype == TENSOR_F64;
    return blas_check(blas->lt->cublasLtMatmul(blas->fused, p->call, f64 ? (const void *)&g->alpha : &alpha32,
                                               b->data, p->b, a->data, p->a,
                                               f64 ? (const void *)&g->beta : &beta32, c->data, p->c,
                                               (void *)(uintptr_t)c->data, p->c, &p->algo, blas->workspace,
                                               Blas::WORKSPACE, gpu_stream()),
                      "cublasLtMatmul");
}
