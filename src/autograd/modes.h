/* modes.h - modes that wrap every call of an op while on: autocast, the profiler, hooks of saved values.
 * Nothing here is asked while modes_on() says no (trace/profile.h). */
#ifndef TG_MODES_H
#define TG_MODES_H

#include <tapegrad/autocast.h>
#include <tapegrad/saved.h>
#include "tensor/core.h"
#include "trace/profile.h"

#pragma GCC visibility push(hidden)

/* op_apply_plain - op_apply_as without any mode (apply.c). */
int op_apply_plain(const TensorOp *op, const char *name, Tensor *const *inputs, int n, const void *params,
                   const void *site, Tensor **outputs, int count);

/* ---- autocast.c ---- */

/* autocast_switch - on or off until it is called with what it returned; blocks and kept casts stay. */
bool autocast_switch(bool on);
bool autocast_is_on(void);
bool autocast_is_of_parts(const TensorOp *op, Tensor *const *inputs, int n);

/* autocast_target - the dtype that the floating operands of this call are cast to; -1: none is. */
int autocast_target(const TensorOp *op, Tensor *const *inputs, int n, const void *params);
Tensor *autocast_cast(Tensor *x, int dtype); /* x itself where nothing is to cast; NULL passes, or failed */

/* autocast_widen - op runs now, on a half in place of the f32 that its class asks for; what ran before.
 * autocast_widens - is it op? */
const TensorOp *autocast_widen(const TensorOp *op);
bool autocast_widens(const TensorOp *op);

/* autocast_enter - as it was when autocast_state gave that; what it returns goes to tensor_autocast_end. */
TensorAutocast autocast_state(void);
TensorAutocast autocast_enter(TensorAutocast as);

/* ---- saved.c: values that hooks keep ---- */

/* Packed - what stands for a value: pack's answer, and what unpack must give back. */
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
/* unpack_value - owned by the scope; as it was saved, but for its strides.  NULL: failed. */
Tensor *unpack_value(const char *name, const void *site, const Packed *p);
void drop_packed(Packed *p);
int saved_pack_all(Entry *e); /* of a new entry, where hooks are on */

#pragma GCC visibility pop

#endif
