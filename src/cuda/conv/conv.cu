/* conv.cu - convolution over one to three dimensions and its gradients: for each group one product, whose
 * right operand is gathered where it lies (implicit GEMM).
 *
 *                           rows             columns                   depth
 *   forward       w x       channels of y    images, positions of y    channels of x, taps
 *   grad_input    w^T dy    channels of x    images, pixels of x       channels of y, taps
 *   grad_weight   dy x^T    channels of y    channels of x, taps       images, positions of y
 *
 * A step along the depth and a column have a place each; the right operand's element lies at their sum.  With
 * a stride the pixels of x are taken by classes, so that all of a class meet the same taps.
 *
 * Sums are in f32 for f32 and halves, of integers modulo 2^64.  A deep product of few tiles is cut into
 * pieces, whose sums a second kernel adds in their order: how many follows from the sizes alone.  Few rows
 * (depthwise), and integers, go without tiles. */
#include "cuda/conv/conv.cuh"

static constexpr int AXES = 3, TILE = 64, DEPTH = 16, EACH = 4, FEW_ROWS = 4, OUTSIDE = -(1 << 30);

struct ConvAxis {
    int in, out, kernel, stride, pad, dilation;
    int classes; /* of pixels */
};

struct ConvCall {
    ConvAxis axis[AXES];
    int64_t images, in, out, groups; /* channels of a group */
    int64_t taps, pixels, positions;
    int64_t x_channel, x_pixel, y_channel, y_pixel; /* how far neighbours lie apart */
    int64_t rows, columns, depth, classes;          /* of a group; the most that a class has */
    int64_t pieces, piece;                          /* of the depth */
    int64_t column_blocks;
    const void *left, *right, *bias;
    void *result;         /* pieces > 1: their sums, wide */
    int64_t result_count; /* a piece */
};

/* Element i of planes, which lies at `at`; outside of them there are zeros. */
struct ConvPlace {
    int64_t at;
    int i[AXES];
};
struct ConvStep {
    int64_t left;
    ConvPlace right;
};
struct ConvColumn {
    int64_t result;
    ConvPlace right;
};

template <class T> struct ConvSumOf {
    using type = std::conditional_t<std::is_integral_v<T>, uint64_t, Compute<T>>;
};
template <class T> using ConvSum = typename ConvSumOf<T>::type;

template <class T> __device__ inline ConvSum<T> conv_read(const void *p, int64_t at)
{
    if constexpr (std::is_integral_v<T>) return (uint64_t)((const T *)p)[at];
    else return value_of(((const T *)p)[at]);
}

template <class T> __device__ inline void conv_write(void *p, int64_t at, ConvSum<T> v)
{
    if constexpr (std::is_integral_v<T>) ((T *)p)[at] = (T)v;
    else put((T *)p + at, v);
}

/* ---- where things lie ------------------------------------------------------------------------ */

struct ConvLattice { /* first, first + step, ... */
    int first, step, count;
};

/* The product of a group and a class.  Row r of the left operand begins at left + r left_row, of the result
 * at r result_row. */
