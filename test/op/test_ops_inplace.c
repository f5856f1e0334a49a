/* test_ops_inplace.c - every tensor_name_(x, ...) gives the bits, the gradients and the refusals of its
 * tensor_name(x, ...). The rows come from ops.def; ops that are no rows stand in a table below them. */
#include <string.h>
#include "samples.h"

typedef struct Pair {
    const char *name;
    Tensor *(*apart)(Tensor **x, const void *params);
    Tensor *(*in_place)(Tensor **x, const void *params);
} Pair;

/* ---- the rows -------------------------------------------------------------------------------- */

#define P(i) (((const double *)params)[i])
#define FORMS(name, ...)                                           \
    static Tensor *apart_##name(Tensor **x, const void *params)    \
    {                                                              \
        (void)params;                                              \
        return tensor_##name(__VA_ARGS__);                         \
    }                                                              \
    static Tensor *in_place_##name(Tensor **x, const void *params) \
    {                                                              \
        (void)params;                                              \
        return tensor_##name##_(__VA_ARGS__);                      \
    }
#define UNARY(name, ...) FORMS(name, x[0])
#define UNARY1(name, ...) FORMS(name, x[0], P(0))
#define UNARY2(name, ...) FORMS(name, x[0], P(0), P(1))
#define BINARY(name, ...) FORMS(name, x[0], x[1])
#define BINARY1(name, ...) FORMS(name, x[0], x[1], P(0))
#define BITS1 UNARY
#define BITS2 BINARY
#include <tapegrad/ops.def>

/* ---- the others ------------------------------------------------------------------------------ */

/* Their parameter structs belong to their files: what is needed of them, at the offsets that the fields give.
 */
static int64_t whole(const char *op, const char *field, const void *params)
{
    for (const OpField *f = tensor_op_find(op)->fields; f->name; f++) {
        const char *at = (const char *)params + f->offset;
        if (strcmp(f->name, field) == 0)
            return f->type == OP_INT ? *(const int *)(const void *)at : *(const int64_t *)(const void *)at;
    }
    return 0;
}

static double number(const char *op, const char *field, const void *params)
{
    for (const OpField *f = tensor_op_find(op)->fields; f->name; f++)
        if (strcmp(f->name, field) == 0)
            return *(const double *)(const void *)((const char *)params + f->offset);
    return 0;
}

static Tensor *apart_index_add(Tensor **x, const void *params)
{
    return tensor_index_add(x[0], (int)whole("index_add", "dim", params), x[1], x[2],
                            .alpha = number("index_add", "alpha", params));
}

static Tensor *in_place_index_add(Tensor **x, const void *params)
{
    return tensor_index_add_(x[0], (int)whole("index_add", "dim", params), x[1], x[2],
                             .alpha = number("index_add", "alpha", params));
}

static Tensor *apart_tril(Tensor **x, const void *params)
{
    return tensor_tril(x[0], (int)whole("tril", "diagonal", params));
}
static Tensor *apart_triu(Tensor **x, const void *params)
{
    return tensor_triu(x[0], (int)whole("triu", "diagonal", params));
}
static Tensor *in_place_tril(Tensor **x, const void *params)
{
    return tensor_tril_(x[0], whole("tril", "diagonal", params));
}
static Tensor *in_place_triu(Tensor **x, const void *params)
{
    return tensor_triu_(x[0], whole("triu", "diagonal", params));
}

