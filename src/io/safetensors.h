/* safetensors.h - what reader and writer of the format share. */
#ifndef TG_SAFETENSORS_H
#define TG_SAFETENSORS_H

enum { SAFETENSORS_MAX_HEADER = 100000000 }; /* the reference implementation reads no longer ones */

/* A header that begins so has the checksum of all that comes after the 8 bytes of its length, in 8
 * hexadecimal digits, which count as zeros. */
#define SAFETENSORS_CHECKED "{\"__metadata__\":{\"crc32c\":\""
enum { SAFETENSORS_CHECKED_AT = sizeof SAFETENSORS_CHECKED - 1, SAFETENSORS_DIGITS = 8 };

/* by TensorDtype */
#define SAFETENSORS_DTYPES                                      \
    {                                                           \
        "F32", "F64", "F16", "BF16", "I64", "I32", "U8", "BOOL" \
    }

#endif
