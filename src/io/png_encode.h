/* png_encode.h - a picture as the bytes of a PNG file. */
#ifndef TG_PNG_ENCODE_H
#define TG_PNG_ENCODE_H

#include "tensor/core.h"

typedef struct Png {
    uint8_t *bytes;
    size_t n, capacity; /* to be freed: tg_free(bytes, capacity) */
    int64_t h, w;
    int channels;
} Png;

#pragma GCC visibility push(hidden)
/* As io_save_png takes it; -1 and the reason recorded for op. */
int png_encode(const Tensor *x, const char *op, Png *out);
#pragma GCC visibility pop

#endif
