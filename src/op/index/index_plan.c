/* index_plan.c - see index_plan.h. */
#include "index_plan.h"

int call_index_dtype(OpCall *c, const Tensor *index)
{
    if (index->dtype == TENSOR_I64 || index->dtype == TENSOR_I32 || index->dtype == TENSOR_U8) return 0;
    return op_fail(c, TENSOR_EDTYPE, "the index %s is %s: want i64", S(index),
                   tensor_dtype_name((TensorDtype)index->dtype));
}

int call_source_dtype(OpCall *c, const Tensor *source, const Tensor *x)
{
    if (source->dtype == x->dtype) return 0;
    return op_fail(c, TENSOR_EDTYPE, "a source of %s for %s: want the same",
                   tensor_dtype_name((TensorDtype)source->dtype), tensor_dtype_name((TensorDtype)x->dtype));
}

int fail_index(OpCall *c, const Tensor *index, int64_t position, int64_t value, int64_t n)
{
    int64_t at[TENSOR_MAX_DIMS];
    for (int d = index->ndim - 1; d >= 0; position /= index->shape[d], d--)
        at[d] = position % index->shape[d];
    const char *where = shape_text((TensorShape){ index->ndim, at });
    if (n == 0)
        return op_fail(c, TENSOR_EINDEX, "index %lld at position %s of %s: there is nothing to index",
                       (long long)value, where, S(index));
    return op_fail(c, TENSOR_EINDEX, "index %lld at position %s of %s is out of range: want 0 to %lld",
                   (long long)value, where, S(index), (long long)n - 1);
}

int check_indices(OpCall *c, const Tensor *index, int64_t n)
{
    CheckArgs a = { .what = "index", .status = TENSOR_EINDEX, .high = n - 1 };
    const int found = call_check(c, index, &a);
    return found == 1 ? fail_index(c, index, a.bad_at, a.bad_value, n) : found;
}

IndexPlan index_plan(TensorShape x, const Tensor *index, int dim)
{
    IndexPlan p = { .dim = dim,
                    .outer = 1,
                    .n = x.ndim ? x.dim[dim] : 1,
                    .m = index->ndim ? index->shape[dim] : 1,
                    .inner = 1 };
    for (int d = 0; d < dim && d < index->ndim; d++) p.outer *= index->shape[d];
    for (int d = dim + 1; d < index->ndim; d++) p.inner *= index->shape[d];
    return p;
}

Tensor *index_within(const Tensor *x, const Tensor *index, int dim)
{
    int64_t shape[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) shape[d] = d == dim || !index->ndim ? x->shape[d] : index->shape[d];
    return own(new_view(x, x->ndim, shape, x->stride, 0));
}

typedef enum Way { GATHER, SCATTER_ADD, SCATTER_FOLD } Way;

static int status_of(const Place *place, Way way, GatherArgs *args)
{
    if (way == GATHER) return KERNEL_STATUS(place, gather, args);
    return way == SCATTER_ADD ? KERNEL_STATUS(place, scatter_add, args)
                              : KERNEL_STATUS(place, scatter_fold, args);
}

static int run_by(OpCall *c, const IndexPlan *p, const Tensor *src, const Tensor *index, Tensor *dst, Way way,
                  FoldKind how, bool include_self)
{
    static const char *const slot[] = { "gather", "scatter_add", "scatter_fold" };
    const Place *place = dst->place;
    Tensor *list = own(raw_cast(index, TENSOR_I64));
    if (!list) return -1;
    if (list->numel == 0 || p->outer == 0 || p->inner == 0) return 0;
    GatherArgs args = { .dtype = dst->dtype,
                        .outer = p->outer,
                        .n = p->n,
                        .m = p->m,
                        .inner = p->inner,
                        .src = src->data,
                        .index = list->data,
                        .dst = dst->data,
                        .fold = (int)how,
                        .include_self = include_self,
                        .bad_at = -1 };
    outermost_call(c, &args.op, &args.site);
    args.index_outer = p->shared ? 0 : p->m * p->inner;
    args.index_row = p->shared ? 1 : p->inner;
    args.index_inner = p->shared ? 0 : 1;
    const int status = status_of(place, way, &args);
    if (status == KERNEL_FAILED && args.bad_at >= 0)
        return fail_index(c, index, args.bad_at, args.bad_value, args.n);
    return kernel_status(status, c->name, place, slot[way]);
}

static int run(OpCall *c, const IndexPlan *p, const Tensor *src, const Tensor *index, Tensor *dst, Way way)
{
    return run_by(c, p, src, index, dst, way, INTO_SUM, true);
}

int run_gather(OpCall *c, const IndexPlan *plan, const Tensor *src, const Tensor *index, Tensor *dst)
{
    return run(c, plan, src, index, dst, GATHER);
}

int run_scatter_add(OpCall *c, const IndexPlan *plan, const Tensor *src, const Tensor *index, Tensor *dst)
{
    if (!dtype_is_half(dst->dtype) || TAKES(dst->place, scatter_add, dst->dtype))
        return run(c, plan, src, index, dst, SCATTER_ADD);
    Tensor *wide_src = own(raw_cast(src, TENSOR_F32)), *wide = own(raw_cast(dst, TENSOR_F32));
    if (!wide_src || !wide || run(c, plan, wide_src, index, wide, SCATTER_ADD)) return -1;
    return raw_copy(dst, wide);
}

Tensor *last_writers(OpCall *c, const IndexPlan *p, const Tensor *index, TensorShape shape)
{
    const Place *place = index->place;
    Tensor *last = own(new_tensor(shape, TENSOR_I64, place)), *rows = numbers_on(p->m, TENSOR_I64, place),
           *each = own(new_tensor(SHAPE(p->outer, p->m, p->inner), TENSOR_I64, place));
    Tensor *column = rows ? own(new_view(rows, 2, (int64_t[]){ p->m, 1 }, (int64_t[]){ 1, 1 }, 0)) : NULL;
    if (!last || !each || !column || raw_fill(last, -1) || raw_copy(each, column)) return NULL;
    return run_scatter_fold(c, p, INTO_AMAX, true, each, index, last) ? NULL : last;
}

int run_scatter_fold(OpCall *c, const IndexPlan *plan, FoldKind how, bool include_self, const Tensor *src,
                     const Tensor *index, Tensor *dst)
{
    return run_by(c, plan, src, index, dst, SCATTER_FOLD, how, include_self);
}
