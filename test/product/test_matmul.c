/* test_matmul.c - what the samples of products cannot show: random shapes and layouts against the definition,
 * gradients by the adjoint identity, the same bits on any number of threads, and the words of refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>

static TensorScope scope;
static int setup(void **state)
{
    (void)state;
    return tensor_error_clear(), tensor_manual_seed(7), scope = tensor_scope_open(), 0;
}
static int teardown(void **state)
{
    (void)state;
    return tensor_scope_close(scope), 0;
}

static uint64_t seed = 1;
static int64_t pick(int64_t lo, int64_t hi)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

static double dot_of(Tensor *a, Tensor *b) { return tensor_item(tensor_sum(tensor_mul(a, b))); }

static void assert_near(double a, double b, const char *what)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(a) + fabs(b)))) fail_msg("%s: %.17g and %.17g", what, a, b);
}

static bool same_bits(Tensor *a, Tensor *b)
{
    size_t bytes = (size_t)tensor_numel(a) * tensor_dtype_size(tensor_dtype(a));
    return memcmp(tensor_data(tensor_contiguous(a)), tensor_data(tensor_contiguous(b)), bytes) == 0;
}

/* ---- random operands ------------------------------------------------------------------------- */

/* Of that shape, in one of several layouts: dense, transposed, every second element, or expanded along its
 * batches. */
static Tensor *operand(TensorShape shape)
{
    const int n = shape.ndim;
    int64_t dim[TENSOR_MAX_DIMS];
    for (int i = 0; i < n; i++) dim[i] = shape.dim[i];
    switch (pick(0, 3)) {
    case 1:
        if (n < 2) break;
        dim[n - 1] = shape.dim[n - 2], dim[n - 2] = shape.dim[n - 1];
        return tensor_transpose(tensor_randn((TensorShape){ n, dim }, TENSOR_F64), -2, -1);
    case 2:
        dim[n - 1] *= 2;
        return tensor_slice(tensor_randn((TensorShape){ n, dim }, TENSOR_F64), -1, 0, INT64_MAX, 2);
    case 3:
        if (n < 3) break;
        dim[pick(0, n - 3)] = 1;
        return tensor_expand(tensor_randn((TensorShape){ n, dim }, TENSOR_F64), shape);
    }
    return tensor_randn(shape, TENSOR_F64);
}

typedef struct Pair {
    Tensor *a, *b;
} Pair;

static Pair random_pair(void)
{
    int64_t a[5], b[5], k = pick(0, 5), batch = pick(0, 3);
    int ra = (int)pick(1, 2), rb = (int)pick(1, 2), na = 0, nb = 0;
    for (int64_t i = 0; i < batch; i++) {
        const int64_t size = pick(0, 8) ? pick(1, 3) : 0;
        const int64_t kind = pick(0, 3);
        if (na || (ra == 2 && kind != 1)) a[na++] = kind == 2 ? 1 : size;
        if (nb || (rb == 2 && kind != 0)) b[nb++] = kind == 3 ? 1 : size;
    }
    if (ra == 2) a[na++] = pick(1, 4);
    a[na++] = k;
    b[nb++] = k;
    if (rb == 2) b[nb++] = pick(1, 4);
    return (Pair){ operand((TensorShape){ na, a }), operand((TensorShape){ nb, b }) };
}

/* sum over the products of one position, by tensor_get. */
static double element(Tensor *a, Tensor *b, const int64_t *at, int ndim)
{
    const int na = tensor_ndim(a), nb = tensor_ndim(b), batch = ndim - (na > 1) - (nb > 1);
    int64_t ia[TENSOR_MAX_DIMS], ib[TENSOR_MAX_DIMS], k = tensor_size(a, -1);
    for (int i = 0; i < na - 2; i++) ia[i] = tensor_size(a, i) == 1 ? 0 : at[batch - (na - 2) + i];
    for (int i = 0; i < nb - 2; i++) ib[i] = tensor_size(b, i) == 1 ? 0 : at[batch - (nb - 2) + i];
    if (na > 1) ia[na - 2] = at[batch];
    if (nb > 1) ib[nb - 1] = at[ndim - 1];
    double sum = 0;
    for (int64_t p = 0; p < k; p++) {
        ia[na - 1] = p, ib[nb > 1 ? nb - 2 : 0] = p;
        sum += tensor_get(a, (TensorShape){ na, ia }) * tensor_get(b, (TensorShape){ nb, ib });
    }
    return sum;
}

