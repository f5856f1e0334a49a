/* optim.h - what the optimizers share. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include <tapegrad.h>

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

/* optim_dense - may a loop over memory serve instead of ops?  'f' or 'd' for dense f32 or f64 tensors on the CPU, 0 for any other. */
char optim_dense(const Tensor *t);

/* optim_threads - for a loop over n elements of several arrays. */
int optim_threads(int64_t n);

int optim_check_common(const OptimGroup *group, const char *name);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
