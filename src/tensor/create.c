/* create.c - new tensors from nothing, from numbers, from memory.  All use fill, copy and to_device, so they
 * work on any device. */
#include <math.h>
#include "core.h"

static Tensor *filled(const char *function, TensorShape shape, double value, int dtype, const Place *place)
{
    Tensor *x = new_tensor_as(function, shape, dtype, place);
    if (x && (check_fill(function, x, value) || raw_fill(x, value))) {
        tensor_release(x);
        return NULL;
    }
    return own(x);
}

Tensor *tensor_empty(TensorShape shape, TensorDtype dtype)
{
    return own(new_tensor_as(__func__, shape, (int)dtype, default_place()));
}

Tensor *tensor_full(TensorShape shape, double value, TensorDtype dtype)
{
    return filled(__func__, shape, value, (int)dtype, default_place());
}

Tensor *tensor_zeros(TensorShape shape, TensorDtype dtype)
{
    return filled(__func__, shape, 0, (int)dtype, default_place());
}

Tensor *tensor_ones(TensorShape shape, TensorDtype dtype)
{
    return filled(__func__, shape, 1, (int)dtype, default_place());
}

Tensor *tensor_scalar(double value, TensorDtype dtype)
{
    return filled(__func__, SHAPE(), value, (int)dtype, default_place());
}

Tensor *tensor_empty_like(const Tensor *x)
{
    return check_null(x, __func__, 1) ? NULL : own(new_tensor_as(__func__, shape_of(x), x->dtype, x->place));
}

Tensor *tensor_full_like(const Tensor *x, double value)
{
    return check_null(x, __func__, 1) ? NULL : filled(__func__, shape_of(x), value, x->dtype, x->place);
}

Tensor *tensor_zeros_like(const Tensor *x)
{
    return check_null(x, __func__, 1) ? NULL : filled(__func__, shape_of(x), 0, x->dtype, x->place);
}

Tensor *tensor_ones_like(const Tensor *x)
{
    return check_null(x, __func__, 1) ? NULL : filled(__func__, shape_of(x), 1, x->dtype, x->place);
}

/* ---- sequences: made by a kernel, or on the host, in f64 or i64, and copied to where and what they shall
 * be -------------------------------------------------------------------------------------------- */

/* Does the integer dtype hold every value? */
static int check_values(const char *function, const Tensor *x, const Tensor *host)
{
    if (dtype_is_float(x->dtype) || x->dtype == TENSOR_BOOL || x->dtype == host->dtype) return 0;
    for (int64_t i = 0; i < host->numel; i++) {
        double value = host->dtype == TENSOR_F64 ? ((const double *)host->data)[i]
                                                 : (double)((const int64_t *)host->data)[i];
        if (check_fill(function, x, value)) return -1;
    }
    return 0;
}

/* Takes over host. */
static Tensor *deliver(const char *function, Tensor *host, int dtype)
{
    const Place *place = default_place();
    if (host->dtype == dtype && place == &cpu_place) return own(host);
    Tensor *x = new_tensor_as(function, shape_of(host), dtype, place);
    bool failed = x && host->numel &&
                  ((!on_host(place) && graph_wait(function, "copies from the host")) ||
                   check_values(function, x, host) || raw_copy(x, host));
    tensor_release(host);
    if (!failed) return own(x);
    tensor_release(x);
    return NULL;
}

/* On the default device; *made: x is what it returns.  last: the last element. */
static Tensor *on_device(const char *function, int dtype, FillArgs *args, double first, double last,
                         bool *made)
{
    const Place *place = default_place();
    *made = false;
    if (on_host(place) || args->count == 0 || !fill_fits(dtype, first) || !fill_fits(dtype, last))
        return NULL;
    Tensor *x = new_tensor_as(function, SHAPE(args->count), dtype, place);
    if (!x) return *made = true, NULL;
    args->ndim = 1, args->shape[0] = args->count;
    args->dst = (Strided){ .data = x->data, .dtype = dtype, .stride = { 1 } };
    const double number[] = { args->value, args->step, args->end, (double)args->value_i64,
                              (double)args->step_i64 };
    for (int i = 0; i < 5 && graph_watches; i++) graph_note_number(number[i]);
    if (!RUN_KERNEL(function, place, fill, args)) return *made = true, own(x);
    *made = !take_decline();
    tensor_release(x);
    return NULL;
}

static bool stays_in_i64(int64_t start, int64_t step, int64_t count)
{
    uint64_t room = step > 0 ? (uint64_t)INT64_MAX - (uint64_t)start : (uint64_t)start - (uint64_t)INT64_MIN;
    uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return count < 2 || (uint64_t)count - 1 <= room / by;
}

