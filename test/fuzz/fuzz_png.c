/* fuzz_png.c - io_load_png on arbitrary bytes, with the checksums of chunks put right: else hardly any would
 * be passed. */
#include <string.h>
#include <zlib.h>
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, bytes, size);
    for (size_t at = 8; at + 12 <= size;) {
        size_t n =
            (size_t)copy[at] << 24 | (size_t)copy[at + 1] << 16 | (size_t)copy[at + 2] << 8 | copy[at + 3];
        if (n > size - at - 12) break;
        uint32_t crc = (uint32_t)crc32(0, copy + at + 4, (uInt)n + 4);
        for (int i = 0; i < 4; i++) copy[at + 8 + n + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += n + 12;
    }
    int status = fuzz_tensor(io_load_png, copy, size);
    free(copy);
    return status;
}
