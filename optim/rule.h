/* rule.h - an optimizer's step from its rule: what happens to one element.
 *
 *     #define RULE       adam
 *     #define NUMBERS(X) X(rate) X(beta2) ...        the same for all elements of a parameter
 *     #define STATES(X)  X(m) X(v)                   as OptimKind.state orders them
 *     #define STEP       m = m + (g - m) * w;  ...   x = x - rate * m / (sqrt(v) + eps)
 *     #include "rule.h"
 *
 * gives struct adam_numbers and the constant adam_rule, for optim_run (optim.h).  STEP assigns to x, the
 * element, to g, its gradient, and to the states, in the grammar of op_row.h: it is compiled into loops for
 * f32 and f64 over dense memory, and its text is evaluated by ops elsewhere. */
#include "optim.h"

#define RULE_JOIN_(a, b) a##_##b
#define RULE_JOIN(a, b) RULE_JOIN_(a, b)
#define RULE_TEXT_(...) #__VA_ARGS__
#define RULE_TEXT(...) RULE_TEXT_(__VA_ARGS__)
#define RULE_FIELD(n) double n;
#define RULE_NAME(n) #n,

typedef struct RULE_JOIN(RULE, numbers) {
    NUMBERS(RULE_FIELD)
} RULE_JOIN(RULE, numbers);

#define real float
#define MATH(name) __builtin_##name##f
#define LOOP(part) RULE_JOIN(RULE_JOIN(RULE, part), f32)
#include "rule_loop.h"
#undef real
#undef MATH
#undef LOOP
#define real double
#define MATH(name) __builtin_##name
#define LOOP(part) RULE_JOIN(RULE_JOIN(RULE, part), f64)
#include "rule_loop.h"
#undef real
#undef MATH
#undef LOOP

static const OptimRule RULE_JOIN(RULE, rule) = {
    .loop = { { RULE_JOIN(RULE_JOIN(RULE, plain), f32), RULE_JOIN(RULE_JOIN(RULE, plain), f64) },
              { RULE_JOIN(RULE_JOIN(RULE, wide), f32), RULE_JOIN(RULE_JOIN(RULE, wide), f64) } },
    .step = RULE_TEXT(STEP),
    .number = { NUMBERS(RULE_NAME) NULL },
    .state = { STATES(RULE_NAME) NULL },
};

#undef RULE
#undef NUMBERS
#undef STATES
#undef STEP
#undef RULE_JOIN_
#undef RULE_JOIN
#undef RULE_TEXT_
#undef RULE_TEXT
#undef RULE_FIELD
#undef RULE_NAME
