/* interpolate.c - images of another size.
 *
 *   resample      y = M x along each of the last dimensions, M [out, in] with a few weights a row     dx =
 * M^T dy interpolate   sizes, scales and modes as in PyTorch; area is adaptive_avg_pool
 *
 * resample with `transposed` is M^T, which gathers as well: tables of both are made here, and kernels see
 * weights only. */
#include <math.h>
#include "op/shape/shape_op.h"
#include "pool.h"

typedef struct ResampleParams {
    OpDims size;     /* of the result's last dimensions */
    double scale[3]; /* that positions are computed with; 0: the sizes' own */
    int mode;
    bool align_corners, antialias, transposed;
} ResampleParams;

/* ---- weights along one dimension ------------------------------------------------------------- */

typedef struct Axis {
    int mode, spatial;
    bool align_corners, antialias;
    int64_t in, out;
    double scale; /* given, or 0 */
} Axis;

static bool is_nearest(int mode) { return mode == TENSOR_NEAREST || mode == TENSOR_NEAREST_EXACT; }

/* Input elements per result element. */
static double step_of(const Axis *a)
{
    if (a->align_corners) return a->out > 1 ? (double)(a->in - 1) / (double)(a->out - 1) : 0;
    return a->scale > 0 ? 1 / a->scale : (double)a->in / (double)a->out;
}

/* In f32 whatever x is; roundings and shortcuts as PyTorch's forward has them in 2 dimensions, and in 1
 * and 3. */
static int64_t nearest(const Axis *a, int64_t i)
{
    const float step = a->scale > 0 ? (float)(1 / a->scale) : (float)a->in / (float)a->out;
    int64_t at;
    if (a->mode == TENSOR_NEAREST_EXACT)
        at = (int64_t)floorf(a->spatial == 2 ? (float)(((double)i + 0.5) * (double)step)
                                             : ((float)i + 0.5f) * step);
    else if (a->spatial == 2 && a->out == a->in) at = i;
    else if (a->spatial == 2 && a->out == 2 * a->in) at = i / 2;
    else at = (int64_t)floorf((float)i * step);
    return at < a->in ? at : a->in - 1;
}

/* Keys' cubic at distance x. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* The element before position i, and how far behind it that lies. */
static int64_t position(const Axis *a, int64_t i, double *behind)
{
    const double step = step_of(a);
    double at = a->align_corners ? step * (double)i : step * ((double)i + 0.5) - 0.5;
    if (at < 0 && a->mode != TENSOR_BICUBIC) at = 0;
    const int64_t below = (int64_t)fmin(floor(at), (double)(a->in - 1));
    *behind = fmin(fmax(at - (double)below, 0), 1);
    return below;
}

/* A filter as wide as what a result element covers, as Pillow's: its cubic has a = -0.5. */
static double support_of(const Axis *a)
{
    const double half = a->mode == TENSOR_BICUBIC ? 2 : 1, step = step_of(a);
    return step >= 1 ? half * step : half;
}

static int antialiased(const Axis *a, int64_t i, int64_t *index, double *weight)
{
    const double step = step_of(a), support = support_of(a), center = step * ((double)i + 0.5),
                 shrink = step >= 1 ? 1 / step : 1;
    const int64_t from = (int64_t)fmax(center - support + 0.5, 0),
                  to = (int64_t)fmin(center + support + 0.5, (double)a->in);
    const int64_t most = 2 * (int64_t)ceil(support) + 1;
    int n = 0;
    double total = 0;
    for (int64_t j = from; j < to && n < most; j++, n++) {
        const double x = ((double)j - center + 0.5) * shrink;
        index[n] = j, weight[n] = a->mode == TENSOR_BICUBIC ? cubic(x, -0.5) : fmax(1 - fabs(x), 0);
        total += weight[n];
    }
    for (int k = 0; k < n && total != 0; k++) weight[k] /= total;
    return n;
}

/* The weights of result element i; returns how many. */
static int taps(const Axis *a, int64_t i, int64_t *index, double *weight)
{
    double behind;
    if (is_nearest(a->mode)) return index[0] = nearest(a, i), weight[0] = 1, 1;
    if (a->antialias) return antialiased(a, i, index, weight);
    const int64_t at = position(a, i, &behind), last = a->in - 1;
    if (a->mode != TENSOR_BICUBIC) {
        index[0] = at, weight[0] = 1 - behind;
        index[1] = at < last ? at + 1 : at, weight[1] = behind;
        return 2;
    }
    for (int k = 0; k < 4; k++) {
        const int64_t j = at - 1 + k;
        index[k] = j < 0 ? 0 : j < last ? j : last, weight[k] = cubic(behind + 1 - k, -0.75);
    }
    return 4;
}

