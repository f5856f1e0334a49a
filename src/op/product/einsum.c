/* einsum.c - sums of products over named indices: einsum, whose names come from an equation, and tensordot.
 *
 * Each operand becomes a factor: the diagonal of indices named twice, without dims of size 1 that broadcast.
 * Factors are multiplied from left to right; an index is summed over as soon as neither the result nor a
 * later operand names it. */
#include <stdio.h>
#include "op/reduce/reduce.h"
#include "contract.h"
#include "matrix_product.h"
#include "op/shape/shape_op.h"

typedef struct EinsumParams {
    const char *equation;
} EinsumParams;

enum { END = INDEX_LETTERS, COMMA, ARROW, ELLIPSIS, OTHER };

typedef struct Plan {
    OpCall *c;
    const char *at;            /* in the equation */
    int n, ellipsis, result_n; /* factors; dims of the longest "..."; indices of the result */
    Factor factor[OP_MAX_INPUTS];
    int64_t size[INDICES];              /* -1: of no operand */
    int times[INDICES], first[INDICES]; /* how often operands name it; which one named it first */
    int result[INDICES];
    bool in_result[INDICES];
} Plan;

/* ---- reading --------------------------------------------------------------------------------- */

static int token(Plan *p)
{
    while (*p->at == ' ') p->at++;
    const char ch = *p->at;
    if (ch == '\0') return END;
    const bool arrow = strncmp(p->at, "->", 2) == 0, dots = strncmp(p->at, "...", 3) == 0;
    p->at += arrow ? 2 : dots ? 3 : 1;
    if (arrow) return ARROW;
    if (dots) return ELLIPSIS;
    if (ch >= 'A' && ch <= 'Z') return ch - 'A';
    if (ch >= 'a' && ch <= 'z') return ch - 'a' + 26;
    return ch == ',' ? COMMA : OTHER;
}

static const char *name_of(int index, char name[4])
{
    if (index >= INDEX_LETTERS) return "...";
    name[0] = (char)(index < 26 ? 'A' + index : 'a' + index - 26), name[1] = '\0';
    return name;
}

/* The next dimension of operand i is this index. */
static int name_dim(Plan *p, int i, int index)
{
    Factor *f = &p->factor[i];
    char name[4];
    const int64_t n = f->x->shape[f->n];
    for (int d = 0; d < f->n; d++)
        if (f->at[d] == index && f->x->shape[d] != n)
            return op_fail(p->c, TENSOR_ESHAPE, "operand %d, %s: index %s is %lld and %lld there", i + 1,
                           S(f->x), name_of(index, name), (long long)f->x->shape[d], (long long)n);
    if (p->size[index] >= 0 && p->size[index] != n && p->size[index] != 1 && n != 1)
        return op_fail(p->c, TENSOR_ESHAPE, "index %s is %lld in operand %d, %s, and %lld in operand %d, %s",
                       name_of(index, name), (long long)n, i + 1, S(f->x), (long long)p->size[index],
                       p->first[index] + 1, S(p->factor[p->first[index]].x));
    if (p->size[index] < 0 || p->size[index] == 1) p->size[index] = n, p->first[index] = i;
    p->times[index]++;
    f->at[f->n++] = index;
    return 0;
}

/* Reads the indices of operand i; returns the token that ends them, or -1. */
static int read_operand(Plan *p, int i)
{
    int index[TENSOR_MAX_DIMS + 1], n = 0, dots = -1, t;
    Tensor *x = p->factor[i].x;
    for (t = token(p); t < INDEX_LETTERS || t == ELLIPSIS; t = token(p)) {
        if (t == ELLIPSIS && dots >= 0)
            return op_fail(p->c, TENSOR_EVALUE, "operand %d has \"...\" twice", i + 1);
        if (t == ELLIPSIS) dots = n;
        else if (n <= TENSOR_MAX_DIMS) index[n++] = t;
    }
    if (t == OTHER)
        return op_fail(p->c, TENSOR_EVALUE, "'%c' in operand %d: want letters, \"...\", commas and \"->\"",
                       p->at[-1], i + 1);
    if (n > x->ndim || (dots < 0 && n < x->ndim))
        return op_fail(p->c, TENSOR_ESHAPE, "operand %d, %s, has %d dimensions, the equation names %s%d",
                       i + 1, S(x), x->ndim,
                       n > TENSOR_MAX_DIMS ? "more than "
                       : dots < 0          ? ""
                                           : "at least ",
                       n > TENSOR_MAX_DIMS ? TENSOR_MAX_DIMS : n);
    const int more = x->ndim - n;
    if (more > p->ellipsis) p->ellipsis = more;
    for (int d = 0; d <= n; d++) {
        for (int k = 0; d == dots && k < more; k++) /* aligned at the last */
            if (name_dim(p, i, INDICES - more + k)) return -1;
        if (d < n && name_dim(p, i, index[d])) return -1;
    }
    return t;
}

