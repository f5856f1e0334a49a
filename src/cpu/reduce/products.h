/* products.h - products along lines of dense [outer, n, inner], in double. */
#ifndef TG_PRODUCTS_H
#define TG_PRODUCTS_H

#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN

/* y = for each element of dense [outer, n, inner] the product of the others along n. */
void products_of_others(const double *x, double *y, int64_t outer, int64_t n, int64_t inner);

/* The same of f32, rounded once; room: as many doubles. */
void products_of_others_f32(const float *x, double *room, float *y, int64_t outer, int64_t n, int64_t inner);
void running_products_f32(const float *x, float *y, int64_t outer, int64_t n, int64_t inner);

/* y_i = x_0 ... x_i along n.  The gradient: dx_i is the product of the elements before x_i times
 * s_i = g_i + x_(i+1) s_(i+1): no division, so zeros need no care. */
void running_products(const double *x, double *y, int64_t outer, int64_t n, int64_t inner);
void running_products_grad(const double *x, const double *g, double *dx, int64_t outer, int64_t n,
                           int64_t inner);
void running_products_i64(const int64_t *x, int64_t *y, int64_t outer, int64_t n, int64_t inner);

HIDDEN_END
#endif
