/* class_losses.cu - the multilabel margin loss and connectionist temporal classification (ClassMarginArgs and
 * CtcArgs in kernels.h), in double.  A block does a row, or a sequence; sums have one order. */
#include "cuda/cuda.cuh"
#include "cpu/loss/ctc_steps.h"

/* ---- margins --------------------------------------------------------------------------------- */

/* named: how often the row's list names each class; 0: it is wrong. */
static __global__ void margin_kernel(ClassMarginArgs a, int64_t *named_by_row)
{
    const int64_t at = blockIdx.x * a.classes, *target = a.target + at;
    const double *x = a.x + at;
    int64_t *named = named_by_row + at;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < a.classes; i += blockDim.x) {
        int64_t times = 0;
        for (int64_t k = 0; k < a.classes && target[k] >= 0; k++) times += target[k] == i;
        named[i] = times;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < a.classes; i += blockDim.x) {
        double open = 0; /* hinges of i, as often as they count */
        for (int64_t j = 0; j < a.classes; j++) {
            if ((named[i] == 0) == (named[j] == 0)) continue;
            const double z = 1 - (named[i] ? x[i] - x[j] : x[j] - x[i]);
            if (z <= 0) continue; /* NaN goes on */
            open += named[i] ? -(double)named[i] : (double)named[j];
            if (!named[i]) sum += (double)named[j] * z;
        }
        a.slope[at + i] = open / (double)a.classes;
    }
    sum = Together::join(sum, AddUp());
    if (threadIdx.x == 0) a.loss[blockIdx.x] = sum / (double)a.classes;
}

int gpu_class_margin(ClassMarginArgs *a)
{
    if (a->rows == 0) return 0;
    const int64_t none = -1;
    const IndexCheck check = {
        { a->target, a->rows, 1, a->classes, a->classes, 0, 1 }, a->classes, &none, a->op, a->site
    };
    if (gpu_check_index(&check, &a->bad_at, &a->bad_value)) return -1;
    Scratch named((size_t)(a->rows * a->classes) * sizeof(int64_t));
    if (!named.data) return -1;
    LAUNCH(margin_kernel, (unsigned)a->rows, team_launch(true, a->rows, a->classes).threads, *a,
           (int64_t *)named.data);
    return gpu_launched("class_margin");
}

/* ---- sequences (cpu/loss/ctc.c has the mathematics) ------------------------------------------ */

/* A sequence's room: a_t of all steps, b of two, and for each state the next of its label, or -1; the first
 * of its label begins a chain. */
struct Sequence {
    int64_t n, states;
    const int64_t *label;
    double *a, *b;
    int64_t *next, *first;
};

enum { ROOM_ROWS = 4 }; /* besides those of a */

static __device__ inline Sequence sequence_of(const CtcArgs &c, double *room)
{
    Sequence s;
    s.n = blockIdx.x, s.states = 2 * c.sizes[s.n] + 1, s.label = c.label + s.n * c.states;
    s.a = room + s.n * (c.T + ROOM_ROWS) * c.states, s.b = s.a + c.T * c.states;
    s.next = (int64_t *)(s.b + 2 * c.states), s.first = s.next + c.states;
    return s;
}

static __device__ inline const double *step_of(const CtcArgs &c, const Sequence &s, int64_t t)
{
    return (const double *)c.x + (t * c.N + s.n) * c.C;
}

static __device__ inline void chain_states(const Sequence &s)
{
    for (int64_t k = threadIdx.x; k < s.states; k += blockDim.x) {
        int64_t before = k - 2, behind = k + 2;
        while (before >= 0 && s.label[before] != s.label[k]) before -= 2;
        while (behind < s.states && s.label[behind] != s.label[k]) behind += 2;
        s.first[k] = before < 0, s.next[k] = behind < s.states ? behind : -1;
    }
}

static __device__ inline void sequence_gradient(const CtcArgs &c, const Sequence &s, double loss)
{
    const double g = c.g[s.n];
    double *now = s.b, *earlier = s.b + c.states;
    for (int64_t k = threadIdx.x; k < s.states; k += blockDim.x)
        now[k] = k >= s.states - 2 ? 0 : -(double)INFINITY;
    chain_states(s);
    for (int64_t t = c.times[s.n] - 1; t >= 0; t--) {
        double *a = s.a + t * c.states, *dx = c.dx + (t * c.N + s.n) * c.C;
        for (int64_t k = threadIdx.x; k < s.states; k += blockDim.x) a[k] = g * exp(a[k] + now[k] + loss);
        __syncthreads();
        for (int64_t k = threadIdx.x; k < s.states; k += blockDim.x) {
            double sum = 0;
            for (int64_t i = k; s.first[k] && i >= 0; i = s.next[i]) sum -= a[i];
            if (s.first[k]) dx[s.label[k]] = sum;
            earlier[k] = ctc_beta(s.label, k, s.states, now, step_of(c, s, t));
        }
        __syncthreads();
        double *swap = now;
        now = earlier, earlier = swap;
    }
}

static __global__ void ctc_kernel(CtcArgs c, double *room)
{
    const Sequence s = sequence_of(c, room);
    const int64_t times = c.times[s.n];
    for (int64_t t = 0; t < times; t++) {
        double *a = s.a + t * c.states;
        for (int64_t k = threadIdx.x; k < s.states; k += blockDim.x)
            a[k] = ctc_alpha(s.label, k, t ? a - c.states : nullptr, step_of(c, s, t)[s.label[k]]);
        __syncthreads();
    }
    const double loss = ctc_loss_at_end(times, s.states - 1, s.a + (times - 1) * c.states);
    const bool unreachable = isinf(loss) && loss > 0;
    if (!c.dx) {
        if (threadIdx.x == 0) c.loss[s.n] = c.zero_infinity && unreachable ? 0 : loss;
        return;
    }
    if (c.g[s.n] == 0) return;
    __syncthreads(); /* all have read the end of a, which sequence_gradient overwrites */
    if (!unreachable) {
        sequence_gradient(c, s, loss);
        return;
    }
    for (int64_t i = threadIdx.x; i < times * c.C && !c.zero_infinity; i += blockDim.x)
        c.dx[(i / c.C * c.N + s.n) * c.C + i % c.C] = (double)NAN;
}

int gpu_ctc(CtcArgs *a)
{
    if (a->N == 0) return 0;
    Scratch room((size_t)(a->N * (a->T + ROOM_ROWS) * a->states) * sizeof(double));
    if (!room.data) return -1;
    LAUNCH(ctc_kernel, (unsigned)a->N, team_launch(true, a->N, a->states).threads, *a, (double *)room.data);
    return gpu_launched("ctc");
}
