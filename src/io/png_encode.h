/* png_encode.h - a picture as the bytes of a PNG file. */
#ifndef TG_PNG_ENCODE_H
#define TG_PNG_ENCODE_H

#include "hidden.h"
#include "tensor/core.h"

typedef struct Png {
    uint8_t *bytes;
    size_t n, capacity; /* to be freed: tg_free(bytes, capacity) */
    int64_t h, w;
    int channels;
} Png;

HIDDEN_BEGIN
/* png_encode: x as io_save_png takes it.  png_check_name: does the path end in .png?  -1 and the reason
 * recorded for op. */
int png_encode(const Tensor *x, const char *op, Png *out);
int png_check_name(const char *path, const char *op);
HIDDEN_END

#endif
