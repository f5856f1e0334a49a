/* sort_list.h - lists of ITEMs in the order of their KEY, a number of BITS bits; sort_lines.c includes it
 * once for items that hold a key of 32 bits and their place in one word, once for pairs.  Items come in the
 * order of their places, and equal ones keep it. */

/* x into the sorted p[0 ... n), behind those that are equal; p[n] is overwritten. */
static inline void N(insert)(ITEM *p, int64_t n, ITEM x)
{
    for (; n > 0 && KEY(p[n - 1]) > KEY(x); n--) p[n] = p[n - 1];
    p[n] = x;
}

static void N(insertion)(ITEM *p, int64_t n)
{
    for (int64_t i = 1; i < n; i++) N(insert)(p, i, p[i]);
}

static void N(merge)(const ITEM *a, int64_t n, const ITEM *b, int64_t m, ITEM *to)
{
    int64_t i = 0, j = 0;
    while (i < n && j < m) {
        const bool second = KEY(b[j]) < KEY(a[i]);
        *to++ = second ? b[j] : a[i];
        j += second, i += !second;
    }
    memcpy(to, a + i, (size_t)(n - i) * sizeof *to);
    memcpy(to + (n - i), b + j, (size_t)(m - j) * sizeof *to);
}

/* Runs of INSERTION, then merged in pairs from one array to the other and back: for short lists. */
static void N(by_merging)(ITEM *p, ITEM *spare, int64_t n)
{
    ITEM *from = p, *to = spare;
    for (int64_t i = 0; i < n; i += INSERTION) N(insertion)(p + i, n - i < INSERTION ? n - i : INSERTION);
    for (int64_t run = INSERTION; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            const int64_t a = n - i < run ? n - i : run, b = n - i - a < run ? n - i - a : run;
            N(merge)(from + i, a, from + i + a, b, to + i);
        }
        ITEM *t = from;
        from = to, to = t;
    }
    if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
}

/* Byte by byte from the lowest, each pass from one array to the other; a byte that all share is left out.  10
 * to 20 times as fast as merging on long lists. */
static void N(by_radix)(ITEM *p, ITEM *spare, int64_t n)
{
    enum { BYTES = BITS / 8 };
    int64_t count[BYTES][256] = { { 0 } };
    ITEM *from = p, *to = spare;
    for (int64_t i = 0; i < n; i++)
        for (int b = 0; b < BYTES; b++) count[b][KEY(p[i]) >> (8 * b) & 255]++;
    for (int b = 0; b < BYTES; b++) {
        int64_t *at = count[b], before = 0;
        if (at[KEY(*p) >> (8 * b) & 255] == n) continue;
        for (int k = 0; k < 256; k++) {
            const int64_t here = at[k];
            at[k] = before, before += here;
        }
        for (int64_t i = 0; i < n; i++) to[at[KEY(from[i]) >> (8 * b) & 255]++] = from[i];
        ITEM *t = from;
        from = to, to = t;
    }
    if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
}

static void N(sort)(ITEM *p, ITEM *spare, int64_t n)
{
    if (n < RADIX) N(by_merging)(p, spare, n);
    else N(by_radix)(p, spare, n);
}

/* The item of rank k, from 0 on; p stays as it is.  Some bits at a time from the highest, only those items
 * are looked at again that share these bits with the one wanted. */
static ITEM N(select)(const ITEM *p, ITEM *spare, int64_t n, int64_t k)
{
    const int bits = n < 4096 ? 8 : 11; /* of fewer items few counts are looked at */
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    const ITEM *from = p;
    for (int shift = BITS - bits; n > INSERTION; shift = shift > bits ? shift - bits : 0) {
        int64_t count[1 << 11], before = 0, m = 0;
        memset(count, 0, sizeof *count << bits);
        for (int64_t i = 0; i < n; i++) count[KEY(from[i]) >> shift & mask]++;
        uint64_t digit = 0;
        while (before + count[digit] <= k) before += count[digit++];
        for (int64_t i = 0; i < n; i++) {
            spare[m] = from[i];
            m += (KEY(from[i]) >> shift & mask) == digit;
        }
        from = spare, n = m, k -= before;
        if (shift == 0) return from[k];
    }
    memmove(spare, from, (size_t)n * sizeof *p);
    N(insertion)(spare, n);
    return spare[k];
}

/* Puts the first k of the order, sorted, to the front. */
static void N(first)(ITEM *p, ITEM *spare, int64_t n, int64_t k)
{
    if (k == 0) return;
    if (k > n / 2) {
        N(sort)(p, spare, n);
        return;
    }
    if (k <= FEW) { /* a sorted list of the best so far, which seldom changes */
        N(insertion)(p, k);
        for (int64_t i = k; i < n; i++)
            if (unlikely(KEY(p[i]) < KEY(p[k - 1]))) N(insert)(p, k - 1, p[i]);
        return;
    }
    const ITEM last = N(select)(p, spare, n, k - 1);
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++)
        if (KEY(p[i]) < KEY(last) || (KEY(p[i]) == KEY(last) && AT(p[i]) <= AT(last))) p[m++] = p[i];
    N(sort)(p, spare, m);
}

/* ---- picks: the place of one item ------------------------------------------------------------ */

static int64_t N(kth)(ITEM *p, ITEM *spare, int64_t n, int64_t k)
{
    return AT(N(select)(p, spare, n, k - 1));
}

static int64_t N(median)(ITEM *p, ITEM *spare, int64_t n, bool floats)
{
    for (int64_t i = 0; floats && i < n; i++)
        if (KEY(p[i]) == NAN_KEY) return AT(p[i]);
    return N(kth)(p, spare, n, (n - 1) / 2 + 1);
}

/* NaNs come last in the order. */
static int64_t N(nanmedian)(ITEM *p, ITEM *spare, int64_t n, bool floats)
{
    int64_t numbers = 0;
    for (int64_t i = 0; i < n; i++) numbers += !floats || KEY(p[i]) != NAN_KEY;
    return N(kth)(p, spare, n, numbers ? (numbers - 1) / 2 + 1 : 1);
}

static int64_t N(mode)(ITEM *p, ITEM *spare, int64_t n)
{
    int64_t run = 0, longest = 0, at = 0;
    N(sort)(p, spare, n);
    for (int64_t i = 0; i < n; i++) {
        run = i && KEY(p[i]) == KEY(p[i - 1]) ? run + 1 : 1;
        const bool last = i + 1 == n || KEY(p[i + 1]) != KEY(p[i]);
        if (last && run > longest) longest = run, at = AT(p[i]);
    }
    return at;
}

/* Which m of a line's n elements are the result. */
static void N(pick)(const OrderArgs *a, ITEM *p, int64_t *index)
{
    ITEM *spare = p + a->n;
    const bool floats = dtype_is_float(a->dtype);
    switch (a->kind) {
    case ORDER_FIRST:
        N(first)(p, spare, a->n, a->m);
        for (int64_t i = 0; i < a->m; i++) index[i] = AT(p[i]);
        break;
    case ORDER_KTH: *index = N(kth)(p, spare, a->n, a->k); break;
    case ORDER_MEDIAN: *index = N(median)(p, spare, a->n, floats); break;
    case ORDER_NANMEDIAN: *index = N(nanmedian)(p, spare, a->n, floats); break;
    default: *index = N(mode)(p, spare, a->n); break;
    }
}
