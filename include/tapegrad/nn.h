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
    TensorDictItem *item; /* in order; to be read, but for the tensors */
    int count, capacity;
    struct TensorDictIndex *index; /* the library's own: places by name; NULL: none */
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
 *         NN_CHILD(s, inner, inner);
 *         NN_PARAMETER(s, scale, tensor_ones(SHAPE(1), TENSOR_F32));
 *         return nn_done(s);
 *     } */
typedef struct Module Module;

/* One forward of a module with several inputs, or results: what its function reads and sets.
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
 * The forward has a scope of its own: what is no result is gone when it returns.  It has failed when out[0]
 * is NULL, or an error was recorded meanwhile: then no result is passed on. */
enum { NN_VALUES = 8 }; /* the most inputs, and the most results */

typedef struct NNCall {
    Tensor *in[NN_VALUES];  /* NULL: not given */
    Tensor *out[NN_VALUES]; /* NULL at first */
    int inputs, results;    /* up to the last that is given; how many the caller wants, 1 or more */
    const void *options;    /* of a call with options, such as nn_multihead_attention_forward; else NULL */
} NNCall;

typedef struct ModuleTensor {
    char *name;
    Tensor *tensor;
    bool persistent;  /* of a buffer: is it in the state dict? */
    Module *computed; /* of a parameter: by this parametrization, whenever nn_get or a forward asks for it */
} ModuleTensor;

typedef struct ModuleChild {
    char *name;
    Module *module;
} ModuleChild;

typedef struct NNBase {
    char none;
} NNBase; /* what lets a Module and a struct that begins with one be passed alike */

typedef struct NNPlace { /* where a module ran last */
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
    /* may be set: frees what your struct holds besides parameters and children */
    void (*destroy)(Module *self);
    /* may be set: nn_clone made self, a copy of your struct; gives it its own of what destroy frees.  -1, and
     * nothing to free, when that failed */
    int (*copied)(Module *self);
    bool training; /* nn_train, nn_eval; true at first */
    ModuleTensor *parameters, *buffers;
    ModuleChild *children;
    int parameter_count, buffer_count, child_count;

    const struct NNKind *kind; /* of nn_make; NULL: of nn_new */
    const void *args;          /* its options, of kind->args bytes; lists are copied too, texts are not */
    int refs, parents;         /* from here on: the library's own */
    bool failed, spare, lazy;
    TensorDtype lazy_dtype; /* that nn_to said */
    size_t size;
    struct NNHook *hooks;
    int hook_count;
    Tensor **list;
    int room; /* of list */
    TensorDict named, state;
    NNPlace place;
};

/* What the functions of a constructor, nn_child, nn_register_parameter, nn_register_buffer, nn_append and
 * nn_done, take as module: a Module *, or a pointer to a struct that begins with `Module base`.  Through
 * pointers to these functions: a Module *. */
#ifdef __cplusplus
extern "C++" {
static inline Module *nn_module_(Module *m) { return m; }
template <class Struct> Module *nn_module_(Struct *m) { return &m->base; }
}
#define NN_MODULE(m) nn_module_(m)
#else
#define NN_MODULE(m) _Generic(&(m)->base, Module * : (void *)(m), NNBase * : (void *)(m))
#endif

enum { NN_MODULE_MAX = 4096 }; /* bytes of a module's struct; keep what is bigger behind a pointer */

/* nn_new(Block, "Block", block_forward) - a zeroed Block.  The forward is a function of a Tensor or of an
 * NNCall, or NULL.  Never NULL: without memory, or with a size that no module can have (EVALUE), it is a
 * spare one, on which everything fails and whose nn_done is NULL, so a constructor needs no check.
 * nn_new_size, nn_new_call - the same without macros, for a forward of either kind. */
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

/* NN_CHILD(b, norm1, nn_layer_norm(width)) - nn_child, nn_register_parameter and nn_register_buffer for a
 * member of your struct: its name is that of the child, parameter or buffer.
 * NN_PARAMETER(b, scale, tensor_ones(SHAPE(width), TENSOR_F32)), NN_BUFFER(b, mask, tensor, ...) */
