/* ops_loss.h - more losses, log-probabilities.  Included by ops.h. */
#ifndef TAPEGRAD_OPS_LOSS_H
#define TAPEGRAD_OPS_LOSS_H
#include <tapegrad/tensor.h>
#endif
