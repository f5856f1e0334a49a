/* tensor.h - tensors: make, inspect, copy, print; scopes; errors.
 *
 * A Tensor is a handle on a strided array: dtype, device, shape, strides, and a reference to a storage, which
 * views share.  Shapes are written SHAPE(2, 3); SHAPE() is a scalar; dimensions of size zero are ordinary.
 *
 *     TensorScope scope = tensor_scope_open();
 *     Tensor *x = tensor_randn(SHAPE(2, 3), TENSOR_F32);
 *     Tensor *y = tensor_matmul(x, tensor_transpose(x, 0, 1));
 *     tensor_print(y);
 *     if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
 *     tensor_scope_close(scope);
 *
 * Ownership: a function that returns a Tensor returns one owned by the innermost open scope; retain it to
 * keep it longer, and release only what you retained.
 *
 * Errors: a failing call returns NULL (or -1, or NaN), changes nothing, and records its cause; each thread
 * keeps its first.  A NULL operand gives a NULL result, so one check of tensor_error() serves a whole
 * chain. */
#ifndef TAPEGRAD_TENSOR_H
#define TAPEGRAD_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__clang__) /* tensor_add(x, 2): a number is no Tensor, tensor_add_scalar takes it */
#pragma clang diagnostic error "-Wint-conversion"
#elif defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic error "-Wint-conversion"
#endif

#if defined(__GNUC__)
#define TAPEGRAD_API __attribute__((visibility("default")))
#define TAPEGRAD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TAPEGRAD_API
#define TAPEGRAD_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TAPEGRAD_VERSION_MAJOR 0
#define TAPEGRAD_VERSION_MINOR 1
#define TAPEGRAD_VERSION_PATCH 0
#define TAPEGRAD_VERSION "0.1.0"

typedef struct Tensor Tensor;

enum { TENSOR_MAX_DIMS = 16 };

/* ---- dtypes -------------------------------------------------------------------------------------
 * f16 and bf16 store narrow and compute in f32, rounding to nearest even once.  bool is one byte, 0 or 1. */
typedef enum TensorDtype {
    TENSOR_F32,
    TENSOR_F64,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_I64,
    TENSOR_I32,
    TENSOR_U8,
    TENSOR_BOOL,
    TENSOR_DTYPES
} TensorDtype;

TAPEGRAD_API const char *tensor_dtype_name(TensorDtype dtype); /* "f32"; "?" for no dtype */
TAPEGRAD_API size_t tensor_dtype_size(TensorDtype dtype);      /* bytes an element; 0 for no dtype */
TAPEGRAD_API bool tensor_dtype_is_float(TensorDtype dtype);

/* tensor_promote_types - dtype of the result of an op on dtypes a and b (torch.promote_types). */
TAPEGRAD_API TensorDtype tensor_promote_types(TensorDtype a, TensorDtype b);

/* ---- shapes -------------------------------------------------------------------------------------
 * SHAPE(2, 3) lives until the end of the enclosing block; functions copy what they need. */
typedef struct TensorShape {
    int ndim;
    const int64_t *dim;
} TensorShape;

#define TENSOR_LIST_(...) ((int64_t[]){ 0, __VA_ARGS__ })
#define SHAPE(...)                                                                 \
    ((TensorShape){ (int)(sizeof TENSOR_LIST_(__VA_ARGS__) / sizeof(int64_t)) - 1, \
                    TENSOR_LIST_(__VA_ARGS__) + 1 })
#define DIMS(...) SHAPE(__VA_ARGS__) /* the same, where the list names dimensions */

/* ---- lists --------------------------------------------------------------------------------------
 * A list of tensors as an argument: TENSORS(a, b), or TENSOR_LIST(array, n).  A bare array, which does not
 * carry its length, does not compile. */
typedef struct TensorList {
    int count; /* first, so that an array in its place is an error */
    Tensor *const *item;
} TensorList;
#define TENSORS(...) \
    ((TensorList){ (int)(sizeof(Tensor *[]){ __VA_ARGS__ } / sizeof(Tensor *)), (Tensor *[]){ __VA_ARGS__ } })
#define TENSOR_LIST(array, n) ((TensorList){ (n), (array) })

/* ---- options ------------------------------------------------------------------------------------
 * A function with options, tensor_foo_args, takes one struct by value; the macro tensor_foo calls it:
 *
 *     tensor_huber_loss(x, target, .delta = 0.5)
 *
 * The struct declares each option's name and type, the macro TENSOR_HUBER_DEFAULTS the default values, and
 * the constant tensor_huber_defaults holds them.  Without the macro (C++, other languages, function
 * pointers): copy the constant, set your options, call tensor_huber_loss_args.  A struct not copied from the
 * defaults is refused (EVALUE), unless all defaults are zero. */

