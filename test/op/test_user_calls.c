/* test_user_calls.c - what an op may ask of its call, as autograd.h says it: arrays of every dtype and
 * layout, the edges of what can be asked for, parameters that are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>

/* An op whose functions are those of the test that runs. */
static int (*in_shape)(OpCall *c), (*in_forward)(OpCall *c);
static int (*in_backward)(OpCall *c, Tensor *dy, Tensor **dx);
static int probe_shape(OpCall *c) { return in_shape(c); }
static int probe_forward(OpCall *c) { return in_forward(c); }
static int probe_backward(OpCall *c, Tensor *dy, Tensor **dx) { return in_backward(c, dy, dx); }
static const TensorOp probe = { .name = "probe",
                                .arity = OP_ANY_ARITY,
                                .outputs = OP_ANY_ARITY,
                                .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                                .optional = KEEP_INPUT(1),
                                .shape = probe_shape,
                                .forward = probe_forward,
                                .backward = probe_backward };

static void run(int (*shape)(OpCall *), int (*forward)(OpCall *),
                int (*backward)(OpCall *, Tensor *, Tensor **))
{
    in_shape = shape, in_forward = forward, in_backward = backward;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static bool wide; /* arrays of double, else of float */

/* Results: twice x, in x's dtype, and x's sum over its rows, in f32. */
static int arrays_shape(OpCall *c)
{
    TensorShape x = op_input_shape(c, 0);
    return op_set_output(c, 0, x, op_input_dtype(c, 0)) || op_set_output(c, 1, SHAPE(x.dim[1]), TENSOR_F32);
}

static int arrays_forward(OpCall *c)
{
    const int64_t n = op_count(c, 0), columns = op_output_count(c, 1);
    assert_int_equal(op_output_count(c, 0), n);
    const double *x = op_input_f64(c, 0);
    const float *narrow = op_input_f32(c, 0);
    assert_ptr_equal(op_input_f64(c, 0), x); /* asked twice, copied once */
    assert_ptr_equal(op_input_f32(c, 0), narrow);
    for (int64_t i = 0; i < n; i++) {
        assert_true(x[i] == narrow[i]);
        if (wide) op_output_f64(c, 0)[i] = 2 * x[i];
        else op_output_f32(c, 0)[i] = 2 * narrow[i];
    }
    for (int64_t k = 0; k < columns; k++) {
        double sum = 0;
        for (int64_t i = k; i < n; i += columns) sum += x[i];
        if (wide) op_output_f64(c, 1)[k] = sum;
        else op_output_f32(c, 1)[k] = (float)sum;
    }
    return op_save(c, op_output(c, 1));
}

/* What was saved is what forward saw; nothing arrives at result 1. */
#define ARRAYS_BACKWARD(suffix, type)                                                 \
    static int arrays_backward_##suffix(OpCall *c, Tensor *dy, Tensor **dx)           \
    {                                                                                 \
        (void)dy, (void)dx;                                                           \
        const type *x = op_saved_##suffix(c, 0), *y = op_saved_output_##suffix(c, 0); \
        const type *sum = op_saved_extra_##suffix(c, 0), *g = op_grad_##suffix(c, 0); \
        const type *none = op_grad_##suffix(c, 1);                                    \
        type *out = op_gradient_##suffix(c, 0), total[2] = { 0 };                     \
        const int64_t n = op_count(c, 0), columns = op_output_count(c, 1);            \
        assert_true(op_output_count(c, 0) == 6 && n == 6 && columns == 2);            \
        assert_true(op_has_grad(c, 0) && !op_has_grad(c, 1));                         \
        for (int64_t i = 0; i < n; i++) {                                             \
            assert_true(y[i] == 2 * x[i] && out[i] == 0 && none[i % columns] == 0);   \
            total[i % columns] += x[i], out[i] = 2 * g[i];                            \
        }                                                                             \
        assert_true(total[0] == sum[0] && total[1] == sum[1]);                        \
        assert_ptr_equal(op_gradient_##suffix(c, 0), out);                            \
        return 0;                                                                     \
    }
ARRAYS_BACKWARD(f64, double)
ARRAYS_BACKWARD(f32, float)

/* [3, 2], read as it lies, transposed, as every other column, and backwards through a narrower tensor. */
static Tensor *laid_out(Tensor *x, int layout)
{
    if (layout == 1) return tensor_transpose(tensor_contiguous(tensor_transpose(x, 0, 1)), 0, 1);
    if (layout == 2) return tensor_slice(tensor_repeat_interleave(x, 2, .dim = 1), 1, 0, 4, 2);
    return x;
}

static void test_arrays_of_every_dtype_and_layout(void **state)
{
    (void)state;
    const TensorDtype dtypes[] = { TENSOR_F64, TENSOR_F32, TENSOR_F16, TENSOR_BF16 };
    for (int k = 0; k < 4 * 3 * 2; k++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_to(tensor_from_data((double[]){ 1, -2, 3, 0.5, 0, 4 }, SHAPE(3, 2), TENSOR_F64),
                              dtypes[k / 6]);
        x = tensor_requires_grad_(laid_out(x, k % 3), true);
        wide = k / 3 % 2;
        run(arrays_shape, arrays_forward, wide ? arrays_backward_f64 : arrays_backward_f32);
        Tensor *y[2];
        assert_int_equal(tensor_apply_all(&probe, &x, 1, NULL, y, 2), 2);
        assert_int_equal(tensor_dtype(y[0]), dtypes[k / 6]);
        assert_true(tensor_equal(y[0], tensor_mul_scalar(x, 2)));
        assert_true(tensor_get(y[1], DIMS(0)) == 4 && tensor_get(y[1], DIMS(1)) == 2.5);
        Tensor *dx = tensor_gradients(y[0], x, .grad_output = tensor_mul_scalar(tensor_detach(x), 0.5));
        assert_int_equal(tensor_dtype(dx), dtypes[k / 6]);
        assert_true(tensor_equal(dx, tensor_detach(x)));
        tensor_scope_close(scope);
    }
}

static int integers_shape(OpCall *c) { return op_set_output(c, 0, op_input_shape(c, 0), TENSOR_I64); }
static int integers_forward(OpCall *c)
{
    for (int64_t i = 0; i < op_count(c, 0); i++) op_output_f64(c, 0)[i] = op_input_f32(c, 0)[i] + 1;
    return 0;
}

static void test_arrays_of_integers(void **state)
{
    (void)state;
    run(integers_shape, integers_forward, NULL);
    for (int d = 0; d < TENSOR_DTYPES; d++) {
        Tensor *x = tensor_to(tensor_from_data((double[]){ 0, 1 }, SHAPE(2), TENSOR_F64), (TensorDtype)d);
        Tensor *y = tensor_apply(&probe, &x, 1, NULL);
        assert_int_equal(tensor_dtype(y), TENSOR_I64);
        assert_true(tensor_get(y, DIMS(0)) == 1 && tensor_get(y, DIMS(1)) == 2);
    }
}

/* ---- what is not there ----------------------------------------------------------------------- */

static void nothing_there(OpCall *c, int n, int outputs)
{
    const int beyond[] = { -1, n, 1 << 20 }, out[] = { -1, outputs, 1 << 20 };
    for (int i = 0; i < 3; i++) {
        assert_null(op_input(c, beyond[i]));
        assert_int_equal(op_count(c, beyond[i]), 0);
        assert_int_equal(op_input_shape(c, beyond[i]).ndim, 0);
        assert_int_equal(op_input_dtype(c, beyond[i]), TENSOR_F32);
        assert_false(op_wants(c, beyond[i]));
        assert_null(op_output(c, out[i]));
        assert_int_equal(op_output_count(c, out[i]), 0);
        assert_int_equal(op_output_shape(c, out[i]).ndim, 0);
        assert_false(op_has_grad(c, out[i]));
    }
    assert_int_equal(op_inputs(c), n);
}

static int two_shape(OpCall *c)
{
    return op_set_output(c, 0, op_input_shape(c, 0), TENSOR_F64) || op_set_output(c, 1, SHAPE(2), TENSOR_F64);
}
static int edges_forward(OpCall *c)
{
    nothing_there(c, 3, 2);
    assert_false(op_recording(c) || op_wants(c, 0) || op_has_grad(c, 0));
    assert_int_equal(op_count(c, 1), 0); /* absent */
    assert_int_equal(op_input_shape(c, 1).ndim, 0);
    assert_int_equal(op_input_dtype(c, 1), TENSOR_F32);
    assert_int_equal(op_input_dtype(c, 2), TENSOR_I64);
    assert_true(op_output_shape(c, 1).ndim == 1 && op_output_shape(c, 1).dim[0] == 2);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < op_output_count(c, k); i++) op_output_f64(c, k)[i] = 1;
    return 0;
}
static int edges_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    nothing_there(c, 3, 2);
    assert_null(op_input(c, 0)); /* in backward there are no inputs */
    assert_false(op_recording(c));
    assert_true(op_wants(c, 0) && !op_wants(c, 2));
    assert_null(op_gradient_f64(c, 2));
    assert_int_equal(op_input_dtype(c, 2), TENSOR_I64);
    assert_true(op_input_shape(c, 2).dim[0] == 4 && op_count(c, 2) == 4);
    assert_true(op_output_shape(c, 1).ndim == 1 && op_output_count(c, 1) == 2);
    dx[0] = dy;
    return 0;
}

