/* convert.c - a module to another dtype or device: its tensors stay the same handles and change their data.
 *
 * All new data are allocated before the first tensor changes; a tensor registered in two places is converted
 * once. */
#include <stdlib.h>
#include "module.h"

typedef struct Change {
    Tensor *tensor, *data, *grad; /* data, grad: what it becomes; retained */
} Change;

typedef struct Convert {
    TensorDtype dtype;  /* TENSOR_DTYPES: keep it */
    const char *device; /* NULL: keep it */
    const char *function;
    Change *change;
    int n;
} Convert;

static Tensor *converted(const Convert *c, Tensor *t)
{
    bool cast = t && c->dtype != TENSOR_DTYPES && tensor_dtype_is_float(tensor_dtype(t));
    if (cast) t = tensor_to(t, c->dtype);
    return t && c->device ? tensor_to_device(t, c->device) : t;
}

static bool is_listed(const Convert *c, const Tensor *t)
{
    for (int i = 0; i < c->n; i++)
        if (c->change[i].tensor == t) return true;
    return false;
}

static int make(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)is_buffer;
    Convert *c = ctx;
    if (is_listed(c, t->tensor)) return 0;
    if (!tensor_is_leaf(t->tensor))
        return tensor_fail(TENSOR_EGRAD, c->function, "%s is the result of an op: register it detached",
                           path);
    TensorScope scope = tensor_scope_open();
    Tensor *grad = tensor_grad(t->tensor), *data = converted(c, tensor_detach(t->tensor));
    Tensor *new_grad = data && grad ? converted(c, grad) : NULL;
    bool made = data && (new_grad || !grad);
    if (made) c->change[c->n++] = (Change){ t->tensor, tensor_retain(data), tensor_retain(new_grad) };
    tensor_scope_close(scope);
    return made ? 0 : -1;
}

/* Nothing here can fail. */
static void take(const Change *c)
{
    tensor_set_grad(c->tensor, NULL);
    tensor_set_data(c->tensor, c->data);
    tensor_set_grad(c->tensor, c->grad);
}

static int count_tensor(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)path, (void)t, (void)is_buffer;
    ++*(int *)ctx;
    return 0;
}

static void set_lazy_dtype(Module *m, void *ctx) { m->lazy_dtype = *(TensorDtype *)ctx; }

static int convert(Module *m, Convert c)
{
    int most = 0;
    if (nn_walk(m, count_tensor, &most)) return -1;
    c.change = calloc((size_t)most + 1, sizeof *c.change);
    if (!c.change) return tensor_fail(TENSOR_ENOMEM, c.function, "out of memory");
    bool was = tensor_set_grad_enabled(false);
    int status = nn_walk(m, make, &c);
    tensor_set_grad_enabled(was);
    for (int i = 0; i < c.n; i++) {
        if (!status) take(&c.change[i]);
        tensor_release(c.change[i].data);
        tensor_release(c.change[i].grad);
    }
    free(c.change);
    if (!status && c.dtype != TENSOR_DTYPES) nn_apply(m, set_lazy_dtype, &c.dtype);
    return status;
}

int nn_to(Module *module, TensorDtype dtype)
{
    if (nn_null(module, "nn_to")) return -1;
    if (!tensor_dtype_is_float(dtype))
        return tensor_fail(TENSOR_EDTYPE, "nn_to", "%s: parameters are floating", tensor_dtype_name(dtype));
    return convert(module, (Convert){ .function = "nn_to", .dtype = dtype });
}

int nn_to_device(Module *module, const char *device)
{
    if (nn_null(module, "nn_to_device")) return -1;
    if (!device) return tensor_fail(TENSOR_ENULL, "nn_to_device", "the device is NULL");
    return convert(module, (Convert){ .function = "nn_to_device", .dtype = TENSOR_DTYPES, .device = device });
}
