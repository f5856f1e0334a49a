/* list.cu - one launch over many arrays: rules of optimizers, casts, norms.
 *
 * A launch has a block for each CHUNK elements of an array.  Which array that is, and where it lies, is in a
 * table on the device, which is kept: the next step of a training loop mostly has the same addresses. */
#include <tapegrad/op_row.h>
#include "cuda/list_table.cuh"
#include "cuda/pack.cuh"
#include "optim/rules/all.h"

enum { CHUNK = 1 << 14 };

/* ---- rules ----------------------------------------------------------------------------------- */

#define PLUS_ONE(name) +1
#define NUMBER(name)               \
    const real name = *numbers_++; \
    (void)name;
#define STATE(name) real &name = *states_++;
#define TEXT_(...) #__VA_ARGS__
#define TEXT(...) TEXT_(__VA_ARGS__)

/* A rule over one element: the values are x, g and the states. */
#define RULE(rule)                                                                                       \
    struct rule##_rule {                                                                                 \
        enum { NUMBERS = 0 rule##_NUMBERS(PLUS_ONE), ARRAYS = 2 rule##_STATES(PLUS_ONE) };               \
        template <class real> static __device__ inline void step(const real *numbers_, real *values_)    \
        {                                                                                                \
            real &x = values_[0], &g = values_[1], *states_ = values_ + 2;                               \
            rule##_NUMBERS(NUMBER) rule##_STATES(STATE)(void) numbers_, (void)states_, (void)x, (void)g; \
            rule##_STEP;                                                                                 \
        }                                                                                                \
    };
ALL_RULES(RULE)

/* Among the parameters of a kernel, of which there may be 4 KiB. */
template <class real> struct Numbers {
    real v[OP_LIST_ROWS * OP_LIST_NUMBERS];
};

/* By packs where all arrays begin at one. */
template <class T> static __device__ inline bool aligned(T *const *array, int arrays)
{
    bool all = true;
    for (int a = 0; a < arrays; a++) all = all && (uintptr_t)array[a] % sizeof(Pack<T>) == 0;
    return all;
}

template <class Rule, class T>
static __device__ inline void step_pack(T *const *array, int64_t at, const Compute<T> *k)
{
    Pack<T> pack[Rule::ARRAYS];
    for (int a = 0; a < Rule::ARRAYS; a++) pack[a] = load_pack<Pack<T>>(array[a] + at);
    for (int i = 0; i < Pack<T>::SIZE; i++) {
        Compute<T> v[Rule::ARRAYS];
        for (int a = 0; a < Rule::ARRAYS; a++) v[a] = value_of(pack[a].v[i]);
        Rule::step(k, v);
        for (int a = 0; a < Rule::ARRAYS; a++) put(&pack[a].v[i], v[a]);
    }
    for (int a = 0; a < Rule::ARRAYS; a++)
        if (a != 1) store_pack(array[a] + at, pack[a]);
}

template <class Rule, class T>
static __device__ inline void step_one(T *const *array, int64_t at, const Compute<T> *k)
{
    Compute<T> v[Rule::ARRAYS];
    for (int a = 0; a < Rule::ARRAYS; a++) v[a] = value_of(array[a][at]);
    Rule::step(k, v);
    for (int a = 0; a < Rule::ARRAYS; a++)
        if (a != 1) put(array[a] + at, v[a]);
}

