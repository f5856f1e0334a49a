/* safetensors.h - what reader and writer of the format share. */
#ifndef TG_SAFETENSORS_H
#define TG_SAFETENSORS_H

enum { SAFETENSORS_MAX_HEADER = 100000000 }; /* the reference implementation reads no longer ones */

/* by TensorDtype */
#define SAFETENSORS_DTYPES                                      \
    {                                                           \
        "F32", "F64", "F16", "BF16", "I64", "I32", "U8", "BOOL" \
    }

#endif
