/* conv_halves.cu - convolutions of f16 and bf16 by tensor cores, where channels lie last: products whose left
 * operand is fetched where it lies, 16 bytes of channels at once (implicit GEMM); sums are in f32.
 *
 *                  rows                       columns            depth
 *   forward        images, positions of y     channels of y      taps, channels of x
 *   grad_input     images, pixels of x        channels of x      taps, channels of y
 *   grad_weight    channels of y              channels of x      images, positions of y; a product a tap
 *
 * Weights are laid out first so that the depth lies innermost.  With a stride, grad_input takes the pixels by
 * classes that meet the same taps, a launch each.  The depth of grad_weight is cut into pieces that follow
 * from the sizes, and are added in their order. */
#include "cuda/conv/conv.cuh"
#include "cuda/mma.cuh"
#include "cuda/pack.cuh"

namespace {

constexpr int AXES = 3, WARPS = 4, SIZE = 32 * WARPS, STAGES = 3, DEPTH = 32, OUTSIDE = -(1 << 30);
constexpr int MOST_CLASSES = 64;

/* Along an axis row i and tap j meet at first + i row + j tap of `size`; the row is at to + i to_step of
 * to_size in the result, and the tap is number tap_first + j tap_step of `kernel`. */
struct Walk {
    int rows, taps, first, row, tap, size, to, to_step, to_size, tap_first, tap_step, kernel;
};

struct Meeting {
    Walk axis[AXES];
    int64_t rows, images;
    int depth, columns, groups; /* channels of a group, of what is read and of the result */
    int taps;                   /* of the kernel */
    const void *from, *weight, *bias;
    void *to;
};

struct Cursor { /* a step of the depth: a tap and DEPTH of its channels */
    int channel, j[AXES];
    __device__ inline void next(const Meeting &c)
    {
        channel += DEPTH;
        if (channel < c.depth) return;
        channel = 0;
        for (int a = AXES - 1; a >= 0; a--) {
            if (++j[a] < c.axis[a].taps) return;
            j[a] = 0;
        }
    }
};

/* ---- forward, grad_input --------------------------------------------------------------------- */

constexpr int ROWS = 128, COLUMNS = 64, LD = DEPTH + 8, OUT_LD = COLUMNS + 8;
constexpr int CHUNKS = DEPTH / 8, APART = SIZE / CHUNKS; /* rows that a thread fetches lie APART */

template <class T> struct Fetcher {
    const Meeting &c;
    int start[ROWS / APART][AXES], chunk, row, column, group;
    int64_t image[ROWS / APART];

    __device__ inline Fetcher(const Meeting &meeting, int64_t first, int column_, int group_, int64_t *place)
        : c(meeting), chunk((int)threadIdx.x % CHUNKS * 8), row((int)threadIdx.x / CHUNKS), column(column_),
          group(group_)
    {
#pragma unroll
        for (int i = 0; i < ROWS / APART; i++) {
            int64_t n = first + row + APART * i, at = 0, scale = 1;
            const bool there = n < c.rows;
#pragma unroll
            for (int a = AXES - 1; a >= 0; a--) {
                const Walk &w = c.axis[a];
                const int k = (int)split_off(n, w.rows);
                start[i][a] = there ? w.first + k * w.row : OUTSIDE;
                at += (w.to + k * w.to_step) * scale, scale *= w.to_size;
            }
            image[i] = n;
            if (chunk == 0) place[row + APART * i] = there ? n * scale + at : -1;
        }
    }

    __device__ inline void operator()(const Cursor &k, T *left, T *right) const
    {
        const T *const x = (const T *)c.from, *const w = (const T *)c.weight;
        const int channel = k.channel + chunk;
        int tap = 0;
#pragma unroll
        for (int a = 0; a < AXES; a++)
            tap = tap * c.axis[a].kernel + c.axis[a].tap_first + k.j[a] * c.axis[a].tap_step;
#pragma unroll
        for (int i = 0; i < ROWS / APART; i++) {
            bool there = channel < c.depth;
            int64_t pixel = image[i];
#pragma unroll
            for (int a = 0; a < AXES; a++) {
                const int at = start[i][a] + k.j[a] * c.axis[a].tap;
                there = there && (unsigned)at < (unsigned)c.axis[a].size;
                pixel = pixel * c.axis[a].size + at;
            }
            const T *const from = x + (pixel * c.groups + group) * c.depth + channel;
            copy16(left + (row + APART * i) * LD + chunk, there ? from : x, there);
        }
#pragma unroll
        for (int i = 0; i < COLUMNS / APART; i++) {
            const int n = column + row + APART * i;
            const bool there = n < c.columns && channel < c.depth;
            const T *const from = w + (((int64_t)group * c.columns + n) * c.taps + tap) * c.depth + channel;
            copy16(right + (row + APART * i) * LD + chunk, there ? from : w, there);
        }
    }
};

/* A warp has 32 rows. */
template <class T>
__device__ inline void multiply(float (&sum)[2][COLUMNS / 8][4], const T *left, const T *right)
{
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        unsigned a[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++) load_a<LD>(a[m], left, (int)threadIdx.x / 32 * 32 + 16 * m, k);
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n += 2) {
            unsigned b[4];
            load_b_transposed<LD>(b, right, k, 8 * n);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                mma<T>(sum[m][n], a[m], b[0], b[1]);
                mma<T>(sum[m][n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

template <class T> __global__ void __launch_bounds__(SIZE) conv_meet(Meeting c)
{
    alignas(16) __shared__ T room[STAGES * (ROWS + COLUMNS) * LD];
    __shared__ int64_t place[ROWS];
    const int blocks = (c.columns + COLUMNS - 1) / COLUMNS, group = (int)blockIdx.y / blocks;
    const int column = (int)blockIdx.y % blocks * COLUMNS, lane = (int)threadIdx.x % 32;
    const Fetcher<T> fetch(c, (int64_t)blockIdx.x * ROWS, column, group, place);
    const auto left = [=](int s) { return room + s % STAGES * (ROWS + COLUMNS) * LD; };
    const auto right = [=](int s) { return room + s % STAGES * (ROWS + COLUMNS) * LD + ROWS * LD; };
    const int steps = c.axis[0].taps * c.axis[1].taps * c.axis[2].taps * ((c.depth + DEPTH - 1) / DEPTH);
    Cursor next = {};
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) fetch(next, left(s), right(s)), next.next(c);
        end_of_copies();
    }
    float sum[2][COLUMNS / 8][4] = {};
    for (int s = 0; s < steps; s++) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();
        const int later = s + STAGES - 1; /* where step s - 1 was */
        if (later < steps) fetch(next, left(later), right(later)), next.next(c);
        end_of_copies();
        multiply<T>(sum, left(s), right(s));
    }
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int r = (int)threadIdx.x / 32 * 32 + 16 * m + lane / 4 + i / 2 * 8,
                          k = 8 * n + lane % 4 * 2 + i % 2;
                const bool biased = c.bias && column + k < c.columns;
                const float b = biased ? value_of(((const T *)c.bias)[group * c.columns + column + k]) : 0;
                put(room + r * OUT_LD + k, sum[m][n][i] + b);
            }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < ROWS * COLUMNS / 8; i += SIZE) {
        const int r = i / (COLUMNS / 8), k = i % (COLUMNS / 8) * 8;
        if (place[r] < 0 || column + k >= c.columns) continue;
        T *const to = (T *)c.to + (place[r] * c.groups + group) * c.columns + column + k;
        *(Words *)to = *(const Words *)(room + r * OUT_LD + k);
    }
}

