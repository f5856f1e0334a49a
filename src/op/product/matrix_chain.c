/* matrix_chain.c - chains and powers of matrices, and matrices made of blocks, diagonals and powers.
 *
 *   multi_dot     a b c ..., bracketed so that the fewest multiplications are made
 *   matrix_power  x^n by squaring; of x^-1, n < 0
 *   trace         sum x_ii
 *   block_diag    matrices down the diagonal
 *   vander        y_ij = x_i^(n - 1 - j) */
#include <float.h>
#include "op/reduce/reduce.h"
#include "op/shape/shape_op.h"
#include "matrix_product.h"

/* ---- multi_dot ------------------------------------------------------------------------------- */

/* cut[i][j]: the product of i..j is that of i..cut times that of cut + 1..j. */
typedef struct Chain {
    Tensor *at[OP_MAX_INPUTS];
    int cut[OP_MAX_INPUTS][OP_MAX_INPUTS];
} Chain;

static int chain_shape(OpCall *c)
{
    const int n = op_inputs(c);
    if (n < 2) return op_fail(c, TENSOR_EVALUE, "one operand: want at least 2");
    for (int i = 0; i < n; i++) {
        const Tensor *x = op_input(c, i);
        const bool end = i == 0 || i == n - 1;
        if (x->ndim != 2 && !(end && x->ndim == 1))
            return op_fail(c, TENSOR_ESHAPE, "operand %d, %s: want a matrix%s", i + 1, S(x),
                           end ? " or a vector" : "");
        const Tensor *before = i ? op_input(c, i - 1) : NULL;
        if (before && before->shape[before->ndim - 1] != x->shape[0])
            return op_fail(c, TENSOR_ESHAPE, "operand %d, %s, times operand %d, %s: the inner sizes differ",
                           i, S(before), i + 1, S(x));
    }
    return 0;
}

static void find_cuts(Chain *chain, int n)
{
    double cost[OP_MAX_INPUTS][OP_MAX_INPUTS], size[OP_MAX_INPUTS + 1];
    for (int i = 0; i < n; i++)
        size[i] = (double)chain->at[i]->shape[0], size[i + 1] = (double)chain->at[i]->shape[1],
        cost[i][i] = 0;
    for (int length = 2; length <= n; length++)
        for (int i = 0; i + length <= n; i++) {
            const int j = i + length - 1;
            cost[i][j] = DBL_MAX;
            for (int k = i; k < j; k++) {
                const double v = cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
                if (v < cost[i][j]) cost[i][j] = v, chain->cut[i][j] = k;
            }
        }
}

static Tensor *product_of(const Chain *chain, int i, int j)
{
    if (i == j) return chain->at[i];
    const int k = chain->cut[i][j];
    Tensor *a = product_of(chain, i, k), *b = a ? product_of(chain, k + 1, j) : NULL;
    return b ? tensor_mm(a, b) : NULL;
}

static int multi_dot(OpCall *c)
{
    Chain chain;
    const int n = op_inputs(c);
    const bool row = op_input(c, 0)->ndim == 1, column = op_input(c, n - 1)->ndim == 1;
    for (int i = 0; i < n; i++) {
        Tensor *x = op_input(c, i);
        chain.at[i] = x && x->ndim == 1 ? tensor_unsqueeze(x, i ? 1 : 0) : x;
        if (!chain.at[i]) return -1;
    }
    find_cuts(&chain, n);
    Tensor *y = product_of(&chain, 0, n - 1);
    if (y && column) y = tensor_select(y, 1, 0);
    if (y && row) y = tensor_select(y, 0, 0);
    return op_set_result(c, 0, y);
}

const TensorOp op_multi_dot = {
    .name = "multi_dot",
    .autocast = AUTOCAST_LOWER,
    .summary = "product of a chain of matrices in the cheapest order; the ends may be vectors",
    .gradient = "of each operand: (those before it)^T g (those after it)^T",
    .arity = OP_ANY_ARITY,
    .shape = chain_shape,
    .compose = multi_dot,
    .flags = OP_ANY_DEVICE | OP_ONE_DTYPE | OP_ROUND_ONCE | OP_OF_PRODUCTS,
    .torch = "linalg.multi_dot",
    .samples = "3x4,4x5; 3x4,4x2,2x5; 2x5,5x1,1x4,4x3; 4,4x3,3; 3,3; 4,4x5; 3x4,4; 3x0,0x2,2x4; 0x3,3x2,2x2; "
               "3x4@i64,4x5@i64,5@i64",
    .errors = "3x4 ! EVALUE; 3x4,5x6 ! ESHAPE; 3x4,4,4x2 ! ESHAPE; 2x3x4,4x5 ! ESHAPE; 3x4@i64,4x5 ! EDTYPE; "
              "3x4@bool,4x5@bool ! EDTYPE",
};
REGISTER_OPS(&op_multi_dot);

