/* test_foreach.c - ops over lists: what each gives tensor by tensor, in every dtype and layout, on any
 * number of threads; shared memory, refusals, failing memory. */
#include <math.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>

enum { N = 7, OPS = 7 };

/* Lengths around the block of norms; a matrix read by columns; every second element; none. */
static void make_list(Tensor **t, TensorDtype dtype, double shift)
{
    static const int64_t length[] = { 1, 4095, 4096, 4097, 20000 };
    for (int i = 0; i < N; i++) {
        Tensor *x = i < 5    ? tensor_arange(0, (double)length[i], 1, TENSOR_F64)
                    : i == 5 ? tensor_reshape(tensor_arange(0, 60, 1, TENSOR_F64), SHAPE(6, 10))
                             : tensor_zeros(SHAPE(0, 3), TENSOR_F64);
        x = tensor_to(tensor_sin(tensor_add_scalar(x, shift + i)), dtype);
        t[i] = i == 5 ? tensor_transpose(x, 0, 1) : x;
    }
}

static int apply(int op, TensorList x, TensorList y)
{
    switch (op) {
    case 0: return tensor_foreach_zero_(x);
    case 1: return tensor_foreach_mul_(x, tensor_scalar(0.3, TENSOR_F64));
    case 2: return tensor_foreach_mul_scalar_(x, -1.7);
    case 3: return tensor_foreach_clamp_(x, -0.5, 0.25);
    case 4: return tensor_foreach_add_(x, y, 0.7);
    case 5: return tensor_foreach_lerp_(x, y, 0.9);
    default: return tensor_foreach_copy_(x, y);
    }
}

static Tensor *alone(int op, Tensor *x, Tensor *y)
{
    const TensorDtype dtype = tensor_dtype(x);
    if (dtype != TENSOR_F64) x = tensor_to(x, TENSOR_F32), y = tensor_to(y, TENSOR_F32);
    Tensor *z = op == 0   ? tensor_zeros_like(x)
                : op == 1 ? tensor_mul_scalar(x, 0.3)
                : op == 2 ? tensor_mul_scalar(x, -1.7)
                : op == 3 ? tensor_clamp(x, -0.5, 0.25)
                : op == 4 ? tensor_add_scaled(x, y, 0.7)
                : op == 5 ? tensor_lerp(x, y, 0.9)
                          : y;
    return tensor_to(z, dtype);
}

static void as_one_by_one(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
    for (int d = 0; d < 4; d++)
        for (int op = 0; op < OPS; op++) {
            TensorScope scope = tensor_scope_open();
            Tensor *x[N], *y[N], *want[N];
            make_list(x, dtypes[d], 0.1), make_list(y, dtypes[d], 2);
            for (int i = 0; i < N; i++) want[i] = alone(op, x[i], y[i]);
            const uint32_t version = tensor_version(x[1]);
            assert_int_equal(apply(op, TENSOR_LIST(x, N), TENSOR_LIST(y, N)), 0);
            assert_true(tensor_version(x[1]) > version);
            const double tolerance = dtypes[d] == TENSOR_F64 ? 1e-15 : dtypes[d] == TENSOR_F32 ? 2e-7 : 0;
            for (int i = 0; i < N; i++)
                if (!tensor_allclose(x[i], want[i], .rtol = tolerance, .atol = tolerance))
                    fail_msg("op %d, dtype %d, tensor %d", op, d, i);
            tensor_scope_close(scope);
        }
}

