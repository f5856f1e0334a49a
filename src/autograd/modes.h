/* modes.h - modes that wrap every call of an op while on: autocast, the profiler, hooks of saved values.
 * Nothing here is asked while modes_on() says no (trace/profile.h). */
#ifndef TG_MODES_H
#define TG_MODES_H

#include <tapegrad/autocast.h>
#include <tapegrad/saved.h>
#include "hidden.h"
#include "tensor/core.h"
#include "trace/profile.h"

HIDDEN_BEGIN

/* op_apply_plain - op_apply_as without any mode (apply.c). */
int op_apply_plain(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                   const void *site, Tensor **outputs, int count);

/* ---- autocast.c ---- */

/* autocast_switch - turns casting on or off and returns the previous state; blocks and kept casts remain. */
bool autocast_switch(bool on);
bool autocast_is_on(void);
bool autocast_is_of_parts(const TensorOp *op, Tensor *const *inputs, int n);

/* autocast_target - the dtype that the floating operands of this call are cast to; -1: none is. */
int autocast_target(const TensorOp *op, Tensor *const *inputs, int n, const void *params);
Tensor *autocast_cast(Tensor *x, int dtype); /* x itself if it has that dtype; NULL: x is NULL, or an error */

/* cast_ahead.c.  cast_ahead - leaf is about to be cast inside a block: where the device can, casts all that
 * the last block cast in one launch.  -1: failed.
 * cast_ahead_take - that cast of x, owned by the scope; NULL: there is none.
 * cast_ahead_end_block - what was not taken goes; what this block did not cast is forgotten.
 * cast_ahead_forget - all of it. */
int cast_ahead(Tensor *leaf, int dtype);
Tensor *cast_ahead_take(const Tensor *x, int dtype);
void cast_ahead_end_block(void);
void cast_ahead_forget(void);

/* autocast_widen - notes that op now runs on a half although its class asks for f32; returns the op noted
 * before. autocast_widens - is op the one noted? */
const TensorOp *autocast_widen(const TensorOp *op);
bool autocast_widens(const TensorOp *op);

/* autocast_enter - restores a state that autocast_state returned; pass its result to tensor_autocast_end. */
TensorAutocast autocast_state(void);
TensorAutocast autocast_enter(TensorAutocast as);

/* ---- saved.c: values that hooks keep ---- */

/* Packed - stands for a saved value: pack's result, and the properties that unpack must restore. */
typedef struct Packed {
    TensorSavedHooks hooks;
    void *handle;
    const Place *place;
    uint8_t dtype, ndim;
    int64_t shape[TENSOR_MAX_DIMS];
} Packed;

extern THREAD_LOCAL TensorSavedHooks saved_hooks; /* pack NULL: none */
/* pack_value - by the hooks of now; x is not on a graph.  NULL: failed. */
Packed *pack_value(const char *name, Tensor *x);
/* unpack_value - owned by the scope; equals the saved value, except for strides.  NULL: failed. */
Tensor *unpack_value(const char *name, const void *site, const Packed *p);
void drop_packed(Packed *p);
int saved_pack_all(Entry *e); /* of a new entry, where hooks are on */

HIDDEN_END

#endif
