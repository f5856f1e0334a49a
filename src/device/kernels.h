/* kernels.h - what the kernels of a device take: a struct of plain data for each, and what it means
 * (device.h).  Strides are in elements. */
#ifndef TG_KERNELS_H
#define TG_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_MAX_DIMS = 16 };

typedef enum RowPart { ROW_FORWARD, ROW_GRAD_A, ROW_GRAD_B } RowPart;
enum { ROW_A, ROW_B, ROW_Y, ROW_G, ROW_OPERANDS }; /* operand slots of a row's formulas: x is a */

/* A strided block: the element at index (i, j, ...) lies at data + i stride[0] + j stride[1] + ... elements.
 */
typedef struct Strided {
    void *data;
    int dtype;
    int64_t stride[KERNEL_MAX_DIMS];
} Strided;

/* map - one part of one row over a collapsed index space (size-1 dims gone, mergeable neighbours merged,
 * innermost last).  in[k].data is NULL for operands that the part does not read.  All float operands have the
 * dtype of the computation (f16 and bf16 compute in f32); out may have another: bool for comparisons, and on
 * a device that takes halves f32 beside these, or these beside f32. */
typedef struct MapArgs {
    int row, part;
    int by_one[2]; /* of a row of a and b: the row that has a, or b, as its parameter; 0: none */
    int ndim;
    int64_t count, shape[KERNEL_MAX_DIMS];
    Strided out, in[ROW_OPERANDS];
    const double *params;
} MapArgs;

/* map_formula - map for a row that only its text tells, one of the program's own; map's row is -1. formula:
 * of each part, C expressions as in ops.def, or NULL; their names are x (of one operand) or a and b, y, g and
 * param.  Declined: the device cannot compile them. */
typedef struct FormulaArgs {
    const char *name, *formula[3], *param[2]; /* the op's; param NULL: none */
    int operands;
    MapArgs *map;
} FormulaArgs;

/* copy - dst = (dtype of dst) src, any strides, one device. */
typedef struct CopyArgs {
    int ndim;
    int64_t count, shape[KERNEL_MAX_DIMS];
    Strided dst, src;
} CopyArgs;

/* fill - every element = value (integer dtypes: truncated; i64 takes value_i64).  Other kinds fill a dense
 * array with a sequence; a device may decline them, as the CPU does:
 *   FILL_STEPS_I64   value_i64 + i step_i64, in i64
 *   FILL_STEPS       value + i step, rounded twice in f64
 *   FILL_BETWEEN     value + i step of the first half, end - (count - 1 - i) step of the second, rounded once
 *                    in f64; FILL_BETWEEN_F32: in f32 */
typedef enum FillKind { FILL_VALUE, FILL_STEPS_I64, FILL_STEPS, FILL_BETWEEN, FILL_BETWEEN_F32 } FillKind;
typedef struct FillArgs {
    FillKind kind;
    int ndim;
    int64_t count, shape[KERNEL_MAX_DIMS];
    Strided dst;
    double value, step, end;
    int64_t value_i64, step_i64;
} FillArgs;

/* select - out = cond ? a : b; cond is bool; a, b, out share a dtype. */
typedef struct SelectArgs {
    int ndim;
    int64_t count, shape[KERNEL_MAX_DIMS];
    Strided out, cond, a, b;
} SelectArgs;

/* reduce - for each of the kept positions, over the reduced ones (both collapsed spaces; src strides for
 * each). out is dense over the kept positions.  The order of additions is fixed by the sizes alone. */
