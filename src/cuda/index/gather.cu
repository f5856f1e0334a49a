/* gather.cu - picking elements by index, and adding or folding them back.
 *
 * scatter: a thread owns an element of the destination and adds in the order of the index rows, so there are
 * no atomics and the bits are always the same.  Of few index rows it looks at each; of many at the places
 * that name its row (segments.cuh). */
#include "segments.cuh"

static int check(GatherArgs *g)
{
    const IndexBlock b = { g->index, g->outer, g->m, g->inner, g->index_outer, g->index_row, g->index_inner };
    const IndexCheck c = { b, g->n, nullptr, g->op, g->site };
    return gpu_check_index(&c, &g->bad_at, &g->bad_value);
}

/* ---- gather ---------------------------------------------------------------------------------- */

template <class Bits> __global__ void gather_kernel(GatherArgs g)
{
    const int64_t count = g.outer * g.m * g.inner;
    for (int64_t at = first_item(); at < count; at += item_step()) {
        const int64_t i = at % g.inner, j = at / g.inner % g.m, o = at / g.inner / g.m;
        int64_t row = g.index[o * g.index_outer + j * g.index_row + i * g.index_inner];
        if (row < 0 || row >= g.n) row = 0; /* the check tells of it */
        if (g.n > 0) ((Bits *)g.dst)[at] = ((const Bits *)g.src)[(o * g.n + row) * g.inner + i];
    }
}

int gpu_gather(GatherArgs *g)
{
    const int64_t count = g->outer * g->m * g->inner;
    if (count == 0) return 0;
    if (check(g)) return -1;
    return with_size(g->dtype, [&]<class Bits>() {
        auto kernel = &gather_kernel<Bits>;
        LAUNCH(kernel, gpu_blocks(count), THREADS, *g);
        return gpu_launched("gather");
    });
}

/* ---- scatter_add ----------------------------------------------------------------------------- */

template <class T> __device__ inline T added(T a, T b)
{
    if constexpr (std::is_same_v<T, Bool>) return Bool{ (uint8_t)(a.v | b.v) };
    else if constexpr (std::is_integral_v<T>) return (T)((uint64_t)a + (uint64_t)b);
    else return a + b;
}

/* Sums of halves are f32 until they are complete. */
template <class T> __device__ inline Compute<T> term(T x)
{
    if constexpr (std::is_same_v<T, Compute<T>>) return x;
    else return value_of(x);
}
template <class T> __device__ inline void settle(T *p, Compute<T> sum)
{
    if constexpr (std::is_same_v<T, Compute<T>>) *p = sum;
    else put(p, sum);
}

/* A column of the destination a thread.  The first place that names a row adds what all of them have. */
template <class T> __global__ void scatter_column_kernel(GatherArgs g)
{
    for (int64_t column = first_item(); column < g.outer * g.inner; column += item_step()) {
        const int64_t o = column / g.inner, i = column % g.inner;
        const int64_t *index = g.index + o * g.index_outer + i * g.index_inner;
        const T *src = (const T *)g.src + o * g.m * g.inner + i;
        T *dst = (T *)g.dst + o * g.n * g.inner + i;
        for (int64_t j = 0; j < g.m; j++) {
            const int64_t row = index[j * g.index_row];
            bool first = row >= 0 && row < g.n;
            for (int64_t k = 0; k < j && first; k++) first = index[k * g.index_row] != row;
            if (!first) continue;
            Compute<T> sum = term(dst[row * g.inner]);
            for (int64_t k = j; k < g.m; k++)
                if (index[k * g.index_row] == row) sum = added(sum, term(src[k * g.inner]));
            settle(dst + row * g.inner, sum);
        }
    }
}

/* ---- by segments ----------------------------------------------------------------------------- */

/* The lists of places: one for each outer and inner index along which the indices differ. */
struct ScatterCall {
    GatherArgs g;
    int64_t outer_lists, inner_lists;
    const int64_t *order, *start;
};

/* visit(place in src) for what is added to element at = (o, row, i) of the destination, in order. */
template <class Visit> __device__ inline void each_place(const ScatterCall &c, int64_t at, Visit visit)
{
    int64_t o = at;
    const int64_t i = split_off(o, c.g.inner), row = split_off(o, c.g.n);
    const int64_t list = (c.outer_lists > 1 ? o : 0) * c.inner_lists + (c.inner_lists > 1 ? i : 0);
    const int64_t *start = c.start + list * (c.g.n + 1) + row, *order = c.order + list * c.g.m;
    for (int64_t k = start[0]; k < start[1]; k++) visit((o * c.g.m + order[k]) * c.g.inner + i);
}

template <class T> __global__ void scatter_add_kernel(ScatterCall c)
{
    T *const dst = (T *)c.g.dst;
    for (int64_t at = first_item(); at < c.g.outer * c.g.n * c.g.inner; at += item_step()) {
        Compute<T> sum = term(dst[at]);
        each_place(c, at, [&](int64_t from) { sum = added(sum, term(((const T *)c.g.src)[from])); });
        settle(dst + at, sum);
    }
}

