/* gemm_column.h - products of few elements, and of one column, included by gemm_kernel.c after
 * gemm_tile.h for each type T.
 *
 * A tile would leave most lanes idle there.  Long sums are kept in four vectors, short ones are the chain
 * of a tile, with its bits. */

/* Add the products of two contiguous runs of k to four sums. */
static void N(dot)(const T *a, const T *b, int64_t k, VEC sum[4])
{
    int64_t p = 0;
    for (; p + 4 * LANES <= k; p += 4 * LANES)
        UNROLL for (int s = 0; s < 4; s++) sum[s] =
            N(fma)(LOAD(a + p + s * LANES), LOAD(b + p + s * LANES), sum[s]);
    for (; p < k; p += LANES) {
        const MASK mask = N(mask)((int)(k - p < LANES ? k - p : LANES));
        sum[0] = N(fma)(N(get)(a + p, mask), N(get)(b + p, mask), sum[0]);
    }
}

/* `count` <= 4 lines of k values each, contiguous: where they are, or in the copy. */
static void N(lines)(const T *from, int64_t line, int64_t step, int64_t count, int64_t k, T *copy,
                     const T **to)
{
    for (int64_t i = 0; i < count; i++, from += line) {
        to[i] = step == 1 ? from : copy + i * DOT_CHUNK;
        if (step != 1)
            for (int64_t p = 0; p < k; p++) copy[i * DOT_CHUNK + p] = from[p * step];
    }
}

static void N(dots)(const GemmCall *g)
{
    T copy_a[4 * DOT_CHUNK], copy_b[4 * DOT_CHUNK];
    const T *a[4], *b[4];
    VEC sum[16][4];
    memset(sum, 0, sizeof sum);
    for (int64_t p = 0; p < g->k; p += DOT_CHUNK) {
        const int64_t k = g->k - p < DOT_CHUNK ? g->k - p : DOT_CHUNK;
        N(lines)((const T *)g->a + p * g->a_col, g->a_row, g->a_col, g->m, k, copy_a, a);
        N(lines)((const T *)g->b + p * g->b_row, g->b_col, g->b_row, g->n, k, copy_b, b);
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++) N(dot)(a[i], b[j], k, sum[4 * i + j]);
    }
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const VEC v = (sum[4 * i + j][0] + sum[4 * i + j][1]) + (sum[4 * i + j][2] + sum[4 * i + j][3]);
            T *c = (T *)g->c + i * g->c_row + j * g->c_col, total = 0;
            for (int s = 0; s < LANES; s++) total += v[s];
            total *= (T)g->alpha;
            if (g->beta != 0) total += (T)g->beta * *c;
            if (g->bias) total += ((const T *)g->bias)[g->bias_per == GEMM_BIAS_ROW ? j : i];
            *c = total;
        }
}

/* ---- one column ------------------------------------------------------------------------------ */

/* c of rows [i, i + rows), at most a vector of them, from their sums. */
static void N(put_rows)(const GemmCall *g, int64_t i, int rows, VEC y)
{
    T line[LANES] = { 0 }, *c = (T *)g->c + i * g->c_row;
    const MASK mask = N(mask)(rows);
    y *= N(all)((T)g->alpha);
    if (g->beta != 0) {
        for (int r = 0; g->c_row != 1 && r < rows; r++) line[r] = c[r * g->c_row];
        y = N(fma)(N(all)((T)g->beta), g->c_row == 1 ? N(get)(c, mask) : LOAD(line), y);
    }
    if (g->bias && g->bias_per == GEMM_BIAS_ROW) y += N(all)(*(const T *)g->bias);
    else if (g->bias) y += N(get)((const T *)g->bias + i, mask);
    if (g->c_row == 1 && rows == LANES) STORE(c, y);
    else if (g->c_row == 1) N(put)(c, mask, y);
    else {
        STORE(line, y);
        for (int r = 0; r < rows; r++) c[r * g->c_row] = line[r];
    }
}

/* A short k: a chain of k additions for each row. */
FORCE_INLINE void N(chains)(const GemmCall *g, int64_t i, const int rows, T *to)
{
    const T *a = (const T *)g->a + i * g->a_row, *b = g->b;
    T sum[LANES] = { 0 };
    for (int64_t p = 0; p < g->k; p++)
        for (int r = 0; r < rows; r++)
            sum[r] = FUSED(a[r * g->a_row + p * g->a_col], b[p * g->b_row], sum[r]);
    for (int r = 0; r < rows; r++) to[r] = sum[r];
}

