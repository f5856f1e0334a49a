/* tape.h - the entry of the tape, for the files that read it. */
#ifndef TG_TAPE_H
#define TG_TAPE_H

#include <pthread.h>
#include "hidden.h"
#include "tensor/core.h"

typedef struct Edge { /* where an input's gradient goes; both NULL: nowhere */
    Entry *from;      /* the entry that made it ... */
    Tensor *leaf;     /* ... or the leaf it is */
    uint16_t slot;
} Edge;

typedef struct Meta { /* an input or a result, without its values */
    const int64_t *shape;
    const Place *place;
    uint8_t dtype, ndim;
} Meta;

typedef struct Result {
    Tensor *_Atomic tensor; /* weak: NULL when it died (perhaps in another thread) or took another history */
    Tensor *grad;           /* in a sweep: the gradient so far */
    Hook *hooks;
    bool retain; /* the tensor wants .grad filled */
} Result;

typedef enum SavedKind { SAVED_INPUT, SAVED_OUTPUT, SAVED_EXTRA } SavedKind;
typedef struct Saved { /* a value that backward reads: its storage, not its tensor */
    Storage *storage;
    void *data;
    const int64_t *shape, *stride;
    uint32_t version;
    uint8_t dtype, ndim, kind, index;
} Saved;

typedef struct Tape {
    Entry **at; /* in the order of computation; NULL where an entry is gone */
    int64_t count, capacity, living, bytes;
    int sweeps; /* running now: indices must not change */
    uint64_t sweep_serial;
    pthread_mutex_t lock; /* of foreign and dead */
    Entry *foreign;       /* entries whose results died in other threads */
    atomic_bool has_foreign;
    bool dead; /* its thread has ended */
} Tape;

struct Entry {
    const TensorOp *op;
    Tape *tape;
    const void *site;
    const char *note; /* tensor_tape_note: where an error in its backward was; may be NULL */
    int64_t index;
    int refs; /* living results + edges of later entries */
    atomic_int foreign_drops;
    uint16_t outputs, range; /* range: the profiler's range in which it was recorded */
    uint8_t inputs, saves;
    bool freed;      /* saved values are gone */
    uint64_t sweep;  /* serial of the last sweep that put gradients here */
    uint64_t needed; /* of the last one that found it on a path */
    Entry *next_dead, *next_foreign;
    void *params;
    Edge *edge;
    Meta *meta; /* inputs, then results */
    Result *result;
    Saved *saved;
    size_t bytes;
};

/* Is input i an index or a mask, which has no gradient and no part in promotion? */
FORCE_INLINE bool is_plain_input(const TensorOp *op, int i)
{
    return i < 32 && (op->no_grad_inputs >> i & 1);
}

/* What the gradient of input i reads: keep_for's bits where the op states them, else keep. */
FORCE_INLINE unsigned keep_of_input(const TensorOp *op, int i, unsigned keep)
{
    bool stated = op->keep_for[0] | op->keep_for[1] | op->keep_for[2] | op->keep_for[3];
    return stated && i < 4 ? op->keep_for[i] : keep;
}

HIDDEN_BEGIN
extern THREAD_LOCAL Tape *my_tape;
extern THREAD_LOCAL const char *tape_note; /* of what is recorded now */
extern pthread_mutex_t leaf_lock;          /* .grad of leaves, which threads share */

/* call_status - the status of an op's function: what it returned, but -1 if a call inside it failed.
 * untold_failures counts functions that returned 0 then. */
int call_status(const OpCall *c, int status, unsigned before);
extern THREAD_LOCAL unsigned untold_failures;

#define fail_entry(code, e, ...) fail_op(code, (e)->op, (e)->op->name, (e)->site, __VA_ARGS__)
void entry_unref(Entry *entry); /* only for entries of this thread */
void entry_free_saved(Entry *entry);
Entry *entry_new(OpCall *call,
                 unsigned keep); /* with one reference, no result tensors yet; ENOMEM recorded */
void entry_attach(Entry *entry, int slot, Tensor *result); /* result takes its history from here */
Tensor *entry_living_result(Entry *entry, int slot);       /* lent; NULL when it is dead */
/* run_hooks - passes *grad through them; run_after_hooks - calls those that wait until a leaf has its
 * .grad. */
int run_hooks(const char *name, Hook *const *hooks, Tensor **grad);
void run_after_hooks(Tensor *leaf);

/* What tensor_queue_callback queues while a sweep runs: the sweep's own, on its stack. */
typedef struct AfterSweep {
    struct Callback *first, **end;
    struct AfterSweep *outer;
} AfterSweep;
void after_sweep_begin(AfterSweep *a);
void after_sweep_end(AfterSweep *a); /* calls and frees them */

Tensor *saved_unpack(Entry *entry, const Saved *saved, bool on_graph); /* owned by the scope */
/* saved.c.
 * saved_begin - makes sure that what backward reads is there, and as it was saved; -1 when not: EGRAD, or
 *     what hooks of saved values failed with.
 * saved_end - once afterwards, a failed begin too.  packed: room for both. */
typedef struct Packed Packed;
enum { MOST_SAVES = 16 + 16 + CALL_MAX_EXTRA };
int saved_begin(Entry *entry, Packed **packed);
void saved_end(Entry *entry, Packed *const *packed);

/* anomaly.c: tensor_set_detect_anomaly, the check of results and gradients for NaN. */
extern THREAD_LOCAL bool anomaly_on;
int anomaly_check_results(OpCall *call); /* after forward; -1 and EVALUE when a result has the first NaN */
int anomaly_check_gradient(const Entry *entry, int input, const Tensor *dx, Tensor *const *dy);
HIDDEN_END

#endif
