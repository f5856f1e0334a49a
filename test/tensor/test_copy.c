/* test_copy.c - copies between all dtypes and layouts against the plainest loop, and fill, cast, contiguous.
 */
#include "tensor/core.h"
#include "device/half.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <tapegrad/debug.h>
#include <tapegrad/device.h>
#include "unchecked.h"

/* ---- the reference: one element, by the rules of copy.c's head ------------------------------- */

typedef union Value {
    float f32;
    double f64;
    uint16_t half;
    int64_t i64;
    int32_t i32;
    uint8_t u8;
} Value;

static UNCHECKED void load(const Value *v, int dtype, double *real, int64_t *whole)
{
    *whole = 0;
    switch (dtype) {
    case TENSOR_F32: *real = (double)v->f32; break;
    case TENSOR_F64: *real = v->f64; break;
    case TENSOR_F16: *real = (double)f16_to_f32(v->half); break;
    case TENSOR_BF16: *real = (double)bf16_to_f32(v->half); break;
    case TENSOR_I64: *whole = v->i64; break;
    case TENSOR_I32: *whole = v->i32; break;
    default: *whole = v->u8; break;
    }
    if (!dtype_is_float(dtype)) *real = (double)*whole;
}

static UNCHECKED int64_t truncated(double x, double limit)
{
    x = trunc(x);
    return x >= -limit && x < limit ? (int64_t)x : (int64_t)-limit;
}

static UNCHECKED Value cast(Value v, int from, int to)
{
    double real;
    int64_t whole;
    Value y = { .i64 = 0 };
    load(&v, from, &real, &whole);
    bool is_float = dtype_is_float(from);
    switch (to) {
    case TENSOR_F32: y.f32 = is_float ? (float)real : (float)whole; break;
    case TENSOR_F64: y.f64 = real; break;
    case TENSOR_F16: y.half = f16_from_f64(real); break;
    case TENSOR_BF16: y.half = bf16_from_f64(real); break;
    case TENSOR_I64: y.i64 = is_float ? truncated(real, 0x1p63) : whole; break;
    case TENSOR_I32: y.i32 = is_float ? (int32_t)truncated(real, 0x1p31) : (int32_t)(uint32_t)whole; break;
    case TENSOR_U8: y.u8 = (uint8_t)(is_float ? truncated(real, 0x1p63) : whole); break;
    default: y.u8 = is_float ? real != 0 : whole != 0; break;
    }
    return y;
}

static UNCHECKED Value element(const Tensor *x, const int64_t *index)
{
    Value v = { .i64 = 0 };
    const char *at = x->data;
    for (int d = 0; d < x->ndim; d++) at += index[d] * x->stride[d] * (int64_t)dtype_size(x->dtype);
    memcpy(&v, at, dtype_size(x->dtype));
    return v;
}

/* dst is the cast of src, element by element; NaNs count as one. */
static UNCHECKED void check(const Tensor *dst, const Tensor *src)
{
    int64_t index[TENSOR_MAX_DIMS] = { 0 };
    assert_true(shape_equal(shape_of(dst), shape_of(src)));
    for (int64_t i = 0; i < dst->numel; i++) {
        Value got = element(dst, index), in = element(src, index), want = cast(in, src->dtype, dst->dtype);
        double a, b;
        int64_t n;
        load(&got, dst->dtype, &a, &n);
        load(&want, dst->dtype, &b, &n);
        if (!isnan(a) || !isnan(b)) assert_memory_equal(&got, &want, dtype_size(dst->dtype));
        for (int d = dst->ndim - 1; d >= 0 && ++index[d] == dst->shape[d]; d--) index[d] = 0;
    }
}

static Tensor *empty(TensorShape shape, int dtype) { return own(new_tensor(shape, dtype, &cpu_place)); }

/* Numbers that every dtype can show, in an order that repeats late. */
static UNCHECKED Tensor *numbered(TensorShape shape, int dtype)
{
    Tensor *x = empty(shape, dtype);
    Value v = { .i64 = 0 };
    for (int64_t i = 0; i < x->numel; i++) {
        v.i64 = i % 251;
        Value y = cast(v, TENSOR_I64, dtype);
        memcpy((char *)x->data + i * (int64_t)dtype_size(dtype), &y, dtype_size(dtype));
    }
    return x;
}

