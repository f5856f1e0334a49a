/* autograd.h - gradients: backward, grad modes, hooks, your own ops, gradcheck.
 *
 *     Tensor *w = tensor_requires_grad_(tensor_randn(SHAPE(3), TENSOR_F32), true);
 *     Tensor *loss = tensor_sum(tensor_square(w));
 *     tensor_backward(loss);
 *     tensor_print(tensor_grad(w));                      // 2 w
 *
 * An op on a tensor that requires a gradient is recorded on the thread's tape.  An entry holds the graph
 * edges of its inputs and the storages that its backward reads.  It never keeps a result alive, and is freed
 * when neither a tensor nor a later entry refers to it.  Each thread has its own tape.  Threads may share
 * leaves (parameters): gradients are added to them under a lock.  A non-leaf of one thread's graph is refused
 * by the ops of another thread (EGRAD): detach it first. */
#ifndef TAPEGRAD_AUTOGRAD_H
#define TAPEGRAD_AUTOGRAD_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- leaves and gradients -------------------------------------------------------------------- */

/* tensor_requires_grad_ - sets whether the leaf x requires a gradient; returns x.
 * EDTYPE: not a floating dtype.  EGRAD: x is the result of a recorded op. */
TAPEGRAD_API Tensor *tensor_requires_grad_(Tensor *x, bool requires_grad);
/* tensor_requires_grad - true for a leaf marked so, and for the result of a recorded op. */
TAPEGRAD_API bool tensor_requires_grad(const Tensor *x);
TAPEGRAD_API bool tensor_is_leaf(const Tensor *x);

/* tensor_grad - the accumulated gradient (x's field .grad), or NULL when there is none yet.
 * tensor_set_grad - replaces it; NULL drops it.  ESHAPE, EDTYPE, EDEVICE: grad differs from x.  EVALUE: grad
 * is x itself. */
TAPEGRAD_API Tensor *tensor_grad(const Tensor *x);
TAPEGRAD_API int tensor_set_grad(Tensor *x, Tensor *grad);

/* tensor_set_data - x takes the storage, strides, dtype, device and version of data, and shares the storage
 * from then on (PyTorch's x.data = data).  The handle stays: an optimizer or a module that holds x sees the
 * new values.  Earlier views and detached tensors of x keep the old storage, and are no longer views of x; a
 * view x is none any more.  A graph recorded before keeps the old values; its gradients arrive in the new
 * dtype.  ESHAPE: another shape.  EDTYPE: x requires a gradient and data is not floating.  EGRAD: x is no
 * leaf, or has a .grad of another dtype or device: drop that first (tensor_set_grad(x, NULL)). */
TAPEGRAD_API int tensor_set_data(Tensor *x, Tensor *data);

/* tensor_retain_grad - makes backward fill the .grad of this non-leaf too.  EGRAD: x requires no gradient. */
TAPEGRAD_API int tensor_retain_grad(Tensor *x);

/* tensor_detach - a tensor outside the graph that shares x's storage and version counter. */
TAPEGRAD_API Tensor *tensor_detach(Tensor *x);

/* tensor_detach_ - x itself, taken out of the graph: a leaf that requires no gradient.  EGRAD: x is a view of
 * a tensor on a graph. */
TAPEGRAD_API Tensor *tensor_detach_(Tensor *x);

/* ---- backward -------------------------------------------------------------------------------- */

typedef struct TensorBackwardArgs {
    Tensor *tensor;    /* what to differentiate */
    Tensor *gradient;  /* cotangent, of its shape; NULL: 1, for a tensor of one element */
    bool retain_graph; /* keep saved values for another sweep; implied by create_graph */
    bool create_graph; /* record the sweep itself, so that gradients have gradients */
    TensorList inputs; /* fill only the .grad of these, leaves or not; none: of all leaves */
} TensorBackwardArgs;
#define TENSOR_BACKWARD_DEFAULTS \
    .gradient = NULL, .retain_graph = false, .create_graph = false, .inputs = { 0, NULL }
TAPEGRAD_API extern const TensorBackwardArgs tensor_backward_defaults;

/* tensor_backward(loss), tensor_backward(y, v, .retain_graph = true) - adds d(sum(v y))/d(leaf) to the .grad
 * of every leaf that y depends on, and to that of every tensor with retain_grad.  Only y's ancestors run, and
 * only they are freed.  A failed sweep leaves every .grad as it was.  The first gradient becomes .grad; later
 * ones are added in place (out of place under create_graph).  With create_graph a leaf's .grad refers to the
 * graph, and the graph to the leaf: prefer tensor_gradients.  With .inputs only what leads to them runs.
 * EGRAD: y has no graph; more than one element and no gradient; a value that backward needs was overwritten;
 * the graph was already freed by an earlier sweep; one of inputs requires no gradient. */
