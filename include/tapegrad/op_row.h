/* op_row.h - your own elementwise ops from one line, as ops.def makes the built-in ones.
 *
 *     OP_UNARY(cube, "x^3", x * x * x, g * 3 * x * x, KEEP_X, -2, 2);
 *     OP_UNARY1(scale, "c x", c, 2, c * x, g * c, KEEP_NONE, -2, 2);
 *     ...
 *     Tensor *y = tensor_apply(&cube, (Tensor *[]){ x }, 1, NULL);
 *     tensor_apply_(&scale, (Tensor *[]){ y }, 1, (double[]){ 3 });        // in place, c = 3
 *     assert_op(&cube);                                                   // in a test (cmocka.h)
 *
 * The macro makes loops for f32 and f64 (f16 and bf16 compute in f32 and round once; integers and bool are
 * promoted to f32), the gradient, and gradients of any order, for which the derivative's text is evaluated as
 * an expression over tensors.
 *
 * On a GPU NVRTC, which comes with CUDA, compiles the formula when the row first runs there.  It may use C's
 * functions and constants of math.h and the row's parameters; one with functions or names of your program, or
 * a machine without NVRTC, leaves the row to the host (tensor_host_fallbacks), and stderr tells why, once.
 *
 * In C++ formulas use C++'s overloads, and -Wextra names the members of OpRow that a row leaves out.
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

/* Conditions on operands and parameters p and q, refused otherwise (EVALUE); .rules is their union. */
enum {
    ROW_NOT_ZERO = 1,     /* p is not 0 */
    ROW_NOT_NEGATIVE = 2, /* p >= 0 */
    ROW_WHOLE = 4,        /* p is an integer; with .most, at most that */
    ROW_ORDERED = 8,      /* p <= q */
    ROW_DIVIDES = 16,     /* integers: the divisor (x if .by_x, else b, or p) is not 0 */
    ROW_EXPONENT = 32,    /* integers: p is not negative, and their dtype holds it */
    ROW_FITS = 64,        /* integers: their dtype holds p and q */
    ROW_ONE_DTYPE = 512,  /* a and b have one dtype (EDTYPE) */
/* how parameters are converted to an integer dtype */
    ROW_HELD = 128,     /* out of range: the dtype's smallest or largest value; else they wrap */
    ROW_TRUNCATED = 256 /* fractions are truncated; else a fraction makes the result f32 */
};

/* A dense loop over n elements of one type: out[i] = formula(a[i], b[i], y[i], g[i]); operands that the
 * formula does not read may be NULL. */
typedef void (*OpRowLoop)(int64_t n, void *out, const void *a, const void *b, const void *y, const void *g,
                          const double *params);

typedef struct OpRowSpecial { /* if p is c, another row computes it */
    double c;
    int row;
    bool backward; /* in backward too: that row reads what this one keeps */
} OpRowSpecial;

typedef struct OpRow {
    int id; /* place in ops.def; -1: a row of the program */
    OpRowTypes types;
    bool to_bool; /* comparisons and predicates: the result is bool */
    int params;   /* number of parameters, all double */
    const char *param_name[2];
    const char *formula, *gradient[2]; /* as text; NULL: none */
    const OpRowLoop *f32, *f64;        /* of a program's row: forward, gradient of a, of b */
    double lo, hi;                     /* where gradcheck samples */

    /* Optional fields, by name at the row's end: OP_UNARY1(..., -2, 2, .rules = ROW_NOT_ZERO).  Your rows may
     * use samples, errors and rules; the rest is for ops.def. */
    unsigned rules;
    double most;                  /* of p, with ROW_WHOLE */
    bool by_x;                    /* x is the divisor, p is divided */
    const char *samples, *errors; /* as TensorOp's; NULL: those shared by all rows of its kind */
    const char *torch;       /* as TensorOp's: PyTorch's name, if different; "-": PyTorch has none */
    double torch_rtol;       /* error of PyTorch's own values in f64 */
    bool scalar;             /* NAME_scalar takes a number: the error for a missing operand 2 names it */
    const char *no_bool;     /* refused even if only one operand is bool: text says what to use instead */
    const char *spelled;     /* its name in a derivative's text, if different: "fabs", "<" */
    const OpRowSpecial *special; /* rows that compute it for some p, ended by row 0; NULL: none */
    int for_bool;            /* the row that computes it for bool */
    int by_one[2];           /* rows with a, or b, as their parameter and the same bits; 0: none */
    unsigned autocast;       /* its class (autocast.h); 0: AUTOCAST_AS_IS */
} OpRow;

