/* op_row.h - elementwise ops from one line: what ops.def does for the built-in ones, for yours.
 *
 *     OP_UNARY(cube, "x^3", x * x * x, g * 3 * x * x, KEEP_X, -2, 2)
 *     ...
 *     Tensor *y = tensor_apply(&cube, (Tensor *[]){ x }, 1, NULL);
 *
 * The formula yields the loops for f32 and f64 (halves compute in f32), the gradient, and - because the text
 * of the derivative is also read as an expression over tensors - gradients of any order.
 *
 * Grammar of a derivative: + - * / unary - ( ) ? : < <= > >= == != && || ! numbers, the operands x (or a
 * and b), y, g, the row's parameters, and calls of elementwise ops by C's name (exp, log, sqrt, fabs, tanh,
 * ...). */
#ifndef TAPEGRAD_OP_ROW_H
#define TAPEGRAD_OP_ROW_H

#include <math.h>
#include <tapegrad/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KEEP_X = KEEP_INPUT(0),
    KEEP_A = KEEP_INPUT(0),
    KEEP_B = KEEP_INPUT(1),
    KEEP_Y = KEEP_OUTPUT(0),
    KEEP_NONE = 0
};

/* Which dtypes a row takes: FLOATS (integers and bool are promoted to f32), NUMBERS (integers too, bool
 * refused), WIDENED (integers too, bool becomes i64), ANY; REALS (all but floats refused), BITS (floats
 * refused), INTEGERS (floats and bool refused). */
typedef enum OpRowTypes {
    ROW_FLOATS,
    ROW_NUMBERS,
    ROW_WIDENED,
    ROW_ANY,
    ROW_REALS,
    ROW_BITS,
    ROW_INTEGERS
} OpRowTypes;

/* A dense loop over n elements of one type: out[i] = formula(a[i], b[i], y[i], g[i]); operands that it does
 * not read may be NULL. */
typedef void (*OpRowLoop)(int64_t n, void *out, const void *a, const void *b, const void *y, const void *g,
                          const double *params);

typedef struct OpRow {
    int id; /* in ops.def; -1: a row of the user's program */
    OpRowTypes types;
    bool to_bool; /* comparisons and predicates: the result is bool */
    int params;   /* how many doubles */
    const char *param_name[2];
    const char *formula, *gradient[2]; /* their text; NULL: none */
    OpRowLoop f32[3], f64[3];          /* of a user's row: forward, gradient of a, of b */
} OpRow;

/* forward, backward and shape of every row: the rest of its TensorOp is data. */
TAPEGRAD_API int op_row_shape(OpCall *call);
TAPEGRAD_API int op_row_forward(OpCall *call);
TAPEGRAD_API int op_row_backward(OpCall *call, Tensor *dy, Tensor **dx);

/* ---- what the macros below are made of ------------------------------------------------------- */

#define OP_ROW_DEFINE_MAP_(real)                                                                            \
    static inline void op_row_map_##real(int64_t n, void *out, const void *a, const void *b, const void *y, \
                                         const void *g, unsigned keep, real (*f)(real, real, real, real))   \
    {                                                                                                       \
        for (int64_t i = 0; i < n; i++)                                                                     \
            ((real *)out)[i] =                                                                              \
                f(keep & KEEP_A ? ((const real *)a)[i] : 0, keep & KEEP_B ? ((const real *)b)[i] : 0,       \
                  keep & KEEP_Y ? ((const real *)y)[i] : 0, g ? ((const real *)g)[i] : 0);                  \
    }
OP_ROW_DEFINE_MAP_(float)
OP_ROW_DEFINE_MAP_(double)

#define OP_ROW_PART_(name, part, real, first, keep, expression)                                           \
    static real name##_##part##_##real##_formula(real first, real b, real y, real g)                      \
    {                                                                                                     \
        (void)first, (void)b, (void)y, (void)g;                                                           \
        return (real)(expression);                                                                        \
    }                                                                                                     \
    static void name##_##part##_##real(int64_t n, void *out, const void *a, const void *b, const void *y, \
                                       const void *g, const double *params)                               \
    {                                                                                                     \
        (void)params;                                                                                     \
        op_row_map_##real(n, out, a, b, y, g, keep, name##_##part##_##real##_formula);                    \
    }
#define OP_ROW_PARTS_(name, part, first, keep, expression)   \
    OP_ROW_PART_(name, part, float, first, keep, expression) \
    OP_ROW_PART_(name, part, double, first, keep, expression)

/* OP_UNARY(name, summary, y, dx, keep, lo, hi) - defines `static const TensorOp name`, a function of x. */
#define OP_UNARY(name_, summary_, y_, dx_, keep_, lo_, hi_)                   \
    OP_ROW_PARTS_(name_, y, x, KEEP_X, y_)                                    \
    OP_ROW_PARTS_(name_, a, x, keep_, dx_) static const OpRow name_##_row = { \
        .id = -1,                                                             \
        .types = ROW_FLOATS,                                                  \
        .formula = #y_,                                                       \
        .gradient = { #dx_, NULL },                                           \
        .f32 = { name_##_y_float, name_##_a_float, NULL },                    \
        .f64 = { name_##_y_double, name_##_a_double, NULL }                   \
    };                                                                        \
    static const TensorOp name_ = { .name = #name_,                           \
                                    .summary = summary_,                      \
                                    .arity = 1,                               \
                                    .keep = keep_,                            \
                                    .shape = op_row_shape,                    \
                                    .forward = op_row_forward,                \
                                    .backward = op_row_backward,              \
                                    .row = &name_##_row,                      \
                                    .samples = "3x4; 5; 0x2; ",               \
                                    .lo = lo_,                                \
                                    .hi = hi_ }

/* OP_BINARY(name, summary, y, da, keep for da, db, keep for db, lo, hi) - the same of a and b, which
 * broadcast. */
#define OP_BINARY(name_, summary_, y_, da_, ka_, db_, kb_, lo_, hi_)        \
    OP_ROW_PARTS_(name_, y, a, KEEP_A | KEEP_B, y_)                         \
    OP_ROW_PARTS_(name_, a, a, ka_, da_)                                    \
    OP_ROW_PARTS_(name_, b, a, kb_, db_) static const OpRow name_##_row = { \
        .id = -1,                                                           \
        .types = ROW_FLOATS,                                                \
        .formula = #y_,                                                     \
        .gradient = { #da_, #db_ },                                         \
        .f32 = { name_##_y_float, name_##_a_float, name_##_b_float },       \
        .f64 = { name_##_y_double, name_##_a_double, name_##_b_double }     \
    };                                                                      \
    static const TensorOp name_ = { .name = #name_,                         \
                                    .summary = summary_,                    \
                                    .arity = 2,                             \
                                    .keep = (ka_) | (kb_),                  \
                                    .keep_for = { ka_, kb_ },               \
                                    .shape = op_row_shape,                  \
                                    .forward = op_row_forward,              \
                                    .backward = op_row_backward,            \
                                    .row = &name_##_row,                    \
                                    .samples = "3x4,3x4; 2x3,3; 0x2,2; ,",  \
                                    .lo = lo_,                              \
                                    .hi = hi_ }

#ifdef __cplusplus
}
#endif
#endif