static void check_definition(Pair p, Tensor *y)
{
    int64_t at[TENSOR_MAX_DIMS], n = tensor_numel(y);
    const int ndim = tensor_ndim(y);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t d = ndim - 1, rest = i; d >= 0; rest /= tensor_size(y, (int)d), d--)
            at[d] = rest % tensor_size(y, (int)d);
        assert_near(tensor_get(y, (TensorShape){ ndim, at }), element(p.a, p.b, at, ndim), "an element");
    }
}

/* y is linear in each operand: <a v, g> = <v, db>. */
static void check_adjoint(Pair p, bool recorded)
{
    Tensor *a = tensor_requires_grad_(tensor_detach(p.a), true),
           *b = tensor_requires_grad_(tensor_detach(p.b), true), *grad[2];
    Tensor *y = tensor_matmul(a, b), *g = tensor_randn(tensor_shape(y), TENSOR_F64);
    Tensor *u = tensor_randn(tensor_shape(a), TENSOR_F64), *v = tensor_randn(tensor_shape(b), TENSOR_F64);
    if (tensor_gradients_many(TENSORS(y), TENSORS(a, b), grad, .grad_outputs = TENSORS(g),
                              .create_graph = recorded))
        fail_msg("%s", tensor_error());
    assert_near(dot_of(tensor_matmul(u, p.b), g), dot_of(u, grad[0]), recorded ? "da, recorded" : "da");
    assert_near(dot_of(tensor_matmul(p.a, v), g), dot_of(v, grad[1]), recorded ? "db, recorded" : "db");
}

static void random_products(void **state)
{
    (void)state;
    for (int i = 0; i < 600; i++) {
        TensorScope inner = tensor_scope_open();
        Pair p = random_pair();
        Tensor *y = tensor_matmul(p.a, p.b);
        if (!y) fail_msg("%s", tensor_error());
        check_definition(p, y);
        check_adjoint(p, false);
        check_adjoint(p, true);
        tensor_scope_close(inner);
    }
}

/* ---- single points --------------------------------------------------------------------------- */

static void one_tensor_twice(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, 3), TENSOR_F64), true);
    Tensor *y = tensor_mm(x, tensor_transpose(x, 0, 1)), *g = tensor_randn(SHAPE(4, 4), TENSOR_F64);
    Tensor *dx = tensor_gradients(y, x, .grad_output = g);
    Tensor *want = tensor_mm(tensor_add(g, tensor_transpose(g, 0, 1)), tensor_detach(x));
    assert_true(tensor_allclose(dx, want, 1e-12, 1e-12, false));
}

static void what_is_not_read(void **state)
{
    (void)state;
    Tensor *nan = tensor_full(SHAPE(2, 2), NAN, TENSOR_F32), *one = tensor_ones(SHAPE(2, 2), TENSOR_F32);
    assert_true(
        tensor_equal(tensor_addmm(nan, one, one, .beta = 0), tensor_full(SHAPE(2, 2), 2, TENSOR_F32)));
    assert_true(tensor_equal(tensor_addmm(one, nan, one, .alpha = 0), one));
    Tensor *v = tensor_ones(SHAPE(2), TENSOR_F32);
    assert_true(tensor_equal(tensor_addmv(v, nan, v, .alpha = 0), v));
    assert_true(tensor_equal(tensor_addr(nan, v, v, .beta = 0), one));
    assert_true(
        tensor_equal(tensor_mm(tensor_empty(SHAPE(2, 0), TENSOR_F32), tensor_empty(SHAPE(0, 2), TENSOR_F32)),
                     tensor_zeros_like(one)));
    assert_true(isnan(tensor_get(tensor_mm(nan, tensor_zeros_like(one)), DIMS(0, 0))));
}

