/* scan.cu - running results along the middle of dense [outer, n, inner] (ScanArgs in kernels.h).
 *
 * A kind is a rule: how it reads an element as a state, joins the state of earlier elements with that of
 * later ones, and writes a result.  Many lines side by side take a thread each.  Otherwise a block passes
 * over a line: its threads join RUN neighbours, their states are scanned in shared memory, and a carry goes
 * on to the next elements.  Few long lines are cut into chunks, as many as follow from the sizes: a first
 * pass finds the state of each, a second what comes before it. */
#include "cuda/cuda.cuh"

static constexpr int RUN = 8;
static constexpr int64_t STRETCH = 8192, MOST_CHUNKS = 512, SIDE_BY_SIDE = 4096;

struct ScanCall {
    ScanArgs a;
    int64_t lines, chunk, chunks;
    void *carry; /* states [lines][chunks], what comes before each; NULL: one chunk */
};

/* ---- rules ----------------------------------------------------------------------------------- */

/* Element i of a line, in the order of the scan, lies at at(i). */
struct ScanLine {
    const ScanArgs &a;
    const int64_t from;
    __device__ ScanLine(const ScanArgs &args, int64_t line)
        : a(args), from(line / args.inner * args.n * args.inner + line % args.inner)
    {
    }
    __device__ int64_t at(int64_t i) const { return from + (a.reverse ? a.n - 1 - i : i) * a.inner; }
};

/* In double; integers wrap. */
template <class T> struct SumRule : ScanLine {
    using State = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
    using ScanLine::ScanLine;
    static __device__ State none() { return 0; }
    static __device__ State join(State before, State s) { return before + s; }
    __device__ State read(int64_t i) const
    {
        if constexpr (std::is_integral_v<T>) return (State)((const T *)a.x)[at(i)];
        else return (State)value_of(((const T *)a.x)[at(i)]);
    }
    __device__ void write(int64_t i, State s) const
    {
        if constexpr (std::is_integral_v<T>) ((T *)a.y)[at(i)] = (T)s;
        else put((T *)a.y + at(i), (Compute<T>)s);
    }
};

template <class T> struct LogRule : ScanLine {
    using State = double;
    using ScanLine::ScanLine;
    static __device__ State none() { return -HUGE_VAL; }
    static __device__ State join(State before, State s)
    {
        const double high = before > s ? before : s, low = before > s ? s : before;
        if (before != before || s != s) return before + s;
        return high == low && isinf(high) ? high : high + log1p(exp(low - high));
    }
    __device__ State read(int64_t i) const { return (double)((const T *)a.x)[at(i)]; }
    __device__ void write(int64_t i, State s) const { ((T *)a.y)[at(i)] = (T)s; }
};

/* y never falls, so e^(y_i - y_(i+1)) <= 1 and s_i = g_i + s_(i+1) e^(y_i - y_(i+1)), dx_i = s_i e^(x_i -
 * y_i) neither overflows nor cancels. */
struct Recurrence { /* s = add + factor s_before */
    double factor, add;
};
template <class T> struct LogGradRule : ScanLine {
    using State = Recurrence;
    using ScanLine::ScanLine;
    static __device__ State none() { return Recurrence{ 1, 0 }; }
    static __device__ State join(State before, State s)
    {
        return Recurrence{ before.factor * s.factor, s.add + s.factor * before.add };
    }
    __device__ double y(int64_t i) const { return (double)((const T *)a.y)[at(i)]; }
    __device__ State read(int64_t i) const
    {
        const double factor = i == 0 ? 0 : y(i) == y(i - 1) ? 1 : exp(y(i) - y(i - 1));
        return Recurrence{ factor, (double)((const T *)a.g)[at(i)] };
    }
    __device__ void write(int64_t i, State s) const
    {
        const double x = (double)((const T *)a.x)[at(i)];
        ((T *)a.dx)[at(i)] = (T)(x == -HUGE_VAL ? 0 : s.add * exp(x - y(i)));
    }
};