/* Of weight [out, in, taps]: [groups, columns, taps, depth]. */
template <class T>
__global__ void conv_lay_out(int64_t count, int out, int in, int taps, bool flip, const T *weight, T *to)
{
    const int columns = flip ? in : out, depth = flip ? out : in;
    for (int64_t e = first_item(); e < count; e += item_step()) {
        int64_t n = e;
        const int64_t k = split_off(n, depth), tap = split_off(n, taps), column = split_off(n, columns);
        to[e] = weight[((n * out + (flip ? k : column)) * in + (flip ? column : k)) * taps + tap];
    }
}

/* ---- grad_weight ----------------------------------------------------------------------------- */

constexpr int TILE = 64, TILE_LD = TILE + 8;

struct Weights {
    Walk axis[AXES]; /* rows: positions of y */
    int64_t positions, piece;
    int out, in, groups, taps, pieces;
    const void *x, *y;
    float *sums; /* [pieces, taps, groups, out, in] */
};

template <class T>
__device__ inline void fetch_positions(const Weights &c, int64_t first, int64_t end, const int (&tap)[AXES],
                                       int group, int row, int column, T *left, T *right)
{
    const int chunk = (int)threadIdx.x % 8 * 8;
    const T *const x = (const T *)c.x, *const y = (const T *)c.y;
#pragma unroll
    for (int i = 0; i < DEPTH / (SIZE / 8); i++) {
        const int r = (int)threadIdx.x / 8 + SIZE / 8 * i;
        int64_t n = first + r, pixel = 0, scale = 1;
        bool there = n < end;
        const T *const of_y = y + (n * c.groups + group) * c.out + row + chunk;
        const bool y_there = there && row + chunk < c.out;
        copy16(left + r * TILE_LD + chunk, y_there ? of_y : y, y_there);
#pragma unroll
        for (int a = AXES - 1; a >= 0; a--) {
            const Walk &w = c.axis[a];
            const int at = w.first + (int)split_off(n, w.rows) * w.row + tap[a] * w.tap;
            there = there && (unsigned)at < (unsigned)w.size;
            pixel += at * scale, scale *= w.size;
        }
        there = there && column + chunk < c.in;
        const T *const of_x = x + ((n * scale + pixel) * c.groups + group) * c.in + column + chunk;
        copy16(right + r * TILE_LD + chunk, there ? of_x : x, there);
    }
}

