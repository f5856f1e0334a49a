/* random.cu - the counter-based generator: the words are the CPU's to the bit (src/random/philox.h,
 * src/cpu/elementwise/random.c). */
#include "random/philox.h"
#include "cuda/elementwise/dropout.cuh"

static __device__ inline void put_number(float *p, double x) { *p = (float)x; }
static __device__ inline void put_number(double *p, double x) { *p = x; }
static __device__ inline void put_number(__half *p, double x) { *p = __double2half(x); }
static __device__ inline void put_number(__nv_bfloat16 *p, double x) { *p = __double2bfloat16(x); }

static __device__ inline uint64_t seed_of(const RandomArgs &r) { return r.state ? r.state[0] : r.seed; }
static __device__ inline uint64_t offset_of(const RandomArgs &r)
{
    return r.state ? r.state[1] + r.offset : r.offset;
}

/* A word as a number on [0, 1): as many of its upper bits as the dtype holds exactly. */
template <class T> __device__ inline double unit(uint32_t word)
{
    const int bits = sizeof(T) == 8 ? 32 : sizeof(T) == 4 ? 24 : std::is_same_v<T, __half> ? 11 : 8;
    return (double)(word >> (32 - bits)) / (double)((uint64_t)1 << bits);
}

template <class T> __global__ void uniform_kernel(RandomArgs r)
{
    const uint64_t seed = seed_of(r), offset = offset_of(r);
    for (int64_t i = first_item(); i < r.count; i += item_step())
        put_number((T *)r.out + i, unit<T>(philox_u32(seed, offset, (uint64_t)i)));
}

/* Elements 2 k and 2 k + 1 share two words. */
template <class T> __global__ void normal_kernel(RandomArgs r)
{
    const uint64_t seed = seed_of(r), offset = offset_of(r);
    for (int64_t k = first_item(); 2 * k < r.count; k += item_step()) {
        const int64_t at = 2 * k;
        const PhiloxBlock b = philox_block(seed, offset, (uint64_t)at / 4);
        const uint32_t v = at % 4 ? b.word[2] : b.word[0], w = at % 4 ? b.word[3] : b.word[1];
        const double radius = sqrt(-2 * log((v + 1.0) / 4294967296.0)),
                     t = 2 * 3.14159265358979323846 * (w / 4294967296.0);
        put_number((T *)r.out + at, radius * cos(t));
        if (at + 1 < r.count) put_number((T *)r.out + at + 1, radius * sin(t));
    }
}

static __global__ void mask_kernel(RandomArgs r)
{
    const uint64_t threshold = philox_threshold(1 - r.p), seed = seed_of(r), offset = offset_of(r);
    for (int64_t i = first_item(); i < r.count; i += item_step())
        ((uint8_t *)r.out)[i] = philox_keep(philox_u32(seed, offset, (uint64_t)i), threshold);
}

/* Four neighbours share a block of words. */
struct PhiloxKeep {
    static constexpr bool DRAWS = true;
    RandomArgs r;
    template <int N> __device__ inline void some(int64_t i, bool *keep) const
    {
        const uint64_t threshold = philox_threshold(1 - r.p), seed = seed_of(r), offset = offset_of(r);
        for (int j = 0; j < N; j += 4) {
            const PhiloxBlock b = philox_block(seed, offset, (uint64_t)(i + j) / 4);
            for (int w = 0; w < 4 && w < N; w++) {
                const int at = N < 4 ? (int)(i % 4) + w : w;
                const uint32_t low = at & 1 ? b.word[1] : b.word[0], high = at & 1 ? b.word[3] : b.word[2];
                keep[j + w] = philox_keep(at & 2 ? high : low, threshold);
            }
        }
    }
};

struct GivenMask {
    static constexpr bool DRAWS = false;
    const uint8_t *mask;
    template <int N> __device__ inline void some(int64_t i, bool *keep) const
    {
        const Pack<uint8_t, N> bits = load_pack<Pack<uint8_t, N>>(mask + i);
        for (int j = 0; j < N; j++) keep[j] = bits.v[j];
    }
};

int gpu_random(RandomArgs *r)
{
    if (r->count == 0) return 0;
    if (r->kind == RANDOM_GIVEN_MASK) return run_masked(r, GivenMask{ (const uint8_t *)r->out });
    if (r->kind > RANDOM_NORMAL) return gpu_random_torch(r);
    const unsigned blocks = gpu_blocks(r->count);
    if (r->kind == RANDOM_DROPOUT_MASK && r->x) return run_masked(r, PhiloxKeep{ *r });
    if (r->kind == RANDOM_DROPOUT_MASK) {
        LAUNCH(mask_kernel, blocks, THREADS, *r);
        return gpu_launched("random");
    }
    return with_float(r->dtype, [&]<class T>() {
        auto kernel = r->kind == RANDOM_UNIFORM ? &uniform_kernel<T> : &normal_kernel<T>;
        LAUNCH(kernel, blocks, THREADS, *r);
        return gpu_launched("random");
    });
}
