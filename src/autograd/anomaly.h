/* anomaly.h - tensor_set_detect_anomaly: the check of results and gradients for NaN. */
#ifndef TG_ANOMALY_H
#define TG_ANOMALY_H

#include "tensor/core.h"

#pragma GCC visibility push(hidden)
extern THREAD_LOCAL bool anomaly_on;
int anomaly_check_results(OpCall *call); /* after forward; -1 and EVALUE when a result has the first NaN */
int anomaly_check_gradient(const Entry *entry, int input, const Tensor *dx, Tensor *const *dy);
#pragma GCC visibility pop

#endif