static int put_result(Plan *p, int index)
{
    char name[4];
    if (p->in_result[index])
        return op_fail(p->c, TENSOR_EVALUE, "the result names index %s twice", name_of(index, name));
    if (p->size[index] < 0)
        return op_fail(p->c, TENSOR_EVALUE, "the result names index %s, which no operand has",
                       name_of(index, name));
    p->in_result[index] = true;
    p->result[p->result_n++] = index;
    return 0;
}

static int put_ellipsis(Plan *p)
{
    for (int k = INDICES - p->ellipsis; k < INDICES; k++)
        if (put_result(p, k)) return -1;
    return 0;
}

static int read_result(Plan *p)
{
    bool dots = false;
    for (int t = token(p); t != END; t = token(p)) {
        if (t == ELLIPSIS && dots) return op_fail(p->c, TENSOR_EVALUE, "the result has \"...\" twice");
        if (t > END && t != ELLIPSIS)
            return op_fail(p->c, TENSOR_EVALUE, "the result: want letters and \"...\" after \"->\"");
        if (t == ELLIPSIS ? put_ellipsis(p) : put_result(p, t)) return -1;
        dots |= t == ELLIPSIS;
    }
    return 0;
}

static int name_result(Plan *p)
{
    if (put_ellipsis(p)) return -1;
    for (int k = 0; k < INDEX_LETTERS; k++)
        if (p->times[k] == 1 && put_result(p, k)) return -1;
    return 0;
}

static int read_equation(Plan *p)
{
    int t = COMMA, i = 0;
    for (; t == COMMA && i < p->n; i++)
        if ((t = read_operand(p, i)) < 0) return -1;
    if (t == COMMA || i < p->n)
        return op_fail(p->c, TENSOR_EVALUE, "operands in the equation: %d%s, given: %d", i + (t == COMMA),
                       t == COMMA ? " or more" : "", p->n);
    if (t == ARROW ? read_result(p) : name_result(p)) return -1;
    if (p->result_n <= TENSOR_MAX_DIMS) return 0;
    return op_fail(p->c, TENSOR_ESHAPE, "the result has %d dimensions: at most %d", p->result_n,
                   TENSOR_MAX_DIMS);
}

/* ---- computing ------------------------------------------------------------------------------- */

static void take_diagonals(Factor *f)
{
    for (int d = 0; d < f->n; d++)
        for (int e = d + 1; e < f->n; e++) {
            if (f->at[d] != f->at[e]) continue;
            const int index = f->at[d];
            f->x = tensor_diagonal(f->x, 0, d, e);
            factor_drop(f, e);
            factor_drop(f, d);
            f->at[f->n++] = index;
            d = -1; /* from the beginning: places have changed */
            break;
        }
}

/* Sizes of 1 that broadcast to another factor's. */
static void drop_ones(Plan *p, Factor *f)
{
    for (int d = f->n - 1; d >= 0 && f->x; d--)
        if (f->x->shape[d] == 1 && p->size[f->at[d]] != 1) {
            f->x = tensor_select(f->x, d, 0);
            factor_drop(f, d);
        }
}

static int run(Plan *p)
{
    bool wanted[INDICES];
    for (int i = 0; i < p->n; i++) {
        take_diagonals(&p->factor[i]);
        drop_ones(p, &p->factor[i]);
        if (!p->factor[i].x) return -1;
    }
    Factor *a = &p->factor[0];
    for (int i = 1; i < p->n; i++) {
        Factor *b = &p->factor[i];
        memcpy(wanted, p->in_result, sizeof wanted);
        for (int k = i + 1; k < p->n; k++)
            for (int d = 0; d < p->factor[k].n; d++) wanted[p->factor[k].at[d]] = true;
        bool with_b[INDICES], with_a[INDICES];
        for (int k = 0; k < INDICES; k++)
            with_b[k] = wanted[k] || factor_has(b, k), with_a[k] = wanted[k] || factor_has(a, k);
        factor_sum(a, with_b, true);
        factor_sum(b, with_a, true);
        factor_product(p->c, a, b, wanted);
        if (!a->x) return -1;
    }
    factor_sum(a, p->in_result, false);
    return a->x ? op_set_result(p->c, 0, factor_order(a, p->result)) : -1;
}

static int compose(OpCall *c)
{
    Plan p = { .c = c, .at = ((const EinsumParams *)op_params(c))->equation, .n = op_inputs(c) };
    for (int k = 0; k < INDICES; k++) p.size[k] = -1;
    for (int i = 0; i < p.n; i++) p.factor[i].x = op_input(c, i);
    return read_equation(&p) ? -1 : run(&p);
}

