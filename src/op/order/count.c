/* count.c - bincount and histc, in f64 or i64. */
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

static int negative(OpCall *c, int64_t value, int64_t position)
{
    return op_fail(c, TENSOR_EVALUE, "%lld at position %lld of %s: want 0 or more", (long long)value,
                   (long long)position, S(op_input(c, 0)));
}

/* Sums by index; the device is asked for the largest number, which decides the size. */
static int bincount_there(OpCall *c)
{
    const int64_t least = ((const TensorBincountArgs *)op_params(c))->minlength;
    Tensor *x = tensor_to(op_input(c, 0), TENSOR_I64), *weights = op_input(c, 1);
    CheckArgs a = { .what = "number", .status = TENSOR_EVALUE, .high = INT64_MAX };
    const int found = call_check(c, x, &a);
    if (found) return found == 1 ? negative(c, a.bad_value, a.bad_at) : -1;
    const double most = x->numel ? tensor_item(tensor_max(x)) : -1;
    if (tensor_error_code()) return -1;
    const int64_t n = (int64_t)most + 1 > least ? (int64_t)most + 1 : least;
    const bool narrow = weights && weights->dtype == TENSOR_F32;
    Tensor *y = zeros_on(SHAPE(n), weights ? TENSOR_F64 : TENSOR_I64, x->place),
           *each = weights ? tensor_to(weights, TENSOR_F64) : tensor_ones_like(x);
    y = y && each ? tensor_index_add(y, 0, x, each) : NULL;
    return op_set_result(c, 0, y && narrow ? tensor_to(y, TENSOR_F32) : y);
}

static int bincount_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0), *weights = op_input(c, 1);
    if (!on_host(x->place)) return bincount_there(c);
    Tensor *host = own(raw_contiguous(x)), *w = weights ? own(raw_contiguous(weights)) : NULL;
    if (!host || (weights && !w)) return -1;
    int64_t bad = 0, value = 0;
    const int64_t least = ((const TensorBincountArgs *)op_params(c))->minlength, count = host->numel,
                  n = bincount_size(host->dtype, host->data, count, least, &bad, &value);
    if (n < 0) return negative(c, value, bad);
    Tensor *y = zeros_on(SHAPE(n), w ? TENSOR_F64 : TENSOR_I64, &cpu_place);
    if (!y) return -1;
    const bool apart = n <= count / 4; /* few bins are hit again before a sum is there: four of each */
    Tensor *odd = w && apart ? zeros_on(SHAPE(3 * n), TENSOR_F64, &cpu_place) : y;
    if (!odd) return -1;
    if (w) bincount_weighted(host->dtype, host->data, w->dtype, w->data, count, n, y->data, odd->data);
    else bincount(host->dtype, host->data, count, y->data);
    if (w && weights->dtype == TENSOR_F32) y = tensor_to(y, TENSOR_F32);
    return op_set_result(c, 0, y);
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
    return 0;
}

static int not_finite(OpCall *c, double bad)
{
    return op_fail(c, TENSOR_EVALUE,
                   "%g among the elements of %s: want a range where they are not all finite", bad,
                   S(op_input(c, 0)));
}

/* A range of its own, where none was given. */
static void widen(double *min, double *max)
{
    if (*min == *max) *min -= 1, *max += 1;
}

static Tensor *histogram_here(OpCall *c, const Tensor *x, int64_t bins, double min, double max)
{
    Tensor *y = own(new_tensor(SHAPE(bins), TENSOR_F64, x->place));
    const int64_t bad = min == max && x->numel ? finite_range(x->data, x->numel, &min, &max) : -1;
    if (!y || bad >= 0) return y ? not_finite(c, ((const double *)x->data)[bad]), NULL : NULL;
    widen(&min, &max);
    histogram(x->data, x->numel, bins, min, max, y->data);
    return y;
}

/* The first element that is not finite, for its error; an infinity where there is none. */
static double first_bad(Tensor *x)
{
    Tensor *bad = tensor_to(tensor_logical_not(tensor_isfinite(x)), TENSOR_U8);
    return tensor_item(tensor_index_select(x, 0, tensor_reshape(tensor_argmax(bad), SHAPE(1))));
}

/* The smallest and the largest number, in one read. */
static int range_of(Tensor *x, double range[2])
{
    Tensor *both = tensor_stack(TENSORS(tensor_amin(x), tensor_amax(x)), 0),
           *host = both ? host_copy(both, TENSOR_F64) : NULL;
    if (host) memcpy(range, host->data, 2 * sizeof *range);
    return host ? 0 : -1;
}

/* The same by ops: what lies outside counts as 0 in the first bin. */
static Tensor *histogram_there(OpCall *c, Tensor *x, int64_t bins, double min, double max)
{
    if (min == max && x->numel) {
        double range[2];
        if (range_of(x, range)) return NULL;
        min = range[0], max = range[1];
        if (!isfinite(min) || !isfinite(max)) return not_finite(c, first_bad(x)), NULL;
    }
    widen(&min, &max);
    Tensor *inside = tensor_logical_and(tensor_ge_scalar(x, min), tensor_le_scalar(x, max)),
           *zero = zeros_on(SHAPE(), TENSOR_F64, x->place);
    Tensor *at = tensor_mul_scalar(tensor_sub_scalar(tensor_where(inside, x, zero), min), (double)bins);
    at = tensor_where(inside, tensor_div_scalar(at, max - min), zero);
    at = tensor_to(tensor_clamp(at, 0, (double)(bins - 1)), TENSOR_I64);
    return tensor_scatter_add(zeros_on(SHAPE(bins), TENSOR_F64, x->place), 0, at,
                              tensor_to(inside, TENSOR_F64));
}

static int histc_compose(OpCall *c)
{
    const TensorHistcArgs *p = op_params(c);
    const int dtype = op_input(c, 0)->dtype;
    Tensor *x = own(raw_cast(op_input(c, 0), TENSOR_F64));
    if (!x || !(x = tensor_reshape(x, SHAPE(x->numel)))) return -1;
    Tensor *y = on_host(x->place) ? histogram_here(c, x, p->bins, p->min, p->max)
                                  : histogram_there(c, x, p->bins, p->min, p->max);
    return op_set_result(c, 0, y ? tensor_to(y, (TensorDtype)dtype) : NULL);
}

static const OpField histc_fields[] = { OP_OPTION(TensorHistcArgs, bins, min, max), { 0 } };
static const TensorOp op_histc = {
    .name = "histc",
    .autocast = AUTOCAST_AS_IS,
    .summary = "how many elements lie in each of bins equal parts of [min, max]",
    .arity = 1,
    PARAMS(TensorHistcArgs, tensor_histc_defaults, histc_fields),
    .shape = histc_shape,
    .compose = histc_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_FLOAT_INPUTS | OP_ANY_DEVICE,
    .samples = "20 {bins=4}; 4x5 {bins=3 min=-0.5 max=0.5}; {bins=2}; 0 {bins=2}; 3:2..2 {bins=3}",
    .errors = "3 {bins=0} ! EVALUE; 3 {min=2 max=1} ! EVALUE; 3@i64 ! EDTYPE"
};
REGISTER_OPS(&op_histc);

Tensor *tensor_histc_args(TensorHistcArgs a) { return APPLY(&op_histc, &a, a.input); }