template <class T> __global__ void __launch_bounds__(SIZE, 5) conv_weights(Weights c)
{
    alignas(16) __shared__ T room[STAGES * 2 * DEPTH * TILE_LD];
    const int columns = (c.in + TILE - 1) / TILE, rows = (c.out + TILE - 1) / TILE;
    const int column = (int)blockIdx.y % columns * TILE, row = (int)blockIdx.y / columns % rows * TILE;
    const int group = (int)blockIdx.y / columns / rows, tap = (int)blockIdx.x % c.taps;
    const int64_t part = blockIdx.x / c.taps, first = part * c.piece;
    const int64_t end = first + c.piece < c.positions ? first + c.piece : c.positions;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int at[AXES] = { tap / c.axis[2].kernel / c.axis[1].kernel,
                           tap / c.axis[2].kernel % c.axis[1].kernel, tap % c.axis[2].kernel };
    const auto left = [=](int s) { return room + s % STAGES * 2 * DEPTH * TILE_LD; };
    const auto right = [=](int s) { return room + (s % STAGES * 2 + 1) * DEPTH * TILE_LD; };
    const int steps = (int)((end - first + DEPTH - 1) / DEPTH);
    const auto fetch = [&](int s) {
        if (s < steps)
            fetch_positions<T>(c, first + (int64_t)s * DEPTH, end, at, group, row, column, left(s), right(s));
        end_of_copies();
    };
    for (int s = 0; s < STAGES - 1; s++) fetch(s);
    float sum[TILE / 8][4] = {};
    for (int s = 0; s < steps; s++) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();
        fetch(s + STAGES - 1);
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned a[4];
            load_a_transposed<TILE_LD>(a, left(s), 16 * warp, k);
#pragma unroll
            for (int n = 0; n < TILE / 8; n += 2) {
                unsigned b[4];
                load_b<TILE_LD>(b, right(s), k, 8 * n);
                mma<T>(sum[n], a, b[0], b[1]);
                mma<T>(sum[n + 1], a, b[2], b[3]);
            }
        }
    }
    wait_for_copies<0>();
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = row + 16 * warp + lane / 4 + i / 2 * 8, k = column + 8 * n + lane % 4 * 2 + i % 2;
            if (r < c.out && k < c.in)
                c.sums[((((part * c.taps) + tap) * c.groups + group) * c.out + r) * c.in + k] = sum[n][i];
        }
}

