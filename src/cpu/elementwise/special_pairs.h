/* special_pairs.h - igamma and igammac by vectors (special_pairs_kernel.c). */
#ifndef TG_SPECIAL_PAIRS_H
#define TG_SPECIAL_PAIRS_H

#include "cpu/isa.h"
#include "device/device.h"
#include "hidden.h"

double special_plain(int kind, double a, double b) HIDDEN;

/* Elements [from, to) of a call whose results are rounded to f32. */
ISA_DECLARE(void, special_rounded, const SpecialArgs *p, int64_t from, int64_t to);

#endif
