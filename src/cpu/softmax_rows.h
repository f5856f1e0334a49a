/* softmax_rows.h - softmax, its gradient and log sum exp for one type T, included by softmax_kernel.c.
 *
 * The maximum is subtracted: the same quotient, and no overflow for any finite x.  A maximum ignores NaN, which then comes
 * back through the sum.  Sums of up to PIECE elements are in T, over a vector's lanes; those sums are added in double. */

#define LANES ((int)(BYTES / sizeof(T)))
#define VEC N(V)
#define INT N(I)

FORCE_INLINE VEC N(max)(VEC a, VEC b)
{
    INT mask = (INT)(b > a);
    return (VEC)((mask & (INT)b) | (~mask & (INT)a));
}

/* y = scale e^(x - shift); the last few elements take a whole vector too. */
FORCE_INLINE void N(exp_line)(T *y, const T *x, int64_t n, T shift, T scale)
{
    enum { CHUNK = 64 / sizeof(T) };
    int64_t i = 0;
    for (; i + CHUNK <= n; i += CHUNK)
        for (int k = 0; k < CHUNK; k++) y[i + k] = scale * N(vm_exp)(x[i + k] - shift);
    if (i == n) return;
    T rest[CHUNK];
    for (int k = 0; k < CHUNK; k++) rest[k] = i + k < n ? x[i + k] : shift;
    for (int k = 0; k < CHUNK; k++) rest[k] = scale * N(vm_exp)(rest[k] - shift);
    memcpy(y + i, rest, (size_t)(n - i) * sizeof(T));
}

FORCE_INLINE T N(max_line)(const T *x, int64_t n)
{
    T m = -(T)INFINITY;
    int64_t i = 0;
    if (n >= 2 * LANES) {
        VEC a = *(const VEC *)x, b = *(const VEC *)(x + LANES);
        a = N(max)((VEC){ 0 } + m, a), b = N(max)((VEC){ 0 } + m, b);
        for (i = 2 * LANES; i + 2 * LANES <= n; i += 2 * LANES)
            a = N(max)(a, *(const VEC *)(x + i)), b = N(max)(b, *(const VEC *)(x + i + LANES));
        a = N(max)(a, b);
        for (int k = 0; k < LANES; k++) m = a[k] > m ? a[k] : m;
    }
    for (; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* sum a b over at most PIECE elements; b NULL: sum a. */
FORCE_INLINE double N(dot_piece)(const T *a, const T *b, int64_t n)
{
    VEC s = { 0 }, t = { 0 };
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        VEC u = *(const VEC *)(a + i), v = *(const VEC *)(a + i + LANES);
        if (b) u *= *(const VEC *)(b + i), v *= *(const VEC *)(b + i + LANES);
        s += u, t += v;
    }
    s += t;
    double sum = 0;
    for (int k = 0; k < LANES; k++) sum += (double)s[k];
    for (; i < n; i++) sum += b ? (double)a[i] * (double)b[i] : (double)a[i];
    return sum;
}

FORCE_INLINE double N(dot_line)(const T *a, const T *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += PIECE) sum += N(dot_piece)(a + i, b ? b + i : b, n - i < PIECE ? n - i : PIECE);
    return sum;
}

/* sum e^(x - shift); the terms are left in y, which holds n elements, or PIECE when keep is false. */
FORCE_INLINE double N(exp_sum)(T *y, const T *x, int64_t n, T shift, bool keep)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t count = n - i < PIECE ? n - i : PIECE;
        T *to = keep ? y + i : y;
        N(exp_line)(to, x + i, count, shift, 1);
        sum += N(dot_piece)(to, NULL, count);
    }
    return sum;
}

void ISA_NAME(N(softmax_rows))(bool log, int64_t rows, int64_t n, const T *x, T *y)
{
    T piece[PIECE];
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        const T m = N(max_line)(x, n);
        if (log) {
            const T lse = (T)vm_log_f64(N(exp_sum)(piece, x, n, m, false));
            for (int64_t i = 0; i < n; i++) y[i] = x[i] - m - lse;
        } else {
            const T scale = (T)(1 / N(exp_sum)(y, x, n, m, true));
            for (int64_t i = 0; i < n; i++) y[i] *= scale;
        }
    }
}

void ISA_NAME(N(lse_rows))(int64_t rows, int64_t n, const T *x, T *lse)
{
    T piece[PIECE];
    for (int64_t r = 0; r < rows; r++, x += n) {
        const T m = N(max_line)(x, n);
        lse[r] = (T)((double)m + vm_log_f64(N(exp_sum)(piece, x, n, m, false)));
    }
}

