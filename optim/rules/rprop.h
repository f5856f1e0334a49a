/* rprop.h - the rule of Rprop (rule.h). */
#ifndef OPTIM_RULES_RPROP_H
#define OPTIM_RULES_RPROP_H

#define rprop_NUMBERS(X) X(sign) X(first) X(lr) X(minus) X(plus) X(low) X(high)
#define rprop_STATES(X) X(q) X(l)
#define rprop_STEP                                                           \
    g = sign * g;                                                            \
    l = first != 0 ? lr : l;                                                 \
    l = l * (q * g > 0 ? plus : q * g < 0 ? minus : q * g == 0 ? 1 : q * g); \
    l = l < low ? low : l > high ? high : l;                                 \
    g = q * g < 0 ? 0 : g;                                                   \
    x = x - l * (g > 0 ? 1 : g < 0 ? -1 : g);                                \
    q = g

#endif
