/* optim.h - what the optimizers share.
 *
 * Loops over memory come in two builds, for the baseline and for AVX2, over spans that threads share out.
 * Contraction is off, so both round alike. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include <string.h>
#include <tapegrad.h>

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

/* optim_dense - may a loop over memory serve instead of ops?  'f' or 'd' for dense f32 or f64 tensors on the
 * CPU, 0 for any other. */
char optim_dense(const Tensor *t);

int optim_check_common(double lr, double weight_decay, const char *function);
int optim_check_betas(double beta1, double beta2, double eps, const char *function);
double *optim_number(const Optimizer *opt, int group, const char *name); /* an option, or NULL */
bool optim_null(const Optimizer *opt, const char *function);             /* recorded, unless an error was */
unsigned optim_states(const OptimKind *kind, const void *options);       /* those needed, as bits */
int optim_make_states(const Optimizer *opt, const OptimGroup *g,
                      OptimParam *p); /* those that p lacks, as zeros */

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

/* ---- rules (rule.h, rule.c): states are those that are needed, in their order ---------------- */

enum { OPTIM_NUMBERS = 12 }; /* of a rule, at most */

typedef struct OptimRule {
    void (*loop[2][2])(const void *numbers, int64_t n, void *x, const void *g,
                       void *const *state); /* wide, f64 */
    const char *step, *number[OPTIM_NUMBERS + 1], *state[OPTIM_STATES + 1];
} OptimRule;

/* optim_run - the rule of a kind over the parameters of a group.  What lies dense on the CPU goes in one pass
 * that cannot fail; the others may have any dtype, layout and device, halves compute in f32 and round once.
 * OptimKind.numbers gives the numbers of a parameter's step in the order of the rule, from the options, step,
 * fresh and number alone. */
int optim_run(const OptimKind *kind, const void *options, OptimParam *const *p, Tensor *const *grad, int n);

/* ---- loops ----------------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__GNUC__)
#define OPTIM_WIDE __attribute__((target("avx2")))
static inline bool optim_wide(void) { return __builtin_cpu_supports("avx2"); }
#else
#define OPTIM_WIDE
static inline bool optim_wide(void) { return false; }
#endif
#define OPTIM_SIMD _Pragma("omp simd")

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
