/* attention_halves.cu - attention of f16 and bf16 by tensor cores: a warp has 16 rows of a tile, sums are in
 * f32, and the next tile is fetched while this one is computed.  Scores are in units of log2 e. */
#include "cuda/sequence/attention.cuh"

namespace {

constexpr int WARPS = 4, SIZE = 32 * WARPS, TILE = 16 * WARPS; /* rows of a block */
constexpr float LOG2E = 1.44269504f, LN2 = 0.693147181f;

/* Rows of a tile are LD elements apart: eight of them begin in different banks. */
template <int D> constexpr int LD = D + 8;

__device__ inline int warp_row() { return (int)threadIdx.x / 32 * 16; }
__device__ inline int lane_row() { return (int)threadIdx.x % 32 / 4; } /* and 8 below */
__device__ inline int lane_col() { return (int)threadIdx.x % 4 * 2; }  /* and the next, of each 8 */

/* Rows [first, first + N) to a tile; zeros from row `end` on and behind the width. */
template <int D, int N, class T>
__device__ inline void fetch(T *tile, const Rows<T> &x, int64_t first, int64_t end)
{
    constexpr int CHUNKS = D / 8;
    T zero;
    put(&zero, 0.0f);
    if (x.wide) {
#pragma unroll
        for (int n = 0; n < N * CHUNKS / SIZE; n++) {
            const int i = n * SIZE + (int)threadIdx.x, r = i / CHUNKS, c = i % CHUNKS * 8;
            const bool there = first + r < end && c < x.width;
            copy16(tile + r * LD<D> + c, there ? x.data + (first + r) * x.row + c : x.data, there);
        }
    } else {
        for (int i = (int)threadIdx.x; i < N * D; i += SIZE) {
            const int r = i / D, c = i % D;
            const bool there = first + r < end && c < x.width;
            tile[r * LD<D> + c] = there ? x.data[(first + r) * x.row + c * x.col] : zero;
        }
    }
}

/* acc [16, N] += a tile^T, of a tile [N, D] */
template <int D, int N, class T>
__device__ inline void add_product(float (&acc)[N / 8][4], const unsigned (&a)[D / 16][4], const T *tile)
{
#pragma unroll
    for (int k = 0; k < D / 16; k++)
#pragma unroll
        for (int n = 0; n < N / 8; n += 2) {
            unsigned b[4];
            load_b_transposed<LD<D>>(b, tile, 16 * k, 8 * n);
            mma<T>(acc[n], a[k], b[0], b[1]);
            mma<T>(acc[n + 1], a[k], b[2], b[3]);
        }
}

/* The same, where a is rows of a tile, too. */
template <int D, int N, class T>
__device__ inline void add_tile_product(float (&acc)[N / 8][4], const T *rows, const T *tile)
{
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        unsigned a[4];
        load_a<LD<D>>(a, rows, warp_row(), 16 * k);
#pragma unroll
        for (int n = 0; n < N / 8; n += 2) {
            unsigned b[4];
            load_b_transposed<LD<D>>(b, tile, 16 * k, 8 * n);
            mma<T>(acc[n], a, b[0], b[1]);
            mma<T>(acc[n + 1], a, b[2], b[3]);
        }
    }
}

/* acc [16, D] += p tile, of p [16, N] and a tile [N, D] */
template <int D, int N, class T>
__device__ inline void add_mixture(float (&acc)[D / 8][4], const float (&p)[N / 8][4], const T *tile)
{
#pragma unroll
    for (int k = 0; k < N / 16; k++) {
        const float(&left)[4] = p[2 * k], (&right)[4] = p[2 * k + 1];
        const unsigned a[4] = { pair<T>(left[0], left[1]), pair<T>(left[2], left[3]),
                                pair<T>(right[0], right[1]), pair<T>(right[2], right[3]) };
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            unsigned b[4];
            load_b<LD<D>>(b, tile, 16 * k, 8 * n);
            mma<T>(acc[n], a, b[0], b[1]);
            mma<T>(acc[n + 1], a, b[2], b[3]);
        }
    }
}