static void nan_and_infinity(void **state)
{
    (void)state;
    Tensor *x = tensor_from_data((float[]){ NAN, INFINITY, -INFINITY, 1 }, SHAPE(4), TENSOR_F32),
           *y = tensor_clone(x);
    assert_int_equal(tensor_foreach_clamp_(TENSORS(x), -2, 2), 0);
    assert_true(isnan(tensor_get(x, DIMS(0))) && tensor_get(x, DIMS(1)) == 2 && tensor_get(x, DIMS(2)) == -2);
    assert_int_equal(tensor_foreach_zero_(TENSORS(x, y)), 0);
    assert_true(tensor_equal(x, tensor_zeros_like(x)) && tensor_equal(y, x));
    x = tensor_from_data((float[]){ 1, 2 }, SHAPE(2), TENSOR_F32);
    assert_int_equal(tensor_foreach_mul_(TENSORS(x), tensor_scalar((double)NAN, TENSOR_F32)), 0);
    assert_true(isnan(tensor_get(x, DIMS(0))));
}

/* ---- threads --------------------------------------------------------------------------------- */

static void run_all(Tensor **x, Tensor **y, Tensor **norm)
{
    make_list(x, TENSOR_F32, 0.1), make_list(y, TENSOR_F32, 2);
    x[6] = tensor_randn(SHAPE(300000), TENSOR_F32), y[6] = tensor_randn(SHAPE(300000), TENSOR_F32);
    for (int op = 1; op < 6; op++) assert_int_equal(apply(op, TENSOR_LIST(x, N), TENSOR_LIST(y, N)), 0);
    for (int k = 0; k < 3; k++)
        norm[k] = tensor_foreach_norm(TENSOR_LIST(x, N), (double[]){ 1, 2, INFINITY }[k]);
}

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    const int before = tensor_num_threads();
    Tensor *x[2][N], *y[N], *norm[2][3];
    for (int k = 0; k < 2; k++) {
        assert_int_equal(tensor_set_num_threads(k ? 7 : 1), 0);
        tensor_manual_seed(1);
        run_all(x[k], y, norm[k]);
    }
    for (int i = 0; i < N; i++) assert_true(tensor_equal(x[0][i], x[1][i]));
    for (int k = 0; k < 3; k++) assert_true(tensor_equal(norm[0][k], norm[1][k]));
    tensor_set_num_threads(before);
}

/* ---- norms ----------------------------------------------------------------------------------- */

static void norms(void **state)
{
    (void)state;
    static const TensorDtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16 };
    static const double ords[] = { 2, 1, INFINITY, 3, 0.5 };
    for (int d = 0; d < 3; d++)
        for (int k = 0; k < 5; k++) {
            TensorScope scope = tensor_scope_open();
            Tensor *x[N];
            make_list(x, dtypes[d], 0.3);
            Tensor *found = tensor_foreach_norm(TENSOR_LIST(x, N), ords[k]);
            assert_int_equal(tensor_numel(found), N);
            assert_int_equal(tensor_dtype(found), dtypes[d] == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32);
            for (int i = 0; i < N; i++) {
                const double want =
                    i == 6 ? 0 : tensor_item(tensor_norm(tensor_to(x[i], TENSOR_F64), ords[k]));
                const double tolerance = dtypes[d] == TENSOR_F64 ? 1e-13 : ords[k] > 2 ? 2e-6 : 5e-7;
                assert_true(fabs(tensor_get(found, DIMS(i)) - want) <= tolerance * want);
            }
            tensor_scope_close(scope);
        }
}

static void norms_of_extremes(void **state)
{
    (void)state;
    Tensor *x[] = { tensor_full(SHAPE(4), 1e100, TENSOR_F64), tensor_full(SHAPE(4), 1e-100, TENSOR_F64),
                    tensor_full(SHAPE(4), 1e30, TENSOR_F32), tensor_full(SHAPE(4), 1e-30, TENSOR_F32),
                    tensor_full(SHAPE(4), INFINITY, TENSOR_F32) };
    static const double want[] = { 2e100, 2e-100, 2e30, 2e-30 };
    Tensor *found = tensor_foreach_norm(TENSOR_LIST(x, 5));
    for (int i = 0; i < 4; i++) assert_true(fabs(tensor_get(found, DIMS(i)) / want[i] - 1) < 1e-6);
    assert_true(isinf(tensor_get(found, DIMS(4))));
    for (int at = 0; at < 5000; at += 1234) { /* a NaN wins, wherever it is */
        Tensor *y = tensor_ones(SHAPE(5000), TENSOR_F32);
        tensor_set(y, DIMS(at), (double)NAN);
        for (int k = 0; k < 3; k++)
            assert_true(isnan(tensor_item(tensor_foreach_norm(TENSORS(y), (double[]){ 1, 2, INFINITY }[k]))));
    }
    assert_int_equal(tensor_numel(tensor_foreach_norm((TensorList){ 0 })), 0);
}

