/* attention_f32.cu - attention of f32 by multiplications and additions in f32.
 *
 * A block has SIDE x SIDE threads and tiles of TILE rows and TILE columns; thread (ty, tx) has the rows ty +
 * SIDE i and the columns tx + SIDE j of scores, and of what is summed over them the columns 4 tx + 4 SIDE e
 * and the three behind.  A row of scores belongs to one warp. */
#include "cuda/sequence/attention.cuh"

namespace {

constexpr int SIDE = 8, EACH = 4, TILE = SIDE * EACH, SIZE = SIDE * SIDE, SCORES_LD = TILE + 4;
template <int D> constexpr int LD = D + 4;
template <int D> constexpr int PARTS = D / (4 * SIDE);
template <int D> constexpr int TILE_SIZE = TILE *LD<D>;

struct alignas(16) Four {
    float v[4];
};

__device__ inline int ty() { return (int)threadIdx.x / SIDE; }
__device__ inline int tx() { return (int)threadIdx.x % SIDE; }

/* Rows [first, first + TILE) to a tile; zeros from row `end` on and behind the width. */
template <int D> __device__ inline void fetch(float *tile, const Rows<float> &x, int64_t first, int64_t end)
{
    if (x.wide)
#pragma unroll 2
        for (int n = 0; n < TILE * D / 4 / SIZE; n++) {
            const int i = n * SIZE + (int)threadIdx.x, r = i / (D / 4), c = i % (D / 4) * 4;
            const bool there = first + r < end && c < x.width;
            *(Four *)(tile + r * LD<D> + c) =
                there ? *(const Four *)(x.data + (first + r) * x.row + c) : Four{ { 0, 0, 0, 0 } };
        }
    else
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < TILE * D; i += SIZE) {
            const int r = i / D, c = i % D;
            const bool there = first + r < end && c < x.width;
            tile[r * LD<D> + c] = there ? x.data[(first + r) * x.row + c * x.col] : 0;
        }
}

/* s += a b^T of two tiles */
template <int D> __device__ inline void add_product(float (&s)[EACH][EACH], const float *a, const float *b)
{
#pragma unroll 2
    for (int d = 0; d < D; d += 4) {
        Four x[EACH], y[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            x[i] = *(const Four *)(a + (ty() + SIDE * i) * LD<D> + d);
            y[i] = *(const Four *)(b + (tx() + SIDE * i) * LD<D> + d);
        }
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++)
#pragma unroll
                for (int k = 0; k < 4; k++) s[i][j] += x[i].v[k] * y[j].v[k];
    }
}

/* acc += p tile, by way of room for p that the warp's rows have for themselves. */
template <int D>
__device__ inline void add_mixture(float (&acc)[EACH][PARTS<D>][4], const float (&p)[EACH][EACH], float *room,
                                   const float *tile)
{
    __syncwarp(); /* what was there has been read */
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) room[(ty() + SIDE * i) * SCORES_LD + tx() + SIDE * j] = p[i][j];
    __syncwarp();
#pragma unroll 1
    for (int c = 0; c < TILE; c += 4) {
        Four x[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) x[i] = *(const Four *)(room + (ty() + SIDE * i) * SCORES_LD + c);
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int e = 0; e < PARTS<D>; e++) {
                const Four y = *(const Four *)(tile + (c + k) * LD<D> + 4 * (tx() + SIDE * e));
#pragma unroll
                for (int i = 0; i < EACH; i++)
#pragma unroll
                    for (int n = 0; n < 4; n++) acc[i][e][n] += x[i].v[k] * y.v[n];
            }
    }
}

