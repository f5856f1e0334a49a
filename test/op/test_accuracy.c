/* test_accuracy.c - long reductions in f32 against f64: over 10^7 elements, all at once and by rows and
 * columns, dense and strided, each result is within ULPS units in the last place of what the same values give
 * in f64. Under a checker, which makes everything slow, there are fewer elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include "checker.h"

enum { ULPS = 4, ROWS = 10, COUNT = UNDER_CHECKER ? 100000 : 10000000 };

/* ---- values ---------------------------------------------------------------------------------- */

typedef enum Kind { UNIFORM, NORMAL, ALTERNATING, EQUAL, KINDS } Kind;
static const char *const kind_name[KINDS] = { "uniform", "normal", "alternating", "all 0.1" };

static Tensor *values_of(Kind kind)
{
    tensor_manual_seed(7);
    if (kind == UNIFORM) return tensor_rand(SHAPE(COUNT), TENSOR_F32);
    if (kind == NORMAL) return tensor_randn(SHAPE(COUNT), TENSOR_F32);
    Tensor *x = tensor_full(SHAPE(COUNT), 0.1, TENSOR_F32);
    float *v = tensor_data(x);
    for (int64_t i = 0; kind == ALTERNATING && i < COUNT; i++)
        v[i] = i % 2 ? 1e-3f * (float)(i % 7) : 1e3f + (float)(i % 11);
    return x;
}

/* Of the same shape and values; every second element of twice the memory. */
static Tensor *spread(Tensor *x)
{
    Tensor *twice = tensor_unsqueeze(x, -1);
    return tensor_select(tensor_cat(TENSORS(twice, twice), -1), -1, 0);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double unit(double v)
{
    const float f = fabsf((float)v);
    return (double)nextafterf(f, INFINITY) - (double)f;
}

static void compare(Tensor *y, Tensor *exact, double floor, const char *what, Kind kind, const char *layout)
{
    double worst = 0;
    assert_non_null(y);
    assert_non_null(exact);
    const int64_t n = tensor_numel(y);
    assert_int_equal(n, tensor_numel(exact));
    y = tensor_contiguous(y), exact = tensor_contiguous(exact);
    const float *a = tensor_data(y);
    const double *b = tensor_data(exact);
    for (int64_t i = 0; i < n; i++) {
        const double off = fabs((double)a[i] - b[i]) / unit(fmax(fabs(b[i]), floor));
        if (!(off <= worst)) worst = off;
    }
    if (worst <= ULPS) return;
    fail_msg("%s of %s values, %s: off by %.1f ulp", what, kind_name[kind], layout, worst);
}

/* ---- reductions ------------------------------------------------------------------------------ */

static Tensor *sum(Tensor *x, int dim) { return tensor_sum(x, dim); }
static Tensor *mean(Tensor *x, int dim) { return tensor_mean(x, dim); }
static Tensor *var(Tensor *x, int dim) { return tensor_var(x, dim); }
static Tensor *std(Tensor *x, int dim) { return tensor_std(x, dim); }
static Tensor *norm_1(Tensor *x, int dim) { return tensor_norm(x, 1, dim); }
static Tensor *norm_2(Tensor *x, int dim) { return tensor_norm(x, 2, dim); }
static Tensor *norm_3(Tensor *x, int dim) { return tensor_norm(x, 3, dim); }
static Tensor *norm_inf(Tensor *x, int dim) { return tensor_norm(x, INFINITY, dim); }
static Tensor *logsumexp(Tensor *x, int dim) { return tensor_logsumexp(x, dim); }

static const struct {
    const char *name;
    Tensor *(*f)(Tensor *x, int dim);
} reductions[] = {
    { "sum", sum },       { "mean", mean },         { "var", var },
    { "std", std },       { "norm 1", norm_1 },     { "norm 2", norm_2 },
    { "norm 3", norm_3 }, { "norm inf", norm_inf }, { "logsumexp", logsumexp },
};

/* What cannot be told from 0: the variance of equal values, whose mean is rounded. */
static double floor_of(const char *name, double largest)
{
    return strcmp(name, "var") == 0   ? largest * largest * FLT_EPSILON * FLT_EPSILON
           : strcmp(name, "std") == 0 ? largest * FLT_EPSILON
                                      : 0;
}

static void check_reductions(Tensor *x, Kind kind, const char *layout, int dim)
{
    Tensor *wide = tensor_to(x, TENSOR_F64);
    const double largest = tensor_item(tensor_norm(wide, INFINITY));
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        TensorScope scope = tensor_scope_open();
        compare(reductions[i].f(x, dim), reductions[i].f(wide, dim), floor_of(reductions[i].name, largest),
                reductions[i].name, kind, layout);
        tensor_scope_close(scope);
    }
}

