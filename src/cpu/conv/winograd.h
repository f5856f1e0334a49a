/* winograd.h - convolution by Winograd's F(2 x 2, 3 x 3) (winograd.c, winograd_weight.c), for the shapes
 * where it pays.
 *
 * winograd_takes - may the pass be computed so?  By the shape, and by tensor_set_winograd.
 * winograd_forward, winograd_grad_input, winograd_grad_weight - as the slots of their names.  -1: no memory.
 */
#ifndef TAPEGRAD_CPU_WINOGRAD_H
#define TAPEGRAD_CPU_WINOGRAD_H

#include "direct.h"
#include "hidden.h"

HIDDEN_BEGIN

bool winograd_takes(const ConvArgs *a, DirectPass pass);
int winograd_forward(const ConvArgs *a, int threads);
int winograd_grad_input(const ConvArgs *a, int threads);
int winograd_grad_weight(const ConvArgs *a, int threads);

HIDDEN_END
#endif