static void test_edges(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(3), TENSOR_F64), true), *y[2];
    run(two_shape, edges_forward, edges_backward);
    assert_int_equal(
        tensor_apply_all(&probe, (Tensor *[]){ x, NULL, tensor_zeros(SHAPE(4), TENSOR_I64) }, 3, NULL, y, 2),
        2);
    assert_int_equal(tensor_backward(tensor_sum(y[0])), 0);
    assert_true(tensor_get(tensor_grad(x), DIMS(1)) == 1);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static int variant;

static int too_much(OpCall *c)
{
    Tensor *x = op_input(c, 0), *other = tensor_zeros(SHAPE(5), TENSOR_F64);
    int64_t values[TENSOR_MAX_DIMS + 1] = { 0 };
    TensorShape list;
    int status = 0;
    switch (variant) {
    case 0:
    case 1:
        for (int i = 0; i < 8 + variant && !status; i++) status = op_save(c, x);
        return status;
    case 2: return op_save(c, NULL);
    case 3:
    case 4:
        for (int i = 0; i < 1 + variant && !status; i++)
            status = op_commit(c, other, tensor_ones_like(other));
        return status;
    case 5: return op_commit(c, other, x);
    case 6: return op_commit(c, NULL, x);
    case 7:
    case 8:
        for (int i = 0; i < variant - 3 && !status; i++) status = op_set_list(c, &list, 1, values);
        return status;
    case 9:
    case 10: return op_set_list(c, &list, TENSOR_MAX_DIMS + variant - 9, values);
    case 11: return op_set_list(c, &list, -1, values);
    case 12: return op_set_list(c, &list, 0, values);
    case 13: return (void)op_input_f64(c, 1), 0; /* what failed has failed, whatever forward returns */
    case 14: return (void)op_input_f32(c, -1), 0;
    case 15: return (void)op_output_f64(c, 1), 0;
    case 16: return (void)op_output_f32(c, -1), 0;
    case 17: return (void)op_grad(c, 0), 0;
    case 18: return (void)op_saved(c, 0), 0;
    case 19: return (void)op_saved_f64(c, 0), 0;
    default: return -1; /* without a word */
    }
}

