/* class_margin.h - the multilabel margin loss: sums of hinges, and how many are open. */
#ifndef TG_CLASS_MARGIN_H
#define TG_CLASS_MARGIN_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* multilabel_margin - of each of `rows` rows of x: the sum of relu(1 - (x_j - x_i)) / classes over the right
 * j, which target lists up to a negative one, and the wrong i; counts, zeros before, gets its gradient.
 * right: room for classes. */
void multilabel_margin(const double *x, const int64_t *target, int64_t rows, int64_t classes, double *loss,
                       double *counts, bool *right);

#pragma GCC visibility pop
#endif
