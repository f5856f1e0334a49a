/* norm.cu - layer_norm, rms_norm, group_norm and batch_norm over dense x [outer, channels, inner].
 *
 *   layer: row r is outer index r, its n = channels * inner elements; element e has weight e;  rms: mean 0
 *   group: the same, but element e has the weight of its channel in the row's group
 *   batch: row r is channel r, its n = outer * inner elements; all have weight r
 *
 *   y = w (x - mean) rstd + b,  xh = (x - mean) rstd,  d = w dy
 *   dx = rstd (d - mean d - xh mean(d xh));  given statistics: dx = rstd d
 *   dweight = sum dy xh,  dbias = sum dy
 *
 *  - With add, x + add is formed again each time, which rounds it nowhere but where it is written.
 *  - All in the type of the statistics, f32 beside halves; in packs where rows allow it (norm.cuh).
 *  - dweight and dbias are sums over what many blocks did: each leaves its part, and a second kernel adds the
 *    parts up in order. */
#include "norm.cuh"

/* ---- forward --------------------------------------------------------------------------------- */

template <class Team, class T> static __device__ inline void statistics(const NormCall<T> &c, int64_t row)
{
    using C = Compute<T>;
    C sum = 0, squares = 0;
    if (!c.rms)
        each_piece<Team>(c, row, [&]<int N>(int64_t, int64_t at) {
            C x[N];
            c.get_x(at, x);
            for (C v : x) sum += v;
        });
    const C mean = c.rms ? 0 : Team::join(sum, AddUp()) / (C)c.n;
    each_piece<Team>(c, row, [&]<int N>(int64_t, int64_t at) {
        C x[N];
        c.get_x(at, x);
        for (C v : x) squares += (v - mean) * (v - mean);
    });
    const C var = Team::join(squares, AddUp()) / (C)c.n;
    if (Team::rank() == 0) {
        c.mean[row] = mean, c.rstd[row] = 1 / sqrt(var + (C)c.eps);
        if (c.var) c.var[row] = var;
    }
    Team::join(0, AddUp()); /* the others read what this one wrote */
}

