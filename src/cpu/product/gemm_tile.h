/* gemm_tile.h - the loops of the own product, included by gemm_kernel.c once for each type T.
 *
 * c is made of tiles of at most ROWS x 2 vectors, each held in registers while k runs.  Around them, from the
 * outside: NC columns of b, a block of k, BLOCK_BYTES of a (half of a common L2), a panel of b two vectors
 * wide (in L1), the tiles down the panel.  A panel is packed on its first use, k rows of 2 vectors, zeros
 * past the edge; where few tiles would use it, or b is as narrow as a panel anyway, the tile reads b in
 * place.  a is read in place too, unless its rows fall on the same cache sets or its columns are the
 * contiguous ones.  Packing copies values and so cannot change a bit. */

#define N(name) JOIN(name, TYPE)
#define VEC JOIN3(V, TYPE)
#define UVEC JOIN3(U, TYPE)
#define MASK JOIN3(M, TYPE)
#ifndef JOIN3
#define JOIN3_(a, b) a##b
#define JOIN3(a, b) JOIN3_(a, b)
#define LANES ((int)(BYTES / sizeof(T)))
#define COLS (2 * LANES)
#define LOAD(p) ((VEC) * (const UVEC *)(p))
#define STORE(p, v) (*(UVEC *)(p) = (v))
#define EACH_VECTOR(i, j) UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vecs; j++)
#define PART(j, line) (whole || j < vecs - 1 ? LOAD((line) + j * LANES) : N(get)((line) + j * LANES, mask))
enum { KC = 384, NC = 2048, DIRECT = 8192, PACKED_BYTES = 128, DOT_CHUNK = 1024, AHEAD = 8 };
#endif

typedef struct {
    int64_t k;
    const T *a;
    int64_t a_row, a_col;
    const T *b;
    int64_t b_row;
    T *c;
    int64_t c_row;
    int cols; /* that exist in c; lanes past them are neither read nor written */
    T alpha, beta;
    const T *row_bias, *col_bias; /* one value a column, one value a row */
} N(Tile);

/* One step of k: sum += a's column times b's row. */
FORCE_INLINE void N(step)(VEC *sum, const char **a, int64_t row, int64_t step, const T *b, MASK mask,
                          const int rows, const int vecs, const int whole)
{
    VEC v[8];
    UNROLL for (int j = 0; j < vecs; j++)
    {
        v[j] = PART(j, b);
        PIN(v[j]); /* or gcc loads it again for every row */
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        const VEC x = N(all)(*(const T *)(a[i / 3] + i % 3 * row));
        UNROLL for (int j = 0; j < vecs; j++) sum[i * vecs + j] = N(fma)(x, v[j], sum[i * vecs + j]);
    }
    UNROLL for (int i = 0; i < (rows + 2) / 3; i++) a[i] += step;
}

/* The tile, for constant rows and vecs.  `whole`: all lanes of b may be read and of c written.  `unit`: a_col
 * may be 1: then an unrolled loop finds its steps of a at constant distances (3 % faster); others gain
 * nothing by it. */
