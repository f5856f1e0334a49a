/* nn.h - modules: layers with parameters, and nets composed of them.
 *
 *     Module *net = nn_sequential(nn_linear(784, 100), nn_relu(), nn_dropout(0.2), nn_linear(100, 10));
 *     Tensor *y = nn_forward(net, x);                      // [64, 784] -> [64, 10]
 *     nn_eval(net);                                        // dropout off
 *     nn_summary(net, SHAPE(1, 784), stdout);
 *     nn_free(net);
 *
 * torch.nn.Foo is nn_foo, with PyTorch's order of arguments, options by name, defaults, parameter names
 * (nn_get(net, "0.weight")) and, after the same seed, initial values: after tensor_manual_seed(0),
 * nn_linear(3, 2) equals PyTorch's.
 *
 * Ownership: a module owns its parameters, buffers and children.  nn_child, nn_sequential and every function
 * that takes a child take over the caller's reference, even if they fail; nn_free drops one.  To use one
 * module in two places, pass nn_retain(m) to the second: the last of them frees it.
 *
 * Errors: a failing constructor returns NULL and frees what it made, and a NULL child fails its parent: one
 * check of tensor_error() after a whole net suffices.  Functions on a NULL module do nothing.
 *
 * Several threads may run a module in eval mode; anything else needs one thread at a time. */
#ifndef TAPEGRAD_NN_H
#define TAPEGRAD_NN_H

#include <tapegrad/autograd.h>
#include <tapegrad/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- names and tensors --------------------------------------------------------------------------
 * A TensorDict holds tensors by name: the state of a module, the content of a file.
 *
 *     TensorDict best = nn_dict_clone(nn_state_dict(net));
 *     ... training goes astray ...
 *     nn_load_state_dict(net, best);
 *     nn_dict_free(best);
 *
 *     TensorDict named = nn_named_parameters(net);
 *     for (int i = 0; i < named.count; i++) puts(named.item[i].name);
 *
 * A dict retains its tensors.  Begin your own with `TensorDict d = { 0 };`.  A failed call returns a dict
 * whose count is -1; every function refuses that, or NULL items (ENULL). */
typedef struct TensorDictItem {
    char *name;
    Tensor *tensor;
} TensorDictItem;

typedef struct TensorDict {
    TensorDictItem *item; /* in order; change only the tensors */
    int count, capacity;
    struct TensorDictIndex *index; /* private: positions by name; NULL: none */
} TensorDict;

/* nn_dict_set - appends an item, or replaces the tensor with that name.  ENULL, ENOMEM.
 * nn_dict_get - the tensor with that name; NULL, without an error, if there is none.
 * nn_dict_clone - a dict of copies of the tensors, outside any graph; the caller frees it.
 * nn_dict_free - frees a dict that you own; a module owns the dicts that it returns. */
TAPEGRAD_API int nn_dict_set(TensorDict *dict, const char *name, Tensor *t);
TAPEGRAD_API Tensor *nn_dict_get(TensorDict dict, const char *name);
TAPEGRAD_API TensorDict nn_dict_clone(TensorDict dict);
TAPEGRAD_API void nn_dict_free(TensorDict dict);

/* ---- your own modules ---------------------------------------------------------------------------
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
 *         NN_CHILD(s, inner, inner);
 *         NN_PARAMETER(s, scale, tensor_ones(SHAPE(1), TENSOR_F32));
 *         return nn_done(s);
 *     } */
typedef struct Module Module;