#define NN_CHILD(module, member, child) ((module)->member = nn_child(module, #member, child))
#define NN_PARAMETER(module, member, t) ((module)->member = nn_register_parameter(module, #member, t))
#define NN_BUFFER(module, member, ...) ((module)->member = nn_register_buffer(module, #member, __VA_ARGS__))

/* nn_child - makes child a part of module under a name and returns it; a child of this name is replaced, and
 * freed. The caller's reference to the child is taken over.  Names are not empty and have no dot. EVALUE: the
 * name is taken by a tensor; child is the child of another already (nn_retain it) or contains module: these
 * two are not the caller's to give and are left alone. Failure, also a child that is NULL, marks the module
 * as failed. */
TAPEGRAD_API Module *nn_child(Module *module, const char *name, Module *child);
#define nn_child(module, name, child) (nn_child)(NN_MODULE(module), name, child)

/* nn_register_parameter - retains t as a parameter of the module, lets it require a gradient, and returns it;
 * a parameter of this name is replaced: nn_register_parameter(head, "weight", nn_get(net, "wte.weight")) ties
 * two layers. EVALUE: as nn_child.  EGRAD: t is no leaf.  EDTYPE: t is not floating. */
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

/* nn_register_buffer(m, "mask", t, .persistent = false) - a tensor that moves with the module and is saved
 * with it unless .persistent is false, but is not trained. */
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

/* nn_done - ends a constructor: the module; or NULL, and all of it freed, if anything failed. */
TAPEGRAD_API Module *nn_done(Module *module);
#define nn_done(module) (nn_done)(NN_MODULE(module))

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
    void (*call)(Module *self, NNCall *call); /* instead of forward; */
    int inputs;                               /* the most that it takes; 0: any number */
    void (*destroy)(Module *self);
    int (*copied)(Module *self);
    int rank, form; /* which of a family: yours to read as self->kind->rank */
    /* lazy_dim is not 0: the option at offset lazy, an int64_t, may be NN_LAZY; init then waits for the first
     * forward, and the option is the size of that dimension of its input. */
    int lazy_dim;
    size_t lazy;
    /* For the generated tests, where PyTorch has no such module: options, and the shape of an input (@5:
     * integers below 5), "width=3|4x3; width=2 bias=false|2@5". */
    const char *samples;
} NNKind;

/* NN_LAZY - for a size of the input that the first forward tells: nn_linear(NN_LAZY, 10) is
 * nn_lazy_linear(10), PyTorch's LazyLinear; so are there nn_lazy_conv2d(16, 3), nn_lazy_batch_norm2d() and
 * their kin.  Until that forward the module has no parameters: run it once, in grad mode or not, before its
 * optimizer is made, or its state is saved or loaded.  nn_to before it says their dtype. */
#define NN_LAZY INT64_MIN

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
/* nn_clone - Python's copy.deepcopy(module): a module of its own, with copies of all tensors and modules
 * inside; what was shared inside is shared inside again, and each pointer in your struct to a tensor or
 * module of it becomes one to the copy.  Hooks are copied too.  EVALUE: a struct with a destroy and no
 * copied. */
TAPEGRAD_API Module *nn_clone(Module *module);
/* nn_free - gives one back; with the last, the module goes.  A function that is given it after that fails
 * (EVALUE; of the last 64 that went).  EVALUE, too: a child that its parents still hold. */
TAPEGRAD_API void nn_free(Module *module);

/* ---- use ------------------------------------------------------------------------------------- */

typedef struct NNCallArgs {
    Module *module;
    Tensor *in[NN_VALUES];   /* NULL: not given */
    Tensor **out[NN_VALUES]; /* where results go; NULL: not wanted.  Each is NULL when the call failed */
} NNCallArgs;
#define NN_CALL_DEFAULTS .module = NULL
TAPEGRAD_API extern const NNCallArgs nn_call_defaults;

