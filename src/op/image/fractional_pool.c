/* fractional_pool.c - max pooling over windows at random distances (Graham 2014), composed of gather and max.
 *
 *   start_i = floor((i + u) a) - floor(u a),  a = (in - kernel) / (out - 1),  the last: in - kernel
 *
 * with one u in [0, 1) for each plane and direction, computed in the input's type, as PyTorch does. */
#include "cpu/image/random_windows.h"
#include "op/elementwise/dropout.h"
#include "op/shape/shape_op.h"

const TensorFractionalMaxPoolArgs tensor_fractional_max_pool_defaults = {
    TENSOR_FRACTIONAL_MAX_POOL_DEFAULTS
};

typedef struct Fractional {
    const TensorFractionalMaxPoolArgs *args;
    const char *name;
    RandomWindows at;
} Fractional;

static int64_t product(const int64_t *size, int rank)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++) n *= size[d];
    return n;
}

/* Sizes of the last dims, as the options have them. */
static int read_sizes(Fractional *f, Tensor *x)
{
    const TensorFractionalMaxPoolArgs *a = f->args;
    const int lead = tensor_ndim(x) - f->at.rank;
    if (lead != 1 && lead != 2)
        return tensor_fail(TENSOR_ESHAPE, f->name,
                           "an input of rank %d: want [N, C, ...], or [C, ...], and %d sizes", tensor_ndim(x),
                           f->at.rank);
    bool each = false, ratios = false;
    for (int d = 0; d < f->at.rank; d++) each |= a->kernel_sizes[d] != 0, ratios |= a->output_ratios[d] != 0;
    const int sizes = a->output_size.ndim;
    const bool ratio = ratios || a->output_ratio != 0;
    if ((sizes != 0) == ratio || (sizes && sizes != 1 && sizes != f->at.rank))
        return tensor_fail(TENSOR_EVALUE, f->name, "want one of output_size, of %d sizes, and output_ratio",
                           f->at.rank);
    f->at.planes = 1;
    for (int d = 0; d < lead; d++) f->at.planes *= tensor_size(x, d);
    for (int d = 0; d < f->at.rank; d++) {
        const double part = ratios ? a->output_ratios[d] : a->output_ratio;
        f->at.in[d] = tensor_size(x, lead + d);
        f->at.kernel[d] = each ? a->kernel_sizes[d] : a->kernel_size;
        if (ratio && !(part > 0 && part < 1))
            return tensor_fail(TENSOR_EVALUE, f->name, "output_ratio %g: want one between 0 and 1", part);
        f->at.out[d] = sizes ? a->output_size.dim[sizes == 1 ? 0 : d] : (int64_t)((double)f->at.in[d] * part);
        if (f->at.kernel[d] < 1 || f->at.out[d] < 1 || f->at.out[d] + f->at.kernel[d] - 1 > f->at.in[d])
            return tensor_fail(TENSOR_EVALUE, f->name,
                               "%lld windows of %lld over a size of %lld: they do not fit",
                               (long long)f->at.out[d], (long long)f->at.kernel[d], (long long)f->at.in[d]);
    }
    return 0;
}

static Tensor *samples_of(const Fractional *f, Tensor *x)
{
    const int lead = tensor_ndim(x) - f->at.rank;
    const TensorShape want = SHAPE(lead == 2 ? tensor_size(x, 0) : 1, tensor_size(x, lead - 1), f->at.rank);
    Tensor *u = f->args->random_samples;
    if (!u)
        return draws_as_torch(x->place) ? tensor_rand(want, tensor_dtype(x))
                                        : philox_uniform(f->name, want, x->dtype, x->place);
    bool fits = tensor_ndim(u) == 3;
    for (int d = 0; d < 3 && fits; d++) fits = tensor_size(u, d) == want.dim[d];
    if (fits) return u;
    return tensor_fail(TENSOR_ESHAPE, f->name, "random_samples of another shape than [%lld, %lld, %d]",
                       (long long)want.dim[0], (long long)want.dim[1], f->at.rank),
           NULL;
}

static Tensor *shaped_as(Tensor *y, const Tensor *x, const Fractional *f)
{
    int64_t size[TENSOR_MAX_DIMS];
    const int rank = tensor_ndim(x);
    for (int d = 0; d < rank; d++)
        size[d] = d < rank - f->at.rank ? tensor_size(x, d) : f->at.out[d - rank + f->at.rank];
    return tensor_reshape(y, ((TensorShape){ rank, size }));
}

/* Where x's elements of all windows lie in their plane: i64 [planes, windows elements]. */
static Tensor *places_here(const Fractional *f, Tensor *u, int64_t elements)
{
    u = tensor_contiguous(tensor_to(tensor_to_device(u, "cpu"), TENSOR_F64));
    Tensor *places = u ? own(new_tensor(SHAPE(f->at.planes, elements), TENSOR_I64, &cpu_place)) : NULL;
    if (places && places->numel) random_windows(&f->at, tensor_data(u), tensor_data(places));
    return places;
}

