/* direct.h - convolution summed over blocks of channels (direct.c), for the shapes where it pays.  Of f32; of
 * bf16 where the CPU has instructions for it, bias and dweight being f32.
 *
 * direct_takes - may the pass be computed so?  By the shape and the dtype alone: a window,
 *   enough channels.
 * direct_forward, direct_grad_input, direct_grad_weight - as the slots of their names, without dbias.
 *   -1: no memory. */
#ifndef TAPEGRAD_CPU_DIRECT_H
#define TAPEGRAD_CPU_DIRECT_H

#include <stdbool.h>
#include "cpu/cpu.h"
#include "hidden.h"

HIDDEN_BEGIN

typedef enum DirectPass { DIRECT_FORWARD, DIRECT_GRAD_INPUT, DIRECT_GRAD_WEIGHT } DirectPass;
bool direct_takes(const ConvArgs *a, DirectPass pass);
int direct_forward(const ConvArgs *a, int threads);
int direct_grad_input(const ConvArgs *a, int threads);
int direct_grad_weight(const ConvArgs *a, int threads);

int conv_bf16(ConvArgs *a, DirectPass pass); /* the slot of the pass for bf16 (conv_bf16.c) */

HIDDEN_END
#endif
