/* reduce.cu - reductions over strided spaces (ReduceArgs in kernels.h says what each kind is).
 *
 *  - The reduced positions are cut into chunks whose number follows from the counts alone.  A team folds one
 *    chunk of one kept position; a second pass folds the chunks.
 *  - f32 and the halves are folded in f32 where that is enough: products, powers and squares that might leave
 *    its range are in double, as f64 is; integers in i64, where sums wrap.
 *  - Rows that lie together are read in packs.
 *  - var and logsumexp are two folds: the second takes the first's result, the mean or the maximum, as its
 *    shift. */
#include "cuda/pack.cuh"

enum Fold {
    FOLD_SUM,
    FOLD_PROD,
    FOLD_MAX,
    FOLD_MIN,
    FOLD_ABS,
    FOLD_SQUARE,
    FOLD_MAX_ABS,
    FOLD_MIN_ABS,
    FOLD_COUNT,
    FOLD_EXP,
    FOLD_POWER
};
enum { SHIFT_MEAN = 100, SHIFT_MAX }; /* kinds of result besides those of ReduceKind */
enum { ROW_CHUNK = 4096, COLUMN_CHUNK = 128, MOST_CHUNKS = 512 };

/* ---- folds ----------------------------------------------------------------------------------- */

/* The fold that joins partial results of this one. */
static __host__ __device__ constexpr int joining(int fold)
{
    return fold == FOLD_PROD || fold == FOLD_MAX || fold == FOLD_MIN ? fold
           : fold == FOLD_MAX_ABS                                    ? FOLD_MAX
           : fold == FOLD_MIN_ABS                                    ? FOLD_MIN
                                                                     : FOLD_SUM;
}

template <int fold, class A> __device__ inline A identity()
{
    if constexpr (fold == FOLD_PROD) return 1;
    else if constexpr (fold == FOLD_MAX || fold == FOLD_MAX_ABS)
        return std::is_floating_point_v<A> ? (A)-HUGE_VAL : (A)INT64_MIN;
    else if constexpr (fold == FOLD_MIN || fold == FOLD_MIN_ABS)
        return std::is_floating_point_v<A> ? (A)HUGE_VAL : (A)INT64_MAX;
    else return 0;
}

/* p: the shift, or the power. */
template <int fold, class A> __device__ inline A step(A a, A v, A p)
{
    if constexpr (fold == FOLD_SUM) return a + v;
    else if constexpr (fold == FOLD_PROD) return a * v;
    else if constexpr (fold == FOLD_MAX) return v > a || v != v ? v : a;
    else if constexpr (fold == FOLD_MIN) return v < a || v != v ? v : a;
    else if constexpr (fold == FOLD_ABS) return a + (v < 0 ? -v : v);
    else if constexpr (fold == FOLD_SQUARE) return a + (v - p) * (v - p);
    else if constexpr (fold == FOLD_MAX_ABS) return step<FOLD_MAX>(a, v < 0 ? -v : v, p);
    else if constexpr (fold == FOLD_MIN_ABS) return step<FOLD_MIN>(a, v < 0 ? -v : v, p);
    else if constexpr (fold == FOLD_COUNT) return a + (v != 0);
    else if constexpr (fold == FOLD_EXP) return a + exp_of(v - p);
    else return a + pow(fabs(v), p);
}

template <int fold> __device__ inline int64_t step(int64_t a, int64_t v, int64_t)
{
    if constexpr (fold == FOLD_PROD) return (int64_t)((uint64_t)a * (uint64_t)v);
    else if constexpr (fold == FOLD_MAX) return v > a ? v : a;
    else if constexpr (fold == FOLD_MIN) return v < a ? v : a;
    else if constexpr (fold == FOLD_COUNT) return a + (v != 0);
    else return (int64_t)((uint64_t)a + (uint64_t)v);
}

template <int fold> struct JoinFolds {
    template <class A> __device__ inline A operator()(A a, A b) const
    {
        return step<joining(fold)>(a, b, (A)0);
    }
};

template <class A> __device__ inline A element(const void *src, int dtype, int64_t i)
{
    switch (dtype) {
    case TENSOR_F32: return (A)((const float *)src)[i];
    case TENSOR_F64: return (A)((const double *)src)[i];
    case TENSOR_F16: return (A)__half2float(((const __half *)src)[i]);
    case TENSOR_BF16: return (A)__bfloat162float(((const __nv_bfloat16 *)src)[i]);
    case TENSOR_I64: return (A)((const int64_t *)src)[i];
    case TENSOR_I32: return (A)((const int32_t *)src)[i];
    default: return (A)((const uint8_t *)src)[i];
    }
}

