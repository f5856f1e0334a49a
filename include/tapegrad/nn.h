/* nn.h - modules: layers with parameters, put together into nets.
 *
 *     Module *net = nn_sequential(nn_linear(784, 100), nn_relu(), nn_dropout(0.2), nn_linear(100, 10));
 *     Tensor *y = nn_forward(net, x);                      // [64, 784] -> [64, 10]
 *     nn_eval(net);                                        // dropout off
 *     nn_summary(net, SHAPE(1, 784), stdout);
 *     nn_free(net);
 *
 * torch.nn.Foo is nn_foo, with PyTorch's arguments in its order, options by name, its defaults, its names of
 * parameters (nn_get(net, "0.weight")) and, after the same seed, its initial values: tensor_manual_seed(0);
 * nn_linear(3, 2) has PyTorch's.
 *
 * Ownership: a module owns its parameters, buffers and children.  nn_child, nn_sequential and every function
 * that takes a child take over the caller's reference, also when they fail; nn_free gives one back.  To use
 * one module in two places, pass nn_retain(m) to the second: it is freed with the last of them.
 *
 * Errors: what fails returns NULL, a NULL child makes its parent fail, and what was made is freed: one check
 * of tensor_error() at the end of a whole net.  Functions on a NULL module do nothing.
 *
 * Modules may be run by several threads in eval mode; everything else wants one thread at a time. */
#ifndef TAPEGRAD_NN_H
#define TAPEGRAD_NN_H

#include <tapegrad/autograd.h>
#include <tapegrad/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- names and tensors --------------------------------------------------------------------------
 * What a module's state is, and what files hold:
 *
 *     TensorDict best = nn_dict_clone(nn_state_dict(net));
 *     ... training goes astray ...
 *     nn_load_state_dict(net, best);
 *     nn_dict_free(best);
 *
 *     TensorDict named = nn_named_parameters(net);
 *     for (int i = 0; i < named.count; i++) puts(named.item[i].name);
 *
 * A dict retains its tensors.  Begin one of your own with `TensorDict d = { 0 };`.  A call that fails gives a
 * dict whose count is -1, which every function refuses, as it does one with NULL items (ENULL). */
typedef struct TensorDictItem {
    char *name;
    Tensor *tensor;
} TensorDictItem;

typedef struct TensorDict {
    TensorDictItem *item; /* in order */
    int count, capacity;
} TensorDict;

/* nn_dict_set - adds an item at the end, or replaces the tensor of that name.  ENULL, ENOMEM.
 * nn_dict_get - NULL, and no error, when there is none of that name.
 * nn_dict_clone - copies of the tensors, outside any graph; the caller frees it.
 * nn_dict_free - only for dicts of your own: those that a module gives are the module's. */
TAPEGRAD_API int nn_dict_set(TensorDict *dict, const char *name, Tensor *t);
TAPEGRAD_API Tensor *nn_dict_get(TensorDict dict, const char *name);
TAPEGRAD_API TensorDict nn_dict_clone(TensorDict dict);
TAPEGRAD_API void nn_dict_free(TensorDict dict);

/* ---- a module of one's own ----------------------------------------------------------------------
 * A struct that begins with `Module base`, a forward function, and a constructor that ends in nn_done:
 *
 *     typedef struct { Module base; Module *inner; Tensor *scale; } Scaled;
 *
 *     static Tensor *scaled_forward(Module *self, Tensor *x)
 *     {
 *         Scaled *s = (Scaled *)self;
 *         TensorScope scope = tensor_scope_open();
 *         return tensor_scope_return(scope, tensor_mul(nn_forward(s->inner, x), s->scale));
 *     }
 *
 *     Module *scaled(Module *inner)
 *     {
 *         Scaled *s = nn_new(Scaled, "Scaled", scaled_forward);
 *         s->inner = nn_child(s, "inner", inner);
 *         s->scale = nn_register_parameter(s, "scale", tensor_ones(SHAPE(1), TENSOR_F32));
 *         return nn_done(s);
 *     } */
typedef struct Module Module;

typedef struct ModuleTensor {
    char *name;
    Tensor *tensor;
    bool persistent; /* of a buffer: is it in the state dict? */
} ModuleTensor;

typedef struct ModuleChild {
    char *name;
    Module *module;
} ModuleChild;

typedef struct NNBase {
    char none;
} NNBase; /* what lets a Module and a struct that begins with one be passed alike */

struct Module {
    union {
        const char *type; /* "Linear"; not copied */
        NNBase base;
    };
    Tensor *(*forward)(Module *self, Tensor *x);
    /* may be set: frees what your struct holds besides parameters and children */
    void (*destroy)(Module *self);
    bool training; /* nn_train, nn_eval; true at first */
    ModuleTensor *parameters, *buffers;
    ModuleChild *children;
    int parameter_count, buffer_count, child_count;

    const struct NNKind *kind; /* of nn_make; NULL: of nn_new */
    const void *args;          /* its options, of kind->args bytes; lists are copied too, texts are not */
    int refs, parents;         /* from here on: the library's own */
    bool failed, spare;
    Tensor **list;
    TensorDict named, state;
};

