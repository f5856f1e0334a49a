/* counts.c - what a training step asks of the CUDA device: launches, and bytes that its kernels read and
 * write.
 *
 *   counts [launches gigabytes]      exit status 1: more of either than that
 *
 * The step is that of GPT-2 124M, 32 x 1024 tokens, autocast to bf16, clipping, AdamW: of its true size, on
 * an emulated device that counts kernels and does not run them, so it takes no GPU, hardly any
 * memory and a second.  Launches are those of the runtime.  Bytes are those of each call's operands, once
 * each: what a kernel must move if its caches hold what it reads again, not what a profiler would find. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensor/core.h"
#include "nets.h"
#include "../test/cuemu/counts.h"

enum { BATCH = 32, CONTEXT = 1024, VOCABULARY = 50257, WIDTH = 768, HEADS = 12, LAYERS = 12 };

typedef struct Tally {
    int64_t calls, launches;
    double bytes;
} Tally;

static Tally tally[KERNEL_SLOTS];
static const Device *counted;
static CuemuCounts (*runtime)(void);

static const char *const slot_name[KERNEL_SLOTS] = {
#define K(slot, Args) #slot,
    KERNEL_LIST(K) LIST_KERNELS(K)
#undef K
};

/* ---- bytes of a call ------------------------------------------------------------------------- */

static double size_of(int dtype) { return (double)dtype_size(dtype); }

/* Where a stride is 0 the same element is read again. */
static double strided(const Strided *x, int ndim, const int64_t *shape)
{
    double n = x->data ? size_of(x->dtype) : 0;
    for (int d = 0; d < ndim; d++) n *= x->stride[d] ? (double)shape[d] : 1;
    return n;
}

static double map_bytes(const MapArgs *a)
{
    double n = strided(&a->out, a->ndim, a->shape);
    for (int k = 0; k < ROW_OPERANDS; k++) n += strided(&a->in[k], a->ndim, a->shape);
    return n;
}

static double copy_bytes(const CopyArgs *a)
{
    return strided(&a->dst, a->ndim, a->shape) + strided(&a->src, a->ndim, a->shape);
}

static double fill_bytes(const FillArgs *a) { return strided(&a->dst, a->ndim, a->shape); }

static double select_bytes(const SelectArgs *a)
{
    return strided(&a->out, a->ndim, a->shape) + strided(&a->cond, a->ndim, a->shape) +
           strided(&a->a, a->ndim, a->shape) + strided(&a->b, a->ndim, a->shape);
}

static double reduce_bytes(const ReduceArgs *a)
{
    double n = size_of(a->src_dtype);
    for (int d = 0; d < a->kept_ndim; d++) n *= a->kept_stride[d] ? (double)a->kept_shape[d] : 1;
    for (int d = 0; d < a->reduced_ndim; d++) n *= a->reduced_stride[d] ? (double)a->reduced_shape[d] : 1;
    return n + (double)a->kept * size_of(a->out_dtype);
}

static double gemm_bytes(const GemmArgs *a)
{
    const double batch = (double)a->batch, m = (double)a->m, n = (double)a->n, k = (double)a->k;
    const double c = batch * m * n * size_of(a->to);
    return (m * k * (a->a_batch ? batch : 1) + k * n * (a->b_batch ? batch : 1)) * size_of(a->dtype) +
           c * (1 + (a->beta != 0) + (a->before != NULL)) +
           ((a->bias ? n : 0) + (a->sums ? m : 0)) * size_of(a->to);
}

static double softmax_bytes(const SoftmaxArgs *a)
{
    return 2 * (double)(a->outer * a->n * a->inner) * size_of(a->dtype);
}

static double softmax_grad_bytes(const SoftmaxGradArgs *a)
{
    return 3 * (double)(a->outer * a->n * a->inner) * size_of(a->dtype);
}

static double positions_bytes(int64_t positions, int dtype, int values)
{
    return (double)positions * (sizeof(int64_t) + values * (dtype == TENSOR_F64 ? 8. : 4.));
}

static double cross_entropy_bytes(const CrossEntropyArgs *a)
{
    return (double)(a->rows * a->classes * a->inner) * size_of(a->dtype) +
           positions_bytes(a->rows * a->inner, a->dtype, 2);
}

static double cross_entropy_grad_bytes(const CrossEntropyGradArgs *a)
{
    return 2 * (double)(a->rows * a->classes * a->inner) * size_of(a->dtype) +
           positions_bytes(a->rows * a->inner, a->dtype, a->g_stride ? 2 : 1);
}

