/* integer_kernel.c - products and folds of integers of 64 bits, for one instruction set. */
#include "integer_kernel.h"
#include "device/device.h"
#if defined __x86_64__ && !defined __AVX2__ && !defined NO_UNROLL /* small code */
#define NO_UNROLL
#endif
#include "cpu/vectors.h"

enum { WIDTH = BYTES / 8, ACROSS = INTEGER_COLS / WIDTH, CHAINS = 4 };

typedef uint64_t V __attribute__((vector_size(BYTES)));
typedef int64_t S __attribute__((vector_size(BYTES)));
typedef uint64_t U __attribute__((vector_size(BYTES), aligned(8), may_alias));

FORCE_INLINE V load(const void *p) { return (V) * (const U *)p; }
FORCE_INLINE void store(void *p, V v) { *(U *)p = (U)v; }
FORCE_INLINE V all(uint64_t x) { return (V){ 0 } + x; }
FORCE_INLINE V choose(S mask, V a, V b) { return ((V)mask & a) | (~(V)mask & b); }

/* ---- products -------------------------------------------------------------------------------- */

void ISA_NAME(integer_tile)(int64_t k, const uint64_t *a, const uint64_t *b, uint64_t *sums)
{
    V s[INTEGER_ROWS][ACROSS];
    UNROLL for (int r = 0; r < INTEGER_ROWS; r++) UNROLL for (int v = 0; v < ACROSS; v++) s[r][v] = all(0);
    for (int64_t p = 0; p < k; p++, a += INTEGER_ROWS, b += INTEGER_COLS)
        UNROLL for (int r = 0; r < INTEGER_ROWS; r++) UNROLL for (int v = 0; v < ACROSS; v++) s[r][v] +=
            all(a[r]) * load(b + v * WIDTH);
    UNROLL for (int r = 0; r < INTEGER_ROWS; r++) UNROLL for (int v = 0; v < ACROSS; v++)
        store(sums + r * INTEGER_COLS + v * WIDTH, s[r][v]);
}

uint64_t ISA_NAME(integer_dot)(int64_t k, const uint64_t *a, const uint64_t *b)
{
    V s[CHAINS];
    uint64_t sum = 0;
    int64_t p = 0;
    UNROLL for (int c = 0; c < CHAINS; c++) s[c] = all(0);
    for (; p + CHAINS * WIDTH <= k; p += CHAINS * WIDTH)
        UNROLL for (int c = 0; c < CHAINS; c++) s[c] += load(a + p + c * WIDTH) * load(b + p + c * WIDTH);
    for (; p < k; p++) sum += a[p] * b[p];
    UNROLL for (int c = 1; c < CHAINS; c++) s[0] += s[c];
    for (int i = 0; i < WIDTH; i++) sum += s[0][i];
    return sum;
}

/* ---- folds ----------------------------------------------------------------------------------- */

FORCE_INLINE V step(int kind, V a, V x)
{
    switch (kind) {
    case REDUCE_SUM: return a + x;
    case REDUCE_PROD: return a * x;
    case REDUCE_MAX: return choose((S)x > (S)a, x, a);
    case REDUCE_MIN: return choose((S)x < (S)a, x, a);
    default: return a - (V)(x != 0);
    }
}

FORCE_INLINE int64_t step1(int kind, int64_t a, int64_t x)
{
    switch (kind) {
    case REDUCE_SUM: return (int64_t)((uint64_t)a + (uint64_t)x);
    case REDUCE_PROD: return (int64_t)((uint64_t)a * (uint64_t)x);
    case REDUCE_MAX: return x > a ? x : a;
    case REDUCE_MIN: return x < a ? x : a;
    default: return a + (x != 0);
    }
}

/* `first` may be folded any number of times. */
FORCE_INLINE int64_t fold(int kind, int64_t first, int64_t start, const int64_t *x, int64_t n)
{
    const int joining = kind == REDUCE_PROD || kind == REDUCE_MAX || kind == REDUCE_MIN ? kind : REDUCE_SUM;
    V s[CHAINS];
    int64_t i = 0;
    if (n >= CHAINS * WIDTH) {
        UNROLL for (int c = 0; c < CHAINS; c++) s[c] = all((uint64_t)first);
        for (; i + CHAINS * WIDTH <= n; i += CHAINS * WIDTH)
            UNROLL for (int c = 0; c < CHAINS; c++) s[c] = step(kind, s[c], load(x + i + c * WIDTH));
        UNROLL for (int c = 1; c < CHAINS; c++) s[0] = step(joining, s[0], s[c]);
        for (int k = 0; k < WIDTH; k++) start = step1(joining, start, (int64_t)s[0][k]);
    }
    for (; i < n; i++) start = step1(kind, start, x[i]);
    return start;
}

FORCE_INLINE void fold_row(int kind, int64_t *columns, const int64_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) store(columns + i, step(kind, load(columns + i), load(x + i)));
    for (; i < n; i++) columns[i] = step1(kind, columns[i], x[i]);
}

int64_t ISA_NAME(integer_fold)(int kind, int64_t start, const int64_t *x, int64_t n)
{
    switch (kind) {
    case REDUCE_SUM: return fold(REDUCE_SUM, 0, start, x, n);
    case REDUCE_PROD: return fold(REDUCE_PROD, 1, start, x, n);
    case REDUCE_MAX: return fold(REDUCE_MAX, INT64_MIN, start, x, n);
    case REDUCE_MIN: return fold(REDUCE_MIN, INT64_MAX, start, x, n);
    default: return fold(REDUCE_COUNT_NONZERO, 0, start, x, n);
    }
}

void ISA_NAME(integer_fold_row)(int kind, int64_t *columns, const int64_t *x, int64_t n)
{
    switch (kind) {
    case REDUCE_SUM: fold_row(REDUCE_SUM, columns, x, n); break;
    case REDUCE_PROD: fold_row(REDUCE_PROD, columns, x, n); break;
    case REDUCE_MAX: fold_row(REDUCE_MAX, columns, x, n); break;
    case REDUCE_MIN: fold_row(REDUCE_MIN, columns, x, n); break;
    default: fold_row(REDUCE_COUNT_NONZERO, columns, x, n); break;
    }
}
