/* fuzz_safetensors.c - io_load_safetensors on arbitrary bytes; the first 8 are the header's length, or, when
 * byte 7 is odd, are set so that the header ends with the last brace; a checksum is then set right, unless
 * byte 6 is odd, too. */
#include <stdio.h>
#include <string.h>
#include "fuzz.h"
#include "io/crc32c.h"
#include "io/safetensors.h"

static void set_checksum(uint8_t *file, size_t size)
{
    uint8_t *digits = file + 8 + SAFETENSORS_CHECKED_AT;
    char text[SAFETENSORS_DIGITS + 1];
    if (size < 8 + SAFETENSORS_CHECKED_AT + SAFETENSORS_DIGITS ||
        memcmp(file + 8, SAFETENSORS_CHECKED, SAFETENSORS_CHECKED_AT))
        return;
    memset(digits, '0', SAFETENSORS_DIGITS);
    snprintf(text, sizeof text, "%08x", (unsigned)crc32c(0, file + 8, size - 8));
    memcpy(digits, text, SAFETENSORS_DIGITS);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int64_t live = tensor_live_count();
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, bytes, size);
    if (size > 8 && copy[7] & 1) {
        const uint8_t *end = memrchr(copy + 8, '}', size - 8);
        uint64_t header = end ? (uint64_t)(end - copy) - 7 : size - 8;
        const bool right = !(copy[6] & 1);
        for (int i = 0; i < 8; i++) copy[i] = (uint8_t)(header >> 8 * i);
        if (right) set_checksum(copy, size);
    }
    TensorScope scope = tensor_scope_open();
    IoMetadata texts = { 0 };
    TensorDict dict = io_load_safetensors(file_of(copy, size), .metadata = &texts);
    for (int i = 0; i < dict.count; i++) touch(dict.item[i].tensor);
    check_error(dict.count < 0);
    MUST(dict.count >= 0 || texts.count == 0);
    nn_dict_free(dict), io_metadata_free(texts);
    tensor_scope_close(scope);
    MUST(tensor_live_count() == live);
    free(copy);
    return 0;
}
