/* norm.cu - layer_norm, rms_norm, group_norm and batch_norm over dense x [outer, channels, inner].
 *
 *   layer: row r is outer index r, its n = channels * inner elements; element e has weight e;  rms: mean 0
 *   group: the same, but element e has the weight of its channel in the row's group
 *   batch: row r is channel r, its n = outer * inner elements; all have weight r
 *
 *   y = w (x - mean) rstd + b,  xh = (x - mean) rstd,  d = w dy
 *   dx = rstd (d - mean d - xh mean(d xh));  given statistics: dx = rstd d
 *   dweight = sum dy xh,  dbias = sum dy */
#include "cuda/cuda.cuh"

template <class T> struct NormCall {
    using C = Compute<T>;
    bool batch, given, rms;
    int64_t rows, n, channels, inner, groups;
    double eps;
    const T *x, *dy;
    const void *weight, *bias; /* of T if narrow, else of C */
    bool narrow;
    T *y, *dx;
    C *mean, *rstd, *var;
    void *dweight, *dbias; /* as weight */

    __device__ inline int64_t at(int64_t row, int64_t e) const
    {
        return batch ? (e / inner * channels + row) * inner + e % inner : row * n + e;
    }
    __device__ inline int64_t own(int64_t row, int64_t e) const
    {
        return batch ? row : groups ? row % groups * channels + e / inner : e;
    }
    __device__ inline double side(const void *p, int64_t i) const
    {
        return narrow ? (double)value_of(((const T *)p)[i]) : (double)((const C *)p)[i];
    }
    __device__ inline double w(int64_t row, int64_t e) const
    {
        return weight ? side(weight, own(row, e)) : 1;
    }
    __device__ inline double b(int64_t row, int64_t e) const { return bias ? side(bias, own(row, e)) : 0; }
    __device__ inline void put_side(void *p, int64_t i, double v) const /* NULL: not wanted */
    {
        if (p && narrow) put((T *)p + i, (C)v);
        else if (p) ((C *)p)[i] = (C)v;
    }
};

template <class T> static NormCall<T> norm_call(const NormArgs *a)
{
    using C = Compute<T>;
    NormCall<T> c;
    c.batch = a->batch, c.given = a->given, c.rms = a->rms, c.groups = a->groups, c.channels = a->channels,
    c.inner = a->inner, c.eps = a->eps;
    c.rows = a->batch ? a->channels : a->outer, c.n = a->batch ? a->outer * a->inner : a->channels * a->inner;
    c.x = (const T *)a->x, c.weight = a->weight, c.bias = a->bias, c.dy = (const T *)a->dy;
    c.narrow = a->weights == a->dtype;
    c.y = (T *)a->y, c.mean = (C *)a->mean, c.rstd = (C *)a->rstd, c.var = (C *)a->var;
    c.dx = (T *)a->dx, c.dweight = a->dweight, c.dbias = a->dbias;
    return c;
}

/* Rows of batch norm with inner 1 lie side by side. */
template <class T> static int64_t apart(const NormCall<T> &c)
{
    return c.batch && c.inner == 1 ? c.channels : 1;
}

template <class Team, class T> __global__ void norm_kernel(NormCall<T> c)
{
    using C = Compute<T>;
    const int64_t row = Team::row();
    if (row >= c.rows) return;
    if (!c.given) {
        double sum = 0, squares = 0;
        for (int64_t e = Team::rank(); e < c.n; e += Team::size()) sum += (double)value_of(c.x[c.at(row, e)]);
        const double mean = c.rms ? 0 : Team::join(sum, AddUp()) / (double)c.n;
        for (int64_t e = Team::rank(); e < c.n; e += Team::size()) {
            const double d = (double)value_of(c.x[c.at(row, e)]) - mean;
            squares += d * d;
        }
        squares = Team::join(squares, AddUp());
        const double var = squares / (double)c.n;
        if (Team::rank() == 0) put(c.mean + row, (C)mean), put(c.rstd + row, (C)(1 / sqrt(var + c.eps)));
        if (Team::rank() == 0 && c.var) put(c.var + row, (C)var);
        Team::join(0, AddUp()); /* the others read what this one wrote */
    }
    const double mean = (double)value_of(c.mean[row]), rstd = (double)value_of(c.rstd[row]);
    for (int64_t e = Team::rank(); e < c.n; e += Team::size()) {
        const int64_t at = c.at(row, e);
        put(c.y + at, (C)(((double)value_of(c.x[at]) - mean) * rstd * c.w(row, e) + c.b(row, e)));
    }
}

