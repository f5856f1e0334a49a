/* loss.h - functions shared by the losses. */
#ifndef TG_LOSS_H
#define TG_LOSS_H

#include "hidden.h"
#include "op/reduce/reduce.h"

HIDDEN_BEGIN

/* The option .reduction of a loss, whose struct has a TensorReduction of this name. */
extern const char *const loss_reductions[]; /* mean, sum, none */
#define OP_REDUCTION(struct_) OP_CHOICE(struct_, reduction, loss_reductions)
int loss_reduction(const OpCall *c);

int check_loss(OpCall *c);                /* inputs 0 and 1 have one shape, the first is floating */
int check_alike(OpCall *c, int i, int k); /* inputs i and k have one shape */
int check_floating(OpCall *c, int i);
int check_same_dtype(OpCall *c, int i, int k); /* input k, if there is one, has the dtype of input i */

/* The dtype of a loss is what these inputs (KEEP_INPUT bits) promote to, as in arithmetic: integers count
 * too; loss_float_dtype: integers alone give f32. */
int loss_dtype(const OpCall *c, unsigned inputs);
int loss_float_dtype(const OpCall *c, unsigned inputs);

/* Input i as a loss of this dtype computes with it, on the graph: halves in f32.  finish_loss reduces and
 * rounds once. */
Tensor *loss_input(OpCall *c, int i, int dtype);
int finish_loss(OpCall *c, Tensor *loss, int dtype);

Tensor *reduce_loss(Tensor *x, int reduction); /* the mean, the sum, or x itself */

HIDDEN_END
#endif
