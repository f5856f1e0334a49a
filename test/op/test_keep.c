/* test_keep.c - an op keeps no operand or result that its backward, recorded or not, does not read: of each
 * structured op each bit of .keep is taken away, and then the gradient of some sample fails. */
#include <stdio.h>
#include <string.h>
#include "check/sample.h"

/* Does backward of a sample ask for what is not kept?  input: the one whose gradient is wanted; -1: all. */
static bool fails(const TensorOp *op, const Sample *s, int input, bool recorded)
{
    Tensor *x[OP_MAX_INPUTS], *leaf[OP_MAX_INPUTS], *y[SAMPLE_RESULTS], *sum = NULL;
    Sample mine = *s;
    mine.op = op;
    TensorScope scope = tensor_scope_open();
    sample_inputs(&mine, AS_WRITTEN, 1, x);
    sample_leaves(&mine, x, leaf);
    for (int i = 0; i < s->n; i++)
        if (input >= 0 && i != input && leaf[i]) leaf[i] = tensor_detach(leaf[i]);
    const int n = sample_apply(&mine, leaf, y);
    for (int k = 0; k < n; k++) {
        if (!y[k] || !tensor_requires_grad(y[k])) continue;
        Tensor *part = tensor_sum(tensor_mul(y[k], random_like(y[k], 7)));
        sum = sum ? tensor_add(sum, part) : part;
    }
    if (sum) tensor_backward(sum, .create_graph = recorded);
    const bool failed = tensor_error_code() != TENSOR_OK;
    tensor_error_clear();
    tensor_scope_close(scope);
    return failed;
}

static bool is_read_in(const TensorOp *op, const TensorOp *less, const Sample *s, int input, bool recorded)
{
    return fails(less, s, input, recorded) && !fails(op, s, input, recorded);
}

static bool is_read(const TensorOp *op, const TensorOp *less, int input)
{
    const char *list = op_samples(op);
    bool read = false;
    for (Sample s; !read && sample_next(op, &list, &s) > 0;)
        read = is_read_in(op, less, &s, input, false) ||
               (!(op->flags & OP_FIRST_ORDER) && is_read_in(op, less, &s, input, true));
    return read;
}

static int unread(const TensorOp *op, int input, unsigned keep)
{
    int wrong = 0;
    for (int b = 0; b < 32; b++) {
        TensorOp less = *op;
        if (!(keep >> b & 1)) continue;
        if (input >= 0) less.keep_for[input] &= ~(1u << b);
        else less.keep &= ~(1u << b);
        if (is_read(op, &less, input)) continue;
        wrong++;
        fprintf(stderr, "%s keeps %s %d", op->name, b < 16 ? "operand" : "result", b % 16 + 1);
        if (input >= 0) fprintf(stderr, " for the gradient of operand %d", input + 1);
        fprintf(stderr, ", which backward does not read\n");
    }
    return wrong;
}

int main(void)
{
    int wrong = 0;
    for (int i = 0; i < tensor_op_count(); i++) {
        const TensorOp *op = tensor_op_at(i);
        bool each = false;
        if (op->row || !op->backward) continue;
        for (int k = 0; k < 4; k++) each |= op->keep_for[k] != 0;
        for (int k = 0; each && k < 4; k++) wrong += unread(op, k, op->keep_for[k]);
        if (!each) wrong += unread(op, -1, op->keep);
    }
    printf("[  %s ] what backward keeps\n", wrong ? "FAILED " : "     OK");
    return wrong != 0;
}
