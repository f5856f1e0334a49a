/* mma.cuh - tensor cores: products of 16-bit matrices by a warp, summed in f32; and copies of 16 bytes into
 * shared memory that run beside the computation.  From compute capability 8.0 on.
 *
 * Lane l holds, with g = l / 4 and t = l % 4, two neighbours in each word of a and b:
 *     a [16, 16]  rows g, g + 8, g, g + 8; columns from 2t, 2t, 2t + 8, 2t + 8 on
 *     b [16, 8]   rows from 2t, 2t + 8 on; column g
 *     d [16, 8]   at (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1), each a float */
#ifndef TG_CUDA_MMA_CUH
#define TG_CUDA_MMA_CUH

#include "cuda/cuda.cuh"

/* gpu_has_mma - does the GPU whose turn it is have them? */
static inline bool gpu_has_mma()
{
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           major >= 8;
}

/* LAUNCH with `bytes` of dynamic shared memory, which the kernel has as SHARED(T, name). */
template <class F> static inline bool gpu_allow_shared(F *kernel, size_t bytes)
{
    return bytes <= 48 << 10 || cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                     (int)bytes) == cudaSuccess;
}
#ifdef __CUDACC__
#define LAUNCH_SHARED(kernel, grid, block, bytes, ...)                                                    \
    do {                                                                                                  \
        auto run_ = &kernel;                                                                              \
        if (gpu_allow_shared(run_, bytes)) run_<<<(grid), (block), (bytes), gpu_stream()>>>(__VA_ARGS__); \
    } while (0)
#define SHARED(T, name)                           \
    extern __shared__ __align__(16) char room_[]; \
    T *const name = reinterpret_cast<T *>(room_)
#else
#define LAUNCH_SHARED(kernel, grid, block, bytes, ...)                             \
    do {                                                                           \
        auto run_ = &kernel;                                                       \
        if (gpu_allow_shared(run_, bytes))                                         \
            CU_LAUNCH_SHARED(run_, grid, block, bytes, gpu_stream(), __VA_ARGS__); \
    } while (0)
#define SHARED(T, name) CU_DYNAMIC_SHARED(T, name)
#endif

#ifdef __CUDACC__
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define ON_TENSOR_CORES(...) __trap()
#else
#define ON_TENSOR_CORES(...) __VA_ARGS__
#endif

static __device__ inline unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* d += a b */
template <class T>
static __device__ inline void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
#define MMA(type)                                                                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "    \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (std::is_same<T, __half>::value) ON_TENSOR_CORES(MMA("f16"));
    else ON_TENSOR_CORES(MMA("bf16"));
#undef MMA
}

/* Four matrices [8, 8] from shared memory: lane l says where row l % 8 of matrix l / 8 begins, and gets of
 * each the two neighbours at (l / 4, 2 (l % 4)); transposed: those at (2 (l % 4), l / 4) and below. */
static __device__ inline void load_matrices(unsigned (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

static __device__ inline void load_transposed(unsigned (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* 16 bytes from global to shared memory, or zeros where there are none.  What was copied before
 * end_of_copies is there once wait_for_copies<N> finds at most N later ends. */
static __device__ inline void copy16(void *to, const void *from, bool there)
{
    ON_TENSOR_CORES(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                                 "l"(from), "r"(there ? 16 : 0)
                                 : "memory"));
}
static __device__ inline void end_of_copies()
{
    ON_TENSOR_CORES(asm volatile("cp.async.commit_group;" ::: "memory"));
}
template <int N> static __device__ inline void wait_for_copies()
{
    ON_TENSOR_CORES(asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"));
}

static __device__ inline unsigned pair_of(__nv_bfloat16, float low, float high)
{
    unsigned pair = 0;
    ON_TENSOR_CORES(asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low)));
    return pair;
}
static __device__ inline unsigned pair_of(__half, float low, float high)
{
    unsigned pair = 0;
    ON_TENSOR_CORES(asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low)));
    return pair;
}
typedef unsigned PairWord;
#else
#include "cuemu/mma.h"
#endif

/* Two neighbours in a word; PairWord is one that lies in memory. */
template <class T> static __device__ inline unsigned pair(float low, float high)
{
    return pair_of(T(), low, high);
}

/* a of 16 rows from `row` on and 16 columns from `at` on, of a tile whose rows are LD elements. */
template <int LD, class T>
static __device__ inline void load_a(unsigned (&a)[4], const T *tile, int row, int at)
{
    const int lane = (int)threadIdx.x % 32;
    load_matrices(a, tile + (row + lane % 16) * LD + at + lane / 16 * 8);
}

/* The same of a tile that has it transposed: its rows are columns of a. */
template <int LD, class T>
static __device__ inline void load_a_transposed(unsigned (&a)[4], const T *tile, int row, int at)
{
    const int lane = (int)threadIdx.x % 32;
    load_transposed(a, tile + (at + lane % 8 + lane / 16 * 8) * LD + row + lane / 8 % 2 * 8);
}

/* Two b side by side: b[0], b[1] and b[2], b[3].  Of a tile that has them transposed: columns are its rows
 * from `column` on; or as they are. */
template <int LD, class T>
static __device__ inline void load_b_transposed(unsigned (&b)[4], const T *tile, int row, int column)
{
    const int lane = (int)threadIdx.x % 32;
    load_matrices(b, tile + (column + lane % 8 + lane / 16 * 8) * LD + row + lane / 8 % 2 * 8);
}
template <int LD, class T>
static __device__ inline void load_b(unsigned (&b)[4], const T *tile, int row, int column)
{
    const int lane = (int)threadIdx.x % 32;
    load_transposed(b, tile + (row + lane % 16) * LD + column + lane / 16 * 8);
}

#endif
