/* index_language.c - reads and writes x[:, None, 1:-1:2, idx].
 *
 * Integers, slices, ... and None become views, one after the other.  Tensors and bools are collected with the
 * view's dimension that they index, and go to index_tensors or index_put at the end, as in PyTorch.  So an
 * integer is never an advanced index: it does not separate tensors, nor count as one. */
#include "index_language.h"
#include "op/shape/shape_op.h"

typedef struct Picked {
    Tensor *view;
    Tensor *list[TENSOR_MAX_DIMS]; /* tensors for the view's leading dimensions, NULL: the whole dimension */
    int n;                         /* 0: the view is the result */
} Picked;

/* It is read before a tensor is made, which could take the place of one that was released. */
typedef struct Text {
    const char *op, *text;
    IndexItem item[INDEX_MOST];
    int n;
} Text;

static int read_text(Text *t, const Tensor *x, va_list args)
{
    if (check_null(x, t->op, 1)) return -1;
    t->n = index_parse(t->op, t->text, args, t->item);
    return t->n < 0 ? -1 : 0;
}

static int refuse(const Text *t, TensorStatus code, const IndexItem *item, const char *what, const Tensor *x)
{
    return fail(code, t->op, "\"%s\" at position %d: %s %s", t->text, item->at, what, S(x));
}

static bool is_mask(const Tensor *index) { return index->dtype == TENSOR_BOOL || index->dtype == TENSOR_U8; }

/* Tensors of rank 0 are integers, or bools: after this only others are INDEX_TENSOR. */
static int settle_scalars(Text *t)
{
    IndexItem *items = t->item;
    for (int i = 0; i < t->n; i++) {
        Tensor *index = items[i].tensor;
        if (items[i].kind != INDEX_TENSOR) continue;
        if (dtype_is_float(index->dtype))
            return fail(TENSOR_EDTYPE, t->op, "\"%s\" at position %d: the index %s is %s: want i64 or bool",
                        t->text, items[i].at, S(index), tensor_dtype_name((TensorDtype)index->dtype));
        if (index->ndim > 0) continue;
        items[i].kind = is_mask(index) ? INDEX_BOOL : INDEX_INTEGER;
        items[i].start = tensor_item_i64(index);
    }
    return 0;
}

static int dims_of(const IndexItem *item)
{
    if (item->kind == INDEX_TENSOR) return is_mask(item->tensor) ? item->tensor->ndim : 1;
    return item->kind == INDEX_INTEGER || item->kind == INDEX_SLICE;
}

static Tensor *pick_integer(const Text *t, Tensor *view, int dim, const IndexItem *item)
{
    int64_t size = view->shape[dim];
    if (item->start >= -size && item->start < size) return tensor_select(view, dim, item->start);
    fail(TENSOR_EINDEX, t->op, "\"%s\" at position %d: index %lld for a size of %lld, dimension %d of %s",
         t->text, item->at, (long long)item->start, (long long)size, dim, S(view));
    return NULL;
}

static Tensor *pick_slice(Tensor *view, int dim, const IndexItem *item)
{
    bool whole = item->start == 0 && item->end == INT64_MAX && item->step == 1;
    return whole ? view : tensor_slice(view, dim, item->start, item->end, item->step);
}

static Tensor *list_of_bool(bool yes, const Place *place) { return zeros_on(SHAPE(yes), TENSOR_I64, place); }

/* Follows the items through x; at[d] is the tensor that indexes the view from dimension d on. */
static Tensor *walk(const Text *t, Tensor *x, Tensor **at)
{
    const IndexItem *items = t->item;
    const int n = t->n;
    int specified = 0, dim = 0;
    Tensor *view = x;
    for (int i = 0; i < n; i++) {
        specified += dims_of(&items[i]);
        if (specified > x->ndim)
            return refuse(t, TENSOR_EVALUE, &items[i], "more indices than dimensions of", x), NULL;
    }
    for (int i = 0; i < n && view; i++) {
        const IndexItem *item = &items[i];
        bool adds = item->kind == INDEX_NONE || item->kind == INDEX_BOOL;
        if (adds && view->ndim == TENSOR_MAX_DIMS)
            return refuse(t, TENSOR_ESHAPE, item, "too many dimensions from", x), NULL;
        if (adds) view = tensor_unsqueeze(view, dim);
        if (item->kind == INDEX_INTEGER) view = pick_integer(t, view, dim, item);
        if (item->kind == INDEX_SLICE) view = pick_slice(view, dim++, item);
        if (item->kind == INDEX_ELLIPSIS) dim += x->ndim - specified;
        if (item->kind == INDEX_TENSOR) at[dim] = item->tensor, dim += dims_of(item);
        if (item->kind == INDEX_BOOL && !(at[dim] = list_of_bool(item->start, x->place))) return NULL;
        dim += adds;
    }
    return view;
}

static int pick(Text *t, Tensor *x, Picked *p)
{
    Tensor *at[TENSOR_MAX_DIMS] = { NULL };
    if (settle_scalars(t)) return -1;
    p->view = walk(t, x, at);
    p->n = 0;
    for (int d = 0, count = 0; p->view && d < p->view->ndim; count++) {
        p->list[count] = at[d];
        if (at[d]) p->n = count + 1;
        d += at[d] && is_mask(at[d]) ? at[d]->ndim : 1;
    }
    return p->view ? 0 : -1;
}

