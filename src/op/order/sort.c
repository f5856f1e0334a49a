/* sort.c - order along a dim: sort, argsort, topk, kthvalue, median, nanmedian, mode.
 *
 *   y_j = x_(i_j)              dx_(i_j) = g_j, 0 elsewhere
 *
 * Every element becomes a key whose unsigned order is the order wanted: floats with the sign folded in, -0 as
 * 0, NaN above all; complemented for descending.  (key, index) pairs are merged, so equal elements keep their
 * order.  Values are then fetched by index, whatever their dtype. */
#include "cpu/cpu.h"
#include "device/half.h"
#include "op/reduce/reduce.h"

typedef struct OrderParams {
    int dim;
    bool keepdim, descending;
    int64_t k;
} OrderParams;
typedef struct Pair {
    uint64_t key;
    int64_t at;
} Pair;

enum { INSERTION = 12 };

/* ---- keys ------------------------------------------------------------------------------------ */

static uint64_t float_key(double v)
{
    uint64_t u;
    if (v != v) return ORDER_NAN;
    v += 0; /* -0 becomes 0 */
    memcpy(&u, &v, sizeof u);
    return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

uint64_t order_key(const void *x, int dtype, int64_t i)
{
    switch (dtype) {
    case TENSOR_F32: return float_key((double)((const float *)x)[i]);
    case TENSOR_F64: return float_key(((const double *)x)[i]);
    case TENSOR_F16: return float_key((double)f16_to_f32(((const uint16_t *)x)[i]));
    case TENSOR_BF16: return float_key((double)bf16_to_f32(((const uint16_t *)x)[i]));
    case TENSOR_I64: return (uint64_t)((const int64_t *)x)[i] ^ (uint64_t)1 << 63;
    case TENSOR_I32: return (uint64_t)(int64_t)((const int32_t *)x)[i] ^ (uint64_t)1 << 63;
    default: return ((const uint8_t *)x)[i];
    }
}

/* ---- ordering -------------------------------------------------------------------------------- */

static void merge(const Pair *a, int64_t n, const Pair *b, int64_t m, Pair *to)
{
    int64_t i = 0, j = 0;
    while (i < n && j < m) {
        bool second = b[j].key < a[i].key;
        *to++ = second ? b[j] : a[i];
        j += second, i += !second;
    }
    memcpy(to, a + i, (size_t)(n - i) * sizeof *to);
    memcpy(to + (n - i), b + j, (size_t)(m - j) * sizeof *to);
}

static void insertion(Pair *p, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        Pair x = p[i];
        int64_t j = i;
        for (; j > 0 && p[j - 1].key > x.key; j--) p[j] = p[j - 1];
        p[j] = x;
    }
}

/* Runs of INSERTION, then merged in pairs from one array to the other and back. */
static void sort_pairs(Pair *p, Pair *spare, int64_t n)
{
    Pair *from = p, *to = spare;
    for (int64_t i = 0; i < n; i += INSERTION) insertion(p + i, n - i < INSERTION ? n - i : INSERTION);
    for (int64_t run = INSERTION; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            int64_t a = n - i < run ? n - i : run, b = n - i - a < run ? n - i - a : run;
            merge(from + i, a, from + i + a, b, to + i);
        }
        Pair *t = from;
        from = to, to = t;
    }
    if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
}

static bool before(Pair a, Pair b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }

