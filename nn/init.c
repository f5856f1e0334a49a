/* init.c - initial values.  The arithmetic keeps PyTorch's order of operations, so that bounds agree to the
 * last bit. */
#include <math.h>
#include <stdlib.h>
#include "module.h"

const NNInitArgs nn_init_defaults = { NN_INIT_DEFAULTS };
const NNTruncArgs nn_init_trunc_normal_defaults = { NN_INIT_TRUNC_NORMAL_DEFAULTS };
const NNXavierArgs nn_init_xavier_defaults = { NN_INIT_XAVIER_DEFAULTS };
const NNKaimingArgs nn_init_kaiming_defaults = { NN_INIT_KAIMING_DEFAULTS };
const NNDiracArgs nn_init_dirac_defaults = { NN_INIT_DIRAC_DEFAULTS };
const NNSparseArgs nn_init_sparse_defaults = { NN_INIT_SPARSE_DEFAULTS };

/* One in-place call on x, without grad mode; its errors name the function that was called. */
#define FILL(function, call)                            \
    const char *outer = tensor_compose_begin(function); \
    const bool was = tensor_set_grad_enabled(false);    \
    Tensor *filled = call;                              \
    tensor_set_grad_enabled(was);                       \
    tensor_compose_end(outer);                          \
    return filled

Tensor *nn_init_constant_(Tensor *x, double value) { FILL("nn_init_constant_", tensor_fill_(x, value)); }
Tensor *nn_init_zeros_(Tensor *x) { FILL("nn_init_zeros_", tensor_fill_(x, 0)); }
Tensor *nn_init_ones_(Tensor *x) { FILL("nn_init_ones_", tensor_fill_(x, 1)); }

Tensor *nn_init_uniform_args(NNInitArgs args)
{
    if (TENSOR_CHECK_OPTIONS("nn_init_uniform_", args, nn_init_defaults)) return NULL;
    FILL("nn_init_uniform_", tensor_uniform_(args.tensor, args.a, args.b));
}

Tensor *nn_init_normal_args(NNInitArgs args)
{
    if (TENSOR_CHECK_OPTIONS("nn_init_normal_", args, nn_init_defaults)) return NULL;
    FILL("nn_init_normal_", tensor_normal_(args.tensor, args.a, args.b));
}

Tensor *nn_init_trunc_normal_args(NNTruncArgs args)
{
    if (TENSOR_CHECK_OPTIONS("nn_init_trunc_normal_", args, nn_init_trunc_normal_defaults)) return NULL;
    FILL("nn_init_trunc_normal_", tensor_trunc_normal_(args.tensor, args.mean, args.std, args.a, args.b));
}

double nn_calculate_gain(NNGain nonlinearity, double slope)
{
    static const char *const names[] = { "linear", "tanh", "relu", "leaky_relu", "selu", NULL };
    switch (nonlinearity) {
    case NN_GAIN_LINEAR: return 1;
    case NN_GAIN_TANH: return 5.0 / 3;
    case NN_GAIN_RELU: return sqrt(2.0);
    case NN_GAIN_LEAKY_RELU: return sqrt(2.0 / (1 + slope * slope));
    case NN_GAIN_SELU: return 3.0 / 4;
    }
    tensor_check_choice("nn_calculate_gain", "nonlinearity", (int)nonlinearity, names);
    return NAN;
}

/* The two fans; -1 and recorded when x has none. */
static int fans(const Tensor *x, const char *function, double *in, double *out)
{
    if (!x) {
        if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "the tensor is NULL");
        return -1;
    }
    TensorShape s = tensor_shape(x);
    if (s.ndim < 2)
        return tensor_fail(TENSOR_ESHAPE, function, "a tensor of rank %d: fans need rank 2 or more", s.ndim);
    double field = 1;
    for (int d = 2; d < s.ndim; d++) field *= (double)s.dim[d];
    *in = (double)s.dim[1] * field, *out = (double)s.dim[0] * field;
    return 0;
}

static int xavier_fans(const NNXavierArgs *args, const char *function, double *in, double *out)
{
    if (TENSOR_CHECK_OPTIONS(function, *args, nn_init_xavier_defaults)) return -1;
    return fans(args->tensor, function, in, out);
}

