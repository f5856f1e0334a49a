/* core.h - the structs of the core, and the functions its files share.
 *
 *  - A Storage is counted memory; tensors that share it are views of each other.  Its version counts writes
 * in place.
 *  - A Tensor's refs counts the user's retains and the library's references (of scopes, .grad, views, a
 * sweep), which tensor_release refuses to drop.  holds counts the graph's references to a leaf, plus one for
 * all refs together.  When refs reaches 0 the tensor drops its data, gradient and graph; when holds reaches 0
 * the struct is freed.
 *  - An Entry (tape.c) is one recorded op.  Its refs counts live results and edges of later entries. */
#ifndef TG_CORE_H
#define TG_CORE_H

#include <stdarg.h>
#include <tapegrad/autograd.h>
#include <tapegrad/device.h>
#include <tapegrad/op_row.h>
#include "device/place.h"
#include "hidden.h"

HIDDEN_BEGIN

/* ---- alloc.c: how many tensors each thread has made -------------------------------------------- */
typedef struct ThreadCount {
    _Atomic int64_t tensors;
    struct ThreadCount *next;
} ThreadCount;
void tg_count_tensor(int delta);

/* ---- tensors --------------------------------------------------------------------------------- */
typedef struct Storage {
    atomic_int refs;
    _Atomic uint32_t version;
    const Place *place;
    void *data;
    size_t bytes;                 /* of data */
    bool inline_data;             /* data follows this struct in the same block */
    struct Blob *blob;            /* memory of the caller's; NULL: the device's */
    _Atomic(const char *) writer; /* the last write in place: what, and where it was called */
    _Atomic(const void *) write_site;
} Storage;

typedef struct Entry Entry;
typedef struct Hook {
    int id;
    Tensor *(*fn)(Tensor *, void *);
    void (*after)(Tensor *, void *);
    void *ctx;
    struct Hook *next;
} Hook;

/* FLAG_STANDIN: a leaf that stands for the result of an op, while a checkpoint computes again. */
enum { FLAG_REQUIRES_GRAD = 1, FLAG_RETAIN_GRAD = 2, FLAG_CONTIGUOUS = 4, FLAG_STANDIN = 8 };

