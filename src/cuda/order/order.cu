/* order.cu - order along the middle of dense [outer, n, inner]: sort, topk, kthvalue, median, mode (OrderArgs
 * in kernels.h).
 *
 * An element becomes an item: a key whose unsigned order is the one wanted (complemented for descending), and
 * its place, by which equal ones keep their order; 32 bits of each in one word where they fit.  Blocks sort
 * chunks of lines in shared memory (a bitonic network); runs are then merged pairwise: an item's place among
 * both is its own plus the number of items before it in the other run, which a bisection finds.  Of each run
 * only as many items stay as the result needs. */
#include "cuda/cuda.cuh"

static constexpr int CHUNK = 2048; /* items in shared memory */

/* ---- items ----------------------------------------------------------------------------------- */

struct Word { /* key, place */
    uint64_t bits;
    static __device__ Word of(uint64_t key, int64_t at) { return Word{ key << 32 | (uint64_t)at }; }
    static __device__ Word last() { return Word{ ~0ull }; } /* behind all items */
    __device__ uint64_t key() const { return bits >> 32; }
    __device__ int64_t at() const { return (int64_t)(bits & 0xffffffffu); }
    __device__ bool before(Word b) const { return bits < b.bits; }
};

struct Pair {
    uint64_t bits;
    int64_t place;
    static __device__ Pair of(uint64_t key, int64_t at) { return Pair{ key, at }; }
    static __device__ Pair last() { return Pair{ ~0ull, INT64_MAX }; }
    __device__ uint64_t key() const { return bits; }
    __device__ int64_t at() const { return place; }
    __device__ bool before(Pair b) const { return bits < b.bits || (bits == b.bits && place < b.place); }
};

/* The order of a dtype's values: floats with the sign folded in; -0 is 0, NaN is above all. */
static __device__ inline uint64_t order_key(float v)
{
    uint32_t u;
    v += 0.0f; /* -0 becomes 0 */
    memcpy(&u, &v, sizeof u);
    return v != v ? 0xffffffffu : u ^ (u >> 31 ? 0xffffffffu : 0x80000000u);
}
static __device__ inline uint64_t order_key(double v)
{
    uint64_t u;
    v += 0.0;
    memcpy(&u, &v, sizeof u);
    return v != v ? ~0ull : u >> 63 ? ~u : u | 1ull << 63;
}
static __device__ inline uint64_t order_key(__half v) { return order_key(value_of(v)); }
static __device__ inline uint64_t order_key(__nv_bfloat16 v) { return order_key(value_of(v)); }
static __device__ inline uint64_t order_key(int64_t v) { return (uint64_t)v ^ 1ull << 63; }
static __device__ inline uint64_t order_key(int32_t v) { return (uint32_t)v ^ 0x80000000u; }
static __device__ inline uint64_t order_key(uint8_t v) { return v; }

static __device__ inline uint64_t key_at(const OrderArgs &a, int64_t i)
{
    switch (a.dtype) {
    case TENSOR_F32: return order_key(((const float *)a.x)[i]);
    case TENSOR_F64: return order_key(((const double *)a.x)[i]);
    case TENSOR_F16: return order_key(((const __half *)a.x)[i]);
    case TENSOR_BF16: return order_key(((const __nv_bfloat16 *)a.x)[i]);
    case TENSOR_I64: return order_key(((const int64_t *)a.x)[i]);
    case TENSOR_I32: return order_key(((const int32_t *)a.x)[i]);
    default: return order_key(((const uint8_t *)a.x)[i]);
    }
}

struct OrderCall {
    OrderArgs a;
    int64_t lines, keep;     /* items that stay of a run */
    int64_t chunks, segment; /* of a line; room of each in shared memory, a power of two */
    uint64_t flip, nan;      /* complements keys; the key of NaN, ~0 for integers: none has it */
    bool floats;
    const void *from; /* items [lines][n]: runs of `run`, of which the first keep are there */
    void *to;
    int64_t run;
};

static __device__ inline int64_t first_of_line(const OrderArgs &a, int64_t line, int64_t n)
{
    return line / a.inner * n * a.inner + line % a.inner;
}

static __device__ inline int64_t at_most(int64_t n, int64_t most) { return n < most ? n : most; }

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Sorts `segment` items at a time, side by side. */
template <class Item> __device__ inline void sort_shared(Item *item, int segment)
{
    for (int size = 2; size <= segment; size *= 2)
        for (int apart = size / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (int k = (int)threadIdx.x; k < CHUNK / 2; k += THREADS) {
                const int i = k / apart * 2 * apart + k % apart, j = i + apart;
                const bool up = size == segment || (i & size) == 0;
                const Item x = item[i], y = item[j];
                if (y.before(x) == up) item[i] = y, item[j] = x;
            }
        }
    __syncthreads();
}