/* Rows of all warps, by way of a tile that nobody reads any more, to rows from `first` on, ld apart. */
template <int D, class T>
__device__ inline void store(T *tile, T *to, int64_t first, int64_t rows, int64_t ld, int width,
                             const float (&o)[D / 8][4], const float (&factor)[2])
{
    tile += warp_row() * LD<D>, first += warp_row();
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(PairWord *)(tile + (lane_row() + 8 * h) * LD<D> + 8 * n + lane_col()) =
                pair<T>(times(o[n][2 * h], factor[h]), times(o[n][2 * h + 1], factor[h]));
    __syncwarp();
    const int lane = (int)threadIdx.x % 32, step = width % 8 ? 1 : 8;
    for (int i = lane * step; i < 16 * D; i += 32 * step) {
        const int r = i / D, c = i % D;
        if (first + r >= rows || c >= width) continue;
        const T *from = tile + r * LD<D> + c;
        T *at = to + (first + r) * ld + c;
        if (step == 8) *(Words *)at = *(const Words *)from;
        else *at = *from;
    }
}

/* Fragments of rows [first, first + TILE), by way of `room`. */
template <int D, class T>
__device__ inline void fetch_fragments(unsigned (&a)[D / 16][4], T *room, const Rows<T> &x, int64_t first,
                                       int64_t end)
{
    fetch<D, TILE>(room, x, first, end);
    end_of_copies(), wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < D / 16; k++) load_a<LD<D>>(a[k], room, warp_row(), 16 * k);
    __syncthreads();
}

/* ---- forward --------------------------------------------------------------------------------- */

__device__ inline float most_of_row(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float sum_of_row(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Products of row `row`, and of that 8 below, and of columns from `col` on become scores. */
template <int N>
__device__ inline void score(float (&s)[N / 8][4], const Scores &of, int64_t row, int64_t col)
{
    const bool plain = of.plain(row, col, N);
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n][i] =
                plain ? s[n][i] * of.scale : of(s[n][i], row + i / 2 * 8, col + 8 * n + lane_col() + i % 2);
}

/* Scores become e^(score - shift), o and the sums keep up with the shift. */
template <int D, int N>
__device__ inline void soften(float (&s)[N / 8][4], float (&o)[D / 8][4], float (&most)[2], float (&sum)[2])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float now = most[h];
#pragma unroll
        for (int n = 0; n < N / 8; n++) now = fmaxf(now, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
        now = most_of_row(now);
        const float shift = shift_of(now), fade = exp2f(most[h] - shift);
        most[h] = now, sum[h] *= fade;
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 2 * h; i < 2 * h + 2; i++) sum[h] += s[n][i] = exp2f(s[n][i] - shift);
#pragma unroll
        for (int n = 0; n < D / 8; n++) o[n][2 * h] *= fade, o[n][2 * h + 1] *= fade;
    }
}

template <int N> __device__ inline void drop(float (&p)[N / 8][4], const Scores &of, int64_t row, int64_t col)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (!of.kept(row + i / 2 * 8, col + 8 * n + lane_col() + i % 2)) p[n][i] = 0;
}

template <int D> constexpr size_t forward_room = 2 * TILE *LD<D> * 2;

