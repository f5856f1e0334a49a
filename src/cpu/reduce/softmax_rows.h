/* softmax_rows.h - softmax, its gradient and log sum exp for one type T, included by softmax_kernel.c.
 *
 * The maximum is subtracted: the same quotient, and no overflow for any finite x.  A maximum ignores NaN,
 * which then comes back through the sum.  Sums of up to PIECE elements are in T, over a vector's lanes; those
 * sums are added in double. */

#define LANES ((int)(BYTES / sizeof(T)))
#define VEC N(V)
#define INT N(I)
#define CHUNK ((int)(64 / sizeof(T))) /* elements that loops are laid out for */
#define EACH(k) _Pragma("omp simd") for (int k = 0; k < CHUNK; k++)
#define LEAST (sizeof(T) == 4 ? (T)105 : (T)746) /* e^-LEAST is 0 */
#define NORMAL (sizeof(T) == 4 ? (T)87 : (T)708) /* and e^-NORMAL is a normal number */
#define FAR (2 * LEAST)

FORCE_INLINE VEC N(max)(VEC a, VEC b)
{
    INT mask = (INT)(b > a);
    return (VEC)((mask & (INT)b) | (~mask & (INT)a));
}

/* What x is taken from: e^(x - from) 2^-down.
 *
 * A rounded difference d = x - max would be off by |d| / 2 units, and e^d by as much.  So a small maximum is
 * taken away in the power of two, which is exact.  From FAR on the difference itself is exact, wherever e^d
 * is not 0. */
typedef struct N(Base) {
    T from, down;
    T low; /* e^x is 0 for less */
} N(Base);

FORCE_INLINE N(Base) N(base)(T max)
{
    const bool near = max < FAR && max > -FAR;
    const T rounder = sizeof(T) == 4 ? (T)VM_ROUND_F32 : (T)VM_ROUND_F64;
    const T down = near ? max * (T)M_LOG2E + rounder - rounder : 0;
    return (N(Base)){ near ? 0 : max, down, down * (T)M_LN2 - LEAST };
}

FORCE_INLINE N(Base) N(plain_base)(T from) { return (N(Base)){ from, 0, -LEAST }; }

FORCE_INLINE T N(term)(T x, N(Base) b)
{
    x -= b.from;
    const bool gone = x < b.low; /* not computed: CPUs are slow where a product is below the normal numbers */
    const T e = N(vm_exp_down)(gone ? b.low + LEAST : x, b.down);
    return gone ? 0 : e;
}

/* y = scale e^(x - from) 2^-down, unless y is NULL; the last few elements take a whole chunk too.  Returns
 * their sum, which is in double: a term near 1 must not swallow the others, of which log sum e^(x - max) is
 * made where they are small. */
FORCE_INLINE double N(exp_line)(T *y, const T *x, int64_t n, N(Base) b, T scale)
{
    double s[CHUNK] = { 0 };
    T e[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        const bool whole = n - i >= CHUNK;
        if (whole) EACH(k) e[k] = scale * N(term)(x[i + k], b);
        else EACH(k) e[k] = scale * N(term)(i + k < n ? x[i + k] : -(T)INFINITY, b);
        EACH(k) s[k] += (double)e[k];
        if (y && whole) memcpy(y + i, e, sizeof e);
        else if (y) memcpy(y + i, e, (size_t)(n - i) * sizeof(T));
    }
    double sum[4];
    _Pragma("omp simd") for (int k = 0; k < 4; k++) sum[k] =
        s[k] + s[k + 4] + (CHUNK > 8 ? s[k + CHUNK / 2] + s[k + CHUNK - 4] : 0);
    return sum[0] + sum[1] + (sum[2] + sum[3]);
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
    for (int64_t i = 0; i < n; i += PIECE)
        sum += N(dot_piece)(a + i, b ? b + i : b, n - i < PIECE ? n - i : PIECE);
    return sum;
}

/* log sum e^(x - max) */
FORCE_INLINE double N(log_sum)(const T *x, int64_t n, T max)
{
    const N(Base) b = N(base)(max);
    return vm_log_f64(N(exp_line)(NULL, x, n, b, 1) / (double)N(term)(max, b));
}

