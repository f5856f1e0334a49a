/* grad_scaler.h - the next scale of a loss (rule.h): x is the scale, g is above 0 where a gradient was not
 * finite, tracker counts the steps since the scale changed. */
#ifndef OPTIM_RULES_GRAD_SCALER_H
#define OPTIM_RULES_GRAD_SCALER_H

#define grad_scaler_NUMBERS(X) X(growth) X(backoff) X(interval) X(infinity)
#define grad_scaler_STATES(X) X(tracker)
#define grad_scaler_STEP                                                                         \
    x = g > 0 ? x * backoff : tracker + 1 == interval && x * growth < infinity ? x * growth : x; \
    tracker = g > 0 || tracker + 1 == interval ? 0 : tracker + 1

#endif
