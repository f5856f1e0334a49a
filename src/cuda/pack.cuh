/* pack.cuh - 16 bytes at once: packs of elements, spaces that are gone over in packs, rows.
 *
 * Addresses that no pack may begin at, and what is left over at the ends, are read element by element: views
 * may begin anywhere. */
#ifndef TG_CUDA_PACK_CUH
#define TG_CUDA_PACK_CUH

#include "cuda/cuda.cuh"

#ifdef __CUDACC__
struct alignas(16) Words {
    uint32_t word[4];
};
#else /* the emulator's compiler must know that these are other types' bytes */
struct alignas(16) __attribute__((may_alias)) Words {
    uint32_t word[4];
};
#endif

template <class T, int N = 16 / sizeof(T)> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
    static constexpr int SIZE = N;
    T v[N];
};

/* Addresses that come out of tables are of the device's memory, too. */
#ifdef __CUDACC__
#define IN_GLOBAL_MEMORY(p) __builtin_assume(__isGlobal(p))
#else
#define IN_GLOBAL_MEMORY(p) (void)(p)
#endif

/* p is a multiple of the pack's alignment. */
template <class P, class T> static __device__ inline P load_pack(const T *p)
{
    P pack;
    IN_GLOBAL_MEMORY(p);
    if constexpr (sizeof(P) % sizeof(Words) == 0) {
        Words words[sizeof(P) / sizeof(Words)];
        for (size_t i = 0; i < sizeof(P) / sizeof(Words); i++) words[i] = ((const Words *)p)[i];
        memcpy(&pack, words, sizeof pack);
    } else {
        pack = *(const P *)p;
    }
    return pack;
}

template <class P, class T> static __device__ inline void store_pack(T *p, const P &pack)
{
    IN_GLOBAL_MEMORY(p);
    if constexpr (sizeof(P) % sizeof(Words) == 0) {
        Words words[sizeof(P) / sizeof(Words)];
        memcpy(words, &pack, sizeof pack);
        for (size_t i = 0; i < sizeof(P) / sizeof(Words); i++) ((Words *)p)[i] = words[i];
    } else {
        *(P *)p = pack;
    }
}

/* ---- spaces ---------------------------------------------------------------------------------- */

/* May packs of `width` neighbours along the last dimension begin wherever this operand is asked for?  Of
 * stride 0 all of a pack are one element. */
template <int N>
static inline bool packs_fit(const Space<N> *s, int k, const void *data, size_t size, int width)
{
    const size_t bytes = size * (size_t)width, apart = bytes < 16 ? bytes : 16;
    const int last = s->ndim - 1;
    if (!data) return true;
    if (s->stride[k][last] != 1) return s->stride[k][last] == 0 && k > 0;
    bool fit = (uintptr_t)data % apart == 0;
    for (int d = 0; d < last; d++) fit = fit && (size_t)s->stride[k][d] * size % apart == 0;
    return fit;
}

/* Makes s, whose operand 0 is written, a space of packs; the tail is what one dimension has left. */
template <int N> static inline void count_packs(Space<N> *s, int width, int64_t *tail)
{
    const int last = s->ndim - 1;
    *tail = s->shape[last] % width;
    s->shape[last] /= width, s->count = (s->count - *tail) / width;
    for (int k = 0; k < N; k++) s->stride[k][last] *= width;
}

template <int N>
static inline bool in_packs(Space<N> *s, const void *const (&data)[N], const size_t (&size)[N], int width,
                            int64_t *tail)
{
    bool fit = s->ndim == 1 || (s->ndim > 1 && s->shape[s->ndim - 1] % width == 0);
    for (int k = 0; k < N && fit; k++) fit = packs_fit(s, k, data[k], size[k], width);
    if (fit) count_packs(s, width, tail);
    return fit;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Elements in front of the first pack. */
template <class T> static __device__ inline int64_t before_packs(const T *p, int64_t n)
{
    const int64_t head = (int64_t)((16 - (uintptr_t)p % 16) % 16 / sizeof(T));
    return head < n ? head : n;
}

template <class T, int IN> struct Values { /* element i of each array of a row */
    Compute<T> v[IN];
};

/* f(i, values) for the team's share of a row of n elements that are `apart`; what it returns goes to out,
 * unless that is NULL. */
template <class Team, int IN, class T, class F> struct RowWalk {
    const T *const (&in)[IN];
    T *out;
    int64_t apart;
    F &f;

    __device__ inline void one(int64_t i) const
    {
        Values<T, IN> values;
        for (int k = 0; k < IN; k++) values.v[k] = value_of(in[k][i * apart]);
        const Compute<T> y = f(i, values);
        if (out) put(out + i * apart, y);
    }
    __device__ inline void pack(int64_t i) const
    {
        Pack<T> x[IN], y;
        for (int k = 0; k < IN; k++) x[k] = load_pack<Pack<T>>(in[k] + i);
#pragma unroll
        for (int j = 0; j < Pack<T>::SIZE; j++) {
            Values<T, IN> values;
            for (int k = 0; k < IN; k++) values.v[k] = value_of(x[k].v[j]);
            put(&y.v[j], f(i + j, values));
        }
        if (out) store_pack(out + i, y);
    }
    __device__ inline bool alike() const /* do packs begin at the same places of all? */
    {
        bool same = apart == 1 && (!out || ((uintptr_t)out - (uintptr_t)in[0]) % 16 == 0);
        for (int k = 1; k < IN; k++) same = same && ((uintptr_t)in[k] - (uintptr_t)in[0]) % 16 == 0;
        return same;
    }
    __device__ inline void run(int64_t n) const
    {
        const int64_t head = Team::TOGETHER && alike() ? before_packs(in[0], n) : n,
                      packs = (n - head) / Pack<T>::SIZE, rest = head + packs * Pack<T>::SIZE;
        for (int64_t i = Team::rank(); i < head; i += Team::size()) one(i);
        for (int64_t i = Team::rank(); i < packs; i += Team::size()) pack(head + i * Pack<T>::SIZE);
        for (int64_t i = rest + Team::rank(); i < n; i += Team::size()) one(i);
    }
};

template <class Team, int IN, class T, class F>
static __device__ inline void walk_row(const T *const (&in)[IN], T *out, int64_t n, int64_t apart, F f)
{
    RowWalk<Team, IN, T, F>{ in, out, apart, f }.run(n);
}

/* The same of one array, which is only read: f(i, x). */
template <class Team, class T, class F>
static __device__ inline void read_row(const T *x, int64_t n, int64_t apart, F f)
{
    const T *const in[1] = { x };
    walk_row<Team>(in, (T *)nullptr, n, apart, [&](int64_t i, const Values<T, 1> &values) {
        f(i, values.v[0]);
        return values.v[0];
    });
}

#endif
