/* row_check.c - checks the dtypes and parameters of an elementwise row against ops.def (struct OpRow), and
 * selects the dtype it computes in. */
#include <math.h>
#include "op/op.h"
#include "op/shape/shape_op.h"
#include "row.h"

/* ---- parameters ------------------------------------------------------------------------------ */

static int check_params(const TensorOp *op, const char *name, const Tensor *a, const double *params)
{
    const OpRow *row = op->row;
    const unsigned rules = row->rules;
    const char *p = row->param_name[0];
    const double c = params[0];
    if ((rules & ROW_NOT_ZERO) && c == 0)
        return fail_op(TENSOR_EVALUE, op, name, NULL, "%s: %s = 0: want another number", S(a), p);
    if (rules & ROW_WHOLE) {
        const double least = rules & ROW_NOT_NEGATIVE ? 0 : -0x1p63, most = row->most ? row->most : 0x1p63;
        if (!is_integral(c) || c < least || c > most)
            return fail_op(TENSOR_EVALUE, op, name, NULL, "%s: %s = %g: want an integer from %g to %g", S(a),
                           p, c, least, most);
    } else if ((rules & ROW_NOT_NEGATIVE) && !(c >= 0))
        return fail_op(TENSOR_EVALUE, op, name, NULL, "%s: %s = %g: want 0 or more", S(a), p, c);
    if ((rules & ROW_ORDERED) && c > params[1])
        return fail_op(TENSOR_EVALUE, op, name, NULL, "%s: %s = %g is above %s = %g", S(a), p, c,
                       row->param_name[1], params[1]);
    return 0;
}

/* ---- integers -------------------------------------------------------------------------------- */

static double least_of(int dtype)
{
    return dtype == TENSOR_I64 ? -0x1p63 : dtype == TENSOR_I32 ? -0x1p31 : 0;
}
static double end_of(int dtype) { return dtype == TENSOR_I64 ? 0x1p63 : dtype == TENSOR_I32 ? 0x1p31 : 256; }

/* Powers of integers are integers, so the exponent must be one that their dtype holds. */
static int check_exponent(const TensorOp *op, const char *name, const Tensor *a, double c, int dtype)
{
    const double most = dtype == TENSOR_I64 ? 0x1p63 : end_of(dtype) - 1;
    if (c >= 0 && c <= most) return 0;
    return fail_op(TENSOR_EVALUE, op, name, NULL, "%s %s to the power %g: of integers, from 0 to %g",
                   tensor_dtype_name((TensorDtype)a->dtype), S(a), c, most);
}

static int check_fits(const TensorOp *op, const char *name, const Tensor *a, const double *params, int dtype)
{
    for (int i = 0; i < op->row->params; i++) {
        const double c = trunc(params[i]);
        if (!(c >= least_of(dtype) && c < end_of(dtype)))
            return fail_op(TENSOR_EVALUE, op, name, NULL, "%s %s: %s = %g is beyond the dtype",
                           tensor_dtype_name((TensorDtype)dtype), S(a), op->row->param_name[i], params[i]);
    }
    return 0;
}

/* 1: found at once; another device than the CPU is not waited for. */
static int look_for_zero(const TensorOp *op, const char *name, Tensor *divisor, const void *site)
{
    if (on_host(divisor->place)) {
        Tensor *all = tensor_all(divisor);
        return all ? tensor_item(all) == 0 : -1;
    }
    OpCall c;
    CheckArgs args = {
        .what = "the size of an integer divisor", .status = TENSOR_EVALUE, .low = 1, .high = INT64_MAX
    };
    call_begin(&c, op, NULL, 0, NULL, site), c.name = name;
    return call_check(&c, tensor_to(tensor_ne_scalar(divisor, 0), TENSOR_I64), &args);
}

static int check_nonzero(const TensorOp *op, const char *name, const Tensor *a, const Tensor *divisor,
                         const void *site)
{
    TensorScope scope = tensor_scope_open();
    const int found = scope_failed(scope) ? -1 : look_for_zero(op, name, (Tensor *)(uintptr_t)divisor, site);
    tensor_scope_close(scope);
    if (found == 1)
        fail_op(TENSOR_EVALUE, op, name, NULL, "%s by %s: an integer is divided by 0", S(a), S(divisor));
    return found ? -1 : 0;
}

