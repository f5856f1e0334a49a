/* conv.h - the options and sizes of the convolution ops, for conv.c and conv_shape.c. */
#ifndef TG_OP_CONV_H
#define TG_OP_CONV_H

#include "hidden.h"
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"
#include "window.h"

HIDDEN_BEGIN

/* Of the ops that are the gradients of a convolution: its options come first, so that their fields serve. */
typedef struct ConvGradParams {
    TensorConvArgs conv;
    TensorShape size; /* of the result's last dimensions */
} ConvGradParams;

FORCE_INLINE int conv_rank(const OpCall *c) { return c->op->variant; }

/* conv_transposed_options - the options that a transposed convolution shares with others. */
TensorConvArgs conv_transposed_options(const TensorConvTransposeArgs *a);

/* conv_same_padding - what TENSOR_SAME puts in front. */
Sizes conv_same_padding(const Sizes *kernel, const Sizes *dilation);

/* The shape rules. */
int conv_shape(OpCall *c);
int conv_transposed_shape(OpCall *c);
int conv_input_shape(OpCall *c);
int conv_weight_shape(OpCall *c);

HIDDEN_END
#endif