/* As in PyTorch, these two multiply where alpha is 0: 0 NaN and 0 inf are NaN. */
static void alpha_0_multiplies(void **state)
{
    (void)state;
    const double x[2] = { NAN, 1 }, far[2] = { 1, INFINITY };
    Tensor *a = tensor_requires_grad_(tensor_from_data(x, SHAPE(2), TENSOR_F64), true),
           *b = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true),
           *one = tensor_ones(SHAPE(2, 2), TENSOR_F64);
    Tensor *y = tensor_addr(one, a, b, .alpha = 0), *da[2];
    assert_true(isnan(tensor_get(y, DIMS(0, 0))) && isnan(tensor_get(y, DIMS(0, 1))));
    assert_true(tensor_get(y, DIMS(1, 0)) == 1 && tensor_get(y, DIMS(1, 1)) == 1);
    da[0] = tensor_gradients(tensor_sum(y), a, .retain_graph = true);
    da[1] = tensor_gradients(tensor_sum(y), b);
    assert_true(tensor_get(da[0], DIMS(0)) == 0 && tensor_get(da[0], DIMS(1)) == 0);
    assert_true(isnan(tensor_get(da[1], DIMS(0))) && isnan(tensor_get(da[1], DIMS(1))));

    Tensor *m = tensor_reshape(tensor_from_data(far, SHAPE(2), TENSOR_F64), SHAPE(1, 1, 2));
    y = tensor_baddbmm(tensor_ones(SHAPE(1, 2, 2), TENSOR_F64), tensor_ones(SHAPE(1, 2, 1), TENSOR_F64), m,
                       .alpha = 0);
    for (int i = 0; i < 2; i++)
        assert_true(tensor_get(y, DIMS(0, i, 0)) == 1 && isnan(tensor_get(y, DIMS(0, i, 1))));
    y = tensor_baddbmm_(tensor_zeros(SHAPE(1, 2, 2), TENSOR_F64), tensor_ones(SHAPE(1, 2, 1), TENSOR_F64), m,
                        .alpha = 0);
    assert_true(isnan(tensor_get(y, DIMS(0, 1, 1))));
}

static void halves(void **state)
{
    (void)state;
    static const TensorDtype types[] = { TENSOR_F16, TENSOR_BF16 };
    for (int t = 0; t < 2; t++) {
        Tensor *a = tensor_to(tensor_randn(SHAPE(3, 5, 7), TENSOR_F32), types[t]),
               *b = tensor_to(tensor_randn(SHAPE(4, 7), TENSOR_F32), types[t]);
        Tensor *wide =
            tensor_matmul(tensor_to(a, TENSOR_F64), tensor_transpose(tensor_to(b, TENSOR_F64), 0, 1));
        Tensor *y = tensor_matmul(a, tensor_transpose(b, 0, 1)), *z = tensor_linear(a, b, NULL);
        assert_int_equal(tensor_dtype(y), types[t]);
        assert_true(tensor_allclose(tensor_to(y, TENSOR_F64), wide, types[t] == TENSOR_F16 ? 1e-3 : 8e-3,
                                    1e-6, false));
        assert_true(tensor_equal(y, z));
    }
}

static Tensor *integers(TensorDtype dtype, TensorShape shape, const double *values)
{
    return tensor_to(tensor_from_data(values, shape, TENSOR_F64), dtype);
}

static void expect_integers(Tensor *y, TensorDtype dtype, const double *values)
{
    assert_non_null(y);
    assert_int_equal(tensor_dtype(y), dtype);
    assert_true(tensor_equal(y, integers(dtype, tensor_shape(y), values)));
}

/* The numbers are PyTorch's: sums wrap to the width. */
static void integers_wrap(void **state)
{
    (void)state;
    static const double a[] = { 1, -2, 3, 4, 5, -6 }, b[] = { 7, 8, 9, 10, 11, 12 }, x[] = { 100, 200 },
                        big[] = { 1 << 20, 1 << 20, 3, 1 };
    static const double product[] = { 22, 24, 7, 10 }, sum[] = { 134, 328, 179, 370 },
                        affine[] = { 122, 224, 107, 210 }, bytes[] = { 250, 27 };
    static const double wrapped[] = { 3 << 20, 1 << 20, (3 << 20) + 3, (3 << 20) + 1 },
                        byte_a[] = { 100, 50, 7, 250 }, byte_b[] = { 3, 255 };
    Tensor *m = integers(TENSOR_I64, SHAPE(2, 3), a), *n = integers(TENSOR_I64, SHAPE(3, 2), b),
           *v = integers(TENSOR_I64, SHAPE(2), x);
    expect_integers(tensor_matmul(m, n), TENSOR_I64, product);
    expect_integers(tensor_addmm(v, m, n, .beta = 2, .alpha = -3), TENSOR_I64, sum);
    expect_integers(tensor_linear(m, tensor_transpose(n, 0, 1), v), TENSOR_I64, affine);
    expect_integers(
        tensor_mv(integers(TENSOR_U8, SHAPE(2, 2), byte_a), integers(TENSOR_U8, SHAPE(2), byte_b)), TENSOR_U8,
        bytes);
    Tensor *wide = integers(TENSOR_I32, SHAPE(2, 2), big);
    expect_integers(tensor_mm(wide, wide), TENSOR_I32, wrapped);
}

