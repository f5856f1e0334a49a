/* asgd.h - the rule of ASGD (rule.h). */
#ifndef OPTIM_RULES_ASGD_H
#define OPTIM_RULES_ASGD_H

#define asgd_NUMBERS(X) X(sign) X(decay) X(shrink) X(eta) X(mu)
#define asgd_STATES(X) X(a)
#define asgd_STEP                                     \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    x = x * shrink;                                   \
    x = x - eta * g;                                  \
    a = mu != 1 ? a + mu * (x - a) : x

#endif
