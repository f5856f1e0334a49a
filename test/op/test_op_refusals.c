/* test_op_refusals.c - what tensor_apply refuses of its arguments, and what an op of the user's may not ask
 * of its call (answers.h). */
#include <stddef.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/op_row.h>
#include "answers.h"

/* ---- an op that makes one mistake ------------------------------------------------------------- */

typedef struct MistakeArgs {
    int kind;
    double amount;
    TensorShape sizes;
} MistakeArgs;

static const char *const kinds[] = { "shape", "forward", "backward", NULL };
static const OpField fields[] = { OP_CHOICE(MistakeArgs, kind, kinds),
                                  OP_OPTION(MistakeArgs, amount, sizes),
                                  { 0 } };

static int (*mistake)(OpCall *c);
enum { IN_SHAPE, IN_FORWARD, IN_BACKWARD };
static int phase(const OpCall *c) { return ((const MistakeArgs *)op_params(c))->kind; }

static int shape(OpCall *c) { return phase(c) == IN_SHAPE ? mistake(c) : op_same_shape(c); }

static int forward(OpCall *c)
{
    if (phase(c) == IN_FORWARD) return mistake(c);
    return op_input_f64(c, 0) && op_output_f64(c, 0) ? 0 : -1;
}

static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    if (phase(c) == IN_BACKWARD) return mistake(c);
    dx[0] = dy;
    return 0;
}

static const TensorOp wrong = { .name = "wrong",
                                .arity = OP_ANY_ARITY,
                                .outputs = OP_ANY_ARITY,
                                .optional = KEEP_INPUT(1),
                                .params = sizeof(MistakeArgs),
                                .fields = fields,
                                .shape = shape,
                                .forward = forward,
                                .backward = backward };

static void makes(int (*which)(OpCall *c), int kind, int inputs)
{
    Tensor *x[OP_MAX_INPUTS], *y[2] = { NULL, NULL };
    for (int i = 0; i < inputs; i++) x[i] = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true);
    mistake = which;
    tensor_apply_all(&wrong, x, inputs, &(MistakeArgs){ .kind = kind }, y, 2);
    if (kind == IN_BACKWARD && y[0]) tensor_backward(tensor_sum(y[0]));
}

static int result_out_of_order(OpCall *c) { return op_set_output(c, 1, SHAPE(2), TENSOR_F64); }
static int result_below(OpCall *c) { return op_set_output(c, -1, SHAPE(2), TENSOR_F64); }
static int result_below_0(OpCall *c) { return op_set_output(c, 0, SHAPE(2, -1), TENSOR_F64); }
static int tensor_out_of_order(OpCall *c) { return op_set_result(c, 1, op_input(c, 0)); }
static int no_result(OpCall *c) { return op_set_result(c, 0, NULL); }

static int results(OpCall *c, int n)
{
    for (int k = 0; k < n; k++)
        if (op_set_output(c, k, SHAPE(1), TENSOR_F64)) return -1;
    return 0;
}

static int most_results(OpCall *c) { return results(c, 256); }
static int more_results(OpCall *c) { return results(c, 257); }
static int results_79(OpCall *c) { return results(c, 79); }
static int results_80(OpCall *c) { return results(c, 80); }

static int long_list(OpCall *c)
{
    static const int64_t values[TENSOR_MAX_DIMS + 1];
    MistakeArgs *args = op_params_mut(c);
    return op_set_list(c, &args->sizes, TENSOR_MAX_DIMS + 1, values);
}

static int lists(OpCall *c, int n)
{
    MistakeArgs *args = op_params_mut(c);
    for (int k = 0; k < n; k++)
        if (op_set_list(c, &args->sizes, 1, (int64_t[]){ 1 })) return -1;
    return op_same_shape(c);
}

static int four_lists(OpCall *c) { return lists(c, 4); }
static int five_lists(OpCall *c) { return lists(c, 5); }

static int saves(OpCall *c, int n)
{
    for (int k = 0; k < n; k++)
        if (op_save(c, op_input(c, 0))) return -1;
    return op_input_f64(c, 0) && op_output_f64(c, 0) ? 0 : -1;
}

