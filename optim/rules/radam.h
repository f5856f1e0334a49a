/* radam.h - the rule of RAdam (rule.h). */
#ifndef OPTIM_RULES_RADAM_H
#define OPTIM_RULES_RADAM_H

#define radam_NUMBERS(X) X(sign) X(decay) X(shrink) X(weight1) X(beta2) X(weight2) X(rate) X(adapt) X(eps)
#define radam_STATES(X) X(m) X(v)
#define radam_STEP                                    \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    x = x * shrink;                                   \
    m = m + weight1 * (g - m);                        \
    v = v * beta2 + weight2 * g * g;                  \
    x = adapt != 0 ? x - rate * m * adapt / (sqrt(v) + eps) : x - rate * m

#endif