/* Integers have no quotient by 0; a scalar wraps to their width. */
static int check_divisor(const TensorOp *op, const char *name, const Tensor *a, const Tensor *b,
                         const double *params, int dtype, const void *site)
{
    if (op->row->by_x || b) return check_nonzero(op, name, a, b ? b : a, site);
    const int64_t c = (int64_t)params[0], low = dtype == TENSOR_U8    ? (uint8_t)c
                                                : dtype == TENSOR_I32 ? (int32_t)c
                                                                      : c;
    if (a->numel == 0 || low != 0) return 0;
    return fail_op(TENSOR_EVALUE, op, name, NULL, "%s %s by %g: an integer is divided by 0",
                   tensor_dtype_name((TensorDtype)dtype), S(a), params[0]);
}

static COLD int check_integers(const TensorOp *op, const char *name, const Tensor *a, const Tensor *b,
                               const double *params, int dtype, const void *site)
{
    const unsigned rules = op->row->rules;
    for (int i = 0; rules & ROW_TRUNCATED && i < op->row->params; i++)
        if (isnan(params[i]))
            return fail_op(TENSOR_EVALUE, op, name, NULL, "%s %s: %s is NaN",
                           tensor_dtype_name((TensorDtype)dtype), S(a), op->row->param_name[i]);
    if ((rules & ROW_FITS) && check_fits(op, name, a, params, dtype)) return -1;
    if ((rules & ROW_DIVIDES) && check_divisor(op, name, a, b, params, dtype, site)) return -1;
    if ((rules & ROW_EXPONENT) && check_exponent(op, name, a, params[0], dtype)) return -1;
    return dtype;
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static COLD int refuse_dtype(const TensorOp *op, const char *name, const Tensor *a, int dtype,
                             const char *wanted)
{
    return fail_op(TENSOR_EDTYPE, op, name, NULL, "%s %s: not defined for %s, but for %s",
                   tensor_dtype_name((TensorDtype)a->dtype), S(a), tensor_dtype_name((TensorDtype)dtype),
                   wanted);
}

static COLD int refuse_bool(const TensorOp *op, const char *name, const Tensor *a, const Tensor *b)
{
    return fail_op(TENSOR_EDTYPE, op, name, NULL, "%s %s and %s %s: not defined for bool; %s",
                   tensor_dtype_name((TensorDtype)a->dtype), S(a), tensor_dtype_name((TensorDtype)b->dtype),
                   S(b), op->row->no_bool);
}

static COLD int refuse_two_dtypes(const TensorOp *op, const char *name, const Tensor *a, const Tensor *b)
{
    return fail_op(TENSOR_EDTYPE, op, name, NULL, "%s %s and %s %s: operands must have one dtype",
                   tensor_dtype_name((TensorDtype)a->dtype), S(a), tensor_dtype_name((TensorDtype)b->dtype),
                   S(b));
}

int row_dtype(const TensorOp *op, const char *name, const Tensor *a, const Tensor *b, const double *params,
              const void *site)
{
    const OpRow *row = op->row;
    int dtype = !b || a->dtype == b->dtype ? a->dtype : promoted_pair(a, b);
    if (unlikely(row->rules & ROW_ONE_DTYPE) && b && a->dtype != b->dtype)
        return refuse_two_dtypes(op, name, a, b);
    if (row->rules && row->params && unlikely(check_params(op, name, a, params))) return -1;
    if (unlikely(row->no_bool != NULL) && (a->dtype == TENSOR_BOOL || b->dtype == TENSOR_BOOL))
        return refuse_bool(op, name, a, b);
    if (likely(dtype_is_float(dtype)))
        return likely(row->types < ROW_BITS)
                   ? dtype
                   : refuse_dtype(op, name, dtype_is_float(a->dtype) ? a : b, dtype, "integers");
    if (row->types == ROW_FLOATS) return TENSOR_F32;
    if (row->types == ROW_REALS) return refuse_dtype(op, name, a, dtype, "floats");
    if (dtype == TENSOR_BOOL && (row->types == ROW_NUMBERS || row->types == ROW_INTEGERS))
        return refuse_dtype(op, name, a, dtype, "numbers");
    for (int i = 0; !(row->rules & ROW_TRUNCATED) && i < row->params; i++) /* x + 0.5 on integers promotes */
        if (!is_integral(params[i])) return TENSOR_F32;
    if (dtype == TENSOR_BOOL && (row->types == ROW_WIDENED || row->types == ROW_WIDENED_BITS))
        dtype = TENSOR_I64; /* True + 1 is 2 */
    return row->rules ? check_integers(op, name, a, b, params, dtype, site) : dtype;
}