static int most_saves(OpCall *c) { return saves(c, 8); }
static int more_saves(OpCall *c) { return saves(c, 9); }
static int one_save(OpCall *c) { return saves(c, 1); }
static int no_operand(OpCall *c) { return op_input_f64(c, 1) ? 0 : -1; }
static int no_operand_f32(OpCall *c) { return op_input_f32(c, -1) ? 0 : -1; }
static int no_such_result(OpCall *c) { return op_output_f64(c, 1) ? 0 : -1; }
static int last_of_64(OpCall *c) { return op_input_f64(c, 63) && op_output_f64(c, 0) ? 0 : -1; }
static int commit_shape(OpCall *c) { return op_commit(c, op_input(c, 0), tensor_ones(SHAPE(3), TENSOR_F64)); }

static int commits(OpCall *c, int n)
{
    for (int k = 0; k < n; k++)
        if (op_commit(c, tensor_ones(SHAPE(2), TENSOR_F64), op_input(c, 0))) return -1;
    return op_output_f64(c, 0) ? 0 : -1;
}

static int most_commits(OpCall *c) { return commits(c, 4); }
static int more_commits(OpCall *c) { return commits(c, 5); }
static int commit_late(OpCall *c) { return op_commit(c, op_grad(c, 0), op_grad(c, 0)); }
static int saved_operand(OpCall *c) { return op_saved(c, 0) ? 0 : -1; }
static int saved_result(OpCall *c) { return op_saved_output(c, 0) ? 0 : -1; }
static int saved_extra(OpCall *c) { return op_saved_extra(c, 0) ? 0 : -1; }
static int no_such_gradient(OpCall *c) { return op_grad(c, 1) ? 0 : -1; }
static int two_widths(OpCall *c) { return op_gradient_f32(c, 0) && op_gradient_f64(c, 0) ? 0 : -1; }
static int early_gradient(OpCall *c) { return op_grad_f64(c, 0) ? 0 : -1; }
static int early_save(OpCall *c) { return op_saved_f64(c, 0) ? 0 : -1; }

static void calls(void)
{
    ANSWER(makes(result_out_of_order, IN_SHAPE, 1));
    ANSWER(makes(result_below, IN_SHAPE, 1));
    ANSWER(makes(result_below_0, IN_SHAPE, 1));
    ANSWER(makes(results_79, IN_SHAPE, 1));
    ANSWER(makes(results_80, IN_SHAPE, 1));
    ANSWER(makes(most_results, IN_SHAPE, 1));
    ANSWER(makes(more_results, IN_SHAPE, 1));
    ANSWER(makes(tensor_out_of_order, IN_SHAPE, 1));
    ANSWER(makes(no_result, IN_SHAPE, 1));
    ANSWER(makes(long_list, IN_SHAPE, 1));
    ANSWER(makes(four_lists, IN_SHAPE, 1));
    ANSWER(makes(five_lists, IN_SHAPE, 1));
    ANSWER(makes(most_saves, IN_FORWARD, 1));
    ANSWER(makes(more_saves, IN_FORWARD, 1));
    ANSWER(makes(no_operand, IN_FORWARD, 1));
    ANSWER(makes(no_operand_f32, IN_FORWARD, 1));
    ANSWER(makes(no_such_result, IN_FORWARD, 1));
    ANSWER(makes(last_of_64, IN_FORWARD, 64));
    ANSWER(makes(commit_shape, IN_FORWARD, 1));
    ANSWER(makes(most_commits, IN_FORWARD, 1));
    ANSWER(makes(more_commits, IN_FORWARD, 1));
    ANSWER(makes(early_gradient, IN_FORWARD, 1));
    ANSWER(makes(early_save, IN_FORWARD, 1));
    ANSWER(makes(commit_late, IN_BACKWARD, 1));
    ANSWER(makes(saved_operand, IN_BACKWARD, 1));
    ANSWER(makes(saved_result, IN_BACKWARD, 1));
    ANSWER(makes(saved_extra, IN_BACKWARD, 1));
    ANSWER(makes(no_such_gradient, IN_BACKWARD, 1));
    ANSWER(makes(two_widths, IN_BACKWARD, 1));
}