static double sides_bytes(const NormArgs *a, int sides)
{
    const int64_t each = a->batch    ? a->channels
                         : a->groups ? a->groups * a->channels
                                     : a->channels * a->inner;
    return (double)each * sides * size_of(a->weights) +
           (double)(a->batch ? a->channels : a->outer) * 2 * (a->dtype == TENSOR_F64 ? 8 : 4);
}

/* x or what it is the sum of, the sum, and y; then x, dy, dx and what belongs to the sum. */
static double norm_bytes(const NormArgs *a)
{
    const double each =
        size_of(a->dtype) * (a->add ? 2 : 1) + size_of(a->to) + (a->add ? size_of(a->added) : 0);
    return (double)(a->outer * a->channels * a->inner) * each +
           sides_bytes(a, (a->weight != NULL) + (a->bias != NULL));
}

static double norm_grad_bytes(const NormArgs *a)
{
    const double each = size_of(a->dtype) * (1 + (a->dx != NULL) + (a->dsum != NULL)) + size_of(a->to) +
                        (a->dadd ? size_of(a->added) : 0);
    return (double)(a->outer * a->channels * a->inner) * each +
           sides_bytes(a, (a->weight != NULL) + (a->dweight != NULL) + (a->dbias != NULL));
}

/* The rows that are named, and what names them. */
static double gather_bytes(const GatherArgs *a)
{
    const double m = (double)a->m, named = (a->index_outer ? (double)a->outer : 1) * m;
    return 2 * (double)(a->outer * a->inner) * m * size_of(a->dtype) + 8 * named;
}

/* And dst, in which they are added. */
static double scatter_add_bytes(const GatherArgs *a)
{
    return gather_bytes(a) + (double)(a->outer * a->inner) * (double)a->n * size_of(a->dtype);
}

static double random_bytes(const RandomArgs *a) { return (double)a->count * size_of(a->dtype); }

static double attention_bytes(const AttentionArgs *a)
{
    const double rows = (double)a->rows, cols = (double)a->cols, each = size_of(a->dtype);
    return (double)a->batch * (rows * (double)(a->width + a->value_width) * each +
                               cols * (double)(a->width + a->value_width) * each + rows * 8);
}

/* q, k, v, y's gradient once more each, and those of q, k, v. */
static double attention_grad_bytes(const AttentionArgs *a) { return 2 * attention_bytes(a); }

static double elements(const int64_t *count, int64_t n)
{
    double all = 0;
    for (int64_t i = 0; i < n; i++) all += (double)count[i];
    return all;
}

/* The gradient is read, the others are written, too. */
static double list_rule_bytes(const ListRuleArgs *a)
{
    return a->ready ? 0 : (2 * a->arrays - 1) * elements(a->count, a->n) * size_of(a->dtype);
}

static double list_cast_bytes(const ListCastArgs *a)
{
    return elements(a->count, a->n) * (size_of(a->from) + size_of(a->to));
}

static double list_norm_bytes(const ListNormArgs *a)
{
    return elements(a->count, a->n) * size_of(a->dtype) + (double)a->n * size_of(a->out_dtype);
}

/* ---- the device, looked at ------------------------------------------------------------------- */

static void add(KernelSlot slot, int status, int64_t launches, double bytes)
{
    if (status != KERNEL_DONE) return;
    tally[slot].calls++, tally[slot].launches += runtime().launches - launches, tally[slot].bytes += bytes;
}

#define COUNTED(C)                              \
    C(map, MapArgs)                             \
    C(copy, CopyArgs)                           \
    C(fill, FillArgs)                           \
    C(select, SelectArgs)                       \
    C(reduce, ReduceArgs)                       \
    C(gemm, GemmArgs)                           \
    C(softmax, SoftmaxArgs)                     \
    C(softmax_grad, SoftmaxGradArgs)            \
    C(cross_entropy, CrossEntropyArgs)          \
    C(cross_entropy_grad, CrossEntropyGradArgs) \
    C(norm, NormArgs)                           \
    C(norm_grad, NormArgs)                      \
    C(gather, GatherArgs)                       \
    C(scatter_add, GatherArgs)                  \
    C(random, RandomArgs)                       \
    C(attention, AttentionArgs)                 \
    C(attention_grad, AttentionArgs)            \
    C(list_rule, ListRuleArgs)                  \
    C(list_cast, ListCastArgs)                  \
    C(list_norm, ListNormArgs)
