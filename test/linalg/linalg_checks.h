/* linalg_checks.h - random matrices, and comparisons, of the suites of linear algebra. */
#ifndef TEST_LINALG_CHECKS_H
#define TEST_LINALG_CHECKS_H

#include "sane.h"

static const double tight = 1e-12;

static Tensor *noise(TensorShape shape, uint64_t seed)
{
    tensor_manual_seed(seed);
    return tensor_randn(shape, TENSOR_F64);
}

static void assert_identity(Tensor *x)
{
    const int64_t n = tensor_size(x, -1);
    assert_tensor_close(x, tensor_expand_as(tensor_eye(n, n, TENSOR_F64), x), 0, tight * (double)(n + 1));
}

static bool same_bits(Tensor *a, Tensor *b)
{
    assert_non_null(a);
    assert_non_null(b);
    Tensor *x = tensor_contiguous(tensor_detach(a)), *y = tensor_contiguous(tensor_detach(b));
    return shape_equal(shape_of(x), shape_of(y)) &&
           memcmp(x->data, y->data, (size_t)x->numel * dtype_size(x->dtype)) == 0;
}

#endif