#define tensor_backward(...) \
    TENSOR_CALL_(tensor_backward_args, TensorBackwardArgs, TENSOR_BACKWARD_DEFAULTS, .tensor = __VA_ARGS__)
TAPEGRAD_API int tensor_backward_args(TensorBackwardArgs args);

typedef struct TensorBackwardManyArgs {
    TensorList tensors, gradients; /* gradients: none, or one a tensor; NULL: 1 */
    bool retain_graph, create_graph;
    TensorList inputs; /* as in tensor_backward */
} TensorBackwardManyArgs;
#define TENSOR_BACKWARD_MANY_DEFAULTS .retain_graph = false, .create_graph = false, .inputs = { 0, NULL }
TAPEGRAD_API extern const TensorBackwardManyArgs tensor_backward_many_defaults;

/* tensor_backward_many(TENSORS(a, b), TENSORS(NULL, v)) - one sweep from several tensors.  A tensor may
 * appear twice: its contributions add.  EVALUE: no tensors, or not as many cotangents as tensors. */
#define tensor_backward_many(...)                                                                  \
    TENSOR_CALL_(tensor_backward_many_args, TensorBackwardManyArgs, TENSOR_BACKWARD_MANY_DEFAULTS, \
                 .tensors = __VA_ARGS__)
TAPEGRAD_API int tensor_backward_many_args(TensorBackwardManyArgs args);

typedef struct TensorGradientsArgs {
    Tensor *output, *input;
    Tensor *grad_output; /* cotangent of output; NULL: 1, for one element */
    bool retain_graph, create_graph;
    bool allow_unused;      /* an input that output does not depend on gives NULL instead of EGRAD */
    bool materialize_grads; /* ... or zeros */
} TensorGradientsArgs;
#define TENSOR_GRADIENTS_DEFAULTS \
    .retain_graph = false, .create_graph = false, .allow_unused = false, .materialize_grads = false
TAPEGRAD_API extern const TensorGradientsArgs tensor_gradients_defaults;

/* tensor_gradients(y, x, .create_graph = true) - torch.autograd.grad for one output and one input:
 * d(sum(v y))/dx.  No .grad is touched; only entries on a path from output to input run. */
