/* cmocka.h - assertions on tensors and gradients for your own cmocka tests.  Include <cmocka.h> (and what it
 * needs) first.
 *
 *     assert_tensor_close(y, expected, 1e-5, 1e-6);
 *     assert_op(&cube);                       // the tests that every built-in op passes
 *     assert_gradcheck(&cube, x);
 *     assert_gradgradcheck(&cube, x);
 *     assert_tensor_error(tensor_matmul(a, b), TENSOR_ESHAPE);   // fails as expected; clears the error
 *
 * A failing check prints what is wrong, element by element, and fails the test at its line. */
#ifndef TAPEGRAD_CMOCKA_H
#define TAPEGRAD_CMOCKA_H

#include <math.h>
#include <tapegrad/autograd.h>

static inline void tapegrad_assert_close_(Tensor *a, Tensor *b, double rtol, double atol, const char *file,
                                          int line)
{
    enum { SHOWN = 10 };
    if (!a || !b || tensor_error()) {
        print_error("%s\n", tensor_error() ? tensor_error() : "a tensor is NULL");
        _fail(file, line);
    }
    TensorShape sa = tensor_shape(a), sb = tensor_shape(b);
    bool same = sa.ndim == sb.ndim;
    for (int d = 0; same && d < sa.ndim; d++) same = sa.dim[d] == sb.dim[d];
    if (!same || tensor_dtype(a) != tensor_dtype(b)) {
        print_error("tensors differ in rank, shape or dtype: %s of rank %d, %s of rank %d\n",
                    tensor_dtype_name(tensor_dtype(a)), sa.ndim, tensor_dtype_name(tensor_dtype(b)), sb.ndim);
        _fail(file, line);
    }
    int64_t index[TENSOR_MAX_DIMS] = { 0 }, wrong = 0, n = tensor_numel(a);
    for (int64_t i = 0; i < n; i++) {
        double x = tensor_get(a, (TensorShape){ sa.ndim, index }),
               y = tensor_get(b, (TensorShape){ sb.ndim, index });
        if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= atol + rtol * fabs(y))) {
            if (wrong++ < SHOWN) {
                print_error("    [");
                for (int d = 0; d < sa.ndim; d++) print_error("%s%lld", d ? ", " : "", (long long)index[d]);
                print_error("]   %.9g   expected %.9g   off by %.3g\n", x, y, fabs(x - y));
            }
        }
        for (int d = sa.ndim - 1; d >= 0 && ++index[d] == sa.dim[d]; d--) index[d] = 0;
    }
    if (!wrong) return;
    print_error("%lld of %lld elements differ (rtol %g, atol %g)\n", (long long)wrong, (long long)n, rtol,
                atol);
    _fail(file, line);
}

static inline bool tapegrad_gradcheck_fails_(GradcheckArgs args)
{
    static GradcheckReport report;
    args.report = &report;
    if (tensor_gradcheck_args(args) == 0) return false;
    tensor_gradcheck_print(stderr, &report);
    tensor_error_clear();
    return true;
}

static inline void tapegrad_assert_op_(const TensorOp *op, unsigned parts, const char *file, int line)
{
    static OpReport report;
    if (tensor_check_op(op, parts, &report) == 0) return;
    print_error("%s%d complaints about %s\n", report.text, report.wrong, report.name ? report.name : "NULL");
    tensor_error_clear();
    _fail(file, line);
}

static inline void tapegrad_assert_error_(bool failed, TensorStatus code, const char *file, int line)
{
    TensorStatus found = tensor_error_code();
    if (!failed || found != code) {
        print_error("expected the error \"%s\", found %s%s\n", tensor_status_text(code),
                    tensor_error() ? tensor_error() : "none", failed ? "" : " and a result");
        _fail(file, line);
    }
    tensor_error_clear();
}

/* Same shape and dtype, and |a - b| <= atol + rtol |b| everywhere; NaNs equal each other. */
#define assert_tensor_close(a, b, rtol, atol) tapegrad_assert_close_(a, b, rtol, atol, __FILE__, __LINE__)

/* tensor_check_op (autograd.h): runs the samples of the op's descriptor forward and backward, in every dtype
 * and layout and in place, compares gradients to the third order with finite differences, and checks that
 * error samples are refused.  assert_op_parts runs the named parts alone: OP_CHECK_FORWARD and others. */
#define assert_op(op_) tapegrad_assert_op_(op_, 0, __FILE__, __LINE__)
#define assert_op_parts(op_, parts) tapegrad_assert_op_(op_, parts, __FILE__, __LINE__)

/* tensor_gradcheck and tensor_gradgradcheck of an op at these inputs. */
#define assert_gradcheck(op_, ...) assert_gradcheck_with(.op = (op_), .inputs = TENSORS(__VA_ARGS__))
#define assert_gradgradcheck(op_, ...) \
    assert_gradcheck_with(.op = (op_), .inputs = TENSORS(__VA_ARGS__), .second = true)

/* tensor_gradcheck_with: of a function, or with options.  _args: of a GradcheckArgs. */
#define assert_gradcheck_args(args)                                     \
    do {                                                                \
        if (tapegrad_gradcheck_fails_(args)) _fail(__FILE__, __LINE__); \
    } while (0)
#define assert_gradcheck_with(...)                                                                          \
    do {                                                                                                    \
        if (TENSOR_CALL_(tapegrad_gradcheck_fails_, GradcheckArgs, TENSOR_GRADCHECK_DEFAULTS, __VA_ARGS__)) \
            _fail(__FILE__, __LINE__);                                                                      \
    } while (0)

/* A call that returns a Tensor must fail with this code; the error is cleared. */
#define assert_tensor_error(call, code) tapegrad_assert_error_((call) == NULL, code, __FILE__, __LINE__)
#define assert_status_error(call, code) tapegrad_assert_error_((call) < 0, code, __FILE__, __LINE__)

#endif
