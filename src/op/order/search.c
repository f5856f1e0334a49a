/* search.c - where values lie among others: searchsorted, bucketize, isin. */
#include "op/index/index_plan.h"
#include "op/reduce/reduce.h"

const TensorSearchsortedArgs tensor_searchsorted_defaults = { TENSOR_SEARCHSORTED_DEFAULTS };
const TensorBucketizeArgs tensor_bucketize_defaults = { TENSOR_BUCKETIZE_DEFAULTS };
const TensorIsinArgs tensor_isin_defaults = { TENSOR_ISIN_DEFAULTS };

/* ---- searchsorted, bucketize ----------------------------------------------------------------- */

/* i64 of values' shape: their places in the lists along sorted's last dim.  On the host, where the device has
 * no search. */
static Tensor *places(OpCall *c, Tensor *sorted, Tensor *values, const Tensor *sorter, bool right)
{
    const int dtype =
        dtype_is_float(sorted->dtype) || dtype_is_float(values->dtype) ? TENSOR_F64 : TENSOR_I64;
    const bool there = values->place->device->search;
    const Place *place = there ? values->place : &cpu_place;
    Tensor *lists = there ? own(raw_cast(sorted, dtype)) : host_copy(sorted, dtype),
           *v = there ? own(raw_cast(values, dtype)) : host_copy(values, dtype),
           *order = !sorter ? NULL
                    : there ? own(raw_contiguous(sorter))
                            : host_copy(sorter, TENSOR_I64),
           *y = own(new_tensor(shape_of(values), TENSOR_I64, place));
    if (!lists || !v || !y || (sorter && !order)) return NULL;
    if (v->numel == 0) return carried(y, values->place);
    const int64_t n = sorted->shape[sorted->ndim - 1],
                  count = sorted->ndim == 1 ? v->numel : values->shape[values->ndim - 1];
    SearchArgs args = { .dtype = dtype,
                        .right = right,
                        .lists = v->numel / count,
                        .n = n,
                        .values = count,
                        .sorted = lists->data,
                        .x = v->data,
                        .sorter = order ? order->data : NULL,
                        .place = y->data };
    return RUN_KERNEL(c->name, place, search, &args) ? NULL : carried(y, values->place);
}

static int finish(OpCall *c, Tensor *places, bool out_int32)
{
    return op_set_result(c, 0, places && out_int32 ? tensor_to(places, TENSOR_I32) : places);
}

static int check_sorter(OpCall *c, const Tensor *sorter, const Tensor *sorted)
{
    if (sorter->dtype != TENSOR_I64)
        return op_fail(c, TENSOR_EDTYPE, "the sorter is %s: want i64",
                       tensor_dtype_name((TensorDtype)sorter->dtype));
    if (!shape_equal(shape_of(sorter), shape_of(sorted)))
        return op_fail(c, TENSOR_ESHAPE, "sorter %s for %s: want equal shapes", S(sorter), S(sorted));
    return 0;
}

static int search_check(OpCall *c)
{
    TensorSearchsortedArgs *p = op_params_mut(c);
    const Tensor *sorted = op_input(c, 0), *values = op_input(c, 1), *sorter = op_input(c, 2);
    const bool one = sorted->ndim == 1;
    bool fits = sorted->ndim > 0 && (one || values->ndim == sorted->ndim);
    for (int d = 0; fits && !one && d < sorted->ndim - 1; d++) fits = values->shape[d] == sorted->shape[d];
    if (!fits)
        return op_fail(c, TENSOR_ESHAPE, "%s in the lists %s: want one list, or equal sizes but the last",
                       S(values), S(sorted));
    if (p->right && p->side == TENSOR_SIDE_LEFT)
        return op_fail(c, TENSOR_EVALUE, "right = true beside side = left: want one of them");
    p->right = p->right || p->side == TENSOR_SIDE_RIGHT;
    return sorter ? check_sorter(c, sorter, sorted) : 0;
}

static int search_compose(OpCall *c)
{
    const TensorSearchsortedArgs *p = op_params(c);
    Tensor *sorted = op_input(c, 0), *sorter = op_input(c, 2);
    if (sorter && check_indices(c, sorter, sorted->shape[sorted->ndim - 1])) return -1;
    Tensor *y = places(c, sorted, op_input(c, 1), sorter, p->right);
    return finish(c, y, p->out_int32);
}

static int bucketize_check(OpCall *c)
{
    const Tensor *boundaries = op_input(c, 1);
    return boundaries->ndim == 1
               ? 0
               : op_fail(c, TENSOR_ESHAPE, "boundaries %s: want a list, one dimension", S(boundaries));
}

static int bucketize_compose(OpCall *c)
{
    const TensorBucketizeArgs *p = op_params(c);
    return finish(c, places(c, op_input(c, 1), op_input(c, 0), NULL, p->right), p->out_int32);
}

