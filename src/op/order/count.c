/* count.c - counting and finding: bincount, histc, searchsorted, bucketize, isin.  On the host, in f64 or
 * i64. */
#include <math.h>
#include "op/shape/shape_op.h"

/* x dense on the host, in f64 or i64 whatever its dtype. */
static Tensor *wide(const Tensor *x, bool floats) { return host_copy(x, floats ? TENSOR_F64 : TENSOR_I64); }

static Tensor *zeros_here(int64_t n, int dtype) { return zeros_on(SHAPE(n), dtype, &cpu_place); }

/* ---- bincount -------------------------------------------------------------------------------- */

typedef struct CountParams {
    int64_t minlength;
} CountParams;

static int check_counts(OpCall *c, const CountParams *p)
{
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
    const CountParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *weights = op_input(c, 1);
    if (check_counts(c, p)) return -1;
    Tensor *host = wide(x, false), *w = weights ? wide(weights, true) : NULL;
    if (!host || (weights && !w)) return -1;
    const int64_t *v = host->data;
    int64_t n = p->minlength;
    for (int64_t i = 0; i < host->numel; i++) {
        if (v[i] < 0)
            return op_fail(c, TENSOR_EVALUE, "%lld at position %lld of %s: want 0 or more", (long long)v[i],
                           (long long)i, S(x));
        if (v[i] >= n) n = v[i] == INT64_MAX ? v[i] : v[i] + 1;
    }
    Tensor *y = zeros_here(n, w ? TENSOR_F64 : TENSOR_I64);
    if (!y) return -1;
    for (int64_t i = 0; i < host->numel; i++) {
        if (w) ((double *)y->data)[v[i]] += ((const double *)w->data)[i];
        else ((int64_t *)y->data)[v[i]]++;
    }
    if (w && weights->dtype == TENSOR_F32) y = tensor_to(y, TENSOR_F32);
    return op_set_result(c, 0, carried(y, x->place));
}

static const OpField count_fields[] = { OP_FIELD(OP_I64, CountParams, minlength, "0"), { 0 } };
static const TensorOp op_bincount = {
    .name = "bincount",
    .summary = "how often 0, 1, 2, ... occur in a list, or the sums of their weights",
    .arity = 2,
    .optional = KEEP_INPUT(1),
    .params = sizeof(CountParams),
    .fields = count_fields,
    .compose = bincount_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples = "6@i64:0..4,-; 5@i32:0..3,5; 0@i64:0..0,- {minlength=3}; 4@u8:0..9,- {minlength=5}; "
               "3@i64:0..1,3@i64:0..5",
    .errors = "3@i64:-2..-1,- ! EVALUE; 2x3@i64:0..1,- ! ESHAPE; 3,- ! EDTYPE; 3@i64:0..1,4 ! ESHAPE; "
              "3@i64:0..1,- {minlength=-1} ! EVALUE"
};
REGISTER_OP(op_bincount);

Tensor *tensor_bincount_args(TensorBincountArgs args)
{
    return APPLY(&op_bincount, &((CountParams){ args.minlength }), args.input, args.weights);
}

/* ---- histc ----------------------------------------------------------------------------------- */

typedef struct HistParams {
    int64_t bins;
    double min, max;
} HistParams;

static int hist_shape(OpCall *c)
{
    const HistParams *p = op_params(c);
    if (p->bins < 1) return op_fail(c, TENSOR_EVALUE, "%lld bins: want 1 or more", (long long)p->bins);
    if (!(p->min <= p->max) || !isfinite(p->min) || !isfinite(p->max))
        return op_fail(c, TENSOR_EVALUE, "from %g to %g: want a finite range", p->min, p->max);
    return op_set_output(c, 0, SHAPE(p->bins), (TensorDtype)op_input(c, 0)->dtype);
}