template <class Rule, class T>
static __global__ void run_rule(ListTable table, Numbers<Compute<T>> given, const Compute<T> *there,
                                const Bool *skip, const int64_t *row)
{
    if (skip && skip->v) return;
    const ListShare share = share_of(table, CHUNK);
    T *array[Rule::ARRAYS];
    for (int a = 0; a < Rule::ARRAYS; a++) array[a] = (T *)table.array[share.list * Rule::ARRAYS + a];
    Compute<T> k[OP_LIST_NUMBERS];
    const int at = row ? (int)*row * OP_LIST_NUMBERS : 0;
    for (int i = 0; i < Rule::NUMBERS; i++) k[i] = there ? there[i] : given.v[at + i];
    int64_t rest = share.from;
    if (aligned(array, Rule::ARRAYS)) {
        rest = share.to - (share.to - share.from) % Pack<T>::SIZE;
        for (int64_t i = share.from + (int64_t)threadIdx.x * Pack<T>::SIZE; i < rest;
             i += (int64_t)blockDim.x * Pack<T>::SIZE)
            step_pack<Rule>(array, i, k);
    }
    for (int64_t i = rest + threadIdx.x; i < share.to; i += blockDim.x) step_one<Rule>(array, i, k);
}

template <class Rule> static int rule_on(const ListRuleArgs *a)
{
    if (a->arrays != Rule::ARRAYS || a->numbers != Rule::NUMBERS) return KERNEL_DECLINED;
    return with_float(a->dtype, [=]<class T>() -> int {
        ListTable table;
        Numbers<Compute<T>> k = {};
        if (!gpu_list_table({ a->array, a->count, a->n, a->arrays, CHUNK }, &table)) return KERNEL_FAILED;
        if (a->ready || table.blocks == 0) return KERNEL_DONE;
        const int given = !a->number ? 0 : a->row ? a->rows * OP_LIST_NUMBERS : a->numbers;
        for (int i = 0; i < given; i++) k.v[i] = (Compute<T>)a->number[i];
        LAUNCH((run_rule<Rule, T>), table.blocks, THREADS, table, k, (const Compute<T> *)a->number_there,
               (const Bool *)a->skip, a->row);
        return gpu_launched(a->rule);
    });
}

static const struct {
    const char *name, *step;
    int (*run)(const ListRuleArgs *);
} rules[] = {
#define ENTRY(rule) { #rule, TEXT(rule##_STEP), rule_on<rule##_rule> },
    ALL_RULES(ENTRY)
};

int gpu_list_rule(ListRuleArgs *a)
{
    for (const auto &rule : rules)
        if (strcmp(rule.name, a->rule) == 0 && strcmp(rule.step, a->step) == 0) return rule.run(a);
    return KERNEL_DECLINED;
}

/* ---- casts ----------------------------------------------------------------------------------- */

/* By what a load of 16 bytes brings, where both arrays begin at one. */
template <class To, class From> static __global__ void cast_chunks(ListTable table)
{
    constexpr int N = Pack<float>::SIZE;
    const ListShare share = share_of(table, CHUNK);
    const From *from = (const From *)table.array[2 * share.list];
    To *to = (To *)table.array[2 * share.list + 1];
    int64_t rest = share.from;
    if ((uintptr_t)from % sizeof(Pack<From, N>) == 0 && (uintptr_t)to % sizeof(Pack<To, N>) == 0) {
        rest = share.to - (share.to - share.from) % N;
        for (int64_t i = share.from + (int64_t)threadIdx.x * N; i < rest; i += (int64_t)blockDim.x * N) {
            const Pack<From, N> pack = load_pack<Pack<From, N>>(from + i);
            Pack<To, N> cast;
            for (int k = 0; k < N; k++) put(&cast.v[k], value_of(pack.v[k]));
            store_pack(to + i, cast);
        }
    }
    for (int64_t i = rest + threadIdx.x; i < share.to; i += blockDim.x) put(to + i, value_of(from[i]));
}