struct Tensor {
    Tensor *live_prev, *live_next; /* first: a freed block's list overwrites no field that tells it is gone */
    _Atomic uint64_t counts;       /* references, and in the upper half how many of them the library lent */
    atomic_int holds;
    uint8_t dtype, ndim, flags;
    uint8_t made_in;  /* graph_serial then */
    uint16_t slot;    /* which result of entry */
    Storage *storage; /* NULL once no reference is left */
    void *data;       /* of element 0 */
    int64_t numel;
    const Place *place;
    Entry *entry; /* the op that made it, NULL for a leaf */
    Tensor *grad;
    Hook *hooks;  /* of a leaf; those of a result are the entry's */
    Tensor *base; /* the tensor that this is a differentiable view of */
    uint32_t base_epoch,
        epoch;        /* epoch: in-place changes of history; base_epoch: base's when entry was made */
    const void *site; /* where made, when leaks are tracked */
    int64_t shape[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
};

FORCE_INLINE TensorShape shape_of(const Tensor *x) { return (TensorShape){ x->ndim, x->shape }; }

/* tensor.c.  The new_ functions return a tensor with one reference that belongs to the caller; own() hands it
 * to the scope. */
Tensor *new_tensor(TensorShape shape, int dtype,
                   const Place *place); /* contiguous, uninitialised; records ENOMEM, ESHAPE */
Tensor *new_tensor_as(const char *name, TensorShape shape, int dtype, const Place *place);
Tensor *new_view(const Tensor *x, int ndim, const int64_t *shape, const int64_t *stride,
                 int64_t offset); /* same storage, no graph */
Tensor *new_alias(Storage *storage, void *data, int dtype, int ndim, const int64_t *shape,
                  const int64_t *stride);
void storage_retain(Storage *storage);
void storage_release(Storage *storage);
void (*storage_deleter(const Storage *storage))(void *data, void *ctx); /* of the caller's memory, or NULL */
/* A reference of the library's own: what the user releases by mistake is refused while it stands. */
#define ONE_LENT (UINT64_C(1) << 32)
Tensor *lend(Tensor *x);   /* one more reference; NULL passes */
void take_back(Tensor *x); /* gives it back; NULL is ignored */
/* lend_living - the same, but NULL if the last reference is gone, perhaps dropped by another thread. */
Tensor *lend_living(Tensor *x);
FORCE_INLINE uint32_t references(const Tensor *x)
{
    return (uint32_t)atomic_load_explicit(&x->counts, memory_order_acquire);
}
void hold_leaf(Tensor *leaf); /* a graph edge's reference */
void drop_leaf(Tensor *leaf);
Tensor *own(Tensor *x);      /* scope.c: to the innermost scope; NULL passes; on ENOMEM releases x, NULL */
Tensor *own_lent(Tensor *x); /* the same for a reference that the library had lent */
Tensor *borrow(Tensor *x);   /* one more reference, to the innermost scope */
int scope_room(void);        /* room for one more tensor, so that the next borrow cannot fail */
/* scope_failed - it could not be opened: ENOMEM is recorded. */
FORCE_INLINE bool scope_failed(TensorScope scope) { return unlikely(scope.depth == 0); }
bool bump_version(Tensor *x);
void note_write(Tensor *x, const char *writer, const void *site); /* bumps, and remembers who did it */

/* for_each_tracked - of the tensors that are alive and tracked; under a lock: fn makes and frees none. */
void for_each_tracked(void (*fn)(const Tensor *x, void *ctx), void *ctx);
bool tensors_are_tracked(void);

/* shape.c */
static inline bool shape_equal(TensorShape a, TensorShape b) { return tensor_shape_equal(a, b); }
int64_t shape_count(TensorShape shape); /* -1: does not fit int64, or a negative size */
int shape_broadcast(TensorShape a, TensorShape b, int64_t *out); /* rank, or -1 */
int wrap_dim(int64_t dim, int ndim); /* -1: out of range.  Rank 0 takes -1 and 0, as PyTorch does */
void dense_strides(int ndim, const int64_t *shape, int64_t *stride);
bool is_dense(int ndim, const int64_t *shape, const int64_t *stride); /* row-major without gaps */
/* strides_overlap - two indices may reach one element. */
bool strides_overlap(int ndim, const int64_t *shape, const int64_t *stride);
bool overlaps_itself(const Tensor *x);
const char *shape_text(TensorShape shape); /* "[2, 3]", in one of 8 rotating thread-local buffers */
void broadcast_strides(const Tensor *x, TensorShape to, int64_t *stride);

/* ---- errors: error.c ------------------------------------------------------------------------- */
/* Functions get the name that their errors bear: an op's ("matmul"), one in place ("add_"), or a public
 * function's ("tensor_max"). */
extern THREAD_LOCAL unsigned
    failure_count; /* errors of this thread, those hidden by an earlier one included */
/* fail_op - an op's error; the op may be the user's and bear the name of one of ours. */
int fail_op(TensorStatus code, const TensorOp *op, const char *name, const void *site, const char *format,
            ...) TAPEGRAD_PRINTF(5, 6) COLD;
const char *compose_begin(const OpCall *call); /* tensor_compose_begin for an op */
/* outermost_call - the function that the user called and where, for a device that finds a fault late. */
void outermost_call(const OpCall *call, const char **op, const void **site);
/* failed_since - something failed since, and nobody cleared it. */
FORCE_INLINE bool failed_since(unsigned before)
{
    return unlikely(failure_count != before) && tensor_error_code();
}
/* check_null - true, and an error recorded, when x is NULL (ENULL, unless an error stands) or was released
 * (EVALUE): for every public function that takes a tensor, before it reads it. */
bool check_null(const Tensor *x, const char *op, int position);
bool check_null_for(const TensorOp *op, const Tensor *x, const char *name, int position);
#define S(x) shape_text(shape_of(x))

/* ---- options: defaults.c ---------------------------------------------------------------------- */
/* options_fault - NULL, or what is wrong with options as a whole.  The defaults end in TENSOR_FROM_DEFAULTS
 * and these do not: they are zeros, or rubbish, and not what was meant.  Or a 0 stands where TensorByName
 * does: an option was given by place.
 * options_slow_fault - the same of options that do not end in the mark; options_by_place - the second part
 * alone. */
const char *options_slow_fault(const void *options, const void *defaults, size_t size);
const char *options_by_place(const void *options, const void *defaults, size_t size);
static inline const char *options_fault(const void *options, const void *defaults, size_t size)
{
    TensorFromDefaults given;
    if (!defaults || size < sizeof given) return NULL;
    memcpy(&given, (const char *)options + size - sizeof given, sizeof given);
    return likely(given == TENSOR_DEFAULTS_MARK) ? options_by_place(options, defaults, size)
                                                 : options_slow_fault(options, defaults, size);
}

/* ---- values in and out: values.c -------------------------------------------------------------- */
/* find_element - the offset of an element, in elements; -1 and an error if the index is out of range.
 * check_bytes - -1 and an error if x does not have so many bytes. */
int find_element(const Tensor *x, TensorShape index, const char *op, int64_t *offset);
int check_bytes(const Tensor *x, const void *buffer, size_t bytes, const char *op);

/* ---- steps that are captured: graph/step.c, graph/capture.c --------------------------------- */

/* graph_note_op - of each call, while graph_watches.  graph_note_list - of a call on many.
 * graph_keep - x is used by what is captured.  graph_keep_grad - its .grad will be another.
 * graph_random - where the captured masks' {seed, offset} lie; NULL: as given. */
int graph_note_op(const TensorOp *op, const char *name, Tensor *const *inputs, int n,
                  const void *params) COLD;
void graph_note_list(Tensor *const *x, int n) COLD;
void graph_note_number(double value) COLD;
const char *graph_op(void); /* that was noted last */
int graph_keep(Tensor *x);
int graph_keep_grad(Tensor *x);
const uint64_t *graph_random(const char *function, const Place *place, uint64_t seed, uint64_t *offset);

/* ---- raw work on tensors, outside the graph: raw.c ------------------------------------------- */
int raw_copy(Tensor *dst, const Tensor *src);           /* src broadcasts to dst; casts; any devices */
Tensor *raw_carry(const Tensor *x, const Place *place); /* new reference: x itself when it is there */
/* fill_fits - does the dtype hold the value?
 * check_fill - EVALUE: a value that x's dtype does not hold.
 * raw_fill - refuses it too; call check_fill first to have your op named. */
bool fill_fits(int dtype, double value);
int check_fill(const char *op, const Tensor *x, double value);
int raw_fill(Tensor *dst, double value);
Tensor *raw_contiguous(const Tensor *x);          /* new reference: x itself when dense, else a copy */
Tensor *raw_cast(const Tensor *x, int dtype);     /* new reference; dense */
Tensor *raw_sum_to(Tensor *x, TensorShape shape); /* new reference: x itself when nothing is to do */

/* ---- calls: op.c ----------------------------------------------------------------------------- */
enum {
    CALL_MAX_OUTPUTS = 256,
    CALL_MAX_EXTRA = 8,
    CALL_PARAMS = 1024,
    CALL_STAGED = 80,
    CALL_LISTS = 4,
    CALL_COMMITS = 4
};
typedef struct Staged {
    double *f64;
    float *f32;
} Staged; /* op_input_f64 and its kin */
struct OpCall {
    const TensorOp *op;
    const char *name; /* in errors: the function that the user called, as far as that is known */
    const void *site;
    int n, outputs, extras;
    bool failed, backward, staging; /* staging: an array of staged[] was asked for */
    bool by_host; /* backward: the device lacks a kernel, so values come as copies in the host's memory */
    bool frees, spent; /* backward: saved values go after it; one was overwritten */
    Tensor *const *input;
    Tensor *output[CALL_MAX_OUTPUTS];
    Tensor *extra[CALL_MAX_EXTRA];
    void *params;
    struct {
        Tensor *to, *from;  /* references */
    } commit[CALL_COMMITS]; /* what op_commit asked for */
    int commits;
    int64_t (*list)[TENSOR_MAX_DIMS]; /* room for op_set_list; NULL in backward */
    int lists;
    Staged *staged; /* of the inputs and of the results that shape declared */
    int staged_outputs;
    Entry *entry; /* backward */
    const bool *wants;
    Tensor **grads; /* cotangents of the results; NULL: zero */
    Tensor **dx;    /* of the inputs, where op_gradient_f64 puts the tensor of its array */
};

/* call_begin - initialises a call, which then enters its shape rule; the one place that does. */
FORCE_INLINE void call_begin(OpCall *c, const TensorOp *op, Tensor *const *inputs, int n, void *params,
                             const void *site)
{
    c->op = op, c->name = op->name, c->site = site, c->n = n, c->input = inputs, c->params = params;
    c->outputs = c->extras = c->lists = c->staged_outputs = c->commits = 0;
    c->failed = c->backward = c->staging = c->by_host = c->frees = c->spent = false;
    c->list = NULL, c->staged = NULL, c->entry = NULL, c->wants = NULL, c->grads = NULL;
}

/* op_apply - the one way an op runs.  op_apply1 for one result.  Both note the caller's return address; the
 * forms _as have errors bear another name than the op's. */
int op_apply_as(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                const void *site, Tensor **outputs, int count);
Tensor *op_apply1_as(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                     const void *site);
FORCE_INLINE int op_apply(const TensorOp *op, Tensor *const *inputs, int n, const void *params,
                          const void *site, Tensor **outputs, int count)
{
    return op_apply_as(op, op->name, inputs, n, params, site, outputs, count);
}
FORCE_INLINE Tensor *op_apply1(const TensorOp *op, Tensor *const *inputs, int n, const void *params,
                               const void *site)
{
    return op_apply1_as(op, op->name, inputs, n, params, site);
}
int store_staged(OpCall *call);              /* call.c */
const Place *call_place(const OpCall *call); /* that of the first operand that is there */
/* saved_to_overwrite - may backward write its result over x, which op_saved gave or which was made of that?
 * Not where anything else holds its memory, or another sweep could read it.  If so, nothing reads it
 * afterwards. */
bool saved_to_overwrite(OpCall *call, const Tensor *x);

/* gradient_to_overwrite - may backward write the gradient of operand `input` over dy, that of the result?
 * Not if an operand after it needs dy, if dy is the gradient of one before it, or if somebody else has dy. */
bool gradient_to_overwrite(const OpCall *call, int input, const Tensor *dy, Tensor *const *dx);
/* gradient_dtype - of what backward may make for input i: its dtype, or f32 where it is a half that was cast
 * from that.
 * result_dtype - of a result of OP_READS_HALVES: that of input i, or f32 where autocast asks for it. */
int gradient_dtype(const OpCall *call, int i);
int result_dtype(const OpCall *call, int i);
/* op_apply_ - into input 0, named as the op with an underscore. */
Tensor *op_apply_(const TensorOp *op, Tensor *const *inputs, int n, const void *params, const void *site);
Tensor *op_apply_as_(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                     const void *site);
Tensor *row_apply_as(const TensorOp *op, const char *name, Tensor *a, Tensor *b, const double *params,
                     const void *site); /* the fast path of rows */
FORCE_INLINE Tensor *row_apply(const TensorOp *op, Tensor *a, Tensor *b, const double *params,
                               const void *site)
{
    return row_apply_as(op, op->name, a, b, params, site);
}
#define SITE __builtin_return_address(0)
#define APPLY(op, params_, ...) APPLY_AS(op, (op)->name, params_, __VA_ARGS__)
#define APPLY_AS(op, name, params_, ...)                \
    op_apply1_as(op, name, (Tensor *[]){ __VA_ARGS__ }, \
                 (int)(sizeof(Tensor *[]){ __VA_ARGS__ } / sizeof(Tensor *)), params_, SITE)

#define APPLY_(op, params_, ...) /* the same in place */                                                    \
    op_apply_(op, (Tensor *[]){ __VA_ARGS__ }, (int)(sizeof(Tensor *[]){ __VA_ARGS__ } / sizeof(Tensor *)), \
              params_, SITE)

/* Built-in ops register themselves in a linker section that tensor_op_at walks. */
#define REGISTER_OPS(...) REGISTER_AS_(__COUNTER__, __VA_ARGS__)
#define REGISTER_AS_(number, ...) REGISTER_AS__(number, __VA_ARGS__)
#define REGISTER_AS__(number, ...)                     \
    static const TensorOp *const registered_##number[] \
        __attribute__((used, section("tapegrad_ops"), aligned(sizeof(void *)))) = { __VA_ARGS__ }

/* ---- the tape: tape.c, sweep.c --------------------------------------------------------------- */
extern THREAD_LOCAL bool grad_off;
FORCE_INLINE bool on_graph(const Tensor *x) { return x && (x->entry || (x->flags & FLAG_REQUIRES_GRAD)); }
int tape_record(OpCall *call, unsigned keep);
void entry_release_result(Entry *entry, const Tensor *result); /* a result died, or took another history */
bool entry_is_ours(const Entry *entry);                        /* of this thread's tape? */
/* inplace.c.  view_refresh - a view whose base was written since gets its history anew.
 * history_of - what on_graph says after that, or -1: to be asked wherever a tensor comes from the user. */
FORCE_INLINE bool follows_base(const Tensor *x) /* ... unless tensor_set_data made it a view no more */
{
    return x->base && x->base_epoch != x->base->epoch && x->base->storage == x->storage;
}
int view_refresh(Tensor *x);
int history_of(Tensor *x);
int inplace_check(const char *op, Tensor *x); /* may x be written? -1 and recorded when not */
/* inplace_take - x takes t's value and history.  writer, a constant, is what later errors say wrote x. */
int inplace_take(const char *name, const char *writer, Tensor *x, Tensor *t, const void *site);

HIDDEN_END
#endif