/* Rows to those from `first` on, ld apart. */
template <int D>
__device__ inline void store(float *to, int64_t first, int64_t rows, int64_t ld, int width,
                             const float (&acc)[EACH][PARTS<D>][4], const float (&factor)[EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int64_t row = first + ty() + SIDE * i;
        if (row >= rows) continue;
#pragma unroll
        for (int e = 0; e < PARTS<D>; e++) {
            const int c = 4 * (tx() + SIDE * e);
            Four four;
#pragma unroll
            for (int n = 0; n < 4; n++) four.v[n] = times(acc[i][e][n], factor[i]);
            if (width % 4 == 0 && c < width) *(Four *)(to + row * ld + c) = four;
#pragma unroll
            for (int n = 0; n < 4; n++)
                if (width % 4 && c + n < width) to[row * ld + c + n] = four.v[n];
        }
    }
}

/* ---- forward --------------------------------------------------------------------------------- */

template <class F> __device__ inline float over_row(float x, F f)
{
    for (int half = 1; half < SIDE; half *= 2) x = f(x, __shfl_xor_sync(0xffffffffu, x, half));
    return x;
}
struct Most {
    __device__ inline float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <int D> constexpr size_t forward_room = (3 * TILE_SIZE<D> + TILE * SCORES_LD) * sizeof(float);

template <int D> __global__ void __launch_bounds__(SIZE, 4) forward(AttentionCall c)
{
    const AttentionArgs &a = c.a;
    SHARED(float, shared);
    float *const q_tile = shared, *const k_tile = q_tile + TILE_SIZE<D>,
                 *const v_tile = k_tile + TILE_SIZE<D>, *const room = v_tile + TILE_SIZE<D>;
    const int64_t blocks = (a.rows + TILE - 1) / TILE, item = blockIdx.x / blocks;
    const int64_t first = (blocks - 1 - blockIdx.x % blocks) * TILE; /* causal: the longest rows first */
    const int64_t cols = a.causal && first + TILE < a.cols ? first + TILE : a.cols;
    const Rows<float> k = rows_of<float>(a, a.k, item, a.width, c.wide_k),
                      v = rows_of<float>(a, a.v, item, a.value_width, c.wide_v);
    const Scores scores(a, item, 1);
    float o[EACH][PARTS<D>][4] = {}, most[EACH], sum[EACH] = {};
#pragma unroll
    for (int i = 0; i < EACH; i++) most[i] = -INFINITY;
    fetch<D>(q_tile, rows_of<float>(a, a.q, item, a.width, c.wide_q), first, a.rows);
    for (int64_t col = 0; col < cols; col += TILE) {
        __syncthreads();
        fetch<D>(k_tile, k, col, cols);
        fetch<D>(v_tile, v, col, cols);
        __syncthreads();
        float s[EACH][EACH] = {};
        add_product<D>(s, q_tile, k_tile);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int64_t row = first + ty() + SIDE * i;
            float now = most[i];
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                s[i][j] = scores(s[i][j], row, col + tx() + SIDE * j);
                now = fmaxf(now, s[i][j]);
            }
            now = over_row(now, Most());
            const float shift = shift_of(now), fade = expf(most[i] - shift);
            most[i] = now, sum[i] *= fade;
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                sum[i] += s[i][j] = expf(s[i][j] - shift);
                if (!scores.kept(row, col + tx() + SIDE * j)) s[i][j] = 0;
            }
#pragma unroll
            for (int e = 0; e < PARTS<D>; e++)
#pragma unroll
                for (int n = 0; n < 4; n++) o[i][e][n] *= fade;
        }
        add_mixture<D>(o, s, room, v_tile);
    }
    float factor[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const float one = factor_of(over_row(sum[i], AddUp()));
        const int64_t row = first + ty() + SIDE * i;
        factor[i] = one == 0 ? 0 : one * (a.keep ? (float)a.keep_factor : 1);
        if (tx() > 0 || row >= a.rows) continue;
        ((float *)a.shift)[item * a.rows + row] = shift_of(most[i]);
        ((float *)a.factor)[item * a.rows + row] = one;
    }
    store<D>((float *)a.y + begin_of_heads(item, a.heads, a.rows, a.value_width), first, a.rows,
             a.heads * a.value_width, (int)a.value_width, o, factor);
}

/* ---- backward -------------------------------------------------------------------------------- */

