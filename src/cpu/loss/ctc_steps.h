/* ctc_steps.h - one step of the recurrences of ctc.c, for the CPU and for CUDA. */
#ifndef TG_CTC_STEPS_H
#define TG_CTC_STEPS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define CTC_FN static __device__ inline
#else
#define CTC_FN static inline
#endif

CTC_FN double ctc_log_sum2(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return low == -(double)INFINITY ? high : high + log1p(exp(low - high));
}

CTC_FN double ctc_log_sum3(double a, double b, double c)
{
    if (c == -(double)INFINITY) return ctc_log_sum2(a, b);
    const double m = fmax(a, fmax(b, c));
    return m == -(double)INFINITY ? m : m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

/* May a path leap to state s? */
CTC_FN bool ctc_leaps(const int64_t *label, int64_t s)
{
    return s % 2 == 1 && s > 1 && label[s] != label[s - 2];
}

/* a_t(s) from those of the step before, NULL at the first; x is the log-probability of its label at t. */
CTC_FN double ctc_alpha(const int64_t *label, int64_t s, const double *before, double x)
{
    if (!before) return (s < 2 ? 0 : -(double)INFINITY) + x;
    return ctc_log_sum3(before[s], s > 0 ? before[s - 1] : -(double)INFINITY,
                        ctc_leaps(label, s) ? before[s - 2] : -(double)INFINITY) +
           x;
}

/* b_(t-1)(s) from those of step t; x are its log-probabilities. */
CTC_FN double ctc_beta(const int64_t *label, int64_t s, int64_t states, const double *now, const double *x)
{
    const double one = s + 1 < states ? now[s + 1] + x[label[s + 1]] : -(double)INFINITY;
    const bool leap = s + 2 < states && ctc_leaps(label, s + 2);
    return ctc_log_sum3(now[s] + x[label[s]], one, leap ? now[s + 2] + x[label[s + 2]] : -(double)INFINITY);
}

/* The loss, from a of the last step; `times` steps to the last state's number. */
CTC_FN double ctc_loss_at_end(int64_t times, int64_t last, const double *a)
{
    if (times == 0) return last ? (double)INFINITY : 0;
    return -ctc_log_sum2(a[last], last ? a[last - 1] : -(double)INFINITY);
}

#endif