/* forward, backward and shape of every row; the rest of its TensorOp is data.  On the CPU backward may write
 * a gradient over dy, where nobody else has it: read dy before. */
TAPEGRAD_API int op_row_shape(OpCall *call);
TAPEGRAD_API int op_row_forward(OpCall *call);
TAPEGRAD_API int op_row_backward(OpCall *call, Tensor *dy, Tensor **dx);

/* ---- rows of your own ------------------------------------------------------------------------
 * Each macro defines `static const TensorOp name`; end it with a semicolon.  Fields of OpRow may follow hi.
 *
 *   name, summary  the op's name, also in errors, and what it computes, in words
 *   p, q           names of parameters other than x (or a and b), y and g: doubles, each followed by its
 *                  default; params of tensor_apply points to a double[1] or double[2], NULL stands for the
 *                  defaults
 *   y              the formula, of x or of a and b
 *   dx, da, db     the gradients: g times the derivative
 *   keep           what the gradient reads: KEEP_X (or KEEP_A), KEEP_B, KEEP_Y, or KEEP_NONE; one for each
 *                  gradient of a binary op
 *   lo, hi         range of gradcheck's samples; avoid kinks and poles */

/* OP_UNARY(name, summary, y, dx, keep, lo, hi) - an op of x. */
#define OP_UNARY(name_, summary_, y_, dx_, keep_, lo_, ...)                          \
    OP_ROW_PARTS_(name_, y, x, op_b_, op_p_, op_q_, 0, KEEP_X, y_)                   \
    OP_ROW_PARTS_(name_, a, x, op_b_, op_p_, op_q_, 0, (keep_) | OP_ROW_G_, dx_)     \
    OP_ROW_LOOPS_ONE_(name_)                                                         \
    static const OpRow name_##_row = { OP_ROW_ONE_(name_, 0, NULL, NULL, #y_, #dx_), \
                                       OP_ROW_RANGE_(lo_, __VA_ARGS__) };            \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 1, .keep = (keep_)) }

/* OP_UNARY1(name, summary, p, default, y, dx, keep, lo, hi) - the same with a parameter. */
#define OP_UNARY1(name_, summary_, p_, pi_, y_, dx_, keep_, lo_, ...)               \
    OP_ROW_PARTS_(name_, y, x, op_b_, p_, op_q_, 1, KEEP_X, y_)                     \
    OP_ROW_PARTS_(name_, a, x, op_b_, p_, op_q_, 1, (keep_) | OP_ROW_G_, dx_)       \
    OP_ROW_LOOPS_ONE_(name_)                                                        \
    static const double name_##_defaults[] = { pi_ };                               \
    static const OpField name_##_fields[] = { OP_ROW_FIELD_(#p_, 0), { 0 } };       \
    static const OpRow name_##_row = { OP_ROW_ONE_(name_, 1, #p_, NULL, #y_, #dx_), \
                                       OP_ROW_RANGE_(lo_, __VA_ARGS__) };           \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 1, .keep = (keep_), OP_ROW_PARAMS_(name_)) }

/* OP_UNARY2(name, summary, p, default, q, default, y, dx, keep, lo, hi) - the same with two. */
#define OP_UNARY2(name_, summary_, p_, pi_, q_, qi_, y_, dx_, keep_, lo_, ...)                       \
    OP_ROW_PARTS_(name_, y, x, op_b_, p_, q_, 2, KEEP_X, y_)                                         \
    OP_ROW_PARTS_(name_, a, x, op_b_, p_, q_, 2, (keep_) | OP_ROW_G_, dx_)                           \
    OP_ROW_LOOPS_ONE_(name_)                                                                         \
    static const double name_##_defaults[] = { pi_, qi_ };                                           \
    static const OpField name_##_fields[] = { OP_ROW_FIELD_(#p_, 0), OP_ROW_FIELD_(#q_, 1), { 0 } }; \
    static const OpRow name_##_row = { OP_ROW_ONE_(name_, 2, #p_, #q_, #y_, #dx_),                   \
                                       OP_ROW_RANGE_(lo_, __VA_ARGS__) };                            \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 1, .keep = (keep_), OP_ROW_PARAMS_(name_)) }

