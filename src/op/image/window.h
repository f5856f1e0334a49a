/* window.h - sliding windows over the last one, two or three dimensions, for convolutions, pools and patches:
 * a size for each direction, from options that give one number for all directions or one for each. */
#ifndef TG_WINDOW_H
#define TG_WINDOW_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

enum {
    WINDOW_RANK = 3,        /* at most */
    WINDOW_LIMIT = 1 << 20, /* of an option: guards the arithmetic of sizes; far beyond any use */
    LINE_LIMIT = INT32_MAX  /* of a size of an image: the same */
};

/* Depth, height, width.  Directions that an op lacks come first. */
typedef struct Sizes {
    int64_t at[WINDOW_RANK];
} Sizes;

/* window_option - the sizes of an option: `each`, unless it is all 0, else `all` in every direction.
 * window_sizes - the same, checked: EVALUE, naming the option, unless all lie from least to WINDOW_LIMIT.
 * Directions beyond rank are `missing`. */
Sizes window_option(int64_t all, const int64_t each[WINDOW_RANK], int rank, int64_t missing);
int window_sizes(OpCall *c, const char *option, int64_t all, const int64_t each[WINDOW_RANK], int rank,
                 int64_t least, int64_t missing, Sizes *sizes);

/* window_list - a list of one number, for all directions, or of rank.  EVALUE, naming it, for another count,
 * or a number that is not from least to LINE_LIMIT. */
int window_list(OpCall *c, const char *option, TensorShape list, int rank, int64_t least, Sizes *sizes);

/* window_last - the last rank sizes of a shape, 1 before them; window_text - the last rank sizes as text;
 * window_shape - the same as a shape, which points into sizes. */
Sizes window_last(TensorShape x, int rank);
const char *window_text(const Sizes *sizes, int rank);
TensorShape window_shape(const Sizes *sizes, int rank);

/* window_rank - ESHAPE unless x is [batch, channels, ...] or [channels, ...] with rank dimensions behind. */
int window_rank(OpCall *c, const Tensor *x, const char *what, int rank);

/* window_lies_last - does x, an [images, channels, ...], lie in memory with its channels last?
 * window_new_last - a new tensor of such a shape that lies so; owned by the open scope.
 * in_its_layout - run(c, LAYOUT_LAST) where `last`; after a decline, or otherwise, run(c, LAYOUT_FIRST). */
bool window_lies_last(const Tensor *x, int rank);
Tensor *window_new_last(TensorShape shape, int dtype, const Place *place);
int in_its_layout(OpCall *c, bool last, int (*run)(OpCall *c, ImageLayout layout));

/* The images and the channels of such an x, and how far a dilated window reaches. */
FORCE_INLINE int64_t window_images(TensorShape x, int rank) { return x.ndim == rank + 2 ? x.dim[0] : 1; }
FORCE_INLINE int64_t window_channels(TensorShape x, int rank) { return x.dim[x.ndim - rank - 1]; }
FORCE_INLINE int64_t window_reach(int64_t kernel, int64_t dilation) { return dilation * (kernel - 1) + 1; }

HIDDEN_END
#endif
