/* device.cu - the plugin's one export: the GPU as a Device, its start, its lock, its errors. */
#include <mutex>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <ops_digest.h>
#include "cuda.cuh"

#ifndef DEVICE_NAME
#define DEVICE_NAME "cuda"
#endif

static std::mutex lock;
static int opened = -1; /* the device number in use */
static cudaStream_t the_stream;
static int64_t *mailbox;
static thread_local char sentence[512];

/* ---- errors ---------------------------------------------------------------------------------- */

int gpu_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return -1;
}

int gpu_check(cudaError_t status, const char *what)
{
    if (status == cudaSuccess) return 0;
    return gpu_fail("%s: %s (%s, %d)", what, cudaGetErrorString(status), cudaGetErrorName(status),
                    (int)status);
}

static bool after_every_launch()
{
    static const char *const wait = getenv("TAPEGRAD_CUDA_SYNC");
    return wait && *wait == '1';
}

int gpu_launched(const char *kernel)
{
    if (gpu_check(cudaGetLastError(), kernel)) return -1;
    return after_every_launch() ? gpu_check(cudaStreamSynchronize(the_stream), kernel) : 0;
}

/* ---- turns: one thread at a time, on the right device ---------------------------------------- */

namespace {
struct Turn {
    std::lock_guard<std::mutex> guard;
    bool ready;
    Turn() : guard(lock)
    {
        static thread_local int mine = -1; /* a new thread begins on device 0 */
        ready = mine == opened || gpu_check(cudaSetDevice(opened), "cudaSetDevice") == 0;
        if (ready) mine = opened;
    }
};
} // namespace

cudaStream_t gpu_stream() { return the_stream; }
int64_t *gpu_mailbox() { return mailbox; }
int gpu_synchronize() { return gpu_check(cudaStreamSynchronize(the_stream), "waiting for the device"); }

int gpu_read_mailbox(int64_t *value)
{
    if (gpu_check(cudaMemcpyAsync(value, mailbox, sizeof *value, cudaMemcpyDeviceToHost, the_stream),
                  "reading an answer"))
        return -1;
    return gpu_synchronize();
}

/* ---- start ----------------------------------------------------------------------------------- */

static __global__ void answer(int64_t *to) { *to = 42; }

/* Does a kernel of ours run there?  Not when it was compiled for other chips only. */
static int probe(int index)
{
    int64_t value = 0;
    LAUNCH(answer, 1, 1, mailbox);
    if (gpu_launched("a first kernel") || gpu_read_mailbox(&value)) {
        cudaDeviceProp p;
        char why[sizeof sentence];
        snprintf(why, sizeof why, "%s", sentence);
        if (cudaGetDeviceProperties(&p, index) == cudaSuccess)
            gpu_fail("%s does not run this build's kernels (compute capability %d.%d): %s", p.name, p.major,
                     p.minor, why);
        return -1;
    }
    return value == 42 ? 0 : gpu_fail("a first kernel gave a wrong answer");
}

static int no_devices(cudaError_t status)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return gpu_fail("no NVIDIA driver on this machine (the CUDA runtime built in is %d.%d)",
                        runtime / 1000, runtime % 1000 / 10);
    if (driver < runtime)
        return gpu_fail("the NVIDIA driver is for CUDA %d.%d, the runtime built in is %d.%d", driver / 1000,
                        driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return gpu_check(status, "no NVIDIA GPU can be used");
}

static int open_device(int index)
{
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) {
        cudaGetLastError();
        return no_devices(status);
    }
    if (index >= count) return gpu_fail("there is no device %d: %d were found", index, count);
    if (gpu_check(cudaSetDevice(index), "cudaSetDevice")) return -1;
    if (gpu_check(cudaStreamCreateWithFlags(&the_stream, cudaStreamNonBlocking), "making a stream"))
        return -1;
    mailbox = nullptr;
    if (gpu_check(cudaMalloc((void **)&mailbox, 256), "cudaMalloc") || probe(index)) {
        cudaFree(mailbox);
        cudaStreamDestroy(the_stream);
        return -1;
    }
    opened = index;
    return 0;
}

static int start(int index)
{
    std::lock_guard<std::mutex> guard(lock);
    if (opened == index) return 0;
    if (opened >= 0) return gpu_fail("device %d is in use, and a process uses one", opened);
    return open_device(index);
}

/* ---- the rest of Device ---------------------------------------------------------------------- */