/* What the functions of a constructor, nn_child, nn_register_parameter, nn_register_buffer, nn_append and
 * nn_done, take as module: a Module *, or a pointer to a struct that begins with `Module base`.  In C++, and
 * through pointers to these functions: a Module *. */
#define NN_MODULE(m) _Generic(&(m)->base, Module * : (void *)(m), NNBase * : (void *)(m))

enum { NN_MODULE_MAX = 4096 }; /* bytes of a module's struct; keep what is bigger behind a pointer */

/* nn_new(Block, "Block", block_forward) - a zeroed Block.  Never NULL: without memory, or with a size that no
 * module can have (EVALUE), it is a spare one, on which everything fails and whose nn_done is NULL, so a
 * constructor needs no check. */
#define nn_new(struct_, type, forward)                                                                   \
    ((struct_ *)nn_new_size(                                                                             \
        sizeof(struct_) +                                                                                \
            0 * sizeof(char[offsetof(struct_, base) == 0 && sizeof(struct_) <= NN_MODULE_MAX ? 1 : -1]), \
        type, forward))
TAPEGRAD_API Module *nn_new_size(size_t size, const char *type, Tensor *(*forward)(Module *self, Tensor *x));

/* nn_child - makes child a part of module under a name and returns it; a child of this name is replaced, and
 * freed. The caller's reference to the child is taken over.  Names are not empty and have no dot. EVALUE: the
 * name is taken by a tensor; child is the child of another already (nn_retain it) or contains module: these
 * two are not the caller's to give and are left alone. Failure, also a child that is NULL, marks the module
 * as failed. */
TAPEGRAD_API Module *nn_child(Module *module, const char *name, Module *child);
#ifndef __cplusplus
#define nn_child(module, name, child) (nn_child)(NN_MODULE(module), name, child)
#endif

/* nn_register_parameter - retains t as a parameter of the module, lets it require a gradient, and returns it;
 * a parameter of this name is replaced: nn_register_parameter(head, "weight", nn_get(net, "wte.weight")) ties
 * two layers. EVALUE: as nn_child.  EGRAD: t is no leaf.  EDTYPE: t is not floating. */
TAPEGRAD_API Tensor *nn_register_parameter(Module *module, const char *name, Tensor *t);
#ifndef __cplusplus
#define nn_register_parameter(module, name, t) (nn_register_parameter)(NN_MODULE(module), name, t)
#endif

typedef struct NNBufferArgs {
    Module *module;
    const char *name;
    Tensor *tensor;
    bool persistent;
    TensorFromDefaults from_defaults;
} NNBufferArgs;
#define NN_BUFFER_DEFAULTS .persistent = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNBufferArgs nn_buffer_defaults;

/* nn_register_buffer(m, "mask", t, .persistent = false) - a tensor that moves with the module and is saved
 * with it unless .persistent is false, but is not trained. */
#define nn_register_buffer(module_, ...)                                                                  \
    TENSOR_CALL_(nn_register_buffer_args, NNBufferArgs, NN_BUFFER_DEFAULTS, .module = NN_MODULE(module_), \
                 __VA_ARGS__)
TAPEGRAD_API Tensor *nn_register_buffer_args(NNBufferArgs args);

/* nn_done - ends a constructor: the module; or NULL, and all of it freed, if anything failed. */
TAPEGRAD_API Module *nn_done(Module *module);
#ifndef __cplusplus
#define nn_done(module) (nn_done)(NN_MODULE(module))
#endif

/* ---- a kind of module ---------------------------------------------------------------------------
 * The built-in modules are such constants: what nn_new and a constructor say, and their options by name, so
 * that one can be made and tested from a text.  Yours may be one too. */
typedef struct NNKind {
    const char *name;      /* "Linear", PyTorch's */
    const char *function;  /* "nn_linear": what errors name */
    size_t size;           /* of its struct, which begins with Module base; 0: a Module */
    size_t args;           /* of its options struct; 0: none */
    const void *defaults;  /* such a struct */
    const OpField *fields; /* its options, ended by a NULL name */
    int (*init)(Module *self,
                const void *args); /* checks them, registers tensors and children; may be NULL */
    Tensor *(*forward)(Module *self, Tensor *x);
    void (*destroy)(Module *self);
    int rank, form;      /* which of a family: yours to read as self->kind->rank */
    const char *samples; /* for the generated tests, where PyTorch has no such module: "width=3|4x3; width=2
                            bias=false|2@5": options, and the shape of an input (@5: integers below 5) */
} NNKind;

/* nn_make - a module of that kind; args NULL: its defaults.  NULL where init fails. */
TAPEGRAD_API Module *nn_make(const NNKind *kind, const void *args);

/* nn_kind_at - the built-in kinds, 0 to nn_kind_count() - 1, in no particular order; a program linked with
 *     the static library has those that it uses.
 * nn_kind_find - by name or function; NULL, and no error, for an unknown one. */
