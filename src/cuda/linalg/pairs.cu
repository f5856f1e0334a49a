/* pairs.cu - distances of all pairs of vectors, and their gradient (PairsArgs in kernels.h).
 *
 * Forward: a block makes a tile of SIDE x SIDE pairs, from pieces of their vectors in shared memory.
 * Backward: a thread makes one element, and sums over the other set in its order. */
#include "cuda/cuda.cuh"

enum { SIDE = 16 };

static __device__ inline float power(float x, float p) { return powf(x, p); }
static __device__ inline double power(double x, double p) { return pow(x, p); }
static __device__ inline float root(float x) { return sqrtf(x); }
static __device__ inline double root(double x) { return sqrt(x); }

/* |d|_p from the first element on; p is 0, 1, 2, inf or any other. */
template <class T> struct Norm {
    T p, sum = 0;
    bool largest;
    __device__ explicit Norm(double p_) : p((T)p_), largest(isinf(p_)) {}
    __device__ inline void add(T d)
    {
        const T size = d < 0 ? -d : d;
        if (p == 2) sum += d * d;
        else if (p == 1) sum += size;
        else if (p == 0) sum += (T)(d != 0);
        else if (largest) sum = size > sum || d != d ? size : sum;
        else sum += power(size, p);
    }
    __device__ inline T value() const
    {
        return p == 2 ? root(sum) : p == 0 || p == 1 || largest ? sum : power(sum, 1 / p);
    }
};

template <class T> __global__ void pairs_kernel(PairsArgs s)
{
    __shared__ T a[SIDE][SIDE + 1], b[SIDE][SIDE + 1];
    const int row = (int)threadIdx.x / SIDE, column = (int)threadIdx.x % SIDE;
    const int64_t down = (s.m + SIDE - 1) / SIDE, across = (s.others + SIDE - 1) / SIDE;
    for (int64_t tile = blockIdx.x; tile < s.batch * down * across; tile += gridDim.x) {
        const int64_t batch = tile / (down * across), i0 = tile / across % down * SIDE,
                      j0 = tile % across * SIDE, i = i0 + row, j = j0 + column;
        const T *from_a = (const T *)s.a + batch * s.m * s.n,
                *from_b = (const T *)s.b + batch * s.others * s.n;
        Norm<T> norm(s.p);
        for (int64_t k0 = 0; k0 < s.n; k0 += SIDE) {
            const int64_t k = k0 + column, piece = s.n - k0 < SIDE ? s.n - k0 : SIDE;
            a[row][column] = i < s.m && k < s.n ? from_a[i * s.n + k] : (T)0;
            b[row][column] = j0 + row < s.others && k < s.n ? from_b[(j0 + row) * s.n + k] : (T)0;
            __syncthreads();
            for (int64_t l = 0; l < piece; l++) norm.add(a[row][l] - b[column][l]);
            __syncthreads();
        }
        if (i < s.m && j < s.others) ((T *)s.out)[(batch * s.m + i) * s.others + j] = norm.value();
    }
}

/* The derivative of y = |d|_p by d, times g. */
template <class T> __device__ inline T slope(T d, T y, T p, bool largest, T g)
{
    const T size = d < 0 ? -d : d, sign = (T)((d > 0) - (d < 0));
    if (y == 0) return 0;
    if (p == 2) return g / y * d;
    if (p == 1) return g * sign;
    if (largest) return size == y ? g * sign : 0;
    return d != 0 ? g * sign * power(size / y, p - 1) : 0;
}

template <class T> __global__ void pairs_grad_kernel(PairsArgs s, const T *y)
{
    const T p = (T)s.p;
    const bool largest = isinf(s.p);
    for (int64_t at = first_item(); at < s.batch * s.m * s.n; at += item_step()) {
        int64_t vector = at;
        const int64_t k = split_off(vector, s.n), batch = vector / s.m, i = vector % s.m;
        const T *b = (const T *)s.b + batch * s.others * s.n + k,
                *g = (const T *)s.g + batch * s.m * s.others + i * s.step;
        const T a = ((const T *)s.a)[at];
        T sum = 0;
        for (int64_t j = 0; j < s.others; j++)
            sum += slope(a - b[j * s.n], y[vector * s.others + j], p, largest, g[j * s.other_step]);
        ((T *)s.out)[at] = sum;
    }
}

template <class T> static int distances(const PairsArgs *a)
{
    const int64_t tiles = a->batch * ((a->m + SIDE - 1) / SIDE) * ((a->others + SIDE - 1) / SIDE);
    auto kernel = &pairs_kernel<T>;
    if (tiles == 0) return 0;
    LAUNCH(kernel, (unsigned)(tiles < 65536 ? tiles : 65536), SIDE * SIDE, *a);
    return gpu_launched("pairs");
}

int gpu_pairs(PairsArgs *a) { return a->dtype == TENSOR_F64 ? distances<double>(a) : distances<float>(a); }

template <class T> static int gradient(const PairsArgs *a)
{
    const int64_t count = a->batch * a->m * a->n;
    if (count == 0) return 0;
    Scratch y((size_t)(a->batch * a->m * a->others) * sizeof(T));
    PairsArgs forward = *a;
    forward.out = y.data;
    if (!y.data || distances<T>(&forward)) return -1;
    auto kernel = &pairs_grad_kernel<T>;
    LAUNCH(kernel, gpu_blocks(count), THREADS, *a, (const T *)y.data);
    return gpu_launched("pairs_grad");
}

int gpu_pairs_grad(PairsArgs *a) { return a->dtype == TENSOR_F64 ? gradient<double>(a) : gradient<float>(a); }