static __device__ inline double divided(double a, int64_t n) { return a / (double)n; }
static __device__ inline int64_t divided(int64_t a, int64_t n) { return a / n - (a % n != 0 && a < 0); }

template <class T, int fold> __device__ inline T folded(T a, T b)
{
    if constexpr (fold == INTO_AMAX) return a != a || a > b ? a : b;
    else if constexpr (fold == INTO_AMIN) return a != a || a < b ? a : b;
    else if constexpr (fold != INTO_PROD) return added(a, b);
    else if constexpr (std::is_integral_v<T>) return (T)((uint64_t)a * (uint64_t)b);
    else return a * b;
}

template <class T, int fold> __global__ void scatter_fold_kernel(ScatterCall c)
{
    T *const dst = (T *)c.g.dst;
    for (int64_t at = first_item(); at < c.g.outer * c.g.n * c.g.inner; at += item_step()) {
        int64_t count = c.g.include_self;
        T sum = dst[at];
        each_place(c, at, [&](int64_t from) {
            const T x = ((const T *)c.g.src)[from];
            sum = count++ == 0 ? x : folded<T, fold>(sum, x);
        });
        dst[at] = fold == INTO_MEAN && count > 1 ? divided(sum, count) : sum;
    }
}

/* Calls run(c) with the places that name each row. */
template <class Run> int with_segments(const GatherArgs *g, Run run)
{
    ScatterCall c = { *g, g->index_outer ? g->outer : 1, g->index_inner ? g->inner : 1, nullptr, nullptr };
    const int64_t lists = c.outer_lists * c.inner_lists;
    const bool dense = g->index_row == 1 && (lists == 1 || (c.inner_lists == 1 && g->index_outer == g->m));
    Segments segments(lists, g->m, g->n);
    Scratch copy(dense ? 1 : (size_t)(lists * g->m) * 8);
    if (!copy.data) return -1;
    if (!dense) {
        CopyArgs to = {};
        to.ndim = 3, to.count = lists * g->m;
        to.shape[0] = c.outer_lists, to.shape[1] = c.inner_lists, to.shape[2] = g->m;
        to.dst.data = copy.data, to.src.data = (void *)(uintptr_t)g->index;
        to.dst.dtype = to.src.dtype = TENSOR_I64;
        to.dst.stride[0] = c.inner_lists * g->m, to.dst.stride[1] = g->m, to.dst.stride[2] = 1;
        to.src.stride[0] = g->index_outer, to.src.stride[1] = g->index_inner, to.src.stride[2] = g->index_row;
        if (gpu_copy(&to)) return -1;
    }
    if (segments.build(dense ? g->index : (const int64_t *)copy.data)) return -1;
    c.order = segments.order(), c.start = segments.start();
    return run(c);
}

int gpu_scatter_add(GatherArgs *g)
{
    enum { FEW_ROWS = 32 };
    const int64_t columns = g->outer * g->inner;
    if (columns * g->m == 0) return 0;
    if (check(g)) return -1;
    return with_dtype(g->dtype, [&]<class T>() {
        if (g->m <= FEW_ROWS) {
            auto kernel = &scatter_column_kernel<T>;
            LAUNCH(kernel, gpu_blocks(columns), THREADS, *g);
            return gpu_launched("scatter_add");
        }
        return with_segments(g, [&](const ScatterCall &c) {
            auto kernel = &scatter_add_kernel<T>;
            LAUNCH(kernel, gpu_blocks(columns * g->n), THREADS, c);
            return gpu_launched("scatter_add");
        });
    });
}

template <class T, int fold> int fold_by_segments(const GatherArgs *g)
{
    return with_segments(g, [&](const ScatterCall &c) {
        auto kernel = &scatter_fold_kernel<T, fold>;
        LAUNCH(kernel, gpu_blocks(g->outer * g->n * g->inner), THREADS, c);
        return gpu_launched("scatter_fold");
    });
}

template <class T> int scatter_fold(const GatherArgs *g)
{
    switch (g->fold) {
    case INTO_SUM: return fold_by_segments<T, INTO_SUM>(g);
    case INTO_PROD: return fold_by_segments<T, INTO_PROD>(g);
    case INTO_MEAN: return fold_by_segments<T, INTO_MEAN>(g);
    case INTO_AMAX: return fold_by_segments<T, INTO_AMAX>(g);
    default: return fold_by_segments<T, INTO_AMIN>(g);
    }
}

int gpu_scatter_fold(GatherArgs *g)
{
    if (g->outer * g->inner * g->m == 0) return 0;
    if (check(g)) return -1;
    return g->dtype == TENSOR_F64   ? scatter_fold<double>(g)
           : g->dtype == TENSOR_I64 ? scatter_fold<int64_t>(g)
                                    : KERNEL_DECLINED;
}