/* ---- reading --------------------------------------------------------------------------------- */

static Tensor *get(Text *t, Tensor *x)
{
    Picked p;
    if (pick(t, x, &p)) return NULL;
    if (p.n) return index_by_tensors(t->op, p.view, TENSOR_LIST(p.list, p.n), SITE);
    return p.view == x ? tensor_expand(x, shape_of(x))
                       : p.view; /* a tensor of its own, also where nothing is picked */
}

Tensor *(tensor_index)(Tensor *x, const char *text, ...)
{
    va_list args;
    Text t = { .op = "index", .text = text };
    const char *outer = tensor_compose_begin("index");
    TensorScope scope = tensor_scope_open();
    va_start(args, text);
    Tensor *y = scope_failed(scope) || read_text(&t, x, args) ? NULL : get(&t, x);
    tensor_compose_end(outer);
    va_end(args);
    return tensor_scope_return(scope, y);
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef enum Way { SET, ACCUMULATE } Way;

/* x[mask] = one value: by selection, without a list of positions. */
static Tensor *fill_mask(const Picked *p, Tensor *value)
{
    Tensor *mask = p->list[p->n - 1];
    int64_t shape[TENSOR_MAX_DIMS];
    int first = p->n - 1, ndim = p->view->ndim - first;
    for (int d = 0; d < mask->ndim; d++)
        if (mask->shape[d] != p->view->shape[first + d])
            return fail(TENSOR_ESHAPE, "index", "mask %s for %s from dimension %d on: want equal sizes",
                        S(mask), S(p->view), first),
                   NULL;
    for (int d = 0; d < ndim; d++) shape[d] = d < mask->ndim ? mask->shape[d] : 1;
    return tensor_masked_fill_tensor_(p->view, tensor_reshape(mask, (TensorShape){ ndim, shape }),
                                      tensor_reshape(value, SHAPE()));
}

static bool only_a_mask(const Picked *p)
{
    for (int i = 0; i < p->n - 1; i++)
        if (p->list[i]) return false;
    return is_mask(p->list[p->n - 1]);
}

static Tensor *put(const Picked *p, Tensor *value, Way way)
{
    if (!p->n) {
        value = without_lead(value, p->view->ndim);
        return way == SET ? tensor_copy_(p->view, value) : tensor_add_(p->view, value);
    }
    if (way == SET && value->numel == 1 && only_a_mask(p)) return fill_mask(p, value);
    return tensor_index_put_(p->view, TENSOR_LIST(p->list, p->n), value, way == ACCUMULATE);
}

static Tensor *set(Text *t, Tensor *x, Tensor *value, Way way)
{
    Picked p;
    if (inplace_check(t->op, x) || pick(t, x, &p)) return NULL;
    if (value->dtype != x->dtype) value = tensor_to(value, (TensorDtype)x->dtype);
    return value && put(&p, value, way) ? x : NULL;
}

/* What is written is value or, where that is NULL, a number. */
static Tensor *write_read(Text *t, Tensor *x, Tensor *value, const double *number, Way way, bool aside)
{
    Tensor *to = aside ? tensor_clone(x) : x;
    if (number) value = own(new_tensor(SHAPE(), x->dtype, x->place));
    if (!to || !value || (number && raw_fill(value, *number))) return NULL;
    return set(t, to, value, way);
}

static Tensor *write(const char *op, Tensor *x, Tensor *value, const double *number, Way way, bool aside,
                     const char *text, va_list args)
{
    Text t = { .op = op, .text = text };
    const char *outer = tensor_compose_begin(op);
    TensorScope scope = tensor_scope_open();
    const bool failed = scope_failed(scope) || check_null(x, op, 1) ||
                        (!number && check_null(value, op, 2)) || read_text(&t, x, args);
    Tensor *y = failed ? NULL : write_read(&t, x, value, number, way, aside);
    tensor_compose_end(outer);
    if (aside) return tensor_scope_return(scope, y);
    tensor_scope_close(scope);
    return y ? borrow(y) : NULL;
}

Tensor *(tensor_index_set)(Tensor *x, Tensor *value, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    Tensor *y = write("tensor_index_set", x, value, NULL, SET, true, text, args);
    va_end(args);
    return y;
}

Tensor *(tensor_index_set_)(Tensor *x, Tensor *value, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    Tensor *y = write("tensor_index_set_", x, value, NULL, SET, false, text, args);
    va_end(args);
    return y;
}

Tensor *(tensor_index_accumulate_)(Tensor *x, Tensor *value, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    Tensor *y = write("tensor_index_accumulate_", x, value, NULL, ACCUMULATE, false, text, args);
    va_end(args);
    return y;
}

Tensor *(tensor_index_set_scalar_)(Tensor *x, double value, const char *text, ...)
{
    va_list args;
    if (check_null(x, "tensor_index_set_scalar_", 1) || check_fill("tensor_index_set_scalar_", x, value))
        return NULL;
    va_start(args, text);
    Tensor *y = write("tensor_index_set_scalar_", x, NULL, &value, SET, false, text, args);
    va_end(args);
    return y;
}
