/* norm_loop.h - the sum over a block of one type, in 16 lanes: foreach_norm.c includes it once for each. */
typedef real LOOP(four) __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));

static inline __attribute__((always_inline)) void LOOP(add)(Four *sum, const real *x, Kind kind)
{
    Four v = __builtin_convertvector(*(const LOOP(four) *)x, Four);
    if (kind == SQUARES) *sum += v * v;
    else {
        v = (Four)((FourBits)v & 0x7fffffffffffffff);
        const FourBits more = (FourBits)(v > *sum) | (FourBits)(v != v);
        *sum = (Four)(((FourBits)v & more) | ((FourBits)*sum & ~more));
    }
}

static inline __attribute__((always_inline)) double LOOP(block)(const real *x, int64_t n, Kind kind)
{
    Four a = { 0 }, b = a, c = a, d = a;
    real rest[LANES] = { 0 };
    const int64_t most = n - n % LANES;
    for (int64_t i = 0; i < most; i += LANES) {
        LOOP(add)(&a, x + i, kind), LOOP(add)(&b, x + i + 4, kind);
        LOOP(add)(&c, x + i + 8, kind), LOOP(add)(&d, x + i + 12, kind);
    }
    memcpy(rest, x + most, (size_t)(n - most) * sizeof *x);
    LOOP(add)(&a, rest, kind), LOOP(add)(&b, rest + 4, kind);
    LOOP(add)(&c, rest + 8, kind), LOOP(add)(&d, rest + 12, kind);
    const double lane[LANES] = { a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3],
                                 c[0], c[1], c[2], c[3], d[0], d[1], d[2], d[3] };
    double sum = 0;
    for (int l = 0; l < LANES; l++) sum = combined(sum, lane[l], kind);
    return sum;
}

static inline __attribute__((always_inline)) double LOOP(of_kind)(const real *x, int64_t n, Kind kind)
{
    return kind == SQUARES ? LOOP(block)(x, n, SQUARES) : LOOP(block)(x, n, LARGEST);
}

OPTIM_WIDE static double LOOP(wide)(const void *x, int64_t n, Kind kind) { return LOOP(of_kind)(x, n, kind); }

/* The same lanes, one by one. */
OPTIM_PLAIN static double LOOP(plain)(const void *data, int64_t n, Kind kind)
{
    const real *x = data;
    double lane[LANES] = { 0 }, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs((double)x[i]);
        lane[i % LANES] = combined(lane[i % LANES], kind == SQUARES ? v * v : v, kind);
    }
    for (int l = 0; l < LANES; l++) sum = combined(sum, lane[l], kind);
    return sum;
}

#undef real
#undef LOOP
