/* class_margin.c - the slot class_margin: sums of hinges, and how many are open. */
#include "cpu/cpu.h"
#include "cpu/index/host_index.h"

static double row_loss(const double *x, const int64_t *target, int64_t classes, bool *right, double *counts)
{
    double sum = 0;
    int64_t n = 0;
    memset(right, 0, (size_t)classes * sizeof *right);
    while (n < classes && target[n] >= 0) right[target[n++]] = true;
    for (int64_t k = 0; k < n; k++) {
        const double edge = 1 - x[target[k]];
        int64_t many = 0;
        for (int64_t i = 0; i < classes;
             i++) { /* no branch: half of the hinges are open; NaN counts as one */
            const double z = edge + x[i];
            const bool open = !right[i] & !(z <= 0);
            sum += open ? z : 0;
            counts[i] += open;
            many += open;
        }
        counts[target[k]] -= (double)many;
    }
    return sum;
}

int cpu_class_margin(ClassMarginArgs *a)
{
    const int64_t n = a->rows * a->classes;
    if ((a->bad_at = host_outside(a->target, n, -1, a->classes)) >= 0)
        return a->bad_value = a->target[a->bad_at], KERNEL_FAILED;
    bool *right = tg_alloc((size_t)a->classes);
    if (!right) return fail_memory("multilabel_margin_loss");
    memset(a->slope, 0, (size_t)n * sizeof *a->slope);
    for (int64_t from = 0; from < n; from += a->classes)
        *a->loss++ =
            row_loss(a->x + from, a->target + from, a->classes, right, a->slope + from) / (double)a->classes;
    for (int64_t i = 0; i < n; i++) a->slope[i] /= (double)a->classes;
    tg_free(right, (size_t)a->classes);
    return 0;
}