static Tensor *permuted(const Tensor *x, const int *order)
{
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[order[d]], stride[d] = x->stride[order[d]];
    return own(new_view(x, x->ndim, shape, stride, 0));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void all_pairs(void **state)
{
    (void)state;
    static const double values[] = { 0,
                                     -0.0,
                                     1,
                                     -1,
                                     0.5,
                                     -0.5,
                                     0.99999999,
                                     -0.99999999,
                                     2.5,
                                     -2.5,
                                     100.7,
                                     -100.7,
                                     127,
                                     128,
                                     255,
                                     256,
                                     300,
                                     -300,
                                     2047,
                                     2049,
                                     65504,
                                     65519.99,
                                     65520,
                                     -65520,
                                     1e5,
                                     16777217,
                                     33554435,
                                     2147483520,
                                     2147483647,
                                     2147483648,
                                     -2147483648.0,
                                     -2147483648.9,
                                     -2147483649.0,
                                     4294967295,
                                     4294967296,
                                     5e9,
                                     -5e9,
                                     9007199254740992,
                                     9223372036854774784.0,
                                     9223372036854775808.0,
                                     -9223372036854775808.0,
                                     1e19,
                                     -1e19,
                                     1e300,
                                     -1e300,
                                     1e-300,
                                     5e-324,
                                     1e-40,
                                     -1e-40,
                                     1e-8,
                                     6e-8,
                                     2.98e-8,
                                     1.0009765625,
                                     1.00048828125,
                                     1.00048828126,
                                     1.0004882812500001,
                                     1.00390625,
                                     1.00390625000001,
                                     3.4028235677973366e38,
                                     3.4e38,
                                     (double)INFINITY,
                                     -(double)INFINITY,
                                     (double)NAN };
    enum { N = sizeof values / sizeof *values };
    for (int from = 0; from < TENSOR_DTYPES; from++)
        for (int to = 0; to < TENSOR_DTYPES; to++) {
            TensorScope scope = tensor_scope_open();
            Tensor *src = empty(SHAPE(N), from), *dst = empty(SHAPE(N), to);
            for (int i = 0; i < N; i++) {
                Value v = cast((Value){ .f64 = values[i] }, TENSOR_F64, from);
                memcpy((char *)src->data + (size_t)i * dtype_size(from), &v, dtype_size(from));
            }
            assert_int_equal(raw_copy(dst, src), 0);
            check(dst, src);
            for (int64_t step = 2; step < 4; step++) { /* strided lines are other loops */
                Tensor *sparse = own(new_view(src, 1, SHAPE(N / step).dim, &step, 1));
                Tensor *dense = own(new_view(dst, 1, sparse->shape, SHAPE(1).dim, 0));
                assert_int_equal(raw_copy(dense, sparse), 0);
                check(dense, sparse);
                Tensor *spread = own(new_view(dst, 1, sparse->shape, &step, 1));
                assert_int_equal(raw_copy(spread, sparse), 0);
                check(spread, sparse);
            }
            tensor_scope_close(scope);
        }
    assert_null(tensor_error());
}

static void layouts(void **state)
{
    (void)state;
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    static const int64_t shapes[][3] = { { 2, 3, 4 },   { 1, 70, 131 }, { 3, 9, 65 }, { 130, 3, 67 },
                                         { 5, 200, 8 }, { 64, 2, 64 },  { 0, 3, 9 },  { 33, 1, 300 },
                                         { 1, 1, 1 },   { 300, 2, 2 } };
    static const int pairs[][2] = { { TENSOR_F32, TENSOR_F32 },  { TENSOR_F64, TENSOR_F64 },
                                    { TENSOR_F16, TENSOR_F16 },  { TENSOR_U8, TENSOR_U8 },
                                    { TENSOR_F32, TENSOR_BF16 }, { TENSOR_BOOL, TENSOR_F64 },
                                    { TENSOR_I64, TENSOR_U8 } };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
            for (int in = 0; in < 6; in++)
                for (int out = 0; out < 6; out++) {
                    TensorScope scope = tensor_scope_open();
                    Tensor *src = permuted(numbered((TensorShape){ 3, shapes[s] }, pairs[p][0]), orders[in]);
                    int64_t shape[3]; /* so that dst, permuted, has src's shape */
                    for (int d = 0; d < 3; d++) shape[orders[out][d]] = src->shape[d];
                    Tensor *dst = permuted(empty((TensorShape){ 3, shape }, pairs[p][1]), orders[out]);
                    assert_int_equal(raw_copy(dst, src), 0);
                    check(dst, src);
                    tensor_scope_close(scope);
                }
    assert_null(tensor_error());
}

static void slices_and_flips(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < TENSOR_DTYPES; dtype++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = numbered(SHAPE(20, 30), dtype), *y = numbered(SHAPE(40, 50), TENSOR_F32);
        Tensor *slice = own(new_view(x, 2, SHAPE(9, 11).dim, SHAPE(60, 2).dim, 31));
        Tensor *flip = own(new_view(x, 2, SHAPE(9, 11).dim, SHAPE(-30, -1).dim, 599));
        Tensor *there = own(new_view(y, 2, SHAPE(9, 11).dim, SHAPE(100, 3).dim, 7));
        Tensor *reversed = own(new_view(y, 2, SHAPE(9, 11).dim, SHAPE(50, -1).dim, 700));
        const Tensor *from[] = { slice, flip };
        Tensor *to[] = { there, reversed };
        for (int i = 0; i < 4; i++) {
            assert_int_equal(raw_copy(to[i / 2], from[i % 2]), 0);
            check(to[i / 2], from[i % 2]);
        }
        assert_true(((float *)y->data)[8] == 8); /* between the elements nothing changed */
        tensor_scope_close(scope);
    }
    assert_null(tensor_error());
}

