/* pad.c - more, or fewer, elements at both ends of the last dimensions.
 *
 *   y_i = x_j, j = i - before; outside of x:
 *     constant   value                              dx = dy cropped, and padded with 0 where x was cropped
 *     reflect    j < 0: -j; j >= n: 2 (n - 1) - j   dx = index_select's: all that read x_j add up
 *     replicate  the nearest end
 *     circular   j mod n
 *
 * A pads list is (before, after) of the last dimension, then of the one before it, ...; negative numbers
 * crop.  As in PyTorch, circular goes round what the crop leaves, while the others look past the crop. */
#include "cpu/shape/host_tables.h"
#include "shape_op.h"

const TensorPadArgs tensor_pad_defaults = { TENSOR_PAD_DEFAULTS };

typedef struct Ends {
    int64_t before, after;
} Ends;

/* Of dim d; 0, 0 where the list does not reach. */
static Ends ends_of(TensorShape pad, int ndim, int d)
{
    const int i = 2 * (ndim - 1 - d);
    return i < pad.ndim ? (Ends){ pad.dim[i], pad.dim[i + 1] } : (Ends){ 0, 0 };
}

static int64_t crop(int64_t pad) { return pad < 0 ? -pad : 0; }

/* Fills size[] with the result's. */
static int padded_shape(OpCall *c, TensorShape pad, int64_t *size)
{
    enum { MANY = 1 << 30 }; /* of one pad: no sum of sizes overflows */
    const Tensor *x = op_input(c, 0);
    if (pad.ndim % 2 || pad.ndim > 2 * x->ndim)
        return op_fail(c, TENSOR_EVALUE,
                       "%s by %s: want two numbers for each of the last dimensions, %d at most", S(x),
                       shape_text(pad), 2 * x->ndim);
    for (int d = 0; d < x->ndim; d++) {
        const Ends e = ends_of(pad, x->ndim, d);
        if (e.before < -MANY || e.after < -MANY || e.before > MANY || e.after > MANY ||
            crop(e.before) + crop(e.after) > x->shape[d])
            return op_fail(c, TENSOR_ESHAPE, "%s by %lld and %lld in dimension %d: there are %lld elements",
                           S(x), (long long)e.before, (long long)e.after, d, (long long)x->shape[d]);
        size[d] = x->shape[d] + e.before + e.after;
    }
    return 0;
}

/* ---- constant -------------------------------------------------------------------------------- */

static int constant_shape(OpCall *c)
{
    const TensorPadArgs *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    int64_t size[TENSOR_MAX_DIMS];
    if (padded_shape(c, p->pad, size)) return -1;
    return op_set_output(c, 0, (TensorShape){ x->ndim, size }, (TensorDtype)x->dtype);
}

/* What x and y have in common, as views of both. */
static int constant_forward(OpCall *c)
{
    const TensorPadArgs *p = op_params(c);
    Tensor *from = op_input(c, 0), *y = op_output(c, 0), *to = y;
    bool grows = false;
    for (int i = 0; i < p->pad.ndim; i++) grows = grows || p->pad.dim[i] > 0;
    if (grows && (check_fill(c->name, y, p->value) || raw_fill(y, p->value))) return -1;
    for (int d = 0; d < y->ndim; d++) {
        const Ends e = ends_of(p->pad, y->ndim, d);
        if (e.before == 0 && e.after == 0) continue;
        const int64_t common = from->shape[d] - crop(e.before) - crop(e.after);
        from = own(new_part(from, d, crop(e.before), common, 1));
        to = own(new_part(to, d, e.before > 0 ? e.before : 0, common, 1));
        if (!from || !to) return -1;
    }
    return raw_copy(to, from);
}

static const TensorOp op_constant_pad_nd;

static int constant_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorShape pad = ((const TensorPadArgs *)op_params(c))->pad;
    int64_t back[TENSOR_MAX_DIMS];
    for (int i = 0; i < pad.ndim; i++) back[i] = -pad.dim[i];
    const TensorPadArgs p = { .pad = { pad.ndim, back } };
    dx[0] = APPLY(&op_constant_pad_nd, &p, dy);
    return dx[0] ? 0 : -1;
}

/* ---- the other modes ------------------------------------------------------------------------- */