template <int D> constexpr size_t grad_room = (4 * TILE_SIZE<D> + TILE * SCORES_LD) * sizeof(float);

/* Of a row: its p, and ds of p and dp. */
struct Kept {
    float shift, factor, delta;
    __device__ inline Kept(const AttentionCall &c, int64_t item, int64_t row)
    {
        const int64_t i = item * c.a.rows + row;
        const bool there = row < c.a.rows;
        shift = there ? ((const float *)c.a.shift)[i] : 0,
        factor = there ? ((const float *)c.a.factor)[i] : 0;
        delta = there ? c.delta[i] : 0;
    }
};

/* s, dp: p as v meets it, and ds.  Products come in. */
__device__ inline void slope(const AttentionArgs &a, const Scores &scores, const Kept &kept, int64_t row,
                             int64_t col, float *s, float *dp)
{
    const float p = kept.factor * expf(scores(*s, row, col) - kept.shift);
    const bool stays = scores.kept(row, col);
    const float d = !stays ? 0 : a.keep ? *dp * (float)a.keep_factor : *dp;
    *s = stays ? p : 0;
    *dp = p * (d - kept.delta);
}

template <int D> __global__ void __launch_bounds__(SIZE) grad_of_rows(AttentionCall c)
{
    const AttentionArgs &a = c.a;
    SHARED(float, shared);
    float *const q_tile = shared, *const dy_tile = q_tile + TILE_SIZE<D>,
                 *const k_tile = dy_tile + TILE_SIZE<D>, *const v_tile = k_tile + TILE_SIZE<D>,
                 *const room = v_tile + TILE_SIZE<D>;
    const int64_t blocks = (a.rows + TILE - 1) / TILE, item = blockIdx.x / blocks;
    const int64_t first = (blocks - 1 - blockIdx.x % blocks) * TILE;
    const int64_t cols = a.causal && first + TILE < a.cols ? first + TILE : a.cols;
    const Rows<float> k = rows_of<float>(a, a.k, item, a.width, c.wide_k),
                      v = rows_of<float>(a, a.v, item, a.value_width, c.wide_v);
    const Scores scores(a, item, 1);
    float dq[EACH][PARTS<D>][4] = {};
    fetch<D>(q_tile, rows_of<float>(a, a.q, item, a.width, c.wide_q), first, a.rows);
    fetch<D>(dy_tile, rows_of_heads<float>(a, a.dy, item, a.rows, a.value_width, c.wide_y), first, a.rows);
    for (int64_t col = 0; col < cols; col += TILE) {
        __syncthreads();
        fetch<D>(k_tile, k, col, cols);
        fetch<D>(v_tile, v, col, cols);
        __syncthreads();
        float s[EACH][EACH] = {}, dp[EACH][EACH] = {};
        add_product<D>(s, q_tile, k_tile);
        add_product<D>(dp, dy_tile, v_tile);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int64_t row = first + ty() + SIDE * i;
            const Kept kept(c, item, row);
#pragma unroll
            for (int j = 0; j < EACH; j++)
                slope(a, scores, kept, row, col + tx() + SIDE * j, &s[i][j], &dp[i][j]);
        }
        add_mixture<D>(dq, dp, room, k_tile);
    }
    float factor[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) factor[i] = (float)a.scale;
    store<D>((float *)a.dq + begin_of_heads(item, a.heads, a.rows, a.width), first, a.rows, a.heads * a.width,
             (int)a.width, dq, factor);
}