template <class V> struct ExtremeSoFar {
    V value;
    int64_t at; /* -1: none */
};
/* The last one on ties; a NaN stays. */
template <class V, bool min> struct ExtremeRule : ScanLine {
    using State = ExtremeSoFar<V>;
    using ScanLine::ScanLine;
    static __device__ State none() { return State{ 0, -1 }; }
    static __device__ State join(State before, State s)
    {
        if (before.at < 0 || s.at < 0) return s.at < 0 ? before : s;
        const bool passes = min ? !(s.value > before.value) : !(s.value < before.value);
        return passes && (before.value == before.value || s.value != s.value) ? s : before;
    }
    __device__ State read(int64_t i) const { return State{ element(at(i)), i }; }
    __device__ void write(int64_t i, State s) const { a.index[at(i)] = s.at; }

  private:
    __device__ V element(int64_t i) const
    {
        switch (a.dtype) {
        case TENSOR_F32: return (V)((const float *)a.x)[i];
        case TENSOR_F64: return (V)((const double *)a.x)[i];
        case TENSOR_F16: return (V)value_of(((const __half *)a.x)[i]);
        case TENSOR_BF16: return (V)value_of(((const __nv_bfloat16 *)a.x)[i]);
        case TENSOR_I64: return (V)((const int64_t *)a.x)[i];
        case TENSOR_I32: return (V)((const int32_t *)a.x)[i];
        default: return (V)((const uint8_t *)a.x)[i];
        }
    }
};

/* ---- kernels --------------------------------------------------------------------------------- */

template <class Rule> __global__ void scan_line_kernel(ScanCall c)
{
    const int64_t line = first_item();
    if (line >= c.lines) return;
    const Rule rule(c.a, line);
    typename Rule::State s = Rule::none();
    for (int64_t i = 0; i < c.a.n; i++) rule.write(i, s = Rule::join(s, rule.read(i)));
}

/* The states of the threads before each and its own, joined; returns where they are: at now[rank]. */
template <class Rule, class State> __device__ inline State *scan_threads(State *now, State *next)
{
    const int me = (int)threadIdx.x;
    for (int d = 1; d < THREADS; d *= 2) {
        __syncthreads();
        next[me] = me >= d ? Rule::join(now[me - d], now[me]) : now[me];
        State *const was = now;
        now = next, next = was;
    }
    __syncthreads();
    return now;
}

/* totals: only the state of each chunk, into carry. */
template <class Rule, bool totals> __global__ void scan_chunk_kernel(ScanCall c)
{
    using State = typename Rule::State;
    __shared__ State part[2][THREADS];
    int64_t line = blockIdx.x;
    const int64_t chunk = split_off(line, c.chunks), begin = chunk * c.chunk;
    const int64_t end = c.a.n - begin < c.chunk ? c.a.n : begin + c.chunk;
    State *const carry = c.carry ? (State *)c.carry + blockIdx.x : nullptr;
    State before = carry && !totals ? *carry : Rule::none();
    const Rule rule(c.a, line);
    for (int64_t base = begin; base < end; base += THREADS * RUN) {
        const int64_t first = base + (int64_t)threadIdx.x * RUN;
        State mine[RUN], sum = Rule::none();
        for (int k = 0; k < RUN; k++) {
            if (first + k < end) sum = Rule::join(sum, rule.read(first + k));
            mine[k] = sum;
        }
        part[0][threadIdx.x] = sum;
        const State *all = scan_threads<Rule>(part[0], part[1]);
        const State left = threadIdx.x ? Rule::join(before, all[threadIdx.x - 1]) : before;
        for (int k = 0; k < RUN && !totals; k++)
            if (first + k < end) rule.write(first + k, Rule::join(left, mine[k]));
        before = Rule::join(before, all[THREADS - 1]);
        __syncthreads(); /* part is written again */
    }
    if (totals && threadIdx.x == 0) *carry = before;
}

