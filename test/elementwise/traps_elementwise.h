/* traps_elementwise.h - values and gradients of elementwise ops at chosen points, for the suites of traps. */
#ifndef TRAPS_ELEMENTWISE_H
#define TRAPS_ELEMENTWISE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <tapegrad/autograd.h>
#include <tapegrad/ops.h>

enum { MOST = 16 };
#define INF ((double)INFINITY)
#define NOT ((double)NAN)
#define LIST(...) \
    (const double[]){ __VA_ARGS__ }, (int)(sizeof(const double[]){ __VA_ARGS__ } / sizeof(double))

static inline bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-14 * fabs(b);
}

static inline Tensor *leaf(const double *v, int n)
{
    return tensor_requires_grad_(tensor_from_data(v, SHAPE(n), TENSOR_F64), true);
}

static inline void expect(Tensor *x, const double *want, int n)
{
    double v[MOST];
    assert_non_null(x);
    assert_int_equal(tensor_numel(x), n);
    assert_int_equal(tensor_copy_to(tensor_to(tensor_detach(x), TENSOR_F64), v, (size_t)n * sizeof *v), 0);
    for (int i = 0; i < n; i++)
        if (!same(v[i], want[i])) fail_msg("element %d is %.17g, want %.17g", i, v[i], want[i]);
}

/* y at x, and dx for cotangents of 1. */
static inline void unary(Tensor *(*f)(Tensor *), const double *x_, int n, const double *y, int ny,
                         const double *dx, int nx)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = leaf(x_, n), *result = f(x);
    expect(result, y, ny);
    assert_int_equal(tensor_backward(result, tensor_ones_like(result)), 0);
    expect(tensor_grad(x), dx, nx);
    tensor_scope_close(scope);
}

static inline void binary(Tensor *(*f)(Tensor *, Tensor *), const double *a_, int n, const double *b_, int nb,
                          const double *y, int ny, const double *da, int na, const double *db, int nd)
{
    TensorScope scope = tensor_scope_open();
    Tensor *a = leaf(a_, n), *b = leaf(b_, nb), *result = f(a, b);
    expect(result, y, ny);
    assert_int_equal(tensor_backward(result, tensor_ones_like(result)), 0);
    expect(tensor_grad(a), da, na);
    expect(tensor_grad(b), db, nd);
    tensor_scope_close(scope);
}

static inline void refused(Tensor *y, TensorStatus code)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

#define TEST(name) static void name(void **state)
#define BEGIN                                \
    TensorScope scope = tensor_scope_open(); \
    (void)state
#define END tensor_scope_close(scope)

#endif