template <class T, int D> __global__ void __launch_bounds__(SIZE) forward(AttentionCall c)
{
    const AttentionArgs &a = c.a;
    SHARED(T, shared);
    T *const k_tile = shared, *const v_tile = shared + TILE * LD<D>;
    const int64_t blocks = (a.rows + TILE - 1) / TILE, item = blockIdx.x / blocks;
    const int64_t first = (blocks - 1 - blockIdx.x % blocks) * TILE; /* causal: the longest rows first */
    const int64_t row = first + warp_row() + lane_row();
    const int64_t cols = a.causal && first + TILE < a.cols ? first + TILE : a.cols;
    const Rows<T> q = rows_of<T>(a, a.q, item, a.width, c.wide_q),
                  k = rows_of<T>(a, a.k, item, a.width, c.wide_k),
                  v = rows_of<T>(a, a.v, item, a.value_width, c.wide_v);
    const Scores scores(a, item, LOG2E);
    unsigned q_part[D / 16][4];
    fetch_fragments<D>(q_part, shared, q, first, a.rows);
    float o[D / 8][4] = {}, most[2] = { -INFINITY, -INFINITY }, sum[2] = {};
    fetch<D, TILE>(k_tile, k, 0, cols);
    end_of_copies();
    for (int64_t col = 0; col < cols; col += TILE) {
        wait_for_copies<0>();
        __syncthreads();
        fetch<D, TILE>(v_tile, v, col, cols);
        end_of_copies();
        float s[TILE / 8][4] = {};
        add_product<D, TILE>(s, q_part, k_tile);
        __syncthreads(); /* k_tile has been read */
        if (col + TILE < cols) fetch<D, TILE>(k_tile, k, col + TILE, cols);
        end_of_copies();
        score<TILE>(s, scores, row, col);
        soften<D, TILE>(s, o, most, sum);
        if (a.keep) drop<TILE>(s, scores, row, col);
        wait_for_copies<1>();
        __syncthreads();
        add_mixture<D, TILE>(o, s, v_tile);
    }
    wait_for_copies<0>();
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float one = factor_of(sum_of_row(sum[h]));
        const int64_t r = row + 8 * h;
        factor[h] = one == 0 ? 0 : one * (a.keep ? (float)a.keep_factor : 1);
        if (lane_col() > 0 || r >= a.rows) continue;
        ((float *)a.shift)[item * a.rows + r] = shift_of(most[h]) * LN2;
        ((float *)a.factor)[item * a.rows + r] = one;
    }
    store<D>(k_tile, (T *)a.y + begin_of_heads(item, a.heads, a.rows, a.value_width), first, a.rows,
             a.heads * a.value_width, (int)a.value_width, o, factor);
}

/* ---- dq -------------------------------------------------------------------------------------- */

/* p of a score, and ds of p and dp; what of a row is kept of forward, and sum dy y. */
struct Kept {
    float shift, factor, delta;
    __device__ inline float p(float score) const { return factor * exp2f(score - shift); }
};

__device__ inline Kept kept_of(const AttentionCall &c, int64_t item, int64_t row)
{
    const int64_t i = item * c.a.rows + row;
    if (row >= c.a.rows) return { 0, 0, 0 };
    return { ((const float *)c.a.shift)[i] * LOG2E, ((const float *)c.a.factor)[i], c.delta[i] };
}

template <int D> constexpr int COLUMNS = D <= 64 ? 64 : 32;                /* of a tile of dq, rows of dk */
template <int D> constexpr size_t dq_room = 2 * 2 * COLUMNS<D> *LD<D> * 2; /* two stages of k and v */