Tensor *nn_init_xavier_uniform_args(NNXavierArgs args)
{
    double in, out;
    if (xavier_fans(&args, "nn_init_xavier_uniform_", &in, &out)) return NULL;
    double a = sqrt(3.0) * (args.gain * sqrt(2.0 / (in + out)));
    FILL("nn_init_xavier_uniform_", tensor_uniform_(args.tensor, -a, a));
}

Tensor *nn_init_xavier_normal_args(NNXavierArgs args)
{
    double in, out;
    if (xavier_fans(&args, "nn_init_xavier_normal_", &in, &out)) return NULL;
    const double std = args.gain * sqrt(2.0 / (in + out));
    FILL("nn_init_xavier_normal_", tensor_normal_(args.tensor, 0, std));
}

/* gain / sqrt(fan), or -1. */
static double kaiming_std(NNKaimingArgs args, const char *function)
{
    static const char *const modes[] = { "fan_in", "fan_out", NULL };
    double in, out;
    if (TENSOR_CHECK_OPTIONS(function, args, nn_init_kaiming_defaults) ||
        tensor_check_choice(function, "mode", (int)args.mode, modes) ||
        fans(args.tensor, function, &in, &out))
        return -1;
    double gain = nn_calculate_gain(args.nonlinearity, args.a);
    return isnan(gain) ? -1 : gain / sqrt(args.mode == NN_FAN_OUT ? out : in);
}

Tensor *nn_init_kaiming_uniform_args(NNKaimingArgs args)
{
    double std = kaiming_std(args, "nn_init_kaiming_uniform_"), bound = sqrt(3.0) * std;
    if (std < 0) return NULL;
    if (!tensor_numel(args.tensor)) return nn_borrow(args.tensor);
    FILL("nn_init_kaiming_uniform_", tensor_uniform_(args.tensor, -bound, bound));
}

Tensor *nn_init_kaiming_normal_args(NNKaimingArgs args)
{
    double std = kaiming_std(args, "nn_init_kaiming_normal_");
    if (std < 0) return NULL;
    if (!tensor_numel(args.tensor)) return nn_borrow(args.tensor);
    FILL("nn_init_kaiming_normal_", tensor_normal_(args.tensor, 0, std));
}

/* ---- orthogonal ---------------------------------------------------------------------------------
 * PyTorch takes Q of the QR decomposition of a normal matrix and multiplies its columns by the signs of R's
 * diagonal.  That is the one decomposition whose diagonal is positive, which Gram-Schmidt gives; its second
 * pass makes up for rounding. */

static double dot(const double *a, const double *b, int64_t n, int64_t stride)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i * stride] * b[i * stride];
    return sum;
}

/* count vectors of n elements: vector k begins at x + k * next, its elements lie stride apart. */
static void orthonormalise(double *x, int64_t count, int64_t n, int64_t next, int64_t stride, double gain)
{
    for (int64_t k = 0; k < count; k++) {
        double *v = x + k * next;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < k; j++) {
                const double *u = x + j * next;
                double along = dot(u, v, n, stride);
                for (int64_t i = 0; i < n; i++) v[i * stride] -= along * u[i * stride];
            }
        double scale = 1 / sqrt(dot(v, v, n, stride));
        for (int64_t i = 0; i < n; i++) v[i * stride] *= scale;
    }
    for (int64_t i = 0; i < count * n; i++) x[i] *= gain;
}

static Tensor *orthogonal(NNXavierArgs args)
{
    int64_t rows = tensor_size(args.tensor, 0), count = tensor_numel(args.tensor),
            columns = rows ? count / rows : 0;
    if (count == 0) return nn_borrow(args.tensor);
    TensorScope scope = tensor_scope_open();
    Tensor *normal = tensor_to(tensor_randn(SHAPE(rows, columns), tensor_dtype(args.tensor)), TENSOR_F64),
           *done = NULL;
    size_t bytes = (size_t)count * sizeof(double);
    double *x = normal ? malloc(bytes) : NULL;
    if (normal && !x) tensor_fail(TENSOR_ENOMEM, "nn_init_orthogonal_", "out of memory");
    if (x && tensor_copy_to(normal, x, bytes) == 0) {
        if (rows < columns) orthonormalise(x, rows, columns, columns, 1, args.gain);
        else orthonormalise(x, columns, rows, 1, columns, args.gain);
        done = tensor_copy_(args.tensor, tensor_from_data(x, tensor_shape(args.tensor), TENSOR_F64));
    }
    free(x);
    return tensor_scope_return(scope, done);
}

