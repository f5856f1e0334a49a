/* conv_shape.c - checks operands and options of convolutions, and computes the result's shape. */
#include "conv.h"

/* The numbers of a call, from shapes x [batch, in, d, h, w], w [out, in / groups, kd, kh, kw] and y [batch,
 * out, od, oh, ow]. */
typedef struct Geometry {
    int rank;
    bool same; /* the padding is what keeps the size */
    int64_t in, out, groups;
    Sizes x, k, y, stride, pad, dilation;
} Geometry;

TensorConvArgs conv_transposed_options(const TensorConvTransposeArgs *a)
{
    TensorConvArgs p = { .stride = a->stride,
                         .padding = a->padding,
                         .dilation = a->dilation,
                         .groups = a->groups,
                         TENSOR_FROM_DEFAULTS };
    memcpy(p.strides, a->strides, sizeof p.strides);
    memcpy(p.paddings, a->paddings, sizeof p.paddings);
    memcpy(p.dilations, a->dilations, sizeof p.dilations);
    return p;
}

static bool all_at_least(const Sizes *s, int64_t least)
{
    return s->at[0] >= least && s->at[1] >= least && s->at[2] >= least;
}
static bool same_sizes(const Sizes *a, const Sizes *b) { return memcmp(a, b, sizeof *a) == 0; }

static Sizes reaches(const Sizes *kernel, const Sizes *dilation)
{
    Sizes s;
    for (int i = 0; i < WINDOW_RANK; i++) s.at[i] = window_reach(kernel->at[i], dilation->at[i]);
    return s;
}

Sizes conv_same_padding(const Sizes *kernel, const Sizes *dilation)
{
    Sizes s = reaches(kernel, dilation);
    for (int i = 0; i < WINDOW_RANK; i++) s.at[i] = (s.at[i] - 1) / 2;
    return s;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_dtypes(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->dtype == TENSOR_BOOL)
        return op_fail(c, TENSOR_EDTYPE, "%s is bool: want a floating dtype, i64, i32 or u8", S(x));
    return call_one_dtype(c);
}

static int check_options(OpCall *c, const TensorConvArgs *p, Geometry *g)
{
    static const int64_t none[WINDOW_RANK];
    g->rank = conv_rank(c), g->groups = p->groups;
    g->same = p->padding == TENSOR_SAME && memcmp(p->paddings, none, sizeof none) == 0;
    if (window_sizes(c, "stride", p->stride, p->strides, g->rank, 1, 1, &g->stride) ||
        window_sizes(c, "dilation", p->dilation, p->dilations, g->rank, 1, 1, &g->dilation) ||
        window_sizes(c, "padding", g->same ? 0 : p->padding, p->paddings, g->rank, 0, 0, &g->pad))
        return -1;
    if (p->groups < 1) return op_fail(c, TENSOR_EVALUE, "%lld groups: want 1 or more", (long long)p->groups);
    if (g->same && g->stride.at[0] * g->stride.at[1] * g->stride.at[2] != 1)
        return op_fail(c, TENSOR_EVALUE, "padding that keeps the size needs stride 1, not %s",
                       window_text(&g->stride, g->rank));
    return 0;
}

static int check_kernel(OpCall *c, Geometry *g, Sizes kernel)
{
    g->k = kernel;
    if (!all_at_least(&kernel, 1))
        return op_fail(c, TENSOR_ESHAPE, "%s, %s: a kernel of %s", S(op_input(c, 0)), S(op_input(c, 1)),
                       window_text(&kernel, g->rank));
    if (g->same) g->pad = conv_same_padding(&g->k, &g->dilation);
    return 0;
}

