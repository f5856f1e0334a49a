/* input.h - regular files for reading, with their size known before anything is allocated. */
#ifndef TG_INPUT_H
#define TG_INPUT_H

#include <stdio.h>
#include "hidden.h"
#include "tensor/core.h"

HIDDEN_BEGIN
/* A descriptor, or -1 and the reason recorded for op: ENULL, EIO.  A directory, a pipe or a device is
 * refused. stream: the same as a FILE; NULL. */
int input_open(const char *path, const char *op, int64_t *size);
FILE *input_stream(const char *path, const char *op, int64_t *size);

/* input_count - the elements of a shape from a file; -1 where no tensor can be of that shape. */
int64_t input_count(TensorShape shape);
HIDDEN_END

#endif