template <int kind> struct ConvView {
    const ConvCall &c;
    const int64_t group;
    int64_t columns, depth, left, left_row, result_row;
    ConvLattice pixel[AXES], tap[AXES]; /* of the class */

    __device__ ConvView(const ConvCall &call, int64_t group_, int64_t number)
        : c(call), group(group_), columns(call.columns), depth(call.depth)
    {
        left = group * c.out * (kind == CONV_WEIGHT ? c.y_channel : c.in * c.taps);
        left_row = kind == CONV_FORWARD ? c.in * c.taps : kind == CONV_INPUT ? c.taps : c.y_channel;
        result_row = kind == CONV_FORWARD ? c.y_channel : kind == CONV_INPUT ? c.x_channel : c.columns;
        if constexpr (kind == CONV_INPUT) {
            int64_t pixels = 1, taps = 1;
            for (int a = AXES - 1; a >= 0; a--) {
                meet(a, (int)split_off(number, c.axis[a].classes));
                pixels *= pixel[a].count, taps *= tap[a].count;
            }
            columns = c.images * pixels, depth = c.out * taps;
        }
    }

    __device__ ConvStep step(int64_t k) const
    {
        ConvStep s;
        if constexpr (kind == CONV_FORWARD) {
            s.left = k;
            s.right = of_tap(k);
        } else if constexpr (kind == CONV_INPUT) {
            int64_t t = 0, scale = 1;
            for (int a = AXES - 1; a >= 0; a--) {
                const int at = tap[a].first + (int)split_off(k, tap[a].count) * tap[a].step;
                const ConvAxis &x = c.axis[a];
                s.right.i[a] = -(at * x.dilation / x.stride);
                t += at * scale, scale *= x.kernel;
            }
            s.left = k * c.in * c.taps + t;
            locate(s.right, k * c.y_channel);
        } else {
            s.right = of_position(k);
            const int64_t position = split_off(k, c.positions);
            s.left = k * c.out * c.groups * c.positions + position * c.y_pixel;
        }
        return s;
    }

    __device__ ConvColumn column(int64_t n) const
    {
        ConvColumn q;
        if constexpr (kind == CONV_FORWARD) {
            q.right = of_position(n);
            q.right.at += group * c.in * c.x_channel;
            const int64_t position = split_off(n, c.positions);
            q.result = y_of(n) + position * c.y_pixel;
        } else if constexpr (kind == CONV_INPUT) {
            int64_t at = 0, scale = 1;
            for (int a = AXES - 1; a >= 0; a--) {
                const int i = pixel[a].first + (int)split_off(n, pixel[a].count) * pixel[a].step;
                q.right.i[a] = (i + c.axis[a].pad) / c.axis[a].stride;
                at += i * scale, scale *= c.axis[a].in;
            }
            locate(q.right, y_of(n));
            q.result = n * c.groups * c.in * c.pixels + group * c.in * c.x_channel + at * c.x_pixel;
        } else {
            q.result = group * c.out * c.columns + n;
            q.right = of_tap(n);
            q.right.at += group * c.in * c.x_channel;
        }
        return q;
    }

    template <class T> __device__ ConvSum<T> at(const ConvPlace &step, const ConvPlace &column) const
    {
        for (int a = 0; a < AXES; a++)
            if ((unsigned)(step.i[a] + column.i[a]) >= (unsigned)size(a)) return 0;
        return conv_read<T>(c.right, step.at + column.at);
    }

  private:
    __device__ int size(int a) const { return kind == CONV_INPUT ? c.axis[a].out : c.axis[a].in; }
    __device__ void locate(ConvPlace &p, int64_t base) const
    {
        const int64_t pixel = ((int64_t)p.i[0] * size(1) + p.i[1]) * size(2) + p.i[2];
        p.at = base + pixel * (kind == CONV_INPUT ? c.y_pixel : c.x_pixel);
    }
    /* Where the group's channels of y begin in an image. */
    __device__ int64_t y_of(int64_t image) const
    {
        return image * c.groups * c.out * c.positions + group * c.out * c.y_channel;
    }
    /* A channel of x and a tap. */
    __device__ ConvPlace of_tap(int64_t k) const
    {
        ConvPlace p;
        for (int a = AXES - 1; a >= 0; a--) p.i[a] = (int)split_off(k, c.axis[a].kernel) * c.axis[a].dilation;
        locate(p, k * c.x_channel);
        return p;
    }
    /* An image, and where in it the window of a position begins. */
    __device__ ConvPlace of_position(int64_t n) const
    {
        ConvPlace p;
        for (int a = AXES - 1; a >= 0; a--)
            p.i[a] = (int)split_off(n, c.axis[a].out) * c.axis[a].stride - c.axis[a].pad;
        locate(p, n * c.in * c.groups * c.pixels);
        return p;
    }
    /* Pixels first, first + stride, ... of an axis, and the taps at which windows reach them. */
    __device__ void meet(int a, int first)
    {
        const ConvAxis &x = c.axis[a];
        const int phase = (first + x.pad) % x.stride;
        int t = 0, next;
        while (t < x.kernel && (int64_t)t * x.dilation % x.stride != phase) t++;
        for (next = t + 1; next < x.kernel && (int64_t)next * x.dilation % x.stride != phase;) next++;
        pixel[a] = ConvLattice{ first, x.stride, (x.in - first + x.stride - 1) / x.stride };
        tap[a] = ConvLattice{ t, next - t, t < x.kernel ? (x.kernel - 1 - t) / (next - t) + 1 : 0 };
    }
};