#define DIM(op) (int)whole(#op, "dim", params)
FORMS(cumsum, x[0], DIM(cumsum))
FORMS(cumprod, x[0], DIM(cumprod))
FORMS(float_power, x[0], x[1])
FORMS(igamma, x[0], x[1])
FORMS(igammac, x[0], x[1])
FORMS(lerp, x[0], x[1], number("lerp", "weight", params))
FORMS(addcmul, x[0], x[1], x[2], number("addcmul", "value", params))
FORMS(addcdiv, x[0], x[1], x[2], number("addcdiv", "value", params))
FORMS(scatter_add, x[0], DIM(scatter_add), x[1], x[2])
FORMS(scatter, x[0], DIM(scatter), x[1], x[2])
FORMS(scatter_value, x[0], DIM(scatter_value), x[1], number("scatter_value", "value", params))
FORMS(masked_fill, x[0], x[1], number("masked_fill", "value", params))
FORMS(masked_fill_tensor, x[0], x[1], x[2])
FORMS(lerp_tensor, x[0], x[1], x[2])
static Tensor *apart_clamp_tensor(Tensor **x, const void *params)
{
    (void)params;
    return tensor_clamp_tensor(x[0], .min = x[1], .max = x[2]);
}
static Tensor *in_place_clamp_tensor(Tensor **x, const void *params)
{
    (void)params;
    return tensor_clamp_tensor_(x[0], .min = x[1], .max = x[2]);
}
static Tensor *apart_nan_to_num(Tensor **x, const void *params)
{
    TensorNanToNumArgs args = *(const TensorNanToNumArgs *)params;
    args.input = x[0];
    return tensor_nan_to_num_args(args);
}
static Tensor *in_place_nan_to_num(Tensor **x, const void *params)
{
    TensorNanToNumArgs args = *(const TensorNanToNumArgs *)params;
    args.input = x[0];
    return tensor_nan_to_num_args_(args);
}
FORMS(round_decimals, x[0], (int)whole("round_decimals", "decimals", params))
FORMS(float_power_scalar, x[0], number("float_power_scalar", "c", params))

/* Ops whose parameters are the options of their functions. */
#define OPTION_FORMS(name, Options, ...)                           \
    static Tensor *apart_##name(Tensor **x, const void *params)    \
    {                                                              \
        Options a = *(const Options *)params;                      \
        __VA_ARGS__;                                               \
        return tensor_##name##_args(a);                            \
    }                                                              \
    static Tensor *in_place_##name(Tensor **x, const void *params) \
    {                                                              \
        Options a = *(const Options *)params;                      \
        __VA_ARGS__;                                               \
        return tensor_##name##_args_(a);                           \
    }
static int operands; /* of the sample */
OPTION_FORMS(addmm, TensorAddmmArgs, a.input = x[0], a.a = x[1], a.b = x[2])
OPTION_FORMS(baddbmm, TensorAddmmArgs, a.input = x[0], a.a = x[1], a.b = x[2])
OPTION_FORMS(addmv, TensorAddmmArgs, a.input = x[0], a.a = x[1], a.b = x[2])
OPTION_FORMS(addr, TensorAddmmArgs, a.input = x[0], a.a = x[1], a.b = x[2])
OPTION_FORMS(addbmm, TensorAddmmArgs, a.input = x[0], a.a = x[1], a.b = x[2])
OPTION_FORMS(scatter_reduce, TensorReduceIntoArgs, a.input = x[0], a.index = x[1], a.src = x[2])
OPTION_FORMS(index_reduce, TensorReduceIntoArgs, a.input = x[0], a.index = x[1], a.src = x[2])
OPTION_FORMS(put, TensorPutArgs, a.input = x[0], a.index = x[1], a.source = x[2])
OPTION_FORMS(index_put, TensorIndexPutArgs, a.input = x[0], a.values = x[1],
             a.indices = TENSOR_LIST(x + 2, operands - 2))
FORMS(index_copy, x[0], DIM(index_copy), x[1], x[2])
FORMS(index_fill, x[0], DIM(index_fill), x[1], number("index_fill", "value", params))
FORMS(index_fill_tensor, x[0], DIM(index_fill_tensor), x[1], x[2])
FORMS(masked_scatter, x[0], x[1], x[2])
FORMS(renorm, x[0], number("renorm", "p", params), DIM(renorm), number("renorm", "maxnorm", params))

