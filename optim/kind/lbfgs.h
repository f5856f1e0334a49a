/* lbfgs.h - what L-BFGS and its line search share. */
#ifndef OPTIM_LBFGS_H
#define OPTIM_LBFGS_H

#include "../optim.h"
#include "hidden.h"

#if defined(__GNUC__)
HIDDEN_BEGIN
#endif

typedef struct Lbfgs { /* a step */
    OptimGroup *group;
    const OptimLbfgsArgs *options;
    OptimClosure fn;
    void *ctx;
    Tensor **start; /* the parameters, from where a line search looks */
} Lbfgs;

typedef struct LbfgsPoint { /* on a line: x + t d */
    double t, f, slope;
    Tensor *gradient; /* of all parameters, flat */
} LbfgsPoint;

/* lbfgs_try - the loss and its gradient at x + t d; x are the parameters again after.
 * lbfgs_strong_wolfe - point, at t = 0, becomes the one that the search ends at; at most `tries` further
 *     evaluations after the first. */
int lbfgs_try(Lbfgs *l, Tensor *d, double t, LbfgsPoint *point);
int lbfgs_strong_wolfe(Lbfgs *l, Tensor *d, double t, double most, int tries, LbfgsPoint *point,
                       int *evaluations);

#if defined(__GNUC__)
HIDDEN_END
#endif
#endif
