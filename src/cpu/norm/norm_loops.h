/* norm_loops.h - norm_kernel.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

/* Short sums in T, STEPS long, are added up in double: as fast as T, as exact as a sum of STEPS. */
static void N(moments)(const void *data, int64_t n, double shift, Sums *sum)
{
    const T *x = data, c = (T)shift;
    double a[LANES] = { 0 }, b[LANES] = { 0 };
    int64_t i = 0;
    while (i + LANES <= n) {
        T p[LANES] = { 0 }, q[LANES] = { 0 };
        for (int step = 0; step < STEPS && i + LANES <= n; step++, i += LANES)
            for (int k = 0; k < LANES; k++) {
                const T d = x[i + k] - c;
                p[k] += d, q[k] += d * d;
            }
        for (int k = 0; k < LANES; k++) a[k] += (double)p[k], b[k] += (double)q[k];
    }
    for (int k = 0; i + k < n; k++) {
        const T d = x[i + k] - c;
        a[k] += (double)d, b[k] += (double)(d * d);
    }
    sum->a += total(a), sum->b += total(b);
}

static void N(row)(const void *data, int64_t n, double mean, double rstd, const void *weight,
                   const void *bias, void *out)
{
    const T *x = data, *w = weight, *b = bias, m = (T)mean, r = (T)rstd;
    T *y = out;
    if (w && b)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r * w[i] + b[i];
    else if (w)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r * w[i];
    else if (b)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r + b[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r;
}

static void N(scale)(const void *x, int64_t n, double mean, double factor, double bias, void *y)
{
    const T m = (T)mean, f = (T)factor, b = (T)bias;
    for (int64_t i = 0; i < n; i++) ((T *)y)[i] = (((const T *)x)[i] - m) * f + b;
}

static void N(products)(const void *data, const void *cotangent, const void *weight, int64_t n, double mean,
                        double rstd, Sums *sum)
{
    const T *x = data, *dy = cotangent, *w = weight, m = (T)mean, r = (T)rstd;
    double a[LANES] = { 0 }, b[LANES] = { 0 };
    int64_t i = 0;
    while (i + LANES <= n) {
        T p[LANES] = { 0 }, q[LANES] = { 0 };
        for (int step = 0; step < STEPS && i + LANES <= n; step++, i += LANES)
            for (int k = 0; k < LANES; k++) {
                const T g = w ? dy[i + k] * w[i + k] : dy[i + k];
                p[k] += g, q[k] += g * ((x[i + k] - m) * r);
            }
        for (int k = 0; k < LANES; k++) a[k] += (double)p[k], b[k] += (double)q[k];
    }
    for (int k = 0; i + k < n; k++) {
        const T g = w ? dy[i + k] * w[i + k] : dy[i + k];
        a[k] += (double)g, b[k] += (double)g * (double)((x[i + k] - m) * r);
    }
    sum->a += total(a), sum->b += total(b);
}

static void N(gradient)(const void *data, const void *cotangent, const void *weight, int64_t n, double mean,
                        double rstd, double factor, Sums by, void *out)
{
    const T *x = data, *dy = cotangent, *w = weight, m = (T)mean, r = (T)rstd, f = (T)factor, a = (T)by.a,
            b = (T)by.b;
    T *dx = out;
    if (w)
        for (int64_t i = 0; i < n; i++) dx[i] = f * (dy[i] * w[i] - a - b * ((x[i] - m) * r));
    else
        for (int64_t i = 0; i < n; i++) dx[i] = f * (dy[i] - a - b * ((x[i] - m) * r));
}

static void N(parameters)(const void *data, const void *cotangent, int64_t n, double mean, double rstd,
                          double *dweight, double *dbias)
{
    const T *x = data, *dy = cotangent, m = (T)mean, r = (T)rstd;
    for (int64_t i = 0; i < n; i++) {
        dweight[i] += (double)dy[i] * (double)((x[i] - m) * r);
        dbias[i] += (double)dy[i];
    }
}

static void N(blend)(const void *data, const void *cotangent, int64_t n, double mean, double dy_factor,
                     double x_factor, double constant, void *out)
{
    const T *x = data, *dy = cotangent, m = (T)mean, p = (T)dy_factor, q = (T)x_factor, s = (T)constant;
    T *dx = out;
    for (int64_t i = 0; i < n; i++) dx[i] = p * dy[i] + q * (x[i] - m) + s;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void N(column_moments)(const void *data, int64_t rows, int64_t line, int n, ColumnSums *sum)
{
    const T *first = data;
    for (int64_t i = 0; i < rows; i++) {
        const T *x = first + i * line;
        for (int j = 0; j < n; j++) {
            const double d = (double)x[j] - (double)first[j];
            sum->a[j] += d, sum->b[j] += d * d;
        }
    }
}

static void N(column_scale)(const void *data, int64_t rows, int64_t line, int n, const double *mean,
                            const double *factor, const double *bias, void *out)
{
    for (int64_t i = 0; i < rows; i++) {
        const T *x = (const T *)data + i * line;
        T *y = (T *)out + i * line;
        for (int j = 0; j < n; j++) y[j] = (x[j] - (T)mean[j]) * (T)factor[j] + (T)bias[j];
    }
}

static void N(column_products)(const void *data, const void *cotangent, int64_t rows, int64_t line, int n,
                               const double *mean, const double *rstd, ColumnSums *sum)
{
    for (int64_t i = 0; i < rows; i++) {
        const T *x = (const T *)data + i * line, *dy = (const T *)cotangent + i * line;
        for (int j = 0; j < n; j++) {
            sum->a[j] += (double)dy[j];
            sum->b[j] += (double)dy[j] * (double)((x[j] - (T)mean[j]) * (T)rstd[j]);
        }
    }
}

static void N(column_gradient)(const void *data, const void *cotangent, int64_t rows, int64_t line, int n,
                               const double *mean, const double *rstd, const double *factor,
                               const ColumnSums *by, void *out)
{
    for (int64_t i = 0; i < rows; i++) {
        const T *x = (const T *)data + i * line, *dy = (const T *)cotangent + i * line;
        T *dx = (T *)out + i * line;
        for (int j = 0; j < n; j++)
            dx[j] = (T)factor[j] * (dy[j] - (T)by->a[j] - (T)by->b[j] * ((x[j] - (T)mean[j]) * (T)rstd[j]));
    }
}

#undef N
