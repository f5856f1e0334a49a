/* optim.h - what the optimizers share.
 *
 * Loops over memory are compiled for the baseline, AVX2 and, some, AVX-512; threads share their spans.
 * Contraction is off, so that all round alike. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include <string.h>
#include <tapegrad.h>
#include "hidden.h"

#if defined(__GNUC__)
HIDDEN_BEGIN
#endif

/* optim_dense - may a loop over memory serve instead of ops?  'f' or 'd' for dense f32 or f64 tensors on the
 * CPU, 0 for any other. */
char optim_dense(const Tensor *t);
bool optim_is_far(const Tensor *t); /* not on the CPU */

int optim_check_options(const OptimKind *kind, const void *options, const char *function);
int optim_check_common(double lr, double weight_decay, const char *function);
int optim_check_betas(double beta1, double beta2, double eps, const char *function);
double optim_call_closure(OptimClosure fn, void *ctx); /* the loss, in grad mode; NaN after an error */
double *optim_number(const Optimizer *opt, int group, const char *name); /* an option, or NULL */
bool optim_null(const Optimizer *opt, const char *function);       /* records an error unless there is one */
unsigned optim_states(const OptimKind *kind, const void *options); /* those needed, as bits */
int optim_make_states(const Optimizer *opt, const OptimGroup *g,
                      OptimParam *p); /* makes the states that p lacks, as zeros */

/* optim_step_groups - a step of all groups; ready fills g->stepped, g->before and g->grad, which is dense
 *     and the scope's, and says how many.
 * optim_make_group - a group that optim_free_group frees, whether or not it was made. */
int optim_step_groups(Optimizer *opt, int (*ready)(const Optimizer *opt, OptimGroup *g, int *n));
int optim_make_group(OptimGroup *g, size_t args, TensorList list, const void *options);
void optim_free_group(OptimGroup *g);

/* The shape of state s of p into dim; -1: it has none, or the options do not want it. */
int optim_state_shape(const OptimKind *kind, const void *options, const Tensor *p, int s, int64_t *dim);
int optim_append_group(Optimizer *opt, TensorList list, const void *options); /* checks nothing */

/* optim_has_master - is t stepped in f32?
 * optim_enter_master - makes p->tensor the f32 copy, which is made and brought up to date.
 * optim_leave_masters - makes it the parameter again, into which it is rounded where write says so. */
bool optim_has_master(const Optimizer *opt, const Tensor *t);
int optim_enter_master(OptimParam *p);
int optim_leave_masters(OptimGroup *g, int n, bool write);

Tensor *optim_wider(Tensor *x); /* f64 as it is, else f32 */

/* Lists a kind among those that optim_kind_at gives. */
#define OPTIM_REGISTER(kind)                                                                                \
    static const OptimKind *const registered_##kind __attribute__((used, section("tapegrad_optimizers"))) = \
        &kind