template <class T, int D> __global__ void __launch_bounds__(SIZE) grad_of_rows(AttentionCall c)
{
    constexpr int N = COLUMNS<D>;
    const AttentionArgs &a = c.a;
    SHARED(T, shared);
    const int64_t blocks = (a.rows + TILE - 1) / TILE, item = blockIdx.x / blocks;
    const int64_t first = (blocks - 1 - blockIdx.x % blocks) * TILE, row = first + warp_row() + lane_row();
    const int64_t cols = a.causal && first + TILE < a.cols ? first + TILE : a.cols;
    const Rows<T> k = rows_of<T>(a, a.k, item, a.width, c.wide_k),
                  v = rows_of<T>(a, a.v, item, a.value_width, c.wide_v);
    const Scores scores(a, item, LOG2E);
    const Kept kept[2] = { kept_of(c, item, row), kept_of(c, item, row + 8) };
    unsigned q_part[D / 16][4], dy_part[D / 16][4];
    fetch_fragments<D>(q_part, shared, rows_of<T>(a, a.q, item, a.width, c.wide_q), first, a.rows);
    fetch_fragments<D>(dy_part, shared, rows_of_heads<T>(a, a.dy, item, a.rows, a.value_width, c.wide_y),
                       first, a.rows);
    const auto tile = [=](int stage, int which) { return shared + (2 * stage + which) * N * LD<D>; };
    const auto fetch_both = [=](int stage, int64_t col) {
        fetch<D, N>(tile(stage, 0), k, col, cols);
        fetch<D, N>(tile(stage, 1), v, col, cols);
    };
    float dq[D / 8][4] = {};
    int stage = 0;
    fetch_both(stage, 0);
    end_of_copies();
    for (int64_t col = 0; col < cols; col += N, stage = 1 - stage) {
        if (col + N < cols) fetch_both(1 - stage, col + N);
        end_of_copies();
        wait_for_copies<1>();
        __syncthreads();
        float s[N / 8][4] = {}, dp[N / 8][4] = {};
        add_product<D, N>(s, q_part, tile(stage, 0));
        add_product<D, N>(dp, dy_part, tile(stage, 1));
        score<N>(s, scores, row, col);
        if (a.keep) drop<N>(dp, scores, row, col);
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float d = a.keep ? dp[n][i] * (float)a.keep_factor : dp[n][i];
                s[n][i] = kept[i / 2].p(s[n][i]) * (d - kept[i / 2].delta);
            }
        add_mixture<D, N>(dq, s, tile(stage, 0));
        __syncthreads();
    }
    wait_for_copies<0>();
    __syncthreads();
    const float factor[2] = { (float)a.scale, (float)a.scale };
    store<D>(shared, (T *)a.dq + begin_of_heads(item, a.heads, a.rows, a.width), first, a.rows,
             a.heads * a.width, (int)a.width, dq, factor);
}

/* ---- dk, dv ---------------------------------------------------------------------------------- */

/* k and v, then two stages of q and dy, then of what is kept of their rows. */
template <int D>
constexpr size_t dk_room = (2 * TILE + 4 * COLUMNS<D>)*LD<D> * 2 + 2 * COLUMNS<D> * sizeof(Kept);

