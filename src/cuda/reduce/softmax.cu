/* softmax.cu - softmax and log_softmax over the middle of [outer, n, inner], and their gradients.
 *
 * Row r of outer * inner begins at (r / inner) n inner + r % inner; its elements are inner apart.  The
 * maximum, which ignores NaN, is subtracted: the same quotient, and no overflow for any finite x.  Sums are
 * in double. */
#include "cuda/cuda.cuh"

template <class T> struct SoftmaxCall {
    bool log;
    int64_t rows, n, inner;
    const T *x, *g; /* of the gradient: y and g */
    T *y;
};

template <class Team, class T> __global__ void softmax_kernel(SoftmaxCall<T> c)
{
    using C = Compute<T>;
    const int64_t row = Team::row(), at = row / c.inner * c.n * c.inner + row % c.inner;
    if (row >= c.rows) return;
    C m = (C)-HUGE_VAL;
    for (int64_t i = Team::rank(); i < c.n; i += Team::size())
        m = Larger()(m, value_of(c.x[at + i * c.inner]));
    m = Team::join(m, Larger());
    double sum = 0;
    for (int64_t i = Team::rank(); i < c.n; i += Team::size())
        sum += (double)exp_of(value_of(c.x[at + i * c.inner]) - m);
    sum = Team::join(sum, AddUp());
    const C scale = (C)(c.log ? log(sum) : 1 / sum);
    for (int64_t i = Team::rank(); i < c.n; i += Team::size()) {
        const C x = value_of(c.x[at + i * c.inner]) - m;
        put(c.y + at + i * c.inner, c.log ? x - scale : scale * exp_of(x));
    }
}

template <class Team, class T> __global__ void softmax_grad_kernel(SoftmaxCall<T> c)
{
    using C = Compute<T>;
    const int64_t row = Team::row(), at = row / c.inner * c.n * c.inner + row % c.inner;
    if (row >= c.rows) return;
    double sum = 0;
    for (int64_t i = Team::rank(); i < c.n; i += Team::size()) {
        const int64_t k = at + i * c.inner;
        sum += (double)value_of(c.g[k]) * (c.log ? 1 : (double)value_of(c.x[k]));
    }
    const C s = (C)Team::join(sum, AddUp());
    for (int64_t i = Team::rank(); i < c.n; i += Team::size()) {
        const int64_t k = at + i * c.inner;
        const C y = value_of(c.x[k]), g = value_of(c.g[k]);
        put(c.y + k, c.log ? g - exp_of(y) * s : y * (g - s));
    }
}

int gpu_softmax(SoftmaxArgs *a)
{
    const int64_t rows = a->outer * a->inner;
    if (rows * a->n == 0) return 0;
    return with_float(a->dtype, [&]<class T>() {
        const SoftmaxCall<T> c = { a->log, rows, a->n, a->inner, (const T *)a->x, nullptr, (T *)a->y };
        LAUNCH_ROWS(softmax_kernel, T, rows, a->n, a->inner, c);
        return gpu_launched("softmax");
    });
}

int gpu_softmax_grad(SoftmaxGradArgs *a)
{
    const int64_t rows = a->outer * a->inner;
    if (rows * a->n == 0) return 0;
    return with_float(a->dtype, [&]<class T>() {
        const SoftmaxCall<T> c = {
            a->log, rows, a->n, a->inner, (const T *)a->y, (const T *)a->g, (T *)a->dx
        };
        LAUNCH_ROWS(softmax_grad_kernel, T, rows, a->n, a->inner, c);
        return gpu_launched("softmax gradient");
    });
}
