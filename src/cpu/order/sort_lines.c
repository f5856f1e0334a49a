/* sort_lines.c - order along the middle of [outer, n, inner]: sort, topk, kthvalue, median, mode.
 *
 * Every element becomes a key whose unsigned order is the order wanted (order_key.h), complemented for
 * descending.  (key, index) pairs are merged, so equal elements keep their order.  Values are then fetched by
 * index, whatever their dtype.  A line is one thread's work. */
#include "cpu/cpu.h"
#include "order_key.h"

typedef struct Pair {
    uint64_t key;
    int64_t at;
} Pair;

enum { INSERTION = 12 };

/* ---- ordering -------------------------------------------------------------------------------- */

static void merge(const Pair *a, int64_t n, const Pair *b, int64_t m, Pair *to)
{
    int64_t i = 0, j = 0;
    while (i < n && j < m) {
        bool second = b[j].key < a[i].key;
        *to++ = second ? b[j] : a[i];
        j += second, i += !second;
    }
    memcpy(to, a + i, (size_t)(n - i) * sizeof *to);
    memcpy(to + (n - i), b + j, (size_t)(m - j) * sizeof *to);
}

static void insertion(Pair *p, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        Pair x = p[i];
        int64_t j = i;
        for (; j > 0 && p[j - 1].key > x.key; j--) p[j] = p[j - 1];
        p[j] = x;
    }
}

/* Runs of INSERTION, then merged in pairs from one array to the other and back. */
static void sort_pairs(Pair *p, Pair *spare, int64_t n)
{
    Pair *from = p, *to = spare;
    for (int64_t i = 0; i < n; i += INSERTION) insertion(p + i, n - i < INSERTION ? n - i : INSERTION);
    for (int64_t run = INSERTION; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            int64_t a = n - i < run ? n - i : run, b = n - i - a < run ? n - i - a : run;
            merge(from + i, a, from + i + a, b, to + i);
        }
        Pair *t = from;
        from = to, to = t;
    }
    if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
}

static bool before(Pair a, Pair b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }

static void sift(Pair *heap, int64_t i, int64_t n)
{
    Pair x = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && before(heap[child], heap[child + 1]);
        if (!before(x, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

/* Puts the first k of the order, sorted, to the front: by a heap of the best so far when they are few. */
static void first_pairs(Pair *p, Pair *spare, int64_t n, int64_t k)
{
    if (k > n / 8) {
        sort_pairs(p, spare, n);
        return;
    }
    for (int64_t i = k / 2 - 1; i >= 0; i--) sift(p, i, k);
    for (int64_t i = k; i < n && k > 0; i++)
        if (before(p[i], p[0])) p[0] = p[i], sift(p, 0, k);
    for (int64_t i = k - 1; i > 0; i--) {
        Pair x = p[0];
        p[0] = p[i], p[i] = x;
        sift(p, 0, i);
    }
}

/* ---- picks ----------------------------------------------------------------------------------- */

static int64_t kth(Pair *p, Pair *spare, int64_t n, int64_t k)
{
    first_pairs(p, spare, n, k);
    return p[k - 1].at;
}

static int64_t median(Pair *p, Pair *spare, int64_t n, bool floats)
{
    for (int64_t i = 0; floats && i < n; i++)
        if (p[i].key == ORDER_NAN) return p[i].at;
    return kth(p, spare, n, (n - 1) / 2 + 1);
}

/* NaNs come last in the order. */
static int64_t nanmedian(Pair *p, Pair *spare, int64_t n, bool floats)
{
    int64_t numbers = 0;
    for (int64_t i = 0; i < n; i++) numbers += !floats || p[i].key != ORDER_NAN;
    return kth(p, spare, n, numbers ? (numbers - 1) / 2 + 1 : 1);
}

static int64_t mode(Pair *p, Pair *spare, int64_t n)
{
    int64_t run = 0, longest = 0, at = 0;
    sort_pairs(p, spare, n);
    for (int64_t i = 0; i < n; i++) {
        run = i && p[i].key == p[i - 1].key ? run + 1 : 1;
        bool last = i + 1 == n || p[i + 1].key != p[i].key;
        if (last && run > longest) longest = run, at = p[i].at;
    }
    return at;
}

/* Which m of a line's n elements are the result. */
static void pick(const OrderArgs *a, Pair *p, int64_t *index)
{
    Pair *spare = p + a->n;
    const bool floats = dtype_is_float(a->dtype);
    switch (a->kind) {
    case ORDER_FIRST:
        first_pairs(p, spare, a->n, a->m);
        for (int64_t i = 0; i < a->m; i++) index[i] = p[i].at;
        break;
    case ORDER_KTH: *index = kth(p, spare, a->n, a->k); break;
    case ORDER_MEDIAN: *index = median(p, spare, a->n, floats); break;
    case ORDER_NANMEDIAN: *index = nanmedian(p, spare, a->n, floats); break;
    default: *index = mode(p, spare, a->n); break;
    }
}

/* ---- all lines ------------------------------------------------------------------------------- */

static void fetch(const OrderArgs *a, int64_t line, int64_t from, const int64_t *index)
{
    const size_t size = dtype_size(a->dtype);
    const int64_t inner = a->inner, to = line / inner * a->m * inner + line % inner;
    for (int64_t j = 0; j < a->m; j++) {
        a->indices[to + j * inner] = index[j];
        if (a->values)
            memcpy((char *)a->values + (size_t)(to + j * inner) * size,
                   (const char *)a->x + (size_t)(from + index[j] * inner) * size, size);
    }
}

typedef struct Sorting {
    const OrderArgs *a;
    Pair *all;
    int64_t scratch; /* pairs of one thread: the line's, as many to merge into, and m indices */
} Sorting;

static void order_line(void *ctx, int64_t line)
{
    const Sorting *s = ctx;
    const OrderArgs *a = s->a;
    const int64_t from = line / a->inner * a->n * a->inner + line % a->inner;
    Pair *p = s->all + parallel_slot() * s->scratch;
    int64_t *index = (int64_t *)(p + 2 * a->n);
    for (int64_t i = 0; i < a->n; i++) {
        const uint64_t key = order_key(a->x, a->dtype, from + i * a->inner);
        p[i] = (Pair){ a->descending ? ~key : key, i };
    }
    pick(a, p, index);
    fetch(a, line, from, index);
}

int cpu_order(OrderArgs *a)
{
    const int64_t lines = a->outer * a->inner, scratch = 2 * a->n + (a->m + 1) / 2;
    if (lines == 0 || a->m == 0) return 0;
    int threads = cpu_threads(lines * a->n * 32);
    if (threads > lines) threads = (int)lines;
    const size_t bytes = (size_t)threads * (size_t)scratch * sizeof(Pair);
    Pair *all = tg_alloc(bytes);
    if (!all) return fail_memory("order");
    parallel_for(lines, threads, order_line, &(Sorting){ a, all, scratch });
    tg_free(all, bytes);
    return 0;
}