typedef enum ReduceKind {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_PROD,
    REDUCE_MAX,
    REDUCE_MIN, /* NaN wins in max and min */
    REDUCE_ARGMAX,
    REDUCE_ARGMIN, /* out i64: index over the reduced positions, first on ties; NaN wins */
    REDUCE_ANY,
    REDUCE_ALL,  /* out bool */
    REDUCE_VAR,  /* param: correction; two-pass or Welford; out = sum (x - mean)^2 / max(0, n - correction) */
    REDUCE_NORM, /* param: p; (sum |x|^p)^(1/p); p = inf, -inf, 0, 1, 2 as torch.linalg.vector_norm */
    REDUCE_LOGSUMEXP,     /* max is subtracted; a row of -inf gives -inf */
    REDUCE_COUNT_NONZERO, /* out i64 */
    REDUCE_STD            /* the square root of REDUCE_VAR, which itself may be out of range */
} ReduceKind;
typedef struct ReduceArgs {
    int kind;
    int kept_ndim, reduced_ndim;
    int64_t kept, reduced; /* counts */
    int64_t kept_shape[KERNEL_MAX_DIMS], kept_stride[KERNEL_MAX_DIMS];
    int64_t reduced_shape[KERNEL_MAX_DIMS], reduced_stride[KERNEL_MAX_DIMS];
    const void *src;
    int src_dtype;
    void *out;
    int out_dtype;
    double param;
} ReduceArgs;

/* gemm - for each batch: s = alpha a b + beta c (+ bias), c = f(s); see the CPU's src/cpu/product/gemm.h.
 * dtype f32, f64, f16, bf16 (the halves accumulate in f32); c and bias are `to`: the same, or f32 beside
 * halves.  beta == 0 does not read c; k = 0 gives beta c.  Any strides, batch strides may be 0.
 *     precision: what a product of f32 may lose, as TensorMatmulPrecision; a device may lose less.
 *     function: f of s, which the row of that number is, too; before, unless NULL, receives s, and lies as c
 *         does.  GEMM_GELU_TANH: tanh's approximation.
 *     sums: unless NULL, of dtype `to`, dense, m long, one batch: sum over k of a, which is the gradient of a
 *         bias beside that of its weight.
 * Function and sums are declined where they would be a pass of their own. */
typedef enum GemmPrecision { GEMM_EXACT, GEMM_TF32, GEMM_BF16 } GemmPrecision;
typedef enum GemmFunction { GEMM_IDENTITY, GEMM_RELU, GEMM_GELU, GEMM_GELU_TANH } GemmFunction;
typedef struct GemmArgs {
    int dtype, to;
    int precision, function, row;
    int64_t batch, m, n, k;
    const void *a;
    int64_t a_batch, a_row, a_col;
    const void *b;
    int64_t b_batch, b_row, b_col;
    void *c;
    int64_t c_batch, c_row, c_col;
    double alpha, beta;
    const void *bias; /* dense, n long, added to each row of every c; NULL: none */
    void *before, *sums;
} GemmArgs;

/* softmax - over the middle of dense [outer, n, inner]; log: log_softmax.  Rows that are all -inf give NaN.
 */
typedef struct SoftmaxArgs {
    int dtype;
    bool log;
    int64_t outer, n, inner;
    const void *x;
    void *y;
} SoftmaxArgs;
/* softmax_grad - dx = y (g - sum g y), log: dx = g - exp(y) sum g */
typedef struct SoftmaxGradArgs {
    int dtype;
    bool log;
    int64_t outer, n, inner;
    const void *y, *g;
    void *dx;
} SoftmaxGradArgs;

/* cross_entropy - class targets over dense logits [rows, classes, inner]: per-position losses and, for the
 * mean, the sum of weights.  lse [rows, inner] receives log sum exp for backward.  A target outside [0,
 * classes) that is not ignore_index is a fault, as an index of gather; told late it counts as class 0.
 * loss_i = (1 - s) w_t (lse - x_t) + s / C sum_c w_c (lse - x_c);  ignored positions: 0 */
typedef struct CrossEntropyArgs {
    const char *op;
    const void *site;
    int dtype; /* of x and dx; all else is f32 beside halves */
    int64_t rows, classes, inner;
    const void *x;
    const int64_t *target;
    const void *weight; /* dense [classes] or NULL */
    int64_t ignore_index;
    double smoothing;
    void *loss, *lse; /* dense [rows, inner] */
    void *weight_sum; /* one element: sum of w_t over positions not ignored */
    int64_t bad_at, bad_value;
} CrossEntropyArgs;
/* cross_entropy_grad - dx = g_i ((1 - s) w_t (p - onehot) + s / C (p sum_c w_c - w)); g has stride 0 or 1
 * over positions. */
