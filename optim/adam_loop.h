/* adam_loop.h - the step of adam.c over dense arrays, for one type: included once for each.
 * Products and sums round where PyTorch's do. */

static inline __attribute__((always_inline)) void LOOP(adam_range)(const Numbers *k, int64_t n, real *restrict p, real *restrict m,
                                                                   real *restrict v, real *restrict most, const real *restrict grad, bool amsgrad)
{
    const real sign = (real)k->sign, decay = (real)k->decay, shrink = (real)k->shrink, w1 = (real)k->weight1, b2 = (real)k->beta2,
               w2 = (real)k->weight2, step = (real)-k->step, root2 = (real)k->root2, eps = (real)k->eps;
    const bool decays = decay != 0;
    _Pragma("omp parallel for simd num_threads(optim_threads(n)) if (n >= 1 << 16)")
    for (int64_t i = 0; i < n; i++) {
        real x = p[i] * shrink, g = decays ? grad[i] * sign + decay * p[i] : grad[i] * sign;
        m[i] += w1 * (g - m[i]);
        v[i] = v[i] * b2 + w2 * g * g;
        real u = v[i];
        if (amsgrad) most[i] = u = u > most[i] || u != u ? u : most[i];
        p[i] = x + step * m[i] / (root(u) / root2 + eps);
    }
}

static void LOOP(adam)(const Numbers *k, int64_t n, real *p, real *m, real *v, real *most, const real *g)
{
    if (most) LOOP(adam_range)(k, n, p, m, v, most, g, true);
    else LOOP(adam_range)(k, n, p, m, v, most, g, false);
}