/* y's size from x's. */
static int check_result(OpCall *c, Geometry *g, Sizes x)
{
    const Sizes window = reaches(&g->k, &g->dilation);
    Sizes padded = x;
    g->x = g->y = x;
    if (!all_at_least(&x, 1)) /* padding alone is no input, as in PyTorch */
        return op_fail(c, TENSOR_ESHAPE, "%s, %s: an input of size %s: want 1 or more", S(op_input(c, 0)),
                       S(op_input(c, 1)), window_text(&x, g->rank));
    if (g->same) return 0;
    for (int i = 0; i < WINDOW_RANK; i++) {
        padded.at[i] += 2 * g->pad.at[i];
        const int64_t room = padded.at[i] - window.at[i];
        g->y.at[i] = room < 0 ? 0 : room / g->stride.at[i] + 1;
    }
    if (all_at_least(&g->y, 1)) return 0;
    return op_fail(c, TENSOR_ESHAPE,
                   "%s, %s: a kernel of %s (dilated %s) is larger than the padded input of %s",
                   S(op_input(c, 0)), S(op_input(c, 1)), window_text(&g->k, g->rank),
                   window_text(&window, g->rank), window_text(&padded, g->rank));
}

static int check_groups(OpCall *c, const Geometry *g, int64_t per_group)
{
    if (g->in % g->groups == 0 && g->out % g->groups == 0 && g->in / g->groups == per_group) return 0;
    return op_fail(
        c, TENSOR_ESHAPE,
        "%s, weight %s: %lld channels in and %lld out, in %lld groups: the weight has %lld channels for each",
        S(op_input(c, 0)), S(op_input(c, 1)), (long long)g->in, (long long)g->out, (long long)g->groups,
        (long long)per_group);
}

static int want_weight(OpCall *c, const Tensor *w, const char *channels)
{
    static const char *const spatial[] = { "width", "height, width", "depth, height, width" };
    const int rank = conv_rank(c);
    if (w->ndim == rank + 2) return 0;
    return op_fail(c, TENSOR_ESHAPE, "weight %s: want [%s, %s]", S(w), channels, spatial[rank - 1]);
}

static int want_bias(OpCall *c, const Tensor *b, const Tensor *w, int64_t channels)
{
    if (!b || (b->ndim == 1 && b->shape[0] == channels)) return 0;
    return op_fail(c, TENSOR_ESHAPE, "bias %s, weight %s: want a bias [%lld]", S(b), S(w),
                   (long long)channels);
}

static int set_result(OpCall *c, const Tensor *like, int64_t channels, const Sizes *size)
{
    const int rank = conv_rank(c), lead = like->ndim - rank - 1;
    int64_t dim[WINDOW_RANK + 2] = { like->shape[0] };
    dim[lead] = channels;
    for (int i = 0; i < rank; i++) dim[lead + 1 + i] = size->at[WINDOW_RANK - rank + i];
    return op_set_output(c, 0, (TensorShape){ like->ndim, dim }, (TensorDtype)like->dtype);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

int conv_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0), *w = op_input(c, 1);
    Geometry g = { 0 };
    if (check_dtypes(c) || window_rank(c, x, "input", conv_rank(c)) || check_options(c, op_params(c), &g) ||
        want_weight(c, w, "out, in / groups"))
        return -1;
    g.in = window_channels(shape_of(x), g.rank), g.out = w->shape[0];
    if (check_groups(c, &g, w->shape[1]) || check_kernel(c, &g, window_last(shape_of(w), g.rank)) ||
        check_result(c, &g, window_last(shape_of(x), g.rank)) || want_bias(c, op_input(c, 2), w, g.out))
        return -1;
    return set_result(c, x, g.out, &g.y);
}

/* The size asked for must lead to the y that is there. */
static int check_y(OpCall *c, const Geometry *g, const Tensor *dy)
{
    const Sizes y = window_last(shape_of(dy), g->rank);
    if (same_sizes(&y, &g->y)) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s: an input of %s gives %s", S(dy), window_text(&g->x, g->rank),
                   window_text(&g->y, g->rank));
}

/* What X's two users share: a y and a weight that fit. */
static int check_transposed(OpCall *c, const TensorConvArgs *p, Geometry *g, const char *what,
                            const char *channels)
{
    const Tensor *y = op_input(c, 0), *w = op_input(c, 1);
    if (window_rank(c, y, what, conv_rank(c)) || check_options(c, p, g) || want_weight(c, w, channels))
        return -1;
    g->out = window_channels(shape_of(y), g->rank), g->in = w->shape[1] * g->groups;
    if (w->shape[0] != g->out)
        return op_fail(c, TENSOR_ESHAPE, "%s %s, weight %s: %lld and %lld channels differ", what, S(y), S(w),
                       (long long)g->out, (long long)w->shape[0]);
    return check_groups(c, g, w->shape[1]) || check_kernel(c, g, window_last(shape_of(w), g->rank)) ? -1 : 0;
}

