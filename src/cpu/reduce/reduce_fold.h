/* reduce_fold.h - lines and columns of one type T, included by reduce_kernel.c for each. */

FORCE_INLINE void N(line)(int fold, double *lanes, const T *x, int64_t n, double shift1)
{
    V a[VECTORS], shift = all(shift1);
    int64_t i = 0;
    if (sizeof(T) == 4 && (fold == FOLD_MAX || fold == FOLD_MIN))
        i = extreme_rows(fold == FOLD_MAX, lanes, (const float *)x, n);
    UNROLL for (int k = 0; k < VECTORS; k++) a[k] = load_f64(lanes + k * WIDTH);
    for (; i + FOLD_LANES <= n; i += FOLD_LANES)
        if (fold == FOLD_SUM)
            UNROLL for (int k = 0; k < VECTORS; k++) a[k] = a[k] + N(load)(x + i + k * WIDTH);
        else
            UNROLL_LONG for (int k = 0; k < VECTORS; k++) a[k] =
                step(fold, a[k], N(load)(x + i + k * WIDTH), shift);
    UNROLL for (int k = 0; k < VECTORS; k++) store(lanes + k * WIDTH, a[k]);
    for (int lane = 0; i < n; i++, lane++) lanes[lane] = step1(fold, lanes[lane], (double)x[i], shift1);
}

void ISA_NAME(N(fold_line))(int fold, double *lanes, const T *x, int64_t n,
                            double shift){ FOLD_SWITCH(fold, N(line), lanes, x, n, shift) }

/* n < WIDTH elements, and zeros: a vector of few columns takes a quarter of the time of these one by one. */
FORCE_INLINE V N(load_some)(const T *p, int n)
{
#if defined __AVX512F__
    const __mmask8 some = (__mmask8)((1 << n) - 1);
    return sizeof(T) == 4 ? (V)_mm512_cvtps_pd(_mm256_maskz_loadu_ps(some, (const float *)p))
                          : (V)_mm512_maskz_loadu_pd(some, (const double *)p);
#else
    T copy[WIDTH] = { 0 };
    for (int i = 0; i < n; i++) copy[i] = p[i];
    return N(load)(copy);
#endif
}

/* Lane by lane, so that each lane's sums are read and written once for all of its rows. */
FORCE_INLINE void N(columns)(int fold, double *lanes, const T *x, int64_t rows, int64_t row_stride,
                             int columns, const double *shift)
{
    const int64_t step_rows = FOLD_LANES * row_stride;
    for (int lane = 0; lane < FOLD_LANES && lane < rows; lane++, x += row_stride, lanes += FOLD_COLUMNS) {
        int64_t count = (rows - lane + FOLD_LANES - 1) / FOLD_LANES;
        int c = 0;
        for (; c + WIDTH <= columns; c += WIDTH) {
            V a = load_f64(lanes + c), s = load_f64(shift + c);
            const T *p = x + c;
            for (int64_t r = 0; r < count; r++, p += step_rows) a = step(fold, a, N(load)(p), s);
            store(lanes + c, a);
        }
        if (c == columns) continue;
        V a = load_f64(lanes + c), s = load_f64(shift + c);
        const T *p = x + c;
        for (int64_t r = 0; r < count; r++, p += step_rows)
            a = step(fold, a, N(load_some)(p, columns - c), s);
        store(lanes + c, a); /* those past the last column are not used */
    }
}

void ISA_NAME(N(fold_columns))(int fold, double *lanes, const T *x, int64_t rows, int64_t row_stride,
                               int columns, const double *shift)
{
    FOLD_SWITCH(fold, N(columns), lanes, x, rows, row_stride, columns, shift)
}

void ISA_NAME(N(shifted_exp))(T *y, const T *x, int64_t n, double shift)
{
    const T s = (T)shift;
    for (int64_t i = 0; i < n; i++) y[i] = N(vm_exp)(x[i] - s);
}

void ISA_NAME(N(abs_pow))(T *y, const T *x, int64_t n, double p)
{
    const T q = (T)p;
    for (int64_t i = 0; i < n; i++) y[i] = N(vm_pow)(x[i] < 0 ? -x[i] : x[i], q);
}
