/* test_index_language.c - tensor_index and tensor_index_set_: PyTorch's results for the expressions of
 * oracle/index_language_golden.h, numbers from the arguments, views, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/debug.h>

#include "oracle/index_language_golden.h"

enum { MOST = 512 };

/* ---- numbers --------------------------------------------------------------------------------- */

static int read_numbers(const char *text, double *v)
{
    int n = 0;
    for (char *end; *text; text = *end ? end + 1 : end) {
        assert_true(n < MOST);
        v[n++] = strtod(text, &end);
    }
    return n;
}

static Tensor *tensor_of(const char *shape, const char *values, TensorDtype dtype)
{
    double v[MOST], size[MOST];
    int64_t dim[TENSOR_MAX_DIMS];
    int ndim = read_numbers(shape, size);
    for (int d = 0; d < ndim; d++) dim[d] = (int64_t)size[d];
    Tensor *x = tensor_from_data(v, (TensorShape){ ndim, dim }, TENSOR_F64);
    int64_t n = tensor_numel(x);
    for (int64_t i = 0; i < n; i++) v[i] = (double)i;
    if (values) assert_int_equal(read_numbers(values, v), n);
    assert_int_equal(tensor_copy_from(x, v, (size_t)n * sizeof *v), 0);
    return tensor_to(x, dtype);
}

/* 1, 2, 3, ... of x's shape. */
static Tensor *counting(const Tensor *x)
{
    return tensor_reshape(tensor_arange(1, 1 + (double)tensor_numel(x), 1, TENSOR_F64), tensor_shape(x));
}

static bool has_values(Tensor *x, const char *values)
{
    double want[MOST], got[MOST];
    int n = read_numbers(values, want);
    if (!x || tensor_numel(x) != n || tensor_copy_to(tensor_detach(x), got, (size_t)n * sizeof *got))
        return false;
    return memcmp(want, got, (size_t)n * sizeof *got) == 0;
}

static bool has_shape(Tensor *x, const char *shape)
{
    double size[MOST];
    int ndim = read_numbers(shape, size);
    if (!x || tensor_ndim(x) != ndim) return false;
    for (int d = 0; d < ndim; d++)
        if (tensor_size(x, d) != (int64_t)size[d]) return false;
    return true;
}

/* ---- PyTorch's expressions ------------------------------------------------------------------- */

static int wrong;

static void check(bool right, const struct IndexCase *c, const char *what)
{
    if (right && !tensor_error()) return;
    print_error("x of [%s], \"%s\": %s; %s\n", c->shape, c->text, what,
                tensor_error() ? tensor_error() : "another value");
    tensor_error_clear();
    wrong++;
}

static Tensor *gradient(Tensor *y, Tensor *x)
{
    return tensor_gradients(y, x, .grad_output = counting(y), .retain_graph = true, .allow_unused = true,
                            .materialize_grads = true);
}

static Tensor *laid_out(Tensor *x, bool transposed)
{
    return transposed && tensor_ndim(x) > 1
               ? tensor_transpose(tensor_clone(tensor_transpose(x, 0, -1)), 0, -1)
               : x;
}

static void read_case(const struct IndexCase *c, Tensor *const *arg, bool transposed)
{
    Tensor *leaf = tensor_requires_grad_(tensor_of(c->shape, NULL, TENSOR_F64), true),
           *x = laid_out(leaf, transposed);
    Tensor *y = tensor_index(x, c->text, arg[0], arg[1], arg[2]);
    check(has_shape(y, c->y_shape), c, "the shape");
    check(has_values(y, c->y), c, "the values");
    if (!y) return;
    check(tensor_shares_storage(y, x) == c->view, c, "is it a view");
    check(y != x, c, "a tensor of its own");
    check(has_values(gradient(y, leaf), c->dx), c, "the gradient");
}