/* The state of each chunk becomes that of all before it. */
template <class Rule> __global__ void scan_carry_kernel(ScanCall c)
{
    using State = typename Rule::State;
    const int64_t line = first_item();
    if (line >= c.lines) return;
    State *carry = (State *)c.carry + line * c.chunks, before = Rule::none();
    for (int64_t i = 0; i < c.chunks; i++) {
        const State s = carry[i];
        carry[i] = before;
        before = Rule::join(before, s);
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

template <class Rule> int scan_by_chunks(ScanCall *c)
{
    auto chunks = &scan_chunk_kernel<Rule, false>;
    const unsigned blocks = (unsigned)(c->lines * c->chunks);
    if (c->chunks > 1) {
        auto totals = &scan_chunk_kernel<Rule, true>;
        auto carries = &scan_carry_kernel<Rule>;
        LAUNCH(totals, blocks, THREADS, *c);
        LAUNCH(carries, gpu_blocks(c->lines), THREADS, *c);
    }
    LAUNCH(chunks, blocks, THREADS, *c);
    return gpu_launched("scan");
}

template <class Rule> int scan_with(const ScanArgs *a)
{
    ScanCall c = { *a, a->outer * a->inner, a->n, 1, nullptr };
    if (c.lines * a->n == 0) return 0;
    if (c.lines > INT32_MAX)
        return gpu_fail("a scan of %lld lines: want fewer than 2^31", (long long)c.lines);
    if ((a->inner > 1 && c.lines >= SIDE_BY_SIDE) || a->n < 32) {
        auto kernel = &scan_line_kernel<Rule>;
        LAUNCH(kernel, (unsigned)((c.lines + THREADS - 1) / THREADS), THREADS, c);
        return gpu_launched("scan");
    }
    const int64_t most = MOST_CHUNKS / c.lines, wanted = a->n / STRETCH < most ? a->n / STRETCH : most;
    if (wanted <= 1) return scan_by_chunks<Rule>(&c);
    c.chunk = (a->n + wanted - 1) / wanted, c.chunks = (a->n + c.chunk - 1) / c.chunk;
    Scratch carry((size_t)(c.lines * c.chunks) * sizeof(typename Rule::State));
    if (!carry.data) return -1;
    c.carry = carry.data;
    return scan_by_chunks<Rule>(&c);
}

static int scan_sum(const ScanArgs *a)
{
    if (a->dtype == TENSOR_I64) return scan_with<SumRule<int64_t>>(a);
    if (a->dtype > TENSOR_BF16) return KERNEL_DECLINED;
    return with_float(a->dtype, [&]<class T>() { return scan_with<SumRule<T>>(a); });
}

template <class V> int scan_extreme(const ScanArgs *a)
{
    return a->kind == SCAN_MIN ? scan_with<ExtremeRule<V, true>>(a) : scan_with<ExtremeRule<V, false>>(a);
}

int gpu_scan(ScanArgs *a)
{
    if (a->kind == SCAN_SUM) return scan_sum(a);
    if (a->kind == SCAN_LOGSUMEXP)
        return a->dtype == TENSOR_F32   ? scan_with<LogRule<float>>(a)
               : a->dtype == TENSOR_F64 ? scan_with<LogRule<double>>(a)
                                        : KERNEL_DECLINED;
    return a->dtype >= TENSOR_I64   ? scan_extreme<int64_t>(a)
           : a->dtype == TENSOR_F64 ? scan_extreme<double>(a)
                                    : scan_extreme<float>(a);
}

int gpu_scan_grad(ScanArgs *a)
{
    ScanArgs back = *a;
    back.reverse = true;
    return a->dtype == TENSOR_F32   ? scan_with<LogGradRule<float>>(&back)
           : a->dtype == TENSOR_F64 ? scan_with<LogGradRule<double>>(&back)
                                    : KERNEL_DECLINED;
}