typedef struct CrossEntropyGradArgs {
    int dtype;
    int64_t rows, classes, inner;
    const void *x, *lse;
    const int64_t *target;
    const void *weight;
    int64_t ignore_index;
    double smoothing;
    const void *g;
    int64_t g_stride;
    void *dx;
} CrossEntropyGradArgs;

/* order - for each line of dense [outer, n, inner] the i64 indices of m of its elements in an order, equal
 * elements by index; NaN counts as the largest.  ORDER_FIRST: the first m = k of the order (m = n: all).  The
 * others give one: ORDER_KTH the k-th, k from 1; ORDER_MEDIAN the lower of two in the middle, or the first
 * NaN; ORDER_NANMEDIAN that of what is not NaN; ORDER_MODE the last index of the smallest of the most
 * frequent values.  indices and values (of dtype, may be NULL) are dense [outer, m, inner]. */
typedef enum OrderKind { ORDER_FIRST, ORDER_KTH, ORDER_MEDIAN, ORDER_NANMEDIAN, ORDER_MODE } OrderKind;
typedef struct OrderArgs {
    int kind, dtype;
    bool descending;
    int64_t outer, n, inner, m, k;
    const void *x;
    void *values;
    int64_t *indices;
} OrderArgs;

/* scan - running results along the middle of dense [outer, n, inner].  SCAN_SUM: in double, or in
 * i64 (dtype a float or i64); reverse: from the last element on.  SCAN_LOGSUMEXP: f32, f64.  SCAN_MAX,
 * SCAN_MIN, any dtype: index (i64) of the extreme so far, the last one on ties; NaN stays the extreme; and
 * the extreme itself into y, which is NULL but on the CPU.
 * scan_grad - SCAN_LOGSUMEXP: dx_i = sum over j >= i of g_j e^(x_i - y_j), 0 where x_i is -inf. */
typedef enum ScanKind { SCAN_SUM, SCAN_LOGSUMEXP, SCAN_MAX, SCAN_MIN } ScanKind;
typedef struct ScanArgs {
    int kind, dtype;
    bool reverse;
    int64_t outer, n, inner;
    const void *x;
    void *y;        /* scan_grad reads it */
    int64_t *index; /* SCAN_MAX, SCAN_MIN */
    const void *g;  /* scan_grad: */
    void *dx;
} ScanArgs;

/* search - for value i of [lists, values] how many of the n ascending elements of its list are less than it
 * (right: not greater); NaN is behind all.  sorter: the list's order, i64 in [0, n), or NULL.  dtype f64 or
 * i64; all dense. */
typedef struct SearchArgs {
    int dtype;
    bool right;
    int64_t lists, n, values;
    const void *sorted, *x;
    const int64_t *sorter;
    int64_t *place;
} SearchArgs;

/* gather - out[o, j, i] = src[o, index[o, j, i], i] over dense [outer, n, inner] src and [outer, m, inner]
 * index (embedding and index_select use index_outer = index_inner = 0).
 * scatter_add - dst[o, index, i] += src[o, j, i], in the order of j, dst dense [outer, n, inner]; halves are
 * added in f32, and rounded once.
 * scatter_fold - the same by a fold, f64 or i64 (CPU: extremes of f32 too): dst[o, index, i], if include_self
 * or nothing names it, and all src[o, j, i] there.  Integers' means round down, NaN wins extremes.
 * An index outside [0, n) is a fault.  Told at once it is KERNEL_FAILED with bad_at and bad_value, and
 * nothing is written.  A device that queues its work may tell it late, by Device.fault after the next wait: a
 * gather reads index 0 in its place, the others leave it out. */
typedef enum FoldKind { INTO_SUM, INTO_PROD, INTO_MEAN, INTO_AMAX, INTO_AMIN } FoldKind; /* as TensorInto */
typedef struct GatherArgs {
    const char *op; /* whose call it is, for a fault that is told late */
    const void *site;
    int dtype;
    int64_t outer, n, m, inner;
    const void *src;
    const int64_t *index;
    int64_t index_outer, index_row, index_inner; /* strides of index */
    void *dst;
    int fold; /* scatter_fold: a FoldKind */
    bool include_self;
    int64_t bad_at, bad_value;
} GatherArgs;

