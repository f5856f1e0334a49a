/* random_torch.cu - the numbers that PyTorch draws on a GPU for a seed.
 *
 * PyTorch starts T threads in blocks of 256: one an element, or as many as the GPU holds at once.  Each has a
 * curand generator of its own, Philox 4x32-10: key: the seed, subsequence: the thread's number, offset: the
 * generator's.  A call gives a thread U numbers: four words, or two doubles of two words each.
 *
 *   uniform, normal, exponential, bernoulli, integers (ATen/native/cuda/DistributionTemplates.h)
 *       element e = (i U + u) T + t is number u of call i of thread t
 *   dropout (ATen/native/cuda/Dropout.cu)
 *       element e = (i T + t) V + v is number v of turn i of thread t, of ceil(V / 4) calls; V elements are
 *       16 bytes, or as many as divide the count; V = 1 goes as the others do
 *
 *   bernoulli of a tensor, multinomial with replacement: bernoulli_each, firsts
 *
 * Numbers of curand lie on (0, 1].  Its normals are r sin t, r cos t, by the fast sine of the chip: exactly
 * PyTorch's on a GPU, within 1e-6 elsewhere; exponentials its fast logarithm. */
#include "random/philox.h"
#include "cuda/elementwise/dropout.cuh"

namespace {

constexpr int BLOCK = 256, ROW_BLOCK = 128, ROWS = 65535;

struct Draw {
    uint64_t seed, first; /* of the counter: the offset in calls */
    int64_t count, threads;
    double at[2], p;
};

__device__ inline PhiloxBlock call(const Draw &d, int64_t thread, int64_t i)
{
    const uint64_t n = d.first + (uint64_t)i, t = (uint64_t)thread;
    const PhiloxBlock counter = { { (uint32_t)n, (uint32_t)(n >> 32), (uint32_t)t, (uint32_t)(t >> 32) } };
    return philox_rounds(counter, (uint32_t)d.seed, (uint32_t)(d.seed >> 32));
}

/* By comparing: what is indexed does not stay in registers. */
__device__ inline uint32_t pick(const PhiloxBlock &b, int i)
{
    const uint32_t low = i & 1 ? b.word[1] : b.word[0], high = i & 1 ? b.word[3] : b.word[2];
    return i & 2 ? high : low;
}

/* A number of the words on (0, 1]. */
__device__ inline float unit(uint32_t word) { return fmaf((float)word, 0x1p-32f, 0x1p-33f); }
__device__ inline double unit(uint32_t low, uint32_t high, double scale)
{
    return (double)(low ^ (uint64_t)high << 21) * scale + scale / 2;
}

/* sin and cos of angle, as curand takes them. */
__device__ inline void turn(float angle, float *sine, float *cosine)
{
#ifdef __CUDA_ARCH__
    __sincosf(angle, sine, cosine);
#else
    *sine = sinf(angle), *cosine = cosf(angle);
#endif
}

/* As PyTorch takes it here. */
__device__ inline float fast_log(float x)
{
#ifdef __CUDA_ARCH__
    return __logf(x);
#else
    return logf(x);
#endif
}
__device__ inline double fast_log(double x) { return log(x); }

__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }

/* Number u of four, or of two in double: uniform, or normal. */
__device__ inline float number(const PhiloxBlock &b, int u, bool normal, float)
{
    if (!normal) return unit(pick(b, u));
    const float scale = 2.3283064e-10f * 6.2831855f, radius = sqrtf(-2 * logf(unit(pick(b, u & 2))));
    float sine, cosine;
    turn(fmaf((float)pick(b, u | 1), scale, scale / 2), &sine, &cosine);
    return radius * (u & 1 ? cosine : sine);
}
__device__ inline double number(const PhiloxBlock &b, int u, bool normal, double)
{
    if (!normal) return unit(pick(b, 2 * u), pick(b, 2 * u + 1), 0x1p-53);
    const double radius = sqrt(-2 * log(unit(b.word[0], b.word[1], 0x1p-53))),
                 half_turns = unit(b.word[2], b.word[3], 0x1p-52);
#ifdef __CUDA_ARCH__
    return radius * (u ? cospi(half_turns) : sinpi(half_turns));
#else
    const double angle = 3.14159265358979323846 * half_turns;
    return radius * (u ? cos(angle) : sin(angle));
#endif
}

