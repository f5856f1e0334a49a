/* fuzz_safetensors.c - io_load_safetensors on arbitrary bytes; the first 8 are the header's length, or, when
 * byte 7 is odd, are set so that the header ends with the last brace. */
#include <string.h>
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int64_t live = tensor_live_count();
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, bytes, size);
    if (size > 8 && copy[7] & 1) {
        const uint8_t *end = memrchr(copy + 8, '}', size - 8);
        uint64_t header = end ? (uint64_t)(end - copy) - 7 : size - 8;
        for (int i = 0; i < 8; i++) copy[i] = (uint8_t)(header >> 8 * i);
    }
    TensorScope scope = tensor_scope_open();
    TensorDict dict = io_load_safetensors(file_of(copy, size));
    for (int i = 0; i < dict.count; i++) touch(dict.item[i].tensor);
    check_error(dict.count < 0);
    nn_dict_free(dict);
    tensor_scope_close(scope);
    MUST(tensor_live_count() == live);
    free(copy);
    return 0;
}
