/* ctc.h - losses and gradients of a batch of sequences, and what chooses among their states. */
#ifndef TG_CTC_H
#define TG_CTC_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A batch: log-probabilities [T, N, C], and the state labels of each sequence, [N, states]; those behind the
 * end are the blank. */
typedef struct CtcBatch {
    int64_t T, N, C, states;
    const double *x;
    const int64_t *label, *times, *sizes; /* times, sizes: input and target lengths */
    bool zero_infinity;
    double *loss, *dx; /* dx NULL: forward; else zeros */
    const double *g;
    double *room; /* of each sequence: T + 2 rows of states */
} CtcBatch;

/* ctc_run - the losses [N], or with dx the gradient for cotangents g [N].  -1: no memory. */
int ctc_run(CtcBatch *b);

/* ctc_bad_label - the number of the first of n labels that is no class, or the blank; -1: none.
 * ctc_labels - the labels of all states of one target: blanks between and behind its labels. */
int64_t ctc_bad_label(const int64_t *label, int64_t n, int64_t classes, int64_t blank);
void ctc_labels(const int64_t *label, int64_t size, int64_t blank, int64_t states, int64_t *to);

/* ctc_states - of [n, states]: where a path may begin, where it may end, and what it may leap to. */
void ctc_states(const int64_t *label, const int64_t *sizes, int64_t n, int64_t states, bool *first,
                bool *last, bool *leap);

/* ctc_sequences - which of n sequences step t belongs to; ends: which it is the last one of. */
void ctc_sequences(const int64_t *times, int64_t n, int64_t t, bool ends, bool *chosen);

#pragma GCC visibility pop
#endif