#define LOOK(slot, Args)                                       \
    static int look_##slot(DeviceContext *context, Args *args) \
    {                                                          \
        const int64_t before = runtime().launches;             \
        const int status = counted->slot(context, args);       \
        add(SLOT_##slot, status, before, slot##_bytes(args));  \
        return status;                                         \
    }
COUNTED(LOOK)
#define K(slot_, Args)                                                     \
    static int other_##slot_(DeviceContext *context, Args *args)           \
    {                                                                      \
        (void)context, (void)args;                                         \
        fprintf(stderr, "counts: %s has no rule for its bytes\n", #slot_); \
        exit(1);                                                           \
    }
KERNEL_LIST(K)
LIST_KERNELS(K)
#undef K

static void look_at(const char *name)
{
    static Device table;
    Place *place = (Place *)(uintptr_t)find_place(name, "counts");
    if (!place) fprintf(stderr, "counts: %s\n", tensor_error()), exit(1);
    counted = place->device, table = *counted;
#define K(slot_, Args) \
    if (table.slot_) table.slot_ = other_##slot_;
    KERNEL_LIST(K)
    LIST_KERNELS(K)
#undef K
#define OURS(slot_, Args) \
    if (counted->slot_) table.slot_ = look_##slot_;
    COUNTED(OURS)
    place->device = &table;
}

static void *emulators(const char *symbol)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libtapegrad_emu.so", getenv("TAPEGRAD_PLUGIN_DIR"));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD), *found = plugin ? dlsym(plugin, symbol) : NULL;
    if (!found) fprintf(stderr, "counts: %s has no %s\n", path, symbol), exit(1);
    return found;
}

static void only_count(void)
{
    void (*dry)(void);
    *(void **)&runtime = emulators("cuemu_counts");
    *(void **)&dry = emulators("cuemu_dry");
    dry();
}

/* ---- the step -------------------------------------------------------------------------------- */

static Tally all;
static bool told;

static void print(const char *what, const Tally *t)
{
    if (told)
        printf("  %-22s %7lld %9lld %9.2f\n", what, (long long)t->calls, (long long)t->launches,
               t->bytes / 1e9);
}

static void end_part(const char *part, const CuemuCounts *before)
{
    const CuemuCounts now = runtime();
    Tally sum = { 0 };
    if (told) printf("%s\n", part);
    for (int s = 0; s < KERNEL_SLOTS; s++) {
        if (tally[s].calls) print(slot_name[s], &tally[s]);
        sum.calls += tally[s].calls, sum.launches += tally[s].launches, sum.bytes += tally[s].bytes;
    }
    sum.launches = now.launches - before->launches;
    print("together", &sum);
    if (told && (now.waits > before->waits || now.to_device > before->to_device))
        printf("  waits %lld, copies from the host %lld\n", (long long)(now.waits - before->waits),
               (long long)(now.to_device - before->to_device));
    all.calls += sum.calls, all.launches += sum.launches, all.bytes += sum.bytes;
    memset(tally, 0, sizeof tally);
}

#define PART(name, ...)                        \
    do {                                       \
        const CuemuCounts before_ = runtime(); \
        __VA_ARGS__;                           \
        end_part(name, &before_);              \
    } while (0)

static void step(Module *net, Optimizer *opt, Tensor *tokens, Tensor *targets)
{
    TensorScope scope = tensor_scope_open();
    Tensor *logits, *loss = NULL;
    PART("forward",
         TENSOR_AUTOCAST(TENSOR_BF16) nn_call(net, .in = { tokens, targets }, .out = { &logits, &loss }));
    PART("backward", tensor_backward(loss));
    PART("clipping", nn_clip_grad_norm_(nn_parameters(net), 1.0));
    PART("AdamW", optim_step(opt));
    tensor_scope_close(scope);
    optim_zero_grad(opt);
}

int main(int argc, char **argv)
{
    tensor_set_default_device("emu:0");
    if (tensor_error()) return fprintf(stderr, "counts: %s\n", tensor_error()), 1;
    only_count();
    look_at("emu:0");
    Module *net = gpt_net(VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, true);
    Optimizer *opt = optim_adamw(nn_parameters(net), .lr = 6e-4, .beta2 = 0.95, .weight_decay = 0.1);
    Tensor *tokens = tensor_zeros(SHAPE(BATCH, CONTEXT), TENSOR_I64), *targets = tensor_zeros_like(tokens);
    step(net, opt, tokens, targets); /* makes the optimizer's state and the tables of its lists */
    told = true, all = (Tally){ 0 };
    printf("%-24s %7s %9s %9s\n", "", "calls", "launches", "GB");
    step(net, opt, tokens, targets);
    print("the step", &all);
    if (tensor_error()) return fprintf(stderr, "counts: %s\n", tensor_error()), 1;
    if (tensor_host_fallbacks()) return fprintf(stderr, "counts: the host computed a part\n"), 1;
    optim_free(opt), nn_free(net);
    if (argc < 3 || (all.launches <= atoll(argv[1]) && all.bytes <= 1e9 * atof(argv[2]))) return 0;
    return fprintf(stderr, "counts: want at most %s launches and %s GB\n", argv[1], argv[2]), 1;
}
