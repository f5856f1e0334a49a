/* fuzz_idx.c - io_read_idx on arbitrary bytes. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return fuzz_tensor(io_read_idx, bytes, size);
}