/* check_range - do all count values of dense x, f64 or i64, lie in [low, high]?  INT64_MAX as high is no
 * bound; NaN lies there if nan says so.  One that does not is a fault, as an index of gather, which names
 * what the values are; status: the TensorStatus of its error.
 * index_join - one more dim, of n, of row-major positions: at = at n + index (first: at = index); negative
 * ones count from the end of n, and 0 stands for what lies outside [-n, n).  All i64, dense. */
typedef struct CheckArgs {
    const char *op, *what;
    const void *site;
    int status, dtype;
    bool nan;
    int64_t count, low, high;
    const void *x;
    int64_t bad_at, bad_value; /* value of i64 */
    double bad_number;         /* of f64 */
} CheckArgs;
typedef struct IndexJoinArgs {
    int64_t count, n;
    bool first;
    const int64_t *index;
    int64_t *at;
} IndexJoinArgs;

/* conv2d - x [batch, in, d, h, w], weight [out, in / groups, kd, kh, kw], bias [out] or NULL, y [batch, out,
 * od, oh, ow]; all dense, x and y in the layout that is said: LAYOUT_LAST has their channels behind the last
 * dimension.  With fewer than three dimensions the first ones have size 1. conv2d_grad_input: dx
 * from y (= dy) and weight, plus bias [in] or NULL; conv2d_grad_weight: dweight from x and dy, and dbias if
 * not NULL. */
typedef enum ImageLayout { LAYOUT_FIRST, LAYOUT_LAST } ImageLayout;
typedef struct ConvArgs {
    int dtype, layout, precision; /* as that of gemm */
    int64_t batch, in, d, h, w, out, od, oh, ow, kd, kh, kw, groups;
    int64_t stride_d, stride_h, stride_w, pad_d, pad_h, pad_w, dilation_d, dilation_h, dilation_w;
    void *x, *weight, *bias, *y;
} ConvArgs;

/* pools - over dense planes [depth, height, width] (1 for a dimension that there is not).  max: padding
 * counts as -inf, NaN wins, first in window order on ties; index (i64, position within the plane) is written
 * forward and read backward.  avg: divisor as in PyTorch.  adaptive: window i of out over in is [floor(i in /
 * out), ceil((i + 1) in / out)), and no other size is read.  LAYOUT_LAST: x, y and
 * index lie with their channels last; an image has `channels` planes. */
typedef struct PoolArgs {
    int dtype, layout;
    bool adaptive;
    int64_t channels, planes, in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
    bool count_include_pad;
    int64_t divisor; /* 0: none given */
    void *x, *y;     /* backward: x receives dx, y holds dy */
    int64_t *index;
} PoolArgs;

/* resample - y[i] = sum_k weight[k] x[index[k]], k in [start[i], start[i + 1]), along each axis of dense
 * planes in turn.  The tables lie on the device, weight of the dtype; start NULL: the axis stays as it is.
 * taps: start[i + 1] - start[i] when that is the same for all, else 0. */
typedef struct ResampleAxis {
    int64_t in, out, taps;
    const int64_t *start, *index;
    const void *weight;
} ResampleAxis;
typedef struct ResampleArgs {
    int dtype;
    int64_t planes;
    ResampleAxis axis[3];
    const void *x;
    void *y;
} ResampleArgs;

/* resample_table - fills such a table: result element i in [0, out) of a line of `in` elements has `taps`
 * weights at most (cpu/image/resample_taps.h), of which start may leave out the rest.  transposed: of the
 * line's elements, each with the results that it reaches, in order.  start [out + 1], or [in + 1]; index and
 * weight, f32 or f64, [out taps]. */