/* A tile of k and v meets the rows of all items that share it, one item behind the other. */
template <int D> __global__ void __launch_bounds__(SIZE) grad_of_columns(AttentionCall c)
{
    const AttentionArgs &a = c.a;
    SHARED(float, shared);
    float *const q_tile = shared, *const dy_tile = q_tile + TILE_SIZE<D>,
                 *const k_tile = dy_tile + TILE_SIZE<D>, *const v_tile = k_tile + TILE_SIZE<D>,
                 *const room = v_tile + TILE_SIZE<D>;
    const int64_t blocks = (a.cols + TILE - 1) / TILE, group = blockIdx.x / blocks;
    const int64_t first = blockIdx.x % blocks * TILE;
    float dk[EACH][PARTS<D>][4] = {}, dv[EACH][PARTS<D>][4] = {};
    fetch<D>(k_tile, rows_of<float>(a, a.k, group * a.share, a.width, c.wide_k), first, a.cols);
    fetch<D>(v_tile, rows_of<float>(a, a.v, group * a.share, a.value_width, c.wide_v), first, a.cols);
    for (int64_t item = group * a.share; item < (group + 1) * a.share; item++) {
        const Rows<float> q = rows_of<float>(a, a.q, item, a.width, c.wide_q),
                          dy = rows_of_heads<float>(a, a.dy, item, a.rows, a.value_width, c.wide_y);
        const Scores scores(a, item, 1);
        for (int64_t row = a.causal ? first : 0; row < a.rows; row += TILE) {
            __syncthreads();
            fetch<D>(q_tile, q, row, a.rows);
            fetch<D>(dy_tile, dy, row, a.rows);
            __syncthreads();
            float p[EACH][EACH] = {}, ds[EACH][EACH] = {}; /* [columns, rows] here */
            add_product<D>(p, k_tile, q_tile);
            add_product<D>(ds, v_tile, dy_tile);
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                const int64_t r = row + tx() + SIDE * j;
                const Kept kept(c, item, r);
#pragma unroll
                for (int i = 0; i < EACH; i++)
                    slope(a, scores, kept, r, first + ty() + SIDE * i, &p[i][j], &ds[i][j]);
            }
            add_mixture<D>(dv, p, room, dy_tile);
            add_mixture<D>(dk, ds, room, q_tile);
        }
    }
    float of_k[EACH], of_v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) of_k[i] = (float)a.scale, of_v[i] = a.keep ? (float)a.keep_factor : 1;
    const int64_t heads = a.heads > 1 ? a.heads / a.share : 1;
    if (a.dk)
        store<D>((float *)a.dk + begin_of_heads(group, heads, a.cols, a.width), first, a.cols,
                 heads * a.width, (int)a.width, dk, of_k);
    if (a.dv)
        store<D>((float *)a.dv + begin_of_heads(group, heads, a.cols, a.value_width), first, a.cols,
                 heads * a.value_width, (int)a.value_width, dv, of_v);
}

/* ---- launches -------------------------------------------------------------------------------- */

bool is_narrow(const AttentionArgs &a) { return a.width <= 64 && a.value_width <= 64; }

template <class F> int with_width(const AttentionArgs &a, F f)
{
    return is_narrow(a) ? f.template operator()<64>() : f.template operator()<128>();
}

} // namespace

size_t attention_f32_room(const AttentionArgs *a) { return is_narrow(*a) ? grad_room<64> : grad_room<128>; }

int attention_f32(const AttentionCall &c)
{
    return with_width(c.a, [&]<int D>() -> int {
        LAUNCH_SHARED((forward<D>), (unsigned)attention_blocks(c.a.batch, c.a.rows, TILE), SIZE,
                      forward_room<D>, c);
        return gpu_launched("attention");
    });
}

int attention_f32_grad(const AttentionCall &c)
{
    return with_width(c.a, [&]<int D>() -> int {
        const int64_t rows = attention_blocks(c.a.batch, c.a.rows, TILE);
        const int64_t cols = attention_blocks(c.a.batch / c.a.share, c.a.cols, TILE);
        if (c.a.dq && rows > 0) {
            LAUNCH_SHARED((grad_of_rows<D>), (unsigned)rows, SIZE, grad_room<D>, c);
            if (gpu_launched("attention_grad")) return KERNEL_FAILED;
        }
        if ((c.a.dk || c.a.dv) && cols > 0)
            LAUNCH_SHARED((grad_of_columns<D>), (unsigned)cols, SIZE, grad_room<D>, c);
        return gpu_launched("attention_grad");
    });
}