static const char *error() { return sentence; }

static const char *describe()
{
    static thread_local char line[512];
    cudaDeviceProp p;
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (gpu_check(cudaGetDeviceProperties(&p, opened), "cudaGetDeviceProperties")) return sentence;
    snprintf(line, sizeof line,
             "%s, compute capability %d.%d, %d multiprocessors, %.1f GiB; CUDA runtime %d.%d, driver %d.%d",
             p.name, p.major, p.minor, p.multiProcessorCount, (double)p.totalGlobalMem / (1 << 30),
             runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10);
    return line;
}

static void *alloc(size_t bytes)
{
    Turn turn;
    return turn.ready ? gpu_alloc(bytes) : nullptr;
}

static void release(void *data, size_t bytes)
{
    Turn turn;
    gpu_free(data, bytes);
}

static int copy_bytes(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind, const char *what)
{
    Turn turn;
    if (!turn.ready || gpu_check(cudaMemcpyAsync(dst, src, bytes, kind, the_stream), what)) return -1;
    return gpu_synchronize();
}

static int to_device(void *dst, const void *src, size_t bytes)
{
    return copy_bytes(dst, src, bytes, cudaMemcpyHostToDevice, "copying to the device");
}

static int to_host(void *dst, const void *src, size_t bytes)
{
    return copy_bytes(dst, src, bytes, cudaMemcpyDeviceToHost, "copying from the device");
}

static int synchronize()
{
    Turn turn;
    return turn.ready ? gpu_synchronize() : -1;
}

#define TAKE_TURN(slot, Args)                      \
    static int turn_##slot(Args *args)             \
    {                                              \
        Turn turn;                                 \
        return turn.ready ? gpu_##slot(args) : -1; \
    }
TAKE_TURN(map, MapArgs)
TAKE_TURN(copy, CopyArgs)
TAKE_TURN(fill, FillArgs)
TAKE_TURN(select, SelectArgs)
TAKE_TURN(reduce, ReduceArgs)
TAKE_TURN(gemm, GemmArgs)
TAKE_TURN(softmax, SoftmaxArgs)
TAKE_TURN(softmax_grad, SoftmaxGradArgs)
TAKE_TURN(cross_entropy, CrossEntropyArgs)
TAKE_TURN(cross_entropy_grad, CrossEntropyGradArgs)
TAKE_TURN(gather, GatherArgs)
TAKE_TURN(scatter_add, GatherArgs)
TAKE_TURN(norm, NormArgs)
TAKE_TURN(norm_grad, NormArgs)
TAKE_TURN(random, RandomArgs)

/* Convolution, pooling, resampling, recurrent steps, sorting, scans and searches have no kernels here;
 * attention is made of ops. */
static const Device device = {
    .abi = DEVICE_ABI,
    .size = sizeof(Device),
    .name = DEVICE_NAME,
    .ops_digest = TAPEGRAD_OPS_DIGEST,
    .start = start,
    .error = error,
    .describe = describe,
    .alloc = alloc,
    .free = release,
    .to_device = to_device,
    .to_host = to_host,
    .synchronize = synchronize,
    .map = turn_map,
    .copy = turn_copy,
    .fill = turn_fill,
    .select = turn_select,
    .reduce = turn_reduce,
    .gemm = turn_gemm,
    .softmax = turn_softmax,
    .softmax_grad = turn_softmax_grad,
    .cross_entropy = turn_cross_entropy,
    .cross_entropy_grad = turn_cross_entropy_grad,
    .order = nullptr,
    .scan = nullptr,
    .scan_grad = nullptr,
    .search = nullptr,
    .gather = turn_gather,
    .scatter_add = turn_scatter_add,
    .conv2d = nullptr,
    .conv2d_grad_input = nullptr,
    .conv2d_grad_weight = nullptr,
    .max_pool = nullptr,
    .max_pool_grad = nullptr,
    .avg_pool = nullptr,
    .avg_pool_grad = nullptr,
    .norm = turn_norm,
    .norm_grad = turn_norm_grad,
    .random = turn_random,
    .attention = nullptr,
    .attention_grad = nullptr,
    .rnn_step = nullptr,
    .rnn_step_grad = nullptr,
    .resample = nullptr,
    .taps = nullptr,
};

extern "C" __attribute__((visibility("default"))) const Device *tensor_device_plugin(void);
const Device *tensor_device_plugin(void) { return &device; }