FORCE_INLINE void N(tile)(const N(Tile) * t, const int rows, const int vecs, const int whole, const int unit)
{
    VEC sum[ROWS * 2 > 12 ? ROWS * 2 : 12]; /* 12: wide_3's */
    const MASK mask = N(mask)(t->cols - (vecs - 1) * LANES);
    UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] = (VEC){ 0 };

    /* Rows hang in threes on one pointer: base, base + stride, base + 2 stride are x86 addresses. */
    const int64_t row = t->a_row * (int64_t)sizeof(T), step = t->a_col * (int64_t)sizeof(T);
    const char *a[(ROWS + 2) / 3];
    UNROLL for (int i = 0; i < (rows + 2) / 3; i++) a[i] = (const char *)t->a + 3 * i * row;
    const T *b = t->b;
    const int64_t b_row = t->b_row, k = t->k;

    if (k >= 32) /* c is far away, and needed only at the end */
        for (int i = 0; i < rows; i++) {
            __builtin_prefetch(t->c + i * t->c_row, 1);
            if (vecs > 1) __builtin_prefetch(t->c + i * t->c_row + t->cols - 1, 1);
        }

    if (unit && t->a_col == 1) {
        UNROLL_2 for (int64_t p = 0; p < k; p++, b += b_row)
            N(step)(sum, a, row, sizeof(T), b, mask, rows, vecs, whole);
    } else if (whole && !JOIN(UNIT, TYPE)) {
        UNROLL_2 for (int64_t p = 0; p < k; p++, b += b_row)
            N(step)(sum, a, row, step, b, mask, rows, vecs, whole);
    } else
        for (int64_t p = 0; p < k; p++, b += b_row) N(step)(sum, a, row, step, b, mask, rows, vecs, whole);

    /* A pass over the registers for each part of the epilogue: tests for each element took a third of these
     * kernels' code. */
    const VEC alpha = N(all)(t->alpha), beta = N(all)(t->beta);
    UNROLL for (int i = 0; i < rows * vecs; i++) sum[i] *= alpha;
    if (t->beta != 0)
        EACH_VECTOR(i, j) sum[i * vecs + j] = N(fma)(beta, PART(j, t->c + i * t->c_row), sum[i * vecs + j]);
    if (t->row_bias) EACH_VECTOR(i, j) sum[i * vecs + j] += PART(j, t->row_bias);
    if (t->col_bias) EACH_VECTOR(i, j) sum[i * vecs + j] += N(all)(t->col_bias[i]);
    EACH_VECTOR(i, j)
    {
        T *c = t->c + i * t->c_row + j * LANES;
        if (whole || j < vecs - 1) STORE(c, sum[i * vecs + j]);
        else N(put)(c, mask, sum[i * vecs + j]);
    }
}

static N(Tile) N(vector)(const N(Tile) * t, int from)
{
    N(Tile) part = *t;
    part.b += from, part.c += from, part.cols = t->cols - from < LANES ? t->cols - from : LANES;
    if (part.row_bias) part.row_bias += from;
    return part;
}

/* A panel that is not full goes vector by vector: tiles of two, the second one masked, were a quarter of the
 * code and no faster (64 x 20 x 128, 768 x 65 x 128). */