typedef enum ResampleWeights {
    RESAMPLE_NEAREST,
    RESAMPLE_NEAREST_EXACT,
    RESAMPLE_LINEAR,
    RESAMPLE_CUBIC
} ResampleWeights;
typedef struct ResampleLine { /* one dim of an image that gets another size */
    int weights,
        spatial; /* spatial: how many dims the image has; PyTorch's nearest rounds otherwise in two */
    bool align_corners, antialias;
    int64_t in, out;
    double scale; /* that positions are computed with; 0: the sizes' own */
} ResampleLine;
typedef struct ResampleTableArgs {
    ResampleLine line;
    int dtype;
    bool transposed;
    int64_t taps, *start, *index;
    void *weight;
} ResampleTableArgs;

/* taps - over dense x [batch, channels, size], index and weight [batch, taps, points], y [batch, channels,
 * points]; an index outside [0, size) names nothing. sum: y = sum_k weight x[index].  spread: x = zeros with
 * weight y added at index.  dot: weight = sum over channels of y x[index]. */
typedef enum TapsKind { TAPS_SUM, TAPS_SPREAD, TAPS_DOT } TapsKind;
typedef struct TapsArgs {
    int kind, dtype;
    int64_t batch, channels, size, taps, points;
    const int64_t *index;
    void *x, *weight, *y;
} TapsArgs;

/* norm - layer_norm, rms_norm, group_norm and batch_norm share one view: dense x [outer, channels, inner].
 * layer: statistics for each outer over channels * inner (n = their product), weight and bias dense [n].
 * rms: the same with 0 as the mean.  groups > 0: the same, but outer is [batch, groups], and weight and bias
 * are [groups * channels], a value for each channel of a group. batch: statistics for each channel over outer
 * and inner; weight and bias [channels]. mean, rstd and var (may be NULL) receive the statistics (biased
 * variance): rstd = 1 / sqrt(var + eps).
 *     add: of layer and rms, unless NULL, of x's shape: x + add takes the place of x, and goes to sum,
 *         rounded; grad: dx += dsum, unless that is NULL, and dadd, unless NULL, is dx once more. */
typedef struct NormArgs {
    int dtype; /* of x, dx, sum, dsum; the statistics are f32 beside halves */
    int to,
        added;   /* of y and dy; of add and dadd: the same, or a half beside f32 on a device that reads it */
    int weights; /* of weight, bias, dweight, dbias: the same, or f32 beside halves */
    bool batch;
    bool given; /* batch in eval mode: mean and rstd are given */
    bool rms;
    int64_t outer, channels, inner, groups;
    double eps;
    const void *x, *weight, *bias; /* weight, bias may be NULL */
    const void *add;
    void *y, *mean, *rstd, *var, *sum;
    const void *dy, *dsum;             /* grad: */
    void *dx, *dadd, *dweight, *dbias; /* each may be NULL when not wanted */
} NormArgs;

/* random - the counter-based generator (Philox 4x32-10): element i depends on (seed, offset, i) only.  state:
 * NULL, or {seed, offset} on the device: its seed counts, and offset is added to its offset.
 * The kinds _TORCH give PyTorch's numbers on a GPU of that many multiprocessors, from its offset on, which
 * advances by `advance`, an answer: uniform on [at[0], at[1]); normal, at: mean and deviation; exponential,
 * at: rate; 1 with probability p, as Tensor.bernoulli_ draws it; low + (a word, or two where `wide`) modulo
 * range; the mask of dropout with probability p of 0 for a tensor of `dtype`; EACH: 1 with probability x_i,
 * as of Tensor.bernoulli; FIRST: on (0, 1], f32, for each of `low` draws of a row, as of multinomial.
 * The CPU declines them.
 * A mask of dropout may come with x: the same pass sets y = x scale where the mask is 1, and else 0; of
 * RANDOM_GIVEN_MASK, by the mask that is there.  The CPU declines that, too. */
