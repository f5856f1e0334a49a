/* sgd_loop.h - the step of sgd.c over dense arrays, for one type: included once for each. */

static inline __attribute__((always_inline)) void LOOP(sgd_block)(const Numbers *k, int64_t n,
                                                                  real *restrict p, real *restrict b,
                                                                  const real *restrict grad, bool momentum,
                                                                  bool first, bool nesterov)
{
    const real sign = (real)k->sign, decay = (real)k->decay, m = (real)k->momentum, keep = (real)k->keep,
               lr = (real)-k->lr;
    const bool decays = decay != 0;
    OPTIM_SIMD
    for (int64_t i = 0; i < n; i++) {
        real x = p[i], g = decays ? grad[i] * sign + decay * x : grad[i] * sign;
        if (momentum) {
            real bi = first ? g : b[i] * m + keep * g;
            b[i] = bi;
            g = nesterov ? g + m * bi : bi;
        }
        p[i] = x + lr * g;
    }
}

static inline __attribute__((always_inline)) void LOOP(sgd_case)(const Numbers *k, int64_t n, real *p,
                                                                 real *b, const real *g)
{
    if (!b) LOOP(sgd_block)(k, n, p, b, g, false, false, false);
    else if (k->first) LOOP(sgd_block)(k, n, p, b, g, true, true, k->nesterov);
    else if (k->nesterov) LOOP(sgd_block)(k, n, p, b, g, true, false, true);
    else LOOP(sgd_block)(k, n, p, b, g, true, false, false);
}

static void LOOP(sgd_plain)(const Numbers *k, int64_t n, real *p, real *b, const real *g)
{
    LOOP(sgd_case)(k, n, p, b, g);
}

OPTIM_WIDE static void LOOP(sgd_wide)(const Numbers *k, int64_t n, real *p, real *b, const real *g)
{
    LOOP(sgd_case)(k, n, p, b, g);
}

typedef struct LOOP(Sgd) {
    const Numbers *k;
    real *p, *b;
    const real *g;
} LOOP(Sgd);

static void LOOP(sgd_span)(void *ctx, int64_t from, int64_t to)
{
    const LOOP(Sgd) *s = ctx;
    real *b = s->b ? s->b + from : NULL;
    if (optim_wide()) LOOP(sgd_wide)(s->k, to - from, s->p + from, b, s->g + from);
    else LOOP(sgd_plain)(s->k, to - from, s->p + from, b, s->g + from);
}

static void LOOP(sgd)(const Numbers *k, int64_t n, real *p, real *b, const real *g)
{
    LOOP(Sgd) s = { k, p, b, g };
    tensor_parallel_for(n, 3, LOOP(sgd_span), &s);
}