template <class Item> __global__ void sort_kernel(OrderCall c)
{
    __shared__ unsigned long long room[CHUNK * sizeof(Item) / 8];
    Item *const item = (Item *)room;
    const int segment = (int)c.segment;
    const int64_t first = blockIdx.x * (CHUNK / c.segment), all = c.lines * c.chunks;
    for (int i = (int)threadIdx.x; i < CHUNK; i += THREADS) {
        int64_t line = first + i / segment;
        const int64_t at = split_off(line, c.chunks) * c.segment + i % segment;
        const bool there = first + i / segment < all && at < c.a.n;
        item[i] = there ? Item::of(key_at(c.a, first_of_line(c.a, line, c.a.n) + at * c.a.inner) ^ c.flip, at)
                        : Item::last();
    }
    sort_shared(item, segment);
    for (int i = (int)threadIdx.x; i < CHUNK; i += THREADS) {
        int64_t line = first + i / segment;
        const int64_t at = split_off(line, c.chunks) * c.segment + i % segment;
        if (first + i / segment < all && at < c.a.n && i % segment < c.keep)
            ((Item *)c.to)[line * c.a.n + at] = item[i];
    }
}

/* ---- merging --------------------------------------------------------------------------------- */

template <class Item> __global__ void merge_kernel(OrderCall c)
{
    const int64_t most = at_most(c.run, c.keep), runs = (c.a.n + c.run - 1) / c.run;
    for (int64_t k = first_item(); k < c.lines * runs * most; k += item_step()) {
        int64_t line = k;
        const int64_t i = split_off(line, most), number = split_off(line, runs), other = number ^ 1;
        const int64_t mine = at_most(at_most(c.a.n - number * c.run, c.run), most);
        const Item *items = (const Item *)c.from + line * c.a.n;
        if (i >= mine) continue;
        const Item me = items[number * c.run + i];
        int64_t low = 0, high = other < runs ? at_most(at_most(c.a.n - other * c.run, c.run), most) : 0;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (items[other * c.run + middle].before(me)) low = middle + 1;
            else high = middle;
        }
        if (i + low < c.keep) ((Item *)c.to)[line * c.a.n + number / 2 * 2 * c.run + i + low] = me;
    }
}

/* ---- results --------------------------------------------------------------------------------- */

static __device__ inline void deliver(const OrderCall &c, int64_t line, int64_t j, int64_t at)
{
    const int64_t from = first_of_line(c.a, line, c.a.n) + at * c.a.inner,
                  to = first_of_line(c.a, line, c.a.m) + j * c.a.inner;
    c.a.indices[to] = at;
    if (!c.a.values) return;
    switch (c.a.dtype) {
    case TENSOR_F64:
    case TENSOR_I64: ((uint64_t *)c.a.values)[to] = ((const uint64_t *)c.a.x)[from]; break;
    case TENSOR_F32:
    case TENSOR_I32: ((uint32_t *)c.a.values)[to] = ((const uint32_t *)c.a.x)[from]; break;
    case TENSOR_F16:
    case TENSOR_BF16: ((uint16_t *)c.a.values)[to] = ((const uint16_t *)c.a.x)[from]; break;
    default: ((uint8_t *)c.a.values)[to] = ((const uint8_t *)c.a.x)[from];
    }
}

template <class Item> __global__ void first_kernel(OrderCall c)
{
    for (int64_t k = first_item(); k < c.lines * c.a.m; k += item_step()) {
        int64_t line = k;
        const int64_t j = split_off(line, c.a.m);
        deliver(c, line, j, ((const Item *)c.from)[line * c.a.n + j].at());
    }
}

/* The first of n items whose key is not less. */
template <class Item> __device__ inline int64_t lower_bound(const Item *item, int64_t n, uint64_t key)
{
    int64_t low = 0;
    while (low < n) {
        const int64_t middle = (low + n) / 2;
        if (item[middle].key() < key) low = middle + 1;
        else n = middle;
    }
    return low;
}

/* ORDER_KTH, ORDER_MEDIAN, ORDER_NANMEDIAN: a thread a line. */
template <class Item> __global__ void one_kernel(OrderCall c)
{
    for (int64_t line = first_item(); line < c.lines; line += item_step()) {
        const Item *item = (const Item *)c.from + line * c.a.n;
        int64_t k = c.a.k - 1;
        if (c.a.kind != ORDER_KTH) {
            const int64_t numbers = c.floats ? lower_bound(item, c.a.n, c.nan) : c.a.n;
            k = numbers ? (numbers - 1) / 2 : 0;
            if (c.a.kind == ORDER_MEDIAN && numbers < c.a.n) k = numbers; /* the first NaN */
        }
        deliver(c, line, 0, item[k].at());
    }
}