#define ROW(name, ...) { #name, apart_##name, in_place_##name },
#define UNARY ROW
#define UNARY1 ROW
#define UNARY2 ROW
#define BINARY ROW
#define BINARY1 ROW
#define BITS1 ROW
#define BITS2 ROW
static const Pair pairs[] = {
#include <tapegrad/ops.def>
    ROW(lerp) ROW(addcmul) ROW(addcdiv) ROW(index_add) ROW(tril) ROW(triu) ROW(scatter_add) ROW(scatter)
        ROW(scatter_value) ROW(masked_fill) ROW(masked_fill_tensor) ROW(lerp_tensor) ROW(clamp_tensor)
            ROW(nan_to_num) ROW(round_decimals) ROW(float_power_scalar) ROW(addmm) ROW(baddbmm) ROW(addmv)
                ROW(addr) ROW(addbmm) ROW(cumsum) ROW(cumprod) ROW(float_power) ROW(scatter_reduce)
                    ROW(index_reduce) ROW(put) ROW(index_put) ROW(index_copy) ROW(index_fill)
                        ROW(index_fill_tensor) ROW(masked_scatter) ROW(renorm) ROW(igamma) ROW(igammac)
};

/* ---- the checks ------------------------------------------------------------------------------ */

static const Pair *pair;

static bool fits(const Tensor *y, const Tensor *x)
{
    TensorShape a = tensor_shape(y), b = tensor_shape(x);
    return a.ndim == b.ndim && (a.ndim == 0 || memcmp(a.dim, b.dim, (size_t)a.ndim * sizeof *a.dim) == 0);
}

static void check_layouts(const Sample *s, Tensor **x, Tensor *expected)
{
    Tensor *first = x[0];
    for (int layout = 0; layout < LAYOUTS; layout++) {
        x[0] = strided_copy(first, (Layout)layout);
        uint32_t version = tensor_version(x[0]);
        Tensor *same = pair->in_place(x, s->params);
        if (!same) complain(s, "is refused in place, %s", layout_name[layout]);
        else if (!tensor_shares_storage(same, x[0]) || tensor_data(same) != tensor_data(x[0]))
            complain(s, "in place returns another tensor");
        else if (!same_bits(x[0], expected)) complain(s, "differs in place, %s", layout_name[layout]);
        else if (tensor_version(x[0]) == version && tensor_numel(x[0]))
            complain(s, "in place does not count the version up");
    }
    x[0] = first;
}

/* A result y that does not fit: refused, and the target is as it was. */
static void check_misfit(const Sample *s, Tensor **x, const Tensor *y)
{
    Tensor *copy = tensor_clone(x[0]);
    if (pair->in_place(x, s->params)) complain(s, "enlarges its target in place");
    else if (tensor_error_code() != TENSOR_ESHAPE &&
             (tensor_error_code() != TENSOR_EDTYPE || tensor_dtype(y) == tensor_dtype(x[0])))
        complain(s, "is refused in place with another code than ESHAPE");
    tensor_error_clear();
    if (!same_bits(copy, x[0])) complain(s, "changed a target that does not fit");
}

static void check_gradient(const Sample *s, Tensor **x)
{
    Tensor *g[2][OP_MAX_INPUTS], *first = x[0];
    for (int in_place = 0; in_place < 2; in_place++) {
        Tensor *leaf[OP_MAX_INPUTS], *wanted[OP_MAX_INPUTS], *found[OP_MAX_INPUTS];
        int m = 0, k = 0;
        sample_leaves(s, x, leaf);
        for (int i = 0; i < s->n; i++)
            if (sample_differentiable(s, i, x[i])) wanted[m++] = leaf[i];
        leaf[0] = tensor_clone(leaf[0]);
        Tensor *y = in_place ? pair->in_place(leaf, s->params) : pair->apart(leaf, s->params),
               *v = y ? random_like(y, 3) : NULL;
        if (!y || (m && tensor_gradients_many(TENSORS(y), TENSOR_LIST(wanted, m), found,
                                              .grad_outputs = TENSORS(v), .materialize_grads = true))) {
            complain(s, "has no gradient %s", in_place ? "in place" : "apart");
            return;
        }
        for (int i = 0; i < s->n; i++) g[in_place][i] = sample_differentiable(s, i, x[i]) ? found[k++] : NULL;
    }
    for (int i = 0; i < s->n; i++)
        if (off_by(g[1][i], g[0][i], 0) > 1e-13)
            complain(s, "in place the gradient of input %d is another", i);
    x[0] = first;
}