static void write_case(const struct IndexCase *c, Tensor *const *arg, bool recorded, bool transposed)
{
    Tensor *leaf = tensor_requires_grad_(tensor_of(c->shape, NULL, TENSOR_F64), recorded),
           *x = laid_out(tensor_clone(leaf), transposed);
    Tensor *v = tensor_of(c->value_shape, NULL, TENSOR_F64);
    tensor_add_scalar_(v, 1000);
    tensor_requires_grad_(v, recorded);
    Tensor *sums = tensor_index_accumulate_(tensor_clone(x), v, c->text, arg[0], arg[1], arg[2]);
    check(has_values(sums, c->sums), c, "accumulated");
    if (!c->set) return;
    Tensor *aside = tensor_index_set(x, v, c->text, arg[0], arg[1], arg[2]);
    check(has_values(aside, c->set), c, "a copy written");
    check(tensor_equal(tensor_detach(x), tensor_detach(leaf)), c, "x beside its copy");
    check(tensor_index_set_(x, v, c->text, arg[0], arg[1], arg[2]) == x, c, "returns x");
    check(has_values(x, c->set), c, "written");
    if (!recorded) return;
    check(has_values(gradient(x, leaf), c->set_dx), c, "the gradient of x written");
    check(has_values(gradient(x, v), c->set_dv), c, "the gradient of the value");
    check(has_values(gradient(aside, v), c->set_dv), c, "the gradient of the value in a copy");
}

static void expressions(void **state)
{
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof index_golden / sizeof *index_golden; i++) {
        const struct IndexCase *c = &index_golden[i];
        TensorScope scope = tensor_scope_open();
        Tensor *arg[3] = { TENSOR_INDEX_END_, TENSOR_INDEX_END_, TENSOR_INDEX_END_ };
        for (int k = 0; k < 3 && c->arg[k].shape; k++)
            arg[k] = tensor_of(c->arg[k].shape, c->arg[k].values, (TensorDtype)c->arg[k].dtype);
        for (int transposed = 0; transposed < 2; transposed++) {
            read_case(c, arg, transposed);
            write_case(c, arg, false, transposed);
            write_case(c, arg, true, transposed);
        }
        tensor_scope_close(scope);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(tensor_live_count(), 0);
}

/* ---- numbers from the arguments -------------------------------------------------------------- */

static Tensor *matrix(void) { return tensor_reshape(tensor_arange(0, 12, 1, TENSOR_F64), SHAPE(3, 4)); }

