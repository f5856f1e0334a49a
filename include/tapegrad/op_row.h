/* op_row.h - elementwise ops from one line: what ops.def does for the built-in ones, for yours.
 *
 *     OP_UNARY(cube, "x^3", x * x * x, g * 3 * x * x, KEEP_X, -2, 2);
 *     OP_UNARY1(scale, "c x", c, 2, c * x, g * c, KEEP_NONE, -2, 2);
 *     ...
 *     Tensor *y = tensor_apply(&cube, (Tensor *[]){ x }, 1, NULL);
 *     tensor_apply_(&scale, (Tensor *[]){ y }, 1, (double[]){ 3 });        // in place, c = 3
 *     assert_op(&cube);                                                   // in a test (cmocka.h)
 *
 * The formula yields the loops for f32 and f64 (f16 and bf16 compute in f32 and round once; integers and bool
 * are promoted to f32), the gradient, and gradients of any order: the text of the derivative is also read as
 * an expression over tensors.
 *
 * On a GPU NVRTC, which comes with CUDA, compiles the formula when the row first runs there.  It may use C's
 * functions and constants of math.h and the row's parameters; one with functions or names of your program, or
 * a machine without NVRTC, leaves the row to the host (tensor_host_fallbacks), and stderr tells why, once.
 *
 * Grammar of a derivative: + - * / unary - ( ) ? : < <= > >= == != && || ! numbers; the operands x (or a and
 * b), y, g; the row's parameters; and calls of elementwise ops by C's name (exp, log, sqrt, fabs, tanh, ...).
 */
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

/* Which dtypes a row takes. */
typedef enum OpRowTypes {
    ROW_FLOATS,      /* integers and bool are promoted to f32 */
    ROW_NUMBERS,     /* integers too; bool is refused */
    ROW_WIDENED,     /* integers too; bool becomes i64 */
    ROW_ANY,         /* all, as they are */
    ROW_REALS,       /* floats; all others are refused */
    ROW_BITS,        /* integers and bool; floats are refused */
    ROW_INTEGERS,    /* integers; floats and bool are refused */
    ROW_WIDENED_BITS /* integers; bool becomes i64, floats are refused */
} OpRowTypes;

/* What a row asks of its operands and parameters p and q, refused otherwise (EVALUE); .rules is their union.
 */
enum {
    ROW_NOT_ZERO = 1,     /* p is not 0 */
    ROW_NOT_NEGATIVE = 2, /* p >= 0 */
    ROW_WHOLE = 4,        /* p is an integer; with .most, at most that */
    ROW_ORDERED = 8,      /* p <= q */
    ROW_DIVIDES = 16,     /* integers: the divisor (x if .by_x, else b, or p) is not 0 */
    ROW_EXPONENT = 32,    /* integers: p is not negative, and their dtype holds it */
    ROW_FITS = 64,        /* integers: their dtype holds p and q */
    ROW_ONE_DTYPE = 512,  /* a and b have one dtype (EDTYPE) */
    /* and how parameters meet integers */
    ROW_HELD = 128,     /* beyond the dtype they are its least or largest number; else they wrap */
    ROW_TRUNCATED = 256 /* a fraction is cut off; else it makes the result f32 */
};

/* A dense loop over n elements of one type: out[i] = formula(a[i], b[i], y[i], g[i]); operands that it does
 * not read may be NULL. */
typedef void (*OpRowLoop)(int64_t n, void *out, const void *a, const void *b, const void *y, const void *g,
                          const double *params);

typedef struct OpRowSpecial { /* where p is c another row serves */
    double c;
    int row;
    bool backward; /* in backward too: it reads what this row keeps */
} OpRowSpecial;

