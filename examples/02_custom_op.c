/* 02_custom_op.c - an op of your own, twice, each checked against finite differences. */
#include <tapegrad.h>

/* y = x^3, dy/dx = 3 x^2, written out. */
static int cube_forward(OpCall *c)
{
    const double *x = op_input_f64(c, 0);
    double *y = op_output_f64(c, 0);
    for (int64_t i = 0; i < op_count(c, 0); i++) y[i] = x[i] * x[i] * x[i];
    return 0;
}

static int cube_backward(OpCall *c, Tensor *dy, Tensor **dx) /* made of ops: works to any order */
{
    Tensor *x = op_saved(c, 0);
    dx[0] = tensor_mul(dy, tensor_mul_scalar(tensor_mul(x, x), 3));
    return 0;
}

static const TensorOp cube = { .name = "cube",
                               .arity = 1,
                               .keep = KEEP_INPUT(0),
                               .samples = "3x4; 5; 0x2",
                               .shape = op_same_shape,
                               .forward = cube_forward,
                               .backward = cube_backward };

/* The same idea in one line: loops for every float type, the gradient, and its gradients, from two formulas.
 */
OP_UNARY(softsign, "x / (1 + |x|)", x / (1 + fabs(x)), g / ((1 + fabs(x)) * (1 + fabs(x))), KEEP_X, .2, 2);

/* And one that is wrong: its derivative lacks the factor 2. */
OP_UNARY(bad_square, "x^2, with a mistake", x *x, g *x, KEEP_X, -2, 2);

int main(void)
{
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(1);
    Tensor *x = tensor_randn(SHAPE(2, 3), TENSOR_F64);

    printf("cube:     gradcheck %s, gradgradcheck %s\n", tensor_gradcheck(&cube, x) ? "failed" : "passed",
           tensor_gradgradcheck(&cube, x) ? "failed" : "passed");
    printf("softsign: gradcheck %s, gradgradcheck %s\n", tensor_gradcheck(&softsign, x) ? "failed" : "passed",
           tensor_gradgradcheck(&softsign, x) ? "failed" : "passed");
    int ok = tensor_error() == NULL;

    GradcheckReport report;
    tensor_gradcheck_with(.op = &bad_square, .inputs = TENSORS(x), .report = &report);
    puts("bad_square, as it should be found out:");
    tensor_gradcheck_print(stdout, &report);
    ok = ok && !report.ok;
    tensor_error_clear();

    tensor_scope_close(scope);
    return !ok;
}
