/* list_table.cu - the tables of list_table.cuh, the last few of them kept.
 *
 * A table is written by kernels that have its words among their parameters: no copy from the host, and
 * nothing that a captured step would read again from memory that has changed. */
#include <new>
#include <stdlib.h>
#include "cuda/list_table.cuh"

namespace {

enum { TABLES = 32 };

struct Kept {
    int64_t *words; /* what the device has */
    void *there;
    size_t size, room; /* in bytes */
    uint64_t used;
};

struct Tables {
    Kept kept[TABLES];
    uint64_t uses;
    int64_t *words; /* the table that is asked for */
    size_t room;
};

/* As many as parameters of a kernel may take: 4 KiB, and 32,764 bytes since CUDA 12.1. */
template <int N> struct Words {
    int64_t word[N];
};
enum { FEW = 480, MANY = 4000 };

template <int N> __global__ void write(int64_t *to, int n, Words<N> from)
{
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) to[i] = from.word[i];
}

template <int N> int write_all(int64_t *to, const int64_t *words, int64_t n)
{
    for (int64_t at = 0; at < n; at += N) {
        Words<N> some;
        const int64_t rest = n - at < N ? n - at : N;
        memcpy(some.word, words + at, (size_t)rest * sizeof *words);
        LAUNCH((write<N>), 1, THREADS, to + at, (int)rest, some);
        if (gpu_launched("a table of arrays")) return -1;
    }
    return 0;
}

bool takes_many()
{
    static const bool many = [] {
        int driver = 0;
        return CUDART_VERSION >= 12010 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12010;
    }();
    return many;
}

/* What the table holds: first, the counts, the addresses.  The blocks, or -1 without memory. */
int64_t make_words(Tables *t, const ListOf &of, size_t size)
{
    if (size > t->room) {
        void *more = realloc(t->words, size);
        if (!more) return gpu_fail("out of memory");
        t->words = (int64_t *)more, t->room = size;
    }
    int64_t *first = t->words, *count = first + of.n + 1, blocks = 0;
    for (int64_t i = 0; i < of.n; i++) {
        first[i] = blocks, count[i] = of.count[i];
        blocks += (of.count[i] + of.chunk - 1) / of.chunk;
    }
    first[of.n] = blocks;
    memcpy(count + of.n, of.array, (size_t)(of.n * of.each) * sizeof *of.array);
    return blocks < 1ll << 31 ? blocks : gpu_fail("%lld blocks are too many", (long long)blocks);
}

int make_room(Kept *k, size_t size)
{
    if (size <= k->room) return 0;
    if (k->there) gpu_free(k->there, k->room);
    k->there = nullptr, k->room = 0;
    void *words = realloc(k->words, size);
    if (!words) return gpu_fail("out of memory");
    k->words = (int64_t *)words;
    k->there = gpu_alloc_lasting(size);
    if (!k->there) return -1;
    k->room = size;
    return 0;
}

int fill(Kept *k, const int64_t *words, size_t size)
{
    const int64_t n = (int64_t)(size / sizeof *words);
    k->size = 0;
    if (make_room(k, size)) return -1;
    int64_t *to = (int64_t *)k->there;
    if (n > FEW && takes_many() ? write_all<MANY>(to, words, n) : write_all<FEW>(to, words, n)) return -1;
    memcpy(k->words, words, size);
    k->size = size;
    return 0;
}

/* The one that has these words, or else the one that was not used for longest, filled with them. */
Kept *find(Tables *t, size_t size)
{
    Kept *oldest = t->kept;
    for (Kept &k : t->kept) {
        if (k.size == size && memcmp(k.words, t->words, size) == 0) return &k;
        if (k.used < oldest->used) oldest = &k;
    }
    return fill(oldest, t->words, size) ? nullptr : oldest;
}

} // namespace

void gpu_free_list_tables(void **slot)
{
    Tables *t = (Tables *)*slot;
    for (int i = 0; t && i < TABLES; i++) {
        if (t->kept[i].there) gpu_free(t->kept[i].there, t->kept[i].room);
        free(t->kept[i].words);
    }
    if (t) free(t->words);
    delete t;
    *slot = nullptr;
}

bool gpu_list_table(const ListOf &of, ListTable *table)
{
    void **slot = gpu_list_tables();
    if (!*slot) *slot = new (std::nothrow) Tables();
    Tables *t = (Tables *)*slot;
    if (!t) return gpu_fail("out of memory"), false;
    const size_t size = (size_t)(2 * of.n + 1 + of.n * of.each) * sizeof(int64_t);
    const int64_t blocks = make_words(t, of, size);
    Kept *k = blocks < 0 ? nullptr : find(t, size);
    if (!k) return false;
    k->used = ++t->uses;
    const int64_t *words = (const int64_t *)k->there;
    *table = { words, words + of.n + 1, (void *const *)(words + 2 * of.n + 1), of.n, (unsigned)blocks };
    return true;
}