Tensor *tensor_arange(double start, double end, double step, TensorDtype dtype)
{
    static const char name[] = "tensor_arange";
    if ((unsigned)dtype >= TENSOR_DTYPES)
        return fail(TENSOR_EDTYPE, name, "no such dtype: %d", (int)dtype), NULL;
    double count = ceil((end - start) / step);
    if (!isfinite(start) || !isfinite(end) || !isfinite(step) || step == 0 || (end - start) / step < 0)
        return fail(TENSOR_EVALUE, name,
                    "from %g to %g by %g: want finite numbers and a step towards the end", start, end, step),
               NULL;
    if (!(count < 0x1p60))
        return fail(TENSOR_ESHAPE, name, "from %g to %g by %g: %g elements", start, end, step, count), NULL;
    bool exact = !dtype_is_float((int)dtype) && is_integral(start) && is_integral(step);
    if (exact && !stays_in_i64((int64_t)start, (int64_t)step, (int64_t)count))
        return fail(TENSOR_EVALUE, name, "from %g to %g by %g: values beyond i64", start, end, step), NULL;
    FillArgs args = { .kind = exact ? FILL_STEPS_I64 : FILL_STEPS, .count = (int64_t)count };
    if (exact) args.value_i64 = (int64_t)start, args.step_i64 = (int64_t)step;
    else args.value = start, args.step = step;
    bool made;
    Tensor *there = on_device(name, (int)dtype, &args, start, start + (count - 1) * step, &made);
    if (made) return there;
    Tensor *host = new_tensor_as(name, SHAPE((int64_t)count), exact ? TENSOR_I64 : TENSOR_F64, &cpu_place);
    if (!host) return NULL;
    if (exact) {
        uint64_t *y = host->data, first = (uint64_t)(int64_t)start, by = (uint64_t)(int64_t)step;
        for (int64_t i = 0; i < host->numel; i++) y[i] = first + (uint64_t)i * by;
    } else {
        double *y = host->data;
        for (int64_t i = 0; i < host->numel; i++) y[i] = start + (double)i * step;
    }
    return deliver(name, host, (int)dtype);
}

/* One rounding for start + i step, and the arithmetic of the dtype, as PyTorch's compiled loops have it. */
static double step_f32(double start, double end, int64_t steps)
{
    return (double)(((float)end - (float)start) / (float)(steps - 1));
}

static double between_f32(double start, double end, int64_t i, int64_t steps)
{
    const float a = (float)start, b = (float)end, step = (float)step_f32(start, end, steps);
    return (double)(i < steps / 2 ? fmaf(step, (float)i, a) : fmaf(-step, (float)(steps - 1 - i), b));
}

static double step_f64(double start, double end, int64_t steps)
{
    return (end - start) / (double)(steps - 1);
}

static double between_f64(double start, double end, int64_t i, int64_t steps)
{
    const double step = step_f64(start, end, steps);
    return i < steps / 2 ? fma(step, (double)i, start) : fma(-step, (double)(steps - 1 - i), end);
}

Tensor *tensor_linspace(double start, double end, int64_t steps, TensorDtype dtype)
{
    if (steps < 0) return fail(TENSOR_EVALUE, __func__, "%lld steps: want 0 or more", (long long)steps), NULL;
    if ((unsigned)dtype >= TENSOR_DTYPES)
        return fail(TENSOR_EDTYPE, __func__, "no such dtype: %d", (int)dtype), NULL;
    if (!dtype_is_float((int)dtype) && (!isfinite(start) || !isfinite(end)))
        return fail(TENSOR_EVALUE, __func__, "from %g to %g: integers want finite numbers", start, end), NULL;
    bool single = dtype == TENSOR_F32 || dtype == TENSOR_F16 || dtype == TENSOR_BF16, made;
    if (!dtype_is_float((int)dtype)) start = trunc(start), end = trunc(end);
    FillArgs args = { .kind = single && steps > 1 ? FILL_BETWEEN_F32 : FILL_BETWEEN, .count = steps };
    args.value = start, args.end = steps == 1 ? start : end;
    if (steps > 1) args.step = single ? step_f32(start, end, steps) : step_f64(start, end, steps);
    Tensor *there = on_device(__func__, (int)dtype, &args, start, args.end, &made);
    if (made) return there;
    Tensor *host = new_tensor_as(__func__, SHAPE(steps), TENSOR_F64, &cpu_place);
    if (!host) return NULL;
    double *y = host->data;
    for (int64_t i = 0; i < steps; i++)
        y[i] = steps == 1 ? start
               : single   ? between_f32(start, end, i, steps)
                          : between_f64(start, end, i, steps);
    return deliver(__func__, host, (int)dtype);
}