static VEC N(chains_across)(const GemmCall *g, int64_t i, int rows)
{
    T line[LANES] = { 0 };
    int r = 0;
    if (rows == LANES) N(chains)(g, i, LANES, line), r = LANES;
    for (; LANES > 4 && r + 4 <= rows; r += 4) N(chains)(g, i + r, 4, line + r);
    for (; r < rows; r++) N(chains)(g, i + r, 1, line + r);
    return LOAD(line);
}

/* Of rows that lie side by side. */
static VEC N(chains_down)(const GemmCall *g, int64_t i, int rows)
{
    const MASK mask = N(mask)(rows);
    const T *a = (const T *)g->a + i, *b = g->b;
    VEC y = { 0 };
    for (int64_t p = 0; p < g->k; p++, a += g->a_col, b += g->b_row)
        y = N(fma)(rows == LANES ? LOAD(a) : N(get)(a, mask), N(all)(*b), y);
    return y;
}

static void N(thin)(const GemmCall *g)
{
    for (int64_t i = 0; i < g->m; i += LANES) {
        const int rows = (int)(g->m - i < LANES ? g->m - i : LANES);
        N(put_rows)(g, i, rows, g->a_row == 1 ? N(chains_down)(g, i, rows) : N(chains_across)(g, i, rows));
    }
}

/* A long k, and rows that lie side by side: lane r of part[q] is what lane q of dot's sums is for row r.
 * Several vectors of rows, so that whole cache lines of a row of memory are read at once. */
FORCE_INLINE void N(dots_down)(const GemmCall *g, int64_t i, int rows, const int vecs)
{
    enum { PARTS = 4 * LANES };
    const T *a = (const T *)g->a + i, *b = g->b;
    const int last = rows - (vecs - 1) * LANES, whole = last == LANES;
    const MASK mask = N(mask)(last);
    const int64_t even = g->k / PARTS * PARTS;
    VEC part[PARTS * 4];
    memset(part, 0, sizeof(VEC) * PARTS * (size_t)vecs);
    for (int64_t p = 0; p < g->k; p++, a += g->a_col) {
        VEC *to = part + vecs * (p < even ? p % PARTS : (p - even) % LANES);
        const VEC x = N(all)(b[p * g->b_row]);
        UNROLL for (int j = 0; j < vecs; j++) to[j] = N(fma)(PART(j, a), x, to[j]);
    }
    for (int j = 0; j < vecs; j++) {
        VEC y = { 0 };
        for (int q = 0; q < LANES; q++) {
            const VEC *at = part + q * vecs + j;
            y += (at[0] + at[LANES * vecs]) + (at[2 * LANES * vecs] + at[3 * LANES * vecs]);
        }
        N(put_rows)(g, i + j * LANES, j < vecs - 1 ? LANES : last, y);
    }
}

static VEC N(dots_across)(const GemmCall *g, int64_t i, int rows)
{
    T copy_a[4 * DOT_CHUNK], copy_b[DOT_CHUNK];
    VEC v[LANES], y = { 0 };
    memset(v, 0, sizeof v);
    for (int r = 0; r < rows; r += 4) {
        const int here = rows - r < 4 ? rows - r : 4;
        const T *a[4], *b;
        VEC sum[4][4];
        memset(sum, 0, sizeof sum);
        for (int64_t p = 0; p < g->k; p += DOT_CHUNK) {
            const int64_t k = g->k - p < DOT_CHUNK ? g->k - p : DOT_CHUNK;
            N(lines)
            ((const T *)g->a + (i + r) * g->a_row + p * g->a_col, g->a_row, g->a_col, here, k, copy_a, a);
            N(lines)((const T *)g->b + p * g->b_row, 0, g->b_row, 1, k, copy_b, &b);
            for (int s = 0; s < here; s++) N(dot)(a[s], b, k, sum[s]);
        }
        for (int s = 0; s < here; s++) v[r + s] = (sum[s][0] + sum[s][1]) + (sum[s][2] + sum[s][3]);
    }
    N(transpose)(v);
    UNROLL for (int q = 0; q < LANES; q++) y += v[q];
    return y;
}

static void N(column)(const GemmCall *g)
{
    int64_t i = 0;
    for (; g->a_row == 1 && i + 4 * LANES <= g->m; i += 4 * LANES) N(dots_down)(g, i, 4 * LANES, 4);
    for (; i < g->m; i += LANES) {
        const int rows = (int)(g->m - i < LANES ? g->m - i : LANES);
        if (g->a_row == 1) N(dots_down)(g, i, rows, 1);
        else N(put_rows)(g, i, rows, N(dots_across)(g, i, rows));
    }
}

#undef N
#undef VEC
#undef UVEC
#undef MASK