/* nn_forward(net, x), nn_forward(bilinear, x1, x2) - module(x): its first result.
 * nn_call(gpt, .in = { tokens, targets }, .out = { &logits, &loss }) - with several; returns the first.
 * EVALUE: it has no forward (a module list); more inputs than it takes; its forward gave no first result, and
 * no error of its own.  ENULL: the first input is NULL.
 * An error inside says where: "in 1.b1 (BatchNorm2d)". */
TAPEGRAD_API Tensor *nn_forward(Module *module, Tensor *x);
#ifndef __cplusplus
#define nn_forward(module_, ...) nn_call_args((NNCallArgs){ .module = (module_), .in = { __VA_ARGS__ } })
#endif
#define nn_call(...) TENSOR_CALL_(nn_call_args, NNCallArgs, NN_CALL_DEFAULTS, .module = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_call_args(NNCallArgs args);

/* nn_run - what nn_forward and nn_call call, and calls with options of your own may: runs the module with
 * call->in and call->options, lets hooks, nn_summary and the notes of errors see it, and sets call->out,
 * whose tensors the open scope owns.  -1, and all of out NULL, when it failed. */
TAPEGRAD_API int nn_run(Module *module, NNCall *call);

/* ---- hooks --------------------------------------------------------------------------------------
 * fn(m, call, ctx) at each forward of m itself (not of what is inside).  It may set call->in or call->out,
 * and then the module, or its caller, sees the new values.  Hooks run in order of registration; each sees
 * what the one before set.  A hook that returns -1 fails the forward, or the sweep.
 *
 * nn_register_forward_pre_hook - before the forward: call->in.
 * nn_register_forward_hook - after it: call->in and call->out.
 * nn_register_full_backward_hook - in a backward, when the gradients of all inputs are there: call->out holds
 *     those of the results, call->in those of the inputs, and what is set there goes on.  NULL stands for one
 *     that does not exist: of an input that requires no gradient, of a result that was not used.  Where no
 *     input requires one, it runs when those of the results are there.
 * nn_register_full_backward_pre_hook - before those of the inputs: call->out.
 * ESHAPE in the sweep: a backward hook set a gradient of another shape than its value's.
 * All return an id for nn_remove_hook, or -1.  Backward hooks see what was run after they were registered,
 * and nothing once the module is freed.  A hook runs in the thread of the forward or of the sweep: where
 * several threads run the module, several may be in fn at once.
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

/* nn_register_module_forward_hook(fn, ctx), ... - the same at every module of the program, in all threads,
 * and before its own hooks (torch.nn.modules.module.register_module_forward_hook, ...).  All return an id
 * for nn_remove_module_hook, or -1. */
