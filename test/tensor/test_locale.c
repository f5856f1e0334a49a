/* test_locale.c - numbers in text are C's in a program whose locale writes 0,5.  The locale is made here;
 * where localedef or its sources are missing, C's own serves, and the tests show less. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include "scratch.h"

static int begin(void **state)
{
    char command[640];
    if (scratch_begin(state)) return -1;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s 2>/dev/null", scratch("de_DE.UTF-8"));
    const int made = system(command);
    setenv("LOCPATH", scratch_, 1);
    if (made || !setlocale(LC_ALL, "de_DE.UTF-8")) print_message("no locale that writes 0,5 can be made\n");
    return 0;
}

static int end(void **state)
{
    char command[640];
    snprintf(command, sizeof command, "rm -r %s 2>/dev/null", scratch("de_DE.UTF-8"));
    setlocale(LC_ALL, "C");
    (void)!system(command);
    return scratch_end(state);
}

/* Of rows, the text of the derivative is read; gelu's has 0.5. */
static void test_recorded(void **state)
{
    (void)state;
    Tensor *x = tensor_requires_grad_(tensor_full(SHAPE(2), .5, TENSOR_F64), true);
    Tensor *g = tensor_gradients(tensor_sum(tensor_gelu(x)), x, .create_graph = true);
    assert_non_null(g);
    assert_true(tensor_allclose(g, tensor_gradients(tensor_sum(tensor_gelu(x)), x), 1e-12, 0, false));
}

static void test_options(void **state)
{
    (void)state;
    Tensor *x = tensor_full(SHAPE(2), .25, TENSOR_F32), *y = tensor_apply_text("clamp_min", &x, 1, "min=0.5");
    assert_non_null(y);
    assert_float_equal(tensor_get(y, SHAPE(0)), .5, 0);
}

static void test_print(void **state)
{
    (void)state;
    char text[64];
    tensor_snprint(text, sizeof text, tensor_full(SHAPE(1), .5, TENSOR_F32));
    assert_string_equal(text, "tensor([0.5000])");
}

static Tensor *curve(void)
{
    DONE(io_save_curves(scratch("c.png"), &(IoCurve){ (double[]){ .5, .25 }, 2 }, 1));
    return io_load_png(scratch("c.png"));
}

/* Rows that are read and written, and the numbers at axes. */
static void test_watching(void **state)
{
    (void)state;
    size_t n;
    put_file("l.csv", "a\n0.5\n1.5\n2.5\n", 14);
    CsvLog *log = io_csv_log(scratch("l.csv"), "a", .resume = true, .before = 1.75);
    DONE(io_csv_log_row(log, 1.25));
    io_csv_log_free(log);
    unsigned char *text = get_file(scratch("l.csv"), &n);
    assert_int_equal(n, 15);
    assert_memory_equal(text, "a\n0.5\n1.5\n1.25\n", n);
    free(text);
    Tensor *found = curve();
    char *was = strdup(setlocale(LC_ALL, NULL));
    setlocale(LC_ALL, "C");
    assert_true(tensor_equal(found, curve()));
    setlocale(LC_ALL, was);
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_watching),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
