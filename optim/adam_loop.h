/* adam_loop.h - the step of adam.c over dense arrays, for one type: included once for each.
 * Products and sums round where PyTorch's do, but for a product with 1 / sqrt(1 - b2^t) in the place of a
 * quotient. */

static inline __attribute__((always_inline)) void LOOP(adam_block)(const Numbers *k, int64_t n,
                                                                   real *restrict p, real *restrict m,
                                                                   real *restrict v, real *restrict most,
                                                                   const real *restrict grad, bool amsgrad,
                                                                   bool decays)
{
    const real sign = (real)k->sign, decay = (real)k->decay, shrink = (real)k->shrink, w1 = (real)k->weight1,
               b2 = (real)k->beta2, w2 = (real)k->weight2, step = (real)-k->step,
               scale = (real)(1 / k->root2), eps = (real)k->eps;
    OPTIM_SIMD
    for (int64_t i = 0; i < n; i++) {
        real x = p[i] * shrink, g = grad[i] * sign;
        if (decays) g += decay * p[i];
        real mi = m[i] + w1 * (g - m[i]), vi = v[i] * b2 + w2 * g * g, u = vi;
        m[i] = mi, v[i] = vi;
        if (amsgrad) most[i] = u = u > most[i] || u != u ? u : most[i];
        p[i] = x + step * mi / (root(u) * scale + eps);
    }
}

static inline __attribute__((always_inline)) void LOOP(adam_case)(const Numbers *k, int64_t n, real *p,
                                                                  real *m, real *v, real *most, const real *g)
{
    bool decays = k->decay != 0;
    if (!most && !decays) LOOP(adam_block)(k, n, p, m, v, most, g, false, false);
    else if (!most) LOOP(adam_block)(k, n, p, m, v, most, g, false, true);
    else LOOP(adam_block)(k, n, p, m, v, most, g, true, decays);
}

static void LOOP(adam_plain)(const Numbers *k, int64_t n, real *p, real *m, real *v, real *most,
                             const real *g)
{
    LOOP(adam_case)(k, n, p, m, v, most, g);
}

OPTIM_WIDE static void LOOP(adam_wide)(const Numbers *k, int64_t n, real *p, real *m, real *v, real *most,
                                       const real *g)
{
    LOOP(adam_case)(k, n, p, m, v, most, g);
}

typedef struct LOOP(Adam) {
    const Numbers *k;
    real *p, *m, *v, *most;
    const real *g;
} LOOP(Adam);

static void LOOP(adam_span)(void *ctx, int64_t from, int64_t to)
{
    const LOOP(Adam) *a = ctx;
    real *most = a->most ? a->most + from : NULL;
    if (optim_wide())
        LOOP(adam_wide)(a->k, to - from, a->p + from, a->m + from, a->v + from, most, a->g + from);
    else LOOP(adam_plain)(a->k, to - from, a->p + from, a->m + from, a->v + from, most, a->g + from);
}

static void LOOP(adam)(const Numbers *k, int64_t n, real *p, real *m, real *v, real *most, const real *g)
{
    LOOP(Adam) a = { k, p, m, v, most, g };
    tensor_parallel_for(n, 8, LOOP(adam_span), &a);
}