/* A call of a module with several inputs or results: its function reads in and sets out.
 *
 *     static void gpt_forward(Module *self, NNCall *c)                 // (tokens, targets) -> (logits, loss)
 *     {
 *         GPT *g = (GPT *)self;
 *         Tensor *x = nn_forward(g->blocks, nn_forward(g->embedding, c->in[0]));
 *         c->out[0] = nn_forward(g->head, x);
 *         if (!c->in[1]) return;
 *         Tensor *logits = tensor_flatten(c->out[0], 0, 1);
 *         c->out[1] = tensor_cross_entropy(logits, tensor_flatten(c->in[1], 0, 1));
 *     }
 *     GPT *g = nn_new(GPT, "GPT", gpt_forward);                        // its constructor
 *
 *     Tensor *loss, *logits = nn_forward(gpt, tokens);                 // its use
 *     nn_call(gpt, .in = { tokens, targets }, .out = { &logits, &loss });
 *     nn_call(vae, .in = { x }, .out = { &reconstruction, &mu, &logvar });
 *
 * The forward runs in its own scope: every other tensor is freed when it returns.  It has failed if out[0] is
 * NULL or an error was recorded meanwhile; then all results are NULL. */
enum { NN_VALUES = 8 }; /* the most inputs, and the most results */

typedef struct NNCall {
    Tensor *in[NN_VALUES];  /* NULL: not given */
    Tensor *out[NN_VALUES]; /* NULL at first */
    int inputs, results;    /* count up to the last one given; number that the caller wants, 1 or more */
    const void *options;    /* of a call with options, such as nn_multihead_attention_forward, or NULL */
} NNCall;

typedef struct ModuleTensor {
    char *name;
    Tensor *tensor;
    bool persistent;  /* a buffer: is it in the state dict? */
    Module *computed; /* a parameter: the parametrization that computes it for nn_get and each forward */
} ModuleTensor;

typedef struct ModuleChild {
    char *name;
    Module *module;
} ModuleChild;

typedef struct NNBase {
    char none;
} NNBase; /* lets functions take a Module or a struct that begins with one */

typedef struct NNPlace { /* where a module last ran */
    const char *text, *outer;
    const Module *in;
    unsigned tree;
} NNPlace;

struct Module {
    union {
        const char *type; /* "Linear"; not copied */
        NNBase base;
    };
    Tensor *(*forward)(Module *self, Tensor *x); /* of one input and one result, */
    void (*call)(Module *self, NNCall *call);    /* or of several */
    /* optional: frees what your struct owns besides parameters, buffers and children */
    void (*destroy)(Module *self);
    /* optional: for nn_clone, which made self as a byte copy of your struct: replaces what destroy frees by
     * copies.  On failure it returns -1 and leaves nothing to free */
    int (*copied)(Module *self);
    bool training; /* nn_train, nn_eval; true at first */
    ModuleTensor *parameters, *buffers;
    ModuleChild *children;
    int parameter_count, buffer_count, child_count;

    const struct NNKind *kind; /* if made by nn_make; NULL: by nn_new */
    const void *args;          /* its options, of kind->args bytes; lists are copied too, texts are not */
    int refs, parents;         /* private from here on */
    bool failed, spare, lazy;
    TensorDtype lazy_dtype; /* set by nn_to */
    size_t size;
    struct NNHook *hooks;
    int hook_count;
    Tensor **list;
    int room; /* of list */
    TensorDict named, state;
    NNPlace place;
};

/* nn_child, nn_register_parameter, nn_register_buffer, nn_append and nn_done take a Module *, or a pointer to
 * a struct that begins with `Module base`; called through a function pointer, they take a Module *. */
#ifdef __cplusplus
extern "C++" {
static inline Module *nn_module_(Module *m) { return m; }
template <class Struct> Module *nn_module_(Struct *m) { return &m->base; }
}
#define NN_MODULE(m) nn_module_(m)
#else
#define NN_MODULE(m) _Generic(&(m)->base, Module * : (void *)(m), NNBase * : (void *)(m))
#endif

enum { NN_MODULE_MAX = 4096 }; /* bytes of a module's struct: keep larger data behind a pointer */

/* nn_new(Block, "Block", block_forward) - a zeroed Block.  forward takes a Tensor or an NNCall, or is NULL.
 * Never returns NULL: on ENOMEM, or EVALUE for a size above NN_MODULE_MAX, it returns a stand-in on which
 * every call fails and whose nn_done is NULL, so a constructor needs no check.
 * nn_new_size, nn_new_call - the same as functions, for the two kinds of forward. */
