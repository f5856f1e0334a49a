/* norm.cuh - the call of a norm, and pieces of its rows. */
#ifndef TG_CUDA_NORM_CUH
#define TG_CUDA_NORM_CUH

#include "cuda/pack.cuh"

/* ---- pieces: one element, or a pack ---------------------------------------------------------- */

template <int N, class T> static __device__ inline void get(const T *p, Compute<T> (&v)[N])
{
    if constexpr (N == 1) {
        v[0] = value_of(*p);
    } else {
        const auto pack = load_pack<Pack<T, N>>(p);
        for (int j = 0; j < N; j++) v[j] = value_of(pack.v[j]);
    }
}

template <int N, class T> static __device__ inline void set(T *p, const Compute<T> (&v)[N])
{
    Pack<T, N> pack;
    for (int j = 0; j < N; j++) put(&pack.v[j], v[j]);
    if constexpr (N == 1) *p = pack.v[0];
    else store_pack(p, pack);
}

/* As get and set, where the array may be of halves beside f32. */
template <int N, class T>
static __device__ inline void get_as(int dtype, const void *p, int64_t at, Compute<T> (&v)[N])
{
    if constexpr (std::is_same_v<T, float>) {
        if (dtype == TENSOR_F16) return get((const __half *)p + at, v);
        if (dtype == TENSOR_BF16) return get((const __nv_bfloat16 *)p + at, v);
    }
    get((const T *)p + at, v);
}

template <int N, class T>
static __device__ inline void set_as(int dtype, void *p, int64_t at, const Compute<T> (&v)[N])
{
    if constexpr (std::is_same_v<T, float>) {
        if (dtype == TENSOR_F16) return set((__half *)p + at, v);
        if (dtype == TENSOR_BF16) return set((__nv_bfloat16 *)p + at, v);
    }
    set((T *)p + at, v);
}

/* ---- the call -------------------------------------------------------------------------------- */

template <class T> struct NormCall {
    using C = Compute<T>;
    bool batch, given, rms, packs;
    int64_t rows, n, channels, inner, groups;
    double eps;
    int to, added; /* dtypes of y and dy; of add and dadd */
    const T *x, *dsum;
    const void *dy, *add;
    const void *weight, *bias; /* of T if narrow, else of C */
    bool narrow;
    void *y, *dadd;
    T *dx, *sum;
    C *mean, *rstd, *var;
    void *dweight, *dbias; /* as weight */
    C *part;               /* of dweight and dbias, what blocks leave; or their sums */
    int64_t parts;

    __device__ inline int64_t at(int64_t row, int64_t e) const
    {
        if (!batch) return row * n + e;
        const int64_t within = split_off(e, inner);
        return (e * channels + row) * inner + within;
    }
    __device__ inline int64_t own(int64_t row, int64_t e) const
    {
        return batch ? row : groups ? row % groups * channels + e / inner : e;
    }
    template <int N> __device__ inline void get_x(int64_t i, C (&v)[N]) const
    {
        get(x + i, v);
        if (!add) return;
        C more[N];
        get_as<N, T>(added, add, i, more);
        for (int j = 0; j < N; j++) v[j] += more[j];
    }
    template <int N> __device__ inline void get_dy(int64_t i, C (&v)[N]) const { get_as<N, T>(to, dy, i, v); }
    __device__ inline C side(const void *p, int64_t i) const
    {
        return narrow ? value_of(((const T *)p)[i]) : ((const C *)p)[i];
    }
    /* Of N neighbours; p NULL: all `none`. */
    template <int N>
    __device__ inline void sides(const void *p, C none, int64_t row, int64_t e, C (&v)[N]) const
    {
        if (!p || batch || (groups && inner % N == 0)) {
            const C all = p ? side(p, own(row, e)) : none;
            for (C &each : v) each = all;
        } else if (groups || N == 1) {
            for (int j = 0; j < N; j++) v[j] = side(p, own(row, e + j));
        } else if (narrow) {
            get((const T *)p + e, v);
        } else {
            const auto pack = load_pack<Pack<C, N>>((const C *)p + e);
            for (int j = 0; j < N; j++) v[j] = pack.v[j];
        }
    }
    __device__ inline void put_side(void *p, int64_t i, C v) const /* NULL: not wanted */
    {
        if (p && narrow) put((T *)p + i, v);
        else if (p) ((C *)p)[i] = v;
    }
};

template <class T> static NormCall<T> norm_call(const NormArgs *a)
{
    using C = Compute<T>;
    NormCall<T> c = {};
    c.batch = a->batch, c.given = a->given, c.rms = a->rms, c.groups = a->groups, c.channels = a->channels,
    c.inner = a->inner, c.eps = a->eps;
    c.rows = a->batch ? a->channels : a->outer, c.n = a->batch ? a->outer * a->inner : a->channels * a->inner;
    c.x = (const T *)a->x, c.weight = a->weight, c.bias = a->bias, c.dy = a->dy;
    c.to = a->to, c.added = a->added;
    c.add = a->add, c.sum = (T *)a->sum, c.dsum = (const T *)a->dsum, c.dadd = a->dadd;
    c.narrow = a->weights == a->dtype;
    c.y = a->y, c.mean = (C *)a->mean, c.rstd = (C *)a->rstd, c.var = (C *)a->var;
    c.dx = (T *)a->dx, c.dweight = a->dweight, c.dbias = a->dbias;
    const void *const all[] = { c.x, c.dy, c.y, c.dx, c.weight, c.bias, c.add, c.sum, c.dsum, c.dadd };
    c.packs = (c.batch ? c.inner : c.n) % Pack<T>::SIZE == 0;
    for (const void *each : all) c.packs = c.packs && (uintptr_t)each % 16 == 0;
    return c;
}

/* Rows of batch norm with inner 1 lie side by side. */
template <class T> static int64_t apart(const NormCall<T> &c)
{
    return c.batch && c.inner == 1 ? c.channels : 1;
}

/* f<N>(e, at) for the team's pieces of a row: elements e to e + N, which begin at `at` of x. */
template <class Team, class T, class F>
static __device__ inline void each_piece(const NormCall<T> &c, int64_t row, F f)
{
    if (Team::TOGETHER && c.packs) {
        constexpr int N = Pack<T>::SIZE;
        for (int64_t e = (int64_t)Team::rank() * N; e < c.n; e += (int64_t)Team::size() * N)
            f.template operator()<N>(e, c.at(row, e));
    } else {
        for (int64_t e = Team::rank(); e < c.n; e += Team::size()) f.template operator()<1>(e, c.at(row, e));
    }
}

#endif
