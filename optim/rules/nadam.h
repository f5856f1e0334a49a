/* nadam.h - the rule of NAdam (rule.h). */
#ifndef OPTIM_RULES_NADAM_H
#define OPTIM_RULES_NADAM_H

#define nadam_NUMBERS(X) \
    X(sign) X(decay) X(shrink) X(weight1) X(beta2) X(weight2) X(correct) X(eps) X(rate_g) X(rate_m)
#define nadam_STATES(X) X(m) X(v)
#define nadam_STEP                                    \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    x = x * shrink;                                   \
    m = m + weight1 * (g - m);                        \
    v = v * beta2 + weight2 * g * g;                  \
    x = x - (rate_g * g + rate_m * m) / (sqrt(v / correct) + eps)

#endif
