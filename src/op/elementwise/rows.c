/* rows.c - the elementwise ops: descriptors from ops.def, and the one path that runs them all.
 *
 *   y_i = formula(a_i, b_i)        da_i = gradient formula(a_i, b_i, y_i, g_i), fused; or, when the sweep is
 * recorded, the same text read as an expression over tensors (formula.c)
 *
 * row_apply is the hot path: no scope, one allocation for the result, one for the entry. */
#include "op/op.h"
#include "device/rows.h"
#include "autograd/anomaly.h"
#include "autograd/formula.h"
#include "cpu/elementwise/map_user.h"
#include "autograd/tape.h"

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* The dtype to compute in, or -1: the promoted dtype of the operands, where rank-0 tensors count only by
 * category. */
static int result_dtype(const Tensor *a, const Tensor *b)
{
    if (!b || a->dtype == b->dtype) return a->dtype;
    int promoted = (int)tensor_promote_types((TensorDtype)a->dtype, (TensorDtype)b->dtype);
    if ((a->ndim == 0) == (b->ndim == 0)) return promoted;
    const Tensor *full = a->ndim ? a : b, *scalar = a->ndim ? b : a;
    int category_full = dtype_is_float(full->dtype) ? 2 : full->dtype != TENSOR_BOOL;
    int category_scalar = dtype_is_float(scalar->dtype) ? 2 : scalar->dtype != TENSOR_BOOL;
    return category_scalar > category_full ? scalar->dtype : full->dtype;
}

/* Powers of integers are integers, so the exponent must be one that their dtype holds. */
static int check_exponent(const TensorOp *op, const Tensor *a, int dtype, double c)
{
    double most = dtype == TENSOR_U8 ? 255 : dtype == TENSOR_I32 ? 0x1p31 - 1 : 0x1p63;
    if (c >= 0 && c <= most) return dtype;
    return fail(TENSOR_EVALUE, op->name, "%s %s to the power %g: of integers, from 0 to %g",
                tensor_dtype_name((TensorDtype)a->dtype), S(a), c, most);
}

static int check_params(const TensorOp *op, const Tensor *a, const double *params)
{
    switch (op->row->id) {
    case ROW_polygamma:
        if (params[0] >= 0 && params[0] <= 170 && is_integral(params[0])) return 0;
        return fail(TENSOR_EVALUE, op->name, "%s: n = %g: want an integer from 0 to 170", S(a), params[0]);
    case ROW_celu:
        return params[0] != 0 ? 0
                              : fail(TENSOR_EVALUE, op->name, "%s: alpha is 0, by which x is divided", S(a));
    case ROW_softshrink:
        return params[0] >= 0
                   ? 0
                   : fail(TENSOR_EVALUE, op->name, "%s: lambd = %g: want 0 or more", S(a), params[0]);
    default: return 0;
    }
}

/* Integers have no quotient by 0; a scalar wraps to their width. */
static int check_divisor(const TensorOp *op, const Tensor *a, const Tensor *b, const double *params,
                         int dtype)
{
    switch (op->row->id) {
    case ROW_fmod:
    case ROW_remainder:
    case ROW_floor_divide:
    case ROW_trunc_divide: {
        TensorScope scope = tensor_scope_open();
        Tensor *all = scope_failed(scope) ? NULL : tensor_all((Tensor *)(uintptr_t)b);
        bool good = all && tensor_item(all) != 0, bad = all && !good;
        tensor_scope_close(scope);
        return good  ? 0
               : bad ? fail(TENSOR_EVALUE, op->name, "%s by %s: an integer is divided by 0", S(a), S(b))
                     : -1;
    }
    case ROW_fmod_scalar:
    case ROW_remainder_scalar:
    case ROW_floor_divide_scalar: {
        int64_t c = (int64_t)params[0];
        if (a->numel == 0 || (dtype == TENSOR_U8    ? (uint8_t)c
                              : dtype == TENSOR_I32 ? (int32_t)c != 0
                                                    : c != 0))
            return 0;
        return fail(TENSOR_EVALUE, op->name, "%s %s by %g: an integer is divided by 0",
                    tensor_dtype_name((TensorDtype)dtype), S(a), params[0]);
    }
    default: return 0;
    }
}