static int hist_forward(OpCall *c)
{
    const HistParams *p = op_params(c);
    const double *x = op_input_f64(c, 0);
    double *y = op_output_f64(c, 0), min = p->min, max = p->max;
    const int64_t n = op_count(c, 0);
    for (int64_t k = 0; y && k < p->bins; k++) y[k] = 0;
    if (n == 0 || !x || !y) return 0;
    if (min == max) {
        min = max = x[0];
        for (int64_t i = 0; i < n; i++) {
            if (!isfinite(x[i]))
                return op_fail(c, TENSOR_EVALUE,
                               "%g among the elements of %s: want a range where they are not all finite",
                               x[i], S(op_input(c, 0)));
            min = x[i] < min ? x[i] : min, max = x[i] > max ? x[i] : max;
        }
    }
    if (min == max) min -= 1, max += 1;
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] >= min && x[i] <= max)) continue;
        int64_t k = (int64_t)((x[i] - min) * (double)p->bins / (max - min));
        y[k < p->bins ? k : p->bins - 1]++;
    }
    return 0;
}

static const OpField hist_fields[] = { OP_FIELD(OP_I64, HistParams, bins, "100"),
                                       OP_FIELD(OP_DOUBLE, HistParams, min, "0"),
                                       OP_FIELD(OP_DOUBLE, HistParams, max, "0"),
                                       { 0 } };
static const TensorOp op_histc = {
    .name = "histc",
    .summary = "how many elements lie in each of bins equal parts of [min, max]",
    .arity = 1,
    .params = sizeof(HistParams),
    .fields = hist_fields,
    .shape = hist_shape,
    .forward = hist_forward,
    .flags = OP_NONDIFFERENTIABLE | OP_FLOAT_INPUTS,
    .samples = "20 {bins=4}; 4x5 {bins=3 min=-0.5 max=0.5}; {bins=2}; 0 {bins=2}; 3:2..2 {bins=3}",
    .errors = "3 {bins=0} ! EVALUE; 3 {min=2 max=1} ! EVALUE; 3@i64 ! EDTYPE"
};
REGISTER_OP(op_histc);

Tensor *tensor_histc_args(TensorHistcArgs args)
{
    return APPLY(&op_histc, &((HistParams){ args.bins, args.min, args.max }), args.input);
}

/* ---- searchsorted, bucketize ----------------------------------------------------------------- */

typedef struct SearchParams {
    bool right;
} SearchParams;

/* How many of a list's n elements lie before v; NaN lies behind all. */
static int64_t find_f64(const double *list, int64_t n, double v, bool right)
{
    int64_t low = 0;
    while (n > low) {
        int64_t middle = low + (n - low) / 2;
        if (right ? !(list[middle] > v) : !(list[middle] >= v)) low = middle + 1;
        else n = middle;
    }
    return low;
}

static int64_t find_i64(const int64_t *list, int64_t n, int64_t v, bool right)
{
    int64_t low = 0;
    while (n > low) {
        int64_t middle = low + (n - low) / 2;
        if (right ? list[middle] <= v : list[middle] < v) low = middle + 1;
        else n = middle;
    }
    return low;
}

static int search(OpCall *c, Tensor *sorted, Tensor *values, bool right)
{
    bool floats = dtype_is_float(sorted->dtype) || dtype_is_float(values->dtype), one = sorted->ndim == 1,
         fits = sorted->ndim > 0 && (one || values->ndim == sorted->ndim);
    for (int d = 0; fits && !one && d < sorted->ndim - 1; d++) fits = values->shape[d] == sorted->shape[d];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "%s in the lists %s: want one list, or equal sizes but the last",
                       S(values), S(sorted));
    Tensor *lists = wide(sorted, floats), *v = wide(values, floats),
           *y = own(new_tensor(shape_of(values), TENSOR_I64, &cpu_place));
    if (!lists || !v || !y) return -1;
    int64_t n = sorted->shape[sorted->ndim - 1], m = one ? values->numel : values->shape[values->ndim - 1];
    for (int64_t i = 0; i < v->numel; i++) {
        int64_t from = m ? i / m * n : 0;
        ((int64_t *)y->data)[i] =
            floats ? find_f64((const double *)lists->data + from, n, ((const double *)v->data)[i], right)
                   : find_i64((const int64_t *)lists->data + from, n, ((const int64_t *)v->data)[i], right);
    }
    return op_set_result(c, 0, carried(y, values->place));
}

static int search_compose(OpCall *c)
{
    return search(c, op_input(c, 0), op_input(c, 1), ((const SearchParams *)op_params(c))->right);
}