static void sift(Pair *heap, int64_t i, int64_t n)
{
    Pair x = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && before(heap[child], heap[child + 1]);
        if (!before(x, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

/* Puts the first k of the order, sorted, to the front: by a heap of the best so far when they are few. */
static void first_pairs(Pair *p, Pair *spare, int64_t n, int64_t k)
{
    if (k > n / 8) {
        sort_pairs(p, spare, n);
        return;
    }
    for (int64_t i = k / 2 - 1; i >= 0; i--) sift(p, i, k);
    for (int64_t i = k; i < n && k > 0; i++)
        if (before(p[i], p[0])) p[0] = p[i], sift(p, 0, k);
    for (int64_t i = k - 1; i > 0; i--) {
        Pair x = p[0];
        p[0] = p[i], p[i] = x;
        sift(p, 0, i);
    }
}

/* ---- picks: which m of a line's n elements are the result, as indices ------------------------ */

typedef void Pick(Pair *p, Pair *spare, int64_t n, int64_t k, bool floats, int64_t *index);

static void pick_first(Pair *p, Pair *spare, int64_t n, int64_t k, bool floats, int64_t *index)
{
    (void)floats;
    first_pairs(p, spare, n, k);
    for (int64_t i = 0; i < k; i++) index[i] = p[i].at;
}

static void pick_kth(Pair *p, Pair *spare, int64_t n, int64_t k, bool floats, int64_t *index)
{
    (void)floats;
    first_pairs(p, spare, n, k);
    *index = p[k - 1].at;
}

static void pick_median(Pair *p, Pair *spare, int64_t n, int64_t k, bool floats, int64_t *index)
{
    (void)k;
    for (int64_t i = 0; floats && i < n; i++)
        if (p[i].key == ORDER_NAN) {
            *index = p[i].at;
            return;
        }
    pick_kth(p, spare, n, (n - 1) / 2 + 1, floats, index);
}

/* The median of those that are no NaN, which come last in the order. */
static void pick_nanmedian(Pair *p, Pair *spare, int64_t n, int64_t k, bool floats, int64_t *index)
{
    int64_t numbers = 0;
    (void)k;
    for (int64_t i = 0; i < n; i++) numbers += !floats || p[i].key != ORDER_NAN;
    pick_kth(p, spare, n, numbers ? (numbers - 1) / 2 + 1 : 1, floats, index);
}

static void pick_mode(Pair *p, Pair *spare, int64_t n, int64_t k, bool floats, int64_t *index)
{
    (void)k, (void)floats;
    int64_t run = 0, longest = 0;
    sort_pairs(p, spare, n);
    for (int64_t i = 0; i < n; i++) {
        run = i && p[i].key == p[i - 1].key ? run + 1 : 1;
        bool last = i + 1 == n || p[i + 1].key != p[i].key;
        if (last && run > longest) longest = run, *index = p[i].at;
    }
}

/* ---- all lines ------------------------------------------------------------------------------- */

typedef struct Order {
    const Tensor *x; /* dense */
    Around a;
    int64_t m, k; /* results a line; what pick wants to know */
    bool descending;
    Pick *pick;
    void *values; /* dense [outer, m, inner]; values may be NULL */
    int64_t *indices;
} Order;

static void fetch(const Order *o, int64_t line, int64_t from, const int64_t *index)
{
    const size_t size = dtype_size(o->x->dtype);
    const int64_t inner = o->a.inner, to = line / inner * o->m * inner + line % inner;
    for (int64_t j = 0; j < o->m; j++) {
        o->indices[to + j * inner] = index[j];
        if (o->values)
            memcpy((char *)o->values + (size_t)(to + j * inner) * size,
                   (const char *)o->x->data + (size_t)(from + index[j] * inner) * size, size);
    }
}

typedef struct Sorting {
    const Order *o;
    Pair *all;
    int64_t scratch;
} Sorting;

static void order_line(void *ctx, int64_t line)
{
    const Sorting *s = ctx;
    const Order *o = s->o;
    const int64_t n = o->a.n;
    Pair *p = s->all + parallel_slot() * s->scratch;
    int64_t *index = (int64_t *)(p + 2 * n), from = line / o->a.inner * n * o->a.inner + line % o->a.inner;
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = order_key(o->x->data, o->x->dtype, from + i * o->a.inner);
        p[i] = (Pair){ o->descending ? ~key : key, i };
    }
    o->pick(p, p + n, n, o->k, dtype_is_float(o->x->dtype), index);
    fetch(o, line, from, index);
}

static int order_lines(const char *op, const Order *o)
{
    const int64_t n = o->a.n, lines = o->a.outer * o->a.inner, scratch = 2 * n + (o->m + 1) / 2;
    if (lines == 0 || o->m == 0) return 0;
    int threads = cpu_threads(lines * n * 32);
    if (threads > lines) threads = (int)lines;
    const size_t bytes = (size_t)threads * (size_t)scratch * sizeof(Pair);
    Pair *all = tg_alloc(bytes);
    if (!all) return fail_memory(op);
    parallel_for(lines, threads, order_line, &(Sorting){ o, all, scratch });
    tg_free(all, bytes);
    return 0;
}

/* Results of the call: values and indices, or indices alone. */
static int run(OpCall *c, int dim, int64_t m, int64_t k, bool descending, Pick *pick)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0))), *last = op_output(c, c->outputs - 1);
    if (!x) return -1;
    const Order o = { .x = x,
                      .a = around(shape_of(x), dim),
                      .m = m,
                      .k = k,
                      .descending = descending,
                      .pick = pick,
                      .values = c->outputs > 1 ? op_output(c, 0)->data : NULL,
                      .indices = last->data };
    return order_lines(c->op->name, &o);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static int wrap(OpCall *c)
{
    OrderParams *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    int dim = wrap_dim(p->dim, x->ndim);
    if (dim < 0) return op_fail(c, TENSOR_EINDEX, "%s has no dim %d", S(x), p->dim);
    p->dim = dim;
    return 0;
}

