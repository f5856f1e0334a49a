/* adagrad.h - the rule of Adagrad (rule.h). */
#ifndef OPTIM_RULES_ADAGRAD_H
#define OPTIM_RULES_ADAGRAD_H

#define adagrad_NUMBERS(X) X(sign) X(decay) X(start) X(rate) X(eps)
#define adagrad_STATES(X) X(s)
#define adagrad_STEP                                  \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    s = s + start + g * g;                            \
    x = x - rate * g / (sqrt(s) + eps)

#endif
