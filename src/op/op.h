/* op.h - what the files of the ops include: the core, and every op that one of them may be made of.  The core
 * and the devices do not include it, so that a change of an op's header compiles the ops again and not the
 * kernels. */
#ifndef TG_OP_H
#define TG_OP_H

#include <tapegrad/ops.h>
#include "tensor/core.h"

#endif
