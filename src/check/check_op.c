/* check_op.c - tensor_check_op: all checks of an op at its samples. */
#include <tapegrad/random.h>
#include "tensor/core.h"
#include "report.h"

static const struct {
    unsigned part;
    void (*check)(const TensorOp *op);
} checks[] = {
    { OP_CHECK_FORWARD, check_op_forward }, { OP_CHECK_GRADIENT, check_op_gradients },
    { OP_CHECK_HALVES, check_op_halves },   { OP_CHECK_LAYOUT, check_op_layouts },
    { OP_CHECK_MEMORY, check_op_memory },
};

int tensor_check_op(const TensorOp *op, unsigned parts, OpReport *given)
{
    if (!op) return fail(TENSOR_ENULL, "tensor_check_op", "the op is NULL");
    OpReport *report = given ? given : tg_alloc(sizeof *report);
    if (!report) return fail_memory("tensor_check_op");
    const bool was = tensor_set_grad_enabled(true);
    TensorScope scope = tensor_scope_open();
    tensor_error_clear();
    report_begin(report, op);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if ((parts ? parts : ~(unsigned)OP_CHECK_MEMORY) & checks[i].part) checks[i].check(op);
    const int wrong = report_end();
    tensor_scope_close(scope);
    tensor_set_grad_enabled(was);
    if (wrong)
        fail(TENSOR_EVALUE, op->name, "%d complaints, the first: %.*s", wrong,
             (int)strcspn(report->text, "\n"), report->text);
    if (!given) tg_free(report, sizeof *report);
    return wrong ? -1 : 0;
}
