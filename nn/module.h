/* module.h - what the files of nn/ share. */
#ifndef NN_MODULE_H
#define NN_MODULE_H

#include <tapegrad.h>
#include "hidden.h"

#if defined(__GNUC__)
HIDDEN_BEGIN
#endif

enum { NN_PATH = 512 }; /* bytes of the longest dotted name */

Tensor *nn_borrow(Tensor *t); /* retained by the innermost scope; NULL passes */
int nn_dict_find(TensorDict dict, const char *name, int hint);
const char *nn_shape_text(TensorShape s, char text[64]);
int nn_dict_append(TensorDict *dict, const char *name, Tensor *t);
void nn_dict_clear(TensorDict *dict);
bool nn_dict_broken(TensorDict dict, const char *function); /* records ENULL if it is */
int nn_rename(TensorDict dict, const NNRename *rules, TensorDict *to,
              bool *any);           /* rename.c: "": not wanted; any: a rule matched */
extern const TensorDict nn_no_dict; /* of a call that failed */

/* Tensors that were met, at most so many: open addressing by address.  free(slot) ends it. */
typedef struct NNSeen {
    const Tensor **slot;
    size_t mask;
} NNSeen;
int nn_seen_make(NNSeen *s, int64_t most, const char *function);
bool nn_seen_before(NNSeen *s, const Tensor *t); /* and has met it now */

/* What of a dict does not fit, by name; shapes: "bias is [2], given [3]".
 * nn_refuse_dict - -1, with one error that names all of it after who; ESHAPE where a shape is among it. */
typedef struct NNMisfits {
    TensorDict missing, unexpected, shapes;
} NNMisfits;
int nn_refuse_dict(const char *function, const char *who, NNMisfits misfits);

/* nn_walk - fn on every parameter and buffer under m, with its dotted name: a module's parameters, its
 * buffers, its children. Stops at the first result that is not 0 and returns it. */
typedef int (*NNVisit)(void *ctx, const char *path, ModuleTensor *t, bool is_buffer);
int nn_walk(Module *m, NNVisit fn, void *ctx);

/* nn_observe - fn(ctx, m, NULL) before and fn(ctx, m, call) after every forward of this thread; NULL:
 * nobody. */
typedef void (*NNObserver)(void *ctx, Module *m, const NNCall *done);
void nn_observe(NNObserver fn, void *ctx);

unsigned nn_tree_changes(void); /* counts additions and removals of children in all modules */

/* nn_path - the dotted name of m inside of parent, into text of NN_PATH bytes.  false: it is not there. */
bool nn_path(const Module *parent, const Module *m, char *text);

/* hooks.c: what nn_run does where a module has hooks, or all have.  -1: one failed. */
bool nn_hooked(const Module *m);
bool nn_seen(const Module *m); /* are there, or does nn_summary or the profiler look on? */
int nn_hooks_before(Module *m, NNCall *call, int64_t *id);
int nn_hooks_after(Module *m, NNCall *call, int64_t id);
void nn_hooks_free(Module *m);
int nn_hooks_copy(Module *to, const Module *from);

/* nn_activation - the TensorActivation that m is, and no more; -1: it is none.
 * nn_linear_act - m's result with an activation behind it (-1: none), in one pass where m is a linear layer
 * and nobody looks at what it gives; else *done stays false and nothing is done. */
int nn_activation(const Module *m);
Tensor *nn_linear_act(Module *m, Tensor *x, int activation, bool *done);

/* nn_add_norm - m's result of *sum = x + branch, in one pass where m is a layer norm that nobody looks at. */
Tensor *nn_add_norm(Module *m, Tensor *x, Tensor *branch, Tensor **sum);

/* nn_null - is the module NULL?  Records an error unless there is one. */
bool nn_null(const void *module, const char *function);

/* nn_unmade - is the module NULL, or does it contain a lazy one whose tensors do not exist yet?  Records
 * an error. */
bool nn_unmade(const Module *m, const char *function);

/* nn_parameters without those that a lazy module has not made yet. */
TensorList nn_list_parameters(Module *m);

/* Initialises the lazy module m: x has the size that it waited for. */
int nn_infer(Module *m, const Tensor *x);

/* The batch sizes of p on the host, in the open scope; NULL and EVALUE where they are not those of its
 * data. */
const int64_t *nn_batch_sizes(const PackedSequence *p, int64_t *steps, const char *function);

/* Lists a kind among those that nn_kind_at gives. */
#define NN_REGISTER(kind) \
    static const NNKind *const registered_##kind __attribute__((used, section("tapegrad_modules"))) = &kind

/* In a kind: its options struct, the constant of its defaults and its table. */
#define NN_OPTIONS(struct_, defaults_, fields_) \
    .args = sizeof(struct_), .defaults = &(defaults_), .fields = (fields_)

/* nn_child, under the name that errors of the caller bear. */
Module *nn_add_child(Module *m, const char *name, Module *child, const char *function);

void nn_remove_child(Module *m, const char *name); /* and frees it */

/* Registers a new parameter, whose values the caller must initialise. */
Tensor *nn_new_parameter(Module *module, const char *name, TensorShape shape, TensorDtype dtype);

/* linear.c: if one fails, m is marked as failed, and the next ones do nothing. */
void nn_init_default(Module *m,
                     bool bias); /* parameters 0 and 1 as PyTorch's linear and convolution layers */
void nn_init_fill(Module *m, int parameter, double value);
int nn_init_affine(Module *m, TensorShape shape, TensorDtype dtype, bool bias); /* weight 1, bias 0 */

int nn_refuse(const Module *m, const char *format, ...) TAPEGRAD_PRINTF(2, 3); /* EVALUE; -1 */

/* The value of a parameter that a parametrization computes; the open scope owns it. */
Tensor *nn_computed(const ModuleTensor *t);

static inline Tensor *nn_param(const Module *m, int i)
{
    if (i >= m->parameter_count) return NULL;
    return m->parameters[i].computed ? nn_computed(&m->parameters[i]) : m->parameters[i].tensor;
}
Tensor *nn_own(const Module *m, const char *name); /* its own parameter, NULL: none; not borrowed */

static inline Tensor *nn_buffer(const Module *m, int i)
{
    return i < m->buffer_count ? m->buffers[i].tensor : NULL;
}

#if defined(__GNUC__)
HIDDEN_END
#endif
#endif
