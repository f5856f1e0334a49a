/* rule_loop.h - the loop of a rule over dense memory for one type and build: rule.h includes it for each. */
#define sqrt MATH(sqrt)
#define fabs MATH(fabs)

BUILD static void LOOP(const void *numbers, int64_t n, void *element, const void *gradient,
                       void *const *state)
{
    const struct RULE_JOIN(RULE, numbers) *k = numbers;
    real *restrict const xs = element;
    const real *restrict const gs = gradient;
#define RULE_NUMBER(n)         \
    const real n = (real)k->n; \
    (void)n; /* rules share lists */
#define RULE_ARRAY(s) real *restrict const s##s = *state++;
    RULE_NUMBERS(RULE_NUMBER)
    RULE_STATES(RULE_ARRAY)
    (void)state, (void)k;
    SIMD for (int64_t i = 0; i < n; i++)
    {
#define RULE_LOAD(s) real s = s##s[i];
#define RULE_STORE(s) s##s[i] = s;
        real x = xs[i], g = gs[i];
        RULE_STATES(RULE_LOAD)
        (void)g;
        RULE_STEP;
        RULE_STATES(RULE_STORE)
        xs[i] = x;
    }
#undef RULE_NUMBER
#undef RULE_ARRAY
#undef RULE_LOAD
#undef RULE_STORE
}

#undef sqrt
#undef fabs
#undef real
#undef MATH
#undef LOOP
