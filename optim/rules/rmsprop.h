/* rmsprop.h - the rules of RMSprop (rule.h). */
#ifndef OPTIM_RULES_RMSPROP_H
#define OPTIM_RULES_RMSPROP_H

#define RMSPROP_NUMBERS(X) X(sign) X(decay) X(alpha) X(keep) X(eps) X(lr) X(momentum)
#define RMSPROP_SQUARE                                \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    s = s * alpha + keep * g * g
#define RMSPROP_MEAN \
    RMSPROP_SQUARE;  \
    a = a + keep * (g - a)

#define rmsprop_NUMBERS(X) RMSPROP_NUMBERS(X)
#define rmsprop_STATES(X) X(s)
#define rmsprop_STEP \
    RMSPROP_SQUARE;  \
    x = x - lr * g / (sqrt(s) + eps)

#define rmsprop_centered_NUMBERS(X) RMSPROP_NUMBERS(X)
#define rmsprop_centered_STATES(X) X(s) X(a)
#define rmsprop_centered_STEP \
    RMSPROP_MEAN;             \
    x = x - lr * g / (sqrt(s - a * a) + eps)

#define rmsprop_momentum_NUMBERS(X) RMSPROP_NUMBERS(X)
#define rmsprop_momentum_STATES(X) X(s) X(b)
#define rmsprop_momentum_STEP               \
    RMSPROP_SQUARE;                         \
    b = b * momentum + g / (sqrt(s) + eps); \
    x = x - lr * b

#define rmsprop_both_NUMBERS(X) RMSPROP_NUMBERS(X)
#define rmsprop_both_STATES(X) X(s) X(b) X(a)
#define rmsprop_both_STEP                           \
    RMSPROP_MEAN;                                   \
    b = b * momentum + g / (sqrt(s - a * a) + eps); \
    x = x - lr * b

#endif
