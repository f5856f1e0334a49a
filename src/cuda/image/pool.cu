/* pool.cu - pooling over dense planes, or with channels last, and its gradients (PoolArgs in kernels.h).
 *
 * A thread makes one element; a large window is shared by a team.  Gradients are gathered: each element of x
 * sums, in their order, over the windows that it lies in, so there are no atomics.  Sums of f32 and halves
 * are in f32. */
#include "cuda/cuda.cuh"

template <class T> using PoolWide = std::conditional_t<std::is_integral_v<T>, int64_t, Compute<T>>;

template <class T> __device__ inline PoolWide<T> pool_read(const void *p, int64_t i)
{
    if constexpr (std::is_integral_v<T>) return ((const T *)p)[i];
    else return value_of(((const T *)p)[i]);
}

template <class T> __device__ inline void pool_write(void *p, int64_t i, PoolWide<T> v)
{
    if constexpr (std::is_integral_v<T>) ((T *)p)[i] = (T)v;
    else put((T *)p + i, v);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Along each axis the elements from, from + step, ... : taps of them lie inside the plane. */
struct PoolWindow {
    int64_t from[3], step[3], taps[3], divisor;
};

static __device__ inline int64_t pool_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static __device__ inline void set_axis(const PoolArgs &p, int a, int64_t i, PoolWindow &w)
{
    if (p.adaptive) {
        w.from[a] = i * p.in[a] / p.out[a], w.step[a] = 1;
        w.taps[a] = pool_up((i + 1) * p.in[a], p.out[a]) - w.from[a];
        w.divisor *= w.taps[a];
        return;
    }
    const int64_t begin = i * p.stride[a] - p.pad[a], end = begin + p.kernel[a], step = p.dilation[a];
    const int64_t before = begin < 0 ? pool_up(-begin, step) : 0; /* taps in the padding */
    const int64_t first = begin + before * step, there = first < p.in[a] ? pool_up(p.in[a] - first, step) : 0,
                  left = p.kernel[a] > before ? p.kernel[a] - before : 0;
    w.from[a] = first, w.step[a] = step, w.taps[a] = there < left ? there : left;
    const int64_t padded = end < p.in[a] + p.pad[a] ? end : p.in[a] + p.pad[a];
    w.divisor *= p.count_include_pad ? padded - begin
                                     : (padded < p.in[a] ? padded : p.in[a]) - (begin > 0 ? begin : 0);
}

/* Window `at` of a plane; at becomes the number of the plane. */
static __device__ inline PoolWindow window_at(const PoolArgs &p, int64_t &at)
{
    PoolWindow w;
    w.divisor = 1;
    for (int a = 2; a >= 0; a--) set_axis(p, a, split_off(at, p.out[a]), w);
    if (p.divisor) w.divisor = p.divisor;
    return w;
}

static __device__ inline int64_t pool_place(const PoolArgs &p, int64_t d, int64_t h, int64_t w)
{
    return (d * p.in[1] + h) * p.in[2] + w;
}

/* visit(place within the plane) for a member's share of a window's elements, in their order. */
template <class Team, class Visit>
__device__ inline void each_tap(const PoolArgs &p, const PoolWindow &w, Visit visit)
{
    if constexpr (std::is_same_v<Team, Alone>) {
        for (int64_t i = 0; i < w.taps[0]; i++)
            for (int64_t j = 0; j < w.taps[1]; j++) {
                const int64_t d = w.from[0] + i * w.step[0], h = w.from[1] + j * w.step[1];
                for (int64_t k = 0; k < w.taps[2]; k++) visit(pool_place(p, d, h, w.from[2] + k * w.step[2]));
            }
    } else {
        const int64_t taps = w.taps[0] * w.taps[1] * w.taps[2];
        for (int64_t i = Team::rank(); i < taps; i += Team::size()) {
            int64_t at[3], left = i;
            for (int a = 2; a >= 0; a--) at[a] = w.from[a] + split_off(left, w.taps[a]) * w.step[a];
            visit(pool_place(p, at[0], at[1], at[2]));
        }
    }
}

static __device__ inline int64_t plane_of(const PoolArgs &p) { return p.in[0] * p.in[1] * p.in[2]; }
static __device__ inline int64_t windows_of(const PoolArgs &p) { return p.out[0] * p.out[1] * p.out[2]; }

/* Where element `at` of a plane of so many lies. */
static __device__ inline int64_t pool_at(const PoolArgs &p, int64_t plane, int64_t at, int64_t size)
{
    if (p.layout == LAYOUT_FIRST) return plane * size + at;
    const int64_t channel = split_off(plane, p.channels);
    return (plane * size + at) * p.channels + channel;
}

/* ---- forward --------------------------------------------------------------------------------- */

template <class V> struct Highest {
    V value;
    int64_t at; /* -1: none so far */
};

/* NaN wins, the last one; else the larger, of equal ones the first. */
struct Higher {
    template <class V> __device__ inline Highest<V> operator()(Highest<V> a, Highest<V> b) const
    {
        if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan != b_nan) return a_nan ? a : b;
        if (a_nan) return a.at > b.at ? a : b;
        if (a.value == b.value) return a.at < b.at ? a : b;
        return b.value > a.value ? b : a;
    }
};