/* The last member of every options struct with a nonzero default; the defaults set it.  Your structs may use
 * it too.  It is a pointer, so a call with one positional value too many does not compile. */
typedef const struct TensorFromDefaults_ *TensorFromDefaults;
#define TENSOR_DEFAULTS_MARK ((TensorFromDefaults)(uintptr_t)0x7a0edefa17505e75)
#define TENSOR_FROM_DEFAULTS .from_defaults = TENSOR_DEFAULTS_MARK

/* A member after which options must be given by name.  It stands before an enum, because C converts any
 * number to an enum silently: with it, tensor_huber_loss(x, t, 0.5) does not compile.  A literal 0 does
 * compile and clears the mark: the call is then refused at run time. */
typedef const struct TensorByName_ *TensorByName;
#define TENSOR_BY_NAME_MARK ((TensorByName)(uintptr_t)0x7a0eb9a3e5175e75)
#define TENSOR_BY_NAME .by_name = TENSOR_BY_NAME_MARK

/* tensor_check_options - checks that options (size bytes) carry the marks of defaults: 0; or -1 and EVALUE if
 * TENSOR_FROM_DEFAULTS at the end, or TENSOR_BY_NAME, stands in the defaults but not in the options.  The
 * error names function. */
TAPEGRAD_API int tensor_check_options(const char *function, const void *options, const void *defaults,
                                      size_t size);
#define TENSOR_CHECK_OPTIONS(function, options, defaults) \
    tensor_check_options(function, &(options), &(defaults), sizeof(options))

/* tensor_check_choice - checks an enum option: 0 if 0 <= value < number of choices; else -1 and EVALUE, with
 * the choices listed.  choices: their names, ended by NULL. */
TAPEGRAD_API int tensor_check_choice(const char *function, const char *option, int value,
                                     const char *const *choices);

/* How many bytes lie at an address, SIZE_MAX where the compiler does not know. */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define TENSOR_BYTES_AT_(address) __builtin_dynamic_object_size(address, 0)
#elif defined(__GNUC__)
#define TENSOR_BYTES_AT_(address) __builtin_object_size(address, 0)
#endif

/* gcc before 12 cannot read a _Pragma in a macro's argument (a call within a call): with -Wextra, give it
 * -Wno-override-init too. */
#if defined(__clang__)
#define TENSOR_OVERRIDES_(...)                                                                     \
    _Pragma("GCC diagnostic push") _Pragma("clang diagnostic ignored \"-Winitializer-overrides\"") \
        __VA_ARGS__ _Pragma("GCC diagnostic pop")
#elif __GNUC__ >= 12
#define TENSOR_OVERRIDES_(...)                                                           \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"") \
        __VA_ARGS__ _Pragma("GCC diagnostic pop")
#else
#define TENSOR_OVERRIDES_(...) __VA_ARGS__
#endif

/* The body of those macros.  That your options override the defaults is intended, so that warning is off; an
 * option given twice is a mistake, and still warns in the sizeof. */
#define TENSOR_CALL_(function, struct_, defaults, ...)                   \
    __extension__({                                                      \
        (void)sizeof(struct_){ __VA_ARGS__ };                            \
        TENSOR_OVERRIDES_(function((struct_){ defaults, __VA_ARGS__ });) \
    })

/* ---- make ---------------------------------------------------------------------------------------
 * Each makes a contiguous tensor on the default device (tensor_set_default_device), outside any graph.
 * ESHAPE: a negative size, more than 16 dimensions, or more bytes than int64 can count.  EDTYPE: no such
 * dtype.
 * EVALUE: a value beyond an integer dtype (one beyond a floating dtype is infinite).  ENOMEM: no memory. */