#define TILE(rows)                                                     \
    static void N(tile_##rows)(const N(Tile) * t)                      \
    {                                                                  \
        if (t->cols == COLS) N(tile)(t, rows, 2, 1, JOIN(UNIT, TYPE)); \
        else                                                           \
            for (int j = 0; j < t->cols; j += LANES) {                 \
                const N(Tile) part = N(vector)(t, j);                  \
                N(tile)(&part, rows, 1, 0, 0);                         \
            }                                                          \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if !BASE_OF_X86
TILE(5)
TILE(6)
#endif
#if defined __AVX512F__ || defined __aarch64__
TILE(7)
TILE(8)
#endif
#if defined __aarch64__
TILE(12)
#elif defined __AVX512F__
TILE(14)
#endif
#undef TILE

/* One or two rows leave most accumulators idle: take more columns, when b is read in place. */
static void N(wide_1)(const N(Tile) * t) { N(tile)(t, 1, 8, 1, 0); }
static void N(wide_2)(const N(Tile) * t) { N(tile)(t, 2, 4, 1, 0); }
static void N(wide_3)(const N(Tile) * t) { N(tile)(t, 3, 4, 1, 0); }

typedef void (*N(TileFn))(const N(Tile) *);

/* By rows.  Those between FEW and ROWS, a third of these kernels' code, are made of two. */
static const N(TileFn) N(tiles)[ROWS + 1] = {
    NULL,
    N(tile_1),
    N(tile_2),
    N(tile_3),
    N(tile_4),
#if !BASE_OF_X86
    N(tile_5),
    N(tile_6),
#endif
#if defined __AVX512F__ || defined __aarch64__
    N(tile_7),
    N(tile_8),
#endif
#if defined __aarch64__
    [12] = N(tile_12),
#elif defined __AVX512F__
    [14] = N(tile_14),
#endif
};

/* Half steps of k for so many rows at a time: one row takes a step, but fewer than four wait for their sums.
 * A tile takes half a step besides. */
static int64_t N(steps)(int64_t rows, int64_t tall)
{
    const int64_t rest = rows % tall, last = rest < 4 ? 8 : 2 * rest;
    return rows / tall * (2 * tall + 1) + (rest ? last + 1 + (rest > FEW) : 0);
}

/* Rows a group: one tile, or two halves of one that there is not. */
static int64_t N(tall)(int64_t rows)
{
    const int64_t tiles = (rows + ROWS - 1) / ROWS;
    if (ROWS == FEW || rows <= ROWS) return (rows + tiles - 1) / tiles;
    return N(steps)(rows, FEW) < N(steps)(rows, ROWS) ? FEW : ROWS;
}

/* Rows of the next tile of a group. */
static int N(next)(int64_t left) { return (int)(left <= FEW || left == ROWS ? left : (left + 1) / 2); }

/* Transpose a square: interleaving the halves log2(LANES) times is a transposition. */
FORCE_INLINE void N(transpose)(VEC *r)
{
    VEC t[LANES];
    UNROLL for (int size = 1; size < LANES; size *= 2)
    {
        UNROLL for (int i = 0; i < LANES / 2; i++)
        {
            t[2 * i] = MIX_LOW(r[i], r[i + LANES / 2]);
            t[2 * i + 1] = MIX_HIGH(r[i], r[i + LANES / 2]);
        }
        UNROLL for (int i = 0; i < LANES; i++) r[i] = t[i];
    }
}

/* A square of b whose columns are contiguous: `cols` columns, k < LANES or all, to rows of COLS. */
static void N(pack_square)(const T *b, int64_t b_col, int64_t k, int cols, T *to)
{
    VEC r[LANES];
    if (k < LANES) {
        const MASK mask = N(mask)((int)k);
        UNROLL for (int j = 0; j < LANES; j++) r[j] = j < cols ? N(get)(b + j * b_col, mask) : (VEC){ 0 };
        N(transpose)(r);
        for (int p = 0; p < k; p++) STORE(to + p * COLS, r[p]);
        return;
    }
    if (cols == LANES) {
        UNROLL for (int j = 0; j < LANES; j++) r[j] = LOAD(b + j * b_col);
    } else {
        UNROLL for (int j = 0; j < LANES; j++) r[j] = j < cols ? LOAD(b + j * b_col) : (VEC){ 0 };
    }
    N(transpose)(r);
    UNROLL for (int p = 0; p < LANES; p++) STORE(to + p * COLS, r[p]);
}

/* k rows of one panel, at most COLS columns; the second vector is left alone when one vector will do. */
static void N(pack_panel)(const T *b, int64_t b_row, int64_t b_col, int64_t k, int cols, T *to)
{
    if (b_col == 1 && cols == COLS) {
        for (int64_t p = 0; p < k; p++, b += b_row, to += COLS) {
            STORE(to, LOAD(b));
            STORE(to + LANES, LOAD(b + LANES));
        }
    } else if (b_row == 1) {
        for (int j = 0; j < cols; j += LANES)
            for (int64_t p = 0; p < k; p += LANES) N(pack_square)
        (b + j * b_col + p, b_col, k - p < LANES ? k - p : LANES, cols - j < LANES ? cols - j : LANES,
         to + p * COLS + j);
    } else if (b_col == 1) {
        for (int j = 0; j < cols; j += LANES) {
            const MASK mask = N(mask)(cols - j < LANES ? cols - j : LANES);
            for (int64_t p = 0; p < k; p++) STORE(to + p * COLS + j, N(get)(b + p * b_row + j, mask));
        }
    } else {
        for (int64_t p = 0; p < k; p++, to += COLS)
            for (int j = 0; j < COLS; j++) to[j] = j < cols ? b[p * b_row + j * b_col] : 0;
    }
}

/* The block of a, rows x k, for its tiles: contiguous rows stay rows, at a distance that spreads over the
 * cache sets; anything else becomes k groups of `tall` rows a tile, in the order in which a lies.  Whole
 * vectors are stored, the next group over the end of the last one; behind a tile's last there is room. */
static void N(pack_rows)(const GemmCall *g, const T *a, int64_t rows, int64_t k, int64_t tall, T *to)
{
    if (g->a_col == 1) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + i * (KC + LANES), a + i * g->a_row, (size_t)k * sizeof(T));
        return;
    }
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < rows; i += tall) {
            const int here = (int)(rows - i < tall ? rows - i : tall);
            const T *from = a + i * g->a_row + p * g->a_col;
            T *dest = to + i * (KC + LANES) + p * tall;
            __builtin_prefetch(from + AHEAD * g->a_col); /* 1 to 2 % of a product: lines lie pages apart */
            if (g->a_row != 1)
                for (int r = 0; r < here; r++) dest[r] = from[r * g->a_row];
            else
                for (int r = 0; r < here; r += LANES) {
                    const MASK mask = N(mask)(here - r < LANES ? here - r : LANES);
                    STORE(dest + r, N(get)(from + r, mask));
                }
        }
}