static int bucketize_compose(OpCall *c)
{
    Tensor *boundaries = op_input(c, 1);
    if (boundaries->ndim != 1)
        return op_fail(c, TENSOR_ESHAPE, "boundaries %s: want a list, one dimension", S(boundaries));
    return search(c, boundaries, op_input(c, 0), ((const SearchParams *)op_params(c))->right);
}

static const OpField search_fields[] = { OP_FIELD(OP_BOOL, SearchParams, right, "0"), { 0 } };
static const TensorOp op_searchsorted = {
    .name = "searchsorted",
    .summary = "i64: where values would be inserted into ascending lists",
    .arity = 2,
    .params = sizeof(SearchParams),
    .fields = search_fields,
    .compose = search_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples = "5,3; 5,2x3 {right=1}; 2x5,2x3; 5,; 0,3; 2x0,2x3; 4@i64,3@i64 {right=1}; 5,0; 5@i64,3",
    .errors = ",3 ! ESHAPE; 2x5,3 ! ESHAPE; 2x5,3x3 ! ESHAPE"
};
static const TensorOp op_bucketize = {
    .name = "bucketize",
    .summary = "i64: which of the intervals between ascending boundaries each element lies in",
    .arity = 2,
    .params = sizeof(SearchParams),
    .fields = search_fields,
    .compose = bucketize_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples = "3,5; 2x3,5 {right=1}; ,5; 3,0; 0,4; 3@i32,4@i32; 3,5@i64",
    .errors = "3,2x5 ! ESHAPE; 3, ! ESHAPE"
};
REGISTER_OP(op_searchsorted);
REGISTER_OP(op_bucketize);

Tensor *tensor_searchsorted_args(TensorSearchArgs args)
{
    return APPLY(&op_searchsorted, &((SearchParams){ args.right }), args.sorted, args.values);
}

Tensor *tensor_bucketize_args(TensorBucketizeArgs args)
{
    return APPLY(&op_bucketize, &((SearchParams){ args.right }), args.input, args.boundaries);
}

/* ---- isin ------------------------------------------------------------------------------------ */

typedef struct IsinParams {
    bool invert;
} IsinParams;

static int isin_compose(OpCall *c)
{
    const IsinParams *p = op_params(c);
    Tensor *x = op_input(c, 0), *test = op_input(c, 1);
    int dtype = (int)tensor_promote_types((TensorDtype)x->dtype, (TensorDtype)test->dtype);
    bool floats = dtype_is_float(dtype);
    Tensor *list =
        tensor_sort(tensor_reshape(tensor_to(tensor_detach(test), (TensorDtype)dtype), SHAPE(test->numel)));
    Tensor *from = list ? wide(list, floats) : NULL, *cast = from ? own(raw_cast(x, dtype)) : NULL,
           *v = cast ? wide(cast, floats) : NULL;
    Tensor *y = own(new_tensor(shape_of(x), TENSOR_BOOL, &cpu_place));
    if (!v || !y) return -1;
    for (int64_t i = 0; i < v->numel; i++) {
        const double *f = from->data;
        const int64_t *k = from->data;
        int64_t at = floats ? find_f64(f, from->numel, ((const double *)v->data)[i], false)
                            : find_i64(k, from->numel, ((const int64_t *)v->data)[i], false);
        bool is = at < from->numel &&
                  (floats ? f[at] == ((const double *)v->data)[i] : k[at] == ((const int64_t *)v->data)[i]);
        ((uint8_t *)y->data)[i] = is != p->invert;
    }
    return op_set_result(c, 0, carried(y, x->place));
}

static const OpField isin_fields[] = { OP_FIELD(OP_BOOL, IsinParams, invert, "0"), { 0 } };
static const TensorOp op_isin = {
    .name = "isin",
    .summary = "bool: is the element one of those of another tensor?",
    .arity = 2,
    .params = sizeof(IsinParams),
    .fields = isin_fields,
    .compose = isin_compose,
    .flags = OP_NONDIFFERENTIABLE,
    .samples = "2x3@i64:0..5,4@i64:0..5; 5,2x2 {invert=1}; @i64,0@i64; 0,3; 4@i32:0..3,2@i64:0..3",
    .errors = "3 ! EVALUE"
};
REGISTER_OP(op_isin);

Tensor *tensor_isin_args(TensorIsinArgs args)
{
    return APPLY(&op_isin, &((IsinParams){ args.invert }), args.elements, args.test_elements);
}