static int same_shape(OpCall *c) { return op_same_shape(c); }

static void test_too_much(void **state)
{
    (void)state;
    const TensorStatus want[] = { TENSOR_OK,     TENSOR_EUSER,  TENSOR_EUSER, TENSOR_OK,     TENSOR_EUSER,
                                  TENSOR_EUSER,  TENSOR_EUSER,  TENSOR_OK,    TENSOR_EVALUE, TENSOR_OK,
                                  TENSOR_EVALUE, TENSOR_EVALUE, TENSOR_OK,    TENSOR_EUSER,  TENSOR_EUSER,
                                  TENSOR_EUSER,  TENSOR_EUSER,  TENSOR_EUSER, TENSOR_EUSER,  TENSOR_EUSER,
                                  TENSOR_EUSER };
    run(same_shape, too_much, NULL);
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64);
    for (variant = 0; variant < (int)(sizeof want / sizeof *want); variant++) {
        Tensor *y = tensor_apply(&probe, &x, 1, NULL);
        if ((y == NULL) != (want[variant] != TENSOR_OK) || tensor_error_code() != want[variant])
            fail_msg("%d: %s", variant, y ? "taken" : tensor_error());
        tensor_error_clear();
    }
}

static int results_shape(OpCall *c)
{
    int status = 0;
    switch (variant) {
    case 0:
    case 1:
        for (int i = 0; i < 256 + variant && !status; i++) status = op_set_output(c, i, SHAPE(1), TENSOR_F32);
        return status;
    case 2: return op_set_output(c, 1, SHAPE(1), TENSOR_F32);
    case 3: return op_set_output(c, -1, SHAPE(1), TENSOR_F32);
    case 4: return op_set_output(c, 0, SHAPE(2, -1), TENSOR_F32);
    case 5: return op_set_output(c, 0, SHAPE(INT64_MAX, 2), TENSOR_F32);
    case 6:
    case 7:
        for (int i = 0; i < 250 + variant && !status; i++)
            status = op_set_result(c, i, tensor_ones(SHAPE(1), TENSOR_F32));
        return status;
    case 8: return op_set_result(c, 1, op_input(c, 0));
    case 9: return op_set_result(c, -1, op_input(c, 0));
    case 10: return op_set_result(c, 0, NULL);
    case 11: return (void)op_input_f64(c, 0), op_same_shape(c); /* arrays are forward's */
    default: return op_set_output(c, 0, SHAPE(1), TENSOR_F32) || op_set_output(c, 0, SHAPE(3), TENSOR_F32);
    }
}

