/* defaults.c - do options start from their defaults? */
#include "core.h"

const char *options_by_place(const void *options, const void *defaults, size_t size)
{
    TensorByName given, want;
    for (size_t at = 0; at + sizeof want <= size; at += sizeof want) {
        memcpy(&want, (const char *)defaults + at, sizeof want);
        if (want != TENSOR_BY_NAME_MARK) continue;
        memcpy(&given, (const char *)options + at, sizeof given);
        return given == want ? NULL : "an option that goes by name, .option = value, is given by place";
    }
    return NULL;
}

/* On 32 bits padding may follow the mark. */
const char *options_slow_fault(const void *options, const void *defaults, size_t size)
{
    TensorFromDefaults given, want;
    for (size_t back = sizeof want; back <= sizeof(uint64_t) && back <= size; back += sizeof want) {
        memcpy(&want, (const char *)defaults + size - back, sizeof want);
        memcpy(&given, (const char *)options + size - back, sizeof given);
        if (want != TENSOR_DEFAULTS_MARK) continue;
        return given == want ? options_by_place(options, defaults, size)
                             : "options that do not start from the defaults: copy the constant that ends in "
                               "_defaults, and change that";
    }
    return NULL;
}

int tensor_check_options(const char *function, const void *options, const void *defaults, size_t size)
{
    const char *fault = options_fault(options, defaults, size);
    return fault ? fail(TENSOR_EVALUE, function, "%s", fault) : 0;
}
