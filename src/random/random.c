/* random.c - the drawing functions: each checks its arguments and names the loop of engine.h that fills.
 *
 * Halves are drawn as floats that are rounded to their bits already; the copy into the tensor is exact. */
#include <tapegrad/random.h>
#include "draw.h"

#include <math.h>

static int half_bits(int dtype) { return dtype == TENSOR_F16 ? 11 : 8; }

int draw_check_float(const char *op, int dtype)
{
    if ((unsigned)dtype < TENSOR_DTYPES && dtype_is_float(dtype)) return 0;
    return fail(TENSOR_EDTYPE, op, "%s: want f32, f64, f16 or bf16", tensor_dtype_name((TensorDtype)dtype));
}

/* ---- fills: the kinds of Draw ---------------------------------------------------------------- */

static int fill_uniform(Mt19937 *g, void *out, int64_t n, const Draw *d) /* at: low, high */
{
    if (d->dtype == TENSOR_F32) mt_uniform_f32(g, out, n, d->at[0], d->at[1]);
    else if (d->dtype == TENSOR_F64) mt_uniform_f64(g, out, n, d->at[0], d->at[1]);
    else mt_uniform_half(g, out, n, d->at[0], d->at[1], half_bits(d->dtype));
    return 0;
}

int fill_normal(Mt19937 *g, void *out, int64_t n, const Draw *d) /* at: mean, std */
{
    int64_t few = d->one_by_one ? 8 : n; /* counts below 16 have the recipe for few */
    for (int64_t i = 0; i < n; i += few) {
        int64_t count = n - i < few ? n - i : few;
        if (d->dtype == TENSOR_F32) mt_normal_f32(g, (float *)out + i, count, d->at[0], d->at[1]);
        else if (d->dtype == TENSOR_F64) mt_normal_f64(g, (double *)out + i, count, d->at[0], d->at[1]);
        else mt_normal_half(g, (float *)out + i, count, d->at[0], d->at[1], half_bits(d->dtype));
    }
    return 0;
}

/* In f64 and rounded to f32; halves are rounded once more by the copy, as in PyTorch. */
int fill_exponential(Mt19937 *g, void *out, int64_t n, const Draw *d)
{
    if (d->drawn == TENSOR_F64) mt_exponential_f64(g, out, n, d->at[0]);
    else mt_exponential_f32(g, out, n, d->at[0]);
    return 0;
}

static int fill_trunc_normal(Mt19937 *g, void *out, int64_t n, const Draw *d) /* at: mean, std, a, b */
{
    size_t size = dtype_size(d->drawn), bytes = (size_t)n * (size + 1);
    char *scratch = tg_alloc(bytes);
    if (!scratch) return fail_memory(d->op);
    uint8_t *pending = (uint8_t *)scratch + (size_t)n * size;
    const double *at = d->at;
    if (d->drawn == TENSOR_F64)
        mt_trunc_normal_f64(g, out, n, at[0], at[1], at[2], at[3], (double *)(void *)scratch, pending);
    else mt_trunc_normal_f32(g, out, n, at[0], at[1], at[2], at[3], (float *)(void *)scratch, pending);
    tg_free(scratch, bytes);
    return 0;
}

static int fill_bernoulli(Mt19937 *g, void *out, int64_t n, const Draw *d) /* at: p */
{
    mt_bernoulli(g, out, n, d->at[0]);
    return 0;
}

Tensor *draw_mask_like(const Tensor *x, const char *op, double p)
{
    return draw_like(x, TENSOR_BOOL, (Draw){ op, fill_bernoulli, .drawn = TENSOR_BOOL, .at = { p } });
}

static int fill_randint(Mt19937 *g, void *out, int64_t n, const Draw *d)
{
    mt_randint(g, out, n, d->low, d->high);
    return 0;
}

static int fill_randperm(Mt19937 *g, void *out, int64_t n, const Draw *d)
{
    (void)d;
    mt_randperm(g, out, n);
    return 0;
}

/* What tensor_random_ draws from: a power of two; of floats up to the last integer before the first gap. */
static uint64_t range_of(int dtype)
{
    static const uint64_t range[TENSOR_DTYPES] = {
        (1 << 24) + 1,     (UINT64_C(1) << 53) + 1, (1 << 11) + 1, (1 << 8) + 1,
        UINT64_C(1) << 63, UINT64_C(1) << 31,       256,           2
    };
    return range[dtype];
}

/* One word, two for i64. */
static int fill_random(Mt19937 *g, void *out, int64_t n, const Draw *d)
{
    int64_t *x = out;
    switch (d->dtype) {
    case TENSOR_I64:
        for (int64_t i = 0; i < n; i++) x[i] = mt_random_i64(g);
        break;
    case TENSOR_I32:
        for (int64_t i = 0; i < n; i++) x[i] = mt_u32(g) & INT32_MAX;
        break;
    default: mt_randint(g, x, n, 0, (int64_t)range_of(d->dtype)); break;
    }
    return 0;
}

