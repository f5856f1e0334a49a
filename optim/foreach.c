/* foreach.c - ops over lists of tensors: rules (rule.h) without states, the same numbers for all.
 *
 * Results of tensors that are not dense are computed first, which can fail; then one pass writes the dense
 * tensors, and the results are copied, which cannot fail.  Tensors that share memory are processed one by
 * one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "optim.h"
#include "rules/foreach.h"

#define RULE foreach_zero
#include "rule.h"
#define RULE foreach_copy
#include "rule.h"
#define RULE foreach_mul
#include "rule.h"
#define RULE foreach_clamp
#include "rule.h"
#define RULE foreach_add
#include "rule.h"
#define RULE foreach_lerp
#include "rule.h"

typedef struct List {
    const char *function;
    const OptimRule *rule;
    TensorList x, y; /* y: of the rules that read g */
    double k[OPTIM_NUMBERS];
    Tensor *factor;    /* of mul, on a device; else NULL */
    int64_t *first;    /* n + 1, for the dense ones */
    Tensor **item;     /* 4 n: operands of those on a device */
    Tensor **made;     /* n: the factor where a device begins a call, the results of what is done by ops */
    uint32_t *version; /* 2 n */
    char *mark;        /* n: OPTIM_LISTED: a device does it */
    bool any, two;     /* any dtype; with operands */
} List;

/* ---- what is refused ------------------------------------------------------------------------- */

bool optim_overlaps(const Tensor *x)
{
    if (tensor_is_contiguous(x)) return false;
    for (int d = 0; d < tensor_ndim(x); d++)
        if (tensor_stride(x, d) == 0 && tensor_size(x, d) > 1) return true;
    return false;
}

static int check_tensor(const char *function, const Tensor *x, int i, bool any)
{
    if (!x) return tensor_error_code() ? -1 : tensor_fail(TENSOR_ENULL, function, "tensor %d is NULL", i);
    const char *outer = tensor_compose_begin(function);
    const bool graph = tensor_requires_grad(x); /* refuses a released tensor */
    tensor_compose_end(outer);
    if (tensor_error_code()) return -1;
    if (!any && !tensor_dtype_is_float(tensor_dtype(x)))
        return tensor_fail(TENSOR_EDTYPE, function, "tensor %d is %s: want floats", i,
                           tensor_dtype_name(tensor_dtype(x)));
    if (graph && tensor_grad_enabled())
        return tensor_fail(TENSOR_EGRAD, function, "tensor %d requires a gradient: use TENSOR_NO_GRAD", i);
    return 0;
}

int optim_check_list(const char *function, TensorList x, bool any)
{
    if (tensor_error_code()) return -1;
    if (x.count < 0 || (x.count && !x.item)) return tensor_fail(TENSOR_ENULL, function, "the list is NULL");
    for (int i = 0; i < x.count; i++)
        if (check_tensor(function, x.item[i], i, any)) return -1;
    return 0;
}

static int check(const List *l)
{
    if (optim_check_list(l->function, l->x, l->any)) return -1;
    for (int i = 0; i < l->x.count; i++)
        if (optim_overlaps(l->x.item[i]))
            return tensor_fail(TENSOR_EVALUE, l->function, "elements of tensor %d share memory", i);
    if (!l->two) return 0;
    if (l->y.count != l->x.count)
        return tensor_fail(TENSOR_EVALUE, l->function, "lists of %d and %d tensors", l->x.count, l->y.count);
    if (optim_check_list(l->function, l->y, l->any)) return -1;
    for (int i = 0; i < l->x.count; i++) {
        if (!tensor_shape_equal(tensor_shape(l->x.item[i]), tensor_shape(l->y.item[i])))
            return tensor_fail(TENSOR_ESHAPE, l->function, "tensors %d have different shapes", i);
        if (strcmp(tensor_device(l->x.item[i]), tensor_device(l->y.item[i])) != 0 &&
            l->rule != &foreach_copy_rule)
            return tensor_fail(TENSOR_EDEVICE, l->function, "tensors %d are on %s and %s", i,
                               tensor_device(l->x.item[i]), tensor_device(l->y.item[i]));
    }
    return 0;
}

