/* rnn_loops.h - rnn_kernel.c's loops over elements of type T; the equations are those of ops/sequence.h.  No
 * two arrays overlap; `omp simd` spares the checks. */

enum { N(CHUNK) = 64 / sizeof(T) };

/* Whole vectors for the last few elements too.  Not inlined: they would be, in many places. */
static __attribute__((noinline)) void N(sigmoids)(T *x, int64_t n)
{
    T rest[N(CHUNK)];
    int64_t i = 0;
    for (; i + N(CHUNK) <= n; i += N(CHUNK))
        for (int k = 0; k < N(CHUNK); k++) x[i + k] = 1 / (1 + N(vm_exp)(-x[i + k]));
    if (i == n) return;
    for (int k = 0; k < N(CHUNK); k++) rest[k] = i + k < n ? x[i + k] : 0;
    for (int k = 0; k < N(CHUNK); k++) rest[k] = 1 / (1 + N(vm_exp)(-rest[k]));
    memcpy(x + i, rest, (size_t)(n - i) * sizeof(T));
}

static __attribute__((noinline)) void N(tanhs)(T *y, const T *x, int64_t n)
{
    T rest[N(CHUNK)];
    int64_t i = 0;
    for (; i + N(CHUNK) <= n; i += N(CHUNK))
        for (int k = 0; k < N(CHUNK); k++) y[i + k] = N(vm_tanh)(x[i + k]);
    if (i == n) return;
    for (int k = 0; k < N(CHUNK); k++) rest[k] = i + k < n ? x[i + k] : 0;
    for (int k = 0; k < N(CHUNK); k++) rest[k] = N(vm_tanh)(rest[k]);
    memcpy(y + i, rest, (size_t)(n - i) * sizeof(T));
}

/* ---- forward --------------------------------------------------------------------------------- */

static void N(gru_row)(int64_t n, T *gates, const T *recurrent, const T *h_prev, T *n_part, T *h)
{
    T *r = gates, *z = gates + n, *new = gates + 2 * n;
    for (int64_t i = 0; i < 2 * n; i++) gates[i] += recurrent[i];
    N(sigmoids)(gates, 2 * n);
    memcpy(n_part, recurrent + 2 * n, (size_t)n * sizeof(T));
#pragma omp simd
    for (int64_t i = 0; i < n; i++) new[i] += r[i] * n_part[i];
    N(tanhs)(new, new, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) h[i] = new[i] + z[i] * (h_prev[i] - new[i]);
}

static void N(lstm_row)(int64_t n, T *gates, const T *c_prev, T *c, T *h)
{
    const T *in = gates, *forget = gates + n, *out = gates + 3 * n;
    T *g = gates + 2 * n;
    N(sigmoids)(gates, 2 * n);
    N(tanhs)(g, g, n);
    N(sigmoids)(gates + 3 * n, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) c[i] = forget[i] * c_prev[i] + in[i] * g[i];
    N(tanhs)(h, c, n);
    for (int64_t i = 0; i < n; i++) h[i] *= out[i];
}

static void N(step)(const RnnArgs *a, int64_t from, int64_t to)
{
    const int64_t n = a->hidden;
    T *gates = a->gates, *h = a->h, *c = a->c, *n_part = a->n_part;
    const T *recurrent = a->recurrent, *h_prev = a->h_prev, *c_prev = a->c_prev;
    if (a->kind == RNN_TANH) {
        N(tanhs)(gates + from * n, gates + from * n, (to - from) * n);
    } else if (a->kind == RNN_RELU) {
        for (int64_t i = from * n; i < to * n; i++) gates[i] = gates[i] < 0 ? 0 : gates[i];
    } else {
        for (int64_t r = from; r < to; r++) {
            if (a->kind == RNN_GRU)
                N(gru_row)
                (n, gates + 3 * r * n, recurrent + 3 * r * n, h_prev + r * n, n_part + r * n, h + r * n);
            else N(lstm_row)(n, gates + 4 * r * n, c_prev + r * n, c + r * n, h + r * n);
        }
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

static void N(gru_row_grad)(int64_t n, const T *gates, const T *n_part, const T *h_prev, const T *dh,
                            T *dgates, T *drecurrent, T *dh_prev)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const T r = gates[i], z = gates[n + i], new = gates[2 * n + i];
        const T dz = dh[i] * (h_prev[i] - new) * z * (1 - z), dnew = dh[i] * (1 - z) * (1 - new *new);
        const T dr = dnew * n_part[i] * r * (1 - r);
        dgates[i] = drecurrent[i] = dr;
        dgates[n + i] = drecurrent[n + i] = dz;
        dgates[2 * n + i] = dnew, drecurrent[2 * n + i] = dnew * r;
        dh_prev[i] += dh[i] * z;
    }
}

/* tanh c is formed again, in the place of dgates' first part. */
static void N(lstm_row_grad)(int64_t n, const T *gates, const T *c_prev, const T *c, const T *dh, T *dgates,
                             T *dc)
{
    N(tanhs)(dgates, c, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const T in = gates[i], forget = gates[n + i], g = gates[2 * n + i], out = gates[3 * n + i],
                tc = dgates[i];
        const T d = dc[i] + dh[i] * out * (1 - tc * tc);
        dgates[i] = d * g * in * (1 - in);
        dgates[n + i] = d * c_prev[i] * forget * (1 - forget);
        dgates[2 * n + i] = d * in * (1 - g * g);
        dgates[3 * n + i] = dh[i] * tc * out * (1 - out);
        dc[i] = d * forget;
    }
}

static void N(step_grad)(const RnnArgs *a, int64_t from, int64_t to)
{
    const int64_t n = a->hidden;
    const T *gates = a->gates, *n_part = a->n_part, *h_prev = a->h_prev, *c_prev = a->c_prev, *c = a->c,
            *dh = a->dh;
    T *dgates = a->dgates, *drecurrent = a->drecurrent, *dh_prev = a->dh_prev, *dc = a->dc;
    if (a->kind == RNN_TANH) {
        for (int64_t i = from * n; i < to * n; i++) dgates[i] = dh[i] * (1 - gates[i] * gates[i]);
    } else if (a->kind == RNN_RELU) {
        for (int64_t i = from * n; i < to * n; i++) dgates[i] = gates[i] <= 0 ? 0 : dh[i];
    } else {
        for (int64_t r = from; r < to; r++) {
            const int64_t at = r * n;
            if (a->kind == RNN_GRU)
                N(gru_row_grad)
                (n, gates + 3 * at, n_part + at, h_prev + at, dh + at, dgates + 3 * at, drecurrent + 3 * at,
                 dh_prev + at);
            else N(lstm_row_grad)(n, gates + 4 * at, c_prev + at, c + at, dh + at, dgates + 4 * at, dc + at);
        }
    }
}
