/* attention.cu - attention without its matrix of scores: which calls the kernels take, and what backward
 * needs first.  Halves go by tensor cores (attention_halves.cu), f32 by multiplications and additions in f32
 * (attention_f32.cu); widths of 64 and 128, and smaller ones as these.
 *
 * A block of threads has a tile of rows and goes over the columns by tiles (Dao, "FlashAttention-2", 2023);
 * in backward one kernel has rows and makes dq, another has columns and makes dk and dv, so that every sum
 * has one owner and one order. */
#include "cuda/sequence/attention.cuh"

/* ---- sum dy y -------------------------------------------------------------------------------- */

enum { WARP = 32 };

/* Elements [i, i + a pack) of a row; zeros behind the width. */
template <class T> __device__ inline Pack<T> pack_of(const T *x, int i, int width, bool wide)
{
    if (wide) return load_pack<Pack<T>>(x + i);
    Pack<T> pack;
#pragma unroll
    for (int k = 0; k < Pack<T>::SIZE; k++) {
        put(&pack.v[k], 0.0f);
        if (i + k < width) pack.v[k] = x[i + k];
    }
    return pack;
}

/* A warp a row, in one order wherever the rows lie: x, y [.., each, heads, width], out [.., heads, each]. */
template <class T>
__global__ void row_dots(int64_t rows, int64_t each, int64_t heads, int width, bool wide, const T *x,
                         const T *y, float *out)
{
    const int64_t row = first_item() / WARP;
    const int lane = (int)threadIdx.x % WARP;
    if (row >= rows) return;
    float sum = 0;
    for (int i = lane * Pack<T>::SIZE; i < width; i += WARP * Pack<T>::SIZE) {
        const Pack<T> a = pack_of(x + row * width, i, width, wide),
                      b = pack_of(y + row * width, i, width, wide);
#pragma unroll
        for (int k = 0; k < Pack<T>::SIZE; k++) sum += value_of(a.v[k]) * value_of(b.v[k]);
    }
    for (int half = WARP / 2; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
    if (lane > 0) return;
    int64_t of = row;
    const int64_t head = split_off(of, heads), within = split_off(of, each);
    out[(of * heads + head) * each + within] = sum;
}

static int dots(const AttentionCall &c, float *out)
{
    const int64_t rows = c.a.batch * c.a.rows;
    return with_float(c.a.dtype, [=, &c]<class T>() -> int {
        LAUNCH((row_dots<T>), (unsigned)((rows * WARP + THREADS - 1) / THREADS), THREADS, rows, c.a.rows,
               c.a.heads, (int)c.a.value_width, c.wide_y, (const T *)c.a.dy, (const T *)c.a.y, out);
        return gpu_launched("attention_grad");
    });
}

/* ---- which calls ----------------------------------------------------------------------------- */

static bool is_half(const AttentionArgs *a) { return a->dtype == TENSOR_F16 || a->dtype == TENSOR_BF16; }

/* Does every row of it lie on a multiple of 16 bytes? */
static bool is_wide(const AttentionArgs *a, const AttentionOperand &x, int64_t rows, int64_t width)
{
    const int64_t each = 16 / (int64_t)gpu_dtype_size(a->dtype);
    if (x.col != 1 || width % each || (uintptr_t)x.data % 16 || (rows > 1 && x.row % each)) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] > x.each[d] && x.stride[d] % each) return false;
    return true;
}

static bool takes(const AttentionArgs *a)
{
    int device = 0, most = 0;
    if (a->width > ATTENTION_WIDTH || a->value_width > ATTENTION_WIDTH) return false;
    if (attention_blocks(a->batch, a->rows > a->cols ? a->rows : a->cols, WARP) >= 1ll << 26) return false;
    if (is_half(a)) return gpu_has_mma();
    return a->dtype == TENSOR_F32 && cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
           attention_f32_room(a) <= (size_t)most;
}

static AttentionCall call_of(const AttentionArgs *a)
{
    const bool wide = a->value_width * (int64_t)gpu_dtype_size(a->dtype) % 16 == 0;
    return { *a,
             is_wide(a, a->q, a->rows, a->width),
             is_wide(a, a->k, a->cols, a->width),
             is_wide(a, a->v, a->cols, a->value_width),
             wide && (uintptr_t)a->dy % 16 == 0 && (uintptr_t)a->y % 16 == 0,
             nullptr };
}

int gpu_attention(AttentionArgs *a)
{
    const bool own = takes(a);
    if (own && a->batch * a->rows == 0) return KERNEL_DONE;
    const AttentionCall c = call_of(a);
    const int status = attention_cudnn(c);
    if (status != KERNEL_DECLINED || !own) return status;
    return is_half(a) ? attention_halves(c) : attention_f32(c);
}

int gpu_attention_grad(AttentionArgs *a)
{
    const bool own = takes(a);
    if (a->dmask || !a->y) return KERNEL_DECLINED;
    AttentionCall c = call_of(a);
    if (!own || attention_cudnn_first()) {
        const int status = attention_cudnn_grad(c);
        if (status != KERNEL_DECLINED || !own) return status;
    }
    Scratch delta((size_t)(a->batch * a->rows) * sizeof(float));
    if (!delta.data) return KERNEL_FAILED;
    c.delta = (const float *)delta.data;
    if (a->batch * a->rows > 0 && dots(c, (float *)delta.data)) return KERNEL_FAILED;
    return is_half(a) ? attention_halves_grad(c) : attention_f32_grad(c);
}