void ISA_NAME(N(softmax_grad_rows))(bool log, int64_t rows, int64_t n, const T *y, const T *g, T *dx)
{
    for (int64_t r = 0; r < rows; r++, y += n, g += n, dx += n) {
        const T sum = (T)N(dot_line)(g, log ? NULL : y, n);
        if (log) {
            T piece[PIECE];
            for (int64_t i = 0; i < n; i += PIECE) {
                int64_t count = n - i < PIECE ? n - i : PIECE;
                N(exp_line)(piece, y + i, count, 0, sum);
                for (int64_t k = 0; k < count; k++) dx[i + k] = g[i + k] - piece[k];
            }
        } else {
            for (int64_t i = 0; i < n; i++) dx[i] = y[i] * (g[i] - sum);
        }
    }
}

void ISA_NAME(N(exp_row))(int64_t n, T *x, T *shift, T *factor)
{
    const T m = N(max_line)(x, n), from = m == -(T)INFINITY ? 0 : m;
    const double sum = N(exp_sum)(x, x, n, from, true);
    *shift = from;
    *factor = sum == 0 ? 0 : (T)(1 / sum);
}

void ISA_NAME(N(scaled_exp_row))(int64_t n, const T *x, T shift, T scale, T *y)
{
    N(exp_line)(y, x, n, shift, scale);
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* Per column: m the maximum, sum = sum e^(x - m). */
FORCE_INLINE void N(column_sums)(int64_t n, int64_t inner, int columns, const T *x, T *m, double *sum)
{
    for (int c = 0; c < columns; c++) m[c] = -(T)INFINITY, sum[c] = 0;
    for (int64_t r = 0; r < n; r++)
        for (int c = 0; c < columns; c++) m[c] = x[r * inner + c] > m[c] ? x[r * inner + c] : m[c];
    for (int64_t r = 0; r < n; r++) {
        T e[SOFTMAX_COLUMNS];
        for (int c = 0; c < columns; c++) e[c] = N(vm_exp)(x[r * inner + c] - m[c]);
        for (int c = 0; c < columns; c++) sum[c] += (double)e[c];
    }
}

void ISA_NAME(N(softmax_columns))(bool log, int64_t n, int64_t inner, int columns, const T *x, T *y)
{
    T m[SOFTMAX_COLUMNS], scale[SOFTMAX_COLUMNS];
    double sum[SOFTMAX_COLUMNS];
    N(column_sums)(n, inner, columns, x, m, sum);
    for (int c = 0; c < columns; c++) scale[c] = (T)(log ? vm_log_f64(sum[c]) : 1 / sum[c]);
    for (int64_t r = 0; r < n; r++, x += inner, y += inner) {
        if (log) for (int c = 0; c < columns; c++) y[c] = x[c] - m[c] - scale[c];
        else for (int c = 0; c < columns; c++) y[c] = scale[c] * N(vm_exp)(x[c] - m[c]);
    }
}

void ISA_NAME(N(lse_columns))(int64_t n, int64_t inner, int columns, const T *x, T *lse)
{
    T m[SOFTMAX_COLUMNS];
    double sum[SOFTMAX_COLUMNS];
    N(column_sums)(n, inner, columns, x, m, sum);
    for (int c = 0; c < columns; c++) lse[c] = (T)((double)m[c] + vm_log_f64(sum[c]));
}

void ISA_NAME(N(softmax_grad_columns))(bool log, int64_t n, int64_t inner, int columns, const T *y, const T *g, T *dx)
{
    double sum[SOFTMAX_COLUMNS] = { 0 };
    T s[SOFTMAX_COLUMNS];
    for (int64_t r = 0; r < n; r++)
        for (int c = 0; c < columns; c++)
            sum[c] += (double)g[r * inner + c] * (log ? 1 : (double)y[r * inner + c]);
    for (int c = 0; c < columns; c++) s[c] = (T)sum[c];
    for (int64_t r = 0; r < n; r++, y += inner, g += inner, dx += inner) {
        if (log) for (int c = 0; c < columns; c++) dx[c] = g[c] - N(vm_exp)(y[c]) * s[c];
        else for (int c = 0; c < columns; c++) dx[c] = y[c] * (g[c] - s[c]);
    }
}

void ISA_NAME(N(scaled_exp_columns))(int64_t n, int64_t inner, int columns, const T *x, const T *shift, const T *scale, T *y)
{
    for (int64_t r = 0; r < n; r++, x += inner, y += inner)
        for (int c = 0; c < columns; c++) y[c] = scale[c] * N(vm_exp)(x[c] - shift[c]);
}

#undef LANES
#undef VEC
#undef INT