static const OpField fields[] = { OP_REQUIRED(EinsumParams, equation), { 0 } };

const TensorOp op_einsum = {
    .name = "einsum",
    .autocast = AUTOCAST_CPU_CUDA(PARTS, LOWER),
    .summary = "sum of products over named indices",
    .gradient = "of each operand: the einsum of g and the other operands, its indices as the result's",
    .arity = OP_ANY_ARITY,
    PARAMS_GIVEN(EinsumParams, fields),
    .compose = compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE | OP_OF_PRODUCTS | OP_MAY_ALIAS,
    .samples = "3x4,4x5 {equation=ij,jk->ik}; 3x4 {equation=ij->ji}; 3x3 {equation=ii}; 3x3 "
               "{equation=ii->i}; 3x4 {equation=ij->}; 2x3x4,2x4x5 {equation=bij,bjk->bik}; 2x3x4,2x4x5 "
               "{equation=...ij,...jk}; 3,4 {equation=i,j->ij}; 5,5 {equation=i,i}; 2x3x4,3x5,4x2 "
               "{equation=abc,bd,ca->d}; 2x1x3,4x3 {equation=a...c,...c->...a}; 2x3,2x3 "
               "{equation=ij,ij->ij}; 3x4,5 {equation=ij,k->k}; 2x3x2x3 {equation=abab->ba}; 1x4,3x4 "
               "{equation=ij,ij->i}; , {equation=,}; 2x3,3x0 {equation=ij,jk}; 0x3,3x2 "
               "{equation=ij,jk->ik}; 3x0,0x2 {equation=ij,jk->ik}; 2x3x4x5,2x4x6x5 "
               "{equation=bihd,bhjd->bhij}; 2x3 {equation=...->...}; 2x3,2x4x3 {equation=...j,...kj->k}; "
               "2x2,2x2,2x2,2x2 {equation=ab,bc,cd,da}; 3x4@i32,4x2@i32 {equation=ij,jk->k}; 3x3@u8 "
               "{equation=ii}; 2x3@bool {equation=ij->ji}; 3@i64,2@i32 {equation=i,j->ij}",
    .errors = "3x4,5x6 {equation=ij,jk} ! ESHAPE; 3x4 {equation=ijk} ! ESHAPE; 3x4 {equation=i} ! ESHAPE; "
              "3x4 {equation=ii} ! ESHAPE; 3x4 {equation=ij,jk} ! EVALUE; 3x4,4x5 {equation=ij} ! EVALUE; "
              "3x4 {equation=ij->ii} ! EVALUE; 3x4 {equation=ij->ik} ! EVALUE; 3x4 {equation=i1} ! EVALUE; "
              "3x4 {equation=...i...} ! EVALUE; 3x4 {equation=ij->i,j} ! EVALUE; 3x4@i64,4x2 "
              "{equation=ij,jk} ! EDTYPE; 3x4@bool,4x2@bool {equation=ij,jk} ! EDTYPE; 3x4 "
              "{equation=ij->......} ! EVALUE; 3x4 {equation=ij->i-j} ! EVALUE",
};
REGISTER_OPS(&op_einsum);

Tensor *tensor_einsum(const char *equation, TensorList operands)
{
    if (!equation || (operands.count > 0 && !operands.item))
        return fail(TENSOR_ENULL, "tensor_einsum", "the equation or the list of operands is NULL"), NULL;
    return op_apply1(&op_einsum, operands.item, operands.count, &(EinsumParams){ equation }, SITE);
}

/* ---- tensordot ------------------------------------------------------------------------------- */

const TensorTensordotArgs tensor_tensordot_defaults = { TENSOR_TENSORDOT_DEFAULTS };

/* Without lists: the last dims of a with the first ones of b. */
static int lists_of(OpCall *c)
{
    TensorTensordotArgs *p = op_params_mut(c);
    const Tensor *a = op_input(c, 0), *b = op_input(c, 1);
    int64_t last[TENSOR_MAX_DIMS], first[TENSOR_MAX_DIMS];
    const bool empty = p->dims_a.dim && p->dims_b.dim; /* given, and perhaps of no dims */
    if (empty || p->dims_a.ndim || p->dims_b.ndim) return 0;
    if (p->dims < 0 || p->dims > a->ndim || p->dims > b->ndim)
        return op_fail(c, TENSOR_EVALUE, "%s and %s do not both have %d dims to sum over", S(a), S(b),
                       p->dims);
    for (int i = 0; i < p->dims; i++) last[i] = a->ndim - p->dims + i, first[i] = i;
    return op_set_list(c, &p->dims_a, p->dims, last) || op_set_list(c, &p->dims_b, p->dims, first) ? -1 : 0;
}