static int check_reach(OpCall *c, int mode, int d, Ends e)
{
    const Tensor *x = op_input(c, 0);
    const int64_t n = x->shape[d], left = n - crop(e.before) - crop(e.after),
                  most = e.before > e.after ? e.before : e.after;
    if (mode == TENSOR_PAD_REFLECT && most >= n && most > 0)
        return op_fail(c, TENSOR_ESHAPE,
                       "%s by %lld and %lld in dimension %d: reflection reaches %lld elements at most", S(x),
                       (long long)e.before, (long long)e.after, d, (long long)(n > 0 ? n - 1 : 0));
    if (mode == TENSOR_PAD_CIRCULAR && most > left)
        return op_fail(c, TENSOR_ESHAPE,
                       "%s by %lld and %lld in dimension %d: it may go round once, by %lld elements at most",
                       S(x), (long long)e.before, (long long)e.after, d, (long long)left);
    if (mode != TENSOR_PAD_CIRCULAR && n + e.before + e.after < 1)
        return op_fail(c, TENSOR_ESHAPE, "%s by %lld and %lld in dimension %d: nothing is left", S(x),
                       (long long)e.before, (long long)e.after, d);
    return mode == TENSOR_PAD_REPLICATE && n == 0
               ? op_fail(c, TENSOR_ESHAPE, "%s: dimension %d has no end to repeat", S(x), d)
               : 0;
}

/* The same as host_pad, by ops on another device. */
static Tensor *sources_there(int mode, int64_t n, Ends e, const Place *place)
{
    const double last = (double)(n - 1);
    Tensor *k = tensor_sub_scalar(numbers_on(n + e.before + e.after, TENSOR_I64, place), (double)e.before);
    if (mode == TENSOR_PAD_REPLICATE) return tensor_clamp(k, 0, last);
    return tensor_rsub_scalar(tensor_abs(tensor_rsub_scalar(tensor_abs(k), last)), last);
}

/* Which of x's n elements each of the result's is. */
static Tensor *sources(int mode, int64_t n, Ends e, const Place *place)
{
    if (!on_host(place)) return sources_there(mode, n, e, place);
    Tensor *host = own(new_tensor(SHAPE(n + e.before + e.after), TENSOR_I64, &cpu_place));
    if (!host) return NULL;
    host_pad(host->data, mode == TENSOR_PAD_REFLECT ? HOST_PAD_REFLECT : HOST_PAD_REPLICATE, n, e.before,
             e.after);
    return carried(host, place);
}

/* Circular, by whole parts: 3 times as fast as elements by an index. */
static Tensor *turned(Tensor *x, int d, Ends e)
{
    if (!x) return NULL;
    const int64_t first = crop(e.before), left = x->shape[d] - first - crop(e.after);
    Tensor *part[3], *middle = tensor_narrow(x, d, first, left);
    int n = 0;
    if (e.before > 0) part[n++] = tensor_narrow(middle, d, left - e.before, e.before);
    part[n++] = middle;
    if (e.after > 0) part[n++] = tensor_narrow(middle, d, 0, e.after);
    return tensor_cat(TENSOR_LIST(part, n), d);
}

