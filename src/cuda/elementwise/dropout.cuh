/* dropout.cuh - the mask of dropout, and what it leaves of a tensor, in one pass. */
#ifndef TG_CUDA_DROPOUT_CUH
#define TG_CUDA_DROPOUT_CUH

#include "cuda/pack.cuh"

template <class T> struct Masked {
    const T *x;
    T *y;
    uint8_t *mask;
    int64_t count;
    Compute<T> scale;
};

/* Keep::some(i, keep) says of elements i .. i + N - 1 which are kept, N being what a pack has. */
template <class T, class Keep> static __global__ void masked(Masked<T> a, Keep k, bool packs)
{
    constexpr int N = Pack<T>::SIZE;
    const int64_t whole = packs ? a.count / N : 0;
    for (int64_t i = first_item(); i < whole; i += item_step()) {
        bool keep[N];
        Pack<uint8_t, N> bits;
        Pack<T> v = load_pack<Pack<T>>(a.x + i * N);
        k.template some<N>(i * N, keep);
        for (int j = 0; j < N; j++) {
            bits.v[j] = keep[j];
            put(&v.v[j], keep[j] ? value_of(v.v[j]) * a.scale : 0);
        }
        store_pack(a.y + i * N, v);
        if (Keep::DRAWS) store_pack(a.mask + i * N, bits);
    }
    for (int64_t i = whole * N + first_item(); i < a.count; i += item_step()) {
        bool keep;
        k.template some<1>(i, &keep);
        put(a.y + i, keep ? value_of(a.x[i]) * a.scale : 0);
        if (Keep::DRAWS) a.mask[i] = keep;
    }
}

template <class Keep> static inline int run_masked(const RandomArgs *r, const Keep &keep)
{
    return with_float(r->dtype, [&]<class T>() {
        constexpr int N = Pack<T>::SIZE;
        const Masked<T> a = { (const T *)r->x, (T *)r->y, (uint8_t *)r->out, r->count, (Compute<T>)r->scale };
        const bool packs = ((uintptr_t)a.x | (uintptr_t)a.y) % 16 == 0 && (uintptr_t)a.mask % N == 0;
        LAUNCH((masked<T, Keep>), gpu_blocks(packs ? (r->count + N - 1) / N : r->count), THREADS, a, keep,
               packs);
        return gpu_launched("dropout");
    });
}

#endif