static int pair_dims(OpCall *c, const TensorTensordotArgs *p, Factor f[2])
{
    const Tensor *a = f[0].x, *b = f[1].x;
    bool used[2][TENSOR_MAX_DIMS] = { { false } };
    for (int i = 0; i < p->dims_a.ndim; i++) {
        const int d = call_dim(c, p->dims_a.dim[i], shape_of(a)),
                  e = d < 0 ? -1 : call_dim(c, p->dims_b.dim[i], shape_of(b));
        if (e < 0) return -1;
        if (used[0][d] || used[1][e])
            return op_fail(c, TENSOR_EVALUE, "dim %d of %s with dim %d of %s: named twice", d, S(a), e, S(b));
        if (a->shape[d] != b->shape[e] && a->shape[d] != 1 && b->shape[e] != 1)
            return op_fail(c, TENSOR_ESHAPE, "dim %d of %s with dim %d of %s: the sizes differ", d, S(a), e,
                           S(b));
        used[0][d] = used[1][e] = true;
        f[1].at[e] = d;
    }
    return 0;
}

/* a's dims are the indices 0, 1, ...; b's others follow. */
static int dot_compose(OpCall *c)
{
    const TensorTensordotArgs *p = op_params(c);
    Plan plan = { .c = c, .n = 2 };
    Factor *f = plan.factor;
    f[0].x = op_input(c, 0), f[1].x = op_input(c, 1);
    if (check_numbers(c, f[0].x) || lists_of(c)) return -1;
    if (p->dims_a.ndim != p->dims_b.ndim)
        return op_fail(c, TENSOR_EVALUE, "%d dims of a and %d of b: want pairs", p->dims_a.ndim,
                       p->dims_b.ndim);
    if (f[0].x->ndim + f[1].x->ndim - 2 * p->dims_a.ndim > TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_ESHAPE, "%s and %s: the result has more than %d dimensions", S(f[0].x),
                       S(f[1].x), TENSOR_MAX_DIMS);
    f[0].n = f[0].x->ndim, f[1].n = f[1].x->ndim;
    for (int d = 0; d < f[0].n; d++)
        f[0].at[d] = d, plan.size[d] = f[0].x->shape[d], plan.in_result[d] = true;
    for (int e = 0; e < f[1].n; e++) f[1].at[e] = f[0].n + e;
    if (pair_dims(c, p, f)) return -1;
    for (int e = 0; e < f[1].n; e++) {
        const int index = f[1].at[e];
        const bool summed = index < f[0].n;
        if (!summed || plan.size[index] == 1) plan.size[index] = f[1].x->shape[e];
        plan.in_result[index] = !summed;
    }
    for (int k = 0; k < INDICES; k++)
        if (plan.in_result[k]) plan.result[plan.result_n++] = k;
    return run(&plan);
}

static const OpField dot_fields[] = { OP_OPTION(TensorTensordotArgs, dims, dims_a, dims_b), { 0 } };

const TensorOp op_tensordot = {
    .name = "tensordot",
    .autocast = AUTOCAST_CPU_CUDA(PARTS, PROMOTE),
    .summary = "sum of products over pairs of dims; the result has a's other dims, then b's",
    .gradient = "da = g b, db = a g, over the dims that the other has alone",
    .arity = 2,
    PARAMS(TensorTensordotArgs, tensor_tensordot_defaults, dot_fields),
    .compose = dot_compose,
    .flags = OP_ANY_DEVICE | OP_ROUND_ONCE | OP_OF_PRODUCTS | OP_ONE_DTYPE,
    .samples = "2x3x4,3x4x5; 3x4,4x5 {dims=1}; 3,4 {dims=0}; 2x3x4,4x3x5 {dims_a=[1 2] dims_b=[1 0]}; "
               "2x3,5x3 {dims_a=[-1] dims_b=[-1]}; 2x1,3x4 {dims_a=[1] dims_b=[0]}; 3x0,0x2 {dims=1}; "
               "0x3,3x2 {dims=1}; 3x4,3x4; , {dims=0}; 2x3@i32,3x2@i32 {dims=1}",
    .errors = "3x4,5x6 {dims=1} ! ESHAPE; 3,4 ! EVALUE; 3x4,4x5 {dims_a=[1] dims_b=[0 1]} ! EVALUE; 3x3,3x3 "
              "{dims_a=[0 0] dims_b=[0 1]} ! EVALUE; 3x4,4x5 {dims_a=[2] dims_b=[0]} ! EINDEX; 3x4@i64,4x5 "
              "{dims=1} ! EDTYPE; 3x4@bool,4x5@bool {dims=1} ! EDTYPE",
};
REGISTER_OPS(&op_tensordot);

Tensor *tensor_tensordot_args(TensorTensordotArgs a) { return APPLY(&op_tensordot, &a, a.a, a.b); }