#define tensor_gradients(...) \
    TENSOR_CALL_(tensor_gradients_args, TensorGradientsArgs, TENSOR_GRADIENTS_DEFAULTS, .output = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_gradients_args(TensorGradientsArgs args);

typedef struct TensorGradientsManyArgs {
    TensorList outputs, inputs;
    Tensor **grads;          /* receives one gradient an input */
    TensorList grad_outputs; /* none, or one an output; NULL: 1 */
    bool retain_graph, create_graph, allow_unused, materialize_grads;
} TensorGradientsManyArgs;
#define TENSOR_GRADIENTS_MANY_DEFAULTS TENSOR_GRADIENTS_DEFAULTS
TAPEGRAD_API extern const TensorGradientsManyArgs tensor_gradients_many_defaults;

/* tensor_gradients_many(TENSORS(y, z), TENSORS(a, b), grads, .create_graph = true) - the same for several
 * outputs and inputs; the gradients go to grads, owned by the open scope.  EVALUE: no outputs or inputs, or
 * not as many cotangents as outputs. */
#define tensor_gradients_many(...)                                                                    \
    TENSOR_CALL_(tensor_gradients_many_args, TensorGradientsManyArgs, TENSOR_GRADIENTS_MANY_DEFAULTS, \
                 .outputs = __VA_ARGS__)
TAPEGRAD_API int tensor_gradients_many_args(TensorGradientsManyArgs args);

/* ---- grad modes: per thread, nested -------------------------------------------------------------
 *     bool before = tensor_set_grad_enabled(false);  ...  tensor_set_grad_enabled(before);
 *     TENSOR_NO_GRAD { ... }     // restored however the block is left; break leaves only the block */
TAPEGRAD_API bool tensor_set_grad_enabled(bool on); /* returns what it was */
TAPEGRAD_API bool tensor_grad_enabled(void);
static inline void tensor_restore_grad_(const bool *was) { tensor_set_grad_enabled(*was); }
#define TENSOR_GRAD_BLOCK_(on, was, go)                                                                 \
    for (bool was __attribute__((unused, cleanup(tensor_restore_grad_))) = tensor_set_grad_enabled(on), \
                                         go = true;                                                     \
         go; go = false)
#define TENSOR_PASTE_(a, b) a##b
#define TENSOR_GRAD_NAMED_(on, n) \
    TENSOR_GRAD_BLOCK_(on, TENSOR_PASTE_(tensor_was_, n), TENSOR_PASTE_(tensor_go_, n))
#define TENSOR_NO_GRAD TENSOR_GRAD_NAMED_(false, __COUNTER__)
#define TENSOR_ENABLE_GRAD TENSOR_GRAD_NAMED_(true, __COUNTER__)

/* ---- hooks --------------------------------------------------------------------------------------
 * tensor_register_hook - fn(grad, ctx) runs in every backward once x's gradient is complete, before anything
 *     uses it.  Its result replaces the gradient (NULL: no change).  Hooks run in order of registration, each
 *     on the result of the one before; then a retained .grad is filled, then the entry runs.  On a leaf,
 *     hooks run before the gradient is added to .grad.  A hook belongs to the value it was registered for:
 *     one registered before an in-place op sees the old value's gradient.
 * tensor_register_post_accumulate_grad_hook - fn(x, ctx) runs after x's .grad was filled; leaves only
 *     (EGRAD).
 * Both return an id for tensor_remove_hook, or -1. */
TAPEGRAD_API int tensor_register_hook(Tensor *x, Tensor *(*fn)(Tensor *grad, void *ctx), void *ctx);
TAPEGRAD_API int tensor_register_post_accumulate_grad_hook(Tensor *x, void (*fn)(Tensor *x, void *ctx),
                                                           void *ctx);
TAPEGRAD_API int tensor_remove_hook(Tensor *x, int id);

/* tensor_queue_callback - for hooks and the backward functions of ops: fn(ctx) runs once, when the innermost
 * sweep of this thread ends, with all gradients in place or with an error.  Callbacks run in the order they
 * were queued.  Use it to free what your code carries from one entry to another.  (PyTorch's engine has the
 * same name, but does not call after an error.)  EGRAD: no sweep is running. */
TAPEGRAD_API int tensor_queue_callback(void (*fn)(void *ctx), void *ctx);

/* tensor_tape_length - the number of live entries on this thread's tape.
 * tensor_tape_bytes - the bytes they hold: the entries themselves, and each storage they saved, once.  -1 and
 *     ENOMEM if there is no memory to count in. */
TAPEGRAD_API int64_t tensor_tape_length(void);
TAPEGRAD_API int64_t tensor_tape_bytes(void);

/* ---- ops ----------------------------------------------------------------------------------------
 * An op, built in or yours, is one constant TensorOp.  tensor_apply runs it:
 *
 *   1. A NULL input gives a NULL result; devices must agree.
 *   2. shape(call) checks the operands and declares each result with op_set_output.
 *   3. forward(call) computes, with grad mode off; or compose(call) makes the results from other ops, whose
 *      gradients then serve.
 *   4. If an input requires a gradient, an entry is recorded that keeps what .keep names.
 *   5. In a sweep, backward(call, dy, dx) sets dx[i], the gradient of input i, for each i that op_wants.  Its
 *      shape is the input's or the broadcast one: the tape sums it to the input's shape.
 *
 * An op in plain C, with arrays forward and backward:
 *
 *     static int cube_forward(OpCall *c)
 *     {
 *         const double *x = op_input_f64(c, 0);
 *         double *y = op_output_f64(c, 0);
 *         for (int64_t i = 0; i < op_count(c, 0); i++) y[i] = x[i] * x[i] * x[i];
 *         return 0;
 *     }
 *     static int cube_backward(OpCall *c, Tensor *dy, Tensor **dx)
 *     {
 *         const double *x = op_saved_f64(c, 0), *g = op_grad_f64(c, 0);
 *         double *out = op_gradient_f64(c, 0);
 *         for (int64_t i = 0; i < op_count(c, 0); i++) out[i] = g[i] * 3 * x[i] * x[i];
 *         return (void)dy, (void)dx, 0;
 *     }
 *     static const TensorOp cube = { .name = "cube", .arity = 1, .keep = KEEP_INPUT(0),
 *                                    .flags = OP_FIRST_ORDER, .samples = "3x4; 5; 0x2",
 *                                    .shape = op_same_shape, .forward = cube_forward,
 *                                    .backward = cube_backward };
 *
 * Gradients of gradients: a backward made of tensor_ ops works to any order.  One that works on arrays is not
 * recorded: a sweep with create_graph fails there (EGRAD).  A backward may do both: call tensor_ ops where
 * op_recording(call) is true, and work on arrays elsewhere.  tensor_check_op proves an op from its samples;
 * op_row.h makes an op from a formula. */

typedef struct OpCall OpCall;

#define KEEP_INPUT(i) (1u << (i))
#define KEEP_OUTPUT(i) (1u << (16 + (i)))

/* A parameter of an op: its place in the params struct, so that it can be printed, saved, and parsed from
 * samples. */
typedef enum OpFieldType {
    OP_DOUBLE,
    OP_INT, /* int, TensorDtype, any enum */
    OP_I64,
    OP_BOOL,
    OP_LIST,  /* TensorShape */
    OP_STRING /* const char * */
} OpFieldType;

typedef struct OpField {
    const char *name;
    OpFieldType type;
    size_t offset;
    int count;                  /* members of an array; 1 for one value */
    bool required;              /* has no default */
    const char *const *choices; /* names of an enum's values from 0 on, ended by NULL */
} OpField;

/* OP_OPTION(TensorSoftplusArgs, beta, threshold) - the fields of up to 20 options: names, types and offsets
 *     come from the struct, default values from the op's .defaults.
 * OP_REQUIRED - options without a default.
 * OP_CHOICE - an enum, with the names of its values: { "mean", "sum", NULL }. */
#define OP_OPTION(struct_, ...) OP_EACH_(OP_OPTIONAL_, struct_, __VA_ARGS__)
#define OP_REQUIRED(struct_, ...) OP_EACH_(OP_REQUIRED_, struct_, __VA_ARGS__)
#define OP_OPTIONAL_(struct_, member) \
    {                                 \
        OP_OPTION_(struct_, member)   \
    }
#define OP_REQUIRED_(struct_, member)                 \
    {                                                 \
        OP_OPTION_(struct_, member), .required = true \
    }
#define OP_CHOICE(struct_, member, choices_)               \
    {                                                      \
        OP_OPTION_(struct_, member), .choices = (choices_) \
    }
/* OP_DTYPE: a TensorDtype; the default TENSOR_DTYPES is "that of the input" ("same" in samples). */
#define OP_DTYPE(struct_, member) OP_CHOICE(struct_, member, op_dtype_choices)
TAPEGRAD_API extern const char *const op_dtype_choices[];
#define OP_OPTION_(struct_, member)                                                                        \
    .name = #member, .type = OP_OPTION_TYPE_(((struct_ *)0)->member), .offset = offsetof(struct_, member), \
    .count = OP_OPTION_COUNT_(((struct_ *)0)->member)
#define OP_OPTION_TYPE_(x) \
    _Generic((x), double : OP_DOUBLE, double * : OP_DOUBLE, int64_t : OP_I64, int64_t * : OP_I64,          \
             bool : OP_BOOL, TensorShape : OP_LIST, const char * : OP_STRING, default : OP_INT)
#define OP_OPTION_COUNT_(x) \
    (int)_Generic((x), double * : sizeof(x) / (sizeof(double)), int64_t * : sizeof(x) / (sizeof(int64_t)), \
                  int * : sizeof(x) / (sizeof(int)), default : 1)

/* OP_EACH_(X, s, a, b, ...): X(s, a), X(s, b), ... */
#define OP_EACH_(X, s, ...)                                                                            \
    OP_EACH_PICK_(__VA_ARGS__, OP_EACH20_, OP_EACH19_, OP_EACH18_, OP_EACH17_, OP_EACH16_, OP_EACH15_, \
                  OP_EACH14_, OP_EACH13_, OP_EACH12_, OP_EACH11_, OP_EACH10_, OP_EACH9_, OP_EACH8_,    \
                  OP_EACH7_, OP_EACH6_, OP_EACH5_, OP_EACH4_, OP_EACH3_, OP_EACH2_, OP_EACH1_, 0)      \
    (X, s, __VA_ARGS__)
#define OP_EACH_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, name, ...) name
#define OP_EACH1_(X, s, a) X(s, a)
#define OP_EACH2_(X, s, a, ...) X(s, a), OP_EACH1_(X, s, __VA_ARGS__)
#define OP_EACH3_(X, s, a, ...) X(s, a), OP_EACH2_(X, s, __VA_ARGS__)
#define OP_EACH4_(X, s, a, ...) X(s, a), OP_EACH3_(X, s, __VA_ARGS__)
#define OP_EACH5_(X, s, a, ...) X(s, a), OP_EACH4_(X, s, __VA_ARGS__)
#define OP_EACH6_(X, s, a, ...) X(s, a), OP_EACH5_(X, s, __VA_ARGS__)
#define OP_EACH7_(X, s, a, ...) X(s, a), OP_EACH6_(X, s, __VA_ARGS__)
#define OP_EACH8_(X, s, a, ...) X(s, a), OP_EACH7_(X, s, __VA_ARGS__)
#define OP_EACH9_(X, s, a, ...) X(s, a), OP_EACH8_(X, s, __VA_ARGS__)
#define OP_EACH10_(X, s, a, ...) X(s, a), OP_EACH9_(X, s, __VA_ARGS__)
#define OP_EACH11_(X, s, a, ...) X(s, a), OP_EACH10_(X, s, __VA_ARGS__)
#define OP_EACH12_(X, s, a, ...) X(s, a), OP_EACH11_(X, s, __VA_ARGS__)
#define OP_EACH13_(X, s, a, ...) X(s, a), OP_EACH12_(X, s, __VA_ARGS__)
#define OP_EACH14_(X, s, a, ...) X(s, a), OP_EACH13_(X, s, __VA_ARGS__)
#define OP_EACH15_(X, s, a, ...) X(s, a), OP_EACH14_(X, s, __VA_ARGS__)
#define OP_EACH16_(X, s, a, ...) X(s, a), OP_EACH15_(X, s, __VA_ARGS__)
#define OP_EACH17_(X, s, a, ...) X(s, a), OP_EACH16_(X, s, __VA_ARGS__)
#define OP_EACH18_(X, s, a, ...) X(s, a), OP_EACH17_(X, s, __VA_ARGS__)
#define OP_EACH19_(X, s, a, ...) X(s, a), OP_EACH18_(X, s, __VA_ARGS__)
#define OP_EACH20_(X, s, a, ...) X(s, a), OP_EACH19_(X, s, __VA_ARGS__)

enum { OP_MAX_INPUTS = 64, OP_ANY_ARITY = -1 };

typedef struct TensorOp {
    const char *name, *summary;
    const char *gradient; /* formula of each input's gradient, for docs/ops.md: "da = g b^T, db = a^T g"; rows
                             have their own */
    int arity;            /* tensor inputs; OP_ANY_ARITY: one or more */
    int outputs;          /* results; 0 means 1; OP_ANY_ARITY: shape decides, by op_set_output */
    unsigned optional;    /* KEEP_INPUT bits of inputs that may be NULL */
    unsigned keep;        /* what backward reads, of inputs and results */
    unsigned keep_for[4]; /* optional: what the gradient of input i reads, so that inputs without a gradient
                           * keep less; keep is then the union, and may be left out */
    unsigned no_grad_inputs; /* KEEP_INPUT bits of inputs that never have gradients (indices, masks) */
    unsigned autocast;       /* AUTOCAST_ class below; 0 is AUTOCAST_AS_IS, which a built-in op must say */
    size_t params; /* bytes of the parameter struct: the options struct of the op's function, or its own */
    const OpField *fields; /* its options, ended by a NULL name; other members are not copied */
    const void *defaults;  /* a parameter struct that holds the defaults; NULL: zeros */
    size_t cast_option;    /* offsetof an option `dtype` (OP_DTYPE): the inputs are cast to it first, on the
                             graph */
    int (*shape)(OpCall *call);
    int (*forward)(OpCall *call);
    int (*backward)(OpCall *call, Tensor *dy, Tensor **dx);
    int (*compose)(OpCall *call); /* instead of forward and backward: calls op_set_result(call, k, tensor) */
    const struct OpRow *row;      /* of an elementwise op: its formulas (op_row.h) */
    unsigned flags;               /* OP_ flags below */
    int variant; /* for ops that share functions: which of them this is (its rank, its kind) */

    /* For the generated tests.  samples: "3x4,4x2; 1x5,5x1 {dim=1}": commas separate input shapes, semicolons
     * samples.  "" is rank 0; @ precedes a dtype ("3x4@i64"), : a range of values ("5@i64:0..3", "3:0.5..2");
     * "-" is an absent input; {name=value ...} are the parameters, with lists in brackets: {dims=[0 2]}.
     * errors: samples that must be refused, each followed by its code: "3x4,5x6 ! ESHAPE". */
    const char *samples, *errors;
    double lo, hi;     /* range of sample values where no sample names one; 0, 0 means -1, 1 */
    const char *torch; /* its name in PyTorch, unless torch.<name> */
} TensorOp;

enum {
    OP_NONDIFFERENTIABLE = 1, /* results never require a gradient */
    OP_VIEW = 2,              /* results share the input's storage: forward calls op_set_result */
    OP_RANDOM = 4,            /* draws random numbers: gradcheck seeds the generator before every call */
    OP_ANY_DEVICE = 8,        /* forward and backward call the device's kernels; without it: CPU only */
    OP_FLOAT_INPUTS = 16,     /* integer inputs are refused (EDTYPE) before shape is called */
    OP_SAME_DTYPE = 32,       /* floating inputs are promoted to a common dtype first */
    OP_ONE_DTYPE = 256,       /* inputs must have one dtype: EDTYPE names the two that differ */
    OP_ROUND_ONCE = 128,      /* f16 and bf16 operands are cast to f32 first and results back: one rounding,
                                 in forward and in backward */
    OP_OF_PRODUCTS = 4096,    /* a device whose products read halves computes in halves, also where the CPU
                                 rounds once: what is made on the way is rounded too, as in PyTorch */
    OP_FIRST_ORDER = 512,     /* backward works on arrays only: its gradient has no gradient */
    OP_READS_HALVES = 2048,   /* of class AUTOCAST_F32: its first operand may stay f16 or bf16; y is f32 */
    OP_MAY_ALIAS = 1024,      /* a result may be an input or share its storage, as PyTorch's may */
    OP_NO_GRADCHECK = 64      /* its gradient is not the numerical one by definition; summary says why */
};

/* An op's autocast class (autocast.h): AUTOCAST_CPU_CUDA(AS_IS, F32) gives one for the CPU and one for other
 * devices; a name without a device is the class for all. */
enum {
    AUTOCAST_LOWER = 0x11,
    AUTOCAST_F32 = 0x22,
    AUTOCAST_PROMOTE = 0x33,
    AUTOCAST_AS_IS = 0x44,
    AUTOCAST_PARTS = 0x55
};
#define AUTOCAST_CPU_CUDA(cpu, cuda) ((AUTOCAST_##cpu & 0x0f) | (AUTOCAST_##cuda & 0xf0))
enum {
    AUTOCAST_CPU_F32 = AUTOCAST_CPU_CUDA(F32, AS_IS),
    AUTOCAST_CUDA_F32 = AUTOCAST_CPU_CUDA(AS_IS, F32),
    AUTOCAST_CUDA_LOWER = AUTOCAST_CPU_CUDA(AS_IS, LOWER),
    AUTOCAST_CUDA_PROMOTE = AUTOCAST_CPU_CUDA(AS_IS, PROMOTE)
};

/* tensor_apply - runs op on n inputs; params points to op->params bytes (NULL: the fields' defaults); returns
 *     result 0.
 * tensor_apply_all - puts every result into outputs[0..count); returns their number, or -1. */
TAPEGRAD_API Tensor *tensor_apply(const TensorOp *op, Tensor *const *inputs, int n, const void *params);
TAPEGRAD_API int tensor_apply_all(const TensorOp *op, Tensor *const *inputs, int n, const void *params,
                                  Tensor **outputs, int count);

/* tensor_apply_ - runs op in place: writes result 0 into inputs[0], and returns inputs[0].  ESHAPE, EDTYPE:
 * result 0 has another shape or dtype than inputs[0].  EGRAD: inputs[0] is a leaf that requires a gradient,
 * and grad mode is on.  EVALUE: elements of inputs[0] share memory (an expanded view); op returns views. */
TAPEGRAD_API Tensor *tensor_apply_(const TensorOp *op, Tensor *const *inputs, int n, const void *params);

/* tensor_apply_text - runs a built-in op by its name, with options as text: tensor_apply_text("sum", &x, 1,
 * "dim=1 keepdim=true").  Options are the members of the op's struct, by name, separated by spaces; others
 * keep their defaults; NULL means "".  Numbers are written as in C, booleans true and false, lists [0 2],
 * enums by name (reduction=sum) or number.  Optional inputs at the end may be left out.  EVALUE: an unknown
 * op; an option that is unknown, of another type, given twice, or required and missing.
 * tensor_apply_text_all - gives every result, as tensor_apply_all. */
TAPEGRAD_API Tensor *tensor_apply_text(const char *name, Tensor *const *inputs, int n, const char *options);
TAPEGRAD_API int tensor_apply_text_all(const char *name, Tensor *const *inputs, int n, const char *options,
                                       Tensor **outputs, int count);

/* Functions of a call, for shape, forward, compose and backward. */
TAPEGRAD_API int op_inputs(const OpCall *call);            /* how many */
TAPEGRAD_API Tensor *op_input(const OpCall *call, int i);  /* shape, forward, compose; NULL if absent */
TAPEGRAD_API Tensor *op_output(const OpCall *call, int i); /* forward */
TAPEGRAD_API const void *op_params(const OpCall *call);
TAPEGRAD_API void *op_params_mut(OpCall *call); /* shape and forward may change them, for backward too */

/* op_set_list - in shape or forward: sets a list of the parameters (a TensorShape in op_params_mut) to a copy
 * of n values.  EVALUE: more than 4 lists in a call, or more than 16 values. */
TAPEGRAD_API int op_set_list(OpCall *call, TensorShape *list, int n, const int64_t *values);
TAPEGRAD_API int op_set_output(OpCall *call, int i, TensorShape shape, TensorDtype dtype);
TAPEGRAD_API int op_set_result(OpCall *call, int i, Tensor *result); /* for views and compose */
TAPEGRAD_API int op_same_shape(OpCall *call); /* a shape rule: result 0 is like input 0 */
TAPEGRAD_API int op_fail(OpCall *call, TensorStatus code, const char *format, ...)
    TAPEGRAD_PRINTF(3, 4); /* returns -1 */

/* Plain arrays, in forward: inputs and results as dense row-major double or float, whatever the tensors'
 * dtypes and strides.  Inputs are converted where necessary; results are converted to their dtypes after
 * forward returns.  op_count is the number of elements of input i, op_output_count of result i, also in
 * backward; both are 0 once the call has failed, so that no loop touches a NULL array. */
TAPEGRAD_API const double *op_input_f64(OpCall *call, int i);
TAPEGRAD_API const float *op_input_f32(OpCall *call, int i);
TAPEGRAD_API double *op_output_f64(OpCall *call, int i);
TAPEGRAD_API float *op_output_f32(OpCall *call, int i);
TAPEGRAD_API int64_t op_count(const OpCall *call, int i);
TAPEGRAD_API int64_t op_output_count(const OpCall *call, int i);

/* op_save - in forward: keeps another tensor for backward, where op_saved_extra(call, k) is the k-th saved;
 * at most 8.  NULL, the result of a failed op, fails the call. */
TAPEGRAD_API int op_save(OpCall *call, Tensor *x);

/* op_commit - in forward and compose: copies `from` into `to`, of the same shape, outside the graph, after
 * the call succeeded: for state that an op updates, such as running statistics.  At most 4 a call. */
TAPEGRAD_API int op_commit(OpCall *call, Tensor *to, Tensor *from);

/* In backward only.  In a recorded sweep f16 and bf16 values arrive as f32, and dx may be f32: the sweep
 * rounds once. */
TAPEGRAD_API Tensor *op_saved(OpCall *call, int i);        /* input i, if .keep names it */
TAPEGRAD_API Tensor *op_saved_output(OpCall *call, int i); /* result i, if .keep names it */
TAPEGRAD_API Tensor *op_saved_extra(OpCall *call, int k);
TAPEGRAD_API Tensor *op_grad(OpCall *call, int k);        /* cotangent of result k; zeros if none arrived */
TAPEGRAD_API bool op_has_grad(const OpCall *call, int k); /* false: no gradient of result k arrived */
TAPEGRAD_API bool op_wants(const OpCall *call, int i);    /* is the gradient of input i wanted? */
TAPEGRAD_API bool op_recording(const OpCall *call);       /* is this sweep being recorded (create_graph)? */
TAPEGRAD_API TensorShape op_input_shape(const OpCall *call,
                                        int i); /* this and the next two: in shape and forward too */
TAPEGRAD_API TensorDtype op_input_dtype(const OpCall *call, int i);
TAPEGRAD_API TensorShape op_output_shape(const OpCall *call, int i);

/* Plain arrays, in backward: saved inputs, results and extras, and the cotangent of result k (zeros if none
 * arrived).  op_gradient is for writing: the gradient of input i, of the input's shape, zeros at first,
 * converted to its dtype after backward returns; NULL where op_wants(call, i) is false.  EGRAD: the sweep is
 * recorded (create_graph).  EDEVICE: a tensor is not on the CPU. */
TAPEGRAD_API const double *op_saved_f64(OpCall *call, int i);
TAPEGRAD_API const double *op_saved_output_f64(OpCall *call, int i);
TAPEGRAD_API const double *op_saved_extra_f64(OpCall *call, int k);
TAPEGRAD_API const double *op_grad_f64(OpCall *call, int k);
TAPEGRAD_API double *op_gradient_f64(OpCall *call, int i);
TAPEGRAD_API const float *op_saved_f32(OpCall *call, int i);
TAPEGRAD_API const float *op_saved_output_f32(OpCall *call, int i);
TAPEGRAD_API const float *op_saved_extra_f32(OpCall *call, int k);
TAPEGRAD_API const float *op_grad_f32(OpCall *call, int k);
TAPEGRAD_API float *op_gradient_f32(OpCall *call, int i);

/* The built-in ops, in no particular order; find returns NULL (and records no error) for an unknown name.  In
 * a program linked with the static library, only the ops that it uses. */
TAPEGRAD_API int tensor_op_count(void);
TAPEGRAD_API const TensorOp *tensor_op_at(int i);
TAPEGRAD_API const TensorOp *tensor_op_find(const char *name);

/* ---- gradcheck ----------------------------------------------------------------------------------
 * Compares the Jacobian from backward with central differences
 *   dy_j/dx_i ~ (y_j(x + eps e_i) - y_j(x - eps e_i)) / (2 eps)
 * element by element: |analytic - numeric| <= atol + rtol |numeric|, as torch.autograd.gradcheck.  Also
 * checks that backward run twice gives the same bits, zero cotangents give exact zeros, each gradient has its
 * input's shape and dtype, and random N(0,1) cotangents agree with the Jacobian.  Inputs of more than
 * max_elements elements are checked along random directions instead.  Inputs must be f64 (EDTYPE otherwise:
 * finite differences in f32 are noise) and not overlap. */
typedef struct GradcheckElement { /* an input element whose gradient is wrong: its worst entry of the Jacobian
                                   */
    int input, output;
    int64_t input_index, output_index; /* row-major */
    char input_at[64], output_at[64];  /* the same as text: "[1, 2]" */
    double analytic, numeric;
} GradcheckElement;

enum { GRADCHECK_REPORTED = 32 };

typedef struct GradcheckReport {
    bool ok;
    const char *name;
    char what[256];           /* the first fault, in words; "" when ok */
    int64_t checked, wrong;   /* input elements (random directions, for big inputs) */
    double atol, rtol, worst; /* worst: largest |analytic - numeric| / (atol + rtol |numeric|) */
    int count;                /* of element[]: the first wrong ones */
    GradcheckElement element[GRADCHECK_REPORTED];
} GradcheckReport;

typedef Tensor *(*TensorFunction)(Tensor **inputs, int n, void *ctx);

typedef struct GradcheckArgs {
    const TensorOp *op; /* what to check: this op ... */
    TensorList inputs;
    const void *params;
    TensorFunction fn; /* ... or this function of the inputs */
    void *ctx;
    double eps, atol, rtol; /* eps above 0, the others 0 or more */
    int64_t max_elements;
    uint64_t seed;           /* of the random directions */
    bool second;             /* check the gradient's gradient (gradgradcheck) */
    GradcheckReport *report; /* filled when not NULL */
    TensorFromDefaults from_defaults;
} GradcheckArgs;
#define TENSOR_GRADCHECK_DEFAULTS \
    .eps = 1e-6, .atol = 1e-5, .rtol = 1e-3, .max_elements = 2000, .seed = 1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const GradcheckArgs tensor_gradcheck_defaults;

/* tensor_gradcheck(&op, x, y) - 0 if the gradients of op at these inputs are right; else -1, and an error
 * that names the element.  Checks the inputs that require a gradient, or all floating ones if none does.
 * tensor_gradgradcheck - the same for the gradient's gradient.
 * tensor_gradcheck_with(.fn = loss, .inputs = TENSORS(x, y), .atol = 1e-4) - with options, a report, or a
 *     function. */
#define tensor_gradcheck_with(...) \
    TENSOR_CALL_(tensor_gradcheck_args, GradcheckArgs, TENSOR_GRADCHECK_DEFAULTS, __VA_ARGS__)
#define tensor_gradcheck(op_, ...) tensor_gradcheck_with(.op = (op_), .inputs = TENSORS(__VA_ARGS__))
#define tensor_gradgradcheck(op_, ...) \
    tensor_gradcheck_with(.op = (op_), .inputs = TENSORS(__VA_ARGS__), .second = true)
TAPEGRAD_API int tensor_gradcheck_args(GradcheckArgs args);

/* tensor_check_op - runs on any op, at the samples of its descriptor, the tests that every built-in op
 * passes:
 *
 *   OP_CHECK_FORWARD    Samples run; f32, f16 and bf16 are close to f64; the same bits again, on 1 and 2
 *                       threads; NULL and the error samples are refused with their code; nothing changes or
 *                       stays behind; no result shares an input's memory (unless OP_VIEW or OP_MAY_ALIAS);
 *                       the in-place form gives the same values.
 *   OP_CHECK_GRADIENT   gradcheck and gradgradcheck, the third order at small samples; recorded and fused
 *                       gradients agree; each gradient wanted alone; one tensor as two inputs.
 *   OP_CHECK_HALVES     f16 and bf16 results are those of f32 or f64, rounded once.
 *   OP_CHECK_LAYOUT     The same bits for strided, transposed, offset and expanded inputs and cotangents.
 *   OP_CHECK_MEMORY     Each allocation fails in turn: ENOMEM, nothing changed or left behind; in place too
 *                       (slow).
 *
 * parts: their union; 0 means all but OP_CHECK_MEMORY.  Returns 0 if the op passes; else -1 and EVALUE with
 * the first complaint.  The report, if not NULL, has a line for each of the first 8 complaints: the op, the
 * sample, the fault. */
enum {
    OP_CHECK_FORWARD = 1,
    OP_CHECK_GRADIENT = 2,
    OP_CHECK_HALVES = 4,
    OP_CHECK_LAYOUT = 8,
    OP_CHECK_MEMORY = 16
};

typedef struct OpReport {
    bool ok;
    const char *name;
    int wrong;       /* complaints */
    char text[8192]; /* of the first ones */
} OpReport;

TAPEGRAD_API int tensor_check_op(const TensorOp *op, unsigned parts, OpReport *report);

/* tensor_gradcheck_print - prints the report as a table, one line an element. */
TAPEGRAD_API void tensor_gradcheck_print(FILE *file, const GradcheckReport *report);

#ifdef __cplusplus
}
#endif
#endif