TAPEGRAD_API int nn_register_module_forward_pre_hook(NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_module_forward_hook(NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_module_full_backward_pre_hook(NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_register_module_full_backward_hook(NNHookFn fn, void *ctx);
TAPEGRAD_API int nn_remove_module_hook(int id); /* EVALUE: no such hook */

/* nn_train(net, false) and nn_eval(net) - switches dropout, batch statistics and the like, in all modules
 * inside. */
TAPEGRAD_API void nn_train(Module *module, bool training);
TAPEGRAD_API void nn_eval(Module *module);

/* nn_modes - which modules are in training mode, in the order of nn_apply; NULL: ENULL, ENOMEM.
 * nn_restore_modes - switches them to it, and frees the list.  The tree is to be what it was. */
TAPEGRAD_API bool *nn_modes(Module *module);
TAPEGRAD_API void nn_restore_modes(Module *module, bool *modes);

/* nn_apply - fn(m, ctx) on all modules inside, children first, then the module itself.  m->type tells what it
 * is. */
TAPEGRAD_API void nn_apply(Module *module, void (*fn)(Module *m, void *ctx), void *ctx);

TAPEGRAD_API void nn_zero_grad(Module *module); /* drops every .grad */
TAPEGRAD_API void nn_requires_grad_(Module *module,
                                    bool requires_grad); /* of all parameters: freezes them, or not */
TAPEGRAD_API int64_t nn_num_parameters(Module *module);  /* elements of them; tied ones count once */

/* nn_parameters - all parameters, a tied one once, in PyTorch's order.  The list is the module's: valid until
 * the next nn_parameters after a parameter was added or removed, or the module's end.  Empty after an error:
 * ENULL, ENOMEM; EVALUE: a module of NN_LAZY has not run yet, which has no tensors to give or to load. */
TAPEGRAD_API TensorList nn_parameters(Module *module);

/* nn_named_parameters - the same with names: "0.weight".
 * nn_state_dict - parameters and persistent buffers, detached but sharing memory; a tied one under each of
 *     its names.  The module's, as above; so are the errors. */
TAPEGRAD_API TensorDict nn_named_parameters(Module *module);
TAPEGRAD_API TensorDict nn_state_dict(Module *module);

typedef struct NNRename {
    const char *from, *to;
    bool transpose;
} NNRename;

/* NN_NAMES(NN_RENAME("module.", ""), NN_RENAME("h.*.ln_1", "blocks.*.norm1"), NN_RENAME("attn.bias", NULL)) -
 * how the names of a published dict become those of a module, for nn_load_state_dict.  Each rule in its turn:
 * `from` is looked for at the beginning of a name and after its dots, and ends at a dot or with the name; *
 * stands for the rest of one part, up to the next dot.  The first match becomes `to`, where each * is what
 * the same one in `from` stood for; "" matches every name, and puts `to` before it.  to = NULL: the tensor is
 * not wanted.  NN_RENAME("c_fc.weight", "0.weight", .transpose = true): a matrix is transposed (weights of
 * GPT-2's Conv1D are [in, out]). */
#define NN_NAMES(...) ((const NNRename[]){ __VA_ARGS__, { NULL, NULL, false } })
#define NN_RENAME(from_, ...)            \
    {                                    \
        .from = from_, .to = __VA_ARGS__ \
    }

typedef struct NNLoadArgs {
    Module *module;
    TensorDict dict;
    bool strict;
    const NNRename *names;                      /* ended by a NULL `from`; NULL: as they are */
    TensorDict *missing_keys, *unexpected_keys; /* where those lists go; NULL: not wanted */
    TensorFromDefaults from_defaults;
} NNLoadArgs;
#define NN_LOAD_DEFAULTS .strict = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNLoadArgs nn_load_defaults;

/* nn_load_state_dict(net, dict, .strict = true) - copies the values by name, casting to the dtypes that net
 * has. EVALUE: names are missing or unexpected (unless strict is false); two become one by .names; they match
 * nothing, and not all fits without them.  ESHAPE: shapes differ.  The text lists them all (20 KB of names
 * of each kind) and nothing is changed.
 * .missing_keys = &missing, .unexpected_keys = &unexpected - what the module has and dict has not, and what
 *     dict has under names that the module has not: yours to nn_dict_free, empty dicts when all fits, set
 *     also where it is refused.
 * A tied tensor is there under any of its names; a batch norm does without num_batches_tracked, as PyTorch's.
 * weight_g and weight_v of PyTorch's older weight norm go to an nn_weight_norm as they are.
 *
 *     nn_load_state_dict(net, io_load_safetensors("gpt2.safetensors"), .strict = false,
 *                        .names = NN_NAMES(NN_RENAME("h.", "blocks."),
 *                                          NN_RENAME("c_attn.weight", "in_proj_weight", .transpose = true)));
 */
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
    TensorByName by_name;
    TensorDtype dtype; /* of the input; TENSOR_DTYPES: that of the first parameter */
    TensorList inputs; /* instead of shape and dtype: what to run it on, one input or several */
    TensorFromDefaults from_defaults;
} NNSummaryArgs;
#define NN_SUMMARY_DEFAULTS .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNSummaryArgs nn_summary_defaults;

/* nn_summary(net, SHAPE(1, 1, 28, 28), stdout) - a table: every layer, the shapes it gives, its parameters;
 * and totals. It runs net once on zeros in eval mode, without gradients, and leaves modes, buffers and the
 * generator as they were, also where the net fails. Without a shape, or with one of no elements, nothing is
 * run: names and parameters alone.  Nets that begin with an embedding want .dtype = TENSOR_I64.
 * nn_summary(gpt, .inputs = TENSORS(tokens, targets)) - on inputs of yours. */
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