static void check_refusals(const Sample *s, Tensor **x)
{
    Tensor *first = x[0], *copy = tensor_clone(first);
    x[0] = tensor_requires_grad_(tensor_detach(first), true);
    if (pair->in_place(x, s->params) || tensor_error_code() != TENSOR_EGRAD)
        complain(s, "writes into a leaf that requires a gradient");
    tensor_error_clear();
    if (!same_bits(first, copy)) complain(s, "changed the leaf");
    TENSOR_NO_GRAD {
        x[0] = tensor_requires_grad_(tensor_clone(first), true);
        if (!pair->in_place(x, s->params)) complain(s, "is refused without grad mode");
    }
    x[0] = NULL;
    if (pair->in_place(x, s->params) || tensor_error_code() != TENSOR_ENULL)
        complain(s, "takes NULL in place");
    tensor_error_clear();
    x[0] = first;
}

/* A target whose elements share memory. */
static void check_expanded(const Sample *s, Tensor **x)
{
    Tensor *first = x[0];
    if (tensor_numel(first) == 0 || tensor_ndim(first) == 0 || tensor_size(first, 0) < 2) return;
    x[0] = tensor_expand(tensor_narrow(first, 0, 0, 1), tensor_shape(first));
    if (pair->in_place(x, s->params) || tensor_error_code() != TENSOR_EVALUE)
        complain(s, "writes into an expanded tensor");
    tensor_error_clear();
    x[0] = first;
}

/* Operands that overlap the target: the result is that of copies. */
static void check_overlap(const Sample *s, Tensor **x)
{
    Tensor *in[OP_MAX_INPUTS];
    if (s->n != 2 || !fits(x[0], x[1]) || tensor_dtype(x[0]) != tensor_dtype(x[1]) || tensor_ndim(x[0]) != 2)
        return;
    int64_t rows = tensor_size(x[0], 0);
    for (int shift = -1; shift <= 1; shift++) {
        Tensor *room = tensor_zeros(SHAPE(rows + 1, tensor_size(x[0], 1)), tensor_dtype(x[0]));
        tensor_copy_(tensor_narrow(room, 0, 0, rows), x[0]);
        tensor_copy_(tensor_narrow(room, 0, rows, 1), tensor_narrow(x[1], 0, 0, 1));
        in[0] = tensor_narrow(room, 0, shift < 0, rows);
        in[1] = tensor_narrow(room, 0, shift > 0, rows);
        Tensor *expected = pair->apart(in, s->params);
        if (!pair->in_place(in, s->params) || !same_bits(in[0], expected))
            complain(s, "is wrong in place where operands overlap, %d rows apart", shift);
    }
}

static void check_sample(const Sample *s)
{
    static const TensorDtype dtypes[] = { TENSOR_F64, TENSOR_F32, TENSOR_BF16 };
    operands = s->n;
    for (int d = 0; d < 3; d++) {
        Tensor *x[OP_MAX_INPUTS];
        sample_inputs(s, (int)dtypes[d], 4, x);
        Tensor *y = pair->apart(x, s->params);
        if (!y) complain(s, "is refused");
        else if (!fits(y, x[0])) check_misfit(s, x, y);
        else if (tensor_dtype(y) == tensor_dtype(x[0])) {
            check_layouts(s, x, y);
            if (tensor_dtype_is_float(tensor_dtype(x[0]))) check_refusals(s, x);
            check_expanded(s, x);
            check_overlap(s, x);
            if (d == 0 && tensor_dtype_is_float(tensor_dtype(x[0]))) check_gradient(s, x);
        }
    }
}

static void check_op(const TensorOp *op)
{
    pair = NULL;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(pairs[i].name, op->name) == 0) pair = &pairs[i];
    if (pair) each_sample(op, check_sample);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!tensor_op_find(pairs[i].name)) return print_error("no op %s\n", pairs[i].name), 1;
    return run_registry(argc, argv, "every op with a form in place", check_op);
}