TAPEGRAD_API Tensor *tensor_empty(TensorShape shape, TensorDtype dtype); /* values are arbitrary */
TAPEGRAD_API Tensor *tensor_zeros(TensorShape shape, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_ones(TensorShape shape, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_full(TensorShape shape, double value, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_scalar(double value, TensorDtype dtype); /* rank 0 */
TAPEGRAD_API Tensor *tensor_empty_like(const Tensor *x);
TAPEGRAD_API Tensor *tensor_zeros_like(const Tensor *x);
TAPEGRAD_API Tensor *tensor_ones_like(const Tensor *x);
TAPEGRAD_API Tensor *tensor_full_like(const Tensor *x, double value);

/* tensor_arange - start, start + step, ... up to but not including end.
 *   count = ceil((end - start) / step), in double; element i = start + i step.  EVALUE: step is 0, or has the
 * wrong sign. */
TAPEGRAD_API Tensor *tensor_arange(double start, double end, double step, TensorDtype dtype);

/* tensor_linspace - steps values from start to end, both included exactly; steps = 1 gives start.
 *   y_i = start + i (end - start) / (steps - 1); the upper half is counted back from end, as PyTorch does.
 * EVALUE: steps < 0. */
TAPEGRAD_API Tensor *tensor_linspace(double start, double end, int64_t steps, TensorDtype dtype);

/* tensor_logspace - y_i = base^(element i of tensor_linspace(start, end, steps)).  EVALUE: steps < 0. */
TAPEGRAD_API Tensor *tensor_logspace(double start, double end, int64_t steps, double base, TensorDtype dtype);

TAPEGRAD_API Tensor *tensor_eye(int64_t rows, int64_t columns, TensorDtype dtype);

/* tensor_tril_indices - i64 [2, count]: row and column of each element that tensor_tril(x [rows, columns],
 * offset) keeps, in row-major order.
 * tensor_triu_indices - the same for tensor_triu. */
TAPEGRAD_API Tensor *tensor_tril_indices(int64_t rows, int64_t columns, int64_t offset);
TAPEGRAD_API Tensor *tensor_triu_indices(int64_t rows, int64_t columns, int64_t offset);

/* The same with x's dtype and device; new_tensor copies a dense row-major array of that dtype's C type. */
TAPEGRAD_API Tensor *tensor_new_empty(const Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_new_zeros(const Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_new_ones(const Tensor *x, TensorShape shape);
TAPEGRAD_API Tensor *tensor_new_full(const Tensor *x, TensorShape shape, double value);
TAPEGRAD_API Tensor *tensor_new_tensor(const Tensor *x, const void *data, TensorShape shape);

/* tensor_from_data - copies a dense row-major array of the dtype's C type: float, double, int64_t for I64,
 * int32_t for I32, uint8_t, bool or a byte; uint16_t bits for f16 and bf16.  EDTYPE: the array is shorter
 * than shape and dtype need, where the C compiler knows its length (arrays and malloc'ed memory in an
 * optimized build): an array of int passed as I64, for example.
 * tensor_from_data_sized - the same where you know the length: bytes lie at data; SIZE_MAX: unknown. */
TAPEGRAD_API Tensor *tensor_from_data(const void *data, TensorShape shape, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_from_data_sized(const void *data, size_t bytes, TensorShape shape,
                                            TensorDtype dtype);
#if defined(__GNUC__) && !defined(__cplusplus) /* no inline function: errors would name its line */
typedef struct TensorFromData_ {
    const void *data;
    TensorShape shape;
    TensorDtype dtype;
} TensorFromData_;
#define tensor_from_data(...)                                                                              \
    __extension__({                                                                                        \
        (void)sizeof((tensor_from_data)(__VA_ARGS__)); /* their number and types */                        \
        const TensorFromData_ tensor_from_ = { __VA_ARGS__ };                                              \
        tensor_from_data_sized(tensor_from_.data, TENSOR_BYTES_AT_(tensor_from_.data), tensor_from_.shape, \
                               tensor_from_.dtype);                                                        \
    })
#endif

/* tensor_from_blob - uses the caller's memory without copying.  deleter(data, ctx) runs once, after the last
 * tensor that shares the memory is freed; never if this call fails.  NULL: the memory outlives all those
 * tensors.  CPU only. */
TAPEGRAD_API Tensor *tensor_from_blob(void *data, TensorShape shape, TensorDtype dtype,
                                      void (*deleter)(void *data, void *ctx), void *ctx);

/* ---- inspect ------------------------------------------------------------------------------------
 * On NULL: 0, NULL, an empty shape or F32, and an error is recorded if none was. */
TAPEGRAD_API int tensor_ndim(const Tensor *x);
TAPEGRAD_API int64_t tensor_size(const Tensor *x,
                                 int dim); /* dim may count from the end; -1 and EINDEX when out of range */
TAPEGRAD_API int64_t tensor_stride(const Tensor *x,
                                   int dim);            /* in elements; 0 and EINDEX when out of range */
TAPEGRAD_API TensorShape tensor_shape(const Tensor *x); /* points into x */
TAPEGRAD_API bool tensor_shape_equal(TensorShape a, TensorShape b);
TAPEGRAD_API int64_t tensor_numel(const Tensor *x);
TAPEGRAD_API TensorDtype tensor_dtype(const Tensor *x);
TAPEGRAD_API const char *tensor_device(const Tensor *x); /* "cpu", "cuda:0" */
TAPEGRAD_API bool tensor_is_contiguous(const Tensor *x);
TAPEGRAD_API bool tensor_shares_storage(const Tensor *a, const Tensor *b);

/* tensor_data - the address of element 0, in the memory of x's device; tensor_stride says where the others
 * lie.  The version counter does not see a write through it: call tensor_bump_version afterwards. */
TAPEGRAD_API void *tensor_data(const Tensor *x);

/* tensor_version - counts the in-place writes to x's storage; all its views share the counter. */
TAPEGRAD_API uint32_t tensor_version(const Tensor *x);
TAPEGRAD_API void tensor_bump_version(Tensor *x);

/* ---- values in and out ----------------------------------------------------------------------- */

/* tensor_item - the value of a tensor of one element; NaN and ESHAPE for any other count. */
TAPEGRAD_API double tensor_item(const Tensor *x);
TAPEGRAD_API int64_t tensor_item_i64(const Tensor *x); /* exact for i64; 0 on error */

/* tensor_get, tensor_set - reads, or writes, one element by its indices, which may count from the end:
 * tensor_get(x, DIMS(1, -1)).  Slow: for tests and printing.  set is an in-place write, and refused where one
 * is.  EINDEX: an index out of range.  ESHAPE: not one index for each dimension. */
TAPEGRAD_API double tensor_get(const Tensor *x, TensorShape index);
TAPEGRAD_API int tensor_set(Tensor *x, TensorShape index, double value);

/* tensor_copy_to, tensor_copy_from - copies the elements, in row-major order, to or from a dense array of x's
 * dtype.  ESHAPE: bytes is not numel * element size.  copy_from is an in-place write. */
TAPEGRAD_API int tensor_copy_to(const Tensor *x, void *buffer, size_t bytes);
TAPEGRAD_API int tensor_copy_from(Tensor *x, const void *buffer, size_t bytes);

/* tensor_equal - have a and b the same shape, dtype and values (NaN equals nothing)?  As torch.equal. */
TAPEGRAD_API bool tensor_equal(const Tensor *a, const Tensor *b);

typedef struct TensorAllcloseArgs {
    const Tensor *a, *b;
    double rtol, atol;
    bool equal_nan;
    TensorFromDefaults from_defaults;
} TensorAllcloseArgs;
#define TENSOR_ALLCLOSE_DEFAULTS .rtol = 1e-5, .atol = 1e-8, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorAllcloseArgs tensor_allclose_defaults;

/* tensor_allclose(a, b, .atol = 1e-6) - |a - b| <= atol + rtol |b| for every element, computed in double;
 * equal infinities are close; NaNs are close to each other only with equal_nan.  ESHAPE if the shapes do not
 * broadcast. */
#define tensor_allclose(...) \
    TENSOR_CALL_(tensor_allclose_args, TensorAllcloseArgs, TENSOR_ALLCLOSE_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API bool tensor_allclose_args(TensorAllcloseArgs args);

/* tensor_print, tensor_fprint, tensor_snprint - write the values as PyTorch does: four digits, aligned, the
 * middle of long tensors left out, then the dtype unless it is f32, i64 or bool, and grad_fn or
 * requires_grad.  snprint returns the length needed, like snprintf.  NULL prints as "tensor(NULL)". */
TAPEGRAD_API void tensor_print(const Tensor *x);
TAPEGRAD_API void tensor_fprint(FILE *file, const Tensor *x);
TAPEGRAD_API int tensor_snprint(char *buffer, size_t size, const Tensor *x);

/* ---- ownership ------------------------------------------------------------------------------- */

typedef struct TensorScope {
    size_t mark;
    uint64_t depth;
} TensorScope;

/* tensor_scope_open - marks a place on the thread's stack of owned tensors.
 * tensor_scope_close - releases every tensor above the mark.  Closing an outer scope closes the inner ones
 *     that an early return left open; closing a scope twice does nothing.  EVALUE: another thread opened it.
 */
TAPEGRAD_API TensorScope tensor_scope_open(void);
TAPEGRAD_API void tensor_scope_close(TensorScope scope);

/* tensor_scope_return - closes the scope, gives y (may be NULL) to the enclosing scope, and returns y. */
TAPEGRAD_API Tensor *tensor_scope_return(TensorScope scope, Tensor *y);

/* tensor_retain - takes a reference to x, and returns x; tensor_release drops one.  NULL is ignored.  EVALUE:
 * a release without a retain (only scopes, gradients or views hold x), and any use of a freed tensor.
 * Without an open scope a tensor belongs to the thread's root scope, which ends with the thread: open a scope
 * around code that runs often. */
TAPEGRAD_API Tensor *tensor_retain(Tensor *x);
TAPEGRAD_API void tensor_release(Tensor *x);

/* tensor_assign - retains x, releases *handle (a tensor you retained, or NULL), and sets *handle = x.  For a
 * state that outlives each step's scope:
 *
 *     Tensor *state = NULL;
 *     tensor_assign(&state, tensor_zeros(SHAPE(8), TENSOR_F32));
 *     for (int step = 0; step < steps; step++) {
 *         TensorScope scope = tensor_scope_open();
 *         tensor_assign(&state, tensor_tanh(tensor_add(state, input(step))));
 *         tensor_scope_close(scope);
 *     }
 *     tensor_release(state);
 * -1 if x is NULL: *handle is unchanged. */
TAPEGRAD_API int tensor_assign(Tensor **handle, Tensor *x);

/* tensor_live_count - the number of live tensors in this process, over all threads. */
TAPEGRAD_API int64_t tensor_live_count(void);

/* tensor_track_leaks - records, from now on, the source line that makes each tensor.  TAPEGRAD_LEAKS=1 in the
 *     environment switches it on at start, and prints the report to stderr at exit.
 * tensor_leak_report - writes one line for each live tensor: dtype, shape, references, and the source line.
 *     Returns their number. */
TAPEGRAD_API void tensor_track_leaks(bool on);
TAPEGRAD_API int64_t tensor_leak_report(FILE *file);

/* ---- errors ---------------------------------------------------------------------------------- */

#define TENSOR_STATUS_LIST(X)                                  \
    X(TENSOR_OK, "no error")                                   \
    X(TENSOR_ENULL, "an operand is NULL")                      \
    X(TENSOR_ESHAPE, "shapes do not fit")                      \
    X(TENSOR_EDTYPE, "dtype not supported here")               \
    X(TENSOR_EINDEX, "dimension or index out of range")        \
    X(TENSOR_EVALUE, "value not allowed")                      \
    X(TENSOR_EDEVICE, "device unavailable, or devices differ") \
    X(TENSOR_EGRAD, "misuse of the tape")                      \
    X(TENSOR_ENOMEM, "out of memory")                          \
    X(TENSOR_EIO, "file cannot be read or written")            \
    X(TENSOR_EFORMAT, "file is damaged or of another format")  \
    X(TENSOR_EUSER, "reported by the user's own op")

typedef enum TensorStatus {
#define X(name, text) name,
    TENSOR_STATUS_LIST(X)
#undef X
} TensorStatus;

/* tensor_error - the first error of this thread since the last clear: operation, operands as found, what was
 * wanted, and the line of the program that made the call; NULL when there is none. */
TAPEGRAD_API const char *tensor_error(void);
TAPEGRAD_API TensorStatus tensor_error_code(void);
TAPEGRAD_API const char *tensor_status_text(TensorStatus code);
TAPEGRAD_API void tensor_error_clear(void);

/* tensor_on_error - calls fn(text, code, ctx) at the moment of a thread's first error, on that thread: to
 * stop in a debugger, or to print and exit.  NULL: no function.  One function for the process. */
TAPEGRAD_API void tensor_on_error(void (*fn)(const char *text, TensorStatus code, void *ctx), void *ctx);

/* tensor_error_note - adds a line to the recorded error, if there is one and it has room, that says where it
 * happened in your program's terms.  nn_forward adds the path of the layer. */
TAPEGRAD_API void tensor_error_note(const char *format, ...) TAPEGRAD_PRINTF(1, 2);

/* tensor_compose_begin - puts your function's name before the errors of this thread until tensor_compose_end:
 * "attend: tensor_matmul: ...".  Nested calls keep the outermost name.  Returns the argument for
 * tensor_compose_end. */
TAPEGRAD_API const char *tensor_compose_begin(const char *function);
TAPEGRAD_API void tensor_compose_end(const char *outer);

/* tensor_fail - records an error as the library does, for your ops and modules; returns -1. */
TAPEGRAD_API int tensor_fail(TensorStatus code, const char *op, const char *format, ...)
    TAPEGRAD_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
