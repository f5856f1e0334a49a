/* select_line.h - one line of select for elements of type T; included once for each size.  Strides are in
 * elements. */

static void LINE(void *out_, const uint8_t *cond, const void *a_, const void *b_, int64_t n, int64_t so,
                 int64_t sc, int64_t sa, int64_t sb)
{
    T *out = out_;
    const T *a = a_, *b = b_;
    if (so == 1 && sc == 1 && sa == 1 && sb == 1) {
        for (int64_t i = 0; i < n; i++) {
            T x = a[i], y = b[i];
            out[i] = cond[i] ? x : y;
        }
    } else if (so == 1 && sc == 1 && sa == 1 && sb == 0) {
        T y = *b;
        for (int64_t i = 0; i < n; i++) {
            T x = a[i];
            out[i] = cond[i] ? x : y;
        }
    } else if (so == 1 && sc == 1 && sa == 0 && sb == 1) {
        T x = *a;
        for (int64_t i = 0; i < n; i++) {
            T y = b[i];
            out[i] = cond[i] ? x : y;
        }
    } else if (sc == 0) {
        const T *from = *cond ? a : b;
        const int64_t step = *cond ? sa : sb;
        if (so == 1 && step == 1) memcpy(out, from, (size_t)n * sizeof *out);
        else
            for (int64_t i = 0; i < n; i++) out[i * so] = from[i * step];
    } else {
        for (int64_t i = 0; i < n; i++) out[i * so] = cond[i * sc] ? a[i * sa] : b[i * sb];
    }
}