/* Which product, and which piece of it, block x works on; it is left with the number of the block of columns.
 */
struct ConvPart {
    int64_t group, number, piece, block;
};
static __device__ inline ConvPart conv_part(const ConvCall &c)
{
    ConvPart p;
    int64_t n = blockIdx.x;
    p.block = split_off(n, c.column_blocks), p.piece = split_off(n, c.pieces),
    p.number = split_off(n, c.classes);
    p.group = n;
    return p;
}

template <class T>
__device__ inline void conv_store(const ConvCall &c, const ConvPart &p, int64_t row, int64_t at, ConvSum<T> v)
{
    if (c.pieces > 1) {
        ((ConvSum<T> *)c.result)[p.piece * c.result_count + at] = v;
        return;
    }
    if (c.bias) v += conv_read<T>(c.bias, p.group * c.rows + row);
    conv_write<T>(c.result, at, v);
}

/* ---- by tiles -------------------------------------------------------------------------------- */

/* Neighbouring threads load neighbouring columns; of CONV_WEIGHT neighbouring steps. */
template <class T, int kind> __global__ void conv_tile_kernel(ConvCall c)
{
    using C = ConvSum<T>;
    constexpr int AWAY = THREADS / DEPTH, COLUMNS = kind == CONV_WEIGHT ? TILE / AWAY : 1;
    alignas(16) __shared__ C left[DEPTH][TILE + EACH], right[DEPTH][TILE + EACH];
    __shared__ ConvStep step[DEPTH];
    __shared__ int64_t result[TILE];
    const ConvPart part = conv_part(c);
    const ConvView<kind> view(c, part.group, part.number);
    const int me = (int)threadIdx.x, my_rows = me / (TILE / EACH) * EACH,
              my_columns = me % (TILE / EACH) * EACH;
    const int64_t row = (int64_t)blockIdx.y * TILE, column = part.block * TILE, begin = part.piece * c.piece;
    const int64_t end = view.depth < begin + c.piece ? view.depth : begin + c.piece;
    if (column >= view.columns) return;
    ConvColumn mine[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        const int64_t n = column + (kind == CONV_WEIGHT ? me / DEPTH + AWAY * i : me % TILE);
        mine[i] = view.column(n < view.columns ? n : 0);
        if (n >= view.columns) mine[i].right.i[0] = OUTSIDE, mine[i].result = -1;
        if (kind == CONV_WEIGHT ? me % DEPTH == 0 : me < TILE) result[n - column] = mine[i].result;
    }
    C sum[EACH][EACH] = {};
    for (int64_t k = begin; k < end; k += DEPTH) {
        if (me < DEPTH) {
            step[me] = view.step(k + me < end ? k + me : k);
            if (k + me >= end) step[me].right.i[0] = OUTSIDE;
        }
        __syncthreads();
        for (int i = 0; i < TILE / AWAY; i++) {
            const int at = me % DEPTH, r = me / DEPTH + AWAY * i;
            const bool there = k + at < end && row + r < c.rows;
            left[at][r] =
                there ? conv_read<T>(c.left, view.left + (row + r) * view.left_row + step[at].left) : 0;
        }
        for (int i = 0; i < TILE / AWAY; i++) {
            const int at = kind == CONV_WEIGHT ? me % DEPTH : me / TILE + (int)THREADS / TILE * i;
            const int n = kind == CONV_WEIGHT ? me / DEPTH + AWAY * i : me % TILE;
            right[at][n] = view.template at<T>(step[at].right, mine[kind == CONV_WEIGHT ? i : 0].right);
        }
        __syncthreads();
        for (int at = 0; at < DEPTH; at++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum[i][j] += left[at][my_rows + i] * right[at][my_columns + j];
    }
    if (begin >= end) __syncthreads(); /* result[] */
    for (int i = 0; i < EACH && row + my_rows + i < c.rows; i++)
        for (int j = 0; j < EACH; j++) {
            const int64_t at = result[my_columns + j], r = row + my_rows + i;
            if (at >= 0) conv_store<T>(c, part, r, at + r * view.result_row, sum[i][j]);
        }
}

/* ---- a thread a column: few rows, and integers ------------------------------------------------ */

template <class T, int kind> __global__ void conv_column_kernel(ConvCall c)
{
    __shared__ ConvStep step[THREADS];
    const ConvPart part = conv_part(c);
    const ConvView<kind> view(c, part.group, part.number);
    const int me = (int)threadIdx.x;
    const int64_t n = part.block * THREADS + me, row = (int64_t)blockIdx.y * FEW_ROWS;
    const ConvColumn mine = view.column(n < view.columns ? n : 0);
    const int rows = c.rows - row < FEW_ROWS ? (int)(c.rows - row) : FEW_ROWS;
    if (part.block * THREADS >= view.columns) return;
    ConvSum<T> sum[FEW_ROWS] = {};
    for (int64_t k = 0; k < view.depth; k += THREADS) {
        const int steps = view.depth - k < THREADS ? (int)(view.depth - k) : (int)THREADS;
        __syncthreads();
        if (me < steps) step[me] = view.step(k + me);
        __syncthreads();
        for (int at = 0; at < steps; at++) {
            const ConvSum<T> x = view.template at<T>(step[at].right, mine.right);
            const int64_t left = view.left + row * view.left_row + step[at].left;
            for (int i = 0; i < FEW_ROWS; i++)
                if (i < rows) sum[i] += conv_read<T>(c.left, left + i * view.left_row) * x;
        }
    }
    if (n < view.columns)
        for (int i = 0; i < FEW_ROWS; i++)
            if (i < rows) conv_store<T>(c, part, row + i, mine.result + (row + i) * view.result_row, sum[i]);
}

/* A weight's gradient by a block. */
template <class T> __global__ void conv_weight_kernel(ConvCall c)
{
    int64_t n = blockIdx.x;
    const int64_t column = split_off(n, c.columns), row = split_off(n, c.rows);
    const ConvView<CONV_WEIGHT> view(c, n, 0);
    const ConvColumn mine = view.column(column);
    ConvSum<T> sum = 0;
    for (int64_t k = Together::rank(); k < c.depth; k += Together::size()) {
        const ConvStep s = view.step(k);
        sum += conv_read<T>(c.left, view.left + row * view.left_row + s.left) *
               view.template at<T>(s.right, mine.right);
    }
    sum = Together::join(sum, AddUp());
    if (Together::rank() == 0) conv_write<T>(c.result, mine.result + row * view.result_row, sum);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* channel: results that share one element of the bias, of `channels`. */
template <class T> __global__ void conv_join_kernel(ConvCall c, void *to, int64_t channel, int64_t channels)
{
    for (int64_t i = first_item(); i < c.result_count; i += item_step()) {
        ConvSum<T> sum = 0;
        for (int64_t p = 0; p < c.pieces; p++) sum += ((const ConvSum<T> *)c.result)[p * c.result_count + i];
        if (c.bias) sum += conv_read<T>(c.bias, i / channel % channels);
        conv_write<T>(to, i, sum);
    }
}

static void cut(ConvCall *c, int64_t tiles)
{
    enum { ENOUGH = 512, LEAST = 256, MOST = 64 };
    int64_t pieces = tiles < ENOUGH / 2 ? ENOUGH / tiles : 1;
    if (pieces > c->depth / LEAST) pieces = c->depth / LEAST;
    if (pieces > MOST) pieces = MOST;
    if (pieces < 1) pieces = 1;
    c->piece = (c->depth + pieces * DEPTH - 1) / (pieces * DEPTH) * DEPTH;
    if (c->piece < 1) c->piece = 1;
    c->pieces = c->depth > 0 ? (c->depth + c->piece - 1) / c->piece : 1;
}

/* ---- launches -------------------------------------------------------------------------------- */

static int conv_too_large() { return gpu_fail("a convolution has more tiles than a launch"); }

template <class T, int kind> int conv_by_tiles(ConvCall c, int64_t channel)
{
    void *const to = c.result;
    const int64_t row_tiles = (c.rows + TILE - 1) / TILE, products = c.groups * c.classes;
    c.column_blocks = (c.columns + TILE - 1) / TILE;
    cut(&c, c.column_blocks * row_tiles * products);
    if (c.column_blocks * products * c.pieces > INT32_MAX || row_tiles > 65535) return conv_too_large();
    Scratch sums(c.pieces > 1 ? (size_t)(c.pieces * c.result_count) * sizeof(ConvSum<T>) : 1);
    if (!sums.data) return -1;
    if (c.pieces > 1) c.result = sums.data;
    auto kernel = &conv_tile_kernel<T, kind>;
    LAUNCH(kernel, dim3((unsigned)(c.column_blocks * products * c.pieces), (unsigned)row_tiles), THREADS, c);
    if (gpu_launched("convolution")) return -1;
    if (c.pieces == 1) return 0;
    auto join = &conv_join_kernel<T>;
    LAUNCH(join, gpu_blocks(c.result_count), THREADS, c, to, channel, c.rows * c.groups);
    return gpu_launched("convolution");
}

template <class T, int kind> int conv_by_columns(ConvCall c)
{
    const int64_t rows = (c.rows + FEW_ROWS - 1) / FEW_ROWS, products = c.groups * c.classes;
    c.column_blocks = (c.columns + THREADS - 1) / THREADS, c.pieces = 1;
    if (c.column_blocks * products > INT32_MAX || rows > 65535) return conv_too_large();
    auto kernel = &conv_column_kernel<T, kind>;
    LAUNCH(kernel, dim3((unsigned)(c.column_blocks * products), (unsigned)rows), THREADS, c);
    return gpu_launched("convolution");
}

template <class T> int conv_by_weights(const ConvCall &c)
{
    const int64_t weights = c.groups * c.rows * c.columns;
    if (weights > INT32_MAX) return conv_too_large();
    auto kernel = &conv_weight_kernel<T>;
    LAUNCH(kernel, (unsigned)weights, THREADS, c);
    return gpu_launched("convolution");
}

static bool set_axis(ConvAxis *x, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                     int64_t dilation)
{
    const int64_t size[] = { in,      out, kernel, stride, pad, dilation, out * stride + kernel * dilation,
                             in + pad };
    for (int64_t n : size)
        if (n > -OUTSIDE) return false;
    *x = ConvAxis{
        (int)in, (int)out, (int)kernel, (int)stride, (int)pad, (int)dilation, (int)(stride < in ? stride : in)
    };
    return true;
}

/* false: a size is too large. */
static bool conv_call(const ConvArgs *a, ConvCall *c)
{
    *c = ConvCall{};
    c->in = a->in / a->groups, c->out = a->out / a->groups, c->groups = a->groups;
    c->taps = a->kd * a->kh * a->kw, c->pixels = a->d * a->h * a->w, c->positions = a->od * a->oh * a->ow;
    c->images = a->batch, c->classes = 1;
    const bool last = a->layout == LAYOUT_LAST;
    c->x_channel = last ? 1 : c->pixels, c->x_pixel = last ? a->in : 1;
    c->y_channel = last ? 1 : c->positions, c->y_pixel = last ? a->out : 1;
    return set_axis(&c->axis[0], a->d, a->od, a->kd, a->stride_d, a->pad_d, a->dilation_d) &&
           set_axis(&c->axis[1], a->h, a->oh, a->kh, a->stride_h, a->pad_h, a->dilation_h) &&
           set_axis(&c->axis[2], a->w, a->ow, a->kw, a->stride_w, a->pad_w, a->dilation_w);
}

template <int kind> int conv_run(int dtype, ConvCall c, int64_t channel)
{
    if (c.result_count == 0) return 0;
    return with_dtype(dtype, [&]<class T>() {
        if constexpr (std::is_same_v<T, Bool>) return (int)KERNEL_DECLINED;
        else if constexpr (std::is_integral_v<T> && kind == CONV_WEIGHT) return conv_by_weights<T>(c);
        else if constexpr (std::is_integral_v<T>) return conv_by_columns<T, kind>(c);
        else if (c.rows > FEW_ROWS) return conv_by_tiles<T, kind>(c, channel);
        else if constexpr (kind == CONV_WEIGHT) return conv_by_weights<T>(c);
        else return conv_by_columns<T, kind>(c);
    });
}

/* By cuDNN, else of halves by tensor cores. */
static int by_others(ConvKind kind, const ConvArgs *a)
{
    const int status = conv_cudnn(kind, a);
    return status == KERNEL_DECLINED ? conv_halves(kind, a) : status;
}

int gpu_conv2d(ConvArgs *a)
{
    ConvCall c;
    if (!conv_call(a, &c)) return KERNEL_DECLINED;
    const int status = by_others(CONV_FORWARD, a);
    if (status != KERNEL_DECLINED) return status;
    c.rows = c.out, c.columns = a->batch * c.positions, c.depth = c.in * c.taps;
    c.left = a->weight, c.right = a->x, c.bias = a->bias, c.result = a->y;
    c.result_count = a->batch * a->out * c.positions;
    return conv_run<CONV_FORWARD>(a->dtype, c, c.y_channel);
}

int gpu_conv2d_grad_input(ConvArgs *a)
{
    ConvCall c;
    if (!conv_call(a, &c)) return KERNEL_DECLINED;
    const int status = by_others(CONV_INPUT, a);
    if (status != KERNEL_DECLINED) return status;
    c.columns = a->batch;
    for (const ConvAxis &x : c.axis) c.classes *= x.classes, c.columns *= (x.in + x.stride - 1) / x.stride;
    c.rows = c.in, c.depth = c.out * c.taps;
    c.left = a->weight, c.right = a->y, c.bias = a->bias, c.result = a->x;
    c.result_count = a->batch * a->in * c.pixels;
    return conv_run<CONV_INPUT>(a->dtype, c, c.x_channel);
}

static int bias_gradient(const ConvArgs *a, const ConvCall &c)
{
    const int64_t positions = c.positions;
    ReduceArgs r = {};
    r.kind = REDUCE_SUM, r.kept_ndim = 1, r.reduced_ndim = 2;
    r.kept = r.kept_shape[0] = a->out, r.kept_stride[0] = c.y_channel;
    r.reduced = a->batch * positions;
    r.reduced_shape[0] = a->batch, r.reduced_stride[0] = a->out * positions;
    r.reduced_shape[1] = positions, r.reduced_stride[1] = c.y_pixel;
    r.src = a->y, r.out = a->bias, r.src_dtype = r.out_dtype = a->dtype;
    return gpu_reduce(&r);
}

int gpu_conv2d_grad_weight(ConvArgs *a)
{
    ConvCall c;
    if (!conv_call(a, &c)) return KERNEL_DECLINED;
    if (a->bias && bias_gradient(a, c)) return -1;
    const int status = by_others(CONV_WEIGHT, a);
    if (status != KERNEL_DECLINED) return status;
    c.rows = c.out, c.columns = c.in * c.taps, c.depth = a->batch * c.positions;
    c.left = a->y, c.right = a->x, c.result = a->weight;
    c.result_count = a->out * c.columns;
    return conv_run<CONV_WEIGHT>(a->dtype, c, 1);
}
