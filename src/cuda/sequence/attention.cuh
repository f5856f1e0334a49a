/* attention.cuh - what the kernels of attention share: where rows lie, which scores are seen. */
#ifndef TG_CUDA_ATTENTION_CUH
#define TG_CUDA_ATTENTION_CUH

#include "cuda/mma.cuh"
#include "cuda/pack.cuh"

struct AttentionCall {
    AttentionArgs a;
    bool wide_q, wide_k, wide_v, wide_y; /* 16 bytes at once: can they be read so? */
    const float *delta;                  /* backward: sum dy y of each row */
};

/* attention_halves.cu, attention_f32.cu: widths are at most ATTENTION_WIDTH. */
enum { ATTENTION_WIDTH = 128 };
int attention_halves(const AttentionCall &call);
int attention_halves_grad(const AttentionCall &call);
size_t attention_f32_room(const AttentionArgs *a); /* of shared memory */
int attention_f32(const AttentionCall &call);
int attention_f32_grad(const AttentionCall &call);

/* attention_cudnn.cu: of halves, widths up to 256.  KERNEL_DECLINED: cuDNN is not there, or has nothing for
 * the call.  attention_cudnn_first: is it asked for backward, too, where our own kernels take the call? */
int attention_cudnn(const AttentionCall &call);
int attention_cudnn_grad(const AttentionCall &call);
bool attention_cudnn_first();

/* Blocks of `rows` rows of each item; a launch of too many is declined. */
static inline int64_t attention_blocks(int64_t items, int64_t rows, int64_t block)
{
    return items * ((rows + block - 1) / block);
}

/* ---- rows of an operand ---------------------------------------------------------------------- */

template <class T> struct Rows {
    const T *data;
    int64_t row, col;
    int width;
    bool wide;
};

/* Where an item begins. */
static __device__ inline int64_t begin_of(const AttentionArgs &a, const AttentionOperand &x, int64_t item)
{
    int64_t at = 0;
    for (int d = a.ndim - 1; d >= 0; d--) {
        int64_t i = split_off(item, a.shape[d]);
        at += (x.each[d] == 1 ? i : i / x.each[d]) * x.stride[d];
    }
    return at;
}

template <class T>
static __device__ inline Rows<T> rows_of(const AttentionArgs &a, const AttentionOperand &x, int64_t item,
                                         int64_t width, bool wide)
{
    return { (const T *)x.data + begin_of(a, x, item), x.row, x.col, (int)width, wide };
}

/* Where an item begins in an array [items / heads, rows, heads, width]. */
static __device__ inline int64_t begin_of_heads(int64_t item, int64_t heads, int64_t rows, int64_t width)
{
    return (item / heads * rows * heads + item % heads) * width;
}

/* Of such an array. */
template <class T>
static __device__ inline Rows<T> rows_of_heads(const AttentionArgs &a, const void *x, int64_t item,
                                               int64_t rows, int64_t width, bool wide)
{
    return { (const T *)x + begin_of_heads(item, a.heads, rows, width), a.heads * width, 1, (int)width,
             wide };
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* unit: 1, or log2 e for scores whose powers of 2 are taken. */
struct Scores {
    const void *mask;
    const uint8_t *keep;
    int64_t rows, cols, mask_row, mask_col;
    float scale, unit;
    int mask_dtype;
    bool causal;

    __device__ inline Scores(const AttentionArgs &a, int64_t item, float unit_)
        : mask(a.mask.data), keep(a.keep ? a.keep + item * a.rows * a.cols : nullptr), rows(a.rows),
          cols(a.cols), mask_row(a.mask.row), mask_col(a.mask.col), scale((float)a.scale * unit_),
          unit(unit_), mask_dtype(a.mask_dtype), causal(a.causal)
    {
        if (!mask) return;
        const int64_t size = mask_dtype == TENSOR_BOOL ? 1 : mask_dtype == TENSOR_F32 ? 4 : 2;
        mask = (const char *)mask + begin_of(a, a.mask, item) * size;
    }

    /* Are all scores of these rows and n columns seen, and without a mask? */
    __device__ inline bool plain(int64_t row, int64_t col, int n) const
    {
        return !mask && col + n <= cols && (!causal || col + n - 1 <= row);
    }

    __device__ inline float masked(float score, int64_t at) const
    {
        switch (mask_dtype) {
        case TENSOR_BOOL: return ((const uint8_t *)mask)[at] ? score : -INFINITY;
        case TENSOR_F32: return score + unit * ((const float *)mask)[at];
        case TENSOR_F16: return score + unit * value_of(((const __half *)mask)[at]);
        default: return score + unit * value_of(((const __nv_bfloat16 *)mask)[at]);
        }
    }

    __device__ inline float operator()(float product, int64_t row, int64_t col) const
    {
        if (row >= rows || col >= cols || (causal && col > row)) return -INFINITY;
        const float score = product * scale;
        return mask ? masked(score, row * mask_row + col * mask_col) : score;
    }

    __device__ inline bool kept(int64_t row, int64_t col) const
    {
        return !keep || (row < rows && col < cols && keep[row * cols + col]);
    }
};

/* The largest score so far, as what is subtracted from them. */
static __device__ inline float shift_of(float most) { return most == -INFINITY ? 0 : most; }

/* 1 / sum, or 0 of a row that sees nothing; y is 0 there, whatever v is. */
static __device__ inline float factor_of(float sum) { return sum == 0 ? 0 : 1 / sum; }
static __device__ inline float times(float x, float factor) { return factor == 0 ? 0 : x * factor; }

#endif
