/* cross_entropy.cu - class targets over dense logits [rows, classes, inner]; kernels.h has the formulas.
 *
 * Position i of rows * inner has its logits at (i / inner) classes inner + i % inner, inner apart. */
#include "cuda/pack.cuh"

template <class T> struct EntropyCall {
    using C = Compute<T>;
    int64_t positions, classes, inner;
    const T *x;
    const int64_t *target;
    const C *weight;
    int64_t ignore;
    double smoothing;
    C *loss, *lse, *weight_sum;
    const C *g; /* of the gradient */
    int64_t g_stride;
    T *dx;
};

/* The target of position i; one out of range, of which the check tells, counts as class 0. */
template <class T> __device__ inline int64_t target_of(const EntropyCall<T> &c, int64_t i)
{
    const int64_t t = c.target[i];
    return t != c.ignore && (t < 0 || t >= c.classes) ? 0 : t;
}

template <class T> __device__ inline Compute<T> weight_of(const EntropyCall<T> &c, int64_t k)
{
    return c.weight ? c.weight[k] : 1;
}

/* ---- forward --------------------------------------------------------------------------------- */

template <class Team, class T> __global__ void loss_kernel(EntropyCall<T> c)
{
    using C = Compute<T>;
    const int64_t i = Team::row(), n = c.classes;
    if (i >= c.positions) return;
    const T *x = c.x + i / c.inner * n * c.inner + i % c.inner;
    const C s = (C)c.smoothing;
    C m = (C)-HUGE_VAL, sum = 0, smooth = 0;
    read_row<Team>(x, n, c.inner, [&](int64_t, C v) { m = Larger()(m, v); });
    m = Team::join(m, Larger());
    read_row<Team>(x, n, c.inner, [&](int64_t, C v) { sum += exp_of(v - m); });
    const C lse = m + log(Team::join(sum, AddUp()));
    if (s != 0) {
        read_row<Team>(x, n, c.inner, [&](int64_t k, C v) { smooth += weight_of(c, k) * (lse - v); });
        smooth = Team::join(smooth, AddUp());
    }
    if (Team::rank() != 0) return;
    const int64_t t = target_of(c, i);
    C loss = 0;
    if (t != c.ignore) {
        loss = (1 - s) * weight_of(c, t) * (lse - value_of(x[t * c.inner]));
        if (s != 0) loss += s / (C)n * smooth;
    }
    put(c.lse + i, lse);
    put(c.loss + i, loss);
}

/* One block. */
template <class T> __global__ void weight_sum_kernel(EntropyCall<T> c)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < c.positions; i += blockDim.x)
        if (c.target[i] != c.ignore) sum += (double)weight_of(c, target_of(c, i));
    sum = Together::join(sum, AddUp());
    if (threadIdx.x == 0) put(c.weight_sum, (Compute<T>)sum);
}

int gpu_cross_entropy(CrossEntropyArgs *a)
{
    const int64_t positions = a->rows * a->inner;
    const IndexCheck targets = {
        { a->target, 1, positions, 1, 0, 1, 0 }, a->classes, &a->ignore_index, a->op, a->site
    };
    if (gpu_check_index(&targets, &a->bad_at, &a->bad_value)) return -1;
    return with_float(a->dtype, [&]<class T>() {
        using C = Compute<T>;
        EntropyCall<T> c = {};
        c.positions = positions, c.classes = a->classes, c.inner = a->inner;
        c.x = (const T *)a->x, c.target = a->target, c.weight = (const C *)a->weight;
        c.ignore = a->ignore_index, c.smoothing = a->smoothing;
        c.loss = (C *)a->loss, c.lse = (C *)a->lse, c.weight_sum = (C *)a->weight_sum;
        if (positions > 0) LAUNCH_ROWS(loss_kernel, T, positions, a->classes, a->inner, c);
        auto kernel = &weight_sum_kernel<T>;
        LAUNCH(kernel, 1, THREADS, c);
        return gpu_launched("cross_entropy");
    });
}

/* ---- backward -------------------------------------------------------------------------------- */

template <class Team, class T> __global__ void entropy_grad_kernel(EntropyCall<T> c)
{
    using C = Compute<T>;
    const int64_t i = Team::row(), n = c.classes, at = i / c.inner * n * c.inner + i % c.inner;
    if (i >= c.positions) return;
    const int64_t t = target_of(c, i);
    const T *const x[] = { c.x + at };
    const C s = (C)c.smoothing, g = c.g[i * c.g_stride];
    C all = 0; /* sum of the weights, for smoothing */
    for (int64_t k = Team::rank(); s != 0 && k < n; k += Team::size()) all += weight_of(c, k);
    all = Team::join(all, AddUp());
    const bool ignored = t == c.ignore;
    const C own = ignored ? 0 : g * (1 - s) * weight_of(c, t), share = g * s / (C)n, lse = c.lse[i],
            scale = own + share * all;
    walk_row<Team>(x, c.dx + at, n, c.inner, [&](int64_t k, const Values<T, 1> &of) {
        if (ignored) return (C)0;
        C d = scale * exp_of(of.v[0] - lse);
        if (k == t) d -= own;
        if (s != 0) d -= share * weight_of(c, k);
        return d;
    });
}

int gpu_cross_entropy_grad(CrossEntropyGradArgs *a)
{
    const int64_t positions = a->rows * a->inner;
    if (positions * a->classes == 0) return 0;
    return with_float(a->dtype, [&]<class T>() {
        using C = Compute<T>;
        EntropyCall<T> c = {};
        c.positions = positions, c.classes = a->classes, c.inner = a->inner;
        c.x = (const T *)a->x, c.target = a->target, c.weight = (const C *)a->weight;
        c.ignore = a->ignore_index, c.smoothing = a->smoothing;
        c.lse = (C *)(uintptr_t)a->lse, c.g = (const C *)a->g, c.g_stride = a->g_stride, c.dx = (T *)a->dx;
        LAUNCH_ROWS(entropy_grad_kernel, T, positions, a->classes, a->inner, c);
        return gpu_launched("cross_entropy gradient");
    });
}
