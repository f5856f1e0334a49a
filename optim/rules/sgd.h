/* sgd.h - the rules of SGD (rule.h). */
#ifndef OPTIM_RULES_SGD_H
#define OPTIM_RULES_SGD_H

#define sgd_NUMBERS(X) X(sign) X(decay) X(lr)
#define sgd_STATES(X)
#define sgd_STEP                                      \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    x = x - lr * g

/* b: the momentum buffer, which is 0 at first; carry and keep are 0 and 1 then. */
#define sgd_momentum_NUMBERS(X) X(sign) X(decay) X(lr) X(carry) X(keep) X(nesterov)
#define sgd_momentum_STATES(X) X(b)
#define sgd_momentum_STEP                             \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    b = b * carry + keep * g;                         \
    g = nesterov != 0 ? g + nesterov * b : b;         \
    x = x - lr * g

#endif