/* C: what PyTorch computes in. */
template <class C> __device__ inline C element(const Draw &d, int64_t e, bool normal)
{
    constexpr int EACH = sizeof(C) == 8 ? 2 : 4;
    const int64_t span = d.threads * EACH, within = e % span;
    return number(call(d, within % d.threads, e / span), (int)(within / d.threads), normal, (C)0);
}

template <class T> __device__ inline T rounded(Compute<T> x)
{
    T y;
    put(&y, x);
    return y;
}

template <class T> __global__ void uniform(Draw d, T *out)
{
    using C = Compute<T>;
    const T from = rounded<T>((C)d.at[0]), to = rounded<T>((C)d.at[1]);
    const C low = value_of(from), high = value_of(to), range = value_of(rounded<T>(high - low));
    for (int64_t i = first_item(); i < d.count; i += item_step()) {
        const T x = rounded<T>(fused(element<C>(d, i, false), range, low));
        out[i] = value_of(x) == high ? from : x;
    }
}

template <class T> __global__ void normal(Draw d, T *out)
{
    using C = Compute<T>;
    for (int64_t i = first_item(); i < d.count; i += item_step())
        put(out + i, fused(element<C>(d, i, true), (C)d.at[1], (C)d.at[0]));
}

/* curand's 1 has the logarithm 0, which no exponential has. */
template <class T> __global__ void exponential(Draw d, T *out)
{
    using C = Compute<T>;
    const C half = sizeof(C) == 8 ? (C)0x1p-53 : (C)0x1p-24, scale = -1 / (C)d.at[0];
    for (int64_t i = first_item(); i < d.count; i += item_step()) {
        const C u = element<C>(d, i, false);
        put(out + i, scale * (u >= 1 - half ? -half : fast_log(u)));
    }
}

/* Of a word each, or of two, the first one above. */
__global__ void integers(Draw d, int64_t low, uint64_t range, int each, int64_t *out)
{
    const int64_t span = d.threads * each;
    for (int64_t i = first_item(); i < d.count; i += item_step()) {
        const int64_t within = i % span;
        const int u = (int)(within / d.threads);
        const PhiloxBlock b = call(d, within % d.threads, i / span);
        const uint64_t x = each == 4 ? pick(b, u) : (uint64_t)pick(b, 2 * u) << 32 | pick(b, 2 * u + 1);
        out[i] = (int64_t)((range ? x % range : x) + (uint64_t)low);
    }
}

template <class C> __global__ void bernoulli(Draw d, uint8_t *out)
{
    for (int64_t i = first_item(); i < d.count; i += item_step())
        out[i] = (double)element<C>(d, i, false) < d.p;
}

/* Element e is number e % 4 of the first call of thread e / 4; p: f32 beside all but doubles. */
template <class T> __global__ void bernoulli_each(Draw d, const T *p, T *out)
{
    for (int64_t i = first_item(); i < d.count; i += item_step())
        put(out + i, (Compute<T>)(unit(pick(call(d, i / 4, 0), (int)(i % 4))) <= value_of(p[i])));
}

/* Row r of n numbers: the first of each call of a row of blocks of 128; of rows there are at most 65535. */
__global__ void firsts(Draw d, int64_t n, float *out)
{
    for (int64_t i = first_item(); i < d.count; i += item_step()) {
        const int64_t row = i / n, thread = row % ROWS * ((n + ROW_BLOCK - 1) / ROW_BLOCK * ROW_BLOCK);
        out[i] = unit(pick(call(d, thread + i % n, row / ROWS), 0));
    }
}

/* width: elements that a thread of PyTorch's has side by side; C: what it compares in. */
template <class C> struct TorchKeep {
    static constexpr bool DRAWS = true;
    Draw d;
    int width;
    template <int N> __device__ inline void some(int64_t from, bool *keep) const
    {
        for (int j = 0; j < N; j++) {
            const int64_t i = from + j, turn = i / width;
            const int within = (int)(i % width);
            const int64_t calls = turn / d.threads * ((width + 3) / 4) + within / 4;
            const float u = width == 1 ? element<float>(d, i, false)
                                       : unit(pick(call(d, turn % d.threads, calls), within % 4));
            keep[j] = (C)u < (C)d.p;
        }
    }
};

