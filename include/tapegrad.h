/* tapegrad.h - all of tapegrad: reverse-mode autograd tensors for C.
 *
 *     Tensor *x = tensor_requires_grad_(tensor_full(SHAPE(2, 2), 3, TENSOR_F32), true);
 *     tensor_backward(tensor_sum(tensor_square(x)));
 *     tensor_print(tensor_grad(x));                       // 6 everywhere
 *     if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
 *
 * Read in this order: tensor.h (tensors, ownership, errors), ops.h (what can be computed), autograd.h
 * (gradients, ops of your own, gradcheck), autocast.h (precision), saved.h (memory), nn.h and optim.h
 * (training), data.h, io.h and checkpoint.h (files), device.h, graph.h, debug.h and
 * profiler.h. */
#ifndef TAPEGRAD_H
#define TAPEGRAD_H

#include <tapegrad/tensor.h>
#include <tapegrad/ops.h>
#include <tapegrad/autograd.h>
#include <tapegrad/autocast.h>
#include <tapegrad/saved.h>
#include <tapegrad/op_row.h>
#include <tapegrad/nn.h>
#include <tapegrad/foreach.h>
#include <tapegrad/optim.h>
#include <tapegrad/fused.h>
#include <tapegrad/lr_scheduler.h>
#include <tapegrad/grad_scaler.h>
#include <tapegrad/swa_utils.h>
#include <tapegrad/data.h>
#include <tapegrad/io.h>
#include <tapegrad/checkpoint.h>
#include <tapegrad/watch.h>
#include <tapegrad/metrics.h>
#include <tapegrad/train.h>
#include <tapegrad/device.h>
#include <tapegrad/graph.h>
#include <tapegrad/debug.h>
#include <tapegrad/profiler.h>

#endif