static int nothing(OpCall *c) { return (void)c, 0; }

static void test_results(void **state)
{
    (void)state;
    const TensorStatus want[] = { TENSOR_OK,     TENSOR_EUSER, TENSOR_EUSER, TENSOR_EUSER, TENSOR_ESHAPE,
                                  TENSOR_ESHAPE, TENSOR_OK,    TENSOR_EUSER, TENSOR_EUSER, TENSOR_EUSER,
                                  TENSOR_EUSER,  TENSOR_EUSER, TENSOR_OK };
    static Tensor *y[256];
    run(results_shape, nothing, NULL);
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64);
    for (variant = 0; variant < (int)(sizeof want / sizeof *want); variant++) {
        int made = tensor_apply_all(&probe, &x, 1, NULL, y, 256);
        if ((made < 0) != (want[variant] != TENSOR_OK) || tensor_error_code() != want[variant])
            fail_msg("%d: %s", variant, made < 0 ? tensor_error() : "taken");
        if (made == 1) assert_int_equal(tensor_size(y[0], 0), 3); /* the last word counts */
        tensor_error_clear();
    }
}

/* Operands and results that can be read as arrays: 80 in all. */
static int eighty_shape(OpCall *c)
{
    int status = 0;
    for (int i = 0; i < variant - op_inputs(c) && !status; i++)
        status = op_set_output(c, i, SHAPE(2), TENSOR_F16);
    return status;
}
static int eighty_forward(OpCall *c)
{
    const int results = variant - op_inputs(c);
    const double *last = op_input_f64(c, op_inputs(c) - 1);
    float *y = op_output_f32(c, results - 1);
    if (!last || !y) return -1;
    y[0] = (float)last[0], y[1] = (float)last[1];
    for (int i = 0; i < results - 1; i++) op_output_f32(c, i)[0] = op_output_f32(c, i)[1] = 0;
    return 0;
}

