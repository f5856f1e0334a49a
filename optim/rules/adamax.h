/* adamax.h - the rule of Adamax (rule.h). */
#ifndef OPTIM_RULES_ADAMAX_H
#define OPTIM_RULES_ADAMAX_H

#define adamax_NUMBERS(X) X(sign) X(decay) X(weight1) X(beta2) X(rate) X(eps)
#define adamax_STATES(X) X(m) X(u)
#define adamax_STEP                                                      \
    g = decay != 0 ? sign * g + decay * x : sign * g;                    \
    m = m + weight1 * (g - m);                                           \
    u = u * beta2 > fabs(g) + eps || u != u ? u * beta2 : fabs(g) + eps; \
    x = x - rate * m / u

#endif
