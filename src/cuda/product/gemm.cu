/* gemm.cu - c = alpha a b + beta c (+ bias) through cuBLAS; functions of it, and sums, through cuBLASLt.
 *
 *  - cuBLAS is column-major: a row-major c = a b is its c^T = b^T a^T, so b goes first, and c's rows are its
 *    columns.
 *  - An operand whose strides cuBLAS cannot say (neither rows nor columns dense) is first copied to dense
 *    scratch.
 *  - A bias that cuBLASLt does not add is written into c first and the product added, which rounds once where
 *    c is a half type.
 *  - f32 is f32, or TF32 where the call says so.  Halves accumulate in f32. */
#include <new>
#include "gemm.cuh"

int blas_check(cublasStatus_t status, const char *what)
{
    return status == CUBLAS_STATUS_SUCCESS ? 0 : gpu_fail("%s: cuBLAS status %d", what, (int)status);
}

/* To the queue, or to what is captured; another stream takes the workspace away. */
static bool follow_stream(Blas *b)
{
    cudaStream_t stream = gpu_stream();
    if (b->stream == stream) return true;
    if (blas_check(b->cublas->cublasSetStream(b->handle, stream), "cublasSetStream") ||
        blas_check(b->cublas->cublasSetWorkspace(b->handle, b->workspace, Blas::WORKSPACE),
                   "cublasSetWorkspace"))
        return false;
    b->stream = stream;
    return true;
}

/* Made when first needed, which takes a while.  It has one workspace of ours, so that equal calls give equal
 * bits. */
