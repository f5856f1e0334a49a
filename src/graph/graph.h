/* graph.h - what a captured step is: for step.c, which runs steps, and capture.c, which notes what one
 * depends on.
 *
 *  - graph_step is what this thread is in, from begin to end.  While graph_watches its ops are hashed;
 *    graph_serial is not 0 while it is captured, and marks the tensors that are made meanwhile.
 *  - A tensor that the step uses and did not make is kept: it is lent to the graph, and must be as it was
 *    when the step is replayed.
 *  - Numbers lie in chunks: each is one copy from the host before a launch. */
#ifndef TG_GRAPH_H
#define TG_GRAPH_H

#include <tapegrad/graph.h>
#include "hidden.h"
#include "random/random_state.h"
#include "tensor/core.h"

HIDDEN_BEGIN

typedef struct Kept {
    Tensor *x; /* lent */
    const Storage *storage;
    const void *data;
    uint64_t layout;    /* hash: dtype, shape, strides, requires_grad */
    uint32_t version;   /* when it was first used; */
    bool written;       /* and it was written */
    const void *before; /* where its .grad was; NULL: there was none */
    bool reset;         /* another one, or none, took its place */
    Tensor *grad;       /* lent: after the step */
} Kept;

typedef struct Numbers { /* values on the device; fill NULL: seed and offset of the generator */
    void (*fill)(void *ctx, double *values);
    void *ctx;
    int n;
    TensorDtype dtype;
    char *at; /* in here of a chunk */
} Numbers;

typedef struct Chunk {
    Tensor *there; /* u8; a reference */
    char *here;
    size_t room, used;
    struct Chunk *next;
} Chunk;

typedef struct Replay {
    int (*fn)(void *ctx, OpGraphPhase phase);
    void *ctx;
    void (*drop)(void *ctx);
} Replay;

typedef struct Capture { /* of a step */
    Kept *kept;
    uint32_t *slot; /* of kept, by address: its number + 1 */
    Numbers *numbers;
    Replay *replay;
    Chunk *chunk;
    int64_t count, room, slots, number_count, number_room, replay_count, replay_room;
    const TensorGenerator *generator; /* the masks' ... */
    const uint64_t *random;           /* ... {seed, offset} on the device, NULL: it draws none */
    uint64_t offset, draws;           /* where it began; so many offsets were taken */
    unsigned changes;                 /* op_graph_changed's count */
} Capture;

typedef enum StepPhase {
    STEP_NONE,
    STEP_REFUSED, /* inside of another one */
    STEP_FAILED,
    STEP_EAGER,
    STEP_CAPTURED,
    STEP_REPLAYED
} StepPhase;

struct TensorGraph {
    const Place *place;
    DeviceGraph *there; /* NULL: of a device that captures nothing */
    int warmup;
    bool fallback;
    StepPhase phase; /* of the step that this thread is in */
    bool ready;      /* a captured step is there */
    bool told;       /* on stderr */
    bool quiet;      /* what is called now is not compared with the last step */
    int failures;    /* captures in a row that were of no use */
    int equal;       /* steps in a row that did the same */
    uint64_t signature, last,
        of_capture;           /* of this step's inputs and modes, the last one's, the captured one's */
    uint64_t hash, last_hash; /* of the ops */
    const char *op;           /* the last one that was called */
    Tensor *input[TENSOR_GRAPH_TENSORS], *output[TENSOR_GRAPH_TENSORS];         /* references: this step's; */
    Tensor *own_input[TENSOR_GRAPH_TENSORS], *own_output[TENSOR_GRAPH_TENSORS]; /* the captured one's */
    Capture capture;
    TensorGraphInfo info;
    char why[320];
};

/* What differs from step to step goes in here (FNV-1a, by words). */
FORCE_INLINE uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}
uint64_t layout_of(const Tensor *x);

/* capture.c, of the capture of g:
 * capture_make_room - for so many bytes of numbers.  -1: ENOMEM.
 * capture_clear - releases all of it.
 * capture_end - notes how the step left what it used.
 * capture_valid - may it be replayed now?  Why not is in g->why.
 * capture_next - counts the step, and computes the numbers.  capture_send - copies those.  -1: an error.
 * capture_done - what the launched step has done to tensors, for the host. */
int capture_make_room(TensorGraph *g, size_t bytes);
void capture_clear(TensorGraph *g);
void capture_end(TensorGraph *g);
bool capture_valid(TensorGraph *g);
int capture_next(TensorGraph *g);
int capture_send(const TensorGraph *g);
void capture_done(TensorGraph *g);
extern _Atomic unsigned graph_changes;
extern THREAD_LOCAL TensorGraph *graph_step;

HIDDEN_END

#endif
