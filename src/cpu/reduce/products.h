/* products.h - products of all elements of a line but one. */
#ifndef TG_PRODUCTS_H
#define TG_PRODUCTS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* y = for each element of dense [outer, n, inner] the product of the others along n. */
void products_of_others(const double *x, double *y, int64_t outer, int64_t n, int64_t inner);

#pragma GCC visibility pop
#endif