#define nn_new(struct_, type, forward) ((struct_ *)NN_NEW_(forward)(NN_SIZE_(struct_), type, forward))
#define NN_SIZE_(struct_) \
    (sizeof(struct_) +    \
     0 * sizeof(char[offsetof(struct_, base) == 0 && sizeof(struct_) <= NN_MODULE_MAX ? 1 : -1]))
#ifdef __cplusplus
#define NN_NEW_(forward) nn_new_
#else
#define NN_NEW_(forward) \
    _Generic((forward), void (*)(Module *, NNCall *) : nn_new_call, default : nn_new_size)
#endif
TAPEGRAD_API Module *nn_new_size(size_t size, const char *type, Tensor *(*forward)(Module *self, Tensor *x));
TAPEGRAD_API Module *nn_new_call(size_t size, const char *type, void (*forward)(Module *self, NNCall *call));
#ifdef __cplusplus
extern "C++" {
static inline Module *nn_new_(size_t size, const char *type, Tensor *(*forward)(Module *, Tensor *))
{
    return nn_new_size(size, type, forward);
}
static inline Module *nn_new_(size_t size, const char *type, void (*forward)(Module *, NNCall *))
{
    return nn_new_call(size, type, forward);
}
static inline Module *nn_new_(size_t size, const char *type, decltype(nullptr))
{
    return nn_new_size(size, type, nullptr);
}
}
#endif

/* NN_CHILD(b, norm1, nn_layer_norm(width)) - calls nn_child, and sets the member of that name.
 * NN_PARAMETER(b, scale, tensor_ones(SHAPE(width), TENSOR_F32)), NN_BUFFER(b, mask, tensor, ...) - the same
 *     with nn_register_parameter and nn_register_buffer. */
#define NN_CHILD(module, member, child) ((module)->member = nn_child(module, #member, child))
#define NN_PARAMETER(module, member, t) ((module)->member = nn_register_parameter(module, #member, t))
#define NN_BUFFER(module, member, ...) ((module)->member = nn_register_buffer(module, #member, __VA_ARGS__))

/* nn_child - adds child to module under a name, takes over the caller's reference, and returns child.
 * Replaces, and frees, an earlier child of that name.  EVALUE: the name is empty, has a dot, or is a
 * tensor's; child already has a parent (nn_retain it first) or contains module: these two are not freed.  A
 * failure, or a NULL child, marks the module as failed. */
TAPEGRAD_API Module *nn_child(Module *module, const char *name, Module *child);
#define nn_child(module, name, child) (nn_child)(NN_MODULE(module), name, child)

/* nn_register_parameter - retains t as a parameter of the module, makes it require a gradient, and returns
 * it.  Replaces an earlier parameter of that name: nn_register_parameter(head, "weight", nn_get(net,
 * "wte.weight")) ties two layers.  EVALUE: the name, as in nn_child.  EGRAD: t is no leaf.  EDTYPE: t is not
 * floating. */
TAPEGRAD_API Tensor *nn_register_parameter(Module *module, const char *name, Tensor *t);
#define nn_register_parameter(module, name, t) (nn_register_parameter)(NN_MODULE(module), name, t)

typedef struct NNBufferArgs {
    Module *module;
    const char *name;
    Tensor *tensor;
    bool persistent;
    TensorFromDefaults from_defaults;
} NNBufferArgs;
#define NN_BUFFER_DEFAULTS .persistent = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNBufferArgs nn_buffer_defaults;

/* nn_register_buffer(m, "mask", t, .persistent = false) - a tensor that is not trained, but moves with the
 * module and, if .persistent, is saved with it. */
#define nn_register_buffer(module_, ...)                                                                  \
    TENSOR_CALL_(nn_register_buffer_args, NNBufferArgs, NN_BUFFER_DEFAULTS, .module = NN_MODULE(module_), \
                 __VA_ARGS__)