/* ---- results --------------------------------------------------------------------------------- */

struct Result {
    int kind, dtype;
    int64_t n; /* reduced positions */
    double param;
    const double *shift; /* of var and logsumexp, one a kept position */
    void *out;
};

static __device__ inline void store_number(void *out, int dtype, int64_t i, double v)
{
    switch (dtype) {
    case TENSOR_F32: ((float *)out)[i] = (float)v; break;
    case TENSOR_F64: ((double *)out)[i] = v; break;
    case TENSOR_F16: ((__half *)out)[i] = __double2half(v); break;
    case TENSOR_BF16: ((__nv_bfloat16 *)out)[i] = __double2bfloat16(v); break;
    case TENSOR_I64: ((int64_t *)out)[i] = (int64_t)v; break;
    default: ((uint8_t *)out)[i] = v != 0;
    }
}

static __device__ inline void finish(const Result &r, int64_t i, double v)
{
    const double n = (double)r.n, p = r.param;
    switch (r.kind) {
    case REDUCE_MEAN:
    case SHIFT_MEAN: v /= n; break;
    case REDUCE_ANY: v = v > 0; break;
    case REDUCE_ALL: v = v == n; break;
    case REDUCE_VAR: v /= n - p > 0 ? n - p : 0; break;
    case REDUCE_STD: v = sqrt(v / (n - p > 0 ? n - p : 0)); break;
    case REDUCE_LOGSUMEXP: v = log(v) + r.shift[i]; break;
    case SHIFT_MAX: v = isinf(v) ? 0 : v; break;
    case REDUCE_NORM: v = p == 2 ? sqrt(v) : p == 1 || p == 0 || isinf(p) ? v : pow(v, 1 / p); break;
    default: break;
    }
    store_number(r.out, r.dtype, i, v);
}

static __device__ inline void finish(const Result &r, int64_t i, int64_t v)
{
    if (r.kind == REDUCE_ANY) v = v > 0;
    if (r.kind == REDUCE_ALL) v = v == r.n;
    if (r.dtype == TENSOR_I64) ((int64_t *)r.out)[i] = v;
    else if (r.dtype == TENSOR_I32) ((int32_t *)r.out)[i] = (int32_t)v;
    else ((uint8_t *)r.out)[i] = (uint8_t)v;
}

/* ---- the fold -------------------------------------------------------------------------------- */

struct FoldCall {
    Space<1> kept, reduced;
    const void *src;
    int dtype;
    int64_t chunk;       /* reduced positions a chunk */
    bool row;            /* which lie side by side */
    const double *shift; /* of each kept position, or NULL: param is it */
    double param;
    void *partial; /* [chunks][kept]; NULL: one chunk, whose result is the result */
    Result result;
};

template <class Team, int fold, class T>
static __device__ inline float fold_row(const T *x, int64_t n, float p)
{
    float a = identity<fold, float>();
    read_row<Team>(x, n, 1, [&](int64_t, float v) { a = step<fold>(a, v, p); });
    return a;
}

/* Of n floats or halves, the first at `at`. */
template <class Team, int fold>
static __device__ inline float fold_row(const FoldCall &c, int64_t at, int64_t n, float p)
{
    switch (c.dtype) {
    case TENSOR_F32: return fold_row<Team, fold>((const float *)c.src + at, n, p);
    case TENSOR_F16: return fold_row<Team, fold>((const __half *)c.src + at, n, p);
    default: return fold_row<Team, fold>((const __nv_bfloat16 *)c.src + at, n, p);
    }
}

template <class Team, class A, int fold> __global__ void fold_kernel(FoldCall c)
{
    const int64_t row = Team::row(), begin = blockIdx.y * c.chunk;
    if (row >= c.kept.count) return;
    const int64_t end = c.reduced.count - begin < c.chunk ? c.reduced.count : begin + c.chunk;
    const A p = (A)(c.shift ? c.shift[row] : c.param);
    int64_t base[1], at[1];
    A a = identity<fold, A>();
    offsets(c.kept, row, base);
    if (std::is_same_v<A, float> && Team::TOGETHER && c.row) {
        a = fold_row<Team, fold>(c, base[0] + begin, end - begin, (float)p);
    } else {
        for (int64_t i = begin + Team::rank(); i < end; i += Team::size()) {
            offsets(c.reduced, i, at);
            a = step<fold>(a, element<A>(c.src, c.dtype, base[0] + at[0]), p);
        }
    }
    a = Team::join(a, JoinFolds<fold>());
    if (Team::rank() != 0) return;
    if (c.partial) ((A *)c.partial)[blockIdx.y * c.kept.count + row] = a;
    else if constexpr (std::is_integral_v<A>) finish(c.result, row, a);
    else finish(c.result, row, (double)a);
}

