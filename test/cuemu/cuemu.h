/* cuemu.h - runs CUDA C++ kernels on the CPU, for tests only.
 *
 * One .cu file, two compilers: nvcc builds it for the GPU; clang++ (-x c++ -Itest/cuemu/shim) builds it
 * against this header, where every CUDA thread is a fiber and a stream is a queue that is run as late as the
 * API allows.  See README.md. */
#pragma once
#include "counts.h"
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

#define CUEMU 1
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
/* Static shared memory: one named section, so the runtime can poison it before every block.
 * Under ASan plain statics are better (red zones), so the section is left out there.          */
#if defined(__SANITIZE_ADDRESS__)
#define CUEMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUEMU_ASAN 1
#endif
#endif
#ifdef CUEMU_ASAN
#define __shared__ static
#else
#define __shared__ static __attribute__((section("cuemu_shared")))
#endif

/* ---- vector types ---------------------------------------------------------------------------- */
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

/* ---- execution state (one launch runs at a time) --------------------------------------------- */
namespace cuemu {
struct Exec {
    uint3 tidx;
    uint3 bidx;
    dim3 bdim, gdim;
    unsigned lane;
    unsigned char *dynamic; /* shared memory of the launch */
};
extern __attribute__((visibility("default"))) Exec X; /* a program's own kernels read it, too */
/* What all threads of a block, or the lanes of a mask, make of their values together.  orders: what they
 * wrote before, the others see after. */
int bar(int predicate, char kind, const char *file, int line); /* kind: 'a'nd, 'o'r, 'c'ount */
typedef uint64_t (*Combine)(const uint64_t *value, uint32_t lanes, int which);
uint64_t warp(unsigned mask, uint64_t v, Combine f, int which, bool orders, const char *file, int line);
uint64_t value_of_lane(const uint64_t *value, uint32_t lanes, int lane); /* a Combine */
void fence();
void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct Launch {
    const char *name;
    dim3 g, b;
    size_t shared; /* bytes of dynamic shared memory */
    const void *kernel;
    std::function<void()> body;
};
__attribute__((visibility("default"))) int launch_(Launch l, void *stream, void *const *ptrs, int nptr);
bool is_device_ptr(const void *p);
void set_order(const char *spec); /* "fwd", "rev", "rand:SEED" */
bool run_grid(const Launch &l);   /* false: a finding was reported */
inline void addptr(void **v, int &n, const void *p)
{
    if (n < 32) v[n++] = const_cast<void *>(p);
}

template <class T> inline void collect(void **, int &, const T &) {}

template <class T> inline void collect(void **v, int &n, T *const &p) { addptr(v, n, (const void *)p); }

template <class... P, class... A>
inline int launch(const char *name, void (*k)(P...), dim3 g, dim3 b, size_t shared, void *stream, A &&...a)
{
    static_assert(sizeof...(P) == sizeof...(A), "wrong number of kernel arguments");
    std::tuple<std::decay_t<P>...> t(static_cast<std::decay_t<P>>(a)...); /* evaluated at launch time */
    void *ptrs[32];
    int np = 0;
    std::apply([&](const auto &...x) { (collect(ptrs, np, x), ...); }, t);
    const Launch l{ name, g, b, shared, (const void *)k, [k, t] { std::apply(k, t); } };
    return launch_(l, stream, ptrs, np);
}
} // namespace cuemu
#define threadIdx (cuemu::X.tidx)
#define blockIdx (cuemu::X.bidx)
#define blockDim (cuemu::X.bdim)
#define gridDim (cuemu::X.gdim)
/* what a portable .cu file uses instead of <<<>>> and extern __shared__ */
#define CU_LAUNCH(kernel, grid, block, stream, ...) \
    (void)cuemu::launch(#kernel, kernel, grid, block, 0, stream, __VA_ARGS__)
#define CU_LAUNCH_SHARED(kernel, grid, block, bytes, stream, ...) \
    (void)cuemu::launch(#kernel, kernel, grid, block, bytes, stream, __VA_ARGS__)
#define CU_DYNAMIC_SHARED(T, name) T *name = reinterpret_cast<T *>(cuemu::X.dynamic)

#include "threads.h"

/* ---- bfloat16 and half: conversions, rounding to nearest even -------------------------------- */
struct __nv_bfloat16 {
    uint16_t x;
};
struct __half {
    uint16_t x;
};

static inline __nv_bfloat16 __float2bfloat16_rn(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    __nv_bfloat16 r;
    if ((u & 0x7fffffffu) > 0x7f800000u) r.x = 0x7fff;
    else r.x = (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
    return r;
}

static inline float __bfloat162float(__nv_bfloat16 b)
{
    uint32_t u = (uint32_t)b.x << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline __half __float2half_rn(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    uint32_t s = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    __half r;
    if (a > 0x7f800000u) r.x = (uint16_t)(s | 0x7fff);
    else if (a >= 0x477ff000u) r.x = (uint16_t)(s | 0x7c00); /* rounds to infinity */
    else if (a < 0x38800000u) { /* subnormal half */ float m;
        memcpy(&m, &a, 4);
        r.x = (uint16_t)(s | (uint32_t)nearbyintf(m * 16777216.0f));
    } else r.x = (uint16_t)(s | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1)) >> 13));
    return r;
}

static inline float __half2float(__half h)
{
    uint32_t s = (uint32_t)(h.x & 0x8000) << 16, e = (h.x >> 10) & 31, m = h.x & 1023u, u;
    float f;
    if (e == 31) u = s | 0x7f800000u | (m << 13);
    else if (e) u = s | ((e + 112) << 23) | (m << 13);
    else {
        f = (float)m / 16777216.0f;
        memcpy(&u, &f, 4);
        u |= s;
    }
    memcpy(&f, &u, 4);
    return f;
}
/* From double by way of a float rounded to odd, so that the second rounding sees no false tie. */
static inline float cuemu_odd_float(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    uint64_t dropped = u & 0x1fffffffu;
    u = (u - dropped) | (dropped ? 0x20000000u : 0u);
    memcpy(&d, &u, 8);
    return (float)d;
}

static inline __half __double2half(double d) { return __float2half_rn(cuemu_odd_float(d)); }

static inline __nv_bfloat16 __double2bfloat16(double d) { return __float2bfloat16_rn(cuemu_odd_float(d)); }

/* ---- the part of the runtime API that the library uses --------------------------------------- */
typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorCapturedEvent = 907
} cudaError_t;
typedef struct cuemuStream *cudaStream_t;
typedef struct cuemuEvent *cudaEvent_t;
typedef struct cuemuGraph *cudaGraph_t, *cudaGraphExec_t;
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
};
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
struct cudaPointerAttributes {
    cudaMemoryType type;
};
extern "C" {
cudaError_t cudaGetDeviceCount(int *n);
#define CUDART_VERSION 13000
cudaError_t cudaDriverGetVersion(int *v);
cudaError_t cudaRuntimeGetVersion(int *v);
cudaError_t cudaSetDevice(int d);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int d);
cudaError_t cudaGetDevice(int *d);
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int d);
cudaError_t cudaMalloc(void **p, size_t n);
cudaError_t cudaFree(void *p);
cudaError_t cudaMemcpyAsync(void *d, const void *s, size_t n, cudaMemcpyKind k, cudaStream_t st);
cudaError_t cudaMemsetAsync(void *d, int v, size_t n, cudaStream_t st);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
__attribute__((visibility("default"))) cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaMallocHost(void **p, size_t n); /* pinned: copies from and to it are not waited for */
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *of, const void *p);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode);
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cuemu_allow_shared(const void *kernel, int bytes);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
__attribute__((visibility("default"))) const char *cudaGetErrorString(cudaError_t e);
const char *cudaGetErrorName(cudaError_t e);
void cuemu_enqueue(cudaStream_t s, std::function<void()> *f); /* for the cuBLAS stand-in */
}
void *cuemu_dlopen(const char *file); /* the library's stand-in */
extern "C" void cuemu_chosen();       /* a library chose an algorithm */
extern "C" void cuemu_executed();     /* a plan of cuDNN's was run; */
extern "C" void cuemu_planned(int n); /* n more of them are there */
extern "C" bool cuemu_forbidden();    /* what may load code is not allowed now: a capture is lost by it */
extern "C" void cuemu_lose(const char *why); /* the device, as work of a library's runs */
template <class F> inline cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute, int bytes)
{
    return cuemu_allow_shared((const void *)kernel, bytes);
}