static void test_many_arrays(void **state)
{
    (void)state;
    Tensor *x[64], *y[17];
    for (int i = 0; i < 64; i++) x[i] = tensor_full(SHAPE(2), i, TENSOR_F32);
    run(eighty_shape, eighty_forward, NULL);
    variant = 80;
    assert_int_equal(tensor_apply_all(&probe, x, 64, NULL, y, 17), 16);
    assert_true(tensor_get(y[15], DIMS(1)) == 63);
    variant = 81;
    assert_status_error(tensor_apply_all(&probe, x, 64, NULL, y, 17), TENSOR_EUSER);
}

static int mixed_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)dy, (void)dx;
    op_gradient_f32(c, 0);
    op_gradient_f64(c, 0);
    return 0; /* what failed has failed, whatever backward returns */
}
static int unsaved_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    (void)dy;
    dx[0] = variant == 0   ? op_saved_output(c, 1)
            : variant == 1 ? op_saved_extra(c, 0)
            : variant == 2 ? op_grad(c, 1)
            : variant == 3 ? op_grad(c, -1)
                           : op_saved(c, 1);
    return 0;
}

static void test_refused_in_backward(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
    run(same_shape, integers_forward, mixed_backward);
    assert_status_error(tensor_backward(tensor_sum(tensor_apply(&probe, &x, 1, NULL))), TENSOR_EUSER);
    run(same_shape, integers_forward, unsaved_backward);
    for (variant = 0; variant < 5; variant++)
        assert_status_error(tensor_backward(tensor_sum(tensor_apply(&probe, &x, 1, NULL))), TENSOR_EUSER);
    assert_null(tensor_grad(x));
}

/* ---- parameters that are left out ------------------------------------------------------------ */

typedef struct PowerArgs {
    double scale;
    int64_t power;
    bool negate;
    TensorShape dims;
} PowerArgs;
static const PowerArgs power_defaults = { .scale = 3, .power = 2 };
static const OpField power_fields[] = {
    OP_OPTION(PowerArgs, scale), OP_OPTION(PowerArgs, power), OP_OPTION(PowerArgs, negate), { 0 }
};
static const OpField needs_power[] = { OP_OPTION(PowerArgs, scale), OP_REQUIRED(PowerArgs, power), { 0 } };

static int power_forward(OpCall *c)
{
    const PowerArgs *p = op_params(c);
    for (int64_t i = 0; i < op_count(c, 0); i++) {
        double y = p->scale;
        for (int64_t k = 0; k < p->power; k++) y *= op_input_f64(c, 0)[i];
        op_output_f64(c, 0)[i] = p->negate ? -y : y;
    }
    return 0;
}

static void test_parameters_left_out(void **state)
{
    (void)state;
    TensorOp op = { .name = "power",
                    .arity = 1,
                    .params = sizeof(PowerArgs),
                    .fields = power_fields,
                    .defaults = &power_defaults,
                    .shape = op_same_shape,
                    .forward = power_forward };
    Tensor *x = tensor_full(SHAPE(2), 5, TENSOR_F64);
    assert_true(tensor_get(tensor_apply(&op, &x, 1, NULL), DIMS(1)) == 75);
    assert_ptr_equal(tensor_apply_(&op, &x, 1, NULL), x);
    assert_true(tensor_get(x, DIMS(0)) == 75);
    op.defaults = NULL; /* zeros */
    assert_true(tensor_get(tensor_apply(&op, &x, 1, NULL), DIMS(1)) == 0);
    op.defaults = &power_defaults, op.fields = needs_power;
    assert_tensor_error(tensor_apply(&op, &x, 1, NULL), TENSOR_EVALUE);
    op.fields = power_fields, op.params = 1024 + 1;
    assert_tensor_error(tensor_apply(&op, &x, 1, NULL), TENSOR_EVALUE);
}