template <class A, int fold> int launch_fold(const FoldCall *c, bool team, unsigned chunks)
{
    const Launch l = team_launch(team, c->kept.count, c->chunk);
    auto kernel = team ? &fold_kernel<Together, A, fold> : &fold_kernel<Alone, A, fold>;
    LAUNCH(kernel, dim3(l.blocks, chunks), l.threads, *c);
    return gpu_launched("reduce");
}

typedef enum Folded { IN_F32, IN_F64, IN_I64 } Folded;

/* What may leave the range of f32 where the result does not is folded in double. */
static Folded folded_in(int fold, const FoldCall *c)
{
    const bool wide =
        fold == FOLD_PROD || fold == FOLD_COUNT || fold == FOLD_POWER || (fold == FOLD_SQUARE && !c->shift);
    return c->dtype >= TENSOR_I64 ? IN_I64 : c->dtype == TENSOR_F64 || wide ? IN_F64 : IN_F32;
}

template <int fold> int launch_either(Folded in, const FoldCall *c, bool team, unsigned chunks)
{
    if constexpr (fold != FOLD_PROD && fold != FOLD_COUNT && fold != FOLD_POWER)
        if (in == IN_F32) return launch_fold<float, fold>(c, team, chunks);
    if constexpr (fold == joining(fold) || fold == FOLD_COUNT)
        if (in == IN_I64) return launch_fold<int64_t, fold>(c, team, chunks);
    return launch_fold<double, fold>(c, team, chunks);
}

static int launch(int fold, Folded in, const FoldCall *c, bool team, unsigned chunks)
{
    switch (fold) {
#define EITHER(fold_) \
    case fold_: return launch_either<fold_>(in, c, team, chunks);
        EITHER(FOLD_SUM)
        EITHER(FOLD_PROD)
        EITHER(FOLD_MAX)
        EITHER(FOLD_MIN)
        EITHER(FOLD_COUNT)
        EITHER(FOLD_ABS)
        EITHER(FOLD_SQUARE)
        EITHER(FOLD_MAX_ABS)
        EITHER(FOLD_MIN_ABS)
        EITHER(FOLD_EXP)
        EITHER(FOLD_POWER)
    default: return gpu_fail("fold number %d is unknown", fold);
    }
}

/* Is the reduced space the one whose neighbours lie together, or are there too few kept positions for a
 * thread each? */
static bool rows_by_team(const FoldCall *c)
{
    return by_team(c->kept.count, c->reduced.count, c->reduced.stride[0][c->reduced.ndim - 1]);
}

static int64_t chunks_of(const FoldCall *c, bool team)
{
    const int64_t size = team ? ROW_CHUNK : COLUMN_CHUNK,
                  most = team ? (1 << 15) / c->kept.count : (1 << 20) / c->kept.count;
    int64_t chunks = c->reduced.count / size;
    if (chunks > most) chunks = most;
    if (chunks > MOST_CHUNKS) chunks = MOST_CHUNKS;
    return chunks < 1 ? 1 : chunks;
}

static int fold_all(int fold, FoldCall *c)
{
    static const int dtype_of[] = { TENSOR_F32, TENSOR_F64, TENSOR_I64 }; /* of partial results */
    const Folded in = folded_in(fold, c);
    const bool team = rows_by_team(c);
    const int64_t wanted = chunks_of(c, team), kept = c->kept.count;
    c->chunk = (c->reduced.count + wanted - 1) / wanted;
    if (c->chunk < 1) c->chunk = 1;
    c->partial = nullptr;
    c->row = c->reduced.ndim == 1 && c->reduced.stride[0][0] == 1;
    if (wanted == 1) return launch(fold, in, c, team, 1);
    const int64_t chunks = (c->reduced.count + c->chunk - 1) / c->chunk;
    Scratch partial((size_t)(chunks * kept) * 8);
    if (!partial.data) return -1;
    c->partial = partial.data;
    if (launch(fold, in, c, team, (unsigned)chunks)) return -1;
    FoldCall second = *c;
    second.kept.ndim = second.reduced.ndim = 1;
    second.kept.shape[0] = kept, second.kept.stride[0][0] = 1;
    second.reduced.shape[0] = second.reduced.count = chunks, second.reduced.stride[0][0] = kept;
    second.src = partial.data, second.dtype = dtype_of[in], second.row = kept == 1;
    second.chunk = chunks, second.partial = nullptr, second.shift = nullptr;
    return launch(joining(fold), in, &second, by_team(kept, chunks, kept), 1);
}

/* ---- argmax, argmin: the first of the largest; NaN wins -------------------------------------- */

