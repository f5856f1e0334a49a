/* ctc.h - what a target's labels make of the states of a sequence. */
#ifndef TG_CTC_H
#define TG_CTC_H

#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN

/* ctc_bad_label - the number of the first of n labels that is no class, or the blank; -1: none.
 * ctc_labels - the labels of all states of one target: blanks between and behind its labels. */
int64_t ctc_bad_label(const int64_t *label, int64_t n, int64_t classes, int64_t blank);
void ctc_labels(const int64_t *label, int64_t size, int64_t blank, int64_t states, int64_t *to);

HIDDEN_END
#endif
