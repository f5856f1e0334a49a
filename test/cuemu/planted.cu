/* planted.cu - what the emulator can, and what it finds: kernels that use all of it and are right, and
 * planted bugs.  planted: the right ones; planted BUG: that one, which ends with 0 where nothing notices. */
#include <cuda_runtime.h>
#include <cstdio>
#include <thread>
#include <vector>

enum { N = 256 };

static void check(cudaError_t status, const char *what)
{
    if (status == cudaSuccess) return;
    fprintf(stderr, "%s: %s (%s)\n", what, cudaGetErrorString(status), cudaGetErrorName(status));
    exit(1);
}
#define CHECK(call) check(call, #call)

struct Buffer { /* of N floats, there and here */
    float *there, here[N];
    Buffer()
    {
        CHECK(cudaMalloc((void **)&there, sizeof here));
        for (int i = 0; i < N; i++) here[i] = (float)(i % 7);
    }
    void up() { CHECK(cudaMemcpyAsync(there, here, sizeof here, cudaMemcpyHostToDevice, 0)); }
    void down()
    {
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(here, there, sizeof here, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
    }
    ~Buffer() { cudaFree(there); }
};

static void want(const char *what, double got, double right)
{
    if (got >= right - 1e-4 && got <= right + 1e-4) return;
    fprintf(stderr, "%s: %g, not %g\n", what, got, right);
    exit(1);
}

/* ---- right ones ------------------------------------------------------------------------------ */

static __global__ void add(float *y, const float *a, const float *b, int n)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x))
        y[i] = a[i] + b[i];
}

static __global__ void reversed(float *y, const float *x, int n)
{
    CU_DYNAMIC_SHARED(float, all);
    const int i = (int)threadIdx.x;
    all[i] = x[i];
    __syncthreads();
    y[i] = all[n - 1 - i];
}

/* The last block to come adds what all have left; the ticket is ready for the next launch. */
static __global__ void sum_by_last_block(float *part, unsigned *ticket, float *y, const float *x)
{
    __shared__ bool last;
    float sum = x[blockIdx.x * 32 + threadIdx.x];
    for (int half = 16; half; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x) return;
    __threadfence();
    *y = 0;
    for (unsigned i = 0; i < gridDim.x; i++) *y += part[i];
}

static __global__ void warps(float *y)
{
    const unsigned all = 0xffffffffu, lane = threadIdx.x;
    int *n = (int *)(y + 16);
    if (lane == 0) n[0] = 0, n[1] = 1000, n[2] = 0, n[3] = 5;
    __syncwarp();
    atomicAdd(n, (int)lane), atomicMin(n + 1, (int)lane + 3), atomicMax(n + 2, (int)lane);
    atomicCAS(n + 3, 5, 9);
    const float up = __shfl_up_sync(all, (float)lane, 2), from = __shfl_sync(all, (float)lane, 5, 8),
                down = __shfl_down_sync(all, (float)lane, 4, 16);
    const unsigned odd = __ballot_sync(all, lane & 1), sum = __reduce_add_sync(all, lane),
                   most = __reduce_max_sync(all, lane), least = __reduce_min_sync(all, lane + 2);
    const int any = __any_sync(all, lane == 9), not_all = __all_sync(all, lane == 9);
    const int count = __syncthreads_count(lane < 7), both = __syncthreads_and(lane < 32),
              either = __syncthreads_or(lane > 40);
    if (lane != 17) return;
    y[0] = up, y[1] = from, y[2] = down, y[3] = (float)(odd == 0xaaaaaaaau), y[4] = (float)sum;
    y[5] = (float)most, y[6] = (float)least, y[7] = (float)any, y[8] = (float)not_all, y[9] = (float)count;
    y[10] = (float)both, y[11] = (float)either;
    for (int i = 0; i < 4; i++) y[12 + i] = (float)n[i];
}

static void all_that_is_right()
{
    Buffer x, y, part;
    double total = 0;
    unsigned *ticket;
    for (float v : x.here) total += v;
    x.up();
    CU_LAUNCH_SHARED(reversed, 1, N, N * sizeof(float), 0, y.there, x.there, N);
    y.down();
    for (int i = 0; i < N; i++) want("reversed", y.here[i], x.here[N - 1 - i]);
    CHECK(cudaMalloc((void **)&ticket, sizeof *ticket));
    CHECK(cudaMemsetAsync(ticket, 0, sizeof *ticket, 0));
    for (int times = 0; times < 2; times++) {
        CU_LAUNCH(sum_by_last_block, N / 32, 32, 0, part.there, ticket, y.there, x.there);
        y.down();
        want("sum by the last block", y.here[0], total);
    }
    CHECK(cudaFree(ticket));
    CU_LAUNCH(warps, 1, 32, 0, y.there);
    y.down();
    const double right[] = { 15, 21, 21, 1, 496, 31, 2, 1, 0, 7, 1, 0, 496, 3, 31, 9 };
    for (int i = 0; i < 16; i++) want("warps", y.here[i], right[i]);
}