/* Each power of base in f64, rounded once. */
Tensor *tensor_logspace(double start, double end, int64_t steps, double base, TensorDtype dtype)
{
    if (steps < 0) return fail(TENSOR_EVALUE, __func__, "%lld steps: want 0 or more", (long long)steps), NULL;
    if ((unsigned)dtype >= TENSOR_DTYPES)
        return fail(TENSOR_EDTYPE, __func__, "no such dtype: %d", (int)dtype), NULL;
    Tensor *host = new_tensor_as(__func__, SHAPE(steps), TENSOR_F64, &cpu_place);
    if (!host) return NULL;
    if (!dtype_is_float((int)dtype)) start = trunc(start), end = trunc(end);
    double *y = host->data;
    for (int64_t i = 0; i < steps; i++)
        y[i] = pow(base, steps == 1 ? start : between_f64(start, end, i, steps));
    return deliver(__func__, host, (int)dtype);
}

/* ---- of x's dtype, where x is ---------------------------------------------------------------- */

Tensor *tensor_new_empty(const Tensor *x, TensorShape shape)
{
    return check_null(x, __func__, 1) ? NULL : own(new_tensor_as(__func__, shape, x->dtype, x->place));
}

Tensor *tensor_new_full(const Tensor *x, TensorShape shape, double value)
{
    return check_null(x, __func__, 1) ? NULL : filled(__func__, shape, value, x->dtype, x->place);
}

Tensor *tensor_new_zeros(const Tensor *x, TensorShape shape)
{
    return check_null(x, __func__, 1) ? NULL : filled(__func__, shape, 0, x->dtype, x->place);
}

Tensor *tensor_new_ones(const Tensor *x, TensorShape shape)
{
    return check_null(x, __func__, 1) ? NULL : filled(__func__, shape, 1, x->dtype, x->place);
}

/* ---- triangles, as lists of places ----------------------------------------------------------- */

/* The rows [begin, end) of a triangle that have places; `whole` of them have all columns. */
typedef struct Triangle {
    int64_t columns, offset, begin, end, whole;
    bool lower;
} Triangle;

