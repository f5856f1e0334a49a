/* copy.cu - dst = (dtype of dst) src for any strides and dtypes; fill; select.
 *
 * Casts are the CPU's (src/cpu/elementwise/copy.c): to bool x != 0; float to integer drops the fraction, and
 * what does not fit, NaN included, gives the most negative value, to u8 the low byte of the i64; integers
 * wrap; floats round once. */
#include "cuda/pack.cuh"

/* ---- one element ----------------------------------------------------------------------------- */

/* As a number that converts with C's rules. */
template <class T> __device__ inline T number(T x) { return x; }
static __device__ inline float number(__half x) { return __half2float(x); }
static __device__ inline float number(__nv_bfloat16 x) { return __bfloat162float(x); }
static __device__ inline int32_t number(Bool x) { return x.v != 0; }

template <class To, class From> __device__ inline To to_integer(From x)
{
    if constexpr (std::is_floating_point_v<From>) {
        const From low = (From)(sizeof(To) == 8 ? -9223372036854775808.0 : -2147483648.0);
        if (sizeof(To) == 4 && sizeof(From) == 8) return (To)(x > low - 1 && x < -low ? x : low);
        return (To)(x >= low && x < -low ? x : low);
    } else {
        return (To)x;
    }
}

template <class To> struct Caster {
    template <class From> static __device__ inline To of(From x) { return (To)x; }
};
template <> struct Caster<__half> {
    static __device__ inline __half of(float x) { return __float2half_rn(x); }
    template <class From> static __device__ inline __half of(From x) { return __double2half((double)x); }
};
template <> struct Caster<__nv_bfloat16> {
    static __device__ inline __nv_bfloat16 of(float x) { return __float2bfloat16_rn(x); }
    template <class From> static __device__ inline __nv_bfloat16 of(From x)
    {
        return __double2bfloat16((double)x);
    }
};
template <> struct Caster<int64_t> {
    template <class From> static __device__ inline int64_t of(From x) { return to_integer<int64_t>(x); }
};
template <> struct Caster<int32_t> {
    template <class From> static __device__ inline int32_t of(From x) { return to_integer<int32_t>(x); }
};
template <> struct Caster<uint8_t> {
    template <class From> static __device__ inline uint8_t of(From x)
    {
        return (uint8_t)to_integer<int64_t>(x);
    }
};
template <> struct Caster<Bool> {
    template <class From> static __device__ inline Bool of(From x) { return Bool{ (uint8_t)(x != 0) }; }
};

/* ---- copy ------------------------------------------------------------------------------------ */

struct CopyCall {
    Space<2> space;
    void *dst;
    const void *src;
    bool packs; /* the space is one of packs; behind them: */
    int64_t tail;
};