typedef enum RandomKind {
    RANDOM_DROPOUT_MASK,
    RANDOM_UNIFORM,
    RANDOM_NORMAL,
    RANDOM_TORCH_UNIFORM,
    RANDOM_TORCH_NORMAL,
    RANDOM_TORCH_EXPONENTIAL,
    RANDOM_TORCH_INTEGERS,
    RANDOM_TORCH_BERNOULLI,
    RANDOM_TORCH_DROPOUT,
    RANDOM_TORCH_EACH,
    RANDOM_TORCH_FIRST,
    RANDOM_GIVEN_MASK
} RandomKind;
typedef struct RandomArgs {
    int kind, dtype;
    int64_t count;
    uint64_t seed, offset;
    const uint64_t *state;
    double p; /* mask: probability of 0; out is bool */
    double at[2];
    int64_t low;
    uint64_t range; /* 0: 2^64 */
    bool wide;
    uint64_t advance;
    void *out;     /* dense; of dtype, but bool for masks and bernoulli, i64 for integers */
    const void *x; /* NULL, or dense as y, of a floating dtype */
    void *y;
    double scale;
} RandomArgs;

/* attention - y = D(softmax(scale q k^T + mask)) v for each item of a batch of `shape`; q [rows, width], k
 * [cols, width], v [cols, value_width], mask [rows, cols].  The item at (i, j, ..) begins at sum_d (index[d]
 * / each[d]) stride[d], in elements; row and col are strides.  A row without a finite score (and no NaN) has
 * the probabilities 0.  D: the elements that `keep` does not keep are 0, the others times keep_factor. shift
 * and factor receive a value for each row: p = factor e^(score - shift).  Backward reads them, dy and, but on
 * the CPU, y.
 * y, dy, dq, dk and dv are dense; on a device that reads halves the last dim of the batch, if `heads` is that
 * and not 1, may lie behind the rows: [batch / heads, rows, heads, width], as it does where a layer splits
 * its features into heads.  dk and dv have heads / share of them. */
typedef struct AttentionOperand {
    const void *data; /* NULL: absent (mask) */
    int64_t each[KERNEL_MAX_DIMS], stride[KERNEL_MAX_DIMS];
    int64_t row, col;
} AttentionOperand;
typedef struct AttentionArgs {
    int dtype;      /* shift and factor are f32 beside halves */
    int mask_dtype; /* bool, or the same, or f32 beside halves */
    bool causal;    /* row i sees columns 0..i */
    int ndim;       /* of the batch */
    int64_t shape[KERNEL_MAX_DIMS];
    int64_t batch, rows, cols, width, value_width;
    int64_t heads;
    int64_t share; /* so many items, one behind the other, share a gradient of k and of v */
    double scale, keep_factor;
    AttentionOperand q, k, v, mask;
    const uint8_t *keep;  /* dense [batch, rows, cols], or NULL: all are kept */
    void *shift, *factor; /* dense [batch, rows] */
    void *y;              /* [batch, rows, value_width] */
    const void *dy;       /* backward: */
    void *dq, *dmask;     /* a gradient for each item; NULL when not wanted; dmask is dense */
    void *dk, *dv;        /* the same, [batch / share, cols, ...] */
} AttentionArgs;
/* rnn_step - one step of a recurrent layer, after its products: row by row of [rows, gates hidden], where rnn
 * has 1 gate, gru 3 (r, z, n) and lstm 4 (i, f, g, o), each `hidden` wide.  All dense, f32 or f64.
 *     gates: the sums before the nonlinearities in (gru: of x alone), the gates' values out; rnn: it is h.
 *     gru: recurrent [rows, 3 hidden] is w_hh h + b_hh; its part n goes to `n_part`, for backward.
 *     lstm: c_prev -> c.  h receives the new state.
 * rnn_step_grad - dh is the gradient of h.  dgates receives those of the sums.
 *     gru: drecurrent receives those of recurrent, and z dh is added to dh_prev.
 *     lstm: dc is the gradient of c in, without what comes by way of h; of c_prev out. */
typedef enum RnnKind { RNN_TANH, RNN_RELU, RNN_GRU, RNN_LSTM } RnnKind;
typedef struct RnnArgs {
    int kind, dtype;
    int64_t rows, hidden;
    void *gates;
    const void *recurrent, *h_prev, *c_prev;
    void *n_part, *c, *h;
    const void *dh; /* grad: reads gates, n_part, h_prev, c_prev, c too */
    void *dgates, *drecurrent, *dh_prev, *dc;
} RnnArgs;

