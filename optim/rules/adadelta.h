/* adadelta.h - the rule of Adadelta (rule.h). */
#ifndef OPTIM_RULES_ADADELTA_H
#define OPTIM_RULES_ADADELTA_H

#define adadelta_NUMBERS(X) X(sign) X(decay) X(rho) X(keep) X(eps) X(lr)
#define adadelta_STATES(X) X(s) X(u)
#define adadelta_STEP                                 \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    s = s * rho + keep * g * g;                       \
    g = sqrt(u + eps) / sqrt(s + eps) * g;            \
    u = u * rho + keep * g * g;                       \
    x = x - lr * g

#endif