static void numbers_from_arguments(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = matrix(), *rows = tensor_from_data((int64_t[]){ 2, 0 }, SHAPE(2), TENSOR_I64);
    assert_true(has_values(tensor_index(x, "%d:%d, 1", 1, 3), "5 9"));
    assert_true(has_values(tensor_index(x, "rows, %d", rows, -1), "11 3"));
    assert_true(has_values(tensor_index(x, "%lld, ::%ld", -1LL, 2L), "8 10"));
    assert_true(has_values(tensor_index(x, "[%d, rows]", 1, rows), "6 4"));
    tensor_index_set_scalar_(x, -1, "%d, rows", 0, rows);
    assert_true(has_values(x, "-1 1 -1 3 4 5 6 7 8 9 10 11"));
    tensor_index_set_scalar_(x, 7, "1:");
    assert_true(has_values(x, "-1 1 -1 3 7 7 7 7 7 7 7 7"));
    tensor_index_set_scalar_(x, 0, "mask", tensor_lt_scalar(x, 0));
    assert_true(has_values(x, "0 1 0 3 7 7 7 7 7 7 7 7"));
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

/* ---- views and writes ------------------------------------------------------------------------ */

static void writes_go_through_views(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = matrix(), *column = tensor_index(x, ":, 1"), *all = tensor_index(x, "...");
    assert_true(all != x && tensor_shares_storage(all, x));
    tensor_fill_(column, 50);
    assert_true(has_values(x, "0 50 2 3 4 50 6 7 8 50 10 11"));
    tensor_index_set_(x, tensor_index(x, "0, :3"), "0, 1:"); /* overlapping: as if through a copy */
    assert_true(has_values(x, "0 0 50 2 4 50 6 7 8 50 10 11"));
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

static void the_last_one_wins(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_zeros(SHAPE(3), TENSOR_F64),
               *i = tensor_from_data((int64_t[]){ 1, 1, -2 }, SHAPE(3), TENSOR_I64);
        Tensor *v =
            tensor_requires_grad_(tensor_from_data((double[]){ 5, 6, 7 }, SHAPE(3), TENSOR_F64), recorded);
        tensor_index_set_(x, v, "i", i);
        assert_true(has_values(x, "0 7 0"));
        if (recorded) assert_true(has_values(gradient(x, v), "0 0 2"));
        assert_null(tensor_error());
        tensor_scope_close(scope);
    }
}

static void values_are_cast(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_zeros(SHAPE(2, 2), TENSOR_F32),
           *i = tensor_from_data((int64_t[]){ 0 }, SHAPE(1), TENSOR_I64);
    Tensor *v = tensor_requires_grad_(tensor_full(SHAPE(2), 3, TENSOR_F64), true);
    tensor_index_set_(x, v, "1");
    tensor_index_set_(x, v, "i", i);
    assert_true(has_values(tensor_to(x, TENSOR_F64), "3 3 3 3"));
    Tensor *g = tensor_gradients(tensor_sum(x), v);
    assert_int_equal(tensor_dtype(g), TENSOR_F64);
    assert_true(has_values(g, "2 2"));
    Tensor *n = tensor_zeros(SHAPE(2), TENSOR_I64);
    tensor_index_set_(n, tensor_full(SHAPE(), 2.9, TENSOR_F64), "0");
    assert_int_equal(tensor_item_i64(tensor_sum(n)), 2);
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define NONE TENSOR_INDEX_END_ /* no argument */

static void refused(Tensor *x, TensorStatus code, const char *says, const char *text, Tensor *arg)
{
    int64_t live = tensor_live_count();
    assert_null(tensor_index(x, text, arg));
    if (tensor_error_code() != code || !strstr(tensor_error(), says))
        fail_msg("\"%s\": %s", text, tensor_error());
    tensor_error_clear();
    Tensor *before = tensor_clone(x), *one = tensor_ones(SHAPE(), TENSOR_F64);
    assert_null(tensor_index_set_(x, one, text, arg));
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
    assert_true(tensor_equal(x, before));
    assert_int_equal(tensor_live_count(), live + 2);
}

static void refusals(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = matrix(), *i = tensor_from_data((int64_t[]){ 0, 7 }, SHAPE(2), TENSOR_I64);
    refused(x, TENSOR_EINDEX, "index 3 for a size of 3, dimension 0 of [3, 4]", "3", NONE);
    refused(x, TENSOR_EINDEX, "at position 3: index -5", ":, -5", NONE);
    refused(x, TENSOR_EINDEX, "index 7 at position [1] of [2], for dimension 1 of [3, 4]: want -4 to 3",
            ":, i", i);
    refused(x, TENSOR_EVALUE, "more indices than dimensions of [3, 4]", "0, :, 1", NONE);
    refused(x, TENSOR_EVALUE, "at position 5: a second ...", "..., ...", NONE);
    refused(x, TENSOR_EVALUE, "the step must be positive", "::-1", NONE);
    refused(x, TENSOR_EVALUE, "the step must be positive", "::0", NONE);
    refused(x, TENSOR_EVALUE, "\"1; 2\" at position 1", "1; 2", NONE);
    refused(x, TENSOR_EVALUE, "at position 0", "", NONE);
    refused(x, TENSOR_EVALUE, "at position 2", "0,,1", NONE);
    refused(x, TENSOR_EVALUE, "want , or ]", "[0, 1", NONE);
    refused(x, TENSOR_EVALUE, "want , or the end", "0]", NONE);
    refused(x, TENSOR_EVALUE, "want %d", "%s", NONE);
    refused(x, TENSOR_EVALUE, "at position 1", "1.5", NONE);
    refused(x, TENSOR_ENULL, "the tensor is NULL", "rows", NULL);
    refused(x, TENSOR_EDTYPE, "is f64", "x", x);
    refused(x, TENSOR_ESHAPE, "mask [4]", "m", tensor_ones(SHAPE(4), TENSOR_BOOL));
    refused(x, TENSOR_ESHAPE, "mask [4, 3]", "m", tensor_ones(SHAPE(4, 3), TENSOR_BOOL));
    refused(x, TENSOR_ENULL, "text", NULL, NONE);
    refused(x, TENSOR_EVALUE, "no tensor is given", "rows", NONE);
    refused(x, TENSOR_EVALUE, "want one argument for each", ":", i);
    assert_null(tensor_index(x, "%d"));
    assert_int_equal(tensor_error_code(), TENSOR_EVALUE);
    tensor_error_clear();
    tensor_scope_close(scope);
}

static void null_operands(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *x = matrix(), *v = tensor_ones(SHAPE(4), TENSOR_F64);
#define IS_NULL(call) \
    assert_null(call), assert_int_equal(tensor_error_code(), TENSOR_ENULL), tensor_error_clear()
    IS_NULL(tensor_index(NULL, "0"));
    IS_NULL(tensor_index_set(NULL, v, "0"));
    IS_NULL(tensor_index_set(x, NULL, "0"));
    IS_NULL(tensor_index_set_(NULL, v, "0"));
    IS_NULL(tensor_index_set_(x, NULL, "0"));
    IS_NULL(tensor_index_set_scalar_(NULL, 1, "0"));
    IS_NULL(tensor_index_accumulate_(NULL, v, "0"));
    IS_NULL(tensor_index_accumulate_(x, NULL, "0"));
    assert_true(tensor_equal(x, matrix()));
    tensor_scope_close(scope);
}

static void writes_refused(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *leaf = tensor_requires_grad_(matrix(), true), *x = matrix(),
           *v = tensor_ones(SHAPE(3), TENSOR_F64);
    assert_null(tensor_index_set_(leaf, v, ":, 0"));
    assert_int_equal(tensor_error_code(), TENSOR_EGRAD);
    tensor_error_clear();
    assert_null(tensor_index_set_(x, v, "0"));
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    tensor_error_clear();
    assert_null(tensor_index_set_(x, v, "i", tensor_from_data((int64_t[]){ 0 }, SHAPE(1), TENSOR_I64)));
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    tensor_error_clear();
    assert_true(tensor_equal(x, matrix()));
    TENSOR_NO_GRAD
        assert_non_null(tensor_index_set_(leaf, v, ":, 0"));
    assert_null(tensor_error());
    tensor_scope_close(scope);
}

/* ---- memory runs out ------------------------------------------------------------------------- */

/* Reads, writes and sums through an index; the loss, or NULL. */
static Tensor *through_indices(Tensor *leaf, Tensor *v, Tensor *rows)
{
    Tensor *x = tensor_mul_scalar(leaf, 2);
    tensor_index_set_(x, v, "1, None, ::2");
    tensor_index_set_(x, v, "rows, :2", rows);
    tensor_index_set_scalar_(x, 0, "mask", tensor_gt_scalar(x, 15));
    tensor_index_accumulate_(x, v, "..., rows", rows);
    return tensor_sum(tensor_mul(tensor_index(x, ":, rows, None", rows),
                                 tensor_index(tensor_index_set(x, v, ":, :2"), "..., 1:3, None")));
}

static void memory_runs_out(void **state)
{
    (void)state;
    bool came = true;
    for (int64_t n = 1; came; n++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_requires_grad_(matrix(), true),
               *v = tensor_requires_grad_(tensor_ones(SHAPE(1, 2), TENSOR_F32), true);
        Tensor *rows = tensor_from_data((int64_t[]){ 2, 0 }, SHAPE(2), TENSOR_I64);
        int64_t live = tensor_live_count(), tape = tensor_tape_length();
        TensorScope inner = tensor_scope_open();
        tensor_debug_fail_allocation(n, false);
        Tensor *loss = through_indices(x, v, rows);
        int status = loss ? tensor_backward(loss) : -1;
        came = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        tensor_scope_close(inner);
        assert_true(status == 0 || (came && tensor_error_code() == TENSOR_ENOMEM));
        tensor_error_clear();
        assert_int_equal(tensor_live_count(), live + (tensor_grad(x) != NULL) + (tensor_grad(v) != NULL));
        assert_int_equal(tensor_tape_length(), tape);
        tensor_scope_close(scope);
    }
    assert_int_equal(tensor_live_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions),
        cmocka_unit_test(numbers_from_arguments),
        cmocka_unit_test(writes_go_through_views),
        cmocka_unit_test(the_last_one_wins),
        cmocka_unit_test(values_are_cast),
        cmocka_unit_test(refusals),
        cmocka_unit_test(null_operands),
        cmocka_unit_test(writes_refused),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("index language", tests, NULL, NULL);
}
