/* sort_lines.c - order along the middle of [outer, n, inner]: sort, topk, kthvalue, median, mode.
 *
 * Every element becomes a key whose unsigned order is the order wanted, complemented for descending: 32 bits
 * in one word with its place, or 64 bits beside it (f64, i64 of a range of 2^32, and lines of 2^32 elements).
 * Equal elements keep their order.  Values are then fetched by place.  A line is one thread's work. */
#include "cpu/cpu.h"
#include "cpu/integer_kernel.h"
#include "order_key.h"

typedef struct Pair {
    uint64_t key;
    int64_t at;
} Pair;

/* Lists below RADIX are merged; of up to FEW firsts a sorted list is kept. */
enum { INSERTION = 12, RADIX = 160, FEW = 32 };

#define N(name) name##_pairs
#define ITEM Pair
#define KEY(x) ((x).key)
#define AT(x) ((x).at)
#define NAN_KEY ORDER_NAN
#define BITS 64
#include "sort_list.h"
#undef N
#undef ITEM
#undef KEY
#undef AT
#undef NAN_KEY
#undef BITS
#define N(name) name##_words
#define ITEM uint64_t
#define KEY(x) ((x) >> 32)
#define AT(x) ((int64_t)((x)&UINT32_MAX))
#define NAN_KEY UINT32_MAX
#define BITS 32
#include "sort_list.h"

/* ---- items ----------------------------------------------------------------------------------- */

static uint32_t key_of_f32(float v)
{
    uint32_t u;
    v += 0; /* -0 becomes 0 */
    memcpy(&u, &v, sizeof u);
    return v != v ? UINT32_MAX : u ^ ((uint32_t)((int32_t)u >> 31) | (uint32_t)1 << 31);
}

static uint32_t key32(const void *x, int dtype, int64_t i)
{
    switch (dtype) {
    case TENSOR_F16: return key_of_f32(f16_to_f32(((const uint16_t *)x)[i]));
    case TENSOR_BF16: return key_of_f32(bf16_to_f32(((const uint16_t *)x)[i]));
    case TENSOR_I32: return (uint32_t)((const int32_t *)x)[i] ^ (uint32_t)1 << 31;
    default: return ((const uint8_t *)x)[i];
    }
}

static void make_words(const OrderArgs *a, int64_t from, uint64_t *p)
{
    const uint32_t flip = a->descending ? UINT32_MAX : 0;
    const float *x = (const float *)a->x + from;
    if (a->dtype == TENSOR_F32)
        for (int64_t i = 0; i < a->n; i++)
            p[i] = (uint64_t)(key_of_f32(x[i * a->inner]) ^ flip) << 32 | (uint64_t)i;
    else
        for (int64_t i = 0; i < a->n; i++)
            p[i] = (uint64_t)(key32(a->x, a->dtype, from + i * a->inner) ^ flip) << 32 | (uint64_t)i;
}

/* Of i64 whose range is small: what each is above the least, with the highest bit of the range in front,
 * where a selection begins. */
static bool make_narrow(const OrderArgs *a, int64_t from, uint64_t *p)
{
    const uint32_t flip = a->descending ? UINT32_MAX : 0;
    if (a->dtype != TENSOR_I64 || a->n >= UINT32_MAX) return false;
    const int64_t *x = (const int64_t *)a->x + from;
    int64_t low = *x, high = *x;
    if (a->inner == 1)
        low = ISA_PICK(integer_fold)(REDUCE_MIN, low, x, a->n),
        high = ISA_PICK(integer_fold)(REDUCE_MAX, high, x, a->n);
    else
        for (int64_t i = 1; i < a->n; i++) {
            const int64_t v = x[i * a->inner];
            low = v < low ? v : low, high = v > high ? v : high;
        }
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    if (range > UINT32_MAX) return false;
    const int up = range ? __builtin_clz((uint32_t)range) : 0;
    for (int64_t i = 0; i < a->n; i++) {
        const uint32_t above = (uint32_t)((uint64_t)x[i * a->inner] - (uint64_t)low);
        p[i] = (uint64_t)(above << up ^ flip) << 32 | (uint64_t)i;
    }
    return true;
}

static void make_pairs(const OrderArgs *a, int64_t from, Pair *p)
{
    for (int64_t i = 0; i < a->n; i++) {
        const uint64_t key = order_key(a->x, a->dtype, from + i * a->inner);
        p[i] = (Pair){ a->descending ? ~key : key, i };
    }
}