/* [planes, out]: where the windows of direction d begin. */
static Tensor *starts_there(const Fractional *f, Tensor *u, int d)
{
    const int64_t in = f->at.in[d], out = f->at.out[d], kernel = f->at.kernel[d];
    const TensorDtype dtype = f->at.is_f64 ? TENSOR_F64 : TENSOR_F32;
    const double a = f->at.is_f64 ? (double)(in - kernel) / (double)(out - 1)
                                  : (double)((float)(in - kernel) / (float)(out - 1));
    Tensor *last = own(new_tensor(SHAPE(f->at.planes, 1), TENSOR_I64, u->place));
    if (!last || raw_fill(last, (double)(in - kernel)) || out == 1) return last;
    /* PyTorch draws for width before height, and in three dimensions for depth first */
    Tensor *v = tensor_narrow(tensor_reshape(tensor_to(u, dtype), SHAPE(f->at.planes, f->at.rank)), 1,
                              f->at.rank == 2 ? 1 - d : d, 1);
    Tensor *end = tensor_mul_scalar(tensor_add(numbers_on(out - 1, dtype, u->place), v), a);
    Tensor *start = tensor_sub(tensor_to(end, TENSOR_I64), tensor_to(tensor_mul_scalar(v, a), TENSOR_I64));
    return tensor_cat(TENSORS(start, last), 1);
}

static Tensor *places_there(const Fractional *f, Tensor *u)
{
    Tensor *at = NULL;
    for (int d = 0; u && d < f->at.rank; d++) {
        int64_t window[1 + 6] = { f->at.planes, 1, 1, 1, 1, 1, 1 }, element[6] = { 1, 1, 1, 1, 1, 1 };
        const int n = 2 * f->at.rank; /* windows, then elements */
        window[1 + d] = f->at.out[d], element[f->at.rank + d] = f->at.kernel[d];
        Tensor *start = tensor_reshape(starts_there(f, u, d), (TensorShape){ 1 + n, window }),
               *k = tensor_reshape(numbers_on(f->at.kernel[d], TENSOR_I64, u->place),
                                   (TensorShape){ n, element });
        Tensor *here = tensor_add(start, k);
        at = d ? tensor_add(tensor_mul_scalar(at, (double)f->at.in[d]), here) : here;
    }
    return tensor_reshape(at, SHAPE(f->at.planes, -1));
}

static Tensor *pool(Fractional *f, Tensor **indices)
{
    Tensor *x = f->args->input;
    if (read_sizes(f, x)) return NULL;
    f->at.is_f64 = tensor_dtype(x) == TENSOR_F64;
    const int64_t windows = product(f->at.out, f->at.rank), elements = product(f->at.kernel, f->at.rank);
    Tensor *u = samples_of(f, x);
    const bool there = u && !on_host(x->place) && u->place == x->place && x->numel;
    Tensor *places = there ? places_there(f, tensor_detach(u))
                     : u   ? places_here(f, u, windows * elements)
                           : NULL;
    if (!places) return NULL;
    places = tensor_to_device(places, tensor_device(x));
    const TensorShape windowed = SHAPE(f->at.planes, windows, elements);
    Tensor *flat = tensor_reshape(x, SHAPE(f->at.planes, product(f->at.in, f->at.rank))), *best;
    Tensor *y = tensor_max_dim(tensor_reshape(tensor_gather(flat, 1, places), windowed), 2, .indices = &best);
    if (y && indices) {
        Tensor *at = tensor_gather(tensor_reshape(places, windowed), 2, tensor_unsqueeze(best, 2));
        *indices = shaped_as(tensor_squeeze(at, 2), x, f);
        if (!*indices) return NULL;
    }
    return y ? shaped_as(y, x, f) : NULL;
}

static Tensor *run(const TensorFractionalMaxPoolArgs *a, int rank, const char *name)
{
    if (a->indices) *a->indices = NULL;
    if (!a->input) {
        if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, name, "the input is NULL");
        return NULL;
    }
    Fractional f = { .args = a, .name = name, .at.rank = rank };
    Tensor *at = NULL;
    const char *outer = tensor_compose_begin(name);
    TensorScope scope = tensor_scope_open();
    Tensor *y = pool(&f, a->indices ? &at : NULL);
    tensor_retain(at);
    y = tensor_scope_return(scope, y);
    if (at && y) *a->indices = tensor_scope_return(tensor_scope_open(), at);
    tensor_release(at);
    tensor_compose_end(outer);
    return y;
}

Tensor *tensor_fractional_max_pool2d_args(TensorFractionalMaxPoolArgs a)
{
    return run(&a, 2, "tensor_fractional_max_pool2d");
}
Tensor *tensor_fractional_max_pool3d_args(TensorFractionalMaxPoolArgs a)
{
    return run(&a, 3, "tensor_fractional_max_pool3d");
}