/* The largest term of a sum is at most this: a smaller sum may be of it alone. */
#define ALONE 1.5

/* Where the line's largest term is, if it alone makes up the sum: its quotient is 1, which e (1 / e) may not
 * be.  Else -1. */
FORCE_INLINE int64_t N(alone)(const T *x, const T *e, int64_t n, int64_t step, T max, double sum)
{
    int64_t at = 0;
    if (!(sum < ALONE)) return -1;
    while (at < n && x[at * step] != max) at++;
    return at < n && (double)e[at * step] == sum ? at : -1;
}

void ISA_NAME(N(softmax_rows))(bool log, int64_t rows, int64_t n, const T *x, T *y)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        const T m = N(max_line)(x, n);
        if (log) { /* x - m and -lse are not positive: their sum keeps what they are good to */
            const T lse = (T)N(log_sum)(x, n, m);
            for (int64_t i = 0; i < n; i++) y[i] = x[i] - m - lse;
        } else {
            const double sum = N(exp_line)(y, x, n, N(base)(m), 1);
            const T scale = (T)(1 / sum);
            const int64_t one = N(alone)(x, y, n, 1, m, sum);
            for (int64_t i = 0; i < n; i++) y[i] *= scale;
            if (one >= 0) y[one] = 1;
        }
    }
}

void ISA_NAME(N(lse_rows))(int64_t rows, int64_t n, const T *x, T *lse)
{
    for (int64_t r = 0; r < rows; r++, x += n) {
        const T m = N(max_line)(x, n);
        lse[r] = (T)((double)m + N(log_sum)(x, n, m));
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
                N(exp_line)(piece, y + i, count, N(plain_base)(0), sum);
                for (int64_t k = 0; k < count; k++) dx[i + k] = g[i + k] - piece[k];
            }
        } else {
            for (int64_t i = 0; i < n; i++) dx[i] = y[i] * (g[i] - sum);
        }
    }
}

/* Beside e^0 = 1 smaller terms than normal numbers count for nothing, and are slow in products: 0. */
void ISA_NAME(N(exp_row))(int64_t n, T *x, T *shift, T *factor)
{
    const T m = N(max_line)(x, n), from = m == -(T)INFINITY ? 0 : m;
    const N(Base) normal = { from, 0, -NORMAL };
    const double sum = N(exp_line)(x, x, n, normal, 1);
    *shift = from;
    *factor = sum == 0 ? 0 : (T)(1 / sum);
}