static void longest_chain(void **state)
{
    (void)state;
    Tensor *shear = tensor_from_data((double[]){ 1, 1, 0, 1 }, SHAPE(2, 2), TENSOR_F64), *all[OP_MAX_INPUTS];
    for (int i = 0; i < OP_MAX_INPUTS; i++) all[i] = shear;
    Tensor *y = tensor_chain_matmul(TENSOR_LIST(all, OP_MAX_INPUTS));
    assert_true(tensor_get(y, DIMS(0, 1)) == OP_MAX_INPUTS && tensor_get(y, DIMS(1, 1)) == 1);
}

/* Sizes around those of tiles, pieces and dot products; in double such sums are exact. */
static void integers_of_all_sizes(void **state)
{
    (void)state;
    static const TensorDtype types[] = { TENSOR_I64, TENSOR_I32, TENSOR_U8 };
    static const int64_t m[] = { 1, 3, 4, 9 }, n[] = { 1, 8, 9, 16, 35 }, k[] = { 0, 1, 40, 255, 256, 515 };
    for (int c = 0; c < 3 * 4 * 5 * 6 * 2; c++) {
        TensorScope here = tensor_scope_open();
        const TensorDtype dtype = types[c % 3];
        const int64_t rows = m[c / 3 % 4], cols = n[c / 12 % 5], depth = k[c / 60 % 6];
        Tensor *a = tensor_to(tensor_randint(0, 4, SHAPE(2, rows, depth)), dtype),
               *b = tensor_to(tensor_randint(0, 4, SHAPE(2, depth, cols)), dtype);
        if (c >= 360) /* other strides */
            a = tensor_transpose(tensor_contiguous(tensor_transpose(a, 1, 2)), 1, 2),
            b = tensor_transpose(tensor_contiguous(tensor_transpose(b, 1, 2)), 1, 2);
        Tensor *d = tensor_to(tensor_randint(0, 9, SHAPE(2, rows, cols)), dtype),
               *wide = tensor_matmul(tensor_to(a, TENSOR_F64), tensor_to(b, TENSOR_F64));
        wide = tensor_add(tensor_mul_scalar(tensor_to(d, TENSOR_F64), 3), tensor_mul_scalar(wide, 2));
        Tensor *y = tensor_baddbmm(d, a, b, .beta = 3, .alpha = 2);
        assert_true(tensor_equal(y, tensor_to(tensor_to(wide, TENSOR_I64), dtype)));
        tensor_scope_close(here);
    }
}

/* Numbers of all 64 bits: products and sums modulo 2^64, then modulo 2 to the dtype's width. */
static void integers_wrap_in_all_sizes(void **state)
{
    (void)state;
    static const TensorDtype types[] = { TENSOR_I64, TENSOR_I32, TENSOR_U8 };
    static const int64_t m[] = { 1, 6 }, n[] = { 1, 3, 8, 19 }, k[] = { 5, 70, 300 };
    for (int c = 0; c < 2 * 4 * 3; c++) {
        TensorScope here = tensor_scope_open();
        const int64_t rows = m[c % 2], cols = n[c / 2 % 4], depth = k[c / 8];
        Tensor *a = tensor_zeros(SHAPE(rows, depth), TENSOR_I64),
               *b = tensor_zeros(SHAPE(depth, cols), TENSOR_I64),
               *y = tensor_zeros(SHAPE(rows, cols), TENSOR_I64);
        int64_t *x = tensor_data(a), *z = tensor_data(b), *sum = tensor_data(y);
        for (int64_t i = 0; i < rows * depth; i++) pick(0, 1), x[i] = (int64_t)(seed ^ seed >> 32);
        for (int64_t i = 0; i < depth * cols; i++) pick(0, 1), z[i] = (int64_t)(seed ^ seed >> 32);
        for (int64_t i = 0; i < rows * cols * depth; i++) {
            const int64_t p = i % depth, at = i / depth, row = at / cols, col = at % cols;
            sum[at] =
                (int64_t)((uint64_t)sum[at] + (uint64_t)x[row * depth + p] * (uint64_t)z[p * cols + col]);
        }
        for (int t = 0; t < 3; t++)
            assert_true(tensor_equal(tensor_mm(tensor_to(a, types[t]), tensor_to(b, types[t])),
                                     tensor_to(y, types[t])));
        tensor_scope_close(here);
    }
}