static int pad_compose(OpCall *c)
{
    const TensorPadArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *y = x;
    int64_t size[TENSOR_MAX_DIMS];
    if (p->mode == TENSOR_PAD_CONSTANT) return op_set_result(c, 0, APPLY(&op_constant_pad_nd, p, x));
    if (p->value != 0)
        return op_fail(c, TENSOR_EVALUE, "a value of %g: only constant padding has one", p->value);
    if (padded_shape(c, p->pad, size)) return -1;
    const int padded = p->pad.ndim / 2;
    if (padded < 1 || padded > 3 || x->ndim - padded < 1 || x->ndim - padded > 2)
        return op_fail(
            c, TENSOR_ESHAPE,
            "%s by %s: want pads for all but [batch, channels] or [channels], for three dimensions at most",
            S(x), shape_text(p->pad));
    const bool half = dtype_is_half(x->dtype);
    if (half) y = tensor_to(y, TENSOR_F32); /* so that sums of several dimensions are rounded once */
    for (int d = x->ndim - padded; d < x->ndim; d++) {
        const Ends e = ends_of(p->pad, x->ndim, d);
        if (check_reach(c, p->mode, d, e)) return -1;
        if (e.before == 0 && e.after == 0) continue;
        if (p->mode == TENSOR_PAD_CIRCULAR) {
            y = turned(y, d, e);
            continue;
        }
        Tensor *index = sources(p->mode, x->shape[d], e, x->place);
        if (!index) return -1;
        y = tensor_index_select(y, d, index);
    }
    if (half) y = tensor_to(y, (TensorDtype)x->dtype);
    return op_set_result(c, 0, y == x ? tensor_clone(x) : y);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static const char *const modes[] = { "constant", "reflect", "replicate", "circular", NULL };
static const OpField constant_fields[] = { OP_REQUIRED(TensorPadArgs, pad),
                                           OP_OPTION(TensorPadArgs, value),
                                           { 0 } };
static const OpField pad_fields[] = { OP_REQUIRED(TensorPadArgs, pad),
                                      OP_CHOICE(TensorPadArgs, mode, modes),
                                      OP_OPTION(TensorPadArgs, value),
                                      { 0 } };

static const TensorOp op_constant_pad_nd = {
    .name = "constant_pad_nd",
    .autocast = AUTOCAST_AS_IS,
    .summary = "a constant round the last dims; negative pads crop",
    .arity = 1,
    .gradient = "dx = g without the pads",
    PARAMS(TensorPadArgs, tensor_pad_defaults, constant_fields),
    .shape = constant_shape,
    .forward = constant_forward,
    .backward = constant_backward,
    .flags = OP_ANY_DEVICE,
    .samples = "3x4 {pad=[1 2] value=1.5}; 3x4 {pad=[-1 2 1 -1] value=-2}; {pad=[]}; 5 {pad=[-2 -3]}; 0x3 "
               "{pad=[1 1]}; 2x0 {pad=[2 1]}; 2x3x2 {pad=[0 0 1 0 2 -1]}; 1x2x2x3 {pad=[1 0]}",
    .errors = "3x4 {pad=[1]} ! EVALUE; 3 {pad=[1 1 1 1]} ! EVALUE; 3x4 {pad=[-3 -2]} ! ESHAPE; 3x4 {pad=[-5 "
              "7]} ! ESHAPE; {pad=[1 1]} ! EVALUE"
};
static const TensorOp op_pad = {
    .name = "pad",
    .autocast = AUTOCAST_AS_IS,
    .summary = "more, or fewer, elements at the ends of the last dims; constant, reflect, replicate, "
               "circular",
    .gradient = "dx_j = sum of g over all that x_j was copied to",
    .arity = 1,
    PARAMS(TensorPadArgs, tensor_pad_defaults, pad_fields),
    .compose = pad_compose,
    .flags = OP_ANY_DEVICE,
    .torch = "nn.functional.pad",
    .samples = "3x4 {pad=[1 2] value=1.5}; 2x3x4 {pad=[-1 2 1 -1]}; {pad=[]}; 2x4 {pad=[3 2] mode=reflect}; "
               "1x2x3x4 {pad=[1 3 2 1] mode=reflect}; 2x4 {pad=[-1 2] mode=reflect}; 1x2x2x3x2 {pad=[1 1 2 "
               "0 1 1] mode=reflect}; 2x3 {pad=[4 1] mode=replicate}; 2x2x3 {pad=[2 1 0 3] mode=replicate}; "
               "1x1x2x3x2 {pad=[1 0 2 1 0 1] mode=replicate}; 2x3 {pad=[3 2] mode=circular}; 1x2x3x4 "
               "{pad=[1 4 3 2] mode=circular}; 2x5 {pad=[-1 3] mode=circular}; 0x2x3 {pad=[1 1] "
               "mode=reflect}; 2x1x2x2x3 {pad=[0 0 1 2 0 0] mode=circular}; 2x3 {pad=[0 0] mode=replicate}",
    .errors = "3x4 {pad=[4 0] mode=reflect} ! ESHAPE; 3x4 {pad=[0 5] mode=circular} ! ESHAPE; 3x4 {pad=[-2 "
              "3] mode=circular} ! "
              "ESHAPE; 3x0 {pad=[1 0] mode=replicate} ! ESHAPE; 3x0 {pad=[1 0] mode=reflect} ! ESHAPE; "
              "3 {pad=[1 1] mode=reflect} ! ESHAPE; 3x4 {pad=[1 1 1 1] mode=replicate} ! ESHAPE; 2x3x4x5 "
              "{pad=[1 1] "
              "mode=reflect} ! ESHAPE; 3x4 {pad=[1 1] mode=reflect value=2} ! EVALUE; "
              "3x4 {pad=[1 1] mode=4} ! EVALUE; 3x4 {pad=[1] mode=reflect} ! EVALUE; 3x4 {pad=[-2 -2] "
              "mode=reflect} ! "
              "ESHAPE; 3x4 {pad=[-2 -3]} ! ESHAPE"
};
REGISTER_OPS(&op_constant_pad_nd, &op_pad);

Tensor *tensor_constant_pad_nd(Tensor *x, TensorShape pad, double value)
{
    return APPLY(&op_constant_pad_nd, &((TensorPadArgs){ .pad = pad, .value = value }), x);
}

Tensor *tensor_pad_args(TensorPadArgs a) { return APPLY(&op_pad, &a, a.input); }