/* ---- what backward lacks ---------------------------------------------------------------------- */

static int identity(OpCall *c)
{
    return op_commit(c, op_output(c, 0), op_input(c, 0)) || op_save(c, op_input(c, 0));
}

static int by_arrays(OpCall *c, Tensor *dy, Tensor **dx)
{
    return (void)dy, (void)dx, op_grad_f64(c, 0) && op_gradient_f64(c, 0) ? 0 : -1;
}

/* Errors name it, so it must not be inlined, as clang 19 would. */
__attribute__((noinline)) static void sweep(const TensorOp *op, bool create_graph, bool overwrite)
{
    Tensor *leaf = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F64), true),
           *x = tensor_mul_scalar(leaf, 2), *y = tensor_sum(tensor_apply(op, &x, 1, NULL));
    if (overwrite) tensor_fill_(x, 1);
    tensor_backward(y, .create_graph = create_graph);
}

static void backwards(void)
{
    const TensorOp none = { .name = "none", .arity = 1, .shape = op_same_shape, .forward = identity },
                   nothing = { .name = "nothing", .arity = 1, .shape = op_same_shape },
                   arrays = { .name = "arrays",
                              .arity = 1,
                              .shape = op_same_shape,
                              .forward = identity,
                              .backward = by_arrays };
    ANSWER(sweep(&none, false, false));
    ANSWER(sweep(&nothing, false, false));
    ANSWER(sweep(&arrays, false, false));
    ANSWER(sweep(&arrays, true, false));
    ANSWER(sweep(&arrays, false, true));
}

/* ---- arguments -------------------------------------------------------------------------------- */

static Tensor *given(const TensorOp *op, int inputs, MistakeArgs args)
{
    Tensor *x[OP_MAX_INPUTS + 1];
    for (int i = 0; i <= OP_MAX_INPUTS; i++) x[i] = tensor_ones(SHAPE(2), TENSOR_F64);
    mistake = one_save;
    return tensor_apply(op, x, inputs, &args);
}

static void arguments(void)
{
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64), *y = NULL;
    const TensorOp *add = tensor_op_find("add");
    const TensorOp big = { .name = "big", .arity = 1, .params = 1025, .shape = shape, .forward = forward },
                   full = {
                       .name = "full", .arity = 1, .params = 1024, .shape = op_same_shape, .forward = identity
                   };
    const char room[1025] = { 0 };
    static const int64_t sizes[TENSOR_MAX_DIMS + 1];
    ANSWER(tensor_apply(NULL, &x, 1, NULL));
    ANSWER(tensor_apply(add, NULL, 2, NULL));
    ANSWER(tensor_apply(add, &x, 1, NULL));
    ANSWER(tensor_apply_all(NULL, &x, 1, NULL, &y, 1));
    ANSWER(tensor_apply_all(add, NULL, 2, NULL, &y, 1));
    ANSWER(tensor_apply_all(add, &x, 1, NULL, NULL, 1));
    ANSWER(given(&wrong, 0, (MistakeArgs){ .kind = IN_FORWARD }));
    ANSWER(given(&wrong, 1, (MistakeArgs){ .kind = IN_FORWARD }));
    ANSWER(given(&wrong, 64, (MistakeArgs){ .kind = IN_FORWARD }));
    ANSWER(given(&wrong, 65, (MistakeArgs){ .kind = IN_FORWARD }));
    ANSWER(given(&wrong, 1, (MistakeArgs){ .kind = -1 }));
    ANSWER(given(&wrong, 1, (MistakeArgs){ .kind = 3 }));
    ANSWER(given(&wrong, 1, (MistakeArgs){ .kind = IN_FORWARD, .sizes = { TENSOR_MAX_DIMS, sizes } }));
    ANSWER(given(&wrong, 1, (MistakeArgs){ .kind = IN_FORWARD, .sizes = { TENSOR_MAX_DIMS + 1, sizes } }));
    ANSWER(given(&wrong, 1, (MistakeArgs){ .kind = IN_FORWARD, .sizes = { -1, sizes } }));
    ANSWER(given(&wrong, 1, (MistakeArgs){ .kind = IN_FORWARD, .sizes = { 3, NULL } }));
    ANSWER(tensor_apply(&full, &x, 1, room));
    ANSWER(tensor_apply(&big, &x, 1, room));
    ANSWER(tensor_apply(tensor_op_find("gather"), (Tensor *[]){ x, x }, 2, NULL));
}