static int64_t size_along(const OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    return x->ndim ? x->shape[((const OrderParams *)op_params(c))->dim] : 1;
}

/* The input's shape with m along dim, or without dim when m is -1; for values, if they are a result, and
 * indices. */
static int declare(OpCall *c, int64_t m)
{
    const OrderParams *p = op_params(c);
    const Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    int ndim = 0;
    for (int i = 0; i < x->ndim; i++)
        if (i != p->dim || m >= 0) shape[ndim++] = i == p->dim ? m : x->shape[i];
    const TensorShape to = { ndim, shape };
    if (c->op->outputs == 2 && op_set_output(c, 0, to, (TensorDtype)x->dtype)) return -1;
    return op_set_output(c, c->op->outputs == 2, to, TENSOR_I64);
}

static int sort_shape(OpCall *c) { return wrap(c) ? -1 : declare(c, size_along(c)); }

static int topk_shape(OpCall *c)
{
    if (wrap(c)) return -1;
    const OrderParams *p = op_params(c);
    if (p->k < 0 || p->k > size_along(c))
        return op_fail(c, TENSOR_EINDEX, "%s: k = %lld: want 0 to %lld along dim %d", S(op_input(c, 0)),
                       (long long)p->k, (long long)size_along(c), p->dim);
    return declare(c, p->k);
}

static int one_shape(OpCall *c)
{
    if (wrap(c)) return -1;
    const OrderParams *p = op_params(c);
    if (size_along(c) == 0)
        return op_fail(c, TENSOR_ESHAPE, "%s: no elements along dim %d to choose from", S(op_input(c, 0)),
                       p->dim);
    return declare(c, p->keepdim ? 1 : -1);
}

static int kth_shape(OpCall *c)
{
    if (wrap(c)) return -1;
    const OrderParams *p = op_params(c);
    if (p->k < 1 || p->k > size_along(c))
        return op_fail(c, TENSOR_EINDEX, "%s: k = %lld: want 1 to %lld along dim %d", S(op_input(c, 0)),
                       (long long)p->k, (long long)size_along(c), p->dim);
    return declare(c, p->keepdim ? 1 : -1);
}

/* ---- ops ------------------------------------------------------------------------------------- */

#define P ((const OrderParams *)op_params(c))
static int sort_forward(OpCall *c)
{
    return run(c, P->dim, size_along(c), size_along(c), P->descending, pick_first);
}
static int topk_forward(OpCall *c) { return run(c, P->dim, P->k, P->k, P->descending, pick_first); }
static int kth_forward(OpCall *c) { return run(c, P->dim, 1, P->k, false, pick_kth); }
static int median_forward(OpCall *c) { return run(c, P->dim, 1, 0, false, pick_median); }
static int nanmedian_forward(OpCall *c) { return run(c, P->dim, 1, 0, false, pick_nanmedian); }
static int mode_forward(OpCall *c) { return run(c, P->dim, 1, 0, false, pick_mode); }

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const bool line = shape_equal(op_input_shape(c, 0), op_output_shape(c, 0)) || c->op->shape == topk_shape;
    dx[0] = scatter_back(c, dy, P->dim, line || P->keepdim);
    return dx[0] ? 0 : -1;
}
#undef P

#define ORDER \
    .arity = 1, .outputs = 2, .keep = KEEP_OUTPUT(1), .params = sizeof(OrderParams), .backward = backward
#define DIM OP_FIELD(OP_INT, OrderParams, dim, "-1")
#define KEEPDIM OP_FIELD(OP_BOOL, OrderParams, keepdim, "0")

static const OpField sort_fields[] = { DIM, OP_FIELD(OP_BOOL, OrderParams, descending, "0"), { 0 } };
static const OpField topk_fields[] = { OP_FIELD(OP_I64, OrderParams, k, NULL),
                                       DIM,
                                       { "largest", OP_BOOL, offsetof(OrderParams, descending), "1" },
                                       { 0 } };