/* ---- new tensors ----------------------------------------------------------------------------- */

int draw_check_std(const char *op, double std)
{
    return std >= 0 ? 0 : fail(TENSOR_EVALUE, op, "std is %g: want 0 or more", std);
}

Tensor *tensor_rand(TensorShape shape, TensorDtype dtype)
{
    if (draw_check_float("tensor_rand", dtype)) return NULL;
    return draw_new(shape, dtype,
                    (Draw){ "tensor_rand", fill_uniform, .torch = RANDOM_TORCH_UNIFORM,
                            .drawn = draw_wide(dtype), .at = { 0, 1 } });
}

Tensor *tensor_randn(TensorShape shape, TensorDtype dtype)
{
    if (draw_check_float("tensor_randn", dtype)) return NULL;
    return draw_new(shape, dtype,
                    (Draw){ "tensor_randn", fill_normal, .torch = RANDOM_TORCH_NORMAL,
                            .drawn = draw_wide(dtype), .at = { 0, 1 } });
}

Tensor *tensor_normal(double mean, double std, TensorShape shape, TensorDtype dtype)
{
    if (draw_check_float("tensor_normal", dtype) || draw_check_std("tensor_normal", std)) return NULL;
    return draw_new(shape, dtype,
                    (Draw){ "tensor_normal", fill_normal, .torch = RANDOM_TORCH_NORMAL,
                            .drawn = draw_wide(dtype), .at = { mean, std } });
}

Tensor *tensor_rand_like(const Tensor *x)
{
    if (check_null(x, "tensor_rand_like", 1) || draw_check_float("tensor_rand_like", x->dtype)) return NULL;
    return draw_like(x, x->dtype,
                     (Draw){ "tensor_rand_like", fill_uniform, .torch = RANDOM_TORCH_UNIFORM,
                             .drawn = draw_wide(x->dtype), .at = { 0, 1 } });
}

Tensor *tensor_randn_like(const Tensor *x)
{
    if (check_null(x, "tensor_randn_like", 1) || draw_check_float("tensor_randn_like", x->dtype)) return NULL;
    return draw_like(x, x->dtype,
                     (Draw){ "tensor_randn_like", fill_normal, .torch = RANDOM_TORCH_NORMAL,
                             .drawn = draw_wide(x->dtype), .at = { 0, 1 } });
}

Tensor *tensor_randint(int64_t low, int64_t high, TensorShape shape)
{
    if (low >= high)
        return fail(TENSOR_EVALUE, "tensor_randint", "on [%lld, %lld): want low < high", (long long)low,
                    (long long)high),
               NULL;
    return draw_new(shape, TENSOR_I64,
                    (Draw){ "tensor_randint", fill_randint, .torch = RANDOM_TORCH_INTEGERS,
                            .drawn = TENSOR_I64, .low = low, .high = high });
}

Tensor *tensor_randint_like(const Tensor *x, int64_t low, int64_t high)
{
    static const int64_t most[TENSOR_DTYPES] = { 1 << 24,   INT64_C(1) << 53, 1 << 11, 1 << 8,
                                                 INT64_MAX, INT32_MAX,        255,     1 };
    if (check_null(x, __func__, 1)) return NULL;
    const int64_t top = most[x->dtype], least = dtype_is_float(x->dtype) ? -top
                                                : x->dtype >= TENSOR_U8  ? 0
                                                                         : -top - 1;
    if (low >= high || low < least || high - 1 > top)
        return fail(TENSOR_EVALUE, __func__,
                    "on [%lld, %lld): want low < high, and for %s numbers from %lld to %lld", (long long)low,
                    (long long)high, tensor_dtype_name((TensorDtype)x->dtype), (long long)least,
                    (long long)top),
               NULL;
    return draw_like(x, x->dtype,
                     (Draw){ "tensor_randint_like", fill_randint, .torch = RANDOM_TORCH_INTEGERS,
                             .drawn = TENSOR_I64, .low = low, .high = high });
}

Tensor *tensor_randperm(int64_t n)
{
    if (n < 0)
        return fail(TENSOR_EVALUE, "tensor_randperm", "of %lld elements: want 0 or more", (long long)n), NULL;
    return draw_new(SHAPE(n), TENSOR_I64, (Draw){ "tensor_randperm", fill_randperm, .drawn = TENSOR_I64 });
}

/* ---- in place -------------------------------------------------------------------------------- */