static void texts(void)
{
    Tensor *x = tensor_ones(SHAPE(2, 3), TENSOR_F64), *y[1];
    ANSWER(tensor_apply_text(NULL, &x, 1, ""));
    ANSWER(tensor_apply_text("no_such_op", &x, 1, ""));
    ANSWER(tensor_apply_text("sum", NULL, 1, ""));
    ANSWER(tensor_apply_text_all("sum", &x, 1, "", NULL, 1));
    ANSWER(tensor_apply_text_all(NULL, &x, 1, "", y, 1));
    ANSWER(tensor_apply_text("sum", &x, 1, "dims=[0]"));
    ANSWER(tensor_apply_text("sum", &x, 1, "dims=[0] keepdim=true"));
    ANSWER(tensor_apply_text("sum", &x, 1, "dims=[0] dims=[1]"));
    ANSWER(tensor_apply_text("sum", &x, 1, "dims"));
    ANSWER(tensor_apply_text("sum", &x, 1, "dims=x"));
    ANSWER(tensor_apply_text("sum", &x, 1, "keepdim=3"));
    ANSWER(tensor_apply_text("sum", &x, 1, "dtype=f33"));
    ANSWER(tensor_apply_text("sum", &x, 1, "size=3"));
    ANSWER(tensor_apply_text("exp", &x, 1, "size=3"));
    ANSWER(tensor_apply_text("gather", (Tensor *[]){ x, x }, 2, ""));
    ANSWER(tensor_apply_text("exp", &x, 1, NULL));
}

/* ---- formulas --------------------------------------------------------------------------------- */

static Tensor *formula(const char *text)
{
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64);
    OpName names[] = { { "x", x, 0 }, { "name_of_just_31_letters_and_mor", NULL, 2 }, { "two", NULL, 2 } };
    return op_formula("formula", text, names, 3);
}

static void formulas(void)
{
    ANSWER(op_formula(NULL, "x", NULL, 0));
    ANSWER(op_formula("formula", "x", NULL, 1));
    ANSWER(op_formula("formula", "x", &(OpName){ "x", NULL, 1 }, 1));
    ANSWER(formula(NULL));
    ANSWER(formula("x"));
    ANSWER(formula("1"));
    ANSWER(formula("name_of_just_31_letters_and_mor"));
    ANSWER(formula("name_of_just_31_letters_and_more"));
    ANSWER(formula("x x"));
    ANSWER(formula("(x"));
    ANSWER(formula("x +"));
    ANSWER(formula("y"));
    ANSWER(formula("x ? x"));
    ANSWER(formula("no_such(x)"));
    ANSWER(formula("exp(x"));
    ANSWER(formula("exp(x, x)"));
    ANSWER(formula("pow(x)"));
    ANSWER(formula("exp(x, x, x, x)"));
    ANSWER(formula("exp(x, x, x, x, x)"));
    ANSWER(formula("leaky_relu(x, two)"));
    ANSWER(formula("leaky_relu(x, x)"));
    ANSWER(formula("x #"));
    ANSWER(formula("x > 1 ? x : two"));
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/op/refusals.golden");
    answers_of("calls", calls);
    answers_of("backwards", backwards);
    answers_of("arguments", arguments);
    answers_of("texts", texts);
    answers_of("formulas", formulas);
    return answers_end();
}
