/* host_add.h - sums of short lines, which ops call directly. */
#ifndef TG_HOST_ADD_H
#define TG_HOST_ADD_H

#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN

/* host_add_lines - y += x, f32 or f64, element by element: one shape, strides in elements. */
void host_add_lines(int dtype, int ndim, const int64_t *shape, void *y, const int64_t *y_stride,
                    const void *x, const int64_t *x_stride);

HIDDEN_END
#endif
