/* optim_cases.h - the generated cases of optimizers, and a run of one: oracle/kinds/optim.golden
 * (oracle/optimizers.py says of what), and .samples of those that PyTorch has not. */
#ifndef OPTIM_CASES_H
#define OPTIM_CASES_H

#include <tapegrad.h>

enum { STEPS = 1000, P = 5, Q = 6, CASES = 200, SHOWN = 4, OWN = 2, SAVED_AT = 9 };

typedef struct Case {
    const OptimKind *kind;
    char name[400], *text[2]; /* options of the two groups */
    struct {
        int step;
        double value[P + Q];
    } golden[SHOWN];
    char names[100];   /* of PyTorch's state of p */
    char options[200]; /* and of its group */
    int shown;         /* 0: of .samples, golden[OWN] is what it gives in f64 */
    bool matrices;     /* it takes nothing else: p is [5, 1] */
} Case;

extern Case optim_cases[CASES];
extern int optim_case_count;
int optim_read_cases(void **state);

typedef struct Run {
    Tensor *p, *q;
    Optimizer *opt;
    TensorScope scope;
} Run;

Run run_begin(const Case *c, TensorDtype dtype);
void run_end(Run *r);
void run_step(Run *r, int t);
void optim_case_set_gradients(Tensor *p, Tensor *q, int t);
double run_value(const Run *r, int i);
void run_compare(const Case *c, const Run *r, int golden, double tolerance);

Tensor *optim_case_start(int first, int n, TensorShape shape, TensorDtype dtype);
Tensor *optim_case_shaped(const Case *c, Tensor *p); /* a p of 5 elements as the case takes it */
Optimizer *optim_case_make(const Case *c, Tensor *p, Tensor *q);

#endif