static const OpField kth_fields[] = { OP_FIELD(OP_I64, OrderParams, k, NULL), DIM, KEEPDIM, { 0 } };
static const OpField one_fields[] = { DIM, KEEPDIM, { 0 } };

#define SORT_SAMPLES                                                                              \
    .samples = "5; 3x4 {dim=0 descending=1}; 2x3x4 {dim=-2}; ; 0x3 {dim=0}; 3x0; 6@i64:0..3; 40", \
    .errors = "3x4 {dim=2} ! EINDEX"
#define ONE_SAMPLES                                                                   \
    .samples = "5; 3x4 {dim=0}; 2x3x4 {dim=-2 keepdim=1}; ; 0x3 {dim=1}; 6@i64:0..3", \
    .errors = "3x4 {dim=2} ! EINDEX; 0x3 {dim=0} ! ESHAPE"

const TensorOp op_sort = { .name = "sort",
                           .summary = "values in order along a dim, and their indices; stable",
                           .gradient = "dx = zeros with g at the indices",
                           ORDER,
                           .fields = sort_fields,
                           .shape = sort_shape,
                           .forward = sort_forward,
                           SORT_SAMPLES };
const TensorOp op_argsort = { .name = "argsort",
                              .summary = "indices that would sort along a dim; stable",
                              .arity = 1,
                              .outputs = 1,
                              .params = sizeof(OrderParams),
                              .fields = sort_fields,
                              .shape = sort_shape,
                              .forward = sort_forward,
                              .flags = OP_NONDIFFERENTIABLE,
                              SORT_SAMPLES };
const TensorOp op_topk = {
    .name = "topk",
    .summary = "the k largest (or smallest) along a dim, sorted, and their indices",
    .gradient = "dx = zeros with g at the indices",
    ORDER,
    .fields = topk_fields,
    .shape = topk_shape,
    .forward = topk_forward,
    .samples = "5 {k=2}; 3x4 {k=3 dim=0 largest=0}; 2x3x4 {k=1 dim=-2}; {k=1}; 0x3 {k=2}; 4 {k=0}; 40 {k=3}; "
               "6@i64:0..3 {k=2}",
    .errors = "3x4 {k=1 dim=2} ! EINDEX; 3x4 {k=5} ! EINDEX; 3 {k=-1} ! EINDEX"
};
const TensorOp op_kthvalue = {
    .name = "kthvalue",
    .summary = "the k-th smallest along a dim and its index",
    .gradient = "dx = zeros with g at the index",
    ORDER,
    .fields = kth_fields,
    .shape = kth_shape,
    .forward = kth_forward,
    .samples = "5 {k=2}; 3x4 {k=3 dim=0}; 2x3x4 {k=1 dim=-2 keepdim=1}; {k=1}; 0x3 {k=2}; 6@i64:0..3 {k=2}",
    .errors = "3x4 {k=1 dim=2} ! EINDEX; 3 {k=0} ! EINDEX; 3 {k=4} ! EINDEX"
};
const TensorOp op_median_dim = { .name = "median_dim",
                                 .summary = "lower median along a dim and its index; NaN wins",
                                 .gradient = "dx = zeros with g at the index",
                                 ORDER,
                                 .fields = one_fields,
                                 .shape = one_shape,
                                 .forward = median_forward,
                                 .torch = "median",
                                 ONE_SAMPLES };
const TensorOp op_nanmedian_dim = { .name = "nanmedian_dim",
                                    .summary = "lower median along a dim of what is no NaN, and its index",
                                    ORDER,
                                    .gradient = "dx = g at the index",
                                    .fields = one_fields,
                                    .shape = one_shape,
                                    .forward = nanmedian_forward,
                                    .torch = "nanmedian",
                                    ONE_SAMPLES };
const TensorOp op_mode = { .name = "mode",
                           .summary = "most frequent value along a dim and its last index",
                           .gradient = "dx = zeros with g at the index",
                           ORDER,
                           .fields = one_fields,
                           .shape = one_shape,
                           .forward = mode_forward,
                           ONE_SAMPLES };
REGISTER_OP(op_sort);
REGISTER_OP(op_argsort);
REGISTER_OP(op_topk);
REGISTER_OP(op_kthvalue);
REGISTER_OP(op_median_dim);
REGISTER_OP(op_nanmedian_dim);
REGISTER_OP(op_mode);

/* ---- the median of all ----------------------------------------------------------------------- */