int gpu_norm(NormArgs *a)
{
    if (a->outer * a->channels * a->inner == 0) return 0;
    return with_float(a->dtype, [&]<class T>() {
        const NormCall<T> c = norm_call<T>(a);
        LAUNCH_ROWS(norm_kernel, T, c.rows, c.n, apart(c), c);
        return gpu_launched("norm");
    });
}

/* dx, and of batch norm dweight and dbias, which are sums over the same rows. */
template <class Team, class T> __global__ void norm_grad_kernel(NormCall<T> c)
{
    using C = Compute<T>;
    const int64_t row = Team::row();
    if (row >= c.rows) return;
    const double mean = (double)value_of(c.mean[row]), rstd = (double)value_of(c.rstd[row]), n = (double)c.n;
    double dy_sum = 0, dot = 0, d_sum = 0, d_dot = 0;
    for (int64_t e = Team::rank(); e < c.n; e += Team::size()) {
        const int64_t at = c.at(row, e);
        const double dy = (double)value_of(c.dy[at]), xh = ((double)value_of(c.x[at]) - mean) * rstd,
                     d = c.w(row, e) * dy;
        dy_sum += dy, dot += dy * xh, d_sum += d, d_dot += d * xh;
    }
    dy_sum = Team::join(dy_sum, AddUp()), dot = Team::join(dot, AddUp());
    d_sum = Team::join(d_sum, AddUp()), d_dot = Team::join(d_dot, AddUp());
    if (c.batch && Team::rank() == 0) {
        c.put_side(c.dweight, row, dot);
        c.put_side(c.dbias, row, dy_sum);
    }
    if (!c.dx) return;
    if (c.given) d_sum = d_dot = 0;
    if (c.rms) d_sum = 0;
    for (int64_t e = Team::rank(); e < c.n; e += Team::size()) {
        const int64_t at = c.at(row, e);
        const double xh = c.given ? 0 : ((double)value_of(c.x[at]) - mean) * rstd, /* may be infinite */
            d = c.w(row, e) * (double)value_of(c.dy[at]);
        put(c.dx + at, (C)(rstd * (d - d_sum / n - xh * (d_dot / n))));
    }
}

/* Of layer norm: one thread an element of the weight. */
template <class T> __global__ void layer_weight_kernel(NormCall<T> c)
{
    const int64_t e = first_item();
    if (e >= c.n) return;
    double dot = 0, sum = 0;
    for (int64_t row = 0; row < c.rows; row++) {
        const double dy = (double)value_of(c.dy[row * c.n + e]);
        sum += dy;
        dot += dy * ((double)value_of(c.x[row * c.n + e]) - (double)value_of(c.mean[row])) *
               (double)value_of(c.rstd[row]);
    }
    c.put_side(c.dweight, e, dot);
    c.put_side(c.dbias, e, sum);
}

/* Of group norm: one thread a channel. */
template <class T> __global__ void group_weight_kernel(NormCall<T> c)
{
    const int64_t channel = first_item();
    if (channel >= c.groups * c.channels) return;
    double dot = 0, sum = 0;
    for (int64_t row = channel / c.channels; row < c.rows; row += c.groups)
        for (int64_t i = 0; i < c.inner; i++) {
            const int64_t at = row * c.n + channel % c.channels * c.inner + i;
            const double dy = (double)value_of(c.dy[at]);
            sum += dy;
            dot += dy * ((double)value_of(c.x[at]) - (double)value_of(c.mean[row])) *
                   (double)value_of(c.rstd[row]);
        }
    c.put_side(c.dweight, channel, dot);
    c.put_side(c.dbias, channel, sum);
}

int gpu_norm_grad(NormArgs *a)
{
    return with_float(a->dtype, [&]<class T>() {
        const NormCall<T> c = norm_call<T>(a);
        if (c.rows > 0 && (c.dx || c.batch)) LAUNCH_ROWS(norm_grad_kernel, T, c.rows, c.n, apart(c), c);
        const int64_t weights = c.groups ? c.groups * c.channels : c.n;
        if (!c.batch && weights > 0 && (c.dweight || c.dbias)) {
            auto kernel = c.groups ? &group_weight_kernel<T> : &layer_weight_kernel<T>;
            LAUNCH(kernel, (unsigned)((weights + THREADS - 1) / THREADS), THREADS, c);
        }
        return gpu_launched("norm gradient");
    });
}