typedef struct OpRow {
    int id; /* in ops.def; -1: a row of the user's program */
    OpRowTypes types;
    bool to_bool; /* comparisons and predicates: the result is bool */
    int params;   /* how many doubles */
    const char *param_name[2];
    const char *formula, *gradient[2]; /* their text; NULL: none */
    OpRowLoop f32[3], f64[3];          /* of a user's row: forward, gradient of a, of b */
    double lo, hi;                     /* where gradcheck samples */

    /* What only some rows say, by name at the row's end: OP_UNARY1(..., -2, 2, .rules = ROW_NOT_ZERO).  In
     * rows of yours samples, errors and rules are of use; the rest serves ops.def. */
    unsigned rules;
    double most;                  /* of p, with ROW_WHOLE */
    bool by_x;                    /* x is the divisor, p is divided */
    const char *samples, *errors; /* as TensorOp's; NULL: those that all rows of its kind share */
    const char *torch;       /* as TensorOp's: PyTorch's name where it is another; "-": PyTorch has none */
    double torch_rtol;       /* PyTorch's own values are no better than this in f64 */
    bool scalar;             /* NAME_scalar takes a number: named where operand 2 is missing */
    const char *no_bool;     /* refused even where only one operand is bool; what to take instead */
    const char *spelled;     /* how a derivative's text calls it, where not by its name: "fabs", "<" */
    OpRowSpecial special[4]; /* rows that serve for some p */
    int for_bool;            /* the row that serves for bool */
    int by_one[2];           /* those that have a, or b, as their parameter, to the same bits; 0: none */
    unsigned autocast;       /* its class (autocast.h); 0: AUTOCAST_AS_IS */
} OpRow;

/* forward, backward and shape of every row: the rest of its TensorOp is data. */
TAPEGRAD_API int op_row_shape(OpCall *call);
TAPEGRAD_API int op_row_forward(OpCall *call);
TAPEGRAD_API int op_row_backward(OpCall *call, Tensor *dy, Tensor **dx);

/* ---- rows of your own ------------------------------------------------------------------------
 * Each defines `static const TensorOp name` and ends in a semicolon; after hi may stand fields of OpRow.
 *
 *   name, summary  the op, which errors name, and what it computes, in words
 *   p, q           names of parameters other than x (or a and b), y and g: doubles, each followed by its
 *                  default; params of tensor_apply points to a double[1] or double[2], NULL stands for the
 *                  defaults
 *   y              the formula, of x or of a and b
 *   dx, da, db     the gradients: g times the derivative
 *   keep           what the gradient reads: KEEP_X (or KEEP_A), KEEP_B, KEEP_Y, or KEEP_NONE; of a binary op
 *                  each gradient has its own
 *   lo, hi         where gradcheck samples; avoid kinks and poles */

/* OP_UNARY(name, summary, y, dx, keep, lo, hi) - an op of x. */
#define OP_UNARY(name_, summary_, y_, dx_, keep_, lo_, ...)                                              \
    OP_ROW_PARTS_(name_, y, x, op_b_, op_p_, op_q_, 0, KEEP_X, y_)                                       \
    OP_ROW_PARTS_(name_, a, x, op_b_, op_p_, op_q_, 0, (keep_) | OP_ROW_G_, dx_)                         \
    static const OpRow name_##_row = { OP_ROW_ONE_(name_, #y_, #dx_), OP_ROW_RANGE_(lo_, __VA_ARGS__) }; \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 1), .keep = (keep_) }

/* OP_UNARY1(name, summary, p, default, y, dx, keep, lo, hi) - the same with a parameter. */
#define OP_UNARY1(name_, summary_, p_, pi_, y_, dx_, keep_, lo_, ...)                                  \
    OP_ROW_PARTS_(name_, y, x, op_b_, p_, op_q_, 1, KEEP_X, y_)                                        \
    OP_ROW_PARTS_(name_, a, x, op_b_, p_, op_q_, 1, (keep_) | OP_ROW_G_, dx_)                          \
    static const double name_##_defaults[] = { pi_ };                                                  \
    static const OpField name_##_fields[] = { OP_ROW_FIELD_(#p_, 0), { 0 } };                          \
    static const OpRow name_##_row = { OP_ROW_ONE_(name_, #y_, #dx_), .params = 1,                     \
                                       .param_name = { #p_, NULL }, OP_ROW_RANGE_(lo_, __VA_ARGS__) }; \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 1), OP_ROW_PARAMS_(name_), .keep = (keep_) }

/* OP_UNARY2(name, summary, p, default, q, default, y, dx, keep, lo, hi) - the same with two. */
#define OP_UNARY2(name_, summary_, p_, pi_, q_, qi_, y_, dx_, keep_, lo_, ...)                        \
    OP_ROW_PARTS_(name_, y, x, op_b_, p_, q_, 2, KEEP_X, y_)                                          \
    OP_ROW_PARTS_(name_, a, x, op_b_, p_, q_, 2, (keep_) | OP_ROW_G_, dx_)                            \
    static const double name_##_defaults[] = { pi_, qi_ };                                            \
    static const OpField name_##_fields[] = { OP_ROW_FIELD_(#p_, 0), OP_ROW_FIELD_(#q_, 1), { 0 } };  \
    static const OpRow name_##_row = { OP_ROW_ONE_(name_, #y_, #dx_), .params = 2,                    \
                                       .param_name = { #p_, #q_ }, OP_ROW_RANGE_(lo_, __VA_ARGS__) }; \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 1), OP_ROW_PARAMS_(name_), .keep = (keep_) }

/* OP_BINARY(name, summary, y, da, keep for da, db, keep for db, lo, hi) - an op of a and b, which broadcast.
 */
#define OP_BINARY(name_, summary_, y_, da_, ka_, db_, kb_, lo_, ...)        \
    OP_ROW_PARTS_(name_, y, a, b, op_p_, op_q_, 0, KEEP_A | KEEP_B, y_)     \
    OP_ROW_PARTS_(name_, a, a, b, op_p_, op_q_, 0, (ka_) | OP_ROW_G_, da_)  \
    OP_ROW_PARTS_(name_, b, a, b, op_p_, op_q_, 0, (kb_) | OP_ROW_G_, db_)  \
    static const OpRow name_##_row = { OP_ROW_TWO_(name_, #y_, #da_, #db_), \
                                       OP_ROW_RANGE_(lo_, __VA_ARGS__) };   \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 2), OP_ROW_KEEP_(ka_, kb_) }