Tensor *nn_init_orthogonal_args(NNXavierArgs args)
{
    double in, out;
    if (xavier_fans(&args, "nn_init_orthogonal_", &in, &out)) return NULL;
    FILL("nn_init_orthogonal_", orthogonal(args));
}

/* ---- few elements that are not 0 ------------------------------------------------------------- */

/* x's rank lies in [least, most]; -1 and recorded when not. */
static int check_rank(const Tensor *x, const char *function, int least, int most)
{
    if (!x) return tensor_error_code() ? -1 : tensor_fail(TENSOR_ENULL, function, "the tensor is NULL");
    const int rank = tensor_shape(x).ndim;
    if (rank >= least && rank <= most) return 0;
    return tensor_fail(TENSOR_ESHAPE, function, "a tensor of rank %d: want %d%s", rank, least,
                       most > least ? " to 5" : "");
}

/* 1 on the diagonals of so many groups of x's rows, at the middle of the other dims. */
static Tensor *diagonals(Tensor *x, int64_t groups)
{
    if (!tensor_numel(x)) return nn_borrow(x);
    TensorScope scope = tensor_scope_open();
    const int64_t rows = tensor_size(x, 0) / groups;
    Tensor *filled = tensor_fill_(x, 0), *middle = x;
    for (int d = tensor_shape(x).ndim; filled && --d >= 2;)
        middle = tensor_select(middle, d, tensor_size(x, d) / 2);
    for (int64_t g = 0; filled && g < groups; g++) {
        Tensor *diagonal = tensor_diagonal(tensor_narrow(middle, 0, g * rows, rows));
        if (!tensor_fill_(diagonal, 1)) filled = NULL;
    }
    return tensor_scope_return(scope, filled);
}

Tensor *nn_init_eye_(Tensor *x)
{
    if (check_rank(x, "nn_init_eye_", 2, 2)) return NULL;
    FILL("nn_init_eye_", diagonals(x, 1));
}

Tensor *nn_init_dirac_args(NNDiracArgs args)
{
    static const char function[] = "nn_init_dirac_";
    if (TENSOR_CHECK_OPTIONS(function, args, nn_init_dirac_defaults) ||
        check_rank(args.tensor, function, 3, 5))
        return NULL;
    const int64_t out = tensor_size(args.tensor, 0), groups = args.groups;
    if (groups < 1 || out % groups) {
        tensor_fail(groups < 1 ? TENSOR_EVALUE : TENSOR_ESHAPE, function,
                    "groups %lld for %lld channels: want a divisor of them", (long long)groups,
                    (long long)out);
        return NULL;
    }
    FILL(function, diagonals(args.tensor, groups));
}

static Tensor *sparse(Tensor *x, double sparsity, double std)
{
    const int64_t rows = tensor_size(x, 0), columns = tensor_size(x, 1),
                  zeros = (int64_t)ceil(sparsity * (double)rows);
    Tensor *filled = tensor_normal_(x, 0, std);
    for (int64_t c = 0; filled && c < columns; c++) {
        TensorScope scope = tensor_scope_open();
        Tensor *chosen = tensor_narrow(tensor_randperm(rows), 0, 0, zeros);
        chosen = tensor_to_device(chosen, tensor_device(x));
        if (!tensor_index_fill_(tensor_select(x, 1, c), 0, chosen, 0)) filled = NULL;
        tensor_scope_close(scope);
    }
    return filled;
}

Tensor *nn_init_sparse_args(NNSparseArgs args)
{
    static const char function[] = "nn_init_sparse_";
    if (TENSOR_CHECK_OPTIONS(function, args, nn_init_sparse_defaults) ||
        check_rank(args.tensor, function, 2, 2))
        return NULL;
    if (!(args.sparsity >= 0 && args.sparsity <= 1)) {
        tensor_fail(TENSOR_EVALUE, function, "sparsity %g: want 0 to 1", args.sparsity);
        return NULL;
    }
    FILL(function, sparse(args.tensor, args.sparsity, args.std));
}