struct Longest {
    int64_t run, end; /* where the run's last item is */
};
struct Longer { /* of equal ones the first */
    __device__ inline Longest operator()(Longest a, Longest b) const
    {
        if (a.run != b.run) return a.run > b.run ? a : b;
        return a.end < b.end ? a : b;
    }
};

/* ORDER_MODE: a block a line. */
template <class Item> __global__ void mode_kernel(OrderCall c)
{
    const int64_t line = Together::row(), n = c.a.n;
    const Item *item = (const Item *)c.from + line * n;
    Longest best = { 0, 0 };
    for (int64_t i = Together::rank(); i < n; i += Together::size())
        if (i + 1 == n || item[i + 1].key() != item[i].key())
            best = Longer()(best, Longest{ i + 1 - lower_bound(item, i + 1, item[i].key()), i });
    best = Together::join(best, Longer());
    if (Together::rank() == 0) deliver(c, line, 0, item[best.end].at());
}

/* ---- the whole ------------------------------------------------------------------------------- */

template <class Item> int emit(const OrderCall &c)
{
    if (c.a.kind == ORDER_MODE) {
        auto kernel = &mode_kernel<Item>;
        LAUNCH(kernel, (unsigned)c.lines, THREADS, c);
    } else if (c.a.kind == ORDER_FIRST) {
        auto kernel = &first_kernel<Item>;
        LAUNCH(kernel, gpu_blocks(c.lines * c.a.m), THREADS, c);
    } else {
        auto kernel = &one_kernel<Item>;
        LAUNCH(kernel, gpu_blocks(c.lines), THREADS, c);
    }
    return gpu_launched("order");
}

template <class Item> int order_lines(OrderCall c)
{
    const size_t bytes = (size_t)(c.lines * c.a.n) * sizeof(Item);
    const int64_t segments = c.lines * c.chunks, each = CHUNK / c.segment;
    Scratch one(bytes), two(c.chunks > 1 ? bytes : 1);
    if (!one.data || !two.data) return -1;
    if ((segments + each - 1) / each > INT32_MAX || c.lines > INT32_MAX)
        return gpu_fail("%lld lines to sort: more than a launch has blocks", (long long)c.lines);
    auto sort = &sort_kernel<Item>;
    auto merge = &merge_kernel<Item>;
    c.to = one.data;
    LAUNCH(sort, (unsigned)((segments + each - 1) / each), THREADS, c);
    c.from = one.data, c.to = two.data;
    for (c.run = c.segment; c.run < c.a.n; c.run *= 2) {
        const int64_t runs = (c.a.n + c.run - 1) / c.run, most = c.run < c.keep ? c.run : c.keep;
        LAUNCH(merge, gpu_blocks(c.lines * runs * most), THREADS, c);
        void *const done = c.to;
        c.to = (void *)(uintptr_t)c.from, c.from = done;
    }
    return emit<Item>(c);
}

int gpu_order(OrderArgs *a)
{
    OrderCall c = {};
    c.a = *a, c.lines = a->outer * a->inner, c.segment = 2;
    if (c.lines * a->n == 0 || a->m == 0) return 0;
    while (c.segment < a->n && c.segment < CHUNK) c.segment *= 2;
    c.chunks = (a->n + c.segment - 1) / c.segment;
    c.keep = a->kind == ORDER_FIRST ? a->m : a->kind == ORDER_KTH ? a->k : a->n;
    c.floats = a->dtype <= TENSOR_BF16;
    const bool wide = a->dtype == TENSOR_F64 || a->dtype == TENSOR_I64, words = !wide && a->n < UINT32_MAX;
    c.nan = wide ? ~0ull : 0xffffffffu, c.flip = a->descending ? c.nan : 0;
    return words ? order_lines<Word>(c) : order_lines<Pair>(c);
}

/* ---- search: a bisection a value ------------------------------------------------------------- */

template <class T> __global__ void search_kernel(SearchArgs s)
{
    for (int64_t i = first_item(); i < s.lists * s.values; i += item_step()) {
        const int64_t at = i / s.values * s.n;
        const T *list = (const T *)s.sorted + at, v = ((const T *)s.x)[i];
        int64_t low = 0, high = s.n;
        while (low < high) { /* NaN is not less than anything, and nothing that is no NaN is greater */
            const int64_t middle = (low + high) / 2;
            const T e = list[s.sorter ? s.sorter[at + middle] : middle];
            if (s.right ? !(e > v) : !(e >= v)) low = middle + 1;
            else high = middle;
        }
        s.place[i] = low;
    }
}

int gpu_search(SearchArgs *s)
{
    if (s->lists * s->values == 0) return 0;
    auto kernel = s->dtype == TENSOR_F64 ? &search_kernel<double> : &search_kernel<int64_t>;
    LAUNCH(kernel, gpu_blocks(s->lists * s->values), THREADS, *s);
    return gpu_launched("search");
}