/* A step that is captured, over a stream that joins, and played with other values at the same places. */
static void a_graph()
{
    Buffer x, y;
    float *pinned;
    cudaStream_t s, t;
    cudaEvent_t fork, join, from, to;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    CHECK(cudaMallocHost((void **)&pinned, sizeof x.here));
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    for (cudaEvent_t *e : { &fork, &join, &from, &to }) CHECK(cudaEventCreateWithFlags(e, 0));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaStreamIsCapturing(s, &status));
    want("capturing", status, cudaStreamCaptureStatusActive);
    CHECK(cudaMemcpyAsync(x.there, pinned, sizeof x.here, cudaMemcpyHostToDevice, s));
    CHECK(cudaEventRecord(fork, s));
    CHECK(cudaStreamWaitEvent(t, fork, 0));
    CU_LAUNCH(add, 2, 64, t, y.there, x.there, x.there, N);
    CHECK(cudaEventRecord(join, t));
    CHECK(cudaStreamWaitEvent(s, join, 0));
    CU_LAUNCH(add, 2, 64, s, y.there, y.there, x.there, N);
    std::thread([] { /* another thread's calls are its own affair */
                     void *p;
                     CHECK(cudaMalloc(&p, 16));
    })
        .join();
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    for (int times = 1; times <= 3; times++) {
        for (int i = 0; i < N; i++) pinned[i] = (float)(i * times);
        CHECK(cudaEventRecord(from, s));
        CHECK(cudaGraphLaunch(exec, s));
        CHECK(cudaEventRecord(to, s));
        CHECK(cudaStreamSynchronize(s));
        float ms = -1;
        CHECK(cudaEventElapsedTime(&ms, from, to));
        if (ms < 0) exit(1);
        y.down();
        for (int i = 0; i < N; i++) want("a graph", y.here[i], 3 * i * times);
    }
    CHECK(cudaGraphExecDestroy(exec));
    for (cudaEvent_t e : { fork, join, from, to }) CHECK(cudaEventDestroy(e));
    CHECK(cudaStreamDestroy(s)), CHECK(cudaStreamDestroy(t));
    CHECK(cudaFreeHost(pinned));
}

/* ---- planted bugs ---------------------------------------------------------------------------- */

static __global__ void beyond_global(float *y) { y[threadIdx.x + N - 31] = 1; }
static __global__ void beyond_shared(float *y, int by)
{
    __shared__ float s[64];
    s[threadIdx.x + (unsigned)by] = 1;
    __syncthreads();
    y[threadIdx.x] = s[0];
}
static __global__ void beyond_dynamic(float *y)
{
    CU_DYNAMIC_SHARED(float, s);
    s[threadIdx.x + 1] = 1;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x + 1];
}
static __global__ void unset_shared(float *y)
{
    __shared__ float s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x] > 0 ? 1.f : s[threadIdx.x];
}
static __global__ void copy(float *y, const float *x) { y[threadIdx.x] = x[threadIdx.x]; }
static __global__ void missing_barrier(float *y, const float *x)
{
    __shared__ float s[N];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[N - 1 - threadIdx.x];
}
static __global__ void warp_without_sync(float *y)
{
    __shared__ volatile float s[32];
    s[threadIdx.x] = (float)threadIdx.x;
    y[threadIdx.x] = s[31 - threadIdx.x];
}
static __global__ void race_of_threads(float *y)
{
    const float before = y[0];
    y[0] = before + 1;
}
static __global__ void race_of_blocks(float *y)
{
    if (threadIdx.x == 0) y[0] += 1;
}
static __global__ void no_fence(float *y, unsigned *ticket)
{
    if (threadIdx.x) return;
    y[blockIdx.x] = 1;
    if (atomicAdd(ticket, 1u) == gridDim.x - 1) y[N - 1] = y[0] + y[1];
}
static __global__ void divergent_barrier(float *y)
{
    if (threadIdx.x < 40) __syncthreads();
    else {
        y[threadIdx.x] = 1;
        __syncthreads();
    }
}
static __global__ void early_exit(float *y)
{
    if (threadIdx.x >= 40) return;
    y[threadIdx.x] = 1;
    __syncthreads();
}
static __global__ void shuffle_from_absent(float *y)
{
    if (threadIdx.x < 20) y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.f, 16);
}
static __global__ void not_in_mask(float *y) { y[threadIdx.x] = __shfl_down_sync(0x0000ffffu, 1.f, 1); }
static __global__ void half_a_warp_waits(float *y)
{
    if (threadIdx.x < 16) __syncwarp();
    else __syncthreads();
    y[threadIdx.x] = 1;
}

