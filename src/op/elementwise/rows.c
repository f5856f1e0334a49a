/* rows.c - the elementwise ops: a descriptor and the public functions of every row of ops.def.
 *
 *   y_i = formula(a_i, b_i)        da_i = gradient formula(a_i, b_i, y_i, g_i) */
#include "cpu/elementwise/host_add.h"
#include "op/op.h"
#include "device/row_ids.h"
#include "row.h"

/* ---- the rows -------------------------------------------------------------------------------- */

#define R(c) c
#define TEXT(...) #__VA_ARGS__
#define ROW(name, types_, y, ...) \
    static const OpRow row_##name = { .id = ROW_##name, .types = types_, .formula = y, __VA_ARGS__ };

#define UNARY(name, types, summary, y, dx, keep, lo_, ...) \
    ROW(name, types, TEXT(y), .gradient = { TEXT(dx) }, .lo = lo_, .hi = __VA_ARGS__)
#define UNARY1(name, types, summary, p, pi, y, dx, keep, lo_, ...)                                    \
    ROW(name, types, TEXT(y), .gradient = { TEXT(dx) }, .params = 1, .param_name = { #p }, .lo = lo_, \
        .hi = __VA_ARGS__)
#define UNARY2(name, types, summary, p, pi, q, qi, y, dx, keep, lo_, ...)                                 \
    ROW(name, types, TEXT(y), .gradient = { TEXT(dx) }, .params = 2, .param_name = { #p, #q }, .lo = lo_, \
        .hi = __VA_ARGS__)
#define BINARY(name, types, summary, y, da, ka, db, kb, lo_, ...) \
    ROW(name, types, TEXT(y), .gradient = { TEXT(da), TEXT(db) }, .lo = lo_, .hi = __VA_ARGS__)
#define BINARY1(name, types, summary, p, pi, y, da, ka, db, kb, lo_, ...)                            \
    ROW(name, types, TEXT(y), .gradient = { TEXT(da), TEXT(db) }, .params = 1, .param_name = { #p }, \
        .lo = lo_, .hi = __VA_ARGS__)
#define COMPARE(name, types, summary, y, ...) \
    ROW(name, types, TEXT(y), .to_bool = true, .lo = -2, .hi = 2, __VA_ARGS__)
#define PREDICATE COMPARE
#define BITS1(name, types, summary, y, ...) ROW(name, types, TEXT(y), __VA_ARGS__)
#define BITS2 BITS1
#define BITSC(name, types, summary, p, pi, y, ...) \
    ROW(name, types, TEXT(y), .params = 1, .param_name = { #p }, __VA_ARGS__)
#include <tapegrad/ops.def>

/* ---- their parameters ------------------------------------------------------------------------ */

#define FIELD(p, i)                                                               \
    {                                                                             \
        .name = #p, .type = OP_DOUBLE, .offset = (i) * sizeof(double), .count = 1 \
    }
#define PARAMS1(name, p, pi)                        \
    static const double defaults_##name[] = { pi }; \
    static const OpField fields_##name[] = { FIELD(p, 0), { 0 } };
#define UNARY1(name, types, summary, p, pi, ...) PARAMS1(name, p, pi)
#define UNARY2(name, types, summary, p, pi, q, qi, ...) \
    static const double defaults_##name[] = { pi, qi }; \
    static const OpField fields_##name[] = { FIELD(p, 0), FIELD(q, 1), { 0 } };
#define BINARY1 UNARY1
#define BITSC UNARY1
#include <tapegrad/ops.def>

/* ---- the descriptors ------------------------------------------------------------------------- */

#define DESCRIBE(name_, arity_, summary_, ...)               \
    HIDDEN extern const TensorOp op_##name_;                 \
    const TensorOp op_##name_ = { .name = #name_,            \
                                  .summary = summary_,       \
                                  .arity = arity_,           \
                                  .row = &row_##name_,       \
                                  .shape = op_row_shape,     \
                                  .forward = op_row_forward, \
                                  __VA_ARGS__ };             \
    REGISTER_OPS(&op_##name_);
#define HAS_PARAMS(name) \
    .params = sizeof defaults_##name, .fields = fields_##name, .defaults = defaults_##name
#define HAS_GRADIENT .backward = op_row_backward, .flags = OP_ANY_DEVICE
#define NO_GRADIENT .flags = OP_NONDIFFERENTIABLE | OP_ANY_DEVICE

#define UNARY(name, types, summary, y, dx, keep_, ...) DESCRIBE(name, 1, summary, .keep = keep_, HAS_GRADIENT)
#define UNARY1(name, types, summary, p, pi, y, dx, keep_, ...) \
    DESCRIBE(name, 1, summary, .keep = keep_, HAS_PARAMS(name), HAS_GRADIENT)
#define UNARY2(name, types, summary, p, pi, q, qi, y, dx, keep_, ...) \
    DESCRIBE(name, 1, summary, .keep = keep_, HAS_PARAMS(name), HAS_GRADIENT)
#define BINARY(name, types, summary, y, da, ka, db, kb, ...) \
    DESCRIBE(name, 2, summary, .keep = (ka) | (kb), .keep_for = { ka, kb }, HAS_GRADIENT)
#define BINARY1(name, types, summary, p, pi, y, da, ka, db, kb, ...) \
    DESCRIBE(name, 2, summary, .keep = (ka) | (kb), .keep_for = { ka, kb }, HAS_PARAMS(name), HAS_GRADIENT)
#define COMPARE(name, types, summary, ...) DESCRIBE(name, 2, summary, NO_GRADIENT)
#define PREDICATE(name, types, summary, ...) DESCRIBE(name, 1, summary, NO_GRADIENT)
#define BITS1 PREDICATE
#define BITS2 COMPARE
#define BITSC(name, types, summary, ...) DESCRIBE(name, 1, summary, HAS_PARAMS(name), NO_GRADIENT)
#include <tapegrad/ops.def>

/* ---- the public functions -------------------------------------------------------------------- */

#define UNARY(name, ...)                                                                       \
    Tensor *(tensor_##name)(Tensor * x) { return row_apply(&op_##name, x, NULL, NULL, SITE); } \
    Tensor *(tensor_##name##_)(Tensor * x) { return row_apply_(&op_##name, #name "_", x, NULL, NULL, SITE); }
#define UNARY1(name, t, s, p, ...)                                                \
    Tensor *tensor_##name(Tensor *x, double p)                                    \
    {                                                                             \
        return row_apply(&op_##name, x, NULL, (double[]){ p }, SITE);             \
    }                                                                             \
    Tensor *tensor_##name##_(Tensor *x, double p)                                 \
    {                                                                             \
        return row_apply_(&op_##name, #name "_", x, NULL, (double[]){ p }, SITE); \
    }
#define UNARY2(name, t, s, p, pi, q, ...)                                            \
    Tensor *tensor_##name(Tensor *x, double p, double q)                             \
    {                                                                                \
        return row_apply(&op_##name, x, NULL, (double[]){ p, q }, SITE);             \
    }                                                                                \
    Tensor *tensor_##name##_(Tensor *x, double p, double q)                          \
    {                                                                                \
        return row_apply_(&op_##name, #name "_", x, NULL, (double[]){ p, q }, SITE); \
    }
#define BINARY(name, ...)                                                                           \
    Tensor *tensor_##name(Tensor *a, Tensor *b) { return row_apply(&op_##name, a, b, NULL, SITE); } \
    Tensor *tensor_##name##_(Tensor *a, Tensor *b)                                                  \
    {                                                                                               \
        return row_apply_(&op_##name, #name "_", a, b, NULL, SITE);                                 \
    }
#define BINARY1(name, t, s, p, ...)                                            \
    Tensor *tensor_##name(Tensor *a, Tensor *b, double p)                      \
    {                                                                          \
        return row_apply(&op_##name, a, b, (double[]){ p }, SITE);             \
    }                                                                          \
    Tensor *tensor_##name##_(Tensor *a, Tensor *b, double p)                   \
    {                                                                          \
        return row_apply_(&op_##name, #name "_", a, b, (double[]){ p }, SITE); \
    }
#define COMPARE BINARY
#define LOGIC1 UNARY
#define PREDICATE(name, ...) \
    Tensor *tensor_##name(Tensor *x) { return row_apply(&op_##name, x, NULL, NULL, SITE); }
#define BITS1 UNARY
#define BITS2 BINARY
#define BITSC UNARY1
#include <tapegrad/ops.def>

/* ---- dst += src ------------------------------------------------------------------------------ */

enum { SHORT_LINE = 16, FEW = 1 << 20 };

/* Short lines that no dim before them continues, few enough for one thread: the loops of rows take longer to
 * set up for a line than to run, 3 times as long in all.  They are the plain form (test_traps_shape.c). */
static bool add_short_lines(Tensor *dst, const Tensor *src)
{
    const int last = dst->ndim - 1;
    if (last < 1 || dst->shape[last] >= SHORT_LINE || dst->numel >= FEW || !on_host(dst->place)) return false;
    if (dst->dtype != src->dtype || (dst->dtype != TENSOR_F32 && dst->dtype != TENSOR_F64)) return false;
    const int64_t n = dst->shape[last];
    if (!shape_equal(shape_of(dst), shape_of(src)) ||
        (dst->stride[last - 1] == n * dst->stride[last] && src->stride[last - 1] == n * src->stride[last]))
        return false;
    host_add_lines(dst->dtype, dst->ndim, dst->shape, dst->data, dst->stride, src->data, src->stride);
    return true;
}

int raw_add_into(Tensor *dst, const Tensor *src)
{
    if (add_short_lines(dst, src)) return 0;
    return row_map(&op_add, op_add.name, ROW_FORWARD, dst,
                   (Tensor *[ROW_OPERANDS]){ dst, (Tensor *)(uintptr_t)src }, NULL);
}