typedef struct NamedArgs {
    const char *name, *unit;
    TensorShape dims;
    double scale;
} NamedArgs;
static const OpField named_fields[] = { OP_OPTION(NamedArgs, name),
                                        OP_OPTION(NamedArgs, unit),
                                        OP_OPTION(NamedArgs, dims),
                                        OP_OPTION(NamedArgs, scale),
                                        { 0 } };

static int named_forward(OpCall *c)
{
    const NamedArgs *p = op_params(c);
    for (int64_t i = 0; i < op_count(c, 0); i++) op_output_f64(c, 0)[i] = p->scale * op_input_f64(c, 0)[i];
    return 0;
}
static int named_backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    const NamedArgs *p = op_params(c);
    assert_string_equal(p->name, "slope");
    if (variant) assert_string_equal(p->unit, "");
    else assert_null(p->unit);
    assert_true(p->dims.ndim == 2 && p->dims.dim[0] == 7 && p->dims.dim[1] == -8);
    dx[0] = tensor_mul_scalar(dy, p->scale);
    return 0;
}

/* Texts and lists among the parameters are kept for backward: the caller's own may be gone. */
static void test_texts_and_lists_are_kept(void **state)
{
    (void)state;
    const TensorOp op = { .name = "named",
                          .arity = 1,
                          .params = sizeof(NamedArgs),
                          .fields = named_fields,
                          .shape = op_same_shape,
                          .forward = named_forward,
                          .backward = named_backward };
    for (variant = 0; variant < 2; variant++) {
        char name[] = "slope", unit[] = "";
        int64_t dims[] = { 7, -8 };
        NamedArgs args = { name, variant ? unit : NULL, { 2, dims }, 3 };
        Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
        Tensor *y = tensor_apply(&op, &x, 1, &args);
        memset(name, 'z', sizeof name), memset(unit, 'z', sizeof unit), dims[0] = dims[1] = 0;
        memset(&args, 0, sizeof args);
        assert_int_equal(tensor_backward(tensor_sum(y)), 0);
        assert_true(tensor_get(tensor_grad(x), DIMS(0)) == 3);
    }
}

static int silent_backward(OpCall *c, Tensor *dy, Tensor **dx) { return (void)c, (void)dy, (void)dx, -1; }

static void test_a_backward_that_says_nothing(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
    run(same_shape, integers_forward, silent_backward);
    Tensor *loss = tensor_sum(tensor_apply(&probe, &x, 1, NULL));
    assert_int_equal(tensor_backward(loss), -1);
    assert_non_null(strstr(tensor_error(), "probe: backward failed without saying why"));
    assert_status_error(-1, TENSOR_EUSER);
}

/* A row reads as many numbers as it has: beyond them lies what the call before it left, which may be no
 * integer (UBSan sees it). */
static void test_a_row_reads_its_own_parameters(void **state)
{
    (void)state;
    const double far[2] = { -1e300, 1e300 }, two = 2;
    Tensor *x = tensor_full(SHAPE(5), 3, TENSOR_I64), *before = tensor_ones(SHAPE(5), TENSOR_F64);
    assert_non_null(tensor_apply(tensor_op_find("clamp"), &before, 1, far));
    Tensor *y = tensor_apply(tensor_op_find("add_scalar"), &x, 1, &two);
    assert_non_null(y);
    for (int64_t i = 0; i < 5; i++) assert_true(tensor_get(y, DIMS(i)) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_of_every_dtype_and_layout),
        cmocka_unit_test(test_arrays_of_integers),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_many_arrays),
        cmocka_unit_test(test_refused_in_backward),
        cmocka_unit_test(test_parameters_left_out),
        cmocka_unit_test(test_texts_and_lists_are_kept),
        cmocka_unit_test(test_a_backward_that_says_nothing),
        cmocka_unit_test(test_a_row_reads_its_own_parameters),
    };
    TensorScope scope = tensor_scope_open();
    int failed = cmocka_run_group_tests_name("calls of a user's op", tests, NULL, NULL);
    tensor_scope_close(scope);
    return failed;
}