void ISA_NAME(N(scaled_exp_row))(int64_t n, const T *x, T shift, T scale, T *y)
{
    N(exp_line)(y, x, n, N(plain_base)(shift), scale);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Loops go over whole chunks of columns: in place, or in a copy where the last chunk is not whole. */
FORCE_INLINE const T *N(columns_in)(T *copy, const T *x, int columns)
{
    return columns % CHUNK ? memcpy(copy, x, (size_t)columns * sizeof(T)) : x;
}

FORCE_INLINE void N(chunk_max)(T *restrict max, const T *restrict x)
{
    EACH(k)
    {
        const T a = x[k], b = max[k];
        max[k] = a > b ? a : b;
    }
}

/* A chunk of terms, added to sum. */
FORCE_INLINE void N(chunk_terms)(T *restrict e, double *restrict sum, const T *restrict x,
                                 const T *restrict from, const T *restrict down, const T *restrict low)
{
    EACH(k) e[k] = N(term)(x[k], (N(Base)){ from[k], down[k], low[k] });
    EACH(k) sum[k] += (double)e[k];
}

/* Per column: the maximum, and the sum of terms, which are left in y; where y is NULL, log sum e^(x - max).
 * All of SOFTMAX_COLUMNS elements long. */
FORCE_INLINE void N(column_sums)(int64_t n, int64_t inner, int columns, const T *x, T *y, T *max, double *sum)
{
    T copy[SOFTMAX_COLUMNS] = { 0 }, terms[SOFTMAX_COLUMNS], from[SOFTMAX_COLUMNS], down[SOFTMAX_COLUMNS],
      low[SOFTMAX_COLUMNS];
    const bool direct = y && columns % CHUNK == 0;
    for (int c = 0; c < SOFTMAX_COLUMNS; c++) max[c] = -(T)INFINITY, sum[c] = 0;
    for (int64_t r = 0; r < n; r++) {
        const T *v = N(columns_in)(copy, x + r * inner, columns);
        for (int c = 0; c < columns; c += CHUNK) N(chunk_max)(max + c, v + c);
    }
    for (int c = 0; c < SOFTMAX_COLUMNS; c++) {
        const N(Base) b = N(base)(max[c]);
        from[c] = b.from, down[c] = b.down, low[c] = b.low;
    }
    for (int64_t r = 0; r < n; r++) {
        const T *v = N(columns_in)(copy, x + r * inner, columns);
        T *e = direct ? y + r * inner : terms;
        for (int c = 0; c < columns; c += CHUNK)
            N(chunk_terms)(e + c, sum + c, v + c, from + c, down + c, low + c);
        if (y && !direct) memcpy(y + r * inner, e, (size_t)columns * sizeof(T));
    }
    if (y) return;
    double none[SOFTMAX_COLUMNS] = { 0 };
    for (int c = 0; c < columns; c += CHUNK)
        N(chunk_terms)(terms + c, none + c, max + c, from + c, down + c, low + c);
    for (int c = 0; c < columns; c++) sum[c] = vm_log_f64(sum[c] / (double)terms[c]);
}

void ISA_NAME(N(softmax_columns))(bool log, int64_t n, int64_t inner, int columns, const T *x, T *y)
{
    T max[SOFTMAX_COLUMNS], last[SOFTMAX_COLUMNS];
    double sum[SOFTMAX_COLUMNS];
    int64_t one[SOFTMAX_COLUMNS];
    N(column_sums)(n, inner, columns, x, log ? NULL : y, max, sum);
    for (int c = 0; c < columns && !log; c++) one[c] = N(alone)(x + c, y + c, n, inner, max[c], sum[c]);
    for (int c = 0; c < columns; c++) last[c] = (T)(log ? sum[c] : 1 / sum[c]);
    for (int64_t r = 0; r < n; r++) {
        if (log)
            for (int c = 0; c < columns; c++) y[r * inner + c] = x[r * inner + c] - max[c] - last[c];
        else
            for (int c = 0; c < columns; c++) y[r * inner + c] *= last[c];
    }
    for (int c = 0; c < columns && !log; c++)
        if (one[c] >= 0) y[one[c] * inner + c] = 1;
}

void ISA_NAME(N(lse_columns))(int64_t n, int64_t inner, int columns, const T *x, T *lse)
{
    T max[SOFTMAX_COLUMNS];
    double sum[SOFTMAX_COLUMNS];
    N(column_sums)(n, inner, columns, x, NULL, max, sum);
    for (int c = 0; c < columns; c++) lse[c] = (T)((double)max[c] + sum[c]);
}

void ISA_NAME(N(softmax_grad_columns))(bool log, int64_t n, int64_t inner, int columns, const T *y,
                                       const T *g, T *dx)
{
    double sum[SOFTMAX_COLUMNS] = { 0 };
    T s[SOFTMAX_COLUMNS];
    for (int64_t r = 0; r < n; r++)
        for (int c = 0; c < columns; c++)
            sum[c] += (double)g[r * inner + c] * (log ? 1 : (double)y[r * inner + c]);
    for (int c = 0; c < columns; c++) s[c] = (T)sum[c];
    for (int64_t r = 0; r < n; r++, y += inner, g += inner, dx += inner) {
        if (log)
            for (int c = 0; c < columns; c++) dx[c] = g[c] - N(vm_exp)(y[c]) * s[c];
        else
            for (int c = 0; c < columns; c++) dx[c] = y[c] * (g[c] - s[c]);
    }
}

void ISA_NAME(N(scaled_exp_columns))(int64_t n, int64_t inner, int columns, const T *x, const T *shift,
                                     const T *scale, T *y)
{
    for (int64_t r = 0; r < n; r++, x += inner, y += inner)
        for (int c = 0; c < columns; c++) y[c] = scale[c] * N(term)(x[c], N(plain_base)(shift[c]));
}

#undef LANES
#undef VEC
#undef INT
#undef CHUNK
#undef EACH
#undef LEAST
#undef NORMAL
#undef FAR
#undef ALONE
