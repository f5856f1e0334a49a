/* lion.h - the rule of Lion (rule.h). */
#ifndef OPTIM_RULES_LION_H
#define OPTIM_RULES_LION_H

#define lion_NUMBERS(X) X(sign) X(shrink) X(beta1) X(weight1) X(beta2) X(weight2) X(lr)
#define lion_STATES(X) X(m)
#define lion_STEP                                                      \
    g = sign * g;                                                      \
    x = x * shrink;                                                    \
    x = beta1 * m + weight1 * g > 0   ? x - lr                         \
        : beta1 * m + weight1 * g < 0 ? x + lr                         \
                                      : x + (beta1 * m + weight1 * g); \
    m = m * beta2 + weight2 * g

#endif