static int64_t within(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

static Triangle triangle_of(int64_t rows, int64_t columns, int64_t offset, bool lower)
{
    offset = within(offset, -rows, columns); /* beyond the corners nothing changes */
    int64_t corner; /* the row whose last (upper: first) place would lie right of the last column */
    if (__builtin_sub_overflow(columns, offset, &corner)) corner = INT64_MAX;
    Triangle t = { .columns = columns, .offset = offset, .lower = lower };
    t.begin = lower && offset < 0 ? -offset : 0;
    t.end = columns == 0 ? t.begin : lower ? rows : within(rows, 0, corner);
    t.whole = lower              ? t.end - within(corner - 1, t.begin, t.end)
              : offset <= -t.end ? t.end
                                 : within(1 - offset, 0, t.end);
    return t;
}

/* The columns [from, to) of a row. */
static void row_of(const Triangle *t, int64_t i, int64_t *from, int64_t *to)
{
    int64_t edge = within(i + t->offset + t->lower, 0, t->columns);
    *from = t->lower ? 0 : edge, *to = t->lower ? edge : t->columns;
}

/* From one incomplete row to the next the number of places changes by one. */
static bool count_places(const Triangle *t, int64_t *count)
{
    int64_t part = t->end - t->begin - t->whole, all, ends[2] = { 0, 0 };
    if (__builtin_mul_overflow(t->whole, t->columns, &all)) return false;
    for (int k = 0; part && k < 2; k++) {
        int64_t first = t->lower ? t->begin : t->begin + t->whole, from, to;
        row_of(t, k ? first + part - 1 : first, &from, &to);
        ends[k] = to - from;
    }
    uint64_t twice, sum;
    if (__builtin_mul_overflow((uint64_t)part, (uint64_t)ends[0] + (uint64_t)ends[1], &twice)) return false;
    if (__builtin_add_overflow((uint64_t)all, twice / 2, &sum) || sum > INT64_MAX / 32) return false;
    *count = (int64_t)sum;
    return true;
}

/* The places of a triangle row by row. */
static Tensor *triangle(const char *op, int64_t rows, int64_t columns, int64_t offset, bool lower)
{
    int64_t count, from, to;
    if (rows < 0 || columns < 0)
        return fail(TENSOR_ESHAPE, op, "of [%lld, %lld]: want sizes of 0 and more", (long long)rows,
                    (long long)columns),
               NULL;
    Triangle t = triangle_of(rows, columns, offset, lower);
    if (!count_places(&t, &count))
        return fail(TENSOR_ESHAPE, op, "of [%lld, %lld]: too many places", (long long)rows,
                    (long long)columns),
               NULL;
    Tensor *host = new_tensor_as(op, SHAPE(2, count), TENSOR_I64, &cpu_place);
    if (!host) return NULL;
    int64_t *row = host->data, *column = row + count;
    for (int64_t i = t.begin; i < t.end; i++) {
        row_of(&t, i, &from, &to);
        for (int64_t j = from; j < to; j++) *row++ = i, *column++ = j;
    }
    return deliver(op, host, TENSOR_I64);
}

Tensor *tensor_tril_indices(int64_t rows, int64_t columns, int64_t offset)
{
    return triangle("tensor_tril_indices", rows, columns, offset, true);
}

Tensor *tensor_triu_indices(int64_t rows, int64_t columns, int64_t offset)
{
    return triangle("tensor_triu_indices", rows, columns, offset, false);
}

/* ---- matrices and memory --------------------------------------------------------------------- */

Tensor *tensor_eye(int64_t rows, int64_t columns, TensorDtype dtype)
{
    Tensor *x = filled(__func__, SHAPE(rows, columns), 0, (int)dtype, default_place());
    if (!x || x->numel == 0) return x;
    Tensor *diagonal =
        new_view(x, 1, (int64_t[]){ rows < columns ? rows : columns }, (int64_t[]){ columns + 1 }, 0);
    int status = diagonal ? raw_fill(diagonal, 1) : -1;
    tensor_release(diagonal);
    return status < 0 ? NULL : x;
}

static Tensor *from_data(const char *op, const void *data, size_t room, TensorShape shape, int dtype,
                         const Place *place)
{
    Tensor *x = new_tensor_as(op, shape, dtype, place);
    if (!x || x->numel == 0) return own(x);
    size_t bytes = (size_t)x->numel * dtype_size(x->dtype);
    int status;
    if (!data) status = fail(TENSOR_ENULL, op, "data is NULL");
    else if (bytes > room)
        status = fail(TENSOR_EDTYPE, op, "%s of %s takes %zu bytes, %zu of each element: %zu are there", S(x),
                      tensor_dtype_name((TensorDtype)dtype), bytes, dtype_size(dtype), room);
    else if (!on_host(place) && graph_wait(op, "copies from the host")) status = -1;
    else
        status =
            kernel_status(place->device->to_device(place->context, x->data, data, bytes), op, place, "copy");
    if (status == 0) return own(x);
    tensor_release(x);
    return NULL;
}

Tensor *(tensor_from_data)(const void *data, TensorShape shape, TensorDtype dtype)
{
    return from_data(__func__, data, SIZE_MAX, shape, (int)dtype, default_place());
}

Tensor *tensor_from_data_sized(const void *data, size_t bytes, TensorShape shape, TensorDtype dtype)
{
    return from_data("tensor_from_data", data, bytes, shape, (int)dtype, default_place());
}

Tensor *tensor_new_tensor(const Tensor *x, const void *data, TensorShape shape)
{
    return check_null(x, __func__, 1) ? NULL : from_data(__func__, data, SIZE_MAX, shape, x->dtype, x->place);
}

/* ---- pinned memory of the host --------------------------------------------------------------- */

static void unpin(void *data, void *place)
{
    const Place *p = place;
    p->device->unpin(p->context, data);
}

Tensor *tensor_pin_memory(Tensor *x, const char *device)
{
    static const char name[] = "tensor_pin_memory";
    if (check_null(x, name, 1)) return NULL;
    const Place *place = find_place(device, name);
    if (!place) return NULL;
    if (!on_host(x->place)) return fail(TENSOR_EDEVICE, name, "x is on %s: want cpu", x->place->name), NULL;
    if (!place->device->pin || storage_deleter(x->storage) == unpin) return borrow(x);
    void *data = place->device->pin(place->context, x->numel ? (size_t)x->numel * dtype_size(x->dtype) : 1);
    if (!data) return kernel_status(KERNEL_NO_MEMORY, name, place, "pin"), NULL;
    Tensor *y = tensor_from_blob(data, shape_of(x), (TensorDtype)x->dtype, unpin, (void *)(uintptr_t)place);
    if (!y) return unpin(data, (void *)(uintptr_t)place), NULL;
    return raw_copy(y, x) ? NULL : y;
}

bool tensor_is_pinned(const Tensor *x)
{
    return !check_null(x, "tensor_is_pinned", 1) && storage_deleter(x->storage) == unpin;
}