static int64_t most_taps(const Axis *a)
{
    if (is_nearest(a->mode)) return 1;
    if (!a->antialias) return a->mode == TENSOR_BICUBIC ? 4 : 2;
    return 2 * (int64_t)ceil(support_of(a)) + 1;
}

/* ---- tables ---------------------------------------------------------------------------------- */

typedef struct Table {
    Tensor *start, *index, *weight;
} Table;

static int new_table(Table *t, int64_t rows, int64_t entries)
{
    t->start = own(new_tensor(SHAPE(rows + 1), TENSOR_I64, &cpu_place));
    t->index = own(new_tensor(SHAPE(entries), TENSOR_I64, &cpu_place));
    t->weight = own(new_tensor(SHAPE(entries), TENSOR_F64, &cpu_place));
    return t->start && t->index && t->weight ? 0 : -1;
}

static int fill_table(Table *t, const Axis *a)
{
    if (new_table(t, a->out, a->out * most_taps(a))) return -1;
    int64_t *start = t->start->data, n = 0;
    for (int64_t i = 0; i < a->out; i++) {
        start[i] = n;
        n += taps(a, i, (int64_t *)t->index->data + n, (double *)t->weight->data + n);
    }
    start[a->out] = n;
    return 0;
}

/* Rows of t become columns of `to`: counted, then placed, in order. */
static int transpose(const Table *t, const Axis *a, Table *to)
{
    const int64_t *start = t->start->data, *index = t->index->data, entries = start[a->out];
    const double *weight = t->weight->data;
    if (new_table(to, a->in, entries)) return -1;
    int64_t *begin = to->start->data, sum = 0;
    memset(begin, 0, (size_t)(a->in + 1) * sizeof *begin);
    for (int64_t k = 0; k < entries; k++) begin[index[k]]++;
    for (int64_t j = 0; j <= a->in; j++) {
        const int64_t count = begin[j];
        begin[j] = sum, sum += count;
    }
    for (int64_t i = 0; i < a->out; i++)
        for (int64_t k = start[i]; k < start[i + 1]; k++) {
            const int64_t at = begin[index[k]]++;
            ((int64_t *)to->index->data)[at] = i, ((double *)to->weight->data)[at] = weight[k];
        }
    for (int64_t j = a->in; j > 0; j--) begin[j] = begin[j - 1]; /* each had moved to the next one's */
    begin[0] = 0;
    return 0;
}

static bool stays(const Axis *a)
{
    return a->in == a->out && !is_nearest(a->mode) &&
           (a->mode != TENSOR_BICUBIC || a->antialias || a->align_corners || a->scale == 0);
}

static int resample_axis(const ResampleParams *p, Axis a, int dtype, ResampleAxis *to)
{
    Table forward, table;
    *to = (ResampleAxis){ .in = p->transposed ? a.out : a.in, .out = p->transposed ? a.in : a.out };
    if (stays(&a)) return 0;
    to->taps = p->transposed || a.antialias ? 0 : most_taps(&a);
    if (fill_table(&forward, &a)) return -1;
    table = forward;
    if (p->transposed && transpose(&forward, &a, &table)) return -1;
    Tensor *weight = own(raw_cast(table.weight, dtype));
    if (!weight) return -1;
    to->start = table.start->data, to->index = table.index->data, to->weight = weight->data;
    return 0;
}

/* ---- resample -------------------------------------------------------------------------------- */

static int shape(OpCall *c)
{
    const ResampleParams *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    int64_t dim[5];
    if (x->ndim < 3 || x->ndim > 5 || p->size.n != x->ndim - 2)
        return op_fail(c, TENSOR_ESHAPE, "%s to %d sizes: want [batch, channels, ...] with as many more",
                       S(x), p->size.n);
    if (p->mode < TENSOR_NEAREST || p->mode > TENSOR_BICUBIC)
        return op_fail(c, TENSOR_EVALUE, "there is no mode %d", p->mode);
    for (int i = 0; i < x->ndim; i++) {
        dim[i] = i < 2 ? x->shape[i] : p->size.at[i - 2];
        if (i < 2 || (x->shape[i] > 0 && dim[i] > 0)) continue;
        return op_fail(c, TENSOR_ESHAPE, "%s to %s: want sizes of 1 and more", S(x),
                       shape_text((TensorShape){ p->size.n, p->size.at }));
    }
    return op_set_output(c, 0, (TensorShape){ x->ndim, dim }, (TensorDtype)x->dtype);
}