/* The first m <= FEW of a line of f64 or i64, sorted, without a list of the others: most are compared with
 * the last of the best so far, and passed over.  A NaN is not, nor anything beside one. */
#define FIRST_FEW(T, name)                                                                           \
    static void name(const OrderArgs *a, const T *x, Pair *p)                                        \
    {                                                                                                \
        const int64_t m = a->m, step = a->inner;                                                     \
        const uint64_t flip = a->descending ? UINT64_MAX : 0;                                        \
        for (int64_t i = 0; i < m; i++) p[i] = (Pair){ order_key(x, a->dtype, i * step) ^ flip, i }; \
        insertion_pairs(p, m);                                                                       \
        T last = x[p[m - 1].at * step];                                                              \
        for (int64_t i = m; i < a->n; i++) {                                                         \
            const T v = x[i * step];                                                                 \
            if (likely(a->descending ? v <= last : v >= last)) continue;                             \
            const Pair next = { order_key(x, a->dtype, i * step) ^ flip, i };                        \
            if (next.key >= p[m - 1].key) continue;                                                  \
            insert_pairs(p, m - 1, next);                                                            \
            last = x[p[m - 1].at * step];                                                            \
        }                                                                                            \
    }
FIRST_FEW(double, few_f64)
FIRST_FEW(int64_t, few_i64)

static bool first_few(const OrderArgs *a, int64_t from, Pair *p, int64_t *index)
{
    if (a->kind != ORDER_FIRST || a->m > FEW || a->m > a->n / 2) return false;
    if (a->dtype == TENSOR_F64) few_f64(a, (const double *)a->x + from, p);
    else if (a->dtype == TENSOR_I64) few_i64(a, (const int64_t *)a->x + from, p);
    else return false;
    for (int64_t i = 0; i < a->m; i++) index[i] = p[i].at;
    return true;
}

/* ---- all lines ------------------------------------------------------------------------------- */

FORCE_INLINE void fetch(const OrderArgs *a, int64_t to, int64_t from, const int64_t *index, size_t size)
{
    for (int64_t j = 0; j < a->m; j++)
        memcpy((char *)a->values + (size_t)(to + j * a->inner) * size,
               (const char *)a->x + (size_t)(from + index[j] * a->inner) * size, size);
}

static void put(const OrderArgs *a, int64_t line, int64_t from, const int64_t *index)
{
    const int64_t inner = a->inner, to = line / inner * a->m * inner + line % inner;
    for (int64_t j = 0; j < a->m; j++) a->indices[to + j * inner] = index[j];
    if (!a->values) return;
    switch (dtype_size(a->dtype)) {
    case 1: fetch(a, to, from, index, 1); break;
    case 2: fetch(a, to, from, index, 2); break;
    case 4: fetch(a, to, from, index, 4); break;
    default: fetch(a, to, from, index, 8); break;
    }
}

typedef struct Sorting {
    const OrderArgs *a;
    char *all;
    bool words;
    size_t items, scratch; /* bytes of one thread: the line's items, as many to merge into, and m indices */
} Sorting;

static void order_line(void *ctx, int64_t line)
{
    const Sorting *s = ctx;
    const OrderArgs *a = s->a;
    const int64_t from = line / a->inner * a->n * a->inner + line % a->inner;
    void *p = s->all + (size_t)parallel_slot() * s->scratch;
    int64_t *index = (int64_t *)(void *)((char *)p + 2 * s->items);
    if (s->words) make_words(a, from, p), pick_words(a, p, index);
    else if (first_few(a, from, p, index)) (void)0;
    else if (make_narrow(a, from, p)) pick_words(a, p, index);
    else make_pairs(a, from, p), pick_pairs(a, p, index);
    put(a, line, from, index);
}

int cpu_order(OrderArgs *a)
{
    const int64_t lines = a->outer * a->inner;
    if (lines == 0 || a->m == 0) return 0;
    Sorting s = { a, .words = a->dtype != TENSOR_F64 && a->dtype != TENSOR_I64 && a->n < UINT32_MAX };
    s.items = (size_t)a->n * (s.words ? sizeof(uint64_t) : sizeof(Pair));
    s.scratch = 2 * s.items + (size_t)a->m * sizeof(int64_t);
    int threads = cpu_threads(lines * a->n * 32);
    if (threads > lines) threads = (int)lines;
    s.all = tg_alloc((size_t)threads * s.scratch);
    if (!s.all) return fail_memory("order");
    parallel_for(lines, threads, order_line, &s);
    tg_free(s.all, (size_t)threads * s.scratch);
    return 0;
}