/* Packs of both, 16 bytes of the narrower, where a float becomes another or keeps its bits. */
template <class To, class From>
constexpr int WIDTH = 16 / (sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
template <class T> constexpr bool IS_FLOAT = !std::is_integral_v<T> && !std::is_same_v<T, Bool>;

template <class To, class From> __device__ inline To cast(From x)
{
    if constexpr (std::is_same_v<To, From>) return x;
    else return Caster<To>::of(number(x));
}

template <class To, class From> __device__ inline void copy_packs(const CopyCall &c)
{
    constexpr int N = WIDTH<To, From>;
    int64_t at[2];
    for (int64_t i = first_item(); i < c.space.count; i += item_step()) {
        Pack<To, N> y;
        offsets(c.space, i, at);
        const auto x = load_pack<Pack<From, N>>((const From *)c.src + at[1]);
        for (int j = 0; j < N; j++) y.v[j] = cast<To>(x.v[j]);
        store_pack((To *)c.dst + at[0], y);
    }
    for (int64_t i = c.space.count * N + first_item(); i < c.space.count * N + c.tail; i += item_step())
        ((To *)c.dst)[i] = cast<To>(((const From *)c.src)[i]);
}

template <class To, class From, bool packs> __global__ void copy_kernel(CopyCall c)
{
    if constexpr (packs)
        if (c.packs) return copy_packs<To, From>(c);
    for (int64_t i = first_item(); i < c.space.count; i += item_step()) {
        int64_t at[2];
        offsets(c.space, i, at);
        ((To *)c.dst)[at[0]] = cast<To>(((const From *)c.src)[at[1]]);
    }
}

template <class To, class From> static int launch_copy(CopyCall *c)
{
    constexpr bool packs = std::is_same_v<To, From> || (IS_FLOAT<To> && IS_FLOAT<From>);
    const void *const data[] = { c->dst, c->src };
    const bool alike = c->space.stride[1][c->space.ndim - 1] == 1;
    c->packs =
        packs && alike && in_packs(&c->space, data, { sizeof(To), sizeof(From) }, WIDTH<To, From>, &c->tail);
    auto kernel = &copy_kernel<To, From, packs>;
    LAUNCH(kernel, gpu_blocks(c->space.count), THREADS, *c);
    return gpu_launched("copy");
}

int gpu_copy(CopyArgs *a)
{
    if (a->count == 0) return 0;
    CopyCall c;
    set_space(&c.space, a->ndim, a->count, a->shape);
    set_strides(&c.space, 0, a->dst.stride);
    set_strides(&c.space, 1, a->src.stride);
    c.dst = a->dst.data, c.src = a->src.data;
    if (a->dst.dtype == a->src.dtype)
        return with_size(a->dst.dtype, [&]<class Bits>() { return launch_copy<Bits, Bits>(&c); });
    return with_dtype(a->dst.dtype, [&]<class To>() {
        return with_dtype(a->src.dtype, [&]<class From>() { return launch_copy<To, From>(&c); });
    });
}

/* ---- fill ------------------------------------------------------------------------------------ */

struct FillCall {
    Space<1> space;
    void *dst;
    double value;
    int64_t value_i64;
};

template <class T> __global__ void fill_kernel(FillCall c)
{
    T value;
    if constexpr (std::is_same_v<T, int64_t>) value = c.value_i64;
    else value = Caster<T>::of(c.value);
    for (int64_t i = first_item(); i < c.space.count; i += item_step()) {
        int64_t at[1];
        offsets(c.space, i, at);
        ((T *)c.dst)[at[0]] = value;
    }
}

struct Sequence {
    FillKind kind;
    int64_t count, first, by;
    double value, step, end;
};

/* Two roundings: the compiler makes no fused one of it. */
__device__ inline double sum_of_product(double start, double i, double step)
{
#ifdef __CUDA_ARCH__
    return __dadd_rn(start, __dmul_rn(i, step));
#else
    return start + i * step;
#endif
}

template <class C> __device__ inline C between(const Sequence &s, int64_t i)
{
    const C step = (C)s.step;
    return i < s.count / 2 ? fma(step, (C)i, (C)s.value) : fma(-step, (C)(s.count - 1 - i), (C)s.end);
}

template <class T> __global__ void sequence_kernel(Sequence s, T *out)
{
    for (int64_t i = first_item(); i < s.count; i += item_step()) {
        if (s.kind == FILL_STEPS_I64)
            out[i] = Caster<T>::of((int64_t)((uint64_t)s.first + (uint64_t)i * (uint64_t)s.by));
        else if (s.kind == FILL_STEPS) out[i] = Caster<T>::of(sum_of_product(s.value, (double)i, s.step));
        else if (s.kind == FILL_BETWEEN) out[i] = Caster<T>::of(between<double>(s, i));
        else out[i] = Caster<T>::of((double)between<float>(s, i));
    }
}

static int fill_sequence(const FillArgs *a)
{
    const Sequence s = { a->kind, a->count, a->value_i64, a->step_i64, a->value, a->step, a->end };
    with_dtype(a->dst.dtype, [&]<class T>() {
        auto kernel = &sequence_kernel<T>;
        LAUNCH(kernel, gpu_blocks(a->count), THREADS, s, (T *)a->dst.data);
        return 0;
    });
    return gpu_launched("fill");
}

int gpu_fill(FillArgs *a)
{
    if (a->count == 0) return 0;
    if (a->kind != FILL_VALUE) return fill_sequence(a);
    FillCall c;
    set_space(&c.space, a->ndim, a->count, a->shape);
    set_strides(&c.space, 0, a->dst.stride);
    c.dst = a->dst.data, c.value = a->value, c.value_i64 = a->value_i64;
    with_dtype(a->dst.dtype, [&]<class T>() {
        auto kernel = &fill_kernel<T>;
        LAUNCH(kernel, gpu_blocks(a->count), THREADS, c);
        return 0;
    });
    return gpu_launched("fill");
}

/* ---- select: what is not chosen is never computed with --------------------------------------- */

struct SelectCall {
    Space<4> space;
    void *out;
    const uint8_t *cond;
    const void *a, *b;
};

template <class Bits> __global__ void select_kernel(SelectCall c)
{
    for (int64_t i = first_item(); i < c.space.count; i += item_step()) {
        int64_t at[4];
        offsets(c.space, i, at);
        ((Bits *)c.out)[at[0]] = c.cond[at[1]] ? ((const Bits *)c.a)[at[2]] : ((const Bits *)c.b)[at[3]];
    }
}

int gpu_select(SelectArgs *a)
{
    if (a->count == 0) return 0;
    SelectCall c;
    set_space(&c.space, a->ndim, a->count, a->shape);
    set_strides(&c.space, 0, a->out.stride);
    set_strides(&c.space, 1, a->cond.stride);
    set_strides(&c.space, 2, a->a.stride);
    set_strides(&c.space, 3, a->b.stride);
    c.out = a->out.data, c.cond = (const uint8_t *)a->cond.data, c.a = a->a.data, c.b = a->b.data;
    with_size(a->out.dtype, [&]<class Bits>() {
        auto kernel = &select_kernel<Bits>;
        LAUNCH(kernel, gpu_blocks(a->count), THREADS, c);
        return 0;
    });
    return gpu_launched("select");
}