TAPEGRAD_API Tensor *nn_register_buffer_args(NNBufferArgs args);
#ifdef __cplusplus /* options by place */
static inline Tensor *nn_register_buffer_(Module *module, const char *name, Tensor *tensor,
                                          bool persistent = true)
{
    NNBufferArgs args = nn_buffer_defaults;
    args.module = module, args.name = name, args.tensor = tensor, args.persistent = persistent;
    return nn_register_buffer_args(args);
}
#undef nn_register_buffer
#define nn_register_buffer(module, ...) nn_register_buffer_(NN_MODULE(module), __VA_ARGS__)
#endif

/* nn_done - ends a constructor: returns the module, or, if anything failed, frees it and returns NULL. */
TAPEGRAD_API Module *nn_done(Module *module);
#define nn_done(module) (nn_done)(NN_MODULE(module))

/* ---- kinds of modules ---------------------------------------------------------------------------
 * An NNKind describes a type of module: the arguments of nn_new, a constructor, and options by name, so that
 * it can be made and tested from a text.  Every built-in module has one; yours may, too. */
typedef struct NNKind {
    const char *name;      /* "Linear", PyTorch's */
    const char *function;  /* "nn_linear": what errors name */
    size_t size;           /* of its struct, which begins with Module base; 0: a Module */
    size_t args;           /* of its options struct; 0: none */
    const void *defaults;  /* such a struct */
    const OpField *fields; /* its options, ended by a NULL name */
    int (*init)(Module *self,
                const void *args); /* checks args, registers tensors and children; may be NULL */
    Tensor *(*forward)(Module *self, Tensor *x);
    void (*call)(Module *self, NNCall *call); /* instead of forward */
    int inputs;                               /* most inputs it takes; 0: any number */
    void (*destroy)(Module *self);
    int (*copied)(Module *self);
    int rank, form; /* for kinds that share functions: read as self->kind->rank */
    /* If lazy_dim is not 0, the option at offset lazy, an int64_t, may be NN_LAZY: init then runs at the
     * first forward, with the option set to the size of that dimension of its input. */
    int lazy_dim;
    size_t lazy;
    /* For the generated tests of a module that PyTorch lacks: options | shape of an input (@5: integers below
     * 5), as "width=3|4x3; width=2 bias=false|2@5". */
    const char *samples;
} NNKind;

/* NN_LAZY - an input size to be taken from the first forward: nn_linear(NN_LAZY, 10) is nn_lazy_linear(10),
 * PyTorch's LazyLinear; likewise nn_lazy_conv2d(16, 3), nn_lazy_batch_norm2d() and others.  Until then the
 * module has no parameters: run it once before you make its optimizer, or save or load its state.  An nn_to
 * before that sets their dtype. */
#define NN_LAZY INT64_MIN

/* nn_make - a module of that kind; args NULL: its defaults.  NULL if init fails. */
TAPEGRAD_API Module *nn_make(const NNKind *kind, const void *args);

/* nn_kind_at - the built-in kinds, 0 to nn_kind_count() - 1, in no particular order; in a program linked with
 * the static library, only those that it uses.
 * nn_kind_find - finds a kind by its name or function; NULL, without an error, if unknown. */
TAPEGRAD_API int nn_kind_count(void);
TAPEGRAD_API const NNKind *nn_kind_at(int i);
TAPEGRAD_API const NNKind *nn_kind_find(const char *name);

/* ---- ownership ------------------------------------------------------------------------------- */

TAPEGRAD_API Module *nn_retain(Module *module); /* takes a reference, for a second place */
/* nn_clone - Python's copy.deepcopy(module): copies all tensors and modules inside.  What module shares
 * inside, the copy shares inside; each pointer in your struct to one of its tensors or modules becomes a
 * pointer to the copy.  Hooks are copied too.  EVALUE: a struct with destroy but without copied. */
