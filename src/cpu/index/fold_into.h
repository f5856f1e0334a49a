/* fold_into.h - what gather.c and fold_into.c share. */
#ifndef TG_FOLD_INTO_H
#define TG_FOLD_INTO_H

#include "device/device.h"
#include "hidden.h"

HIDDEN_BEGIN

/* gather_check - 0 where all indices are in range; -1 with bad_at and bad_value. */
int gather_check(GatherArgs *g);

HIDDEN_END
#endif