static void same_bits_for_threads(void **state)
{
    (void)state;
    Tensor *x = tensor_randn(SHAPE(3, 150, 310), TENSOR_F32), *w = tensor_randn(SHAPE(90, 310), TENSOR_F32),
           *b = tensor_randn(SHAPE(90), TENSOR_F32);
    Tensor *y[2], *dw[2], *dx[2], *one = tensor_ones(SHAPE(3, 150, 90), TENSOR_F32);
    const int threads = tensor_num_threads();
    for (int i = 0; i < 2; i++) {
        tensor_set_num_threads(i ? 5 : 1);
        Tensor *xl = tensor_requires_grad_(tensor_detach(x), true),
               *wl = tensor_requires_grad_(tensor_detach(w), true);
        y[i] = tensor_linear(xl, wl, b);
        dx[i] = tensor_gradients(y[i], xl, .grad_output = one, .retain_graph = true);
        dw[i] = tensor_gradients(y[i], wl, .grad_output = one);
    }
    tensor_set_num_threads(threads);
    assert_true(same_bits(y[0], y[1]));
    assert_true(same_bits(dx[0], dx[1]));
    assert_true(same_bits(dw[0], dw[1]));
}

/* linear_act has the bits of linear and the activation, in any layout and on any number of threads; its
 * gradients, too.  Halves are those of f32, rounded once. */
static Tensor *both_ways(TensorDtype dtype, Tensor *x, Tensor *w, Tensor *b, int f, bool apart, Tensor **dx)
{
    Tensor *in[3] = { tensor_to(x, dtype), tensor_to(w, dtype), b ? tensor_to(b, dtype) : NULL };
    for (int i = 0; i < 3 && in[i]; i++) tensor_requires_grad_(in[i] = tensor_detach(in[i]), true);
    Tensor *y = apart ? tensor_linear(in[0], in[1], in[2])
                      : tensor_linear_act(in[0], in[1], in[2], (TensorActivation)f);
    if (apart && f == TENSOR_ACT_RELU) y = tensor_relu(y);
    else if (apart)
        y = tensor_gelu(y, .approximate = f == TENSOR_ACT_GELU ? TENSOR_GELU_EXACT : TENSOR_GELU_TANH);
    assert_int_equal(tensor_backward(tensor_sum(tensor_mul(y, tensor_detach(y)))), 0);
    for (int i = 0; i < 3; i++) dx[i] = in[i] ? tensor_grad(in[i]) : NULL;
    return tensor_detach(y);
}

static void linear_with_an_activation(void **state)
{
    (void)state;
    const int threads = tensor_num_threads();
    for (int turn = 0; turn < 60; turn++) {
        const int64_t in = pick(1, 70), out = pick(1, 90);
        const TensorDtype dtype = turn % 2 ? TENSOR_F32 : TENSOR_F64;
        Tensor *x = operand(turn % 3 ? SHAPE(pick(1, 120), in) : SHAPE(pick(1, 4), pick(1, 30), in)),
               *w = operand(SHAPE(out, in)), *b = turn % 4 ? tensor_randn(SHAPE(out), TENSOR_F64) : NULL;
        Tensor *want_dx[3], *dx[3], *want = both_ways(dtype, x, w, b, turn % 3, true, want_dx), *y;
        tensor_set_num_threads(turn % 5 ? 1 : 5);
        y = both_ways(dtype, tensor_contiguous(x), w, b, turn % 3, false, dx);
        tensor_set_num_threads(threads);
        assert_true(same_bits(y, want));
        for (int i = 0; i < 3; i++)
            assert_true(!dx[i] == !want_dx[i] && (!dx[i] || same_bits(dx[i], want_dx[i])));
        Tensor *narrow[3] = { tensor_to(x, TENSOR_BF16), tensor_to(w, TENSOR_BF16),
                              b ? tensor_to(b, TENSOR_BF16) : NULL };
        want = tensor_linear_act(tensor_to(narrow[0], TENSOR_F32), tensor_to(narrow[1], TENSOR_F32),
                                 b ? tensor_to(narrow[2], TENSOR_F32) : NULL, (TensorActivation)(turn % 3));
        TENSOR_NO_GRAD
            y = tensor_linear_act(narrow[0], narrow[1], narrow[2], (TensorActivation)(turn % 3));
        assert_true(same_bits(y, tensor_to(want, TENSOR_BF16)));
    }
    assert_null(tensor_linear_act(tensor_ones(SHAPE(2, 3), TENSOR_F32), tensor_ones(SHAPE(4, 3), TENSOR_F32),
                                  NULL, (TensorActivation)3));
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
}

