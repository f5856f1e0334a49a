/* rnn.h - what the files of the recurrent ops share: one layer in one direction, with its operands by role.
 */
#ifndef TG_RNN_H
#define TG_RNN_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

/* The inputs of a layer op in this order; C0 and W_HR are an lstm's only, and the other ops lack them
 * (rnn_slot).  The kind of an op is its variant.
 *
 *   x [T, N, in], h0 [N, P], c0 [N, H], w_ih [G H, in], w_hh [G H, P], b_ih and b_hh [G H]
 *   w_hr [P, H] (without it P is H) */
enum { X, H0, C0, W_IH, W_HH, B_IH, B_HH, W_HR, RNN_ROLES };

typedef struct RnnLayerParams {
    bool reverse;
} RnnLayerParams;

FORCE_INLINE int rnn_gates(int kind) { return kind == RNN_LSTM ? 4 : kind == RNN_GRU ? 3 : 1; }

/* rnn_slot - which input of the op has a role; -1: none.   rnn_slots - how many inputs. */
FORCE_INLINE int rnn_slot(int kind, int role)
{
    if (kind == RNN_LSTM) return role;
    return role == C0 || role == W_HR ? -1 : role > C0 ? role - 1 : role;
}
FORCE_INLINE int rnn_slots(int kind) { return kind == RNN_LSTM ? RNN_ROLES : RNN_ROLES - 2; }

/* rnn_dtype - what operands of a dtype are computed in: halves where the device reads them, else f32. */
FORCE_INLINE int rnn_dtype(const Place *place, int dtype)
{
    const bool there =
        multiplied_there(place, dtype) && TAKES(place, rnn_step, dtype) && TAKES(place, rnn_step_grad, dtype);
    return there || dtype == TENSOR_F64 ? dtype : TENSOR_F32;
}

/* rnn_layer - applies the layer op: y [T, N, P], and for an lstm *c_n [N, H] (otherwise NULL).  0 or -1. */
int rnn_layer(int kind, Tensor *const operand[RNN_ROLES], bool reverse, const void *site, Tensor **y,
              Tensor **c_n);

/* rnn_recorded - the gradient of a layer, made of ops: forward is run again, step by step, and backward
 * formed from it. */
int rnn_recorded(OpCall *c, Tensor **dx);

HIDDEN_END
#endif