template <class T> __global__ void conv_add_pieces(Weights c, T *weight)
{
    const int64_t count = (int64_t)c.taps * c.groups * c.out * c.in;
    for (int64_t e = first_item(); e < count; e += item_step()) {
        int64_t channels = e;
        const int64_t tap = split_off(channels, c.taps);
        float sum = 0;
        for (int p = 0; p < c.pieces; p++) sum += c.sums[(p * c.taps + tap) * (count / c.taps) + channels];
        put(weight + e, sum);
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

struct Sizes { /* of an axis */
    int64_t in, out, kernel, stride, pad, dilation;
};

Sizes sizes_of(const ConvArgs *a, int axis)
{
    return axis == 0   ? Sizes{ a->d, a->od, a->kd, a->stride_d, a->pad_d, a->dilation_d }
           : axis == 1 ? Sizes{ a->h, a->oh, a->kh, a->stride_h, a->pad_h, a->dilation_h }
                       : Sizes{ a->w, a->ow, a->kw, a->stride_w, a->pad_w, a->dilation_w };
}

Walk walk_of_positions(const Sizes &s)
{
    return { (int)s.out,
             (int)s.kernel,
             (int)-s.pad,
             (int)s.stride,
             (int)s.dilation,
             (int)s.in,
             0,
             1,
             (int)s.out,
             0,
             1,
             (int)s.kernel };
}

/* Pixels first, first + stride, ..., and the taps at which windows reach them. */
Walk walk_of_pixels(const Sizes &s, int64_t first)
{
    const int64_t phase = (first + s.pad) % s.stride;
    int64_t t = 0, next;
    while (t < s.kernel && t * s.dilation % s.stride != phase) t++;
    for (next = t + 1; next < s.kernel && next * s.dilation % s.stride != phase;) next++;
    const int64_t taps = t < s.kernel ? (s.kernel - 1 - t) / (next - t) + 1 : 0;
    return { (int)((s.in - first + s.stride - 1) / s.stride),
             (int)taps,
             taps ? (int)((first + s.pad - t * s.dilation) / s.stride) : 0,
             1,
             taps ? (int)(-((next - t) * s.dilation) / s.stride) : 0,
             (int)s.out,
             (int)first,
             (int)s.stride,
             (int)s.in,
             (int)t,
             (int)(next - t),
             (int)s.kernel };
}

template <class T> int meet(Meeting *c)
{
    const int64_t blocks = (c->columns + COLUMNS - 1) / COLUMNS * (int64_t)c->groups;
    c->rows = c->images;
    for (const Walk &w : c->axis) c->rows *= w.rows;
    const int64_t row_blocks = (c->rows + ROWS - 1) / ROWS;
    LAUNCH((conv_meet<T>), dim3((unsigned)row_blocks, (unsigned)blocks), SIZE, *c);
    return gpu_launched("convolution");
}

template <class T> int forward_or_input(ConvKind kind, const ConvArgs *a, Meeting c)
{
    const bool flip = kind == CONV_INPUT;
    const int out = flip ? c.depth : c.columns, in = flip ? c.columns : c.depth;
    const int64_t count = a->out * in * c.taps;
    Scratch weight((size_t)count * sizeof(T));
    if (!weight.data) return KERNEL_FAILED;
    LAUNCH((conv_lay_out<T>), gpu_blocks(count), THREADS, count, out, in, c.taps, flip, (const T *)a->weight,
           (T *)weight.data);
    if (gpu_launched("convolution")) return KERNEL_FAILED;
    c.weight = weight.data;
    Sizes s[AXES];
    int64_t classes[AXES], n = 1;
    for (int i = 0; i < AXES; i++) {
        s[i] = sizes_of(a, i), c.axis[i] = walk_of_positions(s[i]);
        classes[i] = !flip ? 1 : s[i].stride < s[i].in ? s[i].stride : s[i].in;
        n *= classes[i];
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t rest = k;
        for (int i = AXES - 1; i >= 0 && flip; rest /= classes[i], i--)
            c.axis[i] = walk_of_pixels(s[i], rest % classes[i]);
        if (meet<T>(&c)) return KERNEL_FAILED;
    }
    return KERNEL_DONE;
}

/* How many pieces follows from the sizes alone. */
void cut(Weights *c, int64_t tiles)
{
    enum { ENOUGH = 512, LEAST = 256, MOST = 64 };
    int64_t pieces = tiles < ENOUGH ? ENOUGH / tiles : 1;
    if (pieces > c->positions / LEAST) pieces = c->positions / LEAST;
    if (pieces > MOST) pieces = MOST;
    if (pieces < 1) pieces = 1;
    c->piece = (c->positions + pieces * DEPTH - 1) / (pieces * DEPTH) * DEPTH;
    c->pieces = (int)((c->positions + c->piece - 1) / c->piece);
}

template <class T> int gradient_of_weight(const ConvArgs *a, Weights c)
{
    const int64_t tiles = (int64_t)((c.out + TILE - 1) / TILE) * ((c.in + TILE - 1) / TILE) * c.groups;
    for (int i = 0; i < AXES; i++) c.axis[i] = walk_of_positions(sizes_of(a, i));
    cut(&c, tiles * c.taps);
    const int64_t count = (int64_t)c.taps * c.groups * c.out * c.in;
    Scratch sums((size_t)(c.pieces * count) * sizeof(float));
    if (!sums.data) return KERNEL_FAILED;
    c.sums = (float *)sums.data;
    LAUNCH((conv_weights<T>), dim3((unsigned)(c.taps * c.pieces), (unsigned)tiles), SIZE, c);
    if (gpu_launched("convolution")) return KERNEL_FAILED;
    LAUNCH((conv_add_pieces<T>), gpu_blocks(count), THREADS, c, (T *)a->weight);
    return gpu_launched("convolution");
}

bool takes(const ConvArgs *a)
{
    if ((a->dtype != TENSOR_F16 && a->dtype != TENSOR_BF16) || a->layout != LAYOUT_LAST) return false;
    const int64_t in = a->in / a->groups, out = a->out / a->groups, taps = a->kd * a->kh * a->kw;
    const int64_t pixels = a->batch * a->d * a->h * a->w, positions = a->batch * a->od * a->oh * a->ow;
    const int64_t classes = a->stride_d * a->stride_h * a->stride_w;
    if (in == 0 || out == 0 || in % 8 || out % 8 || pixels == 0 || positions == 0 || taps == 0) return false;
    if ((uintptr_t)a->x % 16 || (uintptr_t)a->y % 16 || classes > MOST_CLASSES) return false;
    return pixels <= INT32_MAX && positions <= INT32_MAX && taps <= 1 << 20 && a->in <= 1 << 20 &&
           a->out <= 1 << 20 && (in + TILE - 1) / TILE * ((out + TILE - 1) / TILE) * a->groups <= 65535 &&
           gpu_has_mma();
}

} // namespace

int conv_halves(ConvKind kind, const ConvArgs *a)
{
    if (!takes(a)) return KERNEL_DECLINED;
    const int in = (int)(a->in / a->groups), out = (int)(a->out / a->groups), groups = (int)a->groups;
    const int taps = (int)(a->kd * a->kh * a->kw);
    Weights w = {};
    Meeting c = {};
    w.positions = a->batch * a->od * a->oh * a->ow, c.images = a->batch;
    w.out = out, w.in = in, w.groups = c.groups = groups, w.taps = c.taps = taps, w.x = a->x, w.y = a->y;
    const bool flip = kind == CONV_INPUT;
    c.depth = flip ? out : in, c.columns = flip ? in : out, c.bias = a->bias;
    c.from = flip ? a->y : a->x, c.to = flip ? a->x : a->y;
    if (a->dtype == TENSOR_F16)
        return kind == CONV_WEIGHT ? gradient_of_weight<__half>(a, w) : forward_or_input<__half>(kind, a, c);
    return kind == CONV_WEIGHT ? gradient_of_weight<__nv_bfloat16>(a, w)
                               : forward_or_input<__nv_bfloat16>(kind, a, c);
}