/* ---- dense ones ------------------------------------------------------------------------------ */

static bool is_dense(const List *l, int i)
{
    const char x = optim_dense(l->x.item[i]);
    return x && !l->factor && (!l->two || optim_dense(l->y.item[i]) == x);
}

static void piece(const OptimPass *pass, OptimSpan *span, int i, int64_t from, int64_t count)
{
    const List *l = pass->ctx;
    (void)span;
    optim_loop(l->rule, l->k, l->x.item[i], l->two ? l->y.item[i] : l->x.item[i], NULL, 0, from, count);
}

/* Do tensors share a storage?  Bumps the version of each x: an x bumped twice, or a bumped operand, shows
 * it. */
static bool shared(const List *l)
{
    const int n = l->x.count;
    bool found = false;
    for (int i = 0; i < n && l->two; i++) l->version[n + i] = tensor_version(l->y.item[i]);
    for (int i = 0; i < n; i++) {
        l->version[i] = tensor_version(l->x.item[i]);
        tensor_bump_version(l->x.item[i]);
    }
    for (int i = 0; i < n && !found; i++) {
        found = tensor_version(l->x.item[i]) != l->version[i] + 1;
        if (l->two) found = found || tensor_version(l->y.item[i]) != l->version[n + i];
    }
    return found;
}

/* ---- any dtype, layout and device ------------------------------------------------------------ */

static Tensor *widened(Tensor *x) { return tensor_dtype(x) == TENSOR_F64 ? x : tensor_to(x, TENSOR_F32); }

static Tensor *result_of(const List *l, int i)
{
    Tensor *x = l->x.item[i];
    const TensorDtype dtype = tensor_dtype(x);
    TensorScope scope = tensor_scope_open();
    if (l->rule == &foreach_zero_rule) x = tensor_zeros_like(x);
    else if (l->rule == &foreach_copy_rule)
        x = tensor_to_device(tensor_clone(l->y.item[i]), tensor_device(x));
    else if (l->factor) x = tensor_mul(widened(x), tensor_to_device(widened(l->factor), tensor_device(x)));
    else if (optim_evaluate(l->function, l->rule, l->k, NULL, &x, l->two ? l->y.item[i] : x, NULL, 0))
        x = NULL;
    return tensor_scope_return(scope, x ? tensor_to(x, dtype) : NULL);
}

static int one_by_one(const List *l)
{
    for (int i = 0; i < l->x.count; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *y = result_of(l, i);
        const int status = y && tensor_copy_(l->x.item[i], y) ? 0 : -1;
        tensor_scope_close(scope);
        if (status) return -1;
    }
    return 0;
}

/* ---- on a device ----------------------------------------------------------------------------- */

/* The factor is copied to the device while the call gets ready. */
static int numbers_of(void *ctx, int i, OpListRule *call)
{
    List *l = ctx;
    const Tensor *x = l->x.item[i];
    if (!l->factor) return call->number = l->k, 0;
    if (call->ready) {
        const TensorDtype wide = tensor_dtype(x) == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
        l->made[i] = tensor_contiguous(tensor_to_device(tensor_to(l->factor, wide), tensor_device(x)));
    }
    call->number_there = l->made[i];
    return l->made[i] ? 0 : -1;
}

static int run_lists(List *l, bool ready)
{
    const int n = l->x.count;
    for (int i = 0; i < n; i++) {
        l->item[2 * i] = l->x.item[i];
        l->item[2 * i + 1] = l->two ? l->y.item[i] : l->x.item[i];
    }
    return optim_run_lists(&(OptimLists){ .function = l->function,
                                          .rule = l->rule,
                                          .n = n,
                                          .arrays = 2,
                                          .item = l->item,
                                          .room = l->item + 2 * n,
                                          .mark = l->mark,
                                          .ready = ready,
                                          .numbers = numbers_of,
                                          .ctx = l });
}

/* ---- a call ---------------------------------------------------------------------------------- */

