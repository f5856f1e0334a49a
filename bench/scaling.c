/* scaling.c - what an element, an op, an entry of the tape and a parameter cost, from 100 of them to 10^8 or
 * to what MEMORY holds: one line each, and build/scaling.png, with the decimal logarithms of both axes.
 *
 *   element     a * b + c, one dense f32 op each, of n elements
 *   op          n of these on one element, no graph
 *   entry       a chain of n ops on one element, recorded, then backward through all of it
 *   parameter   one step of AdamW over n parameters of 16 elements
 *
 * Each is the least of several runs, in nanoseconds of CPU time, on one thread. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tapegrad.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 5, POINTS = 20, STEPS_OF_A_SCOPE = 1000 };
static const double LARGEST = 1e8, SHARE_OF_MEMORY = .5;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* ---- the four -------------------------------------------------------------------------------- */

/* Nanoseconds for n units; what is set up before the clock starts is not counted. */
typedef double (*Run)(int64_t n);

static double elements(int64_t n)
{
    Tensor *a = tensor_ones(SHAPE(n), TENSOR_F32), *b = tensor_ones(SHAPE(n), TENSOR_F32);
    const double begin = cpu_ns();
    tensor_add(tensor_mul(a, b), b);
    return (cpu_ns() - begin) / 2;
}

static double ops(int64_t n)
{
    Tensor *a = tensor_ones(SHAPE(1), TENSOR_F32);
    const double begin = cpu_ns();
    for (int64_t left = n; left > 0; left -= STEPS_OF_A_SCOPE) {
        TensorScope scope = tensor_scope_open();
        for (int64_t i = 0; i < left && i < STEPS_OF_A_SCOPE; i++) tensor_mul(a, a);
        tensor_scope_close(scope);
    }
    return cpu_ns() - begin;
}

static double entries(int64_t n)
{
    Tensor *w = tensor_requires_grad_(tensor_ones(SHAPE(1), TENSOR_F32), true), *x = NULL;
    const double begin = cpu_ns();
    tensor_assign(&x, w);
    for (int64_t left = n; left > 0; left -= STEPS_OF_A_SCOPE) {
        TensorScope scope = tensor_scope_open();
        Tensor *y = x;
        for (int64_t i = 0; i < left && i < STEPS_OF_A_SCOPE; i++) y = tensor_neg(y);
        tensor_assign(&x, y);
        tensor_scope_close(scope);
    }
    tensor_backward(x);
    tensor_release(x);
    return cpu_ns() - begin;
}

static double parameters(int64_t n)
{
    Tensor **list = calloc((size_t)n, sizeof *list);
    if (!list) return NAN;
    for (int64_t i = 0; i < n; i++) {
        list[i] = tensor_requires_grad_(tensor_ones(SHAPE(16), TENSOR_F32), true);
        tensor_set_grad(list[i], tensor_ones(SHAPE(16), TENSOR_F32));
    }
    Optimizer *opt = optim_adamw(TENSOR_LIST(list, (int)n));
    optim_step(opt); /* makes its state */
    const double begin = cpu_ns();
    optim_step(opt);
    const double spent = cpu_ns() - begin;
    optim_free(opt), free(list);
    return spent;
}

/* Bytes that a unit holds, about. */
static const struct Cost {
    const char *unit;
    Run run;
    double bytes;
} costs[] = { { "element", elements, 16 },
              { "op", ops, 0 },
              { "entry", entries, 400 },
              { "parameter", parameters, 2000 } };

/* ---- a line, a curve ------------------------------------------------------------------------- */

static double least(Run run, int64_t n, int runs)
{
    double best = INFINITY;
    for (int i = 0; i < runs; i++) {
        TensorScope scope = tensor_scope_open();
        best = fmin(best, run(n));
        tensor_scope_close(scope);
    }
    return best;
}

static int64_t measure(const struct Cost *c, double most, double *x, double *y)
{
    int64_t points = 0;
    double spent = 0;
    /* A run that took seconds is as good as the least of five. */
    for (double n = 100; n <= most * 1.001 && points < POINTS && !tensor_error(); n *= sqrt(10), points++) {
        const double total = least(c->run, (int64_t)llround(n), spent > 3e8 ? 1 : RUNS);
        spent = total;
        x[points] = log10(n), y[points] = log10(total / n);
        printf("%-10s %12.0f  %10.3f ns\n", c->unit, n, total / n);
        fflush(stdout);
    }
    return points;
}

int main(int argc, char **argv)
{
    enum { COSTS = sizeof costs / sizeof *costs };
    static double x[COSTS][POINTS], y[COSTS][POINTS];
    IoCurve curves[COSTS];
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) * SHARE_OF_MEMORY;
    const double largest = argc > 2 ? atof(argv[2]) : LARGEST;
    if (argc < 2) return fprintf(stderr, "scaling FILE.png [LARGEST]\n"), 2;
    tensor_set_num_threads(1);
    for (int i = 0; i < COSTS; i++) {
        const struct Cost *c = &costs[i];
        const double most = c->bytes > 0 ? fmin(largest, memory / c->bytes) : largest;
        curves[i] = (IoCurve){ .name = c->unit, .x = x[i], .y = y[i], .count = measure(c, most, x[i], y[i]) };
    }
    io_save_curves(argv[1], curves, COSTS, .title = "cost of one", .x_label = "log10 of how many",
                   .y_label = "log10 of ns");
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}
