/* draw.h - fills any tensor with drawn values: every layout, dtype, device, and place in a graph.
 *
 * A Draw writes n values of a few dtypes into dense host memory.  The functions below bring them into a
 * tensor in the order of its memory (largest stride outermost), which is the order of PyTorch's loops. */
#ifndef TG_RANDOM_DRAW_H
#define TG_RANDOM_DRAW_H

#include "hidden.h"
#include "tensor/core.h"
#include "engine.h"

HIDDEN_BEGIN

typedef struct Draw Draw;
struct Draw {
    const char *op;
    int (*fill)(Mt19937 *g, void *out, int64_t n, const Draw *d); /* -1: no memory, recorded */
    int drawn;                                                    /* dtype of out */
    int torch;         /* a RandomKind: how PyTorch draws it on a GPU; 0: as here */
    int dtype;         /* of the tensor: set by the functions below */
    bool one_by_one;   /* the tensor is not contiguous; normals then have another recipe */
    double at[4];      /* parameters of the distribution */
    int64_t low, high; /* of integers */
    uint64_t range;    /* on a GPU: of tensor_random_, from 0 on; 0: as low and high say */
};

/* draw_new - a contiguous tensor on the default device.
 * draw_like - x's shape and device, drawn in the order of x's memory, handed out contiguous.
 * draw_into - in place.
 * The caller has checked the operands, but for what all in-place ops check.  NULL on error. */
Tensor *draw_new(TensorShape shape, int dtype, Draw d);
Tensor *draw_like(const Tensor *x, int dtype, Draw d);
Tensor *draw_into(Tensor *x, Draw d, const void *site);

/* draw_each_as_torch - *y: 1 with probability p_i, of p's shape, dtype and device, as PyTorch draws it on a
 *     GPU; 1: the device has no kernel for it; -1.
 * draw_bernoulli, draw_multinomial - on the host, to where p lies; owned by the scope.
 * draw_check_multinomial - what can be known without the weights. */
int draw_each_as_torch(const char *op, const Tensor *p, Tensor **y);
Tensor *draw_bernoulli(const char *op, const Tensor *p);
Tensor *draw_multinomial(const char *op, const Tensor *p, int64_t n, bool replacement);
int draw_check_multinomial(const char *op, const Tensor *p, int64_t n, bool replacement);

/* draw_mask_like - bool: 1 with probability p, drawn in the order of x's memory; on the CPU, owned by the
 * scope. */
Tensor *draw_mask_like(const Tensor *x, const char *op, double p);

/* draw_slopes - for rrelu in training: a slope on [lower, upper) where x <= 0, drawn there only and in
 * row-major order, from f64 uniforms; 1 elsewhere.  Of x's shape, dtype (f32 or f64) and device, owned by the
 * scope. */
Tensor *draw_slopes(const Tensor *x, const char *op, double lower, double upper);

/* The dtype that a floating dtype is drawn in.  draw_check_float: EDTYPE unless it is one.  draw_check_std:
 * EVALUE where std < 0 or NaN. */
FORCE_INLINE int draw_wide(int dtype) { return dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32; }
int draw_check_float(const char *op, int dtype);
int draw_check_std(const char *op, double std);

int fill_normal(Mt19937 *g, void *out, int64_t n, const Draw *d);      /* at: mean, std */
int fill_exponential(Mt19937 *g, void *out, int64_t n, const Draw *d); /* at: rate */

/* draw_operand - a dense copy of x on the CPU in this dtype; a new reference, x itself where it is such. */
Tensor *draw_operand(const Tensor *x, int dtype);

HIDDEN_END

#endif
