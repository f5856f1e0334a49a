/* conv.h - what conv.c and conv_shape.c share: the parameters of the convolution ops, and their sizes. */
#ifndef TG_OP_CONV_H
#define TG_OP_CONV_H

#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"

#pragma GCC visibility push(hidden)

enum { MOST = 3 }; /* dimensions of the window; those that an op lacks have size 1, in front */

typedef struct ConvParams {
    OpDims stride, padding, dilation; /* none: 1, 0, 1 */
    int64_t groups;
    bool same;             /* padding is what keeps the size */
    OpDims size;           /* of the result's last dimensions; gradient ops only */
    OpDims output_padding; /* transposed ops only */
} ConvParams;

typedef struct Sizes {
    int64_t at[MOST];
} Sizes; /* depth, height, width */

/* The ops, by rank (less 1) and kind. */
enum { CONV, TRANSPOSED, GRAD_INPUT, GRAD_WEIGHT, KINDS };
extern const TensorOp *const conv_family[MOST][KINDS];
int conv_rank(const OpCall *c);

/* A list of none, one (for all) or rank numbers; the last rank sizes of a shape; and such sizes as a list. */
Sizes conv_sizes(const OpDims *d, int rank, int64_t otherwise);
Sizes conv_last(TensorShape x, int rank);
OpDims conv_list(const Sizes *s, int rank);

Sizes conv_same_padding(const Sizes *kernel, const Sizes *dilation);
int64_t conv_images(TensorShape x, int rank);
int64_t conv_channels(TensorShape x, int rank);

/* The shape rules. */
int conv_shape(OpCall *c);
int conv_transposed_shape(OpCall *c);
int conv_input_shape(OpCall *c);
int conv_weight_shape(OpCall *c);

#pragma GCC visibility pop
#endif