Blas *blas_of_gpu()
{
    Blas **made = (Blas **)gpu_blas();
    if (*made) return follow_stream(*made) ? *made : nullptr;
    const Lasting lasting;
    const Relaxed relaxed;
    const Cublas *cublas = gpu_cublas();
    const CublasLt *lt = cublas ? gpu_cublas_lt() : nullptr;
    if (!lt) return nullptr;
    Blas *b = new (std::nothrow) Blas{};
    if (!b || !(b->workspace = gpu_alloc(Blas::WORKSPACE))) {
        delete b;
        return gpu_fail("out of memory for cuBLAS"), nullptr;
    }
    b->cublas = cublas, b->lt = lt;
    if (!blas_check(cublas->cublasCreate(&b->handle), "cublasCreate")) {
        if (follow_stream(b) && !blas_check(lt->cublasLtCreate(&b->fused), "cublasLtCreate"))
            return *made = b;
        cublas->cublasDestroy(b->handle);
    }
    gpu_free(b->workspace, Blas::WORKSPACE);
    delete b;
    return nullptr;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Sets transposed and ld.  false: the strides cannot be said. */
static bool express(Matrix *m)
{
    if ((m->column == 1 || m->columns == 1) && (m->row >= m->columns || m->rows == 1)) {
        m->transposed = false;
        m->ld = m->rows == 1 ? m->columns : m->row;
    } else if ((m->row == 1 || m->rows == 1) && (m->column >= m->rows || m->columns == 1)) {
        m->transposed = true;
        m->ld = m->columns == 1 ? m->rows : m->column;
    } else {
        return false;
    }
    return m->batch_stride >= 0;
}

/* Copies between a strided matrix and dense memory. */
static int copy_matrix(int dtype, int64_t batch, const Matrix *m, void *dense, bool to_dense)
{
    const int64_t size = m->rows * m->columns;
    CopyArgs c = {};
    c.ndim = 3, c.count = batch * size;
    c.shape[0] = batch, c.shape[1] = m->rows, c.shape[2] = m->columns;
    Strided strided = {}, flat = {};
    strided.data = (void *)(uintptr_t)m->data, strided.dtype = dtype;
    strided.stride[0] = m->batch_stride, strided.stride[1] = m->row, strided.stride[2] = m->column;
    flat.data = dense, flat.dtype = dtype;
    flat.stride[0] = size, flat.stride[1] = m->columns, flat.stride[2] = 1;
    c.dst = to_dense ? flat : strided, c.src = to_dense ? strided : flat;
    return gpu_copy(&c);
}

/* An operand as cuBLAS takes it: itself, or a dense copy that lives as long as this. */
struct Operand {
    Matrix m;
    void *copy = nullptr;
    size_t bytes = 0;
    int64_t copies = 0; /* matrices in copy */

    /* read: the copy begins with the operand's values. */
    int prepare(int dtype, int64_t batch, bool read)
    {
        if (express(&m)) return 0;
        copies = m.batch_stride == 0 ? 1 : batch;
        bytes = (size_t)(copies * m.rows * m.columns) * gpu_dtype_size(dtype);
        copy = gpu_alloc(bytes);
        if (!copy || (read && copy_matrix(dtype, copies, &m, copy, true))) return -1;
        original = m;
        m = Matrix{ copy,      m.rows, m.columns, copies == 1 ? 0 : m.rows * m.columns,
                    m.columns, 1,      false,     m.columns };
        return 0;
    }
    int write_back(int dtype) { return copy ? copy_matrix(dtype, copies, &original, copy, false) : 0; }
    explicit Operand(Matrix from) : m(from), original(from) {}
    ~Operand()
    {
        if (copy) gpu_free(copy, bytes);
    }
    Operand(const Operand &) = delete;
    Operand &operator=(const Operand &) = delete;

  private:
    Matrix original;
};

/* ---- beta c + bias --------------------------------------------------------------------------- */

struct BiasCall {
    Space<2> space; /* c, then bias, which repeats for every row */
    void *c;
    const void *bias;
    double beta;
};

template <class T> __global__ void bias_kernel(BiasCall b)
{
    using C = Compute<T>;
    for (int64_t i = first_item(); i < b.space.count; i += item_step()) {
        int64_t at[2];
        offsets(b.space, i, at);
        C v = b.bias ? value_of(((const T *)b.bias)[at[1]]) : (C)0;
        if (b.beta != 0) v += (C)b.beta * value_of(((const T *)b.c)[at[0]]);
        put((T *)b.c + at[0], v);
    }
}

static int scale_and_add_bias(const GemmArgs *g)
{
    BiasCall b;
    const int64_t shape[3] = { g->batch, g->m, g->n }, c[3] = { g->c_batch, g->c_row, g->c_col },
                  bias[3] = { 0, 0, 1 };
    set_space(&b.space, 3, g->batch * g->m * g->n, shape);
    set_strides(&b.space, 0, c);
    set_strides(&b.space, 1, bias);
    b.c = g->c, b.bias = g->bias, b.beta = g->beta;
    return with_float(g->to, [&]<class T>() {
        auto kernel = &bias_kernel<T>;
        LAUNCH(kernel, gpu_blocks(b.space.count), THREADS, b);
        return gpu_launched("gemm");
    });
}

/* ---- the product ----------------------------------------------------------------------------- */

cudaDataType_t blas_type(int dtype)
{
    return dtype == TENSOR_F64    ? CUDA_R_64F
           : dtype == TENSOR_F16  ? CUDA_R_16F
           : dtype == TENSOR_BF16 ? CUDA_R_16BF
                                  : CUDA_R_32F;
}

cublasComputeType_t blas_compute(const GemmArgs *g)
{
    return g->dtype == TENSOR_F64                                 ? CUBLAS_COMPUTE_64F
           : g->dtype == TENSOR_F32 && g->precision != GEMM_EXACT ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                  : CUBLAS_COMPUTE_32F;
}

/* c = alpha a b + beta c with c's rows dense. */
static int multiply(const GemmArgs *g, const Matrix *a, const Matrix *b, const Matrix *c, double beta)
{
    Blas *const blas = blas_of_gpu();
    if (!blas) return -1;
    const cudaDataType_t type = blas_type(g->dtype), to = blas_type(g->to);
    const bool f64 = g->dtype == TENSOR_F64;
    const float alpha32 = (float)g->alpha, beta32 = (float)beta;
    const void *alpha = f64 ? (const void *)&g->alpha : &alpha32,
               *scale = f64 ? (const void *)&beta : &beta32;
    return blas_check(blas->cublas->cublasGemmStridedBatchedEx_64(
                          blas->handle, b->transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          a->transposed ? CUBLAS_OP_T : CUBLAS_OP_N, c->columns, c->rows, a->columns, alpha,
                          b->data, type, b->ld, b->batch_stride, a->data, type, a->ld, a->batch_stride, scale,
                          (void *)(uintptr_t)c->data, to, c->ld, c->batch_stride, g->batch, blas_compute(g),
                          CUBLAS_GEMM_DEFAULT),
                      "cublasGemmStridedBatchedEx");
}

static Matrix transposed(const Matrix &m)
{
    return Matrix{ m.data, m.columns, m.rows, m.batch_stride, m.column, m.row, false, 0 };
}

/* c's columns are dense, not its rows: c^T = b^T a^T has dense rows. */
static bool by_columns(const GemmArgs *g)
{
    return g->c_col != 1 && g->n > 1 && (g->c_row == 1 || g->m == 1) && (g->c_col >= g->m || g->n == 1);
}

/* With all that belongs to it in one kernel. */
static int run_fused(const GemmArgs *g, Matrix a, Matrix b, Matrix c)
{
    if (g->batch > 1 || by_columns(g) || !express(&c) || c.transposed) return KERNEL_DECLINED;
    Operand left(a), right(b);
    if (left.prepare(g->dtype, 1, true) || right.prepare(g->dtype, 1, true)) return -1;
    return gemm_fused(g, &left.m, &right.m, &c);
}

int gpu_gemm(GemmArgs *g)
{
    const bool whole = g->function || g->sums;
    if (g->batch == 0 || g->m == 0 || g->n == 0) return whole ? KERNEL_DECLINED : 0;
    if (g->dtype > TENSOR_BF16) return gemm_integers(g);
    const bool product = g->k > 0 && g->alpha != 0;
    Matrix a = { g->a, g->m, g->k, g->a_batch, g->a_row, g->a_col, false, 0 };
    Matrix b = { g->b, g->k, g->n, g->b_batch, g->b_row, g->b_col, false, 0 };
    Matrix c = { g->c, g->m, g->n, g->c_batch, g->c_row, g->c_col, false, 0 };
    if (whole || (g->bias && product)) {
        const int status = product ? run_fused(g, a, b, c) : KERNEL_DECLINED;
        if (status != KERNEL_DECLINED || whole) return status;
    }
    if ((g->bias || !product) && scale_and_add_bias(g)) return -1;
    if (!product) return 0;
    const double beta = g->bias ? 1 : g->beta;
    if (by_columns(g)) {
        const Matrix a_was = a;
        a = transposed(b), b = transposed(a_was), c = transposed(c);
    }
    Operand left(a), right(b), result(c);
    if (left.prepare(g->dtype, g->batch, true) || right.prepare(g->dtype, g->batch, true) ||
        result.prepare(g->to, g->batch, beta != 0) || multiply(g, &left.m, &right.m, &result.m, beta))
        return -1;
    return result.write_back(g->to);
}
