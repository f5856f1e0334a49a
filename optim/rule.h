/* rule.h - an optimizer's step from its rule, the update of one element.  Three macros define a rule,
 *
 *     #define adam_NUMBERS(X) X(rate) X(beta2) ...   the same for all elements of a parameter
 *     #define adam_STATES(X)  X(m) X(v)              as OptimKind.state orders them
 *     #define adam_STEP       m = m + (g - m) * w;  ...   x = x - rate * m / (sqrt(v) + eps)
 *
 *     #define RULE adam
 *     #include "rule.h"
 *
 * and this gives struct adam_numbers and the constant adam_rule, for optim_run (optim.h).  STEP assigns to
 * x, the element, to g, its gradient, and to the states, in the grammar of op_row.h: it is compiled into
 * loops for f32 and f64 over dense memory, and its text is evaluated by ops elsewhere.  Devices compile the
 * rules in rules/, too: a step is one kernel there.  RULE_WIDEST adds loops for AVX-512, which are worth
 * their size if divisions bound the step. */
#include "optim.h"

#define RULE_JOIN_(a, b) a##_##b
#define RULE_JOIN(a, b) RULE_JOIN_(a, b)
#define RULE_TEXT_(...) #__VA_ARGS__
#define RULE_TEXT(...) RULE_TEXT_(__VA_ARGS__)
#define RULE_FIELD(n) double n;
#define RULE_NAME(n) #n,
#define RULE_NUMBERS(X) RULE_JOIN(RULE, NUMBERS)(X)
#define RULE_STATES(X) RULE_JOIN(RULE, STATES)(X)
#define RULE_STEP RULE_JOIN(RULE, STEP)

typedef struct RULE_JOIN(RULE, numbers) {
    RULE_NUMBERS(RULE_FIELD)
} RULE_JOIN(RULE, numbers);

#define BUILD OPTIM_PLAIN
#define SIMD OPTIM_PLAIN_SIMD
#define real float
#define MATH(name) __builtin_##name##f
#define LOOP RULE_JOIN(RULE, plain_f32)
#include "rule_loop.h"
#define real double
#define MATH(name) __builtin_##name
#define LOOP RULE_JOIN(RULE, plain_f64)
#include "rule_loop.h"
#undef BUILD
#undef SIMD
#define BUILD OPTIM_WIDE
#define SIMD OPTIM_SIMD
#define real float
#define MATH(name) __builtin_##name##f
#define LOOP RULE_JOIN(RULE, wide_f32)
#include "rule_loop.h"
#define real double
#define MATH(name) __builtin_##name
#define LOOP RULE_JOIN(RULE, wide_f64)
#include "rule_loop.h"
#undef BUILD
#undef SIMD
#ifdef RULE_WIDEST
#define BUILD OPTIM_WIDEST
#define SIMD OPTIM_SIMD
#define real float
#define MATH(name) __builtin_##name##f
#define LOOP RULE_JOIN(RULE, widest_f32)
#include "rule_loop.h"
#define real double
#define MATH(name) __builtin_##name
#define LOOP RULE_JOIN(RULE, widest_f64)
#include "rule_loop.h"
#undef BUILD
#undef SIMD
#endif

static const OptimRule RULE_JOIN(RULE, rule) = {
    .loop = { { RULE_JOIN(RULE, plain_f32), RULE_JOIN(RULE, plain_f64) },
              { RULE_JOIN(RULE, wide_f32), RULE_JOIN(RULE, wide_f64) },
#ifdef RULE_WIDEST
              { RULE_JOIN(RULE, widest_f32), RULE_JOIN(RULE, widest_f64) }
#else
              { RULE_JOIN(RULE, wide_f32), RULE_JOIN(RULE, wide_f64) }
#endif
    },
    .name = RULE_TEXT(RULE),
    .step = RULE_TEXT(RULE_STEP),
    .number = { RULE_NUMBERS(RULE_NAME) NULL },
    .state = { RULE_STATES(RULE_NAME) NULL },
};

#undef RULE
#undef RULE_WIDEST
#undef RULE_NUMBERS
#undef RULE_STATES
#undef RULE_STEP
#undef RULE_JOIN_
#undef RULE_JOIN
#undef RULE_TEXT_
#undef RULE_TEXT
#undef RULE_FIELD
#undef RULE_NAME