/* Few rows, few columns, short and long lines: widened a piece at a time, whatever the layout. */
static void thin_halves(void **state)
{
    static const int64_t size[][3] = { { 1, 1, 100000 }, { 3, 2, 70000 },  { 1, 3, 40000 }, { 40000, 2, 20 },
                                       { 2, 5000, 3 },   { 300, 400, 1 },  { 5000, 4, 4 },  { 1, 4, 65536 },
                                       { 2, 3000, 700 }, { 700, 1, 3000 }, { 200, 3, 2000 } };
    static const TensorDtype types[] = { TENSOR_F16, TENSOR_BF16 };
    (void)state;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
            const int64_t m = size[i][0], n = size[i][1], k = size[i][2];
            const double eps = types[t] == TENSOR_F16 ? 0x1.01p-11 : 0x1.01p-8;
            Tensor *a = tensor_randn(SHAPE(m, k), types[t]), *b = tensor_randn(SHAPE(k, n), types[t]);
            Tensor *bias = tensor_randn(SHAPE(n), types[t]);
            Tensor *wide = tensor_matmul(tensor_to(a, TENSOR_F64), tensor_to(b, TENSOR_F64));
            Tensor *y = tensor_matmul(a, b), *z = tensor_linear(a, tensor_t(b), bias);
            assert_true(tensor_allclose(tensor_to(y, TENSOR_F64), wide, eps, 1e-3, false));
            wide = tensor_add(wide, tensor_to(bias, TENSOR_F64));
            assert_true(tensor_allclose(tensor_to(z, TENSOR_F64), wide, eps, 1e-3, false));
            Tensor *columns = tensor_t(tensor_contiguous(tensor_t(a))), *rows = tensor_flip(b, SHAPE(0));
            assert_true(tensor_equal(tensor_matmul(columns, tensor_flip(rows, SHAPE(0))), y));
            assert_true(tensor_equal(tensor_matmul(columns, tensor_t(tensor_contiguous(tensor_t(b)))), y));
            Tensor *batch = tensor_bmm(tensor_stack(TENSORS(a, a), 0), tensor_expand(b, SHAPE(2, k, n)));
            assert_true(tensor_allclose(batch, tensor_stack(TENSORS(y, y), 0), eps, 1e-3, false));
        }
}

static void assert_refused(Tensor *y, const char *words)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    if (!strstr(tensor_error(), words)) fail_msg("\"%s\" is not in \"%s\"", words, tensor_error());
    tensor_error_clear();
}

static void refusals(void **state)
{
    (void)state;
    Tensor *a = tensor_ones(SHAPE(64, 784), TENSOR_F32), *b = tensor_ones(SHAPE(128, 10), TENSOR_F32);
    Tensor *c = tensor_ones(SHAPE(2, 3, 4), TENSOR_F32), *d = tensor_ones(SHAPE(5, 4, 3), TENSOR_F32);
    assert_refused(tensor_matmul(a, b),
                   "tensor_matmul: [64, 784] times [128, 10]: the inner sizes 784 and 128 differ");
    assert_refused(tensor_matmul(c, d),
                   "tensor_matmul: [2, 3, 4] times [5, 4, 3]: the batches [2] and [5] do not broadcast");
    assert_refused(tensor_mm(c, d), "tensor_mm: [2, 3, 4] times [5, 4, 3]: want ranks 2 and 2");
    assert_refused(tensor_linear(a, b, NULL), "the input has 784 features, the weight takes 10");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(random_products),
        TEST(one_tensor_twice),
        TEST(what_is_not_read),
        TEST(halves),
        TEST(thin_halves),
        TEST(integers_wrap),
        TEST(longest_chain),
        TEST(integers_of_all_sizes),
        TEST(integers_wrap_in_all_sizes),
        TEST(alpha_0_multiplies),
        TEST(same_bits_for_threads),
        TEST(refusals),
        TEST(linear_with_an_activation),
    };
    return cmocka_run_group_tests_name("matmul", tests, NULL, NULL);
}