/* How one product is cut: decided once, from the sizes, and for packing from the strides. */
typedef struct {
    int64_t kc, mc, nc;
    int pack_a, pack_b;
    int one_panel; /* all of m in one go: a packed panel is not needed again */
} N(Plan);

/* The length of equal pieces of at most `most`, rounded up to the unit. */
static int64_t N(cut)(int64_t size, int64_t most, int64_t unit)
{
    const int64_t pieces = size <= most ? 1 : (size + most - 1) / most;
    const int64_t even = pieces == 1 ? size : (size + pieces - 1) / pieces;
    return (even + unit - 1) & -unit;
}

static N(Plan) N(plan)(const GemmCall *g)
{
    const int crowded = g->a_row * (int64_t)sizeof(T) % 2048 == 0;
    const int64_t block = BLOCK_BYTES / (KC * (int64_t)sizeof(T));
    return (N(Plan)){
        .kc = N(cut)(g->k, KC, 16),
        .mc = N(cut)(g->m, block, 1),
        .nc = N(cut)(g->n, NC, COLS),
        .pack_a = g->n > 4 * COLS && g->m > 1 && (g->a_col != 1 || crowded),
        .one_panel = g->m <= block,
        .pack_b = g->b_col != 1 ||
                  (g->m > 2 * ROWS && g->n * g->k > DIRECT && g->b_row * (int64_t)sizeof(T) > PACKED_BYTES),
    };
}

/* At least what a product with these or smaller sizes uses: the pieces that threads get are not all equal. */
static size_t N(scratch)(const GemmCall *g)
{
    const N(Plan) plan = N(plan)(g);
    const int64_t block = BLOCK_BYTES / (KC * (int64_t)sizeof(T)), panels = (g->n + COLS - 1) / COLS * COLS;
    int64_t count = 0;
    if (plan.pack_a) count += ((g->m < block ? g->m : block) + ROWS) * (KC + LANES);
    if (plan.pack_b) count += plan.kc * (plan.one_panel ? COLS : panels < NC ? panels : NC);
    return ((size_t)count * sizeof(T) + 63) / 64 * 64;
}

/* Between the copy, rows of COLS, and a c whose columns are contiguous: by squares. */
static void N(flip)(T *c, int64_t c_col, T *copy, int rows, int cols, int load)
{
    for (int i = 0; i < rows; i += LANES)
        for (int j = 0; j < cols; j += LANES) {
            const int high = rows - i < LANES ? rows - i : LANES, wide = cols - j < LANES ? cols - j : LANES;
            const MASK mask = N(mask)(high);
            VEC r[LANES];
            if (load) {
                UNROLL for (int s = 0; s < LANES; s++) r[s] =
                    s < wide ? N(get)(c + i + (j + s) * c_col, mask) : (VEC){ 0 };
                N(transpose)(r);
                for (int s = 0; s < high; s++) STORE(copy + (i + s) * COLS + j, r[s]);
            } else {
                UNROLL for (int s = 0; s < LANES; s++) r[s] =
                    s < high ? LOAD(copy + (i + s) * COLS + j) : (VEC){ 0 };
                N(transpose)(r);
                for (int s = 0; s < wide; s++) N(put)(c + i + (j + s) * c_col, mask, r[s]);
            }
        }
}

/* One tile of a c whose rows are not contiguous: by way of a small copy that is. */
static void N(through_copy)(N(Tile) t, int64_t c_col, int rows)
{
    T copy[(ROWS + LANES) * COLS]; /* whole squares, for flip */
    T *c = t.c;
    const int64_t c_row = t.c_row;
    t.c = copy;
    t.c_row = COLS;
    if (c_row == 1) {
        if (t.beta != 0) N(flip)(c, c_col, copy, rows, t.cols, 1);
        N(tiles)[rows](&t);
        N(flip)(c, c_col, copy, rows, t.cols, 0);
        return;
    }
    if (t.beta != 0)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < t.cols; j++) copy[i * COLS + j] = c[i * c_row + j * c_col];
    N(tiles)[rows](&t);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < t.cols; j++) c[i * c_row + j * c_col] = copy[i * COLS + j];
}