/* OP_BINARY(name, summary, y, da, keep for da, db, keep for db, lo, hi) - an op of a and b, which broadcast.
 */
#define OP_BINARY(name_, summary_, y_, da_, ka_, db_, kb_, lo_, ...)                 \
    OP_ROW_PARTS_(name_, y, a, b, op_p_, op_q_, 0, KEEP_A | KEEP_B, y_)              \
    OP_ROW_PARTS_(name_, a, a, b, op_p_, op_q_, 0, (ka_) | OP_ROW_G_, da_)           \
    OP_ROW_PARTS_(name_, b, a, b, op_p_, op_q_, 0, (kb_) | OP_ROW_G_, db_)           \
    OP_ROW_LOOPS_TWO_(name_)                                                         \
    static const OpRow name_##_row = { OP_ROW_TWO_(name_, 0, NULL, #y_, #da_, #db_), \
                                       OP_ROW_RANGE_(lo_, __VA_ARGS__) };            \
    static const TensorOp name_ = { OP_ROW_OP_(name_, summary_, 2, OP_ROW_KEEP_(ka_, kb_)) }

/* OP_BINARY1(name, summary, p, default, y, da, keep for da, db, keep for db, lo, hi) - the same with a
 * parameter. */
#define OP_BINARY1(name_, summary_, p_, pi_, y_, da_, ka_, db_, kb_, lo_, ...)      \
    OP_ROW_PARTS_(name_, y, a, b, p_, op_q_, 1, KEEP_A | KEEP_B, y_)                \
    OP_ROW_PARTS_(name_, a, a, b, p_, op_q_, 1, (ka_) | OP_ROW_G_, da_)             \
    OP_ROW_PARTS_(name_, b, a, b, p_, op_q_, 1, (kb_) | OP_ROW_G_, db_)             \
    OP_ROW_LOOPS_TWO_(name_)                                                        \
    static const double name_##_defaults[] = { pi_ };                               \
    static const OpField name_##_fields[] = { OP_ROW_FIELD_(#p_, 0), { 0 } };       \
    static const OpRow name_##_row = { OP_ROW_TWO_(name_, 1, #p_, #y_, #da_, #db_), \
                                       OP_ROW_RANGE_(lo_, __VA_ARGS__) };           \
    static const TensorOp name_ = {                                                 \
        OP_ROW_OP_(name_, summary_, 2, OP_ROW_KEEP_(ka_, kb_), OP_ROW_PARAMS_(name_)) \
    }

/* op_formula("y", "c * x + fabs(x)", (OpName[]){ { "x", x, 0 }, { "c", NULL, 2 } }, 2)
 *   The value of an expression in the grammar above, over tensors and numbers (tensor NULL), computed by
 *   recordable ops, as derivatives are.  Both branches of ? : are evaluated, unless the condition is a
 *   number.  The first name must be a tensor; a value that depends on no tensor fills one of its shape.
 *   Errors name `function`.  EUSER: the text, which the error quotes, cannot be parsed; ENULL; the errors of
 *   the ops. */
typedef struct OpName {
    const char *name;
    Tensor *tensor;
    double number;
} OpName;
TAPEGRAD_API Tensor *op_formula(const char *function, const char *text, const OpName *names, int n);

/* ---- many tensors in one call of a device, for optimizers ------------------------ */

