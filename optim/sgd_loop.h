/* sgd_loop.h - the step of sgd.c over dense arrays, for one type: included once for each. */

static inline __attribute__((always_inline)) void LOOP(sgd_range)(const Numbers *k, int64_t n, real *restrict p, real *restrict b,
                                                                  const real *restrict grad, bool momentum, bool first, bool nesterov)
{
    const real sign = (real)k->sign, decay = (real)k->decay, m = (real)k->momentum, keep = (real)k->keep, lr = (real)-k->lr;
    const bool decays = decay != 0;
    _Pragma("omp parallel for simd num_threads(optim_threads(n)) if (n >= 1 << 16)")
    for (int64_t i = 0; i < n; i++) {
        real g = decays ? grad[i] * sign + decay * p[i] : grad[i] * sign;
        if (momentum) {
            b[i] = first ? g : b[i] * m + keep * g;
            g = nesterov ? g + m * b[i] : b[i];
        }
        p[i] += lr * g;
    }
}

static void LOOP(sgd)(const Numbers *k, int64_t n, real *p, real *b, const real *g)
{
    if (!b) LOOP(sgd_range)(k, n, p, b, g, false, false, false);
    else if (k->first) LOOP(sgd_range)(k, n, p, b, g, true, true, k->nesterov);
    else if (k->nesterov) LOOP(sgd_range)(k, n, p, b, g, true, false, true);
    else LOOP(sgd_range)(k, n, p, b, g, true, false, false);
}
