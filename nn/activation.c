/* activation.c - layers without parameters: activations, dropout, flatten. */
#include <string.h>
#include "module.h"

/* ---- of the element alone: one row each ------------------------------------------------------ */

#define PLAIN(name, type)                                  \
    static Tensor *name##_forward(Module *self, Tensor *x) \
    {                                                      \
        (void)self;                                        \
        return tensor_##name(x);                           \
    }                                                      \
    Module *nn_##name(void) { return nn_done(nn_new_size(sizeof(Module), type, name##_forward)); }
PLAIN(relu, "ReLU")
PLAIN(silu, "SiLU")
PLAIN(tanh, "Tanh")
PLAIN(sigmoid, "Sigmoid")

/* ---- with one number ------------------------------------------------------------------------- */

typedef struct WithValue {
    Module base;
    double value;
} WithValue;

static double value_of(const Module *m) { return ((const WithValue *)m)->value; }

static Module *with_value(const char *type, Tensor *(*forward)(Module *, Tensor *), double value)
{
    WithValue *m = nn_new(WithValue, type, forward);
    m->value = value;
    return nn_done(m);
}

static Tensor *leaky_relu_forward(Module *self, Tensor *x) { return tensor_leaky_relu(x, value_of(self)); }
static Tensor *elu_forward(Module *self, Tensor *x) { return tensor_elu(x, value_of(self)); }
static Tensor *dropout_forward(Module *self, Tensor *x)
{
    return tensor_dropout(x, value_of(self), self->training);
}
static Tensor *dropout2d_forward(Module *self, Tensor *x)
{
    return tensor_dropout2d(x, value_of(self), self->training);
}

Module *nn_leaky_relu_args(NNActivationArgs args)
{
    return with_value("LeakyReLU", leaky_relu_forward, args.value);
}
Module *nn_elu_args(NNActivationArgs args) { return with_value("ELU", elu_forward, args.value); }

static Module *dropout(const char *function, const char *type, Tensor *(*forward)(Module *, Tensor *),
                       double p)
{
    if (!(p >= 0 && p <= 1)) return tensor_fail(TENSOR_EVALUE, function, "p = %g is no probability", p), NULL;
    return with_value(type, forward, p);
}

Module *nn_dropout_args(NNDropoutArgs args)
{
    return dropout("nn_dropout", "Dropout", dropout_forward, args.p);
}
Module *nn_dropout2d_args(NNDropoutArgs args)
{
    return dropout("nn_dropout2d", "Dropout2d", dropout2d_forward, args.p);
}

/* ---- gelu ------------------------------------------------------------------------------------ */

static Tensor *gelu_forward(Module *self, Tensor *x)
{
    (void)self;
    return tensor_gelu(x);
}
static Tensor *gelu_tanh_forward(Module *self, Tensor *x)
{
    (void)self;
    return tensor_gelu_tanh(x);
}

Module *nn_gelu_args(NNGeluArgs args)
{
    const char *how = args.approximate ? args.approximate : "(NULL)";
    bool by_tanh = strcmp(how, "tanh") == 0;
    if (!by_tanh && strcmp(how, "none") != 0)
        return tensor_fail(TENSOR_EVALUE, "nn_gelu", "approximate = \"%s\": \"none\" or \"tanh\" is wanted",
                           how),
               NULL;
    return nn_done(nn_new_size(sizeof(Module), "GELU", by_tanh ? gelu_tanh_forward : gelu_forward));
}

/* ---- along dimensions ------------------------------------------------------------------------ */

typedef struct WithDims {
    Module base;
    int start, end;
} WithDims;

static Module *with_dims(const char *type, Tensor *(*forward)(Module *, Tensor *), int start, int end)
{
    WithDims *m = nn_new(WithDims, type, forward);
    m->start = start, m->end = end;
    return nn_done(m);
}

static Tensor *softmax_forward(Module *self, Tensor *x)
{
    return tensor_softmax(x, ((WithDims *)self)->start);
}
static Tensor *log_softmax_forward(Module *self, Tensor *x)
{
    return tensor_log_softmax(x, ((WithDims *)self)->start);
}
static Tensor *flatten_forward(Module *self, Tensor *x)
{
    return tensor_flatten(x, ((WithDims *)self)->start, ((WithDims *)self)->end);
}

Module *nn_softmax(int dim) { return with_dims("Softmax", softmax_forward, dim, dim); }
Module *nn_log_softmax(int dim) { return with_dims("LogSoftmax", log_softmax_forward, dim, dim); }
Module *nn_flatten_args(NNFlattenArgs args)
{
    return with_dims("Flatten", flatten_forward, args.start_dim, args.end_dim);
}