static Tensor *chain(const char *name, TensorList tensors, const void *site)
{
    if (tensors.count > 0 && !tensors.item)
        return fail_site(TENSOR_ENULL, name, site, "the list of tensors is NULL"), NULL;
    return op_apply1_as(&op_multi_dot, name, tensors.item, tensors.count, NULL, site);
}

Tensor *tensor_multi_dot(TensorList tensors) { return chain("multi_dot", tensors, SITE); }
Tensor *tensor_chain_matmul(TensorList tensors) { return chain("tensor_chain_matmul", tensors, SITE); }

/* ---- matrix_power ---------------------------------------------------------------------------- */

typedef struct PowerParams {
    int64_t n;
} PowerParams;

static int power_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    if (check_numbers(c, x)) return -1;
    if (x->ndim < 2 || x->shape[x->ndim - 1] != x->shape[x->ndim - 2])
        return op_fail(c, TENSOR_ESHAPE, "%s: want square matrices [..., m, m]", S(x));
    return 0;
}

/* x^0, with the gradient 0. */
static Tensor *identity_like(Tensor *x)
{
    Tensor *one = x ? tensor_ones_like(x) : NULL, *zero = x ? tensor_zeros_like(x) : NULL;
    Tensor *y = tensor_tril(tensor_triu(one));
    return y ? tensor_where(tensor_isnan(zero), x, y) : NULL;
}

static int matrix_power(OpCall *c)
{
    const int64_t power = ((const PowerParams *)op_params(c))->n;
    uint64_t n = power < 0 ? -(uint64_t)power : (uint64_t)power;
    Tensor *x = power < 0 ? tensor_inv(op_input(c, 0)) : op_input(c, 0), *y = NULL;
    if (n == 0) return op_set_result(c, 0, identity_like(x));
    for (; x; x = tensor_matmul(x, x)) {
        if (n & 1 && !(y = y ? tensor_matmul(y, x) : x)) return -1;
        if ((n >>= 1) == 0) break;
    }
    return x ? op_set_result(c, 0, y == op_input(c, 0) ? tensor_clone(y) : y) : -1;
}

static const OpField power_fields[] = { OP_REQUIRED(PowerParams, n), { 0 } };
const TensorOp op_matrix_power = {
    .name = "matrix_power",
    .autocast = AUTOCAST_AS_IS,
    .summary = "square matrices times themselves, n times; their inverses for n < 0",
    .gradient = "dx = sum_i (x^i)^T g (x^(n-1-i))^T; n < 0: through the inverse",
    .arity = 1,
    PARAMS_GIVEN(PowerParams, power_fields),
    .shape = power_shape,
    .compose = matrix_power,
    .flags = OP_ROUND_ONCE | OP_OF_PRODUCTS,
    .samples = "3x3 {n=2}; 2x3x3 {n=3}; 3x3 {n=1}; 3x3 {n=0}; 2x2 {n=7}; 0x0 {n=2}; 0x2x2 {n=5}; 2x2 {n=-1}; "
               "3x3 {n=-2}; 0x2x2 {n=-3}; 3x3@i64 {n=5}; 2x2@u8 {n=0}",
    .errors = "3x4 {n=2} ! ESHAPE; 3 {n=2} ! ESHAPE; 2x2:1..1 {n=-1} ! EVALUE; 3x3@i64 {n=-1} ! EDTYPE; "
              "3x3@bool {n=2} ! EDTYPE",
};
REGISTER_OPS(&op_matrix_power);

Tensor *tensor_matrix_power(Tensor *x, int64_t n) { return APPLY(&op_matrix_power, &(PowerParams){ n }, x); }

/* ---- trace, block_diag, vander --------------------------------------------------------------- */

static int trace_shape(OpCall *c)
{
    const Tensor *x = op_input(c, 0);
    return x->ndim == 2 ? 0 : op_fail(c, TENSOR_ESHAPE, "%s: want a matrix", S(x));
}

static int trace(OpCall *c) { return op_set_result(c, 0, tensor_sum(tensor_diagonal(op_input(c, 0)))); }

static int blocks_shape(OpCall *c)
{
    for (int i = 0; i < op_inputs(c); i++)
        if (op_input(c, i)->ndim > 2)
            return op_fail(c, TENSOR_ESHAPE, "operand %d, %s: want at most 2 dimensions", i + 1,
                           S(op_input(c, i)));
    return 0;
}

static int block_diag(OpCall *c)
{
    Tensor *row[OP_MAX_INPUTS];
    const int n = op_inputs(c);
    int64_t columns = 0, at = 0;
    for (int i = 0; i < n; i++)
        columns += op_input(c, i)->ndim ? op_input(c, i)->shape[op_input(c, i)->ndim - 1] : 1;
    for (int i = 0; i < n; i++) {
        Tensor *x = op_input(c, i);
        x = x->ndim < 2 ? tensor_reshape(x, SHAPE(1, x->numel)) : x;
        row[i] = !x || n == 1 ? x : embed_part(x, 1, at, columns);
        if (!row[i]) return -1;
        at += x->shape[1];
    }
    return op_set_result(c, 0, n == 1 ? tensor_clone(row[0]) : tensor_cat(TENSOR_LIST(row, n), 0));
}

