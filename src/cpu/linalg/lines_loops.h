/* lines_loops.h - lines_kernel.c's loops over numbers of type T: four lines at a time, so that y, or b, is
 * read once for all; the last ones one by one, as four of the same, three of which count nothing. */

void ISA_NAME(N(add_columns))(LINES_ARGS(T))
{
    enum { LANES = BYTES / sizeof(T) };
    for (int64_t j = 0, lines; j < k; j += lines, a += lines * ld) {
        lines = k - j < 4 ? 1 : 4;
        const int64_t step = lines == 4 ? ld : 0;
        const T c = alpha * b[j], d = step ? alpha * b[j + 1] : 0, e = step ? alpha * b[j + 2] : 0,
                f = step ? alpha * b[j + 3] : 0;
        int64_t i = 0;
        for (const T *at = a; i + LANES <= rows; i += LANES, at += LANES)
            *(V *)(y + i) += (c * *(const V *)at + d * *(const V *)(at + step)) +
                             (e * *(const V *)(at + 2 * step) + f * *(const V *)(at + 3 * step));
        for (; i < rows; i++)
            y[i] += (c * a[i] + d * a[step + i]) + (e * a[2 * step + i] + f * a[3 * step + i]);
    }
}

void ISA_NAME(N(add_dots))(LINES_ARGS(T))
{
    enum { LANES = BYTES / sizeof(T) };
    for (int64_t i = 0, lines; i < rows; i += lines, a += lines * ld) {
        lines = rows - i < 4 ? 1 : 4;
        const int64_t step = lines == 4 ? ld : 0;
        W sum[4] = { { 0 } };
        T part[4][LANES], total = 0;
        int64_t j = 0;
        for (const T *at = a; j + LANES <= k; j += LANES, at += LANES) UNROLL
        for (int r = 0; r < 4; r++) sum[r] += *(const V *)(at + r * step) * *(const V *)(b + j);
        UNROLL
        for (int r = 0; r < 4; r++) *(V *)part[r] = sum[r];
        for (int r = 0; r < lines; r++) {
            for (int l = 0; l < LANES; l++) total += part[r][l];
            for (int64_t l = j; l < k; l++) total += a[r * step + l] * b[l];
            y[i + r] += alpha * total, total = 0;
        }
    }
}