static int plant(const char *bug)
{
    Buffer x, y;
    cudaStream_t s;
    cudaGraph_t graph;
    auto is = [bug](const char *name) { return strcmp(bug, name) == 0; };
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    x.up(), y.up();
    if (is("beyond_global")) CU_LAUNCH(beyond_global, 1, 32, 0, y.there);
    else if (is("beyond_shared")) CU_LAUNCH(beyond_shared, 1, 64, 0, y.there, 1);
    else if (is("beyond_dynamic")) CU_LAUNCH_SHARED(beyond_dynamic, 1, 64, 64 * sizeof(float), 0, y.there);
    else if (is("unset_shared")) CU_LAUNCH(unset_shared, 1, 64, 0, y.there);
    else if (is("unset_global")) {
        float *fresh;
        CHECK(cudaMalloc((void **)&fresh, sizeof x.here));
        CU_LAUNCH(copy, 1, N, 0, y.there, fresh);
    } else if (is("missing_barrier")) {
        CU_LAUNCH(missing_barrier, 1, N, 0, y.there, x.there);
        y.down();
        for (int i = 0; i < N; i++) want(bug, y.here[i], x.here[N - 1 - i]);
    } else if (is("warp_without_sync")) {
        CU_LAUNCH(warp_without_sync, 1, 32, 0, y.there);
        y.down();
        for (int i = 0; i < 32; i++) want(bug, y.here[i], 31 - i);
    } else if (is("race_of_threads")) CU_LAUNCH(race_of_threads, 1, 64, 0, y.there);
    else if (is("race_of_blocks")) CU_LAUNCH(race_of_blocks, 4, 32, 0, y.there);
    else if (is("no_fence")) {
        unsigned *ticket;
        CHECK(cudaMalloc((void **)&ticket, sizeof *ticket));
        CHECK(cudaMemsetAsync(ticket, 0, sizeof *ticket, 0));
        CU_LAUNCH(no_fence, 2, 32, 0, y.there, ticket);
    } else if (is("divergent_barrier")) CU_LAUNCH(divergent_barrier, 1, 64, 0, y.there);
    else if (is("early_exit")) CU_LAUNCH(early_exit, 1, 64, 0, y.there);
    else if (is("shuffle_from_absent")) CU_LAUNCH(shuffle_from_absent, 1, 32, 0, y.there);
    else if (is("not_in_mask")) CU_LAUNCH(not_in_mask, 1, 32, 0, y.there);
    else if (is("half_a_warp_waits")) CU_LAUNCH(half_a_warp_waits, 1, 32, 0, y.there);
    else if (is("host_pointer")) CU_LAUNCH(copy, 1, N, 0, y.there, x.here);
    else if (is("host_reads")) (void)*(volatile float *)x.there;
    else if (is("freed")) {
        float *gone;
        CHECK(cudaMalloc((void **)&gone, sizeof x.here));
        CHECK(cudaMemsetAsync(gone, 0, sizeof x.here, 0));
        CHECK(cudaFree(gone));
        CU_LAUNCH(copy, 1, N, 0, y.there, gone);
    } else if (is("unawaited")) {
        float *pinned;
        CHECK(cudaMallocHost((void **)&pinned, sizeof x.here));
        memset(pinned, 0, sizeof x.here);
        CU_LAUNCH(copy, 1, N, s, y.there, x.there);
        CHECK(cudaMemcpyAsync(pinned, y.there, sizeof x.here, cudaMemcpyDeviceToHost, s));
        want(bug, pinned[1], x.here[1]);
    } else if (is("no_grid")) CU_LAUNCH(copy, 0, 64, 0, y.there, x.there);
    else if (is("large_block")) CU_LAUNCH(copy, 1, 2048, 0, y.there, x.there);
    else if (is("much_shared")) CU_LAUNCH_SHARED(beyond_dynamic, 1, 64, 60000, 0, y.there);
    else if (is("wrong_direction")) CHECK(cudaMemcpyAsync(y.there, x.there, 16, cudaMemcpyHostToDevice, 0));
    else {
        CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
        CU_LAUNCH(copy, 1, N, s, y.there, x.there);
        if (is("wait_in_capture")) cudaStreamSynchronize(s);
        else if (is("memory_in_capture")) cudaMalloc((void **)&x.there, 64);
        else if (is("unjoined_capture")) {
            cudaEvent_t fork;
            cudaStream_t t;
            CHECK(cudaEventCreateWithFlags(&fork, 0));
            CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
            CHECK(cudaEventRecord(fork, s));
            CHECK(cudaStreamWaitEvent(t, fork, 0));
            CU_LAUNCH(copy, 1, N, t, y.there, x.there);
        } else return fprintf(stderr, "no such bug: %s\n", bug), 3;
        CHECK(cudaStreamEndCapture(s, &graph));
    }
    y.down();
    for (float v : y.here) want("a NaN", v == v, 1);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) return plant(argv[1]);
    all_that_is_right();
    a_graph();
    return 0;
}
