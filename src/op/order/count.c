/* count.c - bincount and histc, on the host, in f64 or i64. */
#include <math.h>
#include "cpu/order/host_lists.h"
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

const TensorBincountArgs tensor_bincount_defaults = { TENSOR_BINCOUNT_DEFAULTS };
const TensorHistcArgs tensor_histc_defaults = { TENSOR_HISTC_DEFAULTS };

/* ---- bincount -------------------------------------------------------------------------------- */

static int check_counts(OpCall *c)
{
    const TensorBincountArgs *p = op_params(c);
    Tensor *x = op_input(c, 0), *weights = op_input(c, 1);
    if (dtype_is_float(x->dtype) || x->dtype == TENSOR_BOOL)
        return op_fail(c, TENSOR_EDTYPE, "%s of %s: want integers", S(x),
                       tensor_dtype_name((TensorDtype)x->dtype));
    if (x->ndim != 1) return op_fail(c, TENSOR_ESHAPE, "%s: want a list, one dimension", S(x));
    if (weights && !shape_equal(shape_of(weights), shape_of(x)))
        return op_fail(c, TENSOR_ESHAPE, "weights %s for %s: want equal shapes", S(weights), S(x));
    return p->minlength < 0
               ? op_fail(c, TENSOR_EVALUE, "minlength %lld: want 0 or more", (long long)p->minlength)
               : 0;
}

static int bincount_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0), *weights = op_input(c, 1);
    Tensor *host = host_copy(x, TENSOR_I64), *w = weights ? host_copy(weights, TENSOR_F64) : NULL;
    if (!host || (weights && !w)) return -1;
    int64_t bad = 0;
    const int64_t *v = host->data, least = ((const TensorBincountArgs *)op_params(c))->minlength,
                  n = bincount_size(v, host->numel, least, &bad);
    if (n < 0)
        return op_fail(c, TENSOR_EVALUE, "%lld at position %lld of %s: want 0 or more", (long long)v[bad],
                       (long long)bad, S(x));
    Tensor *y = zeros_on(SHAPE(n), w ? TENSOR_F64 : TENSOR_I64, &cpu_place);
    if (!y) return -1;
    if (w) bincount_weighted(v, w->data, host->numel, y->data);
    else bincount(v, host->numel, y->data);
    if (w && weights->dtype == TENSOR_F32) y = tensor_to(y, TENSOR_F32);
    return op_set_result(c, 0, carried(y, x->place));
}

static const OpField bincount_fields[] = { OP_OPTION(TensorBincountArgs, minlength), { 0 } };
static const TensorOp op_bincount = {
    .name = "bincount",
    .autocast = AUTOCAST_AS_IS,
    .summary = "how often 0, 1, 2, ... occur in a list, or the sums of their weights",
    .arity = 2,
    .optional = KEEP_INPUT(1),
    PARAMS(TensorBincountArgs, tensor_bincount_defaults, bincount_fields),
    .shape = check_counts,
    .compose = bincount_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples = "6@i64:0..4,-; 5@i32:0..3,5; 0@i64:0..0,- {minlength=3}; 4@u8:0..9,- {minlength=5}; "
               "3@i64:0..1,3@i64:0..5",
    .errors = "3@i64:-2..-1,- ! EVALUE; 2x3@i64:0..1,- ! ESHAPE; 3,- ! EDTYPE; 3@i64:0..1,4 ! ESHAPE; "
              "3@i64:0..1,- {minlength=-1} ! EVALUE"
};
REGISTER_OPS(&op_bincount);

Tensor *tensor_bincount_args(TensorBincountArgs a) { return APPLY(&op_bincount, &a, a.input, a.weights); }

/* ---- histc ----------------------------------------------------------------------------------- */

static int histc_shape(OpCall *c)
{
    const TensorHistcArgs *p = op_params(c);
    if (p->bins < 1) return op_fail(c, TENSOR_EVALUE, "%lld bins: want 1 or more", (long long)p->bins);
    if (!(p->min <= p->max) || !isfinite(p->min) || !isfinite(p->max))
        return op_fail(c, TENSOR_EVALUE, "from %g to %g: want a finite range", p->min, p->max);
    return op_set_output(c, 0, SHAPE(p->bins), (TensorDtype)op_input(c, 0)->dtype);
}

/* The range of x itself, where none is given. */
static int own_range(OpCall *c, const double *x, int64_t n, double *min, double *max)
{
    const int64_t bad = n ? finite_range(x, n, min, max) : -1;
    return bad < 0 ? 0
                   : op_fail(c, TENSOR_EVALUE,
                             "%g among the elements of %s: want a range where they are not all finite",
                             x[bad], S(op_input(c, 0)));
}

static int histc_forward(OpCall *c)
{
    const TensorHistcArgs *p = op_params(c);
    const double *x = op_input_f64(c, 0);
    double *y = op_output_f64(c, 0), min = p->min, max = p->max;
    const int64_t n = op_count(c, 0);
    if (!x || !y) return -1;
    if (min == max && own_range(c, x, n, &min, &max)) return -1;
    if (min == max) min -= 1, max += 1;
    histogram(x, n, p->bins, min, max, y);
    return 0;
}

static const OpField histc_fields[] = { OP_OPTION(TensorHistcArgs, bins, min, max), { 0 } };
static const TensorOp op_histc = {
    .name = "histc",
    .autocast = AUTOCAST_AS_IS,
    .summary = "how many elements lie in each of bins equal parts of [min, max]",
    .arity = 1,
    PARAMS(TensorHistcArgs, tensor_histc_defaults, histc_fields),
    .shape = histc_shape,
    .forward = histc_forward,
    .flags = OP_NONDIFFERENTIABLE | OP_FLOAT_INPUTS,
    .samples = "20 {bins=4}; 4x5 {bins=3 min=-0.5 max=0.5}; {bins=2}; 0 {bins=2}; 3:2..2 {bins=3}",
    .errors = "3 {bins=0} ! EVALUE; 3 {min=2 max=1} ! EVALUE; 3@i64 ! EDTYPE"
};
REGISTER_OPS(&op_histc);

Tensor *tensor_histc_args(TensorHistcArgs a) { return APPLY(&op_histc, &a, a.input); }