TAPEGRAD_API Module *nn_clone(Module *module);
/* nn_free - drops a reference; the last one frees the module.  EVALUE: a child that its parents still hold;
 * and, from any function, a use of one of the last 64 freed modules. */
TAPEGRAD_API void nn_free(Module *module);

/* ---- use ------------------------------------------------------------------------------------- */

typedef struct NNCallArgs {
    Module *module;
    Tensor *in[NN_VALUES];   /* NULL: not given */
    Tensor **out[NN_VALUES]; /* receive the results, NULL if the call fails; NULL: not wanted */
} NNCallArgs;
#define NN_CALL_DEFAULTS .module = NULL
TAPEGRAD_API extern const NNCallArgs nn_call_defaults;

/* nn_forward(net, x), nn_forward(bilinear, x1, x2) - module(x): its first result.
 * nn_call(gpt, .in = { tokens, targets }, .out = { &logits, &loss }) - with several inputs and results;
 * returns the first.
 * EVALUE: the module has no forward (a module list); too many inputs; the forward set neither out[0] nor an
 * error.  ENULL: the first input is NULL.
 * An error inside says where: "in 1.b1 (BatchNorm2d)". */
TAPEGRAD_API Tensor *nn_forward(Module *module, Tensor *x);
#ifndef __cplusplus
#define nn_forward(module_, ...) nn_call_args((NNCallArgs){ .module = (module_), .in = { __VA_ARGS__ } })
#endif
#define nn_call(...) TENSOR_CALL_(nn_call_args, NNCallArgs, NN_CALL_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_call_args(NNCallArgs args);

/* nn_run - the function behind nn_forward and nn_call, for calls with your own options: runs the module on
 * call->in and call->options, with hooks, nn_summary and error notes, and sets call->out; the open scope owns
 * its tensors.  -1, and all of out NULL, on failure. */
TAPEGRAD_API int nn_run(Module *module, NNCall *call);

/* ---- hooks --------------------------------------------------------------------------------------
 * fn(m, call, ctx) runs at each forward of m itself, not of its children.  It may replace values in call->in
 * or call->out for the module, or its caller.  Hooks run in order of registration; each sees the values set
 * by the one before.  A hook that returns -1 fails the forward, or the sweep.
 *
 * nn_register_forward_pre_hook - runs before the forward, with call->in.
 * nn_register_forward_hook - runs after the forward, with call->in and call->out.
 * nn_register_full_backward_hook - runs in a sweep once the gradients of all inputs are complete: call->out
 *     holds the gradients of the results, call->in those of the inputs; the sweep goes on with the values set
 *     there.  NULL: no gradient (an input that requires none, a result that was not used); call->inputs and
 *     call->results count up to the last that has one.  If no input requires a gradient, it runs once those
 *     of the results are complete.
 * nn_register_full_backward_pre_hook - runs before the gradients of the inputs, with call->out.
 * ESHAPE in the sweep: a backward hook set a gradient whose shape is not its value's.
 * All return an id for nn_remove_hook, or -1.  Backward hooks apply to forwards after their registration,
 * until the module is freed.  A hook runs on the thread of the forward or the sweep: if several threads run
 * the module, several may be in fn at once.
 *
 *     static int zeroes(Module *m, NNCall *call, void *ctx)             // counts what relu cut off
 *     {
 *         *(double *)ctx += tensor_item(tensor_sum(tensor_eq_scalar(call->out[0], 0)));
 *         return tensor_error() ? -1 : 0;
 *     }
 *     int id = nn_register_forward_hook(nn_get_module(net, "1"), zeroes, &count); */
