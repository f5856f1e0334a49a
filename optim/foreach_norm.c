/* foreach_norm.c - the norm of each tensor of a list.
 *
 * Threads sum blocks of a fixed size in double; the sums of blocks are added in order, so the bits do not
 * depend on the number of threads.  Other norms, dtypes, layouts and devices: tensor_norm. */
#include <math.h>
#include <stdlib.h>
#include "optim.h"

enum { BLOCK = 4096, LANES = 16 };

typedef enum Kind { SQUARES, LARGEST, OTHER } Kind;

/* Four lanes, whatever the instruction set has. */
typedef double Four __attribute__((vector_size(32)));
typedef int64_t FourBits __attribute__((vector_size(32)));

/* NaN wins. */
static inline double combined(double sum, double x, Kind kind)
{
    return kind != LARGEST ? sum + x : x > sum || isnan(x) ? x : sum;
}

#define real float
#define LOOP(part) part##_f32
#include "norm_loop.h"
#define real double
#define LOOP(part) part##_f64
#include "norm_loop.h"

typedef double (*BlockLoop)(const void *x, int64_t n, Kind kind);
#if defined(__x86_64__)
static const BlockLoop loops[2][2] = { { plain_f32, plain_f64 }, { wide_f32, wide_f64 } };
#else /* whose vectors need no other build */
static const BlockLoop loops[2][2] = { { wide_f32, wide_f64 }, { plain_f32, plain_f64 } };
#endif

typedef struct Norms {
    TensorList x;
    double ord;
    Kind kind;
    int64_t *first; /* n + 1: blocks */
    double *norm;   /* n */
    double *part;   /* of each block */
} Norms;

static void piece(const OptimPass *pass, OptimSpan *span, int i, int64_t from, int64_t count)
{
    const Norms *a = pass->ctx;
    const Tensor *x = a->x.item[i];
    const bool is_f64 = tensor_dtype(x) == TENSOR_F64;
    const int64_t n = tensor_numel(x);
    (void)span;
    for (int64_t b = from; b < from + count; b++) {
        const int64_t at = b * BLOCK, rest = n - at;
        const char *data = (const char *)tensor_data(x) + at * (is_f64 ? 8 : 4);
        a->part[a->first[i] + b] = loops[optim_wide()][is_f64](data, rest < BLOCK ? rest : BLOCK, a->kind);
    }
}

static double combine(const Norms *a, int i)
{
    double sum = 0;
    for (int64_t b = a->first[i]; b < a->first[i + 1]; b++)
        sum = a->kind != LARGEST                      ? sum + a->part[b]
              : a->part[b] > sum || isnan(a->part[b]) ? a->part[b]
                                                      : sum;
    return a->kind == SQUARES ? sqrt(sum) : sum;
}

static int64_t blocks(const Norms *a, int i)
{
    return a->kind != OTHER && optim_dense(a->x.item[i]) ? (tensor_numel(a->x.item[i]) + BLOCK - 1) / BLOCK
                                                         : 0;
}

static Tensor *norm_of(Tensor *x, double ord)
{
    if (tensor_dtype(x) != TENSOR_F64) x = tensor_to(x, TENSOR_F32);
    return tensor_norm(x, ord);
}

/* All on the CPU, whose memory is at hand. */
static Tensor *norms_on_cpu(Norms *a, TensorDtype dtype)
{
    for (int i = 0; i < a->x.count; i++) {
        const bool dense = a->first[i + 1] > a->first[i];
        TensorScope scope = tensor_scope_open();
        if (dense) a->norm[i] = combine(a, i);
        else {
            const Tensor *norm = tensor_numel(a->x.item[i]) ? norm_of(a->x.item[i], a->ord) : NULL;
            a->norm[i] = norm ? tensor_item(norm) : 0;
        }
        tensor_scope_close(scope);
    }
    if (tensor_error_code()) return NULL;
    Tensor *y = tensor_to(tensor_from_data(a->norm, SHAPE(a->x.count), TENSOR_F64), dtype);
    return tensor_to_device(y, "cpu");
}

static Tensor *norms_on_device(const Norms *a, TensorDtype dtype, Tensor **norm)
{
    for (int i = 0; i < a->x.count; i++) {
        norm[i] = tensor_to(norm_of(a->x.item[i], a->ord), dtype);
        norm[i] = tensor_to_device(norm[i], tensor_device(a->x.item[0]));
        if (!norm[i]) return NULL;
    }
    return tensor_stack(TENSOR_LIST(norm, a->x.count));
}

static Tensor *norms(Norms *a)
{
    const int n = a->x.count;
    TensorDtype dtype = TENSOR_F32;
    bool cpu = true;
    for (int i = 0; i < n; i++) {
        if (tensor_dtype(a->x.item[i]) == TENSOR_F64) dtype = TENSOR_F64;
        cpu = cpu && strcmp(tensor_device(a->x.item[i]), "cpu") == 0;
    }
    if (!cpu) {
        Tensor *y = NULL;
        if (op_list_norm("tensor_foreach_norm", a->x, a->ord, &y)) return y;
        return norms_on_device(a, dtype, (Tensor **)(void *)a->norm);
    }
    a->first[0] = 0;
    for (int i = 0; i < n; i++) a->first[i + 1] = a->first[i] + blocks(a, i);
    a->part = malloc(((size_t)a->first[n] + 1) * sizeof *a->part);
    if (!a->part) return tensor_fail(TENSOR_ENOMEM, "tensor_foreach_norm", "out of memory"), NULL;
    optim_pass(&(OptimPass){ n, a->first, piece, a }, BLOCK);
    Tensor *y = norms_on_cpu(a, dtype);
    free(a->part);
    return y;
}

const TensorForeachNormArgs tensor_foreach_norm_defaults = { TENSOR_FOREACH_NORM_DEFAULTS };

Tensor *tensor_foreach_norm_args(TensorForeachNormArgs args)
{
    static const char function[] = "tensor_foreach_norm";
    Norms a = { args.self, args.ord, OTHER };
    if (TENSOR_CHECK_OPTIONS(function, args, tensor_foreach_norm_defaults)) return NULL;
    TensorScope scope = tensor_scope_open();
    const bool was = tensor_set_grad_enabled(false);
    const char *outer = tensor_compose_begin(function);
    Tensor *y = NULL;
    if (args.ord == 2) a.kind = SQUARES;
    if (args.ord == INFINITY) a.kind = LARGEST;
    if (!optim_check_list(function, args.self, false)) {
        const size_t n = (size_t)args.self.count;
        a.first = malloc((n + 1) * sizeof *a.first + (n + 1) * sizeof *a.norm);
        if (!a.first) tensor_fail(TENSOR_ENOMEM, function, "out of memory");
        else {
            a.norm = (double *)(void *)(a.first + n + 1);
            y = n ? norms(&a) : tensor_zeros(SHAPE(0), TENSOR_F32);
        }
        free(a.first);
    }
    tensor_compose_end(outer);
    tensor_set_grad_enabled(was);
    return tensor_scope_return(scope, y);
}
