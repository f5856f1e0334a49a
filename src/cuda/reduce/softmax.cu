/* softmax.cu - softmax and log_softmax over the middle of [outer, n, inner], and their gradients.
 *
 * Row r of outer * inner begins at (r / inner) n inner + r % inner; its elements are inner apart.  The
 * maximum, which ignores NaN, is subtracted: the same quotient, and no overflow for any finite x.  Sums are
 * of the type that is computed in, f32 of halves. */
#include "cuda/pack.cuh"

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
    const T *const in[] = { c.x + at };
    C m = (C)-HUGE_VAL, sum = 0;
    read_row<Team>(in[0], c.n, c.inner, [&](int64_t, C x) { m = Larger()(m, x); });
    m = Team::join(m, Larger());
    read_row<Team>(in[0], c.n, c.inner, [&](int64_t, C x) { sum += exp_of(x - m); });
    sum = Team::join(sum, AddUp());
    const C scale = c.log ? log(sum) : 1 / sum;
    walk_row<Team>(in, c.y + at, c.n, c.inner, [&](int64_t, const Values<T, 1> &x) {
        return c.log ? x.v[0] - m - scale : scale * exp_of(x.v[0] - m);
    });
}

template <class Team, class T> __global__ void softmax_grad_kernel(SoftmaxCall<T> c)
{
    using C = Compute<T>;
    const int64_t row = Team::row(), at = row / c.inner * c.n * c.inner + row % c.inner;
    if (row >= c.rows) return;
    const T *const in[] = { c.x + at, c.g + at }; /* y and g */
    C sum = 0;
    walk_row<Team>(in, (T *)nullptr, c.n, c.inner, [&](int64_t, const Values<T, 2> &of) {
        sum += c.log ? of.v[1] : of.v[0] * of.v[1];
        return (C)0;
    });
    sum = Team::join(sum, AddUp());
    walk_row<Team>(in, c.y + at, c.n, c.inner, [&](int64_t, const Values<T, 2> &of) {
        const C y = of.v[0], g = of.v[1];
        return c.log ? g - exp_of(y) * sum : y * (g - sum);
    });
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