/* A few elements of each of many rows, next to each other and apart, into rows of another length; and planes
 * turned by a quarter. */
static void short_lines_and_turns(void **state)
{
    (void)state;
    static const int dtypes[][2] = { { TENSOR_F32, TENSOR_F32 }, { TENSOR_F64, TENSOR_F64 },
                                     { TENSOR_U8, TENSOR_U8 },   { TENSOR_F32, TENSOR_F64 },
                                     { TENSOR_F16, TENSOR_F32 }, { TENSOR_F32, TENSOR_F16 } };
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        for (int64_t width = 1; width <= 5; width++)
            for (int64_t step = 1; step <= 3; step++) {
                TensorScope scope = tensor_scope_open();
                const int64_t n = 70, row = 3 * width + 1;
                Tensor *from = numbered(SHAPE(3, n, row), dtypes[k][0]),
                       *into = numbered(SHAPE(3, n, row + 2), dtypes[k][1]),
                       *as_it_was = numbered(shape_of(into), dtypes[k][1]);
                Tensor *src =
                    own(new_view(from, 3, SHAPE(3, n, width).dim, SHAPE(n * row, row, step).dim, 1));
                Tensor *dst = own(new_view(into, 3, src->shape, SHAPE(n * (row + 2), row + 2, 1).dim, 1));
                assert_int_equal(raw_copy(dst, src), 0);
                check(dst, src);
                Tensor *beside = own(new_view(into, 3, SHAPE(3, n, 2).dim, dst->stride, 1 + width)),
                       *before = own(new_view(as_it_was, 3, beside->shape, dst->stride, 1 + width));
                check(beside, before);
                Tensor *plane = numbered(SHAPE(n, 9 * width), dtypes[k][0]);
                Tensor *turned =
                    own(new_view(plane, 2, SHAPE(9 * width, n).dim, SHAPE(-1, 9 * width).dim, 9 * width - 1));
                Tensor *dense = empty(shape_of(turned), dtypes[k][1]);
                assert_int_equal(raw_copy(dense, turned), 0);
                check(dense, turned);
                tensor_scope_close(scope);
            }
}

static void broadcasts(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *row = numbered(SHAPE(7), TENSOR_I32), *column = numbered(SHAPE(40, 1), TENSOR_F32);
    Tensor *y = empty(SHAPE(3, 40, 7), TENSOR_F64);
    int64_t stride[3];
    Tensor *const sources[] = { row, column, numbered(SHAPE(), TENSOR_U8),
                                numbered(SHAPE(3, 1, 7), TENSOR_F16), numbered(SHAPE(1, 1, 1), TENSOR_F64) };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        broadcast_strides(sources[i], shape_of(y), stride);
        Tensor *expanded = own(new_view(sources[i], 3, y->shape, stride, 0));
        assert_int_equal(raw_copy(y, sources[i]), 0);
        check(y, expanded);
    }
    tensor_scope_close(scope);
    assert_null(tensor_error());
}

/* Moving a part of a tensor onto another part of it. */
static void overlapping(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    for (int shift = -3; shift <= 3; shift++) {
        Tensor *x = numbered(SHAPE(50), TENSOR_F32), *before = numbered(SHAPE(50), TENSOR_F32);
        Tensor *dst = own(new_view(x, 1, SHAPE(40).dim, SHAPE(1).dim, 5 + shift));
        assert_int_equal(raw_copy(dst, own(new_view(x, 1, SHAPE(40).dim, SHAPE(1).dim, 5))), 0);
        check(dst, own(new_view(before, 1, SHAPE(40).dim, SHAPE(1).dim, 5)));
    }
    Tensor *square = numbered(SHAPE(9, 9), TENSOR_F32), *before = numbered(SHAPE(9, 9), TENSOR_F32);
    assert_int_equal(raw_copy(square, permuted(square, (int[]){ 1, 0 })), 0);
    check(square, permuted(before, (int[]){ 1, 0 }));
    tensor_scope_close(scope);
    assert_null(tensor_error());
}

