/* cuda.cuh - what the files of the CUDA device share.
 *
 *  - One stream a GPU: what is queued first is done first, so memory that was freed may be given out again at
 *    once.  A lock (device.cu) lets one thread queue at a time; the files work on the GPU whose turn it is.
 *  - No float atomics, and the shape of every sum follows from the sizes alone: two runs give the same bits.
 *  - The same sources make the device "emu", which runs kernels on the CPU for tests (test/cuemu).
 *
 * Functions return 0, or -1 with a sentence from gpu_fail. */
#ifndef TG_CUDA_CUH
#define TG_CUDA_CUH

#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <math.h>
#include <string.h>
#include <type_traits>
#include <tapegrad/tensor.h>
#include "device/device.h"

#ifdef __CUDACC__
#define LAUNCH(kernel, grid, block, ...) kernel<<<(grid), (block), 0, gpu_stream()>>>(__VA_ARGS__)
#else
#define LAUNCH(kernel, grid, block, ...) CU_LAUNCH(kernel, grid, block, gpu_stream(), __VA_ARGS__)
#endif

/* ---- device.cu ------------------------------------------------------------------------------- */

int gpu_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *gpu_error();                             /* the last sentence */
int gpu_check(cudaError_t status, const char *what); /* 0, or -1 and what CUDA says */
int gpu_launched(const char *kernel);                /* after each launch */
int gpu_passed(cudaEvent_t event);                   /* 1: what it is behind is done; 0: not yet; -1 */
int gpu_no_memory(size_t bytes);
int gpu_synchronize();
cudaStream_t gpu_stream();
int64_t *gpu_mailbox();               /* a few words of device memory for answers to the host */
int gpu_read_mailbox(int64_t *value); /* its first word, when all queued work is done */

bool gpu_must_fail(); /* the request for memory that comes, for a test */
void **gpu_blas();    /* of gemm.cu */
void **gpu_dnn();     /* of cudnn_graph.cu */

/* alloc.cu: 256-byte aligned blocks; bytes as asked for.  nullptr, and the sentence recorded: there is no
 * memory, and the call ends with KERNEL_NO_MEMORY if it fails. */
void *gpu_alloc(size_t bytes);
void gpu_free(void *data, size_t bytes);

/* graph.cu.  Lasting: in its scope memory does not come from a graph's pool, for what outlives the graph.
 * Relaxed: calls that a capture forbids, as they might wait, but which do not, are allowed. */
struct Lasting {
    DeviceGraph *was;
    Lasting();
    ~Lasting();
    Lasting(const Lasting &) = delete;
    Lasting &operator=(const Lasting &) = delete;
};
struct Relaxed {
    cudaStreamCaptureMode mode;
    bool on;
    Relaxed();
    ~Relaxed();
    Relaxed(const Relaxed &) = delete;
    Relaxed &operator=(const Relaxed &) = delete;
};