/* OP_BINARY1(name, summary, p, default, y, da, keep for da, db, keep for db, lo, hi) - the same with a
 * parameter. */
#define OP_BINARY1(name_, summary_, p_, pi_, y_, da_, ka_, db_, kb_, lo_, ...)                         \
    OP_ROW_PARTS_(name_, y, a, b, p_, op_q_, 1, KEEP_A | KEEP_B, y_)                                   \
    OP_ROW_PARTS_(name_, a, a, b, p_, op_q_, 1, (ka_) | OP_ROW_G_, da_)                                \
    OP_ROW_PARTS_(name_, b, a, b, p_, op_q_, 1, (kb_) | OP_ROW_G_, db_)                                \
    static const double name_##_defaults[] = { pi_ };                                                  \
    static const OpField name_##_fields[] = { OP_ROW_FIELD_(#p_, 0), { 0 } };                          \
    static const OpRow name_##_row = { OP_ROW_TWO_(name_, #y_, #da_, #db_), .params = 1,               \
                                       .param_name = { #p_, NULL }, OP_ROW_RANGE_(lo_, __VA_ARGS__) }; \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 2), OP_ROW_PARAMS_(name_),             \
                                    OP_ROW_KEEP_(ka_, kb_) }

/* op_formula("y", "c * x + fabs(x)", (OpName[]){ { "x", x, 0 }, { "c", NULL, 2 } }, 2)
 *   The value of an expression in the grammar above over tensors and numbers (tensor NULL), made by
 *   recordable ops: what evaluates derivatives.  Both branches of ? : are evaluated, unless the condition is
 *   a number.  The first name is a tensor; a value without any tensor fills one like it.  Errors bear the
 *   name of `function`.  EUSER, quoting the text: it cannot be read; ENULL; and the errors of the ops. */
typedef struct OpName {
    const char *name;
    Tensor *tensor;
    double number;
} OpName;
TAPEGRAD_API Tensor *op_formula(const char *function, const char *text, const OpName *names, int n);

/* ---- many tensors in one call of a device: for who writes optimizers ------------------------ */

/* op_list_rule - a rule over the elements of `count` lists of tensors, in one call of the device they lie on:
 *   x, its gradient and the states become what the rule assigns to them.  item[i * arrays + j] is x for j 0,
 *   the gradient for 1, then the states; all dense, of one floating dtype, on one device.  The numbers are on
 *   the host or, in f64 for f64 and else f32, in number_there, a dense tensor on the device.  skip, a bool of
 *   one element on the device: where it is true nothing changes.  Nothing is recorded.
 *   Returns 1; 0 and does nothing: it is for you to do by loops or ops, because they lie on the CPU, are not
 *   dense or alike, or the device has no kernel for a rule of that name and text; -1: an error.  ready: does
 *   nothing but make sure that the same call, when it comes, returns 1 unless the device fails.
 * op_list_norm - the norm of each tensor, (sum |x|^ord)^(1/ord), as a vector of f64 if they are, else f32;
 *   returns as op_list_rule.
 *   EDEVICE: the device failed.  ENULL, ENOMEM. */