template <class Team, class T> __global__ void max_pool_kernel(PoolArgs p)
{
    using V = PoolWide<T>;
    const int64_t row = Team::row();
    int64_t plane = row;
    if (row >= p.planes * windows_of(p)) return;
    const PoolWindow w = window_at(p, plane);
    const int64_t to = pool_at(p, plane, row - plane * windows_of(p), windows_of(p));
    Highest<V> best = { 0, -1 };
    each_tap<Team>(p, w, [&](int64_t at) {
        best = Higher()(best, Highest<V>{ pool_read<T>(p.x, pool_at(p, plane, at, plane_of(p))), at });
    });
    best = Team::join(best, Higher());
    if (Team::rank() != 0) return;
    if (best.at < 0) { /* dilation left no tap inside: the index lies there all the same */
        int64_t at[3];
        for (int a = 0; a < 3; a++) at[a] = w.from[a] < p.in[a] ? w.from[a] : p.in[a] - 1;
        best.at = pool_place(p, at[0], at[1], at[2]);
        if constexpr (std::is_integral_v<T>) best.value = INT64_MIN;
        else best.value = (V)-HUGE_VAL;
    }
    pool_write<T>(p.y, to, best.value);
    p.index[to] = best.at;
}

template <class Team, class T> __global__ void avg_pool_kernel(PoolArgs p)
{
    using V = PoolWide<T>;
    const int64_t row = Team::row();
    int64_t plane = row;
    if (row >= p.planes * windows_of(p)) return;
    const PoolWindow w = window_at(p, plane);
    const int64_t to = pool_at(p, plane, row - plane * windows_of(p), windows_of(p));
    V sum = 0;
    each_tap<Team>(p, w, [&](int64_t at) { sum += pool_read<T>(p.x, pool_at(p, plane, at, plane_of(p))); });
    sum = Team::join(sum, AddUp());
    if (Team::rank() == 0) pool_write<T>(p.y, to, sum / (V)w.divisor);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The windows along an axis that may hold element at. */
struct PoolRange {
    int64_t first, end;
};
static __device__ inline PoolRange windows_with(const PoolArgs &p, int a, int64_t at)
{
    PoolRange r;
    if (p.adaptive) {
        r.first = at * p.out[a] / p.in[a], r.end = pool_up((at + 1) * p.out[a], p.in[a]);
        return r;
    }
    const int64_t last = at + p.pad[a], before = last - (p.kernel[a] - 1) * p.dilation[a];
    r.first = before > 0 ? pool_up(before, p.stride[a]) : 0;
    r.end = last / p.stride[a] + 1 < p.out[a] ? last / p.stride[a] + 1 : p.out[a];
    return r;
}

template <class T, bool max> __global__ void pool_grad_kernel(PoolArgs p)
{
    const int64_t count = p.planes * plane_of(p), out = windows_of(p);
    for (int64_t i = first_item(); i < count; i += item_step()) {
        int64_t plane = i, at[3];
        PoolRange r[3];
        for (int a = 2; a >= 0; a--) r[a] = windows_with(p, a, at[a] = split_off(plane, p.in[a]));
        const int64_t me = pool_place(p, at[0], at[1], at[2]);
        Compute<T> sum = 0;
        for (int64_t d = r[0].first; d < r[0].end; d++)
            for (int64_t h = r[1].first; h < r[1].end; h++)
                for (int64_t w = r[2].first; w < r[2].end; w++) {
                    const int64_t o = (d * p.out[1] + h) * p.out[2] + w, j = pool_at(p, plane, o, out);
                    if constexpr (max) {
                        if (p.index[j] == me) sum += value_of(((const T *)p.y)[j]);
                    } else {
                        int64_t number = plane * out + o;
                        sum += value_of(((const T *)p.y)[j]) / (Compute<T>)window_at(p, number).divisor;
                    }
                }
        put((T *)p.x + pool_at(p, plane, me, plane_of(p)), sum);
    }
}

template <bool max> int pool_grad(PoolArgs *p)
{
    const int64_t count = p->planes * p->in[0] * p->in[1] * p->in[2];
    if (count == 0) return 0;
    return with_float(p->dtype, [&]<class T>() {
        auto kernel = &pool_grad_kernel<T, max>;
        LAUNCH(kernel, gpu_blocks(count), THREADS, *p);
        return gpu_launched("pool gradient");
    });
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Elements of a window, about. */
static int64_t window_size(const PoolArgs *p)
{
    int64_t n = 1;
    for (int a = 0; a < 3; a++)
        n *= !p->adaptive ? p->kernel[a] : p->out[a] ? (p->in[a] + p->out[a] - 1) / p->out[a] : 1;
    return n;
}

int gpu_max_pool(PoolArgs *p)
{
    const int64_t rows = p->planes * p->out[0] * p->out[1] * p->out[2];
    if (rows == 0) return 0;
    return with_dtype(p->dtype, [&]<class T>() {
        if constexpr (std::is_same_v<T, Bool>) return (int)KERNEL_DECLINED;
        else {
            LAUNCH_ROWS(max_pool_kernel, T, rows, window_size(p), 1, *p);
            return gpu_launched("max pool");
        }
    });
}

int gpu_avg_pool(PoolArgs *p)
{
    const int64_t rows = p->planes * p->out[0] * p->out[1] * p->out[2];
    if (rows == 0) return 0;
    return with_dtype(p->dtype, [&]<class T>() {
        if constexpr (std::is_same_v<T, Bool>) return (int)KERNEL_DECLINED;
        else {
            LAUNCH_ROWS(avg_pool_kernel, T, rows, window_size(p), 1, *p);
            return gpu_launched("average pool");
        }
    });
}

int gpu_max_pool_grad(PoolArgs *p) { return pool_grad<true>(p); }
int gpu_avg_pool_grad(PoolArgs *p) { return pool_grad<false>(p); }