int gpu_list_cast(ListCastArgs *a)
{
    ListTable table;
    const int half = a->from == TENSOR_F32 ? a->to : a->from;
    const bool widens = a->from != TENSOR_F32;
    if ((half != TENSOR_F16 && half != TENSOR_BF16) || (widens && a->to != TENSOR_F32))
        return KERNEL_DECLINED;
    if (!gpu_list_table({ a->array, a->count, a->n, 2, CHUNK }, &table)) return KERNEL_FAILED;
    if (a->ready || table.blocks == 0) return KERNEL_DONE;
    auto kernel = half == TENSOR_F16 ? (widens ? &cast_chunks<float, __half> : &cast_chunks<__half, float>)
                  : widens           ? &cast_chunks<float, __nv_bfloat16>
                                     : &cast_chunks<__nv_bfloat16, float>;
    LAUNCH(kernel, table.blocks, THREADS, table);
    return gpu_launched("casts of a list");
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* Each term, how two sums join, and what becomes of the last one.  A thread's few terms add up as they are
 * computed with, the sums of threads in double. */
struct Squares {
    template <class C> static __device__ inline C term(C x) { return x * x; }
    template <class C> static __device__ inline C join(C a, C b) { return a + b; }
    static __device__ inline double end(double sum) { return sqrt(sum); }
};
struct Sizes {
    template <class C> static __device__ inline C term(C x) { return x < 0 ? -x : x; }
    template <class C> static __device__ inline C join(C a, C b) { return a + b; }
    static __device__ inline double end(double sum) { return sum; }
};
struct Largest { /* NaN wins */
    template <class C> static __device__ inline C term(C x) { return x < 0 ? -x : x; }
    template <class C> static __device__ inline C join(C a, C b) { return a > b || a != a ? a : b; }
    static __device__ inline double end(double most) { return most; }
};
template <class Kind> struct Joined {
    __device__ inline double operator()(double a, double b) const { return Kind::join(a, b); }
};

template <class Kind, class T> static __global__ void norm_of_chunks(ListTable table, double *part)
{
    const ListShare share = share_of(table, CHUNK);
    const T *x = (const T *)table.array[2 * share.list];
    Compute<T> sum = 0;
    read_row<Together>(x + share.from, share.to - share.from, 1,
                       [&](int64_t, Compute<T> v) { sum = Kind::join(sum, Kind::term(v)); });
    const double whole = Together::join((double)sum, Joined<Kind>());
    if (threadIdx.x == 0) part[blockIdx.x] = whole;
}

template <class Kind, class Out>
static __global__ void norm_of_lists(ListTable table, const double *part, Out *out)
{
    const int64_t list = blockIdx.x;
    double sum = 0;
    for (int64_t i = table.first[list] + threadIdx.x; i < table.first[list + 1]; i += blockDim.x)
        sum = Kind::join(sum, part[i]);
    sum = Together::join(sum, Joined<Kind>());
    if (threadIdx.x == 0) out[(uintptr_t)table.array[2 * list + 1]] = (Out)Kind::end(sum);
}

template <class Kind> static int norms(const ListNormArgs *a)
{
    return with_float(a->dtype, [=]<class T>() -> int {
        ListTable table;
        if (!gpu_list_table({ a->array, a->count, a->n, 2, CHUNK }, &table)) return KERNEL_FAILED;
        Scratch part((size_t)table.blocks * sizeof(double));
        double *sums = (double *)part.data;
        if (!sums) return KERNEL_FAILED;
        if (table.blocks > 0) {
            LAUNCH((norm_of_chunks<Kind, T>), table.blocks, THREADS, table, sums);
            if (gpu_launched("norms of a list")) return KERNEL_FAILED;
        }
        if (a->out_dtype == TENSOR_F64)
            LAUNCH((norm_of_lists<Kind, double>), (unsigned)a->n, THREADS, table, sums, (double *)a->out);
        else LAUNCH((norm_of_lists<Kind, float>), (unsigned)a->n, THREADS, table, sums, (float *)a->out);
        return gpu_launched("norms of a list");
    });
}

int gpu_list_norm(ListNormArgs *a)
{
    return a->ord == 2          ? norms<Squares>(a)
           : a->ord == 1        ? norms<Sizes>(a)
           : a->ord == INFINITY ? norms<Largest>(a)
                                : KERNEL_DECLINED;
}
