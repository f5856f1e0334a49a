/* loss.h - what the losses of embedding_losses.c, margin_losses.c, likelihood_losses.c and ctc_loss.c share.
 */
#ifndef TG_LOSS_H
#define TG_LOSS_H

#include "op/reduce/reduce.h"

#pragma GCC visibility push(hidden)

/* The option .reduction of a loss, whose struct has a TensorReduction of this name. */
extern const char *const loss_reductions[]; /* mean, sum, none */
#define OP_REDUCTION(struct_) OP_CHOICE(struct_, reduction, loss_reductions)
int loss_reduction(const OpCall *c);

/* The first field of every params struct is `int reduction`. */
int check_reduction(OpCall *c); /* a mean, a sum or none */
int check_loss(OpCall *c);      /* inputs 0 and 1 have one shape, the first is floating; reduction */
int check_alike(OpCall *c, int i, int k); /* inputs i and k have one shape */
int check_floating(OpCall *c, int i);

/* Input i as losses compute with it: in the dtype of input 0, halves in f32.  finish_loss reduces and rounds
 * once. */
Tensor *loss_input(OpCall *c, int i);
int finish_loss(OpCall *c, Tensor *loss);

#define REDUCTION_FIELD(Params) OP_FIELD(OP_INT, Params, reduction, "0")

#pragma GCC visibility pop
#endif
