/* report.h - collects complaints about an op, sample by sample. */
#ifndef TG_REPORT_H
#define TG_REPORT_H

#include "hidden.h"
#include "sample.h"

HIDDEN_BEGIN

/* report_begin - complaints of this thread go to the report until report_end, which gives how many there
 * were. */
void report_begin(OpReport *report, const TensorOp *op);
int report_end(void);

/* complain - adds a line with the op, the sample and what is wrong, and the error of the library, which it
 * clears. */
void complain(const Sample *s, const char *format, ...) TAPEGRAD_PRINTF(2, 3);
void complain_op(const TensorOp *op, const char *format, ...) TAPEGRAD_PRINTF(2, 3);

/* untold - since the last call, how often did a function of an op fail and return 0?  A user's op may: the
 * call fails all the same.  Ours return -1. */
unsigned untold(const TensorOp *op);

/* each_sample - calls check for every sample of op. */
void each_sample(const TensorOp *op, void (*check)(const Sample *s));

/* The parts of tensor_check_op. */
void check_op_forward(const TensorOp *op);
void check_op_gradients(const TensorOp *op);
void check_op_halves(const TensorOp *op);
void check_op_layouts(const TensorOp *op);
void check_op_memory(const TensorOp *op);

HIDDEN_END
#endif