template <class A> struct Best {
    A value;
    int64_t at;
}; /* at -1: nothing yet */

template <bool max> struct Better {
    template <class A> __device__ inline Best<A> operator()(Best<A> a, Best<A> b) const
    {
        if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan != b_nan) return a_nan ? a : b;
        if (a_nan || a.value == b.value) return a.at < b.at ? a : b;
        return (max ? b.value > a.value : b.value < a.value) ? b : a;
    }
};

template <class Team, class A, bool max> __global__ void index_kernel(FoldCall c)
{
    const int64_t row = Team::row();
    if (row >= c.kept.count) return;
    int64_t base[1], at[1];
    Best<A> best = { 0, -1 };
    const Better<max> better;
    offsets(c.kept, row, base);
    for (int64_t i = Team::rank(); i < c.reduced.count; i += Team::size()) {
        offsets(c.reduced, i, at);
        best = better(best, Best<A>{ element<A>(c.src, c.dtype, base[0] + at[0]), i });
    }
    best = Team::join(best, better);
    if (Team::rank() == 0) ((int64_t *)c.result.out)[row] = best.at;
}

template <class A, bool max> int launch_index(const FoldCall *c)
{
    const bool team = rows_by_team(c);
    const Launch l = team_launch(team, c->kept.count, c->reduced.count);
    auto kernel = team ? &index_kernel<Together, A, max> : &index_kernel<Alone, A, max>;
    LAUNCH(kernel, l.blocks, l.threads, *c);
    return gpu_launched("reduce");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int fold_of(const ReduceArgs *a)
{
    switch (a->kind) {
    case REDUCE_PROD: return FOLD_PROD;
    case REDUCE_MAX:
    case REDUCE_LOGSUMEXP: return FOLD_MAX;
    case REDUCE_MIN: return FOLD_MIN;
    case REDUCE_ANY:
    case REDUCE_ALL:
    case REDUCE_COUNT_NONZERO: return FOLD_COUNT;
    case REDUCE_NORM:
        if (a->param == 2) return FOLD_SQUARE;
        if (a->param == 1) return FOLD_ABS;
        if (a->param == 0) return FOLD_COUNT;
        return isinf(a->param) ? a->param > 0 ? FOLD_MAX_ABS : FOLD_MIN_ABS : FOLD_POWER;
    default: return FOLD_SUM;
    }
}

static void set_reduced_space(Space<1> *s, int ndim, int64_t count, const int64_t *shape,
                              const int64_t *stride)
{
    const int64_t one[1] = { 1 };
    set_space(s, ndim ? ndim : 1, count, ndim ? shape : one);
    set_strides(s, 0, ndim ? stride : one);
}

static int two_folds(const ReduceArgs *a, FoldCall *c)
{
    const bool var = a->kind != REDUCE_LOGSUMEXP;
    Scratch shift((size_t)a->kept * sizeof(double));
    if (!shift.data) return -1;
    const Result last = c->result;
    c->result.kind = var ? SHIFT_MEAN : SHIFT_MAX, c->result.dtype = TENSOR_F64, c->result.out = shift.data;
    if (fold_all(fold_of(a), c)) return -1;
    c->result = last;
    c->result.shift = c->shift = (const double *)shift.data;
    return fold_all(var ? FOLD_SQUARE : FOLD_EXP, c);
}

int gpu_reduce(ReduceArgs *a)
{
    if (a->kept == 0) return 0;
    const bool integers = a->src_dtype >= TENSOR_I64,
               power = a->kind == REDUCE_NORM && fold_of(a) == FOLD_POWER;
    FoldCall c;
    set_reduced_space(&c.kept, a->kept_ndim, a->kept, a->kept_shape, a->kept_stride);
    set_reduced_space(&c.reduced, a->reduced_ndim, a->reduced, a->reduced_shape, a->reduced_stride);
    c.src = a->src, c.dtype = a->src_dtype, c.chunk = a->reduced, c.partial = nullptr;
    c.shift = nullptr, c.param = power ? a->param : 0;
    c.result = Result{ a->kind, a->out_dtype, a->reduced, a->param, nullptr, a->out };
    if (a->kind == REDUCE_ARGMAX)
        return integers ? launch_index<int64_t, true>(&c) : launch_index<double, true>(&c);
    if (a->kind == REDUCE_ARGMIN)
        return integers ? launch_index<int64_t, false>(&c) : launch_index<double, false>(&c);
    if (a->kind == REDUCE_VAR || a->kind == REDUCE_STD || a->kind == REDUCE_LOGSUMEXP)
        return two_folds(a, &c);
    return fold_all(fold_of(a), &c);
}