static int allocate(List *l)
{
    const size_t n = (size_t)l->x.count;
    l->first =
        calloc(1, (n + 1) * sizeof *l->first + 5 * n * sizeof *l->item + 2 * n * sizeof *l->version + n);
    if (!l->first) return tensor_fail(TENSOR_ENOMEM, l->function, "out of memory");
    l->item = (Tensor **)(void *)(l->first + n + 1);
    l->made = l->item + 4 * n;
    l->version = (uint32_t *)(void *)(l->made + n);
    l->mark = (char *)(l->version + 2 * n);
    return 0;
}

static int make_results(List *l)
{
    l->first[0] = 0;
    for (int i = 0; i < l->x.count; i++) {
        const bool dense = is_dense(l, i), there = dense || l->mark[i] == OPTIM_LISTED;
        l->first[i + 1] = l->first[i] + (dense ? tensor_numel(l->x.item[i]) : 0);
        if (!there && !(l->made[i] = result_of(l, i))) return -1;
    }
    return 0;
}

static int write_all(List *l)
{
    const int n = l->x.count;
    optim_pass(&(OptimPass){ n, l->first, piece, l }, 2);
    int status = run_lists(l, false);
    for (int i = 0; i < n && !status; i++)
        if (l->mark[i] != OPTIM_LISTED && l->made[i] && !tensor_copy_(l->x.item[i], l->made[i])) status = -1;
    return status;
}

static int run_list(List *l)
{
    if (allocate(l)) return -1;
    int status = run_lists(l, true);
    if (!status) status = make_results(l);
    if (!status) status = shared(l) ? one_by_one(l) : write_all(l);
    free(l->first);
    return status;
}

static int run(List l)
{
    l.any = l.rule == &foreach_zero_rule || l.rule == &foreach_copy_rule;
    l.two = strchr(l.rule->step, 'g') != NULL;
    if (check(&l)) return -1;
    if (l.x.count == 0) return 0;
    TensorScope scope = tensor_scope_open();
    const char *outer = tensor_compose_begin(l.function);
    const bool was = tensor_set_grad_enabled(false);
    const int status = run_list(&l);
    tensor_set_grad_enabled(was);
    tensor_compose_end(outer);
    tensor_scope_close(scope);
    return status;
}

int tensor_foreach_zero_(TensorList self)
{
    return run((List){ "tensor_foreach_zero_", &foreach_zero_rule, self });
}

int tensor_foreach_mul_scalar_(TensorList self, double scalar)
{
    return run((List){ "tensor_foreach_mul_scalar_", &foreach_mul_rule, self, .k = { scalar } });
}

/* A factor in the memory of the CPU is a number; 1 changes nothing. */
int tensor_foreach_mul_(TensorList self, Tensor *scalar)
{
    static const char function[] = "tensor_foreach_mul_";
    if (optim_check_list(function, TENSORS(scalar), true) || optim_check_list(function, self, false))
        return -1;
    if (tensor_numel(scalar) != 1)
        return tensor_fail(TENSOR_ESHAPE, function, "a scalar of %lld elements",
                           (long long)tensor_numel(scalar));
    if (strcmp(tensor_device(scalar), "cpu") != 0)
        return run((List){ function, &foreach_mul_rule, self, .factor = tensor_reshape(scalar, SHAPE()) });
    const double factor = tensor_item(scalar);
    return factor == 1 ? 0 : run((List){ function, &foreach_mul_rule, self, .k = { factor } });
}

int tensor_foreach_clamp_(TensorList self, double least, double most)
{
    static const char function[] = "tensor_foreach_clamp_";
    if (!(least <= most)) return tensor_fail(TENSOR_EVALUE, function, "from %g to %g", least, most);
    return run((List){ function, &foreach_clamp_rule, self, .k = { least, most } });
}

int tensor_foreach_add_(TensorList self, TensorList other, double alpha)
{
    return run((List){ "tensor_foreach_add_", &foreach_add_rule, self, other, .k = { alpha } });
}

int tensor_foreach_lerp_(TensorList self, TensorList end, double weight)
{
    return run((List){ "tensor_foreach_lerp_", &foreach_lerp_rule, self, end, .k = { weight } });
}

int tensor_foreach_copy_(TensorList self, TensorList src)
{
    return run((List){ "tensor_foreach_copy_", &foreach_copy_rule, self, src });
}