typedef int (*NNHookFn)(Module *m, NNCall *call, void *ctx);
TAPEGRAD_API int nn_register_forward_pre_hook(Module *module, NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_forward_hook(Module *module, NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_full_backward_pre_hook(Module *module, NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_full_backward_hook(Module *module, NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_remove_hook(Module *module, int id); /* EVALUE: no such hook */

/* nn_register_module_forward_hook(fn, ctx), ... - the same for every module of the program, in all threads,
 * before the module's own hooks (torch.nn.modules.module.register_module_forward_hook, ...).  All return an
 * id for nn_remove_module_hook, or -1. */
TAPEGRAD_API int nn_register_module_forward_pre_hook(NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_module_forward_hook(NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_module_full_backward_pre_hook(NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_module_full_backward_hook(NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_remove_module_hook(int id); /* EVALUE: no such hook */

/* nn_train(net, training), nn_eval(net) - set training or eval mode (dropout, batch statistics) of the module
 * and all inside. */
TAPEGRAD_API void nn_train(Module *module, bool training);
TAPEGRAD_API void nn_eval(Module *module);

/* nn_modes - which modules are in training mode, in the order of nn_apply.  NULL: ENULL, ENOMEM.
 * nn_restore_modes - sets these modes again, and frees the list.  The tree must be unchanged. */
TAPEGRAD_API bool *nn_modes(Module *module);
TAPEGRAD_API void nn_restore_modes(Module *module, bool *modes);

/* nn_apply - calls fn(m, ctx) on all modules inside, children first, then on the module itself; m->type names
 * its type. */
TAPEGRAD_API void nn_apply(Module *module, void (*fn)(Module *m, void *ctx), void *ctx);

TAPEGRAD_API void nn_zero_grad(Module *module);                          /* drops every .grad */
TAPEGRAD_API void nn_requires_grad_(Module *module, bool requires_grad); /* sets it for all parameters */
TAPEGRAD_API int64_t nn_num_parameters(Module *module); /* number of elements; tied ones count once */

/* nn_parameters - all parameters, a tied one once, in PyTorch's order.  The module owns the list: it is valid
 * until the next nn_parameters after a parameter was added or removed, or until the module is freed.  Empty
 * on ENULL, ENOMEM, and EVALUE: a module with NN_LAZY has not run yet, and has no tensors. */
TAPEGRAD_API TensorList nn_parameters(Module *module);

/* nn_named_parameters - the same with names: "0.weight".
 * nn_state_dict - parameters and persistent buffers, detached but sharing memory; a tied one under each of
 *     its names.  Ownership and errors as nn_parameters. */
TAPEGRAD_API TensorDict nn_named_parameters(Module *module);
TAPEGRAD_API TensorDict nn_state_dict(Module *module);

typedef struct NNRename {
    const char *from, *to;
    bool transpose;
} NNRename;

/* NN_NAMES(NN_RENAME("module.", ""), NN_RENAME("h.*.ln_1", "blocks.*.norm1"), NN_RENAME("attn.bias", NULL)) -
 * rules that turn the names of a published dict into those of a module, for nn_load_state_dict, each applied
 * in turn.  `from` matches at the beginning of a name or after a dot, and ends at a dot or the end; a star
 * matches the rest of one part, up to the next dot.  The first match is replaced by `to`, whose i-th star is
 * the text of the i-th star in `from`; "" matches every name and puts `to` before it.  to = NULL drops the
 * tensor.  NN_RENAME("c_fc.weight", "0.weight", .transpose = true) transposes a matrix (weights of GPT-2's
 * Conv1D are [in, out]). */
#define NN_NAMES(...) ((const NNRename[]){ __VA_ARGS__, { NULL, NULL, false } })
#define NN_RENAME(from_, ...)            \
    {                                    \
        .from = from_, .to = __VA_ARGS__ \
    }

typedef struct NNLoadArgs {
    Module *module;
    TensorDict dict;
    bool strict;
    const NNRename *names;                      /* ended by a NULL `from`; NULL: no renaming */
    TensorDict *missing_keys, *unexpected_keys; /* receive those lists; NULL: not wanted */
    TensorFromDefaults from_defaults;
} NNLoadArgs;
#define NN_LOAD_DEFAULTS .strict = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNLoadArgs nn_load_defaults;

/* nn_load_state_dict(net, dict, .strict = true) - copies the values by name, cast to net's dtypes.  On an
 * error nothing is changed.  EVALUE: names are missing or unexpected (unless strict is false); .names maps
 * two names to one, or matches none although some do not fit.
 * ESHAPE: shapes differ.  The error lists all of them (up to 20 KB of names of each kind).
 * .missing_keys = &missing, .unexpected_keys = &unexpected - receive the names that only net has, and those
 *     that only dict has; empty dicts if none, set on a refusal too.  Free them with nn_dict_free.
 * A tied tensor may stand under any of its names; the num_batches_tracked of a batch norm may be missing, as
 * in PyTorch.  weight_g and weight_v of PyTorch's older weight norm load into an nn_weight_norm.
 *
 *     nn_load_state_dict(net, io_load_safetensors("gpt2.safetensors"), .strict = false,
 *                        .names = NN_NAMES(NN_RENAME("h.", "blocks."),
 *                                          NN_RENAME("c_attn.weight", "in_proj_weight", .transpose = true)));
 */
#define nn_load_state_dict(...) \
    TENSOR_CALL_(nn_load_state_dict_args, NNLoadArgs, NN_LOAD_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API int nn_load_state_dict_args(NNLoadArgs args);

/* nn_get(net, "0.weight") - a parameter or buffer; nn_get_module(net, "encoder.0") - a module, not retained.
 *     NULL and EINDEX: none has that name.
 * nn_has(net, "0.bias") - does a parameter or buffer have that name?  Records no error. */
TAPEGRAD_API bool nn_has(Module *module, const char *path);
TAPEGRAD_API Tensor *nn_get(Module *module, const char *path);
TAPEGRAD_API Module *nn_get_module(Module *module, const char *path);

/* nn_to - casts all floating parameters, buffers and gradients to dtype; nn_to_device - moves all to device.
 * The handles stay and change their data (tensor_set_data): pointers in your struct and in an optimizer
 * remain valid, and the optimizer moves its state at its next step.  All or nothing.  EGRAD: a buffer is the
 * result of a recorded op (tensor_detach it). */
TAPEGRAD_API int nn_to(Module *module, TensorDtype dtype);
TAPEGRAD_API int nn_to_device(Module *module, const char *device);

typedef struct NNSummaryArgs {
    Module *module;
    TensorShape shape; /* of the input, with the batch */
    FILE *file;        /* NULL: stdout */
    TensorByName by_name;
    TensorDtype dtype; /* of the input; TENSOR_DTYPES: the first parameter's */
    TensorList inputs; /* instead of shape and dtype: the inputs to run it on */
    TensorFromDefaults from_defaults;
} NNSummaryArgs;
#define NN_SUMMARY_DEFAULTS .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNSummaryArgs nn_summary_defaults;

/* nn_summary(net, SHAPE(1, 1, 28, 28), stdout) - prints a table of every layer with its output shape and
 * parameters, and the totals.  Runs net once on zeros in eval mode, without gradients, and restores modes,
 * buffers and the generator, even if net fails.  Without a shape, or with one of no elements, net is not run:
 * the table has names and parameters only.  A net that begins with an embedding needs .dtype = TENSOR_I64.
 * nn_summary(gpt, .inputs = TENSORS(tokens, targets)) - runs it on your inputs. */
#define nn_summary(...) \
    TENSOR_CALL_(nn_summary_args, NNSummaryArgs, NN_SUMMARY_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API int nn_summary_args(NNSummaryArgs args);

#ifdef __cplusplus
}
#endif

#include <tapegrad/nn/layers.h>      /* linear, convolution, normalisation, activations, ... */
#include <tapegrad/nn/recurrent.h>   /* recurrent layers */
#include <tapegrad/nn/packed.h>      /* sequences of different lengths */
#include <tapegrad/nn/init.h>        /* initial values; clipping of gradients */
#include <tapegrad/nn/parametrize.h> /* weight norm, spectral norm */
#endif
