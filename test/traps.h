/* traps.h - what the tests of traps share: tensors from text, gradients, refusals, a scope around each test.
 */
#ifndef TRAPS_H
#define TRAPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>

static inline Tensor *numbers(TensorShape shape, const char *text, TensorDtype dtype)
{
    Tensor *x = tensor_empty(shape, TENSOR_F64);
    double *v = tensor_data(x);
    char *end = (char *)(uintptr_t)text;
    for (int64_t i = 0; i < tensor_numel(x); i++) v[i] = strtod(end, &end);
    return tensor_to(x, dtype);
}

static inline Tensor *leaf(TensorShape shape, const char *text)
{
    return tensor_requires_grad_(numbers(shape, text, TENSOR_F64), true);
}
static inline Tensor *indices(TensorShape shape, const char *text)
{
    return numbers(shape, text, TENSOR_I64);
}

/* Has x this shape and these values, to 1e-6? */
static inline bool has(Tensor *x, TensorShape shape, const char *text)
{
    if (!x || tensor_error()) {
        print_error("%s\n", tensor_error() ? tensor_error() : "NULL");
        return false;
    }
    Tensor *got = tensor_to(tensor_detach(x), TENSOR_F64), *want = numbers(shape, text, TENSOR_F64);
    TensorShape is = tensor_shape(x);
    bool same = is.ndim == shape.ndim &&
                (!is.ndim || memcmp(is.dim, shape.dim, (size_t)is.ndim * sizeof *is.dim) == 0);
    if (same && tensor_allclose(got, want, 1e-6, 1e-9, true)) return true;
    tensor_fprint(stderr, x);
    return false;
}

/* The gradient at x of the sum of y times 1, 2, 3, ... */
static inline Tensor *gradient(Tensor *y, Tensor *x)
{
    Tensor *g = tensor_to(
        tensor_reshape(tensor_arange(1, 1 + (double)tensor_numel(y), 1, TENSOR_F64), tensor_shape(y)),
        tensor_dtype(y));
    return tensor_gradients(y, x, .grad_output = g, .retain_graph = true, .allow_unused = true,
                            .materialize_grads = true);
}

static inline void assert_refused(const void *result, TensorStatus code)
{
    assert_null(result);
    if (tensor_error_code() != code) print_error("%s\n", tensor_error() ? tensor_error() : "no error");
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

static inline int open_scope(void **state)
{
    TensorScope *scope = malloc(sizeof *scope);
    *scope = tensor_scope_open();
    *state = scope;
    return 0;
}

static inline int close_scope(void **state)
{
    bool failed = tensor_error() != NULL;
    tensor_scope_close(*(TensorScope *)*state);
    free(*state);
    return failed || tensor_live_count() != 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

#endif
