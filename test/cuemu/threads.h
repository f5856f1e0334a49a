/* threads.h - what the threads of a kernel do together: barriers, shuffles, votes, fences, atomics. */
#pragma once

#define CUEMU_AT const char *file = __builtin_FILE(), int line = __builtin_LINE()
static inline void __syncthreads(CUEMU_AT) { cuemu::bar(0, 'c', file, line); }
static inline int __syncthreads_and(int p, CUEMU_AT) { return cuemu::bar(p, 'a', file, line); }
static inline int __syncthreads_or(int p, CUEMU_AT) { return cuemu::bar(p, 'o', file, line); }
static inline int __syncthreads_count(int p, CUEMU_AT) { return cuemu::bar(p, 'c', file, line); }
static inline void __threadfence() { cuemu::fence(); }
static inline void __threadfence_block() { cuemu::fence(); }

/* ---- lanes of a warp ------------------------------------------------------------------------- */

namespace cuemu {
inline uint64_t no_value(const uint64_t *, uint32_t, int) { return 0; }

inline uint64_t ballot(const uint64_t *value, uint32_t lanes, int)
{
    uint64_t bits = 0;
    for (uint32_t l = lanes; l; l &= l - 1)
        if (value[__builtin_ctz(l)]) bits |= 1ull << __builtin_ctz(l);
    return bits;
}

template <class F> uint64_t reduce(const uint64_t *value, uint32_t lanes, int)
{
    unsigned sum = (unsigned)value[__builtin_ctz(lanes)];
    for (uint32_t l = lanes & (lanes - 1); l; l &= l - 1) sum = F()(sum, (unsigned)value[__builtin_ctz(l)]);
    return sum;
}
struct Plus {
    unsigned operator()(unsigned a, unsigned b) const { return a + b; }
};
struct Most {
    unsigned operator()(unsigned a, unsigned b) const { return a < b ? b : a; }
};
struct Least {
    unsigned operator()(unsigned a, unsigned b) const { return b < a ? b : a; }
};

template <class T> inline T shuffle(unsigned mask, T v, int from, const char *file, int line)
{
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "shuffle of this type");
    uint64_t u = 0;
    memcpy(&u, &v, sizeof(T));
    u = warp(mask, u, value_of_lane, from, false, file, line);
    memcpy(&v, &u, sizeof(T));
    return v;
}

/* The lane itself where the other would be outside of its part of `width` lanes. */
inline int within(int from, int width)
{
    const int lane = (int)X.lane, first = lane & ~(width - 1);
    return from >= first && from < first + width ? from : lane;
}
} // namespace cuemu

static inline void __syncwarp(unsigned mask = 0xffffffffu, CUEMU_AT)
{
    cuemu::warp(mask, 0, cuemu::no_value, 0, true, file, line);
}

template <class T> inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32, CUEMU_AT)
{
    const int first = (int)cuemu::X.lane & ~(width - 1);
    return cuemu::shuffle(mask, v, first + (lane & (width - 1)), file, line);
}

template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, CUEMU_AT)
{
    return cuemu::shuffle(mask, v, cuemu::within((int)cuemu::X.lane ^ bits, width), file, line);
}

template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned distance, int width = 32, CUEMU_AT)
{
    return cuemu::shuffle(mask, v, cuemu::within((int)(cuemu::X.lane + distance), width), file, line);
}

template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned distance, int width = 32, CUEMU_AT)
{
    return cuemu::shuffle(mask, v, cuemu::within((int)cuemu::X.lane - (int)distance, width), file, line);
}

static inline unsigned __ballot_sync(unsigned mask, int p, CUEMU_AT)
{
    return (unsigned)cuemu::warp(mask, p != 0, cuemu::ballot, 0, false, file, line);
}
static inline int __any_sync(unsigned mask, int p, CUEMU_AT)
{
    return cuemu::warp(mask, p != 0, cuemu::ballot, 0, false, file, line) != 0;
}
static inline int __all_sync(unsigned mask, int p, CUEMU_AT)
{
    return cuemu::warp(mask, p == 0, cuemu::ballot, 0, false, file, line) == 0;
}
#define CUEMU_REDUCE(name, F)                                                                 \
    static inline unsigned name(unsigned mask, unsigned v, CUEMU_AT)                          \
    {                                                                                         \
        return (unsigned)cuemu::warp(mask, v, cuemu::reduce<cuemu::F>, 0, false, file, line); \
    }
CUEMU_REDUCE(__reduce_add_sync, Plus)
CUEMU_REDUCE(__reduce_max_sync, Most)
CUEMU_REDUCE(__reduce_min_sync, Least)

/* ---- atomics: real ones, so that TSan sees them as such -------------------------------------- */

namespace cuemu {
template <class T, class F> inline T change(T *p, F f)
{
    T old, now;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do now = f(old);
    while (!__atomic_compare_exchange(p, &old, &now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
template <class T> using Same = std::type_identity_t<T>;
} // namespace cuemu
#define CUEMU_ATOMIC(name, expression)                                   \
    template <class T> inline T name(T *p, cuemu::Same<T> v)             \
    {                                                                    \
        return cuemu::change(p, [v](T old) { return (T)(expression); }); \
    }
CUEMU_ATOMIC(atomicAdd, old + v)
CUEMU_ATOMIC(atomicSub, old - v)
CUEMU_ATOMIC(atomicMax, old < v ? v : old)
CUEMU_ATOMIC(atomicMin, v < old ? v : old)
CUEMU_ATOMIC(atomicAnd, old &v)
CUEMU_ATOMIC(atomicOr, old | v)
CUEMU_ATOMIC(atomicXor, old ^ v)
CUEMU_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
CUEMU_ATOMIC(atomicExch, ((void)old, v))

template <class T> inline T atomicCAS(T *p, cuemu::Same<T> expected, cuemu::Same<T> v)
{
    __atomic_compare_exchange(p, &expected, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