/* A tile of k and v meets the rows of all items that share it, one item behind the other. */
template <class T, int D> __global__ void __launch_bounds__(SIZE) grad_of_columns(AttentionCall c)
{
    constexpr int N = COLUMNS<D>;
    const AttentionArgs &a = c.a;
    SHARED(T, shared);
    T *const k_tile = shared, *const v_tile = shared + TILE * LD<D>,
             *const stages = shared + 2 * TILE * LD<D>;
    Kept *const all_kept = (Kept *)(stages + 4 * N * LD<D>);
    const int64_t blocks = (a.cols + TILE - 1) / TILE, group = blockIdx.x / blocks;
    const int64_t first = blockIdx.x % blocks * TILE, col = first + warp_row() + lane_row();
    const int64_t from = a.causal ? first / N * N : 0; /* the first row that sees any of it */
    const int64_t tiles = a.rows > from ? (a.rows - from + N - 1) / N : 0;
    fetch<D, TILE>(k_tile, rows_of<T>(a, a.k, group * a.share, a.width, c.wide_k), first, a.cols);
    fetch<D, TILE>(v_tile, rows_of<T>(a, a.v, group * a.share, a.value_width, c.wide_v), first, a.cols);
    const auto tile = [=](int stage, int which) { return stages + (2 * stage + which) * N * LD<D>; };
    const auto fetch_rows =
        [&](int stage,
            int64_t i) { /* tile i of the items of the group */
                         const int64_t item = group * a.share + i / tiles, row = from + i % tiles * N;
                         fetch<D, N>(tile(stage, 0), rows_of<T>(a, a.q, item, a.width, c.wide_q), row,
                                     a.rows);
                         fetch<D, N>(tile(stage, 1),
                                     rows_of_heads<T>(a, a.dy, item, a.rows, a.value_width, c.wide_y), row,
                                     a.rows);
                         if (threadIdx.x < N)
                             all_kept[stage * N + threadIdx.x] = kept_of(c, item, row + threadIdx.x);
        };
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    if (tiles > 0) fetch_rows(0, 0);
    end_of_copies();
    for (int64_t i = 0; i < tiles * a.share; i++) {
        const int stage = (int)(i % 2);
        const int64_t row = from + i % tiles * N;
        const Scores scores(a, group * a.share + i / tiles, LOG2E);
        const Kept *const kept = all_kept + stage * N;
        if (i + 1 < tiles * a.share) fetch_rows(1 - stage, i + 1);
        end_of_copies();
        wait_for_copies<1>();
        __syncthreads();
        float p[N / 8][4] = {}, ds[N / 8][4] = {}; /* [columns, rows] here */
        add_tile_product<D, N>(p, k_tile, tile(stage, 0));
        add_tile_product<D, N>(ds, v_tile, tile(stage, 1));
        const bool plain = scores.plain(row, first, TILE);
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int r = 8 * n + lane_col() + j % 2;
                const int64_t at = col + j / 2 * 8;
                const float score = plain ? p[n][j] * scores.scale : scores(p[n][j], row + r, at);
                const bool stays = !a.keep || scores.kept(row + r, at);
                const float dp = !stays ? 0 : a.keep ? ds[n][j] * (float)a.keep_factor : ds[n][j];
                const float one = kept[r].p(score);
                p[n][j] = stays ? one : 0;
                ds[n][j] = one * (dp - kept[r].delta);
            }
        add_mixture<D, N>(dv, p, tile(stage, 1));
        add_mixture<D, N>(dk, ds, tile(stage, 0));
        __syncthreads();
    }
    wait_for_copies<0>();
    __syncthreads();
    const float of_k[2] = { (float)a.scale, (float)a.scale };
    const float of_v[2] = { a.keep ? (float)a.keep_factor : 1, a.keep ? (float)a.keep_factor : 1 };
    const int64_t heads = a.heads > 1 ? a.heads / a.share : 1;
    if (a.dk)
        store<D>(k_tile, (T *)a.dk + begin_of_heads(group, heads, a.cols, a.width), first, a.cols,
                 heads * a.width, (int)a.width, dk, of_k);
    if (a.dv)
        store<D>(v_tile, (T *)a.dv + begin_of_heads(group, heads, a.cols, a.value_width), first, a.cols,
                 heads * a.value_width, (int)a.value_width, dv, of_v);
}

/* ---- launches -------------------------------------------------------------------------------- */

template <class F> int with_half(const AttentionArgs &a, F f)
{
    const bool narrow = a.width <= 64 && a.value_width <= 64;
    if (a.dtype == TENSOR_F16)
        return narrow ? f.template operator()<__half, 64>() : f.template operator()<__half, 128>();
    return narrow ? f.template operator()<__nv_bfloat16, 64>() : f.template operator()<__nv_bfloat16, 128>();
}

} // namespace

int attention_halves(const AttentionCall &c)
{
    return with_half(c.a, [&]<class T, int D>() -> int {
        LAUNCH_SHARED((forward<T, D>), (unsigned)attention_blocks(c.a.batch, c.a.rows, TILE), SIZE,
                      forward_room<D>, c);
        return gpu_launched("attention");
    });
}

int attention_halves_grad(const AttentionCall &c)
{
    return with_half(c.a, [&]<class T, int D>() -> int {
        const int64_t rows = attention_blocks(c.a.batch, c.a.rows, TILE);
        const int64_t cols = attention_blocks(c.a.batch / c.a.share, c.a.cols, TILE);
        if (c.a.dq && rows > 0) {
            LAUNCH_SHARED((grad_of_rows<T, D>), (unsigned)rows, SIZE, dq_room<D>, c);
            if (gpu_launched("attention_grad")) return KERNEL_FAILED;
        }
        if ((c.a.dk || c.a.dv) && cols > 0)
            LAUNCH_SHARED((grad_of_columns<T, D>), (unsigned)cols, SIZE, dk_room<D>, c);
        return gpu_launched("attention_grad");
    });
}
