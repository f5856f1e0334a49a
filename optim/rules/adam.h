/* adam.h - the rules of Adam and AdamW (rule.h). */
#ifndef OPTIM_RULES_ADAM_H
#define OPTIM_RULES_ADAM_H

/* Products and sums round where PyTorch's do, but for scale, a factor where it divides. */
#define ADAM_NUMBERS(X) X(sign) X(decay) X(shrink) X(weight1) X(beta2) X(weight2) X(rate) X(scale) X(eps)
#define ADAM_MOMENTS                                  \
    g = decay != 0 ? sign * g + decay * x : sign * g; \
    m = m + weight1 * (g - m);                        \
    v = v * beta2 + weight2 * g * g

#define adam_NUMBERS(X) ADAM_NUMBERS(X)
#define adam_STATES(X) X(m) X(v)
#define adam_STEP \
    ADAM_MOMENTS; \
    x = x * shrink - rate * m / (sqrt(v) * scale + eps)

#define amsgrad_NUMBERS(X) ADAM_NUMBERS(X)
#define amsgrad_STATES(X) X(m) X(v) X(u)
#define amsgrad_STEP             \
    ADAM_MOMENTS;                \
    u = v > u || v != v ? v : u; \
    x = x * shrink - rate * m / (sqrt(u) * scale + eps)

#endif
