/* resample_loops.h - resample_kernel.c's loops over elements of type T. */
#define N(name) JOIN(name, TYPE)

static void N(weigh)(T *restrict y, const T *restrict x, T w, int64_t n)
{
    for (int64_t j = 0; j < n; j++) y[j] = w * x[j];
}

static void N(weigh_two)(T *restrict y, const T *restrict a, T v, const T *restrict b, T w, int64_t n)
{
    for (int64_t j = 0; j < n; j++) y[j] = v * a[j] + w * b[j];
}

static void N(add)(T *restrict y, const T *restrict x, T w, int64_t n)
{
    for (int64_t j = 0; j < n; j++) y[j] += w * x[j];
}

/* Whole rows of x, weighted. */
static void N(rows)(const ResampleAxis *a, const T *x, T *y, int64_t inner)
{
    const T *weight = a->weight;
    for (int64_t i = 0; i < a->out; i++, y += inner) {
        const int64_t end = a->start[i + 1];
        int64_t k = a->start[i];
        if (end - k >= 2) {
            N(weigh_two)
            (y, x + a->index[k] * inner, weight[k], x + a->index[k + 1] * inner, weight[k + 1], inner);
            k += 2;
        } else if (k < end) {
            N(weigh)(y, x + a->index[k] * inner, weight[k], inner);
            k++;
        } else {
            for (int64_t j = 0; j < inner; j++) y[j] = 0;
        }
        for (; k < end; k++) N(add)(y, x + a->index[k] * inner, weight[k], inner);
    }
}

/* Single elements, two taps each: the linear modes'. */
static void N(line_of_two)(const ResampleAxis *a, const T *restrict x, T *restrict y)
{
    const T *restrict weight = a->weight;
    const int64_t *restrict index = a->index;
    for (int64_t i = 0; i < a->out; i++)
        y[i] = weight[2 * i] * x[index[2 * i]] + weight[2 * i + 1] * x[index[2 * i + 1]];
}

/* Single elements. */
static void N(line)(const ResampleAxis *a, const T *restrict x, T *restrict y)
{
    const T *weight = a->weight;
    for (int64_t i = 0; i < a->out; i++) {
        const int64_t end = a->start[i + 1];
        int64_t k = a->start[i];
        T sum = k < end ? weight[k] * x[a->index[k]] : 0;
        for (k++; k < end; k++) sum += weight[k] * x[a->index[k]];
        y[i] = sum;
    }
}

static void N(pass)(const ResampleAxis *a, const void *x, void *y, int64_t outer, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++) {
        const T *from = (const T *)x + o * a->in * inner;
        T *to = (T *)y + o * a->out * inner;
        if (inner == 1 && a->taps == 2) N(line_of_two)(a, from, to);
        else if (inner == 1) N(line)(a, from, to);
        else N(rows)(a, from, to, inner);
    }
}

#undef N
