/* apply_text.c - runs an op by its name, with options as text. */
#include <string.h>
#include "autograd/options.h"

static void option_names(const TensorOp *op, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, op->fields ? "it has" : "it has none");
    for (const OpField *f = op->fields; f && f->name && n < size; f++)
        n += (size_t)snprintf(text + n, size - n, "%s %s", f == op->fields ? "" : ",", f->name);
}

static int refuse_value(const TensorOp *op, const char *at, const char *name, int length)
{
    char known[300] = "";
    const OpField *f = options_find(op, name, (size_t)length);
    if (f && f->choices) options_no_choice(f->choices, -1, known, sizeof known);
    return fail(TENSOR_EVALUE, op->name, "option %.*s: \"%.40s\" is no value of it%s%s", length, name, at,
                *known ? ": want " : "", known);
}

static int refuse(const TensorOp *op, OptionFault fault, const char *at, const char *name, int length)
{
    char known[400];
    switch (fault) {
    case OPTION_UNKNOWN:
        option_names(op, known, sizeof known);
        return fail(TENSOR_EVALUE, op->name, "there is no option at \"%.40s\": %s", at, known);
    case OPTION_NO_VALUE:
        return fail(TENSOR_EVALUE, op->name, "option %.*s has no value: want %.*s=...", length, name, length,
                    name);
    case OPTION_BAD: return refuse_value(op, at, name, length);
    case OPTION_TWICE: return fail(TENSOR_EVALUE, op->name, "option %.*s is given twice", length, name);
    case OPTION_MISSING: return fail(TENSOR_EVALUE, op->name, "option %.*s must be given", length, name);
    default: return 0;
    }
}

/* Optional inputs at the end may be left out: copies those given into `all`, whose other elements are
 * NULL.  Returns the number of inputs to pass. */
static int with_optional(const TensorOp *op, Tensor *const *inputs, int n, Tensor **all)
{
    if (n < 1 || n >= op->arity) return n; /* also if any number will do */
    const unsigned missing = ((1u << (op->arity - n)) - 1) << n;
    if ((op->optional & missing) != missing) return n;
    memcpy(all, inputs, (size_t)n * sizeof *all);
    return op->arity;
}

static int apply_text(const char *name, Tensor *const *inputs, int n, const char *options, Tensor **outputs,
                      int count, const char *function, const void *site)
{
    const TensorOp *op = tensor_op_find(name);
    _Alignas(16) char params[CALL_PARAMS];
    OptionRoom room;
    const char *option = "", *at = options ? options : "";
    int length = 0;
    for (int i = 0; i < count && outputs; i++) outputs[i] = NULL;
    if (!name) return fail(TENSOR_ENULL, function, "the name is NULL");
    if (!op) return fail(TENSOR_EVALUE, function, "there is no op \"%.60s\" in this program", name);
    if ((!inputs && n > 0) || (!outputs && count > 0))
        return fail(TENSOR_ENULL, op->name, "the array of %s is NULL", inputs ? "results" : "inputs");
    Tensor *all[OP_MAX_INPUTS] = { NULL };
    const int given = with_optional(op, inputs, n, all);
    const OptionFault fault = options_read(op, &at, 0, params, &room, &option, &length);
    if (fault) return refuse(op, fault, at, option, length);
    return op_apply(op, given > n ? all : inputs, given, op->params ? params : NULL, site, outputs, count);
}

Tensor *tensor_apply_text(const char *name, Tensor *const *inputs, int n, const char *options)
{
    Tensor *y = NULL;
    return apply_text(name, inputs, n, options, &y, 1, "tensor_apply_text", SITE) < 0 ? NULL : y;
}

int tensor_apply_text_all(const char *name, Tensor *const *inputs, int n, const char *options,
                          Tensor **outputs, int count)
{
    return apply_text(name, inputs, n, options, outputs, count, "tensor_apply_text_all", SITE);
}
