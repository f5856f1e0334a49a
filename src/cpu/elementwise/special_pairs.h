/* special_pairs.h - special functions of two numbers, of dense arrays of doubles (special_gamma.h). */
#ifndef TG_SPECIAL_PAIRS_H
#define TG_SPECIAL_PAIRS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef enum SpecialPair { SPECIAL_ZETA, SPECIAL_IGAMMA, SPECIAL_IGAMMAC } SpecialPair;

/* y_i = f(a_i, b_i) for n elements, on as many threads as pay. */
void special_pairs(SpecialPair f, int64_t n, const double *a, const double *b, double *y);

#pragma GCC visibility pop
#endif