static void each_kind(void (*check)(Tensor *x, Kind kind))
{
    for (int kind = 0; kind < KINDS; kind++) {
        TensorScope scope = tensor_scope_open();
        check(values_of((Kind)kind), (Kind)kind);
        assert_null(tensor_error());
        tensor_scope_close(scope);
    }
}

static void whole(Tensor *x, Kind kind)
{
    check_reductions(x, kind, "all", TENSOR_ALL);
    check_reductions(spread(x), kind, "all, strided", TENSOR_ALL);
}

/* Of the kinds that are hard: sums that cancel, and terms of different sizes. */
static void parts(Tensor *x, Kind kind)
{
    if (kind != NORMAL && kind != ALTERNATING) return;
    Tensor *rows = tensor_reshape(x, SHAPE(ROWS, -1)), *columns = tensor_reshape(x, SHAPE(-1, ROWS));
    check_reductions(rows, kind, "long rows", 1);
    check_reductions(columns, kind, "long columns", 0);
    check_reductions(tensor_transpose(columns, 0, 1), kind, "long strided rows", 1);
}

static void test_reductions_of_all(void **state)
{
    (void)state;
    each_kind(whole);
}

static void test_reductions_along_a_dim(void **state)
{
    (void)state;
    each_kind(parts);
}

/* ---- results of the size of x ---------------------------------------------------------------- */

/* What f64 itself makes of log(1 + v) for a smaller v is worse than 4 units of f32. */
#define LOG_FLOOR 0x1p-28

static void check_softmax(Tensor *x, int dim, Kind kind, const char *layout)
{
    TensorScope scope = tensor_scope_open();
    Tensor *wide = tensor_to(x, TENSOR_F64);
    compare(tensor_softmax(x, dim), tensor_softmax(wide, dim), 0, "softmax", kind, layout);
    compare(tensor_log_softmax(x, dim), tensor_log_softmax(wide, dim), LOG_FLOOR, "log_softmax", kind,
            layout);
    tensor_scope_close(scope);
}

static void softmaxes(Tensor *x, Kind kind)
{
    check_softmax(tensor_reshape(x, SHAPE(ROWS, -1)), 1, kind, "long rows");
    check_softmax(tensor_reshape(x, SHAPE(-1, ROWS)), 0, kind, "long columns");
    check_softmax(spread(x), 0, kind, "all, strided");
}

static void test_softmax(void **state)
{
    (void)state;
    each_kind(softmaxes);
}

/* Small probabilities, and rows that one element rules: what is left of log 1 is as good as what is left of
 * f64's. */
static void test_softmax_of_wide_values(void **state)
{
    (void)state;
    const double widths[] = { .01, 5, 40, 1000 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_add_scalar(
            tensor_mul_scalar(tensor_randn(SHAPE(COUNT / 100), TENSOR_F32), widths[i]), widths[i] / 3);
        check_softmax(tensor_reshape(x, SHAPE(ROWS, -1)), 1, NORMAL, "wide rows");
        check_softmax(tensor_reshape(x, SHAPE(-1, ROWS, ROWS)), 1, NORMAL, "wide short columns");
        const float values[] = { .1f, -8.03f, -9.77f, -12.1f, -13.19f };
        Tensor *ruled = tensor_from_data(values, SHAPE(1, 5), TENSOR_F32);
        check_softmax(ruled, 1, NORMAL, "ruled by one");
        check_softmax(tensor_transpose(tensor_cat(TENSORS(ruled, ruled, ruled), 0), 0, 1), 0, NORMAL,
                      "columns ruled by one");
        assert_null(tensor_error());
        tensor_scope_close(scope);
    }
}

static void running_sums(Tensor *x, Kind kind)
{
    Tensor *columns = tensor_reshape(x, SHAPE(-1, ROWS));
    compare(tensor_select(tensor_cumsum(x, 0), 0, -1), tensor_sum(tensor_to(x, TENSOR_F64)), 0, "cumsum",
            kind, "all");
    compare(tensor_select(tensor_cumsum(columns, 0), 0, -1), tensor_sum(tensor_to(columns, TENSOR_F64), 0), 0,
            "cumsum", kind, "columns");
}

static void test_last_element_of_cumsum(void **state)
{
    (void)state;
    each_kind(running_sums);
}

static void dots(Tensor *x, Kind kind)
{
    Tensor *other = tensor_flip(x, DIMS(0)),
           *exact = tensor_dot(tensor_to(x, TENSOR_F64), tensor_to(other, TENSOR_F64));
    compare(tensor_dot(x, other), exact, 0, "dot", kind, "all");
    compare(tensor_dot(spread(x), other), exact, 0, "dot", kind, "all, strided");
}

static void test_dot(void **state)
{
    (void)state;
    each_kind(dots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions_of_all),
        cmocka_unit_test(test_reductions_along_a_dim),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_softmax_of_wide_values),
        cmocka_unit_test(test_last_element_of_cumsum),
        cmocka_unit_test(test_dot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
