/* rnn.cu - the pointwise part of recurrent steps (RnnArgs in kernels.h; the equations are those of
 * ops/sequence.h): a thread makes all gates of one hidden number.  Halves are computed in f32. */
#include "cuda/cuda.cuh"

static __device__ inline float tanh_of(float x) { return tanhf(x); }
static __device__ inline double tanh_of(double x) { return tanh(x); }
template <class C> __device__ inline C sigmoid_of(C x) { return 1 / (1 + exp_of(-x)); }

/* Operand p as rows that are `parts` times hidden wide: number i of a part. */
template <class T> struct RnnRow {
    T *data;
    int64_t hidden;
    __device__ RnnRow(const void *p, int64_t parts, int64_t n, int64_t row, int64_t i)
        : data((T *)(uintptr_t)p + row * parts * n + i), hidden(n)
    {
    }
    __device__ Compute<T> operator[](int part) const { return value_of(data[part * hidden]); }
    __device__ void set(int part, Compute<T> v) const { put(data + part * hidden, v); }
};

/* ---- forward --------------------------------------------------------------------------------- */

template <class T> __device__ inline void gru_step(const RnnArgs &a, int64_t row, int64_t i)
{
    using C = Compute<T>;
    const int64_t n = a.hidden, at = row * n + i;
    const RnnRow<T> gates(a.gates, 3, n, row, i), recurrent(a.recurrent, 3, n, row, i);
    const C r = sigmoid_of(gates[0] + recurrent[0]), z = sigmoid_of(gates[1] + recurrent[1]);
    const C n_part = recurrent[2], fresh = tanh_of(gates[2] + r * n_part);
    gates.set(0, r), gates.set(1, z), gates.set(2, fresh);
    put((T *)a.n_part + at, n_part);
    put((T *)a.h + at, fresh + z * (value_of(((const T *)a.h_prev)[at]) - fresh));
}

template <class T> __device__ inline void lstm_step(const RnnArgs &a, int64_t row, int64_t i)
{
    using C = Compute<T>;
    const int64_t n = a.hidden, at = row * n + i;
    const RnnRow<T> gates(a.gates, 4, n, row, i);
    const C in = sigmoid_of(gates[0]), forget = sigmoid_of(gates[1]), g = tanh_of(gates[2]),
            out = sigmoid_of(gates[3]);
    const C c = forget * value_of(((const T *)a.c_prev)[at]) + in * g;
    gates.set(0, in), gates.set(1, forget), gates.set(2, g), gates.set(3, out);
    put((T *)a.c + at, c);
    put((T *)a.h + at, out * tanh_of(c));
}

template <class T, int kind> __global__ void rnn_step_kernel(RnnArgs a)
{
    using C = Compute<T>;
    for (int64_t k = first_item(); k < a.rows * a.hidden; k += item_step()) {
        int64_t row = k;
        const int64_t i = split_off(row, a.hidden);
        if constexpr (kind == RNN_GRU) gru_step<T>(a, row, i);
        else if constexpr (kind == RNN_LSTM) lstm_step<T>(a, row, i);
        else {
            T *const gate = (T *)a.gates + k;
            const C x = value_of(*gate);
            if constexpr (kind == RNN_TANH) put(gate, tanh_of(x));
            else put(gate, x < 0 ? 0 : x);
        }
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

template <class T> __device__ inline void gru_step_grad(const RnnArgs &a, int64_t row, int64_t i)
{
    using C = Compute<T>;
    const int64_t n = a.hidden, at = row * n + i;
    const RnnRow<T> gates(a.gates, 3, n, row, i), dgates(a.dgates, 3, n, row, i),
        drecurrent(a.drecurrent, 3, n, row, i);
    const C dh = value_of(((const T *)a.dh)[at]), h_prev = value_of(((const T *)a.h_prev)[at]);
    const C r = gates[0], z = gates[1], fresh = gates[2];
    const C dz = dh * (h_prev - fresh) * z * (1 - z), dn = dh * (1 - z) * (1 - fresh * fresh);
    const C dr = dn * value_of(((const T *)a.n_part)[at]) * r * (1 - r);
    T *const dh_prev = (T *)a.dh_prev + at;
    dgates.set(0, dr), dgates.set(1, dz), dgates.set(2, dn);
    drecurrent.set(0, dr), drecurrent.set(1, dz), drecurrent.set(2, dn * r);
    put(dh_prev, value_of(*dh_prev) + dh * z);
}

template <class T> __device__ inline void lstm_step_grad(const RnnArgs &a, int64_t row, int64_t i)
{
    using C = Compute<T>;
    const int64_t n = a.hidden, at = row * n + i;
    const RnnRow<T> gates(a.gates, 4, n, row, i), dgates(a.dgates, 4, n, row, i);
    T *const dc = (T *)a.dc + at;
    const C in = gates[0], forget = gates[1], g = gates[2], out = gates[3];
    const C tc = tanh_of(value_of(((const T *)a.c)[at])), dh = value_of(((const T *)a.dh)[at]);
    const C d = value_of(*dc) + dh * out * (1 - tc * tc);
    dgates.set(0, d * g * in * (1 - in));
    dgates.set(1, d * value_of(((const T *)a.c_prev)[at]) * forget * (1 - forget));
    dgates.set(2, d * in * (1 - g * g));
    dgates.set(3, dh * tc * out * (1 - out));
    put(dc, d * forget);
}

template <class T, int kind> __global__ void rnn_step_grad_kernel(RnnArgs a)
{
    using C = Compute<T>;
    for (int64_t k = first_item(); k < a.rows * a.hidden; k += item_step()) {
        int64_t row = k;
        const int64_t i = split_off(row, a.hidden);
        if constexpr (kind == RNN_GRU) gru_step_grad<T>(a, row, i);
        else if constexpr (kind == RNN_LSTM) lstm_step_grad<T>(a, row, i);
        else {
            const C h = value_of(((const T *)a.gates)[k]), dh = value_of(((const T *)a.dh)[k]);
            if constexpr (kind == RNN_TANH) put((T *)a.dgates + k, dh * (1 - h * h));
            else put((T *)a.dgates + k, h <= 0 ? 0 : dh);
        }
    }
}

/* ---- slots ----------------------------------------------------------------------------------- */

template <int kind> int launch_step(const RnnArgs *a, bool grad)
{
    return with_float(a->dtype, [&]<class T>() {
        auto kernel = grad ? &rnn_step_grad_kernel<T, kind> : &rnn_step_kernel<T, kind>;
        LAUNCH(kernel, gpu_blocks(a->rows * a->hidden), THREADS, *a);
        return gpu_launched("recurrent step");
    });
}

static int rnn_step(const RnnArgs *a, bool grad)
{
    if (a->rows * a->hidden == 0) return 0;
    switch (a->kind) {
    case RNN_TANH: return launch_step<RNN_TANH>(a, grad);
    case RNN_RELU: return launch_step<RNN_RELU>(a, grad);
    case RNN_GRU: return launch_step<RNN_GRU>(a, grad);
    default: return launch_step<RNN_LSTM>(a, grad);
    }
}

int gpu_rnn_step(RnnArgs *a) { return rnn_step(a, false); }
int gpu_rnn_step_grad(RnnArgs *a) { return rnn_step(a, true); }