/* pairs - of dense vectors a [batch, m, n] and b [batch, others, n]: out [batch, m, others] = |a_i - b_j|_p.
 * pairs_grad - out [batch, m, n] = sum_j g_ij sign(d) (|d| / |d|_p)^(p - 1), d = a_i - b_j, 0 where |d|_p is
 * 0; p = inf: g_ij sign(d) wherever |d| is the largest.  g_ij lies at i step + j other_step of its batch.
 * rounded: out is rounded to f32 or less, so that errors of 2^-40 do not show. */
typedef struct PairsArgs {
    int dtype;
    int64_t batch, m, others, n, step, other_step;
    const void *a, *b, *g;
    void *out;
    double p;
    bool rounded;
} PairsArgs;

/* special - y_i = f(a_i, b_i) of dense f64 arrays (cpu/math/special_gamma.h); rounded: f32 is made of
 * them, 2^-30 is enough. */
typedef enum SpecialKind { SPECIAL_ZETA, SPECIAL_IGAMMA, SPECIAL_IGAMMAC } SpecialKind;
typedef struct SpecialArgs {
    int kind;
    bool rounded;
    int64_t count;
    const double *a, *b;
    double *y;
} SpecialArgs;

/* ctc - connectionist temporal classification (cpu/loss/ctc.c) of log-probabilities x [T, N, C], with the
 * state labels of each sequence, [N, states]; those behind the end are the blank.  dx NULL: the losses [N];
 * else dx, zeros before, receives the gradient for cotangents g [N].  All dense, f64, but x alone may be f32
 * for the losses. */
typedef struct CtcArgs {
    int dtype; /* of x */
    int64_t T, N, C, states;
    const void *x;
    const int64_t *label, *times, *sizes; /* times, sizes: input and target lengths */
    bool zero_infinity;
    double *loss, *dx;
    const double *g;
} CtcArgs;

/* class_margin - of each row of dense x [rows, classes], f64: loss = the sum of relu(1 - (x_j - x_i)) /
 * classes over the right j, which target lists up to a negative one, and the wrong i; slope receives its
 * gradient.  A target outside [-1, classes) is a fault, as an index of gather; told late it names nothing. */
typedef struct ClassMarginArgs {
    const char *op;
    const void *site;
    int64_t rows, classes;
    const double *x;
    const int64_t *target;
    double *loss, *slope;
    int64_t bad_at, bad_value;
} ClassMarginArgs;

/* list_rule - what a rule (optim/rule.h) does to each element, over n lists of dense arrays of one dtype:
 * array[i * arrays + j] has count[i] elements; j is 0 for x, 1 for its gradient, then the states.  Halves
 * compute in f32 and round once.  The numbers of the rule are on the host, or, of the computation's dtype, at
 * number_there.  row: NULL, or an i64 on the device: number has `rows` rows of OP_LIST_NUMBERS (op_row.h).
 * skip: a bool on the device, or NULL; where it is true nothing is written.  A rule is known
 * by its name and its text; one that is not is declined.  ready: makes what the call needs, and that is all:
 * the same call after it then asks for no memory.
 * list_cast - array[2 i + 1] = (dtype `to`) array[2 i], of dtype `from`, count[i] elements of n pairs.
 * list_norm - out[i] = (sum |x|^ord)^(1/ord) over the count[i] elements of array[i]; ord 1, 2 and infinity
 * (the largest, NaN wins); others may be declined.  out is dense, of out_dtype f32 or f64. */
typedef struct ListRuleArgs {
    const char *rule, *step;
    int dtype, arrays, numbers;
    int64_t n;
    void *const *array;
    const int64_t *count;
    const double *number;
    const void *number_there, *skip;
    const int64_t *row;
    int rows;
    bool ready;
} ListRuleArgs;
typedef struct ListCastArgs {
    int from, to;
    int64_t n;
    void *const *array;
    const int64_t *count;
    bool ready; /* as that of list_rule */
} ListCastArgs;
typedef struct ListNormArgs { /* array[2 i]: a list; array[2 i + 1]: the number of its place in out */
    int dtype, out_dtype;
    int64_t n;
    void *const *array;
    const int64_t *count;
    double ord;
    void *out;
} ListNormArgs;

#endif
