/* cases.h - what bench measures: each case runs one block of `per` units.  A name that ends in _ stands for
 * all that begin so: setup gets the rest, sizes most often. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

typedef struct BenchCase {
    const char *name;
    void (*setup)(const char *sizes);
    void (*block)(void);
    double per;
} BenchCase;

extern const BenchCase bench_steps[], bench_kernels[], bench_small[]; /* each ends with a NULL name */

double now(void); /* in seconds */

/* Floating operations per second, all in registers; bytes per second of copies of so many bytes. */
double ceiling_flops(void);
double ceiling_copy(long bytes);

#endif