static int refuse_dtype(const TensorOp *op, const Tensor *a, int dtype, const char *wanted)
{
    return fail(TENSOR_EDTYPE, op->name, "%s %s: not defined for %s, but for %s",
                tensor_dtype_name((TensorDtype)a->dtype), S(a), tensor_dtype_name((TensorDtype)dtype),
                wanted);
}

static int check_threshold(const TensorOp *op, const Tensor *a, int dtype, const double *params)
{
    double least = dtype == TENSOR_U8    ? 0
                   : dtype == TENSOR_I32 ? -0x1p31
                                         : -0x1p63,
           end = dtype == TENSOR_U8 ? 256 : -least;
    for (int i = 0; i < 2; i++)
        if (!(params[i] >= least && params[i] < end))
            return fail(TENSOR_EVALUE, op->name, "%s %s: threshold %g or value %g is beyond the dtype",
                        tensor_dtype_name((TensorDtype)dtype), S(a), params[0], params[1]);
    return dtype;
}

static int compute_dtype(const TensorOp *op, const Tensor *a, const Tensor *b, const double *params)
{
    const OpRow *row = op->row;
    int dtype = result_dtype(a, b);
    if (row->params && unlikely(check_params(op, a, params))) return -1;
    if (unlikely(row->id == ROW_sub && (a->dtype == TENSOR_BOOL || b->dtype == TENSOR_BOOL)))
        return fail(TENSOR_EDTYPE, op->name,
                    "%s %s and %s %s: not defined for bool; of masks take tensor_logical_not or _xor",
                    tensor_dtype_name((TensorDtype)a->dtype), S(a), tensor_dtype_name((TensorDtype)b->dtype),
                    S(b));
    if (likely(dtype_is_float(dtype)))
        return likely(row->types < ROW_BITS)
                   ? dtype
                   : refuse_dtype(op, dtype_is_float(a->dtype) ? a : b, dtype, "integers");
    if (row->types == ROW_FLOATS) return TENSOR_F32;
    if (row->types == ROW_REALS) return refuse_dtype(op, a, dtype, "floats");
    if (dtype == TENSOR_BOOL && (row->types == ROW_NUMBERS || row->types == ROW_INTEGERS))
        return refuse_dtype(op, a, dtype, "numbers");
    for (int i = 0; i < row->params; i++) /* x + 0.5 on integers promotes */
        if (!is_integral(params[i])) return TENSOR_F32;
    if (dtype == TENSOR_BOOL && row->types == ROW_WIDENED) dtype = TENSOR_I64; /* True + 1 is 2 */
    if (row->id == ROW_threshold) return check_threshold(op, a, dtype, params);
    if (row->id >= ROW_FAST && check_divisor(op, a, b, params, dtype)) return -1;
    return row->id == ROW_pow_scalar ? check_exponent(op, a, dtype, params[0]) : dtype;
}

/* ---- one map over an index space ------------------------------------------------------------- */

static void set_operand(Strided *s, const Tensor *x, TensorShape shape)
{
    s->data = x->data, s->dtype = x->dtype;
    broadcast_strides(x, shape, s->stride);
}

/* Bounds of a range: on integers they are held to those that the dtype has, not wrapped. */
static const double *held_bounds(const TensorOp *op, int dtype, const double *params, double *held)
{
    if (op->row->id != ROW_clamp && op->row->id != ROW_hardtanh && op->row->id != ROW_clamp_min &&
        op->row->id != ROW_clamp_max)
        return params;
    double low = dtype == TENSOR_I32 ? -0x1p31 : 0, high = dtype == TENSOR_I32 ? 0x1p31 - 1 : 255;
    if (dtype != TENSOR_I32 && dtype != TENSOR_U8) return params;
    for (int i = 0; i < op->row->params; i++)
        held[i] = params[i] < low ? low : params[i] > high ? high : params[i];
    return held;
}

