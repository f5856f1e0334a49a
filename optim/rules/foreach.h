/* foreach.h - the rules of the list ops (rule.h): without states, the same numbers for all. */
#ifndef OPTIM_RULES_FOREACH_H
#define OPTIM_RULES_FOREACH_H

#define foreach_zero_NUMBERS(X)
#define foreach_zero_STATES(X)
#define foreach_zero_STEP x = 0

#define foreach_copy_NUMBERS(X)
#define foreach_copy_STATES(X)
#define foreach_copy_STEP x = g

#define foreach_mul_NUMBERS(X) X(factor)
#define foreach_mul_STATES(X)
#define foreach_mul_STEP x = x * factor

#define foreach_clamp_NUMBERS(X) X(least) X(most)
#define foreach_clamp_STATES(X)
#define foreach_clamp_STEP x = x < least ? least : x > most ? most : x

#define foreach_add_NUMBERS(X) X(alpha)
#define foreach_add_STATES(X)
#define foreach_add_STEP x = x + alpha * g

/* As PyTorch: from the nearer end. */
#define foreach_lerp_NUMBERS(X) X(weight)
#define foreach_lerp_STATES(X)
#define foreach_lerp_STEP x = fabs(weight) < 0.5 ? x + weight * (g - x) : g - (g - x) * (1 - weight)

#endif