static int forward(OpCall *c)
{
    const ResampleParams *p = op_params(c);
    Tensor *x = dense_float(op_input(c, 0)), *out = op_output(c, 0), *y = pool_target(out);
    if (!x || !y) return -1;
    const int spatial = x->ndim - 2;
    ResampleArgs args = {
        .dtype = y->dtype, .planes = x->shape[0] * x->shape[1], .x = x->data, .y = y->data
    };
    for (int i = 0; i < 3; i++) {
        const int d = i - (3 - spatial);
        Axis a = {
            .mode = p->mode, .spatial = spatial, .align_corners = p->align_corners, .antialias = p->antialias
        };
        if (d < 0) {
            args.axis[i] = (ResampleAxis){ .in = 1, .out = 1 };
            continue;
        }
        a.scale = p->scale[d];
        a.in = p->transposed ? p->size.at[d] : x->shape[2 + d],
        a.out = p->transposed ? x->shape[2 + d] : p->size.at[d];
        if (resample_axis(p, a, y->dtype, &args.axis[i])) return -1;
    }
    return RUN_KERNEL(c->op->name, x->place, resample, &args) ? -1 : pool_deliver(out, y);
}

static const TensorOp op_resample;

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    ResampleParams p = *(const ResampleParams *)op_params(c);
    const TensorShape x = op_input_shape(c, 0);
    p.transposed = !p.transposed;
    for (int i = 0; i < p.size.n; i++) p.size.at[i] = x.dim[2 + i];
    dx[0] = APPLY(&op_resample, &p, dy);
    return dx[0] ? 0 : -1;
}

#define SCALE_FIELDS(struct_)                                              \
    { "scale_factor", OP_DOUBLE, offsetof(struct_, scale[0]), "0" },       \
        { "scale_factor_1", OP_DOUBLE, offsetof(struct_, scale[1]), "0" }, \
    {                                                                      \
        "scale_factor_2", OP_DOUBLE, offsetof(struct_, scale[2]), "0"      \
    }

static const OpField fields[] = { OP_FIELD(OP_DIMS, ResampleParams, size, NULL),
                                  SCALE_FIELDS(ResampleParams),
                                  OP_FIELD(OP_INT, ResampleParams, mode, "0"),
                                  OP_FIELD(OP_BOOL, ResampleParams, align_corners, "0"),
                                  OP_FIELD(OP_BOOL, ResampleParams, antialias, "0"),
                                  OP_FIELD(OP_BOOL, ResampleParams, transposed, "0"),
                                  { 0 } };
static const TensorOp op_resample = {
    .name = "resample",
    .summary = "M x along each of the last dimensions, for interpolate's weights M of a mode and sizes; "
               "transposed: M^T x",
    .gradient = "dx = M^T g along each",
    .arity = 1,
    .params = sizeof(ResampleParams),
    .fields = fields,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "-",
    .samples = "2x3x4 {size=[7] mode=2}; 1x2x3x5 {size=[5 2] mode=3 align_corners=1}; 1x2x3x5 {size=[5 2] "
               "mode=5 antialias=1}; "
               "1x2x5x3 {size=[2 6] mode=3 transposed=1}; 1x1x2x3x2 {size=[3 3 5] mode=4}; 0x2x3 {size=[2] "
               "mode=2}; 1x2x7 {size=[3] transposed=1}",
    .errors = "2x3x4 {size=[7 2]} ! ESHAPE; 2x3 {size=[]} ! ESHAPE; 2x3x4 {size=[0]} ! ESHAPE; 2x3x0 "
              "{size=[2]} ! ESHAPE; 2x3x4 {size=[2] mode=6} ! EVALUE",
};
REGISTER_OP(op_resample);

/* ---- interpolate ----------------------------------------------------------------------------- */

typedef struct InterpolateParams {
    OpDims size;
    double scale[3]; /* the first alone: for all */
    int mode;
    bool align_corners, recompute_scale_factor, antialias;
} InterpolateParams;