/* Device memory for the duration of a call.  data is nullptr when there was none. */
struct Scratch {
    void *data;
    size_t bytes;
    explicit Scratch(size_t n) : data(gpu_alloc(n ? n : 1)), bytes(n ? n : 1) {}
    ~Scratch()
    {
        if (data) gpu_free(data, bytes);
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
};

/* The kernels, one function a slot of Device. */
#define K(slot, Args) int gpu_##slot(Args *args);
KERNEL_LIST(K)
LIST_KERNELS(K)
#undef K
int gpu_random_torch(RandomArgs *args); /* elementwise/random_torch.cu: PyTorch's on a GPU */

/* index.cu: queues a look at all of [outer, rows, inner] indices (strides as given), which must lie in
 * [0, n) or equal *also, if that is given.  A bad one, the first in row-major order, of steps with stride 0
 * the first only, makes the next wait fail.  Under TAPEGRAD_CUDA_SYNC=1 it is told at once: -1, with its
 * place. */
struct IndexBlock {
    const int64_t *index;
    int64_t outer, rows, inner, outer_stride, row_stride, inner_stride;
};
struct IndexCheck {
    IndexBlock block;
    int64_t n;
    const int64_t *also;
    const char *op; /* whose call it is */
    const void *site;
};
int gpu_check_index(const IndexCheck *check, int64_t *bad_at, int64_t *bad_value);

/* device.cu: a number for the call, under which the kernel notes its fault in the words; the fault that the
 * last wait found, told once. */
struct CallRange { /* what a call wants of its values */
    const char *op, *what;
    const void *site;
    int status;
    int64_t low, high;
};
int64_t gpu_note_call(const CallRange &range);
int64_t *gpu_fault_words();
bool gpu_fault(DeviceFault *of);

/* ---- sizes of launches ----------------------------------------------------------------------- */

enum { THREADS = 256 };

static inline unsigned gpu_blocks(int64_t n) /* for loops that step by the whole grid */
{
    const int64_t blocks = (n + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks < 16384 ? blocks : 16384);
}

static __device__ inline int64_t first_item() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ inline int64_t item_step() { return (int64_t)gridDim.x * blockDim.x; }

/* ---- strided index spaces -------------------------------------------------------------------- */

template <int N> struct Space { /* of N operands */
    int ndim;
    int64_t count, shape[KERNEL_MAX_DIMS], stride[N][KERNEL_MAX_DIMS];
};

/* n % size; n becomes n / size.  Divisions of 32 bits are several times faster. */
static __device__ inline int64_t split_off(int64_t &n, int64_t size)
{
    const int64_t whole = n;
    n = (uint64_t)(n | size) >> 32 ? n / size : (int64_t)((uint32_t)n / (uint32_t)size);
    return whole - n * size;
}

template <int N> static __device__ inline void offsets(const Space<N> &s, int64_t item, int64_t (&at)[N])
{
    for (int k = 0; k < N; k++) at[k] = 0;
    for (int d = s.ndim - 1; d >= 0; d--) {
        int64_t i = item;
        if (d > 0 && s.count <= 0xffffffff) { /* divisions of 32 bits are several times faster */
            i = (uint32_t)item % (uint32_t)s.shape[d];
            item = (uint32_t)item / (uint32_t)s.shape[d];
        } else if (d > 0) {
            i = item % s.shape[d];
            item /= s.shape[d];
        }
        for (int k = 0; k < N; k++) at[k] += i * s.stride[k][d];
    }
}

template <int N> static inline void set_space(Space<N> *s, int ndim, int64_t count, const int64_t *shape)
{
    s->ndim = ndim, s->count = count;
    for (int d = 0; d < ndim; d++) s->shape[d] = shape[d];
}

template <int N> static inline void set_strides(Space<N> *s, int k, const int64_t *stride)
{
    for (int d = 0; d < s->ndim; d++) s->stride[k][d] = stride ? stride[d] : 0;
}

/* ---- element types --------------------------------------------------------------------------- */

struct Bool {
    uint8_t v;
}; /* one byte, 0 or 1 */

template <class T> struct ComputeOf {
    using type = T;
}; /* halves compute in f32 */
template <> struct ComputeOf<__half> {
    using type = float;
};
template <> struct ComputeOf<__nv_bfloat16> {
    using type = float;
};
template <class T> using Compute = typename ComputeOf<T>::type;

static __device__ inline float value_of(float x) { return x; }
static __device__ inline double value_of(double x) { return x; }
static __device__ inline float value_of(__half x) { return __half2float(x); }
static __device__ inline float value_of(__nv_bfloat16 x) { return __bfloat162float(x); }
static __device__ inline void put(float *p, float x) { *p = x; }
static __device__ inline void put(double *p, double x) { *p = x; }
static __device__ inline void put(__half *p, float x) { *p = __float2half_rn(x); }
static __device__ inline void put(__nv_bfloat16 *p, float x) { *p = __float2bfloat16_rn(x); }
static __device__ inline float exp_of(float x) { return expf(x); }
static __device__ inline double exp_of(double x) { return exp(x); }

/* Calls f.operator()<T>() with the type of a floating dtype. */
template <class F> static inline int with_float(int dtype, F f)
{
    switch (dtype) {
    case TENSOR_F32: return f.template operator()<float>();
    case TENSOR_F64: return f.template operator()<double>();
    case TENSOR_F16: return f.template operator()<__half>();
    case TENSOR_BF16: return f.template operator()<__nv_bfloat16>();
    default: return gpu_fail("dtype number %d: want a floating one", dtype);
    }
}

/* The same for any dtype. */
template <class F> static inline int with_dtype(int dtype, F f)
{
    switch (dtype) {
    case TENSOR_I64: return f.template operator()<int64_t>();
    case TENSOR_I32: return f.template operator()<int32_t>();
    case TENSOR_U8: return f.template operator()<uint8_t>();
    case TENSOR_BOOL: return f.template operator()<Bool>();
    default: return with_float(dtype, f);
    }
}

/* With an unsigned integer of an element's size: for moves of bits. */
template <class F> static inline int with_size(int dtype, F f)
{
    switch (dtype) {
    case TENSOR_F32:
    case TENSOR_I32: return f.template operator()<uint32_t>();
    case TENSOR_F64:
    case TENSOR_I64: return f.template operator()<uint64_t>();
    case TENSOR_F16:
    case TENSOR_BF16: return f.template operator()<uint16_t>();
    default: return f.template operator()<uint8_t>();
    }
}

static inline size_t gpu_dtype_size(int dtype)
{
    return dtype == TENSOR_F64 || dtype == TENSOR_I64    ? 8
           : dtype == TENSOR_F32 || dtype == TENSOR_I32  ? 4
           : dtype == TENSOR_F16 || dtype == TENSOR_BF16 ? 2
                                                         : 1;
}

/* ---- teams: who works on one row ----------------------------------------------------------------
 *
 * A row (of a softmax, of a reduction) is done by a block together, or by one thread alone while its
 * neighbours do the neighbouring columns.  Kernels are written once for both:
 *
 *   row()            which row; one beyond the last must return at once
 *   rank(), size()   its share of the row
 *   join(a, f)       f over the shares of all, always in the same order; all of the team must come */
struct Alone {
    static constexpr bool TOGETHER = false;
    static __device__ inline int64_t row() { return first_item(); }
    static __device__ inline int rank() { return 0; }
    static __device__ inline int size() { return 1; }
    template <class A, class F> static __device__ inline A join(A a, F) { return a; }
};

struct Together {
    static constexpr bool TOGETHER = true;
    static __device__ inline int64_t row() { return blockIdx.x; }
    static __device__ inline int rank() { return (int)threadIdx.x; }
    static __device__ inline int size() { return (int)blockDim.x; }
    /* Lanes by halves within each warp, then the warps in order. */
    template <class A, class F> static __device__ inline A join(A a, F f)
    {
        __shared__ A part[THREADS / 32];
        for (int half = 16; half > 0; half /= 2) a = f(a, from_lane_behind(a, half));
        if (rank() % 32 == 0) part[rank() / 32] = a;
        __syncthreads();
        a = part[0];
        for (int warp = 1; warp < size() / 32; warp++) a = f(a, part[warp]);
        __syncthreads(); /* part may be written by the next join */
        return a;
    }