/* Powers that a simpler row gives, as in PyTorch: so (-0)^0.5 is -0 and (-inf)^0.5 NaN. */
static int row_of_power(int part, double c)
{
    if (part != ROW_FORWARD) return c == 2 ? ROW_square : ROW_pow_scalar;
    return c == 2     ? ROW_square
           : c == -1  ? ROW_reciprocal
           : c == .5  ? ROW_sqrt
           : c == -.5 ? ROW_rsqrt
                      : ROW_pow_scalar;
}

/* The row whose loop computes: bits of a bool are one bit. */
static int row_of(const TensorOp *op, int part, int dtype, const double *params)
{
    if (unlikely(op->row->id == ROW_pow_scalar)) return row_of_power(part, params[0]);
    return unlikely(op->row->id == ROW_bitwise_not) && dtype == TENSOR_BOOL ? ROW_logical_not : op->row->id;
}

/* Runs one part of a row.  out has the result's shape; in[] broadcast to it; NULL operands are not read. */
static int run_map(const TensorOp *op, int part, Tensor *out, Tensor *const in[ROW_OPERANDS],
                   const double *params)
{
    if (out->numel == 0) return 0;
    MapArgs m;
    double held[2];
    if (op->row->params) params = held_bounds(op, out->dtype, params, held);
    m.row = row_of(op, part, out->dtype, params);
    m.part = part, m.params = params, m.count = out->numel;
    bool dense = out->flags & FLAG_CONTIGUOUS;
    for (int k = 0; k < ROW_OPERANDS && dense; k++)
        dense = !in[k] || ((in[k]->flags & FLAG_CONTIGUOUS) && in[k]->numel == out->numel);
    if (likely(dense)) {
        m.ndim = 1, m.shape[0] = out->numel;
        m.out.data = out->data, m.out.dtype = out->dtype, m.out.stride[0] = 1;
        for (int k = 0; k < ROW_OPERANDS; k++) {
            m.in[k].data = in[k] ? in[k]->data : NULL;
            m.in[k].dtype = in[k] ? in[k]->dtype : 0;
            m.in[k].stride[0] = 1;
        }
    } else {
        int64_t *stride[1 + ROW_OPERANDS];
        int n = 0;
        set_operand(&m.out, out, shape_of(out));
        stride[n++] = m.out.stride;
        for (int k = 0; k < ROW_OPERANDS; k++) {
            m.in[k].data = NULL, m.in[k].dtype = 0;
            if (!in[k]) continue;
            set_operand(&m.in[k], in[k], shape_of(out));
            stride[n++] = m.in[k].stride;
        }
        for (int d = 0; d < out->ndim; d++) m.shape[d] = out->shape[d];
        m.ndim = collapse(out->ndim, m.shape, n, stride);
    }
    if (op->row->id < 0) return map_user_row(op, &m);
    return RUN_KERNEL(op->name, out->place, map, &m);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Operands cast to the dtype of the computation, on the graph.  NULL and -1 on failure. */
static int cast_operands(Tensor **a, Tensor **b, int dtype)
{
    if ((*a)->dtype != dtype && !(*a = tensor_to(*a, (TensorDtype)dtype))) return -1;
    if (*b && (*b)->dtype != dtype && !(*b = tensor_to(*b, (TensorDtype)dtype))) return -1;
    return 0;
}

static int check_operand(const TensorOp *op, const Tensor *x, int position)
{
    if (check_null(x, op->name, position)) return -1;
    if (unlikely(!x->storage)) return fail(TENSOR_EVALUE, op->name, "operand %d was released", position);
    if (unlikely(x->entry && !entry_is_ours(x->entry)))
        return fail(TENSOR_EGRAD, op->name,
                    "operand %d %s is part of another thread's graph: tensor_detach it there first", position,
                    S(x));
    if (unlikely(x->base != NULL)) return view_refresh((Tensor *)(uintptr_t)x);
    return 0;
}

/* 0 for a tensor compiles, and is NULL. */
static COLD int refuse_null(const TensorOp *op)
{
    static const int rows[] = {
        ROW_add, ROW_sub, ROW_mul, ROW_div, ROW_pow,  ROW_eq,        ROW_ne,
        ROW_lt,  ROW_le,  ROW_gt,  ROW_ge,  ROW_fmod, ROW_remainder, ROW_floor_divide
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !tensor_error(); i++)
        if (op->row->id == rows[i])
            return fail(TENSOR_ENULL, op->name, "operand 2 is NULL (a number goes to tensor_%s_scalar%s)",
                        op->name, naming.op == op->name && !naming.as ? "_" : "");
    check_null(NULL, op->name, 2);
    return -1;
}

static int check_second(const TensorOp *op, const Tensor *b)
{
    return unlikely(!b) ? refuse_null(op) : check_operand(op, b, 2);
}

static int check_places(const TensorOp *op, const Tensor *a, const Tensor *b)
{
    if (b && a->place != b->place)
        return fail(TENSOR_EDEVICE, op->name, "operands on %s and %s: move one with tensor_to_device",
                    a->place->name, b->place->name);
    if (op->row->id < 0 && a->place->device != &cpu_device)
        return fail(TENSOR_EDEVICE, op->name, "has no kernel for %s", a->place->name);
    return 0;
}

static int broadcast_shape(const TensorOp *op, const Tensor *a, const Tensor *b, int64_t *shape)
{
    int ndim = shape_broadcast(shape_of(a), shape_of(b), shape);
    if (ndim < 0)
        return fail(TENSOR_ESHAPE, op->name,
                    "%s and %s do not broadcast: aligned at the last dimension, sizes must agree or be 1",
                    S(a), S(b));
    return ndim;
}

static Tensor *row_slow(const TensorOp *op, Tensor *a, Tensor *b, const double *params, int dtype,
                        const void *site)
{
    TensorScope scope = tensor_scope_open();
    if (cast_operands(&a, &b, dtype)) return tensor_scope_return(scope, NULL);
    return tensor_scope_return(scope, row_apply(op, a, b, params, site));
}

static void row_call(OpCall *c, const TensorOp *op, Tensor *const inputs[2], const double *params, Tensor *y,
                     const void *site)
{
    call_begin(c, op, inputs, inputs[1] ? 2 : 1, (void *)(uintptr_t)params, site);
    c->outputs = 1, c->output[0] = y;
}

static int row_record(const TensorOp *op, Tensor *const inputs[2], const double *params, Tensor *y,
                      const void *site)
{
    OpCall c;
    row_call(&c, op, inputs, params, y, site);
    return tape_record(&c, op->keep);
}

Tensor *row_apply(const TensorOp *op, Tensor *a, Tensor *b, const double *params, const void *site)
{
    if (unlikely(check_operand(op, a, 1))) return NULL;
    if (op->arity == 2 && unlikely(check_second(op, b) || check_places(op, a, b))) return NULL;
    if (op->arity == 1 && unlikely(op->row->id < 0) && check_places(op, a, NULL)) return NULL;
    int dtype = compute_dtype(op, a, b, params);
    if (unlikely(dtype < 0)) return NULL;
    if (unlikely(a->dtype != dtype || (b && b->dtype != dtype)))
        return row_slow(op, a, b, params, dtype, site);
    int64_t shape[TENSOR_MAX_DIMS];
    TensorShape out = shape_of(a);
    if (b && !shape_equal(shape_of(a), shape_of(b))) {
        int ndim = broadcast_shape(op, a, b, shape);
        if (unlikely(ndim < 0)) return NULL;
        out = (TensorShape){ ndim, shape };
    }
    Tensor *y = new_tensor(out, op->row->to_bool ? TENSOR_BOOL : dtype, a->place);
    if (unlikely(!y)) return NULL;
    Tensor *in[ROW_OPERANDS] = { a, b };
    bool graph = !grad_off && !(op->flags & OP_NONDIFFERENTIABLE) && dtype_is_float(dtype) &&
                 (on_graph(a) || (b && on_graph(b)));
    if (unlikely(run_map(op, ROW_FORWARD, y, in, params)) ||
        (graph && unlikely(row_record(op, in, params, y, site)))) {
        tensor_release(y);
        return NULL;
    }
    if (unlikely(anomaly_on)) {
        OpCall c;
        row_call(&c, op, in, params, y, site);
        if (anomaly_check_results(&c)) {
            tensor_release(y);
            return NULL;
        }
    }
    return own(y);
}

/* In place without a graph: straight into x, where nothing can fail once the values change. */
static bool writes_directly(const TensorOp *op, const Tensor *x, const Tensor *b, const double *params)
{
    if (op->row->to_bool || !x->storage || (x->base && x->base_epoch != x->base->epoch)) return false;
    bool graph = !grad_off && (on_graph(x) || (b && on_graph(b)) || (x->base && on_graph(x->base)));
    if (graph || (b && b->dtype != x->dtype) || compute_dtype(op, x, b, params) != x->dtype) return false;
    if (b && b->storage == x->storage && b != x) return false;
    int64_t shape[TENSOR_MAX_DIMS];
    return !b || shape_equal(shape_of(b), shape_of(x)) ||
           (shape_broadcast(shape_of(x), shape_of(b), shape) == x->ndim &&
            shape_equal((TensorShape){ x->ndim, shape }, shape_of(x)));
}

static Tensor *row_in_place(const TensorOp *op, Tensor *x, Tensor *b, const double *params, const void *site)
{
    if (check_operand(op, x, 1) || inplace_check(op->name, x)) return NULL;
    if (op->arity == 2 && (check_second(op, b) || check_places(op, x, b))) return NULL;
    if (writes_directly(op, x, b, params) && !anomaly_on) {
        Tensor *in[ROW_OPERANDS] = { x, b };
        if (run_map(op, ROW_FORWARD, x, in, params)) return NULL;
        note_write(x, op->name, site);
        return borrow(x);
    }
    return op_apply_(op, (Tensor *[]){ x, b }, op->arity, params, site);
}

Tensor *row_apply_(const TensorOp *op, Tensor *x, Tensor *b, const double *params, const void *site)
{
    const Naming before = naming; /* name_as without its calls: this path is hot */
    naming = (Naming){ op->name, NULL };
    Tensor *y = row_in_place(op, x, b, params, site);
    naming = before;
    return y;
}

HIDDEN extern const TensorOp op_add;

int raw_add_into(Tensor *dst, const Tensor *src)
{
    return run_map(&op_add, ROW_FORWARD, dst, (Tensor *[ROW_OPERANDS]){ dst, (Tensor *)(uintptr_t)src },
                   NULL);
}

/* ---- the same through tensor_apply: descriptors alone ---------------------------------------- */

int op_row_shape(OpCall *c)
{
    (void)c;
    return 0;
}

int op_row_forward(OpCall *c)
{
    Tensor *a = c->input[0], *b = c->n > 1 ? c->input[1] : NULL;
    bool was = tensor_set_grad_enabled(false); /* op_apply records the call itself */
    Tensor *y = NULL;
    int dtype = compute_dtype(c->op, a, b, c->params);
    if (dtype >= 0 && !cast_operands(&a, &b, dtype)) y = row_apply(c->op, a, b, c->params, c->site);
    tensor_set_grad_enabled(was);
    return y ? op_set_result(c, 0, y) : -1;
}

/* ---- backward -------------------------------------------------------------------------------- */

static Tensor *operand(OpCall *c, int which, unsigned keep)
{
    unsigned bit = which == ROW_Y ? KEEP_OUTPUT(0) : KEEP_INPUT(which);
    if (!(keep & bit)) return NULL;
    Tensor *x = which == ROW_Y ? op_saved_output(c, 0) : op_saved(c, which);
    return x;
}

/* Operands in the dtype of the computation, g's: tensor_apply saves them as they were given. */
static Tensor *fused_gradient(OpCall *c, int input, Tensor *g, unsigned keep)
{
    Tensor *in[ROW_OPERANDS] = { operand(c, ROW_A, keep), operand(c, ROW_B, keep), operand(c, ROW_Y, keep),
                                 g };
    if (c->failed) return NULL;
    for (int k = 0; k < ROW_OPERANDS; k++)
        if (in[k] && in[k]->dtype != g->dtype && !(in[k] = own(raw_cast(in[k], g->dtype)))) return NULL;
    Tensor *dx = own(new_tensor(op_output_shape(c, 0), g->dtype, g->place));
    return dx && !run_map(c->op, ROW_GRAD_A + input, dx, in, c->params) ? dx : NULL;
}

static Tensor *recorded_gradient(OpCall *c, int input, Tensor *g, unsigned keep)
{
    const OpRow *row = c->op->row;
    Tensor *a = operand(c, ROW_A, keep), *b = operand(c, ROW_B, keep), *y = operand(c, ROW_Y, keep);
    FormulaName names[8] = { { "g", g, 0 }, { "y", y, 0 }, { c->n == 2 ? "a" : "x", a, 0 }, { "b", b, 0 } };
    int n = 4;
    for (int i = 0; i < row->params; i++)
        names[n++] = (FormulaName){ row->param_name[i], NULL, ((const double *)c->params)[i] };
    return c->failed ? NULL : formula_eval(c->op->name, row->gradient[input], names, n);
}

/* What is still to be summed over broadcast dimensions stays wide until then: halves are rounded once. */
static Tensor *cotangent(OpCall *c, int input, Tensor *dy)
{
    bool sums = dtype_is_half(dy->dtype) && !shape_equal(op_input_shape(c, input), shape_of(dy));
    return sums ? own(raw_cast(dy, TENSOR_F32)) : dy;
}

int op_row_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const TensorOp *op = c->op;
    for (int i = 0; i < c->n; i++) {
        if (!op_wants(c, i)) continue;
        unsigned keep = op->keep_for[i] ? op->keep_for[i] : c->n == 1 ? op->keep : 0;
        if (strcmp(op->row->gradient[i], "g") == 0) dx[i] = dy;
        else if (op_recording(c)) dx[i] = recorded_gradient(c, i, dy, keep);
        else {
            Tensor *g = cotangent(c, i, dy);
            dx[i] = g ? fused_gradient(c, i, g, keep) : NULL;
        }
        if (!dx[i]) return -1;
    }
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define R(c) c
#define TEXT(...) #__VA_ARGS__
#define ROW(name, ...) static const OpRow row_##name = { .id = ROW_##name, __VA_ARGS__ };

#define UNARY(name, types_, summary, y, dx, keep, lo, hi) \
    ROW(name, .types = types_, .formula = TEXT(y), .gradient = { TEXT(dx) })
#define UNARY1(name, types_, summary, p, pi, y, dx, keep, lo, hi)                     \
    ROW(name, .types = types_, .params = 1, .param_name = { #p }, .formula = TEXT(y), \
        .gradient = { TEXT(dx) })
#define UNARY2(name, types_, summary, p, pi, q, qi, y, dx, keep, lo, hi)                  \
    ROW(name, .types = types_, .params = 2, .param_name = { #p, #q }, .formula = TEXT(y), \
        .gradient = { TEXT(dx) })
#define BINARY(name, types_, summary, y, da, ka, db, kb, lo, hi) \
    ROW(name, .types = types_, .formula = TEXT(y), .gradient = { TEXT(da), TEXT(db) })
#define BINARY1(name, types_, summary, p, pi, y, da, ka, db, kb, lo, hi)              \
    ROW(name, .types = types_, .params = 1, .param_name = { #p }, .formula = TEXT(y), \
        .gradient = { TEXT(da), TEXT(db) })
#define COMPARE(name, types_, summary, y) ROW(name, .types = types_, .to_bool = true, .formula = TEXT(y))
#define PREDICATE(name, types_, summary, y) ROW(name, .types = types_, .to_bool = true, .formula = TEXT(y))
#define BITS1(name, types_, summary, y) ROW(name, .types = types_, .formula = TEXT(y))
#define BITS2(name, types_, summary, y) ROW(name, .types = types_, .formula = TEXT(y))
#include <tapegrad/ops.def>

#define UNARY1(name, t, s, p, pi, ...) \
    static const OpField fields_##name[] = { { #p, OP_DOUBLE, 0, #pi }, { 0 } };
#define UNARY2(name, t, s, p, pi, q, qi, ...)                                        \
    static const OpField fields_##name[] = { { #p, OP_DOUBLE, 0, #pi },              \
                                             { #q, OP_DOUBLE, sizeof(double), #qi }, \
                                             { 0 } };
#define BINARY1(name, t, s, p, pi, ...) \
    static const OpField fields_##name[] = { { #p, OP_DOUBLE, 0, #pi }, { 0 } };
#include <tapegrad/ops.def>

#define UNARY_SAMPLES "20; 1x0x3; ; 3x4; 2x3x2"
#define UNARY_ERRORS "3,3 ! EVALUE"
#define BINARY_SAMPLES \
    ",; 5,; 5x1,5; 3x2,; 2x3x2,3x2; 2x3x2,2x3x2; 3x1x2,3x2; 3x1x2,1x3x2; 0x1x3,0x4x3; 1x3,2x1"
#define BINARY_ERRORS "2x3,3x2 ! ESHAPE; 4,5 ! ESHAPE"
#define BITS1_SAMPLES "3x4@i64:-9..9; 5@i32:-9..9; @u8:0..255; 0x3@u8"
#define BITS2_SAMPLES \
    "3x4@i64:-9..9,4@i64:-9..9; 5x1@i32:-9..9,4@u8:0..9; @u8:0..255,3@u8:0..9; 0x3@i32,3@i64"
#define BITS_ERRORS "3@i64,3 ! EDTYPE; 3,3 ! EDTYPE; 2x3@i64,3x2@i64 ! ESHAPE"
#define DESCRIBE(name_, arity_, summary_, lo_, hi_, ...)     \
    HIDDEN extern const TensorOp op_##name_;                 \
    const TensorOp op_##name_ = { .name = #name_,            \
                                  .summary = summary_,       \
                                  .arity = arity_,           \
                                  .row = &row_##name_,       \
                                  .shape = op_row_shape,     \
                                  .forward = op_row_forward, \
                                  .lo = lo_,                 \
                                  .hi = hi_,                 \
                                  __VA_ARGS__ };             \
    REGISTER_OP(op_##name_);
#define UNARY(name, types, summary, y, dx, keep_, lo, hi)                                                  \
    DESCRIBE(name, 1, summary, lo, hi, .keep = keep_, .backward = op_row_backward, .flags = OP_ANY_DEVICE, \
             .samples = UNARY_SAMPLES, .errors = UNARY_ERRORS)
#define UNARY1(name, types, summary, p, pi, y, dx, keep_, lo, hi)                                        \
    DESCRIBE(name, 1, summary, lo, hi, .keep = keep_, .params = sizeof(double), .fields = fields_##name, \
             .backward = op_row_backward, .flags = OP_ANY_DEVICE, .samples = UNARY_SAMPLES,              \
             .errors = UNARY_ERRORS)
#define UNARY2(name, types, summary, p, pi, q, qi, y, dx, keep_, lo, hi)                                     \
    DESCRIBE(name, 1, summary, lo, hi, .keep = keep_, .params = 2 * sizeof(double), .fields = fields_##name, \
             .backward = op_row_backward, .flags = OP_ANY_DEVICE, .samples = UNARY_SAMPLES,                  \
             .errors = UNARY_ERRORS)
#define BINARY(name, types, summary, y, da, ka, db, kb, lo, hi)                              \
    DESCRIBE(name, 2, summary, lo, hi, .keep = (ka) | (kb), .keep_for = { ka, kb },          \
             .backward = op_row_backward, .flags = OP_ANY_DEVICE, .samples = BINARY_SAMPLES, \
             .errors = BINARY_ERRORS)
#define BINARY1(name, types, summary, p, pi, y, da, ka, db, kb, lo, hi)                      \
    DESCRIBE(name, 2, summary, lo, hi, .keep = (ka) | (kb), .keep_for = { ka, kb },          \
             .params = sizeof(double), .fields = fields_##name, .backward = op_row_backward, \
             .flags = OP_ANY_DEVICE, .samples = BINARY_SAMPLES, .errors = BINARY_ERRORS)
#define COMPARE(name, types, summary, y)                                             \
    DESCRIBE(name, 2, summary, -2, 2, .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE, \
             .samples = BINARY_SAMPLES, .errors = BINARY_ERRORS)
#define PREDICATE(name, types, summary, y)                                           \
    DESCRIBE(name, 1, summary, -2, 2, .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE, \
             .samples = UNARY_SAMPLES, .errors = UNARY_ERRORS)
#define BITS1(name, types, summary, y)                                              \
    DESCRIBE(name, 1, summary, 0, 0, .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE, \
             .samples = BITS1_SAMPLES, .errors = "3x4 ! EDTYPE")
#define BITS2(name, types, summary, y)                                              \
    DESCRIBE(name, 2, summary, 0, 0, .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE, \
             .samples = BITS2_SAMPLES, .errors = BITS_ERRORS)
#include <tapegrad/ops.def>

/* The public functions. */
#define UNARY(name, ...)                                                                    \
    Tensor *tensor_##name(Tensor *x) { return row_apply(&op_##name, x, NULL, NULL, SITE); } \
    Tensor *tensor_##name##_(Tensor *x) { return row_apply_(&op_##name, x, NULL, NULL, SITE); }
#define UNARY1(name, t, s, p, ...)                                      \
    Tensor *tensor_##name(Tensor *x, double p)                          \
    {                                                                   \
        return row_apply(&op_##name, x, NULL, (double[2]){ p }, SITE);  \
    }                                                                   \
    Tensor *tensor_##name##_(Tensor *x, double p)                       \
    {                                                                   \
        return row_apply_(&op_##name, x, NULL, (double[2]){ p }, SITE); \
    }
#define UNARY2(name, t, s, p, pi, q, ...)                                 \
    Tensor *tensor_##name(Tensor *x, double p, double q)                  \
    {                                                                     \
        return row_apply(&op_##name, x, NULL, (double[]){ p, q }, SITE);  \
    }                                                                     \
    Tensor *tensor_##name##_(Tensor *x, double p, double q)               \
    {                                                                     \
        return row_apply_(&op_##name, x, NULL, (double[]){ p, q }, SITE); \
    }
#define BINARY(name, ...)                                                                           \
    Tensor *tensor_##name(Tensor *a, Tensor *b) { return row_apply(&op_##name, a, b, NULL, SITE); } \
    Tensor *tensor_##name##_(Tensor *a, Tensor *b) { return row_apply_(&op_##name, a, b, NULL, SITE); }
#define BINARY1(name, t, s, p, ...)                                  \
    Tensor *tensor_##name(Tensor *a, Tensor *b, double p)            \
    {                                                                \
        return row_apply(&op_##name, a, b, (double[2]){ p }, SITE);  \
    }                                                                \
    Tensor *tensor_##name##_(Tensor *a, Tensor *b, double p)         \
    {                                                                \
        return row_apply_(&op_##name, a, b, (double[2]){ p }, SITE); \
    }
#define COMPARE BINARY
#define PREDICATE(name, ...) \
    Tensor *tensor_##name(Tensor *x) { return row_apply(&op_##name, x, NULL, NULL, SITE); }
#define BITS1 UNARY
#define BITS2 BINARY
#include <tapegrad/ops.def>

Tensor *tensor_logical_not_(Tensor *x) { return row_apply_(&op_logical_not, x, NULL, NULL, SITE); }