static int check_mode(OpCall *c, const InterpolateParams *p, const Tensor *x)
{
    static const char *const names[] = { "nearest",   "nearest-exact", "linear", "bilinear",
                                         "trilinear", "bicubic",       "area" };
    static const int dims[] = { 0, 0, 1, 2, 3, 2, 0 };
    if (p->mode < TENSOR_NEAREST || p->mode > TENSOR_AREA)
        return op_fail(c, TENSOR_EVALUE, "there is no mode %d", p->mode);
    const char *name = names[p->mode];
    const int want = dims[p->mode];
    if (x->ndim < 3 || x->ndim > 5 || (want && x->ndim != want + 2))
        return op_fail(c, TENSOR_ESHAPE, "%s by %s: want [batch, channels] and %s%d more dimensions", S(x),
                       name, want ? "" : "1 to ", want ? want : 3);
    if (p->align_corners && want == 0)
        return op_fail(c, TENSOR_EVALUE,
                       "align_corners with mode %s: for linear, bilinear, trilinear, bicubic", name);
    if (p->antialias && want != 2)
        return op_fail(c, TENSOR_EVALUE, "antialias with mode %s: for bilinear, bicubic", name);
    return 0;
}

/* Sizes, and the scales that positions are computed with, into r. */
static int check_sizes(OpCall *c, const InterpolateParams *p, const Tensor *x, ResampleParams *r)
{
    const int n = x->ndim - 2;
    const double *s = p->scale;
    const bool scaled = s[0] != 0 || s[1] != 0 || s[2] != 0;
    if ((p->size.n > 0) == scaled)
        return op_fail(c, TENSOR_EVALUE, "%s of size and scale_factor: want one of them",
                       scaled ? "both" : "neither");
    if (p->size.n > 1 && p->size.n != n)
        return op_fail(c, TENSOR_EVALUE, "a size of %d numbers for %s: want one, or %d", p->size.n, S(x), n);
    for (int i = n; i < 3; i++)
        if (s[i] != 0)
            return op_fail(c, TENSOR_EVALUE, "scale_factors of %d numbers for %s: want %d", s[2] != 0 ? 3 : 2,
                           S(x), n);
    if (p->size.n && p->recompute_scale_factor)
        return op_fail(c, TENSOR_EVALUE, "recompute_scale_factor with a size");
    r->size.n = n;
    for (int i = 0; i < n; i++) {
        const double scale = s[1] == 0 && s[2] == 0 ? s[0] : s[i],
                     size = floor((double)x->shape[2 + i] * scale);
        if (scaled && !(scale > 0 && size <= LINE_LIMIT))
            return op_fail(c, TENSOR_EVALUE, "%s by scale_factor %g: want a positive one, and sizes up to %d",
                           S(x), scale, LINE_LIMIT);
        r->size.at[i] = scaled ? (int64_t)size : p->size.at[p->size.n > 1 ? i : 0];
        if (r->size.at[i] < 0 || r->size.at[i] > LINE_LIMIT)
            return op_fail(c, TENSOR_EVALUE, "%s to size %lld: want sizes from 1 to %d", S(x),
                           (long long)r->size.at[i], LINE_LIMIT);
        r->scale[i] = p->recompute_scale_factor ? 0 : scale;
        if (x->shape[2 + i] > 0 && r->size.at[i] > 0) continue;
        return op_fail(c, TENSOR_ESHAPE, "%s to %lld in dimension %d: want sizes of 1 and more", S(x),
                       (long long)r->size.at[i], 2 + i);
    }
    return 0;
}

static int compose(OpCall *c)
{
    const InterpolateParams *p = op_params(c);
    Tensor *x = op_input(c, 0);
    ResampleParams r = { .mode = p->mode, .align_corners = p->align_corners, .antialias = p->antialias };
    if (check_mode(c, p, x) || check_sizes(c, p, x, &r)) return -1;
    const int64_t *to = r.size.at;
    if (p->mode != TENSOR_AREA) return op_set_result(c, 0, APPLY(&op_resample, &r, x));
    return op_set_result(c, 0,
                         x->ndim == 3   ? tensor_adaptive_avg_pool1d(x, to[0])
                         : x->ndim == 4 ? tensor_adaptive_avg_pool2d(x, to[0], to[1])
                                        : tensor_adaptive_avg_pool3d(x, to[0], to[1], to[2]));
}