const TensorVanderArgs tensor_vander_defaults = { TENSOR_VANDER_DEFAULTS };

static int vander_shape(OpCall *c)
{
    TensorVanderArgs *p = op_params_mut(c);
    const Tensor *x = op_input(c, 0);
    if (x->ndim < 1 && !p->increasing) return op_fail(c, TENSOR_ESHAPE, "%s: want vectors", S(x));
    if (p->n < -1) return op_fail(c, TENSOR_EVALUE, "n = %lld must not be negative", (long long)p->n);
    if (p->n == -1) p->n = x->ndim ? x->shape[x->ndim - 1] : 1;
    return 0;
}

static int vander(OpCall *c)
{
    const TensorVanderArgs *p = op_params(c);
    Tensor *x = op_input(c, 0);
    int64_t shape[TENSOR_MAX_DIMS];
    if (!dtype_is_float(x->dtype)) x = tensor_to(x, TENSOR_I64);
    if (x && x->ndim == 0) x = tensor_unsqueeze(x, 0);
    Tensor *column = x ? tensor_unsqueeze(x, -1) : NULL;
    if (!column) return -1;
    const int last = x->ndim;
    memcpy(shape, column->shape, sizeof shape);
    shape[last] = p->n > 0 ? p->n - 1 : 0;
    Tensor *y = tensor_expand(column, (TensorShape){ last + 1, shape });
    if (p->n > 2) y = tensor_cumprod(y, last);
    if (p->n > 0) y = tensor_cat(TENSORS(tensor_ones_like(column), y), last);
    return op_set_result(c, 0, p->increasing ? y : tensor_flip(y, DIMS(last)));
}

const TensorOp op_trace = { .name = "trace",
                            .autocast = AUTOCAST_CPU_F32,
                            .summary = "sum of the diagonal of a matrix; i64 for integers",
                            .gradient = "dx = g on the diagonal",
                            .arity = 1,
                            .shape = trace_shape,
                            .compose = trace,
                            .flags = OP_ANY_DEVICE,
                            .samples = "3x3; 3x4; 4x2; 1x1; 0x3; 3x3@i64; 2x2@bool",
                            .errors = "3 ! ESHAPE; 2x3x3 ! ESHAPE" };
const TensorOp op_block_diag = { .name = "block_diag",
                                 .autocast = AUTOCAST_AS_IS,
                                 .summary = "matrices down the diagonal, 0 elsewhere",
                                 .gradient = "dx_i = its block of g",
                                 .arity = OP_ANY_ARITY,
                                 .shape = blocks_shape,
                                 .compose = block_diag,
                                 .flags = OP_ANY_DEVICE,
                                 .samples =
                                     "2x3,1x2; 3; ; 2x2,,3,1x1; 0x2,2x1; 0,2x2; 2x0,1x3; 2x2@i64,1@i64",
                                 .errors = "2x3x4 ! ESHAPE" };
static const OpField vander_fields[] = { OP_OPTION(TensorVanderArgs, n, increasing), { 0 } };
const TensorOp op_vander = { .name = "vander",
                             .autocast = AUTOCAST_AS_IS,
                             .summary = "powers of each element in a row, [..., m] -> [..., m, n]",
                             .gradient = "dx_i = sum_j g_ij k x_i^(k-1), k the power",
                             .arity = 1,
                             PARAMS(TensorVanderArgs, tensor_vander_defaults, vander_fields),
                             .shape = vander_shape,
                             .compose = vander,
                             .flags = OP_ANY_DEVICE | OP_ROUND_ONCE,
                             .samples =
                                 "3; 3 {n=5}; 4 {n=2 increasing=1}; 3 {n=1}; 3 {n=0}; 0; 0 {n=3}; "
                                 "3@i64; 2x3; 2x1x3 {n=2 increasing=1}; 0x2; 2@bool; {n=3 increasing=1}",
                             .errors = " ! ESHAPE; 3 {n=-2} ! EVALUE" };
REGISTER_OPS(&op_trace, &op_block_diag, &op_vander);

Tensor *tensor_trace(Tensor *x) { return APPLY(&op_trace, NULL, x); }

Tensor *tensor_block_diag(TensorList tensors)
{
    if (tensors.count > 0 && !tensors.item)
        return fail(TENSOR_ENULL, "tensor_block_diag", "the list of tensors is NULL"), NULL;
    return op_apply1(&op_block_diag, tensors.item, tensors.count, NULL, SITE);
}

Tensor *tensor_vander_args(TensorVanderArgs a) { return APPLY(&op_vander, &a, a.input); }