static double largest(int dtype)
{
    return dtype == TENSOR_F64   ? 0x1.fffffffffffffp1023
           : dtype == TENSOR_F32 ? 0x1.fffffep127
           : dtype == TENSOR_F16 ? 65504
                                 : 0x1.fep127;
}

static int check_bounds(const char *op, int dtype, double lo, double hi)
{
    double most = largest(dtype);
    if (!(lo <= hi)) return fail(TENSOR_EVALUE, op, "on [%g, %g): want low <= high", lo, hi);
    if (lo < -most || hi > most || hi - lo > most)
        return fail(TENSOR_EVALUE, op, "on [%g, %g): beyond the range of %s", lo, hi,
                    tensor_dtype_name((TensorDtype)dtype));
    return 0;
}

Tensor *tensor_uniform_(Tensor *x, double lo, double hi)
{
    static const char op[] = "tensor_uniform_";
    if (check_null(x, op, 1) || draw_check_float(op, x->dtype) || check_bounds(op, x->dtype, lo, hi))
        return NULL;
    return draw_into(x,
                     (Draw){ op, fill_uniform, .torch = RANDOM_TORCH_UNIFORM, .drawn = draw_wide(x->dtype),
                             .at = { lo, hi } },
                     SITE);
}

Tensor *tensor_normal_(Tensor *x, double mean, double std)
{
    static const char op[] = "tensor_normal_";
    if (check_null(x, op, 1) || draw_check_float(op, x->dtype) || draw_check_std(op, std)) return NULL;
    return draw_into(x,
                     (Draw){ op, fill_normal, .torch = RANDOM_TORCH_NORMAL, .drawn = draw_wide(x->dtype),
                             .at = { mean, std } },
                     SITE);
}

Tensor *tensor_random_(Tensor *x)
{
    if (check_null(x, "tensor_random_", 1)) return NULL;
    return draw_into(x,
                     (Draw){ "tensor_random_", fill_random, .torch = RANDOM_TORCH_INTEGERS,
                             .drawn = TENSOR_I64, .range = range_of(x->dtype) },
                     SITE);
}

Tensor *tensor_bernoulli_(Tensor *x, double p)
{
    static const char op[] = "tensor_bernoulli_";
    if (check_null(x, op, 1)) return NULL;
    if (!(p >= 0 && p <= 1)) return fail(TENSOR_EVALUE, op, "probability %g: want 0 to 1", p), NULL;
    return draw_into(
        x, (Draw){ op, fill_bernoulli, .torch = RANDOM_TORCH_BERNOULLI, .drawn = TENSOR_BOOL, .at = { p } },
        SITE);
}

Tensor *tensor_exponential_(Tensor *x, double rate)
{
    static const char op[] = "tensor_exponential_";
    if (check_null(x, op, 1) || draw_check_float(op, x->dtype)) return NULL;
    if (!(rate > 0)) return fail(TENSOR_EVALUE, op, "rate %g: want more than 0", rate), NULL;
    return draw_into(x,
                     (Draw){ op, fill_exponential, .torch = RANDOM_TORCH_EXPONENTIAL,
                             .drawn = draw_wide(x->dtype), .at = { rate } },
                     SITE);
}

/* Rejection must come to an end: there must be numbers to draw on [a, b], and in the tail (all of [a, b] on
 * one side of the mean) draws on [a, b] are accepted about once in (b - a) (distance + std) / std^2. */
static int check_trunc_normal(const char *op, int dtype, double mean, double std, double a, double b)
{
    if (!(std > 0) || !(a < b) || !isfinite(mean) || !isfinite(std))
        return fail(TENSOR_EVALUE, op, "mean %g, std %g, cut to [%g, %g]: want finite ones, std > 0, a < b",
                    mean, std, a, b);
    if (std < fabs(mean) * (dtype == TENSOR_F64 ? 1e-14 : 1e-6))
        return fail(TENSOR_EVALUE, op, "std %g is too small beside mean %g for %s", std, mean,
                    tensor_dtype_name((TensorDtype)dtype));
    double distance = a > mean ? a - mean : mean - b;
    if (distance > 0 && !((b - a) / std * ((distance + std) / std) < 1e5))
        return fail(TENSOR_EVALUE, op, "[%g, %g] is too wide beside the tail of mean %g, std %g in it", a, b,
                    mean, std);
    return 0;
}

Tensor *tensor_trunc_normal_(Tensor *x, double mean, double std, double a, double b)
{
    static const char op[] = "tensor_trunc_normal_";
    if (check_null(x, op, 1) || draw_check_float(op, x->dtype) ||
        check_trunc_normal(op, x->dtype, mean, std, a, b))
        return NULL;
    return draw_into(
        x, (Draw){ op, fill_trunc_normal, .drawn = draw_wide(x->dtype), .at = { mean, std, a, b } }, SITE);
}