  private:
    /* Beyond the last lane it is the lane's own, which reaches no result. */
    template <class A> static __device__ inline A from_lane_behind(A a, int distance)
    {
        unsigned long long word[(sizeof a + 7) / 8] = { 0 };
        memcpy(word, &a, sizeof a);
        for (unsigned long long &w : word) w = __shfl_down_sync(0xffffffffu, w, (unsigned)distance);
        memcpy(&a, word, sizeof a);
        return a;
    }
};

struct AddUp {
    template <class A> __device__ inline A operator()(A a, A b) const { return a + b; }
};
struct Larger {
    template <class A> __device__ inline A operator()(A a, A b) const { return b > a ? b : a; }
};

/* Rows of n elements that are `apart` from each other: by a team, or one thread each? */
static inline bool by_team(int64_t rows, int64_t n, int64_t apart)
{
    return n >= 32 && (apart == 1 || rows < 4096);
}

struct Launch {
    unsigned blocks, threads;
};

static inline Launch team_launch(bool team, int64_t rows, int64_t n)
{
    unsigned threads = 32;
    if (!team) return Launch{ (unsigned)((rows + THREADS - 1) / THREADS), THREADS };
    while (threads < THREADS && threads < n) threads *= 2;
    return Launch{ (unsigned)rows, threads };
}

/* Launches kernel<Together, ...> or kernel<Alone, ...>. */
#define LAUNCH_ROWS(kernel, T, rows, n, apart, args)                  \
    do {                                                              \
        const bool team_ = by_team(rows, n, apart);                   \
        const Launch launch_ = team_launch(team_, rows, n);           \
        auto run_ = team_ ? &kernel<Together, T> : &kernel<Alone, T>; \
        LAUNCH(run_, launch_.blocks, launch_.threads, args);          \
    } while (0)

#endif