static int all_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (x->numel == 0 && !dtype_is_float(x->dtype))
        return op_fail(c, TENSOR_ESHAPE, "%s: no elements to choose from", S(x));
    return op_set_output(c, 0, SHAPE(), (TensorDtype)x->dtype);
}

static int pick_of_all(OpCall *c, Pick *pick)
{
    Tensor *x = own(raw_contiguous(op_input(c, 0)));
    int64_t index;
    if (!x) return -1;
    if (x->numel == 0) return raw_fill(op_output(c, 0), NAN);
    const Order o = { .x = x,
                      .a = { 1, x->numel, 1 },
                      .m = 1,
                      .pick = pick,
                      .values = op_output(c, 0)->data,
                      .indices = &index };
    return order_lines(c->op->name, &o);
}

static int all_forward(OpCall *c) { return pick_of_all(c, pick_median); }
static int nan_all_forward(OpCall *c) { return pick_of_all(c, pick_nanmedian); }

static int all_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *x = op_saved(c, 0);
    if (!x) return -1;
    dx[0] = x->numel ? share_evenly(&(ReduceParams){ .keepdim = false }, x, op_saved_output(c, 0), dy)
                     : tensor_zeros_like(x);
    return dx[0] ? 0 : -1;
}

#define OF_ALL                                                                                   \
    .arity = 1, .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0), .gradient = "dx = g / ties where x = y", \
    .shape = all_shape, .backward = all_backward, .samples = "5; 3x4; ; 0; 6@i64:0..3",          \
    .errors = "0@i64 ! ESHAPE"

const TensorOp op_median = { .name = "median",
                             .summary = "lower median of all; equal ones share the gradient evenly; NaN wins",
                             .forward = all_forward,
                             OF_ALL };
const TensorOp op_nanmedian = {
    .name = "nanmedian",
    .summary = "lower median of all that are no NaN; equal ones share the gradient evenly",
    .forward = nan_all_forward,
    OF_ALL
};
REGISTER_OP(op_median);
REGISTER_OP(op_nanmedian);

/* ---- public ---------------------------------------------------------------------------------- */

static Tensor *apply(const TensorOp *op, Tensor *x, OrderParams p, Tensor **indices, const void *site)
{
    Tensor *y[2] = { NULL, NULL };
    op_apply(op, &x, 1, &p, site, y, 2);
    if (indices) *indices = y[1];
    return y[0];
}

Tensor *tensor_sort_args(TensorSortArgs a)
{
    return apply(&op_sort, a.input, (OrderParams){ .dim = a.dim, .descending = a.descending }, a.indices,
                 SITE);
}

Tensor *tensor_argsort_args(TensorSortArgs a)
{
    if (unwanted_result(a.indices, "argsort", "indices")) return NULL;
    return apply(&op_argsort, a.input, (OrderParams){ .dim = a.dim, .descending = a.descending }, NULL, SITE);
}

Tensor *tensor_topk_args(TensorTopkArgs a)
{
    return apply(&op_topk, a.input, (OrderParams){ .dim = a.dim, .descending = a.largest, .k = a.k },
                 a.indices, SITE);
}

Tensor *tensor_kthvalue_args(TensorKthvalueArgs a)
{
    return apply(&op_kthvalue, a.input, (OrderParams){ .dim = a.dim, .keepdim = a.keepdim, .k = a.k },
                 a.indices, SITE);
}

Tensor *tensor_median_dim_args(TensorPickArgs a)
{
    return apply(&op_median_dim, a.input, (OrderParams){ .dim = a.dim, .keepdim = a.keepdim }, a.indices,
                 SITE);
}

Tensor *tensor_mode_args(TensorPickArgs a)
{
    return apply(&op_mode, a.input, (OrderParams){ .dim = a.dim, .keepdim = a.keepdim }, a.indices, SITE);
}

Tensor *tensor_nanmedian_dim_args(TensorPickArgs a)
{
    return apply(&op_nanmedian_dim, a.input, (OrderParams){ .dim = a.dim, .keepdim = a.keepdim }, a.indices,
                 SITE);
}

Tensor *tensor_median(Tensor *x) { return APPLY(&op_median, NULL, x); }
Tensor *tensor_nanmedian(Tensor *x) { return APPLY(&op_nanmedian, NULL, x); }

Tensor *tensor_msort(Tensor *x) { return apply(&op_sort, x, (OrderParams){ .dim = 0 }, NULL, SITE); }
