/* test_loss_dtypes.c - every loss with every choice of dtypes of its operands: PyTorch's dtype, or refused
 * (EDTYPE, or ESHAPE where a target counts as class indices).  oracle/losses.py made the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>

typedef struct LossCase {
    const char *op, *shapes, *options, *dtypes;
} LossCase;
#include "../oracle/losses_golden.h"

enum { MOST = 5, KINDS = 5 };
static const TensorDtype kind[KINDS] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16, TENSOR_I64 };
static const char letters[] = "sdhbl";

/* "2x3": ones of this shape; "-": none. */
static int read_shapes(const char *text, int64_t shape[MOST][3], int *ndim)
{
    int n = 0;
    for (; n < MOST && *text; n++) {
        ndim[n] = *text == '-' ? -1 : 0;
        text += *text == '-';
        while (*text && *text != ',') {
            char *end;
            shape[n][ndim[n]++] = strtoll(text, &end, 10);
            text = end + (*end == 'x');
        }
        text += *text == ',';
    }
    return n;
}

static char letter(const Tensor *y) { return y ? letters[tensor_dtype(y)] : '-'; }

/* Operand i of the choice-th choice. */
static void make_operands(const LossCase *c, int choice, Tensor **x, int *n, char *what)
{
    int64_t shape[MOST][3];
    int ndim[MOST];
    *n = read_shapes(c->shapes, shape, ndim);
    for (int i = *n - 1; i >= 0; i--) {
        x[i] = NULL;
        what[i] = '-';
        if (ndim[i] < 0) continue;
        x[i] = tensor_ones((TensorShape){ ndim[i], shape[i] }, kind[choice % KINDS]);
        what[i] = letter(x[i]);
        choice /= KINDS;
    }
    what[*n] = 0;
}

static void try_case(const LossCase *c, int *wrong)
{
    for (int choice = 0; c->dtypes[choice]; choice++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x[MOST];
        char what[MOST + 1];
        int n;
        make_operands(c, choice, x, &n, what);
        const char *op = c->op;
        if (strcmp(op, "cross_entropy_probabilities") == 0 && !tensor_dtype_is_float(tensor_dtype(x[1])))
            op = "cross_entropy"; /* as tensor_cross_entropy chooses */
        const char found = letter(tensor_apply_text(op, x, n, c->options)), want = c->dtypes[choice];
        const TensorStatus code = tensor_error_code();
        if (found != want || (want == '-' && code != TENSOR_EDTYPE && code != TENSOR_ESHAPE)) {
            print_error("%s {%s} of %s gives %c, want %c: %s\n", c->op, c->options, what, found, want,
                        tensor_error() ? tensor_error() : "");
            ++*wrong;
        }
        tensor_error_clear();
        tensor_scope_close(scope);
    }
}

static void dtypes(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof loss_golden / sizeof *loss_golden; i++) try_case(&loss_golden[i], &wrong);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(dtypes) };
    return cmocka_run_group_tests_name("dtypes of losses", tests, NULL, NULL);
}