int conv_input_shape(OpCall *c)
{
    const ConvGradParams *p = op_params(c);
    Sizes size;
    Geometry g = { 0 };
    if (check_transposed(c, &p->conv, &g, "gradient", "out, in / groups") ||
        window_list(c, "size", p->size, g.rank, 0, &size))
        return -1;
    if (check_result(c, &g, size) || check_y(c, &g, op_input(c, 0))) return -1;
    return set_result(c, op_input(c, 0), g.in, &g.x);
}

int conv_transposed_shape(OpCall *c)
{
    const TensorConvTransposeArgs *p = op_params(c);
    const TensorConvArgs conv = conv_transposed_options(p);
    const Tensor *x = op_input(c, 0), *w = op_input(c, 1);
    Sizes more;
    Geometry g = { 0 };
    if (check_dtypes(c)) return -1;
    if (p->padding == TENSOR_SAME)
        return op_fail(c, TENSOR_EVALUE, "padding that keeps the size: only convolutions have it");
    if (check_transposed(c, &conv, &g, "input", "in, out / groups") ||
        window_sizes(c, "output_padding", p->output_padding, p->output_paddings, g.rank, 0, 0, &more))
        return -1;
    const Sizes from = window_last(shape_of(x), g.rank), window = reaches(&g.k, &g.dilation);
    for (int i = 0; i < WINDOW_RANK; i++) {
        if (more.at[i] > 0 && more.at[i] >= g.stride.at[i] && more.at[i] >= g.dilation.at[i])
            return op_fail(c, TENSOR_EVALUE,
                           "output_padding %s, stride %s, dilation %s: want it smaller than one of them",
                           window_text(&more, g.rank), window_text(&g.stride, g.rank),
                           window_text(&g.dilation, g.rank));
        g.x.at[i] = (from.at[i] - 1) * g.stride.at[i] - 2 * g.pad.at[i] + window.at[i] + more.at[i];
    }
    if (!all_at_least(&from, 1) || !all_at_least(&g.x, 1))
        return op_fail(c, TENSOR_ESHAPE, "input %s, weight %s: the result would have the size %s", S(x), S(w),
                       window_text(&g.x, g.rank));
    return want_bias(c, op_input(c, 2), w, g.in) ? -1 : set_result(c, x, g.in, &g.x);
}

int conv_weight_shape(OpCall *c)
{
    const ConvGradParams *p = op_params(c);
    const Tensor *x = op_input(c, 0), *dy = op_input(c, 1);
    int64_t dim[WINDOW_RANK + 2];
    Sizes size;
    Geometry g = { 0 };
    if (window_rank(c, x, "input", conv_rank(c)) || check_options(c, &p->conv, &g) ||
        window_list(c, "size", p->size, g.rank, 0, &size))
        return -1;
    if (dy->ndim != x->ndim || window_images(shape_of(dy), g.rank) != window_images(shape_of(x), g.rank))
        return op_fail(c, TENSOR_ESHAPE, "input %s, gradient %s: different batches", S(x), S(dy));
    g.in = window_channels(shape_of(x), g.rank), g.out = window_channels(shape_of(dy), g.rank);
    if (check_groups(c, &g, g.in / g.groups) || check_kernel(c, &g, size)) return -1;
    if (check_result(c, &g, window_last(shape_of(x), g.rank)) || check_y(c, &g, dy)) return -1;
    dim[0] = g.out, dim[1] = g.in / g.groups;
    for (int i = 0; i < g.rank; i++) dim[2 + i] = g.k.at[WINDOW_RANK - g.rank + i];
    return op_set_output(c, 0, (TensorShape){ g.rank + 2, dim }, (TensorDtype)x->dtype);
}