static const OpField interpolate_fields[] = { OP_FIELD(OP_DIMS, InterpolateParams, size, "[]"),
                                              SCALE_FIELDS(InterpolateParams),
                                              OP_FIELD(OP_INT, InterpolateParams, mode, "0"),
                                              OP_FIELD(OP_BOOL, InterpolateParams, align_corners, "0"),
                                              OP_FIELD(OP_BOOL, InterpolateParams, recompute_scale_factor,
                                                       "0"),
                                              OP_FIELD(OP_BOOL, InterpolateParams, antialias, "0"),
                                              { 0 } };
static const TensorOp op_interpolate = {
    .name = "interpolate",
    .summary = "images of another size: nearest, linear, cubic or area means",
    .gradient = "dx = M^T g, for y = M x along each dimension",
    .arity = 1,
    .params = sizeof(InterpolateParams),
    .fields = interpolate_fields,
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_FLOAT_INPUTS,
    .torch = "nn.functional.interpolate",
    .samples =
        "2x3x4 {size=[7]}; 1x2x3x4 {scale_factor=2}; 1x1x2x3x2 {size=[3] mode=1}; 2x1x4 {scale_factor=1.7 "
        "mode=2}; 1x2x3x4 {size=[5 2] mode=3}; "
        "1x2x3x4 {scale_factor=0.6 scale_factor_1=2.3 mode=3}; 1x2x3x4 {size=[5 6] mode=3 align_corners=1}; "
        "1x1x2x3x2 {scale_factor=1.6 mode=4}; "
        "1x2x3x4 {size=[5 6] mode=5}; 1x2x5x4 {scale_factor=1.3 mode=5 recompute_scale_factor=1}; 1x1x7x6 "
        "{size=[3 4] mode=3 antialias=1}; "
        "1x1x7x6 {size=[9 2] mode=5 antialias=1}; 1x2x5x4 {size=[3 2] mode=6}; 0x2x3x3 {size=[5] mode=3}",
    .errors = "2x3x4 {} ! EVALUE; 2x3x4 {size=[7] scale_factor=2} ! EVALUE; 2x3x4 {size=[7] mode=3} ! "
              "ESHAPE; 2x3x4x4 {size=[7] mode=2} ! ESHAPE; "
              "2x3x4x4 {size=[7] mode=4} ! ESHAPE; 3x4 {size=[7]} ! ESHAPE; 2x3x4 {size=[7] align_corners=1} "
              "! EVALUE; 2x3x4 {size=[7] mode=6 align_corners=1} ! EVALUE; "
              "2x3x4 {size=[7] mode=2 antialias=1} ! EVALUE; 2x3x4 {size=[7 7]} ! EVALUE; 2x3x4 {size=[0]} ! "
              "ESHAPE; 2x3x4 {scale_factor=0.1} ! ESHAPE; "
              "2x3x4 {scale_factor=-1} ! EVALUE; 2x3x4 {size=[5] recompute_scale_factor=1} ! EVALUE; 2x3x0 "
              "{size=[3]} ! ESHAPE; 2x3x4 {size=[7] mode=7} ! EVALUE; "
              "2x3x4x4 {scale_factor=2 scale_factor_2=1} ! EVALUE; "
              "2x3x4x4 {scale_factor=2 scale_factor_1=2 scale_factor_2=2} ! EVALUE; 2x3x4 {scale_factor=2 "
              "scale_factor_1=2} ! EVALUE; "
              "2x3x4@i64 {size=[7]} ! EDTYPE",
};
REGISTER_OP(op_interpolate);

Tensor *tensor_interpolate_args(TensorInterpolateArgs a)
{
    InterpolateParams p = { .mode = (int)a.mode,
                            .align_corners = a.align_corners,
                            .recompute_scale_factor = a.recompute_scale_factor,
                            .antialias = a.antialias };
    if (shape_to_dims("interpolate", a.size, &p.size)) return NULL;
    const double *each = a.scale_factors;
    const bool all = each[0] == 0 && each[1] == 0 && each[2] == 0;
    if (!all && a.scale_factor != 0)
        return fail(TENSOR_EVALUE, "interpolate", "both scale_factor and scale_factors: want one of them"),
               NULL;
    if (each[0] != 0 && each[1] == 0 && each[2] == 0 && a.input && a.input->ndim > 3)
        return fail(TENSOR_EVALUE, "interpolate", "scale_factors of 1 number for %s: want %d", S(a.input),
                    a.input->ndim - 2),
               NULL;
    for (int i = 0; i < 3; i++) p.scale[i] = !all ? each[i] : i == 0 ? a.scale_factor : 0;
    return APPLY(&op_interpolate, &p, a.input);
}