/* ---- shared memory --------------------------------------------------------------------------- */

static void shared_memory_goes_in_order(void **state)
{
    (void)state;
    Tensor *a = tensor_full(SHAPE(3), 3, TENSOR_F32), *b = tensor_full(SHAPE(3), 5, TENSOR_F32);
    assert_int_equal(tensor_foreach_mul_scalar_(TENSORS(a, a), 2), 0);
    assert_true(tensor_get(a, DIMS(0)) == 12);
    assert_int_equal(tensor_foreach_add_(TENSORS(a, b), TENSORS(b, a), 1), 0); /* a = 17, then b = 22 */
    assert_true(tensor_get(a, DIMS(0)) == 17 && tensor_get(b, DIMS(0)) == 22);
    assert_int_equal(tensor_foreach_add_(TENSORS(a), TENSORS(a), 2), 0);
    assert_true(tensor_get(a, DIMS(2)) == 51);
    Tensor *base = tensor_ones(SHAPE(6), TENSOR_F32), *low = tensor_narrow(base, 0, 0, 4),
           *high = tensor_narrow(base, 0, 2, 4);
    assert_int_equal(tensor_foreach_mul_scalar_(TENSORS(low, high), 2), 0);
    assert_true(tensor_get(base, DIMS(0)) == 2 && tensor_get(base, DIMS(3)) == 4 &&
                tensor_get(base, DIMS(5)) == 2);
}

/* Written tensors are noticed by a backward that saved them. */
static void writes_are_noticed(void **state)
{
    (void)state;
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F32), true),
           *x = tensor_ones(SHAPE(3), TENSOR_F32);
    Tensor *loss = tensor_sum(tensor_mul(w, x));
    assert_int_equal(tensor_foreach_mul_scalar_(TENSORS(x), 2), 0);
    assert_status_error(tensor_backward(loss), TENSOR_EGRAD);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    (void)state;
    Tensor *a = tensor_ones(SHAPE(2), TENSOR_F32), *b = tensor_ones(SHAPE(3), TENSOR_F32),
           *n = tensor_ones(SHAPE(2), TENSOR_I64), *w = tensor_requires_grad_(tensor_clone(a), true),
           *wide = tensor_expand(tensor_ones(SHAPE(1), TENSOR_F32), SHAPE(4));
    assert_status_error(tensor_foreach_zero_(TENSOR_LIST(NULL, 2)), TENSOR_ENULL);
    assert_status_error(tensor_foreach_zero_(TENSORS(a, NULL)), TENSOR_ENULL);
    assert_status_error(tensor_foreach_mul_scalar_(TENSORS(a, n), 2), TENSOR_EDTYPE);
    assert_status_error(tensor_foreach_mul_scalar_(TENSORS(a, w), 2), TENSOR_EGRAD);
    assert_status_error(tensor_foreach_mul_scalar_(TENSORS(a, wide), 2), TENSOR_EVALUE);
    assert_status_error(tensor_foreach_mul_(TENSORS(a), b), TENSOR_ESHAPE);
    assert_status_error(tensor_foreach_mul_(TENSORS(a), NULL), TENSOR_ENULL);
    assert_status_error(tensor_foreach_add_(TENSORS(a, a), TENSORS(a), 1), TENSOR_EVALUE);
    assert_status_error(tensor_foreach_add_(TENSORS(a, b), TENSORS(a, a), 1), TENSOR_ESHAPE);
    assert_status_error(tensor_foreach_lerp_(TENSORS(a), TENSORS(n), 1), TENSOR_EDTYPE);
    assert_status_error(tensor_foreach_clamp_(TENSORS(a), 1, -1), TENSOR_EVALUE);
    assert_null(tensor_foreach_norm(TENSORS(a, n)));
    assert_status_error(-1, TENSOR_EDTYPE);
    assert_true(tensor_equal(a, tensor_ones_like(a)));
    assert_int_equal(tensor_foreach_copy_(TENSORS(a, n), TENSORS(tensor_full_like(n, 7), n)), 0);
    assert_true(tensor_get(a, DIMS(1)) == 7 && tensor_get(n, DIMS(0)) == 1);
    assert_int_equal(tensor_foreach_zero_(TENSORS(n)), 0);
    assert_int_equal(tensor_item_i64(tensor_sum(n)), 0);
    TENSOR_NO_GRAD { assert_int_equal(tensor_foreach_mul_scalar_(TENSORS(w), 2), 0); }
    assert_int_equal(tensor_foreach_add_((TensorList){ 0 }, (TensorList){ 0 }, 1), 0);
}