/* op_list_rule - applies a rule to the elements of `count` lists of tensors, in one call of their device: the
 *   rule assigns x, its gradient and the states.  item[i * arrays + j] is x for j = 0, the gradient for j =
 *   1, then the states; all of one floating dtype, on one device, those of a list in one order of dims and
 *   without gaps; the rule "foreach_copy", x = gradient, takes two dtypes unless there is a skip.  The
 *   numbers are on the host, or in number_there, a dense tensor on the device (f64 for f64 tensors, else
 *   f32).  row: an i64 of one element on the device, which picks one of `rows` rows of OP_LIST_NUMBERS
 *   numbers each, at most OP_LIST_ROWS.
 *   skip: a bool of one element on the device; if true, nothing changes.  Not recorded.
 *   Returns 1; or 0, having done nothing: do it by loops or ops, because the tensors are on the CPU, do not
 *   lie so, or the device has no kernel for a rule of that name and text; or -1: an error.  ready: does
 *   nothing but ensure that the same call later returns 1 unless the device fails.
 * op_list_norm - the norm of each of n tensors, (sum |x|^ord)^(1/ord), as a vector [n], f64 for f64 tensors,
 *   else f32.  The tensors may have any layout and floating dtypes: a call for each dtype, and a copy of each
 *   with gaps; returns as op_list_rule.
 *   EDEVICE: the device failed.  EVALUE: more rows or numbers than these.  ENULL, ENOMEM. */
enum { OP_LIST_NUMBERS = 12, OP_LIST_ROWS = 40 };
typedef struct OpListRule {
    const char *function; /* what errors name */
    const char *rule, *step;
    int arrays, count, numbers;
    Tensor *const *item;
    const double *number;
    const Tensor *number_there, *skip, *row; /* or NULL */
    int rows;                                /* where there is a row; else number is one */
    bool ready;
    bool counts; /* its numbers are others at each step: see op_graph_numbers (graph.h) */
} OpListRule;
TAPEGRAD_API int op_list_rule(const OpListRule *call);
TAPEGRAD_API int op_list_norm(const char *function, TensorList self, double ord, Tensor **norms);

/* ---- internals of the macros above ------------------------------------------------------- */

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

#define OP_ROW_LOOPS_ONE_(name)                                                               \
    static const OpRowLoop name##_loops_f32[] = { name##_y_float, name##_a_float, NULL },     \
                           name##_loops_f64[] = { name##_y_double, name##_a_double, NULL };
#define OP_ROW_LOOPS_TWO_(name)                                                               \
    static const OpRowLoop name##_loops_f32[] = { name##_y_float, name##_a_float, name##_b_float },    \
                           name##_loops_f64[] = { name##_y_double, name##_a_double, name##_b_double };
/* Members in the order of the structs, which C++ wants. */
#define OP_ROW_ONE_(name, count, p, q, y_text, da_text)                                                     \
    .id = -1, .types = ROW_FLOATS, .params = count, .param_name = { p, q }, .formula = y_text,              \
    .gradient = { da_text, NULL }, .f32 = name##_loops_f32, .f64 = name##_loops_f64
#define OP_ROW_TWO_(name, count, p, y_text, da_text, db_text)                                               \
    .id = -1, .types = ROW_FLOATS, .params = count, .param_name = { p, NULL }, .formula = y_text,           \
    .gradient = { da_text, db_text }, .f32 = name##_loops_f32, .f64 = name##_loops_f64
#define OP_ROW_RANGE_(lo_, ...) .lo = (lo_), .hi = __VA_ARGS__
#define OP_ROW_FIELD_(name_, i)                                                      \
    {                                                                                \
        .name = name_, .type = OP_DOUBLE, .offset = (i) * sizeof(double), .count = 1 \
    }
#define OP_ROW_OP_(name_, summary_, arity_, ...)                                                  \
    .name = #name_, .summary = summary_, .arity = arity_, __VA_ARGS__, .shape = op_row_shape,     \
    .forward = op_row_forward, .backward = op_row_backward, .row = &name_##_row
#define OP_ROW_PARAMS_(name_) \
    .params = sizeof name_##_defaults, .fields = name_##_fields, .defaults = name_##_defaults
#define OP_ROW_KEEP_(ka, kb) .keep = (ka) | (kb), .keep_for = { ka, kb }

#ifdef __cplusplus
}
#endif
#endif
