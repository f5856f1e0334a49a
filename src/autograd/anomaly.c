/* anomaly.c - finds the first NaN: in a result whose operands had none, or in a gradient computed from
 * gradients without one. */
#include <math.h>
#include <tapegrad/debug.h>
#include "tape.h"

THREAD_LOCAL bool anomaly_on;

bool tensor_set_detect_anomaly(bool on)
{
    bool was = anomaly_on;
    anomaly_on = on;
    return was;
}

int64_t tensor_first_nan(const Tensor *x)
{
    if (check_null(x, "tensor_first_nan", 1)) return -1;
    if (!dtype_is_float(x->dtype)) return -1;
    Tensor *dense = raw_cast(x, TENSOR_F64), *host = dense ? raw_carry(dense, &cpu_place) : NULL;
    int64_t found = -1;
    const double *v = host ? host->data : NULL;
    for (int64_t i = 0; v && i < host->numel && found < 0; i++)
        if (isnan(v[i])) found = i;
    tensor_release(host);
    tensor_release(dense);
    return found;
}

static bool any_nan(Tensor *const *x, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i] && tensor_first_nan(x[i]) >= 0) return true;
    return false;
}

static const char *place_text(TensorShape shape, int64_t at, char *text, size_t size)
{
    int64_t index[TENSOR_MAX_DIMS];
    for (int d = shape.ndim - 1; d >= 0; d--) index[d] = at % shape.dim[d], at /= shape.dim[d];
    snprintf(text, size, "%s", shape_text((TensorShape){ shape.ndim, index }));
    return text;
}

int anomaly_check_results(OpCall *c)
{
    char where[128];
    for (int i = 0; i < c->outputs; i++) {
        int64_t at = tensor_first_nan(c->output[i]);
        if (at < 0 || any_nan(c->input, c->n)) continue;
        return op_fail(c, TENSOR_EVALUE, "result %d %s has nan at %s, and no operand had one", i + 1,
                       S(c->output[i]), place_text(shape_of(c->output[i]), at, where, sizeof where));
    }
    return 0;
}

int anomaly_check_gradient(const Entry *e, int input, const Tensor *dx, Tensor *const *dy)
{
    char where[128];
    int64_t at = tensor_first_nan(dx);
    if (at < 0 || any_nan(dy, e->outputs)) return 0;
    return fail_entry(TENSOR_EVALUE, e,
                      "backward: the gradient of operand %d %s has nan at %s, and the gradient that "
                      "came in had none",
                      input + 1, S(dx), place_text(shape_of(dx), at, where, sizeof where));
}