/* The kind of optim_NAME with options ARGS, and the function; the rest are members of OptimKind. */
#define OPTIM_DEFINE(NAME, ARGS, ...)                                                                       \
    static const OptimKind kind_##NAME = {                                                                  \
        .function = "optim_" #NAME, .args = sizeof(ARGS), .defaults = &optim_##NAME##_defaults, __VA_ARGS__ \
    };                                                                                                      \
    OPTIM_REGISTER(kind_##NAME);                                                                            \
    Optimizer *optim_##NAME##_args(ARGS args) { return optim_new(&kind_##NAME, &args); }

/* tensor_fused_NAME_ (fused.h) of such a kind. */
#define OPTIM_FUSED(NAME, ARGS)                                                     \
    int tensor_fused_##NAME##_args_(TensorFusedLists lists, ARGS args)              \
    {                                                                               \
        return optim_fused("tensor_fused_" #NAME "_", &kind_##NAME, &lists, &args); \
    }
int optim_fused(const char *function, const OptimKind *kind, const TensorFusedLists *lists,
                const void *options);

/* ---- rules (rule.h, rule.c): states are those that are needed, in their order ---------------- */

enum { OPTIM_NUMBERS = OP_LIST_NUMBERS }; /* of a rule, at most */

typedef struct OptimRule {
    void (*loop[3][2])(const void *numbers, int64_t n, void *x, const void *g,
                       void *const *state); /* how wide, f64 */
    const char *name, *step, *number[OPTIM_NUMBERS + 1], *state[OPTIM_STATES + 1];
} OptimRule;

/* optim_run - the rule of a kind over the n stepped parameters of a group.  What lies dense on the CPU goes
 *     in one pass that cannot fail; the others may have any dtype, layout and device, halves compute in f32
 *     and round once.  OptimKind.numbers gives the numbers of a parameter's step in the order of the rule,
 *     from the options, step, fresh and number alone.
 * optim_make_ready - makes what optim_run needs, but for the ops that serve where there is no kernel; *sure
 *     becomes false where there are such.
 * optim_loop - a rule over elements from .. from + count of dense tensors.
 * optim_evaluate - a rule by ops: x and the states become what it assigns to them, in f32 or f64. */
int optim_run(const OptimKind *kind, const OptimGroup *g, int n, Tensor *found); /* found: held back */
int optim_make_ready(const OptimKind *kind, const OptimGroup *g, int n, Tensor *found, bool *sure);
void optim_loop(const OptimRule *rule, const double *k, Tensor *x, Tensor *g, Tensor *const *state,
                int states, int64_t from, int64_t count);
int optim_evaluate(const char *function, const OptimRule *rule, const double *k, Tensor *const *numbers,
                   Tensor **x, Tensor *g, Tensor **state, int states); /* numbers: NULL, or instead of k */

/* ---- lists on devices (list.c) ---------------------------------------------------------------- */

/* The state of a list: 0 (nothing was done), or: */
enum { OPTIM_PENDING = 1, OPTIM_LISTED, OPTIM_DECLINED };

/* n lists of x, its gradient and the states; alike: may j go in one call with i, which lies beside it?  NULL:
 * yes.  numbers: sets those of a call, for the lists that are like i, also of one that only gets ready. */
typedef struct OptimLists {
    const char *function;
    const OptimRule *rule;
    int n, arrays;
    Tensor **item, **room; /* n * arrays; as many for a call */
    char *mark;            /* n */
    bool ready;            /* as that of OpListRule */
    bool (*alike)(const void *ctx, int i, int j);
    int (*numbers)(void *ctx, int i, OpListRule *call);
    void *ctx;
} OptimLists;

/* optim_run_lists - the rule over those that lie on devices with a kernel for it: OPTIM_LISTED in their mark.
 * -1: a device failed, or an allocation, which does not happen after the same call with ready. */
int optim_run_lists(OptimLists *lists);

/* ---- steps that are captured (captured.c) ------------------------------------------------------ */

/* optim_capture_group - of a step that is being captured, the n parameters of g that are stepped: what
 *     follows reads g->captured only if op_graph_capturing.  What cannot be captured ends the capture.
 * optim_captured_numbers - those of the call that begins with stepped parameter i, on the device: of the step
 *     that is not counted yet. */
typedef struct OptimCaptured OptimCaptured;
int optim_capture_group(const Optimizer *opt, OptimGroup *g, int n);
Tensor *optim_captured_numbers(const OptimGroup *g, int i, int count);

/* ---- steps that may be skipped (unless.c) ----------------------------------------------------- */

enum { OPTIM_TABLE = OP_LIST_ROWS }; /* rows: the attempts in doubt, at most, and one that is not */
/* optim_number_table - the rule's numbers for each count of skipped attempts: rows of OPTIM_NUMBERS. */
void optim_number_table(const OptimKind *kind, const void *options, const OptimParam *p, double *table);
bool optim_doubts_enough(const OptimParam *p); /* the host must read how many attempts were skipped */
int optim_settle(OptimParam *p);
int optim_settle_all(const Optimizer *opt);
bool optim_must_settle(const Optimizer *opt, const OptimGroup *g, const OptimParam *p);
int optim_doubt(const Optimizer *opt, OptimParam *p, const OptimParam *before); /* an attempt more */
void optim_end_doubt(OptimGroup *g, int n, bool stepped);                       /* it was made, or not */
int optim_pick_numbers(const OptimKind *kind, const void *options, const OptimParam *p, int count,
                       Tensor **numbers, Tensor **number);
int optim_carry(const OptimKind *kind, const void *options, OptimParam *p, Tensor *const *number,
                Tensor *found);
int optim_hold_back(const OptimGroup *g, int n, Tensor *found); /* gives back what was before the step */
int optim_write_unless(Tensor *found, Tensor *x, Tensor *y);    /* y into x; found may be NULL */
Tensor *optim_unless_fresh(const OptimParam *p, Tensor *number, double fresh); /* fresh: at the first step */
Tensor *optim_of_step_f64(const OptimParam *p, double (*fn)(const void *options, const OptimParam *p),
                          const void *options);

/* ---- passes ---------------------------------------------------------------------------------- */

typedef struct OptimSpan { /* what a thread carries from piece to piece */
    double k[OPTIM_NUMBERS];
    int last; /* -1 at first */
} OptimSpan;

/* Of n tensors, whose elements lie at first[i] .. first[i + 1] of all: piece gets each element once, in parts
 * that depend on the number of threads. */
typedef struct OptimPass {
    int n;
    const int64_t *first; /* n + 1 */
    void (*piece)(const struct OptimPass *pass, OptimSpan *span, int i, int64_t from, int64_t count);
    const void *ctx;
} OptimPass;
void optim_pass(const OptimPass *pass, int64_t work);

int optim_check_list(const char *function, TensorList x, bool any); /* any dtype: else floats */
bool optim_overlaps(const Tensor *x);                               /* do elements of it share memory? */

/* ---- loops ----------------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__GNUC__)
#define OPTIM_PLAIN __attribute__((cold)) /* for CPUs from before 2013: small code */
#define OPTIM_PLAIN_SIMD
#define OPTIM_WIDE __attribute__((target("avx2")))
#if defined(__clang__)
#define OPTIM_WIDEST __attribute__((target("avx512f,avx512vl"), min_vector_width(512)))
#else
#define OPTIM_WIDEST __attribute__((target("avx512f,avx512vl,prefer-vector-width=512")))
#endif
static inline bool optim_wide(void) { return __builtin_cpu_supports("avx2"); }
static inline int optim_width(void) /* of OptimRule.loop */
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") ? 2 : optim_wide();
}
#else
#define OPTIM_PLAIN
#define OPTIM_PLAIN_SIMD OPTIM_SIMD
#define OPTIM_WIDE __attribute__((unused))
#define OPTIM_WIDEST __attribute__((unused))
static inline bool optim_wide(void) { return false; }
static inline int optim_width(void) { return 0; }
#endif
#define OPTIM_SIMD _Pragma("omp simd")

#if defined(__GNUC__)
HIDDEN_END
#endif
#endif
