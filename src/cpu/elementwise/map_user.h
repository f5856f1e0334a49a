/* map_user.h - a user's row on the CPU: the same driver as the built-in rows, other loops. */
#ifndef TG_MAP_USER_H
#define TG_MAP_USER_H

#include <tapegrad/op_row.h>
#include "device/device.h"
#include "hidden.h"

HIDDEN_BEGIN
int map_user_row(const TensorOp *op, MapArgs *args);
HIDDEN_END

#endif
