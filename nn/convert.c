/* convert.c - a module to another dtype or device.
 *
 * Every tensor is made anew before any is replaced; one that is registered in two places is made once. */
#include <stdlib.h>
#include "module.h"

typedef struct Pair {
    Tensor *old, *new;
} Pair;

typedef struct Convert {
    TensorDtype dtype;  /* TENSOR_DTYPES: keep it */
    const char *device; /* NULL: keep it */
    Pair *pair;
    int n;
} Convert;

static Tensor *converted(const Convert *c, Tensor *t)
{
    bool cast = c->dtype != TENSOR_DTYPES && tensor_dtype_is_float(tensor_dtype(t));
    if (t && cast) t = tensor_to(t, c->dtype);
    return t && c->device ? tensor_to_device(t, c->device) : t;
}

static const Pair *find(const Convert *c, const Tensor *old)
{
    for (int i = 0; i < c->n; i++)
        if (c->pair[i].old == old) return &c->pair[i];
    return NULL;
}

/* A leaf like old, with its gradient.  Runs without grad mode. */
static Tensor *new_leaf(const Convert *c, Tensor *old)
{
    Tensor *value = converted(c, old), *grad = tensor_grad(old);
    if (!value || value == old) return value;
    if (tensor_requires_grad(old) && !tensor_requires_grad_(value, true)) return NULL;
    if (!grad) return value;
    grad = converted(c, grad);
    return grad && tensor_set_grad(value, grad) == 0 ? value : NULL;
}

static int make(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)path, (void)is_buffer;
    Convert *c = ctx;
    if (find(c, t->tensor)) return 0;
    TensorScope scope = tensor_scope_open();
    Tensor *made = new_leaf(c, t->tensor);
    if (made) c->pair[c->n++] = (Pair){ t->tensor, tensor_retain(made) };
    tensor_scope_close(scope);
    return made ? 0 : -1;
}

static int replace(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)path, (void)is_buffer;
    const Pair *pair = find(ctx, t->tensor);
    if (!pair || pair->new == t->tensor) return 0; /* a shared module is met twice: already replaced */
    tensor_release(t->tensor);
    t->tensor = tensor_retain(pair->new);
    return 0;
}

static int count_tensor(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)path, (void)t, (void)is_buffer;
    ++*(int *)ctx;
    return 0;
}

static int convert(Module *m, Convert c, const char *function)
{
    int most = 0;
    if (nn_walk(m, count_tensor, &most)) return -1;
    c.pair = calloc((size_t)most + 1, sizeof *c.pair);
    if (!c.pair) return tensor_fail(TENSOR_ENOMEM, function, "out of memory");
    bool was = tensor_set_grad_enabled(false);
    int status = nn_walk(m, make, &c);
    tensor_set_grad_enabled(was);
    for (int i = 0; i < c.n; i++)
        tensor_retain(c.pair[i].old); /* an address must not come back while pairs are looked up */
    if (!status) nn_walk(m, replace, &c);
    for (int i = 0; i < c.n; i++) {
        tensor_release(c.pair[i].old);
        tensor_release(c.pair[i].new);
    }
    free(c.pair);
    return status;
}

int nn_to(void *module, TensorDtype dtype)
{
    if (nn_null(module, "nn_to")) return -1;
    if (!tensor_dtype_is_float(dtype))
        return tensor_fail(TENSOR_EDTYPE, "nn_to", "%s: parameters are floating", tensor_dtype_name(dtype));
    return convert(module, (Convert){ .dtype = dtype }, "nn_to");
}

int nn_to_device(void *module, const char *device)
{
    if (nn_null(module, "nn_to_device")) return -1;
    if (!device) return tensor_fail(TENSOR_ENULL, "nn_to_device", "the device is NULL");
    return convert(module, (Convert){ .dtype = TENSOR_DTYPES, .device = device }, "nn_to_device");
}