typedef struct OpListRule {
    const char *function; /* what errors name */
    const char *rule, *step;
    int arrays, count, numbers;
    Tensor *const *item;
    const double *number;
    const Tensor *number_there, *skip; /* or NULL */
    bool ready;
} OpListRule;
TAPEGRAD_API int op_list_rule(const OpListRule *call);
TAPEGRAD_API int op_list_norm(const char *function, TensorList self, double ord, Tensor **norms);

/* ---- what the macros above are made of ------------------------------------------------------- */

#define OP_ROW_G_ KEEP_OUTPUT(1) /* the incoming gradient is read */
#define OP_ROW_DEFINE_MAP_(real)                                                                            \
    static inline void op_row_map_##real(int64_t n, void *out, const void *a, const void *b, const void *y, \
                                         const void *g, const double *params, int count, unsigned keep,     \
                                         real (*f)(real, real, real, real, real, real))                     \
    {                                                                                                       \
        const real p = count > 0 ? (real)params[0] : 0, q = count > 1 ? (real)params[1] : 0;                \
        for (int64_t i = 0; i < n; i++)                                                                     \
            ((real *)out)[i] =                                                                              \
                f(keep & KEEP_A ? ((const real *)a)[i] : 0, keep & KEEP_B ? ((const real *)b)[i] : 0,       \
                  keep & KEEP_Y ? ((const real *)y)[i] : 0, keep & OP_ROW_G_ ? ((const real *)g)[i] : 0, p, \
                  q);                                                                                       \
    }
OP_ROW_DEFINE_MAP_(float)
OP_ROW_DEFINE_MAP_(double)

#define OP_ROW_PART_(name, part, real, first, second, p, q, count, keep, expression)                      \
    static real name##_##part##_##real##_formula(real first, real second, real y, real g, real p, real q) \
    {                                                                                                     \
        (void)first, (void)second, (void)y, (void)g, (void)p, (void)q;                                    \
        return (real)(expression);                                                                        \
    }                                                                                                     \
    static void name##_##part##_##real(int64_t n, void *out, const void *a, const void *b, const void *y, \
                                       const void *g, const double *params)                               \
    {                                                                                                     \
        op_row_map_##real(n, out, a, b, y, g, params, count, keep, name##_##part##_##real##_formula);     \
    }
#define OP_ROW_PARTS_(name, part, first, second, p, q, count, keep, expression)   \
    OP_ROW_PART_(name, part, float, first, second, p, q, count, keep, expression) \
    OP_ROW_PART_(name, part, double, first, second, p, q, count, keep, expression)

#define OP_ROW_ONE_(name, y_text, da_text)                                           \
    .id = -1, .types = ROW_FLOATS, .formula = y_text, .gradient = { da_text, NULL }, \
    .f32 = { name##_y_float, name##_a_float, NULL }, .f64 = { name##_y_double, name##_a_double, NULL }
#define OP_ROW_TWO_(name, y_text, da_text, db_text)                                     \
    .id = -1, .types = ROW_FLOATS, .formula = y_text, .gradient = { da_text, db_text }, \
    .f32 = { name##_y_float, name##_a_float, name##_b_float },                          \
    .f64 = { name##_y_double, name##_a_double, name##_b_double }
#define OP_ROW_RANGE_(lo_, ...) .lo = (lo_), .hi = __VA_ARGS__
#define OP_ROW_FIELD_(name_, i)                                                      \
    {                                                                                \
        .name = name_, .type = OP_DOUBLE, .offset = (i) * sizeof(double), .count = 1 \
    }
#define OP_ROW_OP_(name_, summary_, arity_)                                                                 \
    .name = #name_, .summary = summary_, .arity = arity_, .shape = op_row_shape, .forward = op_row_forward, \
    .backward = op_row_backward, .row = &name_##_row
#define OP_ROW_PARAMS_(name_) \
    .params = sizeof name_##_defaults, .fields = name_##_fields, .defaults = name_##_defaults
#define OP_ROW_KEEP_(ka, kb) .keep = (ka) | (kb), .keep_for = { ka, kb }

#ifdef __cplusplus
}
#endif
#endif
