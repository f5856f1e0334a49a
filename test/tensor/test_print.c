/* test_print.c - tensors as text, against what PyTorch prints (oracle/print_golden.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad/autograd.h>
#include <tapegrad/ops.h>

#include "oracle/print_golden.h"

static TensorScope scope;

static int open_scope(void **state)
{
    (void)state;
    tensor_error_clear();
    scope = tensor_scope_open();
    return 0;
}

static int close_scope(void **state)
{
    (void)state;
    tensor_scope_close(scope);
    return tensor_error() || tensor_live_count() != 0 ? -1 : 0;
}

static char text[8192];

static const char *print(const Tensor *x)
{
    int n = tensor_snprint(text, sizeof text, x);
    assert_int_equal(n, strlen(text));
    return text;
}

static void as_pytorch(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof print_golden / sizeof *print_golden; i++) {
        TensorScope inner = tensor_scope_open();
        TensorShape shape = { print_golden[i].ndim, print_golden[i].shape };
        int64_t n = 1;
        for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
        Tensor *line = tensor_zeros(SHAPE(n), TENSOR_F64);
        double *value = tensor_data(line);
        for (int64_t k = 0; k < n; k++) {
            value[k] = print_golden[i].value[k % print_golden[i].count];
            if (print_golden[i].step != 0) value[k] += (double)k * print_golden[i].step; /* not to lose -0. */
        }
        Tensor *x = tensor_reshape(tensor_to(line, print_golden[i].dtype), shape);
        assert_string_equal(print(x), print_golden[i].text);
        tensor_scope_close(inner);
    }
}

static void layouts(void **state)
{
    (void)state;
    Tensor *x = tensor_reshape(tensor_arange(0, 6, 1, TENSOR_I64), SHAPE(2, 3));
    assert_string_equal(print(tensor_transpose(x, 0, 1)),
                        "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])");
    Tensor *wide = tensor_expand(tensor_scalar(1.5, TENSOR_F32), SHAPE(2000));
    assert_string_equal(print(wide), "tensor([1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000])");
}

static void gradients(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true);
    assert_string_equal(print(x), "tensor([1., 1.], requires_grad=True)");
    assert_string_equal(print(tensor_mul(x, x)), "tensor([1., 1.], grad_fn=<mul>)");
    assert_string_equal(print(tensor_detach(x)), "tensor([1., 1.])");
    Tensor *d = tensor_requires_grad_(tensor_zeros(SHAPE(0, 2), TENSOR_F64), true);
    assert_string_equal(print(d), "tensor([], size=(0, 2), dtype=f64, requires_grad=True)");
    Tensor *full =
        tensor_requires_grad_(tensor_full(SHAPE(9), 1.25, TENSOR_F32), true); /* no room left in the line */
    assert_string_equal(print(full), "tensor([1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, "
                                     "1.2500, 1.2500],\n       requires_grad=True)");
}

/* A suffix stands in the last line where that, with a parenthesis, keeps to 80 columns, else in its own. */
static void suffixes_at_the_end_of_lines(void **state)
{
    (void)state;
    int beside = 0;
    for (int n = 1; n < 60; n++) {
        const char *all = print(tensor_full(SHAPE(n), 3, TENSOR_I32)), *suffix = strstr(all, "dtype=i32)");
        const bool own = suffix[-1] != ' ' || suffix[-2] != ',';
        const char *end = own ? strrchr(all, '\n') : suffix - 1, *line = end;
        while (line > all && line[-1] != '\n') line--;
        const long length = end - line - 1; /* without its last comma */
        assert_int_equal(length + 2 + (long)strlen("dtype=i32") + 2 <= 80, !own);
        beside += !own;
    }
    assert_in_range(beside, 10, 55);
}

static void buffers_and_files(void **state)
{
    (void)state;
    char small[8] = "xxxxxxx";
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F32);
    assert_int_equal(tensor_snprint(NULL, 0, x), 16);
    assert_int_equal(tensor_snprint(small, sizeof small, x), 16);
    assert_string_equal(small, "tensor(");
    assert_int_equal(tensor_snprint(small, 1, x), 16);
    assert_string_equal(small, "");
    assert_string_equal(print(NULL), "tensor(NULL)");
    assert_null(tensor_error());

    FILE *file = tmpfile();
    assert_non_null(file);
    tensor_fprint(file, x);
    tensor_fprint(file, NULL);
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = 0;
    fclose(file);
    assert_string_equal(text, "tensor([1., 1.])\ntensor(NULL)\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(as_pytorch), TEST(layouts), TEST(gradients),
                                        TEST(suffixes_at_the_end_of_lines), TEST(buffers_and_files) };
    return cmocka_run_group_tests_name("print", tests, NULL, NULL);
}