/* The tiles down one panel: `rows` rows of a and c, from those that t points to. */
static void N(down)(N(Tile) t, const GemmCall *g, int64_t rows, int64_t tall, int packed)
{
    const T *a = t.a;
    const int64_t apart = packed ? KC + LANES : g->a_row;
    if (packed && g->a_col != 1) t.a_row = 1, t.a_col = tall;
    else t.a_row = apart;
    for (int64_t i = 0; i < rows; i += tall) {
        t.a = a + i * apart;
        for (int64_t left = rows - i < tall ? rows - i : tall; left > 0;) {
            const int here = N(next)(left);
            if (g->c_col == 1) N(tiles)[here](&t);
            else N(through_copy)(t, g->c_col, here);
            t.a += here * t.a_row;
            t.c += here * g->c_row;
            if (t.col_bias) t.col_bias += here;
            left -= here;
        }
    }
}

/* Up to three rows and b in place: as many wide tiles as fit.  Returns the columns done. */
static int64_t N(across)(N(Tile) t, const GemmCall *g, int64_t cols)
{
    static const N(TileFn) wide[] = { NULL, N(wide_1), N(wide_2), N(wide_3) };
    const int64_t width = (g->m == 1 ? 8 : 4) * LANES;
    int64_t j = 0;
    if (g->m > 3 || g->c_col != 1) return 0;
    for (t.cols = (int)width; j + width <= cols; j += width) {
        wide[g->m](&t);
        t.b += width;
        t.c += width;
        if (t.row_bias) t.row_bias += width;
    }
    return j;
}

/* A block of c, mc x nc at (i, j), gets its products over kc from p on. */
static void N(block)(const GemmCall *g, const N(Plan) * plan, int64_t i, int64_t j, int64_t p, T *scratch)
{
    const int64_t rows = g->m - i < plan->mc ? g->m - i : plan->mc;
    const int64_t cols = g->n - j < plan->nc ? g->n - j : plan->nc;
    const int64_t k = g->k - p < plan->kc ? g->k - p : plan->kc;
    const T *a = (const T *)g->a + i * g->a_row + p * g->a_col;
    const T *b = (const T *)g->b + p * g->b_row + j * g->b_col;
    const T *bias = p == 0 ? g->bias : NULL;
    const int64_t tall = N(tall)(rows);
    T *panels = scratch;
    if (plan->pack_a) {
        N(pack_rows)(g, a, rows, k, tall, scratch);
        a = scratch;
        panels += (plan->mc + ROWS) * (KC + LANES);
    }
    N(Tile)
    t = {
        .k = k,
        .a = a,
        .a_row = g->a_row,
        .a_col = g->a_col,
        .b = b,
        .b_row = g->b_row,
        .c = (T *)g->c + i * g->c_row + j * g->c_col,
        .c_row = g->c_row,
        .alpha = (T)g->alpha,
        .beta = p == 0 ? (T)g->beta : 1,
        .row_bias = bias && g->bias_per == GEMM_BIAS_ROW ? bias + j : NULL,
        .col_bias = bias && g->bias_per == GEMM_BIAS_COLUMN ? bias + i : NULL,
    };
    int64_t done = 0;
    if (!plan->pack_b && !plan->pack_a) done = N(across)(t, g, cols);
    for (int64_t q = done; q < cols; q += COLS) {
        N(Tile) u = t;
        u.cols = (int)(cols - q < COLS ? cols - q : COLS);
        u.c += q * g->c_col;
        if (u.row_bias) u.row_bias += q;
        u.b = b + q * g->b_col;
        if (plan->pack_b) {
            T *panel = plan->one_panel ? panels : panels + q * plan->kc;
            if (i == 0) N(pack_panel)(u.b, g->b_row, g->b_col, k, u.cols, panel);
            u.b = panel;
            u.b_row = COLS;
        }
        N(down)(u, g, rows, tall, plan->pack_a);
    }
}

static void N(run)(const GemmCall *g, void *scratch)
{
    const N(Plan) plan = N(plan)(g);
    for (int64_t j = 0; j < g->n; j += plan.nc)
        for (int64_t p = 0; p < g->k; p += plan.kc)
            for (int64_t i = 0; i < g->m; i += plan.mc) N(block)(g, &plan, i, j, p, scratch);
}