static void large_on_several_threads(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = { { 700, 901 }, { 3, 300007 }, { 300007, 2 } };
    int before = tensor_num_threads();
    for (int threads = 1; threads <= 5; threads += 2) {
        tensor_set_num_threads(threads);
        for (int s = 0; s < 3; s++)
            for (int to = 0; to < TENSOR_DTYPES; to += 2) {
                TensorScope scope = tensor_scope_open();
                Tensor *x = numbered((TensorShape){ 2, shapes[s] }, TENSOR_F32),
                       *t = permuted(x, (int[]){ 1, 0 });
                Tensor *y = own(raw_cast(x, to)), *z = own(raw_cast(t, to));
                check(y, x);
                check(z, t);
                assert_int_equal(raw_fill(z, 3), 0);
                for (int64_t i = 0; i < z->numel; i += 997)
                    assert_true(tensor_get(z, SHAPE(i / z->shape[1], i % z->shape[1])) ==
                                (to == TENSOR_BOOL ? 1 : 3));
                tensor_scope_close(scope);
            }
    }
    tensor_set_num_threads(before);
    assert_null(tensor_error());
}

static bool beyond(double value, int dtype)
{
    return dtype == TENSOR_U8    ? value >= 256
           : dtype == TENSOR_I32 ? value >= 0x1p31
           : dtype == TENSOR_I64 ? value >= 0x1p63
                                 : false;
}

static void fills(void **state)
{
    (void)state;
    static const double values[] = { 0, 1, -1, 2.75, 200, 1e10, 65520, (double)INFINITY };
    for (int dtype = 0; dtype < TENSOR_DTYPES; dtype++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            TensorScope scope = tensor_scope_open();
            Tensor *x = empty(SHAPE(5, 13), dtype), *want = empty(SHAPE(), dtype);
            if (beyond(values[i], dtype)) {
                assert_int_equal(raw_fill(x, values[i]), -1);
                assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
                tensor_error_clear();
                tensor_scope_close(scope);
                continue;
            }
            Value v = cast((Value){ .f64 = values[i] }, TENSOR_F64, dtype);
            memcpy(want->data, &v, dtype_size(dtype));
            Tensor *same = own(new_view(want, 2, x->shape, SHAPE(0, 0).dim, 0));
            assert_int_equal(raw_fill(x, values[i]), 0);
            check(x, same);
            assert_int_equal(raw_fill(x, 0), 0);
            Tensor *columns = own(new_view(x, 2, SHAPE(5, 4).dim, SHAPE(13, 3).dim, 1));
            assert_int_equal(raw_fill(columns, values[i]), 0);
            check(columns, own(new_view(want, 2, columns->shape, SHAPE(0, 0).dim, 0)));
            assert_true(tensor_get(x, SHAPE(2, 2)) == 0);
            tensor_scope_close(scope);
        }
    assert_null(tensor_error());
}

static void contiguous_and_cast(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = numbered(SHAPE(4, 6), TENSOR_F32), *t = permuted(x, (int[]){ 1, 0 });
    assert_ptr_equal(own(raw_contiguous(x)), x);
    assert_ptr_equal(own(raw_cast(x, TENSOR_F32)), x);
    Tensor *dense = own(raw_contiguous(t)), *halves = own(raw_cast(t, TENSOR_F16));
    assert_true(tensor_is_contiguous(dense) && tensor_is_contiguous(halves));
    check(dense, t);
    check(halves, t);
    tensor_scope_close(scope);
}

static void sums(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_ones(SHAPE(2, 3, 4), TENSOR_F32);
    static const int64_t shapes[][3] = { { 3, 4 },    { 3, 1 }, { 1, 4 }, { 1, 1 }, { 2, 3, 1 },
                                         { 1, 3, 4 }, { 4 },    { 1 },    { 0 } };
    static const int ndims[] = { 2, 2, 2, 2, 3, 3, 1, 1, 0 };
    assert_ptr_equal(own(raw_sum_to(x, shape_of(x))), x);
    for (int i = 0; i < 9; i++) {
        TensorShape shape = { ndims[i], shapes[i] };
        Tensor *sum = own(raw_sum_to(x, shape));
        double want = 24.0 / (double)shape_count(shape);
        assert_true(shape_equal(shape_of(sum), shape));
        assert_true(tensor_equal(sum, tensor_full(shape, want, TENSOR_F32)));
    }
    Tensor *none = own(raw_sum_to(tensor_ones(SHAPE(0, 3), TENSOR_F32), SHAPE(3)));
    assert_true(tensor_equal(none, tensor_zeros(SHAPE(3), TENSOR_F32)));
    tensor_scope_close(scope);
    assert_null(tensor_error());
}

