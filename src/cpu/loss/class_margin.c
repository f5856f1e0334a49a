/* class_margin.c - see class_margin.h. */
#include <string.h>
#include "class_margin.h"

static double row_loss(const double *x, const int64_t *target, int64_t classes, bool *right, double *counts)
{
    double sum = 0;
    int64_t n = 0;
    memset(right, 0, (size_t)classes * sizeof *right);
    while (n < classes && target[n] >= 0) right[target[n++]] = true;
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < classes; i++) {
            const double z = 1 - x[target[k]] + x[i];
            if (right[i] || z <= 0) continue; /* NaN goes on */
            sum += z;
            counts[i] += 1;
            counts[target[k]] -= 1;
        }
    return sum;
}

void multilabel_margin(const double *x, const int64_t *target, int64_t rows, int64_t classes, double *loss,
                       double *counts, bool *right)
{
    for (int64_t i = 0; i < rows; i++) {
        const int64_t from = i * classes;
        loss[i] = row_loss(x + from, target + from, classes, right, counts + from) / (double)classes;
    }
    for (int64_t i = 0; i < rows * classes; i++) counts[i] /= (double)classes;
}