TAPEGRAD_API int nn_kind_count(void);
TAPEGRAD_API const NNKind *nn_kind_at(int i);
TAPEGRAD_API const NNKind *nn_kind_find(const char *name);

/* ---- ownership ------------------------------------------------------------------------------- */

TAPEGRAD_API Module *nn_retain(Module *module); /* one more reference, for a second place */
/* nn_free - gives one back.  EVALUE: a child that its parents still hold. */
TAPEGRAD_API void nn_free(Module *module);

/* ---- use ------------------------------------------------------------------------------------- */

/* nn_forward - module(x).  EVALUE: it has no forward (a module list). */
TAPEGRAD_API Tensor *nn_forward(Module *module, Tensor *x);

/* nn_train(net, false) and nn_eval(net) - switches dropout, batch statistics and the like, in all modules
 * inside. */
TAPEGRAD_API void nn_train(Module *module, bool training);
TAPEGRAD_API void nn_eval(Module *module);

/* nn_apply - fn(m, ctx) on all modules inside, children first, then the module itself.  m->type tells what it
 * is. */
TAPEGRAD_API void nn_apply(Module *module, void (*fn)(Module *m, void *ctx), void *ctx);

TAPEGRAD_API void nn_zero_grad(Module *module); /* drops every .grad */
TAPEGRAD_API void nn_requires_grad_(Module *module,
                                    bool requires_grad); /* of all parameters: freezes them, or not */
TAPEGRAD_API int64_t nn_num_parameters(Module *module);  /* elements of them; tied ones count once */

/* nn_parameters - all parameters, a tied one once, in PyTorch's order.  The list is the module's: valid until
 * the next nn_parameters of this module, or its end.  Empty for NULL, and when there is no memory. */
TAPEGRAD_API TensorList nn_parameters(Module *module);

/* nn_named_parameters - the same with names: "0.weight".
 * nn_state_dict - parameters and persistent buffers, detached but sharing memory; a tied one under each of
 *     its names.  The module's, as above. */
TAPEGRAD_API TensorDict nn_named_parameters(Module *module);
TAPEGRAD_API TensorDict nn_state_dict(Module *module);

typedef struct NNLoadArgs {
    Module *module;
    TensorDict dict;
    bool strict;
    TensorFromDefaults from_defaults;
} NNLoadArgs;
#define NN_LOAD_DEFAULTS .strict = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNLoadArgs nn_load_defaults;

/* nn_load_state_dict(net, dict, .strict = true) - copies the values by name, casting to the dtypes that net
 * has. EVALUE: names are missing or unexpected (unless strict is false).  ESHAPE: shapes differ.  The text
 * lists them all (as many as fit) and nothing is changed. */
#define nn_load_state_dict(...) \
    TENSOR_CALL_(nn_load_state_dict_args, NNLoadArgs, NN_LOAD_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API int nn_load_state_dict_args(NNLoadArgs args);

/* nn_get(net, "0.weight") - a parameter or buffer; nn_get_module(net, "encoder.0") - a module, not retained.
 *     EINDEX: none.
 * nn_has(net, "0.bias") - is there one?  Without an error. */
TAPEGRAD_API bool nn_has(Module *module, const char *path);
TAPEGRAD_API Tensor *nn_get(Module *module, const char *path);
TAPEGRAD_API Module *nn_get_module(Module *module, const char *path);

/* nn_to - casts all floating parameters, buffers and gradients; nn_to_device - moves all.  The tensors stay
 * the same handles and change their data (tensor_set_data): what your struct and an optimizer hold stays
 * valid, and the optimizer moves its state at its next step.  All or nothing. */
TAPEGRAD_API int nn_to(Module *module, TensorDtype dtype);
TAPEGRAD_API int nn_to_device(Module *module, const char *device);

typedef struct NNSummaryArgs {
    Module *module;
    TensorShape shape; /* of an input, with the batch */
    FILE *file;        /* NULL: stdout */
    TensorDtype dtype; /* of the input; TENSOR_DTYPES: that of the first parameter */
    TensorFromDefaults from_defaults;
} NNSummaryArgs;
#define NN_SUMMARY_DEFAULTS .dtype = TENSOR_DTYPES, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNSummaryArgs nn_summary_defaults;

/* nn_summary(net, SHAPE(1, 1, 28, 28), stdout) - a table: every layer, the shape it gives, its parameters;
 * and totals. It runs net once on zeros in eval mode, without gradients, and leaves everything as it was.
 * Without a shape, or with one of no elements, nothing is run: names and parameters alone.  Nets that begin
 * with an embedding want .dtype = TENSOR_I64. */
#define nn_summary(...) \
    TENSOR_CALL_(nn_summary_args, NNSummaryArgs, NN_SUMMARY_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API int nn_summary_args(NNSummaryArgs args);

#ifdef __cplusplus
}
#endif

#include <tapegrad/nn/layers.h>    /* linear, convolution, normalisation, activations, ... */
#include <tapegrad/nn/recurrent.h> /* recurrent layers */
#include <tapegrad/nn/init.h>      /* initial values; clipping of gradients */
#endif