static void failing_memory(void **state)
{
    (void)state;
    for (int op = 0; op < OPS; op++)
        for (int n = 1, failed = 1; failed; n++) {
            TensorScope scope = tensor_scope_open();
            Tensor *x[] = { tensor_full(SHAPE(5), 2, TENSOR_F32), tensor_full(SHAPE(5), 2, TENSOR_BF16),
                            tensor_full(SHAPE(5), 2, TENSOR_F16) },
                   *y[] = { tensor_full(SHAPE(5), 3, TENSOR_F32), tensor_full(SHAPE(5), 3, TENSOR_BF16),
                            tensor_full(SHAPE(5), 3, TENSOR_F16) };
            tensor_debug_fail_allocation(n, false);
            const int status = apply(op, TENSOR_LIST(x, 3), TENSOR_LIST(y, 3));
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            assert_true(status == 0 || failed);
            if (status) {
                assert_status_error(status, TENSOR_ENOMEM);
                for (int i = 0; i < 3; i++) assert_true(tensor_equal(x[i], tensor_full_like(x[i], 2)));
            }
            tensor_scope_close(scope);
        }
}

/* Tensors that share memory are written one by one, so a failure may come after some of them. */
static void failing_memory_of_shared(void **state)
{
    (void)state;
    for (int op = 0; op < OPS; op++)
        for (int n = 1, failed = 1; failed; n++) {
            TensorScope scope = tensor_scope_open();
            Tensor *all = tensor_full(SHAPE(6), 2, TENSOR_F32), *y = tensor_full(SHAPE(4), 3, TENSOR_F32),
                   *x[] = { tensor_narrow(all, 0, 0, 4), tensor_narrow(all, 0, 2, 4) };
            tensor_debug_fail_allocation(n, false);
            const int status = apply(op, TENSOR_LIST(x, 2), TENSORS(y, y));
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            assert_int_equal(tensor_error_code(), status ? TENSOR_ENOMEM : TENSOR_OK);
            tensor_error_clear();
            tensor_scope_close(scope);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(as_one_by_one),
        SCOPED(nan_and_infinity),
        SCOPED(same_bits_on_any_threads),
        SCOPED(norms),
        SCOPED(norms_of_extremes),
        SCOPED(shared_memory_goes_in_order),
        SCOPED(writes_are_noticed),
        SCOPED(refusals),
        SCOPED(failing_memory),
        SCOPED(failing_memory_of_shared),
    };
    return cmocka_run_group_tests_name("ops over lists", tests, NULL, NULL);
}