static const char *const sides[] = { "unset", "left", "right", NULL };
static const OpField search_fields[] = { OP_OPTION(TensorSearchsortedArgs, out_int32, right),
                                         OP_CHOICE(TensorSearchsortedArgs, side, sides),
                                         { 0 } };
static const OpField bucketize_fields[] = { OP_OPTION(TensorBucketizeArgs, out_int32, right), { 0 } };
static const TensorOp op_searchsorted = {
    .name = "searchsorted",
    .autocast = AUTOCAST_AS_IS,
    .summary = "i64: where values would be inserted into ascending lists",
    .arity = 3,
    .optional = KEEP_INPUT(2),
    PARAMS(TensorSearchsortedArgs, tensor_searchsorted_defaults, search_fields),
    .shape = search_check,
    .compose = search_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples =
        "5,3,-; 5,2x3,- {right=1}; 2x5,2x3,-; 5,,-; 0,3,-; 2x0,2x3,-; 4@i64,3@i64,- {right=1}; 5,0,-; "
        "5@i64,3,-; 5,3,- {side=right out_int32=true}; 5,3,5@i64:0..4; 2x3,2x2,2x3@i64:0..2 {side=left}",
    .errors = ",3,- ! ESHAPE; 2x5,3,- ! ESHAPE; 2x5,3x3,- ! ESHAPE; 5,3,4@i64 ! ESHAPE; 5,3,5@i32 ! EDTYPE; "
              "5,3,5@i64:5..6 ! EINDEX; 5,3,5@i64:-1..-1 ! EINDEX; 5,3,- {right=true side=left} ! EVALUE; "
              "5,3,- {side=3} ! EVALUE"
};
static const TensorOp op_bucketize = {
    .name = "bucketize",
    .autocast = AUTOCAST_AS_IS,
    .summary = "i64: which of the intervals between ascending boundaries each element lies in",
    .arity = 2,
    PARAMS(TensorBucketizeArgs, tensor_bucketize_defaults, bucketize_fields),
    .shape = bucketize_check,
    .compose = bucketize_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples = "3,5; 2x3,5 {right=1}; ,5; 3,0; 0,4; 3@i32,4@i32; 3,5@i64; 3,5 {out_int32=true}",
    .errors = "3,2x5 ! ESHAPE; 3, ! ESHAPE"
};
REGISTER_OPS(&op_searchsorted, &op_bucketize);

Tensor *tensor_searchsorted_args(TensorSearchsortedArgs a)
{
    return APPLY(&op_searchsorted, &a, a.sorted, a.values, a.sorter);
}

Tensor *tensor_bucketize_args(TensorBucketizeArgs a)
{
    return APPLY(&op_bucketize, &a, a.input, a.boundaries);
}

/* ---- isin ------------------------------------------------------------------------------------ */

/* An element that is there stands where it would be inserted. */
static int isin_compose(OpCall *c)
{
    Tensor *x = op_input(c, 0), *test = op_input(c, 1);
    const TensorDtype dtype = tensor_promote_types((TensorDtype)x->dtype, (TensorDtype)test->dtype);
    Tensor *v = tensor_to(x, dtype), *list = tensor_sort(tensor_reshape(tensor_to(test, dtype), SHAPE(-1)));
    if (!v || !list) return -1;
    Tensor *is = list->numel ? NULL : tensor_zeros_like(x);
    if (list->numel) {
        Tensor *at = places(c, list, v, NULL, false);
        at = at ? tensor_clamp(at, 0, (double)(list->numel - 1)) : NULL;
        Tensor *found = tensor_index_select(list, 0, tensor_reshape(at, SHAPE(-1)));
        is = found ? tensor_eq(tensor_reshape(found, shape_of(v)), v) : NULL;
    }
    is = is ? tensor_to(is, TENSOR_BOOL) : NULL;
    const bool invert = ((const TensorIsinArgs *)op_params(c))->invert;
    return op_set_result(c, 0, is && invert ? tensor_logical_not(is) : is);
}

static const OpField isin_fields[] = { OP_OPTION(TensorIsinArgs, assume_unique, invert), { 0 } };
static const TensorOp op_isin = {
    .name = "isin",
    .autocast = AUTOCAST_AS_IS,
    .summary = "bool: is the element one of those of another tensor?",
    .arity = 2,
    PARAMS(TensorIsinArgs, tensor_isin_defaults, isin_fields),
    .compose = isin_compose,
    .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE,
    .samples = "2x3@i64:0..5,4@i64:0..5; 5,2x2 {invert=1}; @i64,0@i64; 0,3; 4@i32:0..3,2@i64:0..3; "
               "4@bool,2@i64:0..1; 3,3 {assume_unique=true}",
    .errors = "3 ! EVALUE"
};
REGISTER_OPS(&op_isin);

Tensor *tensor_isin_args(TensorIsinArgs a) { return APPLY(&op_isin, &a, a.elements, a.test_elements); }
