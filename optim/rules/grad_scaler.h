/* grad_scaler.h - the next scale of a loss (rule.h): x is the scale, g is above 0 where a gradient was not
 * finite, tracker counts the steps since the scale changed; and before it found: x is 1 where g, the largest
 * gradient, is not finite, inverse what gradients are multiplied by. */
#ifndef OPTIM_RULES_GRAD_SCALER_H
#define OPTIM_RULES_GRAD_SCALER_H

#define grad_scaler_NUMBERS(X) X(growth) X(backoff) X(interval) X(infinity)
#define grad_scaler_STATES(X) X(tracker)
#define grad_scaler_STEP                                                                         \
    x = g > 0 ? x * backoff : tracker + 1 == interval && x * growth < infinity ? x * growth : x; \
    tracker = g > 0 || tracker + 1 == interval ? 0 : tracker + 1

#define grad_scaler_found_NUMBERS(X)
#define grad_scaler_found_STATES(X) X(scale) X(inverse)
#define grad_scaler_found_STEP \
    x = g - g == 0 ? 0 : 1;    \
    inverse = 1 / scale

#endif