template <class C> __global__ void dropout(TorchKeep<C> k, int64_t count, uint8_t *out)
{
    for (int64_t i = first_item(); i < count; i += item_step()) {
        bool keep;
        k.template some<1>(i, &keep);
        out[i] = keep;
    }
}

template <class C> int run_dropout(const RandomArgs *r, const TorchKeep<C> &keep)
{
    if (r->x) return run_masked(r, keep);
    LAUNCH(dropout<C>, gpu_blocks(r->count), THREADS, keep, r->count, (uint8_t *)r->out);
    return gpu_launched("random");
}

/* The threads that PyTorch starts; 0: the device does not say. */
int64_t threads_of_torch(int64_t count)
{
    int device = 0, processors = 0, each = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&each, cudaDevAttrMaxThreadsPerMultiProcessor, device) != cudaSuccess)
        return 0;
    const int64_t most = (int64_t)processors * (each / BLOCK), blocks = (count + BLOCK - 1) / BLOCK;
    return (blocks < most ? blocks : most) * BLOCK;
}

int width_of_dropout(const RandomArgs *r)
{
    int width = 16 / (int)gpu_dtype_size(r->dtype);
    while (width > 1 && r->count % width) width /= 2;
    return width;
}

} // namespace

/* Those whose threads do not depend on the GPU. */
static int draw_rows(RandomArgs *r)
{
    const Draw d = { r->seed, r->offset / 4, r->count, 0, { 0, 0 }, 0 };
    const unsigned blocks = gpu_blocks(r->count);
    if (r->kind == RANDOM_TORCH_FIRST) {
        r->advance = (uint64_t)((r->count / r->low - 1) / ROWS + 1) * 4;
        LAUNCH(firsts, blocks, THREADS, d, r->low, (float *)r->out);
        return gpu_launched("random");
    }
    r->advance = 12; /* of the 10 that PyTorch reserves */
    return with_float(r->dtype, [&]<class T>() {
        auto kernel = &bernoulli_each<T>;
        LAUNCH(kernel, blocks, THREADS, d, (const T *)r->x, (T *)r->out);
        return gpu_launched("random");
    });
}

int gpu_random_torch(RandomArgs *r)
{
    if (r->kind == RANDOM_TORCH_EACH || r->kind == RANDOM_TORCH_FIRST) return draw_rows(r);
    const bool wide = r->dtype == TENSOR_F64, mask = r->kind == RANDOM_TORCH_DROPOUT;
    const bool whole = r->kind == RANDOM_TORCH_INTEGERS;
    const int64_t each = (whole ? r->wide : wide && !mask) ? 2 : 4, threads = threads_of_torch(r->count);
    if (threads == 0) return KERNEL_DECLINED;
    const Draw d = {
        r->seed, r->offset / 4, r->count, threads, { r->at[0], r->at[1] }, mask ? 1 - r->p : r->p
    };
    const unsigned blocks = gpu_blocks(r->count);
    uint8_t *const bits = (uint8_t *)r->out;
    r->advance = (uint64_t)((r->count - 1) / (threads * each) + 1) * 4;
    if (mask && wide) return run_dropout(r, TorchKeep<double>{ d, width_of_dropout(r) });
    if (mask) return run_dropout(r, TorchKeep<float>{ d, width_of_dropout(r) });
    if (whole) LAUNCH(integers, blocks, THREADS, d, r->low, r->range, (int)each, (int64_t *)r->out);
    else if (r->kind == RANDOM_TORCH_BERNOULLI && wide) LAUNCH(bernoulli<double>, blocks, THREADS, d, bits);
    else if (r->kind == RANDOM_TORCH_BERNOULLI) LAUNCH(bernoulli<float>, blocks, THREADS, d, bits);
    else
        return with_float(r->dtype, [&]<class T>() {
            auto kernel = r->kind == RANDOM_TORCH_UNIFORM  ? &uniform<T>
                          : r->kind == RANDOM_TORCH_NORMAL ? &normal<T>
                                                           : &exponential<T>;
            LAUNCH(kernel, blocks, THREADS, d, (T *)r->out);
            return gpu_launched("random");
        });
    return gpu_launched("random");
}