template <class Team, class T> __global__ void norm_kernel(NormCall<T> c)
{
    using C = Compute<T>;
    const int64_t row = Team::row();
    if (row >= c.rows) return;
    if (!c.given) statistics<Team>(c, row);
    const C mean = c.mean[row], rstd = c.rstd[row];
    each_piece<Team>(c, row, [&]<int N>(int64_t e, int64_t at) {
        C x[N], w[N], b[N];
        c.get_x(at, x);
        if (c.add) set(c.sum + at, x);
        c.template sides<N>(c.weight, 1, row, e, w);
        c.template sides<N>(c.bias, 0, row, e, b);
        for (int j = 0; j < N; j++) x[j] = (x[j] - mean) * rstd * w[j] + b[j];
        set_as<N, T>(c.to, c.y, at, x);
    });
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

/* ---- dx -------------------------------------------------------------------------------------- */

/* Sums over a row, or over what a block does of it. */
template <class C> struct Sums {
    C dy, dot;     /* dy, dy xh */
    C d, weighted; /* d, d xh */
    __device__ inline Sums operator+(const Sums &o) const
    {
        return Sums{ dy + o.dy, dot + o.dot, d + o.d, weighted + o.weighted };
    }
};

template <int N, class T>
static __device__ inline void add_piece(const NormCall<T> &c, int64_t row, int64_t e, int64_t at,
                                        Compute<T> mean, Compute<T> rstd, Sums<Compute<T>> *s)
{
    Compute<T> x[N], dy[N], w[N];
    get(c.x + at, x), c.get_dy(at, dy);
    c.template sides<N>(c.weight, 1, row, e, w);
    for (int j = 0; j < N; j++) {
        const Compute<T> xh = (x[j] - mean) * rstd, d = w[j] * dy[j];
        s->dy += dy[j], s->dot += dy[j] * xh, s->d += d, s->weighted += d * xh;
    }
}

/* s: the sums of the whole row.  Given statistics may be infinite, xh is not used then. */
template <int N, class T>
static __device__ inline void put_piece(const NormCall<T> &c, int64_t row, int64_t e, int64_t at,
                                        Compute<T> mean, Compute<T> rstd, const Sums<Compute<T>> &s)
{
    using C = Compute<T>;
    C x[N], dy[N], w[N];
    const C n = (C)c.n, d_mean = c.given || c.rms ? 0 : s.d / n, along = c.given ? 0 : s.weighted / n;
    get(c.x + at, x), c.get_dy(at, dy);
    c.template sides<N>(c.weight, 1, row, e, w);
    for (int j = 0; j < N; j++) {
        const C xh = c.given ? 0 : (x[j] - mean) * rstd;
        x[j] = rstd * (w[j] * dy[j] - d_mean - xh * along);
    }
    if (c.dsum) {
        get(c.dsum + at, dy);
        for (int j = 0; j < N; j++) x[j] += dy[j];
    }
    set(c.dx + at, x);
    if (c.dadd) set_as<N, T>(c.added, c.dadd, at, x);
}

/* A row a team; of batch norm dweight and dbias, too, which are sums over the same row. */
template <class Team, class T> __global__ void norm_grad_kernel(NormCall<T> c)
{
    using C = Compute<T>;
    const int64_t row = Team::row();
    if (row >= c.rows) return;
    const C mean = c.mean[row], rstd = c.rstd[row];
    Sums<C> s = {};
    each_piece<Team>(c, row,
                     [&]<int N>(int64_t e, int64_t at) { add_piece<N>(c, row, e, at, mean, rstd, &s); });
    s = Team::join(s, AddUp());
    if (c.batch && Team::rank() == 0) {
        c.put_side(c.dweight, row, s.dot);
        c.put_side(c.dbias, row, s.dy);
    }
    if (!c.dx) return;
    each_piece<Team>(c, row,
                     [&]<int N>(int64_t e, int64_t at) { put_piece<N>(c, row, e, at, mean, rstd, s); });
}

/* ---- sums over what blocks did --------------------------------------------------------------- */

static constexpr int SIDE_BY_SIDE = 32, LANES = (int)THREADS / SIDE_BY_SIDE;

/* part [parts, 2, m]: of dweight, of dbias.  A warp reads neighbours; sums: of both, NULL: not wanted. */
template <class T>
static __global__ void add_parts(NormCall<T> c, const Compute<T> *part, int64_t parts, int64_t m,
                                 Compute<T> *sums)
{
    using C = Compute<T>;
    __shared__ C lane[LANES][SIDE_BY_SIDE];
    const int x = (int)threadIdx.x % SIDE_BY_SIDE, y = (int)threadIdx.x / SIDE_BY_SIDE;
    const int64_t i = (int64_t)blockIdx.x * SIDE_BY_SIDE + x;
    C sum = 0;
    for (int64_t k = y; k < parts && i < 2 * m; k += LANES) sum += part[k * 2 * m + i];
    lane[y][x] = sum;
    __syncthreads();
    if (y > 0 || i >= 2 * m) return;
    for (int k = 1; k < LANES; k++) sum += lane[k][x];
    c.put_side(i < m ? c.dweight : c.dbias, i % m, sum);
    if (sums) sums[i] = sum;
}

template <class T>
static int launch_add_parts(const NormCall<T> &c, const void *part, int64_t parts, int64_t m, void *sums)
{
    auto kernel = &add_parts<T>;
    LAUNCH(kernel, (unsigned)((2 * m + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE), THREADS, c,
           (const Compute<T> *)part, parts, m, (Compute<T> *)sums);
    return gpu_launched("norm gradient");
}

/* ---- layer ----------------------------------------------------------------------------------- */

enum { MOST_PARTS = 512, SUMS_BYTES = 1 << 14 };
template <class T> constexpr int COLUMNS = SUMS_BYTES / sizeof(Compute<T>); /* that a block has sums of */

/* dx, and part: a block does every gridDim-th row, and a thread of it the same elements of each. */
template <class T> static __global__ void layer_grad_kernel(NormCall<T> c, Compute<T> *part)
{
    using C = Compute<T>;
    __shared__ C dweight[COLUMNS<T>], dbias[COLUMNS<T>];
    for (int64_t row = blockIdx.x; row < c.rows; row += gridDim.x) {
        const C mean = c.mean[row], rstd = c.rstd[row];
        const bool first = row == blockIdx.x;
        Sums<C> s = {};
        each_piece<Together>(c, row, [&]<int N>(int64_t e, int64_t at) {
            C x[N], dy[N];
            add_piece<N>(c, row, e, at, mean, rstd, &s);
            get(c.x + at, x), c.get_dy(at, dy);
            for (int j = 0; j < N; j++) {
                const C dot = dy[j] * ((x[j] - mean) * rstd);
                dweight[e + j] = first ? dot : dweight[e + j] + dot;
                dbias[e + j] = first ? dy[j] : dbias[e + j] + dy[j];
            }
        });
        if (!c.dx) continue;
        s = Together::join(s, AddUp());
        each_piece<Together>(
            c, row, [&]<int N>(int64_t e, int64_t at) { put_piece<N>(c, row, e, at, mean, rstd, s); });
    }
    part += blockIdx.x * 2 * c.n;
    each_piece<Together>(c, 0, [&]<int N>(int64_t e, int64_t) {
        for (int j = 0; j < N; j++) part[e + j] = dweight[e + j], part[c.n + e + j] = dbias[e + j];
    });
}

/* part alone, of rows of any length: a thread does an element of each row of its block. */
template <class T> static __global__ void layer_part_kernel(NormCall<T> c, int64_t rows, Compute<T> *part)
{
    using C = Compute<T>;
    const int64_t e = first_item(), begin = blockIdx.y * rows,
                  end = begin + rows < c.rows ? begin + rows : c.rows;
    if (e >= c.n) return;
    C dot = 0, sum = 0;
    for (int64_t row = begin; row < end; row++) {
        C of[1];
        c.get_dy(row * c.n + e, of);
        const C dy = of[0];
        sum += dy, dot += dy * ((value_of(c.x[row * c.n + e]) - c.mean[row]) * c.rstd[row]);
    }
    part += blockIdx.y * 2 * c.n;
    part[e] = dot, part[c.n + e] = sum;
}

template <class T> static int layer_grad(const NormCall<T> &c)
{
    const bool narrow = c.n <= COLUMNS<T>;
    const int64_t most = narrow ? c.rows : (c.rows + 31) / 32,
                  parts = most < MOST_PARTS ? most : (int64_t)MOST_PARTS;
    Scratch part((size_t)(parts * 2 * c.n) * sizeof(Compute<T>));
    if (!part.data) return -1;
    Compute<T> *to = (Compute<T> *)part.data;
    if (parts > 0 && narrow) {
        auto kernel = &layer_grad_kernel<T>;
        const Launch l = team_launch(true, parts, c.n / (c.packs ? Pack<T>::SIZE : 1));
        LAUNCH(kernel, l.blocks, l.threads, c, to);
    } else if (parts > 0) {
        auto kernel = &layer_part_kernel<T>;
        const unsigned blocks = (unsigned)((c.n + THREADS - 1) / THREADS);
        if (c.dx) LAUNCH_ROWS(norm_grad_kernel, T, c.rows, c.n, apart(c), c);
        LAUNCH(kernel, dim3(blocks, (unsigned)parts), THREADS, c, (c.rows + parts - 1) / parts, to);
    }
    return gpu_launched("norm gradient") ? -1 : launch_add_parts(c, to, parts, c.n, nullptr);
}

/* ---- group ----------------------------------------------------------------------------------- */

/* part [batch, 2, all channels]: a team sums over a channel of an image. */
template <class Team, class T> __global__ void group_part_kernel(NormCall<T> c)
{
    using C = Compute<T>;
    const int64_t all = c.groups * c.channels, batch = c.rows / c.groups, at = Team::row();
    if (at >= batch * all) return;
    const int64_t row = at / c.channels;
    const C mean = c.mean[row], rstd = c.rstd[row];
    const T *const in[] = { c.x + at * c.inner, (const T *)c.dy + at * c.inner };
    Sums<C> s = {};
    walk_row<Team>(in, (T *)nullptr, c.inner, 1, [&](int64_t, const Values<T, 2> &of) {
        s.dy += of.v[1], s.dot += of.v[1] * ((of.v[0] - mean) * rstd);
        return (C)0;
    });
    s = Team::join(s, AddUp());
    if (Team::rank() != 0) return;
    C *part = c.part + at / all * 2 * all + at % all;
    part[0] = s.dot, part[all] = s.dy;
}

template <class T> static int group_grad(NormCall<T> c)
{
    const int64_t all = c.groups * c.channels, batch = c.rows / c.groups;
    Scratch part((size_t)(batch * 2 * all) * sizeof(Compute<T>));
    if (!part.data) return -1;
    c.part = (Compute<T> *)part.data;
    if (c.dx && c.rows > 0) LAUNCH_ROWS(norm_grad_kernel, T, c.rows, c.n, apart(c), c);
    if (batch > 0) LAUNCH_ROWS(group_part_kernel, T, batch * all, c.inner, 1, c);
    return gpu_launched("norm gradient") ? -1 : launch_add_parts(c, c.part, batch, all, nullptr);
}

/* ---- batch ----------------------------------------------------------------------------------- */

enum { BATCH_TEAMS = 1024, BATCH_SHARE = 2048 };

/* part [parts, 2, channels]: a team sums over a channel of some of the outer ones. */
template <class Team, class T> __global__ void batch_part_kernel(NormCall<T> c)
{
    using C = Compute<T>;
    const int64_t at = Team::row(), row = at % c.rows, p = at / c.rows;
    if (p >= c.parts) return;
    const C mean = c.mean[row], rstd = c.rstd[row];
    const int64_t share = (c.n / c.inner + c.parts - 1) / c.parts, from = p * share * c.inner,
                  to = from + share * c.inner < c.n ? from + share * c.inner : c.n;
    Sums<C> s = {};
    NormCall<T> some = c;
    some.n = to - from, some.weight = nullptr;
    some.x += from * c.channels, some.dy = (const T *)c.dy + from * c.channels;
    if (to > from)
        each_piece<Team>(some, row,
                         [&]<int N>(int64_t e, int64_t i) { add_piece<N>(some, row, e, i, mean, rstd, &s); });
    s = Team::join(s, AddUp());
    if (Team::rank() != 0) return;
    C *part = c.part + p * 2 * c.rows + row;
    part[0] = s.dot, part[c.rows] = s.dy;
}

/* sums [2, channels] of the whole; a team does a channel of one of the outer ones. */
template <class Team, class T> __global__ void batch_dx_kernel(NormCall<T> c)
{
    using C = Compute<T>;
    const int64_t at = Team::row(), row = at % c.rows, o = at / c.rows;
    if (o >= c.n / c.inner) return;
    const C w = c.weight ? c.side(c.weight, row) : 1, mean = c.mean[row], rstd = c.rstd[row],
            dy_mean = c.given ? 0 : c.part[c.rows + row] / (C)c.n, along = c.given ? 0 : c.part[row] / (C)c.n;
    const T *const in[] = { c.x + at * c.inner, (const T *)c.dy + at * c.inner };
    walk_row<Team>(in, c.dx + at * c.inner, c.inner, 1, [&](int64_t, const Values<T, 2> &of) {
        const C xh = c.given ? 0 : (of.v[0] - mean) * rstd;
        return rstd * w * (of.v[1] - dy_mean - xh * along);
    });
}

template <class T> static int64_t parts_of_batch(const NormCall<T> &c)
{
    const int64_t outer = c.inner ? c.n / c.inner : 0, teams = c.rows ? BATCH_TEAMS / c.rows : 0,
                  shares = c.n / BATCH_SHARE, parts = teams < shares ? teams : shares;
    return parts < outer ? parts : outer;
}

template <class T> static int batch_grad(NormCall<T> c)
{
    c.parts = parts_of_batch(c);
    if (c.rows == 0) return 0;
    if (c.parts < 2) {
        LAUNCH_ROWS(norm_grad_kernel, T, c.rows, c.n, apart(c), c);
        return gpu_launched("norm gradient");
    }
    Scratch part((size_t)(c.parts * 2 * c.rows) * sizeof(Compute<T>)),
        sums((size_t)(2 * c.rows) * sizeof(Compute<T>));
    if (!part.data || !sums.data) return -1;
    c.part = (Compute<T> *)part.data;
    LAUNCH_ROWS(batch_part_kernel, T, c.parts * c.rows, c.n / c.parts, apart(c), c);
    if (gpu_launched("norm gradient") || launch_add_parts(c, part.data, c.parts, c.rows, sums.data))
        return -1;
    c.part = (Compute<T> *)sums.data;
    if (c.dx) LAUNCH_ROWS(batch_dx_kernel, T, c.rows * (c.n / c.inner), c.inner, 1, c);
    return gpu_launched("norm gradient");
}

int gpu_norm_grad(NormArgs *a)
{
    return with_float(a->dtype, [&]<class T>() {
        const NormCall<T> c = norm_call<T>(a);
        const int64_t weights = c.batch ? c.channels : c.groups ? c.groups * c.channels : c.n;
        if (c.batch) return batch_grad(c);
        if (weights > 0 && (c.dweight || c.dbias)) return c.groups ? group_grad(c) : layer_grad(c);
        if (c.rows > 0 && c.dx) LAUNCH_ROWS(norm_grad_kernel, T, c.rows, c.n, apart(c), c);
        return gpu_launched("norm gradient");
    });
}