/* ---- between devices: two that are the CPU under another name, and can fail ------------------ */

static int transfers, broken;

static int transfer(DeviceContext *none, void *dst, const void *src, size_t bytes)
{
    (void)none;
    transfers++;
    if (broken) return -1;
    memcpy(dst, src, bytes);
    return 0;
}

static const char *why(DeviceContext *none)
{
    (void)none;
    return "the cable is cut";
}

static Device fake_device(void)
{
    Device d = cpu_device;
    d.name = "fake", d.to_host = d.to_device = transfer, d.error = why;
    return d;
}

static void between_devices(void **state)
{
    (void)state;
    Device near = fake_device(), far = fake_device();
    const Place places[] = { { &near, NULL, 0, "near:0" }, { &far, NULL, 1, "far:1" } };
    const Place *const at[] = { &cpu_place, &places[0], &places[1] };
    static const int dtypes[] = { TENSOR_F32, TENSOR_BF16, TENSOR_F64 };
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++)
            for (int d = 0; d < 9; d++) {
                TensorScope scope = tensor_scope_open();
                Tensor *x = numbered(SHAPE(9, 5), dtypes[d / 3]),
                       *src = own(new_tensor(shape_of(x), x->dtype, at[from]));
                Tensor *dst = own(new_tensor(SHAPE(2, 5, 9), dtypes[d % 3], at[to]));
                assert_int_equal(raw_copy(src, x), 0);
                transfers = 0;
                Tensor *t = permuted(src, (int[]){ 1, 0 });
                assert_int_equal(raw_copy(dst, t), 0);
                assert_int_equal(transfers, from == to ? 0 : from && to ? 2 : 1);
                check(own(new_view(dst, 2, t->shape, SHAPE(9, 1).dim, 45)), t);
                tensor_scope_close(scope);
            }
    assert_null(tensor_error());

    TensorScope scope = tensor_scope_open();
    Tensor *x = numbered(SHAPE(3), TENSOR_F32), *y = own(new_tensor(SHAPE(3), TENSOR_F32, at[1])),
           *z = own(new_tensor(SHAPE(3), TENSOR_F32, at[2]));
    Tensor *const pairs[][2] = { { x, y }, { y, x }, { y, z } };
    int64_t living = tensor_live_count();
    broken = 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(raw_copy(pairs[i][0], pairs[i][1]), -1);
        assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
        assert_non_null(strstr(tensor_error(), "the cable is cut"));
        tensor_error_clear();
    }
    broken = 0;
    assert_int_equal(tensor_live_count(), living);
    near.copy = NULL;
    assert_int_equal(raw_copy(y, own(new_view(y, 1, SHAPE(3).dim, SHAPE(0).dim, 0))), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EDEVICE);
    tensor_error_clear();
    tensor_scope_close(scope);
}

/* Every request for memory fails once: the error says so, nothing leaks. */
static void out_of_memory(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 50; n++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = numbered(SHAPE(30, 40), TENSOR_F64), *t = permuted(x, (int[]){ 1, 0 });
        Tensor *square = numbered(SHAPE(40, 40), TENSOR_F32), *other = permuted(square, (int[]){ 1, 0 });
        int64_t living = tensor_live_count();
        tensor_debug_fail_allocation(n, true);
        Tensor *a = raw_contiguous(t), *b = raw_cast(t, TENSOR_F32);
        int status = raw_copy(square, other);
        bool failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_true(failed == (!a || !b || status < 0));
        assert_int_equal(tensor_error_code(), failed ? TENSOR_ENOMEM : TENSOR_OK);
        tensor_error_clear();
        tensor_release(a);
        tensor_release(b);
        assert_int_equal(tensor_live_count(), living);
        tensor_scope_close(scope);
        if (!failed) return;
    }
    assert_true(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pairs),
        cmocka_unit_test(layouts),
        cmocka_unit_test(slices_and_flips),
        cmocka_unit_test(short_lines_and_turns),
        cmocka_unit_test(broadcasts),
        cmocka_unit_test(overlapping),
        cmocka_unit_test(large_on_several_threads),
        cmocka_unit_test(fills),
        cmocka_unit_test(contiguous_and_cast),
        cmocka_unit_test(sums),
        cmocka_unit_test(between_devices),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
